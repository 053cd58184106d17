//! `memory`: a stream that INSERT feeds, held in the process until it is dropped.
//!
//! Each INSERT is one *addition*, and a batch never takes half of one: the offset counts additions, not rows.
//! Additions live as long as the process; a checkpoint that speaks of more of them than there are is refused.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::error::DataFusionError;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use serde::{Deserialize, Serialize};

use super::{BadRecords, InputEnd, Offset, OffsetRange, Pushdown, RangeSize, ReadLimit, Source, SourceRead, offset};
use crate::error::{Error, Result};
use crate::options::OptionSpec;

/// The connector takes no options.
pub const OPTIONS: &[OptionSpec] = &[];

/// The rows of a memory stream, shared by its statements and its readers.
#[derive(Debug)]
pub struct MemoryStream {
    name: String,
    schema: SchemaRef,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    additions: Vec<Arc<Addition>>,
    closed: bool,
}

/// What one INSERT brought.
#[derive(Debug)]
struct Addition {
    batches: Vec<RecordBatch>,
    rows: u64,
    bytes: u64,
}

impl MemoryStream {
    /// An empty stream; `schema` holds what INSERT gives: the columns that are not computed.
    pub fn new(name: impl Into<String>, schema: SchemaRef) -> Arc<Self> {
        Arc::new(MemoryStream { name: name.into(), schema, held: Mutex::new(Held::default()) })
    }

    /// The columns of an inserted row.
    pub fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    /// Adds all rows of `batches` as one addition, or none of them; answers how many there were. Without rows it
    /// adds nothing.
    ///
    /// # Errors
    /// InvalidInput: the stream is closed, the columns are not the stream's, or a NOT NULL column holds a NULL.
    pub fn insert(&self, batches: Vec<RecordBatch>) -> Result<u64> {
        let batches = batches.iter().filter(|b| b.num_rows() > 0).map(|b| self.fit(b)).collect::<Result<Vec<_>>>()?;
        let rows = batches.iter().map(|b| b.num_rows() as u64).sum();
        let bytes = batches.iter().map(|b| b.get_array_memory_size() as u64).sum();
        let mut held = self.lock();
        if held.closed {
            return Err(Error::invalid(format!("stream {} is closed: its input has ended", self.name))
                .help("drop it and create it again to begin anew"));
        }
        if rows > 0 {
            held.additions.push(Arc::new(Addition { batches, rows, bytes }));
        }
        Ok(rows)
    }

    /// Ends the input: from now on INSERT is refused. Rows that are there stay.
    pub fn close(&self) {
        self.lock().closed = true;
    }

    /// Whether its input has ended.
    pub fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// How many additions there are.
    pub fn additions(&self) -> u64 {
        self.lock().additions.len() as u64
    }

    /// How many rows it holds.
    pub fn rows(&self) -> u64 {
        self.lock().additions.iter().map(|addition| addition.rows).sum()
    }

    /// The batch under the stream's own schema, when it fits.
    fn fit(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        if batch.num_columns() != self.schema.fields().len() {
            return Err(Error::invalid(format!(
                "stream {} takes {} columns, the rows have {}",
                self.name,
                self.schema.fields().len(),
                batch.num_columns()
            )));
        }
        for (field, column) in self.schema.fields().iter().zip(batch.columns()) {
            if column.data_type() != field.data_type() {
                return Err(Error::invalid(format!(
                    "column {} of stream {} is {}, the rows have {}",
                    field.name(),
                    self.name,
                    field.data_type(),
                    column.data_type()
                )));
            }
            if !field.is_nullable() && column.logical_null_count() > 0 {
                let message =
                    format!("column {} of stream {} is NOT NULL, a row has NULL there", field.name(), self.name);
                return Err(Error::invalid(message));
            }
        }
        super::generator::batch_of(&self.schema, batch.columns().to_vec(), batch.num_rows())
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// `{"inserted": n}`: the first n additions were read.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct MemoryOffset {
    inserted: u64,
}

/// One reader of a [`MemoryStream`].
#[derive(Debug)]
pub struct MemorySource {
    stream: Arc<MemoryStream>,
}

/// Opens a reader.
pub fn open(stream: &Arc<MemoryStream>) -> MemorySource {
    MemorySource { stream: stream.clone() }
}

impl MemorySource {
    fn parse(&self, offset: &Offset) -> Result<u64> {
        Ok(offset::parse::<MemoryOffset>(offset, &self.description())?.inserted)
    }

    /// The additions of a range.
    fn additions(&self, range: &OffsetRange) -> Result<Vec<Arc<Addition>>> {
        let start = range.start.as_ref().map_or(Ok(0), |o| self.parse(o))?;
        let end = self.parse(&range.end)?;
        let held = self.stream.lock();
        self.known(start.max(end), &held)?;
        if start > end {
            return Err(Error::internal(format!("{}: range {start} to {end} runs backwards", self.description())));
        }
        Ok(held.additions[start as usize..end as usize].to_vec())
    }

