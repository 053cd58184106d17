//! An answer → standard output, in the format that was asked for; what is said beside it → standard error.

use std::io::{self, Write};
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::command::Expanded;
use super::output::{Output, say};
use super::terminal;
use crate::display::{Format, RowWriter, write_rows};
use crate::error::{Error, Result};
use crate::session::{Answer, CancelToken};

/// How answers are written.
#[derive(Debug, Clone, Copy)]
pub(super) struct PrintSettings {
    pub(super) format: Format,
    pub(super) expanded: Expanded,
    pub(super) timing: bool,
    /// Tags and footers are shown: somebody is looking.
    pub(super) footers: bool,
    /// Nothing but results.
    pub(super) quiet: bool,
}

/// Prints answers.
pub(super) struct Printer<'a> {
    pub(super) settings: PrintSettings,
    pub(super) output: &'a Output,
    pub(super) cancel: &'a CancelToken,
}

type Rows = Box<dyn Iterator<Item = Result<RecordBatch>> + Send>;

impl Printer<'_> {
    /// Prints the answer of a statement. `as_they_come`: it may never end (`WATCH`). `took` is asked at the end.
    ///
    /// # Errors
    /// What the rows or the output answer.
    pub(super) fn print(&self, answer: Answer, as_they_come: bool, took: &dyn Fn() -> Duration) -> Result<()> {
        match answer {
            Answer::Done { tag, notices } => {
                self.say_all(&notices);
                let line = if self.settings.timing { format!("{tag} · {}", milliseconds(took())) } else { tag };
                self.footer(&line)?;
            }
            Answer::Text(text) => {
                self.write(|out| {
                    out.write_all(text.as_bytes())?;
                    if text.ends_with('\n') || text.is_empty() { Ok(()) } else { out.write_all(b"\n") }
                })?;
                self.time(took);
            }
            Answer::Rows { schema, rows, notices } => {
                self.say_all(&notices);
                let count = if as_they_come { self.follow(&schema, rows)? } else { self.rows(&schema, rows)? };
                let rows = if count == 1 { "1 row".to_string() } else { format!("{count} rows") };
                let grid = matches!(self.settings.format, Format::Table | Format::Vertical | Format::Markdown);
                if self.settings.footers && grid {
                    self.footer(&match self.settings.timing {
                        true => format!("{rows} · {}", milliseconds(took())),
                        false => format!("({rows})"),
                    })?;
                }
            }
        }
        if !self.settings.footers {
            self.time(took);
        }
        Ok(())
    }

    /// Rows that are all wanted before the next statement, as one result.
    fn rows(&self, schema: &SchemaRef, rows: Rows) -> Result<u64> {
        let format = self.format();
        if matches!(format, Format::Table | Format::Markdown) {
            let mut batches = Vec::new();
            for batch in rows {
                self.check()?;
                batches.push(batch?);
            }
            return self.table(format, schema, &batches);
        }
        let mut writer = RowWriter::new(format, schema);
        let mut out = self.output.lock();
        let mut out = Cancellable { out: &mut **out, cancel: self.cancel };
        for batch in rows {
            self.check()?;
            self.written(writer.write(&mut out, &batch?))?;
        }
        let count = self.written(writer.finish(&mut out))?;
        self.written(out.flush())?;
        Ok(count)
    }

    fn table(&self, format: Format, schema: &SchemaRef, batches: &[RecordBatch]) -> Result<u64> {
        let mut format = format;
        if format == Format::Table && self.settings.expanded == Expanded::Auto && self.output.is_terminal {
            // The rule at the top is as wide as the table.
            let mut table = Vec::new();
            self.written(write_rows(&mut table, format, batches, schema))?;
            let width = table.iter().position(|byte| *byte == b'\n').unwrap_or(0);
            if terminal::columns().is_some_and(|columns| width > columns) {
                format = Format::Vertical;
            }
        }
        self.write(|out| write_rows(out, format, batches, schema))?;
        Ok(batches.iter().map(|batch| batch.num_rows() as u64).sum())
    }

    /// Rows that are wanted as they come: each batch is written and flushed, a table each.
    fn follow(&self, schema: &SchemaRef, rows: Rows) -> Result<u64> {
        let format = match self.format() {
            // An array that never ends can't be read.
            Format::Json => Format::JsonLines,
            format => format,
        };
        let mut count = 0;
        let mut first = true;
        for batch in rows {
            let batch = batch?;
            if batch.num_rows() > 0 {
                count += batch.num_rows() as u64;
                self.write(|out| {
                    let mut writer = RowWriter::new(format, schema);
                    if !std::mem::replace(&mut first, false) {
                        writer = writer.without_header();
                    }
                    writer.write(out, &batch)?;
                    writer.finish(out).map(|_| ())
                })?;
            }
            self.check()?;
        }
        Ok(count)
    }

    fn format(&self) -> Format {
        match (self.settings.format, self.settings.expanded) {
            (Format::Table, Expanded::On) => Format::Vertical,
            (format, _) => format,
        }
    }

    /// Writes one whole answer and flushes it.
    fn write(&self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
        let mut out = self.output.lock();
        let mut out = Cancellable { out: &mut **out, cancel: self.cancel };
        let written = write(&mut out).and_then(|()| out.flush());
        self.written(written)
    }

    fn written<T>(&self, written: io::Result<T>) -> Result<T> {
        written.map_err(|error| match self.check() {
            Err(cancelled) => cancelled,
            Ok(()) if error.kind() == io::ErrorKind::InvalidData => {
                Error::Execution { message: format!("a value can't be shown: {error}") }
            }
            Ok(()) => Error::io("can't write the result", &error),
        })
    }

    fn check(&self) -> Result<()> {
        if self.cancel.is_cancelled() || self.output.is_broken() {
            return Err(Error::Cancelled { message: "cancelled".to_string() });
        }
        Ok(())
    }

    fn footer(&self, line: &str) -> Result<()> {
        if !self.settings.footers || self.settings.quiet {
            return Ok(());
        }
        self.write(|out| writeln!(out, "{line}"))
    }

    /// The time of a statement in a script.
    fn time(&self, took: &dyn Fn() -> Duration) {
        if self.settings.timing && !self.settings.quiet {
            say(&milliseconds(took()));
        }
    }

    fn say_all(&self, notices: &[String]) {
        if !self.settings.quiet {
            notices.iter().for_each(|notice| say(notice));
        }
    }
}

/// `12.4 ms`
fn milliseconds(took: Duration) -> String {
    format!("{:.1} ms", took.as_secs_f64() * 1_000.0)
}

/// An output that can be cancelled in the middle of a million rows.
struct Cancellable<'a> {
    out: &'a mut (dyn Write + Send),
    cancel: &'a CancelToken,
}

impl Write for Cancellable<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.cancel.is_cancelled() {
            // Not Interrupted, which is tried again.
            return Err(io::Error::other("cancelled"));
        }
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
