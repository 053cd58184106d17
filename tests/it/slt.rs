//! The regression suites in `tests/slt/`, run by the real program: all their records, and of each scenario's matrix some
//! combinations. `levada test tests/slt` of a release build runs them all.

use std::path::Path;
use std::process::Command;

#[test]
fn regression_suites() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let entries = std::fs::read_dir(root.join("tests/slt")).expect("the suites");
    let mut rooms: Vec<String> = entries
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        // What is in it is included from the other rooms.
        .filter(|room| room != "fast")
        .map(|room| format!("tests/slt/{room}"))
        .collect();
    rooms.sort();
    rooms.push("tests/slt/fast/exactly_once.slt".into());
    let output = Command::new(env!("CARGO_BIN_EXE_levada"))
        .args(["test", "--quiet", "--combinations", "4", "--record-timeout", "120s"])
        .args(&rooms)
        .current_dir(root)
        .output()
        .expect("levada runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains(" passed, 0 failed"), "{said}");
}
