//! How far a statement has come, for who waits for it.

use std::sync::Arc;

use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};

use super::{Session, lock};
use crate::execution::QueryHandle;
use crate::state::Loaded;

/// What runs for a statement.
#[derive(Clone)]
pub(super) enum Running {
    Plan(Arc<dyn ExecutionPlan>),
    /// A query that loads its states.
    Start(Arc<Loaded>),
    /// A query, which is run again.
    Verify(QueryHandle),
}

/// What was read so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Work {
    pub rows: u64,
    /// Of files, where their reader counts them.
    pub bytes: u64,
    /// Of everything that it will read, where that is about known.
    pub all_rows: Option<u64>,
    pub all_bytes: Option<u64>,
}

impl Session {
    /// How far the statement that runs has come; `None`: it does nothing that is counted.
    pub fn work(&self) -> Option<Work> {
        let running = lock(&self.running).clone()?;
        Some(match running {
            Running::Plan(plan) => {
                let mut work = Work { all_rows: Some(0), ..Work::default() };
                count(&plan, &mut work);
                work
            }
            Running::Start(loaded) => {
                Work { rows: loaded.rows(), bytes: loaded.bytes(), all_rows: None, all_bytes: loaded.all_bytes() }
            }
            Running::Verify(query) => {
                let (rows, all_rows) = query.verified_rows();
                Work { rows, all_rows, ..Work::default() }
            }
        })
    }

    /// A statement has started to run this.
    pub(super) fn runs(&self, running: Running) {
        *lock(&self.running) = Some(running);
    }
}

/// Adds what the leaves of a plan have given out.
fn count(plan: &Arc<dyn ExecutionPlan>, work: &mut Work) {
    let children = plan.children();
    if !children.is_empty() {
        return children.into_iter().for_each(|child| count(child, work));
    }
    let metrics = plan.metrics();
    let rows = metrics.as_ref().and_then(|metrics| metrics.output_rows()).unwrap_or(0);
    let bytes = metrics.as_ref().and_then(|metrics| metrics.sum_by_name("bytes_scanned"));
    // Of files that are filtered the number is not exact: it is that before the filter.
    let statistics = StatisticsContext::new().compute(plan.as_ref(), &StatisticsArgs::new()).ok();
    let all = statistics.and_then(|statistics| statistics.num_rows.get_value().map(|rows| *rows as u64));
    work.rows = work.rows.saturating_add(rows as u64);
    work.bytes = work.bytes.saturating_add(bytes.map_or(0, |bytes| bytes.as_usize() as u64));
    work.all_rows = work.all_rows.zip(all).map(|(sum, all)| sum.saturating_add(all));
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, Int64Array, RecordBatch};
    use datafusion::dataframe::DataFrameWriteOptions;
    use datafusion::prelude::{ParquetReadOptions, SessionContext};

    use super::*;

    #[tokio::test]
    async fn leaves_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("t.parquet").display().to_string();
        let column: ArrayRef = Arc::new(Int64Array::from_iter_values(0..100));
        let context = SessionContext::new();
        let rows = context.read_batch(RecordBatch::try_from_iter([("n", column)]).unwrap()).unwrap();
        rows.write_parquet(&file, DataFrameWriteOptions::new(), None).await.unwrap();
        context.register_parquet("t", &file, ParquetReadOptions::default()).await.unwrap();
        let frame = context.sql("SELECT sum(n) FROM t WHERE n % 2 = 0").await.unwrap();
        let plan = frame.create_physical_plan().await.unwrap();
        let mut before = Work { all_rows: Some(0), ..Work::default() };
        count(&plan, &mut before);
        assert_eq!(before, Work { all_rows: Some(100), ..Work::default() });
        datafusion::physical_plan::collect(plan.clone(), context.task_ctx()).await.unwrap();
        let mut after = Work { all_rows: Some(0), ..Work::default() };
        count(&plan, &mut after);
        assert_eq!((after.rows, after.bytes > 0, after.all_rows), (100, true, Some(100)));
    }
}
