//! Statements through [`Session::execute`]. Statements of ours are built by hand: text is the parser's matter.

use arrow::util::pretty::pretty_format_batches;
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::Parser;

use super::*;
use crate::error::Span;
use crate::options::{OptionEntry, OptionValue, Options};
use crate::parser::{
    ClockMove, ColumnDef, ColumnKind, CreateSink, CreateStream, CreateView, Interval, Name, ObjectKind, QueryText,
    SetValue, Show, StartQuery, WatermarkDef, ast,
};

fn session() -> Session {
    Session::new(SessionOptions {
        output: Arc::new(Mutex::new(Box::new(std::io::sink()))),
        notices: Arc::new(|_| {}),
        console_format: "table".into(),
        empty_batches: false,
    })
    .unwrap()
}

fn name(name: &str) -> Name {
    Name { value: name.into(), span: Span::default() }
}

fn parsed(statement: Statement, text: &str) -> ParsedStatement {
    ParsedStatement { statement, text: text.into(), span: Span::default() }
}

fn query(text: &str) -> QueryText {
    let ast = Parser::parse_sql(&GenericDialect {}, text).unwrap().remove(0);
    let ast::Statement::Query(ast) = ast else { panic!("not a query: {text}") };
    let (watermarks, within_watermark) = (vec![], vec![]);
    QueryText { ast: *ast, text: text.into(), watermarks, within_watermark, span: Span::default() }
}

fn select(text: &str) -> ParsedStatement {
    parsed(Statement::Select(Box::new(query(text))), text)
}

fn sql(text: &str) -> ParsedStatement {
    let ast = Parser::parse_sql(&GenericDialect {}, text).unwrap().remove(0);
    parsed(Statement::Sql(Box::new(ast)), text)
}

fn column(name_: &str, sql_type: &str, not_null: bool) -> ColumnDef {
    let data_type = Parser::new(&GenericDialect {}).try_with_sql(sql_type).unwrap().parse_data_type().unwrap();
    ColumnDef { name: name(name_), data_type: Some(data_type), not_null, kind: ColumnKind::Field }
}

fn computed(name_: &str, expr: &str) -> ColumnDef {
    let expr = Parser::new(&GenericDialect {}).try_with_sql(expr).unwrap().parse_expr().unwrap();
    ColumnDef { name: name(name_), data_type: None, not_null: false, kind: ColumnKind::Computed(Box::new(expr)) }
}

fn option(name: &str, value: &str) -> OptionEntry {
    OptionEntry { name: name.into(), value: OptionValue::Text(value.into()), span: Span::default() }
}

fn with(entries: &[(&str, &str)]) -> Options {
    Options { entries: entries.iter().map(|(name, value)| option(name, value)).collect() }
}

fn stream(name_: &str, columns: Vec<ColumnDef>) -> CreateStream {
    CreateStream {
        or_replace: false,
        if_not_exists: false,
        name: name(name_),
        columns: (!columns.is_empty()).then_some(columns),
        watermark: None,
        options: None,
    }
}

fn create(stream: CreateStream) -> ParsedStatement {
    parsed(Statement::CreateStream(Box::new(stream)), "CREATE STREAM …")
}

fn trips() -> ParsedStatement {
    create(stream(
        "trips",
        vec![column("ts", "TIMESTAMP", false), column("km", "INT", true), column("who", "STRING", false)],
    ))
}

fn watermark(column: &str, micros: i64) -> WatermarkDef {
    let delay = Interval { months: 0, micros };
    WatermarkDef { column: name(column), delay, idle_after: None, max_future_skew: None, span: Span::default() }
}

fn drop_(kind: ObjectKind, name_: &str) -> ParsedStatement {
    parsed(Statement::Drop { kind, if_exists: false, name: name(name_) }, "DROP …")
}

