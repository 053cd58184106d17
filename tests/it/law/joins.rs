//! The law for joins of two streams: what they give together is what the same SELECT gives as a batch, whatever the split, the
//! partitions, restarts and crashes.

use proptest::prelude::*;

use super::{Event, crash_at, event, run, runner, session, start, step, verify};
use levada::error::Error;

/// Without bounds: nothing is ever final or late, so the table of the result is that of the batch after every step.
const UNBOUNDED: &[(&str, &str)] = &[
    ("APPEND", "SELECT s.k, s.v, u.v AS w FROM s JOIN u ON s.k = u.k"),
    ("UPDATE", "SELECT s.k, s.v, u.v AS w FROM s JOIN u ON s.k = u.k AND s.v < u.v"),
    ("APPEND", "SELECT s.v, u.v AS w FROM s JOIN u ON s.v < u.v"),
    ("APPEND", "SELECT s.k, u.k AS l, s.v, u.v AS w FROM s JOIN u ON s.k IS NOT DISTINCT FROM u.k"),
    ("APPEND", "SELECT s.v, u.v AS w FROM s, u WHERE s.k = u.k AND s.v + u.v > 0 AND s.v > -3"),
    ("UPDATE", "SELECT s.k, s.v, u.k AS l, u.v AS w FROM s LEFT JOIN u ON s.k = u.k"),
    ("UPDATE", "SELECT s.k, s.v, u.k AS l, u.v AS w FROM s LEFT JOIN u ON s.k = u.k AND s.v < u.v AND u.v > -5"),
    ("UPDATE", "SELECT s.k, s.v, u.k AS l, u.v AS w FROM s RIGHT JOIN u ON s.k = u.k AND s.v <> u.v AND u.v > -5"),
    ("UPDATE", "SELECT s.k, s.v, u.k AS l, u.v AS w FROM s FULL JOIN u ON s.k = u.k"),
    (
        "UPDATE",
        "SELECT s.k, s.v, u.k AS l, u.v AS w FROM s FULL JOIN u ON s.k = u.k AND s.v < u.v AND s.v > -5 AND u.v > -5",
    ),
    ("UPDATE", "SELECT k, v FROM s WHERE k IN (SELECT k FROM u)"),
    ("UPDATE", "SELECT k, v FROM s WHERE k IN (SELECT k FROM u WHERE u.v < s.v)"),
    ("UPDATE", "SELECT k, v FROM s WHERE EXISTS (SELECT 1 FROM u WHERE u.k = s.k AND u.v > s.v)"),
    ("UPDATE", "SELECT k, v FROM s WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.k = s.k)"),
    ("UPDATE", "SELECT k, v FROM s WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.k = s.k AND u.v > s.v)"),
    ("UPDATE", "SELECT k, v FROM s WHERE k NOT IN (SELECT k FROM u WHERE u.v > 3)"),
    ("UPDATE", "SELECT k, v FROM s WHERE v > 5 OR EXISTS (SELECT 1 FROM u WHERE u.k = s.k)"),
    ("APPEND", "SELECT a.k, a.v, b.v AS w FROM s a JOIN s b ON a.k = b.k AND a.v < b.v"),
    ("APPEND", "SELECT a.k, a.v, u.v AS w, b.v AS x FROM s a JOIN u ON a.k = u.k JOIN s b ON b.k = u.k AND b.v > u.v"),
    ("UPDATE", "SELECT a.k, a.v, u.v AS w, b.v AS x FROM s a LEFT JOIN u ON a.k = u.k LEFT JOIN s b ON b.v = u.v"),
    ("UPDATE", "SELECT a.k, a.v, u.v AS w, b.v AS x FROM s a FULL JOIN u ON a.v = u.v FULL JOIN s b ON b.k = u.k"),
    (
        "UPDATE",
        "SELECT a.k, n, t FROM (SELECT k, count(*) AS n FROM s GROUP BY k) a JOIN (SELECT k, sum(v) AS t FROM u GROUP BY k) b ON a.k = b.k",
    ),
    (
        "UPDATE",
        "SELECT a.k, n, u.v FROM (SELECT k, count(*) AS n FROM s GROUP BY k) a FULL JOIN u ON a.k = u.k AND a.n > u.v",
    ),
    (
        "UPDATE",
        "SELECT k, v FROM s WHERE NOT EXISTS (SELECT 1 FROM (SELECT k, max(v) AS m FROM u GROUP BY k) x WHERE x.k = s.k AND x.m > s.v)",
    ),
    ("UPDATE", "SELECT k, v FROM s WHERE k IN (SELECT k FROM u GROUP BY k HAVING count(*) % 2 = 1)"),
    ("UPDATE", "SELECT s.k, count(*) AS n, sum(u.v) AS t FROM s JOIN u ON s.k = u.k GROUP BY s.k"),
    (
        "UPDATE",
        "SELECT s.k, count(*) AS n, count(u.k) AS m, sum(u.v) AS t FROM s LEFT JOIN u ON s.k = u.k GROUP BY s.k",
    ),
    (
        "COMPLETE",
        "SELECT s.v, count(*) AS n, count(u.k) AS m, sum(u.v) AS t FROM s FULL JOIN u ON s.k = u.k AND s.v > u.v GROUP BY s.v",
    ),
    ("COMPLETE", "SELECT s.k, count(*) AS n, sum(u.v) AS t FROM s JOIN u ON s.k = u.k GROUP BY s.k"),
    (
        "UPDATE",
        "SELECT s.k, min(u.v) AS lo, max(u.v) AS hi, array_agg(u.v ORDER BY u.v) AS vs, count(DISTINCT u.v) AS n, median(s.v) AS m FROM s LEFT JOIN u ON s.k = u.k GROUP BY s.k",
    ),
    (
        "COMPLETE",
        "SELECT u.k, max(s.v) AS hi, first_value(s.k ORDER BY s.v, s.k) AS few FROM s FULL JOIN u ON s.v < u.v GROUP BY u.k",
    ),
    ("UPDATE", "SELECT k, v FROM s EXCEPT SELECT k, v FROM u"),
    ("UPDATE", "SELECT k, v FROM s INTERSECT SELECT k, v FROM u"),
    ("UPDATE", "SELECT k FROM s EXCEPT SELECT k FROM u WHERE v > 0 EXCEPT SELECT k FROM s WHERE v = 3"),
    ("UPDATE", "SELECT k, v % 3 AS r FROM s INTERSECT (SELECT k, v % 3 AS r FROM u EXCEPT SELECT k, 1 FROM s)"),
    ("UPDATE", "SELECT k FROM s EXCEPT ALL SELECT k FROM u"),
    ("UPDATE", "SELECT k FROM s INTERSECT ALL SELECT k FROM u"),
    ("UPDATE", "SELECT k, count(*) AS n FROM s GROUP BY k EXCEPT SELECT k, count(*) FROM u GROUP BY k"),
    ("UPDATE", "SELECT k, count(*) AS n FROM s GROUP BY k INTERSECT SELECT k, max(v) FROM u GROUP BY k"),
    ("UPDATE", "SELECT count(*) AS n, max(v) AS hi FROM (SELECT k, v FROM s EXCEPT SELECT k, v FROM u) x"),
    ("COMPLETE", "SELECT k, v FROM s EXCEPT SELECT k, v FROM u"),
    ("COMPLETE", "SELECT k, v % 3 AS r FROM s INTERSECT ALL SELECT k, v % 3 FROM u"),
    ("COMPLETE", "SELECT k FROM s EXCEPT SELECT k FROM u INTERSECT SELECT k FROM s WHERE v > 0"),
    ("UPDATE", "SELECT k, v FROM s WHERE v > (SELECT avg(v) FROM u)"),
    ("UPDATE", "SELECT k, v, (SELECT count(*) FROM u) AS n, (SELECT max(k) FROM u WHERE v > 0) AS top FROM s"),
    ("UPDATE", "SELECT k, v FROM s WHERE v >= (SELECT max(v) FROM s) OR v = (SELECT min(v) FROM u)"),
    ("UPDATE", "SELECT k, v, (SELECT sum(u.v) FROM u WHERE u.k = s.k) AS t FROM s"),
    ("UPDATE", "SELECT k, v FROM s WHERE v <= (SELECT count(*) FROM u WHERE u.k = s.k)"),
    (
        "UPDATE",
        "SELECT k, count(*) AS n FROM s GROUP BY k HAVING count(*) > (SELECT avg(n) FROM (SELECT count(*) AS n FROM s GROUP BY k) x)",
    ),
    ("COMPLETE", "SELECT k, sum(v) AS t FROM s WHERE v > (SELECT min(v) FROM u) GROUP BY k"),
    ("UPDATE", "SELECT DISTINCT s.k, u.v AS w FROM s LEFT JOIN u ON s.k = u.k"),
    ("UPDATE", "SELECT DISTINCT u.k, s.v % 3 AS r FROM s FULL JOIN u ON s.v = u.v"),
    ("COMPLETE", "SELECT DISTINCT s.k, u.v AS w FROM s LEFT JOIN u ON s.k = u.k"),
    ("UPDATE", "SELECT s.k, s.v, u.v AS w FROM s JOIN u ON s.k = u.k ORDER BY s.v DESC, u.v, s.k LIMIT 3"),
    ("UPDATE", "SELECT s.k, s.v, u.v AS w FROM s LEFT JOIN u ON s.k = u.k ORDER BY u.v NULLS FIRST, s.v, s.k LIMIT 3"),
    (
        "COMPLETE",
        "SELECT s.k, s.v, u.v AS w FROM s LEFT JOIN u ON s.k = u.k ORDER BY u.v NULLS FIRST, s.v, s.k LIMIT 3",
    ),
    (
        "UPDATE",
        "SELECT k, v, w, r FROM (SELECT s.k, s.v, u.v AS w, rank() OVER (PARTITION BY s.k ORDER BY u.v DESC) AS r FROM s LEFT JOIN u ON s.k = u.k) x WHERE r <= 2",
    ),
    (
        "UPDATE",
        "SELECT a.k, a.v, b.v AS w FROM (SELECT k, v, row_number() OVER (PARTITION BY k ORDER BY v DESC) AS r FROM s) a JOIN (SELECT k, max(v) AS v FROM u GROUP BY k) b ON a.k = b.k WHERE a.r = 1",
    ),
];

