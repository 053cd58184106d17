//! Tests: state files come back as they were written, and each damage to each of them is noticed.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};

use super::file::{self, Delta, Kind, Owner, StateContents, read, write_delta, write_snapshot};
use super::versions::{discard_above, list_versions, purge, recover};
use crate::checkpoint::failpoint::Action;
use crate::checkpoint::{FailStore, Failpoints, LocalStore};
use crate::error::{Error, Result};

const FOLDER: &str = "state/agg";

fn owner() -> Owner {
    Owner { operator: "agg".into(), schema: "0badcafe".into() }
}

fn rows(range: std::ops::Range<i64>) -> RecordBatch {
    let keys: StringArray = range.clone().map(|n| (n % 7 != 0).then(|| format!("key {n}"))).collect();
    let values = Int64Array::from_iter_values(range);
    RecordBatch::try_from_iter_with_nullable([
        ("k", Arc::new(keys) as ArrayRef, true),
        ("v", Arc::new(values) as ArrayRef, false),
    ])
    .unwrap()
}

fn keys(range: std::ops::Range<i64>) -> RecordBatch {
    rows(range).project(&[0]).unwrap()
}

fn changed(upserts: &[RecordBatch], deletes: &[RecordBatch]) -> Delta {
    Delta { upserts: upserts.to_vec(), deletes: deletes.to_vec(), forgotten_until: None }
}

/// Deltas 0 to 6, snapshots 2 and 4.
fn make(store: &LocalStore) {
    for version in 0..7 {
        let n = version as i64 * 10;
        write_delta(store, FOLDER, &owner(), version, &changed(&[rows(n..n + 5), rows(n + 5..n + 9)], &[keys(n..n + 2)]))
            .unwrap();
        if version == 2 || version == 4 {
            write_snapshot(store, FOLDER, &owner(), version, [rows(0..n), rows(n..n + 9)].map(Ok).into_iter()).unwrap();
        }
    }
}

fn delta(store: &LocalStore, version: u64) -> Result<StateContents> {
    read(store, FOLDER, &owner(), Kind::Delta, version)
}

#[test]
fn files_come_back_as_they_were_written() {
    let dir = tempfile::tempdir().unwrap();
    let store = LocalStore::new(dir.path());
    make(&store);
    let contents = delta(&store, 3).unwrap();
    assert_eq!(contents.upserts, [rows(30..35), rows(35..39)]);
    assert_eq!(contents.deletes, [keys(30..32)]);
    let index = contents.index;
    assert_eq!((index.version, index.base, index.upserts.rows, index.deletes.rows), (3, Some(2), 9, 2));
    let snapshot = read(&store, FOLDER, &owner(), Kind::Snapshot, 4).unwrap();
    assert_eq!(
        (snapshot.upserts, snapshot.deletes, snapshot.index.base),
        (vec![rows(0..40), rows(40..49)], vec![], None)
    );
    // Without rows; and only with deletes, beside an empty batch.
    let length = write_delta(&store, FOLDER, &owner(), 7, &changed(&[], &[])).unwrap();
    assert_eq!(fs::read(dir.path().join("state/agg/7.delta")).unwrap().len() as u64, length);
    write_delta(&store, FOLDER, &owner(), 8, &changed(&[rows(0..0)], &[keys(1..3)])).unwrap();
    let forgot = Delta { forgotten_until: Some(-1), ..Delta::default() };
    write_delta(&store, FOLDER, &owner(), 9, &forgot).unwrap();
    assert_eq!(delta(&store, 9).unwrap().index.forgotten_until, Some(-1));
    assert!(delta(&store, 7).unwrap().upserts.is_empty());
    assert_eq!(delta(&store, 8).unwrap().deletes, [keys(1..3)]);
}

#[test]
fn an_index_is_as_documented() {
    let dir = tempfile::tempdir().unwrap();
    let owner = Owner { operator: "aggregate".into(), schema: "8f175f73".into() };
    write_delta(&LocalStore::new(dir.path()), FOLDER, &owner, 7, &changed(&[], &[])).unwrap();
    let bytes = fs::read(dir.path().join("state/agg/7.delta")).unwrap();
    let index = std::str::from_utf8(&bytes[8..bytes.len() - 28]).unwrap();
    let page = include_str!("../../docs/checkpoint.md");
    assert!(page.contains(&format!("```json\n{index}\n```")), "docs/checkpoint.md does not show:\n{index}");
}

