//! Statements that are DataFusion's: CREATE TABLE, CREATE EXTERNAL TABLE and the like.
//!
//! Names are claimed in our catalog first, and a stream inside such a statement is read as far as it goes now.

use std::sync::Arc;

use datafusion::common::TableReference;
use datafusion::datasource::MemTable;
use datafusion::execution::SessionState;
use datafusion::logical_expr::{
    CreateExternalTable, CreateMemoryTable, DdlStatement, Expr, LogicalPlan, LogicalPlanBuilder, Statement as DfPlan,
};
use datafusion::physical_plan::execute_stream_partitioned;
use datafusion::sql::parser::Statement as DfStatement;
use futures::TryStreamExt;

use super::context::bounded;
use super::copy::local_only;
use super::ddl::{Claim, canonical, kept};
use super::exact::fitted;
use super::insert::count;
use super::work::Running;
use super::{Answer, Session};
use crate::catalog::Kind;
use crate::error::{Error, Result};
use crate::parser::{Name, ObjectKind, ParsedStatement, QueryText, ast, copied_query, read_literals};
use crate::planner;

impl Session {
    /// A statement that sqlparser read and that needs nothing of ours.
    pub(super) fn sql(&self, sql: &ast::Statement, statement: &ParsedStatement) -> Result<Answer> {
        match sql {
            ast::Statement::Insert(insert) => self.insert(insert, statement),
            ast::Statement::Update(update) => self.update(update, statement),
            ast::Statement::Delete(delete) => self.delete(delete, statement),
            ast::Statement::ShowColumns { .. } => {
                let columns = self.run_datafusion(DfStatement::Statement(Box::new(sql.clone())), statement)?;
                Ok(super::describe::with_sql_types(columns))
            }
            sql => self.run_datafusion(DfStatement::Statement(Box::new(sql.clone())), statement),
        }
    }

    /// A statement that only DataFusion's own parser reads.
    pub(super) fn datafusion(&self, statement: &ParsedStatement) -> Result<Answer> {
        let state = self.state();
        let (text, query) = match copied_query(&statement.text, statement.span.start)? {
            Some((query, around)) => (around, Some(query)),
            None => (statement.text.clone(), None),
        };
        let dialect = state.config_options().sql_parser.dialect;
        let parsed = state.sql_to_statement(&text, &dialect).map_err(|e| in_statement(Error::from(e), statement))?;
        match parsed {
            DfStatement::CopyTo(copy) => self.copy(copy, query, statement),
            parsed => self.run_datafusion(parsed, statement),
        }
    }

