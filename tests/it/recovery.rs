//! The real program is killed with SIGKILL, again and again, at moments counted in what can be seen from outside: the
//! k-th file to appear under its checkpoint or its sink. What a reader of the sink sees at the end equals what an
//! uninterrupted run gives.

use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A query that is killed.
struct Case {
    /// What it reads, made once in its folder.
    input: fn(&Path),
    script: fn(&Path) -> String,
    /// The columns of what it writes to `out`, and its format.
    output: (&'static str, &'static str),
    kills: u64,
    seed: u64,
}

#[test]
fn windows_to_json_survive_kills() {
    let script = |root: &Path| windows(root, "json");
    survive(&Case { input: write_input, script, output: (WINDOWS, "json"), kills: 50, seed: 1 });
}

#[test]
fn windows_to_parquet_survive_kills() {
    let script = |root: &Path| windows(root, "parquet");
    survive(&Case { input: write_input, script, output: (WINDOWS, "parquet"), kills: 50, seed: 2 });
}

/// Batches of so many rows that each of four partitions has work of its own at the same time: of a join and an aggregate above.
#[test]
fn large_batches_survive_kills() {
    let output = ("start TIMESTAMP, auction BIGINT, seller BIGINT, n BIGINT, total BIGINT", "parquet");
    survive(&Case { input: |_| {}, script: large, output, kills: 16, seed: 3 });
}

const WINDOWS: &str = "start TIMESTAMP, k STRING, n BIGINT, total BIGINT";

/// 12 input files, read one a batch, windows of ten seconds in APPEND mode.
fn write_input(folder: &Path) {
    std::fs::create_dir_all(folder).expect("the input folder");
    for file in 0..12u64 {
        let mut text = String::new();
        for row in 0..60u64 {
            let n = file * 60 + row;
            // Out of order by up to three seconds; some keys come often.
            let second = (n / 4).saturating_sub((n * 7) % 4);
            let (minute, second) = (second / 60, second % 60);
            text +=
                &format!("{{\"ts\":\"2026-01-01T00:{minute:02}:{second:02}\",\"k\":\"k{}\",\"v\":{n}}}\n", (n * n) % 5);
        }
        let path = folder.join(format!("part-{file:03}.json"));
        std::fs::write(&path, text).expect("an input file");
    }
}

fn large(root: &Path) -> String {
    let root = root.display();
    let nexmark = "connector = 'nexmark', events = 120000, base_time = '2026-01-01 00:00:00', rate = 1000, max_events_per_trigger = 40000";
    format!(
        "SET partitions = 4;
         CREATE STREAM auction (WATERMARK FOR date_time AS date_time) WITH ({nexmark}, type = 'auction');
         CREATE STREAM bid (WATERMARK FOR date_time AS date_time) WITH ({nexmark}, type = 'bid');
         CREATE SINK out WITH (connector = 'file', path = '{root}/out', format = 'parquet');
         START QUERY q INTO out AS
           SELECT window.start AS start, b.auction, a.seller, count(*) AS n, sum(b.price) AS total
           FROM auction a JOIN bid b ON a.id = b.auction AND b.date_time BETWEEN a.date_time AND a.date_time + INTERVAL '20 seconds'
           GROUP BY window(b.date_time, '10 seconds'), b.auction, a.seller
           OUTPUT MODE APPEND TRIGGER AVAILABLE NOW CHECKPOINT '{root}/cp';
         AWAIT QUERY q;"
    )
}

fn windows(root: &Path, format: &str) -> String {
    let root = root.display();
    format!(
        "CREATE STREAM s (ts TIMESTAMP, k STRING, v BIGINT, WATERMARK FOR ts AS ts - INTERVAL '4 seconds')
           WITH (connector = 'file', path = '{root}/in', format = 'json', max_files_per_trigger = 1);
         CREATE SINK out WITH (connector = 'file', path = '{root}/out', format = '{format}');
         START QUERY q INTO out AS
           SELECT window.start AS start, k, count(*) AS n, sum(v) AS total FROM s GROUP BY window(ts, '10 seconds'), k
           OUTPUT MODE APPEND TRIGGER AVAILABLE NOW CHECKPOINT '{root}/cp';
         AWAIT QUERY q;"
    )
}

fn read_back(root: &Path, case: &Case) -> String {
    let (columns, format) = case.output;
    let sql = format!(
        "CREATE STREAM o ({columns}) WITH (connector = 'file', path = '{}/out', format = '{format}'); SELECT * FROM o ORDER BY ALL;",
        root.display()
    );
    let output =
        Command::new(env!("CARGO_BIN_EXE_levada")).args(["--format", "csv", "-c", &sql]).output().expect("levada runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

fn start(root: &Path, case: &Case) -> Child {
    let file = root.join("q.sql");
    std::fs::write(&file, (case.script)(root)).expect("the script");
    let mut command = Command::new(env!("CARGO_BIN_EXE_levada"));
    command.arg("-f").arg(&file).stdout(Stdio::null()).stderr(Stdio::piped());
    command.spawn().expect("levada starts")
}

fn finish(child: Child) {
    let output = child.wait_with_output().expect("levada ends");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Names of all files below a folder, temporary ones too.
fn files(folder: &Path, found: &mut std::collections::BTreeSet<String>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            files(&path, found);
        } else {
            found.insert(path.display().to_string());
        }
    }
}

/// Kills the child once `more` files have appeared; `false`: it ended first.
fn kill_after(mut child: Child, root: &Path, more: usize) -> bool {
    let look = || {
        let mut found = std::collections::BTreeSet::new();
        files(&root.join("cp"), &mut found);
        files(&root.join("out"), &mut found);
        found
    };
    let mut seen = look();
    let before = seen.len();
    loop {
        seen.extend(look());
        if seen.len() - before >= more {
            child.kill().expect("SIGKILL");
            child.wait().expect("the dead child");
            return true;
        }
        if let Some(status) = child.try_wait().expect("the child's status") {
            let output = child.wait_with_output().expect("its output");
            assert!(status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            return false;
        }
    }
}

fn survive(case: &Case) {
    let calm = tempfile::tempdir().expect("a folder");
    (case.input)(&calm.path().join("in"));
    finish(start(calm.path(), case));
    let wanted = read_back(calm.path(), case);
    assert!(wanted.lines().count() > 20, "too little to be a test:\n{wanted}");

    let (mut kills, mut state) = (0, case.seed);
    while kills < case.kills {
        let folder = tempfile::tempdir().expect("a folder");
        (case.input)(&folder.path().join("in"));
        loop {
            // A small generator of our own: the same moments in every run of the test.
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let more = 1 + (state >> 33) as usize % 14;
            if !kill_after(start(folder.path(), case), folder.path(), more) {
                break;
            }
            kills += 1;
        }
        assert_eq!(wanted, read_back(folder.path(), case), "after {kills} kills");
    }
}
