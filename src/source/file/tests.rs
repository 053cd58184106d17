//! Whole reads: files in a directory, rows out.

use std::fs;
use std::io::Write as _;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, TimeUnit};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::error::DataFusionError;
use futures::StreamExt;

use super::discovery::tests::{options, write};
use super::*;

/// A directory and the WITH list of a stream over it.
pub(super) struct Stream {
    pub dir: tempfile::TempDir,
    pub fields: Option<Vec<Field>>,
    metadata: Vec<MetadataColumn>,
    options: Vec<(String, String)>,
}

pub(super) fn stream(format: &str, fields: &[(&str, DataType)]) -> Stream {
    let fields = fields.iter().map(|(name, data_type)| Field::new(*name, data_type.clone(), true)).collect();
    let dir = tempfile::tempdir().unwrap();
    let options = vec![("path".into(), dir.path().display().to_string()), ("format".into(), format.into())];
    Stream { dir, fields: Some(fields), metadata: vec![], options }
}

pub(super) fn json_ab() -> Stream {
    stream("json", &[("a", DataType::Int64), ("b", DataType::Utf8View)])
}

/// What a read gave: rows as text, how the batches and streams were, the records passed over, and how it ended.
#[derive(Debug, Default)]
pub(super) struct Got {
    pub rows: Vec<String>,
    pub batches: Vec<usize>,
    pub streams: usize,
    pub bad: Vec<String>,
    pub bad_count: u64,
    pub error: Option<Error>,
}

impl Stream {
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.options.retain(|(known, _)| known != name);
        self.options.push((name.into(), value.into()));
        self
    }

    pub fn meta(mut self, name: &str, key: &str, data_type: DataType) -> Self {
        self.metadata.push(MetadataColumn { name: name.into(), key: key.into(), data_type });
        self
    }

    pub fn file(self, name: &str, content: impl AsRef<[u8]>) -> Self {
        write(self.dir.path(), name, content.as_ref(), 1_000);
        self
    }

    pub fn try_open(&self) -> Result<FileSource> {
        self.try_open_at(None)
    }

    /// Opens it, at another place than its directory.
    pub fn try_open_at(&self, place: Option<Place>) -> Result<FileSource> {
        let list: Vec<_> = self.options.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let options = options(&list);
        let args = FileSourceArgs {
            name: "s",
            fields: self.fields.clone().map(|fields| Arc::new(Schema::new(fields)) as SchemaRef),
            metadata: self.metadata.clone(),
            options: &options,
            log: SourceLog::in_memory(),
            manifest: None,
        };
        match place {
            None => open(args),
            Some(place) => {
                let options = FileOptions::parse(args.options)?;
                open_at(args, options, place)
            }
        }
    }

    pub fn open_error(&self) -> String {
        self.try_open().err().map(|error| error.to_string()).unwrap_or_default()
    }

    pub fn read(&self) -> Got {
        self.read_with(1, None, vec![])
    }

    pub fn read_with(
        &self,
        partitions: usize,
        columns: Option<Vec<usize>>,
        filters: Vec<datafusion::logical_expr::Expr>,
    ) -> Got {
        let mut source = self.try_open().unwrap();
        let end = source.latest_offset(None, &ReadLimit { unlimited: true, ..ReadLimit::default() }).unwrap();
        let Some(end) = end else { return Got::default() };
        read_range(&source, OffsetRange { start: None, end }, partitions, columns, filters)
    }
}

