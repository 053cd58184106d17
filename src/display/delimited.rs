//! csv and tsv: lines for other programs, from which NULL and the empty text can be told apart.
//!
//! csv quotes as RFC 4180 says. tsv escapes as PostgreSQL's COPY does, so that a line is always a row. A struct, list
//! or map is one field of JSON.

use std::io::{self, Write};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::cell::{Cell, Dialect, plain_columns};
use super::writer::invalid;

/// How fields are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Delimited {
    Csv,
    Tsv,
}

impl Delimited {
    pub(super) fn write_header(self, out: &mut dyn Write, schema: &SchemaRef) -> io::Result<()> {
        let mut line = String::new();
        for (at, field) in schema.fields().iter().enumerate() {
            self.separate(at, &mut line);
            self.write_field(field.name(), &mut line);
        }
        line.push('\n');
        out.write_all(line.as_bytes())
    }

    pub(super) fn write(self, out: &mut dyn Write, batch: &RecordBatch) -> io::Result<()> {
        let columns = plain_columns(batch).map_err(invalid)?;
        let texts = columns.iter().map(|column| {
            let dialect = if column.data_type().is_nested() { Dialect::Json } else { Dialect::People };
            Cell::new(column.as_ref(), dialect)
        });
        let cells = texts.collect::<Result<Vec<_>, _>>().map_err(invalid)?;
        let (mut line, mut text) = (String::new(), String::new());
        for row in 0..batch.num_rows() {
            line.clear();
            for (at, cell) in cells.iter().enumerate() {
                self.separate(at, &mut line);
                if cell.is_null(row) {
                    line.push_str(if self == Delimited::Tsv { "\\N" } else { "" });
                    continue;
                }
                text.clear();
                cell.write(row, &mut text).map_err(invalid)?;
                self.write_field(&text, &mut line);
            }
            line.push('\n');
            out.write_all(line.as_bytes())?;
        }
        Ok(())
    }

    fn separate(self, at: usize, line: &mut String) {
        if at > 0 {
            line.push(if self == Delimited::Csv { ',' } else { '\t' });
        }
    }

    fn write_field(self, text: &str, line: &mut String) {
        match self {
            Delimited::Csv if text.is_empty() || text.contains([',', '"', '\n', '\r']) => {
                line.extend(["\"", &text.replace('"', "\"\""), "\""]);
            }
            Delimited::Csv => line.push_str(text),
            Delimited::Tsv => {
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
}
