//! Aggregates over rows that are taken back. Where taking back is subtracting (COUNT, SUM and AVG of exact numbers) they become
//! sums over weights; the others are computed of the values that are left ([`super::values`]).
//!
//! ```text
//! SELECT k, count(x), sum(x) FROM changes GROUP BY k
//! SELECT k, count, CASE WHEN count = 0 THEN NULL ELSE sum END
//! FROM (SELECT k, sum(w) AS rows, sum(w) FILTER (WHERE x IS NOT NULL) AS count, sum(w * x) AS sum FROM changes GROUP BY k)
//! WHERE rows <> 0
//! ```
//! `w` is a row's weight. Sums are kept in 38 digits, so that no order of adding and taking back can overflow on its way. A
//! group of no rows is no row of the result; without keys there is always one.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef, SchemaRef};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, ScalarValue, TableReference};
use datafusion::execution::SessionState;
use datafusion::logical_expr::expr::{AggregateFunction, AggregateFunctionParams};
use datafusion::logical_expr::{
    Aggregate, AggregateUDF, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, cast, lit, when,
};

use super::retract;
use super::values::Values;
use crate::error::{Error, Result};

/// What an aggregate over changes becomes.
pub struct Linear {
    /// Of sums over weights: the keys, the number of rows, what the functions are made of, then what brings values.
    pub aggregate: Aggregate,
    /// The functions' results, by the columns of the operator's result.
    results: Vec<Expr>,
    /// How many sums there are.
    sums: usize,
    /// What is computed of values, which come behind the sums.
    pub values: Values,
}

/// Rewrites an aggregate over a plan that carries the hidden columns.
///
/// # Errors
/// Internal: a session without the functions that it is made of.
pub fn linear(aggregate: &Aggregate, input: LogicalPlan, state: &SessionState) -> Result<Linear> {
    let function = |name: &str| {
        let found = state.aggregate_functions().get(name).cloned();
        found.ok_or_else(|| Error::internal(format!("a session without {name}")))
    };
    let (sum, array_agg) = (function("sum")?, function("array_agg")?);
    let schema = aggregate.input.schema().clone();
    let weight = input.schema().columns().into_iter().find(|column| column.name == retract::WEIGHT);
    let weight = weight.ok_or_else(|| Error::internal("changes without weights"))?;
    let values = Values::new(aggregate, array_agg, Expr::Column(weight.clone()));
    let mut parts = Parts { sum: &sum, schema: &schema, weight, calls: Vec::new(), values };
    parts.total(parts.weight(), None);
    let results = aggregate.aggr_expr.iter().map(|expr| parts.function(expr)).collect::<Result<Vec<_>>>()?;
    let Parts { calls, values, .. } = parts;
    let sums = calls.len();
    let calls = calls.into_iter().chain(values.carriers().cloned()).collect();
    let aggregate = Aggregate::try_new(Arc::new(input), aggregate.group_expr.clone(), calls)?;
    Ok(Linear { aggregate, results, sums, values })
}

impl Linear {
    /// The number of the sum that says how many rows a group has, among the aggregate's functions.
    pub const ROWS: usize = 0;

    /// What function `n` of the aggregate is, if it brings values: its number among those that do.
    pub fn carrier(&self, n: usize) -> Option<usize> {
        n.checked_sub(self.sums)
    }

    /// Where the result of a function of values is among the operator's.
    pub fn place(&self, value: usize) -> usize {
        self.sums + value
    }

    /// The columns of the operator's result, whose types are those of `leaf`.
    ///
    /// # Errors
    /// Internal.
    pub fn operator_columns(&self, leaf: &SchemaRef) -> Result<Vec<(Option<TableReference>, FieldRef)>> {
        let width = self.aggregate.group_expr.len();
        let keys = self.aggregate.schema.iter().take(width).map(|(q, f)| (q.cloned(), f.clone()));
        let mut columns: Vec<_> = keys.collect();
        for n in 0..self.sums + self.values.functions.len() {
            let field = leaf.field_with_name(&format!("c{}", width + n));
            let field = field.map_err(|e| Error::internal(e.to_string()))?;
            let called = n.checked_sub(self.sums).map_or_else(|| name(n), value_name);
            columns.push((None, Arc::new(field.clone().with_name(called))));
        }
        Ok(columns)
    }

    /// The result of the aggregate as it was asked for, over the operator's; hidden columns pass. `columns` are those of the
    /// aggregate that was asked for.
    ///
    /// # Errors
    /// Of DataFusion.
    pub fn finish(
        &self,
        operator: LogicalPlan,
        columns: &[(Option<TableReference>, FieldRef)],
        signed: bool,
    ) -> Result<LogicalPlan> {
        let keys = columns.len() - self.results.len();
        let exists = part(0).not_eq(lit(ScalarValue::Int64(Some(0))));
        let mut plan = LogicalPlanBuilder::from(operator);
        if keys > 0 {
            plan = plan.filter(exists)?;
        }
        let of = |n: usize| {
            let (qualifier, field) = &columns[n];
            let expr = match n.checked_sub(keys) {
                None => Expr::Column(Column::new(qualifier.clone(), field.name())),
                Some(at) => self.results[at].clone(),
            };
            expr.alias_qualified(qualifier.clone(), field.name())
        };
        let hidden = retract::fields().into_iter().filter(|_| signed);
        let hidden = hidden.map(|field| Expr::Column(Column::from_name(field.name().clone())));
        Ok(plan.project((0..columns.len()).map(of).chain(hidden))?.build()?)
    }
}

