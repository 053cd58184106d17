//! Rows of partitions in an order, each with how often it is there: what a Top-N and an OVER that takes rows back remember.
//!
//! The state has a row for each row that differs; the order of a partition is in memory only, made anew from it at a start.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int8Array, Int64Array};
use arrow::datatypes::{Int8Type, Int64Type, SchemaRef};
use arrow::row::RowConverter;

use super::forget::ForgetBy;
use super::node::{Role, StateSpec};
use super::top_index::{Bound, Ordered, Shown};
use super::{BatchInfo, KeyedDelta, Output};
use crate::delta::keys::KeyCodec;
use crate::error::{Error, Result};
use crate::state::schema::StateSchema;
use crate::state::{Asked, Slot, Spread, StateTable, select_rows};

/// What rows are made of, how they are ordered, and which of them are remembered.
pub struct RankedSpec {
    /// How many of a row's first columns say which partition it is of.
    pub partition: usize,
    pub codec: Arc<KeyCodec>,
    /// A row's columns, by the names they are remembered by; the input has them, and behind them the weight, if there is one.
    pub keys: SchemaRef,
    pub row_codec: Arc<KeyCodec>,
    /// A row's columns, and how often it is there.
    pub rows: SchemaRef,
    /// Which columns rows are ordered by, and what makes bytes of them.
    pub order_by: Vec<usize>,
    pub sorter: RowConverter,
    /// Rows are taken back.
    pub signed: bool,
    /// Which rows of a partition are shown.
    pub bound: Bound,
    /// Rows that can't be shown again are let go of; otherwise all are remembered.
    pub prunes: bool,
    /// What was shown of a partition before a batch is wanted behind it.
    pub before: bool,
    pub forget: Option<ForgetBy>,
}

impl RankedSpec {
    /// The state of an operator of this name, which is known again by its text.
    pub fn state(&self, name: &str, text: &str, kind: &'static str, bound: String) -> StateSpec {
        let width = self.keys.fields().len();
        let values = self.rows.fields()[width..].to_vec().into();
        StateSpec {
            rows: self.rows.clone(),
            keys: self.keys.clone(),
            codec: self.row_codec.clone(),
            stored: StateSchema::new(name, self.keys.fields(), &values, BTreeMap::new())
                .made_by(Some(text.to_string())),
            spread: Some(Spread { codec: self.codec.clone(), columns: self.partition, asked: Asked::Key }),
            forget: self.forget,
            kind,
            bound,
            role: Role::Own,
        }
    }

    /// What rows are partitioned by, as a person reads it.
    pub fn of_each(&self) -> String {
        let names = self.keys.fields()[..self.partition].iter().map(|field| super::chain::bare(field.name()));
        match self.partition {
            0 => String::new(),
            _ => format!(" of each ({})", names.collect::<Vec<_>>().join(", ")),
        }
    }

    /// The places of rows, given by their columns: each row's bytes, and how many of them it is ordered by.
    fn places(&self, columns: &[ArrayRef], rows: usize) -> Result<Vec<(Vec<u8>, usize)>> {
        let identity = self.row_codec.encode(columns, rows)?;
        if self.order_by.is_empty() {
            return Ok((0..rows).map(|row| (identity.bytes(row).to_vec(), 0)).collect());
        }
        let by: Vec<ArrayRef> = self.order_by.iter().map(|at| columns[*at].clone()).collect();
        let by = self.sorter.convert_columns(&by).map_err(|e| Error::internal(e.to_string()))?;
        let place = |row: usize| {
            let (by, rest) = (by.row(row), identity.bytes(row));
            ([by.as_ref(), rest].concat(), by.as_ref().len())
        };
        Ok((0..rows).map(place).collect())
    }
}

/// What makes a partition, or a place in it.
pub type Bytes = Box<[u8]>;

/// One partition's rows, of an operator's partition. See the module's documentation.
#[derive(Default)]
pub struct Ranked {
    /// By partition; `None`: not made yet.
    index: Option<BTreeMap<Bytes, Ordered>>,
    /// The partitions that this batch touched, and what was shown of them before.
    touched: BTreeMap<Bytes, Vec<Shown>>,
    /// The rows whose number this batch changed: their partition and place.
    changed: HashMap<Slot, (Bytes, Bytes)>,
}

