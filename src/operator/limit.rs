//! Limit: the first rows there ever were.
//!
//! RELATION   the first n rows of the input, in its order, behind m that are left out
//! REMEMBERS  how many rows there were
//! ON CHANGE  pass rows on until there were m + n; drop the others
//! FORGETS    nothing: it is one number
//! REFUSES    input that retracts
//!
//! ```text
//! LIMIT 3      in    1 2       3 4       5
//!              out   1 2       3
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};

use super::node::{OperatorPart, OperatorSpec, Role, StateSpec};
use super::{BatchInfo, KeyedDelta, Output};
use crate::delta::keys::KeyCodec;
use crate::error::{Error, Result};
use crate::state::StateTable;
use crate::state::schema::StateSchema;

/// What a limit is made of.
pub struct LimitSpec {
    /// `limit`, `limit#2`
    pub name: String,
    pub skip: u64,
    pub fetch: u64,
    /// Of no columns: all rows lie in one partition.
    pub codec: Arc<KeyCodec>,
    pub output: SchemaRef,
}

impl OperatorSpec for LimitSpec {
    fn output(&self) -> &SchemaRef {
        &self.output
    }

    fn key(&self, _input: usize) -> (&Arc<KeyCodec>, usize) {
        (&self.codec, 0)
    }

    fn order(&self) -> (&Arc<KeyCodec>, usize) {
        (&self.codec, 0)
    }

    fn states(&self) -> Vec<StateSpec> {
        let count = Field::new("0:rows", DataType::Int64, false);
        let keys = Arc::new(Schema::empty());
        let rows = Arc::new(Schema::new(vec![count]));
        vec![StateSpec {
            stored: StateSchema::new(&self.name, keys.fields(), rows.fields(), BTreeMap::new()),
            rows,
            keys,
            codec: self.codec.clone(),
            spread: None,
            forget: None,
            kind: "globalLimit",
            bound: "one number".into(),
            role: Role::Own,
        }]
    }

    fn only_adds(&self) -> bool {
        true
    }

    fn spent(&self, states: &[&StateTable]) -> Result<Option<String>> {
        let [state, ..] = states else { return Err(Error::internal("a limit without a state")) };
        let behind = match self.skip {
            0 => String::new(),
            skip => format!(", behind the {skip} of OFFSET"),
        };
        let all = seen(state)? >= self.skip.saturating_add(self.fetch);
        Ok(all.then(|| format!("LIMIT {} is reached{behind}: no row will follow", self.fetch)))
    }

    fn part(self: Arc<Self>) -> Result<Box<dyn OperatorPart>> {
        Ok(Box::new(Limit { spec: self, seen: None, counted: 0, rows: Vec::new() }))
    }

    fn describe(&self) -> Vec<String> {
        let skip = if self.skip == 0 { String::new() } else { format!(" behind {}", self.skip) };
        vec![format!("the first {} rows{skip}, then none", self.fetch)]
    }
}

/// How many rows there were, as it is remembered.
fn seen(state: &StateTable) -> Result<u64> {
    let counts = state.values(&state.slots())?;
    Ok(counts[0].as_primitive::<Int64Type>().iter().flatten().next().unwrap_or(0) as u64)
}

/// One partition's work on one batch. See the module's documentation.
struct Limit {
    spec: Arc<LimitSpec>,
    /// Rows of the batches before; `None`: not looked up yet.
    seen: Option<u64>,
    /// Rows of this batch, as far as they count.
    counted: u64,
    rows: Vec<RecordBatch>,
}

impl OperatorPart for Limit {
    fn push(&mut self, _: usize, changes: &KeyedDelta, _: &BatchInfo, states: &mut [&mut StateTable]) -> Result<()> {
        let [state, ..] = states else { return Err(Error::internal("a limit without a state")) };
        let seen = match self.seen {
            Some(seen) => seen,
            None => *self.seen.insert(seen(state)?),
        };
        let (at, rows) = (seen + self.counted, changes.rows.num_rows() as u64);
        let end = self.spec.skip.saturating_add(self.spec.fetch);
        let (from, to) = (self.spec.skip.clamp(at, at + rows), end.clamp(at, at + rows));
        if to > from {
            let taken = changes.rows.slice((from - at) as usize, (to - from) as usize);
            let taken = RecordBatch::try_new(self.spec.output.clone(), taken.columns().to_vec());
            self.rows.push(taken.map_err(|e| Error::internal(e.to_string()))?);
        }
        // What is behind the end is not counted, so that nothing more is written once it is reached.
        self.counted += rows.min(end.saturating_sub(at));
        Ok(())
    }

    fn finish(&mut self, _: &BatchInfo, states: &mut [&mut StateTable]) -> Result<Vec<Output>> {
        let [state, ..] = states else { return Err(Error::internal("a limit without a state")) };
        let mut out = Output { rows: std::mem::take(&mut self.rows), ..Output::default() };
        let counted = std::mem::take(&mut self.counted);
        if let Some(seen) = self.seen.as_mut().filter(|_| counted > 0) {
            *seen += counted;
            let keys = self.spec.codec.encode(&[], 1)?;
            let (slot, _) = state.find_or_insert(&keys, 0);
            let count: ArrayRef = Arc::new(Int64Array::from(vec![*seen as i64]));
            out.updated += 1;
            out.upserts.push(state.write(vec![slot], Vec::new(), vec![count], None)?);
        }
        Ok(vec![out])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_pass_until_there_were_enough() {
        let output = Arc::new(Schema::new(vec![Field::new("c0", DataType::Int64, true)]));
        let codec = Arc::new(KeyCodec::new(&[]).unwrap());
        let spec = Arc::new(LimitSpec { name: "limit".into(), skip: 1, fetch: 3, codec, output: output.clone() });
        let mut state = spec.states()[0].table();
        let mut part = spec.clone().part().unwrap();
        let mut batch = |part: &mut Box<dyn OperatorPart>, values: &[i64]| {
            let column: ArrayRef = Arc::new(Int64Array::from(values.to_vec()));
            let rows = RecordBatch::try_new(output.clone(), vec![column]).unwrap();
            let keys = Arc::new(spec.codec.encode(&[], rows.num_rows()).unwrap());
            let (states, info) = (&mut [&mut state], BatchInfo::default());
            part.push(0, &KeyedDelta { rows, keys, select: None }, &info, states).unwrap();
            let out = part.finish(&info, states).unwrap().remove(0);
            let values = out.rows.iter().flat_map(|rows| rows.column(0).as_primitive::<Int64Type>().values().to_vec());
            (values.collect::<Vec<_>>(), out.updated)
        };
        assert_eq!(batch(&mut part, &[1, 2]), (vec![2], 1));
        // What is remembered is all that counts.
        let mut part = spec.clone().part().unwrap();
        assert_eq!(batch(&mut part, &[3, 4, 5, 6]), (vec![3, 4], 1));
        assert_eq!(batch(&mut part, &[7]), (vec![], 0));
    }
}
