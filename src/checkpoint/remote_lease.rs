//! One process at a time, in an object store: a lease with a heartbeat.
//!
//! No lock there ends with its process, so the holder writes `<checkpoint>/lease` anew again and again, each time on the
//! condition that it still is what it wrote last. Who comes second
//!
//! 1. waits, by its own watch, for as long as the holder has declared: no two machines' clocks are compared;
//! 2. is refused as soon as the lease changes: its holder lives;
//! 3. takes it when it has not changed, on the condition that it still has not, with the next epoch. Of two that take
//!    it one gets it.
//!
//! A holder that finds another's lease writes nothing any more. One that has not confirmed its own for a while, because
//! it was stopped or the store was away, confirms it before it writes.
//!
//! That is a courtesy and not what makes two writers harmless: between a look at the lease and the arrival of a write
//! any time may pass. What decides is the condition on each write itself, see `remote_store` and decision 11.

use std::collections::BTreeSet;
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, SecondsFormat};
use serde::{Deserialize, Serialize};

use super::text;
use crate::clock::{Clock, Millis, Stopwatch};
use crate::error::{Error, Result};
use crate::storage::{Condition, Root, Version};

const PATH: &str = "lease";
/// So many heartbeats are due while a lease is valid.
const BEATS: u32 = 5;
/// The longest pause between two looks at a lease that may be dead.
const LOOK: Duration = Duration::from_millis(500);

/// How a lease is held, and how one that may be dead is waited for.
#[derive(Clone)]
pub struct LeaseTerms {
    /// A lease that has not changed for so long may be taken.
    pub timeout: Duration,
    /// Receives one line where the user should know what is waited for.
    pub notices: Arc<dyn Fn(&str) + Send + Sync>,
    /// Whether nobody wants the lease any more.
    pub given_up: Arc<dyn Fn() -> bool + Send + Sync>,
}

impl Default for LeaseTerms {
    fn default() -> Self {
        LeaseTerms { timeout: Duration::from_secs(15), notices: Arc::new(|_| {}), given_up: Arc::new(|| false) }
    }
}

/// What the lease holds. All but `run` and `epoch` serves those who come second.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Holder {
    run: String,
    /// Grows with each holder.
    epoch: u64,
    /// Told apart from others that have the same pid elsewhere.
    process: String,
    pid: u32,
    host: String,
    started: String,
    /// When it was written last, by the holder's clock: for people.
    heartbeat: String,
    /// Makes each writing another.
    beats: u64,
    timeout_ms: u64,
    /// Its run has ended.
    released: bool,
}

impl Holder {
    fn shown(&self) -> String {
        let Holder { pid, host, run, started, .. } = self;
        match is_of_this_process(self) {
            true => format!("another query of this process (run {run}, since {started})"),
            false => format!("process {pid} on {host} (run {run}, since {started})"),
        }
    }
}

/// The runs of this process that hold a lease, or are about to.
static HOLDING: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
static PROCESS: LazyLock<String> = LazyLock::new(|| uuid::Uuid::new_v4().to_string());

fn is_of_this_process(holder: &Holder) -> bool {
    holder.process == *PROCESS
}

fn lives_here(holder: &Holder) -> bool {
    lock(&HOLDING).contains(&holder.run)
}

/// A run is among those of this process for as long as this lives.
#[derive(Debug)]
struct Here(String);

impl Here {
    fn new(run: &str) -> Self {
        lock(&HOLDING).insert(run.to_string());
        Here(run.to_string())
    }
}

impl Drop for Here {
    fn drop(&mut self) {
        lock(&HOLDING).remove(&self.0);
    }
}

/// The right to write to a checkpoint in an object store, until it is ended.
#[derive(Debug)]
pub(super) struct RemoteLease {
    shared: Arc<Shared>,
    /// Until it is ended.
    alive: Mutex<Option<(JoinHandle<()>, Here)>>,
}

#[derive(Debug)]
struct Shared {
    root: Root,
    /// As the user wrote it.
    location: String,
    timeout: Duration,
    run: String,
    epoch: u64,
    /// What was written last. Locked while it is written anew.
    written: Mutex<(Holder, Version)>,
    standing: Mutex<Standing>,
    wake: Condvar,
}

