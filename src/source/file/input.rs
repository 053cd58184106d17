//! The bytes of one unit of work: a range of a plain file, cut at its lines, or a file read from front to end.
//!
//! Holds one buffer, which grows to the longest record and no further than the limit. Knows nothing of records
//! but that, where a file is cut into ranges, a newline ends them.

use std::io::{self, BufRead, Read};
use std::sync::Arc;

use super::checksum;
use super::files::OpenFile;
use super::metadata::NamedFile;
use crate::error::{Error, Result};
use crate::format::Compression;

/// Files are read from front to end in pieces of this size.
const PIECE: usize = 2 << 20;
/// And beyond a part's end, to the end of its last line, in pieces of this.
const TAIL: usize = 64 << 10;

/// What is being read.
pub struct Input {
    /// Index into the files of the read.
    pub file: usize,
    bytes: Bytes,
    /// Where in the file (or in what is inside a compressed one) the buffer begins.
    pub base: u64,
    /// The line the buffer begins on; `None` where the lines before it weren't read.
    pub line: Option<u64>,
    pub pos: usize,
    pub end: usize,
    /// Nothing follows what is in the buffer.
    pub last: bool,
    /// What is in the buffer is all that a compressed file's decoder gave before it failed.
    pub damage: Option<io::Error>,
}

enum Bytes {
    /// All of it is in the buffer.
    Loaded,
    Stream(Box<dyn Read + Send>),
}

/// A record that is longer than the limit.
pub struct TooLong {
    /// Where it begins in the buffer.
    pub start: usize,
    /// How much of it was read.
    pub length: usize,
}

impl TooLong {
    /// So much of it is kept for the message.
    pub const SHOWN: usize = 1 << 10;
}

impl Input {
    /// The lines of a plain file of `size` bytes that begin at or behind `start` and before `end`, read into `buffer`.
    ///
    /// # Errors
    /// Those of reading.
    pub fn range(
        file: usize,
        open: &dyn OpenFile,
        size: u64,
        (start, end): (u64, u64),
        buffer: &mut Vec<u8>,
        max_record: usize,
    ) -> Result<(Self, Option<TooLong>)> {
        // One byte more at the front tells whether a line begins at `start`.
        let from = start.saturating_sub(1);
        let mut length = (end - from) as usize;
        reserve(buffer, length);
        open.read_at(&mut buffer[..length], from)?;
        let pos = match (start, memchr::memchr(b'\n', &buffer[..length])) {
            (0, _) => 0,
            (_, Some(newline)) => newline + 1,
            (_, None) => length,
        };
        let mut too_long = None;
        if pos < length && buffer[length - 1] != b'\n' && end < size {
            let record = pos.max(memchr::memrchr(b'\n', &buffer[..length]).map_or(0, |newline| newline + 1));
            let finish = finish_line(open, size, buffer, (length, end), record, max_record)?;
            length = finish;
            if length - record > max_record {
                too_long = Some(TooLong { start: record, length: length - record });
                length = record;
            }
        }
        let line = (start == 0).then_some(1);
        let mut input =
            Input { file, bytes: Bytes::Loaded, base: from, line, pos, end: length, last: true, damage: None };
        input.skip_mark(buffer);
        Ok((input, too_long))
    }

    /// A whole file from its front, uncompressed on the way, and held against its checksum where it has one.
    ///
    /// # Errors
    /// Those of reading, and of the decoder's beginning.
    pub fn stream(
        file: usize,
        open: Arc<dyn OpenFile>,
        named: &NamedFile,
        compression: Compression,
        buffer: &mut Vec<u8>,
    ) -> Result<Self> {
        let bytes = match named.0.size {
            // No member at all is no damaged one.
            0 => Bytes::Loaded,
            size => {
                let reader = compression.reader(Box::new(Front::new(open.front(), size, checksum::Front::new(named))));
                Bytes::Stream(reader.map_err(|e| own(&e).unwrap_or_else(|| Error::io("begin to decompress", &e)))?)
            }
        };
        reserve(buffer, PIECE);
        let last = matches!(bytes, Bytes::Loaded);
        let mut input = Input { file, bytes, base: 0, line: Some(1), pos: 0, end: 0, last, damage: None };
        input.fill(buffer, usize::MAX)?;
        input.skip_mark(buffer);
        Ok(input)
    }

    /// A byte order mark at the front of a file is no part of its first record.
    fn skip_mark(&mut self, buffer: &[u8]) {
        if self.base == 0 && self.pos == 0 && buffer[..self.end].starts_with(b"\xEF\xBB\xBF") {
            self.pos = 3;
        }
    }

    /// The line that byte `at` of the buffer is on, where it is known.
    pub fn line_at(&self, buffer: &[u8], at: usize) -> Option<u64> {
        self.line.map(|line| line + memchr::memchr_iter(b'\n', &buffer[..at]).count() as u64)
    }

    /// What [`Input::damage`] means for the query, at the record that it is in.
    pub fn damaged(&self, damage: &io::Error) -> String {
        let at = self.base + self.end as u64;
        format!("the file is damaged behind byte {at} of what is inside it ({damage}): the rest of it is not read")
    }

