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
//! batch, changes nothing.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt64Array};
use arrow::datatypes::SchemaRef;

use super::aggregate::Emit;
use super::node::{OperatorPart, OperatorSpec, StateSpec};
use super::ranked::{Bytes, Ranked, RankedSpec};
use super::top_index::{Bound, Rank, Shown};
use super::{BatchInfo, KeyedDelta, Output, first};
use crate::delta::keys::KeyCodec;
use crate::error::{Error, Result};
use crate::state::{Slot, StateTable};

/// What all partitions of a Top-N share.
pub struct TopSpec {
    /// `top`, `top#2`
    pub name: String,
    pub rows: RankedSpec,
    /// Where the result's columns are among a row's, and the numbers behind them.
    pub columns: Vec<usize>,
    pub ranks: Vec<Rank>,
    pub output: SchemaRef,
    /// Of the result's first columns, to show rows in an order.
    pub shown_order: (Arc<KeyCodec>, usize),
    pub emit: Emit,
    /// What it does, as it is known again by: `row_number() <= 3 PARTITION BY k ORDER BY v DESC NULLS FIRST`.
    pub text: String,
}

impl OperatorSpec for TopSpec {
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
        vec![self.rows.state(&self.name, &self.text, "stateStoreSave", self.bounded_by())]
    }

    fn part(self: Arc<Self>) -> Result<Box<dyn OperatorPart>> {
        Ok(Box::new(Top { spec: self, rows: Ranked::default() }))
    }

    fn only_adds(&self) -> bool {
        self.emit == Emit::Closed
    }

    fn waits(&self) -> bool {
        self.emit == Emit::Closed
    }

    fn is_of_its_mode(&self) -> bool {
        true
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
        let (spec, of) = (&self.rows, self.rows.of_each());
        let rows = match (spec.signed, spec.bound.by) {
            (true, _) => format!("all rows{of}, as any may come to the top when others are taken back"),
            (false, Rank::RowNumber) => format!("the first {} rows{of}", spec.bound.last()),
            (false, by) => format!("the rows{of} of {} up to {}", by.name(), spec.bound.last()),
        };
        match spec.forget {
            Some(by) => {
                format!("{rows}, until the watermark reaches {}", by.end_of(&spec.keys.fields()[by.column]))
            }
            None if !spec.signed && spec.partition == 0 && spec.bound.by == Rank::RowNumber => rows,
            None if self.emit == Emit::All => format!("{rows}, kept for ever (COMPLETE sends all of them)"),
            None if spec.partition == 0 => format!("UNBOUNDED: {rows}"),
            None => format!(
                "UNBOUNDED: {rows}, kept for ever, as nothing that they are partitioned by is a watermarked time"
            ),
        }
    }

    /// A partition has one row at the most, so that one takes the place of the other.
    fn replaces(&self) -> bool {
        self.rows.bound == Bound { by: Rank::RowNumber, skip: 0, fetch: 1 }
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
}

/// One partition's work on one batch. See the module's documentation.
struct Top {
    spec: Arc<TopSpec>,
    rows: Ranked,
}

impl Top {
    /// What was shown and is no more, and what is now, each with the number of what it belongs to.
    fn differences(&mut self) -> Result<[Vec<(Shown, u32)>; 2]> {
        let spec = self.spec.clone();
        let mut found: [Vec<(Shown, u32)>; 2] = Default::default();
        let mut numbers: HashMap<u64, u32> = HashMap::new();
        for (number, rows) in self.rows.touched(&spec.rows)?.into_iter().enumerate() {
            let [before, now] = rows.map(|rows| rows.iter().map(|row| spec.seen(row)).collect::<Vec<_>>());
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
        }
        Ok(found)
    }

    /// Gives out the first rows of these partitions.
    fn emit<'a>(
        &mut self,
        partitions: impl Iterator<Item = &'a Bytes>,
        state: &StateTable,
        out: &mut Output,
    ) -> Result<()> {
        let (spec, mut rows) = (self.spec.clone(), Vec::new());
        for partition in partitions {
            rows.extend(self.rows.shown(partition, &spec.rows)?);
        }
        if !rows.is_empty() {
            out.rows.push(spec.result(&rows, state)?);
        }
        Ok(())
    }
}

impl OperatorPart for Top {
    fn push(&mut self, _: usize, changes: &KeyedDelta, _: &BatchInfo, states: &mut [&mut StateTable]) -> Result<()> {
        let (state, _) = first(states)?;
        self.rows.push(changes, &self.spec.rows, state)
    }

    fn finish(&mut self, batch: &BatchInfo, states: &mut [&mut StateTable]) -> Result<Vec<Output>> {
        let ((state, _), mut out) = (first(states)?, Output::default());
        let spec = self.spec.clone();
        self.rows.build(&spec.rows, state)?;
        let [gone, come] = match spec.emit {
            Emit::Changed { .. } => self.differences()?,
            Emit::Closed | Emit::All => {
                self.rows.touched(&spec.rows)?;
                Default::default()
            }
        };
        if !gone.is_empty() {
            let (rows, keys): (Vec<Shown>, Vec<u32>) = gone.into_iter().unzip();
            out.old_rows.push(spec.result(&rows, state)?);
            out.old_keys = keys;
        }
        let forgotten = self.rows.write(&spec.rows, state, &mut out)?;
        if !come.is_empty() {
            let (rows, keys): (Vec<Shown>, Vec<u32>) = come.into_iter().unzip();
            out.rows.push(spec.result(&rows, state)?);
            out.new_keys = keys;
        }
        Ranked::forget(&spec.rows, &forgotten, state, &mut out)?;
        let closed = self.rows.closed(&spec.rows, batch, state)?;
        if spec.emit == Emit::Closed {
            self.emit(closed.iter(), state, &mut out)?;
        }
        self.rows.close(&closed, &spec.rows, batch, state, &mut out)?;
        if spec.emit == Emit::All {
            let all = self.rows.partitions()?;
            self.emit(all.iter(), state, &mut out)?;
        }
        Ok(vec![out])
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{AsArray, Int8Array, Int64Array};
    use arrow::compute::SortOptions;
    use arrow::datatypes::{DataType, Field, FieldRef, Int64Type, Schema};
    use arrow::row::{RowConverter, SortField};

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
                shown_order: (codec.clone(), 1),
                rows: RankedSpec {
                    partition: 1,
                    codec,
                    row_codec: Arc::new(KeyCodec::exact_behind(&keys, 1).unwrap()),
                    keys: Arc::new(Schema::new(keys)),
                    rows: Arc::new(Schema::new(rows)),
                    order_by: vec![1],
                    sorter,
                    signed,
                    bound,
                    prunes: !signed,
                    before: true,
                    forget: None,
                },
                columns: vec![1],
                ranks: vec![bound.by],
                output: Arc::new(Schema::new(output)),
                emit: Emit::Changed { old: true },
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
            let rows = RecordBatch::try_from_iter(columns.into_iter().take(if self.spec.rows.signed { 3 } else { 2 }))?;
            let keys = Arc::new(self.spec.rows.codec.encode(&rows.columns()[..1], rows.num_rows())?);
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
        assert!(lost.contains("that is not remembered"), "{lost}");
    }
}
