//! Tests: each file of a checkpoint damaged in each way, and what opening and reading it then says.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::json;

use super::failpoint::Action;
use super::*;
use crate::error::{Error, Result};

fn offsets(n: i64) -> OffsetEntry {
    let bids = SourceOffsets { start: (n > 0).then(|| json!({"row": n * 10})), end: Some(json!({"row": n * 10 + 10})) };
    OffsetEntry {
        timestamp: 1_700_000_000_000 + n,
        watermarks: BTreeMap::from([("bids#2".to_string(), -n)]),
        watermark: (n > 0).then_some(-n),
        drains: false,
        conf: BTreeMap::from([("multiple_watermark_policy".to_string(), "min".to_string())]),
        statics: BTreeMap::from([("t".to_string(), "v1".to_string())]),
        sources: BTreeMap::from([("bids".to_string(), bids), ("bids#2".to_string(), SourceOffsets::default())]),
    }
}

fn commit(n: i64) -> CommitEntry {
    let watermarks = BTreeMap::from([("bids".to_string(), n)]);
    let silent = BTreeMap::from([("bids".to_string(), n)]);
    CommitEntry { watermarks, watermark: Some(n), silent, drained: n == 3, late: n.unsigned_abs() }
}

fn open(dir: &Path) -> Result<Checkpoint> {
    Checkpoint::open(&dir.display().to_string(), "SELECT 1", Failpoints::default(), &LeaseTerms::default(), false)
}

/// Batches 0 to 3, of which the last is logged and not committed.
fn make(dir: &Path) -> String {
    let checkpoint = open(dir).unwrap();
    for n in 0..4 {
        checkpoint.log_offsets(n, &offsets(n as i64)).unwrap();
        if n < 3 {
            checkpoint.log_commit(n, &commit(n as i64)).unwrap();
        }
        checkpoint.source_log("bids").append(n, &[json!({"path": format!("f{n}")})]).unwrap();
    }
    checkpoint.id().to_string()
}

/// All that a restart reads.
fn restart(dir: &Path) -> Result<(Option<u64>, Option<u64>)> {
    let checkpoint = open(dir)?;
    let (logged, committed) = (checkpoint.latest_offsets()?, checkpoint.latest_commit()?);
    if let Some(n) = logged {
        assert_eq!(checkpoint.offsets(n)?, offsets(n as i64));
    }
    if let Some(n) = logged.and_then(|n| n.checked_sub(1)) {
        assert_eq!(checkpoint.offsets(n)?, offsets(n as i64));
    }
    if let Some(n) = committed {
        assert_eq!(checkpoint.commit(n)?, commit(n as i64));
    }
    let log = checkpoint.source_log("bids");
    if let Some(latest) = log.latest()? {
        assert_eq!(log.read(0, latest)?.last(), Some(&(latest, json!({"path": format!("f{latest}")}))));
    }
    Ok((logged, committed))
}

fn assert_names(result: Result<(Option<u64>, Option<u64>)>, file: &Path, what: &str) {
    match result {
        Err(Error::Corrupt { path, .. }) => assert_eq!(Path::new(&path), file, "{what}"),
        other => panic!("{what} of {} gives {other:?}", file.display()),
    }
}

#[test]
fn an_intact_checkpoint_comes_back_with_its_id() {
    let dir = tempfile::tempdir().unwrap();
    let id = make(dir.path());
    assert_eq!(restart(dir.path()).unwrap(), (Some(3), Some(2)));
    let again = Checkpoint::open(
        &format!("file://{}", dir.path().display()),
        "SELECT 2",
        Failpoints::default(),
        &LeaseTerms::default(),
        false,
    );
    let again = again.unwrap();
    assert_eq!((again.id(), again.query()), (id.as_str(), "SELECT 1"));
}

