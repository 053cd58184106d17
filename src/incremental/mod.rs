//! LogicalPlan → [`IncrementalPlan`]: where to cut, what each operator needs, what is refused.
//!
//! A fragment needs no memory between batches and is DataFusion's; an operator remembers and is ours. This room makes
//! both, once, when a query starts. It runs nothing and knows no batch.

mod aggregate;
mod batch_cell;
mod chain;
mod cut;
mod deduplicate;
mod explain;
mod explain_state;
mod fragment;
mod grouping_sets;
mod join;
mod join_plan;
mod join_side;
mod linear;
mod lower;
mod mode;
mod names;
mod now;
mod over;
mod over_now;
mod panes;
mod part;
mod passed;
mod planning;
mod ranked;
mod rehearsal;
mod retract;
mod session_rows;
mod sessions;
mod static_semi;
mod survey;
mod tap;
mod top;
mod upsert_key;
mod values;
mod window_keys;

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider;

pub use batch_cell::{BatchCell, Dropped, TimeStats};
pub use cut::plan;
pub use explain::explain;
pub use explain_state::{ExplainedState, explain_state, state_text};
pub use fragment::Fragment;
pub use mode::{depends_on_batches, volatile_functions};
pub use passed::{Gate, Passed};
pub use retract::{Hidden, WEIGHT, changes_of, with_hidden};
pub use upsert_key::upsert_key;

use crate::catalog::StreamDef;
use crate::operator::{OperatorSpec, StateSpec};
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
    /// The column whose times it is made of.
    pub column: String,
    pub spec: WatermarkSpec,
}

/// A static table that fragments read.
#[derive(Clone)]
pub struct StaticTable {
    pub name: String,
    pub provider: Arc<dyn TableProvider>,
}

/// An operator among the nodes of a plan.
pub struct OperatorNode {
    pub spec: Arc<dyn OperatorSpec>,
    /// What feeds it, one fragment an input.
    pub inputs: Vec<Fragment>,
    /// For each of them, the operators whose results it reads, by their numbers.
    pub from: Vec<Vec<usize>>,
    /// What feeds each input, in words: the streams and operators and, where rows are taken back, what is made of their rows. A
    /// part of what it remembers, as operators have their names by their places. Empty where nothing else could feed it.
    pub fed_by: String,
    /// Where its result enters the fragments above it.
    pub leaf: Arc<Leaf>,
    /// What its watermark is behind the query's, in milliseconds.
    pub lag: i64,
    /// Its result carries the hidden columns: it can take rows back.
    pub signed: bool,
    /// Rows in key order.
    pub ordered: bool,
}

impl OperatorNode {
    /// What it remembers, known again by what computes it and what feeds it.
    pub fn states(&self) -> Vec<StateSpec> {
        let mut states = self.spec.states();
        if !self.fed_by.is_empty() {
            for StateSpec { stored, .. } in &mut states {
                let made = stored.text.take().map_or_else(String::new, |text| format!("{text} "));
                stored.text = Some(format!("{made}over {}", self.fed_by));
            }
        }
        states
    }
}

/// A query, ready to be run in micro-batches.
pub struct IncrementalPlan {
    pub mode: OutputMode,
    pub inputs: Vec<Input>,
    pub watermarks: Vec<WatermarkInput>,
    pub statics: Vec<StaticTable>,
    /// Those that rows meet which are taken back later: as they were, so these must stay as they are.
    pub fixed_statics: BTreeSet<String>,
    pub cell: Arc<BatchCell>,
    /// In the order in which they run: what one reads stands before it.
    pub operators: Vec<OperatorNode>,
    /// To the sink, from the sources or from operators.
    pub last: Fragment,
    /// The operators whose results it reads.
    pub last_from: Vec<usize>,
    /// Where the result carries what belongs to which key, if the query retracts.
    pub hidden: Option<Hidden>,
    /// The columns of the result.
    pub output: SchemaRef,
    /// The result carries ops.
    pub retracts: bool,
    /// What is made of the topmost operator's result, as text: other rows if this is another.
    pub text: String,
}

impl IncrementalPlan {
    /// What its operators remember, in the order in which they run.
    pub fn states(&self) -> Vec<StateSpec> {
        self.operators.iter().flat_map(OperatorNode::states).collect()
    }
}
