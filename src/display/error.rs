//! An error with its line of SQL and a caret under the place:
//!
//! ```text
//! error[E0100] orders.sql:14:8: column custmer not found
//!    14 | SELECT custmer FROM orders;
//!       |        ^^^^^^^ did you mean customer?
//! ```
//! Only text is made here, without colour; what comes from data or SQL can't move the cursor: control characters are
//! replaced. Columns are terminal columns, so that the caret also stands right behind tabs and wide characters.

use std::fmt::Write as _;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::error::{Error, Location, Span};

/// A longer line of SQL is shown in part.
const WIDEST: usize = 100;

/// So much of it is shown on any terminal.
const NARROWEST: usize = 16;

/// What of such a line stays visible in front of the place.
const BEFORE: usize = 40;

/// What a tab advances to.
const TAB: usize = 4;

/// Digits of the line number.
const GUTTER: usize = 5;

/// The error as lines of text, each ended by a newline. `source` is the input in which the error's place is counted;
/// `file` its name, where it has one; `statement` is where the statement begins, for an error that knows no better place.
pub fn render_error(error: &Error, source: &str, file: Option<&str>, statement: Option<Location>) -> String {
    render_error_within(error, source, file, statement, None)
}

/// The same, for a terminal of so many columns: a line that it would wrap takes the caret away from its place.
pub fn render_error_within(
    error: &Error,
    source: &str,
    file: Option<&str>,
    statement: Option<Location>,
    columns: Option<usize>,
) -> String {
    // In front of a line stands its number, and on both sides the mark of a cut.
    let room = columns.map(|columns| columns.saturating_sub(GUTTER + 3));
    let widest = room.map_or(WIDEST, |room| room.saturating_sub(2).clamp(NARROWEST, WIDEST));
    let mut out = format!("error[{}]", error.code());
    let place = error.span();
    match (file, place.map(|span| span.start).or(statement)) {
        (Some(file), Some(at)) => _ = write!(out, " {file}:{}:{}:", at.line, at.column),
        (Some(file), None) => _ = write!(out, " {file}:"),
        (None, Some(at)) => _ = write!(out, " {}:{}:", at.line, at.column),
        (None, None) => out.push(':'),
    }
    _ = writeln!(out, " {}", lines(&error.to_string(), 2));
    let help = error.help_text();
    let excerpt = place.and_then(|span| Some(excerpt(line(source, span.start.line)?, span, widest)));
    match (excerpt, help) {
        (Some(excerpt), help) => {
            let line = place.map_or(0, |at| at.start.line);
            _ = writeln!(out, "{line:>GUTTER$} | {}", excerpt.text);
            let carets = format!("{}{}", " ".repeat(excerpt.before), "^".repeat(excerpt.width));
            let help = help.map(|help| lines(help, GUTTER + 3)).unwrap_or_default();
            let first = help.lines().next().unwrap_or_default().width();
            let gap = match room {
                _ if help.is_empty() => String::new(),
                Some(room) if carets.width() + 1 + first > room => format!("\n{:>GUTTER$} | ", ""),
                _ => " ".to_string(),
            };
            _ = writeln!(out, "{:>GUTTER$} | {carets}{gap}{help}", "");
        }
        (None, Some(help)) => _ = writeln!(out, "  help: {}", lines(help, 8)),
        (None, None) => {}
    }
    out
}

/// Text without control characters; further lines are indented.
fn lines(text: &str, indent: usize) -> String {
    let clean = |line: &str| line.chars().map(visible).collect::<String>();
    text.lines().map(clean).collect::<Vec<_>>().join(&format!("\n{}", " ".repeat(indent)))
}

fn visible(c: char) -> char {
    match c {
        '\t' => ' ',
        c if c.is_control() => char::REPLACEMENT_CHARACTER,
        // Marks that turn the direction of what follows.
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => char::REPLACEMENT_CHARACTER,
        c => c,
    }
}

/// A line of the source, counted from 1.
fn line(source: &str, number: u64) -> Option<&str> {
    let source = source.strip_prefix('\u{feff}').unwrap_or(source);
    let line = source.split('\n').nth(usize::try_from(number.checked_sub(1)?).ok()?)?;
    Some(line.strip_suffix('\r').unwrap_or(line))
}

/// A line, or a part of it, and the terminal columns of a place in it.
struct Excerpt {
    text: String,
    before: usize,
    width: usize,
}

fn excerpt(line: &str, span: Span, widest: usize) -> Excerpt {
    let cells = cells(line);
    let first = usize::try_from(span.start.column.saturating_sub(1)).unwrap_or(usize::MAX).min(cells.len());
    let last = if span.end.line == span.start.line {
        usize::try_from(span.end.column.saturating_sub(1)).unwrap_or(usize::MAX).clamp(first, cells.len())
    } else {
        cells.len()
    };
    let (from, to) = window(&cells, first, widest);
    let (cut_before, cut_after) = (from > 0, to < cells.len());
    let inner = |range: std::ops::Range<usize>| cells.get(range).unwrap_or_default().concat();
    let mark = |cut: bool| if cut { "…" } else { "" };
    let before = format!("{}{}", mark(cut_before), inner(from..first));
    Excerpt {
        text: format!("{before}{}{}", inner(first..to), mark(cut_after)),
        before: before.width(),
        width: inner(first..last.min(to)).width().max(1),
    }
}