    /// What is left, ready for a decoder.
    pub fn rest<'b>(&self, buffer: &'b [u8]) -> &'b [u8] {
        &buffer[self.pos..self.end]
    }

    /// Brings more bytes behind what is left. Where nothing of a full buffer could be used, it grows, unless the
    /// record in it is longer than `max_record`: that is answered.
    ///
    /// # Errors
    /// Io, naming the file. Where it is the decoder that fails, [`Input::damage`] says so.
    pub fn fill(&mut self, buffer: &mut Vec<u8>, max_record: usize) -> Result<bool> {
        let Bytes::Stream(reader) = &mut self.bytes else { return Ok(true) };
        if let Some(line) = &mut self.line {
            *line += memchr::memchr_iter(b'\n', &buffer[..self.pos]).count() as u64;
        }
        buffer.copy_within(self.pos..self.end, 0);
        self.base += self.pos as u64;
        self.end -= self.pos;
        self.pos = 0;
        if self.end > max_record {
            return Ok(false);
        }
        if self.end == buffer.len() {
            buffer.resize((2 * self.end).min(max_record.saturating_add(1)), 0);
        }
        while self.end < buffer.len() {
            match reader.read(&mut buffer[self.end..]) {
                Ok(0) => {
                    self.last = true;
                    break;
                }
                Ok(read) => self.end += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => match own(&error) {
                    Some(error) => return Err(error),
                    None => {
                        self.damage = Some(error);
                        break;
                    }
                },
            }
        }
        Ok(true)
    }

    /// Passes the rest of the line here, without keeping it; answers how long it was.
    ///
    /// # Errors
    /// Those of [`Input::fill`].
    pub fn skip_line(&mut self, buffer: &mut Vec<u8>) -> Result<usize> {
        let mut length = 0;
        loop {
            if let Some(newline) = memchr::memchr(b'\n', self.rest(buffer)) {
                self.pos += newline + 1;
                return Ok(length + newline);
            }
            length += self.end - self.pos;
            self.pos = self.end;
            if self.last || self.damage.is_some() {
                return Ok(length);
            }
            self.fill(buffer, usize::MAX)?;
        }
    }
}

/// A file from its front, handed out in pieces of one size however they come: see [`Compression::reader`].
struct Front {
    file: Box<dyn Read + Send>,
    /// What was not read yet.
    left: u64,
    piece: Vec<u8>,
    pos: usize,
    end: usize,
    sum: checksum::Front,
}

impl Front {
    const PIECE: usize = 256 << 10;

    fn new(file: Box<dyn Read + Send>, left: u64, sum: checksum::Front) -> Self {
        Front { file, left, piece: vec![0; left.min(Self::PIECE as u64) as usize], pos: 0, end: 0, sum }
    }
}

impl BufRead for Front {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.pos == self.end && self.left > 0 {
            let length = self.left.min(self.piece.len() as u64) as usize;
            self.file.read_exact(&mut self.piece[..length])?;
            (self.pos, self.end) = (0, length);
            self.left -= length as u64;
            self.sum.add(&self.piece[..length], self.left == 0)?;
        }
        Ok(&self.piece[self.pos..self.end])
    }

    fn consume(&mut self, amount: usize) {
        self.pos = (self.pos + amount).min(self.end);
    }
}

impl Read for Front {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        // What isn't decoded needs no pieces.
        if self.pos == self.end && into.len() >= self.piece.len() {
            let length = into.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
            self.file.read_exact(&mut into[..length])?;
            self.left -= length as u64;
            if length > 0 {
                self.sum.add(&into[..length], self.left == 0)?;
            }
            return Ok(length);
        }
        let read = self.fill_buf()?.read(into)?;
        self.consume(read);
        Ok(read)
    }
}

/// The error of ours inside one that came through a decoder.
fn own(error: &io::Error) -> Option<Error> {
    error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()).cloned()
}

/// Room for `length` bytes; what is there is kept, so that it is made zero only once.
fn reserve(buffer: &mut Vec<u8>, length: usize) {
    if buffer.len() < length {
        buffer.resize(length, 0);
    }
    // A long record's buffer isn't kept for ever.
    if buffer.len() > 4 * PIECE && length <= PIECE {
        buffer.truncate(PIECE);
        buffer.shrink_to_fit();
    }
}

/// Reads on behind `end` until the line there ends, or its record is longer than `max_record`. Answers how much of
/// the buffer is filled.
fn finish_line(
    open: &dyn OpenFile,
    size: u64,
    buffer: &mut Vec<u8>,
    (mut length, mut end): (usize, u64),
    record: usize,
    max_record: usize,
) -> Result<usize> {
    while end < size && length - record <= max_record {
        let more = (TAIL.max(length - record) as u64).min(size - end) as usize;
        reserve(buffer, length + more);
        open.read_at(&mut buffer[length..length + more], end)?;
        if let Some(newline) = memchr::memchr(b'\n', &buffer[length..length + more]) {
            return Ok(length + newline + 1);
        }
        length += more;
        end += more as u64;
    }
    Ok(length)
}

/// What a decoder says of a file that it can't read on, as an error.
pub fn undecodable(shown: &str, damage: &io::Error) -> Error {
    Error::io(format!("read {shown}"), damage)
}

/// The line that byte `to` of a plain file is on, counted from a byte whose line is known.
///
/// # Errors
/// Those of reading.
pub fn count_lines(open: &dyn OpenFile, (mut from, mut line): (u64, u64), to: u64) -> Result<u64> {
    let mut buffer = vec![0; PIECE];
    while from < to {
        let length = (to - from).min(PIECE as u64) as usize;
        open.read_at(&mut buffer[..length], from)?;
        line += memchr::memchr_iter(b'\n', &buffer[..length]).count() as u64;
        from += length as u64;
    }
    Ok(line)
}
