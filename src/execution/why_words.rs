//! The words of EXPLAIN WHY: numbers, times, operators and watermarks as a sentence names them.

use chrono::{DateTime, SecondsFormat};

use super::why::{Facts, Mark, OperatorFacts};
use crate::planner::interval_text;

impl OperatorFacts {
    /// What ends at `due`.
    pub(super) fn what(&self, due: i64) -> String {
        let what = match (self.is_join, self.windows) {
            _ if self.of_rows => return format!("the next row of {}, final at {},", self.name, micros(due)),
            (true, _) => {
                return format!("the next row of {} that may have no partner, final at {},", self.name, micros(due));
            }
            (false, true) => "window",
            (false, false) => "group",
        };
        format!("the next {what} of {}, which ends at {},", self.name, micros(due))
    }

    /// The query's watermark that makes it final.
    pub(super) fn needed(&self, due: i64) -> i64 {
        let millis = due.div_euclid(1_000) + i64::from(due.rem_euclid(1_000) != 0);
        millis.saturating_add(self.lag)
    }

    pub(super) fn next_text(&self, facts: &Facts) -> Option<String> {
        let due = self.next_due.filter(|due| *due != i64::MAX)?;
        let needed = self.needed(due);
        let closes = match facts.watermark.is_some_and(|at| at >= needed) {
            true => "it is due".to_string(),
            false => format!("closed by {}", facts.closing(needed)),
        };
        Some(format!("what ends at {}; {closes}", micros(due)))
    }
}

impl Mark {
    pub(super) fn text(&self, facts: &Facts) -> String {
        let standing = &self.standing;
        let mut text = match standing.current {
            Some(at) => {
                let largest = at.saturating_mul(1_000).saturating_add(standing.delay);
                format!("{}, {} behind {}", instant(at), interval_text(standing.delay), micros(largest))
            }
            None => format!("-, {}", self.missing(facts)),
        };
        if standing.idle {
            text.push_str("; idle: it holds no other");
        }
        text
    }

    /// Why it has none.
    pub(super) fn missing(&self, facts: &Facts) -> String {
        let (read, input, column) = (facts.read_of(&self.input), &self.input, &self.column);
        let at = facts.marks.iter().position(|mark| std::ptr::eq(mark, self));
        let future = at.and_then(|n| facts.tally.run.times.get(n)).map_or(0, |times| times.future_rows);
        match (read, future, self.skew) {
            (0, ..) => format!("no row of {input} was ever seen"),
            (_, 1.., Some(skew)) => format!(
                "{} of {input} came more than {} ahead of the clock (MAX FUTURE SKEW); it is {} now",
                count(future, "row"),
                interval_text(skew),
                instant(facts.clock)
            ),
            _ => format!("none of the {} read from {input} has a time in {column}", count(read, "row")),
        }
    }

    /// How an input that is silent stops holding the others.
    pub(super) fn way_out(&self) -> String {
        match self.standing.idle_after {
            Some(after) => format!(
                "silent for {}, it lets go after {} (IDLE AFTER)",
                interval_text(self.standing.silent.saturating_mul(1_000)),
                interval_text(after.saturating_mul(1_000))
            ),
            None => "IDLE AFTER in its WATERMARK clause would let go of it while it is silent".into(),
        }
    }
}

/// `1 row`, `2 rows`
pub(super) fn count(n: u64, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// `all 3 rows`, `2 of 3 rows`
pub(super) fn all(n: u64, of: u64) -> String {
    if n >= of {
        if n == 1 { "the one row".into() } else { format!("all {n} rows") }
    } else {
        format!("{n} of {} rows", of)
    }
}

/// `all 3 rows were`, `1 of 3 rows was`
pub(super) fn were(n: u64, of: u64) -> String {
    format!("{} {}", all(n, of), if n == 1 { "was" } else { "were" })
}

/// Milliseconds as ISO 8601 in UTC.
pub(super) fn instant(millis: i64) -> String {
    micros(millis.saturating_mul(1_000))
}

pub(super) fn micros(micros: i64) -> String {
    match DateTime::from_timestamp_micros(micros) {
        Some(time) => time.to_rfc3339_opts(SecondsFormat::AutoSi, true),
        None => format!("{micros} µs"),
    }
}
