//! The logs of a checkpoint.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Failpoints, Store};
use crate::error::{Error, Result};

/// `offsets/<N>`: what fixes batch N.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
pub struct OffsetEntry {
    /// The query's clock for the batch, milliseconds: `now()` in it.
    pub timestamp: i64,
    /// The watermark of each input occurrence in force in the batch, milliseconds; undefined ones are absent.
    pub watermarks: BTreeMap<String, i64>,
    /// The query's watermark in force (by the policy), absent while undefined.
    pub watermark: Option<i64>,
    /// What the checkpoint fixes: the watermark policy …
    pub conf: BTreeMap<String, String>,
    /// Versions of the static tables read.
    pub statics: BTreeMap<String, String>,
    /// By source occurrence; sources with nothing in the batch have `start == end`. Written one line each.
    pub sources: BTreeMap<String, SourceOffsets>,
}

/// One source's part of a batch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
pub struct SourceOffsets {
    pub start: Option<Value>,
    /// `None`: nothing was ever there.
    pub end: Option<Value>,
}

/// `commits/<N>`: batch N is done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
pub struct CommitEntry {
    /// The watermark of each input after the batch, milliseconds; undefined ones are absent.
    pub watermarks: BTreeMap<String, i64>,
    /// The query's watermark for the next batch.
    pub watermark: Option<i64>,
    /// Set by DRAIN.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub drained: bool,
}

/// A checkpoint that this process holds the lease of, until it is dropped.
#[derive(Debug)]
pub struct Checkpoint {}

#[allow(unused_variables)]
impl Checkpoint {
    /// Opens or makes the checkpoint at `location` (a directory, or a `file:` URL) and takes its lease.
    /// `query` is the canonical SQL, written to `metadata` when it is made.
    ///
    /// # Errors
    /// Conflict: another process or query of this one holds it (named). Corrupt: metadata damaged, of a newer format, or
    /// missing while there are logs.
    pub fn open(location: &str, query: &str, failpoints: Failpoints) -> Result<Self> {
        Err(Error::not_yet("checkpoints"))
    }
    /// A checkpoint in the system's temporary directory, removed when it is dropped.
    pub fn temporary(query: &str, failpoints: Failpoints) -> Result<Self> {
        Err(Error::not_yet("checkpoints"))
    }
    /// The stable id.
    pub fn id(&self) -> &str {
        ""
    }
    /// The canonical SQL the checkpoint was made for.
    pub fn query(&self) -> &str {
        ""
    }
    /// Where it is, as the user wrote it.
    pub fn location(&self) -> &str {
        ""
    }
    pub fn store(&self) -> Arc<dyn Store> {
        Arc::new(super::LocalStore::new(""))
    }
    /// The highest N in `offsets/`.
    pub fn latest_offsets(&self) -> Result<Option<u64>> {
        Ok(None)
    }
    /// The highest N in `commits/`.
    pub fn latest_commit(&self) -> Result<Option<u64>> {
        Ok(None)
    }
    /// `offsets/<batch>`.
    ///
    /// # Errors
    /// Corrupt, by path: missing or damaged.
    pub fn offsets(&self, batch: u64) -> Result<OffsetEntry> {
        Err(Error::not_yet("checkpoints"))
    }
    /// `commits/<batch>`, likewise.
    pub fn commit(&self, batch: u64) -> Result<CommitEntry> {
        Err(Error::not_yet("checkpoints"))
    }
    /// Writes `offsets/<batch>`.
    ///
    /// # Errors
    /// Conflict when it is there: another run has written it.
    pub fn log_offsets(&self, batch: u64, entry: &OffsetEntry) -> Result<()> {
        Err(Error::not_yet("checkpoints"))
    }
    /// Writes `commits/<batch>`, likewise.
    pub fn log_commit(&self, batch: u64, entry: &CommitEntry) -> Result<()> {
        Err(Error::not_yet("checkpoints"))
    }
    /// The log of one source occurrence, `sources/<name>/`.
    pub fn source_log(&self, name: &str) -> SourceLog {
        SourceLog {}
    }
    /// Removes entries of `offsets/` and `commits/` below `keep_from`.
    pub fn purge(&self, keep_from: u64) -> Result<()> {
        Ok(())
    }
}

/// What a source must remember beside its offsets: numbered entries of JSON lines, from 0, compacted now and then.
#[derive(Debug, Clone)]
pub struct SourceLog {}

#[allow(unused_variables)]
impl SourceLog {
    /// A log that lives only in memory: for reads outside a query.
    pub fn in_memory() -> Self {
        SourceLog {}
    }
    /// The highest entry.
    pub fn latest(&self) -> Result<Option<u64>> {
        Ok(None)
    }
    /// Writes entry `n`, which must be the one after the latest.
    pub fn append(&self, n: u64, lines: &[Value]) -> Result<()> {
        Ok(())
    }
    /// The lines of the entries `from..=to`, each with its entry's number.
    pub fn read(&self, from: u64, to: u64) -> Result<Vec<(u64, Value)>> {
        Ok(Vec::new())
    }
}
