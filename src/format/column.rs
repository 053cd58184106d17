//! A column under construction: values are appended one by one, and taken back when their record turns out bad.
//!
//! What a text or a literal means in a type is decided here, once for every format; how values are written
//! (quotes, escapes, delimiters) is not.

use arrow::array::builder::make_view;
use arrow::array::*;
use arrow::datatypes::*;

use super::arrays::finish;
use super::number::{self, NoNumber};
use super::object::Object;
use super::time::TimeKind;
use super::types::{is_text, type_name};
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
    pub(super) field: FieldRef,
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
        finish(&mut self.values, &self.field, length, nulls)
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
}
