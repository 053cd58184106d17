//! Values as test files write them.
//!
//! Plain files have them as DataFusion's suites do: `NULL`, `(empty)`, floats to 12 digits, ISO times. In exact files also what
//! can't be seen is shown, `␠ ␉ ␤ ␍ ␀`, so that a row is its cells with one space between, and nothing else. In lists, structs
//! and maps, whose types no letter tells, a text that could be taken for something else stands in quotes, floats and decimals
//! have a point, and bytes are written `x'61'`.

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float16Type, Float32Type, Float64Type, Schema};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use sqllogictest::ColumnType;

use crate::error::{Error, Result};

/// The letter of a column's type, DataFusion's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Letter {
    Boolean,
    /// A date or a time of day.
    Date,
    Integer,
    Timestamp,
    /// Float or decimal.
    Real,
    Text,
    /// Anything else: struct, list, map, interval, binary.
    Other,
}

impl ColumnType for Letter {
    fn from_char(letter: char) -> Option<Self> {
        // A letter that is not known stands for anything, as the crate has it; exact files refuse it when they check types.
        Some(match letter {
            'B' => Letter::Boolean,
            'D' => Letter::Date,
            'I' => Letter::Integer,
            'P' => Letter::Timestamp,
            'R' => Letter::Real,
            'T' => Letter::Text,
            _ => Letter::Other,
        })
    }

    fn to_char(&self) -> char {
        match self {
            Letter::Boolean => 'B',
            Letter::Date => 'D',
            Letter::Integer => 'I',
            Letter::Timestamp => 'P',
            Letter::Real => 'R',
            Letter::Text => 'T',
            Letter::Other => '?',
        }
    }
}

impl Letter {
    /// Of a column.
    pub fn of(data_type: &DataType) -> Letter {
        match data_type {
            DataType::Boolean => Letter::Boolean,
            DataType::Date32 | DataType::Date64 | DataType::Time32(_) | DataType::Time64(_) => Letter::Date,
            DataType::Timestamp(..) => Letter::Timestamp,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Letter::Text,
            DataType::Dictionary(_, values) => Letter::of(values),
            t if t.is_integer() => Letter::Integer,
            t if t.is_floating() || t.is_decimal() => Letter::Real,
            _ => Letter::Other,
        }
    }

    /// Of all columns.
    pub fn all(schema: &Schema) -> Vec<Letter> {
        schema.fields().iter().map(|field| Letter::of(field.data_type())).collect()
    }
}

/// As written behind `query`.
pub fn letters(letters: &[Letter]) -> String {
    letters.iter().map(ColumnType::to_char).collect()
}

/// How values are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    Plain,
    Exact,
}

/// The rows of some batches.
///
/// # Errors
/// Internal: arrow can't write a value.
pub fn rows(batches: &[RecordBatch], style: Style) -> Result<Vec<Vec<String>>> {
    let mut out = Vec::new();
    for batch in batches {
        let columns: Vec<Vec<String>> =
            batch.columns().iter().map(|column| texts(column, style)).collect::<Result<_>>()?;
        out.extend((0..batch.num_rows()).map(|row| columns.iter().map(|column| column[row].clone()).collect()));
    }
    Ok(out)
}

/// A name of a column.
pub fn name(name: &str, style: Style) -> String {
    match style {
        Style::Plain => name.to_string(),
        Style::Exact => visible(name),
    }
}

fn wrong(e: arrow::error::ArrowError) -> Error {
    Error::internal(format!("a value can't be written: {e}"))
}

fn texts(column: &ArrayRef, style: Style) -> Result<Vec<String>> {
    match (style, column.data_type()) {
        (_, DataType::Dictionary(_, values)) => texts(&cast(column, values).map_err(wrong)?, style),
        (Style::Exact, t) if t.is_nested() => {
            let shown = |(row, text): (usize, String)| if column.is_null(row) { text } else { visible(&text) };
            Ok(nested(column)?.into_iter().enumerate().map(shown).collect())
        }
        (Style::Exact, _) => single(column, style, visible),
        (Style::Plain, _) => single(column, style, str::to_string),
    }
}

