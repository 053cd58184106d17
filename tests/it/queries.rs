//! The real binary over queries that are stopped, crashed, paused and started again.

use std::collections::BTreeMap;
use std::path::Path;

use crate::cli::{code, run, run_with, stderr, stdout};

/// Runs statements on the manual clock, past errors; answers standard output, as csv, and standard error.
fn script(sql: &str) -> (String, String) {
    let output = run(&["--keep-going", "--format", "csv", "-c", &format!("SET clock = 'manual'; {sql}")]);
    (stdout(&output).to_string(), stderr(&output).to_string())
}

/// Every file below a folder, with what it holds.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            found.extend(files(&entry));
        } else if !entry.ends_with("lease") {
            found.insert(entry.display().to_string(), std::fs::read(&entry).unwrap());
        }
    }
    found
}

#[test]
fn rows_too_far_ahead_are_counted() {
    let (out, err) = script(
        "CREATE STREAM s (ts TIMESTAMP, WATERMARK FOR ts AS ts MAX FUTURE SKEW '1 hour'); CREATE STREAM t (ts TIMESTAMP);
         INSERT INTO s VALUES ('1970-01-01 00:00:05'), ('2071-01-01'), ('2072-01-01'); INSERT INTO t VALUES ('2071-01-01');
         START QUERY q INTO BLACKHOLE AS SELECT ts FROM s TRIGGER ONCE; AWAIT QUERY q; SHOW PROGRESS FOR q FORMAT JSON;
         START QUERY p INTO BLACKHOLE AS SELECT ts FROM t TRIGGER ONCE; AWAIT QUERY p; SHOW PROGRESS FOR p FORMAT JSON;",
    );
    assert!(out.contains(",\"futureRows\":2}\n"), "{out}{err}");
    assert_eq!(out.matches("futureRows").count(), 1, "{out}");
}
