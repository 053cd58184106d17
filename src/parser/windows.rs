//! Window table functions in Flink's spelling, and SESSION's PARTITION BY → plain arguments that sqlparser can read.
//!
//! ```text
//! TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))  →  TUMBLE(s, ts, INTERVAL '1' MINUTE)
//! SESSION(s PARTITION BY a, b, ts, '5 minutes')                →  SESSION(s, ts, '5 minutes', partition_by => [a, b])
//! SESSION(TABLE s PARTITION BY (a, b), DESCRIPTOR(ts), gap)    →  the same
//! ```
//! In SESSION's list the last two items are the time and the gap, everything before them is a key. Nothing here knows
//! what the functions mean.

use std::ops::Range;

use sqlparser::tokenizer::Token;

use super::lexer::Lexeme;
use crate::error::{Error, Result};

const FUNCTIONS: [&str; 4] = ["TUMBLE", "HOP", "CUMULATE", "SESSION"];

/// The argument that carries SESSION's keys, an array of expressions.
pub const PARTITION_BY_ARGUMENT: &str = "partition_by";

/// Rewrites all window table functions.
///
/// # Errors
/// A PARTITION BY in another function than SESSION, or without time and gap behind its keys.
pub(super) fn rewrite(lexemes: &[Lexeme]) -> Result<Vec<Lexeme>> {
    let mentioned = lexemes.iter().any(|l| l.is_any(&FUNCTIONS));
    if !mentioned {
        return Ok(lexemes.to_vec());
    }
    let closing = closing_brackets(lexemes);
    let mut out = Vec::with_capacity(lexemes.len());
    Rewriter { lexemes, closing: &closing }.range(0..lexemes.len(), &mut out)?;
    Ok(out)
}

/// For each opening bracket, where it is closed.
pub(super) fn closing_brackets(lexemes: &[Lexeme]) -> Vec<Option<usize>> {
    let mut closing = vec![None; lexemes.len()];
    let mut open = Vec::new();
    for (at, lexeme) in lexemes.iter().enumerate() {
        match lexeme.token {
            Token::LParen | Token::LBracket | Token::LBrace => open.push(at),
            Token::RParen | Token::RBracket | Token::RBrace => {
                if let Some(opened) = open.pop() {
                    closing[opened] = Some(at);
                }
            }
            _ => {}
        }
    }
    closing
}

struct Rewriter<'a> {
    lexemes: &'a [Lexeme],
    closing: &'a [Option<usize>],
}

