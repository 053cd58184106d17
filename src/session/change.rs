//! UPDATE and DELETE of a table in memory.
//!
//! What is changed is found by a SELECT over the table, planned as every other: its arithmetic, its subqueries and its literals
//! are those of the language, and new values go into their columns as INSERT puts them there. Nothing is changed before all of
//! it was computed.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, UInt64Array};
use arrow::compute::{concat_batches, filter_record_batch, interleave};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef, UInt64Type};
use datafusion::common::TableReference;
use datafusion::datasource::{MemTable, provider_as_source};
use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlanBuilder;

use super::exact::fitted;
use super::insert::{column_named, state_name};
use super::{Answer, Session};
use crate::catalog::Kind;
use crate::error::{Error, Result};
use crate::parser::{ParsedStatement, QueryText, ast};
use crate::planner::{hints, matching};

/// An UPDATE or DELETE, taken apart.
struct Change<'a> {
    word: &'static str,
    table: &'a ast::TableFactor,
    name: &'a ast::ObjectName,
    condition: Option<&'a ast::Expr>,
}

/// A table in memory, with the columns that get new values, by their places.
struct Changed<'a> {
    name: &'a str,
    table: &'a MemTable,
    schema: SchemaRef,
    columns: Vec<usize>,
}

impl Session {
    pub(super) fn update(&self, update: &ast::Update, statement: &ParsedStatement) -> Result<Answer> {
        refuse(
            "UPDATE",
            &[
                ("FROM", update.from.is_some()),
                ("RETURNING", update.returning.is_some()),
                ("OUTPUT", update.output.is_some()),
                ("OR …", update.or.is_some()),
                ("ORDER BY", !update.order_by.is_empty()),
                ("LIMIT", update.limit.is_some()),
                ("hints", !update.optimizer_hints.is_empty()),
            ],
        )
        .map_err(|e| e.at(Some(statement.span)))?;
        let change = Change::new("UPDATE", std::slice::from_ref(&update.table), update.selection.as_ref())
            .map_err(|e| e.at(Some(statement.span)))?;
        self.change_rows(&change, &update.assignments, statement)
    }

    pub(super) fn delete(&self, delete: &ast::Delete, statement: &ParsedStatement) -> Result<Answer> {
        refuse(
            "DELETE",
            &[
                ("of several tables", !delete.tables.is_empty()),
                ("USING", delete.using.is_some()),
                ("RETURNING", delete.returning.is_some()),
                ("OUTPUT", delete.output.is_some()),
                ("ORDER BY", !delete.order_by.is_empty()),
                ("LIMIT", delete.limit.is_some()),
                ("hints", !delete.optimizer_hints.is_empty()),
            ],
        )
        .map_err(|e| e.at(Some(statement.span)))?;
        let (ast::FromTable::WithFromKeyword(from) | ast::FromTable::WithoutKeyword(from)) = &delete.from;
        let change = Change::new("DELETE", from, delete.selection.as_ref()).map_err(|e| e.at(Some(statement.span)))?;
        self.change_rows(&change, &[], statement)
    }

    fn change_rows(
        &self,
        change: &Change<'_>,
        assignments: &[ast::Assignment],
        statement: &ParsedStatement,
    ) -> Result<Answer> {
        let state = self.state();
        let place = hints::place(change.name);
        let name = match state_name(&state, change.name)? {
            TableReference::Bare { table } => table.to_string(),
            other => return Err(Error::not_yet(format!("tables in another schema ({other})")).at(place)),
        };
        let provider = self.changeable(&name).map_err(|e| e.at(place))?;
        let Some(table) = (provider.as_ref() as &dyn std::any::Any).downcast_ref::<MemTable>() else {
            let error = Error::not_yet(format!("{} of table {name}, which lies in files", change.word));
            return Err(error.at(place).help(format!("CREATE TABLE … AS SELECT * FROM {name} makes one that can be")));
        };
        let schema = table_schema(table);
        let mut columns = Vec::with_capacity(assignments.len());
        let mut items = Vec::with_capacity(assignments.len());
        for assignment in assignments {
            let (at, item) = assigned(&state, &name, schema.fields(), assignment)?;
            if columns.contains(&at) {
                let message = format!("column {} is set twice", schema.field(at).name());
                return Err(Error::invalid(message).at(hints::place(&assignment.target)));
            }
            columns.push(at);
            items.push(item);
        }
        let ast = matching::block(items, change.table.clone(), change.condition.cloned())?;
        let query = QueryText {
            text: ast.to_string(),
            ast,
            watermarks: Vec::new(),
            within_watermark: Vec::new(),
            span: statement.span,
        };
        let changed = Changed { name: &name, table, schema, columns };
        let count = self.apply(&state, &changed, &query).map_err(|e| hints::better(e, &state, &query.ast))?;
        Ok(Answer::done(format!("{} {count}", change.word)))
    }

