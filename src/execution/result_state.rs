//! `INTO TABLE t`: the table's rows kept with the query's state, in `state/result/`, so that they survive a restart.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, FieldRef, Int64Type, Schema, SchemaRef};

use crate::checkpoint::Store;
use crate::delta::keys::KeyCodec;
use crate::error::{Error, Result};
use crate::sink::table::ResultTable;
use crate::state::file::Delta;
use crate::state::schema::StateSchema;
use crate::state::{Loaded, OperatorState, Shape};

/// A result table's rows as a keyed state: the row is the key, how often it is there is the value.
pub struct ResultState {
    table: Arc<ResultTable>,
    state: OperatorState,
    shape: Shape,
}

impl ResultState {
    /// What a table's state is made of. `text`: what makes its rows, where a row that another text has made could not be
    /// taken back.
    pub fn shape(schema: &SchemaRef, text: Option<String>) -> Result<Shape> {
        let keys: Vec<FieldRef> = schema.fields().iter().enumerate().map(|(n, f)| named(n, f)).collect();
        let count: FieldRef = Field::new("count", DataType::Int64, false).into();
        let rows: Vec<FieldRef> = keys.iter().cloned().chain([count.clone()]).collect();
        let values = vec![count];
        Ok(Shape {
            rows: Arc::new(Schema::new(rows)),
            keys: Arc::new(Schema::new(keys.clone())),
            codec: Arc::new(KeyCodec::new(&keys)?),
            stored: StateSchema::new("result", &keys.into(), &values.into(), BTreeMap::new()).made_by(text),
            partitions: 1,
            spread: None,
        })
    }

    /// Opens what is kept of the table as of batch `version`, and fills the table with it.
    pub fn open(
        store: Arc<dyn Store>,
        table: Arc<ResultTable>,
        shape: Shape,
        schema: &SchemaRef,
        version: Option<u64>,
        loaded: &Loaded,
    ) -> Result<Self> {
        let state = OperatorState::open(store, &shape, version, None, loaded)?;
        let kept = ResultState { table, state, shape };
        kept.fill(schema)?;
        Ok(kept)
    }

    /// The table whose rows are kept.
    pub fn table(&self) -> &Arc<ResultTable> {
        &self.table
    }

    /// The same table as of another version: what was done since is undone.
    pub fn reopen(
        self,
        store: Arc<dyn Store>,
        schema: &SchemaRef,
        version: Option<u64>,
        loaded: &Loaded,
    ) -> Result<Self> {
        let (table, shape) = (self.table.clone(), self.shape.clone());
        drop(self);
        ResultState::open(store, table, shape, schema, version, loaded)
    }

    /// See [`OperatorState::keep_schema`].
    pub fn keep_schema(&mut self) -> Result<()> {
        self.state.keep_schema()
    }

    /// See [`OperatorState::take_notices`].
    pub fn take_notices(&mut self) -> Vec<String> {
        self.state.take_notices()
    }

    fn fill(&self, schema: &SchemaRef) -> Result<()> {
        let mut stored = Vec::new();
        for partition in self.state.partitions() {
            let table = partition.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let slots = table.slots();
            if slots.is_empty() {
                continue;
            }
            let rows = RecordBatch::try_new(schema.clone(), table.key_columns(&slots)?).map_err(Error::from)?;
            let counts = table.values(&slots)?[0].as_primitive::<Int64Type>().clone();
            stored.push((rows, counts));
        }
        self.table.load(&stored)
    }

    /// Keeps what batch `version`, which the table's sink has committed, changed.
    pub fn commit(&mut self, version: u64) -> Result<u64> {
        let changes = self.table.changes()?;
        let mut delta = Delta::default();
        for (rows, counts) in &changes.upserts {
            delta.upserts.push(self.rows(rows, counts)?);
        }
        for rows in &changes.deletes {
            delta
                .deletes
                .push(RecordBatch::try_new(self.shape.keys.clone(), rows.columns().to_vec()).map_err(Error::from)?);
        }
        self.state.apply(&self.shape, &delta)?;
        self.state.commit(version, &delta)
    }

    /// See [`OperatorState::snapshot_if_due`].
    pub fn snapshot_if_due(&mut self, version: u64, keep_from: u64) {
        self.state.snapshot_if_due(version, keep_from);
    }

    fn rows(&self, rows: &RecordBatch, counts: &Int64Array) -> Result<RecordBatch> {
        let mut columns = rows.columns().to_vec();
        columns.push(Arc::new(counts.clone()) as ArrayRef);
        RecordBatch::try_new(self.shape.rows.clone(), columns).map_err(Error::from)
    }
}

/// Column names of a result may repeat; those of a state may not.
fn named(n: usize, field: &FieldRef) -> FieldRef {
    Field::new(format!("{n}:{}", field.name()), field.data_type().clone(), true).into()
}
