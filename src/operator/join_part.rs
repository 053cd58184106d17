//! One partition of a join: rows that come meet those that are remembered, and are remembered.
//!
//! Keys are looked up one by one, all else is done for many rows at once: candidates are gathered in chunks, the condition
//! is evaluated over a chunk, and what is left of it becomes rows of the result.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, TimestampMicrosecondArray, UInt32Array, UInt64Array};
use arrow::compute::take;
use arrow::datatypes::{UInt32Type, UInt64Type};

use super::join::{JoinKind, JoinSide, JoinSpec};
use super::join_index::{BLOCK, JoinIndex};
use super::join_rows::{Changes, Rows, chosen};
use super::node::OperatorPart;
use super::{BatchInfo, ForgetBy, KeyedDelta, Output};
use crate::delta::keys::Keys;
use crate::delta::time::{micros_ceil, time_values, unit_of};
use crate::error::{Error, Result};
use crate::state::{Slot, StateTable};

/// So many candidates are looked at at a time.
const CHUNK: usize = 16_384;

/// See the module's documentation.
pub struct Part {
    pub(super) spec: Arc<JoinSpec>,
    built: bool,
    pub(super) index: [JoinIndex; 2],
    pub(super) changes: Changes,
    /// What the batch wrote and removed of each side's state.
    pub(super) written: [Output; 2],
    /// Judged rows of which the batch changed something, and whether they had a partner before, if they were there.
    pub(super) touched: [BTreeMap<Slot, Option<bool>>; 2],
    /// Rows whose number of partners is another now.
    pub(super) recount: [Vec<Slot>; 2],
    /// Rows that came in this batch.
    pub(super) fresh: [Vec<Slot>; 2],
    /// Rows that were taken back, and what their key hashes to.
    pub(super) dead: [BTreeMap<Slot, u64>; 2],
    /// Changes of inputs that take rows back, until all of an input are there.
    pub(super) pending: [Vec<RecordBatch>; 2],
}

/// Rows of one input with their join keys.
#[derive(Clone, Copy)]
pub(super) struct Coming<'a> {
    pub side: usize,
    pub rows: &'a RecordBatch,
    pub keys: &'a Keys,
    /// They come; otherwise they go.
    pub added: bool,
}

/// The two states.
pub(super) type States<'a, 'b> = &'a mut [&'b mut StateTable];

impl Part {
    /// A partition that has seen nothing of any batch.
    pub fn new(spec: Arc<JoinSpec>) -> Self {
        let (index, changes, written, touched, recount, fresh, dead, pending) = Default::default();
        Part { spec, built: false, index, changes, written, touched, recount, fresh, dead, pending }
    }

    /// Makes the indexes of what is remembered, once.
    pub(super) fn build(&mut self, states: States<'_, '_>) -> Result<()> {
        if states.len() != 2 {
            return Err(Error::internal("a join has two states"));
        }
        if std::mem::replace(&mut self.built, true) {
            return Ok(());
        }
        let width = self.spec.width;
        for (n, side) in self.spec.sides.iter().enumerate() {
            let slots = states[n].slots();
            let columns: Vec<usize> = (0..side.rows.fields().len()).collect();
            let columns = states[n].columns(&slots, columns.iter().copied())?;
            let keys = self.spec.codec.encode(&columns[..width], slots.len())?;
            let numbers = columns[width].as_primitive::<UInt64Type>();
            let matches = side.matches_at(width).map(|at| columns[at].as_primitive::<UInt32Type>());
            let identity =
                side.weight.as_ref().map(|(_, codec)| codec.encode(&columns[side.payload_at(width)..], slots.len()));
            let identity = identity.transpose()?;
            let mut order: Vec<usize> = (0..slots.len()).collect();
            order.sort_unstable_by_key(|row| (numbers.value(*row), slots[*row]));
            for row in order {
                let chain = self.index[n].enter_as(&keys, row, numbers.value(row));
                let hash = identity.as_ref().map_or(0, |keys| keys.hashes[row]);
                self.index[n].link(chain, slots[row], matches.map_or(0, |m| m.value(row)), hash, false);
            }
        }
        Ok(())
    }

