//! DataFusion underneath: its context, the runtime it runs on, and plans run to their rows.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;

use arrow::array::RecordBatch;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::{SendableRecordBatchStream, SessionState, SessionStateBuilder};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::execute_stream;
use datafusion::physical_plan::stream::RecordBatchReceiverStream;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion::sql::parser::Statement as DfStatement;
use futures::{StreamExt, TryStreamExt};

use super::queries::Queries;
use super::work::Running;
use super::{Answer, CancelToken, Session, lock};
use crate::catalog::types::SqlTypes;
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::execution::{Engine, QuerySettings};
use crate::parser::{QueryText, ast};
use crate::planner;

const RELATION: &str = "stream, table or view";
pub(super) const UNKNOWN_RELATION: &str = "there is no stream, table or view \"";

/// DataFusion's context, with our types and functions.
pub(super) fn open(settings: &QuerySettings, queries: &Queries) -> Result<SessionContext> {
    let mut config = SessionConfig::new().with_information_schema(true).with_target_partitions(settings.partitions);
    config.options_mut().sql_parser.collect_spans = true;
    // As in Spark, psql and DuckDB: 0.1 is exactly that, and digits are not lost on the way into a DECIMAL.
    config.options_mut().sql_parser.parse_float_as_decimal = true;
    // A static table is what its folder holds now: a cached list would hide new files.
    let runtime = RuntimeEnvBuilder::new().with_object_list_cache_limit(0).build_arc()?;
    let state = SessionStateBuilder::new()
        .with_config(config)
        .with_runtime_env(runtime)
        .with_default_features()
        .with_type_planner(Arc::new(SqlTypes))
        .build();
    let context = SessionContext::new_with_state(state);
    super::samples::register(&context, queries);
    planner::register(&context);
    Ok(context)
}

impl Session {
    /// The session's clock.
    pub(super) fn clock(&self) -> Clock {
        self.clock.read().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }

    /// DataFusion's state for one statement, with `now()` as the session's clock has it.
    pub(super) fn state(&self) -> SessionState {
        let mut state = self.context.state();
        let clock = self.clock();
        if clock.is_manual() {
            let now = chrono::DateTime::from_timestamp_millis(clock.now());
            state.execution_props_mut().query_execution_start_time = now;
        }
        state
    }

    /// What a query is started with.
    pub(super) fn engine(&self) -> Result<Engine> {
        let mut state = self.context.state();
        // A dynamic filter outlives the batch that made it, and would prune the next one.
        state.config_mut().options_mut().optimizer.enable_dynamic_filter_pushdown = false;
        let (runtime, clock) = (self.runtime()?, self.clock());
        let stepped = self.test.as_ref().is_some_and(|test| test.clock.is_some());
        let (notices, failures, cancel) = (self.notices.clone(), self.failures.clone(), self.cancel.clone());
        Ok(Engine {
            runtime,
            clock,
            state,
            notices,
            failures,
            given_up: Arc::new(move || cancel.is_cancelled()),
            loaded: Arc::default(),
            stepped,
        })
    }

    /// Threads for plans and queries; made at the first call.
    pub(super) fn runtime(&self) -> Result<tokio::runtime::Handle> {
        let mut runtime = lock(&self.runtime);
        if runtime.is_none() {
            let made = tokio::runtime::Builder::new_multi_thread().enable_all().thread_name("levada").build();
            *runtime = Some(Arc::new(made.map_err(|e| Error::io("starting threads", &e))?));
        }
        match runtime.as_ref() {
            Some(runtime) => Ok(runtime.handle().clone()),
            None => Err(Error::internal("no runtime")),
        }
    }

    /// Runs something to its end, or until the statement is cancelled.
    pub(super) fn block_on<T>(&self, future: impl Future<Output = Result<T>>) -> Result<T> {
        let cancel = self.cancel.clone();
        self.runtime()?.block_on(async move {
            tokio::select! {
                done = future => done,
                () = cancel.cancelled() => Err(cancelled()),
            }
        })
    }

    /// Plans a query, with the closest known name where one is not there.
    pub(super) fn plan(&self, state: &SessionState, query: &QueryText) -> Result<LogicalPlan> {
        let planned = self.block_on(planner::plan_query(state, query)).map_err(|e| self.with_closest_name(e));
        planned.map_err(|e| planner::hints::better(e, state, &query.ast))
    }

