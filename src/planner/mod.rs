//! A query's text → DataFusion's LogicalPlan, with streams, windows and watermarks as nodes of ours.
//!
//! What a mode makes possible is not judged here ([`crate::incremental`] does), nor is anything run.

mod bit_xor;
mod coerce;
mod decimals;
pub mod durations;
pub mod event_time;
pub mod expand;
mod extremes;
mod fields;
pub mod floats;
pub mod frames;
pub mod hints;
pub mod join_bounds;
pub mod leaf;
pub mod matching;
mod order_all;
pub mod over;
mod overflow;
pub mod quantified;
pub mod session_batch;
pub mod session_functions;
mod sessions;
pub mod set_operations;
mod shifts;
pub mod top;
pub mod watermark;
mod window_arguments;
pub mod window_functions;
pub mod window_shape;
mod window_tables;
mod windows;
pub mod within;

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, TableReference};
use datafusion::datasource::{provider_as_source, source_as_provider};
use datafusion::error::Result as DfResult;
use datafusion::execution::SessionState;
use datafusion::logical_expr::{AggregateUDF, Expr, LogicalPlan, LogicalPlanBuilder, TableScan};
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::Statement as DfStatement;
use sqlparser::ast;

use crate::catalog::{StreamDef, StreamTable};
use crate::error::{Error, Result};
use crate::parser::{QueryText, read_literals};
use watermark::{WatermarkNode, WatermarkSpec, delay_micros};

/// Functions whose result depends on the order of their input.
pub const ORDERED: &[&str] = &["first_value", "last_value", "nth_value", "array_agg", "string_agg"];

/// Gives a session the functions that windows and watermarks are rewritten to.
pub fn register(ctx: &SessionContext) {
    use session_functions::{SESSION_END, SESSION_START};
    use window_functions::{CALENDAR_END, CALENDAR_START, CUMULATE_END, CUMULATE_ENDS, CUMULATE_START};
    use window_functions::{END, LAST, START, STARTS, WATERMARK};
    for function in [&START, &STARTS, &END, &LAST, &WATERMARK, &within::WITHIN, &SESSION_START, &SESSION_END] {
        ctx.register_udf((***function).clone());
    }
    for function in [&CUMULATE_END, &CUMULATE_ENDS, &CUMULATE_START, &CALENDAR_START, &CALENDAR_END] {
        ctx.register_udf((***function).clone());
    }
    for shift in shifts::Shift::both() {
        ctx.register_udwf(shift);
    }
    ctx.register_udaf(AggregateUDF::from(overflow::CheckedSum::default()));
    ctx.register_udaf(AggregateUDF::from(bit_xor::BitXor::default()));
    ctx.register_udaf(AggregateUDF::from(extremes::Extreme::min()));
    ctx.register_udaf(AggregateUDF::from(extremes::Extreme::max()));
}

/// Plans a query over streams and tables. A stream stands in it as a scan of its source ([`stream_of`]), with its
/// computed columns and its watermark above.
///
/// # Errors
/// Unknown names with the closest known one, wrong types, windows and watermarks that make no sense.
pub async fn plan_query(state: &SessionState, query: &QueryText) -> Result<LogicalPlan> {
    let mut ast = query.ast.clone();
    let streams = if query.watermarks.is_empty() { HashMap::new() } else { stream_columns(state).await? };
    watermark::mark(&mut ast, &query.watermarks, &streams)?;
    within::mark(&mut ast, &query.within_watermark);
    rewrite(&mut ast)?;
    let statement = DfStatement::Statement(Box::new(ast::Statement::Query(Box::new(ast))));
    let plan = state.statement_to_plan(statement).await?;
    let plan = watermark::unmark(plan)?;
    let plan = open_streams(plan)?;
    watermark::check_paths(&plan)?;
    settle(state, set_operations::group(quantified::as_in(plan)?)?)
}

/// What a query says in our words, in those that DataFusion has for it: windows, fields, literals.
///
/// # Errors
/// Windows that make no sense; a number that no DOUBLE can hold.
pub fn rewrite(query: &mut ast::Query) -> Result<()> {
    windows::rewrite(query)?;
    fields::rewrite(query);
    order_all::rewrite(query);
    read_literals(query)
}

/// A query of all of a relation.
///
/// # Errors
/// None but a defect of ours.
pub fn all_of(name: ast::ObjectName) -> Result<ast::Query> {
    let mut query = parse_query("SELECT * FROM t")?;
    if let ast::SetExpr::Select(select) = query.body.as_mut() {
        for from in &mut select.from {
            if let ast::TableFactor::Table { name: of, .. } = &mut from.relation {
                *of = name.clone();
            }
        }
    }
    Ok(query)
}

