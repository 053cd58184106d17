//! The law for OVER. In APPEND: what looks back gives the rows of the batch whose time the watermark has passed, each once; what
//! looks ahead gives some of them, and all when it is drained. In UPDATE and COMPLETE: what the batch gives, over rows that are
//! taken back too, and what stands above it. Whatever the split, the partitions, restarts and crashes.

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
    if dice.chance(10) {
        let number = dice
            .pick(&["row_number() OVER (PARTITION BY k ORDER BY ts, id)", "rank() OVER (PARTITION BY k ORDER BY ts)"]);
        let sql =
            format!("SELECT * FROM (SELECT ts AS z, id, {number} AS r FROM s) x WHERE r <= {}", dice.between(1, 3));
        return (sql, false, false);
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

/// A session with the stream, and a statement that brings rows.
struct Trial {
    session: levada::session::Session,
    query: String,
    now: i64,
    newest: i64,
    id: i64,
}

impl Trial {
    fn new(query: &str) -> Result<Self, TestCaseError> {
        let trial = Trial { session: session(), query: query.into(), now: -8_000_000, newest: i64::MIN, id: 0 };
        trial.ask("SET clock = 'manual'")?;
        trial.ask(
            "CREATE STREAM s (ts TIMESTAMP, k BIGINT, v BIGINT, f DOUBLE, id BIGINT, WATERMARK FOR ts AS ts - INTERVAL '3 seconds')",
        )?;
        Ok(trial)
    }

    fn ask(&self, sql: &str) -> Result<Vec<Vec<String>>, TestCaseError> {
        run(&self.session, sql).map_err(|e| self.fail(e))
    }

    fn fail(&self, error: Error) -> TestCaseError {
        TestCaseError::fail(format!("{}: {error}", self.query))
    }

    fn insert(&mut self, rows: &[Row]) -> Option<String> {
        let values = rows.iter().map(|(later, behind, k, v)| {
            self.now += later;
            self.id += 1;
            self.newest = self.newest.max(self.now - behind);
            let v = v.map_or("NULL".into(), |v| v.to_string());
            let f = FLOATS[(self.id * 5 % 7) as usize % FLOATS.len()];
            format!("(to_timestamp_micros({}), {k}, {v}, {f}, {})", self.now - behind, self.id)
        });
        let values: Vec<String> = values.collect();
        (!values.is_empty()).then(|| format!("INSERT INTO s VALUES {}", values.join(", ")))
    }

    /// Runs the batches in a mode.
    fn run(&mut self, mode: &str, checkpoint: &str, batches: &[(Vec<Row>, Event)]) -> Result<u8, TestCaseError> {
        let mut partitions = 2;
        let query = self.query.clone();
        start(&self.session, &query, mode, checkpoint, partitions).map_err(|e| self.fail(e))?;
        for (rows, event) in batches {
            let insert = self.insert(rows);
            let begin = |partitions: u8| start(&self.session, &query, mode, checkpoint, partitions);
            step(&self.session, &begin, &mut partitions, *event, insert.as_slice()).map_err(|e| self.fail(e))?;
        }
        Ok(partitions)
    }
}

fn holds(
    (query, ahead, windows): &(String, bool, bool),
    batches: &[(Vec<Row>, Event)],
    drains: bool,
) -> Result<(), TestCaseError> {
    let folder = tempfile::tempdir().expect("a folder");
    let checkpoint = folder.path().join("cp").display().to_string();
    let mut trial = Trial::new(query)?;
    let partitions = trial.run("APPEND", &checkpoint, batches)?;
    // Before the first row there is no watermark, and nothing to be final.
    let watermark = trial.newest.saturating_sub(3_000_000).div_euclid(1_000).saturating_mul(1_000);
    let is_final = format!("z <= arrow_cast(to_timestamp_micros({watermark}), 'Timestamp(Microsecond, None)')");
    let got = trial.ask("SELECT * FROM r")?;
    let wanted = trial.ask(&format!("SELECT * FROM ({query}) x WHERE {is_final}"))?;
    if !ahead || *windows {
        prop_assert_eq!(&got, &wanted, "{}", query);
    } else {
        prop_assert!(got.iter().all(|row| wanted.contains(row)), "{}: {:?} of {:?}", query, got, wanted);
    }
    verify(&trial.session).map_err(|e| trial.fail(e))?;
    if drains && trial.id > 0 {
        // A point that no step has reached is met by what closes the rest; so may its end be.
        while let Err(error) = run(&trial.session, "STOP QUERY q DRAIN") {
            prop_assert!(error.to_string().contains("failpoint"), "{}: {}", query, error);
            let begun = start(&trial.session, query, "APPEND", &checkpoint, partitions);
            if begun.is_err_and(|error| error.to_string().contains("drained")) {
                break;
            }
        }
        prop_assert_eq!(trial.ask("SELECT * FROM r")?, trial.ask(query)?, "{} drained", query);
    }
    trial.session.stop_all(true);
    Ok(())
}

/// A call over rows of which some may be taken back; no two of them have one place in its order, unless that does not matter.
fn changing(dice: &mut Dice) -> String {
    let partition = dice.pick(&["", "PARTITION BY k ", "PARTITION BY k, v % 2 ", "PARTITION BY f "]);
    let order = dice.pick(&["ts, id", "v DESC, id", "v NULLS FIRST, id DESC", "id"]);
    let (n, m) = (dice.between(0, 3), dice.between(0, 3));
    let one = match dice.below(14) {
        0 => "row_number()".into(),
        1 => "ntile(3)".into(),
        2 => "percent_rank()".into(),
        3 => "cume_dist()".into(),
        4 => format!("lead(v, {n}, -7)"),
        5 => "lag(v) IGNORE NULLS".into(),
        6 => format!("lag(id, {n}, 0)"),
        7 => return format!("rank() OVER ({partition}ORDER BY v)"),
        8 => return format!("dense_rank() OVER ({partition}ORDER BY v DESC)"),
        9 => return format!("sum(v) OVER ({partition}ORDER BY v RANGE BETWEEN 1 PRECEDING AND {m} FOLLOWING)"),
        10 => return format!("avg(v) OVER ({partition})"),
        11 => return format!("count(v) FILTER (WHERE v > 1) OVER ({partition}ORDER BY v, id ROWS {n} PRECEDING)"),
        12 => {
            return format!("max(v) OVER ({partition}ORDER BY {order} GROUPS BETWEEN {n} PRECEDING AND {m} FOLLOWING)");
        }
        _ => {
            let whole = dice.pick(&["sum(v)", "min(id)", "nth_value(id, 2)", "last_value(v)", "count(*)"]);
            return format!("{whole} OVER ({partition}ORDER BY {order} ROWS BETWEEN {n} PRECEDING AND {m} FOLLOWING)");
        }
    };
    format!("{one} OVER ({partition}ORDER BY {order})")
}

/// A query that takes rows back, and its mode.
fn changing_query(dice: &mut Dice) -> (String, &'static str) {
    let groups =
        "(SELECT k, v, v AS f, min(ts) AS ts, k * 10 + coalesce(v, 7) AS id, count(*) AS n FROM s GROUP BY k, v) g";
    let windows = "(SELECT window_start AS ts, k, count(*) AS v, sum(v) AS f, 0 AS id FROM TUMBLE(s, ts, '2 seconds') GROUP BY window_start, window_end, k) w";
    let top = "(SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY v DESC, id) AS r FROM s) x WHERE r <= 4) t";
    let several = 1 + dice.below(2);
    let calls = |dice: &mut Dice| {
        let calls: Vec<String> = (0..several).map(|n| format!("{} AS a{n}", changing(dice))).collect();
        calls.join(", ")
    };
    let (mode, from) = match dice.below(8) {
        0 | 1 => ("UPDATE", "s".to_string()),
        2 => ("UPDATE", top.into()),
        3 => ("COMPLETE", groups.into()),
        4 => {
            let over = dice.pick(&[
                "SELECT k, ts, v, v - lag(v) OVER (PARTITION BY k ORDER BY ts) AS change",
                "SELECT ts, k, sum(v) OVER (PARTITION BY ts) AS total, rank() OVER (PARTITION BY ts ORDER BY v DESC) AS r",
                "SELECT k, ts, sum(v) OVER (PARTITION BY k ORDER BY ts) AS so_far",
            ]);
            return (format!("{over} FROM {windows}"), dice.pick(&["UPDATE", "UPDATE", "COMPLETE"]));
        }
        5 => {
            let call = changing(dice);
            let above = dice.pick(&["count(*) AS n", "min(id) AS n", "count(DISTINCT id) AS n"]);
            return (format!("SELECT a, {above} FROM (SELECT id, {call} AS a FROM s) o GROUP BY a"), "UPDATE");
        }
        6 => {
            let from = dice.pick(&[groups, top]);
            let what = dice.pick(&["count(*) AS n", "min(id) AS n, max(v) AS m"]);
            let keys = dice.pick(&["", "k, "]);
            let sql = format!(
                "SELECT {keys}session_window.start AS a, session_window.end AS z, {what} FROM {from} GROUP BY {keys}session_window(ts, '1 second')"
            );
            return (sql, "UPDATE");
        }
        _ => ("UPDATE", groups.into()),
    };
    (format!("SELECT id, k, {} FROM {from}", calls(dice)), mode)
}

fn holds_now((query, mode): &(String, &'static str), batches: &[(Vec<Row>, Event)]) -> Result<(), TestCaseError> {
    let folder = tempfile::tempdir().expect("a folder");
    let checkpoint = folder.path().join("cp").display().to_string();
    let mut trial = Trial::new(query)?;
    trial.run(mode, &checkpoint, batches)?;
    prop_assert_eq!(trial.ask("SELECT * FROM r")?, trial.ask(query)?, "{} {}", mode, query);
    verify(&trial.session).map_err(|e| trial.fail(e))?;
    trial.session.stop_all(true);
    Ok(())
}

#[test]
fn what_takes_rows_back_is_what_the_batch_gives() {
    let batches = proptest::collection::vec((proptest::collection::vec(row(), 0..10), event()), 1..7);
    runner(64)
        .run(&(0u64..10_000, batches), |(seed, batches)| holds_now(&changing_query(&mut Dice::new(seed)), &batches))
        .unwrap_or_else(|e| panic!("{e}"));
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
    for seed in 0..60 {
        holds_now(&changing_query(&mut Dice::new(seed)), &batches).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
    }
    for seed in 0..40 {
        holds(&query(&mut Dice::new(seed)), &batches, true).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
    }
}