    /// Adds the closest known name to an error about a relation that is not there.
    pub(super) fn with_closest_name(&self, error: Error) -> Error {
        let text = error.to_string();
        let name = text.strip_prefix(UNKNOWN_RELATION).and_then(|rest| rest.strip_suffix('"'));
        let known = name.map(|name| self.catalog.unknown(RELATION, name));
        match known.as_ref().and_then(Error::help_text) {
            Some(help) if error.help_text().is_none() => error.help(help),
            _ => error,
        }
    }

    /// Plans a query for one bounded run over what the streams in it hold now.
    pub(super) fn plan_bounded(&self, state: &SessionState, query: &QueryText) -> Result<LogicalPlan> {
        bounded(self.plan(state, query)?)
    }

    /// Starts a plan; its rows come as they are pulled.
    pub(super) fn run(&self, state: &SessionState, plan: &LogicalPlan) -> Result<SendableRecordBatchStream> {
        self.block_on(async {
            let physical = state.create_physical_plan(plan).await?;
            self.runs(Running::Plan(physical.clone()));
            execute_stream(physical, state.task_ctx()).map_err(Error::from)
        })
    }

    /// Runs a plan to all its rows.
    pub(super) fn collect(&self, state: &SessionState, plan: &LogicalPlan) -> Result<Vec<RecordBatch>> {
        let rows = self.run(state, plan)?;
        self.block_on(async { rows.try_collect().await.map_err(Error::from) })
    }

    /// The rows of a plan as an answer.
    pub(super) fn rows(&self, state: &SessionState, plan: &LogicalPlan) -> Result<Answer> {
        let (stream, runtime) = (self.run(state, plan)?, self.runtime()?);
        let schema = stream.schema();
        let stream = ahead(stream, &runtime);
        let rows = Pulled { runtime, stream, cancel: self.cancel.clone(), ended: false };
        Ok(Answer::Rows { schema, rows: Box::new(rows), notices: Vec::new() })
    }

    /// The names of streams, tables and views that a query reads, those inside views included.
    pub(super) fn reads(&self, state: &SessionState, query: &ast::Query) -> Result<BTreeSet<String>> {
        let statement = DfStatement::Statement(Box::new(ast::Statement::Query(Box::new(query.clone()))));
        let references = state.resolve_table_references(&statement)?;
        let names = references.iter().map(|r| r.table().to_string()).collect();
        Ok(self.catalog.with_views_expanded(names))
    }
}

/// A plan for one run: streams in it end at what they hold now, and windows are spread out, over tables too.
pub(super) fn bounded(plan: LogicalPlan) -> Result<LogicalPlan> {
    planner::bounded(plan)
}

/// What a cancelled statement answers.
pub(super) fn cancelled() -> Error {
    Error::Cancelled { message: "cancelled".into() }
}

/// The same rows, made while those before are printed.
fn ahead(mut rows: SendableRecordBatchStream, runtime: &tokio::runtime::Handle) -> SendableRecordBatchStream {
    let _entered = runtime.enter();
    let mut builder = RecordBatchReceiverStream::builder(rows.schema(), 2);
    let to = builder.tx();
    builder.spawn(async move {
        while let Some(batch) = rows.next().await {
            let failed = batch.is_err();
            if to.send(batch).await.is_err() || failed {
                break;
            }
        }
        Ok(())
    });
    builder.build()
}

/// Rows pulled from a running plan, a batch at a time, by whoever prints them.
struct Pulled {
    runtime: tokio::runtime::Handle,
    stream: SendableRecordBatchStream,
    cancel: CancelToken,
    ended: bool,
}

impl Iterator for Pulled {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.runtime.block_on(async {
            tokio::select! {
                next = self.stream.next() => next.map(|batch| batch.map_err(Error::from)),
                () = self.cancel.cancelled() => Some(Err(cancelled())),
            }
        });
        self.ended = !matches!(next, Some(Ok(_)));
        next
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // Waiting for blocking tasks (a read of standard input) would hang the end of the process.
        if let Some(runtime) = lock(&self.runtime).take().and_then(Arc::into_inner) {
            runtime.shutdown_background();
        }
    }
}
