//! The handle of a query: what can be asked of it, and told to it, while its thread runs.
//!
//! Everything that a handle and the query's thread share is in [`Shared`], behind one lock with one condition: the thread
//! waits on it for orders, handles wait on it for news.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;

use super::progress::ProgressLog;
use super::trigger::ends;
use crate::checkpoint::Failpoints;
use crate::clock::Stopwatch;
use crate::error::{Error, Result};
use crate::parser::{AwaitUntil, Step, StopHow, Trigger};

/// Where a query is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueryState {
    Running,
    Paused,
    /// Ended by itself or by STOP.
    Stopped,
    Failed,
}

/// `SHOW STATUS`.
#[derive(Debug, Clone)]
pub struct QueryStatus {
    pub state: QueryState,
    pub message: String,
    pub is_data_available: bool,
    pub is_trigger_active: bool,
    pub last_error: Option<Error>,
}

/// What STOP answers.
#[derive(Debug, Clone)]
pub struct StopReceipt {
    pub query: String,
    pub last_batch: Option<u64>,
    /// The offsets reached, by source.
    pub offsets: Vec<(String, Value)>,
    /// Milliseconds.
    pub watermark: Option<i64>,
    pub state_rows: Option<u64>,
}

/// What a handle and the query's thread share.
pub(super) struct Shared {
    pub name: String,
    pub id: String,
    pub reads: Vec<String>,
    pub explain: String,
    pub abandon: Arc<AtomicBool>,
    pub failpoints: Failpoints,
    inner: Mutex<Inner>,
    changed: Condvar,
}

/// Orders to the thread, and news of it.
pub(super) struct Inner {
    pub stop: Option<StopHow>,
    pub paused: bool,
    pub trigger: Trigger,
    pub steps: VecDeque<Step>,
    /// How many orders to step were carried out, and what the last ones answered.
    pub step_answers: VecDeque<Result<u64>>,
    /// Polls begun, and the last poll that found nothing to do.
    pub polls: u64,
    pub idle_poll: Option<u64>,
    /// Batches of this run.
    pub batches: u64,
    pub last_batch: Option<u64>,
    pub ended: bool,
    pub status: QueryStatus,
    pub progress: ProgressLog,
    pub receipt: Option<StopReceipt>,
    pub state_rows: Vec<(String, usize, u64, u64)>,
}

impl Shared {
    pub fn new(
        name: &str,
        id: &str,
        reads: Vec<String>,
        explain: String,
        trigger: Trigger,
        abandon: Arc<AtomicBool>,
        failpoints: Failpoints,
    ) -> Self {
        let status = QueryStatus {
            state: QueryState::Running,
            message: "Initializing sources".into(),
            is_data_available: false,
            is_trigger_active: false,
            last_error: None,
        };
        let inner = Inner {
            stop: None,
            paused: false,
            trigger,
            steps: VecDeque::new(),
            step_answers: VecDeque::new(),
            polls: 0,
            idle_poll: None,
            batches: 0,
            last_batch: None,
            ended: false,
            status,
            progress: ProgressLog::default(),
            receipt: None,
            state_rows: Vec::new(),
        };
        Shared {
            name: name.into(),
            id: id.into(),
            reads,
            explain,
            abandon,
            failpoints,
            inner: Mutex::new(inner),
            changed: Condvar::new(),
        }
    }

    pub fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes what is shared and wakes whoever waits.
    pub fn update<T>(&self, change: impl FnOnce(&mut Inner) -> T) -> T {
        let mut inner = self.lock();
        let answer = change(&mut inner);
        drop(inner);
        self.changed.notify_all();
        answer
    }

    /// Waits for news or orders, no longer than `time`.
    pub fn wait<'a>(&self, inner: MutexGuard<'a, Inner>, time: Duration) -> MutexGuard<'a, Inner> {
        self.changed.wait_timeout(inner, time).unwrap_or_else(PoisonError::into_inner).0
    }
}

/// A started query; clones speak of the same one.
#[derive(Clone)]
pub struct QueryHandle {
    shared: Arc<Shared>,
}

/// How often a waiting handle looks whether its user has lost patience.
const PATIENCE: Duration = Duration::from_millis(20);

