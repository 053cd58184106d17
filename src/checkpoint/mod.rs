//! What a query must know after a crash: offset log, commit log, metadata, source logs, the lease.
//!
//! This room knows files and their order; it does not know what an offset means or what a plan is.

pub mod failpoint;
mod log;
mod store;

pub use failpoint::Failpoints;
pub use log::{Checkpoint, CommitEntry, OffsetEntry, SourceLog, SourceOffsets};
pub use store::{LocalStore, Store};
