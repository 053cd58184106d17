//! Changes: what flows between the nodes of a plan.
//!
//! A [`Delta`] is a record batch and, where its producer can take rows back, an [`Op`] for each row. A plan
//! that is proved to only ever append carries no ops. This room also turns keys into bytes ([`keys`]) and
//! spreads them over partitions.

pub mod calendar;
pub mod keys;
mod op;
pub mod own;
pub mod time;

pub use op::Op;

use arrow::array::{Int64Array, RecordBatch};

use crate::error::{Error, Result};

/// Some changes of one relation.
#[derive(Debug, Clone)]
pub struct Delta {
    pub rows: RecordBatch,
    /// `None`: every row is added once. Otherwise as long as `rows`; an [`Op::UpdateBefore`] is directly followed
    /// by its [`Op::UpdateAfter`].
    pub ops: Option<Vec<Op>>,
}

impl Delta {
    /// Rows that are added once each.
    pub fn insert(rows: RecordBatch) -> Self {
        Delta { rows, ops: None }
    }

    /// Rows with an op each.
    ///
    /// # Errors
    /// Internal: more or fewer ops than rows.
    pub fn changes(rows: RecordBatch, ops: Vec<Op>) -> Result<Self> {
        if ops.len() != rows.num_rows() {
            return Err(Error::internal(format!("{} rows of changes carry {} ops", rows.num_rows(), ops.len())));
        }
        Ok(Delta { rows, ops: Some(ops) })
    }

    /// The number of rows, whatever their weights.
    pub fn len(&self) -> usize {
        self.rows.num_rows()
    }

    /// Whether there is no row at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What the row at `index` does.
    pub fn op(&self, index: usize) -> Op {
        self.ops.as_ref().and_then(|ops| ops.get(index)).copied().unwrap_or(Op::Insert)
    }

    /// The weights of the rows; `None`: all are +1.
    pub fn weights(&self) -> Option<Int64Array> {
        self.ops.as_ref().map(|ops| ops.iter().map(|op| op.weight()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::RecordBatchOptions;
    use arrow::datatypes::Schema;
    use std::sync::Arc;

    fn rows(count: usize) -> RecordBatch {
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        RecordBatch::try_new_with_options(Arc::new(Schema::empty()), vec![], &options).unwrap()
    }

    #[test]
    fn weights_follow_the_ops() {
        let ops = vec![Op::Insert, Op::UpdateBefore, Op::UpdateAfter, Op::Delete];
        let delta = Delta::changes(rows(4), ops).unwrap();
        assert_eq!(delta.weights().unwrap().values().to_vec(), vec![1, -1, 1, -1]);
        assert_eq!(delta.op(3), Op::Delete);
        assert!(Delta::insert(rows(2)).weights().is_none());
        assert_eq!(Delta::insert(rows(2)).op(1), Op::Insert);
    }

    #[test]
    fn ops_must_match_the_rows() {
        let error = Delta::changes(rows(2), vec![Op::Insert]).unwrap_err();
        assert!(error.to_string().contains("2 rows of changes carry 1 ops"), "{error}");
    }
}
