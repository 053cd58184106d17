//! Cases of completion: a text with the cursor at `|`, and what may stand there.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};

use super::commands::Shape;
use super::files::{Entry, Files};
use super::snapshot::{Named, Names, Snapshot};
use super::{Completion, complete};
use crate::catalog::Kind;
use crate::options::{OptionKind, OptionSpec};
use crate::session::{FunctionName, Relation};

struct Folder;

impl Files for Folder {
    fn list(&self, folder: &str) -> Vec<Entry> {
        let names: &[&str] = match folder {
            "" => &["in/", "it's.csv", "job.sql", "my file.sql", ".hidden"],
            "in" => &["a.json", "b/"],
            _ => &[],
        };
        let entry =
            |name: &&str| Entry { name: name.trim_end_matches('/').to_string(), is_folder: name.ends_with('/') };
        names.iter().map(entry).collect()
    }
}

fn schema(columns: &[(&str, DataType)]) -> SchemaRef {
    let fields: Vec<Field> = columns.iter().map(|(name, of)| Field::new(*name, of.clone(), true)).collect();
    Arc::new(Schema::new(fields))
}

fn snapshot() -> Snapshot {
    let time = || DataType::Timestamp(TimeUnit::Microsecond, None);
    let address = DataType::Struct(vec![Field::new("city", DataType::Utf8, true)].into());
    let relation = |name: &str, kind, columns: &[(&str, DataType)]| Relation {
        name: name.to_string(),
        kind,
        schema: schema(columns),
        takes_rows: name != "clicks" && kind != Kind::View,
    };
    let mut snapshot = Snapshot::default();
    snapshot.take_relations(vec![
        relation("orders", Kind::Stream, &[("id", DataType::Int64), ("customer", DataType::Int64), ("ts", time())]),
        relation("clicks", Kind::Stream, &[("page", DataType::Utf8), ("at", time())]),
        relation("customers", Kind::Table, &[("id", DataType::Int64), ("name", DataType::Utf8), ("address", address)]),
        relation("Odd one", Kind::Table, &[("Select", DataType::Int64)]),
        relation("evil\u{1b}[2J", Kind::Table, &[("id", DataType::Int64)]),
        relation("dear", Kind::View, &[("amount", DataType::Int64)]),
    ]);
    let names = |names: &[&str], detail| {
        Names::new(names.iter().map(|name| Named::new(name.to_string(), detail, None)).collect())
    };
    snapshot.sinks = names(&["out", "late"], "sink");
    snapshot.queries = names(&["per_min", "q"], "running");
    let mut functions: Vec<FunctionName> = ["count", "cume_dist", "date_trunc", "now", "sum"]
        .map(|name| FunctionName { name: name.into(), signature: None })
        .into();
    functions[2].signature = Some("date_trunc(precision, expression)".into());
    snapshot.functions = Arc::new(functions);
    snapshot.table_functions = Arc::new(vec!["generate_series".into()]);
    let clock = OptionSpec { name: "clock", kind: OptionKind::OneOf(&["system", "manual"]), help: "" };
    let batches = OptionSpec { name: "no_data_batches", kind: OptionKind::Bool, help: "" };
    snapshot.settings = Arc::new(vec![
        ("clock".into(), Some(clock)),
        ("no_data_batches".into(), Some(batches)),
        ("datafusion.execution.batch_size".into(), None),
        ("datafusion.explain.format".into(), None),
    ]);
    snapshot.commands = Arc::new(
        [
            ("\\d", "[NAME]"),
            ("\\ds", "[PATTERN]"),
            ("\\i", "FILE"),
            ("\\x", "[on|off|auto]"),
            (".tables", "[NAME]"),
            ("\\stop", "QUERY|all"),
            ("\\q", ""),
            ("\\cd", "[FOLDER]"),
            ("\\feed", "STREAM (VALUE, …) [, …]"),
            ("\\chart", "[COLUMN] [bars|lines]"),
            ("\\crosstabview", "[colV [colH [colD [sortcolH]]]]"),
            ("\\set", "[NAME [TEXT …]]"),
            ("\\unset", "NAME"),
            ("\\echo", "[-n] TEXT"),
        ]
        .map(|(name, arguments)| Shape { name, arguments: arguments.into() })
        .into(),
    );
    let result = schema(&[("page", DataType::Utf8), ("Hits", DataType::Int64)]);
    snapshot.with(vec!["pages".to_string(), "ratio".to_string()], Some(result))
}

fn at(marked: &str) -> Completion {
    let at = marked.find('|').unwrap();
    complete(&snapshot(), &Folder, &marked.replacen('|', "", 1), at)
}

