//! One value → text, for people and for JSON.
//!
//! For people: numbers as short as they can be read back, ISO times, `{start: …, end: …}`, `[…]`; a text inside a
//! struct or list is quoted when it could be taken for something else. Escaping for a format is the format's work.

use arrow::array::timezone::Tz;
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::buffer::NullBuffer;
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Date32Type, Date64Type, Float16Type, Float32Type, Float64Type, TimeUnit, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
};
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, DurationFormat, FormatOptions};
use chrono::{DateTime, Offset, TimeZone};

use super::json::write_json_text;
use super::time::{write_date, write_timestamp};

const OPTIONS: FormatOptions<'static> = FormatOptions::new().with_duration_format(DurationFormat::ISO8601);
const MILLIS_A_DAY: i64 = 86_400_000;

/// Whom a value is written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    People,
    Json,
}

/// The columns of a batch without dictionaries and runs, so that what reads them meets plain arrays only.
pub(super) fn plain_columns(batch: &RecordBatch) -> Result<Vec<ArrayRef>, ArrowError> {
    let plain = |column: &ArrayRef| match column.data_type() {
        DataType::Dictionary(_, values) => cast(column, values),
        DataType::RunEndEncoded(_, values) => cast(column, values.data_type()),
        _ => Ok(column.clone()),
    };
    batch.columns().iter().map(plain).collect()
}

/// The writers of all columns.
pub(super) fn cells<'a>(columns: &'a [ArrayRef], dialect: Dialect) -> Result<Vec<Cell<'a>>, ArrowError> {
    columns.iter().map(|column| Cell::new(column.as_ref(), dialect)).collect()
}

/// Whether the column's values line up at the right.
pub(super) fn is_number(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => is_number(values),
        DataType::RunEndEncoded(_, values) => is_number(values.data_type()),
        _ => data_type.is_numeric(),
    }
}

/// Writes the values of one array.
pub(super) struct Cell<'a> {
    nulls: Option<&'a NullBuffer>,
    always_null: bool,
    kind: Kind<'a>,
    dialect: Dialect,
}

enum Kind<'a> {
    Text(Box<dyn Fn(usize) -> &'a str + 'a>),
    /// Non-finite floats are no JSON numbers.
    Float(Box<dyn Fn(usize) -> f64 + 'a>, ArrayFormatter<'a>),
    Timestamp {
        values: &'a [i64],
        unit: TimeUnit,
        zone: Option<Tz>,
    },
    Days(Box<dyn Fn(usize) -> i64 + 'a>),
    Struct(Vec<(&'a str, Cell<'a>)>),
    List(Box<dyn Fn(usize) -> (usize, usize) + 'a>, Box<Cell<'a>>),
    Map {
        offsets: &'a [i32],
        keys: Box<Cell<'a>>,
        values: Box<Cell<'a>>,
    },
    /// What arrow writes: `raw` when that is a JSON value too.
    Arrow {
        formatter: ArrayFormatter<'a>,
        raw: bool,
    },
}

impl<'a> Cell<'a> {
    pub(super) fn new(array: &'a dyn Array, dialect: Dialect) -> Result<Self, ArrowError> {
        let always_null = *array.data_type() == DataType::Null;
        Ok(Cell { nulls: array.nulls(), always_null, kind: Kind::new(array, dialect)?, dialect })
    }

    pub(super) fn is_null(&self, row: usize) -> bool {
        self.always_null || self.nulls.is_some_and(|nulls| nulls.is_null(row))
    }

