//! Deduplicate: the first row of each key.
//!
//! RELATION   δ keys
//! REMEMBERS  keys that were there (and, WITHIN WATERMARK, the time of their first row)
//! ON CHANGE  pass on a row whose key was never there; drop the others, and count them
//! FORGETS    keys whose time is at or before the watermark, where a watermarked time is among them; WITHIN WATERMARK, keys
//!            whose first row's time and the delay are at or before it
//! REFUSES    input that retracts
//!
//! ```text
//! in    (a,3) (a,4)        (b,1)
//! out   (a,3)              (b,1)
//! ```
//! What is first is decided by the order of the input.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::compute::{concat, take};
use arrow::datatypes::{Fields, SchemaRef};

use super::forget::ForgetBy;
use super::met_keys::MetKeys;
use super::node::{OperatorPart, OperatorSpec, Role, StateSpec};
use super::{BatchInfo, KeyedDelta, Output};
use crate::delta::keys::KeyCodec;
use crate::error::{Error, Result};
use crate::state::schema::StateSchema;
use crate::state::{NO_NUMBER, Slot, StateTable};

/// A key that tells equal rows of a static table apart: the keys are then the table's rows.
pub const NTH: &str = "__nth";

/// What all partitions of a deduplication share.
pub struct DeduplicateSpec {
    /// `deduplicate`, `deduplicate#2`
    pub name: String,
    /// The keys: the input's first columns, by the names they are remembered by.
    pub keys: SchemaRef,
    pub codec: Arc<KeyCodec>,
    /// Keys, and WITHIN WATERMARK the time of the first row.
    pub rows: SchemaRef,
    /// WITHIN WATERMARK: the input's column of times, and the delay as a person writes it.
    pub within: Option<(usize, String)>,
    /// Where the result's columns are in the input.
    pub columns: Vec<usize>,
    pub output: SchemaRef,
    /// Of the result's first columns, to show rows in an order.
    pub order: Arc<KeyCodec>,
    /// How many of them.
    pub order_columns: usize,
    pub forget: Option<ForgetBy>,
}

impl OperatorSpec for DeduplicateSpec {
    fn output(&self) -> &SchemaRef {
        &self.output
    }

    fn key(&self, _input: usize) -> (&Arc<KeyCodec>, usize) {
        (&self.codec, self.keys.fields().len())
    }

    fn order(&self) -> (&Arc<KeyCodec>, usize) {
        (&self.order, self.order_columns)
    }

    fn states(&self) -> Vec<StateSpec> {
        let width = self.keys.fields().len();
        let values: Fields = self.rows.fields()[width..].to_vec().into();
        vec![StateSpec {
            rows: self.rows.clone(),
            keys: self.keys.clone(),
            codec: self.codec.clone(),
            stored: StateSchema::new(&self.name, self.keys.fields(), &values, BTreeMap::new()),
            spread: None,
            forget: self.forget,
            kind: if self.within.is_some() { "dedupeWithinWatermark" } else { "dedupe" },
            bound: self.bound(),
            role: Role::Own,
        }]
    }

    fn only_adds(&self) -> bool {
        true
    }

    fn part(self: Arc<Self>) -> Result<Box<dyn OperatorPart>> {
        Ok(Box::new(Deduplicate::new(self)))
    }

    fn describe(&self) -> Vec<String> {
        if self.is_of_table() {
            return vec![format!("each row of the table once ({}), when a row finds it", self.key_names())];
        }
        vec![format!("the first row of each ({}), at once", self.key_names())]
    }
}

impl DeduplicateSpec {
    /// Its keys are the rows of a static table.
    fn is_of_table(&self) -> bool {
        self.keys.fields().iter().any(|field| super::chain::bare(field.name()) == NTH)
    }

    fn key_names(&self) -> String {
        let names = self.keys.fields().iter().map(|field| super::chain::bare(field.name()));
        names.filter(|name| *name != NTH).collect::<Vec<_>>().join(", ")
    }

