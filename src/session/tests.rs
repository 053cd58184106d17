//! Statements through [`Session::execute`], written as users write them.

use arrow::util::pretty::pretty_format_batches;

use super::*;
use crate::error::Location;
use crate::parser::parse_one;

mod remote;

/// A session whose console is read back.
struct Shell {
    session: Session,
    printed: Arc<Mutex<Vec<u8>>>,
}

/// Console output kept in memory.
struct Kept(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        lock(&self.0).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn shell() -> Shell {
    let printed = Arc::new(Mutex::new(Vec::new()));
    let session = Session::new(SessionOptions {
        output: Arc::new(Mutex::new(Box::new(Kept(printed.clone())))),
        notices: Arc::new(|_| {}),
        failures: Arc::new(|_| {}),
        console_format: "ascii".into(),
        empty_batches: false,
        test: None,
    });
    Shell { session: session.unwrap(), printed }
}

impl Shell {
    /// What a statement shows: a tag and notices, rows as a table, text, or the error with its help.
    fn run(&self, text: &str) -> String {
        let answer = self.answer(text).and_then(|answer| match answer {
            Answer::Done { tag, notices } => Ok(std::iter::once(tag).chain(notices).collect::<Vec<_>>().join("\n")),
            Answer::Text(text) => Ok(text),
            Answer::Rows { rows, .. } => {
                let batches = rows.collect::<Result<Vec<_>>>()?;
                Ok(pretty_format_batches(&batches)?.to_string())
            }
        });
        answer.unwrap_or_else(|error| match error.help_text() {
            Some(help) => format!("{}: {error} [{help}]", error.code()),
            None => format!("{}: {error}", error.code()),
        })
    }

    fn answer(&self, text: &str) -> Result<Answer> {
        self.session.execute(&parse_one(text, Location { line: 1, column: 1 })?)
    }

    /// One cell of a one-row answer.
    fn cell(&self, text: &str) -> String {
        let table = self.run(text);
        let row = table.lines().nth(3).unwrap_or(&table);
        row.trim_matches(|c| c == '|' || c == ' ').to_string()
    }

    /// What the console has shown since the last call.
    fn console(&self) -> String {
        String::from_utf8(std::mem::take(&mut *lock(&self.printed))).unwrap()
    }

    fn with_trips() -> Shell {
        let shell = shell();
        assert_eq!(shell.run("CREATE STREAM trips (ts TIMESTAMP, km INT NOT NULL, who STRING)"), "CREATE STREAM");
        shell
    }
}

#[test]
fn select_needs_no_stream() {
    assert_eq!(shell().run("SELECT 1 AS one"), "+-----+\n| one |\n+-----+\n| 1   |\n+-----+");
}

#[test]
fn inserted_rows_are_cast_to_the_columns_and_read_back() {
    let shell = Shell::with_trips();
    let insert = "INSERT INTO trips VALUES ('2024-01-01 00:00:01', 3, 'a'), (NULL, '4', NULL)";
    assert_eq!(shell.run(insert), "INSERT 0 2");
    let again = "INSERT INTO trips (who, km) SELECT 'b', km + 1 FROM trips WHERE km = 4";
    assert_eq!(shell.run(again), "INSERT 0 1");
    let expected = "\
+---------------------+----+-----+
| ts                  | km | who |
+---------------------+----+-----+
| 2024-01-01T00:00:01 | 3  | a   |
|                     | 4  |     |
|                     | 5  | b   |
+---------------------+----+-----+";
    assert_eq!(shell.run("SELECT * FROM trips ORDER BY km"), expected);
}

#[test]
fn an_insert_that_is_wrong_adds_nothing() {
    let shell = Shell::with_trips();
    let null = shell.run("INSERT INTO trips VALUES (NULL, 1, 'a'), (NULL, NULL, 'b')");
    assert_eq!(null, "E0100: row 2 has NULL for km, which is NOT NULL in stream trips");
    assert_eq!(
        shell.run("INSERT INTO trips VALUES (NULL, 1)"),
        "E0100: row 1 has 2 values for the 3 columns of stream trips [columns: ts, km, who]"
    );
    assert_eq!(
        shell.run("INSERT INTO trips (km, hwo) VALUES (1, 'a')"),
        "E0203: stream trips has no column hwo to insert into [did you mean \"who\"?  (trips: ts, km, who)]"
    );
    assert_eq!(shell.run("INSERT INTO trips (km, km) VALUES (1, 2)"), "E0100: column km is named twice");
    assert!(shell.run("INSERT INTO trips (km) VALUES (3000000000)").starts_with("E0100: "), "out of INT's range");
    assert!(shell.run("INSERT INTO trips VALUES ('yesterday', 1, 'a')").starts_with("E0100: "), "no timestamp");
    assert_eq!(
        shell.run("INSERT INTO trps VALUES (1)"),
        "E0202: there is no stream, table or view \"trps\" [did you mean \"trips\"?]"
    );
    assert_eq!(shell.cell("SELECT count(*) AS n FROM trips"), "0");
}

#[test]
fn computed_columns_are_typed_and_computed() {
    let shell = shell();
    let create = "CREATE STREAM s (ms BIGINT, at AS (to_timestamp_millis(ms)), twice INT AS (ms * 2), \
                  half AS (twice / CAST(4 AS DOUBLE)), WATERMARK FOR at AS at - INTERVAL '1 second')";
    assert_eq!(shell.run(create), "CREATE STREAM");
    let expected = "\
+-------------+--------------+-------------+---------------------+
| column_name | data_type    | is_nullable | kind                |
+-------------+--------------+-------------+---------------------+
| ms          | BIGINT       | YES         | field               |
| at          | TIMESTAMP(3) | YES         | computed, watermark |
| twice       | INT          | YES         | computed            |
| half        | DOUBLE       | YES         | computed            |
+-------------+--------------+-------------+---------------------+";
    assert_eq!(shell.run("DESCRIBE s"), expected);
    assert_eq!(shell.run("INSERT INTO s VALUES (1500)"), "INSERT 0 1");
    assert_eq!(shell.cell("SELECT twice, at, half FROM s"), "3000  | 1970-01-01T00:00:01.500 | 750.0");
    assert_eq!(shell.run(&shell.run("SHOW CREATE STREAM s").replace("STREAM s", "STREAM s2")), "CREATE STREAM");
    assert_eq!(shell.run("DESCRIBE s2"), expected);
}

#[test]
fn a_wrong_stream_is_refused_with_the_reason() {
    let shell = shell();
    for (columns, refusal) in [
        ("(a INT, a INT)", "E0100: column a is given twice"),
        (
            "",
            "E0100: stream s needs a column list: a memory stream begins without rows [CREATE STREAM s (column type, …)]",
        ),
        ("(a INT, b AS (aa + 1))", "E0203: column \"aa\" not found [did you mean \"a\"?  (known: a)]"),
        ("(a INT, b AS (sum(a)))", "E0100: column b can't be computed from an aggregate: it sees one row"),
        ("(a AS (1))", "E0100: stream s has no column that is a field of its records"),
        ("(a LNG)", "E0206: unknown type LNG [did you mean LONG?]"),
        ("(a VARCHAR(3))", "E0200: VARCHAR(3): a length is not checked, so it can't be given [write STRING]"),
        (
            "(ts DATE, WATERMARK FOR tss AS tss - INTERVAL '1 day')",
            "E0203: stream s has no column tss [did you mean \"ts\"?  (s: ts)]",
        ),
        (
            "(a INT, WATERMARK FOR a AS a - INTERVAL '1 day')",
            "E0100: a watermark needs a time, and a is INT [a TIMESTAMP or DATE column, computed if need be]",
        ),
        ("(a INT) WITH (connector = 'flie')", "E0103: unknown connector 'flie' [did you mean 'file'?]"),
        ("(a INT) WITH (connector = 'kafka')", "E0201: not supported yet: connector 'kafka'"),
        ("(a INT) WITH (connector = 'file', format = 'avro')", "E0201: not supported yet: format 'avro'"),
        (
            "(a INT) WITH (connector = 'console')",
            "E0103: connector 'console' is only a sink [one of file, memory, nexmark, rate, rate-micro-batch, stdin]",
        ),
        (
            "(a INT) WITH (path = 'x')",
            "E0100: the WITH list names no connector [WITH (connector = '…', …), one of file, memory, nexmark, rate, \
             rate-micro-batch, stdin]",
        ),
        (
            "(a INT) WITH (connector = 'memory', path = 'x')",
            "E0102: unknown option path of connector 'memory' [it takes no options]",
        ),
        (
            "(valu BIGINT) WITH (connector = 'rate')",
            "E0203: connector 'rate' gives no column valu [did you mean \"value\"?  (it gives timestamp, value)]",
        ),
        (
            "(value INT) WITH (connector = 'rate')",
            "E0100: connector 'rate' gives value as BIGINT NOT NULL [a computed column can hold another type of it]",
        ),
        (
            "(value INT METADATA FROM 'path') WITH (connector = 'rate')",
            "E0100: connector 'rate' has no metadata 'path' [it has none at all]",
        ),
    ] {
        assert_eq!(shell.run(&format!("CREATE STREAM s {columns}")), refusal);
    }
    assert_eq!(shell.run("SHOW STREAMS").lines().count(), 4, "nothing was made");
}

#[test]
fn a_generator_has_its_own_columns() {
    let shell = shell();
    let with = "WITH (connector = 'rate-micro-batch', rows_per_batch = 2)";
    assert_eq!(shell.run(&format!("CREATE STREAM r {with}")), "CREATE STREAM");
    let picked = format!("CREATE STREAM v (value BIGINT, half AS (value / CAST(2 AS DOUBLE))) {with}");
    assert_eq!(shell.run(&picked), "CREATE STREAM");
    let described = shell.run("DESCRIBE v");
    assert!(described.contains("| value       | BIGINT    | NO          | field    |"), "{described}");
    assert!(described.contains("| half        | DOUBLE    | NO          | computed |"), "{described}");
    assert_eq!(shell.cell("SELECT max(half) AS m FROM v"), "0.5");
    let bids = "CREATE STREAM bids WITH (connector = 'nexmark', type = 'bid', events = 50)";
    assert_eq!(shell.run(bids), "CREATE STREAM");
    assert_eq!(shell.cell("SELECT count(*) AS n FROM bids"), "46");
}

#[test]
fn a_file_stream_without_columns_prints_the_text_that_pins_them() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.json"), "{\"n\": 1, \"Who\": \"a\"}\n{\"n\": 2}\n").unwrap();
    let shell = shell();
    let with = format!("WITH (connector = 'file', path = '{}', format = 'json')", folder.path().display());
    let pinned = format!("CREATE STREAM s (\n    n BIGINT,\n    \"Who\" STRING\n) {with};");
    let notice = format!("CREATE STREAM\nthe columns were inferred; this text pins them:\n{pinned}");
    assert_eq!(shell.run(&format!("CREATE STREAM s {with}")), notice);
    assert_eq!(shell.run("SHOW CREATE STREAM s"), pinned);
    assert_eq!(shell.run(&pinned.replace("CREATE STREAM", "CREATE OR REPLACE STREAM")), "CREATE STREAM");
    assert_eq!(shell.cell("SELECT sum(n) AS n, max(\"Who\") AS who FROM s"), "3 | a");
    let meta = format!("CREATE STREAM m (n BIGINT, line BIGINT METADATA FROM 'line') {with}");
    assert_eq!(shell.run(&meta), "CREATE STREAM");
    assert_eq!(shell.cell("SELECT line FROM m WHERE n = 2"), "2");
    assert!(shell.run("DESCRIBE m").contains("metadata 'line'"));
}

