//! Reads the records of some files: cuts them into units of work, which streams take from one queue.
//!
//! A plain file of JSON or text is cut into ranges; a compressed one, and one of CSV (a newline may stand inside
//! a field), is one unit, and so is every file where line numbers are wanted. With one stream the units come in
//! order, and so do the rows. Rows of many small files are put together into batches of the usual size.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::RecordBatch;
use datafusion::error::{DataFusionError, Result as DfResult};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;

use super::checksum::{Sums, damaged};
use super::files::Files;
use super::input::{Input, TooLong, count_lines, undecodable};
use super::metadata::{NamedFile, Segment, file_values};
use super::options::{FileOptions, too_long};
use crate::error::{BadRecord, Result};
use crate::format::{BatchBuilder, Block, Compression, Decoder, Format, Keep, OnError, shorten};
use crate::source::BadRecords;
use crate::source::records::{BATCH_ROWS, Wanted};

/// A part of a file that one stream reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    /// The lines that begin in these bytes.
    Range {
        file: usize,
        start: u64,
        end: u64,
    },
    Whole {
        file: usize,
    },
}

/// What the streams of one read share.
struct Work {
    stream: String,
    options: FileOptions,
    wanted: Wanted,
    place: Arc<dyn Files>,
    files: Vec<NamedFile>,
    units: Vec<Unit>,
    next: AtomicUsize,
    bad_records: Arc<BadRecords>,
    /// By file: bytes whose lines are known.
    lines: Mutex<HashMap<usize, BTreeMap<u64, u64>>>,
    sums: Sums,
}

/// The streams over `files`, at most `partitions`; what they pass over is counted in `bad_records`.
///
/// # Errors
/// Unsupported: a type that text can't be read as.
pub fn read(
    stream: &str,
    options: &FileOptions,
    wanted: Wanted,
    (place, files): (Arc<dyn Files>, Vec<NamedFile>),
    partitions: usize,
    bad_records: &Arc<BadRecords>,
) -> Result<Vec<SendableRecordBatchStream>> {
    let units = units(options, &files, if wanted.per_record().line { None } else { place.part() });
    let streams = partitions.clamp(1, units.len().max(1));
    let work = Arc::new(Work {
        stream: stream.to_string(),
        options: options.clone(),
        wanted,
        place,
        files,
        units,
        next: AtomicUsize::new(0),
        bad_records: bad_records.clone(),
        lines: Mutex::new(HashMap::new()),
        sums: Sums::default(),
    });
    let streams = (0..streams).map(|_| {
        let schema = work.wanted.schema.clone();
        let batches = futures::stream::iter(Reader::new(work.clone())?);
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)) as SendableRecordBatchStream)
    });
    streams.collect()
}

/// `part`: how large the parts of a file are; `None`: it is read whole.
fn units(options: &FileOptions, files: &[NamedFile], part: Option<u64>) -> Vec<Unit> {
    let mut units = Vec::new();
    for (file, (entry, _)) in files.iter().enumerate() {
        let plain = options.compression_of(&entry.path) == Compression::None;
        let Some(part) = part.filter(|_| plain && options.format != Format::Csv) else {
            units.push(Unit::Whole { file });
            continue;
        };
        let mut start = 0;
        while start < entry.size {
            let end = (start + part).min(entry.size);
            units.push(Unit::Range { file, start, end });
            start = end;
        }
    }
    units
}

/// One stream: an iterator of batches.
struct Reader {
    work: Arc<Work>,
    decoder: Decoder,
    batch: BatchBuilder,
    segments: Vec<Segment>,
    buffer: Vec<u8>,
    input: Option<Input>,
    too_long: Option<TooLong>,
    done: bool,
}

impl Iterator for Reader {
    type Item = DfResult<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let batch = self.next_batch();
        self.done = !matches!(batch, Ok(Some(_)));
        batch.map_err(|error| DataFusionError::External(Box::new(error))).transpose()
    }
}

impl Reader {
    fn new(work: Arc<Work>) -> Result<Self> {
        let wanted = &work.wanted;
        let decoder = wanted.decoder(work.options.format, &work.options.csv)?;
        let batch = BatchBuilder::new(&wanted.fields, wanted.per_record(), BATCH_ROWS)?;
        Ok(Reader {
            work,
            decoder,
            batch,
            segments: Vec::new(),
            buffer: Vec::new(),
            input: None,
            too_long: None,
            done: false,
        })
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        while !self.batch.is_full() {
            if self.input.is_none() && !self.open_next()? {
                break;
            }
            self.decode_some()?;
        }
        if self.batch.rows() == 0 {
            return Ok(None);
        }
        self.finish_batch().map(Some)
    }

    /// Opens the next unit in the queue; answers whether there was one.
    fn open_next(&mut self) -> Result<bool> {
        let work = self.work.clone();
        let Some(unit) = work.units.get(work.next.fetch_add(1, Ordering::Relaxed)) else { return Ok(false) };
        let input = match *unit {
            Unit::Range { file, start, end } => {
                let entry = &work.files[file].0;
                let (open, max) = (work.place.open(entry)?, work.options.max_record_bytes);
                let (input, too_long) = Input::range(file, &*open, entry.size, (start, end), &mut self.buffer, max)?;
                self.too_long = too_long;
                let at = (start - input.base) as usize;
                let bytes = &self.buffer[at..at + (end - start) as usize];
                work.sums.add(file, &work.files[file], start, bytes)?;
                input
            }
            Unit::Whole { file } => {
                let entry = &work.files[file].0;
                let compression = work.options.compression_of(&entry.path);
                self.decoder.start_file();
                Input::stream(file, work.place.open(entry)?, &work.files[file], compression, &mut self.buffer)?
            }
        };
        self.batch.start_at(input.base + input.pos as u64, input.line.unwrap_or(1));
        self.input = Some(input);
        Ok(true)
    }

