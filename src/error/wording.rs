//! DataFusion's messages in the words of SQL: types as SQL names them, literals as they were written, nothing of how a
//! library wraps its errors.
//!
//! [`reworded`] knows the messages that users meet, and says them anew with a way out; [`plain`] does what can be done for
//! every other one. What stands in single quotes is the user's and is left alone.

use super::sql_words::{in_sql, list};
use super::{Code, closest};

/// A message and what to do about it.
pub(super) type Worded = (String, Option<String>);

/// What wraps a message on its way through DataFusion.
const WRAPPERS: &[&str] = &["Error during planning: ", "Execution error: ", "Internal error: ", "Arrow error: "];

/// What DataFusion adds to errors of its own, and to some that are not.
const BOILERPLATE: &str = "This issue was likely caused by a bug in DataFusion's code";

/// Any message, its types and literals as SQL writes them.
pub(super) fn plain(message: &str) -> String {
    let message = message.split(BOILERPLATE).next().unwrap_or_default().trim_end();
    let mut message = message.trim_end_matches('.').to_string();
    for wrapper in WRAPPERS {
        message = message.replace(wrapper, "");
    }
    in_sql(&message)
}

/// A message that users meet, said anew, and what kind of error it is; `None`: [`plain`] must do.
pub(super) fn reworded(message: &str) -> Option<(Code, Worded)> {
    let types = || signature(message).or_else(|| operands(message)).or_else(|| ranges(message));
    let types = || types().map(|worded| (Code::Types, worded));
    types().or_else(|| clauses(message).map(|worded| (Code::Clauses, worded))).or_else(|| values(message))
}

/// `x BETWEEN a AND b` of types that have no order together.
fn ranges(message: &str) -> Option<Worded> {
    let (one, other) = between(message, "Failed to coerce types ", " in BETWEEN expression")?.split_once(" and ")?;
    let message = format!("{} can't be compared with {}", in_sql(one), in_sql(other));
    Some((message, Some("CAST one of them: CAST(x AS type)".to_string())))
}

/// Calls with arguments that a function does not take.
fn signature(message: &str) -> Option<Worded> {
    let call = between(message, "given name and argument types '", "'. You might need")?;
    let (name, given) = call.strip_suffix(')')?.split_once('(')?;
    let given = list(given);
    let shown = || in_sql(&given.join(", "));
    let candidates: Vec<&str> = message.split("Candidate functions:").nth(1)?.lines().map(str::trim).collect();
    let takes: Vec<Vec<&str>> = candidates
        .iter()
        .filter_map(|c| c.strip_prefix(name)?.strip_prefix('(')?.strip_suffix(')'))
        .filter(|arguments| !arguments.contains("UserDefined") && !arguments.contains(".."))
        .map(list)
        .collect();
    if takes.is_empty() {
        let own = message.split(". No function matches").next().map(plain).unwrap_or_default();
        let own = own.rsplit("coercion failed with: ").next().unwrap_or_default();
        let count = own.contains("argument") && own.starts_with(name);
        let message = if count { own.to_string() } else { format!("{name} can't take ({})", shown()) };
        return Some((message, (!count).then(|| "CAST(x AS type) changes the type of an argument".to_string())));
    }
    let mut forms: Vec<String> = takes.iter().map(|types| format!("{name}({})", arguments(types))).collect();
    let mut seen = Vec::new();
    forms.retain(|form| !seen.contains(form) && (seen.push(form.clone()), true).1);
    let more = forms.len() > 4;
    forms.truncate(4);
    let forms = forms.join(", ") + if more { ", …" } else { "" };
    let mut counts: Vec<usize> = takes.iter().map(Vec::len).collect();
    counts.sort_unstable();
    counts.dedup();
    if counts.contains(&given.len()) {
        return Some((format!("{name} can't take ({})", shown()), Some(format!("it takes {forms}"))));
    }
    let numbers: Vec<String> = counts.iter().map(usize::to_string).collect();
    let s = if counts == [1] { "" } else { "s" };
    let message = format!("{name} takes {} argument{s}, not {}", numbers.join(" or "), given.len());
    Some((message, Some(forms)))
}

