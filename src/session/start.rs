//! START QUERY: everything is checked before anything is made.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use datafusion::logical_expr::LogicalPlan;

use super::queries::{QueryEntry, is_live};
use super::select::default_mode;
use super::settings::QUERY_OPTIONS;
use super::target::{Destination, OpenSink, Uses};
use super::work::Running;
use super::{Answer, Session, lock, settings};
use crate::catalog::refuse_feedback;
use crate::error::{Code, Error, Result, Span};
use crate::execution::{self, DeadLetters, QuerySettings, QuerySpec, QueryState, TargetTraits};
use crate::incremental;
use crate::options::Options;
use crate::parser::{OutputMode, ParsedStatement, QueryText, StartQuery, Target, Trigger};
use crate::planner;

impl Session {
    pub(super) fn start_query(&self, start: &StartQuery, statement: &ParsedStatement) -> Result<Answer> {
        let (tag, name) = ("START QUERY", &start.name);
        if self.live(&name.value) {
            return match start.if_not_exists {
                true => Ok(Answer::noticed(tag, format!("query {} runs already: nothing was changed", name.value))),
                false => Err(Error::invalid_at(name.span, format!("query {} runs already", name.value))
                    .coded(Code::NameTaken)
                    .help(format!("STOP QUERY {} first, or choose another name", name.value))),
            };
        }
        if let Some(Trigger::Continuous(_)) = start.trigger {
            return Err(
                Error::not_yet("TRIGGER CONTINUOUS").help("TRIGGER EVERY '…', or none: as soon as there is data")
            );
        }
        let settings = self.query_settings(&start.options)?;
        let plan = self.streaming_plan(&start.query)?;
        let destination = self.destination(start.target.as_ref(), &plan)?;
        let uses = self.uses(&start.query, &destination)?;
        let target_place = match &start.target {
            Some(Target::Sink(name)) => Some(name.span),
            _ => None,
        };
        if let Uses::Sink(sink) = &destination.uses {
            self.refuse_feedback(&plan, sink).map_err(|e| e.at(target_place))?;
        }
        let mut notices = notices(start, &destination);
        let dead_letters = self.dead_letters(start, &plan, &destination, &mut notices)?;
        let into: BTreeSet<String> = dead_letters.sinks.keys().cloned().collect();
        into.iter().try_for_each(|sink| self.refuse_feedback(&plan, sink)).map_err(|e| e.at(Some(start.query.span)))?;
        notices.extend(volatile(&plan));
        let words = destination.words.clone();
        let target = destination.uses.clone();
        let schema = Arc::clone(plan.schema().inner());
        let mode = start.mode.map_or_else(|| default_mode(&plan), |(mode, _)| mode);
        let spec = QuerySpec {
            name: name.value.clone(),
            sql: canonical(&start.query),
            plan,
            mode,
            trigger: start.trigger.unwrap_or(Trigger::Asap),
            stop_after: start.stop_after,
            checkpoint: start.checkpoint.clone(),
            checkpoint_place: start.checkpoint_place,
            settings,
            // What a test compares has one order.
            target: TargetTraits { ordered: destination.traits.ordered || self.test.is_some(), ..destination.traits },
            result_table: destination.table,
            open_sink: pointing_at(target_place, self.recorded(destination.open)),
            dead_letters,
        };
        let place = start.mode.map(|(_, span)| span).or(Some(start.query.span));
        let result_table = spec.result_table.clone();
        let begun = self.begin(spec).map_err(|e| planner::hints::better(e, &self.state(), &start.query.ast));
        let handle = begun.map_err(|e| e.at(place))?;
        let sql = super::ddl::canonical(statement);
        let entry = QueryEntry {
            handle,
            sql: sql.clone(),
            uses,
            target: target.clone(),
            dead_letters: into,
            words,
            mode,
            schema,
        };
        self.remember(entry, &name.value);
        if let (Uses::Table(table), Some(rows)) = (target, result_table) {
            self.catalog.add_result_table(&table, sql, rows)?;
        }
        Ok(Answer::Done { tag: tag.into(), notices })
    }

    /// Refuses a file sink whose files the query itself would read.
    fn refuse_feedback(&self, plan: &LogicalPlan, sink: &str) -> Result<()> {
        let Some(sink) = self.catalog.sink(sink) else { return Ok(()) };
        planner::streams_of(plan)?.iter().try_for_each(|stream| refuse_feedback(stream, &sink))
    }

    /// Starts a query; from now on the clock is fixed.
    pub(super) fn begin(&self, spec: QuerySpec) -> Result<execution::QueryHandle> {
        let engine = self.engine()?;
        self.runs(Running::Start(engine.loaded.clone()));
        let handle = execution::start(&engine, spec)?;
        self.started.store(true, Ordering::SeqCst);
        Ok(handle)
    }

    /// In a test, and while one is written, what the sink is handed is recorded.
    fn recorded(&self, open: OpenSink) -> OpenSink {
        match super::lock(&self.recorder).clone() {
            None => open,
            Some(recorder) => Box::new(move |context| Ok(recorder.before(&context, open(context.clone())?))),
        }
    }

