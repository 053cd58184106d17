//! What is small but waited for: batches of 1,000 rows, a restart with much state, the process itself.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use levada::clock::Stopwatch;

use crate::levada::{BIDS, Input, USERS, create_input, run, session};
use crate::{Asked, median, percentile};

const ROWS: usize = 1_000;
const FILES: usize = 500;

const W2: &str = "SELECT window.start AS w, channel, count(*) AS n, sum(price) AS s, max(price) AS m FROM input GROUP BY window(date_time, '10 seconds'), channel";
const W4: &str = "SELECT user_id, sum(amount) AS s, count(*) AS n FROM input GROUP BY user_id";

/// W2 in batches of 1,000 rows, each a STEP that ends with its commit on the disk; parquet and JSON lines.
pub fn batches(asked: &Asked) {
    if !asked.wants("small batches") || !asked.data.join("bids-json").is_dir() {
        return;
    }
    let folder = tempfile::tempdir_in(&asked.data).expect("a folder");
    let input = folder.path().join("input");
    cut(&asked.data.join("bids-json"), &input, FILES);
    let session = session();
    let stream = Input { name: "input", data: "bids", columns: BIDS, watermark: Some("date_time") };
    create_input(&session, &stream, "json", &input);
    run(
        &session,
        &format!(
            "START QUERY q INTO BLACKHOLE AS {W2} OUTPUT MODE UPDATE TRIGGER MANUAL CHECKPOINT '{}'",
            folder.path().join("checkpoint").display()
        ),
    );
    let mut times = Vec::with_capacity(FILES);
    for _ in 0..FILES {
        let watch = Stopwatch::start();
        run(&session, "STEP QUERY q");
        times.push(watch.elapsed().as_secs_f64() * 1e3);
    }
    // The first one makes what all others use.
    let first = times.remove(0);
    let (p50, p99) = (percentile(&mut times, 50), percentile(&mut times, 99));
    println!("small batches ({ROWS} rows, W2)   p50 {p50:.2} ms   p99 {p99:.2} ms   the first {first:.0} ms");
}

/// Rows of the files of `from`, `ROWS` a file.
fn cut(from: &Path, to: &Path, files: usize) {
    std::fs::create_dir_all(to).expect("a folder");
    let mut lines = names(from).into_iter().flat_map(|file| {
        BufReader::new(std::fs::File::open(file).expect("a file")).lines().map(|line| line.expect("a line"))
    });
    for n in 0..files {
        let text: String = lines.by_ref().take(ROWS).map(|line| line + "\n").collect();
        std::fs::write(to.join(format!("{n:05}.ndjson")), text).expect("a file of rows");
    }
}

fn names(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut names: Vec<_> =
        std::fs::read_dir(folder).expect("the folder").map(|entry| entry.expect("an entry").path()).collect();
    names.sort();
    names
}

/// W4's checkpoint is taken up again with 1,000 more rows.
pub fn restart(asked: &Asked) {
    let users = asked.data.join("users-json");
    if !asked.wants("restart") || !users.is_dir() {
        return;
    }
    let folder = tempfile::tempdir_in(&asked.data).expect("a folder");
    let input = folder.path().join("input");
    std::fs::create_dir_all(&input).expect("a folder");
    for file in names(&users) {
        let link = input.join(file.file_name().unwrap_or_default());
        std::fs::hard_link(&file, link).expect("a link to a file");
    }
    let start = format!(
        "START QUERY q INTO BLACKHOLE AS {W4} OUTPUT MODE UPDATE TRIGGER AVAILABLE NOW CHECKPOINT '{}'",
        folder.path().join("checkpoint").display()
    );
    let begin = || {
        let session = session();
        let stream = Input { name: "input", data: "users", columns: USERS, watermark: None };
        create_input(&session, &stream, "json", &input);
        let watch = Stopwatch::start();
        run(&session, &start);
        run(&session, "AWAIT QUERY q");
        watch.elapsed().as_secs_f64()
    };
    begin();
    let mut times = Vec::new();
    for n in 0..asked.runs {
        let more: String = (0..ROWS)
            .map(|row| {
                format!("{{\"user_id\":{},\"amount\":1,\"event_time\":\"2026-01-02T00:00:00\"}}\n", n * ROWS + row)
            })
            .collect();
        std::fs::write(input.join(format!("x-more-{n:05}.ndjson")), more).expect("more rows");
        times.push(begin());
    }
    let slowest = times.iter().copied().fold(0.0, f64::max);
    println!("restart on W4, {ROWS} more rows   median {:.2} s   slowest {slowest:.2} s", median(times));
}

/// `levada -c "SELECT 1"` from start to end.
pub fn process(asked: &Asked) {
    if !asked.wants("process") {
        return;
    }
    let mut times = Vec::new();
    for _ in 0..21 {
        let watch = Stopwatch::start();
        let mut command = Command::new(env!("CARGO_BIN_EXE_levada"));
        let done = command.args(["-c", "SELECT 1"]).stdin(Stdio::null()).output().expect("levada runs");
        times.push(watch.elapsed().as_secs_f64() * 1e3);
        assert!(done.status.success());
    }
    let p99 = percentile(&mut times, 99);
    println!("process: levada -c 'SELECT 1'    median {:.0} ms   slowest {p99:.0} ms", median(times));
    let size = std::fs::metadata(env!("CARGO_BIN_EXE_levada")).map(|file| file.len() >> 20);
    if let Ok(mib) = size {
        println!("the program: {mib} MiB");
    }
    _ = std::io::stdout().flush();
}
