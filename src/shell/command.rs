//! The shell's own commands: their names in both alphabets, and how a line is read as one.
//!
//! psql's begin with a backslash, those of DuckDB and SQLite with a dot. Nothing here runs a command.

use std::fmt::Write;

use crate::display::Format;
use crate::error::{Error, Result, closest};

/// A command, read.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Command {
    /// With the exit code that was asked for.
    Quit(Option<u8>),
    Help,
    /// Everything there is, or one thing.
    Describe(Option<String>),
    /// `beside`: a relative path starts at the file that says it, not at the working directory.
    Include {
        file: String,
        beside: bool,
    },
    /// `None` turns it over.
    Timing(Option<bool>),
    Expanded(Option<Expanded>),
    /// `None` shows the print options.
    Format(Option<Format>),
    Echo {
        text: String,
        newline: bool,
    },
    /// `None` ends it.
    Record(Option<String>),
}

/// When a table is written one column a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expanded {
    On,
    Off,
    /// When it is wider than the terminal.
    Auto,
}

impl Expanded {
    pub(super) fn name(self) -> &'static str {
        match self {
            Expanded::On => "on",
            Expanded::Off => "off",
            Expanded::Auto => "auto",
        }
    }
}

/// One command as help lists it: the two spellings of its name, its arguments, what it does.
struct Entry {
    names: &'static [&'static str],
    arguments: &'static str,
    help: &'static str,
}

const COMMANDS: [Entry; 10] = [
    Entry {
        names: &["\\q", ".quit", ".exit"],
        arguments: "[CODE]",
        help: "leave; running queries are stopped gracefully",
    },
    Entry { names: &["\\?", ".help"], arguments: "", help: "this list" },
    Entry {
        names: &["\\d", ".tables", ".schema"],
        arguments: "[NAME]",
        help: "list streams, tables, views, sinks and queries, or describe one",
    },
    Entry { names: &["\\i", ".read"], arguments: "FILE", help: "run a file" },
    Entry { names: &["\\ir"], arguments: "FILE", help: "run a file, found from where this script is" },
    Entry { names: &["\\timing", ".timer"], arguments: "[on|off]", help: "show how long each statement took" },
    Entry { names: &["\\x"], arguments: "[on|off|auto]", help: "one column a line" },
    Entry {
        names: &["\\pset format", ".mode"],
        arguments: "[FORMAT]",
        help: "how results are written: table, csv, tsv, json, jsonlines, markdown, vertical",
    },
    Entry { names: &["\\echo", ".print"], arguments: "[-n] TEXT", help: "write a text" },
    Entry {
        names: &["\\record", ".record"],
        arguments: "[FILE.slt]",
        help: "write what is typed and answered from here on as a test; without a file, end that",
    },
];

/// Commands of the language that this build refuses.
const LATER: [&str; 40] = [
    "\\dt",
    "\\ds",
    "\\dv",
    "\\df",
    "\\dn",
    "\\l",
    "\\h",
    "\\a",
    "\\t",
    "\\f",
    "\\H",
    "\\C",
    "\\g",
    "\\gx",
    "\\G",
    "\\o",
    "\\e",
    "\\p",
    "\\r",
    "\\w",
    "\\s",
    "\\set",
    "\\unset",
    "\\gset",
    "\\gexec",
    "\\gdesc",
    "\\bind",
    "\\if",
    "\\watch",
    "\\qecho",
    "\\warn",
    "\\errverbose",
    "\\!",
    "\\cd",
    ".headers",
    ".nullvalue",
    ".output",
    ".once",
    ".bail",
    ".show",
];

