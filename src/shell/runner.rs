//! Runs statements and commands one after the other, and decides after each whether to go on.

use std::path::Path;
use std::sync::Arc;

use super::answer::{PrintSettings, Printer};
use super::buffer::{Buffer, Item};
use super::command::{self, Command, Expanded};
use super::ending::{Ending, code, stop_queries};
use super::failures::Failures;
use super::input::Input;
use super::output::{Output, say};
use super::record;
use super::turns::{Turn, Turns};
use crate::clock::Stopwatch;
use crate::display::render_error;
use crate::error::{Error, Location, Result, Span};
use crate::parser::{Statement, parse_one};
use crate::regress::Recording;
use crate::session::{Answer, Session};

/// Scripts that include scripts end here: it is a circle.
const DEEPEST: usize = 32;

/// A session and what the user sees of it.
pub(super) struct Shell {
    pub(super) session: Arc<Session>,
    pub(super) output: Output,
    pub(super) ending: Arc<Ending>,
    /// Of a terminal that somebody types into.
    pub(super) turns: Option<Arc<Turns>>,
    pub(super) settings: PrintSettings,
    /// What was told of queries that failed.
    pub(super) failures: Failures,
    /// Go on after an error.
    pub(super) keep_going: bool,
    /// Some statement or command failed.
    pub(super) failed: bool,
    /// How many `\i` deep.
    pub(super) depth: usize,
    /// `\record`
    pub(super) recording: Option<Recording>,
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
            buffer.push_line(&line);
            let origin = Origin { name: Some(&input.name), path: input.path.as_deref() };
            match self.run_ready(&mut buffer, origin) {
                Flow::Next => {}
                flow => return flow,
            }
        }
        let origin = Origin { name: Some(&input.name), path: input.path.as_deref() };
        match buffer.finish() {
            Some(item) => self.run_item(item, &buffer, origin),
            None => Flow::Next,
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
        stop_queries(&self.session, self.settings.quiet);
        let flushed = std::io::Write::flush(&mut *self.output.lock());
        self.ending.check();
        if let Err(error) = flushed {
            self.report(&Error::io("can't write the result", &error), "", None, None);
        }
        match leave {
            Some(code) => code,
            None if self.session.any_query_failed() => code::QUERY_FAILED,
            None if self.failed => code::ERROR,
            None => code::OK,
        }
    }

    /// Says what went wrong.
    pub(super) fn report(&mut self, error: &Error, source: &str, name: Option<&str>, statement: Option<Location>) {
        self.failed = true;
        let brief = self.failures.brief(error);
        say(&render_error(brief.as_ref().unwrap_or(error), source, name, statement));
    }

    fn run_item(&mut self, item: Item, buffer: &Buffer, origin: Origin<'_>) -> Flow {
        let (Item::Statement { at, .. } | Item::Command { at, .. }) = &item;
        // A script's reader wants to know which statement it was; at the prompt it is the last one.
        let place = origin.name.map(|_| *at);
        let outcome = match item {
            Item::Statement { text, at } => self.run_statement(&text, at).map(|()| Flow::Next),
            Item::Command { line, at } => {
                let end = Location { line: at.line, column: at.column + line.chars().count() as u64 };
                self.run_command(&line, origin).map_err(|error| error.at(Some(Span { start: at, end })))
            }
        };
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
                self.report(&error, &buffer.source(), origin.name, place);
                if self.keep_going { Flow::Next } else { Flow::Stop }
            }
        }
    }

    fn run_statement(&mut self, text: &str, at: Location) -> Result<()> {
        let watch = Stopwatch::start();
        let statement = parse_one(text, at)?;
        let as_they_come = matches!(statement.statement, Statement::Watch { .. });
        let ending = self.ending.clone();
        let _foreground = ending.foreground(text);
        let answer = self.session.execute(&statement);
        if self.recording.is_none() || as_they_come {
            return self.print(answer?, as_they_come, &watch);
        }
        let outcome = answer.and_then(|answer| {
            let (answer, heard) = record::hear(answer);
            self.print(answer, false, &watch).map(|()| heard)
        });
        let (error, heard) = match outcome {
            Ok(heard) => (None, Some(heard)),
            Err(error) => (Some(error), None),
        };
        if let Some(recording) = &mut self.recording {
            // What can't be a record is no reason to end a script.
            if let Some(why) = record::keep(recording, text, heard.ok_or(error.as_ref()))? {
                say(&why);
            }
        }
        error.map_or(Ok(()), Err)
    }

    fn record(&mut self, file: Option<String>) -> Result<()> {
        if let Some(ended) = self.recording.take() {
            self.session.record_queries(None);
            self.confirm(&format!("{} has {} records", ended.path().display(), ended.records()));
            if file.is_none() {
                return Ok(());
            }
        }
        let Some(file) = file else {
            return Err(Error::invalid("nothing is being recorded").help("\\record FILE.slt begins a file"));
        };
        let recording = Recording::begin(Path::new(&file))?;
        self.session.record_queries(Some(recording.recorder()));
        self.recording = Some(recording);
        self.confirm(&format!("recording to {file}; \\record ends it"));
        Ok(())
    }

    fn print(&self, answer: Answer, as_they_come: bool, watch: &Stopwatch) -> Result<()> {
        let cancel = self.session.cancel_token();
        let printer = Printer { settings: self.settings, output: &self.output, cancel: &cancel };
        // Notices wait for the end of an answer, but not for that of a WATCH.
        if !as_they_come && let Some(turns) = &self.turns {
            turns.begin(Turn::Printing);
        }
        let printed = printer.print(answer, as_they_come, &|| watch.elapsed());
        if let Some(turns) = &self.turns {
            turns.begin(Turn::Running);
        }
        printed
    }

    fn run_command(&mut self, line: &str, origin: Origin<'_>) -> Result<Flow> {
        match command::parse(line)? {
            Command::Quit(code) => return Ok(Flow::Leave(code)),
            Command::Include { file, beside } => return self.include(&file, beside, origin),
            Command::Help => self.write(&command::help())?,
            Command::Echo { text, newline } => self.write(&(text + if newline { "\n" } else { "" }))?,
            Command::Record(file) => self.record(file)?,
            Command::Describe(None) => self.list()?,
            Command::Describe(Some(name)) => self.run_internal(&format!("DESCRIBE {name}"))?,
            Command::Timing(on) => {
                self.settings.timing = on.unwrap_or(!self.settings.timing);
                self.confirm(&format!("timing is {}", if self.settings.timing { "on" } else { "off" }));
            }
            Command::Expanded(to) => {
                let turned = if self.settings.expanded == Expanded::Off { Expanded::On } else { Expanded::Off };
                self.settings.expanded = to.unwrap_or(turned);
                self.confirm(&format!("expanded is {}", self.settings.expanded.name()));
            }
            Command::Format(Some(format)) => {
                self.settings.format = format;
                self.session.set_console_format(format.name());
                self.confirm(&format!("format is {format}"));
            }
            Command::Format(None) => {
                let PrintSettings { format, expanded, timing, .. } = self.settings;
                let timing = if timing { "on" } else { "off" };
                self.write(&format!("format   {format}\nexpanded {}\ntiming   {timing}\n", expanded.name()))?;
            }
        }
        Ok(Flow::Next)
    }

    fn include(&mut self, file: &str, beside: bool, origin: Origin<'_>) -> Result<Flow> {
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

    /// `\d`: everything there is.
    fn list(&mut self) -> Result<()> {
        let mut found = false;
        for kind in ["STREAMS", "TABLES", "VIEWS", "SINKS", "QUERIES"] {
            let _foreground = self.ending.foreground("\\d");
            let statement = parse_one(&format!("SHOW {kind}"), Location { line: 1, column: 1 })?;
            let Answer::Rows { schema, rows, notices } = self.session.execute(&statement)? else {
                return Err(Error::internal(format!("SHOW {kind} answered no rows")));
            };
            let batches = rows.filter(|batch| batch.as_ref().map_or(true, |batch| batch.num_rows() > 0));
            let batches = batches.collect::<Result<Vec<_>>>()?;
            if !batches.is_empty() {
                found = true;
                self.confirm(&kind.to_lowercase());
                let rows = Box::new(batches.into_iter().map(Ok));
                self.print(Answer::Rows { schema, rows, notices }, false, &Stopwatch::start())?;
            }
        }
        if !found {
            self.confirm("nothing is created yet");
        }
        Ok(())
    }

    /// Runs a statement that a command stands for. Its places mean nothing in the line that was written.
    fn run_internal(&mut self, sql: &str) -> Result<()> {
        let mut outcome = self.run_statement(sql, Location { line: 1, column: 1 });
        if let Err(Error::InvalidInput { span, .. } | Error::Unsupported { span, .. }) = &mut outcome {
            *span = None;
        }
        outcome
    }

    fn write(&self, text: &str) -> Result<()> {
        let mut out = self.output.lock();
        let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        written.map_err(|error| Error::io("can't write", &error))
    }

    fn confirm(&self, line: &str) {
        if !self.settings.quiet {
            say(line);
        }
    }
}