#[test]
fn names_are_shared_and_replaced_only_on_request() {
    let shell = Shell::with_trips();
    assert_eq!(
        shell.run("CREATE STREAM trips (a INT)"),
        "E0209: stream trips exists already [CREATE OR REPLACE STREAM, or DROP STREAM trips first]"
    );
    assert_eq!(
        shell.run("CREATE STREAM IF NOT EXISTS trips (a INT)"),
        "CREATE STREAM\nstream trips exists already: nothing was changed"
    );
    let taken = "E0209: there is a stream called trips already [streams, tables and views share their names]";
    assert_eq!(shell.run("CREATE TABLE trips (a INT)"), taken);
    assert_eq!(shell.run("CREATE OR REPLACE VIEW trips AS SELECT 1 AS a"), taken);
    assert_eq!(shell.run("DROP TABLE trips"), "E0100: trips is a stream [DROP STREAM trips]");
    assert_eq!(shell.run("DROP STREAM trip"), "E0202: there is no stream \"trip\" [did you mean \"trips\"?]");
    assert_eq!(shell.run("DROP STREAM IF EXISTS trip"), "DROP STREAM\nthere is no stream \"trip\"");
}

#[test]
fn a_view_over_a_stream_holds_the_stream() {
    let shell = Shell::with_trips();
    assert_eq!(shell.run("CREATE VIEW far (k) AS SELECT km FROM trips WHERE km > 10"), "CREATE VIEW");
    assert_eq!(shell.run("CREATE OR REPLACE VIEW far (k) AS SELECT km FROM trips WHERE km > 9"), "CREATE VIEW");
    shell.run("INSERT INTO trips (km) VALUES (11), (1)");
    assert_eq!(shell.run("SELECT k FROM far"), "+----+\n| k  |\n+----+\n| 11 |\n+----+");
    assert_eq!(shell.run("DROP STREAM trips"), "E0100: stream trips is read by view far [DROP VIEW far first]");
    assert_eq!(
        shell.run("CREATE VIEW two (a, a) AS SELECT km, who FROM trips"),
        "E0100: view two has two columns called a [rename one with AS]"
    );
    assert_eq!(
        shell.run("CREATE VIEW two (a) AS SELECT km, who FROM trips"),
        "E0100: view two names 1 columns, and its query has 2"
    );
    let text = shell.run("SHOW CREATE VIEW far");
    assert_eq!(text, "CREATE OR REPLACE VIEW far (k) AS SELECT km FROM trips WHERE km > 9;");
    assert_eq!(shell.run("DROP VIEW far"), "DROP VIEW");
    assert_eq!(shell.run("DROP STREAM trips"), "DROP STREAM");
    assert_eq!(shell.run("SELECT * FROM trips"), "E0202: there is no stream, table or view \"trips\"");
}

