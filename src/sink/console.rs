//! `console`: each batch as a table under a line that says which one it is.
//!
//! ```text
//! -- Batch: 12  query=per_min  mode=update  rows=2  in=1043  watermark=2026-01-01T00:04:55Z  state=18
//! +---------------------+------+-------+
//! | window_start        | page | count |
//! +---------------------+------+-------+
//! | 2026-01-01T00:05:00 | /a   |     7 |
//! ```
//! In the formats that programs read (csv, json, …) the batch's number is a column, `__batch`, and the line
//! goes to the notices. A query that can take rows back has `op` (`__op`) first. What is not known is shown as `-`.
//! Nothing is remembered: a batch that is run again after a crash is shown again.

use std::sync::Arc;

use arrow::array::RecordBatch;

use super::changelog::Changelog;
use super::encode::write_whole;
use super::{BatchId, BatchSummary, Begin, SharedOutput, Sink, SinkCommit, SinkContext};
use crate::delta::Delta;
use crate::display::{Format, RowWriter};
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
    /// The header of csv and tsv stands above the first batch only.
    header_written: bool,
}

/// Opens the sink. It takes every mode.
pub fn open(context: &SinkContext, output: SharedOutput, style: ConsoleStyle) -> ConsoleSink {
    let changelog = match style.format.is_for_people() {
        true => Changelog::new(context, None, "op"),
        false => Changelog::new(context, Some("__batch"), "__op"),
    };
    ConsoleSink {
        output,
        style,
        query: context.query.clone(),
        mode: context.mode,
        changelog,
        batch: 0,
        rows: Vec::new(),
        header_written: false,
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
        let watermark = match summary.drains {
            true => "end".into(),
            false => summary.watermark.map_or("-".into(), iso_utc),
        };
        format!(
            "-- Batch: {}  query={}  mode={mode}  rows={rows}  in={}  watermark={watermark}  state={}",
            self.batch,
            self.query,
            summary.input_rows,
            summary.state_rows.map_or("-".into(), |rows| rows.to_string()),
        )
    }

    /// The batch's rows as the style wants them; the header of csv and tsv only once.
    fn text(&mut self, batches: &[RecordBatch]) -> Result<Vec<u8>> {
        let mut writer = RowWriter::new(self.style.format, self.changelog.schema());
        if std::mem::replace(&mut self.header_written, true) {
            writer = writer.without_header();
        }
        let mut text = Vec::new();
        let written = batches.iter().try_for_each(|batch| writer.write(&mut text, batch));
        written
            .and_then(|()| writer.finish(&mut text))
            .map_err(|e| Error::computation(format!("the result can't be shown: {e}")))?;
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
        match self.style.format.is_for_people() {
            true => text.extend(format!("{line}\n").into_bytes()),
            false => (self.style.notices)(&line),
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
