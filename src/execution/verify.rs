//! VERIFY QUERY: the query run again over exactly the rows that its log says it has read, and held against what it remembers and
//! what its result table holds.
//!
//! It is run as one batch, with the watermark of the last one: how the rows were split into batches changes nothing, as long as none
//! was late (semantics, "The law"). Where some were, or what a batch gives depends on the batch (its clock, which rows came first), it is
//! run batch by batch with the logged ranges, watermarks and clocks, which wants all logs from the first batch on. Nothing of the
//! running query is touched: what is run again has operators and a checkpoint of its own.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::compute::is_null;
use arrow::compute::kernels::zip::zip;
use arrow::datatypes::FieldRef;
use datafusion::scalar::ScalarValue;

use super::TargetTraits;
use super::dead_letter::DeadLetterSinks;
use super::difference::{Differences, Multiset};
use super::operators::Operators;
use super::progress::Measured;
use super::reading::Reading;
use super::run::{Run, lock};
use super::statics::StaticVersions;
use super::streaming_query::StateContents;
use super::watermark::Watermarks;
use crate::checkpoint::{Checkpoint, Failpoints, OffsetEntry, SourceOffsets};
use crate::delta::Delta;
use crate::error::{Error, Result};
use crate::incremental::WEIGHT;
use crate::operator::BatchInfo;
use crate::parser::OutputMode;
use crate::sink::{BatchId, BatchSummary, Begin, Sink, SinkCommit};

/// What VERIFY has held against each other, all of it equal.
#[derive(Debug, Clone, Default)]
pub struct Verified {
    /// What, and its rows.
    pub compared: Vec<(String, u64)>,
    /// How it was run again.
    pub how: String,
    /// What could not be compared.
    pub not_compared: Vec<String>,
}

/// So many differences are shown of each side.
const SHOWN: usize = 3;

impl Run {
    /// See the module's documentation. `given_up`: set when nobody waits for the answer any more. `read`: how many rows the query
    /// has read, where that is known.
    ///
    /// # Errors
    /// Corrupt: what is held differs. InvalidInput, Unsupported, Conflict: the query can't be run again with the same result.
    pub(super) fn verify(
        &mut self,
        given_up: &Arc<AtomicBool>,
        reading: &Reading,
        read: Option<u64>,
    ) -> Result<Verified> {
        let Some(last) = self.next_id.checked_sub(1) else {
            return Err(Error::invalid(format!(
                "query {} has committed no batch: there is nothing to verify",
                self.name
            )));
        };
        self.refuse_what_changes()?;
        let one_by_one = self.batch_by_batch(last)?;
        self.check_same_statics(last)?;
        let collected = Arc::new(Mutex::new(Multiset::default()));
        let mut again = self.again(&collected, given_up)?;
        reading.begin(&again.plan);
        let all = self.describe(last, whole(self.checkpoint.offsets(last)?), false).size;
        reading.expect(all.rows.or(read));
        let how = match one_by_one {
            Some(why) => {
                for batch in 0..=last {
                    let late = batch.checked_sub(1).map(|before| self.checkpoint.offsets(before)).transpose()?;
                    let entry = self.checkpoint.offsets(batch)?;
                    again.run_over(batch, &entry, late.and_then(|entry| entry.watermark))?;
                    reading.add_run();
                }
                format!("batches 0 to {last}, run again one by one, as {why}")
            }
            None => {
                let entry = self.checkpoint.offsets(last)?;
                again.run_over(0, &whole(entry), None)?;
                format!("the rows up to batch {last}, run again as one batch")
            }
        };
        let mut verified = Verified { how, ..Verified::default() };
        let mut wrong = Vec::new();
        self.compare_states(&again, &mut verified, &mut wrong)?;
        self.compare_result(&lock(&collected), &mut verified, &mut wrong)?;
        if wrong.is_empty() {
            return Ok(verified);
        }
        let message = format!(
            "query {} holds something else than the rows it has read give ({}):\n{}",
            self.name,
            verified.how,
            wrong.join("\n")
        );
        Err(Error::corrupt(self.checkpoint.location(), message))
    }

    fn refuse_what_changes(&self) -> Result<()> {
        if let Some(input) = self.plan.inputs.iter().find(|input| !input.stream.replayable()) {
            let message =
                format!("stream {} can't be read again, so query {} can't be verified", input.stream.name, self.name);
            return Err(Error::unsupported(message));
        }
        match crate::incremental::volatile_functions(&self.logical).first() {
            Some(name) => Err(Error::unsupported(format!(
                "query {} calls {name}(), which gives another value each time: it can't be verified",
                self.name
            ))),
            None => Ok(()),
        }
    }

