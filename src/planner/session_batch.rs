//! Sessions in a plan that runs as it is: each row is given its session by window functions, before rows are grouped.
//!
//! ```text
//! Aggregate [levada_session_start(ts, gap), levada_session_end(ts, gap), k]
//!   Input
//!
//! Aggregate [__session_start, __session_end, k]
//!   __session_start = min(from), __session_end = max(to)    OVER (PARTITION BY keys, number)
//!     number        = sum(first)                            OVER (PARTITION BY keys ORDER BY from)
//!       first       = 1 where from > before, or nothing is before
//!         before    = max(to)                               OVER (PARTITION BY keys ORDER BY from ROWS … 1 PRECEDING)
//!           Filter to > from                                rows without a time or a gap are in no session
//!             Projection *, time AS from, time + gap AS to, keys
//! ```
//! A row begins a session when no row before it reaches its time; reaching it exactly is enough (rule S1). Nothing of this is
//! shared with the operator that a stream has, so the one can be held against the other.

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, JoinType, ScalarValue};
use datafusion::error::Result;
use datafusion::functions_aggregate::{min_max, sum};
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{
    AggregateUDF, Distinct, Expr, ExprFunctionExt, ExprSchemable, Join, LogicalPlan, LogicalPlanBuilder, WindowFrame,
    WindowFrameBound, WindowFrameUnits, WindowFunctionDefinition, cast, lit, when,
};

use super::expand::replace;
use super::floats;
use super::join_bounds::is_join_of_streams;
use super::session_functions::{gives_sessions, session_call};
use super::{any, reads_stream};
use crate::parser::OutputMode;

const START: &str = "__session_start";
const END: &str = "__session_end";
const FROM: &str = "__session_from";
const TO: &str = "__session_to";
const BEFORE: &str = "__session_before";
const FIRST: &str = "__session_first";
const NUMBER: &str = "__session_number";

/// Gives the sessions of every node of a plan to its rows.
///
/// # Errors
/// Of DataFusion: keys that rows can't be sorted by.
pub fn expand(plan: LogicalPlan) -> Result<LogicalPlan> {
    Ok(plan.transform_up_with_subqueries(expand_node)?.data)
}

/// The same below a stream's query: where no stream is read.
///
/// # Errors
/// As of [`expand`].
pub fn expand_static(plan: LogicalPlan) -> Result<LogicalPlan> {
    let expanded = plan.transform_up_with_subqueries(|node| match reads_stream(&node) {
        true => Ok(Transformed::no(node)),
        false => expand_node(node),
    });
    Ok(expanded?.data)
}

/// The same where rows may be taken back, in a mode in which they can be: their sessions come of what an OVER is now.
///
/// # Errors
/// As of [`expand`].
pub fn expand_changing(plan: LogicalPlan, mode: OutputMode) -> Result<LogicalPlan> {
    let expanded = plan.transform_up(|node| match node.inputs().into_iter().any(|input| changes(input, mode)) {
        true => expand_node(node),
        false => Ok(Transformed::no(node)),
    });
    Ok(expanded?.data)
}

/// Whether rows of a plan over streams may be taken back; or perhaps not.
fn changes(plan: &LogicalPlan, mode: OutputMode) -> bool {
    let outer = |join: &Join| join.join_type != JoinType::Inner && join.join_type != JoinType::LeftSemi;
    any(plan, |node| {
        let may = match node {
            LogicalPlan::Aggregate(_) | LogicalPlan::Window(_) | LogicalPlan::Sort(_) => true,
            LogicalPlan::Distinct(Distinct::On(on)) => on.sort_expr.is_some(),
            // A group for each row, in a mode that sends all groups.
            LogicalPlan::Distinct(Distinct::All(_)) => mode == OutputMode::Complete,
            LogicalPlan::Join(join) => outer(join) && is_join_of_streams(node),
            LogicalPlan::Filter(filter) => {
                split_conjunction(&filter.predicate).into_iter().any(|expr| judges(expr, mode))
            }
            LogicalPlan::Projection(projection) => {
                gives_sessions(node) || projection.expr.iter().any(|expr| judges(expr, mode))
            }
            _ => false,
        };
        may && reads_stream(node)
    })
}

/// Whether what an expression says of a row may change with rows of a stream that it asks. That a row found a partner does not.
fn judges(expr: &Expr, mode: OutputMode) -> bool {
    let asked = |e: &Expr| match e {
        Expr::ScalarSubquery(subquery) => reads_stream(&subquery.subquery),
        Expr::InSubquery(within) => reads_stream(&within.subquery.subquery),
        Expr::Exists(exists) => reads_stream(&exists.subquery.subquery),
        _ => false,
    };
    match expr {
        Expr::InSubquery(within) if !within.negated => changes(&within.subquery.subquery, mode),
        Expr::Exists(exists) if !exists.negated => changes(&exists.subquery.subquery, mode),
        other => other.exists(|e| Ok(asked(e))).unwrap_or(true),
    }
}

