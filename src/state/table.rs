//! One partition of an operator's memory: key → values, in columns.
//!
//! ```text
//! index    key bytes → slot              one small number a live key; left out where an operator keeps the slots itself
//! slots    slot → (chunk, row)           where its values are
//! chunks   [keys | values] [keys | values] …   immutable record batches, newest last
//! ```
//!
//! A batch never changes a chunk: what it changed becomes a new chunk, which is also what the delta file of that
//! version holds. So a commit costs what the batch changed, a snapshot can be written from frozen chunks in the
//! background, and a row whose key was written again later is garbage. Chunks with more garbage than rows are
//! rewritten a few at a time, and small ones are merged, at a cost in proportion to what the batch changed.

use std::sync::Arc;

use super::by_time::ByTime;
use super::key_index::{KeyIndex, tag};
use super::members::Members;
use crate::delta::keys::{KeyCodec, Keys};
use crate::error::{Error, Result};
use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::compute::{interleave, take};
use arrow::datatypes::SchemaRef;

/// A live key's number in one partition, until the key is forgotten.
pub type Slot = u32;

/// Where a slot's values are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    chunk: u32,
    row: u32,
}

/// What is known of a slot beside its key; together, as a batch asks for all of it.
#[derive(Debug, Clone, Copy)]
struct SlotInfo {
    place: Place,
    /// See [`StateTable::number`].
    number: u32,
    /// The key's, in the index.
    tag: u32,
}

impl SlotInfo {
    const FREE: SlotInfo = SlotInfo { place: Place::NONE, number: NO_NUMBER, tag: 0 };
}

/// No number was given to the slot in this batch.
pub const NO_NUMBER: u32 = u32::MAX;

/// So many rows are looked up at a time: the waits for memory of one step overlap each other.
const BLOCK: usize = 256;

impl Place {
    /// Not written yet: a key of the batch that runs, or a free slot.
    const NONE: Place = Place { chunk: u32::MAX, row: 0 };
}

#[derive(Clone)]
struct Chunk {
    rows: RecordBatch,
    /// The slot each row was written for.
    slots: Arc<Vec<Slot>>,
    live: usize,
}

/// Chunks of fewer rows are merged with their neighbour.
const SMALL: usize = 65_536;

/// One partition of an operator's state. See the module's documentation.
pub struct StateTable {
    schema: SchemaRef,
    key_columns: usize,
    codec: Arc<KeyCodec>,
    /// Rows that are asked for by their slots alone need none, but while files are loaded.
    index: Option<KeyIndex>,
    by_slot: bool,
    slots: Vec<SlotInfo>,
    /// Slots that are not free.
    live: usize,
    chunks: Vec<Option<Chunk>>,
    /// Indices of chunks in order of age.
    order: Vec<u32>,
    free: Vec<Slot>,
    /// For operators that forget by time.
    by_time: ByTime,
    /// For operators that ask for the rows of a group.
    members: Option<Members>,
}

impl StateTable {
    /// An empty table whose rows have the columns of `schema`, the first `key_columns` of them being the key.
    pub fn new(schema: SchemaRef, key_columns: usize, codec: Arc<KeyCodec>) -> Self {
        StateTable {
            schema,
            key_columns,
            codec,
            index: Some(KeyIndex::default()),
            by_slot: false,
            slots: Vec::new(),
            live: 0,
            chunks: Vec::new(),
            order: Vec::new(),
            free: Vec::new(),
            by_time: ByTime::default(),
            members: None,
        }
    }

    /// The same, whose rows can be asked for by the first `columns` of their keys, as `codec` makes groups of them.
    pub fn with_members(self, codec: Arc<KeyCodec>, columns: usize) -> Self {
        StateTable { members: Some(Members::new(codec, columns)), ..self }
    }

    /// The same, whose rows are asked for by their slots alone: see [`StateTable::append`].
    pub fn by_slot(self) -> Self {
        StateTable { index: None, by_slot: true, ..self }
    }

    /// What makes keys of key columns, and back.
    pub fn codec(&self) -> &KeyCodec {
        &self.codec
    }

