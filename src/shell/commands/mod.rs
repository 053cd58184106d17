//! The shell's own commands, in two alphabets: psql's begin with a backslash, those of DuckDB and SQLite with a dot.
//!
//! One family of commands a file, each a table of [`Entry`]s; help, the reading of arguments, errors and the running all
//! come from these tables.

mod describe;
mod format;
mod grammar;
mod help;
mod queries;
mod results;
mod script;
mod typed;
mod variables;
mod words;

pub(super) use grammar::statements;

use super::buffer::Buffer;
use super::complete::Shape;
use super::runner::{Flow, Origin, Shell};
use super::settings::OPTIONS;
use crate::error::{Code, Error, Result, closest};

/// One command: its names, its arguments, what it does, and how.
struct Entry {
    /// The first is the one that help speaks of.
    names: &'static [&'static str],
    arguments: &'static str,
    help: &'static str,
    takes: Takes,
    run: fn(&mut Shell, Call<'_>) -> Result<Flow>,
}

/// What a command's arguments are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Takes {
    Words,
    /// All of the line, as it is.
    Line,
    /// Words; it runs where an `\if` does not hold, too.
    Branch,
}

/// A family of commands.
struct Family {
    title: &'static str,
    entries: &'static [Entry],
}

const FAMILIES: [Family; 8] = [
    Family { title: "What there is", entries: describe::ENTRIES },
    Family { title: "How results are written", entries: format::ENTRIES },
    Family { title: "What is done with a result", entries: results::ENTRIES },
    Family { title: "Queries at work", entries: queries::ENTRIES },
    Family { title: "Scripts", entries: script::ENTRIES },
    Family { title: "Variables", entries: variables::ENTRIES },
    Family { title: "What was typed", entries: typed::ENTRIES },
    Family { title: "Help", entries: help::ENTRIES },
];

/// Commands that other shells have, and what there is here in their place.
const ELSEWHERE: [(&str, &str); 14] = [
    ("\\copy", "COPY … TO 'file', or \\g file"),
    ("\\detach", "Ctrl-C ends \\attach, and the query goes on"),
    ("\\password", ""),
    ("\\c", "there is one session, and nothing to connect to"),
    ("\\connect", "there is one session, and nothing to connect to"),
    (".import", "CREATE EXTERNAL TABLE, or CREATE STREAM with connector 'file', reads a file"),
    (".dump", "SHOW CREATE … answers the statement that made a thing"),
    (".open", "there is one session, and nothing to open"),
    (".indexes", "there are no indexes"),
    (".prompt", ""),
    (".progress_bar", ""),
    (".thousand_sep", ""),
    (".testcase", "levada test runs suites; \\record writes one"),
    (".check", "levada test runs suites; \\record writes one"),
];

/// One call of a command.
struct Call<'a> {
    /// As it was written.
    name: &'a str,
    usage: &'static str,
    words: Vec<String>,
    /// All that stands behind the name.
    line: &'a str,
    buffer: &'a mut Buffer,
    origin: Origin<'a>,
}

impl Call<'_> {
    /// The only word.
    fn at_most_one(&self) -> Result<Option<&str>> {
        match self.words.as_slice() {
            [] => Ok(None),
            [word] => Ok(Some(word)),
            _ => Err(self.usage()),
        }
    }

    fn one(&self) -> Result<&str> {
        self.at_most_one()?.ok_or_else(|| self.usage())
    }

    fn none(&self) -> Result<()> {
        if self.words.is_empty() { Ok(()) } else { Err(self.usage()) }
    }

    fn usage(&self) -> Error {
        Error::invalid(format!("{} is written {} {}", self.name, self.name, self.usage).trim_end().to_string())
    }
}

/// The first command of a line, and what stands behind it.
pub(super) fn cut(line: &str) -> (&str, &str) {
    words::cut(line, |name| find(name).is_some_and(|entry| entry.takes == Takes::Line))
}

/// Every name with its arguments, for completion.
pub(super) fn shapes() -> Vec<Shape> {
    let arguments = |entry: &Entry| match entry.names.contains(&"\\pset") {
        true => entry.arguments.replacen("OPTION", &OPTIONS.map(|option| option.name).join("|"), 1),
        false => entry.arguments.to_string(),
    };
    // `quit`, `exit` and `help` are words like others.
    let named = |name: &&&str| name.starts_with(['\\', '.']);
    let shapes = |entry: &'static Entry| {
        let names = entry.names.iter().filter(named);
        names.map(|name| Shape { name, arguments: arguments(entry) }).collect::<Vec<_>>()
    };
    entries().flat_map(shapes).collect()
}

