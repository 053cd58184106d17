//! The operators of a query in all their partitions, with what they remember and its files; and a batch's way through them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Fields, Schema};
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;

use super::run::{key_order, lock};
use super::streaming_query::StateContents;
use crate::checkpoint::Store;
use crate::delta::keys::split;
use crate::error::{Error, Result};
use crate::operator::{BatchInfo, Chain, ChainSpec, ForgetBy, KeyedDelta, Output};
use crate::state::schema::StateSchema;
use crate::state::{OperatorState, Shape, Spread, StateTable};

/// What one operator changed in its state in a batch, for the state's file.
#[derive(Default)]
pub(super) struct Changed {
    pub upserts: Vec<RecordBatch>,
    pub deletes: Vec<RecordBatch>,
    /// Rows written and removed.
    pub updated: u64,
    pub removed: u64,
}

/// What the operators hand out at the end of a batch.
pub(super) struct Ended {
    /// The aggregate's outputs, one a partition.
    pub results: Vec<Output>,
    /// One an operator.
    pub changed: Vec<Changed>,
}

/// The operators that a batch passes: what its threads share.
#[derive(Clone)]
pub(super) struct Passage {
    spec: Arc<ChainSpec>,
    chains: Arc<Vec<Mutex<Chain>>>,
    /// One list of partitions an operator.
    tables: Vec<Arc<Vec<Mutex<StateTable>>>>,
}

/// See the module's documentation. States are in the order of [`ChainSpec::names`].
pub(super) struct Operators {
    passage: Passage,
    states: Vec<OperatorState>,
}

impl Operators {
    /// Loads what the operators remembered after batch `version`, and makes operators that know nothing of a batch.
    pub fn open(
        store: &Arc<dyn Store>,
        spec: &Arc<ChainSpec>,
        partitions: usize,
        version: Option<u64>,
    ) -> Result<Self> {
        let elements = spec.elements().map(|(spec, _)| spec.forget);
        let distinct = spec.distinct.iter().map(|(spec, _)| spec.forget);
        let forgets = std::iter::once(spec.aggregate.forget).chain(elements).chain(distinct);
        let open = |(shape, forget): (&Shape, Option<ForgetBy>)| {
            let times = |keys: &[ArrayRef]| Ok(forget.map(|by| by.times(keys)).transpose()?.unwrap_or_default());
            let times: Option<&dyn Fn(&[ArrayRef]) -> Result<Vec<i64>>> =
                if forget.is_some() { Some(&times) } else { None };
            OperatorState::open(store.clone(), shape, version, times)
        };
        let states: Vec<OperatorState> =
            shapes(spec, partitions).iter().zip(forgets).map(open).collect::<Result<_>>()?;
        let chains = (0..partitions).map(|_| Chain::new(spec.clone()).map(Mutex::new)).collect::<Result<_>>()?;
        let tables = states.iter().map(OperatorState::tables).collect();
        Ok(Operators { passage: Passage { spec: spec.clone(), chains: Arc::new(chains), tables }, states })
    }

    /// For the threads of a batch.
    pub fn passage(&self) -> Passage {
        self.passage.clone()
    }

    /// How many partitions there are.
    pub fn partitions(&self) -> usize {
        self.passage.chains.len()
    }

    /// See [`OperatorState::keep_schema`].
    pub fn keep_schemas(&mut self) -> Result<()> {
        self.states.iter_mut().try_for_each(OperatorState::keep_schema)
    }

    /// Keeps what batch `n` changed. Answers the length of the files.
    pub fn commit(&mut self, n: u64, changed: &[Changed], keep_from: u64) -> Result<u64> {
        let mut bytes = 0;
        for (state, changed) in self.states.iter_mut().zip(changed) {
            bytes += state.commit(n, &changed.upserts, &changed.deletes)?;
            state.snapshot_if_due(n, keep_from);
        }
        Ok(bytes)
    }

    /// Rows that are remembered.
    pub fn rows(&self) -> u64 {
        self.states.iter().map(OperatorState::rows).sum()
    }

    /// Rows and bytes of each operator's state.
    pub fn sizes(&self) -> Vec<(u64, u64)> {
        self.states.iter().map(|state| (state.rows(), state.memory())).collect()
    }

    /// See [`OperatorState::take_notices`].
    pub fn take_notices(&mut self) -> Vec<String> {
        self.states.iter_mut().flat_map(OperatorState::take_notices).collect()
    }

    /// `SHOW STATE`: operator, partition, rows, bytes.
    pub fn state_rows(&self) -> Vec<(String, usize, u64, u64)> {
        let of = |(name, state): (&str, &OperatorState)| -> Vec<(String, usize, u64, u64)> {
            let one = |(n, table): (usize, &Mutex<StateTable>)| {
                let table = lock(table);
                (name.to_string(), n, table.len() as u64, table.memory() as u64)
            };
            state.partitions().iter().enumerate().map(one).collect()
        };
        self.passage.spec.names().zip(&self.states).flat_map(of).collect()
    }
}

