//! Numbers as they are read at a glance.

use std::time::Duration;

/// `7`, `999`, `1.04k`, `12.5M`
pub(in crate::shell) fn count(number: f64) -> String {
    scaled(number, &["", "k", "M", "G", "T", "P", "E"])
}

/// `512 B`, `2.1 kB`
pub(in crate::shell) fn bytes(number: u64) -> String {
    scaled(number as f64, &[" B", " kB", " MB", " GB", " TB", " PB", " EB"])
}

/// Three digits and a unit.
fn scaled(number: f64, units: &[&str]) -> String {
    let mut value = number;
    let mut unit = 0;
    // 999.5 would be written 1000.
    while value.abs() >= 999.5 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    let digits = match value.abs() {
        _ if unit == 0 && value.fract() == 0.0 => 0,
        size if size >= 99.95 => 0,
        size if size >= 9.995 => 1,
        _ if unit == 0 => 1,
        _ => 2,
    };
    format!("{value:.digits$}{}", units[unit])
}

/// `00:03:12`
pub(super) fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// `12 ms`, `5 s`, `5.2 s`, `3 min 12 s`, `2 h 5 min`, `3 d 4 h`
pub(super) fn span(millis: i64) -> String {
    let seconds = millis / 1000;
    match millis {
        ..1_000 => format!("{millis} ms"),
        1_000..60_000 if millis % 1000 < 100 => format!("{seconds} s"),
        1_000..60_000 => format!("{}.{} s", seconds, millis % 1000 / 100),
        60_000..3_600_000 => format!("{} min {} s", seconds / 60, seconds % 60),
        3_600_000..86_400_000 => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds / 3600 % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_are_enough() {
        for (number, text) in [
            (0.0, "0"),
            (7.0, "7"),
            (2.5, "2.5"),
            (999.0, "999"),
            (999.6, "1.00k"),
            (1040.0, "1.04k"),
            (12_500.0, "12.5k"),
            (123_456_789.0, "123M"),
            (1e30, "1000000000000E"),
        ] {
            assert_eq!(count(number), text, "{number}");
        }
        assert_eq!((bytes(512), bytes(2_100), bytes(u64::MAX)), ("512 B".into(), "2.10 kB".into(), "18.4 EB".into()));
    }

    #[test]
    fn times_are_read_at_a_glance() {
        assert_eq!(clock(Duration::from_secs(192)), "00:03:12");
        assert_eq!(clock(Duration::from_secs(360_000)), "100:00:00");
        for (millis, text) in [
            (12, "12 ms"),
            (5_000, "5 s"),
            (5_250, "5.2 s"),
            (192_000, "3 min 12 s"),
            (7_500_000, "2 h 5 min"),
            (273_600_000, "3 d 4 h"),
        ] {
            assert_eq!(span(millis), text, "{millis}");
        }
    }
}
