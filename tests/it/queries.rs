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
fn once_runs_the_logged_batch_and_then_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let start = |trigger: &str| {
        format!(
            "START QUERY q AS SELECT n, CAST(now() AS VARCHAR) AS t FROM s TRIGGER {trigger} CHECKPOINT '{}';",
            folder.path().display()
        )
    };
    let (out, err) = script(&format!(
        "CREATE STREAM s (n INT); INSERT INTO s VALUES (1); {}
         CRASH QUERY q AT 'commit.before'; STEP QUERY q;
         INSERT INTO s VALUES (2); ADVANCE CLOCK BY '1 hour'; {} AWAIT QUERY q;",
        start("MANUAL"),
        start("ONCE"),
    ));
    let first = "__batch,n,t\n0,1,1970-01-01T00:00:00\n";
    assert_eq!(out, format!("{first}{first}1,2,1970-01-01T01:00:00\n"), "{err}");
}

#[test]
fn a_refused_start_leaves_the_checkpoint_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let checkpoint = folder.path().join("cp");
    let file = folder.path().join("in");
    std::fs::create_dir(&file).unwrap();
    std::fs::write(file.join("1.json"), "{\"k\":\"a\"}\n").unwrap();
    let start = |target: &str, select: &str| {
        let (file, checkpoint) = (file.display(), checkpoint.display());
        script(&format!(
            "CREATE STREAM s (k STRING) WITH (connector = 'file', format = 'json', path = '{file}');
             START QUERY q INTO {target} AS {select} TRIGGER AVAILABLE NOW CHECKPOINT '{checkpoint}'; AWAIT QUERY q;"
        ))
        .1
    };
    let plain = "SELECT k FROM s";
    let counted = "SELECT k, count(*) AS n FROM s GROUP BY k";
    assert_eq!(start("BLACKHOLE", plain), "");
    let before = files(&checkpoint);
    let error = start("BLACKHOLE", counted);
    assert!(error.contains("the query has changed: operator aggregate would lack what was read before"), "{error}");
    assert!(error.contains("in the checkpoint: no aggregate\n"), "{error}");
    let error = start("TABLE t", plain);
    assert!(error.contains("the query has changed: the result table would lack what was read before"), "{error}");
    assert!(error.contains("in the query:      keys (k STRING), values (count BIGINT)\n"), "{error}");
    assert_eq!(files(&checkpoint), before);
    assert_eq!(start("BLACKHOLE", "SELECT k, upper(k) AS u FROM s WHERE k > 'b'"), "");

    // And where a result was kept, INTO another target.
    std::fs::remove_dir_all(&checkpoint).unwrap();
    assert_eq!(start("TABLE t", counted), "");
    let before = files(&checkpoint);
    let error = start("BLACKHOLE", counted);
    assert!(error.contains("the query has changed: the result table would lose its state"), "{error}");
    let error = start("TABLE t", &format!("{counted} OUTPUT MODE COMPLETE"));
    assert!(error.contains("in the checkpoint: OUTPUT MODE UPDATE\n"), "{error}");
    assert_eq!(files(&checkpoint), before);
}

#[test]
fn standard_input_is_taken_by_nothing_that_is_refused() {
    let output = run_with(
        &[
            "--keep-going",
            "--format",
            "csv",
            "-c",
            "CREATE STREAM i (n INT) WITH (connector = 'stdin', format = 'json');
             SELECT * FROM i;
             EXPLAIN ANALYZE SELECT * FROM i;
             CREATE SINK f WITH (connector = 'file', path = '/dev/null/x', format = 'json');
             START QUERY q INTO f AS SELECT * FROM i;
             START QUERY q AS SELECT * FROM i TRIGGER AVAILABLE NOW;
             AWAIT QUERY q;",
        ],
        "{\"n\":1}\n",
    );
    assert_eq!(stdout(&output), "__batch,n\n0,1\n", "{}", stderr(&output));
    let refused = "stream i can't be read twice, so a SELECT would take its rows away";
    assert_eq!(stderr(&output).matches(refused).count(), 2, "{}", stderr(&output));
    assert_eq!(stderr(&output).matches("error[").count(), 3, "{}", stderr(&output));
}

#[test]
fn a_failed_query_is_heard_of_however_quiet() {
    let sql = "CREATE STREAM s (n INT); INSERT INTO s VALUES (0);
               START QUERY q AS SELECT 1 / n FROM s TRIGGER ONCE; AWAIT QUERY q;";
    let output = run(&["-q", "-c", sql]);
    assert_eq!(code(&output), 4);
    let first = stderr(&output).lines().next().unwrap_or_default();
    assert_eq!(first, "query q failed in batch 0, reading s: division by zero", "{}", stderr(&output));
}