#[test]
fn tables_are_whole_before_they_have_a_name() {
    let shell = shell();
    assert_eq!(shell.run("CREATE TABLE t (ts TIMESTAMP, n INT NOT NULL DEFAULT 7)"), "CREATE TABLE");
    assert_eq!(shell.run("INSERT INTO t (ts) VALUES ('2024-01-01')"), "INSERT 0 1");
    assert_eq!(shell.run("INSERT INTO t VALUES (NULL, 1), (NULL, 2)"), "INSERT 0 2");
    assert_eq!(shell.cell("SELECT sum(n) AS s FROM t"), "10");
    assert!(shell.run("DESCRIBE t").contains("| ts          | TIMESTAMP | YES         |"));
    assert_eq!(shell.run("CREATE OR REPLACE TABLE t AS SELECT 1 / (n - 1) AS x FROM t"), "E0701: division by zero");
    assert_eq!(shell.cell("SELECT sum(n) AS s FROM t"), "10", "the old table stays");
    assert_eq!(shell.run("CREATE TABLE u AS SELECT n FROM t WHERE n < 7"), "CREATE TABLE");
    assert_eq!(shell.run("SHOW TABLES").lines().count(), 6);
    assert_eq!(shell.run("DROP TABLE t"), "DROP TABLE");
    assert_eq!(
        shell.run("INSERT INTO t VALUES (1)"),
        "E0202: there is no stream, table or view \"t\" [did you mean \"u\"?]"
    );
}

