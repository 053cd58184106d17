//! What is refused, where, and with which help.

use super::*;

/// A text and the whole complaint.
const COMPLAINTS: &[(&str, &str)] = &[
    ("SELECT 1 UNION TABLE t", "1:1-23 TABLE as a query is not supported | write SELECT * FROM the table"),
    ("SET \".\".a = 1", "1:5-10 a part of the setting's name is empty"),
    ("CREAT STREAM s", "1:1-6 expected a statement, found CREAT | did you mean CREATE?"),
    (
        "CREATE STREM s",
        "1:8-13 expected STREAM, SINK, TABLE, VIEW or EXTERNAL TABLE, found STREM | did you mean STREAM?",
    ),
    ("CREATE STREAM", "1:14-14 expected the name of the stream, found the end of the statement"),
    ("CREATE STREAM (a INT)", "1:15-16 expected the name of the stream, found ("),
    (
        "CREATE STREAM select",
        "1:15-21 expected the name of the stream, found select | select is a reserved word; as a name it is written \"select\"",
    ),
    (
        "CREATE STREAM a.b",
        "1:16-17 the name of the stream has no schema | all streams, sinks, views and queries share one catalog; leave the part before the dot out",
    ),
    (
        "CREATE OR REPLACE STREAM IF NOT EXISTS s",
        "1:26-39 OR REPLACE and IF NOT EXISTS contradict each other | leave one of them out",
    ),
    ("CREATE STREAM s ()", "1:18-19 expected a column, or WATERMARK FOR, found )"),
    ("CREATE STREAM s (a)", "1:19-20 expected the type of a, found )"),
    ("CREATE STREAM s (a INT NOT NUL)", "1:24-27 expected NOT NULL, METADATA FROM, AS (…), a comma or ), found NOT"),
    (
        "CREATE STREAM s (a INT PRIMARY KEY)",
        "1:24-31 expected NOT NULL, METADATA FROM, AS (…), a comma or ), found PRIMARY",
    ),
    (
        "CREATE STREAM s (a INT METADAT FROM 'x')",
        "1:24-31 expected NOT NULL, METADATA FROM, AS (…), a comma or ), found METADAT | did you mean METADATA?",
    ),
    (
        "CREATE STREAM s (a INT NOT NULL AS (1))",
        "1:33-35 expected a comma or ), found AS | a computed column takes no NOT NULL: leave it out",
    ),
    ("CREATE STREAM s (a INT, a TEXT)", "1:25-26 column a is given twice"),
    ("CREATE STREAM s (a INT AS (1 + ))", "1:32-33 expected an expression, found )"),
    ("CREATE STREAM s (a INT", "1:23-23 expected a comma or ), found the end of the statement"),
    (
        "CREATE STREAM s (WATERMARK FOR a AS b - '1 s')",
        "1:37-38 the watermark for a is made of b | write WATERMARK FOR a AS a - INTERVAL '10 seconds'",
    ),
    (
        "CREATE STREAM s (WATERMARK FOR a AS a + '1 s')",
        "1:39-40 expected -, found + | a watermark lags behind the time column",
    ),
    ("CREATE STREAM s (WATERMARK FOR a AS a - '-1 s')", "1:41-47 the delay of a watermark can't be negative"),
    (
        "CREATE STREAM s (WATERMARK FOR a AS a - '1 parsec')",
        "1:41-51 unknown unit 'parsec' in the interval '1 parsec' | units are microseconds, milliseconds, seconds, minutes, hours, days, weeks, months, quarters, years",
    ),
    (
        "CREATE STREAM s (WATERMARK FOR a AS a - '1 s' IDLE AFTER '1 s' IDLE AFTER '2 s')",
        "1:64-68 IDLE AFTER is given twice",
    ),
    (
        "CREATE STREAM s (WATERMARK FOR a AS a, WATERMARK FOR b AS b)",
        "1:40-60 a stream has one watermark | the other one stands at 1:18",
    ),
    (
        "CREATE STREAM s WITH (a = b)",
        "1:27-28 expected a value for a (a string, a number, TRUE or FALSE), found b | write 'b' in quotes",
    ),
    ("CREATE STREAM s WITH (a 'b')", "1:25-28 expected = and a value, found 'b'"),
    ("CREATE STREAM s WITH (a = 1, A = 2)", "1:30-35 option a is given twice | it stands at 1:23 too"),
    ("CREATE STREAM s WIHT (a = 1)", "1:17-21 expected (, WITH or the end, found WIHT | did you mean WITH?"),
    (
        "CREATE MATERIALIZED VIEW v AS SELECT 1",
        "1:8-20 materialized views are not supported | write START QUERY name INTO TABLE t AS SELECT …",
    ),
    (
        "CREATE QUERY q AS SELECT 1",
        "1:8-13 expected STREAM, SINK, TABLE or VIEW, found QUERY | a query is made by START QUERY",
    ),
    ("CREATE SINK s", "1:14-14 expected WITH, found the end of the statement"),
    ("DROP STREAM a, b", "1:14-15 expected the end of the statement, found , | DROP takes one name at a time"),
    ("DROP STREEM a", "1:6-12 expected STREAM, SINK, TABLE, VIEW or QUERY, found STREEM | did you mean STREAM?"),
    // START QUERY
    (
        "START QUERY AS SELECT 1",
        "1:13-15 expected the name of the query, found AS | AS is a reserved word; as a name it is written \"AS\"",
    ),
    ("START QUERY q SELECT 1", "1:15-21 expected INTO or AS, found SELECT"),
    (
        "START QUERY q OUTPUT MODE UPDATE AS SELECT 1",
        "1:15-21 expected INTO or AS, found OUTPUT | the clauses stand behind the SELECT: START QUERY name [INTO target] AS SELECT … [OUTPUT MODE …] [TRIGGER …] [CHECKPOINT …] [WITH (…)]",
    ),
    (
        "SHOW PROGRESS q",
        "1:15-16 expected FOR, LAST n, FORMAT JSON or the end, found q | that of one query is SHOW PROGRESS FOR q",
    ),
    ("START QUERY q AS", "1:17-17 expected a query, found the end of the statement"),
    ("START QUERY q AS SELECT 1 OUTPUT MOD UPDATE", "1:34-37 expected MODE, found MOD | did you mean MODE?"),
    (
        "START QUERY q AS SELECT a FROM s OUTPUT MODE UPDAT",
        "1:46-51 expected APPEND, UPDATE or COMPLETE, found UPDAT | did you mean UPDATE?",
    ),
    (
        "START QUERY q AS SELECT a FROM s TRIGER EVERY '1 s'",
        "1:34-40 expected OUTPUT MODE, TRIGGER, STOP AFTER, CHECKPOINT, WITH (…) or the end of the statement, found TRIGER | did you mean TRIGGER?",
    ),
    (
        "START QUERY q AS SELECT a FROM s TRIGGER EVRY '1 s'",
        "1:42-46 expected EVERY, AVAILABLE, ONCE, CONTINUOUS or MANUAL, found EVRY | did you mean EVERY?",
    ),
    (
        "START QUERY q AS SELECT a FROM s TRIGGER EVERY 10 SECONDS",
        "1:48-58 expected an interval such as '10 seconds', found 10 SECONDS | write '10 SECONDS' or INTERVAL '10 SECONDS'",
    ),
    (
        "START QUERY q AS SELECT a FROM s TRIGGER EVERY INTERVAL '-1' SECOND",
        "1:48-68 the interval of a trigger can't be negative",
    ),
    (
        "START QUERY q AS SELECT a FROM s TRIGGER EVERY '1 month'",
        "1:48-57 a month has no fixed length | TRIGGER EVERY '30 days'",
    ),
    (
        "START QUERY q AS SELECT a FROM s TRIGGER EVERY '1500 us' STOP AFTER 1 BATCHES",
        "1:48-57 a trigger's interval is a whole number of milliseconds | TRIGGER EVERY '1 millisecond'",
    ),
    (
        "ALTER QUERY q SET TRIGGER EVERY INTERVAL 0 SECONDS",
        "1:33-51 a trigger's interval can't be 0 | without TRIGGER a batch runs as soon as there is data",
    ),
    (
        "START QUERY q AS SELECT a FROM s STOP AFTER 0 BATCHES",
        "1:45-46 the number of batches must be at least 1, it is 0",
    ),
    (
        "START QUERY q AS SELECT a FROM s STOP AFTER 1.5 BATCHES",
        "1:45-48 the number of batches must be a whole number, it is 1.5",
    ),
    ("START QUERY q AS SELECT a FROM s STOP AFTER -1 BATCHES", "1:45-46 the number of batches can't be negative"),
    (
        "START QUERY q AS SELECT a FROM s CHECKPOINT /tmp",
        "1:45-46 expected the checkpoint's location in quotes, found /",
    ),
    ("START QUERY q AS SELECT a FROM s CHECKPOINT ''", "1:45-47 the checkpoint's location can't be empty"),
    (
        "START QUERY q AS SELECT a FROM s WITH (a = b)",
        "1:44-45 expected a value for a (a string, a number, TRUE or FALSE), found b | write 'b' in quotes",
    ),
    (
        "START QUERY q AS SELECT a FROM s TRIGGER ONCE\n OUTPUT MODE UPDATE TRIGGER MANUAL",
        "2:21-28 TRIGGER is given twice | it stands at 1:34 too",
    ),
    (
        "START QUERY q AS SELECT a FORM s TRIGGER ONCE",
        "1:32-33 expected the end of the query, found s | did you mean FROM instead of FORM?",
    ),
    ("START QUERY q AS SELECT TRIGGER ONCE", "1:25-32 expected an expression, found TRIGGER"),
    ("START QUERY q AS SELECT a FROM s GROUP OUTPUT MODE UPDATE", "1:34-39 expected the end of the query, found GROUP"),
    (
        "START QUERY q INTO TABLE AS SELECT 1",
        "1:26-28 expected the name of the table, found AS | AS is a reserved word; as a name it is written \"AS\"",
    ),
    // Queries
    (
        "SELECT a FROM s OUTPUT MODE UPDATE",
        "1:17-23 expected the end of the query, found OUTPUT | this clause belongs to START QUERY name AS SELECT …",
    ),
    (
        "SELECT a FROM s TRIGGER ONCE",
        "1:25-29 expected the end of the query, found ONCE | this clause belongs to START QUERY name AS SELECT …",
    ),
    ("SELECT a FORM s", "1:15-16 expected the end of the query, found s | did you mean FROM instead of FORM?"),
    ("SELECT", "1:7-7 expected an expression, found the end of the statement"),
    (
        "SELECT a FROM s WHER a = 1",
        "1:22-23 expected the end of the query, found a | did you mean WHERE instead of WHER?",
    ),
    ("SELECT a\nFROM s\nWHERE (a = 1", "3:13-13 expected ), found the end of the statement"),
    ("SELECT 'größe', ) FROM s", "1:17-18 expected an expression, found )"),
    (
        "SELECT a FROM s WITH (x = 1)",
        "1:15-16 a list of hints behind a table is not supported | options of a stream belong to CREATE STREAM, those of a query to the end of START QUERY",
    ),
    ("SELECT a INTO t FROM s", "1:15-16 SELECT … INTO is not supported | write CREATE TABLE name AS SELECT …"),
    (
        "SELECT a FROM s LATERAL VIEW explode(x) t AS y",
        "1:1-7 LATERAL VIEW is not supported | write CROSS JOIN UNNEST(column)",
    ),
    (
        "SELECT a FROM s FOR UPDATE",
        "1:1-16 FOR UPDATE and FOR SHARE is not supported | nothing is locked; leave it out",
    ),
    (
        "SELECT a FROM s TABLESAMPLE (10 PERCENT)",
        "1:15-16 TABLESAMPLE is not supported | write WHERE with a condition on a column",
    ),
    ("SELECT a FROM s WITH WATERMARK ts", "1:34-34 expected DELAY, found the end of the statement"),
    ("SELECT a FROM s WITH WATERMARK ts DELY '1 s'", "1:35-39 expected DELAY, found DELY | did you mean DELAY?"),
    ("SELECT a FROM s WITH WATERMARK ts DELAY '-1 s'", "1:41-47 the delay of a watermark can't be negative"),
    (
        "SELECT a FROM s WITH WATERMARK ts DELAY '1 s' WHERE a = 1",
        "1:47-52 expected the end of the SELECT behind WITH WATERMARK, found WHERE | WITH WATERMARK stands behind FROM, WHERE, GROUP BY and HAVING, and before ORDER BY and LIMIT",
    ),
    (
        "SELECT a FROM s AS x WATERMARK ts DELAY OF '1 s'",
        "1:32-49 WATERMARK … DELAY OF stands between a table and its alias | write FROM stream WATERMARK column DELAY OF INTERVAL 10 SECONDS AS alias",
    ),
    ("VALUES (1) WITH WATERMARK ts DELAY '1 s'", "1:12-16 WITH WATERMARK belongs to a SELECT, and there is none here"),
    (
        "SELECT 1 UNION VALUES (1) WITH WATERMARK ts DELAY '1 s'",
        "1:27-31 WITH WATERMARK belongs to a SELECT, and there is none here",
    ),
    (
        "SELECT DISTINCT WITHIN WATERMARK a FROM s",
        "1:17-23 WITHIN WATERMARK belongs behind DISTINCT ON (…) | write SELECT DISTINCT ON (keys) WITHIN WATERMARK columns FROM …",
    ),
    ("SELECT * FROM TUMBLE(s PARTITION BY a, ts, '1 s')", "1:24-33 only SESSION takes PARTITION BY"),
    (
        "SELECT * FROM SESSION(s PARTITION BY a, ts)",
        "1:25-34 SESSION wants the time column and the gap behind its keys | write SESSION(stream PARTITION BY key, time, '5 minutes')",
    ),
    (
        "INSERT INTO t SELECT a FROM s WITH WATERMARK ts DELAY '1 s'",
        "1:31-35 WITH WATERMARK has no effect in this statement | it belongs to START QUERY, WATCH, EXPLAIN, a SELECT by itself, or CREATE VIEW",
    ),
    ("SELECT a FROM s GROUP BY a WITH ROLLUP", "1:28-32 expected the end of the query, found WITH"),
    // The rest
    ("STOP q", "1:6-7 expected QUERY or ALL, found q"),
    ("STOP QUERY q WHEN IDL", "1:19-22 expected IDLE, found IDL | did you mean IDLE?"),
    ("STOP QUERY q DRAIN NOW", "1:20-23 expected TIMEOUT or the end of the statement, found NOW"),
    ("AWAIT QUERY q 0 BATCHES", "1:15-16 the number of batches must be at least 1, it is 0"),
    ("AWAIT QUERY q 3", "1:16-16 expected BATCHES, found the end of the statement"),
    (
        "AWAIT QUERY q TERMINATON",
        "1:15-25 expected n BATCHES, BATCH n, IDLE, TERMINATION, TIMEOUT or the end of the statement, found TERMINATON | did you mean TERMINATION?",
    ),
    ("ALTER QUERY q SET TRIGER ONCE", "1:19-25 expected TRIGGER, found TRIGER | did you mean TRIGGER?"),
    ("WATCH", "1:6-6 expected a SELECT or the name of a query, found the end of the statement"),
    ("WATCH q LIMIT 0", "1:15-16 the number of rows must be at least 1, it is 0"),
    ("WATCH SELECT 1 LIMIT 5 FOR 2 BATCHES", "1:16-21 WATCH ends by LIMIT or by FOR … BATCHES, not by both"),
    ("SHOW STREAM", "1:6-12 there is no SHOW STREAM | did you mean SHOW STREAMS?"),
    ("SHOW", "1:5-5 expected what to show, found the end of the statement"),
    ("SHOW PROGRESS LAST 0", "1:20-21 the number of batches must be at least 1, it is 0"),
    ("SHOW PROGRESS FORMAT XML", "1:22-25 expected JSON, found XML"),
    ("EXPLAIN q", "1:9-10 expected a SELECT, QUERY, WHY or STATE, found q"),
    ("EXPLAIN WYH q", "1:9-12 expected a SELECT, QUERY, WHY or STATE, found WYH | did you mean WHY?"),
    ("SET clock 'manual'", "1:11-19 expected =, found 'manual'"),
    (
        "SET clock =",
        "1:12-12 expected a value (a string, a number, a word, TRUE, FALSE or DEFAULT), found the end of the statement",
    ),
    ("ADVANCE CLOCK BY '-1 s'", "1:18-24 the interval can't be negative"),
    ("ADVANCE CLOCK TO TIMESTAMP 'noon'", "1:28-34 'noon' is no timestamp | write TIMESTAMP '2024-01-01 00:00:00'"),
    (
        "ADVANCE CLOCK TO '2024-01-01 00:00:00.0001'",
        "1:18-44 '2024-01-01 00:00:00.0001' is finer than a millisecond, and the clock is not",
    ),
    ("STEP QUERY q 0 BATCHES", "1:14-15 the number of batches must be at least 1, it is 0"),
    (
        "STEP QUERY q EMTY",
        "1:14-18 expected n BATCHES, EMPTY or the end of the statement, found EMTY | did you mean EMPTY?",
    ),
    ("CRASH QUERY q AT 'x' AS torn", "1:29-29 expected the number of bytes written, found the end of the statement"),
    ("CRASH QUERY q AT 'x' HIT 0", "1:26-27 the number behind HIT must be at least 1, it is 0"),
    ("PAUSE q", "1:7-8 expected QUERY, found q"),
    ("SELECT 1; SELECT 2", "1:9-10 expected the end of the statement, found ;"),
    ("SELECT 'abc", "1:8-9 the string that begins here never ends | close it with '"),
    ("SELECT /* abc", "1:8-9 the comment that begins here never ends | close it with */"),
    ("SELECT \"abc", "1:8-9 the quoted identifier that begins here never ends | close it with the same quote"),
    ("SELECT E'a\\u0000b'", "1:11-17 \\u0000 is the character NUL, which no text can hold | leave it out"),
    ("SELECT e'it''s\n\\x00'", "2:1-5 \\x00 is the character NUL, which no text can hold | leave it out"),
    (
        "SELECT $1 + $2",
        "1:8-10 $1 stands for a value, and none is given | the shell's \\bind gives it: SELECT $1 \\bind 5 \\g; so do PREPARE and EXECUTE",
    ),
    ("SELECT 1 WHERE 2 > :least", "1:20-26 the variable least is not set | \\set least VALUE sets it"),
    ("SELECT $x$abc", "1:8-9 the dollar quote that begins here never ends | close it with the same tag"),
    ("\\d", "1:1-2 expected a statement, found \\"),
    (".tables", "1:1-2 expected a statement, found ."),
];

#[test]
fn every_complaint() {
    let wrong: Vec<String> = COMPLAINTS
        .iter()
        .map(|(text, wanted)| (text, complaint(text), wanted))
        .filter(|(_, found, wanted)| found != *wanted)
        .map(|(text, found, wanted)| format!("{text}\n  found  {found}\n  wanted {wanted}"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn places_are_the_inputs() {
    let error = parse_one("SELECT\n  ) ;", Location { line: 7, column: 12 }).unwrap_err();
    assert_eq!(error.span().unwrap().start, Location { line: 8, column: 3 });
    let error = parse_one("SELEC 1", Location { line: 7, column: 12 }).unwrap_err();
    assert_eq!(error.span().unwrap().start, Location { line: 7, column: 12 });
}
