//! The cut: a logical plan over streams becomes fragments and an operator.
//!
//! 1. DataFusion's analyzer, nothing else: optimizer rules would take streams and operators out of the plan.
//! 2. Refuse what can't run.
//! 3. Find the aggregate over a stream; follow its keys down to the watermark.
//! 4. Put leaves in place of streams, taps in place of watermarks, the batch's clock in place of `now()`.
//! 5. Below the aggregate: the first fragment. Above it: the fragment behind the operator.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, TableReference};
use datafusion::datasource::{provider_as_source, source_as_provider};
use datafusion::error::Result as DfResult;
use datafusion::execution::SessionState;
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan, LogicalPlanBuilder, TableScan, cast};

use super::aggregate::{Cut, Named, Request, TimeKey, cut, groups_by_time, leaf_schema, time_key};
use super::batch_cell::BatchCell;
use super::fragment::Fragment;
use super::now::replace_now;
use super::retract::{self, Hidden};
use super::tap::{Tap, TapKind};
use super::{AggregatePart, IncrementalPlan, Input, StaticTable, TargetTraits, WatermarkInput, mode, names};
use crate::error::{Error, Result};
use crate::operator::Emit;
use crate::parser::OutputMode;
use crate::planner::leaf::{Leaf, LeafTable};
use crate::planner::watermark::WatermarkNode;
use crate::planner::{any, expand, reads_stream, stream_of};

/// Plans a query for micro-batches.
///
/// # Errors
/// The refusals of the mode table; what can't run over a stream yet.
pub async fn plan(
    state: &SessionState,
    plan: LogicalPlan,
    mode: OutputMode,
    target: &TargetTraits,
    partitions: usize,
) -> Result<IncrementalPlan> {
    let plan = state.analyzer().execute_and_check(plan, state.config_options(), |_, _| {})?;
    if !reads_stream(&plan) {
        return Err(Error::invalid("the query reads no stream, so it would never change")
            .help("run it as a SELECT, or CREATE VIEW"));
    }
    let output = visible_schema(&plan);
    let found = find_aggregate(&plan)?;
    check(&plan, found.is_some(), mode)?;
    let zone = state.config_options().execution.time_zone.as_deref();
    let mut opened = open(plan, found.as_ref(), zone)?;
    let statics = statics(&opened.plan)?;
    let Some((aggregate, time)) = found else {
        mode::check_target(mode, target, false)?;
        let plan = expand::expand(opened.plan)?;
        let first = Fragment::plan(state, &plan, partitions, target.ordered, &Ok).await?;
        let OpenPlan { inputs, watermarks, cell, .. } = opened;
        return Ok(IncrementalPlan {
            mode,
            inputs,
            watermarks,
            statics,
            cell,
            first,
            aggregate: None,
            output,
            retracts: false,
        });
    };
    mode::check_aggregate(mode, time.is_some(), groups_by_time(&aggregate))?;
    let filters = filters_above(&opened.plan);
    mode::check_target(mode, target, mode == OutputMode::Update && filters)?;
    let retracts = mode == OutputMode::Update && (filters || target.signed);
    let emit = match mode {
        OutputMode::Append => Emit::Closed,
        OutputMode::Update => Emit::Changed { old: retracts },
        OutputMode::Complete => Emit::All,
    };
    let below = opened.aggregate.take().ok_or_else(|| Error::internal("the aggregate was lost"))?;
    let Named { keys, functions, .. } = Named::of(&below);
    let text = names::above(&opened.plan, &below, &[keys, functions].concat(), is_leaf);
    let request = Request { state, mode, emit, partitions, cell: &opened.cell };
    let Cut { first, chain } = cut(&below, time, &request).await?;
    let leaf = Leaf::new("aggregate", leaf_schema(&chain.aggregate.output, retracts));
    let mut above = replace_aggregate(opened.plan, &leaf, retracts)?;
    if retracts {
        above = retract::carry(above)?;
    }
    let post = Fragment::plan(state, &above, 1, true, &Ok).await?;
    let hidden = retracts.then(|| Hidden { visible: output.clone() });
    let part = AggregatePart { chain, post, leaf, hidden, ordered: target.ordered, text };
    let OpenPlan { inputs, watermarks, cell, .. } = opened;
    Ok(IncrementalPlan { mode, inputs, watermarks, statics, cell, first, aggregate: Some(part), output, retracts })
}

