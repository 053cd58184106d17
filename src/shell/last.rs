//! What is remembered of the last statement: its text, its error, and its rows, which are the table `_`.

use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use crate::error::{Error, Result};
use crate::session::{Answer, LAST_RESULT};

/// A larger result is not kept.
const MOST_BYTES: usize = 64 << 20;

/// The last of each.
#[derive(Default)]
pub(super) struct Last {
    pub(super) statement: Option<String>,
    /// As `\errverbose` shows it.
    pub(super) error: Option<String>,
    pub(super) result: LastResult,
    /// The cross table that was made of the result since, and whether its NULLs are cells without a row.
    pub(super) crossed: Option<(RecordBatch, bool)>,
}

/// The rows of the last statement that had some.
#[derive(Default)]
pub(super) enum LastResult {
    #[default]
    None,
    Kept(SchemaRef, Vec<RecordBatch>),
    TooLarge,
}

impl LastResult {
    /// The columns, where the rows were kept.
    pub(super) fn schema(&self) -> Option<SchemaRef> {
        match self {
            LastResult::Kept(schema, _) => Some(schema.clone()),
            LastResult::None | LastResult::TooLarge => None,
        }
    }

    /// The rows, where they were kept; `way`: what to do about a result that was too large.
    ///
    /// # Errors
    /// There was none, or it was too large.
    pub(super) fn kept(&self, way: &str) -> Result<(&SchemaRef, &[RecordBatch])> {
        match self {
            LastResult::Kept(schema, batches) => Ok((schema, batches)),
            LastResult::None => Err(Error::invalid("no statement has answered rows yet")),
            LastResult::TooLarge => Err(Error::invalid("the last result was too large to be kept (64 MiB)").help(way)),
        }
    }

    /// An error about `_` with why there is no such table.
    pub(super) fn explain(&self, error: Error) -> Error {
        if !error.to_string().ends_with(&format!(" \"{LAST_RESULT}\"")) {
            return error;
        }
        match self {
            LastResult::None => error.help("_ is the last result, and no statement has answered rows yet"),
            LastResult::TooLarge => error.help("_ is the last result, which was too large to be kept (64 MiB)"),
            LastResult::Kept(..) => error,
        }
    }
}

/// Rows that are kept while they are printed.
pub(super) struct Keeper {
    schema: SchemaRef,
    kept: Arc<Mutex<Kept>>,
}

#[derive(Default)]
struct Kept {
    batches: Vec<RecordBatch>,
    bytes: usize,
    too_large: bool,
}

/// The same answer, kept while it is printed; an answer without rows leaves the last one.
pub(super) fn keep(answer: Answer) -> (Answer, Option<Keeper>) {
    let Answer::Rows { schema, rows, notices } = answer else { return (answer, None) };
    let kept = Arc::new(Mutex::new(Kept::default()));
    let keeper = Keeper { schema: schema.clone(), kept: kept.clone() };
    let rows = rows.inspect(move |batch| {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Ok(batch) = batch
            && !kept.too_large
        {
            kept.bytes += batch.get_array_memory_size();
            kept.batches.push(batch.clone());
            if kept.bytes > MOST_BYTES {
                *kept = Kept { too_large: true, ..Kept::default() };
            }
        }
    });
    (Answer::Rows { schema, rows: Box::new(rows), notices }, Some(keeper))
}

impl Keeper {
    /// What was kept.
    pub(super) fn finish(self) -> LastResult {
        let kept = std::mem::take(&mut *self.kept.lock().unwrap_or_else(PoisonError::into_inner));
        if kept.too_large { LastResult::TooLarge } else { LastResult::Kept(self.schema, kept.batches) }
    }
}
