//! OVER over a stream: what its functions wait for before a row is final, and what they want of rows that were.
//!
//! ```text
//! PARTITION BY k ORDER BY ts      sum(v) ROWS 2 PRECEDING      waits for nothing, wants the two rows before
//!                                 lead(v)                      waits for one row more
//!                                 ntile(4)                     wants the whole partition: only where a watermark ends it
//! ```

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, ScalarValue};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::{NullTreatment, Sort as SortExpr, WindowFunction};
use datafusion::logical_expr::{
    Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Window, WindowFrameBound, WindowFrameUnits,
    WindowFunctionDefinition, cast,
};

use super::event_time::{EventTime, event_time};
use super::frames;
use crate::error::{Error, Result};
use crate::operator::Rank;

/// An OVER, taken apart while its watermarks can still be seen.
pub struct Over<'a> {
    pub window: &'a Window,
    pub calls: Vec<(&'a WindowFunction, Needs)>,
    /// Of all its functions.
    pub partition_by: &'a [Expr],
    pub order_by: &'a [SortExpr],
    /// What rows are ordered by first, where that is a time with a watermark and no function wants whole partitions.
    pub time: Option<EventTime>,
    /// The number of what rows are partitioned by that the watermark ends, and what it is.
    pub ends: Option<(usize, EventTime)>,
}

/// For a bounded run: every call of a node under its own name. Of keys that calls share DataFusion makes a column, which it names
/// where no name is above it; some calls with a name and some without would then seem to have different keys.
pub fn named(plan: LogicalPlan) -> DfResult<LogicalPlan> {
    let named = plan.transform_up_with_subqueries(|node| {
        let LogicalPlan::Window(window) = node else { return Ok(Transformed::no(node)) };
        let bare = |call: &Expr| !matches!(call, Expr::Alias(_));
        if window.window_expr.len() < 2 || !window.window_expr.iter().any(bare) {
            return Ok(Transformed::no(LogicalPlan::Window(window)));
        }
        let Window { input, window_expr, schema, .. } = window;
        let calls = window_expr.into_iter().map(|call| match call {
            Expr::Alias(_) => call,
            call => {
                let (qualifier, name) = call.qualified_name();
                call.alias_qualified(qualifier, name)
            }
        });
        let window = Window::try_new_with_schema(calls.collect(), input, schema)?;
        Ok(Transformed::yes(LogicalPlan::Window(window)))
    });
    Ok(named?.data)
}

/// What a function needs beside the row that it is of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Needs {
    pub before: Before,
    /// How long after a row's own time it is final, in microseconds, and how many rows of its partition must follow.
    pub time: i64,
    pub rows: u64,
    /// Why it wants the whole partition, if it does.
    pub whole: Option<String>,
}

/// What it wants of the rows before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Before {
    Nothing,
    /// The first rows that a partition ever had.
    First(u64),
    /// The last rows.
    Last(u64),
    /// Those of so many microseconds.
    Within(i64),
    /// What an aggregate makes of all of them.
    All,
    /// How many there were.
    Count(Rank),
}

impl Needs {
    const ROW: Needs = Needs { before: Before::Nothing, time: 0, rows: 0, whole: None };

    fn before(before: Before) -> Self {
        Needs { before, ..Needs::ROW }
    }

    fn whole(why: impl Into<String>) -> Self {
        Needs { whole: Some(why.into()), ..Needs::ROW }
    }
}

impl<'a> Over<'a> {
    /// Of a node over a stream, in APPEND.
    ///
    /// # Errors
    /// Unsupported, with what makes its rows final.
    pub fn of(window: &'a Window) -> Result<Self> {
        let Over { calls, partition_by, order_by, ends, .. } = Over::changing(window)?;
        let calls = calls.into_iter().map(|(call, _)| call);
        let input = &window.input;
        let by_time = order_by.first().and_then(|by| Some((by, event_time(input, &by.expr)?)));
        let by_time = by_time.filter(|(_, time)| !matches!(time, EventTime::Window(_) | EventTime::Ending));
        let zoned = order_by.first().and_then(|by| by.expr.get_type(input.schema()).ok());
        let zoned = matches!(zoned, Some(DataType::Timestamp(_, Some(_))));
        let calls: Vec<(&WindowFunction, Needs)> = calls.map(|call| (call, needs(call, zoned))).collect();
        let whole = calls.iter().find_map(|(_, needs)| needs.whole.clone());
        let time = match (by_time, whole) {
            (Some((by, time)), None) if by.asc => Some(time),
            _ if ends.is_some() => None,
            (Some((by, _)), None) => return Err(backwards(by)),
            (Some(_), Some(why)) => return Err(never_whole(&why)),
            (None, _) => return Err(without_time(input, order_by)),
        };
        Ok(Over { window, calls, partition_by, order_by, time, ends })
    }

