//! What the CSV and text decoders make of records, good and bad.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Fields, Schema};
use arrow::util::display::{ArrayFormatter, FormatOptions};

use super::*;

fn three() -> Fields {
    Fields::from(vec![
        Field::new("id", DataType::Int64, true),
        Field::new("name", DataType::Utf8View, true),
        Field::new("ok", DataType::Boolean, true),
    ])
}

/// Rows as text and bad records as `byte: reason: text`, the input cut into blocks of `step` bytes.
fn decode(fields: &Fields, decoder: &mut Decoder, text: &str, step: usize) -> (Vec<String>, Vec<String>) {
    let mut batch = BatchBuilder::new(fields, PerRecord::default(), 8192).unwrap();
    let (mut bad, mut at, mut end) = (Vec::new(), 0, step.min(text.len()));
    loop {
        let block = Block { bytes: &text.as_bytes()[at..end], last: end == text.len() };
        let base = at;
        at += decoder
            .decode(block, &mut batch, &mut |place| {
                let shown = String::from_utf8_lossy(place.text).into_owned();
                bad.push(format!("{}: {}: {shown}", base + place.at, place.reason));
                Ok(Keep::Nothing)
            })
            .unwrap();
        if end == text.len() {
            break;
        }
        end = (end + step).min(text.len());
    }
    assert_eq!(at, text.len());
    let options = FormatOptions::default().with_null("NULL");
    let rows = batch.finish().unwrap();
    let rows = RecordBatch::try_new(Arc::new(Schema::new(fields.clone())), rows.fields).unwrap();
    let columns: Vec<_> =
        rows.columns().iter().map(|c| ArrayFormatter::try_new(c.as_ref(), &options).unwrap()).collect();
    let row = |at| columns.iter().map(|c| c.value(at).to_string()).collect::<Vec<_>>().join("|");
    ((0..rows.num_rows()).map(row).collect(), bad)
}

fn csv(options: CsvOptions) -> Decoder {
    Decoder::Csv(CsvDecoder::new(options, vec!["id".into(), "name".into(), "ok".into()], vec![0, 1, 2]))
}

/// The same for every way to cut the input into blocks.
fn every_cut(options: CsvOptions, text: &str) -> (Vec<String>, Vec<String>) {
    let whole = decode(&three(), &mut csv(options.clone()), text, text.len());
    for step in 1..text.len() {
        assert_eq!(decode(&three(), &mut csv(options.clone()), text, step), whole, "blocks of {step} bytes");
    }
    whole
}

#[test]
fn fields_go_by_place_without_a_header() {
    let text = "1,one,true\r\n\r\n 2 ,\"a, \"\"quoted\"\"\nname\",FALSE\n,,\n3,\"\",\n4,last,true";
    let (rows, bad) = every_cut(CsvOptions::default(), text);
    assert_eq!(rows, ["1|one|true", "2|a, \"quoted\"\nname|false", "NULL|NULL|NULL", "3||NULL", "4|last|true"]);
    assert_eq!(bad, Vec::<String>::new());
}

#[test]
fn fields_go_by_name_with_a_header() {
    let options = CsvOptions { header: true, delimiter: b';', null_value: None };
    let (rows, bad) = every_cut(options, "name;extra; id\nx;y;1\n\"z\";;2\n");
    assert_eq!(rows, ["1|x|NULL", "2|z|NULL"]);
    assert_eq!(bad, Vec::<String>::new());
}

#[test]
fn a_header_that_fits_no_column_makes_every_record_bad() {
    let options = CsvOptions { header: true, ..CsvOptions::default() };
    let (rows, bad) = every_cut(options.clone(), "1,one,true\n2,two,false\n");
    assert_eq!(
        (rows.len(), bad),
        (0, vec!["11: the file's header names none of the columns id, name, ok: 2,two,false".into()])
    );
    let (_, bad) = every_cut(options, "id,id,ok\n1,2,true\n");
    assert_eq!(bad, ["9: the file's header names id twice: 1,2,true"]);
}

#[test]
fn bad_records_are_named_and_the_rest_is_read() {
    let text =
        "1,one,true\n2,two\n3,three,true,more\nx,four,true\n5,\"five\"5,true\n6,six,maybe\n7,seven,true\n8,\"eig";
    let (rows, bad) = every_cut(CsvOptions::default(), text);
    assert_eq!(rows, ["1|one|true", "7|seven|true"]);
    let want = [
        "11: has 2 fields, not 3: 2,two",
        "17: has 4 fields, not 3: 3,three,true,more",
        "35: column id wants BIGINT and found the text \"x\": x,four,true",
        "47: has text behind a closing quote: 5,\"five\"5,true",
        "62: column ok wants BOOLEAN and found the text \"maybe\": 6,six,maybe",
        "87: has a quote that is never closed: 8,\"eig",
    ];
    assert_eq!(bad, want);
}

#[test]
fn null_value_is_null_and_empty_is_text() {
    let options = CsvOptions { null_value: Some("NA".into()), ..CsvOptions::default() };
    let (rows, bad) = every_cut(options, "NA,NA,NA\n1,,true\n2,\"NA\",true\n,x,true\n");
    assert_eq!(rows, ["NULL|NULL|NULL", "1||true", "2|NA|true"]);
    assert_eq!(bad, ["29: column id wants BIGINT and found the text \"\": ,x,true"]);
}

#[test]
fn only_wanted_fields_are_read() {
    let names = vec!["id".to_string(), "name".into(), "ok".into()];
    let fields = Fields::from(vec![Field::new("ok", DataType::Boolean, true), Field::new("id", DataType::Int64, true)]);
    let mut decoder = Decoder::Csv(CsvDecoder::new(CsvOptions::default(), names, vec![2, 0]));
    assert_eq!(decode(&fields, &mut decoder, "1,x,true\n2,y,false\n", 19).0, ["true|1", "false|2"]);
}

#[test]
fn every_line_of_text_is_a_record() {
    let fields = Fields::from(vec![Field::new("value", DataType::Utf8View, true)]);
    let text = "one\r\n\n  three  \nlast without newline";
    for step in 1..=text.len() {
        let (rows, bad) = decode(&fields, &mut Decoder::Text(TextDecoder), text, step);
        assert_eq!(
            (rows, bad.len()),
            (vec!["one".into(), "".into(), "  three  ".into(), "last without newline".into()], 0)
        );
    }
}

#[test]
fn csv_and_text_refuse_types_they_have_no_form_for() {
    let list = DataType::List(Arc::new(Field::new_list_field(DataType::Int64, true)));
    let nested = Fields::from(vec![Field::new("l", list, true)]);
    assert!(check_types(Format::Csv, &nested).is_err_and(|e| e.to_string().contains("column l is ARRAY<BIGINT>")));
    assert!(check_types(Format::Json, &nested).is_ok());
    assert!(check_types(Format::Text, &three()).is_err_and(|e| e.to_string().contains("one column of type STRING")));
    let wide = Fields::from(vec![Field::new("d", DataType::Decimal256(60, 2), true)]);
    assert!(check_types(Format::Json, &wide).is_err_and(|e| e.to_string().contains("column d is DECIMAL(60, 2)")));
}
