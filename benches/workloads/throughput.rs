//! W1 to W6 and session windows over JSON and parquet, and the memory of a join whose bound is a minute.

use levada::clock::Stopwatch;
use levada::session::Session;

use crate::levada::{AUCTIONS, BIDS, Input, USERS, create_input, progress, run, session};
use crate::{Asked, batch, median, memory};

struct Workload {
    name: &'static str,
    inputs: &'static [Input],
    mode: &'static str,
    sql: &'static str,
    /// The same question in DataFusion's own SQL.
    batch: &'static str,
}

const PLAIN_BIDS: Input = Input { name: "input", data: "bids", columns: BIDS, watermark: None };
const TIMED_BIDS: Input = Input { name: "input", data: "bids", columns: BIDS, watermark: Some("date_time") };
const TIMED_AUCTIONS: Input =
    Input { name: "auctions", data: "auctions", columns: AUCTIONS, watermark: Some("date_time") };
const PLAIN_USERS: Input = Input { name: "input", data: "users", columns: USERS, watermark: None };
const TIMED_USERS: Input = Input { name: "input", data: "users", columns: USERS, watermark: Some("event_time") };

const WORKLOADS: &[Workload] = &[
    Workload {
        name: "W1 filter, projection",
        inputs: &[PLAIN_BIDS],
        mode: "APPEND",
        sql: "SELECT auction, bidder, price*908/1000 AS euro, upper(channel) AS channel, date_time FROM input WHERE price > 2000000 AND channel IN ('Google','Apple','Bing')",
        batch: "SELECT auction, bidder, price*908/1000 AS euro, upper(channel) AS channel, date_time FROM input WHERE price > 2000000 AND channel IN ('Google','Apple','Bing')",
    },
    Workload {
        name: "W2 tumbling by channel",
        inputs: &[TIMED_BIDS],
        mode: "UPDATE",
        sql: "SELECT window.start AS w, channel, count(*) AS n, sum(price) AS s, max(price) AS m FROM input GROUP BY window(date_time, '10 seconds'), channel",
        batch: "SELECT date_bin(INTERVAL '10 seconds', date_time) AS w, channel, count(*) AS n, sum(price) AS s, max(price) AS m FROM input GROUP BY 1, 2",
    },
    Workload {
        name: "W3 sliding by auction",
        inputs: &[TIMED_BIDS],
        mode: "APPEND",
        sql: "SELECT window.start AS w, auction, count(*) AS n FROM input GROUP BY window(date_time, '10 seconds', '2 seconds'), auction",
        batch: "SELECT w, auction, count(*) AS n FROM (SELECT auction, unnest([p, p - INTERVAL '2 seconds', p - INTERVAL '4 seconds', p - INTERVAL '6 seconds', p - INTERVAL '8 seconds']) AS w FROM (SELECT auction, date_bin(INTERVAL '2 seconds', date_time) AS p FROM input)) GROUP BY w, auction",
    },
    Workload {
        name: "W4 by user",
        inputs: &[PLAIN_USERS],
        mode: "UPDATE",
        sql: "SELECT user_id, sum(amount) AS s, count(*) AS n FROM input GROUP BY user_id",
        batch: "SELECT user_id, sum(amount) AS s, count(*) AS n FROM input GROUP BY user_id",
    },
    Workload {
        name: "W5 interval join",
        inputs: &[TIMED_BIDS, TIMED_AUCTIONS],
        mode: "APPEND",
        sql: "SELECT b.auction, b.bidder, b.price, a.seller, a.category FROM input b JOIN auctions a ON b.auction = a.id AND b.date_time BETWEEN a.date_time AND a.date_time + INTERVAL '10 seconds'",
        batch: "SELECT b.auction, b.bidder, b.price, a.seller, a.category FROM input b JOIN auctions a ON b.auction = a.id AND b.date_time BETWEEN a.date_time AND a.date_time + INTERVAL '10 seconds'",
    },
    Workload {
        name: "W6 deduplication",
        inputs: &[TIMED_BIDS],
        mode: "APPEND",
        // DataFusion's DISTINCT ON is 7 times slower than ours: held against what it does best.
        sql: "SELECT DISTINCT ON (bidder, auction) WITHIN WATERMARK bidder, auction FROM input",
        batch: "SELECT DISTINCT bidder, auction FROM input",
    },
    Workload {
        name: "sessions of 200,000 keys",
        inputs: &[TIMED_USERS],
        mode: "APPEND",
        sql: "SELECT user_id % 200000 AS k, session_window.start AS s, count(*) AS n, sum(amount) AS a FROM input GROUP BY user_id % 200000, session_window(event_time, '10 seconds')",
        batch: "SELECT k, min(event_time) AS s, count(*) AS n, sum(amount) AS a FROM (SELECT k, event_time, amount, sum(opens) OVER (PARTITION BY k ORDER BY event_time) AS session FROM (SELECT user_id % 200000 AS k, event_time, amount, CASE WHEN event_time < lag(event_time) OVER (PARTITION BY user_id % 200000 ORDER BY event_time) + INTERVAL '10 seconds' THEN 0 ELSE 1 END AS opens FROM input)) GROUP BY k, session",
    },
];

