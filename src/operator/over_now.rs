//! Over, as it is now: each row, and what functions make of the rows around it in its partition, corrected when others come or go.
//!
//! RELATION   each row with f₁ … fₙ over frames of the rows of its partition, in their order
//! REMEMBERS  (partition, row) → how often it is there
//! ON CHANGE  the partitions that a batch touches are computed as they were and as they are; take back what differs, add what is now
//! FORGETS    partitions whose time is at or before the watermark
//! REFUSES    columns that can't be told apart by bytes
//!
//! ```text
//! sum(v) of each k so far, by ts    in    (2s,5)          (1s,3)                     (2s,5−)
//!                                   out   +(2s,5,5)       +(1s,3,3) −(2s,5,5) +(2s,5,8)     −(2s,5,8)
//! ```
//! Rows that are equal in the order come in the order of their columns, from left to right, so that it does not matter which came
//! first. A batch costs as much as the partitions that it touches hold.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::compute::concat;
use arrow::datatypes::{FieldRef, SchemaRef};
use datafusion::physical_expr::PhysicalSortExpr;
use datafusion::scalar::ScalarValue;

use super::aggregate::{Emit, as_declared};
use super::node::{OperatorPart, OperatorSpec, StateSpec};
use super::over_calls::{Call, Seen, window_values};
use super::ranked::{Ranked, RankedSpec};
use super::top_index::Shown;
use super::{BatchInfo, KeyedDelta, Output, first};
use crate::delta::keys::{KeyCodec, Keys};
use crate::error::{Error, Result};
use crate::state::{Slot, StateTable, select_rows};

/// What all partitions of an OVER share that takes rows back.
pub struct OverNowSpec {
    /// `over`, `over#2`
    pub name: String,
    pub rows: RankedSpec,
    /// What rows are ordered by, over a row's columns.
    pub order_by: Vec<PhysicalSortExpr>,
    pub calls: Vec<Call>,
    /// Where the result's columns are among a row's; behind them come the functions' values.
    pub columns: Vec<usize>,
    /// Tells whether the values of a row have changed.
    pub values: Arc<KeyCodec>,
    pub output: SchemaRef,
    /// Of the result's first columns, to show rows in an order.
    pub shown_order: (Arc<KeyCodec>, usize),
    pub emit: Emit,
    /// What it does, as it is known again by.
    pub text: String,
}

impl OverNowSpec {
    fn bounded_by(&self) -> String {
        let (spec, of) = (&self.rows, self.rows.of_each());
        let rows = format!("all rows{of}, as those that come or go change what the functions make of others");
        match spec.forget {
            Some(by) => format!("{rows}, until the watermark reaches {}", by.end_of(&spec.keys.fields()[by.column])),
            None if self.emit == Emit::All => format!("{rows}, kept for ever (COMPLETE sends all of them)"),
            None if spec.partition == 0 => format!("UNBOUNDED: {rows}"),
            None => format!(
                "UNBOUNDED: {rows}, kept for ever, as nothing that they are partitioned by is a watermarked time"
            ),
        }
    }

    /// The result's rows for those of whole partitions, one partition after the other.
    fn result(&self, partitions: &[Vec<Shown>], state: &StateTable) -> Result<Computed> {
        let slots: Vec<Slot> = partitions.iter().flatten().map(|row| row.slot).collect();
        let width = self.rows.keys.fields().len();
        let options = RecordBatchOptions::new().with_row_count(Some(slots.len()));
        let columns = state.columns(&slots, 0..width)?;
        let rows = RecordBatch::try_new_with_options(self.rows.keys.clone(), columns, &options);
        let rows = rows.map_err(|e| Error::internal(e.to_string()))?;
        let values = self.output.fields()[self.columns.len()..].iter().zip(&self.calls);
        let values: Vec<ArrayRef> =
            values.map(|(field, call)| self.values(call, field, &rows, partitions)).collect::<Result<_>>()?;
        let keys = self.values.encode(&values, slots.len())?;
        let places = self.places(&rows, partitions)?;
        let shown = self.columns.iter().map(|at| rows.column(*at).clone()).chain(values).collect();
        let rows = RecordBatch::try_new_with_options(self.output.clone(), shown, &options);
        Ok(Computed { rows: rows.map_err(|e| Error::internal(e.to_string()))?, slots, keys, places })
    }

