//! WATCH: a query into the console that ends by Ctrl-C, after n rows, or after n batches.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::select::default_mode;
use super::target::OpenSink;
use super::{Answer, Session, lock};
use crate::delta::Delta;
use crate::error::{Error, Result};
use crate::execution::QuerySpec;
use crate::parser::{AwaitUntil, QueryText, StopHow, Trigger, WatchUntil, WatchWhat};
use crate::sink::{BatchId, BatchSummary, Begin, Sink, SinkCommit};

impl Session {
    pub(super) fn watch(&self, what: &WatchWhat, until: Option<WatchUntil>) -> Result<Answer> {
        match what {
            WatchWhat::Select(query) => self.watch_select(query, until),
            WatchWhat::Query(name) => {
                self.query(name)?;
                Err(Error::not_yet("WATCH of a running query")
                    .at(Some(name.span))
                    .help("WATCH SELECT …, or SHOW PROGRESS FOR the query"))
            }
        }
    }

    fn watch_select(&self, query: &QueryText, until: Option<WatchUntil>) -> Result<Answer> {
        let plan = self.streaming_plan(query)?;
        let console = self.console();
        let limit = Limit::new(until);
        let spec = QuerySpec {
            name: "watch".into(),
            sql: super::start::canonical(query),
            mode: default_mode(&plan),
            plan,
            trigger: Trigger::Asap,
            stop_after: match until {
                Some(WatchUntil::Batches(batches)) => Some(batches),
                _ => None,
            },
            checkpoint: None,
            settings: lock(&self.settings).clone(),
            target: console.traits,
            result_table: None,
            open_sink: limited(console.open, limit.clone()),
        };
        let handle = self.begin(spec).map_err(|e| e.at(Some(query.span)))?;
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
