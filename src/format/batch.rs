//! Rows on their way into a record batch: the record's columns, and what is known of each record beside them.
//!
//! Says when a batch is large enough. Where the rows come from (file, path) is the reader's matter.

use arrow::array::{ArrayRef, Int64Array, StringViewBuilder};
use arrow::datatypes::Fields;
use std::sync::Arc;

use super::object::Object;
use crate::error::Result;

/// What is wanted beside the fields of the records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PerRecord {
    /// The line each record begins on, counted from 1.
    pub line: bool,
    /// The byte each record begins at, counted from 0.
    pub offset: bool,
    /// The text of records that are rows of NULLs.
    pub corrupt: bool,
}

/// A batch hands over after this many bytes of input, so that long records don't pile up.
const FULL_BYTES: usize = 8 << 20;
/// And after this many values, so that wide ones don't.
const FULL_VALUES: usize = 2 << 20;

/// Collects the rows of one batch.
#[derive(Debug)]
pub struct BatchBuilder {
    columns: Object,
    wanted: PerRecord,
    max_rows: usize,
    bytes: usize,
    lines: Vec<i64>,
    offsets: Vec<i64>,
    corrupt: Vec<Option<String>>,
    /// Where the bytes at hand begin in the file, and on which line.
    base: u64,
    line: u64,
    /// How far into the bytes at hand newlines have been counted.
    counted: usize,
}

/// The columns of a finished batch.
#[derive(Debug)]
pub struct Finished {
    pub rows: usize,
    /// The record's fields.
    pub fields: Vec<ArrayRef>,
    pub line: Option<ArrayRef>,
    pub offset: Option<ArrayRef>,
    pub corrupt: Option<ArrayRef>,
}

impl BatchBuilder {
    /// An empty batch of these fields, full at `max_rows` rows.
    ///
    /// # Errors
    /// Unsupported: a type that text can't be read as.
    pub fn new(fields: &Fields, wanted: PerRecord, max_rows: usize) -> Result<Self> {
        let columns = Object::new(fields)?;
        let max_rows = max_rows.min(FULL_VALUES / columns.width().max(1)).max(1);
        Ok(BatchBuilder {
            columns,
            wanted,
            max_rows,
            bytes: 0,
            lines: Vec::new(),
            offsets: Vec::new(),
            corrupt: Vec::new(),
            base: 0,
            line: 1,
            counted: 0,
        })
    }

    /// The next bytes begin at byte `base` of their file, on `line` (which matters only where lines are wanted).
    pub fn start_at(&mut self, base: u64, line: u64) {
        self.base = base;
        self.line = line;
        self.counted = 0;
    }

    /// The line that the bytes not yet taken begin on; right only where lines are wanted.
    pub fn line(&self) -> u64 {
        self.line
    }

    pub(super) fn columns(&mut self) -> &mut Object {
        &mut self.columns
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.columns.rows()
    }

    /// Whether it is time to hand the batch over.
    #[inline]
    pub fn is_full(&self) -> bool {
        let rows = self.columns.rows();
        rows >= self.max_rows || (rows > 0 && self.bytes >= FULL_BYTES)
    }

    /// Ends the row of the record at `start` in the bytes at hand.
    #[inline]
    pub(super) fn close_row(&mut self, bytes: &[u8], start: usize) {
        if self.wanted != PerRecord::default() {
            self.note(bytes, start, None);
        }
    }

    /// Adds a row of NULLs for the record at `start`.
    pub fn null_row(&mut self, bytes: &[u8], start: usize, text: &[u8]) {
        self.columns.force_null();
        if self.wanted != PerRecord::default() {
            self.note(bytes, start, Some(text));
        }
    }

    /// Takes back the row after the first `rows`, and what is half appended.
    pub(super) fn truncate(&mut self, rows: usize) {
        self.columns.truncate(rows);
    }

    /// All of `bytes` up to `taken` has become rows.
    pub(super) fn block_done(&mut self, bytes: &[u8], taken: usize) {
        if self.wanted.line {
            self.count_lines(bytes, taken);
        }
        self.base += taken as u64;
        self.counted = 0;
        // What gave no row, blank lines and bad records, fills no batch.
        self.bytes = if self.rows() == 0 { 0 } else { self.bytes + taken };
    }

    fn note(&mut self, bytes: &[u8], start: usize, corrupt: Option<&[u8]>) {
        if self.wanted.line {
            self.count_lines(bytes, start);
            self.lines.push(self.line as i64);
        }
        if self.wanted.offset {
            self.offsets.push((self.base + start as u64) as i64);
        }
        if self.wanted.corrupt {
            self.corrupt.push(corrupt.map(|text| String::from_utf8_lossy(text).into_owned()));
        }
    }

    fn count_lines(&mut self, bytes: &[u8], to: usize) {
        if to > self.counted {
            self.line += memchr::memchr_iter(b'\n', &bytes[self.counted..to]).count() as u64;
            self.counted = to;
        }
    }

    /// Hands out the rows and starts again from nothing.
    ///
    /// # Errors
    /// Internal: an array that arrow refuses.
    pub fn finish(&mut self) -> Result<Finished> {
        let rows = self.columns.rows();
        let (_, fields) = self.columns.finish()?;
        self.bytes = 0;
        let numbers = |values: &mut Vec<i64>| Arc::new(Int64Array::from(std::mem::take(values))) as ArrayRef;
        Ok(Finished {
            rows,
            fields,
            line: self.wanted.line.then(|| numbers(&mut self.lines)),
            offset: self.wanted.offset.then(|| numbers(&mut self.offsets)),
            corrupt: self.wanted.corrupt.then(|| texts(&mut self.corrupt)),
        })
    }
}

fn texts(values: &mut Vec<Option<String>>) -> ArrayRef {
    let mut builder = StringViewBuilder::with_capacity(values.len());
    for value in values.drain(..) {
        builder.append_option(value);
    }
    Arc::new(builder.finish())
}
