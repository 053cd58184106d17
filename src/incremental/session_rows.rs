//! The rows of `SESSION(…)`, each with the session that it is in: a list of rows a session, taken apart again above.
//!
//! ```text
//! Projection *, levada_session_start(ts, gap, k) AS window_start, … AS window_end        Projection rows.c0, …, window_start, window_end
//!   Input                                                                                   Unnest rows
//!                                                                                             Aggregate [start, end, k], array_agg(row) AS rows
//!                                                                                               Input
//! ```
//! So a row is handed out when its session is final, or changes with it.

use std::sync::Arc;

use datafusion::common::Column;
use datafusion::functions::core::{get_field, named_struct};
use datafusion::functions_aggregate::array_agg::array_agg_udaf;
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan, LogicalPlanBuilder, Projection, lit};

use crate::error::{Error, Result};
use crate::planner::floats;
use crate::planner::session_functions::session_call;

/// An aggregation that keeps a session's rows.
pub fn aggregate_of(table: &Projection) -> Result<Aggregate> {
    let bound = |end: bool| {
        let expr = table.expr.iter().find(|e| session_call(e).is_some_and(|call| call.end == end));
        expr.map(|e| e.clone().unalias()).ok_or_else(|| Error::internal("SESSION(…) without a start or an end"))
    };
    let (start, end) = (bound(false)?, bound(true)?);
    let keys = session_call(&start).map(|call| call.keys.to_vec()).unwrap_or_default();
    let keys = keys.into_iter().map(|key| floats::one_form(key, table.input.schema()));
    let groups = [Ok(start), Ok(end)].into_iter().chain(keys).collect::<Result<Vec<_>, _>>()?;
    let fields = columns(table).enumerate().flat_map(|(n, expr)| [lit(field(n)), expr.clone().unalias()]);
    let rows = array_agg_udaf().call(vec![named_struct().call(fields.collect())]);
    Ok(Aggregate::try_new(Arc::new(table.input.as_ref().clone()), groups, vec![rows])?)
}

/// What the table function gives, from the aggregation's result.
pub fn rows_of(table: &Projection, aggregate: &Aggregate, result: LogicalPlan) -> Result<LogicalPlan> {
    let keys = aggregate.group_expr.len();
    let named = |n: usize| Column::from(aggregate.schema.qualified_field(n));
    let (start, end, rows) = (named(0), named(1), named(keys));
    let plan = LogicalPlanBuilder::from(result).unnest_column(rows.clone())?.build()?;
    let mut fields = 0..;
    let mut exprs = Vec::new();
    for (n, expr) in table.expr.iter().enumerate() {
        let value = match session_call(expr) {
            Some(call) => Expr::Column(if call.end { end.clone() } else { start.clone() }),
            None => {
                let n = fields.next().unwrap_or_default();
                get_field().call(vec![Expr::Column(rows.clone()), lit(field(n))])
            }
        };
        let (qualifier, name) = table.schema.qualified_field(n);
        exprs.push(value.alias_qualified(qualifier.cloned(), name.name()));
    }
    Ok(LogicalPlanBuilder::from(plan).project(exprs)?.build()?)
}

/// The columns that are not the session's own.
fn columns(table: &Projection) -> impl Iterator<Item = &Expr> {
    table.expr.iter().filter(|expr| session_call(expr).is_none())
}

fn field(n: usize) -> String {
    format!("c{n}")
}
