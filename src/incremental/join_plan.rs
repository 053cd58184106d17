//! What a plan is made before it is cut. DISTINCT over static tables becomes a grouping; subqueries over streams become joins, conditions go to the
//! joins that they are of, and joins are handed only the columns that something reads; a Top-N and an OVER are too.
//!
//! DataFusion's optimizer would do all of this, and more than can be had here: it would also move what decides about late
//! rows and about what is remembered. A plan without either is left as it is.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, JoinType};
use datafusion::error::Result as DfResult;
use datafusion::execution::SessionState;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::logical_expr::expr::{Exists, InSubquery};
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{
    Aggregate, Expr, Filter, Join, LogicalPlan, LogicalPlanBuilder, Projection, Subquery, SubqueryAlias, Window,
};
use datafusion::optimizer::OptimizerRule;
use datafusion::optimizer::decorrelate_predicate_subquery::DecorrelatePredicateSubquery;
use datafusion::optimizer::replace_distinct_aggregate::ReplaceDistinctWithAggregate;
use datafusion::optimizer::scalar_subquery_to_join::ScalarSubqueryToJoin;

use super::static_semi;
use crate::parser::OutputMode;
use crate::planner::join_bounds::is_join_of_streams;
use crate::planner::over;
use crate::planner::top::{self, TopNode};
use crate::planner::watermark::WatermarkNode;
use crate::planner::{any, reads_stream};

/// See the module's documentation.
///
/// # Errors
/// Of DataFusion, for a subquery that it can't make a join of.
pub fn prepare(state: &SessionState, plan: LogicalPlan, mode: OutputMode) -> DfResult<LogicalPlan> {
    let plan = plan.transform_down(|node| join_subqueries(state, node))?.data;
    let plan = plan.transform_up(keys_of_streams)?.data;
    let mut plan = plan.transform_up_with_subqueries(|node| group_distinct(state, node))?.data;
    if mode != OutputMode::Append && any(&plan, asks_streams) {
        let all = joins_all(state);
        plan = plan.transform_down(|node| join_values(&all, node))?.data;
    }
    if any(&plan, is_join_of_streams) {
        plan = plan.transform_down(sink_conditions)?.data;
    }
    // A bound of a Top-N may have stood above a join.
    let plan = top::find(plan, mode)?;
    let plan = if mode == OutputMode::Append { plan } else { over::untimed(plan)? };
    if !any(&plan, keeps_rows) {
        return Ok(plan);
    }
    let all = all_of(&plan);
    narrow(plan, &all)
}

/// Whether a node remembers rows, with all columns that they have.
fn keeps_rows(node: &LogicalPlan) -> bool {
    is_join_of_streams(node) || TopNode::of(node).is_some() || is_over(node)
}

fn is_over(node: &LogicalPlan) -> bool {
    matches!(node, LogicalPlan::Window(_)) && reads_stream(node)
}

/// IN and EXISTS over streams as semi and anti joins.
fn join_subqueries(state: &SessionState, node: LogicalPlan) -> DfResult<Transformed<LogicalPlan>> {
    let LogicalPlan::Filter(filter) = &node else { return Ok(Transformed::no(node)) };
    let streams = filter.predicate.exists(|expr| {
        Ok(match expr {
            Expr::Exists(Exists { subquery, .. }) | Expr::InSubquery(InSubquery { subquery, .. }) => {
                reads_stream(&subquery.subquery)
            }
            _ => false,
        })
    })?;
    if !streams {
        return Ok(Transformed::no(node));
    }
    DecorrelatePredicateSubquery::new().rewrite(node, state)
}

/// DISTINCT over static tables as a grouping, which is what a fragment runs.
fn group_distinct(state: &SessionState, node: LogicalPlan) -> DfResult<Transformed<LogicalPlan>> {
    match node {
        LogicalPlan::Distinct(_) if !reads_stream(&node) => ReplaceDistinctWithAggregate::new().rewrite(node, state),
        other => Ok(Transformed::no(other)),
    }
}

/// See [`static_semi::join_keys`].
fn keys_of_streams(node: LogicalPlan) -> DfResult<Transformed<LogicalPlan>> {
    Ok(match static_semi::join_keys(&node)? {
        Some(joined) => Transformed::yes(joined),
        None => Transformed::no(node),
    })
}

