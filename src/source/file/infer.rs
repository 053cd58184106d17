//! The columns of the files that are at a place now.

use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use datafusion::datasource::physical_plan::parquet::transform_schema_to_view;

use super::checksum::damaged;
use super::files::{FileEntry, Files};
use super::input::{Input, TooLong, undecodable};
use super::metadata::NamedFile;
use super::options::{FileOptions, too_long};
use super::parquet::FileReader;
use super::place::{Manifest, Place};
use crate::error::{BadRecord, Error, Result};
use crate::format::{Block, Format, Inference, Keep, OnError, shorten};
use crate::options::Options;

/// The columns of the files at the options' path, from the first [`INFER_RECORDS`](crate::format::INFER_RECORDS)
/// records, oldest file first; those of parquet from the oldest file's footer.
///
/// # Errors
/// InvalidInput: there is no record yet, or two that fit no type; the options are wrong. BadRecord. Io.
pub fn infer(stream: &str, options: &Options, manifest: Option<Manifest>) -> Result<SchemaRef> {
    let options = FileOptions::parse(options)?;
    let place = Place::parse(&options.path, &options.store, manifest)?;
    infer_at(stream, &options, &place)
}

pub(super) fn infer_at(stream: &str, options: &FileOptions, place: &Place) -> Result<SchemaRef> {
    let files = place.list()?;
    if options.format == Format::Parquet {
        return match files.first() {
            Some(file) => infer_parquet(place.files(), file),
            None => Err(nothing_yet(&options.path, "file")),
        };
    }
    let mut inference = Inference::new(options.format, options.csv.clone());
    let mut first_bad = None;
    for file in &files {
        if inference.is_done() {
            break;
        }
        let named = (file.clone(), place.full(file));
        let mut judge = Judge { stream, path: &named.1, options, first_bad: &mut first_bad };
        infer_file(&**place.files(), &named, &mut judge, &mut inference)?;
    }
    inference.schema().map_err(|error| match (error, first_bad) {
        (Error::InvalidInput { .. }, Some(bad)) => Error::invalid(format!(
            "cannot infer the columns: no record at {} can be read; the first: {bad}",
            options.path
        ))
        .help("give the stream a column list: CREATE STREAM name (column type, …) WITH (…)"),
        (Error::InvalidInput { .. }, None) => nothing_yet(&options.path, "record"),
        (other, _) => other,
    })
}

fn nothing_yet(path: &str, what: &str) -> Error {
    Error::invalid(format!("cannot infer the columns: there is no {what} at {path} yet"))
        .help("give the stream a column list: CREATE STREAM name (column type, …) WITH (…)")
}

/// Says of a bad record what `on_error` says.
struct Judge<'a> {
    stream: &'a str,
    path: &'a str,
    options: &'a FileOptions,
    first_bad: &'a mut Option<BadRecord>,
}

impl Judge<'_> {
    fn bad(&mut self, line: Option<u64>, reason: String, text: &[u8]) -> Result<Keep> {
        let record = BadRecord {
            source: self.stream.to_string(),
            path: Some(self.path.to_string()),
            line,
            reason,
            text: shorten(text),
        };
        if self.options.on_error == OnError::Fail {
            return Err(Error::BadRecord(Box::new(record)));
        }
        self.first_bad.get_or_insert(record);
        Ok(Keep::Nothing)
    }
}

fn infer_file(files: &dyn Files, named: &NamedFile, judge: &mut Judge<'_>, inference: &mut Inference) -> Result<()> {
    inference.start_file();
    let (options, compression) = (judge.options, judge.options.compression_of(&named.0.path));
    let mut buffer = Vec::new();
    let mut input = Input::stream(0, files.open(&named.0)?, named, compression, &mut buffer)?;
    loop {
        let block = Block { bytes: input.rest(&buffer), last: input.last };
        let taken = inference.add(block, &mut |place| {
            judge.bad(input.line_at(&buffer, input.pos + place.at), place.reason, place.text)
        })?;
        input.pos += taken;
        if inference.is_done() || input.last {
            return Ok(());
        }
        if let Some(damage) = &input.damage {
            if let Some(error) = damaged(named, damage) {
                return Err(error);
            }
            if options.on_error == OnError::Fail {
                return Err(undecodable(judge.path, damage));
            }
            judge.bad(input.line_at(&buffer, input.pos), input.damaged(damage), input.rest(&buffer))?;
            return Ok(());
        }
        if !input.fill(&mut buffer, options.max_record_bytes)? {
            let head = &input.rest(&buffer)[..TooLong::SHOWN];
            judge.bad(input.line, too_long(options), head)?;
            inference.pass_one();
            input.skip_line(&mut buffer)?;
        }
    }
}

fn infer_parquet(files: &Arc<dyn Files>, file: &FileEntry) -> Result<SchemaRef> {
    let reader = FileReader::open(files, file, Vec::new())?;
    let footer = reader.footer()?;
    let schema = transform_schema_to_view(footer.schema());
    // A column may be absent from other files, so it may always be NULL; what the footer says beside names and
    // types stays with the file.
    let fields: Vec<_> = schema.fields().iter().map(|f| f.as_ref().clone().with_nullable(true)).collect();
    Ok(Arc::new(Schema::new(fields)))
}
