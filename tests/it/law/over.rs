//! The law for OVER in APPEND: what looks back gives the rows of the batch whose time the watermark has passed, each once;
//! what looks ahead gives some of them, and all when it is drained; whatever the split, the partitions, restarts and crashes.

use proptest::prelude::*;

use super::queries::Dice;
use super::{Event, event, run, runner, session, start, step, verify};
use levada::error::Error;

/// What a SELECT asks of the rows of `s (ts, k, v, id)` by time, in the words of one OVER. `id` is another in each row.
fn call(dice: &mut Dice, ahead: bool) -> String {
    let partition = dice.pick(&["", "PARTITION BY k ", "PARTITION BY k ", "PARTITION BY k, v % 2 ", "PARTITION BY f "]);
    let (n, m) = (dice.between(0, 3), dice.between(0, 3));
    if dice.chance(35) {
        let one = match (ahead, dice.below(7)) {
            (_, 0) => "row_number()".into(),
            (_, 1) => "rank()".into(),
            (_, 2) => "dense_rank()".into(),
            (true, 3 | 4) => format!("lead(v, {n}, -7)"),
            (true, _) => format!("lead(id, {m})"),
            (false, 3) => "lag(v)".into(),
            (false, _) => format!("lag(id, {n}, 0)"),
        };
        return format!("{one} OVER ({partition}ORDER BY ts, id)");
    }
    let time = |n: i64| format!("INTERVAL '{} milliseconds'", n * 700);
    // Values of a frame of time are told apart by no more than the time.
    let by_time = dice.chance(50);
    let frame = match (by_time, dice.below(6)) {
        (true, 0) => "ORDER BY ts".into(),
        (true, 1) if ahead => {
            format!("ORDER BY ts RANGE BETWEEN {} PRECEDING AND {} FOLLOWING", time(n), time(m))
        }
        (true, 2) if ahead => format!("ORDER BY ts RANGE BETWEEN CURRENT ROW AND {} FOLLOWING", time(n)),
        (true, 3) => format!("ORDER BY ts RANGE BETWEEN {} PRECEDING AND {} PRECEDING", time(n + m), time(m)),
        (true, _) => format!("ORDER BY ts RANGE BETWEEN {} PRECEDING AND CURRENT ROW", time(n)),
        (false, 0) => "ORDER BY ts, id ROWS UNBOUNDED PRECEDING".into(),
        (false, 1) => "ORDER BY ts, id RANGE UNBOUNDED PRECEDING".into(),
        (false, 2) if ahead => format!("ORDER BY ts, id ROWS BETWEEN {n} PRECEDING AND {m} FOLLOWING"),
        (false, 3) if ahead => format!("ORDER BY ts, id ROWS BETWEEN {n} FOLLOWING AND {} FOLLOWING", n + m),
        (false, 4) => format!("ORDER BY ts, id ROWS BETWEEN {} PRECEDING AND {m} PRECEDING", n + m),
        (false, _) => format!("ORDER BY ts, id ROWS BETWEEN {n} PRECEDING AND CURRENT ROW"),
    };
    let whole =
        ["count(*)", "sum(v)", "min(v)", "max(id)", "avg(v)", "count(v) FILTER (WHERE v > 1)", "sum(v * 2 + id)"];
    // Which row of those that are equal in time comes first is for the order to say.
    let ordered = ["first_value(id)", "last_value(v)", "nth_value(id, 2)", "array_agg(id)"];
    let one = if by_time || dice.chance(60) { dice.pick(&whole) } else { dice.pick(&ordered) };
    let by_rows = frame.contains("ROWS");
    let one = if one == "array_agg(id)" && !by_rows { "max(v)" } else { one };
    // Batch DataFusion takes nothing out of a frame that array_agg has moved over.
    let one = if one == "array_agg(id)" && !frame.contains("UNBOUNDED") { "min(id)" } else { one };
    format!("{one} OVER ({partition}{frame})")
}

/// A query, whether it looks ahead, and whether the end of its windows tells when a row is final.
fn query(dice: &mut Dice) -> (String, bool, bool) {
    if dice.chance(20) {
        let function = dice.pick(&[
            "ntile(3) OVER (PARTITION BY window_end ORDER BY v, id)",
            "percent_rank() OVER (PARTITION BY window_end, k ORDER BY v)",
            "sum(v) OVER (PARTITION BY window_end)",
            "lead(id) OVER (PARTITION BY k, window_end ORDER BY id DESC)",
            "count(*) OVER (PARTITION BY window_end ORDER BY v, id ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)",
        ]);
        let other = dice.pick(&["id", "max(v) OVER (PARTITION BY window_end)", "v * 2"]);
        let sql = format!("SELECT window_end AS z, id, {function} AS a, {other} AS b FROM TUMBLE(s, ts, '3 seconds')");
        return (sql, false, true);
    }
    let ahead = dice.chance(40);
    // Behind an OVER that waits for rows to come no time is carried: another with other keys is refused there.
    let several = if ahead { 1 } else { 1 + dice.below(3) };
    let calls: Vec<String> = (0..several).map(|n| format!("{} AS a{n}", call(dice, ahead))).collect();
    let from = dice.pick(&["s", "s", "(SELECT ts, k, v, f, id FROM s WHERE v <> 2) x"]);
    let sql = format!("SELECT ts AS z, id, {} FROM {from}", calls.join(", "));
    (sql, ahead, false)
}

