//! Where rows come from: the trait [`Source`], one file a connector.
//!
//! A source promises replay: the same range of offsets gives the same rows in the same order, also in another
//! process after a crash. Which connectors can't promise it, the catalog knows. A source knows nothing of
//! watermarks, triggers or queries.

pub mod file;
mod generator;
pub mod memory;
pub mod nexmark;
mod offset;
pub mod rate;
pub mod rate_micro_batch;
mod records;
pub mod stdin;

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::Expr;

use crate::error::Result;
use crate::format::{Keep, OnError};

/// How far a source has been read. JSON, so that it can be logged and shown as it is; only the source that made
/// it knows what it means.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Offset(pub serde_json::Value);

/// The rows behind `start` up to and including `end`. `start` is `None` at the very beginning.
#[derive(Debug, Clone, PartialEq)]
pub struct OffsetRange {
    pub start: Option<Offset>,
    pub end: Offset,
}

/// What bounds the next batch, beside the source's own options (`max_files_per_trigger` …).
#[derive(Debug, Clone, Default)]
pub struct ReadLimit {
    /// ONCE: everything there is, whatever the options say.
    pub unlimited: bool,
    /// AVAILABLE NOW: never past this offset.
    pub until: Option<Offset>,
    /// A batch of about this many bytes at the most, where the options set no other limit.
    pub max_bytes: Option<u64>,
    /// Only whether there is anything: no batch follows, and the source remembers nothing of what it answers.
    pub look: bool,
}

/// What a reader wants of a range.
#[derive(Debug, Clone)]
pub struct Pushdown {
    /// Indices into [`Source::schema`], in the order wanted.
    pub columns: Vec<usize>,
    /// Filters over the source's columns that the reader will apply again: a source may use them to skip rows,
    /// or ignore them.
    pub filters: Vec<Expr>,
    /// How many streams to hand out, at the most; 1 where the order of rows matters.
    pub partitions: usize,
}

impl Pushdown {
    /// The columns' part of a source's schema.
    ///
    /// # Errors
    /// An index past the schema's end: a defect of the caller.
    pub fn project(&self, schema: &SchemaRef) -> Result<SchemaRef> {
        let projected = schema.project(&self.columns);
        Ok(Arc::new(projected.map_err(|e| crate::error::Error::internal(e.to_string()))?))
    }
}

/// The rows of one range, ready to be pulled: 1 to [`Pushdown::partitions`] streams. With one stream the rows come
/// in the source's order.
pub struct SourceRead {
    pub streams: Vec<SendableRecordBatchStream>,
    /// Counts what `on_error` skipped, while the streams are pulled.
    pub bad_records: Arc<BadRecords>,
}

/// How much a range holds, as far as it is known without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RangeSize {
    pub rows: Option<u64>,
    pub bytes: Option<u64>,
}

impl RangeSize {
    /// That of no range.
    pub const NOTHING: RangeSize = RangeSize { rows: Some(0), bytes: Some(0) };

    /// That of both together: known where each is.
    pub fn plus(self, other: RangeSize) -> RangeSize {
        let sum = |a: Option<u64>, b: Option<u64>| a.zip(b).and_then(|(a, b)| a.checked_add(b));
        RangeSize { rows: sum(self.rows, other.rows), bytes: sum(self.bytes, other.bytes) }
    }
}

/// Where an input ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputEnd {
    /// There may always be more: a directory, an open memory stream.
    Never,
    /// It ends, and hasn't yet: a pipe. AVAILABLE NOW goes on to it.
    Ahead,
    /// Nothing more will come than is there: a pipe at its end, a closed memory stream.
    Reached,
}

/// One input of a query.
pub trait Source: Send + Sync {
    /// The columns that [`Source::read`] gives: fields of the record, then METADATA columns.
    fn schema(&self) -> SchemaRef;

    /// As shown in progress documents, such as `FileStreamSource[data/*.json]`.
    fn description(&self) -> String;

    /// Refuses an offset of a checkpoint whose rows were held by a process that is gone.
    ///
    /// # Errors
    /// Conflict: not all rows up to `end` are here.
    fn check_held(&self, _end: &Offset) -> Result<()> {
        Ok(())
    }

    /// How far the next batch may go: `None` when there is nothing behind `after`. AVAILABLE NOW asks once without
    /// `until` but with `unlimited`, and passes the answer as `until` from then on.
    ///
    /// # Errors
    /// A transient error is retried by the engine; any other fails the query.
    fn latest_offset(&mut self, after: Option<&Offset>, limit: &ReadLimit) -> Result<Option<Offset>>;

    /// How much `range` holds.
    fn size(&self, range: &OffsetRange) -> RangeSize;

    /// The rows of `range`. The same range always gives the same rows, also in another process.
    fn read(&self, range: &OffsetRange, wanted: &Pushdown) -> Result<SourceRead>;

    /// Whether its input ends, and has ended. Asked before [`Source::latest_offset`]: an end that was reached then is
    /// behind what that answers.
    fn end(&self) -> InputEnd {
        InputEnd::Never
    }

    /// Nothing up to `end` will be asked for again. May be called twice.
    fn commit(&mut self, end: &Offset) -> Result<()>;
}

/// Records that `on_error` let pass, counted, and the first of them kept; all of them, where they go to a dead letter.
#[derive(Debug, Default)]
pub struct BadRecords {
    inner: std::sync::Mutex<Bad>,
}

#[derive(Debug, Default)]
struct Bad {
    count: u64,
    first: Vec<crate::error::BadRecord>,
    /// Each with its whole text.
    all: Option<Vec<(crate::error::BadRecord, String)>>,
}

impl BadRecords {
    /// How many samples are kept.
    pub const SAMPLE: usize = 100;

    /// Keeps all from now on, with their texts.
    pub fn keep_all(&self) {
        self.lock().all.get_or_insert_default();
    }

    /// Whether the next one is kept: then it is worth to find out where it stands.
    pub fn keeps_next(&self) -> bool {
        let bad = self.lock();
        bad.all.is_some() || bad.first.len() < Self::SAMPLE
    }

    /// Lets a record pass or not, as `on_error` says, and counts it. `text`: all of it.
    ///
    /// # Errors
    /// BadRecord, where one bad record ends the query.
    pub fn judge(&self, on_error: OnError, record: crate::error::BadRecord, text: &[u8]) -> Result<Keep> {
        if on_error == OnError::Fail {
            return Err(crate::error::Error::BadRecord(Box::new(record)));
        }
        let mut bad = self.lock();
        bad.count += 1;
        if let Some(all) = &mut bad.all {
            all.push((record.clone(), String::from_utf8_lossy(text).into_owned()));
        }
        if bad.first.len() < Self::SAMPLE {
            bad.first.push(record);
        }
        Ok(if on_error == OnError::Null { Keep::Nulls } else { Keep::Nothing })
    }

    /// How many there were.
    pub fn count(&self) -> u64 {
        self.lock().count
    }

    /// The first [`Self::SAMPLE`] of them.
    pub fn sample(&self) -> Vec<crate::error::BadRecord> {
        self.lock().first.clone()
    }

    /// All of them with their texts, where [`Self::keep_all`] was asked for.
    pub fn all(&self) -> Vec<(crate::error::BadRecord, String)> {
        self.lock().all.clone().unwrap_or_default()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Bad> {
        self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