    /// The table of that name, if a statement may change it.
    fn changeable(&self, name: &str) -> Result<Arc<dyn datafusion::catalog::TableProvider>> {
        match self.catalog.kind(name) {
            Some(Kind::Stream) => {
                return Err(Error::invalid(format!("{name} is a stream: its rows are never changed")));
            }
            Some(Kind::View) => return Err(Error::invalid(format!("{name} is a view: change what it reads"))),
            Some(Kind::Table) | None => {}
        }
        if let Some(query) = self.writer_of(name) {
            let message = format!("table {name} is the result of query {query}: only its query changes it");
            return Err(Error::invalid(message));
        }
        if self.catalog.is_result(name) {
            let message = format!("table {name} is the result of a query: only its query changes it");
            return Err(Error::invalid(message).help(format!("CREATE TABLE … AS SELECT * FROM {name}")));
        }
        let table = TableReference::bare(name);
        self.block_on(async { self.context.table_provider(table).await.map_err(Error::from) })
            .map_err(|e| self.with_closest_name(e))
    }

    /// Finds the rows, computes their new values, and puts the table's new rows in place of the old.
    fn apply(&self, state: &SessionState, changed: &Changed<'_>, query: &QueryText) -> Result<usize> {
        let parts = self.block_on(async {
            let mut parts = Vec::with_capacity(changed.table.batches.len());
            for partition in &changed.table.batches {
                parts.push(partition.read().await.clone());
            }
            Ok(parts)
        })?;
        let plan = self.plan(state, query)?;
        let number = unused_name(&changed.schema);
        let numbered = provider_as_source(Arc::new(numbered(&changed.schema, &parts, &number)?));
        let plan = matching::with_number(plan, &numbered, &number).map_err(|e| e.at(Some(query.span)))?;
        let fields = plan.schema().columns();
        let (Some(last), true) = (fields.last(), fields.len() > changed.columns.len()) else {
            return Err(Error::internal("rows without a number"));
        };
        let mut columns = Vec::with_capacity(fields.len());
        for (from, at) in fields.iter().zip(&changed.columns) {
            let field = changed.schema.field(*at);
            let value = datafusion::logical_expr::Expr::Column(from.clone());
            columns.push(fitted(value, plan.schema(), field.data_type(), field.name())?.alias(field.name()));
        }
        columns.push(datafusion::logical_expr::Expr::Column(last.clone()));
        let plan = LogicalPlanBuilder::from(plan).project(columns).and_then(|b| b.build())?;
        let found = self.collect(state, &super::context::bounded(plan)?)?;
        let Some(first) = found.first() else { return Ok(0) };
        let found = concat_batches(&first.schema(), &found)?;
        let numbers = found.column(found.num_columns() - 1);
        let Some(numbers) = numbers.as_primitive_opt::<UInt64Type>() else {
            return Err(Error::internal("numbers of rows of another type"));
        };
        let places: HashMap<u64, usize> = numbers.values().iter().enumerate().map(|(at, n)| (*n, at)).collect();
        let mut from = 0;
        let mut new = Vec::with_capacity(parts.len());
        for part in &parts {
            let mut batches = Vec::with_capacity(part.len());
            for batch in part {
                let rows = from..from + batch.num_rows() as u64;
                from = rows.end;
                let places: Vec<Option<usize>> = rows.map(|row| places.get(&row).copied()).collect();
                batches.push(changed.batch(batch, &found, &places)?);
            }
            new.push(batches);
        }
        self.block_on(async {
            for (partition, batches) in changed.table.batches.iter().zip(new) {
                *partition.write().await = batches;
            }
            Ok(())
        })?;
        Ok(places.len())
    }
}

