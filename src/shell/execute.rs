//! One statement: its variables replaced, run, printed, and remembered.

use super::answer::Printer;
use super::last::{self, Keeper, LastResult};
use super::output::say;
use super::progress_bar::Progress;
use super::record;
use super::runner::Shell;
use super::settings::PrintSettings;
use super::terminal::Screen;
use super::turns::Turn;
use super::variables::bind;
use crate::clock::Stopwatch;
use crate::display::row_texts;
use crate::error::{Error, Location, Result};
use crate::parser::{ParsedStatement, Statement, parse_one};
use crate::session::Answer;

/// Where a statement begins whose places nobody counts.
const START: Location = Location { line: 1, column: 1 };

/// The text of each value of a result, row by row; `None` is NULL.
pub(super) type Texts = Vec<Vec<Option<String>>>;

impl Shell {
    /// Runs a statement that begins at `at` and prints its answer.
    pub(super) fn run_statement(&mut self, text: &str, at: Location) -> Result<()> {
        self.last.statement = Some(text.to_string());
        let outcome = self.try_statement(text, at);
        let closed = self.once.take().map_or(Ok(()), super::redirect::Redirect::close);
        let outcome = outcome.and_then(|rows| closed.map(|()| rows));
        self.tell(outcome.as_ref().map(|rows| *rows));
        outcome.map(|_| ())
    }

    fn try_statement(&mut self, text: &str, at: Location) -> Result<u64> {
        let watch = Stopwatch::start();
        let text = self.ready(text, at)?;
        let statement = parse_one(&text, at)?;
        let as_they_come = matches!(statement.statement, Statement::Watch { .. });
        let ending = self.ending.clone();
        let _foreground = ending.foreground(&text);
        let progress = self.progress_of(&statement);
        let answer = self.execute(&statement).map_err(|error| self.last.result.explain(error));
        let answer = match progress {
            Some(progress) => answer.map(|answer| progress.until_shown(answer, self.shows_rows_as_they_come())),
            None => answer,
        };
        if as_they_come {
            return self.print(answer?, true, &watch);
        }
        let rows = self.print_and_record(&text, answer, &watch)?;
        self.view_started(&statement).map(|()| rows)
    }

    /// Prints an answer, and writes it to the recording, if there is one.
    fn print_and_record(&mut self, text: &str, answer: Result<Answer>, watch: &Stopwatch) -> Result<u64> {
        if self.recording.is_none() {
            return self.print_and_keep(answer?, watch);
        }
        let outcome = answer.and_then(|answer| {
            let (answer, heard) = record::hear(answer);
            self.print_and_keep(answer, watch).map(|rows| (rows, heard))
        });
        let (outcome, heard) = match outcome {
            Ok((rows, heard)) => (Ok(rows), Some(heard)),
            Err(error) => (Err(error), None),
        };
        if let Some(recording) = &mut self.recording {
            // What can't be a record is no reason to end a script.
            let heard = heard.ok_or(outcome.as_ref().err());
            if let Some(why) = record::keep(recording, text, heard)? {
                say(&why);
            }
        }
        outcome
    }

    /// Runs a statement and keeps its rows as the last result, without printing them.
    ///
    /// # Errors
    /// It fails, or answers no rows.
    pub(super) fn run_unprinted(&mut self, text: &str, at: Location) -> Result<()> {
        self.last.statement = Some(text.to_string());
        let outcome = self.try_unprinted(text, at);
        self.tell(outcome.as_ref().map(|rows| *rows));
        outcome.map(|_| ())
    }

    fn try_unprinted(&mut self, text: &str, at: Location) -> Result<u64> {
        let text = self.ready(text, at)?;
        let statement = parse_one(&text, at)?;
        let ending = self.ending.clone();
        let _foreground = ending.foreground(&text);
        let _progress = self.progress_of(&statement);
        let answer = self.session.execute(&statement).map_err(|error| self.last.result.explain(error))?;
        let (answer, keeper) = last::keep(answer);
        let (Answer::Rows { rows, .. }, Some(keeper)) = (answer, keeper) else {
            return Err(Error::invalid("the statement answers no rows"));
        };
        let cancel = self.session.cancel_token();
        let mut count = 0;
        for batch in rows {
            if cancel.is_cancelled() {
                return Err(Error::Cancelled { message: "cancelled".to_string() });
            }
            count += batch?.num_rows() as u64;
        }
        self.remember(keeper)?;
        Ok(count)
    }

    /// The bar of a statement that takes its time.
    fn progress_of(&self, statement: &ParsedStatement) -> Option<Progress> {
        self.turns.as_ref().and_then(|turns| Progress::begin(&self.session, turns, &statement.statement))
    }

    /// Whether the first rows of a result are on the terminal before the last are there.
    fn shows_rows_as_they_come(&self) -> bool {
        let redirected = self.once.is_some() || self.redirect.is_some();
        let (format, _) = self.settings.look(Some(Screen::now()));
        self.output.is_terminal && !redirected && !format.is_for_people()
    }

    /// Runs a statement and answers the values of its rows, of which there may be so many.
    ///
    /// # Errors
    /// It fails, answers no rows, or more than `most`.
    pub(super) fn texts(&mut self, text: &str, at: Location, most: usize) -> Result<(Vec<String>, Texts)> {
        self.last.statement = Some(text.to_string());
        let outcome = self.try_texts(text, at, most);
        self.tell(outcome.as_ref().map(|(_, texts)| texts.len() as u64));
        outcome
    }

