//! A table for a web page.

use std::io::{self, Write};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::cell::{Dialect, cells, is_number, plain_columns};
use super::style::Style;
use super::visible::visible;
use super::writer::invalid;

/// Writes rows as they come.
pub(super) struct HtmlWriter {
    names: Vec<String>,
    /// The opening tag of each column's fields.
    fields: Vec<&'static str>,
    null: String,
    header: bool,
    title: Option<String>,
    begun: bool,
}

impl HtmlWriter {
    pub(super) fn new(schema: &SchemaRef, style: &Style) -> Self {
        let number = |number| if number { "<td align=\"right\">" } else { "<td>" };
        HtmlWriter {
            names: schema.fields().iter().map(|field| escape(field.name())).collect(),
            fields: schema.fields().iter().map(|field| number(is_number(field.data_type()))).collect(),
            null: escape(style.null.as_deref().unwrap_or("NULL")),
            header: style.header,
            title: style.title.as_deref().map(escape),
            begun: false,
        }
    }

    pub(super) fn write(&mut self, out: &mut dyn Write, batch: &RecordBatch) -> io::Result<()> {
        self.begin(out)?;
        let columns = plain_columns(batch).map_err(invalid)?;
        let cells = cells(&columns, Dialect::People).map_err(invalid)?;
        let (mut line, mut text) = (String::new(), String::new());
        for row in 0..batch.num_rows() {
            line.clear();
            line.push_str("<tr>");
            for (cell, field) in cells.iter().zip(&self.fields) {
                line.push_str(field);
                if cell.is_null(row) {
                    line.push_str(&self.null);
                } else {
                    text.clear();
                    cell.write(row, &mut text).map_err(invalid)?;
                    line.push_str(&escape(&text));
                }
                line.push_str("</td>");
            }
            line.push_str("</tr>\n");
            out.write_all(line.as_bytes())?;
        }
        Ok(())
    }

    pub(super) fn finish(mut self, out: &mut dyn Write) -> io::Result<()> {
        self.begin(out)?;
        out.write_all(b"</table>\n")
    }

    fn begin(&mut self, out: &mut dyn Write) -> io::Result<()> {
        if std::mem::replace(&mut self.begun, true) {
            return Ok(());
        }
        let mut head = String::from("<table>\n");
        if let Some(title) = &self.title {
            head.extend(["<caption>", title, "</caption>\n"]);
        }
        if self.header {
            head.push_str("<tr>");
            self.names.iter().for_each(|name| head.extend(["<th>", name, "</th>"]));
            head.push_str("</tr>\n");
        }
        out.write_all(head.as_bytes())
    }
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in visible(text).chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            c => out.push(c),
        }
    }
    out
}
