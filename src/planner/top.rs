//! Top-N in a plan: the first rows of each partition in an order, as one node.
//!
//! ```text
//! Limit 10                       Filter r <= 3
//!   Projection …                   Projection …, row_number() … AS r
//!     Sort v DESC                    Window row_number() PARTITION BY k ORDER BY v DESC
//!       Input                          Input
//! ```
//! (DISTINCT ON with ORDER BY is the first row of each key.) In both, the lowest of the nodes becomes a [`TopNode`] that gives the rows which can come through. A filter stays: it may
//! ask for more than the bound says.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::datatypes::FieldRef;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, DFSchemaRef, ScalarValue, TableReference};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::{Sort as SortExpr, WindowFunction};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{
    Between, BinaryExpr, Distinct, DistinctOn, Expr, Extension, FetchType, Filter, Limit, LogicalPlan,
    LogicalPlanBuilder, Operator, Projection, SkipType, Sort, SubqueryAlias, UserDefinedLogicalNodeCore, Window,
    WindowFunctionDefinition,
};

use super::join_bounds::is_join_of_streams;
use super::over::Over;
use super::reads_stream;
use super::within::is_mark;
use crate::operator::Rank;
use crate::parser::OutputMode;

/// A column of a plan.
type Named = (Option<TableReference>, FieldRef);

/// See the module's documentation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopNode {
    pub input: LogicalPlan,
    pub partition_by: Vec<Expr>,
    pub order_by: Vec<SortExpr>,
    /// The numbers that are columns behind those of the input, and what they are called.
    pub ranks: Vec<Rank>,
    rank_columns: Vec<Named>,
    /// By which number rows are the first ones; those up to `skip` are left out, then there are `fetch` numbers.
    pub by: Rank,
    pub skip: u64,
    pub fetch: u64,
    schema: DFSchemaRef,
}

// Neither looks at the input: hashing and ordering a plan would compile all of its types here once more.
impl Hash for TopNode {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.partition_by, &self.order_by, &self.ranks, self.by, self.skip, self.fetch).hash(state);
    }
}

impl PartialOrd for TopNode {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        (self == other).then_some(std::cmp::Ordering::Equal)
    }
}

impl TopNode {
    /// The node of a plan that is one.
    pub fn of(plan: &LogicalPlan) -> Option<&TopNode> {
        let LogicalPlan::Extension(extension) = plan else { return None };
        extension.node.as_any().downcast_ref::<TopNode>()
    }

    /// The node as a plan.
    pub fn plan(self) -> LogicalPlan {
        LogicalPlan::Extension(Extension { node: Arc::new(self) })
    }

    /// The same over another input, which may have fewer columns.
    ///
    /// # Errors
    /// Of DataFusion, for columns that are named alike.
    pub fn over(self, input: LogicalPlan) -> DfResult<Self> {
        let columns = input.schema().iter().map(|(q, f)| (q.cloned(), f.clone())).chain(self.rank_columns.clone());
        let schema = DFSchema::new_with_metadata(columns.collect(), input.schema().metadata().clone())?;
        Ok(TopNode { schema: Arc::new(schema), input, ..self })
    }

    fn new(
        input: LogicalPlan,
        partition_by: Vec<Expr>,
        order_by: Vec<SortExpr>,
        ranks: Vec<(Rank, Named)>,
    ) -> DfResult<Self> {
        let schema = input.schema().clone();
        let (ranks, rank_columns) = ranks.into_iter().unzip();
        let (by, skip, fetch) = (Rank::RowNumber, 0, 0);
        let node =
            TopNode { input: input.clone(), partition_by, order_by, ranks, rank_columns, by, skip, fetch, schema };
        node.over(input)
    }
}

impl UserDefinedLogicalNodeCore for TopNode {
    fn name(&self) -> &str {
        "Top"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        self.partition_by.iter().chain(self.order_by.iter().map(|by| &by.expr)).cloned().collect()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "Top: {} of {} behind {}", self.by.name(), self.fetch, self.skip)
    }

    fn with_exprs_and_inputs(&self, exprs: Vec<Expr>, mut inputs: Vec<LogicalPlan>) -> DfResult<Self> {
        let (partitions, orders) = (self.partition_by.len(), self.order_by.len());
        let Some(input) = inputs.pop().filter(|_| exprs.len() == partitions + orders) else {
            return datafusion::common::internal_err!("a top has one input, and the expressions that it had");
        };
        let mut exprs = exprs.into_iter();
        let partition_by = exprs.by_ref().take(partitions).collect();
        let order_by = exprs.zip(&self.order_by).map(|(expr, by)| SortExpr { expr, ..by.clone() }).collect();
        TopNode { partition_by, order_by, ..self.clone() }.over(input)
    }
}

