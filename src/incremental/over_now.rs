//! An OVER that takes rows back, cut: the fragment that hands it rows, and what the operator needs to know.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Schema};
use datafusion::common::Column;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column as PhysicalColumn;

use super::aggregate::{Request, late_tap, strip_alias};
use super::fragment::Fragment;
use super::join::order;
use super::names::Names;
use super::over::{Reads, calls, refused, simplifier, sorted, text};
use super::ranked::{Row, forget_of, ranked, type_of};
use super::retract;
use crate::delta::keys::KeyCodec;
use crate::error::Result;
use crate::operator::{Emit, OverNowSpec, RankedSpec};
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
    let plan = row.plan(input, signed)?;
    let is = |n: usize| type_of(&plan, n);
    let rows = ranked(&row, &plan, width, (order_by, over.order_by), signed, refused)?;
    let column = |n: usize| -> Arc<dyn PhysicalExpr> { Arc::new(PhysicalColumn::new(rows.keys.field(n).name(), n)) };
    let sorted = sorted(over, &rows.order_by, &column);
    let (calls, types) = calls(over, &names, &reads, true, &column, &sorted, &rows.keys)?;
    let values: Vec<FieldRef> = types.into_iter().enumerate().map(|(n, is)| result(columns.len() + n, is)).collect();
    let forget = forget_of(over.ends.map(|(at, time)| (partition[at], time)), &plan, request)?;
    let of_values = Arc::new(KeyCodec::new(&values).map_err(refused)?);
    let output = columns.iter().enumerate().map(|(n, at)| result(n, is(*at))).chain(values);
    let output: Vec<FieldRef> = output.collect();
    let spec = OverNowSpec {
        name: request.named.name("over"),
        rows: RankedSpec { before: emit != Emit::All, forget, ..rows },
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
