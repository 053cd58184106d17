//! What a commit writes grows with what its batch has brought, not with what the groups hold.

use std::path::Path;

use levada::error::Location;
use levada::parser::parse_one;

use crate::law::session;

const BATCHES: u64 = 100;

/// Bytes of the delta files of a batch, of all operators.
fn deltas(checkpoint: &Path, batch: u64) -> u64 {
    let operators = std::fs::read_dir(checkpoint.join("state")).expect("state");
    let one = |operator: std::io::Result<std::fs::DirEntry>| {
        let file = operator.expect("an operator").path().join(format!("{batch}.delta"));
        std::fs::metadata(file).expect("a delta").len()
    };
    operators.map(one).sum()
}

/// Runs a query over one group that gets 40 rows a batch; the sizes of the second and of the last delta.
fn run(functions: &str) -> (u64, u64) {
    let folder = tempfile::tempdir().expect("a folder");
    let checkpoint = folder.path().join("cp");
    let session = session();
    let ask = |sql: &str| {
        let statement = parse_one(sql, Location { line: 1, column: 1 }).expect("a statement");
        drop(session.execute(&statement).unwrap_or_else(|e| panic!("{sql}: {e}")));
    };
    ask("SET clock = 'manual'");
    ask("CREATE STREAM s (k STRING, v BIGINT, t STRING)");
    ask(&format!(
        "START QUERY q INTO BLACKHOLE AS SELECT k, {functions} FROM s GROUP BY k OUTPUT MODE UPDATE TRIGGER MANUAL
             CHECKPOINT '{}' WITH (min_batches_to_retain = 1000)",
        checkpoint.display()
    ));
    for batch in 0..BATCHES {
        let row = |n: u64| {
            let v = (batch * 40 + n).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
            format!("('one', {v}, 'a text that is no view of twelve bytes {v}')")
        };
        ask(&format!("INSERT INTO s VALUES {}", (0..40).map(row).collect::<Vec<_>>().join(", ")));
        ask("STEP QUERY q");
    }
    ask("STOP QUERY q");
    (deltas(&checkpoint, 1), deltas(&checkpoint, BATCHES - 1))
}

#[test]
fn the_hundredth_batch_writes_no_more_than_the_second() {
    for functions in [
        "array_agg(v) AS vs",
        "array_agg(t ORDER BY v) AS ts, array_agg(DISTINCT v) AS vs",
        "median(v) AS m, percentile_cont(0.9) WITHIN GROUP (ORDER BY v) AS p, count(*) AS n",
        "median(DISTINCT v) AS m",
        "string_agg(t, ', ') AS ts",
        "count(DISTINCT v) AS n",
    ] {
        let (second, last) = run(functions);
        assert!(last * 10 < second * 11, "{functions}: {second} bytes, then {last}");
    }
}
