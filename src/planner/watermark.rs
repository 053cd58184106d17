//! Watermarks in a plan: one node for all three spellings.
//!
//! The node stands directly above what its clause names and passes every row on; while a query runs it sees the
//! event times. No filter passes it, as a row that is filtered out moves the watermark too. In a bounded run it
//! means nothing and is taken out.
//!
//! A clause in a query travels through DataFusion's planner as a marked column:
//! `FROM s … WITH WATERMARK ts DELAY '10 s'` is planned as
//! `FROM (SELECT * REPLACE (levada_watermark(ts, 10000000) AS ts) FROM s) AS s`, and the mark is then made a node.

use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{Column, DFSchemaRef};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::{Expr, Extension, LogicalPlan, Projection, UserDefinedLogicalNodeCore};
use sqlparser::ast::{self, Ident, VisitorMut};

use super::window_functions::{Which, window_call};
use super::windows::{call, number};
use crate::error::{Code, Error, Location, Result, closest};
use crate::parser::{Flow, Interval, Name, WatermarkClause, walk_mut};

/// What a watermark clause says, in microseconds.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct WatermarkSpec {
    pub delay: i64,
    pub idle_after: Option<i64>,
    pub max_future_skew: Option<i64>,
}

/// Sees the event times of everything that passes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatermarkNode {
    pub input: LogicalPlan,
    pub column: Column,
    pub spec: WatermarkSpec,
}

// Neither looks at the input: hashing and ordering a plan would compile all of its types here once more.
impl Hash for WatermarkNode {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.column, &self.spec).hash(state);
    }
}

impl PartialOrd for WatermarkNode {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        (self == other).then_some(std::cmp::Ordering::Equal)
    }
}

impl WatermarkNode {
    /// The node as a plan.
    pub fn plan(input: LogicalPlan, column: Column, spec: WatermarkSpec) -> LogicalPlan {
        LogicalPlan::Extension(Extension { node: Arc::new(WatermarkNode { input, column, spec }) })
    }

    /// The node of a plan that is one.
    pub fn of(plan: &LogicalPlan) -> Option<&WatermarkNode> {
        let LogicalPlan::Extension(extension) = plan else { return None };
        extension.node.as_any().downcast_ref::<WatermarkNode>()
    }
}

impl UserDefinedLogicalNodeCore for WatermarkNode {
    fn name(&self) -> &str {
        "Watermark"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        self.input.schema()
    }

    fn expressions(&self) -> Vec<Expr> {
        vec![Expr::Column(self.column.clone())]
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "Watermark: {} delay {}", self.column, super::interval_text(self.spec.delay))
    }

    fn with_exprs_and_inputs(&self, exprs: Vec<Expr>, mut inputs: Vec<LogicalPlan>) -> DfResult<Self> {
        match (exprs.into_iter().next(), inputs.pop()) {
            (Some(Expr::Column(column)), Some(input)) => Ok(WatermarkNode { input, column, spec: self.spec.clone() }),
            _ => datafusion::common::internal_err!("a watermark has one column and one input"),
        }
    }

    fn necessary_children_exprs(&self, output_columns: &[usize]) -> Option<Vec<Vec<usize>>> {
        let mut columns = output_columns.to_vec();
        columns.push(self.input.schema().maybe_index_of_column(&self.column)?);
        columns.sort_unstable();
        columns.dedup();
        Some(vec![columns])
    }
}

/// The microseconds of a watermark's delay; a month counts as 31 days (rule W8).
pub fn delay_micros(delay: Interval) -> i64 {
    delay.micros.saturating_add(i64::from(delay.months).saturating_mul(31 * 86_400_000_000))
}