    /// Refuses an offset that lies beyond what the process holds.
    fn known(&self, offset: u64, held: &Held) -> Result<()> {
        let holds = held.additions.len() as u64;
        if offset <= holds {
            return Ok(());
        }
        Err(Error::conflict(format!(
            "the stream {} holds {holds} additions, the checkpoint was at {offset}; memory streams do not outlive the \
             process: INSERT the same rows again first, or start with a new checkpoint",
            self.stream.name
        )))
    }
}

impl Source for MemorySource {
    fn schema(&self) -> SchemaRef {
        self.stream.schema()
    }

    fn description(&self) -> String {
        format!("MemoryStream[{}]", self.stream.name)
    }

    fn check_held(&self, end: &Offset) -> Result<()> {
        self.known(self.parse(end)?, &self.stream.lock())
    }

    fn latest_offset(&mut self, after: Option<&Offset>, limit: &ReadLimit) -> Result<Option<Offset>> {
        let after = after.map_or(Ok(0), |o| self.parse(o))?;
        let until = limit.until.as_ref().map(|o| self.parse(o)).transpose()?;
        let held = self.stream.lock();
        self.known(after.max(until.unwrap_or(0)), &held)?;
        let end = until.unwrap_or(held.additions.len() as u64);
        let max_bytes = if limit.unlimited { None } else { limit.max_bytes };
        let mut bytes = 0;
        let mut reached = after;
        while reached < end {
            bytes += held.additions[reached as usize].bytes;
            if reached > after && max_bytes.is_some_and(|max| bytes > max) {
                break;
            }
            reached += 1;
        }
        if reached <= after {
            return Ok(None);
        }
        offset::write(&MemoryOffset { inserted: reached }).map(Some)
    }

    fn size(&self, range: &OffsetRange) -> RangeSize {
        let Ok(additions) = self.additions(range) else { return RangeSize::default() };
        RangeSize {
            rows: Some(additions.iter().map(|a| a.rows).sum()),
            bytes: Some(additions.iter().map(|a| a.bytes).sum()),
        }
    }

    fn read(&self, range: &OffsetRange, wanted: &Pushdown) -> Result<SourceRead> {
        let schema = wanted.project(&self.schema())?;
        let pieces = pieces(&self.additions(range)?, &wanted.columns)?;
        let streams = pieces.len().clamp(1, wanted.partitions.max(1));
        let cut = |stream: usize| pieces.len() * stream / streams;
        let streams = (0..streams).map(|stream| {
            let part: Vec<_> =
                pieces[cut(stream)..cut(stream + 1)].iter().cloned().map(Ok::<_, DataFusionError>).collect();
            Box::pin(RecordBatchStreamAdapter::new(schema.clone(), futures::stream::iter(part))) as _
        });
        Ok(SourceRead { streams: streams.collect(), bad_records: Arc::new(BadRecords::default()) })
    }

    fn end(&self) -> InputEnd {
        if self.stream.is_closed() { InputEnd::Reached } else { InputEnd::Never }
    }

