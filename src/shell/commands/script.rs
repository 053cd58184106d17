//! What a script is made of: other files, branches, commands of the operating system, its end.

use super::{Call, Entry, Takes};
use crate::error::{Error, Result};
use crate::shell::output::say;
use crate::shell::runner::{Flow, Shell};
use crate::shell::settings::{on_off, turned};
use crate::shell::variables::truth;

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        names: &["\\q", ".quit", ".exit", "quit", "exit"],
        arguments: "[CODE]",
        help: "leave; running queries are stopped gracefully",
        takes: Takes::Words,
        run: |_, call| {
            let code = call.at_most_one()?.map(|word| {
                word.parse()
                    .map_err(|_| Error::invalid(format!("{}: {word:?} is no exit code, which is 0 to 255", call.name)))
            });
            Ok(Flow::Leave(code.transpose()?))
        },
    },
    Entry {
        names: &["\\i", ".read"],
        arguments: "FILE",
        help: "run a file",
        takes: Takes::Words,
        run: |shell, call| shell.include(call.one()?, false, call.origin),
    },
    Entry {
        names: &["\\ir"],
        arguments: "FILE",
        help: "run a file, found from where this script is",
        takes: Takes::Words,
        run: |shell, call| shell.include(call.one()?, true, call.origin),
    },
    Entry {
        names: &["\\if"],
        arguments: "EXPRESSION",
        help: "what follows is run only if this is true (on, true, yes, 1; :{?x} is whether a variable is set)",
        takes: Takes::Branch,
        run: |shell, call| {
            let asked = shell.conditions.active();
            let holds = asked.then(|| holds(&call));
            // An expression that means nothing does not hold, and its \endif is still to come.
            shell.conditions.begin(matches!(holds, Some(Ok(true))));
            holds.unwrap_or(Ok(true)).map(|_| Flow::Next)
        },
    },
    Entry {
        names: &["\\elif"],
        arguments: "EXPRESSION",
        help: "or, where nothing was run yet, if this is true",
        takes: Takes::Branch,
        run: |shell, call| {
            let asked = shell.conditions.elif_is_asked();
            let holds = asked.then(|| holds(&call));
            shell.conditions.elif(shell.base, matches!(holds, Some(Ok(true))))?;
            holds.unwrap_or(Ok(true)).map(|_| Flow::Next)
        },
    },
    Entry {
        names: &["\\else"],
        arguments: "",
        help: "or otherwise",
        takes: Takes::Branch,
        run: |shell, _| shell.conditions.otherwise(shell.base).map(|()| Flow::Next),
    },
    Entry {
        names: &["\\endif"],
        arguments: "",
        help: "ends \\if",
        takes: Takes::Branch,
        run: |shell, _| shell.conditions.end(shell.base).map(|()| Flow::Next),
    },
    Entry {
        names: &[".bail"],
        arguments: "[on|off]",
        help: "a script stops at an error: the variable ON_ERROR_STOP",
        takes: Takes::Words,
        run: |shell, call| {
            let now = shell.variables.is_on("ON_ERROR_STOP").unwrap_or(!shell.keep_going);
            let on = turned(call.at_most_one()?, now)?;
            shell.variables.set("ON_ERROR_STOP", &on_off(on))?;
            shell.confirm(&format!("bail is {}", on_off(on)));
            Ok(Flow::Next)
        },
    },
    Entry {
        names: &[".echo"],
        arguments: "[on|off]",
        help: "repeat a script's lines: the variable ECHO",
        takes: Takes::Words,
        run: |shell, call| {
            let on = turned(call.at_most_one()?, shell.variables.get("ECHO") == Some("all"))?;
            shell.variables.set("ECHO", if on { "all" } else { "none" })?;
            Ok(Flow::Next)
        },
    },
    Entry {
        names: &["\\!", ".shell", ".system"],
        arguments: "[COMMAND]",
        help: "run a command of the operating system, or its shell",
        takes: Takes::Line,
        run: system,
    },
    Entry {
        names: &["\\cd", ".cd"],
        arguments: "[FOLDER]",
        help: "change the working directory, to HOME without a name",
        takes: Takes::Words,
        run: change_folder,
    },
];

fn holds(call: &Call<'_>) -> Result<bool> {
    let text = call.words.join(" ");
    let wrong = || Error::invalid(format!("{}: {text:?} is neither true nor false", call.name));
    truth(&text).ok_or_else(|| wrong().help("write true or false, on or off, yes or no, 1 or 0, or :{?name}"))
}

fn system(shell: &mut Shell, call: Call<'_>) -> Result<Flow> {
    let line = match call.line {
        "" => shell.environment.first(&["SHELL"]).unwrap_or_else(|| "sh".to_string()),
        line => line.to_string(),
    };
    // What was written before stands above what the command writes.
    let flushed = shell.output.lock().flush();
    flushed.map_err(|error| Error::io("can't write", &error))?;
    let status = shell.environment.command(&line).status();
    let status = status.map_err(|error| Error::io(format!("can't run {line}"), &error))?;
    shell.variables.tell("SHELL_EXIT_CODE", &status.code().unwrap_or(-1).to_string());
    shell.variables.tell("SHELL_ERROR", if status.success() { "false" } else { "true" });
    if !status.success() {
        say(&format!("{line}: {status}"));
    }
    Ok(Flow::Next)
}

fn change_folder(shell: &mut Shell, call: Call<'_>) -> Result<Flow> {
    let running = shell.session.running_queries();
    if !running.is_empty() {
        let message = format!("{} running: relative paths would become others", running.join(", "));
        return Err(Error::invalid(message).help("\\stop them first"));
    }
    let folder = match call.at_most_one()? {
        Some(folder) => folder.to_string(),
        None => shell.environment.first(&["HOME"]).ok_or_else(|| Error::invalid("there is no HOME"))?,
    };
    std::env::set_current_dir(&folder).map_err(|error| Error::io(format!("can't change to {folder}"), &error))?;
    Ok(Flow::Next)
}
