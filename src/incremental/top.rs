//! A Top-N, cut: the fragment that hands it rows, and what the operator needs to know.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Schema};
use datafusion::common::{Column, TableReference};
use datafusion::logical_expr::{Expr, LogicalPlan};

use super::aggregate::{Request, late_tap, strip_alias};
use super::fragment::Fragment;
use super::join::order;
use super::names::Names;
use super::ranked::{Row, forget_of, ranked, type_of};
use super::retract;
use crate::error::{Error, Result};
use crate::operator::{Bound, Emit, Rank, RankedSpec, TopSpec};
use crate::planner::event_time::{EventTime, closing, event_time};
use crate::planner::expand;
use crate::planner::top::TopNode;

/// The time among what rows are partitioned by, found while watermarks can still be seen: its number, and what it is.
pub fn time_of(top: &TopNode) -> Option<(usize, EventTime)> {
    closing(top.partition_by.iter().enumerate().filter_map(|(n, expr)| Some((n, event_time(&top.input, expr)?))))
}

/// The columns of its result.
pub fn columns_of(top: &TopNode) -> Vec<(Option<TableReference>, FieldRef)> {
    use datafusion::logical_expr::UserDefinedLogicalNodeCore;
    top.schema().iter().map(|(qualifier, field)| (qualifier.cloned(), field.clone())).collect()
}

/// Cuts a Top-N from an input whose leaves are there already; `signed`: it takes rows back.
///
/// # Errors
/// Of DataFusion; Unsupported: columns that have no order.
pub async fn cut(
    top: &TopNode,
    time: Option<(usize, EventTime)>,
    input: LogicalPlan,
    signed: bool,
    emit: Emit,
    request: &mut Request<'_>,
) -> Result<(Fragment, Arc<TopSpec>)> {
    let visible = top.input.schema().clone();
    let mut input = if signed { retract::carry(input)? } else { input };
    if let Some((at, time)) = time {
        input = late_tap(input, strip_alias(&top.partition_by[at]), time, time != EventTime::Time, request)?;
    }
    let mut row = Row::default();
    let names = Names::of(top.partition_by.iter().chain(top.order_by.iter().map(|by| &by.expr)));
    let partition: Vec<usize> =
        top.partition_by.iter().map(|expr| row.add(expr, names.name(expr), &visible)).collect::<Result<_>>()?;
    let width = row.len();
    let order_by: Vec<usize> =
        top.order_by.iter().map(|by| row.add(&by.expr, names.name(&by.expr), &visible)).collect::<Result<_>>()?;
    let mut columns = Vec::new();
    for (qualifier, field) in visible.iter() {
        let column = Expr::Column(Column::new(qualifier.cloned(), field.name()));
        columns.push(row.add(&column, field.name().clone(), &visible)?);
    }
    let plan = row.plan(input, signed)?;
    let is = |n: usize| type_of(&plan, n);
    let mut output: Vec<FieldRef> = columns.iter().map(|at| is(*at)).enumerate().map(column).collect();
    output.extend((output.len()..).zip(&top.ranks).map(|(n, _)| column((n, DataType::UInt64))));
    let forget = forget_of(time.map(|(at, time)| (partition[at], time)), &plan, request)?;
    let shown_order = order(&output)?;
    let spec = TopSpec {
        name: request.named.name("top"),
        rows: RankedSpec {
            bound: Bound { by: top.by, skip: top.skip, fetch: top.fetch },
            prunes: !signed,
            before: matches!(emit, Emit::Changed { .. }),
            forget,
            ..ranked(&row, &plan, width, (order_by, &top.order_by), signed, refused)?
        },
        columns,
        ranks: top.ranks.clone(),
        shown_order,
        output: Arc::new(Schema::new(output)),
        emit,
        text: text(top, &names),
    };
    let fragment = Fragment::plan(request.state, &expand::expand(plan)?, request.partitions, false, &Ok).await?;
    Ok((fragment, Arc::new(spec)))
}

fn column((n, is): (usize, DataType)) -> FieldRef {
    Field::new(format!("c{n}"), is, true).into()
}

fn refused(error: Error) -> Error {
    Error::unsupported(format!("a Top-N can't remember its rows: {error}"))
        .help("leave such columns out in a subquery below it, or CAST them to STRING")
}

fn text(top: &TopNode, names: &Names) -> String {
    let (skip, last) = (top.skip, top.skip.saturating_add(top.fetch));
    let mut text = match (top.by, skip) {
        // ORDER BY … LIMIT
        (Rank::RowNumber, 0) if top.ranks.is_empty() => format!("the first {last} rows"),
        (Rank::RowNumber, skip) if top.ranks.is_empty() => format!("the first {} rows behind {skip}", top.fetch),
        (by, _) => format!("rows of {} up to {last}", by.name()),
    };
    if !top.partition_by.is_empty() {
        let partition: Vec<String> = top.partition_by.iter().map(|expr| names.name(expr)).collect();
        text += &format!(" of each ({})", partition.join(", "));
    }
    let order_by = top.order_by.iter().map(|by| {
        let (asc, nulls) = (if by.asc { "ASC" } else { "DESC" }, if by.nulls_first { "FIRST" } else { "LAST" });
        format!("{} {asc} NULLS {nulls}", names.name(&by.expr))
    });
    text + " by " + &order_by.collect::<Vec<_>>().join(", ")
}
