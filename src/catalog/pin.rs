//! The CREATE STREAM text that pins an inferred schema.

use std::fmt::Write;

use arrow::datatypes::Schema;

use super::types::{ident, to_sql};
use crate::options::{OptionEntry, OptionValue};
use crate::parser::{CreateStream, Interval};

/// The text of `create` with the columns of `schema`, one a line.
pub(super) fn text(create: &CreateStream, schema: &Schema) -> String {
    let mut lines: Vec<String> = Vec::new();
    for field in schema.fields() {
        let not_null = if field.is_nullable() { "" } else { " NOT NULL" };
        lines.push(format!("{} {}{not_null}", ident(field.name()), to_sql(field.data_type())));
    }
    if let Some(w) = &create.watermark {
        let column = ident(&w.column.value);
        let mut line = format!("WATERMARK FOR {column} AS {column} - {}", interval(&w.delay));
        for (words, value) in [("IDLE AFTER", &w.idle_after), ("MAX FUTURE SKEW", &w.max_future_skew)] {
            if let Some(value) = value {
                let _ = write!(line, " {words} {}", interval(value));
            }
        }
        lines.push(line);
    }
    let mut text = format!("CREATE STREAM {} (\n    {}\n)", ident(&create.name.value), lines.join(",\n    "));
    if let Some(options) = create.options.as_ref().filter(|o| !o.entries.is_empty()) {
        let entries: Vec<_> = options.entries.iter().map(entry).collect();
        let _ = write!(text, " WITH ({})", entries.join(", "));
    }
    text
}

fn entry(entry: &OptionEntry) -> String {
    let value = match &entry.value {
        OptionValue::Text(text) => format!("'{}'", text.replace('\'', "''")),
        OptionValue::Number(number) => number.clone(),
        OptionValue::Bool(value) => value.to_string(),
    };
    format!("{} = {value}", entry.name)
}

fn interval(interval: &Interval) -> String {
    const UNITS: [(i64, &str); 5] = [
        (86_400_000_000, "days"),
        (3_600_000_000, "hours"),
        (60_000_000, "minutes"),
        (1_000_000, "seconds"),
        (1_000, "milliseconds"),
    ];
    let mut parts = Vec::new();
    if interval.months != 0 {
        parts.push(format!("{} months", interval.months));
    }
    let exact = UNITS.iter().find(|(size, _)| interval.micros % size == 0);
    match exact {
        _ if interval.micros == 0 && !parts.is_empty() => {}
        _ if interval.micros == 0 => parts.push("0 seconds".into()),
        Some((size, unit)) => parts.push(format!("{} {unit}", interval.micros / size)),
        None => parts.push(format!("{} microseconds", interval.micros)),
    }
    format!("INTERVAL '{}'", parts.join(" "))
}
