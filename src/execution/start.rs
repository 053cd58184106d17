//! START: a query is cut, its checkpoint opened, what it remembers loaded, its thread begun; and a restart goes on where
//! the logs say.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use arrow::array::ArrayRef;

use super::query_thread::QueryThread;
use super::result_state::ResultState;
use super::run::Run;
use super::statics::StaticVersions;
use super::streaming_query::{QueryHandle, Shared};
use super::watermark::Watermarks;
use super::{Engine, QuerySpec};
use crate::checkpoint::{Checkpoint, Failpoints};
use crate::error::{Error, Result};
use crate::incremental::{AggregatePart, IncrementalPlan};
use crate::operator::Aggregate;
use crate::sink::SinkContext;
use crate::source::Offset;
use crate::state::schema::StateSchema;
use crate::state::{OperatorState, Shape};

/// See [`super::start`].
pub(super) fn start(engine: &Engine, spec: QuerySpec) -> Result<QueryHandle> {
    let partitions = spec.settings.partitions.max(1);
    let cut = crate::incremental::plan(&engine.state, spec.plan.clone(), spec.mode, &spec.target, partitions);
    let plan = engine.runtime.block_on(cut)?;
    let failpoints = Failpoints::default();
    let checkpoint = match &spec.checkpoint {
        Some(location) => Checkpoint::open(location, &spec.sql, failpoints.clone())?,
        None => Checkpoint::temporary(&spec.sql, failpoints.clone())?,
    };
    let sources = open_sources(&plan, &checkpoint)?;
    let context = SinkContext {
        query: spec.name.clone(),
        query_id: checkpoint.id().to_string(),
        run_id: checkpoint.run_id().to_string(),
        mode: spec.mode,
        schema: plan.output.clone(),
        retracts: plan.retracts,
        partitions: plan.first.partitions(true).max(1),
        committed: checkpoint.latest_commit()?,
        failpoints: failpoints.clone(),
    };
    let explain = crate::incremental::explain(&plan, &spec.target.name);
    let reads = reads(&plan);
    let policy_max = spec.settings.watermark_policy_max;
    let watermarks = Watermarks::new(&plan.watermarks, policy_max, engine.clock.now());
    let abandon = Arc::new(AtomicBool::new(false));
    let mut run = Run {
        name: spec.name.clone(),
        engine: engine.clone(),
        settings: spec.settings,
        logical: spec.plan,
        target: spec.target,
        ends: vec![None; sources.len()],
        sources,
        statics: StaticVersions::default(),
        operators: Arc::default(),
        memory: None,
        result: None,
        sink: Arc::new(Mutex::new((spec.open_sink)(context)?)),
        watermarks,
        used_watermark: None,
        next_id: 0,
        replay: None,
        failpoints: failpoints.clone(),
        abandon: abandon.clone(),
        plan,
        checkpoint,
    };
    run.resume()?;
    run.reload()?;
    if let Some(table) = spec.result_table {
        let version = run.next_id.checked_sub(1);
        run.result = Some(ResultState::open(run.checkpoint.store(), table, &run.plan.output, version)?);
    }
    run.tell_of_state();
    let shared =
        Arc::new(Shared::new(&spec.name, run.checkpoint.id(), reads, explain, spec.trigger, abandon, failpoints));
    let handle = QueryHandle::new(shared.clone());
    let thread = QueryThread { run, shared, stop_after: spec.stop_after, began: None };
    let name = format!("levada-{}", spec.name);
    let spawned = std::thread::Builder::new().name(name).spawn(move || thread.main());
    spawned.map_err(|e| Error::io(format!("starting a thread for query {}", spec.name), &e))?;
    Ok(handle)
}

fn open_sources(plan: &IncrementalPlan, checkpoint: &Checkpoint) -> Result<Vec<crate::planner::leaf::SharedSource>> {
    plan.inputs
        .iter()
        .map(|input| Ok(Arc::new(Mutex::new(input.stream.open(checkpoint.source_log(&input.name))?))))
        .collect()
}

fn reads(plan: &IncrementalPlan) -> Vec<String> {
    let streams = plan.inputs.iter().map(|input| input.stream.name.clone());
    let mut names: Vec<String> = streams.chain(plan.statics.iter().map(|table| table.name.clone())).collect();
    names.sort();
    names.dedup();
    names
}

