//! How results are written. The print options are `\pset`'s; the others set one of them.

use super::{Call, Entry, Takes};
use crate::display::Format;
use crate::error::Result;
use crate::shell::runner::{Flow, Shell};
use crate::shell::settings::{OPTIONS, on_off, turned};
use crate::shell::transcript;

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        names: &["\\pset"],
        arguments: "[OPTION [VALUE]]",
        help: "set a print option, or list them all",
        takes: Takes::Words,
        run: |shell, call| match call.words.split_first() {
            None => list(shell),
            Some((name, values)) => {
                let value = (!values.is_empty()).then(|| values.join(" "));
                set(shell, name, value.as_deref())
            }
        },
    },
    Entry {
        names: &[".mode"],
        arguments: "[FORMAT]",
        help: "how results are written: \\pset format",
        takes: Takes::Words,
        run: |shell, call| match call.at_most_one()? {
            None => list(shell),
            format => set(shell, "format", format),
        },
    },
    Entry {
        names: &["\\x"],
        arguments: "[on|off|auto]",
        help: "one column a line; auto: where a table is wider than the terminal",
        takes: Takes::Words,
        run: |shell, call| set(shell, "expanded", call.at_most_one()?),
    },
    Entry {
        names: &["\\a"],
        arguments: "",
        help: "a list in place of a table, or a table again",
        takes: Takes::Words,
        run: |shell, call| {
            call.none()?;
            turn_over(shell, Format::List)
        },
    },
    Entry {
        names: &["\\H"],
        arguments: "",
        help: "html in place of a table, or a table again",
        takes: Takes::Words,
        run: |shell, call| {
            call.none()?;
            turn_over(shell, Format::Html)
        },
    },
    Entry {
        names: &["\\t"],
        arguments: "[on|off]",
        help: "rows alone: neither header nor title nor footer",
        takes: Takes::Words,
        run: |shell, call| set(shell, "tuples_only", call.at_most_one()?),
    },
    Entry {
        names: &[".headers", ".header"],
        arguments: "[on|off]",
        help: "the names of columns",
        takes: Takes::Words,
        run: |shell, call| set(shell, "header", call.at_most_one()?),
    },
    Entry {
        names: &[".nullvalue"],
        arguments: "[TEXT]",
        help: "what NULL is shown as",
        takes: Takes::Words,
        run: |shell, call| set(shell, "null", call.at_most_one()?),
    },
    Entry {
        names: &["\\f", ".separator"],
        arguments: "[TEXT [TEXT]]",
        help: "between the fields of csv and list, and behind their records",
        takes: Takes::Words,
        run: |shell, call| {
            let (fields, records) = match call.words.as_slice() {
                [] => (None, None),
                [fields] => (Some(fields.as_str()), None),
                [fields, records] => (Some(fields.as_str()), Some(records.as_str())),
                _ => return Err(call.usage()),
            };
            if records.is_some() {
                set(shell, "recordsep", records)?;
            }
            set(shell, "fieldsep", fields)
        },
    },
    Entry {
        names: &["\\C"],
        arguments: "[TEXT]",
        help: "a title above tables",
        takes: Takes::Words,
        run: |shell, call| {
            let title = (!call.words.is_empty()).then(|| call.words.join(" "));
            set(shell, "title", title.as_deref())
        },
    },
    Entry {
        names: &[".width"],
        arguments: "[N …]",
        help: "columns of a table are at least so wide, from the first on",
        takes: Takes::Words,
        run: |shell, call| set(shell, "width", Some(&call.words.join(" "))),
    },
    Entry {
        names: &[".maxrows"],
        arguments: "[N|inf|auto]",
        help: "how many rows of a table are shown, the first and the last; auto: 40 on a terminal",
        takes: Takes::Words,
        run: |shell, call| set(shell, "maxrows", call.at_most_one()?),
    },
    Entry {
        names: &[".pager"],
        arguments: "[on|off|always]",
        help: "what is longer than the screen goes through LEVADA_PAGER or PAGER",
        takes: Takes::Words,
        run: |shell, call| set(shell, "pager", call.at_most_one()?),
    },
    Entry {
        names: &["\\timing", ".timer"],
        arguments: "[on|off]",
        help: "show how long each statement took (at the prompt: on)",
        takes: Takes::Words,
        run: |shell, call| {
            let word = call.at_most_one()?;
            shell.settings.timing = turned(word, shell.settings.timing)?;
            shell.confirm(&format!("timing is {}", on_off(shell.settings.timing)));
            Ok(Flow::Next)
        },
    },
    Entry { names: &[".show"], arguments: "", help: "every setting of the shell", takes: Takes::Words, run: show },
];

/// A format in place of the usual one, or that again.
fn turn_over(shell: &mut Shell, format: Format) -> Result<Flow> {
    let name = if shell.settings.format == Some(format) { "auto" } else { format.name() };
    set(shell, "format", Some(name))
}

fn set(shell: &mut Shell, name: &str, value: Option<&str>) -> Result<Flow> {
    let told = shell.settings.set(name, value)?;
    shell.session.set_console_format(shell.settings.console_format().name());
    shell.confirm(&told);
    Ok(Flow::Next)
}

fn list(shell: &mut Shell) -> Result<Flow> {
    shell.print_text(&shell.settings.list())?;
    Ok(Flow::Next)
}

fn show(shell: &mut Shell, call: Call<'_>) -> Result<Flow> {
    call.none()?;
    let width = OPTIONS.iter().map(|option| option.name.len()).max().unwrap_or(0);
    let redirect = shell.redirect.as_ref().map_or("stdout", |redirect| &redirect.words).to_string();
    let goes_on = matches!(shell.variables.is_on("ON_ERROR_STOP"), Some(false))
        || shell.variables.get("ON_ERROR_STOP").is_none() && shell.keep_going;
    let mut text = shell.settings.list();
    for (name, value) in [
        ("timing", on_off(shell.settings.timing)),
        ("output", redirect),
        ("log", transcript::name().unwrap_or_else(|| "off".to_string())),
        ("bail", on_off(!goes_on)),
    ] {
        text += &format!("{name:width$} {value}\n");
    }
    shell.print_text(&text)?;
    Ok(Flow::Next)
}
