//! SHOW PROGRESS, SHOW STATUS, SHOW STATE.
//!
//! The table is read off the progress documents; a number that a document does not hold is NULL.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Float64Array, StringArray, UInt64Array};
use serde_json::Value;

use super::show::state_word;
use super::{Answer, Session, lock};
use crate::error::Result;
use crate::execution::QueryHandle;
use crate::parser::Name;

/// How many batches of a query are shown when the statement does not say.
const LAST: u64 = 10;

impl Session {
    /// The last batches of one query, or of each, oldest first.
    pub(super) fn show_progress(&self, query: Option<&Name>, last: Option<u64>, json: bool) -> Result<Answer> {
        let last = usize::try_from(last.unwrap_or(LAST)).unwrap_or(usize::MAX);
        let mut documents = Vec::new();
        for handle in self.one_or_all(query)? {
            let of = handle.progress(last);
            documents.extend(of.into_iter().map(|document| (handle.name().to_string(), document)));
        }
        if json {
            let lines: Vec<_> = documents.iter().map(|(_, document)| document.to_string()).collect();
            return Ok(Answer::Text(lines.join("\n")));
        }
        let documents: (Vec<String>, Vec<Value>) = documents.into_iter().unzip();
        let mut columns = columns(&documents.1);
        if query.is_none() {
            columns.insert(0, ("query", Arc::new(documents.0.into_iter().map(Some).collect::<StringArray>())));
        }
        Answer::table(columns)
    }

    pub(super) fn show_status(&self, query: Option<&Name>) -> Result<Answer> {
        let handles = self.one_or_all(query)?;
        let all: Vec<_> = handles.iter().map(QueryHandle::status).collect();
        let names = handles.iter().map(|h| Some(h.name().to_string()));
        let errors = all.iter().map(|s| s.last_error.as_ref().map(|e| e.to_string()));
        Answer::table(vec![
            ("query", Arc::new(names.collect::<StringArray>())),
            ("state", Arc::new(all.iter().map(|s| Some(state_word(s.state))).collect::<StringArray>())),
            ("message", Arc::new(all.iter().map(|s| Some(s.message.as_str())).collect::<StringArray>())),
            ("data_available", Arc::new(all.iter().map(|s| Some(s.is_data_available)).collect::<BooleanArray>())),
            ("trigger_active", Arc::new(all.iter().map(|s| Some(s.is_trigger_active)).collect::<BooleanArray>())),
            ("last_error", Arc::new(errors.collect::<StringArray>())),
        ])
    }

    pub(super) fn show_state(&self, query: &Name) -> Result<Answer> {
        let rows = self.query(query)?.state_rows();
        Answer::table(vec![
            ("operator", Arc::new(rows.iter().map(|r| Some(r.0.as_str())).collect::<StringArray>())),
            ("partition", Arc::new(rows.iter().map(|r| Some(r.1 as u64)).collect::<UInt64Array>())),
            ("rows", Arc::new(rows.iter().map(|r| Some(r.2)).collect::<UInt64Array>())),
            ("bytes", Arc::new(rows.iter().map(|r| Some(r.3)).collect::<UInt64Array>())),
        ])
    }

    fn one_or_all(&self, query: Option<&Name>) -> Result<Vec<QueryHandle>> {
        match query {
            Some(name) => Ok(vec![self.query(name)?]),
            None => Ok(lock(&self.queries).values().map(|q| q.handle.clone()).collect()),
        }
    }
}

fn columns(documents: &[Value]) -> Vec<(&'static str, ArrayRef)> {
    let numbers = |pointer: &'static str| -> ArrayRef {
        Arc::new(documents.iter().map(|d| d.pointer(pointer).and_then(Value::as_u64)).collect::<UInt64Array>())
    };
    let texts = |pointer: &'static str| -> ArrayRef {
        Arc::new(documents.iter().map(|d| d.pointer(pointer).and_then(Value::as_str)).collect::<StringArray>())
    };
    let rates = documents.iter().map(|d| d.get("processedRowsPerSecond").and_then(Value::as_f64));
    let state = |field: &'static str| -> ArrayRef {
        Arc::new(documents.iter().map(|d| over_operators(d, field)).collect::<UInt64Array>())
    };
    vec![
        ("batch", numbers("/batchId")),
        ("time", texts("/timestamp")),
        ("trigger_ms", numbers("/durationMs/triggerExecution")),
        ("rows_in", numbers("/numInputRows")),
        ("rows_per_s", Arc::new(rates.collect::<Float64Array>())),
        ("rows_out", numbers("/numOutputRows")),
        ("watermark", texts("/eventTime/watermark")),
        ("state_rows", state("numRowsTotal")),
        ("state_bytes", state("memoryUsedBytes")),
        ("late_rows", numbers("/lateRows")),
    ]
}

/// A number summed over the operators that remember; `None` when no operator gives it.
fn over_operators(document: &Value, field: &str) -> Option<u64> {
    let operators = document.get("stateOperators")?.as_array()?;
    operators.iter().filter_map(|o| o.get(field)?.as_u64()).reduce(|a, b| a.saturating_add(b))
}

#[cfg(test)]
mod tests {
    use arrow::array::{Array, AsArray};
    use arrow::datatypes::UInt64Type;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_number_that_a_document_lacks_is_null() {
        let full = json!({
            "batchId": 3, "timestamp": "2024-01-01T00:00:00.000Z", "numInputRows": 5, "lateRows": 1,
            "durationMs": {"triggerExecution": 12}, "eventTime": {"watermark": "2023-12-31T23:59:50.000Z"},
            "stateOperators": [{"numRowsTotal": 2, "memoryUsedBytes": 10}, {"numRowsTotal": 3}],
        });
        let columns = columns(&[full, json!({"batchId": 4})]);
        let of = |name: &str| columns.iter().find(|(n, _)| *n == name).map(|(_, column)| column.clone()).unwrap();
        assert_eq!(of("state_rows").as_primitive::<UInt64Type>().value(0), 5);
        assert_eq!(of("state_bytes").as_primitive::<UInt64Type>().value(0), 10);
        assert_eq!(of("trigger_ms").as_primitive::<UInt64Type>().value(0), 12);
        assert_eq!(of("watermark").as_string::<i32>().value(0), "2023-12-31T23:59:50.000Z");
        assert!(of("rows_per_s").is_null(0), "not in the document");
        for (name, column) in &columns {
            assert!(*name == "batch" || column.is_null(1), "{name}");
        }
    }
}
