//! `\chart`: the last result as bars, or as a line through its rows.

use arrow::datatypes::Schema;

use super::crosstab::find;
use super::live::{Column, columns};
use super::runner::Shell;
use super::settings::MOST_ROWS;
use super::terminal;
use crate::display::{BOLD, bar_chart, label_columns, line_chart, paint, row_texts, visible};
use crate::error::{Error, Result};

/// As wide as a chart is where there is no terminal.
const COLUMNS: usize = 80;

/// Lines that a line chart takes, where the terminal has them.
const HEIGHT: usize = 16;

/// How numbers are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A bar for each row.
    Bars,
    /// A line from row to row.
    Lines,
}

impl Shell {
    /// Draws a column of the last result. `words`: the column's name and `bars` or `lines`, both of which may be left out.
    pub(super) fn chart(&self, words: &[String]) -> Result<()> {
        let (schema, batches) = self.last.result.kept("draw what a GROUP BY makes of it")?;
        let columns = columns(schema);
        let (drawn, kind) = read(words, schema, &columns)?;
        let labels = label_columns(&columns.iter().map(|column| column.number).collect::<Vec<_>>(), drawn);
        let screen = self.output.is_terminal.then(terminal::Screen::now);
        let width = screen.and_then(|screen| screen.columns).unwrap_or(COLUMNS);
        let mut rows = Vec::new();
        for batch in batches {
            for cells in row_texts(batch)? {
                let text = |at: &usize| cells.get(*at).and_then(|cell| cell.as_deref()).unwrap_or("NULL");
                let label: Vec<&str> = labels.iter().map(text).collect();
                rows.push((shortened(&label.join(" "), width / 3), visible(text(&drawn)).into_owned()));
            }
        }
        let (_, style) = self.settings.look(screen);
        let unicode = screen.is_some_and(|screen| screen.unicode) && !self.settings.plain;
        let mut lines = vec![match style.paint {
            true => paint(BOLD, &columns[drawn].name),
            false => columns[drawn].name.clone(),
        }];
        match kind.unwrap_or(if rows.len() > MOST_ROWS { Kind::Lines } else { Kind::Bars }) {
            Kind::Bars => {
                let shown = style.rows.map_or(rows.len(), |most| most.min(rows.len()));
                lines.extend(bar_chart(&rows[..shown], width.saturating_sub(1), unicode));
                if shown < rows.len() {
                    lines.push(format!("({} more rows: \\chart lines draws all)", rows.len() - shown));
                }
            }
            Kind::Lines => {
                let height = screen.and_then(|screen| screen.rows).map_or(HEIGHT, |rows| rows.saturating_sub(5));
                let drawn = line_chart(&rows, width.saturating_sub(1), height.clamp(2, HEIGHT), unicode);
                if drawn.is_empty() {
                    lines.push("(no number)".to_string());
                }
                lines.extend(drawn);
            }
        }
        self.print_text(&(lines.join("\n") + "\n"))
    }
}

fn shortened(label: &str, most: usize) -> String {
    super::live::clip(&visible(label), most, false)
}

/// The column that is drawn, and how. A word that names a column is that column.
fn read(words: &[String], schema: &Schema, columns: &[Column]) -> Result<(usize, Option<Kind>)> {
    let (mut drawn, mut kind) = (None, None);
    for word in words {
        let named = find(word, schema);
        match (named, word.as_str()) {
            (Ok(at), _) if drawn.is_none() => drawn = Some(at),
            (_, "bar" | "bars") if kind.is_none() => kind = Some(Kind::Bars),
            (_, "line" | "lines") if kind.is_none() => kind = Some(Kind::Lines),
            (Err(error), _) => return Err(error),
            (Ok(_), _) => return Err(Error::invalid("\\chart is written \\chart [COLUMN] [bars|lines]")),
        }
    }
    let drawn = match drawn {
        Some(at) if columns[at].number => at,
        Some(at) => return Err(Error::invalid(format!("column {} is no number", columns[at].name))),
        None => columns
            .iter()
            .rposition(|column| column.number)
            .ok_or_else(|| Error::invalid("the last result has no column that is a number"))?,
    };
    Ok((drawn, kind))
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{DataType, Field};

    use super::*;

    fn read_words(words: &str) -> std::result::Result<(usize, Option<Kind>), String> {
        let field = |name: &str, data_type| Field::new(name, data_type, true);
        let fields = vec![field("page", DataType::Utf8), field("lines", DataType::Int64), field("n", DataType::Int64)];
        let words: Vec<String> = words.split_whitespace().map(str::to_string).collect();
        let schema = Schema::new(fields);
        read(&words, &schema, &columns(&schema)).map_err(|error| error.to_string())
    }

    #[test]
    fn a_word_names_a_column_first() {
        assert_eq!(read_words(""), Ok((2, None)));
        assert_eq!(read_words("bars"), Ok((2, Some(Kind::Bars))));
        assert_eq!(read_words("lines"), Ok((1, None)));
        assert_eq!(read_words("lines lines"), Ok((1, Some(Kind::Lines))));
        assert_eq!(read_words("bar n"), Ok((2, Some(Kind::Bars))));
        assert_eq!(read_words("page"), Err("column page is no number".to_string()));
        assert_eq!(read_words("\"n\" 2"), Err("\\chart is written \\chart [COLUMN] [bars|lines]".to_string()));
        assert_eq!((read_words("N"), read_words("3")), (Ok((2, None)), Ok((2, None))));
        assert_eq!(read_words("m"), Err("the last result has no column \"m\"".to_string()));
        assert_eq!(read_words("bars bars"), Err("the last result has no column \"bars\"".to_string()));
    }
}
