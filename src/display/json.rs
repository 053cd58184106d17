//! JSON: one object a row, with every column in it, NULL as `null`.
//!
//! Numbers that JSON does not have (NaN, infinities) are texts, so that they are told from NULL. Columns of one
//! name get a number behind it, as an object holds a key only once.

use std::fmt::Write as _;
use std::io::{self, Write};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::cell::{Dialect, cells, plain_columns};
use super::writer::invalid;

/// What stands around an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Frame {
    /// `[` … `]`, a comma between.
    Array,
    /// Each on a line of its own.
    Lines,
}

/// Writes objects as rows come.
pub(super) struct JsonWriter {
    frame: Frame,
    /// `"name":` of each column.
    keys: Vec<String>,
    begun: bool,
}

impl JsonWriter {
    pub(super) fn new(schema: &SchemaRef, frame: Frame) -> Self {
        JsonWriter { frame, keys: keys(schema), begun: false }
    }

    pub(super) fn write(&mut self, out: &mut dyn Write, batch: &RecordBatch) -> io::Result<()> {
        let columns = plain_columns(batch).map_err(invalid)?;
        let cells = cells(&columns, Dialect::Json).map_err(invalid)?;
        let mut line = String::new();
        for row in 0..batch.num_rows() {
            line.clear();
            line.push_str(match (self.frame, self.begun) {
                (Frame::Lines, _) => "",
                (Frame::Array, false) => "[",
                (Frame::Array, true) => ",\n",
            });
            self.begun = true;
            line.push('{');
            for (at, (key, cell)) in self.keys.iter().zip(&cells).enumerate() {
                if at > 0 {
                    line.push(',');
                }
                line.push_str(key);
                if cell.is_null(row) {
                    line.push_str("null");
                } else {
                    cell.write(row, &mut line).map_err(invalid)?;
                }
            }
            line.push('}');
            if self.frame == Frame::Lines {
                line.push('\n');
            }
            out.write_all(line.as_bytes())?;
        }
        Ok(())
    }

    pub(super) fn finish(self, out: &mut dyn Write) -> io::Result<()> {
        match (self.frame, self.begun) {
            (Frame::Lines, _) => Ok(()),
            (Frame::Array, false) => out.write_all(b"[]\n"),
            (Frame::Array, true) => out.write_all(b"]\n"),
        }
    }
}

fn keys(schema: &SchemaRef) -> Vec<String> {
    let mut names: Vec<String> = Vec::with_capacity(schema.fields().len());
    for field in schema.fields() {
        let mut name = field.name().clone();
        let mut number = 1;
        while names.contains(&name) {
            name = format!("{}:{number}", field.name());
            number += 1;
        }
        names.push(name);
    }
    let key = |name: &String| {
        let mut key = String::new();
        write_json_text(name, &mut key);
        key + ":"
    };
    names.iter().map(key).collect()
}

/// Appends a JSON string. Beyond what JSON asks for, DEL, C1 controls and line separators are escaped: a terminal
/// takes them for commands.
pub(super) fn write_json_text(text: &str, out: &mut String) {
    out.push('"');
    let mut plain = 0;
    for (at, c) in text.char_indices() {
        let escape = match c {
            '"' => "\\\"",
            '\\' => "\\\\",
            '\n' => "\\n",
            '\r' => "\\r",
            '\t' => "\\t",
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') => "",
            _ => continue,
        };
        out.push_str(&text[plain..at]);
        plain = at + c.len_utf8();
        if escape.is_empty() {
            _ = write!(out, "\\u{:04x}", c as u32);
        } else {
            out.push_str(escape);
        }
    }
    out.push_str(&text[plain..]);
    out.push('"');
}