/// Reads a line that begins with a backslash or a dot, or is `quit`, `exit` or `help`.
///
/// # Errors
/// A name that is unknown, with the closest known one, or not built yet; a wrong or missing argument.
pub(super) fn parse(line: &str) -> Result<Command> {
    let line = line.trim().trim_end_matches(';').trim_end();
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let words = words(rest)?;
    let one = |usage| at_most_one(name, &words, usage);
    Ok(match name {
        "\\q" | ".quit" | ".exit" => Command::Quit(exit_code(name, one("[CODE]")?)?),
        _ if name.eq_ignore_ascii_case("quit") || name.eq_ignore_ascii_case("exit") => Command::Quit(None),
        "\\?" | ".help" => Command::Help,
        _ if name.eq_ignore_ascii_case("help") => Command::Help,
        "\\d" | ".tables" => Command::Describe(one("[NAME]")?),
        ".schema" => Command::Describe(Some(required(name, one("NAME")?, "NAME")?)),
        "\\i" | ".read" | "\\ir" => {
            Command::Include { file: required(name, one("FILE")?, "FILE")?, beside: name == "\\ir" }
        }
        "\\timing" | ".timer" => Command::Timing(switch(name, one("[on|off]")?)?),
        "\\x" => Command::Expanded(expanded(one("[on|off|auto]")?)?),
        ".mode" => Command::Format(one("[FORMAT]")?.map(|format| format.parse()).transpose()?),
        "\\pset" => pset(&words)?,
        "\\echo" | ".print" => echo(&words),
        "\\record" | ".record" => Command::Record(one("[FILE.slt]")?),
        _ => return Err(unknown(name)),
    })
}

/// What `\?` prints.
pub(super) fn help() -> String {
    let mut text = String::from("A statement ends with ; and may span lines.\n\n");
    for entry in &COMMANDS {
        let head = format!("{} {}", entry.names.join(" "), entry.arguments);
        _ = writeln!(text, "  {head:<34} {}", entry.help);
    }
    text
}

/// Words between blanks; `'…'` holds blanks, and `''` in it a quote.
fn words(text: &str) -> Result<Vec<String>> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let mut word = String::new();
        while let Some(c) = rest.chars().next().filter(|c| !c.is_whitespace()) {
            rest = &rest[c.len_utf8()..];
            if c != '\'' {
                word.push(c);
                continue;
            }
            loop {
                let Some(end) = rest.find('\'') else {
                    return Err(Error::invalid(format!("the quote that begins at '{rest} never ends")));
                };
                word.push_str(&rest[..end]);
                rest = &rest[end + 1..];
                match rest.strip_prefix('\'') {
                    Some(behind) => (rest, _) = (behind, word.push('\'')),
                    None => break,
                }
            }
        }
        words.push(word);
        rest = rest.trim_start();
    }
    Ok(words)
}

fn at_most_one(name: &str, words: &[String], usage: &str) -> Result<Option<String>> {
    match words {
        [] => Ok(None),
        [word] => Ok(Some(word.clone())),
        _ => Err(usage_error(name, usage)),
    }
}

fn required(name: &str, word: Option<String>, usage: &str) -> Result<String> {
    word.ok_or_else(|| usage_error(name, usage))
}

fn usage_error(name: &str, usage: &str) -> Error {
    Error::invalid(format!("{name} is written {name} {usage}"))
}

fn exit_code(name: &str, word: Option<String>) -> Result<Option<u8>> {
    let code = |word: String| {
        word.parse().map_err(|_| Error::invalid(format!("{name}: {word:?} is no exit code, which is 0 to 255")))
    };
    word.map(code).transpose()
}

fn switch(name: &str, word: Option<String>) -> Result<Option<bool>> {
    match word.as_deref() {
        None => Ok(None),
        Some("on" | "true" | "1") => Ok(Some(true)),
        Some("off" | "false" | "0") => Ok(Some(false)),
        Some(other) => Err(Error::invalid(format!("{name}: {other:?} is neither on nor off"))),
    }
}

fn expanded(word: Option<String>) -> Result<Option<Expanded>> {
    match word.as_deref() {
        Some("auto") => Ok(Some(Expanded::Auto)),
        _ => Ok(switch("\\x", word)?.map(|on| if on { Expanded::On } else { Expanded::Off })),
    }
}

