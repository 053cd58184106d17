//! The names of a session: streams, tables and views share one namespace, sinks have their own.
//!
//! Streams, tables and views are also DataFusion's tables, so that its planner finds them; what was said when they
//! were made is kept here. The catalog lives as long as the process.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider;
use datafusion::prelude::SessionContext;

use super::{SinkDef, StreamDef, StreamTable};
use crate::error::{Code, Error, Result, closest};

/// What a name of the shared namespace stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Stream,
    Table,
    View,
}

impl Kind {
    /// `stream`, `table`, `view`.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Stream => "stream",
            Kind::Table => "table",
            Kind::View => "view",
        }
    }
}

/// A view as it was created.
#[derive(Debug, Clone)]
pub struct ViewDef {
    /// The CREATE VIEW text.
    pub sql: String,
    /// The names that its query reads.
    pub reads: BTreeSet<String>,
}

/// Everything that has a name in a session, except its queries.
pub struct Catalog {
    context: SessionContext,
    names: Mutex<Names>,
}

#[derive(Default)]
struct Names {
    streams: BTreeMap<String, Arc<StreamDef>>,
    views: BTreeMap<String, ViewDef>,
    /// The CREATE text of tables.
    tables: BTreeMap<String, String>,
    /// Those of the tables that are the result of a query (`INTO TABLE t`).
    results: BTreeSet<String>,
    sinks: BTreeMap<String, Arc<SinkDef>>,
    /// The columns of streams, views and tables.
    schemas: BTreeMap<String, SchemaRef>,
    /// How many changes there were.
    changes: u64,
}

impl Names {
    /// Forgets what was said of a name of the shared namespace.
    fn forget(&mut self, name: &str) {
        self.streams.remove(name);
        self.views.remove(name);
        self.tables.remove(name);
        self.results.remove(name);
        self.schemas.remove(name);
        self.changes += 1;
    }
}

impl Catalog {
    /// An empty catalog over DataFusion's of `context`.
    pub fn new(context: SessionContext) -> Self {
        Catalog { context, names: Mutex::default() }
    }

    /// What `name` stands for.
    pub fn kind(&self, name: &str) -> Option<Kind> {
        let names = self.lock();
        if names.streams.contains_key(name) {
            Some(Kind::Stream)
        } else if names.views.contains_key(name) {
            Some(Kind::View)
        } else {
            names.tables.contains_key(name).then_some(Kind::Table)
        }
    }

    /// The stream of that name.
    pub fn stream(&self, name: &str) -> Option<Arc<StreamDef>> {
        self.lock().streams.get(name).cloned()
    }

    /// The sink of that name.
    pub fn sink(&self, name: &str) -> Option<Arc<SinkDef>> {
        self.lock().sinks.get(name).cloned()
    }

    /// The view of that name.
    pub fn view(&self, name: &str) -> Option<ViewDef> {
        self.lock().views.get(name).cloned()
    }

    /// The text that made something of this kind.
    pub fn sql(&self, kind: Kind, name: &str) -> Option<String> {
        let names = self.lock();
        match kind {
            Kind::Stream => names.streams.get(name).map(|s| s.sql.clone()),
            Kind::View => names.views.get(name).map(|v| v.sql.clone()),
            Kind::Table => names.tables.get(name).cloned(),
        }
    }

    /// The names of one kind, sorted.
    pub fn names(&self, kind: Kind) -> Vec<String> {
        let names = self.lock();
        match kind {
            Kind::Stream => names.streams.keys().cloned().collect(),
            Kind::View => names.views.keys().cloned().collect(),
            Kind::Table => names.tables.keys().cloned().collect(),
        }
    }

    /// The names of sinks, sorted.
    pub fn sink_names(&self) -> Vec<String> {
        self.lock().sinks.keys().cloned().collect()
    }

    /// Another number after each change.
    pub fn version(&self) -> u64 {
        self.lock().changes
    }

    /// Every stream, table and view with its columns, and whether INSERT may name it, sorted by name.
    pub fn relations(&self) -> Vec<(String, Kind, SchemaRef, bool)> {
        let names = self.lock();
        let kind = |name: &str| match () {
            () if names.streams.contains_key(name) => Some(Kind::Stream),
            () if names.views.contains_key(name) => Some(Kind::View),
            () => names.tables.contains_key(name).then_some(Kind::Table),
        };
        let takes_rows = |name: &str, kind| match kind {
            Kind::Stream => names.streams.get(name).is_some_and(|stream| stream.memory.is_some()),
            Kind::Table => !names.results.contains(name),
            Kind::View => false,
        };
        let relation = |(name, schema): (&String, &SchemaRef)| {
            let kind = kind(name)?;
            Some((name.clone(), kind, schema.clone(), takes_rows(name, kind)))
        };
        names.schemas.iter().filter_map(relation).collect()
    }

