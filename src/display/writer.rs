//! The one door to the formats: batches in, text out, as they come where the format allows it.

use std::io::{self, Write};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;

use super::delimited::{DelimitedWriter, Fields};
use super::format::Format;
use super::grid::{Drawing, Grid};
use super::html::HtmlWriter;
use super::json::{Frame, JsonWriter};
use super::kept::{Ends, Kept};
use super::style::{DIM, Style, Written};
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

/// Writes rows as they come. Grids are written at the end, as their widths depend on every row; the other formats keep
/// nothing.
pub struct RowWriter {
    schema: SchemaRef,
    style: Style,
    layout: Layout,
    rows: u64,
}

enum Layout {
    Grid(Grid, Kept),
    Delimited(DelimitedWriter),
    Json(JsonWriter),
    Html(HtmlWriter),
    Vertical(VerticalWriter),
}

impl RowWriter {
    /// A writer of rows with these columns, everything shown.
    pub fn new(format: Format, schema: &SchemaRef) -> Self {
        RowWriter::styled(format, schema, Style::default())
    }

    /// The same, as a style has it.
    pub fn styled(format: Format, schema: &SchemaRef, style: Style) -> Self {
        let grid = |grid| Layout::Grid(grid, Kept::new(style.rows));
        let delimited = |fields| Layout::Delimited(DelimitedWriter::new(fields, &style));
        let layout = match format {
            Format::Table => grid(Grid::Box),
            Format::Ascii => grid(Grid::Ascii),
            Format::Column => grid(Grid::Columns),
            Format::Markdown => Layout::Grid(Grid::Markdown, Kept::new(None)),
            Format::Csv => delimited(Fields::Csv),
            Format::Tsv => delimited(Fields::Tsv),
            Format::List => delimited(Fields::List),
            Format::Quote => delimited(Fields::Quote),
            Format::Html => Layout::Html(HtmlWriter::new(schema, &style)),
            Format::Json => Layout::Json(JsonWriter::new(schema, Frame::Array)),
            Format::JsonLines => Layout::Json(JsonWriter::new(schema, Frame::Lines)),
            Format::Vertical => Layout::Vertical(VerticalWriter::new(schema, &style)),
        };
        RowWriter { schema: schema.clone(), style, layout, rows: 0 }
    }

    /// Leaves the header line of csv and its like out, for rows that follow others of the same columns.
    pub fn without_header(mut self) -> Self {
        if let Layout::Delimited(writer) = &mut self.layout {
            writer.leave_header();
        }
        self
    }

    /// Takes the next rows.
    ///
    /// # Errors
    /// As [`write_rows`].
    pub fn write(&mut self, out: &mut dyn Write, batch: &RecordBatch) -> io::Result<()> {
        self.rows += batch.num_rows() as u64;
        match &mut self.layout {
            Layout::Grid(_, kept) => kept.push(batch),
            Layout::Delimited(writer) => writer.write(out, batch)?,
            Layout::Json(writer) => writer.write(out, batch)?,
            Layout::Html(writer) => writer.write(out, batch)?,
            Layout::Vertical(writer) => writer.write(out, batch)?,
        }
        Ok(())
    }

    /// Writes what is still to be written, and answers what there was.
    ///
    /// # Errors
    /// As [`write_rows`].
    pub fn finish(self, out: &mut dyn Write) -> io::Result<Written> {
        let columns = self.schema.fields().len();
        match self.layout {
            Layout::Grid(grid, kept) => return draw(out, grid, &self.style, &kept.finish(), &self.schema),
            Layout::Delimited(writer) => writer.finish(out, &self.schema)?,
            Layout::Json(writer) => writer.finish(out)?,
            Layout::Html(writer) => writer.finish(out)?,
            Layout::Vertical(_) => {}
        }
        Ok(Written { rows: self.rows, shown_rows: self.rows, columns, shown_columns: columns, clipped: false })
    }
}

fn draw(out: &mut dyn Write, grid: Grid, style: &Style, rows: &Ends, schema: &SchemaRef) -> io::Result<Written> {
    let drawing = Drawing::new(grid, style, rows, schema)?;
    if !(style.vertical_when_wide && drawing.is_cut()) {
        return drawing.write(out);
    }
    let mut writer = VerticalWriter::new(schema, style);
    for batch in &rows.first {
        writer.write(out, batch)?;
    }
    if rows.hidden > 0 {
        writer.skip(rows.hidden);
        writeln!(out, "{}", style.painted(DIM, "·"))?;
    }
    for batch in &rows.last {
        writer.write(out, batch)?;
    }
    let shown: usize = rows.batches().map(RecordBatch::num_rows).sum();
    let columns = schema.fields().len();
    Ok(Written {
        rows: shown as u64 + rows.hidden,
        shown_rows: shown as u64,
        columns,
        shown_columns: columns,
        clipped: false,
    })
}

/// A value that has no text.
pub(super) fn invalid(error: ArrowError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error.to_string())
}
