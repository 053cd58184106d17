//! One file's records, in order.

use std::collections::{BTreeMap, BTreeSet};
use std::future::{Ready, ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::executor::block_on;
use sqllogictest::{
    Condition, Control, ExpectedError, MakeConnection, QueryExpect, Record, RecordOutput, ResultMode, Runner,
    StatementExpect,
};

use super::answer::{Connection, Failure};
use super::compare;
use super::expect::Armed;
use super::guard::Guard;
use super::place::Place;
use super::record::Own;
use super::report::{Fault, FileReport, Rewrite};
use super::script::{Body, Node, Script, on_one_connection};
use super::substitute::Variables;
use super::values::{Letter, Style, letters};
use super::world::World;
use crate::clock::Stopwatch;

/// How records are run.
#[derive(Debug, Clone)]
pub struct Options {
    /// How long a record may take.
    pub patience: Duration,
    /// Names that `skipif` and `onlyif` know, beside `levada`.
    pub labels: BTreeSet<String>,
    /// After so many failures of a file the rest of it is left out.
    pub max_errors: usize,
    /// Expected lines are written anew.
    pub complete: bool,
    /// Of each matrix only so many combinations are run, spread evenly.
    pub combinations: Option<usize>,
    /// Only records up to this line are run.
    pub until_line: Option<usize>,
    /// The user wants it to end.
    pub interrupted: Arc<AtomicBool>,
    /// Only subtests and scenarios of this name are run; what stands before the first of them is.
    pub only: Option<regex::Regex>,
}

/// What happens next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    Next,
    /// The rest of the file is left out.
    Halt,
}

/// Makes the crate's connections: all of them are of one world.
pub struct Connect(Arc<World>);

impl MakeConnection for Connect {
    type Conn = Connection;
    type MakeFuture = Ready<Result<Connection, Failure>>;

    fn make(&mut self) -> Self::MakeFuture {
        ready(Ok(Connection(self.0.clone())))
    }
}

/// A file that is being run.
pub struct FileRun<'a> {
    pub(super) world: Arc<World>,
    pub(super) options: &'a Options,
    pub(super) variables: Variables,
    /// A failpoint that the next step arms.
    pub(super) armed: Option<Armed>,
    /// What a `require` did not find.
    pub(super) required: Option<String>,
    pub(super) guard: Guard,
    runner: Runner<Connection, Connect>,
    result_mode: Option<ResultMode>,
    subtest: Option<String>,
    /// A record has failed: the next subtest is waited for.
    failing: bool,
    /// Results by label: equal labels, equal results.
    labelled: BTreeMap<String, (Place, Vec<Vec<String>>)>,
    /// The records that were begun, for the report of a failure.
    trail: Vec<(Place, String)>,
    pub(super) report: FileReport,
    /// What is to be written anew: file, lines, text.
    pub(super) rewrites: Vec<(Node, Rewrite)>,
}

/// Runs a file.
pub fn run(script: &Script, options: &Options) -> (FileReport, Vec<(Node, Rewrite)>) {
    let watch = Stopwatch::start();
    let style = if script.mode.exact { Style::Exact } else { Style::Plain };
    let mut report = FileReport { file: script.file.to_string(), ..FileReport::default() };
    let world = match World::new(style, script.mode.clock) {
        Ok(world) => world,
        Err(error) => {
            report.failed.push(error.to_string());
            return (report, Vec::new());
        }
    };
    let mut run = FileRun::new(world, options, report);
    run.nodes(&script.nodes);
    run.report.time = watch.elapsed();
    run.report.slowest.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
    (run.report, run.rewrites)
}

impl<'a> FileRun<'a> {
    /// At the start of a file.
    pub(super) fn new(world: Arc<World>, options: &'a Options, report: FileReport) -> Self {
        let mut runner = Runner::new(Connect(world.clone()));
        for label in &options.labels {
            runner.add_label(label);
        }
        let mut variables = Variables::default();
        variables.set("__TEST_DIR__", world.folder().display().to_string());
        FileRun {
            world,
            options,
            variables,
            armed: None,
            required: None,
            guard: Guard::new(options.patience),
            runner,
            result_mode: None,
            subtest: None,
            failing: false,
            labelled: BTreeMap::new(),
            trail: Vec::new(),
            report,
            rewrites: Vec::new(),
        }
    }

