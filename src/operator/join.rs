//! Join: rows of two inputs that belong together.
//!
//! RELATION   left ⋈ right on keys and a condition; outer, semi, anti and mark joins of them
//! REMEMBERS  for each side (join key, number within the key) → the row, when it may be forgotten, how many partners it has
//! ON CHANGE  new left rows meet the right rows that are remembered, then new right rows meet all left rows: each pair once
//! FORGETS    rows that no row to come can match, by the watermark; in APPEND emits those then that found no partner
//! REFUSES    nothing: what a mode allows is the planner's to say
//!
//! ```text
//! left   (a,1)              (a,3)
//! right         (a,2)
//! out           (a,1,2)     (a,3,2)
//! ```
//! The rows of an input are the join key; whether the row can match at all, where rows without a partner count; its time, where
//! there is a bound; what the result and the condition read; and the weight, where the input takes rows back.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::physical_expr::PhysicalExpr;

use super::ForgetBy;
use super::join_part::Part;
use super::node::{OperatorPart, OperatorSpec, Role, StateSpec};
use crate::delta::calendar::Lasts;
use crate::delta::keys::KeyCodec;
use crate::error::Result;
use crate::state::schema::StateSchema;
use crate::state::{Asked, Spread};

/// What becomes of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JoinKind {
    /// Both rows, side by side; rows without a partner of the sides that are kept, beside NULLs.
    Pairs,
    /// Left rows that have a partner, each once.
    Semi,
    /// Left rows that have none.
    Anti,
    /// All left rows, and whether they have one.
    Mark,
}

impl JoinKind {
    /// What a row of a kept side is shown as beyond its pairs, by whether it has a partner: nothing, or with this mark.
    pub fn shows(self, matched: bool) -> Option<bool> {
        match (self, matched) {
            (JoinKind::Pairs, false) | (JoinKind::Semi, true) | (JoinKind::Anti, false) | (JoinKind::Mark, _) => {
                Some(matched)
            }
            _ => None,
        }
    }
}

/// A column of one side: where its input has it, and where its state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SideColumn {
    pub side: usize,
    pub input: usize,
    pub state: usize,
}

/// One side of a join.
pub struct JoinSide {
    /// Its state's name.
    pub name: String,
    /// Key, number.
    pub keys: SchemaRef,
    /// Key, number, time to be forgotten, partners, what is read.
    pub rows: SchemaRef,
    /// Of `keys`.
    pub codec: Arc<KeyCodec>,
    /// Rows are judged by whether they have a partner: their number of partners is kept, and they say whether they can match.
    pub kept: bool,
    /// Where its input has the time, and how many microseconds behind it a row may be forgotten.
    pub until: Option<(usize, i64)>,
    /// The input column that says whether a row can match.
    pub pass: Option<usize>,
    /// Its input takes rows back: where it has the weight, and what tells rows apart.
    pub weight: Option<(usize, Arc<KeyCodec>)>,
    /// What is read, in the order in which the state has it behind its own columns: input columns.
    pub payload: Vec<usize>,
    /// What bounds its state, for EXPLAIN.
    pub bound: String,
}

/// The columns of a side's state behind its keys.
pub const OWN_COLUMNS: [&str; 2] = ["until", "matches"];

/// What is asked of a pair beyond equal keys.
pub struct Condition {
    pub expr: Arc<dyn PhysicalExpr>,
    pub schema: SchemaRef,
    /// Where its columns are.
    pub columns: Vec<SideColumn>,
}

/// What all partitions of a join share.
pub struct JoinSpec {
    pub kind: JoinKind,
    /// Of the join key.
    pub codec: Arc<KeyCodec>,
    pub width: usize,
    pub sides: [JoinSide; 2],
    pub condition: Option<Condition>,
    pub output: SchemaRef,
    /// Where its columns are; a mark has none.
    pub columns: Vec<SideColumn>,
    /// A row is handed out once it is final (APPEND).
    pub finals: bool,
    /// The result takes rows back.
    pub signed: bool,
    /// What orders the result.
    pub order: (Arc<KeyCodec>, usize),
    /// The text that makes the rows: what is remembered fits no other.
    pub text: String,
    /// For EXPLAIN.
    pub description: Vec<String>,
}

impl JoinSpec {
    /// Right rows can't be taken back, so that a left row that found a partner has it for ever.
    pub fn judges_once(&self) -> bool {
        self.kind != JoinKind::Pairs && self.sides[1].weight.is_none()
    }
}

impl OperatorSpec for JoinSpec {
    fn output(&self) -> &SchemaRef {
        &self.output
    }

    fn key(&self, _input: usize) -> (&Arc<KeyCodec>, usize) {
        (&self.codec, self.width)
    }

    fn order(&self) -> (&Arc<KeyCodec>, usize) {
        (&self.order.0, self.order.1)
    }

    fn states(&self) -> Vec<StateSpec> {
        let state = |(n, side): (usize, &JoinSide)| {
            let values = side.rows.fields()[side.keys.fields().len()..].iter().cloned().collect();
            StateSpec {
                rows: side.rows.clone(),
                keys: side.keys.clone(),
                codec: side.codec.clone(),
                stored: StateSchema::new(&side.name, side.keys.fields(), &values, Default::default())
                    .made_by(Some(self.text.clone())),
                spread: Some(Spread { codec: self.codec.clone(), columns: self.width, asked: Asked::Slot }),
                forget: side.until.map(|_| ForgetBy { column: self.width + 1, lasts: Lasts::NOTHING }),
                kind: "symmetricHashJoin",
                bound: side.bound.clone(),
                role: match n {
                    0 => Role::Own,
                    _ => Role::InFront("remembers the rows of the right side, for the join".to_string()),
                },
            }
        };
        self.sides.iter().enumerate().map(state).collect()
    }

    fn part(self: Arc<Self>) -> Result<Box<dyn OperatorPart>> {
        Ok(Box::new(Part::new(self)))
    }

    fn only_adds(&self) -> bool {
        !self.signed
    }

    /// Pairs are given out at once.
    fn waits(&self) -> bool {
        self.finals && self.sides.iter().any(|side| side.kept) && self.kind.shows(false).is_some()
    }

    /// A row without a partner is given out at once, and taken back; or once none can come.
    fn is_of_its_mode(&self) -> bool {
        self.sides.iter().any(|side| side.kept) && self.kind.shows(false).is_some()
    }

    fn describe(&self) -> Vec<String> {
        self.description.clone()
    }
}