    /// Decodes what is in the buffer, and brings more when it is used up.
    fn decode_some(&mut self) -> Result<()> {
        let Some(input) = &mut self.input else { return Ok(()) };
        let (work, rows) = (&self.work, self.batch.rows());
        let (file, base, line) = (input.file, input.base, input.line);
        let (buffer, pos) = (&self.buffer, input.pos);
        let block = Block { bytes: input.rest(buffer), last: input.last };
        let taken = self.decoder.decode(block, &mut self.batch, &mut |place| {
            let at = pos + place.at;
            let line = || line.map(|line| line + memchr::memchr_iter(b'\n', &buffer[..at]).count() as u64);
            work.bad(file, base + at as u64, line, place.reason, place.text)
        })?;
        input.pos += taken;
        add_rows(&mut self.segments, file, self.batch.rows() - rows);
        if self.batch.is_full() {
            return Ok(());
        }
        if input.last {
            return self.end_unit();
        }
        if input.damage.is_some() {
            return self.end_damaged();
        }
        if !input.fill(&mut self.buffer, work.options.max_record_bytes)? {
            self.skip_too_long()?;
        }
        Ok(())
    }

    /// The record at the front of a stream's buffer is longer than the limit: it is bad, and passed.
    fn skip_too_long(&mut self) -> Result<()> {
        let Some(input) = &mut self.input else { return Ok(()) };
        let (file, offset, line) = (input.file, input.base, input.line);
        let head = input.rest(&self.buffer)[..TooLong::SHOWN.min(input.end)].to_vec();
        let reason = too_long(&self.work.options);
        let keep = self.work.bad(file, offset, || line, reason, &head)?;
        self.null_row(keep, file, &head);
        let Some(input) = &mut self.input else { return Ok(()) };
        input.skip_line(&mut self.buffer)?;
        let line = input.line_at(&self.buffer, input.pos);
        self.batch.start_at(input.base + input.pos as u64, line.unwrap_or(1));
        Ok(())
    }

    fn end_unit(&mut self) -> Result<()> {
        let Some(input) = self.input.take() else { return Ok(()) };
        let Some(TooLong { start, length }) = self.too_long.take() else { return Ok(()) };
        let text = self.buffer[start..start + length.min(TooLong::SHOWN)].to_vec();
        let reason = too_long(&self.work.options);
        let keep = self.work.bad(input.file, input.base + start as u64, || None, reason, &text)?;
        self.null_row(keep, input.file, &text);
        Ok(())
    }

    /// What the decoder of a compressed file gave is used up: its damage, with the record it cut, is one bad record.
    fn end_damaged(&mut self) -> Result<()> {
        let Some(input) = self.input.take() else { return Ok(()) };
        let Some(damage) = &input.damage else { return Ok(()) };
        if let Some(error) = damaged(&self.work.files[input.file], damage) {
            return Err(error);
        }
        if self.work.options.on_error == OnError::Fail {
            return Err(undecodable(&self.work.files[input.file].1, damage));
        }
        let line = input.line_at(&self.buffer, input.pos);
        let text = input.rest(&self.buffer).to_vec();
        let offset = input.base + input.pos as u64;
        let keep = self.work.bad(input.file, offset, || line, input.damaged(damage), &text)?;
        self.null_row(keep, input.file, &text);
        Ok(())
    }

    fn null_row(&mut self, keep: Keep, file: usize, text: &[u8]) {
        if keep == Keep::Nulls {
            self.batch.null_row(&[], 0, text);
            add_rows(&mut self.segments, file, 1);
        }
    }

    fn finish_batch(&mut self) -> Result<RecordBatch> {
        let finished = self.batch.finish()?;
        let segments = std::mem::take(&mut self.segments);
        self.work.wanted.assemble(&finished, |key| file_values(key, &self.work.files, &segments))
    }
}

fn add_rows(segments: &mut Vec<Segment>, file: usize, rows: usize) {
    match segments.last_mut() {
        Some(segment) if segment.file == file => segment.rows += rows,
        _ if rows > 0 => segments.push(Segment { file, rows }),
        _ => {}
    }
}

impl Work {
    /// Judges a bad record at byte `offset` of a file. Its line is counted only where somebody will see it.
    fn bad(
        &self,
        file: usize,
        offset: u64,
        line: impl Fn() -> Option<u64>,
        reason: String,
        text: &[u8],
    ) -> Result<Keep> {
        let fail = self.options.on_error == OnError::Fail;
        let shown = fail || self.bad_records.keeps_next();
        let line = match shown {
            true => Some(line().map_or_else(|| self.line_of(file, offset), Ok)?),
            false => None,
        };
        let record = BadRecord {
            source: self.stream.clone(),
            path: Some(self.files[file].1.clone()),
            line,
            reason,
            text: shorten(text),
        };
        self.bad_records.judge(self.options.on_error, record, text)
    }

    /// The line of a byte of a plain file. What is counted is kept: a file's front is read once, not once a record.
    fn line_of(&self, file: usize, offset: u64) -> Result<u64> {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let known = lines.entry(file).or_default();
        let from = known.range(..=offset).next_back().map_or((0, 1), |(at, line)| (*at, *line));
        let line = count_lines(&*self.place.open(&self.files[file].0)?, from, offset)?;
        known.insert(offset, line);
        Ok(line)
    }
}
