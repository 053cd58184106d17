//! What operators remember between batches.
//!
//! A [`StateTable`] is one partition of one operator's memory; an [`OperatorState`] is all of them, and the files they
//! are kept in. This room knows keys, values, versions and files; it does not know what an operator computes with them,
//! or what a batch is beyond its number.

/// Which keys may be forgotten when.
mod by_time;
/// One file of state: a delta or a snapshot.
pub mod file;
/// Which slot a key has.
mod key_index;
/// How far loading has come.
mod loaded;
/// Which rows belong to a group.
mod members;
/// All partitions of an operator, loaded and kept.
mod operator_state;
/// What an operator's state is made of.
pub mod schema;
/// One partition: key → values, in columns.
mod table;
/// Which files make up a version, and which are no longer needed.
pub mod versions;

pub use loaded::Loaded;
pub use operator_state::{Asked, Forgets, OperatorState, Shape, Spread};
pub use table::{Frozen, NO_NUMBER, Slot, StateTable, select_rows};
