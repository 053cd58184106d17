//! What one row of a change does: comes, goes, or is half of an update.
//!
//! The engine hands an update as two rows, one directly behind the other: the old one
//! ([`Op::UpdateBefore`]), then the new one ([`Op::UpdateAfter`]). For the algebra of changes only the
//! [weight](Op::weight) counts; the rest is for whoever shows changes to people.

use std::fmt;

/// What a row of a [`Delta`](super::Delta) does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Op {
    /// `+I`: the row is new.
    Insert,
    /// `-U`: the row is replaced by the one behind it.
    UpdateBefore,
    /// `+U`: the row replaces the one before it.
    UpdateAfter,
    /// `-D`: the row is gone.
    Delete,
}

impl Op {
    /// +1 where the row is added, −1 where it is taken back.
    pub fn weight(self) -> i64 {
        match self {
            Op::Insert | Op::UpdateAfter => 1,
            Op::UpdateBefore | Op::Delete => -1,
        }
    }

    /// As shown in an `op` column.
    pub fn symbol(self) -> &'static str {
        match self {
            Op::Insert => "+I",
            Op::UpdateBefore => "-U",
            Op::UpdateAfter => "+U",
            Op::Delete => "-D",
        }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.symbol())
    }
}
