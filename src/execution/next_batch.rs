//! What the next batch is: the one that was logged and not committed; else what the sources have; else a batch without
//! data that the watermark makes due (rules N1 to N3); else none.

use std::collections::BTreeMap;

use super::operators::Operators;
use super::progress::Measured;
use super::run::{Run, lock};
use crate::checkpoint::{OffsetEntry, SourceOffsets};
use crate::clock::Stopwatch;
use crate::error::{Error, Result};
use crate::operator::StateSpec;
use crate::parser::OutputMode;
use crate::source::{InputEnd, Offset, OffsetRange, RangeSize, ReadLimit};

/// A batch that is to be run.
#[derive(Clone)]
pub(super) struct NextBatch {
    pub batch: u64,
    pub entry: OffsetEntry,
    /// Not logged yet.
    pub is_new: bool,
    /// The watermark of the batch before.
    pub late_watermark: Option<i64>,
    /// Large enough to be worth all partitions.
    pub parallel: bool,
    /// Any source has something in it.
    pub has_data: bool,
    /// Of all that it reads.
    pub size: RangeSize,
}

/// What is asked of the sources.
#[derive(Debug, Clone, Default)]
pub(super) struct Asked {
    /// AVAILABLE NOW: how far each source goes, frozen at the start.
    pub until: Option<Vec<Until>>,
    /// ONCE: all there is, in one batch, and no batch without data.
    pub once: bool,
    /// `STEP … EMPTY`: one batch without input.
    pub empty: bool,
    /// `STOP … DRAIN`: that batch is the last, and closes all that is open.
    pub drain: bool,
    /// Only whether there is anything.
    pub look: bool,
}

/// How far AVAILABLE NOW goes in one source.
#[derive(Debug, Clone)]
pub(super) enum Until {
    /// To here; `None`: there was nothing.
    Offset(Option<Offset>),
    /// To the end of an input that has one.
    End,
}

/// Up to here one partition is quicker.
const SMALL_ROWS: u64 = 20_000;
const SMALL_BYTES: u64 = 2 << 20;

impl Run {
    /// The next batch, if one is due.
    ///
    /// # Errors
    /// Of a source. A transient one is worth another try.
    pub fn next_batch(&mut self, asked: &Asked, measured: &mut Measured) -> Result<Option<NextBatch>> {
        if let Some((batch, entry)) = self.replay.clone() {
            self.timed(measured, |run| run.check_statics(&entry))?;
            return Ok(Some(self.describe(batch, entry, false)));
        }
        let ends = match asked.empty {
            true => self.ends.clone(),
            false => self.step(measured, "latest", "latestOffset", |run, _| run.ask(asked))?,
        };
        let now = self.engine.clock.now();
        self.watermarks.settle(now);
        let has_data = ends != self.ends;
        if !has_data && !asked.empty && (asked.once || !self.no_data_due()) {
            return Ok(None);
        }
        let mut entry = self.timed(measured, |run| run.entry(&ends, now))?;
        if asked.drain {
            (entry.watermark, entry.drains) = (None, true);
        }
        Ok(Some(self.describe(self.next_id, entry, true)))
    }

    /// What looks at the static tables, and plans again where one has changed.
    fn timed<T>(&mut self, measured: &mut Measured, work: impl FnOnce(&mut Run) -> Result<T>) -> Result<T> {
        let watch = Stopwatch::start();
        let done = work(self);
        measured.add("queryPlanning", watch.elapsed());
        done
    }

    /// Whether there is anything to do. Begins nothing: no source remembers that it was asked.
    ///
    /// # Errors
    /// Of a source. A transient one is worth another try.
    pub fn has_work(&mut self) -> Result<bool> {
        if self.replay.is_some() {
            return Ok(true);
        }
        let (data, due) = self.look()?;
        Ok(data || due)
    }

