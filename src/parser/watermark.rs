//! Cuts our clauses out of a query's lexemes: what is left is SQL that sqlparser reads.
//!
//! ```text
//! … GROUP BY k WITH WATERMARK a.ts DELAY '10 seconds', b.ts DELAY '1 hour'     at the end of a SELECT block
//! FROM s WATERMARK ts DELAY OF INTERVAL 10 SECONDS AS x                       between a table and its alias
//! SELECT DISTINCT ON (k) WITHIN WATERMARK …                                   behind DISTINCT ON
//! ```
//! Each clause is known by its head of several words, so `watermark`, `delay` and `within` stay ordinary names
//! everywhere else: `WITH watermark AS (…)` is a common table expression.

use sqlparser::tokenizer::Token;

use super::cursor::{Cursor, End};
use super::lexer::Lexeme;
use super::statement::WatermarkClause;
use crate::error::{Error, Location, Result};

/// A query without our clauses, and the clauses.
#[derive(Debug)]
pub(super) struct Cut {
    pub lexemes: Vec<Lexeme>,
    pub watermarks: Vec<WatermarkClause>,
    pub within_watermark: Vec<Location>,
}

/// # Errors
/// A clause that is not finished, or that stands where it can't.
pub(super) fn cut(lexemes: Vec<Lexeme>, end: End<'_>) -> Result<Cut> {
    let mentioned = lexemes.iter().any(|l| l.is_word("WATERMARK"));
    if !mentioned {
        return Ok(Cut { lexemes, watermarks: Vec::new(), within_watermark: Vec::new() });
    }
    let mut cutter = Cutter {
        lexemes: &lexemes,
        end,
        blocks: vec![Block::default()],
        out: Vec::with_capacity(lexemes.len()),
        watermarks: Vec::new(),
        within_watermark: Vec::new(),
    };
    let mut at = 0;
    while at < lexemes.len() {
        at = cutter.step(at)?;
    }
    let Cutter { out, watermarks, within_watermark, .. } = cutter;
    Ok(Cut { lexemes: out, watermarks, within_watermark })
}

/// What is known of the SELECT block between two parentheses.
#[derive(Debug, Default)]
struct Block {
    /// The place of its SELECT keyword, or of its FROM until a SELECT comes (`FROM s SELECT …`).
    select: Option<Location>,
    from_first: bool,
}

struct Cutter<'a> {
    lexemes: &'a [Lexeme],
    end: End<'a>,
    blocks: Vec<Block>,
    out: Vec<Lexeme>,
    watermarks: Vec<WatermarkClause>,
    within_watermark: Vec<Location>,
}

