//! An operator of a query in all its partitions, with what it remembers and its files; and a batch's way through it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

use arrow::array::{RecordBatch, RecordBatchOptions};
use tokio::runtime::Handle;
use tokio::task::JoinSet;

use super::run::{key_order, lock};
use super::streaming_query::StateContents;
use crate::checkpoint::Store;
use crate::delta::keys::split;
use crate::error::{Error, Result};
use crate::incremental::OperatorNode;
use crate::operator::{BatchInfo, KeyedDelta, OperatorPart, OperatorSpec, Output, StateSpec};
use crate::state::file::Delta;
use crate::state::{Forgets, Loaded, OperatorState, StateTable};

/// What was changed in one state in a batch, for the state's file.
#[derive(Default)]
pub(super) struct Changed {
    pub delta: Delta,
    /// Rows written and removed.
    pub updated: u64,
    pub removed: u64,
    /// See [`Output::duplicates`].
    pub duplicates: Option<u64>,
}

/// What an operator hands out at the end of a batch.
pub(super) struct Ended {
    /// One a partition.
    pub results: Vec<Output>,
    /// One a state.
    pub changed: Vec<Changed>,
}

/// So many deltas wait for a partition that is at work before a thread waits with them.
const WAITING: usize = 4;

/// A partition, and what has been handed to it while a thread was at work in it: that thread takes it on before it leaves, so
/// that the others need not wait.
struct Part {
    work: Mutex<Box<dyn OperatorPart>>,
    waiting: Mutex<VecDeque<(usize, KeyedDelta)>>,
    /// A helper is on its way to it.
    called: AtomicBool,
}

/// The partitions that a batch passes: what its threads share.
#[derive(Clone)]
pub(super) struct Passage {
    spec: Arc<dyn OperatorSpec>,
    parts: Arc<Vec<Part>>,
    /// One list of partitions a state.
    tables: Vec<Arc<Vec<Mutex<StateTable>>>>,
    /// Threads that work in partitions beside those that feed them.
    helpers: Arc<Mutex<JoinSet<Result<()>>>>,
}

/// See the module's documentation. States are in the order of [`OperatorSpec::states`].
pub(super) struct Operators {
    passage: Passage,
    specs: Vec<StateSpec>,
    states: Vec<OperatorState>,
}

impl Operators {
    /// Loads what the operator remembered after batch `version`, and makes partitions that know nothing of a batch.
    pub fn open(
        store: &Arc<dyn Store>,
        node: &OperatorNode,
        partitions: usize,
        version: Option<u64>,
        loaded: &Loaded,
    ) -> Result<Self> {
        let (spec, specs) = (&node.spec, node.states());
        let open = |spec: &StateSpec| {
            let forgets = spec.forget.map(|_| spec as &dyn Forgets);
            OperatorState::open(store.clone(), &spec.shape(partitions), version, forgets, loaded)
        };
        let states: Vec<OperatorState> = specs.iter().map(open).collect::<Result<_>>()?;
        let parts = (0..partitions).map(|_| spec.clone().part().map(Part::new)).collect::<Result<_>>()?;
        let tables = states.iter().map(OperatorState::tables).collect();
        let passage = Passage { spec: spec.clone(), parts: Arc::new(parts), tables, helpers: Arc::default() };
        Ok(Operators { passage, specs, states })
    }

    /// For the threads of a batch.
    pub fn passage(&self) -> Passage {
        self.passage.clone()
    }

    /// How many partitions there are.
    pub fn partitions(&self) -> usize {
        self.passage.parts.len()
    }

    /// What it remembers, in the order of what it hands out at the end of a batch.
    pub fn specs(&self) -> &[StateSpec] {
        &self.specs
    }

    /// See [`OperatorState::keep_schema`].
    pub fn keep_schemas(&mut self) -> Result<()> {
        self.states.iter_mut().try_for_each(OperatorState::keep_schema)
    }

    /// Keeps what batch `n` changed. Answers the length of the files.
    pub fn commit(&mut self, n: u64, changed: &[Changed]) -> Result<u64> {
        let mut bytes = 0;
        for (state, changed) in self.states.iter_mut().zip(changed) {
            bytes += state.commit(n, &changed.delta)?;
        }
        Ok(bytes)
    }

    /// See [`OperatorState::snapshot_if_due`].
    pub fn snapshot_if_due(&mut self, n: u64, keep_from: u64) {
        self.states.iter_mut().for_each(|state| state.snapshot_if_due(n, keep_from));
    }

    /// Rows that are remembered.
    pub fn rows(&self) -> u64 {
        self.states.iter().map(OperatorState::rows).sum()
    }

    /// Rows and bytes of each state.
    pub fn sizes(&self) -> Vec<(u64, u64)> {
        self.states.iter().map(|state| (state.rows(), state.memory())).collect()
    }

