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
                let path = self.store.describe(&format!("{}/{next}", self.folder));
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
