//! LogicalPlan → incremental plan.

use datafusion::logical_expr::LogicalPlan;

use crate::error::{Error, Result};
use crate::parser::OutputMode;

/// The incremental plan of a query in this mode, as a tree.
///
/// # Errors
/// A refusal of the mode table.
pub fn explain(_plan: &LogicalPlan, _mode: OutputMode) -> Result<String> {
    Err(Error::not_yet("EXPLAIN of a streaming query"))
}
