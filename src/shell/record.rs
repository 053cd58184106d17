//! `\record`: what is typed and answered, kept for a test file while it is printed.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::runner::Shell;
use crate::error::{Error, Result};
use crate::regress::Recording;
use crate::session::Answer;

impl Shell {
    /// Begins a recording, or ends it.
    ///
    /// # Errors
    /// The file can't be made; or there is none to begin, and none was begun.
    pub(super) fn record(&mut self, file: Option<String>) -> Result<()> {
        if let Some(ended) = self.recording.take() {
            self.session.record_queries(None);
            self.confirm(&format!("{} has {} records", ended.path().display(), ended.records()));
            if file.is_none() {
                return Ok(());
            }
        }
        let Some(file) = file else {
            return Err(Error::invalid("nothing is being recorded").help("\\record FILE.slt begins a file"));
        };
        let recording = Recording::begin(Path::new(&file))?;
        self.session.record_queries(Some(recording.recorder()));
        self.recording = Some(recording);
        self.confirm(&format!("recording to {file}; \\record ends it"));
        Ok(())
    }
}

/// What an answer was, once it is printed.
pub(super) enum Heard {
    Done(String),
    Rows(SchemaRef, Arc<Mutex<Vec<RecordBatch>>>),
    /// Text: a progress document, or what people read, such as a plan.
    Text(String),
}

/// The same answer, heard while it is printed.
pub(super) fn hear(answer: Answer) -> (Answer, Heard) {
    match answer {
        Answer::Rows { schema, rows, notices } => {
            let kept: Arc<Mutex<Vec<RecordBatch>>> = Arc::default();
            let into = kept.clone();
            let rows = rows.inspect(move |batch| {
                if let Ok(batch) = batch {
                    into.lock().unwrap_or_else(PoisonError::into_inner).push(batch.clone());
                }
            });
            (Answer::Rows { schema: schema.clone(), rows: Box::new(rows), notices }, Heard::Rows(schema, kept))
        }
        Answer::Done { ref tag, .. } => {
            let tag = tag.clone();
            (answer, Heard::Done(tag))
        }
        Answer::Text(ref text) => {
            let text = text.clone();
            (answer, Heard::Text(text))
        }
    }
}

/// Writes what a statement came to; answers why it was not, where it can't be a record.
///
/// # Errors
/// The file can't be written.
pub(super) fn keep(
    recording: &mut Recording,
    sql: &str,
    outcome: std::result::Result<Heard, Option<&Error>>,
) -> Result<Option<String>> {
    match outcome {
        Ok(Heard::Done(tag)) => recording.done(sql, &tag),
        Ok(Heard::Text(text)) => recording.told(sql, &text),
        Ok(Heard::Rows(schema, kept)) => {
            let batches = std::mem::take(&mut *kept.lock().unwrap_or_else(PoisonError::into_inner));
            recording.answered(sql, &schema, &batches)
        }
        Err(None | Some(Error::Cancelled { .. })) => Ok(None),
        Err(Some(error)) => recording.failed(sql, error),
    }
}
