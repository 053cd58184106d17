//! A scenario: records that are run as they stand, and then again under everything that must change nothing: crashes, other
//! numbers of partitions, other batches, restarts.

use std::collections::BTreeSet;

use sqllogictest::{Record, SortMode};

use super::answer::Failure;
use super::compare;
use super::expect::Armed;
use super::record::{Feed, Matrix, Own, Which};
use super::report::{Fault, FileReport};
use super::run::FileRun;
use super::script::{Body, Node};
use super::world::quoted;
use crate::checkpoint::failpoint::Action;
use crate::error::Location;
use crate::execution::QueryState;
use crate::parser::{Statement, parse_one};

/// One combination.
#[derive(Debug, Clone)]
struct Variant {
    crash: Option<String>,
    parallelism: u64,
    batch_rows: Option<usize>,
    restart_each_step: bool,
}

impl std::fmt::Display for Variant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "crash={} parallelism={}", self.crash.as_deref().unwrap_or("none"), self.parallelism)?;
        if let Some(rows) = self.batch_rows {
            write!(f, " batch_rows={rows}")?;
        }
        if self.restart_each_step { write!(f, " restart=each-step") } else { Ok(()) }
    }
}

/// What must come out the same: of a sink, or of a query.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Final {
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

impl<'a> FileRun<'a> {
    /// Runs the records of a scenario as they stand, then every combination of its matrix.
    ///
    /// # Errors
    /// A combination gives another result.
    pub(super) fn scenario(&mut self, matrix: &Matrix, nodes: &[Node]) -> Result<(), Fault> {
        let finals: BTreeSet<Final> = nodes.iter().filter_map(final_of).collect();
        let variants = some_of(variants(matrix), self.options.combinations);
        if variants.len() > 1 && finals.is_empty() {
            return Err(Fault::text(
                "nothing says what must come out the same: end the scenario with sink NAME committed, or emitted QUERY all",
            ));
        }
        let base = {
            let mut run = self.another()?;
            run.nodes(nodes);
            self.report.ran += run.report.ran;
            self.report.skipped += run.report.skipped;
            self.rewrites.append(&mut run.rewrites);
            if !run.report.failed.is_empty() {
                self.report.failed.append(&mut run.report.failed);
                return Ok(());
            }
            run.until_all_idle(None)?;
            run.finals(&finals)?
        };
        if variants.len() == 1 && variants[0].is_as_written() {
            return Ok(());
        }
        for variant in variants {
            let mut run = self.another()?;
            run.guard.begin(run.world.session().cancel_token());
            let ended = run.vary(&variant, nodes).and_then(|()| run.finals(&finals));
            run.guard.end();
            self.report.combinations += 1;
            let found = ended.map_err(|failure| Fault::text(format!("with {variant}: {}", failure.text)))?;
            for ((what, expected), (_, actual)) in base.iter().zip(&found) {
                if expected != actual {
                    let fault = Fault::lines(format!("with {variant}: {what}"), expected, actual);
                    let message = format!("{}\n{}", fault.message, run.world.describe());

                    return Err(Fault { message, ..fault });
                }
            }
        }
        Ok(())
    }