/// Puts the nodes in place of what they stand for, over streams. In COMPLETE all rows of the result are sent in every batch, so what
/// is on top of an operator that groups is sorted then and needs no memory. In APPEND numbers by a watermarked time stay those of an
/// OVER: the first rows by time are final when the watermark passes them.
///
/// # Errors
/// Of DataFusion.
pub fn find(plan: LogicalPlan, mode: OutputMode) -> DfResult<LogicalPlan> {
    let mut sorted = if mode == OutputMode::Complete { top_sort(&plan).cloned() } else { None };
    let found = plan.transform_down(|node| {
        if sorted.as_ref() == Some(&node) {
            sorted = None;
            return whole_result(node);
        }
        match node {
            LogicalPlan::Limit(limit) => limited(limit),
            LogicalPlan::Filter(filter) if mode == OutputMode::Append && is_final_by_time(&filter) => {
                Ok(Transformed::no(LogicalPlan::Filter(filter)))
            }
            LogicalPlan::Filter(filter) if reads_stream(&filter.input) => numbered(filter),
            LogicalPlan::Distinct(Distinct::On(on)) if on.sort_expr.is_some() && reads_stream(&on.input) => {
                first_of(on)
            }
            other => Ok(Transformed::no(other)),
        }
    });
    Ok(found?.data)
}

/// Whether a limit is one of sorted rows, as far as rows pass one by one.
pub fn is_sorted(limit: &Limit) -> bool {
    sort_below(&limit.input).is_some()
}

fn sort_below(plan: &LogicalPlan) -> Option<&Sort> {
    match plan {
        LogicalPlan::Sort(sort) => Some(sort),
        LogicalPlan::Projection(Projection { input, .. }) | LogicalPlan::SubqueryAlias(SubqueryAlias { input, .. }) => {
            sort_below(input)
        }
        _ => None,
    }
}

/// The topmost node that sorts or limits sorted rows, where nothing but names and columns is above it.
fn top_sort(plan: &LogicalPlan) -> Option<&LogicalPlan> {
    match plan {
        LogicalPlan::Sort(_) => Some(plan),
        LogicalPlan::Limit(limit) => is_sorted(limit).then_some(plan),
        LogicalPlan::Projection(Projection { input, .. }) | LogicalPlan::SubqueryAlias(SubqueryAlias { input, .. }) => {
            top_sort(input)
        }
        _ => None,
    }
}

/// A sort of the whole result: over what groups it stays; otherwise there is a top below it.
fn whole_result(node: LogicalPlan) -> DfResult<Transformed<LogicalPlan>> {
    match node {
        LogicalPlan::Limit(limit) if !sort_below(&limit.input).is_some_and(|sort| groups(&sort.input)) => {
            let Some((skip, fetch)) = numbers(&limit) else { return Ok(Transformed::no(LogicalPlan::Limit(limit))) };
            let plan = replace_sort(&limit.input, &|sort| {
                let top = TopNode::new(sort.input.as_ref().clone(), Vec::new(), sort.expr.clone(), Vec::new())?;
                Ok(LogicalPlan::Sort(settled(Sort {
                    input: Arc::new(TopNode { skip, fetch, ..top }.plan()),
                    ..sort.clone()
                })))
            })?;
            Ok(Transformed::yes(plan))
        }
        LogicalPlan::Limit(limit) => {
            let input = replace_sort(&limit.input, &|sort| Ok(LogicalPlan::Sort(settled(sort.clone()))))?;
            Ok(Transformed::yes(LogicalPlan::Limit(Limit { input: Arc::new(input), ..limit })))
        }
        LogicalPlan::Sort(sort) => Ok(Transformed::yes(LogicalPlan::Sort(settled(sort)))),
        other => Ok(Transformed::no(other)),
    }
}

/// Rows that a sort finds equal come in the order of their columns, from left to right.
fn settled(mut sort: Sort) -> Sort {
    for (qualifier, field) in sort.input.schema().iter() {
        let has_order = crate::delta::keys::KeyCodec::new(std::slice::from_ref(field)).is_ok();
        let expr = Expr::Column(Column::new(qualifier.cloned(), field.name()));
        if has_order && !sort.expr.iter().any(|by| by.expr == expr) {
            sort.expr.push(SortExpr { expr, asc: true, nulls_first: true });
        }
    }
    sort
}

