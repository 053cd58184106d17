//! Which keys may be forgotten when: time → slots.
//!
//! Times lie in buckets of about a second, so that rows which each have a time of their own don't have a bucket each. A key's
//! time may move: its entry in another bucket is then stale, and is told from a valid one by the time that the slot has now;
//! once most entries are stale they are made anew.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::table::Slot;

/// See the module's documentation.
#[derive(Default)]
pub struct ByTime {
    buckets: BTreeMap<i64, Bucket>,
    /// slot → its time.
    times: Vec<i64>,
    /// Slots with a time, and entries of buckets.
    live: usize,
    entries: usize,
}

struct Bucket {
    slots: Vec<Slot>,
    /// No slot has a time before or behind these.
    min: i64,
    max: i64,
}

/// No time: such a slot is never due.
const NEVER: i64 = i64::MAX;

/// Fewer entries are not worth tidying.
const FEW: usize = 4_096;

/// So many buckets are looked at one after the other.
const NEAR: usize = 16;

/// Times that are equal but for so many bits, of microseconds, share a bucket.
const WIDTH: u32 = 20;

fn bucket_of(time: i64) -> i64 {
    time >> WIDTH
}

impl ByTime {
    /// Gives a slot its time.
    #[cfg(test)]
    fn set(&mut self, slot: Slot, time: i64) {
        self.set_all([(slot, time)]);
    }

    /// Gives slots their times.
    pub fn set_all(&mut self, all: impl IntoIterator<Item = (Slot, i64)>) {
        // Rows that come together have times of a few buckets.
        let mut near: Vec<(i64, Bucket)> = Vec::new();
        for (slot, time) in all {
            let at = slot as usize;
            if self.times.len() <= at {
                self.times.resize(at + 1, NEVER);
            }
            let old = std::mem::replace(&mut self.times[at], time);
            if old == time {
                continue;
            }
            self.live -= usize::from(old != NEVER);
            if time == NEVER {
                continue;
            }
            self.live += 1;
            let number = bucket_of(time);
            let found = near.iter().rposition(|(near, _)| *near == number).unwrap_or_else(|| {
                if near.len() == NEAR {
                    self.enter(&mut near);
                }
                near.push((number, Bucket { slots: Vec::new(), min: time, max: time }));
                near.len() - 1
            });
            let bucket = &mut near[found].1;
            (bucket.min, bucket.max) = (bucket.min.min(time), bucket.max.max(time));
            if old == NEVER || bucket_of(old) != number {
                bucket.slots.push(slot);
                self.entries += 1;
            }
        }
        self.enter(&mut near);
        if self.entries > 2 * self.live + FEW {
            self.rebuild();
        }
    }

    /// Puts what has come to the buckets.
    fn enter(&mut self, near: &mut Vec<(i64, Bucket)>) {
        for (number, fresh) in near.drain(..) {
            match self.buckets.entry(number) {
                Entry::Vacant(none) => {
                    none.insert(fresh);
                }
                Entry::Occupied(mut bucket) => {
                    let bucket = bucket.get_mut();
                    (bucket.min, bucket.max) = (bucket.min.min(fresh.min), bucket.max.max(fresh.max));
                    bucket.slots.extend(fresh.slots);
                }
            }
        }
    }

    /// Takes a slot's time away.
    pub fn clear(&mut self, slot: Slot) {
        if let Some(time) = self.times.get_mut(slot as usize) {
            let old = std::mem::replace(time, NEVER);
            self.live -= usize::from(old != NEVER);
        }
    }