    /// Keys and values.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.live
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// The slot of a key, and whether the key is new. A new key has no values until [`StateTable::write`].
    pub fn find_or_insert(&mut self, keys: &Keys, row: usize) -> (Slot, bool) {
        if let Some(slot) = self.find(keys, row) {
            return (slot, false);
        }
        let slot = self.take_free();
        self.slots[slot as usize].tag = tag(keys, row);
        self.index.get_or_insert_default().insert(keys, row, slot);
        (slot, true)
    }

    /// [`StateTable::find_or_insert`] for many rows, those of `select` or the first `rows`: their slots go to `out`.
    pub fn find_or_insert_all(&mut self, keys: &Keys, select: Option<&[u32]>, rows: usize, out: &mut Vec<Slot>) {
        let count = select.map_or(rows, <[u32]>::len);
        let row_at = |at: usize| select.map_or(at, |select| select[at] as usize);
        let mut found = [None; BLOCK];
        for start in (0..count).step_by(BLOCK) {
            let block = start..count.min(start + BLOCK);
            let index = self.index.get_or_insert_default();
            for (at, found) in block.clone().zip(&mut found) {
                *found = index.likely(tag(keys, row_at(at)));
            }
            for (at, found) in block.clone().zip(&mut found) {
                *found = found.filter(|slot| index.has(*slot, keys, row_at(at)));
            }
            for (at, found) in block.zip(found) {
                out.push(found.unwrap_or_else(|| self.find_or_insert(keys, row_at(at)).0));
            }
        }
    }

    /// So many new slots, for rows whose keys are not there yet: their table is [`StateTable::by_slot`].
    pub fn append(&mut self, count: usize) -> Vec<Slot> {
        (0..count).map(|_| self.take_free()).collect()
    }

    fn take_free(&mut self) -> Slot {
        self.live += 1;
        self.free.pop().unwrap_or_else(|| {
            self.slots.push(SlotInfo::FREE);
            (self.slots.len() - 1) as Slot
        })
    }

    /// Whether the slot has values already.
    pub fn has_values(&self, slot: Slot) -> bool {
        self.slots[slot as usize].place != Place::NONE
    }

    /// A number that an operator may give a slot while a batch runs; [`NO_NUMBER`] again once the slot is written.
    pub fn number(&mut self, slot: Slot) -> &mut u32 {
        &mut self.slots[slot as usize].number
    }

    /// The key columns of these slots, all of which have values where the table is [`StateTable::by_slot`].
    pub fn key_columns(&self, slots: &[Slot]) -> Result<Vec<ArrayRef>> {
        match &self.index {
            _ if self.key_columns == 0 => Ok(Vec::new()),
            Some(index) => self.codec.decode(slots.iter().map(|slot| index.key(*slot))),
            None => self.columns(slots, 0..self.key_columns),
        }
    }

    /// A slot's key as bytes: to order slots as their keys. Nothing where the table is [`StateTable::by_slot`].
    pub fn key_bytes(&self, slot: Slot) -> &[u8] {
        self.index.as_ref().map_or(&[], |index| index.key(slot))
    }

    /// The value columns of these slots, all of which have values.
    pub fn values(&self, slots: &[Slot]) -> Result<Vec<ArrayRef>> {
        self.columns(slots, self.key_columns..self.schema.fields().len())
    }

    /// The slots of a group, where [`StateTable::with_members`] has been asked for: in the order in which they were written,
    /// or of their keys where they were loaded.
    pub fn members(&self, group: &[u8]) -> &[Slot] {
        self.members.as_ref().map_or(&[], |members| members.of(group))
    }

    /// Columns of these slots, all of which have values, by their places in [`StateTable::schema`]: those of the key too, as
    /// they were written.
    pub fn columns(&self, slots: &[Slot], columns: impl IntoIterator<Item = usize>) -> Result<Vec<ArrayRef>> {
        let mut dense = vec![u32::MAX; self.chunks.len()];
        let mut used: Vec<&RecordBatch> = Vec::new();
        let mut indices = Vec::with_capacity(slots.len());
        for slot in slots {
            let place = self.slots[*slot as usize].place;
            let chunk = dense.get_mut(place.chunk as usize);
            let chunk = chunk.ok_or_else(|| Error::internal(format!("state slot {slot} has no values")))?;
            if *chunk == u32::MAX {
                let rows = self.chunks[place.chunk as usize].as_ref();
                used.push(&rows.ok_or_else(|| Error::internal("a state slot points into a dropped chunk"))?.rows);
                *chunk = (used.len() - 1) as u32;
            }
            indices.push((*chunk as usize, place.row as usize));
        }
        columns
            .into_iter()
            .map(|column| {
                if used.is_empty() {
                    return Ok(arrow::array::new_empty_array(self.schema.field(column).data_type()));
                }
                let arrays: Vec<&dyn arrow::array::Array> = used.iter().map(|c| c.column(column).as_ref()).collect();
                interleave(&arrays, &indices).map_err(arrow_error)
            })
            .collect()
    }

