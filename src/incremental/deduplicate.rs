//! `SELECT DISTINCT`, `DISTINCT ON (…)`, with or without `WITHIN WATERMARK`: what the operator needs to know.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef, Schema};
use datafusion::common::DFSchemaRef;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Distinct, Expr, LogicalPlan, LogicalPlanBuilder};

use super::aggregate::{Request, hydrated, late_tap, strip_alias};
use super::chain::{forget_at, numbered};
use super::fragment::Fragment;
use super::names::Names;
use crate::delta::calendar::Lasts;
use crate::delta::keys::KeyCodec;
use crate::delta::time::unit_of;
use crate::error::{Error, Result};
use crate::operator::{DeduplicateSpec, ForgetBy};
use crate::planner::event_time::{EventTime, event_time};
use crate::planner::interval_text;
use crate::planner::watermark::WatermarkNode;
use crate::planner::within::is_mark;

/// What a deduplication is made of, found while watermarks can still be seen.
pub struct Deduplication {
    keys: Vec<Expr>,
    /// The columns of the result.
    columns: Vec<Expr>,
    schema: DFSchemaRef,
    /// The key that the watermark forgets by, by its number.
    time: Option<(usize, EventTime)>,
    /// WITHIN WATERMARK: the column of times and the delay in microseconds.
    within: Option<(Expr, i64)>,
}

impl Deduplication {
    /// Of a node.
    ///
    /// # Errors
    /// Unsupported: ORDER BY with DISTINCT ON. InvalidInput: WITHIN WATERMARK without one.
    pub fn of(distinct: &Distinct) -> Result<Self> {
        let (input, mut keys, columns, schema) = match distinct {
            Distinct::All(input) => {
                let columns: Vec<Expr> = input.schema().columns().into_iter().map(Expr::Column).collect();
                (input, columns.clone(), columns, input.schema().clone())
            }
            Distinct::On(on) => {
                if on.sort_expr.is_some() {
                    return Err(Error::unsupported("DISTINCT ON … WITHIN WATERMARK with ORDER BY can't run over a stream: a row that sorts before those already sent may always come")
                        .help("leave ORDER BY out: the first row of each key in the order of the input is kept"));
                }
                (&on.input, on.on_expr.clone(), on.select_expr.clone(), on.schema.clone())
            }
        };
        let before = keys.len();
        keys.retain(|key| !is_mark(key));
        let within = if keys.len() < before { Some(within(input)?) } else { None };
        let times = keys.iter().enumerate().filter_map(|(n, key)| Some((n, event_time(input, key)?)));
        // The first that closes keys; a window that grows is closed by its end.
        let time = times.filter(|_| within.is_none()).min_by_key(|(_, time)| time.is_growing());
        Ok(Deduplication { keys, columns, schema, time, within })
    }

