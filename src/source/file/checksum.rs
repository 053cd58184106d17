//! Whether the bytes of a file are those that the manifest of a file sink promises.
//!
//! Bytes are summed up as they are read anyway, in one piece or in parts in any order. What is not read to its end is not
//! checked.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::{Mutex, PoisonError};

use super::files::FileEntry;
use super::metadata::NamedFile;
use crate::error::{Error, Result};

/// The error of a file whose bytes were read and have another checksum.
fn differs(shown: &str, promised: u32, found: u32) -> Error {
    Error::corrupt(
        shown,
        format!(
            "the manifest of its folder says that its bytes have the checksum {promised:08x}, and they have {found:08x}"
        ),
    )
}

/// The error of a file that a decompressor can't read, where a manifest says that it was written whole.
pub fn damaged(file: &NamedFile, how: &io::Error) -> Option<Error> {
    file.0.crc32c.map(|_| Error::corrupt(&file.1, format!("the file is not as it was written: {how}")))
}

/// The sum of a file that is read from front to end.
pub struct Front {
    shown: String,
    promised: Option<u32>,
    sum: u32,
}

impl Front {
    pub fn new(file: &NamedFile) -> Self {
        Front { shown: file.1.clone(), promised: file.0.crc32c, sum: 0 }
    }

    /// Adds the next bytes; `last`: none follow.
    ///
    /// # Errors
    /// One that holds ours: they are not what was promised.
    pub fn add(&mut self, bytes: &[u8], last: bool) -> io::Result<()> {
        let Some(promised) = self.promised else { return Ok(()) };
        self.sum = crc32c::crc32c_append(self.sum, bytes);
        match last && self.sum != promised {
            true => Err(io::Error::other(differs(&self.shown, promised, self.sum))),
            false => Ok(()),
        }
    }
}

/// A file's parts that were read: where each begins, its length and its sum.
type Parts = BTreeMap<u64, (usize, u32)>;

/// The sums of files that several streams read in parts.
#[derive(Default)]
pub struct Sums(Mutex<HashMap<usize, Parts>>);

impl Sums {
    /// Adds a part of a file of that number; the last one that comes tells whether the file is what was promised.
    ///
    /// # Errors
    /// Corrupt, naming the file: it is not.
    pub fn add(&self, number: usize, (entry, shown): &NamedFile, start: u64, bytes: &[u8]) -> Result<()> {
        let FileEntry { crc32c: Some(promised), size, .. } = entry else { return Ok(()) };
        let sum = crc32c::crc32c(bytes);
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let parts = files.entry(number).or_default();
        parts.insert(start, (bytes.len(), sum));
        if parts.values().map(|(length, _)| *length as u64).sum::<u64>() < *size {
            return Ok(());
        }
        let whole = parts.values().fold(0, |whole, (length, part)| crc32c::crc32c_combine(whole, *part, *length));
        files.remove(&number);
        if whole == *promised { Ok(()) } else { Err(differs(shown, *promised, whole)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(bytes: &[u8], crc32c: u32) -> NamedFile {
        let size = bytes.len() as u64;
        (FileEntry { path: "f".into(), mtime: 0, size, etag: None, crc32c: Some(crc32c) }, "out/f".into())
    }

    #[test]
    fn parts_in_any_order_are_the_whole() {
        let bytes = b"what was written, and is read in three parts";
        let cut = [(30, &bytes[30..]), (0, &bytes[..7]), (7, &bytes[7..30])];
        let read = |file: &NamedFile| {
            let sums = Sums::default();
            cut.iter().map(|(start, part)| sums.add(0, file, *start, part)).collect::<Vec<_>>()
        };
        assert!(read(&named(bytes, crc32c::crc32c(bytes))).iter().all(Result::is_ok));
        let found = read(&named(bytes, 1));
        assert!(found[0].is_ok() && found[1].is_ok(), "it is the last one that tells");
        let error = found[2].as_ref().unwrap_err();
        assert!(error.to_string().starts_with("out/f: the manifest of its folder says"), "{error}");
        assert_eq!(error.code(), "E0400");
    }

    #[test]
    fn a_front_is_checked_at_its_end() {
        let mut right = Front::new(&named(b"ab", crc32c::crc32c(b"ab")));
        assert!(right.add(b"a", false).is_ok() && right.add(b"b", true).is_ok());
        let mut wrong = Front::new(&named(b"ab", crc32c::crc32c(b"ab")));
        assert!(wrong.add(b"a", false).is_ok() && wrong.add(b"c", true).is_err());
    }
}
