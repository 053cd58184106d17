//! Text → lexemes: sqlparser's tokens without white space and comments, with their places in the whole input.
//!
//! Everything behind this file works on lexemes; only here does text become tokens.

use std::ops::Range;

use sqlparser::tokenizer::{self, Token, TokenWithSpan, Tokenizer};

use super::dialect::LevadaDialect;
use super::scanner::{Pending, Scanner};
use crate::error::{Code, Error, Location, Result, Span};

/// One token, its place in the input, and its bytes in the statement's text.
#[derive(Debug, Clone)]
pub(super) struct Lexeme {
    pub token: Token,
    pub span: Span,
    pub range: Range<usize>,
}

impl Lexeme {
    /// Whether it is this unquoted word; `word` is in upper case.
    pub fn is_word(&self, word: &str) -> bool {
        matches!(&self.token, Token::Word(w) if w.quote_style.is_none() && w.value.eq_ignore_ascii_case(word))
    }

    /// Whether it is one of these unquoted words.
    pub fn is_any(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.is_word(word))
    }

    /// The unquoted word that it is.
    pub fn word(&self) -> Option<&str> {
        match &self.token {
            Token::Word(w) if w.quote_style.is_none() => Some(&w.value),
            _ => None,
        }
    }

    /// A token that was not written, for the place of another one.
    pub fn made(token: Token, like: &Lexeme) -> Lexeme {
        Lexeme { token, span: like.span, range: like.range.clone() }
    }
}

/// All lexemes of `text`, which begins at `start` of the input.
///
/// # Errors
/// A quote, comment or dollar quote that never ends, at the place where it begins.
pub(super) fn lex(text: &str, start: Location) -> Result<Vec<Lexeme>> {
    let mut raw: Vec<TokenWithSpan> = Vec::new();
    let outcome = Tokenizer::new(&LevadaDialect, text).tokenize_with_location_into_buf(&mut raw);
    let mut places = Places::new(text);
    let mut lexemes = Vec::with_capacity(raw.len() / 2 + 1);
    for TokenWithSpan { token, span } in raw {
        let begin = places.advance_to(span.start);
        let end = places.advance_to(span.end);
        if !matches!(token, Token::Whitespace(_)) {
            lexemes.push(Lexeme { token, span: absolute_span(span, start), range: begin..end });
        }
    }
    match outcome {
        Ok(()) => Ok(lexemes),
        Err(error) => Err(unterminated(text, places, start, &error.message)),
    }
}

/// The bytes that belong to places; it only moves forward, so that a whole text costs one walk.
pub(super) struct Places<'a> {
    text: &'a str,
    byte: usize,
    at: tokenizer::Location,
}

impl<'a> Places<'a> {
    /// At the start of a text.
    pub fn new(text: &'a str) -> Self {
        Places { text, byte: 0, at: tokenizer::Location::new(1, 1) }
    }

    /// The byte of a place that is not before the last one.
    pub fn advance_to(&mut self, to: tokenizer::Location) -> usize {
        let mut chars = self.text[self.byte..].chars();
        while self.at < to {
            let Some(c) = chars.next() else { break };
            self.byte += c.len_utf8();
            if c == '\n' {
                self.at = tokenizer::Location::new(self.at.line + 1, 1);
            } else {
                self.at.column += 1;
            }
        }
        self.byte
    }
}

