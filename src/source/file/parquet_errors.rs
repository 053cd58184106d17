//! What can be wrong with a parquet file, told with its name.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Field, FieldRef, SchemaRef};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result as DfResult};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::files::{FileEntry, Files};
use super::metadata::NamedFile;
use super::parquet::FileReader;
use crate::error::{BadRecord, Error, Result};
use crate::format::type_name;

/// A file that is no sound parquet.
pub fn damaged(path: &str, why: &dyn std::fmt::Display) -> Error {
    Error::Io {
        context: format!("read {path}"),
        message: format!("the file is damaged, or no parquet: {why}"),
        kind: std::io::ErrorKind::InvalidData,
        transient: false,
    }
}

pub fn wrong_type(path: &str, found: &Field, wanted: &Field) -> Error {
    let (found, wants) = (type_name(found.data_type()), type_name(wanted.data_type()));
    Error::invalid(format!("{path}: column {} is {found} in the file, and {wants} in the stream", wanted.name()))
        .help(format!("declare it {found}, and cast it in the query"))
}

/// Whether every value of a file's column can become one of the declared type without changing, or fails loudly.
pub fn keeps_values(found: &DataType, wanted: &DataType) -> bool {
    use DataType::*;
    let text = |t: &DataType| matches!(t, Utf8 | LargeUtf8 | Utf8View);
    let bytes = |t: &DataType| matches!(t, Binary | LargeBinary | BinaryView | FixedSizeBinary(_));
    let days = |t: &DataType| matches!(t, Date32 | Date64);
    let scale = |t: &DataType| match t {
        Decimal32(_, scale) | Decimal64(_, scale) | Decimal128(_, scale) | Decimal256(_, scale) => Some(*scale),
        _ => None,
    };
    match (found, wanted) {
        (found, wanted) if found == wanted => true,
        (Dictionary(_, values), wanted) => keeps_values(values, wanted),
        (Null, _) => true,
        (found, wanted) if found.is_integer() && wanted.is_integer() => true,
        (found, wanted) if found.is_integer() && scale(wanted).is_some() => true,
        (Int8 | Int16 | UInt8 | UInt16, Float32) | (Int8 | Int16 | Int32 | UInt8 | UInt16 | UInt32, Float64) => true,
        (Float16, Float32 | Float64) | (Float32, Float64) => true,
        (Timestamp(..), Timestamp(..)) | (Time32(_) | Time64(_), Time32(_) | Time64(_)) => true,
        (found, Timestamp(..)) if days(found) => true,
        (found, wanted) if days(found) && days(wanted) => true,
        (found, wanted) if (text(found) || bytes(found)) && (text(wanted) || bytes(wanted)) => true,
        (found, wanted) => match (scale(found), scale(wanted)) {
            (Some(found), Some(wanted)) => wanted >= found,
            // What is inside nested types is DataFusion's to adapt.
            _ => found.is_nested() && std::mem::discriminant(found) == std::mem::discriminant(wanted),
        },
    }
}