/// A query of one row.
///
/// # Errors
/// None but a defect of ours.
pub fn one_row() -> Result<ast::Query> {
    parse_query("SELECT 1")
}

/// Makes a plan's types final, then its arithmetic and its grouping what we promise of them.
///
/// # Errors
/// Types that don't go together; a window finer than the unit of its time.
pub fn settle(state: &SessionState, plan: LogicalPlan) -> Result<LogicalPlan> {
    // Types are final from here on: a result table is made from the plan's schema before the query is cut.
    let plan = frames::by_groups(coerce::floats_win(plan)?)?;
    let plan = state.analyzer().execute_and_check(plan, state.config_options(), |_, _| {})?;
    frames::check(&plan)?;
    window_functions::check_units(&plan)?;
    session_functions::check_sessions(&plan)?;
    Ok(floats::unify(overflow::check(plan)?)?)
}

/// The plan of a bounded run over what the streams hold now: what SELECT in the shell runs.
pub fn bounded(plan: LogicalPlan) -> Result<LogicalPlan> {
    // A plan that DataFusion made by itself has its streams still closed.
    let plan = expand::expand(session_batch::expand(watermark::remove(open_streams(plan)?)?)?)?;
    let plan = over::named(floats::unify_joins(quantified::not_in(plan)?)?)?;
    let plan = plan.transform_up_with_subqueries(|node| match stream_of(&node) {
        Some(stream) => {
            let LogicalPlan::TableScan(scan) = node else { return Ok(Transformed::no(node)) };
            let source = provider_as_source(Arc::new(leaf::BoundedTable(stream)));
            Ok(Transformed::yes(LogicalPlan::TableScan(TableScan { source, ..scan })))
        }
        None => Ok(Transformed::no(node)),
    });
    Ok(plan?.data)
}

/// Whether the plan reads a stream at all.
pub fn reads_stream(plan: &LogicalPlan) -> bool {
    any(plan, |node| stream_of(node).is_some() || closed_stream(node).is_some())
}

/// The stream that a node scans before its source was put in its place.
fn closed_stream(node: &LogicalPlan) -> Option<Arc<StreamDef>> {
    let LogicalPlan::TableScan(scan) = node else { return None };
    let provider = source_as_provider(&scan.source).ok()?;
    let table = (provider.as_ref() as &dyn std::any::Any).downcast_ref::<StreamTable>()?;
    Some(table.0.clone())
}

/// Whether the plan has rows of its result that can be replaced by others: UPDATE is then the default mode.
pub fn aggregates(plan: &LogicalPlan) -> bool {
    any(plan, |node| match node {
        LogicalPlan::Aggregate(_) | LogicalPlan::Distinct(_) => reads_stream(node),
        LogicalPlan::Limit(limit) => top::is_sorted(limit) && reads_stream(node),
        LogicalPlan::Filter(filter) => top::is_numbered(filter) && reads_stream(node),
        _ => false,
    })
}

