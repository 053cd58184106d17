//! `blackhole`: counts rows and forgets them. For measuring.

use super::{BatchId, BatchSummary, Begin, Sink, SinkCommit, SinkContext};
use crate::delta::Delta;
use crate::error::Result;
use crate::options::{OptionSpec, Options};

/// It takes no options.
pub const OPTIONS: &[OptionSpec] = &[];

/// The sink.
#[derive(Debug, Default)]
pub struct BlackholeSink {
    rows: u64,
}

/// Opens the sink. It takes every mode.
///
/// # Errors
/// InvalidInput: any option.
pub fn open(options: &Options, _context: &SinkContext) -> Result<BlackholeSink> {
    options.check("connector 'blackhole'", OPTIONS)?;
    Ok(BlackholeSink::default())
}

impl Sink for BlackholeSink {
    fn description(&self) -> String {
        "BlackholeSink".into()
    }

    fn begin(&mut self, _batch: BatchId) -> Result<Begin> {
        self.rows = 0;
        Ok(Begin::Write)
    }

    fn push(&mut self, _partition: usize, changes: Delta) -> Result<()> {
        self.rows += changes.len() as u64;
        Ok(())
    }

    fn commit(&mut self, _summary: &BatchSummary) -> Result<SinkCommit> {
        Ok(SinkCommit { rows: std::mem::take(&mut self.rows) })
    }

    fn abort(&mut self) -> Result<()> {
        self.rows = 0;
        Ok(())
    }
}