/// The arguments of a form that a function knows.
fn arguments(types: &[&str]) -> String {
    let one = |of: &&str| {
        // `start_pos: Int64`
        let of = of.rsplit(": ").next().unwrap_or(of);
        match of {
            "Decimal" => "DECIMAL".into(),
            "String" => "STRING".into(),
            "Integer" => "BIGINT".into(),
            "Timestamp" => "TIMESTAMP".into(),
            "Time" => "TIME".into(),
            "Date" => "DATE".into(),
            "Duration" | "Interval" => "INTERVAL".into(),
            "Numeric" | "Float" => "DOUBLE".into(),
            "Null" => "NULL".into(),
            of if of.contains('/') => "any".into(),
            of => in_sql(of),
        }
    };
    types.iter().map(one).collect::<Vec<String>>().join(", ")
}

/// Operators between types that do not go together.
fn operands(message: &str) -> Option<Worded> {
    const BOTH: &str = "CAST one of them: CAST(x AS type)";
    if let Some(found) = behind(message, "Unary operator 'NOT' requires a boolean expression, got ") {
        return Some((format!("NOT takes a condition, not {}", in_sql(found)), None));
    }
    if message.starts_with("Unary operator '-' only supports") {
        return Some(("a minus takes a number or an interval".into(), None));
    }
    if let Some(what) = between(message, "Cannot coerce arithmetic expression ", " to valid types") {
        let what = in_sql(what);
        let time = ["TIMESTAMP", "DATE"].iter().any(|time| what.contains(time));
        let help = if time { "a time takes a length of time: ts + INTERVAL '5 seconds'" } else { BOTH };
        return Some((format!("{what} can't be computed"), Some(help.into())));
    }
    if let Some(what) = behind(message, "Cannot infer common argument type for comparison operation ") {
        let what = in_sql(what);
        let time = what.contains("TIMESTAMP") || what.contains("DATE");
        let number = ["INT", "DOUBLE", "FLOAT", "DECIMAL"].iter().any(|number| what.contains(number));
        let help = match time && number {
            true => "write a time, as in TIMESTAMP '2024-01-01 00:00:00', or to_timestamp_millis(number)",
            false => BOTH,
        };
        return Some((format!("{what} can't be compared"), Some(help.into())));
    }
    if let Some(what) = behind(message, "Cannot infer common string type for string concat operation ") {
        return Some((format!("{} can't be joined to a text", in_sql(what)), Some("CAST(x AS STRING)".into())));
    }
    if let Some(what) = between(message, "There isn't a common type to coerce ", " in LIKE expression") {
        return Some((format!("LIKE compares texts, not {}", in_sql(what)), Some("CAST(x AS STRING)".into())));
    }
    if let Some(what) = behind(message, "Cannot create filter with non-boolean predicate '") {
        let (what, found) = what.rsplit_once("' returning ")?;
        let what = unqualified(what);
        let message = format!("a condition is true or false, and {what} is {}", in_sql(found));
        return Some((message, Some(format!("compare it, as in {what} = …"))));
    }
    if let Some(what) = behind(message, "Incompatible inputs for Union: Previous inputs were of type ") {
        let (before, rest) = what.split_once(", but got incompatible type ")?;
        let (found, column) = rest.split_once(" on column '")?;
        let (column, before, found) = (column.trim_end_matches('\''), in_sql(before), in_sql(found));
        let message = format!("UNION: column {column} is {found}, where the SELECT before has {before}");
        return Some((message, Some(BOTH.into())));
    }
    let path = behind(message, "Cannot access field at argument ")?;
    let found = in_sql(between(path, "type ", " is not Struct, Map, or Null")?);
    let help = if found.starts_with("ARRAY") {
        "an element is taken by its number, from 1: x[1]"
    } else {
        "only STRUCT and MAP have fields"
    };
    Some((format!("a value of type {found} has no field to take"), Some(help.into())))
}

