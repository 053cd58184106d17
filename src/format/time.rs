//! Dates and times as ISO text: the usual spellings fast, the rest as arrow reads them.
//!
//! A text without a zone is UTC, or in the column's own zone where it has one. Digits finer than the column's
//! unit are cut, towards the past.

use arrow::array::timezone::Tz;
use arrow::array::types::{Date32Type, Time64NanosecondType};
use arrow::compute::kernels::cast_utils::{Parser, string_to_datetime};
use arrow::datatypes::TimeUnit;

/// A type of date or time.
#[derive(Debug, Clone, Copy)]
pub enum TimeKind {
    /// `None`: UTC.
    Timestamp(TimeUnit, Option<Tz>),
    /// Days since 1970.
    Date32,
    /// Milliseconds since 1970, whole days.
    Date64,
    /// Since midnight.
    Time(TimeUnit),
}

impl TimeKind {
    /// The value of a text, in the type's own unit; `None` when it is no such text or out of the type's range.
    pub fn parse(self, text: &str) -> Option<i64> {
        if !text.is_ascii() {
            return None;
        }
        match self {
            TimeKind::Timestamp(unit, zone) => timestamp(text, unit, zone),
            TimeKind::Date32 => date(text).map(i64::from),
            TimeKind::Date64 => date(text).map(|days| i64::from(days) * 86_400_000),
            TimeKind::Time(_) if is_leap(text) => None,
            TimeKind::Time(unit) => Some(Time64NanosecondType::parse(text)? / nanos_in(unit)),
        }
    }
}

fn nanos_in(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    }
}

fn timestamp(text: &str, unit: TimeUnit, zone: Option<Tz>) -> Option<i64> {
    let (seconds, nanos) = match (plain(text.as_bytes()), zone) {
        (Some(Plain { seconds, nanos, offset: Some(offset) }), _) => (seconds - i64::from(offset), nanos),
        (Some(Plain { seconds, nanos, offset: None }), None) => (seconds, nanos),
        (_, zone) => by_arrow(text, zone)?,
    };
    let per_second = 1_000_000_000 / nanos_in(unit);
    seconds.checked_mul(per_second)?.checked_add(i64::from(nanos) / nanos_in(unit))
}

fn by_arrow(text: &str, zone: Option<Tz>) -> Option<(i64, u32)> {
    match zone {
        Some(zone) => string_to_datetime(&zone, text).ok().map(|t| (t.timestamp(), t.timestamp_subsec_nanos())),
        None => string_to_datetime(&chrono::Utc, text).ok().map(|t| (t.timestamp(), t.timestamp_subsec_nanos())),
    }
    // A leap second is written with more nanoseconds than a second has. It would be a moment of the next minute.
    .filter(|(_, nanos)| *nanos < 1_000_000_000)
}

/// Whether a time of day has 60 for its seconds.
fn is_leap(time: &str) -> bool {
    time.split(':').nth(2).is_some_and(|seconds| seconds.starts_with("60"))
}

fn date(text: &str) -> Option<i32> {
    match text.as_bytes() {
        bytes if bytes.len() == 10 => plain_days(bytes).and_then(|days| i32::try_from(days).ok()),
        _ => None,
    }
    .or_else(|| Date32Type::parse(text))
}

/// A date and time in the usual spelling, as if in UTC, and the offset that it states, in seconds.
struct Plain {
    seconds: i64,
    nanos: u32,
    offset: Option<i32>,
}

/// `YYYY-MM-DD[T ]HH:MM:SS[.fraction][Z|±HH[:]MM]`
fn plain(text: &[u8]) -> Option<Plain> {
    let days = plain_days(text.get(..10)?)?;
    let clock = text.get(10..19)?;
    if !matches!(clock[0], b'T' | b't' | b' ') || clock[3] != b':' || clock[6] != b':' {
        return None;
    }
    let (hour, minute, second) = (two(&clock[1..])?, two(&clock[4..])?, two(&clock[7..])?);
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let (nanos, zone) = fraction(&text[19..])?;
    let seconds = days * 86_400 + i64::from(hour) * 3_600 + i64::from(minute) * 60 + i64::from(second);
    Some(Plain { seconds, nanos, offset: offset(zone)? })
}

/// `.123456789` at the front, and what follows it.
fn fraction(text: &[u8]) -> Option<(u32, &[u8])> {
    let Some(digits) = text.strip_prefix(b".") else { return Some((0, text)) };
    let length = digits.iter().take_while(|b| b.is_ascii_digit()).count();
    if length == 0 {
        return None;
    }
    let padded = digits[..length].iter().chain([b'0'; 9].iter()).take(9);
    let nanos = padded.fold(0, |nanos, digit| nanos * 10 + u32::from(digit - b'0'));
    Some((nanos, &digits[length..]))
}

/// The offset a text ends with, in seconds: `Some(None)` when it states none, `None` when it is unusual.
fn offset(zone: &[u8]) -> Option<Option<i32>> {
    let (sign, hours, minutes) = match zone {
        [] => return Some(None),
        [b'Z' | b'z'] => return Some(Some(0)),
        [sign, hours @ .., b':', m1, m2] if hours.len() == 2 => (*sign, two(hours)?, two(&[*m1, *m2])?),
        [sign, h1, h2, m1, m2] => (*sign, two(&[*h1, *h2])?, two(&[*m1, *m2])?),
        _ => return None,
    };
    let seconds = i32::try_from(hours * 3_600 + minutes * 60).ok().filter(|_| hours < 24 && minutes < 60)?;
    match sign {
        b'+' => Some(Some(seconds)),
        b'-' => Some(Some(-seconds)),
        _ => None,
    }
}

