//! Variables of the shell, and of the environment of what it starts.

use std::io::{BufRead, BufReader, Write};

use super::{Call, Entry, Takes};
use crate::error::{Error, Result};
use crate::shell::runner::{Flow, Shell};

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        names: &["\\set"],
        arguments: "[NAME [TEXT …]]",
        help: "set a variable, which :NAME, :'NAME' and :\"NAME\" stand for, or list them all",
        takes: Takes::Words,
        run: |shell, call| match call.words.split_first() {
            None => {
                let list: String =
                    shell.variables.iter().map(|(name, value)| format!("{name} = {value:?}\n")).collect();
                shell.print_text(&list)?;
                Ok(Flow::Next)
            }
            Some((name, texts)) => {
                shell.set_variable(name, &texts.concat())?;
                Ok(Flow::Next)
            }
        },
    },
    Entry {
        names: &["\\unset"],
        arguments: "NAME",
        help: "forget a variable",
        takes: Takes::Words,
        run: |shell, call| {
            let name = call.one()?;
            shell.variables.unset(name);
            if name == "QUIET" {
                shell.settings.quiet = false;
            }
            Ok(Flow::Next)
        },
    },
    Entry {
        names: &["\\prompt"],
        arguments: "[TEXT] NAME",
        help: "ask for the text of a variable, on the terminal",
        takes: Takes::Words,
        run: prompt,
    },
    Entry {
        names: &["\\getenv"],
        arguments: "NAME VARIABLE",
        help: "set a variable to that of the environment",
        takes: Takes::Words,
        run: |shell, call| {
            let [name, variable] = call.words.as_slice() else { return Err(call.usage()) };
            // As in psql, what the environment lacks changes nothing.
            if let Some(value) = shell.environment.get(variable) {
                shell.set_variable(name, &value)?;
            }
            Ok(Flow::Next)
        },
    },
    Entry {
        names: &["\\setenv"],
        arguments: "VARIABLE [TEXT]",
        help: "set or take away a variable of the environment of what the shell starts",
        takes: Takes::Words,
        run: |shell, call| {
            let (variable, value) = match call.words.as_slice() {
                [variable] => (variable, None),
                [variable, value] => (variable, Some(value.as_str())),
                _ => return Err(call.usage()),
            };
            if variable.is_empty() || variable.contains(['=', '\0']) {
                return Err(Error::invalid(format!("{variable:?} is no name of a variable of the environment")));
            }
            shell.environment.set(variable, value);
            Ok(Flow::Next)
        },
    },
];

impl Shell {
    /// Sets a variable as a user asks for it.
    pub(in crate::shell) fn set_variable(&mut self, name: &str, value: &str) -> Result<()> {
        self.variables.set(name, value)?;
        if name == "QUIET" {
            self.settings.quiet = self.variables.is_on(name) == Some(true);
        }
        Ok(())
    }
}

fn prompt(shell: &mut Shell, call: Call<'_>) -> Result<Flow> {
    let (text, name) = match call.words.as_slice() {
        [name] => (String::new(), name),
        [texts @ .., name] => (texts.join(" "), name),
        [] => return Err(call.usage()),
    };
    let failed = |error: std::io::Error| Error::io("\\prompt asks on the terminal, and there is none", &error);
    let terminal = std::fs::OpenOptions::new().read(true).write(true).open("/dev/tty").map_err(failed)?;
    let text = crate::display::visible_lines(&text).into_owned();
    (&terminal).write_all(text.as_bytes()).map_err(failed)?;
    let mut line = String::new();
    BufReader::new(&terminal).read_line(&mut line).map_err(failed)?;
    shell.set_variable(name, line.trim_end_matches(['\n', '\r']))?;
    Ok(Flow::Next)
}
