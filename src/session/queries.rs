//! Queries at work: STOP, PAUSE, RESUME, AWAIT, ALTER, STEP, the clock, and what SIGTERM does.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::Duration;

use arrow::array::{StringArray, UInt64Array};
use arrow::datatypes::SchemaRef;

use super::target::Uses;
use super::work::Running;
use super::{Answer, Session, lock};
use crate::checkpoint::failpoint::Action;
use crate::error::{Code, Error, Result, closest};
use crate::execution::{QueryHandle, QueryState, StopReceipt};
use crate::parser::{
    AwaitUntil, ClockMove, Crash, CrashAction, Interval, Name, OutputMode, Step, StopHow, Trigger, Which,
};

/// The queries of a session, by name.
pub(super) type Queries = Arc<Mutex<BTreeMap<String, QueryEntry>>>;

/// A query that this session started. It keeps its name after its end, until DROP QUERY or a START of that name.
pub(super) struct QueryEntry {
    pub handle: QueryHandle,
    /// The START QUERY text.
    pub sql: String,
    /// Streams, tables and views that it reads.
    pub uses: BTreeSet<String>,
    pub target: Uses,
    /// The sinks that take its bad records and late rows.
    pub dead_letters: BTreeSet<String>,
    /// The target as SHOW QUERIES shows it.
    pub words: String,
    pub mode: OutputMode,
    /// The columns of the result.
    pub schema: SchemaRef,
}

impl Session {
    pub(super) fn stop_query(&self, which: &Which, how: StopHow, timeout: Option<Interval>) -> Result<Answer> {
        let timeout = timeout.map(duration).transpose()?;
        let handles = match which {
            Which::One(name) => vec![self.query(name)?],
            Which::All => self.live_queries(),
        };
        // Before any of them is drained, which can't be undone.
        if how == StopHow::Drain
            && let Some(paused) = handles.iter().find(|handle| handle.status().state == QueryState::Paused)
        {
            return Err(Error::invalid(format!(
                "query {} is paused, so its last batch would never come",
                paused.name()
            ))
            .help(format!("RESUME QUERY {} first", paused.name())));
        }
        let cancel = &self.cancel;
        let stop = |handle: &QueryHandle| handle.stop(how, timeout, &|| cancel.is_cancelled());
        receipts(handles.iter().map(stop).collect::<Result<Vec<_>>>()?)
    }

    pub(super) fn pause_query(&self, name: &Name) -> Result<Answer> {
        self.query(name)?.pause().map(|()| Answer::done("PAUSE QUERY"))
    }

    pub(super) fn resume_query(&self, name: &Name) -> Result<Answer> {
        self.query(name)?.resume().map(|()| Answer::done("RESUME QUERY"))
    }

    pub(super) fn await_query(&self, name: &Name, until: AwaitUntil, timeout: Option<Interval>) -> Result<Answer> {
        let (query, timeout) = (self.query(name)?, timeout.map(duration).transpose()?);
        query.await_until(until, timeout, &|| self.cancel.is_cancelled())?;
        Ok(Answer::done("AWAIT QUERY"))
    }

    pub(super) fn alter_trigger(&self, name: &Name, trigger: Trigger) -> Result<Answer> {
        if let Trigger::Continuous(_) = trigger {
            return Err(Error::not_yet("TRIGGER CONTINUOUS"));
        }
        self.query(name)?.set_trigger(trigger).map(|()| Answer::done("ALTER QUERY"))
    }

    pub(super) fn step_query(&self, name: &Name, step: Step) -> Result<Answer> {
        let ran = self.query(name)?.step(step, &|| self.cancel.is_cancelled())?;
        Ok(Answer::done(format!("STEP {ran}")))
    }

    pub(super) fn crash_query(&self, crash: &Crash) -> Result<Answer> {
        if !self.clock().is_manual() {
            return Err(Error::invalid_at(crash.query.span, "CRASH needs a clock that the script holds")
                .help("SET clock = 'manual' before the first START"));
        }
        let action = match crash.action {
            CrashAction::Kill => Action::Kill,
            CrashAction::Error => Action::Error,
            CrashAction::Torn(bytes) => Action::Torn(bytes),
            CrashAction::Enospc => Action::Enospc,
            CrashAction::LostFsync => Action::LostFsync,
        };
        self.query(&crash.query)?.failpoints().arm(&crash.point, crash.hit, action)?;
        Ok(Answer::done("CRASH QUERY"))
    }