    /// Writes the values of these slots, each named once, under their keys, and answers the rows as the delta file holds
    /// them. `times` gives the time at which each key may be forgotten, where the operator forgets by time.
    pub fn write(
        &mut self,
        slots: Vec<Slot>,
        keys: Vec<ArrayRef>,
        values: Vec<ArrayRef>,
        times: Option<&[i64]>,
    ) -> Result<RecordBatch> {
        let columns = keys.into_iter().chain(values).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(slots.len()));
        let rows = RecordBatch::try_new_with_options(self.schema.clone(), columns, &options).map_err(arrow_error)?;
        if let Some(times) = times {
            self.by_time.set_all(slots.iter().copied().zip(times.iter().copied()));
        }
        if let Some(members) = &mut self.members {
            members.add(rows.columns(), &slots, |slot| self.slots[slot as usize].place == Place::NONE)?;
        }
        let written = slots.len();
        self.push_chunk(rows.clone(), slots);
        self.tidy(written + 8_192)?;
        Ok(rows)
    }

    /// Puts rows read from a state file in, over what is there; row n has the key of `keys` row `which[n]`, and the time of that
    /// number where the operator forgets by time. [`StateTable::loaded`] ends the loading.
    pub fn load(&mut self, rows: RecordBatch, keys: &Keys, which: &[u32], times: Option<&[i64]>) {
        let mut slots = Vec::with_capacity(which.len());
        self.find_or_insert_all(keys, Some(which), 0, &mut slots);
        if let Some(times) = times {
            self.by_time.set_all(slots.iter().zip(which).map(|(slot, row)| (*slot, times[*row as usize])));
        }
        self.push_chunk(rows, slots);
    }

    /// Everything is loaded: finds out which rows belong to which group, and lets go of an index that nobody asks.
    pub fn loaded(&mut self) -> Result<()> {
        if self.by_slot {
            self.index = None;
        }
        let Some(members) = &self.members else { return Ok(()) };
        let mut members = members.emptied();
        let mut slots = self.slots();
        slots.sort_unstable_by(|a, b| self.key_bytes(*a).cmp(self.key_bytes(*b)));
        members.add(&self.key_columns(&slots)?, &slots, |_| true)?;
        self.members = Some(members);
        Ok(())
    }

    /// Takes keys read from a state file out. Keys that aren't there are passed over.
    pub fn unload(&mut self, keys: &Keys, which: &[u32]) {
        for row in which.iter().map(|row| *row as usize) {
            if let Some(slot) = self.find(keys, row) {
                self.forget_one(slot);
            }
        }
    }

    /// The slots whose time is at or before `time`, in order of time. They are still there afterwards. At the end of all times
    /// (`i64::MAX`) those without a time are due too.
    pub fn due(&self, time: i64) -> Vec<Slot> {
        let mut due = self.by_time.due(time);
        due.extend(self.timeless(time));
        due
    }

    /// The slots without a time, at the end of all times.
    fn timeless(&self, time: i64) -> Vec<Slot> {
        if time < i64::MAX {
            return Vec::new();
        }
        let mut slots: Vec<Slot> = self.slots().into_iter().filter(|slot| !self.by_time.has(*slot)).collect();
        slots.sort_unstable_by(|a, b| self.key_bytes(*a).cmp(self.key_bytes(*b)));
        slots
    }

    /// Takes the times of slots away that are due at `time`, which must be all of those: they are remembered, and due no more.
    pub fn settle(&mut self, due: &[Slot], time: i64) {
        due.iter().for_each(|slot| self.by_time.clear(*slot));
        self.by_time.pass(time);
    }

    /// When the next slot may be forgotten.
    pub fn next_due(&self) -> Option<i64> {
        self.by_time.first()
    }

    /// Whether any slot's time is at or before `time`.
    pub fn any_due(&self, time: i64) -> bool {
        self.by_time.any_due(time)
    }

    /// Forgets the slots that are due at `time`, and answers them. The delta file holds the time alone.
    pub fn forget_due(&mut self, time: i64) -> Result<Vec<Slot>> {
        let timeless = self.timeless(time);
        let mut due = self.by_time.take_due(time);
        due.extend(timeless);
        if self.members.is_some() {
            // The rows of a group end together.
            let columns = self.key_columns(&due)?;
            if let Some(members) = &mut self.members {
                members.remove(&columns, due.len())?;
            }
        }
        self.forget_all(&due)?;
        Ok(due)
    }

    /// Forgets these slots, each named once; answers their keys, as the delta file holds them.
    ///
    /// # Errors
    /// Internal.
    pub fn forget(&mut self, slots: &[Slot], key_schema: &SchemaRef) -> Result<Option<RecordBatch>> {
        if self.members.is_some() && !slots.is_empty() {
            let columns = self.key_columns(slots)?;
            if let Some(members) = &mut self.members {
                members.remove_rows(&columns, slots)?;
            }
        }
        if slots.is_empty() {
            return Ok(None);
        }
        let columns = self.key_columns(slots)?;
        let options = RecordBatchOptions::new().with_row_count(Some(slots.len()));
        let keys = RecordBatch::try_new_with_options(key_schema.clone(), columns, &options).map_err(arrow_error)?;
        self.forget_all(slots)?;
        Ok(Some(keys))
    }

    /// Lets go of slots that were never written.
    pub fn release(&mut self, slots: &[Slot]) {
        slots.iter().for_each(|slot| self.forget_one(*slot));
    }

    fn forget_all(&mut self, slots: &[Slot]) -> Result<()> {
        for block in slots.chunks(BLOCK) {
            if let Some(index) = &self.index {
                // They are looked up before they go, for their memory's sake: see `BLOCK`.
                let is_there = |slot: &&Slot| index.holds(**slot, self.slots[**slot as usize].tag);
                std::hint::black_box(block.iter().filter(is_there).count());
            }
            block.iter().for_each(|slot| self.forget_one(*slot));
        }
        if slots.len() >= BLOCK && slots.len() >= self.free.len() / 4 {
            // Rows that come together then lie together, and are found together when they are due.
            self.free.sort_unstable_by(|a, b| b.cmp(a));
        }
        self.tidy(slots.len() + 8_192)
    }

    /// The slot of a key that is there; `None` where the table is [`StateTable::by_slot`].
    pub fn find(&self, keys: &Keys, row: usize) -> Option<Slot> {
        self.index.as_ref()?.find(keys, row)
    }

    /// Every slot with values.
    pub fn slots(&self) -> Vec<Slot> {
        (0..self.slots.len() as Slot).filter(|slot| self.has_values(*slot)).collect()
    }

    /// All rows, as a snapshot file holds them: frozen, so that another thread can write them.
    pub fn freeze(&self) -> Frozen {
        let chunks = self.order.iter().filter_map(|at| Some((*at, self.chunks[*at as usize].clone()?))).collect();
        Frozen { chunks, place: self.slots.iter().map(|slot| slot.place).collect() }
    }

    /// Bytes in memory, about.
    pub fn memory(&self) -> usize {
        let chunks: usize =
            self.chunks.iter().flatten().map(|c| c.rows.get_array_memory_size() + c.slots.len() * 4).sum();
        let members = self.members.as_ref().map_or(0, |members| members.memory(self.len()));
        chunks
            + members
            + self.index.as_ref().map_or(0, KeyIndex::memory)
            + self.slots.len() * size_of::<SlotInfo>()
            + self.by_time.memory()
    }

    fn forget_one(&mut self, slot: Slot) {
        let SlotInfo { place, tag, .. } = std::mem::replace(&mut self.slots[slot as usize], SlotInfo::FREE);
        if let Some(index) = &mut self.index {
            index.remove(slot, tag);
        }
        self.kill(place);
        self.by_time.clear(slot);
        self.free.push(slot);
        self.live -= 1;
    }

    fn kill(&mut self, place: Place) {
        if let Some(Some(chunk)) = self.chunks.get_mut(place.chunk as usize) {
            chunk.live -= 1;
            if chunk.live == 0 {
                self.chunks[place.chunk as usize] = None;
                self.order.retain(|at| *at != place.chunk);
            }
        }
    }

    fn push_chunk(&mut self, rows: RecordBatch, slots: Vec<Slot>) {
        if slots.is_empty() {
            return;
        }
        let free = self.chunks.iter().position(Option::is_none).unwrap_or(self.chunks.len());
        for (row, slot) in slots.iter().enumerate() {
            let new = Place { chunk: free as u32, row: row as u32 };
            let info = &mut self.slots[*slot as usize];
            let old = std::mem::replace(info, SlotInfo { place: new, number: NO_NUMBER, ..*info }).place;
            if old.chunk != free as u32 {
                self.kill(old);
            }
        }
        let chunk = Chunk { rows, live: slots.len(), slots: Arc::new(slots) };
        if free == self.chunks.len() {
            self.chunks.push(Some(chunk));
        } else {
            self.chunks[free] = Some(chunk);
        }
        self.order.push(free as u32);
    }

    /// Merges small chunks and rewrites those that are mostly garbage, of `budget` live rows at the most.
    fn tidy(&mut self, mut budget: usize) -> Result<()> {
        while let [.., before, last] = self.order[..] {
            let (a, b) = (self.live(before), self.live(last));
            if a + b > SMALL || a > 2 * b || a + b > budget {
                break;
            }
            budget -= a + b;
            self.rewrite(&[before, last])?;
        }
        let mostly_garbage: Vec<u32> =
            self.order.iter().copied().filter(|at| self.live(*at) * 2 < self.rows(*at)).collect();
        for at in mostly_garbage {
            if self.live(at) > budget {
                break;
            }
            budget -= self.live(at);
            self.rewrite(&[at])?;
        }
        Ok(())
    }

    fn live(&self, at: u32) -> usize {
        self.chunks[at as usize].as_ref().map_or(0, |c| c.live)
    }

    fn rows(&self, at: u32) -> usize {
        self.chunks[at as usize].as_ref().map_or(0, |c| c.slots.len())
    }

    /// Copies the live rows of some chunks into one new chunk.
    fn rewrite(&mut self, chunks: &[u32]) -> Result<()> {
        let mut slots = Vec::new();
        for at in chunks {
            let Some(chunk) = &self.chunks[*at as usize] else { continue };
            let is_live =
                |row: usize, slot: Slot| self.slots[slot as usize].place == Place { chunk: *at, row: row as u32 };
            slots.extend(
                chunk.slots.iter().enumerate().filter(|(row, slot)| is_live(*row, **slot)).map(|(_, slot)| *slot),
            );
        }
        let columns = self.columns(&slots, 0..self.schema.fields().len())?;
        let options = RecordBatchOptions::new().with_row_count(Some(slots.len()));
        let rows = RecordBatch::try_new_with_options(self.schema.clone(), columns, &options).map_err(arrow_error)?;
        self.push_chunk(rows, slots);
        Ok(())
    }
}

