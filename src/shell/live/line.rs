//! A line of the screen: pieces of text and how each looks.

use std::fmt::Write;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// How a piece of text looks. Nothing is said by a look alone: marks say it too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    Plain,
    Dim,
    Bold,
    /// A name of a column.
    Title,
    /// It has grown, or is new.
    Up,
    /// It has shrunk.
    Down,
    /// It has changed.
    Changed,
    /// Something is wrong.
    Alert,
    /// It was taken away.
    Gone,
}

impl Look {
    fn codes(self) -> &'static str {
        match self {
            Look::Plain => "",
            Look::Dim => "2",
            Look::Bold => "1",
            Look::Title => "1;4",
            Look::Up => "1;32",
            Look::Down => "1;31",
            Look::Changed => "1;33",
            Look::Alert => "1;31",
            Look::Gone => "2;9",
        }
    }
}

/// A line. What is in it holds no control characters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Line {
    pieces: Vec<(Look, String)>,
    /// It is the one that keys act on.
    pub(super) chosen: bool,
}

impl Line {
    pub(super) fn of(look: Look, text: impl Into<String>) -> Self {
        Line { pieces: vec![(look, text.into())], chosen: false }
    }

    pub(super) fn push(&mut self, look: Look, text: impl Into<String>) {
        self.pieces.push((look, text.into()));
    }

    pub(super) fn width(&self) -> usize {
        self.pieces.iter().map(|(_, text)| text.width()).sum()
    }

    /// Puts `right` at the end of a line of so many columns, where there is room for it.
    pub(super) fn push_right(&mut self, look: Look, right: &str, columns: usize) {
        let used = self.width() + right.width();
        if used + 2 <= columns {
            self.push(Look::Plain, " ".repeat(columns - used));
            self.push(look, right);
        }
    }

    /// Cuts what is wider than so many columns.
    pub(super) fn fit(mut self, columns: usize) -> Self {
        if self.width() > columns {
            // Blanks are no loss.
            self = self.trimmed();
        }
        let mut left = columns;
        let mut kept = Vec::with_capacity(self.pieces.len());
        let over = self.width() > columns;
        for (look, text) in self.pieces {
            let wide = text.width();
            if over && wide >= left {
                kept.push((look, clip(&text, left, true)));
                break;
            }
            left -= wide;
            kept.push((look, text));
        }
        self.pieces = kept;
        self
    }

    /// Without blanks at its end, for text that stays.
    pub(super) fn trimmed(mut self) -> Self {
        while let Some((look, text)) = self.pieces.pop() {
            let end = text.trim_end();
            if !end.is_empty() {
                self.pieces.push((look, end.to_string()));
                break;
            }
        }
        self
    }

    /// As it is read, without blanks at the end.
    pub(super) fn text(&self) -> String {
        let text: String = self.pieces.iter().map(|(_, text)| text.as_str()).collect();
        text.trim_end().to_string()
    }

    /// With escape sequences for its looks, where colour is wanted. The chosen line is told by them in any case.
    pub(super) fn ansi(&self, colour: bool) -> String {
        let mut out = String::new();
        for (look, text) in &self.pieces {
            let look = if colour { look.codes() } else { "" };
            let codes = match (self.chosen, look.is_empty()) {
                (false, _) => look.to_string(),
                (true, true) => "7".to_string(),
                (true, false) => format!("7;{look}"),
            };
            match codes.as_str() {
                "" => out.push_str(text),
                codes => _ = write!(out, "\x1b[{codes}m{text}\x1b[0m"),
            }
        }
        out
    }
}

/// The text in so many columns; `…` stands for what is cut, never a part of a character. `sure`: something is cut even
/// where this text would fit.
pub(in crate::shell) fn clip(text: &str, columns: usize, sure: bool) -> String {
    if text.width() <= columns && !(sure && text.width() == columns) {
        return text.to_string();
    }
    if columns == 0 {
        return String::new();
    }
    let mut out = String::new();
    let mut used = 0;
    for cluster in text.graphemes(true) {
        let wide = cluster.width();
        if used + wide + 1 > columns {
            break;
        }
        used += wide;
        out.push_str(cluster);
    }
    out.push('…');
    out
}

/// The text between blanks, so wide.
pub(super) fn padded(text: &str, columns: usize, right: bool) -> String {
    let gap = " ".repeat(columns.saturating_sub(text.width()));
    if right { gap + text } else { text.to_string() + &gap }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_is_never_cut_in_two() {
        for (text, columns, clipped) in [
            ("abc", 3, "abc"),
            ("abcd", 3, "ab…"),
            ("日本語", 5, "日本…"),
            ("日本語", 4, "日…"),
            ("a👩‍👩‍👧b", 3, "a…"),
            ("e\u{301}e\u{301}e\u{301}", 2, "e\u{301}…"),
            ("abc", 1, "…"),
            ("abc", 0, ""),
        ] {
            assert_eq!(clip(text, columns, false), clipped, "{text} in {columns}");
        }
    }

    #[test]
    fn a_line_is_cut_where_it_ends() {
        let mut line = Line::of(Look::Bold, "ab");
        line.push(Look::Dim, "日本語");
        assert_eq!(line.clone().fit(8).text(), "ab日本語");
        let mut blank = line.clone();
        blank.push(Look::Title, "  ");
        blank.push(Look::Plain, "");
        assert_eq!(blank.trimmed(), line);
        for columns in 0..8 {
            let cut = line.clone().fit(columns);
            assert!(cut.width() <= columns, "{columns}: {cut:?}");
            assert!(columns == 0 || cut.text().ends_with('…'), "{columns}: {cut:?}");
        }
    }

    #[test]
    fn looks_are_escape_sequences_only_where_colour_is_wanted() {
        let mut line = Line::of(Look::Up, "7");
        line.push(Look::Plain, " a");
        assert_eq!(line.ansi(true), "\x1b[1;32m7\x1b[0m a");
        assert_eq!(line.ansi(false), "7 a");
        line.chosen = true;
        assert_eq!(line.ansi(false), "\x1b[7m7\x1b[0m\x1b[7m a\x1b[0m");
    }

    #[test]
    fn what_stands_at_the_right_leaves_first() {
        let mut line = Line::of(Look::Plain, "abc");
        line.push_right(Look::Dim, "q quit", 12);
        assert_eq!(line.text(), "abc   q quit");
        let mut line = Line::of(Look::Plain, "abc");
        line.push_right(Look::Dim, "q quit", 10);
        assert_eq!(line.text(), "abc");
    }
}
