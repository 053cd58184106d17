//! `rate-micro-batch`: the same number of rows in every batch, whatever the clock says.
//!
//! All rows of a batch have one time, which advances from batch to batch. The offset carries what the rows depend
//! on, so that a row depends on nothing but its number. There is always another batch; AVAILABLE NOW and ONCE
//! run one.

use std::ops::Range;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use serde::{Deserialize, Serialize};

use super::generator::{micros, read_numbered, timestamp_and_value, timestamp_and_value_batch};
use super::{Offset, OffsetRange, Pushdown, RangeSize, ReadLimit, Source, SourceRead, offset};
use crate::error::{Error, Result};
use crate::options::{OptionKind, OptionSpec, Options, parse_timestamp};

/// What `WITH (connector = 'rate-micro-batch', …)` may hold.
pub const OPTIONS: &[OptionSpec] = &[
    OptionSpec { name: "rows_per_batch", kind: OptionKind::Positive, help: "rows of each batch; required" },
    OptionSpec {
        name: "start_timestamp",
        kind: OptionKind::Timestamp,
        help: "the time of the first batch's rows, in milliseconds since 1970 (0)",
    },
    OptionSpec {
        name: "advance_millis_per_batch",
        kind: OptionKind::Count,
        help: "milliseconds from one batch's time to the next one's (1000)",
    },
    OptionSpec { name: "num_partitions", kind: OptionKind::Positive, help: "streams read in parallel, at the most" },
];

/// Bytes of a row, for sizes.
const ROW_BYTES: u64 = 16;

/// `{"rows": n, …}`: the rows 0 to n−1 were read.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct BatchOffset {
    rows: u64,
    #[serde(flatten)]
    plan: Plan,
}

/// What the rows depend on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Plan {
    rows_per_batch: u64,
    start_timestamp: i64,
    advance_millis_per_batch: u64,
}

/// The source.
#[derive(Debug)]
pub struct RateMicroBatchSource {
    plan: Plan,
    num_partitions: Option<usize>,
}

/// Opens the source.
///
/// # Errors
/// InvalidInput: an unknown, wrong or missing option.
pub fn open(options: &Options) -> Result<RateMicroBatchSource> {
    options.check("connector 'rate-micro-batch'", OPTIONS)?;
    let Some(rows_per_batch) = options.count("rows_per_batch")? else {
        return Err(Error::invalid("connector 'rate-micro-batch' needs the option rows_per_batch")
            .help("WITH (connector = 'rate-micro-batch', rows_per_batch = 100)"));
    };
    let start = options.parse("start_timestamp", "milliseconds since 1970, or a timestamp", parse_timestamp)?;
    let plan = Plan {
        rows_per_batch,
        start_timestamp: start.unwrap_or(0),
        advance_millis_per_batch: options.count("advance_millis_per_batch")?.unwrap_or(1000),
    };
    Ok(RateMicroBatchSource { plan, num_partitions: options.count("num_partitions")?.map(|n| n as usize) })
}

impl RateMicroBatchSource {
    fn parse(&self, offset: &Offset) -> Result<u64> {
        let BatchOffset { rows, plan } = offset::parse(offset, &self.description())?;
        if plan == self.plan {
            return Ok(rows);
        }
        Err(Error::conflict(format!(
            "the checkpoint was made with {plan}; the stream has {}: set the options back, or start with a new checkpoint",
            self.plan
        )))
    }

    fn rows(&self, range: &OffsetRange) -> Result<Range<u64>> {
        let start = range.start.as_ref().map_or(Ok(0), |o| self.parse(o))?;
        let end = self.parse(&range.end)?;
        if start > end {
            return Err(Error::internal(format!("{}: range {start} to {end} runs backwards", self.description())));
        }
        Ok(start..end)
    }
}

impl Source for RateMicroBatchSource {
    fn schema(&self) -> SchemaRef {
        timestamp_and_value()
    }

    fn description(&self) -> String {
        format!("RateMicroBatchSource[{}]", self.plan)
    }

    fn latest_offset(&mut self, after: Option<&Offset>, limit: &ReadLimit) -> Result<Option<Offset>> {
        let after = after.map_or(Ok(0), |o| self.parse(o))?;
        let until = limit.until.as_ref().map(|o| self.parse(o)).transpose()?;
        if until.is_some_and(|until| until <= after) {
            return Ok(None);
        }
        let rows = after
            .checked_add(self.plan.rows_per_batch)
            .ok_or_else(|| Error::computation(format!("{} has more rows than can be numbered", self.description())))?;
        offset::write(&BatchOffset { rows, plan: self.plan }).map(Some)
    }

