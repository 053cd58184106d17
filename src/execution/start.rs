//! START: a query is cut, its checkpoint opened, what it remembers loaded, its thread begun; and a restart goes on where
//! the logs say.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use super::dead_letter::DeadLetterSinks;
use super::operators::Operators;
use super::query_thread::QueryThread;
use super::restart::{POLICY, Restart};
use super::result_state::ResultState;
use super::run::Run;
use super::shared::{Explained, Shared};
use super::statics::StaticVersions;
use super::streaming_query::QueryHandle;
use super::tally::Tally;
use super::watchers::{WatchedSink, Watchers};
use super::watermark::Watermarks;
use super::{Engine, QuerySpec};
use crate::checkpoint::{Checkpoint, Failpoints, LeaseTerms};
use crate::error::{Error, Result};
use crate::incremental::{IncrementalPlan, OperatorNode};
use crate::parser::Trigger;
use crate::planner::leaf::SharedSource;
use crate::sink::SinkContext;
use crate::source::Offset;
use crate::state::Shape;
use crate::state::schema::StateSchema;

/// The stack of a query's thread, which walks plans too. Only what is used of it is memory.
const STACK: usize = 16 << 20;

/// See [`super::start`].
///
/// What can refuse the query comes before what leaves something behind: standard input is opened, and the schemas of new
/// states are written, when nothing else can fail.
pub(super) fn start(engine: &Engine, spec: QuerySpec) -> Result<QueryHandle> {
    let partitions = spec.settings.partitions.max(1);
    let cut = crate::incremental::plan(&engine.state, spec.plan.clone(), spec.mode, &spec.target, partitions);
    let plan = engine.runtime.block_on(cut)?;
    // Object stores answer on the runtime.
    let _entered = engine.runtime.enter();
    let failpoints = Failpoints::default();
    // A test that steps its queries kills them, and never the machine.
    let durable = !engine.stepped;
    let terms = lease_terms(engine, &spec);
    let place = spec.checkpoint_place;
    let checkpoint = match &spec.checkpoint {
        Some(location) => Checkpoint::open(location, &spec.sql, failpoints.clone(), &terms, durable)
            .map_err(|e| e.at(place).pointing_at(place))?,
        None => Checkpoint::temporary(&spec.sql, failpoints.clone())?,
    };
    let restart = Restart::read(&checkpoint).map_err(|e| e.pointing_at(place))?;
    let result = spec.result_table.as_ref().map(|_| result_shape(&plan)).transpose()?;
    let states = plan.states().into_iter().map(|state| state.stored);
    let states: Vec<StateSchema> = states.chain(result.iter().map(|shape| shape.stored.clone())).collect();
    restart.check(&checkpoint, &plan, &states).map_err(|e| e.pointing_at(place))?;
    let mut sources = vec![None; plan.inputs.len()];
    open_sources(&plan, &checkpoint, true, &mut sources)?;
    restart.check_held(&plan, &sources)?;
    let context = sink_context(&spec, &plan, &checkpoint, failpoints.clone(), durable)?;
    let table = spec.result_table.as_ref().map(|table| table.name());
    let explain = Explained {
        plan: crate::incremental::explain(&plan, &spec.target.name),
        states: crate::incremental::explain_state(&plan, table),
    };
    let reads = reads(&plan);
    let watchers = Arc::new(Watchers::default());
    let sink = WatchedSink { inner: (spec.open_sink)(context.clone())?, watchers: watchers.clone() };
    let dead_letters = DeadLetterSinks::open(spec.dead_letters, &context)?;
    dead_letters.arm(&plan);
    let abandon = Arc::new(AtomicBool::new(false));
    let mut run = Run {
        name: spec.name.clone(),
        engine: engine.clone(),
        logical: spec.plan,
        target: spec.target,
        ends: vec![None; plan.inputs.len()],
        sources: Vec::new(),
        statics: StaticVersions::default(),
        operators: Vec::new(),
        result: None,
        sink: Arc::new(Mutex::new(Box::new(sink))),
        dead_letters,
        watermarks: Watermarks::new(&plan.watermarks, spec.settings.watermark_policy_max, engine.clock.now()),
        settings: spec.settings,
        used_watermark: None,
        next_id: 0,
        late: 0,
        replay: None,
        failpoints,
        place: None,
        abandon: abandon.clone(),
        plan,
        checkpoint,
    };
    run.resume(restart);
    run.checkpoint.claim()?;
    run.reload()?;
    if let (Some(table), Some(shape)) = (spec.result_table, result) {
        let (store, version) = (run.checkpoint.store(), run.next_id.checked_sub(1));
        run.result = Some(ResultState::open(store, table, shape, &run.plan.output, version, &engine.loaded)?);
    }
    open_sources(&run.plan, &run.checkpoint, false, &mut sources)?;
    run.sources = sources.into_iter().flatten().collect();
    run.keep_schemas()?;
    run.tell_of_state();
    let shared = Shared::new(context, reads, explain, spec.trigger, abandon, watchers, engine.stepped);
    let shared = Arc::new(shared);
    shared.update(|inner| {
        inner.ends_with_input = run.inputs_end();
        inner.watermark = run.watermarks.query();
        // Before its first batch a query remembers nothing, and nothing is said of it.
        if run.next_id > 0 {
            inner.state_rows = run.operators.iter().flat_map(Operators::state_rows).collect();
        }
    });
    shared.reading.begin(&run.plan);
    let handle = QueryHandle::new(shared.clone());
    let resumed = run.next_id.checked_sub(1);
    let (stop_after, tally) = (spec.stop_after, Tally::default());
    let thread =
        QueryThread { run, shared, stop_after, began: None, work_ahead: false, resumed, tally, drained: false };
    spawn(thread, &spec.name)?;
    // What is available now is what is there when START answers.
    if spec.trigger == Trigger::AvailableNow {
        handle.wait_until_frozen(&*engine.given_up);
    }
    Ok(handle)
}

