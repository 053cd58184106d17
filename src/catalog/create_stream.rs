//! CREATE STREAM → [`StreamDef`]: options, columns, computed columns and the watermark are checked here.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::DFSchema;
use datafusion::common::tree_node::TreeNode;
use datafusion::execution::SessionState;
use datafusion::logical_expr::{Expr, ExprSchemable};
use datafusion::sql::sqlparser::ast::ExprWithAlias;

use super::connector::{SourceConnector, memory_rows};
use super::types::{canonical, from_sql, to_sql};
use super::{SessionClock, StreamColumn, StreamDef, pin};
use crate::error::{Code, Error, Result, closest};
use crate::parser::{ColumnDef, ColumnKind, CreateStream, Interval, Name, WatermarkDef, ast, read_literals};

/// A checked CREATE STREAM.
pub struct Created {
    pub stream: StreamDef,
    /// Where the statement had no column list: the text that pins what was inferred.
    pub pinned: Option<String>,
}

/// Checks a CREATE STREAM and defines the stream. `sql` is the statement's own text; `state` plans computed columns;
/// generators follow `clock`.
///
/// # Errors
/// A wrong option, type, expression or watermark, at its place; a schema that can't be inferred.
pub fn create(create: &CreateStream, sql: String, state: &SessionState, clock: &SessionClock) -> Result<Created> {
    let name = &create.name;
    let here = |e: Error| e.at(Some(name.span));
    let mut options = create.options.clone().unwrap_or_default();
    let connector = SourceConnector::choose(&mut options).map_err(here)?;
    let generated = connector.own_schema(&options).map_err(here)?;
    let declared = create.columns.as_deref().filter(|columns| !columns.is_empty());
    let inferred = match (&generated, declared) {
        (None, None) => Some(inferred(&connector.infer(&name.value, &options).map_err(here)?)?),
        _ => None,
    };
    let (source_schema, metadata) = match (&generated, &inferred, declared) {
        (Some(schema), _, _) | (None, Some(schema), _) => (schema.clone(), Vec::new()),
        (None, None, declared) => source_columns(name, declared.unwrap_or_default(), connector)?,
    };
    if let (Some(schema), Some(columns)) = (&generated, declared) {
        check_generated(columns, schema, connector)?;
    }
    let columns = match declared {
        Some(columns) => stream_columns(columns, &source_schema, state)?,
        None => source_schema.fields().iter().map(|f| given(f)).collect(),
    };
    let fields = columns.iter().map(|c| Field::new(&c.name, c.data_type.clone(), c.nullable));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    if let Some(watermark) = &create.watermark {
        check_watermark(&name.value, watermark, &schema)?;
    }
    let pinned = inferred.map(|schema| pin::text(create, &schema));
    let stream = StreamDef {
        name: name.value.clone(),
        columns,
        schema,
        memory: memory_rows(connector, &name.value, &source_schema),
        source_schema,
        metadata,
        watermark: create.watermark.clone(),
        connector,
        options,
        clock: clock.clone(),
        sql: pinned.clone().unwrap_or(sql),
    };
    Ok(Created { stream, pinned })
}

/// Inferred columns have the types that their CREATE text gives.
fn inferred(schema: &SchemaRef) -> Result<SchemaRef> {
    let fields = schema.fields().iter().map(|f| Ok(Field::new(f.name(), canonical(f.data_type())?, f.is_nullable())));
    Ok(Arc::new(Schema::new(fields.collect::<Result<Vec<_>>>()?)))
}

fn given(field: &Field) -> StreamColumn {
    StreamColumn {
        name: field.name().clone(),
        data_type: field.data_type().clone(),
        nullable: field.is_nullable(),
        computed: None,
    }
}

