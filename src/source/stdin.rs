//! Standard input: JSON, CSV or text lines, as they come.
//!
//! A thread of its own reads lines into a buffer, from which batches are made; the buffer keeps what isn't
//! committed, and the thread waits while it is full. The offset is the number of records since the start of the
//! process. What another process has read can't be read again. There is one
//! standard input, so one stream reads it.

mod feed;

use std::io::Read;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::datatypes::{Field, FieldRef, Schema, SchemaRef};
use datafusion::error::DataFusionError;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use serde_json::json;

use self::feed::{Feed, Line, Splitter};
use super::file::{Key, MetadataColumn, delimiter, max_record_bytes, on_error, only_for};
use super::records::{BATCH_ROWS, Wanted};
use super::{BadRecords, InputEnd, Offset, OffsetRange, Pushdown, RangeSize, ReadLimit, Source, SourceRead};
use crate::error::{BadRecord, Error, Result};
use crate::format::{BatchBuilder, Block, CsvOptions, Decoder, Format, Keep, OnError, check_types, shorten};
use crate::options::{OptionKind, OptionSpec, Options};

/// The options of connector `stdin`.
pub const OPTIONS: &[OptionSpec] = &[
    spec("format", OptionKind::OneOf(&["json", "csv", "text"]), "how the lines are written"),
    spec(
        "on_error",
        OptionKind::OneOf(&["fail", "skip", "null"]),
        "what becomes of a bad record: fail (the default), skip, null",
    ),
    spec("dead_letter", OptionKind::Text, "a sink that bad records are written to"),
    spec("header", OptionKind::Bool, "csv: the first record names the fields (false)"),
    spec("delimiter", OptionKind::Char, "csv: between two fields (a comma)"),
    spec("null_value", OptionKind::Text, "csv: the unquoted text that stands for NULL (the empty one)"),
    spec("max_record_bytes", OptionKind::Bytes, "a longer record is bad (64 MiB; 4 MiB to 1 GiB)"),
];

const fn spec(name: &'static str, kind: OptionKind, help: &'static str) -> OptionSpec {
    OptionSpec { name, kind, help }
}

/// What a stdin source is opened with.
pub struct StdinSourceArgs<'a> {
    /// The stream's name, for messages.
    pub name: &'a str,
    /// The fields of a record in declared order. They can't be inferred: what was looked at would be gone.
    pub fields: Option<SchemaRef>,
    /// The columns declared `METADATA FROM …`: `line`, `corrupt_record`.
    pub metadata: Vec<MetadataColumn>,
    /// The WITH list without `connector`.
    pub options: &'a Options,
}

/// Standard input as a source.
#[derive(Debug)]
pub struct StdinSource {
    name: String,
    format: Format,
    csv: CsvOptions,
    on_error: OnError,
    max_record: usize,
    schema: SchemaRef,
    fields: usize,
    keys: Vec<Key>,
    feed: Arc<Feed>,
}

/// Who has standard input: it can be read once, by one reader.
static HOLDER: Mutex<Option<String>> = Mutex::new(None);

/// Takes standard input for `holder`, which goes on as in "… is being read by …".
///
/// # Errors
/// Conflict: somebody has it, or had it.
pub fn claim(holder: &str) -> Result<()> {
    let mut held = HOLDER.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(other) = &*held {
        return Err(Error::conflict(format!(
            "standard input is read by {other}, and can be read only once; {holder} can't have it too{}",
            if other == SCRIPT {
                ": put the statements into a file and name it with -f, or give them with -c"
            } else {
                ""
            }
        )));
    }
    *held = Some(holder.to_string());
    Ok(())
}

/// The holder that statements come from.
pub const SCRIPT: &str = "the script";

/// The columns that such a source has.
///
/// # Errors
/// InvalidInput: an option, no column list, a metadata key. Unsupported: a type that the format can't be read as.
pub fn schema(args: &StdinSourceArgs<'_>) -> Result<SchemaRef> {
    Parsed::new(args).map(|parsed| parsed.schema)
}

