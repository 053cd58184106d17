//! What a change does to the result it belongs to.

/// One of the four changes that a result table can see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// `+I`: a row that was not there.
    Insert,
    /// `-U`: the old row of an update; the new one follows it directly.
    UpdateBefore,
    /// `+U`: the new row of an update.
    UpdateAfter,
    /// `-D`: a row that is no more.
    Delete,
}

impl Op {
    /// +1 for a row that is added, −1 for one that is taken back.
    pub fn weight(self) -> i64 {
        match self {
            Op::Insert | Op::UpdateAfter => 1,
            Op::UpdateBefore | Op::Delete => -1,
        }
    }

    /// As shown to a person: `+I -U +U -D`.
    pub fn symbol(self) -> &'static str {
        match self {
            Op::Insert => "+I",
            Op::UpdateBefore => "-U",
            Op::UpdateAfter => "+U",
            Op::Delete => "-D",
        }
    }
}
