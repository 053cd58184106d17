//! WATCH: a query of its own into the console, or a look at one that runs; ends by Ctrl-C, after n rows, or after n batches.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use datafusion::logical_expr::LogicalPlan;

use super::select::default_mode;
use super::target::{OpenSink, Uses};
use super::{Answer, Session, lock};
use crate::catalog::{SinkConnector, open_blackhole};
use crate::delta::Delta;
use crate::error::{Error, Result};
use crate::execution::{DeadLetters, QuerySpec, Seen};
use crate::parser::{AwaitUntil, Name, OutputMode, QueryText, StopHow, Trigger, WatchUntil, WatchWhat};
use crate::planner::over::Over;
use crate::planner::{any, reads_stream};
use crate::sink::{BatchId, BatchSummary, Begin, Sink, SinkCommit};

/// The default mode; UPDATE where only that can show an OVER, as WATCH is told none.
fn mode_of(plan: &LogicalPlan) -> OutputMode {
    let corrects =
        |node: &LogicalPlan| matches!(node, LogicalPlan::Window(over) if reads_stream(node) && Over::of(over).is_err());
    if any(plan, corrects) { OutputMode::Update } else { default_mode(plan) }
}

impl Session {
    pub(super) fn watch(&self, what: &WatchWhat, until: Option<WatchUntil>) -> Result<Answer> {
        match what {
            WatchWhat::Select(query) => self.watch_select(query, until),
            WatchWhat::Query(name) => self.watch_query(name, until),
        }
    }

    fn watch_select(&self, query: &QueryText, until: Option<WatchUntil>) -> Result<Answer> {
        let plan = self.streaming_plan(query)?;
        let console = self.console();
        let limit = Limit::new(until);
        let spec = QuerySpec {
            name: "watch".into(),
            sql: super::start::canonical(query),
            mode: mode_of(&plan),
            plan,
            trigger: Trigger::Asap,
            stop_after: match until {
                Some(WatchUntil::Batches(batches)) => Some(batches),
                _ => None,
            },
            checkpoint: None,
            checkpoint_place: None,
            settings: lock(&self.settings).clone(),
            target: console.traits,
            result_table: None,
            open_sink: limited(console.open, limit.clone()),
            // What is looked at once is written nowhere.
            dead_letters: DeadLetters::default(),
        };
        let handle = self.begin(spec).map_err(|e| e.at(Some(query.span)))?;
        *lock(&self.watched) = Some(handle.clone());
        let ended = || self.cancel.is_cancelled() || limit.reached();
        match handle.await_until(AwaitUntil::Termination, None, &ended) {
            Ok(()) => {}
            Err(Error::Cancelled { .. }) => {
                handle.stop(StopHow::Graceful, None, &|| false)?;
            }
            Err(error) => {
                // It has failed, or can't be waited for: nothing of it may run on.
                let _ = handle.stop(StopHow::Now, None, &|| false);
                return Err(error);
            }
        }
        Ok(Answer::done("WATCH"))
    }