    pub(super) fn explain_query(&self, name: &Name) -> Result<Answer> {
        Ok(Answer::Text(self.query(name)?.explain()))
    }

    /// Why a query gives out nothing, or not yet.
    pub(super) fn explain_why(&self, name: &Name) -> Result<Answer> {
        self.query(name)?.why(&|| self.cancel.is_cancelled()).map(Answer::Text)
    }

    /// Holds a query against the rows that it has read: what was compared, and its rows.
    pub(super) fn verify_query(&self, name: &Name) -> Result<Answer> {
        let query = self.query(name)?;
        self.runs(Running::Verify(query.clone()));
        let verified = query.verify(&|| self.cancel.is_cancelled())?;
        let (what, rows): (Vec<_>, Vec<_>) = verified.compared.into_iter().unzip();
        let verdict = what.iter().map(|_| Some("equal")).collect::<StringArray>();
        let answer = Answer::table(vec![
            ("compared", Arc::new(what.into_iter().map(Some).collect::<StringArray>())),
            ("rows", Arc::new(rows.into_iter().map(Some).collect::<UInt64Array>())),
            ("verdict", Arc::new(verdict)),
        ])?;
        let notices: Vec<String> = std::iter::once(verified.how).chain(verified.not_compared).collect();
        Ok(match answer {
            Answer::Rows { schema, rows, .. } => Answer::Rows { schema, rows, notices },
            other => other,
        })
    }

    /// What bounds the state of a query that was started, and how large it is.
    pub(super) fn explain_state_of(&self, name: &Name) -> Result<Answer> {
        Ok(Answer::Text(self.query(name)?.explain_state()))
    }

    /// Moves the manual clock.
    pub(super) fn advance_clock(&self, to: ClockMove) -> Result<Answer> {
        let clock = self.clock();
        if !clock.is_manual() {
            return Err(Error::invalid("the clock is the system's").help("SET clock = 'manual' before the first START"));
        }
        let now = clock.now();
        let to = match to {
            ClockMove::To(millis) => millis,
            ClockMove::By(by) if by.months != 0 => {
                return Err(Error::invalid("a month has no fixed length").help("ADVANCE CLOCK BY INTERVAL '31 days'"));
            }
            ClockMove::By(by) if by.micros % 1000 != 0 => {
                return Err(Error::invalid("the clock counts whole milliseconds"));
            }
            ClockMove::By(by) => now.saturating_add(by.micros / 1000),
        };
        if !clock.advance_to(to) {
            let message = format!("the clock never goes back: it stands at {}", iso(now));
            return Err(Error::invalid(message));
        }
        Ok(Answer::done("ADVANCE CLOCK"))
    }

    /// Stops every running query: gracefully, or at once when `now` or when cancelled meanwhile. Answers a line for
    /// each, for stderr.
    pub fn stop_all(&self, now: bool) -> Vec<String> {
        self.cancel.clear();
        let stop = |handle: QueryHandle| {
            let how = if now { StopHow::Now } else { StopHow::Graceful };
            let stopped = match handle.stop(how, None, &|| self.cancel.is_cancelled()) {
                Err(Error::Cancelled { .. }) if !now => handle.stop(StopHow::Now, None, &|| false),
                stopped => stopped,
            };
            match stopped {
                Ok(StopReceipt { last_batch: Some(batch), .. }) => {
                    format!("query {} stopped after batch {batch}", handle.name())
                }
                Ok(_) => format!("query {} stopped before its first batch", handle.name()),
                Err(error) => format!("query {} did not stop: {error}", handle.name()),
            }
        };
        self.live_queries().into_iter().map(stop).collect()
    }

    /// The names of the queries that run.
    pub fn running_queries(&self) -> Vec<String> {
        let queries = lock(&self.queries);
        queries.iter().filter(|(_, q)| is_live(&q.handle)).map(|(name, _)| name.clone()).collect()
    }

    /// Whether any query that this session started has ended FAILED (exit code 4).
    pub fn any_query_failed(&self) -> bool {
        let failed = |q: &QueryEntry| q.handle.status().state == QueryState::Failed;
        self.forgotten_failure.load(Ordering::SeqCst) || lock(&self.queries).values().any(failed)
    }

