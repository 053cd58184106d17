//! Intervals that are lengths of time, made durations.
//!
//! An interval may hold months. So times that are moved by one go through the calendar row by row, and intervals are compared
//! months first, then days: any difference of two times, which has neither, would be below `INTERVAL '1 day'`, and so would 25 hours.

use arrow::datatypes::{DataType, IntervalUnit, TimeUnit};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, ScalarValue, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator, binary_expr, cast};

use super::frames::length_text;
use super::join_bounds::length;

/// The same expression with durations in place of intervals, where both say the same of every row: no months, no days of a
/// zone with days of its own length, nothing below the unit of the time.
///
/// # Errors
/// Internal: a column that `schema` has not.
pub fn as_durations(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    let moved = expr.transform_up(|e| {
        let Expr::BinaryExpr(BinaryExpr { left, op, right }) = &e else { return Ok(Transformed::no(e)) };
        let by = match (op, &**right) {
            (Operator::Plus | Operator::Minus, Expr::Literal(by, _)) => duration(&left.get_type(schema)?, by),
            _ => None,
        };
        let Some(by) = by else { return Ok(Transformed::no(e)) };
        let by = Box::new(Expr::Literal(by, None));
        Ok(Transformed::yes(Expr::BinaryExpr(BinaryExpr { left: left.clone(), op: *op, right: by })))
    });
    moved.map(|moved| moved.data)
}

/// Makes durations of what is compared, where there is an interval among it: a day has 24 hours. A month is no length beside the
/// time between two times; among intervals alone it is as long as those of 1970.
///
/// # Errors
/// Plan: beside a duration, a constant with months in it, or with a part of a microsecond.
pub fn beside(exprs: &mut [&mut Expr], schema: &DFSchema) -> Result<bool> {
    let types: Vec<Option<DataType>> = exprs.iter().map(|expr| expr.get_type(schema).ok()).collect();
    let is = |what: fn(&DataType) -> bool| types.iter().flatten().any(what);
    if !is(|of| matches!(of, DataType::Interval(_))) {
        return Ok(false);
    }
    let unit = match is(|of| *of == DataType::Duration(TimeUnit::Nanosecond)) {
        true => TimeUnit::Nanosecond,
        false => TimeUnit::Microsecond,
    };
    let differences = is(|of| matches!(of, DataType::Duration(_)));
    for (expr, of) in exprs.iter_mut().zip(types) {
        let whole = std::mem::take(*expr);
        **expr = match of {
            Some(DataType::Interval(_)) => match constant(&whole).and_then(|(by, sign)| fixed(by, sign, unit)) {
                Some(length) => Expr::Literal(length, None),
                None if differences && constant(&whole).is_some() => return no_length(&whole),
                None => from_1970(whole, unit),
            },
            Some(of) if of.is_string() => from_1970(cast(whole, DataType::Interval(IntervalUnit::MonthDayNano)), unit),
            Some(DataType::Duration(of)) if of != unit => cast(whole, DataType::Duration(unit)),
            _ => whole,
        };
    }
    Ok(true)
}

/// A constant as a duration; `None`: it is of no fixed length.
fn fixed(by: &ScalarValue, sign: i64, unit: TimeUnit) -> Option<ScalarValue> {
    let micros = if by.is_null() { None } else { Some(length(by)?.0.checked_mul(sign)?) };
    Some(match unit {
        TimeUnit::Nanosecond => {
            ScalarValue::DurationNanosecond(micros.map_or(Some(None), |micros| micros.checked_mul(1_000).map(Some))?)
        }
        _ => ScalarValue::DurationMicrosecond(micros),
    })
}

/// How long an interval is that begins with 1970.
fn from_1970(interval: Expr, unit: TimeUnit) -> Expr {
    let begin = match unit {
        TimeUnit::Nanosecond => ScalarValue::TimestampNanosecond(Some(0), None),
        _ => ScalarValue::TimestampMicrosecond(Some(0), None),
    };
    let begin = Expr::Literal(begin, None);
    binary_expr(binary_expr(begin.clone(), Operator::Plus, interval), Operator::Minus, begin)
}

fn no_length<T>(interval: &Expr) -> Result<T> {
    let by = match constant(interval) {
        Some((ScalarValue::IntervalMonthDayNano(Some(by)), _)) => format!("INTERVAL '{}'", length_text(*by)),
        _ => interval.to_string(),
    };
    plan_err!(
        "the time between two times can't be compared with {by}, which is no fixed length: give it in days, down to microseconds"
    )
}

/// A constant interval, and its sign.
fn constant(expr: &Expr) -> Option<(&ScalarValue, i64)> {
    match expr {
        Expr::Literal(by, _) => Some((by, 1)),
        Expr::Negative(inner) => constant(inner).map(|(by, sign)| (by, -sign)),
        Expr::Alias(alias) => constant(&alias.expr),
        _ => None,
    }
}

fn duration(time: &DataType, by: &ScalarValue) -> Option<ScalarValue> {
    let DataType::Timestamp(unit, zone) = time else { return None };
    if !matches!(by, ScalarValue::IntervalMonthDayNano(_)) {
        return None;
    }
    let (micros, in_days) = length(by)?;
    if in_days && zone.is_some() {
        return None;
    }
    let in_units = |units: i64| (micros % units == 0).then_some(micros / units);
    Some(match unit {
        TimeUnit::Second => ScalarValue::DurationSecond(Some(in_units(1_000_000)?)),
        TimeUnit::Millisecond => ScalarValue::DurationMillisecond(Some(in_units(1_000)?)),
        TimeUnit::Microsecond => ScalarValue::DurationMicrosecond(Some(micros)),
        TimeUnit::Nanosecond => ScalarValue::DurationNanosecond(Some(micros.checked_mul(1_000)?)),
    })
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{Field, IntervalMonthDayNano, Schema};
    use datafusion::prelude::{col, lit};

    use super::*;

    #[test]
    fn only_lengths_that_are_the_same_everywhere_become_durations() {
        let field = |name: &str, unit, zone: Option<&str>| {
            Field::new(name, DataType::Timestamp(unit, zone.map(Into::into)), true)
        };
        let schema = Schema::new(vec![
            field("plain", TimeUnit::Millisecond, None),
            field("zoned", TimeUnit::Microsecond, Some("Europe/Berlin")),
        ]);
        let schema = DFSchema::try_from(schema).expect("a schema");
        let after = |column: &str, (months, days, nanos): (i32, i32, i64)| {
            let by = IntervalMonthDayNano::new(months, days, nanos);
            let moved = col(column) + lit(ScalarValue::IntervalMonthDayNano(Some(by)));
            let text = as_durations(moved.clone(), &schema).expect("an expression").to_string();
            (text != moved.to_string()).then_some(text)
        };
        assert_eq!(after("plain", (0, 0, 10_000_000_000)), Some("plain + DurationMillisecond(\"10000\")".into()));
        assert_eq!(after("plain", (0, 2, 0)), Some("plain + DurationMillisecond(\"172800000\")".into()));
        assert_eq!(after("zoned", (0, 0, 1_000)), Some("zoned + DurationMicrosecond(\"1\")".into()));
        let others = [("plain", (1, 0, 0)), ("plain", (0, 0, 1_000)), ("zoned", (0, 1, 0)), ("zoned", (0, 0, 1))];
        assert_eq!(others.map(|(column, by)| after(column, by)), [None, None, None, None]);
    }
}
