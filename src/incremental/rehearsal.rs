//! A rehearsal at START: keys and functions of an aggregation are tried on a row, so that what can't be grouped, remembered
//! or put together is refused then, and not by the first batch.
//!
//! DataFusion finds out about most types when rows come. No expression of the query is run: one may fail on a value that no
//! stream has.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, new_null_array};
use arrow::compute::concat;
use arrow::datatypes::{DataType, Field, FieldRef, Schema};
use arrow::ipc::writer::StreamWriter;
use datafusion::error::DataFusionError;
use datafusion::logical_expr::EmitTo;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::Literal;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::aggregates::group_values::new_group_values;
use datafusion::physical_plan::aggregates::order::GroupOrdering;
use datafusion::scalar::ScalarValue;

use crate::delta::keys::KeyCodec;
use crate::error::{Error, Result};
use crate::operator::{AggregateSpec, BatchInfo, ChainSpec, KeyedDelta, OperatorSpec, SessionSpec, StateSpec};

type DfResult<T> = datafusion::error::Result<T>;

/// Takes a row through the first half of an aggregation and the operator. `names`: of the first half's functions.
///
/// # Errors
/// Unsupported, with the key or the function that can't run.
pub fn rehearse(partial: &AggregateExec, names: &[String], chain: &Arc<ChainSpec>) -> Result<()> {
    let spec = &chain.aggregate;
    let distinct = chain.distinct.iter().map(|(spec, codec)| (&spec.keys, codec));
    for (keys, codec) in chain.elements().map(|(spec, codec)| (&spec.keys, codec)).chain(distinct) {
        let values = keys.fields().iter().map(|field| some_values(field.data_type()));
        let kept = values.collect::<DfResult<Vec<_>>>().map_err(Error::from).and_then(|values| keep(codec, &values));
        kept.map_err(|e| refused(keys.fields().last().map_or("DISTINCT", |value| name(value)), &e.to_string()))?;
    }
    let rows = first_half(partial, names, spec, spec.keys.len())?;
    let keys = &rows.columns()[..spec.keys.len()];
    keep(&chain.codec, keys).map_err(|e| refused(&key_names(&spec.keys), &e.to_string()))?;
    second_half(chain.clone(), &rows)
}

/// The same for an aggregation by sessions.
///
/// # Errors
/// As of [`rehearse`].
pub fn rehearse_sessions(partial: &AggregateExec, sessions: &Arc<SessionSpec>) -> Result<()> {
    let spec = &sessions.aggregate;
    let rows = first_half(partial, &spec.names, spec, spec.keys.len() + 1)?;
    let keys = &rows.columns()[..spec.keys.len()];
    keep(&sessions.state_key, keys).map_err(|e| refused(&key_names(&spec.keys), &e.to_string()))?;
    second_half(sessions.clone(), &rows)
}