    /// Shows what the batches of a running query change from now on, beside its own target.
    fn watch_query(&self, name: &Name, until: Option<WatchUntil>) -> Result<Answer> {
        let query = self.query(name)?;
        let watch = query.watch().map_err(|e| e.at(Some(name.span)))?;
        *lock(&self.watched) = Some(query);
        let limit = Limit::new(until);
        let open = match self.writes_to_console(name) {
            false => self.console().open,
            true => {
                (self.notices)(&format!(
                    "query {} writes to the console itself: its batches are shown once",
                    name.value
                ));
                Box::new(open_blackhole)
            }
        };
        let mut screen = limited(open, limit.clone())(watch.context().clone())?;
        let mut batches = 0;
        let left = |batches: u64| match until {
            Some(WatchUntil::Batches(wanted)) => batches < wanted,
            _ => true,
        };
        while left(batches) && !limit.reached() {
            match watch.next(&|| self.cancel.is_cancelled()) {
                Ok(Seen::Batch(batch)) => {
                    batches += batch.skipped;
                    self.tell_skipped(name, batch.skipped);
                    if !left(batches) {
                        break;
                    }
                    batches += 1;
                    screen.begin(batch.batch)?;
                    batch.changes.into_iter().try_for_each(|(partition, changes)| screen.push(partition, changes))?;
                    screen.commit(&batch.summary)?;
                }
                Ok(Seen::Skipped(skipped)) => {
                    batches += skipped;
                    self.tell_skipped(name, skipped);
                }
                Ok(Seen::Ended) => return Ok(Answer::noticed("WATCH", format!("query {} has ended", name.value))),
                Err(Error::Cancelled { .. }) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(Answer::done("WATCH"))
    }

    fn tell_skipped(&self, name: &Name, skipped: u64) {
        let s = if skipped == 1 { "" } else { "es" };
        if skipped > 0 {
            (self.notices)(&format!(
                "WATCH {}: {skipped} batch{s} skipped: they come faster than they can be shown",
                name.value
            ));
        }
    }

    fn writes_to_console(&self, name: &Name) -> bool {
        let target = lock(&self.queries).get(&name.value).map(|q| (q.target.clone(), q.words.clone()));
        match target {
            Some((Uses::Sink(sink), _)) => {
                self.catalog.sink(&sink).is_some_and(|sink| sink.connector == SinkConnector::Console)
            }
            Some((Uses::Nothing, words)) => words == "CONSOLE",
            _ => false,
        }
    }
}

/// How many rows may still be shown; shared by the sink, which counts, and the statement, which waits.
#[derive(Clone)]
struct Limit(Option<Arc<(AtomicU64, AtomicBool)>>);

impl Limit {
    fn new(until: Option<WatchUntil>) -> Self {
        match until {
            Some(WatchUntil::Rows(rows)) => Limit(Some(Arc::new((AtomicU64::new(rows), AtomicBool::new(rows == 0))))),
            _ => Limit(None),
        }
    }

    /// Whether the last row was shown.
    fn reached(&self) -> bool {
        self.0.as_ref().is_some_and(|shared| shared.1.load(Ordering::SeqCst))
    }

    /// Of `rows` rows, how many may be shown.
    fn take(&self, rows: usize) -> usize {
        let Some(shared) = &self.0 else { return rows };
        let left = shared.0.load(Ordering::SeqCst);
        let taken = left.min(rows as u64);
        shared.0.store(left - taken, Ordering::SeqCst);
        taken as usize
    }

    /// A batch was shown.
    fn committed(&self) {
        if let Some(shared) = self.0.as_ref().filter(|shared| shared.0.load(Ordering::SeqCst) == 0) {
            shared.1.store(true, Ordering::SeqCst);
        }
    }
}

/// Puts the limit in front of the console.
fn limited(open: OpenSink, limit: Limit) -> OpenSink {
    match limit.0 {
        None => open,
        Some(_) => Box::new(|context| Ok(Box::new(Limited { inner: open(context)?, limit }))),
    }
}

/// A sink that is handed the first rows only.
struct Limited {
    inner: Box<dyn Sink>,
    limit: Limit,
}

impl Sink for Limited {
    fn description(&self) -> String {
        self.inner.description()
    }

    fn begin(&mut self, batch: BatchId) -> Result<Begin> {
        self.inner.begin(batch)
    }

    fn push(&mut self, partition: usize, changes: Delta) -> Result<()> {
        match self.limit.take(changes.len()) {
            0 => Ok(()),
            rows => {
                let ops = changes.ops.map(|mut ops| {
                    ops.truncate(rows);
                    ops
                });
                self.inner.push(partition, Delta { rows: changes.rows.slice(0, rows), ops })
            }
        }
    }

    fn commit(&mut self, summary: &BatchSummary) -> Result<SinkCommit> {
        let commit = self.inner.commit(summary)?;
        self.limit.committed();
        Ok(commit)
    }

    fn abort(&mut self) -> Result<()> {
        self.inner.abort()
    }
}
