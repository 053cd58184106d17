//! What was typed: the statement that has begun, and the history.

use std::path::Path;

use super::{Call, Entry, Takes};
use crate::error::{Error, Result};
use crate::shell::history;
use crate::shell::runner::{Flow, Shell};

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        names: &["\\p"],
        arguments: "",
        help: "show the statement that was begun, or the last one",
        takes: Takes::Words,
        run: |shell, call| {
            call.none()?;
            let text = text(shell, &call).unwrap_or_default();
            shell.write(&format!("{text}\n"))?;
            Ok(Flow::Next)
        },
    },
    Entry {
        names: &["\\r"],
        arguments: "",
        help: "forget the statement that was begun",
        takes: Takes::Words,
        run: |_, call| {
            call.none()?;
            call.buffer.take_begun();
            Ok(Flow::Next)
        },
    },
    Entry {
        names: &["\\w"],
        arguments: "FILE",
        help: "write it to a file",
        takes: Takes::Words,
        run: |shell, call| {
            let file = call.one()?;
            let text = text(shell, &call).ok_or_else(|| Error::invalid("there is no statement to write"))?;
            let written = std::fs::write(Path::new(file), format!("{text};\n"));
            written.map_err(|error| Error::io(format!("can't write {file}"), &error))?;
            Ok(Flow::Next)
        },
    },
    Entry {
        names: &["\\e", ".edit"],
        arguments: "[FILE]",
        help: "edit it, or a file, in EDITOR or VISUAL, and run what was made of it",
        takes: Takes::Words,
        run: edit,
    },
    Entry {
        names: &["\\s", ".history"],
        arguments: "[FILE]",
        help: "show what was typed in this session and before, or write it to a file",
        takes: Takes::Words,
        run: |shell, call| {
            let text: String = history::entries()?.iter().map(|entry| format!("{entry}\n")).collect();
            match call.at_most_one()? {
                None => shell.print_text(&text)?,
                Some(file) => {
                    let written = std::fs::write(Path::new(file), text);
                    written.map_err(|error| Error::io(format!("can't write {file}"), &error))?;
                }
            }
            Ok(Flow::Next)
        },
    },
];

fn text(shell: &Shell, call: &Call<'_>) -> Option<String> {
    call.buffer.begun().map(|(text, _)| text).or_else(|| shell.last.statement.clone())
}

fn edit(shell: &mut Shell, call: Call<'_>) -> Result<Flow> {
    let own = match call.at_most_one()? {
        Some(_) => None,
        None => {
            let file = tempfile::Builder::new().prefix("levada-").suffix(".sql").tempfile();
            let file = file.map_err(|error| Error::io("can't make a file to edit", &error))?;
            let text = text(shell, &call).map(|text| format!("{text};\n")).unwrap_or_default();
            std::fs::write(file.path(), text).map_err(|error| Error::io("can't write a file to edit", &error))?;
            Some(file)
        }
    };
    let path = own.as_ref().map_or_else(|| Path::new(&call.words[0]), |file| file.path());
    let editor = shell.environment.first(&["LEVADA_EDITOR", "EDITOR", "VISUAL"]).unwrap_or_else(|| "vi".to_string());
    let quoted = crate::shell::variables::quoted(&path.display().to_string(), '\'').replace("''", "'\\''");
    let status = shell.environment.command(&format!("{editor} {quoted}")).status();
    let status = status.map_err(|error| Error::io(format!("can't run {editor}"), &error))?;
    if !status.success() {
        return Err(Error::invalid(format!("{editor}: {status}; nothing is run")));
    }
    let edited = std::fs::read_to_string(path);
    let edited = edited.map_err(|error| Error::io(format!("can't read {}", path.display()), &error))?;
    call.buffer.replace(&edited);
    Ok(Flow::Next)
}