/// What sinks know of a query.
fn sink_context(
    spec: &QuerySpec,
    plan: &IncrementalPlan,
    checkpoint: &Checkpoint,
    failpoints: Failpoints,
    durable: bool,
) -> Result<SinkContext> {
    Ok(SinkContext {
        query: spec.name.clone(),
        query_id: checkpoint.id().to_string(),
        run_id: checkpoint.run_id().to_string(),
        mode: spec.mode,
        schema: plan.output.clone(),
        retracts: plan.retracts,
        keys: crate::incremental::upsert_key(&spec.plan),
        only_adds: plan.operators.iter().all(|node| node.spec.only_adds()),
        delay: plan.watermarks.iter().map(|watermark| watermark.spec.delay / 1_000).max(),
        partitions: plan.last.partitions(true).max(1),
        committed: checkpoint.latest_commit()?,
        failpoints,
        durable,
    })
}

fn spawn(thread: QueryThread, query: &str) -> Result<()> {
    let builder = std::thread::Builder::new().name(format!("levada-{query}")).stack_size(STACK);
    let spawned = builder.spawn(move || thread.main());
    spawned.map(drop).map_err(|e| Error::io(format!("starting a thread for query {query}"), &e))
}

/// How a lease in an object store is waited for and held.
fn lease_terms(engine: &Engine, spec: &QuerySpec) -> LeaseTerms {
    let (notices, name) = (engine.notices.clone(), spec.name.clone());
    LeaseTerms {
        timeout: spec.settings.lease_timeout,
        notices: Arc::new(move |line| notices(&format!("query {name}: {line}"))),
        given_up: engine.given_up.clone(),
    }
}

/// Opens the sources that can be read again, or those that can't.
fn open_sources(
    plan: &IncrementalPlan,
    checkpoint: &Checkpoint,
    replayable: bool,
    sources: &mut [Option<SharedSource>],
) -> Result<()> {
    for (input, source) in plan.inputs.iter().zip(sources) {
        if input.stream.replayable() == replayable {
            *source = Some(Arc::new(Mutex::new(input.stream.open(checkpoint.source_log(&input.name))?)));
        }
    }
    Ok(())
}

/// What a result table's state is made of. In UPDATE rows are taken back as the query's text makes them, so another text
/// would not find them.
fn result_shape(plan: &IncrementalPlan) -> Result<Shape> {
    let text = plan.retracts.then(|| plan.text.clone());
    ResultState::shape(&plan.output, text)
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
    fn resume(&mut self, restart: Restart) {
        // The policy that the checkpoint was made with wins over the session's (rule W7).
        if let Some(policy) = restart.last.as_ref().and_then(|(_, entry)| entry.conf.get(POLICY)) {
            let max = policy == "max";
            self.settings.watermark_policy_max = max;
            self.watermarks = Watermarks::new(&self.plan.watermarks, max, self.engine.clock.now());
        }
        self.replay = restart.replay();
        let Some((done, entry, commit)) = restart.done else { return };
        self.next_id = done + 1;
        self.late = commit.late;
        self.used_watermark = entry.watermark;
        self.statics.restore(&entry.statics);
        // A batch that is run again has the clock that it had.
        let now = self.replay.as_ref().map_or_else(|| self.engine.clock.now(), |(_, entry)| entry.timestamp);
        self.watermarks.restore(&commit, now);
        for (input, end) in self.plan.inputs.iter().zip(&mut self.ends) {
            *end = entry.sources.get(&input.name).and_then(|logged| logged.end.clone()).map(Offset);
        }
    }

    /// Writes the schemas of states that are new.
    fn keep_schemas(&mut self) -> Result<()> {
        self.operators.iter_mut().try_for_each(Operators::keep_schemas)?;
        self.result.iter_mut().try_for_each(ResultState::keep_schema)
    }

    /// Loads the operators' states as they were after the last committed batch, and makes operators that know nothing of a
    /// batch.
    pub(super) fn reload(&mut self) -> Result<()> {
        let version = self.next_id.checked_sub(1);
        let _ = self.with_sink(|sink| sink.abort());
        let _ = self.dead_letters.abort();
        self.expect_load(version);
        let loaded = &self.engine.loaded;
        if let Some(result) = self.result.take() {
            self.result = Some(result.reopen(self.checkpoint.store(), &self.plan.output, version, loaded)?);
        }
        // The old ones' threads end before the files are read.
        self.operators.clear();
        let (store, partitions) = (self.checkpoint.store(), self.settings.partitions.max(1));
        let open = |node: &OperatorNode| Operators::open(&store, node, partitions, version, loaded);
        self.operators = self.plan.operators.iter().map(open).collect::<Result<_>>()?;
        Ok(())
    }

    /// Says how much will be loaded, for who waits for it.
    fn expect_load(&self, version: Option<u64>) {
        let Some(version) = version else { return };
        let store = self.checkpoint.store();
        let names = self.plan.states().into_iter().map(|state| state.stored.operator);
        for folder in names.chain(["result".to_string()]).map(|name| format!("state/{name}")) {
            if store.length(&format!("{folder}/schema")).is_some() {
                // What is wrong with the files is told when they are read.
                let length = crate::state::versions::length(store.as_ref(), &folder, version);
                self.engine.loaded.expect(length.unwrap_or(0));
            }
        }
    }
}
