//! `lead` and `lag` with IGNORE NULLS over whole partitions: DataFusion's, where it takes rows as they come, lose values that are
//! two or more rows away.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::Result;
use datafusion::functions_window::lead_lag::{lag_udwf, lead_udwf};
use datafusion::logical_expr::function::{ExpressionArgs, PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion::logical_expr::{
    Documentation, LimitEffect, PartitionEvaluator, ReversedUDWF, Signature, WindowUDF, WindowUDFImpl,
};
use datafusion::physical_expr::PhysicalExpr;

/// One of the two.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Shift(Arc<WindowUDF>);

impl Shift {
    /// Both, to stand in place of DataFusion's.
    pub fn both() -> [WindowUDF; 2] {
        [lead_udwf(), lag_udwf()].map(|shift| WindowUDF::new_from_impl(Shift(shift)))
    }
}

impl WindowUDFImpl for Shift {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn signature(&self) -> &Signature {
        self.0.signature()
    }

    fn expressions(&self, args: ExpressionArgs) -> Vec<Arc<dyn PhysicalExpr>> {
        self.0.inner().expressions(args)
    }

    fn partition_evaluator(&self, args: PartitionEvaluatorArgs) -> Result<Box<dyn PartitionEvaluator>> {
        let ignores = args.ignore_nulls();
        let evaluator = self.0.inner().partition_evaluator(args)?;
        Ok(if ignores { Box::new(Whole(evaluator)) } else { evaluator })
    }

    fn field(&self, args: WindowUDFFieldArgs) -> Result<FieldRef> {
        self.0.inner().field(args)
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.0.inner().coerce_types(types)
    }

    fn reverse_expr(&self) -> ReversedUDWF {
        let reversed = WindowUDF::new_from_impl(Shift(self.0.clone()));
        ReversedUDWF::Reversed(Arc::new(reversed))
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.0.documentation()
    }

    fn limit_effect(&self, args: &[Arc<dyn PhysicalExpr>]) -> LimitEffect {
        self.0.inner().limit_effect(args)
    }
}

/// An evaluator that is handed whole partitions only.
#[derive(Debug)]
struct Whole(Box<dyn PartitionEvaluator>);

impl PartitionEvaluator for Whole {
    fn evaluate_all(&mut self, values: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        self.0.evaluate_all(values, rows)
    }

    fn evaluate_all_with_rank(&self, rows: usize, ranks: &[Range<usize>]) -> Result<ArrayRef> {
        self.0.evaluate_all_with_rank(rows, ranks)
    }

    fn uses_window_frame(&self) -> bool {
        self.0.uses_window_frame()
    }

    fn include_rank(&self) -> bool {
        self.0.include_rank()
    }
}