/// An error of ours on its way through DataFusion.
pub fn boxed(error: Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// What a stream's errors are told with.
pub struct Reported {
    pub stream: String,
    /// The columns wanted.
    pub schema: SchemaRef,
    pub place: Arc<dyn Files>,
    pub files: Vec<NamedFile>,
}

impl Reported {
    /// The batch under the declared columns, or an error that names its file.
    pub fn check(&self, batch: DfResult<RecordBatch>) -> DfResult<RecordBatch> {
        let batch = batch.map_err(|error| boxed(self.explain(&error)))?;
        for (field, column) in self.schema.fields().iter().zip(batch.columns()) {
            if !field.is_nullable() && column.null_count() > 0 {
                return Err(boxed(self.find_null(field.name())));
            }
        }
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        Ok(RecordBatch::try_new_with_options(self.schema.clone(), batch.columns().to_vec(), &options)?)
    }

    /// The error with its file. One from inside a page knows none: the files are read again, one by one, to find it.
    fn explain(&self, error: &DataFusionError) -> Error {
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
        while let Some(inner) = cause {
            if let Some(own) = inner.downcast_ref::<Error>() {
                return own.clone();
            }
            cause = inner.source();
        }
        for (entry, path) in &self.files {
            match self.try_read(entry, path, None).and_then(|_| self.find_misfit(entry, path)) {
                Ok(None) => {}
                Ok(Some(record)) => return Error::BadRecord(Box::new(record)),
                Err(error) => return error,
            }
        }
        Error::computation(format!("stream {}: {error}", self.stream))
    }

    fn find_null(&self, column: &str) -> Error {
        for (entry, path) in &self.files {
            match self.try_read(entry, path, Some(column)) {
                Ok(None) => {}
                Ok(Some(row)) => {
                    return Error::BadRecord(Box::new(BadRecord {
                        source: self.stream.clone(),
                        path: Some(path.clone()),
                        line: None,
                        reason: format!("column {column} is NOT NULL and found null"),
                        text: format!("row {row} of the file"),
                    }));
                }
                Err(error) => return error,
            }
        }
        Error::internal(format!("a NULL in column {column} that is in no file"))
    }

    fn builder(&self, entry: &FileEntry) -> Result<ParquetRecordBatchReaderBuilder<FileReader>> {
        let reader = FileReader::open(&self.place, entry, Vec::new())?;
        let footer = reader.footer()?;
        Ok(ParquetRecordBatchReaderBuilder::new_with_metadata(reader, footer))
    }

    /// The first value of a file that its column's declared type can't hold.
    fn find_misfit(&self, entry: &FileEntry, path: &str) -> Result<Option<BadRecord>> {
        let damaged = |why: &dyn std::fmt::Display| damaged(path, why);
        let builder = self.builder(entry)?;
        let found = builder.schema().fields().iter().enumerate();
        // What is inside nested types is matched by name, not by place as a cast would.
        let differs = found.filter_map(|(at, column)| {
            let field = self.schema.fields().iter().find(|field| field.name() == column.name())?;
            (field.data_type() != column.data_type() && !column.data_type().is_nested()).then(|| (at, field.clone()))
        });
        let (roots, fields): (Vec<usize>, Vec<FieldRef>) = differs.unzip();
        if roots.is_empty() {
            return Ok(None);
        }
        let mask = ProjectionMask::roots(builder.parquet_schema(), roots);
        let reader = builder.with_projection(mask).build().map_err(|e| damaged(&e))?;
        let mut rows = 0;
        for batch in reader {
            let batch = batch.map_err(|e| damaged(&e))?;
            let misfits = batch.columns().iter().zip(&fields).filter_map(|(column, field)| {
                let at = first_misfit(column, field.data_type())?;
                Some((at, field, column))
            });
            if let Some((at, field, column)) = misfits.min_by_key(|(at, ..)| *at) {
                let value = ScalarValue::try_from_array(column, at).map(|value| value.to_string()).unwrap_or_default();
                let (name, wants) = (field.name(), type_name(field.data_type()));
                return Ok(Some(BadRecord {
                    source: self.stream.clone(),
                    path: Some(path.to_string()),
                    line: None,
                    reason: format!("column {name} is {wants} and {value} is out of its range"),
                    text: format!("row {} of the file", rows + at + 1),
                }));
            }
            rows += batch.num_rows();
        }
        Ok(None)
    }

    /// Reads a file through, and answers the first row (from 1) in which `column` is NULL.
    fn try_read(&self, entry: &FileEntry, path: &str, column: Option<&str>) -> Result<Option<usize>> {
        let builder = self.builder(entry)?;
        let names: Vec<&str> = match column {
            Some(column) => vec![column],
            None => self.schema.fields().iter().map(|field| field.name().as_str()).collect(),
        };
        let roots = builder.schema().fields().iter().enumerate();
        let roots: Vec<usize> = roots.filter(|(_, f)| names.contains(&f.name().as_str())).map(|(at, _)| at).collect();
        if column.is_some() && roots.is_empty() {
            return Ok(Some(1));
        }
        let mask = ProjectionMask::roots(builder.parquet_schema(), roots);
        let reader = builder.with_projection(mask).build().map_err(|e| damaged(path, &e))?;
        let mut rows = 0;
        for batch in reader {
            let batch = batch.map_err(|e| damaged(path, &e))?;
            let null =
                column.and_then(|_| batch.columns().first()).and_then(|c| (0..c.len()).find(|at| c.is_null(*at)));
            if let Some(at) = null {
                return Ok(Some(rows + at + 1));
            }
            rows += batch.num_rows();
        }
        Ok(None)
    }
}

/// The first value that a cast to `wanted` refuses.
fn first_misfit(column: &ArrayRef, wanted: &DataType) -> Option<usize> {
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    let fits = |values: &ArrayRef| cast_with_options(values, wanted, &strict).is_ok();
    (!fits(column)).then(|| (0..column.len()).find(|at| !fits(&column.slice(*at, 1)))).flatten()
}