/// Runs one command.
///
/// # Errors
/// There is none of that name, with the closest that there is; its arguments are wrong; or what it does fails.
pub(super) fn run(shell: &mut Shell, line: &str, buffer: &mut Buffer, origin: Origin<'_>) -> Result<Flow> {
    let line = line.trim();
    let name = words::name(line);
    let found = find(name);
    let branch = found.is_some_and(|entry| entry.takes == Takes::Branch);
    if !branch && !shell.conditions.active() {
        return Ok(Flow::Next);
    }
    let entry = found.ok_or_else(|| unknown(name))?;
    let arguments = &line[name.len()..];
    // What decides nothing is not looked at: a variable may not be there, and a command should not run.
    let asked = match name {
        "\\elif" => shell.conditions.elif_is_asked(),
        _ => shell.conditions.active(),
    };
    let words = match entry.takes {
        Takes::Line => Vec::new(),
        _ if !asked => Vec::new(),
        Takes::Words | Takes::Branch => {
            let arguments = arguments.trim_end().trim_end_matches(';');
            words::words(arguments, name.starts_with('.'), &shell.variables, &shell.environment)?
        }
    };
    let call = Call { name, usage: entry.arguments, words, line: arguments.trim(), buffer, origin };
    (entry.run)(shell, call)
}

fn entries() -> impl Iterator<Item = &'static Entry> {
    FAMILIES.iter().flat_map(|family| family.entries)
}

fn find(name: &str) -> Option<&'static Entry> {
    // `quit`, `exit` and `help` stand alone on a line, and are words of SQL.
    let is = |known: &&str| *known == name || (!known.starts_with(['\\', '.']) && known.eq_ignore_ascii_case(name));
    entries().find(|entry| entry.names.iter().any(is))
}

fn unknown(name: &str) -> Error {
    let twin = |known: &&str| known.get(1..) == name.get(1..) && name.len() > 1;
    let same = ELSEWHERE.iter().find(|(known, _)| *known == name);
    if let Some((known, instead)) = same.or_else(|| ELSEWHERE.iter().find(|(known, _)| twin(known))) {
        let instead = Some(*instead).filter(|instead| !instead.is_empty());
        return Error::not_yet(format!("the command {known}")).help(instead.unwrap_or("\\? lists what there is"));
    }
    let names = entries().flat_map(|entry| entry.names).copied();
    let known: Vec<&str> = names.filter(|name| name.starts_with(['\\', '.'])).collect();
    let error = Error::invalid(format!("there is no command {name}")).coded(Code::UnknownCommand);
    // Of another alphabet's name only the first character is wrong.
    match known.iter().copied().find(twin).or_else(|| closest(name, known.iter().copied())) {
        Some(known) => error.help(format!("did you mean {known}? \\? lists all commands")),
        None => error.help("\\? lists all commands"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_there_once() {
        let mut names: Vec<&str> = entries().flat_map(|entry| entry.names).copied().collect();
        names.extend(ELSEWHERE.iter().map(|(name, _)| *name));
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn the_page_of_the_shell_lists_every_command() {
        let page = include_str!("../../../docs/shell.md");
        let listed = |name: &str| page.contains(&format!("`{name}`")) || page.contains(&format!("`{name} "));
        let missing: Vec<&str> =
            entries().flat_map(|entry| entry.names).copied().filter(|name| !listed(name)).collect();
        assert!(missing.is_empty(), "not in docs/shell.md: {missing:?}");
    }

    #[test]
    fn an_unknown_name_gets_the_closest() {
        for (line, name) in [("\\timeing", "\\timing"), (".tabels", ".tables"), ("\\quit", ".quit"), (".x", "\\x")] {
            let error = unknown(line);
            assert_eq!(error.to_string(), format!("there is no command {line}"));
            assert!(error.help_text().unwrap().starts_with(&format!("did you mean {name}?")), "{line}: {error:?}");
        }
    }

    #[test]
    fn what_other_shells_have_is_refused_with_a_way() {
        for (line, message, help) in [
            ("\\copy", "not supported yet: the command \\copy", "COPY … TO 'file', or \\g file"),
            (".prompt", "not supported yet: the command .prompt", "\\? lists what there is"),
            ("\\prompt_", "there is no command \\prompt_", "did you mean \\prompt? \\? lists all commands"),
        ] {
            let error = unknown(line);
            assert_eq!((error.to_string().as_str(), error.help_text()), (message, Some(help)));
        }
    }
}
