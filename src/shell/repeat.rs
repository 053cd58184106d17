//! `\watch`: a statement that is run again and again, in place where somebody looks at a terminal, and below each other elsewhere.

use std::time::Duration;

use super::live::{Repeated, Rounds, Shown};
use super::pager::Paging;
use super::runner::Shell;
use super::settings::PrintSettings;
use super::terminal::Screen;
use crate::clock::Stopwatch;
use crate::display::Format;
use crate::error::{Error, Location, Result};
use crate::parser::{ParsedStatement, Show, Statement, parse_one};
use crate::session::Answer;

/// How often a wait looks whether it is to end.
const GLANCE: Duration = Duration::from_millis(10);

impl Shell {
    /// Runs a statement that begins at `at` so often as was asked for.
    pub(super) fn repeat(&mut self, text: &str, at: Location, rounds: &Rounds) -> Result<()> {
        if rounds.times == 0 {
            return Ok(());
        }
        let bound = self.bound.clone();
        if self.can_repeat_in_place() {
            let ready = self.ready(text, at);
            match ready.and_then(|ready| parse_one(&ready, at).map(|statement| (ready, statement))) {
                Ok((ready, statement)) if has_no_view(&statement) => {
                    return self.look(text, &ready, &statement, rounds);
                }
                Ok(_) => {}
                Err(error) => {
                    self.last.statement = Some(text.to_string());
                    self.tell(Err(&error));
                    return Err(error);
                }
            }
        }
        let mut run = 0;
        loop {
            // Each run has its values.
            self.bound.clone_from(&bound);
            self.run_statement(text, at)?;
            run += 1;
            let rows = self.variables.get("ROW_COUNT").and_then(|count| count.parse().ok()).unwrap_or(0);
            if rounds.is_last(run, rows) || !self.wait(rounds.every) {
                return Ok(());
            }
        }
    }

    /// Whether results go to a terminal that somebody looks at, as tables, and into nothing else.
    fn can_repeat_in_place(&self) -> bool {
        let (format, _) = self.settings.look(Some(Screen::now()));
        let table = matches!(format, Format::Table | Format::Ascii | Format::Column);
        let elsewhere = self.redirect.is_some() || self.once.is_some() || self.recording.is_some();
        table && !elsewhere && self.has_views()
    }

    /// Runs it in place, and prints what the last run has answered.
    fn look(&mut self, text: &str, ready: &str, statement: &ParsedStatement, rounds: &Rounds) -> Result<()> {
        self.last.statement = Some(text.to_string());
        let ending = self.ending.clone();
        let outcome = {
            let _foreground = ending.foreground(ready);
            self.repeat_in_place(statement, ready, rounds)
        };
        let outcome = outcome.and_then(|repeated| self.show_last(repeated, rounds));
        self.tell(outcome.as_ref().map(|rows| *rows));
        outcome.map(|_| ())
    }

    fn show_last(&mut self, repeated: Repeated, rounds: &Rounds) -> Result<u64> {
        let rows = repeated.last.as_ref().map_or(0, Shown::rows);
        if let Some(last) = repeated.last {
            let before = self.settings.clone();
            // It took its time before; and nobody who leaves a view wants another one.
            self.settings = PrintSettings { timing: false, pager: Paging::Off, ..before.clone() };
            let printed = self.print_and_keep(answer(last, repeated.notices), &Stopwatch::start());
            self.settings = before;
            printed?;
            let runs = if repeated.runs == 1 { "1 run".to_string() } else { format!("{} runs", repeated.runs) };
            self.confirm(&format!("{runs}, every {} s", rounds.every.as_secs_f64()));
        }
        match repeated.failed {
            // By who left.
            None | Some(Error::Cancelled { .. }) => Ok(rows),
            Some(error) => Err(self.last.result.explain(error)),
        }
    }

    /// Waits; answers whether the time has passed, and nobody has cancelled.
    fn wait(&self, interval: Duration) -> bool {
        let (watch, cancel) = (Stopwatch::start(), self.session.cancel_token());
        while watch.elapsed() < interval {
            self.ending.check();
            if cancel.is_cancelled() {
                return false;
            }
            std::thread::sleep(GLANCE.min(interval));
        }
        true
    }
}

/// Whether a statement is not one that shows something in place itself.
fn has_no_view(statement: &ParsedStatement) -> bool {
    !matches!(
        statement.statement,
        Statement::Watch { .. } | Statement::StartQuery(_) | Statement::Show(Show::ProgressLive)
    )
}

fn answer(shown: Shown, notices: Vec<String>) -> Answer {
    match shown {
        Shown::Rows(schema, batches) => Answer::Rows { schema, rows: Box::new(batches.into_iter().map(Ok)), notices },
        Shown::Text(text) => Answer::Text(text),
        Shown::Done(tag) => Answer::Done { tag, notices },
    }
}