    fn size(&self, range: &OffsetRange) -> RangeSize {
        let Ok(rows) = self.rows(range) else { return RangeSize::default() };
        let rows = rows.end - rows.start;
        RangeSize { rows: Some(rows), bytes: rows.checked_mul(ROW_BYTES) }
    }

    fn read(&self, range: &OffsetRange, wanted: &Pushdown) -> Result<SourceRead> {
        let schema = wanted.project(&self.schema())?;
        let rows = self.rows(range)?;
        let (plan, columns, made) = (self.plan, wanted.columns.clone(), schema.clone());
        let make = Arc::new(move |rows: Range<u64>| {
            timestamp_and_value_batch(&made, &columns, rows.clone(), || rows.map(|row| plan.time(row)).collect())
        });
        let partitions = self.num_partitions.unwrap_or(usize::MAX).min(wanted.partitions);
        Ok(read_numbered(schema, rows, partitions, make))
    }

    fn commit(&mut self, _end: &Offset) -> Result<()> {
        Ok(())
    }
}

impl Plan {
    /// The time of a row, in microseconds.
    fn time(self, row: u64) -> Result<i64> {
        let batch = i128::from(row / self.rows_per_batch);
        micros(self.start_timestamp, batch * i128::from(self.advance_millis_per_batch) * 1000)
    }
}

impl std::fmt::Display for Plan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "rows_per_batch = {}, start_timestamp = {}, advance_millis_per_batch = {}",
            self.rows_per_batch, self.start_timestamp, self.advance_millis_per_batch
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{OptionEntry, OptionValue};
    use crate::source::generator::tests::concat;
    use arrow::array::AsArray;
    use arrow::datatypes::{Int64Type, TimestampMicrosecondType};

    fn source(rows_per_batch: &str) -> RateMicroBatchSource {
        let entry = |name: &str, value: &str| OptionEntry {
            name: name.into(),
            value: OptionValue::Number(value.into()),
            span: Default::default(),
        };
        let entries = vec![
            entry("rows_per_batch", rows_per_batch),
            entry("start_timestamp", "5000"),
            entry("advance_millis_per_batch", "250"),
        ];
        open(&Options { entries }).unwrap()
    }

    fn everything() -> Pushdown {
        Pushdown { columns: vec![1, 0], filters: vec![], partitions: 2 }
    }

    #[test]
    fn each_batch_has_its_rows_and_its_time() {
        let mut source = source("3");
        let first = source.latest_offset(None, &ReadLimit::default()).unwrap().unwrap();
        let second = source.latest_offset(Some(&first), &ReadLimit::default()).unwrap().unwrap();
        let range = OffsetRange { start: Some(first.clone()), end: second.clone() };
        let wanted = everything();
        let rows = concat(&wanted.project(&source.schema()).unwrap(), source.read(&range, &wanted).unwrap());
        assert_eq!(rows.column(0).as_primitive::<Int64Type>().values().to_vec(), [3, 4, 5]);
        assert_eq!(rows.column(1).as_primitive::<TimestampMicrosecondType>().values().to_vec(), [5_250_000; 3]);
        let both = OffsetRange { start: None, end: second };
        let rows = concat(&wanted.project(&source.schema()).unwrap(), source.read(&both, &wanted).unwrap());
        let times = rows.column(1).as_primitive::<TimestampMicrosecondType>().values().to_vec();
        assert_eq!(times, [5_000_000, 5_000_000, 5_000_000, 5_250_000, 5_250_000, 5_250_000]);
    }

    #[test]
    fn available_now_is_one_batch() {
        let mut source = source("3");
        let frozen = source.latest_offset(None, &ReadLimit { unlimited: true, ..Default::default() }).unwrap();
        let until = ReadLimit { until: frozen.clone(), ..Default::default() };
        assert_eq!(source.latest_offset(None, &until).unwrap(), frozen);
        assert_eq!(source.latest_offset(frozen.as_ref(), &until).unwrap(), None);
    }

    #[test]
    fn other_options_on_the_same_checkpoint_are_refused() {
        let end = source("3").latest_offset(None, &ReadLimit::default()).unwrap().unwrap();
        let error = source("4").latest_offset(Some(&end), &ReadLimit::default()).unwrap_err().to_string();
        assert!(error.contains("made with rows_per_batch = 3") && error.contains("has rows_per_batch = 4"), "{error}");
    }

    #[test]
    fn rows_per_batch_is_required() {
        let error = open(&Options::default()).unwrap_err().to_string();
        assert!(error.contains("needs the option rows_per_batch"), "{error}");
    }
}
