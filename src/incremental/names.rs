//! What is remembered is named by what computes it, as text, without the names that a query gives its relations.
//!
//! State is known again by these names when a query is started on an old checkpoint, so another alias of a stream must
//! not change them. Columns keep their relations only where two relations have one of the same name among them.

use std::collections::HashMap;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, TableReference};
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan};

use crate::planner::join_bounds::is_join_of_streams;
use crate::planner::session_functions::gives_sessions;
use crate::planner::top::TopNode;

/// How columns are written in the names of one aggregation.
pub struct Names {
    qualified: bool,
}

impl Names {
    /// Of all its expressions.
    pub fn of<'a>(exprs: impl Iterator<Item = &'a Expr>) -> Self {
        let mut relations: HashMap<&str, &Option<TableReference>> = HashMap::new();
        let mut columns = exprs.flat_map(Expr::column_refs);
        let qualified =
            columns.any(|column| *relations.entry(&column.name).or_insert(&column.relation) != &column.relation);
        Names { qualified }
    }

    /// An expression without relations and aliases.
    pub fn bare(&self, expr: &Expr) -> Expr {
        let bare = expr.clone().transform_up(|e| {
            Ok(match e {
                Expr::Column(column) if !self.qualified => {
                    Transformed::yes(Expr::Column(Column::new_unqualified(column.name)))
                }
                // Rewritten calls keep the name that they had, with its relations.
                Expr::Alias(alias) => Transformed::yes(*alias.expr),
                other => Transformed::no(other),
            })
        });
        bare.map_or_else(|_| expr.clone(), |bare| bare.data)
    }

    /// The name of what an expression computes.
    pub fn name(&self, expr: &Expr) -> String {
        self.bare(expr).schema_name().to_string()
    }

    /// The casts in an expression, which are part of no name: `CAST(v AS Int32)`.
    pub fn casts(&self, expr: &Expr) -> Vec<String> {
        let mut casts = Vec::new();
        let walked = self.bare(expr).apply(|e| {
            match e {
                Expr::Cast(cast) => {
                    casts.push(format!("CAST({} AS {})", cast.expr.schema_name(), cast.field.data_type()));
                }
                Expr::TryCast(cast) => {
                    casts.push(format!("TRY_CAST({} AS {})", cast.expr.schema_name(), cast.field.data_type()));
                }
                _ => {}
            }
            Ok(TreeNodeRecursion::Continue)
        });
        // The walk stops at no error of ours.
        if walked.is_err() { vec![expr.to_string()] } else { casts }
    }
}

/// What a plan makes of the result of its topmost operator, from the top down: `SELECT k, n; HAVING n > 1`. `named` are the names
/// of the first aggregate's columns; `is_leaf` tells where rows of streams enter.
pub fn above(
    plan: &LogicalPlan,
    aggregate: Option<&Aggregate>,
    named: &[String],
    is_leaf: fn(&LogicalPlan) -> bool,
) -> String {
    let columns = aggregate.into_iter().flat_map(|a| a.schema.fields()).map(|field| field.name().as_str());
    let names: HashMap<&str, &str> = columns.zip(named.iter().map(String::as_str)).collect();
    let mut parts = Vec::new();
    let mut node = plan;
    loop {
        match node {
            LogicalPlan::Aggregate(_) | LogicalPlan::Window(_) => break,
            other if is_join_of_streams(other) || gives_sessions(other) => break,
            // What it keeps is known again by its state.
            top if TopNode::of(top).is_some() => break,
            LogicalPlan::SubqueryAlias(_) => {}
            LogicalPlan::Projection(projection) => {
                let exprs: Vec<String> = projection.expr.iter().map(|expr| renamed(expr, &names)).collect();
                parts.push(format!("SELECT {}", exprs.join(", ")));
            }
            LogicalPlan::Filter(filter) => parts.push(format!("HAVING {}", renamed(&filter.predicate, &names))),
            other => parts.push(other.display().to_string()),
        }
        let (streaming, fixed): (Vec<_>, Vec<_>) =
            node.inputs().into_iter().partition(|input| crate::planner::any(input, is_leaf));
        parts.extend(fixed.iter().map(|table| table.display_indent().to_string().replace('\n', " ")));
        match streaming.first() {
            Some(input) => node = *input,
            None => break,
        }
    }
    parts.join("; ")
}

/// Expressions as text, without relations where no two of them have a column of one name; `names` are those of an aggregate's
/// columns.
pub fn without_relations(exprs: &[Expr], names: &HashMap<String, String>) -> Vec<String> {
    let qualified = Names::of(exprs.iter()).qualified;
    let one = |expr: &Expr| {
        let renamed = expr.clone().transform(|e| {
            let Expr::Column(column) = &e else { return Ok(Transformed::no(e)) };
            let name = match names.get(&column.name) {
                Some(name) => name,
                None if qualified => return Ok(Transformed::no(e)),
                None => &column.name,
            };
            Ok(Transformed::yes(Expr::Column(Column::new_unqualified(name))))
        });
        renamed.map_or_else(|_| expr.to_string(), |expr| expr.data.to_string())
    };
    exprs.iter().map(one).collect()
}

fn renamed(expr: &Expr, names: &HashMap<&str, &str>) -> String {
    let renamed = expr.clone().transform(|e| {
        let Expr::Column(column) = &e else { return Ok(Transformed::no(e)) };
        let name = names.get(column.name.as_str());
        Ok(name.map(|name| Expr::Column(Column::new_unqualified(*name))).map_or(Transformed::no(e), Transformed::yes))
    });
    renamed.map_or_else(|_| expr.to_string(), |expr| expr.data.to_string())
}