    fn commit(&mut self, _end: &Offset) -> Result<()> {
        // The rows stay until the stream is dropped: other queries, and a replay, read them too.
        Ok(())
    }
}

/// Rows of a batch that is handed out; larger ones are cut so that partitions share them.
const PIECE_ROWS: usize = 8192;

/// The additions' batches in order, with the wanted columns, cut small. Small neighbours are put together: a
/// thousand INSERTs of one row are one piece, not a thousand.
fn pieces(additions: &[Arc<Addition>], columns: &[usize]) -> Result<Vec<RecordBatch>> {
    let wrong = |e| Error::internal(format!("a memory stream's rows can't be read: {e}"));
    let mut pieces = Vec::new();
    let mut small: Vec<RecordBatch> = Vec::new();
    let mut small_rows = 0;
    let flush = |small: &mut Vec<RecordBatch>, pieces: &mut Vec<RecordBatch>| -> Result<()> {
        if let Some(first) = small.first() {
            pieces.push(arrow::compute::concat_batches(first.schema_ref(), small.iter()).map_err(wrong)?);
            small.clear();
        }
        Ok(())
    };
    for batch in additions.iter().flat_map(|a| &a.batches) {
        let batch = batch.project(columns).map_err(wrong)?;
        for start in (0..batch.num_rows()).step_by(PIECE_ROWS) {
            let piece = batch.slice(start, PIECE_ROWS.min(batch.num_rows() - start));
            if small_rows + piece.num_rows() > PIECE_ROWS {
                flush(&mut small, &mut pieces)?;
                small_rows = 0;
            }
            small_rows += piece.num_rows();
            small.push(piece);
        }
    }
    flush(&mut small, &mut pieces)?;
    Ok(pieces)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::generator::tests::{collect, concat};
    use arrow::array::{AsArray, Int64Array};
    use arrow::datatypes::{DataType, Field, Int64Type, Schema};
    use serde_json::json;

    fn stream() -> Arc<MemoryStream> {
        MemoryStream::new("s", Arc::new(Schema::new(vec![Field::new("a", DataType::Int64, false)])))
    }

    fn rows(stream: &MemoryStream, values: impl IntoIterator<Item = i64>) -> Vec<RecordBatch> {
        vec![RecordBatch::try_new(stream.schema(), vec![Arc::new(Int64Array::from_iter_values(values))]).unwrap()]
    }

    fn wanted(partitions: usize) -> Pushdown {
        Pushdown { columns: vec![0], filters: vec![], partitions }
    }

    fn at(n: u64) -> Offset {
        Offset(json!({ "inserted": n }))
    }

    #[test]
    fn an_offset_counts_additions() {
        let stream = stream();
        let mut source = open(&stream);
        assert_eq!(source.latest_offset(None, &ReadLimit::default()).unwrap(), None);
        assert_eq!(stream.insert(rows(&stream, [1, 2])).unwrap(), 2);
        assert_eq!(stream.insert(vec![]).unwrap(), 0);
        stream.insert(rows(&stream, [3])).unwrap();
        assert_eq!(source.latest_offset(None, &ReadLimit::default()).unwrap(), Some(at(2)));
        assert_eq!(source.latest_offset(Some(&at(2)), &ReadLimit::default()).unwrap(), None);
        let until = ReadLimit { until: Some(at(1)), ..Default::default() };
        assert_eq!(source.latest_offset(None, &until).unwrap(), Some(at(1)));
        assert_eq!(source.latest_offset(Some(&at(1)), &until).unwrap(), None);
        let range = OffsetRange { start: Some(at(1)), end: at(2) };
        assert_eq!(source.size(&range).rows, Some(1));
        let all = concat(&stream.schema(), source.read(&range, &wanted(1)).unwrap());
        assert_eq!(all.column(0).as_primitive::<Int64Type>().values().to_vec(), vec![3]);
    }

    #[test]
    fn a_byte_limit_never_cuts_an_addition_and_always_moves_on() {
        let stream = stream();
        for _ in 0..3 {
            stream.insert(rows(&stream, 0..1000)).unwrap();
        }
        let mut source = open(&stream);
        let tiny = ReadLimit { max_bytes: Some(1), ..Default::default() };
        assert_eq!(source.latest_offset(None, &tiny).unwrap(), Some(at(1)));
        let two = ReadLimit { max_bytes: Some(20_000), ..Default::default() };
        assert_eq!(source.latest_offset(None, &two).unwrap(), Some(at(2)));
        let all = ReadLimit { max_bytes: Some(1), unlimited: true, ..Default::default() };
        assert_eq!(source.latest_offset(None, &all).unwrap(), Some(at(3)));
    }

    #[test]
    fn small_additions_are_put_together_and_large_ones_spread() {
        let stream = stream();
        for value in 0..100 {
            stream.insert(rows(&stream, [value])).unwrap();
        }
        let range = OffsetRange { start: None, end: at(100) };
        assert_eq!(collect(open(&stream).read(&range, &wanted(4)).unwrap()).len(), 1);
        stream.insert(rows(&stream, 100..50_000)).unwrap();
        let range = OffsetRange { start: None, end: at(101) };
        let read = open(&stream).read(&range, &wanted(4)).unwrap();
        assert_eq!(read.streams.len(), 4);
        let all = concat(&stream.schema(), read);
        assert!(all.column(0).as_primitive::<Int64Type>().values().iter().copied().eq(0..50_000));
    }

    #[test]
    fn a_checkpoint_of_another_process_is_refused() {
        let stream = stream();
        stream.insert(rows(&stream, [1])).unwrap();
        let mut source = open(&stream);
        let error = source.latest_offset(Some(&at(3)), &ReadLimit::default()).unwrap_err();
        assert!(matches!(error, Error::Conflict { .. }));
        let text = error.to_string();
        assert!(text.contains("the stream s holds 1 additions, the checkpoint was at 3"), "{text}");
        assert!(source.check_held(&at(1)).is_ok() && source.check_held(&at(2)).is_err());
        assert!(source.read(&OffsetRange { start: None, end: at(2) }, &wanted(1)).is_err());
        let foreign = Offset(json!({ "files": 3 }));
        assert!(matches!(source.latest_offset(Some(&foreign), &ReadLimit::default()), Err(Error::Conflict { .. })));
    }

    #[test]
    fn insert_holds_rows_against_the_schema() {
        let stream = stream();
        let nullable = Arc::new(Schema::new(vec![Field::new("a", DataType::Int64, true)]));
        let null =
            RecordBatch::try_new(nullable.clone(), vec![Arc::new(Int64Array::from(vec![Some(1), None]))]).unwrap();
        let error = stream.insert(vec![null]).unwrap_err().to_string();
        assert!(error.contains("column a of stream s is NOT NULL"), "{error}");
        let fits = RecordBatch::try_new(nullable, vec![Arc::new(Int64Array::from(vec![1]))]).unwrap();
        assert_eq!(stream.insert(vec![fits]).unwrap(), 1);
        stream.close();
        let error = stream.insert(rows(&stream, [1])).unwrap_err().to_string();
        assert!(error.contains("stream s is closed"), "{error}");
        assert_eq!(stream.additions(), 1);
    }
}
