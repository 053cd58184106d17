//! What a statement answered, and the crate's view of it.

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use async_trait::async_trait;
use sqllogictest::{AsyncDB, DBOutput};
use std::sync::Arc;

use super::values::{Letter, Style, rows};
use super::world::World;
use crate::error::{Error, Result};

/// What a statement answered, whole.
#[derive(Debug, Clone)]
pub enum Outcome {
    Rows {
        schema: SchemaRef,
        batches: Vec<RecordBatch>,
    },
    /// It is done; how many rows it touched.
    Done(u64),
}

impl Outcome {
    /// Lines as rows of one column.
    pub fn of_text(text: &str) -> Result<Self> {
        let schema = Arc::new(Schema::new(vec![Field::new("text", DataType::Utf8, false)]));
        let column: arrow::array::StringArray = text.lines().map(Some).collect();
        let batch = RecordBatch::try_new(schema.clone(), vec![Arc::new(column)]);
        let batch = batch.map_err(|e| Error::internal(e.to_string()))?;
        Ok(Outcome::Rows { schema, batches: vec![batch] })
    }
}

/// Why a statement, or what a record asks for, failed: the message, and what to do about it in a line of its own.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Failure {
    pub text: String,
    /// The class of SQLSTATE that comes nearest.
    pub state: Option<&'static str>,
}

impl Failure {
    /// A message without a class.
    pub fn new(text: impl Into<String>) -> Self {
        Failure { text: text.into(), state: None }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let text = match error.help_text() {
            Some(help) => format!("{error}\nhelp: {help}"),
            None => error.to_string(),
        };
        let state = match error.code() {
            "E0100" => "42000",
            "E0200" => "0A000",
            "E0300" => "22000",
            "E0400" => "XX001",
            "E0500" => "55006",
            "E0600" => "58030",
            "E0700" => "22000",
            "E0800" => "57014",
            _ => "XX000",
        };
        Failure { text, state: Some(state) }
    }
}

/// A connection of the crate: all of a file's share one session.
pub struct Connection(pub Arc<World>);

#[async_trait]
impl AsyncDB for Connection {
    type Error = Failure;
    type ColumnType = Letter;

    async fn run(&mut self, sql: &str) -> Result<DBOutput<Letter>, Failure> {
        Ok(match self.0.execute(sql)? {
            Outcome::Done(count) => DBOutput::StatementComplete(count),
            Outcome::Rows { schema, batches } => {
                let raw = self.0.raw.load(std::sync::atomic::Ordering::SeqCst);
                let style = if raw { Style::Plain } else { self.0.style };
                let rows = rows(&batches, style)?;
                self.0.keep_answered(&rows);
                DBOutput::Rows { types: Letter::all(&schema), rows }
            }
        })
    }

    async fn shutdown(&mut self) {}

    fn engine_name(&self) -> &str {
        "levada"
    }

    fn error_sql_state(error: &Failure) -> Option<String> {
        error.state.map(str::to_string)
    }
}
