//! What a query must know after a crash: offset log, commit log, metadata, source logs, the lease.
//!
//! This room knows files and their order; it does not know what an offset means or what a plan is. The format is
//! written down, file by file, in `docs/checkpoint.md`.

/// That a batch is done.
mod commit_log;
#[cfg(test)]
mod damage;
/// The checkpoint as a whole, opened under its lease.
mod directory;
#[cfg(test)]
mod documented;
/// A store that fails where a test wants it to.
mod fail_store;
/// Places where a test can make a run crash.
pub mod failpoint;
/// One process at a time.
mod lease;
/// A store in a local directory.
mod local_store;
/// Who the checkpoint belongs to.
mod metadata;
/// Files named by batch numbers.
mod numbered_log;
/// What fixes a batch.
mod offset_log;
/// One process at a time, in an object store.
mod remote_lease;
/// A store that is an object store.
mod remote_store;
/// What a source must remember beside its offsets.
mod source_log;
/// A place that keeps files.
mod store;
/// Checksummed lines: the text of every log file.
pub mod text;

pub use commit_log::CommitEntry;
pub use directory::Checkpoint;
pub use fail_store::FailStore;
pub use failpoint::Failpoints;
pub use local_store::LocalStore;
pub use numbered_log::parse_number;
pub use offset_log::{OffsetEntry, SourceOffsets};
pub use remote_lease::LeaseTerms;
pub use remote_store::RemoteStore;
pub use source_log::SourceLog;
pub use store::Store;
