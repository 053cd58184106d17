//! A node that looks at event times as rows pass: it moves a watermark, or drops what is late.
//!
//! Late rows are dropped before any aggregation, so that they are counted as rows. No filter is pushed through.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::{Array, BooleanArray, Int64Array, RecordBatch};
use arrow::compute::filter_record_batch;
use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::DFSchemaRef;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{
    Expr, Extension, Filter, LogicalPlan, UserDefinedLogicalNode, UserDefinedLogicalNodeCore,
};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use datafusion::physical_planner::{ExtensionPlanner, PhysicalPlanner};
use futures::StreamExt;

use super::batch_cell::{BatchCell, Dropped, TimeStats};
use crate::delta::calendar::Lasts;
use crate::delta::time::{Unit, from_millis, millis_floor, time_values, unit_of};
use crate::planner::window_shape::{WindowShape, Windows};

/// What a tap does with the times it sees.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum TapKind {
    /// Moves the watermark of the input of this number.
    Watermark { input: usize, max_future_skew: Option<i64> },
    /// Drops what is late.
    Late(LateRule),
}

/// When a row is late, by its time in microseconds.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LateRule {
    /// The number of the operator in front of which it stands.
    pub operator: usize,
    /// What that operator's watermark is behind the query's, in milliseconds.
    pub lag: i64,
    /// How long what the time stands for lasts, in microseconds: not at all, or as long as the window it starts.
    pub lasts: Lasts,
    /// The time is the last instant of what it stands for: the end is one unit later.
    pub last_instant: bool,
    /// The windows that the time falls into; then the row is late when the last of them has ended.
    pub windows: Option<Windows>,
    /// A row without a time joins no window.
    pub drop_null: bool,
    /// Late rows are counted here; otherwise they were counted before.
    pub count: bool,
    /// COMPLETE: nothing is late.
    pub never_late: bool,
}

/// The tap in a logical plan.
#[derive(Clone)]
pub struct Tap {
    pub input: LogicalPlan,
    pub time: Expr,
    pub kind: TapKind,
    pub cell: Arc<BatchCell>,
}

impl Tap {
    /// The tap as a plan.
    pub fn plan(input: LogicalPlan, time: Expr, kind: TapKind, cell: &Arc<BatchCell>) -> LogicalPlan {
        LogicalPlan::Extension(Extension { node: Arc::new(Tap { input, time, kind, cell: cell.clone() }) })
    }
}

impl fmt::Debug for Tap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tap({:?})", self.kind)
    }
}

impl PartialEq for Tap {
    fn eq(&self, other: &Self) -> bool {
        self.input == other.input && self.time == other.time && self.kind == other.kind
    }
}

impl Eq for Tap {}

// Neither looks at the input: hashing and ordering a plan would compile all of its types here once more.
impl Hash for Tap {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.kind.hash(state);
    }
}

impl PartialOrd for Tap {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        (self == other).then_some(std::cmp::Ordering::Equal)
    }
}

impl UserDefinedLogicalNodeCore for Tap {
    fn name(&self) -> &str {
        match self.kind {
            TapKind::Watermark { .. } => "Watermark",
            TapKind::Late(_) => "DropLate",
        }
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        self.input.schema()
    }

    fn expressions(&self) -> Vec<Expr> {
        vec![self.time.clone()]
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}: {}", UserDefinedLogicalNodeCore::name(self), self.time)
    }

    fn with_exprs_and_inputs(&self, exprs: Vec<Expr>, mut inputs: Vec<LogicalPlan>) -> Result<Self> {
        match (exprs.into_iter().next(), inputs.pop()) {
            (Some(time), Some(input)) => Ok(Tap { input, time, ..self.clone() }),
            _ => datafusion::common::internal_err!("a tap has one time and one input"),
        }
    }

    fn necessary_children_exprs(&self, output_columns: &[usize]) -> Option<Vec<Vec<usize>>> {
        let mut columns = output_columns.to_vec();
        for column in self.time.column_refs() {
            columns.push(self.input.schema().maybe_index_of_column(column)?);
        }
        columns.sort_unstable();
        columns.dedup();
        Some(vec![columns])
    }
}

/// Puts filters that read no column back above the watermark that the optimizer has taken them through: it keeps those in their
/// place that read one, and a row that is left out moves the watermark too.
pub fn constants_above(plan: LogicalPlan) -> Result<LogicalPlan> {
    let lifted = plan.transform_up(|node| {
        let LogicalPlan::Extension(extension) = &node else { return Ok(Transformed::no(node)) };
        let watermark = extension.node.as_any().downcast_ref::<Tap>();
        let below = watermark.filter(|tap| matches!(tap.kind, TapKind::Watermark { .. })).map(|tap| (tap, &tap.input));
        let Some((tap, LogicalPlan::Filter(filter))) = below else { return Ok(Transformed::no(node)) };
        if !filter.predicate.column_refs().is_empty() {
            return Ok(Transformed::no(node));
        }
        let tap = Tap { input: filter.input.as_ref().clone(), ..tap.clone() };
        let tap = LogicalPlan::Extension(Extension { node: Arc::new(tap) });
        Ok(Transformed::yes(LogicalPlan::Filter(Filter::try_new(filter.predicate.clone(), Arc::new(tap))?)))
    });
    lifted.map(|lifted| lifted.data)
}