    fn bound(&self) -> String {
        match (&self.within, self.forget) {
            (Some((_, delay)), _) => format!("one row a key, until the watermark is {delay} past its first row"),
            (None, Some(by)) => {
                format!("one row a key, until the watermark reaches {}", by.end_of(self.keys.field(by.column)))
            }
            (None, None) if self.is_of_table() => {
                "one row for each row of the table that was found: no more than the table has had".into()
            }
            (None, None) => "UNBOUNDED: one row a key, kept for ever, as no key is a watermarked time".into(),
        }
    }
}

/// One partition's work on one batch. See the module's documentation.
pub struct Deduplicate {
    spec: Arc<DeduplicateSpec>,
    /// What this batch has brought, in its order: slots, keys, times and rows.
    fresh: Vec<Slot>,
    keys: MetKeys,
    times: Vec<ArrayRef>,
    rows: Vec<RecordBatch>,
    dropped: u64,
}

impl Deduplicate {
    /// A partition that has seen nothing of any batch.
    pub fn new(spec: Arc<DeduplicateSpec>) -> Self {
        let (fresh, keys, times, rows, dropped) = Default::default();
        Deduplicate { spec, fresh, keys, times, rows, dropped }
    }
}

impl OperatorPart for Deduplicate {
    fn push(&mut self, _: usize, changes: &KeyedDelta, _: &BatchInfo, states: &mut [&mut StateTable]) -> Result<()> {
        let [state, ..] = states else { return Err(Error::internal("a deduplication without a state")) };
        let select = changes.select.as_deref();
        let mut slots = Vec::new();
        state.find_or_insert_all(&changes.keys, select, changes.rows.num_rows(), &mut slots);
        let mut new = Vec::new();
        for (at, slot) in slots.into_iter().enumerate() {
            if state.has_values(slot) || *state.number(slot) != NO_NUMBER {
                self.dropped += 1;
                continue;
            }
            *state.number(slot) = self.fresh.len() as u32;
            self.fresh.push(slot);
            new.push(select.map_or(at as u32, |select| select[at]));
        }
        if new.is_empty() {
            return Ok(());
        }
        let columns = changes.rows.columns();
        let (width, count) = (self.spec.keys.fields().len(), new.len());
        let rows = UInt32Array::from(new.clone());
        self.keys.keep(&columns[..width], new, state)?;
        if let Some((time, _)) = &self.spec.within {
            self.times.push(take(&columns[*time], &rows, None).map_err(Error::from)?);
        }
        let taken = self.spec.columns.iter().map(|n| take(&columns[*n], &rows, None));
        let taken = taken.collect::<std::result::Result<Vec<_>, _>>().map_err(Error::from)?;
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        let taken = RecordBatch::try_new_with_options(self.spec.output.clone(), taken, &options);
        self.rows.push(taken.map_err(|e| Error::internal(e.to_string()))?);
        Ok(())
    }

