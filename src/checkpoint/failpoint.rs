//! Places where a test can make a run crash.
//!
//! A run passes points by name ([`Failpoints::hit`]), and its files pass them while they are written
//! (`FailStore`). Nothing happens unless one is armed. A run that was killed stays dead: every later point
//! and every later write of it fails too, so that whatever its threads still do leaves no trace, as after SIGKILL.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::{Error, Result, closest};

/// Every point there is: before and after each step of a batch, and the three kinds of files while they are written.
pub const POINTS: &[&str] = &[
    "latest.before",
    "latest.after",
    "offsets.before",
    "offsets.after",
    "read.before",
    "read.after",
    "process.before",
    "process.after",
    "sink.before",
    "sink.after",
    "state.before",
    "state.after",
    "commit.before",
    "commit.after",
    "forget.before",
    "forget.after",
    STATE_WRITE,
    MANIFEST_WRITE,
    LOG_WRITE,
];

/// A state file is written.
pub const STATE_WRITE: &str = "state.write";
/// A manifest entry of a file sink is written.
pub const MANIFEST_WRITE: &str = "manifest.write";
/// Any other file of a checkpoint is written.
pub const LOG_WRITE: &str = "log.write";

/// What an armed point does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// The run dies here, without cleaning up.
    Kill,
    /// The step fails with an ordinary error; the run may clean up.
    Error,
    /// The file appears under its name with only so many bytes, and the run dies. Only while a file is written.
    Torn(u64),
    /// The disk is full: the write fails and leaves nothing. Only while a file is written.
    Enospc,
    /// The file is written, but its content is gone after the next kill. Where no kill is armed the run dies at
    /// once. Only while a file is written.
    LostFsync,
}

/// As `CRASH QUERY … AS` writes it.
impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::Kill => f.write_str("kill"),
            Action::Error => f.write_str("error"),
            Action::Torn(bytes) => write!(f, "torn {bytes}"),
            Action::Enospc => f.write_str("enospc"),
            Action::LostFsync => f.write_str("lost_fsync"),
        }
    }
}

/// An armed point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Armed {
    /// One of [`POINTS`].
    pub point: &'static str,
    /// It fires when it has been passed so many times more, then never again.
    pub hits_left: u64,
    pub action: Action,
}

impl fmt::Display for Armed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, hit {}", self.action, self.hits_left)
    }
}

/// The failpoints of one query; clones share them. One relaxed load while none is armed.
#[derive(Clone, Default)]
pub struct Failpoints(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// Something is armed, or the run is dead.
    active: AtomicBool,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    armed: Vec<Armed>,
    /// The point at which the run died.
    killed_at: Option<&'static str>,
    /// Takes the content of files away whose sync was lost.
    lost: Vec<Box<dyn FnOnce() + Send>>,
}

