//! Which files are taken, in which order and batches, and after a restart.

use std::fs;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use super::*;
use crate::options::{OptionEntry, OptionValue, Options};
use crate::storage::Settings;

/// A directory, its options, and a log that outlives a restart.
struct Setup {
    dir: tempfile::TempDir,
    options: FileOptions,
    discovery: Discovery,
}

pub(in crate::source) fn options(list: &[(&str, &str)]) -> Options {
    let entry = |(name, value): &(&str, &str)| OptionEntry {
        name: name.to_string(),
        value: OptionValue::Text(value.to_string()),
        span: Default::default(),
    };
    Options { entries: list.iter().map(entry).collect() }
}

fn setup(extra: &[(&str, &str)]) -> Setup {
    let dir = tempfile::tempdir().unwrap();
    let mut list = vec![("path", dir.path().to_str().unwrap()), ("format", "text")];
    list.extend_from_slice(extra);
    let options = FileOptions::parse(&options(&list)).unwrap();
    let discovery = Discovery::open(SourceLog::in_memory()).unwrap();
    Setup { dir, options, discovery }
}

pub(in crate::source) fn write(dir: &Path, name: &str, content: &[u8], seconds: u64) {
    let path = dir.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, content).unwrap();
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.set_modified(UNIX_EPOCH + Duration::from_secs(seconds)).unwrap();
}

impl Setup {
    fn write(&self, name: &str, seconds: u64) {
        write(self.dir.path(), name, name.as_bytes(), seconds);
    }

    fn place(&self) -> Place {
        Place::parse(&self.options.path, &Settings::default(), None).unwrap()
    }

    fn try_next(&mut self, after: Option<&Offset>, limit: &ReadLimit) -> Result<Option<Offset>> {
        let place = self.place();
        self.discovery.next(&place, &self.options, after, limit)
    }

    fn next(&mut self, after: Option<&Offset>, limit: &ReadLimit) -> Option<Offset> {
        self.try_next(after, limit).unwrap()
    }

    fn names(&self, start: Option<&Offset>, end: &Offset) -> String {
        let range = OffsetRange { start: start.cloned(), end: end.clone() };
        let files = self.discovery.files(&range).unwrap();
        files.iter().map(|file| file.path.as_str()).collect::<Vec<_>>().join(" ")
    }

    /// Batches until there is nothing more, each as the names of its files; the offset reached.
    fn batches(&mut self, after: Option<Offset>, limit: &ReadLimit) -> (Vec<String>, Option<Offset>) {
        let (mut batches, mut at) = (Vec::new(), after);
        while let Some(end) = self.next(at.as_ref(), limit) {
            batches.push(self.names(at.as_ref(), &end));
            self.discovery.forget(&end).unwrap();
            at = Some(end);
        }
        (batches, at)
    }

    /// What another process finds: only what is in the log.
    fn restart(&mut self) {
        let count = self.discovery.count;
        let lines = (0..count).flat_map(|number| {
            let files = self.discovery.entry(number).unwrap();
            files.iter().map(|file| (number, serde_json::to_value(file).unwrap())).collect::<Vec<_>>()
        });
        let lines: Vec<_> = lines.collect();
        let log = SourceLog::in_memory();
        for number in 0..count {
            let entry: Vec<_> = lines.iter().filter(|(n, _)| *n == number).map(|(_, line)| line.clone()).collect();
            log.append(number, &entry).unwrap();
        }
        self.discovery = Discovery::with_lines(log, lines).unwrap();
    }
}

/// Keeps every entry, as a log on disk does.
fn no_forget(setup: &mut Setup, after: Option<Offset>, limit: &ReadLimit) -> (Vec<String>, Option<Offset>) {
    let (mut batches, mut at) = (Vec::new(), after);
    while let Some(end) = setup.next(at.as_ref(), limit) {
        batches.push(setup.names(at.as_ref(), &end));
        at = Some(end);
    }
    (batches, at)
}

const LIMIT: ReadLimit = ReadLimit { unlimited: false, until: None, max_bytes: None, look: false };
const ALL: ReadLimit = ReadLimit { unlimited: true, until: None, max_bytes: None, look: false };