/// Whether the topmost operator of a plan is one whose result can be sent whole.
fn groups(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Aggregate(_) | LogicalPlan::Distinct(_) => reads_stream(plan),
        LogicalPlan::Projection(_) | LogicalPlan::Filter(_) | LogicalPlan::SubqueryAlias(_) => {
            plan.inputs().first().is_some_and(|input| groups(input))
        }
        LogicalPlan::Join(join) if !is_join_of_streams(plan) => {
            groups(if reads_stream(&join.left) { &join.left } else { &join.right })
        }
        _ => false,
    }
}

fn numbers(limit: &Limit) -> Option<(u64, u64)> {
    match (limit.get_skip_type().ok()?, limit.get_fetch_type().ok()?) {
        (SkipType::Literal(skip), FetchType::Literal(Some(fetch))) => Some((skip as u64, fetch as u64)),
        _ => None,
    }
}

fn replace_sort(plan: &LogicalPlan, by: &dyn Fn(&Sort) -> DfResult<LogicalPlan>) -> DfResult<LogicalPlan> {
    match plan {
        LogicalPlan::Sort(sort) => by(sort),
        other => {
            let inputs = other.inputs().into_iter().map(|input| replace_sort(input, by)).collect::<DfResult<_>>()?;
            other.with_new_exprs(other.expressions(), inputs)
        }
    }
}

/// `ORDER BY … LIMIT n`
fn limited(limit: Limit) -> DfResult<Transformed<LogicalPlan>> {
    let sort = sort_below(&limit.input).filter(|sort| reads_stream(&sort.input));
    let (Some(_), Some((skip, fetch))) = (sort, numbers(&limit)) else {
        return Ok(Transformed::no(LogicalPlan::Limit(limit)));
    };
    let plan = replace_sort(&limit.input, &|sort| {
        let top = TopNode::new(sort.input.as_ref().clone(), Vec::new(), sort.expr.clone(), Vec::new())?;
        Ok(TopNode { skip, fetch, ..top }.plan())
    })?;
    Ok(Transformed::yes(plan))
}

/// Whether a filter bounds the numbers that rows have in their partitions.
pub fn is_numbered(filter: &Filter) -> bool {
    numbers_of(filter).is_some()
}

/// Whether the numbers that a filter bounds are by a watermarked time, in partitions that the watermark does not end.
fn is_final_by_time(filter: &Filter) -> bool {
    let over = numbers_of(filter).and_then(|numbers| Over::of(numbers.window).ok());
    over.is_some_and(|over| over.time.is_some() && over.ends.is_none())
}

/// The ranks that are asked for below a filter which bounds one of them: that one's place and bound.
struct Numbers<'a> {
    window: &'a Window,
    calls: Vec<(Rank, &'a WindowFunction)>,
    at: usize,
    last: u64,
}

fn numbers_of(filter: &Filter) -> Option<Numbers<'_>> {
    let bound = split_conjunction(&filter.predicate).into_iter().find_map(|condition| {
        let (column, last) = upper_bound(condition)?;
        let (window, at) = window_column(&filter.input, filter.input.schema().maybe_index_of_column(column)?)?;
        Some((window, at, last))
    });
    let (window, at, last) = bound?;
    let calls: Vec<(Rank, &WindowFunction)> = window.window_expr.iter().map(rank_call).collect::<Option<_>>()?;
    let (_, first) = calls.first()?;
    let alike = |(_, call): &(Rank, &WindowFunction)| {
        call.params.partition_by == first.params.partition_by && call.params.order_by == first.params.order_by
    };
    let ordered = !first.params.order_by.is_empty() && calls.iter().all(alike);
    ordered.then_some(Numbers { window, calls, at, last })
}

/// A filter of the numbers that rows have in their partitions.
fn numbered(filter: Filter) -> DfResult<Transformed<LogicalPlan>> {
    let Some(Numbers { window, calls, at, last }) = numbers_of(&filter) else {
        return Ok(Transformed::no(LogicalPlan::Filter(filter)));
    };
    let (by, first) = calls[at];
    let (partition_by, order_by) = (first.params.partition_by.clone(), first.params.order_by.clone());
    let width = window.input.schema().fields().len();
    let columns = window.schema.iter().skip(width).map(|(q, f)| (q.cloned(), f.clone()));
    let ranks = calls.iter().map(|(rank, _)| *rank).zip(columns).collect();
    let top = TopNode::new(window.input.as_ref().clone(), partition_by, order_by, ranks)?;
    let top = TopNode { by, fetch: last, ..top }.plan();
    let input = replace_window(&filter.input, &top)?;
    Ok(Transformed::yes(LogicalPlan::Filter(Filter::try_new(filter.predicate, Arc::new(input))?)))
}

