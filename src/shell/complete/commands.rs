//! The shell's own commands: their names in both alphabets, and their arguments as their usage describes them.

use super::around::Around;
use super::files::Files;
use super::found::Found;
use super::scope::given;
use super::snapshot::Snapshot;
use super::{Candidate, Completion};
use crate::catalog::types::to_sql;
use crate::display::Format;
use crate::error::explained;
use crate::parser::{TokenKind, TokenSpan, tokens};
use crate::shell::commands::statements;
use crate::shell::variables::SPECIAL;

/// One command: a name, and its arguments as help writes them, such as `[on|off]` or `FILE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::shell) struct Shape {
    pub(in crate::shell) name: &'static str,
    pub(in crate::shell) arguments: String,
}

/// Completes a command; `None`: the cursor stands in none.
pub(super) fn complete(snapshot: &Snapshot, files: &dyn Files, text: &str, at: usize) -> Option<Completion> {
    let begin = begin(text, at)?;
    let written = &text[begin..at];
    let Some((name, arguments)) = written.split_once(char::is_whitespace) else {
        return Some(names(snapshot, begin, written));
    };
    if matches!(name, "\\h" | "\\help") {
        return Some(manual(snapshot, files, arguments.trim_start(), at));
    }
    let words = words(arguments);
    let (word, before) = words.split_last()?;
    let shape = snapshot.commands.iter().find(|shape| shape.name == name);
    let pieces = shape.map(|shape| pieces(&shape.arguments)).unwrap_or_default();
    // The last piece stands for all that follow.
    let piece = pieces.get(before.len()).or(pieces.last().filter(|piece| piece.ends_with('…')));
    let start = at - word.len();
    let kind = if word.starts_with('"') { TokenKind::QuotedName } else { TokenKind::Word };
    let around = Around { before: Vec::new(), after: Vec::new(), typed: word, kind, start };
    let mut found = Found::new(snapshot, files, &around);
    match (name, before) {
        _ if word.starts_with(':') => _ = found.variables(":"),
        ("\\pset", ["format"]) => offer(&mut found, name, "FORMAT"),
        ("\\set", [variable]) => values(&mut found, variable),
        ("\\set", [_, _, ..]) => {}
        // Only a chart has columns.
        ("\\g", [first, ..]) if *first != "chart" => {}
        ("\\g" | "\\chart" | ".chart" | "\\crosstabview", _) if piece.is_some_and(|piece| is_column(piece)) => {
            columns(&mut found, &text[..begin]);
        }
        _ => {
            for choice in piece.iter().flat_map(|piece| piece.trim_end_matches('…').split('|')) {
                offer(&mut found, name, choice);
            }
        }
    }
    Some(found.finish())
}

/// What `\h` knows: statements of several words, codes of errors, functions.
fn manual(snapshot: &Snapshot, files: &dyn Files, typed: &str, at: usize) -> Completion {
    let start = at - typed.len();
    let around = Around { before: Vec::new(), after: Vec::new(), typed, kind: TokenKind::Word, start };
    let mut found = Found::new(snapshot, files, &around);
    statements().iter().for_each(|statement| found.entry(statement, ""));
    if !typed.contains(char::is_whitespace) && !typed.is_empty() {
        explained().for_each(|code| found.entry(code.code, code.means));
        found.functions(true);
    }
    found.finish()
}

/// Whether what begins at that byte stands behind the colon of a variable.
pub(super) fn is_variable(text: &str, start: usize) -> bool {
    text[..start].strip_suffix(':').is_some_and(|before| !before.ends_with(':'))
}

/// What a variable takes that means something to the shell.
fn values(found: &mut Found<'_>, variable: &str) {
    let takes = SPECIAL.iter().find(|(name, ..)| *name == variable).map_or(&[][..], |(_, takes, _)| takes);
    takes.iter().for_each(|value| found.entry(value, ""));
}

fn is_column(piece: &str) -> bool {
    matches!(piece, "COLUMN" | "colV" | "colH" | "colD" | "sortcolH")
}

/// The columns of the statement that stands before the command, or else of the last result.
fn columns(found: &mut Found<'_>, above: &str) {
    let snapshot = found.snapshot;
    let begun = Around::new(above, above.len()).map(|around| around.before).unwrap_or_default();
    if !begun.is_empty() {
        given(snapshot, &begun).iter().for_each(|column| found.name(&column.name, "", &column.detail));
    } else if let Some(schema) = snapshot.result.as_ref().and_then(|result| result.schema.as_ref()) {
        schema.fields().iter().for_each(|field| found.name(field.name(), "", &to_sql(field.data_type())));
    }
}

