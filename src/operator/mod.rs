//! What remembers: one operator a file, all of one shape.
//!
//! An operator is a small synchronous type. It is handed the changes of one micro-batch, split by its key over
//! partitions, and what it remembers in its partition, a table or more; it hands out what changed in its output. It does
//! not know of batches before or after, of files, or of other operators.

/// One row a group.
mod aggregate;
/// The operators of one partition, one behind the other.
mod chain;
/// The first row of each key.
mod deduplicate;
/// Each value of a group once.
mod distinct;
/// Every element of a group, for an aggregate.
mod elements;
/// Forgetting by time.
mod forget;
/// Elements of groups, read.
mod held;
/// Rows of two inputs that belong together.
mod join;
/// The end of a batch in a join.
mod join_end;
/// The rows of one side of a join by their key.
mod join_index;
/// One partition of a join.
mod join_part;
/// Rows of a join's result.
mod join_rows;
/// Inputs of a join that take rows back.
mod join_signed;
/// The first rows there ever were.
mod limit;
/// The values of lists.
mod lists;
/// The keys that a batch met first.
mod met_keys;
/// An operator as a node of a plan.
mod node;
/// Each row, with what functions make of the rows around it.
mod over;
/// What functions make of the rows of one partition.
mod over_calls;
/// The rows of an OVER by their partitions.
mod over_index;
/// The same as it is now, taken back when it is no more.
mod over_now;
/// Rows of partitions in an order.
mod ranked;
/// An aggregate's rows.
mod result;
/// Which sessions are remembered of which key.
mod session_index;
/// Which rows and sessions become one session.
mod session_merge;
/// One row a session.
mod sessions;
/// The first rows of each partition in an order.
mod top;
/// The order of one partition's rows.
mod top_index;

use std::sync::Arc;

use arrow::array::RecordBatch;

pub use aggregate::{Aggregate, AggregateSpec, Emit, Feed};
pub use chain::{Chain, ChainSpec};
pub use deduplicate::{DeduplicateSpec, NTH};
pub use distinct::{Distinct, DistinctSpec};
pub use elements::{ElementsSpec, Keep};
pub use forget::ForgetBy;
pub use join::{Condition, JoinKind, JoinSide, JoinSpec, OWN_COLUMNS, SideColumn};
pub use limit::LimitSpec;
pub use node::{OperatorPart, OperatorSpec, Role, StateSpec};
pub use over::{OverSpec, RunningSpec};
pub use over_calls::{Call, Framed};
pub use over_index::{Final, Reach};
pub use over_now::OverNowSpec;
pub use ranked::RankedSpec;
pub use sessions::SessionSpec;
pub use top::TopSpec;
pub use top_index::{Bound, Rank};

use crate::delta::keys::Keys;
use crate::error::{Error, Result};

/// What an operator knows of the batch it runs in.
#[derive(Debug, Clone, Copy, Default)]
pub struct BatchInfo {
    /// The query's clock for the batch, in milliseconds: `now()`.
    pub timestamp: i64,
    /// Rows at or before it are late: the watermark of the batch before, in milliseconds.
    pub late_watermark: Option<i64>,
    /// What it closes is forgotten at the end of the batch: the batch's own watermark, in milliseconds.
    pub watermark: Option<i64>,
}

impl BatchInfo {
    /// The watermark of a batch that drains a query: the end of all times, behind what has no time too.
    pub const END: i64 = i64::MAX;

    /// The batch as an operator sees it whose input is behind the query's watermark by so many milliseconds.
    pub fn behind(self, lag: i64) -> Self {
        let back =
            |watermark: Option<i64>| watermark.map(|at| if at == BatchInfo::END { at } else { at.saturating_sub(lag) });
        BatchInfo { late_watermark: back(self.late_watermark), watermark: back(self.watermark), ..self }
    }
}

/// Some changes of one input, for one partition: rows of a batch that all partitions share, with their keys.
#[derive(Clone)]
pub struct KeyedDelta {
    pub rows: RecordBatch,
    pub keys: Arc<Keys>,
    /// The rows of this partition; `None`: all of them.
    pub select: Option<Vec<u32>>,
}

impl KeyedDelta {
    /// The rows of this partition, one after the other.
    pub fn each_row(&self, take: impl FnMut(u32)) {
        match &self.select {
            None => (0..self.rows.num_rows() as u32).for_each(take),
            Some(rows) => rows.iter().copied().for_each(take),
        }
    }
}

/// What an operator hands out at the end of a batch, and what has changed in a table of its memory.
#[derive(Default)]
pub struct Output {
    /// Rows of its output as they are now.
    pub rows: Vec<RecordBatch>,
    /// Where the operator retracts: rows of its output as they were, to be taken back.
    pub old_rows: Vec<RecordBatch>,
    /// For each row of `old_rows` the number of the key it belongs to; likewise for `rows`.
    pub old_keys: Vec<u32>,
    pub new_keys: Vec<u32>,
    /// What the state's delta file of this version holds: rows written …
    pub upserts: Vec<RecordBatch>,
    /// … keys taken out …
    pub deletes: Vec<RecordBatch>,
    /// … and the time up to which rows were forgotten, in microseconds, where any was.
    pub forgotten_until: Option<i64>,
    /// Rows that were dropped as their key was there already, where that is what the operator does.
    pub duplicates: Option<u64>,
    /// Rows of the state that this batch wrote and removed.
    pub updated: u64,
    pub removed: u64,
}

impl Output {
    /// Keys were taken out of the state.
    fn forgot(&mut self, keys: Option<RecordBatch>) {
        if let Some(keys) = keys {
            self.removed += keys.num_rows() as u64;
            self.deletes.push(keys);
        }
    }

    /// So many rows were forgotten by their time.
    fn forgot_until(&mut self, until: i64, rows: usize) {
        if rows > 0 {
            self.removed += rows as u64;
            self.forgotten_until = Some(until);
        }
    }
}

/// An operator's first table, and the others that it remembers in.
fn first<T>(all: &mut [T]) -> Result<(&mut T, &mut [T])> {
    all.split_first_mut().ok_or_else(|| Error::internal("an operator without anything to remember in"))
}
