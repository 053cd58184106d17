//! A Top-N, cut: the fragment that hands it rows, and what the operator needs to know.

use std::sync::Arc;

use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Field, FieldRef, Schema};
use arrow::row::{RowConverter, SortField};
use datafusion::common::{Column, TableReference};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};

use super::aggregate::{Request, hydrated, late_tap, strip_alias};
use super::chain::{forget_at, numbered};
use super::fragment::Fragment;
use super::join::order;
use super::names::Names;
use super::retract;
use crate::delta::keys::KeyCodec;
use crate::error::{Error, Result};
use crate::operator::{Bound, Emit, Rank, RankedSpec, TopSpec};
use crate::parser::OutputMode;
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
    let width = row.exprs.len();
    let order_by: Vec<usize> =
        top.order_by.iter().map(|by| row.add(&by.expr, names.name(&by.expr), &visible)).collect::<Result<_>>()?;
    let mut columns = Vec::new();
    for (qualifier, field) in visible.iter() {
        let column = Expr::Column(Column::new(qualifier.cloned(), field.name()));
        columns.push(row.add(&column, field.name().clone(), &visible)?);
    }
    let weight = if signed { Some(retract::weight_of(&input)?) } else { None };
    let exprs = row.exprs.iter().enumerate().map(|(n, expr)| expr.clone().alias(format!("c{n}"))).chain(weight);
    let plan = LogicalPlanBuilder::from(input).project(exprs)?.build()?;
    let is = |n: usize| plan.schema().field(n).data_type().clone();
    let keys: Vec<FieldRef> = row.names.iter().enumerate().map(|(n, name)| numbered(n, name, &is(n))).collect();
    let rows: Vec<FieldRef> = keys.iter().cloned().chain([numbered(keys.len(), "count", &DataType::Int64)]).collect();
    // A row that is taken back was computed anew: it is to be found whatever its zeros and NaN look like now.
    let row_codec = if signed { KeyCodec::new(&keys) } else { KeyCodec::exact_behind(&keys, width) };
    let sorted = top.order_by.iter().zip(&order_by).map(|(by, at)| {
        let options = SortOptions { descending: !by.asc, nulls_first: by.nulls_first };
        SortField::new_with_options(is(*at), options)
    });
    let sorter = RowConverter::new(sorted.collect()).map_err(|e| Error::unsupported(format!("ORDER BY: {e}")))?;
    let mut output: Vec<FieldRef> = columns.iter().map(|at| is(*at)).enumerate().map(column).collect();
    output.extend((output.len()..).zip(&top.ranks).map(|(n, _)| column((n, DataType::UInt64))));
    let forget = match time.filter(|_| request.mode != OutputMode::Complete) {
        Some((at, time)) => Some(forget_at(partition[at], time, &is(partition[at]))?),
        None => None,
    };
    let shown_order = order(&output)?;
    let spec = TopSpec {
        name: request.named.name("top"),
        rows: RankedSpec {
            partition: width,
            codec: Arc::new(KeyCodec::new(&keys[..width])?),
            row_codec: Arc::new(row_codec.map_err(refused)?),
            keys: Arc::new(Schema::new(keys)),
            rows: Arc::new(Schema::new(rows)),
            order_by,
            sorter,
            signed,
            bound: Bound { by: top.by, skip: top.skip, fetch: top.fetch },
            prunes: !signed,
            before: matches!(emit, Emit::Changed { .. }),
            forget,
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

/// What is remembered of a row: each expression once.
#[derive(Default)]
pub(super) struct Row {
    wanted: Vec<Expr>,
    pub exprs: Vec<Expr>,
    pub names: Vec<String>,
}

impl Row {
    /// The place of an expression.
    pub fn add(&mut self, expr: &Expr, name: String, schema: &datafusion::common::DFSchema) -> Result<usize> {
        let wanted = strip_alias(expr);
        if let Some(at) = self.wanted.iter().position(|known| *known == wanted) {
            return Ok(at);
        }
        self.exprs.push(strip_alias(&hydrated(&wanted, schema)?));
        self.wanted.push(wanted);
        self.names.push(name);
        Ok(self.wanted.len() - 1)
    }
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