    /// See [`OperatorState::take_notices`].
    pub fn take_notices(&mut self) -> Vec<String> {
        self.states.iter_mut().flat_map(OperatorState::take_notices).collect()
    }

    /// `SHOW STATE`: operator, partition, rows, bytes.
    pub fn state_rows(&self) -> Vec<(String, usize, u64, u64)> {
        let of = |(spec, state): (&StateSpec, &OperatorState)| -> Vec<(String, usize, u64, u64)> {
            let one = |(n, table): (usize, &Mutex<StateTable>)| {
                let table = lock(table);
                (spec.name().to_string(), n, table.len() as u64, table.memory() as u64)
            };
            state.partitions().iter().enumerate().map(one).collect()
        };
        self.specs.iter().zip(&self.states).flat_map(of).collect()
    }

    /// When the next row that is remembered may be forgotten, in microseconds.
    pub fn next_due(&self) -> Option<i64> {
        let first = |state: &OperatorState| state.partitions().iter().filter_map(|part| lock(part).next_due()).min();
        self.states.iter().filter_map(first).min()
    }

    /// Why the operator will give out nothing any more, whatever comes.
    pub fn spent(&self) -> Result<Option<String>> {
        for part in 0..self.partitions() {
            let tables: Vec<MutexGuard<'_, StateTable>> =
                self.states.iter().map(|state| lock(&state.partitions()[part])).collect();
            let tables: Vec<&StateTable> = tables.iter().map(|table| &**table).collect();
            if let Some(why) = self.passage.spec.spent(&tables)? {
                return Ok(Some(why));
            }
        }
        Ok(None)
    }

    /// What the operator remembers, in the order of its keys.
    pub fn contents(&self) -> Result<StateContents> {
        let of = |(spec, state): (&StateSpec, &OperatorState)| {
            let mut pieces = Vec::new();
            for table in state.partitions() {
                let table = lock(table);
                let slots = table.slots();
                if !slots.is_empty() {
                    let columns = table.key_columns(&slots)?.into_iter().chain(table.values(&slots)?).collect();
                    let options = RecordBatchOptions::new().with_row_count(Some(slots.len()));
                    let rows = RecordBatch::try_new_with_options(spec.rows.clone(), columns, &options);
                    pieces.push(rows.map_err(|e| Error::internal(e.to_string()))?);
                }
            }
            let rows = match key_order(&spec.codec, spec.keys.fields().len(), &pieces)? {
                Some((all, order)) => crate::state::select_rows(&all, order)?,
                None => RecordBatch::new_empty(spec.rows.clone()),
            };
            Ok((spec.name().to_string(), rows))
        };
        self.specs.iter().zip(&self.states).map(of).collect()
    }
}

impl Part {
    fn new(work: Box<dyn OperatorPart>) -> Self {
        Part { work: Mutex::new(work), waiting: Mutex::default(), called: AtomicBool::new(false) }
    }
}

impl Passage {
    /// Hands rows of a fragment to the partitions of their keys: the sender works in one of them, another for each sender, and
    /// leaves the others to helpers, where it is told how to call them.
    pub fn push(
        &self,
        input: usize,
        from: usize,
        rows: RecordBatch,
        info: &BatchInfo,
        helpers: Option<&Handle>,
    ) -> Result<()> {
        let (codec, width) = self.spec.key(input);
        let keys = Arc::new(codec.encode(&rows.columns()[..width], rows.num_rows())?);
        let count = self.parts.len();
        if count == 1 {
            return self.push_part(0, input, KeyedDelta { rows, keys, select: None }, info);
        }
        let mut parts = split(&keys, count);
        let others = (1..count).map(|n| (n + from) % count);
        for n in others.chain([from % count]) {
            let select = std::mem::take(&mut parts[n]);
            if select.is_empty() {
                continue;
            }
            let delta = KeyedDelta { rows: rows.clone(), keys: keys.clone(), select: Some(select) };
            match helpers.filter(|_| n != from % count) {
                Some(runtime) => self.leave_part(n, input, delta, info, runtime)?,
                None => self.push_part(n, input, delta, info)?,
            }
        }
        Ok(())
    }

    /// Leaves something for a partition to a helper; works there itself where too much waits already.
    fn leave_part(
        &self,
        part: usize,
        input: usize,
        delta: KeyedDelta,
        info: &BatchInfo,
        runtime: &Handle,
    ) -> Result<()> {
        let Part { waiting, called, .. } = &self.parts[part];
        let mut queue = lock(waiting);
        queue.push_back((input, delta));
        let full = queue.len() > WAITING;
        drop(queue);
        if full {
            return self.work_in(part, info, true);
        }
        if !called.swap(true, Ordering::AcqRel) {
            let (passage, info) = (self.clone(), *info);
            let help = move || {
                passage.parts[part].called.store(false, Ordering::Release);
                passage.work_in(part, &info, false)
            };
            lock(&self.helpers).spawn_blocking_on(help, runtime);
        }
        Ok(())
    }

