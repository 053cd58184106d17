//! Windows that overlap, and rows without a time: made explicit in a plan that runs as it is.
//!
//! ```text
//! Aggregate [levada_window_start(ts, 10 s, 2 s, 0), k]          Aggregate [__window AS …, k]
//!   Input                                                         Unnest __window
//!                                                                   Projection *, levada_window_starts(ts, …) AS __window
//!                                                                     Input
//! ```
//! Where windows do not overlap only a filter is added: a row without a time joins no window.

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, UnnestOptions};
use datafusion::error::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Expr, GroupingSet, LogicalPlan, LogicalPlanBuilder};

use super::window_functions::{CALENDAR_STARTS, CUMULATE_ENDS, STARTS, Which, window_call};

/// The column that holds a row's windows while they are spread over rows.
pub const WINDOW: &str = "__window";

/// Makes the windows of every node of a plan explicit.
pub fn expand(plan: LogicalPlan) -> Result<LogicalPlan> {
    Ok(plan.transform_up_with_subqueries(expand_node)?.data)
}

fn expand_node(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let Some(start) = start_of(&node)? else { return Ok(Transformed::no(node)) };
    let input = (*node.inputs()[0]).clone();
    let Some(call) = window_call(&start) else { return Ok(Transformed::no(node)) };
    if !call.windows().is_some_and(|windows| windows.overlaps()) {
        let input = LogicalPlanBuilder::from(input).filter(call.time.clone().is_not_null())?.build()?;
        let exprs = node.expressions();
        return Ok(Transformed::yes(node.with_new_exprs(exprs, vec![input])?));
    }
    let input = spread(input, &start)?;
    let column = Expr::Column(Column::from_name(WINDOW));
    let exprs =
        node.expressions().into_iter().map(|expr| replace(expr, &start, &column)).collect::<Result<Vec<_>>>()?;
    Ok(Transformed::yes(node.with_new_exprs(exprs, vec![input])?))
}

/// `input` with a row for each window of each of its rows, what it is known by in [`WINDOW`].
pub fn spread(input: LogicalPlan, start: &Expr) -> Result<LogicalPlan> {
    let Expr::ScalarFunction(call) = start else { return datafusion::common::internal_err!("{start} is no window") };
    let all = match window_call(start).map(|call| call.which) {
        Some(Which::CumulateEnd) => &CUMULATE_ENDS,
        Some(Which::CalendarStart) => &CALENDAR_STARTS,
        _ => &STARTS,
    };
    let all = Expr::ScalarFunction(ScalarFunction::new_udf((*all).clone(), call.args.clone())).alias(WINDOW);
    let mut columns: Vec<Expr> =
        input.schema().iter().map(|(q, f)| Expr::Column(Column::new(q.cloned(), f.name()))).collect();
    columns.push(all);
    let options = UnnestOptions::new().with_preserve_nulls(false);
    LogicalPlanBuilder::from(input)
        .project(columns)?
        .unnest_column_with_options(Column::from_name(WINDOW), options)?
        .build()
}

/// The window that a node's expressions speak of. The parser's side makes sure that there is only one.
fn start_of(node: &LogicalPlan) -> Result<Option<Expr>> {
    if node.inputs().len() != 1 || matches!(node, LogicalPlan::Extension(_)) {
        return Ok(None);
    }
    let mut found = None;
    for expr in node.expressions() {
        expr.apply(|e| {
            if window_call(e).is_some_and(|call| call.which.gives_windows()) {
                found.get_or_insert_with(|| e.clone());
            }
            Ok(datafusion::common::tree_node::TreeNodeRecursion::Continue)
        })?;
    }
    Ok(found)
}

/// `expr` with `column` for every `start`, under its old name.
pub fn replace(expr: Expr, start: &Expr, column: &Expr) -> Result<Expr> {
    let all = |exprs: Vec<Expr>| exprs.into_iter().map(|e| replace(e, start, column)).collect::<Result<Vec<_>>>();
    // Each key keeps its name, and a set has none.
    let expr = match expr {
        Expr::GroupingSet(GroupingSet::Rollup(keys)) => return Ok(Expr::GroupingSet(GroupingSet::Rollup(all(keys)?))),
        Expr::GroupingSet(GroupingSet::Cube(keys)) => return Ok(Expr::GroupingSet(GroupingSet::Cube(all(keys)?))),
        Expr::GroupingSet(GroupingSet::GroupingSets(sets)) => {
            let sets = sets.into_iter().map(all).collect::<Result<Vec<_>>>()?;
            return Ok(Expr::GroupingSet(GroupingSet::GroupingSets(sets)));
        }
        other => other,
    };
    let (qualifier, name) = expr.qualified_name();
    let replaced = expr
        .clone()
        .transform(|e| Ok(if e == *start { Transformed::yes(column.clone()) } else { Transformed::no(e) }))?;
    if !replaced.transformed {
        return Ok(expr);
    }
    Ok(match replaced.data {
        Expr::Alias(alias) => Expr::Alias(alias),
        other => other.alias_qualified(qualifier, name),
    })
}
