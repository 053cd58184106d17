//! The statements of the language, as docs/sql.md describes them: what may follow what.
//!
//! `WORD` is a keyword, `<slot>` a name or a part of another kind, `[ … ]` may be left out, `{ a | b }` is one of them,
//! `{ … }*` any number of them, `$name` one of the parts below. Each stands between blanks.

/// Parts of statements, by name.
pub(super) const PARTS: &[(&str, &str)] = &[
    ("$interval", "{ <text> | INTERVAL { <text> [ $unit ] | <number> $unit } }"),
    (
        "$unit",
        "{ MICROSECONDS | MILLISECONDS | SECOND | SECONDS | MINUTE | MINUTES | HOUR | HOURS | DAY | DAYS | WEEK | WEEKS }",
    ),
    ("$trigger", "{ EVERY $interval | AVAILABLE NOW | ONCE | CONTINUOUS $interval | MANUAL }"),
    ("$until", "[ LIMIT <number> | FOR <number> BATCHES ]"),
    ("$format", "{ CSV | JSON | PARQUET | ARROW }"),
];

/// Every statement.
pub(super) const STATEMENTS: &[&str] = &[
    "CREATE [ OR REPLACE ] STREAM [ IF NOT EXISTS ] <new> [ <elements> ] [ WITH <source-options> ]",
    "CREATE [ OR REPLACE ] SINK [ IF NOT EXISTS ] <new> WITH <sink-options>",
    "CREATE [ OR REPLACE ] VIEW [ IF NOT EXISTS ] <new> [ <brackets> ] AS <select>",
    "CREATE [ OR REPLACE ] TABLE [ IF NOT EXISTS ] <new> [ <columns> ] [ AS <select> ]",
    "CREATE EXTERNAL TABLE [ IF NOT EXISTS ] <new> [ <columns> ] \
     { STORED AS $format | LOCATION <path> | PARTITIONED BY <brackets> | WITH ORDER <brackets> | OPTIONS <brackets> }*",
    "CLOSE STREAM <fed>",
    "DROP STREAM [ IF EXISTS ] <stream>",
    "DROP SINK [ IF EXISTS ] <sink>",
    "DROP TABLE [ IF EXISTS ] <table>",
    "DROP VIEW [ IF EXISTS ] <view>",
    "DROP QUERY [ IF EXISTS ] <query>",
    "START QUERY [ IF NOT EXISTS ] <new> [ INTO { CONSOLE | BLACKHOLE | TABLE <table> | <sink> } ] AS <select> \
     { OUTPUT MODE { APPEND | UPDATE | COMPLETE } | TRIGGER $trigger | STOP AFTER <number> BATCHES \
     | CHECKPOINT <path> | WITH <query-options> }*",
    "STOP { QUERY <query> | ALL } [ AFTER <number> BATCHES | WHEN IDLE | DRAIN | NOW ] [ TIMEOUT $interval ]",
    "PAUSE QUERY <query>",
    "RESUME QUERY <query>",
    "AWAIT QUERY <query> [ <number> BATCHES | BATCH <number> | IDLE | TERMINATION ] [ TIMEOUT $interval ]",
    "ALTER QUERY <query> SET TRIGGER $trigger",
    "WATCH { <select> | <query> } $until",
    "SHOW { STREAMS | TABLES | VIEWS | SINKS | QUERIES | FUNCTIONS | ALL | FAILPOINTS | <setting> }",
    "SHOW CREATE { STREAM <stream> | SINK <sink> | QUERY <query> | TABLE <table> | VIEW <view> }",
    "SHOW COLUMNS { FROM | IN } <relation>",
    "SHOW PROGRESS [ FOR <query> ] [ LAST <number> ] [ FORMAT JSON ]",
    "SHOW PROGRESS LIVE",
    "SHOW STATUS [ FOR <query> ]",
    "SHOW STATE FOR <query>",
    "DESCRIBE <anything>",
    "DESC <anything>",
    "EXPLAIN [ ANALYZE ] [ VERBOSE ] <select>",
    "EXPLAIN STATE { <select> | <query> }",
    "EXPLAIN { QUERY | WHY } <query>",
    "VERIFY QUERY <query>",
    "SET <setting> { = | TO } <value>",
    "SET TIME ZONE = <text>",
    "RESET <setting>",
    "ADVANCE CLOCK { BY $interval | TO [ TIMESTAMP ] <text> }",
    "STEP QUERY <query> [ <number> BATCHES | EMPTY ]",
    "CRASH QUERY <query> AT <failpoint> [ HIT <number> ] [ AS { KILL | ERROR | TORN <number> | ENOSPC | LOST_FSYNC } ]",
    "INSERT INTO <writable> [ <its-columns> ] { VALUES <expressions> | <select> }",
    "UPDATE <table> SET <expressions>",
    "DELETE FROM <table> [ WHERE <expressions> ]",
    "COPY { <relation> | <subquery> } TO <path> { STORED AS $format | OPTIONS <brackets> | PARTITIONED BY <brackets> }*",
    "<select>",
];

/// One element of the list of CREATE STREAM.
pub(super) const ELEMENTS: &[&str] = &[
    "WATERMARK FOR <declared> AS <declared> [ - $interval ] { IDLE AFTER $interval | MAX FUTURE SKEW $interval }*",
    "<new> <type> [ NOT NULL | METADATA FROM <metadata> | AS <brackets> ]",
    "<new> AS <brackets>",
];

/// One element of the list of CREATE TABLE.
pub(super) const COLUMNS: &[&str] =
    &["<new> <type> { NOT NULL | NULL | DEFAULT <value> | PRIMARY KEY | UNIQUE }*", "PRIMARY KEY <brackets>"];

/// The types of columns.
pub(super) const TYPES: &[&str] = &[
    "BIGINT",
    "BOOLEAN",
    "BYTEA",
    "DATE",
    "DECIMAL",
    "DOUBLE",
    "FLOAT",
    "INT",
    "INTERVAL",
    "SMALLINT",
    "STRING",
    "TEXT",
    "TIME",
    "TIMESTAMP",
    "TIMESTAMPTZ",
    "TINYINT",
    "VARCHAR",
];
