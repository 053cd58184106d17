//! The values of rows as texts, for who takes them one by one.

use arrow::array::RecordBatch;

use super::cell::{Dialect, cells, plain_columns};
use crate::error::{Error, Result};

/// The rows of a batch as people see them; `None` is NULL.
///
/// # Errors
/// A value has no text.
pub fn row_texts(batch: &RecordBatch) -> Result<Vec<Vec<Option<String>>>> {
    let columns = plain_columns(batch)?;
    let cells = cells(&columns, Dialect::People)?;
    let text = |row: usize| {
        let texts = cells.iter().map(|cell| {
            let mut text = String::new();
            (!cell.is_null(row)).then(|| cell.write(row, &mut text).map(|()| text)).transpose()
        });
        texts.collect::<std::result::Result<Vec<_>, _>>().map_err(Error::from)
    };
    (0..batch.num_rows()).map(text).collect()
}