    fn run_datafusion(&self, mut parsed: DfStatement, statement: &ParsedStatement) -> Result<Answer> {
        // As it was written: it is planned again, as every other query.
        let filling = filling(&parsed);
        if let DfStatement::Statement(parsed) = &mut parsed {
            if let ast::Statement::CreateTable(create) = parsed.as_mut()
                && let Some(query) = &mut create.query
            {
                planner::rewrite(query)?;
            }
            read_literals(parsed.as_mut())?;
        }
        let state = self.state();
        let asked = match &parsed {
            DfStatement::Statement(parsed) => Some(parsed.clone()),
            _ => None,
        };
        let plan = self
            .block_on(async { state.statement_to_plan(parsed).await.map_err(Error::from) })
            .map_err(|e| self.with_closest_name(e))
            .map_err(|e| asked.as_ref().map_or(e.clone(), |asked| planner::hints::better(e, &state, asked.as_ref())))?;
        match plan {
            LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(create)) => {
                self.create_table(&state, create, filling, statement)
            }
            LogicalPlan::Ddl(DdlStatement::CreateExternalTable(create)) => {
                self.create_external_table(&state, &create, statement)
            }
            LogicalPlan::Ddl(DdlStatement::DropTable(drop)) => {
                self.drop_object(ObjectKind::Table, drop.if_exists, &own_name(&drop.name, statement)?)
            }
            LogicalPlan::Ddl(DdlStatement::DropView(drop)) => {
                self.drop_object(ObjectKind::View, drop.if_exists, &own_name(&drop.name, statement)?)
            }
            LogicalPlan::Ddl(DdlStatement::CreateView(_)) => Err(Error::internal("a view past the parser")),
            LogicalPlan::Ddl(DdlStatement::CreateIndex(_)) => {
                Err(Error::not_yet("CREATE INDEX").at(Some(statement.span)))
            }
            LogicalPlan::Ddl(DdlStatement::CreateFunction(_) | DdlStatement::DropFunction(_)) => {
                Err(Error::not_yet("functions made in SQL").at(Some(statement.span)))
            }
            LogicalPlan::Ddl(ddl) => self.execute_plan(LogicalPlan::Ddl(ddl), statement),
            LogicalPlan::Statement(DfPlan::TransactionStart(_) | DfPlan::TransactionEnd(_)) => {
                Err(Error::not_yet("transactions").at(Some(statement.span)))
            }
            LogicalPlan::Statement(other) => self.execute_plan(LogicalPlan::Statement(other), statement),
            LogicalPlan::Dml(dml) => self.change(&state, dml, statement),
            plan => self.rows(&state, &bounded(plan)?),
        }
    }

    /// TRUNCATE of a table, and the like.
    fn change(
        &self,
        state: &SessionState,
        dml: datafusion::logical_expr::DmlStatement,
        statement: &ParsedStatement,
    ) -> Result<Answer> {
        let name = own_name(&dml.table_name, statement)?;
        if self.catalog.kind(&name.value) == Some(Kind::Stream) {
            let message = format!("{} is a stream: its rows are never changed", name.value);
            return Err(Error::invalid_at(name.span, message));
        }
        if let Some(query) = self.writer_of(&name.value) {
            let message = format!("table {} is the result of query {query}: only its query changes it", name.value);
            return Err(Error::invalid_at(name.span, message));
        }
        let changed = self.collect(state, &LogicalPlan::Dml(dml))?;
        Ok(Answer::done(format!("{} {}", first_words(&statement.text, 1), count(&changed))))
    }

    /// CREATE TABLE, with or without AS: all rows are there before the name is.
    fn create_table(
        &self,
        state: &SessionState,
        create: CreateMemoryTable,
        filling: Option<Filling>,
        statement: &ParsedStatement,
    ) -> Result<Answer> {
        let (tag, name) = ("CREATE TABLE", own_name(&create.name, statement)?);
        if create.temporary {
            return Err(Error::unsupported("TEMPORARY tables")
                .at(Some(name.span))
                .help("every table lives as long as the process"));
        }
        if let Claim::Kept = self.claim(&name, Kind::Table, create.or_replace, create.if_not_exists)? {
            return Ok(kept(tag, "table", &name));
        }
        let declared = Arc::unwrap_or_clone(create.input);
        let input = match filling {
            Some(filling) => self.filled_by(state, filling, &declared, statement)?,
            None => declared,
        };
        let schema = Arc::clone(input.schema().inner());
        let mut names: Vec<_> = schema.fields().iter().map(|f| f.name().as_str()).collect();
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|two| two[0] == two[1]) {
            let message = format!("table {} would have two columns called {}", name.value, twice[0]);
            return Err(Error::invalid_at(name.span, message).help("rename one with AS"));
        }
        let partitions = self.block_on(async {
            let physical = state.create_physical_plan(&input).await?;
            self.runs(Running::Plan(physical.clone()));
            let streams = execute_stream_partitioned(physical, state.task_ctx())?;
            let collected = streams.into_iter().map(TryStreamExt::try_collect::<Vec<_>>);
            futures::future::try_join_all(collected).await.map_err(Error::from)
        })?;
        let table = MemTable::try_new(schema, partitions)?;
        let table = table.with_constraints(create.constraints);
        let table = table.with_column_defaults(create.column_defaults.into_iter().collect());
        self.catalog.add_table(&name.value, canonical(statement), Arc::new(table))?;
        Ok(Answer::done(tag))
    }

    /// The rows of CREATE TABLE … AS; `wanted` has the columns that are declared.
    fn filled_by(
        &self,
        state: &SessionState,
        filling: Filling,
        wanted: &LogicalPlan,
        statement: &ParsedStatement,
    ) -> Result<LogicalPlan> {
        let Filling { query, declared } = filling;
        let text = query.to_string();
        let query = QueryText { ast: query, text, watermarks: vec![], within_watermark: vec![], span: statement.span };
        let planned = self.plan_bounded(state, &query)?;
        if !declared {
            return Ok(planned);
        }
        let (given, wanted) = (planned.schema(), wanted.schema());
        let columns = given.columns().into_iter().zip(wanted.fields()).map(|(column, field)| {
            let value = fitted(Expr::Column(column), given, field.data_type(), field.name())?;
            Ok(value.alias(field.name()))
        });
        let columns = columns.collect::<Result<Vec<_>>>().map_err(|e| e.at(Some(query.span)))?;
        LogicalPlanBuilder::from(planned).project(columns).and_then(|b| b.build()).map_err(Error::from)
    }

    fn create_external_table(
        &self,
        state: &SessionState,
        create: &CreateExternalTable,
        statement: &ParsedStatement,
    ) -> Result<Answer> {
        let (tag, name) = ("CREATE EXTERNAL TABLE", own_name(&create.name, statement)?);
        if create.temporary {
            return Err(Error::unsupported("TEMPORARY tables").at(Some(name.span)));
        }
        if let Claim::Kept = self.claim(&name, Kind::Table, create.or_replace, create.if_not_exists)? {
            return Ok(kept(tag, "table", &name));
        }
        for location in &create.locations {
            local_only(location).map_err(|e| e.at(Some(statement.span)))?;
        }
        let factories = state.table_factories();
        let Some(factory) = factories.get(&create.file_type.to_uppercase()) else {
            let mut known: Vec<_> = factories.keys().map(String::as_str).collect();
            known.sort_unstable();
            let message = format!("STORED AS {}: no such format", create.file_type);
            return Err(Error::invalid_at(name.span, message).help(format!("one of {}", known.join(", "))));
        };
        // Not by DataFusion's own statement: it forgets the old table before it knows that the new one can be made.
        let provider = self.block_on(async { Ok(factory.create(state, create).await?) })?;
        self.catalog.add_table(&name.value, canonical(statement), provider)?;
        Ok(Answer::done(tag))
    }

    /// Whatever else DataFusion can do.
    fn execute_plan(&self, plan: LogicalPlan, statement: &ParsedStatement) -> Result<Answer> {
        let plan = bounded(plan)?;
        let (state, plan) = self.block_on(async {
            let frame = self.context.execute_logical_plan(plan).await?;
            Ok(frame.into_parts())
        })?;
        if plan.schema().fields().is_empty() {
            return Ok(Answer::done(first_words(&statement.text, 2)));
        }
        self.rows(&state, &plan)
    }
}

