//! Rows that are remembered whole, and in an order: what a Top-N and an OVER need to know of them.

use std::sync::Arc;

use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, FieldRef, Schema};
use arrow::row::{RowConverter, SortField};
use datafusion::common::DFSchema;
use datafusion::logical_expr::expr::Sort;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};

use super::aggregate::{Request, hydrated, strip_alias};
use super::chain::{forget_at, numbered};
use super::retract;
use crate::delta::keys::KeyCodec;
use crate::error::{Error, Result};
use crate::operator::{Bound, ForgetBy, Rank, RankedSpec};
use crate::parser::OutputMode;
use crate::planner::event_time::EventTime;

/// What is remembered of a row: each expression once.
#[derive(Default)]
pub struct Row {
    wanted: Vec<Expr>,
    exprs: Vec<Expr>,
    names: Vec<String>,
}

impl Row {
    /// The place of an expression.
    ///
    /// # Errors
    /// Of DataFusion.
    pub fn add(&mut self, expr: &Expr, name: String, schema: &DFSchema) -> Result<usize> {
        let wanted = strip_alias(expr);
        if let Some(at) = self.wanted.iter().position(|known| *known == wanted) {
            return Ok(at);
        }
        self.exprs.push(strip_alias(&hydrated(&wanted, schema)?));
        self.wanted.push(wanted);
        self.names.push(name);
        Ok(self.wanted.len() - 1)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.exprs.len()
    }

    /// What they are called.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// A plan of them, `c0`, `c1` …, and of the weight behind them where the input takes rows back.
    ///
    /// # Errors
    /// Of DataFusion.
    pub fn plan(&self, input: LogicalPlan, signed: bool) -> Result<LogicalPlan> {
        let weight = if signed { Some(retract::weight_of(&input)?) } else { None };
        let exprs = self.exprs.iter().enumerate().map(|(n, expr)| expr.clone().alias(format!("c{n}"))).chain(weight);
        Ok(LogicalPlanBuilder::from(input).project(exprs)?.build()?)
    }
}

/// The type of a plan's column.
pub fn type_of(plan: &LogicalPlan, n: usize) -> DataType {
    plan.schema().field(n).data_type().clone()
}

/// All rows of each partition, of a plan that [`Row::plan`] made: partitions are the first `width` columns, `order_by` the places
/// of what `sorts` orders by. Nothing is forgotten, and all are shown.
///
/// # Errors
/// Unsupported: columns that have no order; `refused` says what can't remember them.
pub fn ranked(
    row: &Row,
    plan: &LogicalPlan,
    width: usize,
    (order_by, sorts): (Vec<usize>, &[Sort]),
    signed: bool,
    refused: fn(Error) -> Error,
) -> Result<RankedSpec> {
    let names = row.names.iter().enumerate();
    let keys: Vec<FieldRef> = names.map(|(n, name)| numbered(n, name, &type_of(plan, n))).collect();
    let rows: Vec<FieldRef> = keys.iter().cloned().chain([numbered(keys.len(), "count", &DataType::Int64)]).collect();
    // A row that is taken back was computed anew: it is to be found whatever its zeros and NaN look like now.
    let row_codec = if signed { KeyCodec::new(&keys) } else { KeyCodec::exact_behind(&keys, width) };
    Ok(RankedSpec {
        partition: width,
        codec: Arc::new(KeyCodec::new(&keys[..width]).map_err(refused)?),
        row_codec: Arc::new(row_codec.map_err(refused)?),
        keys: Arc::new(Schema::new(keys)),
        rows: Arc::new(Schema::new(rows)),
        sorter: sorter(order_by.iter().zip(sorts).map(|(at, by)| (type_of(plan, *at), by)))?,
        order_by,
        signed,
        bound: Bound { by: Rank::RowNumber, skip: 0, fetch: u64::MAX },
        prunes: false,
        before: false,
        forget: None,
    })
}

/// By what partitions are forgotten, one of whose columns, at this place, is a time; in COMPLETE nothing is.
///
/// # Errors
/// Unsupported: a time that partitions can't end by.
pub fn forget_of(
    time: Option<(usize, EventTime)>,
    plan: &LogicalPlan,
    request: &Request<'_>,
) -> Result<Option<ForgetBy>> {
    let time = time.filter(|_| request.mode != OutputMode::Complete);
    time.map(|(at, time)| forget_at(at, time, &type_of(plan, at))).transpose()
}

/// How a column is ordered.
pub fn options(by: &Sort) -> SortOptions {
    SortOptions { descending: !by.asc, nulls_first: by.nulls_first }
}

/// What makes bytes of columns of these types that order as they do.
///
/// # Errors
/// Unsupported: a type that has no order.
pub fn sorter<'a>(columns: impl Iterator<Item = (DataType, &'a Sort)>) -> Result<RowConverter> {
    let fields = columns.map(|(is, by)| SortField::new_with_options(is, options(by))).collect();
    RowConverter::new(fields).map_err(|e| Error::unsupported(format!("ORDER BY: {e}")))
}
