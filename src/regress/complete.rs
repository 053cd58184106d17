//! Expected lines, written anew: `--complete`.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use sqllogictest::{QueryExpect, Record};

use super::compare::{self, is_pattern, matches};
use super::own::SEPARATOR;
use super::record::Own;
use super::report::Edit;
use super::script::{self, Body, Node};
use super::substitute::Variables;
use crate::error::{Error, Result};

/// What records of files came to, by their places: a record in a loop, or of a file that is included twice, runs more than once.
#[derive(Debug, Default)]
pub struct Completion {
    records: BTreeMap<(Arc<str>, usize), Outcome>,
}

#[derive(Debug)]
struct Outcome {
    /// What would make it as it is expected; none: it is.
    edits: Vec<Edit>,
    node: Node,
    /// Its rounds came to different things.
    torn: bool,
}

impl Completion {
    /// Keeps what a record came to; answers whether an earlier round of it came to something else, so that no lines are right
    /// for both.
    pub fn keep(&mut self, node: &Node, edits: Vec<Edit>) -> bool {
        let key = (node.place.file.clone(), node.place.line);
        let outcome = self.records.entry(key).or_insert_with(|| Outcome {
            edits: edits.clone(),
            node: node.clone(),
            torn: false,
        });
        outcome.torn |= outcome.edits != edits;
        outcome.torn
    }

    /// Takes over what ran elsewhere; answers the records that came to something else there, where that is news.
    pub fn take(&mut self, other: Completion) -> Vec<Node> {
        let mut torn = Vec::new();
        for outcome in other.records.into_values() {
            let now = self.keep(&outcome.node, outcome.edits);
            match (outcome.torn, now) {
                // It was said there.
                (true, _) => {
                    let key = (outcome.node.place.file.clone(), outcome.node.place.line);
                    self.records.entry(key).and_modify(|outcome| outcome.torn = true);
                }
                (false, true) => torn.push(outcome.node),
                (false, false) => {}
            }
        }
        torn
    }

    /// Writes files anew; answers for each what has changed in it.
    ///
    /// # Errors
    /// A file can't be read or written, or would be another test.
    pub fn write(self) -> (Vec<String>, Vec<Error>) {
        let mut by_file: BTreeMap<Arc<str>, Vec<Outcome>> = BTreeMap::new();
        for ((file, _), outcome) in self.records {
            if !outcome.torn && !outcome.edits.is_empty() {
                by_file.entry(file).or_default().push(outcome);
            }
        }
        let (mut diffs, mut errors) = (Vec::new(), Vec::new());
        for (file, outcomes) in by_file {
            match write_file(&file, outcomes) {
                Ok(diff) => diffs.push(diff),
                Err(error) => errors.push(error),
            }
        }
        (diffs, errors)
    }
}

/// What `--complete` can't write, said where it is not.
pub const LEFT: &str =
    "left as it is: --complete writes rows, types, counts, output and values, but no errors and no conditions";

/// Lines as the file would have them: as they stand there, where one stands for the same, and else with what a name could be
/// taken for escaped.
///
/// # Errors
/// Why they can't be written so that they are read back.
pub fn written(
    node: &Node,
    lines: Vec<String>,
    folder: &str,
    variables: &Variables,
) -> std::result::Result<Vec<String>, String> {
    let out = match expected(&node.body) {
        // What programs print has no names.
        None => lines.iter().map(|line| line.replace(folder, "$__TEST_DIR__")).collect(),
        Some(old) => {
            let old: BTreeMap<String, &String> =
                old.iter().filter_map(|line| Some((variables.replace(line).ok()?, line))).collect();
            let one = |line: &String| match old.get(line) {
                Some(old) => old.to_string(),
                None if variables.on => variables.escape(line).replace(&variables.escape(folder), "$__TEST_DIR__"),
                None => line.clone(),
            };
            let out: Vec<String> = lines.iter().map(one).collect();
            if let Some((line, _)) =
                lines.iter().zip(&out).find(|(line, written)| variables.replace(written).as_ref() != Ok(*line))
            {
                return Err(format!("{line:?} would not be read back as it is"));
            }
            out
        }
    };
    let prints = matches!(node.body, Body::Own(Own::Program(_)) | Body::Plain(Record::System { .. }));
    if let Some(line) = out.iter().find(|line| line.contains(['\n', '\r']) || !prints && line.is_empty()) {
        return Err(format!("{line:?} is not one line"));
    }
    if prints {
        if out.windows(2).any(|two| two[0].is_empty() && two[1].is_empty())
            || out.iter().any(|l| l.starts_with("---- "))
        {
            return Err("what is printed has two blank lines, or one that begins with ----, which would end it".into());
        }
        if let Some(line) = node.block.swallows {
            return Err(swallowed(line));
        }
    }
    if let Body::Own(Own::Program(program)) = &node.body
        && let Some(line) = out.iter().find(|line| compare::has_patterns(line) && !program.output.contains(line))
    {
        return Err(format!("{line:?} would be read as a pattern"));
    }
    Ok(out)
}

