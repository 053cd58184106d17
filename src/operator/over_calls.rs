//! What functions make of the rows of one partition, over their frames.
//!
//! Window functions and frames are DataFusion's. An aggregate over a frame that moves takes rows out again only where that is
//! exact; otherwise each frame is computed anew, so that neither NaN nor rounding stays behind, and it does not matter how
//! rows were split into batches.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, UInt64Array};
use arrow::compute::{SortOptions, filter, prep_null_mask_filter};
use arrow::datatypes::{DataType, UInt64Type};
use datafusion::logical_expr::window_state::WindowFrameContext;
use datafusion::logical_expr::{Accumulator, WindowFrame};
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::{PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::WindowExpr;
use datafusion::scalar::ScalarValue;

use super::top_index::Rank;
use crate::error::{Error, Result};

/// A function of an OVER.
pub enum Call {
    /// One of DataFusion's window functions, over the rows that are held.
    Window(Arc<dyn WindowExpr>),
    /// A number that counts on from batch to batch.
    Number(Arc<dyn WindowExpr>, Rank),
    /// An aggregate over frames of the rows that are held.
    Framed(Framed),
    /// An aggregate over all rows up to each, whose partial state is remembered.
    Running(Framed),
}

/// An aggregate over frames.
pub struct Framed {
    function: Arc<AggregateFunctionExpr>,
    filter: Option<Arc<dyn PhysicalExpr>>,
    frame: Arc<WindowFrame>,
    /// Rows that leave a frame can be taken out exactly.
    slides: bool,
}

/// The rows of one partition, as far as they can be seen, and which of them are to be computed.
pub struct Seen<'a> {
    pub rows: &'a RecordBatch,
    pub of: Range<usize>,
    /// What they are ordered by.
    pub order_by: &'a [PhysicalSortExpr],
    /// How many rows and how many places of the order were before, for numbers that count on.
    pub rows_before: u64,
    pub places_before: u64,
}

impl Framed {
    /// Of a function whose arguments are columns of the rows.
    ///
    /// # Errors
    /// Of DataFusion.
    pub fn new(
        function: Arc<AggregateFunctionExpr>,
        filter: Option<Arc<dyn PhysicalExpr>>,
        frame: Arc<WindowFrame>,
    ) -> Result<Self> {
        let exact = function.state_fields()?.iter().all(|state| is_exact(state.data_type()));
        let slides = exact && !frame.start_bound.is_unbounded() && function.create_sliding_accumulator().is_ok();
        Ok(Framed { function, filter, frame, slides })
    }

    /// The function.
    pub fn function(&self) -> &Arc<AggregateFunctionExpr> {
        &self.function
    }

    /// The function, having seen what is told in its partial state.
    ///
    /// # Errors
    /// Of DataFusion.
    pub fn resumed(&self, state: &[ArrayRef]) -> Result<Box<dyn Accumulator>> {
        let mut accumulator = self.function.create_accumulator()?;
        if !state.is_empty() {
            accumulator.merge_batch(state)?;
        }
        Ok(accumulator)
    }

    fn fresh(&self) -> Result<Box<dyn Accumulator>> {
        let made =
            if self.slides { self.function.create_sliding_accumulator() } else { self.function.create_accumulator() };
        made.map_err(Error::from)
    }

    /// Adds the values of the rows that are to be computed. `seen_before`: the accumulator of a function that runs on, which
    /// has seen all rows before these; then they are the only ones.
    ///
    /// # Errors
    /// Of what it computes.
    pub fn compute(
        &self,
        seen: &Seen<'_>,
        seen_before: Option<&mut Box<dyn Accumulator>>,
        out: &mut Vec<ScalarValue>,
    ) -> Result<()> {
        let length = seen.rows.num_rows();
        let evaluate = |expr: &Arc<dyn PhysicalExpr>| expr.evaluate(seen.rows)?.into_array(length);
        let args: Vec<ArrayRef> =
            self.function.expressions().iter().map(evaluate).collect::<datafusion::error::Result<_>>()?;
        let mask = self.filter.as_ref().map(evaluate).transpose()?;
        let mask = mask.map(|mask| mask_of(&mask)).transpose()?;
        let order: Vec<ArrayRef> =
            seen.order_by.iter().map(|by| evaluate(&by.expr)).collect::<datafusion::error::Result<_>>()?;
        let options: Vec<SortOptions> = seen.order_by.iter().map(|by| by.options).collect();
        let rows = |range: Range<usize>| values(&args, mask.as_ref(), range);
        let mut own = self.fresh()?;
        let runs_on = seen_before.is_some();
        let accumulator = seen_before.unwrap_or(&mut own);
        let mut frames = WindowFrameContext::new(self.frame.clone(), options);
        let (mut last, mut held, mut value) = (0..0, runs_on.then_some(0..0), None);
        for row in seen.of.clone() {
            let range = frames.calculate_range(&order, &last, length, row)?;
            last = range.clone();
            if range.start >= range.end {
                out.push(self.function.default_value(self.function.field().data_type())?);
                continue;
            }
            match held.take() {
                Some(held) if held == range => {}
                Some(held) if held.end <= range.end && (held.start == range.start || self.reaches(&held, &range)) => {
                    value = None;
                    if held.end < range.end {
                        accumulator.update_batch(&rows(held.end..range.end)?)?;
                    }
                    if held.start < range.start {
                        accumulator.retract_batch(&rows(held.start..range.start)?)?;
                    }
                }
                _ => {
                    value = None;
                    *accumulator = self.fresh()?;
                    accumulator.update_batch(&rows(range.clone())?)?;
                }
            }
            held = Some(range);
            let now = match value.take() {
                Some(value) => value,
                None => accumulator.evaluate()?,
            };
            out.push(now.clone());
            value = Some(now);
        }
        Ok(())
    }

