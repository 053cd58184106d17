//! Which columns carry event time: a column's way down to the watermark it comes from (rule W10).

use datafusion::common::Column;
use datafusion::logical_expr::{Distinct, Expr, JoinType, LogicalPlan};

use super::join_bounds::{JoinBounds, is_join_of_streams};
use super::over::time_behind;
use super::session_functions::{gives_sessions, resolve_session, session_call};
use super::top::TopNode;
use super::watermark::WatermarkNode;
use super::window_functions::{Which, window_call};
use super::window_shape::Windows;

/// What an expression is in terms of event time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventTime {
    /// The time itself.
    Time,
    /// The start of its window: what it stands for ends as much later as the window lasts.
    WindowStart(Windows),
    /// The end of its window.
    WindowEnd(Windows),
    /// The last instant of its window, `window_time(window)`: one unit of its type before the end.
    WindowLast,
    /// Its window, a struct of both.
    Window(Windows),
    /// A struct whose `end` is the time, such as a session.
    Ending,
}

impl EventTime {
    /// Whether it is the start of windows that end one after the other: the last of them ends what it stands for.
    pub fn is_growing(&self) -> bool {
        matches!(self, EventTime::WindowStart(Windows::Cumulating(_)))
    }
}

/// Of the times among some keys the one that closes them, and which key it is.
pub fn closing(times: impl Iterator<Item = (usize, EventTime)>) -> Option<(usize, EventTime)> {
    times.min_by_key(|(_, time)| match time {
        EventTime::Time => 2,
        time => u8::from(time.is_growing()),
    })
}

/// Follows an expression over the output of `plan` to the watermark it comes from.
pub fn event_time(plan: &LogicalPlan, expr: &Expr) -> Option<EventTime> {
    match expr {
        Expr::Alias(alias) => event_time(plan, &alias.expr),
        Expr::Column(column) => of_column(plan, column),
        Expr::ScalarFunction(function) if function.func.name() == "named_struct" => {
            let [Expr::Literal(start_name, _), start, Expr::Literal(end_name, _), end] = function.args.as_slice()
            else {
                return None;
            };
            if (start_name.try_as_str()??, end_name.try_as_str()??) != ("start", "end") {
                return None;
            }
            match (event_time(plan, start), event_time(plan, end)?) {
                (Some(EventTime::WindowStart(shape)), EventTime::WindowEnd(end)) if shape == end => {
                    Some(EventTime::Window(shape))
                }
                (_, EventTime::Time) => Some(EventTime::Ending),
                _ => None,
            }
        }
        Expr::ScalarFunction(function) if function.func.name() == "get_field" => {
            let [window, Expr::Literal(field, _)] = function.args.as_slice() else { return None };
            match (event_time(plan, window)?, field.try_as_str()??) {
                (EventTime::Window(shape), "start") => Some(EventTime::WindowStart(shape)),
                (EventTime::Window(shape), "end") => Some(EventTime::WindowEnd(shape)),
                (EventTime::Ending, "end") => Some(EventTime::Time),
                _ => None,
            }
        }
        other if session_call(other).is_some() => of_session(plan, other),
        other => {
            let call = window_call(other)?;
            let below = event_time(plan, call.time)?;
            match (call.which, below) {
                // What a window gives comes when the watermark has reached its end, and never later than its end.
                (
                    Which::Start
                    | Which::Starts
                    | Which::CalendarStart
                    | Which::CalendarStarts
                    | Which::CumulateEnd
                    | Which::CumulateEnds,
                    EventTime::Time
                    | EventTime::WindowEnd(_)
                    | EventTime::WindowLast
                    | EventTime::Window(_)
                    | EventTime::Ending,
                ) => call.windows().map(|windows| match windows {
                    Windows::Cumulating(_) => EventTime::WindowEnd(windows),
                    _ => EventTime::WindowStart(windows),
                }),
                (Which::CumulateStart, EventTime::WindowEnd(windows @ Windows::Cumulating(_))) => {
                    Some(EventTime::WindowStart(windows))
                }
                (Which::Last, EventTime::Window(_) | EventTime::Ending) => Some(EventTime::WindowLast),
                (Which::End | Which::CalendarEnd, EventTime::WindowStart(windows)) => {
                    Some(EventTime::WindowEnd(windows))
                }
                (Which::Watermark, EventTime::Time) => Some(EventTime::Time),
                _ => None,
            }
        }
    }
}

