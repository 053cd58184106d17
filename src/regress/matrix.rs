//! A scenario: records that are run as they stand, and then again under everything that must change nothing: crashes, other
//! numbers of partitions, other batches, restarts.

use std::collections::{BTreeMap, BTreeSet};

use sqllogictest::{Record, SortMode, StatementExpect};

use super::answer::Failure;
use super::combinations::Combinations;
use super::compare;
use super::crash::Armed;
use super::program;
use super::record::{Crash, Feed, Matrix, Own, StepHow};
use super::report::{Fault, FileReport, Reached};
use super::run::{FileRun, Flow};
use super::script::{Body, Node};
use super::world::{is_drained, quoted, stop_sql};
use crate::error::Location;
use crate::execution::QueryState;
use crate::parser::{Splitter, Statement, StopHow, ast, parse_one};

/// One combination.
#[derive(Debug, Clone)]
struct Variant {
    crash: Option<Crash>,
    parallelism: u64,
    batch_rows: Option<usize>,
    restart_each_step: bool,
}

impl std::fmt::Display for Variant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let crash = self.crash.as_ref().map_or("none".to_string(), Crash::to_string);
        write!(f, "crash={crash} parallelism={}", self.parallelism)?;
        if let Some(rows) = self.batch_rows {
            write!(f, " batch_rows={rows}")?;
        }
        if self.restart_each_step { write!(f, " restart=each-step") } else { Ok(()) }
    }
}

/// What must come out the same: of a sink, or of a query.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Final {
    Sink(String),
    Query(String),
}

impl std::fmt::Display for Final {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Final::Sink(name) => write!(f, "sink {name} committed"),
            Final::Query(name) => write!(f, "emitted {name} all, folded"),
        }
    }
}

/// What the records of a scenario have shown as they stand: a combination is held against nothing else.
#[derive(Debug, Default)]
pub struct Shown {
    /// What is crossed.
    pub matrix: Option<Matrix>,
    /// What was compared, and so must come out the same.
    pub finals: BTreeSet<Final>,
    /// Rows were fed, which `batch_rows` can cut.
    pub fed: bool,
}

impl<'a> FileRun<'a> {
    /// Runs the records of a scenario as they stand, then every combination of its matrix.
    ///
    /// # Errors
    /// A combination gives another result.
    pub(super) fn scenario(&mut self, matrix: &Matrix, nodes: &[Node]) -> Result<(), Fault> {
        let variants = variants(matrix, self.options.combinations);
        let left_out = self::variants(matrix, Combinations::All).len() - variants.len();
        let crosses = !(variants.len() == 1 && variants[0].is_as_written());
        let (finals, base) = {
            let mut run = self.another()?;
            run.shown.matrix = crosses.then(|| matrix.clone());
            run.all(nodes);
            let (report, completion) = (std::mem::take(&mut run.report), std::mem::take(&mut run.completion));
            let failed = !report.failed.is_empty() || report.reached != Reached::End;
            self.take(report, completion);
            if run.required.is_some() {
                self.required.clone_from(&run.required);
            }
            // Records up to a line are no scenario that could be run again.
            let is_cut = self.options.until_line.is_some_and(|line| ends_behind(nodes, line));
            if failed || run.required.is_some() || !crosses || is_cut {
                return Ok(());
            }
            let shown = std::mem::take(&mut run.shown);
            if shown.finals.is_empty() {
                return Err(Fault::text(
                    "nothing says what must come out the same: end the scenario with sink NAME committed, or emitted QUERY all",
                ));
            }
            if !shown.fed && matrix.batch_rows.iter().any(Option::is_some) {
                return Err(Fault::text(
                    "batch_rows cuts nothing: no record of the scenario feeds rows\nhelp: feed STREAM in the scenario, or leave out batch_rows",
                ));
            }
            run.guarded(|run| {
                run.until_all_idle(None)?;
                let base = run.finals(&shown.finals)?;
                Ok((shown.finals, base))
            })?
        };
        self.report.left_out_combinations += left_out;
        // How many combinations of a failpoint did not reach it, and of how many.
        let mut missed: BTreeMap<&'static str, (usize, usize)> = BTreeMap::new();
        for variant in variants {
            if self.options.interrupt.is_asked() {
                self.report.reached = Reached::Interrupted;
                return Ok(());
            }
            let mut run = self.another()?;
            let found = run.vary(&variant, nodes).and_then(|()| run.guarded(|run| Ok(run.finals(&finals)?)));
            let found =
                found.map_err(|fault| Fault { message: format!("with {variant}: {}", fault.message), ..fault })?;
            for ((what, expected), (_, actual)) in base.iter().zip(&found) {
                if expected != actual {
                    let fault = Fault::lines(format!("with {variant}: {what}"), expected, actual);
                    let message = format!("{}\n{}", fault.message, run.world.describe());
                    return Err(Fault { message, ..fault });
                }
            }
            if let Some(crash) = &variant.crash {
                if crash.named && !run.crashed {
                    let why = "nothing in the scenario reaches this failpoint, so nothing was tried";
                    return Err(Fault::text(format!("with {variant}: {why}")));
                }
                let (of, all) = missed.entry(crash.point).or_default();
                (*of, *all) = (*of + usize::from(!run.crashed), *all + 1);
            }
            self.report.combinations += usize::from(run.crashed || variant.crash.is_none());
        }
        self.note_missed(&missed);
        Ok(())
    }