/// Marks the columns that the query's own watermark clauses name. `streams` are the columns of what FROM may name.
pub fn mark(query: &mut ast::Query, clauses: &[WatermarkClause], streams: &HashMap<String, SchemaRef>) -> Result<()> {
    if clauses.is_empty() {
        return Ok(());
    }
    let mut blocks = Blocks { clauses, streams, found: vec![false; clauses.len()] };
    if let ControlFlow::Break(error) = walk_mut(query, &mut blocks) {
        return Err(*error);
    }
    match blocks.found.iter().position(|found| !found) {
        Some(lost) => Err(Error::internal("a watermark clause belongs to no SELECT").at(Some(clauses[lost].span))),
        None => Ok(()),
    }
}

struct Blocks<'a> {
    clauses: &'a [WatermarkClause],
    streams: &'a HashMap<String, SchemaRef>,
    found: Vec<bool>,
}

impl VisitorMut for Blocks<'_> {
    type Break = Box<Error>;

    fn post_visit_query(&mut self, query: &mut ast::Query) -> Flow {
        self.set(&mut query.body).map_or_else(|error| ControlFlow::Break(Box::new(error)), ControlFlow::Continue)
    }
}

impl Blocks<'_> {
    fn set(&mut self, body: &mut ast::SetExpr) -> Result<()> {
        match body {
            ast::SetExpr::Select(select) => self.block(select),
            ast::SetExpr::SetOperation { left, right, .. } => {
                self.set(left)?;
                self.set(right)
            }
            _ => Ok(()),
        }
    }

    fn block(&mut self, select: &mut ast::Select) -> Result<()> {
        let start = select.select_token.0.span.start;
        let at = Location { line: start.line, column: start.column };
        for (n, clause) in self.clauses.iter().enumerate() {
            if clause.select == at && !self.found[n] {
                self.found[n] = true;
                let mut factors: Vec<&mut ast::TableFactor> = Vec::new();
                for table in &mut select.from {
                    factors.push(&mut table.relation);
                    factors.extend(table.joins.iter_mut().map(|j| &mut j.relation));
                }
                mark_factor(factors, clause, self.streams)?;
            }
        }
        Ok(())
    }
}

fn mark_factor(
    mut factors: Vec<&mut ast::TableFactor>,
    clause: &WatermarkClause,
    streams: &HashMap<String, SchemaRef>,
) -> Result<()> {
    let Some(column) = clause.column.last() else {
        return Err(Error::invalid_at(clause.span, "a watermark wants a column"));
    };
    let at = match (&clause.table, clause.column.as_slice()) {
        (Some(table), _) => factors.iter().position(|f| place_of(f) == Some(*table)),
        (None, [table, _]) => factors.iter().position(|f| name_of(f).is_some_and(|n| n == table.value)),
        (None, _) if factors.len() == 1 => Some(0),
        (None, _) => {
            let has = |f: &ast::TableFactor| {
                relation_of(f).and_then(|n| streams.get(&n)).is_some_and(|s| s.field_with_name(&column.value).is_ok())
            };
            let with: Vec<usize> = (0..factors.len()).filter(|n| has(factors[*n])).collect();
            if with.len() > 1 {
                return Err(Error::invalid_at(
                    column.span,
                    format!("column {} is in more than one of the streams", column.value),
                )
                .help("say which, as in WITH WATERMARK a.ts DELAY …"));
            }
            with.first().copied()
        }
    };
    let Some(at) = at else {
        return Err(Error::invalid_at(clause.span, format!("no stream of this SELECT has a column {}", column.value)));
    };
    if let Some(schema) = relation_of(factors[at]).and_then(|n| streams.get(&n)) {
        check_column(column, schema)?;
    }
    wrap(factors.swap_remove(at), column, delay_micros(clause.delay))
}

fn check_column(column: &Name, schema: &SchemaRef) -> Result<()> {
    let names: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
    if names.contains(&column.value.as_str()) {
        return Ok(());
    }
    let error = Error::invalid_at(column.span, format!("column {} not found", column.value)).coded(Code::UnknownColumn);
    Err(match closest(&column.value, names.iter().copied()) {
        Some(name) => error.help(format!("did you mean {name}?")),
        None => error.help(format!("columns: {}", names.join(", "))),
    })
}

