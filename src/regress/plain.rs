//! A record of sqllogictest's own: run by the crate, and held against what it expects.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::executor::block_on;
use sqllogictest::{
    Condition, Control, ExpectedError, QueryExpect, Record, RecordOutput, ResultMode, SortMode, StatementExpect,
};

use super::answer::Failure;
use super::compare;
use super::complete;
use super::place::Place;
use super::program;
use super::report::{Edit, Fault};
use super::run::{FileRun, NAME_IN_REGEX};
use super::script::{Node, on_one_connection};
use super::substitute::Variables;
use super::values::{Letter, Style, letters};
use crate::parser::Splitter;

impl FileRun<'_> {
    /// Runs a record of the crate; whether it counts as one.
    ///
    /// # Errors
    /// What is not as it is expected.
    pub(super) fn plain(&mut self, node: &Node, record: Record<Letter>) -> Result<bool, Fault> {
        let mut record = on_one_connection(record);
        let replace = |variables: &Variables, text: &mut String| -> Result<(), Fault> {
            *text = variables.replace(text).map_err(Fault::text)?;
            Ok(())
        };
        let mut retry = None;
        match &mut record {
            Record::Control(Control::Substitution(on)) => {
                self.variables.on = *on;
                return Ok(false);
            }
            Record::Control(Control::SortMode(mode)) => self.sort_mode = Some(*mode),
            Record::Control(Control::ResultMode(mode)) => {
                self.result_mode = Some(*mode);
                return Ok(false);
            }
            Record::Statement { sql, retry: again, conditions, expected, .. } => {
                let skipped = self.skips(conditions);
                if let StatementExpect::Error(error) = expected {
                    *error = self.in_round(error)?;
                    if let (Err(why), false) = (self.variables.replace(sql), skipped) {
                        return self.unnamed(error, why);
                    }
                }
                replace(&self.variables, sql)?;
                if !skipped {
                    self.refuse_uncrossed(sql)?;
                    if !matches!(expected, StatementExpect::Ok) {
                        one_statement(node, sql)?;
                    }
                }
                retry = again.clone();
            }
            Record::Query { sql, retry: again, conditions, expected, .. } => {
                let skipped = self.skips(conditions);
                if let QueryExpect::Error(error) = expected
                    && let (Err(why), false) = (self.variables.replace(sql), skipped)
                {
                    let error = self.in_round(error)?;
                    return self.unnamed(&error, why);
                }
                replace(&self.variables, sql)?;
                if !skipped {
                    one_statement(node, sql)?;
                }
                match expected {
                    // The crate replaces no names in rows.
                    QueryExpect::Results { results, .. } if self.world.style == Style::Plain => {
                        results.iter_mut().for_each(|line| *line = self.variables.rounds(line));
                    }
                    QueryExpect::Results { results, .. } => {
                        results.iter_mut().try_for_each(|line| replace(&self.variables, line))?;
                    }
                    QueryExpect::Error(error) => *error = self.in_round(error)?,
                }
                retry = again.clone();
            }
            Record::Let { sql, conditions, .. } => {
                replace(&self.variables, sql)?;
                if !self.skips(conditions) {
                    one_statement(node, sql)?;
                }
            }
            Record::System { command, retry: again, .. } => {
                *command = self.variables.replace_in_command(command).map_err(Fault::text)?;
                retry = again.clone();
            }
            Record::Sleep { duration, .. } => {
                // The guard says when it was too long.
                self.guard.pass(*duration);
                return Ok(false);
            }
            _ => {}
        }
        let mut left = retry.as_ref().map_or(0, |retry| retry.attempts);
        loop {
            if let Record::System { conditions, command, stdout, .. } = &record {
                match self.system(conditions, command, stdout.as_deref()) {
                    Err(_) if left > 0 && !self.guard.is_over() => {}
                    judged => return judged,
                }
                left -= 1;
                self.guard.pass(retry.as_ref().map_or(Duration::ZERO, |retry| retry.backoff));
                continue;
            }
            self.world.raw.store(matches!(record, Record::Let { .. }), Ordering::SeqCst);
            let output = block_on(self.runner.apply_record(record.clone()));
            self.world.raw.store(false, Ordering::SeqCst);
            match self.judge(node, &record, output) {
                Err(_) if left > 0 && !self.guard.is_over() => {
                    left -= 1;
                    self.guard.pass(retry.as_ref().map_or(Duration::ZERO, |retry| retry.backoff));
                }
                judged => return judged,
            }
        }
    }

    /// A name in SQL stands for nothing: the error that a record expects, where it says which it expects. One that takes any error
    /// has tested nothing; in plain files it passes, as sqllogictest has it.
    fn unnamed(&self, expected: &ExpectedError, why: String) -> Result<bool, Fault> {
        match (expected, self.world.style) {
            (ExpectedError::Empty, Style::Exact) => Err(Fault::text(why)),
            _ => fails(expected, &Failure::new(why)),
        }
    }

    /// An error as it is expected in the round that runs.
    fn in_round(&self, error: &ExpectedError) -> Result<ExpectedError, Fault> {
        let one = |text: &str| self.variables.rounds(text);
        Ok(match error {
            ExpectedError::Inline(regex) => {
                let named = regex.as_str().replace(NAME_IN_REGEX, "${");
                let replaced = one(&named);
                match replaced == named {
                    true => error.clone(),
                    false => ExpectedError::Inline(
                        regex::Regex::new(&replaced)
                            .map_err(|e| Fault::text(format!("this is no regular expression: {e}")))?,
                    ),
                }
            }
            ExpectedError::Multiline(text) => ExpectedError::Multiline(one(text)),
            other => other.clone(),
        })
    }

    /// Runs a command and holds what it prints against what is expected.
    fn system(&mut self, conditions: &[Condition], command: &str, stdout: Option<&str>) -> Result<bool, Fault> {
        if self.skips(conditions) {
            self.case().skipped += 1;
            return Ok(false);
        }
        let actual = program::system(command, &self.guard)?;
        let (Some(expected), Some(actual)) = (stdout, actual) else { return Ok(true) };
        let split = |text: &str| text.trim().lines().map(str::to_string).collect::<Vec<_>>();
        let (expected, actual) = (split(expected), split(&actual));
        match expected == actual {
            true => Ok(true),
            false => Err(Fault::lines("the output", &expected, &actual).edit(Edit::Block(actual))),
        }
    }

    /// Holds what came of a record against what it expects; whether the record counts as one that ran.
    fn judge(&mut self, node: &Node, record: &Record<Letter>, output: RecordOutput<Letter>) -> Result<bool, Fault> {
        let failure = |error: &Arc<dyn std::error::Error + Send + Sync>| {
            let failure = (&**error as &dyn std::error::Error).downcast_ref::<Failure>().cloned();
            failure.unwrap_or_else(|| Failure::new(error.to_string()))
        };
        match (record, output) {
            (Record::Statement { .. } | Record::Query { .. } | Record::Let { .. }, RecordOutput::Nothing) => {
                self.case().skipped += 1;
                Ok(false)
            }
            (Record::Statement { expected, .. }, RecordOutput::Query { rows, error, .. }) => {
                statement(expected, error.as_ref().map(failure), rows.len() as u64)
            }
            (Record::Statement { expected, .. }, RecordOutput::Statement { count, error }) => {
                statement(expected, error.as_ref().map(failure), count)
            }
            (
                Record::Query { expected: QueryExpect::Error(expected), .. },
                RecordOutput::Query { error, .. } | RecordOutput::Statement { error, .. },
            ) => match error.as_ref().map(failure) {
                None => Err(Fault::text(format!("it should fail with {expected}, and it succeeded"))),
                Some(failure) => fails(expected, &failure),
            },
            (Record::Query { expected, loc, .. }, RecordOutput::Query { types, rows, error }) => match error {
                Some(error) => Err(failure(&error).into()),
                None => self.rows(node, expected, loc.line() as usize, types, rows),
            },
            (Record::Query { expected, loc, .. }, RecordOutput::Statement { error, .. }) => match error {
                Some(error) => Err(failure(&error).into()),
                None => self.rows(node, expected, loc.line() as usize, Vec::new(), Vec::new()),
            },
            (Record::Let { variables, .. }, RecordOutput::Let { values, error, .. }) => {
                if let Some(error) = error {
                    return Err(Fault::text(error.to_string()));
                }
                for (name, value) in variables.iter().zip(values) {
                    self.variables.set(name, value);
                }
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    fn rows(
        &mut self,
        node: &Node,
        expected: &QueryExpect<Letter>,
        line: usize,
        types: Vec<Letter>,
        rows: Vec<Vec<String>>,
    ) -> Result<bool, Fault> {
        let QueryExpect::Results { types: wanted, label, results, sort_mode, .. } = expected else { return Ok(true) };
        let exact = self.world.style == Style::Exact;
        let mut fault: Option<Fault> = None;
        if exact && !wanted.is_empty() && *wanted != types {
            let (wanted, types) = (letters(wanted), letters(&types));
            let word = node.head.split_whitespace().position(|word| word == wanted).unwrap_or(1);
            let shown = if types.is_empty() { "(none)".to_string() } else { types.clone() };
            let wrong = Fault::lines("the types of the columns", &[wanted], &[shown]);
            // Without types the word behind them would be taken for some.
            let stands = !types.is_empty() || node.head.split_whitespace().nth(word + 1).is_none();
            fault = Some(if stands { wrong.edit(Edit::Word(word, types)) } else { wrong });
        }
        let types_are_left = fault.as_ref().is_some_and(|fault| fault.left);
        let rows = match self.result_mode {
            Some(ResultMode::ValueWise) => rows.into_iter().flatten().map(|value| vec![value]).collect(),
            _ => rows,
        };
        let (mut results, mut names) = (results.clone(), Vec::new());
        let mut named = true;
        if let Some(label) = label {
            if exact && label == "colnames" {
                let shown = |name: &String| super::values::name(name, Style::Exact);
                names = vec![self.world.names().iter().map(shown).collect::<Vec<_>>().join(" ")];
                let first = if results.is_empty() { String::new() } else { results.remove(0) };
                named = first == names[0];
                if !named {
                    let other = Fault::lines("the names of the columns", &[first], &names);
                    fault = Some(fault.map_or(other.clone(), |fault| fault.and(other)));
                }
            } else {
                let place = Place::top(&self.report.file, None).at(line);
                let sort = sort_mode.or(self.sort_mode).unwrap_or(SortMode::NoSort);
                let now = Labelled { place, sort, rows: self.world.answered() };
                if let Some(before) = self.labelled.get(label) {
                    now.is_that_of(before, label)?;
                }
                self.labelled.insert(label.clone(), now);
            }
        }
        let same = compare::same(&results, &rows, self.world.style).map_err(Fault::text)?;
        if !(same && named) {
            let actual = compare::lines(&rows);
            match exact {
                true => names.extend(complete::with_patterns(&results, &rows)),
                false => names.extend(actual.clone()),
            }
            let other = match same {
                true => Fault::text(String::new()),
                false => Fault::lines("the rows", &results, &actual),
            };
            let other = match compare::unexpectable(&rows).filter(|_| !exact) {
                Some(why) => Fault { message: format!("{why}\n{}", other.message), ..other },
                None => other.edit(Edit::Block(names)),
            };
            fault = Some(match fault {
                Some(mut fault) => {
                    fault.left = types_are_left;
                    fault.and(other)
                }
                None => other,
            });
        }
        fault.map_or(Ok(true), Err)
    }
}

/// Of several statements only the last would be looked at.
fn one_statement(node: &Node, sql: &str) -> Result<(), Fault> {
    let mut texts = Splitter::new(sql);
    texts.next_text();
    match texts.next_text() {
        Some(Ok(second)) => {
            let line = node.place.line + second.span.start.line as usize;
            let first = second.text.lines().next().unwrap_or_default();
            Err(Fault::text(format!(
                "a second statement, in line {line}: {first}\nhelp: what is compared is one statement; statement ok takes several"
            )))
        }
        // What can't be read is for the statement itself to say.
        _ => Ok(()),
    }
}

/// Rows of a label, as they were answered: before they were sorted and hashed.
pub(super) struct Labelled {
    place: Place,
    sort: SortMode,
    rows: Vec<Vec<String>>,
}

impl Labelled {
    /// Holds them against those of an earlier record, in whatever order either of them leaves open.
    fn is_that_of(&self, before: &Labelled, label: &str) -> Result<(), Fault> {
        let any = |mode: SortMode| self.sort == mode || before.sort == mode;
        let sort = match (any(SortMode::ValueSort), any(SortMode::RowSort)) {
            (true, _) => SortMode::ValueSort,
            (_, true) => SortMode::RowSort,
            _ => SortMode::NoSort,
        };
        let lines = |of: &Labelled| compare::lines(&compare::sorted(of.rows.clone(), sort));
        let (expected, actual) = (lines(before), lines(self));
        if expected == actual {
            return Ok(());
        }
        let what = format!("the rows, and those of {}, which has the same label {label}", before.place);
        Err(Fault::lines(what, &expected, &actual))
    }
}

fn statement(expected: &StatementExpect, failure: Option<Failure>, count: u64) -> Result<bool, Fault> {
    match (expected, failure) {
        (StatementExpect::Error(expected), Some(failure)) => fails(expected, &failure),
        (StatementExpect::Error(expected), None) => {
            Err(Fault::text(format!("it should fail with {expected}, and it succeeded")))
        }
        (_, Some(failure)) => Err(failure.into()),
        (StatementExpect::Count(wanted), None) if *wanted != count => {
            let fault = Fault::text(format!("it should touch {wanted} rows, and it touched {count}"));
            Err(fault.edit(Edit::Word(2, count.to_string())))
        }
        _ => Ok(true),
    }
}

/// Whether a failure is the one that is expected.
fn fails(expected: &ExpectedError, failure: &Failure) -> Result<bool, Fault> {
    let same = match expected {
        ExpectedError::Empty => true,
        ExpectedError::Inline(regex) => regex.is_match(&failure.text),
        ExpectedError::Multiline(text) => text.trim() == failure.text.trim(),
        ExpectedError::SqlState(state) => failure.state == Some(state.as_str()),
    };
    if same {
        return Ok(true);
    }
    let lines = |text: &str| text.trim().lines().map(str::to_string).collect::<Vec<_>>();
    let mut actual = lines(&failure.text);
    if let (ExpectedError::SqlState(_), Some(state)) = (expected, failure.state) {
        actual.insert(0, format!("(sqlstate) {state}"));
    }
    Err(Fault::lines("the error", &lines(&expected.to_string()), &actual))
}
