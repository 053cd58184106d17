//! The rows of a table that a condition picks, by their number: what UPDATE and DELETE change.
//!
//! The condition and the new values are planned as a SELECT over the table, so that they mean what they mean there. Then the
//! table's scan is replaced by one that has a column more, the row's number, which is handed up to the top.

use std::sync::Arc;

use datafusion::common::Column;
use datafusion::logical_expr::{Expr, Filter, LogicalPlan, LogicalPlanBuilder, Projection, SubqueryAlias, TableSource};
use sqlparser::ast::{self, SelectItem};

use super::parse_query;
use crate::error::{Error, Result};

/// `SELECT items FROM table WHERE condition`.
///
/// # Errors
/// None but a defect of ours.
pub fn block(items: Vec<SelectItem>, table: ast::TableFactor, condition: Option<ast::Expr>) -> Result<ast::Query> {
    let mut query = parse_query("SELECT 1 FROM t")?;
    if let ast::SetExpr::Select(select) = query.body.as_mut() {
        if !items.is_empty() {
            select.projection = items;
        }
        select.selection = condition;
        for from in &mut select.from {
            from.relation = table.clone();
        }
    }
    Ok(query)
}

/// The plan of a [`block`] with a column more behind its own: `number` of `numbered`, which has the table's columns and that.
///
/// # Errors
/// Unsupported: the block holds more than a projection and a filter of the table.
pub fn with_number(plan: LogicalPlan, numbered: &Arc<dyn TableSource>, number: &str) -> Result<LogicalPlan> {
    Ok(match plan {
        LogicalPlan::Projection(Projection { mut expr, input, .. }) => {
            let input = with_number(Arc::unwrap_or_clone(input), numbered, number)?;
            let (qualifier, field) = input.schema().qualified_field_with_unqualified_name(number)?;
            expr.push(Expr::Column(Column::from((qualifier, field))));
            LogicalPlan::Projection(Projection::try_new(expr, Arc::new(input))?)
        }
        LogicalPlan::Filter(Filter { predicate, input, .. }) => {
            let input = with_number(Arc::unwrap_or_clone(input), numbered, number)?;
            LogicalPlan::Filter(Filter::try_new(predicate, Arc::new(input))?)
        }
        LogicalPlan::SubqueryAlias(SubqueryAlias { input, alias, .. }) => {
            let input = with_number(Arc::unwrap_or_clone(input), numbered, number)?;
            LogicalPlan::SubqueryAlias(SubqueryAlias::try_new(Arc::new(input), alias)?)
        }
        LogicalPlan::TableScan(scan) => {
            LogicalPlanBuilder::scan(scan.table_name, Arc::clone(numbered), None)?.build()?
        }
        _ => {
            return Err(Error::unsupported(
                "an aggregate, a window function or unnest can't stand in UPDATE or DELETE outside a subquery",
            )
            .help("compute it in a subquery, as in SET a = (SELECT max(a) FROM t)"));
        }
    })
}