fn pset(words: &[String]) -> Result<Command> {
    match words {
        [] => Ok(Command::Format(None)),
        [option] if option == "format" => Ok(Command::Format(None)),
        [option, format] if option == "format" => Ok(Command::Format(Some(format.parse()?))),
        [option, ..] if option == "format" => Err(usage_error("\\pset", "format FORMAT")),
        [option, ..] => Err(Error::not_yet(format!("\\pset {option}")).help("\\pset format FORMAT is there")),
    }
}

fn echo(words: &[String]) -> Command {
    match words {
        [first, rest @ ..] if first == "-n" => Command::Echo { text: rest.join(" "), newline: false },
        words => Command::Echo { text: words.join(" "), newline: true },
    }
}

fn unknown(name: &str) -> Error {
    if LATER.contains(&name) {
        return Error::not_yet(format!("the command {name}")).help("\\? lists what there is");
    }
    // `\pset format` is known by its first word.
    let known = COMMANDS.iter().flat_map(|entry| entry.names).map(|name| name.split(' ').next().unwrap_or(name));
    let error = Error::invalid(format!("there is no command {name}"));
    // Of another alphabet's name only the first character is wrong.
    let twin = |known: &&str| known.get(1..) == name.get(1..) && name.len() > 1;
    match known.clone().find(twin).or_else(|| closest(name, known)) {
        Some(known) => error.help(format!("did you mean {known}? \\? lists all commands")),
        None => error.help("\\? lists all commands"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_alphabets_say_the_same() {
        for (line, command) in [
            ("\\q", Command::Quit(None)),
            (".exit 3", Command::Quit(Some(3))),
            ("quit;", Command::Quit(None)),
            ("Help", Command::Help),
            ("\\d", Command::Describe(None)),
            (".tables", Command::Describe(None)),
            ("\\d bids;", Command::Describe(Some("bids".into()))),
            (".schema bids", Command::Describe(Some("bids".into()))),
            ("\\i 'my file.sql'", Command::Include { file: "my file.sql".into(), beside: false }),
            ("\\ir 'it''s'.sql", Command::Include { file: "it's.sql".into(), beside: true }),
            ("\\timing", Command::Timing(None)),
            (".timer off", Command::Timing(Some(false))),
            ("\\x auto", Command::Expanded(Some(Expanded::Auto))),
            ("\\pset format csv", Command::Format(Some(Format::Csv))),
            (".mode jsonl", Command::Format(Some(Format::JsonLines))),
            ("\\echo -n it is 'so  it''s'", Command::Echo { text: "it is so  it's".into(), newline: false }),
            (".print", Command::Echo { text: String::new(), newline: true }),
        ] {
            assert_eq!(parse(line).unwrap(), command, "{line}");
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (line, message) in [
            ("\\i", "\\i is written \\i FILE"),
            ("\\i a b", "\\i is written \\i FILE"),
            ("\\timing maybe", "\\timing: \"maybe\" is neither on nor off"),
            (".exit 300", ".exit: \"300\" is no exit code, which is 0 to 255"),
            ("\\i 'a", "the quote that begins at 'a never ends"),
            (".mode cvs", "there is no output format \"cvs\""),
            ("\\e", "not supported yet: the command \\e"),
            ("\\pset border 2", "not supported yet: \\pset border"),
            ("\\timeing", "there is no command \\timeing"),
        ] {
            assert_eq!(parse(line).unwrap_err().to_string(), message, "{line}");
        }
    }

    #[test]
    fn an_unknown_name_gets_the_closest() {
        for (line, name) in [("\\timeing", "\\timing"), (".tabels", ".tables"), ("\\quit", ".quit"), (".x", "\\x")] {
            let error = parse(line).unwrap_err();
            assert!(error.help_text().unwrap().starts_with(&format!("did you mean {name}?")), "{line}: {error:?}");
        }
    }

    #[test]
    fn help_lists_every_command() {
        let help = help();
        for entry in &COMMANDS {
            for name in entry.names {
                assert!(help.contains(name), "{name}");
            }
        }
    }
}
