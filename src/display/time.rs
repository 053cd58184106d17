//! Timestamps and dates as ISO 8601 text, over the whole range of their 64 bits.
//!
//! chrono ends 262,000 years from now, and a timestamp of ours need not: a far time in the data must be shown, not
//! fail the result.

use std::fmt::Write;

use arrow::datatypes::TimeUnit;

const SECONDS_A_DAY: i64 = 86_400;

/// Appends `2026-01-01T00:05:00`, with a fraction of 3, 6 or 9 digits only when it is not zero. `offset`: seconds
/// east of UTC of a time with a zone, written as `Z` or `+02:00` behind it.
pub(super) fn write_timestamp(value: i64, unit: &TimeUnit, offset: Option<i32>, out: &mut String) {
    let per_second = match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    };
    // Saturation is reached only by whole seconds at the very ends of 64 bits.
    let seconds = value.div_euclid(per_second).saturating_add(i64::from(offset.unwrap_or(0)));
    let nanos = value.rem_euclid(per_second) * (1_000_000_000 / per_second);
    write_date(seconds.div_euclid(SECONDS_A_DAY), out);
    let second = seconds.rem_euclid(SECONDS_A_DAY);
    for (before, number) in [('T', second / 3600), (':', second / 60 % 60), (':', second % 60)] {
        out.push(before);
        digits(number, 2, out);
    }
    write_fraction(nanos, out);
    match offset {
        None => {}
        Some(0) => out.push('Z'),
        Some(offset) => {
            let minutes = offset.abs() / 60;
            _ = write!(out, "{}{:02}:{:02}", if offset < 0 { '-' } else { '+' }, minutes / 60, minutes % 60);
        }
    }
}

/// Appends `2026-01-01` for a number of days since 1970. Years outside 0 to 9999 carry a sign.
pub(super) fn write_date(days: i64, out: &mut String) {
    let (year, month, day) = civil(days);
    match year {
        0..=9999 => digits(year, 4, out),
        _ => _ = write!(out, "{year:+05}"),
    }
    for number in [month, day] {
        out.push('-');
        digits(number, 2, out);
    }
}

fn write_fraction(nanos: i64, out: &mut String) {
    let (number, width) = match nanos {
        0 => return,
        n if n % 1_000_000 == 0 => (n / 1_000_000, 3),
        n if n % 1_000 == 0 => (n / 1_000, 6),
        n => (n, 9),
    };
    out.push('.');
    digits(number, width, out);
}

/// The last digits of a number that is not negative: what `{:0width$}` writes of one that has no more, several times as fast.
fn digits(number: i64, width: u32, out: &mut String) {
    for place in (0..width).rev() {
        let digit = number / 10i64.pow(place) % 10;
        out.push(char::from(b'0' + digit.unsigned_abs() as u8));
    }
}

/// Days since 1970-01-01 → year, month, day in the proleptic Gregorian calendar, counted in eras of 400 years that
/// begin on 1 March, so that the leap day is the last of its year.
fn civil(days: i64) -> (i64, i64, i64) {
    const ERA: i64 = 146_097;
    let from_march_of_0 = days + 719_468;
    let (era, day) = (from_march_of_0.div_euclid(ERA), from_march_of_0.rem_euclid(ERA));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month + 2) / 5 + 1;
    let calendar_month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + i64::from(calendar_month <= 2), calendar_month, day_of_month)
}

#[cfg(test)]
mod tests {
    use super::*;
    use TimeUnit::*;

    fn timestamp(value: i64, unit: TimeUnit, offset: Option<i32>) -> String {
        let mut out = String::new();
        write_timestamp(value, &unit, offset, &mut out);
        out
    }

    #[test]
    fn the_fraction_is_shown_when_it_is_not_zero() {
        assert_eq!(timestamp(1_767_225_900, Second, None), "2026-01-01T00:05:00");
        assert_eq!(timestamp(1_767_225_900_000_000, Microsecond, None), "2026-01-01T00:05:00");
        assert_eq!(timestamp(1_767_225_900_500, Millisecond, None), "2026-01-01T00:05:00.500");
        assert_eq!(timestamp(1_767_225_900_000_001, Microsecond, None), "2026-01-01T00:05:00.000001");
        assert_eq!(timestamp(-1, Nanosecond, None), "1969-12-31T23:59:59.999999999");
    }

    #[test]
    fn a_zone_is_shown_behind() {
        assert_eq!(timestamp(0, Second, Some(0)), "1970-01-01T00:00:00Z");
        assert_eq!(timestamp(0, Second, Some(7200)), "1970-01-01T02:00:00+02:00");
        assert_eq!(timestamp(0, Second, Some(-12_600)), "1969-12-31T20:30:00-03:30");
    }

    #[test]
    fn the_ends_of_64_bits_are_shown() {
        assert_eq!(timestamp(i64::MAX, Microsecond, None), "+294247-01-10T04:00:54.775807");
        assert_eq!(timestamp(i64::MIN, Microsecond, None), "-290308-12-21T19:59:05.224192");
        assert!(timestamp(i64::MAX, Second, Some(7200)).starts_with("+292277026596-12-04T"));
        assert!(timestamp(i64::MIN, Second, None).starts_with("-292277022657-01-27T"));
    }

    #[test]
    fn days_agree_with_chrono() {
        let epoch = chrono::NaiveDate::from_ymd_opt(1970, 1, 1).unwrap();
        for days in (-800_000..800_000).step_by(97).chain(-800..800).chain([11_016, 11_015, 19_782, 19_783]) {
            let mut out = String::new();
            write_date(days, &mut out);
            assert_eq!(out, (epoch + chrono::Duration::days(days)).to_string(), "{days}");
        }
    }
}
