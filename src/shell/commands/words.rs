//! A line with commands → one command and what stands behind it; its arguments → words.
//!
//! Words stand between blanks. `'…'` holds blanks, `''` in it is a quote, and `\n`, `\t` and the like are read as in
//! C; `` `…` `` is what a command of the operating system prints; `:x`, `:'x'` and `:"x"` are variables. `"…"` holds blanks
//! and stays a quoted name, but for commands that begin with a dot, where it is read as `'…'`.

use crate::error::{Error, Result};
use crate::shell::environment::Environment;
use crate::shell::variables::Variables;

/// The first command of a line and the rest, which begins another: a backslash behind a blank, outside of quotes.
/// `whole`: commands that take all of the line.
pub(super) fn cut(line: &str, whole: impl Fn(&str) -> bool) -> (&str, &str) {
    if !line.starts_with('\\') || whole(name(line)) {
        return (line, "");
    }
    let mut quote = None;
    let mut before = '\\';
    for (at, c) in line.char_indices().skip(1) {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if matches!(c, '\'' | '"' | '`') => quote = Some(c),
            None if c == '\\' && before.is_whitespace() => return line.split_at(at),
            None => {}
        }
        before = c;
    }
    (line, "")
}

/// The name that a line begins with: `\d`, `.tables`, `\!`.
pub(super) fn name(line: &str) -> &str {
    if line.starts_with("\\!") {
        return &line[..2];
    }
    let line = line.trim_start();
    let end = line.find(char::is_whitespace).unwrap_or(line.len());
    line[..end].trim_end_matches(';')
}

/// The words of a command's arguments.
///
/// # Errors
/// A quote never ends, or a command in backquotes fails.
pub(super) fn words(text: &str, dotted: bool, variables: &Variables, environment: &Environment) -> Result<Vec<String>> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let mut word = String::new();
        while let Some(c) = rest.chars().next().filter(|c| !c.is_whitespace()) {
            let behind = &rest[c.len_utf8()..];
            rest = match c {
                '\'' => quoted(behind, '\'', true, &mut word)?,
                '"' if dotted => quoted(behind, '"', true, &mut word)?,
                '"' => {
                    word.push('"');
                    let rest = quoted(behind, '"', false, &mut word)?;
                    word.push('"');
                    rest
                }
                '`' => {
                    let mut command = String::new();
                    let rest = quoted(behind, '`', false, &mut command)?;
                    word.push_str(&environment.output(&command)?);
                    rest
                }
                ':' => match variables.reference(behind) {
                    Some((value, length)) => {
                        word.push_str(&value);
                        &behind[length..]
                    }
                    None => {
                        word.push(':');
                        behind
                    }
                },
                c => {
                    word.push(c);
                    behind
                }
            };
        }
        words.push(word);
        rest = rest.trim_start();
    }
    Ok(words)
}

/// Reads to the closing quote; answers what stands behind it.
fn quoted<'a>(text: &'a str, quote: char, escapes: bool, word: &mut String) -> Result<&'a str> {
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if c == quote {
            match chars.peek() {
                Some((_, next)) if *next == quote => {
                    chars.next();
                    word.push(quote);
                    // A name keeps its quotes as they were.
                    if !escapes && quote == '"' {
                        word.push(quote);
                    }
                }
                _ => return Ok(&text[at + 1..]),
            }
        } else if c == '\\' && escapes {
            match chars.next() {
                Some((_, 'n')) => word.push('\n'),
                Some((_, 't')) => word.push('\t'),
                Some((_, 'r')) => word.push('\r'),
                Some((_, '0')) => word.push('\0'),
                Some((_, other @ ('\\' | '\'' | '"'))) => word.push(other),
                Some((_, other)) => word.extend(['\\', other]),
                None => word.push('\\'),
            }
        } else {
            word.push(c);
        }
    }
    Err(Error::invalid(format!("the quote that begins at {quote}{text} never ends")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, dotted: bool) -> Vec<String> {
        let mut variables = Variables::default();
        variables.set("x", "it's").unwrap();
        words(text, dotted, &variables, &Environment::default()).unwrap()
    }

    #[test]
    fn words_stand_between_blanks_and_quotes_hold_them() {
        assert_eq!(read("  a 'b  c' d'e'f '' ", false), ["a", "b  c", "def", ""]);
        assert_eq!(read("'it''s' '\\t\\n' 'a\\zb'", false), ["it's", "\t\n", "a\\zb"]);
        assert_eq!(read("\"A b\" \"c\"\"d\"", false), ["\"A b\"", "\"c\"\"d\""]);
        assert_eq!(read("\"A b\" \"\\t\"", true), ["A b", "\t"]);
    }

    #[test]
    fn variables_and_commands_are_replaced_outside_of_quotes() {
        assert_eq!(
            read(":x :'x' :\"x\" ':x' a:x :no :{?x}", false),
            ["it's", "'it''s'", "\"it's\"", ":x", "ait's", ":no", "TRUE"]
        );
        assert_eq!(read("`echo a b` c", false), ["a b", "c"]);
    }

    #[test]
    fn a_backslash_behind_a_blank_begins_another_command() {
        let none = |_: &str| false;
        assert_eq!(cut("\\x \\g out.csv", none), ("\\x ", "\\g out.csv"));
        assert_eq!(cut("\\echo 'a \\b' c\\d", none), ("\\echo 'a \\b' c\\d", ""));
        assert_eq!(cut("\\! ls \\a", |name| name == "\\!"), ("\\! ls \\a", ""));
        assert_eq!(cut(".print a \\b", none), (".print a \\b", ""));
    }

    #[test]
    fn names_end_at_a_blank() {
        for (line, name_) in
            [("\\d bids", "\\d"), ("\\!ls", "\\!"), ("  quit ;", "quit"), ("quit;", "quit"), (".x", ".x")]
        {
            assert_eq!(name(line), name_, "{line}");
        }
    }
}