/// That a record seems to be taken for output.
pub fn swallowed(line: usize) -> String {
    format!(
        "what is expected goes on behind a blank line, to where a record seems to begin in line {}: two blank lines end it, or ---- exit N",
        line + 1
    )
}

/// The expected lines in which names are replaced.
fn expected(body: &Body) -> Option<&[String]> {
    match body {
        Body::Plain(Record::Query { expected: QueryExpect::Results { results, .. }, .. }) => Some(results),
        Body::Own(Own::Step { rows: Some(rows), .. }) => Some(&rows.lines),
        Body::Own(Own::Emitted { rows, .. } | Own::Sink { rows, .. } | Own::State { rows, .. }) => Some(&rows.lines),
        Body::Plain(Record::Query { .. }) => Some(&[]),
        _ => None,
    }
}

/// Actual rows as lines; a cell that a pattern stands for keeps its pattern while it fits.
pub fn with_patterns(expected: &[String], rows: &[Vec<String>]) -> Vec<String> {
    let mut lines = compare::lines(rows);
    let same = |old: &String, row: &Vec<String>| compare::row_is(old, row).unwrap_or(false);
    for ((line, old), row) in lines.iter_mut().zip(aligned(expected, rows, same)).zip(rows) {
        let Some(old) = old else { continue };
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

/// What a program prints; a line that one with patterns stands for is written as that one.
pub fn with_line_patterns(expected: &[String], actual: &[String]) -> Vec<String> {
    let same = |old: &String, line: &String| compare::line_is(old, line).unwrap_or(false);
    let line = |(old, line): (Option<&String>, &String)| match old.filter(|old| same(old, line)) {
        Some(old) => old.clone(),
        None => line.clone(),
    };
    aligned(expected, actual, same).into_iter().zip(actual).map(line).collect()
}

/// For each new line the old one in whose place it stands: of all that fit, as many as can be had in the same order; and between
/// two of them the others one by one, where there are as many old as new.
fn aligned<'a, T>(old: &'a [String], new: &[T], fits: impl Fn(&String, &T) -> bool) -> Vec<Option<&'a String>> {
    // A table of more cells is too large; where as many lines are expected as came, each has its place.
    const LARGEST: usize = 4_000_000;
    let mut places: Vec<(usize, usize)> = Vec::new();
    let head = old.iter().zip(new).take_while(|(old, new)| fits(old, new)).count();
    let tail = old[head..].iter().rev().zip(new[head..].iter().rev()).take_while(|(old, new)| fits(old, new)).count();
    let (rows, columns) = (old.len() - head - tail, new.len() - head - tail);
    places.extend((0..head).map(|n| (n, n)));
    if rows.saturating_mul(columns) <= LARGEST {
        let fit = |i: usize, j: usize| fits(&old[head + i], &new[head + j]);
        // The longest common subsequence of what is left behind each pair of places.
        let mut longest = vec![vec![0_u32; columns + 1]; rows + 1];
        for i in (0..rows).rev() {
            for j in (0..columns).rev() {
                longest[i][j] = match fit(i, j) {
                    true => longest[i + 1][j + 1] + 1,
                    false => longest[i + 1][j].max(longest[i][j + 1]),
                };
            }
        }
        let (mut i, mut j) = (0, 0);
        while i < rows && j < columns {
            if fit(i, j) {
                places.push((head + i, head + j));
                (i, j) = (i + 1, j + 1);
            } else if longest[i + 1][j] >= longest[i][j + 1] {
                i += 1;
            } else {
                j += 1;
            }
        }
    }
    places.extend((1..=tail).rev().map(|n| (old.len() - n, new.len() - n)));
    let mut out = vec![None; new.len()];
    let mut from = (0, 0);
    for (i, j) in places.into_iter().chain([(old.len(), new.len())]) {
        if i - from.0 == j - from.1 {
            (0..j - from.1).for_each(|n| out[from.1 + n] = Some(&old[from.0 + n]));
        }
        if j < new.len() {
            out[j] = Some(&old[i]);
        }
        from = (i + 1, j + 1);
    }
    out
}