    /// Rows that are added to an input.
    pub(super) fn come(
        &mut self,
        coming: Coming<'_>,
        select: Vec<u32>,
        batch: &BatchInfo,
        states: States<'_, '_>,
    ) -> Result<()> {
        let select = self.passing(coming, select)?;
        let matches = self.meet(coming, &select, states)?;
        self.keep(coming, &select, &matches, batch, states)
    }

    /// Those rows that can match; the others have no partner, and never will.
    pub(super) fn passing(&mut self, coming: Coming<'_>, select: Vec<u32>) -> Result<Vec<u32>> {
        let Some(pass) = self.spec.sides[coming.side].pass else { return Ok(select) };
        let pass =
            coming.rows.column(pass).as_boolean_opt().ok_or_else(|| Error::internal("a join's rows don't say"))?;
        let passes = |row: &u32| pass.is_valid(*row as usize) && pass.value(*row as usize);
        let (select, alone): (Vec<u32>, Vec<u32>) = select.into_iter().partition(passes);
        self.alone(coming, alone)?;
        Ok(select)
    }

    /// Shows rows of an input as those that have no partner.
    pub(super) fn alone(&mut self, coming: Coming<'_>, which: Vec<u32>) -> Result<()> {
        match self.spec.kind.shows(false) {
            Some(mark) if self.spec.sides[coming.side].kept => self.show(coming, which, mark),
            _ => Ok(()),
        }
    }

    fn show(&mut self, coming: Coming<'_>, which: Vec<u32>, mark: bool) -> Result<()> {
        let which = UInt32Array::from(which);
        let mut sides = [Rows::Nothing; 2];
        sides[coming.side] = Rows::Of(coming.rows, &which);
        let whose = |row: usize| of_key(coming.keys.hashes[which.value(row) as usize]);
        self.changes.add(&self.spec, sides, which.len(), Some(mark), coming.added, whose)
    }

    /// Joins rows of one input with what is remembered of the other; answers how many partners each has.
    pub(super) fn meet(&mut self, coming: Coming<'_>, select: &[u32], states: States<'_, '_>) -> Result<Vec<u32>> {
        let spec = self.spec.clone();
        let mut matches = vec![0; select.len()];
        // Where it matters only whether there is a partner, the key tells.
        let key_tells = spec.judges_once() && coming.side == 0 && spec.condition.is_none();
        let (mut at, mut slots) = (Vec::new(), Vec::new());
        for (block, rows) in select.chunks(BLOCK).enumerate() {
            let found = self.index[1 - coming.side].find_block(coming.keys, rows);
            self.index[1 - coming.side].look_at(&found[..rows.len()]);
            for (n, chain) in (block * BLOCK..).zip(&found[..rows.len()]) {
                let Some(chain) = *chain else { continue };
                if key_tells {
                    matches[n] = 1;
                    continue;
                }
                slots.extend(self.index[1 - coming.side].rows(chain));
                at.resize(slots.len(), n as u32);
                if slots.len() >= CHUNK {
                    self.candidates(coming, select, &mut at, &mut slots, &mut matches, states)?;
                }
            }
        }
        self.candidates(coming, select, &mut at, &mut slots, &mut matches, states)?;
        Ok(matches)
    }

    /// Looks at candidates, `at` being places in `select`; none are left.
    fn candidates(
        &mut self,
        coming: Coming<'_>,
        select: &[u32],
        at: &mut Vec<u32>,
        slots: &mut Vec<Slot>,
        matches: &mut [u32],
        states: States<'_, '_>,
    ) -> Result<()> {
        for (at, slots) in at.chunks(CHUNK).zip(slots.chunks(CHUNK)) {
            self.pairs(coming, select, at.to_vec(), slots.to_vec(), matches, states)?;
        }
        at.clear();
        slots.clear();
        Ok(())
    }