/// What the fragment hands to the operator: `width` keys, then states.
fn first_half(partial: &AggregateExec, names: &[String], spec: &AggregateSpec, width: usize) -> Result<RecordBatch> {
    let fields = partial.schema();
    let fields = fields.fields().iter().map(|field| field.as_ref().clone().with_nullable(true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let mut columns = Vec::new();
    if width > 0 {
        columns = group(&schema, width).map_err(|e| refused(&key_names(&spec.keys), &cause(&e)))?;
    }
    let rows = columns.first().map_or(1, |column| column.len());
    for (function, name) in partial.aggr_expr().iter().zip(names) {
        let states = accumulate(partial, spec, function, rows).map_err(|e| refused(name, &cause(&e)))?;
        let declared = schema.fields()[columns.len()..][..states.len()].to_vec();
        RecordBatch::try_new(Arc::new(Schema::new(declared)), states.clone())
            .map_err(|e| refused(name, &e.to_string()))?;
        columns.extend(states);
    }
    for (at, name) in spec.names.iter().enumerate() {
        spec.try_values(at).map_err(|e| refused(name, &e.to_string()))?;
    }
    RecordBatch::try_new(schema, columns).map_err(Error::from)
}

fn second_half(operator: Arc<dyn OperatorSpec>, rows: &RecordBatch) -> Result<()> {
    let (codec, width) = operator.key(0);
    let keys = Arc::new(codec.encode(&rows.columns()[..width], rows.num_rows())?);
    let mut part = operator.clone().part()?;
    let mut states: Vec<_> = operator.states().iter().map(StateSpec::table).collect();
    let (mut states, info) = (states.iter_mut().collect::<Vec<_>>(), BatchInfo::default());
    // Twice: what is remembered is put together with what comes.
    for _ in 0..2 {
        let delta = KeyedDelta { rows: rows.clone(), keys: keys.clone(), select: None };
        part.push(0, &delta, &info, &mut states)?;
        part.finish(&info, &mut states)?;
    }
    Ok(())
}

/// Keys through the state's own bytes and into a file.
fn keep(codec: &KeyCodec, keys: &[ArrayRef]) -> Result<()> {
    let Some(first) = keys.first() else { return Ok(()) };
    let encoded = codec.encode(keys, first.len())?;
    let back = codec.decode((0..first.len()).map(|row| encoded.bytes(row)))?;
    let fields: Vec<Field> = keys.iter().map(|key| Field::new("key", key.data_type().clone(), true)).collect();
    let rows = RecordBatch::try_new(Arc::new(Schema::new(fields)), back).map_err(Error::from)?;
    let mut file = StreamWriter::try_new(Vec::new(), &rows.schema()).map_err(Error::from)?;
    file.write(&rows).map_err(Error::from)
}

fn name(field: &Field) -> &str {
    field.name().split_once(':').map_or(field.name(), |(_, name)| name)
}

fn key_names(keys: &[FieldRef]) -> String {
    let names = keys.iter().map(|key| format!("{} {}", name(key), key.data_type()));
    format!("GROUP BY {}", names.collect::<Vec<_>>().join(", "))
}

fn cause(error: &DataFusionError) -> String {
    match error {
        DataFusionError::Internal(cause)
        | DataFusionError::NotImplemented(cause)
        | DataFusionError::Execution(cause) => cause.clone(),
        other => other.strip_backtrace(),
    }
}

fn refused(what: &str, cause: &str) -> Error {
    Error::unsupported(format!("{what} can't run over a stream: {cause}"))
        .help("CAST what it reads to another type, such as STRING, or take another function")
}

/// NULL, and the first value of a type that is not made of others.
fn some_values(data_type: &DataType) -> DfResult<ArrayRef> {
    if data_type.is_nested() {
        return Ok(new_null_array(data_type, 2));
    }
    match ScalarValue::new_default(data_type).and_then(|value| value.to_array()) {
        Ok(value) => Ok(concat(&[new_null_array(data_type, 1).as_ref(), value.as_ref()])?),
        Err(_) => Ok(new_null_array(data_type, 2)),
    }
}

/// The keys as the fragment groups them.
fn group(schema: &Arc<Schema>, width: usize) -> DfResult<Vec<ArrayRef>> {
    let fields: Vec<_> = schema.fields()[..width].to_vec();
    let mut groups = new_group_values(Arc::new(Schema::new(fields)), &GroupOrdering::None)?;
    let columns =
        schema.fields()[..width].iter().map(|field| some_values(field.data_type())).collect::<DfResult<Vec<_>>>()?;
    groups.intern(&columns, &mut Vec::new())?;
    groups.emit(EmitTo::All)
}

/// The states that a function of the fragment hands out for NULL.
fn accumulate(
    partial: &AggregateExec,
    spec: &AggregateSpec,
    function: &Arc<AggregateFunctionExpr>,
    rows: usize,
) -> DfResult<Vec<ArrayRef>> {
    let schema = partial.input_schema();
    let argument = |expr: &Arc<dyn PhysicalExpr>| match (expr.as_ref() as &dyn std::any::Any).downcast_ref::<Literal>()
    {
        Some(literal) => literal.value().to_array_of_size(rows),
        None => Ok(new_null_array(&expr.data_type(&schema)?, rows)),
    };
    let exprs = function.all_expressions();
    let values = exprs.args.iter().chain(&exprs.order_by_exprs).map(argument).collect::<DfResult<Vec<_>>>()?;
    let mut accumulator = spec.accumulator(function)?;
    accumulator.update_batch(&values, &(0..rows).collect::<Vec<_>>(), None, rows)?;
    accumulator.state(EmitTo::All)
}
