//! Types as SQL spells them, and as arrow holds them.
//!
//! One table for the whole session: DataFusion asks it for casts and CREATE TABLE ([`SqlTypes`]), CREATE STREAM for
//! its columns. It differs from DataFusion's own in one point that decides results: TIMESTAMP is microseconds here,
//! as nanoseconds end in the year 2262. Spark's and Flink's names for the same types are taken too. A length
//! (`VARCHAR(10)`) is refused rather than ignored.

use std::sync::Arc;

use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType, Field, FieldRef, Fields};
use arrow::datatypes::{IntervalUnit, TimeUnit};
use datafusion::common::{DataFusionError, Result as DfResult};
use datafusion::logical_expr::planner::TypePlanner;

use crate::error::{Code, Error, Result, Span, closest};
use crate::format::sql_type;
use crate::parser::Name;
use crate::parser::ast::{self, ArrayElemTypeDef, ExactNumberInfo, TimezoneInfo};

/// The zone of TIMESTAMP WITH TIME ZONE: the instant is kept, the zone it was written in is not.
const ZONE: &str = "UTC";

/// Our table of types, for DataFusion.
#[derive(Debug)]
pub struct SqlTypes;

impl TypePlanner for SqlTypes {
    fn plan_type_field(&self, sql_type: &ast::DataType) -> DfResult<Option<FieldRef>> {
        match from_sql(sql_type) {
            Ok(data_type) => Ok(Some(Arc::new(Field::new("", data_type, true)))),
            Err(error) => Err(DataFusionError::External(Box::new(error))),
        }
    }
}

/// The arrow type of a type written in SQL.
///
/// # Errors
/// A type that has no columns here, with the closest known name or the spelling to use instead.
pub fn from_sql(sql_type: &ast::DataType) -> Result<DataType> {
    use ast::DataType as T;
    Ok(match sql_type {
        T::Boolean | T::Bool => DataType::Boolean,
        T::TinyInt(None) => DataType::Int8,
        T::SmallInt(None) | T::Int2(None) | T::Int16 => DataType::Int16,
        T::Int(None) | T::Integer(None) | T::Int4(None) | T::Int32 => DataType::Int32,
        T::BigInt(None) | T::Int8(None) | T::Int64 => DataType::Int64,
        T::TinyIntUnsigned(None) | T::UTinyInt | T::UInt8 => DataType::UInt8,
        T::SmallIntUnsigned(None) | T::Int2Unsigned(None) | T::USmallInt | T::UInt16 => DataType::UInt16,
        T::IntUnsigned(None) | T::IntegerUnsigned(None) | T::Int4Unsigned(None) | T::UInt32 => DataType::UInt32,
        T::BigIntUnsigned(None) | T::Int8Unsigned(None) | T::UBigInt | T::UInt64 => DataType::UInt64,
        T::Float(ExactNumberInfo::None) | T::Real | T::Float4 | T::Float32 => DataType::Float32,
        T::Double(ExactNumberInfo::None) | T::DoublePrecision | T::Float8 | T::Float64 => DataType::Float64,
        T::Decimal(info) | T::Numeric(info) | T::Dec(info) => decimal(*info)?,
        T::Text | T::String(None) | T::Varchar(None) | T::Char(None) => DataType::Utf8View,
        T::Character(None) | T::CharacterVarying(None) | T::CharVarying(None) => DataType::Utf8View,
        T::Bytea | T::Bytes(None) | T::Binary(None) | T::Varbinary(None) | T::Blob(None) => DataType::Binary,
        T::Date | T::Date32 => DataType::Date32,
        T::Time(None, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => DataType::Time64(TimeUnit::Nanosecond),
        T::Timestamp(precision, zone) => timestamp(*precision, with_zone(zone))?,
        T::TimestampNtz(precision) | T::Datetime(precision) => timestamp(*precision, false)?,
        T::Interval { fields: None, precision: None } => DataType::Interval(IntervalUnit::MonthDayNano),
        T::Array(ArrayElemTypeDef::AngleBracket(of) | ArrayElemTypeDef::SquareBracket(of, None)) => list(of)?,
        T::Map(key, value) => map(key, value)?,
        T::Struct(fields, _) => DataType::Struct(struct_fields(fields)?),
        T::Custom(name, arguments) => custom(&name.to_string(), arguments)?,
        T::Varchar(Some(_)) | T::Char(Some(_)) | T::Character(Some(_)) => return Err(no_length(sql_type)),
        T::CharacterVarying(Some(_)) | T::CharVarying(Some(_)) | T::String(Some(_)) => return Err(no_length(sql_type)),
        other => return Err(Error::not_yet(format!("columns of type {other}"))),
    })
}

/// How a type is written in SQL, so that [`from_sql`] gives it back; types that SQL has no name for are shown as
/// arrow names them.
pub fn to_sql(data_type: &DataType) -> String {
    sql_type(data_type, &ident)
}

/// The type that a column of this SQL name has: what is inferred from data becomes what its CREATE text gives.
///
/// # Errors
/// A type that no CREATE text can give.
pub fn canonical(data_type: &DataType) -> Result<DataType> {
    Ok(match data_type {
        DataType::Null | DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
        DataType::LargeBinary | DataType::BinaryView => DataType::Binary,
        DataType::Float16 => DataType::Float32,
        DataType::Dictionary(_, value) => canonical(value)?,
        DataType::Timestamp(unit, Some(_)) => DataType::Timestamp(*unit, Some(ZONE.into())),
        DataType::Decimal256(precision, scale) if *precision <= DECIMAL128_MAX_PRECISION => {
            DataType::Decimal128(*precision, *scale)
        }
        DataType::Date64 => DataType::Timestamp(TimeUnit::Millisecond, None),
        DataType::Time32(_) | DataType::Time64(_) => DataType::Time64(TimeUnit::Nanosecond),
        DataType::List(field) | DataType::LargeList(field) => {
            DataType::List(Arc::new(Field::new_list_field(canonical(field.data_type())?, true)))
        }
        DataType::Struct(fields) => {
            let fields = fields.iter().map(|f| Ok(Field::new(f.name(), canonical(f.data_type())?, true)));
            DataType::Struct(fields.collect::<Result<Vec<_>>>()?.into())
        }
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(kv) if kv.len() == 2 => {
                map_of(canonical(kv[0].data_type())?, canonical(kv[1].data_type())?)
            }
            _ => return Err(Error::not_yet(format!("columns of type {data_type}"))),
        },
        DataType::Union(..) | DataType::RunEndEncoded(..) | DataType::Duration(_) | DataType::FixedSizeBinary(_) => {
            return Err(Error::not_yet(format!("columns of type {data_type}")));
        }
        other => other.clone(),
    })
}

