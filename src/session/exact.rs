//! A cast that loses nothing and names the column when it can't be: what INSERT does with a value whose column is of another
//! type.
//!
//! DataFusion's own cast cuts 3.7 to 3 for an INT, rounds 0.125 to 0.13 for a DECIMAL(10, 2), and says of what it can't cast
//! neither where it stands nor where it should go.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::kernels::cmp::distinct;
use arrow::compute::{CastOptions, cast, cast_with_options};
use arrow::datatypes::{DataType, Float64Type};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::error::{Error, Result};
use crate::format::type_name;

/// Whether a cast may be refused: some values of the one type are none of the other.
pub(super) fn may_refuse(from: &DataType, to: &DataType) -> bool {
    let of_text = from.is_string() && !to.is_nested() && !to.is_string() && !to.is_binary();
    let of_number = from.is_integer() && (to.is_integer() || to.is_decimal()) && from != to;
    of_text || of_number || may_lose(from, to)
}

/// Whether a cast may cut digits off.
fn may_lose(from: &DataType, to: &DataType) -> bool {
    let fine = matches!(to, DataType::Float16 | DataType::Float32 | DataType::Float64);
    (from.is_floating() || from.is_decimal()) && (to.is_integer() || to.is_decimal()) && !fine && from != to
}

/// A value of whatever type, made one of `column`'s: exactly, or not at all.
///
/// # Errors
/// There is no cast between the types.
pub(super) fn fitted(value: Expr, from: &DFSchema, to: &DataType, column: &str) -> Result<Expr> {
    match may_refuse(&value.get_type(from)?, to) {
        true => Ok(exact(value, to, column, None)),
        false => Ok(value.cast_to(to, from)?),
    }
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
        let to = match cast_with_options(values, &self.to, &strict) {
            Ok(to) => to,
            Err(error) => return Err(self.impossible(values).unwrap_or_else(|| error.into())),
        };
        if !may_lose(values.data_type(), &self.to) {
            return Ok(to);
        }
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

    /// The first value that has no counterpart in the column's type.
    fn impossible(&self, values: &ArrayRef) -> Option<Error> {
        let safe = cast(values, &self.to).ok()?;
        let at = (0..values.len()).find(|row| values.is_valid(*row) && safe.is_null(*row))?;
        let (row, value) = (self.shown_row(), shown(values, at));
        let (name, column) = (type_name(&self.to), &self.column);
        if !values.data_type().is_string() {
            return Some(Error::invalid(format!("{row}{value} does not fit column {column}, which is {name}")));
        }
        let error = Error::invalid(format!("{row}'{value}' is no value of column {column}, which is {name}"));
        Some(match self.to {
            DataType::Timestamp(..) => error.help("a time is written '2024-01-31 12:00:00'"),
            DataType::Date32 => error.help("a date is written '2024-01-31'"),
            DataType::Interval(_) => error.help("an interval is written '5 seconds'"),
            _ => error,
        })
    }

    fn refused(&self, values: &ArrayRef, at: usize) -> Error {
        let (row, value) = (self.shown_row(), shown(values, at));
        let (name, column) = (type_name(&self.to), &self.column);
        Error::invalid(format!("{row}{value} would lose digits in column {column}, which is {name}"))
            .help(format!("CAST({value} AS {name}), or round(…), says that they may go"))
    }

    fn shown_row(&self) -> String {
        self.row.map(|row| format!("row {row}: ")).unwrap_or_default()
    }
}

fn shown(values: &ArrayRef, at: usize) -> String {
    let options = FormatOptions::new();
    ArrayFormatter::try_new(values, &options).map(|f| f.value(at).to_string()).unwrap_or_default()
}
