//! An aggregate's rows: what its functions make of what is remembered of some groups.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array, new_null_array};
use arrow::compute::{concat, take};
use arrow::datatypes::{FieldRef, Schema};
use datafusion::logical_expr::EmitTo;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::Literal;

use super::aggregate::{AggregateSpec, Feed};
use super::elements::Keep;
use super::held::Held;
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
                    if held.counts.is_some() {
                        out.push(self.of_values(function, self.elements[*n].values(), held, rows)?);
                        continue;
                    }
                    accumulator.update_batch(&arguments(function, held)?, &held.groups, None, rows)?;
                }
                Feed::States(_) | Feed::Values(_) => accumulator.merge_batch(columns, &groups, rows)?,
            }
            out.push(accumulator.evaluate(EmitTo::All)?);
        }
        Ok(out)
    }

    /// A function's results over values that are there so many times, of so many groups.
    fn of_values(
        &self,
        function: &Arc<AggregateFunctionExpr>,
        fields: &[FieldRef],
        held: &Held,
        rows: usize,
    ) -> Result<ArrayRef> {
        let once = function.is_distinct() || ONCE.contains(&function.fun().name());
        let (columns, groups) = if once { (held.columns.clone(), held.groups.clone()) } else { held.each()? };
        let options = RecordBatchOptions::new().with_row_count(Some(groups.len()));
        let schema = Arc::new(Schema::new(fields.to_vec()));
        let values = RecordBatch::try_new_with_options(schema, columns, &options).map_err(Error::from)?;
        let ordered_by = function.order_bys().iter().map(|by| &by.expr);
        let inputs = function.expressions();
        let argument = |expr: &Arc<dyn PhysicalExpr>| expr.evaluate(&values)?.into_array(values.num_rows());
        let arguments = inputs.iter().chain(ordered_by).map(argument).collect::<Result<Vec<_>, _>>()?;
        // Accumulators take it that each group has a row: groups without any are those of no rows at all.
        let (mut numbers, mut count) = (vec![None; rows], 0);
        let mut number = |group: &usize| {
            *numbers[*group].get_or_insert_with(|| {
                count += 1;
                count - 1
            })
        };
        let groups: Vec<usize> = groups.iter().map(&mut number).collect();
        let none = function.create_accumulator()?.evaluate()?.to_array()?;
        let mut results = none.clone();
        if count > 0 {
            let mut accumulator = self.accumulator(function)?;
            accumulator.update_batch(&arguments, &groups, None, count)?;
            let some = accumulator.evaluate(EmitTo::All)?;
            if numbers.iter().enumerate().all(|(group, number)| *number == Some(group)) {
                return Ok(some);
            }
            results = concat(&[some.as_ref(), none.as_ref()]).map_err(Error::from)?;
        }
        let at = numbers.iter().map(|number| number.unwrap_or(count) as u32);
        take(&results, &UInt32Array::from_iter_values(at), None).map_err(Error::from)
    }

    /// Tries function `at` on a value, if it is one that is computed of values.
    ///
    /// # Errors
    /// Of DataFusion, for a type that the function can't take.
    pub fn try_values(&self, at: usize) -> Result<()> {
        let (Some(function), Some(Feed::Elements(n))) = (self.functions.get(at), self.feeds.get(at)) else {
            return Ok(());
        };
        let Some(elements) = self.elements.get(*n).filter(|elements| elements.keep == Keep::Signed) else {
            return Ok(());
        };
        let columns = elements.values().iter().map(|field| new_null_array(field.data_type(), 1)).collect();
        let held = Held { columns, groups: vec![0], counts: Some(vec![1]) };
        self.of_values(function, elements.values(), &held, 2).map(drop)
    }
}

/// Functions to which it is the same how often a value is there.
const ONCE: &[&str] = &["min", "max", "bool_and", "bool_or", "bit_and", "bit_or", "approx_distinct"];

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
