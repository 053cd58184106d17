//! From decoded records to the batches a reader asked for: fields and metadata side by side, in the order wanted.

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::compute::cast;
use arrow::datatypes::{Fields, SchemaRef};

use super::Pushdown;
use super::file::Key;
use crate::error::{Error, Result};
use crate::format::{CsvDecoder, CsvOptions, Decoder, Finished, Format, JsonDecoder, PerRecord, TextDecoder};

/// Batches have this many rows.
pub const BATCH_ROWS: usize = 8192;

/// Where a column of the result comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Output {
    /// Index into the fields that are decoded.
    Field(usize),
    Metadata(Key),
}

/// What is wanted of the records.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// The columns of the result.
    pub schema: SchemaRef,
    /// For each of them, where it comes from.
    outputs: Vec<Output>,
    /// The fields that are decoded.
    pub fields: Fields,
    /// Their indices among all fields of a record.
    indices: Vec<usize>,
    /// The names of all fields of a record.
    names: Vec<String>,
}

impl Wanted {
    /// What `pushdown` wants of a source whose schema is `count` fields and then columns of these `keys`.
    ///
    /// # Errors
    /// Internal: a column that isn't there.
    pub fn new(schema: &SchemaRef, count: usize, keys: &[Key], pushdown: &Pushdown) -> Result<Self> {
        let projected = pushdown.project(schema)?;
        let mut indices: Vec<usize> = Vec::new();
        let mut outputs = Vec::with_capacity(pushdown.columns.len());
        for column in &pushdown.columns {
            outputs.push(match column.checked_sub(count) {
                Some(extra) => Output::Metadata(keys[extra]),
                None => Output::Field(indices.iter().position(|known| known == column).unwrap_or_else(|| {
                    indices.push(*column);
                    indices.len() - 1
                })),
            });
        }
        let fields = indices.iter().map(|at| schema.fields()[*at].clone()).collect();
        let names = schema.fields()[..count].iter().map(|field| field.name().clone()).collect();
        Ok(Wanted { schema: projected, outputs, fields, indices, names })
    }

    /// What must be collected beside the fields.
    pub fn per_record(&self) -> PerRecord {
        let wants = |key| self.outputs.contains(&Output::Metadata(key));
        PerRecord { line: wants(Key::Line), offset: wants(Key::Offset), corrupt: wants(Key::CorruptRecord) }
    }

    /// A decoder of these fields.
    ///
    /// # Errors
    /// Internal: parquet, which has no records.
    pub fn decoder(&self, format: Format, csv: &CsvOptions) -> Result<Decoder> {
        Ok(match format {
            Format::Csv => Decoder::Csv(CsvDecoder::new(csv.clone(), self.names.clone(), self.indices.clone())),
            Format::Text => Decoder::Text(TextDecoder),
            Format::Json => Decoder::Json(JsonDecoder::default()),
            Format::Parquet => return Err(Error::internal("parquet is not read by records")),
        })
    }

    /// The columns wanted. `of_file` gives the values of the keys that belong to a file.
    ///
    /// # Errors
    /// Internal: arrays that arrow refuses.
    pub fn assemble(&self, finished: &Finished, of_file: impl Fn(Key) -> ArrayRef) -> Result<RecordBatch> {
        let missing = || Error::internal("a column was not collected");
        let mut columns = Vec::with_capacity(self.outputs.len());
        for (output, field) in self.outputs.iter().zip(self.schema.fields()) {
            let values: ArrayRef = match output {
                Output::Field(at) => finished.fields.get(*at).cloned().ok_or_else(missing)?,
                Output::Metadata(Key::Line) => finished.line.clone().ok_or_else(missing)?,
                Output::Metadata(Key::Offset) => finished.offset.clone().ok_or_else(missing)?,
                Output::Metadata(Key::CorruptRecord) => finished.corrupt.clone().ok_or_else(missing)?,
                Output::Metadata(key) => of_file(*key),
            };
            let same = values.data_type() == field.data_type();
            columns.push(if same { values } else { cast(&values, field.data_type()).map_err(refused)? });
        }
        let options = RecordBatchOptions::new().with_row_count(Some(finished.rows));
        RecordBatch::try_new_with_options(self.schema.clone(), columns, &options).map_err(refused)
    }
}

fn refused(error: arrow::error::ArrowError) -> Error {
    Error::internal(format!("a batch that arrow refuses: {error}"))
}