/// `DISTINCT ON (keys) … ORDER BY keys, …`: the first row of each key in that order.
fn first_of(on: DistinctOn) -> DfResult<Transformed<LogicalPlan>> {
    if on.on_expr.iter().any(is_mark) {
        return Ok(Transformed::no(LogicalPlan::Distinct(Distinct::On(on))));
    }
    let order_by = on.sort_expr.clone().unwrap_or_default();
    let top = TopNode::new(on.input.as_ref().clone(), on.on_expr.clone(), order_by, Vec::new())?;
    let named = on.select_expr.iter().zip(on.schema.iter());
    let columns =
        named.map(|(expr, (qualifier, field))| expr.clone().alias_qualified(qualifier.cloned(), field.name()));
    let plan = LogicalPlanBuilder::from(TopNode { fetch: 1, ..top }.plan()).project(columns)?.build()?;
    Ok(Transformed::yes(plan))
}

fn replace_window(plan: &LogicalPlan, by: &LogicalPlan) -> DfResult<LogicalPlan> {
    match plan {
        LogicalPlan::Window(_) => Ok(by.clone()),
        other => {
            let inputs = other.inputs().into_iter().map(|input| replace_window(input, by)).collect::<DfResult<_>>()?;
            other.with_new_exprs(other.expressions(), inputs)
        }
    }
}

/// The window that column `at` of a plan is of, as far as rows pass one by one, and which of its calls.
fn window_column(plan: &LogicalPlan, at: usize) -> Option<(&Window, usize)> {
    match plan {
        LogicalPlan::Window(window) => Some((window, at.checked_sub(window.input.schema().fields().len())?)),
        LogicalPlan::SubqueryAlias(alias) => window_column(&alias.input, at),
        LogicalPlan::Projection(projection) => {
            let mut expr = projection.expr.get(at)?;
            while let Expr::Alias(alias) = expr {
                expr = &alias.expr;
            }
            let Expr::Column(column) = expr else { return None };
            window_column(&projection.input, projection.input.schema().maybe_index_of_column(column)?)
        }
        _ => None,
    }
}

fn rank_call(expr: &Expr) -> Option<(Rank, &WindowFunction)> {
    match expr {
        Expr::Alias(alias) => rank_call(&alias.expr),
        Expr::WindowFunction(call) => {
            let WindowFunctionDefinition::WindowUDF(function) = &call.fun else { return None };
            let rank = match function.name() {
                "row_number" => Rank::RowNumber,
                "rank" => Rank::Rank,
                "dense_rank" => Rank::DenseRank,
                _ => return None,
            };
            (call.params.args.is_empty() && call.params.filter.is_none()).then_some((rank, call.as_ref()))
        }
        _ => None,
    }
}

/// `column <= n`, however it is said: the column, and the greatest number that fulfils it.
fn upper_bound(condition: &Expr) -> Option<(&Column, u64)> {
    let (column, last) = match condition {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let (column, op, number) = match (column_of(left), column_of(right)) {
                (Some(column), None) => (column, *op, number_of(right)?),
                (None, Some(column)) => (column, op.swap()?, number_of(left)?),
                _ => return None,
            };
            let last = match op {
                Operator::Lt => number.saturating_sub(1),
                Operator::LtEq | Operator::Eq => number,
                _ => return None,
            };
            (column, last)
        }
        Expr::Between(Between { expr, negated: false, high, .. }) => (column_of(expr)?, number_of(high)?),
        Expr::InList(list) if !list.negated => {
            let numbers: Option<Vec<i64>> = list.list.iter().map(number_of).collect();
            (column_of(&list.expr)?, numbers?.into_iter().max()?)
        }
        _ => return None,
    };
    Some((column, u64::try_from(last).unwrap_or(0)))
}

fn column_of(expr: &Expr) -> Option<&Column> {
    match expr {
        Expr::Column(column) => Some(column),
        Expr::Cast(cast) => column_of(&cast.expr),
        Expr::TryCast(cast) => column_of(&cast.expr),
        _ => None,
    }
}

fn number_of(expr: &Expr) -> Option<i64> {
    match expr {
        Expr::Literal(value, _) if value.data_type().is_integer() => {
            match value.cast_to(&arrow::datatypes::DataType::Int64).ok()? {
                ScalarValue::Int64(number) => number,
                _ => None,
            }
        }
        Expr::Cast(cast) => number_of(&cast.expr),
        Expr::TryCast(cast) => number_of(&cast.expr),
        _ => None,
    }
}
