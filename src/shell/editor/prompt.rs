//! The prompt: which queries run, whether one has failed, whether what is typed is run, and what an unfinished statement is
//! waiting for.

use crate::parser::Pending;

/// What the prompt tells of the shell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::shell) struct Told {
    pub(in crate::shell) running: usize,
    pub(in crate::shell) failed: bool,
    /// What is typed stands in a branch that is not run.
    pub(in crate::shell) skips: bool,
}

/// How it may be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::shell) struct Look {
    pub(in crate::shell) colours: bool,
    pub(in crate::shell) unicode: bool,
}

/// The prompt without colours, and with them; both are equally wide. Of a statement that has begun it is as wide as that of
/// an empty line.
pub(in crate::shell) fn prompt(pending: Pending, told: Told, look: Look) -> (String, String) {
    let (running, failed) = if look.unicode { ("●", "✗") } else { ("*", "!") };
    let mut marks = Vec::new();
    if told.running > 0 {
        marks.push((GREEN, format!("{running}{}", told.running)));
    }
    if told.failed {
        marks.push((RED, failed.to_string()));
    }
    if told.skips {
        marks.push((YELLOW, "@".to_string()));
    }
    let plain: String = marks.iter().map(|(_, mark)| format!(" {mark}")).collect();
    let raw = format!("levada{plain}> ");
    let (raw, styled) = match sign(pending) {
        None => {
            let marks: String = marks.iter().map(|(colour, mark)| format!(" {colour}{mark}{RESET}")).collect();
            (raw, format!("levada{marks}> "))
        }
        Some(sign) => {
            let blanks = " ".repeat(raw.chars().count().saturating_sub(sign.len() + 2));
            (format!("{blanks}{sign}> "), format!("{blanks}{YELLOW}{sign}>{RESET} "))
        }
    };
    let styled = if look.colours { styled } else { raw.clone() };
    (raw, styled)
}

const GREEN: &str = "\x1b[32m";
const RED: &str = "\x1b[31m";
const YELLOW: &str = "\x1b[33m";
const RESET: &str = "\x1b[0m";

/// What stands before the `>`.
fn sign(pending: Pending) -> Option<&'static str> {
    Some(match pending {
        Pending::Empty | Pending::Complete { .. } => return None,
        Pending::Statement => "-",
        Pending::Quote('"') => "\"",
        Pending::Quote('`') => "`",
        Pending::Quote(_) => "'",
        Pending::Comment => "/*",
        Pending::Parenthesis => "(",
        Pending::Dollar => "$",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parser::pending;

    const PLAIN: Look = Look { colours: false, unicode: true };

    fn raw(text: &str, running: usize, failed: bool) -> String {
        prompt(pending(text), Told { running, failed, skips: false }, PLAIN).0
    }

    #[test]
    fn it_says_what_is_missing() {
        for (text, expected) in [
            ("", "levada> "),
            ("SELECT 1", "     -> "),
            ("SELECT 'a", "     '> "),
            ("SELECT \"a", "     \"> "),
            ("SELECT `a", "     `> "),
            ("SELECT (1", "     (> "),
            ("/* a", "    /*> "),
            ("$x$", "     $> "),
        ] {
            assert_eq!(raw(text, 0, false), expected, "{text}");
        }
    }

    #[test]
    fn it_says_what_queries_do() {
        assert_eq!(raw("", 2, false), "levada ●2> ");
        assert_eq!(raw("", 0, true), "levada ✗> ");
        assert_eq!(raw("", 12, true), "levada ●12 ✗> ");
        assert_eq!(raw("SELECT", 2, true), "          -> ");
        let ascii = Look { colours: false, unicode: false };
        assert_eq!(prompt(Pending::Empty, Told { running: 2, failed: true, skips: true }, ascii).0, "levada *2 ! @> ");
    }

    #[test]
    fn every_prompt_is_as_wide_as_the_first_in_colour_too() {
        let colours = Look { colours: true, unicode: true };
        for text in ["", "SELECT", "SELECT '", "SELECT \"", "SELECT `", "(", "/*", "$$"] {
            for told in [
                Told::default(),
                Told { running: 3, ..Told::default() },
                Told { running: 10, failed: true, skips: true },
            ] {
                let (raw, styled) = prompt(pending(text), told, colours);
                let first = prompt(Pending::Empty, told, PLAIN).0;
                assert_eq!(raw.chars().count(), first.chars().count(), "{text}");
                assert_eq!(super::super::paint::without_colours(&styled), raw, "{text}");
            }
        }
    }
}