/// Values of lists, structs and maps with all that is in them, and of what these hold: written so that no two of one type are alike.
fn nested(column: &ArrayRef) -> Result<Vec<String>> {
    let row = |row: usize| -> Result<String> {
        let list = |values: ArrayRef| Ok(format!("[{}]", nested(&values)?.join(", ")));
        match column.data_type() {
            _ if column.is_null(row) => Ok("NULL".to_string()),
            DataType::List(_) => list(column.as_list::<i32>().value(row)),
            DataType::LargeList(_) => list(column.as_list::<i64>().value(row)),
            DataType::FixedSizeList(..) => list(column.as_fixed_size_list().value(row)),
            _ => {
                let entries = column.as_map().value(row);
                let (keys, values) = (nested(entries.column(0))?, nested(entries.column(1))?);
                Ok(braces(keys.iter().zip(&values)))
            }
        }
    };
    match column.data_type() {
        DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..) | DataType::Map(..) => {
            (0..column.len()).map(row).collect()
        }
        DataType::Struct(fields) => {
            let columns: Vec<Vec<String>> = column.as_struct().columns().iter().map(nested).collect::<Result<_>>()?;
            let names: Vec<String> = fields.iter().map(|field| unmistakable(field.name())).collect();
            let row = |row: usize| match column.is_null(row) {
                true => "NULL".to_string(),
                false => braces(names.iter().zip(columns.iter().map(|column| &column[row]))),
            };
            Ok((0..column.len()).map(row).collect())
        }
        DataType::Dictionary(_, values) => nested(&cast(column, values).map_err(wrong)?),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => single(column, Style::Exact, unmistakable),
        t if t.is_floating() || t.is_decimal() => pointed(column),
        DataType::Binary | DataType::LargeBinary | DataType::FixedSizeBinary(_) | DataType::BinaryView => {
            single(column, Style::Exact, |hex| format!("x'{hex}'"))
        }
        _ => single(column, Style::Exact, str::to_string),
    }
}

/// Floats, and decimals without a scale, that are no integers to the eye: `1.0` and `1.`.
fn pointed(column: &ArrayRef) -> Result<Vec<String>> {
    let point = if column.data_type().is_floating() { ".0" } else { "." };
    let ends_in_digit = |text: &String| text.ends_with(|c: char| c.is_ascii_digit());
    let mut texts = single(column, Style::Exact, str::to_string)?;
    for text in texts.iter_mut().filter(|text| ends_in_digit(text) && !text.contains('.')) {
        text.push_str(point);
    }
    Ok(texts)
}

fn braces<'a>(pairs: impl Iterator<Item = (&'a String, &'a String)>) -> String {
    let pairs: Vec<String> = pairs.map(|(name, value)| format!("{name}: {value}")).collect();
    format!("{{{}}}", pairs.join(", "))
}

/// A text among others: in quotes where it could be taken for more than one, for none, or for what is around it.
fn unmistakable(text: &str) -> String {
    let marks = |c: char| c.is_whitespace() || matches!(c, ',' | ':' | '[' | ']' | '{' | '}' | '\'' | '"');
    match text.is_empty() || text.contains(marks) || reads_as_another_type(text) {
        true => format!("'{}'", text.replace('\'', "''")),
        false => text.to_string(),
    }
}

/// Whether a text could be NULL, a boolean, a number, a date, a time or an interval.
fn reads_as_another_type(text: &str) -> bool {
    let is = |words: &[&str], text: &str| words.iter().any(|word| text.eq_ignore_ascii_case(word));
    let digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let mut first_two = unsigned.chars();
    match (first_two.next(), first_two.next()) {
        // Numbers, dates and times begin so.
        (Some(first), second) if digit(Some(first)) || first == '.' && digit(second) => true,
        // Durations: PT1S, P1D.
        (Some('P'), second) if second == Some('T') || digit(second) => true,
        _ => is(&["NULL", "true", "false"], text) || is(&["NaN", "Infinity", "inf"], unsigned),
    }
}