    fn pairs(
        &mut self,
        coming: Coming<'_>,
        select: &[u32],
        mut at: Vec<u32>,
        mut slots: Vec<Slot>,
        matches: &mut [u32],
        states: States<'_, '_>,
    ) -> Result<()> {
        let (spec, other) = (self.spec.clone(), 1 - coming.side);
        let rows_of = |at: &[u32]| UInt32Array::from_iter_values(at.iter().map(|at| select[*at as usize]));
        let mut rows = rows_of(&at);
        if let Some(condition) = &spec.condition {
            let mut sides = [Rows::Of(coming.rows, &rows); 2];
            sides[other] = Rows::Kept(&*states[other], &slots);
            let holds = condition.holds(sides, slots.len(), &spec)?;
            if holds.true_count() < slots.len() {
                (at, slots) = (chosen(at, &holds)?, chosen(slots, &holds)?);
                rows = rows_of(&at);
            }
        }
        // Partners that can't go away need not be counted.
        let counted = |side: usize| spec.sides[1 - side].weight.is_some();
        for n in &at {
            let count = &mut matches[*n as usize];
            *count = if counted(coming.side) { count.saturating_add(1) } else { 1 };
        }
        if spec.sides[other].kept {
            for slot in &slots {
                self.partner(other, *slot, coming.added, counted(other));
            }
        }
        if spec.kind != JoinKind::Pairs {
            return Ok(());
        }
        let mut sides = [Rows::Of(coming.rows, &rows); 2];
        sides[other] = Rows::Kept(&*states[other], &slots);
        let touched = &self.touched[other];
        // A pair that takes the place of NULLs belongs to the row that stood beside them.
        let whose = |n: usize| match touched.get(&slots[n]) {
            Some(Some(false)) => of_slot(other, slots[n]),
            _ => of_key(coming.keys.hashes[rows.value(n) as usize]),
        };
        self.changes.add(&spec, sides, slots.len(), None, coming.added, whose)
    }

    /// A remembered row has one partner more, or less.
    fn partner(&mut self, side: usize, slot: Slot, more: bool, counted: bool) {
        let index = &mut self.index[side];
        let had = index.matches(slot);
        let has = match (more, counted) {
            (true, true) => had.saturating_add(1),
            (true, false) => 1,
            (false, _) => had.saturating_sub(1),
        };
        if has != had {
            let before = (!index.is_fresh(slot)).then_some(had > 0);
            self.touched[side].entry(slot).or_insert(before);
            index.set_matches(slot, has);
            self.recount[side].push(slot);
        }
    }

