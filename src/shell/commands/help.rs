//! Help: the commands, from their tables; the grammar of each statement; the documentation of functions.

use std::fmt::Write;

use super::{ELSEWHERE, Entry, FAMILIES, Takes, grammar, unknown};
use crate::display::render_error;
use crate::error::{Error, Result, closest, explained};
use crate::session::UNDOCUMENTED;
use crate::shell::runner::{Flow, Shell};
use crate::shell::settings::OPTIONS;
use crate::shell::variables::{SPECIAL, TOLD, TOLD_OF_COMMANDS};
use crate::shell::verbose::chain;

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        names: &["\\?", ".help", "help"],
        arguments: "[COMMAND|options|variables]",
        help: "this list, one command, the print options, or the variables",
        takes: Takes::Words,
        run: |shell, call| {
            let text = match call.at_most_one()? {
                None | Some("-all" | "commands") => all(),
                Some("options") => options(),
                Some("variables") => variables(),
                Some(name) => one(name)?,
            };
            shell.print_text(&text)?;
            Ok(Flow::Next)
        },
    },
    Entry {
        names: &["\\h", ".manual"],
        arguments: "[STATEMENT|FUNCTION|CODE]",
        help: "the grammar of a statement, the documentation of a function, what an error's code such as E0203 means, or what there is",
        takes: Takes::Line,
        run: |shell, call| {
            let text = manual(shell, call.line)?;
            shell.print_text(&text)?;
            Ok(Flow::Next)
        },
    },
    Entry {
        names: &["\\errverbose"],
        arguments: "",
        help: "the last error in full, with all that it comes from",
        takes: Takes::Words,
        run: |shell, call| {
            call.none()?;
            let text = failed_behind(shell).or_else(|| shell.last.error.clone());
            let text = text.unwrap_or_else(|| "there was no error\n".to_string());
            shell.print_text(&text)?;
            Ok(Flow::Next)
        },
    },
    Entry {
        names: &[".version"],
        arguments: "",
        help: "the version of the program",
        takes: Takes::Words,
        run: |shell, call| {
            call.none()?;
            shell.print_text(concat!("levada ", env!("CARGO_PKG_VERSION")))?;
            Ok(Flow::Next)
        },
    },
];

/// The query that failed since the last statement did, in full.
fn failed_behind(shell: &Shell) -> Option<String> {
    let line = shell.failures.newest()?;
    let errors = shell.session.handles().into_iter().filter_map(|handle| handle.status().last_error);
    let error = errors.into_iter().find(|error| line.ends_with(&error.to_string()))?;
    Some(render_error(&error, "", None, None) + &chain(&error))
}

/// Every command.
fn all() -> String {
    let mut text = String::from("A statement ends with ; and may span lines.\n");
    for family in &FAMILIES {
        _ = writeln!(text, "\n{}", family.title);
        family.entries.iter().for_each(|entry| text += &line(entry));
    }
    text
}

fn line(entry: &Entry) -> String {
    // Words without a sign stand alone, without arguments.
    let (signed, words): (Vec<&str>, Vec<&str>) = entry.names.iter().partition(|name| name.starts_with(['\\', '.']));
    let mut head = format!("{} {}", signed.join(" "), entry.arguments).trim_end().to_string();
    words.iter().for_each(|word| head += &format!(", {word}"));
    match head.chars().count() <= 36 {
        true => format!("  {head:<36} {}\n", entry.help),
        false => format!("  {head}\n  {:36} {}\n", "", entry.help),
    }
}

/// One command, by a name with or without its first character, or the commands whose names hold the text.
fn one(asked: &str) -> Result<String> {
    let bare = asked.trim_start_matches(['\\', '.']);
    let is = |name: &&str| name.trim_start_matches(['\\', '.']) == bare;
    let holds = |name: &&str| name.contains(bare);
    let found = |by: &dyn Fn(&&str) -> bool| -> String {
        let entries = FAMILIES.iter().flat_map(|family| family.entries);
        entries.filter(|entry| entry.names.iter().any(by)).map(line).collect()
    };
    let text = Some(found(&is)).filter(|text| !text.is_empty()).unwrap_or_else(|| found(&holds));
    if !text.is_empty() {
        return Ok(text);
    }
    match ELSEWHERE.iter().find(|(name, _)| is(name)) {
        Some((name, _)) => Err(unknown(name)),
        None => Err(unknown(&format!("\\{bare}"))),
    }
}

fn options() -> String {
    let mut text = String::from("\\pset OPTION VALUE, or -P OPTION=VALUE\n\n");
    for option in &OPTIONS {
        _ = writeln!(text, "  {:<32} {}", format!("{} {}", option.name, option.takes), option.help);
    }
    text
}