/// Values that hold no others; `shown` is how a text of theirs is written.
fn single(column: &ArrayRef, style: Style, shown: impl Fn(&str) -> String) -> Result<Vec<String>> {
    let floats: Option<Vec<f64>> = match column.data_type() {
        DataType::Float16 => Some(column.as_primitive::<Float16Type>().values().iter().map(|v| v.to_f64()).collect()),
        DataType::Float32 => {
            let shortest = |v: &f32| v.to_string().parse().unwrap_or(f64::from(*v));
            Some(column.as_primitive::<Float32Type>().values().iter().map(shortest).collect())
        }
        DataType::Float64 => Some(column.as_primitive::<Float64Type>().values().to_vec()),
        _ => None,
    };
    let options = FormatOptions::new().with_display_error(false).with_null("NULL");
    let formatter = ArrayFormatter::try_new(column.as_ref(), &options).map_err(wrong)?;
    let always_null = *column.data_type() == DataType::Null;
    let one = |row: usize| {
        if always_null || column.is_null(row) {
            return Ok("NULL".to_string());
        }
        if let Some(floats) = &floats {
            return Ok(float(floats[row], style));
        }
        let text = formatter.value(row).try_to_string().map_err(wrong)?;
        Ok(match (style, column.data_type()) {
            (Style::Plain, t) if t.is_decimal() => plain_decimal(&text),
            (Style::Plain, _) if text.is_empty() => "(empty)".to_string(),
            (Style::Plain, _) => text.trim_end_matches('\n').replace('\0', "\\0"),
            (Style::Exact, _) => shown(&text),
        })
    };
    (0..column.len()).map(one).collect()
}

/// 12 digits: behind the point in plain files, in all in exact ones, where a small number is not 0.
fn float(value: f64, style: Style) -> String {
    if value.is_nan() {
        return "NaN".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.into();
    }
    match style {
        Style::Exact => {
            let rounded: f64 = format!("{value:.11e}").parse().unwrap_or(value);
            format!("{rounded}")
        }
        Style::Plain if value.abs() < 1e15 => plain_decimal(&format!("{value:.12}")),
        Style::Plain => format!("{value}"),
    }
}

/// A decimal without the zeros at its end.
fn plain_decimal(text: &str) -> String {
    let short = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text };
    if short == "-0" { "0".into() } else { short.to_string() }
}

