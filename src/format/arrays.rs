//! Collected values as arrow arrays.

use std::sync::Arc;

use arrow::array::*;
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::*;

use super::column::{Column, Values};
use crate::error::Error;

/// The values of a column as an array of its type; what collected them starts again from nothing.
///
/// # Errors
/// Those of arrow: offsets that overflow.
pub(super) fn finish(
    values: &mut Values,
    field: &FieldRef,
    length: usize,
    nulls: Option<NullBuffer>,
) -> std::result::Result<ArrayRef, arrow::error::ArrowError> {
    let data_type = field.data_type();
    Ok(match values {
        Values::Null => Arc::new(NullArray::new(length)),
        Values::Bool(values) => {
            let bits = BooleanBuffer::from(std::mem::take(values));
            Arc::new(BooleanArray::new(bits, nulls))
        }
        Values::Int { values, .. } => finish_int(data_type, fresh(values), nulls),
        Values::Float { values, single: false } => Arc::new(Float64Array::new(fresh(values).into(), nulls)),
        Values::Float { values, single: true } => {
            Arc::new(Float32Array::new(fresh(values).into_iter().map(|v| v as f32).collect(), nulls))
        }
        Values::Decimal { values, precision, scale } => {
            Arc::new(Decimal128Array::new(fresh(values).into(), nulls).with_precision_and_scale(*precision, *scale)?)
        }
        Values::Time { values, .. } => finish_time(data_type, fresh(values), nulls),
        Values::Bytes { ends, bytes, .. } => finish_bytes(data_type, fresh(ends), std::mem::take(bytes), nulls)?,
        Values::Views { views, bytes, .. } => finish_views(data_type, fresh(views), std::mem::take(bytes), nulls),
        Values::List { ends, element } => finish_list(data_type, fresh(ends), element, nulls)?,
        Values::Map { ends, keys, values } => finish_map(data_type, fresh(ends), keys, values, nulls)?,
        Values::Struct(object) => {
            let (fields, columns) = object.finish().map_err(external)?;
            Arc::new(StructArray::try_new_with_length(fields, columns, nulls, length)?)
        }
    })
}

/// Takes the values and leaves room for as many: the next batch will be as long.
fn fresh<T>(values: &mut Vec<T>) -> Vec<T> {
    let room = values.len();
    std::mem::replace(values, Vec::with_capacity(room))
}

fn external(error: Error) -> arrow::error::ArrowError {
    arrow::error::ArrowError::ExternalError(Box::new(error))
}

fn finish_int(data_type: &DataType, values: Vec<i64>, nulls: Option<NullBuffer>) -> ArrayRef {
    macro_rules! narrow {
        ($array:ty, $native:ty) => {
            Arc::new(<$array>::new(values.into_iter().map(|v| v as $native).collect(), nulls))
        };
    }
    match data_type {
        DataType::Int8 => narrow!(Int8Array, i8),
        DataType::Int16 => narrow!(Int16Array, i16),
        DataType::Int32 => narrow!(Int32Array, i32),
        DataType::UInt8 => narrow!(UInt8Array, u8),
        DataType::UInt16 => narrow!(UInt16Array, u16),
        DataType::UInt32 => narrow!(UInt32Array, u32),
        DataType::UInt64 => narrow!(UInt64Array, u64),
        _ => Arc::new(Int64Array::new(values.into(), nulls)),
    }
}

fn finish_time(data_type: &DataType, values: Vec<i64>, nulls: Option<NullBuffer>) -> ArrayRef {
    macro_rules! short {
        ($array:ty) => {
            Arc::new(<$array>::new(values.into_iter().map(|v| v as i32).collect(), nulls))
        };
    }
    macro_rules! long {
        ($array:ty) => {
            Arc::new(<$array>::new(values.into(), nulls))
        };
    }
    macro_rules! zoned {
        ($array:ty, $zone:expr) => {
            Arc::new(<$array>::new(values.into(), nulls).with_timezone_opt($zone.clone()))
        };
    }
    match data_type {
        DataType::Date32 => short!(Date32Array),
        DataType::Date64 => long!(Date64Array),
        DataType::Time32(TimeUnit::Second) => short!(Time32SecondArray),
        DataType::Time32(_) => short!(Time32MillisecondArray),
        DataType::Time64(TimeUnit::Microsecond) => long!(Time64MicrosecondArray),
        DataType::Time64(_) => long!(Time64NanosecondArray),
        DataType::Timestamp(TimeUnit::Second, zone) => zoned!(TimestampSecondArray, zone),
        DataType::Timestamp(TimeUnit::Millisecond, zone) => zoned!(TimestampMillisecondArray, zone),
        DataType::Timestamp(TimeUnit::Nanosecond, zone) => zoned!(TimestampNanosecondArray, zone),
        DataType::Timestamp(_, zone) => zoned!(TimestampMicrosecondArray, zone),
        _ => Arc::new(NullArray::new(values.len())),
    }
}