/// The schema that the source gives, fields first, and the keys of its METADATA columns.
fn source_columns(
    stream: &Name,
    columns: &[ColumnDef],
    connector: SourceConnector,
) -> Result<(SchemaRef, Vec<String>)> {
    let (mut fields, mut from_connector, mut keys) = (Vec::new(), Vec::new(), Vec::new());
    for column in columns {
        refuse_twice(columns, column)?;
        let field = |sql_type| -> Result<Field> {
            let data_type = from_sql(sql_type).map_err(|e| e.at(Some(column.name.span)))?;
            Ok(Field::new(&column.name.value, data_type, !column.not_null))
        };
        match (&column.kind, &column.data_type) {
            (ColumnKind::Computed(_), _) => {}
            (_, None) => return Err(Error::invalid_at(column.name.span, "a column needs a type")),
            (ColumnKind::Field, Some(sql_type)) => fields.push(field(sql_type)?),
            (ColumnKind::Metadata(key), Some(sql_type)) => {
                check_metadata(column, key, connector)?;
                from_connector.push(field(sql_type)?);
                keys.push(key.clone());
            }
        }
    }
    if fields.is_empty() {
        let message = format!("stream {} has no column that is a field of its records", stream.value);
        return Err(Error::invalid_at(stream.span, message));
    }
    fields.extend(from_connector);
    Ok((Arc::new(Schema::new(fields)), keys))
}

/// What is declared of a generator must be what it gives.
fn check_generated(columns: &[ColumnDef], generated: &SchemaRef, connector: SourceConnector) -> Result<()> {
    let names: Vec<&str> = generated.fields().iter().map(|f| f.name().as_str()).collect();
    for column in columns {
        let (written, span) = (column.name.value.as_str(), column.name.span);
        refuse_twice(columns, column)?;
        let sql_type = match (&column.kind, &column.data_type) {
            (ColumnKind::Computed(_), _) => continue,
            (ColumnKind::Metadata(key), _) => return check_metadata(column, key, connector),
            (ColumnKind::Field, None) => return Err(Error::invalid_at(span, "a column needs a type")),
            (ColumnKind::Field, Some(sql_type)) => sql_type,
        };
        let Some((_, field)) = generated.column_with_name(written) else {
            let error = Error::invalid_at(span, format!("connector '{}' gives no column {written}", connector.name()))
                .coded(Code::UnknownColumn);
            return Err(match closest(written, names.iter().copied()) {
                Some(name) => error.help(format!("did you mean \"{name}\"?  (it gives {})", names.join(", "))),
                None => error.help(format!("it gives {}", names.join(", "))),
            });
        };
        let (wanted, found) = (from_sql(sql_type).map_err(|e| e.at(Some(span)))?, canonical(field.data_type())?);
        if wanted != found || (column.not_null && field.is_nullable()) {
            let null = if field.is_nullable() { "" } else { " NOT NULL" };
            let message = format!("connector '{}' gives {written} as {}{null}", connector.name(), to_sql(&found));
            return Err(Error::invalid_at(span, message).help("a computed column can hold another type of it"));
        }
    }
    Ok(())
}

fn refuse_twice(columns: &[ColumnDef], column: &ColumnDef) -> Result<()> {
    match columns.iter().filter(|c| c.name == column.name).nth(1) {
        None => Ok(()),
        Some(second) => {
            let message = format!("column {} is declared twice", second.name.value);
            Err(Error::invalid_at(second.name.span, message))
        }
    }
}

fn check_metadata(column: &ColumnDef, key: &str, connector: SourceConnector) -> Result<()> {
    let known = connector.metadata_keys();
    if known.contains(&key) {
        return Ok(());
    }
    let message = format!("connector '{}' has no metadata '{key}'", connector.name());
    let error = Error::invalid_at(column.name.span, message);
    Err(match closest(key, known.iter().copied()) {
        Some(name) => error.help(format!("did you mean '{name}'?")),
        None if known.is_empty() => error.help("it has none at all"),
        None => error.help(format!("one of {}", known.join(", "))),
    })
}

/// The columns in declared order, computed ones planned over the source's columns and the computed ones before them.
fn stream_columns(columns: &[ColumnDef], source: &SchemaRef, state: &SessionState) -> Result<Vec<StreamColumn>> {
    let mut visible: Vec<Field> = source.fields().iter().map(|f| f.as_ref().clone()).collect();
    let mut out = Vec::with_capacity(columns.len());
    for column in columns {
        let defined = match &column.kind {
            ColumnKind::Computed(expr) => computed(column, expr, &visible, state)?,
            _ => match visible.iter().find(|f| *f.name() == column.name.value) {
                Some(field) => given(field),
                None => return Err(Error::internal(format!("column {} is lost", column.name.value))),
            },
        };
        if defined.computed.is_some() {
            visible.push(Field::new(&defined.name, defined.data_type.clone(), defined.nullable));
        }
        out.push(defined);
    }
    Ok(out)
}