/// Whether a node asks for the value of a subquery over a stream.
fn asks_streams(node: &LogicalPlan) -> bool {
    values_of(node).iter().any(|subquery| reads_stream(&subquery.subquery))
}

/// The subqueries that stand for a value in a node's expressions.
fn values_of(node: &LogicalPlan) -> Vec<Subquery> {
    let mut found = Vec::new();
    for expr in node.expressions() {
        let walked = expr.apply(|e| {
            if let Expr::ScalarSubquery(subquery) = e {
                found.push(subquery.clone());
            }
            Ok(TreeNodeRecursion::Continue)
        });
        // The walk stops at no error of ours.
        if walked.is_err() {
            return Vec::new();
        }
    }
    found
}

/// The state that makes joins of all subqueries which stand for a value.
fn joins_all(state: &SessionState) -> SessionState {
    let mut config = state.config().clone().with_create_default_catalog_and_schema(false);
    config.options_mut().optimizer.enable_physical_uncorrelated_scalar_subquery = false;
    SessionStateBuilder::new_from_existing(state.clone()).with_config(config).build()
}

/// The value of a subquery over a stream, as a left join: it has one row at the most, for each row.
fn join_values(state: &SessionState, node: LogicalPlan) -> DfResult<Transformed<LogicalPlan>> {
    if !asks_streams(&node) || !node.inputs().into_iter().all(reads_stream) {
        return Ok(Transformed::no(node));
    }
    // A subquery that reads columns of the row is an aggregate of the rows that match it: DataFusion has made sure of that.
    let one = |subquery: &Subquery| {
        !subquery.outer_ref_columns.is_empty() || subquery.subquery.max_rows().is_some_and(|rows| rows <= 1)
    };
    if !values_of(&node).iter().all(one) {
        return Ok(Transformed::no(node));
    }
    ScalarSubqueryToJoin::new().rewrite(apart(node)?, state)
}

/// Gives the value of a subquery another name where a column beside it has its own: `sum(v)`, and the `sum(v)` of all.
fn apart(node: LogicalPlan) -> DfResult<LogicalPlan> {
    let taken: HashSet<String> =
        node.inputs().iter().flat_map(|input| input.schema().fields()).map(|field| field.name().clone()).collect();
    let one = |expr: Expr| {
        let Expr::ScalarSubquery(subquery) = expr else { return Ok(Transformed::no(expr)) };
        let columns = subquery.subquery.schema().columns();
        let [column] = columns.as_slice() else { return Ok(Transformed::no(Expr::ScalarSubquery(subquery))) };
        if !taken.contains(&column.name) {
            return Ok(Transformed::no(Expr::ScalarSubquery(subquery)));
        }
        let plan = subquery.subquery.as_ref().clone();
        let named = Expr::Column(column.clone()).alias(format!("value of {}", column.name));
        let plan = LogicalPlanBuilder::from(plan).project([named])?.build()?;
        Ok(Transformed::yes(Expr::ScalarSubquery(Subquery { subquery: Arc::new(plan), ..subquery })))
    };
    Ok(node.map_expressions(|expr| expr.transform_up(one))?.data)
}

/// Conditions of WHERE above a join of streams: to the side that they are of, or to the join.
fn sink_conditions(node: LogicalPlan) -> DfResult<Transformed<LogicalPlan>> {
    match node {
        LogicalPlan::Filter(filter) if is_join_of_streams(&filter.input) => {
            let LogicalPlan::Join(join) = filter.input.as_ref().clone() else {
                return Ok(Transformed::no(LogicalPlan::Filter(filter)));
            };
            let (join, rest) = sink(join, split_conjunction_owned(filter.predicate.clone()))?;
            let join = LogicalPlan::Join(join);
            Ok(Transformed::yes(match conjunction(rest) {
                Some(predicate) => LogicalPlan::Filter(Filter::try_new(predicate, Arc::new(join))?),
                None => join,
            }))
        }
        other => Ok(Transformed::no(other)),
    }
}

