//! `FROM TUMBLE(…)`, HOP, CUMULATE and SESSION → a subquery with the columns `window_start` and `window_end`.
//!
//! ```text
//! FROM TUMBLE(s, ts, '10 seconds') AS x
//! FROM (SELECT *, S AS window_start, E AS window_end FROM s) AS x
//! ```

use sqlparser::ast::{self, Expr, ObjectName, SelectItem};

use super::sessions;
use super::window_arguments::{Lengths, argument, cumulating};
use super::windows::{Window, place, table};
use crate::error::{Error, Result, Span};
use crate::parser::PARTITION_BY_ARGUMENT;

/// The functions and their arguments.
const FUNCTIONS: [(&str, &[&str]); 4] = [
    ("tumble", &["data", "timecol", "size", "offset", "time_zone"]),
    ("hop", &["data", "timecol", "slide", "size", "offset", "time_zone"]),
    ("cumulate", &["data", "timecol", "step", "size", "offset"]),
    ("session", &["data", "timecol", "gap", PARTITION_BY_ARGUMENT]),
];

/// Rewrites a table function in FROM, if it is one of them.
pub(super) fn table_function(factor: &mut ast::TableFactor) -> Result<()> {
    if let ast::TableFactor::NestedJoin { table_with_joins, .. } = factor {
        table_function(&mut table_with_joins.relation)?;
        return table_with_joins.joins.iter_mut().try_for_each(|join| table_function(&mut join.relation));
    }
    let (name, args, alias) = match factor {
        ast::TableFactor::Table { name, args: Some(args), alias, .. } => {
            (name.clone(), args.args.clone(), alias.clone())
        }
        ast::TableFactor::Function { name, args, alias, .. } => (name.clone(), args.clone(), alias.clone()),
        _ => return Ok(()),
    };
    let written = name.to_string().to_ascii_lowercase();
    let Some((function, names)) = FUNCTIONS.iter().find(|(function, _)| *function == written) else { return Ok(()) };
    let at = place(&name);
    let mut given = Given { values: vec![None; names.len()], names, name, at };
    for (position, arg) in args.into_iter().enumerate() {
        let (position, expr) = argument(arg, position, names, at)?;
        given.values[position] = Some(expr);
    }
    let (data, time) = (given.want("data")?, given.want("timecol")?);
    let window = match *function {
        "session" => sessions::of_table(time, given.want("gap")?, given.take(PARTITION_BY_ARGUMENT), at)?,
        "cumulate" => {
            let windows = cumulating(given.want("step")?, given.want("size")?, given.take("offset"), at)?;
            Window::new(time.clone(), time, windows)
        }
        function => {
            let slide = if function == "hop" { Some(given.want("slide")?) } else { None };
            let size = given.want("size")?;
            let lengths = Lengths { size, slide, offset: given.take("offset"), time_zone: given.take("time_zone") };
            Window::new(time.clone(), time, lengths.windows(at)?)
        }
    };
    *factor = derived(data, window, alias, at)?;
    Ok(())
}

/// What a call has given, by the names of its arguments.
struct Given<'a> {
    values: Vec<Option<Expr>>,
    names: &'a [&'a str],
    name: ObjectName,
    at: Option<Span>,
}

impl Given<'_> {
    fn take(&mut self, name: &str) -> Option<Expr> {
        let position = self.names.iter().position(|known| *known == name)?;
        self.values[position].take()
    }

    fn want(&mut self, name: &str) -> Result<Expr> {
        self.take(name).ok_or_else(|| {
            let error = Error::invalid(format!("{} wants its argument {name}", self.name)).at(self.at);
            error.help(format!("{}({})", self.name, self.names.join(", ")))
        })
    }
}

/// `(SELECT *, S AS window_start, E AS window_end FROM data) AS alias`
fn derived(data: Expr, window: Window, alias: Option<ast::TableAlias>, at: Option<Span>) -> Result<ast::TableFactor> {
    let mut query = super::parse_query("SELECT *, 1 AS window_start, 2 AS window_end FROM data")?;
    let (inner, own_name) = match data {
        Expr::Subquery(subquery) => {
            (ast::TableFactor::Derived { lateral: false, subquery, alias: None, sample: None }, None)
        }
        Expr::Identifier(name) => (table(vec![name.clone()]), Some(name)),
        Expr::CompoundIdentifier(parts) => (table(parts.clone()), parts.last().cloned()),
        other => return Err(Error::invalid(format!("expected a stream or table, found {other}")).at(at)),
    };
    if let ast::SetExpr::Select(select) = query.body.as_mut() {
        select.from[0].relation = inner;
        for (item, new) in select.projection.iter_mut().skip(1).zip([window.start, window.end]) {
            if let SelectItem::ExprWithAlias { expr, .. } = item {
                *expr = new;
            }
        }
    }
    let named = |name| ast::TableAlias { explicit: true, name, columns: Vec::new(), at: None };
    let alias = alias.or_else(|| own_name.map(named));
    Ok(ast::TableFactor::Derived { lateral: false, subquery: Box::new(query), alias, sample: None })
}