#[derive(Debug)]
struct Standing {
    /// Since the last heartbeat that was answered was sent.
    confirmed: Stopwatch,
    /// Why nothing may be written any more.
    ended: Option<Error>,
}

impl RemoteLease {
    /// Takes the lease of the checkpoint below `root`, which the user calls `location`. Waits where somebody held it
    /// who may be dead.
    ///
    /// # Errors
    /// Conflict: somebody lives who holds it, named by process, run and start. Unsupported: the store does not heed
    /// conditions. Cancelled: it was given up. Io.
    pub(super) fn take(root: Root, location: &str, terms: &LeaseTerms) -> Result<Arc<Self>> {
        Self::take_as(&PROCESS, root, location, terms)
    }

    fn take_as(process: &str, root: Root, location: &str, terms: &LeaseTerms) -> Result<Arc<Self>> {
        let mut holder = newcomer(process, terms);
        let here = Here::new(&holder.run);
        let mut seen: Option<(Version, Stopwatch)> = None;
        let (over, confirmed, version) = loop {
            let found = root.remote().read(&root.key(PATH))?;
            let before = found.as_ref().and_then(|found| serde_json::from_slice::<Holder>(&found.bytes).ok());
            if let (Some(found), Some(own)) = (&found, before.as_ref().filter(|before| before.run == holder.run)) {
                // Its answer was lost.
                holder.epoch = own.epoch;
                break (None, Stopwatch::start(), found.version.clone());
            }
            if let Some(found) = &found
                && !may_take(&found.version, before.as_ref(), location, terms, &mut seen)?
            {
                pause(before.as_ref(), terms)?;
                continue;
            }
            // A lease that was lost began with such a number too, and an earlier one.
            holder.epoch = before.map_or_else(|| now().unsigned_abs(), |before| before.epoch + 1);
            let over = found.map(|found| found.version);
            let (condition, confirmed) = (condition(over.as_ref()), Stopwatch::start());
            if let Some(version) = put(&root, &holder, condition)? {
                break (over, confirmed, version);
            }
        };
        check_conditions(&root, location, &holder, over.as_ref())?;
        let shared = Arc::new(Shared {
            root,
            location: location.to_string(),
            timeout: terms.timeout,
            run: holder.run.clone(),
            epoch: holder.epoch,
            written: Mutex::new((holder, version)),
            standing: Mutex::new(Standing { confirmed, ended: None }),
            wake: Condvar::new(),
        });
        let (beating, notices) = (shared.clone(), terms.notices.clone());
        let heart = std::thread::Builder::new().name("levada-lease".into()).spawn(move || beating.live(&*notices));
        let heart = heart.map_err(|e| Error::io("starting a thread for a lease", &e))?;
        Ok(Arc::new(RemoteLease { shared, alive: Mutex::new(Some((heart, here))) }))
    }

    /// The id of the run that holds it: another one at every start.
    pub(super) fn run(&self) -> &str {
        &self.shared.run
    }

    /// Higher than that of each holder before.
    pub(super) fn epoch(&self) -> u64 {
        self.shared.epoch
    }

    /// Fails when the lease is lost; confirms it first where that was not done for a while.
    ///
    /// # Errors
    /// Conflict: another run has taken it, named; or it was ended. Io: it can't be confirmed.
    pub(super) fn check(&self) -> Result<()> {
        match self.shared.is_fresh()? {
            true => Ok(()),
            false => self.shared.beat(),
        }
    }

    /// Fails when the lease is known to be lost.
    ///
    /// # Errors
    /// As [`RemoteLease::check`], which asks.
    pub(super) fn known(&self) -> Result<()> {
        self.shared.is_fresh().map(drop)
    }

