//! Runs the statements and commands of a script one after the other, and decides after each whether to go on.

use std::borrow::Cow;
use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;

use super::buffer::{Buffer, Item};
use super::commands;
use super::conditions::Conditions;
use super::ending::{Ending, code, stop_queries};
use super::environment::Environment;
use super::failures::Failures;
use super::input::Input;
use super::last::Last;
use super::live::Desk;
use super::output::{Output, say};
use super::redirect::Redirect;
use super::settings::PrintSettings;
use super::terminal::Screen;
use super::transcript;
use super::turns::Turns;
use super::variables::Variables;
use super::verbose;
use crate::display::{ALERT, paint, render_error, render_error_within};
use crate::error::{Error, Location, Result, Span};
use crate::parser::Pending;
use crate::regress::Recording;
use crate::session::Session;

/// Scripts that include scripts end here: it is a circle.
const DEEPEST: usize = 32;

/// A session and what the user sees of it.
pub(super) struct Shell {
    pub(super) session: Arc<Session>,
    pub(super) output: Output,
    pub(super) ending: Arc<Ending>,
    /// Of a terminal that somebody types into.
    pub(super) turns: Option<Arc<Turns>>,
    /// The live views of a terminal.
    pub(super) desk: Option<Arc<Desk>>,
    pub(super) settings: PrintSettings,
    /// What was told of queries that failed.
    pub(super) failures: Failures,
    /// Go on after an error, where ON_ERROR_STOP says nothing.
    pub(super) keep_going: bool,
    /// Some statement or command failed.
    pub(super) failed: bool,
    /// One failed while ON_ERROR_STOP was on.
    pub(super) stopped: bool,
    /// How many `\i` deep.
    pub(super) depth: usize,
    /// `\record`
    pub(super) recording: Option<Recording>,
    pub(super) variables: Variables,
    pub(super) conditions: Conditions,
    /// What the script that runs found open.
    pub(super) base: usize,
    pub(super) environment: Environment,
    /// `\o`
    pub(super) redirect: Option<Redirect>,
    /// `.once`, `\g FILE`
    pub(super) once: Option<Redirect>,
    /// `\bind`, for the next statement.
    pub(super) bound: Option<Vec<String>>,
    pub(super) last: Last,
    /// The text in which the places of the last statement are counted, where that is not what was read.
    pub(super) source: Option<String>,
}

/// What comes after an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    Next,
    /// An error ends the script.
    Stop,
    /// `\q`, with the exit code that was asked for.
    Leave(Option<u8>),
}

/// Where an item comes from.
#[derive(Clone, Copy)]
pub(super) struct Origin<'a> {
    /// Shown in front of `:line:column`; `None` for a line that was typed.
    pub(super) name: Option<&'a str>,
    /// For `\ir`.
    pub(super) path: Option<&'a Path>,
}

impl Shell {
    /// Runs a script to its end, to its first error, or to `\q`.
    pub(super) fn run_input(&mut self, mut input: Input) -> Flow {
        let base = std::mem::replace(&mut self.base, self.conditions.depth());
        let mut flow = self.run_lines(&mut input);
        if self.conditions.close(self.base) > 0 && flow == Flow::Next {
            let error = Error::invalid("the script ends inside an \\if").help("\\endif ends it");
            self.report(&error, "", Some(&input.name), None);
            flow = self.after_error();
        }
        self.base = base;
        flow
    }

    fn run_lines(&mut self, input: &mut Input) -> Flow {
        let mut buffer = Buffer::new();
        loop {
            let line = match input.next_line() {
                Ok(Some(line)) => line,
                Ok(None) => break,
                // What follows can't be read either, or is not what was meant.
                Err(error) => {
                    self.report(&error, "", None, None);
                    return Flow::Stop;
                }
            };
            if self.variables.get("ECHO") == Some("all")
                && let Err(error) = self.write(&format!("{}\n", line.strip_suffix('\n').unwrap_or(&line)))
            {
                self.report(&error, "", None, None);
                return Flow::Stop;
            }
            buffer.push_line(&self.with_statements(buffer.pending(), &line));
            let origin = Origin { name: Some(&input.name), path: input.path.as_deref() };
            match self.run_ready(&mut buffer, origin) {
                Flow::Next => {}
                flow => return flow,
            }
        }
        let origin = Origin { name: Some(&input.name), path: input.path.as_deref() };
        match buffer.finish() {
            Some(item) => self.run_item(item, &mut buffer, origin),
            None => Flow::Next,
        }
    }