fn two(text: &[u8]) -> Option<u32> {
    match text {
        [a @ b'0'..=b'9', b @ b'0'..=b'9', ..] => Some(u32::from(a - b'0') * 10 + u32::from(b - b'0')),
        _ => None,
    }
}

/// Days since 1970 of `YYYY-MM-DD`.
fn plain_days(text: &[u8]) -> Option<i64> {
    if text[4] != b'-' || text[7] != b'-' {
        return None;
    }
    let year = two(text)? * 100 + two(&text[2..])?;
    let (month, day) = (two(&text[5..])?, two(&text[8..])?);
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let last = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 => 28 + u32::from(leap),
        _ => return None,
    };
    if day == 0 || day > last {
        return None;
    }
    // Years counted from March, so that the leap day is the last of its year.
    let from_march = (i64::from(month) + 9) % 12;
    let years = i64::from(year) - i64::from(month <= 2);
    let day_of_year = (153 * from_march + 2) / 5 + i64::from(day) - 1;
    let leap_days = years.div_euclid(4) - years.div_euclid(100) + years.div_euclid(400);
    Some(years * 365 + leap_days + day_of_year - 719_468)
}

/// Whether a text looks like an ISO timestamp: the inference of TIMESTAMP.
pub fn looks_like_timestamp(text: &str) -> bool {
    text.len() >= 16
        && matches!(text.as_bytes()[10], b'T' | b't' | b' ')
        && TimeKind::Timestamp(TimeUnit::Microsecond, None).parse(text).is_some()
}

/// Whether a text looks like `YYYY-MM-DD`.
pub fn looks_like_date(text: &str) -> bool {
    text.len() == 10 && text.is_ascii() && plain_days(text.as_bytes()).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MICROS: TimeKind = TimeKind::Timestamp(TimeUnit::Microsecond, None);

    #[test]
    fn days_agree_with_arrow_over_four_centuries_and_more() {
        for days in (-719_162..120_000).step_by(13) {
            let text =
                chrono::DateTime::from_timestamp(i64::from(days) * 86_400, 0).map(|t| t.format("%Y-%m-%d").to_string());
            let text = text.unwrap_or_default();
            assert_eq!(date(&text), Some(days), "{text}");
            assert_eq!(date(&text), Date32Type::parse(&text), "{text}");
        }
    }

    #[test]
    fn the_usual_spellings_are_the_same_moment() {
        for text in [
            "2024-02-29T12:34:56.789012Z",
            "2024-02-29 12:34:56.789012",
            "2024-02-29T14:34:56.789012+02:00",
            "2024-02-29T14:34:56.789012+0200",
            "2024-02-29 07:04:56.789012-05:30",
            "2024-02-29 12:34:56.789012999",
            "2024-02-29 12:34:56.7890129999999Z",
        ] {
            assert_eq!(MICROS.parse(text), Some(1_709_210_096_789_012), "{text}");
        }
    }

    #[test]
    fn units_cut_towards_the_past() {
        let text = "1969-12-31T23:59:59.9999";
        assert_eq!(TimeKind::Timestamp(TimeUnit::Second, None).parse(text), Some(-1));
        assert_eq!(TimeKind::Timestamp(TimeUnit::Millisecond, None).parse(text), Some(-1));
        assert_eq!(TimeKind::Timestamp(TimeUnit::Nanosecond, None).parse(text), Some(-100_000));
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "2024-02-30T00:00:00",
            "2024-13-01T00:00:00",
            "2024-01-01T24:00:00",
            "2024-01-01T00:60:00",
            "2024-01-01T23:59:60",
            "2024-01-01 23:59:60.5Z",
            "2024-01-01T23:59:60+02:00",
            "1704067200000",
            "2024-01-01T00:00:00.",
            "2024-01-01T00:00:00+25:00",
            "2024-01-01X00:00:00",
            "2024-01-01T00:00:00é",
            "yesterday..",
        ] {
            assert_eq!(MICROS.parse(text), None, "{text}");
        }
        assert_eq!(TimeKind::Timestamp(TimeUnit::Nanosecond, None).parse("2300-01-01T00:00:00"), None);
        assert_eq!(TimeKind::Date32.parse("2023-02-29"), None);
    }

    #[test]
    fn a_text_without_zone_is_in_the_columns_zone() {
        let zone: Tz = "+02:00".parse().unwrap_or_else(|e| panic!("{e}"));
        let kind = TimeKind::Timestamp(TimeUnit::Second, Some(zone));
        assert_eq!(kind.parse("1970-01-01T02:00:00"), Some(0));
        assert_eq!(kind.parse("1970-01-01T02:00:00Z"), Some(7_200));
    }

    #[test]
    fn times_of_day() {
        assert_eq!(TimeKind::Time(TimeUnit::Microsecond).parse("01:00:00.5"), Some(3_600_500_000));
        for text in ["25:00:00", "23:59:60", "12:00:60.5", "12:00:61"] {
            assert_eq!(TimeKind::Time(TimeUnit::Second).parse(text), None, "{text}");
        }
    }
}
