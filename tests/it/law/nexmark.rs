//! The queries of Nexmark in `sql/nexmark`: each gives in its own mode, once its streams have ended, what the same SELECT gives
//! as a batch over the same events.

use std::path::Path;

use super::{run, session};

/// Fewer events than the files have; two windows of ten seconds, and a part of a third.
const EVENTS: (&str, &str) = ("events = 100000", "events = 44000");

#[test]
fn every_query_equals_batch() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("sql/nexmark");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect("a file of sql/nexmark");
    let streams = read("streams.sql").replace(EVENTS.0, EVENTS.1);
    let mut compared = 0;
    for n in 0..=22 {
        // q10 writes files, and is below.
        if n == 10 {
            continue;
        }
        let text = read(&format!("q{n}.sql"));
        let (_, query) = text.split_once(" AS\n").expect("START QUERY … AS");
        let (query, mode) = query.split_once("\nOUTPUT MODE ").expect("OUTPUT MODE");
        let mode = mode.split_whitespace().next().expect("a mode");
        let session = session();
        let ask = |sql: &str| run(&session, sql).unwrap_or_else(|e| panic!("q{n}: {sql}: {e}"));
        // What q12 groups by is the time of each batch.
        ask("SET clock = 'manual'");
        for statement in streams.split(';').filter(|s| s.contains("CREATE")) {
            ask(statement);
        }
        ask(&format!("START QUERY q INTO TABLE r AS {query} OUTPUT MODE {mode} TRIGGER MANUAL"));
        ask("STEP QUERY q 100 BATCHES");
        ask("STOP QUERY q DRAIN");
        let (got, wanted) = (ask("SELECT * FROM r"), ask(query));
        assert!(!wanted.is_empty(), "q{n} gives nothing");
        assert!(
            got == wanted,
            "q{n}: {} rows, not {}: {:?}",
            got.len(),
            wanted.len(),
            got.iter().find(|r| !wanted.contains(r))
        );
        session.stop_all(true);
        compared += 1;
    }
    assert_eq!(compared, 22);
}

/// q10 reads back from its files what it wrote there.
#[test]
fn files_hold_every_bid() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("sql/nexmark");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect("a file of sql/nexmark");
    let streams = read("streams.sql").replace(EVENTS.0, EVENTS.1);
    let written = tempfile::tempdir().expect("a folder");
    let text = read("q10.sql").replace("/tmp/levada-nexmark", &written.path().display().to_string());
    let session = session();
    let ask = |sql: &str| run(&session, sql).unwrap_or_else(|e| panic!("q10: {sql}: {e}"));
    for statement in streams.split(';').filter(|s| s.contains("CREATE")) {
        ask(statement);
    }
    let statements: Vec<&str> = text.split(';').map(str::trim).filter(|s| !s.is_empty()).collect();
    let (last, others) = statements.split_last().expect("statements");
    for statement in others {
        ask(statement);
    }
    let wanted = ask("SELECT count(*) AS bids, max(price) AS highest FROM bid");
    assert_eq!(ask(last), wanted);
    session.stop_all(true);
}
