//! Decimals that leave the digits of their type: DataFusion computes them in 128 bits and hands on what has come of it.

use std::sync::{Arc, LazyLock};

use arrow::array::AsArray;
use arrow::datatypes::{DataType, Decimal128Type, FieldRef};
use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// Arithmetic on decimals whose result is looked over, under the name that it had.
pub fn in_range(expr: Expr) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(IN_RANGE.clone(), vec![expr]))
}

static IN_RANGE: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    Arc::new(ScalarUDF::new_from_impl(InRange { signature: Signature::any(1, Volatility::Immutable) }))
});

/// `levada_decimal`: its argument, if that has no more digits than its type.
#[derive(Debug, PartialEq, Eq, Hash)]
struct InRange {
    signature: Signature,
}

impl ScalarUDFImpl for InRange {
    fn name(&self) -> &str {
        "levada_decimal"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, args: &[DataType]) -> Result<DataType> {
        Ok(args[0].clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        Ok(args.arg_fields[0].as_ref().clone().with_name(self.name()).into())
    }

    // The names that the arithmetic has.
    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        Ok(args.iter().map(|expr| expr.schema_name().to_string()).collect())
    }

    fn display_name(&self, args: &[Expr]) -> Result<String> {
        Ok(args.iter().map(ToString::to_string).collect())
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let value = args.args.swap_remove(0);
        let array = value.to_array(args.number_rows)?;
        if let Some(decimals) = array.as_primitive_opt::<Decimal128Type>()
            && decimals.validate_decimal_precision(decimals.precision()).is_err()
        {
            return exec_err!("a result has more digits than {}: cast to DOUBLE, which rounds", array.data_type());
        }
        Ok(value)
    }
}
