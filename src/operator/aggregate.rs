//! Aggregate: one output row for each group.
//!
//! RELATION   γ keys, f₁ … fₙ
//! REMEMBERS  group key → the partial states of f₁ … fₙ; or all elements of the group, in a table of their own
//! ON CHANGE  merge the partial states of the group, add its new values; emit its new row (and take back the old one)
//! FORGETS    groups whose time is at or before the watermark; in APPEND emits them then; in COMPLETE never
//! REFUSES    input that retracts
//!
//! ```text
//! in    (a,3) (a,4)        (b,1)      partial states, a row or more a group
//! out   (a,7)              (b,1)
//! ```
//! Input 0 are partial states. A DISTINCT function gets plain values instead, each once, by an input of its argument's own.
//! A function that needs all values of a group has no state: what the fragment hands out of it are the batch's
//! [elements](super::elements).

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, UInt32Array, new_null_array};
use arrow::compute::{concat, take};
use arrow::datatypes::{DataType, FieldRef, Int64Type, SchemaRef};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::{EmitTo, GroupsAccumulator};
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion_functions_aggregate_common::aggregate::groups_accumulator::GroupsAccumulatorAdapter;

use super::elements::{Elements, ElementsSpec};
use super::forget::ForgetBy;
use super::met_keys::MetKeys;
use super::node::OperatorPart;
use super::result::Memory;
use super::{BatchInfo, KeyedDelta, Output, first};
use crate::error::{Error, Result};
use crate::state::{NO_NUMBER, Slot, StateTable};

/// When rows of groups are handed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Emit {
    /// Once, when the watermark closes the group (APPEND).
    Closed,
    /// Whenever the group changed (UPDATE); with `old`, the row it replaces too.
    Changed { old: bool },
    /// All groups in every batch (COMPLETE).
    All,
}

/// What a function is fed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feed {
    /// Partial states: the columns of input 0 from this one on.
    States(usize),
    /// The values of this input, behind the group's keys.
    Values(usize),
    /// Everything that is remembered as these elements.
    Elements(usize),
}

/// What all partitions of an aggregate share.
pub struct AggregateSpec {
    pub name: String,
    pub keys: Vec<FieldRef>,
    pub functions: Vec<Arc<AggregateFunctionExpr>>,
    /// What each function computes, as its state is known again by.
    pub names: Vec<String>,
    /// A function's result depends on the order of its input: what is remembered comes first.
    pub order_matters: bool,
    /// The fields of each function's partial state; none for those of elements.
    pub states: Vec<Vec<FieldRef>>,
    /// Where rows are taken back: the column among the states that says how many rows a group has. Without any it is gone.
    pub rows: Option<usize>,
    /// What each function is fed with.
    pub feeds: Vec<Feed>,
    /// The types of the values that the inputs from 1 on bring.
    pub inputs: Vec<DataType>,
    /// What is remembered element by element; each in a table of its own, behind that of the groups.
    pub elements: Vec<Arc<ElementsSpec>>,
    /// Keys, then one column a function.
    pub output: SchemaRef,
    /// Keys, then the states' fields.
    pub state_schema: SchemaRef,
    /// The keys alone.
    pub key_schema: SchemaRef,
    pub emit: Emit,
    pub forget: Option<ForgetBy>,
    /// The casts in keys and functions, which names don't show.
    pub casts: Option<String>,
}

impl AggregateSpec {
    fn accumulators(&self) -> Result<Vec<Box<dyn GroupsAccumulator>>> {
        Ok(self.functions.iter().map(|function| self.accumulator(function)).collect::<Result<_, DataFusionError>>()?)
    }

    /// An accumulator whose partial states are those that the fragment makes: without keys DataFusion takes another kind
    /// than with them, and some functions (`corr`) have states of another meaning there.
    ///
    /// # Errors
    /// Of DataFusion, for a type that the function can't take.
    pub fn accumulator(
        &self,
        function: &Arc<AggregateFunctionExpr>,
    ) -> Result<Box<dyn GroupsAccumulator>, DataFusionError> {
        if !self.keys.is_empty() && function.groups_accumulator_supported() {
            return function.create_groups_accumulator();
        }
        // The adapter makes its accumulators when groups come: one that can't be made is to be heard of before.
        function.create_accumulator()?;
        let function = function.clone();
        Ok(Box::new(GroupsAccumulatorAdapter::new(move || function.create_accumulator())))
    }

