//! Expected lines, written anew: `--complete`.

use std::collections::BTreeMap;
use std::path::Path;

use super::compare::{self, is_pattern, matches};
use super::own::SEPARATOR;
use super::report::Rewrite;
use super::script::Node;
use crate::error::{Error, Result};

/// Actual rows as lines; a cell that a pattern stands for keeps its pattern while it fits.
pub fn with_patterns(expected: &[String], rows: &[Vec<String>]) -> Vec<String> {
    let mut lines = compare::lines(rows);
    if expected.len() != rows.len() {
        return lines;
    }
    for ((line, old), row) in lines.iter_mut().zip(expected).zip(rows) {
        let cells: Vec<&str> = old.split(' ').collect();
        if cells.len() != row.len() || !cells.iter().any(|cell| is_pattern(cell)) {
            continue;
        }
        let cell = |(cell, value): (&&str, &String)| {
            let kept = is_pattern(cell) && matches(cell, value).unwrap_or(false);
            if kept { cell.to_string() } else { value.clone() }
        };
        *line = cells.iter().zip(row).map(cell).collect::<Vec<_>>().join(" ");
    }
    lines
}

/// Writes files anew; answers for each what has changed in it.
///
/// # Errors
/// A file can't be read or written.
pub fn apply(rewrites: Vec<(Node, Rewrite)>) -> Result<Vec<String>> {
    let mut by_file: BTreeMap<String, Vec<(Node, Rewrite)>> = BTreeMap::new();
    for (node, rewrite) in rewrites {
        by_file.entry(node.place.file.to_string()).or_default().push((node, rewrite));
    }
    let mut diffs = Vec::new();
    for (file, rewrites) in by_file {
        let path = Path::new(&file);
        let io = |what: &str, e: &std::io::Error| Error::io(format!("{what} {file}"), e);
        let text = std::fs::read_to_string(path).map_err(|e| io("reading", &e))?;
        let old: Vec<String> = text.lines().map(str::to_string).collect();
        let new = rewritten(&old, rewrites);
        let ending = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let whole: String = new.iter().map(|line| format!("{line}{ending}")).collect();
        let beside = path.with_extension("slt.tmp");
        std::fs::write(&beside, whole).map_err(|e| io("writing", &e))?;
        std::fs::rename(&beside, path).map_err(|e| io("writing", &e))?;
        diffs.push(format!("{file}\n{}", changed(&old, &new)));
    }
    Ok(diffs)
}

/// From the last line to the first, so that the places of the others stay.
fn rewritten(old: &[String], mut rewrites: Vec<(Node, Rewrite)>) -> Vec<String> {
    rewrites.sort_by_key(|(node, _)| std::cmp::Reverse(node.place.line));
    // A record in a loop fails once a round: the last round's lines count.
    rewrites.dedup_by_key(|(node, _)| node.place.line);
    let mut lines = old.to_vec();
    for (node, rewrite) in rewrites {
        match rewrite {
            Rewrite::Block(mut new) => {
                let at = node.block.lines.start.min(lines.len())..node.block.lines.end.min(lines.len());
                if !node.block.separated {
                    new.insert(0, SEPARATOR.to_string());
                }
                lines.splice(at, new);
            }
            Rewrite::Line(line, text) => replace(&mut lines, line, text),
            Rewrite::Lines(all) => all.into_iter().for_each(|(line, text)| replace(&mut lines, line, text)),
        }
    }
    lines
}

fn replace(lines: &mut [String], line: usize, text: String) {
    if let Some(old) = line.checked_sub(1).and_then(|at| lines.get_mut(at)) {
        *old = text;
    }
}

/// The lines that differ.
fn changed(old: &[String], new: &[String]) -> String {
    let all = compare::diff(old, new);
    all.lines().filter(|line| !line.starts_with("    ")).map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_stay_while_they_fit() {
        let row = |cells: &[&str]| cells.iter().map(ToString::to_string).collect::<Vec<String>>();
        let expected = ["a <ignore> 1".to_string(), "b <~[0-9]> 2".to_string()];
        let lines = with_patterns(&expected, &[row(&["a", "x", "3"]), row(&["b", "y", "2"])]);
        assert_eq!(lines, ["a <ignore> 3", "b y 2"]);
    }
}
