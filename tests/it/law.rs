//! The law: incremental = batch, whatever the split into batches, the number of partitions, restarts and crashes.
//!
//! Random rows (NULL, NaN, −0.0, far and negative times, unicode) go through random queries of every kind that the engine
//! runs; the result table of each must be what the same SELECT gives as a batch over the same rows.

mod joins;
mod nexmark;
mod queries;
mod random;
mod sessions;

use std::sync::{Arc, Mutex};

use arrow::array::RecordBatch;
use arrow::datatypes::DataType;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use levada::checkpoint::failpoint::POINTS;
use levada::error::{Error, Location, Result};
use levada::parser::parse_one;
use levada::session::{Answer, Session, SessionOptions};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// A session whose console goes nowhere.
pub fn session() -> Session {
    let options = SessionOptions {
        output: Arc::new(Mutex::new(Box::new(std::io::sink()))),
        notices: Arc::new(|_| {}),
        failures: Arc::new(|_| {}),
        console_format: "csv".into(),
        empty_batches: false,
        test: None,
    };
    Session::new(options).expect("a session")
}

fn run(session: &Session, sql: &str) -> Result<Vec<Vec<String>>> {
    let statement = parse_one(sql, Location { line: 1, column: 1 })?;
    match session.execute(&statement)? {
        Answer::Rows { rows, .. } => cells(&rows.collect::<Result<Vec<_>>>()?),
        Answer::Done { tag, .. } => Ok(vec![vec![tag]]),
        Answer::Text(text) => Ok(vec![vec![text]]),
    }
}

/// Rows as text, sorted; floats in a form that −0.0, NaN and rounding do not disturb.
fn cells(batches: &[RecordBatch]) -> Result<Vec<Vec<String>>> {
    let options = FormatOptions::new().with_null("NULL");
    let mut rows = Vec::new();
    for batch in batches {
        let columns: Vec<_> = batch
            .columns()
            .iter()
            .map(|c| ArrayFormatter::try_new(c, &options))
            .collect::<Result<_, _>>()
            .map_err(Error::from)?;
        for row in 0..batch.num_rows() {
            let cell = |(n, f): (usize, &ArrayFormatter<'_>)| {
                let text = f.value(row).to_string();
                match (batch.column(n).data_type(), text.parse::<f64>()) {
                    // Adding 0.0 makes −0.0 the other zero.
                    (DataType::Float64, Ok(value)) => format!("{:.9e}", value + 0.0),
                    _ => text,
                }
            };
            rows.push(columns.iter().enumerate().map(cell).collect());
        }
    }
    rows.sort();
    Ok(rows)
}

#[derive(Debug, Clone)]
struct Row {
    ts: Option<i64>,
    k: Option<u8>,
    v: Option<i64>,
    f: Option<u8>,
}

const FLOATS: [&str; 6] = ["0.0", "-0.0", "'NaN'::DOUBLE", "1.5", "-2.25", "1e300"];
const KEYS: [&str; 5] = ["a", "b", "ключ", "日本", ""];

impl Row {
    fn sql(&self) -> String {
        let or_null = |v: Option<String>| v.unwrap_or_else(|| "NULL".into());
        let ts = self.ts.map(|t| format!("to_timestamp_micros({t})"));
        let k = self.k.map(|k| format!("'{}'", KEYS[k as usize % KEYS.len()]));
        let f = self.f.map(|f| FLOATS[f as usize % FLOATS.len()].to_string());
        format!("({}, {}, {}, {})", or_null(ts), or_null(k), or_null(self.v.map(|v| v.to_string())), or_null(f))
    }
}

fn row() -> impl Strategy<Value = Row> {
    // Mostly near 1970 on both sides; now and then far away.
    let ts = prop_oneof![8 => -60_000_000i64..60_000_000, 1 => -60_000_000_000_000_000i64..200_000_000_000_000_000];
    let some = |p| proptest::option::weighted(p, 0u8..6);
    (proptest::option::weighted(0.9, ts), some(0.9), proptest::option::weighted(0.9, -1_000i64..1_000), some(0.8))
        .prop_map(|(ts, k, v, f)| Row { ts, k, v, f })
}