    /// Whether column `n` of input 0, behind the keys, is merged, and not another operator's to read.
    fn merges(&self, n: usize) -> bool {
        let is_in = |(feed, fields): (&Feed, &Vec<FieldRef>)| match feed {
            Feed::States(first) => (*first..*first + fields.len()).contains(&n),
            Feed::Values(_) | Feed::Elements(_) => false,
        };
        self.feeds.iter().zip(&self.states).any(is_in)
    }
}

/// The groups that a batch touched and that are there: their numbers in the batch, keys and states.
struct Written {
    slots: Vec<Slot>,
    numbers: Vec<u32>,
    rows: RecordBatch,
}

/// One partition's work on one batch. See the module's documentation.
pub struct Aggregate {
    spec: Arc<AggregateSpec>,
    accumulators: Vec<Box<dyn GroupsAccumulator>>,
    /// The slots this batch touched; a group's number in the batch is its index here.
    touched: Vec<Slot>,
    keys: MetKeys,
    elements: Vec<Elements>,
    /// Values of inputs behind the first, with their groups' numbers.
    values: Vec<(Feed, ArrayRef, Vec<usize>)>,
    /// The slot and the group of each row at hand.
    slots: Vec<Slot>,
    groups: Vec<usize>,
}

impl Aggregate {
    /// A partition that has seen nothing of any batch.
    pub fn new(spec: Arc<AggregateSpec>) -> Result<Self> {
        let accumulators = spec.accumulators()?;
        let elements = spec.elements.iter().cloned().map(Elements::new).collect();
        let (touched, keys, values, slots, groups) = Default::default();
        Ok(Aggregate { spec, accumulators, touched, keys, elements, values, slots, groups })
    }

    /// Gives each row its group's number in the batch; new ones are appended to `touched`, and their keys kept.
    fn number_groups(&mut self, changes: &KeyedDelta, state: &mut StateTable) -> Result<()> {
        self.groups.clear();
        self.slots.clear();
        let select = changes.select.as_deref();
        state.find_or_insert_all(&changes.keys, select, changes.rows.num_rows(), &mut self.slots);
        let mut new = Vec::new();
        for (at, slot) in self.slots.iter().enumerate() {
            let number = state.number(*slot);
            if *number == NO_NUMBER {
                *number = self.touched.len() as u32;
                self.touched.push(*slot);
                new.push(select.map_or(at as u32, |select| select[at]));
            }
            self.groups.push(*number as usize);
        }
        self.keys.keep(&changes.rows.columns()[..self.spec.keys.len()], new, state)
    }

    /// Merges partial states of input 0, and what is remembered of the groups that the batch met with them.
    fn merge(&mut self, columns: &[ArrayRef], old: Option<(Vec<usize>, Vec<ArrayRef>)>) -> Result<()> {
        let (groups, total) = (&self.groups, self.touched.len());
        let both: Vec<usize> = match &old {
            Some((olds, _)) if self.spec.order_matters => olds.iter().chain(groups).copied().collect(),
            _ => Vec::new(),
        };
        let mut at = 0;
        for ((accumulator, fields), feed) in self.accumulators.iter_mut().zip(&self.spec.states).zip(&self.spec.feeds) {
            let remembered = at..at + fields.len();
            at += fields.len();
            let Feed::States(first) = *feed else { continue };
            let new = &columns[first..first + fields.len()];
            // Accumulators take it that every group up to the number they are told has a row in the call, or had one before:
            // the new rows name all new groups, the remembered ones don't.
            match &old {
                None => accumulator.merge_batch(new, groups, total)?,
                Some((_, old)) if self.spec.order_matters => {
                    let both_of = |(old, new): (&ArrayRef, &ArrayRef)| concat(&[old.as_ref(), new.as_ref()]);
                    let columns = old[remembered].iter().zip(new).map(both_of);
                    let columns = columns.collect::<std::result::Result<Vec<_>, _>>().map_err(Error::from)?;
                    accumulator.merge_batch(&columns, &both, total)?;
                }
                Some((olds, old)) => {
                    accumulator.merge_batch(new, groups, total)?;
                    accumulator.merge_batch(&old[remembered], olds, total)?;
                }
            }
        }
        Ok(())
    }

