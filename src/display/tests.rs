//! Every format over odd data.

use std::sync::Arc;

use arrow::array::*;
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType, Field, Int32Type, Schema, SchemaRef, TimeUnit};

use super::{Format, RowWriter, Style, Written, write_rows};

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true))).unwrap()
}

fn show(format: Format, batch: &RecordBatch) -> String {
    let mut out = Vec::new();
    write_rows(&mut out, format, std::slice::from_ref(batch), &batch.schema()).unwrap();
    String::from_utf8(out).unwrap()
}

fn texts(values: Vec<Option<&str>>) -> ArrayRef {
    Arc::new(StringArray::from(values))
}

/// The one column of a batch as JSON values, for types.
fn json_values(array: ArrayRef) -> Vec<String> {
    let lines = show(Format::JsonLines, &batch(vec![("v", array)]));
    lines.lines().map(|line| line.strip_prefix("{\"v\":").unwrap().strip_suffix('}').unwrap().to_string()).collect()
}

/// The one column of a batch as people see it.
fn values(array: ArrayRef) -> Vec<String> {
    let records = show(Format::Vertical, &batch(vec![("v", array)]));
    let lines = records.lines().filter(|line| !line.starts_with("-["));
    lines.map(|line| line.strip_prefix("v |").unwrap().trim_start_matches(' ').to_string()).collect()
}

fn sample() -> RecordBatch {
    batch(vec![
        ("page", texts(vec![Some("/a"), None, Some("")])),
        ("count", Arc::new(Int64Array::from(vec![Some(7), Some(-12), None]))),
    ])
}

#[test]
fn a_table_has_numbers_at_the_right_and_null_told_from_empty() {
    assert_eq!(
        show(Format::Ascii, &sample()),
        "\
+------+-------+
| page | count |
+------+-------+
| /a   |     7 |
| NULL |   -12 |
|      |  NULL |
+------+-------+
"
    );
}

#[test]
fn every_other_format_in_its_plainest_form() {
    for (format, text) in [
        (Format::Csv, "page,count\n/a,7\n,-12\n\"\",\n"),
        (Format::Tsv, "page\tcount\n/a\t7\n\\N\t-12\n\t\\N\n"),
        (
            Format::Json,
            "[{\"page\":\"/a\",\"count\":7},\n{\"page\":null,\"count\":-12},\n{\"page\":\"\",\"count\":null}]\n",
        ),
        (
            Format::JsonLines,
            "{\"page\":\"/a\",\"count\":7}\n{\"page\":null,\"count\":-12}\n{\"page\":\"\",\"count\":null}\n",
        ),
        (
            Format::Markdown,
            "| page | count |\n| ---- | ----: |\n| /a   |     7 |\n| NULL |   -12 |\n|      |  NULL |\n",
        ),
        (
            Format::Vertical,
            "-[ RECORD 1 ]-\npage  | /a\ncount | 7\n-[ RECORD 2 ]-\npage  | NULL\ncount | -12\n-[ RECORD 3 ]-\npage  |\ncount | NULL\n",
        ),
        (Format::Column, "page  count\n----  -----\n/a        7\nNULL    -12\n       NULL\n"),
        (Format::List, "page|count\n/a|7\n|-12\n|\n"),
        (Format::Quote, "'page','count'\n'/a',7\nNULL,-12\n'',NULL\n"),
        (
            Format::Html,
            "<table>\n<tr><th>page</th><th>count</th></tr>\n\
             <tr><td>/a</td><td align=\"right\">7</td></tr>\n\
             <tr><td>NULL</td><td align=\"right\">-12</td></tr>\n\
             <tr><td></td><td align=\"right\">NULL</td></tr>\n</table>\n",
        ),
        (
            Format::Table,
            "\
┌────────┬────────┐
│ page   │  count │
│ string │ bigint │
├────────┼────────┤
│ /a     │      7 │
│ NULL   │    -12 │
│        │   NULL │
└────────┴────────┘
",
        ),
    ] {
        assert_eq!(show(format, &sample()), text, "{format}");
    }
}