impl Operators {
    /// What the operators remember, in the order of their keys.
    pub fn contents(&self) -> Result<StateContents> {
        let shapes = shapes(&self.passage.spec, 1);
        let of = |((name, state), shape): ((&str, &OperatorState), Shape)| {
            let mut pieces = Vec::new();
            for table in state.partitions() {
                let table = lock(table);
                let slots = table.slots();
                if !slots.is_empty() {
                    let columns = table.key_columns(&slots)?.into_iter().chain(table.values(&slots)?).collect();
                    let options = RecordBatchOptions::new().with_row_count(Some(slots.len()));
                    let rows = RecordBatch::try_new_with_options(shape.rows.clone(), columns, &options);
                    pieces.push(rows.map_err(|e| Error::internal(e.to_string()))?);
                }
            }
            let rows = match key_order(&shape.codec, shape.keys.fields().len(), &pieces)? {
                Some((all, order)) => crate::state::select_rows(&all, order)?,
                None => RecordBatch::new_empty(shape.rows.clone()),
            };
            Ok((name.to_string(), rows))
        };
        self.passage.spec.names().zip(&self.states).zip(shapes).map(of).collect()
    }
}

impl Passage {
    /// Hands rows of the fragment to the partitions of their groups, another one first for each sender.
    pub fn push(&self, from: usize, rows: RecordBatch, info: &BatchInfo) -> Result<()> {
        let width = self.spec.aggregate.keys.len();
        let keys = Arc::new(self.spec.codec.encode(&rows.columns()[..width], rows.num_rows())?);
        let count = self.chains.len();
        let mut delta = KeyedDelta { rows, keys, select: None };
        if count == 1 {
            return lock(&self.chains[0]).push(&delta, info, &mut self.lock_states(0));
        }
        let mut parts = split(&delta.keys, count);
        for n in (0..count).map(|n| (n + from) % count) {
            if parts[n].is_empty() {
                continue;
            }
            delta.select = Some(std::mem::take(&mut parts[n]));
            lock(&self.chains[n]).push(&delta, info, &mut self.lock_states(n))?;
        }
        Ok(())
    }

    /// Ends the batch in every partition; side by side where there was much to do.
    pub fn finish(&self, info: &BatchInfo, parallel: bool) -> Result<Ended> {
        let one = |n: usize| lock(&self.chains[n]).finish(info, &mut self.lock_states(n));
        let partitions = 0..self.chains.len();
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
                changed.upserts.append(&mut output.upserts);
                changed.deletes.append(&mut output.deletes);
                changed.updated += output.updated;
                changed.removed += output.removed;
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

/// What the operators' states are made of.
pub(super) fn shapes(spec: &Arc<ChainSpec>, partitions: usize) -> Vec<Shape> {
    let aggregate = &spec.aggregate;
    let values: Fields = aggregate.states.iter().flatten().cloned().collect();
    let version = |f: &Arc<AggregateFunctionExpr>| {
        let engine = datafusion::DATAFUSION_VERSION.split('.').next().unwrap_or_default();
        format!("{} of DataFusion {engine}", f.fun().name())
    };
    let functions: BTreeMap<String, String> =
        aggregate.names.iter().cloned().zip(aggregate.functions.iter().map(version)).collect();
    let first = Shape {
        rows: aggregate.state_schema.clone(),
        keys: aggregate.key_schema.clone(),
        codec: spec.codec.clone(),
        stored: StateSchema::new(&aggregate.name, aggregate.key_schema.fields(), &values, functions)
            .made_by(aggregate.casts.clone()),
        partitions,
        spread: None,
    };
    // What belongs to a group lies where the group lies.
    let spread = |members| Some(Spread { codec: spec.codec.clone(), columns: aggregate.keys.len(), members });
    let elements = spec.elements().map(|(elements, codec)| {
        let (keys, values) = (elements.keys.fields(), &elements.rows.fields()[elements.keys.fields().len()..]);
        Shape {
            rows: elements.rows.clone(),
            keys: elements.keys.clone(),
            codec: codec.clone(),
            stored: StateSchema::new(&elements.name, keys, &values.iter().cloned().collect(), BTreeMap::new()),
            partitions,
            spread: spread(true),
        }
    });
    let distinct = spec.distinct.iter().map(|(distinct, codec)| Shape {
        rows: distinct.keys.clone(),
        keys: distinct.keys.clone(),
        codec: codec.clone(),
        stored: StateSchema::new(&distinct.name, distinct.keys.fields(), Schema::empty().fields(), BTreeMap::new()),
        partitions,
        spread: spread(false),
    });
    std::iter::once(first).chain(elements).chain(distinct).collect()
}
