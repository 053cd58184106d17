//! The thread of a query: waits for its trigger or for orders, runs batches, and ends in one place.

use std::sync::Arc;
use std::time::Duration;

use super::next_batch::{Asked, NextBatch};
use super::operators::Operators;
use super::progress::Measured;
use super::run::Run;
use super::samples::BatchSamples;
use super::shared::{Inner, Shared};
use super::streaming_query::{QueryState, StopReceipt};
use super::tally::Tally;
use super::trigger::next_at;
use super::why::{Ending, Facts};
use crate::error::{Error, Result};
use crate::parser::{Step, StopHow, Trigger};

/// How long to wait before sources that had nothing are asked again; longer where asking takes long.
const POLL: Duration = Duration::from_millis(10);

/// How often something that failed for a moment is tried again before the query fails, and how long is waited between.
const TRIES: u32 = 6;
const FIRST_WAIT: Duration = Duration::from_millis(100);

/// What the thread keeps between batches.
pub(super) struct QueryThread {
    pub run: Run,
    pub shared: Arc<Shared>,
    pub stop_after: Option<u64>,
    /// The clock when the last batch began.
    pub began: Option<i64>,
    /// A look found something to do: it waits for its boundary.
    pub work_ahead: bool,
    /// The batch that the checkpoint was at when this run began.
    pub resumed: Option<u64>,
    pub tally: Tally,
    /// The batch that drains the query is committed.
    pub drained: bool,
}

/// What to do next.
enum Order {
    Batch,
    /// Between two boundaries of TRIGGER EVERY: whether there is anything to do, for those who wait for idleness.
    Look,
    Step(u64, Step),
    ShowState,
    /// EXPLAIN WHY
    Why,
    Drain,
    Verify,
    Stop(Ending),
}

impl QueryThread {
    /// Runs the query to its end and says how it ended.
    pub fn main(mut self) {
        self.keep_facts();
        let ended = self.batches();
        let receipt = self.receipt();
        let (failed, ending) = match ended {
            Ok(ending) => (None, ending),
            Err(Error::Cancelled { .. }) => (None, Ending::Stopped),
            Err(Error::Io { kind: std::io::ErrorKind::BrokenPipe, .. }) => (None, Ending::Stopped),
            Err(error) => (Some(error), Ending::Stopped),
        };
        self.keep_facts();
        if let Some(error) = &failed {
            let _ = self.run.with_sink(|sink| sink.abort());
            let _ = self.run.dead_letters.abort();
            let notice = match error {
                // It names the query already.
                Error::QueryFailed { .. } => error.to_string(),
                other => format!("query {} failed: {other}", self.run.name),
            };
            (self.run.engine.failures)(&notice);
        }
        let QueryThread { run, shared, .. } = self;
        shared.reading.forget();
        // The lease ends before anybody hears of the end, so that a START on the same checkpoint finds it free.
        drop(run);
        shared.update(|inner| {
            inner.status.is_trigger_active = false;
            inner.status.is_data_available = false;
            inner.status.state = if failed.is_some() { QueryState::Failed } else { QueryState::Stopped };
            inner.status.message = match &failed {
                None => "Stopped".into(),
                Some(error) => format!("Terminated with exception: {error}"),
            };
            inner.receipt = failed.is_none().then_some(receipt);
            inner.status.last_error = failed;
            inner.ending = ending;
            inner.ended = true;
        });
    }

    /// For EXPLAIN WHY, also while the next batch runs.
    fn keep_facts(&self) {
        let facts = Facts::of(self);
        self.shared.update(|inner| inner.facts = Some(facts));
    }

