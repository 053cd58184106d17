//! From the first half of an aggregation, what its operators need to know: what is remembered, under which names.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Schema};
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;

use super::aggregate::{Counts, Named, Request, TimeKey};
use super::linear::Linear;
use super::lower::{ElementsOf, Lowered, lower};
use crate::delta::calendar::Lasts;
use crate::delta::keys::KeyCodec;
use crate::delta::time::unit_of;
use crate::error::{Error, Result};
use crate::operator::{AggregateSpec, ChainSpec, DistinctSpec, ElementsSpec, Emit, Feed, ForgetBy, Keep};
use crate::parser::OutputMode;
use crate::planner::event_time::EventTime;

/// The operators: the aggregate with what it remembers, and a distinct for each argument whose values it wants once.
pub fn chain(
    partial: &AggregateExec,
    time: Option<TimeKey>,
    order_matters: bool,
    emit: Emit,
    names: &Named,
    linear: Option<&Linear>,
    request: &mut Request<'_>,
) -> Result<ChainSpec> {
    let schema = partial.schema();
    let width = partial.group_expr().num_group_exprs();
    if (names.keys.len(), names.functions.len()) != (width, partial.aggr_expr().len()) {
        return Err(Error::internal("an aggregation has other keys or functions than it was planned with"));
    }
    let keys = schema.fields()[..width].iter().zip(&names.keys).enumerate();
    let keys: Vec<FieldRef> = keys.map(|(n, (f, name))| numbered(n, name, f.data_type())).collect();
    let forget = match time {
        Some(time) if request.mode != OutputMode::Complete => Some(forget_by(time, keys[time.key].data_type())?),
        _ => None,
    };
    let lowered = lower(partial, &keys, names, linear)?;
    let Lowered { functions, feeds, arguments, elements, names: function_names, places, rows } = lowered;
    let is_elements = |n: usize| matches!(feeds[n], Feed::Elements(_));
    let states = state_fields(&functions, &function_names, &is_elements, width)?;
    let column = |n: usize, t: &DataType| Field::new(format!("c{n}"), t.clone(), true);
    let mut output: Vec<Field> = keys.iter().enumerate().map(|(n, f)| column(n, f.data_type())).collect();
    // Behind the operator columns are known by their places in the SELECT.
    output.extend(functions.iter().zip(&places).map(|(f, n)| column(width + n, f.field().data_type())));
    // The place of its state: the functions before it have as many columns as they have.
    let rows = rows.map(|n| states[..n].iter().map(Vec::len).sum::<usize>());
    let (elements, element_codecs) = remembered_elements(elements, &keys, forget, request.named)?;
    let state_fields: Vec<FieldRef> = keys.iter().chain(states.iter().flatten()).cloned().collect();
    let aggregate = AggregateSpec {
        name: request.named.name("aggregate"),
        key_schema: Arc::new(Schema::new(keys.clone())),
        keys: keys.clone(),
        functions,
        names: function_names,
        order_matters,
        states,
        rows,
        feeds,
        elements,
        inputs: arguments.iter().map(|argument| argument.data_type.clone()).collect(),
        output: Arc::new(Schema::new(output)),
        state_schema: Arc::new(Schema::new(state_fields)),
        emit,
        forget,
        casts: names.casts.clone(),
    };
    let distinct = arguments.into_iter().map(|argument| {
        let value = numbered(width, &argument.name, &argument.data_type);
        let keys: Vec<FieldRef> = keys.iter().cloned().chain([value]).collect();
        let codec = Arc::new(KeyCodec::new(&keys)?);
        let name = request.named.name("distinct");
        let spec = DistinctSpec { name, lists: argument.column, keys: Arc::new(Schema::new(keys)), forget };
        Ok((Arc::new(spec), codec))
    });
    let (distinct, codec) = (distinct.collect::<Result<_>>()?, Arc::new(KeyCodec::new(&keys)?));
    Ok(ChainSpec { aggregate: Arc::new(aggregate), codec, elements: element_codecs, distinct })
}