fn variables() -> String {
    let mut text = String::from("\\set NAME VALUE, or -v NAME=VALUE\n\n");
    for (name, takes, help) in SPECIAL {
        _ = writeln!(text, "  {:<32} {help}", format!("{name} {}", takes.join("|")));
    }
    text += "\nset after each statement\n\n";
    for (name, help) in TOLD {
        _ = writeln!(text, "  {name:<32} {help}");
    }
    text += "\nset by \\!\n\n";
    for (name, help) in TOLD_OF_COMMANDS {
        _ = writeln!(text, "  {name:<32} {help}");
    }
    text
}

/// `\h`
fn manual(shell: &Shell, asked: &str) -> Result<String> {
    if asked.is_empty() {
        let statements = grammar::statements().iter().map(|name| format!("  {name}\n")).collect::<String>();
        return Ok(format!(
            "\\h STATEMENT shows its grammar, \\h FUNCTION documents one (\\df lists them)\n\n{statements}"
        ));
    }
    if let Some(code) = code(asked) {
        return error_code(code);
    }
    let sections = grammar::find(asked);
    let mut text = String::new();
    for section in &sections {
        let gap = if text.is_empty() { "" } else { "\n" };
        _ = writeln!(text, "{gap}{}\n{}", section.title, section.shown());
    }
    let name = asked.trim_end_matches(['(', ')', ';']).trim();
    let documentation = shell.session.function_documentation(name);
    // Functions of ours are spoken of on the page.
    let silent = documentation.as_ref().is_none_or(|text| text.ends_with(UNDOCUMENTED));
    let own = || grammar::of_function(name).filter(|_| sections.is_empty());
    if let Some(section) = silent.then(own).flatten() {
        _ = writeln!(text, "{}\n{}", section.title, section.shown());
    } else if let Some(documentation) = documentation {
        let gap = if text.is_empty() { "" } else { "\n" };
        text += &format!("{gap}{documentation}");
    }
    if !text.is_empty() {
        return Ok(text);
    }
    let functions = shell.session.function_names();
    let function = closest(&name.to_lowercase(), functions.iter().map(String::as_str));
    let error = Error::invalid(format!("there is neither a statement nor a function {asked}"));
    Err(match grammar::closest_statement(asked).or_else(|| function.map(str::to_string)) {
        Some(known) => error.help(format!("did you mean {known}?")),
        None => error.help("\\h lists the statements, \\df the functions"),
    })
}

/// What is asked for, where it has the form of a code: `E0203`, `e0203`.
fn code(asked: &str) -> Option<&str> {
    let asked = asked.trim_end_matches(';').trim();
    let digits = asked.strip_prefix(['E', 'e'])?;
    (digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_digit())).then_some(asked)
}

/// What an error of that code means, and what to do.
fn error_code(asked: &str) -> Result<String> {
    let Some(found) = explained().find(|explained| explained.code.eq_ignore_ascii_case(asked)) else {
        let codes: Vec<&str> = explained().map(|explained| explained.code).collect();
        return Err(Error::invalid(format!("no error has the code {}", asked.to_uppercase()))
            .help(format!("there are {}", codes.join(", "))));
    };
    Ok(format!("{}: {}\n  {}\n", found.code, plain(found.means), plain(found.remedy)))
}

/// A text of a page without the page's marks: links are files.
fn plain(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, link)) = rest.split_once('[') {
        let Some((target, behind)) = link.split_once("](").and_then(|(_, link)| link.split_once(')')) else { break };
        out += &format!("{before}docs/{target}");
        rest = behind;
    }
    (out + rest).replace('`', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_lists_every_command() {
        let text = all();
        for entry in FAMILIES.iter().flat_map(|family| family.entries) {
            assert!(entry.names.iter().all(|name| text.contains(name)), "{:?}", entry.names);
            assert!(text.contains(entry.help), "{}", entry.help);
        }
    }

    #[test]
    fn a_code_is_explained_without_the_marks_of_its_page() {
        assert_eq!(
            (code("e0203"), code("E0203 ;"), code("exp"), code("e02033")),
            (Some("e0203"), Some("E0203"), None, None)
        );
        for explained in explained() {
            let text = error_code(explained.code).unwrap();
            assert!(text.starts_with(explained.code) && !text.contains(['`', '[', '|']), "{text}");
        }
        assert_eq!(error_code("E9999").unwrap_err().to_string(), "no error has the code E9999");
    }

    #[test]
    fn one_command_is_found_by_its_name_in_either_alphabet() {
        for name in ["\\timing", ".timing", "timer"] {
            assert_eq!(one(name).unwrap().lines().count(), 1, "{name}");
        }
        assert!(one("timign").unwrap_err().help_text().unwrap().starts_with("did you mean \\timing?"));
        assert_eq!(one("copy").unwrap_err().to_string(), "not supported yet: the command \\copy");
    }
}