/// How much later than the newest row the stream's time is, how far a row is behind it, its key and its value.
type Row = (i64, i64, i64, Option<i64>);

fn row() -> impl Strategy<Value = Row> {
    let later = prop_oneof![3 => 0i64..1_500_000, 2 => (0i64..3).prop_map(|seconds| seconds * 1_000_000)];
    let behind =
        prop_oneof![2 => Just(0), 1 => 0i64..2_900_000, 1 => (0i64..3).prop_map(|seconds| seconds * 1_000_000)];
    (later, behind, 0i64..3, proptest::option::weighted(0.85, 0i64..5))
}

const FLOATS: [&str; 4] = ["0.0", "-0.0", "'NaN'::DOUBLE", "NULL"];

fn holds(
    (query, ahead, windows): &(String, bool, bool),
    batches: &[(Vec<Row>, Event)],
    drains: bool,
) -> Result<(), TestCaseError> {
    let folder = tempfile::tempdir().expect("a folder");
    let checkpoint = folder.path().join("cp").display().to_string();
    let session = session();
    let fail = |e: Error| TestCaseError::fail(format!("{query}: {e}"));
    let ask = |sql: &str| run(&session, sql).map_err(fail);
    ask("SET clock = 'manual'")?;
    ask(
        "CREATE STREAM s (ts TIMESTAMP, k BIGINT, v BIGINT, f DOUBLE, id BIGINT, WATERMARK FOR ts AS ts - INTERVAL '3 seconds')",
    )?;
    let begin = |partitions: u8| start(&session, query, "APPEND", &checkpoint, partitions);
    let mut partitions = 2;
    begin(partitions).map_err(fail)?;
    let (mut now, mut newest, mut id) = (-8_000_000i64, i64::MIN, 0);
    for (rows, event) in batches {
        let values = rows.iter().map(|(later, behind, k, v)| {
            now += later;
            id += 1;
            newest = newest.max(now - behind);
            let v = v.map_or("NULL".into(), |v| v.to_string());
            let f = FLOATS[(id * 5 % 7) as usize % FLOATS.len()];
            format!("(to_timestamp_micros({}), {k}, {v}, {f}, {id})", now - behind)
        });
        let values: Vec<String> = values.collect();
        let insert = (!values.is_empty()).then(|| format!("INSERT INTO s VALUES {}", values.join(", ")));
        step(&session, &begin, &mut partitions, *event, insert.as_slice()).map_err(fail)?;
    }
    // Before the first row there is no watermark, and nothing to be final.
    let watermark = newest.saturating_sub(3_000_000).div_euclid(1_000).saturating_mul(1_000);
    let is_final = format!("z <= arrow_cast(to_timestamp_micros({watermark}), 'Timestamp(Microsecond, None)')");
    let got = ask("SELECT * FROM r")?;
    let wanted = ask(&format!("SELECT * FROM ({query}) x WHERE {is_final}"))?;
    if !ahead || *windows {
        prop_assert_eq!(&got, &wanted, "{}", query);
    } else {
        prop_assert!(got.iter().all(|row| wanted.contains(row)), "{}: {:?} of {:?}", query, got, wanted);
    }
    verify(&session).map_err(fail)?;
    if drains && id > 0 {
        // A point that no step has reached is met by what closes the rest; so may its end be.
        while let Err(error) = run(&session, "STOP QUERY q DRAIN") {
            prop_assert!(error.to_string().contains("failpoint"), "{}: {}", query, error);
            if begin(partitions).is_err_and(|error| error.to_string().contains("drained")) {
                break;
            }
        }
        prop_assert_eq!(ask("SELECT * FROM r")?, ask(query)?, "{} drained", query);
    }
    session.stop_all(true);
    Ok(())
}

#[test]
fn append_gives_the_rows_that_are_final() {
    let batches = proptest::collection::vec((proptest::collection::vec(row(), 0..10), event()), 1..7);
    let case = (0u64..10_000, batches, any::<bool>());
    runner(48)
        .run(&case, |(seed, batches, drains)| holds(&query(&mut Dice::new(seed)), &batches, drains))
        .unwrap_or_else(|e| panic!("{e}"));
}

/// Queries of every kind over rows of every kind, so that none hides behind chance.
#[test]
fn every_kind_of_over_equals_batch() {
    let rows = |seed: i64, n: i64| -> Vec<Row> {
        let at = |i: i64| (seed + i) * 7 + i * i;
        let one =
            |i: i64| (at(i) % 5 * 500_000, at(i) % 3 * 1_000_000, at(i) % 3, (at(i) % 6 != 5).then_some(at(i) % 5));
        (0..n).map(one).collect()
    };
    let batches = [
        (rows(1, 9), Event::Nothing),
        (rows(2, 1), Event::Restart(3)),
        (rows(3, 14), super::crash_at("commit.before")),
        (Vec::new(), Event::Restart(1)),
        (rows(5, 8), super::crash_at("state.after")),
        (vec![(5_000_000, 0, 0, Some(2))], Event::Nothing),
    ];
    for seed in 0..40 {
        holds(&query(&mut Dice::new(seed)), &batches, true).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
    }
}
