//! What the JSON decoder makes of records, good and bad.

use std::sync::Arc;

use arrow::array::{Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Fields, Schema, TimeUnit};
use arrow::util::display::{ArrayFormatter, FormatOptions};

use super::*;

fn fields(list: &[(&str, DataType, bool)]) -> Fields {
    list.iter().map(|(name, data_type, nullable)| Field::new(*name, data_type.clone(), *nullable)).collect()
}

/// Rows as text, and the bad records as `byte: reason`.
fn decode(fields: &Fields, text: &str, keep: Keep) -> (Vec<String>, Vec<String>) {
    let mut bad = Vec::new();
    let mut batch = BatchBuilder::new(fields, PerRecord::default(), 8192).unwrap();
    let mut decoder = Decoder::Json(JsonDecoder::default());
    let taken = decoder.decode(Block { bytes: text.as_bytes(), last: true }, &mut batch, &mut |place| {
        bad.push(format!("{}: {}", place.at, place.reason));
        Ok(keep)
    });
    assert_eq!(taken.ok(), Some(text.len()));
    let finished = batch.finish().unwrap();
    let rows = RecordBatch::try_new(Arc::new(Schema::new(fields.clone())), finished.fields).unwrap();
    (show(&rows), bad)
}

fn show(rows: &RecordBatch) -> Vec<String> {
    let options = FormatOptions::default().with_null("NULL");
    let columns: Vec<_> =
        rows.columns().iter().map(|c| ArrayFormatter::try_new(c.as_ref(), &options).unwrap()).collect();
    let row = |at| columns.iter().map(|c| c.value(at).to_string()).collect::<Vec<_>>().join("|");
    (0..rows.num_rows()).map(row).collect()
}

fn good(fields: &Fields, text: &str) -> Vec<String> {
    let (rows, bad) = decode(fields, text, Keep::Nothing);
    assert_eq!(bad, Vec::<String>::new());
    rows
}

fn one_bad(data_type: DataType, value: &str) -> String {
    let fields = fields(&[("a", data_type, true)]);
    let text = format!("{{\"a\":1e0}}\n{{\"a\":{value}}}\n").replace("{\"a\":1e0}", "{}");
    let (rows, bad) = decode(&fields, &text, Keep::Nothing);
    assert_eq!((rows.len(), bad.len()), (1, 1), "{value}: {rows:?} {bad:?}");
    bad[0].strip_prefix("3: ").unwrap_or_default().to_string()
}

#[test]
fn fields_are_found_by_name_in_any_order() {
    let fields =
        fields(&[("a", DataType::Int64, true), ("b", DataType::Utf8View, true), ("c", DataType::Boolean, true)]);
    let text = concat!(
        "{\"a\":1,\"b\":\"x\",\"c\":true}\r\n",
        "\n  \r\n",
        "  { \"c\" : false , \"b\" : \"longer than twelve bytes\" , \"a\" : -2 }  \n",
        "{\"zz\":{\"deep\":[1,\"}\",{}]},\"a\":3,\"b\":null,\"y\":\"\\\"\"}\n",
        "{\"A\":4}\n{}\n",
        "{\"a\":5,\"a\":6,\"\\u0062\":\"y\"}",
    );
    let want = [
        "1|x|true",
        "-2|longer than twelve bytes|false",
        "3|NULL|NULL",
        "NULL|NULL|NULL",
        "NULL|NULL|NULL",
        "6|y|NULL",
    ];
    assert_eq!(good(&fields, text), want);
}

#[test]
fn integers_are_exact() {
    let fields = fields(&[("a", DataType::Int64, true), ("b", DataType::UInt64, true), ("c", DataType::Int8, true)]);
    let text = "{\"a\":9223372036854775807,\"b\":18446744073709551615,\"c\":-128}\n{\"a\":\"-9223372036854775808\",\"b\":1e3,\"c\":1.0}\n{\"a\":0,\"b\":-0,\"c\":0}";
    assert_eq!(
        good(&fields, text),
        ["9223372036854775807|18446744073709551615|-128", "-9223372036854775808|1000|1", "0|0|0"]
    );
}

