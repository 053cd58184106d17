//! Our records, run and judged.

use serde_json::Value;

use super::answer::{Failure, Outcome};
use super::compare;
use super::inspect::{Seen, last_batches, value_of};
use super::record::{Check, CheckOp, Feed, Own, Rows, StepHow};
use super::report::{Fault, Rewrite};
use super::run::FileRun;
use super::script::Node;
use super::values::letters;
use super::world::{quoted, time_text};
use crate::checkpoint::failpoint::{Action, POINTS};
use crate::error::closest;

/// What the error of a failpoint begins with.
const FAILPOINT: &str = "failpoint ";
/// More batches than this and a query will not be idle.
const ENDLESS: u64 = 10_000;

/// A failpoint that the next step arms.
#[derive(Debug, Clone)]
pub struct Armed {
    pub point: String,
    pub hit: u64,
    pub action: Action,
}

impl FileRun<'_> {
    /// Runs a record of ours.
    ///
    /// # Errors
    /// What is not as it is expected.
    pub(super) fn own(&mut self, node: &Node, own: Own) -> Result<(), Fault> {
        match own {
            Own::ClockSet(time) => self.clock(&format!("ADVANCE CLOCK TO TIMESTAMP '{time}'")),
            Own::ClockAdvance(by) => self.clock(&format!("ADVANCE CLOCK BY INTERVAL '{by}'")),
            Own::Feed { stream, what, error } => {
                let fed = self.feed(&stream, &what);
                match (fed, error) {
                    (fed, None) => Ok(fed?),
                    (Ok(()), Some(error)) => {
                        Err(Fault::text(format!("the rows should be refused with /{error}/, and they were taken")))
                    }
                    (Err(failure), Some(error)) => found(&error, &failure.text),
                }
            }
            Own::Step { query, how, rows } => self.step(&query, &how, rows.as_ref()),
            Own::Emitted { query, which, rows } => {
                let seen = self.world.emitted_in(&query, which)?;
                self.check_rows(&rows, seen)
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
                    .rewrite(Rewrite::Line(node.place.line, format!("watermark {query} {actual}")))),
                }
            }
            Own::State { query, operator, rows } => {
                let seen = self.world.state(&query, operator.as_deref())?;
                self.check_rows(&rows, seen)
            }
            Own::Sink { name, rows } => {
                let seen = self.world.committed(&name)?;
                self.check_rows(&rows, seen)
            }
            Own::Checkpoint(query) => self.is_committed(&query),
            Own::Stop { query, now } => {
                let now = if now { " NOW" } else { "" };
                self.world.execute(&format!("STOP QUERY {}{now}", quoted(&query)))?;
                Ok(())
            }
            Own::RestartQuery { query, from } => Ok(self.world.restart_query(&query, from.as_deref())?),
            Own::RestartEngine { wipe } => Ok(self.world.restart(wipe)?),
            Own::Crash { point, hit, action } => {
                if !POINTS.contains(&point.as_str()) {
                    let near = closest(&point, POINTS.iter().copied()).map(|near| format!("; did you mean {near}?"));
                    let near = near.unwrap_or_default();
                    return Err(Fault::text(format!(
                        "there is no failpoint {point}{near} (SHOW FAILPOINTS lists them)"
                    )));
                }
                self.armed = Some(Armed { point, hit, action });
                Ok(())
            }
            Own::Plan { query, lines } => {
                let plan = self.world.without_folder(&self.world.query(&query)?.explain());
                let actual: Vec<String> = plan.lines().map(str::to_string).collect();
                match actual == lines {
                    true => Ok(()),
                    false => Err(Fault::lines(format!("the plan of query {query}"), &lines, &actual)
                        .rewrite(Rewrite::Block(actual))),
                }
            }
            Own::Program(program) => super::program::run(&program, self.world.folder(), self.options.patience),
            Own::Require(what) => self.require(&what),
        }
    }

    fn clock(&mut self, sql: &str) -> Result<(), Fault> {
        if self.world.clock.is_none() {
            return Err(Fault::text(
                "the clock is the system's: begin the file with control clock manual 2026-01-01T00:00:00Z",
            ));
        }
        self.world.execute(sql)?;
        Ok(())
    }

    /// Runs batches and compares what they gave out.
    fn step(&mut self, query: &str, how: &StepHow, rows: Option<&Rows>) -> Result<(), Fault> {
        if self.world.clock.is_none() {
            return Err(Fault::text(
                "step wants a file whose queries run only when they are stepped: begin it with control clock manual 2026-01-01T00:00:00Z",
            ));
        }
        self.arm(query)?;
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
                    let seen = self.world.emitted_in(query, super::record::Which::Last)?;
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
                    Err(failure) if failure.text.contains(FAILPOINT) => Ok(()),
                    Err(failure) => Err(failure.into()),
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
        self.check_rows(rows, seen)
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
            if ran == ENDLESS {
                return Err(Failure::new(format!("query {query} is not idle after {ENDLESS} batches")));
            }
        }
        Ok(ran)
    }

    /// Arms what a `crash` record asked for.
    fn arm(&mut self, query: &str) -> Result<(), Fault> {
        match self.armed.take() {
            None => Ok(()),
            Some(armed) => Ok(self.arm_at(query, &armed)?),
        }
    }

    /// Arms a failpoint of a query.
    pub(super) fn arm_at(&self, query: &str, armed: &Armed) -> Result<(), Failure> {
        let action = match armed.action {
            Action::Kill => "kill".to_string(),
            Action::Error => "error".to_string(),
            Action::Torn(bytes) => format!("torn {bytes}"),
            Action::Enospc => "enospc".to_string(),
            Action::LostFsync => "lost_fsync".to_string(),
        };
        let Armed { point, hit, .. } = armed;
        self.world.execute(&format!("CRASH QUERY {} AT '{point}' HIT {hit} AS {action}", quoted(query))).map(drop)
    }

    /// Holds rows against what is expected of them.
    pub(super) fn check_rows(&self, expected: &Rows, seen: Seen) -> Result<(), Fault> {
        if let Some(types) = expected.types.as_ref().filter(|types| **types != seen.types) {
            let (types, actual) = (letters(types), letters(&seen.types));
            return Err(Fault::lines("the types of the columns", &[types], &[actual]));
        }
        let mut lines = expected.lines.clone();
        let mut actual_lines = Vec::new();
        if expected.names {
            let names = seen.names.join(" ");
            let first = if lines.is_empty() { String::new() } else { lines.remove(0) };
            actual_lines.push(names.clone());
            if first != names {
                return Err(Fault::lines("the names of the columns", &[first], &[names]));
            }
        }
        let rows = compare::sorted(seen.rows, expected.sort);
        match compare::same(&lines, &rows, self.world.style) {
            Ok(true) => Ok(()),
            Ok(false) => {
                let actual = compare::lines(&rows);
                actual_lines.extend(super::complete::with_patterns(&lines, &rows));
                Err(Fault::lines("the rows", &lines, &actual).rewrite(Rewrite::Block(actual_lines)))
            }
            Err(wrong) => Err(Fault::text(wrong)),
        }
    }

    fn progress(&self, query: &str, batch: Option<u64>, checks: &[Check]) -> Result<(), Fault> {
        let document = self.world.progress(query, batch)?;
        let mut faults = Vec::new();
        let (mut wanted, mut actual) = (Vec::new(), Vec::new());
        for check in checks {
            let value = value_of(&document, &check.key).unwrap_or(Value::Null);
            if !holds(check, &value).map_err(Fault::text)? {
                let op = CheckOp::ALL.iter().find(|(_, op)| *op == check.op).map_or("=", |(text, _)| text);
                wanted.push(format!("{} {op} {}", check.key, check.value));
                let line = format!("{} = {}", check.key, plain(&value));
                actual.push(line.clone());
                if check.op == CheckOp::Equal {
                    faults.push((check.line, line));
                }
            }
        }
        if wanted.is_empty() {
            return Ok(());
        }
        let all = faults.len() == wanted.len();
        let fault = Fault::lines(format!("the progress of query {query}"), &wanted, &actual);
        Err(if all { fault.rewrite(Rewrite::Lines(faults)) } else { fault })
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

    pub(super) fn feed(&self, stream: &str, what: &Feed) -> Result<(), Failure> {
        let sql = match what {
            Feed::Close => format!("CLOSE STREAM {}", quoted(stream)),
            Feed::Values(rows) => format!("INSERT INTO {} VALUES {rows}", quoted(stream)),
            Feed::Lines { format, lines } => return self.feed_lines(stream, format, lines),
        };
        self.world.execute(&sql).map(drop)
    }

    /// Rows in a format: decoded by a stream over a file of them, with the columns of the stream that they are for.
    fn feed_lines(&self, stream: &str, format: &str, lines: &[String]) -> Result<(), Failure> {
        use crate::error::{Error, Location};
        use crate::parser::{Statement, parse_one};
        let shown = parse_one(&format!("SHOW CREATE STREAM {}", quoted(stream)), Location { line: 1, column: 1 })?;
        let crate::session::Answer::Text(sql) = self.world.session().execute(&shown)? else {
            return Err(Error::internal("SHOW CREATE STREAM answered no text").into());
        };
        let Statement::CreateStream(mut create) = parse_one(&sql, Location { line: 1, column: 1 })?.statement else {
            return Err(Error::internal("SHOW CREATE STREAM is no CREATE STREAM").into());
        };
        let number = self.world.next_file();
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let path = create.options.as_ref().and_then(|options| options.text("path")).map(str::to_string);
        let folder = match &path {
            // A stream of files is given one more.
            Some(path) => std::path::PathBuf::from(path.trim_start_matches("file://")),
            None => self.world.folder().join("feeds").join(number.to_string()),
        };
        let file = folder.join(format!("feed-{number:06}.{format}"));
        let io = |e: std::io::Error| Failure::from(Error::io(format!("writing {}", file.display()), &e));
        std::fs::create_dir_all(&folder).map_err(io)?;
        std::fs::write(&file, text).map_err(io)?;
        if let Some(clock) = self.world.clock.map(|_| self.world.session().now()) {
            // Files are read in the order of their times: the test's clock, and one after the other.
            let (epoch, since) = (std::time::UNIX_EPOCH, std::time::Duration::from_millis(clock.unsigned_abs()));
            let now = if clock < 0 { epoch - since } else { epoch + since };
            let time = now + std::time::Duration::from_micros(number);
            std::fs::File::options().append(true).open(&file).and_then(|f| f.set_modified(time)).map_err(io)?;
        }
        if path.is_some() {
            return Ok(());
        }
        let reader = format!("levada_feed_{number}");
        create.name.value.clone_from(&reader);
        create.options = None;
        create.watermark = None;
        // Computed columns come by themselves.
        if let Some(columns) = &mut create.columns {
            columns.retain(|column| !matches!(column.kind, crate::parser::ColumnKind::Computed(_)));
        }
        let columns = Statement::CreateStream(create).to_string();
        let with = format!(" WITH (connector = 'file', format = '{format}', path = '{}')", file.display());
        self.world.execute(&(columns + &with))?;
        let inserted = self.world.execute(&format!("INSERT INTO {} SELECT * FROM {reader}", quoted(stream)));
        self.world.execute(&format!("DROP STREAM {reader}"))?;
        inserted.map(drop)
    }

    fn require(&mut self, what: &str) -> Result<(), Fault> {
        let known = crate::catalog::connector_names().into_iter().chain(["json", "csv", "parquet", "text"]);
        let mut found = known.map(str::to_string).any(|name| name == what);
        if let Outcome::Rows { batches, .. } = self.world.execute("SHOW FUNCTIONS")? {
            let rows = super::values::rows(&batches, super::values::Style::Plain)?;
            found |= rows.iter().any(|row| row.first().is_some_and(|name| name == what));
        }
        if !found {
            self.required = Some(what.to_string());
        }
        Ok(())
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

fn holds(check: &Check, actual: &Value) -> Result<bool, String> {
    let wanted = check.value.as_str();
    Ok(match check.op {
        CheckOp::Equal => same_value(wanted, actual),
        CheckOp::NotEqual => !same_value(wanted, actual),
        CheckOp::Matches => {
            let regex = regex::Regex::new(wanted).map_err(|e| format!("{wanted:?} is no regular expression: {e}"))?;
            regex.is_match(&plain(actual))
        }
        CheckOp::Less | CheckOp::LessOrEqual | CheckOp::Greater | CheckOp::GreaterOrEqual => {
            let order = match (instant(wanted), instant(&plain(actual))) {
                (Some(wanted), Some(actual)) => actual.partial_cmp(&wanted),
                _ => {
                    let number = wanted.parse::<f64>().map_err(|_| format!("{wanted:?} is no number and no time"))?;
                    actual.as_f64().and_then(|actual| actual.partial_cmp(&number))
                }
            };
            match check.op {
                CheckOp::Less => order.is_some_and(std::cmp::Ordering::is_lt),
                CheckOp::LessOrEqual => order.is_some_and(std::cmp::Ordering::is_le),
                CheckOp::Greater => order.is_some_and(std::cmp::Ordering::is_gt),
                _ => order.is_some_and(std::cmp::Ordering::is_ge),
            }
        }
    })
}

/// Whether a value is what is written: the same text, number or time; `none` where there is nothing.
fn same_value(wanted: &str, actual: &Value) -> bool {
    let text = plain(actual);
    if wanted == text {
        return true;
    }
    if let (Some(wanted), Some(actual)) = (instant(wanted), instant(&text)) {
        return wanted == actual;
    }
    match (wanted.parse::<f64>(), actual.as_f64()) {
        (Ok(wanted), Some(actual)) => wanted == actual,
        _ => wanted.trim_matches('\'') == text && wanted.starts_with('\''),
    }
}

fn instant(text: &str) -> Option<i64> {
    chrono::DateTime::parse_from_rfc3339(text).ok().map(|time| time.timestamp_micros())
}

fn plain(value: &Value) -> String {
    match value {
        Value::Null => "none".into(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
