//! Grids: the ASCII table and the markdown table.
//!
//! Two passes over the batches, so that no second copy of the result is kept: the first measures, the second
//! writes. Widths are those of a terminal: two columns for a CJK character or an emoji, none for a combining mark.

use std::io::{self, Write};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use unicode_width::UnicodeWidthStr;

use super::cell::{Cell, Dialect, cells, is_number, plain_columns};
use super::visible::visible;
use super::writer::invalid;

/// What the grid is drawn with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Grid {
    Ascii,
    Markdown,
}

/// A column as it is drawn.
struct Column {
    title: String,
    width: usize,
    right: bool,
}

/// Writes the whole result.
pub(super) fn write_table(
    out: &mut dyn Write,
    grid: Grid,
    batches: &[RecordBatch],
    schema: &SchemaRef,
) -> io::Result<()> {
    let columns = measure(grid, batches, schema)?;
    let rule = rule(grid, &columns);
    let mut line = String::new();
    for column in &columns {
        push_field(&column.title, column, &mut line);
    }
    line.push_str("|\n");
    match grid {
        Grid::Ascii => out.write_all([rule.as_str(), &line, &rule].concat().as_bytes())?,
        Grid::Markdown => out.write_all([line.as_str(), &rule].concat().as_bytes())?,
    }
    for batch in batches {
        each_row(grid, batch, |row| {
            line.clear();
            for (text, column) in row.iter().zip(&columns) {
                push_field(text, column, &mut line);
            }
            line.push_str("|\n");
            out.write_all(line.as_bytes())
        })?;
    }
    if grid == Grid::Ascii { out.write_all(rule.as_bytes()) } else { Ok(()) }
}

fn measure(grid: Grid, batches: &[RecordBatch], schema: &SchemaRef) -> io::Result<Vec<Column>> {
    let column = |field: &arrow::datatypes::FieldRef| {
        let title = escape(grid, field.name());
        // A rule of markdown wants three characters.
        let least = if grid == Grid::Markdown { 3 } else { 0 };
        Column { width: title.width().max(least), right: is_number(field.data_type()), title }
    };
    let mut columns: Vec<Column> = schema.fields().iter().map(column).collect();
    for batch in batches {
        each_row(grid, batch, |row| {
            for (text, column) in row.iter().zip(&mut columns) {
                column.width = column.width.max(text.width());
            }
            Ok(())
        })?;
    }
    Ok(columns)
}

/// Hands over the texts of each row.
fn each_row(grid: Grid, batch: &RecordBatch, mut take: impl FnMut(&[String]) -> io::Result<()>) -> io::Result<()> {
    let plain = plain_columns(batch).map_err(invalid)?;
    let cells = cells(&plain, Dialect::People).map_err(invalid)?;
    let mut row = vec![String::new(); cells.len()];
    for at in 0..batch.num_rows() {
        for (text, cell) in row.iter_mut().zip(&cells) {
            text.clear();
            *text = cell_text(grid, cell, at, std::mem::take(text))?;
        }
        take(&row)?;
    }
    Ok(())
}

fn cell_text(grid: Grid, cell: &Cell<'_>, row: usize, mut text: String) -> io::Result<String> {
    if cell.is_null(row) {
        text.push_str("NULL");
        return Ok(text);
    }
    cell.write(row, &mut text).map_err(invalid)?;
    // Most texts need no escape and keep their buffer.
    let escaped = escape(grid, &text);
    Ok(if escaped == text { text } else { escaped })
}

fn escape(grid: Grid, text: &str) -> String {
    match grid {
        Grid::Ascii => visible(text).into_owned(),
        Grid::Markdown => visible(text).replace('|', "\\|"),
    }
}

fn push_field(text: &str, column: &Column, line: &mut String) {
    let gap = column.width.saturating_sub(text.width());
    let (before, behind) = if column.right { (gap, 0) } else { (0, gap) };
    line.push_str("| ");
    line.extend(std::iter::repeat_n(' ', before));
    line.push_str(text);
    line.extend(std::iter::repeat_n(' ', behind + 1));
}

fn rule(grid: Grid, columns: &[Column]) -> String {
    let mut rule = String::new();
    for column in columns {
        let dashes = "-".repeat(column.width);
        match (grid, column.right) {
            (Grid::Ascii, _) => rule.extend(["+-", &dashes, "-"]),
            (Grid::Markdown, false) => rule.extend(["| ", &dashes, " "]),
            (Grid::Markdown, true) => rule.extend(["| ", &dashes[1..], ": "]),
        }
    }
    rule + if grid == Grid::Ascii { "+\n" } else { "|\n" }
}
