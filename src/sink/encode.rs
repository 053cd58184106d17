//! Rows as text that programs read: JSON lines and CSV.
//!
//! JSON leaves out fields that are NULL and writes NaN and the infinities as the strings `"NaN"`, `"Infinity"` and
//! `"-Infinity"`, which JSON numbers don't have. CSV writes NULL as nothing and the empty text as `""`, so that they are
//! told apart when they are read back. Times are ISO 8601 in both, binary is hexadecimal.

use std::io::Write;
use std::sync::{Arc, LazyLock};

use arrow::array::{Array, AsArray, PrimitiveArray, RecordBatch, new_null_array};
use arrow::datatypes::{ArrowPrimitiveType, DataType, FieldRef, Float32Type, Float64Type, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::json::writer::{Encoder, EncoderFactory, EncoderOptions, LineDelimited, NullableEncoder, make_encoder};
use arrow::util::display::{ArrayFormatter, FormatOptions};

use crate::error::{Error, Result};
use crate::format::type_name;

/// A text format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextFormat {
    /// One object a line.
    Json,
    Csv,
}

impl TextFormat {
    /// As in SQL.
    pub(super) fn name(self) -> &'static str {
        match self {
            TextFormat::Json => "json",
            TextFormat::Csv => "csv",
        }
    }

    /// What a file begins with.
    pub(super) fn header(self, schema: &SchemaRef) -> Result<Vec<u8>> {
        match self {
            TextFormat::Json => Ok(Vec::new()),
            TextFormat::Csv => self.encode_with(&RecordBatch::new_empty(schema.clone()), true),
        }
    }

    /// The rows, without a header.
    pub(super) fn rows(self, rows: &RecordBatch) -> Result<Vec<u8>> {
        self.encode_with(rows, false)
    }

    /// Refuses columns that the format has no text for.
    ///
    /// # Errors
    /// Unsupported: names the column and the way out.
    pub(super) fn check(self, schema: &SchemaRef) -> Result<()> {
        for field in schema.fields() {
            let one = Arc::new(Schema::new(vec![field.as_ref().clone().with_nullable(true)]));
            let row = RecordBatch::try_new(one, vec![new_null_array(field.data_type(), 1)]);
            if row.map_err(wrong).and_then(|row| self.rows(&row)).is_err() {
                let what = format!(
                    "column {} is {}, which {} can't hold",
                    field.name(),
                    type_name(field.data_type()),
                    self.name()
                );
                return Err(Error::unsupported(what).help(match field.data_type() {
                    DataType::Struct(fields) if self == TextFormat::Csv => {
                        let name = fields.first().map_or("field", |f| f.name().as_str());
                        format!("select its fields ({}.{name} …), or write json or parquet", field.name())
                    }
                    _ => "leave it out, or cast it to VARCHAR".to_string(),
                }));
            }
        }
        Ok(())
    }

    fn encode_with(self, rows: &RecordBatch, header: bool) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        match self {
            TextFormat::Json => {
                let builder = arrow::json::WriterBuilder::new().with_encoder_factory(Arc::new(AllFloats));
                let mut writer = builder.build::<_, LineDelimited>(&mut bytes);
                writer.write(rows).and_then(|()| writer.finish()).map_err(wrong)?;
            }
            TextFormat::Csv => csv(rows, header, &mut bytes).map_err(wrong)?,
        }
        Ok(bytes)
    }
}

/// Lines of fields. Of a single column NULL is `""` too: an empty line would be passed over when it is read.
fn csv(rows: &RecordBatch, header: bool, bytes: &mut Vec<u8>) -> Result<(), ArrowError> {
    if let Some(nested) = rows.columns().iter().find(|column| column.data_type().is_nested()) {
        return Err(ArrowError::CsvError(format!("{} is no text", nested.data_type())));
    }
    if header {
        for (at, field) in rows.schema_ref().fields().iter().enumerate() {
            csv_field(at, field.name(), bytes);
        }
        bytes.push(b'\n');
    }
    let options = FormatOptions::new();
    let columns = rows.columns().iter().map(|column| ArrayFormatter::try_new(column.as_ref(), &options));
    let columns: Vec<ArrayFormatter<'_>> = columns.collect::<Result<_, _>>()?;
    let mut text = String::new();
    for row in 0..rows.num_rows() {
        for (at, (column, values)) in columns.iter().zip(rows.columns()).enumerate() {
            text.clear();
            match values.is_null(row) {
                true if columns.len() > 1 && at > 0 => bytes.push(b','),
                true if columns.len() > 1 => {}
                true => csv_field(at, "", bytes),
                false => {
                    column.value(row).write(&mut text)?;
                    csv_field(at, &text, bytes);
                }
            }
        }
        bytes.push(b'\n');
    }
    Ok(())
}

/// A field behind its comma, quoted where it has to be.
fn csv_field(at: usize, text: &str, bytes: &mut Vec<u8>) {
    if at > 0 {
        bytes.push(b',');
    }
    if !text.is_empty() && !text.contains(['"', ',', '\n', '\r']) {
        bytes.extend_from_slice(text.as_bytes());
        return;
    }
    bytes.push(b'"');
    for part in text.split_inclusive('"') {
        bytes.extend_from_slice(part.as_bytes());
        if part.ends_with('"') {
            bytes.push(b'"');
        }
    }
    bytes.push(b'"');
}

fn wrong(error: ArrowError) -> Error {
    Error::internal(format!("rows can't be written as text: {error}"))
}

/// Gives floats that are no JSON numbers a text; arrow would write null and lose them.
#[derive(Debug)]
struct AllFloats;