#[test]
fn external_tables_and_copy_are_datafusions() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    let shell = Shell::with_trips();
    shell.run("INSERT INTO trips (km) VALUES (1), (2)");
    assert_eq!(shell.run(&format!("COPY (SELECT km FROM trips) TO '{}' STORED AS CSV", path.display())), "COPY 2");
    let create = format!(
        "EXTERNAL TABLE t (km INT) STORED AS CSV LOCATION '{}' OPTIONS ('format.has_header' 'true')",
        path.display()
    );
    assert_eq!(shell.run(&format!("CREATE {create}")), "CREATE EXTERNAL TABLE");
    assert_eq!(shell.cell("SELECT sum(km) AS s FROM t"), "3");
    let wrong = create.replace("STORED AS CSV", "STORED AS CVS").replace("EXTERNAL", "OR REPLACE EXTERNAL");
    assert!(shell.run(&format!("CREATE {wrong}")).starts_with("E0100: STORED AS CVS: no such format"));
    assert_eq!(shell.cell("SELECT sum(km) AS s FROM t"), "3", "the old table stays");
}

#[test]
fn a_table_takes_a_stream_as_far_as_it_goes_now() {
    let shell = Shell::with_trips();
    shell.run("INSERT INTO trips (km) VALUES (1), (2)");
    assert_eq!(shell.run("CREATE TABLE t AS SELECT km FROM trips"), "CREATE TABLE");
    assert_eq!(shell.run("INSERT INTO t SELECT km + 10 FROM trips"), "INSERT 0 2");
    assert_eq!(shell.cell("SELECT sum(km) AS s FROM t"), "26");
    assert_eq!(shell.run("DELETE FROM trips"), "E0100: trips is a stream: its rows are never changed");
}