    /// Whether sources have anything, and whether a batch without data is due.
    pub fn look(&mut self) -> Result<(bool, bool)> {
        let ends = self.ask(&Asked { look: true, ..Asked::default() })?;
        self.watermarks.settle(self.engine.clock.now());
        Ok((ends != self.ends, self.no_data_due()))
    }

    /// AVAILABLE NOW: how far each source goes now.
    pub fn freeze(&mut self) -> Result<Vec<Until>> {
        let limit = ReadLimit { unlimited: true, ..ReadLimit::default() };
        let starts: Vec<Option<Offset>> = match &self.replay {
            None => self.ends.clone(),
            Some((_, entry)) => self
                .plan
                .inputs
                .iter()
                .map(|i| entry.sources.get(&i.name).and_then(|s| s.end.clone()).map(Offset))
                .collect(),
        };
        self.sources
            .iter()
            .zip(starts)
            .map(|(source, start)| {
                let mut source = lock(source);
                if source.end() == InputEnd::Ahead {
                    return Ok(Until::End);
                }
                Ok(Until::Offset(source.latest_offset(start.as_ref(), &limit)?.or(start)))
            })
            .collect()
    }

    /// How much there is from where each source was read to, up to there.
    pub fn size_until(&self, until: &[Until]) -> RangeSize {
        let mut all = RangeSize::NOTHING;
        for ((source, start), until) in self.sources.iter().zip(&self.ends).zip(until) {
            all = all.plus(match until {
                Until::End => RangeSize::default(),
                Until::Offset(end) if end == start => RangeSize::NOTHING,
                Until::Offset(None) => RangeSize::NOTHING,
                Until::Offset(Some(end)) => lock(source).size(&OffsetRange { start: start.clone(), end: end.clone() }),
            });
        }
        all
    }

    /// Whether an input will end and hasn't yet.
    pub fn end_is_ahead(&self) -> bool {
        self.sources.iter().any(|source| lock(source).end() == InputEnd::Ahead)
    }

    /// Whether every input has an end, reached or not.
    pub fn inputs_end(&self) -> bool {
        !self.sources.is_empty() && self.sources.iter().all(|source| lock(source).end() != InputEnd::Never)
    }

    /// Whether every input has ended: what there is now is all that will come.
    pub fn inputs_ended(&self) -> bool {
        !self.sources.is_empty() && self.sources.iter().all(|source| lock(source).end() == InputEnd::Reached)
    }

    fn ask(&self, asked: &Asked) -> Result<Vec<Option<Offset>>> {
        let mut ends = Vec::with_capacity(self.sources.len());
        for (n, source) in self.sources.iter().enumerate() {
            let after = self.ends[n].as_ref();
            let until = asked.until.as_ref().and_then(|until| match &until[n] {
                Until::Offset(offset) => Some(offset.clone()),
                Until::End => None,
            });
            let nothing_left = until.as_ref().is_some_and(|until| until.is_none() || until.as_ref() == after);
            if nothing_left {
                ends.push(self.ends[n].clone());
                continue;
            }
            let limit = ReadLimit {
                unlimited: asked.once,
                until: until.flatten(),
                max_bytes: Some(self.settings.max_batch_bytes),
                look: asked.look,
            };
            ends.push(lock(source).latest_offset(after, &limit)?.or_else(|| self.ends[n].clone()));
        }
        Ok(ends)
    }

    /// Whether the watermark has moved since the last batch and the operator could emit or forget by it.
    fn no_data_due(&self) -> bool {
        let forgets = self.plan.operators.iter().any(|node| node.spec.forgets());
        self.settings.no_data_batches
            && forgets
            && self.plan.mode != OutputMode::Complete
            && self.next_id > 0
            && self.watermarks.query() > self.used_watermark
    }