/// Queries with memory, as UPDATE and COMPLETE keep them. Floats are keys here and not arguments of min and max: over NaN
/// DataFusion's own answer depends on the order of rows.
const QUERIES: &[&str] = &[
    "SELECT k, count(*) AS n, sum(v) AS s, min(v) AS lo, max(v) AS hi FROM s GROUP BY k",
    "SELECT count(*) AS n, count(v) AS m, sum(v) AS s, avg(v) AS a FROM s",
    "SELECT f, count(*) AS n, max(v) AS hi FROM s GROUP BY f",
    "SELECT k, avg(v) AS a, stddev(v) AS d, count(DISTINCT v) AS u FROM s GROUP BY k",
    "SELECT k, count(DISTINCT v) AS u, sum(DISTINCT v) FILTER (WHERE v > 0) AS s, avg(DISTINCT v) AS a, count(DISTINCT f) AS fs, min(DISTINCT v) AS lo, count(*) AS n FROM s GROUP BY k",
    "SELECT sum(DISTINCT v) AS s, count(DISTINCT v % 3) AS m, count(DISTINCT k) FILTER (WHERE v > 0) AS k, bit_xor(DISTINCT v) AS x FROM s",
    "SELECT window.start AS w, count(DISTINCT k) AS u, sum(DISTINCT v) AS s FROM s GROUP BY window(ts, '10 seconds', '4 seconds') HAVING count(DISTINCT f) < 4",
    "SELECT k, sum(v) FILTER (WHERE v > 0) AS p, bool_or(v > 500) AS b FROM s GROUP BY k HAVING count(*) % 2 = 1",
    "SELECT window.start AS w, window.end AS e, k, count(*) AS n, sum(v) AS s FROM s GROUP BY window(ts, '10 seconds'), k",
    "SELECT window.start AS w, count(*) AS n, min(v) AS lo, max(k) AS top FROM s GROUP BY window(ts, '10 seconds', '4 seconds')",
    "SELECT window_start, window_end, k, count(*) AS n FROM HOP(s, ts, '3 seconds', '9 seconds') GROUP BY window_start, window_end, k",
    "SELECT k, session_window.start AS a, session_window.end AS z, count(*) AS n, sum(v) AS s, count(DISTINCT v) AS u FROM s GROUP BY session_window(ts, '3 seconds'), k",
    "SELECT session_window AS w, min(v) AS lo, avg(v) AS a FROM s GROUP BY session_window(ts, (v * 20) || ' milliseconds') HAVING count(*) > 1",
    "SELECT window_end, f, window_start, count(*) FILTER (WHERE v > 0) AS n FROM SESSION(s PARTITION BY f, ts, '5 seconds') GROUP BY window_start, window_end, f",
    "SELECT session_window.start AS a, median(v) AS m, array_agg(v ORDER BY v) AS vs, string_agg(k, ',' ORDER BY k) AS ks, percentile_cont(0.3) WITHIN GROUP (ORDER BY v) AS p, avg(DISTINCT v) AS d FROM s GROUP BY session_window(ts, '3 seconds')",
    "SELECT n, count(*) AS sessions, sum(t) AS t FROM (SELECT k, count(*) AS n, sum(v) AS t FROM s GROUP BY k, session_window(ts, '4 seconds')) x GROUP BY n",
    "SELECT window.start AS w, count(*) AS sessions, avg(n) AS n FROM (SELECT session_window AS w, k, count(*) AS n FROM s GROUP BY session_window(ts, '2 seconds'), k) x GROUP BY window(window_time(w), '10 seconds')",
    "SELECT window_start, window_end, k, count(*) AS n, sum(v) AS t FROM CUMULATE(s, ts, '4 seconds', '12 seconds') GROUP BY window_start, window_end, k",
    "SELECT window_end, count(DISTINCT k) AS u, median(v) AS m, array_agg(v ORDER BY v) AS vs FROM CUMULATE(s, ts, '5 seconds', '20 seconds', '-3 seconds') GROUP BY window_end HAVING count(*) > 1",
    "SELECT window.start AS w, sum(n) AS n, max(window_end) AS e FROM (SELECT window_start, window_end, count(*) AS n FROM CUMULATE(s, ts, '5 seconds', '10 seconds') GROUP BY window_start, window_end) x GROUP BY window(window_end, '1 quarter')",
    "SELECT window.start AS w, window.end AS e, k, count(*) AS n, sum(v) AS t FROM s GROUP BY window(ts, '1 day', offset => '01:00:05', time_zone => 'Europe/Berlin'), k",
    "SELECT window_start, window_end, count(DISTINCT v) AS u FROM TUMBLE(s, ts, '1 month', time_zone => 'America/Sao_Paulo') GROUP BY window_end, window_start",
    "SELECT window.start AS w, k, count(*) AS n FROM s GROUP BY ROLLUP (window(ts, '1 year'), k)",
    "SELECT '12 s' AS size, window_start, window_end, count(*) AS n FROM CUMULATE(s, ts, '4 seconds', '12 seconds') GROUP BY window_start, window_end UNION ALL SELECT '9 s', window.start, window.end, count(*) FROM s GROUP BY window(ts, '9 seconds')",
    "SELECT window_start, k, count(*) AS n, sum(v) AS t FROM SESSION(s PARTITION BY k, ts, '3 seconds') x WHERE v > 0 GROUP BY k, window_start",
    "SELECT CASE WHEN v < 0 THEN 'neg' ELSE k END AS c, median(v) AS m, approx_distinct(k) AS u FROM s GROUP BY CASE WHEN v < 0 THEN 'neg' ELSE k END",
    "SELECT x.k, t.name, sum(x.v) AS s FROM (SELECT k, v FROM s WHERE v IS NOT NULL UNION ALL SELECT k, v + 1 FROM s) x LEFT JOIN t ON x.k = t.k GROUP BY x.k, t.name",
    "SELECT k, v % 3 AS m, f, grouping(k, v % 3) AS g, count(*) AS n, sum(v) AS s, count(DISTINCT v) AS u FROM s GROUP BY ROLLUP (k, v % 3), f",
    "SELECT window.start AS w, k, count(*) AS n, grouping(k) AS g FROM s GROUP BY GROUPING SETS ((window(ts, '10 seconds', '4 seconds'), k), (window(ts, '10 seconds', '4 seconds')))",
    "SELECT window_start, k, count(*) AS n FROM TUMBLE(s, ts, '9 seconds') GROUP BY CUBE (window_start, k)",
    "SELECT coalesce(k, 'none') AS c, sum(coalesce(v, 0)) AS s, count(*) FILTER (WHERE coalesce(v, 1) > 0) AS n FROM s GROUP BY coalesce(k, 'none')",
    "SELECT k, first_value(v ORDER BY v) AS lo, last_value(k ORDER BY v, k) AS top FROM s GROUP BY k",
    "SELECT corr(v, v % 7) AS c, first_value(v ORDER BY v) AS lo FROM s",
    "SELECT k, array_sort(array_agg(v)) AS vs, array_agg(k ORDER BY v DESC, k) AS ks, median(v) AS m, count(*) AS n, percentile_cont(0.25) WITHIN GROUP (ORDER BY v) AS q, percentile_cont(0.75) WITHIN GROUP (ORDER BY v) AS p, median(f) AS f FROM s GROUP BY k",
    "SELECT array_agg(f ORDER BY f) FILTER (WHERE v > 0) AS fs, median(DISTINCT v) AS m, array_sort(array_agg(DISTINCT k)) AS ks, string_agg(k, '' ORDER BY k DESC) AS t, octet_length(string_agg(k, ', ')) AS u, count(DISTINCT v) AS n FROM s",
    "SELECT window.start AS w, median(v) AS m, percentile_cont(DISTINCT v, 0.4) AS p, count(*) AS n FROM s GROUP BY window(ts, '10 seconds', '4 seconds')",
    "SELECT window.start AS w, array_sort(array_agg(v)) AS vs, array_agg(named_struct('k', k, 'v', v) ORDER BY v, k) AS rows, median(v) AS m FROM s GROUP BY window(ts, '9 seconds', '3 seconds') HAVING median(v) < 20",
    "SELECT n, count(*) AS keys, count(m) AS some, sum(m) AS t, avg(n) AS a FROM (SELECT k, count(*) AS n, sum(v) AS m FROM s GROUP BY k) x GROUP BY n",
    "SELECT count(*) AS c, sum(n) AS t, avg(n) AS a, sum(v) FILTER (WHERE n > 1) AS f FROM (SELECT k, v, count(*) AS n FROM s GROUP BY k, v) x",
    "SELECT keys, count(*) AS times FROM (SELECT n, count(*) AS keys FROM (SELECT k, v % 3 AS r, count(*) AS n FROM s GROUP BY k, v % 3) x GROUP BY n) y GROUP BY keys",
    "SELECT r, count(*) AS keys FROM (SELECT v % 3 AS r, k FROM s GROUP BY v % 3, k HAVING sum(v) > 10) x GROUP BY r HAVING count(*) > 1",
    "SELECT n, min(m) AS lo, max(m) AS hi, max(k) AS top, count(*) AS keys, array_agg(m ORDER BY m, k) AS ms, median(m) AS md, stddev(n) AS d, count(DISTINCT m) AS u, sum(DISTINCT n) AS t, string_agg(k, ',' ORDER BY k) AS ks FROM (SELECT k, count(*) AS n, sum(v) AS m FROM s GROUP BY k) x GROUP BY n",
    "SELECT max(n) AS hi, min(m) FILTER (WHERE n > 1) AS lo, avg(a) AS a, sum(a) FILTER (WHERE n % 2 = 0) AS t, first_value(k ORDER BY n, k) AS few, last_value(k ORDER BY n DESC, k) AS many, percentile_cont(0.25) WITHIN GROUP (ORDER BY m) AS p, bool_or(n > 3) AS b, array_sort(array_agg(DISTINCT m)) AS ms FROM (SELECT k, count(*) AS n, max(v) AS m, avg(v) AS a FROM s GROUP BY k) x",
    "SELECT r, max(f) FILTER (WHERE f < 9) AS hi, count(DISTINCT f) AS fs, array_agg(f ORDER BY f, n) AS all_f FROM (SELECT f, v % 3 AS r, count(*) AS n FROM s GROUP BY f, v % 3 HAVING count(*) % 2 = 1) x GROUP BY r HAVING max(n) < 5",
    "SELECT window.start AS w, max(n) AS hi, array_agg(n ORDER BY n) AS ns, sum(n) AS t FROM (SELECT ts, k, count(*) AS n FROM s GROUP BY ts, k) x GROUP BY window(ts, '10 seconds', '4 seconds')",
    "SELECT hi, min(keys) AS lo, count(*) AS times FROM (SELECT max(m) AS hi, count(*) AS keys FROM (SELECT k, v % 5 AS r, min(v) AS m FROM s GROUP BY k, v % 5) x GROUP BY r) y GROUP BY hi",
    "SELECT DISTINCT n, lo FROM (SELECT k, count(*) AS n, min(v) AS lo FROM s GROUP BY k) x",
    "SELECT n % 2 AS odd, count(*) AS c FROM (SELECT DISTINCT n FROM (SELECT k, count(*) AS n FROM s GROUP BY k) x) y GROUP BY n % 2",
    "SELECT DISTINCT f FROM (SELECT f, k, count(*) AS n FROM s GROUP BY f, k) x WHERE n < 3",
    "SELECT DISTINCT k, f, ts FROM s",
    "SELECT k, count(*) AS n, count(f) AS m FROM (SELECT DISTINCT k, f FROM s) x GROUP BY k",
    "SELECT k FROM s UNION SELECT name FROM t JOIN s ON s.k = t.k",
    "SELECT k, v, ts FROM s ORDER BY v DESC NULLS LAST, k, ts LIMIT 4",
    "SELECT k, f, v FROM s ORDER BY f NULLS FIRST, v DESC, k DESC LIMIT 3 OFFSET 2",
    "SELECT v FROM s ORDER BY ts DESC, v, k LIMIT 1",
    "SELECT k, count(*) AS n, max(v) AS hi FROM s GROUP BY k ORDER BY n DESC, hi DESC, k LIMIT 2",
    "SELECT k, v, r FROM (SELECT k, v, ts, row_number() OVER (PARTITION BY k ORDER BY v DESC, ts) AS r FROM s) x WHERE r <= 2",
    "SELECT k, v, r, d FROM (SELECT k, v, rank() OVER (PARTITION BY k ORDER BY v DESC NULLS LAST) AS r, dense_rank() OVER (PARTITION BY k ORDER BY v DESC NULLS LAST) AS d FROM s) x WHERE r < 3",
    "SELECT k, v FROM (SELECT k, v, dense_rank() OVER (PARTITION BY f ORDER BY v % 4) AS d FROM s) x WHERE d BETWEEN 2 AND 3",
    "SELECT k, v, ts FROM s QUALIFY row_number() OVER (PARTITION BY k ORDER BY ts DESC NULLS LAST, v) = 1",
    "SELECT n, k, r FROM (SELECT k, n, rank() OVER (PARTITION BY n % 2 ORDER BY n DESC) AS r FROM (SELECT k, count(*) AS n FROM s GROUP BY k) x) y WHERE r = 1",
    "SELECT count(*) AS c, sum(v) AS t, max(k) AS top FROM (SELECT k, v FROM s ORDER BY v DESC NULLS LAST, k LIMIT 5) x",
    "SELECT k, n FROM (SELECT k, count(*) AS n FROM (SELECT k, v, row_number() OVER (PARTITION BY v % 7 ORDER BY v, k, ts) AS r FROM s) x WHERE r <= 2 GROUP BY k) y ORDER BY n DESC, k LIMIT 2",
    "SELECT window_start, k, n FROM (SELECT window_start, k, n, row_number() OVER (PARTITION BY window_start ORDER BY n DESC, k) AS r FROM (SELECT window_start, k, count(*) AS n FROM TUMBLE(s, ts, '10 seconds') GROUP BY window_start, k) x) y WHERE r <= 2",
    "WITH big AS (SELECT k, v FROM s WHERE v > (SELECT min(limit_v) FROM t)) SELECT k, count(*) AS n, array_agg(v ORDER BY v) AS vs FROM big WHERE k IN (SELECT k FROM t) GROUP BY k",
];

