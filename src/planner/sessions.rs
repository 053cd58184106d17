//! `session_window(time, gap)` and `SESSION(…)` in a query's text.
//!
//! What follows from a window's shape for other windows (the end from the start) holds for no session: start and end are both
//! keys of the group.

use sqlparser::ast::{self, Expr};

use super::window_arguments::{argument, micros};
use super::windows::{Window, call, is_part_of, place};
use crate::error::{Error, Result, Span};
use crate::parser::PARTITION_BY_ARGUMENT;

const EXAMPLE: &str = "session_window(ts, '10 seconds')";

/// The session of a call of `session_window`.
pub(super) fn of_call(written: Expr) -> Result<Window> {
    let at = place(&written);
    let Expr::Function(ast::Function { args: ast::FunctionArguments::List(list), .. }) = &written else {
        return Err(Error::invalid("session_window wants a time column and a gap").at(at).help(EXAMPLE));
    };
    let mut given = [None, None];
    for (position, arg) in list.args.iter().cloned().enumerate() {
        let (position, expr) = argument(arg, position, &["time", "gap"], at)?;
        given[position] = Some(expr);
    }
    let [Some(time), Some(gap)] = given else {
        return Err(Error::invalid("session_window wants a time column and a gap").at(at).help(EXAMPLE));
    };
    session(written, time, gap, Vec::new())
}

/// The session of `SESSION(data, time, gap, partition_by => [keys])`; `keys` as given.
pub(super) fn of_table(time: Expr, gap: Expr, keys: Option<Expr>, at: Option<Span>) -> Result<Window> {
    let keys = match keys {
        None => Vec::new(),
        Some(Expr::Array(keys)) => keys.elem,
        Some(_) => {
            let error = Error::invalid(format!("{PARTITION_BY_ARGUMENT} wants a list of columns")).at(at);
            return Err(error.help("SESSION(s PARTITION BY a, b, ts, '10 seconds')"));
        }
    };
    session(time.clone(), time, gap, keys)
}

fn session(written: Expr, time: Expr, gap: Expr, keys: Vec<Expr>) -> Result<Window> {
    let args: Vec<Expr> = [time, interval(gap)?].into_iter().chain(keys).collect();
    let (start, end) = (call("levada_session_start", args.clone()), call("levada_session_end", args));
    Ok(Window { call: written, name: "session_window", keys: vec![start.clone(), end.clone()], start, end })
}

/// A gap: a constant length becomes an interval, anything else is computed for each row.
fn interval(gap: Expr) -> Result<Expr> {
    let length = match &gap {
        Expr::UnaryOp { op: ast::UnaryOperator::Minus, expr } => expr.as_ref(),
        other => other,
    };
    let constant = match length {
        Expr::Value(_) => true,
        Expr::Interval(interval) => matches!(interval.value.as_ref(), Expr::Value(_)),
        _ => false,
    };
    if !constant {
        return Ok(gap);
    }
    let length = micros(&gap)?;
    if length.checked_mul(1_000).is_none() {
        return Err(Error::invalid("a session's gap is too long").at(place(&gap)).help("it may last 292 years"));
    }
    let text = format!("{length} microseconds");
    Ok(Expr::Interval(ast::Interval {
        value: Box::new(Expr::Value(ast::Value::SingleQuotedString(text).with_empty_span())),
        leading_field: None,
        leading_precision: None,
        last_field: None,
        fractional_seconds_precision: None,
    }))
}

/// Refuses what a session can't be asked for: to be no key of its SELECT, or in WHERE, before there are sessions.
pub(super) fn check(window: &Window, grouped: bool, selection: Option<&Expr>) -> Result<()> {
    if window.name != "session_window" {
        return Ok(());
    }
    let at = place(&window.call);
    if !grouped {
        let error = Error::invalid("session_window(…) makes groups of rows, so it has to be a key of GROUP BY").at(at);
        return Err(error.help(format!("GROUP BY {}", window.call)));
    }
    if selection.is_some_and(|selection| is_part_of(window, selection)) {
        let error = Error::invalid("WHERE is asked of rows before they are put into sessions").at(at);
        return Err(error.help("use HAVING to ask something of a session"));
    }
    Ok(())
}
