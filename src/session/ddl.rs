//! CREATE STREAM, SINK and VIEW; CLOSE STREAM; DROP.
//!
//! Nothing that a running query uses is dropped or replaced, and nothing that a view reads: both would go on with
//! something that has no name any more.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use datafusion::catalog::view::ViewTable;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder, col};

use super::{Answer, Session, lock};
use crate::catalog::{self, Kind, SinkDef, ViewDef};
use crate::error::{Code, Error, Result};
use crate::execution::QueryState;
use crate::parser::{CreateSink, CreateStream, CreateView, Name, ObjectKind, ParsedStatement};

/// What a CREATE finds under its name.
pub(super) enum Claim {
    /// Nothing, or what it replaces.
    Free,
    /// IF NOT EXISTS, and it is there: nothing is to be done.
    Kept,
}

impl Session {
    pub(super) fn create_stream(&self, create: &CreateStream, statement: &ParsedStatement) -> Result<Answer> {
        let tag = "CREATE STREAM";
        if let Claim::Kept = self.claim(&create.name, Kind::Stream, create.or_replace, create.if_not_exists)? {
            return Ok(kept(tag, "stream", &create.name));
        }
        // Columns may be inferred from files of an object store, whose answers come on the runtime.
        let runtime = self.runtime()?;
        let _entered = runtime.enter();
        let created = catalog::create(create, canonical(statement), &self.state(), &self.clock)?;
        self.catalog.add_stream(created.stream)?;
        Ok(match created.pinned {
            Some(text) => Answer::noticed(tag, format!("the columns were inferred; this text pins them:\n{text};")),
            None => Answer::done(tag),
        })
    }

    pub(super) fn create_sink(&self, create: &CreateSink, statement: &ParsedStatement) -> Result<Answer> {
        let (tag, name) = ("CREATE SINK", &create.name);
        not_both(name, create.or_replace, create.if_not_exists)?;
        if self.catalog.sink(&name.value).is_some() {
            if create.if_not_exists {
                return Ok(kept(tag, "sink", name));
            }
            if !create.or_replace {
                return Err(exists("sink", name));
            }
            refuse_while_used("sink", name, &self.running_into_sink(&name.value))?;
        }
        self.catalog.add_sink(SinkDef::new(create, canonical(statement))?);
        Ok(Answer::done(tag))
    }

    pub(super) fn create_view(&self, create: &CreateView, statement: &ParsedStatement) -> Result<Answer> {
        let (tag, name) = ("CREATE VIEW", &create.name);
        if let Claim::Kept = self.claim(name, Kind::View, create.or_replace, create.if_not_exists)? {
            return Ok(kept(tag, "view", name));
        }
        let state = self.state();
        let plan = renamed(self.plan(&state, &create.query)?, &create.columns, name)?;
        let reads = self.reads(&state, &create.query.ast)?;
        if reads.contains(&name.value) {
            return Err(Error::invalid_at(name.span, format!("view {} would read itself", name.value)));
        }
        let sql = canonical(statement);
        let provider = Arc::new(ViewTable::new(plan, Some(sql.clone())));
        self.catalog.add_view(&name.value, ViewDef { sql, reads }, provider)?;
        Ok(Answer::done(tag))
    }

    pub(super) fn close_stream(&self, name: &Name) -> Result<Answer> {
        let stream = self.catalog.stream(&name.value);
        let stream = stream.ok_or_else(|| self.catalog.unknown("stream", &name.value).at(Some(name.span)))?;
        let Some(rows) = &stream.memory else {
            let message = format!("stream {} has connector '{}'", name.value, stream.connector.name());
            return Err(Error::invalid_at(name.span, message).help("only a memory stream can be closed"));
        };
        rows.close();
        Ok(Answer::done("CLOSE STREAM"))
    }

    pub(super) fn drop_object(&self, kind: ObjectKind, if_exists: bool, name: &Name) -> Result<Answer> {
        let dropped = match kind {
            ObjectKind::Stream => self.drop_relation(Kind::Stream, name)?,
            ObjectKind::Table => self.drop_relation(Kind::Table, name)?,
            ObjectKind::View => self.drop_relation(Kind::View, name)?,
            ObjectKind::Sink => self.drop_sink(name)?,
            ObjectKind::Query => self.drop_query(name)?,
        };
        let (word, tag) = (kind.noun(), format!("DROP {kind}"));
        match (dropped, if_exists) {
            (true, _) => Ok(Answer::done(tag)),
            (false, true) => Ok(Answer::noticed(tag, format!("there is no {word} \"{}\"", name.value))),
            (false, false) if kind == ObjectKind::Query => Err(self.unknown_query(name)),
            (false, false) => Err(self.catalog.unknown(word, &name.value).at(Some(name.span))),
        }
    }

