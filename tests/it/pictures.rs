//! The image in README is that of the session it is drawn from.

use std::path::Path;
use std::process::Command;

/// The text of an image, a line each row of its screen, without what is another number in every run, and without marks that go
/// out after a while.
fn text(svg: &str) -> Vec<String> {
    let mut rows: Vec<(String, String)> = Vec::new();
    for line in svg.lines().filter(|line| line.starts_with("<text ")) {
        let attribute = |name: &str| line.split(&format!(" {name}=\"")).nth(1)?.split('"').next().map(str::to_string);
        let row = attribute("y").expect("a place");
        let text = line.split('>').nth(1).and_then(|rest| rest.strip_suffix("</text")).expect("a text");
        match rows.last_mut().filter(|(last, _)| *last == row) {
            Some((_, before)) => *before += &format!(" {text}"),
            None => rows.push((row, text.to_string())),
        }
    }
    let plain = |line: &str| {
        let line: String = line.chars().filter(|c| !"▲▼✓+*".contains(*c)).collect();
        // Times, rates and the version are others in every run.
        let end = ["levada 0", "RUNNING"].iter().find_map(|word| line.find(word).map(|at| at + word.len()));
        let end = if line.starts_with("in ") { Some(2) } else { end };
        line[..end.unwrap_or(line.len())].split_whitespace().collect::<Vec<_>>().join(" ")
    };
    rows.iter().map(|(_, line)| plain(line)).collect()
}

#[test]
fn the_image_of_the_session_is_up_to_date() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().expect("a folder");
    let output = Command::new(env!("CARGO_BIN_EXE_levada"))
        .args(["test", "docs/session.slt", "--record-timeout", "120s", "--pictures"])
        .arg(folder.path())
        .current_dir(root)
        .output()
        .expect("levada runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let read = |path: &Path| std::fs::read_to_string(path).expect("an image");
    let (kept, drawn) = (read(&root.join("docs/session.svg")), read(&folder.path().join("session.svg")));
    let drawn = text(&drawn);
    assert!(drawn.iter().any(|line| line.contains("per_minute · UPDATE · RUNNING")), "{drawn:#?}");
    assert_eq!(text(&kept), drawn, "levada test docs/session.slt --pictures docs draws it anew");
    assert!(kept.len() < 60_000, "{} bytes", kept.len());
    assert!(read(&root.join("README.md")).contains("docs/session.svg"));
}
