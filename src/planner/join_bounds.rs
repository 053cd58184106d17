//! How long the rows of a join's sides can find partners: what its conditions say of two times (rules J3, J4).
//!
//! ```text
//! l.ts BETWEEN r.ts - INTERVAL '10 s' AND r.ts + INTERVAL '5 s'
//! ⇔  −10 s ≤ l.ts − r.ts ≤ 5 s
//! a right row can be forgotten when no left row to come is at or before r.ts + 5 s, a left row when none of the right is at or
//! before l.ts + 10 s
//! ```
//! A condition is solved where it is a sum of times and lengths of time, with one time of each side. A `<=` keeps rows one
//! millisecond longer than need be, as in rule J4; of several conditions the tightest counts.

use arrow::datatypes::{DataType, IntervalMonthDayNano};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::functions::core::expr_fn::get_field;
use datafusion::logical_expr::expr::{Alias, Cast, TryCast};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Between, BinaryExpr, Expr, ExprSchemable, Join, LogicalPlan, Operator};

use super::event_time::{EventTime, event_time};
use super::reads_stream;
use super::window_functions::window_call;
use super::window_shape::Windows;
use crate::delta::time::{Unit, unit_of};

/// See the module's documentation.
#[derive(Debug, Clone, PartialEq)]
pub struct JoinBounds {
    /// The time of each side, an expression over its columns.
    pub times: [Expr; 2],
    /// What it is in terms of event time; `None`: no watermark is made of it.
    pub events: [Option<EventTime>; 2],
    /// What the watermark speaks of is so many microseconds behind the time: the size of the window that it starts, or 0.
    pub ends: [i64; 2],
    /// A row of the side can be forgotten when its time and so many microseconds are at or before the watermark.
    pub until: [Option<i64>; 2],
}

impl JoinBounds {
    /// Of the join of two streams; `None`: its conditions bound nothing.
    pub fn of(join: &Join) -> Option<Self> {
        let mut conditions = Vec::new();
        if join.null_equality == datafusion::common::NullEquality::NullEqualsNothing {
            conditions.extend(join.on.iter().map(|(left, right)| left.clone().eq(right.clone())));
        }
        // NOT IN: its first condition also holds where one of the two is NULL.
        let first = usize::from(join.null_aware);
        conditions.extend(join.filter.iter().flat_map(split_conjunction).skip(first).cloned());
        let sides = [join.left.as_ref(), join.right.as_ref()];
        let mut found: Vec<Pair> = Vec::new();
        for condition in &conditions {
            Pair::add(condition, sides, &mut found);
        }
        let bounds = found.into_iter().map(|pair| pair.bounds(sides));
        // Of several pairs of times the first that bounds most.
        bounds.filter(|b| b.known() > 0).reduce(|best, next| if next.worth() > best.worth() { next } else { best })
    }

    fn known(&self) -> usize {
        self.until.iter().flatten().count()
    }

    /// How much it bounds; the end of a window that grows tells more than its start.
    fn worth(&self) -> (usize, bool) {
        (self.known(), !self.events.iter().flatten().any(EventTime::is_growing))
    }

    /// Whether both sides are bounded.
    pub fn both(&self) -> bool {
        self.known() == 2
    }

    /// What the watermark of the result is behind that of the inputs, in milliseconds (rule J10).
    pub fn lag(&self) -> i64 {
        let of = |side: usize| {
            let behind = self.events[side].and(self.until[side])?.saturating_sub(self.ends[side]);
            Some(behind.div_euclid(1_000) + i64::from(behind.rem_euclid(1_000) != 0))
        };
        (0..2).filter_map(of).max().unwrap_or_default().max(0)
    }

    /// Whether another time of the same side's rows is never older than [`JoinBounds::lag`] says.
    pub fn covers(&self, side: usize, input: &LogicalPlan, time: &Expr, event: EventTime) -> bool {
        let (Some(own), Some(_)) = (self.events[side], self.until[side]) else { return false };
        if *time == self.times[side] {
            return true;
        }
        // Beside the times of another stream nothing is known of it.
        if super::any(input, is_join_of_streams) {
            return false;
        }
        match (own, event) {
            (EventTime::Time, _) => true,
            (
                EventTime::WindowStart(a) | EventTime::WindowEnd(a),
                EventTime::WindowStart(b) | EventTime::WindowEnd(b) | EventTime::Window(b),
            ) => a == b && (!own.is_growing() || event.is_growing()),
            _ => false,
        }
    }
}

