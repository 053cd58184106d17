//! Lengths of time in all their spellings → [`Interval`], and back to text.
//!
//! The unit of account is the microsecond; what is not a whole number of them is an error, never rounded. Months and
//! years are kept apart, as they have no fixed length; whether a place can do with months is judged where it is used.

use std::fmt;

use sqlparser::ast::{self, Expr, Spanned, UnaryOperator, Value};
use sqlparser::tokenizer::Token;

use super::cursor::{Cursor, text_of};
use super::lexer::ours;
use super::statement::Interval;
use crate::error::{Error, Location, Result, Span};

/// What the message says a length of time looks like.
const LIKE: &str = "an interval such as '10 seconds'";

/// Months or microseconds in one unit, and the unit's names.
#[derive(Clone, Copy)]
enum Unit {
    Months(i128),
    Micros(i128),
}

const UNITS: &[(Unit, &[&str])] = &[
    (Unit::Micros(1), &["microseconds", "microsecond", "us", "µs", "usec", "usecs"]),
    (Unit::Micros(1_000), &["milliseconds", "millisecond", "ms", "msec", "msecs"]),
    (Unit::Micros(1_000_000), &["seconds", "second", "s", "sec", "secs"]),
    (Unit::Micros(60_000_000), &["minutes", "minute", "m", "min", "mins"]),
    (Unit::Micros(3_600_000_000), &["hours", "hour", "h", "hr", "hrs"]),
    (Unit::Micros(86_400_000_000), &["days", "day", "d"]),
    (Unit::Micros(604_800_000_000), &["weeks", "week", "w"]),
    (Unit::Months(1), &["months", "month", "mon", "mons"]),
    (Unit::Months(3), &["quarters", "quarter"]),
    (Unit::Months(12), &["years", "year", "y", "yr", "yrs"]),
];

impl Interval {
    /// Reads the text of an interval: `10 seconds`, `1 hour 30 minutes`, `1.5s`, `-1 day`, `01:30:00`.
    ///
    /// # Errors
    /// What is wrong with it, without a place.
    pub fn parse(text: &str) -> Result<Interval> {
        let mut total = Total::default();
        let mut rest = text.trim();
        if rest.is_empty() {
            return Err(Error::invalid("an interval can't be empty").help("write '10 seconds'"));
        }
        while !rest.is_empty() {
            rest = component(text, rest, &mut total)?.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
        }
        total.interval(text)
    }

    /// The interval that an expression writes down: a string, or an INTERVAL literal in any spelling.
    ///
    /// # Errors
    /// Another expression, or a text that is no interval; with the place in the SQL.
    pub fn from_expr(expr: &Expr) -> Result<Interval> {
        let place = span_of(expr);
        let parsed = match expr {
            Expr::Value(value) => match string_of(&value.value) {
                Some(text) => Interval::parse(text),
                None => Err(Error::invalid(format!("expected {LIKE}, found {expr}"))),
            },
            Expr::Interval(literal) => Interval::from_literal(literal),
            Expr::Nested(inner) => return Interval::from_expr(inner),
            _ => Err(Error::invalid(format!("expected {LIKE}, found {expr}"))),
        };
        parsed.map_err(|error| error.at(place))
    }

    /// What an INTERVAL literal means.
    ///
    /// # Errors
    /// It is none that we read; without a place.
    pub(super) fn from_literal(literal: &ast::Interval) -> Result<Interval> {
        if literal.last_field.is_some() {
            return Err(Error::invalid(format!("{literal}: intervals from one unit to another can't be read"))
                .help("write '1 hour 30 minutes'"));
        }
        if literal.leading_precision.is_some() || literal.fractional_seconds_precision.is_some() {
            return Err(Error::invalid(format!("{literal}: an interval has no precision")));
        }
        let number = number_of(&literal.value);
        match (&literal.leading_field, number, &*literal.value) {
            (Some(field), Some(number), _) => Interval::parse(&format!("{number} {field}")),
            (Some(field), None, Expr::Value(value)) if string_of(&value.value).is_some() => {
                with_unit(string_of(&value.value).unwrap_or_default(), &field.to_string())
            }
            (None, None, Expr::Value(value)) if string_of(&value.value).is_some() => {
                Interval::parse(string_of(&value.value).unwrap_or_default())
            }
            _ => Err(Error::invalid(format!("expected {LIKE}, found {literal}"))),
        }
    }

    /// Whether any part of it points backwards.
    pub fn is_negative(&self) -> bool {
        self.months < 0 || self.micros < 0
    }
}

