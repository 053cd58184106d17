//! Elements: what an aggregate remembers for functions whose result needs every value of a group.
//!
//! REMEMBERS  (group, number) → element, in the order of the input; or (group, element) → how often
//! ON CHANGE  add the elements of the batch; nothing that is there is written again, but for counts. Of input that takes rows
//!            back: change their counts, and forget those that are there no more
//! FORGETS    elements of groups whose time is at or before the watermark
//!
//! ```text
//! in        (a,[3,4]) (a,[4])         (b,[3])      the elements of a batch, a list or more a group
//! in order  (a,0)→3 (a,1)→4 (a,2)→4   (b,0)→3
//! counted   (a,3)→1 (a,4)→2           (b,3)→1
//! signed    the same; then (a,[4−]) leaves (a,3)→1 (a,4)→1 (b,3)→1
//! ```
//! So a batch writes as much as it brings, whatever the group holds. Only the result reads all of it.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, UInt32Array};
use arrow::compute::{cast, concat, take};
use arrow::datatypes::{DataType, FieldRef, Int64Type, SchemaRef};

use super::forget::ForgetBy;
use super::lists::Spread;
use super::met_keys::MetKeys;
use super::{BatchInfo, KeyedDelta, Output};
use crate::delta::keys::Keys;
use crate::delta::own::owned;
use crate::error::{Error, Result};
use crate::state::{NO_NUMBER, Slot, StateTable};

/// What tells one element of a group from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// Its number in the group, in the order of the input.
    InOrder,
    /// Its value: how often it is there is kept with it. `once`: that is 1, however often it came.
    Counted { once: bool },
    /// Its value or values, which rows that are taken back take out again: how often it is there is kept with it.
    Signed,
}

/// What all partitions share.
pub struct ElementsSpec {
    /// `elements`, `elements#2`
    pub name: String,
    pub keep: Keep,
    /// The input's columns that have them: lists of elements, then lists of what they are ordered by. A column that holds
    /// no lists has an element a row, NULL for none. Where rows are taken back: one column of lists of structs, of an element's
    /// values and its weight.
    pub columns: Vec<usize>,
    /// The type that functions take, where it is not the one that is remembered.
    pub taken_as: Option<DataType>,
    /// How many columns the group has.
    pub group: usize,
    /// The group's columns, then the number or the element.
    pub keys: SchemaRef,
    /// Keys, then the element and what it is ordered by, or the count.
    pub rows: SchemaRef,
    pub forget: Option<ForgetBy>,
}

impl ElementsSpec {
    /// The fields of the elements, and of what they are ordered by.
    fn fields(&self) -> &[FieldRef] {
        match self.keep {
            Keep::InOrder => &self.rows.fields()[self.group + 1..],
            Keep::Counted { .. } | Keep::Signed => &self.keys.fields()[self.group..],
        }
    }

    /// The fields of an element's values, where it is known by them.
    pub fn values(&self) -> &[FieldRef] {
        &self.keys.fields()[self.group..]
    }
}

/// Elements that came together.
struct Piece {
    /// Of the rows that they came in.
    keys: Arc<Keys>,
    /// The row of each element.
    rows: Vec<u32>,
    /// The group's columns, an element a row.
    group: Vec<ArrayRef>,
    /// The elements, and what they are ordered by.
    elements: Vec<ArrayRef>,
    /// Where rows are taken back: what each is added to or taken from the count.
    weights: Option<ArrayRef>,
}

/// One partition's work on one batch. See the module's documentation.
pub struct Elements {
    spec: Arc<ElementsSpec>,
    pieces: Vec<Piece>,
}

impl Elements {
    /// A partition that has seen nothing of any batch.
    pub fn new(spec: Arc<ElementsSpec>) -> Self {
        Elements { spec, pieces: Vec::new() }
    }

