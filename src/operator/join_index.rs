//! The rows of one side of a join by their join key: which rows of the state have a key, in the order they came.
//!
//! It is in memory only and made of the state when a partition is first used. A key is a chain of slots; the state knows
//! each row by its key and its number within the chain, so that what is kept depends on no hash and no partition.

use hashbrown::HashTable;

use crate::delta::keys::{Keys, same};
use crate::state::Slot;

/// A chain's number, while it has rows or a batch works on it.
pub type ChainNumber = u32;

/// So many keys are looked up at a time.
pub const BLOCK: usize = 64;

/// So many rows of a chain are looked at ahead: those of a block of chains stay in a core's own memory until they are read.
const DEEP: usize = 64;

/// No slot, no chain.
const NONE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
struct Entry {
    tag: u32,
    chain: ChainNumber,
}

#[derive(Debug, Clone, Copy)]
struct Chain {
    hash: u64,
    /// Its key, among the bytes.
    start: usize,
    length: u32,
    head: Slot,
    tail: Slot,
    /// It waits in `emptied`.
    empty: bool,
    /// The number that its next row gets.
    next: u64,
}

/// What is known of a row by its slot.
#[derive(Debug, Clone, Copy)]
struct Row {
    chain: ChainNumber,
    before: Slot,
    after: Slot,
    matches: u32,
    /// Of the columns that tell rows of a key apart, where rows can be taken back.
    hash: u64,
    /// It came in the batch that runs.
    fresh: bool,
}

impl Row {
    const FREE: Row = Row { chain: NONE, before: NONE, after: NONE, matches: 0, hash: 0, fresh: false };
}

/// See the module's documentation.
#[derive(Default)]
pub struct JoinIndex {
    table: HashTable<Entry>,
    chains: Vec<Chain>,
    free: Vec<ChainNumber>,
    bytes: Vec<u8>,
    garbage: usize,
    rows: Vec<Row>,
    /// Chains that have lost their last row.
    emptied: Vec<ChainNumber>,
}

