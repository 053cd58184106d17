//! The rows of an OVER by their partitions, in order: which are given out, which wait.

use std::collections::{BTreeMap, HashMap};

use crate::delta::time::{Unit, micros_ceil};
use crate::state::Slot;

/// A row in its partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The time that rows are ordered by, in its own unit; 0 where they are not.
    pub time: i64,
    /// What they are ordered by behind it, as bytes.
    pub by: Box<[u8]>,
    /// Rows that are equal in all of this come as they came.
    pub number: i64,
    pub slot: Slot,
}

impl Entry {
    /// Whether two rows have one place in the order.
    pub fn is_peer(&self, other: &Entry) -> bool {
        self.time == other.time && self.by == other.by
    }
}

/// When the rows of an OVER are final.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Final {
    /// With their partition.
    AtItsEnd,
    /// When the watermark has passed their time, and so much more.
    ByTime {
        unit: Unit,
        /// What a time's end is behind it, in its unit.
        size: i64,
        /// How long behind that, in its unit, and how many rows must follow.
        wait: i64,
        rows: u64,
    },
}

/// What frames of rows to come reach back to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reach {
    /// The first and the last rows of a partition.
    pub first: usize,
    pub last: usize,
    /// Rows whose time is within so much before the watermark, in its unit.
    pub within: Option<i64>,
}

/// One partition.
#[derive(Debug, Default)]
pub struct Partition {
    pub key: Box<[u8]>,
    /// When the watermark ends it, in microseconds; `i64::MAX`: never.
    pub end: i64,
    /// In their order, as soon as they are sorted.
    pub rows: Vec<Entry>,
    sorted: bool,
    /// How many of them were given out.
    pub done: usize,
    /// The next number of each time that rows may still come for.
    next: BTreeMap<i64, i64>,
    /// When it is to be looked at again, whether or not a row is due.
    wake: i64,
}

/// Which of a partition's rows are final: the first of `settled` can be seen by others, the first of `ready` are final.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    pub settled: usize,
    pub ready: usize,
    /// The partition has ended.
    pub ended: bool,
}

impl Partition {
    /// Puts rows that came in their place.
    pub fn sort(&mut self) {
        if !std::mem::replace(&mut self.sorted, true) {
            let order = |a: &Entry, b: &Entry| (a.time, &a.by, a.number).cmp(&(b.time, &b.by, b.number));
            self.rows[self.done..].sort_unstable_by(order);
        }
    }

    /// What a watermark makes of its rows, which are sorted.
    pub fn standing(&self, until: i64, by: Final) -> Standing {
        let all = self.rows.len();
        if until == i64::MAX || self.end <= until {
            return Standing { settled: all, ready: all, ended: true };
        }
        let Final::ByTime { unit, size, wait, rows } = by else {
            return Standing { settled: 0, ready: 0, ended: false };
        };
        let passed = |more: i64| {
            self.rows
                .partition_point(|row| micros_ceil(row.time.saturating_add(size).saturating_add(more), unit) <= until)
        };
        let settled = passed(0);
        let mut ready = passed(wait).min(settled.saturating_sub(usize::try_from(rows).unwrap_or(usize::MAX)));
        // Peers are given out together.
        while ready > self.done && self.rows.get(ready).is_some_and(|next| next.is_peer(&self.rows[ready - 1])) {
            ready -= 1;
        }
        Standing { settled, ready: ready.max(self.done), ended: false }
    }

    /// Rows were given out: up to `ready`. For their times no others come.
    pub fn give(&mut self, ready: usize) {
        if let Some(last) = ready.checked_sub(1).and_then(|last| self.rows.get(last)).filter(|_| ready > self.done) {
            self.next = self.next.split_off(&last.time);
        }
        self.done = ready;
    }

