//! Lines → bytes for the terminal: only what has changed, in one piece.
//!
//! 1. A line that is as it was costs nothing; one that has changed is written over, and the rest of its row erased behind
//!    it. Nothing is cleared before it is drawn.
//! 2. The bytes of a frame are one write, between the marks by which terminals that know them show it at once.
//! 3. On the whole screen lines have fixed places. Inline they stand below what was there before; when the terminal
//!    changes its size the old ones are left alone, for nobody knows where the terminal has put them.

use std::fmt::Write;

use super::frame::Size;
use super::line::{Line, Look};

const BEGIN: &str = "\x1b[?2026h";
const END: &str = "\x1b[?2026l";

/// What the terminal shows, and how to bring it to show something else.
#[derive(Debug)]
pub(super) struct Painter {
    shown: Vec<String>,
    /// Inline: rows that the frame takes, the cursor being in the last of them.
    drawn: usize,
    size: Size,
    whole_screen: bool,
    colour: bool,
    unicode: bool,
}

impl Painter {
    pub(super) fn new(size: Size, whole_screen: bool, colour: bool, unicode: bool) -> Self {
        Painter { shown: Vec::new(), drawn: 0, size, whole_screen, colour, unicode }
    }

    pub(super) fn is_whole_screen(&self) -> bool {
        self.whole_screen
    }

    /// Before the first frame.
    pub(super) fn enter(&self) -> String {
        let mut out = "\x1b[?25l".to_string();
        if self.whole_screen {
            out += "\x1b[?1049h\x1b[2J\x1b[H";
        }
        out
    }

    /// What was there before the first frame comes back. The cursor is where text may go on.
    pub(super) fn leave(&mut self) -> String {
        let mut out = String::new();
        if self.whole_screen {
            out += "\x1b[?1049l";
        } else if self.drawn > 0 {
            out += &self.to_top();
            out += "\x1b[J";
        }
        self.forget();
        out + "\x1b[?25h"
    }

    /// Goes over to the whole screen or back.
    pub(super) fn turn(&mut self) -> String {
        let leave = self.leave();
        self.whole_screen = !self.whole_screen;
        leave + &self.enter()
    }

    /// The terminal has another size.
    pub(super) fn resize(&mut self, size: Size) -> String {
        self.size = size;
        let out = match (self.whole_screen, self.drawn) {
            (true, _) => "\x1b[2J".to_string(),
            (false, 0) => String::new(),
            (false, _) => {
                let sign = if self.unicode { "─ resized ─" } else { "- resized -" };
                format!(
                    "\r\n{}\x1b[K\r\n",
                    Line::of(Look::Dim, sign).fit(size.columns.saturating_sub(1)).ansi(self.colour)
                )
            }
        };
        self.forget();
        out
    }

    /// Nothing is known of what the terminal shows: the next frame is drawn whole.
    pub(super) fn forget(&mut self) {
        self.shown.clear();
        self.drawn = 0;
    }

    /// The bytes that show these lines; none where they are shown already.
    pub(super) fn paint(&mut self, lines: &[Line]) -> String {
        let lines: Vec<String> = lines.iter().take(self.size.rows).map(|line| line.ansi(self.colour)).collect();
        if lines == self.shown {
            return String::new();
        }
        let frame = if self.whole_screen { self.place(&lines) } else { self.flow(&lines) };
        self.shown = lines;
        format!("{BEGIN}{frame}{END}")
    }

    fn place(&self, lines: &[String]) -> String {
        let mut out = String::new();
        for row in 0..lines.len().max(self.shown.len()) {
            let line = lines.get(row).map_or("", String::as_str);
            if self.shown.get(row).is_none_or(|shown| shown != line) {
                _ = write!(out, "\x1b[{};1H{line}\x1b[K", row + 1);
            }
        }
        out
    }

    fn flow(&mut self, lines: &[String]) -> String {
        let mut out = self.to_top();
        for (row, line) in lines.iter().enumerate() {
            if row > 0 {
                out += "\r\n";
            }
            if row >= self.drawn || self.shown.get(row) != Some(line) {
                out += line;
                out += "\x1b[K";
            }
        }
        if lines.len() < self.drawn {
            // The cursor stands in the last line that is left; what is below it goes.
            _ = write!(out, "\x1b[{}C\x1b[J", self.size.columns);
        }
        out += "\r";
        self.drawn = lines.len();
        out
    }