pub(super) fn read_range(
    source: &FileSource,
    range: OffsetRange,
    partitions: usize,
    columns: Option<Vec<usize>>,
    filters: Vec<datafusion::logical_expr::Expr>,
) -> Got {
    let columns = columns.unwrap_or_else(|| (0..source.schema().fields().len()).collect());
    let wanted = Pushdown { columns, filters, partitions };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let read = match source.read(&range, &wanted) {
        Ok(read) => read,
        Err(error) => return Got { error: Some(error), ..Got::default() },
    };
    let mut got = Got { streams: read.streams.len(), ..Got::default() };
    let outcomes = runtime.block_on(async {
        let tasks: Vec<_> = read.streams.into_iter().map(|s| tokio::spawn(s.collect::<Vec<_>>())).collect();
        let mut outcomes = Vec::new();
        for task in tasks {
            outcomes.extend(task.await.unwrap());
        }
        outcomes
    });
    for outcome in outcomes {
        match outcome {
            Ok(batch) => {
                assert_eq!(batch.schema(), wanted.project(&source.schema()).unwrap());
                got.batches.push(batch.num_rows());
                got.rows.extend(show(&batch));
            }
            Err(DataFusionError::External(error)) => got.error = error.downcast_ref::<Error>().cloned(),
            Err(other) => panic!("an error that is not ours: {other}"),
        }
    }
    got.bad = read
        .bad_records
        .sample()
        .iter()
        .map(|bad| bad.to_string().replace(&source.place.shown().to_string(), "DIR"))
        .collect();
    got.bad_count = read.bad_records.count();
    got
}

fn show(rows: &RecordBatch) -> Vec<String> {
    let options = FormatOptions::default().with_null("NULL");
    let columns: Vec<_> =
        rows.columns().iter().map(|c| ArrayFormatter::try_new(c.as_ref(), &options).unwrap()).collect();
    let row = |at| columns.iter().map(|c| c.value(at).to_string()).collect::<Vec<_>>().join("|");
    (0..rows.num_rows()).map(row).collect()
}

