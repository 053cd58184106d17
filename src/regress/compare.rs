//! Expected rows against actual ones.

use regex::Regex;
use similar::{ChangeTag, TextDiff};
use sqllogictest::{SortMode, default_normalizer, default_validator};

use super::values::Style;

/// A cell that may hold anything.
const IGNORE: &str = "<ignore>";

/// Whether the rows are those that are expected.
///
/// # Errors
/// A cell that is no regular expression.
pub fn same(expected: &[String], actual: &[Vec<String>], style: Style) -> Result<bool, String> {
    if style == Style::Plain {
        return Ok(default_validator(default_normalizer, actual, expected));
    }
    if expected.len() != actual.len() {
        return Ok(false);
    }
    for (line, row) in expected.iter().zip(actual) {
        if !row_is(line, row)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Why no lines of a file that is not exact are compared as these rows are.
pub fn unexpectable(rows: &[Vec<String>]) -> Option<String> {
    let is_read_back =
        |row: &Vec<String>| default_validator(default_normalizer, std::slice::from_ref(row), &[row.join(" ")]);
    let at = rows.iter().position(|row| !is_read_back(row))?;
    let cell = rows[at].iter().position(|cell| cell.trim().is_empty()).unwrap_or_default();
    Some(format!(
        "cell {} of row {} has nothing but blanks, beside other cells: no line of a file that is not exact stands for that (control compare exact shows them)",
        cell + 1,
        at + 1
    ))
}

/// Whether a row of an exact file is the one that a line expects.
///
/// # Errors
/// A cell that is no regular expression.
pub fn row_is(line: &str, row: &[String]) -> Result<bool, String> {
    let cells: Vec<&str> = line.split(' ').collect();
    if cells.len() != row.len() {
        // The blanks of a value are shown, so that only the line of a hash, `3 values hashing to …`, has some.
        return Ok(matches!(row, [only] if only == line));
    }
    for (cell, value) in cells.iter().zip(row) {
        if !matches(cell, value)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether a cell is the value, or a pattern that the whole value fits.
///
/// # Errors
/// It is no regular expression.
pub fn matches(cell: &str, value: &str) -> Result<bool, String> {
    if cell == IGNORE {
        return Ok(true);
    }
    match pattern(cell) {
        None => Ok(cell == value),
        Some(pattern) => {
            let anchored = whole(pattern).and_then(|pattern| Regex::new(&format!("^{pattern}$")));
            anchored.map(|regex| regex.is_match(value)).map_err(|e| format!("{cell} is no regular expression: {e}"))
        }
    }
}

/// An expression as a part of another: one by itself, so that no bracket of it closes what is around it.
fn whole(pattern: &str) -> Result<String, regex::Error> {
    Regex::new(pattern).map(|_| format!("(?:{pattern})"))
}

fn pattern(cell: &str) -> Option<&str> {
    cell.strip_prefix("<~").and_then(|rest| rest.strip_suffix('>'))
}

/// Whether lines that a program prints are those that are expected: a line may hold patterns beside its text.
///
/// # Errors
/// A pattern that is no regular expression.
pub fn same_lines(expected: &[String], actual: &[String]) -> Result<bool, String> {
    if expected.len() != actual.len() {
        return Ok(false);
    }
    for (line, value) in expected.iter().zip(actual) {
        if !line_is(line, value)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether a line that a program prints is the one that is expected.
///
/// # Errors
/// A pattern that is no regular expression.
pub fn line_is(line: &str, value: &str) -> Result<bool, String> {
    Ok(line == value || has_patterns(line) && line_pattern(line)?.is_match(value))
}

/// Whether a line of what a program prints holds patterns.
pub fn has_patterns(line: &str) -> bool {
    line.contains(IGNORE) || line.contains("<~")
}

/// A line with patterns in it, as one anchored pattern.
fn line_pattern(line: &str) -> Result<Regex, String> {
    let (mut all, mut rest) = (String::from("^"), line);
    while let Some(at) = [rest.find(IGNORE), rest.find("<~")].into_iter().flatten().min() {
        all += &regex::escape(&rest[..at]);
        rest = &rest[at..];
        match rest.strip_prefix(IGNORE) {
            Some(behind) => {
                all += ".*";
                rest = behind;
            }
            None => {
                let end = rest.find('>').ok_or_else(|| format!("{line:?}: a pattern ends with >"))?;
                all += &whole(&rest[2..end]).map_err(|e| format!("{line:?} is no pattern: {e}"))?;
                rest = &rest[end + 1..];
            }
        }
    }
    all += &format!("{}$", regex::escape(rest));
    Regex::new(&all).map_err(|e| format!("{line:?} is no pattern: {e}"))
}

/// Whether a line may not be written anew as it is: it has cells that stand for many values.
pub fn is_pattern(cell: &str) -> bool {
    cell == IGNORE || pattern(cell).is_some()
}

/// Rows in the order that a record asks for.
pub fn sorted(mut rows: Vec<Vec<String>>, sort: SortMode) -> Vec<Vec<String>> {
    match sort {
        SortMode::NoSort => {}
        SortMode::RowSort => rows.sort_unstable(),
        SortMode::ValueSort => {
            rows = rows.into_iter().flatten().map(|value| vec![value]).collect();
            rows.sort_unstable();
        }
    }
    rows
}

/// Rows as lines of a file.
pub fn lines(rows: &[Vec<String>]) -> Vec<String> {
    rows.iter().map(|row| row.join(" ")).collect()
}

/// Side by side: `-` only expected, `+` only there.
pub fn diff(expected: &[String], actual: &[String]) -> String {
    let (old, new) = (expected.join("\n") + "\n", actual.join("\n") + "\n");
    let (old, new) = (if expected.is_empty() { "" } else { &old }, if actual.is_empty() { "" } else { &new });
    let mut out = String::new();
    for change in TextDiff::from_lines(old, new).iter_all_changes() {
        let sign = match change.tag() {
            ChangeTag::Equal => ' ',
            ChangeTag::Delete => '-',
            ChangeTag::Insert => '+',
        };
        let line = change.value().trim_end_matches('\n');
        match change.tag() {
            ChangeTag::Equal => out += &format!("  {sign} {line}\n"),
            _ => out += &format!("  {sign} {}\n", with_end(line)),
        }
    }
    if out.is_empty() { "    (no rows)\n".into() } else { out }
}

/// A line whose blanks at the end can be seen.
fn with_end(line: &str) -> String {
    let seen = line.trim_end();
    let blanks = line[seen.len()..].chars().map(|c| match c {
        ' ' => '␠',
        '\t' => '␉',
        '\r' => '␍',
        c => c,
    });
    seen.chars().chain(blanks).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cells: &[&str]) -> Vec<String> {
        cells.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn cells_are_compared_one_by_one() {
        let exact = |line: &str, cells: &[&str]| same(&[line.to_string()], &[row(cells)], Style::Exact);
        assert_eq!(exact("a b c", &["a", "b", "c"]), Ok(true));
        assert_eq!(exact("a b c", &["a b", "c"]), Ok(false), "a space is no border that the eye could miss");
        assert_eq!(exact("a  c", &["a", "c"]), Ok(false));
        assert_eq!(exact("<ignore> <~[0-9]+>", &["x", "12"]), Ok(true));
        assert_eq!(exact("a <~[0-9]+>", &["a", "12x"]), Ok(false), "patterns are anchored");
        assert!(exact("<~(>", &["a"]).is_err());
        assert!(exact("<~a)|(b>", &["ab"]).is_err(), "it would be two, and neither of them anchored");
        assert_eq!(same(&["a  b".into()], &[row(&["a", "b"])], Style::Plain), Ok(true));
    }

    #[test]
    fn lines_hold_patterns_beside_their_text() {
        let same = |a: &str, b: &str| same_lines(&[a.to_string()], &[b.to_string()]);
        assert_eq!(same("1 row · <~[0-9.]+> ms", "1 row · 9.5 ms"), Ok(true));
        assert_eq!(same("1 row · <~[0-9.]+> ms", "1 row · 9.5 s"), Ok(false));
        assert_eq!(same("(<ignore>)", "(a b)"), Ok(true));
        assert_eq!(same("a < b", "a < b"), Ok(true));
        assert!(same("<~(>", "x").is_err() && same("x <~a)|(b>", "x ab").is_err());
    }

    #[test]
    fn a_difference_shows_both_sides() {
        let (a, b) = (row(&["x 1", "y 2"]), row(&["x 1", "y 3"]));
        assert_eq!(diff(&a, &b), "    x 1\n  - y 2\n  + y 3\n");
        assert_eq!(diff(&row(&["x "]), &row(&["x"])), "  - x␠\n  + x\n");
    }

    #[test]
    fn a_hash_is_one_cell_with_blanks() {
        let hash = "3 values hashing to c0710d6b";
        assert_eq!(row_is(hash, &row(&[hash])), Ok(true));
        assert_eq!(row_is("3 values hashing to 00", &row(&[hash])), Ok(false));
        assert_eq!(row_is("a b", &row(&["a", "b", "c"])), Ok(false));
    }

    #[test]
    fn rows_that_no_line_stands_for_are_told() {
        let why = |cells: &[&str]| unexpectable(&[row(&["a", "b"]), row(cells)]);
        assert!(why(&[" ", "8"]).is_some_and(|why| why.starts_with("cell 1 of row 2")));
        assert!(why(&["a", "\t", "8"]).is_some_and(|why| why.starts_with("cell 2 of row 2")));
        assert_eq!((why(&[" y  z ", "9"]), why(&[" "])), (None, None));
    }
}
