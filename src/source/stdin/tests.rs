//! Lines through a pipe.

use arrow::datatypes::DataType;
use futures::StreamExt;

use super::super::file::discovery_test_options as options;
use super::*;

fn open(text: &'static [u8], list: &[(&str, &str)], metadata: &[(&str, DataType)]) -> Result<StdinSource> {
    let fields = vec![Field::new("a", DataType::Int64, true), Field::new("b", DataType::Utf8View, true)];
    let metadata = metadata.iter().map(|(key, data_type)| MetadataColumn {
        name: format!("m_{key}"),
        key: key.to_string(),
        data_type: data_type.clone(),
    });
    let args = StdinSourceArgs {
        name: "s",
        fields: Some(Arc::new(Schema::new(fields))),
        metadata: metadata.collect(),
        options: &options(list),
    };
    open_reader(args, Box::new(text))
}

fn rows(source: &StdinSource, start: Option<Offset>, end: Offset) -> std::result::Result<Vec<String>, String> {
    let columns = (0..source.schema().fields().len()).collect();
    let read = source.read(&OffsetRange { start, end }, &Pushdown { columns, filters: vec![], partitions: 4 });
    let streams = read.map_err(|e| e.to_string())?.streams;
    let mut rows = Vec::new();
    for stream in streams {
        for batch in futures::executor::block_on(stream.collect::<Vec<_>>()) {
            let batch = batch.map_err(|e| e.to_string())?;
            let null = arrow::util::display::FormatOptions::default().with_null("NULL");
            let columns = batch
                .columns()
                .iter()
                .map(|c| arrow::util::display::ArrayFormatter::try_new(c.as_ref(), &null).unwrap());
            let columns: Vec<_> = columns.collect();
            rows.extend(
                (0..batch.num_rows())
                    .map(|at| columns.iter().map(|c| c.value(at).to_string()).collect::<Vec<_>>().join("|")),
            );
        }
    }
    Ok(rows)
}

fn end(source: &mut StdinSource, after: Option<&Offset>) -> Option<Offset> {
    source.latest_offset(after, &ReadLimit::default()).unwrap()
}

