//! Which files come next, and which were taken before.
//!
//! The source's log has numbered entries, each some files in the order they are read; a file is in one entry for
//! ever. An offset is a place in that log:
//!
//! ```text
//! {"logOffset": 4}              all files up to the end of entry 4
//! {"logOffset": 4, "files": 2}  the first two files of entry 4, and all before it
//! ```
//!
//! A batch normally takes a whole entry of its own. Only where many files are found at once and are to be read in
//! several batches (AVAILABLE NOW with a limit, a restart with a lower one) does a batch end inside an entry.
//! Entries are logged before an offset names them: one that no offset has reached, after a crash, is used first.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use serde_json::{Value, json};

use super::files::{FileEntry, Version};
use super::options::{FileOptions, Rate};
use super::place::Place;
use crate::checkpoint::SourceLog;
use crate::error::{Error, Result};
use crate::source::{Offset, OffsetRange, ReadLimit};

/// A place between two files of the log: `entries` are behind it, and `files` of the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
struct Position {
    entries: u64,
    files: usize,
}

impl Position {
    fn of(offset: Option<&Offset>) -> Result<Self> {
        let Some(Offset(value)) = offset else { return Ok(Position::default()) };
        let number = |name: &str| value.get(name).map(|n| n.as_u64().ok_or(()));
        match (number("logOffset"), number("files")) {
            (Some(Ok(entry)), None) => Ok(Position { entries: entry + 1, files: 0 }),
            (Some(Ok(entry)), Some(Ok(files))) => Ok(Position { entries: entry, files: files as usize }),
            _ => Err(Error::corrupt("offset of a file source", format!("{value} is no offset of a file source"))),
        }
    }

    fn offset(self) -> Offset {
        match self.files {
            0 => Offset(json!({"logOffset": self.entries.saturating_sub(1)})),
            files => Offset(json!({"logOffset": self.entries, "files": files})),
        }
    }
}

type Files = Arc<Vec<FileEntry>>;

/// So many files of an old list are looked at at once.
const LOOK: usize = 64;

/// The source's log and what it says.
#[derive(Debug)]
pub struct Discovery {
    log: SourceLog,
    /// Entries that may still be read; older ones are read from the log when they are asked for.
    entries: BTreeMap<u64, Files>,
    /// How many entries there are.
    count: u64,
    /// Every file that is in an entry, as it was.
    seen: HashMap<String, Version>,
    /// The newest time of a file that is in an entry.
    newest: Option<i64>,
    /// Found by an earlier look, and not in an entry yet.
    pending: VecDeque<FileEntry>,
}

impl Discovery {
    /// Reads the log.
    ///
    /// # Errors
    /// Those of the log; Corrupt for a line that names no file.
    pub fn open(log: SourceLog) -> Result<Self> {
        let lines = match log.latest()? {
            Some(latest) => log.read(0, latest)?,
            None => Vec::new(),
        };
        Self::with_lines(log, lines)
    }

    fn with_lines(log: SourceLog, lines: Vec<(u64, Value)>) -> Result<Self> {
        let mut discovery = Discovery {
            log,
            entries: BTreeMap::new(),
            count: 0,
            seen: HashMap::new(),
            newest: None,
            pending: VecDeque::new(),
        };
        for (entry, files) in grouped(lines)? {
            discovery.remember(entry, files);
        }
        Ok(discovery)
    }

    fn remember(&mut self, entry: u64, files: Vec<FileEntry>) {
        for file in &files {
            self.newest = self.newest.max(Some(file.mtime));
            self.seen.insert(file.path.clone(), file.version());
        }
        self.entries.insert(entry, Arc::new(files));
        self.count = self.count.max(entry + 1);
    }

    /// How far the next batch goes: see [`Source::latest_offset`](crate::source::Source::latest_offset).
    ///
    /// # Errors
    /// Io: the place can't be listed. Conflict: a file that was taken has changed. Those of the log.
    pub fn next(
        &mut self,
        place: &Place,
        options: &FileOptions,
        after: Option<&Offset>,
        limit: &ReadLimit,
    ) -> Result<Option<Offset>> {
        let after = Position::of(after)?;
        self.check_reached(after)?;
        let until = limit.until.as_ref().map(|until| Position::of(Some(until))).transpose()?;
        if limit.look {
            let logged = Position { entries: self.count, files: 0 };
            let found = after < logged || !self.pending.is_empty() || !self.look(place, options)?.is_empty();
            return Ok(found.then(|| Position { entries: self.count + 1, files: 0 }.offset()));
        }
        if limit.unlimited && until.is_none() {
            self.pending.clear();
            let found = self.look(place, options)?;
            self.append(found)?;
        }
        let end = until.unwrap_or(Position { entries: self.count, files: 0 });
        let rate = if limit.unlimited { Rate::Unset } else { effective(options.rate, limit) };
        if let Some(position) = self.take_logged(after, end, rate)? {
            return Ok(Some(position.offset()));
        }
        if until.is_some() || limit.unlimited {
            return Ok(None);
        }
        let files = self.take_new(place, options, rate)?;
        let found = !files.is_empty();
        self.append(files)?;
        Ok(found.then(|| Position { entries: self.count, files: 0 }.offset()))
    }

    fn check_reached(&self, after: Position) -> Result<()> {
        if after.entries > self.count || (after.entries == self.count && after.files > 0) {
            let shown = after.offset().0;
            let message = format!("the file is missing: the query has read up to {shown} of the files that it took");
            let needed = after.entries + u64::from(after.files > 0);
            return Err(Error::corrupt(self.log.lost(self.count, needed), message));
        }
        Ok(())
    }

