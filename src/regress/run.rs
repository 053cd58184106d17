//! One file's records, in order.

use std::collections::{BTreeMap, BTreeSet};
use std::future::{Ready, ready};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::executor::block_on;
use sqllogictest::{
    Condition, Control, ExpectedError, MakeConnection, QueryExpect, Record, RecordOutput, ResultMode, Runner, SortMode,
    StatementExpect,
};

use super::answer::{Connection, Failure};
use super::combinations::Combinations;
use super::compare;
use super::complete::{self, Completion};
use super::crash::Crashes;
use super::guard::{Guard, Interrupt};
use super::matrix::Shown;
use super::place::Place;
use super::program;
use super::record::Own;
use super::report::{Edit, Fault, FileReport, Reached};
use super::script::{Body, Node, Script, on_one_connection};
use super::substitute::Variables;
use super::values::{Letter, Style, letters};
use super::world::World;
use crate::clock::Stopwatch;
use crate::parser::Splitter;

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
    /// Which combinations of each matrix are run.
    pub combinations: Combinations,
    /// Only records up to this line are run.
    pub until_line: Option<usize>,
    /// Whether the user wants it to end.
    pub interrupt: Interrupt,
    /// Only subtests and scenarios of this name are run; what stands before the first of them is.
    pub only: Option<regex::Regex>,
}

/// How the crate sees `${` in an expression, in which it would be none.
pub const NAME_IN_REGEX: &str = "\\$\\{";

/// The catalog of a file's tables: each file has a session, and so a database, of its own.
const DATABASE: &str = "datafusion";

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
    /// Failpoints that the next step arms, and those that were not reached yet.
    pub(super) crashes: Crashes,
    /// The failpoint of a combination was reached.
    pub(super) crashed: bool,
    /// What a `require` did not find.
    pub(super) required: Option<String>,
    /// The rounds of loops that run, the outer one first.
    pub(super) rounds: Vec<(String, String)>,
    /// Within a scenario: what its records as they stand have shown.
    pub(super) shown: Shown,
    pub(super) guard: Guard,
    runner: Runner<Connection, Connect>,
    result_mode: Option<ResultMode>,
    subtest: Option<String>,
    /// The scenario that runs.
    scenario: Option<String>,
    /// A record has failed: the next subtest is waited for.
    pub(super) failing: bool,
    /// As many records have failed as may: nothing more is run.
    given_up: bool,
    /// Results by label: equal labels, equal results.
    labelled: BTreeMap<String, Labelled>,
    sort_mode: Option<SortMode>,
    /// The records that were begun, for the report of a failure.
    pub(super) trail: Vec<(Place, String)>,
    pub(super) report: FileReport,
    /// What is to be written anew.
    pub(super) completion: Completion,
}

