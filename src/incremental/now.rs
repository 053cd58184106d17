//! `now()` and its kin in a plan that is made once: they read the batch's clock from the log, so that a batch that is
//! run again gives the same (rule P2).

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use datafusion::scalar::ScalarValue;

use super::batch_cell::BatchCell;

/// Replaces `now()`, `current_date` and `current_time` everywhere in a plan. `zone`: the one that dates and times are of.
pub fn replace_now(plan: LogicalPlan, zone: Option<&str>, cell: &Arc<BatchCell>) -> Result<LogicalPlan> {
    let zone: Option<Arc<str>> = zone.map(Arc::from);
    let replaced = plan.transform_up_with_subqueries(|node| {
        node.map_expressions(|expr| {
            let name = expr.schema_name().to_string();
            let replaced = expr.transform_up(|e| batch_time(e, &zone, cell))?;
            // The output keeps its column's name.
            Ok(replaced.update_data(|e| if e.schema_name().to_string() == name { e } else { e.alias(name) }))
        })
    })?;
    Ok(replaced.data)
}

fn batch_time(expr: Expr, zone: &Option<Arc<str>>, cell: &Arc<BatchCell>) -> Result<Transformed<Expr>> {
    let Expr::ScalarFunction(call) = &expr else { return Ok(Transformed::no(expr)) };
    if !matches!(call.func.name(), "now" | "current_date" | "current_time" | "current_timestamp" | "today") {
        return Ok(Transformed::no(expr));
    }
    let field = call.func.return_field_from_args(ReturnFieldArgs { arg_fields: &[], scalar_arguments: &[] })?;
    let function = BatchTime {
        name: call.func.name().to_string(),
        field,
        zone: zone.clone(),
        cell: cell.clone(),
        signature: Signature::nullary(Volatility::Volatile),
    };
    let function = Arc::new(ScalarUDF::new_from_impl(function));
    Ok(Transformed::yes(Expr::ScalarFunction(ScalarFunction::new_udf(function, Vec::new()))))
}

#[derive(Debug)]
struct BatchTime {
    name: String,
    /// What DataFusion's function of that name gives.
    field: FieldRef,
    zone: Option<Arc<str>>,
    cell: Arc<BatchCell>,
    signature: Signature,
}

impl PartialEq for BatchTime {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && Arc::ptr_eq(&self.cell, &other.cell)
    }
}

impl Eq for BatchTime {}

impl Hash for BatchTime {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for BatchTime {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _args: &[DataType]) -> Result<DataType> {
        Ok(self.field.data_type().clone())
    }

    fn return_field_from_args(&self, _args: ReturnFieldArgs) -> Result<FieldRef> {
        Ok(self.field.clone())
    }

    fn invoke_with_args(&self, _args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let now = ScalarValue::TimestampMillisecond(Some(self.cell.timestamp()), self.zone.clone()).to_array()?;
        let options = CastOptions { safe: false, ..CastOptions::default() };
        let now = cast_with_options(&now, self.field.data_type(), &options)?;
        Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&now, 0)?))
    }
}