fn visible_schema(plan: &LogicalPlan) -> SchemaRef {
    let fields: Vec<_> = plan.schema().fields().iter().map(|f| f.as_ref().clone().with_nullable(true)).collect();
    Arc::new(Schema::new(fields))
}

/// The one aggregate over a stream, and its watermarked key.
fn find_aggregate(plan: &LogicalPlan) -> Result<Option<(Aggregate, Option<TimeKey>)>> {
    let mut found: Vec<Aggregate> = Vec::new();
    let walked = plan.apply(|node| {
        if let LogicalPlan::Aggregate(aggregate) = node
            && reads_stream(node)
        {
            found.push(aggregate.clone());
        }
        Ok(TreeNodeRecursion::Continue)
    });
    walked.map_err(Error::from)?;
    if found.len() > 1 {
        return Err(Error::not_yet("more than one aggregate over streams in a query"));
    }
    let Some(aggregate) = found.pop() else { return Ok(None) };
    if aggregate.group_expr.iter().any(|e| matches!(e, Expr::GroupingSet(_))) {
        return Err(Error::not_yet("GROUPING SETS, ROLLUP and CUBE over a stream"));
    }
    let time = time_key(&aggregate);
    Ok(Some((aggregate, time)))
}

fn check(plan: &LogicalPlan, aggregates: bool, output_mode: OutputMode) -> Result<()> {
    let (mut sorts, mut limits) = (false, false);
    let mut wrong = None;
    let walked = plan.apply(|node| {
        if !reads_stream(node) {
            return Ok(TreeNodeRecursion::Jump);
        }
        sorts |= matches!(node, LogicalPlan::Sort(_));
        limits |= matches!(node, LogicalPlan::Limit(_)) || matches!(node, LogicalPlan::Sort(s) if s.fetch.is_some());
        let below = |n: &LogicalPlan| matches!(n, LogicalPlan::Sort(_) | LogicalPlan::Limit(_)) && reads_stream(n);
        let result =
            mode::check_node(node).and_then(|()| mode::check_expressions(node, aggregates)).and_then(|()| match node {
                LogicalPlan::Aggregate(a) if any(&a.input, below) => {
                    Err(Error::unsupported("ORDER BY and LIMIT below an aggregate can't run over a stream")
                        .help("sort or limit the result instead, in OUTPUT MODE COMPLETE"))
                }
                _ => Ok(()),
            });
        if let Err(error) = result {
            wrong = Some(error);
            return Ok(TreeNodeRecursion::Stop);
        }
        Ok(TreeNodeRecursion::Continue)
    });
    walked.map_err(Error::from)?;
    match wrong {
        Some(error) => Err(error),
        None => {
            mode::check_top(output_mode, sorts, limits, aggregates)?;
            if aggregates { Ok(()) } else { mode::check_stateless(output_mode) }
        }
    }
}

/// Whether a node above the aggregate can make a row come and go.
fn filters_above(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Aggregate(_) => false,
        LogicalPlan::Filter(_) | LogicalPlan::Join(_) => {
            plan.inputs().into_iter().any(|i| any(i, |n| matches!(n, LogicalPlan::Aggregate(_))))
        }
        other => other.inputs().into_iter().any(filters_above),
    }
}

/// A plan whose streams are leaves.
struct OpenPlan {
    plan: LogicalPlan,
    /// Its aggregate over a stream.
    aggregate: Option<Aggregate>,
    inputs: Vec<Input>,
    watermarks: Vec<WatermarkInput>,
    cell: Arc<BatchCell>,
}

