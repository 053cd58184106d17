//! `rate`: so many rows a second, by the query's clock.
//!
//! The offset counts whole seconds since the start, and carries the start and the rates, so that a row depends on
//! nothing but its number: row `value` belongs to the second in which the count of rows passes it, and the rows
//! of a second are spread evenly over it.
//!
//! ```text
//! rows_per_second = 10, ramp_up_time = '4 seconds'
//! second        0  1  2   3   4   5   6
//! rows by then  0  2  6  12  20  30  40
//! ```

use std::ops::Range;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use serde::{Deserialize, Serialize};

use super::generator::{micros, read_numbered, timestamp_and_value, timestamp_and_value_batch};
use super::{Offset, OffsetRange, Pushdown, RangeSize, ReadLimit, Source, SourceRead, offset};
use crate::clock::{Clock, Millis};
use crate::error::{Error, Result};
use crate::options::{OptionKind, OptionSpec, Options, parse_interval};

/// What `WITH (connector = 'rate', …)` may hold.
pub const OPTIONS: &[OptionSpec] = &[
    OptionSpec { name: "rows_per_second", kind: OptionKind::Positive, help: "rows a second (1)" },
    OptionSpec {
        name: "ramp_up_time",
        kind: OptionKind::Interval,
        help: "whole seconds until the rate is reached, growing evenly (0)",
    },
    OptionSpec { name: "num_partitions", kind: OptionKind::Positive, help: "streams read in parallel, at the most" },
];

/// Bytes of a row, for limits.
const ROW_BYTES: u64 = 16;

/// `{"start": ms, "seconds": n, …}`: the seconds 0 to n−1 after the start were read.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RateOffset {
    start: Millis,
    seconds: u64,
    rows_per_second: u64,
    ramp_up_seconds: u64,
}

/// The source.
#[derive(Debug)]
pub struct RateSource {
    rows_per_second: u64,
    ramp_up_seconds: u64,
    num_partitions: Option<usize>,
    clock: Clock,
    /// When the first second began, where no offset says it: when the query was started.
    start: Millis,
}

/// Opens the source; `clock` is the query's.
///
/// # Errors
/// InvalidInput: an unknown or a wrong option.
pub fn open(options: &Options, clock: Clock) -> Result<RateSource> {
    options.check("connector 'rate'", OPTIONS)?;
    let ramp_up = options.parse("ramp_up_time", "an interval of whole seconds such as '5 seconds'", |text| {
        let micros = parse_interval(text).filter(|m| *m >= 0 && m % 1_000_000 == 0)?;
        Some(micros as u64 / 1_000_000)
    })?;
    Ok(RateSource {
        rows_per_second: options.count("rows_per_second")?.unwrap_or(1),
        ramp_up_seconds: ramp_up.unwrap_or(0),
        num_partitions: options.count("num_partitions")?.map(|n| n as usize),
        start: clock.now(),
        clock,
    })
}

impl RateSource {
    fn parse(&self, offset: &Offset) -> Result<RateOffset> {
        let offset = offset::parse(offset, &self.description())?;
        self.same_rates(&offset)?;
        Ok(offset)
    }

    /// A row's time depends on the rates: changed ones would give other rows under the same numbers.
    fn same_rates(&self, offset: &RateOffset) -> Result<()> {
        let was = (offset.rows_per_second, offset.ramp_up_seconds);
        if was == (self.rows_per_second, self.ramp_up_seconds) {
            return Ok(());
        }
        Err(Error::conflict(format!(
            "the checkpoint was made with rows_per_second = {}, ramp_up_time = '{} seconds'; the stream has {} and '{} \
             seconds': set them back, or start with a new checkpoint",
            was.0, was.1, self.rows_per_second, self.ramp_up_seconds
        )))
    }

    fn pace(&self) -> Pace {
        Pace { rows_per_second: self.rows_per_second, ramp_up_seconds: self.ramp_up_seconds }
    }

