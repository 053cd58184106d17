//! An aggregation by sessions, cut in two: a fragment that makes partial states of each row's own session, and the operator
//! that merges sessions that touch.
//!
//! The fragment is a partial aggregation by key, time and time + gap: that is the session which a row makes by itself.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Schema};
use datafusion::common::Column;
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;

use super::aggregate::{Named, Request, hydrated, narrow, order_matters, strip_alias};
use super::chain::{forget_at, numbered, state_fields};
use super::fragment::{Fragment, as_aggregate, partial_of};
use super::names::Names;
use super::rehearsal::rehearse_sessions;
use super::tap::{LateRule, Tap, TapKind};
use crate::delta::calendar::Lasts;
use crate::delta::keys::KeyCodec;
use crate::error::{Error, Result};
use crate::operator::{AggregateSpec, Emit, Feed, SessionSpec};
use crate::parser::OutputMode;
use crate::planner::event_time::{EventTime, event_time, session_end};
use crate::planner::expand;
use crate::planner::session_functions::{
    FoundSession, constant_gap, lowest, mentions_session, resolve_session, session_call, session_name,
};

/// The sessions that an aggregation groups by.
pub struct SessionKeys {
    /// The numbers of the keys that are their start and end.
    start: usize,
    end: usize,
    /// `session_window(ts, 10 seconds)`
    window: String,
    /// All rows have one gap, which is known to open a session.
    constant: bool,
    /// What the time is to the watermark, where it carries one.
    pub time: Option<EventTime>,
    /// The time is made of one that carries a watermark.
    pub watermarked: bool,
    /// They are those of `SESSION(…)`.
    pub of_table: bool,
}

/// Finds the sessions among an aggregation's keys, while watermarks can still be seen. Sessions of `SESSION(…)` are found where
/// the aggregation can make them itself; otherwise it is one over rows that have their sessions.
///
/// # Errors
/// Of DataFusion.
pub fn session_keys(aggregate: &Aggregate) -> Result<Option<SessionKeys>> {
    let found: Vec<_> = aggregate.group_expr.iter().map(|key| resolve_session(&aggregate.input, bare(key))).collect();
    let place = |end: bool| {
        let is = |f: &FoundSession<'_>| session_call(&f.call).is_some_and(|call| call.end == end);
        found.iter().position(|found| found.as_ref().is_some_and(is))
    };
    let (Some(start), Some(end)) = (place(false), place(true)) else { return Ok(None) };
    let Some(session) = &found[start] else { return Ok(None) };
    let Some(call) = session_call(&session.call) else { return Ok(None) };
    if session.of_table && !fits(aggregate, session, call.keys, [start, end])? {
        return Ok(None);
    }
    let names = Names::of([call.time, call.gap].into_iter());
    Ok(Some(SessionKeys {
        start,
        end,
        window: session_name(&names.bare(call.time), &names.bare(call.gap)),
        constant: constant_gap(call.gap).is_some(),
        time: session_end(session.input, call.time),
        watermarked: call.time.column_refs().into_iter().any(|column| is_time(session.input, column)),
        of_table: session.of_table,
    }))
}

/// Whether an aggregation groups all rows of `SESSION(…)` by what they are partitioned by, and asks nothing more of the session.
fn fits(aggregate: &Aggregate, session: &FoundSession<'_>, by: &[Expr], bounds: [usize; 2]) -> Result<bool> {
    let asks = |function: &Expr| Ok(mentions_session(&lowest(&aggregate.input, function)?));
    let asked = aggregate.aggr_expr.iter().map(asks).collect::<Result<Vec<_>>>()?;
    let partition = by.iter().map(|key| Ok(lowest(session.input, key)?)).collect::<Result<Vec<_>>>()?;
    let others = aggregate.group_expr.iter().enumerate().filter(|(n, _)| !bounds.contains(n));
    let keys = others.map(|(_, key)| Ok(lowest(&aggregate.input, bare(key))?)).collect::<Result<Vec<_>>>()?;
    let same = partition.iter().all(|key| keys.contains(key)) && keys.iter().all(|key| partition.contains(key));
    Ok(same && !session.filtered && !asked.contains(&true))
}

fn is_time(plan: &LogicalPlan, column: &Column) -> bool {
    event_time(plan, &Expr::Column(column.clone())).is_some()
}

fn bare(key: &Expr) -> &Expr {
    match key {
        Expr::Alias(alias) => bare(&alias.expr),
        other => other,
    }
}