    /// Takes the elements of some rows; nothing is remembered before [`Elements::write`].
    ///
    /// # Errors
    /// Internal.
    pub fn push(&mut self, changes: &KeyedDelta) -> Result<()> {
        let Some(first) = self.spec.columns.first() else { return Err(Error::internal("elements without a column")) };
        let column = changes.rows.column(*first);
        let mut weights = None;
        let (rows, elements) = if self.spec.keep == Keep::Signed {
            let spread = Spread::new(changes, *first, |lists, at| lists.values().is_valid(at))?;
            let mut elements = spread.take(column)?.as_struct().columns().to_vec();
            let weight = elements.pop().ok_or_else(|| Error::internal("changes without weights"))?;
            weights = Some(cast(&weight, &DataType::Int64).map_err(Error::from)?);
            (spread.rows, elements)
        } else if matches!(column.data_type(), DataType::List(_)) {
            let spread = Spread::new(changes, *first, |_, _| true)?;
            let mut elements = vec![spread.take(column)?];
            for ordering in &self.spec.columns[1..] {
                elements.extend(spread.take(changes.rows.column(*ordering))?.as_struct().columns().iter().cloned());
            }
            (spread.rows, elements)
        } else {
            let mut rows = Vec::new();
            changes.each_row(|row| rows.extend(column.is_valid(row as usize).then_some(row)));
            let elements = take(column, &UInt32Array::from(rows.clone()), None).map_err(Error::from)?;
            (rows, vec![elements])
        };
        if rows.is_empty() {
            return Ok(());
        }
        let fields = self.spec.fields();
        if fields.len() != elements.len() {
            return Err(Error::internal("elements of another form than is remembered"));
        }
        let declared = elements.iter().zip(fields).map(|(column, field)| cast(column, field.data_type()));
        let elements = declared.collect::<std::result::Result<_, _>>().map_err(Error::from)?;
        let at = UInt32Array::from(rows.clone());
        let group = changes.rows.columns()[..self.spec.group].iter().map(|column| take(column, &at, None));
        let group = group.collect::<std::result::Result<_, _>>().map_err(Error::from)?;
        self.pieces.push(Piece { keys: changes.keys.clone(), rows, group, elements, weights });
        Ok(())
    }

    /// Remembers what has come.
    ///
    /// # Errors
    /// Internal.
    pub fn write(&mut self, state: &mut StateTable, out: &mut Output) -> Result<()> {
        let pieces = std::mem::take(&mut self.pieces);
        if pieces.is_empty() {
            return Ok(());
        }
        match self.spec.keep {
            Keep::InOrder => self.write_in_order(&pieces, state, out),
            Keep::Counted { once } => self.write_counted(&pieces, once, state, out),
            Keep::Signed => self.write_counted(&pieces, false, state, out),
        }
    }

    /// Forgets what the watermark has closed.
    ///
    /// # Errors
    /// Internal.
    pub fn forget(&self, batch: &BatchInfo, state: &mut StateTable, out: &mut Output) -> Result<()> {
        match (self.spec.forget, ForgetBy::until(batch)) {
            (Some(by), Some(until)) => by.forget(until, &self.spec.keys, state, out),
            _ => Ok(()),
        }
    }

    fn write_in_order(&self, pieces: &[Piece], state: &mut StateTable, out: &mut Output) -> Result<()> {
        // None is ever taken out alone, so a group's next number is how many it has.
        let mut next: HashMap<&[u8], i64> = HashMap::new();
        let mut numbers = Vec::new();
        for piece in pieces {
            for group in piece.rows.iter().map(|row| piece.keys.bytes(*row as usize)) {
                let number = next.entry(group).or_insert_with(|| state.members(group).len() as i64);
                numbers.push(*number);
                *number += 1;
            }
        }
        let rows = numbers.len();
        let mut keys = together(pieces, |piece| &piece.group)?;
        keys.push(Arc::new(Int64Array::from(numbers)));
        let elements = together(pieces, |piece| &piece.elements)?;
        let elements = elements.into_iter().map(owned).collect::<Result<_>>()?;
        let encoded = state.codec().encode(&keys, rows)?;
        let mut slots = Vec::with_capacity(rows);
        state.find_or_insert_all(&encoded, None, rows, &mut slots);
        let mut met = MetKeys::default();
        met.keep(&keys, (0..rows as u32).collect(), state)?;
        self.keep(slots, &mut met, elements, state, out)
    }