/// A join that remembers both sides for a minute.
const MINUTE: Workload = Workload {
    name: "state of a minute's join",
    inputs: &[TIMED_BIDS, TIMED_AUCTIONS],
    mode: "APPEND",
    sql: "SELECT b.auction, b.bidder, a.seller FROM input b JOIN auctions a ON b.auction = a.id AND b.date_time BETWEEN a.date_time AND a.date_time + INTERVAL '1 minute'",
    batch: "",
};

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
        for format in ["json", "parquet"].into_iter().filter(|format| has_data(asked, workload, format)) {
            measure(asked, workload, format);
        }
    }
    if asked.wants(MINUTE.name) && has_data(asked, &MINUTE, "parquet") {
        minute(asked);
    }
}

fn has_data(asked: &Asked, workload: &Workload, format: &str) -> bool {
    workload.inputs.iter().all(|input| asked.data.join(format!("{}-{format}", input.data)).is_dir())
}

/// The peak of memory in the first and in the second half of the input.
fn minute(asked: &Asked) {
    let session = session();
    let checkpoint = begin(&session, asked, &MINUTE, "parquet", "MANUAL");
    let mut peaks = Vec::new();
    for _ in 0..2 {
        let fresh = memory::forget_peak();
        run(&session, "STEP QUERY q 10 BATCHES");
        peaks.extend(if fresh { memory::peak_mib() } else { None });
    }
    drop(checkpoint);
    match peaks[..] {
        [first, second] => println!(
            "{}: {first} MiB in the first half, {second} MiB in the second: {:.2}",
            MINUTE.name,
            second as f64 / first as f64
        ),
        _ => println!("{}: memory can't be told here", MINUTE.name),
    }
}

/// Creates the streams and starts the query; answers the folder of its checkpoint.
fn begin(session: &Session, asked: &Asked, workload: &Workload, format: &str, trigger: &str) -> tempfile::TempDir {
    let checkpoint = tempfile::tempdir_in(&asked.data).expect("a folder for the checkpoint");
    for input in workload.inputs {
        create_input(session, input, format, &asked.data.join(format!("{}-{format}", input.data)));
    }
    let start = format!(
        "START QUERY q INTO BLACKHOLE AS {} OUTPUT MODE {} TRIGGER {trigger} CHECKPOINT '{}'",
        workload.sql,
        workload.mode,
        checkpoint.path().display()
    );
    run(session, &start);
    checkpoint
}

fn measure(asked: &Asked, workload: &Workload, format: &str) {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..asked.runs {
        ours.push(levada(asked, workload, format));
        theirs.push(batch::run(workload.inputs, format, &asked.data, workload.batch).as_secs_f64());
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

fn levada(asked: &Asked, workload: &Workload, format: &str) -> Ours {
    let session = session();
    let fresh = memory::forget_peak();
    let watch = Stopwatch::start();
    let _checkpoint = begin(&session, asked, workload, format, "AVAILABLE NOW");
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