/// Clauses that do not fit each other.
fn clauses(message: &str) -> Option<Worded> {
    if let Some(column) = between(message, "column \"", "\" must appear in the GROUP BY clause") {
        let column = unqualified(column);
        let message = format!("{column} is neither in GROUP BY nor inside an aggregate");
        return Some((message, Some(format!("GROUP BY …, {column}, or one of its values, such as max({column})"))));
    }
    if message.starts_with("Aggregate functions are not allowed in the WHERE clause") {
        let message = "an aggregate can't stand in WHERE, which picks rows before they are grouped";
        return Some((message.into(), Some("HAVING, behind GROUP BY, picks groups".into())));
    }
    if let Some(rest) = behind(message, "Projections require unique expression names but the expression \"") {
        let first = rest.split("\" at position").next()?;
        let message = format!("two columns of the result are called {}", in_sql(&column_name(first)));
        return Some((message, Some("rename one with AS".into())));
    }
    if message.starts_with("Correlated scalar subquery must be aggregated to return at most one row") {
        let message = "a subquery that stands for a value and looks at the row around it has to be an aggregate without \
                       GROUP BY, which gives one row";
        return Some((message.into(), Some("max(v) in place of v, or a join".into())));
    }
    if let Some(columns) = behind(message, "Too many columns! The subquery should only return one column: ") {
        let count = columns.split(", ").count();
        let message = format!("a subquery in this place gives one column, and this one gives {count}");
        return Some((
            message,
            Some(format!("select one of {}", columns.split(", ").map(unqualified).collect::<Vec<_>>().join(", "))),
        ));
    }
    if let Some(inner) = between(message, "Aggregate function calls cannot be nested: '", "' is nested inside") {
        let inner = in_sql(inner);
        let message = format!("aggregates can't stand in each other: {inner} is inside another");
        return Some((message, Some(format!("compute {inner} in a subquery, and aggregate its result"))));
    }
    if let Some(rest) = behind(message, "Order by column out of bounds, specified: ") {
        let (number, most) = rest.split_once(", max: ")?;
        return Some((format!("ORDER BY {number}: the SELECT has {}", columns(most)), None));
    }
    if let Some(number) = between(message, "Cannot find column with position ", " in SELECT clause") {
        let most = message.rsplit(" to ").next().unwrap_or("1");
        return Some((format!("GROUP BY {number}: the SELECT has {}", columns(most)), None));
    }
    if message.starts_with("UNION queries have different number of columns") {
        let message = "the SELECTs of a UNION have different numbers of columns";
        return Some((message.into(), Some("each has to give the same columns".into())));
    }
    if let Some(rest) = behind(message, "Inconsistent data length across values list: got ") {
        let (got, rest) = rest.split_once(" values in row ")?;
        let (row, wanted) = rest.split_once(" but expected ")?;
        let row: usize = row.parse().ok()?;
        return Some((format!("row {} of VALUES has {got} values, the first has {wanted}", row + 1), None));
    }
    if let Some(found) = behind(message, "Expected LIMIT to be an integer or null, but got ") {
        return Some((format!("LIMIT takes an integer, not {}", in_sql(found)), None));
    }
    if let Some(rest) = behind(message, "Physical plan does not support logical expression ") {
        // What follows is a dump of the expression; its first word says what it is.
        let kind = rest.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
        return Some(match kind {
            "WindowFunction" => (
                "a window function can't stand here: it is computed behind WHERE, GROUP BY and HAVING".into(),
                Some(
                    "compute it in a subquery: SELECT * FROM (SELECT …, row_number() OVER (…) AS n FROM …) WHERE n = 1"
                        .into(),
                ),
            ),
            "AggregateFunction" => (
                "an aggregate can't stand here".into(),
                Some("compute it in a subquery, or compare it in HAVING".into()),
            ),
            "InSubquery" => ("IN (SELECT …) can't stand here".into(), Some("a join, or IN (SELECT …) in WHERE".into())),
            "Exists" => ("EXISTS (SELECT …) can't stand here".into(), Some("a join, or EXISTS in WHERE".into())),
            "ScalarSubquery" | "SetComparison" => {
                ("a subquery can't stand here".into(), Some("a join, or a subquery in WHERE".into()))
            }
            _ => ("this expression can't be computed in this place".into(), None),
        });
    }
    None
}

