//! Lines → statements and commands, each with its place.
//!
//! The parser's scanner says where a statement ends; here is what a shell adds to it: a backslash outside of quotes
//! begins a command, and at the start of a line a dot does, and so do the words `quit`, `exit` and `help`
//! alone on theirs.

use crate::error::Location;
use crate::parser::{Pending, Scanner, Stop};

/// What a shell can run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Item {
    /// One statement without its `;`, and the place of its first character in the input.
    Statement { text: String, at: Location },
    /// One command with its backslash or dot, and its place.
    Command { line: String, at: Location },
}

/// Collects lines until there is something to run.
#[derive(Debug)]
pub(super) struct Buffer {
    scanner: Scanner,
    /// Whole lines of the input, from the one in which the statement begins.
    window: String,
    /// The same as it was written: commands are blanks in the window.
    written: String,
    /// The number of the window's first line, from 1.
    first_line: u64,
    /// Bytes of the window that are read.
    read: usize,
    /// Bytes of the window from the statement's first to behind its last token.
    statement: Option<(usize, usize)>,
    /// What was put in place of all that was read.
    replaced: Option<String>,
}

impl Buffer {
    pub(super) fn new() -> Self {
        Buffer {
            scanner: Scanner::new(),
            window: String::new(),
            written: String::new(),
            first_line: 1,
            read: 0,
            statement: None,
            replaced: None,
        }
    }

    /// Adds one line, with its newline. What was there before must have been taken.
    pub(super) fn push_line(&mut self, line: &str) {
        let keep_from = match (self.statement, self.scanner.pending()) {
            (Some((begin, _)), _) => self.window[..begin].rfind('\n').map_or(0, |newline| newline + 1),
            (None, Pending::Empty) => self.window.len(),
            // An open comment: its beginning is wanted if it never ends.
            (None, _) => 0,
        };
        self.first_line += count_lines(&self.window[..keep_from]);
        self.window.drain(..keep_from);
        self.written.drain(..keep_from);
        self.read -= keep_from;
        if let Some((begin, end)) = &mut self.statement {
            *begin -= keep_from;
            *end -= keep_from;
        }
        self.window.push_str(line);
        self.written.push_str(line);
    }

    /// The next thing to run; `None` when another line is needed.
    pub(super) fn take(&mut self) -> Option<Item> {
        while self.read < self.window.len() {
            let at_line_start = self.read == 0 || self.window[..self.read].ends_with('\n');
            if at_line_start && self.scanner.pending() == Pending::Empty && is_word_command(self.rest()) {
                return Some(self.take_command());
            }
            let from = self.read;
            let stop = self.scanner.feed(&self.window[from..]);
            if let Some(content) = self.scanner.content() {
                let begin = self.statement.map_or(from + content.start, |(begin, _)| begin);
                self.statement = Some((begin, from + content.end));
            }
            match stop {
                None => self.read = self.window.len(),
                Some(Stop::Backslash(at)) => {
                    self.read = from + at;
                    return Some(self.take_command());
                }
                Some(Stop::Semicolon(end)) => {
                    self.read = from + end;
                    // A lone `;` is nothing to run.
                    if let Some((begin, end)) = self.statement.take() {
                        return Some(self.statement_item(begin, end));
                    }
                }
            }
        }
        None
    }

    /// At the end of the input: the last statement, whose `;` may be missing, or what was left open.
    pub(super) fn finish(&mut self) -> Option<Item> {
        let pending = self.scanner.pending();
        let open = pending != Pending::Empty;
        self.scanner = Scanner::new();
        match self.statement.take() {
            // A comment that never ends hides what follows: the parser says where it begins.
            Some((begin, _)) if pending == Pending::Comment => Some(self.statement_item(begin, self.window.len())),
            Some((begin, end)) => Some(self.statement_item(begin, end)),
            // An open comment: the parser says where it begins.
            None if open => Some(self.statement_item(0, self.window.len())),
            None => None,
        }
    }

