//! The functions that `session_window(time, gap)` and `SESSION(…)` are rewritten to: the start and the end of a session.
//!
//! Called for a row they give the session that the row makes by itself, `[time, time + gap)`. What sessions make of rows that
//! touch each other is not theirs: a bounded run replaces the calls ([`super::session_batch`]), a stream has an operator.
//!
//! ```text
//! GROUP BY session_window(ts, gap), k          → GROUP BY levada_session_start(ts, gap), levada_session_end(ts, gap), k
//! FROM SESSION(s PARTITION BY k, ts, gap)      → (SELECT *, levada_session_start(ts, gap, k) AS window_start, … FROM s)
//! ```

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, IntervalMonthDayNanoType, IntervalUnit};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, Result, exec_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::scalar::ScalarValue;

use super::watermark::WatermarkNode;
use super::window_functions::{out_of_range, time_type, typed};
use super::{ORDERED, floats, interval_text};
use crate::delta::time::{Unit, time_values, unit_of};
use crate::error::{Error, first_span};
use crate::options::parse_interval;

/// `levada_session_start`
pub static SESSION_START: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| udf(false, "levada_session_start"));
/// `levada_session_end`
pub static SESSION_END: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| udf(true, "levada_session_end"));

fn udf(end: bool, name: &'static str) -> Arc<ScalarUDF> {
    let signature = Signature::variadic_any(Volatility::Immutable);
    Arc::new(ScalarUDF::new_from_impl(SessionFunction { end, name, signature }))
}

/// A call of one of the functions.
pub struct SessionCall<'a> {
    /// Of the end, not of the start.
    pub end: bool,
    pub time: &'a Expr,
    pub gap: &'a Expr,
    /// What SESSION's PARTITION BY names; nothing for `session_window`, whose other keys are those of GROUP BY.
    pub keys: &'a [Expr],
}

/// Takes a call apart, under an alias too; `None` for anything else.
pub fn session_call(expr: &Expr) -> Option<SessionCall<'_>> {
    match expr {
        Expr::Alias(alias) => session_call(&alias.expr),
        Expr::ScalarFunction(call) => {
            let function = (call.func.inner().as_ref() as &dyn std::any::Any).downcast_ref::<SessionFunction>()?;
            let [time, gap, keys @ ..] = call.args.as_slice() else { return None };
            Some(SessionCall { end: function.end, time, gap, keys })
        }
        _ => None,
    }
}

/// Whether an expression speaks of a session anywhere.
pub fn mentions_session(expr: &Expr) -> bool {
    expr.exists(|e| Ok(session_call(e).is_some())).unwrap_or(true)
}

/// Whether a node gives each row its session: what `SESSION(…)` is rewritten to.
pub fn gives_sessions(node: &LogicalPlan) -> bool {
    matches!(node, LogicalPlan::Projection(projection) if projection.expr.iter().any(|e| session_call(e).is_some()))
}

/// A session's start or end, found behind a key.
pub struct FoundSession<'a> {
    /// The call.
    pub call: Expr,
    /// What it is computed over.
    pub input: &'a LogicalPlan,
    /// It is a column of `SESSION(…)`, not a call in GROUP BY.
    pub of_table: bool,
    /// Rows are left out between the table function and the key.
    pub filtered: bool,
}

/// Follows a key over the rows of `plan` to the session that it gives the start or the end of.
pub fn resolve_session<'a>(plan: &'a LogicalPlan, key: &Expr) -> Option<FoundSession<'a>> {
    if session_call(key).is_some() {
        return Some(FoundSession { call: key.clone(), input: plan, of_table: false, filtered: false });
    }
    let (expr, input, left_out) = computed_of(plan, key)?;
    if session_call(&expr).is_some() {
        return Some(FoundSession { call: expr, input, of_table: true, filtered: left_out });
    }
    let found = resolve_session(input, &expr)?;
    Some(FoundSession { filtered: found.filtered || left_out, ..found })
}

/// An expression over the rows of `plan` in terms of the lowest columns that can be told to be the same.
///
/// # Errors
/// Of DataFusion.
pub fn lowest(plan: &LogicalPlan, expr: &Expr) -> Result<Expr> {
    let lowered = expr.clone().transform_down(|e| {
        let e = floats::as_written(&e).clone().unalias();
        Ok(match computed_of(plan, &e) {
            Some((below, input, _)) => Transformed::new(lowest(input, &below)?, true, TreeNodeRecursion::Jump),
            None => Transformed::yes(e),
        })
    });
    Ok(lowered?.data)
}

