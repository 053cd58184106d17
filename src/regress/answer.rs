//! What a statement answered, and the crate's view of it.

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use async_trait::async_trait;
use sqllogictest::{AsyncDB, DBOutput};
use std::sync::Arc;

use super::values::{Letter, Style, rows};
use super::world::World;
use crate::error::{Code, Error, Result};

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
        Failure { text, state: Some(state(error.kind())) }
    }
}

/// The class of SQLSTATE that comes nearest to a code of ours.
fn state(code: Code) -> &'static str {
    match code {
        Code::Syntax => "42601",
        Code::UnknownTable => "42P01",
        Code::UnknownColumn => "42703",
        Code::UnknownFunction => "42883",
        Code::Ambiguous => "42702",
        Code::Types => "42804",
        Code::UnknownQuery => "42704",
        Code::Clauses => "42803",
        Code::NameTaken => "42710",
        Code::OptionValue => "22023",
        Code::Invalid | Code::UnknownOption | Code::UnknownSetting | Code::UnknownCommand => "42000",
        Code::Refused | Code::NotYet => "0A000",
        Code::DivisionByZero => "22012",
        Code::Overflow => "22003",
        Code::BadCast => "22018",
        Code::BadRecord | Code::Computation => "22000",
        Code::OutOfResources => "53000",
        Code::Corrupt => "XX001",
        Code::Conflict => "55006",
        Code::Io => "58030",
        Code::Cancelled => "57014",
        Code::Internal => "XX000",
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