    /// The statement that has begun and not ended, and its place.
    pub(super) fn begun(&self) -> Option<(String, Location)> {
        self.statement.map(|(begin, end)| (self.window[begin..end].to_string(), self.location(begin)))
    }

    /// Takes the statement that has begun: what follows begins another.
    pub(super) fn take_begun(&mut self) -> Option<(String, Location)> {
        let begun = self.begun();
        self.statement = None;
        self.scanner = Scanner::new();
        begun
    }

    /// Puts a text in place of all that was read, to be read next.
    pub(super) fn replace(&mut self, text: &str) {
        *self = Buffer::new();
        let text = format!("{}\n", text.trim_end());
        self.push_line(&text);
        self.replaced = Some(text);
    }

    /// The text that was put in place of all that was read, since this was asked last.
    pub(super) fn take_replaced(&mut self) -> Option<String> {
        self.replaced.take()
    }

    /// What an unfinished statement is waiting for.
    pub(super) fn pending(&self) -> Pending {
        self.scanner.pending()
    }

    /// The text around the statement that was taken last, such that its lines have the numbers of the input.
    pub(super) fn source(&self) -> String {
        "\n".repeat(self.first_line.saturating_sub(1) as usize) + &self.written
    }

    fn rest(&self) -> &str {
        &self.window[self.read..]
    }

    fn statement_item(&self, begin: usize, end: usize) -> Item {
        Item::Statement { text: self.window[begin..end].to_string(), at: self.location(begin) }
    }

    /// Takes the rest of the line. In the window it leaves blanks, as a statement may go on in the next line.
    fn take_command(&mut self) -> Item {
        let begin = self.read;
        let end = self.rest().find('\n').map_or(self.window.len(), |newline| begin + newline);
        let at = self.location(begin);
        let line = self.window[begin..end].trim_end().to_string();
        if self.statement.is_some() {
            let blanks = " ".repeat(end - begin);
            self.window.replace_range(begin..end, &blanks);
        }
        self.read = end;
        Item::Command { line, at }
    }

    fn location(&self, byte: usize) -> Location {
        let before = &self.window[..byte];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Location {
            line: self.first_line + count_lines(before),
            column: before[line_start..].chars().count() as u64 + 1,
        }
    }
}

/// `.tables`, or `quit`, `exit` and `help` alone on the line.
fn is_word_command(rest: &str) -> bool {
    let line = rest.lines().next().unwrap_or_default();
    let dot = line.strip_prefix('.').is_some_and(|name| name.starts_with(|c: char| c.is_ascii_alphabetic()));
    let word = line.trim().trim_end_matches(';').trim_end();
    dot || ["quit", "exit", "help"].iter().any(|known| word.eq_ignore_ascii_case(known))
}

