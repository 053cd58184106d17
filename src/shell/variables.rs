//! Variables of the shell: `\set x 1`, then `:x`, `:'x'`, `:"x"` and `:{?x}` in statements and arguments.
//!
//! A statement's text is replaced by the lexer's rules: never inside strings, quoted names, comments or dollar quotes, and
//! the two colons of a cast are no variable. What is not set stays as it was written.

use std::collections::BTreeMap;

use crate::error::{Error, Location, Result, Span};
use crate::parser::bare_tokens;

/// Variables that psql has and that would do nothing here.
const REFUSED: [&str; 15] = [
    "AUTOCOMMIT",
    "COMP_KEYWORD_CASE",
    "FETCH_COUNT",
    "HIDE_TABLEAM",
    "HISTCONTROL",
    "HISTFILE",
    "HISTSIZE",
    "IGNOREEOF",
    "ON_ERROR_ROLLBACK",
    "PROMPT1",
    "PROMPT2",
    "PROMPT3",
    "SHOW_CONTEXT",
    "SINGLELINE",
    "VERBOSITY",
];

/// The variables that mean something to the shell, and what they take.
pub(super) const SPECIAL: [(&str, &[&str], &str); 4] = [
    ("ON_ERROR_STOP", &["on", "off"], "a script stops at an error, with exit code 3; off: it goes on"),
    ("ECHO", &["none", "all", "queries", "errors"], "what is repeated of the input"),
    ("ECHO_HIDDEN", &["on", "off"], "show the statements that commands stand for"),
    ("QUIET", &["on", "off"], "results and errors only"),
];

/// What the shell sets after each statement.
pub(super) const TOLD: [(&str, &str); 4] = [
    ("ERROR", "whether the last statement failed: true or false"),
    ("ROW_COUNT", "rows that it answered or changed"),
    ("LAST_ERROR_CODE", "of the last statement that failed"),
    ("LAST_ERROR_MESSAGE", "likewise"),
];

/// What the shell sets after `\!`.
pub(super) const TOLD_OF_COMMANDS: [(&str, &str); 2] = [
    ("SHELL_ERROR", "whether the last \\! failed: true or false"),
    ("SHELL_EXIT_CODE", "the exit code of its command"),
];

/// Names and texts.
#[derive(Debug, Default)]
pub(super) struct Variables(BTreeMap<String, String>);

impl Variables {
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Whether a variable is on; `None`: it is not set.
    pub(super) fn is_on(&self, name: &str) -> Option<bool> {
        self.get(name).and_then(truth)
    }

    /// Sets what a user asked for.
    ///
    /// # Errors
    /// No such name can be, or the shell takes other values.
    pub(super) fn set(&mut self, name: &str, value: &str) -> Result<()> {
        if name.is_empty() || !name.chars().all(is_name_part) {
            return Err(Error::invalid(format!("{name:?} is no name of a variable"))
                .help("a name is made of letters, digits and underscores"));
        }
        if REFUSED.contains(&name) {
            return Err(Error::not_yet(format!("the variable {name}")));
        }
        let mut value = value;
        if let Some((_, takes, _)) = SPECIAL.iter().find(|(special, ..)| *special == name) {
            let wanted = match takes.contains(&"on") {
                // As in psql, a variable that is set to nothing is on.
                true if value.is_empty() => Some("on"),
                true => truth(value).map(|on| if on { "on" } else { "off" }),
                false => takes.iter().copied().find(|known| known.eq_ignore_ascii_case(value)),
            };
            let help =
                || Error::invalid(format!("{name} can't be {value:?}")).help(format!("one of {}", takes.join(", ")));
            value = wanted.ok_or_else(help)?;
        }
        self.tell(name, value);
        Ok(())
    }

    /// Sets what the shell has to tell.
    pub(super) fn tell(&mut self, name: &str, value: &str) {
        self.0.insert(name.to_string(), value.to_string());
    }

    pub(super) fn unset(&mut self, name: &str) {
        self.0.remove(name);
    }

    /// The text with its variables replaced; `None`: there are none.
    pub(super) fn substitute(&self, sql: &str) -> Option<String> {
        if self.0.is_empty() || !sql.contains(':') {
            return None;
        }
        let mut out = String::new();
        let mut copied = 0;
        for token in bare_tokens(sql) {
            let colon = &sql[token.clone()] == ":" && !sql[..token.start].ends_with(':');
            if !colon || token.start < copied {
                continue;
            }
            if let Some((value, length)) = self.reference(&sql[token.end..]) {
                out.push_str(&sql[copied..token.start]);
                out.push_str(&value);
                copied = token.end + length;
            }
        }
        (copied > 0).then(|| out + &sql[copied..])
    }

    /// What stands behind a colon: the value of the variable as it is to be written, and the length of its name there.
    pub(super) fn reference(&self, rest: &str) -> Option<(String, usize)> {
        let name = |text: &str| text.find(|c| !is_name_part(c)).unwrap_or(text.len());
        if let Some(asked) = rest.strip_prefix("{?") {
            let length = name(asked);
            let closed = length > 0 && asked[length..].starts_with('}');
            let known = self.get(&asked[..length]).is_some();
            return closed.then(|| (if known { "TRUE" } else { "FALSE" }.to_string(), length + 3));
        }
        if let Some(quote) = rest.chars().next().filter(|c| matches!(c, '\'' | '"')) {
            let length = name(&rest[1..]);
            let value = self.get(&rest[1..=length]).filter(|_| length > 0 && rest[length + 1..].starts_with(quote))?;
            return Some((quoted(value, quote), length + 2));
        }
        let length = name(rest);
        let value = self.get(&rest[..length]).filter(|_| length > 0)?;
        Some((value.to_string(), length))
    }
}

