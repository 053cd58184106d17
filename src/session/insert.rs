//! INSERT INTO a memory stream or a table.
//!
//! Values are matched to columns by position, or by the names given, and cast to the columns' types. What one INSERT
//! brings to a stream is added all at once, after all of it was computed and checked.

use std::sync::Arc;

use arrow::array::{Array, RecordBatch};
use arrow::compute::concat_batches;
use arrow::datatypes::{Field, FieldRef, Schema, SchemaRef};
use datafusion::common::{Column, DFSchema, ScalarValue, TableReference};
use datafusion::datasource::provider_as_source;
use datafusion::execution::SessionState;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder};
use datafusion::sql::sqlparser::ast::ExprWithAlias;

use super::context::UNKNOWN_RELATION;
use super::exact::{exact, fitted, may_refuse};
use super::{Answer, Session};
use crate::catalog::{Kind, StreamDef, StreamTable};
use crate::error::{Code, Error, Result, closest};
use crate::parser::{ParsedStatement, QueryText, ast, read_literals};
use crate::planner;

/// Where the rows go.
struct Into<'a> {
    name: &'a str,
    /// `stream s`, `table t`
    words: String,
    /// The columns that INSERT can give.
    columns: &'a [FieldRef],
}

impl Session {
    pub(super) fn insert(&self, insert: &ast::Insert, statement: &ParsedStatement) -> Result<Answer> {
        refuse_variants(insert)?;
        let ast::TableObject::TableName(name) = &insert.table else {
            return Err(Error::not_yet("INSERT INTO a table function").at(Some(statement.span)));
        };
        let Some(source) = &insert.source else {
            return Err(Error::invalid_at(statement.span, "INSERT without VALUES or SELECT"));
        };
        let source = QueryText {
            ast: (**source).clone(),
            text: source.to_string(),
            watermarks: Vec::new(),
            within_watermark: Vec::new(),
            span: statement.span,
        };
        let state = self.state();
        let table = state_name(&state, name)?;
        let answer = match table {
            TableReference::Bare { table } if self.catalog.kind(&table) == Some(Kind::Stream) => {
                let stream = self.catalog.stream(&table);
                let stream = stream.ok_or_else(|| Error::internal(format!("stream {table} is lost")))?;
                self.insert_into_stream(&state, &stream, insert, &source)
            }
            table => self.insert_into_table(&state, table, insert, &source),
        };
        answer.map_err(|error| match error.to_string().starts_with(UNKNOWN_RELATION) {
            true => error.at(planner::hints::place(name)),
            false => planner::hints::better(error, &state, insert),
        })
    }

    fn insert_into_stream(
        &self,
        state: &SessionState,
        stream: &StreamDef,
        insert: &ast::Insert,
        source: &QueryText,
    ) -> Result<Answer> {
        let Some(rows) = &stream.memory else {
            let message = format!("stream {} has connector '{}'", stream.name, stream.connector.name());
            return Err(Error::invalid(message).help("only a memory stream, made without WITH, takes INSERT"));
        };
        if insert.overwrite {
            return Err(Error::invalid("INSERT OVERWRITE: a stream only grows").help("INSERT INTO"));
        }
        let into = Into { name: &stream.name, words: format!("stream {}", stream.name), columns: stream.fields() };
        let plan = self.values_for(state, &into, &insert.columns, source, |_| None)?;
        let schema = Arc::new(Schema::new(into.columns.to_vec()));
        let batch = checked(&into.words, schema, &self.collect(state, &plan)?)?;
        let inserted = batch.num_rows();
        rows.insert(vec![batch])?;
        Ok(Answer::done(format!("INSERT 0 {inserted}")))
    }

    fn insert_into_table(
        &self,
        state: &SessionState,
        table: TableReference,
        insert: &ast::Insert,
        source: &QueryText,
    ) -> Result<Answer> {
        let provider = self
            .block_on(async { self.context.table_provider(table.clone()).await.map_err(Error::from) })
            .map_err(|e| self.with_closest_name(e))?;
        if (provider.as_ref() as &dyn std::any::Any).downcast_ref::<StreamTable>().is_some() {
            return Err(Error::internal(format!("{table} is a stream under another name")));
        }
        if let Some(query) = self.writer_of(table.table()) {
            let message = format!("table {} is the result of query {query}", table.table());
            return Err(Error::invalid(message).help("only its query writes it"));
        }
        let schema = provider.schema();
        let into = Into { name: table.table(), words: format!("table {table}"), columns: schema.fields() };
        let default = |column: &str| provider.get_column_default(column).cloned();
        let plan = self.values_for(state, &into, &insert.columns, source, default)?;
        let target = provider_as_source(provider.clone());
        let op = if insert.overwrite { InsertOp::Overwrite } else { InsertOp::Append };
        let plan = LogicalPlanBuilder::insert_into(plan, table.clone(), target, op).and_then(|b| b.build());
        let counted = self.collect(state, &plan?)?;
        Ok(Answer::done(format!("INSERT 0 {}", count(&counted))))
    }

