//! The front page: one statement in, one answer out.
//!
//! Everything that Levada does is reached through [`Session::execute`]; the shell, a script and a regression test
//! differ only in what they do with the [`Answer`].

mod cancel;
mod change;
mod context;
mod copy;
mod ddl;
mod describe;
mod documentation;
mod exact;
mod insert;
mod last;
mod listing;
mod progress;
mod queries;
mod samples;
mod select;
mod settings;
mod show;
mod start;
mod tables;
mod target;
mod watch;
mod work;

pub use cancel::CancelToken;
pub use documentation::UNDOCUMENTED;
pub use last::LAST_RESULT;
pub use listing::{FunctionName, Relation};
pub use work::Work;

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::SchemaRef;
use datafusion::prelude::SessionContext;

use crate::catalog::{AroundConsole, Catalog, Shown};
use crate::clock::{Clock, Millis};
use crate::error::{Error, Result};
use crate::execution::{QueryHandle, QuerySettings};
use crate::parser::{Explain, ParsedStatement, Statement};
use crate::sink::{Recorder, SharedOutput};

use queries::Queries;

/// How a session is opened.
pub struct SessionOptions {
    /// Where console and stdout sinks write; the shell writes its answers to the same place.
    pub output: SharedOutput,
    /// Where notices of running queries go, one line each (a source is retried).
    pub notices: Arc<dyn Fn(&str) + Send + Sync>,
    /// Where it is told that a query has failed: what nobody may miss.
    pub failures: Arc<dyn Fn(&str) + Send + Sync>,
    /// The format of console sinks: a name that `--format` takes.
    pub console_format: String,
    /// Console sinks print a batch without rows too.
    pub empty_batches: bool,
    /// A test holds the session in its hand.
    pub test: Option<TestOptions>,
}

/// What a session does for a test.
#[derive(Clone)]
pub struct TestOptions {
    /// The clock stands at this time, in milliseconds, and only ADVANCE CLOCK moves it; no batch runs but by STEP QUERY. `None`:
    /// the system's clock, and queries run by themselves.
    pub clock: Option<Millis>,
    /// Keeps what queries give out.
    pub recorder: Recorder,
}

/// What a statement answers.
pub enum Answer {
    /// It is done: a tag such as `CREATE STREAM`, or `INSERT 0 3`, and lines for the user (stderr in a script).
    Done { tag: String, notices: Vec<String> },
    /// Rows, pulled as they are printed. `notices` as above.
    Rows { schema: SchemaRef, rows: Box<dyn Iterator<Item = Result<RecordBatch>> + Send>, notices: Vec<String> },
    /// Text to be printed as it is: EXPLAIN, SHOW CREATE, progress documents.
    Text(String),
}

/// What planning is left of a thread's stack at the least, in bytes.
const STACK: usize = 4 << 20;

/// A session: a catalog, settings, a clock, and the queries it started.
pub struct Session {
    /// DataFusion's functions, tables and settings.
    context: SessionContext,
    catalog: Catalog,
    /// Made when the first statement needs it: a session that only shows help starts no threads.
    runtime: Mutex<Option<Arc<tokio::runtime::Runtime>>>,
    /// Replaced by `SET clock = 'manual'`, never after the first START.
    clock: crate::catalog::SessionClock,
    /// What a query is started with where its WITH list says nothing.
    settings: Mutex<QuerySettings>,
    queries: Queries,
    /// A query was started: the clock is fixed.
    started: AtomicBool,
    /// A query that has been forgotten since had failed.
    forgotten_failure: AtomicBool,
    cancel: CancelToken,
    /// The query that WATCH runs or looks at.
    watched: Mutex<Option<QueryHandle>>,
    /// What the last statement has run.
    running: Mutex<Option<work::Running>>,
    shown: Shown,
    notices: Arc<dyn Fn(&str) + Send + Sync>,
    failures: Arc<dyn Fn(&str) + Send + Sync>,
    /// Keeps what queries give out that are started from now on.
    recorder: Mutex<Option<Recorder>>,
    test: Option<TestOptions>,
}

impl Session {
    /// Opens a session with an empty catalog.
    ///
    /// # Errors
    /// DataFusion can't be set up.
    pub fn new(options: SessionOptions) -> Result<Self> {
        let mut settings = QuerySettings::default();
        if options.test.as_ref().is_some_and(|test| test.clock.is_some()) {
            // Not as many as this machine has cores: what a test says holds on every machine.
            settings.partitions = 2;
        }
        let queries = Queries::default();
        let context = context::open(&settings, &queries)?;
        let clock = options.test.as_ref().and_then(|test| test.clock);
        Ok(Session {
            catalog: Catalog::new(context.clone()),
            context,
            runtime: Mutex::default(),
            clock: Arc::new(std::sync::RwLock::new(clock.map_or_else(Clock::system, Clock::manual))),
            settings: Mutex::new(settings),
            queries,
            started: AtomicBool::new(false),
            forgotten_failure: AtomicBool::new(false),
            cancel: CancelToken::default(),
            watched: Mutex::default(),
            running: Mutex::default(),
            shown: Shown {
                output: options.output,
                console_format: Arc::new(Mutex::new(options.console_format)),
                empty_batches: options.empty_batches,
                notices: options.notices.clone(),
                around_console: Arc::default(),
            },
            notices: options.notices,
            failures: options.failures,
            recorder: Mutex::new(options.test.as_ref().map(|test| test.recorder.clone())),
            test: options.test,
        })
    }

