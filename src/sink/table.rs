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

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow::array::{Int64Array, RecordBatch};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::row::{RowConverter, SortField};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::error::{DataFusionError, Result as DfResult};
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;

use super::{BatchId, BatchSummary, Begin, Sink, SinkCommit, SinkContext};
use crate::delta::Delta;
use crate::error::{Error, Result};
use crate::parser::OutputMode;

/// The rows of `t`, shared by the query that writes and those that read.
#[derive(Debug)]
pub struct ResultTable {
    name: String,
    schema: SchemaRef,
    converter: RowConverter,
    held: Mutex<Held>,
}

/// A row's bytes, in the process's own encoding: never stored.
type RowKey = Box<[u8]>;

#[derive(Debug, Default)]
struct Held {
    /// How often each row is there; never 0.
    rows: BTreeMap<RowKey, u64>,
    /// Goes up with every change.
    version: u64,
    /// The rows of this version as batches, once somebody has read them.
    snapshot: Option<Arc<Vec<RecordBatch>>>,
    /// What the last batch changed: the new count of each row, 0 where it is gone.
    changed: BTreeMap<RowKey, u64>,
}

/// What the last committed batch changed, for the table's state.
#[derive(Debug, Clone, Default)]
pub struct TableChanges {
    /// Rows that are there now, each once, and how often.
    pub upserts: Vec<(RecordBatch, Int64Array)>,
    /// Rows that are gone.
    pub deletes: Vec<RecordBatch>,
}

/// Rows of a batch that is handed out.
const CHUNK_ROWS: usize = 8192;

impl ResultTable {
    /// An empty table.
    ///
    /// # Errors
    /// Unsupported: a column of a type that rows can't be compared by.
    pub fn new(name: impl Into<String>, schema: SchemaRef) -> Result<Arc<Self>> {
        let name = name.into();
        let fields: Vec<_> = schema.fields().iter().map(|f| SortField::new(f.data_type().clone())).collect();
        for (field, sort) in schema.fields().iter().zip(&fields) {
            if !RowConverter::supports_fields(std::slice::from_ref(sort)) {
                let what = format!("column {} is {}, which a result table can't hold", field.name(), field.data_type());
                return Err(Error::unsupported(what).help("leave it out, or cast it to VARCHAR"));
            }
        }
        let converter = RowConverter::new(fields).map_err(wrong)?;
        Ok(Arc::new(ResultTable { name, schema, converter, held: Mutex::default() }))
    }

    /// Replaces everything by stored rows: all columns, each row once, and how often it is there.
    ///
    /// # Errors
    /// Internal: rows of another schema, or a count below 1.
    pub fn load(&self, stored: &[(RecordBatch, Int64Array)]) -> Result<()> {
        let mut rows = BTreeMap::new();
        for (batch, counts) in stored {
            for (key, count) in self.keys(batch)?.into_iter().zip(counts.values()) {
                let count = u64::try_from(*count).ok().filter(|count| *count > 0).ok_or_else(|| {
                    Error::internal(format!("a stored row of table {} is there {count} times", self.name))
                })?;
                rows.insert(key, count);
            }
        }
        let mut held = self.lock();
        *held = Held { rows, version: held.version + 1, ..Held::default() };
        Ok(())
    }

    /// What the last committed batch changed.
    pub fn changes(&self) -> Result<TableChanges> {
        let changed = self.lock().changed.clone();
        let (upserts, deletes): (Vec<_>, Vec<_>) = changed.into_iter().partition(|(_, count)| *count > 0);
        let mut changes = TableChanges::default();
        for chunk in upserts.chunks(CHUNK_ROWS) {
            let counts = chunk.iter().map(|(_, count)| *count as i64).collect();
            changes.upserts.push((self.batch(chunk.iter().map(|(key, _)| key))?, counts));
        }
        for chunk in deletes.chunks(CHUNK_ROWS) {
            changes.deletes.push(self.batch(chunk.iter().map(|(key, _)| key))?);
        }
        Ok(changes)
    }