#[test]
fn no_rows_still_have_their_header() {
    let none = sample().slice(0, 0);
    let rule = "+------+-------+\n";
    for (format, text) in [
        (Format::Ascii, format!("{rule}| page | count |\n{rule}{rule}")),
        (Format::Csv, "page,count\n".to_string()),
        (Format::Tsv, "page\tcount\n".to_string()),
        (Format::Json, "[]\n".to_string()),
        (Format::JsonLines, String::new()),
        (Format::Markdown, "| page | count |\n| ---- | ----: |\n".to_string()),
        (Format::Vertical, String::new()),
    ] {
        assert_eq!(show(format, &none), text, "{format}");
        let mut out = Vec::new();
        write_rows(&mut out, format, &[], &none.schema()).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), text, "{format}, no batch");
    }
}

#[test]
fn widths_are_those_of_a_terminal() {
    let odd = vec![Some("日本語"), Some("👩‍👩‍👧 a"), Some("e\u{301}x"), Some("שלום"), Some("plain")];
    assert_eq!(
        show(
            Format::Ascii,
            &batch(vec![("見出し", texts(odd)), ("n", Arc::new(Int32Array::from(vec![1, 2, 3, 4, 5])))])
        ),
        "\
+--------+---+
| 見出し | n |
+--------+---+
| 日本語 | 1 |
| 👩‍👩‍👧 a   | 2 |
| e\u{301}x     | 3 |
| שלום   | 4 |
| plain  | 5 |
+--------+---+
"
    );
}

#[test]
fn control_characters_can_do_nothing() {
    let odd = batch(vec![("a\nb", texts(vec![Some("x\x1b[2J\ty\r\nz\0|\u{9b}")]))]);
    let table = show(Format::Ascii, &odd);
    assert!(table.contains("| a\\nb"), "{table}");
    assert!(table.contains("| x\\x1b[2J\\ty\\r\\nz\\x00|\\x9b |"), "{table}");
    assert!(show(Format::Markdown, &odd).contains("| x\\x1b[2J\\ty\\r\\nz\\x00\\|\\x9b |"));
    assert!(show(Format::Vertical, &odd).contains("a\\nb | x\\x1b[2J"));
    assert_eq!(show(Format::JsonLines, &odd), "{\"a\\nb\":\"x\\u001b[2J\\ty\\r\\nz\\u0000|\\u009b\"}\n");
    assert_eq!(show(Format::Tsv, &batch(vec![("v", texts(vec![Some("a\tb\\N\nc")]))])), "v\na\\tb\\\\N\\nc\n");
    assert_eq!(show(Format::Csv, &batch(vec![("v", texts(vec![Some("a,\"b\"\nc")]))])), "v\n\"a,\"\"b\"\"\nc\"\n");
}

#[test]
fn floats_can_be_read_back() {
    let odd = vec![0.1, 1.0, -0.0, 1e18, 1e300, 5e-324, f64::MAX, 0.1 + 0.2];
    for format in [values, json_values] {
        let written = format(Arc::new(Float64Array::from(odd.clone())));
        let read: Vec<u64> = written.iter().map(|text| text.parse::<f64>().unwrap().to_bits()).collect();
        assert_eq!(read, odd.iter().map(|value| value.to_bits()).collect::<Vec<_>>(), "{written:?}");
    }
    assert_eq!(values(Arc::new(Float64Array::from(odd)))[..4], ["0.1", "1.0", "-0.0", "1e18"]);
    assert_eq!(values(Arc::new(Float32Array::from(vec![0.1, 16_777_216.0]))), ["0.1", "16777216.0"]);
    let not_finite = || Arc::new(Float64Array::from(vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY]));
    assert_eq!(values(not_finite()), ["NaN", "inf", "-inf"]);
    assert_eq!(json_values(not_finite()), ["\"NaN\"", "\"Infinity\"", "\"-Infinity\""]);
}

