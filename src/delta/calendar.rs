//! Days, weeks, months and years of a calendar in a time zone, as stretches between two instants: a local day has 23 hours where
//! clocks go forward, and 25 where they go back.
//!
//! ```text
//! 1 day in Europe/Berlin   … 2024-03-29T23:00Z | 2024-03-30T23:00Z | 2024-03-31T22:00Z | …
//!                                     24 hours            23 hours
//! ```
//! Instants are microseconds since 1970 in UTC. A stretch begins when the clocks of its zone first show its beginning; where
//! they skip it, with the first instant behind.

use std::fmt;

use chrono::{DateTime, Datelike, FixedOffset, MappedLocalTime, NaiveDate, NaiveDateTime, Offset, TimeDelta, TimeZone};
use chrono_tz::{GapInfo, TZ_VARIANTS, Tz};

use super::time::Unit;
use crate::error::{Code, Error, Result, closest};

/// What a calendar counts in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Count {
    /// From 1970-01-01.
    Days,
    /// From the Monday of the week that 1970-01-01 is in.
    Weeks,
    /// From January 1970; years are twelve of them.
    Months,
}

/// Stretches of so many days, weeks or months, and windows of so many stretches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Calendar {
    pub each: i64,
    pub count: Count,
    /// How many stretches a window has: one begins with each, so they overlap where it is more than one.
    pub stretches: i64,
    /// By how much each begins later, in months; then on the clocks of the zone, in microseconds.
    pub months: i64,
    pub micros: i64,
    pub zone: Zone,
}

/// 1970-01-01 in days since year 0.
const EPOCH: i64 = 719_163;
const DAY: i64 = 86_400_000_000;

impl Calendar {
    /// The newest window that holds an instant: its first one, and the first behind it. `None`: outside the range of dates.
    pub fn bounds(&self, micros: i64) -> Option<(i64, i64)> {
        let (at, start, next) = self.stretch(micros)?;
        let end = if self.stretches == 1 { next } else { self.start(at.checked_add(self.stretches)?)? };
        Some((start, end))
    }

    /// All windows that hold an instant, the newest first.
    pub fn all(&self, micros: i64) -> Option<Vec<(i64, i64)>> {
        let (at, ..) = self.stretch(micros)?;
        let window = |back: i64| {
            let first = at.checked_sub(back)?;
            Some((self.start(first)?, self.start(first.checked_add(self.stretches)?)?))
        };
        (0..self.stretches).map(window).collect()
    }

    /// The number of the stretch that holds an instant, its first one, and that of the next.
    fn stretch(&self, micros: i64) -> Option<(i64, i64, i64)> {
        let local = self.zone.local(micros)?.checked_sub_signed(TimeDelta::microseconds(self.micros))?;
        let mut at = self.number(local.date());
        // Where clocks go back over a beginning, they show a time before it once more.
        let (mut start, mut end) = (self.start(at)?, self.start(at.checked_add(1)?)?);
        while start > micros {
            at -= 1;
            (start, end) = (self.start(at)?, start);
        }
        while end <= micros {
            at += 1;
            (start, end) = (end, self.start(at.checked_add(1)?)?);
        }
        Some((at, start, end))
    }

    /// The same as [`Calendar::bounds`] of a time in another unit, in that unit.
    pub fn bounds_in(&self, time: i64, unit: Unit) -> Option<(i64, i64)> {
        let (start, end) = self.bounds(in_micros(time, unit)?)?;
        Some((from_micros(start, unit)?, from_micros(end, unit)?))
    }

    /// The same as [`Calendar::all`] of a time in another unit, in that unit.
    pub fn all_in(&self, time: i64, unit: Unit) -> Option<Vec<(i64, i64)>> {
        let all = self.all(in_micros(time, unit)?)?;
        all.into_iter().map(|(start, end)| Some((from_micros(start, unit)?, from_micros(end, unit)?))).collect()
    }

    /// The stretches that its windows are put together from.
    pub fn pane(&self) -> Calendar {
        Calendar { stretches: 1, ..*self }
    }

