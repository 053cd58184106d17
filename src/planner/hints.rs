//! What a planning error that knows no place can still be told: where the function stands that it speaks of, and which
//! known function was meant.

use std::ops::ControlFlow;

use datafusion::execution::SessionState;
use sqlparser::ast::helpers::attached_token::AttachedToken;
use sqlparser::ast::{
    Expr, Ident, ObjectName, ObjectNamePart, Select, SelectItem, TableFactor, Visit, Visitor, VisitorMut,
};

pub use super::windows::place;
use super::windows::place_of;
use crate::error::{Error, Span, closest};
use crate::parser::{Flow, walk, walk_mut};

/// Functions that the planner rewrites: nobody registers them.
const WINDOWS: &[&str] = &["window", "session_window", "window_time"];
const WINDOW_TABLES: &[&str] = &["tumble", "hop", "cumulate", "session"];

const NO_FUNCTION: &str = "there is no function ";
const NO_TABLE_FUNCTION: &str = "there is no table function ";
const AGGREGATE_IN_WHERE: &str = "an aggregate can't stand in WHERE";
const WINDOW_IN_WHERE: &str = "a window function can't stand here";
const CALLED_TWICE: &str = "two columns of the result are called ";
const NO_QUERY: &str = "there is no query ";
const NO_PART: &str = "a time has no part ";
const NO_CONDITION: &str = "a condition is true or false";
const NO_CAST: &str = " can't be cast to ";
const NO_ONE_ROW: &str = "a subquery that stands for a value";
const NO_LIKE: &str = "LIKE compares texts";
/// What is said of operators between types that don't go together.
const OPERANDS: &[&str] = &[" can't be compared", " can't be computed", " can't be joined to a text"];

/// The error with its place in `node`, and the closest known function, where they can be found.
pub fn better(error: Error, state: &SessionState, node: &impl Visit) -> Error {
    let text = error.to_string();
    let error = if let Some(name) = text.strip_prefix(NO_FUNCTION) {
        unknown_function(error, state, name)
    } else if let Some(name) = text.strip_prefix(NO_TABLE_FUNCTION) {
        let known = state.table_functions().keys().map(String::as_str).chain(WINDOW_TABLES.iter().copied());
        match closest(name, known) {
            Some(name) => error.help(format!("did you mean {name}?")),
            None => error.help("SHOW FUNCTIONS lists them"),
        }
    } else {
        error
    };
    if error.span().is_some() || !matches!(error, Error::InvalidInput { .. } | Error::Unsupported { .. }) {
        return error;
    }
    let mut calls = Calls::default();
    _ = walk(node, &mut calls);
    let found = |all: &[(String, Option<Span>)], is: &dyn Fn(&str) -> bool| {
        all.iter().find(|(name, _)| is(name)).and_then(|(_, at)| *at)
    };
    // Where there are several, nothing says which of them it is.
    let only = |all: &[(String, Option<Span>)], is: &dyn Fn(&str) -> bool| {
        let mut places = all.iter().filter(|(name, _)| is(name));
        places.next().filter(|_| places.next().is_none()).and_then(|(_, at)| *at)
    };
    if text.starts_with(AGGREGATE_IN_WHERE) {
        return error.at(found(&calls.in_where, &|name| state.aggregate_functions().contains_key(name)));
    }
    if text.starts_with(WINDOW_IN_WHERE) {
        return error.at(found(&calls.in_where, &|name| state.window_functions().contains_key(name)));
    }
    if let Some(name) = text.strip_prefix(CALLED_TWICE) {
        let named = calls.aliases.iter().filter(|(alias, _)| alias == name).nth(1).and_then(|(_, at)| *at);
        return error.at(named.or(calls.twice));
    }
    if text.starts_with(NO_QUERY) {
        return error.at(found(&calls.all, &|name| name == "bad_records" || name == "late_rows"));
    }
    if OPERANDS.iter().any(|end| text.ends_with(end)) {
        return error.at(only(&calls.operators, &|sign| text.split(' ').any(|word| word == sign)));
    }
    if text.starts_with(NO_PART) {
        return error.at(found(&calls.all, &|name| name == "extract" || name == "date_part"));
    }
    if text.starts_with(NO_CONDITION) {
        return error.at(only(&calls.operators, &|sign| sign == "WHERE"));
    }
    if text.contains(NO_CAST) {
        return error.at(only(&calls.operators, &|sign| sign == "CAST"));
    }
    if text.starts_with(NO_ONE_ROW) {
        return error.at(only(&calls.operators, &|sign| sign == "SUBQUERY"));
    }
    if text.starts_with(NO_LIKE) {
        return error.at(only(&calls.operators, &|sign| sign == "LIKE"));
    }
    let name = text.strip_prefix(NO_TABLE_FUNCTION).unwrap_or(&text);
    let word: String = name.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    error.at(found(&calls.all, &|name| name == word.to_lowercase()))
}