#[test]
fn a_value_of_the_wrong_type_is_bad_and_named() {
    let bigint = |value| one_bad(DataType::Int64, value);
    assert_eq!(bigint("\"abc\""), "column a wants BIGINT and found the text \"abc\"");
    assert_eq!(bigint("true"), "column a wants BIGINT and found true");
    assert_eq!(bigint("{\"x\": 1}"), "column a wants BIGINT and found {\"x\": 1}");
    assert_eq!(bigint("1.5"), "column a is BIGINT and 1.5 has more digits behind the point");
    assert_eq!(bigint("9223372036854775808"), "column a is BIGINT and 9223372036854775808 is out of its range");
    assert_eq!(one_bad(DataType::Int8, "128"), "column a is TINYINT and 128 is out of its range");
    assert_eq!(one_bad(DataType::UInt8, "-1"), "column a is TINYINT UNSIGNED and -1 is out of its range");
    assert_eq!(one_bad(DataType::Utf8View, "5"), "column a wants STRING and found the number 5");
    assert_eq!(one_bad(DataType::Boolean, "\"true\""), "column a wants BOOLEAN and found the text \"true\"");
    assert_eq!(one_bad(DataType::Float64, "1e999"), "column a is DOUBLE and 1e999 is out of its range");
    assert_eq!(
        one_bad(DataType::Decimal128(4, 2), "1.234"),
        "column a is DECIMAL(4, 2) and 1.234 has more digits behind the point"
    );
    let micros = DataType::Timestamp(TimeUnit::Microsecond, None);
    assert!(one_bad(micros.clone(), "1704067200000").contains("declare it BIGINT"));
    assert_eq!(one_bad(micros, "\"soon\""), "column a wants TIMESTAMP and found the text \"soon\"");
    assert_eq!(one_bad(DataType::Int64, "01"), "is not JSON: wanted a number, found 01}");
    assert_eq!(one_bad(DataType::Int64, "nul"), "is not JSON: wanted a value, found nul}");
}

#[test]
fn a_record_without_form_is_bad_and_the_next_line_is_read() {
    let fields = fields(&[("a", DataType::Int64, true)]);
    let lines = [
        "{\"a\":1",
        "[{\"a\":1}]",
        "1",
        "{\"a\":1}{\"a\":2}",
        "{\"a\":1,}",
        "{a:1}",
        "{\"a\" 1}",
        "{\"a\":1 \"b\":2}",
        "{\"b\":\"open}",
        "{\"b\":[1,2}",
        "{\"b\":[1,2}}",
        "{\"b\":{\"c\":1]}",
        "{\"b\":\"\\q\",\"a\":1}",
        "\u{feff}{\"a\":1}",
    ];
    for line in lines {
        let text = format!("{{\"a\":7}}\n{line}\n{{\"a\":8}}\n");
        let (rows, bad) = decode(&fields, &text, Keep::Nothing);
        // A text that is only passed over is not looked into, but for where it ends.
        let lenient = line.contains("\\q");
        let want: &[&str] = if lenient { &["7", "1", "8"] } else { &["7", "8"] };
        assert_eq!(rows, want, "{line}");
        assert_eq!(bad.len(), usize::from(!lenient), "{line}: {bad:?}");
        assert!(bad.iter().all(|b| b.starts_with("8: ")), "{bad:?}");
    }
}