/// What takes the place of what was typed.
fn answers(marked: &str) -> Vec<String> {
    at(marked).candidates.into_iter().map(|candidate| candidate.replacement).collect()
}

/// Every answer, in this order.
fn exactly(cases: &[(&str, &[&str])]) {
    for (marked, expected) in cases {
        assert_eq!(answers(marked), *expected, "{marked}");
    }
}

/// Answers that must be among others, and (behind `!`) answers that must not be.
fn among(cases: &[(&str, &[&str])]) {
    for (marked, expected) in cases {
        let answers = answers(marked);
        for wanted in *expected {
            let (absent, wanted) = wanted.strip_prefix('!').map_or((false, *wanted), |wanted| (true, wanted));
            let found = answers.iter().any(|answer| answer == wanted);
            assert!(found != absent, "{marked}: {wanted} is {} in {answers:?}", if absent { "" } else { "not" });
        }
    }
}

#[test]
fn statements_word_by_word() {
    exactly(&[
        ("CRE|", &["CREATE"]),
        ("cre|", &["create"]),
        ("CREATE STR|", &["STREAM"]),
        ("CREATE OR |", &["REPLACE"]),
        ("CREATE OR REPLACE S|", &["STREAM", "SINK"]),
        ("CREATE STREAM IF |", &["NOT"]),
        ("start query q |", &["into", "as"]),
        ("START QUERY q INTO |", &["late", "out", "CONSOLE", "BLACKHOLE", "TABLE"]),
        ("START QUERY q AS SELECT id FROM orders OUTPUT |", &["MODE"]),
        ("START QUERY q AS SELECT id FROM orders OUTPUT MODE |", &["APPEND", "UPDATE", "COMPLETE"]),
        ("START QUERY q AS SELECT id FROM orders TRIGGER A|", &["AVAILABLE"]),
        ("START QUERY q AS SELECT id FROM orders STOP AFTER 3 |", &["BATCHES"]),
        ("STOP QUERY q |", &["AFTER", "WHEN", "DRAIN", "NOW", "TIMEOUT"]),
        ("AWAIT QUERY q 3 |", &["BATCHES"]),
        ("ADVANCE |", &["CLOCK"]),
        ("ADVANCE CLOCK BY INTERVAL 10 S|", &["SECOND", "SECONDS"]),
        ("EXPLAIN W|", &["WITH", "WHY"]),
        ("EXPLAIN WHY |", &["per_min", "q"]),
        ("SHOW PROGRESS |", &["FOR", "LAST", "FORMAT", "LIVE"]),
        ("SHOW CREATE V|", &["VIEW"]),
        ("DROP STREAM IF EXISTS c|", &["clicks"]),
        ("SELECT 1; DROP SI|", &["SINK"]),
        ("CRASH QUERY q AT 'commit|", &["'commit.before'", "'commit.after'"]),
        ("ALTER QUERY q SET |", &["TRIGGER"]),
    ]);
    among(&[
        ("|", &["CREATE", "SELECT", "START", "SHOW", "STOP", "EXPLAIN", "!OUTPUT"]),
        ("START QUERY q AS SELECT id FROM orders |", &["OUTPUT", "TRIGGER", "CHECKPOINT", "WITH", "WHERE", "JOIN"]),
        ("START QUERY q AS SELECT |", &["!OUTPUT", "!TRIGGER"]),
        ("START QUERY q AS SELECT id FROM orders OUTPUT MODE UPDATE |", &["TRIGGER", "CHECKPOINT", "!WHERE"]),
    ]);
}

#[test]
fn names_that_fit() {
    exactly(&[
        ("SELECT * FROM cl|", &["clicks"]),
        ("SELECT * FROM \"O|", &["\"orders\"", "\"Odd one\""]),
        ("SELECT * FROM odd|", &["\"Odd one\""]),
        ("SELECT * FROM gen|", &["generate_series("]),
        // A name that could move the cursor is not offered.
        ("SELECT * FROM ev|", &[]),
        ("STOP QUERY p|", &["per_min"]),
        // Only what INSERT may name.
        ("CLOSE STREAM |", &["orders"]),
        ("DROP SINK |", &["late", "out", "IF"]),
        ("INSERT INTO c|", &["customers"]),
        ("INSERT INTO orders (c|", &["customer"]),
        ("DESCRIBE per|", &["per_min"]),
        ("UPDATE customers SET na|", &["name"]),
        ("DELETE FROM customers WHERE na|", &["name"]),
    ]);
    among(&[
        ("SELECT * FROM |", &["orders", "customers", "dear", "TUMBLE(", "!out", "!count("]),
        ("SELECT * FROM orders o JOIN |", &["orders", "customers", "!out"]),
        ("WITH recent AS (SELECT id FROM orders) SELECT * FROM re|", &["recent"]),
        ("SELECT * FROM TUMBLE(|", &["orders", "clicks"]),
    ]);
}

