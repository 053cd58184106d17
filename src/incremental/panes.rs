//! Overlapping windows, counted in panes: partial states of a pane are handed to every window that holds it.
//!
//! ```text
//! windows of 10 s every 2 s; panes of 2 s            pane 08 → windows that begin at 00, 02, 04, 06, 08
//! windows of 2 s that grow to 10 s; panes of 2 s     pane 04 → windows that end at 06, 08, 10
//! ```
//! Rows are aggregated once, by pane; only the few partial rows are spread over windows.

use std::fmt;
use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, Partitioning, PlanProperties,
};
use datafusion::scalar::ScalarValue;
use futures::StreamExt;

use super::batch_cell::BatchCell;
use crate::delta::calendar::Lasts;
use crate::delta::time::{from_millis, time_values, unit_of};
use crate::planner::window_functions::{CALENDAR_STARTS, CUMULATE_ENDS, STARTS, calendar_constants};
use crate::planner::window_shape::{WindowShape, Windows};

/// The panes of windows that overlap: as long as the greatest common divisor of size and slide, as a step, or as a stretch of the
/// calendar.
pub fn pane(windows: Windows) -> Option<Windows> {
    let of = |size: i64, offset: i64| Windows::Sliding(WindowShape { size, slide: size, offset: offset % size });
    windows.overlaps().then(|| match windows {
        Windows::Sliding(shape) => of(gcd(shape.size, shape.slide), shape.offset),
        Windows::Cumulating(shape) => of(shape.slide, shape.offset),
        Windows::Calendar(calendar) => Windows::Calendar(calendar.pane()),
    })
}

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Spreads partial rows over the windows that hold their pane; windows that have ended are left out.
pub struct PanesExec {
    input: Arc<dyn ExecutionPlan>,
    /// The column that holds the pane's start, and in the output what the window is known by.
    column: usize,
    windows: Windows,
    cell: Arc<BatchCell>,
    /// As of [`super::tap::LateRule`].
    lag: i64,
    never_late: bool,
    properties: Arc<PlanProperties>,
}

impl PanesExec {
    /// Over a partial aggregation whose key `column` is the pane's start.
    pub fn new(
        input: Arc<dyn ExecutionPlan>,
        column: usize,
        windows: Windows,
        cell: Arc<BatchCell>,
        lag: i64,
        never_late: bool,
    ) -> Self {
        let fields: Vec<Field> = input.schema().fields().iter().map(|f| f.as_ref().clone()).collect();
        let schema = Arc::new(Schema::new(fields));
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(input.output_partitioning().partition_count()),
            input.pipeline_behavior(),
            input.boundedness(),
        );
        PanesExec { input, column, windows, cell, lag, never_late, properties: Arc::new(properties) }
    }
}

impl fmt::Debug for PanesExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PanesExec({:?})", self.windows)
    }
}

impl DisplayAs for PanesExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        let text = crate::planner::interval_text;
        match self.windows {
            Windows::Sliding(shape) => {
                write!(f, "PanesExec: windows of {} every {}", text(shape.size), text(shape.slide))?
            }
            Windows::Cumulating(shape) => {
                write!(f, "PanesExec: windows of {} up to {}", text(shape.slide), text(shape.size))?
            }
            Windows::Calendar(calendar) => write!(f, "PanesExec: windows of {calendar}")?,
        }
        match pane(self.windows) {
            Some(Windows::Calendar(pane)) => write!(f, " from panes of {pane}"),
            Some(Windows::Sliding(pane) | Windows::Cumulating(pane)) => write!(f, " from panes of {}", text(pane.size)),
            None => Ok(()),
        }
    }
}

impl ExecutionPlan for PanesExec {
    fn name(&self) -> &str {
        "PanesExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, mut children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(input) = children.pop() else { return datafusion::common::internal_err!("panes have one input") };
        Ok(Arc::new(PanesExec::new(input, self.column, self.windows, self.cell.clone(), self.lag, self.never_late)))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let input = self.input.execute(partition, context)?;
        let (column, windows, schema) = (self.column, self.windows, self.schema());
        let late = if self.never_late { None } else { self.cell.info().behind(self.lag).late_watermark };
        let out = schema.clone();
        let stream = input.map(move |batch| spread(&batch?, column, windows, late, &out));
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, stream)))
    }
}

fn lengths(shape: WindowShape) -> Vec<ScalarValue> {
    [shape.size, shape.slide, shape.offset].map(|micros| ScalarValue::Int64(Some(micros))).to_vec()
}

fn spread(
    batch: &RecordBatch,
    column: usize,
    windows: Windows,
    late: Option<i64>,
    schema: &SchemaRef,
) -> Result<RecordBatch> {
    let panes = batch.column(column);
    let unit = unit_of(panes.data_type())?;
    let (function, constants, lasts) = match windows {
        Windows::Sliding(shape) => (&STARTS, lengths(shape), windows.lasts_in(unit)?),
        // What they are known by is the end.
        Windows::Cumulating(shape) => (&CUMULATE_ENDS, lengths(shape), Lasts::NOTHING),
        Windows::Calendar(calendar) => (&CALENDAR_STARTS, calendar_constants(&calendar), windows.lasts_in(unit)?),
    };
    let args =
        std::iter::once(ColumnarValue::Array(panes.clone())).chain(constants.into_iter().map(ColumnarValue::Scalar));
    let args = ScalarFunctionArgs {
        args: args.collect(),
        arg_fields: Vec::new(),
        number_rows: batch.num_rows(),
        return_field: Arc::new(Field::new("starts", function.return_type(&[panes.data_type().clone()])?, true)),
        config_options: Arc::default(),
    };
    let known = function.invoke_with_args(args)?.into_array(batch.num_rows())?;
    let known = known.as_list::<i32>();
    let values = time_values(known.values())?;
    let late = late.map(|w| from_millis(w, unit));
    let mut rows = Vec::with_capacity(values.len());
    let mut known_by = Vec::with_capacity(values.len());
    for row in 0..batch.num_rows() {
        let (from, to) = (known.value_offsets()[row], known.value_offsets()[row + 1]);
        for at in from..to {
            if late.is_none_or(|late| lasts.end(values.value(at as usize), unit) > late) {
                rows.push(row as u32);
                known_by.push(at as u32);
            }
        }
    }
    let (rows, known_by) = (UInt32Array::from(rows), UInt32Array::from(known_by));
    let mut columns = batch.columns().iter().map(|c| take(c, &rows, None)).collect::<Result<Vec<_>, _>>()?;
    columns[column] = take(known.values(), &known_by, None)?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    Ok(RecordBatch::try_new_with_options(schema.clone(), columns, &options)?)
}
