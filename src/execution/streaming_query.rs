//! The handle of a query: what can be asked of it, and told to it, while its thread runs.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use arrow::array::RecordBatch;
use serde_json::Value;

use super::ahead::Ahead;
use super::samples::{BadSample, LateSample};
use super::shared::{Inner, Shared};
use super::trigger::ends;
use super::verify::Verified;
use super::watchers::Watch;
use super::why::Now;
use super::why_text;
use crate::checkpoint::Failpoints;
use crate::clock::Stopwatch;
use crate::error::{Error, Result};
use crate::incremental::state_text;
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

/// What operators remember: each one's name and its rows, keys first, in the order of their keys.
pub type StateContents = Vec<(String, RecordBatch)>;

/// What STOP answers.
#[derive(Debug, Clone)]
pub struct StopReceipt {
    pub query: String,
    pub last_batch: Option<u64>,
    /// The offsets reached, by source.
    pub offsets: Vec<(String, Value)>,
    /// Milliseconds.
    pub watermark: Option<i64>,
    /// All that was open is closed, and the checkpoint takes no start any more.
    pub drained: bool,
    pub state_rows: Option<u64>,
}

/// A started query; clones speak of the same one.
#[derive(Clone)]
pub struct QueryHandle {
    shared: Arc<Shared>,
}

/// How often a waiting handle looks whether its user has lost patience.
pub(super) const PATIENCE: Duration = Duration::from_millis(20);

