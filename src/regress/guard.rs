//! No record may hang: after its time what runs is ended, and the record fails. The same happens at once when the user wants the
//! suite to end.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use crate::clock::Stopwatch;

/// How often what runs is told again to end: a statement forgets the request when it begins.
const AGAIN: Duration = Duration::from_millis(100);

/// Whether the user wants the suite to end; clones speak of the same suite.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<Asked>);

#[derive(Debug, Default)]
struct Asked {
    asked: AtomicBool,
    code: AtomicU8,
    guards: Mutex<Vec<Weak<Watched>>>,
}

impl Interrupt {
    /// Ends what runs; the suite will end with this exit code. Answers whether it was asked before.
    pub fn ask(&self, code: u8) -> bool {
        self.0.code.store(code, Ordering::SeqCst);
        let before = self.0.asked.swap(true, Ordering::SeqCst);
        let guards = self.0.guards.lock().unwrap_or_else(PoisonError::into_inner);
        for guard in guards.iter().filter_map(Weak::upgrade) {
            guard.lock().interrupted = true;
            guard.changed.notify_all();
        }
        before
    }

    /// Whether somebody asked.
    pub fn is_asked(&self) -> bool {
        self.0.asked.load(Ordering::SeqCst)
    }

    /// The exit code that was asked for.
    pub fn code(&self) -> u8 {
        self.0.code.load(Ordering::SeqCst)
    }

    fn tell(&self, guard: &Arc<Watched>) {
        let mut guards = self.0.guards.lock().unwrap_or_else(PoisonError::into_inner);
        guards.retain(|guard| guard.strong_count() > 0);
        guards.push(Arc::downgrade(guard));
        guard.lock().interrupted = self.is_asked();
    }
}

/// Ends the statement that runs.
pub type Cancel = Box<dyn Fn() + Send>;

/// Watches the records of one file.
pub struct Guard {
    watched: Arc<Watched>,
}

struct Watched {
    inner: Mutex<Inner>,
    changed: Condvar,
}

#[derive(Default)]
struct Inner {
    /// The record that runs: how its statement is ended, and since when it runs.
    record: Option<(Cancel, Stopwatch)>,
    /// A group of processes that the record has started.
    process: Option<i32>,
    /// The record has had its time.
    late: bool,
    interrupted: bool,
    /// The guard has gone.
    over: bool,
}

impl std::fmt::Debug for Watched {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watched").finish_non_exhaustive()
    }
}

impl Watched {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watch(&self, patience: Duration) {
        let mut inner = self.lock();
        while !inner.over {
            let wait = match &inner.record {
                None => None,
                Some(_) if inner.late || inner.interrupted => {
                    inner.end();
                    Some(AGAIN)
                }
                Some((_, since)) => match patience.checked_sub(since.elapsed()).filter(|left| !left.is_zero()) {
                    Some(left) => Some(left),
                    None => {
                        inner.late = true;
                        continue;
                    }
                },
            };
            inner = match wait {
                None => self.changed.wait(inner).unwrap_or_else(PoisonError::into_inner),
                Some(time) => self.changed.wait_timeout(inner, time).unwrap_or_else(PoisonError::into_inner).0,
            };
        }
    }
}

impl Inner {
    fn end(&self) {
        if let Some((cancel, _)) = &self.record {
            cancel();
        }
        if let Some(group) = self.process.filter(|group| *group > 0) {
            // SAFETY: sends a signal to the group of a child that was not waited for yet, so the number is still its own.
            unsafe { libc::kill(-group, libc::SIGKILL) };
        }
    }
}

impl Guard {
    /// Gives each record so long.
    pub fn new(patience: Duration, interrupt: &Interrupt) -> Self {
        let watched = Arc::new(Watched { inner: Mutex::default(), changed: Condvar::new() });
        interrupt.tell(&watched);
        let watching = watched.clone();
        std::thread::spawn(move || watching.watch(patience));
        Guard { watched }
    }

    /// A record begins, whose statements are ended so.
    pub fn begin(&self, cancel: Cancel) {
        let mut inner = self.watched.lock();
        inner.late = false;
        inner.record = Some((cancel, Stopwatch::start()));
        drop(inner);
        self.watched.changed.notify_all();
    }

    /// The record has ended; whether it had to be ended.
    pub fn end(&self) -> bool {
        let mut inner = self.watched.lock();
        inner.record = None;
        inner.late
    }

    /// Whether the record that runs is to end.
    pub fn is_over(&self) -> bool {
        let inner = self.watched.lock();
        inner.late || inner.interrupted
    }

    /// Runs work while a group of processes runs that ends with the record.
    pub fn with_process<T>(&self, group: i32, work: impl FnOnce() -> T) -> T {
        self.watched.lock().process = Some(group);
        self.watched.changed.notify_all();
        let done = work();
        self.watched.lock().process = None;
        done
    }

    /// Lets time pass, as long as the record may run.
    pub fn pass(&self, time: Duration) {
        let watch = Stopwatch::start();
        let mut inner = self.watched.lock();
        while let Some(left) = time.checked_sub(watch.elapsed()).filter(|left| !left.is_zero()) {
            if inner.late || inner.interrupted {
                return;
            }
            inner = self.watched.changed.wait_timeout(inner, left.min(AGAIN)).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.watched.lock().over = true;
        self.watched.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_that_has_had_its_time_is_ended_and_so_is_one_that_the_user_gives_up() {
        let interrupt = Interrupt::default();
        let guard = Guard::new(Duration::from_millis(30), &interrupt);
        let told = Arc::new(AtomicBool::new(false));
        let tell = told.clone();
        guard.begin(Box::new(move || tell.store(true, Ordering::SeqCst)));
        guard.pass(Duration::from_secs(60));
        assert!(guard.is_over() && guard.end(), "it came back long before its minute");
        while !told.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        let patient = Guard::new(Duration::from_secs(60), &interrupt);
        patient.begin(Box::new(|| {}));
        assert!(!patient.is_over() && !interrupt.is_asked());
        assert!(!interrupt.ask(130) && interrupt.ask(130), "the second time is told from the first");
        patient.pass(Duration::from_secs(60));
        assert!(patient.is_over() && !patient.end(), "it was not late");
        assert_eq!(interrupt.code(), 130);
    }
}