    /// The end of a batch of files that are in entries and behind `after`.
    fn take_logged(&mut self, after: Position, end: Position, rate: Rate) -> Result<Option<Position>> {
        let (mut at, mut taken, mut bytes) = (after, 0u64, 0u64);
        while at < end {
            let files = self.entry(at.entries)?;
            match files.get(at.files) {
                None => at = Position { entries: at.entries + 1, files: 0 },
                Some(file) => {
                    let over = match rate {
                        Rate::Unset => false,
                        Rate::Files(most) => taken >= most,
                        Rate::Bytes(most) => taken > 0 && bytes.saturating_add(file.size) > most,
                    };
                    if over {
                        break;
                    }
                    taken += 1;
                    bytes = bytes.saturating_add(file.size);
                    at.files += 1;
                }
            }
            if at.files == files.len() {
                at = Position { entries: at.entries + 1, files: 0 };
            }
        }
        Ok((taken > 0).then_some(at))
    }

    fn take_new(&mut self, place: &Place, options: &FileOptions, rate: Rate) -> Result<Vec<FileEntry>> {
        let listed_before = !self.pending.is_empty() && !options.latest_first;
        if !listed_before {
            self.pending = self.look(place, options)?.into();
        }
        let (mut files, mut bytes) = (Vec::new(), 0u64);
        loop {
            let wanted = match rate {
                Rate::Files(most) => usize::try_from(most).unwrap_or(usize::MAX) - files.len(),
                _ => usize::MAX,
            };
            let count = self.pending.len().min(wanted).min(LOOK);
            if count == 0 {
                return Ok(files);
            }
            let mut next: VecDeque<FileEntry> = self.pending.range(..count).cloned().collect();
            if listed_before {
                // The list may be old by now.
                next = place.look_all(next.make_contiguous())?.into_iter().flatten().collect();
            }
            self.pending.drain(..count);
            while let Some(file) = next.pop_front() {
                if matches!(rate, Rate::Bytes(most) if !files.is_empty() && bytes.saturating_add(file.size) > most) {
                    next.push_front(file);
                    next.append(&mut self.pending);
                    self.pending = next;
                    return Ok(files);
                }
                bytes = bytes.saturating_add(file.size);
                files.push(file);
            }
        }
    }

    /// The files at the place that are in no entry, in the order they are taken.
    fn look(&mut self, place: &Place, options: &FileOptions) -> Result<Vec<FileEntry>> {
        let limited = options.latest_first && options.rate != Rate::Unset;
        let oldest = match (options.max_file_age, self.newest) {
            (Some(age), Some(newest)) if !limited => Some(newest.saturating_sub(age)),
            _ => None,
        };
        if let Some(oldest) = oldest {
            self.seen.retain(|_, was| was.mtime >= oldest);
        }
        let mut found = Vec::new();
        for file in place.list()? {
            match self.seen.get(&file.path) {
                Some(was) => file.check(was, &place.full(&file))?,
                None if oldest.is_some_and(|oldest| file.mtime < oldest) => {}
                None => found.push(file),
            }
        }
        if options.latest_first {
            found.reverse();
        }
        Ok(found)
    }

    fn append(&mut self, files: Vec<FileEntry>) -> Result<()> {
        if files.is_empty() {
            return Ok(());
        }
        let lines = files.iter().map(serde_json::to_value).collect::<std::result::Result<Vec<_>, _>>();
        let lines = lines.map_err(|e| Error::internal(format!("a file entry as JSON: {e}")))?;
        self.log.append(self.count, &lines)?;
        self.remember(self.count, files);
        Ok(())
    }

    fn entry(&self, number: u64) -> Result<Files> {
        if let Some(files) = self.entries.get(&number) {
            return Ok(files.clone());
        }
        match grouped(self.log.read(number, number)?)?.remove(&number) {
            Some(files) => Ok(Arc::new(files)),
            None => Err(Error::corrupt(self.log.lost(number, number + 1), format!("entry {number} is missing"))),
        }
    }

    /// The files of a range, in order.
    ///
    /// # Errors
    /// Corrupt: the log doesn't hold them.
    pub fn files(&self, range: &OffsetRange) -> Result<Vec<FileEntry>> {
        let (mut at, end) = (Position::of(range.start.as_ref())?, Position::of(Some(&range.end))?);
        self.check_reached(end)?;
        let mut files = Vec::new();
        while at < end {
            let entry = self.entry(at.entries)?;
            let to = if at.entries == end.entries { end.files } else { entry.len() };
            files.extend_from_slice(entry.get(at.files..to).unwrap_or_default());
            at = Position { entries: at.entries + 1, files: 0 };
        }
        Ok(files)
    }

    /// Entries before `end` won't be asked for in the ordinary way.
    ///
    /// # Errors
    /// Corrupt: `end` is no offset of ours.
    pub fn forget(&mut self, end: &Offset) -> Result<()> {
        let end = Position::of(Some(end))?;
        self.entries = self.entries.split_off(&end.entries);
        Ok(())
    }
}

fn effective(rate: Rate, limit: &ReadLimit) -> Rate {
    match (rate, limit.max_bytes) {
        (Rate::Unset, Some(bytes)) => Rate::Bytes(bytes),
        (rate, _) => rate,
    }
}

fn grouped(lines: Vec<(u64, Value)>) -> Result<BTreeMap<u64, Vec<FileEntry>>> {
    let mut entries: BTreeMap<u64, Vec<FileEntry>> = BTreeMap::new();
    for (entry, line) in lines {
        let file = serde_json::from_value(line.clone())
            .map_err(|e| Error::corrupt("log of a file source", format!("entry {entry}: {line} names no file: {e}")))?;
        entries.entry(entry).or_default().push(file);
    }
    Ok(entries)
}

#[cfg(test)]
#[path = "discovery_tests.rs"]
pub(in crate::source) mod tests;
