//! The last result as a table, `_`.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::TableReference;
use datafusion::datasource::MemTable;

use super::Session;
use crate::error::Result;

/// What the last result is called.
pub const LAST_RESULT: &str = "_";

impl Session {
    /// Makes rows the table `_`, in place of an earlier result; `None`: there is no such table any more. It is in no
    /// list of tables, and a table that somebody has made under this name stays.
    ///
    /// # Errors
    /// DataFusion does not take the table.
    pub fn keep_result(&self, result: Option<(&SchemaRef, &[RecordBatch])>) -> Result<()> {
        if self.catalog.kind(LAST_RESULT).is_some() {
            return Ok(());
        }
        let name = || TableReference::bare(LAST_RESULT);
        self.context.deregister_table(name())?;
        if let Some((schema, batches)) = result {
            let schema = with_unique_names(schema);
            let rows = |batch: &RecordBatch| RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
            let batches = batches
                .iter()
                .map(|batch| RecordBatch::try_new_with_options(schema.clone(), batch.columns().to_vec(), &rows(batch)));
            let batches = batches.collect::<std::result::Result<Vec<_>, _>>()?;
            self.context.register_table(name(), Arc::new(MemTable::try_new(schema, vec![batches])?))?;
        }
        Ok(())
    }
}

/// A table has a name once: `id` and `id:1`. What a result says of NULL may be more than its rows keep.
fn with_unique_names(schema: &SchemaRef) -> SchemaRef {
    let mut names = BTreeSet::new();
    let fields = schema.fields().iter().map(|field| {
        let mut name = field.name().clone();
        let mut number = 1;
        while !names.insert(name.clone()) {
            name = format!("{}:{number}", field.name());
            number += 1;
        }
        field.as_ref().clone().with_name(name).with_nullable(true)
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}
