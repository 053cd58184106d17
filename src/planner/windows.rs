//! `window(…)` and the window table functions, rewritten before DataFusion plans the query.
//!
//! ```text
//! SELECT window.start, k, count(*) FROM s GROUP BY window(ts, '10 seconds'), k
//! SELECT S AS start, k, count(*) FROM s GROUP BY S, k        with S = levada_window_start(ts, 10 s, 10 s, 0)
//! ```
//!
//! Groups are keyed by the start alone: the end follows from it, and a struct as a key is slow. What the functions mean is in
//! [`super::window_functions`].

use std::ops::ControlFlow;

use sqlparser::ast::{self, Expr, Ident, ObjectName, ObjectNamePart, SelectItem, Spanned, VisitorMut};

use super::sessions;
use super::window_arguments::of_call;
use super::window_functions::COUNTS;
use super::window_shape::{WindowShape, Windows};
use super::window_tables::table_function;
use crate::delta::calendar::Calendar;
use crate::error::{Error, Location, Result, Span};
use crate::parser::{Flow, walk_mut};

/// Rewrites every block of a query, the innermost first.
pub fn rewrite(query: &mut ast::Query) -> Result<()> {
    match walk_mut(query, &mut Blocks) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(*error),
    }
}

struct Blocks;

impl VisitorMut for Blocks {
    type Break = Box<Error>;

    fn post_visit_query(&mut self, query: &mut ast::Query) -> Flow {
        let order_by = query.order_by.take();
        let rewritten = rewrite_set(&mut query.body, &mut query.order_by, order_by);
        rewritten.map_or_else(|error| ControlFlow::Break(Box::new(error)), ControlFlow::Continue)
    }
}

fn rewrite_set(body: &mut ast::SetExpr, slot: &mut Option<ast::OrderBy>, order_by: Option<ast::OrderBy>) -> Result<()> {
    *slot = order_by;
    match body {
        ast::SetExpr::Select(select) => rewrite_block(select, slot.as_mut()),
        ast::SetExpr::SetOperation { left, right, .. } => {
            rewrite_set(left, &mut None, None)?;
            rewrite_set(right, &mut None, None)
        }
        _ => Ok(()),
    }
}

fn rewrite_block(select: &mut ast::Select, order_by: Option<&mut ast::OrderBy>) -> Result<()> {
    for table in &mut select.from {
        table_function(&mut table.relation)?;
        for join in &mut table.joins {
            table_function(&mut join.relation)?;
        }
    }
    let Some(window) = find_window(select)? else { return Ok(()) };
    let ast::GroupByExpr::Expressions(groups, _) = &mut select.group_by else {
        return Err(Error::unsupported("GROUP BY ALL can't be used together with window(…)")
            .help("name the columns to group by"));
    };
    let mut grouped = false;
    let mut named = |group: &Expr| {
        let is = names_window(group, &select.projection, &window);
        grouped |= is;
        is
    };
    name_keys(groups, &window.keys, &mut named);
    sessions::check(&window, grouped, select.selection.as_ref())?;
    let mut replace = Replace { window: &window, depth: 0 };
    for item in &mut select.projection {
        replace_item(item, &mut replace);
    }
    let _ = walk_mut(&mut select.having, &mut replace);
    let _ = walk_mut(&mut select.qualify, &mut replace);
    if let Some(order_by) = order_by {
        let _ = walk_mut(order_by, &mut replace);
    }
    if let Some(selection) = &mut select.selection {
        let _ = walk_mut(selection, &mut replace);
    }
    Ok(())
}

/// The window of one block.
pub(super) struct Window {
    /// The call as written, to find it again.
    pub call: Expr,
    /// What names it in the block.
    pub name: &'static str,
    /// The keys of a group.
    pub keys: Vec<Expr>,
    pub start: Expr,
    pub end: Expr,
}

impl Window {
    pub(super) fn new(written: Expr, time: Expr, windows: Windows) -> Self {
        let (start, end) = match windows {
            Windows::Sliding(WindowShape { size, slide, offset }) => {
                let start = call("levada_window_start", vec![time, number(size), number(slide), number(offset)]);
                (start.clone(), call("levada_window_end", vec![start, number(size)]))
            }
            Windows::Cumulating(WindowShape { size, slide, offset }) => {
                let of = |time| vec![time, number(size), number(slide), number(offset)];
                let end = call("levada_cumulate_end", of(time));
                (call("levada_cumulate_start", of(end.clone())), end)
            }
            Windows::Calendar(calendar) => {
                let start = call("levada_calendar_start", calendar_of(time, calendar));
                (start.clone(), call("levada_calendar_end", calendar_of(start, calendar)))
            }
        };
        let known_by = if matches!(windows, Windows::Cumulating(_)) { &end } else { &start };
        Window { call: written, name: "window", keys: vec![known_by.clone()], start, end }
    }