#[test]
fn exact_numbers_are_exact() {
    let decimal = Decimal128Array::from(vec![99_999_999_999_999_999_999_999_999_999_999_999_999, -1])
        .with_precision_and_scale(38, 10)
        .unwrap();
    let texts = ["9999999999999999999999999999.9999999999", "-0.0000000001"];
    assert_eq!(values(Arc::new(decimal.clone())), texts);
    assert_eq!(json_values(Arc::new(decimal)), texts);
    assert_eq!(json_values(Arc::new(Int64Array::from(vec![i64::MIN]))), ["-9223372036854775808"]);
    assert_eq!(values(Arc::new(UInt64Array::from(vec![u64::MAX]))), ["18446744073709551615"]);
}

#[test]
fn times_are_iso() {
    let micros = |values: Vec<i64>| TimestampMicrosecondArray::from(values);
    let plain = || Arc::new(micros(vec![1_767_225_900_000_000, 1_767_225_900_250_000, i64::MAX]));
    let written = ["2026-01-01T00:05:00", "2026-01-01T00:05:00.250", "+294247-01-10T04:00:54.775807"];
    assert_eq!(values(plain()), written);
    assert_eq!(json_values(plain()), written.map(|text| format!("\"{text}\"")));
    assert_eq!(values(Arc::new(micros(vec![0]).with_timezone("UTC"))), ["1970-01-01T00:00:00Z"]);
    assert_eq!(values(Arc::new(micros(vec![0]).with_timezone("+05:30"))), ["1970-01-01T05:30:00+05:30"]);
    assert_eq!(values(Arc::new(Date32Array::from(vec![0, -1, 20_454]))), ["1970-01-01", "1969-12-31", "2026-01-01"]);
    assert_eq!(values(Arc::new(Time64MicrosecondArray::from(vec![1_500_000]))), ["00:00:01.500"]);
    assert_eq!(json_values(Arc::new(BooleanArray::from(vec![Some(true), None]))), ["true", "null"]);
    assert_eq!(values(Arc::new(BinaryArray::from_vec(vec![b"\x00\xff"]))), ["00ff"]);
    assert_eq!(values(Arc::new(NullArray::new(1))), ["NULL"]);
}

#[test]
fn structs_and_lists_are_readable_and_json() {
    let times = |value| Arc::new(TimestampMicrosecondArray::from(vec![Some(value), None])) as ArrayRef;
    let time = |name| Arc::new(Field::new(name, DataType::Timestamp(TimeUnit::Microsecond, None), true));
    let window = StructArray::new(
        vec![time("start"), time("end")].into(),
        vec![times(0), times(10_000_000)],
        Some(NullBuffer::from(vec![true, true])),
    );
    assert_eq!(
        values(Arc::new(window.clone())),
        ["{start: 1970-01-01T00:00:00, end: 1970-01-01T00:00:10}", "{start: NULL, end: NULL}"]
    );
    assert_eq!(
        json_values(Arc::new(window)),
        ["{\"start\":\"1970-01-01T00:00:00\",\"end\":\"1970-01-01T00:00:10\"}", "{\"start\":null,\"end\":null}"]
    );
    let list = ListArray::new(
        Arc::new(Field::new_list_field(DataType::Utf8, true)),
        OffsetBuffer::from_lengths([5, 0]),
        texts(vec![Some("a"), Some("b, c"), Some(""), None, Some("it's")]),
        None,
    );
    // A slice begins in the middle of its buffers.
    assert_eq!(values(Arc::new(list.slice(1, 1))), ["[]"]);
    assert_eq!(values(Arc::new(list.clone())), ["[a, 'b, c', '', NULL, 'it''s']", "[]"]);
    assert_eq!(json_values(Arc::new(list.clone())), ["[\"a\",\"b, c\",\"\",null,\"it's\"]", "[]"]);
    assert_eq!(
        show(Format::Csv, &batch(vec![("v", Arc::new(list.slice(0, 1)))])),
        "v\n\"[\"\"a\"\",\"\"b, c\"\",\"\"\"\",null,\"\"it's\"\"]\"\n"
    );
    let fixed = FixedSizeListArray::from_iter_primitive::<Int32Type, _, _>(
        vec![Some(vec![Some(1), None]), None, Some(vec![Some(3), Some(4)])],
        2,
    );
    assert_eq!(values(Arc::new(fixed.slice(1, 2))), ["NULL", "[3, 4]"]);
}