fn expand_node(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let exprs = match &node {
        LogicalPlan::Aggregate(aggregate) => &aggregate.group_expr,
        LogicalPlan::Projection(projection) => &projection.expr,
        _ => return Ok(Transformed::no(node)),
    };
    let Some(call) = exprs.iter().find_map(session_call) else { return Ok(Transformed::no(node)) };
    let keys = match &node {
        LogicalPlan::Aggregate(_) => exprs.iter().filter(|e| session_call(e).is_none()).cloned().collect(),
        _ => call.keys.to_vec(),
    };
    let (start, end) = bounds_of(exprs);
    let input = with_sessions((*node.inputs()[0]).clone(), start.as_ref(), end.as_ref(), keys)?;
    let replaced = node.expressions().into_iter().map(|mut expr| {
        for (bound, name) in [(&start, START), (&end, END)] {
            if let Some(bound) = bound {
                expr = replace(expr, bound, &Expr::Column(Column::from_name(name)))?;
            }
        }
        Ok(expr)
    });
    let replaced = replaced.collect::<Result<Vec<_>>>()?;
    Ok(Transformed::yes(node.with_new_exprs(replaced, vec![input])?))
}

/// The calls that give start and end.
fn bounds_of(exprs: &[Expr]) -> (Option<Expr>, Option<Expr>) {
    fn bare(expr: &Expr) -> &Expr {
        match expr {
            Expr::Alias(alias) => bare(&alias.expr),
            other => other,
        }
    }
    let bound = |end: bool| exprs.iter().find(|e| session_call(e).is_some_and(|c| c.end == end)).map(bare).cloned();
    (bound(false), bound(true))
}

fn with_sessions(input: LogicalPlan, start: Option<&Expr>, end: Option<&Expr>, keys: Vec<Expr>) -> Result<LogicalPlan> {
    let (Some(from), Some(to)) = (start, end) else {
        return datafusion::common::internal_err!("a session without a start or an end");
    };
    let columns: Vec<Expr> = input.schema().columns().into_iter().map(Expr::Column).collect();
    // A row's own times, no longer the calls that stand for its session.
    let own = |bound: &Expr| {
        Ok::<_, datafusion::error::DataFusionError>(cast(bound.clone(), bound.get_type(input.schema())?))
    };
    let mut named = vec![own(from)?.alias(FROM), own(to)?.alias(TO)];
    let mut partition = Vec::new();
    for (n, key) in keys.into_iter().enumerate() {
        let name = format!("__session_key{n}");
        named.push(floats::one_form(key.unalias(), input.schema())?.alias(&name));
        partition.push(column(&name));
    }
    let before = over(&min_max::max_udaf(), column(TO), &partition, Some(FROM), Some(before_this_row()))?;
    // Rows of one time are of one session, so their order must not matter: a frame of RANGE takes them all.
    let number = over(&sum::sum_udaf(), column(FIRST), &partition, Some(FROM), None)?;
    let of_session: Vec<Expr> = partition.iter().cloned().chain([column(NUMBER)]).collect();
    let start = over(&min_max::min_udaf(), column(FROM), &of_session, None, None)?;
    let end = over(&min_max::max_udaf(), column(TO), &of_session, None, None)?;
    let first = column(BEFORE).is_null().or(column(FROM).gt(column(BEFORE)));
    let first = when(first, lit(1i64)).otherwise(lit(0i64))?;
    let plan = LogicalPlanBuilder::from(input)
        .project(columns.iter().cloned().chain(named))?
        .filter(column(TO).gt(column(FROM)))?
        .window(vec![before.alias(BEFORE)])?
        .build()?;
    let kept: Vec<Expr> = plan.schema().columns().into_iter().map(Expr::Column).collect();
    LogicalPlanBuilder::from(plan)
        .project(kept.into_iter().chain([first.alias(FIRST)]))?
        .window(vec![number.alias(NUMBER)])?
        .window(vec![start.alias(START), end.alias(END)])?
        .project(columns.into_iter().chain([column(START), column(END)]))?
        .build()
}

fn column(name: &str) -> Expr {
    Expr::Column(Column::from_name(name))
}

fn before_this_row() -> WindowFrame {
    WindowFrame::new_bounds(
        WindowFrameUnits::Rows,
        WindowFrameBound::Preceding(ScalarValue::UInt64(None)),
        WindowFrameBound::Preceding(ScalarValue::UInt64(Some(1))),
    )
}

fn over(
    function: &std::sync::Arc<AggregateUDF>,
    argument: Expr,
    partition: &[Expr],
    order: Option<&str>,
    frame: Option<WindowFrame>,
) -> Result<Expr> {
    let definition = WindowFunctionDefinition::AggregateUDF(function.clone());
    let call = Expr::from(WindowFunction::new(definition, vec![argument]));
    let order_by: Vec<_> = order.iter().map(|name| column(name).sort(true, false)).collect();
    let frame = frame.unwrap_or_else(|| WindowFrame::new((!order_by.is_empty()).then_some(false)));
    let call = call.partition_by(partition.to_vec()).window_frame(frame);
    if order_by.is_empty() { call.build() } else { call.order_by(order_by).build() }
}