pub(super) fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn testdata(name: &str) -> String {
    format!("{}/testdata/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn a_byte_order_mark_crlf_and_a_missing_last_newline_are_no_matter() {
    let mut got = json_ab().with("path", &testdata("bom-crlf-no-newline.json")).read();
    assert_eq!(got.rows, ["1|one", "2|two", "3|three"]);
    got = stream("csv", &[("a", DataType::Int64), ("b", DataType::Utf8View)])
        .with("path", &testdata("bom-crlf-no-newline.csv"))
        .with("header", "true")
        .read();
    assert_eq!(got.rows, ["1|one", "2|two, \"quoted\"\r\nover lines", "3|three"]);
    assert!(got.error.is_none());
}

#[test]
fn empty_files_and_lines_give_no_rows() {
    let got =
        json_ab().file("1", "").file("2", "\n\n \r\n").file("3.gz", "").file("4.gz", gzip(b"")).file("5", "{}").read();
    assert_eq!((got.rows, got.error.is_none()), (vec!["NULL|NULL".to_string()], true));
}

#[test]
fn missing_fields_are_null_and_extra_ones_are_ignored() {
    let got = json_ab().file("f", "{\"a\":1,\"zzz\":[{}]}\n{\"b\":\"x\"}\n").read();
    assert_eq!(got.rows, ["1|NULL", "NULL|x"]);
}

#[test]
fn a_bad_record_fails_with_file_and_line() {
    let bad = [
        ("{\"a\":\"x\"}", "column a wants BIGINT and found the text \"x\": {\"a\":\"x\"}"),
        (
            "{\"a\":9223372036854775808}",
            "column a is BIGINT and 9223372036854775808 is out of its range: {\"a\":9223372036854775808}",
        ),
        ("{\"a\":2,\"b\":", "is cut off: a record is one JSON object on one line: {\"a\":2,\"b\":"),
    ];
    for (line, reason) in bad {
        let stream = json_ab().file("f.json", format!("{{\"a\":1}}\n\n{line}"));
        let error = stream.read().error.map(|error| error.to_string()).unwrap_or_default();
        assert_eq!(error, format!("bad record in stream s, {}/f.json:3: {reason}", stream.dir.path().display()));
    }
}

#[test]
fn not_null_is_kept() {
    let mut stream = json_ab().file("f", "{\"a\":1}\n{\"b\":\"x\"}\n");
    stream.fields = Some(vec![Field::new("a", DataType::Int64, false), Field::new("b", DataType::Utf8View, true)]);
    let error = stream.read().error.map(|e| e.to_string()).unwrap_or_default();
    assert!(error.ends_with("f:2: column a is NOT NULL and is missing: {\"b\":\"x\"}"), "{error}");
    assert!(stream.with("on_error", "null").open_error().contains("column a is NOT NULL"));
}

#[test]
fn skip_counts_and_null_keeps_the_text() {
    let text = "{\"a\":1}\n{\"a\":\"bad\"}\nnot json\n{\"a\":2}\n{\"a\":3";
    let got = json_ab().file("f", text).with("on_error", "skip").read();
    assert_eq!(got.rows, ["1|NULL", "2|NULL"]);
    assert_eq!(got.bad_count, 3);
    assert_eq!(
        got.bad[0],
        "bad record in stream s, DIR/f:2: column a wants BIGINT and found the text \"bad\": {\"a\":\"bad\"}"
    );
    assert!(got.bad[2].contains("DIR/f:5: is cut off"), "{}", got.bad[2]);
    let nulls = json_ab().file("f", text).with("on_error", "null").meta("raw", "corrupt_record", DataType::Utf8);
    let got = nulls.read();
    assert_eq!(
        got.rows,
        ["1|NULL|NULL", "NULL|NULL|{\"a\":\"bad\"}", "NULL|NULL|not json", "2|NULL|NULL", "NULL|NULL|{\"a\":3"]
    );
    assert_eq!(got.bad_count, 3);
}

#[test]
fn metadata_tells_where_a_record_stands() {
    let micros = DataType::Timestamp(TimeUnit::Microsecond, None);
    let stream = stream("json", &[("a", DataType::Int64)])
        .meta("p", "path", DataType::Utf8)
        .meta("n", "name", DataType::Utf8View)
        .meta("t", "mtime", micros)
        .meta("s", "size", DataType::Int64)
        .meta("l", "line", DataType::Int64)
        .meta("o", "offset", DataType::UInt64)
        .file("d/1.json", "\u{feff}{\"a\":1}\n\n{\"a\":2}\n")
        .file("d/2.json.gz", gzip(b"{\"a\":3}\n{\"a\":4}\n"));
    let dir = stream.dir.path().display().to_string();
    let rows: Vec<String> = stream.read().rows.into_iter().map(|row| row.replace(&dir, "DIR")).collect();
    let size = fs::metadata(stream.dir.path().join("d/2.json.gz")).unwrap().len();
    let time = "1970-01-01T00:16:40";
    let want = [
        format!("1|DIR/d/1.json|1.json|{time}|20|1|3"),
        format!("2|DIR/d/1.json|1.json|{time}|20|3|12"),
        format!("3|DIR/d/2.json.gz|2.json.gz|{time}|{size}|1|0"),
        format!("4|DIR/d/2.json.gz|2.json.gz|{time}|{size}|2|8"),
    ];
    assert_eq!(rows, want);
    assert_eq!(stream.read_with(2, Some(vec![2, 0]), vec![]).rows.len(), 4);
    let error = json_ab().meta("x", "lines", DataType::Int64).open_error();
    assert_eq!(error, "connector 'file' has no metadata 'lines' (column x)");
    assert!(json_ab().meta("x", "size", DataType::Date32).open_error().contains("metadata 'size' is BIGINT"));
}

#[test]
fn compressed_files_are_read_whole_or_not_at_all() {
    let lines: String = (0..5_000).map(|n| format!("{{\"a\":{n}}}\n")).collect();
    let (front, back) = lines.split_at(lines.len() / 2);
    let two_members = [gzip(front.as_bytes()), gzip(back.as_bytes())].concat();
    assert_eq!(json_ab().file("f.gz", &two_members).read().rows.len(), 5_000);
    assert_eq!(json_ab().file("f.zst", zstd::encode_all(lines.as_bytes(), 3).unwrap()).read().rows.len(), 5_000);
    assert_eq!(json_ab().file("f", &two_members).with("compression", "gzip").read().rows.len(), 5_000);
    let cut = json_ab().file("f.gz", &two_members[..two_members.len() - 20]).read();
    let error = cut.error.map(|e| e.to_string()).unwrap_or_default();
    assert!(error.contains("/f.gz: "), "{error}");
    let foreign = json_ab().file("f.gz", "{\"a\":1}\n").read().error.map(|e| e.to_string()).unwrap_or_default();
    assert!(foreign.contains("/f.gz: "), "{foreign}");
    assert_eq!(json_ab().file("f.gz", "{\"a\":1}\n").with("compression", "none").read().rows, ["1|NULL"]);
    let bad = json_ab().file("f.gz", gzip(b"{\"a\":1}\nbad\n")).read().error.map(|e| e.to_string()).unwrap_or_default();
    assert!(bad.contains("f.gz:2: "), "{bad}");
}

#[test]
fn the_damage_of_a_compressed_file_is_one_bad_record() {
    let lines: String = (0..50_000).map(|n| format!("{{\"a\":{n},\"b\":\"{}\"}}\n", n * 7_919 % 50_000)).collect();
    let whole: [(&str, Vec<u8>); 2] =
        [("f.gz", gzip(lines.as_bytes())), ("f.zst", zstd::encode_all(lines.as_bytes(), 3).unwrap())];
    for (name, bytes) in whole {
        let middle = bytes.len() / 2;
        for damaged in [bytes[..middle].to_vec(), bytes[..bytes.len() - 3].to_vec(), bytes[..3].to_vec()] {
            let damaged = || json_ab().file(name, &damaged).file("z", "{\"a\":-1}\n");
            let failed = damaged().read();
            assert!(matches!(failed.error, Some(Error::Io { .. })), "{name}: {:?}", failed.error);
            let skipped = damaged().with("on_error", "skip").read_with(1, Some(vec![0]), vec![]);
            assert!(skipped.error.is_none(), "{:?}", skipped.error);
            let (last, before) = skipped.rows.split_last().unwrap();
            assert_eq!(last, "-1", "the next file is read");
            let want: Vec<String> = (0..before.len()).map(|n| n.to_string()).collect();
            assert!(before == want, "{name}: what was decoded is taken as ever");
            assert_eq!(skipped.bad_count, 1);
            let line = format!("DIR/{name}:{}: the file is damaged behind byte ", before.len() + 1);
            assert!(skipped.bad[0].contains(&line), "{line}: {}", skipped.bad[0]);
            // Whoever reads it, and however: the same rows.
            for (partitions, columns) in [(1, vec![0, 1]), (2, vec![1]), (2, vec![])] {
                let again = damaged().with("on_error", "skip").read_with(partitions, Some(columns), vec![]);
                assert_eq!(again.batches.iter().sum::<usize>(), skipped.rows.len());
                assert_eq!(again.bad, skipped.bad);
            }
            let nulls = damaged().with("on_error", "null").meta("raw", "corrupt_record", DataType::Utf8).read_with(
                1,
                Some(vec![0, 2]),
                vec![],
            );
            assert_eq!(nulls.rows.len(), skipped.rows.len() + 1);
            let cut = &nulls.rows[before.len()];
            assert!(cut.starts_with("NULL|") && lines.contains(&cut[5..]), "{cut}");
        }
    }
    // What comes out of a member with other bytes in it may be rubbish before its checksum tells: the same rubbish.
    let mut flipped = gzip(lines.as_bytes());
    let middle = flipped.len() / 2;
    flipped[middle..middle + 16].fill(0xA5);
    let flipped = json_ab().file("f.gz", flipped).with("on_error", "skip");
    let (once, again) = (flipped.read(), flipped.read_with(2, None, vec![]));
    assert!(once.error.is_none() && once.rows == again.rows && once.bad == again.bad);
    assert!(once.rows.len() > 20_000 && once.bad_count > 0);
    let csv = stream("csv", &[("a", DataType::Int64)]).with("on_error", "skip");
    let text: String = (0..9_000).map(|n| format!("{n}\n")).collect();
    let bytes = gzip(text.as_bytes());
    let got = csv.file("f.gz", &bytes[..bytes.len() - 4]).read();
    assert_eq!((got.rows.len(), got.bad_count), (9_000, 1), "{:?}", got.bad);
}

#[test]
fn a_file_changed_or_gone_between_the_log_and_the_read_is_named() {
    for (change, transient) in [("append", false), ("touch", false), ("shrink", false), ("remove", true)] {
        let stream = json_ab().file("f", "{\"a\":1}\n{\"a\":2}\n");
        let mut source = stream.try_open().unwrap();
        let end = source.latest_offset(None, &ReadLimit::default()).unwrap().unwrap();
        match change {
            "append" => write(stream.dir.path(), "f", b"{\"a\":1}\n{\"a\":2}\n{\"a\":3}\n", 1_000),
            "touch" => write(stream.dir.path(), "f", b"{\"a\":1}\n{\"a\":2}\n", 1_001),
            "shrink" => write(stream.dir.path(), "f", b"{\"a\":1}\n", 1_000),
            _ => fs::remove_file(stream.dir.path().join("f")).unwrap(),
        }
        let error = read_range(&source, OffsetRange { start: None, end }, 1, None, vec![]).error.unwrap();
        assert_eq!(error.is_transient(), transient, "{change}: {error}");
        assert!(error.to_string().contains("/f"), "{change}: {error}");
    }
}

#[test]
fn large_files_are_cut_between_streams_and_stay_in_order_in_one() {
    let line = |n: u64| format!("{{\"a\":{n},\"b\":\"{}\"}}\n", "x".repeat((n % 97) as usize));
    let text: String = (0..120_000).map(line).collect();
    let stream = json_ab().file("1", &text).file("2", "{\"a\":-1}").file("3", "{\"a\":-2}\n");
    let in_order = stream.read_with(1, Some(vec![0]), vec![]);
    let want: Vec<String> = (0..120_000).map(|n| n.to_string()).chain(["-1".into(), "-2".into()]).collect();
    assert!(in_order.rows == want);
    assert!(in_order.batches.len() <= 16, "{:?}", in_order.batches);
    let spread = stream.read_with(3, Some(vec![0]), vec![]);
    assert_eq!(spread.streams, 3);
    let sorted = |mut rows: Vec<String>| {
        rows.sort();
        rows
    };
    assert!(sorted(spread.rows) == sorted(want));
    let counted = stream.read_with(2, Some(vec![]), vec![]);
    assert_eq!(counted.batches.iter().sum::<usize>(), 120_002);
}

#[test]
fn a_bad_record_deep_in_a_large_file_is_named_by_its_line() {
    let mut text: String = (0..120_000).map(|n| format!("{{\"a\":{n}}}\n")).collect();
    text.push_str("bad\n");
    let stream = json_ab().file("f", text + "{\"a\":1}\n");
    for partitions in [1, 2] {
        let error = stream.read_with(partitions, None, vec![]).error.map(|e| e.to_string()).unwrap_or_default();
        assert!(error.contains("/f:120001: "), "{error}");
    }
}

#[test]
fn small_files_are_put_together_into_batches() {
    let mut stream = json_ab();
    for n in 0..500 {
        stream = stream.file(&format!("{n:04}"), format!("{{\"a\":{n}}}\n{{\"a\":{n}}}"));
    }
    let got = stream.read_with(1, Some(vec![0]), vec![]);
    assert_eq!(got.batches, [1_000]);
    assert_eq!(got.rows, (0..500).flat_map(|n| [n.to_string(), n.to_string()]).collect::<Vec<_>>());
}

#[test]
fn a_record_longer_than_the_limit_is_bad_and_passed() {
    let long = format!("{{\"a\":1,\"b\":\"{}\"}}", "x".repeat(9 << 20));
    let text = format!("{{\"a\":0}}\n{long}\n{{\"a\":2}}\n");
    let within = json_ab().file("f", &text).read_with(2, Some(vec![0]), vec![]);
    assert_eq!((within.rows.len(), within.bad_count), (3, 0));
    for (name, bytes) in [("f", text.clone().into_bytes()), ("f.gz", gzip(text.as_bytes()))] {
        let limited = json_ab().file(name, bytes).with("max_record_bytes", "5 MiB").with("on_error", "skip");
        for partitions in [1, 2] {
            let got = limited.read_with(partitions, Some(vec![0]), vec![]);
            assert_eq!(got.rows, ["0", "2"], "{name}");
            assert_eq!(got.bad_count, 1);
            assert!(
                got.bad[0].contains(&format!("DIR/{name}:2: is longer than max_record_bytes (5242880): {{\"a\":1")),
                "{}",
                got.bad[0]
            );
            assert!(got.bad[0].len() < 1_000);
        }
    }
    let csv = stream("csv", &[("a", DataType::Int64), ("b", DataType::Utf8View)])
        .file("f", format!("0,x\n1,\"{}\n2,y\n", "x".repeat(9 << 20)))
        .with("max_record_bytes", "5 MiB")
        .with("on_error", "null");
    assert_eq!(csv.read().rows, ["0|x", "NULL|NULL", "2|y"]);
    assert!(json_ab().with("max_record_bytes", "1kb").open_error().contains("between 4 MiB and 1 GiB"));
}

#[test]
fn megabytes_of_nothing_and_of_bad_records_end_no_stream() {
    let blank = format!("{}\n", " ".repeat(1_000)).repeat(9 << 10);
    let bad = format!("{{\"b\":\"{}\",\"a\":\"bad\"}}\n", "x".repeat(1_000)).repeat(9 << 10);
    for name in ["f", "f.gz"] {
        let text = format!("{{\"a\":1}}\n{blank}{{\"a\":2}}\n{bad}{{\"a\":3}}\n{bad}{blank}{{\"a\":4}}");
        let bytes = if name == "f" { text.into_bytes() } else { gzip(text.as_bytes()) };
        let got = json_ab().file(name, bytes).with("on_error", "skip").read();
        assert_eq!(got.rows, ["1|NULL", "2|NULL", "3|NULL", "4|NULL"]);
        assert_eq!((got.bad_count, got.bad.len()), (18 << 10, BadRecords::SAMPLE));
    }
}

#[test]
fn many_columns_make_small_batches() {
    let names: Vec<String> = (0..5_000).map(|n| format!("c{n}")).collect();
    let fields: Vec<_> = names.iter().map(|name| (name.as_str(), DataType::Int64)).collect();
    let record: Vec<String> = names.iter().enumerate().map(|(n, name)| format!("\"{name}\":{n}")).collect();
    let text = format!("{{{}}}\n", record.join(",")).repeat(430);
    let got = stream("json", &fields).file("f", text).read_with(1, Some(vec![4_999, 0]), vec![]);
    assert_eq!(got.rows, vec!["4999|0"; 430]);
    let stream = stream("json", &fields).file("f", format!("{{{}}}\n", record.join(",")).repeat(430));
    assert!(stream.read().batches.iter().all(|rows| *rows <= 419));
}

#[test]
fn csv_is_read_across_blocks() {
    let rows = 60_000;
    let text: String = (0..rows).map(|n| format!("{n},\"line one of {n}\nline \"\"two\"\"\"\n")).collect();
    let stream = stream("csv", &[("a", DataType::Int64), ("b", DataType::Utf8View)]).file("f.csv", text);
    let got = stream.read_with(2, None, vec![]);
    assert_eq!(got.rows.len(), rows);
    assert_eq!(got.rows[rows - 1], format!("{}|line one of {}\nline \"two\"", rows - 1, rows - 1));
}

#[test]
fn names_with_special_characters_are_read() {
    let mut stream = stream("text", &[("value", DataType::Utf8View)]);
    for name in ["text text", "text[text", "text[123]text", "100%", "a%20b", "ünï"] {
        stream = stream.file(name, name);
    }
    let mut rows = stream.read().rows;
    rows.sort();
    assert_eq!(rows, ["100%", "a%20b", "text text", "text[123]text", "text[text", "ünï"]);
}

#[test]
fn what_is_wrong_with_a_declaration_is_said_when_it_is_opened() {
    assert!(json_ab().with("path", "does-not-exist").open_error().contains("does-not-exist"));
    assert_eq!(json_ab().with("path", "hdfs://b/p").open_error(), "not supported yet: files in hdfs://: hdfs://b/p");
    let remote = |path: &str, option: &str, value: &str| {
        let _entered = super::remote_tests::RUNTIME.enter();
        json_ab().with("path", path).with(option, value).open_error()
    };
    assert!(remote("data", "region", "x").contains("option region is for object stores, and data is a local path"));
    assert_eq!(remote("gs://b/p", "region", "x"), "option region has no meaning for gs://b");
    assert_eq!(remote("https://h/p", "anonymous", "true"), "option anonymous has no meaning for https://h");
    let secret = remote("s3://b/p", "endpoint", "http://me:s3cret@h");
    assert!(secret.starts_with("option endpoint is http:// or https://") && !secret.contains("s3cret"), "{secret}");
    let both = json_ab().with("dead_letter", "sink").with("on_error", "fail");
    assert!(both.open_error().contains("option dead_letter has no meaning with on_error = 'fail'"));
    assert!(json_ab().with("format", "xml").open_error().contains("one of json, csv, parquet, text"));
    assert_eq!(json_ab().with("header", "true").open_error(), "option header is for format csv, not json");
    let both = json_ab().with("max_files_per_trigger", "1").with("max_bytes_per_trigger", "1mb").open_error();
    assert!(both.contains("exclude each other"), "{both}");
    assert!(json_ab().with("max_file_per_trigger", "1").open_error().contains("unknown option"));
    assert!(stream("text", &[("a", DataType::Int64)]).open_error().contains("one column of type STRING"));
    let parquet = stream("parquet", &[("a", DataType::Int64)]);
    assert!(parquet.with("on_error", "skip").open_error().contains("no meaning for format parquet"));
}

#[test]
fn columns_are_inferred_from_what_is_there() {
    let mut json = json_ab()
        .file("1", "{\"a\":1,\"at\":\"2024-01-01T00:00:00Z\"}\n")
        .file("2.gz", gzip(b"{\"a\":1.5,\"l\":[\"x\"]}"));
    json.fields = None;
    let source = json.try_open().unwrap();
    let names: Vec<_> = source
        .schema()
        .fields()
        .iter()
        .map(|f| format!("{} {}", f.name(), crate::format::type_name(f.data_type())))
        .collect();
    assert_eq!(names, ["a DOUBLE", "at TIMESTAMP", "l ARRAY<STRING>"]);
    assert_eq!(json.read().rows, ["1.0|2024-01-01T00:00:00|NULL", "1.5|NULL|[x]"]);
    let mut empty = json_ab().file("1", "\n");
    empty.fields = None;
    assert!(empty.open_error().contains("cannot infer the columns: there is no record at"));
    let mut bad = json_ab().file("1", "{\"a\":1}\n\n{\"a\":\"x\"}\n");
    bad.fields = None;
    assert!(
        bad.open_error().ends_with("1:3: holds text in a, where an earlier record holds a number: {\"a\":\"x\"}"),
        "{}",
        bad.open_error()
    );
    for on_error in ["skip", "null"] {
        let mut lenient = json_ab()
            .file("1", "{\"a\":1}\nrubbish\n{\"a\":\"x\"}\n{\"b\":true}\n")
            .file("2.gz", "not gzip")
            .file("3.gz", &gzip("{\"c\":1}\n".repeat(9).as_bytes())[..20])
            .with("on_error", on_error);
        lenient.fields = None;
        let source = lenient.try_open().unwrap();
        let names: Vec<_> = source.schema().fields().iter().map(|f| f.name().clone()).collect();
        assert_eq!(names[..2], ["a", "b"]);
        assert_eq!(lenient.read().bad_count, 4, "as they are bad when they are read");
    }
    let mut nothing = json_ab().file("1", "rubbish\nmore\n").with("on_error", "skip");
    nothing.fields = None;
    let error = nothing.open_error();
    assert!(error.contains("can be read; the first: bad record in stream s, ") && error.contains("1:1: "), "{error}");
    let mut parquet = stream("parquet", &[]);
    parquet.fields = None;
    assert!(parquet.open_error().contains("there is no file at"));
}

#[test]
fn the_size_of_a_range_is_that_of_its_files() {
    let stream = json_ab().file("1", "{\"a\":1}\n").file("2", "{\"a\":22}\n");
    let mut source = stream.try_open().unwrap();
    let end = source.latest_offset(None, &ReadLimit::default()).unwrap().unwrap();
    let size = source.size(&OffsetRange { start: None, end: end.clone() });
    assert_eq!(size, RangeSize { rows: None, bytes: Some(17) });
    assert_eq!(source.description(), format!("FileStreamSource[{}]", stream.dir.path().display()));
    assert_eq!(source.end(), crate::source::InputEnd::Never);
    source.commit(&end).unwrap();
    source.commit(&end).unwrap();
}