    fn whole(&self) -> Expr {
        call("named_struct", vec![text("start"), self.start.clone(), text("end"), self.end.clone()])
    }

    /// What an expression says of the window, if it speaks of nothing else.
    fn part(&self, expr: &Expr) -> Option<(Expr, &'static str)> {
        let is_window = |e: &Expr| *e == self.call || matches!(e, Expr::Identifier(i) if is(i, self.name));
        match expr {
            e if is_window(e) => Some((self.whole(), self.name)),
            Expr::CompoundIdentifier(parts) if parts.len() == 2 && is(&parts[0], self.name) => self.field(&parts[1]),
            Expr::CompoundFieldAccess { root, access_chain } if is_window(root) => match access_chain.as_slice() {
                [ast::AccessExpr::Dot(Expr::Identifier(field))] => self.field(field),
                _ => None,
            },
            _ => None,
        }
    }

    fn field(&self, name: &Ident) -> Option<(Expr, &'static str)> {
        match () {
            () if is(name, "start") => Some((self.start.clone(), "start")),
            () if is(name, "end") => Some((self.end.clone(), "end")),
            () => None,
        }
    }
}

/// Puts the window's keys in place of GROUP BY entries that mean it, alone or in a grouping set.
fn name_keys(groups: &mut Vec<Expr>, keys: &[Expr], means_it: &mut dyn FnMut(&Expr) -> bool) {
    for mut group in std::mem::take(groups) {
        match &mut group {
            Expr::GroupingSets(sets) | Expr::Cube(sets) | Expr::Rollup(sets) => {
                sets.iter_mut().for_each(|set| name_keys(set, keys, means_it));
            }
            Expr::Tuple(part) => name_keys(part, keys, means_it),
            other if means_it(other) => {
                groups.extend_from_slice(keys);
                continue;
            }
            _ => {}
        }
        groups.push(group);
    }
}

/// Whether an expression speaks of the window, outside the queries inside it.
pub(super) fn is_part_of(window: &Window, expr: &Expr) -> bool {
    let mut replaced = expr.clone();
    let _ = walk_mut(&mut replaced, &mut Replace { window, depth: 0 });
    replaced != *expr
}

/// Whether a GROUP BY entry means the window: the call, its alias, or its position.
fn names_window(group: &Expr, projection: &[SelectItem], window: &Window) -> bool {
    let is_call = |item: &SelectItem| match item {
        SelectItem::UnnamedExpr(e) | SelectItem::ExprWithAlias { expr: e, .. } => *e == window.call,
        _ => false,
    };
    match group {
        e if *e == window.call => true,
        Expr::Identifier(name) => projection.iter().any(|item| {
            is_call(item) && matches!(item, SelectItem::ExprWithAlias { alias, .. } if alias.value.eq_ignore_ascii_case(&name.value))
        }),
        Expr::Value(v) => match &v.value {
            ast::Value::Number(n, _) => n.parse::<usize>().ok().and_then(|n| projection.get(n.checked_sub(1)?)).is_some_and(is_call),
            _ => false,
        },
        _ => false,
    }
}

fn replace_item(item: &mut SelectItem, replace: &mut Replace) {
    match item {
        SelectItem::UnnamedExpr(expr) => {
            if let Some((new, name)) = replace.window.part(expr) {
                *item = SelectItem::ExprWithAlias { expr: new, alias: Ident::new(name) };
                return;
            }
            let written = expr.to_string();
            let before = expr.clone();
            let _ = walk_mut(expr, replace);
            if *expr != before {
                *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias: Ident::with_quote('"', written) };
            }
        }
        SelectItem::ExprWithAlias { expr, .. } => {
            let _ = walk_mut(expr, replace);
        }
        _ => {}
    }
}

/// Puts the window's parts in place of what names them, in one block and not in the queries inside it.
struct Replace<'a> {
    window: &'a Window,
    depth: usize,
}

