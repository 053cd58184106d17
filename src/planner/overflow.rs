//! Integers and decimals that overflow are errors: `+`, `-`, `*` and `sum` in DataFusion wrap around, or leave the digits that a
//! decimal has.
//!
//! Once types are final, arithmetic on integers becomes functions of ours, under the names it had, and that on decimals is looked
//! over ([`super::decimals`]); `sum` is registered over DataFusion's, and is DataFusion's in everything but the adding.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

use super::decimals;
use arrow::array::{ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, Datum};
use arrow::compute::kernels::numeric;
use arrow::compute::sum_checked;
use arrow::datatypes::{
    ArrowNativeTypeOp, DataType, Decimal128Type, Field, FieldRef, Int64Type, MAX_DECIMAL128_FOR_EACH_PRECISION,
    UInt64Type,
};
use arrow::error::ArrowError;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue, exec_err, internal_err};
use datafusion::functions_aggregate::sum::Sum;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, merge_schema};
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, ColumnarValue, EmitTo, Expr, ExprSchemable, GroupsAccumulator, LogicalPlan,
    Operator, ReturnFieldArgs, ReversedUDAF, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, SetMonotonicity, Signature,
    Volatility,
};
use datafusion_functions_aggregate_common::aggregate::groups_accumulator::prim_op::PrimitiveGroupsAccumulator;

/// Puts checked functions in place of integer arithmetic.
pub fn check(plan: LogicalPlan) -> Result<LogicalPlan> {
    let checked = plan.transform_up_with_subqueries(|node| {
        let schema = merge_schema(&node.inputs());
        node.map_expressions(|expr| expr.transform_up(|expr| Ok(checked(expr, &schema))))
    });
    Ok(checked?.data)
}

fn checked(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let Expr::BinaryExpr(binary) = &expr else { return Transformed::no(expr) };
    let function = match binary.op {
        Operator::Plus => &PLUS,
        Operator::Minus => &MINUS,
        Operator::Multiply => &TIMES,
        _ => return Transformed::no(expr),
    };
    let types = (binary.left.get_type(schema), binary.right.get_type(schema));
    match types {
        (Ok(DataType::Decimal128(..)), Ok(DataType::Decimal128(..))) => Transformed::yes(decimals::in_range(expr)),
        (Ok(left), Ok(right)) if left == right && left.is_integer() => {
            let args = vec![binary.left.as_ref().clone(), binary.right.as_ref().clone()];
            Transformed::yes(Expr::ScalarFunction(ScalarFunction::new_udf((*function).clone(), args)))
        }
        _ => Transformed::no(expr),
    }
}

type Kernel = fn(&dyn Datum, &dyn Datum) -> std::result::Result<ArrayRef, ArrowError>;

static PLUS: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| arithmetic("levada_plus", "+"));
static MINUS: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| arithmetic("levada_minus", "-"));
static TIMES: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| arithmetic("levada_times", "*"));

fn arithmetic(name: &'static str, symbol: &'static str) -> Arc<ScalarUDF> {
    let signature = Signature::any(2, Volatility::Immutable);
    Arc::new(ScalarUDF::new_from_impl(Arithmetic { name, symbol, signature }))
}

/// One operation on two integers of the same type.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Arithmetic {
    name: &'static str,
    symbol: &'static str,
    signature: Signature,
}

impl Arithmetic {
    fn kernel(&self) -> Kernel {
        match self.symbol {
            "+" => numeric::add,
            "-" => numeric::sub,
            _ => numeric::mul,
        }
    }

    fn written(&self, args: &[Expr], one: impl Fn(&Expr) -> String) -> String {
        args.iter().map(one).collect::<Vec<_>>().join(&format!(" {} ", self.symbol))
    }
}

impl ScalarUDFImpl for Arithmetic {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, args: &[DataType]) -> Result<DataType> {
        Ok(args[0].clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let nullable = args.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Field::new(self.name, args.arg_fields[0].data_type().clone(), nullable).into())
    }

    // The names that the operator gives, so that nothing else changes its name.
    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        Ok(self.written(args, |expr| expr.schema_name().to_string()))
    }

    fn display_name(&self, args: &[Expr]) -> Result<String> {
        Ok(self.written(args, ToString::to_string))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let datum = |value: &ColumnarValue| -> Result<Box<dyn Datum>> {
            Ok(match value {
                ColumnarValue::Array(array) => Box::new(array.clone()),
                ColumnarValue::Scalar(scalar) => Box::new(scalar.to_scalar()?),
            })
        };
        let (left, right) = (datum(&args.args[0])?, datum(&args.args[1])?);
        let result = self.kernel()(left.as_ref(), right.as_ref())?;
        let scalars = args.args.iter().all(|value| matches!(value, ColumnarValue::Scalar(_)));
        if scalars {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?));
        }
        Ok(ColumnarValue::Array(result))
    }
}

