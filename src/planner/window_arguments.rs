//! The arguments of windows in a query's text, by position or by name: lengths of time, and the time zone of a calendar.
//!
//! What is counted in days, weeks, months, quarters or years and has a time zone follows its calendar; months and years without one
//! follow that of UTC. Everything else has a fixed length.

use sqlparser::ast::{self, Expr};

use super::window_shape::{WindowShape, Windows};
use super::windows::{place, place_of};
use crate::delta::calendar::{Calendar, Count, Zone};
use crate::error::{Error, Result, Span};
use crate::parser::Interval;

const EXAMPLE: &str = "window(ts, '10 seconds')";
const NAMES: [&str; 5] = ["time", "size", "slide", "offset", "time_zone"];

/// The time and the windows of `window(ts, size, slide, offset, time_zone)`.
pub(super) fn of_call(call: &Expr) -> Result<(Expr, Windows)> {
    let at = place(call);
    let Expr::Function(ast::Function { args: ast::FunctionArguments::List(list), .. }) = call else {
        return Err(Error::invalid("window wants a time column and a size").at(at).help(EXAMPLE));
    };
    let mut given = [const { None }; NAMES.len()];
    for (position, arg) in list.args.iter().cloned().enumerate() {
        let (position, expr) = argument(arg, position, &NAMES, at)?;
        given[position] = Some(expr);
    }
    let [time, size, slide, offset, time_zone] = given;
    let time = time.ok_or_else(|| Error::invalid("window wants a time column first").at(at).help(EXAMPLE))?;
    let size = size.ok_or_else(|| Error::invalid("window wants a size").at(at).help(EXAMPLE))?;
    Ok((time, Lengths { size, slide, offset, time_zone }.windows(at)?))
}

/// An argument's position among `names`, and what it is.
pub(super) fn argument(
    arg: ast::FunctionArg,
    position: usize,
    names: &[&str],
    at: Option<Span>,
) -> Result<(usize, Expr)> {
    let known = || names.join(", ");
    match arg {
        ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(expr)) if position < names.len() => Ok((position, expr)),
        ast::FunctionArg::Named { name, arg: ast::FunctionArgExpr::Expr(expr), .. } => {
            let wanted = name.value.to_ascii_lowercase();
            match names.iter().position(|n| *n == wanted) {
                Some(position) => Ok((position, expr)),
                None => Err(Error::invalid(format!("a window has no argument {wanted}"))
                    .at(place_of(name.span))
                    .help(format!("it has {}", known()))),
            }
        }
        _ => Err(Error::invalid("too many arguments for a window").at(at).help(format!("it takes {}", known()))),
    }
}

/// The lengths of windows as given.
pub(super) struct Lengths {
    pub size: Expr,
    pub slide: Option<Expr>,
    pub offset: Option<Expr>,
    pub time_zone: Option<Expr>,
}

impl Lengths {
    /// The windows; `at`: where they are called for.
    pub(super) fn windows(self, at: Option<Span>) -> Result<Windows> {
        let zone = self.time_zone.as_ref().map(zone).transpose()?;
        let text = length_text(&self.size);
        match text.as_deref().and_then(counted) {
            Some((each, count)) if zone.is_some() || count == Count::Months => {
                return self.calendar(each, count, zone.unwrap_or(Zone::UTC), at);
            }
            _ => {}
        }
        if text.as_deref().is_some_and(has_months) {
            let error = Error::invalid(
                "windows of the calendar are counted in one unit: days, weeks, months, quarters or years",
            );
            return Err(error.at(place(&self.size)).help("'1 month', or a fixed length such as '30 days'"));
        }
        if let Some(zone) = &self.time_zone {
            micros(&self.size)?;
            let error = Error::invalid(
                "a time_zone goes with a size in days, weeks, months, quarters or years: hours and less are as long in every zone",
            );
            return Err(error.at(place(zone)).help("take '1 day' for '24 hours', or leave time_zone out"));
        }
        let size = micros(&self.size)?;
        let slide = self.slide.as_ref().map(micros).transpose()?.unwrap_or(size);
        let offset = self.offset.as_ref().map(micros).transpose()?.unwrap_or(0);
        let wrong = match () {
            () if size <= 0 => SIZE,
            () if slide <= 0 => "a window's slide must be greater than zero",
            () if slide > size => {
                "a window's slide must not be greater than its size: rows between windows would be lost"
            }
            () if offset.unsigned_abs() >= slide.unsigned_abs() => "a window's offset must be smaller than its slide",
            () => return Ok(Windows::Sliding(WindowShape { size, slide, offset })),
        };
        Err(Error::invalid(wrong).at(at))
    }