    /// For each row its partition's number and what it is ordered by, where it is.
    fn places(&self, rows: &RecordBatch, partitions: &[Vec<Shown>]) -> Result<Vec<Option<Place>>> {
        if self.rows.order_by.is_empty() {
            return Ok(vec![None; rows.num_rows()]);
        }
        let by: Vec<ArrayRef> = self.rows.order_by.iter().map(|at| rows.column(*at).clone()).collect();
        let by = self.rows.sorter.convert_columns(&by).map_err(Error::from)?;
        let of = partitions.iter().enumerate().flat_map(|(n, rows)| std::iter::repeat_n(n, rows.len()));
        Ok(of.zip(&by).map(|(partition, by)| Some((partition, by.as_ref().into()))).collect())
    }

    /// What a function makes of the rows of all these partitions.
    fn values(&self, call: &Call, field: &FieldRef, rows: &RecordBatch, partitions: &[Vec<Shown>]) -> Result<ArrayRef> {
        let mut parts: Vec<ArrayRef> = Vec::new();
        for range in ranges(partitions) {
            let rows = rows.slice(range.start, range.len());
            let seen = Seen {
                of: 0..rows.num_rows(),
                rows: &rows,
                order_by: &self.order_by,
                rows_before: 0,
                places_before: 0,
            };
            parts.push(match call {
                Call::Window(window) | Call::Number(window, _) => window_values(window, None, &seen)?,
                Call::Framed(framed) | Call::Running(framed) => {
                    let mut values: Vec<ScalarValue> = Vec::with_capacity(rows.num_rows());
                    framed.compute(&seen, None, &mut values)?;
                    ScalarValue::iter_to_array(values).map_err(Error::from)?
                }
            });
        }
        let parts: Vec<&dyn Array> = parts.iter().map(AsRef::as_ref).collect();
        match parts.as_slice() {
            [] => Ok(arrow::array::new_empty_array(field.data_type())),
            parts => as_declared(concat(parts).map_err(Error::from)?, field),
        }
    }
}

/// Where each partition's rows are among all; those without rows are left out.
fn ranges(partitions: &[Vec<Shown>]) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    let each = partitions.iter().map(move |rows| {
        at += rows.len();
        at - rows.len()..at
    });
    each.filter(|range| !range.is_empty())
}

/// A partition's number, and bytes of what a row is ordered by.
type Place = (usize, Box<[u8]>);

/// Rows of the result, with the state's row that each is made of, the bytes of what the functions made, and its place.
struct Computed {
    rows: RecordBatch,
    slots: Vec<Slot>,
    keys: Keys,
    places: Vec<Option<Place>>,
}

impl Computed {
    fn row(&self, at: usize) -> (Slot, &[u8]) {
        (self.slots[at], self.keys.bytes(at))
    }

    /// The rows that are not among others, by their places.
    fn beyond(&self, others: &Computed) -> Vec<u32> {
        let mut same: HashMap<(Slot, &[u8]), usize> = HashMap::new();
        (0..others.slots.len()).for_each(|at| *same.entry(others.row(at)).or_default() += 1);
        let mut differs = |at: &u32| match same.get_mut(&self.row(*at as usize)) {
            Some(left) if *left > 0 => {
                *left -= 1;
                false
            }
            _ => true,
        };
        (0..self.slots.len() as u32).filter(|at| differs(at)).collect()
    }
}

/// Numbers of what changes: a row that has other values is the same row; otherwise one takes the place of another in the order.
struct Numbers<'a> {
    stay: HashSet<Slot>,
    by_slot: HashMap<Slot, u32>,
    by_place: HashMap<&'a Place, u32>,
    next: u32,
}

impl<'a> Numbers<'a> {
    fn new(old: &'a Computed, gone: &[u32], new: &'a Computed, come: &[u32]) -> Self {
        let gone: HashSet<Slot> = gone.iter().map(|at| old.slots[*at as usize]).collect();
        let come = come.iter().map(|at| new.slots[*at as usize]);
        let stay = come.filter(|slot| gone.contains(slot)).collect();
        Numbers { stay, by_slot: HashMap::new(), by_place: HashMap::new(), next: 0 }
    }

