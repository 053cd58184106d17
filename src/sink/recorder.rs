//! What queries gave out, batch by batch, kept in memory: for tests, which compare it.
//!
//! A [`Recorder`] stands in front of a query's sink and passes everything on. It outlives the session, so that what a
//! batch gave out before a crash and what it gives out when it is run again can be held side by side.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow::array::RecordBatch;
use arrow::compute::{concat_batches, take_record_batch};
use arrow::datatypes::SchemaRef;

use super::{BatchId, BatchSummary, Begin, Sink, SinkCommit, SinkContext};
use crate::delta::keys::KeyCodec;
use crate::delta::{Delta, Op};
use crate::error::{Error, Result};
use crate::parser::OutputMode;

/// What the queries of a test gave out, by name; clones share it.
#[derive(Clone, Default)]
pub struct Recorder(Arc<Mutex<BTreeMap<String, Recorded>>>);

/// What one query gave out.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// The columns of its result.
    pub schema: SchemaRef,
    pub mode: OutputMode,
    /// The columns by which a row of the result is known again, where they are all visible; see [`SinkContext::keys`].
    pub keys: Option<Vec<usize>>,
    /// See [`SinkContext::only_adds`].
    pub only_adds: bool,
    /// Of each batch what its last run gave out, committed or not.
    pub batches: BTreeMap<BatchId, Emitted>,
}

/// What one batch gave out.
#[derive(Debug, Clone, Default)]
pub struct Emitted {
    pub changes: Vec<Delta>,
    /// The sink has taken it.
    pub committed: bool,
}

impl Recorder {
    /// What a query gave out so far; `None`: none of that name was started.
    pub fn recorded(&self, query: &str) -> Option<Recorded> {
        self.lock().get(query).cloned()
    }

    /// Forgets what a query gave out.
    pub fn forget(&self, query: &str) {
        self.lock().remove(query);
    }

    /// Puts the recorder in front of a sink.
    pub fn before(&self, context: &SinkContext, inner: Box<dyn Sink>) -> Box<dyn Sink> {
        let mut all = self.lock();
        let batches = match all.remove(&context.query) {
            // What a restart goes on with; batches behind its last commit are run again.
            Some(old) if context.committed.is_some() => old.batches,
            _ => BTreeMap::new(),
        };
        let (schema, mode, keys) = (context.schema.clone(), context.mode, context.keys.clone());
        let only_adds = context.only_adds;
        all.insert(context.query.clone(), Recorded { schema, mode, keys, only_adds, batches });
        drop(all);
        Box::new(Recording { recorder: self.clone(), query: context.query.clone(), batch: None, inner })
    }

