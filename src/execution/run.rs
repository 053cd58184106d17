//! What one run of a query owns: plan, sources, state, sink, logs; and the parts of a batch.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow::array::RecordBatch;

use super::next_batch::NextBatch;
use super::operators::{Changed, Ended, Operators};
use super::progress::{Measured, OperatorMeasured};
use super::result_state::ResultState;
use super::statics::StaticVersions;
use super::watermark::Watermarks;
use super::{Engine, QuerySettings};
use crate::checkpoint::{Checkpoint, Failpoints, OffsetEntry};
use crate::clock::Stopwatch;
use crate::delta::Delta;
use crate::delta::keys::KeyCodec;
use crate::error::{Error, Result};
use crate::incremental::{AggregatePart, IncrementalPlan, changes_of};
use crate::operator::{BatchInfo, Output};
use crate::planner::leaf::{LeafInput, SharedSource};
use crate::sink::Sink;
use crate::source::{Offset, OffsetRange};

/// One run of a query, owned by its thread.
pub(super) struct Run {
    pub name: String,
    pub engine: Engine,
    pub settings: QuerySettings,
    /// As planned by the session; to be cut again when a static table has changed.
    pub logical: datafusion::logical_expr::LogicalPlan,
    pub target: super::TargetTraits,
    pub plan: IncrementalPlan,
    pub sources: Vec<SharedSource>,
    /// Where each source's last batch ended.
    pub ends: Vec<Option<Offset>>,
    pub statics: StaticVersions,
    pub operators: Option<Operators>,
    pub result: Option<ResultState>,
    pub sink: Arc<Mutex<Box<dyn Sink>>>,
    pub watermarks: Watermarks,
    /// The watermark that the last committed batch used: rows are late by it in the next.
    pub used_watermark: Option<i64>,
    pub next_id: u64,
    /// Logged and not committed: to be run before anything new.
    pub replay: Option<(u64, OffsetEntry)>,
    pub failpoints: Failpoints,
    /// STOP … NOW: whatever runs ends at once.
    pub abandon: Arc<AtomicBool>,
    /// Last, so that the lease ends when all else has.
    pub checkpoint: Checkpoint,
}

impl Run {
    /// One step of the protocol: between its failpoints, timed under `key` of the progress document.
    pub fn step<T>(
        &mut self,
        measured: &mut Measured,
        name: &str,
        key: &'static str,
        work: impl FnOnce(&mut Run, &mut Measured) -> Result<T>,
    ) -> Result<T> {
        self.failpoints.hit(&format!("{name}.before"))?;
        let watch = Stopwatch::start();
        let done = work(self, measured);
        measured.add(key, watch.elapsed());
        let done = done?;
        self.failpoints.hit(&format!("{name}.after"))?;
        Ok(done)
    }

    pub fn with_sink<T>(&self, work: impl FnOnce(&mut dyn Sink) -> Result<T>) -> Result<T> {
        work(lock(&self.sink).as_mut())
    }

    /// Puts the logged ranges into the leaves.
    pub fn fill_leaves(&mut self, entry: &OffsetEntry) -> Result<()> {
        for (input, source) in self.plan.inputs.iter().zip(&self.sources) {
            let logged = entry.sources.get(&input.name);
            let range = logged.and_then(|range| {
                let end = Offset(range.end.clone()?);
                let start = range.start.clone().map(Offset);
                (start.as_ref() != Some(&end)).then_some(OffsetRange { start, end })
            });
            input.leaf.fill(match range {
                Some(range) => LeafInput::Source { source: source.clone(), range },
                None => LeafInput::Nothing,
            });
        }
        Ok(())
    }

    /// Runs the plan over what the leaves hold; `write`: hand the result to the sink.
    pub fn process(
        &mut self,
        info: &BatchInfo,
        parallel: bool,
        write: bool,
        measured: &mut Measured,
    ) -> Result<Vec<Changed>> {
        let (sink, abandon) = (self.sink.clone(), self.abandon.clone());
        let Some(part) = &self.plan.aggregate else {
            self.plan.first.run(&self.engine.runtime, parallel, move |partition, rows| {
                check(&abandon)?;
                if write && rows.num_rows() > 0 { lock(&sink).push(partition, Delta::insert(rows)) } else { Ok(()) }
            })?;
            return Ok(Vec::new());
        };
        let operators = self.operators.as_ref().ok_or_else(|| Error::internal("an aggregate without operators"))?;
        let (passage, info) = (operators.passage(), *info);
        {
            let passage = passage.clone();
            self.plan.first.run(&self.engine.runtime, parallel, move |from, rows| {
                check(&abandon)?;
                if rows.num_rows() == 0 { Ok(()) } else { passage.push(from, rows, &info) }
            })?;
        }
        let Ended { results, changed } = passage.finish(&info, parallel)?;
        measured.state = changed.iter().map(OperatorMeasured::of).collect();
        if write {
            let input = post_input(part, results)?;
            self.hand_over(part, input)?;
        }
        Ok(changed)
    }

    /// The fragment behind the operator, and the sink.
    fn hand_over(&self, part: &AggregatePart, input: Vec<RecordBatch>) -> Result<()> {
        part.leaf.fill(LeafInput::Batches(Arc::new(input)));
        let sink = self.sink.clone();
        let Some(hidden) = &part.hidden else {
            return part.post.run(&self.engine.runtime, false, move |_, rows| {
                if rows.num_rows() > 0 { lock(&sink).push(0, Delta::insert(rows)) } else { Ok(()) }
            });
        };
        let collected = Arc::new(Mutex::new(Vec::new()));
        let into = collected.clone();
        part.post.run(&self.engine.runtime, false, move |_, rows| {
            lock(&into).push(rows);
            Ok(())
        })?;
        let rows = std::mem::take(&mut *lock(&collected));
        match changes_of(&rows, hidden)? {
            Some(changes) => lock(&sink).push(0, changes),
            None => Ok(()),
        }
    }

