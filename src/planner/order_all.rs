//! `ORDER BY ALL`: by every column of the result, from left to right.
//!
//! DataFusion knows it for plain columns. Where the columns can be counted it becomes `ORDER BY 1, 2, …`, which orders by what an
//! expression gives, and by columns of one name, too.

use std::ops::ControlFlow;

use sqlparser::ast::{self, OrderByExpr, OrderByKind, SelectItem, SetExpr, VisitorMut};

use super::windows::number;
use crate::parser::{Flow, walk_mut};

/// Rewrites every such clause of a query.
pub fn rewrite(query: &mut ast::Query) {
    let _ = walk_mut(query, &mut All);
}

struct All;

impl VisitorMut for All {
    type Break = Box<crate::error::Error>;

    fn pre_visit_query(&mut self, query: &mut ast::Query) -> Flow {
        if let Some(order_by) = &mut query.order_by
            && let OrderByKind::All(options) = &order_by.kind
            && let Some(width) = width(&query.body)
        {
            let by = |at: usize| OrderByExpr { expr: number(at as i64), options: *options, with_fill: None };
            order_by.kind = OrderByKind::Expressions((1..=width).map(by).collect());
        }
        ControlFlow::Continue(())
    }
}

/// How many columns a query gives, where no `*` stands for some of them.
fn width(body: &SetExpr) -> Option<usize> {
    match body {
        SetExpr::Select(select) => {
            let is_one =
                |item: &SelectItem| matches!(item, SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. });
            select.projection.iter().all(is_one).then_some(select.projection.len())
        }
        SetExpr::Query(query) => width(&query.body),
        SetExpr::SetOperation { left, .. } => width(left),
        SetExpr::Values(values) => values.rows.first().map(|row| row.len()),
        _ => None,
    }
}