/// Opens standard input.
///
/// # Errors
/// As [`schema`]. Conflict: a stream has it already.
pub fn open(args: StdinSourceArgs<'_>) -> Result<StdinSource> {
    let parsed = Parsed::new(&args)?;
    claim(&format!("stream {}", args.name))?;
    parsed.start(Box::new(std::io::stdin()))
}

/// Opens a reader as if it were standard input.
///
/// # Errors
/// As [`schema`].
pub fn open_reader(args: StdinSourceArgs<'_>, reader: Box<dyn Read + Send>) -> Result<StdinSource> {
    Parsed::new(&args)?.start(reader)
}

/// What the arguments say, checked.
struct Parsed {
    name: String,
    format: Format,
    csv: CsvOptions,
    on_error: OnError,
    max_record: usize,
    schema: SchemaRef,
    fields: usize,
    keys: Vec<Key>,
}

impl Parsed {
    fn new(args: &StdinSourceArgs<'_>) -> Result<Self> {
        let options = args.options;
        options.check("connector 'stdin'", OPTIONS)?;
        let format = options.text("format").and_then(Format::parse);
        let format =
            format.ok_or_else(|| Error::invalid("connector 'stdin' wants option format, as in format = 'json'"))?;
        only_for(options, format, Format::Csv, &["header", "delimiter", "null_value"])?;
        let fields = args.fields.clone().ok_or_else(|| {
            Error::invalid("the columns of standard input can't be inferred")
                .help("give the stream a column list: CREATE STREAM name (column type, …) WITH (…)")
        })?;
        check_types(format, fields.fields())?;
        let on_error = on_error(options)?;
        if let (OnError::Null, Some(field)) = (on_error, fields.fields().iter().find(|f| !f.is_nullable())) {
            let message = format!("on_error = 'null' makes rows of NULLs, and column {} is NOT NULL", field.name());
            return Err(Error::invalid(message).help("use on_error = 'skip', or drop NOT NULL"));
        }
        let keys = args.metadata.iter().map(|column| Key::of(column, "connector 'stdin'", Key::PIPE));
        let keys = keys.collect::<Result<Vec<_>>>()?;
        let extra =
            args.metadata.iter().map(|column| Arc::new(Field::new(&column.name, column.data_type.clone(), true)));
        let columns: Vec<FieldRef> = fields.fields().iter().cloned().chain(extra).collect();
        let csv = CsvOptions {
            header: options.bool("header")?.unwrap_or(false),
            delimiter: delimiter(options)?.unwrap_or(b','),
            null_value: options.text("null_value").map(str::to_string),
        };
        Ok(Parsed {
            name: args.name.to_string(),
            format,
            csv,
            on_error,
            max_record: max_record_bytes(options)?,
            schema: Arc::new(Schema::new(columns)),
            fields: fields.fields().len(),
            keys,
        })
    }

    fn start(self, reader: Box<dyn Read + Send>) -> Result<StdinSource> {
        let splitter = Splitter {
            quotes: self.format == Format::Csv,
            blank_lines: self.format == Format::Text,
            header: self.format == Format::Csv && self.csv.header,
            max_record: self.max_record,
        };
        let feed = Feed::start(reader, splitter)?;
        let Parsed { name, format, csv, on_error, max_record, schema, fields, keys } = self;
        Ok(StdinSource { name, format, csv, on_error, max_record, schema, fields, keys, feed })
    }
}

impl Drop for StdinSource {
    fn drop(&mut self) {
        self.feed.close();
    }
}

/// The number of records that an offset stands for.
fn position(offset: Option<&Offset>) -> Result<u64> {
    match offset {
        None => Ok(0),
        Some(Offset(value)) => value.get("records").and_then(serde_json::Value::as_u64).ok_or_else(|| {
            Error::corrupt("offset of standard input", format!("{value} is no offset of standard input"))
        }),
    }
}

impl Source for StdinSource {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn description(&self) -> String {
        "StdinSource[stdin]".to_string()
    }

    fn latest_offset(&mut self, after: Option<&Offset>, limit: &ReadLimit) -> Result<Option<Offset>> {
        let after = position(after)?;
        let until = limit.until.as_ref().map(|until| position(Some(until))).transpose()?;
        let max_bytes = if limit.unlimited { None } else { limit.max_bytes };
        let end = self.feed.available(after, until, max_bytes)?;
        Ok((end > after).then(|| Offset(json!({"records": end}))))
    }

