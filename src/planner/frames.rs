//! Frames of OVER: their distances in the words of SQL, and those that go backwards.

use arrow::datatypes::{DataType, IntervalMonthDayNano};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, WindowFrame, WindowFrameBound, WindowFrameUnits};

use super::interval_text;
use crate::error::{Error, Result};

/// Refuses frames whose distances are negative: DataFusion takes them, and then fails while it runs.
///
/// # Errors
/// InvalidInput, with the distance.
pub fn check(plan: &LogicalPlan) -> Result<()> {
    let mut wrong = None;
    plan.apply_with_subqueries(|node| {
        let LogicalPlan::Window(window) = node else { return Ok(TreeNodeRecursion::Continue) };
        for expr in &window.window_expr {
            expr.apply(|e| {
                if let Expr::WindowFunction(call) = e {
                    let frame = &call.params.window_frame;
                    wrong = [&frame.start_bound, &frame.end_bound].into_iter().find(|bound| goes_back(bound)).cloned();
                }
                Ok(if wrong.is_some() { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
            })?;
        }
        Ok(if wrong.is_some() { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    let Some(bound) = wrong else { return Ok(()) };
    let turned = if matches!(bound, WindowFrameBound::Preceding(_)) { "FOLLOWING" } else { "PRECEDING" };
    Err(Error::invalid(format!("a frame's distance can't be negative: {}", bound_text(&bound)))
        .help(format!("write the distance without its sign, and {turned}")))
}

/// Frames of RANGE without a distance, over what DataFusion can't measure distances in (TIME, BYTEA, a struct), as frames of
/// GROUPS: both go by rows that are equal in the order.
///
/// # Errors
/// Of DataFusion.
pub fn by_groups(plan: LogicalPlan) -> DfResult<LogicalPlan> {
    let plan = plan.transform_up_with_subqueries(|node| {
        let LogicalPlan::Window(window) = &node else { return Ok(Transformed::no(node)) };
        let schema = window.input.schema().clone();
        let node = node.map_expressions(|expr| {
            let (qualifier, name) = expr.qualified_name();
            let regrouped = expr.transform_up(|e| Ok(regrouped(e, &schema)))?;
            Ok(if regrouped.transformed {
                let regrouped = regrouped.data.unalias().alias_qualified(qualifier, name);
                Transformed::yes(regrouped)
            } else {
                regrouped
            })
        })?;
        if node.transformed { node.map_data(LogicalPlan::recompute_schema) } else { Ok(node) }
    });
    Ok(plan?.data)
}

fn regrouped(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let Expr::WindowFunction(mut call) = expr else { return Transformed::no(expr) };
    let frame = &mut call.params.window_frame;
    let far = |bound: &WindowFrameBound| match bound {
        WindowFrameBound::CurrentRow => true,
        WindowFrameBound::Preceding(distance) | WindowFrameBound::Following(distance) => distance.is_null(),
    };
    let by = call.params.order_by.first().and_then(|by| by.expr.get_type(schema).ok());
    let measured = by.is_none_or(|by| is_measured(&by));
    if measured || frame.units != WindowFrameUnits::Range || !far(&frame.start_bound) || !far(&frame.end_bound) {
        return Transformed::no(Expr::WindowFunction(call));
    }
    let bound = |bound: &WindowFrameBound| match bound {
        WindowFrameBound::CurrentRow => WindowFrameBound::CurrentRow,
        WindowFrameBound::Preceding(_) => WindowFrameBound::Preceding(ScalarValue::UInt64(None)),
        WindowFrameBound::Following(_) => WindowFrameBound::Following(ScalarValue::UInt64(None)),
    };
    *frame = WindowFrame::new_bounds(WindowFrameUnits::Groups, bound(&frame.start_bound), bound(&frame.end_bound));
    Transformed::yes(Expr::WindowFunction(call))
}

/// Whether DataFusion takes a frame of RANGE over such a type.
fn is_measured(of: &DataType) -> bool {
    use DataType::{Boolean, Date32, Date64, Dictionary, FixedSizeList, LargeList, List, Timestamp};
    match of {
        Dictionary(_, values) => is_measured(values),
        Boolean | List(_) | LargeList(_) | FixedSizeList(..) | Timestamp(..) | Date32 | Date64 => true,
        other => other.is_numeric() || other.is_string() || other.is_null(),
    }
}

fn goes_back(bound: &WindowFrameBound) -> bool {
    let (WindowFrameBound::Preceding(distance) | WindowFrameBound::Following(distance)) = bound else { return false };
    match distance {
        ScalarValue::IntervalMonthDayNano(Some(IntervalMonthDayNano { months, days, nanoseconds })) => {
            *months < 0 || *days < 0 || *nanoseconds < 0
        }
        other => {
            let zero = ScalarValue::new_zero(&other.data_type());
            !other.is_null() && zero.is_ok_and(|zero| other.partial_cmp(&zero).is_some_and(std::cmp::Ordering::is_lt))
        }
    }
}

/// A frame as it is written.
pub fn text(frame: &WindowFrame) -> String {
    let units = match frame.units {
        WindowFrameUnits::Rows => "ROWS",
        WindowFrameUnits::Range => "RANGE",
        WindowFrameUnits::Groups => "GROUPS",
    };
    format!("{units} BETWEEN {} AND {}", bound_text(&frame.start_bound), bound_text(&frame.end_bound))
}

fn bound_text(bound: &WindowFrameBound) -> String {
    match bound {
        WindowFrameBound::CurrentRow => "CURRENT ROW".into(),
        WindowFrameBound::Preceding(distance) => format!("{} PRECEDING", distance_text(distance)),
        WindowFrameBound::Following(distance) => format!("{} FOLLOWING", distance_text(distance)),
    }
}

fn distance_text(distance: &ScalarValue) -> String {
    match distance {
        null if null.is_null() => "UNBOUNDED".into(),
        ScalarValue::IntervalMonthDayNano(Some(interval)) => format!("INTERVAL '{}'", length_text(*interval)),
        other => other.to_string(),
    }
}

/// An interval in words: `1 month 2 hours`.
pub fn length_text(interval: IntervalMonthDayNano) -> String {
    let IntervalMonthDayNano { months, days, nanoseconds } = interval;
    let some = |n: i32, one: &str| (n != 0).then(|| format!("{n} {one}{}", if n == 1 { "" } else { "s" }));
    let rest = (nanoseconds != 0 || months == 0 && days == 0).then(|| match nanoseconds % 1_000 {
        0 => interval_text(nanoseconds / 1_000),
        _ => format!("{nanoseconds} nanoseconds"),
    });
    [some(months, "month"), some(days, "day"), rest].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_shown_as_it_is_written() {
        let of = |months, days, nanos| {
            ScalarValue::IntervalMonthDayNano(Some(IntervalMonthDayNano::new(months, days, nanos)))
        };
        let frame = WindowFrame::new_bounds(
            WindowFrameUnits::Range,
            WindowFrameBound::Preceding(of(1, 2, 0)),
            WindowFrameBound::Following(of(0, 0, 2_500_000_000)),
        );
        let shown = text(&frame);
        assert_eq!(
            shown,
            "RANGE BETWEEN INTERVAL '1 month 2 days' PRECEDING AND INTERVAL '2 seconds 500 milliseconds' FOLLOWING"
        );
        for (bound, back) in [
            (WindowFrameBound::Preceding(of(0, 0, -1)), true),
            (WindowFrameBound::Following(of(0, 0, 1)), false),
            (WindowFrameBound::Preceding(ScalarValue::Int64(Some(-2))), true),
            (WindowFrameBound::Preceding(ScalarValue::UInt64(Some(2))), false),
            (WindowFrameBound::Preceding(ScalarValue::Float64(Some(-0.5))), true),
            (WindowFrameBound::Preceding(ScalarValue::Null), false),
            (WindowFrameBound::CurrentRow, false),
        ] {
            assert_eq!(goes_back(&bound), back, "{bound:?}");
        }
    }
}
