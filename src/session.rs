//! The front page: one statement in, one answer out.
//!
//! Everything that Levada does is reached through [`Session::execute`]; the shell, a script and a regression test
//! differ only in what they do with the [`Answer`].

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use crate::error::Result;
use crate::parser::ParsedStatement;
use crate::sink::SharedOutput;

/// How a session is opened.
pub struct SessionOptions {
    /// Where console and stdout sinks write; the shell writes its answers to the same place.
    pub output: SharedOutput,
    /// Where notices of running queries go, one line each (a query failed, a source is retried).
    pub notices: Arc<dyn Fn(&str) + Send + Sync>,
    /// The format of console sinks: `table`, `csv`, `json`, `jsonlines`, `markdown`, `vertical`.
    pub console_format: String,
    /// Console sinks print a batch without rows too.
    pub empty_batches: bool,
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

/// Ends the statement that runs, from another thread (Ctrl-C).
#[derive(Debug, Clone, Default)]
pub struct CancelToken(Arc<AtomicBool>);

impl CancelToken {
    /// Asks the running statement to end.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Whether somebody asked. Cleared when the next statement begins.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// Forgets an earlier request.
    pub fn clear(&self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

/// A session: a catalog, settings, a clock, and the queries it started.
pub struct Session {}

impl Session {
    /// Opens a session with an empty catalog.
    pub fn new(_options: SessionOptions) -> Result<Self> {
        Ok(Session {})
    }

    /// Runs one statement to its answer.
    ///
    /// # Errors
    /// Whatever is wrong with the statement or its execution; the session goes on.
    pub fn execute(&self, _statement: &ParsedStatement) -> Result<Answer> {
        Err(crate::error::Error::not_yet("any statement"))
    }

    /// Ends the statement that runs when it is cancelled.
    pub fn cancel_token(&self) -> CancelToken {
        CancelToken::default()
    }

    /// Stops every running query: gracefully, or at once when `now`. Answers a line for each, for stderr.
    pub fn stop_all(&self, _now: bool) -> Vec<String> {
        Vec::new()
    }

    /// The names of the queries that run.
    pub fn running_queries(&self) -> Vec<String> {
        Vec::new()
    }

    /// Whether any query that this session started has ended FAILED (exit code 4).
    pub fn any_query_failed(&self) -> bool {
        false
    }
}