fn sink(mut join: Join, conditions: Vec<Expr>) -> DfResult<(Join, Vec<Expr>)> {
    use JoinType::{Inner, Left, LeftAnti, LeftMark, LeftSemi, Right, RightAnti, RightMark, RightSemi};
    let (mut left, mut right, mut both, mut rest) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for condition in conditions {
        let columns = condition.column_refs();
        let all_in = |schema: &DFSchema| columns.iter().all(|c| schema.maybe_index_of_column(c).is_some());
        if columns.is_empty() || condition.is_volatile() {
            rest.push(condition);
        } else if all_in(join.left.schema()) && matches!(join.join_type, Inner | Left | LeftSemi | LeftAnti | LeftMark)
        {
            left.push(condition);
        } else if all_in(join.right.schema())
            && matches!(join.join_type, Inner | Right | RightSemi | RightAnti | RightMark)
        {
            right.push(condition);
        } else if join.join_type == Inner && !has_subquery(&condition)? {
            both.push(condition);
        } else {
            rest.push(condition);
        }
    }
    let filtered = |input: Arc<LogicalPlan>, conditions: Vec<Expr>| -> DfResult<Arc<LogicalPlan>> {
        Ok(match conjunction(conditions) {
            Some(predicate) => Arc::new(LogicalPlan::Filter(Filter::try_new(predicate, input)?)),
            None => input,
        })
    };
    join.left = filtered(join.left, left)?;
    join.right = filtered(join.right, right)?;
    join.filter = conjunction(join.filter.into_iter().chain(both));
    Ok((join, rest))
}

fn has_subquery(expr: &Expr) -> DfResult<bool> {
    expr.exists(|e| {
        Ok(matches!(e, Expr::ScalarSubquery(_) | Expr::Exists(_) | Expr::InSubquery(_) | Expr::SetComparison(_)))
    })
}

type Wanted = BTreeSet<usize>;

fn all_of(plan: &LogicalPlan) -> Wanted {
    (0..plan.schema().fields().len()).collect()
}

/// The columns of `schema` that expressions read; all where that can't be told.
fn read_by<'a>(exprs: impl IntoIterator<Item = &'a Expr>, input: &LogicalPlan) -> DfResult<Wanted> {
    let mut wanted = Wanted::new();
    for expr in exprs {
        if has_subquery(expr)? {
            return Ok(all_of(input));
        }
        for column in expr.column_refs() {
            match input.schema().maybe_index_of_column(column) {
                Some(at) => wanted.insert(at),
                None => return Ok(all_of(input)),
            };
        }
    }
    Ok(wanted)
}

/// The same plan for one that reads only the columns `wanted`: it may have fewer.
fn narrow(plan: LogicalPlan, wanted: &Wanted) -> DfResult<LogicalPlan> {
    if !any(&plan, keeps_rows) {
        return Ok(plan);
    }
    if let Some(top) = TopNode::of(&plan) {
        return Ok(narrow_top(top.clone(), wanted)?.plan());
    }
    let below = |input: &Arc<LogicalPlan>, wanted: &Wanted| narrow(input.as_ref().clone(), wanted).map(Arc::new);
    if let Some(watermark) = WatermarkNode::of(&plan) {
        let mut wanted = wanted.clone();
        wanted.extend(watermark.input.schema().maybe_index_of_column(&watermark.column));
        let input = narrow(watermark.input.clone(), &wanted)?;
        return Ok(WatermarkNode::plan(input, watermark.column.clone(), watermark.spec.clone()));
    }
    Ok(match plan {
        LogicalPlan::Projection(Projection { expr, input, .. }) => {
            // A projection has one column at the least.
            let kept = |n: &usize| wanted.contains(n) || wanted.is_empty() && *n == 0;
            let expr: Vec<Expr> = expr.into_iter().enumerate().filter(|(n, _)| kept(n)).map(|(_, e)| e).collect();
            let input = below(&input, &read_by(&expr, &input)?)?;
            LogicalPlan::Projection(Projection::try_new(expr, input)?)
        }
        LogicalPlan::Filter(Filter { predicate, input, .. }) => {
            let mut wanted = wanted.clone();
            wanted.extend(read_by([&predicate], &input)?);
            LogicalPlan::Filter(Filter::try_new(predicate, below(&input, &wanted)?)?)
        }
        LogicalPlan::SubqueryAlias(SubqueryAlias { input, alias, .. }) => {
            LogicalPlan::SubqueryAlias(SubqueryAlias::try_new(below(&input, wanted)?, alias)?)
        }
        LogicalPlan::Aggregate(Aggregate { input, group_expr, aggr_expr, .. }) => {
            let input = below(&input, &read_by(group_expr.iter().chain(&aggr_expr), &input)?)?;
            LogicalPlan::Aggregate(Aggregate::try_new(input, group_expr, aggr_expr)?)
        }
        LogicalPlan::Join(join) => LogicalPlan::Join(narrow_join(join, wanted)?),
        LogicalPlan::Window(Window { input, window_expr, schema, .. }) => {
            let width = input.schema().fields().len();
            let mut read: Wanted = wanted.iter().copied().filter(|n| *n < width).collect();
            read.extend(read_by(&window_expr, &input)?);
            if read.len() == width {
                let input = below(&input, &read)?;
                return Ok(LogicalPlan::Window(Window::try_new_with_schema(window_expr, input, schema)?));
            }
            let input = project(narrow(input.as_ref().clone(), &read)?, input.schema(), &read)?;
            LogicalPlan::Window(Window::try_new(window_expr, Arc::new(input))?)
        }
        other => {
            let inputs = other.inputs().into_iter().map(|input| narrow(input.clone(), &all_of(input)));
            let inputs = inputs.collect::<DfResult<Vec<_>>>()?;
            other.with_new_exprs(other.expressions(), inputs)?
        }
    })
}