    /// The plan of a query that is to run on.
    ///
    /// # Errors
    /// It reads no stream, so it would end at once.
    pub(super) fn streaming_plan(&self, query: &QueryText) -> Result<LogicalPlan> {
        let plan = self.plan(&self.state(), query)?;
        if planner::reads_stream(&plan) {
            return match super::samples::reads_sample(&plan)? {
                None => Ok(plan),
                Some(function) => {
                    let message =
                        format!("{function}(…) is what this process knows now: a query that goes on can't read it");
                    Err(Error::invalid_at(query.span, message).help("read it in a SELECT by itself"))
                }
            };
        }
        let error = Error::invalid_at(query.span, "the query reads no stream");
        Err(error.help("run the SELECT by itself: its answer will not change"))
    }

    /// The session's settings, overridden by a WITH list.
    pub(super) fn query_settings(&self, options: &Options) -> Result<QuerySettings> {
        options.check("START QUERY", QUERY_OPTIONS)?;
        let mut settings = lock(&self.settings).clone();
        for entry in &options.entries {
            settings::apply(&mut settings, options, entry)?;
        }
        Ok(settings)
    }

    /// The names that the query needs: streams, tables, views.
    fn uses(&self, query: &QueryText, destination: &Destination) -> Result<BTreeSet<String>> {
        let uses = self.reads(&self.state(), &query.ast)?;
        match &destination.uses {
            Uses::Table(table) if uses.contains(table) => {
                Err(Error::invalid_at(query.span, format!("the query reads table {table}, its own result")))
            }
            _ => Ok(uses),
        }
    }

    /// The sinks that take bad records and late rows: those that the query and its streams name.
    ///
    /// # Errors
    /// There is no such sink, or it is the query's target.
    fn dead_letters(
        &self,
        start: &StartQuery,
        plan: &LogicalPlan,
        destination: &Destination,
        notices: &mut Vec<String>,
    ) -> Result<DeadLetters> {
        let mut letters = DeadLetters::default();
        let of_query = start.options.get("dead_letter").zip(start.options.text("dead_letter"));
        let mut named: Vec<(String, String, Option<Span>)> = Vec::new();
        if let Some((entry, name)) = of_query {
            letters.of_query = Some(name.to_string());
            named.push((name.to_string(), "option dead_letter".into(), Some(entry.span)));
        }
        for stream in planner::streams_of(plan)? {
            if let Some(name) = stream.options.text("dead_letter") {
                named.push((
                    name.to_string(),
                    format!("dead_letter of stream {}", stream.name),
                    Some(start.query.span),
                ));
            }
        }
        for (name, whose, place) in named {
            if destination.uses == Uses::Sink(name.clone()) {
                let message = format!("{whose} is {name}, and the query's results go there");
                return Err(Error::invalid(message).at(place).help("CREATE SINK another one"));
            }
            let Some(sink) = self.catalog.sink(&name) else {
                let unknown = self.catalog.unknown("sink", &name);
                let error = Error::invalid(format!("{whose}: {unknown}")).coded(Code::UnknownTable).at(place);
                return Err(match unknown.help_text() {
                    Some(help) => error.help(help),
                    None => error.help(format!("CREATE SINK {name} WITH (…) first")),
                });
            };
            if sink.connector.survives() {
                notices.extend(without_checkpoint(start, &format!("sink {name} ({})", sink.connector.name())));
            }
            let shown = self.shown.clone();
            letters.sinks.insert(name, Box::new(move |context| sink.open(context, &shown)));
        }
        Ok(letters)
    }

    fn live(&self, name: &str) -> bool {
        lock(&self.queries).get(name).is_some_and(|q| is_live(&q.handle))
    }

    /// Keeps a started query under its name, in place of one that has ended.
    fn remember(&self, entry: QueryEntry, name: &str) {
        let old = lock(&self.queries).insert(name.to_string(), entry);
        if old.is_some_and(|q| q.handle.status().state == QueryState::Failed) {
            self.forgotten_failure.store(true, Ordering::SeqCst);
        }
    }
}

/// What the world says against a sink stands where it is named.
fn pointing_at(place: Option<Span>, open: OpenSink) -> OpenSink {
    Box::new(move |context| open(context).map_err(|e| e.pointing_at(place)))
}

/// What a restart compares.
pub(super) fn canonical(query: &QueryText) -> String {
    crate::parser::canonical_query(query)
}

fn notices(start: &StartQuery, destination: &Destination) -> Vec<String> {
    let said = destination.survives.then(|| without_checkpoint(start, &destination.traits.name));
    said.flatten().into_iter().collect()
}

/// What a sink that outlives the process deserves to have said.
fn without_checkpoint(start: &StartQuery, sink: &str) -> Option<String> {
    start.checkpoint.is_none().then(|| {
        format!(
            "query {} has no CHECKPOINT: what it knows is removed at its end, while {sink} stays, and no other start can \
             write there",
            start.name.value
        )
    })
}

/// What is not the same when a batch is run again.
fn volatile(plan: &LogicalPlan) -> Option<String> {
    let calls: Vec<String> = incremental::volatile_functions(plan).iter().map(|name| format!("{name}()")).collect();
    let (last, others) = calls.split_last()?;
    let (names, gives) = match others {
        [] => (last.clone(), "gives"),
        others => (format!("{} and {last}", others.join(", ")), "give"),
    };
    Some(format!("{names} {gives} other values when a batch is run again after a crash"))
}

/// A mode as SQL writes it.
pub(super) fn mode_word(mode: OutputMode) -> &'static str {
    match mode {
        OutputMode::Append => "APPEND",
        OutputMode::Update => "UPDATE",
        OutputMode::Complete => "COMPLETE",
    }
}
