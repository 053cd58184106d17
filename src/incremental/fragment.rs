//! A fragment: a part of a plan that needs no memory between batches, made once and run for each.
//!
//! It is kept twice: planned for one partition, which costs little to run and keeps the order of rows, and planned for
//! all of them. The size of a batch decides which is run.

use std::any::Any;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::execution::{SessionState, TaskContext};
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::execution_plan::reset_plan_states;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, displayable};
use datafusion::physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner};
use futures::StreamExt;

use super::passed::Passed;
use super::planning::Planning;
use super::tap::{TapPlanner, constants_above};
use crate::error::{Error, Result};
use crate::planner::leaf::LeafExec;

/// A planned fragment.
pub struct Fragment {
    one: Arc<dyn ExecutionPlan>,
    many: Option<Arc<dyn ExecutionPlan>>,
    context_one: Arc<TaskContext>,
    context_many: Arc<TaskContext>,
    /// What the last run let pass, until it is taken.
    passed: Mutex<Option<Passed>>,
}

/// A change to a physical plan once it is made.
pub type Finish = dyn Fn(Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> + Send + Sync;

impl Fragment {
    /// Plans a fragment. `optimize`: run the logical optimizer first; `ordered`: never in parallel. `finish` has the last word.
    pub async fn plan(
        planning: &Planning<'_>,
        plan: &LogicalPlan,
        partitions: usize,
        ordered: bool,
        finish: &Finish,
    ) -> Result<Self> {
        let one = finish(physical(&planning.one.state, plan).await?)?;
        let many = partitions > 1 && !ordered;
        let many = if many { Some(finish(physical(&planning.many.state, plan).await?)?) } else { None };
        let (context_one, context_many) = (planning.one.context.clone(), planning.many.context.clone());
        Ok(Fragment { one, many, context_one, context_many, passed: Mutex::default() })
    }

    /// The columns it gives.
    pub fn schema(&self) -> SchemaRef {
        self.one.schema()
    }

    /// The plan for one partition.
    pub fn root(&self) -> &Arc<dyn ExecutionPlan> {
        &self.one
    }

    /// The streams and operators whose rows it reads, each once, by their names.
    pub fn reads(&self) -> Vec<String> {
        let (mut names, mut nodes) = (BTreeSet::new(), vec![&self.one]);
        while let Some(node) = nodes.pop() {
            if let Some(leaf) = (node.as_ref() as &dyn Any).downcast_ref::<LeafExec>() {
                names.insert(leaf.name().to_string());
            }
            nodes.extend(node.children());
        }
        names.into_iter().collect()
    }

    /// The plan as text, for EXPLAIN.
    pub fn explain(&self, indent: usize) -> String {
        let text = displayable(self.many.as_ref().unwrap_or(&self.one).as_ref()).indent(false).to_string();
        text.lines().map(|line| format!("{:indent$}{line}\n", "")).collect()
    }

    /// How many partitions a run gives.
    pub fn partitions(&self, parallel: bool) -> usize {
        match &self.many {
            Some(many) if parallel => many.output_partitioning().partition_count(),
            _ => self.one.output_partitioning().partition_count(),
        }
    }

    /// Runs the fragment over what its leaves hold; `take` is handed each batch as it comes, with its partition's number.
    /// In one partition the batches come in order, on the calling thread.
    pub fn run<F>(&self, runtime: &tokio::runtime::Handle, parallel: bool, take: F) -> Result<()>
    where
        F: Fn(usize, RecordBatch) -> Result<()> + Send + Sync + 'static,
    {
        let plan = match &self.many {
            Some(many) if parallel => {
                let plan = reset_plan_states(many.clone())?;
                run_parallel(runtime, &plan, &self.context_many, take)?;
                plan
            }
            _ => {
                let plan = reset_plan_states(self.one.clone())?;
                let context = &self.context_one;
                runtime.block_on(async {
                    for partition in 0..plan.output_partitioning().partition_count() {
                        let mut stream = plan.execute(partition, context.clone())?;
                        while let Some(batch) = stream.next().await {
                            take(partition, batch?)?;
                        }
                    }
                    Ok::<(), Error>(())
                })?;
                plan
            }
        };
        *self.passed.lock().unwrap_or_else(PoisonError::into_inner) = Some(Passed::of(&plan));
        Ok(())
    }

    /// What the last run let pass, once.
    pub fn take_passed(&self) -> Option<Passed> {
        self.passed.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

fn run_parallel<F>(
    runtime: &tokio::runtime::Handle,
    plan: &Arc<dyn ExecutionPlan>,
    context: &Arc<TaskContext>,
    take: F,
) -> Result<()>
where
    F: Fn(usize, RecordBatch) -> Result<()> + Send + Sync + 'static,
{
    let take = Arc::new(take);
    runtime.block_on(async {
        let mut tasks = tokio::task::JoinSet::new();
        for partition in 0..plan.output_partitioning().partition_count() {
            let mut stream = plan.execute(partition, context.clone())?;
            let take = take.clone();
            tasks.spawn(async move {
                while let Some(batch) = stream.next().await {
                    take(partition, batch?)?;
                }
                Ok::<(), Error>(())
            });
        }
        while let Some(ended) = tasks.join_next().await {
            ended.map_err(|e| Error::internal(format!("a fragment's task failed: {e}")))??;
        }
        Ok(())
    })
}

/// Optimizes what is below an aggregation, or all of it, and makes the physical plan.
async fn physical(state: &SessionState, plan: &LogicalPlan) -> Result<Arc<dyn ExecutionPlan>> {
    let plan = match plan {
        // The aggregation keeps its form: its keys and states are what the operator remembers.
        LogicalPlan::Aggregate(aggregate) => {
            let input = constants_above(state.optimize(&aggregate.input)?)?;
            plan.with_new_exprs(simplified(state, aggregate)?, vec![input])?
        }
        other => constants_above(state.optimize(other)?)?,
    };
    let planner = DefaultPhysicalPlanner::with_extension_planners(vec![Arc::new(TapPlanner)]);
    Ok(planner.create_physical_plan(&plan, state).await?)
}

/// An aggregation's keys and calls with what they read simplified, each under the name it has: there are functions that
/// can't be run before (`coalesce` becomes a CASE).
fn simplified(state: &SessionState, aggregate: &Aggregate) -> Result<Vec<Expr>> {
    let context = SimplifyContext::builder().with_schema(aggregate.input.schema().clone());
    let simplifier = ExprSimplifier::new(context.with_config_options(state.config_options().clone()).build());
    let exprs = aggregate.group_expr.iter().chain(&aggregate.aggr_expr);
    let one = |expr: &Expr| {
        let (qualifier, name) = expr.qualified_name();
        let new = simplify(expr.clone(), &simplifier)?;
        let same = new.qualified_name() == (qualifier.clone(), name.clone());
        Ok(if same { new } else { new.alias_qualified(qualifier, name) })
    };
    exprs.map(one).collect()
}

fn simplify(expr: Expr, simplifier: &ExprSimplifier) -> Result<Expr> {
    Ok(match expr {
        Expr::Alias(mut alias) => {
            alias.expr = Box::new(simplify(*alias.expr, simplifier)?);
            Expr::Alias(alias)
        }
        // The call stays what it is; its arguments, FILTER and ORDER BY don't.
        Expr::AggregateFunction(_) => expr.map_children(|e| Ok(Transformed::yes(simplifier.simplify(e)?)))?.data,
        other => simplifier.simplify(other)?,
    })
}

/// The first half of an aggregation: the part of a plan that makes partial states.
pub fn partial_of(plan: &Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let mut node = plan;
    loop {
        if let Some(aggregate) = (node.as_ref() as &dyn std::any::Any).downcast_ref::<AggregateExec>()
            && *aggregate.mode() == AggregateMode::Partial
        {
            return Ok(node.clone());
        }
        match node.children().as_slice() {
            [child] => node = child,
            _ => return Err(Error::internal("the aggregation has no partial half")),
        }
    }
}

/// The aggregation that [`partial_of`] found.
pub fn as_aggregate(plan: &Arc<dyn ExecutionPlan>) -> Result<&AggregateExec> {
    let found = (plan.as_ref() as &dyn std::any::Any).downcast_ref::<AggregateExec>();
    found.ok_or_else(|| Error::internal("not an aggregation"))
}
