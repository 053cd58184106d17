//! Checkpoints and file sinks in an object store: whole queries, killed, restarted, overtaken.

use std::collections::BTreeSet;

use super::*;
use crate::checkpoint::failpoint::POINTS;
use crate::storage::pretend::{self, Bucket, Failure};

/// A session whose query keeps everything in a bucket.
struct Lake {
    shell: Shell,
    bucket: Arc<Bucket>,
    name: &'static str,
}

/// Each test has a bucket of its own.
fn lake(name: &'static str) -> Lake {
    over(pretend::bucket(name), name)
}

/// Another session over the same bucket, with a stream of its own that is fed the same.
fn over(bucket: Arc<Bucket>, name: &'static str) -> Lake {
    let lake = Lake { shell: shell(), bucket, name };
    lake.done("SET clock = 'manual'");
    lake.done("SET partitions = 2");
    lake.done("CREATE STREAM clicks (ts TIMESTAMP, page STRING)");
    lake.done(&format!(
        "CREATE SINK out WITH (connector = 'file', path = 's3://{name}/out', format = 'json', partition_by = 'page')"
    ));
    lake
}

const FED: [&str; 5] = [
    "('2026-01-01 00:00:10', 'a'), ('2026-01-01 00:00:20', 'a'), ('2026-01-01 00:00:30', 'b')",
    "('2026-01-01 00:01:40', 'a')",
    "('2026-01-01 00:02:10', 'b'), ('2026-01-01 00:01:50', 'c')",
    "('2026-01-01 00:03:40', 'a'), ('2026-01-01 00:03:50', 'c')",
    "('2026-01-01 00:06:00', 'z')",
];

/// The minutes that are over, by page, after all was fed and every batch run.
const WINDOWS: &str = "00:00 a 2, 00:00 b 1, 00:01 a 1, 00:01 c 1, 00:02 b 1, 00:03 a 1, 00:03 c 1";

