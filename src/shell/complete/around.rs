//! The tokens of the statement on both sides of the cursor, and the word that is being typed.

use crate::parser::{TokenKind, TokenSpan, tokens};

/// One token of the statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tok<'a> {
    pub(super) kind: TokenKind,
    pub(super) text: &'a str,
}

impl<'a> Tok<'a> {
    /// Whether it is this unquoted word, in any case.
    pub(super) fn is(&self, word: &str) -> bool {
        self.kind == TokenKind::Word && self.text.eq_ignore_ascii_case(word)
    }

    pub(super) fn is_any(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.is(word))
    }

    pub(super) fn is_sign(&self, sign: &str) -> bool {
        self.kind == TokenKind::Symbol && self.text == sign
    }

    /// The name that it is: folded unless it is quoted.
    pub(super) fn name(&self) -> Option<String> {
        match self.kind {
            TokenKind::Word => Some(self.text.to_ascii_lowercase()),
            TokenKind::QuotedName => {
                let quote = self.text.get(..1)?;
                let inner = self.text.get(1..)?;
                Some(inner.strip_suffix(quote).unwrap_or(inner).replace(&quote.repeat(2), quote))
            }
            _ => None,
        }
    }

    /// The text between the quotes of a plain string.
    pub(super) fn string(&self) -> Option<String> {
        let inner = self.text.strip_prefix('\'').filter(|_| self.kind == TokenKind::Text)?;
        Some(inner.strip_suffix('\'').unwrap_or(inner).replace("''", "'"))
    }
}

/// The statement around the cursor.
#[derive(Debug)]
pub(super) struct Around<'a> {
    /// Before the word at the cursor.
    pub(super) before: Vec<Tok<'a>>,
    /// Behind the word at the cursor.
    pub(super) after: Vec<Tok<'a>>,
    /// What of the word stands before the cursor, with the quote that opens it.
    pub(super) typed: &'a str,
    /// What kind of token that is; a word where nothing is typed.
    pub(super) kind: TokenKind,
    /// The byte where it begins.
    pub(super) start: usize,
}

impl<'a> Around<'a> {
    /// `None` within a comment, a number or a string that is closed: there is nothing to complete.
    pub(super) fn new(text: &'a str, at: usize) -> Option<Self> {
        let (head, tail) = text.split_at(at);
        let mut spans = tokens(head);
        let last = spans.last().cloned();
        let (mut start, mut kind) = (at, TokenKind::Word);
        match last {
            Some(TokenSpan { kind: TokenKind::Comment, open: true, .. }) => return None,
            Some(TokenSpan { kind: found @ (TokenKind::Text | TokenKind::QuotedName), open: true, range }) => {
                (start, kind) = (range.start, found);
                spans.pop();
            }
            Some(TokenSpan { kind: TokenKind::Word, range, .. }) if range.end == at => {
                start = range.start;
                spans.pop();
            }
            Some(TokenSpan { kind: TokenKind::Text | TokenKind::QuotedName | TokenKind::Number, range, .. })
                if range.end == at =>
            {
                return None;
            }
            _ => {}
        }
        let mut before = toks(head, &spans);
        if let Some(ended) = before.iter().rposition(|tok| tok.is_sign(";")) {
            before.drain(..=ended);
        }
        let tail = &tail[rest_of_word(kind, &head[start..], tail)..];
        let mut after = toks(tail, &tokens(tail));
        if let Some(ends) = after.iter().position(|tok| tok.is_sign(";")) {
            after.truncate(ends);
        }
        Some(Around { before, after, typed: &head[start..], kind, start })
    }

    /// What was typed without its opening quote.
    pub(super) fn bare(&self) -> &'a str {
        match self.kind {
            TokenKind::Text => self.typed.strip_prefix('\'').unwrap_or(self.typed),
            TokenKind::QuotedName => self.typed.get(1..).unwrap_or_default(),
            _ => self.typed,
        }
    }

    /// Whether a parenthesis stands behind the word.
    pub(super) fn is_called(&self) -> bool {
        self.after.first().is_some_and(|tok| tok.is_sign("("))
    }

    /// The token before the word.
    pub(super) fn previous(&self) -> Option<Tok<'a>> {
        self.before.last().copied()
    }
}

/// How many bytes behind the cursor belong to the word that it stands in.
fn rest_of_word(kind: TokenKind, typed: &str, tail: &str) -> usize {
    let quote = match (kind, typed.chars().next()) {
        (TokenKind::Text | TokenKind::QuotedName, Some(quote @ ('\'' | '"' | '`'))) => quote,
        (TokenKind::Word, Some(_)) => {
            let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
            return tail.find(|c| !is_part(c)).unwrap_or(tail.len());
        }
        _ => return 0,
    };
    // A quote that something else opens stands behind a comma, a bracket or a line's end.
    match tail.find(quote) {
        // Behind a blank it belongs to something else, too.
        Some(close)
            if !tail.starts_with(char::is_whitespace) && !tail[..close].contains([',', ')', '(', '=', '\n', ';']) =>
        {
            close + quote.len_utf8()
        }
        _ => 0,
    }
}

fn toks<'a>(text: &'a str, spans: &[TokenSpan]) -> Vec<Tok<'a>> {
    let spans = spans.iter().filter(|span| span.kind != TokenKind::Comment);
    spans.map(|span| Tok { kind: span.kind, text: &text[span.range.clone()] }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `before | typed | after`, of a text with the cursor at `|`.
    fn shown(marked: &str) -> Option<String> {
        let at = marked.find('|').unwrap();
        let text = marked.replacen('|', "", 1);
        let around = Around::new(&text, at)?;
        let words = |toks: &[Tok<'_>]| toks.iter().map(|tok| tok.text).collect::<Vec<_>>().join(" ");
        Some(format!("{} | {} | {}", words(&around.before), around.typed, words(&around.after)))
    }

    #[test]
    fn the_statement_on_both_sides() {
        for (marked, expected) in [
            ("SELECT cus| FROM orders", "SELECT | cus | FROM orders"),
            ("SELECT cus|tomer FROM orders", "SELECT | cus | FROM orders"),
            ("SELECT | FROM orders; SELECT 2", "SELECT |  | FROM orders"),
            ("SELECT 1; SELECT a, |", "SELECT a , |  | "),
            ("WITH (path = 'in/|', format = 'json')", "WITH ( path = | 'in/ | , format = 'json' )"),
            ("WITH (path = 'in/|, format = 'json')", "WITH ( path = | 'in/ | , format = 'json' )"),
            ("SELECT \"Or| FROM", "SELECT | \"Or | FROM"),
            ("SELECT a -- b\n, c| FROM t", "SELECT a , | c | FROM t"),
        ] {
            assert_eq!(shown(marked).as_deref(), Some(expected), "{marked}");
        }
    }

    #[test]
    fn nothing_is_completed_in_comments_numbers_and_closed_strings() {
        for marked in ["SELECT -- a|", "SELECT /* a|", "SELECT 1|", "SELECT 'a'|", "SELECT \"a\"|"] {
            assert_eq!(shown(marked), None, "{marked}");
        }
    }
}