    /// Why it must be run batch by batch, if it must.
    fn batch_by_batch(&self, last: u64) -> Result<Option<String>> {
        let why = if self.late > 0 {
            let s = if self.late == 1 { " was" } else { "s were" };
            format!("{} late contribution{s} left out", self.late)
        } else if crate::incremental::depends_on_batches(&self.logical) {
            "what it gives depends on how rows came in batches".to_string()
        } else {
            return Ok(None);
        };
        if self.checkpoint.keeps_all(last) {
            return Ok(Some(why));
        }
        Err(Error::unsupported(format!(
            "query {} can't be verified: {why}, so that it must be run again batch by batch, and the checkpoint no longer has the logs \
             of its first batches",
            self.name
        ))
        .help("start it WITH (min_batches_to_retain = …) as many as are to be verified"))
    }

    /// Static tables must be what they were in every batch.
    fn check_same_statics(&mut self, last: u64) -> Result<()> {
        if self.plan.statics.is_empty() {
            return Ok(());
        }
        let changed = |table: &str| {
            Error::conflict(format!(
                "static table {table} has changed since query {} has read it, so it can't be run again with the same rows",
                self.name
            ))
        };
        if !self.checkpoint.keeps_all(last) {
            return Err(Error::unsupported(format!(
                "query {} reads static tables, and the checkpoint no longer says what they were in its first batches",
                self.name
            ))
            .help("start it WITH (min_batches_to_retain = …) as many as are to be verified"));
        }
        let mut now = StaticVersions::default();
        let (versions, _) = now.look(&self.plan.statics, &self.engine)?;
        for batch in 0..=last {
            let logged = self.checkpoint.offsets(batch)?.statics;
            if let Some((table, _)) = logged.iter().find(|(table, version)| versions.get(*table) != Some(*version)) {
                return Err(changed(table));
            }
        }
        Ok(())
    }

    /// The same query, which has seen nothing yet.
    fn again(&self, collected: &Arc<Mutex<Multiset>>, given_up: &Arc<AtomicBool>) -> Result<Run> {
        let target = TargetTraits { deletes: true, signed: true, ordered: false, ..self.target.clone() };
        let engine = &self.engine;
        let partitions = self.settings.partitions.max(1);
        let cut = crate::incremental::plan(&engine.state, self.logical.clone(), self.plan.mode, &target, partitions);
        let plan = engine.runtime.block_on(cut)?;
        let failpoints = Failpoints::default();
        let checkpoint = Checkpoint::temporary(self.checkpoint.query(), failpoints.clone())?;
        let store = checkpoint.store();
        let open =
            |node: &crate::incremental::OperatorNode| Operators::open(&store, node, partitions, None, &engine.loaded);
        let sink = Collect { rows: collected.clone(), replace: self.plan.mode == OutputMode::Complete };
        Ok(Run {
            name: self.name.clone(),
            engine: engine.clone(),
            settings: self.settings.clone(),
            logical: self.logical.clone(),
            ends: vec![None; plan.inputs.len()],
            sources: self.sources.clone(),
            statics: StaticVersions::default(),
            operators: plan.operators.iter().map(open).collect::<Result<_>>()?,
            result: None,
            sink: Arc::new(Mutex::new(Box::new(sink))),
            dead_letters: DeadLetterSinks::default(),
            watermarks: Watermarks::new(&plan.watermarks, self.settings.watermark_policy_max, 0),
            used_watermark: None,
            next_id: 0,
            late: 0,
            replay: None,
            failpoints,
            place: None,
            abandon: given_up.clone(),
            target,
            plan,
            checkpoint,
        })
    }

    /// Runs one batch over logged ranges, and keeps nothing of it but what its operators remember.
    fn run_over(&mut self, batch: u64, entry: &OffsetEntry, late_watermark: Option<i64>) -> Result<()> {
        let info = BatchInfo { timestamp: entry.timestamp, late_watermark, watermark: entry.watermark };
        self.plan.cell.begin(info);
        // As wide as a batch of this size runs: sums of floats are made in the same order.
        let parallel = self.describe(batch, entry.clone(), false).parallel;
        self.fill_leaves(entry)?;
        self.with_sink(|sink| sink.begin(batch))?;
        self.process(&info, parallel, true, &mut Measured::start())?;
        self.with_sink(|sink| sink.commit(&BatchSummary::default())).map(drop)
    }

