//! Progress: what one batch did, as a document with Spark's fields in Spark's order, and ours behind them (rules M1 to
//! M9). What isn't known is absent, never 0.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use chrono::{DateTime, SecondsFormat};
use serde_json::{Map, Value, json};

use super::next_batch::NextBatch;
use super::operators::Changed;
use super::run::Run;
use crate::clock::Stopwatch;
use crate::incremental::{Dropped, IncrementalPlan, TimeStats};
use crate::operator::StateSpec;

/// What is measured while a batch runs.
pub(super) struct Measured {
    watch: Stopwatch,
    durations: BTreeMap<&'static str, Duration>,
    pub input_rows: u64,
    by_input: Vec<u64>,
    bad_rows: u64,
    times: TimeStats,
    pub output_rows: Option<u64>,
    /// One a state, in the order in which operators run.
    pub state: Vec<OperatorMeasured>,
    pub checkpoint_bytes: u64,
    /// By the operator's number.
    dropped: Vec<Dropped>,
}

/// What is measured of one state of an operator.
pub(super) struct OperatorMeasured {
    updated: u64,
    removed: u64,
    duplicates: Option<u64>,
    /// Rows and bytes of its state.
    pub size: Option<(u64, u64)>,
}

impl OperatorMeasured {
    /// Of what it changed.
    pub fn of(changed: &Changed) -> Self {
        let Changed { updated, removed, duplicates, .. } = *changed;
        OperatorMeasured { updated, removed, duplicates, size: None }
    }
}

impl Measured {
    /// Begins to measure.
    pub fn start() -> Self {
        Measured {
            watch: Stopwatch::start(),
            durations: BTreeMap::new(),
            input_rows: 0,
            by_input: Vec::new(),
            bad_rows: 0,
            times: TimeStats::default(),
            output_rows: None,
            state: Vec::new(),
            checkpoint_bytes: 0,
            dropped: Vec::new(),
        }
    }

    /// Adds time to a phase of the document.
    pub fn add(&mut self, key: &'static str, time: Duration) {
        *self.durations.entry(key).or_default() += time;
    }

    /// The time since the start.
    pub fn elapsed(&self) -> Duration {
        self.watch.elapsed()
    }

    /// Takes over what leaves and taps counted.
    pub fn count(&mut self, plan: &IncrementalPlan) {
        self.by_input = plan.inputs.iter().map(|input| input.leaf.rows()).collect();
        self.input_rows = self.by_input.iter().sum();
        self.bad_rows = plan.inputs.iter().filter_map(|input| input.leaf.bad_records()).map(|bad| bad.count()).sum();
        for n in 0..plan.watermarks.len() {
            self.times.add(&plan.cell.stats(n));
        }
        self.dropped = plan.cell.all_dropped();
    }

    /// Contributions that came too late, for all operators.
    pub fn late(&self) -> u64 {
        self.dropped.iter().map(|dropped| dropped.late_contributions).sum()
    }

    /// Rows that each operator dropped as their keys were there, by how many states it has.
    pub fn duplicates(&self, states: impl Iterator<Item = usize>) -> Vec<u64> {
        let mut measured = self.state.iter();
        states.map(|n| measured.by_ref().take(n).filter_map(|state| state.duplicates).sum()).collect()
    }

    /// The document of the batch.
    pub fn document(&self, run: &Run, next: &NextBatch, since_last: Option<i64>) -> Value {
        let total = self.elapsed();
        let per_second = |rows: u64| rows as f64 / total.max(Duration::from_millis(1)).as_secs_f64();
        // Of a clock that has not moved there is no rate.
        let since_last = since_last.filter(|millis| *millis > 0);
        let input_rate = |rows: u64| since_last.map(|millis| rows as f64 / (millis as f64 / 1_000.0));
        let mut doc = Map::new();
        let mut put = |key: &str, value: Value| doc.insert(key.to_string(), value);
        put("id", json!(run.checkpoint.id()));
        put("runId", json!(run.checkpoint.run_id()));
        put("name", json!(run.name));
        put("timestamp", json!(instant(next.entry.timestamp)));
        put("batchId", json!(next.batch));
        put("batchDuration", json!(total.as_millis() as u64));
        put("numInputRows", json!(self.input_rows));
        if let Some(rate) = input_rate(self.input_rows) {
            put("inputRowsPerSecond", json!(rounded(rate)));
        }
        put("processedRowsPerSecond", json!(rounded(per_second(self.input_rows))));
        put("durationMs", self.duration_ms(total));
        let watermark = match next.entry.drains {
            true => Some("end".to_string()),
            false => next.entry.watermark.map(instant),
        };
        if let Some(times) = self.event_time(watermark) {
            put("eventTime", times);
        }
        put("stateOperators", Value::Array(self.state_operators(run)));
        put("sources", Value::Array(self.sources(run, next, &input_rate, &per_second)));
        let mut sink = Map::from_iter([(
            "description".to_string(),
            json!(run.with_sink(|s| Ok(s.description())).unwrap_or_default()),
        )]);
        if let Some(rows) = self.output_rows {
            sink.insert("numOutputRows".into(), json!(rows));
        }
        put("sink", Value::Object(sink));
        if !run.plan.operators.is_empty() {
            let mut dropped = Dropped::default();
            self.dropped.iter().for_each(|of_one| dropped += *of_one);
            put("lateRows", json!(dropped.late_rows));
            put("lateContributions", json!(dropped.late_contributions));
            put("nullTimeRows", json!(dropped.null_time_rows));
        }
        put("badRows", json!(self.bad_rows));
        if let Some(rows) = self.output_rows {
            put("numOutputRows", json!(rows));
        }
        put("checkpointBytes", json!(self.checkpoint_bytes));
        if run.plan.watermarks.iter().any(|watermark| watermark.spec.max_future_skew.is_some()) {
            put("futureRows", json!(self.times.future_rows));
        }
        Value::Object(doc)
    }