/// Where the command begins whose text the cursor stands in.
fn begin(text: &str, at: usize) -> Option<usize> {
    let line = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let head = &text[line..at];
    let spans = tokens(&text[..at]);
    let open = spans.iter().any(|span| span.range.start < line && span.range.end > line);
    let above = spans.iter().rfind(|span| span.kind != TokenKind::Comment && span.range.start < line);
    let is_free = !open && above.is_none_or(|span| &text[span.range.clone()] == ";");
    let dotted = head.strip_prefix('.').is_some_and(|rest| !rest.starts_with(|c: char| !c.is_ascii_alphabetic()));
    if is_free && dotted {
        return Some(line);
    }
    let is_backslash = |span: &&TokenSpan| span.range.start >= line && &text[span.range.clone()] == "\\";
    spans.iter().find(is_backslash).map(|span| span.range.start)
}

fn names(snapshot: &Snapshot, begin: usize, typed: &str) -> Completion {
    let mut candidates: Vec<Candidate> = Vec::new();
    for Shape { name, arguments } in snapshot.commands.iter().filter(|shape| shape.name.starts_with(typed)) {
        candidates.push(Candidate {
            display: name.to_string(),
            detail: arguments.clone(),
            replacement: name.to_string(),
            whole: !arguments.is_empty(),
            stands_for: 1,
        });
    }
    candidates.sort_by(|a, b| a.replacement.cmp(&b.replacement));
    candidates.dedup_by(|a, b| a.replacement == b.replacement);
    Completion { start: begin, candidates, examined: snapshot.commands.len() }
}

/// The words of a command's arguments; the last one is the one at the cursor, and may be empty. Quotes hold blanks.
fn words(arguments: &str) -> Vec<&str> {
    let (mut words, mut begin, mut quoted) = (Vec::new(), 0, false);
    for (at, c) in arguments.char_indices() {
        match c {
            '\'' => quoted = !quoted,
            c if c.is_whitespace() && !quoted => {
                if begin < at {
                    words.push(&arguments[begin..at]);
                }
                begin = at + c.len_utf8();
            }
            _ => {}
        }
    }
    words.push(&arguments[begin..]);
    words
}

/// `[NAME|PATTERN] [FILE]` → its parts, without brackets and what stands in parentheses.
fn pieces(usage: &str) -> Vec<String> {
    let mut depth = 0_usize;
    let mut plain = String::new();
    for c in usage.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            '[' | ']' => {}
            c if depth == 0 => plain.push(c),
            _ => {}
        }
    }
    plain.split_whitespace().filter(|piece| *piece != "…").map(str::to_string).collect()
}

fn offer(found: &mut Found<'_>, command: &str, choice: &str) {
    let snapshot = found.snapshot;
    let describes = matches!(command, "\\d" | "\\d+" | ".tables" | ".schema");
    match choice {
        "FILE" | "FILE.slt" => found.paths(false, false),
        "FOLDER" => found.paths(false, true),
        "QUERY" => found.names(&snapshot.queries),
        "STREAM" if matches!(command, "\\feed" | ".feed") => found.names(&snapshot.fed),
        "STREAM" => found.names(&snapshot.streams),
        "FORMAT" => Format::ALL.iter().for_each(|format| found.entry(format.name(), "")),
        "NAME" | "PATTERN" if describes => {
            found.relations();
            found.names(&snapshot.sinks);
            found.names(&snapshot.queries);
        }
        "NAME" if matches!(command, "\\set" | "\\unset" | "\\prompt" | "\\getenv") => {
            if command != "\\unset" {
                SPECIAL.iter().for_each(|(name, _, help)| found.entry(name, help));
            }
            found.variables("");
        }
        "PATTERN" if command == "\\ds" => found.names(&snapshot.streams),
        "PATTERN" if command == "\\dt" => found.names(&snapshot.tables),
        "PATTERN" if command == "\\dv" => found.names(&snapshot.views),
        "PATTERN" if command == "\\df" => found.functions(true),
        "FUNCTION" => found.functions(true),
        "STATEMENT" => found.words(&super::grammar::statements().expected(&[]).words),
        "COMMAND" if matches!(command, "\\?" | ".help") => {
            snapshot.commands.iter().for_each(|shape| found.entry(shape.name, ""));
        }
        word if !word.contains(|c: char| !(c.is_ascii_lowercase() || c == '-')) => found.entry(word, ""),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_is_read_as_its_parts() {
        for (usage, expected) in [
            ("[on|off|auto]", &["on|off|auto"][..]),
            ("[-n] TEXT", &["-n", "TEXT"]),
            ("[(OPTION=VALUE …)] [FILE|'|COMMAND']", &["FILE|'|COMMAND'"]),
            ("", &[]),
        ] {
            assert_eq!(pieces(usage), expected, "{usage}");
        }
    }

    #[test]
    fn where_a_command_begins() {
        for (marked, expected) in [
            ("\\d or|", Some(0)),
            (".ta|", Some(0)),
            ("SELECT 1 \\g f|", Some(9)),
            ("SELECT 1;\n.ta|", Some(10)),
            ("SELECT 1\n.ta|", None),
            ("SELECT '\\d|", None),
            ("SELECT 'a\n.ta|", None),
            ("SELECT .5|", None),
            (".5|", None),
        ] {
            let at = marked.find('|').unwrap();
            assert_eq!(begin(&marked.replacen('|', "", 1), at), expected, "{marked}");
        }
    }
}
