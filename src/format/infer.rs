//! Columns from records: the types that the first records of a place allow.
//!
//! | found | becomes |
//! | --- | --- |
//! | whole numbers | BIGINT; DECIMAL(38, 0) where one is beyond it |
//! | numbers | DOUBLE |
//! | text that is all ISO timestamps, or all dates | TIMESTAMP, DATE |
//! | numbers, and the texts `NaN`, `Infinity`, `-Infinity` | DOUBLE |
//! | other text; nothing but null; no number beside those three | TEXT |
//! | lists, objects | lists, structs |
//!
//! A field that holds two kinds has no type, and says so: guessing TEXT would fail at the first record.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};

use super::csv::{Split, split, texts};
use super::cursor::Cursor;
use super::{BadPlace, Block, CsvOptions, Format, OnBad, line_at, number, time, whole_lines, without_cr};
use crate::error::{Error, Result};

/// So many records are looked at.
pub const INFER_RECORDS: usize = 1_000;
/// Deeper records are refused: no one reads them.
const MAX_DEPTH: usize = 64;

/// What a value can be.
#[derive(Debug, Clone, PartialEq)]
enum Shape {
    /// Only null was seen.
    Null,
    Bool,
    Int,
    /// A whole number beyond BIGINT.
    Whole,
    Float,
    /// A text that is a float too.
    NotFinite,
    Timestamp,
    Date,
    Text,
    List(Box<Shape>),
    Struct(Vec<(String, Shape)>),
}

/// Collects what the records of one place have in common.
#[derive(Debug)]
pub struct Inference {
    format: Format,
    csv: CsvOptions,
    root: Vec<(String, Shape)>,
    /// The header of the file at hand.
    header: Option<Vec<String>>,
    records: usize,
    /// Records that were passed over.
    passed: usize,
}

impl Inference {
    pub fn new(format: Format, csv: CsvOptions) -> Self {
        Inference { format, csv, root: Vec::new(), header: None, records: 0, passed: 0 }
    }

    /// The next bytes are the first of another file.
    pub fn start_file(&mut self) {
        self.header = None;
    }

    /// Whether enough was seen.
    pub fn is_done(&self) -> bool {
        self.records + self.passed >= INFER_RECORDS || (self.format == Format::Text)
    }

    /// Looks at whole records from the front of `block`; answers how many bytes it took. A record that can't be read,
    /// or fits no column of those before it, tells nothing where `on_bad` lets it pass.
    ///
    /// # Errors
    /// Whatever `on_bad` answers, and nothing else.
    pub fn add(&mut self, block: Block<'_>, on_bad: &mut OnBad<'_>) -> Result<usize> {
        match self.format {
            Format::Csv => self.add_csv(block, on_bad),
            _ => self.add_json(block, on_bad),
        }
    }

    fn add_json(&mut self, block: Block<'_>, on_bad: &mut OnBad<'_>) -> Result<usize> {
        let bytes = whole_lines(block);
        let mut at = 0;
        while at < bytes.len() && !self.is_done() {
            let (line, next) = line_at(bytes, at);
            let line = without_cr(line);
            match self.json_record(line) {
                Ok(counts) => self.records += usize::from(counts),
                Err(reason) => self.pass(BadPlace { at, text: line, reason }, on_bad)?,
            }
            at = next;
        }
        Ok(at)
    }

    /// Takes one line; answers whether there was a record on it.
    fn json_record(&mut self, line: &[u8]) -> std::result::Result<bool, String> {
        let mut cursor = Cursor { bytes: line, at: 0 };
        cursor.skip_blanks();
        if cursor.at == cursor.bytes.len() {
            return Ok(false);
        }
        let shape = shape(&mut cursor, 0)?;
        cursor.skip_blanks();
        if cursor.at < cursor.bytes.len() {
            return Err(cursor.unexpected("the end of the line").to_string());
        }
        let Shape::Struct(fields) = shape else {
            return Err("is not a JSON object: expected one object per line".to_string());
        };
        // One that fails halfway leaves nothing behind.
        let mut root = self.root.clone();
        merge_fields(&mut root, fields, "")?;
        self.root = root;
        Ok(true)
    }

