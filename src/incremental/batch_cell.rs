//! What the nodes of a fragment know of the batch that runs, and what they count in it.
//!
//! A fragment is planned once and run for every batch, so what changes from batch to batch (clock, watermarks) is read
//! from here, and what is seen on the way (event times, late rows) is written here.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};

use arrow::array::{BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use arrow::error::ArrowError;

use crate::operator::BatchInfo;

/// Shared by all fragments of one query.
#[derive(Debug, Default)]
pub struct BatchCell {
    info: Mutex<BatchInfo>,
    /// The clock alone, for `now()`.
    timestamp: AtomicI64,
    inputs: Vec<Mutex<TimeStats>>,
    /// What each operator's input let go of, by the operator's number.
    dropped: Mutex<Vec<Dropped>>,
    /// Late rows, the first that were met, and whose they were.
    late: Mutex<Vec<(usize, RecordBatch)>>,
    /// All late rows are kept.
    keeps_late: AtomicBool,
}

/// What was let go of in front of an operator, in one batch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Dropped {
    pub late_rows: u64,
    pub late_contributions: u64,
    pub null_time_rows: u64,
}

impl std::ops::AddAssign for Dropped {
    fn add_assign(&mut self, other: Dropped) {
        self.late_rows += other.late_rows;
        self.late_contributions += other.late_contributions;
        self.null_time_rows += other.null_time_rows;
    }
}

/// The event times of one watermarked input in one batch, in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TimeStats {
    pub max: Option<i64>,
    pub min: Option<i64>,
    pub sum: i128,
    pub rows: u64,
    /// Rows too far ahead of the clock to move the watermark.
    pub future_rows: u64,
}

impl TimeStats {
    /// Adds what another part of the input saw.
    pub fn add(&mut self, other: &TimeStats) {
        self.max = self.max.max(other.max);
        self.min = match (self.min, other.min) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        self.sum += other.sum;
        self.rows += other.rows;
        self.future_rows += other.future_rows;
    }
}

impl BatchCell {
    /// A cell for a query with so many watermarked inputs.
    pub fn new(inputs: usize) -> Self {
        BatchCell { inputs: (0..inputs).map(|_| Mutex::default()).collect(), ..BatchCell::default() }
    }

    /// Begins a batch; what was counted is forgotten.
    pub fn begin(&self, info: BatchInfo) {
        *self.info.lock().unwrap_or_else(PoisonError::into_inner) = info;
        self.timestamp.store(info.timestamp, Ordering::Relaxed);
        self.dropped.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.late.lock().unwrap_or_else(PoisonError::into_inner).clear();
        for input in &self.inputs {
            *input.lock().unwrap_or_else(PoisonError::into_inner) = TimeStats::default();
        }
    }

    /// How many late rows of a batch are kept for a person to look at.
    pub const LATE_SAMPLE: usize = 100;

    /// Keeps some of the `late` ones among `rows`, while there is room.
    ///
    /// # Errors
    /// What arrow answers.
    pub fn keep_late(&self, operator: usize, rows: &RecordBatch, late: &BooleanArray) -> Result<(), ArrowError> {
        let mut kept = self.late.lock().unwrap_or_else(PoisonError::into_inner);
        let most = if self.keeps_late.load(Ordering::Relaxed) { usize::MAX } else { Self::LATE_SAMPLE };
        let room = most.saturating_sub(kept.iter().map(|(_, rows)| rows.num_rows()).sum());
        if room > 0 {
            let late = filter_record_batch(rows, late)?;
            kept.push((operator, late.slice(0, room.min(late.num_rows()))));
        }
        Ok(())
    }

    /// Keeps all late rows of each batch, not only the first.
    pub fn keep_all_late(&self) {
        self.keeps_late.store(true, Ordering::Relaxed);
    }

    /// The late rows that were kept of this batch, with the operator's number whose they were.
    pub fn late(&self) -> Vec<(usize, RecordBatch)> {
        self.late.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The first of them.
    pub fn late_sample(&self) -> Vec<(usize, RecordBatch)> {
        let mut room = Self::LATE_SAMPLE;
        let mut first = |(operator, rows): (usize, RecordBatch)| {
            let taken = room.min(rows.num_rows());
            room -= taken;
            (taken > 0).then(|| (operator, rows.slice(0, taken)))
        };
        self.late().into_iter().filter_map(&mut first).collect()
    }

    /// Counts what was let go of in front of an operator.
    pub fn dropped(&self, operator: usize, dropped: Dropped) {
        if dropped == Dropped::default() {
            return;
        }
        let mut all = self.dropped.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() <= operator {
            all.resize(operator + 1, Dropped::default());
        }
        all[operator] += dropped;
    }

    /// What was let go of in this batch, by the operator's number; those who let nothing go may be missing.
    pub fn all_dropped(&self) -> Vec<Dropped> {
        self.dropped.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The batch that runs.
    pub fn info(&self) -> BatchInfo {
        *self.info.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What rows of the batch are late by, in milliseconds.
    pub fn late_watermark(&self) -> Option<i64> {
        self.info().late_watermark
    }

    /// `now()` of the batch, in milliseconds.
    pub fn timestamp(&self) -> i64 {
        self.timestamp.load(Ordering::Relaxed)
    }

    /// Adds event times seen of an input.
    pub fn saw(&self, input: usize, stats: &TimeStats) {
        if let Some(input) = self.inputs.get(input) {
            input.lock().unwrap_or_else(PoisonError::into_inner).add(stats);
        }
    }

    /// What was seen of an input in this batch.
    pub fn stats(&self, input: usize) -> TimeStats {
        self.inputs.get(input).map(|i| *i.lock().unwrap_or_else(PoisonError::into_inner)).unwrap_or_default()
    }
}