/// What an answer shows: a tag and notices, rows as a table, or text.
fn shown(session: &Session, statement: ParsedStatement) -> String {
    match session.execute(&statement).map_err(said) {
        Ok(Answer::Done { tag, notices }) => std::iter::once(tag).chain(notices).collect::<Vec<_>>().join("\n"),
        Ok(Answer::Text(text)) => text,
        Ok(Answer::Rows { rows, .. }) => match rows.collect::<Result<Vec<_>>>() {
            Ok(batches) => pretty_format_batches(&batches).unwrap().to_string(),
            Err(error) => said(error),
        },
        Err(error) => error,
    }
}

fn said(error: Error) -> String {
    match error.help_text() {
        Some(help) => format!("{}: {error} [{help}]", error.code()),
        None => format!("{}: {error}", error.code()),
    }
}

#[test]
fn select_needs_no_stream() {
    let session = session();
    assert_eq!(shown(&session, select("SELECT 1 AS one")), "+-----+\n| one |\n+-----+\n| 1   |\n+-----+");
}

#[test]
fn inserted_rows_are_cast_to_the_columns_and_read_back() {
    let session = session();
    assert_eq!(shown(&session, trips()), "CREATE STREAM");
    let insert = sql("INSERT INTO trips VALUES ('2024-01-01 00:00:01', 3, 'a'), (NULL, '4', NULL)");
    assert_eq!(shown(&session, insert), "INSERT 0 2");
    assert_eq!(
        shown(&session, sql("INSERT INTO trips (who, km) SELECT 'b', km + 1 FROM trips WHERE km = 4")),
        "INSERT 0 1"
    );
    let expected = "\
+---------------------+----+-----+
| ts                  | km | who |
+---------------------+----+-----+
| 2024-01-01T00:00:01 | 3  | a   |
|                     | 4  |     |
|                     | 5  | b   |
+---------------------+----+-----+";
    assert_eq!(shown(&session, select("SELECT * FROM trips ORDER BY km")), expected);
}

#[test]
fn an_insert_that_is_wrong_adds_nothing() {
    let session = session();
    shown(&session, trips());
    let wrong = |text: &str| shown(&session, sql(text));
    assert_eq!(
        wrong("INSERT INTO trips VALUES (NULL, 1, 'a'), (NULL, NULL, 'b')"),
        "E0100: column km of stream trips is NOT NULL, a row has NULL there"
    );
    assert_eq!(
        wrong("INSERT INTO trips VALUES (NULL, 1)"),
        "E0100: row 1 has 2 values for the 3 columns of stream trips [columns: ts, km, who]"
    );
    assert_eq!(
        wrong("INSERT INTO trips (km, hwo) VALUES (1, 'a')"),
        "E0100: stream trips has no column hwo to insert into [did you mean \"who\"?  (trips: ts, km, who)]"
    );
    assert_eq!(wrong("INSERT INTO trips (km, km) VALUES (1, 2)"), "E0100: column km is named twice");
    assert!(wrong("INSERT INTO trips (km) VALUES (3000000000)").starts_with("E0700: "), "out of INT's range");
    assert!(wrong("INSERT INTO trips VALUES ('yesterday', 1, 'a')").starts_with("E0700: "), "no timestamp");
    assert_eq!(
        wrong("INSERT INTO trps VALUES (1)"),
        "E0100: there is no stream, table or view \"trps\" [did you mean \"trips\"?]"
    );
    assert!(shown(&session, select("SELECT count(*) AS n FROM trips")).contains("| 0 |"));
}

#[test]
fn computed_columns_are_typed_and_computed() {
    let session = session();
    let seen = create(CreateStream {
        watermark: Some(watermark("at", 1_000_000)),
        ..stream(
            "s",
            vec![
                column("ms", "BIGINT", false),
                computed("at", "to_timestamp_millis(ms)"),
                ColumnDef { data_type: column("x", "INT", false).data_type, ..computed("twice", "ms * 2") },
            ],
        )
    });
    assert_eq!(shown(&session, seen), "CREATE STREAM");
    let expected = "\
+-------------+--------------+-------------+---------------------+
| column_name | data_type    | is_nullable | kind                |
+-------------+--------------+-------------+---------------------+
| ms          | BIGINT       | YES         | field               |
| at          | TIMESTAMP(3) | YES         | computed, watermark |
| twice       | INT          | YES         | computed            |
+-------------+--------------+-------------+---------------------+";
    assert_eq!(shown(&session, parsed(Statement::Describe(name("s")), "")), expected);
    assert_eq!(shown(&session, sql("INSERT INTO s VALUES (1500)")), "INSERT 0 1");
    let rows = shown(&session, select("SELECT twice, at FROM s"));
    assert!(rows.contains("| 3000  | 1970-01-01T00:00:01.500 |"), "{rows}");
}