/// `sum` that fails where DataFusion's wraps.
#[derive(Debug, Default, PartialEq, Eq, Hash)]
pub struct CheckedSum(Sum);

impl AggregateUDFImpl for CheckedSum {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn signature(&self) -> &Signature {
        self.0.signature()
    }

    fn return_type(&self, args: &[DataType]) -> Result<DataType> {
        self.0.return_type(args)
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        self.0.state_fields(args)
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        match args.return_field.data_type() {
            DataType::Int64 if args.is_distinct => {
                Ok(Box::new(OnceEach::<Int64Type>::new(self.0.accumulator(args)?, DataType::Int64)))
            }
            DataType::UInt64 if args.is_distinct => {
                Ok(Box::new(OnceEach::<UInt64Type>::new(self.0.accumulator(args)?, DataType::UInt64)))
            }
            DataType::Decimal128(..) if args.is_distinct => {
                let of = args.return_field.data_type().clone();
                Ok(Box::new(OnceEach::<Decimal128Type>::new(self.0.accumulator(args)?, of)))
            }
            of @ DataType::Int64 => Ok(Box::new(OneSum::<Int64Type>::new(of.clone()))),
            of @ DataType::UInt64 => Ok(Box::new(OneSum::<UInt64Type>::new(of.clone()))),
            of @ DataType::Decimal128(..) => Ok(Box::new(OneSum::<Decimal128Type>::new(of.clone()))),
            _ => self.0.accumulator(args),
        }
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        self.0.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        match args.return_field.data_type() {
            of @ DataType::Int64 => Ok(group_sums::<Int64Type>(of)),
            of @ DataType::UInt64 => Ok(group_sums::<UInt64Type>(of)),
            of @ DataType::Decimal128(..) => Ok(group_sums::<Decimal128Type>(of)),
            _ => self.0.create_groups_accumulator(args),
        }
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        match args.return_field.data_type() {
            DataType::Int64 if !args.is_distinct => Ok(Box::new(MovingSum::<Int64Type>::default())),
            DataType::UInt64 if !args.is_distinct => Ok(Box::new(MovingSum::<UInt64Type>::default())),
            _ => self.0.create_sliding_accumulator(args),
        }
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        self.0.reverse_expr()
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.0.order_sensitivity()
    }

    fn documentation(&self) -> Option<&datafusion::logical_expr::Documentation> {
        self.0.documentation()
    }

    fn set_monotonicity(&self, data_type: &DataType) -> SetMonotonicity {
        self.0.set_monotonicity(data_type)
    }
}

/// What there is to do where a decimal overflows.
const ROUND: &str = "cast its argument to DOUBLE, which rounds";

/// The sum of one group.
#[derive(Debug)]
struct OneSum<T: ArrowPrimitiveType> {
    sum: Option<T::Native>,
    of: DataType,
}

impl<T: ArrowPrimitiveType> OneSum<T> {
    fn new(of: DataType) -> Self {
        OneSum { sum: None, of }
    }
}

/// The largest value of a type whose numbers go further than it does.
trait Limited: Copy {
    fn limit(of: &DataType) -> Option<Self>;
}

impl Limited for i64 {
    fn limit(_: &DataType) -> Option<Self> {
        None
    }
}

impl Limited for u64 {
    fn limit(_: &DataType) -> Option<Self> {
        None
    }
}

impl Limited for i128 {
    fn limit(of: &DataType) -> Option<Self> {
        match of {
            DataType::Decimal128(precision, _) => {
                MAX_DECIMAL128_FOR_EACH_PRECISION.get(usize::from(*precision)).copied()
            }
            _ => None,
        }
    }
}

fn fits<N: ArrowNativeTypeOp>(value: N, limit: Option<N>) -> bool {
    limit.is_none_or(|limit| value.is_le(limit) && value.is_ge(limit.neg_wrapping()))
}

