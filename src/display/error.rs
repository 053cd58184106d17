//! An error with its place and its line of SQL.

use crate::error::Error;

/// The error as the shell shows it, without a newline at the end: code, `file:line:column`, the line of `source`
/// with a caret under the place, and what to do about it. `file`: `None` in an edited buffer.
pub fn render_error(error: &Error, source: &str, file: Option<&str>) -> String {
    let mut head = format!("error[{}]", error.code());
    let Some(span) = error.span() else {
        return match error.help_text() {
            Some(help) => format!("{head}: {error}\n  help: {help}"),
            None => format!("{head}: {error}"),
        };
    };
    let (line, column) = (span.start.line, span.start.column);
    head += &match file {
        Some(file) => format!(" {file}:{line}:{column}: {error}"),
        None => format!(" {line}:{column}: {error}"),
    };
    if let Some(text) = source.lines().nth(line.saturating_sub(1) as usize) {
        let width = if span.end.line == line { span.end.column.saturating_sub(column).max(1) } else { 1 };
        let (before, carets) = (" ".repeat(column.saturating_sub(1) as usize), "^".repeat(width as usize));
        head += &format!("\n{line:>5} | {text}\n      | {before}{carets}");
    }
    match error.help_text() {
        Some(help) => head + &format!(" {help}"),
        None => head,
    }
}
