//! What a query's handles and its thread share, behind one lock with one condition: the thread waits on it for orders, handles
//! wait on it for news.

use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::ahead::Counter;
use super::progress::ProgressLog;
use super::reading::Reading;
use super::samples::Samples;
use super::streaming_query::{QueryState, QueryStatus, StateContents, StopReceipt};
use super::verify::Verified;
use super::watchers::Watchers;
use super::why::{Ending, Facts, Work};
use crate::error::{Error, Result};
use crate::incremental::ExplainedState;
use crate::parser::{Step, StopHow, Trigger};
use crate::sink::SinkContext;

/// The plan as EXPLAIN shows it, and what bounds its states.
pub(super) struct Explained {
    pub plan: String,
    pub states: Vec<ExplainedState>,
}

/// What a handle and the query's thread share.
pub(super) struct Shared {
    /// What its sink was opened for: its name, its ids, its columns.
    pub context: SinkContext,
    pub reads: Vec<String>,
    pub explain: Explained,
    pub abandon: Arc<AtomicBool>,
    /// Nobody waits for VERIFY any more.
    pub given_up: Arc<AtomicBool>,
    pub watchers: Arc<Watchers>,
    /// Of the batch that runs.
    pub reading: Reading,
    pub ahead: Counter,
    /// Of VERIFY.
    pub verifying: Reading,
    /// See [`super::Engine::stepped`].
    pub stepped: bool,
    inner: Mutex<Inner>,
    changed: Condvar,
}

/// Orders to the thread, and news of it.
pub(super) struct Inner {
    pub stop: Option<StopHow>,
    pub paused: bool,
    pub trigger: Trigger,
    /// Orders to step, each with its number.
    pub steps: VecDeque<(u64, Step)>,
    /// How many orders to step were given.
    pub steps_given: u64,
    /// Orders up to this one end with the batch that runs: nobody waits for them.
    pub steps_given_up: Option<u64>,
    /// The last order that was carried out, and how many batches it ran.
    pub step_answer: Option<(u64, u64)>,
    /// How many wait for the query to be idle.
    pub idle_waiters: usize,
    /// Its inputs all have an end, so the query has one too.
    pub ends_with_input: bool,
    /// Polls begun, and the last poll that found nothing to do.
    pub polls: u64,
    pub idle_poll: Option<u64>,
    /// Batches of this run.
    pub batches: u64,
    pub last_batch: Option<u64>,
    pub ended: bool,
    pub status: QueryStatus,
    pub progress: ProgressLog,
    pub samples: Samples,
    pub receipt: Option<StopReceipt>,
    pub state_rows: Vec<(String, usize, u64, u64)>,
    /// The watermark that the next batch will use, in milliseconds.
    pub watermark: Option<i64>,
    /// It looks for a batch or runs one: it hears no orders.
    pub busy: bool,
    /// AVAILABLE NOW: it is known how far the sources are read.
    pub frozen: bool,
    /// What EXPLAIN WHY goes by, as of the last batch.
    pub facts: Option<Facts>,
    pub ending: Ending,
    /// Somebody wants to know what there is to do; the answer.
    pub why_wanted: bool,
    pub work: Option<Option<Work>>,
    /// VERIFY is asked for; the answer.
    pub verify_wanted: bool,
    pub verified: Option<Result<Verified>>,
    /// Somebody wants to see what the operators remember; the answer.
    pub state_wanted: bool,
    pub state_contents: Option<Result<StateContents>>,
}

impl Shared {
    pub fn new(
        context: SinkContext,
        reads: Vec<String>,
        explain: Explained,
        trigger: Trigger,
        abandon: Arc<AtomicBool>,
        watchers: Arc<Watchers>,
        stepped: bool,
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
            steps_given: 0,
            steps_given_up: None,
            step_answer: None,
            idle_waiters: 0,
            ends_with_input: false,
            polls: 0,
            idle_poll: None,
            batches: 0,
            last_batch: None,
            ended: false,
            status,
            progress: ProgressLog::default(),
            samples: Samples::default(),
            receipt: None,
            state_rows: Vec::new(),
            watermark: None,
            busy: false,
            frozen: false,
            facts: None,
            ending: Ending::Stopped,
            why_wanted: false,
            work: None,
            verify_wanted: false,
            verified: None,
            state_wanted: false,
            state_contents: None,
        };
        Shared {
            context,
            reads,
            explain,
            abandon,
            given_up: Arc::default(),
            watchers,
            reading: Reading::default(),
            ahead: Counter::default(),
            verifying: Reading::default(),
            stepped,
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

    /// Whether it runs only when it is stepped.
    pub fn rests(&self, inner: &Inner) -> bool {
        self.stepped || inner.trigger == Trigger::Manual
    }

    /// Whether the query has ended, and the error that ended it.
    pub fn ending(&self) -> (bool, Option<Error>) {
        let inner = self.lock();
        (inner.ended, inner.status.last_error.clone().filter(|_| inner.ended))
    }

    /// Waits for news or orders, no longer than `time`.
    pub fn wait<'a>(&self, inner: MutexGuard<'a, Inner>, time: Duration) -> MutexGuard<'a, Inner> {
        self.changed.wait_timeout(inner, time).unwrap_or_else(PoisonError::into_inner).0
    }
}
