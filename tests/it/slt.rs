//! The regression suites in `tests/slt/`, run by the real program: all their records, and of each scenario's matrix some
//! combinations. `levada test tests/slt` of a release build runs them all.

use std::process::Command;

#[test]
fn regression_suites() {
    let output = Command::new(env!("CARGO_BIN_EXE_levada"))
        .args(["test", "--quiet", "--combinations", "6", "--record-timeout", "120s", "tests/slt"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("levada runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains(" passed, 0 failed"), "{said}");
}
