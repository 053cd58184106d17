//! The regression suites in `tests/slt/`, run by the real program: all their records, and of each scenario's matrix some
//! combinations. `levada test tests/slt --combinations all` of a release build runs them all.

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
        .args(["test", "--combinations", "4", "--record-timeout", "120s"])
        .args(&rooms)
        .current_dir(root)
        .output()
        .expect("levada runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains(" passed, 0 failed"), "{said}");
}

/// The suite is interrupted while a record runs that would never end: it is ended, its file has not passed, the next one is not
/// run, and no folder is left.
#[test]
fn an_interrupted_suite_has_not_passed_and_leaves_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let (scratch, began) = (folder.path().join("scratch"), folder.path().join("began"));
    std::fs::create_dir(&scratch).expect("a folder");
    let first = format!("query I\nSELECT 1\n----\n1\n\nsystem ok\ntouch {}; sleep 1000\n", began.display());
    std::fs::write(folder.path().join("a.slt"), first).expect("a file");
    std::fs::write(folder.path().join("b.slt"), "query I\nSELECT 1\n----\n1\n").expect("a file");
    let mut child = Command::new(env!("CARGO_BIN_EXE_levada"))
        .args(["test", "a.slt", "b.slt", "-j", "1", "--record-timeout", "1000s", "--junit", "report.xml"])
        .current_dir(folder.path())
        .env("TMPDIR", &scratch)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("levada runs");
    while !began.exists() {
        assert!(child.try_wait().expect("its state").is_none(), "it ended by itself");
        std::thread::yield_now();
    }
    // SAFETY: sends a signal to a child that was not waited for yet.
    unsafe { libc::kill(i32::try_from(child.id()).expect("a process"), libc::SIGINT) };
    let output = child.wait_with_output().expect("its end");
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains("a.slt: interrupted"), "{said}");
    assert!(said.contains("0 passed, 1 failed, 1 not run: interrupted"), "{said}");
    let report = std::fs::read_to_string(folder.path().join("report.xml")).expect("the report");
    assert!(report.contains("tests=\"2\" failures=\"0\" errors=\"2\""), "{report}");
    assert_eq!(std::fs::read_dir(&scratch).expect("the folder").count(), 0);
}