#[derive(Debug, Clone)]
struct Row {
    left: bool,
    k: Option<u8>,
    v: Option<i64>,
}

fn row() -> impl Strategy<Value = Row> {
    (any::<bool>(), proptest::option::weighted(0.9, 0u8..4), proptest::option::weighted(0.9, -8i64..8))
        .prop_map(|(left, k, v)| Row { left, k, v })
}

fn holds(query: &str, mode: &str, batches: &[(Vec<Row>, Event)]) -> Result<(), TestCaseError> {
    let folder = tempfile::tempdir().expect("a folder");
    let checkpoint = folder.path().join("cp").display().to_string();
    let session = session();
    let fail = |e: Error| TestCaseError::fail(format!("{query} {mode}: {e}"));
    let ask = |sql: &str| run(&session, sql).map_err(fail);
    ask("SET clock = 'manual'")?;
    ask("CREATE STREAM s (k STRING, v BIGINT)")?;
    ask("CREATE STREAM u (k STRING, v BIGINT)")?;
    let begin = |partitions: u8| start(&session, query, mode, &checkpoint, partitions);
    let mut partitions = 2;
    begin(partitions).map_err(fail)?;
    let mut begun = false;
    for (rows, event) in batches {
        let cell = |text: Option<String>| text.unwrap_or_else(|| "NULL".into());
        let inserts = rows.iter().map(|row| {
            let (k, v) = (cell(row.k.map(|k| format!("'key {k}'"))), cell(row.v.map(|v| v.to_string())));
            format!("INSERT INTO {} VALUES ({k}, {v})", if row.left { "s" } else { "u" })
        });
        let inserts: Vec<String> = inserts.collect();
        step(&session, &begin, &mut partitions, *event, &inserts).map_err(fail)?;
        begun |= !rows.is_empty();
        if begun {
            let (got, wanted) = (ask("SELECT * FROM r")?, ask(query)?);
            prop_assert_eq!(&got, &wanted, "{} {}", query, mode);
        }
    }
    verify(&session).map_err(fail)?;
    session.stop_all(true);
    Ok(())
}