    /// Runs records up to the end, or to what ends the file.
    pub(super) fn nodes(&mut self, nodes: &[Node]) -> Flow {
        for node in nodes {
            if self.node(node) == Flow::Halt {
                return Flow::Halt;
            }
        }
        Flow::Next
    }

    fn node(&mut self, node: &Node) -> Flow {
        if self.options.interrupted.load(Ordering::SeqCst) {
            return Flow::Halt;
        }
        let own_file = *node.place.file == *self.report.file;
        if self.options.until_line.is_some_and(|line| own_file && node.place.line > line) {
            return Flow::Halt;
        }
        if let Body::Plain(Record::Subtest { name, .. }) = &node.body {
            self.subtest = Some(name.clone());
            self.failing = false;
            self.trail.clear();
            return Flow::Next;
        }
        let within = match &node.body {
            Body::Scenario { name, .. } => Some(name.as_str()),
            _ => self.subtest.as_deref(),
        };
        let other = self.options.only.as_ref().zip(within).is_some_and(|(only, name)| !only.is_match(name));
        if self.failing || other || self.skips(&node.conditions) {
            self.report.skipped += 1;
            return Flow::Next;
        }
        match &node.body {
            Body::Plain(Record::Halt { .. }) => return Flow::Halt,
            Body::Loop { variable, values, concurrent, nodes } => {
                return if *concurrent {
                    self.side_by_side(variable, values, nodes)
                } else {
                    self.one_by_one(variable, values, nodes)
                };
            }
            _ => {}
        }
        self.trail.push((node.place.clone(), title(node)));
        let watch = Stopwatch::start();
        self.guard.begin(self.world.session().cancel_token());
        let judged = match &node.body {
            Body::Plain(record) => self.plain(record.clone()),
            Body::Own(own) => self.substituted(own).and_then(|own| self.own(node, own)).map(|()| true),
            Body::Scenario { matrix, nodes, .. } => {
                self.guard.end();
                self.scenario(matrix, nodes).map(|()| true)
            }
            Body::Loop { .. } => Ok(false),
        };
        let late = self.guard.end();
        self.report.slowest.push((node.place.clone(), watch.elapsed()));
        match judged {
            Ok(counts) => self.report.ran += usize::from(counts),
            Err(mut fault) => {
                self.report.ran += 1;
                if late {
                    let seconds = self.options.patience.as_secs_f64();
                    fault.message = format!("it had not ended after {seconds} s\n{}", fault.message);
                }
                self.fail(node, fault);
            }
        }
        if self.required.is_some() {
            self.report.required.clone_from(&self.required);
            return Flow::Halt;
        }
        if self.report.failed.len() >= self.options.max_errors { Flow::Halt } else { Flow::Next }
    }

    fn one_by_one(&mut self, variable: &str, values: &[String], nodes: &[Node]) -> Flow {
        for value in values {
            self.variables.set(variable, value.clone());
            if self.nodes(nodes) == Flow::Halt {
                return Flow::Halt;
            }
        }
        Flow::Next
    }

    /// All rounds of a loop at once, in one session.
    fn side_by_side(&mut self, variable: &str, values: &[String], nodes: &[Node]) -> Flow {
        if self.world.clock.is_some() {
            if let Some(node) = nodes.first() {
                self.fail(
                    node,
                    Fault::text("rounds of a loop can't run side by side where batches run only when they are stepped"),
                );
            }
            return Flow::Halt;
        }
        let (world, options, variables) = (&self.world, self.options, &self.variables);
        let file = self.report.file.clone();
        let round = |value: &String| {
            let report = FileReport { file: file.clone(), ..FileReport::default() };
            let mut run = FileRun::new(world.clone(), options, report);
            run.variables = variables.clone();
            run.variables.set(variable, value.clone());
            run.nodes(nodes);
            run.report
        };
        let reports: Vec<FileReport> = std::thread::scope(|scope| {
            let rounds: Vec<_> = values.iter().map(|value| scope.spawn(move || round(value))).collect();
            rounds.into_iter().filter_map(|round| round.join().ok()).collect()
        });
        for report in reports {
            self.report.ran += report.ran;
            self.report.skipped += report.skipped;
            self.report.failed.extend(report.failed);
        }
        Flow::Next
    }

