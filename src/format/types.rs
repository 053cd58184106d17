//! Types by name, and which of them a format can be read as.

use arrow::datatypes::{DataType, Fields, IntervalUnit, TimeUnit};

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
            .help("declare it STRING and take it apart in the query"));
        }
        if format == Format::Text && (fields.len() != 1 || !is_text(field.data_type())) {
            return Err(Error::invalid("format text gives one column, the line: declare one column of type STRING"));
        }
    }
    Ok(())
}

/// A type as SQL names it, for messages.
pub fn type_name(data_type: &DataType) -> String {
    sql_type(data_type, &str::to_string)
}

/// A type as SQL names it; `ident` writes the names of fields.
pub fn sql_type(data_type: &DataType, ident: &dyn Fn(&str) -> String) -> String {
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
        DataType::Float32 => "FLOAT".into(),
        DataType::Float64 => "DOUBLE".into(),
        DataType::Decimal128(precision, scale) | DataType::Decimal256(precision, scale) => {
            format!("DECIMAL({precision}, {scale})")
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "STRING".into(),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => "BYTEA".into(),
        DataType::Date32 => "DATE".into(),
        DataType::Time32(_) | DataType::Time64(_) => "TIME".into(),
        DataType::Timestamp(unit, zone) => timestamp_name(*unit, zone.is_some()),
        DataType::Interval(IntervalUnit::MonthDayNano) => "INTERVAL".into(),
        DataType::List(field) | DataType::LargeList(field) => format!("ARRAY<{}>", sql_type(field.data_type(), ident)),
        DataType::Struct(fields) => {
            let fields: Vec<_> =
                fields.iter().map(|f| format!("{} {}", ident(f.name()), sql_type(f.data_type(), ident))).collect();
            format!("STRUCT<{}>", fields.join(", "))
        }
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(kv) if kv.len() == 2 => {
                format!("MAP({}, {})", sql_type(kv[0].data_type(), ident), sql_type(kv[1].data_type(), ident))
            }
            _ => data_type.to_string(),
        },
        DataType::Dictionary(_, value) => sql_type(value, ident),
        other => other.to_string(),
    }
}

fn timestamp_name(unit: TimeUnit, zone: bool) -> String {
    let precision = match unit {
        TimeUnit::Second => "(0)",
        TimeUnit::Millisecond => "(3)",
        TimeUnit::Microsecond => "",
        TimeUnit::Nanosecond => "(9)",
    };
    format!("TIMESTAMP{precision}{}", if zone { " WITH TIME ZONE" } else { "" })
}
