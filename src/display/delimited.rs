//! Lines for other programs: csv and tsv, from which NULL and the empty text can be told apart; values as SQL writes
//! them; and plain fields between a separator.
//!
//! csv quotes as RFC 4180 says. tsv escapes as PostgreSQL's COPY does, so that a line is always a row. A struct, list
//! or map is one field of JSON.

use std::io::{self, Write};

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, SchemaRef};

use super::cell::{Cell, Dialect, plain_columns};
use super::style::Style;
use super::writer::invalid;

/// How a field is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fields {
    Csv,
    Tsv,
    /// As they are, nothing escaped.
    List,
    /// As literals of SQL.
    Quote,
}

/// Writes records as rows come.
pub(super) struct DelimitedWriter {
    fields: Fields,
    null: String,
    separator: String,
    end: String,
    /// The characters for which csv quotes a field: those of one byte, and others.
    special: [bool; 128],
    wide: Vec<char>,
    /// The line with the names is written, or not wanted.
    begun: bool,
}

impl DelimitedWriter {
    pub(super) fn new(fields: Fields, style: &Style) -> Self {
        let (null, separator) = match fields {
            Fields::Csv => ("", ","),
            Fields::Tsv => ("\\N", "\t"),
            Fields::List => ("", "|"),
            Fields::Quote => ("NULL", ","),
        };
        let given = |text: &Option<String>, takes: bool| text.clone().filter(|_| takes);
        let free = matches!(fields, Fields::Csv | Fields::List);
        let null = given(&style.null, fields != Fields::Quote).unwrap_or_else(|| null.to_string());
        let separator = given(&style.separator, free).unwrap_or_else(|| separator.to_string());
        let end = given(&style.record_separator, free).unwrap_or_else(|| "\n".to_string());
        let (mut special, mut wide) = ([false; 128], Vec::new());
        for c in separator.chars().chain(end.chars()).chain(['"', '\n', '\r']) {
            match special.get_mut(c as usize) {
                Some(is) => *is = true,
                None => wide.push(c),
            }
        }
        DelimitedWriter { fields, null, separator, end, special, wide, begun: !style.header }
    }

    /// The names are not written: the rows follow others.
    pub(super) fn leave_header(&mut self) {
        self.begun = true;
    }

    pub(super) fn write(&mut self, out: &mut dyn Write, batch: &RecordBatch) -> io::Result<()> {
        self.begin(out, &batch.schema())?;
        let columns = plain_columns(batch).map_err(invalid)?;
        let texts = columns.iter().map(|column| {
            let json = column.data_type().is_nested() && self.fields != Fields::List;
            Cell::new(column.as_ref(), if json { Dialect::Json } else { Dialect::People })
        });
        let cells = texts.collect::<Result<Vec<_>, _>>().map_err(invalid)?;
        let bare: Vec<bool> = columns.iter().map(|column| is_literal(column.data_type())).collect();
        let mut lines = String::with_capacity(LINES + 1024);
        for row in 0..batch.num_rows() {
            for (at, (cell, bare)) in cells.iter().zip(&bare).enumerate() {
                self.separate(at, &mut lines);
                if cell.is_null(row) {
                    lines.push_str(&self.null);
                    continue;
                }
                let start = lines.len();
                cell.write(row, &mut lines).map_err(invalid)?;
                self.dress_field(start, *bare, &mut lines);
            }
            lines.push_str(&self.end);
            if lines.len() >= LINES {
                out.write_all(lines.as_bytes())?;
                lines.clear();
            }
        }
        out.write_all(lines.as_bytes())
    }

    pub(super) fn finish(mut self, out: &mut dyn Write, schema: &SchemaRef) -> io::Result<()> {
        self.begin(out, schema)
    }

    fn begin(&mut self, out: &mut dyn Write, schema: &SchemaRef) -> io::Result<()> {
        if std::mem::replace(&mut self.begun, true) {
            return Ok(());
        }
        let mut line = String::new();
        for (at, field) in schema.fields().iter().enumerate() {
            self.separate(at, &mut line);
            let start = line.len();
            line.push_str(field.name());
            self.dress_field(start, false, &mut line);
        }
        line.push_str(&self.end);
        out.write_all(line.as_bytes())
    }

    fn separate(&self, at: usize, line: &mut String) {
        if at > 0 {
            line.push_str(&self.separator);
        }
    }

    /// Escapes the field that begins at `start`. `bare`: a literal of SQL needs no quotes.
    fn dress_field(&self, start: usize, bare: bool, line: &mut String) {
        let quoted = |text: &str, quote: char| {
            let doubled = text.replace(quote, &format!("{quote}{quote}"));
            format!("{quote}{doubled}{quote}")
        };
        let text = &line[start..];
        let dressed = match self.fields {
            Fields::Csv if self.wants_quotes(text) => quoted(text, '"'),
            Fields::Quote if !bare => quoted(text, '\''),
            Fields::Tsv if text.contains(['\t', '\n', '\r', '\\']) => {
                text.replace('\\', "\\\\").replace('\t', "\\t").replace('\n', "\\n").replace('\r', "\\r")
            }
            Fields::Csv | Fields::Tsv | Fields::List | Fields::Quote => return,
        };
        line.truncate(start);
        line.push_str(&dressed);
    }

    fn wants_quotes(&self, text: &str) -> bool {
        let special = |byte: u8| self.special.get(usize::from(byte)).is_some_and(|is| *is);
        // What stands for NULL would be read back as one.
        text.is_empty()
            || text == self.null
            || text.bytes().any(special)
            || !self.wide.is_empty() && text.contains(&self.wide[..])
    }
}

/// So many bytes are written at once.
const LINES: usize = 64 * 1024;

/// Numbers and truth values are literals as they are.
fn is_literal(data_type: &DataType) -> bool {
    data_type.is_numeric() || *data_type == DataType::Boolean
}
