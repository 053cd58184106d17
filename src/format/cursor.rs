//! A place in the text of a JSON record: tokens, one after the other.
//!
//! Knows the grammar of JSON and no columns. A record is one line: the cursor never goes past a newline, and the
//! end of the bytes counts as one.

use super::column::Reason;
use super::number::json_number;
use super::{line_at, shorten};

/// What a token is, or why it is none.
pub type Token<T> = Result<T, Box<Reason>>;

/// A place in a block of lines.
#[derive(Debug)]
pub struct Cursor<'a> {
    pub bytes: &'a [u8],
    pub at: usize,
}

impl<'a> Cursor<'a> {
    /// The byte here; a newline behind the end.
    #[inline]
    pub fn peek(&self) -> u8 {
        self.bytes.get(self.at).copied().unwrap_or(b'\n')
    }

    /// Passes blanks on this line.
    #[inline]
    pub fn skip_blanks(&mut self) {
        while matches!(self.peek(), b' ' | b'\t' | b'\r') {
            self.at += 1;
        }
    }

    /// Passes `byte` and the blanks around it.
    #[inline]
    pub fn expect(&mut self, byte: u8, what: &str) -> Token<()> {
        self.skip_blanks();
        if self.peek() != byte {
            return Err(self.unexpected(what));
        }
        self.at += 1;
        self.skip_blanks();
        Ok(())
    }

    /// Passes a word such as `null`.
    pub fn word(&mut self, word: &'static str) -> Token<()> {
        if !self.bytes[self.at..].starts_with(word.as_bytes()) {
            return Err(self.unexpected("a value"));
        }
        self.at += word.len();
        Ok(())
    }

