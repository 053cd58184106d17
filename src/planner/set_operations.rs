//! EXCEPT and INTERSECT of streams, as groups of equal rows that are counted on both sides.
//!
//! ```text
//! LeftAnti join by all columns        Projection a, b
//!   Distinct                            Filter left > 0 AND right = 0           (INTERSECT: right > 0)
//!     Left                                Aggregate [a, b], count(left), count(right)
//!   Right                                   Union
//!                                             Left, 1 AS left, NULL AS right
//!                                             Right, NULL AS left, 1 AS right
//! ```
//! DataFusion writes them as joins, of which ALL does not count how often a row is there. As groups they remember a row for each
//! that is told from the others, follow rows that are taken back, and are final when a watermarked time among the columns is.
//! With ALL a row is there as often as the counts say.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, NullEquality, ScalarValue, TableReference, UnnestOptions};
use datafusion::error::Result as DfResult;
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::functions_nested::expr_fn::range;
use datafusion::logical_expr::{Distinct, Expr, Join, JoinType, LogicalPlan, LogicalPlanBuilder, lit, when};

use super::reads_stream;

/// The column that counts the rows of the left side.
pub const LEFT: &str = "__left";
const RIGHT: &str = "__right";
const TIMES: &str = "__times";

/// Whether a join is how DataFusion writes EXCEPT or INTERSECT, and whether that is with ALL.
pub fn set_operation(join: &Join) -> Option<bool> {
    let is = join.null_equality == NullEquality::NullEqualsNull
        && join.filter.is_none()
        && matches!(join.join_type, JoinType::LeftAnti | JoinType::LeftSemi);
    is.then(|| distinct(&join.left).is_none())
}

/// What a plan gives the distinct rows of.
fn distinct(plan: &LogicalPlan) -> Option<&Arc<LogicalPlan>> {
    match plan {
        LogicalPlan::Distinct(Distinct::All(input)) => Some(input),
        _ => None,
    }
}

/// Puts groups in place of the set operations of two streams.
///
/// # Errors
/// Of DataFusion.
pub fn group(plan: LogicalPlan) -> DfResult<LogicalPlan> {
    let grouped = plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Join(join) if reads_stream(&join.left) && reads_stream(&join.right) => {
            match set_operation(&join) {
                Some(all) => Ok(Transformed::yes(as_groups(&join, all)?)),
                None => Ok(Transformed::no(LogicalPlan::Join(join))),
            }
        }
        other => Ok(Transformed::no(other)),
    });
    Ok(grouped?.data)
}

fn as_groups(join: &Join, all: bool) -> DfResult<LogicalPlan> {
    let columns: Vec<(Option<TableReference>, String)> =
        join.schema.iter().map(|(qualifier, field)| (qualifier.cloned(), field.name().clone())).collect();
    let unique = (1..columns.len()).all(|n| columns[..n].iter().all(|(_, name)| *name != columns[n].1));
    let name = |n: usize| if unique { columns[n].1.clone() } else { format!("column{}", n + 1) };
    let left = distinct(&join.left).unwrap_or(&join.left);
    let here = || lit(1i64);
    let nowhere = || Expr::Literal(ScalarValue::Int64(None), None);
    let side = |plan: &LogicalPlan, marks: [Expr; 2]| {
        let [left, right] = marks;
        let given = plan.schema().columns().into_iter().map(Expr::Column).enumerate();
        let given = given.map(|(n, column)| column.alias(name(n))).chain([left.alias(LEFT), right.alias(RIGHT)]);
        LogicalPlanBuilder::from(plan.clone()).project(given)
    };
    let both = side(left, [here(), nowhere()])?.union(side(&join.right, [nowhere(), here()])?.build()?)?;
    let of = |name: String| Expr::Column(Column::from_name(name));
    let keys: Vec<Expr> = (0..columns.len()).map(|n| of(name(n))).collect();
    let counts = [LEFT, RIGHT].map(|side| count(of(side.into())).alias(side));
    let grouped = both.aggregate(keys.clone(), counts)?;
    let (here, there) = (of(LEFT.into()), of(RIGHT.into()));
    let shown = |key: Vec<Expr>| {
        let named = key.into_iter().zip(&columns);
        named.map(|(key, (qualifier, name))| key.alias_qualified(qualifier.clone(), name)).collect::<Vec<_>>()
    };
    let except = join.join_type == JoinType::LeftAnti;
    if !all {
        let there = if except { there.eq(lit(0i64)) } else { there.gt(lit(0i64)) };
        return grouped.filter(here.gt(lit(0i64)).and(there))?.project(shown(keys))?.build();
    }
    let times = match except {
        true => here - there,
        false => when(here.clone().lt(there.clone()), here).otherwise(there)?,
    };
    let numbers = range(lit(0i64), times.clone(), lit(1i64)).alias(TIMES);
    grouped
        .filter(times.gt(lit(0i64)))?
        .project(keys.iter().cloned().chain([numbers]))?
        .unnest_column_with_options(Column::from_name(TIMES), UnnestOptions::new())?
        .project(shown(keys))?
        .build()
}
