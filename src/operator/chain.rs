//! The operators of one partition, one behind the other: an aggregate, and in front of it a distinct for each argument
//! whose values count once.
//!
//! ```text
//! rows of the fragment ─────────────→ aggregate ─→ result
//!          └──→ distinct ─ new values ───↗
//! ```
//! All of them lie in the partition of the aggregate's group, so nothing is exchanged between partitions.

use std::collections::BTreeMap;
use std::slice::from_mut;
use std::sync::Arc;

use arrow::datatypes::{FieldRef, Fields, Schema, SchemaRef};
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;

use super::node::{OperatorPart, OperatorSpec, Role, StateSpec};
use super::{
    Aggregate, AggregateSpec, BatchInfo, Distinct, DistinctSpec, ElementsSpec, Emit, Feed, Keep, KeyedDelta, Output,
};
use crate::delta::keys::KeyCodec;
use crate::error::{Error, Result};
use crate::state::schema::StateSchema;
use crate::state::{Asked, Spread, StateTable};

/// What all partitions of a chain share.
///
/// States and outputs have one order everywhere: the aggregate's groups, its elements, then each distinct.
pub struct ChainSpec {
    pub aggregate: Arc<AggregateSpec>,
    /// Of the aggregate's keys.
    pub codec: Arc<KeyCodec>,
    /// The codecs of the keys of [`AggregateSpec::elements`].
    pub elements: Vec<Arc<KeyCodec>>,
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
            stored: StateSchema::new(&aggregate.name, aggregate.key_schema.fields(), &values, functions)
                .made_by(aggregate.casts.clone()),
            spread: None,
            forget: aggregate.forget,
            kind: "stateStoreSave",
            bound: if aggregate.keys.is_empty() { "one row".into() } else { self.bound("one row a group") },
            role: Role::Own,
        };
        // What belongs to a group lies where the group lies.
        let spread = |asked| Some(Spread { codec: self.codec.clone(), columns: aggregate.keys.len(), asked });
        let elements = self.elements().enumerate().map(|(n, (elements, codec))| {
            let (keys, values) = (elements.keys.fields(), &elements.rows.fields()[elements.keys.fields().len()..]);
            StateSpec {
                rows: elements.rows.clone(),
                keys: elements.keys.clone(),
                codec: codec.clone(),
                stored: StateSchema::new(&elements.name, keys, &values.iter().cloned().collect(), BTreeMap::new()),
                spread: spread(Asked::Group),
                forget: elements.forget,
                kind: "stateStoreSave",
                bound: match elements.keep {
                    Keep::InOrder => self.bound_in_group("one row an element", ""),
                    Keep::Counted { once: false } => {
                        self.bound_in_group("one row an element", ", equal ones counted in one")
                    }
                    Keep::Counted { once: true } => self.bound_in_group("one row an element", ", equal ones once"),
                    Keep::Signed => self.bound_in_group("one row a value", ", with how often it is there"),
                },
                role: Role::Part(self.fed_by(Feed::Elements(n))),
            }
        });
        let distinct = self.distinct.iter().enumerate().map(|(n, (distinct, codec))| StateSpec {
            rows: distinct.keys.clone(),
            keys: distinct.keys.clone(),
            codec: codec.clone(),
            stored: StateSchema::new(&distinct.name, distinct.keys.fields(), Schema::empty().fields(), BTreeMap::new()),
            spread: spread(Asked::Key),
            forget: distinct.forget,
            kind: "dedupe",
            bound: self.bound_in_group("one row a value", ""),
            role: Role::InFront(format!(
                "hands each value of a group on once, for {}",
                self.fed_by(Feed::Values(n + 1))
            )),
        });
        std::iter::once(first).chain(elements).chain(distinct).collect()
    }

    fn part(self: Arc<Self>) -> Result<Box<dyn OperatorPart>> {
        Ok(Box::new(Chain::new(self)?))
    }

    fn describe(&self) -> Vec<String> {
        let spec = &self.aggregate;
        let keys: Vec<&str> = spec.keys.iter().map(|f| bare(f.name())).collect();
        let emit = sends(spec.emit, "group");
        let what = format!("keys [{}], functions [{}]; sends {emit}", keys.join(", "), spec.names.join(", "));
        std::iter::once(what).chain(growing(spec, "group")).chain(self.computed_anew()).collect()
    }
}

/// When rows of groups, or whatever they are, are handed out: for EXPLAIN.
pub(super) fn sends(emit: Emit, what: &str) -> String {
    match emit {
        Emit::Closed => format!("each {what} once, when the watermark closes it"),
        Emit::Changed { old: true } => format!("changed {what}s, old row and new row"),
        Emit::Changed { old: false } => format!("changed {what}s"),
        Emit::All => format!("all {what}s in every batch"),
    }
}