    /// Waits for the helpers that were called.
    ///
    /// # Errors
    /// Theirs. Internal: one died.
    pub fn settle(&self, runtime: &Handle) -> Result<()> {
        let mut helpers = std::mem::take(&mut *lock(&self.helpers));
        let mut all = Ok(());
        while let Some(ended) = runtime.block_on(helpers.join_next()) {
            let ended = ended.unwrap_or_else(|e| Err(Error::internal(format!("a partition's helper died: {e}"))));
            all = all.and(ended);
        }
        all
    }

    fn push_part(&self, part: usize, input: usize, delta: KeyedDelta, info: &BatchInfo) -> Result<()> {
        let mut queue = lock(&self.parts[part].waiting);
        queue.push_back((input, delta));
        let full = queue.len() > WAITING;
        drop(queue);
        self.work_in(part, info, full)
    }

    /// Takes on what waits for a partition; what a thread that is at work there takes on itself is left to it, unless `wait`.
    fn work_in(&self, part: usize, info: &BatchInfo, wait: bool) -> Result<()> {
        let Part { work, waiting, .. } = &self.parts[part];
        loop {
            let mut work = match work.try_lock() {
                Ok(work) => work,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) if wait => lock(work),
                Err(TryLockError::WouldBlock) => return Ok(()),
            };
            self.take_on(part, work.as_mut(), info)?;
            drop(work);
            // What was handed over between the last look and the end of the work is nobody else's.
            if lock(waiting).is_empty() {
                return Ok(());
            }
        }
    }

    /// Puts what waits for a partition into it, in the order in which it came.
    fn take_on(&self, part: usize, work: &mut dyn OperatorPart, info: &BatchInfo) -> Result<()> {
        let next = || lock(&self.parts[part].waiting).pop_front();
        while let Some((input, delta)) = next() {
            let mut tables = self.lock_states(part);
            work.push(input, &delta, info, &mut refs(&mut tables))?;
        }
        Ok(())
    }

    /// Ends the batch in every partition; side by side where there was much to do.
    pub fn finish(&self, info: &BatchInfo, parallel: bool) -> Result<Ended> {
        let one = |n: usize| {
            let mut work = lock(&self.parts[n].work);
            self.take_on(n, work.as_mut(), info)?;
            let mut tables = self.lock_states(n);
            work.finish(info, &mut refs(&mut tables))
        };
        let partitions = 0..self.parts.len();
        let outputs: Vec<Vec<Output>> = if !parallel || partitions.len() == 1 {
            partitions.map(one).collect::<Result<_>>()?
        } else {
            std::thread::scope(|scope| {
                let workers: Vec<_> = partitions.map(|n| scope.spawn(move || one(n))).collect();
                let join = |worker: std::thread::ScopedJoinHandle<'_, Result<Vec<Output>>>| {
                    worker.join().unwrap_or_else(|_| Err(Error::internal("a partition's thread died")))
                };
                workers.into_iter().map(join).collect::<Result<_>>()
            })?
        };
        let mut ended = Ended { results: Vec::new(), changed: Vec::new() };
        ended.changed.resize_with(self.tables.len(), Changed::default);
        for partition in outputs {
            for (n, (mut output, changed)) in partition.into_iter().zip(&mut ended.changed).enumerate() {
                changed.delta.upserts.append(&mut output.upserts);
                changed.delta.deletes.append(&mut output.deletes);
                // Partitions without a row that is due say nothing, and would forget none.
                changed.delta.forgotten_until = changed.delta.forgotten_until.max(output.forgotten_until);
                changed.updated += output.updated;
                changed.removed += output.removed;
                changed.duplicates = match (changed.duplicates, output.duplicates) {
                    (Some(a), Some(b)) => Some(a + b),
                    (a, b) => a.or(b),
                };
                if n == 0 {
                    ended.results.push(output);
                }
            }
        }
        Ok(ended)
    }

    fn lock_states(&self, partition: usize) -> Vec<MutexGuard<'_, StateTable>> {
        self.tables.iter().map(|tables| lock(&tables[partition])).collect()
    }
}

fn refs<'a>(tables: &'a mut [MutexGuard<'_, StateTable>]) -> Vec<&'a mut StateTable> {
    tables.iter_mut().map(|table| &mut **table).collect()
}

/// Rows that are remembered; `None` where no operator remembers.
pub(super) fn rows(operators: &[Operators]) -> Option<u64> {
    (!operators.is_empty()).then(|| operators.iter().map(Operators::rows).sum())
}