    /// The same file in another world, in which the queries that run are not started.
    fn another(&self) -> Result<FileRun<'a>, Fault> {
        let world = self.world.again()?;
        let report = FileReport { file: self.report.file.clone(), ..FileReport::default() };
        let mut run = FileRun::new(world, self.options, report);
        let folder = run.world.folder().display().to_string();
        run.variables = self.variables.clone();
        run.variables.set("__TEST_DIR__", folder);
        Ok(run)
    }

    fn vary(&mut self, variant: &Variant, nodes: &[Node]) -> Result<(), Failure> {
        self.world.execute(&format!("SET partitions = {}", variant.parallelism))?;
        for node in nodes {
            self.vary_node(variant, node).map_err(|e| Failure::new(format!("line {}: {}", node.place.line, e.text)))?;
        }
        self.until_all_idle(Some(variant))
    }

    fn vary_node(&mut self, variant: &Variant, node: &Node) -> Result<(), Failure> {
        let replaced = |text: &str| self.variables.replace(text).map_err(Failure::new);
        match &node.body {
            Body::Plain(Record::Statement { sql, .. }) => {
                // What is refused is refused in every combination; the records as they stand have checked it.
                let ran = self.world.execute(&replaced(sql)?);
                if matches!(
                    &node.body,
                    Body::Plain(Record::Statement { expected: sqllogictest::StatementExpect::Error(_), .. })
                ) {
                    return Ok(());
                }
                ran.map(drop)
            }
            Body::Plain(_) | Body::Scenario { .. } => Ok(()),
            Body::Loop { variable, values, nodes, .. } => {
                for value in values {
                    self.variables.set(variable, value.clone());
                    nodes.iter().try_for_each(|node| self.vary_node(variant, node))?;
                }
                Ok(())
            }
            Body::Own(own) => match own {
                Own::Feed { error: Some(_), .. } => Ok(()),
                Own::Feed { stream, what, .. } => {
                    let what = match what {
                        Feed::Values(rows) => Feed::Values(replaced(rows)?),
                        other => other.clone(),
                    };
                    self.feed_in_parts(variant, stream, &what)
                }
                Own::Step { query, .. } => self.step_varied(variant, query),
                Own::ClockSet(time) => self.world.execute(&format!("ADVANCE CLOCK TO TIMESTAMP '{time}'")).map(drop),
                Own::ClockAdvance(by) => self.world.execute(&format!("ADVANCE CLOCK BY INTERVAL '{by}'")).map(drop),
                Own::Stop { query, .. } => self.world.execute(&format!("STOP QUERY {}", quoted(query))).map(drop),
                Own::RestartQuery { query, from } => self.world.restart_query(query, from.as_deref()),
                Own::RestartEngine { wipe } => self.world.restart(*wipe),
                // What they look at is of the batches as they stand.
                Own::Emitted { .. }
                | Own::Progress { .. }
                | Own::Watermark { .. }
                | Own::State { .. }
                | Own::Sink { .. }
                | Own::Checkpoint(_)
                | Own::Crash { .. }
                | Own::Plan { .. }
                | Own::Program(_)
                | Own::Require(_) => Ok(()),
            },
        }
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

    fn until_all_idle(&self, variant: Option<&Variant>) -> Result<(), Failure> {
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
    fn step_varied(&self, variant: &Variant, query: &str) -> Result<(), Failure> {
        if self.world.query(query)?.status().state == QueryState::Stopped {
            return Ok(());
        }
        if let Some(point) = &variant.crash {
            let armed = Armed { point: point.clone(), hit: 1, action: Action::Kill };
            self.arm_at(query, &armed)?;
        }
        match self.until_idle(query) {
            Ok(_) => {}
            Err(failure) if variant.crash.is_some() && failure.text.contains("failpoint ") => {
                self.world.restart(false)?;
                self.until_idle(query)?;
            }
            Err(failure) => return Err(failure),
        }
        if variant.restart_each_step { self.world.restart(false) } else { Ok(()) }
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

fn final_of(node: &Node) -> Option<Final> {
    match &node.body {
        Body::Own(Own::Sink { name, .. }) => Some(Final::Sink(name.clone())),
        Body::Own(Own::Emitted { query, which: Which::All, .. }) => Some(Final::Query(query.clone())),
        _ => None,
    }
}

fn variants(matrix: &Matrix) -> Vec<Variant> {
    let mut out = Vec::new();
    for crash in &matrix.crashes {
        for parallelism in &matrix.parallelism {
            for batch_rows in &matrix.batch_rows {
                for restart_each_step in &matrix.restart_each_step {
                    let (crash, parallelism) = (crash.clone(), *parallelism);
                    let (batch_rows, restart_each_step) = (*batch_rows, *restart_each_step);
                    out.push(Variant { crash, parallelism, batch_rows, restart_each_step });
                }
            }
        }
    }
    out
}

/// So many of all combinations, spread evenly; each `n`-th is taken off the diagonal, so that no axis is left out where its
/// length divides the distance.
fn some_of(all: Vec<Variant>, wanted: Option<usize>) -> Vec<Variant> {
    let (len, wanted) = (all.len(), wanted.unwrap_or(usize::MAX).max(1));
    if wanted >= len {
        return all;
    }
    let distance = len / wanted;
    let places: BTreeSet<usize> = (0..wanted).map(|n| n * distance + n % distance).collect();
    all.into_iter().enumerate().filter(|(n, _)| places.contains(n)).map(|(_, variant)| variant).collect()
}

impl Variant {
    fn is_as_written(&self) -> bool {
        self.crash.is_none() && self.parallelism == 1 && self.batch_rows.is_none() && !self.restart_each_step
    }
}

/// The rows of a VALUES list, each as it is written.
fn value_rows(stream: &str, text: &str) -> Result<Vec<String>, Failure> {
    use crate::parser::ast;
    let sql = format!("INSERT INTO {} VALUES {text}", quoted(stream));
    let statement = parse_one(&sql, Location { line: 1, column: 1 })?.statement;
    if let Statement::Sql(statement) = &statement
        && let ast::Statement::Insert(insert) = statement.as_ref()
        && let Some(source) = &insert.source
        && let ast::SetExpr::Values(values) = source.body.as_ref()
    {
        let row = |row: &ast::Parens<Vec<ast::Expr>>| {
            let cells: Vec<String> = row.content.iter().map(ToString::to_string).collect();
            format!("({})", cells.join(", "))
        };
        return Ok(values.rows.iter().map(row).collect());
    }
    Err(Failure::new("the rows of a feed are no VALUES list"))
}
