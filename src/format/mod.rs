//! Bytes ↔ record batches: how the records of JSON, CSV and text files become columns.
//!
//! A decoder is handed bytes and fills columns with whole records; it knows neither files nor streams. What it
//! can't read it hands back as a [`BadPlace`], and its reader decides ([`OnError`]). The scalar rules are the
//! same for every text format:
//!
//! | column | takes |
//! | --- | --- |
//! | integers | a number that is whole and in range (`1e3` and `1.0` are whole), or text that is one |
//! | FLOAT, DOUBLE | a number in range, or text that is one, `NaN` and `Infinity` included |
//! | DECIMAL | a number or text that fits without rounding, up to 38 digits |
//! | BOOLEAN | `true`, `false` |
//! | TEXT | text; never a number |
//! | TIMESTAMP | ISO text with `T` or a space, with or without zone (UTC, or the column's); digits finer than the column's unit are cut. A bare number is refused: nobody knows its unit |
//! | DATE, TIME | ISO text |
//! | BYTEA | hexadecimal text |
//!
//! Nothing is rounded, wrapped or guessed: what doesn't fit is a bad record that names column, type and text.
//! Only the columns a query asks for are looked at; the rest of a record is passed over by its form.

mod arrays;
mod batch;
mod column;
mod compression;
mod csv;
#[cfg(test)]
mod csv_tests;
mod cursor;
mod infer;
mod json;
#[cfg(test)]
mod json_tests;
mod number;
mod object;
mod text;
mod time;
mod types;

pub use batch::{BatchBuilder, Finished, PerRecord};

pub use compression::Compression;
pub use csv::{CsvDecoder, CsvOptions};
pub use infer::{INFER_RECORDS, Inference};
pub use json::JsonDecoder;
pub use text::TextDecoder;
pub use types::{check_types, sql_type, type_name};

use crate::error::Result;

/// How the records of a source are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// One object a line.
    Json,
    /// Fields between delimiters, quoted by `"`.
    Csv,
    /// Columns, read by DataFusion.
    Parquet,
    /// A line is a record of one text column.
    Text,
}

impl Format {
    /// The words that the option `format` takes.
    pub const NAMES: &'static [&'static str] = &["json", "csv", "parquet", "text"];

    /// The format of that name.
    pub fn parse(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().as_str() {
            "json" => Some(Format::Json),
            "csv" => Some(Format::Csv),
            "parquet" => Some(Format::Parquet),
            "text" => Some(Format::Text),
            _ => None,
        }
    }

    /// As written in the option.
    pub fn name(self) -> &'static str {
        match self {
            Format::Json => "json",
            Format::Csv => "csv",
            Format::Parquet => "parquet",
            Format::Text => "text",
        }
    }
}

/// What becomes of a bad record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnError {
    /// It ends the query.
    #[default]
    Fail,
    /// It is counted and left out.
    Skip,
    /// It is a row of NULLs, its text in the column declared `METADATA FROM 'corrupt_record'`.
    Null,
}

/// A record that can't be read.
#[derive(Debug)]
pub struct BadPlace<'a> {
    /// Where it begins, in the bytes handed to the decoder.
    pub at: usize,
    /// Its text.
    pub text: &'a [u8],
    /// What is wrong with it.
    pub reason: String,
}

/// What a decoder does after a bad record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// Leaves it out.
    Nothing,
    /// Adds a row of NULLs in its place.
    Nulls,
}

/// Told of each bad record; an error ends the read.
pub type OnBad<'f> = dyn FnMut(BadPlace<'_>) -> Result<Keep> + 'f;

/// The bytes a decoder may take records from.
#[derive(Debug, Clone, Copy)]
pub struct Block<'a> {
    pub bytes: &'a [u8],
    /// Nothing follows: what is left at the end is a record too, whether a newline ends it or not.
    pub last: bool,
}

/// A decoder of one of the record formats.
#[derive(Debug)]
pub enum Decoder {
    Json(JsonDecoder),
    Csv(CsvDecoder),
    Text(TextDecoder),
}

impl Decoder {
    /// Forgets the file before: the next bytes are the first of another.
    pub fn start_file(&mut self) {
        if let Decoder::Csv(csv) = self {
            csv.start_file();
        }
    }

    /// Decodes whole records from the front of `block` until none is left or `batch` is full. Answers how many
    /// bytes it took; what it left must come again, at the front of the next block.
    ///
    /// # Errors
    /// Whatever `on_bad` answers, and nothing else.
    pub fn decode(&mut self, block: Block<'_>, batch: &mut BatchBuilder, on_bad: &mut OnBad<'_>) -> Result<usize> {
        match self {
            Decoder::Json(json) => json.decode(block, batch, on_bad),
            Decoder::Csv(csv) => csv.decode(block, batch, on_bad),
            Decoder::Text(text) => text.decode(block, batch, on_bad),
        }
    }
}

/// The part of `block` that holds whole lines only.
fn whole_lines(block: Block<'_>) -> &[u8] {
    match (block.last, memchr::memrchr(b'\n', block.bytes)) {
        (true, _) => block.bytes,
        (false, Some(newline)) => &block.bytes[..=newline],
        (false, None) => &[],
    }
}

/// The line that begins at `start`, without its end, and where the next one begins.
fn line_at(bytes: &[u8], start: usize) -> (&[u8], usize) {
    match memchr::memchr(b'\n', &bytes[start..]) {
        Some(length) => (&bytes[start..start + length], start + length + 1),
        None => (&bytes[start..], bytes.len()),
    }
}

/// A line without the `\r` of a Windows line end.
fn without_cr(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// At most this many characters of a bad record are shown.
const SHOWN: usize = 200;

/// A record's text as it is shown in an error: whole when it is short, on one line.
pub fn shorten(text: &[u8]) -> String {
    let head = &text[..text.len().min(4 * SHOWN)];
    let head = String::from_utf8_lossy(head);
    let mut shown: String = head.trim_end().chars().take(SHOWN).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if head.trim_end().chars().count() > SHOWN || text.len() > 4 * SHOWN {
        shown.push_str(&format!("… ({} bytes)", text.len()));
    }
    shown
}