/// `factor` → `(SELECT * REPLACE (levada_watermark(ts, delay) AS ts) FROM factor) AS name`
fn wrap(factor: &mut ast::TableFactor, column: &Name, delay: i64) -> Result<()> {
    let mut query = super::parse_query("SELECT * REPLACE (1 AS ts) FROM data")?;
    let ident = Ident::with_quote('"', column.value.clone());
    let marked = call("levada_watermark", vec![ast::Expr::Identifier(ident.clone()), number(delay)]);
    // A window table function keeps its place: the mark goes around the stream inside it.
    if let Some(data) = data_argument(factor) {
        let inner = match std::mem::replace(data, marked.clone()) {
            ast::Expr::Subquery(query) => {
                ast::TableFactor::Derived { lateral: false, subquery: query, alias: None, sample: None }
            }
            ast::Expr::Identifier(name) => super::windows::table(vec![name]),
            ast::Expr::CompoundIdentifier(parts) => super::windows::table(parts),
            other => return Err(Error::invalid(format!("expected a stream or table, found {other}"))),
        };
        set_parts(&mut query, marked, ident, inner);
        *data = ast::Expr::Subquery(Box::new(query));
        return Ok(());
    }
    let alias = match factor {
        ast::TableFactor::Table { alias, .. } | ast::TableFactor::Derived { alias, .. } => alias.take(),
        _ => None,
    };
    let name = name_of(factor);
    let alias = alias.or_else(|| {
        let name = Ident::with_quote('"', name?);
        Some(ast::TableAlias { explicit: true, name, columns: Vec::new(), at: None })
    });
    let inner = factor.clone();
    set_parts(&mut query, marked, ident, inner);
    *factor = ast::TableFactor::Derived { lateral: false, subquery: Box::new(query), alias, sample: None };
    Ok(())
}

fn set_parts(query: &mut ast::Query, marked: ast::Expr, column: Ident, inner: ast::TableFactor) {
    let ast::SetExpr::Select(select) = query.body.as_mut() else { return };
    select.from[0].relation = inner;
    if let Some(ast::SelectItem::Wildcard(options)) = select.projection.first_mut()
        && let Some(element) = options.opt_replace.as_mut().and_then(|r| r.items.first_mut())
    {
        element.expr = marked;
        element.column_name = column;
    }
}

fn data_argument(factor: &mut ast::TableFactor) -> Option<&mut ast::Expr> {
    let args = match factor {
        ast::TableFactor::Table { args: Some(args), .. } => &mut args.args,
        ast::TableFactor::Function { args, .. } => args,
        _ => return None,
    };
    match args.first_mut()? {
        ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(e))
        | ast::FunctionArg::Named { arg: ast::FunctionArgExpr::Expr(e), .. } => Some(e),
        _ => None,
    }
}

/// The name that columns of this part of FROM are qualified with.
fn name_of(factor: &ast::TableFactor) -> Option<String> {
    match factor {
        ast::TableFactor::Table { alias: Some(alias), .. }
        | ast::TableFactor::Derived { alias: Some(alias), .. }
        | ast::TableFactor::Function { alias: Some(alias), .. } => Some(fold(&alias.name)),
        ast::TableFactor::Table { .. } => relation_of(factor),
        _ => None,
    }
}

/// The stream or table that this part of FROM names, inside a window table function too.
fn relation_of(factor: &ast::TableFactor) -> Option<String> {
    match factor {
        ast::TableFactor::Table { name, args: None, .. } => name.0.last().and_then(|p| p.as_ident()).map(fold),
        ast::TableFactor::Table { args: Some(args), .. } => args.args.first().and_then(relation_argument),
        ast::TableFactor::Function { args, .. } => args.first().and_then(relation_argument),
        _ => None,
    }
}

fn relation_argument(arg: &ast::FunctionArg) -> Option<String> {
    match arg {
        ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(ast::Expr::Identifier(i)))
        | ast::FunctionArg::Named { arg: ast::FunctionArgExpr::Expr(ast::Expr::Identifier(i)), .. } => Some(fold(i)),
        _ => None,
    }
}