#[test]
fn a_closed_stream_takes_no_more() {
    let shell = Shell::with_trips();
    assert_eq!(shell.run("CLOSE STREAM trips"), "CLOSE STREAM");
    let error = shell.run("INSERT INTO trips (km) VALUES (1)");
    assert!(error.starts_with("E0100: stream trips is closed"), "{error}");
}

#[test]
fn sinks_are_checked_when_they_are_created() {
    let shell = shell();
    let sink = |with: &str| shell.run(&format!("CREATE SINK out WITH ({with})"));
    let none = "E0100: a sink needs a connector [WITH (connector = '…', …), one of blackhole, console, file, stdout]";
    assert_eq!(sink("path = 'x'"), none);
    assert!(sink("connector = 'rate'").starts_with("E0103: connector 'rate' is only a source"));
    assert!(sink("connector = 'memory'").starts_with("E0100: connector 'memory' is no sink"));
    assert_eq!(sink("connector = 'delta'"), "E0201: not supported yet: connector 'delta'");
    assert_eq!(
        sink("connector = 'stdout', fromat = 'json'"),
        "E0102: unknown option fromat of connector 'stdout' [did you mean format?]"
    );
    assert_eq!(sink("connector = 'stdout', format = 'json'"), "CREATE SINK");
    assert_eq!(shell.run("SHOW CREATE SINK out"), "CREATE SINK out WITH (connector = 'stdout', format = 'json');");
    assert_eq!(shell.cell("SHOW SINKS"), "out  | stdout");
    assert_eq!(shell.run("DROP SINK out"), "DROP SINK");
}

#[test]
fn settings_are_checked_shown_and_reset() {
    let shell = shell();
    let show =
        |name: &str| shell.cell(&format!("SHOW {name}")).split_once(" | ").map(|(_, v)| v.trim().to_string()).unwrap();
    assert_eq!(shell.run("SET multiple_watermark_policy = 'max'"), "SET");
    assert_eq!(show("levada.multiple_watermark_policy"), "max");
    assert_eq!(
        shell.run("SET multiple_watermark_policy = 'mean'"),
        "E0103: option multiple_watermark_policy is 'mean'; it takes one of min, max"
    );
    assert_eq!(shell.run("SET max_batch_bytes = '64 MiB'"), "SET");
    assert_eq!(show("max_batch_bytes"), "67108864");
    assert_eq!(shell.run("SET levada.partitions = 3"), "SET");
    assert_eq!(show("datafusion.execution.target_partitions"), "3");
    let many = shell.run("SET partitions = 100000");
    assert_eq!(many, "E0103: option partitions is '100000'; it takes 1 to 1024");
    assert_eq!(shell.run("SET timezone = 'Europe/Berlin'"), "SET");
    assert_eq!(show("datafusion.execution.time_zone"), "Europe/Berlin");
    assert!(shell.run("SET timezone = 'Mars'").starts_with("E0103: unknown time zone 'Mars'"));
    assert_eq!(shell.run("SET partition = 3"), "E0104: unknown setting partition [did you mean partitions?]");
    let wrong = shell.run("SET datafusion.execution.batch_sise = 3");
    assert!(wrong.contains("did you mean datafusion.execution.batch_size?"), "{wrong}");
    assert_eq!(shell.run("SET datafusion.execution.batch_size = 100"), "SET");
    assert_eq!(show("datafusion.execution.batch_size"), "100");
    assert_eq!(shell.run("RESET max_batch_bytes"), "RESET");
    assert_eq!(show("max_batch_bytes"), (256u64 << 20).to_string());
    assert!(shell.run("SHOW ALL").contains("| levada.clock "));
}

