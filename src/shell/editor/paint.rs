//! Colours of what is typed, by the lexer that reads it. Nothing is added but colours, so that the width stays what it is.

use std::ops::Range;

use crate::parser::{TokenKind, tokens};
use crate::shell::complete::{Snapshot, is_query_word, statement_words};

const KEYWORD: &str = "\x1b[1;34m";
const FUNCTION: &str = "\x1b[36m";
const TEXT: &str = "\x1b[32m";
const NUMBER: &str = "\x1b[35m";
const QUOTED: &str = "\x1b[33m";
const COMMENT: &str = "\x1b[2m";
const COMMAND: &str = "\x1b[36m";
const PARTNER: &str = "\x1b[1;4m";
const LONE: &str = "\x1b[1;31m";
const RESET: &str = "\x1b[0m";

/// A bracket at the cursor, and the one that belongs to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) one: usize,
    /// `None`: there is none.
    pub(super) other: Option<usize>,
}

/// The line with colours. `earlier` is what of the statement stands above it.
pub(super) fn paint(earlier: &str, line: &str, pair: Option<Pair>, snapshot: &Snapshot) -> String {
    let text = format!("{earlier}{line}");
    let spans = tokens(&text);
    let word = |n: usize| spans.get(n).map(|span| &text[span.range.clone()]);
    let mut painted = String::with_capacity(line.len() * 2);
    let mut at = earlier.len();
    for (n, span) in spans.iter().enumerate() {
        let range = span.range.start.max(at)..span.range.end;
        if range.is_empty() {
            continue;
        }
        let style = match span.kind {
            TokenKind::Text => Some(TEXT),
            TokenKind::QuotedName => Some(QUOTED),
            TokenKind::Number => Some(NUMBER),
            TokenKind::Comment => Some(COMMENT),
            TokenKind::Word => {
                let before = n.checked_sub(1).and_then(word);
                word_style(&text[span.range.clone()], before, word(n + 1), snapshot)
            }
            TokenKind::Symbol => symbol_style(&text[range.clone()], range.start - earlier.len(), pair),
        };
        painted.push_str(&text[at..range.start]);
        match style {
            Some(style) => painted.extend([style, &text[range.clone()], RESET]),
            None => painted.push_str(&text[range.clone()]),
        }
        at = range.end;
    }
    painted.push_str(&text[at..]);
    painted
}

fn word_style(word: &str, before: Option<&str>, behind: Option<&str>, snapshot: &Snapshot) -> Option<&'static str> {
    if before == Some("\\") {
        return Some(COMMAND);
    }
    if before == Some(".") {
        return None;
    }
    if behind == Some("(") && snapshot.is_function(word) {
        return Some(FUNCTION);
    }
    let upper = word.to_ascii_uppercase();
    // Words such as `state` and `format` are names as often as keywords: they are what begins a statement, or what shouts.
    let is_statement =
        statement_words().contains(upper.as_str()) && (word == upper || before.is_none_or(|it| it == ";"));
    (is_query_word(word) || is_statement).then_some(KEYWORD)
}

fn symbol_style(symbol: &str, at: usize, pair: Option<Pair>) -> Option<&'static str> {
    match pair {
        Some(Pair { one, other: None }) if one == at => Some(LONE),
        Some(Pair { one, other: Some(other) }) if one == at || other == at => Some(PARTNER),
        _ => (symbol == "\\").then_some(COMMAND),
    }
}