/// Whether a node joins two streams.
pub fn is_join_of_streams(node: &LogicalPlan) -> bool {
    matches!(node, LogicalPlan::Join(join) if reads_stream(&join.left) && reads_stream(&join.right))
}

/// What is known of left time − right time.
struct Pair {
    times: [Expr; 2],
    /// −least, and most: by how much a right time can be behind a left one, and the other way round.
    left: Option<i64>,
    right: Option<i64>,
}

impl Pair {
    fn add(condition: &Expr, sides: [&LogicalPlan; 2], found: &mut Vec<Pair>) {
        match condition {
            Expr::Alias(alias) => Pair::add(&alias.expr, sides, found),
            Expr::Between(Between { expr, negated: false, low, high }) => {
                Pair::compare(expr, Operator::GtEq, low, sides, found);
                Pair::compare(expr, Operator::LtEq, high, sides, found);
            }
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => Pair::compare(left, *op, right, sides, found),
            Expr::Not(inner) => {
                if let Expr::BinaryExpr(BinaryExpr { left, op, right }) = inner.as_ref()
                    && let Some(op) = op.negate()
                {
                    Pair::compare(left, op, right, sides, found);
                }
            }
            _ => {}
        }
    }

    fn compare(a: &Expr, op: Operator, b: &Expr, sides: [&LogicalPlan; 2], found: &mut Vec<Pair>) {
        if op == Operator::Eq
            && let Some([a, b]) = parts(a, b, sides)
        {
            return Pair::compare(&a, op, &b, sides, found);
        }
        let solved = || {
            let (a, b) = (Sum::of(a, sides)?, Sum::of(b, sides)?);
            Solved::of(a.minus(b)?, op)
        };
        let Some(Solved { times, left, right }) = solved() else { return };
        let at = found.iter().position(|pair| pair.times == times).unwrap_or_else(|| {
            found.push(Pair { times, left: None, right: None });
            found.len() - 1
        });
        let tighter = |old: Option<i64>, new: Option<i64>| match (old, new) {
            (Some(old), Some(new)) => Some(old.min(new)),
            (old, new) => old.or(new),
        };
        found[at].left = tighter(found[at].left, left);
        found[at].right = tighter(found[at].right, right);
    }

    fn bounds(self, sides: [&LogicalPlan; 2]) -> JoinBounds {
        // How long a window of the calendar lasts is another length each time: its end tells.
        let known = |time: &EventTime| !matches!(time, EventTime::WindowStart(Windows::Calendar(_)));
        let event = |side: usize| event_time(sides[side], &self.times[side]).filter(known);
        let events = [event(0), event(1)];
        let ends = |side: usize| match events[side] {
            Some(EventTime::WindowStart(Windows::Sliding(shape) | Windows::Cumulating(shape))) => shape.size,
            Some(EventTime::WindowLast) => one_unit(&self.times[side], sides[side]),
            _ => 0,
        };
        let ends = [ends(0), ends(1)];
        let mut bounds = JoinBounds { times: self.times, events, ends, until: [None, None] };
        // Rows to come are newer than the watermark by their own time, so each side is bounded by the other's.
        let until = |of: Option<i64>, other: usize, bounds: &JoinBounds| {
            bounds.events[other].and(of).map(|of| of.saturating_add(bounds.ends[other]))
        };
        bounds.until = [until(self.left, 1, &bounds), until(self.right, 0, &bounds)];
        bounds
    }
}

/// Of two windows, of which the watermark of one is known, the starts: windows that are equal begin together. The ends, where a
/// start does not tell its end.
fn parts(a: &Expr, b: &Expr, sides: [&LogicalPlan; 2]) -> Option<[Expr; 2]> {
    let windows = |expr: &Expr| {
        let (side, _) = side_of(expr, sides)?;
        Some(match event_time(sides[side], expr) {
            Some(EventTime::Window(windows)) => Some(windows),
            _ => None,
        })
    };
    let known = [windows(a)?, windows(b)?];
    let part = match known.iter().flatten().next()? {
        Windows::Sliding(_) => "start",
        Windows::Cumulating(_) | Windows::Calendar(_) => "end",
    };
    let has_part = |expr: &Expr| match expr.get_type(side_of(expr, sides)?.1).ok()? {
        DataType::Struct(fields) => fields.iter().any(|field| field.name() == part).then_some(()),
        _ => None,
    };
    has_part(a).and(has_part(b))?;
    Some([a, b].map(|window| get_field(window.clone(), part)))
}

/// A comparison with one time of each side, solved for their difference.
struct Solved {
    times: [Expr; 2],
    left: Option<i64>,
    right: Option<i64>,
}

