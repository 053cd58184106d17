//! The rows of one partition of a Top-N in their order, and the first of them.
//!
//! A row's place is its bytes: those of what it is ordered by, then those of all its columns. So rows that are equal in the
//! order have one order too, whatever came first.

use std::collections::BTreeMap;

use crate::state::Slot;

/// How rows are numbered in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rank {
    /// One by one.
    RowNumber,
    /// Rows that are equal in the order have one number; the next has as many more as they are.
    Rank,
    /// The same, but for the next, which has one more.
    DenseRank,
}

impl Rank {
    /// As SQL has it.
    pub fn name(self) -> &'static str {
        match self {
            Rank::RowNumber => "row_number()",
            Rank::Rank => "rank()",
            Rank::DenseRank => "dense_rank()",
        }
    }
}

/// Which rows are the first ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bound {
    pub by: Rank,
    /// Numbers that are left out, and how many come behind them.
    pub skip: u64,
    pub fetch: u64,
}

impl Bound {
    /// The last number.
    pub fn last(&self) -> u64 {
        self.skip.saturating_add(self.fetch)
    }

    fn of(&self, ranks: &Ranks) -> u64 {
        ranks[self.by as usize]
    }
}

/// A row's numbers, by [`Rank`].
pub type Ranks = [u64; 3];

/// A row among the first ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shown {
    pub slot: Slot,
    pub ranks: Ranks,
}

/// Rows that are equal in all columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    slot: Slot,
    /// How many bytes of its place are of what rows are ordered by.
    by: usize,
    /// How often it is there; below 0 only while changes come in.
    count: i64,
}

/// See the module's documentation.
#[derive(Default)]
pub struct Ordered {
    rows: BTreeMap<Box<[u8]>, Entry>,
    /// The last row's place, where there are as many as can be shown; of ranks, what it is ordered by.
    last: Option<Box<[u8]>>,
}

impl Ordered {
    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// How often the row of a place is there.
    pub fn count(&self, place: &[u8]) -> i64 {
        self.rows.get(place).map_or(0, |entry| entry.count)
    }

    /// Adds a row so many times, or takes it out.
    pub fn add(&mut self, place: &[u8], by: usize, slot: Slot, times: i64) {
        match self.rows.get_mut(place) {
            Some(entry) => {
                entry.count += times;
                if entry.count == 0 {
                    self.rows.remove(place);
                }
            }
            None => drop(self.rows.insert(place.into(), Entry { slot, by, count: times })),
        }
    }

    /// Whether a row that comes could be among the first, where none is ever taken out.
    pub fn may_enter(&self, place: &[u8], by: usize, bound: &Bound) -> bool {
        match (&self.last, bound.by) {
            (None, _) => true,
            (Some(last), Rank::RowNumber) => place < last.as_ref(),
            (Some(last), _) => place[..by] <= **last,
        }
    }

    /// Takes out what can't be among the first again, where no row is ever taken out. Answers the places and slots of rows that
    /// are gone, or there less often.
    pub fn prune(&mut self, bound: &Bound) -> Vec<(Box<[u8]>, Slot)> {
        let (mut counter, mut kept, mut end) = (Counter::default(), [0; 3], None);
        let mut pruned = Vec::new();
        for (place, entry) in &mut self.rows {
            let mut fits = 0;
            while fits < entry.count {
                let ranks = counter.next(&place[..entry.by]);
                if bound.of(&ranks) > bound.last() {
                    break;
                }
                kept = ranks;
                fits += 1;
            }
            if fits == 0 {
                end = Some(place.clone());
                break;
            }
            if fits < entry.count {
                entry.count = fits;
                pruned.push((place.clone(), entry.slot));
            }
        }
        let gone = end.map(|end| self.rows.split_off(&end)).unwrap_or_default();
        pruned.extend(gone.into_iter().map(|(place, entry)| (place, entry.slot)));
        // The number of a row behind the last one.
        let next = 1 + match bound.by {
            Rank::DenseRank => kept[Rank::DenseRank as usize],
            _ => kept[Rank::RowNumber as usize],
        };
        let last = || match (self.rows.last_key_value(), bound.by) {
            (Some((place, _)), Rank::RowNumber) => place.clone(),
            (Some((place, entry)), _) => place[..entry.by].into(),
            (None, _) => Box::default(),
        };
        self.last = (next > bound.last()).then(last);
        pruned
    }

    /// The first rows.
    pub fn shown(&self, bound: &Bound) -> Vec<Shown> {
        let (mut counter, mut shown) = (Counter::default(), Vec::new());
        for (place, entry) in &self.rows {
            for _ in 0..entry.count {
                let ranks = counter.next(&place[..entry.by]);
                if bound.of(&ranks) > bound.last() {
                    return shown;
                }
                if bound.of(&ranks) > bound.skip {
                    shown.push(Shown { slot: entry.slot, ranks });
                }
            }
        }
        shown
    }
}

/// Numbers rows that come in order.
#[derive(Default)]
struct Counter<'a> {
    ranks: Ranks,
    last: Option<&'a [u8]>,
}