    fn size(&self, range: &OffsetRange) -> RangeSize {
        let rows = match (position(range.start.as_ref()), position(Some(&range.end))) {
            (Ok(start), Ok(end)) => Some(end.saturating_sub(start)),
            _ => None,
        };
        RangeSize { rows, bytes: None }
    }

    fn read(&self, range: &OffsetRange, wanted: &Pushdown) -> Result<SourceRead> {
        let (header, lines) = self.feed.lines(position(range.start.as_ref())?, position(Some(&range.end))?)?;
        let wanted = Wanted::new(&self.schema, self.fields, &self.keys, wanted)?;
        let mut decoder = wanted.decoder(self.format, &self.csv)?;
        let mut batch = BatchBuilder::new(&wanted.fields, wanted.per_record(), BATCH_ROWS)?;
        if let Some(header) = header {
            decoder.decode(Block { bytes: &header.bytes, last: true }, &mut batch, &mut |_| Ok(Keep::Nothing))?;
        }
        let bad_records = Arc::new(BadRecords::default());
        let schema = wanted.schema.clone();
        let reader = LineReader {
            stream: self.name.clone(),
            on_error: self.on_error,
            max_record: self.max_record,
            bad_records: bad_records.clone(),
            lines: lines.into_iter(),
            decoder,
            batch,
            wanted,
        };
        let streams = vec![Box::pin(RecordBatchStreamAdapter::new(schema, futures::stream::iter(reader))) as _];
        Ok(SourceRead { streams, bad_records })
    }

    fn end(&self) -> InputEnd {
        if self.feed.finished() { InputEnd::Reached } else { InputEnd::Ahead }
    }

    fn commit(&mut self, end: &Offset) -> Result<()> {
        self.feed.forget(position(Some(end))?);
        Ok(())
    }
}

/// The one stream of a read: an iterator of batches.
struct LineReader {
    stream: String,
    on_error: OnError,
    max_record: usize,
    bad_records: Arc<BadRecords>,
    lines: std::vec::IntoIter<Arc<Line>>,
    decoder: Decoder,
    batch: BatchBuilder,
    wanted: Wanted,
}

impl Iterator for LineReader {
    type Item = datafusion::error::Result<arrow::array::RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.next_batch();
        if batch.is_err() {
            self.lines = Vec::new().into_iter();
        }
        batch.map_err(|error| DataFusionError::External(Box::new(error))).transpose()
    }
}

impl LineReader {
    fn next_batch(&mut self) -> Result<Option<arrow::array::RecordBatch>> {
        while !self.batch.is_full()
            && let Some(line) = self.lines.next()
        {
            self.decode(&line)?;
        }
        if self.batch.rows() == 0 {
            return Ok(None);
        }
        let finished = self.batch.finish()?;
        let no_file = |_| arrow::array::new_null_array(&arrow::datatypes::DataType::Null, finished.rows);
        self.wanted.assemble(&finished, no_file).map(Some)
    }

    fn decode(&mut self, line: &Line) -> Result<()> {
        self.batch.start_at(0, line.number);
        let (stream, on_error, bad_records) = (&self.stream, self.on_error, &self.bad_records);
        let bad = |reason: String, text: &[u8]| {
            let record = BadRecord {
                source: stream.clone(),
                path: Some("stdin".to_string()),
                line: Some(line.number),
                reason,
                text: shorten(text),
            };
            bad_records.judge(on_error, record, text)
        };
        if line.cut {
            let keep = bad(format!("is longer than max_record_bytes ({})", self.max_record), &line.bytes)?;
            if keep == Keep::Nulls {
                self.batch.null_row(&[], 0, &line.bytes);
            }
            return Ok(());
        }
        let block = Block { bytes: &line.bytes, last: true };
        let mut taken = 0;
        while taken < line.bytes.len() {
            let rest = Block { bytes: &line.bytes[taken..], ..block };
            taken += self.decoder.decode(rest, &mut self.batch, &mut |place| bad(place.reason, place.text))?;
            if self.batch.is_full() {
                break;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