    /// Says which failpoints of `crash=all` were not reached: their combinations were not counted.
    fn note_missed(&mut self, missed: &BTreeMap<&'static str, (usize, usize)>) {
        let never: Vec<&str> = missed.iter().filter(|(_, (of, all))| of == all).map(|(point, _)| *point).collect();
        let name = self.case_name();
        if !never.is_empty() {
            self.report.notes.push(format!("scenario {name} never reaches {}: not counted", never.join(", ")));
        }
        let some: Vec<String> = missed
            .iter()
            .filter(|(_, (of, all))| *of > 0 && of < all)
            .map(|(point, (of, all))| format!("{point} in {of} of {all} combinations"))
            .collect();
        if !some.is_empty() {
            self.report.notes.push(format!("scenario {name} does not reach {}: not counted", some.join(", ")));
        }
    }

    /// Refuses a statement of a scenario that no axis of its matrix reaches, so that its combinations would prove nothing.
    ///
    /// # Errors
    /// What is to be written instead.
    pub(super) fn refuse_uncrossed(&self, sql: &str) -> Result<(), Fault> {
        let Some(matrix) = &self.shown.matrix else { return Ok(()) };
        let cut = matrix.batch_rows.iter().any(Option::is_some);
        let spread = matrix.parallelism.iter().any(|n| *n != 1);
        let mut texts = Splitter::new(sql);
        // What can't be read is for the statement itself to say.
        while let Some(Ok(text)) = texts.next_text() {
            let Ok(parsed) = parse_one(text.text, Location { line: 1, column: 1 }) else { continue };
            let why = match &parsed.statement {
                Statement::StepQuery { name, .. } => format!(
                    "STEP QUERY in a statement runs in every combination as it stands, without its crash and its restart\nhelp: step {name}"
                ),
                Statement::Set { name, .. } | Statement::Reset(name) if spread && name.value == "partitions" => {
                    "SET partitions undoes the axis parallelism, which sets it too\nhelp: leave out the statement, or the axis".to_string()
                }
                Statement::StartQuery(start) if spread && start.options.entries.iter().any(|entry| entry.name == "partitions") => {
                    "the option partitions undoes the axis parallelism\nhelp: leave out the option, or the axis".to_string()
                }
                Statement::Sql(statement) if cut && matches!(**statement, ast::Statement::Insert(_)) => {
                    "batch_rows cuts the rows of feed, and leaves those of INSERT as they are\nhelp: feed STREAM, or leave out batch_rows".to_string()
                }
                _ => continue,
            };
            return Err(Fault::text(why));
        }
        Ok(())
    }