    /// The numbers of a range's rows, and the start.
    fn rows(&self, range: &OffsetRange) -> Result<(Range<u64>, Millis)> {
        let (start, end) = offset::parse_range::<RateOffset>(range, &self.description())?;
        for offset in start.iter().chain([&end]) {
            self.same_rates(offset)?;
        }
        if start.is_some_and(|s| s.start != end.start || s.seconds > end.seconds) {
            return Err(Error::internal(format!("{}: {range:?} is no range", self.description())));
        }
        let from = start.map_or(Ok(0), |s| self.pace().rows_by(s.seconds))?;
        Ok((from..self.pace().rows_by(end.seconds)?, end.start))
    }
}

impl Source for RateSource {
    fn schema(&self) -> SchemaRef {
        timestamp_and_value()
    }

    fn description(&self) -> String {
        format!("RateSource[rowsPerSecond={}, rampUpTimeSeconds={}]", self.rows_per_second, self.ramp_up_seconds)
    }

    fn latest_offset(&mut self, after: Option<&Offset>, limit: &ReadLimit) -> Result<Option<Offset>> {
        let after = after.map(|o| self.parse(o)).transpose()?;
        let until = limit.until.as_ref().map(|o| self.parse(o)).transpose()?;
        let now = self.clock.now();
        if let Some(after) = after {
            self.start = after.start;
        }
        let start = self.start;
        let from = after.map_or(0, |a| a.seconds);
        let mut seconds = until.map_or(now.saturating_sub(start).max(0) as u64 / 1000, |u| u.seconds);
        if let (false, Some(max)) = (limit.unlimited, limit.max_bytes) {
            let most = (max / ROW_BYTES / self.rows_per_second).max(1);
            seconds = seconds.min(from.saturating_add(most));
        }
        if seconds <= from {
            return Ok(None);
        }
        let (rows_per_second, ramp_up_seconds) = (self.rows_per_second, self.ramp_up_seconds);
        offset::write(&RateOffset { start, seconds, rows_per_second, ramp_up_seconds }).map(Some)
    }

    fn size(&self, range: &OffsetRange) -> RangeSize {
        let Ok((rows, _)) = self.rows(range) else { return RangeSize::default() };
        let rows = rows.end - rows.start;
        RangeSize { rows: Some(rows), bytes: rows.checked_mul(ROW_BYTES) }
    }

    fn read(&self, range: &OffsetRange, wanted: &Pushdown) -> Result<SourceRead> {
        let schema = wanted.project(&self.schema())?;
        let (rows, start) = self.rows(range)?;
        let (pace, columns, made) = (self.pace(), wanted.columns.clone(), schema.clone());
        let make = Arc::new(move |rows: Range<u64>| {
            timestamp_and_value_batch(&made, &columns, rows.clone(), || pace.times(rows, start))
        });
        let partitions = self.num_partitions.unwrap_or(usize::MAX).min(wanted.partitions);
        Ok(read_numbered(schema, rows, partitions, make))
    }

    fn commit(&mut self, _end: &Offset) -> Result<()> {
        Ok(())
    }
}

/// How the count of rows grows.
#[derive(Debug, Clone, Copy)]
struct Pace {
    rows_per_second: u64,
    ramp_up_seconds: u64,
}

impl Pace {
    /// How many rows there are when `seconds` have passed.
    fn rows_by(self, seconds: u64) -> Result<u64> {
        let (rate, ramp, seconds) =
            (u128::from(self.rows_per_second), u128::from(self.ramp_up_seconds), u128::from(seconds));
        let ramped = seconds.min(ramp);
        let too_many = || Error::computation("the rate stream has more rows than can be numbered");
        let up =
            ramped.checked_mul(ramped + 1).and_then(|n| n.checked_mul(rate)).ok_or_else(too_many)? / (2 * (ramp + 1));
        let rows = rate.checked_mul(seconds - ramped).and_then(|n| n.checked_add(up)).ok_or_else(too_many)?;
        u64::try_from(rows).map_err(|_| too_many())
    }

