//! One file's records, in order.

use std::collections::{BTreeMap, BTreeSet};
use std::future::{Ready, ready};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use sqllogictest::{Condition, MakeConnection, Record, ResultMode, Runner, SortMode};

use super::answer::{Connection, Failure};
use super::combinations::Combinations;
use super::complete::Completion;
use super::crash::Crashes;
use super::guard::{Guard, Interrupt};
use super::matrix::Shown;
use super::place::Place;
use super::plain::Labelled;
use super::record::Own;
use super::report::{Fault, FileReport, Reached};
use super::script::{Body, Node, Script};
use super::substitute::Variables;
use super::values::Style;
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
    /// Which combinations of each matrix are run.
    pub combinations: Combinations,
    /// Only records up to this line are run.
    pub until_line: Option<usize>,
    /// Whether the user wants it to end.
    pub interrupt: Interrupt,
    /// Only subtests and scenarios of this name are run; what stands before the first of them is.
    pub only: Option<regex::Regex>,
    /// Where pictures of terminals go; `None`: none are drawn.
    pub pictures: Option<PathBuf>,
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
    pub(super) runner: Runner<Connection, Connect>,
    pub(super) result_mode: Option<ResultMode>,
    subtest: Option<String>,
    /// The scenario that runs.
    scenario: Option<String>,
    /// A record has failed: the next subtest is waited for.
    pub(super) failing: bool,
    /// As many records have failed as may: nothing more is run.
    given_up: bool,
    /// Results by label: equal labels, equal results.
    pub(super) labelled: BTreeMap<String, Labelled>,
    pub(super) sort_mode: Option<SortMode>,
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
    pub(super) fn case(&mut self) -> &mut super::report::Case {
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