    /// The same file in another world, in which the queries that run are not started.
    fn another(&self) -> Result<FileRun<'a>, Fault> {
        let world = self.world.again()?;
        let mut run = FileRun::new(world, self.options, FileReport::of(&self.report.file));
        let folder = run.world.folder().display().to_string();
        run.variables = self.variables.clone();
        run.rounds = self.rounds.clone();
        run.variables.set("__TEST_DIR__", folder);
        Ok(run)
    }

    fn vary(&mut self, variant: &Variant, nodes: &[Node]) -> Result<(), Fault> {
        self.world.execute(&format!("SET partitions = {}", variant.parallelism))?;
        self.vary_nodes(variant, nodes)?;
        self.guarded(|run| Ok(run.until_all_idle(Some(variant))?))
    }

    fn vary_nodes(&mut self, variant: &Variant, nodes: &[Node]) -> Result<Flow, Fault> {
        for node in nodes {
            if self.options.interrupt.is_asked() {
                return Err(Fault::text("interrupted"));
            }
            if self.skips(&node.conditions) {
                continue;
            }
            match &node.body {
                Body::Plain(Record::Halt { .. }) => return Ok(Flow::Halt),
                Body::Loop { variable, values, nodes, .. } => {
                    for value in values {
                        self.variables.begin_round(variable, value.clone());
                        if self.vary_nodes(variant, nodes)? == Flow::Halt {
                            return Ok(Flow::Halt);
                        }
                    }
                }
                _ => {
                    let done = self.guarded(|run| run.vary_node(variant, node));
                    let line = node.place.line;
                    done.map_err(|fault| Fault { message: format!("line {line}: {}", fault.message), ..fault })?;
                }
            }
        }
        Ok(Flow::Next)
    }

    fn vary_node(&mut self, variant: &Variant, node: &Node) -> Result<(), Fault> {
        let own = match &node.body {
            Body::Plain(Record::Statement { sql, conditions, expected, .. }) => {
                if self.skips(conditions) {
                    return Ok(());
                }
                let sql = match (self.variables.replace(sql), expected) {
                    // The records as they stand have seen that this is the error that is expected.
                    (Err(_), StatementExpect::Error(_)) => return Ok(()),
                    (sql, _) => sql.map_err(Fault::text)?,
                };
                let ran = self.world.execute(&sql);
                return match (expected, ran) {
                    // The records as they stand have checked how it is refused.
                    (StatementExpect::Error(_), Err(_)) => Ok(()),
                    (StatementExpect::Error(_), Ok(_)) => Err(Fault::text("it should fail, and it succeeded")),
                    (_, ran) => Ok(ran.map(drop)?),
                };
            }
            // Each combination has a folder of its own, in which it runs what the scenario runs. What is printed may differ.
            Body::Plain(Record::System { conditions, command, .. }) => {
                if self.skips(conditions) {
                    return Ok(());
                }
                let command = self.variables.replace_in_command(command).map_err(Fault::text)?;
                return program::system(&command, &self.guard).map(drop);
            }
            Body::Plain(record @ (Record::Let { .. } | Record::Control(_) | Record::Sleep { .. })) => {
                return self.plain(node, record.clone()).map(drop);
            }
            Body::Plain(_) | Body::Scenario { .. } | Body::Loop { .. } => return Ok(()),
            Body::Own(own) => self.substituted(own)?,
        };
        let done = match &own {
            Own::Feed { stream, what, error } => match (self.feed_in_parts(variant, stream, what), error) {
                (Ok(()), Some(_)) => return Err(Fault::text("the rows should be refused, and they were taken")),
                (Err(_), Some(_)) => Ok(()),
                (fed, None) => fed,
            },
            Own::Step { query, how: StepHow::Error(error), .. } => match self.step_varied(variant, query) {
                Err(failure) if error.is_match(&failure.text) => Ok(()),
                Err(failure) => Err(failure),
                Ok(()) => return Err(Fault::text(format!("it should fail with /{error}/, and it did not"))),
            },
            Own::Step { query, .. } => self.step_varied(variant, query),
            Own::ClockSet(time) => self.world.execute(&format!("ADVANCE CLOCK TO TIMESTAMP '{time}'")).map(drop),
            Own::ClockAdvance(by) => self.world.execute(&format!("ADVANCE CLOCK BY INTERVAL '{by}'")).map(drop),
            Own::Stop { query, how: StopHow::Drain } => self.drain_varied(variant, query),
            Own::Stop { query, how } => self.world.execute(&stop_sql(query, *how)).map(drop),
            Own::RestartQuery { query, from } => self.world.restart_query(query, from.as_deref()),
            Own::RestartEngine { wipe } => self.world.restart(*wipe),
            Own::Program(asked) => {
                let ended = program::run(asked, self.world.folder(), self.options.patience, &self.guard, None)?;
                return program::check_code(asked, &ended);
            }
            // What they look at is of the batches as they stand; crashes are the combination's own.
            Own::Emitted { .. }
            | Own::Progress { .. }
            | Own::Watermark { .. }
            | Own::State { .. }
            | Own::Sink { .. }
            | Own::Checkpoint(_)
            | Own::Crash { .. }
            | Own::Plan { .. }
            | Own::Require(_) => Ok(()),
        };
        Ok(done?)
    }

    /// Feeds rows in parts, each of them a batch of its own.
    fn feed_in_parts(&mut self, variant: &Variant, stream: &str, what: &Feed) -> Result<(), Failure> {
        let Some(rows) = variant.batch_rows else { return self.feed(stream, what) };
        let parts: Vec<Feed> = match what {
            Feed::Close => vec![Feed::Close],
            Feed::Lines { format, lines } => {
                lines.chunks(rows).map(|lines| Feed::Lines { format, lines: lines.to_vec() }).collect()
            }
            Feed::Values(text) => {
                let values = value_rows(stream, text)?;
                values.chunks(rows).map(|rows| Feed::Values(rows.join(", "))).collect()
            }
        };
        for (n, part) in parts.iter().enumerate() {
            if n > 0 {
                self.until_all_idle(Some(variant))?;
            }
            self.feed(stream, part)?;
        }
        Ok(())
    }

    fn until_all_idle(&mut self, variant: Option<&Variant>) -> Result<(), Failure> {
        for query in self.world.queries() {
            let state = self.world.query(&query)?.status().state;
            if state == QueryState::Running {
                match variant {
                    Some(variant) => self.step_varied(variant, &query)?,
                    None => drop(self.until_idle(&query)?),
                }
            }
        }
        Ok(())
    }

    /// Runs a query until it is idle, through a crash and a restart where the combination has them.
    fn step_varied(&mut self, variant: &Variant, query: &str) -> Result<(), Failure> {
        if self.world.query(query)?.status().state == QueryState::Stopped {
            return Ok(());
        }
        let armed = self.arm(variant, query)?;
        let ran = self.until_idle(query);
        let fired = armed.is_some_and(|armed| !armed.waits(&self.world, query));
        self.crashed |= fired;
        match ran {
            Ok(_) => {}
            Err(_) if fired && !self.guard.is_over() => {
                self.world.restart(false)?;
                self.until_idle(query)?;
            }
            Err(failure) => return Err(failure),
        }
        if variant.restart_each_step { self.world.restart(false) } else { Ok(()) }
    }

    /// The crash of a combination, if it has one.
    fn arm(&self, variant: &Variant, query: &str) -> Result<Option<Armed>, Failure> {
        let armed =
            variant.crash.as_ref().map(|crash| Armed { point: crash.point.to_string(), hit: 1, action: crash.action });
        // One that an earlier step did not reach still waits.
        if let Some(armed) = armed.as_ref().filter(|armed| !armed.waits(&self.world, query)) {
            armed.arm(&self.world, query)?;
        }
        Ok(armed)
    }

    /// Drains a query, through a crash and a restart where the combination has them: what was begun the next start ends, what
    /// was not begun is asked for again, and what was done takes no start.
    fn drain_varied(&mut self, variant: &Variant, query: &str) -> Result<(), Failure> {
        let armed = self.arm(variant, query)?;
        let drained = self.world.execute(&stop_sql(query, StopHow::Drain));
        let fired = armed.is_some_and(|armed| !armed.waits(&self.world, query));
        self.crashed |= fired;
        match drained {
            Ok(_) => return Ok(()),
            Err(failure) if !fired || self.guard.is_over() => return Err(failure),
            Err(_) => {}
        }
        match self.world.restart(false) {
            Err(refused) if is_drained(&refused) => return Ok(()),
            other => other?,
        }
        self.until_idle(query)?;
        match self.world.query(query)?.status().state {
            QueryState::Stopped => Ok(()),
            _ => self.world.execute(&stop_sql(query, StopHow::Drain)).map(drop),
        }
    }

    /// What must come out the same, as sorted lines.
    fn finals(&self, finals: &BTreeSet<Final>) -> Result<Vec<(Final, Vec<String>)>, Failure> {
        let one = |what: &Final| {
            let seen = match what {
                Final::Sink(name) => self.world.committed(name)?,
                Final::Query(query) => self.world.folded(query)?,
            };
            Ok((what.clone(), compare::lines(&compare::sorted(seen.rows, SortMode::RowSort))))
        };
        finals.iter().map(one).collect()
    }
}