/// The bracket at the cursor, or else the one before it, and its partner. Those in strings and comments are none.
pub(super) fn pair(line: &str, cursor: usize) -> Option<Pair> {
    let is_bracket = |text: &str, at: usize| text.as_bytes().get(at).is_some_and(|byte| b"()[]{}".contains(byte));
    if !is_bracket(line, cursor) && !cursor.checked_sub(1).is_some_and(|before| is_bracket(line, before)) {
        return None;
    }
    let spans = tokens(line);
    let brackets: Vec<Range<usize>> = spans
        .into_iter()
        .filter(|span| {
            span.kind == TokenKind::Symbol && matches!(&line[span.range.clone()], "(" | ")" | "[" | "]" | "{" | "}")
        })
        .map(|span| span.range)
        .collect();
    let at_cursor = brackets.iter().position(|range| range.start == cursor);
    let found = at_cursor.or_else(|| brackets.iter().position(|range| range.end == cursor))?;
    let bracket = |n: usize| &line[brackets[n].clone()];
    let opens = |n: usize| matches!(bracket(n), "(" | "[" | "{");
    let mut depth = 0_usize;
    let order: Vec<usize> = if opens(found) { (found..brackets.len()).collect() } else { (0..=found).rev().collect() };
    for n in order {
        depth = if opens(n) == opens(found) { depth + 1 } else { depth - 1 };
        if depth == 0 {
            let matches =
                matches!((bracket(found.min(n)), bracket(found.max(n))), ("(", ")") | ("[", "]") | ("{", "}"));
            return Some(Pair { one: brackets[found].start, other: matches.then(|| brackets[n].start) });
        }
    }
    // What is open is still being typed.
    if opens(found) { None } else { Some(Pair { one: brackets[found].start, other: None }) }
}

#[cfg(test)]
pub(super) fn without_colours(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("\x1b[") {
        plain.push_str(before);
        rest = behind.split_once('m').map_or("", |(_, rest)| rest);
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The painted line, with `<k>`, `<t>` … for its colours.
    fn shown(earlier: &str, line: &str) -> String {
        let painted = paint(earlier, line, None, &Snapshot::default());
        assert_eq!(without_colours(&painted), line);
        let names =
            [(KEYWORD, "<k>"), (TEXT, "<t>"), (NUMBER, "<n>"), (QUOTED, "<q>"), (COMMENT, "<c>"), (COMMAND, "<m>")];
        names.iter().fold(painted, |text, (style, name)| text.replace(style, name)).replace(RESET, "<>")
    }

    #[test]
    fn each_token_has_its_colour() {
        for (line, expected) in [
            ("SELECT 1, 'a' FROM t", "<k>SELECT<> <n>1<>, <t>'a'<> <k>FROM<> t"),
            ("select state, \"B\" from t -- c", "<k>select<> state, <q>\"B\"<> <k>from<> t <c>-- c<>"),
            ("start query q OUTPUT MODE", "<k>start<> query q <k>OUTPUT<> <k>MODE<>"),
            ("SELECT t.from, 'op", "<k>SELECT<> t.from, <t>'op<>"),
            ("\\d t", "<m>\\<><m>d<> t"),
            ("  ü€ 'ä\n👩‍🚀' ", "  ü€ <t>'ä\n👩‍🚀'<> "),
        ] {
            assert_eq!(shown("", line), expected);
        }
    }

    #[test]
    fn a_line_goes_on_where_the_one_above_it_ended() {
        assert_eq!(shown("SELECT 'a\n", "b' AS x"), "<t>b'<> <k>AS<> x");
        assert_eq!(shown("/* SELECT\n", "FROM */ FROM"), "<c>FROM */<> <k>FROM<>");
    }

    #[test]
    fn brackets_find_their_partners() {
        for (line, cursor, expected) in [
            ("(a)", 3, Some((2, Some(0)))),
            ("(a)", 0, Some((0, Some(2)))),
            ("((a)", 1, Some((1, Some(3)))),
            ("((a)", 0, None),
            ("a)", 2, Some((1, None))),
            ("[a)", 3, Some((2, None))),
            ("(')' )", 6, Some((5, Some(0)))),
            ("(a)", 1, Some((0, Some(2)))),
            ("abc", 1, None),
        ] {
            assert_eq!(pair(line, cursor), expected.map(|(one, other)| Pair { one, other }), "{line} {cursor}");
        }
    }
}
