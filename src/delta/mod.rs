//! Changes: what flows between the nodes of a plan.
//!
//! A [`Delta`] is a record batch and, where its producer can take rows back, a signed weight for each row. A
//! plan that is proved to only ever append carries no weights. This room also turns keys into bytes
//! ([`keys`]) and spreads them over partitions.

pub mod keys;

use arrow::array::{Int64Array, RecordBatch};

/// Some changes of one relation.
#[derive(Debug, Clone)]
pub struct Delta {
    pub rows: RecordBatch,
    /// `None`: every row is added once. Otherwise as long as `rows`: +n adds the row n times, −n takes it
    /// back n times.
    pub weights: Option<Int64Array>,
}

impl Delta {
    /// Rows that are added once each.
    pub fn insert(rows: RecordBatch) -> Self {
        Delta { rows, weights: None }
    }

    /// Rows with a weight each.
    pub fn weighted(rows: RecordBatch, weights: Int64Array) -> Self {
        Delta { rows, weights: Some(weights) }
    }

    /// The number of rows, whatever their weights.
    pub fn len(&self) -> usize {
        self.rows.num_rows()
    }

    /// Whether there is no row at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