    /// All rows as of the last committed batch, in the order of their columns' values.
    pub fn snapshot(&self) -> Result<Arc<Vec<RecordBatch>>> {
        let mut held = self.lock();
        if let Some(snapshot) = &held.snapshot {
            return Ok(snapshot.clone());
        }
        let mut batches = Vec::new();
        let mut chunk: Vec<&RowKey> = Vec::with_capacity(CHUNK_ROWS);
        for (key, count) in &held.rows {
            for _ in 0..*count {
                chunk.push(key);
                if chunk.len() == CHUNK_ROWS {
                    batches.push(self.batch(chunk.drain(..))?);
                }
            }
        }
        if !chunk.is_empty() {
            batches.push(self.batch(chunk.drain(..))?);
        }
        let snapshot = Arc::new(batches);
        held.snapshot = Some(snapshot.clone());
        Ok(snapshot)
    }

    /// Different after every batch that changed something.
    pub fn version(&self) -> u64 {
        self.lock().version
    }

    /// How many rows there are.
    pub fn row_count(&self) -> u64 {
        self.lock().rows.values().sum()
    }

    /// Takes over what a batch pushed: `net` counts, or in COMPLETE all rows. All of it or, on an error, nothing.
    fn apply(&self, net: BTreeMap<RowKey, i64>, replace: bool) -> Result<()> {
        let mut held = self.lock();
        let mut changed = BTreeMap::new();
        for (key, weight) in net {
            let was = held.rows.get(&key).copied().unwrap_or(0);
            let base = if replace { 0 } else { was };
            let now = base.checked_add_signed(weight).ok_or_else(|| {
                Error::internal(format!("a batch takes back a row that table {} does not hold", self.name))
            })?;
            if now != was || replace {
                changed.insert(key, now);
            }
        }
        if replace {
            let gone = held.rows.keys().filter(|key| !changed.contains_key(*key)).cloned().collect::<Vec<_>>();
            changed.extend(gone.into_iter().map(|key| (key, 0)));
            changed.retain(|key, now| held.rows.get(key).copied().unwrap_or(0) != *now);
        }
        for (key, now) in &changed {
            match now {
                0 => held.rows.remove(key),
                now => held.rows.insert(key.clone(), *now),
            };
        }
        if !changed.is_empty() {
            held.version += 1;
            held.snapshot = None;
        }
        held.changed = changed;
        Ok(())
    }

    fn keys(&self, batch: &RecordBatch) -> Result<Vec<RowKey>> {
        let types = |schema: &SchemaRef| schema.fields().iter().map(|f| f.data_type().clone()).collect::<Vec<_>>();
        if types(batch.schema_ref()) != types(&self.schema) {
            let found = batch.schema();
            return Err(Error::internal(format!("table {} has columns {}, the rows {found}", self.name, self.schema)));
        }
        let rows = self.converter.convert_columns(batch.columns()).map_err(wrong)?;
        Ok(rows.iter().map(|row| RowKey::from(row.data())).collect())
    }

    fn batch<'a>(&self, keys: impl Iterator<Item = &'a RowKey>) -> Result<RecordBatch> {
        let parser = self.converter.parser();
        let columns = self.converter.convert_rows(keys.map(|key| parser.parse(key))).map_err(wrong)?;
        // Dictionaries come back as plain values.
        let columns = columns.into_iter().zip(self.schema.fields()).map(|(column, field)| {
            if column.data_type() == field.data_type() {
                Ok(column)
            } else {
                arrow::compute::cast(&column, field.data_type())
            }
        });
        let columns = columns.collect::<Result<Vec<_>, _>>().map_err(wrong)?;
        RecordBatch::try_new(self.schema.clone(), columns).map_err(wrong)
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn wrong(error: ArrowError) -> Error {
    Error::internal(format!("rows of a result table: {error}"))
}

#[async_trait]
impl TableProvider for ResultTable {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        _state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        let rows = self.snapshot().map_err(|e| DataFusionError::External(Box::new(e)))?;
        let partitions = [rows.as_ref().clone()];
        Ok(MemorySourceConfig::try_new_exec(&partitions, self.schema.clone(), projection.cloned())?)
    }
}

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
        format!("TableSink[{}]", self.table.name)
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
mod tests {
    use super::*;
    use crate::delta::Op;
    use arrow::array::{AsArray, StringArray};
    use arrow::datatypes::{DataType, Field, Int64Type, Schema};
    use datafusion::prelude::SessionContext;

