//! What a plan is, looked at before it is cut: what it reads, what it remembers, and whether its mode allows it.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::{Aggregate, Distinct, Expr, LogicalPlan};

use super::aggregate::{Named, order_matters};
use super::{StaticTable, mode, names};
use crate::error::{Error, Result};
use crate::parser::OutputMode;
use crate::planner::join_bounds::is_join_of_streams;
use crate::planner::session_functions::gives_sessions;
use crate::planner::top::TopNode;
use crate::planner::watermark::WatermarkNode;
use crate::planner::{any, quantified, reads_stream, stream_of};

pub(super) fn is_top(node: &LogicalPlan) -> bool {
    TopNode::of(node).is_some()
}

pub(super) fn visible_schema(plan: &LogicalPlan) -> SchemaRef {
    nullable(plan.schema().inner())
}

pub(super) fn nullable(schema: &SchemaRef) -> SchemaRef {
    Arc::new(Schema::new(schema.fields().iter().map(|f| f.as_ref().clone().with_nullable(true)).collect::<Vec<_>>()))
}

/// The first aggregate over a stream, from the top down.
pub(super) fn top_aggregate(plan: &LogicalPlan) -> Result<Option<Aggregate>> {
    let mut found = None;
    let walked = plan.apply(|node| {
        if let LogicalPlan::Aggregate(aggregate) = node
            && reads_stream(node)
        {
            found = Some(aggregate.clone());
            return Ok(TreeNodeRecursion::Stop);
        }
        Ok(TreeNodeRecursion::Continue)
    });
    walked.map_err(Error::from)?;
    Ok(found)
}

/// What the plan makes of the result of its topmost operator, as text: other rows if this is another.
pub(super) fn text_above(plan: &LogicalPlan, aggregate: Option<&Aggregate>) -> String {
    let named = aggregate.map(Named::of).map(|named| [named.keys, named.functions].concat()).unwrap_or_default();
    names::above(plan, aggregate, &named, |node| stream_of(node).is_some())
}

/// What is made of the results of the operators below a node, as text, without the names that a query gives its relations:
/// rows that are taken back later must be those that were given.
pub(super) fn text_between(plan: &LogicalPlan) -> Result<String> {
    let aggregate = top_aggregate(plan)?;
    let named =
        aggregate.as_ref().map(Named::of).map(|named| [named.keys, named.functions].concat()).unwrap_or_default();
    let columns = aggregate.iter().flat_map(|a| a.schema.fields()).map(|field| field.name().clone());
    let names: HashMap<String, String> = columns.zip(named).collect();
    let mut parts = Vec::new();
    let mut node = plan;
    while !remembers(node) {
        match node {
            LogicalPlan::SubqueryAlias(_) => {}
            LogicalPlan::Projection(projection) => {
                let exprs = names::without_relations(&projection.expr, &names);
                parts.push(format!("SELECT {}", exprs.join(", ")));
            }
            LogicalPlan::Filter(filter) => {
                let predicate = names::without_relations(std::slice::from_ref(&filter.predicate), &names);
                parts.push(format!("WHERE {}", predicate.join(", ")));
            }
            LogicalPlan::Union(union) => {
                let inputs = union.inputs.iter().map(|input| text_between(input)).collect::<Result<Vec<_>>>()?;
                parts.push(inputs.join(" UNION "));
                break;
            }
            other => {
                let exprs = names::without_relations(&other.expressions(), &names);
                parts.push(format!("{} {}", kind(other), exprs.join(", ")));
            }
        }
        let (streaming, fixed): (Vec<_>, Vec<_>) = node.inputs().into_iter().partition(|input| reads_stream(input));
        parts.extend(fixed.iter().map(|table| table.display_indent().to_string().replace('\n', " ")));
        match streaming.first() {
            Some(input) => node = *input,
            None => break,
        }
    }
    Ok(parts.join(" of "))
}

/// Whether a node over streams is an operator, or a stream.
fn remembers(node: &LogicalPlan) -> bool {
    let groups = matches!(node, LogicalPlan::Aggregate(_) | LogicalPlan::Window(_) | LogicalPlan::Distinct(_));
    groups || is_top(node) || is_join_of_streams(node) || gives_sessions(node) || stream_of(node).is_some()
}

/// What kind of node it is: the first word of its text.
fn kind(node: &LogicalPlan) -> String {
    let text = node.display().to_string();
    text.split([':', ' ']).next().unwrap_or_default().to_uppercase()
}

