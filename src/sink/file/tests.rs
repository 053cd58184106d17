//! The sink as a whole: batches, crashes at every step, foreign owners, layouts and formats.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{AsArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};
use tempfile::TempDir;

use super::manifest::{FileEntry, committed_files_in};
use super::*;
use crate::checkpoint::Failpoints;
use crate::checkpoint::failpoint::Action;
use crate::delta::Op;
use crate::options::{OptionEntry, OptionValue};

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("k", DataType::Utf8, true), Field::new("n", DataType::Int64, false)]))
}

fn rows(values: &[(Option<&str>, i64)]) -> Delta {
    let keys = StringArray::from_iter(values.iter().map(|v| v.0));
    let numbers = Int64Array::from_iter_values(values.iter().map(|v| v.1));
    Delta::insert(RecordBatch::try_new(schema(), vec![Arc::new(keys), Arc::new(numbers)]).unwrap())
}

fn numbers(values: impl IntoIterator<Item = i64>) -> Delta {
    rows(&values.into_iter().map(|n| (Some("k"), n)).collect::<Vec<_>>())
}

pub(super) fn context(query_id: &str, run_id: &str) -> SinkContext {
    SinkContext {
        query: format!("query_{query_id}"),
        query_id: query_id.into(),
        run_id: run_id.into(),
        mode: OutputMode::Append,
        schema: schema(),
        retracts: false,
        partitions: 2,
        failpoints: Failpoints::default(),
    }
}

fn options(path: &Path, more: &[(&str, &str)]) -> Options {
    let entry = |name: &str, value: &str| OptionEntry {
        name: name.into(),
        value: OptionValue::Text(value.into()),
        span: Default::default(),
    };
    let mut entries = vec![entry("path", path.to_str().unwrap())];
    entries.extend(more.iter().map(|(name, value)| entry(name, value)));
    Options { entries }
}

pub(super) fn json(path: &Path) -> Options {
    options(path, &[("format", "json")])
}

/// Runs one batch to its end.
fn run(sink: &mut FileSink, batch: BatchId, changes: Vec<Delta>) -> Result<Begin> {
    let begin = sink.begin(batch)?;
    for (partition, changes) in changes.into_iter().enumerate() {
        sink.push(partition, changes)?;
    }
    sink.commit(&BatchSummary::default())?;
    Ok(begin)
}

/// What a reader of the manifest sees, in one column, sorted.
fn visible(path: &Path) -> Vec<i64> {
    let mut found = Vec::new();
    for file in committed_files_in(path).unwrap().unwrap() {
        let bytes = fs::read(path.join(&file.path)).unwrap();
        assert_eq!((file.size, file.crc32c), (bytes.len() as u64, crc32c::crc32c(&bytes)));
        let schema = Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, false)]));
        let before = found.len();
        for batch in arrow::json::ReaderBuilder::new(schema).build(bytes.as_slice()).unwrap() {
            found.extend(batch.unwrap().column(0).as_primitive::<Int64Type>().values());
        }
        assert_eq!(file.rows, (found.len() - before) as u64);
    }
    found.sort_unstable();
    found
}

/// All files but those of the manifest.
fn on_disk(path: &Path) -> Vec<String> {
    fn walk(root: &Path, folder: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true if path.ends_with(manifest::FOLDER) => {}
                true => walk(root, &path, found),
                false => found.push(path.strip_prefix(root).unwrap().to_str().unwrap().to_string()),
            }
        }
    }
    let mut found = Vec::new();
    walk(path, path, &mut found);
    found.sort();
    found
}

fn named(path: &Path) -> Vec<String> {
    let mut names: Vec<_> = committed_files_in(path).unwrap().unwrap().into_iter().map(|file| file.path).collect();
    names.sort();
    names
}

