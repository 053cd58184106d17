//! Top-N: the first rows of each partition in an order.
//!
//! RELATION   the rows whose number, rank or dense rank in their partition is one of n behind m
//! REMEMBERS  (partition, row) → how often it is there: those rows, and the m before them; all of them where rows are taken back
//! ON CHANGE  take back what is among the first no more, or has another number; add what is now
//! FORGETS    partitions whose time is at or before the watermark
//!
//! ```text
//! 2 of each k by v     in    (a,5) (a,3) (b,1)      (a,4)              (a,3−)
//!                      out   +(a,3) +(a,5) +(b,1)   −(a,5) +(a,4)      −(a,3) +(a,5): where all rows are remembered
//! ```
//! Rows that are equal in the order come in the order of their columns, from left to right, so which came first, and in which
//! batch, changes nothing. The order itself is in memory only, made anew from what is remembered at a start.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int8Array, Int64Array, RecordBatch, RecordBatchOptions, UInt64Array};
use arrow::datatypes::{Int8Type, Int64Type, SchemaRef};
use arrow::row::RowConverter;

use super::aggregate::Emit;
use super::forget::ForgetBy;
use super::node::{OperatorPart, OperatorSpec, Role, StateSpec};
use super::top_index::{Bound, Ordered, Rank, Shown};
use super::{BatchInfo, KeyedDelta, Output, first};
use crate::delta::keys::KeyCodec;
use crate::error::{Error, Result};
use crate::state::schema::StateSchema;
use crate::state::{Slot, Spread, StateTable, select_rows};

/// What all partitions of a Top-N share.
pub struct TopSpec {
    /// `top`, `top#2`
    pub name: String,
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
    pub bound: Bound,
    /// Where the result's columns are among a row's, and the numbers behind them.
    pub columns: Vec<usize>,
    pub ranks: Vec<Rank>,
    pub output: SchemaRef,
    /// Of the result's first columns, to show rows in an order.
    pub shown_order: (Arc<KeyCodec>, usize),
    /// Rows are taken back.
    pub signed: bool,
    pub emit: Emit,
    pub forget: Option<ForgetBy>,
    /// What it does, as it is known again by: `row_number() <= 3 PARTITION BY k ORDER BY v DESC NULLS FIRST`.
    pub text: String,
}

impl OperatorSpec for TopSpec {
    fn output(&self) -> &SchemaRef {
        &self.output
    }

    fn key(&self, _input: usize) -> (&Arc<KeyCodec>, usize) {
        (&self.codec, self.partition)
    }

    fn order(&self) -> (&Arc<KeyCodec>, usize) {
        (&self.shown_order.0, self.shown_order.1)
    }

    fn states(&self) -> Vec<StateSpec> {
        let width = self.keys.fields().len();
        let values = self.rows.fields()[width..].to_vec().into();
        vec![StateSpec {
            rows: self.rows.clone(),
            keys: self.keys.clone(),
            codec: self.row_codec.clone(),
            stored: StateSchema::new(&self.name, self.keys.fields(), &values, BTreeMap::new())
                .made_by(Some(self.text.clone())),
            spread: Some(Spread { codec: self.codec.clone(), columns: self.partition, members: false }),
            forget: self.forget,
            kind: "stateStoreSave",
            bound: self.bounded_by(),
            role: Role::Own,
        }]
    }

    fn part(self: Arc<Self>) -> Result<Box<dyn OperatorPart>> {
        let (index, touched, changed) = Default::default();
        Ok(Box::new(Top { spec: self, index, touched, changed }))
    }

    fn only_adds(&self) -> bool {
        self.emit == Emit::Closed
    }

    fn waits(&self) -> bool {
        self.emit == Emit::Closed
    }

    fn describe(&self) -> Vec<String> {
        let sends = match self.emit {
            Emit::Closed => "the rows of each partition once, when the watermark closes it",
            Emit::Changed { .. } => "rows that come among them, leave them or change their number",
            Emit::All => "all of them in every batch",
        };
        vec![format!("{}; sends {sends}", self.text)]
    }
}

