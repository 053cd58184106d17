//! Changes as rows that say what they do: a column of ops in front, and the batch's number before it.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, RecordBatchOptions, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use super::{BatchId, SinkContext};
use crate::delta::Delta;
use crate::error::{Error, Result};

/// Which columns stand in front of the result's.
#[derive(Debug, Clone)]
pub(super) struct Changelog {
    /// Of the column with the batch's number.
    batch_name: Option<&'static str>,
    /// Of the column of ops; `None` where the query only ever adds rows.
    op_name: Option<&'static str>,
    /// With the columns in front.
    schema: SchemaRef,
}

impl Changelog {
    /// Ops are shown only where the query can take rows back: elsewhere each row would say +I, also the one that
    /// replaces an earlier result.
    pub(super) fn new(context: &SinkContext, batch_name: Option<&'static str>, op_name: &'static str) -> Self {
        let op_name = context.retracts.then_some(op_name);
        let front = batch_name.map(|name| Field::new(name, DataType::Int64, false));
        let front = front.into_iter().chain(op_name.map(|name| Field::new(name, DataType::Utf8, false)));
        let fields: Vec<_> = front.map(Arc::new).chain(context.schema.fields().iter().cloned()).collect();
        Changelog { batch_name, op_name, schema: Arc::new(Schema::new(fields)) }
    }

    /// The columns in front, then the result's.
    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The rows of some changes, with the columns in front.
    ///
    /// # Errors
    /// Internal: rows of another schema, or taken back by a query that was said not to.
    pub(super) fn rows(&self, batch: BatchId, changes: &Delta) -> Result<RecordBatch> {
        if self.op_name.is_none() && changes.ops.is_some() {
            return Err(Error::internal("changes with ops reached a sink that was opened without"));
        }
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.schema.fields().len());
        if self.batch_name.is_some() {
            columns.push(Arc::new(Int64Array::from_value(batch as i64, changes.len())));
        }
        if self.op_name.is_some() {
            let symbols = (0..changes.len()).map(|row| changes.op(row).symbol());
            columns.push(Arc::new(StringArray::from_iter_values(symbols)));
        }
        columns.extend(changes.rows.columns().iter().cloned());
        let options = RecordBatchOptions::new().with_row_count(Some(changes.len()));
        RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)
            .map_err(|e| Error::internal(format!("rows for a sink don't fit its schema: {e}")))
    }
}