#[test]
fn the_manual_clock_moves_forward_only() {
    let shell = shell();
    let system = "E0100: the clock is the system's [SET clock = 'manual' before the first START]";
    assert_eq!(shell.run("ADVANCE CLOCK BY INTERVAL '1 second'"), system);
    assert_eq!(shell.run("SET clock = 'manual'"), "SET");
    assert_eq!(shell.run("ADVANCE CLOCK TO TIMESTAMP '1970-01-01 00:01:00'"), "ADVANCE CLOCK");
    assert_eq!(shell.run("ADVANCE CLOCK BY INTERVAL '1500 milliseconds'"), "ADVANCE CLOCK");
    assert_eq!(
        shell.run("ADVANCE CLOCK TO TIMESTAMP '1970-01-01 00:01:00'"),
        "E0100: the clock never goes back: it stands at 1970-01-01T00:01:01.500Z"
    );
    assert!(shell.run("ADVANCE CLOCK BY INTERVAL '1 month'").contains("a month has no fixed length"));
    assert!(shell.cell("SELECT now() AS t").starts_with("1970-01-01T00:01:01.500"));
}

#[test]
fn a_query_that_can_not_run_is_not_started() {
    let shell = shell();
    let none = "E0100: the query reads no stream [run the SELECT by itself: its answer will not change]";
    assert_eq!(shell.run("START QUERY q AS SELECT 1"), none);
    assert_eq!(
        shell.run("START QUERY q AS SELECT 1 WITH (partition = 2)"),
        "E0102: unknown option partition of START QUERY [did you mean partitions?]"
    );
    assert!(shell.run("START QUERY q INTO nowhere AS SELECT 1").starts_with("E0100: "));
    assert!(shell.session.running_queries().is_empty());
    assert!(!shell.session.any_query_failed());
    assert_eq!(shell.run("PAUSE QUERY q"), "E0207: there is no query \"q\"");
}

