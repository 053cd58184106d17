//! The operators of one partition, one behind the other: an aggregate, and in front of it a distinct for each argument
//! whose values count once.
//!
//! ```text
//! rows of the fragment ─────────────→ aggregate ─→ result
//!          └──→ distinct ─ new values ───↗
//! ```
//! All of them lie in the partition of the aggregate's group, so nothing is exchanged between partitions.

use std::ops::DerefMut;
use std::slice::from_mut;
use std::sync::Arc;

use super::{Aggregate, AggregateSpec, BatchInfo, Distinct, DistinctSpec, ElementsSpec, KeyedDelta, Operator, Output};
use crate::delta::keys::KeyCodec;
use crate::error::{Error, Result};
use crate::state::StateTable;

/// What all partitions of a chain share.
///
/// States, outputs and names have one order everywhere: the aggregate's groups, its elements, then each distinct.
pub struct ChainSpec {
    pub aggregate: Arc<AggregateSpec>,
    /// Of the aggregate's keys.
    pub codec: Arc<KeyCodec>,
    /// The codecs of the keys of [`AggregateSpec::elements`].
    pub elements: Vec<Arc<KeyCodec>>,
    /// With the codecs of their keys. Number n is the aggregate's input n + 1.
    pub distinct: Vec<(Arc<DistinctSpec>, Arc<KeyCodec>)>,
}

impl ChainSpec {
    /// What is remembered, by name.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let elements = self.elements().map(|(spec, _)| spec.name.as_str());
        let distinct = self.distinct.iter().map(|(spec, _)| spec.name.as_str());
        std::iter::once(self.aggregate.name.as_str()).chain(elements).chain(distinct)
    }

    /// Empty states, one a name.
    pub fn states(&self) -> Vec<StateTable> {
        let aggregate = &self.aggregate;
        let width = aggregate.keys.len();
        let first = StateTable::new(aggregate.state_schema.clone(), width, self.codec.clone());
        let elements = self.elements().map(|(spec, codec)| {
            let table = StateTable::new(spec.rows.clone(), spec.keys.fields().len(), codec.clone());
            table.with_members(self.codec.clone(), width)
        });
        let distinct = self.distinct.iter().map(|(spec, codec)| {
            let width = spec.keys.fields().len();
            StateTable::new(spec.keys.clone(), width, codec.clone())
        });
        std::iter::once(first).chain(elements).chain(distinct).collect()
    }

    /// What the aggregate remembers element by element, with the codecs of the keys.
    pub fn elements(&self) -> impl Iterator<Item = (&Arc<ElementsSpec>, &Arc<KeyCodec>)> {
        self.aggregate.elements.iter().zip(&self.elements)
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

    /// Takes some rows of the fragment; `states`: one a name.
    pub fn push<T>(&mut self, rows: &KeyedDelta, batch: &BatchInfo, states: &mut [T]) -> Result<()>
    where
        T: DerefMut<Target = StateTable>,
    {
        let mut tables = tables(states);
        let (own, others) = self.split(&mut tables)?;
        self.aggregate.push(0, rows, batch, own)?;
        for (distinct, state) in self.distinct.iter_mut().zip(others) {
            distinct.push(0, rows, batch, from_mut(state))?;
        }
        Ok(())
    }

    /// Ends the batch; answers one output a name, of which the aggregate's rows are the result.
    pub fn finish<T>(&mut self, batch: &BatchInfo, states: &mut [T]) -> Result<Vec<Output>>
    where
        T: DerefMut<Target = StateTable>,
    {
        let mut tables = tables(states);
        let mut outputs: Vec<Output> = tables.iter().map(|_| Output::default()).collect();
        let (own, others) = self.split(&mut tables)?;
        let (own_outputs, other_outputs) = self.split(&mut outputs)?;
        let width = self.spec.aggregate.keys.len();
        for (n, ((distinct, memory), output)) in self.distinct.iter_mut().zip(others).zip(other_outputs).enumerate() {
            distinct.finish(batch, from_mut(memory), from_mut(output))?;
            for rows in std::mem::take(&mut output.rows) {
                let keys = Arc::new(self.spec.codec.encode(&rows.columns()[..width], rows.num_rows())?);
                self.aggregate.push(n + 1, &KeyedDelta { rows, keys, select: None }, batch, own)?;
            }
        }
        self.aggregate.finish(batch, own, own_outputs)?;
        Ok(outputs)
    }

    /// The aggregate's part, and the others'.
    fn split<'a, T>(&self, all: &'a mut [T]) -> Result<(&'a mut [T], &'a mut [T])> {
        let own = 1 + self.spec.aggregate.elements.len();
        let wrong = || Error::internal("operators and what they remember differ in number");
        if all.len() != own + self.distinct.len() {
            Err(wrong())
        } else {
            all.split_at_mut_checked(own).ok_or_else(wrong)
        }
    }
}

fn tables<T: DerefMut<Target = StateTable>>(states: &mut [T]) -> Vec<&mut StateTable> {
    states.iter_mut().map(|state| &mut **state).collect()
}