    fn try_texts(&mut self, text: &str, at: Location, most: usize) -> Result<(Vec<String>, Texts)> {
        let text = self.ready(text, at)?;
        let statement = parse_one(&text, at)?;
        let ending = self.ending.clone();
        let _foreground = ending.foreground(&text);
        let answer = self.session.execute(&statement).map_err(|error| self.last.result.explain(error))?;
        let Answer::Rows { schema, rows, .. } = answer else {
            return Err(Error::invalid("the statement answers no rows"));
        };
        let mut texts = Vec::new();
        for batch in rows {
            texts.extend(row_texts(&batch?)?);
            if texts.len() > most {
                let rows = if most == 1 { "row was" } else { "rows were" };
                return Err(Error::invalid(format!("more than {most} {rows} answered")));
            }
        }
        Ok((schema.fields().iter().map(|field| field.name().clone()).collect(), texts))
    }

    /// A statement that is parsed and not run.
    ///
    /// # Errors
    /// It is none.
    pub(super) fn parsed(&mut self, text: &str, at: Location) -> Result<ParsedStatement> {
        self.session.cancel_token().clear();
        let text = self.ready(text, at)?;
        parse_one(&text, at)
    }

    /// Runs a statement that a command stands for. Its places mean nothing in the line that was written.
    pub(super) fn run_internal(&mut self, sql: &str) -> Result<()> {
        self.internal(sql).map_err(without_place)
    }

    fn internal(&mut self, sql: &str) -> Result<()> {
        self.show_hidden(sql);
        let watch = Stopwatch::start();
        let statement = parse_one(sql, START)?;
        let as_they_come = matches!(statement.statement, Statement::Watch { .. });
        let ending = self.ending.clone();
        let _foreground = ending.foreground(sql);
        let answer = self.execute(&statement);
        match self.recording {
            Some(_) if !as_they_come => self.print_and_record(sql, answer, &watch).map(|_| ()),
            _ => self.print(answer?, as_they_come, &watch).map(|_| ()),
        }
    }

    /// The answer of a statement that a command stands for, to be looked at before it is printed.
    ///
    /// # Errors
    /// It fails.
    pub(super) fn ask(&mut self, sql: &str) -> Result<Answer> {
        self.show_hidden(sql);
        let ending = self.ending.clone();
        let _foreground = ending.foreground(sql);
        parse_one(sql, START).and_then(|statement| self.session.execute(&statement)).map_err(without_place)
    }

    /// Prints an answer; says how many rows it had or changed.
    pub(super) fn print(&self, answer: Answer, as_they_come: bool, watch: &Stopwatch) -> Result<u64> {
        let cancel = self.session.cancel_token();
        let redirect = self.once.as_ref().or(self.redirect.as_ref());
        // In a file nobody looks for a footer.
        let unattended = redirect.map(|_| PrintSettings { attended: false, ..self.settings.clone() });
        let printer = Printer {
            settings: unattended.as_ref().unwrap_or(&self.settings),
            output: redirect.map_or(&self.output, |redirect| &redirect.output),
            cancel: &cancel,
            environment: &self.environment,
        };
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

    /// Prints a text of the shell's own, through the pager where it is long.
    pub(super) fn print_text(&self, text: &str) -> Result<()> {
        self.session.cancel_token().clear();
        self.print(Answer::Text(text.to_string()), false, &Stopwatch::start()).map(|_| ())
    }

    pub(super) fn print_and_keep(&mut self, answer: Answer, watch: &Stopwatch) -> Result<u64> {
        let (answer, keeper) = last::keep(answer);
        let rows = self.print(answer, false, watch)?;
        keeper.map_or(Ok(()), |keeper| self.remember(keeper))?;
        Ok(rows)
    }

    /// Makes what was kept the table `_`.
    fn remember(&mut self, keeper: Keeper) -> Result<()> {
        self.last.result = keeper.finish();
        self.last.crossed = None;
        self.session.keep_result(match &self.last.result {
            LastResult::Kept(schema, batches) => Some((schema, batches)),
            _ => None,
        })
    }

    /// The text as it is run: variables replaced, values bound; shown where that was asked for.
    pub(super) fn ready(&mut self, text: &str, at: Location) -> Result<String> {
        let mut ready = self.variables.substitute(text).unwrap_or_else(|| text.to_string());
        // Places are counted in what is run, from where it began.
        let source = |ready: &str| {
            let lines = "\n".repeat(at.line.saturating_sub(1) as usize);
            let blanks = " ".repeat(at.column.saturating_sub(1) as usize);
            Some(format!("{lines}{blanks}{ready}")).filter(|_| ready != text)
        };
        if let Some(texts) = self.bound.take() {
            self.source = source(&ready).or(self.source.take());
            ready = bind(&ready, &texts, at)?;
        }
        self.source = source(&ready).or(self.source.take());
        if self.variables.get("ECHO") == Some("queries") {
            self.write(&format!("{ready};\n"))?;
        }
        Ok(ready)
    }

    /// Sets the variables that tell how the last statement went.
    pub(super) fn tell(&mut self, outcome: std::result::Result<u64, &Error>) {
        self.variables.tell("ERROR", if outcome.is_ok() { "false" } else { "true" });
        self.variables.tell("ROW_COUNT", &outcome.unwrap_or(0).to_string());
        if let Err(error) = outcome {
            self.variables.tell("LAST_ERROR_CODE", error.code());
            self.variables.tell("LAST_ERROR_MESSAGE", &error.to_string());
        }
    }

    fn show_hidden(&self, sql: &str) {
        if self.variables.is_on("ECHO_HIDDEN") == Some(true) {
            say(&format!("-- {sql}"));
        }
    }
}

fn without_place(mut error: Error) -> Error {
    if let Error::InvalidInput { span, .. } | Error::Unsupported { span, .. } = &mut error {
        *span = None;
    }
    error
}
