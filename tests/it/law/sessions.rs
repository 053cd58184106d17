//! The law for sessions in APPEND: the sessions of the batch that are final at the watermark, each once, whatever the split, the
//! partitions, restarts and crashes; and the same of what stands above and below them.

use proptest::prelude::*;

use super::{Event, event, run, runner, session, start, step, verify};
use levada::error::Error;

/// With what tells of a row of the batch's result when it is final: at or after this time.
const QUERIES: &[(&str, &str)] = &[
    (
        "SELECT k, session_window.start AS a, session_window.end AS z, count(*) AS n, count(DISTINCT v) AS u, array_agg(v ORDER BY ts) AS vs FROM s GROUP BY session_window(ts, '2 seconds'), k",
        "z",
    ),
    ("SELECT session_window AS w, sum(v) AS t, median(v) AS m FROM s GROUP BY session_window(ts, '1 second')", "w.end"),
    (
        "SELECT session_window.end AS z, min(v) AS lo, max(v) AS hi FROM s GROUP BY k, session_window(ts, ((v - 1) * 900) || ' milliseconds') HAVING count(*) > 1",
        "z",
    ),
    (
        "SELECT window_end AS z, k, window_start AS a, count(*) AS n FROM SESSION(s PARTITION BY k, ts, '2 seconds') GROUP BY window_start, window_end, k",
        "z",
    ),
    (
        "SELECT k, v, ts, window_start AS a, window_end AS z FROM SESSION(s PARTITION BY k, ts, '1500 milliseconds')",
        "z",
    ),
    (
        "SELECT window_end AS z, count(*) AS n, sum(v) AS t FROM SESSION(s PARTITION BY k, ts, '2 seconds') WHERE v > 0 GROUP BY window_end",
        "z",
    ),
    // What is above: groups by the end of sessions, windows over sessions, sessions of sessions.
    (
        "SELECT z, count(*) AS sessions, sum(n) AS n, max(k) AS k FROM (SELECT session_window.end AS z, k, count(*) AS n FROM s GROUP BY session_window(ts, '2 seconds'), k) GROUP BY z",
        "z",
    ),
    (
        "SELECT window.start AS a, window.end AS z, count(*) AS sessions, sum(n) AS n FROM (SELECT session_window AS w, k, count(*) AS n FROM s GROUP BY session_window(ts, '2 seconds'), k) GROUP BY window(window_time(w), '6 seconds')",
        "z",
    ),
    (
        "SELECT session_window AS w, count(*) AS sessions, sum(n) AS n FROM (SELECT session_window.end AS e, k, count(*) AS n FROM s GROUP BY session_window(ts, '500 milliseconds'), k) GROUP BY session_window(e, '2 seconds')",
        "w.end",
    ),
    // What is below: windows, whose last instants touch as rows do; distinct rows.
    (
        "SELECT k, session_window.start AS a, session_window.end AS z, count(*) AS windows, sum(n) AS n FROM (SELECT window AS w, k, count(*) AS n FROM s GROUP BY window(ts, '1 second'), k) GROUP BY k, session_window(window_time(w), '2 seconds')",
        "z + INTERVAL '1 microsecond'",
    ),
    (
        "SELECT k, session_window.end AS z, count(*) AS n FROM (SELECT DISTINCT k, ts FROM s) GROUP BY k, session_window(ts, '1 second')",
        "z",
    ),
];

/// How much later than the newest row the stream's time is, how far a row is behind it, its key and its value.
type Row = (i64, i64, i64, i64);

fn row() -> impl Strategy<Value = Row> {
    // Also whole seconds, so that sessions touch exactly.
    let later = prop_oneof![3 => 0i64..1_500_000, 2 => (0i64..4).prop_map(|seconds| seconds * 1_000_000)];
    let behind =
        prop_oneof![2 => Just(0), 1 => 0i64..2_900_000, 1 => (0i64..3).prop_map(|seconds| seconds * 1_000_000)];
    (later, behind, 0i64..3, 0i64..5)
}

fn holds((query, end): (&str, &str), batches: &[(Vec<Row>, Event)]) -> Result<(), TestCaseError> {
    let folder = tempfile::tempdir().expect("a folder");
    let checkpoint = folder.path().join("cp").display().to_string();
    let session = session();
    let fail = |e: Error| TestCaseError::fail(format!("{query}: {e}"));
    let ask = |sql: &str| run(&session, sql).map_err(fail);
    ask("SET clock = 'manual'")?;
    ask("CREATE STREAM s (ts TIMESTAMP, k BIGINT, v BIGINT, WATERMARK FOR ts AS ts - INTERVAL '3 seconds')")?;
    let begin = |partitions: u8| start(&session, query, "APPEND", &checkpoint, partitions);
    let mut partitions = 2;
    begin(partitions).map_err(fail)?;
    let (mut now, mut newest) = (-8_000_000i64, i64::MIN);
    for (rows, event) in batches {
        let values = rows.iter().map(|(later, behind, k, v)| {
            now += later;
            newest = newest.max(now - behind);
            format!("(to_timestamp_micros({}), {k}, {v})", now - behind)
        });
        let values: Vec<String> = values.collect();
        let insert = (!values.is_empty()).then(|| format!("INSERT INTO s VALUES {}", values.join(", ")));
        step(&session, &begin, &mut partitions, *event, insert.as_slice()).map_err(fail)?;
    }
    // Before the first row there is no watermark, and nothing to be final.
    let watermark = newest.saturating_sub(3_000_000).div_euclid(1_000).saturating_mul(1_000);
    let wanted = format!(
        "SELECT * FROM ({query}) x WHERE {end} <= arrow_cast(to_timestamp_micros({watermark}), 'Timestamp(Microsecond, None)')"
    );
    let (got, wanted) = (ask("SELECT * FROM r")?, ask(&wanted)?);
    prop_assert_eq!(got, wanted, "{}", query);
    verify(&session).map_err(fail)?;
    session.stop_all(true);
    Ok(())
}

#[test]
fn append_gives_the_sessions_that_are_final() {
    let batches = proptest::collection::vec((proptest::collection::vec(row(), 0..10), event()), 1..7);
    let mut runner = runner(32);
    let case = (0..QUERIES.len(), batches);
    runner.run(&case, |(query, batches)| holds(QUERIES[query], &batches)).unwrap_or_else(|e| panic!("{e}"));
}

/// Every query at least once, so that none hides behind chance; each gives something.
#[test]
fn every_query_of_sessions_in_append_equals_batch() {
    let rows = |seed: i64, n: i64| -> Vec<Row> {
        let at = |i: i64| (seed + i) * 7 + i * i;
        (0..n).map(|i| (at(i) % 5 * 500_000, at(i) % 3 * 1_000_000, at(i) % 3, at(i) % 5)).collect()
    };
    let batches = [
        (rows(1, 9), Event::Nothing),
        (rows(2, 1), Event::Restart(3)),
        (rows(3, 14), super::crash_at("commit.before")),
        (Vec::new(), Event::Restart(1)),
        (rows(5, 8), super::crash_at("state.after")),
        (vec![(60_000_000, 0, 0, 2)], Event::Nothing),
    ];
    for query in QUERIES {
        holds(*query, &batches).unwrap_or_else(|e| panic!("{e}"));
    }
}
