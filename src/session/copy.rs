//! COPY … TO a file.

use std::sync::Arc;

use datafusion::logical_expr::LogicalPlan;
use datafusion::logical_expr::dml::CopyTo;
use datafusion::sql::parser::{CopyToSource, CopyToStatement, Statement as DfStatement};

use super::insert::count;
use super::tables::in_statement;
use super::{Answer, Session};
use crate::error::{Error, Result, closest};
use crate::parser::{ParsedStatement, QueryText};
use crate::planner::{self, hints};
use crate::storage::{Location, RemoteUrl, Scheme};

impl Session {
    /// `query`: what stands in brackets; without it, a stream, table or view is copied.
    pub(super) fn copy(
        &self,
        mut copy: CopyToStatement,
        query: Option<QueryText>,
        statement: &ParsedStatement,
    ) -> Result<Answer> {
        let whole = |e: Error| in_statement(e, statement);
        local_only(&copy.target).map_err(whole)?;
        let state = self.state();
        let query = match (query, &copy.source) {
            (Some(query), _) => query,
            (None, CopyToSource::Relation(name)) => QueryText {
                ast: planner::all_of(name.clone())?,
                text: name.to_string(),
                watermarks: Vec::new(),
                within_watermark: Vec::new(),
                span: statement.span,
            },
            (None, CopyToSource::Query(_)) => return Err(Error::internal("a query that COPY was not given")),
        };
        let copies_name = matches!(copy.source, CopyToSource::Relation(_)) && query.span == statement.span;
        let planned = self.plan_bounded(&state, &query);
        let input = planned.map_err(|e| if copies_name { whole(e) } else { e })?;
        let columns = std::mem::take(&mut copy.partitioned_by);
        for column in &columns {
            let known = || input.schema().fields().iter().map(|field| field.name().as_str());
            if !known().any(|name| name == column) {
                let error = Error::invalid(format!("PARTITIONED BY: there is no column {column}"));
                return Err(whole(match closest(column, known()) {
                    Some(name) => error.help(format!("did you mean {name}?")),
                    None => error.help(format!("columns: {}", known().collect::<Vec<_>>().join(", "))),
                }));
            }
        }
        // Of DataFusion's plan the format and its options are wanted.
        copy.source = CopyToSource::Query(Box::new(planner::one_row()?));
        let plan = self
            .block_on(async { state.statement_to_plan(DfStatement::CopyTo(copy)).await.map_err(Error::from) })
            .map_err(whole)?;
        let LogicalPlan::Copy(CopyTo { output_url, file_type, options, .. }) = plan else {
            return Err(Error::internal("COPY is planned as something else"));
        };
        let plan = LogicalPlan::Copy(CopyTo::new(Arc::new(input), output_url, columns, file_type, options));
        let written = self.collect(&state, &plan).map_err(|e| hints::better(e, &state, &query.ast))?;
        Ok(Answer::done(format!("COPY {}", count(&written))))
    }
}

/// # Errors
/// Unsupported: a table in an object store or on a web server.
pub(super) fn local_only(location: &str) -> Result<()> {
    let (what, help) = match Location::parse(location, "a table")? {
        Location::Local(_) => return Ok(()),
        Location::Remote(RemoteUrl { scheme: Scheme::Http, .. }) => {
            ("on a web server", "a stream reads it: CREATE STREAM")
        }
        Location::Remote(_) => {
            ("in an object store", "a stream reads it and a query writes it: CREATE STREAM or CREATE SINK")
        }
    };
    let error = Error::not_yet(format!("tables {what}: {location}"));
    Err(error.help(format!("{help} … WITH (connector = 'file', path = '…')")))
}
