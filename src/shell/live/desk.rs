//! The console sinks of a terminal: each keeps what it is handed for a view, and prints it only where no view is meant for it.
//!
//! A query whose view was left runs on silently: `\tail` makes it print again, and its view, when it is opened again, knows
//! what came meanwhile.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::model::Model;
use crate::catalog::AroundConsole;
use crate::clock::Stopwatch;
use crate::delta::Delta;
use crate::error::Result;
use crate::sink::{BatchId, BatchSummary, Begin, Sink, SinkCommit, SinkContext};

/// How long somebody who waits for a console sleeps before they look around.
const PATIENCE: Duration = Duration::from_millis(10);

/// All console sinks of a session, by query.
pub(in crate::shell) struct Desk {
    watch: Stopwatch,
    /// Somebody types: scripts that were named at the start have run.
    typing: AtomicBool,
    inner: Mutex<Inner>,
    opened: Condvar,
}

#[derive(Default)]
struct Inner {
    /// Consoles that are opened now are for a view.
    quiet: bool,
    /// The last that was opened since somebody began to expect one.
    opened: Option<Arc<Live>>,
    consoles: BTreeMap<String, Arc<Live>>,
}

/// What a console has seen.
pub(super) struct Live {
    pub(super) query: String,
    /// When it was opened.
    pub(super) since: Duration,
    model: Mutex<Model>,
    quiet: AtomicBool,
    /// Nothing more comes.
    closed: AtomicBool,
    version: AtomicU64,
}

impl Desk {
    pub(in crate::shell) fn new() -> Arc<Self> {
        let (typing, inner) = (AtomicBool::new(false), Mutex::default());
        Arc::new(Desk { watch: Stopwatch::start(), typing, inner, opened: Condvar::new() })
    }

    /// From now on somebody types.
    pub(in crate::shell) fn begin_typing(&self) {
        self.typing.store(true, Ordering::SeqCst);
    }

    pub(super) fn is_typed_at(&self) -> bool {
        self.typing.load(Ordering::SeqCst)
    }

    /// The time of all models.
    pub(super) fn now(&self) -> Duration {
        self.watch.elapsed()
    }

    /// A statement begins that may open a console; `quiet`: for a view.
    pub(super) fn expect(&self, quiet: bool) {
        let mut inner = self.lock();
        (inner.quiet, inner.opened) = (quiet, None);
    }

    /// The statement is over.
    pub(super) fn expect_no_more(&self) {
        self.lock().quiet = false;
    }

    /// The console that was opened since somebody expected one.
    pub(super) fn take_opened(&self) -> Option<Arc<Live>> {
        self.lock().opened.take()
    }

    /// Waits for a console to be opened; `None`: `over` has come before.
    pub(super) fn wait_opened(&self, over: &dyn Fn() -> bool) -> Option<Arc<Live>> {
        let mut inner = self.lock();
        loop {
            let is_over = over();
            if inner.opened.is_some() || is_over {
                inner.quiet = false;
                return inner.opened.take();
            }
            inner = self.opened.wait_timeout(inner, PATIENCE).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The console of a query.
    pub(super) fn console(&self, query: &str) -> Option<Arc<Live>> {
        self.lock().consoles.get(query).cloned()
    }

    /// What is put around the consoles of a session: it keeps the results of a query for its view.
    pub(in crate::shell) fn around_consoles(self: &Arc<Self>) -> AroundConsole {
        let desk = self.clone();
        Arc::new(move |context: &SinkContext, console: Box<dyn Sink>| desk.around(context, console))
    }

    fn around(self: &Arc<Self>, context: &SinkContext, console: Box<dyn Sink>) -> Box<dyn Sink> {
        let mut inner = self.lock();
        let live = Arc::new(Live {
            query: context.query.clone(),
            since: self.now(),
            model: Mutex::new(Model::new(context)),
            quiet: AtomicBool::new(inner.quiet),
            closed: AtomicBool::new(false),
            version: AtomicU64::new(0),
        });
        inner.consoles.insert(context.query.clone(), live.clone());
        inner.opened = Some(live.clone());
        self.opened.notify_all();
        Box::new(LiveSink { desk: self.clone(), live, console, batch: 0, prints: false, changes: Vec::new() })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Live {
    pub(super) fn model(&self) -> MutexGuard<'_, Model> {
        self.model.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes with each batch.
    pub(super) fn version(&self) -> u64 {
        self.version.load(Ordering::SeqCst)
    }

    /// Whether its query still writes to it.
    pub(super) fn is_open(&self) -> bool {
        !self.closed.load(Ordering::SeqCst)
    }

    pub(super) fn is_quiet(&self) -> bool {
        self.quiet.load(Ordering::SeqCst)
    }

    /// From its next batch on the console prints, or not.
    pub(super) fn set_quiet(&self, quiet: bool) {
        self.quiet.store(quiet, Ordering::SeqCst);
    }
}

/// A console, and before it what a view sees.
struct LiveSink {
    desk: Arc<Desk>,
    live: Arc<Live>,
    console: Box<dyn Sink>,
    batch: BatchId,
    /// This batch is printed.
    prints: bool,
    changes: Vec<Delta>,
}

impl Drop for LiveSink {
    fn drop(&mut self) {
        self.live.closed.store(true, Ordering::SeqCst);
    }
}

impl Sink for LiveSink {
    fn description(&self) -> String {
        self.console.description()
    }

    fn begin(&mut self, batch: BatchId) -> Result<Begin> {
        self.changes.clear();
        self.batch = batch;
        self.prints = !self.live.is_quiet();
        if self.prints { self.console.begin(batch) } else { Ok(Begin::Write) }
    }

    fn push(&mut self, partition: usize, changes: Delta) -> Result<()> {
        if !changes.is_empty() {
            self.changes.push(changes.clone());
        }
        if self.prints { self.console.push(partition, changes) } else { Ok(()) }
    }

    fn commit(&mut self, summary: &BatchSummary) -> Result<SinkCommit> {
        let changes = std::mem::take(&mut self.changes);
        let commit = match self.prints {
            true => self.console.commit(summary)?,
            false => SinkCommit { rows: changes.iter().map(|delta| delta.len() as u64).sum() },
        };
        self.live.model().apply(self.batch, &changes, summary, self.desk.now())?;
        self.live.version.fetch_add(1, Ordering::SeqCst);
        Ok(commit)
    }

    fn abort(&mut self) -> Result<()> {
        self.changes.clear();
        if self.prints { self.console.abort() } else { Ok(()) }
    }
}
