//! What generators share: rows that are numbered, and computed from their number alone.
//!
//! A range of numbers is cut into contiguous parts, one a stream, and each part into batches made when they are
//! pulled. So the rows of a range never depend on where it starts, how it is cut, or who reads it.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, RecordBatchOptions, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;

use super::{BadRecords, SourceRead};
use crate::error::{Error, Result};

/// Rows of one batch.
pub(super) const BATCH_ROWS: u64 = 8192;

/// Makes the rows of a range of numbers, at most [`BATCH_ROWS`] of them.
pub(super) type MakeRows = Arc<dyn Fn(Range<u64>) -> Result<RecordBatch> + Send + Sync>;

/// The rows numbered `rows`, over at most `partitions` streams; small ranges get fewer.
pub(super) fn read_numbered(schema: SchemaRef, rows: Range<u64>, partitions: usize, make: MakeRows) -> SourceRead {
    let count = rows.end.saturating_sub(rows.start);
    let parts = (partitions.max(1) as u64).min(count.div_ceil(BATCH_ROWS)).max(1);
    let cut = |part: u64| rows.start + (u128::from(count) * u128::from(part) / u128::from(parts)) as u64;
    let streams = (0..parts).map(|part| stream_of(schema.clone(), cut(part)..cut(part + 1), make.clone())).collect();
    SourceRead { streams, bad_records: Arc::new(BadRecords::default()) }
}

fn stream_of(schema: SchemaRef, rows: Range<u64>, make: MakeRows) -> SendableRecordBatchStream {
    let starts = rows.clone().step_by(BATCH_ROWS as usize);
    let batches = starts.map(move |start| {
        make(start..rows.end.min(start + BATCH_ROWS)).map_err(|e| DataFusionError::External(Box::new(e)))
    });
    Box::pin(RecordBatchStreamAdapter::new(schema, futures::stream::iter(batches)))
}

/// A batch of `rows` rows from the wanted columns, which may be none.
pub(super) fn batch_of(schema: &SchemaRef, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(schema.clone(), columns, &options)
        .map_err(|e| Error::internal(format!("generated rows don't fit their schema: {e}")))
}

/// The columns of both rate connectors.
pub(super) fn timestamp_and_value() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("timestamp", DataType::Timestamp(TimeUnit::Microsecond, None), false),
        Field::new("value", DataType::Int64, false),
    ]))
}

/// The wanted ones of [`timestamp_and_value`]; `timestamps` in microseconds, values are the rows' numbers.
pub(super) fn timestamp_and_value_batch(
    schema: &SchemaRef,
    columns: &[usize],
    rows: Range<u64>,
    timestamps: impl FnOnce() -> Result<Vec<i64>>,
) -> Result<RecordBatch> {
    let count = (rows.end - rows.start) as usize;
    let mut timestamps = Some(timestamps);
    let mut times: Option<ArrayRef> = None;
    let mut arrays = Vec::with_capacity(columns.len());
    for column in columns {
        if *column == 1 {
            arrays.push(Arc::new(values(rows.clone())?) as ArrayRef);
            continue;
        }
        if let Some(timestamps) = timestamps.take() {
            times = Some(Arc::new(TimestampMicrosecondArray::from(timestamps()?)));
        }
        arrays.extend(times.clone());
    }
    batch_of(schema, arrays, count)
}

fn values(rows: Range<u64>) -> Result<Int64Array> {
    if rows.end > i64::MAX as u64 {
        return Err(Error::computation(format!("row {} has no BIGINT value", rows.end)));
    }
    Ok(Int64Array::from_iter_values(rows.start as i64..rows.end as i64))
}

/// Milliseconds and microseconds behind them as one count of microseconds.
///
/// # Errors
/// Execution: past the year 294246, where a TIMESTAMP ends.
pub(super) fn micros(millis: i64, micros: i128) -> Result<i64> {
    i64::try_from(i128::from(millis) * 1000 + micros)
        .map_err(|_| Error::computation("a generated time lies beyond the range of TIMESTAMP (the year 294246)"))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use futures::StreamExt;

    /// All rows of a read, streams one after the other.
    pub(in crate::source) fn collect(read: SourceRead) -> Vec<RecordBatch> {
        let streams = read.streams.into_iter().map(|s| futures::executor::block_on(s.collect::<Vec<_>>()));
        streams.flatten().map(|batch| batch.unwrap()).collect()
    }

    /// The same as one batch.
    pub(in crate::source) fn concat(schema: &SchemaRef, read: SourceRead) -> RecordBatch {
        arrow::compute::concat_batches(schema, &collect(read)).unwrap()
    }

    #[test]
    fn parts_are_contiguous_and_whole() {
        let schema = timestamp_and_value();
        let make = |schema: SchemaRef| -> MakeRows {
            Arc::new(move |rows: Range<u64>| {
                timestamp_and_value_batch(&schema, &[0, 1], rows.clone(), || {
                    Ok(vec![7; (rows.end - rows.start) as usize])
                })
            })
        };
        for (rows, partitions, streams) in [(0..0, 4, 1), (5..6, 4, 1), (100..30_000, 2, 2), (3..100_003, 8, 8)] {
            let read = read_numbered(schema.clone(), rows.clone(), partitions, make(schema.clone()));
            assert_eq!(read.streams.len(), streams);
            let all = concat(&schema, read);
            let values = all.column(1).as_any().downcast_ref::<Int64Array>().unwrap();
            assert!(values.values().iter().copied().eq(rows.start as i64..rows.end as i64));
        }
    }

    #[test]
    fn no_columns_still_count() {
        let schema = Arc::new(timestamp_and_value().project(&[]).unwrap());
        let batch = timestamp_and_value_batch(&schema, &[], 4..9, || Ok(vec![])).unwrap();
        assert_eq!((batch.num_rows(), batch.num_columns()), (5, 0));
    }
}
