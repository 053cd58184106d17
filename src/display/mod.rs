//! Rows → text: tables, csv, tsv, json, json lines, markdown, one column a line; and errors with their line of SQL.
//!
//! This room knows record batches and text. It doesn't know where the text goes, how wide a terminal is, or what a
//! query is. Everything it is given is shown: it never cuts a value or leaves out a row.
//!
//! ```text
//! RecordBatch ─cell→ text of one value ─table | delimited | json | vertical→ lines
//! ```

mod cell;
mod delimited;
mod error;
mod format;
mod json;
mod table;
#[cfg(test)]
mod tests;
mod time;
mod vertical;
mod visible;
mod writer;

pub use error::render_error;
pub use format::Format;
pub use visible::{visible, visible_lines};
pub use writer::{RowWriter, write_rows};
