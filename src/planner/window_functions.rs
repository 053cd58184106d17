//! The functions that windows are rewritten to: the start of a row's window, the starts of all its windows, the end
//! of a window, and the mark that says which column carries a watermark.
//!
//! They work in the time column's own unit and keep its type. Sizes are whole numbers of that unit. Cumulating windows are known by
//! their ends: of those that begin together each has its own.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, ListArray};
use arrow::buffer::{OffsetBuffer, ScalarBuffer};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, TimeUnit};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, exec_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, LogicalPlan, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    TypeSignature, Volatility,
};
use datafusion::scalar::ScalarValue;

use super::window_shape::{WindowShape, Windows};
use crate::delta::calendar::{Calendar, Count, Zone};
use crate::delta::time::{Unit, time_array, time_values, unit_of};
use crate::error::{Error, first_span};

/// Which of the functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Which {
    /// `(time, size, slide, offset)` → the start of the newest window that holds the time. Where windows overlap a row
    /// has more than one: then it stands for all of them and is replaced before the plan runs.
    Start,
    /// `(time, size, slide, offset)` → the starts of all windows that hold the time, newest first.
    Starts,
    /// `(start, size)` → the end of the window.
    End,
    /// `(time, size, step, offset)` → the end of the first cumulating window that holds the time, as [`Which::Start`] stands for
    /// all.
    CumulateEnd,
    /// `(time, size, step, offset)` → the ends of all cumulating windows that hold the time, the first to end first.
    CumulateEnds,
    /// `(end, size, step, offset)` → the start of the cumulating window.
    CumulateStart,
    /// `(time, each, count, months, micros, zone[, stretches])` → the start of the newest calendar window that holds the time, as
    /// [`Which::Start`] stands for all.
    CalendarStart,
    /// The same → the starts of all calendar windows that hold the time, newest first.
    CalendarStarts,
    /// The same of its start → its end.
    CalendarEnd,
    /// `(window)` → its last instant.
    Last,
    /// `(time, delay)` → the time. Marks the column that carries a watermark; taken out before the plan runs.
    Watermark,
}

impl Which {
    /// Whether a call gives rows their windows.
    pub fn gives_windows(self) -> bool {
        matches!(self, Which::Start | Which::CumulateEnd | Which::CalendarStart)
    }
}

/// `levada_window_start`
pub static START: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| udf(Which::Start, "levada_window_start", 4));
/// `levada_window_starts`
pub static STARTS: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| udf(Which::Starts, "levada_window_starts", 4));
/// `levada_window_end`
pub static END: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| udf(Which::End, "levada_window_end", 2));
/// `levada_cumulate_end`
pub static CUMULATE_END: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| udf(Which::CumulateEnd, "levada_cumulate_end", 4));
/// `levada_cumulate_ends`
pub static CUMULATE_ENDS: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| udf(Which::CumulateEnds, "levada_cumulate_ends", 4));
/// `levada_cumulate_start`
pub static CUMULATE_START: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| udf(Which::CumulateStart, "levada_cumulate_start", 4));
/// `levada_calendar_start`
pub static CALENDAR_START: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| calendar_udf(Which::CalendarStart, "levada_calendar_start"));
/// `levada_calendar_starts`
pub static CALENDAR_STARTS: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| calendar_udf(Which::CalendarStarts, "levada_calendar_starts"));
/// `levada_calendar_end`
pub static CALENDAR_END: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| calendar_udf(Which::CalendarEnd, "levada_calendar_end"));
/// `window_time`
pub static LAST: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| udf(Which::Last, "window_time", 1));
/// `levada_watermark`
pub static WATERMARK: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| udf(Which::Watermark, "levada_watermark", 2));

fn udf(which: Which, name: &'static str, args: usize) -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::new_from_impl(WindowFunction {
        which,
        name,
        signature: Signature::any(args, Volatility::Immutable),
    }))
}

