//! One column a line, for rows wider than a screen.

use std::io::{self, Write};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use unicode_width::UnicodeWidthStr;

use super::cell::{Dialect, cells, plain_columns};
use super::visible::visible;
use super::writer::invalid;

/// The rule above a record is as long as its longest line, up to this.
const LONGEST_RULE: usize = 78;

/// Writes records as rows come.
pub(super) struct VerticalWriter {
    names: Vec<String>,
    /// Of the longest name.
    width: usize,
    record: u64,
}

impl VerticalWriter {
    pub(super) fn new(schema: &SchemaRef) -> Self {
        let names: Vec<String> = schema.fields().iter().map(|field| visible(field.name()).into_owned()).collect();
        let width = names.iter().map(|name| name.width()).max().unwrap_or(0);
        VerticalWriter { names, width, record: 0 }
    }

    pub(super) fn write(&mut self, out: &mut dyn Write, batch: &RecordBatch) -> io::Result<()> {
        let columns = plain_columns(batch).map_err(invalid)?;
        let cells = cells(&columns, Dialect::People).map_err(invalid)?;
        for row in 0..batch.num_rows() {
            let mut lines = String::new();
            let (mut text, mut longest) = (String::new(), 0);
            for (name, cell) in self.names.iter().zip(&cells) {
                text.clear();
                if cell.is_null(row) {
                    text.push_str("NULL");
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
            self.record += 1;
            out.write_all(self.rule(longest).as_bytes())?;
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
        while rule.len() < (self.width + 3 + longest).min(LONGEST_RULE) {
            rule.push('-');
        }
        rule.push('\n');
        rule
    }
}
