//! An aggregation, cut in two: a fragment that makes partial states, and the operator that keeps them.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef, Schema, SchemaRef};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema};
use datafusion::functions::core::expr_fn::get_field;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Aggregate, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, cast, lit};
use datafusion::physical_plan::ExecutionPlan;

use super::batch_cell::BatchCell;
use super::chain::chain;
use super::fragment::{Fragment, as_aggregate, partial_of};
use super::grouping_sets;
use super::linear::Linear;
use super::lower::values_of;
use super::names::Names;
use super::panes::{PanesExec, pane};
use super::planning::Planning;
use super::rehearsal::rehearse;
use super::tap::{LateRule, Tap, TapKind};
use crate::delta::calendar::Lasts;
use crate::error::{Error, Result};
use crate::operator::{ChainSpec, Emit};
use crate::parser::OutputMode;
use crate::planner::event_time::{EventTime, closing, event_time};
use crate::planner::session_functions::{session_call, session_name};
use crate::planner::window_functions::{CALENDAR_START, LAST, START, calendar_constants, window_call};
use crate::planner::window_shape::Windows;
use crate::planner::{ORDERED, expand, interval_text};

/// The time among an aggregation's keys, if there is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeKey {
    /// Its number among the keys.
    pub key: usize,
    pub time: EventTime,
    /// The key is a `window(…)` call over rows, not a column that was computed before.
    pub call: bool,
}

/// Finds the key that the watermark closes.
pub fn time_key(aggregate: &Aggregate) -> Option<TimeKey> {
    let keys = aggregate.group_expr.iter().enumerate();
    let (key, time) = closing(keys.filter_map(|(key, expr)| Some((key, event_time(&aggregate.input, expr)?))))?;
    Some(TimeKey { key, time, call: call_of(&aggregate.group_expr[key]).is_some() })
}

/// Whether any key is a window or a time, watermarked or not.
pub fn groups_by_time(aggregate: &Aggregate) -> bool {
    let schema = aggregate.input.schema();
    aggregate.group_expr.iter().any(|e| call_of(e).is_some() || e.get_type(schema).is_ok_and(|t| t.is_temporal()))
}

fn call_of(expr: &Expr) -> Option<&Expr> {
    match expr {
        Expr::Alias(alias) => call_of(&alias.expr),
        other => window_call(other).filter(|call| call.which.gives_windows()).map(|_| other),
    }
}

/// The cut: the fragment in front of the operator, and what the operator needs to know.
pub struct Cut {
    pub first: Fragment,
    pub chain: Arc<ChainSpec>,
}

/// What the cut needs to know of the query.
pub struct Request<'a> {
    pub state: &'a Planning<'a>,
    pub mode: OutputMode,
    pub partitions: usize,
    pub cell: &'a Arc<BatchCell>,
    /// The number of the operator among the query's.
    pub operator: usize,
    /// What its watermark is behind the query's, in milliseconds.
    pub lag: i64,
    /// How many aggregates and distincts have names before it.
    pub named: &'a mut Counts,
}

