//! Subqueries behind ANY, ALL and NOT IN.
//!
//! `= ANY` is IN, and `<> ALL` is NOT IN. A row passes `x NOT IN (subquery)` where no row of the subquery may be equal to `x`, and
//! where one of the two is NULL it may be: so it is `NOT EXISTS (subquery WHERE (x = y) IS NOT FALSE)`. DataFusion runs the first of
//! a correlated subquery as if a NULL were never in an empty set, and not at all where it compares more than one column; in a
//! bounded run it gets the second.

use std::sync::Arc;

use datafusion::common::ExprSchema;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::{Exists, InSubquery, SetComparison, SetQuantifier};
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{Expr, Filter, LogicalPlan, LogicalPlanBuilder, Operator, Subquery};

use super::reads_stream;
use crate::error::{Error, Result};

/// Writes `= ANY` as IN, and `<> ALL` as NOT IN.
///
/// # Errors
/// Of DataFusion.
pub fn as_in(plan: LogicalPlan) -> DfResult<LogicalPlan> {
    let one = |expr: Expr| match expr {
        Expr::SetComparison(SetComparison { expr, subquery, op: Operator::Eq, quantifier: SetQuantifier::Any }) => {
            Ok(Transformed::yes(Expr::InSubquery(InSubquery { expr, subquery, negated: false })))
        }
        Expr::SetComparison(SetComparison { expr, subquery, op: Operator::NotEq, quantifier: SetQuantifier::All }) => {
            Ok(Transformed::yes(Expr::InSubquery(InSubquery { expr, subquery, negated: true })))
        }
        other => Ok(Transformed::no(other)),
    };
    plan.transform_up_with_subqueries(|node| node.map_expressions(|expr| expr.transform_up(one))).data()
}

/// Refuses what is left of ANY and ALL over streams.
///
/// # Errors
/// Unsupported: not yet.
pub fn check(node: &LogicalPlan) -> Result<()> {
    let mut found = None;
    for expr in node.expressions() {
        expr.apply(|e| {
            if let Expr::SetComparison(comparison) = e
                && reads_stream(&comparison.subquery.subquery)
            {
                found = Some(format!("{} {} (a subquery over a stream)", comparison.op, comparison.quantifier));
            }
            Ok(if found.is_some() { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
    }
    match found {
        Some(what) => Err(Error::not_yet(what)
            .help("compare with its min() or max(), as a scalar subquery; = ANY is IN, and <> ALL is NOT IN")),
        None => Ok(()),
    }
}

/// For a bounded run: a correlated NOT IN that rows must pass, as NOT EXISTS.
///
/// # Errors
/// Of DataFusion.
pub fn not_in(plan: LogicalPlan) -> DfResult<LogicalPlan> {
    let rewritten = plan.transform_up_with_subqueries(|node| {
        let LogicalPlan::Filter(Filter { predicate, input, .. }) = node else { return Ok(Transformed::no(node)) };
        let mut changed = false;
        let mut all = Vec::new();
        for part in split_conjunction_owned(predicate) {
            all.push(match part {
                Expr::InSubquery(within) if within.negated && !within.subquery.outer_ref_columns.is_empty() => {
                    changed = true;
                    not_exists(within, &input)?
                }
                Expr::Not(inner) => match *inner {
                    Expr::InSubquery(within) if !within.negated && !within.subquery.outer_ref_columns.is_empty() => {
                        changed = true;
                        not_exists(within, &input)?
                    }
                    other => Expr::Not(Box::new(other)),
                },
                other => other,
            });
        }
        let Some(predicate) = conjunction(all) else { return Ok(Transformed::no(input.as_ref().clone())) };
        let filter = LogicalPlan::Filter(Filter::try_new(predicate, input)?);
        Ok(if changed { Transformed::yes(filter) } else { Transformed::no(filter) })
    });
    rewritten.data()
}

fn not_exists(within: InSubquery, input: &LogicalPlan) -> DfResult<Expr> {
    let InSubquery { expr, subquery, .. } = within;
    let mut outer = subquery.outer_ref_columns.clone();
    let compared = expr.transform_up(|e| match e {
        Expr::Column(column) => {
            let field = input.schema().field_from_column(&column)?.clone();
            let of_outer = Expr::OuterReferenceColumn(field, column);
            if !outer.contains(&of_outer) {
                outer.push(of_outer.clone());
            }
            Ok(Transformed::yes(of_outer))
        }
        other => Ok(Transformed::no(other)),
    });
    let inner = subquery.subquery.schema().columns();
    let column = inner.first().cloned().map(Expr::Column);
    let column =
        column.ok_or_else(|| datafusion::error::DataFusionError::Plan("IN of a subquery without a column".into()))?;
    let may_be_equal = compared.data()?.eq(column).is_not_false();
    let plan = LogicalPlanBuilder::from(subquery.subquery.as_ref().clone()).filter(may_be_equal)?.build()?;
    let subquery = Subquery { subquery: Arc::new(plan), outer_ref_columns: outer, ..subquery };
    Ok(Expr::Exists(Exists { subquery, negated: true }))
}
