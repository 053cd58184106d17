//! Columns that hold nothing but their rows.
//!
//! Text is a view of buffers that many rows share, and a few rows taken out keep all of them alive, in files too. What is
//! remembered row by row must not.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::DataType;
use arrow::row::{RowConverter, SortField};

use crate::error::{Error, Result};

/// The same rows.
///
/// # Errors
/// Internal.
pub fn owned(column: ArrayRef) -> Result<ArrayRef> {
    match column.data_type() {
        DataType::Utf8View => Ok(Arc::new(column.as_string_view().gc())),
        DataType::BinaryView => Ok(Arc::new(column.as_binary_view().gc())),
        nested if holds_views(nested) => {
            let fields = vec![SortField::new(nested.clone())];
            if !RowConverter::supports_fields(&fields) {
                return Ok(column);
            }
            let internal = |e: arrow::error::ArrowError| Error::internal(format!("a column of its own: {e}"));
            let converter = RowConverter::new(fields).map_err(internal)?;
            let rows = converter.convert_columns(&[column]).map_err(internal)?;
            let mut columns = converter.convert_rows(&rows).map_err(internal)?;
            columns.pop().ok_or_else(|| Error::internal("a column was lost"))
        }
        _ => Ok(column),
    }
}

fn holds_views(data_type: &DataType) -> bool {
    match data_type {
        DataType::Utf8View | DataType::BinaryView => true,
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _) => holds_views(field.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| holds_views(field.data_type())),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Array, StringViewArray, StructArray};
    use arrow::datatypes::{Field, Fields};

    use super::*;

    #[test]
    fn a_row_of_many_keeps_itself_alone() {
        let texts = (0..1_000).map(|n| format!("a text that is too long for a view, number {n}"));
        let texts: ArrayRef = Arc::new(StringViewArray::from_iter_values(texts));
        let fields = Fields::from(vec![Field::new("text", DataType::Utf8View, true)]);
        let structs: ArrayRef = Arc::new(StructArray::new(fields, vec![texts.clone()], None));
        for column in [texts, structs] {
            let slice = column.slice(7, 1);
            assert!(slice.get_buffer_memory_size() > 20_000);
            let own = owned(slice.clone()).unwrap();
            assert!(own.get_buffer_memory_size() < 2_000, "{}", own.get_buffer_memory_size());
            assert_eq!(&own, &slice);
        }
    }
}