#[test]
fn batches_become_visible_whole_and_once() {
    let dir = TempDir::new().unwrap();
    let mut sink = open(&json(dir.path()), &context("a", "run")).unwrap();
    assert_eq!(visible(dir.path()), Vec::<i64>::new());
    assert_eq!(run(&mut sink, 0, vec![numbers([1, 2]), numbers([3])]).unwrap(), Begin::Write);
    assert_eq!(run(&mut sink, 1, vec![]).unwrap(), Begin::Write);
    assert_eq!(sink.begin(2).unwrap(), Begin::Write);
    sink.push(0, numbers([4])).unwrap();
    sink.push(0, numbers([5])).unwrap();
    assert_eq!(visible(dir.path()), [1, 2, 3]);
    assert_eq!(sink.commit(&BatchSummary::default()).unwrap().rows, 2);
    assert_eq!(visible(dir.path()), [1, 2, 3, 4, 5]);
    assert_eq!(run(&mut sink, 2, vec![numbers([4, 5])]).unwrap(), Begin::AlreadyDone);
    assert_eq!(visible(dir.path()), [1, 2, 3, 4, 5]);
    assert_eq!(named(dir.path()).len(), 3);
    assert_eq!(on_disk(dir.path()), named(dir.path()));
    assert!(named(dir.path())[0].starts_with("part-00000-000-"));
    let entry = fs::read_to_string(dir.path().join("_levada/2")).unwrap();
    assert!(
        entry.starts_with("v1 crc32c=") && entry.contains("\"previous\":0,\"query_id\":\"a\",\"run\":\"run\""),
        "{entry}"
    );
}

#[test]
fn a_crash_at_any_step_changes_nothing() {
    for step in ["open", "begin", "part", "parts", "manifest"] {
        let dir = TempDir::new().unwrap();
        let mut sink = open(&json(dir.path()), &context("a", "run-1")).unwrap();
        run(&mut sink, 0, vec![numbers([1])]).unwrap();
        let mut sink = open(&json(dir.path()), &context("a", "run-2")).unwrap();
        if step != "open" {
            sink.begin(1).unwrap();
        }
        if ["part", "parts", "manifest"].contains(&step) {
            sink.push(0, numbers([2, 3])).unwrap();
        }
        if step == "parts" {
            sink.push(1, numbers([4])).unwrap();
            sink.parts.finish().unwrap();
        }
        if step == "manifest" {
            sink.push(1, numbers([4])).unwrap();
            sink.commit(&BatchSummary::default()).unwrap();
        }
        // The process dies: nothing is aborted.
        std::mem::forget(sink);
        let mut sink = open(&json(dir.path()), &context("a", "run-3")).unwrap();
        assert_eq!(on_disk(dir.path()), named(dir.path()), "{step}: what no entry names is removed");
        let expected = if step == "manifest" { Begin::AlreadyDone } else { Begin::Write };
        assert_eq!(run(&mut sink, 1, vec![numbers([2, 3]), numbers([4])]).unwrap(), expected, "{step}");
        run(&mut sink, 2, vec![numbers([5])]).unwrap();
        assert_eq!(visible(dir.path()), [1, 2, 3, 4, 5], "{step}");
        assert_eq!(on_disk(dir.path()), named(dir.path()));
    }
}

#[test]
fn abort_removes_what_was_written() {
    let dir = TempDir::new().unwrap();
    let mut sink =
        open(&options(dir.path(), &[("format", "json"), ("partition_by", "k")]), &context("a", "run")).unwrap();
    sink.begin(0).unwrap();
    sink.push(0, rows(&[(Some("x"), 1), (Some("y"), 2)])).unwrap();
    assert_eq!(on_disk(dir.path()).len(), 2);
    sink.abort().unwrap();
    assert_eq!(on_disk(dir.path()), Vec::<String>::new());
    sink.begin(0).unwrap();
    sink.push(0, rows(&[(Some("x"), 1)])).unwrap();
    // Begun anew without an abort.
    sink.begin(0).unwrap();
    sink.push(0, rows(&[(Some("y"), 2)])).unwrap();
    sink.commit(&BatchSummary::default()).unwrap();
    assert_eq!(on_disk(dir.path()), named(dir.path()));
    assert!(named(dir.path())[0].starts_with("k=y/part-"));
}

#[test]
fn a_manifest_that_is_not_written_leaves_no_files() {
    for action in [Action::Error, Action::Enospc] {
        let dir = TempDir::new().unwrap();
        let context = context("a", "run");
        let mut sink = open(&json(dir.path()), &context).unwrap();
        context.failpoints.arm("manifest.write", 1, action).unwrap();
        let error = run(&mut sink, 0, vec![numbers([1])]).unwrap_err();
        assert!(!matches!(error, Error::Corrupt { .. } | Error::Internal { .. }), "{error}");
        sink.abort().unwrap();
        assert_eq!(on_disk(dir.path()), Vec::<String>::new());
        assert_eq!(run(&mut sink, 0, vec![numbers([1])]).unwrap(), Begin::Write);
        assert_eq!(visible(dir.path()), [1]);
    }
}