    /// Appends the value, which must not be NULL: how that is shown is for the caller to say.
    pub(super) fn write(&self, row: usize, out: &mut String) -> Result<(), ArrowError> {
        let json = self.dialect == Dialect::Json;
        match &self.kind {
            Kind::Text(value) if json => write_json_text(value(row), out),
            Kind::Text(value) => out.push_str(value(row)),
            Kind::Float(value, _) if json && !value(row).is_finite() => match value(row) {
                nan if nan.is_nan() => out.push_str("\"NaN\""),
                f64::INFINITY => out.push_str("\"Infinity\""),
                _ => out.push_str("\"-Infinity\""),
            },
            Kind::Float(_, formatter) => formatter.value(row).write(out)?,
            Kind::Timestamp { values, unit, zone } => quoted(json, out, |out| {
                let offset = zone.as_ref().map(|zone| offset_at(*zone, values[row], unit));
                write_timestamp(values[row], unit, offset, out);
            }),
            Kind::Days(days) => quoted(json, out, |out| write_date(days(row), out)),
            Kind::Struct(fields) => self.write_struct(fields, row, out)?,
            Kind::List(range, values) => self.write_list(range(row), values, out)?,
            Kind::Map { offsets, keys, values } => {
                self.write_map(offsets[row] as usize..offsets[row + 1] as usize, keys, values, out)?;
            }
            Kind::Arrow { formatter, raw } if *raw || !json => formatter.value(row).write(out)?,
            Kind::Arrow { formatter, .. } => write_json_text(&formatter.value(row).try_to_string()?, out),
        }
        Ok(())
    }

