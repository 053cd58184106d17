//! A column under construction: values are appended one by one, and taken back when their record turns out bad.
//!
//! What a text or a literal means in a type is decided here, once for every format; how values are written
//! (quotes, escapes, delimiters) is not.

use std::sync::Arc;

use arrow::array::builder::make_view;
use arrow::array::*;
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::*;

use super::number::{self, NoNumber};
use super::object::Object;
use super::time::TimeKind;
use crate::error::{Error, Result};

/// Why a value can't be taken, and in which column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// The column's name, with those of the structs around it; empty when the record has no form at all.
    path: String,
    what: String,
}

impl Reason {
    /// A record without the form of its format.
    pub fn form(what: impl Into<String>) -> Box<Self> {
        Box::new(Reason { path: String::new(), what: what.into() })
    }

    /// Puts the name of the column around it.
    pub fn inside(mut self: Box<Self>, name: &str) -> Box<Self> {
        self.path = if self.path.is_empty() { name.to_string() } else { format!("{name}.{}", self.path) };
        self
    }
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.path.as_str() {
            "" => f.write_str(&self.what),
            path => write!(f, "column {path} {}", self.what),
        }
    }
}

/// Whether a value was taken.
pub type Taken = std::result::Result<(), Box<Reason>>;

/// Values of one column.
#[derive(Debug)]
pub struct Column {
    field: FieldRef,
    valid: NullBufferBuilder,
    pub(super) values: Values,
}

/// The values by kind; a NULL has a value too, of no meaning.
#[derive(Debug)]
pub(super) enum Values {
    Null,
    Bool(Vec<bool>),
    /// Every integer type; BIGINT UNSIGNED as its bits.
    Int {
        values: Vec<i64>,
        low: i128,
        high: i128,
    },
    Float {
        values: Vec<f64>,
        single: bool,
    },
    Decimal {
        values: Vec<i128>,
        precision: u8,
        scale: i8,
    },
    Time {
        values: Vec<i64>,
        kind: TimeKind,
    },
    /// Text and bytes with offsets.
    Bytes {
        ends: Vec<usize>,
        bytes: Vec<u8>,
        hex: bool,
    },
    /// Text and bytes with views.
    Views {
        views: Vec<u128>,
        bytes: Vec<u8>,
        hex: bool,
    },
    List {
        ends: Vec<usize>,
        element: Box<Column>,
    },
    Map {
        ends: Vec<usize>,
        keys: Box<Column>,
        values: Box<Column>,
    },
    Struct(Object),
}

impl Column {
    /// An empty column of the field's type.
    ///
    /// # Errors
    /// Unsupported: a type that text can't be read as.
    pub fn new(field: &FieldRef) -> Result<Self> {
        let values = Values::new(field.data_type()).map_err(|why| {
            Error::unsupported(format!("column {} is {}: {why}", field.name(), type_name(field.data_type())))
        })?;
        Ok(Column { field: field.clone(), valid: NullBufferBuilder::new(0), values })
    }

    /// How many values it holds.
    #[inline]
    pub fn len(&self) -> usize {
        self.valid.len()
    }

    pub fn name(&self) -> &str {
        self.field.name()
    }

    /// Appends NULL, which a NOT NULL column refuses. `found` says what stood for it.
    pub fn append_null(&mut self, found: &str) -> Taken {
        if !self.field.is_nullable() {
            return Err(self.reason(format!("is NOT NULL and {found}")));
        }
        self.force_null();
        Ok(())
    }

    /// Appends NULL whatever the column says: for a row of NULLs, and below a NULL struct, which hides it.
    pub fn force_null(&mut self) {
        match &mut self.values {
            Values::Null => {}
            Values::Bool(values) => values.push(false),
            Values::Int { values, .. } | Values::Time { values, .. } => values.push(0),
            Values::Float { values, .. } => values.push(0.0),
            Values::Decimal { values, .. } => values.push(0),
            Values::Bytes { ends, bytes, .. } => ends.push(bytes.len()),
            Values::Views { views, .. } => views.push(0),
            Values::List { ends, element } => ends.push(element.len()),
            Values::Map { ends, keys, .. } => ends.push(keys.len()),
            Values::Struct(object) => object.force_null(),
        }
        self.valid.append_null();
    }

