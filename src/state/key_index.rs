//! Which slot a key has: an index over the bytes of keys.

use hashbrown::HashTable;

use super::table::Slot;
use crate::delta::keys::{Keys, same};

/// A key in the index: a part of its hash, so that the key itself is looked at only where it's likely to be the one.
#[derive(Debug, Clone, Copy)]
struct Entry {
    tag: u32,
    slot: Slot,
}

/// The part of a key's hash that the index has.
pub fn tag(keys: &Keys, row: usize) -> u32 {
    keys.hashes[row] as u32
}

/// The index's hash of a tag: all it knows of a key when it grows.
fn spread(tag: u32) -> u64 {
    u64::from(tag).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// See the module's documentation.
#[derive(Default)]
pub struct KeyIndex {
    table: HashTable<Entry>,
    keys: KeyArena,
}

impl KeyIndex {
    /// The slot of a key that is there.
    pub fn find(&self, keys: &Keys, row: usize) -> Option<Slot> {
        let (tag, bytes) = (tag(keys, row), keys.bytes(row));
        let is_it = |entry: &Entry| entry.tag == tag && same(self.keys.get(entry.slot), bytes);
        self.table.find(spread(tag), is_it).map(|entry| entry.slot)
    }

    /// The slot of the first key with this part of a hash.
    pub fn likely(&self, tag: u32) -> Option<Slot> {
        self.table.find(spread(tag), |entry| entry.tag == tag).map(|entry| entry.slot)
    }

    /// Whether a slot has this key.
    pub fn has(&self, slot: Slot, keys: &Keys, row: usize) -> bool {
        same(self.keys.get(slot), keys.bytes(row))
    }

    /// Whether a slot is there: looks where it will be looked for once it goes.
    pub fn holds(&self, slot: Slot, tag: u32) -> bool {
        self.table.find(spread(tag), |entry| entry.slot == slot).is_some()
    }

    /// Gives a key that is not there its slot.
    pub fn insert(&mut self, keys: &Keys, row: usize, slot: Slot) {
        let tag = tag(keys, row);
        self.keys.set(slot, keys.bytes(row));
        self.table.insert_unique(spread(tag), Entry { tag, slot }, |entry| spread(entry.tag));
    }

    /// Takes a slot's key out.
    pub fn remove(&mut self, slot: Slot, tag: u32) {
        if let Ok(entry) = self.table.find_entry(spread(tag), |entry| entry.slot == slot) {
            entry.remove();
        }
        self.keys.clear(slot);
    }

    /// The bytes of a slot's key.
    pub fn key(&self, slot: Slot) -> &[u8] {
        self.keys.get(slot)
    }

    /// Bytes in memory, about.
    pub fn memory(&self) -> usize {
        self.keys.memory() + self.table.capacity() * 9
    }
}

/// Key bytes by slot. While all keys have one length they lie side by side without offsets.
#[derive(Default)]
struct KeyArena {
    bytes: Vec<u8>,
    /// The common length, while there is one.
    width: Option<usize>,
    /// slot → (start, length), once lengths differ.
    spans: Vec<(u64, u32)>,
    garbage: usize,
}

impl KeyArena {
    fn get(&self, slot: Slot) -> &[u8] {
        match self.width {
            Some(width) => &self.bytes[slot as usize * width..(slot as usize + 1) * width],
            None => {
                let (start, len) = self.spans[slot as usize];
                &self.bytes[start as usize..start as usize + len as usize]
            }
        }
    }

    fn set(&mut self, slot: Slot, key: &[u8]) {
        if self.bytes.is_empty() && self.spans.is_empty() {
            self.width = Some(key.len());
        }
        if let Some(width) = self.width {
            if width == key.len() {
                let end = (slot as usize + 1) * width;
                if self.bytes.len() < end {
                    self.bytes.resize(end, 0);
                }
                self.bytes[end - width..end].copy_from_slice(key);
                return;
            }
            let slots = self.bytes.len().checked_div(width).unwrap_or(slot as usize);
            self.spans = (0..slots).map(|s| ((s * width) as u64, width as u32)).collect();
            self.width = None;
        }
        if self.spans.len() <= slot as usize {
            self.spans.resize(slot as usize + 1, (0, 0));
        }
        self.spans[slot as usize] = (self.bytes.len() as u64, key.len() as u32);
        self.bytes.extend_from_slice(key);
    }

    fn clear(&mut self, slot: Slot) {
        if self.width.is_some() {
            return;
        }
        self.garbage += self.spans[slot as usize].1 as usize;
        self.spans[slot as usize] = (0, 0);
        if self.garbage > self.bytes.len() / 2 + 4_096 {
            self.compact();
        }
    }

    fn compact(&mut self) {
        let mut bytes = Vec::with_capacity(self.bytes.len() - self.garbage);
        for (start, len) in &mut self.spans {
            let from = *start as usize;
            *start = bytes.len() as u64;
            bytes.extend_from_slice(&self.bytes[from..from + *len as usize]);
        }
        self.bytes = bytes;
        self.garbage = 0;
    }

    fn memory(&self) -> usize {
        self.bytes.capacity() + self.spans.capacity() * 16
    }
}
