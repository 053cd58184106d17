//! `stdout`: rows for another program, as JSON lines or CSV, without anything between batches.
//!
//! A query that can take rows back has `__op` (+I -U +U -D) first. A batch is written whole when it is committed; what
//! was written once can't be taken back, so a batch that is run again after a crash is written again.

use super::changelog::Changelog;
use super::encode::{TextFormat, write_whole};
use super::{BatchId, BatchSummary, Begin, SharedOutput, Sink, SinkCommit, SinkContext};
use crate::delta::Delta;
use crate::error::Result;
use crate::options::{OptionKind, OptionSpec, Options};

/// What `WITH (connector = 'stdout', …)` may hold.
pub const OPTIONS: &[OptionSpec] = &[OptionSpec {
    name: "format",
    kind: OptionKind::OneOf(&["json", "csv"]),
    help: "json: one object a line (default); csv: with a header",
}];

/// The sink.
pub struct StdoutSink {
    output: SharedOutput,
    format: TextFormat,
    changelog: Changelog,
    batch: BatchId,
    /// By partition, in the order they came.
    text: Vec<Vec<u8>>,
    rows: u64,
    header_written: bool,
}

/// Opens the sink. It takes every mode.
///
/// # Errors
/// InvalidInput: a wrong option. Unsupported: a column that the format has no text for.
pub fn open(options: &Options, context: &SinkContext, output: SharedOutput) -> Result<StdoutSink> {
    options.check("connector 'stdout'", OPTIONS)?;
    let csv = options.text("format").is_some_and(|format| format.eq_ignore_ascii_case("csv"));
    let format = if csv { TextFormat::Csv } else { TextFormat::Json };
    format.check(&context.schema)?;
    let changelog = Changelog::new(context, None, "__op");
    Ok(StdoutSink { output, format, changelog, batch: 0, text: Vec::new(), rows: 0, header_written: false })
}

impl Sink for StdoutSink {
    fn description(&self) -> String {
        format!("StdoutSink[{}]", self.format.name())
    }

    fn begin(&mut self, batch: BatchId) -> Result<Begin> {
        self.abort()?;
        self.batch = batch;
        Ok(Begin::Write)
    }

    fn push(&mut self, partition: usize, changes: Delta) -> Result<()> {
        if self.text.len() <= partition {
            self.text.resize_with(partition + 1, Vec::new);
        }
        let text = self.format.rows(&self.changelog.rows(self.batch, &changes)?)?;
        self.text[partition].extend(text);
        self.rows += changes.len() as u64;
        Ok(())
    }

    fn commit(&mut self, _summary: &BatchSummary) -> Result<SinkCommit> {
        let rows = std::mem::take(&mut self.rows);
        if rows > 0 {
            let header = if self.header_written { Vec::new() } else { self.format.header(self.changelog.schema())? };
            self.text.insert(0, header);
            write_whole(&self.output, "stdout", &self.text.concat())?;
            self.header_written = true;
        }
        self.text.clear();
        Ok(SinkCommit { rows })
    }

    fn abort(&mut self) -> Result<()> {
        self.text.clear();
        self.rows = 0;
        Ok(())
    }
}