/// What a column is called that is made by an expression: its alias, or the expression without its casts.
fn column_name(expr: &str) -> String {
    if let Some(at) = at_top(expr, " AS ").last() {
        return expr[at + 4..].to_string();
    }
    let mut name = expr.to_string();
    while let Some(at) = name.find("CAST(").filter(|at| !is_quoted(&name, *at)) {
        let open = at + 5;
        let Some(close) = at_top(&name[open..], ")").first().map(|close| open + close) else { break };
        let inner = &name[open..close];
        let Some(cut) = at_top(inner, " AS ").last().copied() else { break };
        let from = if name[..at].ends_with("TRY_") { at - 4 } else { at };
        name = format!("{}{}{}", &name[..from], &inner[..cut], &name[close + 1..]);
    }
    name
}

/// Where a text stands in an expression outside of quotes and brackets; a closing bracket that nothing opened counts as outside.
fn at_top(expr: &str, wanted: &str) -> Vec<usize> {
    let (mut found, mut depth, mut quote) = (Vec::new(), 0_i32, None);
    for (at, c) in expr.char_indices() {
        if quote.is_none() && depth == 0 && expr[at..].starts_with(wanted) {
            found.push(at);
        }
        match (quote, c) {
            (Some(open), c) if open == c => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}') => depth -= 1,
            _ => {}
        }
    }
    found
}

fn is_quoted(expr: &str, at: usize) -> bool {
    let mut quote = None;
    for c in expr[..at].chars() {
        match quote {
            Some(open) if open == c => quote = None,
            None if c == '\'' || c == '"' => quote = Some(c),
            _ => {}
        }
    }
    quote.is_some()
}

/// Names and texts that mean nothing.
fn values(message: &str) -> Option<(Code, Worded)> {
    if let Some(name) = between(message, "Invalid function '", "'") {
        return Some((Code::UnknownFunction, (format!("there is no function {name}"), None)));
    }
    if let Some(name) = between(message, "table function '", "' not found") {
        let message = format!("there is no table function {}", name.to_lowercase());
        return Some((Code::UnknownFunction, (message, None)));
    }
    if let Some(rest) = behind(message, "Unsupported CAST from ").or(behind(message, "Unsupported cast from ")) {
        let (from, to) = rest.split_once(" to ")?;
        return Some((Code::Types, (format!("{} can't be cast to {}", in_sql(from), in_sql(to)), None)));
    }
    if let Some(rest) = behind(message, "Unsupported date_trunc granularity: '") {
        let (unit, known) = rest.split_once("'. Supported values are: ")?;
        let help = match closest(unit, known.split(", ")) {
            Some(unit) => format!("did you mean '{unit}'?"),
            None => format!("it knows {known}"),
        };
        return Some((Code::Invalid, (format!("date_trunc knows no unit '{unit}'"), Some(help))));
    }
    let part = between(message, "Date part '", "' not supported")?;
    const PARTS: &[&str] = &[
        "year",
        "quarter",
        "month",
        "week",
        "day",
        "hour",
        "minute",
        "second",
        "millisecond",
        "microsecond",
        "dow",
        "doy",
        "epoch",
    ];
    let help = match closest(part, PARTS.iter().copied()) {
        Some(part) => format!("did you mean {part}?"),
        None => format!("known parts: {}", PARTS.join(", ")),
    };
    Some((Code::Invalid, (format!("a time has no part '{part}'"), Some(help))))
}

