//! What groups by the columns of a window table function, grouped by the window itself.
//!
//! ```text
//! Aggregate [x.window_start, x.window_end, x.k]               Projection w AS window_start, levada_window_end(w) AS window_end, k, …
//!   SubqueryAlias x                                             Aggregate [levada_window_start(ts, …) AS w, k]
//!     Projection *, levada_window_start(ts, …) AS …               s
//!       s
//! ```
//! So the rows of windows that overlap are put together in panes, a row is late when all of its windows are over, and what is
//! remembered has the name of its windows: another size is another name.

use std::sync::Arc;

use datafusion::common::Column;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan, LogicalPlanBuilder};

use crate::planner::reads_stream;
use crate::planner::session_functions::gives_sessions;
use crate::planner::window_functions::{Which, window_call};

/// What the window is called between the aggregation and the projection above it.
const KEY: &str = "__window_key";

/// Rewrites every such aggregation over a stream.
///
/// # Errors
/// Of DataFusion.
pub fn lift(plan: LogicalPlan) -> Result<LogicalPlan> {
    let lifted = plan.transform_up_with_subqueries(|node| match &node {
        LogicalPlan::Aggregate(aggregate) if reads_stream(&node) => {
            Ok(lifted(aggregate)?.map_or_else(|| Transformed::no(node.clone()), Transformed::yes))
        }
        _ => Ok(Transformed::no(node)),
    })?;
    Ok(lifted.data)
}

fn lifted(aggregate: &Aggregate) -> Result<Option<LogicalPlan>> {
    let Some(way) = Way::down(aggregate) else { return Ok(None) };
    let mut conditions = Vec::new();
    for (n, node) in way.nodes.iter().enumerate() {
        if let LogicalPlan::Filter(filter) = node {
            conditions.push(below(filter.predicate.clone(), &way.nodes[n + 1..])?);
        }
    }
    // Rows that are left out by their window can't be left out before they have one.
    if conditions.iter().any(mentions_window) {
        return Ok(None);
    }
    let lower = |expr: &Expr| below(expr.clone().unalias(), &way.nodes);
    let keys = aggregate.group_expr.iter().map(lower).collect::<Result<Vec<_>>>()?;
    let functions = aggregate.aggr_expr.iter().map(lower).collect::<Result<Vec<_>>>()?;
    let Some(window) = keys.iter().find_map(window_of) else { return Ok(None) };
    let fields: Vec<_> = aggregate.schema.iter().map(|(q, f)| (q.cloned(), f.name().clone())).collect();
    let column = |name: &str| Expr::Column(Column::from_name(name));
    let (mut groups, mut shown): (Vec<Expr>, Vec<Expr>) = (Vec::new(), Vec::new());
    let mut known = false;
    for (n, key) in keys.into_iter().enumerate() {
        let of_window = key == window || window_call(&key).is_some_and(|call| *call.time == window);
        if !of_window {
            let name = format!("__key{n}");
            groups.push(key.alias(&name));
            shown.push(column(&name));
            continue;
        }
        if !known {
            groups.push(window.clone().alias(KEY));
            known = true;
        }
        let whole = key.transform(|e| Ok(if e == window { Transformed::yes(column(KEY)) } else { Transformed::no(e) }));
        shown.push(whole?.data);
    }
    let named = functions.into_iter().enumerate().map(|(n, function)| {
        let name = format!("__function{n}");
        shown.push(column(&name));
        function.alias(name)
    });
    let named: Vec<Expr> = named.collect();
    let mut input = way.input.clone();
    if let Some(condition) = conjunction(conditions) {
        input = LogicalPlanBuilder::from(input).filter(condition)?.build()?;
    }
    let grouped = LogicalPlan::Aggregate(Aggregate::try_new(Arc::new(input), groups, named)?);
    let shown = shown.into_iter().zip(fields).map(|(expr, (qualifier, name))| expr.alias_qualified(qualifier, name));
    Ok(Some(LogicalPlanBuilder::from(grouped).project(shown.collect::<Vec<_>>())?.build()?))
}

/// The nodes from an aggregation down to the one that gives rows their windows, and what is below that.
struct Way<'a> {
    nodes: Vec<&'a LogicalPlan>,
    input: &'a LogicalPlan,
}

impl<'a> Way<'a> {
    fn down(aggregate: &'a Aggregate) -> Option<Self> {
        let is_plain = |expr: &Expr| !expr.is_volatile() && !expr.exists(|e| Ok(is_subquery(e))).unwrap_or(true);
        // What groups by a window of its own has it among its keys.
        if aggregate.group_expr.iter().any(mentions_window) {
            return None;
        }
        if !aggregate.group_expr.iter().chain(&aggregate.aggr_expr).all(is_plain) {
            return None;
        }
        let (mut nodes, mut node) = (Vec::new(), aggregate.input.as_ref());
        loop {
            if gives_sessions(node) || !node.expressions().iter().all(is_plain) {
                return None;
            }
            nodes.push(node);
            match node {
                LogicalPlan::Projection(projection) if projection.expr.iter().any(gives_windows) => {
                    return Some(Way { nodes, input: &projection.input });
                }
                LogicalPlan::Projection(projection) => node = &projection.input,
                LogicalPlan::Filter(filter) => node = &filter.input,
                LogicalPlan::SubqueryAlias(alias) => node = &alias.input,
                _ => return None,
            }
        }
    }
}

/// An expression over the first of some nodes, which stand one above the other, in terms of what is below the last.
fn below(expr: Expr, nodes: &[&LogicalPlan]) -> Result<Expr> {
    nodes.iter().try_fold(expr, |expr, node| {
        let lowered = expr.transform_up(|e| {
            let Expr::Column(column) = &e else { return Ok(Transformed::no(e)) };
            let index = node.schema().index_of_column(column)?;
            Ok(match node {
                LogicalPlan::Projection(projection) => Transformed::yes(projection.expr[index].clone().unalias()),
                LogicalPlan::SubqueryAlias(alias) => {
                    let (qualifier, field) = alias.input.schema().qualified_field(index);
                    Transformed::yes(Expr::Column(Column::new(qualifier.cloned(), field.name())))
                }
                _ => Transformed::no(e),
            })
        });
        Ok(lowered?.data)
    })
}

/// The call that gives rows their windows, where a key tells one from the other.
fn window_of(key: &Expr) -> Option<Expr> {
    let call = window_call(key)?;
    match call.which {
        which if which.gives_windows() => Some(key.clone()),
        Which::End | Which::CalendarEnd => window_of(call.time),
        _ => None,
    }
}

fn mentions_window(expr: &Expr) -> bool {
    expr.exists(|e| Ok(window_call(e).is_some())).unwrap_or(true)
}

fn gives_windows(expr: &Expr) -> bool {
    expr.exists(|e| Ok(window_call(e).is_some_and(|call| call.which.gives_windows()))).unwrap_or(false)
}

fn is_subquery(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarSubquery(_) | Expr::Exists(_) | Expr::InSubquery(_) | Expr::OuterReferenceColumn(..))
}