/// How many operators of a kind have their names.
#[derive(Debug, Default)]
pub struct Counts(std::collections::BTreeMap<&'static str, usize>);

impl Counts {
    /// The next name of a kind: `aggregate`, `aggregate#2`.
    pub fn name(&mut self, kind: &'static str) -> String {
        let n = self.0.entry(kind).and_modify(|n| *n += 1).or_insert(1);
        if *n == 1 { kind.to_string() } else { format!("{kind}#{n}") }
    }
}

/// Cuts an aggregation whose input has its leaves already; `time` was found while watermarks could still be seen. `linear`: what
/// it was made from, where rows are taken back.
pub async fn cut(
    aggregate: &Aggregate,
    linear: Option<&Linear>,
    time: Option<TimeKey>,
    emit: Emit,
    request: &mut Request<'_>,
) -> Result<Cut> {
    let (operator, lag) = (request.operator, request.lag);
    let mut input = expand::expand(aggregate.input.as_ref().clone())?;
    let mut groups = aggregate.group_expr.clone();
    let names = Named::of(aggregate);
    let mut functions: Vec<Expr> = names.order.iter().map(|n| aggregate.aggr_expr[*n].clone()).collect();
    let mut panes = None;
    let call = groups.iter().enumerate().find_map(|(key, e)| Some((key, call_of(e)?.clone())));
    // A window of a time that carries no watermark is never final, whatever watermark the query has: nothing is late for it.
    let closes = |key: usize| time.is_some_and(|time| time.key == key);
    let never_late = request.mode == OutputMode::Complete || !call.as_ref().is_some_and(|(key, _)| closes(*key));
    if let Some(time) = time.filter(|time| !time.call) {
        input = late_tap(input, strip_alias(&groups[time.key]), time.time, time.time != EventTime::Time, request)?;
    }
    if let Some((key, call)) = call {
        let windows =
            window_call(&call).and_then(|c| c.windows()).ok_or_else(|| Error::internal("a window without a shape"))?;
        groups[key] = call.clone().alias(&names.keys[key]);
        let rule = LateRule {
            operator,
            lag,
            lasts: Lasts::NOTHING,
            last_instant: false,
            windows: Some(windows),
            drop_null: true,
            count: true,
            never_late,
        };
        let rows =
            window_call(&call).map(|c| c.time.clone()).ok_or_else(|| Error::internal("a window without a time"))?;
        let rows = instant(rows, input.schema())?;
        let tap = &mut |input| Tap::plan(input, rows.clone(), TapKind::Late(rule.clone()), request.cell);
        input = grouping_sets::under(input, tap)?;
        if let Some(pane) = pane(windows).filter(|_| panes_allowed(&groups, &functions, key)) {
            groups[key] = with_name(&groups[key], pane_call(&call, pane)?);
            panes = Some((key, windows));
        } else if windows.overlaps() {
            input = expand::spread(input, &call)?;
            let column = Expr::Column(Column::from_name(expand::WINDOW));
            let rule = LateRule {
                operator,
                lag,
                // The column holds what the windows are known by.
                lasts: if matches!(windows, Windows::Cumulating(_)) { Lasts::NOTHING } else { windows.lasts() },
                last_instant: false,
                windows: None,
                drop_null: true,
                count: false,
                never_late,
            };
            input = Tap::plan(input, column.clone(), TapKind::Late(rule), request.cell);
            let replaced = |e: Expr| expand::replace(e, &call, &column);
            groups = groups.into_iter().map(replaced).collect::<datafusion::error::Result<_>>()?;
            functions = functions.into_iter().map(replaced).collect::<datafusion::error::Result<_>>()?;
        }
    }
    for key in &mut groups {
        *key = hydrated(key, input.schema())?;
    }
    let input = narrow(input, &groups, &functions)?;
    let plan = LogicalPlan::Aggregate(Aggregate::try_new(Arc::new(input), groups, functions.clone())?);
    // Rows that are taken back come in no order of their own.
    let ordered = linear.is_none() && functions.iter().any(order_matters);
    let cell = request.cell.clone();
    let finish = move |plan: Arc<dyn ExecutionPlan>| -> Result<Arc<dyn ExecutionPlan>> {
        let partial = partial_of(&plan)?;
        Ok(match panes {
            None => partial,
            Some((key, windows)) => Arc::new(PanesExec::new(partial, key, windows, cell.clone(), lag, never_late)),
        })
    };
    let first = Fragment::plan(request.state, &plan, request.partitions, ordered, &finish).await?;
    let partial = match panes {
        None => first.root().clone(),
        Some(_) => first.root().children()[0].clone(),
    };
    let chain = Arc::new(chain(as_aggregate(&partial)?, time, ordered, emit, &names, linear, request)?);
    let called = |n: &usize| match linear.and_then(|linear| Some(linear.values.carrier_name(linear.carrier(*n)?))) {
        Some(functions) => functions,
        None => names.functions[*n].clone(),
    };
    let called: Vec<String> = names.order.iter().map(called).collect();
    rehearse(as_aggregate(&partial)?, &called, &chain)?;
    Ok(Cut { first, chain })
}

/// What the keys and functions of an aggregation are called in its state.
pub struct Named {
    pub keys: Vec<String>,
    /// In the order of the SELECT.
    pub functions: Vec<String>,
    /// The functions in the order of their names, as they are remembered: by their places in the SELECT.
    pub order: Vec<usize>,
    /// The casts in keys and functions, which no name shows; `None` where there are none.
    pub casts: Option<String>,
}

impl Named {
    /// By what computes them; a window's start as `window(ts, 10 seconds).start`.
    pub fn of(aggregate: &Aggregate) -> Self {
        let names = Names::of(aggregate.group_expr.iter().chain(&aggregate.aggr_expr));
        let key = |expr: &Expr| {
            if let Some(session) = session_call(expr) {
                let window = session_name(&names.bare(session.time), &names.bare(session.gap));
                return format!("{window}.{}", if session.end { "end" } else { "start" });
            }
            let window = call_of(expr).map(|call| names.bare(call));
            let windows = window.as_ref().and_then(|call| Some((call, window_call(call)?.windows()?)));
            windows.map_or_else(|| names.name(expr), |(call, windows)| window_name(call, windows))
        };
        let mut functions: Vec<String> = aggregate.aggr_expr.iter().map(|expr| names.name(expr)).collect();
        let mut order: Vec<usize> = (0..functions.len()).collect();
        // Functions of one name differ in what a name doesn't show (a cast), never in nothing.
        order.sort_by_cached_key(|n| (functions[*n].clone(), names.bare(&aggregate.aggr_expr[*n]).to_string()));
        let mut same = 1;
        for at in 1..order.len() {
            same = if functions[order[at]] == functions[order[at - same]] { same + 1 } else { 1 };
            if same > 1 {
                functions[order[at]] += &format!("#{same}");
            }
        }
        let keys: Vec<String> = aggregate.group_expr.iter().map(key).collect();
        let in_order = order.iter().map(|n| (&functions[*n], &aggregate.aggr_expr[*n]));
        let casts = keys.iter().zip(&aggregate.group_expr).chain(in_order).filter_map(|(name, expr)| {
            let casts = names.casts(expr);
            (!casts.is_empty()).then(|| format!("{name} of {}", casts.join(", ")))
        });
        let casts = Some(casts.collect::<Vec<_>>().join("; ")).filter(|casts| !casts.is_empty());
        Named { keys, functions, order, casts }
    }
}

/// Panes want that nothing but the key speaks of the window, and functions that can be put together in any order.
fn panes_allowed(groups: &[Expr], functions: &[Expr], key: usize) -> bool {
    let others = groups.iter().enumerate().filter(|(n, _)| *n != key).map(|(_, e)| e);
    !others.chain(functions).any(mentions_window) && !functions.iter().any(order_matters)
}

fn mentions_window(expr: &Expr) -> bool {
    expr.exists(|e| Ok(window_call(e).is_some())).unwrap_or(true)
}

/// Whether an expression has a function whose result depends on the order of its input.
pub fn order_matters(expr: &Expr) -> bool {
    let mut matters = false;
    let walked = expr.apply(|e| {
        if let Expr::AggregateFunction(f) = e {
            matters |= ORDERED.contains(&f.func.name());
        }
        Ok(TreeNodeRecursion::Continue)
    });
    matters || walked.is_err()
}

/// What EXPLAIN and the state's schema call a window's start: `window(ts, 10 seconds).start`.
fn window_name(call: &Expr, windows: Windows) -> String {
    let time = window_call(call).map(|c| c.time.to_string()).unwrap_or_default();
    let mut lengths = Vec::new();
    let mut offset = 0;
    match windows {
        Windows::Sliding(shape) => {
            lengths.push(interval_text(shape.size));
            if shape.slide != shape.size {
                lengths.push(interval_text(shape.slide));
            }
            offset = shape.offset;
        }
        Windows::Cumulating(shape) => {
            lengths.extend([shape.slide, shape.size].map(interval_text));
            offset = shape.offset;
        }
        Windows::Calendar(calendar) => {
            lengths.push(calendar.to_string());
            if calendar.months != 0 {
                lengths.push(format!("offset {} months", calendar.months));
            }
            offset += calendar.micros;
        }
    }
    if offset != 0 {
        lengths.push(format!("offset {}", interval_text(offset)));
    }
    match windows {
        Windows::Cumulating(_) => format!("cumulate({time}, {}).end", lengths.join(", ")),
        _ => format!("window({time}, {}).start", lengths.join(", ")),
    }
}

fn pane_call(call: &Expr, pane: Windows) -> Result<Expr> {
    let Expr::ScalarFunction(call) = call else { return Err(Error::internal("a window that is no call")) };
    let time = call.args[0].clone();
    let (function, constants) = match pane {
        Windows::Sliding(pane) | Windows::Cumulating(pane) => {
            (&START, [pane.size, pane.slide, pane.offset].map(lit).to_vec())
        }
        Windows::Calendar(pane) => {
            (&CALENDAR_START, calendar_constants(&pane).into_iter().map(|value| Expr::Literal(value, None)).collect())
        }
    };
    let args = std::iter::once(time).chain(constants).collect();
    Ok(Expr::ScalarFunction(ScalarFunction::new_udf((*function).clone(), args)))
}

/// `new` under the name that `old` has.
fn with_name(old: &Expr, new: Expr) -> Expr {
    let (qualifier, name) = old.qualified_name();
    new.alias_qualified(qualifier, name)
}

/// A key without dictionaries: each batch has its own, so what is remembered are the values.
pub fn hydrated(key: &Expr, schema: &DFSchema) -> Result<Expr> {
    let is = key.get_type(schema)?;
    let plain = values_of(&is);
    Ok(if plain == is { key.clone() } else { with_name(key, cast(strip_alias(key), plain)) })
}

/// What an alias stands for.
pub fn strip_alias(expr: &Expr) -> Expr {
    match expr {
        Expr::Alias(alias) => strip_alias(&alias.expr),
        other => other.clone(),
    }
}

/// Only the columns that the aggregation reads: so that the optimizer reads no others.
pub(super) fn narrow(input: LogicalPlan, groups: &[Expr], functions: &[Expr]) -> Result<LogicalPlan> {
    let used: std::collections::HashSet<&Column> = groups.iter().chain(functions).flat_map(Expr::column_refs).collect();
    let schema = input.schema().clone();
    let mut columns: Vec<Expr> = Vec::new();
    for (qualifier, field) in schema.iter() {
        let column = Column::new(qualifier.cloned(), field.name());
        if used.contains(&column) {
            columns.push(Expr::Column(column));
        }
    }
    if columns.is_empty() || columns.len() == schema.fields().len() {
        return Ok(input);
    }
    Ok(LogicalPlanBuilder::from(input).project(columns)?.build()?)
}

/// Drops rows that are late by a column that stands for such a time, and with `drop_null` those without one.
pub fn late_tap(
    input: LogicalPlan,
    column: Expr,
    time: EventTime,
    drop_null: bool,
    request: &Request<'_>,
) -> Result<LogicalPlan> {
    let lasts = match time {
        EventTime::WindowStart(windows) => windows.lasts(),
        _ => Lasts::NOTHING,
    };
    let rule = LateRule {
        operator: request.operator,
        lag: request.lag,
        lasts,
        last_instant: time == EventTime::WindowLast,
        windows: None,
        drop_null,
        count: true,
        never_late: request.mode == OutputMode::Complete,
    };
    let column = match time {
        EventTime::Window(_) | EventTime::Ending => get_field(column, "end"),
        _ => column,
    };
    let tap = &mut |input| Tap::plan(input, column.clone(), TapKind::Late(rule.clone()), request.cell);
    Ok(grouping_sets::under(input, tap)?)
}

/// A time, or the last instant of a window.
fn instant(time: Expr, schema: &DFSchema) -> Result<Expr> {
    Ok(match time.get_type(schema)? {
        DataType::Struct(_) => Expr::ScalarFunction(ScalarFunction::new_udf(LAST.clone(), vec![time])),
        _ => time,
    })
}

/// The output of an aggregation as the columns of a leaf.
pub fn leaf_schema(output: &SchemaRef, hidden: bool) -> SchemaRef {
    let mut fields: Vec<FieldRef> = output.fields().iter().cloned().collect();
    if hidden {
        fields.extend(super::retract::fields());
    }
    Arc::new(Schema::new(fields))
}
