//! Lexemes → sqlparser's AST, and sqlparser's errors → ours.
//!
//! Tokens keep their places in the input, so the AST's spans, and DataFusion's diagnostics made of them, point there.

use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::TokenWithSpan;

use super::cursor::{End, shown};
use super::depth;
use super::dialect::LevadaDialect;
use super::lexer::{Lexeme, point, theirs};
use crate::error::{Code, Error, Location, Result, Span, closest};

/// Words that, misspelt, make the words around them unreadable.
const CLAUSES: &[&str] = &[
    "SELECT",
    "DISTINCT",
    "FROM",
    "WHERE",
    "GROUP",
    "HAVING",
    "ORDER",
    "LIMIT",
    "OFFSET",
    "UNION",
    "EXCEPT",
    "INTERSECT",
    "JOIN",
    "INNER",
    "LEFT",
    "RIGHT",
    "FULL",
    "CROSS",
    "USING",
    "WITH",
    "WATERMARK",
    "VALUES",
    "INSERT",
    "INTO",
    "UPDATE",
    "DELETE",
    "TABLE",
    "VIEW",
    "INTERVAL",
    "PARTITION",
    "BETWEEN",
];

/// Runs one of sqlparser's productions over lexemes; answers what it made and how many lexemes it took.
/// `end` is what it finds when it wants more than there is.
///
/// # Errors
/// sqlparser's message, with the place of what it stumbled over.
pub(super) fn parse_prefix<T>(
    lexemes: &[Lexeme],
    end: End<'_>,
    production: impl FnOnce(&mut Parser<'_>) -> Result<T, ParserError>,
) -> Result<(T, usize)> {
    let depth = depth::check(lexemes)?;
    let tokens = lexemes.iter().map(|l| TokenWithSpan::new(l.token.clone(), theirs(l.span))).collect();
    let mut parser =
        Parser::new(&LevadaDialect).with_recursion_limit(depth::RECURSION_LIMIT).with_tokens_with_locations(tokens);
    match depth.with_stack(|| production(&mut parser)) {
        Ok(made) => Ok((made, parser.index().min(lexemes.len()))),
        Err(error) => Err(convert(error, lexemes, end)),
    }
}

/// The same for a production that must take all lexemes; `what_ends` with them, as in `the end of the query`.
pub(super) fn parse_all<T>(
    lexemes: &[Lexeme],
    end: End<'_>,
    what_ends: &str,
    production: impl FnOnce(&mut Parser<'_>) -> Result<T, ParserError>,
) -> Result<T> {
    let (made, taken) = parse_prefix(lexemes, end, production)?;
    match lexemes.get(taken) {
        None => Ok(made),
        Some(left) => {
            let message = format!("expected {what_ends}, found {}", shown(&left.token));
            Err(with_guess(Error::invalid_at(left.span, message).coded(Code::Syntax), lexemes, taken))
        }
    }
}

fn convert(error: ParserError, lexemes: &[Lexeme], end: End<'_>) -> Error {
    let text = match error {
        ParserError::ParserError(text) | ParserError::TokenizerError(text) => text,
        ParserError::RecursionLimitExceeded => return depth::too_deep(lexemes.first().map(|l| l.span)),
    };
    said(&text, lexemes, end).coded(Code::Syntax)
}

/// A message of sqlparser's, at its place.
fn said(text: &str, lexemes: &[Lexeme], end: End<'_>) -> Error {
    let (message, place) = split_place(text);
    // sqlparser's end of input has no place; its other errors without one are about the whole.
    if let Some(expected) = message.strip_suffix("found: EOF") {
        let message = reworded(&format!("{expected}found: {}", end.shown()));
        return with_guess(Error::invalid_at(end.span(), message), lexemes, lexemes.len());
    }
    let message = reworded(message);
    match place.map(|place| (place, lexemes.binary_search_by_key(&place, |l| l.span.start))) {
        Some((_, Ok(at))) => with_guess(Error::invalid_at(lexemes[at].span, message), lexemes, at),
        Some((place, Err(_))) => Error::invalid_at(point(place), message),
        None => {
            let start = lexemes.first().map_or(end.span().start, |l| l.span.start);
            Error::invalid_at(Span { start, end: end.span().start }, message)
        }
    }
}

/// `… at Line: 3, Column: 7` → the text before it, and the place.
fn split_place(text: &str) -> (&str, Option<Location>) {
    let Some((message, place)) = text.rsplit_once(" at Line: ") else { return (text, None) };
    let parsed = place
        .split_once(", Column: ")
        .and_then(|(line, column)| Some(Location { line: line.parse().ok()?, column: column.trim().parse().ok()? }));
    match parsed {
        Some(place) => (message, Some(place)),
        None => (text, None),
    }
}

/// sqlparser's `Expected: X, found: Y` in the house's words.
fn reworded(message: &str) -> String {
    let message = message.trim_start_matches("sql parser error: ");
    let Some((expected, found)) = message.strip_prefix("Expected: ").and_then(|rest| rest.rsplit_once(", found: "))
    else {
        return message.to_string();
    };
    format!("expected {}, found {found}", expected.trim_start_matches("expected to match "))
}

/// Adds the clause word that the word at `at`, or the one before it, may have been meant for.
fn with_guess(error: Error, lexemes: &[Lexeme], at: usize) -> Error {
    if error.help_text().is_some() {
        return error;
    }
    let guess = [Some(at), at.checked_sub(1)].into_iter().flatten().find_map(|at| {
        let word = lexemes.get(at)?.word()?;
        if word.chars().count() < 3 || CLAUSES.iter().any(|clause| clause.eq_ignore_ascii_case(word)) {
            return None;
        }
        closest(word, CLAUSES.iter().copied()).map(|clause| (word, clause))
    });
    match guess {
        Some((word, clause)) => error.help(format!("did you mean {clause} instead of {word}?")),
        None => error,
    }
}