impl Ranked {
    /// Makes the order of what is remembered, once.
    ///
    /// # Errors
    /// Internal.
    pub fn build(&mut self, spec: &RankedSpec, state: &StateTable) -> Result<()> {
        if self.index.is_some() {
            return Ok(());
        }
        let slots = state.slots();
        let columns = state.columns(&slots, 0..spec.rows.fields().len())?;
        let (keys, counts) = columns.split_at(spec.keys.fields().len());
        let counts = counts[0].as_primitive::<Int64Type>();
        let partitions = spec.codec.encode(&keys[..spec.partition], slots.len())?;
        let mut index: BTreeMap<Bytes, Ordered> = BTreeMap::new();
        for (row, (place, by)) in spec.places(keys, slots.len())?.into_iter().enumerate() {
            let ordered = index.entry(partitions.bytes(row).into()).or_default();
            ordered.add(&place, by, slots[row], counts.value(row));
        }
        if spec.prunes {
            index.values_mut().for_each(|ordered| drop(ordered.prune(&spec.bound)));
        }
        self.index = Some(index);
        Ok(())
    }

    fn index(&mut self) -> Result<&mut BTreeMap<Bytes, Ordered>> {
        self.index.as_mut().ok_or_else(|| Error::internal("rows without their order"))
    }

    /// All partitions that are remembered, in the order of their bytes.
    ///
    /// # Errors
    /// Internal.
    pub fn partitions(&mut self) -> Result<Vec<Bytes>> {
        Ok(self.index()?.keys().cloned().collect())
    }

    /// What is shown of a partition now.
    ///
    /// # Errors
    /// Internal.
    pub fn shown(&mut self, partition: &[u8], spec: &RankedSpec) -> Result<Vec<Shown>> {
        Ok(self.index()?.get(partition).map(|ordered| ordered.shown(&spec.bound)).unwrap_or_default())
    }

    /// The partitions that the batch touched, each with what was shown of it before and is now; those without rows are let go of.
    ///
    /// # Errors
    /// Internal.
    pub fn touched(&mut self, spec: &RankedSpec) -> Result<Vec<[Vec<Shown>; 2]>> {
        let mut found = Vec::new();
        for (partition, before) in std::mem::take(&mut self.touched) {
            let now = self.shown(&partition, spec)?;
            let index = self.index()?;
            if index.get(&partition).is_some_and(Ordered::is_empty) {
                index.remove(&partition);
            }
            found.push([before, now]);
        }
        Ok(found)
    }

    /// Takes rows in, and out.
    ///
    /// # Errors
    /// Internal.
    pub fn push(&mut self, changes: &KeyedDelta, spec: &RankedSpec, state: &mut StateTable) -> Result<()> {
        self.build(spec, state)?;
        let (rows, select) = match &changes.select {
            None => (changes.rows.clone(), None),
            Some(select) => (select_rows(&changes.rows, select.clone())?, Some(select)),
        };
        let (columns, weights) = rows.columns().split_at(spec.keys.fields().len());
        let weights: Option<&Int8Array> = match (spec.signed, weights.first()) {
            (true, Some(weights)) => Some(weights.as_primitive::<Int8Type>()),
            (true, None) => return Err(Error::internal("changes without weights")),
            (false, _) => None,
        };
        let identity = state.codec().encode(columns, rows.num_rows())?;
        let mut met: BTreeSet<&[u8]> = BTreeSet::new();
        let index = self.index.as_mut().ok_or_else(|| Error::internal("rows without their order"))?;
        for (row, (place, by)) in spec.places(columns, rows.num_rows())?.into_iter().enumerate() {
            let partition = changes.keys.bytes(select.map_or(row, |select| select[row] as usize));
            if !index.contains_key(partition) {
                index.insert(partition.into(), Ordered::default());
            }
            let Some(ordered) = index.get_mut(partition) else { continue };
            if spec.prunes && !ordered.may_enter(&place, by, &spec.bound) {
                continue;
            }
            if !self.touched.contains_key(partition) {
                let before = if spec.before { ordered.shown(&spec.bound) } else { Vec::new() };
                self.touched.insert(partition.into(), before);
            }
            met.insert(partition);
            let (slot, _) = state.find_or_insert(&identity, row);
            ordered.add(&place, by, slot, weights.map_or(1, |weights| i64::from(weights.value(row))));
            self.changed.insert(slot, (partition.into(), place.into()));
        }
        if spec.prunes { self.prune(met, spec, state) } else { Ok(()) }
    }

