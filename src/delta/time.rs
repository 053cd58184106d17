//! Event times as whole numbers, in the unit of their column.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type, TimeUnit};

use crate::error::{Error, Result};

/// A time column's values in its own unit.
pub fn time_values(column: &ArrayRef) -> Result<Int64Array> {
    let raw = match column.data_type() {
        DataType::Timestamp(_, _) => cast(column, &DataType::Int64),
        DataType::Date32 => cast(column, &DataType::Int32).and_then(|d| cast(&d, &DataType::Int64)),
        other => return Err(Error::internal(format!("{other} is no event time"))),
    };
    Ok(raw.map_err(Error::from)?.as_primitive::<Int64Type>().clone())
}

/// Back from whole numbers to a time column of this type.
pub fn time_array(values: Int64Array, data_type: &DataType) -> Result<ArrayRef> {
    let values: ArrayRef = Arc::new(values);
    let values = match data_type {
        DataType::Date32 => cast(&values, &DataType::Int32).and_then(|days| cast(&days, data_type)),
        _ => cast(&values, data_type),
    };
    values.map_err(Error::from)
}

/// The unit of an event-time column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Nanos,
    Micros,
    Millis,
    Seconds,
    Days,
}

/// The unit of a type that can be an event time.
pub fn unit_of(data_type: &DataType) -> Result<Unit> {
    Ok(match data_type {
        DataType::Timestamp(TimeUnit::Nanosecond, _) => Unit::Nanos,
        DataType::Timestamp(TimeUnit::Microsecond, _) => Unit::Micros,
        DataType::Timestamp(TimeUnit::Millisecond, _) => Unit::Millis,
        DataType::Timestamp(TimeUnit::Second, _) => Unit::Seconds,
        DataType::Date32 => Unit::Days,
        other => return Err(Error::internal(format!("{other} is no event time"))),
    })
}

/// Microseconds, rounded up: so that `time <= watermark` is decided as in the column's own unit.
pub fn micros_ceil(value: i64, unit: Unit) -> i64 {
    match unit {
        Unit::Nanos => value.div_euclid(1_000) + i64::from(value.rem_euclid(1_000) != 0),
        Unit::Micros => value,
        Unit::Millis => value.saturating_mul(1_000),
        Unit::Seconds => value.saturating_mul(1_000_000),
        Unit::Days => value.saturating_mul(86_400_000_000),
    }
}

/// Whole milliseconds, rounded down: what a watermark is made of (rule W1).
pub fn millis_floor(value: i64, unit: Unit) -> i64 {
    match unit {
        Unit::Nanos => value.div_euclid(1_000_000),
        Unit::Micros => value.div_euclid(1_000),
        Unit::Millis => value,
        Unit::Seconds => value.saturating_mul(1_000),
        Unit::Days => value.saturating_mul(86_400_000),
    }
}

/// A watermark in a column's unit, rounded down: `time <= watermark` holds for the same times.
pub fn from_millis(millis: i64, unit: Unit) -> i64 {
    match unit {
        Unit::Nanos => millis.saturating_mul(1_000_000),
        Unit::Micros => millis.saturating_mul(1_000),
        Unit::Millis => millis,
        Unit::Seconds => millis.div_euclid(1_000),
        Unit::Days => millis.div_euclid(86_400_000),
    }
}