#[test]
fn a_wrong_stream_is_refused_with_the_reason() {
    let session = session();
    let wrong = |stream: CreateStream| shown(&session, create(stream));
    assert_eq!(
        wrong(stream("s", vec![column("a", "INT", false), column("a", "INT", false)])),
        "E0100: column a is declared twice"
    );
    assert_eq!(
        wrong(stream("s", vec![])),
        "E0100: stream s needs a column list: a memory stream begins without rows [CREATE STREAM s (column type, …)]"
    );
    assert_eq!(
        wrong(stream("s", vec![column("a", "INT", false), computed("b", "aa + 1")])),
        "E0100: column \"aa\" not found [did you mean \"a\"?  (known: a)]"
    );
    assert_eq!(
        wrong(stream("s", vec![column("a", "INT", false), computed("b", "sum(a)")])),
        "E0100: column b can't be computed from an aggregate: it sees one row"
    );
    let columns = || vec![column("ts", "TIMESTAMP", false), column("a", "INT", false)];
    let marked =
        |column: &str, micros| CreateStream { watermark: Some(watermark(column, micros)), ..stream("s", columns()) };
    assert_eq!(wrong(marked("tss", 0)), "E0100: stream s has no column tss [did you mean \"ts\"?  (s: ts, a)]");
    assert_eq!(
        wrong(marked("a", 0)),
        "E0100: a watermark needs a time, and a is INT [a TIMESTAMP or DATE column, computed if need be]"
    );
    assert_eq!(wrong(marked("ts", -1)), "E0100: the watermark's delay is negative");
    let from = |options| CreateStream { options: Some(with(options)), ..stream("s", columns()) };
    assert_eq!(wrong(from(&[("connector", "flie")])), "E0100: unknown connector 'flie' [did you mean 'file'?]");
    assert_eq!(wrong(from(&[("connector", "kafka")])), "E0200: not supported yet: connector 'kafka'");
    assert_eq!(
        wrong(from(&[("connector", "console")])),
        "E0100: connector 'console' is only a sink [one of file, memory, nexmark, rate, rate-micro-batch, stdin]"
    );
    assert_eq!(
        wrong(from(&[("path", "x")])),
        "E0100: the WITH list names no connector [WITH (connector = '…', …), one of file, memory, nexmark, rate, rate-micro-batch, stdin]"
    );
    assert_eq!(
        wrong(from(&[("connector", "rate")])),
        "E0100: connector 'rate' gives no column ts [it gives timestamp, value]"
    );
    assert!(shown(&session, parsed(Statement::Show(Show::Streams), "")).lines().count() <= 4, "nothing was made");
}

#[test]
fn a_generator_has_its_own_columns() {
    let session = session();
    let options = Some(with(&[("connector", "rate-micro-batch"), ("rows_per_batch", "2")]));
    assert_eq!(
        shown(&session, create(CreateStream { options: options.clone(), ..stream("r", vec![]) })),
        "CREATE STREAM"
    );
    let picked = CreateStream {
        options,
        ..stream("v", vec![column("value", "BIGINT", false), computed("half", "value / 2.0")])
    };
    assert_eq!(shown(&session, create(picked)), "CREATE STREAM");
    let described = shown(&session, parsed(Statement::Describe(name("v")), ""));
    assert!(described.contains("| value       | BIGINT    | NO          | field    |"), "{described}");
    assert!(described.contains("| half        | DOUBLE    | NO          | computed |"), "{described}");
    let rows = shown(&session, select("SELECT half FROM v ORDER BY half"));
    assert!(rows.contains("| 0.5  |"), "{rows}");
}