    /// Whether a frame is made of the one before by adding and taking out.
    fn reaches(&self, held: &Range<usize>, range: &Range<usize>) -> bool {
        self.slides && held.start <= range.start && range.start <= held.end
    }
}

/// The values of a window function for the rows that are to be computed.
///
/// # Errors
/// Of what it computes.
pub fn window_values(window: &Arc<dyn WindowExpr>, number: Option<Rank>, seen: &Seen<'_>) -> Result<ArrayRef> {
    let length = seen.of.end - seen.of.start;
    let Some(rank) = number else {
        return Ok(window.evaluate(seen.rows)?.slice(seen.of.start, length));
    };
    let numbers = window.evaluate(&seen.rows.slice(seen.of.start, length))?;
    let before = if rank == Rank::DenseRank { seen.places_before } else { seen.rows_before };
    let numbers = numbers.as_primitive_opt::<UInt64Type>().ok_or_else(|| Error::internal("a rank is no number"))?;
    Ok(Arc::new(numbers.unary::<_, UInt64Type>(|number| number.saturating_add(before))) as Arc<UInt64Array>)
}

fn values(args: &[ArrayRef], mask: Option<&BooleanArray>, range: Range<usize>) -> Result<Vec<ArrayRef>> {
    let length = range.end - range.start;
    let one = |arg: &ArrayRef| {
        let values = arg.slice(range.start, length);
        match mask {
            Some(mask) => filter(&values, &mask.slice(range.start, length)).map_err(Error::from),
            None => Ok(values),
        }
    };
    args.iter().map(one).collect()
}

fn mask_of(mask: &ArrayRef) -> Result<BooleanArray> {
    let mask = mask.as_boolean_opt().ok_or_else(|| Error::internal("a FILTER is not true or false"))?;
    Ok(if mask.null_count() > 0 { prep_null_mask_filter(mask) } else { mask.clone() })
}

/// Whether what is added can be taken out again without a trace.
fn is_exact(state: &DataType) -> bool {
    !state.is_floating() && !state.is_nested()
}

#[cfg(test)]
mod tests {
    use arrow::array::{Float64Array, Int64Array};
    use arrow::datatypes::{Field, Schema};
    use datafusion::functions_aggregate::min_max::max_udaf;
    use datafusion::functions_aggregate::sum::sum_udaf;
    use datafusion::logical_expr::{AggregateUDF, WindowFrameBound, WindowFrameUnits};
    use datafusion::physical_expr::aggregate::AggregateExprBuilder;
    use datafusion::physical_expr::expressions::Column;

    use super::*;

    fn framed(function: Arc<AggregateUDF>, rows: &RecordBatch, start: WindowFrameBound) -> Framed {
        let built = AggregateExprBuilder::new(function, vec![Arc::new(Column::new("v", 0))]);
        let built = built.schema(rows.schema()).alias("f").build().unwrap();
        let frame = WindowFrame::new_bounds(WindowFrameUnits::Rows, start, WindowFrameBound::CurrentRow);
        Framed::new(Arc::new(built), None, Arc::new(frame)).unwrap()
    }

    fn rows(values: ArrayRef) -> RecordBatch {
        let schema = Schema::new(vec![Field::new("v", values.data_type().clone(), true)]);
        RecordBatch::try_new(Arc::new(schema), vec![values]).unwrap()
    }

    fn seen(rows: &RecordBatch, of: Range<usize>) -> Seen<'_> {
        Seen { rows, of, order_by: &[], rows_before: 0, places_before: 0 }
    }

    fn preceding(rows: u64) -> WindowFrameBound {
        WindowFrameBound::Preceding(ScalarValue::UInt64(Some(rows)))
    }

    #[test]
    fn nan_leaves_with_its_row() {
        let rows = rows(Arc::new(Float64Array::from(vec![f64::NAN, 1.0, 2.0])));
        let framed = framed(sum_udaf(), &rows, preceding(1));
        assert!(!framed.slides);
        let mut out = Vec::new();
        framed.compute(&seen(&rows, 1..3), None, &mut out).unwrap();
        assert!(matches!(out[0], ScalarValue::Float64(Some(nan)) if nan.is_nan()), "{out:?}");
        assert_eq!(out[1], ScalarValue::Float64(Some(3.0)));
    }

    #[test]
    fn frames_that_move_are_those_that_are_made_anew() {
        let rows = rows(Arc::new(Int64Array::from(vec![Some(5), Some(3), None, Some(4), Some(1)])));
        let framed = framed(max_udaf(), &rows, preceding(1));
        assert!(framed.slides);
        let mut out = Vec::new();
        framed.compute(&seen(&rows, 0..5), None, &mut out).unwrap();
        let wanted = [5, 5, 3, 4, 4].map(|v| ScalarValue::Int64(Some(v)));
        assert_eq!(out, wanted);
    }

    #[test]
    fn what_runs_on_goes_on_where_it_was() {
        let all = rows(Arc::new(Int64Array::from(vec![5, 3, 2])));
        let framed = framed(sum_udaf(), &all, WindowFrameBound::Preceding(ScalarValue::UInt64(None)));
        let (mut out, mut first) = (Vec::new(), framed.resumed(&[]).unwrap());
        framed.compute(&seen(&all.slice(0, 2), 0..2), Some(&mut first), &mut out).unwrap();
        let state: Vec<ArrayRef> = first.state().unwrap().iter().map(|s| s.to_array().unwrap()).collect();
        let mut second = framed.resumed(&state).unwrap();
        framed.compute(&seen(&all.slice(2, 1), 0..1), Some(&mut second), &mut out).unwrap();
        assert_eq!(out, [5, 8, 10].map(|v| ScalarValue::Int64(Some(v))));
    }
}