    /// Whether its stretches begin at whole numbers of a unit.
    pub fn fits(&self, unit: Unit) -> bool {
        self.micros % micros_per(unit) == 0 && (unit != Unit::Days || self.zone.is_utc())
    }

    fn number(&self, day: NaiveDate) -> i64 {
        let days = i64::from(day.num_days_from_ce()) - EPOCH;
        match self.count {
            Count::Days => days.div_euclid(self.each),
            Count::Weeks => (days + 3).div_euclid(7 * self.each),
            Count::Months => {
                let months = (i64::from(day.year()) - 1970) * 12 + i64::from(day.month0());
                (months - self.months).div_euclid(self.each)
            }
        }
    }

    fn start(&self, number: i64) -> Option<i64> {
        let from = number.checked_mul(self.each)?;
        let day = |days: i64| NaiveDate::from_num_days_from_ce_opt(i32::try_from(days.checked_add(EPOCH)?).ok()?);
        let first = match self.count {
            Count::Days => day(from)?,
            Count::Weeks => day(from.checked_mul(7)?.checked_sub(3)?)?,
            Count::Months => {
                let months = from.checked_add(self.months)?;
                let year = i32::try_from(months.div_euclid(12).checked_add(1970)?).ok()?;
                NaiveDate::from_ymd_opt(year, months.rem_euclid(12) as u32 + 1, 1)?
            }
        };
        let local = first.and_hms_opt(0, 0, 0)?.checked_add_signed(TimeDelta::microseconds(self.micros))?;
        self.zone.first_instant(local)
    }

    /// Whether the offset is shorter than any of the stretches.
    pub fn offset_fits(&self) -> bool {
        let shortest = match self.count {
            Count::Days => DAY,
            Count::Weeks => 7 * DAY,
            Count::Months => 28 * DAY,
        };
        self.months.saturating_abs().saturating_add(self.micros.saturating_abs() / shortest) < self.each
    }
}

/// `3 months`, `1 week, Europe/Berlin`, `30 days, 1 day, UTC`
impl fmt::Display for Calendar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let length = |each: i64| {
            let (each, name) = match self.count {
                Count::Days => (each, "day"),
                Count::Weeks => (each, "week"),
                Count::Months if each % 12 == 0 => (each / 12, "year"),
                Count::Months => (each, "month"),
            };
            format!("{each} {name}{}", if each == 1 { "" } else { "s" })
        };
        if self.stretches > 1 {
            write!(f, "{}, ", length(self.each.saturating_mul(self.stretches)))?;
        }
        f.write_str(&length(self.each))?;
        // Without a zone months are those of UTC.
        if self.count == Count::Months && self.zone == Zone::UTC { Ok(()) } else { write!(f, ", {}", self.zone) }
    }
}

fn in_micros(time: i64, unit: Unit) -> Option<i64> {
    if unit == Unit::Nanos { Some(time.div_euclid(1_000)) } else { time.checked_mul(micros_per(unit)) }
}

/// Clocks change at whole seconds, and offsets are checked before.
fn from_micros(micros: i64, unit: Unit) -> Option<i64> {
    if unit == Unit::Nanos { micros.checked_mul(1_000) } else { Some(micros.div_euclid(micros_per(unit))) }
}

fn micros_per(unit: Unit) -> i64 {
    match unit {
        Unit::Nanos | Unit::Micros => 1,
        Unit::Millis => 1_000,
        Unit::Seconds => 1_000_000,
        Unit::Days => DAY,
    }
}

/// A time zone: one of the database that the program was built with, or a fixed number of seconds east of UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Zone {
    Named(Tz),
    Fixed(i32),
}

impl Zone {
    pub const UTC: Zone = Zone::Named(Tz::UTC);

    /// Reads `Europe/Berlin`, `UTC`, `+05:30`.
    ///
    /// # Errors
    /// InvalidInput: there is no such zone.
    pub fn parse(text: &str) -> Result<Zone> {
        if let Ok(zone) = text.parse() {
            return Ok(Zone::Named(zone));
        }
        if let Some(seconds) = fixed(text) {
            return Ok(Zone::Fixed(seconds));
        }
        let error = Error::invalid(format!("unknown time zone '{text}'")).coded(Code::OptionValue);
        Err(match closest(text, TZ_VARIANTS.iter().map(|zone| zone.name())) {
            Some(name) => error.help(format!("did you mean {name}?")),
            None => error.help("a name such as 'Europe/Berlin', or '+02:00'"),
        })
    }

