//! SHOW: what there is, sorted by name.

use std::sync::Arc;

use arrow::array::{ArrayRef, StringArray, UInt64Array};

use super::start::mode_word;
use super::{Answer, Session, lock};
use crate::catalog::Kind;
use crate::error::{Error, Result};
use crate::execution::QueryState;
use crate::parser::Show;

impl Session {
    pub(super) fn show(&self, show: &Show) -> Result<Answer> {
        match show {
            Show::Streams => self.show_streams(),
            Show::Tables => Answer::table(vec![("name", strings(self.catalog.names(Kind::Table)))]),
            Show::Views => Answer::table(vec![("name", strings(self.catalog.names(Kind::View)))]),
            Show::Sinks => self.show_sinks(),
            Show::Queries => self.show_queries(),
            Show::Functions => self.show_functions(),
            Show::Settings => self.show_settings(),
            Show::Setting(name) => self.show_setting(name),
            Show::Progress { query, last, json } => self.show_progress(query.as_ref(), *last, *json),
            Show::ProgressLive => {
                Err(Error::unsupported("SHOW PROGRESS LIVE wants a terminal that somebody types into")
                    .help("SHOW PROGRESS lists the batches there were; SHOW STATUS tells what a query does now"))
            }
            Show::Status(query) => self.show_status(query.as_ref()),
            Show::State(query) => self.show_state(query),
            Show::Failpoints => self.show_failpoints(),
        }
    }

    /// The points by name, and what is armed at each.
    fn show_failpoints(&self) -> Result<Answer> {
        let mut armed: Vec<(String, String)> = Vec::new();
        for (name, query) in lock(&self.queries).iter() {
            armed.extend(
                query.handle.failpoints().armed().into_iter().map(|a| (a.point.to_string(), format!("{name}: {a}"))),
            );
        }
        let at = |point: &str| {
            let here: Vec<&str> = armed.iter().filter(|(p, _)| p == point).map(|(_, a)| a.as_str()).collect();
            (!here.is_empty()).then(|| here.join("; "))
        };
        Answer::table(vec![
            ("point", strings(crate::checkpoint::failpoint::POINTS.iter().map(|p| p.to_string()))),
            ("armed", optional(crate::checkpoint::failpoint::POINTS.iter().map(|p| at(p)))),
        ])
    }

    fn show_streams(&self) -> Result<Answer> {
        let streams: Vec<_> =
            self.catalog.names(Kind::Stream).iter().filter_map(|name| self.catalog.stream(name)).collect();
        let rows = streams.iter().map(|s| s.memory.as_ref().map(|m| m.rows()));
        Answer::table(vec![
            ("name", strings(streams.iter().map(|s| s.name.clone()))),
            ("connector", strings(streams.iter().map(|s| s.connector.name().to_string()))),
            ("watermark", optional(streams.iter().map(|s| s.watermark.as_ref().map(|w| w.column.value.clone())))),
            ("rows", Arc::new(rows.collect::<UInt64Array>())),
        ])
    }

    fn show_sinks(&self) -> Result<Answer> {
        let sinks: Vec<_> = self.catalog.sink_names().iter().filter_map(|name| self.catalog.sink(name)).collect();
        Answer::table(vec![
            ("name", strings(sinks.iter().map(|s| s.name.clone()))),
            ("connector", strings(sinks.iter().map(|s| s.connector.name().to_string()))),
        ])
    }

    fn show_queries(&self) -> Result<Answer> {
        let queries = lock(&self.queries);
        let statuses: Vec<_> = queries.values().map(|q| q.handle.status()).collect();
        let batch = queries.values().map(|q| q.handle.progress(1).last().and_then(|d| d.get("batchId")?.as_u64()));
        let errors = statuses.iter().map(|s| s.last_error.as_ref().map(|e| e.to_string()));
        Answer::table(vec![
            ("name", strings(queries.keys().cloned())),
            ("state", strings(statuses.iter().map(|s| state_word(s.state).to_string()))),
            ("mode", strings(queries.values().map(|q| mode_word(q.mode).to_string()))),
            ("target", strings(queries.values().map(|q| q.words.clone()))),
            ("batch", Arc::new(batch.collect::<UInt64Array>())),
            ("error", optional(errors)),
        ])
    }

    fn show_functions(&self) -> Result<Answer> {
        let state = self.context.state();
        let mut functions: Vec<(String, &str)> = Vec::new();
        functions.extend(state.scalar_functions().keys().map(|name| (name.clone(), "scalar")));
        functions.extend(state.aggregate_functions().keys().map(|name| (name.clone(), "aggregate")));
        functions.extend(state.window_functions().keys().map(|name| (name.clone(), "window")));
        functions.extend(state.table_functions().keys().map(|name| (name.clone(), "table")));
        functions.sort();
        functions.dedup();
        let (names, kinds): (Vec<_>, Vec<_>) = functions.into_iter().map(|(n, k)| (n, k.to_string())).unzip();
        Answer::table(vec![("name", strings(names)), ("kind", strings(kinds))])
    }
}

/// A state as it is shown.
pub(super) fn state_word(state: QueryState) -> &'static str {
    match state {
        QueryState::Running => "RUNNING",
        QueryState::Paused => "PAUSED",
        QueryState::Stopped => "STOPPED",
        QueryState::Failed => "FAILED",
    }
}

fn strings(values: impl IntoIterator<Item = String>) -> ArrayRef {
    Arc::new(values.into_iter().map(Some).collect::<StringArray>())
}

fn optional(values: impl IntoIterator<Item = Option<String>>) -> ArrayRef {
    Arc::new(values.into_iter().collect::<StringArray>())
}
