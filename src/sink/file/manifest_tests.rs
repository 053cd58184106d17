//! The manifest alone: compaction, damage, and readers that are overtaken.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tempfile::TempDir;

use super::manifest::{FileEntry, Manifest, committed_files, committed_files_in};
use super::tests::{context, json};
use super::*;

fn entry(batch: BatchId) -> Vec<FileEntry> {
    vec![FileEntry { path: format!("part-{batch}"), size: batch, rows: 1, crc32c: batch as u32 }]
}

fn paths(count: u64) -> Vec<String> {
    (0..count).map(|batch| format!("part-{batch}")).collect()
}

fn manifest(dir: &Path) -> Manifest {
    Manifest::open(Arc::new(LocalStore::volatile(dir)), &context("a", "run")).unwrap().0
}

fn read(dir: &Path) -> Vec<String> {
    committed_files_in(dir).unwrap().unwrap().into_iter().map(|file| file.path).collect()
}

fn names(dir: &Path) -> Vec<String> {
    LocalStore::new(dir).list(manifest::FOLDER).unwrap()
}

#[test]
fn entries_are_put_together_and_nothing_is_lost() {
    let dir = TempDir::new().unwrap();
    let mut manifest = manifest(dir.path());
    for batch in 0..250 {
        manifest.append(batch, entry(batch)).unwrap();
        manifest.compact_when_due().unwrap();
        if batch % 40 == 0 || (95..105).contains(&batch) {
            assert_eq!(read(dir.path()), paths(batch + 1));
        }
    }
    assert_eq!(read(dir.path()), paths(250));
    let names = names(dir.path());
    assert_eq!(names.iter().filter(|name| name.ends_with(".compact")).collect::<Vec<_>>(), ["199.compact"]);
    assert_eq!(names.len(), 50 + 1 + 1);
    let (mut again, files) = Manifest::open(Arc::new(LocalStore::new(dir.path())), &context("a", "run-2")).unwrap();
    assert_eq!(files.len(), 250);
    assert!(again.contains(3).unwrap() && again.contains(249).unwrap() && !again.contains(250).unwrap());
    again.append(250, entry(250)).unwrap();
    assert_eq!(read(dir.path()), paths(251));
}

#[test]
fn a_folder_without_a_manifest_is_told_from_an_empty_one() {
    let dir = TempDir::new().unwrap();
    assert_eq!(committed_files_in(dir.path()).unwrap(), None);
    assert_eq!(committed_files_in(&dir.path().join("missing")).unwrap(), None);
    manifest(dir.path());
    assert_eq!(committed_files_in(dir.path()).unwrap(), Some(vec![]));
}

/// A store whose deletes fail: a crash right behind a compaction.
#[derive(Debug)]
struct NoDeletes(LocalStore);

impl Store for NoDeletes {
    fn put_new(&self, path: &str, write: &mut dyn FnMut(&mut dyn Write) -> std::io::Result<()>) -> Result<()> {
        self.0.put_new(path, write)
    }
    fn get(&self, path: &str) -> Result<Option<Vec<u8>>> {
        self.0.get(path)
    }
    fn list(&self, folder: &str) -> Result<Vec<String>> {
        self.0.list(folder)
    }
    fn delete(&self, path: &str) -> Result<()> {
        Err(Error::io(format!("removing {path}"), &std::io::ErrorKind::PermissionDenied.into()))
    }
    fn describe(&self, path: &str) -> String {
        self.0.describe(path)
    }
}

#[test]
fn a_crash_in_a_compaction_leaves_all_entries() {
    let dir = TempDir::new().unwrap();
    let store = Arc::new(NoDeletes(LocalStore::volatile(dir.path())));
    let mut manifest = Manifest::open(store, &context("a", "run")).unwrap().0;
    for batch in 0..100 {
        manifest.append(batch, entry(batch)).unwrap();
    }
    assert!(manifest.compact_when_due().is_err());
    assert_eq!(names(dir.path()).len(), 102);
    assert_eq!(read(dir.path()), paths(100));
    let mut manifest = self::manifest(dir.path());
    assert_eq!(names(dir.path()), ["99.compact", "owner"]);
    manifest.append(100, entry(100)).unwrap();
    assert_eq!(read(dir.path()), paths(101));
}

/// A store that lets the owner compact between a reader's listing and its reading.
#[derive(Debug)]
struct Overtaken {
    inner: LocalStore,
    gets: AtomicUsize,
    owner: std::sync::Mutex<Manifest>,
}

impl Store for Overtaken {
    fn put_new(&self, _path: &str, _write: &mut dyn FnMut(&mut dyn Write) -> std::io::Result<()>) -> Result<()> {
        Err(Error::internal("a reader writes nothing"))
    }
    fn get(&self, path: &str) -> Result<Option<Vec<u8>>> {
        if self.gets.fetch_add(1, Ordering::SeqCst) == 50 {
            self.owner.lock().unwrap().compact_when_due()?;
        }
        self.inner.get(path)
    }
    fn list(&self, folder: &str) -> Result<Vec<String>> {
        self.inner.list(folder)
    }
    fn delete(&self, _path: &str) -> Result<()> {
        Err(Error::internal("a reader removes nothing"))
    }
    fn describe(&self, path: &str) -> String {
        self.inner.describe(path)
    }
}

