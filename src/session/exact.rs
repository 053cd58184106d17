//! A cast that loses nothing: what INSERT does with a number whose column is narrower.
//!
//! DataFusion's own cast cuts 3.7 to 3 for an INT, and rounds 0.125 to 0.13 for a DECIMAL(10, 2).

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::kernels::cmp::distinct;
use arrow::compute::{CastOptions, cast, cast_with_options};
use arrow::datatypes::{DataType, Float64Type};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::common::ScalarValue;
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::error::{Error, Result};
use crate::format::type_name;

/// Whether a cast may cut digits off.
pub(super) fn may_lose(from: &DataType, to: &DataType) -> bool {
    let fine = matches!(to, DataType::Float16 | DataType::Float32 | DataType::Float64);
    (from.is_floating() || from.is_decimal()) && (to.is_integer() || to.is_decimal()) && !fine && from != to
}

/// `expr` cast to the type of `column`; `row`: of a VALUES list, from 1.
pub(super) fn exact(expr: Expr, to: &DataType, column: &str, row: Option<usize>) -> Expr {
    let signature = Signature::any(1, Volatility::Immutable);
    let cast = ExactCast { to: to.clone(), column: column.to_string(), row, signature };
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(ScalarUDF::new_from_impl(cast)), vec![expr]))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ExactCast {
    to: DataType,
    column: String,
    row: Option<usize>,
    signature: Signature,
}

impl ScalarUDFImpl for ExactCast {
    fn name(&self) -> &str {
        "levada_exact"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> DfResult<DataType> {
        Ok(self.to.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        match &args.args[0] {
            ColumnarValue::Array(values) => Ok(ColumnarValue::Array(self.cast(values)?)),
            ColumnarValue::Scalar(value) => {
                let cast = self.cast(&value.to_array()?)?;
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&cast, 0)?))
            }
        }
    }
}

impl ExactCast {
    fn cast(&self, values: &ArrayRef) -> Result<ArrayRef> {
        let strict = CastOptions { safe: false, ..CastOptions::default() };
        let to = cast_with_options(values, &self.to, &strict)?;
        let back = cast(&to, values.data_type())?;
        let lost = match values.data_type().is_floating() {
            // -0.0 and 0.0 are one here.
            true => {
                let (values, back) = (cast(values, &DataType::Float64)?, cast(&back, &DataType::Float64)?);
                let pairs = values.as_primitive::<Float64Type>().iter().zip(back.as_primitive::<Float64Type>());
                pairs.into_iter().position(|(value, back)| value != back)
            }
            false => distinct(values, &back)?.iter().position(|lost| lost == Some(true)),
        };
        match lost {
            None => Ok(to),
            Some(at) => Err(self.refused(values, at)),
        }
    }

    fn refused(&self, values: &ArrayRef, at: usize) -> Error {
        let options = FormatOptions::new();
        let value = ArrayFormatter::try_new(values, &options).map(|f| f.value(at).to_string()).unwrap_or_default();
        let row = self.row.map(|row| format!("row {row}: ")).unwrap_or_default();
        let (name, column) = (type_name(&self.to), &self.column);
        Error::invalid(format!("{row}{value} would lose digits in column {column}, which is {name}"))
            .help(format!("CAST({value} AS {name}), or round(…), says that they may go"))
    }
}