#[test]
fn maps_have_text_keys_in_json() {
    let mut builder = MapBuilder::new(None, Int32Builder::new(), StringBuilder::new());
    builder.keys().append_value(1);
    builder.values().append_value("one");
    builder.keys().append_value(2);
    builder.values().append_null();
    builder.append(true).unwrap();
    let map: ArrayRef = Arc::new(builder.finish());
    assert_eq!(values(map.clone()), ["{1: one, 2: NULL}"]);
    assert_eq!(json_values(map), ["{\"1\":\"one\",\"2\":null}"]);
}

#[test]
fn dictionaries_are_their_values() {
    let words: DictionaryArray<Int32Type> = vec![Some("x"), None, Some("x")].into_iter().collect();
    assert_eq!(values(Arc::new(words.clone())), ["x", "NULL", "x"]);
    assert_eq!(json_values(Arc::new(words)), ["\"x\"", "null", "\"x\""]);
    let numbers = DictionaryArray::new(Int32Array::from(vec![0, 0]), Arc::new(Int64Array::from(vec![7])));
    assert_eq!(json_values(Arc::new(numbers.clone())), ["7", "7"]);
    assert!(show(Format::Ascii, &batch(vec![("number", Arc::new(numbers))])).contains("|      7 |"));
}

#[test]
fn columns_of_one_name_are_told_apart_in_json() {
    let schema: SchemaRef =
        Arc::new(Schema::new(["x", "x", "x:1", "x"].map(|name| Field::new(name, DataType::Int32, true)).to_vec()));
    let column = || Arc::new(Int32Array::from(vec![1])) as ArrayRef;
    let batch = RecordBatch::try_new(schema, vec![column(), column(), column(), column()]).unwrap();
    assert_eq!(show(Format::JsonLines, &batch), "{\"x\":1,\"x:1\":1,\"x:1:1\":1,\"x:2\":1}\n");
}

#[test]
fn rows_that_come_in_pieces_are_one_result() {
    let whole = sample();
    for format in Format::ALL {
        let (mut out, mut writer) = (Vec::new(), RowWriter::new(format, &whole.schema()));
        for row in 0..whole.num_rows() {
            writer.write(&mut out, &whole.slice(row, 1)).unwrap();
        }
        assert_eq!(writer.finish(&mut out).unwrap().rows, 3);
        assert_eq!(String::from_utf8(out).unwrap(), show(format, &whole), "{format}");
    }
}

#[test]
fn a_header_can_be_left_out() {
    let mut out = Vec::new();
    let mut writer = RowWriter::new(Format::Csv, &sample().schema()).without_header();
    writer.write(&mut out, &sample().slice(0, 1)).unwrap();
    writer.finish(&mut out).unwrap();
    assert_eq!(out, b"/a,7\n");
}

#[test]
fn a_value_without_a_text_is_an_error() {
    let bad = batch(vec![("t", Arc::new(Time64MicrosecondArray::from(vec![i64::MAX])))]);
    let error = write_rows(&mut Vec::new(), Format::Ascii, std::slice::from_ref(&bad), &bad.schema()).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidData);
}

/// As a terminal or an option wants it.
fn styled(format: Format, batch: &RecordBatch, style: Style) -> (String, Written) {
    let (mut out, mut writer) = (Vec::new(), RowWriter::styled(format, &batch.schema(), style));
    writer.write(&mut out, batch).unwrap();
    let written = writer.finish(&mut out).unwrap();
    (String::from_utf8(out).unwrap(), written)
}