fn spread(tag: u32) -> u64 {
    u64::from(tag).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

impl JoinIndex {
    /// The chain of a row's key, if the key has rows.
    pub fn find(&self, keys: &Keys, row: usize) -> Option<ChainNumber> {
        let (tag, key) = (keys.hashes[row] as u32, keys.bytes(row));
        let is_it = |entry: &Entry| entry.tag == tag && same(self.key(entry.chain), key);
        self.table.find(spread(tag), is_it).map(|entry| entry.chain)
    }

    /// [`JoinIndex::find`] for many rows, at most [`BLOCK`] of them: the waits for memory of one step overlap each other.
    pub fn find_block(&self, keys: &Keys, rows: &[u32]) -> [Option<ChainNumber>; BLOCK] {
        let mut found = [None; BLOCK];
        for (row, found) in rows.iter().zip(&mut found) {
            let tag = keys.hashes[*row as usize] as u32;
            *found = self.table.find(spread(tag), |entry| entry.tag == tag).map(|entry| entry.chain);
        }
        for (row, found) in rows.iter().zip(&mut found) {
            if found.is_some_and(|chain| !same(self.key(chain), keys.bytes(*row as usize))) {
                *found = self.find(keys, *row as usize);
            }
        }
        found
    }

    /// Looks at the rows of at most [`BLOCK`] chains side by side, so that the waits for their memory overlap each other: a row is
    /// found by the one before it.
    pub fn look_at(&self, chains: &[Option<ChainNumber>]) {
        let mut next = [NONE; BLOCK];
        for (chain, next) in chains.iter().zip(&mut next) {
            *next = chain.map_or(NONE, |chain| self.chains[chain as usize].head);
        }
        for _ in 0..DEEP {
            let mut ended = true;
            for next in &mut next {
                if let Some(row) = self.rows.get(*next as usize) {
                    (*next, ended) = (row.after, false);
                }
            }
            if ended {
                break;
            }
        }
        std::hint::black_box(next);
    }

    /// The chain of a row's key, and the number that the row gets in it.
    pub fn enter(&mut self, keys: &Keys, row: usize) -> (ChainNumber, u64) {
        let chain = self.find(keys, row).unwrap_or_else(|| self.begin(keys, row));
        let next = &mut self.chains[chain as usize].next;
        *next += 1;
        (chain, *next - 1)
    }

    /// The same for a row that has its number.
    pub fn enter_as(&mut self, keys: &Keys, row: usize, number: u64) -> ChainNumber {
        let chain = self.find(keys, row).unwrap_or_else(|| self.begin(keys, row));
        let next = &mut self.chains[chain as usize].next;
        *next = (*next).max(number.saturating_add(1));
        chain
    }

    /// Puts a row at the end of its chain.
    pub fn link(&mut self, chain: ChainNumber, slot: Slot, matches: u32, hash: u64, fresh: bool) {
        let at = slot as usize;
        if self.rows.len() <= at {
            self.rows.resize(at + 1, Row::FREE);
        }
        let tail = std::mem::replace(&mut self.chains[chain as usize].tail, slot);
        match self.rows.get_mut(tail as usize) {
            Some(last) => last.after = slot,
            None => self.chains[chain as usize].head = slot,
        }
        self.rows[at] = Row { chain, before: tail, after: NONE, matches, hash, fresh };
    }

    /// Takes a row out. Its chain stays until [`JoinIndex::sweep`]: the numbers of rows that go are not given again in the
    /// same batch, as its file holds what was written before what went.
    pub fn unlink(&mut self, slot: Slot) {
        let Row { chain, before, after, .. } = std::mem::replace(&mut self.rows[slot as usize], Row::FREE);
        if chain == NONE {
            return;
        }
        match self.rows.get_mut(before as usize) {
            Some(row) => row.after = after,
            None => self.chains[chain as usize].head = after,
        }
        match self.rows.get_mut(after as usize) {
            Some(row) => row.before = before,
            None => self.chains[chain as usize].tail = before,
        }
        let chain_of = &mut self.chains[chain as usize];
        if chain_of.head == NONE && !std::mem::replace(&mut chain_of.empty, true) {
            self.emptied.push(chain);
        }
    }

    /// Ends the chains that have no rows, at the end of a batch.
    pub fn sweep(&mut self) {
        let emptied = std::mem::take(&mut self.emptied);
        for block in emptied.chunks(BLOCK) {
            // They are looked up before they go, for their memory's sake.
            let is_there = |chain: &&ChainNumber| {
                let tag = self.chains[**chain as usize].hash as u32;
                self.table.find(spread(tag), |entry| entry.chain == **chain).is_some()
            };
            std::hint::black_box(block.iter().filter(is_there).count());
            for chain in block {
                let of = &mut self.chains[*chain as usize];
                of.empty = false;
                if of.head == NONE {
                    self.end(*chain);
                }
            }
        }
    }

    /// The rows of a chain in their order.
    pub fn rows(&self, chain: ChainNumber) -> impl Iterator<Item = Slot> + '_ {
        let next = |slot: Slot| (slot != NONE).then_some(slot);
        std::iter::successors(next(self.chains[chain as usize].head), move |slot| next(self.rows[*slot as usize].after))
    }

    /// How many partners a row has; where none can go away, 1 for any number.
    pub fn matches(&self, slot: Slot) -> u32 {
        self.rows[slot as usize].matches
    }

    /// Another number of partners.
    pub fn set_matches(&mut self, slot: Slot, matches: u32) {
        self.rows[slot as usize].matches = matches;
    }

    /// What a row's chain is hashed by.
    pub fn key_hash(&self, slot: Slot) -> u64 {
        self.chains.get(self.rows[slot as usize].chain as usize).map_or(0, |chain| chain.hash)
    }

    /// The hash that the row was linked with.
    pub fn row_hash(&self, slot: Slot) -> u64 {
        self.rows[slot as usize].hash
    }

    /// Whether the row is there.
    pub fn is_linked(&self, slot: Slot) -> bool {
        self.rows[slot as usize].chain != NONE
    }

    /// Whether the row came in the batch that runs.
    pub fn is_fresh(&self, slot: Slot) -> bool {
        self.rows[slot as usize].fresh
    }

    /// The batch in which the row came has ended.
    pub fn settle(&mut self, slot: Slot) {
        self.rows[slot as usize].fresh = false;
    }

    fn key(&self, chain: ChainNumber) -> &[u8] {
        let Chain { start, length, .. } = self.chains[chain as usize];
        &self.bytes[start..start + length as usize]
    }

    fn begin(&mut self, keys: &Keys, row: usize) -> ChainNumber {
        let (hash, key) = (keys.hashes[row], keys.bytes(row));
        let chain = Chain {
            hash,
            start: self.bytes.len(),
            length: key.len() as u32,
            head: NONE,
            tail: NONE,
            empty: false,
            next: 0,
        };
        self.bytes.extend_from_slice(key);
        let number = match self.free.pop() {
            Some(free) => {
                self.chains[free as usize] = chain;
                free
            }
            None => {
                self.chains.push(chain);
                (self.chains.len() - 1) as ChainNumber
            }
        };
        let tag = hash as u32;
        self.table.insert_unique(spread(tag), Entry { tag, chain: number }, |entry| spread(entry.tag));
        number
    }

    fn end(&mut self, chain: ChainNumber) {
        let tag = self.chains[chain as usize].hash as u32;
        if let Ok(entry) = self.table.find_entry(spread(tag), |entry| entry.chain == chain) {
            entry.remove();
        }
        self.garbage += self.chains[chain as usize].length as usize;
        self.chains[chain as usize].length = 0;
        self.free.push(chain);
        if self.garbage > self.bytes.len() / 2 + 4_096 {
            self.compact();
        }
    }

    fn compact(&mut self) {
        let mut bytes = Vec::with_capacity(self.bytes.len() - self.garbage);
        for chain in &mut self.chains {
            let key = &self.bytes[chain.start..chain.start + chain.length as usize];
            chain.start = bytes.len();
            bytes.extend_from_slice(key);
        }
        self.bytes = bytes;
        self.garbage = 0;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array};
    use arrow::datatypes::{DataType, Field};

    use super::*;
    use crate::delta::keys::KeyCodec;

    fn keys(values: &[i64]) -> Keys {
        let codec = KeyCodec::new(&[Field::new("k", DataType::Int64, true).into()]).expect("a codec");
        let column: ArrayRef = Arc::new(Int64Array::from(values.to_vec()));
        codec.encode(&[column], values.len()).expect("keys")
    }

    #[test]
    fn rows_of_a_key_come_in_their_order_and_go_from_anywhere() {
        let (keys, mut index) = (keys(&[7, 8, 7, 7]), JoinIndex::default());
        for (slot, row) in [(10, 0), (11, 1), (12, 2), (13, 3)] {
            let (chain, number) = index.enter(&keys, row);
            assert_eq!(number, [0, 0, 1, 2][row]);
            index.link(chain, slot, 0, 0, true);
        }
        let of = |index: &JoinIndex, row| index.find(&keys, row).map(|c| index.rows(c).collect::<Vec<_>>());
        assert_eq!((of(&index, 0), of(&index, 1)), (Some(vec![10, 12, 13]), Some(vec![11])));
        index.unlink(12);
        assert_eq!(of(&index, 0), Some(vec![10, 13]));
        index.unlink(10);
        index.unlink(13);
        assert_eq!(index.enter(&keys, 0).1, 3, "a number is not given again in the same batch");
        index.sweep();
        assert_eq!((of(&index, 0), of(&index, 1)), (None, Some(vec![11])));
        // A key that comes again counts from the start, and an old row keeps its number.
        assert_eq!(index.enter(&keys, 0).1, 0);
        assert_eq!((index.enter_as(&keys, 1, 5), index.enter(&keys, 1).1), (index.find(&keys, 1).expect("8"), 6));
    }

    #[test]
    fn keys_that_come_and_go_leave_no_bytes() {
        let mut index = JoinIndex::default();
        for n in 0..10_000i64 {
            let keys = keys(&[n]);
            let (chain, _) = index.enter(&keys, 0);
            index.link(chain, 0, 0, 0, false);
            index.unlink(0);
            index.sweep();
        }
        assert!(index.bytes.len() < 20_000 && index.chains.len() < 3, "{} {}", index.bytes.len(), index.chains.len());
    }
}