#[test]
fn a_bad_record_leaves_no_trace_or_a_row_of_nulls() {
    let inner = Fields::from(vec![Field::new("x", DataType::Int64, true), Field::new("y", DataType::Int64, true)]);
    let list = DataType::List(Arc::new(Field::new_list_field(DataType::Int64, true)));
    let fields = fields(&[
        ("s", DataType::Struct(inner), true),
        ("l", list, true),
        ("t", DataType::Utf8, true),
        ("n", DataType::Int64, true),
    ]);
    let record = |n: &str| format!("{{\"t\":\"text\",\"l\":[1,2],\"s\":{{\"x\":1,\"y\":2}},\"n\":{n}}}\n");
    let text = [
        record("1"),
        record("\"bad\""),
        "{\"l\":[1,\"bad\"]}\n".into(),
        "{\"s\":{\"x\":1,\"y\":[]}}\n".into(),
        record("2"),
    ]
    .concat();
    let row = |n| format!("{{x: 1, y: 2}}|[1, 2]|text|{n}");
    let (rows, bad) = decode(&fields, &text, Keep::Nothing);
    assert_eq!(rows, [row(1), row(2)]);
    assert_eq!(bad.len(), 3);
    assert!(bad[1].ends_with("column l.item wants BIGINT and found the text \"bad\""), "{}", bad[1]);
    assert!(bad[2].ends_with("column s.y wants BIGINT and found []"), "{}", bad[2]);
    let (rows, _) = decode(&fields, &text, Keep::Nulls);
    let nulls = "NULL|NULL|NULL|NULL".to_string();
    assert_eq!(rows, [row(1), nulls.clone(), nulls.clone(), nulls, row(2)]);
}

#[test]
fn not_null_wants_a_value() {
    let inner = Fields::from(vec![Field::new("x", DataType::Int64, false)]);
    let fields = fields(&[("a", DataType::Int64, false), ("s", DataType::Struct(inner), true)]);
    let text = "{\"a\":1,\"s\":null}\n{}\n{\"a\":null}\n{\"a\":2,\"s\":{}}\n{\"a\":3,\"s\":{\"x\":4}}";
    let (rows, bad) = decode(&fields, text, Keep::Nothing);
    assert_eq!(rows, ["1|NULL", "3|{x: 4}"]);
    let reasons: Vec<_> = bad.iter().filter_map(|b| b.split_once(": ")).map(|(_, reason)| reason).collect();
    assert_eq!(
        reasons,
        [
            "column a is NOT NULL and is missing",
            "column a is NOT NULL and found null",
            "column s.x is NOT NULL and is missing"
        ]
    );
}

#[test]
fn text_is_unescaped_and_must_be_utf8() {
    let fields = fields(&[("a", DataType::Utf8, true), ("b", DataType::LargeUtf8, true)]);
    let text = r#"{"a":"\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00é","b":""}"#;
    assert_eq!(good(&fields, text), ["\"\\/\u{8}\u{c}\n\r\té😀é|"]);
    for value in ["\"\\ud83d\"", "\"\\ud83d\\u0041\"", "\"\\udc00\"", "\"\\u12\"", "\"\\x\""] {
        let error = one_bad(DataType::Utf8, value);
        assert!(error.starts_with("column a has a text with"), "{value}: {error}");
    }
    let mut batch = BatchBuilder::new(&fields, PerRecord::default(), 10).unwrap();
    let mut seen = Vec::new();
    let bytes = b"{\"a\":\"\xff\"}\n{\"a\":\"fine\"}";
    let mut decoder = Decoder::Json(JsonDecoder::default());
    decoder
        .decode(Block { bytes, last: true }, &mut batch, &mut |place| {
            seen.push(place.reason);
            Ok(Keep::Nothing)
        })
        .unwrap();
    assert_eq!((seen, batch.rows()), (vec!["column a is not UTF-8 text".to_string()], 1));
}

