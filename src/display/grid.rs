//! Grids: the box with types under names, the ASCII table, columns between blanks, and the markdown table.
//!
//! Two passes over the batches, so that no second copy of the result is kept: the first measures, the second
//! writes. Widths are those of a terminal: two columns for a CJK character or an emoji, none for a combining mark.

use std::io::{self, Write};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use unicode_width::UnicodeWidthStr;

use super::cell::{Cell, Dialect, cells, is_number, plain_columns};
use super::fit::{CUT, Fitted, Frame, Natural, clip, fit, total};
use super::kept::Ends;
use super::style::{BOLD, DIM, Style, Written};
use super::visible::visible;
use super::writer::invalid;
use crate::format::type_name;

/// What the grid is drawn with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Grid {
    Box,
    Ascii,
    Columns,
    Markdown,
}

/// A line between rows: its left end, what it is made of, its crossings, its right end.
type Rule = [&'static str; 4];

/// The strokes of a grid.
struct Strokes {
    /// In front of the first field, between two, behind the last.
    row: [&'static str; 3],
    top: Option<Rule>,
    /// Below the header.
    middle: Option<Rule>,
    bottom: Option<Rule>,
}

impl Grid {
    fn strokes(self) -> Strokes {
        let ascii = Some(["+-", "-", "-+-", "-+"]);
        match self {
            Grid::Box => Strokes {
                row: ["│ ", " │ ", " │"],
                top: Some(["┌─", "─", "─┬─", "─┐"]),
                middle: Some(["├─", "─", "─┼─", "─┤"]),
                bottom: Some(["└─", "─", "─┴─", "─┘"]),
            },
            Grid::Ascii => Strokes { row: ["| ", " | ", " |"], top: ascii, middle: ascii, bottom: ascii },
            Grid::Columns => {
                Strokes { row: ["", "  ", ""], top: None, middle: Some(["", "-", "  ", ""]), bottom: None }
            }
            // The rule of markdown says how a column is aligned, and is drawn apart.
            Grid::Markdown => Strokes { row: ["| ", " | ", " |"], top: None, middle: None, bottom: None },
        }
    }

    /// Types are told below the names.
    fn has_types(self) -> bool {
        self == Grid::Box
    }

    fn frame(self) -> Frame {
        let [left, between, right] = self.strokes().row;
        Frame { edges: left.width() + right.width(), between: between.width() }
    }
}

/// A column as it is drawn.
struct Column {
    title: String,
    type_name: String,
    width: usize,
    right: bool,
}

/// A grid that is measured.
pub(super) struct Drawing<'a> {
    grid: Grid,
    style: &'a Style,
    columns: Vec<Column>,
    rows: &'a Ends,
    fitted: Fitted,
}

impl<'a> Drawing<'a> {
    /// Measures what is to be drawn.
    pub(super) fn new(grid: Grid, style: &'a Style, rows: &'a Ends, schema: &SchemaRef) -> io::Result<Self> {
        let columns = measure(grid, style, rows, schema)?;
        let natural: Vec<Natural> =
            columns.iter().map(|column| Natural { width: column.width, whole: column.right }).collect();
        let fitted = match style.columns.filter(|_| grid != Grid::Markdown) {
            Some(screen) => fit(&natural, screen, grid.frame()),
            None => Fitted::whole(&natural),
        };
        Ok(Drawing { grid, style, columns, rows, fitted })
    }

    /// Whether something is left out or cut for the terminal.
    pub(super) fn is_cut(&self) -> bool {
        let widths: Vec<usize> = self.columns.iter().map(|column| column.width).collect();
        widths != self.fitted.widths || !self.fitted.hidden.is_empty()
    }

    /// Draws it all.
    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<Written> {
        let Strokes { top, middle, bottom, .. } = self.grid.strokes();
        let mut line = String::new();
        if let Some(title) = &self.style.title {
            let blank = self.width().saturating_sub(title.width()) / 2;
            line.extend([" ".repeat(blank).as_str(), &visible(title), "\n"]);
        }
        self.push_rule(top, &mut line);
        if self.style.header {
            self.push_row(self.columns.iter().map(|c| c.title.as_str()), Some(BOLD), &mut line);
            if self.grid.has_types() {
                self.push_row(self.columns.iter().map(|c| c.type_name.as_str()), Some(DIM), &mut line);
            }
            match self.grid {
                Grid::Markdown => self.push_alignment(&mut line),
                _ => self.push_rule(middle, &mut line),
            }
        }
        out.write_all(line.as_bytes())?;
        let mut shown = self.write_rows(&self.rows.first, out)?;
        if self.rows.hidden > 0 {
            line.clear();
            let dot = if self.grid == Grid::Box { "·" } else { ":" };
            self.push_row(self.columns.iter().map(|_| dot), Some(DIM), &mut line);
            out.write_all(line.as_bytes())?;
        }
        shown += self.write_rows(&self.rows.last, out)?;
        line.clear();
        self.push_rule(bottom, &mut line);
        out.write_all(line.as_bytes())?;
        Ok(Written {
            rows: shown + self.rows.hidden,
            shown_rows: shown,
            columns: self.columns.len(),
            shown_columns: self.columns.len() - self.fitted.hidden.len(),
            clipped: self.is_cut(),
        })
    }

    fn write_rows(&self, batches: &[RecordBatch], out: &mut dyn Write) -> io::Result<u64> {
        let mut line = String::new();
        let mut count = 0;
        for batch in batches {
            each_row(self.grid, self.style, batch, |row| {
                line.clear();
                self.push_row(row.iter().map(String::as_str), None, &mut line);
                count += 1;
                out.write_all(line.as_bytes())
            })?;
        }
        Ok(count)
    }

    /// One row: the fields that are shown, `…` for those that are not.
    fn push_row<'t>(&self, texts: impl Iterator<Item = &'t str>, mark: Option<char>, line: &mut String) {
        let [left, between, right] = self.grid.strokes().row;
        let hidden = &self.fitted.hidden;
        line.push_str(left);
        for (at, (text, column)) in texts.zip(&self.columns).enumerate() {
            if hidden.contains(&at) && at != hidden.start {
                continue;
            }
            if at > 0 {
                line.push_str(between);
            }
            if at == hidden.start && !hidden.is_empty() {
                line.push_str(&self.style.painted(DIM, CUT));
                continue;
            }
            self.push_field(text, column.right, self.fitted.widths[at], mark, line);
        }
        line.push_str(right);
        if right.is_empty() {
            line.truncate(line.trim_end_matches(' ').len());
        }
        line.push('\n');
    }

    fn push_field(&self, text: &str, right: bool, width: usize, mark: Option<char>, line: &mut String) {
        let (text, cut) = clip(text, width);
        let gap = width.saturating_sub(text.width() + usize::from(cut));
        let (before, behind) = if right { (gap, 0) } else { (0, gap) };
        line.extend(std::iter::repeat_n(' ', before));
        match mark {
            Some(mark) => line.push_str(&self.style.painted(mark, text)),
            None => line.push_str(text),
        }
        if cut {
            line.push_str(&self.style.painted(DIM, CUT));
        }
        line.extend(std::iter::repeat_n(' ', behind));
    }

    fn push_rule(&self, rule: Option<Rule>, line: &mut String) {
        let Some([left, stroke, cross, right]) = rule else { return };
        line.push_str(left);
        for (at, width) in self.shown_widths().into_iter().enumerate() {
            if at > 0 {
                line.push_str(cross);
            }
            line.extend(std::iter::repeat_n(stroke, width));
        }
        line.extend([right, "\n"]);
    }

    /// `| ---- | ----: |`
    fn push_alignment(&self, line: &mut String) {
        for column in &self.columns {
            let dashes = "-".repeat(column.width);
            match column.right {
                false => line.extend(["| ", &dashes, " "]),
                true => line.extend(["| ", &dashes[1..], ": "]),
            }
        }
        line.push_str("|\n");
    }

    fn shown_widths(&self) -> Vec<usize> {
        let Fitted { widths, hidden } = &self.fitted;
        let mut shown = widths[..hidden.start].to_vec();
        shown.extend((!hidden.is_empty()).then_some(1));
        shown.extend(&widths[hidden.end..]);
        shown
    }

    fn width(&self) -> usize {
        total(&self.fitted.widths, &self.fitted.hidden, self.grid.frame())
    }
}