/// Plans taps.
pub struct TapPlanner;

#[async_trait]
impl ExtensionPlanner for TapPlanner {
    async fn plan_extension(
        &self,
        planner: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        logical_inputs: &[&LogicalPlan],
        physical_inputs: &[Arc<dyn ExecutionPlan>],
        session: &dyn Session,
        context: &datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some(tap) = node.as_any().downcast_ref::<Tap>() else { return Ok(None) };
        let time = planner.create_physical_expr(&tap.time, logical_inputs[0].schema(), session, context)?;
        let input = physical_inputs[0].clone();
        let (kind, cell) = (tap.kind.clone(), tap.cell.clone());
        Ok(Some(Arc::new(TapExec { input, time, kind, cell, passed: Arc::default() })))
    }
}

/// The tap in a physical plan: its input's properties are its own.
pub struct TapExec {
    input: Arc<dyn ExecutionPlan>,
    time: Arc<dyn PhysicalExpr>,
    kind: TapKind,
    cell: Arc<BatchCell>,
    /// Rows that it has let pass in this run.
    passed: Arc<AtomicU64>,
}

impl TapExec {
    /// Rows that it has let pass in this run: a plan is made anew for each.
    pub fn passed(&self) -> u64 {
        self.passed.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for TapExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TapExec({:?})", self.kind)
    }
}

impl DisplayAs for TapExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        match self.kind {
            TapKind::Watermark { .. } => write!(f, "WatermarkExec: {}", self.time),
            TapKind::Late(_) => write!(f, "DropLateExec: {}", self.time),
        }
    }
}

impl ExecutionPlan for TapExec {
    fn name(&self) -> &str {
        "TapExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        f(&self.time)
    }

    fn with_new_children(self: Arc<Self>, mut children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(input) = children.pop() else { return datafusion::common::internal_err!("a tap has one input") };
        let (time, kind, cell) = (self.time.clone(), self.kind.clone(), self.cell.clone());
        Ok(Arc::new(TapExec { input, time, kind, cell, passed: Arc::default() }))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let input = self.input.execute(partition, context)?;
        let work = Work { time: self.time.clone(), kind: self.kind.clone(), cell: self.cell.clone() };
        let passed = self.passed.clone();
        let stream = input.map(move |batch| {
            let batch = work.pass(batch?)?;
            passed.fetch_add(batch.num_rows() as u64, Ordering::Relaxed);
            Ok(batch)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.input.schema(), stream)))
    }
}

struct Work {
    time: Arc<dyn PhysicalExpr>,
    kind: TapKind,
    cell: Arc<BatchCell>,
}

impl Work {
    fn pass(&self, batch: RecordBatch) -> Result<RecordBatch> {
        let times = self.time.evaluate(&batch)?.into_array(batch.num_rows())?;
        let unit = unit_of(times.data_type())?;
        let times = time_values(&times)?;
        match &self.kind {
            TapKind::Watermark { input, max_future_skew } => {
                let horizon = max_future_skew.map(|skew| self.cell.timestamp().saturating_add(skew / 1_000));
                self.cell.saw(*input, &stats(&times, unit, horizon));
                Ok(batch)
            }
            TapKind::Late(rule) => self.drop_late(batch, &times, unit, rule),
        }
    }

    fn drop_late(&self, batch: RecordBatch, times: &Int64Array, unit: Unit, rule: &LateRule) -> Result<RecordBatch> {
        let watermark = if rule.never_late { None } else { self.cell.info().behind(rule.lag).late_watermark };
        let nulls = if rule.drop_null { times.null_count() } else { 0 };
        let null_time_rows = nulls as u64;
        if watermark.is_none() {
            self.cell.dropped(rule.operator, Dropped { null_time_rows, ..Dropped::default() });
            if nulls == 0 {
                return Ok(batch);
            }
        }
        let watermark = watermark.map(|w| from_millis(w, unit));
        let judge = Judge::of(rule, unit)?;
        let (mut late_rows, mut late_contributions) = (0u64, 0u64);
        let mut judge = |time: i64| {
            let Some(watermark) = watermark else { return true };
            let (late, closed) = judge.of_row(time, watermark);
            late_rows += u64::from(late);
            late_contributions += closed;
            !late
        };
        let keep: BooleanArray = times.iter().map(|time| Some(time.map_or(!rule.drop_null, &mut judge))).collect();
        if rule.count && late_rows > 0 {
            let late = keep.iter().zip(times).map(|(keep, time)| Some(keep == Some(false) && time.is_some()));
            self.cell.keep_late(rule.operator, &batch, &late.collect())?;
        }
        if watermark.is_some() {
            let counted = if rule.count { (late_rows, late_contributions) } else { (0, 0) };
            let (late_rows, late_contributions) = counted;
            self.cell.dropped(rule.operator, Dropped { late_rows, late_contributions, null_time_rows });
        }
        if late_rows == 0 && nulls == 0 { Ok(batch) } else { Ok(filter_record_batch(&batch, &keep)?) }
    }
}

