//! Text → its tokens by the lexer, whatever the text is: what an editor paints and completes.
//!
//! Comments are tokens here, and what never ends is one to the end of the text; only blanks are left out.

use std::ops::Range;

use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer, Whitespace};

use super::dialect::LevadaDialect;
use super::lexer::Places;
use super::scanner::{Pending, Scanner};

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// An unquoted word: a keyword or a name.
    Word,
    /// `"Name"` or `` `name` ``
    QuotedName,
    /// A string in any of its spellings.
    Text,
    Number,
    Comment,
    /// Operators, brackets, commas, and all the rest.
    Symbol,
}

/// One token and its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenSpan {
    pub kind: TokenKind,
    pub range: Range<usize>,
    /// It goes on where the text ends.
    pub open: bool,
}

/// The tokens of a text. A comment to the end of the line goes on where the text ends without a newline.
pub fn tokens(text: &str) -> Vec<TokenSpan> {
    let mut raw: Vec<TokenWithSpan> = Vec::new();
    let outcome = Tokenizer::new(&LevadaDialect, text).tokenize_with_location_into_buf(&mut raw);
    let mut places = Places::new(text);
    let mut tokens = Vec::with_capacity(raw.len() / 2 + 1);
    let mut end = 0;
    for TokenWithSpan { token, span } in raw {
        let begin = places.advance_to(span.start);
        end = places.advance_to(span.end);
        let Some(kind) = kind(&token) else { continue };
        let line_comment = matches!(token, Token::Whitespace(Whitespace::SingleLineComment { .. }));
        let open = line_comment && end == text.len() && !text.ends_with('\n');
        tokens.push(TokenSpan { kind, range: begin..end, open });
    }
    if outcome.is_err() && end < text.len() {
        tokens.push(unfinished(text, end));
    }
    tokens
}

/// What the lexer could not finish, from where the last token ended.
fn unfinished(text: &str, at: usize) -> TokenSpan {
    let rest = &text[at..];
    let begin = at + rest.len() - rest.trim_start().len();
    let mut scanner = Scanner::new();
    scanner.feed_sql(rest);
    let (kind, open) = match scanner.pending() {
        Pending::Comment => (TokenKind::Comment, true),
        Pending::Quote('\'') | Pending::Dollar => (TokenKind::Text, true),
        Pending::Quote(_) => (TokenKind::QuotedName, true),
        // A bad escape, a stray character.
        _ => (TokenKind::Text, false),
    };
    TokenSpan { kind, range: begin..text.len(), open }
}

fn kind(token: &Token) -> Option<TokenKind> {
    Some(match token {
        Token::Whitespace(Whitespace::SingleLineComment { .. } | Whitespace::MultiLineComment(_)) => TokenKind::Comment,
        Token::Whitespace(_) | Token::EOF => return None,
        Token::Word(word) if word.quote_style.is_some() => TokenKind::QuotedName,
        Token::Word(_) => TokenKind::Word,
        Token::Number(..) => TokenKind::Number,
        Token::SingleQuotedString(_)
        | Token::DoubleQuotedString(_)
        | Token::TripleSingleQuotedString(_)
        | Token::TripleDoubleQuotedString(_)
        | Token::DollarQuotedString(_)
        | Token::SingleQuotedByteStringLiteral(_)
        | Token::DoubleQuotedByteStringLiteral(_)
        | Token::SingleQuotedRawStringLiteral(_)
        | Token::DoubleQuotedRawStringLiteral(_)
        | Token::NationalStringLiteral(_)
        | Token::EscapedStringLiteral(_)
        | Token::UnicodeStringLiteral(_)
        | Token::HexStringLiteral(_) => TokenKind::Text,
        _ => TokenKind::Symbol,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `text[Kind…]` with `…` where it is open.
    fn shown(text: &str) -> String {
        let one = |token: &TokenSpan| {
            let open = if token.open { "…" } else { "" };
            format!("{}[{:?}{open}]", &text[token.range.clone()], token.kind)
        };
        tokens(text).iter().map(one).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_is_finished() {
        for (text, expected) in [
            ("a.\"B c\" = 1.5e3", "a[Word] .[Symbol] \"B c\"[QuotedName] =[Symbol] 1.5e3[Number]"),
            ("'it''s' E'\\t' $$x$$", "'it''s'[Text] E'\\t'[Text] $$x$$[Text]"),
            ("-- c\nä /* /* */ */", "-- c\n[Comment] ä[Word] /* /* */ */[Comment]"),
            ("\\d x", "\\[Symbol] d[Word] x[Word]"),
        ] {
            assert_eq!(shown(text), expected);
        }
    }

    #[test]
    fn what_is_not() {
        for (text, expected) in [
            ("a 'bc", "a[Word] 'bc[Text…]"),
            ("a \"bc", "a[Word] \"bc[QuotedName…]"),
            ("a $x$ 1", "a[Word] $x$ 1[Text…]"),
            ("a /* /* */ 'x", "a[Word] /* /* */ 'x[Comment…]"),
            ("a -- b", "a[Word] -- b[Comment…]"),
        ] {
            assert_eq!(shown(text), expected);
        }
    }

    #[test]
    fn every_token_is_a_piece_of_the_text_in_its_order() {
        for text in ["", " ", "€ 'ü", "a\n'b\nc", "\u{0}\u{1b}[2J", "U&'\\x", "1e", "((", "'a' 'b' \"", "👩‍🚀 x"]
        {
            let mut at = 0;
            for token in tokens(text) {
                assert!(at <= token.range.start && token.range.start < token.range.end, "{text:?}: {token:?}");
                assert!(text.get(token.range.clone()).is_some(), "{text:?}: {token:?}");
                at = token.range.end;
            }
            assert!(at <= text.len());
        }
    }
}