/// Cuts an aggregation by sessions whose input has its leaves already.
pub async fn cut(
    aggregate: &Aggregate,
    keys: &SessionKeys,
    emit: Emit,
    request: &mut Request<'_>,
) -> Result<(Fragment, Arc<SessionSpec>)> {
    let (operator, lag) = (request.operator, request.lag);
    // Sessions of a time that carries no watermark are never final, whatever watermark the query has.
    let never_late = request.mode == OutputMode::Complete || keys.time.is_none();
    let mut input = expand::expand(aggregate.input.as_ref().clone())?;
    let groups = &aggregate.group_expr;
    let (start, end) = (strip_alias(&groups[keys.start]), strip_alias(&groups[keys.end]));
    if !keys.constant {
        // Rows whose gap opens no session vanish; those without a time are counted behind.
        let opens = start.clone().is_null().or(end.clone().gt(start));
        input = LogicalPlanBuilder::from(input).filter(opens)?.build()?;
    }
    let rule = LateRule {
        operator,
        lag,
        lasts: Lasts::NOTHING,
        last_instant: keys.time == Some(EventTime::WindowLast),
        windows: None,
        drop_null: true,
        count: true,
        never_late,
    };
    input = Tap::plan(input, end, TapKind::Late(rule), request.cell);
    let others = (0..groups.len()).filter(|n| *n != keys.start && *n != keys.end);
    let order: Vec<usize> = others.chain([keys.start, keys.end]).collect();
    let grouped = order.iter().map(|n| hydrated(&groups[*n], input.schema())).collect::<Result<Vec<_>>>()?;
    let names = Named::of(aggregate);
    let functions: Vec<Expr> = names.order.iter().map(|n| aggregate.aggr_expr[*n].clone()).collect();
    let ordered = functions.iter().any(order_matters);
    let input = narrow(input, &grouped, &functions)?;
    let plan = LogicalPlan::Aggregate(Aggregate::try_new(Arc::new(input), grouped, functions)?);
    let first = Fragment::plan(request.state, &plan, request.partitions, ordered, &|plan| partial_of(&plan)).await?;
    let partial = first.root().clone();
    let spec = Arc::new(spec(as_aggregate(&partial)?, keys, &order, &names, emit, request)?);
    rehearse_sessions(as_aggregate(&partial)?, &spec)?;
    Ok((first, spec))
}

/// `order`: the aggregation's keys in the order of the fragment's.
fn spec(
    partial: &AggregateExec,
    keys: &SessionKeys,
    order: &[usize],
    names: &Named,
    emit: Emit,
    request: &mut Request<'_>,
) -> Result<SessionSpec> {
    let (schema, groups) = (partial.schema(), order.len());
    let width = groups - 2;
    if partial.group_expr().num_group_exprs() != groups {
        return Err(Error::internal("an aggregation has other keys than it was planned with"));
    }
    let named = |n: usize| match order[n] {
        at if at == keys.start => format!("{}.start", keys.window),
        at if at == keys.end => format!("{}.end", keys.window),
        at => names.keys[at].clone(),
    };
    let columns: Vec<FieldRef> = (0..groups).map(|n| numbered(n, &named(n), schema.field(n).data_type())).collect();
    let function_names: Vec<String> = names.order.iter().map(|n| names.functions[*n].clone()).collect();
    let functions = partial.aggr_expr().to_vec();
    let states = state_fields(&functions, &function_names, &|_| false, groups)?;
    let mut at = 0;
    let feeds = states.iter().map(|fields| {
        at += fields.len();
        Feed::States(at - fields.len())
    });
    let feeds: Vec<Feed> = feeds.collect();
    let mut places = vec![0; groups];
    order.iter().enumerate().for_each(|(place, n)| places[*n] = place);
    let column = |n: usize, t: &DataType| Field::new(format!("c{n}"), t.clone(), true);
    let mut output: Vec<Field> =
        places.iter().enumerate().map(|(n, place)| column(n, columns[*place].data_type())).collect();
    output.extend(functions.iter().zip(&names.order).map(|(f, n)| column(groups + n, f.field().data_type())));
    let result_keys: Vec<FieldRef> = output[..groups].iter().map(|field| Arc::new(field.clone())).collect();
    let state_fields: Vec<FieldRef> = columns.iter().chain(states.iter().flatten()).cloned().collect();
    let state_keys = columns[..=width].to_vec();
    let forget = match keys.time {
        Some(time) if request.mode != OutputMode::Complete => {
            Some(forget_at(width + 1, time, columns[width + 1].data_type())?)
        }
        _ => None,
    };
    let aggregate = AggregateSpec {
        name: request.named.name("session"),
        key_schema: Arc::new(Schema::new(state_keys.clone())),
        keys: state_keys.clone(),
        order_matters: functions.iter().any(|f| !f.order_bys().is_empty()),
        functions,
        names: function_names,
        states,
        rows: None,
        feeds,
        elements: Vec::new(),
        inputs: Vec::new(),
        output: Arc::new(Schema::new(output)),
        state_schema: Arc::new(Schema::new(state_fields)),
        emit,
        casts: names.casts.clone(),
        forget,
    };
    Ok(SessionSpec {
        aggregate,
        key: Arc::new(KeyCodec::new(&columns[..width])?),
        state_key: Arc::new(KeyCodec::new(&state_keys)?),
        result_key: Arc::new(KeyCodec::new(&result_keys)?),
        places,
        window: keys.window.clone(),
    })
}