    /// Of a node over a stream, where rows may be taken back: none need be final.
    ///
    /// # Errors
    /// Unsupported: its functions do not have one order.
    pub fn changing(window: &'a Window) -> Result<Self> {
        let calls: Option<Vec<&WindowFunction>> = window.window_expr.iter().map(call_of).collect();
        let Some((calls, first)) = calls.and_then(|calls| calls.first().copied().map(|first| (calls, first))) else {
            return Err(Error::internal("an OVER that calls no function"));
        };
        let (partition_by, order_by) = (first.params.partition_by.as_slice(), first.params.order_by.as_slice());
        if calls.iter().any(|call| call.params.partition_by != partition_by || call.params.order_by != order_by) {
            return Err(Error::not_yet("OVER with different PARTITION BY or ORDER BY in one step")
                .help("compute one of them in a subquery"));
        }
        let times = partition_by.iter().enumerate();
        let times = times.filter_map(|(n, expr)| Some((n, event_time(&window.input, expr)?)));
        let ends: Vec<(usize, EventTime)> = times.collect();
        let ends = ends.iter().find(|(_, time)| *time != EventTime::Time).or(ends.first()).copied();
        let calls = calls.into_iter().map(|call| (call, Needs::ROW)).collect();
        Ok(Over { window, calls, partition_by, order_by, time: None, ends })
    }

    /// How long after a row's time it is final, in microseconds, and how many rows must follow.
    pub fn waits(&self) -> (i64, u64) {
        let (times, rows) = (self.calls.iter().map(|(_, n)| n.time), self.calls.iter().map(|(_, n)| n.rows));
        (times.max().unwrap_or(0), rows.max().unwrap_or(0))
    }

    /// What the watermark of its rows is behind that of its input, in milliseconds.
    pub fn lag(&self) -> i64 {
        let (time, _) = self.waits();
        if self.time.is_none() { 0 } else { time.div_euclid(1_000) + i64::from(time.rem_euclid(1_000) != 0) }
    }

    /// Whether a column of its input carries its watermark on: rows come when what it says has passed.
    fn passes(&self, column: &Column) -> bool {
        let is = |expr: &Expr| matches!(expr, Expr::Column(is) if is == column);
        let partitioned = self.ends.is_some_and(|(at, _)| is(&self.partition_by[at]));
        let ordered = self.time.is_some() && self.order_by.first().is_some_and(|by| is(&by.expr));
        partitioned || ordered && (self.waits().1 == 0 || self.ends.is_some())
    }
}

/// A node, its input, and the number of a column.
type Asked = (*const Window, *const LogicalPlan, usize);

thread_local! {
    /// What columns of OVERs are, by the node and the column's number, while one is asked: each asks the one below for several of its
    /// columns, so that many in a row would be asked as often as there are ways through them.
    static KNOWN: RefCell<Option<HashMap<Asked, Option<EventTime>>>> = const { RefCell::new(None) };
}

/// What a column of the result of an OVER is in terms of event time.
pub fn time_behind(window: &Window, index: usize) -> Option<EventTime> {
    let key = (std::ptr::from_ref(window), Arc::as_ptr(&window.input), index);
    let known = KNOWN.with_borrow(|known| known.as_ref().map(|known| known.get(&key).copied()));
    match known {
        Some(Some(time)) => time,
        Some(None) => {
            let time = found_behind(window, index);
            KNOWN.with_borrow_mut(|known| {
                if let Some(known) = known {
                    known.insert(key, time);
                }
            });
            time
        }
        // The plan stays where it is as long as it is borrowed: until this returns.
        None => {
            KNOWN.set(Some(HashMap::new()));
            let time = found_behind(window, index);
            KNOWN.set(None);
            time
        }
    }
}

fn found_behind(window: &Window, index: usize) -> Option<EventTime> {
    if index >= window.input.schema().fields().len() {
        return None;
    }
    let column = Column::from(window.input.schema().qualified_field(index));
    let over = Over::of(window).ok()?;
    if over.passes(&column) { event_time(&window.input, &Expr::Column(column)) } else { None }
}