fn measure(grid: Grid, style: &Style, rows: &Ends, schema: &SchemaRef) -> io::Result<Vec<Column>> {
    let column = |(at, field): (usize, &arrow::datatypes::FieldRef)| {
        let title = if style.header { escape(grid, field.name()) } else { String::new() };
        let type_name = match style.header && grid.has_types() {
            true => visible(&type_name(field.data_type()).to_lowercase()).into_owned(),
            false => String::new(),
        };
        // A rule of markdown wants three characters, and what is left out one.
        let least = if grid == Grid::Markdown { 3 } else { usize::from(rows.hidden > 0) };
        let least = least.max(style.widths.get(at).copied().unwrap_or(0));
        let width = title.width().max(type_name.width()).max(least);
        Column { width, right: is_number(field.data_type()), title, type_name }
    };
    let mut columns: Vec<Column> = schema.fields().iter().enumerate().map(column).collect();
    for batch in rows.batches() {
        each_row(grid, style, batch, |row| {
            for (text, column) in row.iter().zip(&mut columns) {
                column.width = column.width.max(text.width());
            }
            Ok(())
        })?;
    }
    Ok(columns)
}

/// Hands over the texts of each row.
fn each_row(
    grid: Grid,
    style: &Style,
    batch: &RecordBatch,
    mut take: impl FnMut(&[String]) -> io::Result<()>,
) -> io::Result<()> {
    let plain = plain_columns(batch).map_err(invalid)?;
    let cells = cells(&plain, Dialect::People).map_err(invalid)?;
    let null = escape(grid, style.null.as_deref().unwrap_or("NULL"));
    let mut row = vec![String::new(); cells.len()];
    for at in 0..batch.num_rows() {
        for (text, cell) in row.iter_mut().zip(&cells) {
            text.clear();
            *text = cell_text(grid, &null, cell, at, std::mem::take(text))?;
        }
        take(&row)?;
    }
    Ok(())
}

fn cell_text(grid: Grid, null: &str, cell: &Cell<'_>, row: usize, mut text: String) -> io::Result<String> {
    if cell.is_null(row) {
        text.push_str(null);
        return Ok(text);
    }
    cell.write(row, &mut text).map_err(invalid)?;
    // Most texts need no escape and keep their buffer.
    let escaped = escape(grid, &text);
    Ok(if escaped == text { text } else { escaped })
}

fn escape(grid: Grid, text: &str) -> String {
    match grid {
        Grid::Markdown => visible(text).replace('|', "\\|"),
        _ => visible(text).into_owned(),
    }
}
