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
    /// The characters for which csv quotes a field.
    special: Vec<char>,
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
        let mut special: Vec<char> = separator.chars().chain(end.chars()).chain(['"', '\n', '\r']).collect();
        special.sort_unstable();
        special.dedup();
        DelimitedWriter { fields, null, separator, end, special, begun: !style.header }
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
        let (mut line, mut text) = (String::new(), String::new());
        for row in 0..batch.num_rows() {
            line.clear();
            for (at, (cell, bare)) in cells.iter().zip(&bare).enumerate() {
                self.separate(at, &mut line);
                if cell.is_null(row) {
                    line.push_str(&self.null);
                    continue;
                }
                text.clear();
                cell.write(row, &mut text).map_err(invalid)?;
                self.write_field(&text, *bare, &mut line);
            }
            line.push_str(&self.end);
            out.write_all(line.as_bytes())?;
        }
        Ok(())
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
            self.write_field(field.name(), false, &mut line);
        }
        line.push_str(&self.end);
        out.write_all(line.as_bytes())
    }

    fn separate(&self, at: usize, line: &mut String) {
        if at > 0 {
            line.push_str(&self.separator);
        }
    }

    /// `bare`: a literal of SQL needs no quotes.
    fn write_field(&self, text: &str, bare: bool, line: &mut String) {
        match self.fields {
            Fields::Csv if self.wants_quotes(text) => line.extend(["\"", &text.replace('"', "\"\""), "\""]),
            Fields::Quote if !bare => line.extend(["'", &text.replace('\'', "''"), "'"]),
            Fields::Csv | Fields::List | Fields::Quote => line.push_str(text),
            Fields::Tsv => {
                for c in text.chars() {
                    match c {
                        '\t' => line.push_str("\\t"),
                        '\n' => line.push_str("\\n"),
                        '\r' => line.push_str("\\r"),
                        '\\' => line.push_str("\\\\"),
                        c => line.push(c),
                    }
                }
            }
        }
    }

    fn wants_quotes(&self, text: &str) -> bool {
        // What stands for NULL would be read back as one.
        text.is_empty() || text == self.null || text.contains(&self.special[..])
    }
}

/// Numbers and truth values are literals as they are.
fn is_literal(data_type: &DataType) -> bool {
    data_type.is_numeric() || *data_type == DataType::Boolean
}