    /// Gives the functions that are fed with values what their inputs have brought, and what is remembered.
    fn feed(&mut self, state: &StateTable) -> Result<()> {
        if self.spec.inputs.is_empty() || self.touched.is_empty() {
            return Ok(());
        }
        let total = self.touched.len();
        let old = self.remembered(0, state)?;
        let came = std::mem::take(&mut self.values);
        for (n, data_type) in self.spec.inputs.iter().enumerate() {
            let input = Feed::Values(n + 1);
            let came = || came.iter().filter(|(of, ..)| *of == input);
            // First a NULL for each group, which no function counts: accumulators want groups without values named too.
            let nulls = new_null_array(data_type, total);
            let values = std::iter::once(nulls.as_ref()).chain(came().map(|(_, values, _)| values.as_ref()));
            let values = concat(&values.collect::<Vec<_>>()).map_err(Error::from)?;
            let groups: Vec<usize> = (0..total).chain(came().flat_map(|(.., groups)| groups.iter().copied())).collect();
            let mut at = 0;
            for ((accumulator, fields), feed) in
                self.accumulators.iter_mut().zip(&self.spec.states).zip(&self.spec.feeds)
            {
                let remembered = at..at + fields.len();
                at += fields.len();
                if *feed != input {
                    continue;
                }
                accumulator.update_batch(std::slice::from_ref(&values), &groups, None, total)?;
                if let Some((olds, old)) = &old {
                    accumulator.merge_batch(&old[remembered], olds, total)?;
                }
            }
        }
        Ok(())
    }

    /// What the groups that the batch touched first in this push were before: their numbers and states.
    fn remembered(&self, first: usize, state: &StateTable) -> Result<Option<(Vec<usize>, Vec<ArrayRef>)>> {
        let (mut slots, mut groups) = (Vec::new(), Vec::new());
        for (number, slot) in self.touched.iter().enumerate().skip(first) {
            if state.has_values(*slot) {
                slots.push(*slot);
                groups.push(number);
            }
        }
        if slots.is_empty() { Ok(None) } else { Ok(Some((groups, state.values(&slots)?))) }
    }

    /// Writes the merged states of the groups that there are, and forgets those that are there no more.
    fn write(&mut self, state: &mut StateTable, out: &mut Output) -> Result<Option<Written>> {
        // Some functions (`first_value … ORDER BY`) can't give the states of no group.
        if self.touched.is_empty() {
            return Ok(None);
        }
        let mut slots = std::mem::take(&mut self.touched);
        let mut keys = self.keys.columns(&slots, state)?;
        let mut states = Vec::new();
        let with_states = self.accumulators.iter_mut().zip(&self.spec.states).filter(|(_, fields)| !fields.is_empty());
        for (accumulator, fields) in with_states {
            let columns = accumulator.state(EmitTo::All).map_err(Error::from)?;
            for (column, field) in columns.into_iter().zip(fields) {
                states.push(as_declared(column, field)?);
            }
        }
        self.accumulators = self.spec.accumulators()?;
        let mut numbers: Vec<u32> = (0..slots.len() as u32).collect();
        // Without keys there is one group, of no rows too.
        if let Some(rows) = self.spec.rows.filter(|_| !keys.is_empty()) {
            let counts = states[rows].as_primitive::<Int64Type>().clone();
            let is_there = |n: &u32| counts.is_valid(*n as usize) && counts.value(*n as usize) != 0;
            let (there, gone): (Vec<u32>, Vec<u32>) = numbers.iter().partition(|n| is_there(n));
            if !gone.is_empty() {
                let at = UInt32Array::from(there.clone());
                let taken = |column: &ArrayRef| take(column, &at, None).map_err(Error::from);
                keys = keys.iter().map(taken).collect::<Result<_>>()?;
                states = states.iter().map(taken).collect::<Result<_>>()?;
                let gone: Vec<Slot> = gone.iter().map(|n| slots[*n as usize]).collect();
                let (known, new): (Vec<Slot>, Vec<Slot>) = gone.iter().partition(|slot| state.has_values(**slot));
                slots = there.iter().map(|n| slots[*n as usize]).collect();
                numbers = there;
                state.release(&new);
                out.forgot(state.forget(&known, &self.spec.key_schema)?);
            }
        }
        if slots.is_empty() {
            return Ok(None);
        }
        let times = self.spec.forget.map(|by| by.times(&keys)).transpose()?;
        out.updated += slots.len() as u64;
        let rows = state.write(slots.clone(), keys, states, times.as_deref())?;
        out.upserts.push(rows.clone());
        Ok(Some(Written { slots, numbers, rows }))
    }

