//! `nexmark`: the persons, auctions and bids of the Nexmark benchmark, each computed from its number alone.
//!
//! Of 50 events, one is a person, three are auctions and 46 are bids. The offset counts events of all three
//! types, so that three streams at the same offset stand at the same event time; it carries what the rows depend
//! on. Event n happens n / rate seconds after the base time, exact to the microsecond.
//!
//! With `events`, all of them are there at once. Without, the stream has no end and comes by the query's clock: it
//! begins with one second's worth of events and gets `rate` more each second. An ask without a limit takes what is
//! there by then.
//!
//! The rows of an offset are the same in every process and on every machine with 64-bit words and the same
//! `powf`, from which the generator draws prices.

mod rows;

use std::ops::Range;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use serde::{Deserialize, Serialize};

use self::rows::EventKind;
use super::generator::read_numbered;
use super::{Offset, OffsetRange, Pushdown, RangeSize, ReadLimit, Source, SourceRead, offset};
use crate::clock::{Clock, Millis};
use crate::error::{Error, Result};
use crate::options::{OptionKind, OptionSpec, Options, parse_timestamp};

/// What `WITH (connector = 'nexmark', …)` may hold.
pub const OPTIONS: &[OptionSpec] = &[
    OptionSpec {
        name: "type",
        kind: OptionKind::OneOf(&["person", "auction", "bid"]),
        help: "which events are the stream's rows; required",
    },
    OptionSpec {
        name: "events",
        kind: OptionKind::Count,
        help: "events of all three types in the whole stream; without it the stream has no end and comes by the clock",
    },
    OptionSpec {
        name: "rate",
        kind: OptionKind::Positive,
        help: "events of all three types in a second of event time (10000)",
    },
    OptionSpec {
        name: "base_time",
        kind: OptionKind::Timestamp,
        help: "the time of the first event ('2024-01-01 00:00:00')",
    },
    OptionSpec {
        name: "max_events_per_trigger",
        kind: OptionKind::Positive,
        help: "events of all three types in a batch, at the most (100000)",
    },
];

const DEFAULT_RATE: u64 = 10_000;
const DEFAULT_BATCH: u64 = 100_000;
/// 2024-01-01T00:00:00Z
const DEFAULT_BASE: Millis = 1_704_067_200_000;

/// The generator's ids and event numbers stay exact up to here.
const MAX_EVENTS: u64 = 1 << 50;

/// `{"events": n, …}`: the events 0 to n−1 were read.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct NexmarkOffset {
    events: u64,
    base_time: Millis,
    rate: u64,
    /// When the query's clock began to count; absent for a stream with an end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    start: Option<Millis>,
}

/// The source.
#[derive(Debug)]
pub struct NexmarkSource {
    kind: EventKind,
    events: Option<u64>,
    rate: u64,
    base_time: Millis,
    /// Set by the option.
    max_events: Option<u64>,
    clock: Clock,
    /// When the clock began to count; known from the first look on.
    start: Option<Millis>,
}

/// Opens the source; `clock` is the query's.
///
/// # Errors
/// InvalidInput: an unknown, wrong or missing option.
pub fn open(options: &Options, clock: Clock) -> Result<NexmarkSource> {
    options.check("connector 'nexmark'", OPTIONS)?;
    let Some(kind) = options.parse("type", "person, auction or bid", EventKind::parse)? else {
        return Err(Error::invalid("connector 'nexmark' needs the option type: person, auction or bid")
            .help("WITH (connector = 'nexmark', type = 'bid')"));
    };
    let at_most = |name: &str, max: u64| {
        options.parse(name, &format!("a whole number up to {max}"), |text| text.parse().ok().filter(|n| *n <= max))
    };
    Ok(NexmarkSource {
        kind,
        events: at_most("events", MAX_EVENTS)?,
        // The generator divides a second of microseconds by the rate.
        rate: at_most("rate", 1_000_000_000)?.unwrap_or(DEFAULT_RATE),
        base_time: options.parse("base_time", "a timestamp", parse_timestamp)?.unwrap_or(DEFAULT_BASE),
        max_events: options.count("max_events_per_trigger")?,
        clock,
        start: None,
    })
}

