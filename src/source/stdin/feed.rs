//! Lines from a reader that blocks, kept until they are committed.

use std::collections::VecDeque;
use std::io::Read;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::error::{Error, Result};

/// The reader waits while so many bytes are kept.
const KEPT: usize = 64 << 20;

/// One record as it came.
#[derive(Debug)]
pub struct Line {
    /// The line it begins on, from 1.
    pub number: u64,
    pub bytes: Vec<u8>,
    /// It was longer than a record may be, and this is its front.
    pub cut: bool,
}

/// Where a record ends.
#[derive(Debug, Clone, Copy)]
pub struct Splitter {
    /// A newline between quotes ends no record.
    pub quotes: bool,
    /// A line of nothing but blanks is a record.
    pub blank_lines: bool,
    /// The first record is kept apart, and counts for none.
    pub header: bool,
    pub max_record: usize,
}

/// The header, where there is one, and some records.
pub type HeaderAndLines = (Option<Arc<Line>>, Vec<Arc<Line>>);

/// What was read and isn't committed.
#[derive(Debug)]
pub struct Feed {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    lines: VecDeque<Arc<Line>>,
    /// How many records were before `lines`.
    gone: u64,
    bytes: usize,
    header: Option<Arc<Line>>,
    ended: bool,
    failed: Option<Error>,
    /// Nobody reads any more.
    closed: bool,
}

impl Feed {
    /// Starts to read, on a thread of its own, which ends with the input.
    ///
    /// # Errors
    /// Io: no thread can be made.
    pub fn start(reader: Box<dyn Read + Send>, splitter: Splitter) -> Result<Arc<Self>> {
        let feed = Arc::new(Feed { state: Mutex::default(), changed: Condvar::new() });
        let weak = Arc::downgrade(&feed);
        let pump = move || {
            let mut pump = Pump::new(splitter);
            let mut reader = reader;
            let mut piece = vec![0; 64 << 10];
            loop {
                let read = match reader.read(&mut piece) {
                    Ok(read) => read,
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                    Err(error) => {
                        if let Some(feed) = weak.upgrade() {
                            feed.end(Some(Error::io("read standard input", &error)));
                        }
                        return;
                    }
                };
                let lines = if read == 0 { pump.rest().into_iter().collect() } else { pump.take(&piece[..read]) };
                let Some(feed) = weak.upgrade() else { return };
                feed.add(lines, splitter.header);
                if read == 0 {
                    return feed.end(None);
                }
                if !feed.wait_for_room() {
                    return;
                }
            }
        };
        let started = std::thread::Builder::new().name("stdin".to_string()).spawn(pump);
        started.map_err(|e| Error::io("start a thread for standard input", &e))?;
        Ok(feed)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, lines: Vec<Line>, header: bool) {
        let mut state = self.lock();
        for line in lines {
            let line = Arc::new(line);
            if header && state.header.is_none() {
                state.header = Some(line);
                continue;
            }
            state.bytes += line.bytes.len();
            state.lines.push_back(line);
        }
        self.changed.notify_all();
    }

    fn end(&self, failed: Option<Error>) {
        let mut state = self.lock();
        state.ended = failed.is_none();
        state.failed = failed;
        self.changed.notify_all();
    }