    fn pass(&mut self, place: BadPlace<'_>, on_bad: &mut OnBad<'_>) -> Result<()> {
        self.pass_one();
        on_bad(place).map(|_| ())
    }

    /// A record was passed over that came in no block.
    pub fn pass_one(&mut self) {
        self.passed += 1;
    }

    fn add_csv(&mut self, block: Block<'_>, on_bad: &mut OnBad<'_>) -> Result<usize> {
        let (mut spans, mut at) = (Vec::new(), 0);
        while at < block.bytes.len() && !self.is_done() {
            let (line, next_line) = line_at(block.bytes, at);
            if without_cr(line).is_empty() && (block.last || next_line < block.bytes.len()) {
                at = next_line;
                continue;
            }
            let start = at;
            let taken = match split(block.bytes, start, block.last, self.csv.delimiter, &mut spans) {
                Split::Incomplete => break,
                Split::Bad(what, next) => {
                    at = next;
                    Err(what.to_string())
                }
                Split::Record(next) => {
                    at = next;
                    self.csv_record(texts(block.bytes, &spans).collect())
                }
            };
            if let Err(reason) = taken {
                let text = block.bytes[start..at].strip_suffix(b"\n").unwrap_or(&block.bytes[start..at]);
                self.pass(BadPlace { at: start, text: without_cr(text), reason }, on_bad)?;
            }
        }
        Ok(at)
    }

    fn csv_record(&mut self, record: Vec<(String, bool)>) -> std::result::Result<(), String> {
        if self.csv.header && self.header.is_none() {
            self.header = Some(record.into_iter().map(|(name, _)| name.trim().to_string()).collect());
            return Ok(());
        }
        let width = record.len();
        let names = self.header.get_or_insert_with(|| (1..=width).map(|n| format!("column_{n}")).collect());
        if names.len() != width {
            return Err(format!("has {width} fields, not {}", names.len()));
        }
        let null = self.csv.null_value.as_deref().unwrap_or("");
        let fields = names.iter().zip(&record).map(|(name, (text, quoted))| {
            let shape = if *quoted || text != null { field_shape(text) } else { Shape::Null };
            (name.clone(), shape)
        });
        for (name, shape) in fields.collect::<Vec<_>>() {
            match self.root.iter_mut().find(|(known, _)| *known == name) {
                // Whatever CSV holds is text at least.
                Some((_, known)) => *known = merge(known.clone(), shape, &name).unwrap_or(Shape::Text),
                None => self.root.push((name, shape)),
            }
        }
        self.records += 1;
        Ok(())
    }

    /// The columns found.
    ///
    /// # Errors
    /// InvalidInput: no record was seen, or one without any field.
    pub fn schema(&self) -> Result<SchemaRef> {
        if self.format == Format::Text {
            return Ok(Arc::new(Schema::new(vec![Field::new("value", DataType::Utf8View, true)])));
        }
        if self.root.is_empty() {
            return Err(Error::invalid("cannot infer the columns: there is no record yet")
                .help("give the stream a column list: CREATE STREAM name (column type, …) WITH (…)"));
        }
        Ok(Arc::new(Schema::new(fields(&self.root))))
    }
}