impl VisitorMut for Replace<'_> {
    type Break = Box<Error>;

    fn pre_visit_query(&mut self, _query: &mut ast::Query) -> Flow {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &mut ast::Query) -> Flow {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    // Before the children: the time inside the new call must not be looked at again, and it isn't, as it holds no window.
    fn pre_visit_expr(&mut self, expr: &mut Expr) -> Flow {
        if self.depth == 0
            && let Some((new, _)) = self.window.part(expr)
        {
            *expr = new;
        }
        ControlFlow::Continue(())
    }
}

/// The one `window(…)` call of a block.
fn find_window(select: &mut ast::Select) -> Result<Option<Window>> {
    let mut find = Find { calls: Vec::new(), depth: 0 };
    let _ = walk_mut(&mut select.projection, &mut find);
    let _ = walk_mut(&mut select.group_by, &mut find);
    let _ = walk_mut(&mut select.having, &mut find);
    let mut calls = find.calls.into_iter();
    let Some(first) = calls.next() else { return Ok(None) };
    if let Some(other) = calls.find(|other| *other != first) {
        let error = Error::not_yet("two different windows in one SELECT").at(place(&other));
        return Err(error.help("put one of them into a subquery"));
    }
    if is_function(&first, "session_window") {
        return Ok(Some(sessions::of_call(first)?));
    }
    let (time, windows) = of_call(&first)?;
    Ok(Some(Window::new(first, time, windows)))
}

struct Find {
    calls: Vec<Expr>,
    depth: usize,
}

impl VisitorMut for Find {
    type Break = Box<Error>;

    fn pre_visit_query(&mut self, _query: &mut ast::Query) -> Flow {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &mut ast::Query) -> Flow {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> Flow {
        if self.depth == 0 && (is_function(expr, "window") || is_function(expr, "session_window")) {
            self.calls.push(expr.clone());
        }
        ControlFlow::Continue(())
    }
}

/// A plain name in FROM.
pub fn table(parts: Vec<Ident>) -> ast::TableFactor {
    ast::TableFactor::Table {
        name: ObjectName(parts.into_iter().map(ObjectNamePart::Identifier).collect()),
        alias: None,
        args: None,
        with_hints: Vec::new(),
        version: None,
        with_ordinality: false,
        partitions: Vec::new(),
        json_path: None,
        sample: None,
        index_hints: Vec::new(),
    }
}

fn is_function(expr: &Expr, name: &str) -> bool {
    matches!(expr, Expr::Function(f) if f.over.is_none() && f.name.0.len() == 1 && f.name.to_string().eq_ignore_ascii_case(name))
}

fn is(ident: &Ident, name: &str) -> bool {
    ident.value.eq_ignore_ascii_case(name)
}

/// A function call.
pub fn call(name: &str, args: Vec<Expr>) -> Expr {
    let args = args.into_iter().map(|e| ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(e))).collect();
    Expr::Function(ast::Function {
        name: ObjectName(vec![ObjectNamePart::Identifier(Ident::new(name))]),
        uses_odbc_syntax: false,
        parameters: ast::FunctionArguments::None,
        args: ast::FunctionArguments::List(ast::FunctionArgumentList {
            duplicate_treatment: None,
            args,
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

/// A whole number.
pub fn number(n: i64) -> Expr {
    let value = |n: String| Expr::Value(ast::Value::Number(n, false).with_empty_span());
    if n < 0 {
        Expr::UnaryOp { op: ast::UnaryOperator::Minus, expr: Box::new(value(n.unsigned_abs().to_string())) }
    } else {
        value(n.to_string())
    }
}

/// What the functions of calendar windows take.
fn calendar_of(time: Expr, calendar: Calendar) -> Vec<Expr> {
    let Calendar { each, count, stretches, months, micros, zone } = calendar;
    let name = COUNTS.iter().find(|(known, _)| *known == count).map_or("", |(_, name)| name);
    let mut args = vec![time, number(each), text(name), number(months), number(micros), text(&zone.to_string())];
    args.extend((stretches > 1).then(|| number(stretches)));
    args
}

fn text(s: &str) -> Expr {
    Expr::Value(ast::Value::SingleQuotedString(s.to_string()).with_empty_span())
}

/// Where something stands in the SQL, if that is known.
pub fn place(of: &impl Spanned) -> Option<Span> {
    place_of(of.span())
}

pub(super) fn place_of(span: sqlparser::tokenizer::Span) -> Option<Span> {
    if span.start.line == 0 {
        return None;
    }
    let location = |l: sqlparser::tokenizer::Location| Location { line: l.line, column: l.column };
    Some(Span { start: location(span.start), end: location(span.end) })
}
