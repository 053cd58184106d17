//! What a live view knows of a query by its progress documents alone.

use std::collections::VecDeque;

use serde_json::Value;

use super::value;

/// The watermark is far behind when it is so many times its delay behind.
const FAR: i64 = 3;

/// What only progress documents tell.
#[derive(Debug, Clone, Default)]
pub(super) struct Facts {
    /// The newest batch they told of.
    pub(super) batch: Option<u64>,
    pub(super) took_ms: Option<u64>,
    pub(super) state_bytes: Option<u64>,
    /// Rows that came too late, since the view began.
    pub(super) late: Option<u64>,
    /// How far the watermark is behind the newest time that was seen, in milliseconds.
    pub(super) lag: Option<i64>,
    pub(super) lags: VecDeque<f64>,
    /// The watermark that this is the lag of.
    pub(super) watermark: Option<i64>,
    /// Each state's name, rows, and how many were changed and removed by that batch.
    pub(super) states: Vec<(String, Option<u64>, u64, u64)>,
    newest_time: Option<i64>,
    /// Which it is declared to be, in milliseconds.
    delay: Option<i64>,
}

impl Facts {
    /// Nothing, of a query whose watermarks have this delay, in milliseconds.
    pub(super) fn of(delay: Option<i64>) -> Self {
        Facts { delay, ..Facts::default() }
    }

    /// How many times the declared delay the watermark is behind, where that is many times.
    pub(super) fn lags_by(&self) -> Option<i64> {
        let delay = self.delay.filter(|delay| *delay > 0)?;
        self.lag.filter(|lag| *lag > delay.saturating_mul(FAR)).map(|lag| lag / delay)
    }

    /// Takes what a progress document tells of a batch that has not been told of.
    pub(super) fn learn(&mut self, document: &Value) {
        let Some(batch) = document.get("batchId").and_then(Value::as_u64) else { return };
        if self.batch.is_some_and(|last| batch <= last) {
            return;
        }
        self.batch = Some(batch);
        self.took_ms = document.pointer("/durationMs/triggerExecution").and_then(Value::as_u64);
        if let Some(late) = document.get("lateRows").and_then(Value::as_u64) {
            self.late = Some(self.late.unwrap_or(0).saturating_add(late));
        }
        let time = |pointer| document.pointer(pointer).and_then(Value::as_str).and_then(value::millis);
        self.newest_time = self.newest_time.max(time("/eventTime/max"));
        if let (Some(newest), Some(watermark)) = (self.newest_time, time("/eventTime/watermark")) {
            let lag = newest.saturating_sub(watermark).max(0);
            self.lag = Some(lag);
            self.watermark = Some(watermark);
            self.lags.push_back(lag as f64);
            while self.lags.len() > 60 {
                self.lags.pop_front();
            }
        }
        let Some(states) = document.get("stateOperators").and_then(Value::as_array) else { return };
        let number = |state: &Value, field: &str| state.get(field).and_then(Value::as_u64);
        self.state_bytes =
            states.iter().filter_map(|state| number(state, "memoryUsedBytes")).reduce(u64::saturating_add);
        let state = |state: &Value| {
            let name = state.get("name").or_else(|| state.get("operatorName")).and_then(Value::as_str);
            let changed = number(state, "numRowsUpdated").unwrap_or(0);
            let removed = number(state, "numRowsRemoved").unwrap_or(0);
            (name.unwrap_or("?").to_string(), number(state, "numRowsTotal"), changed, removed)
        };
        self.states = states.iter().map(state).collect();
    }
}