fn count_lines(text: &str) -> u64 {
    text.bytes().filter(|byte| *byte == b'\n').count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every item as `line:column text`.
    fn items(input: &str) -> Vec<String> {
        let mut buffer = Buffer::new();
        let mut items = Vec::new();
        for line in input.split_inclusive('\n') {
            buffer.push_line(line);
            while let Some(item) = buffer.take() {
                items.push(show(item));
            }
        }
        items.extend(buffer.finish().map(show));
        items
    }

    fn show(item: Item) -> String {
        match item {
            Item::Statement { text, at } => format!("{}:{} {text}", at.line, at.column),
            Item::Command { line, at } => format!("{}:{} command {line}", at.line, at.column),
        }
    }

    #[test]
    fn statements_end_at_their_semicolon() {
        assert_eq!(items("SELECT 1; SELECT\n  2 ;;\n;SELECT 3"), ["1:1 SELECT 1", "1:11 SELECT\n  2", "3:2 SELECT 3"]);
    }

    #[test]
    fn quotes_and_comments_hide_what_looks_like_an_end_or_a_command() {
        let input = "SELECT ';\n\\q\n.quit\nquit\n', $$;\n\\q$$ -- ; \\q\n /* ;\n\\q\n*/ ;\nSELECT 2;";
        assert_eq!(items(input), ["1:1 SELECT ';\n\\q\n.quit\nquit\n', $$;\n\\q$$", "10:1 SELECT 2"]);
    }

    #[test]
    fn commands_stand_at_the_start_of_a_line_or_behind_a_statement() {
        assert_eq!(items("help\nSELECT\nhelp\n;"), ["1:1 command help", "2:1 SELECT\nhelp"]);
        let input = "-- first\n\\x on\nSELECT 1; \\timing\n.mode csv  \n  quit ;\nEXIT\n";
        assert_eq!(
            items(input),
            [
                "2:1 command \\x on",
                "3:1 SELECT 1",
                "3:11 command \\timing",
                "4:1 command .mode csv",
                "5:1 command   quit ;",
                "6:1 command EXIT"
            ]
        );
    }

    #[test]
    fn a_dot_or_a_word_inside_a_statement_is_no_command() {
        assert_eq!(items("SELECT 1 +\n.5;\nSELECT\nquit\n;"), ["1:1 SELECT 1 +\n.5", "3:1 SELECT\nquit"]);
        assert_eq!(items(".5;"), ["1:1 .5"]);
    }

    #[test]
    fn a_command_inside_a_statement_leaves_the_statement_alone() {
        assert_eq!(items("SELECT 1,\n\\x é on\n2;"), ["2:1 command \\x é on", "1:1 SELECT 1,\n        \n2"]);
    }

    #[test]
    fn columns_count_characters_and_lines_the_input() {
        assert_eq!(
            items("SELECT 'é日';  SELECT 2;\n\n  SELECT 3;"),
            ["1:1 SELECT 'é日'", "1:15 SELECT 2", "3:3 SELECT 3"]
        );
    }

    #[test]
    fn what_is_left_open_at_the_end_is_handed_over() {
        assert_eq!(items("SELECT 1;\n/* open"), ["1:1 SELECT 1", "2:1 /* open"]);
        assert_eq!(items("SELECT 1 /* open;\nSELECT 2;"), ["1:1 SELECT 1 /* open;\nSELECT 2;"]);
        assert_eq!(items("SELECT 1 -- open;\n"), ["1:1 SELECT 1"]);
        assert_eq!(items("SELECT 'open\n"), ["1:1 SELECT 'open\n"]);
        assert_eq!(items("-- only a comment\n  \n"), Vec::<String>::new());
    }

    #[test]
    fn a_statement_that_has_begun_can_be_taken_or_replaced() {
        let mut buffer = Buffer::new();
        buffer.push_line("SELECT 1\n");
        assert!(buffer.take().is_none());
        buffer.push_line("  , (2 \\g\n");
        assert_eq!(buffer.take().map(show).as_deref(), Some("2:8 command \\g"));
        let at = Location { line: 1, column: 1 };
        assert_eq!(buffer.begun(), Some(("SELECT 1\n  , (2".to_string(), at)));
        assert_eq!(buffer.take_begun(), Some(("SELECT 1\n  , (2".to_string(), at)));
        assert_eq!((buffer.begun(), buffer.pending()), (None, Pending::Empty));
        buffer.replace("SELECT 3; SELECT 4");
        assert_eq!(buffer.take().map(show).as_deref(), Some("1:1 SELECT 3"));
        assert_eq!((buffer.take(), buffer.pending()), (None, Pending::Statement));
    }

    #[test]
    fn the_source_of_an_error_has_the_lines_of_the_input() {
        let mut buffer = Buffer::new();
        for line in ["SELECT 1;\n", "SELECT 2; SELECT\n", "3; SELECT 4\n"] {
            buffer.push_line(line);
            while buffer.take().is_some() {}
        }
        assert_eq!(buffer.source(), "\nSELECT 2; SELECT\n3; SELECT 4\n");
        buffer.push_line("5;\n");
        assert_eq!(buffer.source(), "\n\n3; SELECT 4\n5;\n");
    }
}
