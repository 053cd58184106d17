//! `INTO TABLE t`: a result table that can be queried, kept as a multiset of rows.
//!
//! A row is its columns' bytes and how often it is there; so signed rows need no key, and a scan has one order. What
//! a batch changed is kept until the next one, for the engine to store it with the batch's state; readers see whole
//! batches only.
//!
//! ```text
//! batch 0   +I (a,1)  +I (b,1)            t = {(a,1), (b,1)}
//! batch 1   -U (a,1)  +U (a,2)            t = {(a,2), (b,1)}     changed: (a,2) ×1, gone: (a,1)
//! ```

mod result;

use std::collections::BTreeMap;
use std::sync::Arc;

use self::result::RowKey;
pub use self::result::{ResultTable, TableChanges};
use super::{BatchId, BatchSummary, Begin, Sink, SinkCommit, SinkContext};
use crate::delta::Delta;
use crate::error::{Error, Result};
use crate::parser::OutputMode;

/// Writes the batches of one query into a [`ResultTable`].
#[derive(Debug)]
pub struct TableSink {
    table: Arc<ResultTable>,
    /// COMPLETE: a batch brings the whole table.
    replace: bool,
    /// How often each pushed row is to be added, or taken back. Partitions may bring the two in any order.
    net: BTreeMap<RowKey, i64>,
    rows: u64,
}

/// Opens the sink. It takes every mode; in UPDATE the query must send the old row with the new one.
///
/// # Errors
/// Internal: the table was made for another query's columns.
pub fn open(table: Arc<ResultTable>, context: &SinkContext) -> Result<TableSink> {
    if table.schema.fields() != context.schema.fields() {
        let (table, query) = (&table.schema, &context.schema);
        return Err(Error::internal(format!("the result table has the columns {table}, the query {query}")));
    }
    Ok(TableSink { table, replace: context.mode == OutputMode::Complete, net: BTreeMap::new(), rows: 0 })
}

impl Sink for TableSink {
    fn description(&self) -> String {
        format!("TableSink[{}]", self.table.name())
    }

    /// Never [`Begin::AlreadyDone`]: what the table holds at a start was stored with the last committed batch.
    fn begin(&mut self, _batch: BatchId) -> Result<Begin> {
        self.abort()?;
        Ok(Begin::Write)
    }

    fn push(&mut self, _partition: usize, changes: Delta) -> Result<()> {
        for (row, key) in self.table.keys(&changes.rows)?.into_iter().enumerate() {
            *self.net.entry(key).or_default() += changes.op(row).weight();
        }
        self.rows += changes.len() as u64;
        Ok(())
    }

    fn commit(&mut self, _summary: &BatchSummary) -> Result<SinkCommit> {
        self.table.apply(std::mem::take(&mut self.net), self.replace)?;
        Ok(SinkCommit { rows: std::mem::take(&mut self.rows) })
    }

    fn abort(&mut self) -> Result<()> {
        self.net.clear();
        self.rows = 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
