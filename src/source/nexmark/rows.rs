//! Nexmark events as rows: schemas, numbers and columns of the three types.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringViewArray, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use nexmark::EventGenerator;
use nexmark::config::NexmarkConfig;
use nexmark::event::{Auction, Bid, Event, EventType, Person};

use crate::clock::Millis;
use crate::error::{Error, Result};
use crate::source::generator::{batch_of, micros};

/// One of the three types. Of [`EventKind::CYCLE`] events the first is a person, then come the auctions, then
/// the bids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EventKind {
    Person,
    Auction,
    Bid,
}

impl EventKind {
    /// After so many events the types repeat.
    const CYCLE: u64 = 50;

    /// By the name in SQL.
    pub(super) fn parse(name: &str) -> Option<Self> {
        let kinds = [EventKind::Person, EventKind::Auction, EventKind::Bid];
        kinds.into_iter().find(|kind| kind.name().eq_ignore_ascii_case(name))
    }

    /// The name in SQL.
    pub(super) fn name(self) -> &'static str {
        match self {
            EventKind::Person => "person",
            EventKind::Auction => "auction",
            EventKind::Bid => "bid",
        }
    }

    /// The part of a cycle that is of this type.
    fn places(self) -> Range<u64> {
        match self {
            EventKind::Person => 0..1,
            EventKind::Auction => 1..4,
            EventKind::Bid => 4..Self::CYCLE,
        }
    }

    /// How many of the first `events` events are of this type.
    pub(super) fn rows_by(self, events: u64) -> u64 {
        let places = self.places();
        let in_last = (events % Self::CYCLE).clamp(places.start, places.end) - places.start;
        events / Self::CYCLE * (places.end - places.start) + in_last
    }

    /// About how many events it takes to have `rows` rows of this type.
    pub(super) fn events_of(self, rows: u64) -> u64 {
        let places = self.places();
        rows.saturating_mul(Self::CYCLE) / (places.end - places.start)
    }

    /// The number among all events of row `row` of this type.
    fn event_of(self, row: u64) -> u64 {
        let places = self.places();
        let count = places.end - places.start;
        row / count * Self::CYCLE + places.start + row % count
    }

    /// Bytes of a row in memory, on average.
    pub(super) fn row_bytes(self) -> u64 {
        match self {
            EventKind::Person => 230,
            EventKind::Auction => 540,
            EventKind::Bid => 180,
        }
    }

    /// The columns, as in the benchmark.
    pub(super) fn schema(self) -> SchemaRef {
        let columns: &[(&str, Column)] = match self {
            EventKind::Person => &[
                ("id", Column::Id),
                ("name", Column::Text),
                ("email_address", Column::Text),
                ("credit_card", Column::Text),
                ("city", Column::Text),
                ("state", Column::Text),
                ("date_time", Column::Time),
                ("extra", Column::Text),
            ],
            EventKind::Auction => &[
                ("id", Column::Id),
                ("item_name", Column::Text),
                ("description", Column::Text),
                ("initial_bid", Column::Id),
                ("reserve", Column::Id),
                ("date_time", Column::Time),
                ("expires", Column::Time),
                ("seller", Column::Id),
                ("category", Column::Id),
                ("extra", Column::Text),
            ],
            EventKind::Bid => &[
                ("auction", Column::Id),
                ("bidder", Column::Id),
                ("price", Column::Id),
                ("channel", Column::Text),
                ("url", Column::Text),
                ("date_time", Column::Time),
                ("extra", Column::Text),
            ],
        };
        Arc::new(Schema::new(
            columns.iter().map(|(name, c)| Field::new(*name, c.data_type(), false)).collect::<Vec<_>>(),
        ))
    }
}

#[derive(Clone, Copy)]
enum Column {
    /// Ids, and prices in cents.
    Id,
    /// As VARCHAR is in SQL.
    Text,
    Time,
}

