//! What operators remember between batches.
//!
//! This room knows keys, values, versions and the files they are kept in; it does not know what an operator computes
//! with them, or what a batch is beyond its number.

/// One file of state: a delta or a snapshot.
pub mod file;
/// What an operator's state is made of.
pub mod schema;
/// Which files make up a version, and which are no longer needed.
pub mod versions;

#[cfg(test)]
mod damage;
