//! How deep a statement may be: what would overflow the stack is refused before it is parsed.
//!
//! sqlparser and DataFusion grow their stack where they descend, but the trees they make are cloned, compared and
//! dropped by plain recursion (a level of a clone costs 1.4 kB, and a thread has 2 MiB). Two things make a tree deep:
//! brackets in brackets, and a chain of operators: `a OR b OR c …` leans to the left, one level an operator. Lists are
//! flat and may be of any length.

use sqlparser::tokenizer::Token;

use super::lexer::Lexeme;
use crate::error::{Error, Result, Span};

/// Brackets in brackets.
const DEEPEST_BRACKETS: usize = 64;

/// Levels of the whole tree.
const DEEPEST_TREE: usize = 500;

/// What sqlparser may use up; each bracket costs it up to three.
pub(super) const RECURSION_LIMIT: usize = 3 * DEEPEST_BRACKETS + 50;

/// What parsing the lexemes can cost.
#[derive(Debug, Clone, Copy)]
pub(super) struct Depth {
    brackets: usize,
}

impl Depth {
    /// Runs the parser on a stack that is large enough. sqlparser leaves itself 128 KiB wherever it descends, and in a
    /// build that is not optimised that is not enough for its larger functions.
    pub fn with_stack<T>(self, parse: impl FnOnce() -> T) -> T {
        const A_BRACKET: usize = 256 << 10;
        let wanted = (self.brackets + 2) * A_BRACKET;
        stacker::maybe_grow(wanted, wanted, parse)
    }
}

/// # Errors
/// Too many brackets in each other, or a tree that is too deep, with the place of the first too many.
pub(super) fn check(lexemes: &[Lexeme]) -> Result<Depth> {
    let mut levels = vec![Level::default()];
    let mut angles = 0usize;
    let mut deepest = 0;
    for (at, lexeme) in lexemes.iter().enumerate() {
        let in_case = levels.last().is_some_and(|level| level.case);
        match &lexeme.token {
            Token::LParen | Token::LBrace => levels.push(Level::default()),
            Token::LBracket => {
                // `a[1][2]…` is a chain too.
                operator(&mut levels, Level::tight, lexeme)?;
                levels.push(Level::default());
            }
            Token::RParen | Token::RBracket | Token::RBrace => close(&mut levels, lexeme)?,
            Token::Comma => restart(&mut levels),
            Token::Lt if at > 0 && lexemes[at - 1].is_any(&["ARRAY", "STRUCT", "MAP"]) => angles += 1,
            Token::Gt if angles > 0 => angles -= 1,
            Token::ShiftRight if angles > 0 => angles = angles.saturating_sub(2),
            Token::Word(_) if at > 0 && lexemes[at - 1].token == Token::Period => {}
            Token::Word(_) if lexeme.is_word("CASE") => levels.push(Level { case: true, ..Level::default() }),
            Token::Word(_) if in_case && lexeme.is_word("END") => close(&mut levels, lexeme)?,
            Token::Word(_) if in_case && lexeme.is_any(&["WHEN", "THEN", "ELSE"]) => restart(&mut levels),
            Token::Word(_) if lexeme.is_any(&LOOSE) => operator(&mut levels, Level::loose, lexeme)?,
            Token::Word(_) if !lexeme.is_any(&TIGHT) => {}
            token if is_operand(token) => {}
            _ => operator(&mut levels, Level::tight, lexeme)?,
        }
        deepest = deepest.max(levels.len() - 1 + angles);
        if deepest > DEEPEST_BRACKETS {
            return Err(too_deep(Some(lexeme.span)));
        }
    }
    Ok(Depth { brackets: deepest })
}

/// Operators that bind so loosely that each of their operands is a chain of its own.
const LOOSE: [&str; 6] = ["AND", "OR", "UNION", "EXCEPT", "INTERSECT", "MINUS"];

const TIGHT: [&str; 9] = ["NOT", "IS", "IN", "LIKE", "ILIKE", "SIMILAR", "BETWEEN", "COLLATE", "AT"];

/// A bracket or a CASE that is open, and how deep its tree is so far.
#[derive(Debug, Default)]
struct Level {
    case: bool,
    /// The deepest item of its list.
    items: usize,
    /// The operands of AND, OR and so on, up to the last one.
    loose: usize,
    /// The operand that is read.
    tight: usize,
}

impl Level {
    fn tight(&mut self) {
        self.tight += 1;
    }

    fn loose(&mut self) {
        self.loose = 1 + self.loose.max(self.tight);
        self.tight = 0;
    }

    fn depth(&self) -> usize {
        self.items.max(self.loose).max(self.tight)
    }
}

fn operator(levels: &mut [Level], count: fn(&mut Level), lexeme: &Lexeme) -> Result<()> {
    let Some(level) = levels.last_mut() else { return Ok(()) };
    count(level);
    if level.depth() <= DEEPEST_TREE {
        return Ok(());
    }
    Err(Error::invalid_at(lexeme.span, format!("more than {DEEPEST_TREE} operators in a row"))
        .help("write a list instead of a chain: IN (…), VALUES …, or a table"))
}

/// The inner tree is an operand of the outer one.
fn close(levels: &mut Vec<Level>, lexeme: &Lexeme) -> Result<()> {
    if levels.len() < 2 {
        return Ok(());
    }
    let inner = levels.pop().map_or(0, |level| level.depth());
    if let Some(outer) = levels.last_mut() {
        outer.tight = outer.tight.max(inner + 1);
        if outer.depth() > DEEPEST_TREE {
            return Err(too_deep(Some(lexeme.span)));
        }
    }
    Ok(())
}

fn restart(levels: &mut [Level]) {
    if let Some(level) = levels.last_mut() {
        *level = Level { case: level.case, items: level.depth(), ..Level::default() };
    }
}

fn is_operand(token: &Token) -> bool {
    matches!(
        token,
        Token::Number(..)
            | Token::SingleQuotedString(_)
            | Token::EscapedStringLiteral(_)
            | Token::DollarQuotedString(_)
            | Token::HexStringLiteral(_)
    )
}

/// The refusal of what nests too deeply.
pub(super) fn too_deep(place: Option<Span>) -> Error {
    Error::invalid(format!(
        "the statement is nested too deeply: at most {DEEPEST_BRACKETS} brackets may stand in each other, and \
         {DEEPEST_TREE} operators"
    ))
    .at(place)
    .help("take inner parts out into WITH … AS (…) or a view")
}