/// What the lexer could not finish begins where the last token ended.
fn unterminated(text: &str, places: Places<'_>, start: Location, reason: &str) -> Error {
    let rest = &text[places.byte..];
    let place = point(absolute(places.at, start));
    if let Some(escape) = rest.strip_prefix(['E', 'e']).filter(|text| text.starts_with('\'')).and_then(bad_escape) {
        let begin = escape.begin + 1;
        let (start, end) = (place.start.behind(&rest[..begin]), place.start.behind(&rest[..begin + escape.length]));
        return Error::invalid_at(Span { start, end }, escape.why).coded(Code::Syntax).help(escape.way);
    }
    let mut scanner = Scanner::new();
    scanner.feed_sql(rest);
    let (what, end) = match scanner.pending() {
        Pending::Comment => ("comment", "*/"),
        Pending::Dollar => ("dollar quote", "the same tag"),
        Pending::Quote('\'') => ("string", "'"),
        Pending::Quote(_) => ("quoted identifier", "the same quote"),
        // The lexer gave up on something that does end: a bad escape, a stray character.
        _ => {
            return Error::invalid_at(place, format!("can't be read as SQL: {}", reason.to_lowercase()))
                .coded(Code::Syntax);
        }
    };
    Error::invalid_at(place, format!("the {what} that begins here never ends"))
        .coded(Code::Syntax)
        .help(format!("close it with {end}"))
}

/// An escape that stands for no character of a text: where in the string it is, and what to say.
struct BadEscape {
    begin: usize,
    length: usize,
    why: String,
    way: &'static str,
}

/// The first such escape of `'…'`, by the rules of the lexer that gave up on it.
fn bad_escape(string: &str) -> Option<BadEscape> {
    let mut rest = string.get(1..)?;
    loop {
        let (before, behind) = rest.split_at(rest.find(['\\', '\''])?);
        if let Some(quote) = behind.strip_prefix('\'') {
            // A doubled quote is one of the text; any other ends it.
            rest = quote.strip_prefix('\'')?;
            continue;
        }
        let begin = string.len() - rest.len() + before.len();
        let letter = behind[1..].chars().next()?;
        let digits =
            |most: usize, radix: u32, of: &str| of.chars().take(most).take_while(|c| c.is_digit(radix)).count();
        let after = &behind[1 + letter.len_utf8()..];
        let (radix, from, count, wanted, largest) = match letter {
            'u' => (16, 2, digits(4, 16, after), 4, u32::MAX),
            'U' => (16, 2, digits(8, 16, after), 8, u32::MAX),
            // Without digits it is the letter.
            'x' if digits(2, 16, after) > 0 => (16, 2, digits(2, 16, after), 1, 0x7f),
            '0'..='7' => (8, 1, digits(3, 8, &behind[1..]), 1, 0x7f),
            _ => {
                rest = after;
                continue;
            }
        };
        let length = from + count;
        let number = u32::from_str_radix(&behind[from..length], radix).ok().filter(|_| count >= wanted);
        let escape = &behind[..length];
        let (why, way) = match number {
            Some(0) => (format!("{escape} is the character NUL, which no text can hold"), "leave it out"),
            Some(number) if number <= largest && char::from_u32(number).is_some() => {
                rest = &behind[length..];
                continue;
            }
            _ => (
                format!("{escape} stands for no character"),
                "\\u has four hexadecimal digits, \\U eight; \\x goes up to 7f, \\ooo up to 177",
            ),
        };
        return Some(BadEscape { begin, length, why, way });
    }
}

/// A place in a text that begins at `start`, as a place in the input.
pub(super) fn absolute(at: tokenizer::Location, start: Location) -> Location {
    let column = if at.line == 1 { at.column + start.column - 1 } else { at.column };
    Location { line: at.line + start.line - 1, column }
}

fn absolute_span(span: tokenizer::Span, start: Location) -> Span {
    Span { start: absolute(span.start, start), end: absolute(span.end, start) }
}

/// One character wide.
pub(super) fn point(start: Location) -> Span {
    Span { start, end: Location { line: start.line, column: start.column + 1 } }
}

/// sqlparser's spelling of a span.
pub(super) fn theirs(span: Span) -> tokenizer::Span {
    tokenizer::Span::new(
        tokenizer::Location::new(span.start.line, span.start.column),
        tokenizer::Location::new(span.end.line, span.end.column),
    )
}

/// Our spelling of a place; `None` for sqlparser's "unknown".
pub(super) fn ours(at: tokenizer::Location) -> Option<Location> {
    (at.line > 0).then_some(Location { line: at.line, column: at.column })
}