/// Arrow's own encoders, for the numbers among them.
static PLAIN: LazyLock<EncoderOptions> = LazyLock::new(EncoderOptions::default);

impl EncoderFactory for AllFloats {
    fn make_default_encoder<'a>(
        &self,
        field: &'a FieldRef,
        array: &'a dyn Array,
        _options: &'a EncoderOptions,
    ) -> Result<Option<NullableEncoder<'a>>, ArrowError> {
        match array.data_type() {
            DataType::Float32 => all_floats::<Float32Type>(field, array),
            DataType::Float64 => all_floats::<Float64Type>(field, array),
            _ => Ok(None),
        }
    }
}

fn all_floats<'a, T>(field: &'a FieldRef, array: &'a dyn Array) -> Result<Option<NullableEncoder<'a>>, ArrowError>
where
    T: ArrowPrimitiveType,
    T::Native: Into<f64>,
{
    let values = array.as_primitive::<T>();
    if values.values().iter().all(|value| (*value).into().is_finite()) {
        return Ok(None);
    }
    let numbers = make_encoder(field, array, &PLAIN)?;
    Ok(Some(NullableEncoder::new(Box::new(FloatEncoder { values, numbers }), array.nulls().cloned())))
}

struct FloatEncoder<'a, T: ArrowPrimitiveType> {
    values: &'a PrimitiveArray<T>,
    numbers: NullableEncoder<'a>,
}

impl<T> Encoder for FloatEncoder<'_, T>
where
    T: ArrowPrimitiveType,
    T::Native: Into<f64>,
{
    fn encode(&mut self, index: usize, out: &mut Vec<u8>) {
        let value: f64 = self.values.value(index).into();
        let text: &[u8] = match value {
            value if value.is_finite() => return self.numbers.encode(index, out),
            value if value.is_nan() => b"\"NaN\"",
            value if value > 0.0 => b"\"Infinity\"",
            _ => b"\"-Infinity\"",
        };
        out.extend_from_slice(text);
    }
}

/// Writes a batch's text in one go and flushes, under one hold of the lock, so that it is never mixed with an answer.
///
/// # Errors
/// Io of kind `BrokenPipe` when the reader is gone, which ends a query gracefully.
pub(super) fn write_whole(output: &super::SharedOutput, what: &str, text: &[u8]) -> Result<()> {
    let mut output = output.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    output.write_all(text).and_then(|()| output.flush()).map_err(|e| Error::io(format!("writing to {what}"), &e))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{ArrayRef, Float64Array, Int64Array, ListArray, StringArray, TimestampMicrosecondArray};
    use arrow::datatypes::{Field, Int32Type, TimeUnit};

    fn batch() -> RecordBatch {
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("ts", Arc::new(TimestampMicrosecondArray::from(vec![Some(1_704_067_200_000_000), None]))),
            ("n", Arc::new(Int64Array::from(vec![None, Some(-3)]))),
            ("t", Arc::new(StringArray::from(vec!["a,\"b\"\nc", ""]))),
            ("f", Arc::new(Float64Array::from(vec![f64::NAN, 1.5]))),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    }

    #[test]
    fn json_lines() {
        let text = String::from_utf8(TextFormat::Json.rows(&batch()).unwrap()).unwrap();
        assert_eq!(
            text,
            "{\"ts\":\"2024-01-01T00:00:00\",\"t\":\"a,\\\"b\\\"\\nc\",\"f\":\"NaN\"}\n{\"n\":-3,\"t\":\"\",\"f\":1.5}\n"
        );
    }

    #[test]
    fn csv() {
        let rows = batch();
        let mut text = TextFormat::Csv.header(&rows.schema()).unwrap();
        text.extend(TextFormat::Csv.rows(&rows).unwrap());
        let text = String::from_utf8(text).unwrap();
        assert_eq!(text, "ts,n,t,f\n2024-01-01T00:00:00,,\"a,\"\"b\"\"\nc\",NaN\n,-3,\"\",1.5\n");
    }

    #[test]
    fn floats_come_back_as_they_were() {
        let values = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 1e300, 5e-324];
        let rows =
            RecordBatch::try_from_iter([("f", Arc::new(Float64Array::from(values.to_vec())) as ArrayRef)]).unwrap();
        let text = TextFormat::Json.rows(&rows).unwrap();
        let mut reader = arrow::json::ReaderBuilder::new(rows.schema()).build(text.as_slice()).unwrap();
        let back = reader.next().unwrap().unwrap();
        let back = back.column(0).as_primitive::<Float64Type>().values().to_vec();
        assert_eq!(back.iter().map(|f| f.to_bits()).collect::<Vec<_>>(), values.map(f64::to_bits).to_vec());
    }

    #[test]
    fn columns_without_a_text_are_refused_by_name() {
        let window =
            DataType::Struct(vec![Field::new("start", DataType::Timestamp(TimeUnit::Microsecond, None), true)].into());
        let schema = Arc::new(Schema::new(vec![Field::new("w", window, true)]));
        TextFormat::Json.check(&schema).unwrap();
        let error = TextFormat::Csv.check(&schema).unwrap_err();
        assert!(error.to_string().starts_with("column w is STRUCT<start TIMESTAMP>"), "{error}");
        assert!(error.help_text().unwrap().contains("w.start"));
        let list = ListArray::from_iter_primitive::<Int32Type, _, _>([Some([Some(1)])]);
        let schema = Arc::new(Schema::new(vec![Field::new("l", list.data_type().clone(), true)]));
        assert!(TextFormat::Csv.check(&schema).is_err());
        TextFormat::Json.check(&schema).unwrap();
    }
}
