//! A cursor over lexemes: how our own grammar is read, and how it says what it expected.

use sqlparser::tokenizer::Token;

use super::lexer::Lexeme;
use super::statement::Name;
use crate::error::{Code, Error, Location, Result, Span, closest};

/// Reads lexemes from left to right.
#[derive(Debug, Clone)]
pub(super) struct Cursor<'a> {
    pub lexemes: &'a [Lexeme],
    pub at: usize,
    pub end: End<'a>,
}

/// What is behind the lexemes that are read: the end of the statement, or the lexeme that ends this part of it.
#[derive(Debug, Clone, Copy)]
pub(super) enum End<'a> {
    Statement(Location),
    Before(&'a Lexeme),
}

impl<'a> End<'a> {
    /// Of `lexemes[..at]`.
    pub fn before(lexemes: &'a [Lexeme], at: usize, end: End<'a>) -> End<'a> {
        lexemes.get(at).map_or(end, End::Before)
    }

    pub fn span(&self) -> Span {
        match self {
            End::Statement(at) => Span { start: *at, end: *at },
            End::Before(lexeme) => lexeme.span,
        }
    }

    /// As in `found …`.
    pub fn shown(&self) -> String {
        match self {
            End::Statement(_) => "the end of the statement".to_string(),
            End::Before(lexeme) => shown(&lexeme.token),
        }
    }
}

/// Words that can't be a name unless quoted: taken for one, they would hide that the name is missing.
pub const RESERVED: &[&str] = &[
    "AND",
    "AS",
    "BY",
    "CASE",
    "CREATE",
    "CROSS",
    "DISTINCT",
    "EXCEPT",
    "EXISTS",
    "FALSE",
    "FROM",
    "FULL",
    "GROUP",
    "HAVING",
    "IN",
    "INNER",
    "INSERT",
    "INTERSECT",
    "INTO",
    "IS",
    "JOIN",
    "LEFT",
    "LIMIT",
    "NATURAL",
    "NOT",
    "NULL",
    "ON",
    "OR",
    "ORDER",
    "RIGHT",
    "SELECT",
    "TRUE",
    "UNION",
    "USING",
    "VALUES",
    "WHERE",
    "WITH",
];

impl<'a> Cursor<'a> {
    pub fn new(lexemes: &'a [Lexeme], end: End<'a>) -> Self {
        Cursor { lexemes, at: 0, end }
    }

