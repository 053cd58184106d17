//! Files named by batch numbers: the folder of the offset log or the commit log.
//!
//! The folder is listed once, when it is opened; from then on this process is its only writer and remembers what is
//! there. It knows nothing of what the files say.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Store;
use crate::error::{Error, Result};

#[derive(Debug)]
pub(super) struct NumberedLog {
    store: Arc<dyn Store>,
    folder: &'static str,
    numbers: Mutex<BTreeSet<u64>>,
}

impl NumberedLog {
    /// Lists `folder`.
    ///
    /// # Errors
    /// Corrupt: a name that is no number.
    pub(super) fn open(store: Arc<dyn Store>, folder: &'static str) -> Result<Self> {
        let mut numbers = BTreeSet::new();
        for name in store.list(folder)? {
            let number = parse_number(&name).ok_or_else(|| {
                Error::corrupt(
                    store.describe(&format!("{folder}/{name}")),
                    "not a file of Levada: names here are batch numbers; move it away",
                )
            })?;
            numbers.insert(number);
        }
        Ok(NumberedLog { store, folder, numbers: Mutex::new(numbers) })
    }

    pub(super) fn latest(&self) -> Option<u64> {
        self.numbers().last().copied()
    }

    /// Whether every file up to `n` is there.
    pub(super) fn keeps_all(&self, n: u64) -> bool {
        (0..).zip(self.numbers().range(..=n)).take_while(|(wanted, found)| wanted == *found).count() as u64 == n + 1
    }

    /// The path of a file, as the user knows it.
    pub(super) fn describe(&self, n: u64) -> String {
        self.store.describe(&self.path(n))
    }

    /// Fails when file `n` isn't there, by its path and its neighbours'.
    pub(super) fn require(&self, n: u64) -> Result<()> {
        let numbers = self.numbers();
        if numbers.contains(&n) {
            return Ok(());
        }
        let folder = self.folder;
        let message = match (numbers.range(..n).next_back(), numbers.range(n..).next()) {
            (Some(below), Some(above)) => format!("{folder}/{n} is missing between {below} and {above}"),
            (None, Some(above)) => format!("{folder}/{n} is missing before {above}"),
            (Some(below), None) => format!("{folder}/{n} is missing after {below}"),
            (None, None) => format!("{folder}/{n} is missing, and {folder}/ is empty"),
        };
        Err(Error::corrupt(self.describe(n), message))
    }

    /// File `n`, with its path for errors.
    pub(super) fn get(&self, n: u64) -> Result<(String, Vec<u8>)> {
        self.require(n)?;
        match self.store.get(&self.path(n))? {
            Some(bytes) => Ok((self.describe(n), bytes)),
            None => Err(Error::corrupt(self.describe(n), "it was removed while the query was running")),
        }
    }

    /// Writes file `n`, which must follow the latest.
    ///
    /// # Errors
    /// Conflict when it is there; Internal when it is out of order.
    pub(super) fn put(&self, n: u64, bytes: &[u8]) -> Result<()> {
        let mut numbers = self.numbers();
        let next = numbers.last().map_or(0, |latest| latest + 1);
        if n != next && !numbers.contains(&n) {
            return Err(Error::internal(format!("{}/{n} is written where {next} is due", self.folder)));
        }
        self.store.put_new(&self.path(n), &mut |out| out.write_all(bytes))?;
        numbers.insert(n);
        Ok(())
    }

    /// Takes back that file `n` is there: what stands under its name is no entry, and will be written anew.
    pub(super) fn discard(&self, n: u64) -> Result<()> {
        self.numbers().remove(&n);
        self.store.discard(&self.path(n))
    }

    /// Writes something under the name of file `n` that is no entry.
    pub(super) fn occupy(&self, n: u64, bytes: &[u8]) -> Result<()> {
        self.store.put_new(&self.path(n), &mut |out| out.write_all(bytes))?;
        self.store.discard(&self.path(n))
    }

    /// Removes the files below `keep_from`.
    pub(super) fn purge(&self, keep_from: u64) -> Result<()> {
        let mut numbers = self.numbers();
        while let Some(first) = numbers.first().copied().filter(|first| *first < keep_from) {
            self.store.delete(&self.path(first))?;
            numbers.pop_first();
        }
        Ok(())
    }

    fn path(&self, n: u64) -> String {
        format!("{}/{n}", self.folder)
    }

    fn numbers(&self) -> MutexGuard<'_, BTreeSet<u64>> {
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A batch or entry number as we write it: `07` and `+7` are no names of ours, nor is what no log will ever reach.
pub fn parse_number(name: &str) -> Option<u64> {
    name.parse().ok().filter(|number: &u64| number.to_string() == name && i64::try_from(*number).is_ok())
}