#[test]
fn a_reader_that_is_overtaken_looks_again() {
    let dir = TempDir::new().unwrap();
    let mut owner = manifest(dir.path());
    for batch in 0..100 {
        owner.append(batch, entry(batch)).unwrap();
    }
    let store = Overtaken { inner: LocalStore::new(dir.path()), gets: 0.into(), owner: owner.into() };
    let found = committed_files(&store).unwrap().unwrap();
    assert_eq!(found.into_iter().map(|file| file.path).collect::<Vec<_>>(), paths(100));
    assert_eq!(names(dir.path()), ["99.compact", "owner"]);
}

/// A manifest with a compact file and entries behind it.
fn filled() -> TempDir {
    let dir = TempDir::new().unwrap();
    let store = Arc::new(LocalStore::volatile(dir.path()));
    let mut manifest = Manifest::open(store, &context("a", "run")).unwrap().0;
    for batch in 0..103 {
        manifest.append(batch, entry(batch)).unwrap();
        manifest.compact_when_due().unwrap();
    }
    dir
}

#[test]
fn damage_is_reported_by_path() {
    let whole = filled();
    assert_eq!(read(whole.path()), paths(103));
    assert_eq!(names(whole.path()), ["100", "101", "102", "99.compact", "owner"]);
    for name in names(whole.path()) {
        let path = whole.path().join("_levada").join(&name);
        let bytes = fs::read(&path).unwrap();
        let mut flipped = bytes.clone();
        flipped[bytes.len() / 2] ^= 1;
        let damages: [&[u8]; 5] = [b"", &bytes[..5], &bytes[..bytes.len() - 1], &flipped, b"v1 crc32c=00000000\n"];
        for damage in damages {
            fs::write(&path, damage).unwrap();
            let error = open(&json(whole.path()), &context("a", "run")).err().unwrap();
            assert!(
                matches!(&error, Error::Corrupt { path, .. } if path.ends_with(&format!("_levada/{name}"))),
                "{error}"
            );
            if name != "owner" {
                assert!(matches!(committed_files_in(whole.path()), Err(Error::Corrupt { .. })), "{name}");
            }
        }
        fs::write(&path, &bytes).unwrap();
    }
    assert_eq!(read(whole.path()), paths(103));
}

#[test]
fn a_lost_file_is_noticed_by_the_one_behind_it() {
    for lost in ["99.compact", "100", "101"] {
        let dir = filled();
        fs::remove_file(dir.path().join("_levada").join(lost)).unwrap();
        let error = committed_files_in(dir.path()).unwrap_err().to_string();
        assert!(error.contains("an entry is missing"), "{lost}: {error}");
        assert!(matches!(open(&json(dir.path()), &context("a", "run")).err().unwrap(), Error::Corrupt { .. }));
    }
}

#[test]
fn foreign_names_are_reported() {
    for name in ["07", "7.tmp", "x.compact", "owner2"] {
        let dir = filled();
        fs::write(dir.path().join("_levada").join(name), "").unwrap();
        let error = committed_files_in(dir.path()).unwrap_err();
        assert!(matches!(&error, Error::Corrupt { path, .. } if path.ends_with(name)), "{error}");
    }
    let dir = filled();
    fs::write(dir.path().join("_levada/.nfs0001"), "").unwrap();
    assert_eq!(read(dir.path()).len(), 103);
}

#[test]
fn an_entry_under_another_name_is_refused() {
    let dir = filled();
    fs::copy(dir.path().join("_levada/102"), dir.path().join("_levada/103")).unwrap();
    let error = committed_files_in(dir.path()).unwrap_err().to_string();
    assert!(error.contains("the file holds the entry of batch 102"), "{error}");
}

#[test]
fn a_lost_newest_entry_is_noticed_by_its_files() {
    let dir = TempDir::new().unwrap();
    let mut sink = open(&json(dir.path()), &context("a", "run")).unwrap();
    for batch in 0..2 {
        super::tests::run(&mut sink, batch, vec![super::tests::numbers([1])]).unwrap();
    }
    drop(sink);
    let lost = dir.path().join("_levada/1");
    fs::remove_file(&lost).unwrap();
    let later = |committed| SinkContext { committed: Some(committed), ..context("a", "later") };
    let error = open(&json(dir.path()), &later(1)).err().unwrap();
    assert!(matches!(&error, Error::Corrupt { path, .. } if Path::new(path) == lost), "{error}");
    // A batch that is not done yet is run again: what its dead run has left goes.
    open(&json(dir.path()), &later(0)).unwrap();
    assert_eq!(super::tests::on_disk(dir.path()), super::tests::named(dir.path()));
}
