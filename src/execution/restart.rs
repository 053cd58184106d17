//! A restart: where the logs end, and whether the query is still the one that made them.
//!
//! Everything here only reads: a START that is refused leaves the checkpoint as it was.

use std::collections::{BTreeMap, BTreeSet};

use crate::checkpoint::{Checkpoint, CommitEntry, OffsetEntry};
use crate::error::{Error, Result};
use crate::incremental::IncrementalPlan;
use crate::parser::OutputMode;
use crate::planner::leaf::SharedSource;
use crate::source::Offset;
use crate::state::schema::{StateSchema, changed, read_schema};

/// The keys of `conf` in an offset entry.
pub(super) const POLICY: &str = "multiple_watermark_policy";
const MODE: &str = "output_mode";
const OPERATORS: &str = "operators";

/// What the logs of a checkpoint say.
#[derive(Default)]
pub(super) struct Restart {
    /// The newest batch that was begun, and what fixed it.
    pub last: Option<(u64, OffsetEntry)>,
    /// The newest batch that was committed.
    pub done: Option<(u64, OffsetEntry, CommitEntry)>,
}

impl Restart {
    /// Reads where the logs end (rule P1).
    ///
    /// # Errors
    /// Corrupt, by path. Conflict: the query was drained.
    pub fn read(checkpoint: &Checkpoint) -> Result<Self> {
        let Some(last) = checkpoint.latest_offsets()? else { return Ok(Restart::default()) };
        let entry = checkpoint.offsets(last)?;
        let committed = checkpoint.latest_commit()? == Some(last);
        let Some(done) = (if committed { Some(last) } else { last.checked_sub(1) }) else {
            return Ok(Restart { last: Some((last, entry)), done: None });
        };
        let commit = checkpoint.commit(done)?;
        if commit.drained {
            return Err(Error::conflict(format!(
                "checkpoint {} was drained at batch {done}: its query has ended for good; use a new checkpoint",
                checkpoint.location()
            )));
        }
        let of_done = if committed { entry.clone() } else { checkpoint.offsets(done)? };
        Ok(Restart { last: Some((last, entry)), done: Some((done, of_done, commit)) })
    }

    /// The batch that was begun and is to be run again as it was.
    pub fn replay(&self) -> Option<(u64, OffsetEntry)> {
        let done = self.done.as_ref().map(|(batch, ..)| *batch);
        self.last.clone().filter(|(batch, _)| Some(*batch) != done)
    }

    /// Judges a query by what the checkpoint was made by. `states`: what the query would remember.
    ///
    /// # Errors
    /// InvalidInput: the query has changed, with what was and what is. Conflict: a source that can't be read again.
    /// Corrupt: the state that batches were run with is gone.
    pub fn check(&self, checkpoint: &Checkpoint, plan: &IncrementalPlan, states: &[StateSchema]) -> Result<()> {
        if let Some((_, entry)) = &self.last {
            check_inputs(entry, plan)?;
            check_mode(entry, plan, states)?;
            check_replayable(entry, plan)?;
        }
        self.check_states(checkpoint, states)
    }

    fn check_states(&self, checkpoint: &Checkpoint, states: &[StateSchema]) -> Result<()> {
        let store = checkpoint.store();
        let mut operators: BTreeSet<String> = store.list("state")?.into_iter().collect();
        operators.extend(states.iter().map(|state| state.operator.clone()));
        for operator in operators {
            let folder = format!("state/{operator}");
            let stored = read_schema(store.as_ref(), &folder)?;
            let wanted = states.iter().find(|state| state.operator == operator);
            match (&stored, wanted) {
                (None, Some(wanted)) => {
                    let Some((batch, entry)) = &self.last else { continue };
                    let had = entry.conf.get(OPERATORS).is_some_and(|had| had.split(',').any(|o| o == operator));
                    if !had {
                        return Err(changed(None, Some(wanted)));
                    }
                    if self.done.is_some() {
                        let path = store.describe(&format!("{folder}/schema"));
                        let message = format!("the file is missing, though batch {batch} was run with it");
                        return Err(Error::corrupt(path, message));
                    }
                }
                (stored, wanted) if stored.as_ref() != wanted => return Err(changed(stored.as_ref(), wanted)),
                _ => {}
            }
        }
        Ok(())
    }

