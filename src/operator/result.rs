//! An aggregate's rows: what its functions make of what is remembered of some groups.

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::FieldRef;
use datafusion::logical_expr::EmitTo;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::Literal;

use super::aggregate::{AggregateSpec, Feed};
use super::elements::Held;
use crate::error::{Error, Result};
use crate::state::{Slot, StateTable};

/// What an aggregate remembers, to be read.
pub(super) struct Memory<'a> {
    pub groups: &'a StateTable,
    pub elements: &'a [&'a mut StateTable],
}

impl AggregateSpec {
    /// The rows of groups, with their keys and states at hand.
    pub(super) fn result(
        &self,
        slots: &[Slot],
        mut keys: Vec<ArrayRef>,
        states: &[ArrayRef],
        memory: &Memory<'_>,
    ) -> Result<RecordBatch> {
        let held = self
            .elements
            .iter()
            .zip(memory.elements)
            .map(|(elements, state)| elements.read(slots.iter().map(|slot| memory.groups.key_bytes(*slot)), state));
        let held = held.collect::<Result<Vec<_>>>()?;
        keys.extend(self.evaluate(states, &held, slots.len())?);
        let options = RecordBatchOptions::new().with_row_count(Some(slots.len()));
        RecordBatch::try_new_with_options(self.output.clone(), keys, &options)
            .map_err(|e| Error::internal(e.to_string()))
    }

    /// The rows of what has no elements: keys, and the functions' results from their states.
    pub(super) fn result_of_states(
        &self,
        mut keys: Vec<ArrayRef>,
        states: &[ArrayRef],
        rows: usize,
    ) -> Result<RecordBatch> {
        keys.extend(self.evaluate(states, &[], rows)?);
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(self.output.clone(), keys, &options)
            .map_err(|e| Error::internal(e.to_string()))
    }

    /// The functions' results from their states or elements.
    fn evaluate(&self, states: &[ArrayRef], held: &[Held], rows: usize) -> Result<Vec<ArrayRef>> {
        let groups: Vec<usize> = (0..rows).collect();
        let mut at = 0;
        let mut out = Vec::with_capacity(self.functions.len());
        for ((function, fields), feed) in self.functions.iter().zip(&self.states).zip(&self.feeds) {
            let columns = &states[at..at + fields.len()];
            at += fields.len();
            if state_is_result(function, fields) {
                out.push(columns[0].clone());
                continue;
            }
            let mut accumulator = self.accumulator(function)?;
            match feed {
                Feed::Elements(n) => {
                    let held = held.get(*n).ok_or_else(|| Error::internal("elements that nothing remembers"))?;
                    accumulator.update_batch(&arguments(function, held)?, &held.groups, None, rows)?;
                }
                Feed::States(_) | Feed::Values(_) => accumulator.merge_batch(columns, &groups, rows)?,
            }
            out.push(accumulator.evaluate(EmitTo::All)?);
        }
        Ok(out)
    }
}

/// What a function is called with: an element, the constants behind it, and what the element is ordered by.
fn arguments(function: &AggregateFunctionExpr, held: &Held) -> Result<Vec<ArrayRef>> {
    let Some((elements, orderings)) = held.columns.split_first() else {
        return Err(Error::internal("elements without a column"));
    };
    let mut arguments = vec![elements.clone()];
    for constant in &function.expressions()[1..] {
        let constant = (constant.as_ref() as &dyn std::any::Any).downcast_ref::<Literal>();
        let constant = constant.ok_or_else(|| Error::internal("a function of elements and of what is no constant"))?;
        arguments.push(constant.value().to_array_of_size(elements.len())?);
    }
    arguments.extend(orderings.iter().cloned());
    Ok(arguments)
}

/// Functions whose only state is their result, so that nothing has to be computed from it.
fn state_is_result(function: &AggregateFunctionExpr, state: &[FieldRef]) -> bool {
    const SAME: &[&str] = &["count", "sum", "min", "max", "bool_and", "bool_or", "bit_and", "bit_or", "bit_xor"];
    state.len() == 1
        && !function.is_distinct()
        && SAME.contains(&function.fun().name())
        && state[0].data_type() == function.field().data_type()
}
