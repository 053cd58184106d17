//! Rows → text: tables, csv, tsv, json, json lines, markdown, html, one column a line; and errors with their line of SQL.
//!
//! This room knows record batches and text. It doesn't know where the text goes or what a query is. Everything it is
//! given is shown, unless its [`Style`] knows how many rows or columns there is room for.
//!
//! ```text
//! RecordBatch ─cell→ text of one value ─grid | delimited | json | html | vertical→ lines
//! ```

mod cell;
mod chart;
mod delimited;
mod error;
mod fit;
mod format;
mod grid;
mod html;
mod json;
mod kept;
mod lines;
mod sparkline;
mod style;
#[cfg(test)]
mod tests;
mod texts;
mod time;
mod vertical;
mod visible;
mod writer;

pub use chart::{bar_chart, label_columns};
pub use error::{render_error, render_error_within};
pub use format::Format;
pub use lines::line_chart;
pub use sparkline::sparkline;
pub use style::{ALERT, BOLD, DIM, PLAIN, Style, Written, for_file, for_terminal, paint};
pub use texts::row_texts;
pub use visible::{visible, visible_lines};
pub use writer::{RowWriter, write_rows};