    fn write_counted(&self, pieces: &[Piece], once: bool, state: &mut StateTable, out: &mut Output) -> Result<()> {
        let mut keys = together(pieces, |piece| &piece.group)?;
        keys.extend(together(pieces, |piece| &piece.elements)?);
        let rows = pieces.iter().map(|piece| piece.rows.len()).sum();
        let mut weights = vec![1; rows];
        if self.spec.keep == Keep::Signed {
            let all = pieces.iter().flat_map(|piece| piece.weights.iter());
            weights = all.flat_map(|all| all.as_primitive::<Int64Type>().values().iter().copied()).collect();
        }
        let encoded = state.codec().encode(&keys, rows)?;
        let mut slots = Vec::with_capacity(rows);
        state.find_or_insert_all(&encoded, None, rows, &mut slots);
        let (mut changed, mut counts, mut first): (Vec<Slot>, Vec<i64>, Vec<u32>) = Default::default();
        for (row, slot) in slots.into_iter().enumerate() {
            if once && state.has_values(slot) {
                continue;
            }
            let number = state.number(slot);
            if *number == NO_NUMBER {
                *number = changed.len() as u32;
                changed.push(slot);
                counts.push(weights[row]);
                first.push(row as u32);
            } else if !once {
                counts[*number as usize] += weights[row];
            }
        }
        if changed.is_empty() {
            return Ok(());
        }
        let had: Vec<usize> = (0..changed.len()).filter(|n| state.has_values(changed[*n])).collect();
        let mut before = vec![0; changed.len()];
        if !had.is_empty() {
            let slots: Vec<Slot> = had.iter().map(|n| changed[*n]).collect();
            let counts = state.columns(&slots, [self.spec.keys.fields().len()])?;
            for (n, count) in had.into_iter().zip(counts[0].as_primitive::<Int64Type>().values()) {
                before[n] = *count;
            }
        }
        counts.iter_mut().zip(&before).for_each(|(count, before)| *count += before);
        if self.spec.keep == Keep::Signed {
            let gone = settle(&mut changed, &mut counts, &mut first, &before, state)?;
            out.forgot(state.forget(&gone, &self.spec.keys)?);
            if changed.is_empty() {
                return Ok(());
            }
        }
        let mut met = MetKeys::default();
        met.keep(&keys, first, state)?;
        self.keep(changed, &mut met, vec![Arc::new(Int64Array::from(counts))], state, out)
    }

    fn keep(
        &self,
        slots: Vec<Slot>,
        met: &mut MetKeys,
        values: Vec<ArrayRef>,
        state: &mut StateTable,
        out: &mut Output,
    ) -> Result<()> {
        let keys = met.columns(&slots, state)?;
        let times = self.spec.forget.map(|by| by.times(&keys)).transpose()?;
        out.updated += slots.len() as u64;
        out.upserts.push(state.write(slots, keys, values, times.as_deref())?);
        Ok(())
    }
}

/// Leaves what is to be written; answers what was there and is there no more. What came and went within the batch leaves no trace.
fn settle(
    changed: &mut Vec<Slot>,
    counts: &mut Vec<i64>,
    first: &mut Vec<u32>,
    before: &[i64],
    state: &mut StateTable,
) -> Result<Vec<Slot>> {
    let (mut gone, mut kept, mut passed) = (Vec::new(), Vec::new(), Vec::new());
    for n in 0..changed.len() {
        match (before[n], counts[n]) {
            (_, ..0) => {
                return Err(Error::internal("an aggregate was told to take a value back that it does not remember"));
            }
            (0, 0) => passed.push(changed[n]),
            (_, 0) => gone.push(changed[n]),
            (was, is) if was == is => *state.number(changed[n]) = NO_NUMBER,
            _ => kept.push(n),
        }
    }
    state.release(&passed);
    *changed = kept.iter().map(|n| changed[*n]).collect();
    *counts = kept.iter().map(|n| counts[*n]).collect();
    *first = kept.iter().map(|n| first[*n]).collect();
    Ok(gone)
}

/// Columns of all pieces, one behind the other.
fn together(pieces: &[Piece], columns: fn(&Piece) -> &Vec<ArrayRef>) -> Result<Vec<ArrayRef>> {
    let width = pieces.first().map_or(0, |piece| columns(piece).len());
    let column = |n: usize| {
        let column: Vec<&dyn Array> = pieces.iter().map(|piece| columns(piece)[n].as_ref()).collect();
        concat(&column).map_err(Error::from)
    };
    (0..width).map(column).collect()
}

#[cfg(test)]
mod tests {
    use arrow::array::{ListArray, RecordBatch};
    use arrow::datatypes::{Field, Float64Type, Schema, TimeUnit, TimestampMillisecondType};

    use super::*;
    use crate::delta::calendar::Lasts;
    use crate::delta::keys::KeyCodec;

    /// One partition, whose groups are windows of 10 ms.
    struct Partition {
        elements: Elements,
        state: StateTable,
        group: Arc<KeyCodec>,
    }