/// What a column is computed of by the next projection below, over that one's input; and whether rows are left out on the way.
fn computed_of<'a>(plan: &'a LogicalPlan, expr: &Expr) -> Option<(Expr, &'a LogicalPlan, bool)> {
    let Expr::Column(column) = expr else { return None };
    let index = plan.schema().maybe_index_of_column(column)?;
    let below =
        |input: &'a LogicalPlan| computed_of(input, &Expr::Column(Column::from(input.schema().qualified_field(index))));
    match plan {
        LogicalPlan::Projection(projection) => {
            Some((projection.expr[index].clone().unalias(), projection.input.as_ref(), false))
        }
        LogicalPlan::SubqueryAlias(alias) => below(&alias.input),
        LogicalPlan::Filter(filter) => below(&filter.input).map(|(expr, input, _)| (expr, input, true)),
        LogicalPlan::Extension(_) => below(&WatermarkNode::of(plan)?.input),
        _ => None,
    }
}

/// A gap that is the same for all rows, in microseconds.
pub fn constant_gap(gap: &Expr) -> Option<i64> {
    match gap {
        Expr::Literal(value @ ScalarValue::IntervalMonthDayNano(Some(_)), _) => {
            let gaps = nanos(&value.to_array().ok()?).ok()?;
            gaps.is_valid(0).then(|| gaps.value(0) / 1_000)
        }
        _ => None,
    }
}

/// What EXPLAIN and a state's schema call sessions: `session_window(ts, 10 seconds)`.
pub fn session_name(time: &Expr, gap: &Expr) -> String {
    let gap = constant_gap(gap).map_or_else(|| gap.to_string(), interval_text);
    format!("session_window({time}, {gap})")
}

