//! The watermark of a query: one for each watermarked input, and one made of them by the policy.
//!
//! It moves only between batches, never back, and is undefined until a row with a time was seen (rules W1 to W4 and
//! semantics, "Start of a watermark").

use std::collections::BTreeMap;

use crate::checkpoint::CommitEntry;
use crate::incremental::{BatchCell, WatermarkInput};

/// The watermarks of one query, in milliseconds.
#[derive(Debug, Clone)]
pub struct Watermarks {
    max_policy: bool,
    inputs: Vec<InputWatermark>,
    query: Option<i64>,
}

#[derive(Debug, Clone)]
struct InputWatermark {
    name: String,
    delay_micros: i64,
    idle_after_millis: Option<i64>,
    current: Option<i64>,
    /// The query's clock when a row was last seen.
    seen_at: i64,
}

impl InputWatermark {
    /// It no longer holds the others.
    fn is_idle(&self, now: i64) -> bool {
        self.idle_after_millis.is_some_and(|after| now.saturating_sub(self.seen_at) >= after)
    }
}

/// One input's watermark, for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// Microseconds.
    pub delay: i64,
    /// Milliseconds, as all that follow.
    pub idle_after: Option<i64>,
    pub current: Option<i64>,
    /// For how long no row has come.
    pub silent: i64,
    pub idle: bool,
}

impl Watermarks {
    /// All undefined; `now` is when the query starts.
    pub fn new(inputs: &[WatermarkInput], max_policy: bool, now: i64) -> Self {
        let mut names: BTreeMap<&str, usize> = BTreeMap::new();
        let mut list = Vec::new();
        for input in inputs {
            let n = names.entry(&input.name).and_modify(|n| *n += 1).or_insert(1);
            list.push(InputWatermark {
                name: if *n == 1 { input.name.clone() } else { format!("{}/{n}", input.name) },
                delay_micros: input.spec.delay,
                idle_after_millis: input.spec.idle_after.map(|i| i / 1_000),
                current: None,
                seen_at: now,
            });
        }
        Watermarks { max_policy, inputs: list, query: None }
    }

    /// Takes up what a log holds, at `now`. The time in which no query ran is no silence of its inputs.
    pub fn restore(&mut self, log: &CommitEntry, now: i64) {
        for input in &mut self.inputs {
            input.current = log.watermarks.get(&input.name).copied();
            input.seen_at = now.saturating_sub(log.silent.get(&input.name).copied().unwrap_or(0));
        }
        self.query = log.watermark;
    }

    /// The query did not run for so long: that is no silence of its inputs.
    pub fn shift(&mut self, millis: i64) {
        for input in &mut self.inputs {
            input.seen_at = input.seen_at.saturating_add(millis);
        }
    }

    /// For how long those inputs have had no row that may become idle, for the logs; those that just had some are absent.
    pub fn silent(&self, now: i64) -> BTreeMap<String, i64> {
        let silent = |i: &InputWatermark| (i.name.clone(), now.saturating_sub(i.seen_at));
        let may = self.inputs.iter().filter(|i| i.idle_after_millis.is_some());
        may.map(silent).filter(|(_, millis)| *millis > 0).collect()
    }

    /// After a batch at `now`: what its rows move.
    pub fn advance(&mut self, cell: &BatchCell, now: i64) {
        for (n, input) in self.inputs.iter_mut().enumerate() {
            let stats = cell.stats(n);
            if stats.rows > 0 || stats.future_rows > 0 {
                input.seen_at = now;
            }
            if let Some(max) = stats.max {
                let candidate = max.saturating_mul(1_000).saturating_sub(input.delay_micros).div_euclid(1_000);
                input.current = Some(input.current.map_or(candidate, |current| current.max(candidate)));
            }
        }
        self.settle(now);
    }

    /// Lets time pass: an input that has been idle for long enough no longer holds the others.
    pub fn settle(&mut self, now: i64) {
        let of_policy =
            if self.max_policy { self.inputs.iter().filter_map(|i| i.current).max() } else { self.minimum(now) };
        self.query = self.query.max(of_policy);
    }

    fn minimum(&self, now: i64) -> Option<i64> {
        let mut waiting = self.inputs.iter().filter(|i| !i.is_idle(now)).peekable();
        if waiting.peek().is_none() {
            return self.inputs.iter().filter_map(|i| i.current).max();
        }
        // An input that was never seen holds the others: there is no minimum yet.
        waiting.map(|i| i.current).collect::<Option<Vec<i64>>>()?.into_iter().min()
    }

    /// Whether the largest of the inputs' watermarks counts.
    pub fn takes_largest(&self) -> bool {
        self.max_policy
    }

    /// Each input as it stands at `now`.
    pub fn standings(&self, now: i64) -> Vec<Standing> {
        let of = |i: &InputWatermark| Standing {
            delay: i.delay_micros,
            idle_after: i.idle_after_millis,
            current: i.current,
            silent: now.saturating_sub(i.seen_at),
            idle: i.is_idle(now),
        };
        self.inputs.iter().map(of).collect()
    }

    /// The query's watermark.
    pub fn query(&self) -> Option<i64> {
        self.query
    }

    /// Each input's own, for the logs; undefined ones are absent.
    pub fn by_input(&self) -> BTreeMap<String, i64> {
        self.inputs.iter().filter_map(|i| Some((i.name.clone(), i.current?))).collect()
    }
}
