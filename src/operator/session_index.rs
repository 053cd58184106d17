//! Which sessions are remembered of which key: what the state's table can't be asked, as its keys hold a session's start.
//!
//! In memory only, and made of the table when a partition begins.

use arrow::array::Int64Array;
use hashbrown::HashTable;

use crate::delta::keys::{Keys, same};
use crate::state::Slot;

/// One session, in the unit of its time. Sessions of a key never touch, so they are in order of their ends, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Session {
    pub start: i64,
    pub end: i64,
    pub slot: Slot,
}

/// A key's number, as long as it has sessions.
pub type Group = u32;

/// See the module's documentation.
#[derive(Default)]
pub struct SessionIndex {
    index: HashTable<(u64, Group)>,
    /// Of each group: its key, and its sessions in order of time.
    groups: Vec<(Box<[u8]>, Vec<Session>)>,
    free: Vec<Group>,
}

impl SessionIndex {
    /// Takes in the sessions of these slots, in any order.
    pub fn fill(&mut self, slots: &[Slot], keys: &Keys, starts: &Int64Array, ends: &Int64Array) {
        for (row, slot) in slots.iter().enumerate() {
            let group = self.group(keys, row);
            let session = Session { start: starts.value(row), end: ends.value(row), slot: *slot };
            self.groups[group as usize].1.push(session);
        }
        for (_, sessions) in &mut self.groups {
            sessions.sort_unstable_by_key(|session| session.start);
        }
    }

    /// The group of a row's key, which may be new.
    pub fn group(&mut self, keys: &Keys, row: usize) -> Group {
        let (hash, bytes) = (keys.hashes[row], keys.bytes(row));
        let is_it = |entry: &(u64, Group)| entry.0 == hash && same(&self.groups[entry.1 as usize].0, bytes);
        if let Some((_, group)) = self.index.find(hash, is_it) {
            return *group;
        }
        let new = (bytes.into(), Vec::new());
        let group = match self.free.pop() {
            Some(group) => {
                self.groups[group as usize] = new;
                group
            }
            None => {
                self.groups.push(new);
                (self.groups.len() - 1) as Group
            }
        };
        self.index.insert_unique(hash, (hash, group), |entry| entry.0);
        group
    }

    /// A group's sessions.
    pub fn sessions(&mut self, group: Group) -> &mut Vec<Session> {
        &mut self.groups[group as usize].1
    }

    /// Forgets the sessions of these keys that `is_over`, and keys that have none left.
    pub fn forget(&mut self, keys: &Keys, is_over: impl Fn(&Session) -> bool) {
        for (row, hash) in keys.hashes.iter().enumerate() {
            let (hash, bytes) = (*hash, keys.bytes(row));
            let groups = &self.groups;
            let is_it = |entry: &(u64, Group)| entry.0 == hash && same(&groups[entry.1 as usize].0, bytes);
            // A key with several sessions is met several times.
            let Ok(entry) = self.index.find_entry(hash, is_it) else { continue };
            let group = entry.get().1;
            let (key, sessions) = &mut self.groups[group as usize];
            sessions.retain(|session| !is_over(session));
            if sessions.is_empty() {
                *key = Box::default();
                *sessions = Vec::new();
                entry.remove();
                self.free.push(group);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::ArrayRef;
    use arrow::datatypes::{DataType, Field, FieldRef};

    use super::*;
    use crate::delta::keys::KeyCodec;

    fn keys(of: &[i64]) -> Keys {
        let field: FieldRef = Field::new("k", DataType::Int64, true).into();
        let column: ArrayRef = Arc::new(Int64Array::from(of.to_vec()));
        KeyCodec::new(&[field]).unwrap().encode(&[column], of.len()).unwrap()
    }

    #[test]
    fn a_key_is_known_as_long_as_it_has_sessions() {
        let mut index = SessionIndex::default();
        let times = |of: &[i64]| Int64Array::from(of.to_vec());
        index.fill(&[7, 8, 9], &keys(&[1, 2, 1]), &times(&[30, 0, 10]), &times(&[40, 5, 20]));
        let both = keys(&[1, 2]);
        let (one, two) = (index.group(&both, 0), index.group(&both, 1));
        let session = |start, end, slot| Session { start, end, slot };
        assert_eq!(*index.sessions(one), [session(10, 20, 9), session(30, 40, 7)], "in order of time");
        index.forget(&keys(&[1, 2]), |session| session.end <= 20);
        let group = index.group(&both, 0);
        assert_eq!((group, index.sessions(group).as_slice()), (one, [session(30, 40, 7)].as_slice()));
        // The number of a key that is gone is another's.
        assert_eq!(index.group(&keys(&[3]), 0), two);
        assert!(index.sessions(two).is_empty());
        assert_ne!(index.group(&both, 1), two);
    }
}
