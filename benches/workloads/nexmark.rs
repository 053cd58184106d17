//! The queries of `sql/nexmark`, each in its own mode, beside batch DataFusion over the same generated events.
//!
//! Batch DataFusion reads the same generator as a table: what generating costs is in both.

use std::path::Path;

use levada::clock::Stopwatch;

use crate::levada::{progress, run, session, try_run};
use crate::{Asked, median};

const EVENTS: u64 = 2_000_000;

/// Prints a line for each query.
pub fn run_all(asked: &Asked) {
    if !asked.wants("nexmark") {
        return;
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("sql/nexmark");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect("a file of sql/nexmark");
    let streams = read("streams.sql").replace("events = 100000", &format!("events = {EVENTS}"));
    let streams = streams.replace("max_events_per_trigger = 20000", "max_events_per_trigger = 200000");
    println!("{:<12} {:>10} {:>14} {:>14} {:>6}", "nexmark", "rows in", "levada rows/s", "batch rows/s", "ratio");
    for n in (0..=22).filter(|n| *n != 10) {
        let text = read(&format!("q{n}.sql"));
        let Some((query, mode)) = text.split_once(" AS\n").and_then(|(_, rest)| rest.split_once("\nOUTPUT MODE "))
        else {
            panic!("q{n}.sql has another form");
        };
        let mode = mode.split_whitespace().next().unwrap_or_default();
        let (mut ours, mut theirs, mut rows) = (Vec::new(), Vec::new(), 0);
        for _ in 0..asked.runs {
            let session = session();
            streams.split(';').filter(|s| s.contains("CREATE")).for_each(|statement| drop(run(&session, statement)));
            let checkpoint = tempfile::tempdir_in(&asked.data).expect("a folder");
            let place = checkpoint.path().display();
            let watch = Stopwatch::start();
            let start = format!(
                "START QUERY q INTO BLACKHOLE AS {query} OUTPUT MODE {mode} TRIGGER AVAILABLE NOW CHECKPOINT '{place}'"
            );
            if let Err(error) = try_run(&session, &start) {
                println!("q{n:<11} {error}");
                break;
            }
            run(&session, "AWAIT QUERY q");
            ours.push(watch.elapsed().as_secs_f64());
            rows = progress(&session, |d| d["numInputRows"].as_u64()).iter().sum::<u64>();
            let watch = Stopwatch::start();
            run(&session, query);
            theirs.push(watch.elapsed().as_secs_f64());
        }
        if ours.is_empty() {
            continue;
        }
        let (ours, theirs) = (median(ours), median(theirs));
        println!(
            "q{n:<11} {rows:>10} {:>14.0} {:>14.0} {:>6.2}",
            rows as f64 / ours,
            rows as f64 / theirs,
            theirs / ours
        );
    }
}
