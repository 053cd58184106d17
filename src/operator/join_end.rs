//! The end of a batch in a join: rows that found a partner or lost their last one, rows that are final, and what is
//! forgotten.

use std::sync::Arc;

use arrow::array::{ArrayRef, UInt32Array};

use super::join_part::{Part, States, of_key, of_slot};
use super::join_rows::Rows;
use super::{BatchInfo, ForgetBy, Output};
use crate::error::Result;
use crate::state::{Slot, StateTable};

impl Part {
    /// Ends the batch; one output a state.
    pub(super) fn end(&mut self, batch: &BatchInfo, states: States<'_, '_>) -> Result<Vec<Output>> {
        for (side, state) in states.iter_mut().enumerate() {
            self.judge(side, state)?;
            self.forget_gone(side, state)?;
            self.forget_due(side, batch, state)?;
            self.write_counts(side, state)?;
            for slot in std::mem::take(&mut self.fresh[side]) {
                self.index[side].settle(slot);
            }
            self.index[side].sweep();
        }
        let [left, right] = std::mem::take(&mut self.written);
        let Output { rows, old_rows, old_keys, new_keys, .. } = self.changes.take();
        Ok(vec![Output { rows, old_rows, old_keys, new_keys, ..left }, right])
    }

    /// Shows the judged rows whose verdict is another now. In APPEND a partner is final, and none isn't.
    fn judge(&mut self, side: usize, state: &StateTable) -> Result<()> {
        let kind = self.spec.kind;
        let mut shown: [[Vec<Slot>; 2]; 2] = Default::default();
        for (slot, before) in &self.touched[side] {
            let now = (!self.dead[side].contains_key(slot)).then(|| self.index[side].matches(*slot) > 0);
            let (was, is) = match self.spec.finals {
                true => (None, now.filter(|matched| *matched)),
                false => (*before, now),
            };
            let (was, is) = (was.and_then(|m| kind.shows(m)), is.and_then(|m| kind.shows(m)));
            if was == is {
                continue;
            }
            for (added, mark) in [(0, was), (1, is)] {
                if let Some(mark) = mark {
                    shown[added][usize::from(mark)].push(*slot);
                }
            }
        }
        for (added, by_mark) in shown.iter().enumerate() {
            for (mark, slots) in by_mark.iter().enumerate() {
                self.show_kept(side, slots, mark == 1, added == 1, state)?;
            }
        }
        Ok(())
    }

    /// Shows remembered rows beside nothing.
    fn show_kept(&mut self, side: usize, slots: &[Slot], mark: bool, added: bool, state: &StateTable) -> Result<()> {
        let Part { spec, index, changes, touched, dead, .. } = self;
        let mut sides = [Rows::Nothing; 2];
        sides[side] = Rows::Kept(state, slots);
        let whose = |n: usize| match touched[side].get(&slots[n]) {
            Some(Some(false)) => of_slot(side, slots[n]),
            _ => of_key(dead[side].get(&slots[n]).copied().unwrap_or_else(|| index[side].key_hash(slots[n]))),
        };
        changes.add(spec, sides, slots.len(), Some(mark), added, whose)
    }

    /// Forgets rows that were taken back, and left rows that can't be judged again.
    fn forget_gone(&mut self, side: usize, state: &mut StateTable) -> Result<()> {
        let mut gone: Vec<Slot> = std::mem::take(&mut self.dead[side]).into_keys().collect();
        let touched = std::mem::take(&mut self.touched[side]);
        if side == 0 && self.spec.judges_once() {
            for slot in touched.into_keys().filter(|slot| self.index[0].matches(*slot) > 0).collect::<Vec<_>>() {
                self.index[0].unlink(slot);
                gone.push(slot);
            }
        }
        self.written[side].forgot(state.forget(&gone, &self.spec.sides[side].keys)?);
        Ok(())
    }

    /// Forgets rows that nothing to come can match; those that found no partner are final.
    fn forget_due(&mut self, side: usize, batch: &BatchInfo, state: &mut StateTable) -> Result<()> {
        let spec = self.spec.clone();
        let (Some(_), Some(until)) = (spec.sides[side].until, ForgetBy::until(batch)) else { return Ok(()) };
        if let (true, Some(mark)) = (spec.finals && spec.sides[side].kept, spec.kind.shows(false)) {
            let mut alone = state.due(until);
            alone.retain(|slot| self.index[side].matches(*slot) == 0);
            self.show_kept(side, &alone, mark, true, state)?;
        }
        let gone = state.forget_due(until)?;
        gone.iter().for_each(|slot| self.index[side].unlink(*slot));
        self.written[side].forgot_until(until, gone.len());
        Ok(())
    }

    /// Writes the rows anew that have another number of partners.
    fn write_counts(&mut self, side: usize, state: &mut StateTable) -> Result<()> {
        let mut slots = std::mem::take(&mut self.recount[side]);
        slots.sort_unstable();
        slots.dedup();
        slots.retain(|slot| self.index[side].is_linked(*slot));
        let spec = &self.spec.sides[side];
        let Some(at) = spec.matches_at(self.spec.width).filter(|_| !slots.is_empty()) else { return Ok(()) };
        let all: Vec<usize> = (0..spec.rows.fields().len()).collect();
        let mut columns = state.columns(&slots, all.iter().copied())?;
        let counts = slots.iter().map(|slot| self.index[side].matches(*slot));
        columns[at] = Arc::new(UInt32Array::from_iter_values(counts)) as ArrayRef;
        let values = columns.split_off(self.spec.width + 1);
        let written = &mut self.written[side];
        written.updated += slots.iter().filter(|slot| !self.index[side].is_fresh(**slot)).count() as u64;
        written.upserts.push(state.write(slots, columns, values, None)?);
        Ok(())
    }
}