    fn calendar(self, each: i64, count: Count, zone: Zone, at: Option<Span>) -> Result<Windows> {
        if each <= 0 {
            return Err(Error::invalid(SIZE).at(at));
        }
        let (each, count, stretches) = match &self.slide {
            Some(slide) => slides(slide, each, count)?,
            None => (each, count, 1),
        };
        let (months, micros) = match &self.offset {
            Some(offset) => interval(offset)?,
            None => (0, 0),
        };
        if months != 0 && count != Count::Months {
            let error = Error::invalid("an offset of months goes with windows of months or years");
            return Err(error.at(self.offset.as_ref().and_then(place)));
        }
        let calendar = Calendar { each, count, stretches, months, micros, zone };
        if !calendar.offset_fits() {
            let what = if stretches > 1 { "slide" } else { "size" };
            return Err(Error::invalid(format!("a window's offset must be smaller than its {what}")).at(at));
        }
        Ok(Windows::Calendar(calendar))
    }
}

/// What windows of a calendar slide by, and how many of that they last.
fn slides(slide: &Expr, each: i64, count: Count) -> Result<(i64, Count, i64)> {
    let found = length_text(slide).as_deref().and_then(counted);
    let (by, each) = match (found, count) {
        (Some((by, Count::Days)), Count::Weeks) => ((by, Count::Days), each.saturating_mul(7)),
        (Some((by, same)), count) if same == count => ((by, same), each),
        _ => {
            let error =
                Error::invalid("windows of the calendar slide by what they are counted in: days, weeks or months");
            return Err(error
                .at(place(slide))
                .help("'30 days' by '1 day', '1 year' by '1 month'; weeks slide by days too"));
        }
    };
    let (slide_by, count) = by;
    let wrong = match () {
        () if slide_by <= 0 => "a window's slide must be greater than zero",
        () if slide_by > each => {
            "a window's slide must not be greater than its size: rows between windows would be lost"
        }
        () if each % slide_by != 0 => "a window of the calendar lasts a whole number of its slides",
        () => return Ok((slide_by, count, each / slide_by)),
    };
    Err(Error::invalid(wrong).at(place(slide)))
}

const SIZE: &str = "a window's size must be greater than zero";

/// Windows that grow by `step` up to `size`.
pub(super) fn cumulating(step: Expr, size: Expr, offset: Option<Expr>, at: Option<Span>) -> Result<Windows> {
    for length in [&step, &size] {
        if length_text(length).as_deref().is_some_and(has_months) {
            let error = Error::not_yet("CUMULATE by the calendar").at(place(length));
            return Err(error.help("take fixed lengths, such as '1 day' up to '30 days'"));
        }
    }
    let (slide, size) = (micros(&step)?, micros(&size)?);
    let offset = offset.as_ref().map(micros).transpose()?.unwrap_or(0);
    let error = match () {
        () if size <= 0 => Error::invalid(SIZE),
        () if slide <= 0 => Error::invalid("a window's step must be greater than zero"),
        () if size % slide != 0 => Error::invalid("a window's size must be a whole number of its steps")
            .help("CUMULATE(s, ts, '1 hour', '1 day'): the step, then the size"),
        () if offset.unsigned_abs() >= size.unsigned_abs() => {
            Error::invalid("a window's offset must be smaller than its size")
        }
        () => return Ok(Windows::Cumulating(WindowShape { size, slide, offset })),
    };
    Err(error.at(at))
}

/// The microseconds of a constant length: `'10 seconds'`, `INTERVAL '10' SECOND`, `INTERVAL 10 SECONDS`.
pub(super) fn micros(expr: &Expr) -> Result<i64> {
    if let Expr::UnaryOp { op: ast::UnaryOperator::Minus, expr } = expr {
        return micros(expr)?.checked_neg().ok_or_else(|| no_interval(&expr.to_string(), expr));
    }
    let Some(text) = length_text(expr) else { return Err(not_constant(expr)) };
    if has_months(&text) {
        let error = Error::invalid(format!("'{text}': months have no fixed length")).at(place(expr));
        return Err(error.help("take days, such as '30 days'"));
    }
    crate::options::parse_interval(&text).ok_or_else(|| no_interval(&text, expr))
}