/// A store that creates a file and then says that it failed.
#[derive(Debug)]
struct Unsure(LocalStore, std::sync::atomic::AtomicBool);

impl Store for Unsure {
    fn put_new(&self, path: &str, write: &mut dyn FnMut(&mut dyn Write) -> std::io::Result<()>) -> Result<()> {
        self.0.put_new(path, write)?;
        match self.1.load(std::sync::atomic::Ordering::SeqCst) {
            true => Err(Error::io("syncing", &std::io::ErrorKind::TimedOut.into())),
            false => Ok(()),
        }
    }
    fn get(&self, path: &str) -> Result<Option<Vec<u8>>> {
        self.0.get(path)
    }
    fn list(&self, folder: &str) -> Result<Vec<String>> {
        self.0.list(folder)
    }
    fn delete(&self, path: &str) -> Result<()> {
        self.0.delete(path)
    }
    fn describe(&self, path: &str) -> String {
        self.0.describe(path)
    }
}

#[test]
fn an_entry_that_may_have_been_written_keeps_its_files() {
    let dir = TempDir::new().unwrap();
    let store = Arc::new(Unsure(LocalStore::new(dir.path()), false.into()));
    let root = dir.path().to_path_buf();
    let mut sink = open_in(&json(dir.path()), &context("a", "run"), "out", root, store.clone()).unwrap();
    store.1.store(true, std::sync::atomic::Ordering::SeqCst);
    assert!(run(&mut sink, 0, vec![numbers([1])]).unwrap_err().is_transient());
    sink.abort().unwrap();
    assert_eq!(visible(dir.path()), [1]);
    store.1.store(false, std::sync::atomic::Ordering::SeqCst);
    assert_eq!(run(&mut sink, 0, vec![numbers([1])]).unwrap(), Begin::AlreadyDone);
    run(&mut sink, 1, vec![numbers([2])]).unwrap();
    assert_eq!(visible(dir.path()), [1, 2]);
}

#[test]
fn another_query_is_refused_and_both_are_named() {
    let dir = TempDir::new().unwrap();
    open(&json(dir.path()), &context("a", "run")).unwrap();
    for _ in 0..2 {
        let error = open(&json(dir.path()), &context("b", "run")).err().unwrap();
        assert!(matches!(error, Error::Conflict { .. }));
        let text = error.to_string();
        assert!(text.contains("belong to query query_a (id a); this is query query_b (id b)"), "{text}");
        // Also when only an entry tells whose it is.
        let mut sink = open(&json(dir.path()), &context("a", "run")).unwrap();
        run(&mut sink, 0, vec![numbers([1])]).unwrap();
    }
    fs::remove_file(dir.path().join("_levada/owner")).unwrap();
    let error = open(&json(dir.path()), &context("b", "run")).err().unwrap().to_string();
    assert!(error.contains("(id a); this is query query_b"), "{error}");
    open(&json(dir.path()), &context("a", "run")).unwrap();
    assert!(dir.path().join("_levada/owner").is_file());
}

#[test]
fn a_checkpoint_older_than_the_output_is_noticed() {
    let dir = TempDir::new().unwrap();
    let mut sink = open(&json(dir.path()), &context("a", "run")).unwrap();
    run(&mut sink, 7, vec![numbers([1])]).unwrap();
    let error = run(&mut sink, 5, vec![numbers([2])]).unwrap_err().to_string();
    assert!(error.contains("holds batch 7 of this query already, and the query is at batch 5"), "{error}");
    sink.abort().unwrap();
    assert_eq!(on_disk(dir.path()), named(dir.path()));
}

#[test]
fn foreign_files_stay() {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("part-00000-c000.json"), "{}").unwrap();
    fs::write(dir.path().join("notes.txt"), "").unwrap();
    let mut sink = open(&json(dir.path()), &context("a", "run")).unwrap();
    run(&mut sink, 0, vec![numbers([1])]).unwrap();
    open(&json(dir.path()), &context("a", "run")).unwrap();
    assert_eq!(on_disk(dir.path()).len(), 3);
    assert_eq!(visible(dir.path()), [1]);
    // Part files of a manifest that was lost are nobody's to remove.
    fs::remove_dir_all(dir.path().join("_levada")).unwrap();
    let error = open(&json(dir.path()), &context("a", "run")).err().unwrap().to_string();
    assert!(error.contains("part-00000-000-") && error.contains("manifest"), "{error}");
    assert_eq!(on_disk(dir.path()).len(), 3);
}

