//! What the fragments of a plan are planned and run with. It is made once a plan: a session knows hundreds of functions,
//! and a state that is made for each fragment registers them all again.

use std::ops::Deref;
use std::sync::Arc;

use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::execution::{SessionState, TaskContext};

/// Optimizer rules that take a stream, or the operator over it, out of a plan; and two that take the fields of a struct out of it
/// further down, and name a column twice where the struct is needed as well.
const HARMFUL: &[&str] = &[
    "single_distinct_aggregation_to_group_by",
    "replace_distinct_aggregate",
    "eliminate_filter",
    "propagate_empty_relation",
    "extract_leaf_expressions",
    "push_down_leaf_projections",
];

/// Physical rules that merge the two halves of an aggregation, of which only the first is the fragment's.
const HARMFUL_PHYSICAL: &[&str] =
    &["CombinePartialFinalAggregate", "aggregate_statistics", "LimitedDistinctAggregation", "TopKAggregation"];

/// The session's state (which it stands for wherever one is asked for), and what fragments have in its place.
pub struct Planning<'a> {
    base: &'a SessionState,
    /// For one partition.
    pub(super) one: Side,
    /// For all of them.
    pub(super) many: Side,
}

/// The state that a fragment is planned with, and the context that it runs in.
pub(super) struct Side {
    pub state: SessionState,
    pub context: Arc<TaskContext>,
}

impl<'a> Planning<'a> {
    /// For a plan over so many partitions.
    pub fn new(base: &'a SessionState, partitions: usize) -> Self {
        let one = Side::of(fragment_state(base, 1));
        let many = Side::of(fragment_state(base, partitions));
        Planning { base, one, many }
    }
}

impl Side {
    fn of(state: SessionState) -> Self {
        let context = state.task_ctx();
        Side { state, context }
    }
}

impl Deref for Planning<'_> {
    type Target = SessionState;

    fn deref(&self) -> &SessionState {
        self.base
    }
}

/// The session's functions and tables, without the harmful rules.
fn fragment_state(base: &SessionState, partitions: usize) -> SessionState {
    let rules = base.optimizers().iter().filter(|r| !HARMFUL.contains(&r.name())).cloned().collect();
    let physical =
        base.physical_optimizers().iter().filter(|r| !HARMFUL_PHYSICAL.contains(&r.name())).cloned().collect();
    // A state that is built makes an empty default catalog unless told not to, in place of the session's.
    let config = base.config().clone().with_create_default_catalog_and_schema(false);
    let mut config = config.with_target_partitions(partitions);
    let options = config.options_mut();
    options.optimizer.enable_dynamic_filter_pushdown = false;
    options.optimizer.enable_physical_uncorrelated_scalar_subquery = false;
    options.optimizer.repartition_file_scans = partitions > 1;
    SessionStateBuilder::new_from_existing(base.clone())
        .with_config(config)
        .with_optimizer_rules(rules)
        .with_physical_optimizer_rules(physical)
        .build()
}