fn narrow_top(top: TopNode, wanted: &Wanted) -> DfResult<TopNode> {
    let schema = top.input.schema().clone();
    let mut read: Wanted = wanted.iter().copied().filter(|n| *n < schema.fields().len()).collect();
    read.extend(read_by(top.partition_by.iter().chain(top.order_by.iter().map(|by| &by.expr)), &top.input)?);
    let narrowed = narrow(top.input.clone(), &read)?;
    if read.len() == schema.fields().len() {
        return top.over(narrowed);
    }
    top.over(project(narrowed, &schema, &read)?)
}

/// Some of the columns of `schema`, which a plan has.
fn project(plan: LogicalPlan, schema: &DFSchema, columns: &Wanted) -> DfResult<LogicalPlan> {
    let columns = columns.iter().map(|n| {
        let (qualifier, field) = schema.qualified_field(*n);
        Expr::Column(Column::new(qualifier.cloned(), field.name()))
    });
    LogicalPlanBuilder::from(plan).project(columns)?.build()
}

fn narrow_join(join: Join, wanted: &Wanted) -> DfResult<Join> {
    let streams = reads_stream(&join.left) && reads_stream(&join.right);
    let whole = join.filter.as_ref().map_or(Ok(false), has_subquery)?;
    let side = |input: &Arc<LogicalPlan>, keys: Vec<&Expr>| -> DfResult<Arc<LogicalPlan>> {
        let schema = input.schema();
        // The result has the columns of the sides by their names.
        let mut read: Wanted = wanted
            .iter()
            .filter_map(|n| {
                let (qualifier, field) = join.schema.qualified_field(*n);
                schema.maybe_index_of_column(&Column::new(qualifier.cloned(), field.name()))
            })
            .collect();
        read.extend(read_by(keys, input)?);
        for column in join.filter.iter().flat_map(Expr::column_refs) {
            read.extend(schema.maybe_index_of_column(column));
        }
        if whole {
            read = all_of(input);
        }
        let narrowed = narrow(input.as_ref().clone(), &read)?;
        if !streams || read.len() == schema.fields().len() {
            return Ok(Arc::new(narrowed));
        }
        project(narrowed, schema, &read).map(Arc::new)
    };
    let left = side(&join.left, join.on.iter().map(|(left, _)| left).collect())?;
    let right = side(&join.right, join.on.iter().map(|(_, right)| right).collect())?;
    Join::try_new(
        left,
        right,
        join.on,
        join.filter,
        join.join_type,
        join.join_constraint,
        join.null_equality,
        join.null_aware,
    )
}