    fn finish(&mut self, batch: &BatchInfo, states: &mut [&mut StateTable]) -> Result<Vec<Output>> {
        let [state, ..] = states else { return Err(Error::internal("a deduplication without a state")) };
        let mut out = Output { duplicates: Some(std::mem::take(&mut self.dropped)), ..Output::default() };
        if !self.fresh.is_empty() {
            let fresh = std::mem::take(&mut self.fresh);
            let mut columns = self.keys.columns(&fresh, state)?;
            let width = columns.len();
            if self.spec.within.is_some() {
                let times = std::mem::take(&mut self.times);
                let times: Vec<&dyn Array> = times.iter().map(|times| times.as_ref()).collect();
                columns.push(concat(&times).map_err(Error::from)?);
            }
            let times = self.spec.forget.map(|by| by.times(&columns)).transpose()?;
            let values = columns.split_off(width);
            out.updated += fresh.len() as u64;
            out.upserts.push(state.write(fresh, columns, values, times.as_deref())?);
            out.rows = std::mem::take(&mut self.rows);
        }
        if let (Some(by), Some(until)) = (self.spec.forget, ForgetBy::until(batch)) {
            by.forget(until, &self.spec.keys, state, &mut out)?;
        }
        Ok(vec![out])
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{AsArray, Int64Array, TimestampMillisecondArray};
    use arrow::datatypes::{DataType, Field, Int64Type, Schema, TimeUnit};

    use super::*;
    use crate::delta::calendar::Lasts;

    /// Rows are (key, time, value); answers the values that pass, the duplicates and the keys that are left.
    struct Trial {
        spec: Arc<DeduplicateSpec>,
        part: Box<dyn OperatorPart>,
        state: StateTable,
    }

    impl Trial {
        fn new(within: bool) -> Self {
            let time = DataType::Timestamp(TimeUnit::Millisecond, None);
            let key: arrow::datatypes::FieldRef = Field::new("0:k", DataType::Int64, true).into();
            let first: arrow::datatypes::FieldRef = Field::new("1:ts", time, true).into();
            let keys = Arc::new(Schema::new(vec![key.clone()]));
            let all = Arc::new(Schema::new(vec![key.clone(), first]));
            let spec = Arc::new(DeduplicateSpec {
                name: "deduplicate".into(),
                codec: Arc::new(KeyCodec::new(&[key]).unwrap()),
                rows: if within { all } else { keys.clone() },
                keys,
                within: within.then(|| (1, "10 milliseconds".to_string())),
                columns: vec![2],
                output: Arc::new(Schema::new(vec![Field::new("c0", DataType::Int64, true)])),
                order: Arc::new(KeyCodec::new(&[]).unwrap()),
                order_columns: 0,
                forget: within.then_some(ForgetBy { column: 1, lasts: Lasts::Units(10) }),
            });
            let state = spec.states()[0].table();
            Trial { part: spec.clone().part().unwrap(), spec, state }
        }

        fn batch(&mut self, rows: &[(i64, i64, i64)], watermark: Option<i64>) -> (Vec<i64>, Option<u64>, usize) {
            let column = |f: fn(&(i64, i64, i64)) -> i64| Int64Array::from_iter_values(rows.iter().map(f));
            let times = TimestampMillisecondArray::from_iter_values(rows.iter().map(|row| row.1));
            let columns: [(&str, ArrayRef); 3] =
                [("k", Arc::new(column(|r| r.0))), ("ts", Arc::new(times)), ("v", Arc::new(column(|r| r.2)))];
            let rows = RecordBatch::try_from_iter(columns).unwrap();
            let keys = Arc::new(self.spec.codec.encode(&rows.columns()[..1], rows.num_rows()).unwrap());
            let info = BatchInfo { watermark, ..BatchInfo::default() };
            let states = &mut [&mut self.state];
            self.part.push(0, &KeyedDelta { rows, keys, select: None }, &info, states).unwrap();
            let out = self.part.finish(&info, states).unwrap().remove(0);
            let values = out.rows.iter().flat_map(|rows| rows.column(0).as_primitive::<Int64Type>().values().to_vec());
            (values.collect(), out.duplicates, self.state.len())
        }
    }

    #[test]
    fn the_first_row_of_a_key_passes_for_ever() {
        let mut trial = Trial::new(false);
        assert_eq!(trial.batch(&[(1, 0, 10), (2, 0, 20), (1, 0, 11)], None), (vec![10, 20], Some(1), 2));
        assert_eq!(trial.batch(&[(2, 0, 21), (3, 0, 30)], Some(1_000)), (vec![30], Some(1), 3));
        assert_eq!(trial.batch(&[], Some(2_000)), (vec![], Some(0), 3));
    }

    #[test]
    fn within_the_watermark_a_key_is_forgotten_by_its_first_row() {
        let mut trial = Trial::new(true);
        assert_eq!(trial.batch(&[(1, 5, 10), (1, 9, 11)], None), (vec![10], Some(1), 1));
        // A duplicate does not lengthen the time, and is looked for before anything is forgotten (D2).
        assert_eq!(trial.batch(&[(1, 14, 12), (2, 14, 20)], Some(15)), (vec![20], Some(1), 1));
        assert_eq!(trial.batch(&[(1, 16, 13)], Some(23)), (vec![13], Some(0), 2));
        assert_eq!(trial.batch(&[], Some(24)), (vec![], Some(0), 1));
    }
}