impl Run {
    /// Takes up where the logs end (rule P1): the batch that was logged and not committed is to be run again as it was.
    fn resume(&mut self) -> Result<()> {
        let Some(last) = self.checkpoint.latest_offsets()? else { return Ok(()) };
        let entry = self.checkpoint.offsets(last)?;
        self.check_inputs(&entry)?;
        self.check_policy(&entry)?;
        let committed = self.checkpoint.latest_commit()? == Some(last);
        let done = if committed { Some(last) } else { last.checked_sub(1) };
        if let Some(done) = done {
            let entry = if committed { entry.clone() } else { self.checkpoint.offsets(done)? };
            let commit = self.checkpoint.commit(done)?;
            if commit.drained {
                return Err(Error::conflict(format!(
                    "checkpoint {} was drained at batch {done}: its query has ended for good; use a new checkpoint",
                    self.checkpoint.location()
                )));
            }
            self.next_id = done + 1;
            self.used_watermark = entry.watermark;
            self.watermarks.restore(&commit.watermarks, commit.watermark);
            for (input, end) in self.plan.inputs.iter().zip(&mut self.ends) {
                *end = entry.sources.get(&input.name).and_then(|logged| logged.end.clone()).map(Offset);
            }
        }
        self.replay = (!committed).then_some((last, entry));
        self.check_held()
    }

    /// A source added or removed under a checkpoint is refused.
    fn check_inputs(&self, entry: &crate::checkpoint::OffsetEntry) -> Result<()> {
        let logged: Vec<&String> = entry.sources.keys().collect();
        let mut now: Vec<&String> = self.plan.inputs.iter().map(|input| &input.name).collect();
        now.sort();
        if logged == now {
            return Ok(());
        }
        let list = |names: &[&String]| names.iter().map(|n| n.as_str()).collect::<Vec<_>>().join(", ");
        Err(Error::invalid(format!(
            "the query has changed: the checkpoint reads {}, the query reads {}",
            list(&logged),
            list(&now)
        ))
        .help("start it with a new CHECKPOINT, or with the query it was made for"))
    }

    /// The policy that the checkpoint was made with wins over the session's (rule W7).
    fn check_policy(&mut self, entry: &crate::checkpoint::OffsetEntry) -> Result<()> {
        if let Some(policy) = entry.conf.get("multiple_watermark_policy") {
            self.settings.watermark_policy_max = policy == "max";
            self.watermarks =
                Watermarks::new(&self.plan.watermarks, self.settings.watermark_policy_max, self.engine.clock.now());
        }
        Ok(())
    }

    /// Sources that can't be read again hold only what this process put into them.
    fn check_held(&self) -> Result<()> {
        for ((input, source), end) in self.plan.inputs.iter().zip(&self.sources).zip(&self.ends) {
            let Some(end) = end else { continue };
            let source = super::run::lock(source);
            if !source.replayable() {
                return Err(Error::conflict(format!(
                    "the checkpoint was at {} of {}, and this source can't be read again: use a new CHECKPOINT",
                    end.0, input.name
                )));
            }
        }
        Ok(())
    }

    /// Loads the operator's state as it was after the last committed batch, and makes operators that know nothing of a batch.
    pub(super) fn reload(&mut self) -> Result<()> {
        let version = self.next_id.checked_sub(1);
        let _ = self.with_sink(|sink| sink.abort());
        if let Some(result) = self.result.take() {
            self.result = Some(result.reopen(self.checkpoint.store(), &self.plan.output, version)?);
        }
        let Some(part) = &self.plan.aggregate else { return Ok(()) };
        let partitions = self.settings.partitions.max(1);
        let spec = part.spec.clone();
        let times = move |keys: &[ArrayRef]| spec.times(keys);
        self.memory = None;
        self.memory = Some(OperatorState::open(self.checkpoint.store(), &shape(part, partitions), version, &times)?);
        let operators =
            (0..partitions).map(|_| Aggregate::new(part.spec.clone()).map(Mutex::new)).collect::<Result<Vec<_>>>()?;
        self.operators = Arc::new(operators);
        Ok(())
    }

    /// `SHOW STATE`: operator, partition, rows, bytes.
    pub(super) fn state_rows(&self) -> Vec<(String, usize, u64, u64)> {
        let (Some(memory), Some(part)) = (&self.memory, &self.plan.aggregate) else { return Vec::new() };
        let one = |(n, table): (usize, &Mutex<crate::state::StateTable>)| {
            let table = super::run::lock(table);
            (part.spec.name.clone(), n, table.len() as u64, table.memory() as u64)
        };
        memory.partitions().iter().enumerate().map(one).collect()
    }
}

fn shape(part: &AggregatePart, partitions: usize) -> Shape {
    let spec = &part.spec;
    let values: Vec<_> = spec.states.iter().flatten().cloned().collect();
    let version = |f: &Arc<datafusion::physical_expr::aggregate::AggregateFunctionExpr>| {
        (
            f.name().to_string(),
            format!(
                "{} of DataFusion {}",
                f.fun().name(),
                datafusion::DATAFUSION_VERSION.split('.').next().unwrap_or_default()
            ),
        )
    };
    let functions: BTreeMap<String, String> = spec.functions.iter().map(version).collect();
    Shape {
        rows: spec.state_schema.clone(),
        keys: spec.key_schema.clone(),
        codec: part.codec.clone(),
        stored: StateSchema::new(&spec.name, &spec.keys.clone().into(), &values.into(), functions),
        partitions,
    }
}
