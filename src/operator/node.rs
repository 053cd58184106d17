//! An operator as a node of a plan: what all its partitions share, and one partition's part.
//!
//! A node has one input or more, each the rows of a fragment whose first columns are the key that decides in which
//! partition a row is looked at, and one state or more. Its parts know nothing of each other.

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::SchemaRef;

use super::{BatchInfo, ForgetBy, KeyedDelta, Output};
use crate::delta::keys::KeyCodec;
use crate::error::Result;
use crate::state::schema::StateSchema;
use crate::state::{Forgets, Shape, Spread, StateTable};

/// What all partitions of an operator share: made once, when a query is planned.
pub trait OperatorSpec: Send + Sync {
    /// The columns of its result.
    fn output(&self) -> &SchemaRef;

    /// What makes the partition of a row of input `input`: the rows' first columns, so many.
    fn key(&self, input: usize) -> (&Arc<KeyCodec>, usize);

    /// How many of the result's first columns order it, where it is shown to a person.
    fn order(&self) -> (&Arc<KeyCodec>, usize);

    /// What it remembers, the operator's own state first.
    fn states(&self) -> Vec<StateSpec>;

    /// A partition that has seen nothing of any batch.
    ///
    /// # Errors
    /// Unsupported: types that can't be put together.
    fn part(self: Arc<Self>) -> Result<Box<dyn OperatorPart>>;

    /// Whether the watermark makes it emit or forget.
    fn forgets(&self) -> bool {
        self.states().iter().any(|state| state.forget.is_some())
    }

    /// Whether it keeps rows until the watermark says that they are final, in APPEND.
    fn waits(&self) -> bool {
        self.forgets() && !self.only_adds()
    }

    /// Whether of the rows that it remembers others were given out in APPEND than in UPDATE, so that neither mode can go on with
    /// what the other has left.
    fn is_of_its_mode(&self) -> bool {
        false
    }

    /// How many rows must follow a row in its partition before it is final, whatever the watermark says.
    fn rows_to_follow(&self) -> u64 {
        0
    }

    /// Why a partition that remembers this will give out nothing any more, whatever comes.
    ///
    /// # Errors
    /// Internal.
    fn spent(&self, _states: &[&StateTable]) -> Result<Option<String>> {
        Ok(None)
    }

    /// Whether a row that it has given out is never replaced by another.
    fn only_adds(&self) -> bool {
        false
    }

    /// What it does, for EXPLAIN: one line, and more below it where there is more to say of what it costs.
    fn describe(&self) -> Vec<String>;
}

/// One partition of an operator.
pub trait OperatorPart: Send {
    /// Takes some changes of one input; called any number of times in a batch, inputs in order. `states`: as in
    /// [`OperatorSpec::states`].
    ///
    /// # Errors
    /// Of what is computed.
    fn push(
        &mut self,
        input: usize,
        changes: &KeyedDelta,
        batch: &BatchInfo,
        states: &mut [&mut StateTable],
    ) -> Result<()>;

    /// Ends the batch: answers one output a state, the first of which holds the rows of the result.
    ///
    /// # Errors
    /// Of what is computed.
    fn finish(&mut self, batch: &BatchInfo, states: &mut [&mut StateTable]) -> Result<Vec<Output>>;
}

/// What one state of an operator is made of.
#[derive(Clone)]
pub struct StateSpec {
    /// Keys, then values.
    pub rows: SchemaRef,
    /// The keys alone.
    pub keys: SchemaRef,
    pub codec: Arc<KeyCodec>,
    /// As kept in the checkpoint, and compared at a restart. Its operator is the name in EXPLAIN and progress documents.
    pub stored: StateSchema,
    /// What decides in which partition a row lies. `None`: its key.
    pub spread: Option<Spread>,
    pub forget: Option<ForgetBy>,
    /// What Spark calls such an operator in its progress documents.
    pub kind: &'static str,
    /// What bounds it, for EXPLAIN STATE.
    pub bound: String,
    pub role: Role,
}

/// What a state is to its operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Role {
    /// What the operator is.
    Own,
    /// A part of what it remembers, for this.
    Part(String),
    /// A smaller operator in front of it, which does this.
    InFront(String),
}

impl StateSpec {
    /// As shown in EXPLAIN and progress documents, and the state's folder.
    pub fn name(&self) -> &str {
        &self.stored.operator
    }

    /// For so many partitions.
    pub fn shape(&self, partitions: usize) -> Shape {
        Shape {
            rows: self.rows.clone(),
            keys: self.keys.clone(),
            codec: self.codec.clone(),
            stored: self.stored.clone(),
            partitions,
            spread: self.spread.clone(),
        }
    }

    /// An empty partition.
    pub fn table(&self) -> StateTable {
        self.shape(1).table()
    }
}

impl Forgets for StateSpec {
    fn times(&self, columns: &[ArrayRef]) -> Result<Vec<i64>> {
        self.forget.map(|by| by.times(columns)).transpose().map(Option::unwrap_or_default)
    }

    fn until(&self, forgotten_until: i64) -> Result<i64> {
        self.forget.map_or(Ok(forgotten_until), |by| by.until_of(forgotten_until, &self.rows))
    }
}