    fn of(&mut self, rows: &'a Computed, at: u32) -> u32 {
        let (slot, next) = (rows.slots[at as usize], self.next);
        let number = match &rows.places[at as usize] {
            Some(place) if !self.stay.contains(&slot) => *self.by_place.entry(place).or_insert(next),
            _ => *self.by_slot.entry(slot).or_insert(next),
        };
        self.next += u32::from(number == next);
        number
    }
}

impl OperatorSpec for OverNowSpec {
    fn output(&self) -> &SchemaRef {
        &self.output
    }

    fn key(&self, _input: usize) -> (&Arc<KeyCodec>, usize) {
        (&self.rows.codec, self.rows.partition)
    }

    fn order(&self) -> (&Arc<KeyCodec>, usize) {
        (&self.shown_order.0, self.shown_order.1)
    }

    fn states(&self) -> Vec<StateSpec> {
        vec![self.rows.state(&self.name, &self.text, "over", self.bounded_by())]
    }

    fn part(self: Arc<Self>) -> Result<Box<dyn OperatorPart>> {
        Ok(Box::new(OverNow { spec: self, rows: Ranked::default() }))
    }

    fn waits(&self) -> bool {
        false
    }

    fn describe(&self) -> Vec<String> {
        let sends = match self.emit {
            Emit::All => "all rows in every batch",
            _ => "rows that come, go, or of which a function makes another value",
        };
        vec![
            format!("{}; sends {sends}", self.text),
            "a batch costs as much as the partitions that it touches hold".into(),
        ]
    }
}

/// One partition's work on one batch. See the module's documentation.
struct OverNow {
    spec: Arc<OverNowSpec>,
    rows: Ranked,
}

impl OperatorPart for OverNow {
    fn push(&mut self, _: usize, changes: &KeyedDelta, _: &BatchInfo, states: &mut [&mut StateTable]) -> Result<()> {
        let (state, _) = first(states)?;
        self.rows.push(changes, &self.spec.rows, state)
    }

    fn finish(&mut self, batch: &BatchInfo, states: &mut [&mut StateTable]) -> Result<Vec<Output>> {
        let ((state, _), mut out) = (first(states)?, Output::default());
        let spec = self.spec.clone();
        self.rows.build(&spec.rows, state)?;
        let (before, now): (Vec<_>, Vec<_>) =
            self.rows.touched(&spec.rows)?.into_iter().map(|[before, now]| (before, now)).unzip();
        let changes = spec.emit != Emit::All && !now.is_empty();
        // Of rows that are gone behind `write` nothing is left to compute with.
        let before = if changes { Some(spec.result(&before, state)?) } else { None };
        let forgotten = self.rows.write(&spec.rows, state, &mut out)?;
        if let Some(before) = before {
            let now = spec.result(&now, state)?;
            let (gone, come) = (before.beyond(&now), now.beyond(&before));
            let mut numbers = Numbers::new(&before, &gone, &now, &come);
            if !gone.is_empty() {
                out.old_keys = gone.iter().map(|at| numbers.of(&before, *at)).collect();
                out.old_rows.push(select_rows(&before.rows, gone)?);
            }
            if !come.is_empty() {
                out.new_keys = come.iter().map(|at| numbers.of(&now, *at)).collect();
                out.rows.push(select_rows(&now.rows, come)?);
            }
        }
        Ranked::forget(&spec.rows, &forgotten, state, &mut out)?;
        let closed = self.rows.closed(&spec.rows, batch, state)?;
        self.rows.close(&closed, &spec.rows, batch, state, &mut out)?;
        if spec.emit == Emit::All {
            let partitions = self.rows.partitions()?;
            let all = partitions.iter().map(|partition| self.rows.shown(partition, &spec.rows));
            let all = spec.result(&all.collect::<Result<Vec<_>>>()?, state)?;
            if all.rows.num_rows() > 0 {
                out.rows.push(all.rows);
            }
        }
        Ok(vec![out])
    }
}
