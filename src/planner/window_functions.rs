//! The functions that windows are rewritten to: the start of a row's window, the starts of all its windows, the end
//! of a window, and the mark that says which column carries a watermark.
//!
//! They work in the time column's own unit and keep its type. Sizes are whole numbers of that unit.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, ListArray};
use arrow::buffer::{OffsetBuffer, ScalarBuffer};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, TimeUnit};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, exec_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, LogicalPlan, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use datafusion::scalar::ScalarValue;

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
    /// `(window)` → its last instant.
    Last,
    /// `(time, delay)` → the time. Marks the column that carries a watermark; taken out before the plan runs.
    Watermark,
}

/// `levada_window_start`
pub static START: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| udf(Which::Start, "levada_window_start", 4));
/// `levada_window_starts`
pub static STARTS: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| udf(Which::Starts, "levada_window_starts", 4));
/// `levada_window_end`
pub static END: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| udf(Which::End, "levada_window_end", 2));
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

/// A window's shape in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WindowShape {
    pub size: i64,
    pub slide: i64,
    pub offset: i64,
}

impl WindowShape {
    /// Whether a row can be in more than one window.
    pub fn overlaps(&self) -> bool {
        self.slide < self.size
    }

    /// The same in the unit of a time column.
    ///
    /// # Errors
    /// When a length is no whole number of the unit.
    pub fn in_unit(&self, unit: Unit) -> Result<WindowShape> {
        let length = |micros: i64, what: &str| match unit {
            Unit::Nanos => match micros.checked_mul(1_000) {
                Some(nanos) => Ok(nanos),
                None => plan_err!("the window's {what} is too long for a time in nanoseconds"),
            },
            Unit::Micros => Ok(micros),
            Unit::Millis => whole(micros, 1_000, what, "milliseconds"),
            Unit::Seconds => whole(micros, 1_000_000, what, "seconds"),
            Unit::Days => whole(micros, 86_400_000_000, what, "days"),
        };
        Ok(WindowShape {
            size: length(self.size, "size")?,
            slide: length(self.slide, "slide")?,
            offset: length(self.offset, "offset")?,
        })
    }

    /// The start of the newest window that holds `time`, all in one unit.
    pub fn last_start(&self, time: i64) -> Option<i64> {
        time.checked_sub(time.checked_sub(self.offset)?.rem_euclid(self.slide))
    }
}

fn whole(micros: i64, unit: i64, what: &str, name: &str) -> Result<i64> {
    if micros % unit != 0 {
        return plan_err!("the window's {what} must be a whole number of {name}, the unit of its time column");
    }
    Ok(micros / unit)
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
            Which::Starts => DataType::List(Arc::new(Field::new_list_field(time, true))),
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
        let lengths = args.args[1..].iter().map(length).collect::<Result<Vec<_>>>()?;
        let unit = unit_of(&data_type)?;
        let values = time_values(&time)?;
        let result = match (self.which, lengths.as_slice()) {
            (Which::Watermark | Which::Last, _) => time,
            (Which::End, [size]) => {
                ends(&values, WindowShape { size: *size, slide: *size, offset: 0 }.in_unit(unit)?.size, &data_type)?
            }
            (_, [size, slide, offset]) => {
                let shape = WindowShape { size: *size, slide: *slide, offset: *offset }.in_unit(unit)?;
                if self.which == Which::Start {
                    starts(&values, shape, &data_type)?
                } else {
                    all_starts(&values, shape, &data_type)?
                }
            }
            _ => return exec_err!("{} was called with {} lengths", self.name, lengths.len()),
        };
        Ok(ColumnarValue::Array(result))
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

fn length(value: &ColumnarValue) -> Result<i64> {
    match value {
        ColumnarValue::Scalar(ScalarValue::Int64(Some(micros))) => Ok(*micros),
        _ => exec_err!("a window's length is not a constant"),
    }
}

pub(super) fn out_of_range(time: i64) -> datafusion::error::DataFusionError {
    datafusion::error::DataFusionError::Execution(format!(
        "the window of time {time} lies outside the range of its type"
    ))
}

/// Back from whole numbers to the column's type.
pub(super) fn typed(values: Int64Array, data_type: &DataType) -> Result<ArrayRef> {
    Ok(time_array(values, data_type)?)
}

fn starts(times: &Int64Array, shape: WindowShape, data_type: &DataType) -> Result<ArrayRef> {
    typed(times.try_unary(|t| shape.last_start(t).ok_or_else(|| out_of_range(t)))?, data_type)
}

fn ends(starts: &Int64Array, size: i64, data_type: &DataType) -> Result<ArrayRef> {
    typed(starts.try_unary(|t| t.checked_add(size).ok_or_else(|| out_of_range(t)))?, data_type)
}

fn all_starts(times: &Int64Array, shape: WindowShape, data_type: &DataType) -> Result<ArrayRef> {
    let mut values = Vec::with_capacity(times.len() * ((shape.size / shape.slide) as usize + 1));
    let mut offsets = Vec::with_capacity(times.len() + 1);
    offsets.push(0i32);
    for time in times {
        if let Some(time) = time {
            let mut start = shape.last_start(time).ok_or_else(|| out_of_range(time))?;
            // The window that holds the time is half-open: [start, start + size).
            while start.checked_add(shape.size).ok_or_else(|| out_of_range(time))? > time {
                values.push(start);
                start = start.checked_sub(shape.slide).ok_or_else(|| out_of_range(time))?;
            }
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
    let error = call.shape()?.in_unit(unit).err()?;
    let place = call.time.column_refs().into_iter().find_map(first_span);
    Some(Error::from(error).at(place).help("take other lengths, or CAST the time, as in CAST(x AS TIMESTAMP)"))
}

/// A call of one of the functions, taken apart.
pub struct WindowCall<'a> {
    pub which: Which,
    /// The time, or for [`Which::End`] the start.
    pub time: &'a Expr,
    pub lengths: Vec<i64>,
}

impl WindowCall<'_> {
    /// The shape, of a call that has one.
    pub fn shape(&self) -> Option<WindowShape> {
        match self.lengths[..] {
            [size, slide, offset] => Some(WindowShape { size, slide, offset }),
            _ => None,
        }
    }
}

/// Takes a call of one of the functions apart; `None` for anything else.
pub fn window_call(expr: &Expr) -> Option<WindowCall<'_>> {
    let Expr::ScalarFunction(call) = expr else { return None };
    let function = (call.func.inner().as_ref() as &dyn std::any::Any).downcast_ref::<WindowFunction>()?;
    let literal = |e: &Expr| match e {
        Expr::Literal(ScalarValue::Int64(Some(n)), _) => Some(*n),
        Expr::Cast(c) => match c.expr.as_ref() {
            Expr::Literal(ScalarValue::Int64(Some(n)), _) => Some(*n),
            _ => None,
        },
        _ => None,
    };
    let lengths = call.args[1..].iter().map(literal).collect::<Option<Vec<_>>>()?;
    Some(WindowCall { which: function.which, time: &call.args[0], lengths })
}
