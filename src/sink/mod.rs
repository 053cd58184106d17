//! Where results go: the trait [`Sink`], one file a connector.
//!
//! A sink is handed the changes of one batch under its id. An exactly-once sink remembers which ids it has
//! committed, so that a replayed batch changes nothing. A sink knows nothing of queries or state; what a mode
//! sends is decided before it.

pub mod blackhole;
mod changelog;
pub mod console;
mod encode;
pub mod file;
mod recorder;
pub mod stdout;
pub mod table;

pub use recorder::{Emitted, Recorded, Recorder};

use std::sync::Arc;

use arrow::datatypes::SchemaRef;

use crate::checkpoint::Failpoints;
use crate::delta::Delta;
use crate::error::Result;

/// The number of a batch of one checkpoint, from 0.
pub type BatchId = u64;

/// What a sink is opened for.
#[derive(Debug, Clone)]
pub struct SinkContext {
    /// The query's name.
    pub query: String,
    /// The checkpoint's id: stable over restarts.
    pub query_id: String,
    /// Different at every start.
    pub run_id: String,
    pub mode: crate::parser::OutputMode,
    /// The columns of the result, without weights.
    pub schema: SchemaRef,
    /// The query can take rows back: pushed changes carry ops, and sinks that show rows put an `op` column
    /// (+I -U +U -D) first.
    pub retracts: bool,
    /// The columns by which a row of a grouped result is known again; `None` where the query does not group, or not all that it
    /// groups by is in its result.
    pub keys: Option<Vec<usize>>,
    /// No row replaces another, whatever the mode: nothing is grouped.
    pub only_adds: bool,
    /// How far its watermarks are declared to be behind the newest times, in milliseconds: the farthest of them.
    pub delay: Option<i64>,
    /// How many partitions push.
    pub partitions: usize,
    /// The newest batch that the checkpoint says is done.
    pub committed: Option<BatchId>,
    /// Where tests make the run crash: `manifest.write`.
    pub failpoints: Failpoints,
    /// What is written to local files is synced.
    pub durable: bool,
}

/// What [`Sink::begin`] answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begin {
    Write,
    /// This id was committed before: its changes are drained, not written.
    AlreadyDone,
}

/// What the engine knows of a batch when the sink commits it.
#[derive(Debug, Clone, Default)]
pub struct BatchSummary {
    pub input_rows: u64,
    /// The watermark that the batch used, in milliseconds.
    pub watermark: Option<i64>,
    /// It used the end of all times: the query is drained.
    pub drains: bool,
    pub state_rows: Option<u64>,
}

/// What a commit wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SinkCommit {
    pub rows: u64,
}

/// Where the results of a query go, a batch at a time: begin, push any number of times, commit or abort.
pub trait Sink: Send {
    /// As shown in progress documents, such as `FileSink[out]`.
    fn description(&self) -> String;

    /// Opens batch `batch`. An id that was begun and not committed before starts from nothing.
    fn begin(&mut self, batch: BatchId) -> Result<Begin>;

    /// Takes some changes of the batch from one of the partitions. In COMPLETE mode the changes of a batch are
    /// the whole result table.
    fn push(&mut self, partition: usize, changes: Delta) -> Result<()>;

    /// Makes the batch visible, all of it or nothing, durably where the target is durable.
    fn commit(&mut self, summary: &BatchSummary) -> Result<SinkCommit>;

    /// Drops what was pushed since `begin`.
    fn abort(&mut self) -> Result<()>;
}

/// Where console and stdout sinks write: shared with the shell, so that a batch is never mixed with an answer.
pub type SharedOutput = Arc<std::sync::Mutex<Box<dyn std::io::Write + Send>>>;

#[cfg(test)]
mod shown_tests;
