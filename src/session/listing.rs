//! What there is, by name: for whoever completes what is typed.

use arrow::datatypes::SchemaRef;
use datafusion::logical_expr::Documentation;

use super::{Session, lock};
use crate::catalog::Kind;
use crate::execution::QueryState;
use crate::options::OptionSpec;

/// A stream, table or view.
#[derive(Debug, Clone)]
pub struct Relation {
    pub name: String,
    pub kind: Kind,
    pub schema: SchemaRef,
    /// INSERT may name it.
    pub takes_rows: bool,
}

/// A function of DataFusion's or ours.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FunctionName {
    pub name: String,
    /// Its documentation's, on one line: `date_trunc(precision, expression)`.
    pub signature: Option<String>,
}

impl Session {
    /// Another number after each change of what [`Session::relations`] and [`Session::sink_names`] answer.
    pub fn catalog_version(&self) -> u64 {
        self.catalog.version()
    }

    /// Every stream, table and view, sorted by name.
    pub fn relations(&self) -> Vec<Relation> {
        let relations = self.catalog.relations().into_iter();
        relations.map(|(name, kind, schema, takes_rows)| Relation { name, kind, schema, takes_rows }).collect()
    }

    /// Every sink, sorted.
    pub fn sink_names(&self) -> Vec<String> {
        self.catalog.sink_names()
    }

    /// Every query, running or ended, sorted by name.
    pub fn query_states(&self) -> Vec<(String, QueryState)> {
        lock(&self.queries).iter().map(|(name, query)| (name.clone(), query.handle.status().state)).collect()
    }

    /// Every function that a query may call, sorted by name: those that take a lambda are none, as no statement can write one.
    pub fn functions(&self) -> Vec<FunctionName> {
        let state = self.context.state();
        let mut all: Vec<FunctionName> = Vec::new();
        let mut add = |name: &str, documentation: Option<&Documentation>| {
            let signature = documentation.map(|d| d.syntax_example.split_whitespace().collect::<Vec<_>>().join(" "));
            // Of an alias, the documentation shows another name.
            let signature = signature.filter(|text| text.to_lowercase().starts_with(&format!("{name}(")));
            all.push(FunctionName { name: name.to_string(), signature });
        };
        state.scalar_functions().iter().for_each(|(name, f)| add(name, f.documentation()));
        state.aggregate_functions().iter().for_each(|(name, f)| add(name, f.documentation()));
        state.window_functions().iter().for_each(|(name, f)| add(name, f.documentation()));
        all.sort();
        all.dedup_by(|a, b| a.name == b.name);
        all
    }

    /// Every function that FROM may name, sorted.
    pub fn table_functions(&self) -> Vec<String> {
        let mut names: Vec<String> = self.context.state().table_functions().keys().cloned().collect();
        names.sort();
        names
    }

    /// Every setting that SET takes, ours first: what its values are, where that is known.
    pub fn setting_names(&self) -> Vec<(String, Option<OptionSpec>)> {
        let mut names: Vec<_> = super::settings::SETTINGS.iter().map(|s| (s.name.to_string(), Some(*s))).collect();
        let others = self.all_settings().into_iter().filter(|(name, ..)| name.starts_with("datafusion."));
        names.extend(others.map(|(name, ..)| (name, None)));
        names
    }

    /// What `START QUERY … WITH (…)` may hold.
    pub fn query_options() -> &'static [OptionSpec] {
        super::settings::QUERY_OPTIONS
    }
}