    /// Holds the logged offsets against what the sources hold.
    ///
    /// # Errors
    /// Conflict: the process holds less than the checkpoint speaks of.
    pub fn check_held(&self, plan: &IncrementalPlan, sources: &[Option<SharedSource>]) -> Result<()> {
        let Some((_, entry)) = &self.last else { return Ok(()) };
        for (input, source) in plan.inputs.iter().zip(sources) {
            let end = entry.sources.get(&input.name).and_then(|logged| logged.end.clone());
            if let (Some(end), Some(source)) = (end, source) {
                super::run::lock(source).check_held(&Offset(end))?;
            }
        }
        Ok(())
    }
}

/// What is logged with each batch for the next restart.
pub(super) fn conf(plan: &IncrementalPlan, policy_max: bool, operators: &[&str]) -> BTreeMap<String, String> {
    let policy = if policy_max { "max" } else { "min" };
    let mut conf = BTreeMap::from([(POLICY.to_string(), policy.to_string())]);
    conf.insert(MODE.to_string(), mode_word(plan.mode).to_string());
    if !operators.is_empty() {
        conf.insert(OPERATORS.to_string(), operators.join(","));
    }
    conf
}

fn mode_word(mode: OutputMode) -> &'static str {
    match mode {
        OutputMode::Append => "append",
        OutputMode::Update => "update",
        OutputMode::Complete => "complete",
    }
}

fn refused(what: &str, was: &str, is: &str) -> Error {
    Error::invalid(format!("the query has changed: {what}\n  in the checkpoint: {was}\n  in the query:      {is}"))
        .help("start it with a new CHECKPOINT, or with the query it was made for")
}

/// A source added or removed under a checkpoint is refused.
fn check_inputs(entry: &OffsetEntry, plan: &IncrementalPlan) -> Result<()> {
    let logged: BTreeSet<&str> = entry.sources.keys().map(String::as_str).collect();
    let now: BTreeSet<&str> = plan.inputs.iter().map(|input| input.name.as_str()).collect();
    if logged == now {
        return Ok(());
    }
    let list = |names: &BTreeSet<&str>| names.iter().copied().collect::<Vec<_>>().join(", ");
    Err(refused("it reads other streams", &list(&logged), &list(&now)))
}

/// COMPLETE keeps every group, the other modes forget; and a result table holds what its mode has sent.
fn check_mode(entry: &OffsetEntry, plan: &IncrementalPlan, states: &[StateSchema]) -> Result<()> {
    let (Some(was), is) = (entry.conf.get(MODE), mode_word(plan.mode)) else { return Ok(()) };
    let complete = mode_word(OutputMode::Complete);
    let of_mode = plan.operators.iter().any(|node| node.spec.is_of_its_mode());
    // What is open and changes no more would never be sent.
    let open = was == mode_word(OutputMode::Append) && plan.operators.iter().any(|node| node.spec.waits());
    let result = states.iter().any(|state| state.operator == "result");
    let matters = was == complete || is == complete || result || of_mode || open;
    if was == is || plan.operators.is_empty() || !matters {
        return Ok(());
    }
    let mode = |word: &str| format!("OUTPUT MODE {}", word.to_uppercase());
    Err(refused("what it remembers was kept for another mode", &mode(was), &mode(is)))
}

/// What can't be read again is not opened for a query that would want it.
fn check_replayable(entry: &OffsetEntry, plan: &IncrementalPlan) -> Result<()> {
    for input in plan.inputs.iter().filter(|input| !input.stream.replayable()) {
        if let Some(end) = entry.sources.get(&input.name).and_then(|logged| logged.end.as_ref()) {
            return Err(Error::conflict(format!(
                "the checkpoint was at {end} of {}, and this source can't be read again: use a new CHECKPOINT",
                input.name
            )));
        }
    }
    Ok(())
}