#[test]
fn columns_on_both_sides_of_the_cursor() {
    exactly(&[
        ("SELECT cus| FROM orders o", &["customer"]),
        // No table is written yet: any may be meant.
        ("SELECT cus|", &["customer"]),
        ("SELECT am|, id", &["amount"]),
        ("SELECT o.| FROM orders o", &["id", "customer", "ts"]),
        ("SELECT o.c| FROM orders o JOIN customers c ON o.customer = c.id", &["customer"]),
        ("SELECT orders.i| FROM orders", &["id"]),
        ("SELECT c.address.| FROM customers c", &["city"]),
        ("SELECT address.c| FROM customers", &["city"]),
        ("SELECT window.s| FROM orders GROUP BY window(ts, '1 minute')", &["start"]),
        ("SELECT \"Sel| FROM \"Odd one\"", &["\"Select\""]),
        ("SELECT sel| FROM \"Odd one\"", &["\"Select\""]),
        ("SELECT x.n| FROM (SELECT name AS nick, 1 AS other FROM customers) x", &["nick"]),
        ("SELECT x.| FROM (SELECT o.*, count(*) AS n FROM orders o) AS x", &["id", "customer", "ts", "n"]),
        ("WITH r (a, b) AS (SELECT id, ts FROM orders) SELECT r.| FROM r", &["a", "b"]),
        ("SELECT window_s| FROM TUMBLE(clicks, at, '1 minute')", &["window_start"]),
        ("SELECT pa| FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(at), '1 minute'))", &["page"]),
        ("START QUERY q INTO out AS SELECT pag| FROM clicks OUTPUT MODE APPEND", &["page"]),
    ]);
    among(&[
        ("SELECT |\nFROM orders", &["id", "customer", "ts", "!page"]),
        ("SELECT id FROM orders WHERE |", &["customer", "!page"]),
        ("SELECT id FROM orders o, clicks c WHERE |", &["customer", "page", "o.", "c."]),
        ("SELECT id FROM orders GROUP BY |", &["customer", "window(", "session_window("]),
        // A subquery sees the query around it; its own tables do not reach out.
        ("SELECT * FROM orders WHERE EXISTS (SELECT | FROM customers)", &["name", "customer"]),
        ("SELECT | FROM orders WHERE id IN (SELECT id FROM customers)", &["customer", "!name"]),
        // Each side of a UNION has its own tables.
        ("SELECT | FROM orders UNION ALL SELECT name FROM customers", &["customer", "!name"]),
        ("SELECT name FROM customers UNION ALL SELECT | FROM orders", &["customer", "!name"]),
        ("SELECT count(| FROM orders", &["customer", "DISTINCT"]),
    ]);
    // What ranks first: a column, before functions and keywords that begin the same.
    assert_eq!(answers("SELECT c| FROM orders o")[0], "customer");
}

#[test]
fn functions_and_their_arguments() {
    exactly(&[
        ("SELECT dat|", &["date_trunc(", "date"]),
        ("SELECT DAT|", &["DATE_TRUNC(", "DATE"]),
        ("SELECT coun|(*) FROM orders", &["count"]),
        ("SELECT CAST(id AS BIG| FROM orders", &["BIGINT"]),
        ("SELECT id::BIG| FROM orders", &["BIGINT"]),
    ]);
    among(&[
        ("SELECT count(*) FROM orders GROUP BY window(ts, s|", &["size => ", "slide => ", "sum("]),
        ("SELECT count(*) FROM orders GROUP BY session_window(ts, |", &["gap => ", "!slide => "]),
        ("SELECT * FROM HOP(orders, ts, |", &["slide => "]),
    ]);
    let shown: Vec<String> = at("SELECT date_t|").candidates.into_iter().map(|found| found.display).collect();
    assert_eq!(shown, ["date_trunc(precision, expression)"]);
}