/// An identifier as SQL text: quoted where it would fold or end otherwise.
pub fn ident(name: &str) -> String {
    Name { value: name.to_string(), span: Span::default() }.to_string()
}

fn with_zone(zone: &TimezoneInfo) -> bool {
    matches!(zone, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz)
}

fn timestamp(precision: Option<u64>, zone: bool) -> Result<DataType> {
    let unit = match precision {
        Some(0) => TimeUnit::Second,
        Some(3) => TimeUnit::Millisecond,
        None | Some(6) => TimeUnit::Microsecond,
        Some(9) => TimeUnit::Nanosecond,
        Some(n) => return Err(Error::invalid(format!("TIMESTAMP({n}): the precision is 0, 3, 6 or 9"))),
    };
    Ok(DataType::Timestamp(unit, zone.then(|| ZONE.into())))
}

fn decimal(info: ExactNumberInfo) -> Result<DataType> {
    let (precision, scale) = match info {
        ExactNumberInfo::None => (38, 10),
        ExactNumberInfo::Precision(precision) => (precision, 0),
        ExactNumberInfo::PrecisionAndScale(precision, scale) => (precision, scale),
    };
    let fits = precision >= 1 && precision <= u64::from(DECIMAL256_MAX_PRECISION) && scale.unsigned_abs() <= precision;
    let (Ok(small), Ok(digits), true) = (u8::try_from(precision), i8::try_from(scale), fits && scale >= 0) else {
        let rule = "the precision is 1 to 76, the scale 0 to the precision";
        return Err(Error::invalid(format!("DECIMAL({precision}, {scale}): {rule}")));
    };
    Ok(if small <= DECIMAL128_MAX_PRECISION {
        DataType::Decimal128(small, digits)
    } else {
        DataType::Decimal256(small, digits)
    })
}

fn list(of: &ast::DataType) -> Result<DataType> {
    Ok(DataType::List(Arc::new(Field::new_list_field(from_sql(of)?, true))))
}

fn map(key: &ast::DataType, value: &ast::DataType) -> Result<DataType> {
    Ok(map_of(from_sql(key)?, from_sql(value)?))
}

fn map_of(key: DataType, value: DataType) -> DataType {
    let entries = Fields::from(vec![Field::new("key", key, false), Field::new("value", value, true)]);
    DataType::Map(Arc::new(Field::new("entries", DataType::Struct(entries), false)), false)
}