/// What happens between two batches.
#[derive(Debug, Clone, Copy)]
enum Event {
    Nothing,
    Restart(u8),
    /// At the point of this number.
    Crash(usize),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![2 => Just(Event::Nothing), 1 => (1u8..5).prop_map(Event::Restart), 2 => (0..POINTS.len()).prop_map(Event::Crash)]
}

fn start(session: &Session, query: &str, mode: &str, checkpoint: &str, partitions: u8) -> Result<()> {
    run(session, &format!("SET partitions = {partitions}"))?;
    let start =
        format!("START QUERY q INTO TABLE r AS {query} OUTPUT MODE {mode} TRIGGER MANUAL CHECKPOINT '{checkpoint}'");
    run(session, &start).map(drop)
}

/// Runs all that is due; where an armed point kills the query, starts it again and goes on.
fn settle(session: &Session, start: &dyn Fn() -> Result<()>) -> Result<()> {
    loop {
        match run(session, "STEP QUERY q 1000 BATCHES") {
            Ok(_) => return Ok(()),
            Err(error) if error.to_string().contains("failpoint") => start()?,
            Err(error) => return Err(error),
        }
    }
}

/// Holds the query against the rows that it has read; there may be none.
fn verify(session: &Session) -> Result<()> {
    match run(session, "VERIFY QUERY q") {
        Err(error) if error.to_string().contains("has committed no batch") => Ok(()),
        other => other.map(drop),
    }
}