#[test]
fn truncated_emptied_and_flipped_files_are_named() {
    let dir = tempfile::tempdir().unwrap();
    make(dir.path());
    for name in ["metadata", "offsets/3", "offsets/2", "commits/2", "sources/bids/0", "sources/bids/3"] {
        let file = dir.path().join(name);
        let good = fs::read(&file).unwrap();
        for length in (0..good.len()).step_by(11) {
            fs::write(&file, &good[..length]).unwrap();
            assert_names(restart(dir.path()), &file, &format!("truncation to {length}"));
        }
        for bit in (0..good.len() * 8).step_by(13) {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            fs::write(&file, &bad).unwrap();
            assert_names(restart(dir.path()), &file, &format!("flip of bit {bit}"));
        }
        fs::write(&file, "v2 sha=1\n{}\n").unwrap();
        assert!(restart(dir.path()).unwrap_err().to_string().contains("written by a newer Levada"), "{name}");
        fs::write(&file, &good).unwrap();
    }
    assert_eq!(restart(dir.path()).unwrap(), (Some(3), Some(2)));
}

#[test]
fn a_removed_file_is_named_unless_the_protocol_allows_it() {
    // The file, and where a restart then stands or the path that it complains of.
    let cases = [
        ("metadata", Err("metadata")),
        ("offsets/0", Ok((Some(3), Some(2)))),
        ("offsets/1", Ok((Some(3), Some(2)))),
        ("offsets/2", Err("offsets/2")),
        ("offsets/3", Ok((Some(2), Some(2)))),
        ("commits/0", Ok((Some(3), Some(2)))),
        ("commits/2", Err("commits/2")),
        ("sources/bids/0", Err("sources/bids/0")),
        ("sources/bids/2", Err("sources/bids/2")),
        ("sources/bids/3", Ok((Some(3), Some(2)))),
        ("lease", Ok((Some(3), Some(2)))),
    ];
    for (name, outcome) in cases {
        let dir = tempfile::tempdir().unwrap();
        make(dir.path());
        fs::remove_file(dir.path().join(name)).unwrap();
        match outcome {
            Ok(stand) => assert_eq!(restart(dir.path()).unwrap(), stand, "{name}"),
            Err(path) => assert_names(restart(dir.path()), &dir.path().join(path), "removal"),
        }
    }
}

#[test]
fn a_gap_says_between_what() {
    let dir = tempfile::tempdir().unwrap();
    make(dir.path());
    fs::remove_file(dir.path().join("offsets/2")).unwrap();
    let message = restart(dir.path()).unwrap_err().to_string();
    assert!(message.ends_with("offsets/2 is missing between 1 and 3"), "{message}");
}

#[test]
fn a_commit_or_a_state_newer_than_the_offsets_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    make(dir.path());
    fs::create_dir_all(dir.path().join("state/agg")).unwrap();
    fs::write(dir.path().join("state/agg/3.delta"), "").unwrap();
    restart(dir.path()).unwrap();
    fs::remove_file(dir.path().join("offsets/3")).unwrap();
    assert_names(restart(dir.path()), &dir.path().join("offsets/3"), "lost offsets of a state");
    fs::remove_dir_all(dir.path().join("state")).unwrap();
    fs::remove_file(dir.path().join("offsets/2")).unwrap();
    assert_names(restart(dir.path()), &dir.path().join("offsets/2"), "lost offsets of a commit");
}

#[test]
fn left_overs_without_metadata_are_refused_and_empty_folders_are_fine() {
    for folder in ["offsets", "commits", "state", "sources"] {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join(folder)).unwrap();
        restart(dir.path()).unwrap();
        fs::remove_file(dir.path().join("metadata")).unwrap();
        fs::write(dir.path().join(folder).join("0"), "x").unwrap();
        let message = restart(dir.path()).unwrap_err().to_string();
        assert!(message.contains(&format!("though {folder}/ beside it is not empty")), "{message}");
    }
}