/// Whether any node of a plan, subqueries included, is so.
pub fn any(plan: &LogicalPlan, mut is: impl FnMut(&LogicalPlan) -> bool) -> bool {
    let mut found = false;
    let walked = plan.apply_with_subqueries(|node| {
        found = is(node);
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    walked.is_ok() && found
}

/// The stream that a node scans.
pub fn stream_of(node: &LogicalPlan) -> Option<Arc<StreamDef>> {
    let LogicalPlan::TableScan(scan) = node else { return None };
    let provider = source_as_provider(&scan.source).ok()?;
    let table = (provider.as_ref() as &dyn std::any::Any).downcast_ref::<SourceTable>()?;
    Some(table.0.clone())
}

/// The streams that a plan reads, each once.
///
/// # Errors
/// Of DataFusion.
pub fn streams_of(plan: &LogicalPlan) -> Result<Vec<Arc<StreamDef>>> {
    let mut streams: Vec<Arc<StreamDef>> = Vec::new();
    let walked = plan.apply_with_subqueries(|node| {
        if let Some(stream) = stream_of(node)
            && !streams.iter().any(|known| known.name == stream.name)
        {
            streams.push(stream);
        }
        Ok(TreeNodeRecursion::Continue)
    });
    walked.map_err(crate::error::Error::from)?;
    Ok(streams)
}

/// What a stream's source gives, as a table in a plan; replaced by a leaf before anything runs.
#[derive(Debug)]
struct SourceTable(Arc<StreamDef>);

#[async_trait::async_trait]
impl datafusion::catalog::TableProvider for SourceTable {
    fn schema(&self) -> SchemaRef {
        self.0.source_schema.clone()
    }

    fn table_type(&self) -> datafusion::logical_expr::TableType {
        datafusion::logical_expr::TableType::Base
    }

    async fn scan(
        &self,
        _: &dyn datafusion::catalog::Session,
        _: Option<&Vec<usize>>,
        _: &[Expr],
        _: Option<usize>,
    ) -> DfResult<Arc<dyn datafusion::physical_plan::ExecutionPlan>> {
        datafusion::common::internal_err!("stream {} was not replaced by a leaf", self.0.name)
    }
}

/// Replaces every scan of a stream by its source, computed columns, and watermark.
fn open_streams(plan: LogicalPlan) -> DfResult<LogicalPlan> {
    let opened = plan.transform_up_with_subqueries(|node| {
        let LogicalPlan::TableScan(scan) = &node else { return Ok(Transformed::no(node)) };
        let Some(stream) = closed_stream(&node) else { return Ok(Transformed::no(node)) };
        Ok(Transformed::yes(open_stream(&stream, &scan.table_name)?))
    })?;
    Ok(opened.data)
}

fn open_stream(stream: &Arc<StreamDef>, name: &TableReference) -> DfResult<LogicalPlan> {
    let source = provider_as_source(Arc::new(SourceTable(stream.clone())));
    let mut plan = LogicalPlanBuilder::scan(name.clone(), source, None)?.build()?;
    let computed = stream.columns.iter().any(|c| c.computed.is_some());
    if computed || stream.schema != stream.source_schema {
        plan = compute_columns(plan, stream, name)?;
    }
    if let Some(definition) = &stream.watermark {
        let spec = WatermarkSpec {
            delay: delay_micros(definition.delay),
            idle_after: definition.idle_after.map(delay_micros),
            max_future_skew: definition.max_future_skew.map(delay_micros),
        };
        plan = WatermarkNode::plan(plan, Column::new(Some(name.clone()), definition.column.value.clone()), spec);
    }
    Ok(plan)
}

/// A projection from what the source gives to the declared columns; a computed column may use earlier ones.
fn compute_columns(plan: LogicalPlan, stream: &StreamDef, name: &TableReference) -> DfResult<LogicalPlan> {
    let mut known: HashMap<String, Expr> = HashMap::new();
    let mut exprs = Vec::new();
    for column in &stream.columns {
        let source = Expr::Column(Column::new(Some(name.clone()), column.name.clone()));
        let expr = match &column.computed {
            None => source,
            Some(computed) => {
                let earlier = |e: Expr| match &e {
                    Expr::Column(c) => Ok(known.get(&c.name).cloned().map_or(Transformed::no(e), Transformed::yes)),
                    _ => Ok(Transformed::no(e)),
                };
                computed.clone().transform_up(earlier)?.data
            }
        };
        known.insert(column.name.clone(), expr.clone());
        exprs.push(match column.computed {
            None => expr,
            Some(_) => expr.alias_qualified(Some(name.clone()), column.name.clone()),
        });
    }
    LogicalPlanBuilder::from(plan).project(exprs)?.build()
}

/// The columns of every stream, by name: only asked when a clause must find its stream.
async fn stream_columns(state: &SessionState) -> Result<HashMap<String, SchemaRef>> {
    let defaults = &state.config_options().catalog;
    let schema =
        state.catalog_list().catalog(&defaults.default_catalog).and_then(|c| c.schema(&defaults.default_schema));
    let Some(schema) = schema else { return Ok(HashMap::new()) };
    let mut columns = HashMap::new();
    for name in schema.table_names() {
        if let Some(table) = schema.table(&name).await? {
            columns.insert(name, table.schema());
        }
    }
    Ok(columns)
}

/// One of our own query templates.
fn parse_query(text: &str) -> Result<ast::Query> {
    let dialect = sqlparser::dialect::GenericDialect {};
    let mut statements =
        sqlparser::parser::Parser::parse_sql(&dialect, text).map_err(|e| Error::internal(e.to_string()))?;
    match statements.pop() {
        Some(ast::Statement::Query(query)) => Ok(*query),
        _ => Err(Error::internal(format!("not a query: {text}"))),
    }
}

/// Microseconds as a person writes them: `10 seconds`, `1 hour 30 minutes`, `1.5 seconds`.
pub fn interval_text(micros: i64) -> String {
    const UNITS: [(i64, &str); 6] = [
        (86_400_000_000, "day"),
        (3_600_000_000, "hour"),
        (60_000_000, "minute"),
        (1_000_000, "second"),
        (1_000, "millisecond"),
        (1, "microsecond"),
    ];
    let mut rest = micros;
    let mut parts = Vec::new();
    for (unit, name) in UNITS {
        let n = rest / unit;
        rest %= unit;
        if n != 0 {
            parts.push(format!("{n} {name}{}", if n.abs() == 1 { "" } else { "s" }));
        }
    }
    if parts.is_empty() { "0 seconds".into() } else { parts.join(" ") }
}