impl Failpoints {
    /// Makes the `hit`-th passing of `point` from now on do `action`. A point armed twice fires for both.
    ///
    /// # Errors
    /// InvalidInput: no such point (with the closest one), a hit of 0, an action that the point can't do.
    pub fn arm(&self, point: &str, hit: u64, action: Action) -> Result<()> {
        let Some(known) = POINTS.iter().find(|known| **known == point) else {
            let error = Error::invalid(format!("there is no failpoint {point:?}"));
            return Err(match closest(point, POINTS.iter().copied()) {
                Some(near) => error.help(format!("did you mean {near:?}? SHOW FAILPOINTS lists them all")),
                None => error.help("SHOW FAILPOINTS lists them all"),
            });
        };
        if hit == 0 {
            return Err(Error::invalid("HIT counts from 1"));
        }
        if !matches!(action, Action::Kill | Action::Error) && !known.ends_with(".write") {
            let error =
                Error::invalid(format!("failpoint {point} is no write: it can only kill or fail with an error"));
            return Err(
                error.help(format!("torn, enospc and lost_fsync go with {STATE_WRITE}, {MANIFEST_WRITE}, {LOG_WRITE}"))
            );
        }
        self.lock().armed.push(Armed { point: known, hits_left: hit, action });
        self.0.active.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// What is armed now, in the order of arming.
    pub fn armed(&self) -> Vec<Armed> {
        self.lock().armed.clone()
    }

    /// Passes a point named as in the language, such as `sink.after`; fails when it is armed.
    ///
    /// # Errors
    /// Execution: `failpoint sink.after: killed`, or `…: error`; after a kill, the same at every point.
    #[inline]
    pub fn hit(&self, point: &str) -> Result<()> {
        match self.pass(point)? {
            None => Ok(()),
            // `arm` lets nothing else through to a point that is no write.
            Some((point, _)) => Err(failure(point, "error")),
        }
    }

    /// Whether the run was killed: it must be dropped as it is, without abort, flush or commit.
    pub fn is_killed(&self) -> bool {
        self.0.active.load(Ordering::Relaxed) && self.lock().killed_at.is_some()
    }

    /// Begins a new run, as a new process would. What is armed stays armed.
    pub fn revive(&self) {
        let mut inner = self.lock();
        inner.killed_at = None;
        self.0.active.store(!inner.armed.is_empty(), Ordering::Relaxed);
    }

    /// Passes a point and answers what it asks of a writer. A kill has happened already.
    pub(super) fn pass(&self, point: &str) -> Result<Option<(&'static str, Action)>> {
        if !self.0.active.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let mut inner = self.lock();
        if let Some(at) = inner.killed_at {
            return Err(failure(at, "killed"));
        }
        let mut fired = None;
        for (at, armed) in inner.armed.iter_mut().enumerate().filter(|(_, armed)| armed.point == point) {
            armed.hits_left = armed.hits_left.saturating_sub(1);
            if armed.hits_left == 0 && fired.is_none() {
                fired = Some(at);
            }
        }
        let Some(armed) = fired.map(|at| inner.armed.remove(at)) else { return Ok(None) };
        self.0.active.store(!inner.armed.is_empty(), Ordering::Relaxed);
        drop(inner);
        match armed.action {
            Action::Kill => Err(self.kill(armed.point)),
            Action::Error => Err(failure(armed.point, "error")),
            action => Ok(Some((armed.point, action))),
        }
    }

    /// The run is dead from here on; files whose sync was lost lose their content.
    pub(super) fn kill(&self, point: &'static str) -> Error {
        let lost = {
            let mut inner = self.lock();
            inner.killed_at = Some(point);
            self.0.active.store(true, Ordering::Relaxed);
            std::mem::take(&mut inner.lost)
        };
        for take_away in lost {
            take_away();
        }
        failure(point, "killed")
    }

    /// Remembers what the next kill takes away. Answers whether one is armed.
    pub(super) fn lose(&self, take_away: Box<dyn FnOnce() + Send>) -> bool {
        let mut inner = self.lock();
        inner.lost.push(take_away);
        inner.armed.iter().any(|armed| matches!(armed.action, Action::Kill | Action::Torn(_)))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Failpoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = self.lock();
        f.debug_struct("Failpoints").field("armed", &inner.armed).field("killed_at", &inner.killed_at).finish()
    }
}

fn failure(point: &str, what: &str) -> Error {
    Error::computation(format!("failpoint {point}: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_fires_at_its_hit_and_never_again() {
        let points = Failpoints::default();
        points.arm("sink.after", 3, Action::Error).unwrap();
        points.hit("sink.before").unwrap();
        points.hit("sink.after").unwrap();
        points.clone().hit("sink.after").unwrap();
        assert_eq!(points.armed(), [Armed { point: "sink.after", hits_left: 1, action: Action::Error }]);
        assert_eq!(points.hit("sink.after").unwrap_err().to_string(), "failpoint sink.after: error");
        points.hit("sink.after").unwrap();
        assert!(points.armed().is_empty() && !points.is_killed());
    }

    #[test]
    fn the_dead_stay_dead_until_the_next_run() {
        let points = Failpoints::default();
        points.arm("state.before", 1, Action::Kill).unwrap();
        points.arm("commit.after", 1, Action::Error).unwrap();
        for point in ["state.before", "state.after", "commit.after"] {
            assert_eq!(
                points.hit(point).err().map(|e| e.to_string()).as_deref(),
                match points.is_killed() {
                    true => Some("failpoint state.before: killed"),
                    false => None,
                }
            );
        }
        points.revive();
        points.hit("state.before").unwrap();
        assert!(points.hit("commit.after").is_err());
    }

    #[test]
    fn what_can_not_be_armed_is_refused() {
        let points = Failpoints::default();
        let error = points.arm("sink.aftr", 1, Action::Kill).unwrap_err();
        assert_eq!(error.to_string(), "there is no failpoint \"sink.aftr\"");
        assert!(error.help_text().is_some_and(|help| help.contains("\"sink.after\"")));
        assert!(points.arm("sink.after", 0, Action::Kill).is_err());
        for action in [Action::Torn(1), Action::Enospc, Action::LostFsync] {
            assert!(matches!(points.arm("sink.after", 1, action), Err(Error::InvalidInput { .. })));
            points.arm("state.write", 1, action).unwrap();
        }
        assert_eq!(points.armed().len(), 3);
    }
}