/// The query of a CREATE TABLE … AS.
struct Filling {
    query: ast::Query,
    /// Columns are declared in front of AS.
    declared: bool,
}

fn filling(statement: &DfStatement) -> Option<Filling> {
    let DfStatement::Statement(statement) = statement else { return None };
    let ast::Statement::CreateTable(create) = statement.as_ref() else { return None };
    let query = create.query.as_deref()?.clone();
    Some(Filling { query, declared: !create.columns.is_empty() })
}

/// The name of a table that is to be ours: one word.
fn own_name(table: &TableReference, statement: &ParsedStatement) -> Result<Name> {
    match table {
        TableReference::Bare { table } => Ok(Name { value: table.to_string(), span: statement.span }),
        qualified => Err(Error::not_yet(format!("tables in another schema ({qualified})")).at(Some(statement.span))),
    }
}

/// The first words of a statement, as its tag.
fn first_words(text: &str, words: usize) -> String {
    text.split_whitespace().take(words).collect::<Vec<_>>().join(" ").to_uppercase()
}

/// DataFusion's parser counts places from the start of the statement's text; ours from the start of the input.
pub(super) fn in_statement(error: Error, statement: &ParsedStatement) -> Error {
    let start = statement.span.start;
    let shift = |place: &mut crate::error::Location| {
        if place.line == 1 {
            place.column += start.column.saturating_sub(1);
        }
        place.line += start.line.saturating_sub(1);
    };
    match error {
        Error::InvalidInput { code, message, span: Some(mut span), help } => {
            shift(&mut span.start);
            shift(&mut span.end);
            Error::InvalidInput { code, message, span: Some(span), help }
        }
        error => error.at(Some(statement.span)),
    }
}