    fn to_top(&self) -> String {
        match self.drawn {
            0 | 1 => "\r".to_string(),
            rows => format!("\r\x1b[{}A", rows - 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Terminal {
        parser: vt100::Parser,
        painter: Painter,
    }

    fn cells(count: u16) -> std::num::NonZeroU16 {
        std::num::NonZeroU16::new(count).unwrap()
    }

    impl Terminal {
        fn new(columns: u16, rows: u16, whole_screen: bool) -> Self {
            let size = Size { columns: usize::from(columns), rows: usize::from(rows) };
            let painter = Painter::new(size, whole_screen, true, true);
            let mut parser = vt100::Parser::new(cells(rows), cells(columns), 1000);
            parser.process(painter.enter().as_bytes());
            Terminal { parser, painter }
        }

        /// Paints and answers how many bytes that took.
        fn paint(&mut self, lines: &[&str]) -> usize {
            let lines: Vec<Line> = lines.iter().map(|line| Line::of(Look::Plain, *line)).collect();
            let bytes = self.painter.paint(&lines);
            self.parser.process(bytes.as_bytes());
            bytes.len()
        }

        fn resize(&mut self, columns: u16, rows: u16) {
            self.parser.screen_mut().set_size(cells(rows), cells(columns));
            let size = Size { columns: usize::from(columns), rows: usize::from(rows) };
            let bytes = self.painter.resize(size);
            self.parser.process(bytes.as_bytes());
        }

        fn leave(&mut self) {
            let bytes = self.painter.leave();
            self.parser.process(bytes.as_bytes());
        }

        fn screen(&self) -> String {
            let contents = self.parser.screen().contents();
            contents.lines().map(str::trim_end).collect::<Vec<_>>().join("\n").trim_end().to_string()
        }
    }

    #[test]
    fn only_lines_that_changed_are_written() {
        for whole_screen in [true, false] {
            let mut terminal = Terminal::new(30, 10, whole_screen);
            let rows: Vec<String> = (0..8).map(|n| format!("row {n} of a long table")).collect();
            let mut lines: Vec<&str> = rows.iter().map(String::as_str).collect();
            let first = terminal.paint(&lines);
            assert_eq!(terminal.screen(), rows.join("\n"));
            assert_eq!(terminal.paint(&lines), 0, "nothing has changed");
            lines[3] = "short";
            let second = terminal.paint(&lines);
            assert_eq!(terminal.screen().lines().nth(3), Some("short"), "the rest of the old line is gone");
            assert_eq!(terminal.screen().lines().count(), 8);
            assert!(second < first / 2, "{second} of {first}");
            assert!(terminal.parser.screen().hide_cursor());
        }
    }

    #[test]
    fn fewer_lines_leave_nothing_behind() {
        for whole_screen in [true, false] {
            let mut terminal = Terminal::new(30, 10, whole_screen);
            terminal.paint(&["a", "bb", "ccc", "dddd"]);
            terminal.paint(&["a", "x"]);
            assert_eq!(terminal.screen(), "a\nx");
            terminal.paint(&["a", "x", "y"]);
            assert_eq!(terminal.screen(), "a\nx\ny");
            terminal.paint(&["b"]);
            assert_eq!(terminal.screen(), "b");
        }
    }

    #[test]
    fn leaving_brings_back_what_was_there() {
        for whole_screen in [true, false] {
            let mut terminal = Terminal::new(30, 6, whole_screen);
            terminal.leave();
            terminal.parser.process(b"levada> WATCH q;\r\n");
            let bytes = terminal.painter.enter();
            terminal.parser.process(bytes.as_bytes());
            terminal.paint(&["one", "two", "three"]);
            terminal.leave();
            terminal.parser.process(b"last table\r\n");
            assert_eq!(terminal.screen(), "levada> WATCH q;\nlast table");
            assert!(!terminal.parser.screen().hide_cursor());
            assert!(!terminal.parser.screen().alternate_screen());
        }
    }

    #[test]
    fn a_frame_inline_that_grows_scrolls_what_is_above() {
        let mut terminal = Terminal::new(20, 5, false);
        terminal.parser.process(b"before 1\r\nbefore 2\r\nbefore 3\r\n");
        terminal.paint(&["a", "b"]);
        terminal.paint(&["a", "b", "c", "d"]);
        assert_eq!(terminal.screen(), "before 3\na\nb\nc\nd");
        terminal.paint(&["A", "b", "c", "D"]);
        assert_eq!(terminal.screen(), "before 3\nA\nb\nc\nD");
        terminal.leave();
        assert_eq!(terminal.screen(), "before 3");
    }

    #[test]
    fn another_size_is_drawn_whole() {
        let mut terminal = Terminal::new(30, 6, true);
        terminal.paint(&["0123456789012345678", "two"]);
        terminal.resize(12, 6);
        terminal.paint(&["012345678", "two"]);
        assert_eq!(terminal.screen(), "012345678\ntwo");
        let mut terminal = Terminal::new(30, 8, false);
        terminal.paint(&["one", "two"]);
        terminal.resize(40, 8);
        terminal.paint(&["ONE", "TWO"]);
        assert_eq!(terminal.screen(), "one\ntwo\n─ resized ─\nONE\nTWO");
    }

    #[test]
    fn from_inline_to_the_whole_screen_and_back() {
        let mut terminal = Terminal::new(30, 6, false);
        terminal.parser.process(b"before\r\n");
        terminal.paint(&["one", "two"]);
        let bytes = terminal.painter.turn();
        terminal.parser.process(bytes.as_bytes());
        assert!(terminal.parser.screen().alternate_screen());
        terminal.paint(&["one", "two"]);
        assert_eq!(terminal.screen(), "one\ntwo");
        let bytes = terminal.painter.turn();
        terminal.parser.process(bytes.as_bytes());
        terminal.paint(&["one", "two"]);
        assert_eq!(terminal.screen(), "before\none\ntwo");
    }

    #[test]
    fn a_tiny_terminal_shows_what_it_can() {
        for whole_screen in [true, false] {
            let mut terminal = Terminal::new(1, 3, whole_screen);
            terminal.paint(&["", "", "", "", ""]);
            assert_eq!(terminal.screen(), "");
            terminal.leave();
        }
    }
}
