//! The sink as a whole: batches, crashes at every step, foreign owners, layouts and formats.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{AsArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};
use tempfile::TempDir;

use super::*;
use crate::checkpoint::Failpoints;
use crate::checkpoint::failpoint::Action;
use crate::delta::Op;
use crate::options::{OptionEntry, OptionValue};

pub(super) fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("k", DataType::Utf8, true), Field::new("n", DataType::Int64, false)]))
}

pub(super) fn rows(values: &[(Option<&str>, i64)]) -> Delta {
    let keys = StringArray::from_iter(values.iter().map(|v| v.0));
    let numbers = Int64Array::from_iter_values(values.iter().map(|v| v.1));
    Delta::insert(RecordBatch::try_new(schema(), vec![Arc::new(keys), Arc::new(numbers)]).unwrap())
}

pub(super) fn numbers(values: impl IntoIterator<Item = i64>) -> Delta {
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
        keys: None,
        only_adds: false,
        delay: None,
        partitions: 2,
        committed: None,
        failpoints: Failpoints::default(),
        durable: false,
    }
}

pub(super) fn options(path: &Path, more: &[(&str, &str)]) -> Options {
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
pub(super) fn run(sink: &mut FileSink, batch: BatchId, changes: Vec<Delta>) -> Result<Begin> {
    let begin = sink.begin(batch)?;
    for (partition, changes) in changes.into_iter().enumerate() {
        sink.push(partition, changes)?;
    }
    sink.commit(&BatchSummary::default())?;
    Ok(begin)
}

/// What a reader of the manifest sees, in one column, sorted.
pub(super) fn visible(path: &Path) -> Vec<i64> {
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
pub(super) fn on_disk(path: &Path) -> Vec<String> {
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

pub(super) fn named(path: &Path) -> Vec<String> {
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
    let folder = Box::new(LocalFolder::new(dir.path().to_path_buf(), "out", true));
    let mut sink = open_in(&json(dir.path()), &context("a", "run"), "out", folder, store.clone()).unwrap();
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
    let mut sink = open(&json(dir.path()), &context("a", "run")).unwrap();
    fs::write(dir.path().join("part-00000-c000.json"), "{}").unwrap();
    fs::write(dir.path().join("notes.txt"), "").unwrap();
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

#[test]
fn a_folder_that_holds_other_files_is_not_taken_over() {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("b.json"), "{}").unwrap();
    fs::write(dir.path().join("a.json"), "{}").unwrap();
    let error = open(&json(dir.path()), &context("a", "run")).err().unwrap().to_string();
    assert!(error.contains("holds a.json"), "{error}");
    assert!(!dir.path().join("_levada").exists());
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
