//! Rows that a query has read and told of nowhere yet: for who waits for a batch, or for VERIFY.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::incremental::IncrementalPlan;
use crate::planner::leaf::Leaf;

/// Counts over the runs of a plan.
#[derive(Default)]
pub(super) struct Reading {
    /// Of runs that are over.
    done: AtomicU64,
    /// How many there will be, where that is known; else the largest number.
    all: AtomicU64,
    leaves: Mutex<Vec<Arc<Leaf>>>,
}

impl Reading {
    /// A plan is going to be run.
    pub fn begin(&self, plan: &IncrementalPlan) {
        let leaves = plan.inputs.iter().map(|input| input.leaf.clone()).collect();
        *self.leaves.lock().unwrap_or_else(PoisonError::into_inner) = leaves;
        self.done.store(0, Ordering::Relaxed);
        self.expect(None);
    }

    /// So many rows will be read in all runs.
    pub fn expect(&self, rows: Option<u64>) {
        self.all.store(rows.unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// How many rows will be read, where that is known.
    pub fn all(&self) -> Option<u64> {
        Some(self.all.load(Ordering::Relaxed)).filter(|all| *all != u64::MAX)
    }

    /// A run is over, and its rows count for those of all.
    pub fn add_run(&self) {
        let leaves = self.leaves.lock().unwrap_or_else(PoisonError::into_inner);
        let rows: u64 = leaves.iter().map(|leaf| leaf.running_rows()).sum();
        leaves.iter().for_each(|leaf| leaf.end_run());
        self.done.fetch_add(rows, Ordering::Relaxed);
    }

    /// A run is over, and its rows are told of elsewhere.
    pub fn end_run(&self) {
        self.leaves.lock().unwrap_or_else(PoisonError::into_inner).iter().for_each(|leaf| leaf.end_run());
    }

    /// The plan is let go of, with all that its leaves hold.
    pub fn forget(&self) {
        self.leaves.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.expect(None);
    }

    /// Rows read so far.
    pub fn rows(&self) -> u64 {
        let leaves = self.leaves.lock().unwrap_or_else(PoisonError::into_inner);
        self.done.load(Ordering::Relaxed) + leaves.iter().map(|leaf| leaf.running_rows()).sum::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, Int64Array, RecordBatch};
    use datafusion::prelude::SessionContext;

    use super::*;
    use crate::planner::leaf::LeafInput;

    #[tokio::test]
    async fn rows_are_counted_until_they_are_told_of() {
        let column: ArrayRef = Arc::new(Int64Array::from_iter_values(0..7));
        let batch = RecordBatch::try_from_iter([("n", column)]).unwrap();
        let leaf = Leaf::new("s", batch.schema());
        let reading = Reading::default();
        reading.leaves.lock().unwrap().push(leaf.clone());
        let context = SessionContext::new();
        context.register_table("s", leaf.table()).unwrap();
        let run = async || {
            leaf.fill(LeafInput::Batches(Arc::new(vec![batch.clone()])));
            context.sql("SELECT n FROM s").await.unwrap().collect().await.unwrap();
            reading.rows()
        };
        assert_eq!(run().await, 7);
        reading.expect(Some(14));
        assert_eq!(reading.all(), Some(14));
        reading.expect(None);
        assert_eq!(reading.all(), None);
        reading.add_run();
        assert_eq!(reading.rows(), 7);
        assert_eq!(run().await, 14);
        reading.end_run();
        assert_eq!(reading.rows(), 7);
    }
}
