//! How a run ends before its script does: a signal, `--timeout`, or an output that nobody reads any more.
//!
//! 1. The statement that runs is cancelled, and its thread does nothing more.
//! 2. Every query is stopped gracefully: the batch in flight is finished and committed.
//! 3. The process exits with the code of what ended it.
//!
//! A second signal stops at once. In a terminal a first Ctrl-C only cancels the statement.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::live;
use super::output::{Output, say};
use super::terminal::Modes;
use super::turns::{Turn, Turns};
use crate::error::{Error, Result};
use crate::session::Session;

/// A second Ctrl-C within this time leaves the shell.
const TWICE: Duration = Duration::from_secs(2);
/// How long a graceful stop may take after `--timeout`.
const GRACE: Duration = Duration::from_secs(10);
/// How long stopping at once may take.
const AT_ONCE: Duration = Duration::from_secs(2);
/// How often a statement is told again that it is cancelled.
const AGAIN: Duration = Duration::from_millis(10);

/// The exit codes.
pub(super) mod code {
    pub const OK: u8 = 0;
    /// A statement or command failed.
    pub const ERROR: u8 = 1;
    /// Wrong arguments, or a file that can't be opened.
    pub const USAGE: u8 = 2;
    /// A statement or command failed while ON_ERROR_STOP was on.
    pub const STOPPED: u8 = 3;
    /// A query that was started ended FAILED.
    pub const QUERY_FAILED: u8 = 4;
    pub const TIMEOUT: u8 = 124;
    pub const HANGUP: u8 = 129;
    pub const INTERRUPT: u8 = 130;
    pub const BROKEN_PIPE: u8 = 141;
    pub const TERMINATE: u8 = 143;
}

/// Ends the run when it has to.
pub(super) struct Ending {
    session: Arc<Session>,
    output: Output,
    /// Of a terminal that somebody types into.
    turns: Option<Arc<Turns>>,
    modes: Option<Modes>,
    quiet: bool,
    timeout: Option<Duration>,
    /// The statement that runs, or ran last.
    statement: Mutex<String>,
    /// Held while a statement runs and prints.
    foreground: Mutex<()>,
    begun: AtomicBool,
    /// How many statements have begun.
    statements: AtomicU64,
}

impl Ending {
    /// Starts to watch, on a thread of its own.
    ///
    /// # Errors
    /// Signals can't be received.
    pub(super) fn watch(
        session: Arc<Session>,
        output: Output,
        turns: Option<Arc<Turns>>,
        quiet: bool,
        timeout: Option<Duration>,
    ) -> Result<Arc<Self>> {
        let modes = turns.as_ref().and_then(|_| Modes::now());
        let (foreground, begun) = (Mutex::new(()), AtomicBool::new(false));
        let ending = Arc::new(Ending {
            session,
            output,
            turns,
            modes,
            quiet,
            timeout,
            statement: Mutex::default(),
            foreground,
            begun,
            statements: AtomicU64::new(0),
        });
        let io = |error: std::io::Error| Error::io("can't receive signals", &error);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(io)?;
        let causes = {
            let _entered = runtime.enter();
            Causes::new(timeout).map_err(io)?
        };
        let watcher = ending.clone();
        let thread = std::thread::Builder::new().name("signals".to_string());
        thread.spawn(move || runtime.block_on(watcher.run(causes))).map_err(io)?;
        Ok(ending)
    }