fn open(plan: LogicalPlan, aggregate: Option<&(Aggregate, Option<TimeKey>)>, zone: Option<&str>) -> Result<OpenPlan> {
    let mut count = 0;
    let walked = plan.apply(|node| {
        count += usize::from(WatermarkNode::of(node).is_some());
        Ok(TreeNodeRecursion::Continue)
    });
    walked.map_err(Error::from)?;
    let cell = Arc::new(BatchCell::new(count));
    let mut names: HashMap<String, usize> = HashMap::new();
    let (mut inputs, mut watermarks): (Vec<Input>, Vec<WatermarkInput>) = (Vec::new(), Vec::new());
    let opened = plan.transform_up(|node| {
        if let Some(stream) = stream_of(&node) {
            let LogicalPlan::TableScan(scan) = node else { return Ok(Transformed::no(node)) };
            let n = names.entry(stream.name.clone()).and_modify(|n| *n += 1).or_insert(1);
            let name = if *n == 1 { stream.name.clone() } else { format!("{}#{n}", stream.name) };
            let leaf = Leaf::new(name.clone(), stream.source_schema.clone());
            let source = provider_as_source(leaf.table());
            inputs.push(Input { name, stream, leaf });
            return Ok(Transformed::yes(LogicalPlan::TableScan(TableScan { source, ..scan })));
        }
        let Some(watermark) = WatermarkNode::of(&node) else { return Ok(Transformed::no(node)) };
        let name = inputs.last().map(|i| i.name.clone()).unwrap_or_default();
        let kind = TapKind::Watermark { input: watermarks.len(), max_future_skew: watermark.spec.max_future_skew };
        watermarks.push(WatermarkInput { name, spec: watermark.spec.clone() });
        Ok(Transformed::yes(Tap::plan(watermark.input.clone(), Expr::Column(watermark.column.clone()), kind, &cell)))
    });
    let plan = replace_now(opened?.data, zone, &cell)?;
    let mut below = None;
    if aggregate.is_some() {
        let walked = plan.apply(|node| {
            if let LogicalPlan::Aggregate(found) = node
                && any(node, is_leaf)
            {
                below = Some(found.clone());
                return Ok(TreeNodeRecursion::Stop);
            }
            Ok(TreeNodeRecursion::Continue)
        });
        walked.map_err(Error::from)?;
    }
    Ok(OpenPlan { plan, aggregate: below, inputs, watermarks, cell })
}

fn is_leaf(node: &LogicalPlan) -> bool {
    let LogicalPlan::TableScan(scan) = node else { return false };
    source_as_provider(&scan.source).is_ok_and(|p| (p.as_ref() as &dyn std::any::Any).is::<LeafTable>())
}

/// The static tables that a plan reads, each once, by name.
fn statics(plan: &LogicalPlan) -> Result<Vec<StaticTable>> {
    let mut tables: Vec<StaticTable> = Vec::new();
    let walked = plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            let name = scan.table_name.to_string();
            if !is_leaf(node) && !tables.iter().any(|t| t.name == name) {
                tables.push(StaticTable { name, provider: source_as_provider(&scan.source)? });
            }
        }
        Ok(TreeNodeRecursion::Continue)
    });
    walked.map_err(Error::from)?;
    tables.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(tables)
}

/// Puts the operator's result in place of the aggregate, under the names that the aggregate's columns had.
fn replace_aggregate(plan: LogicalPlan, leaf: &Arc<Leaf>, hidden: bool) -> Result<LogicalPlan> {
    let replaced = plan.transform_down(|node| {
        let LogicalPlan::Aggregate(aggregate) = &node else { return Ok(Transformed::no(node)) };
        if !any(&node, is_leaf) {
            return Ok(Transformed::no(node));
        }
        let scan = result_of(aggregate, leaf, hidden)?;
        Ok(Transformed::new(scan, true, TreeNodeRecursion::Jump))
    });
    Ok(replaced?.data)
}

fn result_of(aggregate: &Aggregate, leaf: &Arc<Leaf>, hidden: bool) -> DfResult<LogicalPlan> {
    let table = TableReference::bare("aggregate");
    let scan = LogicalPlanBuilder::scan(table.clone(), provider_as_source(leaf.table()), None)?.build()?;
    let column = |name: &str| Expr::Column(Column::new(Some(table.clone()), name));
    let mut exprs: Vec<Expr> = Vec::new();
    for (n, (qualifier, field)) in aggregate.schema.iter().enumerate() {
        let name = format!("c{n}");
        let result = column(&name);
        // What is remembered has no dictionaries.
        let is = scan.schema().field_with_unqualified_name(&name)?.data_type();
        let result = if is == field.data_type() { result } else { cast(result, field.data_type().clone()) };
        exprs.push(result.alias_qualified(qualifier.cloned(), field.name()));
    }
    if hidden {
        exprs.extend(super::retract::fields().iter().map(|f| column(f.name())));
    }
    LogicalPlanBuilder::from(scan).project(exprs)?.build()
}