/// The text that [`Interval::parse`] reads as the same interval: `1 month 90 minutes`.
impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Interval { months, micros } = *self;
        if months != 0 {
            write!(f, "{months} month{}", plural(months.into()))?;
        }
        if micros != 0 || months == 0 {
            let separator = if months == 0 { "" } else { " " };
            let (length, name) = largest_unit(micros);
            let number = i128::from(micros) / length;
            write!(f, "{separator}{number} {name}{}", plural(number))?;
        }
        Ok(())
    }
}

fn plural(number: i128) -> &'static str {
    if number == 1 || number == -1 { "" } else { "s" }
}

fn largest_unit(micros: i64) -> (i128, &'static str) {
    const NAMED: [(i128, &str); 5] = [
        (86_400_000_000, "day"),
        (3_600_000_000, "hour"),
        (60_000_000, "minute"),
        (1_000_000, "second"),
        (1_000, "millisecond"),
    ];
    if micros == 0 {
        return (1_000_000, "second");
    }
    NAMED.into_iter().find(|(length, _)| i128::from(micros) % length == 0).unwrap_or((1, "microsecond"))
}

#[derive(Default)]
struct Total {
    months: i128,
    micros: i128,
}

impl Total {
    fn interval(&self, text: &str) -> Result<Interval> {
        match (i32::try_from(self.months), i64::try_from(self.micros)) {
            (Ok(months), Ok(micros)) => Ok(Interval { months, micros }),
            _ => Err(Error::invalid(format!("the interval '{text}' is too long"))),
        }
    }
}

/// Reads one `number unit` or `h:mm:ss` and answers what is left.
fn component<'a>(text: &str, rest: &'a str, total: &mut Total) -> Result<&'a str> {
    let (sign, unsigned) = match rest.strip_prefix('-') {
        Some(unsigned) => (-1, unsigned),
        None => (1, rest.strip_prefix('+').unwrap_or(rest)),
    };
    let end = unsigned.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == ':')).unwrap_or(unsigned.len());
    let (number, rest) = unsigned.split_at(end);
    if number.is_empty() {
        return Err(Error::invalid(format!("'{text}' is no interval: expected a number before '{rest}'"))
            .help("write '10 seconds'"));
    }
    if number.contains(':') {
        total.micros += sign * clock_time(text, number)?;
        return Ok(rest);
    }
    let rest = rest.trim_start();
    let end = rest.find(|c: char| !(c.is_alphabetic() || c == 'µ')).unwrap_or(rest.len());
    let (name, rest) = rest.split_at(end);
    match unit(name, text)? {
        Unit::Months(each) => total.months += sign * scaled(text, number, each)?,
        Unit::Micros(each) => total.micros += sign * scaled(text, number, each)?,
    }
    Ok(rest)
}

fn unit(name: &str, text: &str) -> Result<Unit> {
    let lower = name.to_lowercase();
    if let Some((unit, _)) = UNITS.iter().find(|(_, names)| names.contains(&lower.as_str())) {
        return Ok(*unit);
    }
    if name.is_empty() {
        return Err(Error::invalid(format!("the interval '{text}' has a number without a unit"))
            .help("write '10 seconds', '5 minutes', '1 hour'"));
    }
    if lower.starts_with("nano") || lower == "ns" {
        return Err(Error::invalid(format!("the interval '{text}' is finer than a microsecond")));
    }
    let known = UNITS.iter().map(|(_, names)| names[0]);
    let error = Error::invalid(format!("unknown unit '{name}' in the interval '{text}'"));
    Err(match crate::error::closest(&lower, known) {
        Some(name) => error.help(format!("did you mean {name}?")),
        None => error.help(
            "units are microseconds, milliseconds, seconds, minutes, hours, days, weeks, months, quarters, years",
        ),
    })
}

/// `number × each`, exactly.
fn scaled(text: &str, number: &str, each: i128) -> Result<i128> {
    let wrong = || Error::invalid(format!("'{number}' is no number in the interval '{text}'"));
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.contains('.') || (whole.is_empty() && fraction.is_empty()) {
        return Err(wrong());
    }
    // More digits than these can't be a whole number of any unit's parts, unless they are zeros.
    let fraction = fraction.trim_end_matches('0');
    if whole.len() > 20 || fraction.len() > 15 {
        return Err(Error::invalid(format!("the interval '{text}' is too long, or finer than a microsecond")));
    }
    let digits: i128 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| wrong())? };
    let mut value = digits * each;
    if !fraction.is_empty() {
        let part: i128 = fraction.parse().map_err(|_| wrong())?;
        let scale = 10i128.pow(fraction.len() as u32);
        if part * each % scale != 0 {
            return Err(Error::invalid(format!(
                "the interval '{text}' is not a whole number of microseconds or months"
            )));
        }
        value += part * each / scale;
    }
    Ok(value)
}