/// A table's rows at one moment.
pub struct Frozen {
    chunks: Vec<(u32, Chunk)>,
    place: Vec<Place>,
}

impl Frozen {
    /// The live rows, a chunk at a time.
    pub fn batches(self) -> impl Iterator<Item = Result<RecordBatch>> {
        let Frozen { chunks, place } = self;
        chunks.into_iter().map(move |(at, chunk)| {
            let is_live = |row: u32, slot: Slot| place[slot as usize] == Place { chunk: at, row };
            let rows: Vec<u32> =
                (0..).zip(chunk.slots.iter()).filter(|(row, slot)| is_live(*row, **slot)).map(|(row, _)| row).collect();
            if rows.len() == chunk.rows.num_rows() {
                return Ok(chunk.rows);
            }
            select_rows(&chunk.rows, rows)
        })
    }
}

/// The named rows of a batch.
pub fn select_rows(batch: &RecordBatch, rows: Vec<u32>) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    let rows = UInt32Array::from(rows);
    let columns =
        batch.columns().iter().map(|c| take(c, &rows, None)).collect::<Result<Vec<_>, _>>().map_err(arrow_error)?;
    RecordBatch::try_new_with_options(batch.schema(), columns, &options).map_err(arrow_error)
}

fn arrow_error(error: arrow::error::ArrowError) -> Error {
    Error::internal(format!("state: {error}"))
}
