//! What a cut hands from node to node: plans whose streams and operators are leaves, and what is known of them.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::datatypes::FieldRef;
use datafusion::common::{Column, TableReference};
use datafusion::datasource::provider_as_source;
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::{Distinct, Expr, LogicalPlan, LogicalPlanBuilder, Window, cast};

use super::retract;
use super::survey::text_between;
use crate::error::Result;
use crate::planner::leaf::Leaf;

/// What is between a node and the sink.
#[derive(Debug, Clone, Copy)]
pub struct Above {
    /// A node that can make a row come and go.
    pub filters: bool,
    /// No operator.
    pub top: bool,
    /// An operator that makes sessions of those which rows of `SESSION(…)` make by themselves.
    pub sessions: bool,
}

impl Above {
    /// An operator, whatever is above it.
    pub const OPERATOR: Above = Above { filters: false, top: false, sessions: false };
}

/// A plan whose streams and operators are leaves.
pub struct Part {
    pub plan: LogicalPlan,
    /// Its rows carry the hidden columns, or can be made to: it can take rows back.
    pub signed: bool,
    /// What the watermark of its rows is behind the query's, in milliseconds.
    pub lag: i64,
    /// The operators whose results it reads, by their numbers.
    pub from: Vec<usize>,
    /// The streams and operators whose rows it is made of, by name.
    pub of: BTreeSet<String>,
}

/// What feeds an operator through one of its inputs.
pub struct Fed {
    pub from: Vec<usize>,
    /// What it is made of, in words: see [`OperatorNode::fed_by`].
    pub text: String,
}

impl Part {
    /// As an operator's input; `before` is its plan before the cut.
    ///
    /// # Errors
    /// Internal.
    pub fn feeds(&self, before: &LogicalPlan) -> Result<Fed> {
        let mut text = self.of.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        if self.signed {
            let between = text_between(before)?;
            text.extend([": ", between.as_str()].into_iter().filter(|_| !between.is_empty()));
        }
        Ok(Fed { from: self.from.clone(), text })
    }
}

/// The columns of a node that stands for an operator.
pub fn distinct_columns(distinct: &Distinct) -> Vec<(Option<TableReference>, FieldRef)> {
    let schema = match distinct {
        Distinct::All(input) => input.schema(),
        Distinct::On(on) => &on.schema,
    };
    schema.iter().map(|(qualifier, field)| (qualifier.cloned(), field.clone())).collect()
}

/// See [`distinct_columns`].
pub fn columns_of(window: &Window) -> Vec<(Option<TableReference>, FieldRef)> {
    window.schema.iter().map(|(qualifier, field)| (qualifier.cloned(), field.clone())).collect()
}

/// An operator's result under the names that the columns of the node it stands for had.
///
/// # Errors
/// Of DataFusion.
pub fn result_of(
    columns: &[(Option<TableReference>, FieldRef)],
    leaf: &Arc<Leaf>,
    hidden: bool,
) -> DfResult<LogicalPlan> {
    let table = TableReference::bare("aggregate");
    let scan = LogicalPlanBuilder::scan(table.clone(), provider_as_source(leaf.table()), None)?.build()?;
    let column = |name: &str| Expr::Column(Column::new(Some(table.clone()), name));
    let mut exprs: Vec<Expr> = Vec::new();
    for (n, (qualifier, field)) in columns.iter().enumerate() {
        let name = format!("c{n}");
        let result = column(&name);
        // What is remembered has no dictionaries.
        let is = scan.schema().field_with_unqualified_name(&name)?.data_type();
        let result = if is == field.data_type() { result } else { cast(result, field.data_type().clone()) };
        exprs.push(result.alias_qualified(qualifier.clone(), field.name()));
    }
    if hidden {
        exprs.extend(retract::fields().iter().map(|f| column(f.name())));
    }
    LogicalPlanBuilder::from(scan).project(exprs)?.build()
}
