//! Where a statement ends, and why an unfinished one is still waiting, without parsing anything.
//!
//! The scanner follows the lexer's rules about what hides a `;`: strings, quoted identifiers, comments, dollar quotes.
//! It keeps its state between lines, so that a shell pays for each line once. A property test holds it against the
//! lexer itself; [`parse_one`](super::parse_one) refuses a piece in which the lexer sees another `;`.

use std::ops::Range;

/// What the text so far amounts to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pending {
    /// A statement ends; `end` is the byte behind its `;`.
    Complete { end: usize },
    /// Nothing but white space and comments.
    Empty,
    /// A statement that has begun.
    Statement,
    /// An open string (`'`) or quoted identifier (`"` or `` ` ``).
    Quote(char),
    /// An open `/*`.
    Comment,
    /// An open parenthesis.
    Parenthesis,
    /// An open dollar quote.
    Dollar,
}

/// What `buffer`, from its start to its first `;`, amounts to.
pub fn pending(buffer: &str) -> Pending {
    let mut scanner = Scanner::new();
    match scanner.feed_sql(buffer) {
        Some(end) => Pending::Complete { end },
        None => scanner.pending(),
    }
}

/// Why the scanner stopped; the byte is counted in the text that was fed last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Behind the `;` that ends a statement.
    Semicolon(usize),
    /// At a backslash outside of quotes and comments: never SQL, so a command of the shell begins.
    Backslash(usize),
}

/// Reads a statement line by line.
#[derive(Debug, Clone, Default)]
pub struct Scanner {
    mode: Mode,
    parentheses: usize,
    begun: bool,
    /// The bytes of the statement in the text fed last, from its first to behind its last token.
    content: Option<Range<usize>>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum Mode {
    #[default]
    Plain,
    /// Closed by this character; with `escapes`, a backslash hides the next one.
    Quote {
        close: char,
        escapes: bool,
    },
    /// `r'''…'''`
    Triple(char),
    Comment {
        depth: usize,
    },
    Dollar {
        close: String,
    },
}

impl Scanner {
    /// At the start of a statement.
    pub fn new() -> Self {
        Scanner::default()
    }

    /// Reads on, one or more whole lines (or the last one), up to the first stop. After a [`Stop::Semicolon`] it is at
    /// the start of the next statement.
    pub fn feed(&mut self, text: &str) -> Option<Stop> {
        self.run(text, true)
    }

    /// The same for text without commands of the shell: a backslash is part of the statement (and an error there).
    /// Answers the byte behind the first `;`.
    pub fn feed_sql(&mut self, text: &str) -> Option<usize> {
        match self.run(text, false) {
            Some(Stop::Semicolon(end)) => Some(end),
            _ => None,
        }
    }

    fn run(&mut self, text: &str, stop_at_backslash: bool) -> Option<Stop> {
        self.content = None;
        let mut at = 0;
        while at < text.len() {
            if self.mode == Mode::Plain && text[at..].starts_with(';') {
                let content = self.content.take();
                *self = Scanner { content, ..Scanner::new() };
                return Some(Stop::Semicolon(at + 1));
            }
            if stop_at_backslash && self.mode == Mode::Plain && text[at..].starts_with('\\') {
                return Some(Stop::Backslash(at));
            }
            at = self.step(text, at);
        }
        None
    }

    /// The bytes, in the text fed last, from the first to behind the last token of the statement that was read there.
    pub fn content(&self) -> Option<Range<usize>> {
        self.content.clone()
    }

    /// What the statement is waiting for.
    pub fn pending(&self) -> Pending {
        match &self.mode {
            Mode::Quote { close, .. } | Mode::Triple(close) => Pending::Quote(*close),
            Mode::Comment { .. } => Pending::Comment,
            Mode::Dollar { .. } => Pending::Dollar,
            Mode::Plain if self.parentheses > 0 => Pending::Parenthesis,
            Mode::Plain if self.begun => Pending::Statement,
            Mode::Plain => Pending::Empty,
        }
    }

    /// Reads one token, or the rest of an open one; answers where it ends.
    fn step(&mut self, text: &str, at: usize) -> usize {
        let rest = &text[at..];
        let (length, is_content) = match self.mode.clone() {
            Mode::Plain => self.plain(rest),
            Mode::Quote { close, escapes } => (self.quoted(rest, 0, close, escapes), true),
            Mode::Triple(close) => (self.until(rest, 0, &String::from_iter([close; 3])), true),
            Mode::Comment { depth } => (self.comment(rest, 0, depth), false),
            Mode::Dollar { close } => (self.until(rest, 0, &close), true),
        };
        let end = at + length.max(1);
        if is_content {
            self.begun = true;
            self.content = Some(self.content.as_ref().map_or(at, |c| c.start)..end);
        }
        end
    }

    /// One token outside of quotes and comments: its length, and whether it counts as content.
    fn plain(&mut self, rest: &str) -> (usize, bool) {
        let mut chars = rest.chars();
        let (Some(first), second) = (chars.next(), chars.next()) else { return (0, false) };
        let length = match first {
            '-' if second == Some('-') => return (rest.find('\n').map_or(rest.len(), |n| n + 1), false),
            '/' if second == Some('*') => return (self.comment(rest, 2, 1), false),
            '(' => {
                self.parentheses += 1;
                1
            }
            ')' => {
                self.parentheses = self.parentheses.saturating_sub(1);
                1
            }
            '\'' | '"' | '`' => self.quoted(rest, 1, first, false),
            '$' => self.dollar(rest),
            '0'..='9' | '.' => number(rest),
            // Operators that hide the start of a comment: `//*`, `#--`, `|/*`, `||/*`.
            '/' if second == Some('/') => 2,
            '#' if second == Some('-') => 2,
            '|' => pipes(rest),
            c if c.is_alphabetic() || c == '_' => self.word(rest),
            c if c.is_whitespace() => return (c.len_utf8(), false),
            c => c.len_utf8(),
        };
        (length, true)
    }