/// Every OVER over a stream in a plan whose rows may be taken back: of its columns only those carry a watermark on that it is
/// partitioned by, as a row may be taken back long after the time that it is ordered by. The others are cast to what they are.
///
/// # Errors
/// Of DataFusion.
pub fn untimed(plan: LogicalPlan) -> DfResult<LogicalPlan> {
    let untimed = plan.transform_up_with_subqueries(|node| {
        let LogicalPlan::Window(window) = &node else { return Ok(Transformed::no(node)) };
        let keys = Over::changing(window).map(|over| over.partition_by).unwrap_or_default();
        let (mut times, mut exprs) = (false, Vec::new());
        for (qualifier, field) in window.schema.iter() {
            let column = Expr::Column(Column::new(qualifier.cloned(), field.name()));
            let time = !keys.contains(&column) && event_time(&window.input, &column).is_some();
            times |= time;
            exprs.push(match time {
                true => cast(column, field.data_type().clone()).alias_qualified(qualifier.cloned(), field.name()),
                false => column,
            });
        }
        if !times {
            return Ok(Transformed::no(node));
        }
        Ok(Transformed::yes(LogicalPlanBuilder::from(node).project(exprs)?.build()?))
    });
    Ok(untimed?.data)
}

/// The call of an expression of an OVER.
fn call_of(expr: &Expr) -> Option<&WindowFunction> {
    match expr {
        Expr::Alias(alias) => call_of(&alias.expr),
        Expr::WindowFunction(call) => Some(call),
        _ => None,
    }
}

fn needs(call: &WindowFunction, zoned: bool) -> Needs {
    let ignores = call.params.null_treatment == Some(NullTreatment::IgnoreNulls);
    let name = call.fun.name();
    let WindowFunctionDefinition::WindowUDF(_) = call.fun else {
        return framed(call, Some(Before::All), false, zoned);
    };
    match name {
        "row_number" => Needs::before(Before::Count(Rank::RowNumber)),
        "rank" => Needs::before(Before::Count(Rank::Rank)),
        "dense_rank" => Needs::before(Before::Count(Rank::DenseRank)),
        "lag" | "lead" if ignores => Needs::whole(format!("{name}() with IGNORE NULLS")),
        "lag" | "lead" => {
            let offset = call.params.args.get(1).map_or(Some(1), number);
            match offset.map(|offset| if name == "lag" { offset } else { offset.saturating_neg() }) {
                Some(back @ 0..) => Needs::before(Before::Last(back.unsigned_abs())),
                Some(ahead) => Needs { rows: ahead.unsigned_abs(), ..Needs::ROW },
                None => Needs::whole(format!("{name}() of another distance for each row")),
            }
        }
        "first_value" => framed(call, (!ignores).then_some(Before::First(1)), true, zoned),
        "last_value" => framed(call, (!ignores).then_some(Before::Nothing), true, zoned),
        "nth_value" => {
            let nth = call.params.args.get(1).and_then(number).and_then(|nth| u64::try_from(nth).ok());
            framed(call, nth.filter(|_| !ignores).map(Before::First), true, zoned)
        }
        other => Needs::whole(format!("{other}()")),
    }
}

/// Of a function over a frame. `from_first`: what it wants of a frame that begins with the partition; `ahead`: such a frame may
/// reach behind the row.
fn framed(call: &WindowFunction, from_first: Option<Before>, ahead: bool, zoned: bool) -> Needs {
    let (frame, name) = (&call.params.window_frame, call.fun.name());
    if frame.units == WindowFrameUnits::Groups {
        return Needs::whole(format!("{name}() over a GROUPS frame"));
    }
    let far = || Needs::whole(format!("{name}() over {}", frames::text(frame)));
    let by_rows = frame.units == WindowFrameUnits::Rows;
    let mut needs = Needs::ROW;
    let mut from_the_first = false;
    match &frame.start_bound {
        WindowFrameBound::Preceding(value) if value.is_null() => {
            from_the_first = true;
            let Some(before) = from_first else { return far() };
            needs.before = before;
        }
        WindowFrameBound::Preceding(value) => match (by_rows, count(value), micros(value, zoned)) {
            (true, Some(rows), _) => needs.before = Before::Last(rows),
            (false, _, Some(micros)) => needs.before = Before::Within(micros),
            _ => return far(),
        },
        WindowFrameBound::CurrentRow | WindowFrameBound::Following(_) => {}
    }
    match &frame.end_bound {
        WindowFrameBound::CurrentRow => {}
        _ if from_the_first && !ahead => return far(),
        WindowFrameBound::Preceding(_) if from_the_first => return far(),
        WindowFrameBound::Preceding(_) => {}
        WindowFrameBound::Following(value) if value.is_null() => return far(),
        WindowFrameBound::Following(value) => match (by_rows, count(value), micros(value, zoned)) {
            (true, Some(rows), _) => needs.rows = rows,
            (false, _, Some(micros)) => needs.time = micros,
            _ => return far(),
        },
    }
    needs
}