    /// Lets go of what can't be shown again.
    fn prune(&mut self, partitions: BTreeSet<&[u8]>, spec: &RankedSpec, state: &mut StateTable) -> Result<()> {
        for partition in partitions {
            let Some(ordered) = self.index()?.get_mut(partition) else { continue };
            let pruned = ordered.prune(&spec.bound);
            let gone: Vec<bool> = pruned.iter().map(|(place, _)| ordered.count(place) == 0).collect();
            for ((place, slot), gone) in pruned.into_iter().zip(gone) {
                if gone && !state.has_values(slot) {
                    self.changed.remove(&slot);
                    state.release(&[slot]);
                } else {
                    self.changed.insert(slot, (partition.into(), place));
                }
            }
        }
        Ok(())
    }

    /// Writes the rows that are new or there another number of times; answers those that are to be forgotten.
    ///
    /// # Errors
    /// Internal: a row is taken back that is not remembered.
    pub fn write(&mut self, spec: &RankedSpec, state: &mut StateTable, out: &mut Output) -> Result<Vec<Slot>> {
        let mut changed: Vec<(Slot, (Bytes, Bytes))> = std::mem::take(&mut self.changed).into_iter().collect();
        changed.sort_unstable_by_key(|(slot, _)| *slot);
        let known: Vec<Slot> = changed.iter().map(|(slot, _)| *slot).filter(|slot| state.has_values(*slot)).collect();
        let stored = state.columns(&known, [spec.keys.fields().len()])?;
        let stored: HashMap<Slot, i64> =
            known.into_iter().zip(stored[0].as_primitive::<Int64Type>().values().iter().copied()).collect();
        let (mut gone, mut passed, mut slots, mut counts) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let index = self.index()?;
        for (slot, (partition, place)) in changed {
            let now = index.get(&partition).map_or(0, |ordered| ordered.count(&place));
            match (stored.get(&slot).copied().unwrap_or(0), now) {
                (_, ..0) => return Err(Error::internal("a row is taken back that is not remembered")),
                (0, 0) => passed.push(slot),
                (_, 0) => gone.push(slot),
                (was, now) if was == now => {}
                _ => {
                    slots.push(slot);
                    counts.push(now);
                }
            }
        }
        state.release(&passed);
        if !slots.is_empty() {
            let keys = state.key_columns(&slots)?;
            let times = spec.forget.map(|by| by.times(&keys)).transpose()?;
            out.updated += slots.len() as u64;
            let counts: ArrayRef = Arc::new(Int64Array::from(counts));
            out.upserts.push(state.write(slots, keys, vec![counts], times.as_deref())?);
        }
        Ok(gone)
    }

    /// Forgets the rows that [`Ranked::write`] has answered.
    ///
    /// # Errors
    /// Internal.
    pub fn forget(spec: &RankedSpec, gone: &[Slot], state: &mut StateTable, out: &mut Output) -> Result<()> {
        out.forgot(state.forget(gone, &spec.keys)?);
        Ok(())
    }

    /// The partitions that nothing can change any more, in the order of their bytes.
    ///
    /// # Errors
    /// Internal.
    pub fn closed(&self, spec: &RankedSpec, batch: &BatchInfo, state: &StateTable) -> Result<BTreeSet<Bytes>> {
        let (Some(_), Some(until)) = (spec.forget, ForgetBy::until(batch)) else { return Ok(BTreeSet::new()) };
        let due = state.due(until);
        let keys = state.key_columns(&due)?;
        let partitions = spec.codec.encode(&keys[..spec.partition], due.len())?;
        Ok((0..due.len()).map(|row| partitions.bytes(row).into()).collect())
    }

    /// Forgets partitions that [`Ranked::closed`] has answered.
    ///
    /// # Errors
    /// Internal.
    pub fn close(
        &mut self,
        partitions: &BTreeSet<Bytes>,
        spec: &RankedSpec,
        batch: &BatchInfo,
        state: &mut StateTable,
        out: &mut Output,
    ) -> Result<()> {
        let (Some(by), Some(until), false) = (spec.forget, ForgetBy::until(batch), partitions.is_empty()) else {
            return Ok(());
        };
        let index = self.index()?;
        partitions.iter().for_each(|partition| drop(index.remove(partition)));
        by.forget(until, &spec.keys, state, out)
    }
}
