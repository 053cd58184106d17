//! W1 to W4 over JSON and parquet.

use std::path::Path;

use levada::clock::Stopwatch;

use crate::levada::{BIDS, USERS, create_input, progress, run, session};
use crate::{Asked, batch, median, memory};

struct Workload {
    name: &'static str,
    data: &'static str,
    columns: &'static str,
    watermark: Option<&'static str>,
    mode: &'static str,
    sql: &'static str,
    /// The same question in DataFusion's own SQL.
    batch: &'static str,
}

const WORKLOADS: &[Workload] = &[
    Workload {
        name: "W1 filter, projection",
        data: "bids",
        columns: BIDS,
        watermark: None,
        mode: "APPEND",
        sql: "SELECT auction, bidder, price*908/1000 AS euro, upper(channel) AS channel, date_time FROM input WHERE price > 2000000 AND channel IN ('Google','Apple','Bing')",
        batch: "SELECT auction, bidder, price*908/1000 AS euro, upper(channel) AS channel, date_time FROM input WHERE price > 2000000 AND channel IN ('Google','Apple','Bing')",
    },
    Workload {
        name: "W2 tumbling by channel",
        data: "bids",
        columns: BIDS,
        watermark: Some("date_time"),
        mode: "UPDATE",
        sql: "SELECT window.start AS w, channel, count(*) AS n, sum(price) AS s, max(price) AS m FROM input GROUP BY window(date_time, '10 seconds'), channel",
        batch: "SELECT date_bin(INTERVAL '10 seconds', date_time) AS w, channel, count(*) AS n, sum(price) AS s, max(price) AS m FROM input GROUP BY 1, 2",
    },
    Workload {
        name: "W3 sliding by auction",
        data: "bids",
        columns: BIDS,
        watermark: Some("date_time"),
        mode: "APPEND",
        sql: "SELECT window.start AS w, auction, count(*) AS n FROM input GROUP BY window(date_time, '10 seconds', '2 seconds'), auction",
        batch: "SELECT w, auction, count(*) AS n FROM (SELECT auction, unnest([p, p - INTERVAL '2 seconds', p - INTERVAL '4 seconds', p - INTERVAL '6 seconds', p - INTERVAL '8 seconds']) AS w FROM (SELECT auction, date_bin(INTERVAL '2 seconds', date_time) AS p FROM input)) GROUP BY w, auction",
    },
    Workload {
        name: "W4 by user",
        data: "users",
        columns: USERS,
        watermark: None,
        mode: "UPDATE",
        sql: "SELECT user_id, sum(amount) AS s, count(*) AS n FROM input GROUP BY user_id",
        batch: "SELECT user_id, sum(amount) AS s, count(*) AS n FROM input GROUP BY user_id",
    },
];

/// What one run of ours gave.
struct Ours {
    seconds: f64,
    rows: u64,
    peak_mib: Option<u64>,
    /// Milliseconds of the last batch, as a multiple of the first's.
    last_to_first: Option<f64>,
}

/// Prints a line for each workload and format.
pub fn run_all(asked: &Asked) {
    println!(
        "{:<24} {:<8} {:>10} {:>14} {:>14} {:>6} {:>9} {:>10}",
        "workload", "format", "rows", "levada rows/s", "batch rows/s", "ratio", "peak MiB", "last/first"
    );
    for workload in WORKLOADS.iter().filter(|w| asked.wants(w.name)) {
        for format in ["json", "parquet"] {
            let place = asked.data.join(format!("{}-{format}", workload.data));
            if place.is_dir() {
                measure(asked, workload, format, &place);
            }
        }
    }
}

fn measure(asked: &Asked, workload: &Workload, format: &str, place: &Path) {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..asked.runs {
        ours.push(levada(workload, format, place));
        theirs.push(batch::run(workload.columns, format, place, workload.batch).as_secs_f64());
    }
    let rows = ours[0].rows;
    let seconds = median(ours.iter().map(|run| run.seconds).collect());
    let theirs = median(theirs);
    let peak = ours.iter().filter_map(|run| run.peak_mib).max();
    let growth: Vec<f64> = ours.iter().filter_map(|run| run.last_to_first).collect();
    println!(
        "{:<24} {:<8} {:>10} {:>14.0} {:>14.0} {:>6.2} {:>9} {:>10}",
        workload.name,
        format,
        rows,
        rows as f64 / seconds,
        rows as f64 / theirs,
        theirs / seconds,
        peak.map_or("-".into(), |mib| mib.to_string()),
        if growth.is_empty() { "-".into() } else { format!("{:.2}", median(growth)) },
    );
}

fn levada(workload: &Workload, format: &str, place: &Path) -> Ours {
    let session = session();
    let checkpoint = tempfile::tempdir_in(place.parent().unwrap_or(place)).expect("a folder for the checkpoint");
    create_input(&session, workload.columns, workload.watermark, format, place);
    let start = format!(
        "START QUERY q INTO BLACKHOLE AS {} OUTPUT MODE {} TRIGGER AVAILABLE NOW CHECKPOINT '{}'",
        workload.sql,
        workload.mode,
        checkpoint.path().display()
    );
    let fresh = memory::forget_peak();
    let watch = Stopwatch::start();
    run(&session, &start);
    run(&session, "AWAIT QUERY q");
    let seconds = watch.elapsed().as_secs_f64();
    let peak_mib = if fresh { memory::peak_mib() } else { None };
    let rows = progress(&session, |d| d["numInputRows"].as_u64());
    let times = progress(&session, |d| {
        d["numInputRows"].as_u64().filter(|rows| *rows > 0)?;
        d["durationMs"]["triggerExecution"].as_u64()
    });
    let last_to_first = times.first().zip(times.last()).map(|(first, last)| *last as f64 / (*first).max(1) as f64);
    if std::env::var_os("BENCH_VERBOSE").is_some() {
        eprintln!(
            "{} {format}: batches took {times:?} ms; {}",
            workload.name,
            run(&session, "SHOW PROGRESS FOR q LAST 1 FORMAT JSON")
        );
    }
    Ours { seconds, rows: rows.iter().sum(), peak_mib, last_to_first }
}
