//! `min` and `max` of floats by group: in DataFusion they begin at the largest and the smallest finite number, and what they make
//! of NaN depends on the order of the rows. Of structs it depends on that where a field is NULL.
//!
//! Here the order is total: −∞, numbers, ∞, NaN; a NULL in a struct is greater than all values, as ORDER BY has it. Everything but the
//! grouping of floats, and structs, is DataFusion's.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, FieldRef, Float32Type, Float64Type, Int64Type};
use arrow::row::{OwnedRow, RowConverter, SortField};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::functions_aggregate::min_max::{max_udaf, min_udaf};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, EmitTo, GroupsAccumulator, ReversedUDAF,
    SetMonotonicity, Signature,
};
use datafusion_functions_aggregate_common::aggregate::groups_accumulator::prim_op::PrimitiveGroupsAccumulator;

/// One of the two.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Extreme {
    inner: Arc<AggregateUDF>,
    greatest: bool,
}

impl Extreme {
    /// `min`.
    pub fn min() -> Self {
        Extreme { inner: min_udaf(), greatest: false }
    }

    /// `max`.
    pub fn max() -> Self {
        Extreme { inner: max_udaf(), greatest: true }
    }
}

impl AggregateUDFImpl for Extreme {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, args: &[DataType]) -> Result<DataType> {
        self.inner.return_type(args)
    }

    fn coerce_types(&self, args: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(args)
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        self.inner.state_fields(args)
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        match args.return_field.data_type() {
            of @ DataType::Struct(_) => Ok(Box::new(StructExtreme::new(of, self.greatest)?)),
            _ => self.inner.accumulator(args),
        }
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        !matches!(args.return_field.data_type(), DataType::Struct(_)) && self.inner.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        match args.return_field.data_type() {
            of @ (DataType::Float32 | DataType::Float64) => Ok(Box::new(FloatExtremes::new(of.clone(), self.greatest))),
            _ => self.inner.create_groups_accumulator(args),
        }
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        self.inner.create_sliding_accumulator(args)
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        self.inner.reverse_udf()
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.inner.order_sensitivity()
    }

    fn is_descending(&self) -> Option<bool> {
        self.inner.is_descending()
    }

    fn value_from_stats(&self, statistics: &datafusion::logical_expr::StatisticsArgs) -> Option<ScalarValue> {
        self.inner.value_from_stats(statistics)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }

    fn set_monotonicity(&self, data_type: &DataType) -> SetMonotonicity {
        self.inner.inner().set_monotonicity(data_type)
    }
}

/// The extreme of structs, found among bytes that are ordered as they are.
#[derive(Debug)]
struct StructExtreme {
    greatest: bool,
    converter: RowConverter,
    kept: Option<(OwnedRow, ScalarValue)>,
    /// What there is without a row.
    none: ScalarValue,
}

impl StructExtreme {
    fn new(of: &DataType, greatest: bool) -> Result<Self> {
        let options = SortOptions { descending: false, nulls_first: false };
        let converter = RowConverter::new(vec![SortField::new_with_options(of.clone(), options)])?;
        Ok(StructExtreme { greatest, converter, kept: None, none: ScalarValue::try_from(of)? })
    }
}

impl Accumulator for StructExtreme {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let values = &values[0];
        let rows = self.converter.convert_columns(std::slice::from_ref(values))?;
        let there = (0..values.len()).filter(|row| values.is_valid(*row));
        let found =
            if self.greatest { there.max_by_key(|row| rows.row(*row)) } else { there.min_by_key(|row| rows.row(*row)) };
        let Some(found) = found else { return Ok(()) };
        let better = self.kept.as_ref().is_none_or(|(kept, _)| {
            let (kept, row) = (kept.row(), rows.row(found));
            if self.greatest { row > kept } else { row < kept }
        });
        if better {
            self.kept = Some((rows.row(found).owned(), ScalarValue::try_from_array(values, found)?));
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(self.kept.as_ref().map_or_else(|| self.none.clone(), |(_, value)| value.clone()))
    }

    fn size(&self) -> usize {
        let kept = self.kept.as_ref().map_or(0, |(row, value)| row.row().as_ref().len() + value.size());
        size_of_val(self) + self.converter.size() + kept
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }
}

/// The extremes of many groups, found among whole numbers that are ordered as the floats are.
struct FloatExtremes {
    of: DataType,
    inner: Box<dyn GroupsAccumulator>,
}

impl FloatExtremes {
    fn new(of: DataType, greatest: bool) -> Self {
        let keep = move |kept: &mut i64, value: i64| {
            if (value > *kept) == greatest {
                *kept = value;
            }
        };
        let start = if greatest { i64::MIN } else { i64::MAX };
        let inner = PrimitiveGroupsAccumulator::<Int64Type, _>::new(&DataType::Int64, keep).with_starting_value(start);
        FloatExtremes { of, inner: Box::new(inner) }
    }

    fn ordered(values: &[ArrayRef]) -> Result<Vec<ArrayRef>> {
        let one = |array: &ArrayRef| -> Result<ArrayRef> {
            Ok(match array.data_type() {
                DataType::Float32 => {
                    Arc::new(array.as_primitive::<Float32Type>().unary::<_, Int64Type>(|v| to_order(f64::from(v))))
                }
                DataType::Float64 => Arc::new(array.as_primitive::<Float64Type>().unary::<_, Int64Type>(to_order)),
                other => return internal_err!("{other} is no float"),
            })
        };
        values.iter().map(one).collect()
    }

    fn floats(&self, ordered: &ArrayRef) -> ArrayRef {
        let ordered = ordered.as_primitive::<Int64Type>();
        match self.of {
            // Each came from a 32-bit float: nothing is lost.
            DataType::Float32 => Arc::new(ordered.unary::<_, Float32Type>(|v| from_order(v) as f32)),
            _ => Arc::new(ordered.unary::<_, Float64Type>(from_order)),
        }
    }
}

/// A number that is ordered as the float is; NaN, whatever its sign, is the greatest.
fn to_order(value: f64) -> i64 {
    flip(if value.is_nan() { f64::NAN.to_bits() } else { value.to_bits() } as i64)
}

fn from_order(ordered: i64) -> f64 {
    f64::from_bits(flip(ordered) as u64)
}

/// Negative floats are ordered by their other bits the other way round. It undoes itself.
fn flip(bits: i64) -> i64 {
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}

impl GroupsAccumulator for FloatExtremes {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<()> {
        self.inner.update_batch(&Self::ordered(values)?, groups, filter, total)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let ordered = self.inner.evaluate(emit_to)?;
        Ok(self.floats(&ordered))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(self.inner.state(emit_to)?.iter().map(|ordered| self.floats(ordered)).collect())
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        self.inner.merge_batch(&Self::ordered(states)?, groups, total)
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let states = self.inner.convert_to_state(&Self::ordered(values)?, filter)?;
        Ok(states.iter().map(|ordered| self.floats(ordered)).collect())
    }

    fn size(&self) -> usize {
        self.inner.size()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_total_and_comes_back() {
        let values =
            [f64::NEG_INFINITY, f64::MIN, -1.0, -0.0, 0.0, f64::MIN_POSITIVE, 1.5, f64::MAX, f64::INFINITY, f64::NAN];
        let ordered: Vec<i64> = values.iter().map(|v| to_order(*v)).collect();
        assert!(ordered.is_sorted_by(|a, b| a < b), "{ordered:?}");
        for value in values {
            assert_eq!(from_order(to_order(value)).to_bits(), value.to_bits());
        }
        assert_eq!(to_order(-f64::NAN), to_order(f64::NAN));
    }
}