impl Cutter<'_> {
    /// Copies one lexeme, or cuts out one clause; answers what comes next.
    fn step(&mut self, at: usize) -> Result<usize> {
        let lexeme = &self.lexemes[at];
        match lexeme.token {
            Token::LParen => self.blocks.push(Block::default()),
            Token::RParen if self.blocks.len() > 1 => {
                self.blocks.pop();
            }
            Token::Word(_) if self.is_field(at) => {}
            Token::Word(_) if lexeme.is_word("SELECT") => self.select(lexeme.span.start),
            Token::Word(_) if lexeme.is_word("FROM") => self.from(at),
            Token::Word(_) if lexeme.is_any(&["UNION", "INTERSECT", "MINUS", "EXCEPT"]) => self.set_operator(at),
            Token::Word(_) if self.words(at, &["WITH", "WATERMARK"]) && !self.is_cte(at + 2) => {
                return self.with_watermark(at);
            }
            Token::Word(_) if self.words(at, &["WITHIN", "WATERMARK"]) => return self.within(at),
            Token::Word(_) if lexeme.is_word("WATERMARK") && is_item(self.lexemes, at + 1) => {
                return self.table_watermark(at);
            }
            _ => {}
        }
        self.out.push(lexeme.clone());
        Ok(at + 1)
    }

    fn words(&self, at: usize, words: &[&str]) -> bool {
        words.iter().enumerate().all(|(n, word)| self.lexemes.get(at + n).is_some_and(|l| l.is_word(word)))
    }

    /// Whether a word is behind a dot.
    fn is_field(&self, at: usize) -> bool {
        at > 0 && self.lexemes[at - 1].token == Token::Period
    }

    /// What follows `WITH watermark` when it names a common table expression.
    fn is_cte(&self, at: usize) -> bool {
        self.lexemes.get(at).is_some_and(|l| l.is_word("AS") || l.token == Token::LParen)
    }

    fn select(&mut self, place: Location) {
        let Some(block) = self.blocks.last_mut() else { return };
        if block.from_first {
            // What was cut from FROM belongs to the SELECT behind it.
            for clause in self.watermarks.iter_mut().filter(|c| Some(c.select) == block.select) {
                clause.select = place;
            }
        }
        block.select = Some(place);
        block.from_first = false;
    }

    fn from(&mut self, at: usize) {
        let starts_block = match at.checked_sub(1).map(|before| &self.lexemes[before]) {
            None => true,
            Some(before) if before.is_any(&["UNION", "INTERSECT", "MINUS", "EXCEPT"]) => true,
            Some(before) if before.is_any(&["ALL", "DISTINCT"]) => {
                at >= 2 && self.lexemes[at - 2].is_any(&["UNION", "INTERSECT", "MINUS", "EXCEPT"])
            }
            Some(_) => false,
        };
        let place = self.lexemes[at].span.start;
        if let Some(block) = self.blocks.last_mut()
            && (starts_block || block.select.is_none())
        {
            block.select = Some(place);
            block.from_first = true;
        }
    }

    /// Another block follows, unless it is `SELECT * EXCEPT (column)`.
    fn set_operator(&mut self, at: usize) {
        let of_wildcard = self.lexemes[at].is_word("EXCEPT") && at > 0 && self.lexemes[at - 1].token == Token::Mul;
        if let (false, Some(block)) = (of_wildcard, self.blocks.last_mut()) {
            block.select = None;
        }
    }

    fn with_watermark(&mut self, at: usize) -> Result<usize> {
        let place = self.lexemes[at].span;
        let Some(select) = self.blocks.last().and_then(|b| b.select) else {
            return Err(Error::invalid_at(place, "WITH WATERMARK belongs to a SELECT, and there is none here"));
        };
        let mut cursor = Cursor { lexemes: self.lexemes, at: at + 2, end: self.end };
        loop {
            self.watermarks.push(item(&mut cursor, select, None)?);
            if !(cursor.is_token(&Token::Comma) && is_item(self.lexemes, cursor.at + 1)) {
                break;
            }
            cursor.at += 1;
        }
        const FOLLOWERS: [&str; 8] = ["ORDER", "LIMIT", "OFFSET", "FETCH", "UNION", "EXCEPT", "INTERSECT", "MINUS"];
        match cursor.peek() {
            None => {}
            Some(next) if matches!(next.token, Token::RParen | Token::VerticalBarRightAngleBracket) => {}
            Some(next) if next.is_any(&FOLLOWERS) => {}
            Some(_) => {
                return Err(cursor.expected("the end of the SELECT behind WITH WATERMARK", &FOLLOWERS).help(
                    "WITH WATERMARK stands behind FROM, WHERE, GROUP BY and HAVING, and before ORDER BY and LIMIT",
                ));
            }
        }
        Ok(cursor.at)
    }

    fn within(&mut self, at: usize) -> Result<usize> {
        let select = self.blocks.last().and_then(|b| b.select);
        match select {
            Some(select) if self.is_behind_distinct_on(at) => {
                self.within_watermark.push(select);
                Ok(at + 2)
            }
            _ => Err(Error::invalid_at(self.lexemes[at].span, "WITHIN WATERMARK belongs behind DISTINCT ON (…)")
                .help("write SELECT DISTINCT ON (keys) WITHIN WATERMARK columns FROM …")),
        }
    }

    fn is_behind_distinct_on(&self, at: usize) -> bool {
        let Some(open) = self.opening(at) else { return false };
        open >= 2 && self.words(open - 2, &["DISTINCT", "ON"])
    }

    /// Where the parenthesis that is closed right before `at` was opened.
    fn opening(&self, at: usize) -> Option<usize> {
        let mut depth = 0usize;
        for before in (0..at).rev() {
            match self.lexemes[before].token {
                Token::RParen => depth += 1,
                Token::LParen => depth = depth.checked_sub(1)?,
                _ => {}
            }
            if depth == 0 {
                return (before + 1 < at).then_some(before);
            }
        }
        None
    }

    fn table_watermark(&mut self, at: usize) -> Result<usize> {
        let place = self.lexemes[at].span;
        let select = self.blocks.iter().rev().find_map(|b| b.select);
        let (Some(select), Some(table)) = (select, self.table_before(at)) else {
            return Err(Error::invalid_at(place, "WATERMARK … DELAY OF belongs behind a table in FROM")
                .help("write FROM stream WATERMARK column DELAY OF INTERVAL 10 SECONDS AS alias"));
        };
        let mut cursor = Cursor { lexemes: self.lexemes, at: at + 1, end: self.end };
        let clause = item(&mut cursor, select, Some(table))?;
        self.watermarks.push(clause);
        Ok(cursor.at)
    }

    /// The place of the table that ends right before `at`: of its name, or of the parenthesis of a derived table.
    fn table_before(&self, at: usize) -> Option<Location> {
        let last = at.checked_sub(1)?;
        let mut first = last;
        if self.lexemes[last].token == Token::RParen {
            first = self.opening(at)?;
            let is_call = first > 0
                && matches!(self.lexemes[first - 1].token, Token::Word(_))
                && !self.lexemes[first - 1].is_any(&["FROM", "JOIN", "LATERAL"]);
            if !is_call {
                return Some(self.lexemes[first].span.start);
            }
            first -= 1;
        }
        if !matches!(self.lexemes[first].token, Token::Word(_)) {
            return None;
        }
        while first >= 2
            && self.lexemes[first - 1].token == Token::Period
            && matches!(self.lexemes[first - 2].token, Token::Word(_))
        {
            first -= 2;
        }
        Some(self.lexemes[first].span.start)
    }
}

/// Whether `column DELAY` stands at `at`.
fn is_item(lexemes: &[Lexeme], at: usize) -> bool {
    let mut at = at;
    let is_name = |at: usize| lexemes.get(at).is_some_and(|l| matches!(l.token, Token::Word(_)));
    if !is_name(at) {
        return false;
    }
    while lexemes.get(at + 1).is_some_and(|l| l.token == Token::Period) && is_name(at + 2) {
        at += 2;
    }
    lexemes.get(at + 1).is_some_and(|l| l.is_word("DELAY"))
}

/// `column DELAY [OF] interval`
fn item(cursor: &mut Cursor<'_>, select: Location, table: Option<Location>) -> Result<WatermarkClause> {
    let from = cursor.at;
    let column = cursor.path("the column of the watermark")?;
    cursor.expect(&["DELAY"])?;
    cursor.take(&["OF"]);
    let delay = cursor.duration("the delay of a watermark")?;
    Ok(WatermarkClause { select, table, column, delay, span: cursor.span_from(from) })
}