impl Rewriter<'_> {
    fn range(&self, range: Range<usize>, out: &mut Vec<Lexeme>) -> Result<()> {
        let mut at = range.start;
        while at < range.end {
            if let Some((call, end)) = self.table_of_call(at) {
                self.call(call, out)?;
                at = end;
            } else if self.call_end(at).is_some_and(|end| end < range.end) {
                at = self.call(at, out)?;
            } else {
                out.push(self.lexemes[at].clone());
                at += 1;
            }
        }
        Ok(())
    }

    /// `TABLE(TUMBLE(…))` at `at`: where the call is, and where everything ends.
    fn table_of_call(&self, at: usize) -> Option<(usize, usize)> {
        if !self.lexemes.get(at)?.is_word("TABLE") || self.lexemes.get(at + 1)?.token != Token::LParen {
            return None;
        }
        let close = self.closing[at + 1]?;
        (self.call_end(at + 2)? + 1 == close).then_some((at + 2, close + 1))
    }

    /// The closing parenthesis of a call of a window function at `at`.
    fn call_end(&self, at: usize) -> Option<usize> {
        if !self.lexemes.get(at)?.is_any(&FUNCTIONS) || self.lexemes.get(at + 1)?.token != Token::LParen {
            return None;
        }
        self.closing[at + 1]
    }

    /// Rewrites the call at `at`; answers what is behind it.
    fn call(&self, at: usize, out: &mut Vec<Lexeme>) -> Result<usize> {
        let Some(end) = self.call_end(at) else { return Ok(at + 1) };
        out.extend_from_slice(&self.lexemes[at..at + 2]);
        let mut items = self.items(at + 2..end);
        let partition = items.iter().position(|item| self.partition_by(item).is_some());
        let keys = match partition {
            Some(index) => self.take_keys(at, index, &mut items)?,
            None => Vec::new(),
        };
        for (n, item) in items.iter().enumerate() {
            if n > 0 {
                out.push(Lexeme::made(Token::Comma, &self.lexemes[item.start.min(end)]));
            }
            self.argument(item.clone(), out)?;
        }
        if !keys.is_empty() {
            self.keys(&keys, out)?;
        }
        out.push(self.lexemes[end].clone());
        Ok(end + 1)
    }

    /// Takes the keys out of the items: those from PARTITION BY, in item `index`, up to the last two.
    fn take_keys(&self, call: usize, index: usize, items: &mut Vec<Range<usize>>) -> Result<Vec<Range<usize>>> {
        let by = self.partition_by(&items[index]).unwrap_or(items[index].start);
        let place = self.lexemes[by].span;
        if !self.lexemes[call].is_word("SESSION") {
            return Err(Error::invalid_at(place, "only SESSION takes PARTITION BY"));
        }
        if items.len() < index + 3 {
            return Err(Error::invalid_at(place, "SESSION wants the time column and the gap behind its keys")
                .help("write SESSION(stream PARTITION BY key, time, '5 minutes')"));
        }
        let first = by + 2..items[index].end;
        items[index].end = by;
        let last = items.len() - 2;
        let mut keys: Vec<_> = std::iter::once(first).chain(items.drain(index + 1..last)).collect();
        if let [only] = &keys[..]
            && self.lexemes.get(only.start).is_some_and(|l| l.token == Token::LParen)
            && self.closing[only.start] == Some(only.end - 1)
        {
            keys = self.items(only.start + 1..only.end - 1);
        }
        if keys.iter().any(Range::is_empty) {
            return Err(Error::invalid_at(place, "a key is missing behind PARTITION BY"));
        }
        Ok(keys)
    }

    fn keys(&self, keys: &[Range<usize>], out: &mut Vec<Lexeme>) -> Result<()> {
        let like = &self.lexemes[keys[0].start];
        out.push(Lexeme::made(Token::Comma, like));
        out.push(Lexeme::made(Token::make_word(PARTITION_BY_ARGUMENT, None), like));
        out.push(Lexeme::made(Token::RArrow, like));
        out.push(Lexeme::made(Token::LBracket, like));
        for (n, key) in keys.iter().enumerate() {
            if n > 0 {
                out.push(Lexeme::made(Token::Comma, like));
            }
            self.range(key.clone(), out)?;
        }
        out.push(Lexeme::made(Token::RBracket, like));
        Ok(())
    }

    /// One argument, without TABLE in front of a name and DESCRIPTOR around a column, named (`DATA => …`) or not.
    fn argument(&self, item: Range<usize>, out: &mut Vec<Lexeme>) -> Result<()> {
        let mut item = item;
        if item.len() > 2 && self.lexemes[item.start + 1].token == Token::RArrow {
            out.extend_from_slice(&self.lexemes[item.start..item.start + 2]);
            item.start += 2;
        }
        if item.len() > 1
            && self.lexemes[item.start].is_word("TABLE")
            && self.lexemes[item.start + 1].token != Token::LParen
        {
            item.start += 1;
        } else if item.len() > 3
            && self.lexemes[item.start].is_word("DESCRIPTOR")
            && self.lexemes[item.start + 1].token == Token::LParen
            && self.closing[item.start + 1] == Some(item.end - 1)
        {
            item = item.start + 2..item.end - 1;
        }
        self.range(item, out)
    }

    /// Where PARTITION BY stands in an item, outside of inner brackets.
    fn partition_by(&self, item: &Range<usize>) -> Option<usize> {
        let mut at = item.start;
        while at + 1 < item.end {
            if self.lexemes[at].is_word("PARTITION") && self.lexemes[at + 1].is_word("BY") {
                return Some(at);
            }
            at = self.closing[at].unwrap_or(at) + 1;
        }
        None
    }

    /// Splits at the commas outside of inner brackets.
    fn items(&self, range: Range<usize>) -> Vec<Range<usize>> {
        let mut items = Vec::new();
        let (mut start, mut at) = (range.start, range.start);
        while at < range.end {
            if self.lexemes[at].token == Token::Comma {
                items.push(start..at);
                start = at + 1;
            }
            at = self.closing[at].unwrap_or(at) + 1;
        }
        items.push(start..range.end);
        items
    }
}