/// Runs a file.
pub fn run(script: &Script, options: &Options) -> (FileReport, Completion) {
    let watch = Stopwatch::start();
    let style = if script.mode.exact { Style::Exact } else { Style::Plain };
    let mut report = FileReport::of(&script.file);
    let world = match World::new(style, script.mode.clock) {
        Ok(world) => world,
        Err(error) => {
            report.failed.push((report.file.clone(), error.to_string()));
            return (report, Completion::default());
        }
    };
    let mut run = FileRun::new(world, options, report);
    run.all(&script.nodes);
    if run.report.required.is_some() {
        // What was not come to is left out too.
        for name in super::script::names(&script.nodes) {
            let case = run.report.case(name);
            case.skipped += usize::from(case.ran == 0 && case.skipped == 0);
        }
    }
    run.report.time = watch.elapsed();
    run.report.slowest.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
    (run.report, run.completion)
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
        variables.set("__DATABASE__", DATABASE.to_string());
        FileRun {
            world,
            options,
            variables,
            crashes: Crashes::default(),
            crashed: false,
            required: None,
            rounds: Vec::new(),
            shown: Shown::default(),
            guard: Guard::new(options.patience, &options.interrupt),
            runner,
            result_mode: None,
            subtest: None,
            scenario: None,
            failing: false,
            given_up: false,
            labelled: BTreeMap::new(),
            sort_mode: None,
            trail: Vec::new(),
            report,
            completion: Completion::default(),
        }
    }

    /// Runs a whole file or scenario; what was armed must have been reached at its end.
    pub(super) fn all(&mut self, nodes: &[Node]) {
        self.nodes(nodes);
        if self.options.until_line.is_none() && self.required.is_none() && self.report.reached == Reached::End {
            self.crashes_are_over();
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
        if self.options.interrupt.is_asked() {
            self.report.reached = Reached::Interrupted;
            return Flow::Halt;
        }
        if self.options.until_line.is_some_and(|line| node.place.root().line > line) {
            return Flow::Halt;
        }
        if let Body::Plain(Record::Subtest { name, .. }) = &node.body {
            self.crashes_are_over();
            self.subtest = Some(name.clone());
            self.failing = false;
            self.trail.clear();
            return Flow::Next;
        }
        if self.given_up && matches!(node.body, Body::Plain(Record::Halt { .. })) {
            return Flow::Halt;
        }
        let within = match &node.body {
            Body::Scenario { name, .. } => Some(name.as_str()),
            _ => self.subtest.as_deref(),
        };
        let other = self.options.only.as_ref().zip(within).is_some_and(|(only, name)| !only.is_match(name));
        if self.failing || self.given_up || other || self.skips(&node.conditions) {
            self.case().skipped += 1;
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
        if let Body::Scenario { name, .. } = &node.body {
            self.scenario = Some(name.clone());
        }
        let flow = self.record(node);
        self.scenario = None;
        flow
    }

    /// Runs a record, or a scenario, and keeps what came of it.
    fn record(&mut self, node: &Node) -> Flow {
        let watch = Stopwatch::start();
        let judged = match &node.body {
            Body::Scenario { matrix, nodes, .. } => self.scenario(matrix, nodes).map(|()| true),
            Body::Plain(record) => self.guarded(|run| run.plain(node, record.clone())),
            Body::Own(own) => self.guarded(|run| run.substituted(own).and_then(|own| run.own(node, own))),
            Body::Loop { .. } => Ok(false),
        };
        let time = watch.elapsed();
        self.report.slowest.push((node.place.clone(), time));
        let interrupted = self.options.interrupt.is_asked();
        let case = self.case();
        case.time += time;
        match judged {
            Ok(counts) => {
                case.ran += usize::from(counts);
                if self.options.complete {
                    self.is_as_expected(node);
                }
            }
            // What was ended in the middle has not failed.
            Err(_) if interrupted => {
                case.interrupted = true;
                self.report.reached = Reached::Interrupted;
                return Flow::Halt;
            }
            Err(fault) => {
                case.ran += 1;
                self.fail(node, fault);
            }
        }
        if self.report.reached != Reached::End {
            self.case().interrupted = true;
            return Flow::Halt;
        }
        if self.required.is_some() {
            self.report.required.clone_from(&self.required);
            return Flow::Halt;
        }
        self.given_up |= self.report.failed.len() >= self.options.max_errors;
        Flow::Next
    }

    /// Does what one record asks for, in its time.
    ///
    /// # Errors
    /// Its own; it had to be ended.
    pub(super) fn guarded<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T, Fault>) -> Result<T, Fault> {
        let world = self.world.clone();
        self.guard.begin(Box::new(move || world.session().cancel_token().cancel()));
        let done = work(self);
        if !self.guard.end() {
            return done;
        }
        let late = Fault::text(format!("it had not ended after {} s", self.options.patience.as_secs_f64()));
        Err(match done {
            Ok(_) => late,
            Err(fault) => Fault { message: format!("{}\n{}", late.message, fault.message), edits: Vec::new(), ..fault },
        })
    }

    /// The case that the record that runs belongs to.
    fn case(&mut self) -> &mut super::report::Case {
        let name = self.case_name();
        self.report.case(&name)
    }

    pub(super) fn case_name(&self) -> String {
        self.scenario.as_ref().or(self.subtest.as_ref()).unwrap_or(&self.report.file).clone()
    }

    fn one_by_one(&mut self, variable: &str, values: &[String], nodes: &[Node]) -> Flow {
        for value in values {
            self.variables.begin_round(variable, value.clone());
            self.rounds.push((variable.to_string(), value.clone()));
            let flow = self.nodes(nodes);
            self.rounds.pop();
            if flow == Flow::Halt {
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
        let (world, options, variables, rounds) = (&self.world, self.options, &self.variables, &self.rounds);
        let file = self.report.file.clone();
        let round = |value: &String| {
            let mut run = FileRun::new(world.clone(), options, FileReport::of(&file));
            run.variables = variables.clone();
            run.variables.begin_round(variable, value.clone());
            run.rounds = [rounds.as_slice(), &[(variable.to_string(), value.clone())]].concat();
            run.nodes(nodes);
            (run.report, run.completion)
        };
        let rounds: Vec<_> = std::thread::scope(|scope| {
            let rounds: Vec<_> = values.iter().map(|value| scope.spawn(move || round(value))).collect();
            rounds.into_iter().map(|round| round.join()).collect()
        });
        for round in rounds {
            match round {
                Ok((report, completion)) => self.take(report, completion),
                Err(_) => {
                    let text = format!("{file}: a round of the loop over {variable} ended in a panic");
                    self.report.failed.push((self.case_name(), text));
                }
            }
        }
        if self.report.reached == Reached::End { Flow::Next } else { Flow::Halt }
    }

    /// Takes over what ran beside, or in another world.
    pub(super) fn take(&mut self, report: FileReport, completion: Completion) {
        let case = self.case_name();
        self.report.take(&case, report);
        for node in self.completion.take(completion) {
            self.say_failed(&node, Fault::text(super::verdict::TORN));
        }
    }

    pub(super) fn skips(&self, conditions: &[Condition]) -> bool {
        let known = |label: &str| label == "levada" || self.options.labels.contains(label);
        conditions.iter().any(|condition| match condition {
            Condition::OnlyIf { label } => !known(label),
            Condition::SkipIf { label } => known(label),
        })
    }

    /// The record with its names replaced.
    pub(super) fn substituted(&self, own: &Own) -> Result<Own, Fault> {
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
struct Labelled {
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
