//! By which columns of its result a grouped query's rows are known again: what a target needs that replaces rows by key.

use std::collections::BTreeSet;

use datafusion::common::{Column, DFSchema};
use datafusion::logical_expr::{Expr, LogicalPlan, Operator};

use crate::planner::join_bounds::is_join_of_streams;
use crate::planner::reads_stream;

/// What a column of a plan shows of the group keys: their numbers, if it shows them whole and nothing else.
type Shown = Option<BTreeSet<usize>>;

/// The columns of a query's result that show what it groups by; `None`: it groups by nothing over a stream, or not all of that
/// is visible.
pub fn upsert_key(plan: &LogicalPlan) -> Option<Vec<usize>> {
    let (shown, keys) = trace(plan)?;
    let columns: Vec<usize> = (0..shown.len()).filter(|n| shown[*n].as_ref().is_some_and(|s| !s.is_empty())).collect();
    let all: BTreeSet<usize> = shown.into_iter().flatten().flatten().collect();
    (all.len() == keys).then_some(columns)
}

/// What each column of a plan shows, and how many keys there are.
fn trace(plan: &LogicalPlan) -> Option<(Vec<Shown>, usize)> {
    match plan {
        LogicalPlan::Aggregate(aggregate) if reads_stream(plan) => {
            let columns = aggregate.schema.fields().len();
            // Of grouping sets the id of the set is one more.
            let keys = columns - aggregate.aggr_expr.len();
            let shown = (0..columns).map(|n| (n < keys).then(|| BTreeSet::from([n])));
            Some((shown.collect(), keys))
        }
        LogicalPlan::Projection(projection) => {
            let (below, keys) = trace(&projection.input)?;
            let schema = projection.input.schema();
            Some((projection.expr.iter().map(|expr| shows(expr, schema, &below)).collect(), keys))
        }
        LogicalPlan::Filter(_) | LogicalPlan::SubqueryAlias(_) | LogicalPlan::Sort(_) | LogicalPlan::Limit(_) => {
            trace(plan.inputs().first()?)
        }
        // A row of the result is made of one of each side.
        join if is_join_of_streams(join) => None,
        LogicalPlan::Join(join) => {
            let (left, right) = (reads_stream(&join.left), reads_stream(&join.right));
            let (below, keys) = trace(if left && !right { &join.left } else { &join.right })?;
            // The columns of both sides by their names: a side may be left out, or follow the other.
            let stream = if left { join.left.schema() } else { join.right.schema() };
            let of = |(q, f): (Option<&datafusion::common::TableReference>, &arrow::datatypes::FieldRef)| {
                let column = Column::new(q.cloned(), f.name());
                stream.maybe_index_of_column(&column).and_then(|n| below.get(n).cloned().flatten())
            };
            Some((join.schema.iter().map(of).collect(), keys))
        }
        _ => None,
    }
}

/// What an expression shows of the keys: nothing that could make two of them one.
fn shows(expr: &Expr, schema: &DFSchema, below: &[Shown]) -> Shown {
    match expr {
        Expr::Column(column) => below.get(schema.maybe_index_of_column(column)?)?.clone(),
        Expr::Alias(alias) => shows(&alias.expr, schema, below),
        Expr::Literal(..) => Some(BTreeSet::new()),
        Expr::BinaryExpr(binary) if matches!(binary.op, Operator::Plus | Operator::Minus) => {
            let (left, right) = (shows(&binary.left, schema, below)?, shows(&binary.right, schema, below)?);
            (left.is_empty() || right.is_empty()).then(|| left.into_iter().chain(right).collect())
        }
        Expr::ScalarFunction(call) if ["named_struct", "levada_window_end"].contains(&call.func.name()) => {
            let parts: Option<Vec<_>> = call.args.iter().map(|arg| shows(arg, schema, below)).collect();
            Some(parts?.into_iter().flatten().collect())
        }
        _ => None,
    }
}