#[test]
fn joins_equal_batch() {
    let batches = proptest::collection::vec((proptest::collection::vec(row(), 0..10), event()), 1..5);
    let mut runner = runner(64);
    let case = (0..UNBOUNDED.len(), batches);
    let result = runner.run(&case, |(query, batches)| holds(UNBOUNDED[query].1, UNBOUNDED[query].0, &batches));
    result.unwrap_or_else(|e| panic!("{e}"));
}

/// Every query at least once, so that none hides behind chance.
#[test]
fn every_kind_of_join_equals_batch() {
    let rows = |from: i64, n: i64| -> Vec<Row> {
        let one = |i: i64| Row {
            left: i % 3 != 1,
            k: (i % 7 != 6).then_some((i % 4) as u8),
            v: (i % 5 != 4).then_some(i * 7 % 13 - 5),
        };
        (from..from + n).map(one).collect()
    };
    let batches = [
        (rows(0, 9), Event::Nothing),
        (rows(9, 1), crash_at("state.after")),
        (rows(10, 12), Event::Restart(3)),
        (Vec::new(), crash_at("offsets.after")),
        (rows(22, 8), Event::Restart(1)),
    ];
    for (mode, query) in UNBOUNDED {
        holds(query, mode, &batches).unwrap_or_else(|e| panic!("{e}"));
    }
}