    fn is_utc(&self) -> bool {
        matches!(*self, Zone::UTC | Zone::Fixed(0))
    }

    /// What its clocks show.
    fn local(&self, micros: i64) -> Option<NaiveDateTime> {
        let utc = DateTime::from_timestamp_micros(micros)?.naive_utc();
        let offset = match self {
            Zone::Named(zone) => zone.offset_from_utc_datetime(&utc).fix(),
            Zone::Fixed(seconds) => FixedOffset::east_opt(*seconds)?,
        };
        utc.checked_add_offset(offset)
    }

    /// When its clocks first show a time, or the first one behind.
    fn first_instant(&self, local: NaiveDateTime) -> Option<i64> {
        let zone = match self {
            Zone::Named(zone) => zone,
            Zone::Fixed(seconds) => {
                let utc = local.checked_sub_offset(FixedOffset::east_opt(*seconds)?)?;
                return Some(utc.and_utc().timestamp_micros());
            }
        };
        let instant = match zone.from_local_datetime(&local) {
            MappedLocalTime::Single(instant) => instant,
            MappedLocalTime::Ambiguous(one, other) => one.min(other),
            MappedLocalTime::None => GapInfo::new(&local, zone)?.end?,
        };
        Some(instant.timestamp_micros())
    }
}

/// `Europe/Berlin`, `+05:30`
impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Zone::Named(zone) => f.write_str(zone.name()),
            Zone::Fixed(seconds) => {
                let minutes = seconds.abs() / 60;
                write!(f, "{}{:02}:{:02}", if *seconds < 0 { '-' } else { '+' }, minutes / 60, minutes % 60)
            }
        }
    }
}

/// `+hh:mm` in seconds.
fn fixed(text: &str) -> Option<i32> {
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+')?),
    };
    let (hours, minutes) = rest.split_once(':')?;
    let two = |text: &str| (text.len() == 2 && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok())?;
    let (hours, minutes): (i32, i32) = (two(hours)?, two(minutes)?);
    (hours <= 14 && minutes < 60).then_some(sign * (hours * 60 + minutes) * 60)
}

/// How long something lasts from a time on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lasts {
    /// So many units of the time.
    Units(i64),
    /// To the end of the stretch that holds the time.
    Calendar(Calendar),
}

impl Lasts {
    /// It ends where it begins.
    pub const NOTHING: Lasts = Lasts::Units(0);

