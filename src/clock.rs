//! The only place that knows the time: the system's clock, or one that a script holds in its hand.
//!
//! Processing time decides when triggers fire, what `now()` is in a batch, and when an idle input stops
//! holding the watermark. It never decides a result in any other way.

use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970-01-01T00:00:00Z; negative before.
pub type Millis = i64;

/// A clock; clones share one time.
#[derive(Clone)]
pub struct Clock(Arc<Kind>);

enum Kind {
    System,
    Manual { now: Mutex<Millis>, moved: Condvar },
}

impl Clock {
    /// The system's clock.
    pub fn system() -> Self {
        Clock(Arc::new(Kind::System))
    }

    /// A clock that stands still at `start` until it is advanced.
    pub fn manual(start: Millis) -> Self {
        Clock(Arc::new(Kind::Manual { now: Mutex::new(start), moved: Condvar::new() }))
    }

    /// Whether only [`Clock::advance_to`] moves it.
    pub fn is_manual(&self) -> bool {
        matches!(*self.0, Kind::Manual { .. })
    }

    /// The time now.
    pub fn now(&self) -> Millis {
        match &*self.0 {
            Kind::System => system_now(),
            Kind::Manual { now, .. } => *lock(now),
        }
    }

    /// Moves a manual clock; it never goes back. Answers whether it moved; the system's clock never does.
    pub fn advance_to(&self, to: Millis) -> bool {
        match &*self.0 {
            Kind::System => false,
            Kind::Manual { now, moved } => {
                let mut now = lock(now);
                if to < *now {
                    return false;
                }
                *now = to;
                moved.notify_all();
                true
            }
        }
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_manual() { "Clock::Manual" } else { "Clock::System" })
    }
}

/// How long something took; for progress documents, never for results.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch(std::time::Instant);

impl Stopwatch {
    /// Starts to measure.
    #[allow(clippy::disallowed_methods)]
    pub fn start() -> Self {
        Stopwatch(std::time::Instant::now())
    }

    /// The time since the start.
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

#[allow(clippy::disallowed_methods)]
fn system_now() -> Millis {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => since.as_millis() as Millis,
        Err(before) => -(before.duration().as_millis() as Millis),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