    pub fn peek(&self) -> Option<&'a Lexeme> {
        self.lexemes.get(self.at)
    }

    /// Whether these unquoted words come next.
    pub fn is(&self, words: &[&str]) -> bool {
        words.iter().enumerate().all(|(n, word)| self.lexemes.get(self.at + n).is_some_and(|l| l.is_word(word)))
    }

    pub fn is_token(&self, token: &Token) -> bool {
        self.peek().is_some_and(|l| l.token == *token)
    }

    /// Takes these words when they come next.
    pub fn take(&mut self, words: &[&str]) -> bool {
        let found = self.is(words);
        if found {
            self.at += words.len();
        }
        found
    }

    pub fn take_token(&mut self, token: &Token) -> bool {
        let found = self.is_token(token);
        self.at += usize::from(found);
        found
    }

    /// Takes these words, one by one, or says which is missing.
    pub fn expect(&mut self, words: &[&str]) -> Result<()> {
        for word in words {
            if !self.take(&[word]) {
                return Err(self.expected(word, &[word]));
            }
        }
        Ok(())
    }

    pub fn expect_token(&mut self, token: &Token) -> Result<()> {
        if self.take_token(token) { Ok(()) } else { Err(self.expected(&token.to_string(), &[])) }
    }

    /// Takes one of these words and answers which.
    pub fn one_of<'w>(&mut self, words: &[&'w str]) -> Result<&'w str> {
        for word in words {
            if self.take(&[word]) {
                return Ok(word);
            }
        }
        Err(self.expected(&or_list(words), words))
    }

    /// An identifier; `what` says of what, as in `a name for the stream`.
    pub fn name(&mut self, what: &str) -> Result<Name> {
        if let Some(lexeme) = self.peek()
            && let Token::Word(word) = &lexeme.token
        {
            let quoted = word.quote_style.is_some();
            if quoted && word.value.is_empty() {
                return Err(Error::invalid_at(lexeme.span, "a name can't be empty"));
            }
            if quoted || !RESERVED.iter().any(|reserved| lexeme.is_word(reserved)) {
                self.at += 1;
                let value = if quoted { word.value.clone() } else { word.value.to_ascii_lowercase() };
                return Ok(Name { value, span: lexeme.span });
            }
        }
        let error = self.expected(what, &[]);
        Err(match self.peek().and_then(Lexeme::word) {
            Some(word) => error.help(format!("{word} is a reserved word; as a name it is written \"{word}\"")),
            None => error,
        })
    }

    /// A name that nothing may qualify.
    pub fn plain_name(&mut self, what: &str) -> Result<Name> {
        let name = self.name(what)?;
        match self.peek() {
            Some(dot) if dot.token == Token::Period => {
                Err(Error::invalid_at(dot.span, format!("{what} has no schema"))
                    .help("all streams, sinks, views and queries share one catalog; leave the part before the dot out"))
            }
            _ => Ok(name),
        }
    }

    /// `a`, `a.b`, …
    pub fn path(&mut self, what: &str) -> Result<Vec<Name>> {
        let mut path = vec![self.name(what)?];
        while self.take_token(&Token::Period) {
            path.push(self.name(what)?);
        }
        Ok(path)
    }

    /// A string in any of its spellings; `what` says which, as in `a location in quotes`.
    pub fn string(&mut self, what: &str) -> Result<String> {
        match self.peek().and_then(|l| text_of(&l.token)) {
            Some(text) => {
                self.at += 1;
                Ok(text.to_string())
            }
            None => Err(self.expected(what, &[])),
        }
    }

    /// A whole number of at least `least`.
    pub fn count(&mut self, what: &str, least: u64) -> Result<u64> {
        let Some(lexeme) = self.peek() else { return Err(self.expected(what, &[])) };
        let Token::Number(digits, _) = &lexeme.token else {
            if lexeme.token == Token::Minus {
                return Err(Error::invalid_at(lexeme.span, format!("{what} can't be negative")));
            }
            return Err(self.expected(what, &[]));
        };
        match digits.parse::<u64>() {
            Ok(number) if number >= least => {
                self.at += 1;
                Ok(number)
            }
            Ok(_) => Err(Error::invalid_at(lexeme.span, format!("{what} must be at least {least}, it is {digits}"))),
            Err(_) => Err(Error::invalid_at(lexeme.span, format!("{what} must be a whole number, it is {digits}"))),
        }
    }

    /// `IF NOT EXISTS`
    pub fn if_not_exists(&mut self) -> bool {
        self.take(&["IF", "NOT", "EXISTS"])
    }

    /// Nothing may follow.
    pub fn finish(&self) -> Result<()> {
        if self.peek().is_some() { Err(self.expected("the end of the statement", &[])) } else { Ok(()) }
    }

    /// The place of the next lexeme, or of the end.
    pub fn place(&self) -> Span {
        self.peek().map_or_else(|| self.end.span(), |l| l.span)
    }

    /// From the first lexeme to the last.
    pub fn span(&self) -> Span {
        match (self.lexemes.first(), self.lexemes.last()) {
            (Some(first), Some(last)) => Span { start: first.span.start, end: last.span.end },
            _ => self.end.span(),
        }
    }

    /// From the lexeme at `from` to the last one taken.
    pub fn span_from(&self, from: usize) -> Span {
        match (self.lexemes.get(from), self.lexemes.get(self.at.saturating_sub(1))) {
            (Some(first), Some(last)) if self.at > from => Span { start: first.span.start, end: last.span.end },
            _ => self.place(),
        }
    }

    /// `expected …, found …`, with the closest of `words` where what was found looks like one.
    pub fn expected(&self, what: &str, words: &[&str]) -> Error {
        let Some(lexeme) = self.peek() else {
            return Error::invalid_at(self.place(), format!("expected {what}, found {}", self.end.shown()))
                .coded(Code::Syntax);
        };
        let error = Error::invalid_at(lexeme.span, format!("expected {what}, found {}", shown(&lexeme.token)))
            .coded(Code::Syntax);
        let unlike = |word: &&str| !lexeme.is_word(word);
        match lexeme.word().and_then(|word| closest(word, words.iter().copied()).filter(unlike)) {
            Some(word) => error.help(format!("did you mean {word}?")),
            None => error,
        }
    }
}

/// The text of a string token.
pub(super) fn text_of(token: &Token) -> Option<&str> {
    match token {
        Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text) | Token::UnicodeStringLiteral(text) => {
            Some(text)
        }
        Token::DollarQuotedString(quoted) => Some(&quoted.value),
        _ => None,
    }
}

/// A token as it is named in messages: shortened.
pub(super) fn shown(token: &Token) -> String {
    const LONGEST: usize = 40;
    let text = token.to_string();
    if text.chars().count() <= LONGEST { text } else { text.chars().take(LONGEST).chain(['…']).collect() }
}

/// `A`, `A or B`, `A, B or C`.
pub(super) fn or_list(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [one] => (*one).to_string(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}
