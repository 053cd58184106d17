//! The rows of a result table: a multiset that is replaced from batch to batch, and read in between.

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

use crate::delta::keys::normalise;
use crate::error::{Error, Result};
use crate::format::type_name;

/// The rows of `t`, shared by the query that writes and those that read.
#[derive(Debug)]
pub struct ResultTable {
    name: String,
    pub(super) schema: SchemaRef,
    converter: RowConverter,
    held: Mutex<Held>,
}

/// A row's bytes, in the process's own encoding: never stored.
pub(super) type RowKey = Box<[u8]>;

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
                let what = format!(
                    "column {} is {}, which a result table can't hold",
                    field.name(),
                    type_name(field.data_type())
                );
                return Err(Error::unsupported(what).help("leave it out, or cast it to VARCHAR"));
            }
        }
        let converter = RowConverter::new(fields).map_err(wrong)?;
        Ok(Arc::new(ResultTable { name, schema, converter, held: Mutex::default() }))
    }

    /// The table's name.
    pub fn name(&self) -> &str {
        &self.name
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
    pub(super) fn apply(&self, net: BTreeMap<RowKey, i64>, replace: bool) -> Result<()> {
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

    pub(super) fn keys(&self, batch: &RecordBatch) -> Result<Vec<RowKey>> {
        let types = |schema: &SchemaRef| schema.fields().iter().map(|f| f.data_type().clone()).collect::<Vec<_>>();
        if types(batch.schema_ref()) != types(&self.schema) {
            let found = batch.schema();
            return Err(Error::internal(format!("table {} has columns {}, the rows {found}", self.name, self.schema)));
        }
        // As in groups: +0.0 and −0.0 are one value, all NaN are one. A restart gives rows back in that form.
        let columns = batch.columns().iter().map(normalise).collect::<Result<Vec<_>>>()?;
        let rows = self.converter.convert_columns(&columns).map_err(wrong)?;
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