impl<'a> Counter<'a> {
    /// The numbers of the next row, which is ordered by these bytes.
    fn next(&mut self, by: &'a [u8]) -> Ranks {
        let [number, rank, dense] = &mut self.ranks;
        *number += 1;
        if self.last != Some(by) {
            self.last = Some(by);
            *rank = *number;
            *dense += 1;
        }
        self.ranks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bound(by: Rank, skip: u64, fetch: u64) -> Bound {
        Bound { by, skip, fetch }
    }

    /// Rows are two letters: the first is what they are ordered by.
    fn add(ordered: &mut Ordered, row: &str, times: i64) {
        ordered.add(row.as_bytes(), 1, slot(row), times);
    }

    fn shown(ordered: &Ordered, bound: &Bound) -> Vec<(Slot, Ranks)> {
        ordered.shown(bound).into_iter().map(|row| (row.slot, row.ranks)).collect()
    }

    fn slot(row: &str) -> Slot {
        row.bytes().fold(0, |slot, letter| slot * 256 + u32::from(letter))
    }

    #[test]
    fn equal_rows_share_a_rank_and_have_numbers_of_their_own() {
        let mut ordered = Ordered::default();
        for (row, times) in [("bx", 2), ("ay", 1), ("by", 1), ("cx", 1)] {
            add(&mut ordered, row, times);
        }
        let all = [("ay", [1, 1, 1]), ("bx", [2, 2, 2]), ("bx", [3, 2, 2]), ("by", [4, 2, 2]), ("cx", [5, 5, 3])];
        let all = all.map(|(row, ranks)| (slot(row), ranks));
        assert_eq!(shown(&ordered, &bound(Rank::RowNumber, 0, 9)), all);
        assert_eq!(shown(&ordered, &bound(Rank::RowNumber, 1, 2)), all[1..3]);
        assert_eq!(shown(&ordered, &bound(Rank::Rank, 0, 2)), all[..4]);
        assert_eq!(shown(&ordered, &bound(Rank::Rank, 0, 4)), all[..4]);
        assert_eq!(shown(&ordered, &bound(Rank::DenseRank, 0, 2)), all[..4]);
        assert_eq!(shown(&ordered, &bound(Rank::DenseRank, 1, 2)), all[1..]);
        add(&mut ordered, "ay", -1);
        add(&mut ordered, "bx", -1);
        assert_eq!(shown(&ordered, &bound(Rank::RowNumber, 0, 2)), [(slot("bx"), [1, 1, 1]), (slot("by"), [2, 1, 1])]);
        assert_eq!((ordered.count(b"bx"), ordered.count(b"ay")), (1, 0));
    }

    #[test]
    fn what_can_not_come_back_is_taken_out_and_not_let_in() {
        let mut ordered = Ordered::default();
        let first = bound(Rank::RowNumber, 1, 2);
        for (row, times) in [("bx", 2), ("dx", 2)] {
            add(&mut ordered, row, times);
        }
        // One of the two d.
        assert_eq!(ordered.prune(&first), [(Box::from(*b"dx"), slot("dx"))]);
        assert_eq!(ordered.count(b"dx"), 1);
        assert!(ordered.may_enter(b"dw", 1, &first) && !ordered.may_enter(b"dx", 1, &first));
        add(&mut ordered, "ax", 1);
        assert_eq!(ordered.prune(&first), [(Box::from(*b"dx"), slot("dx"))]);
        assert!(ordered.may_enter(b"aa", 1, &first) && !ordered.may_enter(b"bx", 1, &first));
    }

    #[test]
    fn a_rank_lets_in_what_is_equal_to_the_last() {
        let (rank, dense) = (bound(Rank::Rank, 0, 2), bound(Rank::DenseRank, 0, 2));
        let mut ordered = Ordered::default();
        add(&mut ordered, "bx", 2);
        assert!(ordered.prune(&rank).is_empty());
        assert!(ordered.may_enter(b"bz", 1, &rank) && !ordered.may_enter(b"ca", 1, &rank));
        assert!(ordered.prune(&dense).is_empty());
        assert!(ordered.may_enter(b"ca", 1, &dense));
        for row in ["ax", "cx", "cy"] {
            add(&mut ordered, row, 1);
        }
        let gone: Vec<Slot> = ordered.prune(&dense).into_iter().map(|(_, slot)| slot).collect();
        assert_eq!(gone, [slot("cx"), slot("cy")]);
        assert!(ordered.may_enter(b"bz", 1, &dense) && !ordered.may_enter(b"ca", 1, &dense));
    }

    #[test]
    fn the_first_none_are_none() {
        for by in [Rank::RowNumber, Rank::Rank, Rank::DenseRank] {
            let (mut ordered, none) = (Ordered::default(), bound(by, 0, 0));
            add(&mut ordered, "ax", 1);
            assert_eq!(ordered.prune(&none).len(), 1);
            assert!(ordered.is_empty() && !ordered.may_enter(b"aa", 1, &none));
        }
    }
}