/// With bounds, in APPEND: rows that are newer than all before them less the delay are never late, and once the watermark is
/// past everything, each row of the batch has been given out once.
const BOUNDED: &[&str] = &[
    "SELECT s.k, s.ts, u.ts AS t FROM s JOIN u ON s.k = u.k AND s.ts BETWEEN u.ts - INTERVAL '4 seconds' AND u.ts + INTERVAL '2 seconds'",
    "SELECT s.k, s.ts, u.ts AS t FROM s JOIN u ON s.k = u.k AND s.ts - u.ts <= INTERVAL '2 seconds' AND u.ts < s.ts + INTERVAL '3 seconds'",
    "SELECT s.k, s.ts, u.ts AS t FROM s LEFT JOIN u ON s.k = u.k AND s.ts BETWEEN u.ts - INTERVAL '4 seconds' AND u.ts + INTERVAL '2 seconds'",
    "SELECT s.k, s.ts, u.ts AS t FROM s LEFT JOIN u ON s.k = u.k AND s.ts = u.ts",
    "SELECT coalesce(s.k, u.k) AS k, s.ts, u.ts AS t FROM s FULL JOIN u ON s.k = u.k AND s.v = u.v AND u.ts > s.ts - INTERVAL '3 seconds' AND u.ts - INTERVAL '3 seconds' < s.ts",
    "SELECT u.k, s.ts, u.ts AS t FROM s RIGHT JOIN u ON s.k = u.k AND s.v < u.v AND s.v > 0 AND s.ts >= u.ts AND s.ts + INTERVAL '-5 seconds' <= u.ts",
    "SELECT k, ts, v FROM s WHERE EXISTS (SELECT 1 FROM u WHERE u.k = s.k AND u.ts BETWEEN s.ts AND s.ts + INTERVAL '5 seconds')",
    "SELECT k, ts, v FROM s WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.k = s.k AND u.v >= s.v AND u.ts BETWEEN s.ts - INTERVAL '1 second' AND s.ts + INTERVAL '5 seconds')",
    "SELECT k, ts, v FROM s WHERE v NOT IN (SELECT v FROM u WHERE u.ts BETWEEN s.ts - INTERVAL '1 second' AND s.ts + INTERVAL '5 seconds')",
    "SELECT a.k, a.window_start AS ts, a.v, b.v AS w FROM TUMBLE(s, ts, '5 seconds') a LEFT JOIN TUMBLE(u, ts, '5 seconds') b ON a.k = b.k AND a.window_start = b.window_start",
    "SELECT k, window.start AS ts, count(*) AS n FROM (SELECT s.k, s.ts FROM s LEFT JOIN u ON s.k = u.k AND s.ts BETWEEN u.ts - INTERVAL '4 seconds' AND u.ts + INTERVAL '2 seconds') x GROUP BY k, window(ts, '3 seconds')",
    "SELECT s.k, s.ts, a.ts AS t, b.ts AS x FROM s LEFT JOIN u a ON s.k = a.k AND a.ts BETWEEN s.ts - INTERVAL '2 seconds' AND s.ts + INTERVAL '2 seconds' LEFT JOIN u b ON s.v = b.v AND b.ts BETWEEN s.ts AND s.ts + INTERVAL '3 seconds'",
];