impl TopSpec {
    fn bounded_by(&self) -> String {
        let names = |fields: &[arrow::datatypes::FieldRef]| {
            fields.iter().map(|field| super::chain::bare(field.name())).collect::<Vec<_>>().join(", ")
        };
        let fields = self.keys.fields();
        let of = if self.partition == 0 {
            String::new()
        } else {
            format!(" of each ({})", names(&fields[..self.partition]))
        };
        let rows = match (self.signed, self.bound.by) {
            (true, _) => format!("all rows{of}, as any may come to the top when others are taken back"),
            (false, Rank::RowNumber) => format!("the first {} rows{of}", self.bound.last()),
            (false, by) => format!("the rows{of} of {} up to {}", by.name(), self.bound.last()),
        };
        match self.forget {
            Some(by) => {
                format!("{rows}, until the watermark reaches {}", by.end_of(&fields[by.column]))
            }
            None if !self.signed && self.partition == 0 && self.bound.by == Rank::RowNumber => rows,
            None if self.emit == Emit::All => format!("{rows}, kept for ever (COMPLETE sends all of them)"),
            None if self.partition == 0 => format!("UNBOUNDED: {rows}"),
            None => format!(
                "UNBOUNDED: {rows}, kept for ever, as nothing that they are partitioned by is a watermarked time"
            ),
        }
    }

    /// A partition has one row at the most, so that one takes the place of the other.
    fn replaces(&self) -> bool {
        self.bound == Bound { by: Rank::RowNumber, skip: 0, fetch: 1 }
    }

    /// Without the numbers that nobody sees.
    fn seen(&self, row: &Shown) -> Shown {
        let mut ranks = [0; 3];
        self.ranks.iter().for_each(|rank| ranks[*rank as usize] = row.ranks[*rank as usize]);
        Shown { ranks, ..*row }
    }

    /// The result's rows.
    fn result(&self, rows: &[Shown], state: &StateTable) -> Result<RecordBatch> {
        let slots: Vec<Slot> = rows.iter().map(|row| row.slot).collect();
        let mut columns = state.columns(&slots, self.columns.iter().copied())?;
        for rank in &self.ranks {
            let numbers = rows.iter().map(|row| row.ranks[*rank as usize]);
            columns.push(Arc::new(UInt64Array::from_iter_values(numbers)) as ArrayRef);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        RecordBatch::try_new_with_options(self.output.clone(), columns, &options)
            .map_err(|e| Error::internal(e.to_string()))
    }

    /// The places of rows, given by their columns: each row's bytes, and how many of them it is ordered by.
    fn places(&self, columns: &[ArrayRef], rows: usize) -> Result<Vec<(Vec<u8>, usize)>> {
        let by: Vec<ArrayRef> = self.order_by.iter().map(|at| columns[*at].clone()).collect();
        let by = self.sorter.convert_columns(&by).map_err(|e| Error::internal(e.to_string()))?;
        let identity = self.row_codec.encode(columns, rows)?;
        let place = |row: usize| {
            let (by, rest) = (by.row(row), identity.bytes(row));
            ([by.as_ref(), rest].concat(), by.as_ref().len())
        };
        Ok((0..rows).map(place).collect())
    }
}

type Bytes = Box<[u8]>;

/// One partition's work on one batch. See the module's documentation.
struct Top {
    spec: Arc<TopSpec>,
    /// By partition; `None`: not made yet.
    index: Option<BTreeMap<Bytes, Ordered>>,
    /// The partitions that this batch touched, and what their first rows were before.
    touched: BTreeMap<Bytes, Vec<Shown>>,
    /// The rows whose number this batch changed: their partition and place.
    changed: HashMap<Slot, (Bytes, Bytes)>,
}

impl Top {
    /// The order of what is remembered.
    fn build(&mut self, state: &StateTable) -> Result<()> {
        if self.index.is_some() {
            return Ok(());
        }
        let spec = &self.spec;
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
        if !spec.signed {
            index.values_mut().for_each(|ordered| drop(ordered.prune(&spec.bound)));
        }
        self.index = Some(index);
        Ok(())
    }

    fn index(&mut self) -> Result<&mut BTreeMap<Bytes, Ordered>> {
        self.index.as_mut().ok_or_else(|| Error::internal("a Top-N without its order"))
    }