#[test]
fn names_are_shared_and_replaced_only_on_request() {
    let session = session();
    shown(&session, trips());
    assert_eq!(
        shown(&session, trips()),
        "E0100: stream trips exists already [CREATE OR REPLACE STREAM, or DROP STREAM trips first]"
    );
    let kept = CreateStream { if_not_exists: true, ..stream("trips", vec![column("a", "INT", false)]) };
    assert_eq!(shown(&session, create(kept)), "CREATE STREAM\nstream trips exists already: nothing was changed");
    assert_eq!(
        shown(&session, sql("CREATE TABLE trips (a INT)")),
        "E0100: there is a stream called trips already [streams, tables and views share their names]"
    );
    assert_eq!(shown(&session, drop_(ObjectKind::Table, "trips")), "E0100: trips is a stream [DROP STREAM trips]");
    assert_eq!(
        shown(&session, drop_(ObjectKind::Stream, "trip")),
        "E0100: there is no stream \"trip\" [did you mean \"trips\"?]"
    );
    let view = |or_replace| CreateView {
        or_replace,
        if_not_exists: false,
        name: name("far"),
        columns: vec![name("k")],
        query: query("SELECT km FROM trips WHERE km > 10"),
    };
    let view = |or_replace| parsed(Statement::CreateView(Box::new(view(or_replace))), "CREATE VIEW far (k) AS …");
    assert_eq!(shown(&session, view(false)), "CREATE VIEW");
    assert_eq!(shown(&session, view(true)), "CREATE VIEW");
    shown(&session, sql("INSERT INTO trips (km) VALUES (11), (1)"));
    assert_eq!(shown(&session, select("SELECT k FROM far")), "+----+\n| k  |\n+----+\n| 11 |\n+----+");
    assert_eq!(
        shown(&session, drop_(ObjectKind::Stream, "trips")),
        "E0100: stream trips is read by view far [DROP VIEW far first]"
    );
    let text = shown(&session, parsed(Statement::ShowCreate { kind: ObjectKind::View, name: name("far") }, ""));
    assert_eq!(text, "CREATE VIEW far (k) AS …;");
    assert_eq!(shown(&session, drop_(ObjectKind::View, "far")), "DROP VIEW");
    assert_eq!(shown(&session, drop_(ObjectKind::Stream, "trips")), "DROP STREAM");
    assert_eq!(shown(&session, select("SELECT * FROM trips")), "E0100: there is no stream, table or view \"trips\"");
}

#[test]
fn tables_are_whole_before_they_have_a_name() {
    let session = session();
    assert_eq!(shown(&session, sql("CREATE TABLE t (ts TIMESTAMP, n INT NOT NULL DEFAULT 7)")), "CREATE TABLE");
    assert_eq!(shown(&session, sql("INSERT INTO t (ts) VALUES ('2024-01-01')")), "INSERT 0 1");
    assert_eq!(shown(&session, sql("INSERT INTO t VALUES (NULL, 1), (NULL, 2)")), "INSERT 0 2");
    assert!(shown(&session, select("SELECT sum(n) AS s FROM t")).contains("| 10 |"));
    let described = shown(&session, parsed(Statement::Describe(name("t")), ""));
    assert!(described.contains("| ts          | TIMESTAMP | YES         |"), "{described}");
    assert!(shown(&session, sql("CREATE OR REPLACE TABLE t AS SELECT 1 / (n - 1) AS x FROM t")).starts_with("E0700"));
    assert!(shown(&session, select("SELECT sum(n) AS s FROM t")).contains("| 10 |"), "the old table stays");
    assert_eq!(shown(&session, sql("CREATE TABLE u AS SELECT n FROM t WHERE n < 7")), "CREATE TABLE");
    assert!(shown(&session, parsed(Statement::Show(Show::Tables), "")).contains("| u    |"));
    assert_eq!(shown(&session, drop_(ObjectKind::Table, "t")), "DROP TABLE");
}