/// `h:mm`, `h:mm:ss` or `h:mm:ss.ffffff` in microseconds.
fn clock_time(text: &str, time: &str) -> Result<i128> {
    let parts: Vec<&str> = time.split(':').collect();
    let (hours, minutes, seconds) = match parts[..] {
        [hours, minutes] => (hours, minutes, "0"),
        [hours, minutes, seconds] => (hours, minutes, seconds),
        _ => return Err(Error::invalid(format!("'{time}' is no time of the form 1:30:00 in the interval '{text}'"))),
    };
    let too_many = |part: &str| part.split('.').next().and_then(|p| p.parse::<u32>().ok()).is_none_or(|n| n > 59);
    if hours.contains('.') || minutes.contains('.') || too_many(minutes) || too_many(seconds) {
        return Err(Error::invalid(format!("'{time}' is no time of the form 1:30:00 in the interval '{text}'")));
    }
    Ok(scaled(text, hours, 3_600_000_000)? + scaled(text, minutes, 60_000_000)? + scaled(text, seconds, 1_000_000)?)
}

/// The text of `INTERVAL '10' SECOND`: a number alone.
fn with_unit(text: &str, unit: &str) -> Result<Interval> {
    if !is_number(text) {
        return Err(Error::invalid(format!("expected a number before {unit}, found '{text}'")));
    }
    Interval::parse(&format!("{} {unit}", text.trim()))
}

fn is_number(text: &str) -> bool {
    let digits = text.trim().trim_start_matches(['-', '+']);
    !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit() || c == '.')
}

fn number_of(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::Number(digits, _) => Some(digits.clone()),
            _ => None,
        },
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => Some(format!("-{}", number_of(expr)?)),
        _ => None,
    }
}

fn string_of(value: &Value) -> Option<&str> {
    match value {
        Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) | Value::UnicodeStringLiteral(text) => {
            Some(text)
        }
        Value::DollarQuotedString(quoted) => Some(&quoted.value),
        _ => None,
    }
}

/// The place of an expression, where sqlparser kept it.
pub(super) fn span_of(node: &impl Spanned) -> Option<Span> {
    let span = node.span();
    let (start, end): (Option<Location>, Option<Location>) = (ours(span.start), ours(span.end));
    Some(Span { start: start?, end: end? })
}

impl Cursor<'_> {
    /// An interval in any spelling.
    pub fn interval(&mut self) -> Result<Interval> {
        let from = self.at;
        let keyword = self.take(&["INTERVAL"]);
        let text = self.interval_text(keyword)?;
        let place = self.span_from(from);
        match text {
            (text, None) => Interval::parse(&text),
            (number, Some(unit)) => with_unit(&number, &unit),
        }
        .map_err(|error| error.at(Some(place)))
    }

    /// An interval that may not be negative; `what` says of what, as in `the delay`.
    pub fn duration(&mut self, what: &str) -> Result<Interval> {
        let from = self.at;
        let interval = self.interval()?;
        if interval.is_negative() {
            return Err(Error::invalid_at(self.span_from(from), format!("{what} can't be negative")));
        }
        Ok(interval)
    }

    fn interval_text(&mut self, keyword: bool) -> Result<(String, Option<String>)> {
        if let Some(text) = self.peek().and_then(|l| text_of(&l.token)) {
            self.at += 1;
            // A word behind a text with its own unit is something else, such as an alias.
            let unit = if keyword && is_number(text) { self.unit_word()? } else { None };
            return Ok((text.to_string(), unit));
        }
        let from = self.at;
        let minus = self.take_token(&Token::Minus);
        if let Some(Token::Number(digits, _)) = self.peek().map(|l| &l.token) {
            self.at += 1;
            let sign = if minus { "-" } else { "" };
            return match self.unit_word()? {
                Some(unit) if keyword => Ok((format!("{sign}{digits}"), Some(unit))),
                Some(unit) => Err(Error::invalid_at(
                    self.span_from(from),
                    format!("expected {LIKE}, found {sign}{digits} {unit}"),
                )
                .help(format!("write '{sign}{digits} {unit}' or INTERVAL '{sign}{digits} {unit}'"))),
                None => Err(self.expected("a unit such as SECONDS", &[])),
            };
        }
        self.at = from;
        Err(self.expected(LIKE, &["INTERVAL"]))
    }

    /// A word that names a unit of time in full.
    fn unit_word(&mut self) -> Result<Option<String>> {
        let Some(word) = self.peek().and_then(|l| l.word()) else { return Ok(None) };
        if !UNITS.iter().any(|(_, names)| names[..2].contains(&word.to_lowercase().as_str())) {
            return Ok(None);
        }
        self.at += 1;
        if self.is(&["TO"]) {
            return Err(Error::invalid_at(self.place(), "intervals from one unit to another can't be read")
                .help("write '1 hour 30 minutes'"));
        }
        Ok(Some(word.to_string()))
    }
}
