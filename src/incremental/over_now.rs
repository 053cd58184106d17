//! An OVER that takes rows back, cut: the fragment that hands it rows, and what the operator needs to know.

use std::sync::Arc;

use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Field, FieldRef, Schema};
use arrow::row::{RowConverter, SortField};
use datafusion::common::Column;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::physical_expr::expressions::Column as PhysicalColumn;
use datafusion::physical_expr::{PhysicalExpr, PhysicalSortExpr};

use super::aggregate::{Request, late_tap, strip_alias};
use super::chain::{forget_at, numbered};
use super::fragment::Fragment;
use super::join::order;
use super::names::Names;
use super::over::{Reads, called, made, refused, simplifier, text};
use super::retract;
use super::top::Row;
use crate::delta::keys::KeyCodec;
use crate::error::{Error, Result};
use crate::operator::{Emit, OverNowSpec, RankedSpec};
use crate::parser::OutputMode;
use crate::planner::event_time::EventTime;
use crate::planner::expand;
use crate::planner::over::Over;

/// Cuts an OVER from an input whose leaves are there already; `signed`: it takes rows back.
///
/// # Errors
/// Of DataFusion; Unsupported: columns that have no order.
pub async fn cut(
    over: &Over<'_>,
    input: LogicalPlan,
    signed: bool,
    emit: Emit,
    request: &mut Request<'_>,
) -> Result<(Fragment, Arc<OverNowSpec>)> {
    let visible = over.window.input.schema().clone();
    let mut input = if signed { retract::carry(input)? } else { input };
    if let Some((at, time)) = over.ends {
        input = late_tap(input, strip_alias(&over.partition_by[at]), time, time != EventTime::Time, request)?;
    }
    let names = Names::of(over.window.window_expr.iter());
    let mut row = Row::default();
    let mut add = |expr: &Expr| row.add(expr, names.name(expr), &visible);
    let partition: Vec<usize> = over.partition_by.iter().map(&mut add).collect::<Result<_>>()?;
    let width = partition.iter().max().map_or(0, |last| last + 1);
    let order_by: Vec<usize> = over.order_by.iter().map(|by| add(&by.expr)).collect::<Result<_>>()?;
    let simplifier = simplifier(&visible, request);
    let mut reads = Vec::new();
    for (call, _) in &over.calls {
        reads.push(Reads::of(call, &simplifier, &mut row, &names, &visible)?);
    }
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
    let row_codec = Arc::new(row_codec.map_err(refused)?);
    let codec = Arc::new(KeyCodec::new(&keys[..width]).map_err(refused)?);
    let schema = Arc::new(Schema::new(keys));
    let column = |n: usize| -> Arc<dyn PhysicalExpr> { Arc::new(PhysicalColumn::new(schema.field(n).name(), n)) };
    let options = |n: usize| {
        let by = &over.order_by[n];
        SortOptions { descending: !by.asc, nulls_first: by.nulls_first }
    };
    let sorted = order_by.iter().enumerate();
    let sorted: Vec<PhysicalSortExpr> =
        sorted.map(|(n, at)| PhysicalSortExpr { expr: column(*at), options: options(n) }).collect();
    let (mut calls, mut values) = (Vec::new(), Vec::new());
    for (n, ((call, needs), reads)) in over.calls.iter().zip(reads).enumerate() {
        let name = called(over, n, &names);
        let (call, output) = made(call, needs, true, name, &reads.physical(&column), &sorted, &schema)?;
        calls.push(call);
        values.push(result(columns.len() + n, output));
    }
    let sorter = order_by.iter().enumerate().map(|(n, at)| SortField::new_with_options(is(*at), options(n)));
    let sorter = RowConverter::new(sorter.collect()).map_err(|e| Error::unsupported(format!("ORDER BY: {e}")))?;
    let forget = match over.ends.filter(|_| request.mode != OutputMode::Complete) {
        Some((at, time)) => Some(forget_at(partition[at], time, &is(partition[at]))?),
        None => None,
    };
    let of_values = Arc::new(KeyCodec::new(&values).map_err(refused)?);
    let output = columns.iter().enumerate().map(|(n, at)| result(n, is(*at))).chain(values);
    let output: Vec<FieldRef> = output.collect();
    let spec = OverNowSpec {
        name: request.named.name("over"),
        rows: RankedSpec {
            partition: width,
            codec,
            keys: schema,
            row_codec,
            rows: Arc::new(Schema::new(rows)),
            order_by,
            sorter,
            signed,
            bound: OverNowSpec::ALL,
            prunes: false,
            before: emit != Emit::All,
            forget,
        },
        order_by: sorted,
        calls,
        columns,
        values: of_values,
        shown_order: order(&output)?,
        output: Arc::new(Schema::new(output)),
        emit,
        text: text(over, &names),
    };
    let fragment = Fragment::plan(request.state, &expand::expand(plan)?, request.partitions, false, &Ok).await?;
    Ok((fragment, Arc::new(spec)))
}

fn result(n: usize, is: DataType) -> FieldRef {
    Field::new(format!("c{n}"), is, true).into()
}