    /// A line that is `:name` alone, of a variable with whole statements, as these: where one ends has to be known before it is
    /// read. Any other is as it is, and so is one inside a statement.
    pub(super) fn with_statements<'a>(&self, pending: Pending, line: &'a str) -> Cow<'a, str> {
        let name = line.trim().strip_prefix(':').filter(|_| pending == Pending::Empty);
        let value = name.and_then(|name| self.variables.get(name.trim_end_matches(';').trim_end()));
        match value.filter(|value| value.contains(';')) {
            Some(value) => Cow::Owned(format!("{}\n", value.trim_end())),
            None => Cow::Borrowed(line),
        }
    }

    /// Runs what the buffer holds ready.
    pub(super) fn run_ready(&mut self, buffer: &mut Buffer, origin: Origin<'_>) -> Flow {
        while let Some(item) = buffer.take() {
            match self.run_item(item, buffer, origin) {
                Flow::Next => {}
                flow => return flow,
            }
        }
        Flow::Next
    }

    /// Stops the queries that still run and answers the exit code. `leave`: what `\q` asked for.
    pub(super) fn finish(&mut self, leave: Option<u8>) -> u8 {
        self.ending.check();
        for redirect in [self.once.take(), self.redirect.take()].into_iter().flatten() {
            if let Err(error) = redirect.close() {
                self.report(&error, "", None, None);
            }
        }
        stop_queries(&self.session, self.settings.quiet);
        let flushed = std::io::Write::flush(&mut *self.output.lock());
        self.ending.check();
        if let Err(error) = flushed {
            self.report(&Error::io("can't write the result", &error), "", None, None);
        }
        match leave {
            Some(code) => code,
            None if self.session.any_query_failed() => code::QUERY_FAILED,
            None if self.stopped => code::STOPPED,
            None if self.failed => code::ERROR,
            None => code::OK,
        }
    }

    /// Says what went wrong.
    pub(super) fn report(&mut self, error: &Error, source: &str, name: Option<&str>, statement: Option<Location>) {
        self.failed = true;
        self.failures.passed();
        let source = self.source.take().unwrap_or_else(|| source.to_string());
        let brief = self.failures.brief(error);
        let terminal = std::io::stderr().is_terminal() && !self.settings.plain;
        let columns = terminal.then(Screen::now).and_then(|screen| screen.columns);
        let text = render_error_within(brief.as_ref().unwrap_or(error), &source, name, statement, columns);
        self.last.error = Some(render_error(error, &source, name, statement) + &verbose::chain(error));
        match text.split_once(']') {
            Some((code, rest)) => say(&format!("{}{rest}", paint(ALERT, &format!("{code}]")))),
            None => say(&text),
        }
    }

    /// Whether a script goes on.
    pub(super) fn after_error(&mut self) -> Flow {
        match self.variables.is_on("ON_ERROR_STOP") {
            Some(true) => {
                self.stopped |= self.turns.is_none();
                Flow::Stop
            }
            Some(false) => Flow::Next,
            None if self.keep_going => Flow::Next,
            None => Flow::Stop,
        }
    }

    fn run_item(&mut self, item: Item, buffer: &mut Buffer, origin: Origin<'_>) -> Flow {
        self.source = None;
        match item {
            Item::Statement { .. } if !self.conditions.active() => {
                if self.turns.is_some() && self.depth == 0 {
                    self.confirm("not run: an \\if that does not hold is open; \\endif ends it");
                }
                Flow::Next
            }
            Item::Statement { text, at } => {
                transcript::add(format!("{text};\n").as_bytes());
                let outcome = self.run_statement(&text, at).map(|()| Flow::Next);
                if outcome.is_err() && self.variables.get("ECHO") == Some("errors") {
                    say(&text);
                }
                self.settle(outcome, at, buffer, origin)
            }
            Item::Command { line, at } => {
                transcript::add(format!("{line}\n").as_bytes());
                self.run_commands(&line, at, buffer, origin)
            }
        }
    }

    /// The commands of a line, of which one may follow the other.
    fn run_commands(&mut self, line: &str, at: Location, buffer: &mut Buffer, origin: Origin<'_>) -> Flow {
        let mut rest = line;
        while !rest.is_empty() {
            let column = |rest: &str| at.column + line[..line.len() - rest.len()].chars().count() as u64;
            let start = Location { line: at.line, column: column(rest) };
            let (command, behind) = commands::cut(rest);
            let end = Location { line: at.line, column: start.column + command.trim_end().chars().count() as u64 };
            let outcome = commands::run(self, command, buffer, origin)
                .map_err(|error| if self.source.is_some() { error } else { error.at(Some(Span { start, end })) });
            match self.settle(outcome, start, buffer, origin) {
                Flow::Next => rest = behind,
                flow => return flow,
            }
        }
        Flow::Next
    }

    /// Says what went wrong, and what comes next.
    fn settle(&mut self, outcome: Result<Flow>, at: Location, buffer: &Buffer, origin: Origin<'_>) -> Flow {
        // A statement that was cancelled because the run is being ended has nothing to say.
        self.ending.check();
        match outcome {
            Ok(flow) => flow,
            Err(Error::Cancelled { message }) if self.turns.is_some() => {
                // Behind the terminal's `^C`.
                say(&format!("\n{message}"));
                Flow::Next
            }
            Err(error) => {
                // A script's reader wants to know which statement it was; at the prompt it is the last one.
                let place = origin.name.map(|_| at);
                self.report(&error, &buffer.source(), origin.name, place);
                self.after_error()
            }
        }
    }

    /// Runs a file that is named in a script. `beside`: a relative path starts at the file that says it.
    pub(super) fn include(&mut self, file: &str, beside: bool, origin: Origin<'_>) -> Result<Flow> {
        if self.depth == DEEPEST {
            return Err(Error::invalid(format!(
                "{file} is included {DEEPEST} files deep: does a file include itself?"
            )));
        }
        let folder = origin.path.and_then(Path::parent).filter(|_| beside).unwrap_or(Path::new(""));
        let input = Input::file(&folder.join(file))?;
        self.depth += 1;
        let flow = self.run_input(input);
        self.depth -= 1;
        Ok(match flow {
            // In a terminal an error ends the file, not the shell.
            Flow::Stop if self.turns.is_some() && self.depth == 0 => Flow::Next,
            flow => flow,
        })
    }

    /// Writes a text to standard output.
    pub(super) fn write(&self, text: &str) -> Result<()> {
        write_to(&self.output, text)
    }

    /// Says what a command did.
    pub(super) fn confirm(&self, line: &str) {
        if !self.settings.quiet {
            say(line);
        }
    }
}

/// Writes a text and flushes it.
pub(super) fn write_to(output: &Output, text: &str) -> Result<()> {
    let mut out = output.lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|error| Error::io("can't write", &error))
}