impl QueryHandle {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        QueryHandle { shared }
    }

    /// The query's name.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// The checkpoint's id.
    pub fn id(&self) -> &str {
        &self.shared.id
    }

    /// The last `last` progress documents, oldest first, as JSON objects (Spark's fields, see the checkpoint docs).
    pub fn progress(&self, last: usize) -> Vec<Value> {
        self.shared.lock().progress.last(last)
    }

    /// What the query is doing.
    pub fn status(&self) -> QueryStatus {
        let inner = self.shared.lock();
        let mut status = inner.status.clone();
        if inner.paused && status.state == QueryState::Running {
            status.state = QueryState::Paused;
        }
        status
    }

    /// Names of the streams and static tables that the query reads.
    pub fn reads(&self) -> Vec<String> {
        self.shared.reads.clone()
    }

    /// Points where this query can be made to crash.
    pub fn failpoints(&self) -> &Failpoints {
        &self.shared.failpoints
    }

    /// Stops and waits for the end. `cancelled` is asked while waiting.
    ///
    /// # Errors
    /// Unsupported: DRAIN. Cancelled: the timeout has passed, or the user gave up waiting; the query is still being stopped.
    /// The query's own error, if it fails on the way.
    pub fn stop(&self, how: StopHow, timeout: Option<Duration>, cancelled: &dyn Fn() -> bool) -> Result<StopReceipt> {
        if how == StopHow::Drain {
            return Err(
                Error::not_yet("STOP QUERY … DRAIN").help("STOP QUERY q WHEN IDLE processes all that the sources hold")
            );
        }
        if how == StopHow::Now {
            self.shared.abandon.store(true, Ordering::SeqCst);
        }
        let how = match how {
            StopHow::AfterBatches(n) => StopHow::AfterBatches(self.shared.lock().batches + n),
            other => other,
        };
        self.shared.update(|inner| inner.stop = Some(how));
        self.wait_for(timeout, cancelled, "to stop", |inner| inner.ended.then(|| inner.receipt.clone()))?.ok_or_else(
            || {
                self.shared
                    .lock()
                    .status
                    .last_error
                    .clone()
                    .unwrap_or_else(|| Error::internal("a query ended without a receipt"))
            },
        )
    }

    /// Runs no batch until RESUME.
    pub fn pause(&self) -> Result<()> {
        self.refuse_ended()?;
        self.shared.update(|inner| inner.paused = true);
        Ok(())
    }

    /// Goes on after PAUSE.
    pub fn resume(&self) -> Result<()> {
        self.refuse_ended()?;
        self.shared.update(|inner| inner.paused = false);
        Ok(())
    }

    /// `ALTER QUERY q SET TRIGGER …`: from the next batch on.
    pub fn set_trigger(&self, trigger: Trigger) -> Result<()> {
        self.refuse_ended()?;
        if matches!(trigger, Trigger::Continuous(_)) {
            return Err(Error::not_yet("TRIGGER CONTINUOUS"));
        }
        self.shared.update(|inner| inner.trigger = trigger);
        Ok(())
    }

    /// Waits; fails with the query's error if it fails. `cancelled` is asked while waiting.
    ///
    /// # Errors
    /// The query's. Cancelled: the timeout has passed, or the user gave up. InvalidInput: what is waited for can't come.
    pub fn await_until(
        &self,
        until: AwaitUntil,
        timeout: Option<Duration>,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<()> {
        let inner = self.shared.lock();
        let (trigger, polls, batches) = (inner.trigger, inner.polls, inner.batches);
        drop(inner);
        let until = match until {
            AwaitUntil::Default if ends(trigger) => AwaitUntil::Termination,
            AwaitUntil::Default => AwaitUntil::Idle,
            other => other,
        };
        if trigger == Trigger::Manual && until != AwaitUntil::Termination && !self.shared.lock().ended {
            return Err(Error::invalid(format!(
                "query {} runs only when it is stepped, so waiting for it would never end",
                self.name()
            ))
            .help(format!("STEP QUERY {}", self.name())));
        }
        let what = match until {
            AwaitUntil::Batches(_) | AwaitUntil::Batch(_) => "to run its batches",
            AwaitUntil::Termination => "to end",
            _ => "to be idle",
        };
        let done = |inner: &Inner| match until {
            AwaitUntil::Batches(n) => inner.batches >= batches + n,
            AwaitUntil::Batch(n) => inner.last_batch.is_some_and(|last| last >= n),
            AwaitUntil::Idle | AwaitUntil::Default => inner.idle_poll.is_some_and(|idle| idle > polls),
            AwaitUntil::Termination => false,
        };
        self.wait_for(timeout, cancelled, what, |inner| {
            if let Some(error) = inner.status.last_error.clone().filter(|_| inner.ended) {
                return Some(Err(error));
            }
            (done(inner) || inner.ended).then_some(Ok(()))
        })?
    }

    /// `STEP QUERY`: runs exactly so many batches and answers how many ran.
    ///
    /// # Errors
    /// InvalidInput: the query runs by itself. The query's, if it fails in one of them.
    pub fn step(&self, step: Step) -> Result<u64> {
        self.refuse_ended()?;
        if self.shared.lock().trigger != Trigger::Manual {
            return Err(Error::invalid(format!("query {} runs by its own trigger", self.name()))
                .help("only a query with TRIGGER MANUAL can be stepped"));
        }
        self.shared.update(|inner| {
            inner.step_answers.clear();
            inner.steps.push_back(step);
        });
        self.wait_for(None, &|| false, "to step", |inner| {
            let stopped = || {
                Err(inner
                    .status
                    .last_error
                    .clone()
                    .unwrap_or_else(|| Error::conflict("the query was stopped while it was stepped")))
            };
            if inner.step_answers.is_empty() { inner.ended.then(stopped) } else { inner.step_answers.pop_front() }
        })?
    }

    /// `EXPLAIN QUERY`: the incremental plan as a tree.
    pub fn explain(&self) -> String {
        self.shared.explain.clone()
    }

    /// `SHOW STATE`: operator, partition, rows, bytes.
    pub fn state_rows(&self) -> Vec<(String, usize, u64, u64)> {
        self.shared.lock().state_rows.clone()
    }

    fn refuse_ended(&self) -> Result<()> {
        if self.shared.lock().ended {
            return Err(Error::invalid(format!("query {} has ended", self.name()))
                .help(format!("START QUERY {} …", self.name())));
        }
        Ok(())
    }

    fn wait_for<T>(
        &self,
        timeout: Option<Duration>,
        cancelled: &dyn Fn() -> bool,
        what: &str,
        mut ready: impl FnMut(&mut Inner) -> Option<T>,
    ) -> Result<T> {
        let watch = Stopwatch::start();
        let mut inner = self.shared.lock();
        loop {
            if let Some(answer) = ready(&mut inner) {
                return Ok(answer);
            }
            if timeout.is_some_and(|timeout| watch.elapsed() >= timeout) {
                return Err(Error::Cancelled {
                    message: format!("waited in vain for query {} {what}: the timeout has passed", self.name()),
                });
            }
            if cancelled() {
                return Err(Error::Cancelled {
                    message: format!("no longer waiting for query {} {what}", self.name()),
                });
            }
            inner = self.shared.wait(inner, PATIENCE);
        }
    }
}
