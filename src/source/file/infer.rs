//! The columns of the files that are at a place now.

use std::path::Path;
use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use datafusion::datasource::physical_plan::parquet::transform_schema_to_view;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};

use super::input::{Input, open_unchanged};
use super::options::FileOptions;
use super::place::{FileEntry, Manifest, Place};
use crate::error::{BadRecord, Error, Result};
use crate::format::{Block, Format, Inference, shorten};
use crate::options::Options;

/// The columns of the files at the options' path, from the first [`INFER_RECORDS`](crate::format::INFER_RECORDS)
/// records, oldest file first; those of parquet from the oldest file's footer.
///
/// # Errors
/// InvalidInput: there is no record yet, or two that fit no type; the options are wrong. BadRecord. Io.
pub fn infer(stream: &str, options: &Options, manifest: Option<Manifest>) -> Result<SchemaRef> {
    let options = FileOptions::parse(options)?;
    let place = Place::parse(&options.path, manifest)?;
    infer_at(stream, &options, &place)
}

pub(super) fn infer_at(stream: &str, options: &FileOptions, place: &Place) -> Result<SchemaRef> {
    let files = place.list()?;
    if options.format == Format::Parquet {
        return match files.first() {
            Some(file) => infer_parquet(file, &place.full(file)),
            None => Err(nothing_yet(&options.path, "file")),
        };
    }
    let mut inference = Inference::new(options.format, options.csv.clone());
    for file in &files {
        if inference.is_done() {
            break;
        }
        let path = place.full(file);
        infer_file(stream, options, file, &path, &mut inference)?;
    }
    inference.schema().map_err(|error| match error {
        Error::InvalidInput { .. } => nothing_yet(&options.path, "record"),
        other => other,
    })
}

fn nothing_yet(path: &str, what: &str) -> Error {
    Error::invalid(format!("cannot infer the columns: there is no {what} at {path} yet"))
        .help("give the stream a column list: CREATE STREAM name (column type, …) WITH (…)")
}

fn infer_file(
    stream: &str,
    options: &FileOptions,
    file: &FileEntry,
    path: &Path,
    inference: &mut Inference,
) -> Result<()> {
    inference.start_file();
    let mut buffer = Vec::new();
    let mut input = Input::stream(0, file, path, options.compression_of(&file.path), &mut buffer)?;
    loop {
        let block = Block { bytes: input.rest(&buffer), last: input.last };
        let taken = inference.add(block).map_err(|(at, why)| {
            let at = input.pos + at;
            let before = memchr::memchr_iter(b'\n', &buffer[..at]).count() as u64;
            Error::BadRecord(Box::new(BadRecord {
                source: stream.to_string(),
                path: Some(path.display().to_string()),
                line: input.line.map(|line| line + before),
                reason: why,
                text: shorten(buffer[at..input.end].split(|b| *b == b'\n').next().unwrap_or_default()),
            }))
        })?;
        input.pos += taken;
        if inference.is_done() || input.last {
            return Ok(());
        }
        if !input.fill(&mut buffer, path, options.max_record_bytes)? {
            let message = format!("{}: a record is longer than max_record_bytes", path.display());
            return Err(Error::invalid(message));
        }
    }
}

fn infer_parquet(file: &FileEntry, path: &Path) -> Result<SchemaRef> {
    let handle = open_unchanged(file, path)?;
    let footer = ArrowReaderMetadata::load(&handle, ArrowReaderOptions::default())
        .map_err(|e| super::parquet_errors::damaged(path, &e))?;
    let schema = transform_schema_to_view(footer.schema());
    // A column may be absent from other files, so it may always be NULL; what the footer says beside names and
    // types stays with the file.
    let fields: Vec<_> = schema.fields().iter().map(|f| f.as_ref().clone().with_nullable(true)).collect();
    Ok(Arc::new(Schema::new(fields)))
}