    type Rows<'a> = &'a [(i64, Option<&'a [Option<f64>]>)];

    impl Partition {
        fn new(keep: Keep) -> Self {
            let field = |name: &str, is: DataType| -> FieldRef { Field::new(name, is, true).into() };
            let time = field("0:w", DataType::Timestamp(TimeUnit::Millisecond, None));
            let (key, value) = match keep {
                Keep::InOrder => (field("1:number", DataType::Int64), field("2:x", DataType::Float64)),
                Keep::Counted { .. } | Keep::Signed => {
                    (field("1:x", DataType::Float64), field("2:count", DataType::Int64))
                }
            };
            let group = Arc::new(KeyCodec::new(std::slice::from_ref(&time)).unwrap());
            let keys = vec![time, key];
            let codec = match keep {
                Keep::Signed => KeyCodec::new(&keys),
                _ => KeyCodec::exact_behind(&keys, 1),
            };
            let codec = Arc::new(codec.unwrap());
            let rows = Arc::new(Schema::new(keys.iter().cloned().chain([value]).collect::<Vec<_>>()));
            let spec = ElementsSpec {
                name: "elements".into(),
                keep,
                columns: vec![1],
                taken_as: None,
                group: 1,
                keys: Arc::new(Schema::new(keys)),
                rows: rows.clone(),
                forget: Some(ForgetBy { column: 0, lasts: Lasts::Units(10) }),
            };
            let state = StateTable::new(rows, 2, codec).with_members(group.clone(), 1);
            Partition { elements: Elements::new(Arc::new(spec)), state, group }
        }

        fn push(&mut self, rows: Rows<'_>) {
            let groups = arrow::array::TimestampMillisecondArray::from_iter_values(rows.iter().map(|row| row.0));
            let lists = rows.iter().map(|row| row.1.map(<[_]>::to_vec));
            let lists = ListArray::from_iter_primitive::<Float64Type, _, _>(lists);
            let rows = RecordBatch::try_from_iter([("w", Arc::new(groups) as ArrayRef), ("x", Arc::new(lists) as _)]);
            let rows = rows.unwrap();
            let keys = Arc::new(self.group.encode(&rows.columns()[..1], rows.num_rows()).unwrap());
            self.elements.push(&KeyedDelta { rows, keys, select: None }).unwrap();
        }

        /// Values of windows, each added or taken back.
        fn change(&mut self, rows: &[(i64, &[(Option<f64>, i64)])]) {
            let groups = arrow::array::TimestampMillisecondArray::from_iter_values(rows.iter().map(|row| row.0));
            let all = || rows.iter().flat_map(|row| row.1);
            let values: ArrayRef = Arc::new(arrow::array::Float64Array::from_iter(all().map(|(value, _)| *value)));
            let weights: ArrayRef = Arc::new(arrow::array::Int8Array::from_iter_values(all().map(|(_, w)| *w as i8)));
            let fields = [("v0", DataType::Float64), ("weight", DataType::Int8)];
            let fields: Vec<FieldRef> = fields.map(|(name, is)| Field::new(name, is, true).into()).into();
            let structs = arrow::array::StructArray::new(fields.into(), vec![values, weights], None);
            let lengths = arrow::buffer::OffsetBuffer::from_lengths(rows.iter().map(|row| row.1.len()));
            let item = Field::new("item", structs.data_type().clone(), true).into();
            let lists = ListArray::new(item, lengths, Arc::new(structs), None);
            let rows = RecordBatch::try_from_iter([("w", Arc::new(groups) as ArrayRef), ("x", Arc::new(lists) as _)]);
            let rows = rows.unwrap();
            let keys = Arc::new(self.group.encode(&rows.columns()[..1], rows.num_rows()).unwrap());
            self.elements.push(&KeyedDelta { rows, keys, select: None }).unwrap();
        }

        /// Ends a batch; the rows that were written and forgotten.
        fn end(&mut self, watermark: Option<i64>) -> (usize, usize) {
            let info = BatchInfo { watermark, ..BatchInfo::default() };
            let mut out = Output::default();
            self.elements.write(&mut self.state, &mut out).unwrap();
            self.elements.forget(&info, &mut self.state, &mut out).unwrap();
            let count = |batches: &[RecordBatch]| batches.iter().map(RecordBatch::num_rows).sum();
            assert_eq!(out.updated, count(&out.upserts) as u64);
            // What went is said key by key, or by its time.
            assert_eq!(count(&out.deletes) as u64 == out.removed, out.forgotten_until.is_none());
            (count(&out.upserts), out.removed as usize)
        }

        /// The elements of a window, as text.
        fn read(&self, window: i64) -> String {
            let groups: ArrayRef =
                Arc::new(arrow::array::PrimitiveArray::<TimestampMillisecondType>::from(vec![77, window]));
            let groups = self.group.encode(&[groups], 2).unwrap();
            let held = (0..2).map(|row| groups.bytes(row));
            let held = self.elements.spec.read(held, &self.state).unwrap();
            assert!(held.groups.iter().all(|group| *group == 1), "nothing belongs to window 77");
            let (columns, _) = held.each().unwrap();
            let values = columns[0].as_primitive::<Float64Type>();
            let text = values.iter().map(|value| value.map_or("NULL".into(), |value| value.to_string()));
            text.collect::<Vec<_>>().join(" ")
        }
    }

    #[test]
    fn in_order_every_element_is_a_row_of_its_own_and_none_is_written_again() {
        let mut partition = Partition::new(Keep::InOrder);
        partition.push(&[(0, Some(&[Some(2.0), None])), (20, Some(&[Some(9.0)])), (0, Some(&[Some(2.0)])), (30, None)]);
        assert_eq!(partition.end(None), (4, 0));
        assert_eq!((partition.read(0), partition.read(20)), ("2 NULL 2".into(), "9".into()));
        partition.push(&[(0, Some(&[Some(1.0)]))]);
        assert_eq!(partition.end(None), (1, 0));
        assert_eq!(partition.read(0), "2 NULL 2 1");
        // As after a restart.
        partition.state.loaded().unwrap();
        partition.push(&[(0, Some(&[Some(0.5)]))]);
        assert_eq!(partition.end(Some(29)), (1, 5));
        assert_eq!((partition.read(0), partition.read(20)), (String::new(), "9".into()));
        assert_eq!((partition.end(Some(30)), partition.state.len()), ((0, 1), 0));
    }

    #[test]
    fn counted_elements_are_told_apart_bit_by_bit() {
        let mut partition = Partition::new(Keep::Counted { once: false });
        partition.push(&[(0, Some(&[Some(3.0), Some(-0.0), Some(3.0)])), (20, Some(&[Some(3.0)]))]);
        assert_eq!(partition.end(None), (3, 0));
        partition.push(&[(0, Some(&[Some(0.0), Some(3.0)]))]);
        // One that is new, and one whose count is another.
        assert_eq!(partition.end(None), (2, 0));
        assert_eq!((partition.read(0), partition.read(20)), ("3 3 3 -0 0".into(), "3".into()));
        assert_eq!((partition.end(Some(10)), partition.read(0)), ((0, 3), String::new()));
    }

    #[test]
    fn what_counts_once_is_written_once() {
        let mut partition = Partition::new(Keep::Counted { once: true });
        partition.push(&[(0, Some(&[Some(3.0), None, Some(3.0)]))]);
        assert_eq!(partition.end(None), (2, 0));
        partition.push(&[(0, Some(&[Some(1.0), Some(3.0), None]))]);
        assert_eq!(partition.end(None), (1, 0));
        let read = partition.read(0);
        assert_eq!(read, "NULL 1 3");
        partition.state.loaded().unwrap();
        assert_eq!(partition.read(0), read);
    }
    #[test]
    fn what_is_taken_back_is_counted_down_and_then_forgotten() {
        let mut partition = Partition::new(Keep::Signed);
        partition.change(&[(0, &[(Some(3.0), 1), (None, 1), (Some(3.0), 1)]), (20, &[(Some(9.0), 1)])]);
        assert_eq!(partition.end(None), (3, 0));
        assert_eq!((partition.read(0), partition.read(20)), ("NULL 3 3".into(), "9".into()));
        // Two fewer and one more in one group; in the other what was there and comes again; and what comes and goes at once.
        partition.change(&[(0, &[(Some(3.0), -1), (Some(5.0), 1), (Some(5.0), -1)]), (20, &[(Some(9.0), -1)])]);
        partition.change(&[(20, &[(Some(9.0), 1)]), (0, &[(None, -1), (Some(1.0), 1)])]);
        assert_eq!((partition.end(None), partition.state.len()), ((2, 1), 3));
        assert_eq!((partition.read(0), partition.read(20)), ("1 3".into(), "9".into()));
        // As after a restart. A zero is taken back by the other zero.
        partition.state.loaded().unwrap();
        partition.change(&[(0, &[(Some(-0.0), 1), (Some(3.0), -1)])]);
        assert_eq!(partition.end(None), (1, 1));
        assert_eq!(partition.read(0), "0 1");
        partition.change(&[(0, &[(Some(1.0), -1), (Some(0.0), -1)])]);
        assert_eq!((partition.end(None), partition.read(0), partition.state.len()), ((0, 2), String::new(), 1));
        partition.change(&[(20, &[(Some(7.0), -1)])]);
        let failed = partition.elements.write(&mut partition.state, &mut Output::default());
        assert!(failed.unwrap_err().to_string().contains("that it does not remember"));
    }
}
