//! What one run of a query owns: plan, sources, state, sink, logs; and the parts of a batch.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow::array::RecordBatch;

use super::dead_letter::DeadLetterSinks;
use super::next_batch::NextBatch;
use super::operators::{Changed, Operators, Passage};
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
use crate::incremental::{Fragment, IncrementalPlan, OperatorNode, changes_of};
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
    /// One for each of the plan's, in the order in which they run.
    pub operators: Vec<Operators>,
    pub result: Option<ResultState>,
    pub sink: Arc<Mutex<Box<dyn Sink>>>,
    pub dead_letters: DeadLetterSinks,
    pub watermarks: Watermarks,
    /// The watermark that the last committed batch used: rows are late by it in the next.
    pub used_watermark: Option<i64>,
    pub next_id: u64,
    /// Late contributions that were left out since the first batch of the checkpoint.
    pub late: u64,
    /// Logged and not committed: to be run before anything new.
    pub replay: Option<(u64, OffsetEntry)>,
    pub failpoints: Failpoints,
    /// Where in the plan a batch is at work, for an error that ends it there.
    pub place: Option<String>,
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
        let mut changed = Vec::new();
        for (node, operators) in self.plan.operators.iter().zip(&self.operators) {
            let (passage, info) = (operators.passage(), info.behind(node.lag));
            for (input, fragment) in node.inputs.iter().enumerate() {
                self.place = Some(self.place_above(&node.from[input], fragment));
                let fed = self.feed(fragment, input, &passage, info, parallel);
                let helped = passage.settle(&self.engine.runtime);
                fed.and(helped)?;
            }
            self.place = operators.specs().first().map(|state| state.name().to_string());
            let ended = passage.finish(&info, parallel)?;
            node.leaf.fill(LeafInput::Batches(Arc::new(result_rows(node, ended.results)?)));
            measured.state.extend(ended.changed.iter().map(OperatorMeasured::of));
            changed.extend(ended.changed);
        }
        self.place = Some(self.place_above(&self.plan.last_from, &self.plan.last));
        // Without operators the sources' rows are read here, whether or not the sink wants them.
        if write || self.plan.operators.is_empty() {
            self.hand_over(parallel, write)?;
        }
        self.place = None;
        Ok(changed)
    }

    /// A fragment above these operators, for a person; above none it reads the streams.
    fn place_above(&self, operators: &[usize], fragment: &Fragment) -> String {
        let name = |n: &usize| self.operators.get(*n)?.specs().first().map(|state| state.name().to_string());
        let below: Vec<String> = operators.iter().filter_map(name).collect();
        if !below.is_empty() {
            return format!("behind {}", below.join(", "));
        }
        format!("reading {}", fragment.reads().join(", "))
    }

    /// Runs a fragment into an operator.
    fn feed(
        &self,
        fragment: &Fragment,
        input: usize,
        passage: &Passage,
        info: BatchInfo,
        parallel: bool,
    ) -> Result<()> {
        let (passage, abandon) = (passage.clone(), self.abandon.clone());
        let helpers = parallel.then(|| self.engine.runtime.clone());
        fragment.run(&self.engine.runtime, parallel, move |from, rows| {
            check(&abandon)?;
            if rows.num_rows() == 0 { Ok(()) } else { passage.push(input, from, rows, &info, helpers.as_ref()) }
        })
    }

    /// The last fragment, and the sink.
    fn hand_over(&self, parallel: bool, write: bool) -> Result<()> {
        let (sink, abandon) = (self.sink.clone(), self.abandon.clone());
        let Some(hidden) = &self.plan.hidden else {
            return self.plan.last.run(&self.engine.runtime, parallel, move |partition, rows| {
                check(&abandon)?;
                if write && rows.num_rows() > 0 { lock(&sink).push(partition, Delta::insert(rows)) } else { Ok(()) }
            });
        };
        let collected = Arc::new(Mutex::new(Vec::new()));
        let into = collected.clone();
        self.plan.last.run(&self.engine.runtime, parallel, move |_, rows| {
            check(&abandon)?;
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
        let mut changed = changed;
        for operators in &mut self.operators {
            let (own, others) = changed.split_at(operators.specs().len().min(changed.len()));
            measured.checkpoint_bytes += operators.commit(n, own)?;
            changed = others;
        }
        let sizes = self.operators.iter().flat_map(Operators::sizes);
        for (measured, size) in measured.state.iter_mut().zip(sizes) {
            measured.size = Some(size);
        }
        if let Some(result) = &mut self.result {
            measured.checkpoint_bytes += result.commit(n)?;
        }
        Ok(())
    }

    /// The batch is committed: snapshots that are due may begin.
    fn begin_snapshots(&mut self, n: u64) {
        let keep_from = n.saturating_sub(self.settings.min_batches_to_retain);
        for operators in &mut self.operators {
            operators.snapshot_if_due(n, keep_from);
        }
        if let Some(result) = &mut self.result {
            result.snapshot_if_due(n, keep_from);
        }
        self.tell_of_state();
    }

    /// Passes on what its state has to say that failed nothing.
    pub fn tell_of_state(&mut self) {
        let of_memory = self.operators.iter_mut().map(Operators::take_notices);
        let of_result = self.result.as_mut().map(ResultState::take_notices);
        for notice in of_memory.chain(of_result).flatten() {
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

    /// Lets sources and logs forget, and states too, behind a snapshot.
    pub fn forget(&mut self, n: u64, entry: &OffsetEntry) -> Result<()> {
        self.begin_snapshots(n);
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

/// An operator's result as the fragments above it take it: in key order where that is asked for, old rows and new rows with
/// their hidden columns where it takes rows back.
fn result_rows(node: &OperatorNode, outputs: Vec<Output>) -> Result<Vec<RecordBatch>> {
    if !node.signed {
        let rows: Vec<RecordBatch> = outputs.into_iter().flat_map(|o| o.rows).collect();
        return if node.ordered { in_key_order(node, rows) } else { Ok(rows) };
    }
    let (mut batches, mut base) = (Vec::new(), 0u32);
    let schema = node.leaf.schema();
    for output in outputs {
        let keys = output.new_keys.iter().chain(&output.old_keys).max().map_or(0, |last| last + 1);
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
    renumber(node, batches)
}

/// Sorts rows by the operator's keys.
fn in_key_order(node: &OperatorNode, rows: Vec<RecordBatch>) -> Result<Vec<RecordBatch>> {
    let (codec, width) = node.spec.order();
    let Some((all, order)) = key_order(codec, width, &rows)? else {
        return Ok(rows);
    };
    Ok(vec![crate::state::select_rows(&all, order)?])
}

/// Numbers keys in their order, so that what is sent is in key order too and the same in every run.
fn renumber(node: &OperatorNode, batches: Vec<RecordBatch>) -> Result<Vec<RecordBatch>> {
    use arrow::array::{ArrayRef, AsArray, UInt32Array};
    let (codec, width) = node.spec.order();
    let Some((all, order)) = key_order(codec, width, &batches)? else {
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