/// Functions that remember every value of a group, in the group's one row: then a batch costs more than what it changed.
pub(super) fn growing(spec: &AggregateSpec, what: &str) -> Option<String> {
    // The lists of approximate functions are sketches, of a size that does not grow; nth_value keeps n values.
    let holds_values = |n: &usize| {
        let lists = |states: &Vec<FieldRef>| states.iter().any(|state| state.data_type().is_list());
        let function = spec.functions[*n].fun().name();
        lists(&spec.states[*n]) && !function.starts_with("approx_") && function != "nth_value"
    };
    let growing: Vec<&str> = (0..spec.names.len()).filter(holds_values).map(|n| spec.names[n].as_str()).collect();
    (!growing.is_empty()).then(|| {
        format!(
            "{} keeps every value of a {what}: a batch costs as much as the {what}s that it touches hold",
            growing.join(", ")
        )
    })
}

/// A key's name without its number.
pub(super) fn bare(field: &str) -> &str {
    field.split_once(':').map_or(field, |(_, name)| name)
}

/// What computes a function's states: others can't be put together with them.
pub(super) fn version(function: &Arc<AggregateFunctionExpr>) -> String {
    let engine = datafusion::DATAFUSION_VERSION.split('.').next().unwrap_or_default();
    format!("{} of DataFusion {engine}", function.fun().name())
}

impl ChainSpec {
    fn bound(&self, row: &str) -> String {
        let spec = &self.aggregate;
        match spec.forget {
            Some(by) => format!("{row}, until the watermark reaches {}", by.end_of(&spec.keys[by.column])),
            None if spec.emit == Emit::All => format!("{row}, kept for ever (COMPLETE sends all of them)"),
            None => format!("UNBOUNDED: {row}, kept for ever, as no key is a watermarked time"),
        }
    }

    fn bound_in_group(&self, row: &str, which: &str) -> String {
        match self.aggregate.keys.is_empty() {
            true => format!("UNBOUNDED: {row}{which}, kept for ever"),
            false => self.bound(&format!("{row} of a group{which}")).replace("sends all of them", "sends all groups"),
        }
    }

    /// The functions that are fed so.
    fn fed_by(&self, feed: Feed) -> String {
        let names = self.aggregate.names.iter().zip(&self.aggregate.feeds).filter(|(_, is)| **is == feed);
        names.map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ")
    }

    /// What the aggregate remembers element by element, with the codecs of the keys.
    pub fn elements(&self) -> impl Iterator<Item = (&Arc<ElementsSpec>, &Arc<KeyCodec>)> {
        self.aggregate.elements.iter().zip(&self.elements)
    }

    /// Functions that read every value of a group that a batch has touched.
    fn computed_anew(&self) -> Option<String> {
        let elements = self.aggregate.elements.iter().enumerate();
        let signed = elements.filter(|(_, elements)| elements.keep == Keep::Signed);
        let functions: Vec<String> = signed.map(|(n, _)| self.fed_by(Feed::Elements(n))).collect();
        (!functions.is_empty()).then(|| {
            format!(
                "{}: as rows are taken back, computed anew of all values of the groups that a batch touches",
                functions.join(", ")
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

impl OperatorPart for Chain {
    fn push(
        &mut self,
        _input: usize,
        rows: &KeyedDelta,
        batch: &BatchInfo,
        states: &mut [&mut StateTable],
    ) -> Result<()> {
        let (own, others) = self.split(states)?;
        self.aggregate.push(0, rows, batch, own)?;
        for (distinct, state) in self.distinct.iter_mut().zip(others) {
            distinct.push(0, rows, batch, from_mut(state))?;
        }
        Ok(())
    }

    fn finish(&mut self, batch: &BatchInfo, states: &mut [&mut StateTable]) -> Result<Vec<Output>> {
        let (own, others) = self.split(states)?;
        let (width, mut behind) = (self.spec.aggregate.keys.len(), Vec::new());
        for (n, (distinct, memory)) in self.distinct.iter_mut().zip(others).enumerate() {
            for mut output in distinct.finish(batch, from_mut(memory))? {
                for rows in std::mem::take(&mut output.rows) {
                    let keys = Arc::new(self.spec.codec.encode(&rows.columns()[..width], rows.num_rows())?);
                    self.aggregate.push(n + 1, &KeyedDelta { rows, keys, select: None }, batch, own)?;
                }
                behind.push(output);
            }
        }
        let mut outputs = self.aggregate.finish(batch, own)?;
        outputs.append(&mut behind);
        Ok(outputs)
    }
}