    /// Whether a CREATE may take `name`.
    ///
    /// # Errors
    /// It is taken, or what it would replace is in use.
    pub(super) fn claim(&self, name: &Name, kind: Kind, or_replace: bool, if_not_exists: bool) -> Result<Claim> {
        not_both(name, or_replace, if_not_exists)?;
        match self.catalog.kind(&name.value) {
            None => Ok(Claim::Free),
            Some(found) if found != kind => {
                let message = format!("there is a {} called {} already", found.word(), name.value);
                Err(Error::invalid_at(name.span, message)
                    .coded(Code::NameTaken)
                    .help("streams, tables and views share their names"))
            }
            Some(_) if if_not_exists => Ok(Claim::Kept),
            Some(_) if !or_replace => Err(exists(kind.word(), name)),
            Some(_) => self.refuse_while_needed(kind, name).map(|()| Claim::Free),
        }
    }

    fn drop_relation(&self, kind: Kind, name: &Name) -> Result<bool> {
        match self.catalog.kind(&name.value) {
            None => Ok(false),
            Some(found) if found != kind => {
                let message = format!("{} is a {}", name.value, found.word());
                let help = format!("DROP {} {}", found.word().to_uppercase(), name.value);
                Err(Error::invalid_at(name.span, message).help(help))
            }
            Some(_) => {
                self.refuse_while_needed(kind, name)?;
                self.catalog.remove(&name.value)?;
                Ok(true)
            }
        }
    }

    fn drop_sink(&self, name: &Name) -> Result<bool> {
        if self.catalog.sink(&name.value).is_none() {
            return Ok(false);
        }
        refuse_while_used("sink", name, &self.running_into_sink(&name.value))?;
        self.catalog.remove_sink(&name.value);
        Ok(true)
    }

    fn drop_query(&self, name: &Name) -> Result<bool> {
        let mut queries = lock(&self.queries);
        let Some(entry) = queries.get(&name.value) else { return Ok(false) };
        match entry.handle.status().state {
            QueryState::Running | QueryState::Paused => {
                let message = format!("query {} is running", name.value);
                return Err(Error::invalid_at(name.span, message).help(format!("STOP QUERY {} first", name.value)));
            }
            QueryState::Failed => self.forgotten_failure.store(true, Ordering::SeqCst),
            QueryState::Stopped => {}
        }
        queries.remove(&name.value);
        Ok(true)
    }

    fn refuse_while_needed(&self, kind: Kind, name: &Name) -> Result<()> {
        refuse_while_used(kind.word(), name, &self.running_with(&name.value))?;
        match self.catalog.views_reading(&name.value).as_slice() {
            [] => Ok(()),
            views => {
                let message = format!("{} {} is read by {}", kind.word(), name.value, list("view", views));
                Err(Error::invalid_at(name.span, message).help(format!("DROP VIEW {} first", views[0])))
            }
        }
    }
}

/// A statement as SHOW CREATE shows it: it parses to the same statement again.
pub(super) fn canonical(statement: &ParsedStatement) -> String {
    statement.to_string()
}

pub(super) fn kept(tag: &str, word: &str, name: &Name) -> Answer {
    Answer::noticed(tag, format!("{word} {} exists already: nothing was changed", name.value))
}

fn exists(word: &str, name: &Name) -> Error {
    let upper = word.to_uppercase();
    Error::invalid_at(name.span, format!("{word} {} exists already", name.value))
        .coded(Code::NameTaken)
        .help(format!("CREATE OR REPLACE {upper}, or DROP {upper} {} first", name.value))
}

fn not_both(name: &Name, or_replace: bool, if_not_exists: bool) -> Result<()> {
    match or_replace && if_not_exists {
        true => Err(Error::invalid_at(name.span, "OR REPLACE and IF NOT EXISTS exclude each other")),
        false => Ok(()),
    }
}

fn refuse_while_used(word: &str, name: &Name, queries: &[String]) -> Result<()> {
    let Some(first) = queries.first() else { return Ok(()) };
    let plural = if queries.len() == 1 { "query" } else { "queries" };
    let message = format!("{word} {} is used by the running {plural} {}", name.value, queries.join(", "));
    Err(Error::invalid_at(name.span, message).help(format!("STOP QUERY {first} first")))
}

fn list(word: &str, names: &[String]) -> String {
    format!("{word}{} {}", if names.len() == 1 { "" } else { "s" }, names.join(", "))
}

/// The view's own names for its columns, where it has some.
fn renamed(plan: LogicalPlan, names: &[Name], view: &Name) -> Result<LogicalPlan> {
    let found = plan.schema().fields().len();
    let mut seen = BTreeSet::new();
    let own: Vec<String> = match names {
        [] => plan.schema().fields().iter().map(|f| f.name().clone()).collect(),
        names => names.iter().map(|n| n.value.clone()).collect(),
    };
    if own.len() != found {
        let message = format!("view {} names {} columns, and its query has {found}", view.value, own.len());
        return Err(Error::invalid_at(view.span, message));
    }
    if let Some(twice) = own.iter().find(|name| !seen.insert(name.as_str())) {
        let message = format!("view {} has two columns called {twice}", view.value);
        return Err(Error::invalid_at(view.span, message).help("rename one with AS"));
    }
    if names.is_empty() {
        return Ok(plan);
    }
    let columns: Vec<_> = plan.schema().columns().into_iter().zip(own).map(|(c, name)| col(c).alias(name)).collect();
    LogicalPlanBuilder::from(plan).project(columns).and_then(|b| b.build()).map_err(Error::from)
}