#[test]
fn what_waits_for_a_resting_query_says_what_wakes_it() {
    let (_, err) = script(
        "CREATE STREAM s (n INT); START QUERY m AS SELECT n FROM s TRIGGER MANUAL; START QUERY r AS SELECT n FROM s;
         STOP QUERY m AFTER 1 BATCHES; PAUSE QUERY r; STOP QUERY r AFTER 1 BATCHES; AWAIT QUERY r IDLE;",
    );
    for said in [
        "query m runs only when it is stepped, so its next batches would never come",
        "query r is paused, so its next batches would never come",
        "query r is paused, so waiting for it would never end",
        "RESUME QUERY r first",
    ] {
        assert!(err.contains(said), "{said}: {err}");
    }
}

#[test]
fn a_look_between_boundaries_is_no_batch() {
    let folder = tempfile::tempdir().unwrap();
    let (input, checkpoint) = (folder.path().join("in"), folder.path().join("cp"));
    std::fs::create_dir(&input).unwrap();
    std::fs::write(input.join("1.json"), "{\"n\":1}\n").unwrap();
    let (_, err) = script(&format!(
        "CREATE STREAM s (n INT) WITH (connector = 'file', format = 'json', path = '{0}');
         START QUERY q INTO BLACKHOLE AS SELECT n FROM s TRIGGER EVERY '1 hour' CHECKPOINT '{1}';
         AWAIT QUERY q IDLE TIMEOUT '1 minute';
         COPY (SELECT 2 AS n) TO '{0}/2.json' STORED AS JSON;
         AWAIT QUERY q IDLE TIMEOUT '50 milliseconds';",
        input.display(),
        checkpoint.display()
    ));
    assert!(err.contains("waited in vain for query q to be idle"), "{err}");
    let names = |folder: &str| files(&checkpoint.join(folder)).into_keys().count();
    assert_eq!((names("offsets"), names("sources/s")), (1, 1), "the second file is nobody's yet");
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

#[test]
fn a_folder_that_is_no_value_of_its_column_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().display();
    let (out, err) = script(&format!(
        "CREATE STREAM s (k STRING, n INT); INSERT INTO s VALUES ('x', 1), (NULL, 2);
         CREATE SINK f WITH (connector = 'file', format = 'json', path = '{place}/out', partition_by = 'k');
         START QUERY q INTO f AS SELECT * FROM s TRIGGER ONCE CHECKPOINT '{place}/cp'; AWAIT QUERY q;
         CREATE STREAM a (k INT, n INT) WITH (connector = 'file', format = 'json', path = '{place}/out');
         CREATE STREAM b (k STRING NOT NULL, n INT) WITH (connector = 'file', format = 'json', path = '{place}/out');
         SELECT k FROM a; SELECT k FROM b; SELECT sum(n) AS n FROM b;"
    ));
    assert!(err.contains(".json: its folder says k = x, and k is INT\n"), "{err}");
    assert!(err.contains(".json: its folder says k = NULL, and k is STRING NOT NULL\n"), "{err}");
    assert_eq!(out, "n\n3\n", "what is not asked for is not looked at");
}

#[test]
fn a_batch_of_a_distinct_count_costs_what_it_changed() {
    let bytes = |rows: &str| {
        let (out, err) = script(&format!(
            "CREATE STREAM s (v BIGINT);
             START QUERY q INTO TABLE r AS SELECT count(DISTINCT v) AS n, sum(DISTINCT v) AS s FROM s TRIGGER MANUAL;
             INSERT INTO s {rows}; STEP QUERY q; INSERT INTO s VALUES (-1), (1); STEP QUERY q;
             SHOW PROGRESS FOR q LAST 1 FORMAT JSON;"
        ));
        let found = out.split("\"checkpointBytes\":").nth(1).or_else(|| out.split("\"\"checkpointBytes\"\":").nth(1));
        let found = found.unwrap_or_else(|| panic!("{out}\n{err}")).split([',', '}']).next().unwrap();
        found.parse::<u64>().unwrap()
    };
    let (few, many) = (bytes("VALUES (1)"), bytes("SELECT value FROM generate_series(1, 30000)"));
    assert!(many < few + 100, "{few} bytes after one value, {many} after 30,000");
}