#[test]
fn every_damage_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let store = LocalStore::new(dir.path());
    make(&store);
    let path = dir.path().join("state/agg/5.delta");
    let good = fs::read(&path).unwrap();
    let assert_corrupt = |bytes: &[u8], what: String| {
        fs::write(&path, bytes).unwrap();
        match delta(&store, 5) {
            Err(Error::Corrupt { path: named, .. }) => assert_eq!(Path::new(&named), path),
            other => panic!("{what}: {other:?}"),
        }
    };
    for length in (0..good.len()).step_by(17).chain(good.len() - 30..good.len()) {
        assert_corrupt(&good[..length], format!("truncated to {length}"));
    }
    for bit in (0..good.len() * 8).step_by(37).chain((good.len() - 30) * 8..good.len() * 8) {
        let mut bad = good.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        assert_corrupt(&bad, format!("bit {bit}"));
    }
    let mut longer = good.clone();
    longer.extend_from_slice(&good[good.len() - 28..]);
    assert_corrupt(&longer, "a second footer".into());
    assert_corrupt(b"PAR1 something else entirely, long enough", "foreign".into());
    assert_corrupt(&fs::read(dir.path().join("state/agg/4.delta")).unwrap(), "another version".into());
    assert_corrupt(&fs::read(dir.path().join("state/agg/4.snapshot")).unwrap(), "another kind".into());
    fs::remove_file(&path).unwrap();
    assert!(delta(&store, 5).unwrap_err().to_string().ends_with("state/agg/5.delta: the file is missing"));
    fs::write(&path, &good).unwrap();
    let other = Owner { schema: "00000000".into(), ..owner() };
    assert!(matches!(read(&store, FOLDER, &other, Kind::Delta, 5), Err(Error::Corrupt { .. })));
    delta(&store, 5).unwrap();
}

#[test]
fn a_lost_or_damaged_snapshot_only_lengthens_the_recovery() {
    let dir = tempfile::tempdir().unwrap();
    let store = LocalStore::new(dir.path());
    make(&store);
    let stand = |version| {
        let recovery = recover(&store, FOLDER, &owner(), version).unwrap();
        (recovery.snapshot.map(|s| s.index.version), recovery.deltas, recovery.passed_over.len())
    };
    assert_eq!(stand(6), (Some(4), vec![5, 6], 0));
    let length = |file: &str| fs::metadata(dir.path().join("state/agg").join(file)).unwrap().len();
    let files = ["4.snapshot", "5.delta", "6.delta"].map(length);
    assert_eq!(super::versions::length(&store, FOLDER, 6).unwrap(), files.iter().sum::<u64>());
    assert_eq!(super::versions::length(&store, FOLDER, 1).unwrap(), length("0.delta") + length("1.delta"));
    assert_eq!(stand(4), (Some(4), vec![], 0));
    assert_eq!(stand(3), (Some(2), vec![3], 0));
    assert_eq!(stand(1), (None, vec![0, 1], 0));
    let newest = dir.path().join("state/agg/4.snapshot");
    let good = fs::read(&newest).unwrap();
    fs::write(&newest, &good[..good.len() / 2]).unwrap();
    assert_eq!(stand(6), (Some(2), vec![3, 4, 5, 6], 1));
    fs::remove_file(&newest).unwrap();
    fs::remove_file(dir.path().join("state/agg/2.snapshot")).unwrap();
    assert_eq!(stand(6), (None, vec![0, 1, 2, 3, 4, 5, 6], 0));
}

#[test]
fn a_lost_delta_ends_it_by_path() {
    let dir = tempfile::tempdir().unwrap();
    let store = LocalStore::new(dir.path());
    make(&store);
    fs::remove_file(dir.path().join("state/agg/5.delta")).unwrap();
    let error = recover(&store, FOLDER, &owner(), 6).unwrap_err().to_string();
    assert!(error.contains("state/agg/5.delta: the file is missing"), "{error}");
    // What is older needs it not, and what is covered by a snapshot neither.
    fs::remove_file(dir.path().join("state/agg/3.delta")).unwrap();
    assert_eq!(recover(&store, FOLDER, &owner(), 4).unwrap().deltas, [0; 0]);
    // Now the snapshot is damaged that covered it: that is the file to name.
    let snapshot = dir.path().join("state/agg/4.snapshot");
    fs::write(&snapshot, "x").unwrap();
    let error = recover(&store, FOLDER, &owner(), 4).unwrap_err();
    assert!(matches!(&error, Error::Corrupt { path, .. } if Path::new(path) == snapshot), "{error}");
}