fn calendar_udf(which: Which, name: &'static str) -> Arc<ScalarUDF> {
    let signature = Signature::one_of(vec![TypeSignature::Any(6), TypeSignature::Any(7)], Volatility::Immutable);
    Arc::new(ScalarUDF::new_from_impl(WindowFunction { which, name, signature }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct WindowFunction {
    which: Which,
    name: &'static str,
    signature: Signature,
}

impl ScalarUDFImpl for WindowFunction {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, args: &[DataType]) -> Result<DataType> {
        let time = time_type(&args[0])?;
        if self.which == Which::Last && !matches!(args[0], DataType::Struct(_)) {
            return plan_err!("window_time wants a window, such as window(ts, '10 seconds'), not {}", args[0]);
        }
        Ok(match self.which {
            Which::Starts | Which::CumulateEnds | Which::CalendarStarts => {
                DataType::List(Arc::new(Field::new_list_field(time, true)))
            }
            _ => time,
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let time = args.args[0].to_array(rows)?;
        let data_type = time_type(time.data_type())?;
        let time = match time.data_type() {
            DataType::Struct(_) => last_instants(&time, &data_type)?,
            _ => cast(&time, &data_type)?,
        };
        let constants = args.args[1..].iter().map(constant).collect::<Result<Vec<_>>>()?;
        let unit = unit_of(&data_type)?;
        let values = time_values(&time)?;
        let result = match (self.which, windows_of(self.which, &constants)) {
            (Which::Watermark | Which::Last, _) => time,
            (Which::End, _) => {
                let [ScalarValue::Int64(Some(size))] = constants[..] else { return self.wrong() };
                let shape = WindowShape { size, slide: size, offset: 0 }.in_unit(unit)?;
                ends(&values, shape.size, &data_type)?
            }
            (Which::Start, Some(Windows::Sliding(shape))) => starts(&values, shape.in_unit(unit)?, &data_type)?,
            (Which::Starts, Some(Windows::Sliding(shape))) => all_starts(&values, shape.in_unit(unit)?, &data_type)?,
            (which, Some(Windows::Cumulating(shape))) => {
                let shape = shape.in_unit(unit)?;
                match which {
                    Which::CumulateEnd => each(&values, |t| Some(shape.ends(t)?.0), &data_type)?,
                    Which::CumulateEnds => all_ends(&values, shape, &data_type)?,
                    // The end is not in the window.
                    _ => each(&values, |end| shape.first_start(end.checked_sub(1)?), &data_type)?,
                }
            }
            (which, Some(Windows::Calendar(calendar))) => {
                Windows::Calendar(calendar).check_unit(unit)?;
                match which {
                    Which::CalendarStarts => all_stretches(&values, &calendar, unit, &data_type)?,
                    which => stretches(&values, &calendar, unit, which == Which::CalendarEnd, &data_type)?,
                }
            }
            _ => return self.wrong(),
        };
        Ok(ColumnarValue::Array(result))
    }
}

impl WindowFunction {
    fn wrong<T>(&self) -> Result<T> {
        exec_err!("{} was called with other constants than it takes", self.name)
    }
}

/// The type that a window over a column of type `t` has: its own, if it is a time.
pub(super) fn time_type(t: &DataType) -> Result<DataType> {
    match t {
        DataType::Timestamp(_, _) | DataType::Date32 => Ok(t.clone()),
        DataType::Null => Ok(DataType::Timestamp(TimeUnit::Microsecond, None)),
        DataType::Dictionary(_, value) => time_type(value),
        DataType::Struct(fields) => match fields.iter().find(|field| field.name() == "end") {
            Some(end) if fields.len() == 2 && fields[0].name() == "start" => time_type(end.data_type()),
            _ => plan_err!("a window can be made over a time or over another window, not over {t}"),
        },
        other => plan_err!(
            "a window or watermark wants a TIMESTAMP or DATE column, not {other}; cast it, as in CAST(x AS TIMESTAMP)"
        ),
    }
}

/// The last instant of each window: one unit before its end, which belongs to the next.
fn last_instants(windows: &ArrayRef, data_type: &DataType) -> Result<ArrayRef> {
    let windows = windows.as_struct();
    let Some(ends) = windows.column_by_name("end") else { return exec_err!("a window without an end") };
    let ends = time_values(&cast(ends, data_type)?)?;
    let of = |row: usize| (windows.is_valid(row) && ends.is_valid(row)).then(|| ends.value(row));
    let last = (0..windows.len()).map(|row| match of(row) {
        Some(end) => end.checked_sub(1).map(Some).ok_or_else(|| out_of_range(end)),
        None => Ok(None),
    });
    typed(last.collect::<Result<Int64Array>>()?, data_type)
}

fn constant(value: &ColumnarValue) -> Result<ScalarValue> {
    match value {
        ColumnarValue::Scalar(value) => Ok(value.clone()),
        ColumnarValue::Array(_) => exec_err!("a window's length is not a constant"),
    }
}

/// The windows that a call with these constants is about.
fn windows_of(which: Which, constants: &[ScalarValue]) -> Option<Windows> {
    let number = |n: usize| match constants.get(n)? {
        ScalarValue::Int64(number) => *number,
        _ => None,
    };
    let text = |n: usize| constants.get(n)?.try_as_str()?;
    let shape = || Some(WindowShape { size: number(0)?, slide: number(1)?, offset: number(2)? });
    match which {
        Which::Start | Which::Starts => shape().map(Windows::Sliding),
        Which::CumulateEnd | Which::CumulateEnds | Which::CumulateStart => shape().map(Windows::Cumulating),
        Which::CalendarStart | Which::CalendarStarts | Which::CalendarEnd => {
            let stretches = if constants.len() > 5 { number(5)? } else { 1 };
            let count = COUNTS.iter().find(|(_, name)| text(1) == Some(*name))?.0;
            let (each, months, micros) = (number(0)?, number(2)?, number(3)?);
            let zone = Zone::parse(text(4)?).ok()?;
            Some(Windows::Calendar(Calendar { each, count, stretches, months, micros, zone }))
        }
        Which::End | Which::Last | Which::Watermark => None,
    }
}

/// What the functions of calendar windows take behind the time.
pub fn calendar_constants(calendar: &Calendar) -> Vec<ScalarValue> {
    let Calendar { each, count, stretches, months, micros, zone } = calendar;
    let number = |n: i64| ScalarValue::Int64(Some(n));
    let name = COUNTS.iter().find(|(known, _)| known == count).map_or("", |(_, name)| name);
    let zone = ScalarValue::from(zone.to_string());
    let mut all = vec![number(*each), ScalarValue::from(name), number(*months), number(*micros), zone];
    all.extend((*stretches > 1).then(|| number(*stretches)));
    all
}

/// What calendars count in, as constants of a call.
pub(super) const COUNTS: [(Count, &str); 3] = [(Count::Days, "day"), (Count::Weeks, "week"), (Count::Months, "month")];

pub(super) fn out_of_range(time: i64) -> datafusion::error::DataFusionError {
    datafusion::error::DataFusionError::Execution(format!(
        "the window of time {time} lies outside the range of its type"
    ))
}

/// Back from whole numbers to the column's type.
pub(super) fn typed(values: Int64Array, data_type: &DataType) -> Result<ArrayRef> {
    Ok(time_array(values, data_type)?)
}

fn each(times: &Int64Array, of: impl Fn(i64) -> Option<i64>, data_type: &DataType) -> Result<ArrayRef> {
    typed(times.try_unary(|t| of(t).ok_or_else(|| out_of_range(t)))?, data_type)
}

fn starts(times: &Int64Array, shape: WindowShape, data_type: &DataType) -> Result<ArrayRef> {
    each(times, |t| shape.last_start(t), data_type)
}

fn ends(starts: &Int64Array, size: i64, data_type: &DataType) -> Result<ArrayRef> {
    each(starts, |t| t.checked_add(size), data_type)
}

fn all_starts(times: &Int64Array, shape: WindowShape, data_type: &DataType) -> Result<ArrayRef> {
    let capacity = times.len() * ((shape.size / shape.slide) as usize + 1);
    spread(times, capacity, data_type, |time, values| {
        let mut start = shape.last_start(time)?;
        // The window that holds the time is half-open: [start, start + size).
        while start.checked_add(shape.size)? > time {
            values.push(start);
            start = start.checked_sub(shape.slide)?;
        }
        Some(())
    })
}

fn all_ends(times: &Int64Array, shape: WindowShape, data_type: &DataType) -> Result<ArrayRef> {
    spread(times, times.len(), data_type, |time, values| {
        let (mut end, last) = shape.ends(time)?;
        while end <= last {
            values.push(end);
            end = end.checked_add(shape.slide)?;
        }
        Some(())
    })
}

/// A list for each time, to which `all` pushes.
fn spread(
    times: &Int64Array,
    capacity: usize,
    data_type: &DataType,
    mut all: impl FnMut(i64, &mut Vec<i64>) -> Option<()>,
) -> Result<ArrayRef> {
    let mut values = Vec::with_capacity(capacity);
    let mut offsets = Vec::with_capacity(times.len() + 1);
    offsets.push(0i32);
    for time in times {
        if let Some(time) = time {
            all(time, &mut values).ok_or_else(|| out_of_range(time))?;
        }
        let end = i32::try_from(values.len());
        offsets.push(end.map_err(|_| {
            datafusion::error::DataFusionError::Execution("too many windows in one batch of rows".into())
        })?);
    }
    let values = typed(Int64Array::from(values), data_type)?;
    let field = Arc::new(Field::new_list_field(data_type.clone(), true));
    let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
    Ok(Arc::new(ListArray::try_new(field, offsets, values, times.nulls().cloned())?))
}

/// The start or the end of the newest window of a calendar that each time is in.
fn stretches(
    times: &Int64Array,
    calendar: &Calendar,
    unit: Unit,
    ends: bool,
    data_type: &DataType,
) -> Result<ArrayRef> {
    // Rows come near each other, and what a stretch is costs more than to see whether it holds a time.
    let mut known: Option<((i64, i64), i64)> = None;
    let pane = calendar.pane();
    let mut one = |time: i64| {
        let ((start, _), end) = match known.filter(|((start, next), _)| (*start..*next).contains(&time)) {
            Some(known) => known,
            None => {
                let found = || Some((pane.bounds_in(time, unit)?, calendar.bounds_in(time, unit)?.1));
                found().ok_or_else(|| out_of_range(time)).inspect(|found| known = Some(*found))?
            }
        };
        Ok(if ends { end } else { start })
    };
    typed(times.iter().map(|time| time.map(&mut one).transpose()).collect::<Result<Int64Array>>()?, data_type)
}

/// The starts of all windows of a calendar that each time is in.
fn all_stretches(times: &Int64Array, calendar: &Calendar, unit: Unit, data_type: &DataType) -> Result<ArrayRef> {
    let pane = calendar.pane();
    let mut known: Option<((i64, i64), Vec<i64>)> = None;
    spread(times, times.len(), data_type, |time, values| {
        if !known.as_ref().is_some_and(|((start, next), _)| (*start..*next).contains(&time)) {
            let starts = calendar.all_in(time, unit)?.into_iter().map(|(start, _)| start).collect();
            known = Some((pane.bounds_in(time, unit)?, starts));
        }
        values.extend(known.iter().flat_map(|(_, starts)| starts));
        Some(())
    })
}

/// Refuses windows whose lengths are no whole numbers of the unit of their time, at the place of the time.
///
/// # Errors
/// InvalidInput: there is one.
pub fn check_units(plan: &LogicalPlan) -> crate::error::Result<()> {
    let mut wrong = None;
    let walked = plan.apply_with_subqueries(|node| {
        let Some(input) = node.inputs().first().copied() else { return Ok(TreeNodeRecursion::Continue) };
        for expr in node.expressions() {
            expr.apply(|e| {
                wrong = wrong.take().or_else(|| wrong_unit(e, input));
                Ok(if wrong.is_some() { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
            })?;
        }
        Ok(if wrong.is_some() { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    walked.map_err(Error::from)?;
    wrong.map_or(Ok(()), Err)
}

fn wrong_unit(expr: &Expr, input: &LogicalPlan) -> Option<Error> {
    let call = window_call(expr)?;
    let unit = unit_of(&time_type(&call.time.get_type(input.schema()).ok()?).ok()?).ok()?;
    let error = call.windows()?.check_unit(unit).err()?;
    let place = call.time.column_refs().into_iter().find_map(first_span);
    Some(Error::from(error).at(place).help("take other lengths, or CAST the time, as in CAST(x AS TIMESTAMP)"))
}

/// A call of one of the functions, taken apart.
pub struct WindowCall<'a> {
    pub which: Which,
    /// The time, or the start or end that is asked.
    pub time: &'a Expr,
    constants: Vec<ScalarValue>,
}

impl WindowCall<'_> {
    /// The windows, of a call that says which.
    pub fn windows(&self) -> Option<Windows> {
        windows_of(self.which, &self.constants)
    }

    /// Its first constant, where that is a number.
    pub fn length(&self) -> Option<i64> {
        match self.constants.first() {
            Some(ScalarValue::Int64(length)) => *length,
            _ => None,
        }
    }
}

/// Takes a call of one of the functions apart; `None` for anything else.
pub fn window_call(expr: &Expr) -> Option<WindowCall<'_>> {
    let Expr::ScalarFunction(call) = expr else { return None };
    let function = (call.func.inner().as_ref() as &dyn std::any::Any).downcast_ref::<WindowFunction>()?;
    let literal = |e: &Expr| match e {
        Expr::Literal(value, _) => Some(value.clone()),
        Expr::Cast(c) => match c.expr.as_ref() {
            Expr::Literal(value @ ScalarValue::Int64(_), _) => Some(value.clone()),
            _ => None,
        },
        _ => None,
    };
    let constants = call.args[1..].iter().map(literal).collect::<Option<Vec<_>>>()?;
    Some(WindowCall { which: function.which, time: &call.args[0], constants })
}