/// Does what is to happen, feeds, and runs all that is due.
fn step(
    session: &Session,
    start: &dyn Fn(u8) -> Result<()>,
    partitions: &mut u8,
    event: Event,
    inserts: &[String],
) -> Result<()> {
    match event {
        Event::Nothing => {}
        Event::Restart(n) => {
            *partitions = n;
            run(session, "STOP QUERY q")?;
            start(n)?;
        }
        Event::Crash(point) => drop(run(session, &format!("CRASH QUERY q AT '{}'", POINTS[point]))?),
    }
    for insert in inserts {
        run(session, insert)?;
    }
    settle(session, &|| start(*partitions))
}

fn holds(query: &str, mode: &str, batches: &[(Vec<Row>, Event)]) -> Result<(), TestCaseError> {
    let folder = tempfile::tempdir().expect("a folder");
    let checkpoint = folder.path().join("cp").display().to_string();
    let session = session();
    let fail = |e: Error| TestCaseError::fail(format!("{query} {mode}: {e}"));
    let ask = |sql: &str| run(&session, sql).map_err(fail);
    ask("SET clock = 'manual'")?;
    ask("CREATE STREAM s (ts TIMESTAMP, k STRING, v BIGINT, f DOUBLE)")?;
    ask(
        "CREATE TABLE t AS SELECT * FROM (VALUES ('a', 'first', -500), ('日本', 'Japan', 100), ('zz', 'none', 0)) AS x (k, name, limit_v)",
    )?;
    let begin = |partitions: u8| start(&session, query, mode, &checkpoint, partitions);
    let mut partitions = 2;
    begin(partitions).map_err(fail)?;
    let mut begun = false;
    for (rows, event) in batches {
        let values: Vec<String> = rows.iter().map(Row::sql).collect();
        let insert = (!rows.is_empty()).then(|| format!("INSERT INTO s VALUES {}", values.join(", ")));
        step(&session, &begin, &mut partitions, *event, insert.as_slice()).map_err(fail)?;
        // Before the first row no batch has run, and a result table without a batch is empty.
        begun |= !rows.is_empty();
        if !begun {
            continue;
        }
        let (got, wanted) = (ask("SELECT * FROM r")?, ask(query)?);
        prop_assert_eq!(&got, &wanted, "{} {}", query, mode);
    }
    // It holds what it has read too, and what it remembers.
    verify(&session).map_err(fail)?;
    session.stop_all(true);
    Ok(())
}

