//! Distinct: each value of a group once.
//!
//! RELATION   δ (group, value)
//! REMEMBERS  (group, value), and nothing with it
//! ON CHANGE  hand on what was never there
//! FORGETS    values of groups whose time is at or before the watermark
//! REFUSES    input that retracts
//!
//! ```text
//! in    (a,[3,4]) (a,[4])   (b,[3])      the values of a batch, a list or more a group
//! out   (a,3) (a,4)         (b,3)
//! ```

use std::sync::Arc;

use arrow::array::{Array, UInt32Array};
use arrow::compute::{cast, take};
use arrow::datatypes::SchemaRef;

use super::forget::ForgetBy;
use super::lists::Spread;
use super::met_keys::MetKeys;
use super::node::OperatorPart;
use super::{BatchInfo, KeyedDelta, Output, first};
use crate::error::{Error, Result};
use crate::state::{NO_NUMBER, Slot, StateTable};

/// What all partitions of a distinct share.
pub struct DistinctSpec {
    /// `distinct`, `distinct#2`
    pub name: String,
    /// The input's column of lists; its first columns are the group.
    pub lists: usize,
    /// The group's columns, then the value: the key, and all that there is.
    pub keys: SchemaRef,
    pub forget: Option<ForgetBy>,
}

/// One partition's work on one batch. See the module's documentation.
pub struct Distinct {
    spec: Arc<DistinctSpec>,
    /// What this batch has brought.
    fresh: Vec<Slot>,
    keys: MetKeys,
}

impl Distinct {
    /// A partition that has seen nothing of any batch.
    pub fn new(spec: Arc<DistinctSpec>) -> Self {
        Distinct { spec, fresh: Vec::new(), keys: MetKeys::default() }
    }
}

impl OperatorPart for Distinct {
    fn push(
        &mut self,
        _input: usize,
        changes: &KeyedDelta,
        _batch: &BatchInfo,
        states: &mut [&mut StateTable],
    ) -> Result<()> {
        let (state, _) = first(states)?;
        let spread = Spread::new(changes, self.spec.lists, |lists, at| lists.values().is_valid(at))?;
        if spread.rows.is_empty() {
            return Ok(());
        }
        let value = spread.take(changes.rows.column(self.spec.lists))?;
        let groups = UInt32Array::from(spread.rows);
        let Some((field, group)) = self.spec.keys.fields().split_last() else {
            return Err(Error::internal("distinct without a value"));
        };
        let columns = changes.rows.columns()[..group.len()].iter().map(|column| take(column, &groups, None));
        let mut columns = columns.collect::<std::result::Result<Vec<_>, _>>().map_err(Error::from)?;
        columns.push(cast(&value, field.data_type()).map_err(Error::from)?);
        let keys = state.codec().encode(&columns, value.len())?;
        let mut slots = Vec::with_capacity(value.len());
        state.find_or_insert_all(&keys, None, value.len(), &mut slots);
        let mut new = Vec::new();
        for (at, slot) in slots.into_iter().enumerate() {
            if !state.has_values(slot) && *state.number(slot) == NO_NUMBER {
                *state.number(slot) = self.fresh.len() as u32;
                self.fresh.push(slot);
                new.push(at as u32);
            }
        }
        self.keys.keep(&columns, new, state)
    }

    fn finish(&mut self, batch: &BatchInfo, states: &mut [&mut StateTable]) -> Result<Vec<Output>> {
        let ((state, _), mut out) = (first(states)?, Output::default());
        if !self.fresh.is_empty() {
            let fresh = std::mem::take(&mut self.fresh);
            let keys = self.keys.columns(&fresh, state)?;
            let times = self.spec.forget.map(|by| by.times(&keys)).transpose()?;
            out.updated += fresh.len() as u64;
            let rows = state.write(fresh, keys, Vec::new(), times.as_deref())?;
            out.upserts.push(rows.clone());
            out.rows.push(rows);
        }
        if let (Some(by), Some(until)) = (self.spec.forget, ForgetBy::until(batch)) {
            by.forget(until, &self.spec.keys, state, &mut out)?;
        }
        Ok(vec![out])
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{AsArray, ListArray, RecordBatch, TimestampMillisecondArray};
    use arrow::datatypes::{DataType, Field, Int64Type, Schema, TimeUnit};

    use super::*;
    use crate::delta::calendar::Lasts;
    use crate::delta::keys::KeyCodec;

    fn pairs(batches: &[RecordBatch]) -> Vec<(i64, i64)> {
        let mut pairs = Vec::new();
        for batch in batches {
            let groups = batch.column(0).as_primitive::<arrow::datatypes::TimestampMillisecondType>();
            let values = batch.column(1).as_primitive::<Int64Type>();
            pairs.extend(groups.values().iter().copied().zip(values.values().iter().copied()));
        }
        pairs.sort();
        pairs
    }

    #[test]
    fn a_value_passes_once_until_its_group_is_forgotten() {
        let time = DataType::Timestamp(TimeUnit::Millisecond, None);
        let keys = Arc::new(Schema::new(vec![Field::new("0:w", time, true), Field::new("1:x", DataType::Int64, true)]));
        let fields: Vec<_> = keys.fields().iter().cloned().collect();
        let mut state = StateTable::new(keys.clone(), 2, Arc::new(KeyCodec::new(&fields).unwrap()));
        let forget = Some(ForgetBy { column: 0, lasts: Lasts::Units(10) });
        let mut distinct = Distinct::new(Arc::new(DistinctSpec { name: "distinct".into(), lists: 1, keys, forget }));
        let group = KeyCodec::new(&fields[..1]).unwrap();
        let mut batch = |rows: &[(i64, &[Option<i64>])], watermark: Option<i64>| {
            let groups = TimestampMillisecondArray::from_iter_values(rows.iter().map(|row| row.0));
            let lists = ListArray::from_iter_primitive::<Int64Type, _, _>(rows.iter().map(|row| Some(row.1.to_vec())));
            let rows = RecordBatch::try_from_iter([
                ("w", Arc::new(groups) as arrow::array::ArrayRef),
                ("x", Arc::new(lists) as _),
            ]);
            let rows = rows.unwrap();
            let keys = Arc::new(group.encode(&rows.columns()[..1], rows.num_rows()).unwrap());
            let info = BatchInfo { watermark, ..BatchInfo::default() };
            distinct.push(0, &KeyedDelta { rows, keys, select: None }, &info, &mut [&mut state]).unwrap();
            let out = distinct.finish(&info, &mut [&mut state]).unwrap().remove(0);
            assert!(out.deletes.is_empty());
            (pairs(&out.rows), (out.forgotten_until, out.removed), state.len())
        };
        let out = batch(&[(0, &[Some(1), Some(2), None]), (0, &[Some(2)]), (20, &[Some(1)]), (30, &[])], None);
        assert_eq!(out, (vec![(0, 1), (0, 2), (20, 1)], (None, 0), 3));
        let out = batch(&[(0, &[Some(3), Some(1)]), (20, &[Some(1)])], Some(10));
        assert_eq!(out, (vec![(0, 3)], (Some(0), 3), 1));
        let out = batch(&[], Some(29));
        assert_eq!(out, (vec![], (None, 0), 1));
        assert_eq!(batch(&[], Some(30)), (vec![], (Some(20_000), 1), 0));
    }
}
