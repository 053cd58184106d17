//! Floats beside decimals are compared as floats.
//!
//! DataFusion gives the two a decimal of 30 digits as their common type: small floats become 0, and large ones, infinities and NaN
//! are errors. Arithmetic turns decimals into floats already; here comparisons, lists, branches and unions do so, before types
//! are made final.
//!
//! Lengths of time beside intervals are compared as lengths: see [`super::durations::beside`].

use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Operator, Union, cast};
use std::sync::Arc;

use super::durations;

/// Functions whose arguments get one type.
const ALIKE: &[&str] =
    &["coalesce", "greatest", "least", "nullif", "nvl", "ifnull", "make_array", "array_append", "array_prepend"];

/// Casts decimals to DOUBLE where they stand beside floats.
pub fn floats_win(plan: LogicalPlan) -> Result<LogicalPlan> {
    let coerced = plan.transform_up_with_subqueries(|node| {
        if let LogicalPlan::Union(union) = node {
            return union_alike(union);
        }
        let schema = merge_schema(&node.inputs());
        let node = node.map_expressions(|expr| expr.transform_up(|expr| alike(expr, &schema)))?;
        match node.transformed {
            true => node.map_data(LogicalPlan::recompute_schema),
            false => Ok(node),
        }
    });
    Ok(coerced?.data)
}

fn alike(mut expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let changed = match &mut expr {
        Expr::BinaryExpr(binary) if is_comparison(binary.op) => {
            compared(vec![&mut *binary.left, &mut *binary.right], schema)?
        }
        Expr::Between(between) => compared(vec![&mut *between.expr, &mut *between.low, &mut *between.high], schema)?,
        Expr::InList(within) => compared(std::iter::once(&mut *within.expr).chain(&mut within.list).collect(), schema)?,
        Expr::Case(case) => {
            let (when, then): (Vec<_>, Vec<_>) =
                case.when_then_expr.iter_mut().map(|(when, then)| (&mut **when, &mut **then)).unzip();
            let compared = match &mut case.expr {
                Some(expr) => one_type(std::iter::once(&mut **expr).chain(when).collect(), schema),
                None => false,
            };
            let results = then.into_iter().chain(case.else_expr.iter_mut().map(|expr| &mut **expr)).collect();
            one_type(results, schema) || compared
        }
        Expr::ScalarFunction(call) if ALIKE.contains(&call.func.name()) => {
            one_type(call.args.iter_mut().collect(), schema)
        }
        _ => false,
    };
    Ok(if changed { Transformed::yes(expr) } else { Transformed::no(expr) })
}

fn is_comparison(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}

fn compared(mut exprs: Vec<&mut Expr>, schema: &DFSchema) -> Result<bool> {
    Ok(durations::beside(&mut exprs, schema)? || one_type(exprs, schema))
}

/// Casts the decimals among them, if there is a float among them.
fn one_type(exprs: Vec<&mut Expr>, schema: &DFSchema) -> bool {
    let types: Vec<Option<DataType>> = exprs.iter().map(|expr| expr.get_type(schema).ok()).collect();
    if !types.iter().flatten().any(DataType::is_floating) {
        return false;
    }
    let mut changed = false;
    for (expr, of) in exprs.into_iter().zip(types) {
        if of.is_some_and(|of| is_decimal(&of)) {
            *expr = cast(std::mem::take(expr), DataType::Float64);
            changed = true;
        }
    }
    changed
}

fn is_decimal(of: &DataType) -> bool {
    matches!(
        of,
        DataType::Decimal32(..) | DataType::Decimal64(..) | DataType::Decimal128(..) | DataType::Decimal256(..)
    )
}

fn union_alike(union: Union) -> Result<Transformed<LogicalPlan>> {
    let of = |input: &LogicalPlan, n: usize| input.schema().fields().get(n).map(|field| field.data_type().clone());
    let width = union.inputs.first().map_or(0, |input| input.schema().fields().len());
    let mixed: Vec<usize> = (0..width)
        .filter(|n| {
            let types = || union.inputs.iter().filter_map(|input| of(input, *n));
            types().any(|of| of.is_floating()) && types().any(|of| is_decimal(&of))
        })
        .collect();
    if mixed.is_empty() {
        return Ok(Transformed::no(LogicalPlan::Union(union)));
    }
    let inputs = union.inputs.iter().map(|input| {
        let decimals: Vec<usize> =
            mixed.iter().copied().filter(|n| of(input, *n).is_some_and(|of| is_decimal(&of))).collect();
        if decimals.is_empty() {
            return Ok(input.clone());
        }
        let columns = input.schema().columns().into_iter().enumerate().map(|(n, column)| {
            let (relation, name) = (column.relation.clone(), column.name.clone());
            match decimals.contains(&n) {
                true => cast(Expr::Column(column), DataType::Float64).alias_qualified(relation, name),
                false => Expr::Column(column),
            }
        });
        Ok(Arc::new(LogicalPlanBuilder::from(input.as_ref().clone()).project(columns)?.build()?))
    });
    let inputs = inputs.collect::<Result<Vec<_>>>()?;
    Ok(Transformed::yes(LogicalPlan::Union(Union::try_new_with_loose_types(inputs)?)))
}