fn offsets<O: OffsetSizeTrait>(ends: &[usize]) -> std::result::Result<OffsetBuffer<O>, arrow::error::ArrowError> {
    let mut offsets = Vec::with_capacity(ends.len() + 1);
    offsets.push(O::usize_as(0));
    for end in ends {
        offsets.push(O::from_usize(*end).ok_or(arrow::error::ArrowError::OffsetOverflowError(*end))?);
    }
    Ok(OffsetBuffer::new(ScalarBuffer::from(offsets)))
}

fn finish_bytes(
    data_type: &DataType,
    ends: Vec<usize>,
    bytes: Vec<u8>,
    nulls: Option<NullBuffer>,
) -> std::result::Result<ArrayRef, arrow::error::ArrowError> {
    let bytes = Buffer::from_vec(bytes);
    Ok(match data_type {
        DataType::Utf8 => Arc::new(StringArray::try_new(offsets(&ends)?, bytes, nulls)?),
        DataType::LargeUtf8 => Arc::new(LargeStringArray::try_new(offsets(&ends)?, bytes, nulls)?),
        DataType::LargeBinary => Arc::new(LargeBinaryArray::try_new(offsets(&ends)?, bytes, nulls)?),
        _ => Arc::new(BinaryArray::try_new(offsets(&ends)?, bytes, nulls)?),
    })
}

fn finish_views(data_type: &DataType, views: Vec<u128>, bytes: Vec<u8>, nulls: Option<NullBuffer>) -> ArrayRef {
    let buffers = if bytes.is_empty() { vec![] } else { vec![Buffer::from_vec(bytes)] };
    let views = ScalarBuffer::from(views);
    // SAFETY: every view was made by `push_view` for bytes that it put, whole, into the one buffer; text came in
    // as `str`, so it is UTF-8.
    unsafe {
        match data_type {
            DataType::BinaryView => Arc::new(BinaryViewArray::new_unchecked(views, buffers, nulls)),
            _ => Arc::new(StringViewArray::new_unchecked(views, buffers, nulls)),
        }
    }
}

fn finish_list(
    data_type: &DataType,
    ends: Vec<usize>,
    element: &mut Column,
    nulls: Option<NullBuffer>,
) -> std::result::Result<ArrayRef, arrow::error::ArrowError> {
    let field = element.field.clone();
    let values = element.finish().map_err(external)?;
    Ok(match data_type {
        DataType::LargeList(_) => Arc::new(LargeListArray::try_new(field, offsets(&ends)?, values, nulls)?),
        _ => Arc::new(ListArray::try_new(field, offsets(&ends)?, values, nulls)?),
    })
}

fn finish_map(
    data_type: &DataType,
    ends: Vec<usize>,
    keys: &mut Column,
    values: &mut Column,
    nulls: Option<NullBuffer>,
) -> std::result::Result<ArrayRef, arrow::error::ArrowError> {
    let DataType::Map(entries_field, ordered) = data_type else {
        return Err(arrow::error::ArrowError::InvalidArgumentError(format!("{data_type} is no map")));
    };
    let fields = Fields::from(vec![keys.field.clone(), values.field.clone()]);
    let columns = vec![keys.finish().map_err(external)?, values.finish().map_err(external)?];
    let entries = StructArray::try_new(fields, columns, None)?;
    Ok(Arc::new(MapArray::try_new(entries_field.clone(), offsets(&ends)?, entries, nulls, *ordered)?))
}