/// Whether some records stand behind a line of the file.
fn ends_behind(nodes: &[Node], line: usize) -> bool {
    nodes.iter().any(|node| {
        let within = match &node.body {
            Body::Loop { nodes, .. } | Body::Scenario { nodes, .. } => nodes.as_slice(),
            Body::Plain(_) | Body::Own(_) => &[],
        };
        node.place.root().line > line || ends_behind(within, line)
    })
}

fn variants(matrix: &Matrix, wanted: Combinations) -> Vec<Variant> {
    let Matrix { crashes, parallelism, batch_rows, restart_each_step } = matrix;
    let places = wanted.of(&[crashes.len(), parallelism.len(), batch_rows.len(), restart_each_step.len()]);
    let variant = |place: Vec<usize>| Variant {
        crash: crashes[place[0]].clone(),
        parallelism: parallelism[place[1]],
        batch_rows: batch_rows[place[2]],
        restart_each_step: restart_each_step[place[3]],
    };
    places.into_iter().map(variant).collect()
}

impl Variant {
    fn is_as_written(&self) -> bool {
        self.crash.is_none() && self.parallelism == 1 && self.batch_rows.is_none() && !self.restart_each_step
    }
}

/// The rows of a VALUES list, each as it is written.
pub(super) fn value_rows(stream: &str, text: &str) -> Result<Vec<String>, Failure> {
    let sql = format!("INSERT INTO {} VALUES {text}", quoted(stream));
    let statement = parse_one(&sql, Location { line: 1, column: 1 })?.statement;
    if let Statement::Sql(statement) = &statement
        && let ast::Statement::Insert(insert) = statement.as_ref()
        && let Some(source) = &insert.source
        && let ast::SetExpr::Values(values) = source.body.as_ref()
        && statement.to_string().ends_with(&values.to_string())
    {
        let row = |row: &ast::Parens<Vec<ast::Expr>>| {
            let cells: Vec<String> = row.content.iter().map(ToString::to_string).collect();
            format!("({})", cells.join(", "))
        };
        return Ok(values.rows.iter().map(row).collect());
    }
    Err(Failure::new(
        "these are not rows alone: something else stands with them\nhelp: feed takes what stands behind VALUES, (1, 'a'), (2, 'b'); write a statement for anything else",
    ))
}