impl NexmarkSource {
    /// An offset that stands for the same rows here as where it was made.
    fn parse(&self, offset: &Offset) -> Result<NexmarkOffset> {
        let offset: NexmarkOffset = offset::parse(offset, &self.description())?;
        if (offset.base_time, offset.rate) != (self.base_time, self.rate) {
            return Err(Error::conflict(format!(
                "the checkpoint was made with base_time = {}, rate = {}; the stream has {} and {}: set them back, or \
                 start with a new checkpoint",
                offset.base_time, offset.rate, self.base_time, self.rate
            )));
        }
        if offset.events > MAX_EVENTS {
            return Err(Error::conflict(format!("the checkpoint's offset {} is past the last event", offset.events)));
        }
        Ok(offset)
    }

    /// How many events there are now, and when the clock began to count.
    fn available(&mut self, after: Option<NexmarkOffset>) -> (u64, Option<Millis>) {
        if let Some(events) = self.events {
            return (events, None);
        }
        let now = self.clock.now();
        let read = after.map_or(0, |a| a.events);
        // A stream that had an end until this start goes on from where it is.
        let since_read = || now.saturating_sub(self.millis_of(read));
        let start = after.map(|a| a.start.unwrap_or_else(since_read)).or(self.start).unwrap_or(now);
        self.start = Some(start);
        let elapsed = now.saturating_sub(start).max(0) as u128;
        let events = u128::from(self.rate) * (elapsed + 1000) / 1000;
        (events.min(u128::from(MAX_EVENTS)) as u64, Some(start))
    }

    /// How long `events` take.
    fn millis_of(&self, events: u64) -> Millis {
        i64::try_from(u128::from(events) * 1000 / u128::from(self.rate)).unwrap_or(Millis::MAX)
    }

    /// How many events a batch may hold.
    fn batch_events(&self, limit: &ReadLimit) -> u64 {
        if limit.unlimited {
            return MAX_EVENTS;
        }
        if let Some(max) = self.max_events {
            return max;
        }
        let by_bytes = limit.max_bytes.map(|bytes| self.kind.events_of(bytes / self.kind.row_bytes()).max(1));
        by_bytes.unwrap_or(DEFAULT_BATCH).min(DEFAULT_BATCH)
    }

    /// The numbers, among the events of the stream's type, of a range's rows.
    fn rows(&self, range: &OffsetRange) -> Result<Range<u64>> {
        let start = range.start.as_ref().map(|o| self.parse(o)).transpose()?.map_or(0, |o| o.events);
        let end = self.parse(&range.end)?.events;
        if start > end {
            return Err(Error::internal(format!("{}: range {start} to {end} runs backwards", self.description())));
        }
        Ok(self.kind.rows_by(start)..self.kind.rows_by(end))
    }
}

impl Source for NexmarkSource {
    fn schema(&self) -> SchemaRef {
        self.kind.schema()
    }

    fn description(&self) -> String {
        format!("NexmarkSource[type={}, rate={}]", self.kind.name(), self.rate)
    }

    fn latest_offset(&mut self, after: Option<&Offset>, limit: &ReadLimit) -> Result<Option<Offset>> {
        let after = after.map(|o| self.parse(o)).transpose()?;
        let until = limit.until.as_ref().map(|o| self.parse(o)).transpose()?;
        let (available, start) = self.available(after);
        let read = after.map_or(0, |a| a.events);
        // `until` was there when it was asked for, even if the clock has gone back since.
        let end = until.map_or(available, |u| u.events);
        let events = end.min(read.saturating_add(self.batch_events(limit)));
        if events <= read {
            return Ok(None);
        }
        offset::write(&NexmarkOffset { events, base_time: self.base_time, rate: self.rate, start }).map(Some)
    }