pub(super) fn order_matters_in(plan: &LogicalPlan) -> bool {
    any(plan, |node| match node {
        LogicalPlan::Aggregate(aggregate) => aggregate.aggr_expr.iter().any(order_matters),
        other => {
            matches!(other, LogicalPlan::Distinct(Distinct::On(_)) | LogicalPlan::Limit(_) | LogicalPlan::Window(_))
        }
    })
}

/// `others`: it joins streams, gives rows their sessions or looks at the rows around them, which remembers too, but gives nothing
/// that can be sent whole.
pub(super) fn check(plan: &LogicalPlan, others: bool, output_mode: OutputMode) -> Result<()> {
    // What groups: its result can be sent whole.
    let aggregates = any(plan, |node| {
        let groups = matches!(node, LogicalPlan::Aggregate(_) | LogicalPlan::Distinct(Distinct::All(_)));
        (groups || is_top(node)) && reads_stream(node)
    });
    let on = |node: &LogicalPlan| matches!(node, LogicalPlan::Distinct(Distinct::On(_))) && reads_stream(node);
    let remembers = aggregates || any(plan, on);
    let (mut sorts, limits) = (false, limits_result(plan));
    let mut wrong = None;
    let walked = plan.apply(|node| {
        if !reads_stream(node) {
            return Ok(TreeNodeRecursion::Jump);
        }
        sorts |= matches!(node, LogicalPlan::Sort(_));
        let below = |n: &LogicalPlan| matches!(n, LogicalPlan::Sort(_)) && reads_stream(n);
        let result = mode::check_node(node, output_mode)
            .and_then(|()| quantified::check(node))
            .and_then(|()| mode::check_expressions(node, remembers || others, output_mode))
            .and_then(|()| match node {
                LogicalPlan::Aggregate(a) if any(&a.input, below) => {
                    Err(Error::unsupported("ORDER BY below an aggregate can't run over a stream")
                        .help("sort the result instead, in OUTPUT MODE COMPLETE, or add LIMIT n"))
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
            if aggregates || remembers { Ok(()) } else { mode::check_stateless(output_mode, others) }
        }
    }
}

/// Whether what a plan gives, not what one of its operators is given, is limited.
pub(super) fn limits_result(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Limit(_) => reads_stream(plan),
        LogicalPlan::Sort(sort) if sort.fetch.is_some() => reads_stream(plan),
        LogicalPlan::Aggregate(_) | LogicalPlan::Distinct(_) | LogicalPlan::Window(_) => false,
        node if is_top(node) || is_join_of_streams(node) => false,
        node => node.inputs().into_iter().any(limits_result),
    }
}

pub(super) fn watermarks(plan: &LogicalPlan) -> Result<usize> {
    let mut count = 0;
    let walked = plan.apply(|node| {
        count += usize::from(WatermarkNode::of(node).is_some());
        Ok(TreeNodeRecursion::Continue)
    });
    walked.map_err(Error::from)?;
    Ok(count)
}

/// The static tables that a plan reads, each once, by name.
pub(super) fn statics(plan: &LogicalPlan) -> Result<Vec<StaticTable>> {
    let mut tables: Vec<StaticTable> = Vec::new();
    let walked = plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            let name = scan.table_name.to_string();
            if stream_of(node).is_none() && !tables.iter().any(|t| t.name == name) {
                tables.push(StaticTable { name, provider: source_as_provider(&scan.source)? });
            }
        }
        Ok(TreeNodeRecursion::Continue)
    });
    walked.map_err(Error::from)?;
    tables.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(tables)
}

/// The static tables that a node itself reads: on its other side, and in its subqueries.
pub(super) fn met_statics(node: &LogicalPlan) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for input in node.inputs().into_iter().filter(|input| !reads_stream(input)) {
        names.extend(statics(input)?.into_iter().map(|table| table.name));
    }
    for expr in node.expressions() {
        let walked = expr.apply(|e| {
            let subquery = match e {
                Expr::ScalarSubquery(subquery) => Some(subquery),
                Expr::Exists(exists) => Some(&exists.subquery),
                Expr::InSubquery(within) => Some(&within.subquery),
                _ => None,
            };
            if let Some(subquery) = subquery {
                names.extend(statics(&subquery.subquery)?.into_iter().map(|table| table.name));
            }
            Ok(TreeNodeRecursion::Continue)
        });
        walked.map_err(Error::from)?;
    }
    Ok(names)
}