#[test]
fn a_purge_never_takes_what_a_kept_version_needs() {
    for keep_from in 0..=7 {
        let dir = tempfile::tempdir().unwrap();
        let store = LocalStore::new(dir.path());
        make(&store);
        purge(&store, FOLDER, keep_from).unwrap();
        for version in keep_from.min(6)..=6 {
            let recovery = recover(&store, FOLDER, &owner(), version).unwrap();
            assert!(recovery.deltas.iter().all(|n| delta(&store, *n).is_ok()), "{keep_from} {version}");
        }
        let left = list_versions(&store, FOLDER).unwrap();
        let first = left.deltas.first().copied();
        assert_eq!(
            first,
            Some(match keep_from {
                0 | 1 => 0,
                2 | 3 => 3,
                _ => 5,
            }),
            "{keep_from}"
        );
    }
}

#[test]
fn a_purge_does_not_rely_on_a_damaged_snapshot() {
    let dir = tempfile::tempdir().unwrap();
    let store = LocalStore::new(dir.path());
    make(&store);
    fs::write(dir.path().join("state/agg/4.snapshot"), "torn").unwrap();
    assert_eq!(purge(&store, FOLDER, 5).unwrap(), 3);
    let recovery = recover(&store, FOLDER, &owner(), 6).unwrap();
    assert_eq!((recovery.snapshot.unwrap().index.version, recovery.deltas), (2, vec![3, 4, 5, 6]));
}

#[test]
fn a_run_that_died_before_its_commit_is_taken_back() {
    let dir = tempfile::tempdir().unwrap();
    let store = LocalStore::new(dir.path());
    make(&store);
    assert!(matches!(write_delta(&store, FOLDER, &owner(), 6, &changed(&[], &[])), Err(Error::Conflict { .. })));
    discard_above(&store, FOLDER, Some(3)).unwrap();
    let left = list_versions(&store, FOLDER).unwrap();
    assert_eq!((left.deltas.last(), left.snapshots.last()), (Some(&3), Some(&2)));
    write_delta(&store, FOLDER, &owner(), 4, &changed(&[], &[])).unwrap();
    discard_above(&store, FOLDER, None).unwrap();
    assert_eq!(list_versions(&store, FOLDER).unwrap(), Default::default());
    fs::write(dir.path().join("state/agg/4.delta.bak"), "").unwrap();
    assert!(matches!(list_versions(&store, FOLDER), Err(Error::Corrupt { .. })));
}

#[test]
fn failures_while_writing_leave_no_half_file() {
    let dir = tempfile::tempdir().unwrap();
    let failpoints = Failpoints::default();
    let store = FailStore::checkpoint(Arc::new(LocalStore::new(dir.path())), failpoints.clone());
    failpoints.arm("state.write", 1, Action::Enospc).unwrap();
    let full = write_delta(&store, FOLDER, &owner(), 0, &changed(&[rows(0..9)], &[])).unwrap_err();
    assert!(matches!(full, Error::Io { kind: std::io::ErrorKind::StorageFull, .. }), "{full:?}");
    let broken = [Ok(rows(0..9)), Err(Error::conflict("the rows ended"))];
    let broken = write_snapshot(&store, FOLDER, &owner(), 0, broken.into_iter()).unwrap_err();
    assert_eq!(broken.to_string(), "the rows ended");
    let mixed = write_delta(&store, FOLDER, &owner(), 0, &changed(&[rows(0..1), keys(0..1)], &[])).unwrap_err();
    assert!(matches!(mixed, Error::Internal { .. }), "{mixed:?}");
    let strict = RecordBatch::try_from_iter([("k", Arc::new(StringArray::from(vec!["a"])) as ArrayRef)]).unwrap();
    let nulls = write_delta(&store, FOLDER, &owner(), 0, &changed(&[strict, keys(0..1)], &[])).unwrap_err();
    assert!(matches!(nulls, Error::Internal { .. }), "{nulls:?}");
    assert_eq!(fs::read_dir(dir.path().join(FOLDER)).unwrap().count(), 0);
    failpoints.arm("state.write", 1, Action::Torn(40)).unwrap();
    write_delta(&store, FOLDER, &owner(), 0, &changed(&[rows(0..9)], &[])).unwrap_err();
    assert!(failpoints.is_killed());
    assert!(!file::is_intact(&store, FOLDER, Kind::Delta, 0).unwrap());
}
