//! Inputs of unusual shape: 10,000 small files, a file of 2 GB, a line of 100 MB, 5,000 columns. Checked as well as timed: the count must be
//! right or the refusal clear, and memory must not follow the input's size.

use std::io::{BufWriter, Write};
use std::path::Path;

use levada::clock::Stopwatch;

use crate::levada::{rows_of, session, try_run};
use crate::{Asked, memory};

/// Runs all of them in a folder beside the data.
pub fn run_all(asked: &Asked) {
    if !asked.wants("large inputs") {
        return;
    }
    println!("{:<40} {:>9} {:>9}  outcome", "large inputs", "seconds", "peak MiB");
    let folder = tempfile::tempdir_in(&asked.data).expect("a folder");
    part(folder.path(), "10,000 files of 10 rows", "n BIGINT", "", |place| {
        for file in 0..10_000 {
            let rows: String = (0..10).map(|row| format!("{{\"n\":{}}}\n", file * 10 + row)).collect();
            std::fs::write(place.join(format!("{file:05}.json")), rows).expect("a file");
        }
    });
    part(folder.path(), "one file of 2 GB", "n BIGINT, text STRING", "", |place| {
        let filler = "x".repeat(180);
        let mut file = BufWriter::new(std::fs::File::create(place.join("large.json")).expect("a file"));
        for n in 0..10_000_000u64 {
            writeln!(file, "{{\"n\":{n},\"text\":\"{filler}\"}}").expect("a line");
        }
        file.flush().expect("the last of the file");
    });
    let long_line = |place: &Path| {
        let mut file = BufWriter::new(std::fs::File::create(place.join("long.json")).expect("a file"));
        writeln!(file, "{{\"n\":1,\"text\":\"{}\"}}", "x".repeat(100 << 20)).expect("the long line");
        writeln!(file, "{{\"n\":2,\"text\":\"short\"}}").expect("the short line");
    };
    part(folder.path(), "a line of 100 MB", "n BIGINT, text STRING", "", long_line);
    part(
        folder.path(),
        "a line of 100 MB, on_error = 'skip'",
        "n BIGINT, text STRING",
        ", on_error = 'skip'",
        long_line,
    );
    part(
        folder.path(),
        "a line of 100 MB, max_record_bytes 200 MB",
        "n BIGINT, text STRING",
        ", max_record_bytes = 200000000",
        long_line,
    );
    let columns: Vec<String> = std::iter::once("n".to_string()).chain((1..5_000).map(|c| format!("c{c}"))).collect();
    let declared: Vec<String> = columns.iter().map(|name| format!("{name} BIGINT")).collect();
    part(folder.path(), "5,000 columns, 2,000 rows", &declared.join(", "), "", |place| {
        let mut file = BufWriter::new(std::fs::File::create(place.join("wide.json")).expect("a file"));
        for row in 0..2_000 {
            let fields: Vec<String> = columns.iter().map(|name| format!("\"{name}\":{row}")).collect();
            writeln!(file, "{{{}}}", fields.join(",")).expect("a wide line");
        }
    });
}

fn part(folder: &Path, name: &str, columns: &str, options: &str, make: impl FnOnce(&Path)) {
    let place = folder.join("input");
    std::fs::create_dir_all(&place).expect("a folder");
    make(&place);
    let session = session();
    let stream = format!(
        "CREATE STREAM input ({columns}) WITH (connector = 'file', path = '{}', format = 'json'{options})",
        place.display()
    );
    let fresh = memory::forget_peak();
    let watch = Stopwatch::start();
    let done = try_run(&session, &stream)
        .and_then(|_| try_run(&session, &start(folder)))
        .and_then(|_| try_run(&session, "AWAIT QUERY q"));
    let outcome = match done {
        Ok(_) => rows_of(&session, "SELECT * FROM result"),
        Err(error) => error.to_string().chars().take(200).collect(),
    };
    let seconds = watch.elapsed().as_secs_f64();
    let peak = if fresh { memory::peak_mib() } else { None };
    println!("{name:<40} {seconds:>9.2} {:>9}  {outcome}", peak.map_or("-".into(), |mib| mib.to_string()));
    std::fs::remove_dir_all(&place).expect("the input goes");
    std::fs::remove_dir_all(folder.join("checkpoint")).ok();
}

fn start(folder: &Path) -> String {
    format!(
        "START QUERY q INTO TABLE result AS SELECT count(*) AS rows, sum(n) AS total FROM input OUTPUT MODE UPDATE TRIGGER AVAILABLE NOW CHECKPOINT '{}'",
        folder.join("checkpoint").display()
    )
}