    /// When what begins at `start` has ended, in the same unit.
    pub fn end(&self, start: i64, unit: Unit) -> i64 {
        match self {
            Lasts::Units(units) => start.saturating_add(*units),
            Lasts::Calendar(calendar) => calendar.bounds_in(start, unit).map_or(i64::MAX, |(_, end)| end),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calendar(each: i64, count: Count, zone: &str) -> Calendar {
        Calendar { each, count, stretches: 1, months: 0, micros: 0, zone: Zone::parse(zone).unwrap() }
    }

    fn micros(text: &str) -> i64 {
        DateTime::parse_from_rfc3339(text).unwrap().timestamp_micros()
    }

    /// The stretch that holds an instant.
    fn holding(calendar: &Calendar, instant: &str) -> String {
        let (start, end) = calendar.bounds(micros(instant)).unwrap();
        let text = |at| DateTime::from_timestamp_micros(at).unwrap().format("%Y-%m-%dT%H:%M:%SZ").to_string();
        format!("{} {}", text(start), text(end))
    }

    #[test]
    fn days_follow_the_clocks() {
        let berlin = calendar(1, Count::Days, "Europe/Berlin");
        for (instant, wanted) in [
            ("2024-03-30T22:59:59Z", "2024-03-29T23:00:00Z 2024-03-30T23:00:00Z"),
            ("2024-03-30T23:00:00Z", "2024-03-30T23:00:00Z 2024-03-31T22:00:00Z"),
            ("2024-03-31T21:59:59Z", "2024-03-30T23:00:00Z 2024-03-31T22:00:00Z"),
            ("2024-10-27T22:59:59Z", "2024-10-26T22:00:00Z 2024-10-27T23:00:00Z"),
            ("1969-12-31T23:30:00Z", "1969-12-31T23:00:00Z 1970-01-01T23:00:00Z"),
            // Before there were zones, Berlin's noon was its own.
            ("1880-01-01T12:00:00Z", "1879-12-31T23:06:32Z 1880-01-01T23:06:32Z"),
        ] {
            assert_eq!(holding(&berlin, instant), wanted, "{instant}");
        }
        let india = calendar(1, Count::Days, "+05:30");
        assert_eq!(holding(&india, "2024-01-01T18:30:00Z"), "2024-01-01T18:30:00Z 2024-01-02T18:30:00Z");
    }

    #[test]
    fn a_midnight_that_is_skipped_or_comes_twice() {
        // 00:00 to 01:00 of the day does not exist.
        let sao_paulo = calendar(1, Count::Days, "America/Sao_Paulo");
        assert_eq!(holding(&sao_paulo, "2018-11-04T02:59:59Z"), "2018-11-03T03:00:00Z 2018-11-04T03:00:00Z");
        assert_eq!(holding(&sao_paulo, "2018-11-04T03:00:00Z"), "2018-11-04T03:00:00Z 2018-11-05T02:00:00Z");
        let beirut = calendar(1, Count::Days, "Asia/Beirut");
        assert_eq!(holding(&beirut, "2022-03-27T12:00:00Z"), "2022-03-26T22:00:00Z 2022-03-27T21:00:00Z");
        // Clocks go back from 01:00 to 00:00: the first of the two midnights begins the day.
        let azores = calendar(1, Count::Days, "Atlantic/Azores");
        assert_eq!(holding(&azores, "2024-10-27T00:30:00Z"), "2024-10-27T00:00:00Z 2024-10-28T01:00:00Z");
        assert_eq!(holding(&azores, "2024-10-27T01:30:00Z"), "2024-10-27T00:00:00Z 2024-10-28T01:00:00Z");
        // From 00:01 back to 23:01: what is shown once more of the day before is behind the beginning.
        let st_johns = calendar(1, Count::Days, "America/St_Johns");
        assert_eq!(holding(&st_johns, "2010-11-07T03:00:00Z"), "2010-11-07T02:30:00Z 2010-11-08T03:30:00Z");
        // A day that never was.
        let apia = calendar(1, Count::Days, "Pacific/Apia");
        assert_eq!(holding(&apia, "2011-12-30T09:59:59Z"), "2011-12-29T10:00:00Z 2011-12-30T10:00:00Z");
        assert_eq!(holding(&apia, "2011-12-30T10:00:00Z"), "2011-12-30T10:00:00Z 2011-12-31T10:00:00Z");
    }

    #[test]
    fn weeks_months_and_years() {
        let weeks = calendar(1, Count::Weeks, "UTC");
        assert_eq!(holding(&weeks, "2024-02-29T12:00:00Z"), "2024-02-26T00:00:00Z 2024-03-04T00:00:00Z");
        assert_eq!(holding(&weeks, "1970-01-01T00:00:00Z"), "1969-12-29T00:00:00Z 1970-01-05T00:00:00Z");
        let quarters = calendar(3, Count::Months, "Europe/Berlin");
        assert_eq!(holding(&quarters, "2024-03-31T21:59:59Z"), "2023-12-31T23:00:00Z 2024-03-31T22:00:00Z");
        assert_eq!(holding(&quarters, "1969-11-11T00:00:00Z"), "1969-09-30T23:00:00Z 1969-12-31T23:00:00Z");
        let years = calendar(12, Count::Months, "UTC");
        assert_eq!(holding(&years, "1968-02-29T00:00:00Z"), "1968-01-01T00:00:00Z 1969-01-01T00:00:00Z");
        assert_eq!((years.to_string(), quarters.to_string()), ("1 year".into(), "3 months, Europe/Berlin".into()));
    }

    #[test]
    fn windows_of_several_stretches_overlap() {
        let rolling = Calendar { stretches: 3, ..calendar(1, Count::Days, "Europe/Berlin") };
        // The day on which clocks go forward is the last, the second and the first of three.
        assert_eq!(holding(&rolling, "2024-03-31T12:00:00Z"), "2024-03-30T23:00:00Z 2024-04-02T22:00:00Z");
        let text = |at: i64| DateTime::from_timestamp_micros(at).unwrap().format("%dT%H").to_string();
        let all = rolling.all(micros("2024-03-31T12:00:00Z")).unwrap();
        let all: Vec<String> = all.into_iter().map(|(start, end)| format!("{} {}", text(start), text(end))).collect();
        assert_eq!(all, ["30T23 02T22", "29T23 01T22", "28T23 31T22"]);
        assert_eq!(rolling.to_string(), "3 days, 1 day, Europe/Berlin");
        assert_eq!(rolling.pane().to_string(), "1 day, Europe/Berlin");
    }

    #[test]
    fn offsets_are_of_the_clocks() {
        let mut shifts = calendar(1, Count::Days, "Europe/Berlin");
        shifts.micros = 6 * 3_600_000_000;
        assert_eq!(holding(&shifts, "2024-03-31T04:00:00Z"), "2024-03-31T04:00:00Z 2024-04-01T04:00:00Z");
        assert_eq!(holding(&shifts, "2024-03-31T03:59:59Z"), "2024-03-30T05:00:00Z 2024-03-31T04:00:00Z");
        let mut fiscal = calendar(12, Count::Months, "UTC");
        fiscal.months = 3;
        assert_eq!(holding(&fiscal, "2024-03-31T00:00:00Z"), "2023-04-01T00:00:00Z 2024-04-01T00:00:00Z");
        fiscal.months = -9;
        assert_eq!(holding(&fiscal, "2024-04-01T00:00:00Z"), "2024-04-01T00:00:00Z 2025-04-01T00:00:00Z");
        assert!(fiscal.offset_fits() && shifts.offset_fits());
        (fiscal.months, shifts.micros) = (12, DAY);
        assert!(!fiscal.offset_fits() && !shifts.offset_fits());
    }

    #[test]
    fn every_instant_is_in_one_stretch_and_none_is_empty() {
        for zone in ["Europe/Berlin", "America/Sao_Paulo", "Asia/Beirut", "Pacific/Apia", "America/St_Johns", "UTC"] {
            for (each, count) in [(1, Count::Days), (2, Count::Weeks), (1, Count::Months)] {
                let calendar = calendar(each, count, zone);
                let (mut at, last) = (micros("1987-01-01T00:00:00Z"), micros("2020-01-01T00:00:00Z"));
                while at < last {
                    let (start, end) = calendar.bounds(at).unwrap();
                    assert!(start < end, "{zone}");
                    for inside in [start, start + (end - start) / 2, end - 1] {
                        assert_eq!(calendar.bounds(inside), Some((start, end)), "{zone} {inside}");
                    }
                    at = end;
                }
            }
        }
    }

    #[test]
    fn the_range_of_dates_ends() {
        let days = calendar(1, Count::Days, "Europe/Berlin");
        assert_eq!((days.bounds(i64::MAX), days.bounds(i64::MIN)), (None, None));
        assert_eq!(Lasts::Calendar(days).end(i64::MAX, Unit::Micros), i64::MAX);
        assert_eq!(Lasts::Calendar(days).end(0, Unit::Seconds), 82_800);
    }

    #[test]
    fn zones_by_name_and_by_offset() {
        assert_eq!(Zone::parse("-03:30").unwrap(), Zone::Fixed(-12_600));
        assert_eq!(Zone::parse("-03:30").unwrap().to_string(), "-03:30");
        let error = Zone::parse("Europe/Berln").unwrap_err();
        assert_eq!(error.to_string(), "unknown time zone 'Europe/Berln'");
        for wrong in ["", "+2", "+25:00", "CEST summer", "europe"] {
            assert!(Zone::parse(wrong).is_err(), "{wrong}");
        }
    }
}