    /// Adds a stream, in place of whatever had its name.
    pub fn add_stream(&self, stream: StreamDef) -> Result<()> {
        let stream = Arc::new(stream);
        self.register(&stream.name, Arc::new(StreamTable(stream.clone())))?;
        self.lock().streams.insert(stream.name.clone(), stream);
        Ok(())
    }

    /// Adds a view, in place of whatever had its name.
    pub fn add_view(&self, name: &str, view: ViewDef, provider: Arc<dyn TableProvider>) -> Result<()> {
        self.register(name, provider)?;
        self.lock().views.insert(name.to_string(), view);
        Ok(())
    }

    /// Adds a table, in place of whatever had its name. `sql` is the text that made it.
    pub fn add_table(&self, name: &str, sql: String, provider: Arc<dyn TableProvider>) -> Result<()> {
        self.register(name, provider)?;
        self.lock().tables.insert(name.to_string(), sql);
        Ok(())
    }

    /// Adds the result table of a query, likewise.
    pub fn add_result_table(&self, name: &str, sql: String, provider: Arc<dyn TableProvider>) -> Result<()> {
        self.add_table(name, sql, provider)?;
        self.lock().results.insert(name.to_string());
        Ok(())
    }

    /// Whether `name` is the result table of a query.
    pub fn is_result(&self, name: &str) -> bool {
        self.lock().results.contains(name)
    }

    /// Adds a sink, in place of one of its name.
    pub fn add_sink(&self, sink: SinkDef) {
        let mut names = self.lock();
        names.sinks.insert(sink.name.clone(), Arc::new(sink));
        names.changes += 1;
    }

    /// Forgets a stream, table or view.
    pub fn remove(&self, name: &str) -> Result<()> {
        let mut names = self.lock();
        names.forget(name);
        self.context.deregister_table(bare(name))?;
        Ok(())
    }

    /// Forgets a sink.
    pub fn remove_sink(&self, name: &str) {
        let mut names = self.lock();
        names.sinks.remove(name);
        names.changes += 1;
    }

    /// The views that read `name`, sorted.
    pub fn views_reading(&self, name: &str) -> Vec<String> {
        let reads = |(view, def): (&String, &ViewDef)| def.reads.contains(name).then(|| view.clone());
        self.lock().views.iter().filter_map(reads).collect()
    }

    /// `names`, and what the views among them read.
    pub fn with_views_expanded(&self, names: BTreeSet<String>) -> BTreeSet<String> {
        let views = &self.lock().views;
        let mut all = BTreeSet::new();
        let mut todo: Vec<String> = names.into_iter().collect();
        while let Some(name) = todo.pop() {
            if let Some(view) = views.get(&name) {
                todo.extend(view.reads.iter().filter(|read| !all.contains(*read)).cloned());
            }
            all.insert(name);
        }
        all
    }

    /// Says that `name` is not there, with the closest name that is.
    pub fn unknown(&self, what: &str, name: &str) -> Error {
        let names = self.lock();
        let shared = names.streams.keys().chain(names.views.keys()).chain(names.tables.keys());
        let known: Vec<&str> = match what {
            "stream" => names.streams.keys().map(String::as_str).collect(),
            "view" => names.views.keys().map(String::as_str).collect(),
            "table" => names.tables.keys().map(String::as_str).collect(),
            "sink" => names.sinks.keys().map(String::as_str).collect(),
            _ => shared.map(String::as_str).collect(),
        };
        let error = Error::invalid(format!("there is no {what} \"{name}\"")).coded(Code::UnknownTable);
        let other = [
            ("stream", names.streams.contains_key(name)),
            ("view", names.views.contains_key(name)),
            ("table", names.tables.contains_key(name)),
            ("sink", names.sinks.contains_key(name)),
        ];
        if let Some((other, _)) = other.into_iter().find(|(other, there)| *there && *other != what) {
            return error.help(format!("\"{name}\" is a {other}"));
        }
        match closest(name, known.iter().copied()) {
            Some(name) => error.help(format!("did you mean \"{name}\"?")),
            None => error,
        }
    }

    fn register(&self, name: &str, provider: Arc<dyn TableProvider>) -> Result<()> {
        self.context.deregister_table(bare(name))?;
        let mut names = self.lock();
        names.forget(name);
        let schema = provider.schema();
        self.context.register_table(bare(name), provider)?;
        names.schemas.insert(name.to_string(), schema);
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Names> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A name as it is: text would be folded and split at dots.
fn bare(name: &str) -> datafusion::common::TableReference {
    datafusion::common::TableReference::bare(name)
}