fn count(value: &ScalarValue) -> Option<u64> {
    match value {
        ScalarValue::UInt64(rows) => *rows,
        _ => None,
    }
}

/// The longest that an interval may be, in microseconds.
fn micros(value: &ScalarValue, zoned: bool) -> Option<i64> {
    let ScalarValue::IntervalMonthDayNano(Some(interval)) = value else { return None };
    if interval.months < 0 || interval.days < 0 || interval.nanoseconds < 0 {
        return None;
    }
    let days = i64::from(interval.months) * 31 + i64::from(interval.days);
    // A day on which clocks are put back is longer.
    let longer = if zoned && days > 0 { 7_200_000_000 } else { 0 };
    let nanos = interval.nanoseconds;
    let micros = nanos.div_euclid(1_000) + i64::from(nanos.rem_euclid(1_000) != 0);
    days.checked_mul(86_400_000_000)?.checked_add(micros)?.checked_add(longer)
}

fn number(expr: &Expr) -> Option<i64> {
    match expr {
        Expr::Literal(value, _) if value.data_type().is_integer() => match value.cast_to(&DataType::Int64).ok()? {
            ScalarValue::Int64(number) => number,
            _ => None,
        },
        Expr::Negative(inner) => number(inner)?.checked_neg(),
        Expr::Alias(alias) => number(&alias.expr),
        Expr::Cast(cast) => number(&cast.expr),
        _ => None,
    }
}

const ENDS: &str =
    "PARTITION BY a window of a watermarked time too: its rows are then sent when it ends; or use OUTPUT MODE UPDATE";

fn backwards(by: &SortExpr) -> Error {
    Error::unsupported(format!(
        "OVER (… ORDER BY {} DESC) can't run over a stream: rows to come are newer, and would come before those already sent",
        by.expr
    ))
    .help(format!("ORDER BY {} ascending (lead() in place of lag()), or {ENDS}", by.expr))
}

fn never_whole(why: &str) -> Error {
    Error::unsupported(format!(
        "{why} OVER (…) needs all rows of a partition, and over a stream more may always come: no row is ever final"
    ))
    .help(format!("bound the frame (ROWS or RANGE BETWEEN … PRECEDING AND CURRENT ROW), or {ENDS}"))
}

fn without_time(input: &LogicalPlan, order_by: &[SortExpr]) -> Error {
    let Some(by) = order_by.first() else {
        return Error::unsupported(
            "OVER without ORDER BY takes all rows of a partition, and over a stream more may always come: no row is ever final",
        )
        .help(format!("ORDER BY a watermarked time, or {ENDS}"));
    };
    let shown = by.expr.to_string();
    if by.expr.get_type(input.schema()).is_ok_and(|is| is.is_temporal()) {
        return Error::unsupported(format!(
            "OVER (… ORDER BY {shown}) wants a watermark on {shown}: without one no row is ever final"
        ))
        .help(
            "add WITH WATERMARK column DELAY '10 seconds', and order by the column itself; rows of a join without a bound in time, of an aggregate \
             without a window or of lead() carry no watermark on; or use OUTPUT MODE UPDATE",
        );
    }
    Error::unsupported(format!(
        "OVER (… ORDER BY {shown}) can't run over a stream: a row that sorts before those already sent may always come"
    ))
    .help(format!("ORDER BY a watermarked time first, or {ENDS}, in which rows are corrected"))
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::IntervalMonthDayNano;

    use super::*;

    #[test]
    fn intervals_are_as_long_as_they_may_be() {
        let value = |months, days, nanos| {
            ScalarValue::IntervalMonthDayNano(Some(IntervalMonthDayNano::new(months, days, nanos)))
        };
        assert_eq!(micros(&value(0, 0, 1_001), false), Some(2));
        assert_eq!(micros(&value(1, 1, 0), false), Some(32 * 86_400_000_000));
        assert_eq!(micros(&value(0, 1, 0), true), Some(26 * 3_600_000_000));
        assert_eq!(micros(&value(0, 0, -1), false), None);
        assert_eq!(micros(&ScalarValue::UInt64(Some(1)), false), None);
    }
}