    /// Runs one statement to its answer.
    ///
    /// # Errors
    /// Whatever is wrong with the statement or its execution; the session goes on.
    pub fn execute(&self, statement: &ParsedStatement) -> Result<Answer> {
        // Plans are trees that are walked, and a caller's thread may have a small stack.
        stacker::maybe_grow(STACK, 4 * STACK, || self.execute_here(statement))
    }

    fn execute_here(&self, statement: &ParsedStatement) -> Result<Answer> {
        self.cancel.clear();
        *lock(&self.running) = None;
        match &statement.statement {
            Statement::CreateStream(create) => self.create_stream(create, statement),
            Statement::CreateSink(create) => self.create_sink(create, statement),
            Statement::CreateView(create) => self.create_view(create, statement),
            Statement::CloseStream(name) => self.close_stream(name),
            Statement::Drop { kind, if_exists, name } => self.drop_object(*kind, *if_exists, name),
            Statement::Select(query) => self.select(query),
            Statement::StartQuery(start) => self.start_query(start, statement),
            Statement::StopQuery { which, how, timeout } => self.stop_query(which, *how, *timeout),
            Statement::PauseQuery(name) => self.pause_query(name),
            Statement::ResumeQuery(name) => self.resume_query(name),
            Statement::AwaitQuery { name, until, timeout } => self.await_query(name, *until, *timeout),
            Statement::AlterTrigger { name, trigger } => self.alter_trigger(name, *trigger),
            Statement::Watch { what, until } => self.watch(what, *until),
            Statement::Show(show) => self.show(show),
            Statement::Describe(name) => self.describe(name),
            Statement::ShowCreate { kind, name } => self.show_create(*kind, name),
            Statement::Explain(Explain::Select { analyze, verbose, query }) => self.explain(query, *analyze, *verbose),
            Statement::Explain(Explain::Query(name)) => self.explain_query(name),
            Statement::Explain(Explain::Why(name)) => self.explain_why(name),
            Statement::Explain(Explain::State(query)) => self.explain_state(query),
            Statement::Explain(Explain::StateOf(name)) => self.explain_state_of(name),
            Statement::VerifyQuery(name) => self.verify_query(name),
            Statement::Set { name, value } => self.set(name, value),
            Statement::Reset(name) => self.reset(name),
            Statement::AdvanceClock(by) => self.advance_clock(*by),
            Statement::StepQuery { name, step } => self.step_query(name, *step),
            Statement::CrashQuery(crash) => self.crash_query(crash),
            Statement::Sql(sql) => self.sql(sql, statement),
            Statement::DataFusion => self.datafusion(statement),
        }
    }

    /// The query of that name, running or ended.
    pub fn handle(&self, query: &str) -> Option<QueryHandle> {
        lock(&self.queries).get(query).map(|entry| entry.handle.clone())
    }

    /// The queries that this session started, by name.
    pub fn handles(&self) -> Vec<QueryHandle> {
        lock(&self.queries).values().map(|entry| entry.handle.clone()).collect()
    }

    /// The query of that name that WATCH runs or looks at.
    pub fn watched_query(&self, query: &str) -> Option<QueryHandle> {
        lock(&self.watched).clone().filter(|handle| handle.name() == query)
    }

    /// Whether batches run only when they are asked for: the clock stands still.
    pub fn is_stepped(&self) -> bool {
        self.clock().is_manual()
    }

    /// Console sinks that are opened from now on, those of WATCH too, have this around them.
    pub fn put_around_consoles(&self, around: AroundConsole) {
        *lock(&self.shown.around_console) = Some(around);
    }

    /// The time of the session's clock, in milliseconds.
    pub fn now(&self) -> Millis {
        self.clock().now()
    }

    /// Queries that are started from now on have what they give out kept here; `None`: nothing is kept.
    pub fn record_queries(&self, recorder: Option<Recorder>) {
        *lock(&self.recorder) = recorder;
    }

    /// Console sinks that are opened from now on, those of WATCH too, write this format: a name as in
    /// [`SessionOptions::console_format`].
    pub fn set_console_format(&self, format: &str) {
        *lock(&self.shown.console_format) = format.to_string();
    }

    /// Ends the statement that runs when it is cancelled.
    pub fn cancel_token(&self) -> CancelToken {
        self.cancel.clone()
    }
}

impl Answer {
    /// It is done, and there is nothing more to say.
    fn done(tag: impl Into<String>) -> Self {
        Answer::Done { tag: tag.into(), notices: Vec::new() }
    }

    /// It is done, and the user should know something.
    fn noticed(tag: impl Into<String>, notice: impl Into<String>) -> Self {
        Answer::Done { tag: tag.into(), notices: vec![notice.into()] }
    }

    /// A table that is whole already, from named columns of one length.
    fn table(columns: Vec<(&str, ArrayRef)>) -> Result<Self> {
        let columns = columns.into_iter().map(|(name, values)| (name, values, true));
        let batch = RecordBatch::try_from_iter_with_nullable(columns).map_err(|e| Error::internal(e.to_string()))?;
        Ok(Answer::Rows { schema: batch.schema(), rows: Box::new(std::iter::once(Ok(batch))), notices: Vec::new() })
    }
}

/// Locks what only a panic elsewhere can have poisoned: every change behind these locks is a single step.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
