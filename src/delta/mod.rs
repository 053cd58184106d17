//! Changes: what flows between the nodes of a plan.
//!
//! A [`Delta`] is a record batch and, where its producer can take rows back, an [`Op`] for each row. A plan that
//! is proved to only ever append carries no ops. This room also turns keys into bytes ([`keys`]) and spreads
//! them over partitions.

pub mod keys;
mod op;
pub mod time;

use arrow::array::RecordBatch;

pub use op::Op;

/// Some changes of one relation.
#[derive(Debug, Clone)]
pub struct Delta {
    pub rows: RecordBatch,
    /// `None`: every row is added once. Otherwise one a row; the new row of an update directly follows the old
    /// one in the same delta.
    pub ops: Option<Vec<Op>>,
}

impl Delta {
    /// Rows that are added once each.
    pub fn insert(rows: RecordBatch) -> Self {
        Delta { rows, ops: None }
    }

    /// Rows with an op each.
    pub fn with_ops(rows: RecordBatch, ops: Vec<Op>) -> Self {
        Delta { rows, ops: Some(ops) }
    }

    /// The number of rows, whatever their ops.
    pub fn len(&self) -> usize {
        self.rows.num_rows()
    }

    /// Whether there is no row at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
