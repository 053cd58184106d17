//! One column a line, for rows wider than a screen.

use std::io::{self, Write};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use unicode_width::UnicodeWidthStr;

use super::cell::{Dialect, cells, plain_columns};
use super::style::{DIM, Style};
use super::visible::visible;
use super::writer::invalid;

/// The rule above a record is as long as its longest line, up to this or the width of the terminal.
const LONGEST_RULE: usize = 78;

/// Writes records as rows come.
pub(super) struct VerticalWriter {
    names: Vec<String>,
    /// Of the longest name.
    width: usize,
    style: Style,
    record: u64,
}

impl VerticalWriter {
    pub(super) fn new(schema: &SchemaRef, style: &Style) -> Self {
        let names: Vec<String> = schema.fields().iter().map(|field| visible(field.name()).into_owned()).collect();
        let width = names.iter().map(|name| name.width()).max().unwrap_or(0);
        VerticalWriter { names, width, style: style.clone(), record: 0 }
    }

    /// Passes over records that are not shown.
    pub(super) fn skip(&mut self, records: u64) {
        self.record += records;
    }

    pub(super) fn write(&mut self, out: &mut dyn Write, batch: &RecordBatch) -> io::Result<()> {
        let columns = plain_columns(batch).map_err(invalid)?;
        let cells = cells(&columns, Dialect::People).map_err(invalid)?;
        let null = self.style.null.clone().unwrap_or_else(|| "NULL".to_string());
        for row in 0..batch.num_rows() {
            let mut lines = String::new();
            let (mut text, mut longest) = (String::new(), 0);
            for (name, cell) in self.names.iter().zip(&cells) {
                text.clear();
                if cell.is_null(row) {
                    text.push_str(&null);
                } else {
                    cell.write(row, &mut text).map_err(invalid)?;
                }
                let text = visible(&text);
                longest = longest.max(text.width());
                let gap = " ".repeat(self.width - name.width());
                lines.extend([name.as_str(), &gap, " | ", &*text]);
                lines.truncate(lines.trim_end_matches(' ').len());
                lines.push('\n');
            }
            if self.record == 0
                && let Some(title) = &self.style.title
            {
                out.write_all(format!("{}\n", visible(title)).as_bytes())?;
            }
            self.record += 1;
            if self.style.header {
                out.write_all(format!("{}\n", self.style.painted(DIM, &self.rule(longest))).as_bytes())?;
            } else if self.record > 1 {
                out.write_all(b"\n")?;
            }
            out.write_all(lines.as_bytes())?;
        }
        Ok(())
    }

    /// `-[ RECORD 1 ]-+------`: the plus stands over the bars, where the names leave room for it.
    fn rule(&self, longest: usize) -> String {
        let mut rule = format!("-[ RECORD {} ]", self.record);
        while rule.len() < self.width + 1 {
            rule.push('-');
        }
        rule.push(if rule.len() == self.width + 1 { '+' } else { '-' });
        let most = self.style.columns.map_or(LONGEST_RULE, |columns| LONGEST_RULE.min(columns));
        while rule.len() < (self.width + 3 + longest).min(most) {
            rule.push('-');
        }
        rule
    }
}
