//! SELECT as a bounded query, and EXPLAIN.

use datafusion::execution::SessionState;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder};
use datafusion::physical_plan::displayable;

use super::{Answer, Session};
use crate::error::{Error, Result};
use crate::incremental::{self, IncrementalPlan};
use crate::parser::{OutputMode, QueryText};
use crate::planner;

impl Session {
    /// The rows of a query. A stream in it is read as far as it goes now.
    pub(super) fn select(&self, query: &QueryText) -> Result<Answer> {
        let state = self.state();
        let plan = self.plan_bounded(&state, query)?;
        let asked = query.ast.clone();
        let better = move |error| planner::hints::better(error, &state, &asked);
        let state = self.state();
        // Some errors of a statement show only when it runs.
        match self.rows(&state, &plan).map_err(&better)? {
            Answer::Rows { schema, rows, notices } => {
                Ok(Answer::Rows { schema, rows: Box::new(rows.map(move |batch| batch.map_err(&better))), notices })
            }
            answer => Ok(answer),
        }
    }

    /// The plan of a query: the incremental one where it reads a stream. ANALYZE runs it, bounded, and measures.
    pub(super) fn explain(&self, query: &QueryText, analyze: bool, verbose: bool) -> Result<Answer> {
        let state = self.state();
        let plan = self.plan(&state, query)?;
        if analyze {
            return self.analyze(&state, super::context::bounded(plan)?, verbose);
        }
        if planner::reads_stream(&plan) {
            return self.explain_streaming(plan);
        }
        self.explain_static(&state, &super::context::bounded(plan)?, verbose)
    }

    /// What bounds the states of a query.
    pub(super) fn explain_state(&self, query: &QueryText) -> Result<Answer> {
        let plan = self.plan(&self.state(), query)?;
        let states = match planner::reads_stream(&plan) {
            true => incremental::explain_state(&self.streaming(plan)?, None),
            false => Vec::new(),
        };
        Ok(Answer::Text(incremental::state_text(&states, |_| None)))
    }

    fn explain_streaming(&self, plan: LogicalPlan) -> Result<Answer> {
        let plan = self.streaming(plan)?;
        Ok(Answer::Text(incremental::explain(&plan, &self.console().traits.name).trim_end().to_string()))
    }

    /// What START QUERY … INTO CONSOLE would run.
    fn streaming(&self, plan: LogicalPlan) -> Result<IncrementalPlan> {
        let (mode, target) = (default_mode(&plan), self.console().traits);
        let (partitions, state) = (super::lock(&self.settings).partitions, self.state());
        self.block_on(async { incremental::plan(&state, plan, mode, &target, partitions).await })
    }

    fn explain_static(&self, state: &SessionState, plan: &LogicalPlan, verbose: bool) -> Result<Answer> {
        let physical = self.block_on(async { state.create_physical_plan(plan).await.map_err(Error::from) })?;
        let physical = displayable(physical.as_ref()).indent(verbose).to_string();
        if !verbose {
            return Ok(Answer::Text(physical.trim_end().to_string()));
        }
        let optimized = state.optimize(plan)?;
        Ok(Answer::Text(format!(
            "logical plan\n{}\n\noptimized logical plan\n{}\n\nphysical plan\n{}",
            plan.display_indent(),
            optimized.display_indent(),
            physical.trim_end()
        )))
    }

    fn analyze(&self, state: &SessionState, plan: LogicalPlan, verbose: bool) -> Result<Answer> {
        use arrow::array::AsArray;
        let plan = LogicalPlanBuilder::from(plan).explain(verbose, true).and_then(|b| b.build())?;
        let mut text = String::new();
        for batch in self.collect(state, &plan)? {
            // Two columns: which plan, and the plan.
            let Some(plans) = batch.columns().get(1).and_then(|c| c.as_string_opt::<i32>()) else { continue };
            text.extend(plans.iter().flatten().map(|plan| format!("{}\n", plan.trim_end())));
        }
        Ok(Answer::Text(text.trim_end().to_string()))
    }
}

/// APPEND without aggregation, UPDATE with.
pub(super) fn default_mode(plan: &LogicalPlan) -> OutputMode {
    if planner::aggregates(plan) { OutputMode::Update } else { OutputMode::Append }
}