    /// Appends an integer.
    #[inline]
    pub fn append_int(&mut self, value: i64) -> Taken {
        if let Values::Int { values, low, high } = &mut self.values
            && (*low..=*high).contains(&i128::from(value))
        {
            values.push(value);
            self.valid.append_non_null();
            return Ok(());
        }
        self.append_number(&value.to_string())
    }

    /// Appends a number written as JSON writes them.
    pub fn append_number(&mut self, text: &str) -> Taken {
        match &self.values {
            Values::Int { .. } | Values::Float { .. } | Values::Decimal { .. } => self.append_numeric(text, text),
            Values::Time { kind: TimeKind::Timestamp(..), .. } => Err(self.reason(format!(
                "wants {} as ISO text and found the number {text}: declare it BIGINT and convert it in the query",
                type_name(self.field.data_type())
            ))),
            _ => Err(self.wants(&format!("the number {text}"))),
        }
    }

    /// Appends true or false.
    pub fn append_bool(&mut self, value: bool) -> Taken {
        match &mut self.values {
            Values::Bool(values) => {
                values.push(value);
                self.valid.append_non_null();
                Ok(())
            }
            _ => Err(self.wants(if value { "true" } else { "false" })),
        }
    }

    /// Appends what a quoted text, or a field of CSV, means in the column's type.
    #[inline]
    pub fn append_text(&mut self, text: &str) -> Taken {
        match &mut self.values {
            Values::Views { views, bytes, hex: false } => push_view(views, bytes, text.as_bytes()),
            Values::Bytes { ends, bytes, hex: false } => {
                bytes.extend_from_slice(text.as_bytes());
                ends.push(bytes.len());
            }
            _ => return self.append_parsed(text),
        }
        self.valid.append_non_null();
        Ok(())
    }

    /// Appends what a field of CSV means: as a text, but blanks around other types and `true` and `false` count.
    pub fn append_field(&mut self, text: &str) -> Taken {
        match &self.values {
            Values::Views { hex: false, .. } | Values::Bytes { hex: false, .. } => self.append_text(text),
            Values::Bool(_) if text.trim().eq_ignore_ascii_case("true") => self.append_bool(true),
            Values::Bool(_) if text.trim().eq_ignore_ascii_case("false") => self.append_bool(false),
            _ => self.append_text(text.trim()),
        }
    }

    fn append_parsed(&mut self, text: &str) -> Taken {
        match &mut self.values {
            Values::Int { .. } | Values::Float { .. } | Values::Decimal { .. } => {
                return self.append_numeric(text, &format!("the text {text:?}"));
            }
            Values::Time { values, kind } => match kind.parse(text) {
                Some(value) => values.push(value),
                None => return Err(self.wants(&format!("the text {text:?}"))),
            },
            Values::Bytes { ends, bytes, .. } => match push_hex(bytes, text) {
                true => ends.push(bytes.len()),
                false => return Err(self.reason("wants hexadecimal digits, two a byte".to_string())),
            },
            Values::Views { views, bytes, .. } => {
                let mut decoded = Vec::new();
                if !push_hex(&mut decoded, text) {
                    return Err(self.reason("wants hexadecimal digits, two a byte".to_string()));
                }
                push_view(views, bytes, &decoded);
            }
            _ => return Err(self.wants(&format!("the text {text:?}"))),
        }
        self.valid.append_non_null();
        Ok(())
    }

    fn append_numeric(&mut self, text: &str, found: &str) -> Taken {
        let outcome = match &mut self.values {
            Values::Int { values, low, high } => {
                number::integer(text.as_bytes(), *low, *high).map(|value| values.push(value as i64))
            }
            Values::Float { values, single } => number::float(text, *single).map(|value| values.push(value)),
            Values::Decimal { values, precision, scale } => {
                number::decimal(text.as_bytes(), *precision, *scale).map(|value| values.push(value))
            }
            _ => Err(NoNumber::NotANumber),
        };
        match outcome {
            Ok(()) => self.valid.append_non_null(),
            Err(NoNumber::NotANumber) => return Err(self.wants(found)),
            Err(NoNumber::OutOfRange) => {
                return Err(self.reason(format!("is {} and {found} is out of its range", self.kind())));
            }
            Err(NoNumber::Fraction) => {
                return Err(self.reason(format!("is {} and {found} has more digits behind the point", self.kind())));
            }
        }
        Ok(())
    }