/// Months and microseconds.
fn interval(expr: &Expr) -> Result<(i64, i64)> {
    if let Expr::UnaryOp { op: ast::UnaryOperator::Minus, expr } = expr {
        let (months, micros) = interval(expr)?;
        let micros = micros.checked_neg().ok_or_else(|| no_interval(&expr.to_string(), expr))?;
        return Ok((-months, micros));
    }
    let Some(text) = length_text(expr) else { return Err(not_constant(expr)) };
    let read = Interval::parse(&text).map_err(|error| error.at(place(expr)))?;
    Ok((read.months.into(), read.micros))
}

fn not_constant(expr: &Expr) -> Error {
    Error::invalid("a window's length must be a constant interval")
        .at(place(expr))
        .help("'10 seconds' or INTERVAL '10' SECOND")
}

fn no_interval(text: &str, expr: &Expr) -> Error {
    Error::invalid(format!("'{text}' is not an interval"))
        .at(place(expr))
        .help("such as '10 seconds' or '1 hour 30 minutes'")
}

fn has_months(text: &str) -> bool {
    Interval::parse(text).is_ok_and(|interval| interval.months != 0)
}

/// So many of one unit of the calendar, and nothing else.
fn counted(text: &str) -> Option<(i64, Count)> {
    let text = text.trim();
    let (number, unit) = text.split_at(text.find(|c: char| c.is_alphabetic())?);
    let (each, count) = match unit.to_lowercase().as_str() {
        "day" | "days" | "d" => (1, Count::Days),
        "week" | "weeks" | "w" => (1, Count::Weeks),
        "month" | "months" | "mon" | "mons" => (1, Count::Months),
        "quarter" | "quarters" => (3, Count::Months),
        "year" | "years" | "y" | "yr" | "yrs" => (12, Count::Months),
        _ => return None,
    };
    // So many that a calendar's dates end before.
    let number = number.trim().parse::<i64>().ok().filter(|number| number.unsigned_abs() < 1_000_000)?;
    Some((number * each, count))
}

fn zone(expr: &Expr) -> Result<Zone> {
    match expr {
        Expr::Value(value) => match &value.value {
            ast::Value::SingleQuotedString(text) => Zone::parse(text).map_err(|error| error.at(place(expr))),
            _ => Err(no_zone(expr)),
        },
        _ => Err(no_zone(expr)),
    }
}

fn no_zone(expr: &Expr) -> Error {
    Error::invalid("a time_zone is a text").at(place(expr)).help("time_zone => 'Europe/Berlin', or '+02:00'")
}

/// The text of a constant length.
fn length_text(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Nested(inner) => length_text(inner),
        Expr::Value(v) => literal_text(&v.value),
        Expr::Interval(interval) => {
            let value = match interval.value.as_ref() {
                Expr::UnaryOp { op: ast::UnaryOperator::Minus, expr } => match expr.as_ref() {
                    Expr::Value(v) => format!("-{}", literal_text(&v.value)?),
                    _ => return None,
                },
                Expr::Value(v) => literal_text(&v.value)?,
                _ => return None,
            };
            Some(match &interval.leading_field {
                Some(unit) => format!("{value} {}", unit.to_string().to_ascii_lowercase()),
                None => value,
            })
        }
        _ => None,
    }
}

fn literal_text(value: &ast::Value) -> Option<String> {
    match value {
        ast::Value::SingleQuotedString(s) | ast::Value::Number(s, _) => Some(s.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_calendar_counts() {
        assert_eq!(counted("1 day"), Some((1, Count::Days)));
        assert_eq!(counted(" 2 WEEKS "), Some((2, Count::Weeks)));
        assert_eq!(counted("1quarter"), Some((3, Count::Months)));
        assert_eq!(counted("2 years"), Some((24, Count::Months)));
        assert_eq!(counted("-1 month"), Some((-1, Count::Months)));
        for fixed in ["24 hours", "1 day 2 hours", "1.5 months", "month", "99999999999999 years", "1 moth", ""] {
            assert_eq!(counted(fixed), None, "{fixed}");
        }
    }
}