/// What is remembered element by element, and what makes its keys.
type RememberedElements = (Vec<Arc<ElementsSpec>>, Vec<Arc<KeyCodec>>);

fn remembered_elements(
    elements: Vec<ElementsOf>,
    groups: &[FieldRef],
    forget: Option<ForgetBy>,
    named: &mut Counts,
) -> Result<RememberedElements> {
    let width = groups.len();
    let one = |of: ElementsOf| {
        let element = |from: usize| {
            let one = |(n, (name, is)): (usize, &(String, DataType))| numbered(from + n, name, is);
            of.values.iter().enumerate().map(one).collect::<Vec<_>>()
        };
        let (key, values) = match of.keep {
            Keep::InOrder => {
                let by = |(n, is): (usize, &DataType)| numbered(width + 2 + n, &format!("{}[{n}]", of.name), is);
                let by = of.orderings.iter().enumerate().map(by);
                let values = element(width + 1).into_iter().chain(by).collect();
                (vec![numbered(width, "number", &DataType::Int64)], values)
            }
            Keep::Counted { .. } | Keep::Signed => {
                let key = element(width);
                let count = numbered(width + key.len(), "count", &DataType::Int64);
                (key, vec![count])
            }
        };
        let keys: Vec<FieldRef> = groups.iter().cloned().chain(key).collect();
        let codec = match of.keep {
            // What is taken back was computed anew: it is to be found whatever its zero or NaN looks like now.
            Keep::Signed => KeyCodec::new(&keys).map_err(|e| refused_values(&of.name, &e))?,
            _ => KeyCodec::exact_behind(&keys, width)?,
        };
        let codec = Arc::new(codec);
        let rows: Vec<FieldRef> = keys.iter().cloned().chain(values).collect();
        let spec = ElementsSpec {
            name: named.name("elements"),
            keep: of.keep,
            columns: of.columns,
            taken_as: of.taken_as,
            group: width,
            keys: Arc::new(Schema::new(keys)),
            rows: Arc::new(Schema::new(rows)),
            forget,
        };
        Ok((Arc::new(spec), codec))
    };
    elements.into_iter().map(one).collect::<Result<Vec<_>>>().map(|all| all.into_iter().unzip())
}

/// The fields of each function's state, the first of which stands at column `at`; elements are remembered elsewhere.
pub fn state_fields(
    functions: &[Arc<AggregateFunctionExpr>],
    names: &[String],
    is_elements: &dyn Fn(usize) -> bool,
    mut at: usize,
) -> Result<Vec<Vec<FieldRef>>> {
    let mut states = Vec::new();
    for (n, (function, name)) in functions.iter().zip(names).enumerate() {
        let fields = if is_elements(n) { Vec::new() } else { function.state_fields()? };
        let field = |(n, f): (usize, &FieldRef)| match f.name().strip_prefix(function.name()) {
            Some(state) => numbered(at + n, &format!("{name}{state}"), f.data_type()),
            None => numbered(at + n, f.name(), f.data_type()),
        };
        states.push(fields.iter().enumerate().map(field).collect::<Vec<_>>());
        at += fields.len();
    }
    Ok(states)
}

fn refused_values(name: &str, why: &Error) -> Error {
    Error::unsupported(format!("{name} over rows that are taken back: {why}"))
        .help("CAST what it reads to another type, such as STRING")
}

/// A column of a state, by a name of its own.
pub fn numbered(n: usize, name: &str, data_type: &DataType) -> FieldRef {
    Field::new(format!("{n}:{name}"), data_type.clone(), true).into()
}

fn forget_by(time: TimeKey, data_type: &DataType) -> Result<ForgetBy> {
    forget_at(time.key, time.time, data_type)
}

/// How rows are forgotten by a column that stands for such a time.
pub fn forget_at(column: usize, time: EventTime, data_type: &DataType) -> Result<ForgetBy> {
    let lasts = match time {
        EventTime::WindowStart(windows) => windows.lasts_in(unit_of(data_type)?)?,
        EventTime::WindowLast => Lasts::Units(1),
        _ => Lasts::NOTHING,
    };
    Ok(ForgetBy { column, lasts })
}