fn shape(cursor: &mut Cursor<'_>, depth: usize) -> std::result::Result<Shape, String> {
    if depth > MAX_DEPTH {
        return Err(format!("is nested more than {MAX_DEPTH} deep"));
    }
    let start = cursor.at;
    let text = |reason: Box<super::column::Reason>| reason.to_string();
    match cursor.peek() {
        b'{' => object_shape(cursor, depth),
        b'[' => list_shape(cursor, depth),
        b'"' => {
            let mut scratch = Vec::new();
            Ok(text_shape(cursor.text(&mut scratch).map_err(text)?))
        }
        b't' | b'f' => cursor.skip_value().map(|()| Shape::Bool).map_err(text),
        b'n' => cursor.skip_value().map(|()| Shape::Null).map_err(text),
        _ => {
            let number = cursor.number().map_err(text)?;
            debug_assert!(cursor.at > start);
            Ok(number_shape(number))
        }
    }
}

fn object_shape(cursor: &mut Cursor<'_>, depth: usize) -> std::result::Result<Shape, String> {
    let text = |reason: Box<super::column::Reason>| reason.to_string();
    let mut fields = Vec::new();
    cursor.expect(b'{', "an object").map_err(text)?;
    while cursor.peek() != b'}' {
        if !fields.is_empty() {
            cursor.expect(b',', "a comma or a closing brace").map_err(text)?;
        }
        if cursor.peek() != b'"' {
            return Err(cursor.unexpected("a field's name").to_string());
        }
        let mut scratch = Vec::new();
        let name = cursor.text(&mut scratch).map_err(text)?.to_string();
        cursor.expect(b':', "a colon").map_err(text)?;
        let value = shape(cursor, depth + 1)?;
        merge_fields(&mut fields, vec![(name, value)], "")?;
        cursor.skip_blanks();
    }
    cursor.at += 1;
    Ok(Shape::Struct(fields))
}

fn list_shape(cursor: &mut Cursor<'_>, depth: usize) -> std::result::Result<Shape, String> {
    let text = |reason: Box<super::column::Reason>| reason.to_string();
    let mut element = None;
    cursor.expect(b'[', "a list").map_err(text)?;
    while cursor.peek() != b']' {
        if element.is_some() {
            cursor.expect(b',', "a comma or a closing bracket").map_err(text)?;
        }
        let value = shape(cursor, depth + 1)?;
        element = Some(merge(element.unwrap_or(Shape::Null), value, "a list's element")?);
        cursor.skip_blanks();
    }
    cursor.at += 1;
    Ok(Shape::List(Box::new(element.unwrap_or(Shape::Null))))
}

fn number_shape(text: &str) -> Shape {
    if text.contains(['.', 'e', 'E']) {
        return Shape::Float;
    }
    match number::integer(text.as_bytes(), i64::MIN.into(), i64::MAX.into()) {
        Ok(_) => Shape::Int,
        Err(_) => Shape::Whole,
    }
}

fn text_shape(text: &str) -> Shape {
    match text {
        text if time::looks_like_timestamp(text) => Shape::Timestamp,
        text if time::looks_like_date(text) => Shape::Date,
        "NaN" | "Infinity" | "-Infinity" => Shape::NotFinite,
        _ => Shape::Text,
    }
}

/// What a field of CSV can be.
fn field_shape(text: &str) -> Shape {
    let trimmed = text.trim();
    match super::number::json_number(trimmed.as_bytes()) {
        Some(length) if length == trimmed.len() => return number_shape(trimmed),
        _ => {}
    }
    match trimmed {
        text if text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false") => Shape::Bool,
        text => text_shape(text),
    }
}

fn merge(a: Shape, b: Shape, name: &str) -> std::result::Result<Shape, String> {
    use Shape::*;
    Ok(match (a, b) {
        (a, b) if a == b => a,
        (Null, other) | (other, Null) => other,
        (Int, Whole) | (Whole, Int) => Whole,
        (Int | Whole | Float, Int | Whole | Float) => Float,
        (NotFinite, Int | Whole | Float) | (Int | Whole | Float, NotFinite) => Float,
        (Timestamp | Date | Text | NotFinite, Timestamp | Date | Text | NotFinite) => Text,
        (List(a), List(b)) => List(Box::new(merge(*a, *b, name)?)),
        (Struct(mut a), Struct(b)) => {
            merge_fields(&mut a, b, name)?;
            Struct(a)
        }
        (a, b) => return Err(format!("holds {} in {name}, where an earlier record holds {}", kind(&b), kind(&a))),
    })
}

