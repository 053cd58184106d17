//! Inputs of a join that take rows back: what of a batch's changes is left, rows that go first, then rows that come.

use std::collections::HashMap;

use arrow::array::AsArray;
use arrow::compute::concat_batches;
use arrow::datatypes::Int8Type;

use super::join_part::{Coming, Part, States};
use super::{BatchInfo, KeyedDelta};
use crate::delta::keys::Keys;
use crate::error::{Error, Result};
use crate::state::{Slot, StateTable, select_rows};

impl Part {
    /// Puts changes aside until all changes of the input are there.
    pub(super) fn wait(&mut self, input: usize, changes: &KeyedDelta) -> Result<()> {
        self.pending[input].push(match &changes.select {
            None => changes.rows.clone(),
            Some(select) => select_rows(&changes.rows, select.clone())?,
        });
        Ok(())
    }

    /// Takes what was put aside in.
    pub(super) fn settle_pending(&mut self, side: usize, batch: &BatchInfo, states: States<'_, '_>) -> Result<()> {
        let (pending, spec) = (std::mem::take(&mut self.pending[side]), self.spec.clone());
        let (Some(first), Some((weight, codec))) = (pending.first(), &spec.sides[side].weight) else {
            return Ok(());
        };
        let rows = concat_batches(&first.schema(), &pending).map_err(Error::from)?;
        let payload: Vec<_> = spec.sides[side].payload.iter().map(|at| rows.column(*at).clone()).collect();
        let identity = codec.encode(&payload, rows.num_rows())?;
        let weights = rows.column(*weight).as_primitive::<Int8Type>();
        let mut left: HashMap<&[u8], (u32, i64)> = HashMap::new();
        for row in 0..rows.num_rows() {
            left.entry(identity.bytes(row)).or_insert((row as u32, 0)).1 += i64::from(weights.value(row));
        }
        let (mut gone, mut come) = (Vec::new(), Vec::new());
        for (row, count) in left.into_values() {
            let into = if count < 0 { &mut gone } else { &mut come };
            into.extend(std::iter::repeat_n(row, count.unsigned_abs() as usize));
        }
        gone.sort_unstable();
        come.sort_unstable();
        let keys = spec.codec.encode(&rows.columns()[..spec.width], rows.num_rows())?;
        let coming = Coming { side, rows: &rows, keys: &keys, added: true };
        self.go(Coming { added: false, ..coming }, gone, &identity, states)?;
        self.come(coming, come, batch, states)
    }

    /// Rows that are taken back.
    fn go(&mut self, going: Coming<'_>, select: Vec<u32>, identity: &Keys, states: States<'_, '_>) -> Result<()> {
        let side = going.side;
        let select = self.passing(going, select)?;
        for row in &select {
            let slot = self.remembered(going, *row as usize, identity, states[side])?;
            if self.spec.sides[side].kept {
                let had = self.index[side].matches(slot) > 0;
                self.touched[side].entry(slot).or_insert(Some(had));
            }
            self.dead[side].insert(slot, self.index[side].key_hash(slot));
            self.index[side].unlink(slot);
        }
        self.meet(going, &select, states).map(drop)
    }

    /// The row that equals this one.
    fn remembered(&self, going: Coming<'_>, row: usize, identity: &Keys, state: &StateTable) -> Result<Slot> {
        let lost = || Error::internal("a join was told to take a row back that it does not remember");
        let spec = &self.spec.sides[going.side];
        let (Some((_, codec)), index) = (&spec.weight, &self.index[going.side]) else { return Err(lost()) };
        let chain = index.find(going.keys, row).ok_or_else(lost)?;
        let alike: Vec<Slot> = index.rows(chain).filter(|slot| index.row_hash(*slot) == identity.hashes[row]).collect();
        let payload: Vec<usize> = (spec.payload_at(self.spec.width)..spec.rows.fields().len()).collect();
        let stored = codec.encode(&state.columns(&alike, payload.iter().copied())?, alike.len())?;
        let same = (0..alike.len()).find(|at| stored.bytes(*at) == identity.bytes(row));
        same.map(|at| alike[at]).ok_or_else(lost)
    }
}