/// A [`LateRule`] in the unit of its times.
struct Judge {
    unit: Unit,
    windows: Option<Windows>,
    lasts: Lasts,
}

impl Judge {
    fn of(rule: &LateRule, unit: Unit) -> Result<Self> {
        let in_unit = |shape: WindowShape| shape.in_unit(unit);
        let windows = match rule.windows {
            Some(Windows::Sliding(shape)) => Some(Windows::Sliding(in_unit(shape)?)),
            Some(Windows::Cumulating(shape)) => Some(Windows::Cumulating(in_unit(shape)?)),
            other => other,
        };
        let lasts = match rule.lasts {
            Lasts::Units(0) => Lasts::Units(i64::from(rule.last_instant)),
            Lasts::Units(size) => Lasts::Units(in_unit(WindowShape { size, slide: size, offset: 0 })?.size),
            calendar => calendar,
        };
        Ok(Judge { unit, windows, lasts })
    }

    /// Whether a row is late, and how many of its contributions are.
    fn of_row(&self, time: i64, watermark: i64) -> (bool, u64) {
        let shape = match self.windows {
            None => return self.once(&self.lasts, time, watermark),
            Some(Windows::Calendar(calendar)) if calendar.stretches > 1 => {
                // What is newer than the watermark is in no window that has ended.
                let all = if time <= watermark { calendar.all_in(time, self.unit) } else { None };
                let ended = all.iter().flatten().filter(|(_, end)| *end <= watermark).count();
                return (ended > 0 && ended as i64 == calendar.stretches, ended as u64);
            }
            Some(Windows::Calendar(calendar)) => return self.once(&Lasts::Calendar(calendar), time, watermark),
            Some(Windows::Cumulating(shape)) => {
                let Some((first, last)) = shape.ends(time) else { return (false, 0) };
                let closed = if first > watermark { 0 } else { (watermark.min(last) - first) / shape.slide + 1 };
                return (last <= watermark, closed.unsigned_abs());
            }
            Some(Windows::Sliding(shape)) => shape,
        };
        let Some(last) = shape.last_start(time) else { return (false, 0) };
        if last.saturating_sub(shape.size) > watermark {
            return (false, 0); // not even the oldest window that could hold the time has ended
        }
        let (mut start, mut closed, mut open) = (last, 0, 0);
        while start.saturating_add(shape.size) > time {
            if start.saturating_add(shape.size) <= watermark {
                closed += 1
            } else {
                open += 1
            }
            start = start.saturating_sub(shape.slide);
        }
        (open == 0, closed)
    }

    /// Of what begins at a time, or is a stretch of the calendar around it.
    fn once(&self, lasts: &Lasts, time: i64, watermark: i64) -> (bool, u64) {
        // What is newer than the watermark has not ended.
        let late = time <= watermark && lasts.end(time, self.unit) <= watermark;
        (late, u64::from(late))
    }
}

fn stats(times: &Int64Array, unit: Unit, horizon: Option<i64>) -> TimeStats {
    let mut stats = TimeStats::default();
    let values = times.iter().flatten();
    match horizon {
        None => {
            let (mut max, mut min) = (i64::MIN, i64::MAX);
            for time in values {
                max = max.max(time);
                min = min.min(time);
                stats.sum += i128::from(time);
                stats.rows += 1;
            }
            if stats.rows > 0 {
                stats.max = Some(millis_floor(max, unit));
                stats.min = Some(millis_floor(min, unit));
                stats.sum = sum_millis(stats.sum, unit);
            }
        }
        Some(horizon) => {
            for time in values.map(|time| millis_floor(time, unit)) {
                if time > horizon {
                    stats.future_rows += 1;
                    continue;
                }
                stats.add(&TimeStats {
                    max: Some(time),
                    min: Some(time),
                    sum: i128::from(time),
                    rows: 1,
                    future_rows: 0,
                });
            }
        }
    }
    stats
}

fn sum_millis(sum: i128, unit: Unit) -> i128 {
    match unit {
        Unit::Nanos => sum / 1_000_000,
        Unit::Micros => sum / 1_000,
        Unit::Millis => sum,
        Unit::Seconds => sum * 1_000,
        Unit::Days => sum * 86_400_000,
    }
}