    /// The running queries that read `name` or write the table of that name.
    pub(super) fn running_with(&self, name: &str) -> Vec<String> {
        self.running_that(|q| {
            q.uses.contains(name)
                || q.target == Uses::Table(name.to_string())
                || q.handle.reads().iter().any(|read| read == name)
        })
    }

    /// The running queries that write to a sink.
    pub(super) fn running_into_sink(&self, sink: &str) -> Vec<String> {
        self.running_that(|q| q.target == Uses::Sink(sink.to_string()) || q.dead_letters.contains(sink))
    }

    /// The query, running or ended, that has `table` as its result.
    pub(super) fn writer_of(&self, table: &str) -> Option<String> {
        if !self.catalog.is_result(table) {
            return None;
        }
        let queries = lock(&self.queries);
        let writes = |q: &QueryEntry| q.target == Uses::Table(table.to_string());
        queries.iter().find(|(_, q)| writes(q)).map(|(name, _)| name.clone())
    }

    /// The query of that name, running or ended.
    pub(super) fn query(&self, name: &Name) -> Result<QueryHandle> {
        let handle = lock(&self.queries).get(&name.value).map(|q| q.handle.clone());
        handle.ok_or_else(|| self.unknown_query(name))
    }

    /// Says that there is no such query, with the closest name that there is.
    pub(super) fn unknown_query(&self, name: &Name) -> Error {
        unknown_query(&lock(&self.queries), &name.value).at(Some(name.span))
    }

    fn live_queries(&self) -> Vec<QueryHandle> {
        lock(&self.queries).values().filter(|q| is_live(&q.handle)).map(|q| q.handle.clone()).collect()
    }

    fn running_that(&self, wanted: impl Fn(&QueryEntry) -> bool) -> Vec<String> {
        let queries = lock(&self.queries);
        queries.iter().filter(|(_, q)| is_live(&q.handle) && wanted(q)).map(|(name, _)| name.clone()).collect()
    }
}

/// There is no such query; the closest name that there is.
pub(super) fn unknown_query(queries: &BTreeMap<String, QueryEntry>, name: &str) -> Error {
    let error = Error::invalid(format!("there is no query \"{name}\"")).coded(Code::UnknownQuery);
    match closest(name, queries.keys().map(String::as_str)) {
        Some(name) => error.help(format!("did you mean \"{name}\"?")),
        None => error,
    }
}

/// Whether a query has not ended.
pub(super) fn is_live(handle: &QueryHandle) -> bool {
    matches!(handle.status().state, QueryState::Running | QueryState::Paused)
}

/// Milliseconds as ISO 8601 in UTC.
pub(super) fn iso(millis: i64) -> String {
    match chrono::DateTime::from_timestamp_millis(millis) {
        Some(time) => time.format("%Y-%m-%dT%H:%M:%S%.3fZ").to_string(),
        None => format!("{millis} ms"),
    }
}

/// A time to wait.
///
/// # Errors
/// It is negative, or of months.
fn duration(interval: Interval) -> Result<Duration> {
    match u64::try_from(interval.micros) {
        Ok(micros) if interval.months == 0 => Ok(Duration::from_micros(micros)),
        _ => Err(Error::invalid("a TIMEOUT is not negative and has no months").help("TIMEOUT '10 seconds'")),
    }
}

fn receipts(receipts: Vec<StopReceipt>) -> Result<Answer> {
    let offsets = |r: &StopReceipt| {
        let offsets: serde_json::Map<_, _> = r.offsets.iter().cloned().collect();
        serde_json::Value::Object(offsets).to_string()
    };
    let watermark = |r: &StopReceipt| if r.drained { Some("end".into()) } else { r.watermark.map(iso) };
    Answer::table(vec![
        ("query", Arc::new(receipts.iter().map(|r| Some(r.query.clone())).collect::<StringArray>())),
        ("last_batch", Arc::new(receipts.iter().map(|r| r.last_batch).collect::<UInt64Array>())),
        ("offsets", Arc::new(receipts.iter().map(|r| Some(offsets(r))).collect::<StringArray>())),
        ("watermark", Arc::new(receipts.iter().map(watermark).collect::<StringArray>())),
        ("state_rows", Arc::new(receipts.iter().map(|r| r.state_rows).collect::<UInt64Array>())),
    ])
}