    fn skips(&self, conditions: &[Condition]) -> bool {
        let known = |label: &str| label == "levada" || self.options.labels.contains(label);
        conditions.iter().any(|condition| match condition {
            Condition::OnlyIf { label } => !known(label),
            Condition::SkipIf { label } => known(label),
        })
    }

    pub(super) fn fail(&mut self, node: &Node, fault: Fault) {
        if let (true, Some(rewrite)) = (self.options.complete, fault.rewrite.clone()) {
            let named = |line: String| self.world.without_folder(&line);
            let rewrite = match rewrite {
                Rewrite::Block(lines) => Rewrite::Block(lines.into_iter().map(named).collect()),
                other => other,
            };
            self.rewrites.push((node.clone(), rewrite));
            return;
        }
        let mut text = format!("{}: {}\n", node.place, node.head);
        for line in fault.message.lines() {
            text += &format!("  {line}\n");
        }
        text += fault.diff.as_deref().unwrap_or_default();
        let from = self.trail.len().saturating_sub(8);
        for (n, (place, head)) in self.trail.iter().enumerate().skip(from) {
            let mark = if n + 1 == self.trail.len() { "=>" } else { "  " };
            text += &format!("  {mark} {:>4}  {head}\n", place.line);
        }
        text += &self.world.describe();
        self.report.failed.push(text);
        self.failing = true;
    }

    /// The record with its names replaced.
    fn substituted(&self, own: &Own) -> Result<Own, Fault> {
        let replace = |text: &str| self.variables.replace(text).map_err(Fault::text);
        let all = |lines: &[String]| lines.iter().map(|line| replace(line)).collect::<Result<Vec<_>, _>>();
        let mut own = own.clone();
        let (mut texts, mut lists) = own.texts();
        for text in &mut texts {
            **text = replace(text)?;
        }
        for list in &mut lists {
            **list = all(list)?;
        }
        Ok(own)
    }