impl<T: ArrowPrimitiveType<Native: ArrowNativeTypeOp + Limited> + std::fmt::Debug> Accumulator for OneSum<T> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        if let Some(more) = sum_checked(values[0].as_primitive::<T>())? {
            let sum = self.sum.unwrap_or_default().add_checked(more)?;
            if !fits(sum, T::Native::limit(&self.of)) {
                return exec_err!("the sum overflows {}: {ROUND}", self.of);
            }
            self.sum = Some(sum);
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        ScalarValue::new_primitive::<T>(self.sum, &self.of)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}

/// The sum of a frame that moves over rows: wider than its result, as what leaves is taken out behind what comes.
#[derive(Debug)]
struct MovingSum<T> {
    sum: i128,
    values: i128,
    of: PhantomData<fn() -> T>,
}

impl<T> Default for MovingSum<T> {
    fn default() -> Self {
        MovingSum { sum: 0, values: 0, of: PhantomData }
    }
}

impl<T: ArrowPrimitiveType> MovingSum<T>
where
    T::Native: Into<i128> + TryFrom<i128>,
{
    fn add(&mut self, values: &ArrayRef, times: i128) {
        for value in values.as_primitive::<T>().iter().flatten() {
            let value: i128 = value.into();
            self.sum += times * value;
            self.values += times;
        }
    }
}

impl<T: ArrowPrimitiveType + std::fmt::Debug> Accumulator for MovingSum<T>
where
    T::Native: Into<i128> + TryFrom<i128>,
{
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.add(&values[0], 1);
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.add(&values[0], -1);
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        if self.values == 0 {
            return ScalarValue::new_primitive::<T>(None, &T::DATA_TYPE);
        }
        match T::Native::try_from(self.sum) {
            Ok(sum) => ScalarValue::new_primitive::<T>(Some(sum), &T::DATA_TYPE),
            Err(_) => exec_err!("the sum of a frame overflows: cast its argument to DECIMAL"),
        }
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}

/// The sum of one group's distinct values, which DataFusion gathers.
#[derive(Debug)]
struct OnceEach<T> {
    values: Box<dyn Accumulator>,
    of: DataType,
    primitive: PhantomData<fn() -> T>,
}

impl<T> OnceEach<T> {
    fn new(values: Box<dyn Accumulator>, of: DataType) -> Self {
        OnceEach { values, of, primitive: PhantomData }
    }
}

impl<T: ArrowPrimitiveType<Native: ArrowNativeTypeOp + Limited> + std::fmt::Debug> Accumulator for OnceEach<T> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.values.update_batch(values)
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.values.merge_batch(states)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let mut sum = OneSum::<T>::new(self.of.clone());
        for state in self.values.state()? {
            let ScalarValue::List(list) = state else { return internal_err!("distinct values that are no list") };
            sum.update_batch(&[list.values().clone()])?;
        }
        sum.evaluate()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.values.state()
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.values.size()
    }
}

/// The sums of many groups: DataFusion's, with a flag that is set where one wrapped.
struct GroupSums {
    sums: Box<dyn GroupsAccumulator>,
    overflowed: Arc<AtomicBool>,
    of: DataType,
}

fn group_sums<T: ArrowPrimitiveType<Native: ArrowNativeTypeOp + Limited> + Send>(
    of: &DataType,
) -> Box<dyn GroupsAccumulator> {
    let limit = T::Native::limit(of);
    let overflowed = Arc::new(AtomicBool::new(false));
    let flag = overflowed.clone();
    let add = move |sum: &mut T::Native, value: T::Native| match sum.add_checked(value) {
        Ok(added) if fits(added, limit) => *sum = added,
        _ => flag.store(true, Ordering::Relaxed),
    };
    let sums = Box::new(PrimitiveGroupsAccumulator::<T, _>::new(of, add));
    Box::new(GroupSums { sums, overflowed, of: of.clone() })
}

impl GroupSums {
    fn checked(&self, done: Result<()>) -> Result<()> {
        done?;
        if self.overflowed.load(Ordering::Relaxed) {
            return match self.of {
                DataType::Decimal128(..) => exec_err!("the sum of a group overflows {}: {ROUND}", self.of),
                _ => exec_err!("the sum of a group overflows: cast its argument to DECIMAL"),
            };
        }
        Ok(())
    }
}

impl GroupsAccumulator for GroupSums {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<()> {
        let done = self.sums.update_batch(values, groups, filter, total);
        self.checked(done)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        self.sums.evaluate(emit_to)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        self.sums.state(emit_to)
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        let done = self.sums.merge_batch(states, groups, total);
        self.checked(done)
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        self.sums.convert_to_state(values, filter)
    }

    fn size(&self) -> usize {
        self.sums.size()
    }
}
