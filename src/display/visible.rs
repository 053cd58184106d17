//! Control characters made visible, so that data can't move the cursor, set a title or break a line.

use std::borrow::Cow;
use std::fmt::Write;

use super::style::is_mark;

/// The text with every control character, line break and direction override shown as an escape: one line, and
/// as wide as it looks.
pub fn visible(text: &str) -> Cow<'_, str> {
    if text.contains(is_unseen) { Cow::Owned(escaped(text, |_| false)) } else { Cow::Borrowed(text) }
}

/// As [`visible`], for text of several lines: newlines and tabs stay.
pub fn visible_lines(text: &str) -> Cow<'_, str> {
    let layout = |c| matches!(c, '\n' | '\t');
    if text.contains(|c| is_unseen(c) && !layout(c)) { Cow::Owned(escaped(text, layout)) } else { Cow::Borrowed(text) }
}

/// C0 and C1 controls, line and paragraph separators, the characters that turn the writing direction of what
/// follows, and those that would colour it here.
fn is_unseen(c: char) -> bool {
    c.is_control()
        || is_mark(c)
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn escaped(text: &str, keep: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            c if keep(c) || !is_unseen(c) => out.push(c),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if (c as u32) < 0x100 => _ = write!(out, "\\x{:02x}", c as u32),
            c => _ = write!(out, "\\u{{{:x}}}", c as u32),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_is_left_alone() {
        assert!(matches!(visible("a日本👩‍👩‍👧e\u{301} \\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn controls_are_shown() {
        assert_eq!(visible("a\nb\tc\rd\0e\x1b[2Jf\x7f\u{9b}"), "a\\nb\\tc\\rd\\x00e\\x1b[2Jf\\x7f\\x9b");
        assert_eq!(visible("x\u{202e}y\u{2028}"), "x\\u{202e}y\\u{2028}");
    }

    #[test]
    fn lines_keep_their_layout_only() {
        assert_eq!(visible_lines("a\n\tb\x1bc\r\n"), "a\n\tb\\x1bc\\r\n");
    }
}