    fn duration_ms(&self, total: Duration) -> Value {
        let mut map: BTreeMap<&str, u64> =
            self.durations.iter().map(|(key, time)| (*key, time.as_millis() as u64)).collect();
        map.insert("triggerExecution", total.as_millis() as u64);
        json!(map)
    }

    fn event_time(&self, watermark: Option<String>) -> Option<Value> {
        let mut map = BTreeMap::new();
        if let (Some(max), Some(min)) = (self.times.max, self.times.min) {
            map.insert("max", instant(max));
            map.insert("min", instant(min));
            map.insert("avg", instant((self.times.sum.div_euclid(i128::from(self.times.rows.max(1)))) as i64));
        }
        if let Some(watermark) = watermark {
            map.insert("watermark", watermark);
        }
        if map.is_empty() { None } else { Some(json!(map)) }
    }

    /// The operator nearest the sink first (rule M4).
    fn state_operators(&self, run: &Run) -> Vec<Value> {
        let mut measured = self.state.iter();
        let mut nodes = Vec::new();
        for (number, operators) in run.operators.iter().enumerate() {
            let dropped = self.dropped.get(number).copied().unwrap_or_default();
            let states = operators.specs().iter().zip(measured.by_ref()).enumerate();
            let last = number + 1 == run.operators.len();
            let one = |(n, (spec, measured))| {
                let own = (n == 0).then_some(dropped);
                self.state_operator(spec, measured, own, last && n == 0, operators.partitions())
            };
            nodes.push(states.map(one).collect::<Vec<_>>());
        }
        nodes.into_iter().rev().flatten().collect()
    }

    fn state_operator(
        &self,
        spec: &StateSpec,
        measured: &OperatorMeasured,
        dropped: Option<Dropped>,
        nearest: bool,
        partitions: usize,
    ) -> Value {
        let mut doc = Map::new();
        doc.insert("operatorName".into(), json!(spec.kind));
        if let Some((rows, _)) = measured.size {
            doc.insert("numRowsTotal".into(), json!(rows));
        }
        doc.insert("numRowsUpdated".into(), json!(measured.updated));
        doc.insert("numRowsRemoved".into(), json!(measured.removed));
        // All states are kept together: the time is not known of each.
        if let Some(commit) = self.durations.get("stateCommit").filter(|_| nearest) {
            doc.insert("commitTimeMs".into(), json!(commit.as_millis() as u64));
        }
        if let Some((_, bytes)) = measured.size {
            doc.insert("memoryUsedBytes".into(), json!(bytes));
        }
        if let Some(dropped) = dropped {
            doc.insert("numRowsDroppedByWatermark".into(), json!(dropped.late_rows));
        }
        doc.insert("numStateStoreInstances".into(), json!(partitions));
        let duplicates = measured.duplicates.map(|n| ("numDroppedDuplicateRows", n));
        doc.insert("customMetrics".into(), json!(duplicates.into_iter().collect::<BTreeMap<_, _>>()));
        doc.insert("name".into(), json!(spec.name()));
        doc.insert("bound".into(), json!(spec.bound));
        Value::Object(doc)
    }

    fn sources(
        &self,
        run: &Run,
        next: &NextBatch,
        input_rate: &dyn Fn(u64) -> Option<f64>,
        per_second: &dyn Fn(u64) -> f64,
    ) -> Vec<Value> {
        let mut list = Vec::new();
        for (n, (input, source)) in run.plan.inputs.iter().zip(&run.sources).enumerate() {
            let rows = self.by_input.get(n).copied().unwrap_or_default();
            let offsets = next.entry.sources.get(&input.name).cloned().unwrap_or_default();
            let mut doc = Map::new();
            doc.insert("description".into(), json!(super::run::lock(source).description()));
            doc.insert("startOffset".into(), offsets.start.unwrap_or(Value::Null));
            doc.insert("endOffset".into(), offsets.end.unwrap_or(Value::Null));
            doc.insert("latestOffset".into(), Value::Null);
            doc.insert("numInputRows".into(), json!(rows));
            if let Some(rate) = input_rate(rows) {
                doc.insert("inputRowsPerSecond".into(), json!(rounded(rate)));
            }
            doc.insert("processedRowsPerSecond".into(), json!(rounded(per_second(rows))));
            doc.insert("name".into(), json!(input.name));
            list.push(Value::Object(doc));
        }
        list
    }
}

/// The last documents of a query.
#[derive(Debug, Default)]
pub(super) struct ProgressLog {
    documents: VecDeque<Value>,
}

impl ProgressLog {
    /// Adds one, of `keep` at the most.
    pub fn push(&mut self, document: Value, keep: usize) {
        self.documents.push_back(document);
        while self.documents.len() > keep.max(1) {
            self.documents.pop_front();
        }
    }

    /// The last `n`, oldest first.
    pub fn last(&self, n: usize) -> Vec<Value> {
        self.documents.iter().skip(self.documents.len().saturating_sub(n)).cloned().collect()
    }
}

/// Milliseconds as Spark writes them.
pub(super) fn instant(millis: i64) -> String {
    match DateTime::from_timestamp_millis(millis) {
        Some(time) => time.to_rfc3339_opts(SecondsFormat::Millis, true),
        None => millis.to_string(),
    }
}

fn rounded(rate: f64) -> f64 {
    (rate * 10.0).round() / 10.0
}