impl Solved {
    fn of(sum: Sum, op: Operator) -> Option<Self> {
        let mut terms = sum.terms;
        terms.sort_by_key(|term| term.side);
        let [left, right] = <[Term; 2]>::try_from(terms).ok()?;
        if left.side == right.side || left.sign == right.sign {
            return None;
        }
        let (op, constant) = if left.sign > 0 { (op, sum.constant) } else { (op.swap()?, sum.constant.checked_neg()?) };
        // left − right + constant op 0, each time being off by its slack at the most.
        let slack = left.slack.checked_add(right.slack)?.checked_add(sum.slack)?;
        let most = constant.checked_neg()?.checked_add(slack)?;
        let least = constant.checked_add(slack)?;
        const MILLISECOND: i64 = 1_000;
        let (left_until, right_until) = match op {
            Operator::Eq => (Some(least), Some(most)),
            Operator::Lt => (None, Some(most)),
            Operator::LtEq => (None, Some(most.checked_add(MILLISECOND)?)),
            Operator::Gt => (Some(least), None),
            Operator::GtEq => (Some(least.checked_add(MILLISECOND)?), None),
            _ => return None,
        };
        Some(Solved { times: [left.time, right.time], left: left_until, right: right_until })
    }
}

/// A time in a sum.
struct Term {
    side: usize,
    time: Expr,
    sign: i64,
    /// By how many microseconds the term may differ from the time.
    slack: i64,
}

/// A sum of times and lengths of time, in microseconds.
struct Sum {
    terms: Vec<Term>,
    constant: i64,
    /// It has whole days in it, which are not of one length in every time zone.
    days: bool,
    /// By how many microseconds the constant may be off.
    slack: i64,
}

impl Sum {
    fn of(expr: &Expr, sides: [&LogicalPlan; 2]) -> Option<Self> {
        let sum = match expr {
            Expr::Alias(Alias { expr, .. }) => Sum::of(expr, sides),
            Expr::Literal(value, _) => {
                let (constant, days, slack) = match length(value) {
                    Some((constant, days)) => (constant, days, 0),
                    None => months(value).map(|(constant, slack)| (constant, true, slack))?,
                };
                Some(Sum { terms: Vec::new(), constant, days, slack })
            }
            Expr::Cast(Cast { expr, field }) | Expr::TryCast(TryCast { expr, field }) => {
                Sum::of(expr, sides)?.cast(expr, field.data_type(), sides)
            }
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::Plus, right }) => {
                Sum::of(left, sides)?.plus(Sum::of(right, sides)?)
            }
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::Minus, right }) => {
                Sum::of(left, sides)?.minus(Sum::of(right, sides)?)
            }
            Expr::Negative(inner) => Sum::of(inner, sides)?.negated(),
            Expr::Column(_) => Sum::time(expr, sides),
            Expr::ScalarFunction(call) if call.func.name() == "get_field" => Sum::time(expr, sides),
            other if window_call(other).is_some() => Sum::time(expr, sides),
            _ => None,
        };
        sum?.sound(sides)
    }

    /// As another type: a length stays what it is, a time may lose some of its precision.
    fn cast(mut self, expr: &Expr, to: &DataType, sides: [&LogicalPlan; 2]) -> Option<Self> {
        use arrow::datatypes::{IntervalUnit, TimeUnit};
        match to {
            DataType::Interval(IntervalUnit::MonthDayNano)
            | DataType::Duration(TimeUnit::Microsecond | TimeUnit::Nanosecond) => Some(self),
            _ => {
                let (_, schema) = side_of(expr, sides)?;
                let slack = cast_slack(&expr.get_type(schema).ok()?, to)?;
                for term in &mut self.terms {
                    term.slack = term.slack.checked_add(slack)?;
                }
                Some(self)
            }
        }
    }

    fn time(expr: &Expr, sides: [&LogicalPlan; 2]) -> Option<Self> {
        let (side, schema) = side_of(expr, sides)?;
        unit_of(&expr.get_type(schema).ok()?).ok()?;
        let term = Term { side, time: expr.clone(), sign: 1, slack: 0 };
        Some(Sum { terms: vec![term], constant: 0, days: false, slack: 0 })
    }

    /// A day has 24 hours only where no clock is changed, and dates know no shorter lengths.
    fn sound(self, sides: [&LogicalPlan; 2]) -> Option<Self> {
        for term in &self.terms {
            match term.time.get_type(sides[term.side].schema()).ok()? {
                DataType::Timestamp(_, Some(zone)) if self.days && !is_utc(&zone) => return None,
                DataType::Date32 if self.constant % DAY != 0 => return None,
                _ => {}
            }
        }
        Some(self)
    }

    fn plus(mut self, other: Sum) -> Option<Self> {
        self.terms.extend(other.terms);
        Some(Sum {
            terms: self.terms,
            constant: self.constant.checked_add(other.constant)?,
            days: self.days || other.days,
            slack: self.slack.checked_add(other.slack)?,
        })
    }

    fn minus(self, other: Sum) -> Option<Self> {
        self.plus(other.negated()?)
    }

    fn negated(mut self) -> Option<Self> {
        for term in &mut self.terms {
            term.sign = -term.sign;
        }
        Some(Sum { constant: self.constant.checked_neg()?, ..self })
    }
}

