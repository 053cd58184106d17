//! Columns that are in no file: those that a file sink of ours made folders of (`partition_by`).
//!
//! ```text
//! out/_levada/…                          the folder has a manifest
//! out/day=2024-01-01/part-0….json   →    day is 2024-01-01 in every row of the file, where the stream declares it
//! ```
//! Files are read in runs that agree in these columns, one run behind the other, each without them; the values are
//! put beside what was read.

use std::collections::HashMap;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{FieldRef, SchemaRef};
use datafusion::error::{DataFusionError, Result as DfResult};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::scalar::ScalarValue;
use futures::StreamExt;

use super::metadata::NamedFile;
use super::place::Place;
use crate::error::{Error, Result};
use crate::source::Pushdown;

/// Files that agree in the columns that their folders tell.
pub struct Run {
    /// Indices of columns, and their values.
    values: Vec<(usize, ScalarValue)>,
    pub files: Vec<NamedFile>,
}

/// Cuts files, in their order, into runs. `fields`: those of a record; only what is wanted of them matters.
///
/// # Errors
/// Execution: a folder's text is no value of its column. Io.
pub fn runs(files: Vec<NamedFile>, place: &Place, fields: &[FieldRef], wanted: &Pushdown) -> Result<Vec<Run>> {
    let mut known: HashMap<String, Vec<(usize, ScalarValue)>> = HashMap::new();
    let mut runs: Vec<Run> = Vec::new();
    for file in files {
        let folder = file.0.path.rsplit_once('/').map(|(folder, _)| folder.to_string()).unwrap_or_default();
        let values = match known.get(&folder) {
            Some(values) => values.clone(),
            None => {
                let values = values(&file, place, fields, wanted)?;
                known.insert(folder, values.clone());
                values
            }
        };
        match runs.last_mut() {
            Some(run) if run.values == values => run.files.push(file),
            _ => runs.push(Run { values, files: vec![file] }),
        }
    }
    Ok(runs)
}

fn values(
    file: &NamedFile,
    place: &Place,
    fields: &[FieldRef],
    wanted: &Pushdown,
) -> Result<Vec<(usize, ScalarValue)>> {
    let mut values = Vec::new();
    for (name, value) in place.folder_values(&file.0)? {
        let Some(at) = fields.iter().position(|field| *field.name() == name) else { continue };
        if !wanted.columns.contains(&at) {
            continue;
        }
        let (data_type, shown) = (fields[at].data_type(), value.as_deref().unwrap_or("NULL"));
        let wrong = || {
            let (path, wants) = (&file.1, crate::format::type_name(data_type));
            let null = if fields[at].is_nullable() { "" } else { " NOT NULL" };
            Error::computation(format!("{path}: its folder says {name} = {shown}, and {name} is {wants}{null}"))
        };
        if value.is_none() && !fields[at].is_nullable() {
            return Err(wrong());
        }
        let value = ScalarValue::Utf8(value.clone()).cast_to(data_type).map_err(|_| wrong())?;
        values.push((at, value));
    }
    Ok(values)
}

impl Run {
    /// What is wanted of the files themselves. A filter over a column that they lack would take it for NULL.
    pub fn of_files(&self, schema: &SchemaRef, wanted: &Pushdown) -> Pushdown {
        let told = |column: usize| self.values.iter().any(|(at, _)| *at == column);
        let names: Vec<&str> = self.values.iter().map(|(at, _)| schema.field(*at).name().as_str()).collect();
        let filters = wanted.filters.iter();
        let filters = filters.filter(|f| !f.column_refs().iter().any(|column| names.contains(&column.name.as_str())));
        Pushdown {
            columns: wanted.columns.iter().copied().filter(|column| !told(*column)).collect(),
            filters: filters.cloned().collect(),
            partitions: wanted.partitions,
        }
    }

    /// What was read of the files, with the columns that their folders tell.
    pub fn complete(
        &self,
        stream: SendableRecordBatchStream,
        schema: &SchemaRef,
        wanted: &Pushdown,
    ) -> SendableRecordBatchStream {
        if self.values.is_empty() {
            return stream;
        }
        let value = |column: &usize| self.values.iter().find(|(at, _)| at == column).map(|(_, value)| value.clone());
        let told: Vec<Option<ScalarValue>> = wanted.columns.iter().map(value).collect();
        let whole = schema.clone();
        let batches = stream.map(move |batch| put_beside(&batch?, &told, &whole));
        Box::pin(RecordBatchStreamAdapter::new(schema.clone(), batches))
    }
}

fn put_beside(read: &RecordBatch, told: &[Option<ScalarValue>], schema: &SchemaRef) -> DfResult<RecordBatch> {
    let mut columns = read.columns().iter().cloned();
    let column = |told: &Option<ScalarValue>| -> DfResult<ArrayRef> {
        let missing = || DataFusionError::External(Box::new(Error::internal("a column was not read")));
        told.as_ref()
            .map_or_else(|| columns.next().ok_or_else(missing), |value| value.to_array_of_size(read.num_rows()))
    };
    let columns = told.iter().map(column).collect::<DfResult<Vec<_>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(read.num_rows()));
    Ok(RecordBatch::try_new_with_options(schema.clone(), columns, &options)?)
}

/// The streams of several runs, each first one behind the other first ones, and so on.
pub fn one_behind_another(
    runs: Vec<Vec<SendableRecordBatchStream>>,
    schema: &SchemaRef,
) -> Vec<SendableRecordBatchStream> {
    let mut streams: Vec<Vec<SendableRecordBatchStream>> = Vec::new();
    for (at, stream) in runs.into_iter().flat_map(|run| run.into_iter().enumerate()) {
        match streams.get_mut(at) {
            Some(before) => before.push(stream),
            None => streams.push(vec![stream]),
        }
    }
    let chained = |streams| {
        let batches = futures::stream::iter::<Vec<SendableRecordBatchStream>>(streams).flatten();
        Box::pin(RecordBatchStreamAdapter::new(schema.clone(), batches)) as SendableRecordBatchStream
    };
    streams.into_iter().map(chained).collect()
}