    fn batches(&mut self) -> Result<Ending> {
        let trigger = self.shared.lock().trigger;
        let mut asked = Asked { once: trigger == Trigger::Once, ..Asked::default() };
        if trigger == Trigger::AvailableNow {
            let until = self.patiently(|run| run.freeze())?;
            // What a crash left behind is run before, and not counted.
            if self.run.replay.is_none() {
                self.shared.ahead.begin(self.run.size_until(&until));
            }
            asked.until = Some(until);
            self.shared.update(|inner| inner.frozen = true);
        }
        loop {
            match self.next_order() {
                Order::Stop(ending) => return Ok(ending),
                Order::Step(id, step) => {
                    if let Some(ending) = self.take_steps(id, step, &mut asked)? {
                        return Ok(ending);
                    }
                }
                Order::Why => {
                    let work = self.run.work();
                    self.keep_facts();
                    self.shared.update(|inner| inner.work = Some(work));
                }
                Order::ShowState => {
                    let contents = self.run.operators.iter().map(Operators::contents).collect::<Result<Vec<_>>>();
                    let contents = contents.map(|all| all.into_iter().flatten().collect());
                    self.shared.update(|inner| inner.state_contents = Some(contents));
                }
                Order::Look => self.look()?,
                Order::Drain => self.drain()?,
                Order::Verify => {
                    // All that it has read, where this run has read it.
                    let read = self.resumed.is_none().then(|| self.tally.run.read.iter().sum());
                    let verified = self.run.verify(&self.shared.given_up, &self.shared.verifying, read);
                    self.shared.verifying.forget();
                    self.shared.update(|inner| inner.verified = Some(verified));
                }
                Order::Batch => {
                    let (ran, over) = self.triggered(&mut asked)?;
                    if let Some(ending) = over {
                        return Ok(ending);
                    }
                    if !ran {
                        self.rest();
                    }
                }
            }
        }
    }

    /// One batch, if there is one, as the trigger wants it; whether it ran, and how the query ends with it, if it does.
    fn triggered(&mut self, asked: &mut Asked) -> Result<(bool, Option<Ending>)> {
        self.work_ahead = false;
        let replays = self.run.replay.is_some();
        // Before the sources are asked: what comes in between would be lost else.
        let (ahead, ended) = (self.run.end_is_ahead(), self.run.inputs_ended());
        let ran = self.one(asked)?.is_some();
        let trigger = self.shared.lock().trigger;
        let over = match trigger {
            // The batch that a crash left behind is not the one that was asked for.
            Trigger::Once => (!replays).then_some(Ending::Trigger),
            Trigger::AvailableNow => (!ran && !ahead).then_some(Ending::Trigger),
            _ => (!ran && ended).then_some(Ending::Inputs),
        };
        asked.once = trigger == Trigger::Once;
        Ok((ran, over))
    }

    /// Waits until something is to be done.
    fn next_order(&mut self) -> Order {
        let mut inner = self.shared.lock();
        loop {
            if let Some(ending) = self.is_over(&inner) {
                return Order::Stop(ending);
            }
            if inner.stop == Some(StopHow::Drain) {
                return Order::Drain;
            }
            let due = next_at(inner.trigger, self.began).is_none_or(|at| self.run.engine.clock.now() >= at);
            if std::mem::take(&mut inner.state_wanted) {
                return Order::ShowState;
            }
            if std::mem::take(&mut inner.verify_wanted) {
                return Order::Verify;
            }
            if std::mem::take(&mut inner.why_wanted) {
                return Order::Why;
            }
            let rests = self.shared.rests(&inner);
            if !inner.paused {
                if let Some((id, step)) = inner.steps.pop_front() {
                    return Order::Step(id, step);
                }
                if !rests && due {
                    inner.polls += 1;
                    inner.status.is_trigger_active = true;
                    return Order::Batch;
                }
                let asked = inner.idle_waiters > 0 || inner.stop == Some(StopHow::WhenIdle);
                if !due && asked && !self.work_ahead {
                    inner.polls += 1;
                    return Order::Look;
                }
            }
            // Nothing comes by itself.
            if inner.stop == Some(StopHow::WhenIdle) && (rests || inner.paused) {
                return Order::Stop(Ending::Stopped);
            }
            let waits = !due;
            if waits {
                inner.status.message = "Waiting for next trigger".into();
                inner.status.is_trigger_active = false;
            }
            let until = next_at(inner.trigger, self.began).map(|at| at - self.run.engine.clock.now());
            let time = match until {
                Some(millis) if waits && !self.run.engine.clock.is_manual() => {
                    Duration::from_millis(millis.clamp(1, 200) as u64)
                }
                _ if rests || inner.paused => Duration::from_millis(100),
                _ => POLL,
            };
            inner = self.shared.wait(inner, time);
        }
    }