#[test]
fn nested_and_rare_types() {
    let map = DataType::Map(
        Arc::new(Field::new(
            "entries",
            DataType::Struct(Fields::from(vec![
                Field::new("key", DataType::Utf8, false),
                Field::new("value", DataType::Int64, true),
            ])),
            false,
        )),
        false,
    );
    let fields = fields(&[
        ("m", map, true),
        ("d", DataType::Decimal128(10, 2), true),
        ("f", DataType::Float32, true),
        ("day", DataType::Date32, true),
        ("time", DataType::Time64(TimeUnit::Microsecond), true),
        ("bytes", DataType::BinaryView, true),
        ("ns", DataType::Timestamp(TimeUnit::Nanosecond, Some("+00:00".into())), true),
    ]);
    let text = r#"{"m":{"k":1,"l":null},"d":"12.5","f":0.5,"day":"2024-02-29","time":"12:00:01","bytes":"00ff","ns":"2024-01-01T01:00:00.000000001+01:00"}
{"m":{},"d":-1,"f":"NaN"}"#;
    let want = [
        "{k: 1, l: NULL}|12.50|0.5|2024-02-29|12:00:01|00ff|2024-01-01T00:00:00.000000001Z",
        "{}|-1.00|NaN|NULL|NULL|NULL|NULL",
    ];
    assert_eq!(good(&fields, text), want);
}

#[test]
fn maps_with_other_keys_are_refused() {
    let entries =
        Fields::from(vec![Field::new("key", DataType::Int32, false), Field::new("value", DataType::Utf8, true)]);
    let map = DataType::Map(Arc::new(Field::new("entries", DataType::Struct(entries), false)), false);
    let error =
        check_types(Format::Json, &fields(&[("col", map, true)])).err().map(|e| e.to_string()).unwrap_or_default();
    assert_eq!(error, "column col is MAP(INT, STRING): the keys of a map are text, not INT");
}

#[test]
fn a_batch_is_full_at_its_row_limit_and_goes_on_where_it_stopped() {
    let fields = fields(&[("a", DataType::Int64, true)]);
    let text: String = (0..10).map(|n| format!("{{\"a\":{n}}}\n")).collect();
    let mut batch = BatchBuilder::new(&fields, PerRecord { line: true, offset: true, corrupt: true }, 4).unwrap();
    let mut decoder = Decoder::Json(JsonDecoder::default());
    let (mut at, mut sizes, mut lines, mut offsets) = (0, Vec::new(), Vec::new(), Vec::new());
    while at < text.len() {
        let block = Block { bytes: &text.as_bytes()[at..], last: true };
        at += decoder.decode(block, &mut batch, &mut |_| Ok(Keep::Nothing)).unwrap();
        let finished = batch.finish().unwrap();
        sizes.push(finished.rows);
        let longs = |array: Option<arrow::array::ArrayRef>| {
            let array = array.unwrap();
            assert_eq!(array.null_count(), 0);
            arrow::array::AsArray::as_primitive::<arrow::datatypes::Int64Type>(&array).values().to_vec()
        };
        lines.extend(longs(finished.line));
        offsets.extend(longs(finished.offset));
        assert_eq!(finished.corrupt.map(|c| c.null_count()), Some(finished.rows));
    }
    assert_eq!(sizes, [4, 4, 2]);
    assert_eq!(lines, (1..=10).collect::<Vec<_>>());
    assert_eq!(offsets, (0..10).map(|n| n * 8).collect::<Vec<_>>());
}

#[test]
fn without_columns_rows_are_still_counted_and_judged() {
    let (rows, bad) = {
        let mut batch = BatchBuilder::new(&Fields::empty(), PerRecord::default(), 100).unwrap();
        let mut bad = 0;
        let block = Block { bytes: b"{\"a\":1}\n{\"a\":\n{}\n", last: true };
        let mut decoder = Decoder::Json(JsonDecoder::default());
        decoder
            .decode(block, &mut batch, &mut |_| {
                bad += 1;
                Ok(Keep::Nothing)
            })
            .unwrap();
        (batch.finish().unwrap().rows, bad)
    };
    assert_eq!((rows, bad), (2, 1));
}