#[test]
fn a_table_takes_a_stream_as_far_as_it_goes_now() {
    let session = session();
    shown(&session, trips());
    shown(&session, sql("INSERT INTO trips (km) VALUES (1), (2)"));
    assert_eq!(shown(&session, sql("CREATE TABLE t AS SELECT km FROM trips")), "CREATE TABLE");
    assert_eq!(shown(&session, sql("INSERT INTO t SELECT km + 10 FROM trips")), "INSERT 0 2");
    assert!(shown(&session, select("SELECT sum(km) AS s FROM t")).contains("| 26 |"));
    assert_eq!(shown(&session, sql("DELETE FROM trips")), "E0100: trips is a stream: its rows are never changed");
}

#[test]
fn a_closed_stream_takes_no_more() {
    let session = session();
    shown(&session, trips());
    assert_eq!(shown(&session, parsed(Statement::CloseStream(name("trips")), "")), "CLOSE STREAM");
    let error = shown(&session, sql("INSERT INTO trips (km) VALUES (1)"));
    assert!(error.starts_with("E0100: stream trips is closed"), "{error}");
}

#[test]
fn sinks_are_checked_when_they_are_created() {
    let session = session();
    let sink = |options: &[(&str, &str)]| {
        let create = CreateSink { or_replace: false, if_not_exists: false, name: name("out"), options: with(options) };
        shown(&session, parsed(Statement::CreateSink(create), "CREATE SINK out …"))
    };
    assert_eq!(
        sink(&[]),
        "E0100: a sink needs a connector [WITH (connector = '…', …), one of blackhole, console, file, stdout]"
    );
    assert!(sink(&[("connector", "rate")]).starts_with("E0100: connector 'rate' is only a source"));
    assert!(sink(&[("connector", "memory")]).starts_with("E0100: connector 'memory' is no sink"));
    assert_eq!(sink(&[("connector", "delta")]), "E0200: not supported yet: connector 'delta'");
}

#[test]
fn settings_are_checked_shown_and_reset() {
    let session = session();
    let set = |setting: &str, value: &str| {
        shown(&session, parsed(Statement::Set { name: name(setting), value: SetValue::Text(value.into()) }, ""))
    };
    let show = |setting: &str| {
        let table = shown(&session, parsed(Statement::Show(Show::Setting(name(setting))), ""));
        table.lines().nth(3).unwrap_or(&table).split('|').nth(2).map(str::trim).unwrap_or(&table).to_string()
    };
    assert_eq!(set("multipleWatermarkPolicy", "max"), "SET");
    assert_eq!(show("levada.multiple_watermark_policy"), "max");
    assert_eq!(
        set("multiple_watermark_policy", "mean"),
        "E0100: option multiple_watermark_policy is 'mean'; it takes one of min, max"
    );
    assert_eq!(set("max_batch_bytes", "64 MiB"), "SET");
    assert_eq!(show("max_batch_bytes"), "67108864");
    assert_eq!(set("partitions", "3"), "SET");
    assert_eq!(show("datafusion.execution.target_partitions"), "3");
    assert_eq!(set("partitions", "100000"), "E0100: option partitions is '100000'; it takes 1 to 1024");
    assert_eq!(set("timezone", "Europe/Berlin"), "SET");
    assert_eq!(show("datafusion.execution.time_zone"), "Europe/Berlin");
    assert!(set("timezone", "Mars").starts_with("E0100: unknown time zone 'Mars'"));
    assert_eq!(set("partition", "3"), "E0100: unknown setting partition [did you mean partitions?]");
    assert!(set("datafusion.execution.batch_sise", "3").contains("did you mean datafusion.execution.batch_size?"));
    assert_eq!(set("datafusion.execution.batch_size", "100"), "SET");
    assert_eq!(show("datafusion.execution.batch_size"), "100");
    assert_eq!(shown(&session, parsed(Statement::Reset(name("max_batch_bytes")), "")), "RESET");
    assert_eq!(show("max_batch_bytes"), (256u64 << 20).to_string());
    assert!(shown(&session, parsed(Statement::Show(Show::Settings), "")).contains("levada.clock"));
}