    /// Takes out the rows that were given out and that nothing reaches any more; answers their slots, and when the next may be.
    pub fn trim(&mut self, until: i64, reach: Reach, by: Final, gone: &mut Vec<Slot>) -> i64 {
        let (done, mut at, mut next) = (self.done, 0, i64::MAX);
        let mut left = 0;
        // A row that waits for others may be much older than the watermark.
        let end = |row: &Entry, within: i64| match by {
            Final::ByTime { unit, size, .. } => micros_ceil(row.time.saturating_add(size).saturating_add(within), unit),
            Final::AtItsEnd => i64::MAX,
        };
        let waits = self.rows.get(done).map_or(i64::MAX, |row| end(row, 0));
        self.rows.retain(|row| {
            let here = at;
            at += 1;
            if here >= done {
                return true;
            }
            let mut reached = here < reach.first || here >= done.saturating_sub(reach.last);
            if let (false, Some(within)) = (reached, reach.within) {
                let end = end(row, within);
                reached = end > until || end >= waits;
                next = if end > until { next.min(end) } else { next };
            }
            left += usize::from(reached);
            if !reached {
                gone.push(row.slot);
            }
            reached
        });
        self.done = left;
        next
    }
}

/// See the module's documentation.
#[derive(Default)]
pub struct OverIndex {
    known: HashMap<Box<[u8]>, u32>,
    pub parts: Vec<Partition>,
    free: Vec<u32>,
    /// Which partition the row of a slot is in.
    of_slot: Vec<u32>,
    /// When partitions are to be looked at; some of them may be others by then.
    wake: BTreeMap<i64, Vec<u32>>,
}

impl OverIndex {
    /// The partition of a key; `end`: when the watermark ends it.
    pub fn partition(&mut self, key: &[u8], end: i64) -> u32 {
        if let Some(id) = self.known.get(key) {
            return *id;
        }
        let part = Partition { key: key.into(), end, sorted: true, wake: i64::MAX, ..Partition::default() };
        let id = match self.free.pop() {
            Some(id) => {
                self.parts[id as usize] = part;
                id
            }
            None => {
                self.parts.push(part);
                (self.parts.len() - 1) as u32
            }
        };
        self.known.insert(key.into(), id);
        self.wake_at(id, end);
        id
    }

    /// The number of the next row of a time.
    pub fn number(&mut self, id: u32, time: i64) -> i64 {
        let next = self.parts[id as usize].next.entry(time).or_default();
        *next += 1;
        *next - 1
    }

    /// A row that comes, or is remembered.
    pub fn enter(&mut self, id: u32, entry: Entry) {
        let at = entry.slot as usize;
        if self.of_slot.len() <= at {
            self.of_slot.resize(at + 1, u32::MAX);
        }
        self.of_slot[at] = id;
        let part = &mut self.parts[id as usize];
        part.rows.push(entry);
        part.sorted = false;
    }

    /// Numbers that were given are not given again.
    pub fn numbered(&mut self, id: u32, time: i64, number: i64) {
        let next = self.parts[id as usize].next.entry(time).or_default();
        *next = (*next).max(number.saturating_add(1));
    }

    /// The partitions that rows of these slots are in, and those to be looked at by now, in the order of their keys.
    pub fn touched(&mut self, due: &[Slot], until: i64) -> Vec<u32> {
        let rest = match until.checked_add(1) {
            Some(next) => self.wake.split_off(&next),
            None => BTreeMap::new(),
        };
        let woken = std::mem::replace(&mut self.wake, rest);
        let mut ids: Vec<u32> = due.iter().filter_map(|slot| self.of_slot.get(*slot as usize).copied()).collect();
        for id in woken.into_values().flatten() {
            self.parts[id as usize].wake = i64::MAX;
            ids.push(id);
        }
        ids.sort_unstable();
        ids.dedup();
        ids.retain(|id| self.parts.get(*id as usize).is_some_and(|part| !part.rows.is_empty()));
        ids.sort_by(|a, b| self.parts[*a as usize].key.cmp(&self.parts[*b as usize].key));
        ids
    }