fn unknown_function(error: Error, state: &SessionState, name: &str) -> Error {
    if state.window_functions().contains_key(name) {
        return Error::invalid(format!("{name} is a window function"))
            .at(error.span())
            .help(format!("{name}(…) OVER (PARTITION BY … ORDER BY …)"));
    }
    if state.table_functions().contains_key(name) || WINDOW_TABLES.contains(&name) {
        return Error::invalid(format!("{name} makes a table")).at(error.span()).help(format!("FROM {name}(…)"));
    }
    let known = state.scalar_functions().keys().chain(state.aggregate_functions().keys());
    let known = known.chain(state.window_functions().keys()).chain(state.table_functions().keys()).map(String::as_str);
    match closest(name, known.chain(WINDOWS.iter().copied()).chain(WINDOW_TABLES.iter().copied())) {
        Some(name) => error.help(format!("did you mean {name}?")),
        None => error.help("SHOW FUNCTIONS lists them"),
    }
}

/// The calls in a statement, with their names in lower case; its operators, and the names it gives.
#[derive(Default)]
struct Calls {
    all: Vec<(String, Option<Span>)>,
    in_where: Vec<(String, Option<Span>)>,
    operators: Vec<(String, Option<Span>)>,
    aliases: Vec<(String, Option<Span>)>,
    /// Without a name, and called as one before it in its SELECT.
    twice: Option<Span>,
}

/// What a column is called that an expression makes: casts aside, the expression.
fn called(expr: &Expr) -> String {
    let mut name = expr.clone();
    _ = walk_mut(&mut name, &mut Casts);
    name.to_string().to_lowercase()
}

struct Casts;

impl VisitorMut for Casts {
    type Break = Box<Error>;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> Flow {
        match expr {
            Expr::Cast { expr: inner, .. } => *expr = std::mem::replace(inner, Expr::Wildcard(AttachedToken::empty())),
            Expr::TypedString(typed) => *expr = Expr::Value(typed.value.clone()),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

fn last_name(name: &ObjectName) -> Option<&Ident> {
    match name.0.last() {
        Some(ObjectNamePart::Identifier(ident)) => Some(ident),
        _ => None,
    }
}

impl Visitor for Calls {
    type Break = Box<Error>;

    fn pre_visit_expr(&mut self, expr: &Expr) -> Flow {
        match expr {
            Expr::Function(call) => {
                if let Some(ident) = last_name(&call.name) {
                    self.all.push((ident.value.to_lowercase(), place_of(ident.span)));
                }
            }
            Expr::Extract { .. } => self.all.push(("extract".into(), place(expr))),
            Expr::Substring { .. } => self.all.push(("substr".into(), place(expr))),
            Expr::BinaryOp { op, .. } => self.operators.push((op.to_string(), place(expr))),
            Expr::Between { .. } => self.operators.extend([">=", "<="].map(|sign| (sign.into(), place(expr)))),
            Expr::Subquery(_) => self.operators.push(("SUBQUERY".into(), place(expr))),
            Expr::Cast { .. } => self.operators.push(("CAST".into(), place(expr))),
            Expr::Like { .. } | Expr::ILike { .. } => self.operators.push(("LIKE".into(), place(expr))),
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> Flow {
        let called = match table {
            TableFactor::Table { name, args: Some(_), .. } | TableFactor::Function { name, .. } => last_name(name),
            _ => None,
        };
        if let Some(ident) = called {
            self.all.push((ident.value.to_lowercase(), place_of(ident.span)));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> Flow {
        let mut seen = Vec::new();
        for item in &select.projection {
            match item {
                SelectItem::ExprWithAlias { alias, .. } => {
                    self.aliases.push((alias.value.clone(), place_of(alias.span)));
                }
                SelectItem::UnnamedExpr(expr) => {
                    let name = called(expr);
                    if seen.contains(&name) {
                        self.twice = self.twice.or(place(expr));
                    }
                    seen.push(name);
                }
                _ => {}
            }
        }
        if let Some(condition) = &select.selection {
            self.operators.push(("WHERE".into(), place(condition)));
            let mut inside = Calls::default();
            _ = walk(condition, &mut inside);
            self.in_where.extend(inside.all);
        }
        ControlFlow::Continue(())
    }
}