impl Lake {
    fn done(&self, text: &str) {
        self.shell.answer(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    }

    fn refused(&self, text: &str) -> Error {
        match self.shell.answer(text) {
            Ok(_) => panic!("{text} is taken"),
            Err(error) => error,
        }
    }

    fn start_text(&self) -> String {
        format!(
            "START QUERY q INTO out AS SELECT window.start AS minute, page, count(*) AS n FROM clicks \
             GROUP BY window(ts, '1 minute'), page WITH WATERMARK ts DELAY '5 seconds' \
             OUTPUT MODE APPEND TRIGGER MANUAL CHECKPOINT 's3://{}/ck' WITH (lease_timeout = '1 hour')",
            self.name
        )
    }

    fn start(&self) {
        self.done(&self.start_text());
    }

    fn feed(&self, rows: &str) {
        self.done(&format!("INSERT INTO clicks VALUES {rows}"));
    }

    /// Runs what is due; whether the query still lives.
    fn step(&self) -> bool {
        let _ = self.shell.answer("STEP QUERY q 3 BATCHES");
        self.error().is_none()
    }

    fn error(&self) -> Option<Error> {
        self.shell.session.handle("q").and_then(|handle| handle.status().last_error)
    }

    /// Why the query failed.
    fn failure(&self) -> String {
        self.error().map(|error| error.to_string()).unwrap_or_default()
    }

    /// Steps until nothing is left, whatever happens meanwhile.
    fn run_to_the_end(&self) {
        for _ in 0..20 {
            if self.step() {
                return self.done("STOP QUERY q");
            }
            self.start();
        }
        panic!("it fails again and again: {}", self.failure());
    }

    /// What a reader of the sink sees.
    fn windows(&self) -> String {
        let reader = shell();
        let options = format!("path = 's3://{}/out', format = 'json'", self.name);
        let stream =
            format!("CREATE STREAM o (minute TIMESTAMP, page STRING, n BIGINT) WITH (connector = 'file', {options})");
        assert_eq!(reader.run(&stream), "CREATE STREAM");
        let rows = reader.run("SELECT substr(CAST(minute AS STRING), 12, 5), page, n FROM o ORDER BY minute, page, n");
        let lines = rows.lines().skip(3).filter(|line| line.starts_with('|'));
        let cells = lines.map(|line| line.trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>().join(" "));
        cells.collect::<Vec<_>>().join(", ")
    }

    fn paths_below(&self, folder: &str) -> BTreeSet<String> {
        self.bucket.paths().into_iter().filter(|path| path.starts_with(folder)).collect()
    }

    /// Part files that the manifest does not name.
    fn strays(&self) -> BTreeSet<String> {
        let entries: String = self.paths_below("out/_levada").iter().map(|path| self.bucket.text(path)).collect();
        let named = |path: &str| entries.contains(path.trim_start_matches("out/"));
        self.paths_below("out/page=").into_iter().filter(|path| !named(path)).collect()
    }

    /// Lets the holder of the checkpoint look like one of another process that has not given a sign of life for long.
    fn forget_holder(&self) {
        let lease = self.bucket.text("ck/lease");
        let mut holder: serde_json::Value = serde_json::from_str(&lease).unwrap();
        holder["process"] = "elsewhere".into();
        holder["timeout_ms"] = 50.into();
        self.bucket.overwrite("ck/lease", holder.to_string().into_bytes());
    }
}

#[test]
fn a_query_keeps_all_it_has_in_a_bucket() {
    let lake = lake("whole");
    lake.start();
    for rows in FED {
        lake.feed(rows);
        assert!(lake.step(), "{}", lake.failure());
    }
    lake.done("STOP QUERY q");
    assert_eq!(lake.windows(), WINDOWS);
    assert_eq!(lake.strays(), BTreeSet::new());
    let kept = lake.paths_below("ck/");
    for path in ["ck/metadata", "ck/lease", "ck/offsets/0", "ck/commits/0", "ck/state/aggregate/schema"] {
        assert!(kept.contains(path), "{path} is not among {kept:?}");
    }
    assert!(kept.contains("ck/state/aggregate/0.delta"), "{kept:?}");
}

#[test]
fn a_run_killed_at_any_point_changes_nothing() {
    for (n, point) in POINTS.iter().enumerate() {
        // Early and late, in turn.
        let hit = if n % 2 == 0 { 1 } else { 4 };
        let lake = lake("killed");
        lake.start();
        lake.feed(FED[0]);
        lake.step();
        lake.done(&format!("CRASH QUERY q AT '{point}' HIT {hit}"));
        let mut died = false;
        for rows in &FED[1..] {
            lake.feed(rows);
            while !lake.step() {
                assert!(lake.failure().contains("killed"), "{point}: {}", lake.failure());
                died = true;
                lake.start();
            }
        }
        lake.done("STOP QUERY q");
        assert!(died || hit > 1, "{point} was never passed");
        assert_eq!(lake.windows(), WINDOWS, "{point}, hit {hit}");
        assert_eq!(lake.strays(), BTreeSet::new(), "{point}, hit {hit}");
    }
}

#[test]
fn a_second_query_on_the_same_checkpoint_is_refused() {
    let first = lake("second");
    first.start();
    let second = over(first.bucket.clone(), "second");
    let error = second.refused(&second.start_text());
    let expected = "checkpoint s3://second/ck is in use by another query of this process (run ";
    assert!(error.code() == "E0500" && error.to_string().starts_with(expected), "{error}");
    first.done("STOP QUERY q");
    second.start();
    second.done("STOP QUERY q");
}

/// Two sessions over one checkpoint, of which the first was taken for dead while it lives. Both are fed the same.
fn overtaken(name: &'static str, fed: usize) -> (Lake, Lake) {
    let first = lake(name);
    first.start();
    for rows in &FED[..fed] {
        first.feed(rows);
        assert!(first.step(), "{}", first.failure());
    }
    let second = over(first.bucket.clone(), name);
    for rows in &FED[..fed] {
        second.feed(rows);
    }
    first.forget_holder();
    (first, second)
}

#[test]
fn of_two_runs_that_both_go_on_each_batch_is_done_by_one() {
    for first_goes_on in [true, false] {
        let (first, second) = overtaken("both", 2);
        second.start();
        for lake in [&first, &second] {
            lake.feed(FED[2]);
        }
        let (fast, slow) = if first_goes_on { (&first, &second) } else { (&second, &first) };
        assert!(fast.step(), "{}", fast.failure());
        assert!(!slow.step());
        let named = slow.failure();
        assert!(named.contains("s3://both/ck/offsets/") && named.contains("another run ("), "{named}");
        if first_goes_on {
            // The one that has the lease takes up what the other has done, which ends at its next heartbeat.
            first.done("STOP QUERY q NOW");
            second.start();
        }
        for rows in &FED[3..] {
            second.feed(rows);
            assert!(second.step(), "{}", second.failure());
        }
        second.done("STOP QUERY q");
        assert_eq!(second.windows(), WINDOWS, "{first_goes_on}");
    }
}

#[test]
fn what_an_overtaken_run_has_sent_may_arrive_at_any_time() {
    // A write of the batch that closes windows, held back until the other has run that batch, and another, or not.
    for held in ["ck/offsets/5", "out/_levada/5", "ck/state/aggregate/5.delta", "ck/commits/5"] {
        for first_arrives in [true, false] {
            let (first, second) = overtaken("late", 2);
            first.bucket.hold(held);
            for lake in [&first, &second] {
                lake.feed(FED[2]);
            }
            let stepping = std::thread::spawn(move || {
                first.step();
                first
            });
            second.bucket.await_held(held);
            second.start();
            let first = match first_arrives {
                true => {
                    second.bucket.release();
                    stepping.join().unwrap()
                }
                false => {
                    assert!(second.step(), "{held}: {}", second.failure());
                    second.bucket.release();
                    stepping.join().unwrap()
                }
            };
            let named = first.failure();
            // Only the batch that the other has not begun yet is still its own.
            let its_own = first_arrives && held == "ck/offsets/5";
            assert_eq!(named.contains("another run ("), !its_own, "{held}, {first_arrives}: {named}");
            for rows in &FED[3..] {
                second.feed(rows);
                while !second.step() {
                    assert!(
                        first_arrives && second.failure().contains("another run ("),
                        "{held}: {}",
                        second.failure()
                    );
                    second.start();
                }
            }
            second.done("STOP QUERY q");
            assert_eq!(second.windows(), WINDOWS, "{held}, {first_arrives}");
        }
    }
}

#[test]
fn files_of_a_batch_stay_until_it_is_decided_and_go_then() {
    let lake = lake("orphans");
    lake.start();
    lake.feed(FED[0]);
    lake.step();
    lake.done("CRASH QUERY q AT 'manifest.write'");
    lake.feed(FED[1]);
    assert!(!lake.step());
    let orphans = lake.strays();
    assert!(!orphans.is_empty());
    lake.start();
    assert_eq!(lake.strays(), orphans, "an entry that names them may still appear");
    assert!(lake.step());
    assert_eq!(lake.strays(), BTreeSet::new());
    lake.done("STOP QUERY q");
}

#[test]
fn what_fails_for_a_moment_is_tried_again_and_what_was_answered_to_nobody_is_known() {
    for failure in [Failure::Away, Failure::AnswerLost] {
        for end in ["offsets/2", "commits/2", "aggregate/2.delta", "_levada/3", ".json"] {
            let lake = lake("moments");
            lake.bucket.fail(end, 2, failure);
            lake.start();
            for rows in FED {
                lake.feed(rows);
                assert!(lake.step(), "{failure:?} at {end}: {}", lake.failure());
            }
            lake.done("STOP QUERY q");
            assert_eq!(lake.windows(), WINDOWS, "{failure:?} at {end}");
        }
    }
}

#[test]
fn what_is_forbidden_ends_the_query_and_names_the_object_without_secrets() {
    let lake = lake("forbidden");
    lake.start();
    lake.feed(FED[0]);
    assert!(lake.step());
    lake.bucket.fail("commits/2", 100, Failure::Forbidden);
    lake.feed(FED[1]);
    lake.step();
    lake.feed(FED[2]);
    assert!(!lake.step());
    let named = lake.failure();
    assert!(named.contains("writing s3://forbidden/ck/commits/2") && !named.contains("s3cret"), "{named}");
    lake.bucket.fail("commits/2", 0, Failure::Forbidden);
    lake.start();
    for rows in &FED[3..] {
        lake.feed(rows);
        assert!(lake.step(), "{}", lake.failure());
    }
    lake.done("STOP QUERY q");
    assert_eq!(lake.windows(), WINDOWS);
}

#[test]
fn damage_is_refused_by_the_path_of_the_object() {
    let lake = lake("damaged");
    lake.start();
    for rows in &FED[..2] {
        lake.feed(rows);
        lake.step();
    }
    lake.done("STOP QUERY q");
    // No batch number has two digits yet.
    let newest = |folder: &str| lake.paths_below(folder).into_iter().rfind(|path| !path.ends_with("owner"));
    let of_logs = ["ck/offsets/", "ck/commits/", "out/_levada/"].map(newest);
    let others = ["ck/metadata", "ck/state/aggregate/schema", "ck/state/aggregate/0.delta"];
    for path in of_logs.into_iter().flatten().chain(others.map(str::to_string)) {
        let whole = lake.bucket.damage(&path);
        let error = lake.refused(&lake.start_text());
        let named = format!("s3://damaged/{path}");
        assert!(error.code() == "E0400" && error.to_string().starts_with(&format!("{named}: ")), "{path}: {error}");
        lake.bucket.overwrite(&path, whole);
    }
    lake.start();
    lake.done("STOP QUERY q");
}

#[test]
fn old_files_go_and_the_rest_is_enough() {
    let lake = lake("purged");
    let start = lake.start_text().replace("lease_timeout", "min_batches_to_retain = 2, lease_timeout");
    lake.done(&start);
    for minute in 0..40 {
        lake.feed(&format!("('2026-01-01 00:{minute:02}:30', 'a')"));
        assert!(lake.step(), "{}", lake.failure());
    }
    lake.done("STOP QUERY q");
    let offsets = lake.paths_below("ck/offsets/");
    assert!(offsets.len() < 40 && !offsets.contains("ck/offsets/0"), "{offsets:?}");
    lake.done(&start);
    lake.feed("('2026-01-01 02:00:00', 'a')");
    assert!(lake.step(), "{}", lake.failure());
    lake.done("STOP QUERY q");
    let seen = lake.windows();
    assert_eq!(seen.matches(" a 1").count(), 40, "{seen}");
}

#[test]
fn a_folder_that_holds_something_else_is_refused() {
    let lake = lake("foreign");
    lake.bucket.overwrite("out/data.json", "{}");
    let error = lake.refused(&lake.start_text());
    assert!(error.to_string().starts_with("s3://foreign/out holds data.json, and no manifest"), "{error}");
    lake.bucket.remove("out/data.json");
    lake.bucket.overwrite("out", "a file");
    let error = lake.refused(&lake.start_text());
    assert!(error.to_string().starts_with("s3://foreign/out is a file"), "{error}");
}

#[test]
fn a_run_to_the_end_is_the_same_with_a_state_of_many_snapshots() {
    let lake = lake("snapshots");
    lake.start();
    for minute in 0..120 {
        lake.feed(&format!("('2026-01-01 {:02}:{:02}:30', 'a')", minute / 60, minute % 60));
        assert!(lake.step(), "{}", lake.failure());
    }
    lake.done("CRASH QUERY q AT 'commit.before'");
    lake.feed("('2026-01-01 05:00:00', 'a')");
    lake.step();
    lake.start();
    lake.run_to_the_end();
    let snapshots = lake.paths_below("ck/state/").into_iter().filter(|path| path.ends_with(".snapshot")).count();
    assert!(snapshots > 0);
    let seen = lake.windows();
    assert_eq!(seen.matches(" a 1").count(), 120, "{seen}");
}
