//! One micro-batch: the page that is the engine.
//!
//! 1. the trigger has fired ([`super::query_thread`])
//! 2. `latest`   each source was asked how far it can go ([`super::next_batch`])
//! 3. `offsets`  ranges, watermarks and the clock are logged: from here the batch is fixed
//! 4. `read`     exactly those ranges are put into the plan's leaves
//! 5. `process`  the first fragment, the operators, the fragment behind them
//! 6. `sink`     the result is handed over under the batch's id, dead letters before it
//! 7. `state`    the operators' states are kept as version N
//! 8. `commit`   the next watermarks are logged: from here the batch is done
//! 9. `forget`   sources may forget, snapshots begin, old versions go
//!
//! Between 3 and 8 everything may happen twice, so everything is keyed by N.

use super::next_batch::NextBatch;
use super::progress::Measured;
use super::run::Run;
use crate::checkpoint::CommitEntry;
use crate::error::{Error, Result};
use crate::operator::BatchInfo;
use crate::sink::{BatchSummary, Begin};

impl Run {
    /// Runs one batch to its commit.
    ///
    /// # Errors
    /// Of the step that failed; nothing behind `offsets/N` counts then, and the batch will be run again.
    pub(super) fn run_batch(&mut self, next: &NextBatch, measured: &mut Measured) -> Result<()> {
        let (n, entry) = (next.batch, &next.entry);
        if next.is_new {
            self.step(measured, "offsets", "walCommit", |run, _| run.checkpoint.log_offsets(n, entry))?;
        }
        let watermark = if entry.drains { Some(BatchInfo::END) } else { entry.watermark };
        let info = BatchInfo { timestamp: entry.timestamp, late_watermark: next.late_watermark, watermark };
        self.plan.cell.begin(info);
        self.step(measured, "read", "getBatch", |run, _| run.fill_leaves(entry))?;
        let begin = self.with_sink(|sink| sink.begin(n))?;
        if next.is_new && begin == Begin::AlreadyDone {
            return Err(ahead(n, self.checkpoint.location()));
        }
        let changed = self.step(measured, "process", "addBatch", |run, measured| {
            run.process(&info, next.parallel, begin == Begin::Write, measured)
        })?;
        measured.count(&self.plan);
        let summary = BatchSummary {
            input_rows: measured.input_rows,
            watermark: entry.watermark,
            drains: entry.drains,
            state_rows: super::operators::rows(&self.operators),
        };
        let writes = begin == Begin::Write;
        if writes || !self.dead_letters.is_empty() {
            self.step(measured, "sink", "addBatch", |run, measured| {
                // The sink may be where no lease is asked for.
                run.checkpoint.held()?;
                run.write_dead_letters(n, next.is_new, &summary)?;
                if writes {
                    measured.output_rows = Some(run.with_sink(|sink| sink.commit(&summary))?.rows);
                }
                Ok(())
            })?;
        }
        self.step(measured, "state", "stateCommit", |run, measured| run.commit_state(n, &changed, measured))?;
        self.watermarks.advance(&self.plan.cell, entry.timestamp);
        let commit = CommitEntry {
            watermarks: self.watermarks.by_input(),
            watermark: self.watermarks.query(),
            silent: self.watermarks.silent(entry.timestamp),
            drained: entry.drains,
            late: self.late.saturating_add(measured.late()),
        };
        self.step(measured, "commit", "commitOffsets", |run, _| run.checkpoint.log_commit(n, &commit))?;
        self.late = commit.late;
        self.done(next);
        self.step(measured, "forget", "commitOffsets", |run, _| run.forget(n, entry))
    }
}

/// A sink that has a batch which this checkpoint has only now begun would lose its rows.
pub(super) fn ahead(batch: u64, checkpoint: &str) -> Error {
    Error::conflict(format!(
        "the sink has batch {batch} already, and checkpoint {checkpoint} has only now begun it: the checkpoint has lost its newest \
         entries, or another copy of it was run; put the newer checkpoint back, or start with a new checkpoint and a new place for the sink"
    ))
}
