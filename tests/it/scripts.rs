//! Every script in `tests/scripts/`, `tests/wrong/` and `sql/` is run by the real program; what it prints is held against
//! the `.out` file beside it. Those in `tests/wrong/` go on after an error. `UPDATE_EXPECT=1 cargo test scripts` writes those
//! files anew, for a person to review.

use std::path::{Path, PathBuf};
use std::process::Command;

/// What the program prints for a script: standard output, then `---- stderr` and standard error, then the exit code.
fn run(script: &Path, flags: &[&str]) -> String {
    let folder = tempfile::tempdir().expect("a folder for the script's files");
    let text = std::fs::read_to_string(script).expect("the script");
    let root = env!("CARGO_MANIFEST_DIR");
    let place = folder.path().display().to_string();
    let text = text.replace("$TMP", &place).replace("/tmp/levada-tour", &place);
    let text = text.replace("$ROOT", root);
    let file = folder.path().join(script.file_name().expect("a name"));
    std::fs::write(&file, text).expect("a copy of the script");
    let output =
        Command::new(env!("CARGO_BIN_EXE_levada")).args(flags).arg("-f").arg(&file).output().expect("levada runs");
    let mut shown = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.stderr.is_empty() {
        shown += "---- stderr\n";
        shown += &String::from_utf8_lossy(&output.stderr);
    }
    shown += &format!("---- exit {}\n", output.status.code().unwrap_or(-1));
    shown.replace(&folder.path().display().to_string(), "$TMP").replace(root, "$ROOT")
}

fn scripts_in(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let entries = std::fs::read_dir(&folder).expect("the folder of scripts");
    let mut paths: Vec<PathBuf> =
        entries.map(|e| e.expect("an entry").path()).filter(|p| p.extension().is_some_and(|e| e == "sql")).collect();
    paths.sort();
    assert!(!paths.is_empty(), "no script in {}", folder.display());
    paths
}

fn check(folder: &str, flags: &[&str]) {
    let update = std::env::var_os("UPDATE_EXPECT").is_some();
    let mut wrong = Vec::new();
    for script in scripts_in(folder) {
        let got = run(&script, flags);
        let expected = script.with_extension("out");
        if update {
            std::fs::write(&expected, &got).expect("the expected output");
            continue;
        }
        let wanted = std::fs::read_to_string(&expected).unwrap_or_else(|e| panic!("{}: {e}", expected.display()));
        if wanted != got {
            wrong.push(format!("{}\n--- expected\n{wanted}--- got\n{got}", script.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn golden_traces_and_statements() {
    check("tests/scripts", &[]);
}

#[test]
fn wrong_statements() {
    check("tests/wrong", &["--keep-going"]);
}

#[test]
fn lessons() {
    check("sql", &[]);
}
