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
        let literals: Vec<Literal> = columns.iter().map(|column| Literal::of(column.data_type())).collect();
        let mut lines = String::with_capacity(LINES + 1024);
        for row in 0..batch.num_rows() {
            for (at, (cell, literal)) in cells.iter().zip(&literals).enumerate() {
                self.separate(at, &mut lines);
                if cell.is_null(row) {
                    lines.push_str(&self.null);
                    continue;
                }
                let start = lines.len();
                cell.write(row, &mut lines).map_err(invalid)?;
                self.dress_field(start, *literal, &mut lines);
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
            self.dress_field(start, Literal::Text, &mut line);
        }
        line.push_str(&self.end);
        out.write_all(line.as_bytes())
    }

    fn separate(&self, at: usize, line: &mut String) {
        if at > 0 {
            line.push_str(&self.separator);
        }
    }

    /// Escapes the field that begins at `start`. `literal`: what it is in SQL.
    fn dress_field(&self, start: usize, literal: Literal, line: &mut String) {
        let text = &line[start..];
        let dressed = match self.fields {
            Fields::Csv if self.wants_quotes(text) => format!("\"{}\"", text.replace('"', "\"\"")),
            Fields::Quote => literal.written(text),
            Fields::Tsv if text.contains(['\t', '\n', '\r', '\\']) => {
                text.replace('\\', "\\\\").replace('\t', "\\t").replace('\n', "\\n").replace('\r', "\\r")
            }
            Fields::Csv | Fields::Tsv | Fields::List => return,
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

/// How SQL writes the values of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Literal {
    /// As they are: integers, decimals, truth values.
    Bare,
    /// As they are, where they are finite; the type's name.
    Float(&'static str),
    Bytes,
    Text,
}

impl Literal {
    fn of(data_type: &DataType) -> Self {
        match data_type {
            DataType::Float16 | DataType::Float32 => Literal::Float("FLOAT"),
            DataType::Float64 => Literal::Float("DOUBLE"),
            data_type if data_type.is_numeric() || *data_type == DataType::Boolean => Literal::Bare,
            DataType::FixedSizeBinary(_) => Literal::Bytes,
            data_type if data_type.is_binary() => Literal::Bytes,
            _ => Literal::Text,
        }
    }

    fn written(self, text: &str) -> String {
        match self {
            Literal::Float(name) if text.ends_with("inf") => {
                format!("CAST('{}Infinity' AS {name})", text.trim_end_matches("inf"))
            }
            Literal::Float(name) if text == "NaN" => format!("CAST('NaN' AS {name})"),
            Literal::Bare | Literal::Float(_) => text.to_string(),
            Literal::Bytes => format!("x'{text}'"),
            Literal::Text => format!("'{}'", text.replace('\'', "''")),
        }
    }
}
