//! The rules of the house that a compiler does not check: who may use whom, and what every file begins with.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn sources() -> Vec<PathBuf> {
    fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).expect("a folder of sources") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                walk(&path, files);
            } else if path.extension().is_some_and(|e| e == "rs") {
                files.push(path);
            }
        }
    }
    let mut files = Vec::new();
    walk(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut files);
    files.sort();
    files
}

/// The table "level | rooms | crates with one owner" of `docs/architecture.md`: each room's level.
fn levels() -> BTreeMap<String, u32> {
    let text = include_str!("../../docs/architecture.md");
    let mut levels = BTreeMap::new();
    for line in text.lines().filter(|l| l.starts_with("| ")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let Some(Ok(level)) = cells.first().map(|c| c.parse::<u32>()) else { continue };
        for room in cells[1].split(',') {
            levels.insert(room.trim().to_string(), level);
        }
    }
    assert!(levels.len() > 15, "the table of rooms was not found");
    levels
}

/// The room that a file belongs to: its folder in `src`, or its own name there.
fn room_of(path: &Path) -> String {
    let inside = path.strip_prefix(Path::new(env!("CARGO_MANIFEST_DIR")).join("src")).expect("a path in src");
    let first = inside.components().next().expect("a name").as_os_str().to_string_lossy().into_owned();
    first.trim_end_matches(".rs").to_string()
}

#[test]
fn rooms_use_only_rooms_below_them() {
    let levels = levels();
    let mut wrong = Vec::new();
    for path in sources() {
        let room = room_of(&path);
        if room == "lib" || room == "main" {
            continue;
        }
        let Some(level) = levels.get(&room) else {
            wrong.push(format!("{}: room {room} is not in the table", path.display()));
            continue;
        };
        let text = std::fs::read_to_string(&path).expect("a source file");
        for (n, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            for part in code.split("crate::").skip(1) {
                let used: String = part.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                let Some(other) = levels.get(&used) else { continue };
                if used != room && other >= level {
                    wrong.push(format!(
                        "{}:{}: {room} (level {level}) uses {used} (level {other})",
                        path.display(),
                        n + 1
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_file_says_what_it_is() {
    let bare: Vec<String> = sources()
        .into_iter()
        .filter(|p| !std::fs::read_to_string(p).expect("a source file").starts_with("//!"))
        .map(|p| p.display().to_string())
        .collect();
    assert!(bare.is_empty(), "no //! on line 1 of {}", bare.join(", "));
}

#[test]
fn nothing_is_left_unfinished() {
    let mut wrong = Vec::new();
    for path in sources() {
        let text = std::fs::read_to_string(&path).expect("a source file");
        for (n, line) in text.lines().enumerate() {
            if ["todo!(", "unimplemented!(", "dbg!("].iter().any(|w| line.contains(w)) {
                wrong.push(format!("{}:{}: {}", path.display(), n + 1, line.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Codes of errors in the source, in pages and in what tests expect are those of `docs/errors.md`.
#[test]
fn every_code_of_an_error_is_documented() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let code = regex::Regex::new(r"\bE0[0-9]{3}\b").expect("an expression");
    let page = std::fs::read_to_string(root.join("docs/errors.md")).expect("the page");
    let listed = |code: &str| page.contains(&format!("| {code} |"));
    let mut files = sources();
    for folder in ["docs", "tests/slt/shell", "tests/scripts", "tests/wrong"] {
        let entries = std::fs::read_dir(root.join(folder)).expect("a folder");
        files.extend(entries.map(|entry| entry.expect("an entry").path()).filter(|path| path.is_file()));
    }
    let mut seen = 0;
    for path in files {
        let text = String::from_utf8_lossy(&std::fs::read(&path).expect("a file")).into_owned();
        for found in code.find_iter(&text) {
            seen += 1;
            assert!(listed(found.as_str()), "{}: {} is not in docs/errors.md", path.display(), found.as_str());
        }
    }
    assert!(seen > 100, "the codes were not found");
}
