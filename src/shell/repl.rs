//! The shell in a terminal: reads lines, with a prompt that says what an unfinished statement is waiting for.

use std::io::IsTerminal;
use std::time::Duration;

use rustyline::error::ReadlineError;

use super::buffer::Buffer;
use super::commands;
use super::complete::Snapshot;
use super::editor::{self, LineEditor, Look, Told, prompt};
use super::history::HistoryFile;
use super::output::say;
use super::runner::{Flow, Origin, Shell};
use super::terminal::{Screen, is_dumb};
use super::turns::Turn;
use crate::clock::Stopwatch;
use crate::error::{Error, Result};
use crate::execution::QueryState;
use crate::parser::Pending;

const TYPED: Origin<'static> = Origin { name: None, path: None };
/// A second Ctrl-C within this time asks how to leave.
const TWICE: Duration = Duration::from_secs(2);

/// Reads and runs lines until `\q` or the end of input. Answers the exit code that `\q` asked for.
///
/// # Errors
/// The terminal can't be read.
pub(super) fn run(shell: &mut Shell) -> Result<Option<u8>> {
    let colours = shell.settings.paints(std::io::stdout().is_terminal()) && !is_dumb();
    let look = Look { colours, unicode: Screen::now().unicode };
    let mut editor = editor::open(look).map_err(terminal)?;
    let mut history = HistoryFile::open(&mut editor);
    if let Some(turns) = &shell.turns {
        // There is none where stdin or stdout is no terminal, or a dumb one.
        let printer = editor.create_external_printer().ok();
        turns.start(printer.map(|printer| Box::new(printer) as _)).map_err(|error| terminal(error.into()))?;
    }
    if let Some(desk) = &shell.desk {
        desk.begin_typing();
    }
    if !shell.settings.quiet {
        say(&format!("levada {} · \\? for help, \\q to leave", env!("CARGO_PKG_VERSION")));
    }
    let mut loop_ = Loop { buffer: Buffer::new(), typed: String::new(), interrupted: None, look };
    loop {
        history.arrive(&mut editor, false);
        match loop_.read(shell, &mut editor)? {
            Read::Line(line) => {
                let flow = loop_.run(shell, &line);
                if flow == Flow::Stop {
                    // In a terminal an error only ends what was typed with it.
                    loop_.buffer = Buffer::new();
                }
                if let Some(entry) = loop_.take_entry() {
                    history.add(&mut editor, &entry);
                }
                if let Flow::Leave(code) = flow {
                    return Ok(code);
                }
            }
            Read::Nothing => {}
            Read::End => return Ok(None),
        }
    }
}

enum Read {
    Line(String),
    Nothing,
    End,
}

struct Loop {
    buffer: Buffer,
    /// The lines since a statement or command began, or what an editor made of them, for the history.
    typed: String,
    /// Since the last Ctrl-C, where nothing was entered behind it.
    interrupted: Option<Stopwatch>,
    look: Look,
}

impl Loop {
    fn read(&mut self, shell: &Shell, editor: &mut LineEditor) -> Result<Read> {
        let pending = self.buffer.pending();
        let queries = shell.session.query_states();
        if let Some(assist) = editor.helper_mut() {
            let variables = shell.variables.iter().map(|(name, _)| name.to_string()).collect();
            let snapshot = Snapshot::of(&shell.session, &assist.snapshot(), commands::shapes)
                .with(variables, shell.last.result.schema());
            assist.begin(snapshot, if pending == Pending::Empty { "" } else { &self.typed });
        }
        let running =
            queries.iter().filter(|(_, state)| matches!(state, QueryState::Running | QueryState::Paused)).count();
        let failed = queries.iter().any(|(_, state)| *state == QueryState::Failed);
        if let Some(turns) = &shell.turns {
            turns.begin(Turn::Editing);
        }
        let told = Told { running, failed, skips: !shell.conditions.active() };
        let prompt = prompt(pending, told, self.look);
        if let Some(assist) = editor.helper_mut() {
            assist.stand_behind(&prompt.0);
        }
        let line = editor.readline(&prompt);
        if let Some(turns) = &shell.turns {
            turns.begin(Turn::Running);
        }
        match line {
            Ok(line) => {
                self.interrupted = None;
                Ok(Read::Line(line))
            }
            Err(ReadlineError::Interrupted) => {
                self.buffer = Buffer::new();
                self.typed.clear();
                if self.interrupted.replace(Stopwatch::start()).is_some_and(|since| since.elapsed() < TWICE) {
                    say("\\q or Ctrl-D leaves");
                }
                Ok(Read::Nothing)
            }
            Err(ReadlineError::Eof) => Ok(Read::End),
            Err(ReadlineError::Signal(_)) => Ok(Read::Nothing),
            Err(error) => Err(terminal(error)),
        }
    }

    /// Runs what a line, or the lines of a paste, made complete.
    fn run(&mut self, shell: &mut Shell, text: &str) -> Flow {
        if !text.trim().is_empty() {
            self.typed.extend([text, "\n"]);
        }
        if self.buffer.pending() == Pending::Empty {
            // Places are counted from the line in which a statement begins.
            self.buffer = Buffer::new();
        }
        for line in text.lines() {
            let line = format!("{line}\n");
            self.buffer.push_line(&shell.with_statements(self.buffer.pending(), &line));
            let flow = shell.run_ready(&mut self.buffer, TYPED);
            if let Some(edited) = self.buffer.take_replaced() {
                self.typed = edited;
            }
            if flow != Flow::Next {
                return flow;
            }
        }
        Flow::Next
    }

    /// What was typed, once nothing of it is unfinished.
    fn take_entry(&mut self) -> Option<String> {
        if self.buffer.pending() != Pending::Empty || self.typed.is_empty() {
            return None;
        }
        Some(std::mem::take(&mut self.typed).trim_end().to_string())
    }
}

fn terminal(error: ReadlineError) -> Error {
    let error = match error {
        ReadlineError::Io(error) => error,
        other => std::io::Error::other(other.to_string()),
    };
    Error::io("can't use the terminal", &error)
}