    /// A statement begins; it has ended when the guard is dropped. Never returns once the run is being ended.
    pub(super) fn foreground(&self, statement: &str) -> MutexGuard<'_, ()> {
        self.check();
        self.statements.fetch_add(1, Ordering::SeqCst);
        let guard = self.foreground.lock().unwrap_or_else(PoisonError::into_inner);
        *self.statement.lock().unwrap_or_else(PoisonError::into_inner) = statement.to_string();
        if !self.has_begun() {
            return guard;
        }
        drop(guard);
        park()
    }

    /// Never returns once the run is being ended: the process exits elsewhere.
    pub(super) fn check(&self) {
        if self.has_begun() {
            park()
        }
    }

    /// Exits now, with what was written so far.
    pub(super) fn exit(&self, code: u8) -> ! {
        live::restore();
        self.output.try_flush();
        if self.turns.as_ref().is_some_and(|turns| turns.turn() == Turn::Editing)
            && let Some(modes) = &self.modes
        {
            modes.restore();
        }
        std::process::exit(i32::from(code))
    }

    fn has_begun(&self) -> bool {
        self.begun.load(Ordering::SeqCst) || self.output.is_broken()
    }

    async fn run(self: Arc<Self>, mut causes: Causes) {
        let mut first = causes.next(&self.output).await;
        while first == code::INTERRUPT && self.turns.is_some() {
            let statement = self.statements.load(Ordering::SeqCst);
            self.session.cancel_token().cancel();
            match tokio::time::timeout(TWICE, causes.next(&self.output)).await {
                // For another statement it is a first one again.
                Ok(code::INTERRUPT) if self.statements.load(Ordering::SeqCst) == statement => {
                    return self.end_at_once(code::INTERRUPT).await;
                }
                Ok(other) => first = other,
                Err(_) => first = causes.next(&self.output).await,
            }
        }
        self.begun.store(true, Ordering::SeqCst);
        if let (code::TIMEOUT, Some(timeout)) = (first, self.timeout) {
            self.over(timeout).iter().for_each(|line| say(line));
        }
        let graceful = self.clone();
        tokio::task::spawn_blocking(move || graceful.end_gracefully(first));
        let grace = if first == code::TIMEOUT { GRACE } else { Duration::MAX };
        _ = tokio::time::timeout(grace, causes.next(&self.output)).await;
        self.end_at_once(first).await;
    }

    /// The statement that `--timeout` ends, where one runs; queries are named when they are stopped.
    fn over(&self, timeout: Duration) -> Option<String> {
        let Err(TryLockError::WouldBlock) = self.foreground.try_lock() else { return None };
        let statement = self.statement.lock().unwrap_or_else(PoisonError::into_inner);
        Some(format!("--timeout {timeout:?} has passed and ends {}", in_brief(&statement)))
    }

    fn end_gracefully(&self, code: u8) {
        let _foreground = loop {
            match self.foreground.try_lock() {
                Ok(guard) => break guard,
                Err(TryLockError::Poisoned(poisoned)) => break poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => {}
            }
            // Again and again: a statement that is just beginning forgets an earlier request.
            self.session.cancel_token().cancel();
            std::thread::sleep(AGAIN);
        };
        let quiet = self.quiet || code == code::BROKEN_PIPE;
        stop_queries(&self.session, quiet);
        self.exit(code)
    }

    async fn end_at_once(self: &Arc<Self>, code: u8) {
        self.begun.store(true, Ordering::SeqCst);
        let session = self.session.clone();
        let stop = tokio::task::spawn_blocking(move || session.stop_all(true));
        if let Ok(Ok(lines)) = tokio::time::timeout(AT_ONCE, stop).await
            && !self.quiet
        {
            lines.iter().for_each(|line| say(line));
        }
        self.exit(code)
    }
}

/// Stops every query gracefully, and says so.
pub(super) fn stop_queries(session: &Session, quiet: bool) {
    let running = session.running_queries();
    if !running.is_empty() && !quiet {
        say(&format!("stopping {}", running.join(", ")));
    }
    for line in session.stop_all(false) {
        if !quiet {
            say(&line);
        }
    }
}

/// Everything that ends a run.
struct Causes {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
    deadline: Option<std::pin::Pin<Box<tokio::time::Sleep>>>,
}

impl Causes {
    fn new(timeout: Option<Duration>) -> std::io::Result<Self> {
        Ok(Causes {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            deadline: timeout.map(|timeout| Box::pin(tokio::time::sleep(timeout))),
        })
    }

    /// The exit code of what comes next. A deadline comes once.
    async fn next(&mut self, output: &Output) -> u8 {
        let deadline = async {
            match &mut self.deadline {
                Some(deadline) => deadline.await,
                None => std::future::pending().await,
            }
        };
        let code = tokio::select! {
            _ = self.interrupt.recv() => code::INTERRUPT,
            _ = self.terminate.recv() => code::TERMINATE,
            _ = self.hangup.recv() => code::HANGUP,
            () = output.broken() => code::BROKEN_PIPE,
            () = deadline => code::TIMEOUT,
        };
        if code == code::TIMEOUT {
            self.deadline = None;
        }
        code
    }
}

/// The beginning of a statement, in one line.
fn in_brief(statement: &str) -> String {
    const LONGEST: usize = 100;
    let words = statement.split_whitespace().collect::<Vec<_>>().join(" ");
    match words.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &words[..end]),
        None => words,
    }
}

fn park() -> ! {
    loop {
        std::thread::park();
    }
}

#[cfg(test)]
mod tests {
    use super::in_brief;

    #[test]
    fn a_statement_is_told_in_one_line() {
        assert_eq!(in_brief("SELECT 1\n  FROM s;"), "SELECT 1 FROM s;");
        let long = in_brief(&"é ".repeat(80));
        assert_eq!((long.chars().count(), long.chars().last()), (101, Some('…')));
    }
}