    fn entry(&mut self, ends: &[Option<Offset>], now: i64) -> Result<OffsetEntry> {
        let mut sources = BTreeMap::new();
        for ((input, start), end) in self.plan.inputs.iter().zip(&self.ends).zip(ends) {
            let offsets = SourceOffsets { start: start.clone().map(|o| o.0), end: end.clone().map(|o| o.0) };
            sources.insert(input.name.clone(), offsets);
        }
        let names = self.operators.iter().flat_map(Operators::specs).map(StateSpec::name);
        let operators: Vec<&str> = names.chain(self.result.as_ref().map(|_| "result")).collect();
        let conf = super::restart::conf(&self.plan, self.settings.watermark_policy_max, &operators);
        Ok(OffsetEntry {
            timestamp: now,
            watermarks: self.watermarks.by_input(),
            watermark: self.watermarks.query(),
            drains: false,
            conf,
            statics: self.static_versions()?,
            sources,
        })
    }

    /// A batch, and what is known of it before it runs.
    pub(super) fn describe(&self, batch: u64, entry: OffsetEntry, is_new: bool) -> NextBatch {
        let (mut parallel, mut has_data, mut all) = (false, false, RangeSize::NOTHING);
        for (input, source) in self.plan.inputs.iter().zip(&self.sources) {
            let Some(logged) = entry.sources.get(&input.name) else { continue };
            let Some(end) = logged.end.clone().filter(|end| logged.start.as_ref() != Some(end)) else { continue };
            has_data = true;
            let range = OffsetRange { start: logged.start.clone().map(Offset), end: Offset(end) };
            let size = lock(source).size(&range);
            all = all.plus(size);
            let small = match (size.rows, size.bytes) {
                (Some(rows), _) => rows <= SMALL_ROWS,
                (None, Some(bytes)) => bytes <= SMALL_BYTES,
                (None, None) => false,
            };
            parallel |= !small;
        }
        NextBatch { batch, entry, is_new, late_watermark: self.used_watermark, parallel, has_data, size: all }
    }

    /// What the static tables are now; plans again when one has changed since the last batch.
    fn static_versions(&mut self) -> Result<BTreeMap<String, String>> {
        if self.plan.statics.is_empty() {
            return Ok(BTreeMap::new());
        }
        let (versions, changed) = self.statics.look(&self.plan.statics, &self.engine)?;
        if let Some(table) = changed.iter().find(|table| self.plan.fixed_statics.contains(*table)) {
            return Err(Error::conflict(format!(
                "static table {table} has changed, and the query takes back rows that it has joined with the table as it was: \
                 put the table back, or start with a new CHECKPOINT"
            )));
        }
        if !changed.is_empty() {
            self.plan_again()?;
        }
        self.statics.take_up(&versions);
        Ok(versions)
    }

    /// Holds a logged batch's static tables against what they are now.
    fn check_statics(&mut self, entry: &OffsetEntry) -> Result<()> {
        let now = self.static_versions()?;
        for (name, logged) in &entry.statics {
            let Some(now) = now.get(name).filter(|now| *now != logged) else { continue };
            if self.settings.static_replay_latest {
                continue;
            }
            return Err(Error::conflict(format!(
                "batch {} was begun with static table {name} as of ({logged}) and it is ({now}) now, so the batch can't be run again with the same rows; \
                 put the table back, or START … WITH (static_replay = 'latest') to go on with it as it is",
                self.next_id
            )));
        }
        Ok(())
    }

    /// Makes the fragments again, with the static tables as they are now. Operators and state stay.
    fn plan_again(&mut self) -> Result<()> {
        let engine = &self.engine;
        let again = crate::incremental::plan(
            &engine.state,
            self.logical.clone(),
            self.plan.mode,
            &self.target,
            self.settings.partitions,
        );
        let mut plan = engine.runtime.block_on(again)?;
        // Old ones own what the operators and the watermark read of a batch; the new plan brings its own, and is used whole.
        std::mem::swap(&mut self.plan, &mut plan);
        self.dead_letters.arm(&self.plan);
        Ok(())
    }
}
