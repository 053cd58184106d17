//! A whole input → its statements, one by one: the second is not looked at before the first was taken.
//!
//! Commands of the shell are not known here: a shell cuts them out first, with a [`Scanner`](super::Scanner).

use std::ops::Range;

use super::lexer::lex;
use super::parse::parse_one;
use super::scanner::{Pending, Scanner};
use super::statement::ParsedStatement;
use crate::error::{Location, Result, Span};

/// The text of one statement, without its `;`, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatementText<'a> {
    pub text: &'a str,
    pub span: Span,
    /// Its bytes in the input.
    pub range: Range<usize>,
}

/// Splits an input into statements. A byte order mark and a first line that begins with `#!` are skipped; the last
/// statement may lack its `;`; statements without any token are left out.
#[derive(Debug, Clone)]
pub struct Splitter<'a> {
    input: &'a str,
    byte: usize,
    at: Location,
}

/// All statements of an input; see [`Splitter`].
pub fn parse_statements(input: &str) -> Splitter<'_> {
    Splitter::new(input)
}

impl<'a> Splitter<'a> {
    /// At the start of `input`.
    pub fn new(input: &'a str) -> Self {
        let mut splitter = Splitter { input, byte: 0, at: Location { line: 1, column: 1 } };
        if input.starts_with('\u{feff}') {
            splitter.byte = '\u{feff}'.len_utf8();
        }
        if input[splitter.byte..].starts_with("#!") {
            let end = input[splitter.byte..].find('\n').map_or(input.len(), |n| splitter.byte + n + 1);
            splitter.advance_to(end);
        }
        splitter
    }

    /// The next statement's text, not parsed.
    ///
    /// # Errors
    /// A quote or comment that never ends, at the place where it begins; nothing follows it.
    pub fn next_text(&mut self) -> Option<Result<StatementText<'a>>> {
        loop {
            let base = self.byte;
            let rest = &self.input[base..];
            if rest.is_empty() {
                return None;
            }
            let mut scanner = Scanner::new();
            let end = scanner.feed_sql(rest);
            if end.is_none() && is_open(scanner.pending()) {
                let outcome = lex(rest, self.at);
                self.byte = self.input.len();
                return outcome.err().map(Err);
            }
            let content = scanner.content();
            let piece = content.map(|range| self.piece(base + range.start..base + range.end));
            self.advance_to(end.map_or(self.input.len(), |end| base + end));
            if let Some(piece) = piece {
                return Some(Ok(piece));
            }
        }
    }

    /// Where the next statement is looked for.
    pub fn location(&self) -> Location {
        self.at
    }

    fn piece(&mut self, range: Range<usize>) -> StatementText<'a> {
        self.advance_to(range.start);
        let start = self.at;
        self.advance_to(range.end);
        StatementText { text: &self.input[range.clone()], span: Span { start, end: self.at }, range }
    }

    fn advance_to(&mut self, byte: usize) {
        for c in self.input[self.byte..byte].chars() {
            if c == '\n' {
                self.at = Location { line: self.at.line + 1, column: 1 };
            } else {
                self.at.column += 1;
            }
        }
        self.byte = byte;
    }
}

impl Iterator for Splitter<'_> {
    type Item = Result<ParsedStatement>;

    /// The next statement. After an error in one statement the next one can still be asked for.
    fn next(&mut self) -> Option<Self::Item> {
        Some(self.next_text()?.and_then(|piece| parse_one(piece.text, piece.span.start)))
    }
}

fn is_open(pending: Pending) -> bool {
    matches!(pending, Pending::Quote(_) | Pending::Comment | Pending::Dollar)
}