fn merge_fields(
    into: &mut Vec<(String, Shape)>,
    from: Vec<(String, Shape)>,
    path: &str,
) -> std::result::Result<(), String> {
    for (place, (name, shape)) in from.into_iter().enumerate() {
        // Records of one writer name their fields in one order.
        let at = match into.get(place) {
            Some((known, _)) if *known == name => Some(place),
            _ => into.iter().position(|(known, _)| *known == name),
        };
        match at {
            Some(at) => {
                let path = if path.is_empty() { name } else { format!("{path}.{name}") };
                let known = std::mem::replace(&mut into[at].1, Shape::Null);
                into[at].1 = merge(known, shape, &path)?;
            }
            None => into.push((name, shape)),
        }
    }
    Ok(())
}

fn kind(shape: &Shape) -> &'static str {
    match shape {
        Shape::Null => "null",
        Shape::Bool => "true or false",
        Shape::Int | Shape::Whole | Shape::Float => "a number",
        Shape::NotFinite | Shape::Timestamp | Shape::Date | Shape::Text => "text",
        Shape::List(_) => "a list",
        Shape::Struct(_) => "an object",
    }
}

fn fields(shapes: &[(String, Shape)]) -> Fields {
    shapes.iter().map(|(name, shape)| Field::new(name, data_type(shape), true)).collect()
}