    /// Remembers rows that may find partners in batches to come, and left rows until the right rows of this batch are there.
    fn keep(
        &mut self,
        coming: Coming<'_>,
        select: &[u32],
        matches: &[u32],
        batch: &BatchInfo,
        states: States<'_, '_>,
    ) -> Result<()> {
        let (spec, n) = (self.spec.clone(), coming.side);
        let side = &spec.sides[n];
        let times = side.times(coming.rows)?;
        let passed = if n == 1 { ForgetBy::until(batch) } else { None };
        let over = |row: u32| passed.zip(times.as_ref()).is_some_and(|(until, times)| times[row as usize] <= until);
        let once = n == 0 && spec.judges_once();
        // Without a condition, and without an end, one row tells all that its equals could.
        let one_tells = n == 1 && spec.judges_once() && spec.condition.is_none() && times.is_none();
        let (mut rows, mut chains, mut numbers, mut counts) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (mut judged, mut alone) = (Vec::new(), Vec::new());
        for (at, (row, count)) in select.iter().zip(matches).enumerate() {
            if at % BLOCK == 0 {
                // They are looked up before they are entered, for their memory's sake.
                let block = &select[at..select.len().min(at + BLOCK)];
                std::hint::black_box(self.index[n].find_block(coming.keys, block));
            }
            if once && *count > 0 {
                judged.push(*row);
            } else if over(*row) {
                if *count == 0 {
                    alone.push(*row);
                }
            } else if !(one_tells && self.index[n].find(coming.keys, *row as usize).is_some()) {
                let (chain, number) = self.index[n].enter(coming.keys, *row as usize);
                rows.push(*row);
                chains.push(chain);
                numbers.push(number);
                counts.push(*count);
            }
        }
        if let Some(mark) = spec.kind.shows(true) {
            self.show(coming, judged, mark)?;
        }
        self.alone(coming, alone)?;
        if rows.is_empty() {
            return Ok(());
        }
        let taken = UInt32Array::from(rows);
        let column = |at: usize| take(coming.rows.column(at), &taken, None).map_err(Error::from);
        let mut keys: Vec<ArrayRef> = (0..spec.width).map(column).collect::<Result<_>>()?;
        keys.push(Arc::new(UInt64Array::from(numbers)));
        let mut values: Vec<ArrayRef> = Vec::new();
        let times: Option<Vec<i64>> =
            times.map(|times| taken.values().iter().map(|row| times[*row as usize]).collect());
        if let Some(times) = &times {
            let times = times.iter().map(|time| (*time != i64::MAX).then_some(*time));
            values.push(Arc::new(times.collect::<TimestampMicrosecondArray>()));
        }
        if side.kept {
            values.push(Arc::new(UInt32Array::from(counts.clone())));
        }
        let payload: Vec<ArrayRef> = side.payload.iter().map(|at| column(*at)).collect::<Result<_>>()?;
        let identity = side.weight.as_ref().map(|(_, codec)| codec.encode(&payload, taken.len())).transpose()?;
        values.extend(payload);
        let state = &mut *states[n];
        let slots = state.append(taken.len());
        for (at, slot) in slots.iter().enumerate() {
            let hash = identity.as_ref().map_or(0, |keys| keys.hashes[at]);
            self.index[n].link(chains[at], *slot, counts[at], hash, true);
            if side.kept && !spec.finals {
                self.touched[n].insert(*slot, None);
            }
        }
        self.fresh[n].extend(&slots);
        self.written[n].updated += slots.len() as u64;
        self.written[n].upserts.push(state.write(slots, keys, values, times.as_deref())?);
        Ok(())
    }
}

/// What belongs to a key, and what to a row.
pub(super) fn of_key(hash: u64) -> u64 {
    hash >> 2
}

pub(super) fn of_slot(side: usize, slot: Slot) -> u64 {
    (1 << 63) | (side as u64) << 62 | u64::from(slot)
}

impl JoinSide {
    /// The time at which each row of its input may be forgotten, in microseconds.
    fn times(&self, rows: &RecordBatch) -> Result<Option<Vec<i64>>> {
        let Some((column, behind)) = self.until else { return Ok(None) };
        let (times, unit) = (time_values(rows.column(column))?, unit_of(rows.column(column).data_type())?);
        let until = |row| {
            if times.is_null(row) { i64::MAX } else { micros_ceil(times.value(row), unit).saturating_add(behind) }
        };
        Ok(Some((0..times.len()).map(until).collect()))
    }

    /// Where its state has the number of partners.
    pub(super) fn matches_at(&self, width: usize) -> Option<usize> {
        self.kept.then_some(width + 1 + usize::from(self.until.is_some()))
    }

    /// Where its state has what is read.
    pub fn payload_at(&self, width: usize) -> usize {
        width + 1 + usize::from(self.until.is_some()) + usize::from(self.kept)
    }
}

impl OperatorPart for Part {
    fn push(&mut self, input: usize, changes: &KeyedDelta, batch: &BatchInfo, states: States<'_, '_>) -> Result<()> {
        self.build(states)?;
        if self.spec.sides[input].weight.is_some() {
            return self.wait(input, changes);
        }
        if input == 1 {
            self.settle_pending(0, batch, states)?;
        }
        let all = || (0..changes.rows.num_rows() as u32).collect();
        let select = changes.select.clone().unwrap_or_else(all);
        let coming = Coming { side: input, rows: &changes.rows, keys: &changes.keys, added: true };
        self.come(coming, select, batch, states)
    }

    fn finish(&mut self, batch: &BatchInfo, states: States<'_, '_>) -> Result<Vec<Output>> {
        self.build(states)?;
        self.settle_pending(0, batch, states)?;
        self.settle_pending(1, batch, states)?;
        self.end(batch, states)
    }
}
