//! The shell in a terminal: reads lines, with a prompt that says what an unfinished statement is waiting for.

use rustyline::config::Configurer;
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{Config, Editor};

use super::buffer::Buffer;
use super::history::HistoryFile;
use super::output::say;
use super::runner::{Flow, Origin, Shell};
use super::turns::Turn;
use crate::error::{Error, Result};
use crate::parser::Pending;

const MOST_HISTORY: usize = 10_000;
const TYPED: Origin<'static> = Origin { name: None, path: None };

/// Reads and runs lines until `\q` or the end of input. Answers the exit code that `\q` asked for.
///
/// # Errors
/// The terminal can't be read.
pub(super) fn run(shell: &mut Shell) -> Result<Option<u8>> {
    let mut editor: Editor<(), FileHistory> = Editor::with_config(Config::builder().build()).map_err(terminal)?;
    editor.set_max_history_size(MOST_HISTORY).map_err(terminal)?;
    let mut history = HistoryFile::open(&mut editor);
    if let Some(turns) = &shell.turns {
        // There is none where stdin or stdout is no terminal, or a dumb one.
        let printer = editor.create_external_printer().ok();
        turns.start(printer.map(|printer| Box::new(printer) as _)).map_err(|error| terminal(error.into()))?;
    }
    if !shell.settings.quiet {
        say(&format!("levada {} · \\? for help, \\q to leave", env!("CARGO_PKG_VERSION")));
    }
    let mut loop_ = Loop { buffer: Buffer::new(), typed: String::new(), interrupts: 0 };
    loop {
        match loop_.read(shell, &mut editor)? {
            Read::Line(line) => {
                let flow = loop_.run(shell, &line);
                if let Some(entry) = loop_.take_entry() {
                    history.add(&mut editor, &entry);
                }
                match flow {
                    Flow::Leave(code) => return Ok(code),
                    // In a terminal an error only ends what was typed with it.
                    Flow::Stop => loop_.buffer = Buffer::new(),
                    Flow::Next => {}
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
    /// The lines since a statement or command began, for the history.
    typed: String,
    /// Ctrl-C on an empty line, one after the other.
    interrupts: usize,
}

impl Loop {
    fn read(&mut self, shell: &Shell, editor: &mut Editor<(), FileHistory>) -> Result<Read> {
        if let Some(turns) = &shell.turns {
            turns.begin(Turn::Editing);
        }
        let line = editor.readline(prompt(self.buffer.pending()));
        if let Some(turns) = &shell.turns {
            turns.begin(Turn::Running);
        }
        match line {
            Ok(line) => {
                self.interrupts = 0;
                Ok(Read::Line(line))
            }
            Err(ReadlineError::Interrupted) => {
                self.buffer = Buffer::new();
                self.typed.clear();
                self.interrupts += 1;
                if self.interrupts == 2 {
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
            self.buffer.push_line(&format!("{line}\n"));
            match shell.run_ready(&mut self.buffer, TYPED) {
                Flow::Next => {}
                flow => return flow,
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

fn prompt(pending: Pending) -> &'static str {
    match pending {
        Pending::Empty | Pending::Complete { .. } => "levada> ",
        Pending::Statement => "     -> ",
        Pending::Quote('"') => "     \"> ",
        Pending::Quote('`') => "     `> ",
        Pending::Quote(_) => "     '> ",
        Pending::Comment => "    /*> ",
        Pending::Parenthesis => "     (> ",
        Pending::Dollar => "     $> ",
    }
}

fn terminal(error: ReadlineError) -> Error {
    let error = match error {
        ReadlineError::Io(error) => error,
        other => std::io::Error::other(other.to_string()),
    };
    Error::io("can't use the terminal", &error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_prompt_is_as_wide_as_the_first() {
        for text in ["", "SELECT", "SELECT '", "SELECT \"", "SELECT `", "(", "/*", "$$"] {
            assert_eq!(prompt(crate::parser::pending(text)).len(), "levada> ".len(), "{text}");
        }
    }

    #[test]
    fn the_prompt_says_what_is_missing() {
        for (text, sign) in
            [("SELECT 1", "->"), ("SELECT 'a", "'>"), ("SELECT (1", "(>"), ("/* a", "/*>"), ("$x$", "$>")]
        {
            assert!(prompt(crate::parser::pending(text)).trim() == sign, "{text}");
        }
    }
}