#[test]
fn words_of_a_query() {
    exactly(&[
        ("SELECT id FR|", &["FROM"]),
        ("select id fr|", &["from"]),
        ("SELECT id FROM orders GR|", &["GROUP"]),
        ("SELECT id FROM orders GROUP |", &["BY"]),
        ("SELECT id FROM orders LEFT |", &["JOIN", "OUTER", "SEMI", "ANTI"]),
        ("SELECT id FROM orders WHERE id IS |", &["NULL", "NOT", "TRUE", "FALSE", "DISTINCT"]),
        ("SELECT id FROM orders ORDER BY id DE|", &["DESC"]),
        ("SELECT id AS |", &[]),
        ("SELECT CASE WHEN id = 1 TH| FROM orders", &["THEN"]),
        ("SELECT ts FROM orders WITH WATERM|", &["WATERMARK"]),
        ("SELECT ts FROM orders WITH WATERMARK t|", &["ts", "timestamp", "true"]),
        ("SELECT ts FROM orders WITH WATERMARK ts DEL|", &["DELAY"]),
    ]);
}

#[test]
fn options_of_the_connector_and_their_values() {
    exactly(&[
        ("CREATE STREAM s WITH (|", &["connector = '"]),
        ("CREATE STREAM s WITH (connector = 'ra|", &["'rate'", "'rate-micro-batch'"]),
        ("CREATE SINK s WITH (connector = 's|", &["'stdout'"]),
        ("CREATE STREAM s WITH (connector = 'file', for|", &["format = '"]),
        ("CREATE STREAM s WITH (for|, connector = 'file')", &["format = '"]),
        ("CREATE STREAM s WITH (connector = 'file', format = 'j|", &["'json'"]),
        ("CREATE STREAM s WITH (connector = 'file', header = |", &["TRUE", "FALSE"]),
        ("CREATE STREAM s WITH (connector = 'file', format = 'csv', dead_letter = '|", &["'late'", "'out'"]),
        ("CREATE STREAM s WITH (connector |", &["="]),
        ("CREATE STREAM s WITH (connector = 'file', path = '|", &["'in/", "'it''s.csv'", "'job.sql'", "'my file.sql'"]),
        ("CREATE STREAM s WITH (connector = 'file', path = 'in/|", &["'in/a.json'", "'in/b/"]),
        ("CREATE STREAM s WITH (connector = 'file', path = 's3://|", &[]),
        ("START QUERY q AS SELECT 1 FROM orders CHECKPOINT 'in/b|", &["'in/b/"]),
        ("START QUERY q AS SELECT 1 FROM orders WITH (static_re|", &["static_replay = '"]),
        ("START QUERY q AS SELECT 1 FROM orders WITH (static_replay = |", &["'logged'", "'latest'"]),
    ]);
    among(&[
        (
            "CREATE STREAM s WITH (connector = 'file', path = 'x', |",
            &["format = '", "header = ", "!path = '", "!connector = '"],
        ),
        ("CREATE SINK s WITH (connector = 'file', |", &["partition_by = '", "!header = "]),
    ]);
}

#[test]
fn elements_of_a_stream() {
    exactly(&[
        ("CREATE STREAM s (id BIG|", &["BIGINT"]),
        ("CREATE STREAM s (id BIGINT NOT |", &["NULL"]),
        ("CREATE STREAM s (id BIGINT, WATER|", &["WATERMARK"]),
        ("CREATE STREAM s (id BIGINT, ts TIMESTAMP, WATERMARK FOR |", &["id", "ts"]),
        ("CREATE STREAM s (id BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS t|", &["ts"]),
        ("CREATE STREAM s (WATERMARK FOR |, ts TIMESTAMP)", &["ts"]),
        ("CREATE STREAM s (d DECIMAL(10, 2) NO|", &["NOT"]),
        ("CREATE STREAM s (p TEXT METADATA FROM 'li|) WITH (connector = 'stdin')", &["'line'"]),
        ("CREATE STREAM s (ts TIMESTAMP, day AS (CAST(t|", &["ts"]),
    ]);
    among(&[(
        "CREATE STREAM s (ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '1 s' |",
        &["SECOND", "IDLE", "MAX", "!FOR"],
    )]);
}

#[test]
fn settings_and_their_values() {
    exactly(&[
        ("SET cl|", &["clock"]),
        ("SET clock |", &["=", "TO"]),
        ("SET clock = |", &["'system'", "'manual'", "DEFAULT"]),
        ("SET clock = 'm|", &["'manual'"]),
        ("SET no_data_batches = |", &["TRUE", "FALSE", "DEFAULT"]),
        ("RESET data|", &["datafusion."]),
        ("SET datafusion.ex|", &["execution.batch_size", "explain.format"]),
        ("SHOW no_d|", &["no_data_batches"]),
    ]);
}