    /// Passes a number and answers its text.
    pub fn number(&mut self) -> Token<&'a str> {
        let rest = &self.bytes[self.at..];
        match json_number(rest).map(|length| std::str::from_utf8(&rest[..length])) {
            Some(Ok(text)) => {
                self.at += text.len();
                Ok(text)
            }
            _ => Err(self.unexpected("a number")),
        }
    }

    /// Passes a whole number of the BIGINT range that nothing numeric follows; stays where it is at any other.
    #[inline]
    pub fn small_integer(&mut self) -> Option<i64> {
        let negative = self.peek() == b'-';
        let start = self.at + usize::from(negative);
        let mut at = start;
        let mut value = 0u64;
        while let Some(digit) = self.bytes.get(at).map(|b| b.wrapping_sub(b'0'))
            && digit < 10
        {
            value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
            at += 1;
        }
        let length = at - start;
        let leading_zero = length > 1 && self.bytes[start] == b'0';
        // Nineteen digits fit an unsigned number, and perhaps a signed one.
        let value = i64::try_from(value).ok().filter(|_| (1..=19).contains(&length) && !leading_zero)?;
        if matches!(self.bytes.get(at), Some(b'.' | b'e' | b'E')) {
            return None;
        }
        self.at = at;
        Some(if negative { -value } else { value })
    }

    /// Passes a text, whose opening quote is here, and answers it; `scratch` holds one with escapes.
    #[inline]
    pub fn text<'s>(&mut self, scratch: &'s mut Vec<u8>) -> Token<&'s str>
    where
        'a: 's,
    {
        let start = self.at + 1;
        let rest = &self.bytes[start..];
        let Some(length) = memchr::memchr3(b'"', b'\\', b'\n', rest) else { return Err(self.cut_off()) };
        let text = match rest[length] {
            b'"' => {
                self.at = start + length + 1;
                std::str::from_utf8(&rest[..length])
            }
            b'\\' => {
                self.escaped_text(start, length, scratch)?;
                std::str::from_utf8(scratch)
            }
            _ => return Err(self.cut_off()),
        };
        text.map_err(|_| Reason::form("is not UTF-8 text"))
    }

    fn escaped_text(&mut self, start: usize, plain: usize, scratch: &mut Vec<u8>) -> Token<()> {
        scratch.clear();
        scratch.extend_from_slice(&self.bytes[start..start + plain]);
        let mut at = start + plain;
        loop {
            match self.bytes.get(at) {
                Some(b'"') => break,
                Some(b'\\') => at = self.escape(at + 1, scratch)?,
                Some(b'\n') | None => return Err(self.cut_off()),
                Some(_) => {
                    let rest = &self.bytes[at..];
                    let length = memchr::memchr3(b'"', b'\\', b'\n', rest).unwrap_or(rest.len());
                    scratch.extend_from_slice(&rest[..length]);
                    at += length;
                }
            }
        }
        self.at = at + 1;
        Ok(())
    }

    /// Reads what follows a backslash at `at`; answers where the text goes on.
    fn escape(&self, at: usize, scratch: &mut Vec<u8>) -> Token<usize> {
        let plain = match self.bytes.get(at) {
            Some(b @ (b'"' | b'\\' | b'/')) => *b,
            Some(b'b') => 8,
            Some(b'f') => 12,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'u') => return self.unicode(at + 1, scratch),
            _ => return Err(Reason::form("has a text with an unknown escape")),
        };
        scratch.push(plain);
        Ok(at + 1)
    }

    fn unicode(&self, at: usize, scratch: &mut Vec<u8>) -> Token<usize> {
        let bad = || Reason::form("has a text with a \\u escape that is no character");
        let high = self.hex4(at).ok_or_else(bad)?;
        let (code, end) = match high {
            0xD800..=0xDBFF => {
                let low = self.bytes[at + 4..].starts_with(b"\\u").then(|| self.hex4(at + 6)).flatten();
                let low = low.filter(|low| (0xDC00..=0xDFFF).contains(low)).ok_or_else(bad)?;
                (0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00), at + 10)
            }
            code => (code, at + 4),
        };
        let character = char::from_u32(code).ok_or_else(bad)?;
        scratch.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        Ok(end)
    }

    fn hex4(&self, at: usize) -> Option<u32> {
        let digits = self.bytes.get(at..at + 4)?;
        digits.iter().try_fold(0, |code, digit| Some(code << 4 | char::from(*digit).to_digit(16)?))
    }

    /// Passes any value without looking into it further than its end needs.
    pub fn skip_value(&mut self) -> Token<()> {
        match self.peek() {
            b'"' => self.skip_text(),
            b'{' | b'[' => self.skip_nested(),
            b'n' => self.word("null"),
            b't' => self.word("true"),
            b'f' => self.word("false"),
            _ => match self.small_integer() {
                Some(_) => Ok(()),
                None => self.number().map(|_| ()),
            },
        }
    }

    /// Passes a text whose opening quote is here.
    #[inline]
    pub fn skip_text(&mut self) -> Token<()> {
        let mut at = self.at + 1;
        loop {
            let rest = self.bytes.get(at..).unwrap_or_default();
            let Some(length) = memchr::memchr3(b'"', b'\\', b'\n', rest) else { return Err(self.cut_off()) };
            match rest[length] {
                b'"' => {
                    self.at = at + length + 1;
                    return Ok(());
                }
                b'\\' if rest.get(length + 1).is_some_and(|b| *b != b'\n') => at += length + 2,
                _ => return Err(self.cut_off()),
            }
        }
    }

    fn skip_nested(&mut self) -> Token<()> {
        // The innermost brackets, one bit each: whether it is a brace. Deeper ones than 128 are only counted.
        let (mut depth, mut braces) = (0usize, 0u128);
        loop {
            match self.peek() {
                b'"' => {
                    self.skip_text()?;
                    continue;
                }
                open @ (b'{' | b'[') => {
                    depth += 1;
                    braces = braces << 1 | u128::from(open == b'{');
                }
                close @ (b'}' | b']') => {
                    if depth <= 128 && (braces & 1 == 1) != (close == b'}') {
                        return Err(self.unexpected("the bracket that was opened last"));
                    }
                    depth -= 1;
                    braces >>= 1;
                }
                b'\n' => return Err(self.cut_off()),
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return Ok(());
            }
        }
    }

    /// The text of the value that begins here, for a message.
    pub fn value_text(&self) -> String {
        let mut end = Cursor { bytes: self.bytes, at: self.at };
        match end.skip_value() {
            Ok(()) => shorten(&self.bytes[self.at..end.at]),
            Err(_) => shorten(line_at(self.bytes, self.at).0),
        }
    }

    /// The record stops in the middle.
    pub fn cut_off(&self) -> Box<Reason> {
        Reason::form("is cut off: a record is one JSON object on one line")
    }

    /// Something else than `what` stands here.
    pub fn unexpected(&self, what: &str) -> Box<Reason> {
        match self.peek() {
            b'\n' => self.cut_off(),
            _ => {
                let rest = line_at(self.bytes, self.at).0;
                let found: String = shorten(&rest[..rest.len().min(20)]);
                Reason::form(format!("is not JSON: wanted {what}, found {found}"))
            }
        }
    }
}