const DAY: i64 = 86_400_000_000;

/// The side that all columns of an expression are of, and its schema.
fn side_of<'a>(expr: &Expr, sides: [&'a LogicalPlan; 2]) -> Option<(usize, &'a DFSchema)> {
    let columns = expr.column_refs();
    let is_in = |side: &usize| {
        let schema = sides[*side].schema();
        !columns.is_empty() && columns.iter().all(|column| schema.maybe_index_of_column(column).is_some())
    };
    let side = [0, 1].into_iter().find(is_in)?;
    Some((side, sides[side].schema()))
}

/// A length of time in microseconds, and whether it counts in days. Months have no length.
pub fn length(value: &ScalarValue) -> Option<(i64, bool)> {
    Some(match value {
        ScalarValue::IntervalMonthDayNano(Some(v)) if v.months == 0 && v.nanoseconds % 1_000 == 0 => {
            (i64::from(v.days).checked_mul(DAY)?.checked_add(v.nanoseconds / 1_000)?, v.days != 0)
        }
        ScalarValue::IntervalDayTime(Some(v)) => {
            (i64::from(v.days).checked_mul(DAY)?.checked_add(i64::from(v.milliseconds) * 1_000)?, v.days != 0)
        }
        ScalarValue::DurationSecond(Some(v)) => (v.checked_mul(1_000_000)?, false),
        ScalarValue::DurationMillisecond(Some(v)) => (v.checked_mul(1_000)?, false),
        ScalarValue::DurationMicrosecond(Some(v)) => (*v, false),
        ScalarValue::DurationNanosecond(Some(v)) if v % 1_000 == 0 => (v / 1_000, false),
        _ => return None,
    })
}

/// About how long months are, in microseconds, and by how much that may be off: each has 28 to 31 days.
fn months(value: &ScalarValue) -> Option<(i64, i64)> {
    let ScalarValue::IntervalMonthDayNano(Some(v)) = value else { return None };
    let days = |of_month: i64| i64::from(v.months).checked_mul(of_month)?.checked_mul(DAY);
    let rest = ScalarValue::IntervalMonthDayNano(Some(IntervalMonthDayNano { months: 0, ..*v }));
    Some((days(31)?.checked_add(length(&rest)?.0)?, days(3)?.checked_abs()?))
}

/// By how much a cast may move a time, where it keeps their order.
fn cast_slack(from: &DataType, to: &DataType) -> Option<i64> {
    let zone = |data_type: &DataType| match data_type {
        DataType::Timestamp(_, Some(zone)) if !is_utc(zone) => Some(zone.to_string()),
        _ => None,
    };
    if zone(from) != zone(to) {
        return None;
    }
    let (from, to) = (unit_micros(from)?, unit_micros(to)?);
    Some(if to > from { to } else { 0 })
}

/// The unit of a time in microseconds; 0 for the one that is finer.
fn unit_micros(data_type: &DataType) -> Option<i64> {
    Some(match unit_of(data_type).ok()? {
        Unit::Nanos => 0,
        Unit::Micros => 1,
        Unit::Millis => 1_000,
        Unit::Seconds => 1_000_000,
        Unit::Days => DAY,
    })
}

fn one_unit(time: &Expr, side: &LogicalPlan) -> i64 {
    time.get_type(side.schema()).ok().and_then(|data_type| unit_micros(&data_type)).map_or(DAY, |unit| unit.max(1))
}