impl Column {
    fn data_type(self) -> DataType {
        match self {
            Column::Id => DataType::Int64,
            Column::Text => DataType::Utf8View,
            Column::Time => DataType::Timestamp(TimeUnit::Microsecond, None),
        }
    }
}

/// Makes the rows of one type.
pub(super) struct Generator {
    kind: EventKind,
    rate: u64,
    base_time: Millis,
    events: EventGenerator,
}

impl Generator {
    pub(super) fn new(kind: EventKind, rate: u64, base_time: Millis) -> Self {
        let config = NexmarkConfig {
            // Times are ours (see `Generator::time`); what is left of the generator's is how long auctions last.
            base_time: 0,
            first_rate: rate as usize,
            next_rate: rate as usize,
            ..Default::default()
        };
        let event_type = match kind {
            EventKind::Person => EventType::Person,
            EventKind::Auction => EventType::Auction,
            EventKind::Bid => EventType::Bid,
        };
        Generator { kind, rate, base_time, events: EventGenerator::new(config).with_type_filter(event_type) }
    }

    /// The wanted columns of the rows numbered `rows` among those of the type.
    pub(super) fn rows(&self, rows: Range<u64>, schema: &SchemaRef, columns: &[usize]) -> Result<RecordBatch> {
        let count = (rows.end - rows.start) as usize;
        if columns.is_empty() {
            return batch_of(schema, vec![], count);
        }
        let times = rows.clone().map(|row| self.time(row)).collect::<Result<Vec<i64>>>()?;
        let events = self.events.clone().with_offset(rows.start).take(count);
        let arrays = match self.kind {
            EventKind::Person => {
                let persons =
                    only(events, |event| if let Event::Person(person) = event { Some(person) } else { None })?;
                columns.iter().map(|column| person_column(*column, &persons, &times)).collect::<Result<_>>()?
            }
            EventKind::Auction => {
                let auctions = only(events, |event| if let Event::Auction(a) = event { Some(a) } else { None })?;
                columns.iter().map(|column| auction_column(*column, &auctions, &times)).collect::<Result<_>>()?
            }
            EventKind::Bid => {
                let bids = only(events, |event| if let Event::Bid(bid) = event { Some(bid) } else { None })?;
                columns.iter().map(|column| bid_column(*column, &bids, &times)).collect::<Result<_>>()?
            }
        };
        batch_of(schema, arrays, count)
    }

    /// When row `row` happens, in microseconds. The generator counts in `f32`, whose steps reach a second after some
    /// billions of events, so the time is computed here from the event's number.
    fn time(&self, row: u64) -> Result<i64> {
        let event = i128::from(self.kind.event_of(row));
        micros(self.base_time, event * 1_000_000 / i128::from(self.rate))
    }
}

fn only<T>(events: impl Iterator<Item = Event>, is: impl Fn(Event) -> Option<T>) -> Result<Vec<T>> {
    let events: Option<Vec<T>> = events.map(is).collect();
    events.ok_or_else(|| Error::internal("the nexmark generator gave an event of another type"))
}

fn person_column(column: usize, rows: &[Person], times: &[i64]) -> Result<ArrayRef> {
    Ok(match column {
        0 => ids(rows, |r| r.id),
        1 => texts(rows, |r| &r.name),
        2 => texts(rows, |r| &r.email_address),
        3 => texts(rows, |r| &r.credit_card),
        4 => texts(rows, |r| &r.city),
        5 => texts(rows, |r| &r.state),
        6 => Arc::new(TimestampMicrosecondArray::from(times.to_vec())),
        7 => texts(rows, |r| &r.extra),
        _ => return Err(no_column(column)),
    })
}

