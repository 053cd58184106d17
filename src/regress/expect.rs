//! Our records, run and judged.

use serde_json::Value;

use super::answer::{Failure, Outcome};
use super::compare;
use super::crash::Armed;
use super::inspect::{Seen, last_batches};
use super::matrix::Final;
use super::program;
use super::progress::same_value;
use super::record::{Feed, Own, Rows, StepHow, Which};
use super::report::{Edit, Fault};
use super::run::FileRun;
use super::script::Node;
use super::values::letters;
use super::world::{quoted, stop_sql, time_text};
use crate::checkpoint::failpoint::POINTS;
use crate::error::closest;

/// More batches than this and a query will not be idle.
const ENDLESS: u64 = 10_000;

impl FileRun<'_> {
    /// Runs a record of ours; whether it counts as one that tests something.
    ///
    /// # Errors
    /// What is not as it is expected.
    pub(super) fn own(&mut self, node: &Node, own: Own) -> Result<bool, Fault> {
        let tests = !matches!(own, Own::Require(_));
        self.judge_own(node, own).map(|()| tests)
    }

    fn judge_own(&mut self, node: &Node, own: Own) -> Result<(), Fault> {
        match own {
            Own::ClockSet(time) => self.clock(&format!("ADVANCE CLOCK TO TIMESTAMP '{time}'")),
            Own::ClockAdvance(by) => self.clock(&format!("ADVANCE CLOCK BY INTERVAL '{by}'")),
            Own::Feed { stream, what, error } => {
                let fed = self.feed(&stream, &what);
                self.shown.fed |= fed.is_ok() && !matches!(what, Feed::Close);
                match (fed, error) {
                    (fed, None) => Ok(fed?),
                    (Ok(()), Some(error)) => {
                        Err(Fault::text(format!("the rows should be refused with /{error}/, and they were taken")))
                    }
                    (Err(failure), Some(error)) => found(&error, &failure.text),
                }
            }
            Own::Step { query, how, rows } => self.step(node, &query, &how, rows.as_ref()),
            Own::Emitted { query, which, rows } => {
                let seen = self.world.emitted_in(&query, which)?;
                if which == Which::All {
                    self.shown.finals.insert(Final::Query(query));
                }
                self.check_rows(node, &rows, seen)
            }
            Own::Progress { query, batch, checks } => self.progress(&query, batch, &checks),
            Own::Watermark { query, expected } => {
                let actual = self.world.query(&query)?.watermark().map(time_text);
                let (expected, actual) = (expected.unwrap_or("none".into()), actual.unwrap_or("none".into()));
                match same_value(&expected, &Value::from(actual.clone())) {
                    true => Ok(()),
                    false => Err(Fault::lines(
                        format!("the watermark of query {query}"),
                        &[expected],
                        std::slice::from_ref(&actual),
                    )
                    .edit(Edit::Word(2, actual))),
                }
            }
            Own::State { query, operator, rows } => {
                let seen = self.world.state(&query, operator.as_deref())?;
                self.check_rows(node, &rows, seen)
            }
            Own::Sink { name, rows } => {
                let seen = self.world.committed(&name)?;
                self.shown.finals.insert(Final::Sink(name));
                self.check_rows(node, &rows, seen)
            }
            Own::Checkpoint(query) => self.is_committed(&query),
            Own::Stop { query, how } => {
                self.world.execute(&stop_sql(&query, how))?;
                Ok(())
            }
            Own::RestartQuery { query, from } => {
                let missed = self.crashes.restarted(&self.world, Some(&query));
                self.world.restart_query(&query, from.as_deref())?;
                missed.map_or(Ok(()), |missed| Err(Fault::text(missed)))
            }
            Own::RestartEngine { wipe } => {
                let missed = self.crashes.restarted(&self.world, None);
                self.world.restart(wipe)?;
                missed.map_or(Ok(()), |missed| Err(Fault::text(missed)))
            }
            Own::Crash { point, hit, action } => {
                if !POINTS.contains(&point.as_str()) {
                    let near = closest(&point, POINTS.iter().copied()).map(|near| format!("; did you mean {near}?"));
                    let near = near.unwrap_or_default();
                    return Err(Fault::text(format!(
                        "there is no failpoint {point}{near} (SHOW FAILPOINTS lists them)"
                    )));
                }
                self.crashes.add(node, Armed { point, hit, action }).map_err(Fault::text)
            }
            Own::Plan { query, of, lines } => {
                let plan = self.world.without_folder(&self.world.explained(&query, of)?);
                let actual: Vec<String> = plan.lines().map(str::to_string).collect();
                match actual == lines {
                    true => Ok(()),
                    false => Err(Fault::lines(format!("what EXPLAIN says of query {query}"), &lines, &actual)
                        .edit(Edit::Block(actual))),
                }
            }
            Own::Program(program) => {
                let ended = program::run(
                    &program,
                    self.world.folder(),
                    self.options.patience,
                    &self.guard,
                    self.options.pictures.as_deref(),
                )?;
                program::check(&program, ended)
            }
            Own::Require(what) => self.require(&what),
        }
    }

    fn clock(&mut self, sql: &str) -> Result<(), Fault> {
        self.world.execute(sql)?;
        Ok(())
    }

    /// Runs batches and compares what they gave out; then looks whether what was armed for it was reached.
    fn step(&mut self, node: &Node, query: &str, how: &StepHow, rows: Option<&Rows>) -> Result<(), Fault> {
        self.crashes.arm(&self.world, query)?;
        let armed = self.world.armed(query).len();
        let done = self.run_step(node, query, how, rows, armed);
        match (self.crashes.stepped(&self.world, query), done) {
            (None, done) => done,
            (Some(missed), Ok(())) => Err(Fault::text(missed)),
            (Some(missed), Err(fault)) => Err(Fault { message: format!("{missed}\n{}", fault.message), ..fault }),
        }
    }

    fn run_step(
        &mut self,
        node: &Node,
        query: &str,
        how: &StepHow,
        rows: Option<&Rows>,
        armed: usize,
    ) -> Result<(), Fault> {
        let ended = self.world.ended(query);
        if let Some(why) = ended {
            return Err(Fault::text(why));
        }
        let ran = match how {
            StepHow::Batches(n) => match self.step_batches(query, *n)? {
                ran if ran < *n => {
                    return Err(Fault::text(format!(
                        "{ran} of {n} batches were due: query {query} has nothing more to do"
                    )));
                }
                ran => ran,
            },
            StepHow::UntilIdle => self.until_idle(query)?,
            StepHow::Idle => match self.step_batches(query, 1)? {
                0 => return Ok(()),
                _ => {
                    let seen = self.world.emitted_in(query, Which::Last)?;
                    let lines = compare::lines(&seen.rows);
                    return Err(Fault::lines(
                        format!("query {query} should have nothing to do, and it ran a batch"),
                        &[],
                        &lines,
                    ));
                }
            },
            StepHow::Crashed => {
                return match self.step_batches(query, 1) {
                    Err(_) if self.world.armed(query).len() < armed => Ok(()),
                    Err(failure) => Err(Fault::text(format!(
                        "it should crash, and it failed by itself, at no failpoint: step {query} error REGEX expects that\n{}",
                        failure.text
                    ))),
                    Ok(0) => Err(Fault::text("it should crash, and there was no batch to run")),
                    Ok(_) => Err(Fault::text("it should crash, and the batch ran to its end")),
                };
            }
            StepHow::Error(error) => {
                return match self.step_batches(query, 1) {
                    Err(failure) => found(error, &failure.text),
                    Ok(0) => Err(Fault::text(format!("it should fail with /{error}/, and there was no batch to run"))),
                    Ok(_) => Err(Fault::text(format!("it should fail with /{error}/, and the batch ran to its end"))),
                };
            }
        };
        let Some(rows) = rows else { return Ok(()) };
        let batches = last_batches(self.world.query(query)?.last_batch(), ran);
        let seen = self.world.emitted(query, |batch| batches.contains(&batch))?;
        self.check_rows(node, rows, seen)
    }

    /// Runs so many batches, fewer where fewer are due; answers how many.
    pub(super) fn step_batches(&self, query: &str, batches: u64) -> Result<u64, Failure> {
        match self.world.execute(&format!("STEP QUERY {} {batches} BATCHES", quoted(query)))? {
            Outcome::Done(ran) => Ok(ran),
            Outcome::Rows { .. } => Ok(0),
        }
    }

    /// Runs batches as long as any is due; answers how many.
    pub(super) fn until_idle(&self, query: &str) -> Result<u64, Failure> {
        let mut ran = 0;
        while self.step_batches(query, 1)? > 0 {
            ran += 1;
            if self.guard.is_over() {
                return Err(Failure::new(format!("query {query} is not idle after {ran} batches")));
            }
            if ran == ENDLESS {
                return Err(Failure::new(format!("query {query} is not idle after {ENDLESS} batches")));
            }
        }
        Ok(ran)
    }

    /// Holds rows against what is expected of them.
    pub(super) fn check_rows(&self, node: &Node, expected: &Rows, seen: Seen) -> Result<(), Fault> {
        let mut fault: Option<Fault> = None;
        if let Some(types) = expected.types.as_ref().filter(|types| **types != seen.types) {
            let (types, actual) = (letters(types), letters(&seen.types));
            // Behind the record's name and the query's, which may be the same letters.
            let words = node.head.split_whitespace().enumerate().skip(2);
            let at = words.filter(|(_, word)| *word == types).map(|(at, _)| at).next();
            let wrong = Fault::lines("the types of the columns", &[types], std::slice::from_ref(&actual));
            fault = Some(match at {
                Some(at) => wrong.edit(Edit::Word(at, actual)),
                None => wrong,
            });
        }
        let mut lines = expected.lines.clone();
        let mut written = Vec::new();
        let mut other: Option<Fault> = None;
        if expected.names {
            let names = seen.names.join(" ");
            let first = if lines.is_empty() { String::new() } else { lines.remove(0) };
            written.push(names.clone());
            if first != names {
                other = Some(Fault::lines("the names of the columns", &[first], &[names]));
            }
        }
        let rows = compare::sorted(seen.rows, expected.sort);
        if !compare::same(&lines, &rows, self.world.style).map_err(Fault::text)? {
            let wrong = Fault::lines("the rows", &lines, &compare::lines(&rows));
            other = Some(other.map_or(wrong.clone(), |other| other.and(wrong)));
        }
        if let Some(other) = other {
            written.extend(super::complete::with_patterns(&lines, &rows));
            let other = other.edit(Edit::Block(written));
            fault = Some(fault.map_or(other.clone(), |fault| fault.and(other)));
        }
        fault.map_or(Ok(()), Err)
    }

    /// Everything that a query has done is on disk.
    fn is_committed(&self, query: &str) -> Result<(), Fault> {
        let handle = self.world.query(query)?;
        let Some(last) = handle.last_batch() else {
            return Err(Fault::text(format!("query {query} has run no batch, so there is nothing to keep")));
        };
        let commits = self.world.checkpoint(query).join("commits").join(last.to_string());
        match commits.exists() || !self.world.checkpoint(query).exists() {
            true => Ok(()),
            false => Err(Fault::text(format!(
                "batch {last} of query {query} is not committed: {} is missing",
                commits.display()
            ))),
        }
    }
}

/// Whether an expression is found in an error.
fn found(error: &regex::Regex, text: &str) -> Result<(), Fault> {
    match error.is_match(text) {
        true => Ok(()),
        false => Err(Fault::lines(
            "the error",
            &[format!("/{error}/")],
            &text.lines().map(str::to_string).collect::<Vec<_>>(),
        )),
    }
}