    /// The second that row `row` belongs to: the last one that begins with no more than `row` rows.
    fn second_of(self, row: u64) -> Result<u64> {
        // With at least one row a second, and the ramp's half before it, row n comes in second n + ramp at the latest.
        let (mut low, mut high) = (0, row.saturating_add(self.ramp_up_seconds).saturating_add(1));
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            if self.rows_by(middle)? <= row { low = middle } else { high = middle - 1 }
        }
        Ok(low)
    }

    /// The times of rows, in microseconds.
    fn times(self, rows: Range<u64>, start: Millis) -> Result<Vec<i64>> {
        let mut times = Vec::with_capacity((rows.end - rows.start) as usize);
        let mut second = self.second_of(rows.start)?;
        let (mut first, mut next) = (self.rows_by(second)?, self.rows_by(second + 1)?);
        for row in rows {
            while row >= next {
                second += 1;
                (first, next) = (next, self.rows_by(second + 1)?);
            }
            let within = i128::from(row - first) * 1_000_000 / i128::from(next - first);
            times.push(micros(start, i128::from(second) * 1_000_000 + within)?);
        }
        Ok(times)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{OptionEntry, OptionValue};
    use crate::source::generator::tests::concat;
    use arrow::array::AsArray;
    use arrow::datatypes::TimestampMicrosecondType;

    fn options(entries: &[(&str, &str)]) -> Options {
        let entry = |(name, value): &(&str, &str)| OptionEntry {
            name: name.to_string(),
            value: OptionValue::Text(value.to_string()),
            span: Default::default(),
        };
        Options { entries: entries.iter().map(entry).collect() }
    }

    const START: Millis = 1_700_000_000_000;

    fn everything(partitions: usize) -> Pushdown {
        Pushdown { columns: vec![0, 1], filters: vec![], partitions }
    }

    #[test]
    fn seconds_become_rows_by_the_clock() {
        let clock = Clock::manual(START);
        let mut source = open(&options(&[("rows_per_second", "4")]), clock.clone()).unwrap();
        assert_eq!(source.latest_offset(None, &ReadLimit::default()).unwrap(), None);
        clock.advance_to(START + 2_900);
        let end = source.latest_offset(None, &ReadLimit::default()).unwrap().unwrap();
        assert_eq!(end.0["seconds"], 2);
        let range = OffsetRange { start: None, end: end.clone() };
        assert_eq!(source.size(&range).rows, Some(8));
        let rows = concat(&source.schema(), source.read(&range, &everything(1)).unwrap());
        let times = rows.column(0).as_primitive::<TimestampMicrosecondType>().values().to_vec();
        assert_eq!(
            times[..5].iter().map(|t| t - START * 1000).collect::<Vec<_>>(),
            [0, 250_000, 500_000, 750_000, 1_000_000]
        );
        assert_eq!(source.latest_offset(Some(&end), &ReadLimit::default()).unwrap(), None);
    }

    #[test]
    fn seconds_count_from_the_start_and_not_from_the_first_look() {
        let clock = Clock::manual(START);
        let mut source = open(&options(&[]), clock.clone()).unwrap();
        clock.advance_to(START + 5_000);
        let end = source.latest_offset(None, &ReadLimit::default()).unwrap().unwrap();
        assert_eq!((&end.0["start"], &end.0["seconds"]), (&START.into(), &5.into()));
    }

    #[test]
    fn another_process_and_another_split_give_the_same_rows() {
        let options = options(&[("rows_per_second", "1000"), ("ramp_up_time", "7 seconds")]);
        let clock = Clock::manual(START);
        let mut source = open(&options, clock.clone()).unwrap();
        source.latest_offset(None, &ReadLimit::default()).unwrap();
        clock.advance_to(START + 5_000);
        let middle = source.latest_offset(None, &ReadLimit::default()).unwrap().unwrap();
        clock.advance_to(START + 60_000);
        let end = source.latest_offset(Some(&middle), &ReadLimit::default()).unwrap().unwrap();
        let whole = source.read(&OffsetRange { start: None, end: end.clone() }, &everything(3)).unwrap();
        let whole = concat(&source.schema(), whole);
        let other = open(&options, Clock::manual(START + 999_999)).unwrap();
        let first = other.read(&OffsetRange { start: None, end: middle.clone() }, &everything(1)).unwrap();
        let second = other.read(&OffsetRange { start: Some(middle), end }, &everything(2)).unwrap();
        let schema = source.schema();
        let parts = [concat(&schema, first), concat(&schema, second)];
        assert_eq!(arrow::compute::concat_batches(&schema, &parts).unwrap(), whole);
        let times = whole.column(0).as_primitive::<TimestampMicrosecondType>().values();
        assert!(times.windows(2).all(|pair| pair[0] <= pair[1]));
        assert!(*times.last().unwrap() < (START + 60_000) * 1000);
    }

    #[test]
    fn a_ramp_grows_evenly() {
        let pace = Pace { rows_per_second: 10, ramp_up_seconds: 4 };
        let rows: Vec<u64> = (0..7).map(|s| pace.rows_by(s).unwrap()).collect();
        assert_eq!(rows, [0, 2, 6, 12, 20, 30, 40]);
        for row in 0..40 {
            let second = pace.second_of(row).unwrap();
            assert!(pace.rows_by(second).unwrap() <= row && row < pace.rows_by(second + 1).unwrap());
        }
        let slow = Pace { rows_per_second: 1, ramp_up_seconds: 20 };
        for row in 0..40 {
            let second = slow.second_of(row).unwrap();
            assert!(slow.rows_by(second).unwrap() <= row && row < slow.rows_by(second + 1).unwrap());
        }
    }

    #[test]
    fn limits_hold() {
        let clock = Clock::manual(START);
        let mut source = open(&options(&[("rows_per_second", "100")]), clock.clone()).unwrap();
        source.latest_offset(None, &ReadLimit::default()).unwrap();
        clock.advance_to(START + 100_000);
        let seconds = |o: Option<Offset>| o.unwrap().0["seconds"].as_u64().unwrap();
        let limit = ReadLimit { max_bytes: Some(8_000), ..Default::default() };
        assert_eq!(seconds(source.latest_offset(None, &limit).unwrap()), 5);
        let frozen = source.latest_offset(None, &ReadLimit { unlimited: true, ..limit }).unwrap();
        assert_eq!(seconds(frozen.clone()), 100);
        clock.advance_to(START + 200_000);
        let until = ReadLimit { until: frozen.clone(), ..Default::default() };
        assert_eq!(seconds(source.latest_offset(None, &until).unwrap()), 100);
        assert_eq!(source.latest_offset(frozen.as_ref(), &until).unwrap(), None);
    }

    #[test]
    fn other_rates_on_the_same_checkpoint_are_refused() {
        let clock = Clock::manual(START);
        let mut source = open(&options(&[("rows_per_second", "2")]), clock.clone()).unwrap();
        source.latest_offset(None, &ReadLimit::default()).unwrap();
        clock.advance_to(START + 1_000);
        let end = source.latest_offset(None, &ReadLimit::default()).unwrap().unwrap();
        let mut other = open(&options(&[("rows_per_second", "3")]), clock).unwrap();
        let error = other.latest_offset(Some(&end), &ReadLimit::default()).unwrap_err().to_string();
        assert!(error.contains("rows_per_second = 2") && error.contains("the stream has 3"), "{error}");
        assert!(other.read(&OffsetRange { start: None, end }, &everything(1)).is_err());
    }

    #[test]
    fn options_are_checked() {
        let clock = || Clock::manual(0);
        let error = open(&options(&[("rows_per_sec", "2")]), clock()).unwrap_err();
        assert_eq!(error.help_text(), Some("did you mean rows_per_second?"));
        let error = open(&options(&[("ramp_up_time", "1.5 seconds")]), clock()).unwrap_err().to_string();
        assert!(
            error.contains("option ramp_up_time is '1.5 seconds'; it takes an interval of whole seconds"),
            "{error}"
        );
    }
}
