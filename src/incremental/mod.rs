//! LogicalPlan → [`IncrementalPlan`]: where to cut, what each operator needs, what is refused.
//!
//! A fragment needs no memory between batches and is DataFusion's; an operator remembers and is ours. This room makes
//! both, once, when a query starts. It runs nothing and knows no batch.

mod aggregate;
mod batch_cell;
mod chain;
mod cut;
mod explain;
mod fragment;
mod lower;
mod mode;
mod names;
mod now;
mod panes;
mod rehearsal;
mod retract;
mod tap;
mod upsert_key;

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider;

pub use batch_cell::{BatchCell, TimeStats};
pub use cut::plan;
pub use explain::{bounds, explain};
pub use fragment::Fragment;
pub use mode::volatile_functions;
pub use retract::{Hidden, changes_of, with_hidden};
pub use upsert_key::upsert_key;

use crate::catalog::StreamDef;
use crate::operator::ChainSpec;
use crate::parser::OutputMode;
use crate::planner::leaf::Leaf;
use crate::planner::watermark::WatermarkSpec;

/// What a target can take.
#[derive(Debug, Clone)]
pub struct TargetTraits {
    /// As shown in refusals: `sink out (file)`.
    pub name: String,
    /// Takes rows back.
    pub deletes: bool,
    /// Wants -old +new for each change, not only the new row (`TABLE t`).
    pub signed: bool,
    /// Rows are shown to a person or a test: send them in key order.
    pub ordered: bool,
    /// Modes the target takes.
    pub modes: &'static [OutputMode],
}

/// One occurrence of a stream in a query.
pub struct Input {
    /// `bids`, `bids#2`: as in the logs.
    pub name: String,
    pub stream: Arc<StreamDef>,
    pub leaf: Arc<Leaf>,
}

/// One watermark of a query; its number is that of [`BatchCell::stats`].
pub struct WatermarkInput {
    /// The occurrence that it is made of.
    pub name: String,
    pub spec: WatermarkSpec,
}

/// A static table that fragments read.
#[derive(Clone)]
pub struct StaticTable {
    pub name: String,
    pub provider: Arc<dyn TableProvider>,
}

/// The operators of a plan and what they hand their result to.
pub struct AggregatePart {
    pub chain: Arc<ChainSpec>,
    /// The fragment from its result to the query's.
    pub post: Fragment,
    /// Where the operator's result enters `post`.
    pub leaf: Arc<Leaf>,
    /// Where `post` carries what belongs to which key, if the query retracts.
    pub hidden: Option<Hidden>,
    /// Rows in key order.
    pub ordered: bool,
    /// What `post` makes of the operator's result, as text: other rows if this is another.
    pub text: String,
}

/// A query, ready to be run in micro-batches.
pub struct IncrementalPlan {
    pub mode: OutputMode,
    pub inputs: Vec<Input>,
    pub watermarks: Vec<WatermarkInput>,
    pub statics: Vec<StaticTable>,
    pub cell: Arc<BatchCell>,
    /// From the sources to the operator, or to the sink.
    pub first: Fragment,
    pub aggregate: Option<AggregatePart>,
    /// The columns of the result.
    pub output: SchemaRef,
    /// The result carries ops.
    pub retracts: bool,
}
