//! How deep a statement may nest: what would overflow the stack is refused before it is parsed.
//!
//! sqlparser grows its stack as it descends, but the trees it makes are dropped, cloned and compared by plain
//! recursion. Two things make a tree deep: brackets in brackets, and a chain of operators (`a OR b OR c …` leans to the
//! left, one level an operator). Lists are flat and may be of any length.

use sqlparser::tokenizer::Token;

use super::lexer::Lexeme;
use crate::error::{Error, Result, Span};

/// Brackets in brackets.
const DEEPEST: usize = 100;

/// Operators in a row, at one depth and without a comma between them.
const LONGEST_CHAIN: usize = 5_000;

/// What sqlparser may use up; each bracket costs it up to three.
pub(super) const RECURSION_LIMIT: usize = 3 * DEEPEST + 50;

/// # Errors
/// Too many brackets in each other, or too many operators in a row, with the place of the first too many.
pub(super) fn check(lexemes: &[Lexeme]) -> Result<()> {
    let mut levels = vec![Level { chain: 0, case: false }];
    let mut angles = 0usize;
    for (at, lexeme) in lexemes.iter().enumerate() {
        match &lexeme.token {
            Token::LParen | Token::LBracket | Token::LBrace => {
                // `a[1][2]…` is a chain too.
                count(&mut levels, lexeme)?;
                levels.push(Level { chain: 0, case: false });
            }
            Token::RParen | Token::RBracket | Token::RBrace if levels.len() > 1 => {
                levels.pop();
            }
            Token::Comma => restart(&mut levels),
            Token::Lt if at > 0 && lexemes[at - 1].is_any(&["ARRAY", "STRUCT", "MAP"]) => angles += 1,
            Token::Gt if angles > 0 => angles -= 1,
            Token::ShiftRight if angles > 0 => angles = angles.saturating_sub(2),
            Token::Word(_) if lexeme.is_word("CASE") => levels.push(Level { chain: 0, case: true }),
            Token::Word(_) if levels.last().is_some_and(|l| l.case) && lexeme.is_any(&["WHEN", "THEN", "ELSE"]) => {
                restart(&mut levels);
            }
            Token::Word(_) if levels.last().is_some_and(|l| l.case) && lexeme.is_word("END") => {
                levels.pop();
            }
            Token::Word(_) if !lexeme.is_any(&OPERATOR_WORDS) => {}
            token if is_operand(token) => {}
            _ => count(&mut levels, lexeme)?,
        }
        if levels.len() + angles > DEEPEST {
            return Err(too_deep(Some(lexeme.span)));
        }
    }
    Ok(())
}

/// A bracket, or a CASE, and the operators in it since the last comma.
struct Level {
    chain: usize,
    case: bool,
}

fn restart(levels: &mut [Level]) {
    if let Some(level) = levels.last_mut() {
        level.chain = 0;
    }
}

const OPERATOR_WORDS: [&str; 15] = [
    "AND", "OR", "NOT", "IS", "IN", "LIKE", "ILIKE", "SIMILAR", "BETWEEN", "UNION", "EXCEPT", "INTERSECT", "MINUS",
    "COLLATE", "AT",
];

fn count(levels: &mut [Level], lexeme: &Lexeme) -> Result<()> {
    let Some(level) = levels.last_mut() else { return Ok(()) };
    level.chain += 1;
    if level.chain <= LONGEST_CHAIN {
        return Ok(());
    }
    Err(Error::invalid_at(lexeme.span, format!("more than {LONGEST_CHAIN} operators in a row"))
        .help("write a list (IN (…), VALUES …), or put parts of it into parentheses"))
}

/// The refusal of what nests too deeply.
pub(super) fn too_deep(place: Option<Span>) -> Error {
    Error::invalid(format!("the statement is nested too deeply: at most {DEEPEST} brackets may stand in each other"))
        .at(place)
        .help("take inner parts out into WITH … AS (…) or a view")
}

fn is_operand(token: &Token) -> bool {
    matches!(
        token,
        Token::Number(..)
            | Token::SingleQuotedString(_)
            | Token::EscapedStringLiteral(_)
            | Token::DollarQuotedString(_)
            | Token::HexStringLiteral(_)
            | Token::RParen
            | Token::RBracket
            | Token::RBrace
    )
}