    fn compare_states(&self, again: &Run, verified: &mut Verified, wrong: &mut Vec<String>) -> Result<()> {
        for (held, expected) in self.operators.iter().zip(&again.operators) {
            let joins = held.specs().iter().any(|spec| spec.kind == "symmetricHashJoin");
            let widths: BTreeMap<&str, usize> =
                held.specs().iter().map(|spec| (spec.name(), spec.keys.fields().len())).collect();
            // A join's rows are numbered as they come.
            let numbers = |name: &str| widths.get(name).filter(|_| joins).map(|width| width - 1);
            let expected: BTreeMap<String, Multiset> = contents(expected.contents()?, numbers)?.into_iter().collect();
            for (name, held) in contents(held.contents()?, numbers)? {
                let what = format!("state {name}");
                let expected =
                    expected.get(&name).ok_or_else(|| Error::internal(format!("{what} is of another query")))?;
                wrong.extend(differ(&what, &held, expected));
                verified.compared.push((what, held.len()));
            }
        }
        Ok(())
    }

    fn compare_result(&self, expected: &Multiset, verified: &mut Verified, wrong: &mut Vec<String>) -> Result<()> {
        let Some(result) = &self.result else {
            verified.not_compared.push(format!("what {} was given can't be read", self.target.name));
            return Ok(());
        };
        let mut held = Multiset::default();
        for rows in result.table().snapshot()?.iter() {
            held.add(rows, |_| 1)?;
        }
        let what = format!("table {}", result.table().name());
        wrong.extend(differ(&what, &held, expected));
        verified.compared.push((what, held.len()));
        Ok(())
    }
}

/// All that was read, from the very beginning, as one batch.
fn whole(entry: OffsetEntry) -> OffsetEntry {
    let sources = entry.sources.into_iter();
    let sources = sources.map(|(name, offsets)| (name, SourceOffsets { start: None, end: offsets.end })).collect();
    OffsetEntry { sources, ..entry }
}

/// What operators remember, as it is compared. `leave_out`: a column that says nothing.
fn contents(contents: StateContents, leave_out: impl Fn(&str) -> Option<usize>) -> Result<Vec<(String, Multiset)>> {
    let one = |(name, rows): (String, RecordBatch)| {
        let without = leave_out(&name);
        let columns: Vec<usize> = (0..rows.num_columns()).filter(|n| Some(*n) != without).collect();
        let mut set = Multiset::of_state();
        let rows = rows.project(&columns).map_err(|e| Error::internal(e.to_string()))?;
        set.add(&zero_where_none(rows)?, |_| 1)?;
        Ok((name, set))
    };
    contents.into_iter().map(one).collect()
}

/// A sum over weights of no rows is NULL where none ever came, and 0 where all were taken back: both say the same.
fn zero_where_none(rows: RecordBatch) -> Result<RecordBatch> {
    let schema = rows.schema();
    let one = |(field, column): (&FieldRef, &ArrayRef)| -> Result<ArrayRef> {
        if !field.name().contains(WEIGHT) || column.null_count() == 0 {
            return Ok(column.clone());
        }
        let zero = ScalarValue::new_zero(column.data_type())?.to_scalar()?;
        zip(&is_null(column)?, &zero, column).map_err(|e| Error::internal(e.to_string()))
    };
    let columns = schema.fields().iter().zip(rows.columns()).map(one).collect::<Result<Vec<_>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
    RecordBatch::try_new_with_options(schema, columns, &options).map_err(|e| Error::internal(e.to_string()))
}

/// The first differences of what is held and what should be.
fn differ(what: &str, held: &Multiset, expected: &Multiset) -> Vec<String> {
    let [surplus, missing] = held.differences(expected, SHOWN);
    let lines = |found: Differences, verb: &str| {
        let more = found.count - found.first.len() as u64;
        let mut lines: Vec<String> = found.first.iter().map(|row| format!("  {what} {verb} {row}")).collect();
        if more > 0 {
            lines.push(format!("  {what} {verb} {more} more"));
        }
        lines
    };
    let mut all = lines(surplus, "holds, and should not:");
    all.extend(lines(missing, "should hold, and does not:"));
    all
}

/// Takes the rows that are given out.
struct Collect {
    rows: Arc<Mutex<Multiset>>,
    /// COMPLETE: a batch brings all of them.
    replace: bool,
}

impl Sink for Collect {
    fn description(&self) -> String {
        "VERIFY".into()
    }

    fn begin(&mut self, _batch: BatchId) -> Result<Begin> {
        if self.replace {
            lock(&self.rows).clear();
        }
        Ok(Begin::Write)
    }

    fn push(&mut self, _partition: usize, changes: Delta) -> Result<()> {
        lock(&self.rows).add(&changes.rows, |row| changes.op(row).weight())
    }

    fn commit(&mut self, _summary: &BatchSummary) -> Result<SinkCommit> {
        Ok(SinkCommit::default())
    }

    fn abort(&mut self) -> Result<()> {
        Ok(())
    }
}