    fn is_over(&self, inner: &Inner) -> Option<Ending> {
        let after = |n: &u64| inner.batches >= *n;
        if self.drained {
            return Some(Ending::Drained);
        }
        if let Some(n) = self.stop_after.filter(after) {
            return Some(Ending::StopAfter(n));
        }
        let stops = match inner.stop {
            Some(StopHow::Graceful | StopHow::Now) => true,
            Some(StopHow::AfterBatches(n)) => after(&n),
            Some(StopHow::WhenIdle | StopHow::Drain) | None => false,
        };
        stops.then_some(Ending::Stopped)
    }

    /// One more batch, without input, which closes all that is open. What was begun before comes first; a batch that was to
    /// drain the query is that one.
    fn drain(&mut self) -> Result<()> {
        if self.run.replay.is_some() {
            self.one(&Asked::default())?;
        }
        if !self.drained {
            self.one(&Asked { empty: true, drain: true, ..Asked::default() })?;
        }
        Ok(())
    }

    fn look(&mut self) -> Result<()> {
        let poll = self.shared.lock().polls;
        self.work_ahead = self.patiently(Run::has_work)?;
        if !self.work_ahead {
            self.shared.update(|inner| inner.idle_poll = Some(poll));
            self.rest();
        }
        Ok(())
    }

    /// Carries out an order to step; how the query ends with it, if it does.
    fn take_steps(&mut self, id: u64, step: Step, asked: &mut Asked) -> Result<Option<Ending>> {
        let mut by_trigger = asked.clone();
        let (count, empty) = match step {
            Step::Batches(n) => (n, false),
            Step::Empty => (1, true),
        };
        let (mut ran, mut over) = (0, None);
        let given_up = |inner: &Inner| inner.steps_given_up.is_some_and(|last| id <= last);
        while ran < count && over.is_none() {
            let inner = self.shared.lock();
            let waits = self.shared.stepped
                && next_at(inner.trigger, self.began).is_some_and(|at| self.run.engine.clock.now() < at);
            let stops = self.is_over(&inner).is_some() || inner.stop == Some(StopHow::Drain);
            if given_up(&inner) || stops || (waits && !empty) {
                break;
            }
            drop(inner);
            let one = if self.shared.stepped && !empty {
                let (one, last) = self.triggered(&mut by_trigger)?;
                over = last;
                one
            } else {
                self.one(&Asked { empty, ..Asked::default() })?.is_some()
            };
            if !one {
                break;
            }
            ran += 1;
        }
        *asked = by_trigger;
        self.shared.update(|inner| inner.step_answer = Some((id, ran)));
        Ok(over)
    }

    /// Looks for a batch and runs it; answers its number.
    fn one(&mut self, asked: &Asked) -> Result<Option<u64>> {
        self.shared.lock().busy = true;
        let ran = self.find_and_run(asked);
        self.shared.update(|inner| inner.busy = false);
        ran
    }

    fn find_and_run(&mut self, asked: &Asked) -> Result<Option<u64>> {
        // A run that is idle too ends when another has taken its place.
        self.run.checkpoint.held()?;
        self.say("Getting offsets", false);
        let poll = self.shared.lock().polls;
        let mut measured = Measured::start();
        let next = {
            let measured = &mut measured;
            self.patiently(move |run| run.next_batch(asked, measured))?
        };
        let Some(next) = next else {
            self.shared.update(|inner| {
                inner.idle_poll = Some(poll);
                inner.status.is_data_available = false;
                inner.status.is_trigger_active = false;
                inner.status.message = "Waiting for data to arrive".into();
            });
            return Ok(None);
        };
        let since_last = self.began.map(|began| next.entry.timestamp.saturating_sub(began));
        self.began = Some(self.run.engine.clock.now());
        self.say(
            if next.has_data { "Processing new data" } else { "No new data but cleaning up state" },
            next.has_data,
        );
        self.shared.ahead.runs(next.size);
        let measured = self.run_patiently(next.clone(), measured)?;
        let document = measured.document(&self.run, &next, since_last);
        self.tally.add(&self.run, next.batch, &measured);
        self.drained |= next.entry.drains;
        let keep = self.run.settings.recent_progress;
        let state_rows = self.run.operators.iter().flat_map(Operators::state_rows).collect();
        let watermark = self.run.watermarks.query();
        let samples = BatchSamples::of(&self.run, next.batch);
        self.shared.watchers.publish(next.batch);
        self.shared.update(|inner| {
            inner.watermark = watermark;
            inner.batches += 1;
            inner.last_batch = Some(next.batch);
            inner.progress.push(document, keep);
            inner.samples.add(samples);
            inner.state_rows = state_rows;
            self.shared.reading.end_run();
            self.shared.ahead.ran();
        });
        self.keep_facts();
        Ok(Some(next.batch))
    }