    /// A word, or a string with a prefix.
    fn word(&mut self, rest: &str) -> usize {
        let bytes = rest.as_bytes();
        match (bytes[0].to_ascii_lowercase(), bytes.get(1)) {
            (b'e' | b'x', Some(b'\'')) => self.quoted(rest, 2, '\'', true),
            (b'b' | b'n', Some(b'\'')) => self.quoted(rest, 2, '\'', false),
            (b'b', Some(b'"')) => self.quoted(rest, 2, '"', false),
            (b'r', Some(&quote @ (b'\'' | b'"'))) => self.raw(rest, quote as char),
            (b'u', Some(b'&')) if bytes.get(2) == Some(&b'\'') => self.quoted(rest, 3, '\'', false),
            _ => rest.find(|c: char| !is_word_part(c)).unwrap_or(rest.len()),
        }
    }

    /// `r'…'` (a doubled quote is two strings' worth of quotes there: it ends) or `r'''…'''`.
    fn raw(&mut self, rest: &str, quote: char) -> usize {
        let opened = rest[1..].chars().take(3).take_while(|&c| c == quote).count();
        match opened {
            2 => 3,
            3 => self.until(rest, 4, &String::from_iter([quote; 3])),
            _ => self.quoted(rest, 2, quote, false),
        }
    }

    /// The rest of a quoted string from byte `at`; a doubled quote is part of it.
    fn quoted(&mut self, rest: &str, at: usize, close: char, escapes: bool) -> usize {
        let bytes = rest.as_bytes();
        let mut at = at;
        while at < bytes.len() {
            match bytes[at] {
                b'\\' if escapes => at += 1 + rest[at + 1..].chars().next().map_or(0, char::len_utf8),
                b if b == close as u8 && bytes.get(at + 1) == Some(&b) => at += 2,
                b if b == close as u8 => {
                    self.mode = Mode::Plain;
                    return at + 1;
                }
                _ => at += 1,
            }
        }
        self.mode = Mode::Quote { close, escapes };
        rest.len()
    }

    /// The rest of a nested comment from byte `at`.
    fn comment(&mut self, rest: &str, at: usize, depth: usize) -> usize {
        let bytes = rest.as_bytes();
        let (mut at, mut depth) = (at, depth);
        while at < bytes.len() {
            match (bytes[at], bytes.get(at + 1)) {
                (b'/', Some(b'*')) => (at, depth) = (at + 2, depth + 1),
                (b'*', Some(b'/')) => {
                    (at, depth) = (at + 2, depth - 1);
                    if depth == 0 {
                        self.mode = Mode::Plain;
                        return at;
                    }
                }
                _ => at += 1,
            }
        }
        self.mode = Mode::Comment { depth };
        rest.len()
    }

    /// `$1`, `$name`, `$$…$$` or `$tag$…$tag$`.
    fn dollar(&mut self, rest: &str) -> usize {
        let tag = rest[1..].find(|c: char| !(c.is_alphanumeric() || c == '_')).map_or(rest.len(), |n| n + 1);
        if !rest[tag..].starts_with('$') {
            return tag;
        }
        let close = rest[..=tag].to_string();
        self.until(rest, tag + 1, &close)
    }

    fn until(&mut self, rest: &str, at: usize, close: &str) -> usize {
        match rest[at..].find(close) {
            Some(n) => {
                self.mode = Mode::Plain;
                at + n + close.len()
            }
            None => {
                self.mode = match close.chars().next() {
                    Some(c @ ('\'' | '"')) => Mode::Triple(c),
                    _ => Mode::Dollar { close: close.to_string() },
                };
                rest.len()
            }
        }
    }
}

/// The tokens of a text that are neither strings, quoted names, comments, dollar quotes nor blanks.
pub fn bare_tokens(text: &str) -> Vec<Range<usize>> {
    let mut scanner = Scanner::new();
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let plain = scanner.mode == Mode::Plain;
        let end = scanner.step(text, at).min(text.len());
        if plain && is_bare(&text[at..end]) {
            tokens.push(at..end);
        }
        at = end;
    }
    tokens
}

fn is_bare(token: &str) -> bool {
    let comment = token.starts_with("--") || token.starts_with("/*");
    let dollar = token.strip_prefix('$').is_some_and(|rest| rest.contains('$'));
    !(comment || dollar || token.contains(['\'', '"', '`']) || token.trim().is_empty())
}

fn is_word_part(c: char) -> bool {
    c.is_alphabetic() || c.is_ascii_digit() || c == '$' || c == '_'
}

/// A number ends before a letter that belongs to the next token: `1e'…'` is a number and an escaped string.
fn number(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let digits = |from: usize| from + bytes[from..].iter().take_while(|b| b.is_ascii_digit()).count();
    let mut at = digits(0);
    if at == 1 && bytes[0] == b'0' && bytes.get(1) == Some(&b'x') {
        return 2 + bytes[2..].iter().take_while(|b| b.is_ascii_hexdigit()).count();
    }
    if bytes.get(at) == Some(&b'.') {
        at = digits(at + 1);
    }
    if at == 1 && bytes[0] == b'.' {
        return 1;
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        if bytes.get(at + 1 + sign).is_some_and(u8::is_ascii_digit) {
            at = digits(at + 1 + sign);
        }
    }
    at + usize::from(bytes.get(at) == Some(&b'L'))
}

fn pipes(rest: &str) -> usize {
    let bars = if rest.starts_with("||") { 2 } else { 1 };
    bars + usize::from(rest[bars..].starts_with('/'))
}
