//! Statement → DataFusion's LogicalPlan: windows, watermarks, refusals.

use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::prelude::SessionContext;

pub use crate::catalog::diagnose;
use crate::error::{Error, Result};
use crate::parser::QueryText;

/// Plans a query over streams and tables. Streams stand in it as scans of [`crate::catalog`]'s stream tables, with
/// windows and watermarks as nodes of ours.
///
/// # Errors
/// Unknown names with the closest known one, wrong types, what no mode can run.
pub async fn plan_query(_state: &SessionState, _query: &QueryText) -> Result<LogicalPlan> {
    Err(Error::not_yet("queries"))
}

/// Adds our functions and table functions to a session.
pub fn register(_context: &SessionContext) {}

/// The plan of a bounded run over what the streams hold now: what SELECT in the shell runs.
pub fn bounded(_plan: LogicalPlan) -> Result<LogicalPlan> {
    Err(Error::not_yet("queries"))
}

/// Whether the plan reads a stream at all.
pub fn reads_stream(_plan: &LogicalPlan) -> bool {
    false
}

/// Whether the plan aggregates: UPDATE is then the default mode.
pub fn aggregates(_plan: &LogicalPlan) -> bool {
    false
}
