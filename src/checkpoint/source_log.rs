//! What a source must remember beside its offsets: `sources/<name>/`, numbered entries of JSON lines.
//!
//! Most entries are a file each, named by their number. Every tenth is written together with the nine before it, every
//! hundredth with the ninety-nine before it, and so on:
//!
//! ```text
//! 0 1 … 8            → 0-9.compact           written as entry 9; 0 … 8 are removed when it is durable
//! 0-9.compact 10 11  → … 0-99.compact        written as entry 99
//! ```
//! So n entries are at most 9 files for each digit of n, and each line is written at most once for each digit. A lower
//! file goes only when the higher one is durable: a crash leaves both at the worst, and the higher one counts.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use super::numbered_log::parse_number;
use super::{Store, text};
use crate::error::{Error, Result};

const SUFFIX: &str = ".compact";

/// What a source must remember beside its offsets: numbered entries of JSON lines, from 0, compacted now and then.
/// Clones share one log.
#[derive(Debug, Clone)]
pub struct SourceLog(Arc<Mutex<Kind>>);

#[derive(Debug)]
enum Kind {
    Memory(Vec<Vec<Value>>),
    Stored(Stored),
}

impl SourceLog {
    /// A log that lives only in memory: for reads outside a query.
    pub fn in_memory() -> Self {
        SourceLog(Arc::new(Mutex::new(Kind::Memory(Vec::new()))))
    }

    /// The log of the source occurrence `name`. Its folder is listed when it is first asked for something.
    pub(super) fn stored(store: Arc<dyn Store>, name: &str) -> Self {
        let folder = format!("sources/{}", safe_name(name));
        SourceLog(Arc::new(Mutex::new(Kind::Stored(Stored { store, folder, listed: None }))))
    }

    /// The highest entry.
    ///
    /// # Errors
    /// Corrupt, by path: a foreign file, an entry missing in the middle.
    pub fn latest(&self) -> Result<Option<u64>> {
        match &mut *self.lock() {
            Kind::Memory(entries) => Ok((entries.len() as u64).checked_sub(1)),
            Kind::Stored(stored) => Ok(stored.listed()?.next().checked_sub(1)),
        }
    }

    /// Writes entry `n`, which must be the one after the latest.
    ///
    /// # Errors
    /// Internal: out of order. Conflict: another run has written it. Corrupt, by path: an entry that it is compacted
    /// with is damaged. In each case nothing is written.
    pub fn append(&self, n: u64, lines: &[Value]) -> Result<()> {
        let mut kind = self.lock();
        let next = match &mut *kind {
            Kind::Memory(entries) => entries.len() as u64,
            Kind::Stored(stored) => stored.listed()?.next(),
        };
        if n != next {
            return Err(Error::internal(format!("source log entry {n} is written where {next} is due")));
        }
        match &mut *kind {
            Kind::Memory(entries) => entries.push(lines.to_vec()),
            Kind::Stored(stored) => stored.append(n, lines)?,
        }
        Ok(())
    }

    /// The lines of the entries `from..=to`, each with its entry's number, in order.
    ///
    /// # Errors
    /// Corrupt, by path: a file that holds one of them is damaged or missing, or there is no such entry.
    pub fn read(&self, from: u64, to: u64) -> Result<Vec<(u64, Value)>> {
        match &mut *self.lock() {
            Kind::Memory(entries) => {
                let numbered = (0..).zip(entries.iter()).filter(|(n, _)| (from..=to).contains(n));
                Ok(numbered.flat_map(|(n, lines)| lines.iter().map(move |line| (n, line.clone()))).collect())
            }
            Kind::Stored(stored) => stored.read(from, to),
        }
    }

