//! What there is to complete, as it was at one moment: nothing in it changes, and nothing of a session is asked for more.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;

use super::commands::Shape;
use crate::catalog::Kind;
use crate::options::OptionSpec;
use crate::session::{FunctionName, LAST_RESULT, Relation, Session};

/// Everything that has a name.
#[derive(Debug, Clone, Default)]
pub(in crate::shell) struct Snapshot {
    pub(super) streams: Names,
    pub(super) tables: Names,
    pub(super) views: Names,
    /// The streams that INSERT may name, and the tables.
    pub(super) fed: Names,
    pub(super) filled: Names,
    pub(super) sinks: Names,
    pub(super) queries: Names,
    pub(super) functions: Arc<Vec<FunctionName>>,
    /// Functions that stand where a table does.
    pub(super) table_functions: Arc<Vec<String>>,
    pub(super) settings: Arc<Vec<(String, Option<OptionSpec>)>>,
    pub(super) commands: Arc<Vec<Shape>>,
    /// The names of the shell's variables, sorted.
    pub(super) variables: Vec<String>,
    /// `_`, the last result.
    pub(super) result: Option<Named>,
    /// Of the catalog that it was made of.
    version: Option<u64>,
}

/// Names of one kind, found by how they begin, in any case.
#[derive(Debug, Clone, Default)]
pub(super) struct Names(Arc<Vec<Named>>);

/// One name.
#[derive(Debug, Clone)]
pub(super) struct Named {
    folded: String,
    pub(super) name: String,
    /// What it is, as a list shows it.
    pub(super) detail: &'static str,
    pub(super) schema: Option<SchemaRef>,
}

impl Named {
    pub(super) fn new(name: String, detail: &'static str, schema: Option<SchemaRef>) -> Self {
        Named { folded: name.to_lowercase(), name, detail, schema }
    }
}

impl Names {
    pub(super) fn new(mut names: Vec<Named>) -> Self {
        names.sort_by(|a, b| a.folded.cmp(&b.folded));
        Names(Arc::new(names))
    }

    /// Those that begin with `prefix`, which is in lower case, in their order.
    pub(super) fn beginning(&self, prefix: &str) -> &[Named] {
        let from = self.0.partition_point(|named| named.folded.as_str() < prefix);
        let rest = &self.0[from..];
        &rest[..rest.partition_point(|named| named.folded.starts_with(prefix))]
    }

    /// The one of exactly that name.
    pub(super) fn get(&self, name: &str) -> Option<&Named> {
        let folded = name.to_lowercase();
        let from = self.0.partition_point(|named| named.folded < folded);
        self.0[from..].iter().take_while(|named| named.folded == folded).find(|named| named.name == name)
    }
}

impl Snapshot {
    /// Of a session as it is now; what has not changed since the last one is taken from it.
    pub(in crate::shell) fn of(session: &Session, last: &Snapshot, commands: impl FnOnce() -> Vec<Shape>) -> Self {
        let mut next = match last.version {
            Some(_) => last.clone(),
            None => Snapshot {
                functions: Arc::new(session.functions()),
                table_functions: Arc::new(session.table_functions()),
                settings: Arc::new(session.setting_names()),
                commands: Arc::new(commands()),
                ..Snapshot::default()
            },
        };
        let version = session.catalog_version();
        if last.version != Some(version) {
            next.take_relations(session.relations());
            let sinks = session.sink_names().into_iter();
            next.sinks = Names::new(sinks.map(|name| Named::new(name, "sink", None)).collect());
            next.version = Some(version);
        }
        let queries = session.query_states().into_iter();
        let word = |state: crate::execution::QueryState| match state {
            crate::execution::QueryState::Running => "running",
            crate::execution::QueryState::Paused => "paused",
            crate::execution::QueryState::Stopped => "stopped",
            crate::execution::QueryState::Failed => "failed",
        };
        next.queries = Names::new(queries.map(|(name, state)| Named::new(name, word(state), None)).collect());
        next
    }

    /// With what the shell knows beside the session: its variables, and the columns of the last result.
    pub(in crate::shell) fn with(mut self, variables: Vec<String>, result: Option<SchemaRef>) -> Self {
        self.variables = variables;
        self.result = result.map(|schema| Named::new(LAST_RESULT.to_string(), "last result", Some(schema)));
        self
    }

    pub(super) fn take_relations(&mut self, relations: Vec<Relation>) {
        let (mut streams, mut tables, mut views) = (Vec::new(), Vec::new(), Vec::new());
        let (mut fed, mut filled) = (Vec::new(), Vec::new());
        for Relation { name, kind, schema, takes_rows } in relations {
            let named = Named::new(name, kind.word(), Some(schema));
            match kind {
                Kind::Stream if takes_rows => fed.push(named.clone()),
                Kind::Table if takes_rows => filled.push(named.clone()),
                _ => {}
            }
            match kind {
                Kind::Stream => streams.push(named),
                Kind::Table => tables.push(named),
                Kind::View => views.push(named),
            }
        }
        (self.streams, self.tables, self.views) = (Names::new(streams), Names::new(tables), Names::new(views));
        (self.fed, self.filled) = (Names::new(fed), Names::new(filled));
    }

    /// The stream, table or view of that name, or the last result.
    pub(super) fn relation(&self, name: &str) -> Option<&Named> {
        let found = [&self.streams, &self.tables, &self.views].into_iter().find_map(|names| names.get(name));
        found.or_else(|| self.result.as_ref().filter(|result| result.name == name))
    }

    /// Whether an unquoted word is the name of a function.
    pub(in crate::shell) fn is_function(&self, word: &str) -> bool {
        let word = word.to_ascii_lowercase();
        self.functions.binary_search_by(|function| function.name.as_str().cmp(&word)).is_ok()
    }
}
