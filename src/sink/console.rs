//! `console`: each batch as a table under a line that says which one it is.
//!
//! ```text
//! -- Batch: 12  query=per_min  mode=update  rows=2  in=1043  watermark=2026-01-01T00:04:55Z  state=18
//! +---------------------+------+-------+
//! | window_start        | page | count |
//! +---------------------+------+-------+
//! | 2026-01-01T00:05:00 | /a   |     7 |
//! ```
//! In the formats that programs read (csv, json, jsonlines) the batch's number is a column, `__batch`, and the line
//! goes to the notices. A query that can take rows back has `op` (`__op`) first. What is not known is shown as `-`.
//! Nothing is remembered: a batch that is run again after a crash is shown again.

use std::sync::Arc;

use arrow::array::RecordBatch;

use super::changelog::Changelog;
use super::encode::write_whole;
use super::{BatchId, BatchSummary, Begin, SharedOutput, Sink, SinkCommit, SinkContext};
use crate::delta::Delta;
use crate::display::{Format, write_rows};
use crate::error::{Error, Result};
use crate::options::OptionSpec;
use crate::parser::OutputMode;

/// It takes no options: how it writes is the shell's choice.
pub const OPTIONS: &[OptionSpec] = &[];

/// How the shell wants console output.
#[derive(Clone)]
pub struct ConsoleStyle {
    pub format: Format,
    /// Show batches without rows too.
    pub empty_batches: bool,
    /// Receives the batch line, without a newline, where the format has no place for it.
    pub notices: Arc<dyn Fn(&str) + Send + Sync>,
}

/// The sink.
pub struct ConsoleSink {
    output: SharedOutput,
    style: ConsoleStyle,
    query: String,
    mode: OutputMode,
    changelog: Changelog,
    batch: BatchId,
    /// By partition, in the order they came.
    rows: Vec<Vec<RecordBatch>>,
    /// The CSV header, once it was written.
    header: Option<Vec<u8>>,
}

/// Opens the sink. It takes every mode.
pub fn open(context: &SinkContext, output: SharedOutput, style: ConsoleStyle) -> ConsoleSink {
    let changelog = match style.format {
        Format::Table | Format::Markdown | Format::Vertical => Changelog::new(context, None, "op"),
        Format::Csv | Format::Tsv | Format::Json | Format::JsonLines => Changelog::new(context, Some("__batch"), "__op"),
    };
    ConsoleSink {
        output,
        style,
        query: context.query.clone(),
        mode: context.mode,
        changelog,
        batch: 0,
        rows: Vec::new(),
        header: None,
    }
}

impl ConsoleSink {
    /// The line above a batch.
    fn line(&self, rows: u64, summary: &BatchSummary) -> String {
        let mode = match self.mode {
            OutputMode::Append => "append",
            OutputMode::Update => "update",
            OutputMode::Complete => "complete",
        };
        format!(
            "-- Batch: {}  query={}  mode={mode}  rows={rows}  in={}  watermark={}  state={}",
            self.batch,
            self.query,
            summary.input_rows,
            summary.watermark.map_or("-".into(), iso_utc),
            summary.state_rows.map_or("-".into(), |rows| rows.to_string()),
        )
    }

    /// The batch's rows as the style wants them; a CSV header only once.
    fn text(&mut self, batches: &[RecordBatch]) -> Result<Vec<u8>> {
        let text = self.write(batches)?;
        if !matches!(self.style.format, Format::Csv | Format::Tsv) {
            return Ok(text);
        }
        match &self.header {
            None => {
                self.header = Some(self.write(&[])?);
                Ok(text)
            }
            Some(header) => Ok(text.strip_prefix(header.as_slice()).map(<[u8]>::to_vec).unwrap_or(text)),
        }
    }

    fn write(&self, batches: &[RecordBatch]) -> Result<Vec<u8>> {
        let mut text = Vec::new();
        write_rows(&mut text, self.style.format, batches, self.changelog.schema())
            .map_err(|e| Error::Execution { message: format!("the result can't be shown: {e}") })?;
        Ok(text)
    }
}

/// `2026-01-01T00:04:55Z`, with milliseconds where there are some.
fn iso_utc(millis: i64) -> String {
    match chrono::DateTime::from_timestamp_millis(millis) {
        Some(time) => time.format("%Y-%m-%dT%H:%M:%S%.fZ").to_string(),
        None => format!("{millis} ms"),
    }
}

impl Sink for ConsoleSink {
    fn description(&self) -> String {
        "ConsoleSink".into()
    }

    fn begin(&mut self, batch: BatchId) -> Result<Begin> {
        self.rows.clear();
        self.batch = batch;
        Ok(Begin::Write)
    }

    fn push(&mut self, partition: usize, changes: Delta) -> Result<()> {
        if changes.is_empty() {
            return Ok(());
        }
        if self.rows.len() <= partition {
            self.rows.resize_with(partition + 1, Vec::new);
        }
        let rows = self.changelog.rows(self.batch, &changes)?;
        self.rows[partition].push(rows);
        Ok(())
    }

    fn commit(&mut self, summary: &BatchSummary) -> Result<SinkCommit> {
        let batches: Vec<RecordBatch> = std::mem::take(&mut self.rows).into_iter().flatten().collect();
        let rows = batches.iter().map(|batch| batch.num_rows() as u64).sum();
        if rows == 0 && !self.style.empty_batches {
            return Ok(SinkCommit { rows });
        }
        let line = self.line(rows, summary);
        let mut text = Vec::new();
        match self.style.format {
            Format::Table | Format::Markdown | Format::Vertical => text.extend(format!("{line}\n").into_bytes()),
            Format::Csv | Format::Tsv | Format::Json | Format::JsonLines => (self.style.notices)(&line),
        }
        text.extend(self.text(&batches)?);
        write_whole(&self.output, "the console", &text)?;
        Ok(SinkCommit { rows })
    }

    fn abort(&mut self) -> Result<()> {
        self.rows.clear();
        Ok(())
    }
}