    /// Keeps the operators' states, and the result table's, as version `n`.
    pub fn commit_state(&mut self, n: u64, changed: &[Changed], measured: &mut Measured) -> Result<()> {
        let keep_from = n.saturating_sub(self.settings.min_batches_to_retain);
        if let Some(operators) = &mut self.operators {
            measured.checkpoint_bytes += operators.commit(n, changed, keep_from)?;
            for (measured, size) in measured.state.iter_mut().zip(operators.sizes()) {
                measured.size = Some(size);
            }
        }
        if let Some(result) = &mut self.result {
            measured.checkpoint_bytes += result.commit(n, keep_from)?;
        }
        self.tell_of_state();
        Ok(())
    }

    /// Passes on what its state has to say that failed nothing.
    pub fn tell_of_state(&mut self) {
        let of_memory = self.operators.as_mut().map(Operators::take_notices);
        let of_result = self.result.as_mut().map(ResultState::take_notices);
        for notice in of_memory.into_iter().chain(of_result).flatten() {
            (self.engine.notices)(&format!("query {}: {notice}", self.name));
        }
    }

    /// The batch is committed: what comes next builds on it.
    pub fn done(&mut self, next: &NextBatch) {
        self.next_id = next.batch + 1;
        self.used_watermark = next.entry.watermark;
        for (input, end) in self.plan.inputs.iter().zip(&mut self.ends) {
            if let Some(logged) = next.entry.sources.get(&input.name) {
                *end = logged.end.clone().map(Offset);
            }
        }
    }

    /// Lets sources and logs forget.
    pub fn forget(&mut self, n: u64, entry: &OffsetEntry) -> Result<()> {
        for (input, source) in self.plan.inputs.iter().zip(&self.sources) {
            if let Some(end) = entry.sources.get(&input.name).and_then(|logged| logged.end.clone()) {
                lock(source).commit(&Offset(end))?;
            }
        }
        super::retention::purge(&self.checkpoint, n, self.settings.min_batches_to_retain)
    }
}

fn check(abandon: &AtomicBool) -> Result<()> {
    if abandon.load(Ordering::Relaxed) {
        return Err(Error::Cancelled { message: "the batch in flight was abandoned".into() });
    }
    Ok(())
}

/// The operator's result as the fragment behind it takes it: in key order where that is asked for, old rows and new rows
/// with their hidden columns where the query retracts.
fn post_input(part: &AggregatePart, outputs: Vec<Output>) -> Result<Vec<RecordBatch>> {
    if part.hidden.is_none() {
        let rows: Vec<RecordBatch> = outputs.into_iter().flat_map(|o| o.rows).collect();
        return if part.ordered { in_key_order(part, rows) } else { Ok(rows) };
    }
    let (mut batches, mut base) = (Vec::new(), 0u32);
    let schema = part.leaf.schema();
    for output in outputs {
        let keys = output.new_keys.len() as u32;
        for (rows, numbers, weight) in [(&output.old_rows, &output.old_keys, -1i8), (&output.rows, &output.new_keys, 1)]
        {
            let mut at = 0;
            for rows in rows {
                let numbers: Vec<u32> = numbers[at..at + rows.num_rows()].iter().map(|n| n + base).collect();
                at += rows.num_rows();
                batches.push(crate::incremental::with_hidden(rows, schema, &numbers, weight)?);
            }
        }
        base += keys;
    }
    renumber(part, batches)
}

/// Sorts rows by the operator's keys.
fn in_key_order(part: &AggregatePart, rows: Vec<RecordBatch>) -> Result<Vec<RecordBatch>> {
    let Some((all, order)) = key_order(&part.chain.codec, part.chain.aggregate.keys.len(), &rows)? else {
        return Ok(rows);
    };
    Ok(vec![crate::state::select_rows(&all, order)?])
}

/// Numbers keys in their order, so that what is sent is in key order too and the same in every run.
fn renumber(part: &AggregatePart, batches: Vec<RecordBatch>) -> Result<Vec<RecordBatch>> {
    use arrow::array::{ArrayRef, AsArray, UInt32Array};
    let Some((all, order)) = key_order(&part.chain.codec, part.chain.aggregate.keys.len(), &batches)? else {
        return Ok(batches);
    };
    let column = all.num_columns() - 2;
    let numbers = all.column(column).as_primitive::<arrow::datatypes::UInt32Type>();
    let mut ranks = std::collections::HashMap::new();
    for row in &order {
        let next = ranks.len() as u32;
        ranks.entry(numbers.value(*row as usize)).or_insert(next);
    }
    let renumbered: UInt32Array = numbers.values().iter().map(|n| ranks.get(n).copied().unwrap_or_default()).collect();
    let mut columns = all.columns().to_vec();
    columns[column] = Arc::new(renumbered) as ArrayRef;
    Ok(vec![RecordBatch::try_new(all.schema(), columns).map_err(Error::from)?])
}

pub(super) fn key_order(
    codec: &KeyCodec,
    width: usize,
    batches: &[RecordBatch],
) -> Result<Option<(RecordBatch, Vec<u32>)>> {
    let Some(first) = batches.first() else { return Ok(None) };
    let all = arrow::compute::concat_batches(&first.schema(), batches).map_err(Error::from)?;
    let keys = codec.encode(&all.columns()[..width], all.num_rows())?;
    let mut order: Vec<u32> = (0..all.num_rows() as u32).collect();
    order.sort_by(|a, b| keys.bytes(*a as usize).cmp(keys.bytes(*b as usize)));
    Ok(Some((all, order)))
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