/// Column `n` of the rewritten aggregate's functions.
fn part(n: usize) -> Expr {
    Expr::Column(Column::from_name(name(n)))
}

fn name(n: usize) -> String {
    format!("__part{n}")
}

/// Function of values `n`.
fn value_name(n: usize) -> String {
    format!("__value{n}")
}

/// The functions of the rewritten aggregate, as they come to be wanted.
struct Parts<'a> {
    sum: &'a Arc<AggregateUDF>,
    schema: &'a DFSchema,
    weight: Column,
    calls: Vec<Expr>,
    values: Values,
}

impl Parts<'_> {
    fn weight(&self) -> Expr {
        cast(Expr::Column(self.weight.clone()), DataType::Int64)
    }

    /// `sum(of) FILTER (WHERE filter)`; answers its column.
    fn total(&mut self, of: Expr, filter: Option<Expr>) -> Expr {
        let call = Expr::AggregateFunction(AggregateFunction {
            func: self.sum.clone(),
            params: AggregateFunctionParams {
                args: vec![of],
                distinct: false,
                filter: filter.map(Box::new),
                order_by: Vec::new(),
                null_treatment: None,
            },
        });
        let is = |known: &Expr| matches!(known, Expr::Alias(alias) if *alias.expr == call);
        let at = self.calls.iter().position(is).unwrap_or(self.calls.len());
        if at == self.calls.len() {
            self.calls.push(call.alias(name(at)));
        }
        part(at)
    }

    /// The result of one function.
    fn function(&mut self, expr: &Expr) -> Result<Expr> {
        let Expr::AggregateFunction(function) = strip(expr) else {
            return Err(Error::internal(format!("{expr} is no aggregate")));
        };
        let AggregateFunctionParams { args, distinct, filter, order_by, .. } = &function.params;
        let filter = filter.as_deref().cloned();
        let result_type = expr.get_type(self.schema)?;
        match (function.func.name(), args.as_slice()) {
            ("count", args) if !distinct && order_by.is_empty() => {
                let there = args.iter().filter(|arg| !matches!(arg, Expr::Literal(value, _) if !value.is_null()));
                let filter = there.fold(filter, |filter, arg| Some(and(filter, arg.clone().is_not_null())));
                let count = self.total(self.weight(), filter);
                Ok(or_zero(count)?)
            }
            ("sum", [arg]) if !distinct => match self.exact(arg, filter)? {
                Some((sum, count)) => Ok(null_where_none(cast(sum, result_type), &count)?),
                None => self.of_values(expr, function, result_type),
            },
            ("avg", [arg]) if !distinct && result_type == DataType::Float64 => {
                match self.exact(&integer_below(arg, self.schema)?, filter)? {
                    Some((sum, count)) => {
                        let average = cast(sum, DataType::Float64) / cast(count.clone(), DataType::Float64);
                        Ok(null_where_none(average, &count)?)
                    }
                    None => self.of_values(expr, function, result_type),
                }
            }
            _ => self.of_values(expr, function, result_type),
        }
    }

    /// A function that is computed anew of the values that are there.
    fn of_values(&mut self, expr: &Expr, function: &AggregateFunction, result_type: DataType) -> Result<Expr> {
        let at = self.values.add(expr, function, self.schema)?;
        Ok(cast(Expr::Column(Column::from_name(value_name(at))), result_type))
    }

    /// The sum of exact numbers and how many there are; `None`: they are not exact.
    fn exact(&mut self, arg: &Expr, filter: Option<Expr>) -> Result<Option<(Expr, Expr)>> {
        let wide = match arg.get_type(self.schema)? {
            t if t.is_integer() => DataType::Decimal128(38, 0),
            DataType::Decimal128(_, scale) => DataType::Decimal128(38, scale),
            _ => return Ok(None),
        };
        let value = cast(arg.clone(), wide);
        let added = self.weight().gt(lit(ScalarValue::Int64(Some(0))));
        let signed = when(added, value.clone()).otherwise(Expr::Negative(Box::new(value)))?;
        let count = self.total(self.weight(), Some(and(filter.clone(), arg.clone().is_not_null())));
        Ok(Some((self.total(signed, filter), or_zero(count)?)))
    }
}

/// What an alias stands for.
pub fn strip(expr: &Expr) -> &Expr {
    match expr {
        Expr::Alias(alias) => strip(&alias.expr),
        other => other,
    }
}

fn and(filter: Option<Expr>, more: Expr) -> Expr {
    match filter {
        Some(filter) => filter.and(more),
        None => more,
    }
}

/// What no row has added to is NULL, and counts as none.
fn or_zero(count: Expr) -> Result<Expr> {
    let zero = lit(ScalarValue::Int64(Some(0)));
    Ok(when(count.clone().is_null(), zero).otherwise(count)?)
}

fn null_where_none(value: Expr, count: &Expr) -> Result<Expr> {
    let none = count.clone().eq(lit(ScalarValue::Int64(Some(0))));
    Ok(when(none, lit(ScalarValue::Null)).otherwise(value)?)
}

/// The whole numbers that an average was told to read as floats.
fn integer_below(arg: &Expr, schema: &DFSchema) -> Result<Expr> {
    let found = arg.clone().transform_down(|e| match &e {
        Expr::Cast(below) if below.expr.get_type(schema)?.is_integer() => Ok(Transformed::yes((*below.expr).clone())),
        _ => Ok(Transformed::no(e)),
    })?;
    let below = found.data;
    // Only a cast of the whole argument is one that the average asked for.
    Ok(if matches!(arg, Expr::Cast(c) if *c.expr == below) { below } else { arg.clone() })
}