/// Refuses sessions anywhere but among the keys of GROUP BY and in the columns of `SESSION(…)`, and gaps that can't be.
///
/// # Errors
/// InvalidInput: there is one.
pub fn check_sessions(plan: &LogicalPlan) -> crate::error::Result<()> {
    let mut wrong = None;
    let walked = plan.apply_with_subqueries(|node| {
        for (n, expr) in node.expressions().iter().enumerate() {
            if wrong.is_none() && mentions_session(expr) {
                wrong = misplaced(node, n, expr).or_else(|| wrong_gap(node, expr));
            }
        }
        wrong = wrong.take().or_else(|| wrong_function(node));
        Ok(if wrong.is_some() { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    walked.map_err(Error::from)?;
    wrong.map_or(Ok(()), Err)
}

fn misplaced(node: &LogicalPlan, n: usize, expr: &Expr) -> Option<Error> {
    let place = expr.column_refs().into_iter().find_map(first_span);
    match node {
        LogicalPlan::Aggregate(aggregate) if n < aggregate.group_expr.len() && session_call(expr).is_some() => None,
        LogicalPlan::Projection(_) if session_call(expr).is_some() => None,
        LogicalPlan::Aggregate(aggregate) if n >= aggregate.group_expr.len() => Some(
            Error::unsupported(
                "an aggregate can't read the bounds of its session: they are known when all its rows are",
            )
            .at(place)
            .help("compute with session_window.start and .end beside the aggregate, not inside it"),
        ),
        LogicalPlan::Aggregate(_) => Some(
            Error::unsupported("a session can't be part of another key")
                .at(place)
                .help("GROUP BY session_window(time, gap) as it is, without GROUPING SETS, and compute in the SELECT"),
        ),
        _ => Some(Error::invalid("session_window(…) is a key of GROUP BY").at(place)),
    }
}

/// Sessions that become one have rows of both in between each other: no order of them is kept.
fn wrong_function(node: &LogicalPlan) -> Option<Error> {
    let LogicalPlan::Aggregate(aggregate) = node else { return None };
    let mut function = None;
    for expr in &aggregate.aggr_expr {
        let _ = expr.apply(|e| {
            if let Expr::AggregateFunction(call) = e
                && ORDERED.contains(&call.func.name())
                && call.params.order_by.is_empty()
            {
                function = Some((call.func.name().to_string(), e.column_refs().into_iter().find_map(first_span)));
            }
            Ok(TreeNodeRecursion::Continue)
        });
    }
    let (name, place) = function?;
    aggregate.group_expr.iter().find_map(|key| resolve_session(&aggregate.input, &key.clone().unalias()))?;
    let error = Error::unsupported(format!(
        "{name} over sessions wants an order: where sessions become one, that of the input is lost"
    ));
    Some(error.at(place).help(format!("{name}(x ORDER BY time)")))
}

fn wrong_gap(node: &LogicalPlan, expr: &Expr) -> Option<Error> {
    use datafusion::logical_expr::ExprSchemable;
    let call = session_call(expr)?;
    let input = node.inputs().first().copied()?;
    let place = call.time.column_refs().into_iter().find_map(first_span);
    let unit = unit_of(&time_type(&call.time.get_type(input.schema()).ok()?).ok()?).ok()?;
    let Expr::Literal(value, _) = call.gap else { return None };
    let gap = lengths(&value.to_array().ok()?, unit).map_err(|e| Error::from(e).at(place));
    match gap {
        Err(error) => Some(error.help("take another gap, or CAST the time, as in CAST(x AS TIMESTAMP)")),
        Ok(gap) if gap.is_null(0) || gap.value(0) <= 0 => {
            Some(Error::invalid("a session's gap must be greater than zero").at(place))
        }
        Ok(_) => None,
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct SessionFunction {
    end: bool,
    name: &'static str,
    signature: Signature,
}

impl ScalarUDFImpl for SessionFunction {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, args: &[DataType]) -> Result<DataType> {
        let [time, gap, ..] = args else { return plan_err!("a session wants a time and a gap") };
        match gap {
            DataType::Interval(_) | DataType::Duration(_) | DataType::Null => {}
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {}
            other => {
                return plan_err!(
                    "a session's gap wants an INTERVAL, not {other}; write INTERVAL '10 seconds', or a text that is one: x || ' seconds'"
                );
            }
        }
        time_type(time)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let time = args.args[0].to_array(args.number_rows)?;
        let data_type = time_type(time.data_type())?;
        let time = cast(&time, &data_type)?;
        if !self.end {
            return Ok(ColumnarValue::Array(time));
        }
        let (times, unit) = (time_values(&time)?, unit_of(&data_type)?);
        let later = |time: i64, gap: i64| time.checked_add(gap).ok_or_else(|| out_of_range(time));
        let ends: Int64Array = match &args.args[1] {
            ColumnarValue::Scalar(gap) => {
                let gap = lengths(&gap.to_array()?, unit)?;
                match gap.is_valid(0) {
                    true => times.try_unary(|time| later(time, gap.value(0)))?,
                    false => Int64Array::new_null(times.len()),
                }
            }
            ColumnarValue::Array(gaps) => {
                let gaps = lengths(gaps, unit)?;
                let end = |(time, gap): (Option<i64>, Option<i64>)| match (time, gap) {
                    // A gap that opens no session must not fail on a time at the edge of its type.
                    (Some(time), Some(gap)) if gap <= 0 => Ok(Some(time)),
                    (Some(time), Some(gap)) => later(time, gap).map(Some),
                    _ => Ok(None),
                };
                times.iter().zip(&gaps).map(end).collect::<Result<_>>()?
            }
        };
        Ok(ColumnarValue::Array(typed(ends, &data_type)?))
    }
}

/// Gaps in the unit of a time.
fn lengths(gaps: &ArrayRef, unit: Unit) -> Result<Int64Array> {
    let (nanos, per) = (nanos(gaps)?, nanos_of(unit));
    if per == 1 {
        return Ok(nanos);
    }
    let one = |gap: i64| match gap % per {
        0 => Ok(gap / per),
        _ => plan_err!(
            "a session's gap of {} is no whole number of {}, the unit of its time column",
            interval_text(gap / 1_000),
            unit_name(unit)
        ),
    };
    nanos.iter().map(|gap| gap.map(one).transpose()).collect()
}

/// Gaps in nanoseconds, of intervals, durations, or the text of either.
fn nanos(gaps: &ArrayRef) -> Result<Int64Array> {
    let too_long = || datafusion::error::DataFusionError::Execution("a session's gap is too long".into());
    Ok(match gaps.data_type() {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            let texts = cast(gaps, &DataType::Utf8)?;
            let mut last: Option<(&str, i64)> = None;
            let one = |text: &str| match parse_interval(text) {
                Some(micros) => micros.checked_mul(1_000).ok_or_else(too_long),
                None => exec_err!(
                    "'{text}' is no gap of a session: it wants an interval without months, such as '10 seconds'"
                ),
            };
            let mut gaps = Int64Array::builder(texts.len());
            for text in texts.as_string::<i32>() {
                let gap = match (text, last) {
                    (None, _) => None,
                    (Some(text), Some((same, gap))) if text == same => Some(gap),
                    (Some(text), _) => Some(one(text)?),
                };
                gaps.append_option(gap);
                last = text.zip(gap).or(last);
            }
            gaps.finish()
        }
        DataType::Duration(_) => {
            let nanos = DataType::Duration(arrow::datatypes::TimeUnit::Nanosecond);
            let nanos = cast(gaps, &nanos).map_err(|_| too_long())?;
            cast(&nanos, &DataType::Int64)?.as_primitive::<arrow::datatypes::Int64Type>().clone()
        }
        DataType::Null => Int64Array::new_null(gaps.len()),
        _ => {
            let gaps = cast(gaps, &DataType::Interval(IntervalUnit::MonthDayNano))?;
            let one = |gap: arrow::datatypes::IntervalMonthDayNano| {
                if gap.months != 0 {
                    return exec_err!("a session's gap can't be counted in months, whose lengths differ; take days");
                }
                let days = i64::from(gap.days).checked_mul(86_400_000_000_000);
                days.and_then(|days| days.checked_add(gap.nanoseconds)).ok_or_else(too_long)
            };
            let gaps = gaps.as_primitive::<IntervalMonthDayNanoType>();
            gaps.iter().map(|gap| gap.map(one).transpose()).collect::<Result<_>>()?
        }
    })
}

fn nanos_of(unit: Unit) -> i64 {
    match unit {
        Unit::Nanos => 1,
        Unit::Micros => 1_000,
        Unit::Millis => 1_000_000,
        Unit::Seconds => 1_000_000_000,
        Unit::Days => 86_400_000_000_000,
    }
}

fn unit_name(unit: Unit) -> &'static str {
    match unit {
        Unit::Nanos => "nanoseconds",
        Unit::Micros => "microseconds",
        Unit::Millis => "milliseconds",
        Unit::Seconds => "seconds",
        Unit::Days => "days",
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{DurationSecondArray, IntervalMonthDayNanoArray, StringArray};
    use arrow::datatypes::IntervalMonthDayNano;

    use super::*;

    #[test]
    fn gaps_are_read_in_the_unit_of_their_time() {
        let texts: ArrayRef =
            Arc::new(StringArray::from(vec![Some("10 seconds"), None, Some("10 seconds"), Some("-1 s")]));
        let read = lengths(&texts, Unit::Seconds).unwrap();
        assert_eq!(read.iter().collect::<Vec<_>>(), [Some(10), None, Some(10), Some(-1)]);
        let durations: ArrayRef = Arc::new(DurationSecondArray::from(vec![3]));
        assert_eq!(lengths(&durations, Unit::Nanos).unwrap().value(0), 3_000_000_000);
        let interval = |months, days, nanos| -> ArrayRef {
            Arc::new(IntervalMonthDayNanoArray::from(vec![IntervalMonthDayNano::new(months, days, nanos)]))
        };
        assert_eq!(lengths(&interval(0, 2, 5_000), Unit::Micros).unwrap().value(0), 172_800_000_005);
        assert_eq!(lengths(&interval(0, 2, 0), Unit::Days).unwrap().value(0), 2);
        for (gap, unit, message) in [
            (interval(1, 0, 0), Unit::Micros, "can't be counted in months"),
            (interval(0, 0, 1_500_000_000), Unit::Seconds, "1 second 500 milliseconds is no whole number of seconds"),
            (interval(0, i32::MAX, 0), Unit::Micros, "too long"),
            (Arc::new(StringArray::from(vec!["soon"])) as ArrayRef, Unit::Micros, "'soon' is no gap"),
        ] {
            let error = lengths(&gap, unit).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }
}
