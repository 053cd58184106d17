//! Rows as text, in each of the formats.

use std::io::{self, Write};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use comfy_table::{CellAlignment, ContentLineStyle, LineStyle, Table, TableStyle};

use super::Format;

/// Writes `batches`, which all have `schema`, to `out`. CSV begins with its header.
///
/// # Errors
/// Whatever `out` says, or a column whose type the format has no text for.
pub fn write_rows(out: &mut dyn Write, format: Format, batches: &[RecordBatch], schema: &SchemaRef) -> io::Result<()> {
    match format {
        Format::Table => write_table(out, batches, schema, ASCII),
        Format::Markdown => write_table(out, batches, schema, MARKDOWN),
        Format::Vertical => write_vertical(out, batches, schema),
        Format::Csv => write_csv(out, batches, schema),
        Format::Json => {
            let mut writer = arrow::json::writer::ArrayWriter::new(out);
            batches.iter().try_for_each(|b| writer.write(b)).and_then(|()| writer.finish()).map_err(to_io)?;
            writeln!(writer.into_inner())
        }
        Format::JsonLines => {
            let mut writer = arrow::json::writer::LineDelimitedWriter::new(out);
            batches.iter().try_for_each(|b| writer.write(b)).and_then(|()| writer.finish()).map_err(to_io)
        }
    }
}

const ASCII: TableStyle = TableStyle::new()
    .top_border(LineStyle::new('+', '-', '+', '+'))
    .header_lines(ContentLineStyle::new('|', '|', '|'))
    .header_separator(LineStyle::new('+', '-', '+', '+'))
    .content_lines(ContentLineStyle::new('|', '|', '|'))
    .bottom_border(LineStyle::new('+', '-', '+', '+'));

const MARKDOWN: TableStyle = TableStyle::new()
    .header_lines(ContentLineStyle::new('|', '|', '|'))
    .header_separator(LineStyle::new('|', '-', '|', '|'))
    .content_lines(ContentLineStyle::new('|', '|', '|'));

fn write_table(out: &mut dyn Write, batches: &[RecordBatch], schema: &SchemaRef, style: TableStyle) -> io::Result<()> {
    let mut table = Table::new();
    table.load_style(style);
    table.set_header(schema.fields().iter().map(|f| f.name().as_str()));
    each_row(batches, |cells| {
        table.add_row(cells);
        Ok(())
    })?;
    for (index, field) in schema.fields().iter().enumerate() {
        if let (true, Some(column)) = (field.data_type().is_numeric(), table.column_mut(index)) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    writeln!(out, "{table}")
}

fn write_vertical(out: &mut dyn Write, batches: &[RecordBatch], schema: &SchemaRef) -> io::Result<()> {
    let width = schema.fields().iter().map(|f| f.name().chars().count()).max().unwrap_or(0);
    let mut number = 0;
    each_row(batches, |cells| {
        number += 1;
        writeln!(out, "-[ RECORD {number} ]-")?;
        cells.iter().zip(schema.fields()).try_for_each(|(cell, f)| writeln!(out, "{:width$} | {cell}", f.name()))
    })
}

fn write_csv(out: &mut dyn Write, batches: &[RecordBatch], schema: &SchemaRef) -> io::Result<()> {
    let mut writer = arrow::csv::WriterBuilder::new().with_header(true).build(out);
    writer.write(&RecordBatch::new_empty(schema.clone())).map_err(to_io)?;
    batches.iter().try_for_each(|b| writer.write(b)).map_err(to_io)
}

fn each_row(batches: &[RecordBatch], mut row: impl FnMut(Vec<String>) -> io::Result<()>) -> io::Result<()> {
    let options = FormatOptions::default();
    for batch in batches {
        let formatters = batch.columns().iter().map(|c| ArrayFormatter::try_new(c.as_ref(), &options));
        let formatters = formatters.collect::<Result<Vec<_>, _>>().map_err(to_io)?;
        for index in 0..batch.num_rows() {
            row(formatters.iter().map(|f| f.value(index).to_string()).collect())?;
        }
    }
    Ok(())
}

fn to_io(error: ArrowError) -> io::Error {
    match error {
        ArrowError::IoError(_, error) => error,
        other => io::Error::other(other),
    }
}
