//! The one door to the formats: batches in, text out, as they come where the format allows it.

use std::io::{self, Write};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;

use super::delimited::Delimited;
use super::format::Format;
use super::json::{Frame, JsonWriter};
use super::table::{Grid, write_table};
use super::vertical::VerticalWriter;

/// Writes rows that are all there.
///
/// # Errors
/// What `out` answers; `InvalidData` for a value that has no text, such as a time of day of 25 hours.
pub fn write_rows(out: &mut dyn Write, format: Format, batches: &[RecordBatch], schema: &SchemaRef) -> io::Result<()> {
    let mut writer = RowWriter::new(format, schema);
    for batch in batches {
        writer.write(out, batch)?;
    }
    writer.finish(out).map(|_| ())
}

/// Writes rows as they come. A table and markdown are written at the end, as their widths depend on every row; the
/// other formats keep nothing.
pub struct RowWriter {
    schema: SchemaRef,
    layout: Layout,
    rows: u64,
}

enum Layout {
    Grid(Grid, Vec<RecordBatch>),
    Delimited { kind: Delimited, begun: bool },
    Json(JsonWriter),
    Vertical(VerticalWriter),
}

impl RowWriter {
    /// A writer of rows with these columns.
    pub fn new(format: Format, schema: &SchemaRef) -> Self {
        let layout = match format {
            Format::Table => Layout::Grid(Grid::Ascii, Vec::new()),
            Format::Markdown => Layout::Grid(Grid::Markdown, Vec::new()),
            Format::Csv => Layout::Delimited { kind: Delimited::Csv, begun: false },
            Format::Tsv => Layout::Delimited { kind: Delimited::Tsv, begun: false },
            Format::Json => Layout::Json(JsonWriter::new(schema, Frame::Array)),
            Format::JsonLines => Layout::Json(JsonWriter::new(schema, Frame::Lines)),
            Format::Vertical => Layout::Vertical(VerticalWriter::new(schema)),
        };
        RowWriter { schema: schema.clone(), layout, rows: 0 }
    }

    /// Leaves the header line of csv and tsv out, for rows that follow others of the same columns.
    pub fn without_header(mut self) -> Self {
        if let Layout::Delimited { begun, .. } = &mut self.layout {
            *begun = true;
        }
        self
    }

    /// How many rows were written so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Takes the next rows.
    ///
    /// # Errors
    /// As [`write_rows`].
    pub fn write(&mut self, out: &mut dyn Write, batch: &RecordBatch) -> io::Result<()> {
        self.rows += batch.num_rows() as u64;
        match &mut self.layout {
            Layout::Grid(_, batches) => batches.push(batch.clone()),
            Layout::Delimited { kind, begun } => {
                if !std::mem::replace(begun, true) {
                    kind.write_header(out, &self.schema)?;
                }
                kind.write(out, batch)?;
            }
            Layout::Json(writer) => writer.write(out, batch)?,
            Layout::Vertical(writer) => writer.write(out, batch)?,
        }
        Ok(())
    }

    /// Writes what is still to be written, and answers how many rows there were.
    ///
    /// # Errors
    /// As [`write_rows`].
    pub fn finish(self, out: &mut dyn Write) -> io::Result<u64> {
        match self.layout {
            Layout::Grid(grid, batches) => write_table(out, grid, &batches, &self.schema)?,
            Layout::Delimited { kind, begun: false } => kind.write_header(out, &self.schema)?,
            Layout::Delimited { begun: true, .. } | Layout::Vertical(_) => {}
            Layout::Json(writer) => writer.finish(out)?,
        }
        Ok(self.rows)
    }
}

/// A value that has no text.
pub(super) fn invalid(error: ArrowError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error.to_string())
}