    /// A partition is to be looked at when the watermark reaches `at`.
    pub fn wake_at(&mut self, id: u32, at: i64) {
        let part = &mut self.parts[id as usize];
        if at < part.wake {
            part.wake = at;
            self.wake.entry(at).or_default().push(id);
        }
    }

    /// Lets go of a partition without rows.
    pub fn drop_empty(&mut self, id: u32) {
        let part = &mut self.parts[id as usize];
        if part.rows.is_empty() {
            self.known.remove(&part.key);
            *part = Partition { wake: i64::MAX, ..Partition::default() };
            self.free.push(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_time(wait: i64, rows: u64) -> Final {
        Final::ByTime { unit: Unit::Micros, size: 0, wait, rows }
    }

    fn partition(times: &[i64]) -> Partition {
        let entry =
            |(n, time): (usize, &i64)| Entry { time: *time, by: Box::default(), number: n as i64, slot: n as u32 };
        let rows = times.iter().enumerate().map(entry).collect();
        let mut part = Partition { end: i64::MAX, rows, ..Partition::default() };
        part.sort();
        part
    }

    #[test]
    fn rows_are_final_by_their_time_and_by_those_that_follow() {
        let part = partition(&[5, 1, 3, 3]);
        let standing = |until, by| {
            let found = part.standing(until, by);
            (found.settled, found.ready)
        };
        assert_eq!(standing(3, by_time(0, 0)), (3, 3));
        assert_eq!(standing(3, by_time(2, 0)), (3, 1));
        assert_eq!(standing(3, by_time(0, 2)), (3, 1));
        // Of two rows at 3 only one has another behind it: both wait.
        assert_eq!(standing(3, by_time(0, 1)), (3, 1));
        assert_eq!(standing(i64::MAX, by_time(9, 9)), (4, 4));
        assert_eq!(standing(3, Final::AtItsEnd), (0, 0));
    }

    #[test]
    fn what_nothing_reaches_is_let_go() {
        let trim = |reach: Reach| {
            let mut part = partition(&[1, 2, 3, 4, 9]);
            part.give(4);
            let mut gone = Vec::new();
            let next = part.trim(4, reach, by_time(0, 0), &mut gone);
            (gone, part.done, part.rows.len(), next)
        };
        assert_eq!(trim(Reach::default()), (vec![0, 1, 2, 3], 0, 1, i64::MAX));
        assert_eq!(trim(Reach { first: 1, last: 1, within: None }), (vec![1, 2], 2, 3, i64::MAX));
        assert_eq!(trim(Reach { within: Some(2), ..Reach::default() }), (vec![0, 1], 2, 3, 5));
        // 3 is within 2 of the row at 5, which is not given out yet.
        let mut part = partition(&[1, 3, 5, 7]);
        part.give(2);
        let mut gone = Vec::new();
        let next = part.trim(8, Reach { within: Some(2), ..Reach::default() }, by_time(0, 2), &mut gone);
        assert_eq!((gone, part.done, next), (vec![0], 1, i64::MAX));
    }

    #[test]
    fn numbers_go_on_while_their_time_may_come() {
        let mut index = OverIndex::default();
        let id = index.partition(b"a", i64::MAX);
        assert_eq!([index.number(id, 3), index.number(id, 3), index.number(id, 4)], [0, 1, 0]);
        index.numbered(id, 4, 6);
        assert_eq!(index.number(id, 4), 7);
        assert_eq!(index.touched(&[], i64::MAX), Vec::<u32>::new());
        index.drop_empty(id);
        assert_eq!(index.partition(b"b", 5), id);
        index.enter(id, Entry { time: 1, by: Box::default(), number: 0, slot: 2 });
        assert_eq!((index.touched(&[], 4), index.touched(&[], 5)), (vec![], vec![id]));
    }
}