/// The value that a folder `k=…` stands for.
fn unescape(folder: &str) -> Option<String> {
    let value = folder.strip_prefix("k=").unwrap();
    if value == "__HIVE_DEFAULT_PARTITION__" {
        return None;
    }
    let (mut bytes, mut out) = (value.bytes(), Vec::new());
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'%' => {
                let hex = [bytes.next().unwrap(), bytes.next().unwrap()];
                u8::from_str_radix(std::str::from_utf8(&hex).unwrap(), 16).unwrap()
            }
            byte => byte,
        });
    }
    Some(String::from_utf8(out).unwrap())
}

#[test]
fn every_partition_value_comes_back() {
    let dir = TempDir::new().unwrap();
    let values = ["a/b", "", "..", "=", "%41", "a b", "new\nline", "日本", "__HIVE_DEFAULT_PARTITION__", "C:\\x", "*?"];
    let mut sink =
        open(&options(dir.path(), &[("format", "json"), ("partition_by", "k")]), &context("a", "run")).unwrap();
    let all: Vec<(Option<&str>, i64)> = values.iter().map(|v| (Some(*v), 1)).chain([(None, 1)]).collect();
    run(&mut sink, 0, vec![rows(&all)]).unwrap();
    let found: BTreeSet<Option<String>> =
        named(dir.path()).iter().map(|p| unescape(p.split_once('/').unwrap().0)).collect();
    assert_eq!(found, all.iter().map(|(k, _)| k.map(String::from)).collect());
    assert_eq!(on_disk(dir.path()), named(dir.path()));
    assert_eq!(visible(dir.path()), vec![1; values.len() + 1]);
    let file = fs::read_to_string(dir.path().join(&named(dir.path())[0])).unwrap();
    assert_eq!(file, "{\"n\":1}\n");
}

#[test]
fn many_folders_take_turns_at_a_bounded_number_of_files() {
    let dir = TempDir::new().unwrap();
    let mut sink =
        open(&options(dir.path(), &[("format", "csv"), ("partition_by", "k")]), &context("a", "run")).unwrap();
    let keys: Vec<String> = (0..200).map(|n| n.to_string()).collect();
    sink.begin(0).unwrap();
    for turn in 0..2 {
        sink.push(0, rows(&keys.iter().map(|k| (Some(k.as_str()), turn)).collect::<Vec<_>>())).unwrap();
    }
    assert_eq!(sink.commit(&BatchSummary::default()).unwrap().rows, 400);
    let files = committed_files_in(dir.path()).unwrap().unwrap();
    assert_eq!(files.iter().map(|file| file.rows).sum::<u64>(), 400);
    assert_eq!(files.iter().map(|file| &file.path).collect::<BTreeSet<_>>().len(), files.len());
    assert!(files.len() > 200 && files.iter().any(|file| file.path.ends_with("-1.csv")));
    assert_eq!(on_disk(dir.path()), named(dir.path()));
}

fn decompressed(file: &FileEntry, dir: &Path) -> Vec<u8> {
    let bytes = fs::read(dir.join(&file.path)).unwrap();
    assert_eq!((file.size, file.crc32c), (bytes.len() as u64, crc32c::crc32c(&bytes)));
    let mut out = Vec::new();
    match file.path.rsplit('.').next().unwrap() {
        "gz" => drop(std::io::copy(&mut flate2::read::GzDecoder::new(bytes.as_slice()), &mut out).unwrap()),
        "zst" => zstd::stream::copy_decode(bytes.as_slice(), &mut out).unwrap(),
        _ => out = bytes,
    }
    out
}

