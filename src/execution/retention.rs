//! What is kept: `min_batches_to_retain` batches of logs. State files are removed behind a snapshot.

use crate::checkpoint::Checkpoint;
use crate::error::Result;

/// How many batches go by between two purges.
const EVERY: u64 = 16;

/// Removes log entries that no restart needs, now and then. The late filter of the oldest batch kept reads the offsets of
/// the one before it, so one more stays.
pub fn purge(checkpoint: &Checkpoint, batch: u64, retain: u64) -> Result<()> {
    if !batch.is_multiple_of(EVERY) {
        return Ok(());
    }
    match batch.checked_sub(retain.max(2) + 1) {
        Some(keep_from) => checkpoint.purge(keep_from),
        None => Ok(()),
    }
}
