//! The memory source: rows that INSERT brought into this process.
//!
//! Each INSERT is one atomic addition, and a batch never ends inside one. The rows stay until the stream is dropped,
//! so a query that starts later reads them all. Offsets are `{"inserted": n}`, the rows inserted so far; another
//! process does not hold them, and reading past what is held is an error.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use serde_json::json;

use super::{Offset, OffsetRange, Pushdown, RangeSize, ReadLimit, Source, SourceRead};
use crate::error::{Error, Result};
use crate::options::OptionSpec;

/// A memory stream takes no options.
pub const OPTIONS: &[OptionSpec] = &[];

/// The rows of one memory stream: shared by the catalog, which adds, and by every query that reads.
#[derive(Debug)]
pub struct MemoryStream {
    name: String,
    schema: SchemaRef,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    /// Each addition, with the number of rows up to and including it.
    additions: Vec<(u64, RecordBatch)>,
    closed: bool,
}

impl Held {
    fn rows(&self) -> u64 {
        self.additions.last().map_or(0, |(until, _)| *until)
    }
}

impl MemoryStream {
    /// An empty stream.
    pub fn new(name: impl Into<String>, schema: SchemaRef) -> Arc<Self> {
        Arc::new(MemoryStream { name: name.into(), schema, held: Mutex::default() })
    }

    /// The columns of every addition.
    pub fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    /// Adds rows, all at once.
    ///
    /// # Errors
    /// The stream was closed.
    pub fn append(&self, batch: RecordBatch) -> Result<()> {
        let mut held = self.lock();
        if held.closed {
            return Err(Error::invalid(format!("stream {} was closed: it takes no more rows", self.name)));
        }
        if batch.num_rows() > 0 {
            let until = held.rows() + batch.num_rows() as u64;
            held.additions.push((until, batch));
        }
        Ok(())
    }

    /// Ends the input: nothing can be added from now on.
    pub fn close(&self) {
        self.lock().closed = true;
    }

    /// Whether the input has ended.
    pub fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// The number of rows held.
    pub fn rows(&self) -> u64 {
        self.lock().rows()
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An offset as a number of rows that are held.
    fn position(&self, offset: Option<&Offset>, held: &Held) -> Result<u64> {
        let Some(offset) = offset else { return Ok(0) };
        let Some(rows) = offset.0.get("inserted").and_then(serde_json::Value::as_u64) else {
            return Err(Error::corrupt(format!("offset of stream {}", self.name), format!("{} is not one", offset.0)));
        };
        if rows > held.rows() {
            return Err(Error::conflict(format!(
                "stream {} holds {} rows, but the checkpoint has read {rows}: a memory stream lives as long as its \
                 process; insert the same rows again, or use a new checkpoint",
                self.name,
                held.rows()
            )));
        }
        Ok(rows)
    }
}

/// One query's view of a [`MemoryStream`].
#[derive(Debug)]
pub struct MemorySource(Arc<MemoryStream>);

impl MemorySource {
    /// Reads `stream` from its first row.
    pub fn new(stream: Arc<MemoryStream>) -> Self {
        MemorySource(stream)
    }
}

impl Source for MemorySource {
    fn schema(&self) -> SchemaRef {
        self.0.schema.clone()
    }

    fn description(&self) -> String {
        format!("MemoryStream[{}]", self.0.name)
    }

    fn latest_offset(&mut self, after: Option<&Offset>, limit: &ReadLimit) -> Result<Option<Offset>> {
        let held = self.0.lock();
        let start = self.0.position(after, &held)?;
        let until = match &limit.until {
            Some(until) => self.0.position(Some(until), &held)?,
            None => held.rows(),
        };
        let mut end = start;
        let mut bytes = 0;
        for (rows, batch) in held.additions.iter().filter(|(rows, _)| *rows > start && *rows <= until) {
            bytes += batch.get_array_memory_size() as u64;
            if end > start && !limit.unlimited && limit.max_bytes.is_some_and(|max| bytes > max) {
                break;
            }
            end = *rows;
        }
        Ok((end > start).then(|| Offset(json!({ "inserted": end }))))
    }

    fn size(&self, range: &OffsetRange) -> RangeSize {
        let held = self.0.lock();
        let start = self.0.position(range.start.as_ref(), &held);
        let end = self.0.position(Some(&range.end), &held);
        RangeSize { rows: start.ok().zip(end.ok()).map(|(start, end)| end.saturating_sub(start)), bytes: None }
    }

    fn read(&self, range: &OffsetRange, wanted: &Pushdown) -> Result<SourceRead> {
        let held = self.0.lock();
        let start = self.0.position(range.start.as_ref(), &held)?;
        let end = self.0.position(Some(&range.end), &held)?;
        let schema = wanted.project(&self.0.schema)?;
        let batches: Result<Vec<_>> = held
            .additions
            .iter()
            .filter_map(|(until, batch)| part(*until, batch, start, end))
            .map(|batch| batch.project(&wanted.columns).map_err(|e| Error::internal(e.to_string())))
            .collect();
        let partitions = spread(batches?, wanted.partitions);
        let streams = partitions.into_iter().map(|batches| {
            let rows = futures::stream::iter(batches.into_iter().map(Ok));
            Box::pin(RecordBatchStreamAdapter::new(schema.clone(), rows)) as _
        });
        Ok(SourceRead { streams: streams.collect(), bad_records: Arc::default() })
    }

