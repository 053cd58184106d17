//! The values of rows beside their texts, so that a file that is made of them has their types.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, StringArray};
use arrow::datatypes::{Field, FieldRef, Schema, SchemaRef};
use arrow::row::{OwnedRow, RowConverter, SortField};

use super::model::Row;
use crate::error::Result;

/// What turns rows into bytes, and back.
#[derive(Debug, Clone)]
pub(super) struct Typed {
    schema: SchemaRef,
    /// `None`: a type that has no such bytes; its values are known as texts alone.
    converter: Option<Arc<RowConverter>>,
}

impl Typed {
    pub(super) fn new(schema: &SchemaRef) -> Self {
        let fields: Vec<_> = schema.fields().iter().map(|field| SortField::new(field.data_type().clone())).collect();
        Typed { schema: schema.clone(), converter: RowConverter::new(fields).ok().map(Arc::new) }
    }

    /// Whether the columns are these.
    pub(super) fn is_of(&self, schema: &SchemaRef) -> bool {
        let same = |(a, b): (&FieldRef, &FieldRef)| a.name() == b.name() && a.data_type() == b.data_type();
        self.schema.fields().len() == schema.fields().len()
            && self.schema.fields().iter().zip(schema.fields()).all(same)
    }

    /// The values of each row of a batch.
    ///
    /// # Errors
    /// The batch is none of this result.
    pub(super) fn values(&self, batch: &RecordBatch) -> Result<Vec<Option<OwnedRow>>> {
        let fits = batch.num_columns() == self.schema.fields().len()
            && batch
                .columns()
                .iter()
                .zip(self.schema.fields())
                .all(|(column, field)| column.data_type() == field.data_type());
        let Some(converter) = self.converter.as_ref().filter(|_| fits && batch.num_columns() > 0) else {
            return Ok(vec![None; batch.num_rows()]);
        };
        let rows = converter.convert_columns(batch.columns())?;
        Ok(rows.iter().map(|row| Some(row.owned())).collect())
    }

    /// Rows as a batch: of their values, or of their texts where those are all that is known.
    ///
    /// # Errors
    /// They are no rows of this result.
    pub(super) fn batch(&self, rows: &[&Row]) -> Result<RecordBatch> {
        let values: Option<Vec<_>> = rows.iter().map(|row| row.values.as_ref().map(OwnedRow::row)).collect();
        let columns: Vec<ArrayRef> = match (values, &self.converter) {
            (Some(values), Some(converter)) => converter.convert_rows(values)?,
            _ => (0..self.schema.fields().len()).map(|at| texts(rows, at)).collect(),
        };
        let fields = self.schema.fields().iter().zip(&columns);
        let fields: Vec<Field> =
            fields.map(|(field, column)| Field::new(field.name(), column.data_type().clone(), true)).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        Ok(RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)?)
    }
}

fn texts(rows: &[&Row], at: usize) -> ArrayRef {
    Arc::new(rows.iter().map(|row| row.cell(at)).collect::<StringArray>())
}