    fn schema() -> SchemaRef {
        Arc::new(Schema::new(vec![Field::new("k", DataType::Utf8, true), Field::new("n", DataType::Int64, false)]))
    }

    fn rows(rows: &[(Option<&str>, i64)]) -> RecordBatch {
        let keys = StringArray::from_iter(rows.iter().map(|row| row.0));
        let numbers = Int64Array::from_iter_values(rows.iter().map(|row| row.1));
        RecordBatch::try_new(schema(), vec![Arc::new(keys), Arc::new(numbers)]).unwrap()
    }

    fn opened(mode: OutputMode) -> (Arc<ResultTable>, TableSink) {
        let table = ResultTable::new("t", schema()).unwrap();
        let context = SinkContext {
            query: "q".into(),
            query_id: "id".into(),
            run_id: "run".into(),
            mode,
            schema: schema(),
            retracts: mode == OutputMode::Update,
            partitions: 2,
            failpoints: Default::default(),
        };
        let sink = open(table.clone(), &context).unwrap();
        (table, sink)
    }

    fn commit(sink: &mut TableSink, batch: BatchId, changes: Vec<Delta>) -> Result<SinkCommit> {
        sink.begin(batch)?;
        for (partition, changes) in changes.into_iter().enumerate() {
            sink.push(partition, changes)?;
        }
        sink.commit(&BatchSummary::default())
    }

    fn content(table: &ResultTable) -> Vec<(Option<String>, i64)> {
        let mut found = Vec::new();
        for batch in table.snapshot().unwrap().iter() {
            let (keys, numbers) = (batch.column(0).as_string::<i32>(), batch.column(1).as_primitive::<Int64Type>());
            found.extend(keys.iter().zip(numbers.values()).map(|(k, n)| (k.map(String::from), *n)));
        }
        found
    }

    fn expect(rows: &[(Option<&str>, i64)]) -> Vec<(Option<String>, i64)> {
        rows.iter().map(|(k, n)| (k.map(String::from), *n)).collect()
    }

    #[test]
    fn signed_rows_change_a_multiset() {
        let (table, mut sink) = opened(OutputMode::Update);
        let first = rows(&[(Some("b"), 1), (None, 1), (Some("a"), 1), (Some("a"), 1)]);
        assert_eq!(commit(&mut sink, 0, vec![Delta::insert(first)]).unwrap().rows, 4);
        assert_eq!(content(&table), expect(&[(None, 1), (Some("a"), 1), (Some("a"), 1), (Some("b"), 1)]));
        let update = rows(&[(Some("a"), 1), (Some("a"), 2), (Some("b"), 1)]);
        let ops = vec![Op::UpdateBefore, Op::UpdateAfter, Op::Delete];
        commit(&mut sink, 1, vec![Delta::changes(update, ops).unwrap()]).unwrap();
        assert_eq!(content(&table), expect(&[(None, 1), (Some("a"), 1), (Some("a"), 2)]));
        let changes = table.changes().unwrap();
        assert_eq!(changes.upserts, vec![(rows(&[(Some("a"), 1), (Some("a"), 2)]), Int64Array::from(vec![1, 1]))]);
        assert_eq!(changes.deletes, vec![rows(&[(Some("b"), 1)])]);
        assert_eq!(table.row_count(), 3);
    }