/// The part of a line that is shown: all of it, or what stands around the character at `place`.
fn window(cells: &[String], place: usize, widest: usize) -> (usize, usize) {
    let total: usize = cells.iter().map(|cell| cell.width()).sum();
    if total <= widest {
        return (0, cells.len());
    }
    let fits = |mut room: usize| {
        move |cell: &&String| {
            let width = cell.width();
            let fits = width <= room;
            room = room.saturating_sub(width);
            fits
        }
    };
    let back = cells[..place].iter().rev().take_while(fits(BEFORE.min(widest / 2))).count();
    let from = place - back;
    let to = from + cells[from..].iter().take_while(fits(widest)).count();
    (from, to)
}

/// Each character as it is shown.
fn cells(line: &str) -> Vec<String> {
    let mut column = 0;
    let mut cells = Vec::with_capacity(line.len());
    for c in line.chars() {
        let cell = if c == '\t' { " ".repeat(TAB - column % TAB) } else { visible(c).to_string() };
        column += if c == '\t' { cell.len() } else { visible(c).width().unwrap_or(0) };
        cells.push(cell);
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Location;

    fn span(line: u64, start: u64, end: u64) -> Span {
        Span { start: Location { line, column: start }, end: Location { line, column: end } }
    }

    fn shown(source: &str, span: Span) -> String {
        render_error(&Error::invalid_at(span, "wrong").help("do right"), source, Some("a.sql"), None)
    }

    #[test]
    fn the_layout() {
        let source = "SELECT 1;\r\nSELECT custmer FROM orders;\r\n";
        assert_eq!(
            shown(source, span(2, 8, 15)),
            "error[E0100] a.sql:2:8: wrong\n    2 | SELECT custmer FROM orders;\n      |        ^^^^^^^ do right\n"
        );
        let error = Error::unsupported("no").at(Some(span(1, 1, 7)));
        assert_eq!(
            render_error(&error, source, None, None),
            "error[E0200] 1:1: no\n    1 | SELECT 1;\n      | ^^^^^^\n"
        );
    }

    #[test]
    fn without_a_place() {
        let error = Error::invalid("wrong\nin two lines").help("do right");
        assert_eq!(
            render_error(&error, "SELECT 1", None, None),
            "error[E0100]: wrong\n  in two lines\n  help: do right\n"
        );
        assert_eq!(render_error(&Error::conflict("taken"), "", Some("x"), None), "error[E0500] x: taken\n");
        // A place that is not in the source shows no line.
        assert_eq!(
            render_error(&Error::invalid_at(span(9, 1, 2), "wrong"), "SELECT 1", None, None),
            "error[E0100] 9:1: wrong\n"
        );
    }

    #[test]
    fn wide_characters_tabs_and_the_end_of_a_line() {
        assert_eq!(
            shown("\u{feff}\tSELECT '日本', größe FROM s", span(1, 15, 20)),
            "error[E0100] a.sql:1:15: wrong\n    1 |     SELECT '日本', größe FROM s\n      |                    ^^^^^ do right\n"
        );
        assert_eq!(
            shown("日\t本", span(1, 3, 4)),
            "error[E0100] a.sql:1:3: wrong\n    1 | 日  本\n      |     ^^ do right\n"
        );
        assert_eq!(
            shown("SELECT", span(1, 7, 7)),
            "error[E0100] a.sql:1:7: wrong\n    1 | SELECT\n      |       ^ do right\n"
        );
        let two_lines = Span { start: Location { line: 1, column: 8 }, end: Location { line: 2, column: 2 } };
        assert_eq!(
            shown("SELECT 'a\nb'", two_lines),
            "error[E0100] a.sql:1:8: wrong\n    1 | SELECT 'a\n      |        ^^ do right\n"
        );
    }

    #[test]
    fn a_long_line_is_shown_around_its_place() {
        let source = format!("{}WRONG{}", "a".repeat(500), "b".repeat(500));
        let text = shown(&source, span(1, 501, 506));
        let shown: Vec<&str> = text.lines().collect();
        assert_eq!(shown[1], format!("    1 | …{}WRONG{}…", "a".repeat(40), "b".repeat(55)));
        assert_eq!(shown[2], format!("      | {}^^^^^ do right", " ".repeat(41)));
        // A span longer than the window is cut with it.
        let text = super::tests::shown(&source, span(1, 1, 1006));
        assert!(text.lines().nth(2).is_some_and(|carets| carets.matches('^').count() == 100));
        for place in 0..1100 {
            super::tests::shown(&source, span(1, place, place + 7));
        }
    }

    #[test]
    fn nothing_moves_the_cursor() {
        let error = Error::invalid_at(span(1, 1, 3), "a\u{1b}[2Jb\r").help("\u{7}c\u{202e}d");
        let text = render_error(&error, "x\u{1b}[31m\u{0}y", None, None);
        assert!(!text.contains(|c: char| (c.is_control() && c != '\n') || c == '\u{202e}'), "{text:?}");
        assert!(text.contains("a\u{fffd}[2Jb"));
    }

    #[test]
    fn a_line_that_a_terminal_would_wrap_is_shown_in_part() {
        let source = "SELECT page FROM pages WHERE nothin = 1 AND a_very_long_column_name = 3";
        let error = Error::invalid_at(span(1, 30, 36), "wrong").help("did you mean \"nothing\"?");
        let text = render_error_within(&error, source, None, None, Some(40));
        assert!(text.lines().all(|line| line.width() <= 40), "{text}");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1], "    1 | …OM pages WHERE nothin = 1 AND …");
        assert_eq!(lines[2], "      |                 ^^^^^^");
        assert_eq!(lines[3], "      | did you mean \"nothing\"?");
        let wide = render_error_within(&error, source, None, None, Some(120));
        assert_eq!(wide, render_error(&error, source, None, None));
    }
}