fn runner(cases: u32) -> TestRunner {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha))
}

#[test]
fn update_and_complete_equal_batch() {
    let batches = proptest::collection::vec((proptest::collection::vec(row(), 0..12), event()), 1..5);
    let case = (0..QUERIES.len(), prop_oneof![2 => Just("UPDATE"), 1 => Just("COMPLETE")], batches);
    let mut runner = runner(48);
    runner.run(&case, |(query, mode, batches)| holds(QUERIES[query], mode, &batches)).unwrap_or_else(|e| panic!("{e}"));
}

fn crash_at(point: &str) -> Event {
    Event::Crash(POINTS.iter().position(|p| *p == point).expect("a point"))
}

/// Every query at least once, so that none hides behind chance.
#[test]
fn every_kind_of_query_equals_batch() {
    let rows = |from: i64, n: i64| -> Vec<Row> {
        (from..from + n)
            .map(|i| Row {
                ts: (i % 7 != 3).then_some(i * 1_700_000 - 9_000_000),
                k: (i % 5 != 4).then_some((i % 4) as u8),
                v: (i % 6 != 5).then_some(i * 37 % 200 - 90),
                f: (i % 9 != 8).then_some((i % 6) as u8),
            })
            .collect()
    };
    let batches = [
        (rows(0, 10), Event::Nothing),
        (rows(10, 1), crash_at("state.after")),
        (rows(11, 20), Event::Restart(3)),
        (Vec::new(), crash_at("offsets.after")),
        (rows(31, 9), Event::Nothing),
    ];
    for query in QUERIES {
        for mode in ["UPDATE", "COMPLETE"] {
            holds(query, mode, &batches).unwrap_or_else(|e| panic!("{e}"));
        }
    }
}