    /// The slots whose time is at or before `time`, in order of time.
    pub fn due(&self, time: i64) -> Vec<Slot> {
        let mut due = Vec::new();
        for (at, bucket) in self.buckets.range(..=bucket_of(time)) {
            let first = due.len();
            due.extend(self.valid(*at, bucket).filter(|slot| self.times[*slot as usize] <= time));
            if bucket.min < bucket.max {
                due[first..].sort_unstable_by_key(|slot| (self.times[*slot as usize], *slot));
            }
            // A slot whose time went away and came back is there twice.
            if self.entries > self.live && due.len() - first > 1 {
                if bucket.min == bucket.max {
                    due[first..].sort_unstable();
                }
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

    /// Takes the times away that are at or before `time`, and answers their slots.
    pub fn take_due(&mut self, time: i64) -> Vec<Slot> {
        let mut due = Vec::new();
        let times = &mut self.times;
        for (at, bucket) in self.buckets.range(..=bucket_of(time)) {
            for slot in &bucket.slots {
                let of = &mut times[*slot as usize];
                // Another bucket's, or taken already.
                if is_in(*of, *at) && *of <= time {
                    *of = NEVER;
                    due.push(*slot);
                }
            }
        }
        self.live -= due.len();
        self.pass(time);
        due
    }

    /// Whether a slot has a time.
    pub fn has(&self, slot: Slot) -> bool {
        self.times.get(slot as usize).is_some_and(|time| *time != NEVER)
    }

    /// Whether any slot's time is at or before `time`.
    pub fn any_due(&self, time: i64) -> bool {
        let has = |(at, bucket): (&i64, &Bucket)| {
            bucket.min <= time && self.valid(*at, bucket).any(|slot| self.times[slot as usize] <= time)
        };
        self.buckets.range(..=bucket_of(time)).any(has)
    }

    /// The earliest time that a slot has.
    pub fn first(&self) -> Option<i64> {
        self.buckets.iter().find_map(|(at, bucket)| {
            let mut times = self.valid(*at, bucket).map(|slot| self.times[slot as usize]);
            if bucket.min == bucket.max { times.next() } else { times.min() }
        })
    }

    /// Lets go of the entries up to `time`, whose slots have been cleared.
    pub fn pass(&mut self, time: i64) {
        let rest = self.buckets.split_off(&bucket_of(time));
        let passed = std::mem::replace(&mut self.buckets, rest);
        self.entries -= passed.values().map(|bucket| bucket.slots.len()).sum::<usize>();
        let at = bucket_of(time);
        let Some(bucket) = self.buckets.get_mut(&at) else { return };
        let before = bucket.slots.len();
        let times = &self.times;
        bucket.slots.retain(|slot| is_in(times[*slot as usize], at) && times[*slot as usize] > time);
        bucket.min = bucket.min.max(time.saturating_add(1));
        self.entries -= before - bucket.slots.len();
        if bucket.slots.is_empty() {
            self.buckets.remove(&at);
        }
    }

    /// The slots of a bucket that are in no other.
    fn valid<'a>(&'a self, at: i64, bucket: &'a Bucket) -> impl Iterator<Item = Slot> + 'a {
        bucket.slots.iter().copied().filter(move |slot| is_in(self.times[*slot as usize], at))
    }

    /// Bytes in memory, about.
    pub fn memory(&self) -> usize {
        self.buckets.len() * 72 + self.entries * 4 + self.times.len() * 8
    }

    fn rebuild(&mut self) {
        let times = std::mem::take(&mut self.times);
        *self = ByTime::default();
        self.set_all((0..).zip(times));
    }
}

/// Whether a time is one of a bucket's.
fn is_in(time: i64, bucket: i64) -> bool {
    time != NEVER && bucket_of(time) == bucket
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same steps whether times share buckets or not.
    #[test]
    fn slots_are_due_by_the_time_they_have_now() {
        for second in [1, 1 << WIDTH, 3 << WIDTH] {
            let mut times = ByTime::default();
            for (slot, time) in [(3, 10), (1, 5), (2, 10)] {
                times.set(slot, time * second);
            }
            times.set(7, NEVER);
            assert_eq!(times.due(9 * second), [1]);
            let mut both = times.due(10 * second);
            both.sort_unstable();
            assert_eq!(both, [1, 2, 3]);
            times.set(3, 20 * second);
            times.set(3, 10 * second);
            assert_eq!(times.due(10 * second), [1, 2, 3]);
            assert!(times.has(3) && !times.has(7) && !times.has(9));
            times.clear(1);
            times.clear(9);
            assert!(!times.any_due(9 * second) && times.any_due(10 * second));
            assert_eq!(times.first(), Some(10 * second));
            times.set(1, 30 * second);
            times.clear(2);
            times.clear(3);
            times.pass(10 * second);
            assert_eq!(times.due(i64::MAX - 1), [1]);
            assert_eq!(times.first(), Some(30 * second));
            times.pass(i64::MAX - 1);
            assert_eq!(times.entries, 0);
        }
    }

    #[test]
    fn a_bucket_is_passed_in_part() {
        let mut times = ByTime::default();
        for slot in 0..1_000 {
            times.set(slot, i64::from(999 - slot) - 500);
        }
        assert_eq!(times.due(-499), [999, 998]);
        // A slot whose time went away and came back is taken once.
        times.clear(999);
        times.set(999, -500);
        let mut taken = times.take_due(0);
        taken.sort_unstable();
        assert_eq!(taken, (499..1_000).collect::<Vec<_>>());
        assert_eq!((times.entries, times.live, times.first()), (499, 499, Some(1)));
        assert!(!times.any_due(0) && times.any_due(1));
        assert_eq!(times.due(2), [498, 497]);
    }

    #[test]
    fn a_time_that_moves_for_ever_costs_no_memory() {
        for step in [1, 1 << WIDTH] {
            let mut times = ByTime::default();
            for time in 0..100_000 {
                times.set(0, time * step);
            }
            assert!(times.entries < FEW + 4, "{}", times.entries);
            assert_eq!((times.due(99_998 * step), times.due(99_999 * step)), (vec![], vec![0]));
        }
    }
}
