//! What is known of the columns of a result, and how their texts are ordered.

use std::cmp::Ordering;

use arrow::datatypes::{DataType, Schema};

/// A column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::shell) struct Column {
    pub(in crate::shell) name: String,
    /// Of its type, in small letters.
    pub(super) kind: String,
    pub(super) data_type: DataType,
    pub(in crate::shell) number: bool,
    pub(super) time: bool,
}

/// Where a row says until when its window reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WindowEnd {
    /// A column of times.
    Column(usize),
    /// A struct with a field `end`.
    Field(usize),
}

/// The columns of a result.
pub(in crate::shell) fn columns(schema: &Schema) -> Vec<Column> {
    let column = |field: &arrow::datatypes::FieldRef| Column {
        name: crate::display::visible(field.name()).into_owned(),
        kind: kind(field.data_type()),
        data_type: plain(field.data_type()).clone(),
        number: plain(field.data_type()).is_numeric(),
        time: is_time(field.data_type()),
    };
    schema.fields().iter().map(column).collect()
}

/// Where the end of a row's window is, if the result has it.
pub(super) fn window_end(schema: &Schema) -> Option<WindowEnd> {
    schema.fields().iter().enumerate().find_map(|(at, field)| match field.data_type() {
        DataType::Timestamp(..) if ["end", "window_end"].contains(&field.name().to_lowercase().as_str()) => {
            Some(WindowEnd::Column(at))
        }
        DataType::Struct(fields) if fields.iter().any(|field| field.name() == "end" && is_time(field.data_type())) => {
            Some(WindowEnd::Field(at))
        }
        _ => None,
    })
}

impl WindowEnd {
    /// The end of a row's window in milliseconds.
    pub(super) fn of(self, cells: &[Option<String>]) -> Option<i64> {
        let text = match self {
            WindowEnd::Column(at) => cells.get(at)?.as_deref()?,
            WindowEnd::Field(at) => {
                let behind = cells.get(at)?.as_deref()?.rsplit_once("end: ")?.1;
                behind.split([',', '}']).next()?
            }
        };
        millis(text)
    }
}

/// A time as results write it, in milliseconds.
pub(super) fn millis(text: &str) -> Option<i64> {
    if let Ok(time) = chrono::DateTime::parse_from_rfc3339(text) {
        return Some(time.timestamp_millis());
    }
    let time = chrono::NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S%.f").ok()?;
    Some(time.and_utc().timestamp_millis())
}

/// The order of two values of a column: numbers by what they are, NULL last.
pub(in crate::shell) fn compare(a: Option<&str>, b: Option<&str>, number: bool) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) if number => compare_numbers(a, b),
        (Some(a), Some(b)) => a.cmp(b),
        (None, None) => Ordering::Equal,
        (None, Some(_)) => Ordering::Greater,
        (Some(_), None) => Ordering::Less,
    }
}

/// Whole numbers exactly, others as floats; NaN above all.
pub(super) fn compare_numbers(a: &str, b: &str) -> Ordering {
    if let (Ok(a), Ok(b)) = (a.parse::<i128>(), b.parse::<i128>()) {
        return a.cmp(&b);
    }
    match (a.parse::<f64>(), b.parse::<f64>()) {
        // Decimals may differ where floats do not.
        (Ok(x), Ok(y)) => x.partial_cmp(&y).unwrap_or_else(|| x.is_nan().cmp(&y.is_nan())).then_with(|| a.cmp(b)),
        _ => a.cmp(b),
    }
}

fn plain(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::Dictionary(_, values) => plain(values),
        DataType::RunEndEncoded(_, values) => plain(values.data_type()),
        other => other,
    }
}

fn is_time(data_type: &DataType) -> bool {
    matches!(plain(data_type), DataType::Timestamp(..) | DataType::Date32 | DataType::Date64)
}

fn kind(data_type: &DataType) -> String {
    match plain(data_type) {
        DataType::Timestamp(..) => "timestamp".into(),
        DataType::Date32 | DataType::Date64 => "date".into(),
        DataType::Time32(_) | DataType::Time64(_) => "time".into(),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "utf8".into(),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            "binary".into()
        }
        DataType::Decimal32(..) | DataType::Decimal64(..) | DataType::Decimal128(..) | DataType::Decimal256(..) => {
            "decimal".into()
        }
        DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..) => "list".into(),
        DataType::Struct(_) => "struct".into(),
        DataType::Map(..) => "map".into(),
        DataType::Interval(_) => "interval".into(),
        DataType::Duration(_) => "duration".into(),
        other => other.to_string().to_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_ordered_by_what_they_are() {
        let sorted = |mut values: Vec<&'static str>| {
            values.sort_by(|a, b| compare_numbers(a, b));
            values
        };
        assert_eq!(sorted(vec!["10", "9", "-1"]), ["-1", "9", "10"]);
        // More digits than a float has.
        assert_eq!(sorted(vec!["9007199254740993", "9007199254740992"]), ["9007199254740992", "9007199254740993"]);
        assert_eq!(sorted(vec!["NaN", "1e18", "-0.0", "2.5", "inf"]), ["-0.0", "2.5", "1e18", "inf", "NaN"]);
        assert_eq!(compare(None, Some("a"), false), Ordering::Greater);
    }

    #[test]
    fn the_end_of_a_window_is_found() {
        let cells = [Some("2026-01-01T00:05:00".to_string())];
        assert_eq!(WindowEnd::Column(0).of(&cells), Some(1_767_225_900_000));
        let cells = [None, Some("{start: 2026-01-01T00:04:00, end: 2026-01-01T00:05:00.500}".to_string())];
        assert_eq!(WindowEnd::Field(1).of(&cells), Some(1_767_225_900_500));
        assert_eq!(WindowEnd::Column(0).of(&cells), None);
        assert_eq!(millis("2026-01-01T00:05:00Z"), Some(1_767_225_900_000));
        assert_eq!(millis("+294247-01-10T04:00:54"), None);
    }
}
