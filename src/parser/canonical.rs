//! The canonical text of SQL: the same for texts that differ in white space, comments and the case of words only.
//!
//! It is made of lexemes, not of the AST, so that nothing is lost that sqlparser's own writer would leave out, and our
//! clauses stand where they were written. Words that nobody quoted fold to lower case, as DataFusion folds them, or to
//! upper case when they are the bones of a statement; strings and quoted names stay as they are.

use sqlparser::tokenizer::Token;

use super::lexer::{Lexeme, lex};
use super::statement::QueryText;
use crate::error::Location;

/// The canonical SQL of a query, our clauses included. Two queries that could mean different things never share it.
pub fn canonical_query(query: &QueryText) -> String {
    canonical(&query.text)
}

/// The canonical text of any SQL; what can't be read as such comes back as it is.
pub(super) fn canonical(text: &str) -> String {
    let Ok(lexemes) = lex(text, Location { line: 1, column: 1 }) else { return text.to_string() };
    let mut out = String::with_capacity(text.len());
    let mut before: Option<&Lexeme> = None;
    for lexeme in &lexemes {
        if before.is_some_and(|before| is_spaced(before, lexeme)) {
            out.push(' ');
        }
        match &lexeme.token {
            Token::Word(word) if word.quote_style.is_none() => {
                if is_bone(lexeme) && !before.is_some_and(|b| b.token == Token::Period) {
                    out.push_str(&word.value.to_ascii_uppercase());
                } else {
                    out.push_str(&word.value.to_ascii_lowercase());
                }
            }
            Token::Word(word) => {
                out.push('"');
                out.push_str(&word.value.replace('"', "\"\""));
                out.push('"');
            }
            Token::Neq => out.push_str("<>"),
            _ => out.push_str(&text[lexeme.range.clone()]),
        }
        before = Some(lexeme);
    }
    out
}

/// Whether a space stands between two lexemes. Only where both sides make it impossible to read them as one token, or
/// as others, it is left out.
fn is_spaced(before: &Lexeme, after: &Lexeme) -> bool {
    let is_name = |lexeme: &Lexeme| matches!(lexeme.token, Token::Word(_));
    let closes = |lexeme: &Lexeme| matches!(lexeme.token, Token::RParen | Token::RBracket);
    match (&before.token, &after.token) {
        (Token::LParen | Token::LBracket, _) | (_, Token::RParen | Token::RBracket | Token::Comma) => false,
        (_, Token::Period) => !(is_name(before) || closes(before)),
        // The lexer has a rule of its own for `._`.
        (Token::Period, Token::Word(word)) => word.value.starts_with('_'),
        (Token::Period, Token::Mul) => false,
        (Token::DoubleColon, Token::Word(_)) | (Token::Word(_) | Token::RParen, Token::DoubleColon) => false,
        (Token::Word(_), Token::LParen) => is_bone(before),
        (Token::Word(_), Token::LBracket) => is_bone(before),
        (Token::RParen | Token::RBracket, Token::LBracket) => false,
        _ => true,
    }
}

/// The bones of a statement, which are written in upper case.
fn is_bone(lexeme: &Lexeme) -> bool {
    const BONES: &[&str] = &[
        "ALL",
        "AND",
        "ANTI",
        "AS",
        "ASC",
        "BETWEEN",
        "BY",
        "CASE",
        "CROSS",
        "DELAY",
        "DESC",
        "DISTINCT",
        "ELSE",
        "END",
        "EXCEPT",
        "EXISTS",
        "FALSE",
        "FILTER",
        "FROM",
        "FULL",
        "GROUP",
        "HAVING",
        "ILIKE",
        "IN",
        "INNER",
        "INTERSECT",
        "INTERVAL",
        "IS",
        "JOIN",
        "LATERAL",
        "LEFT",
        "LIKE",
        "LIMIT",
        "NATURAL",
        "NOT",
        "NULL",
        "NULLS",
        "OF",
        "OFFSET",
        "ON",
        "OR",
        "ORDER",
        "OUTER",
        "OVER",
        "PARTITION",
        "QUALIFY",
        "RECURSIVE",
        "RIGHT",
        "SELECT",
        "SEMI",
        "THEN",
        "TRUE",
        "UNION",
        "USING",
        "VALUES",
        "WATERMARK",
        "WHEN",
        "WHERE",
        "WITH",
        "WITHIN",
    ];
    lexeme.is_any(BONES)
}