#[test]
fn the_manual_clock_moves_forward_only() {
    let session = session();
    let advance = |to| shown(&session, parsed(Statement::AdvanceClock(to), ""));
    assert_eq!(
        advance(ClockMove::To(1)),
        "E0100: the clock is the system's [SET clock = 'manual' before the first START]"
    );
    let manual = Statement::Set { name: name("clock"), value: SetValue::Text("manual".into()) };
    assert_eq!(shown(&session, parsed(manual, "")), "SET");
    assert_eq!(advance(ClockMove::To(60_000)), "ADVANCE CLOCK");
    assert_eq!(advance(ClockMove::By(Interval { months: 0, micros: 1_500_000 })), "ADVANCE CLOCK");
    assert_eq!(
        advance(ClockMove::To(60_000)),
        "E0100: the clock never goes back: it stands at 1970-01-01T00:01:01.500Z"
    );
    assert!(advance(ClockMove::By(Interval { months: 1, micros: 0 })).contains("a month has no fixed length"));
    let now = shown(&session, select("SELECT now() AS t"));
    assert!(now.contains("1970-01-01T00:01:01.500"), "{now}");
}

#[test]
fn a_query_without_a_stream_is_not_started() {
    let session = session();
    let start = |text: &str, options: &[(&str, &str)]| {
        let start = StartQuery {
            if_not_exists: false,
            name: name("q"),
            target: None,
            query: query(text),
            mode: None,
            trigger: None,
            stop_after: None,
            checkpoint: None,
            options: with(options),
        };
        shown(&session, parsed(Statement::StartQuery(Box::new(start)), "START QUERY q AS …"))
    };
    assert_eq!(
        start("SELECT 1", &[]),
        "E0100: the query reads no stream [run the SELECT by itself: its answer will not change]"
    );
    assert_eq!(
        start("SELECT 1", &[("partition", "2")]),
        "E0100: unknown option partition of START QUERY [did you mean partitions?]"
    );
    assert!(session.running_queries().is_empty());
    assert!(!session.any_query_failed());
    let unknown = shown(&session, parsed(Statement::PauseQuery(name("q")), ""));
    assert_eq!(unknown, "E0100: there is no query \"q\"");
}

#[test]
fn errors_keep_their_place_and_name_the_closest_column() {
    let session = session();
    shown(&session, trips());
    let error = session.execute(&select("SELECT\n  kn FROM trips")).err().unwrap();
    assert_eq!(error.span().map(|s| (s.start.line, s.start.column)), Some((2, 3)));
    assert_eq!(said(error), "E0100: column \"kn\" not found [did you mean \"km\"?  (trips: ts, km, who)]");
    assert_eq!(
        shown(&session, select("SELECT lenght('a')")),
        "E0100: Invalid function 'lenght' [did you mean 'length'?]"
    );
    assert_eq!(shown(&session, select("SELECT * FROM late_rows('q')")), "E0200: not supported yet: late_rows('query')");
    shown(&session, sql("INSERT INTO trips (km) VALUES (0)"));
    assert_eq!(shown(&session, select("SELECT 1 / km FROM trips")), "E0700: division by zero");
}

#[test]
fn a_cancelled_statement_ends() {
    let session = session();
    let token = session.cancel_token();
    let endless = select("SELECT count(*) FROM generate_series(1, 1000000000000)");
    let Ok(Answer::Rows { mut rows, .. }) = session.execute(&endless) else { panic!("no rows") };
    token.cancel();
    assert!(matches!(rows.next(), Some(Err(Error::Cancelled { .. }))));
    assert!(rows.next().is_none());
    assert!(shown(&session, select("SELECT 1 AS one")).contains("one"), "the next statement begins anew");
}