#[test]
fn lines_come_until_the_input_ends() {
    let mut source = open(
        b"\xEF\xBB\xBF{\"a\":1}\r\n\n{\"a\":2}\n{\"b\":\"last\"}",
        &[("format", "json")],
        &[("line", DataType::Int64)],
    )
    .unwrap();
    source.feed.wait(u64::MAX);
    assert!(source.end() == InputEnd::Reached);
    let two = source.latest_offset(None, &ReadLimit { max_bytes: Some(18), ..ReadLimit::default() }).unwrap().unwrap();
    assert_eq!(two.0.to_string(), r#"{"records":2}"#);
    assert_eq!(rows(&source, None, two.clone()).unwrap(), ["1|NULL|1", "2|NULL|3"]);
    assert_eq!(rows(&source, None, two.clone()).unwrap().len(), 2, "kept until the commit");
    let all = end(&mut source, Some(&two)).unwrap();
    source.commit(&two).unwrap();
    assert_eq!(rows(&source, Some(two), all.clone()).unwrap(), ["NULL|last|4"]);
    assert_eq!(end(&mut source, Some(&all)), None);
    assert!(rows(&source, None, all.clone()).is_err_and(|e| e.contains("can't be read again")));
    assert!(source.latest_offset(Some(&Offset(json!({"records": 9}))), &ReadLimit::default()).is_err());
}

#[test]
fn csv_takes_its_header_once_and_quoted_newlines() {
    let mut source =
        open(b"b,a\n\"x\ny\",1\nz,2\n", &[("format", "csv"), ("header", "true")], &[("line", DataType::Int64)])
            .unwrap();
    source.feed.wait(u64::MAX);
    let first = source.latest_offset(None, &ReadLimit { max_bytes: Some(1), ..ReadLimit::default() }).unwrap().unwrap();
    let all = end(&mut source, Some(&first)).unwrap();
    assert_eq!(rows(&source, None, first.clone()).unwrap(), ["1|x\ny|2"]);
    assert_eq!(rows(&source, Some(first), all).unwrap(), ["2|z|4"]);
}

#[test]
fn bad_lines_are_judged() {
    let mut source = open(b"{\"a\":1}\nbad\n", &[("format", "json")], &[]).unwrap();
    source.feed.wait(u64::MAX);
    let all = end(&mut source, None).unwrap();
    let error = rows(&source, None, all).err().unwrap_or_default();
    assert!(error.contains("bad record in stream s, stdin:2: is not a JSON object"), "{error}");
    let null = [("format", "json"), ("on_error", "null")];
    let mut source = open(b"{\"a\":1}\nbad\n{\"a\":2}", &null, &[("corrupt_record", DataType::Utf8View)]).unwrap();
    source.feed.wait(u64::MAX);
    let all = end(&mut source, None).unwrap();
    assert_eq!(rows(&source, None, all).unwrap(), ["1|NULL|NULL", "NULL|NULL|bad", "2|NULL|NULL"]);
}

#[test]
fn many_records_make_batches_and_none_is_lost() {
    let text: String = (0..20_000).map(|n| format!("{{\"a\":{n}}}\n")).collect();
    let mut source = open(text.leak().as_bytes(), &[("format", "json")], &[]).unwrap();
    source.feed.wait(u64::MAX);
    let all = end(&mut source, None).unwrap();
    let got = rows(&source, None, all).unwrap();
    assert!(got == (0..20_000).map(|n| format!("{n}|NULL")).collect::<Vec<_>>());
}

#[test]
fn a_record_beyond_the_limit_is_cut_and_bad() {
    let text = format!("{{\"a\":1}}\n{{\"b\":\"{}\"}}\n{{\"a\":2}}\n", "x".repeat(5 << 20));
    let list = [("format", "json"), ("max_record_bytes", "4 MiB"), ("on_error", "null")];
    let mut source = open(text.leak().as_bytes(), &list, &[]).unwrap();
    source.feed.wait(u64::MAX);
    let all = end(&mut source, None).unwrap();
    assert_eq!(rows(&source, None, all).unwrap(), ["1|NULL", "NULL|NULL", "2|NULL"]);
}

#[test]
fn a_reader_that_fails_says_so_after_what_it_gave() {
    struct Failing(bool);
    impl Read for Failing {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            match std::mem::replace(&mut self.0, true) {
                true => Err(std::io::Error::other("unplugged")),
                false => {
                    into[..8].copy_from_slice(b"{\"a\":1}\n");
                    Ok(8)
                }
            }
        }
    }
    let fields = Arc::new(Schema::new(vec![Field::new("a", DataType::Int64, true)]));
    let args =
        StdinSourceArgs { name: "s", fields: Some(fields), metadata: vec![], options: &options(&[("format", "json")]) };
    let mut source = open_reader(args, Box::new(Failing(false))).unwrap();
    source.feed.wait(u64::MAX);
    let one = end(&mut source, None).unwrap();
    assert!(source.end() == InputEnd::Ahead);
    let error =
        source.latest_offset(Some(&one), &ReadLimit::default()).err().map(|e| e.to_string()).unwrap_or_default();
    assert_eq!(error, "read standard input: unplugged");
}

#[test]
fn what_is_wrong_is_said_when_it_is_opened() {
    let error = |list: &[(&str, &str)], metadata: &[(&str, DataType)]| {
        open(b"", list, metadata).err().map(|e| e.to_string()).unwrap_or_default()
    };
    assert!(error(&[], &[]).contains("wants option format"));
    assert!(error(&[("format", "parquet")], &[]).contains("one of json, csv, text"));
    assert!(error(&[("format", "text")], &[]).contains("one column of type STRING"));
    assert!(error(&[("format", "json"), ("path", "x")], &[]).contains("unknown option path"));
    assert_eq!(
        error(&[("format", "json")], &[("path", DataType::Utf8)]),
        "connector 'stdin' has no metadata 'path' (column m_path)"
    );
    let args = StdinSourceArgs { name: "s", fields: None, metadata: vec![], options: &options(&[("format", "json")]) };
    assert!(schema(&args).is_err_and(|e| e.to_string().contains("can't be inferred")));
}