    fn write_struct(&self, fields: &[(&str, Cell<'_>)], row: usize, out: &mut String) -> Result<(), ArrowError> {
        out.push('{');
        for (at, (name, cell)) in fields.iter().enumerate() {
            self.separate(at, out);
            self.write_name(name, out);
            cell.write_inner(row, out)?;
        }
        out.push('}');
        Ok(())
    }

    fn write_list(&self, (start, end): (usize, usize), values: &Cell<'_>, out: &mut String) -> Result<(), ArrowError> {
        out.push('[');
        for at in start..end {
            self.separate(at - start, out);
            values.write_inner(at, out)?;
        }
        out.push(']');
        Ok(())
    }

    fn write_map(
        &self,
        entries: std::ops::Range<usize>,
        keys: &Cell<'_>,
        values: &Cell<'_>,
        out: &mut String,
    ) -> Result<(), ArrowError> {
        out.push('{');
        let mut key = String::new();
        for (at, entry) in entries.enumerate() {
            self.separate(at, out);
            key.clear();
            keys.write_inner(entry, &mut key)?;
            // A key of JSON is a text, whatever its type.
            match self.dialect {
                Dialect::Json if !key.starts_with('"') => self.write_name(&key, out),
                Dialect::Json => out.extend([key.as_str(), ":"]),
                Dialect::People => out.extend([key.as_str(), ": "]),
            }
            values.write_inner(entry, out)?;
        }
        out.push('}');
        Ok(())
    }

    /// A value inside another: NULL is written here, and for people a text is quoted where it has to be.
    fn write_inner(&self, row: usize, out: &mut String) -> Result<(), ArrowError> {
        if self.is_null(row) {
            out.push_str(if self.dialect == Dialect::Json { "null" } else { "NULL" });
            return Ok(());
        }
        match &self.kind {
            Kind::Text(value) if self.dialect == Dialect::People && needs_quotes(value(row)) => {
                out.extend(["'", &value(row).replace('\'', "''"), "'"]);
                Ok(())
            }
            _ => self.write(row, out),
        }
    }

    fn separate(&self, at: usize, out: &mut String) {
        if at > 0 {
            out.push_str(if self.dialect == Dialect::Json { "," } else { ", " });
        }
    }

    fn write_name(&self, name: &str, out: &mut String) {
        match self.dialect {
            Dialect::Json => {
                write_json_text(name, out);
                out.push(':');
            }
            Dialect::People => out.extend([name, ": "]),
        }
    }
}

impl<'a> Kind<'a> {
    fn new(array: &'a dyn Array, dialect: Dialect) -> Result<Self, ArrowError> {
        let child = |values: &'a ArrayRef| Cell::new(values.as_ref(), dialect).map(Box::new);
        Ok(match array.data_type() {
            DataType::Utf8 => Kind::Text(Box::new(|row| array.as_string::<i32>().value(row))),
            DataType::LargeUtf8 => Kind::Text(Box::new(|row| array.as_string::<i64>().value(row))),
            DataType::Utf8View => Kind::Text(Box::new(|row| array.as_string_view().value(row))),
            DataType::Float16 => {
                let values = array.as_primitive::<Float16Type>().values();
                Kind::Float(Box::new(|row| f64::from(values[row])), ArrayFormatter::try_new(array, &OPTIONS)?)
            }
            DataType::Float32 => {
                let values = array.as_primitive::<Float32Type>().values();
                Kind::Float(Box::new(|row| f64::from(values[row])), ArrayFormatter::try_new(array, &OPTIONS)?)
            }
            DataType::Float64 => {
                let values = array.as_primitive::<Float64Type>().values();
                Kind::Float(Box::new(|row| values[row]), ArrayFormatter::try_new(array, &OPTIONS)?)
            }
            DataType::Timestamp(unit, zone) => {
                let zone = zone.as_deref().map(str::parse).transpose()?;
                Kind::Timestamp { values: instants(array, unit), unit: *unit, zone }
            }
            DataType::Date32 => {
                let values = array.as_primitive::<Date32Type>().values();
                Kind::Days(Box::new(|row| i64::from(values[row])))
            }
            DataType::Date64 => {
                let values = array.as_primitive::<Date64Type>().values();
                Kind::Days(Box::new(|row| values[row].div_euclid(MILLIS_A_DAY)))
            }
            DataType::Struct(fields) => {
                let named = fields.iter().map(|field| field.name().as_str()).zip(array.as_struct().columns());
                let cell = |(name, values): (_, &'a ArrayRef)| Ok((name, Cell::new(values.as_ref(), dialect)?));
                Kind::Struct(named.map(cell).collect::<Result<_, ArrowError>>()?)
            }
            DataType::List(_) => {
                let list = array.as_list::<i32>();
                let offsets = list.value_offsets();
                let range = |row| (offsets[row] as usize, offsets[row + 1] as usize);
                Kind::List(Box::new(range), child(list.values())?)
            }
            DataType::LargeList(_) => {
                let list = array.as_list::<i64>();
                let offsets = list.value_offsets();
                let range = |row| (offsets[row] as usize, offsets[row + 1] as usize);
                Kind::List(Box::new(range), child(list.values())?)
            }
            DataType::FixedSizeList(_, size) => {
                let (list, size) = (array.as_fixed_size_list(), *size as usize);
                Kind::List(Box::new(move |row| (row * size, (row + 1) * size)), child(list.values())?)
            }
            DataType::Map(_, _) => {
                let map = array.as_map();
                Kind::Map { offsets: map.value_offsets(), keys: child(map.keys())?, values: child(map.values())? }
            }
            other => Kind::Arrow {
                formatter: ArrayFormatter::try_new(array, &OPTIONS)?,
                raw: other.is_numeric() || *other == DataType::Boolean,
            },
        })
    }
}

/// The 64-bit integers of a timestamp array of that unit.
fn instants<'a>(array: &'a dyn Array, unit: &TimeUnit) -> &'a [i64] {
    match unit {
        TimeUnit::Second => array.as_primitive::<TimestampSecondType>().values(),
        TimeUnit::Millisecond => array.as_primitive::<TimestampMillisecondType>().values(),
        TimeUnit::Microsecond => array.as_primitive::<TimestampMicrosecondType>().values(),
        TimeUnit::Nanosecond => array.as_primitive::<TimestampNanosecondType>().values(),
    }
}

/// Seconds east of UTC at that time; 0 where the calendar of the zone ends.
fn offset_at(zone: Tz, value: i64, unit: &TimeUnit) -> i32 {
    let seconds = match unit {
        TimeUnit::Second => value,
        TimeUnit::Millisecond => value.div_euclid(1_000),
        TimeUnit::Microsecond => value.div_euclid(1_000_000),
        TimeUnit::Nanosecond => value.div_euclid(1_000_000_000),
    };
    let at = DateTime::from_timestamp(seconds, 0);
    at.map_or(0, |at| zone.offset_from_utc_datetime(&at.naive_utc()).fix().local_minus_utc())
}

fn quoted(json: bool, out: &mut String, write: impl FnOnce(&mut String)) {
    let quote = if json { "\"" } else { "" };
    out.push_str(quote);
    write(out);
    out.push_str(quote);
}

/// Whether a text inside a struct or list could be taken for something else.
fn needs_quotes(text: &str) -> bool {
    text.is_empty()
        || text.eq_ignore_ascii_case("null")
        || text.starts_with(char::is_whitespace)
        || text.ends_with(char::is_whitespace)
        || text.contains([',', ':', '\'', '"', '[', ']', '{', '}'])
}
