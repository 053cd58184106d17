//! The first line of a record, word by word, with the column of each.

use regex::Regex;

use super::place::{Broken, Place};

/// The words of a line that are not read yet.
#[derive(Clone)]
pub struct Head<'a> {
    pub place: Place,
    pub line: &'a str,
    at: usize,
}

impl<'a> Head<'a> {
    /// A line from its start.
    pub fn new(place: Place, line: &'a str) -> Self {
        Head { place, line, at: 0 }
    }

    /// The next word, without taking it.
    pub fn peek(&self) -> Option<&'a str> {
        self.rest().split_whitespace().next()
    }

    /// Takes the next word.
    pub fn next(&mut self) -> Option<&'a str> {
        let word = self.peek()?;
        self.at += self.line[self.at..].find(word)? + word.len();
        Some(word)
    }

    /// Takes the next word if it is this one.
    pub fn take(&mut self, word: &str) -> bool {
        let found = self.peek() == Some(word);
        if found {
            self.next();
        }
        found
    }

    /// Takes a word that must be there.
    pub fn want(&mut self, what: &str) -> Result<&'a str, Broken> {
        match self.next() {
            Some(word) => Ok(word),
            None => Err(self.wrong(format!("{what} is missing"))),
        }
    }

    /// Takes a name of the SQL: folded to lower case unless it is quoted.
    pub fn name(&mut self, what: &str) -> Result<String, Broken> {
        self.want(what).map(name)
    }

    /// Takes all that is left of the line.
    pub fn remainder(&mut self) -> &'a str {
        let rest = self.rest().trim();
        self.at = self.line.len();
        rest
    }

    /// Takes the rest of the line as a regular expression; `None`: there is none.
    pub fn regex(&mut self) -> Result<Option<Regex>, Broken> {
        if self.peek().is_none() {
            return Ok(None);
        }
        let column = self.column();
        Regex::new(self.remainder())
            .map(Some)
            .map_err(|error| Broken::new(&self.place, Some(column), format!("this is no regular expression: {error}")))
    }

    /// Nothing may follow.
    pub fn end(&self) -> Result<(), Broken> {
        match self.peek() {
            None => Ok(()),
            Some(word) => Err(self.wrong(format!("unexpected {word:?}"))),
        }
    }

    /// What is wrong with the next word.
    pub fn wrong(&self, message: impl Into<String>) -> Broken {
        Broken::new(&self.place, Some(self.column()), message)
    }

    fn rest(&self) -> &'a str {
        &self.line[self.at..]
    }

    fn column(&self) -> usize {
        let skipped = self.rest().len() - self.rest().trim_start().len();
        self.line[..self.at + skipped].chars().count() + 1
    }
}

/// A name as the session knows it.
pub fn name(word: &str) -> String {
    match word.strip_prefix('"').and_then(|word| word.strip_suffix('"')) {
        Some(quoted) => quoted.replace("\"\"", "\""),
        None => word.to_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_taken_with_their_columns() {
        let mut head = Head::new(Place::top("x.slt", None), "step  q  two PTI");
        assert_eq!((head.next(), head.next()), (Some("step"), Some("q")));
        assert_eq!(head.wrong("no number").to_string(), "x.slt:1:10: no number");
        assert_eq!(head.remainder(), "two PTI");
        assert!(head.end().is_ok());
        assert!(head.want("a type").is_err_and(|e| e.to_string().ends_with("a type is missing")));
    }
}
