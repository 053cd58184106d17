//! The handle of a query: what can be asked of it, and told to it, while its thread runs.

use std::time::Duration;

use super::{Engine, QuerySpec};
use crate::error::{Error, Result};
use crate::parser::{AwaitUntil, Step, StopHow, Trigger};

/// Where a query is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueryState {
    Running,
    Paused,
    /// Ended by itself or by STOP.
    Stopped,
    Failed,
}

/// `SHOW STATUS`.
#[derive(Debug, Clone)]
pub struct QueryStatus {
    pub state: QueryState,
    pub message: String,
    pub is_data_available: bool,
    pub is_trigger_active: bool,
    pub last_error: Option<Error>,
}

/// What STOP answers.
#[derive(Debug, Clone)]
pub struct StopReceipt {
    pub query: String,
    pub last_batch: Option<u64>,
    /// The offsets reached, by source.
    pub offsets: Vec<(String, serde_json::Value)>,
    /// Milliseconds.
    pub watermark: Option<i64>,
    pub state_rows: Option<u64>,
}

/// A started query; clones speak of the same one.
#[derive(Clone)]
pub struct QueryHandle {}

#[allow(unused_variables)]
impl QueryHandle {
    pub fn name(&self) -> &str {
        ""
    }
    /// The last `last` progress documents, oldest first, as JSON objects (Spark's fields, see the checkpoint docs).
    pub fn progress(&self, last: usize) -> Vec<serde_json::Value> {
        Vec::new()
    }
    pub fn status(&self) -> QueryStatus {
        QueryStatus {
            state: QueryState::Stopped,
            message: String::new(),
            is_data_available: false,
            is_trigger_active: false,
            last_error: None,
        }
    }
    /// Names of the streams and static tables that the query reads.
    pub fn reads(&self) -> Vec<String> {
        Vec::new()
    }
    /// Stops and waits for the end. `cancelled` is asked while waiting.
    pub fn stop(&self, how: StopHow, timeout: Option<Duration>, cancelled: &dyn Fn() -> bool) -> Result<StopReceipt> {
        Err(Error::not_yet("STOP"))
    }
    pub fn pause(&self) -> Result<()> {
        Err(Error::not_yet("PAUSE"))
    }
    pub fn resume(&self) -> Result<()> {
        Err(Error::not_yet("RESUME"))
    }
    pub fn set_trigger(&self, trigger: Trigger) -> Result<()> {
        Err(Error::not_yet("ALTER QUERY"))
    }
    /// Waits; fails with the query's error if it fails. `cancelled` is asked while waiting.
    pub fn await_until(
        &self,
        until: AwaitUntil,
        timeout: Option<Duration>,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<()> {
        Err(Error::not_yet("AWAIT"))
    }
    /// `STEP QUERY`: runs exactly so many batches and answers how many ran.
    pub fn step(&self, step: Step) -> Result<u64> {
        Err(Error::not_yet("STEP"))
    }
    /// `EXPLAIN QUERY`: the incremental plan as a tree.
    pub fn explain(&self) -> String {
        String::new()
    }
    /// `SHOW STATE`: operator, partition, rows, bytes.
    pub fn state_rows(&self) -> Vec<(String, usize, u64, u64)> {
        Vec::new()
    }
}

pub(super) fn start(_engine: &Engine, _spec: QuerySpec) -> Result<QueryHandle> {
    Err(Error::not_yet("START QUERY"))
}