    #[test]
    fn partitions_may_take_back_before_they_give() {
        let (table, mut sink) = opened(OutputMode::Update);
        let back = Delta::changes(rows(&[(Some("a"), 1)]), vec![Op::Delete]).unwrap();
        let give = Delta::changes(rows(&[(Some("a"), 1)]), vec![Op::Insert]).unwrap();
        commit(&mut sink, 0, vec![back, give]).unwrap();
        assert_eq!((content(&table), table.version()), (expect(&[]), 0));
    }

    #[test]
    fn a_wrong_batch_changes_nothing() {
        let (table, mut sink) = opened(OutputMode::Update);
        commit(&mut sink, 0, vec![Delta::insert(rows(&[(Some("a"), 1)]))]).unwrap();
        let wrong = Delta::changes(rows(&[(Some("a"), 1), (Some("x"), 1)]), vec![Op::Delete, Op::Delete]).unwrap();
        let error = commit(&mut sink, 1, vec![wrong]).unwrap_err().to_string();
        assert!(error.contains("a batch takes back a row that table t does not hold"), "{error}");
        assert_eq!(content(&table), expect(&[(Some("a"), 1)]));
        sink.begin(1).unwrap();
        sink.push(0, Delta::insert(rows(&[(Some("z"), 1)]))).unwrap();
        sink.abort().unwrap();
        commit(&mut sink, 1, vec![]).unwrap();
        assert_eq!(content(&table), expect(&[(Some("a"), 1)]));
    }

    #[test]
    fn complete_replaces_and_tells_the_difference() {
        let (table, mut sink) = opened(OutputMode::Complete);
        commit(&mut sink, 0, vec![Delta::insert(rows(&[(Some("a"), 1), (Some("b"), 1), (Some("c"), 1)]))]).unwrap();
        let next = [rows(&[(Some("a"), 1), (Some("b"), 2)]), rows(&[(Some("c"), 1), (Some("c"), 1)])];
        commit(&mut sink, 1, next.map(Delta::insert).to_vec()).unwrap();
        assert_eq!(content(&table), expect(&[(Some("a"), 1), (Some("b"), 2), (Some("c"), 1), (Some("c"), 1)]));
        let changes = table.changes().unwrap();
        assert_eq!(changes.upserts, vec![(rows(&[(Some("b"), 2), (Some("c"), 1)]), Int64Array::from(vec![1, 2]))]);
        assert_eq!(changes.deletes, vec![rows(&[(Some("b"), 1)])]);
    }

    #[test]
    fn what_changed_is_enough_to_load_it_again() {
        let (table, mut sink) = opened(OutputMode::Update);
        commit(&mut sink, 0, vec![Delta::insert(rows(&[(Some("a"), 1), (Some("a"), 1), (None, 7)]))]).unwrap();
        let other = ResultTable::new("t", schema()).unwrap();
        other.load(&table.changes().unwrap().upserts).unwrap();
        assert_eq!(content(&other), content(&table));
        assert!(other.load(&[(rows(&[(None, 1)]), Int64Array::from(vec![0]))]).is_err());
        assert_eq!(content(&other), content(&table));
    }

    #[test]
    fn readers_keep_the_batch_they_began_with() {
        let (table, mut sink) = opened(OutputMode::Update);
        let many: Vec<_> = (0..20_000).map(|n| (Some("a"), n)).collect();
        commit(&mut sink, 0, vec![Delta::insert(rows(&many))]).unwrap();
        let before = table.snapshot().unwrap();
        commit(&mut sink, 1, vec![Delta::changes(rows(&[(Some("a"), 5)]), vec![Op::Delete]).unwrap()]).unwrap();
        assert_eq!(before.iter().map(|b| b.num_rows()).sum::<usize>(), 20_000);
        let context = SessionContext::new();
        context.register_table("t", table.clone()).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let found = runtime.block_on(async { context.sql("SELECT count(n), max(n) FROM t").await?.collect().await });
        let found = found.unwrap();
        assert_eq!(found[0].column(0).as_primitive::<Int64Type>().value(0), 19_999);
        assert_eq!(found[0].column(1).as_primitive::<Int64Type>().value(0), 19_999);
    }
}