fn is_utc(zone: &str) -> bool {
    matches!(zone, "UTC" | "+00:00" | "Z" | "Etc/UTC")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::datatypes::{Field, Schema, TimeUnit};
    use datafusion::common::{Column, JoinType};
    use datafusion::logical_expr::logical_plan::builder::LogicalTableSource;
    use datafusion::logical_expr::{LogicalPlanBuilder, cast, col, lit};

    use super::*;
    use crate::planner::watermark::{WatermarkNode, WatermarkSpec};

    const SECOND: i64 = 1_000_000;

    fn stream(name: &str, watermark: bool) -> LogicalPlan {
        let time = DataType::Timestamp(TimeUnit::Microsecond, None);
        let schema = Schema::new(vec![Field::new("ts", time.clone(), true), Field::new("other", time, true)]);
        let source = Arc::new(LogicalTableSource::new(Arc::new(schema)));
        let plan = LogicalPlanBuilder::scan(name, source, None).and_then(LogicalPlanBuilder::build).expect("a scan");
        let spec = WatermarkSpec { delay: 0, idle_after: None, max_future_skew: None };
        if watermark { WatermarkNode::plan(plan, Column::new(Some(name), "ts"), spec) } else { plan }
    }

    fn until_of(left: LogicalPlan, right: LogicalPlan, condition: Expr) -> [Option<i64>; 2] {
        let joined = LogicalPlanBuilder::from(left).join_on(right, JoinType::Inner, Some(condition));
        match joined.and_then(LogicalPlanBuilder::build) {
            Ok(LogicalPlan::Join(join)) => JoinBounds::of(&join).map_or([None, None], |bounds| bounds.until),
            other => panic!("{other:?}"),
        }
    }

    fn until(condition: Expr) -> [Option<i64>; 2] {
        until_of(stream("l", true), stream("r", true), condition)
    }

    fn seconds(n: i64) -> Expr {
        lit(ScalarValue::new_interval_mdn(0, 0, n * 1_000_000_000))
    }

    #[test]
    fn conditions_are_solved_however_they_are_written() {
        let (l, r) = (|| col("l.ts"), || col("r.ts"));
        const MORE: i64 = 1_000;
        let most = [None, Some(5 * SECOND + MORE)];
        assert_eq!(until(l().lt_eq(r() + seconds(5))), most);
        assert_eq!(until((l() - seconds(5)).lt_eq(r())), most);
        assert_eq!(until((r() + seconds(5)).gt_eq(l())), most);
        assert_eq!(until((l() - r()).lt_eq(seconds(5))), most);
        assert_eq!(until(seconds(-5).lt_eq(r() - l())), most);
        assert_eq!(until(Expr::Not(Box::new(l().gt(r() + seconds(5))))), most);
        // A strict one lets go a millisecond sooner.
        assert_eq!(until(l().lt(r() - seconds(5))), [None, Some(-5 * SECOND)]);
        assert_eq!(until(l().gt(r() - seconds(5))), [Some(5 * SECOND), None]);
        let both = l().between(r() - seconds(10), r() + seconds(5));
        assert_eq!(until(both), [Some(10 * SECOND + MORE), Some(5 * SECOND + MORE)]);
        assert_eq!(until(l().eq(r())), [Some(0), Some(0)]);
        assert_eq!(until(l().lt(r()).and(l().lt(r() - seconds(5)))), [None, Some(-5 * SECOND)]);
        // A month has 28 to 31 days, so a bound of 31 days may be off by three.
        let month = |n: i32| lit(ScalarValue::new_interval_mdn(n, 0, 0));
        assert_eq!(until(l().lt(r() + month(1))), [None, Some(34 * DAY)]);
        assert_eq!(until(l().gt(r() - month(2))), [Some(68 * DAY), None]);
        assert_eq!(until(l().lt(r() - month(1))), [None, Some(-28 * DAY)]);
        let days = |expr: Expr| cast(expr, DataType::Date32);
        assert_eq!(until(days(l()).eq(days(r()))), [Some(2 * DAY), Some(2 * DAY)]);
    }

    #[test]
    fn what_bounds_nothing() {
        let (l, r) = (|| col("l.ts"), || col("r.ts"));
        let none = [None, None];
        assert_eq!(until(l().lt(r()).or(l().gt(r()))), none);
        assert_eq!(until(l().lt(col("l.other"))), none);
        assert_eq!(until((l() + seconds(1)).lt(lit(ScalarValue::TimestampMicrosecond(Some(0), None)))), none);
        assert_eq!(until(l().not_eq(r())), none);
        // Each side is bounded by the watermark of the other.
        let bare = || stream("r", false);
        assert_eq!(until_of(stream("l", true), bare(), l().eq(r())), [None, Some(0)]);
        assert_eq!(until(l().lt(col("r.other"))), [None, Some(0)]);
        assert_eq!(until(l().gt(col("r.other"))), none);
    }
}