    /// Cuts it from an input whose leaves are there already.
    ///
    /// # Errors
    /// Of DataFusion; Unsupported: keys that have no order.
    pub async fn cut(self, input: LogicalPlan, request: &mut Request<'_>) -> Result<(Fragment, Arc<DeduplicateSpec>)> {
        let Deduplication { keys, columns, schema, time, within } = self;
        let mut input = input;
        if let Some((key, time)) = time {
            input = late_tap(input, strip_alias(&keys[key]), time, time != EventTime::Time, request)?;
        }
        if let Some((column, _)) = &within {
            // A row without a time has no end within the watermark, as it has no window.
            input = late_tap(input, column.clone(), EventTime::Time, true, request)?;
        }
        let names = Names::of(keys.iter());
        let called: Vec<String> = keys.iter().map(|key| names.name(key)).collect();
        // The same expression is computed once, and what is remembered has no dictionaries.
        let mut exprs: Vec<Expr> = Vec::new();
        let mut places: HashMap<Expr, usize> = HashMap::new();
        for key in &keys {
            let plain = strip_alias(&hydrated(key, input.schema())?);
            places.entry(strip_alias(key)).or_insert(exprs.len());
            exprs.push(plain);
        }
        let time_at = exprs.len();
        exprs.extend(within.iter().map(|(column, _)| column.clone()));
        let mut shown = Vec::new();
        for column in &columns {
            let column = strip_alias(column);
            let same = places.get(&column).copied().filter(|at| exprs[*at] == column);
            shown.push(same.unwrap_or(exprs.len()));
            if same.is_none() {
                exprs.push(column);
            }
        }
        let exprs: Vec<Expr> = exprs.into_iter().enumerate().map(|(n, expr)| expr.alias(format!("c{n}"))).collect();
        let plan = LogicalPlanBuilder::from(input).project(exprs)?.build()?;
        let field = |n: usize| plan.schema().field(n).clone();
        let key_fields: Vec<FieldRef> =
            called.iter().enumerate().map(|(n, name)| numbered(n, name, field(n).data_type())).collect();
        let mut row_fields = key_fields.clone();
        let forget = match (&time, &within) {
            (Some((key, time)), _) => Some(forget_at(*key, *time, field(*key).data_type())?),
            (None, Some((column, delay))) => {
                let data_type = field(time_at).data_type().clone();
                let lasts = Lasts::Units(units(*delay, &data_type)?);
                row_fields.push(numbered(time_at, &names.name(column), &data_type));
                Some(ForgetBy { column: time_at, lasts })
            }
            (None, None) => None,
        };
        let output: Vec<FieldRef> = (0..schema.fields().len())
            .map(|n| arrow::datatypes::Field::new(format!("c{n}"), field(shown[n]).data_type().clone(), true).into())
            .collect();
        // Maps have no order: rows that hold one are shown as they come.
        let (order, order_columns) = match KeyCodec::new(&output) {
            Ok(codec) => (codec, output.len()),
            Err(_) => (KeyCodec::new(&[])?, 0),
        };
        let spec = DeduplicateSpec {
            name: request.named.name("deduplicate"),
            codec: Arc::new(KeyCodec::new(&key_fields)?),
            keys: Arc::new(Schema::new(key_fields)),
            rows: Arc::new(Schema::new(row_fields)),
            within: within.map(|(_, delay)| (time_at, interval_text(delay))),
            columns: shown,
            order: Arc::new(order),
            order_columns,
            output: Arc::new(Schema::new(output)),
            forget,
        };
        // Which row is the first is decided by the order of the input.
        let plan = crate::planner::expand::expand(plan)?;
        let fragment = Fragment::plan(request.state, &plan, request.partitions, true, &Ok).await?;
        Ok((fragment, Arc::new(spec)))
    }
}

/// The one watermarked time of an input, and its delay.
fn within(input: &LogicalPlan) -> Result<(Expr, i64)> {
    let mut delays = Vec::new();
    let walked = input.apply(|node| {
        delays.extend(WatermarkNode::of(node).map(|watermark| watermark.spec.delay));
        Ok(TreeNodeRecursion::Continue)
    });
    walked.map_err(Error::from)?;
    let columns = input.schema().columns().into_iter().map(Expr::Column);
    let mut times = columns.filter(|column| event_time(input, column) == Some(EventTime::Time));
    match (times.next(), times.next(), delays.as_slice()) {
        (Some(time), None, [delay]) => Ok((time, *delay)),
        (None, ..) => Err(Error::invalid(
            "WITHIN WATERMARK wants a watermarked time in FROM: without one no key is ever forgotten",
        )
        .help("add WITH WATERMARK column DELAY '10 seconds', or leave WITHIN WATERMARK out")),
        _ => Err(Error::not_yet("WITHIN WATERMARK over more than one watermark")),
    }
}

/// A delay in the unit of a time, rounded up.
pub(super) fn units(micros: i64, data_type: &DataType) -> Result<i64> {
    use crate::delta::time::Unit;
    Ok(match unit_of(data_type)? {
        Unit::Nanos => micros.saturating_mul(1_000),
        Unit::Micros => micros,
        Unit::Millis => micros.div_euclid(1_000) + i64::from(micros.rem_euclid(1_000) != 0),
        Unit::Seconds => micros.div_euclid(1_000_000) + i64::from(micros.rem_euclid(1_000_000) != 0),
        Unit::Days => micros.div_euclid(86_400_000_000) + i64::from(micros.rem_euclid(86_400_000_000) != 0),
    })
}
