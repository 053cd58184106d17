//! Whole reads of parquet files.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field};
use datafusion::logical_expr::{col, lit};

use super::discovery::tests::write;
use super::tests::{Stream, stream};
use crate::error::Error;
use crate::source::Source;

pub(super) fn write_parquet(dir: &Path, name: &str, columns: Vec<(&str, arrow::array::ArrayRef)>, seconds: u64) {
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let props = parquet_props();
    let mut bytes = Vec::new();
    let mut writer = ::parquet::arrow::ArrowWriter::try_new(&mut bytes, batch.schema(), Some(props)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    write(dir, name, &bytes, seconds);
}

fn parquet_props() -> ::parquet::file::properties::WriterProperties {
    ::parquet::file::properties::WriterProperties::builder().set_max_row_group_row_count(Some(1_000)).build()
}

pub(super) fn ints(range: std::ops::Range<i64>) -> arrow::array::ArrayRef {
    Arc::new(Int64Array::from_iter_values(range))
}

#[test]
fn parquet_is_read_by_name_in_order_or_in_parts() {
    let stream = stream("parquet", &[("a", DataType::Int64), ("b", DataType::Utf8View)])
        .meta("n", "name", DataType::Utf8)
        .meta("s", "size", DataType::Int64);
    let text = |n: usize| Arc::new(StringArray::from(vec!["x"; n])) as arrow::array::ArrayRef;
    write_parquet(
        stream.dir.path(),
        "odd [1]%20.parquet",
        vec![("b", text(3)), ("extra", text(3)), ("a", ints(0..3))],
        1,
    );
    write_parquet(stream.dir.path(), "late.parquet", vec![("a", ints(3..5))], 2);
    let got = stream.read_with(1, Some(vec![2, 1, 0]), vec![]);
    let (first, second) = ("odd [1]%20.parquet", "late.parquet");
    let want =
        [0, 1, 2].map(|n| format!("{first}|x|{n}")).into_iter().chain([3, 4].map(|n| format!("{second}|NULL|{n}")));
    assert_eq!(got.rows, want.collect::<Vec<_>>());
    write_parquet(stream.dir.path(), "big.parquet", vec![("a", ints(5..150_005)), ("b", text(150_000))], 3);
    let spread = stream.read_with(2, Some(vec![0]), vec![]);
    assert_eq!((spread.streams, spread.rows.len()), (2, 150_005));
    assert!(stream.read_with(1, Some(vec![0]), vec![]).rows == (0..150_005).map(|n| n.to_string()).collect::<Vec<_>>());
    assert_eq!(stream.read_with(1, Some(vec![]), vec![]).batches.iter().sum::<usize>(), 150_005);
    let filtered = stream.read_with(1, Some(vec![0]), vec![col("s.a").gt(lit(149_000i64))]);
    assert!(filtered.rows.len() < 3_000, "row groups are passed over: {}", filtered.rows.len());
    assert_eq!(filtered.rows.last().map(String::as_str), Some("150004"));
    assert!(stream.meta("l", "line", DataType::Int64).open_error().contains("a parquet file has no metadata 'line'"));
}

type Change<'c> = &'c dyn Fn(&mut Vec<u8>);

#[test]
fn a_damaged_parquet_file_is_named() {
    let fresh = || {
        let stream = stream("parquet", &[("a", DataType::Int64)]);
        write_parquet(stream.dir.path(), "good", vec![("a", ints(0..10))], 1);
        write_parquet(stream.dir.path(), "hurt", vec![("a", ints(0..5_000))], 2);
        stream
    };
    let hurt = |stream: &Stream, change: Change| {
        let path = stream.dir.path().join("hurt");
        let mut bytes = fs::read(&path).unwrap();
        change(&mut bytes);
        write(stream.dir.path(), "hurt", &bytes, 2);
    };
    let changes: [Change; 4] = [
        &|bytes| bytes.truncate(bytes.len() - 30),
        &|bytes| bytes.clear(),
        &|bytes| bytes[4..400].fill(0xFF),
        &|bytes| *bytes = b"{\"a\":1}\n".to_vec(),
    ];
    for (at, change) in changes.into_iter().enumerate() {
        let stream = fresh();
        hurt(&stream, change);
        for partitions in [1, 2] {
            let got = stream.read_with(partitions, None, vec![]);
            let error = got.error.map(|e| e.to_string()).unwrap_or_default();
            assert!(error.contains("/hurt: "), "{at}: {error}: {} rows", got.rows.len());
        }
    }
    let mut inferred = fresh();
    hurt(&inferred, changes[0]);
    fs::remove_file(inferred.dir.path().join("good")).unwrap();
    inferred.fields = None;
    assert!(inferred.open_error().contains("/hurt: the file is damaged"), "{}", inferred.open_error());
}

#[test]
fn parquet_values_are_never_changed_to_fit() {
    let floats: arrow::array::ArrayRef = Arc::new(arrow::array::Float64Array::from(vec![1.5]));
    let cases = [
        (floats, DataType::Int64, Some("column a is DOUBLE in the file, and BIGINT in the stream")),
        (Arc::new(StringArray::from(vec!["7"])) as _, DataType::Int64, Some("column a is STRING in the file")),
        (
            ints(299..301),
            DataType::Int8,
            Some("/f: column a is TINYINT and 299 is out of its range: row 1 of the file"),
        ),
        (ints(7..8), DataType::Int32, None),
        (Arc::new(StringArray::from(vec!["x"])) as _, DataType::Utf8View, None),
    ];
    for (values, declared, wrong) in cases {
        let stream = stream("parquet", &[("a", declared)]);
        write_parquet(stream.dir.path(), "f", vec![("a", values)], 1);
        let got = stream.read();
        match (wrong, got.error) {
            (Some(part), Some(error)) => assert!(error.to_string().contains(part), "{error}"),
            (None, None) => assert_eq!(got.rows.len(), 1),
            (wrong, error) => panic!("wanted {wrong:?}, found {error:?}"),
        }
    }
}

#[test]
fn a_value_out_of_range_is_named_by_file_column_and_row() {
    let stream = stream("parquet", &[("b", DataType::Utf8View), ("a", DataType::Int32)]);
    let text = |n: usize| Arc::new(StringArray::from(vec!["x"; n])) as arrow::array::ArrayRef;
    write_parquet(stream.dir.path(), "good", vec![("a", ints(0..10)), ("b", text(10))], 1);
    let high = i64::from(i32::MAX) - 5_000;
    write_parquet(stream.dir.path(), "high", vec![("a", ints(high..high + 6_000)), ("b", text(6_000))], 2);
    for (partitions, columns) in [(1, vec![0, 1]), (2, vec![1])] {
        let error = stream.read_with(partitions, Some(columns), vec![]).error;
        assert!(matches!(error, Some(Error::BadRecord(_))), "{error:?}");
        let error = error.map(|e| e.to_string()).unwrap_or_default();
        let want = "/high: column a is INT and 2147483648 is out of its range: row 5002 of the file";
        assert!(error.starts_with("bad record in stream s, ") && error.ends_with(want), "{error}");
    }
}

#[test]
fn parquet_keeps_not_null() {
    let mut stream = stream("parquet", &[]);
    stream.fields = Some(vec![Field::new("a", DataType::Int64, false)]);
    write_parquet(stream.dir.path(), "1", vec![("a", ints(0..3))], 1);
    assert_eq!(stream.read().rows, ["0", "1", "2"]);
    let holey: arrow::array::ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None]));
    write_parquet(stream.dir.path(), "2", vec![("a", holey)], 2);
    let error = stream.read().error.map(|e| e.to_string()).unwrap_or_default();
    assert!(error.ends_with("/2: column a is NOT NULL and found null: row 2 of the file"), "{error}");
}

#[test]
fn parquet_columns_are_those_of_the_footer() {
    let mut stream = stream("parquet", &[]);
    write_parquet(stream.dir.path(), "1", vec![("a", ints(0..1)), ("b", Arc::new(StringArray::from(vec!["x"])))], 1);
    stream.fields = None;
    let source = stream.try_open().unwrap();
    let types: Vec<_> = source.schema().fields().iter().map(|f| (f.name().clone(), f.data_type().clone())).collect();
    assert_eq!(types, [("a".to_string(), DataType::Int64), ("b".to_string(), DataType::Utf8View)]);
    assert_eq!(stream.read().rows, ["0|x"]);
}
