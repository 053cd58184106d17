//! The workloads: Levada's rows a second, batch DataFusion's on the same files in the same run, and the ratio.
//!
//! `BENCH_DATA=folder cargo bench --bench workloads` — the folder holds `bids-json`, `bids-parquet`, `users-json`, `users-parquet`, of
//! 20 files each; one file is one batch. Levada runs with a durable checkpoint beside the data; batch DataFusion runs the same SELECT over an
//! external table. Both are timed five times in turn; medians are printed. These machines are noisy: quote the ratio.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use levada::clock::Stopwatch;
use levada::error::Location;
use levada::parser::parse_one;
use levada::session::{Answer, Session, SessionOptions};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const RUNS: usize = 5;

const BIDS: &str =
    "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, date_time TIMESTAMP(3), extra STRING";
const USERS: &str = "user_id BIGINT, amount BIGINT, event_time TIMESTAMP(3)";

struct Workload {
    name: &'static str,
    data: &'static str,
    columns: &'static str,
    watermark: Option<&'static str>,
    mode: &'static str,
    sql: &'static str,
}

const WORKLOADS: &[Workload] = &[
    Workload {
        name: "W1 filter, projection",
        data: "bids",
        columns: BIDS,
        watermark: None,
        mode: "APPEND",
        sql: "SELECT auction, bidder, price*908/1000 AS euro, upper(channel) AS channel, date_time FROM input WHERE price > 2000000 AND channel IN ('Google','Apple','Bing')",
    },
    Workload {
        name: "W2 tumbling by channel",
        data: "bids",
        columns: BIDS,
        watermark: Some("date_time"),
        mode: "UPDATE",
        sql: "SELECT window.start AS w, channel, count(*) AS n, sum(price) AS s, max(price) AS m FROM input GROUP BY window(date_time, '10 seconds'), channel",
    },
    Workload {
        name: "W3 sliding by auction",
        data: "bids",
        columns: BIDS,
        watermark: Some("date_time"),
        mode: "APPEND",
        sql: "SELECT window.start AS w, auction, count(*) AS n FROM input GROUP BY window(date_time, '10 seconds', '2 seconds'), auction",
    },
    Workload {
        name: "W4 by user",
        data: "users",
        columns: USERS,
        watermark: None,
        mode: "UPDATE",
        sql: "SELECT user_id, sum(amount) AS s, count(*) AS n FROM input GROUP BY user_id",
    },
];

fn main() {
    let Some(root) = std::env::var_os("BENCH_DATA").map(PathBuf::from) else {
        println!("BENCH_DATA names no folder: nothing to measure");
        return;
    };
    println!(
        "{:<24} {:<8} {:>12} {:>14} {:>14} {:>7}",
        "workload", "format", "rows", "levada rows/s", "batch rows/s", "ratio"
    );
    for workload in WORKLOADS {
        for format in ["json", "parquet"] {
            let place = root.join(format!("{}-{format}", workload.data));
            if place.is_dir() {
                measure(workload, format, &place);
            }
        }
    }
    println!("peak memory {} MiB", peak_mib().map_or("unknown".into(), |m| m.to_string()));
}

fn measure(workload: &Workload, format: &str, place: &Path) {
    let (mut ours, mut theirs, mut rows) = (Vec::new(), Vec::new(), 0);
    for _ in 0..RUNS {
        let (seconds, read) = levada(workload, format, place);
        ours.push(seconds);
        rows = read;
        theirs.push(batch(workload, format, place));
    }
    let (ours, theirs) = (median(ours), median(theirs));
    let rate = |seconds: f64| rows as f64 / seconds;
    println!(
        "{:<24} {:<8} {:>12} {:>14.0} {:>14.0} {:>7.2}",
        workload.name,
        format,
        rows,
        rate(ours),
        rate(theirs),
        theirs / ours
    );
}

fn levada(workload: &Workload, format: &str, place: &Path) -> (f64, u64) {
    let session = session();
    let checkpoint = tempfile::tempdir_in(place.parent().unwrap_or(place)).expect("a folder for the checkpoint");
    let watermark =
        workload.watermark.map(|c| format!(", WATERMARK FOR {c} AS {c} - INTERVAL '5 seconds'")).unwrap_or_default();
    run(
        &session,
        &format!(
            "CREATE STREAM input ({}{watermark}) WITH (connector = 'file', path = '{}', format = '{format}', max_files_per_trigger = 1)",
            workload.columns,
            place.display()
        ),
    );
    let start = format!(
        "START QUERY q INTO BLACKHOLE AS {} OUTPUT MODE {} TRIGGER AVAILABLE NOW CHECKPOINT '{}'",
        workload.sql,
        workload.mode,
        checkpoint.path().display()
    );
    let watch = Stopwatch::start();
    run(&session, &start);
    run(&session, "AWAIT QUERY q");
    let seconds = watch.elapsed().as_secs_f64();
    let progress = run(&session, "SHOW PROGRESS FOR q LAST 1000 FORMAT JSON");
    let rows = progress
        .split("\"numInputRows\":")
        .skip(1)
        .step_by(2)
        .filter_map(|t| t.split(',').next()?.trim().parse::<u64>().ok())
        .sum();
    (seconds, rows)
}

fn batch(workload: &Workload, format: &str, place: &Path) -> f64 {
    let session = session();
    let table = format!(
        "CREATE EXTERNAL TABLE input ({}) STORED AS {format} LOCATION '{}/'",
        workload.columns,
        place.display()
    );
    run(&session, &table);
    let watch = Stopwatch::start();
    run(&session, workload.sql);
    watch.elapsed().as_secs_f64()
}

fn session() -> Session {
    let options = SessionOptions {
        output: Arc::new(Mutex::new(Box::new(std::io::sink()))),
        notices: Arc::new(|line| eprintln!("{line}")),
        console_format: "csv".into(),
        empty_batches: false,
    };
    Session::new(options).expect("a session")
}

/// Runs a statement and drops its rows; the text of an answer that has one.
fn run(session: &Session, sql: &str) -> String {
    let statement = parse_one(sql, Location { line: 1, column: 1 }).unwrap_or_else(|e| panic!("{sql}: {e}"));
    match session.execute(&statement).unwrap_or_else(|e| panic!("{sql}: {e}")) {
        Answer::Rows { rows, .. } => {
            rows.for_each(|batch| drop(batch.unwrap_or_else(|e| panic!("{sql}: {e}"))));
            String::new()
        }
        Answer::Text(text) => text,
        Answer::Done { tag, .. } => tag,
    }
}

fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}

/// The process's peak resident memory, as Linux tells it.
fn peak_mib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib / 1_024)
}
