//! `bit_xor(DISTINCT x)` by group: DataFusion says that it groups quickly, and then forgets the DISTINCT.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::Result;
use datafusion::functions_aggregate::bit_and_or_xor::bit_xor_udaf;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, GroupsAccumulator, ReversedUDAF, Signature,
};

/// DataFusion's `bit_xor`, which groups one by one where it is DISTINCT.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct BitXor(Arc<AggregateUDF>);

impl Default for BitXor {
    fn default() -> Self {
        BitXor(bit_xor_udaf())
    }
}

impl AggregateUDFImpl for BitXor {
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
        self.0.accumulator(args)
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        !args.is_distinct && self.0.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        self.0.create_groups_accumulator(args)
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        self.0.reverse_udf()
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.0.documentation()
    }
}