    /// The path of the file that should hold entry `first`, where the log should go on up to entry `next`.
    pub fn lost(&self, first: u64, next: u64) -> String {
        match &*self.lock() {
            Kind::Memory(_) => "the log of a source".to_string(),
            Kind::Stored(stored) => stored.store.describe(&stored.path(Piece::lost(first, next))),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Kind> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
struct Stored {
    store: Arc<dyn Store>,
    folder: String,
    listed: Option<Listed>,
}

#[derive(Debug, Default)]
struct Listed {
    /// Follow each other without a gap, from 0.
    pieces: Vec<Piece>,
    /// Left beside the piece that covers them, by a crash.
    covered: Vec<Piece>,
}

/// A file of entries `first..=last`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Piece {
    first: u64,
    last: u64,
}

impl Listed {
    fn next(&self) -> u64 {
        self.pieces.last().map_or(0, |piece| piece.last + 1)
    }
}

impl Piece {
    fn name(self) -> String {
        match self.first == self.last {
            true => self.first.to_string(),
            false => format!("{}-{}{SUFFIX}", self.first, self.last),
        }
    }

    fn parse(name: &str) -> Option<Self> {
        if let Some(n) = parse_number(name) {
            return Some(Piece { first: n, last: n });
        }
        let (first, last) = name.strip_suffix(SUFFIX)?.split_once('-')?;
        let piece = Piece { first: parse_number(first)?, last: parse_number(last)? };
        (piece.last > piece.first && piece == Piece::written_as(piece.last, piece.width()?)).then_some(piece)
    }

    /// A power of ten that this piece may have as its width.
    fn width(self) -> Option<u64> {
        let width = (self.last - self.first).checked_add(1)?;
        let mut power = 1u64;
        while power < width {
            power = power.checked_mul(10)?;
        }
        (power == width && (self.last + 1).is_multiple_of(width)).then_some(width)
    }

    fn written_as(last: u64, width: u64) -> Self {
        Piece { first: (last + 1).saturating_sub(width), last }
    }

    /// The file that held entry `first`, and perhaps more of those in front of entry `next`: the widest that can be.
    fn lost(first: u64, next: u64) -> Self {
        let mut lost = Piece { first, last: first };
        let mut width = 10u64;
        while first.is_multiple_of(width) && first.saturating_add(width) <= next {
            lost.last = first + width - 1;
            let Some(wider) = width.checked_mul(10) else { break };
            width = wider;
        }
        lost
    }

    /// The file that entry `n` is written as: the widest one that ends there.
    fn ending_at(n: u64) -> Self {
        let mut width = 1u64;
        while let Some(wider) = width.checked_mul(10).filter(|wider| (n + 1).is_multiple_of(*wider)) {
            width = wider;
        }
        Piece::written_as(n, width)
    }
}

impl Stored {
    fn listed(&mut self) -> Result<&mut Listed> {
        if self.listed.is_none() {
            self.listed = Some(self.list()?);
        }
        self.listed.as_mut().ok_or_else(|| Error::internal("a source log is not listed"))
    }

    fn list(&self) -> Result<Listed> {
        let mut found = Vec::new();
        for name in self.store.list(&self.folder)? {
            let piece = Piece::parse(&name).ok_or_else(|| {
                let path = self.store.describe(&format!("{}/{name}", self.folder));
                Error::corrupt(path, "not a file of Levada: names here are entry numbers, such as 7 or 0-9.compact")
            })?;
            found.push(piece);
        }
        // The widest of those that begin together first: the others are parts of it.
        found.sort_by_key(|piece| (piece.first, std::cmp::Reverse(piece.last)));
        let mut listed = Listed::default();
        for piece in found {
            let next = listed.next();
            if piece.first == next {
                listed.pieces.push(piece);
            } else if piece.last < next {
                listed.covered.push(piece);
            } else {
                let path = self.store.describe(&self.path(Piece::lost(next, piece.first)));
                return Err(Error::corrupt(path, format!("entry {next} is missing before {}", piece.name())));
            }
        }
        Ok(listed)
    }

    fn append(&mut self, n: u64, lines: &[Value]) -> Result<()> {
        let piece = Piece::ending_at(n);
        let below = self.listed()?.pieces.partition_point(|earlier| earlier.last < piece.first);
        let parts: Vec<Piece> = self.listed()?.pieces[below..].to_vec();
        let mut body = String::new();
        for part in &parts {
            let (path, bytes) = self.get(*part)?;
            body.push_str(text::body(&path, &bytes)?);
        }
        for line in lines {
            body.push_str(&text::to_line(&(n, line))?);
            body.push('\n');
        }
        let bytes = text::with_checksum(body.as_bytes());
        self.store.put_new(&self.path(piece), &mut |out| out.write_all(&bytes))?;
        let listed = self.listed()?;
        listed.pieces.truncate(below);
        listed.pieces.push(piece);
        let (gone, kept) = std::mem::take(&mut listed.covered).into_iter().partition(|old| old.first >= piece.first);
        listed.covered = kept;
        let gone: Vec<Piece> = gone;
        for old in parts.into_iter().chain(gone) {
            // The entry is written; an old file that stays is found covered at the next start.
            let _ = self.store.delete(&self.path(old));
        }
        Ok(())
    }

    fn read(&mut self, from: u64, to: u64) -> Result<Vec<(u64, Value)>> {
        let listed = self.listed()?;
        let next = listed.next();
        let wanted: Vec<Piece> =
            listed.pieces.iter().copied().filter(|piece| piece.first <= to && piece.last >= from).collect();
        if from <= to && to >= next {
            let path = self.store.describe(&format!("{}/{to}", self.folder));
            return Err(Error::corrupt(path, format!("entry {to} is needed, but missing: the log ends before {next}")));
        }
        let mut lines = Vec::new();
        for piece in wanted {
            let (path, bytes) = self.get(piece)?;
            for line in text::decode(&path, &bytes)? {
                let (n, line): (u64, Value) = text::from_line(&path, line)?;
                if !(piece.first..=piece.last).contains(&n) {
                    return Err(Error::corrupt(path, format!("it holds a line of entry {n}, under another's name")));
                }
                if (from..=to).contains(&n) {
                    lines.push((n, line));
                }
            }
        }
        Ok(lines)
    }

    fn get(&self, piece: Piece) -> Result<(String, Vec<u8>)> {
        let path = self.path(piece);
        let described = self.store.describe(&path);
        match self.store.get(&path)? {
            Some(bytes) => Ok((described, bytes)),
            None => Err(Error::corrupt(described, "it was removed while the query was running")),
        }
    }

    fn path(&self, piece: Piece) -> String {
        format!("{}/{}", self.folder, piece.name())
    }
}

/// A name that is one component of a path everywhere: letters, digits, `_`, `-`, `#` and inner dots stay as they are.
fn safe_name(name: &str) -> String {
    let mut safe = String::new();
    for (at, c) in name.char_indices() {
        if c.is_alphanumeric() || matches!(c, '_' | '-' | '#') || (c == '.' && at > 0) {
            safe.push(c);
        } else {
            let mut bytes = [0; 4];
            for byte in c.encode_utf8(&mut bytes).bytes() {
                safe.push_str(&format!("%{byte:02x}"));
            }
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::checkpoint::LocalStore;

    fn log(dir: &std::path::Path) -> SourceLog {
        SourceLog::stored(Arc::new(LocalStore::volatile(dir)), "bids#2")
    }

    fn lines(n: u64) -> Vec<Value> {
        (0..n % 3).map(|at| json!({"path": format!("f{n}.{at}"), "size": n})).collect()
    }

    fn expected(from: u64, to: u64) -> Vec<(u64, Value)> {
        (from..=to).flat_map(|n| lines(n).into_iter().map(move |line| (n, line))).collect()
    }

    fn names(dir: &std::path::Path) -> Vec<String> {
        LocalStore::volatile(dir).list("sources/bids#2").unwrap()
    }

    #[test]
    fn every_length_reads_back_in_memory_and_from_disk() {
        let dir = tempfile::tempdir().unwrap();
        let (stored, memory) = (log(dir.path()), SourceLog::in_memory());
        assert_eq!((stored.latest().unwrap(), memory.latest().unwrap()), (None, None));
        for n in 0..123 {
            for log in [&stored, &memory] {
                log.append(n, &lines(n)).unwrap();
                assert_eq!(log.latest().unwrap(), Some(n));
                assert_eq!(log.read(0, n).unwrap(), expected(0, n));
                assert_eq!(log.read(n, n).unwrap(), expected(n, n));
            }
            let again = self::log(dir.path());
            assert_eq!(again.latest().unwrap(), Some(n));
            assert_eq!(again.read(n.saturating_sub(11), n).unwrap(), expected(n.saturating_sub(11), n));
        }
        assert_eq!(names(dir.path()), ["0-99.compact", "100-109.compact", "110-119.compact", "120", "121", "122"]);
        assert!(matches!(stored.append(125, &[]), Err(Error::Internal { .. })));
        assert!(matches!(memory.append(122, &[]), Err(Error::Internal { .. })));
    }

    #[test]
    fn ten_thousand_entries_are_few_files_and_few_bytes() {
        let dir = tempfile::tempdir().unwrap();
        let log = log(dir.path());
        for n in 0..9_999 {
            log.append(n, &[json!(n)]).unwrap();
        }
        assert_eq!(names(dir.path()).len(), 36);
        log.append(9_999, &[json!(9_999)]).unwrap();
        assert_eq!(names(dir.path()), ["0-9999.compact"]);
        assert_eq!(self::log(dir.path()).read(5_000, 5_001).unwrap(), [(5_000, json!(5_000)), (5_001, json!(5_001))]);
    }

    #[test]
    fn a_crash_between_the_compact_file_and_the_removal_changes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("sources/bids#2");
        let first = log(dir.path());
        for n in 0..9 {
            first.append(n, &lines(n)).unwrap();
        }
        let old: Vec<_> = (0..9).map(|n| std::fs::read(folder.join(n.to_string())).unwrap()).collect();
        first.append(9, &lines(9)).unwrap();
        for (n, bytes) in old.iter().enumerate() {
            std::fs::write(folder.join(n.to_string()), bytes).unwrap();
        }
        let again = log(dir.path());
        assert_eq!((again.latest().unwrap(), again.read(0, 9).unwrap()), (Some(9), expected(0, 9)));
        for n in 10..100 {
            again.append(n, &lines(n)).unwrap();
        }
        assert_eq!(names(dir.path()), ["0-99.compact"]);
        assert_eq!(again.read(0, 99).unwrap(), expected(0, 99));
    }

    #[test]
    fn damage_and_gaps_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("sources/bids#2");
        let whole = log(dir.path());
        for n in 0..25 {
            whole.append(n, &lines(n)).unwrap();
        }
        for name in ["0-9.compact", "22"] {
            let file = folder.join(name);
            let good = std::fs::read(&file).unwrap();
            for length in (0..good.len()).step_by(9) {
                std::fs::write(&file, &good[..length]).unwrap();
                let error = log(dir.path()).read(0, 24).unwrap_err();
                assert!(matches!(&error, Error::Corrupt { path, .. } if path.ends_with(name)), "{error}");
            }
            std::fs::remove_file(&file).unwrap();
            let error = log(dir.path()).latest().unwrap_err();
            assert!(matches!(&error, Error::Corrupt { path, .. } if path.ends_with(name)), "{error}");
            std::fs::write(&file, &good).unwrap();
        }
        let message = log(dir.path()).read(20, 25).unwrap_err().to_string();
        assert!(message.contains("entry 25 is needed, but missing"), "{message}");
        std::fs::rename(folder.join("24"), folder.join("29")).unwrap();
        assert!(log(dir.path()).latest().unwrap_err().to_string().contains("/24: entry 24 is missing before 29"));
        std::fs::rename(folder.join("29"), folder.join("20-24.compact")).unwrap();
        assert!(log(dir.path()).latest().unwrap_err().to_string().contains("20-24.compact: not a file of Levada"));
    }

    #[test]
    fn names_are_one_component_of_a_path() {
        assert_eq!(safe_name("bids#2"), "bids#2");
        assert_eq!(safe_name("../a b/ä."), "%2e.%2fa%20b%2fä.");
        assert_eq!(safe_name(".tmp-x"), "%2etmp-x");
        assert_eq!(safe_name("100%"), "100%25");
    }
}