/// What the end of sessions is that are made of such times, as they are when the watermark may close them.
///
/// A session is final when the watermark reaches its end: rows to come are newer. Of last instants of windows it must be past
/// it, as the next window's may be equal.
pub fn session_end(plan: &LogicalPlan, time: &Expr) -> Option<EventTime> {
    match event_time(plan, time)? {
        EventTime::Time | EventTime::WindowEnd(_) => Some(EventTime::Time),
        EventTime::WindowLast => Some(EventTime::WindowLast),
        // A window comes long after its start.
        EventTime::WindowStart(_) | EventTime::Window(_) | EventTime::Ending => None,
    }
}

/// A session's start says nothing of when it is given out.
fn of_session(plan: &LogicalPlan, call: &Expr) -> Option<EventTime> {
    let call = session_call(call).filter(|call| call.end)?;
    session_end(plan, call.time)
}

fn of_column(plan: &LogicalPlan, column: &Column) -> Option<EventTime> {
    if let Some(watermark) = WatermarkNode::of(plan) {
        return if watermark.column == *column { Some(EventTime::Time) } else { of_column(&watermark.input, column) };
    }
    let index = plan.schema().maybe_index_of_column(column)?;
    if let Some(top) = TopNode::of(plan) {
        // Others of its times may be as old as any row that it remembers.
        let (qualifier, field) = top.input.schema().iter().nth(index)?;
        let column = Column::new(qualifier.cloned(), field.name());
        let closes = top.partition_by.contains(&Expr::Column(column.clone()));
        return if closes { of_column(&top.input, &column) } else { None };
    }
    match plan {
        LogicalPlan::Projection(projection) => {
            let expr = &projection.expr[index];
            // A row of SESSION(…) comes when its session is final, however long ago it happened.
            let waits = gives_sessions(plan) && session_call(expr).is_none();
            if waits { None } else { event_time(&projection.input, expr) }
        }
        LogicalPlan::SubqueryAlias(alias) => {
            let (qualifier, field) = alias.input.schema().qualified_field(index);
            of_column(&alias.input, &Column::new(qualifier.cloned(), field.name()))
        }
        LogicalPlan::Filter(filter) => of_column(&filter.input, column),
        LogicalPlan::Aggregate(aggregate) => {
            let key = aggregate.group_expr.get(index)?;
            match resolve_session(&aggregate.input, key) {
                Some(found) => of_session(found.input, &found.call),
                None => event_time(&aggregate.input, key),
            }
        }
        LogicalPlan::Distinct(Distinct::All(input)) => of_column(input, column),
        LogicalPlan::Distinct(Distinct::On(on)) => event_time(&on.input, on.select_expr.get(index)?),
        LogicalPlan::Limit(limit) => of_column(&limit.input, column),
        LogicalPlan::Window(window) => time_behind(window, index),
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
            let (side, input) = match (left, join.join_type) {
                (true, JoinType::Right | JoinType::Full) | (false, JoinType::Left | JoinType::Full) => return None,
                (true, _) => (0, &join.left),
                (false, _) => (1, &join.right),
            };
            let time = of_column(input, column)?;
            if !is_join_of_streams(plan) {
                return Some(time);
            }
            // A row that is remembered for ever comes with a time as old as may be.
            let covered = |bounds: JoinBounds| bounds.covers(side, input, &Expr::Column(column.clone()), time);
            JoinBounds::of(join).is_some_and(covered).then_some(time)
        }
        _ => None,
    }
}