    fn size(&self, range: &OffsetRange) -> RangeSize {
        // A range that can't be read is refused by `read`.
        let Ok(rows) = self.rows(range) else { return RangeSize::default() };
        let rows = rows.end - rows.start;
        RangeSize { rows: Some(rows), bytes: rows.checked_mul(self.kind.row_bytes()) }
    }

    fn read(&self, range: &OffsetRange, wanted: &Pushdown) -> Result<SourceRead> {
        let schema = wanted.project(&self.schema())?;
        let generator = rows::Generator::new(self.kind, self.rate, self.base_time);
        let (made, columns) = (schema.clone(), wanted.columns.clone());
        let make = Arc::new(move |rows| generator.rows(rows, &made, &columns));
        Ok(read_numbered(schema, self.rows(range)?, wanted.partitions, make))
    }

    fn commit(&mut self, _end: &Offset) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{OptionEntry, OptionValue};
    use crate::source::generator::tests::concat;
    use arrow::array::{AsArray, RecordBatch};
    use arrow::datatypes::{Int64Type, TimestampMicrosecondType};
    use serde_json::json;

    const NOW: Millis = 1_750_000_000_000;

    fn open_with(entries: &[(&str, &str)], clock: &Clock) -> Result<NexmarkSource> {
        let entry = |(name, value): &(&str, &str)| OptionEntry {
            name: name.to_string(),
            value: OptionValue::Text(value.to_string()),
            span: Default::default(),
        };
        open(&Options { entries: entries.iter().map(entry).collect() }, clock.clone())
    }

    fn source(entries: &[(&str, &str)]) -> NexmarkSource {
        open_with(entries, &Clock::manual(NOW)).unwrap()
    }

    fn at(events: u64) -> Offset {
        Offset(json!({ "events": events, "base_time": DEFAULT_BASE, "rate": DEFAULT_RATE }))
    }

    fn read(source: &NexmarkSource, start: u64, end: u64, partitions: usize) -> RecordBatch {
        let range = OffsetRange { start: (start > 0).then(|| at(start)), end: at(end) };
        let columns = (0..source.schema().fields().len()).collect();
        let wanted = Pushdown { columns, filters: vec![], partitions };
        concat(&source.schema(), source.read(&range, &wanted).unwrap())
    }

    #[test]
    fn any_split_gives_the_rows_of_the_whole() {
        for kind in ["person", "auction", "bid"] {
            let source = source(&[("type", kind), ("events", "100000")]);
            let whole = read(&source, 0, 30_000, 1);
            for cuts in [vec![0, 1, 2, 49, 50, 51, 30_000], vec![0, 17_777, 30_000], vec![0, 3, 4, 104, 29_999, 30_000]]
            {
                let parts: Vec<_> = cuts.windows(2).map(|cut| read(&source, cut[0], cut[1], 3)).collect();
                assert_eq!(arrow::compute::concat_batches(&source.schema(), &parts).unwrap(), whole);
            }
        }
    }

    #[test]
    fn types_share_out_the_events() {
        let range = OffsetRange { start: None, end: at(1_000) };
        let rows = ["person", "auction", "bid"].map(|kind| source(&[("type", kind)]).size(&range).rows);
        assert_eq!(rows, [Some(20), Some(60), Some(920)]);
    }

    #[test]
    fn rows_are_these_ones() {
        // Pinned: a change here is a change of every checkpoint that reads the generator.
        let bids = read(&source(&[("type", "bid")]), 0, 54, 1);
        assert_eq!(bids.num_rows(), 46);
        let ids = |column: usize| bids.column(column).as_primitive::<Int64Type>().values()[..4].to_vec();
        let times = bids.column(5).as_primitive::<TimestampMicrosecondType>();
        assert_eq!(times.values()[..2].to_vec(), [DEFAULT_BASE * 1000 + 400, DEFAULT_BASE * 1000 + 500]);
        assert_eq!(ids(0), [1000, 1000, 1000, 1000]);
        assert_eq!(ids(1), [1001, 1001, 1001, 1007]);
        assert_eq!(ids(2), [73_134_520, 499_920, 1_940, 12_655]);
        let persons = read(&source(&[("type", "person")]), 0, 1, 1);
        assert_eq!(persons.column(1).as_string_view().value(0), "vicky noris");
        assert_eq!(persons.column(3).as_string_view().value(0), "7878 5821 1864 2539");
    }