/// What kind of failure of a computation a message tells of.
pub(super) fn kind_of_data(message: &str) -> Code {
    const CASTS: &[&str] = &[
        "Cannot cast ",
        "Can't cast ",
        "Error parsing ",
        "Invalid input syntax ",
        "Cannot parse ",
        "Invalid timezone",
    ];
    match message {
        _ if message.starts_with("Overflow happened on: ") => Code::Overflow,
        _ if CASTS.iter().any(|start| message.starts_with(start)) => Code::BadCast,
        _ => Code::Computation,
    }
}

/// Data that can't be made into a type, where the computation met it.
pub(super) fn of_data(message: &str) -> String {
    let cast = |value: &str, to: &str| format!("can't cast {value} to {}", in_sql(to));
    if let Some(rest) = behind(message, "Cannot cast string '")
        && let Some((value, to)) = rest.rsplit_once("' to value of ")
    {
        return cast(&format!("'{value}'"), to.trim_end_matches(" type"));
    }
    if let Some(rest) = behind(message, "Can't cast value ")
        && let Some((value, to)) = rest.rsplit_once(" to type ")
    {
        return cast(value, to);
    }
    if let Some(rest) = behind(message, "Error parsing timestamp from '")
        && let Some((value, why)) = rest.rsplit_once("': ")
    {
        return format!("'{value}' is no timestamp such as '2024-01-01 00:00:00': {}", in_sql(why));
    }
    if let Some(value) = between(message, "Invalid input syntax for type interval: \"", "\"") {
        return format!("'{value}' is no interval such as '5 seconds'");
    }
    if message.starts_with("Scalar subquery returned more than one row") {
        return "a subquery in the place of a value gave more than one row: an aggregate, or LIMIT 1, makes it one"
            .into();
    }
    plain(message.strip_prefix("Overflow happened on: ").unwrap_or(message))
}

fn columns(number: &str) -> String {
    format!("{number} column{}", if number == "1" { "" } else { "s" })
}

fn behind<'a>(message: &'a str, start: &str) -> Option<&'a str> {
    message.strip_prefix(start)
}

fn between<'a>(message: &'a str, start: &str, end: &str) -> Option<&'a str> {
    let rest = &message[message.find(start)? + start.len()..];
    Some(&rest[..rest.find(end)?])
}

/// `t.name` → `name`: what a name in a message is called where it was written.
fn unqualified(name: &str) -> &str {
    match name.rsplit_once('.') {
        Some((table, column)) if !table.contains(['(', ' ']) => column,
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_library_wraps_around_is_taken_off() {
        let message = "Internal error: Error during planning: no.\nThis issue was likely caused by a bug in DataFusion's code. Please";
        assert_eq!(plain(message), "no");
    }

    #[test]
    fn a_call_says_what_the_function_takes() {
        let theirs = "Internal error: x. No function matches the given name and argument types 'sum(Utf8View)'. You might need \
                      to add explicit type casts.\n\tCandidate functions:\n\tsum(Decimal)\n\tsum(Int64)\n\tsum(Duration)\n\tsum(Interval)";
        let (code, (message, help)) = reworded(theirs).unwrap();
        assert_eq!(code, Code::Types);
        assert_eq!(message, "sum can't take (STRING)");
        assert_eq!(help.unwrap(), "it takes sum(DECIMAL), sum(BIGINT), sum(INTERVAL)");
        let theirs = "No function matches the given name and argument types 'upper(Int64, Int64)'. You might need to add \
                      explicit type casts.\n\tCandidate functions:\n\tupper(String)";
        assert_eq!(reworded(theirs).unwrap().1.0, "upper takes 1 argument, not 2");
    }
}