#[test]
fn foreign_files_are_named_and_temporary_ones_swept() {
    for name in ["offsets/007", "offsets/notes.txt", "commits/1.crc", "commits/-1", "offsets/99999999999999999999"] {
        let dir = tempfile::tempdir().unwrap();
        make(dir.path());
        fs::write(dir.path().join(name), "x").unwrap();
        assert_names(restart(dir.path()), &dir.path().join(name), "foreign name");
    }
    let dir = tempfile::tempdir().unwrap();
    make(dir.path());
    for name in [".tmp-1-1", "offsets/.tmp-1-1", "sources/bids/.tmp-7-0"] {
        fs::write(dir.path().join(name), "half").unwrap();
    }
    restart(dir.path()).unwrap();
    for name in [".tmp-1-1", "offsets/.tmp-1-1", "sources/bids/.tmp-7-0"] {
        assert!(!dir.path().join(name).exists(), "{name}");
    }
}

#[test]
fn a_file_under_anothers_name_and_a_folder_in_a_files_place_are_noticed() {
    let dir = tempfile::tempdir().unwrap();
    make(dir.path());
    fs::copy(dir.path().join("offsets/1"), dir.path().join("offsets/3")).unwrap();
    assert_names(restart(dir.path()), &dir.path().join("offsets/3"), "copy");
    fs::remove_file(dir.path().join("offsets/3")).unwrap();
    fs::create_dir(dir.path().join("offsets/3")).unwrap();
    assert_names(restart(dir.path()), &dir.path().join("offsets/3"), "folder");
    fs::remove_dir_all(dir.path().join("commits")).unwrap();
    fs::write(dir.path().join("commits"), "x").unwrap();
    assert_names(restart(dir.path()), &dir.path().join("commits"), "file");
}

