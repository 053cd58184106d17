//! DESCRIBE and SHOW CREATE.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Schema};
use datafusion::common::TableReference;

use super::{Answer, Session, lock};
use crate::catalog::types::to_sql;
use crate::catalog::{Kind, StreamDef};
use crate::error::{Error, Result, in_sql};
use crate::options::OptionValue;
use crate::parser::{Name, ObjectKind, ParsedStatement, Statement, WatchWhat};

impl Session {
    /// The columns that a statement would answer, which is not run.
    ///
    /// # Errors
    /// It answers none that are known before it runs, or is wrong.
    pub fn describe_statement(&self, statement: &ParsedStatement) -> Result<Answer> {
        let query = match &statement.statement {
            Statement::Select(query) => query,
            Statement::Watch { what: WatchWhat::Select(query), .. } => query,
            _ => {
                let message = "the columns of a SELECT are known before it runs, those of another statement are not";
                return Err(Error::invalid(message).at(Some(statement.span)));
            }
        };
        columns(self.plan(&self.state(), query)?.schema().as_arrow(), None)
    }

    /// The statement that made what has this name.
    pub fn made_by(&self, name: &str) -> Option<String> {
        let kind = self.catalog.kind(name);
        kind.and_then(|kind| self.catalog.sql(kind, name))
            .or_else(|| self.catalog.sink(name).map(|sink| sink.sql.clone()))
            .or_else(|| lock(&self.queries).get(name).map(|query| query.sql.clone()))
    }

    /// The columns of a stream, table, view or query; the options of a sink.
    pub(super) fn describe(&self, name: &Name) -> Result<Answer> {
        if let Some(stream) = self.catalog.stream(&name.value) {
            return columns(&stream.schema, Some(&stream));
        }
        if self.catalog.kind(&name.value).is_some() {
            let table = self.block_on(async {
                self.context.table_provider(TableReference::bare(name.value.as_str())).await.map_err(Error::from)
            })?;
            return columns(&table.schema(), None);
        }
        if let Some(sink) = self.catalog.sink(&name.value) {
            let connector = ("connector".to_string(), sink.connector.name().to_string());
            let given = sink.options.entries.iter().map(|e| (e.name.clone(), value(&e.value)));
            let (names, values): (Vec<_>, Vec<_>) = std::iter::once(connector).chain(given).unzip();
            return Answer::table(vec![("option", strings(names)), ("value", strings(values))]);
        }
        if let Some(entry) = lock(&self.queries).get(&name.value) {
            return columns(&entry.schema, None);
        }
        Err(self.catalog.unknown("stream, table, view, sink or query", &name.value).at(Some(name.span)))
    }

    /// The statement that made something.
    pub(super) fn show_create(&self, kind: ObjectKind, name: &Name) -> Result<Answer> {
        let sql = match kind {
            ObjectKind::Stream => self.catalog.sql(Kind::Stream, &name.value),
            ObjectKind::Table => self.catalog.sql(Kind::Table, &name.value),
            ObjectKind::View => self.catalog.sql(Kind::View, &name.value),
            ObjectKind::Sink => self.catalog.sink(&name.value).map(|s| s.sql.clone()),
            ObjectKind::Query => lock(&self.queries).get(&name.value).map(|q| q.sql.clone()),
        };
        match sql {
            Some(sql) => Ok(Answer::Text(format!("{sql};"))),
            None if kind == ObjectKind::Query => Err(self.unknown_query(name)),
            None => Err(self.catalog.unknown(kind.noun(), &name.value).at(Some(name.span))),
        }
    }
}

fn columns(schema: &Schema, stream: Option<&StreamDef>) -> Result<Answer> {
    let fields = schema.fields();
    let mut table: Vec<(&str, ArrayRef)> = vec![
        ("column_name", strings(fields.iter().map(|f| f.name().clone()))),
        ("data_type", strings(fields.iter().map(|f| to_sql(f.data_type())))),
        ("is_nullable", strings(fields.iter().map(|f| if f.is_nullable() { "YES" } else { "NO" }.to_string()))),
    ];
    if let Some(stream) = stream {
        table.push(("kind", strings(stream.columns.iter().map(|c| kind(stream, &c.name)))));
    }
    Answer::table(table)
}

/// The answer of SHOW COLUMNS, which DataFusion gives, with the types' names that DESCRIBE has.
pub(super) fn with_sql_types(answer: Answer) -> Answer {
    let Answer::Rows { schema, rows, notices } = answer else { return answer };
    let Ok(at) = schema.index_of("data_type") else { return Answer::Rows { schema, rows, notices } };
    let rows = rows.map(move |batch| {
        let batch = batch?;
        let mut columns = batch.columns().to_vec();
        let kind = columns[at].data_type().clone();
        let texts = arrow::compute::cast(&columns[at], &DataType::Utf8)?;
        let words: StringArray = texts.as_string::<i32>().iter().map(|text| text.map(in_sql)).collect();
        columns[at] = arrow::compute::cast(&words, &kind)?;
        Ok(RecordBatch::try_new(batch.schema(), columns)?)
    });
    Answer::Rows { schema, rows: Box::new(rows), notices }
}

/// Where a stream's column comes from, and whether it carries the watermark.
fn kind(stream: &StreamDef, column: &str) -> String {
    let keys = stream.metadata.iter().zip(&stream.source_schema.fields()[stream.fields().len()..]);
    let mut words = match stream.columns.iter().find(|c| c.name == column) {
        Some(c) if c.computed.is_some() => "computed".to_string(),
        _ => match keys.into_iter().find(|(_, field)| field.name() == column) {
            Some((key, _)) => format!("metadata '{key}'"),
            None => "field".to_string(),
        },
    };
    if stream.watermark.as_ref().is_some_and(|w| w.column.value == column) {
        words.push_str(", watermark");
    }
    words
}

fn value(value: &OptionValue) -> String {
    match value {
        OptionValue::Text(text) | OptionValue::Number(text) => text.clone(),
        OptionValue::Bool(value) => value.to_string(),
    }
}

fn strings(values: impl IntoIterator<Item = String>) -> ArrayRef {
    Arc::new(values.into_iter().map(Some).collect::<StringArray>())
}
