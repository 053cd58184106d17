//! DISTINCT functions are lowered: values that were never there before feed the plain function.
//!
//! The fragment hands out a batch's distinct values of a group as a list, as DataFusion's partial states of these functions are.
//! Kept as they come, in the group's one row, they would make a batch cost as much as the groups that it touches hold. So each
//! value becomes a row of its own, in a state of its own ([`crate::operator::Distinct`]), and the group keeps a count or a sum.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::physical_expr::aggregate::{AggregateExprBuilder, AggregateFunctionExpr};
use datafusion::physical_plan::aggregates::AggregateExec;

use crate::error::Result;
use crate::operator::Feed;

/// Functions of values that may come in any order and one by one, and whose DISTINCT states are those values.
/// `var` is not among them: DataFusion's of a single NaN is 0 where DISTINCT, and NaN otherwise.
const LOWERED: &[&str] = &["count", "sum", "avg", "bit_xor"];

/// What the operators compute of a fragment's partial states.
pub struct Lowered {
    /// The fragment's functions, without DISTINCT where they are lowered.
    pub functions: Vec<Arc<AggregateFunctionExpr>>,
    pub feeds: Vec<Feed>,
    /// What is remembered value by value; number n is input n + 1.
    pub arguments: Vec<Argument>,
}

/// An argument of one or more DISTINCT functions.
pub struct Argument {
    /// The first function that wants it, as its values are known again by.
    pub name: String,
    /// The fragment's column that has it, in lists.
    pub column: usize,
    pub data_type: DataType,
}

/// Lowers what can be.
///
/// # Errors
/// Of DataFusion, for a function that is not there without DISTINCT.
pub fn lower(partial: &AggregateExec, names: &[String]) -> Result<Lowered> {
    let mut lowered = Lowered { functions: Vec::new(), feeds: Vec::new(), arguments: Vec::new() };
    let mut firsts: Vec<usize> = Vec::new();
    let (functions, filters) = (partial.aggr_expr(), partial.filter_expr());
    let mut at = 0;
    for (n, function) in functions.iter().enumerate() {
        let states = function.state_fields()?;
        let place = at;
        at += states.len();
        if !is_lowered(function, &states) {
            lowered.functions.push(function.clone());
            lowered.feeds.push(Feed::States(place));
            continue;
        }
        let same =
            |first: &usize| functions[*first].expressions() == function.expressions() && filters[*first] == filters[n];
        let argument = firsts.iter().position(same).unwrap_or(firsts.len());
        if argument == firsts.len() {
            firsts.push(n);
            let data_type = function.expressions()[0].data_type(&partial.input_schema())?;
            lowered.arguments.push(Argument {
                name: names[n].clone(),
                column: partial.group_expr().num_group_exprs() + place,
                data_type: values_of(&data_type),
            });
        }
        let plain = AggregateExprBuilder::new(Arc::new(function.fun().clone()), function.expressions());
        let plain = plain.schema(partial.input_schema()).alias(function.name()).build()?;
        lowered.functions.push(Arc::new(plain));
        lowered.feeds.push(Feed::Values(argument + 1));
    }
    Ok(lowered)
}

fn is_lowered(function: &AggregateFunctionExpr, states: &[FieldRef]) -> bool {
    function.is_distinct()
        && LOWERED.contains(&function.fun().name())
        && function.expressions().len() == 1
        && matches!(states, [state] if matches!(state.data_type(), DataType::List(_)))
}

/// The type of the values that a dictionary stands for, inside lists and structs too.
pub fn values_of(data_type: &DataType) -> DataType {
    let field = |f: &FieldRef| -> FieldRef { f.as_ref().clone().with_data_type(values_of(f.data_type())).into() };
    match data_type {
        DataType::Dictionary(_, values) => values_of(values),
        DataType::List(f) => DataType::List(field(f)),
        DataType::LargeList(f) => DataType::LargeList(field(f)),
        DataType::FixedSizeList(f, size) => DataType::FixedSizeList(field(f), *size),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(field).collect()),
        DataType::Map(f, sorted) => DataType::Map(field(f), *sorted),
        other => other.clone(),
    }
}