fn data_type(shape: &Shape) -> DataType {
    match shape {
        Shape::Null | Shape::Text | Shape::NotFinite => DataType::Utf8View,
        Shape::Bool => DataType::Boolean,
        Shape::Int => DataType::Int64,
        Shape::Whole => DataType::Decimal128(38, 0),
        Shape::Float => DataType::Float64,
        Shape::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
        Shape::Date => DataType::Date32,
        Shape::List(element) => DataType::List(Arc::new(Field::new_list_field(data_type(element), true))),
        // A struct must have a field.
        Shape::Struct(shapes) if shapes.is_empty() => DataType::Utf8View,
        Shape::Struct(shapes) => DataType::Struct(fields(shapes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Keep;

    fn infer(format: Format, csv: CsvOptions, text: &str) -> std::result::Result<String, String> {
        let mut inference = Inference::new(format, csv);
        let block = Block { bytes: text.as_bytes(), last: true };
        let taken = inference.add(block, &mut |bad| Err(Error::invalid(format!("{}: {}", bad.at, bad.reason))));
        taken.map_err(|error| error.to_string())?;
        let schema = inference.schema().map_err(|e| e.to_string())?;
        let columns: Vec<String> = schema
            .fields()
            .iter()
            .map(|f| format!("{} {}", f.name(), super::super::type_name(f.data_type())))
            .collect();
        Ok(columns.join(", "))
    }

    fn json(text: &str) -> std::result::Result<String, String> {
        infer(Format::Json, CsvOptions::default(), text)
    }

    #[test]
    fn json_types_are_what_all_records_allow() {
        let text = r#"{"a": 1, "b": "x", "t": "2024-01-01T00:00:00Z", "d": "2024-01-01", "n": null, "l": [1, 2.5], "s": {"x": true}}

{"a": 1.5, "t": "2024-01-01 10:00:00", "s": {"y": []}, "new": 18446744073709551615}"#;
        let want = "a DOUBLE, b STRING, t TIMESTAMP, d DATE, n STRING, l ARRAY<DOUBLE>, s STRUCT<x BOOLEAN, y ARRAY<STRING>>, new DECIMAL(38, 0)";
        assert_eq!(json(text).as_deref(), Ok(want));
    }

    #[test]
    fn times_mixed_with_other_text_are_text() {
        assert_eq!(json("{\"t\":\"2024-01-01T00:00:00\"}\n{\"t\":\"soon\"}").as_deref(), Ok("t STRING"));
    }

    #[test]
    fn two_kinds_in_one_field_are_an_error_that_names_it() {
        let error = json("{\"a\":{\"b\":1}}\n{\"a\":{\"b\":\"x\"}}").err().unwrap_or_default();
        assert_eq!(error, "14: holds text in a.b, where an earlier record holds a number");
    }

    #[test]
    fn what_a_sink_writes_of_floats_is_floats() {
        assert_eq!(json("{\"a\":\"NaN\"}\n{\"a\":1}").as_deref(), Ok("a DOUBLE"));
        assert_eq!(json("{\"a\":[0.5,\"-Infinity\"]}").as_deref(), Ok("a ARRAY<DOUBLE>"));
        assert_eq!(json("{\"a\":\"NaN\"}\n{\"a\":\"x\"}").as_deref(), Ok("a STRING"));
        assert_eq!(json("{\"a\":\"Infinity\"}").as_deref(), Ok("a STRING"));
        assert!(json("{\"a\":1}\n{\"a\":\"nan\"}").is_err());
        assert_eq!(
            infer(Format::Csv, CsvOptions::default(), "NaN,x\n1,NaN\n").as_deref(),
            Ok("column_1 DOUBLE, column_2 STRING")
        );
    }

    #[test]
    fn what_is_passed_over_leaves_nothing_behind() {
        let text = "{\"a\":1}\nrubbish\n{\"new\":1,\"a\":\"x\"}\n{\"a\":2.5}\n";
        let mut inference = Inference::new(Format::Json, CsvOptions::default());
        let mut passed = Vec::new();
        let taken = inference.add(Block { bytes: text.as_bytes(), last: true }, &mut |bad| {
            passed.push((bad.at, String::from_utf8_lossy(bad.text).into_owned()));
            Ok(Keep::Nothing)
        });
        assert_eq!(taken.unwrap(), text.len());
        assert_eq!(passed, [(8, "rubbish".to_string()), (16, "{\"new\":1,\"a\":\"x\"}".to_string())]);
        let schema = inference.schema().unwrap();
        assert_eq!((schema.fields().len(), schema.field(0).data_type()), (1, &DataType::Float64));
        let text = "rubbish\n".repeat(2 * INFER_RECORDS);
        let mut inference = Inference::new(Format::Json, CsvOptions::default());
        let block = Block { bytes: text.as_bytes(), last: false };
        assert_eq!(inference.add(block, &mut |_| Ok(Keep::Nothing)).unwrap(), 8 * INFER_RECORDS, "it ends");
    }

    #[test]
    fn no_record_is_an_error_with_the_way_out() {
        assert!(json("\n \n").is_err_and(|e| e.contains("cannot infer")));
        assert!(json("{}").is_err());
        assert!(json("[1]").is_err_and(|e| e.contains("one object per line")));
    }

    #[test]
    fn csv_takes_names_from_the_header() {
        let csv = CsvOptions { header: true, ..CsvOptions::default() };
        let text = "id,name,at,ok\n1,x,2024-01-01 00:00:00,true\n,\"\",2024-01-02T00:00:00Z,FALSE\n";
        assert_eq!(infer(Format::Csv, csv, text).as_deref(), Ok("id BIGINT, name STRING, at TIMESTAMP, ok BOOLEAN"));
        assert_eq!(
            infer(Format::Csv, CsvOptions::default(), "1,x\ny,2\n").as_deref(),
            Ok("column_1 STRING, column_2 STRING")
        );
        assert!(infer(Format::Csv, CsvOptions::default(), "1,x\n2\n").is_err_and(|e| e == "4: has 1 fields, not 2"));
    }

    #[test]
    fn text_is_one_column() {
        assert_eq!(infer(Format::Text, CsvOptions::default(), "").as_deref(), Ok("value STRING"));
    }
}