/// The sql with `$1`, `$2` … replaced by texts.
///
/// `start` is where it begins.
///
/// # Errors
/// There are fewer texts.
pub(super) fn bind(sql: &str, texts: &[String], start: Location) -> Result<String> {
    let mut out = String::new();
    let mut copied = 0;
    for token in bare_tokens(sql) {
        let Some(number) = sql[token.clone()].strip_prefix('$').and_then(|digits| digits.parse::<usize>().ok()) else {
            continue;
        };
        let Some(text) = number.checked_sub(1).and_then(|at| texts.get(at)) else {
            let place = Span { start: start.behind(&sql[..token.start]), end: start.behind(&sql[..token.end]) };
            let error = Error::invalid_at(place, format!("${number} has no value: \\bind gave {}", texts.len()));
            return Err(error.help("\\bind wants a value for each of $1, $2 …"));
        };
        out.push_str(&sql[copied..token.start]);
        out.push_str(&quoted(text, '\''));
        copied = token.end;
    }
    Ok(out + &sql[copied..])
}

/// A text between quotes.
pub(super) fn quoted(text: &str, quote: char) -> String {
    format!("{quote}{}{quote}", text.replace(quote, &format!("{quote}{quote}")))
}

/// What counts as on and as off, as far as it was written: `t`, `yes`, `of`.
pub(super) fn truth(text: &str) -> Option<bool> {
    let text = text.to_ascii_lowercase();
    let is = |word: &str, least: usize| text.len() >= least && word.starts_with(&text);
    match text.as_str() {
        "1" => Some(true),
        "0" => Some(false),
        _ if is("true", 1) || is("yes", 1) || is("on", 2) => Some(true),
        _ if is("false", 1) || is("no", 1) || is("off", 2) => Some(false),
        _ => None,
    }
}

fn is_name_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables() -> Variables {
        let mut variables = Variables::default();
        variables.set("x", "it's").unwrap();
        variables.set("n", "42").unwrap();
        variables
    }

    #[test]
    fn a_variable_is_replaced_in_its_three_forms() {
        for (sql, replaced) in [
            ("SELECT :n", "SELECT 42"),
            ("SELECT :n+:n::TEXT, :'x'", "SELECT 42+42::TEXT, 'it''s'"),
            ("SELECT :\"x\" FROM t WHERE a=:n;", "SELECT \"it's\" FROM t WHERE a=42;"),
            ("SELECT :{?n} AND :{?no}", "SELECT TRUE AND FALSE"),
        ] {
            assert_eq!(variables().substitute(sql).unwrap(), replaced, "{sql}");
        }
    }

    #[test]
    fn nothing_is_replaced_where_the_lexer_sees_no_variable() {
        for sql in [
            "SELECT ':n', \":n\", $$:n$$, $a$:n$a$, E'\\':n' -- :n\n /* :n */",
            "SELECT a::n, b::n[1]",
            "SELECT :no, :'no', :\"no\", :'x",
            "SELECT {a: 1}, a[1:2]",
            "SELECT 1",
        ] {
            assert_eq!(variables().substitute(sql), None, "{sql}");
        }
    }

    #[test]
    fn names_and_special_values_are_checked() {
        let mut variables = Variables::default();
        for (name, value, message) in [
            ("a b", "1", "\"a b\" is no name of a variable"),
            ("", "1", "\"\" is no name of a variable"),
            ("ON_ERROR_STOP", "maybe", "ON_ERROR_STOP can't be \"maybe\""),
            ("ECHO", "some", "ECHO can't be \"some\""),
            ("PROMPT1", "%", "not supported yet: the variable PROMPT1"),
        ] {
            assert_eq!(variables.set(name, value).unwrap_err().to_string(), message);
        }
        variables.set("ON_ERROR_STOP", "1").unwrap();
        assert_eq!((variables.get("ON_ERROR_STOP"), variables.is_on("ON_ERROR_STOP")), (Some("on"), Some(true)));
        variables.unset("ON_ERROR_STOP");
        assert_eq!(variables.is_on("ON_ERROR_STOP"), None);
    }

    #[test]
    fn values_are_bound_to_their_numbers() {
        let (texts, start) = (["a'b".to_string(), "2".to_string()], Location { line: 1, column: 1 });
        assert_eq!(
            bind("SELECT $2, $1, '$1', a$1 -- $1", &texts, start).unwrap(),
            "SELECT '2', 'a''b', '$1', a$1 -- $1"
        );
        assert_eq!(bind("SELECT $3", &texts, start).unwrap_err().to_string(), "$3 has no value: \\bind gave 2");
        assert_eq!(bind("SELECT $$1$$", &[], start).unwrap(), "SELECT $$1$$");
    }

    #[test]
    fn truth_is_what_psql_takes() {
        for (text, value) in
            [("on", Some(true)), ("T", Some(true)), ("of", Some(false)), ("0", Some(false)), ("o", None), ("", None)]
        {
            assert_eq!(truth(text), value, "{text}");
        }
    }
}