    /// The rows to insert: every column of the target, in its order and of its type.
    fn values_for(
        &self,
        state: &SessionState,
        into: &Into<'_>,
        named: &[ast::ObjectName],
        source: &QueryText,
        default: impl Fn(&str) -> Option<Expr>,
    ) -> Result<LogicalPlan> {
        let places = places(into, named)?;
        let given: Vec<&FieldRef> = places.iter().map(|at| &into.columns[*at]).collect();
        let values = values_only(&source.ast);
        let mut settled = values.is_none();
        let plan = match values {
            Some(values) => values_plan(state, into, &given, values).map_err(|e| e.at(Some(source.span)))?,
            None => self.plan_bounded(state, source)?,
        };
        let found = plan.schema().fields().len();
        if found != given.len() {
            let message = format!("{found} values for the {} columns of {}", given.len(), into.words);
            let names: Vec<_> = given.iter().map(|f| f.name().as_str()).collect();
            return Err(Error::invalid_at(source.span, message).help(format!("columns: {}", names.join(", "))));
        }
        let columns = into.columns.iter().enumerate().map(|(at, field)| {
            let value = match places.iter().position(|place| *place == at) {
                Some(given) => Expr::Column(Column::from(plan.schema().qualified_field(given))),
                None => match default(field.name()) {
                    Some(default) => {
                        settled = false;
                        default
                    }
                    None => Expr::Literal(ScalarValue::Null, None),
                },
            };
            Ok(fitted(value, plan.schema(), field.data_type(), field.name())?.alias(field.name()))
        });
        let columns = columns.collect::<Result<Vec<_>>>().map_err(|e| e.at(Some(source.span)))?;
        let plan = LogicalPlanBuilder::from(plan).project(columns).and_then(|b| b.build())?;
        // A query's arithmetic is checked already; that of VALUES and DEFAULT is not.
        if settled { Ok(plan) } else { planner::settle(state, plan) }
    }
}

/// For each value given, the place of its column in the target.
fn places(into: &Into<'_>, named: &[ast::ObjectName]) -> Result<Vec<usize>> {
    if named.is_empty() {
        return Ok((0..into.columns.len()).collect());
    }
    let mut places = Vec::with_capacity(named.len());
    for name in named {
        let [ast::ObjectNamePart::Identifier(ident)] = name.0.as_slice() else {
            return Err(Error::invalid(format!("{name} is no column of {}", into.words)));
        };
        let written = match ident.quote_style {
            Some(_) => ident.value.clone(),
            None => ident.value.to_lowercase(),
        };
        let at = column_named(&written, into.columns, into.name, &into.words, "insert into")
            .map_err(|e| e.at(planner::hints::place(name)))?;
        if places.contains(&at) {
            return Err(Error::invalid(format!("column {written} is named twice")));
        }
        places.push(at);
    }
    Ok(places)
}

/// The place of a column that a statement wants to change: `what` it does to it, and in `words`.
pub(super) fn column_named(written: &str, columns: &[FieldRef], table: &str, words: &str, what: &str) -> Result<usize> {
    let names = || columns.iter().map(|f| f.name().as_str());
    names().position(|name| name == written).ok_or_else(|| {
        let error = Error::invalid(format!("{words} has no column {written} to {what}")).coded(Code::UnknownColumn);
        error.help(match closest(written, names()) {
            Some(name) => format!("did you mean \"{name}\"?  ({table}: {})", join(names())),
            None => format!("({table}: {})", join(names())),
        })
    })
}

fn join<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

/// The rows of a query that is nothing but VALUES.
fn values_only(query: &ast::Query) -> Option<&ast::Values> {
    match query.body.as_ref() {
        ast::SetExpr::Values(values)
            if query.with.is_none() && query.order_by.is_none() && query.limit_clause.is_none() =>
        {
            Some(values)
        }
        _ => None,
    }
}

