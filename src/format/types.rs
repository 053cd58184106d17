//! Types by name, and which of them a format can be read as.

use arrow::datatypes::{DataType, Fields};

use super::Format;
use super::column::{Column, Values};
use crate::error::{Error, Result};

pub(super) fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

/// Whether every field can be read from `format`.
///
/// # Errors
/// Unsupported, naming the column, its type and the format.
pub fn check_types(format: Format, fields: &Fields) -> Result<()> {
    if format == Format::Parquet {
        return Ok(());
    }
    for field in fields {
        let column = Column::new(field)?;
        let nested = matches!(column.values, Values::List { .. } | Values::Map { .. } | Values::Struct(_));
        if nested && format != Format::Json {
            return Err(Error::unsupported(format!(
                "column {} is {}: {} has only plain values",
                field.name(),
                type_name(field.data_type()),
                format.name()
            ))
            .help("declare it TEXT and take it apart in the query"));
        }
        if format == Format::Text && (fields.len() != 1 || !is_text(field.data_type())) {
            return Err(Error::invalid("format text gives one column, the line: declare one column of type TEXT"));
        }
    }
    Ok(())
}

/// A type as SQL names it, for messages.
pub fn type_name(data_type: &DataType) -> String {
    match data_type {
        DataType::Boolean => "BOOLEAN".into(),
        DataType::Int8 => "TINYINT".into(),
        DataType::Int16 => "SMALLINT".into(),
        DataType::Int32 => "INT".into(),
        DataType::Int64 => "BIGINT".into(),
        DataType::UInt8 => "TINYINT UNSIGNED".into(),
        DataType::UInt16 => "SMALLINT UNSIGNED".into(),
        DataType::UInt32 => "INT UNSIGNED".into(),
        DataType::UInt64 => "BIGINT UNSIGNED".into(),
        DataType::Float32 => "REAL".into(),
        DataType::Float64 => "DOUBLE".into(),
        DataType::Decimal128(precision, scale) | DataType::Decimal256(precision, scale) => {
            format!("DECIMAL({precision}, {scale})")
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "TEXT".into(),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => "BYTEA".into(),
        DataType::Date32 | DataType::Date64 => "DATE".into(),
        DataType::Time32(_) | DataType::Time64(_) => "TIME".into(),
        DataType::Timestamp(_, None) => "TIMESTAMP".into(),
        DataType::Timestamp(_, Some(_)) => "TIMESTAMP WITH TIME ZONE".into(),
        DataType::List(element) | DataType::LargeList(element) => format!("{}[]", type_name(element.data_type())),
        DataType::Struct(fields) => {
            let fields: Vec<String> =
                fields.iter().map(|f| format!("{} {}", f.name(), type_name(f.data_type()))).collect();
            format!("STRUCT<{}>", fields.join(", "))
        }
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(fields) if fields.len() == 2 => {
                format!("MAP<{}, {}>", type_name(fields[0].data_type()), type_name(fields[1].data_type()))
            }
            _ => "MAP".into(),
        },
        other => other.to_string(),
    }
}