#[test]
fn a_newer_format_is_refused_by_its_number() {
    let dir = tempfile::tempdir().unwrap();
    let id = make(dir.path());
    let line = format!(r#"{{"id":"{id}","format":2,"levada":"9.0.0","query":"SELECT 1","epoch":7}}"#);
    fs::write(dir.path().join("metadata"), text::encode(&[line])).unwrap();
    let message = restart(dir.path()).unwrap_err().to_string();
    assert!(message.contains("format 2, made by Levada 9.0.0; this one reads up to 1"), "{message}");
}

#[test]
fn two_holders_and_two_writers_exclude_each_other() {
    let dir = tempfile::tempdir().unwrap();
    let first = open(dir.path()).unwrap();
    assert!(matches!(open(dir.path()), Err(Error::Conflict { .. })));
    fs::create_dir(dir.path().join("offsets")).unwrap();
    fs::write(dir.path().join("offsets/0"), "another run's").unwrap();
    let message = first.log_offsets(0, &offsets(0)).unwrap_err().to_string();
    assert!(message.contains("offsets/0 is there already: another run wrote it"), "{message}");
    assert_eq!(fs::read(dir.path().join("offsets/0")).unwrap(), b"another run's");
}

#[test]
fn nothing_is_written_once_the_lease_is_given_up() {
    let dir = tempfile::tempdir().unwrap();
    let checkpoint = open(dir.path()).unwrap();
    let (store, log) = (checkpoint.store(), checkpoint.source_log("s"));
    log.append(0, &[]).unwrap();
    drop(checkpoint);
    assert!(matches!(log.append(1, &[]), Err(Error::Conflict { .. })));
    assert!(matches!(store.put_new("state/a/0.delta", &mut |_| Ok(())), Err(Error::Conflict { .. })));
    assert!(matches!(store.delete("metadata"), Err(Error::Conflict { .. })));
    assert!(dir.path().join("metadata").exists() && !dir.path().join("state").exists());
}

#[test]
fn a_purge_keeps_what_a_restart_needs() {
    let dir = tempfile::tempdir().unwrap();
    make(dir.path());
    let checkpoint = open(dir.path()).unwrap();
    checkpoint.purge(100).unwrap();
    assert_eq!(checkpoint.store().list("offsets").unwrap(), ["2", "3"]);
    assert_eq!(checkpoint.store().list("commits").unwrap(), ["2"]);
    assert!(matches!(checkpoint.offsets(1), Err(Error::Corrupt { .. })));
    drop(checkpoint);
    assert_eq!(restart(dir.path()).unwrap(), (Some(3), Some(2)));
}

#[test]
fn special_characters_in_the_path_work_and_a_temporary_one_goes() {
    let dir = tempfile::tempdir().unwrap();
    let odd = dir.path().join("a b/chk @#chk %41");
    make(&odd);
    assert_eq!(restart(&odd).unwrap(), (Some(3), Some(2)));
    let temporary = Checkpoint::temporary("SELECT 1", Failpoints::default()).unwrap();
    temporary.log_offsets(0, &offsets(0)).unwrap();
    let location = temporary.location().to_string();
    assert!(Path::new(&location).join("offsets/0").exists());
    drop(temporary);
    assert!(!Path::new(&location).exists());
}

#[test]
fn a_run_killed_anywhere_leaves_what_the_next_one_understands() {
    for action in [Action::Kill, Action::Error, Action::Torn(30), Action::Enospc, Action::LostFsync] {
        let dir = tempfile::tempdir().unwrap();
        make(dir.path());
        let failpoints = Failpoints::default();
        let checkpoint =
            Checkpoint::open(&dir.path().display().to_string(), "", failpoints.clone(), &LeaseTerms::default(), false)
                .unwrap();
        failpoints.arm("log.write", 1, action).unwrap();
        let error = checkpoint.log_commit(3, &commit(3)).unwrap_err();
        let file = dir.path().join("commits/3");
        let dead = failpoints.is_killed();
        match action {
            Action::Kill => assert!(dead && !file.exists() && error.to_string() == "failpoint log.write: killed"),
            Action::Error => assert!(!dead && !file.exists() && error.to_string() == "failpoint log.write: error"),
            Action::Torn(_) => assert!(dead && fs::read(&file).unwrap().len() == 30),
            Action::LostFsync => assert!(dead && fs::read(&file).unwrap().is_empty()),
            Action::Enospc => {
                assert!(matches!(error, Error::Io { kind: std::io::ErrorKind::StorageFull, .. }), "{error:?}");
                assert!(!dead && !file.exists());
            }
        }
        let names = fs::read_dir(dir.path().join("commits")).unwrap().map(|e| e.unwrap().file_name());
        assert!(names.into_iter().all(|name| !name.to_string_lossy().starts_with(".tmp-")), "{action:?}");
        // There is room again, and an error is an error once; the dead stay dead.
        assert_eq!(checkpoint.log_commit(3, &commit(3)).is_ok(), !dead);
        assert_eq!(checkpoint.store().delete("commits/0").is_ok(), !dead);
        drop(checkpoint);
        match action {
            Action::Torn(_) | Action::LostFsync => assert_names(restart(dir.path()), &file, "torn"),
            Action::Kill => assert_eq!(restart(dir.path()).unwrap(), (Some(3), Some(2))),
            _ => assert_eq!(restart(dir.path()).unwrap(), (Some(3), Some(3))),
        }
    }
}

#[test]
fn a_lost_sync_shows_at_the_kill_that_follows() {
    let dir = tempfile::tempdir().unwrap();
    make(dir.path());
    let failpoints = Failpoints::default();
    let checkpoint =
        Checkpoint::open(&dir.path().display().to_string(), "", failpoints.clone(), &LeaseTerms::default(), false)
            .unwrap();
    failpoints.arm("log.write", 1, Action::LostFsync).unwrap();
    failpoints.arm("commit.after", 1, Action::Kill).unwrap();
    checkpoint.log_commit(3, &commit(3)).unwrap();
    assert_eq!(checkpoint.commit(3).unwrap(), commit(3));
    assert!(failpoints.hit("commit.after").is_err());
    drop(checkpoint);
    assert_names(restart(dir.path()), &dir.path().join("commits/3"), "lost sync");
}
