//! The operators of one partition, one behind the other: an aggregate, and in front of it a distinct for each argument
//! whose values count once.
//!
//! ```text
//! rows of the fragment ─────────────→ aggregate ─→ result
//!          └──→ distinct ─ new values ───↗
//! ```
//! All of them lie in the partition of the aggregate's group, so nothing is exchanged between partitions.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::datatypes::{FieldRef, Fields, Schema, SchemaRef};
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;

use super::node::{OperatorPart, OperatorSpec, StateSpec};
use super::{Aggregate, AggregateSpec, BatchInfo, Distinct, DistinctSpec, Emit, Feed, KeyedDelta, Operator, Output};
use crate::delta::keys::KeyCodec;
use crate::error::Result;
use crate::state::schema::StateSchema;
use crate::state::{Spread, StateTable};

/// What all partitions of a chain share.
pub struct ChainSpec {
    pub aggregate: Arc<AggregateSpec>,
    /// Of the aggregate's keys.
    pub codec: Arc<KeyCodec>,
    /// With the codecs of their keys. Number n is the aggregate's input n + 1.
    pub distinct: Vec<(Arc<DistinctSpec>, Arc<KeyCodec>)>,
}

impl OperatorSpec for ChainSpec {
    fn output(&self) -> &SchemaRef {
        &self.aggregate.output
    }

    fn key(&self, _input: usize) -> (&Arc<KeyCodec>, usize) {
        self.order()
    }

    fn order(&self) -> (&Arc<KeyCodec>, usize) {
        (&self.codec, self.aggregate.keys.len())
    }

    fn states(&self) -> Vec<StateSpec> {
        let aggregate = &self.aggregate;
        let values: Fields = aggregate.states.iter().flatten().cloned().collect();
        let functions = aggregate.names.iter().cloned().zip(aggregate.functions.iter().map(version)).collect();
        let first = StateSpec {
            rows: aggregate.state_schema.clone(),
            keys: aggregate.key_schema.clone(),
            codec: self.codec.clone(),
            stored: StateSchema::new(&aggregate.name, aggregate.key_schema.fields(), &values, functions),
            spread: None,
            forget: aggregate.forget,
            kind: "stateStoreSave",
            bound: if aggregate.keys.is_empty() { "one row".into() } else { self.bound("one row a group") },
            serves: None,
        };
        let others = self.distinct.iter().enumerate().map(|(n, (distinct, codec))| StateSpec {
            rows: distinct.keys.clone(),
            keys: distinct.keys.clone(),
            codec: codec.clone(),
            stored: StateSchema::new(&distinct.name, distinct.keys.fields(), Schema::empty().fields(), BTreeMap::new()),
            // A group's values lie where the group lies.
            spread: Some(Spread { codec: self.codec.clone(), columns: aggregate.keys.len() }),
            forget: distinct.forget,
            kind: "dedupe",
            bound: match aggregate.keys.is_empty() {
                true => "UNBOUNDED: one row a value, kept for ever".into(),
                false => self.bound("one row a value of a group").replace("sends all of them", "sends all groups"),
            },
            serves: Some(format!("hands each value of a group on once, for {}", self.readers(n).join(", "))),
        });
        std::iter::once(first).chain(others).collect()
    }

    fn part(self: Arc<Self>) -> Result<Box<dyn OperatorPart>> {
        Ok(Box::new(Chain::new(self)?))
    }

    fn describe(&self) -> Vec<String> {
        let spec = &self.aggregate;
        let keys: Vec<&str> = spec.keys.iter().map(|f| bare(f.name())).collect();
        let emit = match spec.emit {
            Emit::Closed => "each group once, when the watermark closes it",
            Emit::Changed { old: true } => "changed groups, old row and new row",
            Emit::Changed { old: false } => "changed groups",
            Emit::All => "all groups in every batch",
        };
        let what = format!("keys [{}], functions [{}]; sends {emit}", keys.join(", "), spec.names.join(", "));
        std::iter::once(what).chain(self.grows_within_groups()).collect()
    }
}

/// A key's name without its number.
pub(super) fn bare(field: &str) -> &str {
    field.split_once(':').map_or(field, |(_, name)| name)
}

fn version(function: &Arc<AggregateFunctionExpr>) -> String {
    let engine = datafusion::DATAFUSION_VERSION.split('.').next().unwrap_or_default();
    format!("{} of DataFusion {engine}", function.fun().name())
}

impl ChainSpec {
    fn bound(&self, row: &str) -> String {
        let spec = &self.aggregate;
        match spec.forget {
            Some(by) => format!("{row}, until the watermark reaches the end of {}", bare(spec.keys[by.column].name())),
            None if spec.emit == Emit::All => format!("{row}, kept for ever (COMPLETE sends all of them)"),
            None => format!("UNBOUNDED: {row}, kept for ever, as no key is a watermarked time"),
        }
    }

    /// The functions that read distinct number `n`.
    fn readers(&self, n: usize) -> Vec<&str> {
        let spec = &self.aggregate;
        (0..spec.names.len())
            .filter(|at| spec.feeds[*at] == Feed::Values(n + 1))
            .map(|at| spec.names[at].as_str())
            .collect()
    }

    /// Functions that remember every value of a group, in the group's one row: then a batch costs more than what it changed.
    fn grows_within_groups(&self) -> Option<String> {
        let spec = &self.aggregate;
        // The lists of approximate functions are sketches, of a size that does not grow.
        let holds_values = |n: &usize| {
            let lists = |states: &Vec<FieldRef>| states.iter().any(|state| state.data_type().is_list());
            lists(&spec.states[*n]) && !spec.functions[*n].fun().name().starts_with("approx_")
        };
        let growing: Vec<&str> = (0..spec.names.len()).filter(holds_values).map(|n| spec.names[n].as_str()).collect();
        (!growing.is_empty()).then(|| {
            format!(
                "{} keeps every value of a group: a batch costs as much as the groups that it touches hold",
                growing.join(", ")
            )
        })
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
}

impl OperatorPart for Chain {
    fn push(
        &mut self,
        _input: usize,
        rows: &KeyedDelta,
        batch: &BatchInfo,
        states: &mut [&mut StateTable],
    ) -> Result<()> {
        let Some((state, others)) = states.split_first_mut() else { return Ok(()) };
        self.aggregate.push(0, rows, batch, state)?;
        for (distinct, state) in self.distinct.iter_mut().zip(others) {
            distinct.push(0, rows, batch, state)?;
        }
        Ok(())
    }

    fn finish(&mut self, batch: &BatchInfo, states: &mut [&mut StateTable]) -> Result<Vec<Output>> {
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
