//! The operators of one partition, one behind the other: an aggregate, and in front of it a distinct for each argument
//! whose values count once.
//!
//! ```text
//! rows of the fragment ─────────────→ aggregate ─→ result
//!          └──→ distinct ─ new values ───↗
//! ```
//! All of them lie in the partition of the aggregate's group, so nothing is exchanged between partitions.

use std::ops::DerefMut;
use std::sync::Arc;

use super::{Aggregate, AggregateSpec, BatchInfo, Distinct, DistinctSpec, KeyedDelta, Operator, Output};
use crate::delta::keys::KeyCodec;
use crate::error::Result;
use crate::state::StateTable;

/// What all partitions of a chain share.
pub struct ChainSpec {
    pub aggregate: Arc<AggregateSpec>,
    /// Of the aggregate's keys.
    pub codec: Arc<KeyCodec>,
    /// With the codecs of their keys. Number n is the aggregate's input n + 1.
    pub distinct: Vec<(Arc<DistinctSpec>, Arc<KeyCodec>)>,
}

impl ChainSpec {
    /// What the operators are called, the aggregate first: the order of states and outputs everywhere.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.aggregate.name.as_str()).chain(self.distinct.iter().map(|(spec, _)| spec.name.as_str()))
    }

    /// Empty states, one an operator.
    pub fn states(&self) -> Vec<StateTable> {
        let aggregate = &self.aggregate;
        let first = StateTable::new(aggregate.state_schema.clone(), aggregate.keys.len(), self.codec.clone());
        let others = self.distinct.iter().map(|(spec, codec)| {
            let width = spec.keys.fields().len();
            StateTable::new(spec.keys.clone(), width, codec.clone())
        });
        std::iter::once(first).chain(others).collect()
    }
}

/// One partition's operators. See the module's documentation.
pub struct Chain {
    spec: Arc<ChainSpec>,
    aggregate: Aggregate,
    distinct: Vec<Distinct>,
}

impl Chain {
    /// A partition that has seen nothing of any batch.
    pub fn new(spec: Arc<ChainSpec>) -> Result<Self> {
        let aggregate = Aggregate::new(spec.aggregate.clone())?;
        let distinct = spec.distinct.iter().map(|(spec, _)| Distinct::new(spec.clone())).collect();
        Ok(Chain { spec, aggregate, distinct })
    }

    /// Takes some rows of the fragment; `states`: one an operator.
    pub fn push<T>(&mut self, rows: &KeyedDelta, batch: &BatchInfo, states: &mut [T]) -> Result<()>
    where
        T: DerefMut<Target = StateTable>,
    {
        let Some((state, others)) = states.split_first_mut() else { return Ok(()) };
        self.aggregate.push(0, rows, batch, state)?;
        for (distinct, state) in self.distinct.iter_mut().zip(others) {
            distinct.push(0, rows, batch, state)?;
        }
        Ok(())
    }

    /// Ends the batch; answers one output an operator, of which the aggregate's rows are the result.
    pub fn finish<T>(&mut self, batch: &BatchInfo, states: &mut [T]) -> Result<Vec<Output>>
    where
        T: DerefMut<Target = StateTable>,
    {
        let mut outputs = vec![Output::default()];
        let Some((state, others)) = states.split_first_mut() else { return Ok(outputs) };
        let width = self.spec.aggregate.keys.len();
        for (n, (distinct, memory)) in self.distinct.iter_mut().zip(others).enumerate() {
            let mut output = Output::default();
            distinct.finish(batch, memory, &mut output)?;
            for rows in std::mem::take(&mut output.rows) {
                let keys = Arc::new(self.spec.codec.encode(&rows.columns()[..width], rows.num_rows())?);
                self.aggregate.push(n + 1, &KeyedDelta { rows, keys, select: None }, batch, state)?;
            }
            outputs.push(output);
        }
        self.aggregate.finish(batch, state, &mut outputs[0])?;
        Ok(outputs)
    }
}
