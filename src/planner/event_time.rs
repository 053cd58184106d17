//! Which columns carry event time: a column's way down to the watermark it comes from (rule W10).

use datafusion::common::Column;
use datafusion::logical_expr::{Expr, JoinType, LogicalPlan};

use super::watermark::WatermarkNode;
use super::window_functions::{Which, WindowShape, window_call};

/// What an expression is in terms of event time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventTime {
    /// The time itself.
    Time,
    /// The start of its window: what it stands for ends a window's size later.
    WindowStart(WindowShape),
    /// The end of its window.
    WindowEnd(WindowShape),
}

/// Follows an expression over the output of `plan` to the watermark it comes from.
pub fn event_time(plan: &LogicalPlan, expr: &Expr) -> Option<EventTime> {
    match expr {
        Expr::Alias(alias) => event_time(plan, &alias.expr),
        Expr::Column(column) => of_column(plan, column),
        other => {
            let call = window_call(other)?;
            let below = event_time(plan, call.time)?;
            match (call.which, below) {
                (Which::Start | Which::Starts, EventTime::Time) => call.shape().map(EventTime::WindowStart),
                (Which::End, EventTime::WindowStart(shape)) => Some(EventTime::WindowEnd(shape)),
                (Which::Watermark, EventTime::Time) => Some(EventTime::Time),
                _ => None,
            }
        }
    }
}

fn of_column(plan: &LogicalPlan, column: &Column) -> Option<EventTime> {
    if let Some(watermark) = WatermarkNode::of(plan) {
        return if watermark.column == *column { Some(EventTime::Time) } else { of_column(&watermark.input, column) };
    }
    let index = plan.schema().maybe_index_of_column(column)?;
    match plan {
        LogicalPlan::Projection(projection) => event_time(&projection.input, &projection.expr[index]),
        LogicalPlan::SubqueryAlias(alias) => {
            let (qualifier, field) = alias.input.schema().qualified_field(index);
            of_column(&alias.input, &Column::new(qualifier.cloned(), field.name()))
        }
        LogicalPlan::Filter(filter) => of_column(&filter.input, column),
        LogicalPlan::Unnest(unnest) => {
            let below = *unnest.dependency_indices.get(index)?;
            let (qualifier, field) = unnest.input.schema().qualified_field(below);
            of_column(&unnest.input, &Column::new(qualifier.cloned(), field.name()))
        }
        LogicalPlan::Union(union) => {
            let mut times = union.inputs.iter().map(|input| {
                let (qualifier, field) = input.schema().qualified_field(index);
                of_column(input, &Column::new(qualifier.cloned(), field.name()))
            });
            let first = times.next()??;
            times.all(|t| t == Some(first)).then_some(first)
        }
        LogicalPlan::Join(join) => {
            let left = join.left.schema().maybe_index_of_column(column).is_some();
            // A side that a join fills with NULL rows gives times that no watermark was made of.
            match (left, join.join_type) {
                (true, JoinType::Right | JoinType::Full) | (false, JoinType::Left | JoinType::Full) => None,
                (true, _) => of_column(&join.left, column),
                (false, _) => of_column(&join.right, column),
            }
        }
        _ => None,
    }
}