    fn commit(&mut self, _end: &Offset) -> Result<()> {
        Ok(())
    }
}

/// The rows of an addition, which ends at row `until`, that lie behind row `start` and up to row `end`. A checkpoint may
/// have cut where this process has none: its rows can have been inserted in other portions.
fn part(until: u64, batch: &RecordBatch, start: u64, end: u64) -> Option<RecordBatch> {
    let first = until - batch.num_rows() as u64;
    let (from, to) = (first.max(start), until.min(end));
    (from < to).then(|| batch.slice((from - first) as usize, (to - from) as usize))
}

/// Runs of batches of about the same number of rows, in order; at least one run, at the most `parts`.
fn spread(batches: Vec<RecordBatch>, parts: usize) -> Vec<Vec<RecordBatch>> {
    let total: usize = batches.iter().map(RecordBatch::num_rows).sum();
    let share = total.div_ceil(parts.max(1)).max(1);
    let mut runs = vec![Vec::new()];
    let mut rows = 0;
    for batch in batches {
        if rows >= share * runs.len() {
            runs.push(Vec::new());
        }
        rows += batch.num_rows();
        if let Some(run) = runs.last_mut() {
            run.push(batch);
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use arrow::array::Int64Array;
    use arrow::datatypes::{DataType, Field, Schema};
    use futures::TryStreamExt;

    use super::*;

    fn schema() -> SchemaRef {
        Arc::new(Schema::new(vec![Field::new("v", DataType::Int64, true)]))
    }

    fn rows(values: &[i64]) -> RecordBatch {
        RecordBatch::try_new(schema(), vec![Arc::new(Int64Array::from(values.to_vec()))]).unwrap()
    }

    fn at(rows: u64) -> Offset {
        Offset(json!({ "inserted": rows }))
    }

    fn read(source: &MemorySource, start: Option<u64>, end: u64, partitions: usize) -> Vec<Vec<i64>> {
        let wanted = Pushdown { columns: vec![0], filters: vec![], partitions };
        let read = source.read(&OffsetRange { start: start.map(at), end: at(end) }, &wanted).unwrap();
        let values =
            |batch: RecordBatch| batch.column(0).as_any().downcast_ref::<Int64Array>().unwrap().values().to_vec();
        let collect =
            |stream| futures::executor::block_on(TryStreamExt::try_collect::<Vec<RecordBatch>>(stream)).unwrap();
        read.streams.into_iter().map(|s| collect(s).into_iter().flat_map(values).collect()).collect()
    }

    #[test]
    fn a_batch_takes_whole_additions_and_the_same_range_gives_the_same_rows() {
        let stream = MemoryStream::new("s", schema());
        let mut source = MemorySource::new(stream.clone());
        assert_eq!(source.latest_offset(None, &ReadLimit::default()).unwrap(), None);
        stream.append(rows(&[1, 2])).unwrap();
        stream.append(rows(&[])).unwrap();
        stream.append(rows(&[3])).unwrap();
        let small = ReadLimit { max_bytes: Some(1), ..Default::default() };
        assert_eq!(source.latest_offset(None, &small).unwrap(), Some(at(2)), "one addition at the least");
        assert_eq!(source.latest_offset(Some(&at(2)), &small).unwrap(), Some(at(3)));
        assert_eq!(source.latest_offset(Some(&at(3)), &small).unwrap(), None);
        let once = ReadLimit { unlimited: true, ..small };
        assert_eq!(source.latest_offset(None, &once).unwrap(), Some(at(3)));
        stream.append(rows(&[4, 5])).unwrap();
        let until = ReadLimit { until: Some(at(3)), ..Default::default() };
        assert_eq!(source.latest_offset(None, &until).unwrap(), Some(at(3)));
        assert_eq!(read(&source, None, 3, 1), vec![vec![1, 2, 3]]);
        assert_eq!(read(&source, Some(2), 5, 2), vec![vec![3, 4, 5]]);
        assert_eq!(read(&source, Some(1), 4, 1), vec![vec![2, 3, 4]], "additions may have been cut otherwise before");
        assert_eq!(read(&source, None, 5, 2), vec![vec![1, 2, 3], vec![4, 5]]);
        let range = OffsetRange { start: Some(at(2)), end: at(5) };
        assert_eq!(source.size(&range).rows, Some(3));
    }

    #[test]
    fn offsets_of_another_process_are_refused() {
        let stream = MemoryStream::new("s", schema());
        stream.append(rows(&[1])).unwrap();
        let mut source = MemorySource::new(stream);
        let error = source.latest_offset(Some(&at(7)), &ReadLimit::default()).unwrap_err();
        assert!(error.to_string().starts_with("stream s holds 1 rows, but the checkpoint has read 7"), "{error}");
        let error = source.latest_offset(Some(&Offset(json!({"files": 1}))), &ReadLimit::default()).unwrap_err();
        assert_eq!(error.code(), "E0400");
    }

    #[test]
    fn a_closed_stream_takes_no_rows_and_keeps_those_it_has() {
        let stream = MemoryStream::new("s", schema());
        stream.append(rows(&[1])).unwrap();
        stream.close();
        assert_eq!(stream.append(rows(&[2])).unwrap_err().to_string(), "stream s was closed: it takes no more rows");
        assert_eq!(stream.rows(), 1);
    }
}
