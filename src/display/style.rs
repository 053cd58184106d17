//! What a result may be told about its looks, and the marks by which colour travels as text.
//!
//! Who draws writes a mark; who writes to a terminal makes an escape sequence of it. Marks are noncharacters of
//! Unicode, which [`visible`](super::visible) shows as escapes where data holds one: data can't colour anything.

use std::borrow::Cow;

use super::visible::visible_lines;

/// Less important.
pub const DIM: char = '\u{fdd0}';
/// More important.
pub const BOLD: char = '\u{fdd1}';
/// Something is wrong.
pub const ALERT: char = '\u{fdd2}';
/// As before.
pub const PLAIN: char = '\u{fdd3}';

/// Everything that is a mark or may become one.
const MARKS: std::ops::RangeInclusive<char> = '\u{fdd0}'..='\u{fdef}';

/// How rows are written, beyond their format. What a format has no room for, it leaves out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Style {
    /// What NULL is shown as; `None`: as the format has it.
    pub null: Option<String>,
    /// Names of columns, and the types below them.
    pub header: bool,
    /// Between fields, in csv and list.
    pub separator: Option<String>,
    /// Behind records, in csv and list.
    pub record_separator: Option<String>,
    /// Above a result for people.
    pub title: Option<String>,
    /// Columns of a grid are at least so wide, from the first on.
    pub widths: Vec<usize>,
    /// Of a grid's rows the first and last are shown, so many together.
    pub rows: Option<usize>,
    /// The terminal's columns: a grid is cut to fit, and says so.
    pub columns: Option<usize>,
    /// A grid that is wider than the terminal is written one column a line.
    pub vertical_when_wide: bool,
    /// Write marks.
    pub paint: bool,
}

impl Default for Style {
    fn default() -> Self {
        Style {
            null: None,
            header: true,
            separator: None,
            record_separator: None,
            title: None,
            widths: Vec::new(),
            rows: None,
            columns: None,
            vertical_when_wide: false,
            paint: false,
        }
    }
}

impl Style {
    /// The text between marks, where they are wanted.
    pub(super) fn painted<'a>(&self, mark: char, text: &'a str) -> Cow<'a, str> {
        if self.paint { Cow::Owned(paint(mark, text)) } else { Cow::Borrowed(text) }
    }
}

/// What became of the rows that were written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// All rows, those that are not shown too.
    pub rows: u64,
    pub shown_rows: u64,
    pub columns: usize,
    pub shown_columns: usize,
    /// Texts are cut for the terminal, or columns left out.
    pub clipped: bool,
}

/// The text between two marks.
pub fn paint(mark: char, text: &str) -> String {
    format!("{mark}{text}{PLAIN}")
}

/// Whether `c` is a mark, or would be taken for one.
pub(super) fn is_mark(c: char) -> bool {
    MARKS.contains(&c)
}

/// Text for a terminal: marks become escape sequences, and everything else that could move the cursor is shown.
pub fn for_terminal(text: &str, colour: bool) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(at) = rest.find(is_mark) {
        out.push_str(&visible_lines(&rest[..at]));
        let mark = rest[at..].chars().next().unwrap_or(PLAIN);
        if colour {
            out.push_str(escape_sequence(mark));
        }
        rest = &rest[at + mark.len_utf8()..];
    }
    out.push_str(&visible_lines(rest));
    out
}

/// Text for a file that wants colour: marks become escape sequences, and the rest stays.
pub fn for_file(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_mark(c) { out.push_str(escape_sequence(c)) } else { out.push(c) }
    }
    out
}

fn escape_sequence(mark: char) -> &'static str {
    match mark {
        DIM => "\x1b[2m",
        BOLD => "\x1b[1m",
        ALERT => "\x1b[1;31m",
        PLAIN => "\x1b[0m",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_become_colour_where_it_is_wanted() {
        let text = format!("a {} b\x1b[2J\n", paint(DIM, "7 rows"));
        assert_eq!(for_terminal(&text, true), "a \x1b[2m7 rows\x1b[0m b\\x1b[2J\n");
        assert_eq!(for_terminal(&text, false), "a 7 rows b\\x1b[2J\n");
        assert_eq!(for_file(&paint(BOLD, "x")), "\x1b[1mx\x1b[0m");
    }

    #[test]
    fn data_can_not_colour() {
        assert_eq!(super::super::visible("\u{fdd0}x\u{fdd3}"), "\\u{fdd0}x\\u{fdd3}");
    }
}