fn computed(column: &ColumnDef, expr: &ast::Expr, visible: &[Field], state: &SessionState) -> Result<StreamColumn> {
    let place = |e: Error| e.at(Some(column.name.span));
    if column.not_null {
        return Err(Error::invalid_at(column.name.span, "a computed column is NULL where its expression is")
            .help("leave NOT NULL out"));
    }
    let schema = DFSchema::try_from(Schema::new(visible.to_vec())).map_err(|e| place(Error::from(e)))?;
    let mut expr = expr.clone();
    read_literals(&mut expr)?;
    let expr = ExprWithAlias { expr, alias: None };
    let mut expr = state.create_logical_expr_from_sql_expr(expr, &schema).map_err(|e| place(Error::from(e)))?;
    if let Some(what) = needs_more_than_a_row(&expr) {
        let message = format!("column {} can't be computed from {what}: it sees one row", column.name.value);
        return Err(Error::invalid_at(column.name.span, message));
    }
    if let Some(sql_type) = &column.data_type {
        let wanted = from_sql(sql_type).map_err(place)?;
        expr = expr.cast_to(&wanted, &schema).map_err(|e| place(Error::from(e)))?;
    }
    // Typing alone lets some wrong arguments through; making the physical expression does not.
    state.create_physical_expr(expr.clone(), &schema).map_err(|e| place(Error::from(e)))?;
    let data_type = expr.get_type(&schema).map_err(|e| place(Error::from(e)))?;
    if data_type == DataType::Null {
        return Err(Error::invalid_at(column.name.span, "the expression is NULL of no type")
            .help(format!("{} type AS (…)", column.name.value)));
    }
    let nullable = expr.nullable(&schema).map_err(|e| place(Error::from(e)))?;
    Ok(StreamColumn { name: column.name.value.clone(), data_type, nullable, computed: Some(expr) })
}

fn needs_more_than_a_row(expr: &Expr) -> Option<&'static str> {
    let mut found = None;
    let _ = expr.apply(|e| {
        found = found.or(match e {
            Expr::AggregateFunction(_) => Some("an aggregate"),
            Expr::WindowFunction(_) => Some("a window function"),
            Expr::ScalarSubquery(_) | Expr::InSubquery(_) | Expr::Exists(_) => Some("a subquery"),
            Expr::Unnest(_) => Some("UNNEST"),
            Expr::Placeholder(_) => Some("a parameter"),
            _ => None,
        });
        Ok(datafusion::common::tree_node::TreeNodeRecursion::Continue)
    });
    found
}

fn check_watermark(stream: &str, watermark: &WatermarkDef, schema: &SchemaRef) -> Result<()> {
    let column = &watermark.column;
    let Some((_, field)) = schema.column_with_name(&column.value) else {
        let error = Error::invalid_at(column.span, format!("stream {stream} has no column {}", column.value))
            .coded(Code::UnknownColumn);
        let names: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
        return Err(match closest(&column.value, names.iter().copied()) {
            Some(name) => error.help(format!("did you mean \"{name}\"?  ({stream}: {})", names.join(", "))),
            None => error.help(format!("({stream}: {})", names.join(", "))),
        });
    };
    if !matches!(field.data_type(), DataType::Timestamp(..) | DataType::Date32 | DataType::Date64) {
        let message = format!("a watermark needs a time, and {} is {}", column.value, to_sql(field.data_type()));
        return Err(Error::invalid_at(column.span, message).help("a TIMESTAMP or DATE column, computed if need be"));
    }
    let negative = |i: &Interval| i.months < 0 || i.micros < 0;
    let given = [("delay", Some(&watermark.delay)), ("MAX FUTURE SKEW", watermark.max_future_skew.as_ref())];
    for (what, interval) in given.into_iter().chain([("IDLE AFTER", watermark.idle_after.as_ref())]) {
        if interval.is_some_and(negative) {
            return Err(Error::invalid_at(watermark.span, format!("the watermark's {what} is negative")));
        }
    }
    if watermark.idle_after.is_some_and(|i| i.months == 0 && i.micros == 0) {
        return Err(Error::invalid_at(watermark.span, "IDLE AFTER nothing: the input would always be idle"));
    }
    Ok(())
}