    #[test]
    fn times_stay_exact_far_out() {
        // The generator's own clock is an f32 and has steps of 128 ms out here.
        let bids = read(&source(&[("type", "bid")]), 5_000_000_004, 5_000_000_006, 1);
        let times = bids.column(5).as_primitive::<TimestampMicrosecondType>().values().to_vec();
        let expected = DEFAULT_BASE * 1000 + 500_000_000_400;
        assert_eq!(times, [expected, expected + 100]);
    }

    #[test]
    fn a_stream_with_an_end_is_there_at_once_in_batches() {
        let events = |o: Option<Offset>| o.map(|o| o.0["events"].as_u64().unwrap());
        let mut source = source(&[("type", "bid"), ("events", "250000")]);
        let limit = ReadLimit::default();
        assert_eq!(events(source.latest_offset(None, &limit).unwrap()), Some(100_000));
        assert_eq!(events(source.latest_offset(Some(&at(200_000)), &limit).unwrap()), Some(250_000));
        assert_eq!(source.latest_offset(Some(&at(250_000)), &limit).unwrap(), None);
        let all = ReadLimit { unlimited: true, ..Default::default() };
        assert_eq!(events(source.latest_offset(None, &all).unwrap()), Some(250_000));
        let until = ReadLimit { until: Some(at(120_000)), ..Default::default() };
        assert_eq!(events(source.latest_offset(Some(&at(100_000)), &until).unwrap()), Some(120_000));
        let few_bytes = ReadLimit { max_bytes: Some(1), ..Default::default() };
        assert_eq!(events(source.latest_offset(None, &few_bytes).unwrap()), Some(1));
    }

    #[test]
    fn a_stream_without_an_end_comes_by_the_clock() {
        let clock = Clock::manual(NOW);
        let mut source = open_with(&[("type", "bid"), ("rate", "100")], &clock).unwrap();
        let everything = ReadLimit { unlimited: true, ..Default::default() };
        let first = source.latest_offset(None, &everything).unwrap().unwrap();
        assert_eq!((first.0["events"].as_u64(), first.0["start"].as_i64()), (Some(100), Some(NOW)));
        assert_eq!(source.latest_offset(Some(&first), &everything).unwrap(), None);
        clock.advance_to(NOW + 2_500);
        // Another process goes on from the logged start.
        let mut again = open_with(&[("type", "bid"), ("rate", "100")], &clock).unwrap();
        let next = again.latest_offset(Some(&first), &everything).unwrap().unwrap();
        assert_eq!(next.0["events"].as_u64(), Some(350));
    }

    #[test]
    fn other_rows_on_the_same_checkpoint_are_refused() {
        let mut source = source(&[("type", "bid"), ("rate", "99")]);
        let error = source.latest_offset(Some(&at(5)), &ReadLimit::default()).unwrap_err();
        assert!(matches!(error, Error::Conflict { .. }));
        assert!(error.to_string().contains("rate = 10000; the stream has 1704067200000 and 99"), "{error}");
    }

    #[test]
    fn options_are_checked() {
        let open = |entries: &[(&str, &str)]| open_with(entries, &Clock::manual(0)).unwrap_err();
        assert!(open(&[]).to_string().contains("needs the option type: person, auction or bid"));
        assert!(open(&[("type", "bids")]).to_string().contains("it takes one of person, auction, bid"));
        assert!(open(&[("type", "bid"), ("rate", "2000000000")]).to_string().contains("up to 1000000000"));
    }
}