    fn emitted(&self, query: &str, batch: Option<BatchId>, change: impl FnOnce(&mut Emitted)) {
        if let (Some(recorded), Some(batch)) = (self.lock().get_mut(query), batch) {
            change(recorded.batches.entry(batch).or_default());
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Recorded>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Recorded {
    /// The rows of some batches with what each does. In UPDATE a query that only ever replaces rows sends no op: there a row is
    /// an update when an earlier batch gave out one with the same key, and also where the key can't be told.
    ///
    /// # Errors
    /// Internal: rows that don't fit together.
    pub fn changes(&self, batches: impl Fn(BatchId) -> bool) -> Result<(RecordBatch, Vec<Op>)> {
        let (mut rows, mut ops) = (Vec::new(), Vec::new());
        let mut seen = BTreeSet::new();
        for (batch, emitted) in &self.batches {
            let mut new = Vec::new();
            for delta in &emitted.changes {
                let keys = self.keys_of(&delta.rows)?;
                for row in 0..delta.len() {
                    let key = keys.as_ref().map(|keys| keys[row].clone());
                    let op = match (&delta.ops, self.mode, &key) {
                        (Some(_), _, _) => delta.op(row),
                        _ if self.only_adds => Op::Insert,
                        (None, OutputMode::Update, Some(key)) if !seen.contains(key) => Op::Insert,
                        (None, OutputMode::Update, _) => Op::UpdateAfter,
                        (None, _, _) => Op::Insert,
                    };
                    if batches(*batch) {
                        ops.push(op);
                    }
                    new.extend(key);
                }
                if batches(*batch) {
                    rows.push(delta.rows.clone());
                }
            }
            seen.extend(new);
        }
        let rows = concat_batches(&self.schema, &rows).map_err(|e| Error::internal(format!("recorded rows: {e}")))?;
        Ok((rows, ops))
    }

    /// What a reader holds who has followed the committed batches: in APPEND all rows, in UPDATE the newest row of each key, in
    /// COMPLETE the last batch.
    ///
    /// # Errors
    /// InvalidInput: in UPDATE, not all columns that the query groups by are in its result.
    pub fn folded(&self) -> Result<RecordBatch> {
        let last = self.batches.iter().rev().find(|(_, emitted)| emitted.committed).map(|(batch, _)| *batch);
        let committed = |batch: BatchId| self.batches.get(&batch).is_some_and(|emitted| emitted.committed);
        if self.mode == OutputMode::Complete {
            return Ok(self.changes(|batch| Some(batch) == last)?.0);
        }
        let (rows, ops) = self.changes(committed)?;
        if self.mode == OutputMode::Append || self.only_adds {
            return Ok(rows);
        }
        let keys = self.keys_of(&rows)?.ok_or_else(|| {
            Error::invalid(
                "not every column that the query groups by is in its result, so its newest rows can't be told",
            )
        })?;
        let mut newest: BTreeMap<&Vec<u8>, Option<u32>> = BTreeMap::new();
        for (row, (op, key)) in ops.iter().zip(&keys).enumerate() {
            let kept = matches!(op, Op::Insert | Op::UpdateAfter).then_some(row as u32);
            newest.insert(key, kept);
        }
        let rows_kept: Vec<u32> = newest.into_values().flatten().collect();
        take_record_batch(&rows, &arrow::array::UInt32Array::from(rows_kept))
            .map_err(|e| Error::internal(format!("recorded rows: {e}")))
    }

    fn keys_of(&self, rows: &RecordBatch) -> Result<Option<Vec<Vec<u8>>>> {
        let Some(keys) = &self.keys else { return Ok(None) };
        let fields: Vec<_> = keys.iter().map(|key| self.schema.fields()[*key].clone()).collect();
        let columns: Vec<_> = keys.iter().map(|key| rows.column(*key).clone()).collect();
        let encoded = KeyCodec::new(&fields)?.encode(&columns, rows.num_rows())?;
        Ok(Some((0..rows.num_rows()).map(|row| encoded.bytes(row).to_vec()).collect()))
    }
}

/// A sink with the recorder in front.
struct Recording {
    recorder: Recorder,
    query: String,
    batch: Option<BatchId>,
    inner: Box<dyn Sink>,
}

impl Sink for Recording {
    fn description(&self) -> String {
        self.inner.description()
    }

    fn begin(&mut self, batch: BatchId) -> Result<Begin> {
        let begin = self.inner.begin(batch)?;
        // What the sink has already is not computed again, so it stays as it was recorded.
        self.batch = (begin == Begin::Write).then_some(batch);
        self.recorder.emitted(&self.query, self.batch, |emitted| *emitted = Emitted::default());
        self.recorder.emitted(&self.query, Some(batch), |emitted| emitted.committed |= begin == Begin::AlreadyDone);
        Ok(begin)
    }

    fn push(&mut self, partition: usize, changes: Delta) -> Result<()> {
        self.recorder.emitted(&self.query, self.batch, |emitted| emitted.changes.push(changes.clone()));
        self.inner.push(partition, changes)
    }

    fn commit(&mut self, summary: &BatchSummary) -> Result<SinkCommit> {
        let commit = self.inner.commit(summary)?;
        self.recorder.emitted(&self.query, self.batch, |emitted| emitted.committed = true);
        Ok(commit)
    }

    fn abort(&mut self) -> Result<()> {
        self.inner.abort()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::blackhole::BlackholeSink;
    use arrow::array::{ArrayRef, AsArray, Int64Array};
    use arrow::datatypes::{DataType, Field, Int64Type, Schema};

    fn context(keys: Option<Vec<usize>>, mode: OutputMode) -> SinkContext {
        let fields = vec![Field::new("k", DataType::Int64, true), Field::new("n", DataType::Int64, true)];
        SinkContext {
            query: "q".into(),
            query_id: "id".into(),
            run_id: "run".into(),
            mode,
            schema: Arc::new(Schema::new(fields)),
            retracts: false,
            keys,
            only_adds: false,
            delay: None,
            partitions: 1,
            committed: None,
            failpoints: Default::default(),
            durable: false,
        }
    }

    fn rows(context: &SinkContext, rows: &[(i64, i64)]) -> Delta {
        let column = |n: fn(&(i64, i64)) -> i64| Arc::new(rows.iter().map(n).collect::<Int64Array>()) as ArrayRef;
        Delta::insert(RecordBatch::try_new(context.schema.clone(), vec![column(|r| r.0), column(|r| r.1)]).unwrap())
    }

    fn run(recorder: &Recorder, context: &SinkContext, batches: &[&[(i64, i64)]]) {
        let mut sink = recorder.before(context, Box::new(BlackholeSink::default()));
        for (batch, changes) in batches.iter().enumerate() {
            sink.begin(batch as u64).unwrap();
            sink.push(0, rows(context, changes)).unwrap();
            sink.commit(&BatchSummary::default()).unwrap();
        }
    }

    #[test]
    fn a_row_is_an_update_when_an_earlier_batch_gave_its_key() {
        let (recorder, context) = (Recorder::default(), context(Some(vec![0]), OutputMode::Update));
        run(&recorder, &context, &[&[(1, 1)], &[(1, 2), (2, 1)]]);
        let recorded = recorder.recorded("q").unwrap();
        assert_eq!(recorded.changes(|_| true).unwrap().1, [Op::Insert, Op::UpdateAfter, Op::Insert]);
        let folded = recorded.folded().unwrap();
        assert_eq!(folded.column(1).as_primitive::<Int64Type>().values(), &[2, 1]);
    }

    #[test]
    fn without_visible_keys_nothing_is_folded() {
        let (recorder, context) = (Recorder::default(), context(None, OutputMode::Update));
        run(&recorder, &context, &[&[(1, 1)]]);
        let recorded = recorder.recorded("q").unwrap();
        assert_eq!(recorded.changes(|_| true).unwrap().1, [Op::UpdateAfter]);
        assert!(recorded.folded().unwrap_err().to_string().contains("groups by"));
    }

    #[test]
    fn a_batch_that_is_run_again_replaces_what_it_gave_out() {
        let (recorder, context) = (Recorder::default(), context(None, OutputMode::Append));
        let mut sink = recorder.before(&context, Box::new(BlackholeSink::default()));
        for _ in 0..2 {
            sink.begin(0).unwrap();
            sink.push(0, rows(&context, &[(1, 1)])).unwrap();
        }
        let recorded = recorder.recorded("q").unwrap();
        assert_eq!((recorded.changes(|_| true).unwrap().0.num_rows(), recorded.folded().unwrap().num_rows()), (1, 0));
    }
}
