//! Rows of a static table that rows of a stream match: `FROM table WHERE k IN (SELECT k FROM stream)`.
//!
//! ```text
//! LeftSemi table.k = stream.k      Projection of the table's columns
//!   table                            Distinct
//!   stream                             Inner Join table.k = __key0
//!                                        Projection of the table's columns, row_number() of equal rows AS __nth
//!                                          table
//!                                        Projection stream.k AS __key0
//!                                          stream
//! ```
//! Each row of the table goes on once, when a row of the stream first finds it: also one that has come to the table since others
//! of its key were found. Equal rows are told apart by their number.

use std::sync::Arc;

use datafusion::common::{Column, DFSchema, JoinType};
use datafusion::error::Result as DfResult;
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::expr::BinaryExpr;
use datafusion::logical_expr::utils::{conjunction, find_valid_equijoin_key_pair, split_conjunction_owned};
use datafusion::logical_expr::{Expr, ExprFunctionExt, Join, LogicalPlan, LogicalPlanBuilder, Operator};

use crate::operator::NTH;
use crate::planner::reads_stream;
use crate::planner::set_operations::set_operation;

/// The distinct rows of a join with the stream in place of a semi join of a static table; `None` where a node is none, or
/// something but equality decides about its rows.
///
/// # Errors
/// Of DataFusion.
pub fn join_keys(node: &LogicalPlan) -> DfResult<Option<LogicalPlan>> {
    let LogicalPlan::Join(join) = node else { return Ok(None) };
    let (table, stream) = match join.join_type {
        JoinType::LeftSemi => (&join.left, &join.right),
        JoinType::RightSemi => (&join.right, &join.left),
        _ => return Ok(None),
    };
    // With ALL a row of INTERSECT is there as often as on both sides.
    if reads_stream(table) || !reads_stream(stream) || set_operation(join) == Some(true) {
        return Ok(None);
    }
    let swapped = join.join_type == JoinType::RightSemi;
    let mut on: Vec<(Expr, Expr)> =
        join.on.iter().map(|(l, r)| if swapped { (r.clone(), l.clone()) } else { (l.clone(), r.clone()) }).collect();
    let mut of_stream = Vec::new();
    for condition in join.filter.iter().flat_map(|filter| split_conjunction_owned(filter.clone())) {
        if let Some(pair) = pair_of(&condition, table.schema(), stream.schema())? {
            on.push(pair);
        } else if condition.column_refs().iter().all(|column| stream.schema().has_column(column)) {
            of_stream.push(condition);
        } else {
            return Ok(None);
        }
    }
    if on.is_empty() {
        return Ok(None);
    }
    let mut keys = LogicalPlanBuilder::from(stream.as_ref().clone());
    if let Some(condition) = conjunction(of_stream) {
        keys = keys.filter(condition)?;
    }
    let name = |n: usize| format!("__key{n}");
    let (of_table, of_stream): (Vec<Expr>, Vec<Expr>) = on.into_iter().unzip();
    let keys = keys.project(of_stream.into_iter().enumerate().map(|(n, key)| key.alias(name(n))))?.build()?;
    let found = |n: usize| Expr::Column(Column::from_name(name(n)));
    let on = of_table.into_iter().enumerate().map(|(n, key)| (key, found(n))).collect();
    let shown: Vec<Expr> = table.schema().columns().into_iter().map(Expr::Column).collect();
    let (constraint, nulls) = (join.join_constraint, join.null_equality);
    let nth = row_number().partition_by(shown.clone()).build()?;
    let number = LogicalPlanBuilder::from(table.as_ref().clone()).window([nth.clone()])?;
    let nth = Expr::Column(Column::from_name(nth.schema_name().to_string())).alias(NTH);
    let numbered = Arc::new(number.project(shown.iter().cloned().chain([nth]))?.build()?);
    let joined = Join::try_new(numbered, Arc::new(keys), on, None, JoinType::Inner, constraint, nulls, false)?;
    let found = LogicalPlanBuilder::from(LogicalPlan::Join(joined));
    let nth = Expr::Column(Column::from_name(NTH));
    Ok(Some(found.project(shown.iter().cloned().chain([nth]))?.distinct()?.project(shown)?.build()?))
}

/// What an equality compares, of one side each.
fn pair_of(condition: &Expr, table: &DFSchema, stream: &DFSchema) -> DfResult<Option<(Expr, Expr)>> {
    match condition {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => {
            find_valid_equijoin_key_pair(left, right, table, stream)
        }
        _ => Ok(None),
    }
}