impl<'a> Change<'a> {
    fn new(word: &'static str, from: &'a [ast::TableWithJoins], condition: Option<&'a ast::Expr>) -> Result<Self> {
        match from {
            [ast::TableWithJoins { relation: table @ ast::TableFactor::Table { name, args: None, .. }, joins }]
                if joins.is_empty() =>
            {
                Ok(Change { word, table, name, condition })
            }
            _ => Err(Error::not_yet(format!("{word} of anything but one table"))
                .help("another table can stand in a subquery: WHERE k IN (SELECT k FROM u)")),
        }
    }
}

impl Changed<'_> {
    /// One batch with its new values, or without the rows that go. `places`: for each of its rows, where its new values stand.
    fn batch(&self, batch: &RecordBatch, found: &RecordBatch, places: &[Option<usize>]) -> Result<RecordBatch> {
        if places.iter().all(Option::is_none) {
            return Ok(batch.clone());
        }
        if self.columns.is_empty() {
            let kept: BooleanArray = places.iter().map(|place| Some(place.is_none())).collect();
            return Ok(filter_record_batch(batch, &kept)?);
        }
        let from: Vec<(usize, usize)> =
            places.iter().enumerate().map(|(row, place)| place.map_or((0, row), |at| (1, at))).collect();
        let mut columns = batch.columns().to_vec();
        for (values, at) in found.columns().iter().zip(&self.columns) {
            let field = self.schema.field(*at);
            let mixed = interleave(&[columns[*at].as_ref(), values.as_ref()], &from)?;
            if !field.is_nullable() && mixed.null_count() > 0 {
                let (column, table) = (field.name(), self.name);
                return Err(Error::invalid(format!("{column} would be NULL, and is NOT NULL in table {table}")));
            }
            columns[*at] = mixed;
        }
        Ok(RecordBatch::try_new(self.schema.clone(), columns)?)
    }
}

fn table_schema(table: &MemTable) -> SchemaRef {
    datafusion::catalog::TableProvider::schema(table)
}

/// The place of the column that an assignment sets, and what it sets it to under the column's name.
fn assigned(
    state: &SessionState,
    table: &str,
    columns: &[FieldRef],
    assignment: &ast::Assignment,
) -> Result<(usize, ast::SelectItem)> {
    let ast::AssignmentTarget::ColumnName(target) = &assignment.target else {
        let error = Error::not_yet("SET (a, b) = …").at(hints::place(&assignment.target));
        return Err(error.help("SET a = …, b = …"));
    };
    let ident = match target.0.as_slice() {
        [.., ast::ObjectNamePart::Identifier(ident)] => ident,
        _ => return Err(Error::invalid(format!("{target} is no column of table {table}")).at(hints::place(target))),
    };
    let fold = state.config_options().sql_parser.enable_ident_normalization;
    let written = if ident.quote_style.is_none() && fold { ident.value.to_lowercase() } else { ident.value.clone() };
    let at = column_named(&written, columns, table, &format!("table {table}"), "set")
        .map_err(|e| e.at(hints::place(target)))?;
    let alias = ast::Ident::with_quote('"', columns[at].name());
    Ok((at, ast::SelectItem::ExprWithAlias { expr: assignment.value.clone(), alias }))
}

/// A name that no column has.
fn unused_name(schema: &Schema) -> String {
    let mut name = "levada_number".to_string();
    while schema.index_of(&name).is_ok() {
        name.push('_');
    }
    name
}

/// The table's rows, and the number of each.
fn numbered(schema: &SchemaRef, parts: &[Vec<RecordBatch>], number: &str) -> Result<MemTable> {
    let mut fields = schema.fields().to_vec();
    fields.push(Arc::new(Field::new(number, DataType::UInt64, false)));
    let schema = Arc::new(Schema::new(fields));
    let mut from = 0;
    let mut numbered = Vec::with_capacity(parts.len());
    for part in parts {
        let mut batches = Vec::with_capacity(part.len());
        for batch in part {
            let rows = from..from + batch.num_rows() as u64;
            from = rows.end;
            let mut columns = batch.columns().to_vec();
            columns.push(Arc::new(UInt64Array::from_iter_values(rows)) as ArrayRef);
            batches.push(RecordBatch::try_new(schema.clone(), columns)?);
        }
        numbered.push(batches);
    }
    Ok(MemTable::try_new(schema, numbered)?)
}

fn refuse(word: &str, refused: &[(&str, bool)]) -> Result<()> {
    match refused.iter().find(|(_, there)| *there) {
        Some((what, _)) => Err(Error::not_yet(format!("{word} … {what}"))),
        None => Ok(()),
    }
}