    /// Ends a value that [`Column::values`] was given piece by piece: a list, a map or a struct.
    pub(super) fn close(&mut self) {
        match &mut self.values {
            Values::List { ends, element } => ends.push(element.len()),
            Values::Map { ends, keys, .. } => ends.push(keys.len()),
            _ => {}
        }
        self.valid.append_non_null();
    }

    /// Takes back every value from `len` on, and what is half appended.
    pub fn truncate(&mut self, len: usize) {
        match &mut self.values {
            Values::Null => {}
            Values::Bool(values) => values.truncate(len),
            Values::Int { values, .. } | Values::Time { values, .. } => values.truncate(len),
            Values::Float { values, .. } => values.truncate(len),
            Values::Decimal { values, .. } => values.truncate(len),
            Values::Bytes { ends, bytes, .. } => {
                ends.truncate(len);
                bytes.truncate(ends.last().copied().unwrap_or(0));
            }
            // The bytes of views taken back stay behind until the batch is finished, or has no rows at all.
            Values::Views { views, bytes, .. } => {
                views.truncate(len);
                if len == 0 {
                    bytes.clear();
                }
            }
            Values::List { ends, element } => {
                ends.truncate(len);
                element.truncate(ends.last().copied().unwrap_or(0));
            }
            Values::Map { ends, keys, values } => {
                ends.truncate(len);
                keys.truncate(ends.last().copied().unwrap_or(0));
                values.truncate(ends.last().copied().unwrap_or(0));
            }
            Values::Struct(object) => object.truncate(len),
        }
        self.valid.truncate(len);
    }

    /// Hands out the values as an array and starts again from nothing.
    ///
    /// # Errors
    /// Internal: an array that arrow refuses.
    pub fn finish(&mut self) -> Result<ArrayRef> {
        let length = self.len();
        let nulls = self.valid.finish();
        self.valid = NullBufferBuilder::new(0);
        self.values
            .finish(&self.field, length, nulls)
            .map_err(|e| Error::internal(format!("column {}: {e}", self.name())))
    }

    fn kind(&self) -> String {
        type_name(self.field.data_type())
    }

    pub(super) fn wants(&self, found: &str) -> Box<Reason> {
        self.reason(format!("wants {} and found {}", self.kind(), super::shorten(found.as_bytes())))
    }

    fn reason(&self, what: String) -> Box<Reason> {
        Box::new(Reason { path: self.name().to_string(), what })
    }
}

fn push_view(views: &mut Vec<u128>, bytes: &mut Vec<u8>, value: &[u8]) {
    // A batch is full long before its text reaches 4 GiB; longer texts are refused by the limit on records.
    let view = make_view(value, 0, bytes.len() as u32);
    if value.len() > 12 {
        bytes.extend_from_slice(value);
    }
    views.push(view);
}

fn push_hex(bytes: &mut Vec<u8>, text: &str) -> bool {
    let start = bytes.len();
    for pair in text.as_bytes().chunks(2) {
        let digits = std::str::from_utf8(pair).ok().filter(|_| pair.len() == 2 && pair[0] != b'+');
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => bytes.push(byte),
            None => {
                bytes.truncate(start);
                return false;
            }
        }
    }
    true
}

