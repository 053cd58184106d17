//! What people and other programs read: tables, csv, json.
//!
//! This room knows record batches; it knows no queries and no terminal.

pub mod table;

pub use table::write_rows;

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Table,
    Csv,
    /// One array of objects.
    Json,
    /// One object a line.
    JsonLines,
    Markdown,
    Vertical,
}