/// What APPEND gives out when a window closes; with the time at which a row of it is final, and how many seconds pass in one: of
/// windows of the calendar more than one, from a week before clocks change.
const FINAL: &[(&str, &str, i64)] = &[
    (
        "SELECT window.start AS w, k, count(*) AS n, count(DISTINCT v) AS m, sum(DISTINCT v) AS t, array_agg(v ORDER BY v) AS vs, median(v) AS md FROM s GROUP BY window(ts, '6 seconds', '2 seconds'), k",
        "w + INTERVAL '6 seconds'",
        1,
    ),
    (
        "SELECT w, k, v, r FROM (SELECT window_start AS w, k, v, rank() OVER (PARTITION BY window_start, k ORDER BY v) AS r FROM TUMBLE(s, ts, '6 seconds')) x WHERE r <= 2",
        "w + INTERVAL '6 seconds'",
        1,
    ),
    (
        "SELECT w, k, n FROM (SELECT w, k, n, row_number() OVER (PARTITION BY w ORDER BY n DESC, k) AS r FROM (SELECT window_start AS w, k, count(*) AS n FROM HOP(s, ts, '2 seconds', '6 seconds') GROUP BY window_start, k) x) y WHERE r <= 2",
        "w + INTERVAL '6 seconds'",
        1,
    ),
    (
        "SELECT window_start AS w, window_end AS z, k, count(*) AS n, median(v) AS md FROM CUMULATE(s, ts, '2 seconds', '6 seconds', '-1 second') GROUP BY window_start, window_end, k",
        "z",
        1,
    ),
    (
        "SELECT window_start AS w, count(*) AS n, sum(v) AS t FROM CUMULATE(s, ts, '2 seconds', '6 seconds') GROUP BY window_start",
        "w + INTERVAL '6 seconds'",
        1,
    ),
    (
        "SELECT z, k, n FROM (SELECT z, k, n, row_number() OVER (PARTITION BY w, z ORDER BY n DESC, k) AS r FROM (SELECT window_start AS w, window_end AS z, k, count(*) AS n FROM CUMULATE(s, ts, '3 seconds', '9 seconds') GROUP BY window_start, window_end, k) x) y WHERE r <= 2",
        "z",
        1,
    ),
    (
        "SELECT window.start AS w, window.end AS z, max(n) AS n, count(*) AS c FROM (SELECT window_end AS e, k, count(*) AS n FROM CUMULATE(s, ts, '1 second', '3 seconds') GROUP BY window_end, k) x GROUP BY window(e, '4 seconds')",
        "z",
        1,
    ),
    (
        "SELECT window.start AS w, window.end AS z, k, count(*) AS n, count(DISTINCT v) AS u, array_agg(v ORDER BY ts) AS vs FROM s GROUP BY window(ts, '1 day', time_zone => 'Europe/Berlin'), k",
        "z",
        20_000,
    ),
    (
        "SELECT window_start AS w, max(window_end) AS z, sum(v) AS t FROM TUMBLE(s, ts, '2 days', '6 hours', time_zone => 'America/Sao_Paulo') GROUP BY window_start",
        "z",
        20_000,
    ),
    (
        "SELECT DISTINCT window_end AS z, k FROM TUMBLE(s, ts, '1 week', time_zone => 'Europe/Berlin')",
        "arrow_cast(0, 'Timestamp(Microsecond, None)')",
        40_000,
    ),
    (
        "SELECT window.start AS w, window.end AS z, count(*) AS days, sum(n) AS n FROM (SELECT window AS d, count(*) AS n FROM s GROUP BY window(ts, '1 day', time_zone => 'Asia/Beirut')) x GROUP BY window(d, '1 month', time_zone => 'Asia/Beirut')",
        "z",
        100_000,
    ),
];