    /// Ends it, and says so to those who come next. Nothing is written in its name from here on.
    pub(super) fn end(&self) {
        let held = {
            let mut standing = lock(&self.shared.standing);
            let held = standing.ended.is_none() && standing.confirmed.elapsed() < self.shared.timeout;
            standing.ended.get_or_insert_with(|| self.shared.over());
            held
        };
        self.shared.wake.notify_all();
        let Some((heart, here)) = lock(&self.alive).take() else { return };
        // A heart that died has said nothing that this would have to pass on.
        let _ = heart.join();
        if held {
            let (holder, version) = lock(&self.shared.written).clone();
            let last = Holder { released: true, beats: holder.beats + 1, heartbeat: written(now()), ..holder };
            // Whoever comes next waits a while if this fails.
            let _ = put(&self.shared.root, &last, Condition::Still(&version));
        }
        drop(here);
    }
}

impl Drop for RemoteLease {
    fn drop(&mut self) {
        self.end();
    }
}

impl Shared {
    /// Beats until the lease is lost or ended.
    fn live(&self, notices: &dyn Fn(&str)) {
        let mut told = false;
        loop {
            let pause = self.timeout / BEATS;
            let mut standing = lock(&self.standing);
            while standing.ended.is_none() && standing.confirmed.elapsed() < pause {
                let left = pause.saturating_sub(standing.confirmed.elapsed());
                standing = self.wake.wait_timeout(standing, left).unwrap_or_else(PoisonError::into_inner).0;
            }
            if standing.ended.is_some() {
                return;
            }
            drop(standing);
            match self.beat() {
                Ok(()) => told = false,
                Err(error) => {
                    if !std::mem::replace(&mut told, true) && self.is_fresh().is_ok() {
                        notices(&format!("the lease of checkpoint {} can't be confirmed: {error}", self.location));
                    }
                    // It is tried again, for as long as the run lasts.
                    let standing = lock(&self.standing);
                    if standing.ended.is_none() {
                        drop(self.wake.wait_timeout(standing, pause));
                    }
                }
            }
        }
    }

    /// Whether the lease was confirmed of late.
    fn is_fresh(&self) -> Result<bool> {
        let standing = lock(&self.standing);
        match &standing.ended {
            Some(error) => Err(error.clone()),
            None => Ok(standing.confirmed.elapsed() < self.timeout / 2),
        }
    }

    /// Writes the lease anew.
    fn beat(&self) -> Result<()> {
        let mut written = lock(&self.written);
        // It may have been ended while this waited.
        self.is_fresh()?;
        let started = Stopwatch::start();
        let (holder, version) = &*written;
        let next = Holder { beats: holder.beats + 1, heartbeat: self::written(now()), ..holder.clone() };
        let version = match put(&self.root, &next, Condition::Still(version))? {
            Some(version) => version,
            None => match self.find_own(&next)? {
                Some(version) => version,
                None => return self.is_fresh().map(drop),
            },
        };
        *written = (next, version);
        lock(&self.standing).confirmed = started;
        Ok(())
    }

    /// The lease is not what was written last: by a write of ours whose answer was lost, or by another run.
    fn find_own(&self, next: &Holder) -> Result<Option<Version>> {
        let found = self.root.remote().read(&self.root.key(PATH))?;
        let holder = found.as_ref().and_then(|found| serde_json::from_slice::<Holder>(&found.bytes).ok());
        if let (Some(found), Some(holder)) = (&found, &holder)
            && holder.run == self.run
            && holder.beats <= next.beats
        {
            return Ok(Some(found.version.clone()));
        }
        let by = match (&found, &holder) {
            (_, Some(holder)) => format!("was taken over by {}", holder.shown()),
            (Some(_), None) => format!("has lost its lease: {} was written by something else", self.root.shown(PATH)),
            (None, _) => format!("has lost its lease: {} was removed", self.root.shown(PATH)),
        };
        let lost = Error::conflict(format!(
            "checkpoint {} {by}; this run ({}) writes nothing to it any more",
            self.location, self.run
        ));
        lock(&self.standing).ended.get_or_insert(lost);
        self.wake.notify_all();
        Ok(None)
    }

    fn over(&self) -> Error {
        Error::conflict(format!("nothing is written: the run that held {} has ended", self.location))
    }
}

