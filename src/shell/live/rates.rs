//! How much came in each of the last seconds.

use std::collections::VecDeque;
use std::time::Duration;

/// So many seconds are remembered.
const SECONDS: usize = 60;

/// A rate is the mean of so many seconds.
const MEAN: usize = 10;

/// Counts by second, for the last minute.
#[derive(Debug, Clone, Default)]
pub(super) struct Rates {
    counts: VecDeque<u64>,
    /// The second of the last count.
    second: u64,
    /// When the first was counted.
    first: Option<Duration>,
}

impl Rates {
    /// Counts what came at `now`.
    pub(super) fn add(&mut self, now: Duration, count: u64) {
        self.first.get_or_insert(now);
        self.advance(now);
        if let Some(last) = self.counts.back_mut() {
            *last = last.saturating_add(count);
        }
    }

    fn advance(&mut self, now: Duration) {
        let second = now.as_secs();
        if self.counts.is_empty() {
            (self.second, self.counts) = (second, VecDeque::from([0]));
        }
        let steps = second.saturating_sub(self.second);
        for _ in 0..steps.min(SECONDS as u64) {
            self.counts.push_back(0);
        }
        while self.counts.len() > SECONDS {
            self.counts.pop_front();
        }
        self.second = self.second.max(second);
    }

    /// The counts of the last `seconds` seconds that are over, oldest first; of those before the first count nothing is said.
    pub(super) fn over(&self, now: Duration, seconds: usize) -> Vec<f64> {
        let mut seen = self.clone();
        if seen.first.is_none() {
            return Vec::new();
        }
        seen.advance(now);
        let over = seen.counts.len().saturating_sub(1);
        seen.counts.iter().take(over).skip(over.saturating_sub(seconds)).map(|count| *count as f64).collect()
    }

    /// How many a second, lately; `None` before anything is known.
    pub(super) fn a_second(&self, now: Duration) -> Option<f64> {
        let first = self.first?;
        let counts = self.over(now, MEAN);
        if counts.len() >= 2 {
            // The first second was not a whole one.
            let whole = if counts.len() < MEAN { &counts[1..] } else { &counts[..] };
            return Some(whole.iter().sum::<f64>() / whole.len() as f64);
        }
        let elapsed = now.saturating_sub(first).as_secs_f64();
        let total = self.counts.iter().sum::<u64>() as f64;
        (elapsed > 0.0).then(|| total / elapsed.max(0.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn seconds_without_anything_count_as_nothing() {
        let mut rates = Rates::default();
        assert_eq!((rates.a_second(at(0)), rates.over(at(5_000), 60)), (None, vec![]));
        rates.add(at(500), 3);
        rates.add(at(1_200), 10);
        rates.add(at(1_900), 20);
        rates.add(at(4_100), 6);
        assert_eq!(rates.over(at(5_000), 60), [3.0, 30.0, 0.0, 0.0, 6.0]);
        assert_eq!(rates.over(at(5_000), 2), [0.0, 6.0]);
        assert_eq!(rates.a_second(at(5_000)), Some(9.0));
        assert_eq!(rates.a_second(at(200_000)), Some(0.0));
        assert_eq!(rates.over(at(200_000), 100).len(), 59);
    }

    #[test]
    fn a_first_guess_is_made_at_once() {
        let mut rates = Rates::default();
        rates.add(at(100), 50);
        assert_eq!(rates.a_second(at(600)), Some(100.0));
    }

    #[test]
    fn a_clock_that_goes_back_loses_nothing() {
        let mut rates = Rates::default();
        rates.add(at(9_000), 1);
        rates.add(at(3_000), 1);
        assert_eq!(rates.over(at(10_000), 60), [2.0]);
    }
}
