//! EXPLAIN WHY: why a query gives out nothing, or not yet. Here is what is known of a query; [`super::why_text`] says what
//! follows from it.
//!
//! The facts are put together behind each batch, so that there is an answer while the next one runs; a thread that waits for
//! orders looks at its sources too.

use super::operators::Operators;
use super::query_thread::QueryThread;
use super::run::Run;
use super::tally::Tally;
use super::trigger::next_at;
use super::watermark::Standing;
use crate::error::Error;
use crate::incremental::{Fragment, OperatorNode};
use crate::parser::{OutputMode, Trigger};

/// What is known of a query between two batches.
#[derive(Debug, Clone)]
pub(super) struct Facts {
    pub query: String,
    pub mode: OutputMode,
    /// The query's clock.
    pub clock: i64,
    pub manual_clock: bool,
    pub trigger: Trigger,
    /// When the next batch may begin, by the trigger.
    pub next_at: Option<i64>,
    /// It runs only when it is stepped.
    pub rests: bool,
    pub no_data_batches: bool,
    /// The batch that its checkpoint was at when this run began.
    pub resumed: Option<u64>,
    /// Batches of this run.
    pub batches: u64,
    pub last_batch: Option<u64>,
    /// The streams it reads.
    pub inputs: Vec<String>,
    pub watermark: Option<i64>,
    /// The largest of the inputs' watermarks counts, not the smallest.
    pub largest: bool,
    pub marks: Vec<Mark>,
    pub operators: Vec<OperatorFacts>,
    /// The operators in front of the sink.
    pub last_from: Vec<usize>,
    pub tally: Tally,
}

/// A watermark of one input.
#[derive(Debug, Clone)]
pub(super) struct Mark {
    pub input: String,
    pub column: String,
    /// Microseconds.
    pub skew: Option<i64>,
    pub standing: Standing,
}

/// What is known of an operator.
#[derive(Debug, Clone)]
pub(super) struct OperatorFacts {
    pub name: String,
    pub is_join: bool,
    /// It gives out rows of its input, and remembers some that it gave out.
    pub of_rows: bool,
    /// It gives rows out when the watermark says that they are final.
    pub waits: bool,
    /// How many rows of its partition must follow a row before it is final.
    pub rows_to_follow: u64,
    /// Rows that it remembers.
    pub rows: u64,
    /// When the next of them is final, in microseconds.
    pub next_due: Option<i64>,
    /// That is the end of a window.
    pub windows: bool,
    /// What its watermark is behind the query's, in milliseconds.
    pub lag: i64,
    /// Why it will give out nothing any more.
    pub spent: Option<String>,
    /// The operators that each of its inputs reads.
    pub from: Vec<Vec<usize>>,
    /// The same by name, with the streams.
    pub reads: Vec<Vec<String>>,
}

/// How a query ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    Stopped,
    /// `STOP AFTER n BATCHES`
    StopAfter(u64),
    /// Its trigger ends.
    Trigger,
    /// All its inputs have ended.
    Inputs,
    /// `STOP … DRAIN`
    Drained,
}

/// What a query does now.
#[derive(Debug, Clone)]
pub(super) enum Now {
    Failed(Error),
    Ended(Ending),
    Paused,
    /// It runs a batch, or asks its sources: as its status says it.
    Busy(String),
    /// It waits; what there is to do, where that is known.
    Waits(Option<Work>),
}

/// What there is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Work {
    /// A batch that was begun by a run before.
    pub replay: bool,
    /// Rows that no batch has read.
    pub data: bool,
    /// A batch without data.
    pub due: bool,
}

impl Facts {
    /// As it stands at the end of a batch.
    pub fn of(thread: &QueryThread) -> Self {
        let (run, shared) = (&thread.run, &thread.shared);
        let inner = shared.lock();
        let (trigger, batches, rests) = (inner.trigger, inner.batches, shared.rests(&inner));
        drop(inner);
        let clock = run.engine.clock.now();
        let marks = run.plan.watermarks.iter().zip(run.watermarks.standings(clock)).map(|(input, standing)| Mark {
            input: input.name.clone(),
            column: input.column.clone(),
            skew: input.spec.max_future_skew,
            standing,
        });
        Facts {
            query: run.name.clone(),
            mode: run.plan.mode,
            clock,
            manual_clock: run.engine.clock.is_manual(),
            trigger,
            next_at: next_at(trigger, thread.began),
            rests,
            no_data_batches: run.settings.no_data_batches,
            resumed: thread.resumed,
            batches,
            last_batch: run.next_id.checked_sub(1),
            inputs: run.plan.inputs.iter().map(|input| input.name.clone()).collect(),
            watermark: run.watermarks.query(),
            largest: run.watermarks.takes_largest(),
            marks: marks.collect(),
            operators: run.plan.operators.iter().zip(&run.operators).map(OperatorFacts::of).collect(),
            last_from: run.plan.last_from.clone(),
            tally: thread.tally.clone(),
        }
    }
}

impl OperatorFacts {
    fn of((node, operators): (&OperatorNode, &Operators)) -> Self {
        let specs = operators.specs();
        let forgets_by = specs.iter().find_map(|spec| Some(spec.rows.field(spec.forget?.column).name().as_str()));
        OperatorFacts {
            name: specs.first().map(|spec| spec.name().to_string()).unwrap_or_default(),
            is_join: specs.first().is_some_and(|spec| spec.kind == "symmetricHashJoin"),
            of_rows: specs.first().is_some_and(|spec| spec.kind == "over"),
            waits: node.spec.waits(),
            rows_to_follow: node.spec.rows_to_follow(),
            rows: operators.rows(),
            next_due: operators.next_due(),
            windows: forgets_by.is_some_and(|name| name.contains("window") || name.contains("cumulate(")),
            lag: node.lag,
            // A sentence for a person: that it can't be made fails nothing.
            spent: operators.spent().ok().flatten(),
            from: node.from.clone(),
            reads: node.inputs.iter().map(Fragment::reads).collect(),
        }
    }
}

impl Run {
    /// What there is to do. Begins nothing; `None`: a source does not answer.
    pub(super) fn work(&mut self) -> Option<Work> {
        let replay = self.replay.is_some();
        if replay {
            return Some(Work { replay, ..Work::default() });
        }
        let (data, due) = self.look().ok()?;
        Some(Work { replay, data, due })
    }
}