/// VALUES typed by the columns that they go to, not by each other: `('2024-01-01'), (NULL)` are two timestamps.
fn values_plan(
    state: &SessionState,
    into: &Into<'_>,
    columns: &[&FieldRef],
    values: &ast::Values,
) -> Result<LogicalPlan> {
    let empty = DFSchema::empty();
    let mut rows = Vec::with_capacity(values.rows.len());
    for (at, row) in values.rows.iter().enumerate() {
        if row.content.len() != columns.len() {
            let names = join(columns.iter().map(|f| f.name().as_str()));
            let message = format!(
                "row {} has {} values for the {} columns of {}",
                at + 1,
                row.content.len(),
                columns.len(),
                into.words
            );
            return Err(Error::invalid(message).help(format!("columns: {names}")));
        }
        let value = |(expr, column): (&ast::Expr, &&FieldRef)| {
            let mut expr = expr.clone();
            read_literals(&mut expr)?;
            let expr = ExprWithAlias { expr, alias: None };
            let value = state.create_logical_expr_from_sql_expr(expr, &empty).map_err(Error::from)?;
            // What has no type yet (DEFAULT, a subquery) is cast where it has one.
            Ok(match value.get_type(&empty) {
                Ok(from) if may_refuse(&from, column.data_type()) => {
                    exact(value, column.data_type(), column.name(), Some(at + 1))
                }
                _ => value,
            })
        };
        rows.push(row.content.iter().zip(columns).map(value).collect::<Result<Vec<_>>>()?);
    }
    let typed = columns.iter().map(|f| Field::new(f.name(), f.data_type().clone(), true)).collect::<Vec<_>>();
    let schema = DFSchema::from_unqualified_fields(typed.into(), Default::default())?;
    let plan = LogicalPlanBuilder::values_with_schema(rows, &Arc::new(schema)).and_then(|b| b.build());
    plan.map_err(Error::from)
}

/// One batch of the stream's own schema.
///
/// # Errors
/// A NULL where the column is NOT NULL, by row and column.
fn checked(words: &str, schema: SchemaRef, batches: &[RecordBatch]) -> Result<RecordBatch> {
    let internal = |e: arrow::error::ArrowError| Error::internal(e.to_string());
    let Some(first) = batches.first() else { return Ok(RecordBatch::new_empty(schema)) };
    let all = concat_batches(&first.schema(), batches).map_err(internal)?;
    for (field, column) in schema.fields().iter().zip(all.columns()) {
        let null = (0..column.len()).find(|row| column.is_null(*row));
        if let Some(row) = null.filter(|_| !field.is_nullable()) {
            let message = format!("row {} has NULL for {}, which is NOT NULL in {words}", row + 1, field.name());
            return Err(Error::invalid(message));
        }
    }
    RecordBatch::try_new(schema, all.columns().to_vec()).map_err(internal)
}

/// The one number that DataFusion answers to INSERT, COPY, DELETE and UPDATE.
pub(super) fn count(batches: &[RecordBatch]) -> u64 {
    use arrow::array::AsArray;
    use arrow::datatypes::UInt64Type;
    let of = |batch: &RecordBatch| {
        let column = batch.columns().first()?.as_primitive_opt::<UInt64Type>()?;
        Some(column.values().iter().sum::<u64>())
    };
    batches.iter().filter_map(of).sum()
}

/// A table's name as DataFusion resolves it.
pub(super) fn state_name(state: &SessionState, name: &ast::ObjectName) -> Result<TableReference> {
    let fold = state.config_options().sql_parser.enable_ident_normalization;
    datafusion::sql::planner::object_name_to_table_reference(name.clone(), fold).map_err(Error::from)
}

fn refuse_variants(insert: &ast::Insert) -> Result<()> {
    let refused = [
        ("ON CONFLICT", insert.on.is_some()),
        ("RETURNING", insert.returning.is_some()),
        ("INSERT … SET", !insert.assignments.is_empty()),
        ("INSERT … PARTITION", insert.partitioned.is_some() || !insert.after_columns.is_empty()),
        ("INSERT OR …", insert.or.is_some() || insert.ignore),
        ("REPLACE INTO", insert.replace_into),
        ("INSERT … AS alias", insert.table_alias.is_some() || insert.insert_alias.is_some()),
        ("INSERT … OUTPUT", insert.output.is_some()),
        ("INSERT … SETTINGS", insert.settings.is_some()),
        ("INSERT … FORMAT", insert.format_clause.is_some()),
        ("INSERT with a priority", insert.priority.is_some()),
    ];
    match refused.iter().find(|(_, there)| *there) {
        Some((what, _)) => Err(Error::not_yet(what)),
        None => Ok(()),
    }
}