#[test]
fn a_started_query_holds_its_name_its_stream_and_its_result() {
    let shell = Shell::with_trips();
    assert_eq!(shell.run("SET clock = 'manual'"), "SET");
    shell.run("INSERT INTO trips (km, who) VALUES (1, 'a'), (2, 'b'), (3, 'a')");
    let start = "START QUERY q INTO TABLE t AS SELECT who, sum(km) AS km FROM trips GROUP BY who TRIGGER MANUAL";
    assert_eq!(shell.run(start), "START QUERY");
    assert_eq!(shell.run(start), "E0209: query q runs already [STOP QUERY q first, or choose another name]");
    assert!(shell.run(&start.replace("QUERY q", "QUERY IF NOT EXISTS q")).contains("query q runs already"));
    assert_eq!(shell.run("STEP QUERY q 1 BATCHES"), "STEP 1");
    assert_eq!(
        shell.run("SELECT * FROM t ORDER BY who"),
        "+-----+----+\n| who | km |\n+-----+----+\n| a   | 4  |\n| b   | 2  |\n+-----+----+"
    );
    let held = "E0100: stream trips is used by the running query q [STOP QUERY q first]";
    assert_eq!(shell.run("DROP STREAM trips"), held);
    assert_eq!(shell.run("CREATE OR REPLACE STREAM trips (a INT)"), held);
    assert_eq!(shell.run("DROP TABLE t"), "E0100: table t is used by the running query q [STOP QUERY q first]");
    assert!(shell.run("INSERT INTO t VALUES ('c', 1)").contains("table t is the result of query q"));
    assert_eq!(shell.run("DROP QUERY q"), "E0100: query q is running [STOP QUERY q first]");
    assert_eq!(
        shell.run("SET clock = 'system'"),
        "E0100: the clock can't be changed once a query was started [SET clock before the first START]"
    );
    assert_eq!(shell.cell("SHOW QUERIES"), "q    | RUNNING | UPDATE | TABLE t | 0");
    assert!(shell.run("DESCRIBE q").contains("| km          | BIGINT    |"));
    assert!(
        shell
            .run("SHOW PROGRESS FOR q")
            .lines()
            .nth(3)
            .is_some_and(|row| row.starts_with("| 0     | 1970-01-01T00:00:00"))
    );
    assert_eq!(shell.session.running_queries(), ["q"]);
    assert!(shell.run("STOP QUERY q").contains("| q     | 0          |"));
    assert!(shell.session.running_queries().is_empty());
    assert!(shell.run("SHOW CREATE QUERY q").starts_with("START QUERY q INTO TABLE t AS SELECT who"));
    assert_eq!(shell.run("DROP QUERY q"), "DROP QUERY");
    assert_eq!(shell.run("DROP STREAM trips"), "DROP STREAM");
    assert_eq!(shell.run("DROP TABLE t"), "DROP TABLE");
}

#[test]
fn watch_shows_rows_until_its_limit() {
    let shell = Shell::with_trips();
    shell.run("INSERT INTO trips (km) VALUES (1), (2), (3)");
    assert_eq!(shell.run("WATCH SELECT km FROM trips LIMIT 2"), "WATCH");
    let shown = shell.console();
    assert!(shown.contains(" 1 |") && shown.contains(" 2 |") && !shown.contains(" 3 |"), "{shown}");
    assert_eq!(shell.run("WATCH SELECT km FROM trips FOR 1 BATCHES"), "WATCH");
    assert!(shell.console().contains(" 3 |"));
    assert!(shell.run("WATCH nothing").starts_with("E0207: there is no query \"nothing\""));
}

#[test]
fn errors_keep_their_place_and_name_the_closest_column() {
    let shell = Shell::with_trips();
    let error = shell.answer("SELECT\n  kn FROM trips").err().unwrap();
    assert_eq!(error.span().map(|s| (s.start.line, s.start.column)), Some((2, 3)));
    assert_eq!(error.to_string(), "column \"kn\" not found");
    assert_eq!(error.help_text(), Some("did you mean \"km\"?  (trips: ts, km, who)"));
    assert_eq!(shell.run("SELECT lenght('a')"), "E0204: there is no function lenght [did you mean length?]");
    assert_eq!(shell.run("SELECT * FROM late_rows('q')"), "E0207: there is no query \"q\"");
    shell.run("INSERT INTO trips (km) VALUES (0)");
    assert_eq!(shell.run("SELECT 1 / km FROM trips"), "E0701: division by zero");
}

#[test]
fn a_cancelled_step_ends_with_its_batch() {
    let shell = shell();
    shell.run("CREATE STREAM r WITH (connector = 'rate-micro-batch', rows_per_batch = 1)");
    shell.run("START QUERY q INTO BLACKHOLE AS SELECT value FROM r TRIGGER MANUAL");
    let ended = AtomicBool::new(false);
    let token = shell.session.cancel_token();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Again and again: a statement that begins forgets an earlier request.
            while !ended.load(std::sync::atomic::Ordering::SeqCst) {
                token.cancel();
                std::thread::yield_now();
            }
        });
        let answer = shell.run("STEP QUERY q 1000000000 BATCHES");
        ended.store(true, std::sync::atomic::Ordering::SeqCst);
        assert_eq!(answer, "E0800: no longer waiting for query q to step");
    });
    assert_eq!(shell.run("STEP QUERY q 2 BATCHES"), "STEP 2");
    assert!(shell.run("STOP QUERY q").contains("| q "));
}

