//! A Levada session, driven by statements.

use std::path::Path;
use std::sync::{Arc, Mutex};

use levada::error::{Location, Result};
use levada::parser::parse_one;
use levada::session::{Answer, Session, SessionOptions};

pub const BIDS: &str =
    "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, date_time TIMESTAMP(3), extra STRING";
pub const AUCTIONS: &str = "id BIGINT, seller BIGINT, category BIGINT, initial_bid BIGINT, reserve BIGINT, item_name STRING, date_time TIMESTAMP(3), expires TIMESTAMP(3)";
pub const USERS: &str = "user_id BIGINT, amount BIGINT, event_time TIMESTAMP(3)";

pub fn session() -> Session {
    let options = SessionOptions {
        output: Arc::new(Mutex::new(Box::new(std::io::sink()))),
        notices: Arc::new(|line| eprintln!("{line}")),
        failures: Arc::new(|line| eprintln!("{line}")),
        console_format: "csv".into(),
        empty_batches: false,
        test: None,
    };
    Session::new(options).expect("a session")
}

/// Runs a statement and drops its rows; the text of an answer that has one.
pub fn run(session: &Session, sql: &str) -> String {
    try_run(session, sql).unwrap_or_else(|e| panic!("{sql}: {e}"))
}

/// As [`run`], for a statement that may be refused.
pub fn try_run(session: &Session, sql: &str) -> Result<String> {
    Ok(match session.execute(&parse_one(sql, Location { line: 1, column: 1 })?)? {
        Answer::Rows { mut rows, .. } => {
            rows.try_for_each(|batch| batch.map(drop))?;
            String::new()
        }
        Answer::Text(text) => text,
        Answer::Done { tag, .. } => tag,
    })
}

/// A statement's rows as text, `a=1 b=2` each.
pub fn rows_of(session: &Session, sql: &str) -> String {
    let statement = parse_one(sql, Location { line: 1, column: 1 }).unwrap_or_else(|e| panic!("{sql}: {e}"));
    let answer = session.execute(&statement).unwrap_or_else(|e| panic!("{sql}: {e}"));
    let Answer::Rows { rows, .. } = answer else { return String::new() };
    let mut text = Vec::new();
    for batch in rows {
        let batch = batch.unwrap_or_else(|e| panic!("{sql}: {e}"));
        let schema = batch.schema();
        for row in 0..batch.num_rows() {
            let cells = schema.fields().iter().zip(batch.columns()).map(|(field, column)| {
                let value = arrow::util::display::array_value_to_string(column, row);
                format!("{}={}", field.name(), value.unwrap_or_else(|e| e.to_string()))
            });
            text.push(cells.collect::<Vec<_>>().join(" "));
        }
    }
    text.join("; ")
}

/// A stream over a folder of files.
pub struct Input {
    pub name: &'static str,
    /// The folder without its format: `bids` for `bids-json`.
    pub data: &'static str,
    pub columns: &'static str,
    pub watermark: Option<&'static str>,
}

/// A stream over a folder, one file a batch.
pub fn create_input(session: &Session, input: &Input, format: &str, place: &Path) {
    let Input { name, columns, .. } = input;
    let watermark =
        input.watermark.map(|c| format!(", WATERMARK FOR {c} AS {c} - INTERVAL '5 seconds'")).unwrap_or_default();
    run(
        session,
        &format!(
            "CREATE STREAM {name} ({columns}{watermark}) WITH (connector = 'file', path = '{}', format = '{format}', max_files_per_trigger = 1)",
            place.display()
        ),
    );
}

/// A number of each of a query's progress documents, oldest first.
pub fn progress(session: &Session, number: impl Fn(&serde_json::Value) -> Option<u64>) -> Vec<u64> {
    let text = run(session, "SHOW PROGRESS FOR q LAST 1000 FORMAT JSON");
    let documents = serde_json::Deserializer::from_str(&text).into_iter::<serde_json::Value>();
    let mut numbers = Vec::new();
    for document in documents {
        match document.unwrap_or_else(|e| panic!("{e}: {text}")) {
            serde_json::Value::Array(list) => numbers.extend(list.iter().filter_map(&number)),
            one => numbers.extend(number(&one)),
        }
    }
    numbers
}