#[test]
fn files_come_by_time_then_path_under_the_limit() {
    let mut setup = setup(&[("max_files_per_trigger", "2")]);
    for (name, seconds) in [("c", 102), ("a", 100), ("b", 101)] {
        setup.write(name, seconds);
    }
    let (batches, at) = setup.batches(None, &LIMIT);
    assert_eq!(batches, ["a b", "c"]);
    assert_eq!(at.as_ref().map(|at| at.0.to_string()).as_deref(), Some(r#"{"logOffset":1}"#));
    for (name, seconds) in [("f", 112), ("e", 112), ("d", 110), ("g", 113), ("k", 113)] {
        setup.write(name, seconds);
    }
    let (batches, at) = setup.batches(at, &LIMIT);
    assert_eq!(batches, ["d e", "f g", "k"]);
    assert_eq!(setup.next(at.as_ref(), &LIMIT), None);
}

#[test]
fn without_a_limit_all_that_is_new_is_one_batch() {
    let mut setup = setup(&[]);
    assert_eq!(setup.next(None, &LIMIT), None);
    for name in ["a", "b", "c"] {
        setup.write(name, 5);
    }
    let (batches, at) = setup.batches(None, &LIMIT);
    assert_eq!(batches, ["a b c"]);
    setup.write("0", 1);
    assert_eq!(setup.batches(at, &LIMIT).0, ["0"], "an old time is no reason to be passed over");
}

#[test]
fn a_limit_in_bytes_takes_one_file_at_least() {
    let mut setup = setup(&[("max_bytes_per_trigger", "6")]);
    for (name, seconds) in [("aaa", 1), ("bbb", 2), ("c", 3), ("ten_bytes_", 4), ("d", 5)] {
        setup.write(name, seconds);
    }
    assert_eq!(setup.batches(None, &LIMIT).0, ["aaa bbb", "c", "ten_bytes_", "d"]);
}

#[test]
fn the_engines_limit_holds_where_the_options_set_none() {
    let by_engine = ReadLimit { max_bytes: Some(4), ..LIMIT };
    let mut open = setup(&[]);
    let mut limited = setup(&[("max_files_per_trigger", "3")]);
    for name in ["aa", "bb", "cc"] {
        open.write(name, 1);
        limited.write(name, 1);
    }
    assert_eq!(open.batches(None, &by_engine).0, ["aa bb", "cc"]);
    assert_eq!(limited.batches(None, &by_engine).0, ["aa bb cc"]);
}

#[test]
fn latest_first_takes_the_newest() {
    let mut setup = setup(&[("latest_first", "true"), ("max_files_per_trigger", "1")]);
    setup.write("1", 100);
    setup.write("2", 101);
    let first = setup.next(None, &LIMIT);
    assert_eq!(first.as_ref().map(|end| setup.names(None, end)).as_deref(), Some("2"));
    setup.write("3", 102);
    assert_eq!(setup.batches(first, &LIMIT).0, ["3", "1"]);
}

#[test]
fn max_file_age_counts_from_the_newest_file_taken() {
    let mut setup = setup(&[("max_file_age", "10 seconds")]);
    setup.write("old", 50);
    setup.write("new", 100);
    let (batches, at) = setup.batches(None, &LIMIT);
    assert_eq!(batches, ["old new"], "before anything was taken nothing is too old");
    setup.write("late", 89);
    setup.write("in-time", 90);
    assert_eq!(setup.batches(at, &LIMIT).0, ["in-time"]);
}

#[test]
fn once_takes_everything_and_available_now_splits_it() {
    let mut setup = setup(&[("max_files_per_trigger", "1")]);
    for (name, seconds) in [("1", 101), ("2", 102), ("3", 103)] {
        setup.write(name, seconds);
    }
    let all = setup.next(None, &ALL);
    assert_eq!(all.as_ref().map(|end| setup.names(None, end)).as_deref(), Some("1 2 3"));
    setup.write("4", 104);
    setup.write("5", 105);
    let until = setup.next(all.as_ref(), &ALL);
    setup.write("6", 106);
    let frozen = ReadLimit { until: until.clone(), ..LIMIT };
    let (batches, at) = no_forget(&mut setup, all, &frozen);
    assert_eq!(batches, ["4", "5"], "what came after it was asked is left");
    assert_eq!(at, until);
    assert_eq!(setup.next(at.as_ref(), &ALL).map(|end| setup.names(at.as_ref(), &end)).as_deref(), Some("6"));
    assert_eq!(
        setup.next(None, &ReadLimit { until, ..LIMIT }).map(|end| setup.names(None, &end)).as_deref(),
        Some("1")
    );
}

#[test]
fn a_restart_goes_on_inside_a_frozen_set() {
    let mut setup = setup(&[("max_files_per_trigger", "2")]);
    for name in ["a", "b", "c", "d", "e"] {
        setup.write(name, 1);
    }
    let until = setup.next(None, &ALL);
    let frozen = ReadLimit { until, ..LIMIT };
    let first = setup.next(None, &frozen);
    assert_eq!(first.as_ref().map(|at| at.0.to_string()).as_deref(), Some(r#"{"logOffset":0,"files":2}"#));
    setup.restart();
    setup.write("f", 2);
    assert_eq!(first.as_ref().map(|end| setup.names(None, end)).as_deref(), Some("a b"), "the same rows again");
    assert_eq!(no_forget(&mut setup, first, &LIMIT).0, ["c d", "e", "f"]);
}

#[test]
fn files_logged_and_not_yet_read_are_used_first_after_a_restart() {
    let mut setup = setup(&[]);
    setup.write("a", 1);
    let logged = setup.next(None, &LIMIT);
    setup.restart();
    setup.write("0", 0);
    let again = setup.next(None, &LIMIT);
    assert_eq!(again, logged);
    assert_eq!(again.as_ref().map(|end| setup.names(None, end)).as_deref(), Some("a"));
    assert_eq!(no_forget(&mut setup, again, &LIMIT).0, ["0"]);
    setup.restart();
    let (batches, at) = no_forget(&mut setup, None, &LIMIT);
    assert_eq!(batches, ["a 0"], "nothing is taken twice, and a query without an offset starts at the beginning");
    assert_eq!(setup.next(at.as_ref(), &LIMIT), None);
}

#[test]
fn asking_twice_gives_the_same_answer() {
    let mut setup = setup(&[("max_files_per_trigger", "1")]);
    setup.write("a", 1);
    setup.write("b", 2);
    let first = setup.next(None, &LIMIT);
    assert_eq!(setup.next(None, &LIMIT), first);
    assert_eq!(setup.next(first.as_ref(), &LIMIT).map(|end| setup.names(first.as_ref(), &end)).as_deref(), Some("b"));
}

#[test]
fn a_file_that_changes_after_it_was_taken_is_an_error_that_names_it() {
    let mut setup = setup(&[]);
    setup.write("a", 1);
    let at = setup.next(None, &LIMIT);
    write(setup.dir.path(), "a", b"appended to", 2);
    let error = setup.try_next(at.as_ref(), &LIMIT).unwrap_err();
    assert!(matches!(error, Error::Conflict { .. }));
    assert!(error.to_string().contains("/a changed after it was taken: it had 1 bytes, now 11"), "{error}");
}

#[test]
fn a_file_that_is_gone_before_its_turn_is_passed_over_and_one_after_is_no_matter() {
    let mut setup = setup(&[("max_files_per_trigger", "1")]);
    for (name, seconds) in [("a", 1), ("b", 2), ("c", 3)] {
        setup.write(name, seconds);
    }
    let first = setup.next(None, &LIMIT);
    fs::remove_file(setup.dir.path().join("a")).unwrap();
    fs::remove_file(setup.dir.path().join("b")).unwrap();
    assert_eq!(setup.batches(first, &LIMIT).0, ["c"]);
}

#[test]
fn an_offset_that_the_log_does_not_reach_is_corrupt() {
    let mut setup = setup(&[]);
    setup.write("a", 1);
    let foreign = |value: serde_json::Value| Offset(value);
    for offset in [json!({"logOffset": 7}), json!({"logOffset": 0, "files": 1}), json!({"rows": 3}), json!(5)] {
        let error = setup.try_next(Some(&foreign(offset.clone())), &LIMIT);
        assert!(matches!(error, Err(Error::Corrupt { .. })), "{offset}");
    }
    assert!(Discovery::with_lines(SourceLog::in_memory(), vec![(0, json!({"path": 1}))]).is_err());
}

#[test]
fn many_files_are_listed_once_not_once_a_batch() {
    let mut setup = setup(&[("max_files_per_trigger", "100")]);
    for n in 0..2_000u32 {
        fs::write(setup.dir.path().join(format!("{n:05}")), "x").unwrap();
    }
    let first = setup.next(None, &LIMIT);
    assert_eq!(setup.discovery.pending.len(), 1_900);
    let (batches, _) = setup.batches(first, &LIMIT);
    assert_eq!(batches.len(), 19);
}
