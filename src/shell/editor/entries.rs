//! The history as the arrow keys and Ctrl-R see it: each entry once, where it was typed last; found in any case.
//!
//! The file that it comes from, with all that was typed, is `history`'s.

use std::borrow::Cow;
use std::path::Path;

use rustyline::history::{History, SearchDirection, SearchResult};

/// What was typed, the oldest first.
#[derive(Debug, Default)]
pub(in crate::shell) struct Entries {
    entries: Vec<String>,
    most: usize,
}

impl Entries {
    /// At most so many.
    pub(in crate::shell) fn new(most: usize) -> Self {
        Entries { entries: Vec::new(), most }
    }

    /// Takes many at once.
    pub(in crate::shell) fn fill(&mut self, all: impl DoubleEndedIterator<Item = String>) {
        let mut seen = std::collections::HashSet::new();
        let newest = all.rev().filter(|entry| !entry.trim().is_empty() && seen.insert(entry.clone())).take(self.most);
        self.entries = newest.collect();
        self.entries.reverse();
    }

    fn find(
        &self,
        start: usize,
        direction: SearchDirection,
        place: impl Fn(&str) -> Option<usize>,
    ) -> Option<SearchResult<'_>> {
        let found = |idx: usize| {
            let entry = self.entries.get(idx)?;
            place(entry).map(|pos| SearchResult { entry: Cow::Borrowed(entry), idx, pos })
        };
        match direction {
            SearchDirection::Reverse => (0..self.entries.len().min(start.saturating_add(1))).rev().find_map(found),
            SearchDirection::Forward => (start..self.entries.len()).find_map(found),
        }
    }
}

impl History for Entries {
    fn get(&self, index: usize, _direction: SearchDirection) -> rustyline::Result<Option<SearchResult<'_>>> {
        let entry = self.entries.get(index);
        Ok(entry.map(|entry| SearchResult { entry: Cow::Borrowed(entry), idx: index, pos: 0 }))
    }

    fn add(&mut self, line: &str) -> rustyline::Result<bool> {
        self.add_owned(line.to_string())
    }

    fn add_owned(&mut self, line: String) -> rustyline::Result<bool> {
        if line.trim().is_empty() || self.most == 0 {
            return Ok(false);
        }
        if let Some(same) = self.entries.iter().rposition(|entry| *entry == line) {
            self.entries.remove(same);
        }
        if self.entries.len() == self.most {
            self.entries.remove(0);
        }
        self.entries.push(line);
        Ok(true)
    }

    fn len(&self) -> usize {
        self.entries.len()
    }

    fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn set_max_len(&mut self, most: usize) -> rustyline::Result<()> {
        self.most = most;
        self.entries.drain(..self.entries.len().saturating_sub(most));
        Ok(())
    }

    /// An entry is never there twice.
    fn ignore_dups(&mut self, _yes: bool) -> rustyline::Result<()> {
        Ok(())
    }

    /// What begins with a blank is kept like anything else.
    fn ignore_space(&mut self, _yes: bool) {}

    fn save(&mut self, _path: &Path) -> rustyline::Result<()> {
        Err(elsewhere())
    }

    fn append(&mut self, _path: &Path) -> rustyline::Result<()> {
        Err(elsewhere())
    }

    fn load(&mut self, _path: &Path) -> rustyline::Result<()> {
        Err(elsewhere())
    }

    fn clear(&mut self) -> rustyline::Result<()> {
        self.entries.clear();
        Ok(())
    }

    fn search(
        &self,
        term: &str,
        start: usize,
        direction: SearchDirection,
    ) -> rustyline::Result<Option<SearchResult<'_>>> {
        if term.is_empty() {
            return Ok(None);
        }
        // Letters of ASCII have the same length in either case, so that places stay what they are.
        let term = term.to_ascii_lowercase();
        Ok(self.find(start, direction, |entry| entry.to_ascii_lowercase().find(&term)))
    }

    fn starts_with(
        &self,
        term: &str,
        start: usize,
        direction: SearchDirection,
    ) -> rustyline::Result<Option<SearchResult<'_>>> {
        Ok(self.find(start, direction, |entry| entry.starts_with(term).then_some(term.len())))
    }
}

fn elsewhere() -> rustyline::error::ReadlineError {
    std::io::Error::other("the history's file is written elsewhere").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(entries: &[&str]) -> Entries {
        let mut history = Entries::new(3);
        history.fill(entries.iter().map(ToString::to_string));
        history
    }

    #[test]
    fn an_entry_is_there_once_where_it_was_typed_last() {
        let mut history = filled(&["a", "b", "a", " ", "c", "b"]);
        assert_eq!(history.entries, ["a", "c", "b"]);
        assert!(history.add("a").unwrap());
        assert_eq!(history.entries, ["c", "b", "a"]);
        assert!(history.add("d").unwrap() && !history.add("  ").unwrap());
        assert_eq!(history.entries, ["b", "a", "d"]);
    }

    #[test]
    fn search_goes_both_ways_in_any_case() {
        let history = filled(&["SELECT ü, Orders", "DROP", "select orders"]);
        let found = |start, direction| {
            let found = history.search("ORDERS", start, direction).unwrap();
            found.map(|found| (found.idx, found.pos))
        };
        assert_eq!(found(2, SearchDirection::Reverse), Some((2, 7)));
        assert_eq!(found(1, SearchDirection::Reverse), Some((0, 11)));
        assert_eq!(found(1, SearchDirection::Forward), Some((2, 7)));
        assert_eq!(found(9, SearchDirection::Forward), None);
        assert_eq!(history.search("", 2, SearchDirection::Reverse).unwrap(), None);
    }
}