#[test]
fn a_cancelled_statement_ends() {
    let shell = shell();
    let token = shell.session.cancel_token();
    let Ok(Answer::Rows { mut rows, .. }) = shell.answer("SELECT count(*) FROM generate_series(1, 1000000000000)")
    else {
        panic!("no rows");
    };
    token.cancel();
    assert!(matches!(rows.next(), Some(Err(Error::Cancelled { .. }))));
    assert!(rows.next().is_none());
    assert_eq!(shell.cell("SELECT 1 AS one"), "1", "the next statement begins anew");
}

/// Runs WATCH on a thread of its own, and the statements of `meanwhile` once somebody looks on.
fn watched(shell: &Shell, watch: &str, meanwhile: &[&str]) -> String {
    let handle = lock(&shell.session.queries)["q"].handle.clone();
    std::thread::scope(|scope| {
        let watching = scope.spawn(|| shell.run(watch));
        while handle.watchers() == 0 {
            std::thread::yield_now();
        }
        for statement in meanwhile {
            assert!(!shell.run(statement).starts_with('E'), "{statement}");
        }
        watching.join().unwrap()
    })
}

#[test]
fn a_running_query_is_watched_beside_its_target() {
    let shell = Shell::with_trips();
    shell.run("START QUERY q INTO TABLE t AS SELECT who, sum(km) AS km FROM trips GROUP BY who");
    shell.run("INSERT INTO trips VALUES (NULL, 1, 'a')");
    assert_eq!(shell.run("AWAIT QUERY q IDLE"), "AWAIT QUERY");
    let two =
        ["INSERT INTO trips VALUES (NULL, 2, 'a')", "AWAIT QUERY q IDLE", "INSERT INTO trips VALUES (NULL, 3, 'b')"];
    assert_eq!(watched(&shell, "WATCH q FOR 2 BATCHES", &two), "WATCH");
    let expected = "\
-- Batch: 1  query=q  mode=update  rows=2  in=1  watermark=-  state=1
+----+-----+----+
| op | who | km |
+----+-----+----+
| -U | a   |  1 |
| +U | a   |  3 |
+----+-----+----+
-- Batch: 2  query=q  mode=update  rows=1  in=1  watermark=-  state=2
+----+-----+----+
| op | who | km |
+----+-----+----+
| +I | b   |  3 |
+----+-----+----+
";
    assert_eq!(shell.console(), expected);
    assert_eq!(shell.cell("SELECT km FROM t WHERE who = 'a'"), "3");
    let more = ["INSERT INTO trips VALUES (NULL, 4, 'c'), (NULL, 4, 'd')"];
    assert_eq!(watched(&shell, "WATCH q LIMIT 1", &more), "WATCH");
    assert!(shell.console().contains("| +I | c   |  4 |\n+----"), "one row alone");
    assert_eq!(watched(&shell, "WATCH q", &["STOP QUERY q"]), "WATCH\nquery q has ended");
    assert_eq!(shell.run("WATCH q"), "WATCH\nquery q has ended");
}

#[test]
fn a_query_of_the_console_is_shown_once() {
    let shell = Shell::with_trips();
    shell.run("START QUERY q INTO CONSOLE AS SELECT km FROM trips");
    assert_eq!(
        watched(&shell, "WATCH q LIMIT 2", &["INSERT INTO trips VALUES (NULL, 7, 'a'), (NULL, 8, 'a')"]),
        "WATCH"
    );
    assert_eq!(shell.console().matches("|  7 |").count(), 1);
}

#[test]
fn a_watched_query_that_fails_fails_its_watch() {
    let shell = Shell::with_trips();
    shell.run("START QUERY q INTO BLACKHOLE AS SELECT 10 / km AS x FROM trips");
    let answer = watched(&shell, "WATCH q", &["INSERT INTO trips VALUES (NULL, 0, 'a')"]);
    assert_eq!(answer, "E0701: query q failed in batch 0, reading trips: division by zero");
}