    fn emit(&self, slots: &[Slot], memory: &Memory<'_>, rows: &mut Vec<RecordBatch>) -> Result<()> {
        if !slots.is_empty() {
            let (keys, states) = (memory.groups.key_columns(slots)?, memory.groups.values(slots)?);
            rows.push(self.spec.result(slots, keys, &states, memory)?);
        }
        Ok(())
    }
}

impl OperatorPart for Aggregate {
    fn push(
        &mut self,
        input: usize,
        changes: &KeyedDelta,
        _batch: &BatchInfo,
        states: &mut [&mut StateTable],
    ) -> Result<()> {
        let (state, _) = first(states)?;
        let known = self.touched.len();
        self.number_groups(changes, state)?;
        let columns = &changes.rows.columns()[self.spec.keys.len()..];
        let columns = match &changes.select {
            None => columns.to_vec(),
            Some(rows) => {
                let rows = UInt32Array::from(rows.clone());
                let one = |(n, column): (usize, &ArrayRef)| match input > 0 || self.spec.merges(n) {
                    true => take(column, &rows, None),
                    false => Ok(column.clone()),
                };
                columns.iter().enumerate().map(one).collect::<Result<_, _>>().map_err(Error::from)?
            }
        };
        if input == 0 {
            self.elements.iter_mut().try_for_each(|elements| elements.push(changes))?;
            let old = self.remembered(known, state)?;
            return self.merge(&columns, old);
        }
        for column in columns {
            self.values.push((Feed::Values(input), column, std::mem::take(&mut self.groups)));
        }
        Ok(())
    }

    fn finish(&mut self, batch: &BatchInfo, states: &mut [&mut StateTable]) -> Result<Vec<Output>> {
        let mut outputs: Vec<Output> = states.iter().map(|_| Output::default()).collect();
        let ((groups, elements), (out, outs)) = (first(states)?, first(&mut outputs)?);
        if self.spec.emit == (Emit::Changed { old: true }) {
            let had: Vec<u32> =
                (0..self.touched.len() as u32).filter(|n| groups.has_values(self.touched[*n as usize])).collect();
            let slots: Vec<Slot> = had.iter().map(|n| self.touched[*n as usize]).collect();
            self.emit(&slots, &Memory { groups, elements }, &mut out.old_rows)?;
            out.old_keys = had;
        }
        for ((held, state), out) in self.elements.iter_mut().zip(elements.iter_mut()).zip(outs.iter_mut()) {
            held.write(state, out)?;
        }
        self.feed(groups)?;
        let written = self.write(groups, out)?;
        if let (Emit::Changed { old }, Some(Written { slots, numbers, rows })) = (self.spec.emit, written) {
            let (keys, states) = rows.columns().split_at(self.spec.keys.len());
            out.rows.push(self.spec.result(&slots, keys.to_vec(), states, &Memory { groups, elements })?);
            if old {
                out.new_keys = numbers;
            }
        }
        if let (Some(by), Some(until)) = (self.spec.forget, ForgetBy::until(batch)) {
            if self.spec.emit == Emit::Closed {
                self.emit(&groups.due(until), &Memory { groups, elements }, &mut out.rows)?;
            }
            by.forget(until, &self.spec.key_schema, groups, out)?;
            for ((held, state), out) in self.elements.iter().zip(elements.iter_mut()).zip(outs) {
                held.forget(batch, state, out)?;
            }
        }
        if self.spec.emit == Emit::All {
            self.emit(&groups.slots(), &Memory { groups, elements }, &mut out.rows)?;
        }
        Ok(outputs)
    }
}

/// Functions declare the type of their state but some hand out a narrower or unnamed one; files want the declared.
pub(super) fn as_declared(column: ArrayRef, field: &FieldRef) -> Result<ArrayRef> {
    if column.data_type() == field.data_type() {
        return Ok(column);
    }
    arrow::compute::cast(&column, field.data_type()).map_err(Error::from)
}