    /// Lets go of what can't be among the first again.
    fn prune(&mut self, partitions: BTreeSet<&[u8]>, state: &mut StateTable) -> Result<()> {
        let bound = self.spec.bound;
        for partition in partitions {
            let Some(ordered) = self.index()?.get_mut(partition) else { continue };
            let pruned = ordered.prune(&bound);
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

    /// What was shown and is no more, and what is now, each with the number of what it belongs to.
    fn differences(&mut self) -> Result<[Vec<(Shown, u32)>; 2]> {
        let spec = self.spec.clone();
        let mut found: [Vec<(Shown, u32)>; 2] = Default::default();
        let mut numbers: HashMap<u64, u32> = HashMap::new();
        let touched = std::mem::take(&mut self.touched);
        let index = self.index()?;
        for (number, (partition, before)) in touched.into_iter().enumerate() {
            let now = index.get(&partition).map(|ordered| ordered.shown(&spec.bound)).unwrap_or_default();
            let [before, now] = [before, now].map(|rows| rows.iter().map(|row| spec.seen(row)).collect::<Vec<_>>());
            for (side, (rows, others)) in [(&before, &now), (&now, &before)].into_iter().enumerate() {
                let mut same: HashMap<&Shown, usize> = HashMap::new();
                others.iter().for_each(|row| *same.entry(row).or_default() += 1);
                for row in rows {
                    if let Some(left) = same.get_mut(row).filter(|left| **left > 0) {
                        *left -= 1;
                        continue;
                    }
                    // A row that has another number is the same row; where there is one only, another row takes its place.
                    let whose = if spec.replaces() { number as u64 } else { u64::from(row.slot) };
                    let next = numbers.len() as u32;
                    found[side].push((*row, *numbers.entry(whose).or_insert(next)));
                }
            }
            if index.get(&partition).is_some_and(Ordered::is_empty) {
                index.remove(&partition);
            }
        }
        Ok(found)
    }

    /// Writes the rows that are new or there another number of times; answers those that are to be forgotten.
    fn write(&mut self, state: &mut StateTable, out: &mut Output) -> Result<Vec<Slot>> {
        let mut changed: Vec<(Slot, (Bytes, Bytes))> = std::mem::take(&mut self.changed).into_iter().collect();
        changed.sort_unstable_by_key(|(slot, _)| *slot);
        let known: Vec<Slot> = changed.iter().map(|(slot, _)| *slot).filter(|slot| state.has_values(*slot)).collect();
        let stored = state.columns(&known, [self.spec.keys.fields().len()])?;
        let stored: HashMap<Slot, i64> =
            known.into_iter().zip(stored[0].as_primitive::<Int64Type>().values().iter().copied()).collect();
        let (mut gone, mut passed, mut slots, mut counts) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let index = self.index()?;
        for (slot, (partition, place)) in changed {
            let now = index.get(&partition).map_or(0, |ordered| ordered.count(&place));
            match (stored.get(&slot).copied().unwrap_or(0), now) {
                (_, ..0) => {
                    return Err(Error::internal("a Top-N was told to take a row back that it does not remember"));
                }
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
            let times = self.spec.forget.map(|by| by.times(&keys)).transpose()?;
            out.updated += slots.len() as u64;
            let counts: ArrayRef = Arc::new(Int64Array::from(counts));
            out.upserts.push(state.write(slots, keys, vec![counts], times.as_deref())?);
        }
        Ok(gone)
    }

    /// Gives out the first rows of these partitions.
    fn emit(&mut self, partitions: impl Iterator<Item = Bytes>, state: &StateTable, out: &mut Output) -> Result<()> {
        let (spec, mut rows) = (self.spec.clone(), Vec::new());
        let index = self.index()?;
        for partition in partitions {
            rows.extend(index.get(&partition).map(|ordered| ordered.shown(&spec.bound)).unwrap_or_default());
        }
        if !rows.is_empty() {
            out.rows.push(spec.result(&rows, state)?);
        }
        Ok(())
    }

    /// Forgets partitions that nothing can change any more; in APPEND their first rows are given out.
    fn forget(&mut self, batch: &BatchInfo, state: &mut StateTable, out: &mut Output) -> Result<()> {
        let (Some(_), Some(until)) = (self.spec.forget, ForgetBy::until(batch)) else { return Ok(()) };
        let spec = self.spec.clone();
        let due = state.due(until);
        if due.is_empty() {
            return Ok(());
        }
        let keys = state.key_columns(&due)?;
        let partitions = spec.codec.encode(&keys[..spec.partition], due.len())?;
        let partitions: BTreeSet<Bytes> = (0..due.len()).map(|row| partitions.bytes(row).into()).collect();
        if spec.emit == Emit::Closed {
            self.emit(partitions.iter().cloned(), state, out)?;
        }
        let index = self.index()?;
        partitions.iter().for_each(|partition| drop(index.remove(partition)));
        ForgetBy::forget(until, &spec.keys, state, out)
    }
}

impl OperatorPart for Top {
    fn push(&mut self, _: usize, changes: &KeyedDelta, _: &BatchInfo, states: &mut [&mut StateTable]) -> Result<()> {
        let (state, _) = first(states)?;
        self.build(state)?;
        let spec = self.spec.clone();
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
        let index = self.index.as_mut().ok_or_else(|| Error::internal("a Top-N without its order"))?;
        for (row, (place, by)) in spec.places(columns, rows.num_rows())?.into_iter().enumerate() {
            let partition = changes.keys.bytes(select.map_or(row, |select| select[row] as usize));
            if !index.contains_key(partition) {
                index.insert(partition.into(), Ordered::default());
            }
            let Some(ordered) = index.get_mut(partition) else { continue };
            if !spec.signed && !ordered.may_enter(&place, by, &spec.bound) {
                continue;
            }
            if !self.touched.contains_key(partition) {
                let before = match spec.emit {
                    Emit::Changed { .. } => ordered.shown(&spec.bound),
                    Emit::Closed | Emit::All => Vec::new(),
                };
                self.touched.insert(partition.into(), before);
            }
            met.insert(partition);
            let (slot, _) = state.find_or_insert(&identity, row);
            ordered.add(&place, by, slot, weights.map_or(1, |weights| i64::from(weights.value(row))));
            self.changed.insert(slot, (partition.into(), place.into()));
        }
        if spec.signed { Ok(()) } else { self.prune(met, state) }
    }

    fn finish(&mut self, batch: &BatchInfo, states: &mut [&mut StateTable]) -> Result<Vec<Output>> {
        let ((state, _), mut out) = (first(states)?, Output::default());
        self.build(state)?;
        let spec = self.spec.clone();
        let mut come = Vec::new();
        match spec.emit {
            Emit::Changed { .. } => {
                let [gone, now] = self.differences()?;
                if !gone.is_empty() {
                    let (rows, keys): (Vec<Shown>, Vec<u32>) = gone.into_iter().unzip();
                    out.old_rows.push(spec.result(&rows, state)?);
                    out.old_keys = keys;
                }
                come = now;
            }
            Emit::Closed | Emit::All => self.touched.clear(),
        }
        let gone = self.write(state, &mut out)?;
        if !come.is_empty() {
            let (rows, keys): (Vec<Shown>, Vec<u32>) = come.into_iter().unzip();
            out.rows.push(spec.result(&rows, state)?);
            out.new_keys = keys;
        }
        if let Some(keys) = state.forget(&gone, &spec.keys)? {
            out.removed += keys.num_rows() as u64;
            out.deletes.push(keys);
        }
        self.forget(batch, state, &mut out)?;
        if spec.emit == Emit::All {
            let all: Vec<Bytes> = self.index()?.keys().cloned().collect();
            self.emit(all.into_iter(), state, &mut out)?;
        }
        Ok(vec![out])
    }
}

#[cfg(test)]
mod tests {
    use arrow::compute::SortOptions;
    use arrow::datatypes::{DataType, Field, FieldRef, Schema};
    use arrow::row::SortField;

    use super::*;

    /// Rows are (k, v), ordered by v, descending; the result is v and its number in the partition k.
    struct Trial {
        spec: Arc<TopSpec>,
        part: Box<dyn OperatorPart>,
        state: StateTable,
    }

    /// What a batch took back and added: (key number, v, number).
    type Changes = (Vec<(u32, i64, u64)>, Vec<(u32, i64, u64)>);

    impl Trial {
        fn new(signed: bool, bound: Bound) -> Self {
            let field = |name: &str| -> FieldRef { Field::new(name, DataType::Int64, true).into() };
            let keys = vec![field("0:k"), field("1:v")];
            let rows: Vec<FieldRef> = keys.iter().cloned().chain([field("2:count")]).collect();
            let output = vec![field("c0"), Field::new("c1", DataType::UInt64, true).into()];
            let codec = Arc::new(KeyCodec::new(&keys[..1]).unwrap());
            let options = SortOptions { descending: true, nulls_first: false };
            let sorter = RowConverter::new(vec![SortField::new_with_options(DataType::Int64, options)]).unwrap();
            let spec = Arc::new(TopSpec {
                name: "top".into(),
                partition: 1,
                shown_order: (codec.clone(), 1),
                codec,
                row_codec: Arc::new(KeyCodec::exact_behind(&keys, 1).unwrap()),
                keys: Arc::new(Schema::new(keys)),
                rows: Arc::new(Schema::new(rows)),
                order_by: vec![1],
                sorter,
                bound,
                columns: vec![1],
                ranks: vec![bound.by],
                output: Arc::new(Schema::new(output)),
                signed,
                emit: Emit::Changed { old: true },
                forget: None,
                text: "a test".into(),
            });
            let state = spec.states()[0].table();
            Trial { part: spec.clone().part().unwrap(), spec, state }
        }

        fn try_batch(&mut self, rows: &[(i64, i64, i8)]) -> Result<Changes> {
            let column = |f: fn(&(i64, i64, i8)) -> i64| -> ArrayRef {
                Arc::new(Int64Array::from_iter_values(rows.iter().map(f)))
            };
            let weights: ArrayRef = Arc::new(Int8Array::from_iter_values(rows.iter().map(|row| row.2)));
            let columns = [("k", column(|row| row.0)), ("v", column(|row| row.1)), ("w", weights)];
            let rows = RecordBatch::try_from_iter(columns.into_iter().take(if self.spec.signed { 3 } else { 2 }))?;
            let keys = Arc::new(self.spec.codec.encode(&rows.columns()[..1], rows.num_rows())?);
            let (info, states) = (BatchInfo::default(), &mut [&mut self.state]);
            self.part.push(0, &KeyedDelta { rows, keys, select: None }, &info, states)?;
            let out = self.part.finish(&info, states)?.remove(0);
            let read = |rows: &[RecordBatch], keys: &[u32]| {
                let rows = rows.iter().flat_map(|rows| {
                    let values = rows.column(0).as_primitive::<Int64Type>().values().to_vec();
                    let ranks = rows.column(1).as_primitive::<arrow::datatypes::UInt64Type>().values().to_vec();
                    values.into_iter().zip(ranks)
                });
                keys.iter().zip(rows).map(|(key, (value, rank))| (*key, value, rank)).collect::<Vec<_>>()
            };
            Ok((read(&out.old_rows, &out.old_keys), read(&out.rows, &out.new_keys)))
        }

        fn batch(&mut self, rows: &[(i64, i64, i8)]) -> Changes {
            self.try_batch(rows).unwrap()
        }

        /// Parts are made anew by a restart; what is remembered stays.
        fn restart(&mut self) {
            self.part = self.spec.clone().part().unwrap();
        }
    }

    #[test]
    fn what_only_grows_keeps_the_first_rows() {
        let mut trial = Trial::new(false, Bound { by: Rank::RowNumber, skip: 0, fetch: 2 });
        let (gone, come) = trial.batch(&[(1, 5, 1), (1, 3, 1), (1, 9, 1), (2, 1, 1)]);
        assert_eq!((gone, come), (vec![], vec![(0, 9, 1), (1, 5, 2), (2, 1, 1)]));
        assert_eq!(trial.state.len(), 3);
        trial.restart();
        // 9 has another number and is the same row; 5 is out.
        let (gone, come) = trial.batch(&[(1, 12, 1), (1, 4, 1)]);
        assert_eq!((gone, come), (vec![(0, 9, 1), (1, 5, 2)], vec![(2, 12, 1), (0, 9, 2)]));
        assert_eq!((trial.batch(&[(1, 9, 1), (1, 1, 1)]), trial.state.len()), ((vec![], vec![]), 3));
    }

    #[test]
    fn what_is_taken_back_lets_others_come_again() {
        let mut trial = Trial::new(true, Bound { by: Rank::RowNumber, skip: 0, fetch: 1 });
        assert_eq!(trial.batch(&[(1, 5, 1), (1, 9, 1), (1, 9, 1)]), (vec![], vec![(0, 9, 1)]));
        // There is another like it.
        assert_eq!(trial.batch(&[(1, 9, -1)]), (vec![], vec![]));
        trial.restart();
        // A partition has one row: another takes its place.
        assert_eq!(trial.batch(&[(1, 9, -1)]), (vec![(0, 9, 1)], vec![(0, 5, 1)]));
        assert_eq!(trial.state.len(), 1);
        // What comes and goes within a batch was never there.
        assert_eq!(trial.batch(&[(1, 7, -1), (1, 7, 1)]), (vec![], vec![]));
        assert_eq!((trial.batch(&[(1, 5, -1)]), trial.state.len()), ((vec![(0, 5, 1)], vec![]), 0));
        let lost = trial.try_batch(&[(1, 5, -1)]).unwrap_err().to_string();
        assert!(lost.contains("that it does not remember"), "{lost}");
    }
}
