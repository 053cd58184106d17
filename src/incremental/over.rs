//! An OVER, cut: the fragment that hands it rows in their order, and what the operator needs to know.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::common::{Column, DFSchemaRef, ScalarValue};
use datafusion::logical_expr::expr::{NullTreatment, WindowFunction};
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{Expr, LogicalPlan, WindowFrameBound, WindowFunctionDefinition};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::physical_expr::aggregate::AggregateExprBuilder;
use datafusion::physical_expr::expressions::{Column as PhysicalColumn, Literal};
use datafusion::physical_expr::{PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::windows::create_window_expr;
use datafusion::physical_planner::is_window_frame_bound_valid;

use super::aggregate::{Request, late_tap, strip_alias};
use super::chain::{forget_at, numbered, state_fields};
use super::deduplicate::units;
use super::fragment::Fragment;
use super::names::Names;
use super::ranked::{Row, options, sorter, type_of};
use crate::delta::calendar::Lasts;
use crate::delta::keys::KeyCodec;
use crate::delta::time::unit_of;
use crate::error::{Error, Result};
use crate::operator::{Call, Final, ForgetBy, Framed, OverSpec, Reach, RunningSpec};
use crate::planner::event_time::EventTime;
use crate::planner::over::{Before, Needs, Over};
use crate::planner::{expand, frames, interval_text};

/// Cuts an OVER from an input whose leaves are there already.
///
/// # Errors
/// Of DataFusion; Unsupported: columns that have no order.
pub async fn cut(over: &Over<'_>, input: LogicalPlan, request: &mut Request<'_>) -> Result<(Fragment, Arc<OverSpec>)> {
    let visible = over.window.input.schema().clone();
    let mut input = input;
    if let (Some(time), Some(by)) = (over.time, over.order_by.first()) {
        input = late_tap(input, strip_alias(&by.expr), time, true, request)?;
    }
    if let Some((at, time)) = over.ends {
        input = late_tap(input, strip_alias(&over.partition_by[at]), time, time != EventTime::Time, request)?;
    }
    let names = Names::of(over.window.window_expr.iter());
    let mut row = Row::default();
    let partition: Vec<usize> =
        over.partition_by.iter().map(|expr| row.add(expr, names.name(expr), &visible)).collect::<Result<_>>()?;
    let width = row.len();
    let time_at = match over.order_by.first().filter(|_| over.time.is_some()) {
        Some(by) => Some(row.add(&by.expr, names.name(&by.expr), &visible)?),
        None => None,
    };
    let lead = row.len();
    let order_by: Vec<usize> =
        over.order_by.iter().map(|by| row.add(&by.expr, names.name(&by.expr), &visible)).collect::<Result<_>>()?;
    let simplifier = simplifier(&visible, request);
    let mut reads = Vec::new();
    for (call, _) in &over.calls {
        reads.push(Reads::of(call, &simplifier, &mut row, &names, &visible)?);
    }
    // Rows are handed on in the order of time, then of partitions, and in a partition in their own.
    let mut shown: Vec<usize> = time_at.into_iter().chain(partition.iter().copied()).collect();
    let hidden = shown.len();
    for (qualifier, field) in visible.iter() {
        let column = Expr::Column(Column::new(qualifier.cloned(), field.name()));
        shown.push(row.add(&column, field.name().clone(), &visible)?);
    }
    let plan = row.plan(input, false)?;
    let is = |n: usize| type_of(&plan, n);
    // Behind the keys that the input brings stands a row's number.
    let place = |n: usize| if n < lead { n } else { n + 1 };
    let mut fields: Vec<FieldRef> =
        row.names().iter().enumerate().map(|(n, name)| numbered(place(n), name, &is(n))).collect();
    fields.insert(lead, numbered(lead, "number", &DataType::Int64));
    let (keys, rows) = (Arc::new(Schema::new(fields[..=lead].to_vec())), Arc::new(Schema::new(fields.clone())));
    let column =
        |n: usize| -> Arc<dyn PhysicalExpr> { Arc::new(PhysicalColumn::new(rows.field(place(n)).name(), place(n))) };
    let sorted = sorted(over, &order_by, &column);
    let (calls, output_types) = calls(over, &names, &reads, over.time.is_none(), &column, &sorted, &rows)?;
    let then: Vec<usize> = (usize::from(over.time.is_some())..order_by.len()).collect();
    let sorter = sorter(then.iter().map(|n| (is(order_by[*n]), &over.order_by[*n])))?;
    let ends = over.ends.map(|(at, time)| forget_at(partition[at], time, &is(partition[at]))).transpose()?;
    let (due, is_final, reach) = match (over.time, time_at, ends) {
        (Some(time), Some(at), _) => by_time(over, time, at, &is(at))?,
        (_, _, Some(ends)) => (ends, Final::AtItsEnd, Reach::default()),
        _ => return Err(Error::internal("an OVER whose rows are never final")),
    };
    let codec = Arc::new(KeyCodec::new(&fields[..width]).map_err(refused)?);
    let running = running(over, &calls, &names, &fields[..width], ends.map(|by| bare(&fields[by.column])), request)?;
    let output = shown.iter().map(|at| is(*at)).chain(output_types).enumerate();
    let output: Vec<FieldRef> = output.map(|(n, is)| result(n, hidden, is)).collect();
    let text = text(over, &names);
    let spec = OverSpec {
        name: request.named.name("over"),
        width,
        codec,
        lead,
        row_codec: Arc::new(KeyCodec::new(&fields[..=lead]).map_err(refused)?),
        keys,
        time: time_at,
        then_by: then.iter().map(|n| place(order_by[*n])).collect(),
        sorter,
        order_by: sorted,
        is_final,
        reach,
        due,
        ends,
        calls,
        running,
        columns: shown.iter().map(|at| place(*at)).collect(),
        order: (Arc::new(KeyCodec::new(&output[..hidden]).map_err(refused)?), hidden),
        output: Arc::new(Schema::new(output)),
        text,
        bound: bound(over, &names, ends.map(|by| bare(&fields[by.column]))),
        sends: sends(over, &names, ends.map(|by| bare(&fields[by.column]))),
        rows,
    };
    // Rows that are equal in the order come as they came.
    let fragment = Fragment::plan(request.state, &expand::expand(plan)?, request.partitions, true, &Ok).await?;
    Ok((fragment, Arc::new(spec)))
}

/// When rows that are ordered by a time are due, when they are final, and what rows to come reach back to.
fn by_time(over: &Over<'_>, time: EventTime, at: usize, is: &DataType) -> Result<(ForgetBy, Final, Reach)> {
    let (micros, rows) = over.waits();
    let due = forget_at(at, time, is)?;
    let Lasts::Units(size) = due.lasts else {
        return Err(Error::not_yet("OVER ordered by the start of a window of the calendar")
            .help("order by the column that the window is made of, or by the window's end"));
    };
    let wait = units(micros, is)?;
    let is_final = Final::ByTime { unit: unit_of(is)?, size, wait, rows };
    let mut reach = Reach::default();
    let many = |rows: u64| usize::try_from(rows).unwrap_or(usize::MAX);
    for (_, needs) in &over.calls {
        match needs.before {
            Before::First(rows) => reach.first = reach.first.max(many(rows)),
            Before::Last(rows) => reach.last = reach.last.max(many(rows)),
            Before::Within(micros) => reach.within = reach.within.max(Some(units(micros, is)?)),
            Before::Nothing | Before::All | Before::Count(_) => {}
        }
    }
    Ok((ForgetBy { lasts: Lasts::Units(size.saturating_add(wait)), ..due }, is_final, reach))
}

/// What makes constants of arguments that are.
pub(super) fn simplifier(schema: &DFSchemaRef, request: &Request<'_>) -> ExprSimplifier {
    let context = SimplifyContext::builder().with_schema(schema.clone());
    ExprSimplifier::new(context.with_config_options(request.state.config_options().clone()).build())
}

/// What a call reads: constants, and columns of a row.
pub(super) struct Reads {
    args: Vec<Read>,
    filter: Option<usize>,
}

enum Read {
    Constant(ScalarValue),
    Column(usize),
}

impl Reads {
    pub fn of(
        call: &WindowFunction,
        simplifier: &ExprSimplifier,
        row: &mut Row,
        names: &Names,
        visible: &datafusion::common::DFSchema,
    ) -> Result<Self> {
        let mut one = |arg: &Expr| -> Result<Read> {
            Ok(match simplifier.simplify(strip_alias(arg))? {
                Expr::Literal(value, _) => Read::Constant(value),
                _ => Read::Column(row.add(arg, names.name(arg), visible)?),
            })
        };
        let args: Vec<Read> = call.params.args.iter().map(&mut one).collect::<Result<_>>()?;
        let filter = match &call.params.filter {
            Some(filter) => Some(row.add(filter, names.name(filter), visible)?),
            None => None,
        };
        Ok(Reads { args, filter })
    }

    fn physical(&self, column: &dyn Fn(usize) -> Arc<dyn PhysicalExpr>) -> Physical {
        let one = |read: &Read| -> Arc<dyn PhysicalExpr> {
            match read {
                Read::Constant(value) => Arc::new(Literal::new(value.clone())),
                Read::Column(at) => column(*at),
            }
        };
        (self.args.iter().map(one).collect(), self.filter.map(column))
    }
}

/// Arguments, and what is asked of a row.
type Physical = (Vec<Arc<dyn PhysicalExpr>>, Option<Arc<dyn PhysicalExpr>>);

/// How the rows of a partition are ordered, by columns at these places.
pub(super) fn sorted(
    over: &Over<'_>,
    order_by: &[usize],
    column: &dyn Fn(usize) -> Arc<dyn PhysicalExpr>,
) -> Vec<PhysicalSortExpr> {
    let by = order_by.iter().zip(over.order_by);
    by.map(|(at, by)| PhysicalSortExpr { expr: column(*at), options: options(by) }).collect()
}

/// The calls over the rows of the state, and the types of their values. `whole`: over whole partitions.
pub(super) fn calls(
    over: &Over<'_>,
    names: &Names,
    reads: &[Reads],
    whole: bool,
    column: &dyn Fn(usize) -> Arc<dyn PhysicalExpr>,
    order_by: &[PhysicalSortExpr],
    rows: &SchemaRef,
) -> Result<(Vec<Call>, Vec<DataType>)> {
    let each = over.calls.iter().zip(reads).enumerate();
    each.map(|(n, ((call, needs), reads))| {
        made(call, needs, whole, called(over, n, names), &reads.physical(column), order_by, rows)
    })
    .collect()
}

/// A call, and the type of its values.
fn made(
    call: &WindowFunction,
    needs: &Needs,
    whole: bool,
    name: String,
    (args, filter): &Physical,
    order_by: &[PhysicalSortExpr],
    rows: &SchemaRef,
) -> Result<(Call, DataType)> {
    let params = &call.params;
    let ignores = params.null_treatment == Some(NullTreatment::IgnoreNulls);
    if !is_window_frame_bound_valid(&params.window_frame) {
        return Err(Error::invalid(format!("the frame {} begins behind its end", frames::text(&params.window_frame))));
    }
    let frame = Arc::new(params.window_frame.clone());
    let fun = match &call.fun {
        WindowFunctionDefinition::AggregateUDF(fun) => fun.clone(),
        WindowFunctionDefinition::WindowUDF(_) => {
            let (distinct, schema) = (params.distinct, rows.clone());
            let window =
                create_window_expr(&call.fun, name, args, &[], order_by, frame, schema, ignores, distinct, None)?;
            let is = window.field()?.data_type().clone();
            return Ok(match needs.before {
                Before::Count(rank) if !whole => (Call::Number(window, rank), is),
                _ => (Call::Window(window), is),
            });
        }
    };
    let function = AggregateExprBuilder::new(fun, args.clone())
        .schema(rows.clone())
        .alias(name)
        .with_ignore_nulls(ignores)
        .with_distinct(params.distinct)
        .build()?;
    let is = function.field().data_type().clone();
    let framed = Framed::new(Arc::new(function), filter.clone(), frame)?;
    Ok(if needs.before == Before::All && !whole { (Call::Running(framed), is) } else { (Call::Framed(framed), is) })
}

/// What is to be remembered of all rows of a partition.
fn running(
    over: &Over<'_>,
    calls: &[Call],
    names: &Names,
    keys: &[FieldRef],
    ends: Option<&str>,
    request: &mut Request<'_>,
) -> Result<Option<RunningSpec>> {
    let counts = |call: &&Call| matches!(call, Call::Number(..) | Call::Running(_));
    if !calls.iter().any(|call| counts(&call)) {
        return Ok(None);
    }
    let functions = calls.iter().filter_map(|call| match call {
        Call::Running(framed) => Some(framed.function().clone()),
        _ => None,
    });
    let functions: Vec<_> = functions.collect();
    let function_names: Vec<String> = functions.iter().map(|function| function.name().to_string()).collect();
    let width = keys.len();
    let states = state_fields(&functions, &function_names, &|_| false, width + 2)?;
    let count = |n: usize, name: &str| numbered(width + n, name, &DataType::Int64);
    let rows = keys.iter().cloned().chain([count(0, "rows"), count(1, "places")]);
    let rows: Vec<FieldRef> = rows.chain(states.iter().flatten().cloned()).collect();
    let serves = calls.iter().enumerate().filter(|(_, call)| counts(call));
    let serves: Vec<String> = serves.map(|(n, _)| called(over, n, names)).collect();
    Ok(Some(RunningSpec {
        name: request.named.name("running"),
        keys: Arc::new(Schema::new(keys.to_vec())),
        rows: Arc::new(Schema::new(rows)),
        states,
        serves: serves.join(", "),
        bound: match (ends, width) {
            (Some(end), _) => format!("one row a partition, until the watermark reaches the end of {end}"),
            (None, 0) => "one row".into(),
            (None, _) => format!(
                "UNBOUNDED: one row of each {}, kept for ever, as nothing that they are partitioned by is a watermarked time",
                of_each(over, names)
            ),
        },
    }))
}

/// A column of the result: what orders it first, then what the plan above knows.
fn result(n: usize, hidden: usize, is: DataType) -> FieldRef {
    let name = if n < hidden { format!("by{n}") } else { format!("c{}", n - hidden) };
    Field::new(name, is, true).into()
}

fn bare(field: &FieldRef) -> &str {
    field.name().split_once(':').map_or(field.name().as_str(), |(_, name)| name)
}

pub(super) fn refused(error: Error) -> Error {
    Error::unsupported(format!("OVER (…) can't remember its rows: {error}"))
        .help("CAST what it is partitioned and ordered by to another type, such as STRING")
}

pub(super) fn text(over: &Over<'_>, names: &Names) -> String {
    let one = |(n, expr): (usize, &Expr)| {
        let casts = names.casts(expr);
        let of = if casts.is_empty() { String::new() } else { format!(" of {}", casts.join(", ")) };
        called(over, n, names) + &of
    };
    over.window.window_expr.iter().enumerate().map(one).collect::<Vec<_>>().join(", ")
}

/// A call, with the lengths of its frame as a person writes them.
fn called(over: &Over<'_>, n: usize, names: &Names) -> String {
    let frame = &over.calls[n].0.params.window_frame;
    let mut text = names.name(&over.window.window_expr[n]);
    for bound in [&frame.start_bound, &frame.end_bound] {
        let (WindowFrameBound::Preceding(value) | WindowFrameBound::Following(value)) = bound else { continue };
        let ScalarValue::IntervalMonthDayNano(Some(length)) = value else { continue };
        text = text.replace(&format!("{length:?}"), &format!("INTERVAL '{}'", frames::length_text(*length)));
    }
    text
}

fn of_each(over: &Over<'_>, names: &Names) -> String {
    let partition: Vec<String> = over.partition_by.iter().map(|expr| names.name(expr)).collect();
    format!("({})", partition.join(", "))
}

fn time_name(over: &Over<'_>, names: &Names) -> String {
    over.order_by.first().map(|by| names.name(&by.expr)).unwrap_or_default()
}

/// When a row is sent.
fn sends(over: &Over<'_>, names: &Names, ends: Option<&str>) -> String {
    let at_its_end = ends.map(|end| format!("when the watermark reaches the end of {end}"));
    if over.time.is_none() {
        return format!("each row once, {}", at_its_end.unwrap_or_default());
    }
    let (micros, rows) = over.waits();
    let mut text = format!("each row once, when the watermark reaches {}", time_name(over, names));
    if micros > 0 {
        text += &format!(" + {}", interval_text(micros));
    }
    if rows > 0 {
        let s = if rows == 1 { " more row of its partition has" } else { " more rows of its partition have" };
        text += &format!(", and that of {rows}{s} been passed too, or at DRAIN");
    }
    text
}

/// What bounds the rows that are remembered.
fn bound(over: &Over<'_>, names: &Names, ends: Option<&str>) -> String {
    let until_end = ends.map(|end| format!("until the watermark reaches the end of {end}"));
    if over.time.is_none() {
        return format!("the rows of each partition, {}", until_end.unwrap_or_default());
    }
    let (micros, rows) = over.waits();
    let until = if micros > 0 { format!(" + {}", interval_text(micros)) } else { String::new() };
    let mut parts = vec![format!("rows until the watermark reaches {}{until}", time_name(over, names))];
    let (mut first, mut last, mut within) = (0, 0, None);
    for (_, needs) in &over.calls {
        match needs.before {
            Before::First(rows) => first = first.max(rows),
            Before::Last(rows) => last = last.max(rows),
            Before::Within(micros) => within = within.max(Some(micros)),
            Before::Nothing | Before::All | Before::Count(_) => {}
        }
    }
    parts.extend(within.map(|micros| format!("those of {} before it", interval_text(micros))));
    let each = if over.partition_by.is_empty() { String::new() } else { format!(" of each {}", of_each(over, names)) };
    let s = |rows: u64| if rows == 1 { "" } else { "s" };
    if last + rows > 0 {
        parts.push(format!("the last {} row{}{each}", last + rows, s(last + rows)));
    }
    if first > 0 {
        parts.push(format!("the first {first} row{}{each}", s(first)));
    }
    let text = parts.join(", and ");
    match until_end {
        _ if last + rows + first == 0 || over.partition_by.is_empty() => text,
        Some(until) => format!("{text}, {until}"),
        None => {
            format!("UNBOUNDED: {text}, kept for ever, as nothing that they are partitioned by is a watermarked time")
        }
    }
}
