//! `progress`: what a batch did, held against lines of keys and values.

use serde_json::Value;

use super::inspect::value_of;
use super::record::{Check, CheckOp};
use super::report::{Edit, Fault};
use super::run::FileRun;

impl FileRun<'_> {
    /// Holds the document of a batch against what is expected of it.
    ///
    /// # Errors
    /// A value is another; there is no such key.
    pub(super) fn progress(&self, query: &str, batch: Option<u64>, checks: &[Check]) -> Result<(), Fault> {
        let document = self.world.progress(query, batch)?;
        let mut edits = Vec::new();
        let (mut wanted, mut actual) = (Vec::new(), Vec::new());
        for check in checks {
            let value = value_of(&document, &check.key).map_err(Fault::text)?.unwrap_or(Value::Null);
            if !holds(check, &value).map_err(Fault::text)? {
                let op = CheckOp::ALL.iter().find(|(_, op)| *op == check.op).map_or("=", |(text, _)| text);
                wanted.push(format!("{} {op} {}", check.key, check.value));
                let line = format!("{} = {}", check.key, plain(&value));
                actual.push(line.clone());
                if check.op == CheckOp::Equal {
                    edits.push(Edit::Line(check.line, line));
                }
            }
        }
        if wanted.is_empty() {
            return Ok(());
        }
        let left = edits.len() < wanted.len();
        Err(Fault { edits, left, ..Fault::lines(format!("the progress of query {query}"), &wanted, &actual) })
    }
}

/// Whether a value of the document is as a line says; what is not there is `none` and nothing else.
fn holds(check: &Check, actual: &Value) -> Result<bool, String> {
    let wanted = check.value.as_str();
    if actual.is_null() && wanted != "none" {
        return Ok(false);
    }
    if actual.is_number() && check.op == CheckOp::NotEqual && wanted != "none" && wanted.parse::<f64>().is_err() {
        return Err(format!("{} is a number, and {wanted:?} is none", check.key));
    }
    Ok(match check.op {
        CheckOp::Equal => same_value(wanted, actual),
        CheckOp::NotEqual => !same_value(wanted, actual),
        CheckOp::Matches => {
            let regex = regex::Regex::new(wanted).map_err(|e| format!("{wanted:?} is no regular expression: {e}"))?;
            regex.is_match(&plain(actual))
        }
        CheckOp::Less | CheckOp::LessOrEqual | CheckOp::Greater | CheckOp::GreaterOrEqual => {
            let order = match (instant(wanted), instant(&plain(actual))) {
                (Some(wanted), Some(actual)) => actual.partial_cmp(&wanted),
                _ => {
                    let number = wanted.parse::<f64>().map_err(|_| format!("{wanted:?} is no number and no time"))?;
                    actual.as_f64().and_then(|actual| actual.partial_cmp(&number))
                }
            };
            match check.op {
                CheckOp::Less => order.is_some_and(std::cmp::Ordering::is_lt),
                CheckOp::LessOrEqual => order.is_some_and(std::cmp::Ordering::is_le),
                CheckOp::Greater => order.is_some_and(std::cmp::Ordering::is_gt),
                _ => order.is_some_and(std::cmp::Ordering::is_ge),
            }
        }
    })
}

/// Whether a value is what is written: the same text, number or time; `none` where there is nothing.
pub fn same_value(wanted: &str, actual: &Value) -> bool {
    let text = plain(actual);
    if wanted == text {
        return true;
    }
    if let (Some(wanted), Some(actual)) = (instant(wanted), instant(&text)) {
        return wanted == actual;
    }
    match (wanted.parse::<f64>(), actual.as_f64()) {
        (Ok(wanted), Some(actual)) => wanted == actual,
        _ => wanted.trim_matches('\'') == text && wanted.starts_with('\''),
    }
}

fn instant(text: &str) -> Option<i64> {
    chrono::DateTime::parse_from_rfc3339(text).ok().map(|time| time.timestamp_micros())
}

fn plain(value: &Value) -> String {
    match value {
        Value::Null => "none".into(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
