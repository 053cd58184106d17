//! Which keys may be forgotten when: time → slots.
//!
//! A key's time may move. The entry under its old time is then stale, and is told from a valid one by the time that the
//! slot has now; once most entries are stale they are made anew.

use std::collections::BTreeMap;

use super::table::Slot;

/// See the module's documentation.
#[derive(Default)]
pub struct ByTime {
    buckets: BTreeMap<i64, Vec<Slot>>,
    /// slot → its time.
    times: Vec<i64>,
    /// Slots with a time, and entries of buckets.
    live: usize,
    entries: usize,
}

/// No time: such a slot is never due.
const NEVER: i64 = i64::MAX;

/// Fewer entries are not worth tidying.
const FEW: usize = 4_096;

impl ByTime {
    /// Gives a slot its time.
    pub fn set(&mut self, slot: Slot, time: i64) {
        let at = slot as usize;
        if self.times.len() <= at {
            self.times.resize(at + 1, NEVER);
        }
        let old = std::mem::replace(&mut self.times[at], time);
        if old == time {
            return;
        }
        self.live -= usize::from(old != NEVER);
        if time != NEVER {
            self.live += 1;
            self.entries += 1;
            self.buckets.entry(time).or_default().push(slot);
        }
        if self.entries > 2 * self.live + FEW {
            self.rebuild();
        }
    }

    /// Takes a slot's time away.
    pub fn clear(&mut self, slot: Slot) {
        if (slot as usize) < self.times.len() {
            self.set(slot, NEVER);
        }
    }

    /// Forgets all times.
    pub fn clear_all(&mut self) {
        *self = ByTime::default();
    }

    /// The slots whose time is at or before `time`, in order of time.
    pub fn due(&self, time: i64) -> Vec<Slot> {
        let mut due = Vec::new();
        for (at, slots) in self.buckets.range(..=time) {
            let first = due.len();
            due.extend(slots.iter().copied().filter(|slot| self.times[*slot as usize] == *at));
            // A slot whose time went away and came back is there twice.
            if self.entries > self.live && due.len() - first > 1 {
                due[first..].sort_unstable();
                let mut kept = first + 1;
                for at in first + 1..due.len() {
                    if due[at] != due[kept - 1] {
                        due[kept] = due[at];
                        kept += 1;
                    }
                }
                due.truncate(kept);
            }
        }
        due
    }

    /// Whether any slot's time is at or before `time`.
    pub fn any_due(&self, time: i64) -> bool {
        self.buckets.range(..=time).any(|(at, slots)| slots.iter().any(|slot| self.times[*slot as usize] == *at))
    }

    /// The earliest time that a slot has.
    pub fn first(&self) -> Option<i64> {
        let has = |(at, slots): &(&i64, &Vec<Slot>)| slots.iter().any(|slot| self.times[*slot as usize] == **at);
        self.buckets.iter().find(has).map(|(at, _)| *at)
    }

    /// Lets go of the entries up to `time`, whose slots have been cleared.
    pub fn pass(&mut self, time: i64) {
        let rest = match time.checked_add(1) {
            Some(next) => self.buckets.split_off(&next),
            None => BTreeMap::new(),
        };
        let passed = std::mem::replace(&mut self.buckets, rest);
        self.entries -= passed.values().map(Vec::len).sum::<usize>();
    }

    /// Bytes in memory, about.
    pub fn memory(&self) -> usize {
        self.buckets.len() * 48 + self.entries * 4 + self.times.len() * 8
    }

    fn rebuild(&mut self) {
        self.buckets.clear();
        for (slot, time) in self.times.iter().enumerate().filter(|(_, time)| **time != NEVER) {
            self.buckets.entry(*time).or_default().push(slot as Slot);
        }
        self.entries = self.live;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_due_by_the_time_they_have_now() {
        let mut times = ByTime::default();
        for (slot, time) in [(3, 10), (1, 5), (2, 10), (7, NEVER)] {
            times.set(slot, time);
        }
        assert_eq!(times.due(9), [1]);
        assert_eq!(times.due(10), [1, 3, 2]);
        times.set(3, 20);
        times.set(3, 10);
        assert_eq!(times.due(10), [1, 2, 3]);
        times.clear(1);
        times.clear(9);
        assert!(!times.any_due(9) && times.any_due(10));
        assert_eq!(times.first(), Some(10));
        times.set(1, 30);
        times.clear(2);
        times.clear(3);
        times.pass(10);
        assert_eq!((times.due(i64::MAX - 1), times.entries), (vec![1], 2));
        assert_eq!(times.first(), Some(30));
    }

    #[test]
    fn a_time_that_moves_for_ever_costs_no_memory() {
        let mut times = ByTime::default();
        for time in 0..100_000 {
            times.set(0, time);
        }
        assert!(times.entries < FEW + 4, "{}", times.entries);
        assert_eq!((times.due(99_998), times.due(99_999)), (vec![], vec![0]));
    }
}
