//! `WITH (name = value, …)`: the options of a stream, a sink or a query, as written. Which there are is not known here.

use std::fmt;

use sqlparser::tokenizer::Token;

use super::cursor::{Cursor, text_of};
use super::write::Quoted;
use crate::error::{Error, Result};
use crate::options::{OptionEntry, OptionValue, Options, snake_case};

impl Cursor<'_> {
    /// The list with its parentheses; WITH was taken.
    pub fn with_list(&mut self) -> Result<Options> {
        self.expect_token(&Token::LParen)?;
        let mut options = Options::default();
        loop {
            let entry = self.option()?;
            if let Some(first) = options.get(&entry.name) {
                let (line, column) = (first.span.start.line, first.span.start.column);
                return Err(Error::invalid_at(entry.span, format!("option {} is given twice", entry.name))
                    .help(format!("it stands at {line}:{column} too")));
            }
            options.entries.push(entry);
            if !self.take_token(&Token::Comma) {
                break;
            }
        }
        if self.take_token(&Token::RParen) { Ok(options) } else { Err(self.expected("a comma or )", &[])) }
    }

    fn option(&mut self) -> Result<OptionEntry> {
        let from = self.at;
        let name = self.option_name()?;
        if !self.take_token(&Token::Eq) {
            return Err(self.expected("= and a value", &[]));
        }
        let value = self.option_value(&name)?;
        Ok(OptionEntry { name, value, span: self.span_from(from) })
    }

    /// `name`, `kafka.name`, `"name"` or `'name'`.
    fn option_name(&mut self) -> Result<String> {
        let mut name = String::new();
        loop {
            let part = match self.peek().map(|l| &l.token) {
                Some(Token::Word(word)) if !word.value.is_empty() => &word.value,
                Some(Token::SingleQuotedString(text)) if name.is_empty() && !text.is_empty() => text,
                _ => return Err(self.expected("the name of an option", &[])),
            };
            name.push_str(&snake_case(part));
            self.at += 1;
            if !self.take_token(&Token::Period) {
                return Ok(name);
            }
            name.push('.');
        }
    }

    fn option_value(&mut self, name: &str) -> Result<OptionValue> {
        if let Some(text) = self.peek().and_then(|l| text_of(&l.token)) {
            self.at += 1;
            return Ok(OptionValue::Text(text.to_string()));
        }
        if self.take(&["TRUE"]) {
            return Ok(OptionValue::Bool(true));
        }
        if self.take(&["FALSE"]) {
            return Ok(OptionValue::Bool(false));
        }
        if let Some(number) = self.signed_number() {
            return Ok(OptionValue::Number(number));
        }
        let error = self.expected(&format!("a value for {name} (a string, a number, TRUE or FALSE)"), &[]);
        Err(match self.peek().and_then(|l| l.word()) {
            Some(word) => error.help(format!("write '{word}' in quotes")),
            None => error,
        })
    }

    /// A number with its sign, as written.
    pub fn signed_number(&mut self) -> Option<String> {
        let sign = match self.peek().map(|l| &l.token) {
            Some(Token::Minus) => "-",
            Some(Token::Plus) => "+",
            _ => "",
        };
        match self.lexemes.get(self.at + sign.len()).map(|l| &l.token) {
            Some(Token::Number(digits, false)) => {
                self.at += 1 + sign.len();
                Some(format!("{}{digits}", sign.trim_start_matches('+')))
            }
            _ => None,
        }
    }
}

/// `(name = value, …)`
impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(")?;
        for (n, entry) in self.entries.iter().enumerate() {
            let separator = if n == 0 { "" } else { ", " };
            write!(f, "{separator}{} = ", OptionName(&entry.name))?;
            match &entry.value {
                OptionValue::Text(text) => write!(f, "{}", Quoted(text))?,
                OptionValue::Number(number) => f.write_str(number)?,
                OptionValue::Bool(value) => write!(f, "{}", if *value { "TRUE" } else { "FALSE" })?,
            }
        }
        f.write_str(")")
    }
}

struct OptionName<'a>(&'a str);

impl fmt::Display for OptionName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = |part: &str| {
            part.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
                && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        };
        if self.0.split('.').all(plain) { f.write_str(self.0) } else { write!(f, "{}", Quoted(self.0)) }
    }
}