fn fold(ident: &Ident) -> String {
    if ident.quote_style.is_some() { ident.value.clone() } else { ident.value.to_lowercase() }
}

fn place_of(factor: &ast::TableFactor) -> Option<Location> {
    let span = match factor {
        ast::TableFactor::Table { name, .. } | ast::TableFactor::Function { name, .. } => super::windows::place(name),
        other => super::windows::place(other),
    };
    span.map(|s| s.start)
}

/// Makes every mark a node.
pub fn unmark(plan: LogicalPlan) -> DfResult<LogicalPlan> {
    let made = plan.transform_up_with_subqueries(|node| {
        let LogicalPlan::Projection(projection) = &node else { return Ok(Transformed::no(node)) };
        let Some(at) = projection.expr.iter().position(|e| marked(e).is_some()) else {
            return Ok(Transformed::no(node));
        };
        let Some((inner, delay)) = marked(&projection.expr[at]) else { return Ok(Transformed::no(node)) };
        let mut exprs = projection.expr.clone();
        let (qualifier, name) = exprs[at].qualified_name();
        exprs[at] = match &inner {
            Expr::Column(c) if c.relation == qualifier && c.name == name => inner.clone(),
            _ => inner.clone().alias_qualified(qualifier.clone(), name.clone()),
        };
        let plan = LogicalPlan::Projection(Projection::try_new(exprs, projection.input.clone())?);
        let (qualifier, field) = plan.schema().qualified_field(at);
        let column = Column::new(qualifier.cloned(), field.name());
        let spec = WatermarkSpec { delay, idle_after: None, max_future_skew: None };
        Ok(Transformed::yes(WatermarkNode::plan(plan, column, spec)))
    })?;
    Ok(made.data)
}

fn marked(expr: &Expr) -> Option<(Expr, i64)> {
    match expr {
        Expr::Alias(alias) => marked(&alias.expr),
        other => {
            let call = window_call(other)?;
            (call.which == Which::Watermark).then(|| (call.time.clone(), call.length().unwrap_or(0)))
        }
    }
}

/// Takes the watermarks out: a bounded run has none.
pub fn remove(plan: LogicalPlan) -> DfResult<LogicalPlan> {
    let removed = plan.transform_up_with_subqueries(|node| match WatermarkNode::of(&node) {
        Some(watermark) => Ok(Transformed::yes(watermark.input.clone())),
        None => Ok(Transformed::no(node)),
    })?;
    Ok(removed.data)
}

/// Whether two watermarks stand on one path.
///
/// # Errors
/// InvalidInput, when they do and differ (rule W9).
pub fn check_paths(plan: &LogicalPlan) -> Result<()> {
    let mut wrong = None;
    let walked = plan.apply_with_subqueries(|node| {
        if let Some(outer) = WatermarkNode::of(node)
            && let Some(inner) = first_below(&outer.input)
            && (inner.column.name != outer.column.name || inner.spec.delay != outer.spec.delay)
        {
            wrong = Some((inner.clone(), outer.clone()));
            return Ok(TreeNodeRecursion::Stop);
        }
        Ok(TreeNodeRecursion::Continue)
    });
    walked.map_err(Error::from)?;
    match wrong {
        None => Ok(()),
        Some((inner, outer)) => {
            let said = |w: &WatermarkNode| format!("{} delay {}", w.column.name, super::interval_text(w.spec.delay));
            Err(Error::invalid(format!("two watermarks on one path: {} over {}", said(&outer), said(&inner)))
                .help("a stream has one watermark: leave the query's clause out, or the stream's"))
        }
    }
}

fn first_below(plan: &LogicalPlan) -> Option<&WatermarkNode> {
    match plan {
        LogicalPlan::Join(_) | LogicalPlan::Union(_) | LogicalPlan::Aggregate(_) => None,
        other => WatermarkNode::of(other).or_else(|| other.inputs().first().and_then(|input| first_below(input))),
    }
}