    /// Runs a batch; where something failed for a moment, what it had done is dropped and it is run again.
    fn run_patiently(&mut self, mut next: NextBatch, mut measured: Measured) -> Result<Measured> {
        let mut tries = 0;
        loop {
            let error = match self.run.run_batch(&next, &mut measured) {
                Ok(()) => {
                    if let Some((_, entry)) = self.run.replay.take() {
                        let now = self.run.engine.clock.now();
                        self.run.watermarks.shift(now.saturating_sub(entry.timestamp));
                    }
                    return Ok(measured);
                }
                Err(error) => error,
            };
            if !error.is_transient() || tries == TRIES || self.run.failpoints.is_killed() {
                return Err(self.in_batch(next.batch, error));
            }
            self.back_off(&error, tries)?;
            tries += 1;
            let logged = self.run.checkpoint.latest_offsets()? == Some(next.batch);
            if self.run.checkpoint.latest_commit()? == Some(next.batch) {
                return Err(self.in_batch(next.batch, error));
            }
            self.run.reload()?;
            next.is_new = !logged;
            measured = Measured::start();
        }
    }

    /// Asks sources; where one failed for a moment, asks again.
    fn patiently<T>(&mut self, mut ask: impl FnMut(&mut Run) -> Result<T>) -> Result<T> {
        let mut tries = 0;
        loop {
            match ask(&mut self.run) {
                Err(error) if error.is_transient() && tries < TRIES => self.back_off(&error, tries)?,
                other => return other,
            }
            tries += 1;
        }
    }

    fn back_off(&mut self, error: &Error, tries: u32) -> Result<()> {
        let wait = FIRST_WAIT * 2u32.pow(tries);
        let message = format!("Retrying in {} ms (attempt {} of {TRIES}): {error}", wait.as_millis(), tries + 1);
        (self.run.engine.notices)(&format!("query {}: {message}", self.run.name));
        self.say(&message, true);
        let watch = crate::clock::Stopwatch::start();
        let mut inner = self.shared.lock();
        let was = std::mem::replace(&mut inner.busy, true);
        while watch.elapsed() < wait {
            if inner.stop.is_some_and(|how| how != StopHow::Drain) {
                return Err(Error::Cancelled { message: "stopped while waiting for another try".into() });
            }
            inner = self.shared.wait(inner, wait.saturating_sub(watch.elapsed()));
        }
        inner.busy = was;
        Ok(())
    }

    fn in_batch(&mut self, batch: u64, cause: Error) -> Error {
        // A bad record says itself where it stands.
        let node = self.run.place.take().filter(|_| !matches!(cause, Error::BadRecord(_)));
        match cause {
            Error::Cancelled { .. } | Error::Io { kind: std::io::ErrorKind::BrokenPipe, .. } => cause,
            cause => Error::QueryFailed { query: self.run.name.clone(), batch, node, cause: Box::new(cause) },
        }
    }

    fn say(&self, message: &str, data: bool) {
        self.shared.update(|inner| {
            inner.status.message = message.to_string();
            inner.status.is_data_available = data;
        });
    }

    /// Nothing to do for now; or for ever, when that was waited for.
    fn rest(&mut self) {
        let mut inner = self.shared.lock();
        if inner.stop == Some(StopHow::WhenIdle) {
            inner.stop = Some(StopHow::Graceful);
            return;
        }
        if inner.stop.is_none() && inner.steps.is_empty() {
            inner = self.shared.wait(inner, POLL);
        }
        drop(inner);
    }

    fn receipt(&self) -> StopReceipt {
        let run = &self.run;
        let offsets =
            run.plan.inputs.iter().zip(&run.ends).filter_map(|(input, end)| Some((input.name.clone(), end.clone()?.0)));
        StopReceipt {
            query: run.name.clone(),
            last_batch: run.next_id.checked_sub(1),
            offsets: offsets.collect(),
            watermark: run.watermarks.query(),
            drained: self.drained,
            state_rows: super::operators::rows(&run.operators),
        }
    }
}
