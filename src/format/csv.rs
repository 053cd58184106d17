//! CSV: records of fields between delimiters, quoted by `"` where they hold one, a quote or a newline.
//!
//! With a header, fields are found by exact name, a column that the header lacks is NULL, and names that no
//! column has are passed over. Without one, fields are the columns in their declared order. A record with more or
//! fewer fields than the header, or the columns, is bad. An unquoted empty field is NULL, `""` is an empty text;
//! with `null_value` it is instead the unquoted text of that option that is NULL. Blank lines are passed over.

use super::column::{Reason, Taken};
use super::object::Object;
use super::{BadPlace, BatchBuilder, Block, Keep, OnBad, line_at, without_cr};
use crate::error::Result;

/// How a CSV file is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsvOptions {
    /// The first record of each file names its fields.
    pub header: bool,
    pub delimiter: u8,
    /// Unquoted text that stands for NULL; `None`: the empty one.
    pub null_value: Option<String>,
}

impl Default for CsvOptions {
    fn default() -> Self {
        CsvOptions { header: false, delimiter: b',', null_value: None }
    }
}

/// Decodes records of CSV.
#[derive(Debug)]
pub struct CsvDecoder {
    options: CsvOptions,
    /// Every field of a record, in declared order.
    names: Vec<String>,
    /// Which of them are read, in the order of the batch's columns.
    wanted: Vec<usize>,
    layout: Layout,
    spans: Vec<Span>,
    scratch: String,
}

/// What the fields of the file at hand mean.
#[derive(Debug, Clone)]
enum Layout {
    /// The next record is the header.
    Header,
    /// By place in the record: the column of the batch.
    Columns(Vec<Option<usize>>),
    /// The header can't be used, so no record can.
    Unusable(String),
}

/// A field's place in the bytes at hand, without its quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    start: usize,
    end: usize,
    quoted: bool,
    /// It holds doubled quotes.
    doubled: bool,
}

/// Where a record ends.
pub(super) enum Split {
    /// The next record begins here.
    Record(usize),
    /// More bytes are needed to tell.
    Incomplete,
    /// It has no form; the next record begins here.
    Bad(&'static str, usize),
}

impl CsvDecoder {
    /// A decoder of records with these fields, of which `wanted` become the columns of a batch.
    pub fn new(options: CsvOptions, names: Vec<String>, wanted: Vec<usize>) -> Self {
        let mut decoder =
            CsvDecoder { options, names, wanted, layout: Layout::Header, spans: Vec::new(), scratch: String::new() };
        decoder.start_file();
        decoder
    }

    pub(super) fn start_file(&mut self) {
        self.layout = match self.options.header {
            true => Layout::Header,
            false => Layout::Columns((0..self.names.len()).map(|field| self.column_of(field)).collect()),
        };
    }

    fn column_of(&self, field: usize) -> Option<usize> {
        self.wanted.iter().position(|wanted| *wanted == field)
    }

    pub(super) fn decode(
        &mut self,
        block: Block<'_>,
        batch: &mut BatchBuilder,
        on_bad: &mut OnBad<'_>,
    ) -> Result<usize> {
        let bytes = block.bytes;
        let mut at = 0;
        while at < bytes.len() && !batch.is_full() {
            let (line, next_line) = line_at(bytes, at);
            if without_cr(line).is_empty() && (block.last || next_line < bytes.len() || bytes.ends_with(b"\n")) {
                at = next_line;
                continue;
            }
            let (start, rows) = (at, batch.rows());
            let outcome = match split(bytes, start, block.last, self.options.delimiter, &mut self.spans) {
                Split::Incomplete => break,
                Split::Bad(what, next) => {
                    at = next;
                    Err(Reason::form(what))
                }
                Split::Record(next) => {
                    at = next;
                    match self.layout {
                        Layout::Header => {
                            self.read_header(bytes);
                            continue;
                        }
                        _ => self.record(bytes, batch.columns()),
                    }
                }
            };
            match outcome {
                Ok(()) => batch.close_row(bytes, start),
                Err(reason) => {
                    let text = without_cr(bytes[start..at].strip_suffix(b"\n").unwrap_or(&bytes[start..at]));
                    batch.truncate(rows);
                    if on_bad(BadPlace { at: start, text, reason: reason.to_string() })? == Keep::Nulls {
                        batch.null_row(bytes, start, text);
                    }
                }
            }
        }
        batch.block_done(bytes, at);
        Ok(at)
    }