fn bounded_holds(query: &str, batches: &[(Vec<(i64, i64, Row)>, Event)]) -> Result<(), TestCaseError> {
    let folder = tempfile::tempdir().expect("a folder");
    let checkpoint = folder.path().join("cp").display().to_string();
    let session = session();
    let fail = |e: Error| TestCaseError::fail(format!("{query}: {e}"));
    let ask = |sql: &str| run(&session, sql).map_err(fail);
    ask("SET clock = 'manual'")?;
    for stream in ["s", "u"] {
        ask(&format!(
            "CREATE STREAM {stream} (ts TIMESTAMP, k STRING, v BIGINT, WATERMARK FOR ts AS ts - INTERVAL '3 seconds')"
        ))?;
    }
    let begin = |partitions: u8| start(&session, query, "APPEND", &checkpoint, partitions);
    let mut partitions = 2;
    begin(partitions).map_err(fail)?;
    let mut now = 0i64;
    let insert = |stream: &str, ts: i64, k: &str, v: i64| {
        format!("INSERT INTO {stream} VALUES (to_timestamp_micros({ts}), '{k}', {v})")
    };
    for (rows, event) in batches {
        let mut inserts = Vec::new();
        for (gap, back, row) in rows {
            now += gap;
            let (stream, k) = (if row.left { "s" } else { "u" }, format!("key {}", row.k.unwrap_or_default()));
            inserts.push(insert(stream, now - back, &k, row.v.unwrap_or_default()));
        }
        step(&session, &begin, &mut partitions, *event, &inserts).map_err(fail)?;
    }
    // Far later, a row of each side that matches nothing.
    let far =
        [insert("s", now + 1_000_000_000, "end of s", 1_000), insert("u", now + 1_000_000_000, "end of u", 2_000)];
    step(&session, &begin, &mut partitions, Event::Nothing, &far).map_err(fail)?;
    let final_rows = |of: &str| format!("SELECT * FROM ({of}) x WHERE k NOT LIKE 'end of %'");
    let (got, wanted) = (ask(&final_rows("SELECT * FROM r"))?, ask(&final_rows(query))?);
    prop_assert_eq!(&got, &wanted, "{}", query);
    verify(&session).map_err(fail)?;
    session.stop_all(true);
    Ok(())
}

#[test]
fn bounded_joins_give_what_is_final() {
    let row = (0i64..2_500_000, 0i64..2_900_000, row());
    let batches = proptest::collection::vec((proptest::collection::vec(row, 0..10), event()), 1..5);
    let mut runner = runner(36);
    let result = runner.run(&(0..BOUNDED.len(), batches), |(query, batches)| bounded_holds(BOUNDED[query], &batches));
    result.unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn every_kind_of_bounded_join_gives_what_is_final() {
    let rows = |from: i64, n: i64| -> Vec<(i64, i64, Row)> {
        let one = |i: i64| {
            let row = Row { left: i % 3 != 1, k: Some((i % 3) as u8), v: Some(i * 7 % 5) };
            (i * 37 % 11 * 200_000, i * 17 % 29 * 100_000, row)
        };
        (from..from + n).map(one).collect()
    };
    let batches = [
        (rows(0, 12), Event::Nothing),
        (rows(12, 1), crash_at("state.after")),
        (rows(13, 15), Event::Restart(3)),
        (rows(28, 15), crash_at("sink.after")),
    ];
    for query in BOUNDED {
        bounded_holds(query, &batches).unwrap_or_else(|e| panic!("{e}"));
    }
}