/// This run, before it has an epoch.
fn newcomer(process: &str, terms: &LeaseTerms) -> Holder {
    let now = written(now());
    Holder {
        run: uuid::Uuid::new_v4().to_string(),
        epoch: 0,
        process: process.to_string(),
        pid: std::process::id(),
        host: host(),
        started: now.clone(),
        heartbeat: now,
        beats: 0,
        timeout_ms: u64::try_from(terms.timeout.as_millis()).unwrap_or(u64::MAX),
        released: false,
    }
}

/// Whether a lease that was found may be taken: its run has ended, or it has not changed for as long as it says.
fn may_take(
    version: &Version,
    holder: Option<&Holder>,
    location: &str,
    terms: &LeaseTerms,
    seen: &mut Option<(Version, Stopwatch)>,
) -> Result<bool> {
    if let Some(holder) = holder {
        if holder.released || (is_of_this_process(holder) && !lives_here(holder)) {
            return Ok(true);
        }
        if is_of_this_process(holder) {
            return Err(in_use(Some(holder), location));
        }
    }
    let timeout = declared(holder, terms);
    match seen {
        Some((before, _)) if before != version => Err(in_use(holder, location)),
        Some((_, since)) => Ok(since.elapsed() >= timeout),
        None => {
            let by = holder.map_or("somebody whose lease can't be read".to_string(), Holder::shown);
            (terms.notices)(&format!(
                "checkpoint {location} is held by {by}, which may have died: waiting {} for a sign of life",
                seconds(timeout)
            ));
            *seen = Some((version.clone(), Stopwatch::start()));
            Ok(false)
        }
    }
}

fn declared(holder: Option<&Holder>, terms: &LeaseTerms) -> Duration {
    holder.map_or(terms.timeout, |holder| Duration::from_millis(holder.timeout_ms))
}

fn pause(holder: Option<&Holder>, terms: &LeaseTerms) -> Result<()> {
    std::thread::sleep(LOOK.min(declared(holder, terms) / BEATS));
    match (terms.given_up)() {
        true => Err(Error::Cancelled { message: "given up while waiting for a lease".into() }),
        false => Ok(()),
    }
}

/// Makes sure that the store heeds conditions, by writes that must fail.
fn check_conditions(root: &Root, location: &str, holder: &Holder, before: Option<&Version>) -> Result<()> {
    let still = before.map(Condition::Still);
    for condition in [Some(Condition::Absent), still].into_iter().flatten() {
        if put(root, holder, condition)?.is_some() {
            let what = format!("checkpoint {location}: its store writes over objects although it is told not to");
            return Err(Error::unsupported(what).help(
                "it must know If-None-Match and If-Match (conditional writes); take another store, or a local directory",
            ));
        }
    }
    Ok(())
}

fn condition(over: Option<&Version>) -> Condition<'_> {
    over.map_or(Condition::Absent, Condition::Still)
}

fn put(root: &Root, holder: &Holder, condition: Condition<'_>) -> Result<Option<Version>> {
    let line = format!("{}\n", text::to_line(holder)?);
    root.remote().put_if(&root.key(PATH), Bytes::from(line), &holder.run, condition)
}

fn in_use(holder: Option<&Holder>, location: &str) -> Error {
    let by = holder.map_or("another process".to_string(), Holder::shown);
    Error::conflict(format!(
        "checkpoint {location} is in use by {by}: stop that query first, or use another checkpoint"
    ))
}

fn now() -> Millis {
    Clock::system().now()
}

fn written(at: Millis) -> String {
    DateTime::from_timestamp_millis(at).unwrap_or_default().to_rfc3339_opts(SecondsFormat::Millis, true)
}

fn seconds(time: Duration) -> String {
    match time.as_millis() {
        millis if millis % 1_000 != 0 => format!("{millis} ms"),
        millis => format!("{} s", millis / 1_000),
    }
}

fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok().or_else(|| std::env::var("HOSTNAME").ok());
    name.map_or_else(|| "an unknown host".to_string(), |name| name.trim().to_string())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[path = "remote_lease_tests.rs"]
mod tests;