    /// Runs a record of the crate; whether it counts as one.
    ///
    /// # Errors
    /// What is not as it is expected.
    fn plain(&mut self, record: Record<Letter>) -> Result<bool, Fault> {
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
            Record::Control(Control::ResultMode(mode)) => {
                self.result_mode = Some(*mode);
                return Ok(false);
            }
            Record::Statement { sql, retry: again, .. } => {
                replace(&self.variables, sql)?;
                retry = again.clone();
            }
            Record::Query { sql, retry: again, expected, .. } => {
                replace(&self.variables, sql)?;
                if let QueryExpect::Results { results, .. } = expected {
                    results.iter_mut().try_for_each(|line| replace(&self.variables, line))?;
                }
                retry = again.clone();
            }
            Record::Let { sql, .. } => replace(&self.variables, sql)?,
            Record::System { command, retry: again, .. } => {
                *command = self.variables.replace_in_command(command);
                retry = again.clone();
            }
            _ => {}
        }
        let mut left = retry.as_ref().map_or(0, |retry| retry.attempts);
        loop {
            self.world.raw.store(matches!(record, Record::Let { .. }), Ordering::SeqCst);
            let output = block_on(self.runner.apply_record(record.clone()));
            self.world.raw.store(false, Ordering::SeqCst);
            match self.judge(&record, output) {
                Err(_) if left > 0 => {
                    left -= 1;
                    std::thread::sleep(retry.as_ref().map_or(Duration::ZERO, |retry| retry.backoff));
                }
                judged => return judged,
            }
        }
    }

    /// Holds what came of a record against what it expects; whether the record counts as one that ran.
    fn judge(&mut self, record: &Record<Letter>, output: RecordOutput<Letter>) -> Result<bool, Fault> {
        let failure = |error: &Arc<dyn std::error::Error + Send + Sync>| {
            let failure = (&**error as &dyn std::error::Error).downcast_ref::<Failure>().cloned();
            failure.unwrap_or_else(|| Failure::new(error.to_string()))
        };
        match (record, output) {
            (
                Record::Statement { .. } | Record::Query { .. } | Record::System { .. } | Record::Let { .. },
                RecordOutput::Nothing,
            ) => {
                self.report.skipped += 1;
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
                None => self.rows(expected, loc.line() as usize, types, rows),
            },
            (Record::Query { expected, loc, .. }, RecordOutput::Statement { error, .. }) => match error {
                Some(error) => Err(failure(&error).into()),
                None => self.rows(expected, loc.line() as usize, Vec::new(), Vec::new()),
            },
            (Record::System { stdout, .. }, RecordOutput::System { stdout: actual, error, .. }) => {
                if let Some(error) = error {
                    return Err(Fault::text(error.to_string()));
                }
                let (Some(expected), Some(actual)) = (stdout, actual) else { return Ok(true) };
                let split = |text: &str| text.trim().lines().map(str::to_string).collect::<Vec<_>>();
                let (expected, actual) = (split(expected), split(&actual));
                match expected == actual {
                    true => Ok(true),
                    false => Err(Fault::lines("the output", &expected, &actual).rewrite(Rewrite::Block(actual))),
                }
            }
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
        expected: &QueryExpect<Letter>,
        line: usize,
        types: Vec<Letter>,
        rows: Vec<Vec<String>>,
    ) -> Result<bool, Fault> {
        let QueryExpect::Results { types: wanted, label, results, .. } = expected else { return Ok(true) };
        let exact = self.world.style == Style::Exact;
        if exact && !wanted.is_empty() && *wanted != types {
            return Err(Fault::lines("the types of the columns", &[letters(wanted)], &[letters(&types)]));
        }
        let mut results = results.clone();
        let mut names = Vec::new();
        if let Some(label) = label {
            if exact && label == "colnames" {
                names = vec![self.world.names().join(" ")];
                let first = if results.is_empty() { String::new() } else { results.remove(0) };
                if first != names[0] {
                    return Err(Fault::lines("the names of the columns", &[first], &names));
                }
            } else if let Some((place, before)) = self.labelled.get(label)
                && *before != rows
            {
                let (before, rows) = (compare::lines(before), compare::lines(&rows));
                let what = format!("the rows, and those of {place}, which has the same label {label}");
                return Err(Fault::lines(what, &before, &rows));
            } else {
                let place = Place::top(&self.report.file, None).at(line);
                self.labelled.insert(label.clone(), (place, rows.clone()));
            }
        }
        let rows = match self.result_mode {
            Some(ResultMode::ValueWise) => rows.into_iter().flatten().map(|value| vec![value]).collect(),
            _ => rows,
        };
        match compare::same(&results, &rows, self.world.style).map_err(Fault::text)? {
            true => Ok(true),
            false => {
                let actual = compare::lines(&rows);
                names.extend(super::complete::with_patterns(&results, &rows));
                Err(Fault::lines("the rows", &results, &actual).rewrite(Rewrite::Block(names)))
            }
        }
    }
}

/// A record's first line and, where that says little, the first line of its SQL.
fn title(node: &Node) -> String {
    const WIDEST: usize = 70;
    let sql = match &node.body {
        Body::Plain(Record::Statement { sql, .. } | Record::Query { sql, .. } | Record::Let { sql, .. }) => sql,
        _ => return node.head.clone(),
    };
    let first = sql.lines().next().unwrap_or_default();
    let short: String = first.chars().take(WIDEST).collect();
    format!("{}: {short}{}", node.head, if short.len() < first.len() { "…" } else { "" })
}

fn statement(expected: &StatementExpect, failure: Option<Failure>, count: u64) -> Result<bool, Fault> {
    match (expected, failure) {
        (StatementExpect::Error(expected), Some(failure)) => fails(expected, &failure),
        (StatementExpect::Error(expected), None) => {
            Err(Fault::text(format!("it should fail with {expected}, and it succeeded")))
        }
        (_, Some(failure)) => Err(failure.into()),
        (StatementExpect::Count(wanted), None) if *wanted != count => {
            Err(Fault::text(format!("it should touch {wanted} rows, and it touched {count}")))
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
