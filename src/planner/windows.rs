//! `window(…)` and the window table functions, rewritten before DataFusion plans the query.
//!
//! ```text
//! SELECT window.start, k, count(*) FROM s GROUP BY window(ts, '10 seconds'), k
//! SELECT S AS start, k, count(*) FROM s GROUP BY S, k        with S = levada_window_start(ts, 10 s, 10 s, 0)
//! ```
//!
//! Groups are keyed by the start alone: the end follows from it, and a struct as a key is slow.

use std::ops::ControlFlow;

use sqlparser::ast::{self, Expr, Ident, ObjectName, ObjectNamePart, SelectItem, Spanned, VisitorMut};

use super::sessions;
use super::window_functions::WindowShape;
use crate::error::{Error, Location, Result, Span};
use crate::parser::{Flow, PARTITION_BY_ARGUMENT, walk_mut};

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
    fn new(written: Expr, time: Expr, shape: WindowShape) -> Self {
        let WindowShape { size, slide, offset } = shape;
        let start = call("levada_window_start", vec![time, number(size), number(slide), number(offset)]);
        let end = call("levada_window_end", vec![start.clone(), number(size)]);
        Window { call: written, name: "window", keys: vec![start.clone()], start, end }
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
    let (time, lengths) = arguments(&first, &["size", "slide", "offset"])?;
    let shape = shape(place(&first), &lengths)?;
    Ok(Some(Window::new(first, time, shape)))
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

/// `FROM TUMBLE(s, ts, size [, offset])` and its kin → a subquery with the columns `window_start` and `window_end`.
fn table_function(factor: &mut ast::TableFactor) -> Result<()> {
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
    let at = place(&name);
    let names: &[&str] = match name.to_string().to_ascii_lowercase().as_str() {
        "tumble" => &["data", "timecol", "size", "offset"],
        "hop" => &["data", "timecol", "slide", "size", "offset"],
        "cumulate" => return Err(Error::not_yet("CUMULATE windows").at(at)),
        "session" => &["data", "timecol", "gap", PARTITION_BY_ARGUMENT],
        _ => return Ok(()),
    };
    let mut given: Vec<Option<Expr>> = vec![None; names.len()];
    for (position, arg) in args.into_iter().enumerate() {
        let (position, expr) = argument(arg, position, names, at)?;
        given[position] = Some(expr);
    }
    let missing = |n: usize| {
        let error = Error::invalid(format!("{name} wants its argument {}", names[n])).at(at);
        error.help(format!("{name}({})", names.join(", ")))
    };
    let data = given[0].take().ok_or_else(|| missing(0))?;
    let time = given[1].take().ok_or_else(|| missing(1))?;
    if names[2] == "gap" {
        let gap = given[2].take().ok_or_else(|| missing(2))?;
        *factor = derived(data, sessions::of_table(time, gap, given[3].take(), at)?, alias, at)?;
        return Ok(());
    }
    let length = |n: usize| given[n].as_ref().map(micros).transpose();
    let (size, slide, offset) = match names.len() {
        4 => {
            let size = length(2)?.ok_or_else(|| missing(2))?;
            (size, size, length(3)?.unwrap_or(0))
        }
        _ => (length(3)?.ok_or_else(|| missing(3))?, length(2)?.ok_or_else(|| missing(2))?, length(4)?.unwrap_or(0)),
    };
    let shape = check(at, WindowShape { size, slide, offset })?;
    *factor = derived(data, Window::new(time.clone(), time, shape), alias, at)?;
    Ok(())
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

/// The time and the lengths of `window(ts, size, slide, offset)`, by position or by name.
fn arguments(expr: &Expr, names: &[&str]) -> Result<(Expr, Vec<Option<i64>>)> {
    let at = place(expr);
    let Expr::Function(ast::Function { args: ast::FunctionArguments::List(list), .. }) = expr else {
        return Err(Error::invalid("window wants a time column and a size").at(at).help("window(ts, '10 seconds')"));
    };
    let all: Vec<&str> = ["time"].iter().chain(names).copied().collect();
    let (mut time, mut lengths) = (None, vec![None; names.len()]);
    for (position, arg) in list.args.iter().cloned().enumerate() {
        match argument(arg, position, &all, at)? {
            (0, expr) => time = Some(expr),
            (n, expr) => lengths[n - 1] = Some(micros(&expr)?),
        }
    }
    let time =
        time.ok_or_else(|| Error::invalid("window wants a time column first").at(at).help("window(ts, '10 seconds')"))?;
    Ok((time, lengths))
}

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
            if wanted == "time_zone" {
                return Err(Error::not_yet("calendar windows in a time zone").at(place_of(name.span)));
            }
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

fn shape(at: Option<Span>, lengths: &[Option<i64>]) -> Result<WindowShape> {
    let Some(size) = lengths[0] else {
        return Err(Error::invalid("window wants a size").at(at).help("window(ts, '10 seconds')"));
    };
    check(at, WindowShape { size, slide: lengths[1].unwrap_or(size), offset: lengths[2].unwrap_or(0) })
}

/// Rule B4.
fn check(at: Option<Span>, shape: WindowShape) -> Result<WindowShape> {
    let WindowShape { size, slide, offset } = shape;
    let wrong = match () {
        () if size <= 0 => "a window's size must be greater than zero",
        () if slide <= 0 => "a window's slide must be greater than zero",
        () if slide > size => "a window's slide must not be greater than its size: rows between windows would be lost",
        () if offset.abs() >= slide => "a window's offset must be smaller than its slide",
        () => return Ok(shape),
    };
    Err(Error::invalid(wrong).at(at))
}

/// The microseconds of a constant length: `'10 seconds'`, `INTERVAL '10' SECOND`, `INTERVAL 10 SECONDS`.
pub(super) fn micros(expr: &Expr) -> Result<i64> {
    let text = match expr {
        Expr::UnaryOp { op: ast::UnaryOperator::Minus, expr } => return Ok(-micros(expr)?),
        Expr::Value(v) => literal_text(&v.value),
        Expr::Interval(interval) => match interval.value.as_ref() {
            Expr::Value(v) => literal_text(&v.value).map(|value| match &interval.leading_field {
                Some(unit) => format!("{value} {}", unit.to_string().to_ascii_lowercase()),
                None => value,
            }),
            _ => None,
        },
        _ => None,
    };
    let at = place(expr);
    let Some(text) = text else {
        return Err(Error::invalid("a window's length must be a constant interval")
            .at(at)
            .help("'10 seconds' or INTERVAL '10' SECOND"));
    };
    let lower = text.to_ascii_lowercase();
    if lower.contains("month") || lower.contains("year") {
        return Err(Error::not_yet(format!("calendar windows ('{text}')")).at(at));
    }
    crate::options::parse_interval(&text).ok_or_else(|| {
        Error::invalid(format!("'{text}' is not an interval"))
            .at(at)
            .help("such as '10 seconds' or '1 hour 30 minutes'")
    })
}

fn literal_text(value: &ast::Value) -> Option<String> {
    match value {
        ast::Value::SingleQuotedString(s) | ast::Value::Number(s, _) => Some(s.clone()),
        _ => None,
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