fn struct_fields(fields: &[ast::StructField]) -> Result<Fields> {
    let field = |(at, field): (usize, &ast::StructField)| {
        let name = match &field.field_name {
            Some(name) if name.quote_style.is_none() => name.value.to_lowercase(),
            Some(name) => name.value.clone(),
            None => format!("c{at}"),
        };
        Ok(Field::new(name, from_sql(&field.field_type)?, true))
    };
    Ok(fields.iter().enumerate().map(field).collect::<Result<Vec<_>>>()?.into())
}

/// Names that the SQL parser does not know as types.
fn custom(name: &str, arguments: &[String]) -> Result<DataType> {
    let folded = name.to_ascii_lowercase();
    let precision = match arguments {
        [] => None,
        [one] => Some(one.parse().map_err(|_| Error::invalid(format!("{name}({one}): not a precision")))?),
        _ => return Err(Error::invalid(format!("type {name} takes one precision"))),
    };
    match (folded.as_str(), precision) {
        ("timestamp_ltz", _) => timestamp(precision, true),
        ("timestamp_ntz", _) => timestamp(precision, false),
        ("byte", None) => Ok(DataType::Int8),
        ("short", None) => Ok(DataType::Int16),
        ("long", None) => Ok(DataType::Int64),
        _ => Err(unknown(name)),
    }
}

fn unknown(name: &str) -> Error {
    let known = [
        "array",
        "bigint",
        "binary",
        "boolean",
        "byte",
        "bytea",
        "bytes",
        "date",
        "decimal",
        "double",
        "float",
        "int",
        "integer",
        "interval",
        "long",
        "map",
        "real",
        "short",
        "smallint",
        "string",
        "struct",
        "text",
        "time",
        "timestamp",
        "timestamp_ltz",
        "tinyint",
        "varchar",
    ];
    let error = Error::invalid(format!("unknown type {name}")).coded(Code::Types);
    match closest(name, known) {
        Some(name) => error.help(format!("did you mean {}?", name.to_uppercase())),
        None => error.help(format!("known types: {}", known.join(", ").to_uppercase())),
    }
}

fn no_length(sql_type: &ast::DataType) -> Error {
    Error::unsupported(format!("{sql_type}: a length is not checked, so it can't be given")).help("write STRING")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_microseconds_unless_a_precision_says_otherwise() {
        let t = |precision, zone| from_sql(&ast::DataType::Timestamp(precision, zone)).map_err(|e| e.to_string());
        assert_eq!(t(None, TimezoneInfo::None), Ok(DataType::Timestamp(TimeUnit::Microsecond, None)));
        assert_eq!(t(Some(9), TimezoneInfo::None), Ok(DataType::Timestamp(TimeUnit::Nanosecond, None)));
        let zoned = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        assert_eq!(t(None, TimezoneInfo::WithTimeZone), Ok(zoned));
        assert_eq!(t(Some(4), TimezoneInfo::None), Err("TIMESTAMP(4): the precision is 0, 3, 6 or 9".into()));
    }

    #[test]
    fn an_inferred_type_is_the_one_that_its_text_gives() {
        let dialect = datafusion::sql::sqlparser::dialect::GenericDialect {};
        let types = [
            DataType::Boolean,
            DataType::Int64,
            DataType::UInt16,
            DataType::Utf8,
            DataType::LargeBinary,
            DataType::Timestamp(TimeUnit::Nanosecond, Some("+02:00".into())),
            DataType::Timestamp(TimeUnit::Second, None),
            DataType::Decimal128(10, 2),
            DataType::Decimal256(60, 3),
            DataType::Date32,
            DataType::Time64(TimeUnit::Microsecond),
            DataType::new_list(DataType::Utf8, false),
            DataType::Struct(
                vec![Field::new("a", DataType::Int32, false), Field::new("B", DataType::Utf8, true)].into(),
            ),
        ];
        for data_type in types {
            let text = to_sql(&data_type);
            let mut parser = datafusion::sql::sqlparser::parser::Parser::new(&dialect).try_with_sql(&text).unwrap();
            let again = from_sql(&parser.parse_data_type().unwrap()).unwrap();
            assert_eq!(again, canonical(&data_type).unwrap(), "{text}");
        }
    }

    #[test]
    fn unknown_types_name_the_closest() {
        let name = ast::ObjectName::from(vec![ast::Ident::new("lonng")]);
        let error = from_sql(&ast::DataType::Custom(name, vec![])).unwrap_err();
        assert_eq!(error.to_string(), "unknown type lonng");
        assert_eq!(error.help_text(), Some("did you mean LONG?"));
    }
}