fn write_file(file: &str, outcomes: Vec<Outcome>) -> Result<String> {
    let io = |what: &str, e: &std::io::Error| Error::io(format!("{what} {file}"), e);
    // A link stays one: what it leads to is written.
    let path = std::fs::canonicalize(file).map_err(|e| io("finding", &e))?;
    let text = std::fs::read_to_string(&path).map_err(|e| io("reading", &e))?;
    let old: Vec<String> = text.lines().map(str::to_string).collect();
    let new = rewritten(&old, outcomes);
    let ending = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let whole: String = new.iter().map(|line| format!("{line}{ending}")).collect();
    let beside = path.with_extension(format!("{}.slt.tmp", std::process::id()));
    let replaced = (|| {
        std::fs::write(&beside, whole).map_err(|e| io("writing", &e))?;
        let permissions = std::fs::metadata(&path).map_err(|e| io("reading", &e))?.permissions();
        std::fs::set_permissions(&beside, permissions).map_err(|e| io("writing", &e))?;
        same_test(&path, &beside)?;
        std::fs::rename(&beside, &path).map_err(|e| io("writing", &e))
    })();
    if let Err(error) = replaced {
        // What it is about has been said; the file itself is as it was.
        let _ = std::fs::remove_file(&beside);
        return Err(error);
    }
    Ok(format!("{file}\n{}", changed(&old, &new)))
}

/// Whether a file has the records that it had. What is only a part of a test, for others to include, can't be read by itself.
fn same_test(old: &Path, new: &Path) -> Result<()> {
    let heads = |path: &Path| script::read(path).map(|script| script::count(&script.nodes));
    let Ok(before) = heads(old) else { return Ok(()) };
    match heads(new) {
        Ok(after) if after == before => Ok(()),
        Ok(after) => Err(Error::internal(format!(
            "{} is left as it is: it would have {after} records instead of {before}",
            old.display()
        ))),
        Err(broken) => {
            Err(Error::internal(format!("{} is left as it is: it would not be read back: {broken}", old.display())))
        }
    }
}

/// From the last line to the first, so that the places of the others stay.
fn rewritten(old: &[String], mut outcomes: Vec<Outcome>) -> Vec<String> {
    outcomes.sort_by_key(|outcome| std::cmp::Reverse(outcome.node.place.line));
    let mut lines = old.to_vec();
    for Outcome { node, mut edits, .. } in outcomes {
        // The block stands below the others, so it comes first.
        edits.sort_by_key(|edit| !matches!(edit, Edit::Block(_)));
        for edit in edits {
            match edit {
                Edit::Block(mut new) => {
                    let at = node.block.lines.start.min(lines.len())..node.block.lines.end.min(lines.len());
                    if !node.block.separated {
                        new.insert(0, SEPARATOR.to_string());
                    }
                    lines.splice(at, new);
                }
                Edit::Line(line, text) => change(&mut lines, line, |old| *old = text),
                Edit::Word(nth, text) => change(&mut lines, node.place.line, |old| *old = with_word(old, nth, &text)),
            }
        }
    }
    lines
}

fn change(lines: &mut [String], line: usize, change: impl FnOnce(&mut String)) {
    if let Some(old) = line.checked_sub(1).and_then(|at| lines.get_mut(at)) {
        change(old);
    }
}