/// A text in which everything can be seen, and that is taken for nothing else.
fn visible(text: &str) -> String {
    if text.is_empty() {
        return "(empty)".into();
    }
    let mut out = String::with_capacity(text.len());
    if matches!(text, "NULL" | "(empty)" | "<ignore>") || text.starts_with("<~") || text.starts_with('\\') {
        out.push('\\');
    }
    for (at, c) in text.char_indices() {
        match c {
            '\\' if text[at..].starts_with("\\u{") => out.push_str("\\\\"),
            ' ' => out.push('␠'),
            '\t' => out.push('␉'),
            '\n' => out.push('␤'),
            '\r' => out.push('␍'),
            '\0' => out.push('␀'),
            '␠' | '␉' | '␤' | '␍' | '␀' => out.extend(['\\', c]),
            c if is_unseen(c) => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    out
}

/// Other white space than the space, control characters, and what has no width: nothing of it can be told from its neighbours.
fn is_unseen(c: char) -> bool {
    use unicode_width::UnicodeWidthChar;
    // The last two of each plane, and some more, are no characters; soft hyphen and fillers are of some width and blank.
    let is_none = u32::from(c) & 0xfffe == 0xfffe || matches!(c, '\u{fdd0}'..='\u{fdef}');
    let is_blank = matches!(c, '\u{ad}' | '\u{115f}' | '\u{2800}' | '\u{3164}' | '\u{ffa0}');
    c.is_whitespace() || c.is_control() || is_none || is_blank || c.width().is_none_or(|width| width == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Decimal128Array, Float64Array, StringArray};
    use std::sync::Arc;

    fn written(column: ArrayRef, style: Style) -> Vec<String> {
        texts(&column, style).unwrap()
    }

    #[test]
    fn what_can_not_be_seen_is_shown_in_exact_files() {
        let texts = vec![Some(""), Some("NULL"), None, Some("a b\t"), Some("a\\b"), Some("\\"), Some("<~x>")];
        let column: ArrayRef = Arc::new(StringArray::from(texts));
        let exact = ["(empty)", "\\NULL", "NULL", "a␠b␉", "a\\b", "\\\\", "\\<~x>"];
        assert_eq!(written(column.clone(), Style::Exact), exact);
        assert_eq!(written(column, Style::Plain), ["(empty)", "NULL", "NULL", "a b\t", "a\\b", "\\", "<~x>"]);
        let column: ArrayRef = Arc::new(StringArray::from(vec!["a\u{a0}b", "a\\u{a0}b", "\u{200b}", "ü"]));
        let hidden: ArrayRef =
            Arc::new(StringArray::from(vec!["e\u{301}", "\u{2066}a\u{2069}", "\u{fffe}", "\u{10ffff}", "\u{fe0f}"]));
        let shown = ["e\\u{301}", "\\u{2066}a\\u{2069}", "\\u{fffe}", "\\u{10ffff}", "\\u{fe0f}"];
        assert_eq!(written(hidden, Style::Exact), shown);
        assert_eq!(written(column, Style::Exact), ["a\\u{a0}b", "a\\\\u{a0}b", "\\u{200b}", "ü"]);
    }

    #[test]
    fn what_is_in_a_list_is_told_apart() {
        use arrow::array::{ListBuilder, StringBuilder};
        let mut lists = ListBuilder::new(StringBuilder::new());
        let rows: [&[Option<&str>]; 7] = [
            &[Some("a, b")],
            &[Some("a"), Some("b")],
            &[],
            &[Some("")],
            &[None, Some("NULL")],
            &[Some("[a]"), Some("it's")],
            &[Some("a\tb")],
        ];
        for row in rows {
            lists.append_value(row.iter().copied());
        }
        lists.append(false);
        let column: ArrayRef = Arc::new(lists.finish());
        let exact = ["['a,␠b']", "[a,␠b]", "[]", "['']", "[NULL,␠'NULL']", "['[a]',␠'it''s']", "['a␉b']", "NULL"];
        assert_eq!(written(column.clone(), Style::Exact), exact);
        assert_eq!(written(column, Style::Plain)[0], "[a, b]");
    }

    #[test]
    fn a_text_in_a_list_is_not_taken_for_a_value_of_another_type() {
        for text in ["1", "-1", "+.5", "2024-01-01", "01:02:03", "TRUE", "null", "-Infinity", "nan", "PT1S", "-P1D"] {
            assert_eq!(unmistakable(text), format!("'{text}'"));
        }
        for text in ["a", "a1", "-", ".", "-a", "./a", "Paris", "P", "trues", "T1", "_1", "ü"] {
            assert_eq!(unmistakable(text), text);
        }
    }

    #[test]
    fn numbers_in_a_list_are_told_by_their_point() {
        use arrow::array::{BinaryArray, Int64Array};
        let nested = |column: ArrayRef| super::nested(&column).unwrap();
        let floats = vec![Some(1.0), Some(-0.0), Some(0.5), Some(1e20), Some(f64::NAN), None];
        let written = ["1.0", "-0.0", "0.5", "100000000000000000000.0", "NaN", "NULL"];
        assert_eq!(nested(Arc::new(Float64Array::from(floats))), written);
        let decimals = |scale| Decimal128Array::from(vec![10]).with_precision_and_scale(10, scale).unwrap();
        assert_eq!(nested(Arc::new(decimals(0))), ["10."]);
        assert_eq!(nested(Arc::new(decimals(1))), ["1.0"]);
        assert_eq!(nested(Arc::new(Int64Array::from(vec![1]))), ["1"]);
        assert_eq!(nested(Arc::new(BinaryArray::from(vec![b"a".as_slice(), b""]))), ["x'61'", "x''"]);
    }

    #[test]
    fn floats_have_twelve_digits() {
        let column: ArrayRef = Arc::new(Float64Array::from(vec![0.1 + 0.2, 1e-13, -0.0, 1e20, f64::NAN, 2.0]));
        assert_eq!(written(column.clone(), Style::Plain), ["0.3", "0", "0", "100000000000000000000", "NaN", "2"]);
        assert_eq!(
            written(column, Style::Exact),
            ["0.3", "0.0000000000001", "-0", "100000000000000000000", "NaN", "2"]
        );
    }

    #[test]
    fn decimals_keep_their_scale_in_exact_files() {
        let column = Decimal128Array::from(vec![150, -3]).with_precision_and_scale(10, 2).unwrap();
        let column: ArrayRef = Arc::new(column);
        assert_eq!(written(column.clone(), Style::Exact), ["1.50", "-0.03"]);
        assert_eq!(written(column, Style::Plain), ["1.5", "-0.03"]);
    }
}