#[test]
fn formats_and_compressions_hold_the_rows() {
    let values = [(Some("a,\"b\""), 1), (None, -2)];
    for (format, compression, extension) in [
        ("json", "none", ".json"),
        ("json", "gz", ".json.gz"),
        ("csv", "zst", ".csv.zst"),
        ("csv", "none", ".csv"),
        ("parquet", "snappy", ".parquet"),
        ("parquet", "zstd", ".parquet"),
        ("parquet", "none", ".parquet"),
    ] {
        let dir = TempDir::new().unwrap();
        let options = options(dir.path(), &[("format", format), ("compression", compression)]);
        let mut sink = open(&options, &context("a", "run")).unwrap();
        run(&mut sink, 0, vec![rows(&values)]).unwrap();
        let files = committed_files_in(dir.path()).unwrap().unwrap();
        assert!(files[0].path.ends_with(extension));
        let bytes = decompressed(&files[0], dir.path());
        match format {
            "json" => assert_eq!(bytes, b"{\"k\":\"a,\\\"b\\\"\",\"n\":1}\n{\"n\":-2}\n"),
            "csv" => assert_eq!(bytes, b"k,n\n\"a,\"\"b\"\"\",1\n,-2\n"),
            _ => {
                let reader =
                    parquet::arrow::arrow_reader::ParquetRecordBatchReader::try_new(bytes::Bytes::from(bytes), 10);
                let found: Vec<_> = reader.unwrap().map(|batch| batch.unwrap()).collect();
                assert_eq!(found, vec![rows(&values).rows]);
            }
        }
    }
}

#[test]
fn what_files_cannot_hold_is_refused() {
    let dir = TempDir::new().unwrap();
    let refuse = |options: &Options, context: &SinkContext| open(options, context).err().unwrap();
    let ours = context("a", "run");
    for (mode, name) in [(OutputMode::Update, "UPDATE"), (OutputMode::Complete, "COMPLETE")] {
        let error = refuse(&json(dir.path()), &SinkContext { mode, ..ours.clone() });
        assert!(error.to_string().contains(&format!("mode {name} replaces them")), "{error}");
        assert!(error.help_text().unwrap().contains("OUTPUT MODE APPEND"));
    }
    assert!(
        refuse(&json(dir.path()), &SinkContext { retracts: true, ..ours.clone() })
            .to_string()
            .contains("take rows back")
    );
    assert!(refuse(&options(dir.path(), &[]), &ours).to_string().contains("needs the option format"));
    assert!(refuse(&Options::default(), &ours).to_string().contains("needs the option path"));
    let parquet_gz = options(dir.path(), &[("format", "parquet"), ("compression", "gz")]);
    assert_eq!(refuse(&parquet_gz, &ours).help_text(), Some("it has snappy, zstd, none"));
    let s3 = options(Path::new("s3://bucket/out"), &[("format", "json")]);
    assert!(refuse(&s3, &ours).to_string().contains("not supported yet: a file sink on s3://"));
    let twice = Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, true); 2]));
    assert!(
        refuse(&json(dir.path()), &SinkContext { schema: twice, ..ours.clone() })
            .to_string()
            .contains("two columns named n")
    );
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    assert!(refuse(&json(&file), &ours).to_string().contains("is a file"));
    assert!(!dir.path().join("_levada").exists(), "a refused sink leaves no trace");
}

#[test]
fn temporary_files_of_a_dead_run_are_removed_by_their_owner_only() {
    let dir = TempDir::new().unwrap();
    open(&json(dir.path()), &context("a", "run")).unwrap();
    let temporary = dir.path().join("_levada/.tmp-1-0");
    fs::write(&temporary, "half").unwrap();
    assert!(open(&json(dir.path()), &context("b", "run")).is_err());
    assert!(temporary.exists());
    open(&json(dir.path()), &context("a", "run")).unwrap();
    assert!(!temporary.exists());
}

#[test]
fn rows_are_never_taken_back() {
    let dir = TempDir::new().unwrap();
    let mut sink = open(&json(dir.path()), &context("a", "run")).unwrap();
    assert!(sink.push(0, numbers([1])).is_err(), "outside a batch");
    sink.begin(0).unwrap();
    let delete = Delta::changes(numbers([1]).rows, vec![Op::Delete]).unwrap();
    assert!(matches!(sink.push(0, delete), Err(Error::Internal { .. })));
}

#[test]
fn a_full_disk_is_named() {
    // Every write to this device fails as on a full disk.
    let full = Path::new("/dev/full");
    for (format, compression) in [("json", "none"), ("csv", "gz"), ("json", "zst"), ("parquet", "snappy")] {
        let format = FileFormat::parse(format, Some(compression)).unwrap();
        let written = writer::PartWriter::create(full.to_path_buf(), format, &schema()).and_then(|mut part| {
            part.write(&numbers(0..50_000).rows)?;
            part.finish()
        });
        match written.unwrap_err() {
            Error::Io { context, kind, .. } => {
                assert_eq!(
                    (context.as_str(), kind),
                    ("writing /dev/full", std::io::ErrorKind::StorageFull),
                    "{format:?}"
                );
            }
            other => panic!("{other}"),
        }
    }
}