#[test]
fn null_header_separators_and_title_are_as_one_wants_them() {
    let plain = Style { null: Some("-".into()), header: false, ..Style::default() };
    for (format, text) in [
        (Format::Ascii, "+----+-----+\n| /a |   7 |\n| -  | -12 |\n|    |   - |\n+----+-----+\n"),
        (Format::Csv, "/a,7\n-,-12\n\"\",-\n"),
        (Format::Tsv, "/a\t7\n-\t-12\n\t-\n"),
        (Format::List, "/a|7\n-|-12\n|-\n"),
        (Format::Quote, "'/a',7\nNULL,-12\n'',NULL\n"),
        (Format::Vertical, "page  | /a\ncount | 7\n\npage  | -\ncount | -12\n\npage  |\ncount | -\n"),
    ] {
        assert_eq!(styled(format, &sample(), plain.clone()).0, text, "{format}");
    }
    let separated = Style { separator: Some("; ".into()), record_separator: Some("\0".into()), ..Style::default() };
    assert_eq!(styled(Format::List, &sample(), separated.clone()).0, "page; count\0/a; 7\0; -12\0; \0");
    assert_eq!(styled(Format::Csv, &sample(), separated).0, "page; count\0/a; 7\0; -12\0\"\"; \0");
    let titled = Style { title: Some("hits".into()), widths: vec![6], ..Style::default() };
    let (text, _) = styled(Format::Ascii, &sample().slice(0, 1), titled);
    assert!(text.starts_with("       hits\n+--------+-------+\n| page   | count |\n"), "{text}");
    // What is shown for NULL is quoted in csv where it is a text.
    let dash = Style { null: Some("/a".into()), ..Style::default() };
    assert_eq!(styled(Format::Csv, &sample(), dash).0, "page,count\n\"/a\",7\n/a,-12\n\"\",/a\n");
}

#[test]
fn a_terminal_gets_the_first_and_the_last_rows() {
    let numbers = batch(vec![("n", Arc::new(Int64Array::from_iter_values(0..100)))]);
    let (text, written) = styled(Format::Table, &numbers, Style { rows: Some(3), ..Style::default() });
    assert_eq!(
        text,
        "\
┌────────┐
│      n │
│ bigint │
├────────┤
│      0 │
│      1 │
│      · │
│     99 │
└────────┘
"
    );
    assert_eq!(written, Written { rows: 100, shown_rows: 3, columns: 1, shown_columns: 1, clipped: false });
    let (text, written) = styled(Format::Csv, &numbers, Style { rows: Some(3), ..Style::default() });
    assert_eq!((text.lines().count(), written.shown_rows), (101, 100), "csv is for programs");
}

#[test]
fn a_terminal_gets_what_fits_and_sees_what_does_not() {
    let long = "x".repeat(50);
    let wide = batch(vec![
        ("first", texts(vec![Some(&long)])),
        ("second", texts(vec![Some("日本語日本語日本語日本語")])),
        ("n", Arc::new(Int64Array::from(vec![1_234_567_890_123]))),
    ]);
    let (text, written) = styled(Format::Ascii, &wide, Style { columns: Some(50), ..Style::default() });
    assert_eq!(
        text,
        "\
+----------------+---------------+---------------+
| first          | second        |             n |
+----------------+---------------+---------------+
| xxxxxxxxxxxxx… | 日本語日本語… | 1234567890123 |
+----------------+---------------+---------------+
"
    );
    assert_eq!(written.shown_columns, 3);
    let (text, written) = styled(Format::Ascii, &wide, Style { columns: Some(32), ..Style::default() });
    assert!(text.lines().all(|line| unicode_width::UnicodeWidthStr::width(line) <= 32), "{text}");
    assert_eq!(written, Written { rows: 1, shown_rows: 1, columns: 3, shown_columns: 2, clipped: true });
    assert!(text.contains("| … |"), "{text}");
    let style = Style { columns: Some(32), vertical_when_wide: true, ..Style::default() };
    let (text, written) = styled(Format::Ascii, &wide, style);
    assert!(text.starts_with("-[ RECORD 1 ]-") && text.contains(&long), "{text}");
    assert_eq!(written.shown_columns, 3);
}
