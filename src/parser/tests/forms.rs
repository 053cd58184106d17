//! Every form of every statement of the language, and its canonical text.

use super::*;
use crate::options::OptionValue;

/// A text, and its canonical text (`=`: the same).
const FORMS: &[(&str, &str)] = &[
    // Streams
    ("create stream s", "CREATE STREAM s"),
    (
        "CREATE OR REPLACE STREAM S (Id BIGINT NOT NULL, ts TIMESTAMP, \"Odd Name\" VARCHAR, path TEXT METADATA FROM 'path', \
         day DATE AS (CAST(ts AS DATE)), twice AS (id * 2), WATERMARK FOR ts AS ts - INTERVAL 10 SECONDS IDLE AFTER \
         '1 minute' MAX FUTURE SKEW INTERVAL '1' HOUR) WITH (connector = 'file', path = 'it''s', \
         maxFilesPerTrigger = 5, header = TRUE, 'null_value' = '', x = -1.5)",
        "CREATE OR REPLACE STREAM s (id BIGINT NOT NULL, ts TIMESTAMP, \"Odd Name\" VARCHAR, path TEXT METADATA FROM 'path', \
         day DATE AS (CAST(ts AS DATE)), twice AS (id * 2), WATERMARK FOR ts AS ts - INTERVAL '10 seconds' IDLE AFTER \
         INTERVAL '1 minute' MAX FUTURE SKEW INTERVAL '1 hour') WITH (connector = 'file', path = 'it''s', \
         max_files_per_trigger = 5, header = TRUE, null_value = '', x = -1.5)",
    ),
    ("CREATE STREAM IF NOT EXISTS s WITH (connector = 'rate')", "="),
    ("CREATE STREAM s (WATERMARK FOR ts AS ts - INTERVAL '1 month 2 days') WITH (format = 'parquet')", "="),
    (
        "CREATE STREAM s (ts TIMESTAMP, WATERMARK FOR ts AS ts)",
        "CREATE STREAM s (ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '0 seconds')",
    ),
    (
        "CREATE STREAM s (watermark TIMESTAMP, output INT, trigger INT, mode INT, checkpoint INT, window INT)",
        "CREATE STREAM s (\"watermark\" TIMESTAMP, output INT, trigger INT, mode INT, checkpoint INT, window INT)",
    ),
    (
        "CREATE STREAM s (a STRUCT<x INT, y ARRAY<TEXT>>, b DECIMAL(10,2), c INT[], \"offset\" BIGINT METADATA FROM 'offset')",
        "CREATE STREAM s (a STRUCT<x INT, y ARRAY<TEXT>>, b DECIMAL(10,2), c INT[], offset BIGINT METADATA FROM 'offset')",
    ),
    (
        "CREATE STREAM s (t TIMESTAMP(3) WITH TIME ZONE, u TIMESTAMP(9), k BIGINT METADATA FROM 'key', c AS (k % 3 + length('a;b')))",
        "=",
    ),
    (
        "CREATE STREAM s (a INT) WITH (kafka.bootstrap.servers = 'x:1', \"Group\" = 'g')",
        "CREATE STREAM s (a INT) WITH (kafka.bootstrap.servers = 'x:1', group = 'g')",
    ),
    ("close stream S", "CLOSE STREAM s"),
    // Sinks, views, drop
    ("CREATE SINK out WITH (connector = 'file', path = '/tmp/x', format = 'json')", "="),
    (
        "create or replace sink out with (connector = 'blackhole')",
        "CREATE OR REPLACE SINK out WITH (connector = 'blackhole')",
    ),
    ("CREATE SINK IF NOT EXISTS out WITH (connector = 'stdout')", "="),
    ("CREATE VIEW v AS SELECT * FROM s", "="),
    (
        "create or replace view v (a, \"B\") as select x, y from s where x>1",
        "CREATE OR REPLACE VIEW v (a, \"B\") AS SELECT x, y FROM s WHERE x > 1",
    ),
    (
        "CREATE VIEW IF NOT EXISTS v AS SELECT ts FROM s WITH WATERMARK ts DELAY '5 s'",
        "CREATE VIEW IF NOT EXISTS v AS SELECT ts FROM s WITH WATERMARK ts DELAY '5 s'",
    ),
    ("DROP STREAM s", "="),
    ("drop sink if exists S", "DROP SINK IF EXISTS s"),
    ("DROP TABLE t", "="),
    ("DROP VIEW v", "="),
    ("DROP QUERY IF EXISTS \"Q\"", "="),
    // Queries
    ("START QUERY q AS SELECT 1", "="),
    (
        "start query if not exists q into table T as select a, count(*) from s group by a \
         with (partitions = 2) checkpoint '/tmp/c' stop after 3 batches trigger every '1 second' output mode update",
        "START QUERY IF NOT EXISTS q INTO TABLE t AS SELECT a, count(*) FROM s GROUP BY a OUTPUT MODE UPDATE \
         TRIGGER EVERY INTERVAL '1 second' STOP AFTER 3 BATCHES CHECKPOINT '/tmp/c' WITH (partitions = 2)",
    ),
    ("START QUERY q INTO CONSOLE AS SELECT * FROM s OUTPUT MODE APPEND TRIGGER AVAILABLE NOW", "="),
    ("START QUERY q INTO BLACKHOLE AS SELECT * FROM s OUTPUT MODE COMPLETE TRIGGER ONCE", "="),
    ("START QUERY q INTO out AS SELECT * FROM s TRIGGER CONTINUOUS INTERVAL '1 second'", "="),
    ("START QUERY q INTO \"console\" AS SELECT * FROM s TRIGGER MANUAL", "="),
    (
        "START QUERY q AS (SELECT * FROM s) STOP AFTER 1 BATCH",
        "START QUERY q AS (SELECT * FROM s) STOP AFTER 1 BATCHES",
    ),
    ("STOP QUERY q", "="),
    ("STOP QUERY q AFTER 3 BATCHES TIMEOUT INTERVAL '1 minute'", "="),
    ("stop query q when idle timeout '90 seconds'", "STOP QUERY q WHEN IDLE TIMEOUT INTERVAL '90 seconds'"),
    ("STOP QUERY q DRAIN", "="),
    ("STOP QUERY q NOW", "="),
    ("STOP ALL", "="),
    ("STOP ALL NOW", "="),
    ("STOP ALL WHEN IDLE TIMEOUT INTERVAL '1 hour'", "="),
    ("PAUSE QUERY q", "="),
    ("RESUME QUERY q", "="),
    ("AWAIT QUERY q", "="),
    ("AWAIT QUERY q 3 BATCHES", "="),
    ("AWAIT QUERY q 1 BATCH", "AWAIT QUERY q 1 BATCHES"),
    ("AWAIT QUERY q BATCH 0", "="),
    ("AWAIT QUERY q IDLE TIMEOUT INTERVAL '30 seconds'", "="),
    ("AWAIT QUERY q TERMINATION", "="),
    ("ALTER QUERY q SET TRIGGER EVERY INTERVAL '1 day'", "="),
    ("ALTER QUERY q SET TRIGGER AVAILABLE NOW", "="),
    // Watch
    ("WATCH q", "="),
    ("WATCH q LIMIT 5", "="),
    ("WATCH q FOR 2 BATCHES", "="),
    ("WATCH SELECT * FROM s", "="),
    ("WATCH SELECT * FROM s LIMIT 10", "="),
    ("WATCH SELECT * FROM s FOR 2 BATCHES", "="),
    ("WATCH SELECT a, count(*) FROM s GROUP BY a ORDER BY 2 LIMIT 10 FOR 2 BATCHES", "="),
    // Questions
    ("SHOW STREAMS", "="),
    ("show tables", "SHOW TABLES"),
    ("SHOW VIEWS", "="),
    ("SHOW SINKS", "="),
    ("SHOW QUERIES", "="),
    ("SHOW FUNCTIONS", "="),
    ("SHOW ALL", "="),
    ("SHOW FAILPOINTS", "="),
    ("SHOW levada.clock", "SHOW clock"),
    ("SHOW datafusion.execution.batch_size", "="),
    ("SHOW \"streams\"", "="),
    ("SHOW TIME ZONE", "SHOW timezone"),
    ("DESCRIBE s", "="),
    ("desc s", "DESCRIBE s"),
    ("SHOW CREATE STREAM s", "="),
    ("SHOW CREATE SINK s", "="),
    ("SHOW CREATE QUERY q", "="),
    ("SHOW CREATE TABLE t", "="),
    ("SHOW CREATE VIEW v", "="),
    ("SHOW PROGRESS", "="),
    ("SHOW PROGRESS FOR q LAST 5 FORMAT JSON", "="),
    ("SHOW PROGRESS LAST 5", "="),
    ("SHOW PROGRESS FORMAT JSON", "="),
    ("SHOW PROGRESS LIVE", "="),
    ("SHOW STATUS", "="),
    ("SHOW STATUS FOR q", "="),
    ("SHOW STATE FOR q", "="),
    ("EXPLAIN SELECT 1", "="),
    ("EXPLAIN ANALYZE SELECT 1", "="),
    ("EXPLAIN VERBOSE SELECT 1", "="),
    ("EXPLAIN QUERY q", "="),
    ("EXPLAIN WHY q", "="),
    ("EXPLAIN STATE SELECT a, count(*) FROM s GROUP BY a", "="),
    ("EXPLAIN STATE q", "="),
    ("VERIFY QUERY q", "="),
    // Settings
    ("SET clock = 'manual'", "="),
    ("set levada.Clock to MANUAL", "SET clock = 'MANUAL'"),
    ("SET a.b = 5", "="),
    ("SET a = -1.5", "="),
    ("SET a = TRUE", "="),
    ("SET a = DEFAULT", "="),
    ("SET a = 'default'", "="),
    ("SET timeout = INTERVAL 10 SECONDS", "SET timeout = '10 seconds'"),
    ("SET TIME ZONE = 'UTC'", "SET timezone = 'UTC'"),
    ("SET levada.levada.x = 1", "="),
    ("RESET levada.clock", "RESET clock"),
    // Time
    ("ADVANCE CLOCK BY INTERVAL '10 seconds'", "="),
    ("ADVANCE CLOCK TO TIMESTAMP '2024-01-01 00:00:00'", "ADVANCE CLOCK TO TIMESTAMP '2024-01-01 00:00:00.000'"),
    ("ADVANCE CLOCK TO '1969-12-31T23:59:59.250Z'", "ADVANCE CLOCK TO TIMESTAMP '1969-12-31 23:59:59.250'"),
    ("STEP QUERY q", "STEP QUERY q 1 BATCHES"),
    ("STEP QUERY q 3 BATCHES", "="),
    ("STEP QUERY q EMPTY", "="),
    ("CRASH QUERY q AT 'sink.before'", "CRASH QUERY q AT 'sink.before' HIT 1 AS kill"),
    ("CRASH QUERY q AT 'state.write' HIT 2 AS torn 17", "="),
    ("CRASH QUERY q AT 'log.write' AS ENOSPC", "CRASH QUERY q AT 'log.write' HIT 1 AS enospc"),
    ("CRASH QUERY q AT 'log.write' HIT 1 AS error", "="),
    ("CRASH QUERY q AT 'log.write' HIT 1 AS lost_fsync", "="),
    // DataFusion's
    ("INSERT INTO s VALUES (1, 'a;b')", "="),
    (r#"INSERT INTO "s""""" VALUES ('''''', 'it''s', '\''')"#, "="),
    (r#"CREATE STREAM s (a AS (b || '''' || '''''' || "\""" || "c"""""))"#, "="),
    ("INSERT INTO s (a, b) SELECT x, y FROM t", "="),
    ("CREATE TABLE t (a INT, b TEXT)", "="),
    ("CREATE TABLE t AS SELECT 1 AS a", "="),
    ("CREATE SCHEMA x", "="),
    ("START TRANSACTION", "="),
    ("ALTER TABLE t ADD COLUMN a INT", "="),
];

#[test]
fn every_form() {
    for (text, wanted) in FORMS {
        let wanted = if *wanted == "=" { text } else { wanted };
        assert_eq!(canonical(text), *wanted, "{text}");
        // Case and white space mean nothing outside of quotes.
        let spread = text.replace(' ', " /* ; */\r\n\t");
        if !text.contains('\'') && !text.contains('"') {
            assert_eq!(canonical(&spread), *wanted, "{spread}");
        }
    }
}

#[test]
fn what_datafusion_reads_keeps_its_text() {
    for text in [
        "create external table t stored as parquet location 'x;y'",
        "CREATE UNBOUNDED EXTERNAL TABLE t (a INT) STORED AS CSV LOCATION 'x'",
        "CREATE OR REPLACE EXTERNAL TABLE t STORED AS CSV LOCATION 'x'",
        "COPY t TO 'x.parquet'",
        "COPY (SELECT 1) TO 'x.csv' STORED AS CSV",
    ] {
        let parsed = parse_one(&format!("{text} ;"), START).unwrap();
        assert_eq!(parsed.statement, Statement::DataFusion);
        assert_eq!(parsed.text, text);
    }
}

#[test]
fn names_fold_unless_quoted() {
    let Statement::CreateStream(stream) = parsed("CREATE STREAM BiDs (Price INT, \"Price\" INT)") else { panic!() };
    assert_eq!(stream.name.value, "bids");
    let names: Vec<_> = stream.columns.iter().flatten().map(|c| c.name.value.as_str()).collect();
    assert_eq!(names, ["price", "Price"]);
}

#[test]
fn options_keep_their_kinds_and_places() {
    let Statement::CreateSink(sink) =
        parsed("CREATE SINK s WITH (path = $$it's$$, rowsPerSecond = 10, \"header\" = false,\n  Sep = E'\\t')")
    else {
        panic!()
    };
    let values: Vec<_> = sink.options.entries.iter().map(|e| (e.name.as_str(), e.value.clone())).collect();
    assert_eq!(
        values,
        [
            ("path", OptionValue::Text("it's".into())),
            ("rows_per_second", OptionValue::Number("10".into())),
            ("header", OptionValue::Bool(false)),
            ("sep", OptionValue::Text("\t".into())),
        ]
    );
    let last = sink.options.entries[3].span;
    assert_eq!((last.start.line, last.start.column, last.end.column), (2, 3, 14));
}

#[test]
fn limit_without_order_ends_a_watch_and_with_order_is_the_querys() {
    let Statement::Watch { what: WatchWhat::Select(query), until } = parsed("WATCH SELECT a FROM s LIMIT 5") else {
        panic!()
    };
    assert_eq!((query.ast.to_string().as_str(), until), ("SELECT a FROM s", Some(WatchUntil::Rows(5))));
    let Statement::Watch { what: WatchWhat::Select(query), until } = parsed("WATCH SELECT a FROM s ORDER BY a LIMIT 5")
    else {
        panic!()
    };
    assert_eq!((query.ast.to_string().as_str(), until), ("SELECT a FROM s ORDER BY a LIMIT 5", None));
    let Statement::Watch { what: WatchWhat::Select(query), until } =
        parsed("WATCH SELECT row_number() OVER (ORDER BY a) FROM s LIMIT 5 ")
    else {
        panic!()
    };
    assert_eq!((query.ast.limit_clause, until), (None, Some(WatchUntil::Rows(5))));
}

#[test]
fn crash_and_step_have_defaults() {
    assert_eq!(
        parsed("CRASH QUERY q AT 'x.y'").to_string(),
        parsed("CRASH QUERY q AT 'x.y' HIT 1 AS KILL").to_string()
    );
    assert!(matches!(parsed("STEP QUERY q"), Statement::StepQuery { step: Step::Batches(1), .. }));
}

/// The examples of the SQL reference.
#[test]
fn every_example_of_the_reference() {
    let reference = include_str!("../../../docs/sql.md");
    let examples: Vec<&str> =
        reference.split("```sql\n").skip(1).filter_map(|rest| rest.split_once("```")).map(|(sql, _)| sql).collect();
    assert!(examples.len() > 20);
    for example in examples {
        for statement in parse_statements(example) {
            let statement = statement.unwrap_or_else(|error| panic!("{example}\n{error:?}"));
            if statement.statement != Statement::DataFusion {
                canonical(&statement.text);
            }
        }
    }
}
