//! The engine: runs a query in micro-batches, and its handle.

/// What is before a query that ends by itself.
mod ahead;
/// Where bad records and late rows go.
mod dead_letter;
/// Rows that are in one multiset and not in another.
mod difference;
/// One micro-batch: the page that is the engine.
mod micro_batch;
/// What the next batch is.
mod next_batch;
/// Operators, what they remember, and a batch's way through them.
mod operators;
/// What a batch did, as a document.
mod progress;
/// The thread of a query: triggers, orders, the end.
mod query_thread;
/// What was read and told of nowhere yet.
mod reading;
/// Whether a query is still the one that made a checkpoint.
mod restart;
/// `INTO TABLE t`, kept with the state.
mod result_state;
/// What is kept of old batches.
mod retention;
/// What one run owns, and the parts of a batch.
mod run;
/// What was let go of: bad records and late rows.
mod samples;
/// What handles of a query and its thread share.
mod shared;
/// START, and a restart from the logs.
mod start;
/// Versions of static tables.
mod statics;
/// The handle of a query.
mod streaming_query;
/// What the batches of a run have done, added up.
mod tally;
/// When it may begin.
mod trigger;
/// VERIFY QUERY.
mod verify;
/// Those who look on.
mod watchers;
/// The watermark of a query.
mod watermark;
/// What EXPLAIN WHY goes by.
mod why;
/// EXPLAIN WHY as text.
mod why_text;
mod why_words;

pub use ahead::Ahead;
pub use dead_letter::DeadLetters;
pub use samples::{BadSample, KEPT as SAMPLES_KEPT, LateSample};
pub use streaming_query::{QueryHandle, QueryState, QueryStatus, StopReceipt};
pub use verify::Verified;
pub use watchers::{Seen, Watch};

use std::sync::Arc;
use std::time::Duration;

use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlan;

use crate::clock::Clock;
use crate::error::{Result, Span};
pub use crate::incremental::TargetTraits;
use crate::parser::{OutputMode, Trigger};
use crate::sink::{Sink, SinkContext};
use crate::state::Loaded;

/// What every query of a session shares.
#[derive(Clone)]
pub struct Engine {
    pub runtime: tokio::runtime::Handle,
    pub clock: Clock,
    /// Functions, tables and settings of DataFusion that fragments are planned with.
    pub state: SessionState,
    /// Receives one line when something happens to a query that its user should see.
    pub notices: Arc<dyn Fn(&str) + Send + Sync>,
    /// Receives one line when a query has failed.
    pub failures: Arc<dyn Fn(&str) + Send + Sync>,
    /// Whether the statement that starts a query was cancelled while it waits.
    pub given_up: Arc<dyn Fn() -> bool + Send + Sync>,
    /// What the query has loaded of its states.
    pub loaded: Arc<Loaded>,
    /// No batch runs but by [`QueryHandle::step`], whatever the trigger; the trigger still says when a step finds it due, and when
    /// the query ends.
    pub stepped: bool,
}

/// A query to be started.
pub struct QuerySpec {
    pub name: String,
    /// Canonical SQL of the SELECT, as compared at a restart.
    pub sql: String,
    /// From [`crate::planner::plan_query`].
    pub plan: LogicalPlan,
    pub mode: OutputMode,
    pub trigger: Trigger,
    /// `STOP AFTER n BATCHES`
    pub stop_after: Option<u64>,
    /// `None`: a temporary one, removed at the end.
    pub checkpoint: Option<String>,
    /// Where the statement names it.
    pub checkpoint_place: Option<Span>,
    pub settings: QuerySettings,
    /// What the target can take: a target that cannot take deletes refuses a query that retracts; one that wants
    /// every change of its table as signed rows (`TABLE t`) makes the query retract.
    pub target: TargetTraits,
    /// Makes the sink once the schema and ids are known.
    /// `INTO TABLE t`: the table whose rows are kept with the query's state; its sink is what `open_sink` makes.
    pub result_table: Option<Arc<crate::sink::table::ResultTable>>,
    pub open_sink: OpenSink,
    /// Where bad records and late rows go.
    pub dead_letters: DeadLetters,
}

/// Makes a sink once what it is opened for is known.
pub type OpenSink = Box<dyn FnOnce(SinkContext) -> Result<Box<dyn Sink>> + Send>;

/// `START QUERY … WITH (…)` and the session's settings that a query takes.
#[derive(Debug, Clone)]
pub struct QuerySettings {
    pub min_batches_to_retain: u64,
    pub recent_progress: usize,
    /// A batch reads about this many bytes at the most where its sources set no limit.
    pub max_batch_bytes: u64,
    /// Partitions of fragments and of state.
    pub partitions: usize,
    pub no_data_batches: bool,
    /// `static_replay = 'latest'`: a replayed batch takes a changed static side as it is.
    pub static_replay_latest: bool,
    /// `multiple_watermark_policy = 'max'`.
    pub watermark_policy_max: bool,
    /// A checkpoint in an object store may be taken over when its holder has given no sign of life for so long.
    pub lease_timeout: Duration,
}

impl Default for QuerySettings {
    fn default() -> Self {
        QuerySettings {
            min_batches_to_retain: 100,
            recent_progress: 100,
            max_batch_bytes: 256 << 20,
            partitions: std::thread::available_parallelism().map_or(2, usize::from),
            no_data_batches: true,
            static_replay_latest: false,
            watermark_policy_max: false,
            lease_timeout: Duration::from_secs(15),
        }
    }
}

/// Starts a query on a thread of its own. Answers once the first fragment is planned and the checkpoint is open.
///
/// # Errors
/// A refusal of the mode table, a checkpoint that is damaged, in use, or of another query, a sink that can't be opened.
pub fn start(engine: &Engine, spec: QuerySpec) -> Result<QueryHandle> {
    start::start(engine, spec)
}