/// APPEND: the rows of the batch result that are final at the watermark, each once.
#[test]
fn append_gives_what_is_final() {
    FINAL.iter().for_each(|(query, end, pace)| gives_what_is_final(query, end, *pace));
}

fn gives_what_is_final(query: &str, end: &str, pace: i64) {
    let gaps = proptest::collection::vec(proptest::collection::vec((0i64..4_000_000, 0u8..3), 1..10), 1..6);
    let mut runner = runner(16);
    let result = runner.run(&gaps, |batches| {
        let folder = tempfile::tempdir().expect("a folder");
        let session = session();
        let ask = |sql: &str| run(&session, sql).map_err(|e| TestCaseError::fail(e.to_string()));
        let start = format!("START QUERY q INTO TABLE r AS {query} OUTPUT MODE APPEND TRIGGER MANUAL CHECKPOINT '{}'", folder.path().join("cp").display());
        ask("SET clock = 'manual'")?;
        ask("CREATE STREAM s (ts TIMESTAMP, k BIGINT, v BIGINT, WATERMARK FOR ts AS ts - INTERVAL '3 seconds')")?;
        ask(&start)?;
        let mut now = if pace == 1 { 0i64 } else { 1_711_324_800_000_000 };
        for batch in &batches {
            let mut values = Vec::new();
            for (gap, k) in batch {
                now += gap * pace;
                values.push(format!("(to_timestamp_micros({now}), {k}, {})", now % 3));
            }
            ask(&format!("INSERT INTO s VALUES {}", values.join(", ")))?;
            ask("STEP QUERY q 100 BATCHES")?;
            ask("STOP QUERY q")?;
            ask(&start)?;
        }
        let watermark = (now - 3_000_000).div_euclid(1_000) * 1_000;
        let wanted = ask(&format!("SELECT * FROM ({query}) x WHERE {end} <= arrow_cast(to_timestamp_micros({watermark}), 'Timestamp(Microsecond, None)')"))?;
        prop_assert_eq!(ask("SELECT * FROM r")?, wanted, "{}", query);
        verify(&session).map_err(|e| TestCaseError::fail(e.to_string()))?;
        session.stop_all(true);
        Ok(())
    });
    result.unwrap_or_else(|e| panic!("{e}"));
}