/// A line with another word in one of its places.
fn with_word(line: &str, nth: usize, word: &str) -> String {
    let Some(old) = line.split_whitespace().nth(nth) else { return line.to_string() };
    // Words are parts of the line, so the one that is meant has a place in it.
    let at = old.as_ptr() as usize - line.as_ptr() as usize;
    let before = if word.is_empty() { line[..at].trim_end() } else { &line[..at] };
    format!("{before}{word}{}", &line[at + old.len()..])
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
        let lines = with_patterns(&expected, &[row(&["0", "x", "0"]), row(&["a", "x", "1"]), row(&["b", "3", "2"])]);
        assert_eq!(lines, ["0 x 0", "a <ignore> 1", "b <~[0-9]> 2"], "a row more is no reason to lose any");
        assert_eq!(with_patterns(&expected, &[row(&["b", "3", "2"])]), ["b <~[0-9]> 2"]);
        assert_eq!(with_patterns(&expected, &[]), Vec::<String>::new());
        let text = |lines: &[&str]| lines.iter().map(ToString::to_string).collect::<Vec<String>>();
        let lines = with_line_patterns(&text(&["x", "<~[0-9]+> ms", "y"]), &text(&["z", "12 ms", "y", "w"]));
        assert_eq!(lines, ["z", "<~[0-9]+> ms", "y", "w"]);
    }

    fn query(folder: &Path, text: &str) -> Node {
        let path = folder.join("x.slt");
        std::fs::write(&path, text).unwrap();
        script::read(&path).unwrap().nodes.pop().unwrap()
    }

    #[test]
    fn what_is_written_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let node = query(folder.path(), "control compare exact\n\nquery T\nSELECT 1\n----\n${i}\n\\$x\n");
        let mut variables = Variables::default();
        variables.set("i", "7".into());
        variables.on = true;
        let lines = ["7", "$x", "$y", "\\NULL", "/f/out"].map(String::from).to_vec();
        let written = written(&node, lines.clone(), "/f", &variables);
        variables.set("__TEST_DIR__", "/f".into());
        let expected = ["${i}", "\\$x", "\\$y", "\\\\NULL", "$__TEST_DIR__/out"];
        assert!(written.is_err(), "the folder had no name yet");
        assert_eq!(super::written(&node, lines, "/f", &variables).unwrap(), expected);
        let two = vec!["a\nb".to_string()];
        assert!(super::written(&node, two, "/f", &variables).is_err());
    }

    #[test]
    fn rounds_that_come_to_different_things_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let node = query(folder.path(), "query I\nSELECT 1\n----\n0\n");
        let edit = |line: &str| vec![Edit::Block(vec![line.to_string()])];
        let mut completion = Completion::default();
        assert!(!completion.keep(&node, Vec::new()), "the first round is as it is expected");
        assert!(completion.keep(&node, edit("2")) && completion.keep(&node, edit("4")));
        assert_eq!(completion.write().0, Vec::<String>::new(), "nothing is right for all of them");
        let mut completion = Completion::default();
        assert!(!completion.keep(&node, edit("2")) && !completion.keep(&node, edit("2")));
        assert_eq!(completion.write().0.len(), 1);
        assert_eq!(std::fs::read_to_string(folder.path().join("x.slt")).unwrap(), "query I\nSELECT 1\n----\n2\n");
    }

    #[test]
    fn a_link_stays_a_link() {
        let folder = tempfile::tempdir().unwrap();
        query(folder.path(), "query I\nSELECT 1\n----\n0\n");
        let link = folder.path().join("link.slt");
        std::os::unix::fs::symlink("x.slt", &link).unwrap();
        let node = script::read(&link).unwrap().nodes.pop().unwrap();
        let mut completion = Completion::default();
        completion.keep(&node, vec![Edit::Word(1, "II".into()), Edit::Block(vec!["1".into()])]);
        assert!(completion.write().1.is_empty());
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(std::fs::read_to_string(&link).unwrap(), "query II\nSELECT 1\n----\n1\n");
    }
}