    /// Takes the record at hand as the header.
    fn read_header(&mut self, bytes: &[u8]) {
        let mut columns = Vec::with_capacity(self.spans.len());
        let mut found = vec![false; self.names.len()];
        for span in &self.spans {
            let name = String::from_utf8_lossy(&bytes[span.start..span.end]);
            let field = self.names.iter().position(|known| known == name.trim());
            if let Some(field) = field
                && std::mem::replace(&mut found[field], true)
            {
                self.layout = Layout::Unusable(format!("the file's header names {} twice", self.names[field]));
                return;
            }
            columns.push(field.and_then(|field| self.column_of(field)));
        }
        self.layout = match found.contains(&true) {
            true => Layout::Columns(columns),
            false => Layout::Unusable(format!("the file's header names none of the columns {}", self.names.join(", "))),
        };
    }

    /// The record at hand as a row of `columns`.
    fn record(&mut self, bytes: &[u8], columns: &mut Object) -> Taken {
        let targets = match &self.layout {
            Layout::Columns(targets) => targets,
            Layout::Unusable(why) => return Err(Reason::form(why.clone())),
            Layout::Header => return Err(Reason::form("stands before the header")),
        };
        if targets.len() != self.spans.len() {
            return Err(Reason::form(format!("has {} fields, not {}", self.spans.len(), targets.len())));
        }
        let mut given = 0;
        for (span, target) in self.spans.iter().zip(targets) {
            let Some(at) = *target else { continue };
            let (column, _) = columns.column(at);
            given += 1;
            let text = std::str::from_utf8(&bytes[span.start..span.end]);
            let text = text.map_err(|_| Reason::form("is not UTF-8 text").inside(column.name()))?;
            let null = match &self.options.null_value {
                None => text.is_empty(),
                Some(null) => text == null,
            };
            match span {
                Span { quoted: false, .. } if null => column.append_null("its field is empty")?,
                Span { doubled: true, .. } => {
                    self.scratch = text.replace("\"\"", "\"");
                    column.append_field(&self.scratch)?;
                }
                _ => column.append_field(text)?,
            }
        }
        columns.close_row(given)
    }
}

/// Finds the fields of the record at `start`.
pub(super) fn split(bytes: &[u8], start: usize, last: bool, delimiter: u8, spans: &mut Vec<Span>) -> Split {
    spans.clear();
    let mut at = start;
    loop {
        let end = match bytes.get(at) {
            Some(b'"') => match quoted(bytes, at, last) {
                Ok(span) => {
                    spans.push(span);
                    span.end + 1
                }
                Err(Split::Bad(what, _)) => return Split::Bad(what, line_at(bytes, start).1),
                Err(other) => return other,
            },
            _ => {
                let rest = &bytes[at..];
                let end = match memchr::memchr2(delimiter, b'\n', rest) {
                    Some(length) => at + length,
                    None if last => bytes.len(),
                    None => return Split::Incomplete,
                };
                let ends_line = bytes.get(end) != Some(&delimiter);
                let text = if ends_line { without_cr(&bytes[at..end]) } else { &bytes[at..end] };
                spans.push(Span { start: at, end: at + text.len(), quoted: false, doubled: false });
                end
            }
        };
        match (bytes.get(end), bytes.get(end + 1)) {
            (None, _) => return Split::Record(end),
            (Some(b'\n'), _) => return Split::Record(end + 1),
            (Some(b'\r'), Some(b'\n')) => return Split::Record(end + 2),
            (Some(b'\r'), None) => return Split::Record(end + 1),
            (Some(byte), _) if *byte == delimiter => at = end + 1,
            // The rest of the line is bad too, so it must be there.
            _ if !last && memchr::memchr(b'\n', &bytes[end..]).is_none() => return Split::Incomplete,
            _ => return Split::Bad("has text behind a closing quote", line_at(bytes, end).1),
        }
    }
}

/// The field whose opening quote is at `start`.
fn quoted(bytes: &[u8], start: usize, last: bool) -> std::result::Result<Span, Split> {
    let mut doubled = false;
    let mut at = start + 1;
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        match memchr::memchr(b'"', rest) {
            None if last => return Err(Split::Bad("has a quote that is never closed", 0)),
            None => return Err(Split::Incomplete),
            Some(length) => {
                let end = at + length;
                match bytes.get(end + 1) {
                    Some(b'"') => {
                        doubled = true;
                        at = end + 2;
                    }
                    // What follows the quote decides, `\r` and what follows it too.
                    None if !last => return Err(Split::Incomplete),
                    Some(b'\r') if bytes.len() == end + 2 && !last => return Err(Split::Incomplete),
                    _ => return Ok(Span { start: start + 1, end, quoted: true, doubled }),
                }
            }
        }
    }
}

/// The text of each field of the record at hand, and whether it was quoted.
pub(super) fn texts<'a>(bytes: &'a [u8], spans: &'a [Span]) -> impl Iterator<Item = (String, bool)> + 'a {
    spans.iter().map(|span| {
        let text = String::from_utf8_lossy(&bytes[span.start..span.end]);
        (if span.doubled { text.replace("\"\"", "\"") } else { text.into_owned() }, span.quoted)
    })
}