impl Values {
    fn new(data_type: &DataType) -> std::result::Result<Self, String> {
        let int = |low: i128, high: i128| Ok(Values::Int { values: Vec::new(), low, high });
        let time = |kind| Ok(Values::Time { values: Vec::new(), kind });
        let bytes = |hex| Ok(Values::Bytes { ends: Vec::new(), bytes: Vec::new(), hex });
        let views = |hex| Ok(Values::Views { views: Vec::new(), bytes: Vec::new(), hex });
        let column = |field: &FieldRef| Column::new(field).map(Box::new).map_err(|e| e.to_string());
        match data_type {
            DataType::Null => Ok(Values::Null),
            DataType::Boolean => Ok(Values::Bool(Vec::new())),
            DataType::Int8 => int(i8::MIN.into(), i8::MAX.into()),
            DataType::Int16 => int(i16::MIN.into(), i16::MAX.into()),
            DataType::Int32 => int(i32::MIN.into(), i32::MAX.into()),
            DataType::Int64 => int(i64::MIN.into(), i64::MAX.into()),
            DataType::UInt8 => int(0, u8::MAX.into()),
            DataType::UInt16 => int(0, u16::MAX.into()),
            DataType::UInt32 => int(0, u32::MAX.into()),
            DataType::UInt64 => int(0, u64::MAX.into()),
            DataType::Float32 => Ok(Values::Float { values: Vec::new(), single: true }),
            DataType::Float64 => Ok(Values::Float { values: Vec::new(), single: false }),
            DataType::Decimal128(precision, scale) => {
                Ok(Values::Decimal { values: Vec::new(), precision: *precision, scale: *scale })
            }
            DataType::Date32 => time(TimeKind::Date32),
            DataType::Date64 => time(TimeKind::Date64),
            DataType::Time32(unit) | DataType::Time64(unit) => time(TimeKind::Time(*unit)),
            DataType::Timestamp(unit, None) => time(TimeKind::Timestamp(*unit, None)),
            DataType::Timestamp(unit, Some(zone)) => {
                let zone = zone.parse().map_err(|_| format!("the time zone {zone} isn't known"))?;
                time(TimeKind::Timestamp(*unit, Some(zone)))
            }
            DataType::Utf8 | DataType::LargeUtf8 => bytes(false),
            DataType::Binary | DataType::LargeBinary => bytes(true),
            DataType::Utf8View => views(false),
            DataType::BinaryView => views(true),
            DataType::List(field) | DataType::LargeList(field) => {
                Ok(Values::List { ends: Vec::new(), element: column(field)? })
            }
            DataType::Map(entries, false) => match entries.data_type() {
                DataType::Struct(fields) if fields.len() == 2 => {
                    if !is_text(fields[0].data_type()) {
                        return Err(format!("the keys of a map are text, not {}", type_name(fields[0].data_type())));
                    }
                    Ok(Values::Map { ends: Vec::new(), keys: column(&fields[0])?, values: column(&fields[1])? })
                }
                _ => Err("a map has keys and values".to_string()),
            },
            DataType::Struct(fields) => Ok(Values::Struct(Object::new(fields).map_err(|e| e.to_string())?)),
            _ => Err("no text format can be read as that type".to_string()),
        }
    }

    fn finish(
        &mut self,
        field: &FieldRef,
        length: usize,
        nulls: Option<NullBuffer>,
    ) -> std::result::Result<ArrayRef, arrow::error::ArrowError> {
        let data_type = field.data_type();
        Ok(match self {
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
            Values::Decimal { values, precision, scale } => Arc::new(
                Decimal128Array::new(fresh(values).into(), nulls).with_precision_and_scale(*precision, *scale)?,
            ),
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

fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

/// Whether every field can be read from `format`.
///
/// # Errors
/// Unsupported, naming the column, its type and the format.
pub fn check_types(format: super::Format, fields: &Fields) -> Result<()> {
    if format == super::Format::Parquet {
        return Ok(());
    }
    for field in fields {
        let column = Column::new(field)?;
        let nested = matches!(column.values, Values::List { .. } | Values::Map { .. } | Values::Struct(_));
        if nested && format != super::Format::Json {
            return Err(Error::unsupported(format!(
                "column {} is {}: {} has only plain values",
                field.name(),
                type_name(field.data_type()),
                format.name()
            ))
            .help("declare it TEXT and take it apart in the query"));
        }
        if format == super::Format::Text && (fields.len() != 1 || !is_text(field.data_type())) {
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