    /// Waits until there is room for more; answers whether somebody still reads.
    fn wait_for_room(&self) -> bool {
        let mut state = self.lock();
        while state.bytes > KEPT && !state.closed {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        !state.closed
    }

    /// How many records, of all since the start, the next batch may end at.
    ///
    /// # Errors
    /// Io: reading failed, and everything before that was handed out.
    pub fn available(&self, after: u64, until: Option<u64>, max_bytes: Option<u64>) -> Result<u64> {
        let state = self.lock();
        let mut end = state.gone + state.lines.len() as u64;
        if after > end || after < state.gone {
            return Err(lost(after));
        }
        if let (Some(error), true) = (&state.failed, end == after) {
            return Err(error.clone());
        }
        end = end.min(until.unwrap_or(u64::MAX));
        if let Some(most) = max_bytes {
            let (mut at, mut bytes) = (after, 0);
            for line in state.lines.iter().skip((after - state.gone) as usize) {
                bytes += line.bytes.len() as u64;
                if at >= end || (bytes > most && at > after) {
                    break;
                }
                at += 1;
            }
            end = at;
        }
        Ok(end)
    }

    /// The records behind the first `start` up to `end`, and the header.
    ///
    /// # Errors
    /// Conflict: this process doesn't hold them.
    pub fn lines(&self, start: u64, end: u64) -> Result<HeaderAndLines> {
        let state = self.lock();
        if start < state.gone || end > state.gone + state.lines.len() as u64 || start > end {
            return Err(lost(start));
        }
        let range = (start - state.gone) as usize..(end - state.gone) as usize;
        Ok((state.header.clone(), state.lines.range(range).cloned().collect()))
    }

    /// Whether all of the input was read.
    pub fn finished(&self) -> bool {
        self.lock().ended
    }

    /// Drops the first `end` records.
    pub fn forget(&self, end: u64) {
        let mut state = self.lock();
        while state.gone < end
            && let Some(line) = state.lines.pop_front()
        {
            state.bytes -= line.bytes.len();
            state.gone += 1;
        }
        self.changed.notify_all();
    }

    /// Waits until `enough` records came or the input has ended.
    #[cfg(test)]
    pub fn wait(&self, enough: u64) {
        let mut state = self.lock();
        while state.gone + (state.lines.len() as u64) < enough && !state.ended && state.failed.is_none() {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Lets the reader's thread go at its next piece.
    pub fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }
}

fn lost(at: u64) -> Error {
    Error::conflict(format!("record {at} of standard input is not held by this process, and can't be read again"))
}

/// Cuts pieces of input into records.
#[derive(Debug)]
struct Pump {
    splitter: Splitter,
    /// The record under way.
    open: Vec<u8>,
    cut: bool,
    in_quotes: bool,
    /// The line that the record under way begins on, and the one at hand.
    begun: u64,
    line: u64,
    first: bool,
}

impl Pump {
    fn new(splitter: Splitter) -> Self {
        Pump { splitter, open: Vec::new(), cut: false, in_quotes: false, begun: 1, line: 1, first: true }
    }

    fn take(&mut self, mut piece: &[u8]) -> Vec<Line> {
        let mut lines = Vec::new();
        while let Some(newline) = memchr::memchr(b'\n', piece) {
            let (line, rest) = piece.split_at(newline + 1);
            self.push(line);
            self.line += 1;
            // A record that is too long ends at its first newline: its quotes can't be trusted.
            if !self.in_quotes || self.cut {
                lines.extend(self.close());
            }
            piece = rest;
        }
        self.push(piece);
        lines
    }

    fn push(&mut self, part: &[u8]) {
        if self.splitter.quotes {
            self.in_quotes ^= memchr::memchr_iter(b'"', part).count() % 2 == 1;
        }
        let room = self.splitter.max_record.saturating_sub(self.open.len());
        if part.len() > room + 1 {
            self.cut = true;
            self.open.truncate(1 << 10);
        } else if !self.cut {
            self.open.extend_from_slice(part);
        }
    }

    fn close(&mut self) -> Option<Line> {
        let mut bytes = std::mem::take(&mut self.open);
        if std::mem::take(&mut self.first) && bytes.starts_with(b"\xEF\xBB\xBF") {
            bytes.drain(..3);
        }
        let line = Line { number: self.begun, bytes, cut: std::mem::take(&mut self.cut) };
        self.begun = self.line;
        self.in_quotes = false;
        let blank = line.bytes.iter().all(|b| b.is_ascii_whitespace()) && !line.cut;
        (!blank || self.splitter.blank_lines).then_some(line)
    }

    /// The last record, which no newline ends.
    fn rest(&mut self) -> Option<Line> {
        if self.open.is_empty() && !self.cut { None } else { self.close() }
    }
}