#[test]
fn commands_in_both_alphabets() {
    exactly(&[
        ("\\d|", &["\\d", "\\ds"]),
        (".ta|", &[".tables"]),
        ("\\d cli|", &["clicks"]),
        ("\\ds |", &["clicks", "orders"]),
        (".tables de|", &["dear"]),
        ("\\x a|", &["auto"]),
        ("\\i |", &["in/", "'it''s.csv'", "job.sql", "'my file.sql'"]),
        ("\\i in/|", &["in/a.json", "in/b/"]),
        ("\\i 'my|", &["'my file.sql'"]),
        ("\\stop p|", &["per_min"]),
        ("\\pset format ma|", &["markdown"]),
        ("\\h start q|", &["START QUERY"]),
        ("\\h E0203|", &["E0203"]),
        ("\\stop a|", &["all"]),
        ("\\q |", &[]),
        ("SELECT 1 \\x o|", &["on", "off"]),
        ("\\cd |", &["in/"]),
        ("\\feed |", &["orders"]),
        ("\\chart |", &["page", "\"Hits\""]),
        ("\\chart page b|", &["bars"]),
        ("\\crosstabview page |", &["page", "\"Hits\""]),
        ("\\crosstabview \"h|", &["\"Hits\""]),
        // Of a statement that stands before it, its own columns.
        ("SELECT name AS n, id FROM customers \\chart |", &["n", "id"]),
        ("\\unset p|", &["pages"]),
        ("\\set QU|", &["QUIET"]),
        ("\\set ECHO a|", &["all"]),
        ("\\echo :r|", &[":ratio"]),
        ("SELECT :r|", &["ratio"]),
        ("SELECT \"H| FROM _", &["\"Hits\""]),
    ]);
}

#[test]
fn nothing_is_completed_where_nothing_can_be() {
    exactly(&[
        ("SELECT 'cus|", &[]),
        ("-- SEL|", &[]),
        ("SELECT 1|", &[]),
        ("CREATE STREAM new|", &[]),
        ("\\nothing x|", &[]),
    ]);
}

#[test]
fn any_text_and_any_place_is_answered() {
    let texts = [
        "SELECT ((( FROM (SELECT * FROM (a) b ) )))) JOIN , , WITH WITH (x = , = ) . . a.b.c.d",
        "CREATE STREAM s (a STRUCT<b INT, c ARRAY<INT>>, WATERMARK FOR) WITH (connector = 'file' path)",
        "WITH RECURSIVE a AS (SELECT 1 UNION ALL SELECT n FROM a) SELECT ü FROM \"ä\" 'ö",
        "\\d 'a \\ \n.x ;;; START QUERY START QUERY AS AS WITH (WITH (",
    ];
    for text in texts {
        for at in 0..=text.len() {
            let found = complete(&snapshot(), &Folder, text, at);
            assert!(found.start <= at && text.is_char_boundary(found.start), "{text:?} at {at}");
        }
    }
}

/// Of ten thousand tables only those are looked at that may be meant.
#[test]
fn ten_thousand_tables_cost_no_more_than_those_that_fit() {
    let schema = schema(&[("id", DataType::Int64), ("customer", DataType::Int64)]);
    let relation = |n: usize| Relation {
        name: format!("table_{n:05}"),
        kind: Kind::Table,
        schema: schema.clone(),
        takes_rows: true,
    };
    let mut snapshot = snapshot();
    snapshot.take_relations((0..10_000).map(relation).collect());
    let complete = |marked: &str| {
        let at = marked.find('|').unwrap();
        complete(&snapshot, &Folder, &marked.replacen('|', "", 1), at)
    };
    let found = complete("SELECT * FROM table_0123|");
    assert_eq!(found.candidates.len(), 10);
    assert!(found.examined < 100, "{}", found.examined);
    let found = complete("SELECT cus| FROM table_09999 t JOIN table_00001 u ON t.id = u.id");
    assert_eq!(found.candidates.len(), 1);
    assert!(found.examined < 200, "{}", found.examined);
    let found = complete("SELECT cus|");
    assert_eq!(found.candidates.len(), 1);
    assert!(found.examined < 11_000, "{}", found.examined);
    // So many are not shown; that there are more is.
    let found = complete("SELECT * FROM ta|");
    let more = found.candidates.iter().find(|found| found.display == "… 9000 more").unwrap();
    assert_eq!(more.replacement, "table_0");
    assert!(
        found.candidates.iter().all(|found| found.replacement.starts_with("ta") || found.replacement == "table"),
        "{:?}",
        found.candidates.last()
    );
    assert!(found.examined < 1_200, "{}", found.examined);
}