fn auction_column(column: usize, rows: &[Auction], times: &[i64]) -> Result<ArrayRef> {
    Ok(match column {
        0 => ids(rows, |r| r.id),
        1 => texts(rows, |r| &r.item_name),
        2 => texts(rows, |r| &r.description),
        3 => ids(rows, |r| r.initial_bid),
        4 => ids(rows, |r| r.reserve),
        5 => Arc::new(TimestampMicrosecondArray::from(times.to_vec())),
        6 => {
            let lasts = |r: &Auction| i128::from(r.expires.saturating_sub(r.date_time)) * 1000;
            // Half of `micros`: the auction's own time is in microseconds already.
            let expires = rows.iter().zip(times).map(|(r, time)| micros(0, i128::from(*time) + lasts(r)));
            Arc::new(TimestampMicrosecondArray::from(expires.collect::<Result<Vec<_>>>()?))
        }
        7 => ids(rows, |r| r.seller),
        8 => ids(rows, |r| r.category),
        9 => texts(rows, |r| &r.extra),
        _ => return Err(no_column(column)),
    })
}

fn bid_column(column: usize, rows: &[Bid], times: &[i64]) -> Result<ArrayRef> {
    Ok(match column {
        0 => ids(rows, |r| r.auction),
        1 => ids(rows, |r| r.bidder),
        2 => ids(rows, |r| r.price),
        3 => texts(rows, |r| &r.channel),
        4 => texts(rows, |r| &r.url),
        5 => Arc::new(TimestampMicrosecondArray::from(times.to_vec())),
        6 => texts(rows, |r| &r.extra),
        _ => return Err(no_column(column)),
    })
}

/// Ids and prices stay far below 2⁶³: they grow with the event's number, or end at 10⁸.
fn ids<T>(rows: &[T], id: impl Fn(&T) -> usize) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| id(row) as i64)))
}

fn texts<'a, T>(rows: &'a [T], text: impl Fn(&'a T) -> &'a String) -> ArrayRef {
    Arc::new(StringViewArray::from_iter_values(rows.iter().map(text)))
}

fn no_column(column: usize) -> Error {
    Error::internal(format!("a nexmark stream has no column {column}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_agree_with_the_generators_order() {
        // The generator without a filter says which type each event is.
        let config = NexmarkConfig { base_time: 0, first_rate: 10_000, next_rate: 10_000, ..Default::default() };
        let events: Vec<Event> = EventGenerator::new(config).take(333).collect();
        for kind in [EventKind::Person, EventKind::Auction, EventKind::Bid] {
            let is_kind = |event: &Event| match event {
                Event::Person(_) => kind == EventKind::Person,
                Event::Auction(_) => kind == EventKind::Auction,
                Event::Bid(_) => kind == EventKind::Bid,
            };
            for upto in 0..events.len() {
                assert_eq!(kind.rows_by(upto as u64), events[..upto].iter().filter(|e| is_kind(e)).count() as u64);
            }
            let numbers: Vec<u64> = (0..333).filter(|n| is_kind(&events[*n as usize])).collect();
            assert!(numbers.iter().enumerate().all(|(row, n)| kind.event_of(row as u64) == *n));
        }
    }

    #[test]
    fn a_range_equals_sequential_generation() {
        let config = NexmarkConfig { base_time: 0, first_rate: 10_000, next_rate: 10_000, ..Default::default() };
        let bids: Vec<Bid> = EventGenerator::new(config)
            .take(5_000)
            .filter_map(|event| if let Event::Bid(bid) = event { Some(bid) } else { None })
            .collect();
        let generator = Generator::new(EventKind::Bid, 10_000, 0);
        let columns: Vec<usize> = (0..7).collect();
        let found = generator.rows(1_234..2_345, &EventKind::Bid.schema(), &columns).unwrap();
        let times: Vec<i64> = (1_234..2_345).map(|row| generator.time(row).unwrap()).collect();
        for column in columns {
            assert_eq!(found.column(column), &bid_column(column, &bids[1_234..2_345], &times).unwrap());
        }
        // Here the generator's own times are exact, to the millisecond that it rounds to.
        let own = bids[1_234..2_345].iter().map(|bid| bid.date_time as i64);
        assert!(times.iter().zip(own).all(|(time, own)| (time - own * 1000).abs() <= 500));
    }
}