impl QueryHandle {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        QueryHandle { shared }
    }

    /// The query's name.
    pub fn name(&self) -> &str {
        &self.shared.context.query
    }

    /// The checkpoint's id.
    pub fn id(&self) -> &str {
        &self.shared.context.query_id
    }

    /// The last `last` progress documents, oldest first, as JSON objects (Spark's fields, see the checkpoint docs).
    pub fn progress(&self, last: usize) -> Vec<Value> {
        self.shared.lock().progress.last(last)
    }

    /// Rows that the batch that runs has read so far; its progress document will tell of them.
    pub fn reading(&self) -> u64 {
        self.shared.reading.rows()
    }

    /// What is before a query of TRIGGER AVAILABLE NOW; `None`: it is none, or that is not known yet.
    pub fn ahead(&self) -> Option<Ahead> {
        self.shared.ahead.get()
    }

    /// Rows that VERIFY has read so far, and how many it will read, where that is known.
    pub fn verified_rows(&self) -> (u64, Option<u64>) {
        (self.shared.verifying.rows(), self.shared.verifying.all())
    }

    /// Waits until it is known how far the sources are read, or the query has ended, or its user has lost patience.
    pub(super) fn wait_until_frozen(&self, given_up: &dyn Fn() -> bool) {
        let mut inner = self.shared.lock();
        while !(inner.frozen || inner.ended || given_up()) {
            inner = self.shared.wait(inner, PATIENCE);
        }
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

    /// The newest records that `on_error` let pass, oldest first.
    pub fn bad_records(&self) -> Vec<BadSample> {
        self.shared.lock().samples.bad.iter().cloned().collect()
    }

    /// The newest rows that came too late, oldest first.
    pub fn late_rows(&self) -> Vec<LateSample> {
        self.shared.lock().samples.late.iter().cloned().collect()
    }

    /// Looks on from the next batch on, until what is answered is dropped. The query never waits for it.
    ///
    /// # Errors
    /// InvalidInput: no batch will come.
    pub fn watch(&self) -> Result<Watch> {
        self.refuse_resting("there would be nothing to see")?;
        Ok(Watch::new(self.shared.clone()))
    }

    /// How many look on.
    pub fn watchers(&self) -> usize {
        self.shared.watchers.count()
    }

    /// Names of the streams and static tables that the query reads.
    pub fn reads(&self) -> Vec<String> {
        self.shared.reads.clone()
    }

    /// Points where this query can be made to crash.
    pub fn failpoints(&self) -> &Failpoints {
        &self.shared.context.failpoints
    }

    /// Stops and waits for the end. `cancelled` is asked while waiting.
    ///
    /// # Errors
    /// InvalidInput: it waits for batches that won't come. Conflict: it has ended, and was not drained. Cancelled: the timeout has passed, or the
    /// user gave up waiting; the query is still being stopped. The query's own error, if it fails on the way.
    pub fn stop(&self, how: StopHow, timeout: Option<Duration>, cancelled: &dyn Fn() -> bool) -> Result<StopReceipt> {
        if how == StopHow::Drain {
            self.refuse_paused("its last batch would never come")?;
        }
        if how == StopHow::Now {
            self.shared.abandon.store(true, Ordering::SeqCst);
            self.shared.given_up.store(true, Ordering::SeqCst);
        }
        let how = match how {
            StopHow::AfterBatches(n) => {
                self.refuse_resting("its next batches would never come")?;
                StopHow::AfterBatches(self.shared.lock().batches + n)
            }
            other => other,
        };
        self.shared.update(|inner| inner.stop = Some(how));
        let receipt =
            self.wait_for(timeout, cancelled, "to stop", |inner| inner.ended.then(|| inner.receipt.clone()))?;
        let failed = || {
            let error = self.shared.lock().status.last_error.clone();
            error.unwrap_or_else(|| Error::internal("a query ended without a receipt"))
        };
        let receipt = receipt.ok_or_else(failed)?;
        if how == StopHow::Drain && !receipt.drained {
            return Err(Error::conflict(format!(
                "query {} had ended before it was drained: what was open is in its checkpoint; START it again, then STOP QUERY {} DRAIN",
                self.name(),
                self.name()
            )));
        }
        Ok(receipt)
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
        let ends_with_input = inner.ends_with_input && !self.shared.rests(&inner);
        drop(inner);
        let until = match until {
            AwaitUntil::Default if ends(trigger) || ends_with_input => AwaitUntil::Termination,
            AwaitUntil::Default => AwaitUntil::Idle,
            other => other,
        };
        let so = "waiting for it would never end";
        match until {
            AwaitUntil::Termination => self.refuse_paused(so)?,
            _ => self.refuse_resting(so)?,
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
        let for_idle = usize::from(until == AwaitUntil::Idle);
        self.shared.update(|inner| inner.idle_waiters += for_idle);
        let answer = self.wait_for(timeout, cancelled, what, |inner| {
            if let Some(error) = inner.status.last_error.clone().filter(|_| inner.ended) {
                return Some(Err(error));
            }
            (done(inner) || inner.ended).then_some(Ok(()))
        });
        self.shared.update(|inner| inner.idle_waiters -= for_idle);
        answer?
    }

    /// `STEP QUERY`: runs exactly so many batches and answers how many ran. `cancelled` is asked while waiting.
    ///
    /// # Errors
    /// InvalidInput: the query runs by itself, or is paused. Cancelled: the user gave up; the batch that runs is the last.
    /// The query's, if it fails in one of them.
    pub fn step(&self, step: Step, cancelled: &dyn Fn() -> bool) -> Result<u64> {
        // It may end by itself at any step, and then has nothing more to do.
        let over = |inner: &Inner| self.shared.stepped && inner.ended && inner.status.last_error.is_none();
        if over(&self.shared.lock()) {
            return Ok(0);
        }
        self.refuse_ended()?;
        let (rests, paused) = {
            let inner = self.shared.lock();
            (self.shared.rests(&inner), inner.paused)
        };
        if paused {
            return Err(self.is_paused("it takes no step"));
        }
        if !rests {
            return Err(Error::invalid(format!("query {} runs by its own trigger", self.name()))
                .help("only a query with TRIGGER MANUAL can be stepped"));
        }
        let id = self.shared.update(|inner| {
            inner.steps_given += 1;
            inner.steps.push_back((inner.steps_given, step));
            inner.steps_given
        });
        let answer = self.wait_for(None, cancelled, "to step", |inner| match inner.step_answer {
            Some((last, ran)) if last == id => Some(Ok(ran)),
            _ => inner.ended.then(|| {
                let stopped = || Error::conflict("the query was stopped while it was stepped");
                if over(inner) { Ok(0) } else { Err(inner.status.last_error.clone().unwrap_or_else(stopped)) }
            }),
        });
        if answer.is_err() {
            self.shared.update(|inner| {
                inner.steps.retain(|(other, _)| *other != id);
                inner.steps_given_up = inner.steps_given_up.max(Some(id));
            });
        }
        answer?
    }

    /// `EXPLAIN QUERY`: the incremental plan as a tree.
    pub fn explain(&self) -> String {
        self.shared.explain.plan.clone()
    }

    /// `EXPLAIN STATE`: what bounds each state, and how many rows it holds.
    pub fn explain_state(&self) -> String {
        let held = self.state_rows();
        let rows = |name: &str| {
            let of: Vec<u64> = held.iter().filter(|(state, ..)| state == name).map(|(_, _, rows, _)| *rows).collect();
            (!of.is_empty()).then(|| of.iter().sum())
        };
        state_text(&self.shared.explain.states, rows)
    }

    /// `EXPLAIN WHY`: why the query gives out nothing, or not yet. `cancelled` is asked while waiting; a batch that runs is not
    /// waited for.
    ///
    /// # Errors
    /// Cancelled: the user gave up.
    pub fn why(&self, cancelled: &dyn Fn() -> bool) -> Result<String> {
        self.shared.update(|inner| {
            inner.work = None;
            inner.why_wanted = true;
        });
        let runs =
            |message: &str| ["Processing", "No new data", "Retrying"].iter().any(|word| message.starts_with(word));
        let now = self.wait_for(None, cancelled, "to say what it waits for", |inner| {
            if inner.ended {
                return Some(inner.status.last_error.clone().map_or(Now::Ended(inner.ending), Now::Failed));
            }
            if let Some(work) = inner.work.take() {
                return Some(if inner.paused { Now::Paused } else { Now::Waits(work) });
            }
            (inner.busy && runs(&inner.status.message)).then(|| Now::Busy(inner.status.message.clone()))
        })?;
        let inner = self.shared.lock();
        let facts = inner.facts.as_ref().ok_or_else(|| Error::internal("a query of which nothing is known"))?;
        Ok(why_text::explain(facts, &now))
    }

    /// `VERIFY QUERY`: runs the query again over the rows that it has read, and compares. `cancelled` is asked while waiting.
    ///
    /// # Errors
    /// Corrupt: it holds something else. InvalidInput: it has ended, or committed nothing. Unsupported, Conflict: it can't be run
    /// again with the same result. Cancelled: the user gave up.
    pub fn verify(&self, cancelled: &dyn Fn() -> bool) -> Result<Verified> {
        self.refuse_ended()?;
        self.shared.given_up.store(false, Ordering::SeqCst);
        self.shared.update(|inner| {
            inner.verified = None;
            inner.verify_wanted = true;
        });
        let verified = self.wait_for(None, cancelled, "to be verified", |inner| {
            let ended = || Err(Error::conflict("the query was stopped meanwhile"));
            inner.verified.take().or_else(|| inner.ended.then(ended))
        });
        if verified.is_err() {
            self.shared.given_up.store(true, Ordering::SeqCst);
        }
        verified?
    }

    /// `SHOW STATE`: operator, partition, rows, bytes.
    pub fn state_rows(&self) -> Vec<(String, usize, u64, u64)> {
        self.shared.lock().state_rows.clone()
    }

    /// The watermark that the next batch will use, in milliseconds; `None`: there is none yet.
    pub fn watermark(&self) -> Option<i64> {
        self.shared.lock().watermark
    }

    /// The id of the last committed batch of this run.
    pub fn last_batch(&self) -> Option<u64> {
        self.shared.lock().last_batch
    }

    /// What the operators remember after the last batch. `cancelled` is asked while waiting.
    ///
    /// # Errors
    /// InvalidInput: the query has ended. Cancelled: the user gave up.
    pub fn state_contents(&self, cancelled: &dyn Fn() -> bool) -> Result<StateContents> {
        self.refuse_ended()?;
        self.shared.update(|inner| {
            inner.state_contents = None;
            inner.state_wanted = true;
        });
        self.wait_for(None, cancelled, "to show its state", |inner| {
            let ended = || Err(Error::conflict("the query was stopped meanwhile"));
            inner.state_contents.take().or_else(|| inner.ended.then(ended))
        })?
    }

    /// Refuses to wait for batches of a query that runs none by itself.
    fn refuse_resting(&self, why: &str) -> Result<()> {
        let inner = self.shared.lock();
        if inner.ended {
            return Ok(());
        }
        if inner.paused {
            return Err(self.is_paused(why));
        }
        if self.shared.rests(&inner) {
            let message = format!("query {} runs only when it is stepped, so {why}", self.name());
            return Err(Error::invalid(message).help(format!("STEP QUERY {}", self.name())));
        }
        Ok(())
    }

    /// Refuses to wait for the end of a query that does nothing until RESUME: who waits can't say it. A STOP ends it all the
    /// same.
    fn refuse_paused(&self, so: &str) -> Result<()> {
        let inner = self.shared.lock();
        if inner.paused && !inner.ended && inner.stop.is_none() { Err(self.is_paused(so)) } else { Ok(()) }
    }

    fn is_paused(&self, so: &str) -> Error {
        Error::invalid(format!("query {} is paused, so {so}", self.name()))
            .help(format!("RESUME QUERY {} first", self.name()))
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
