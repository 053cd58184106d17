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

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use arrow::array::Int64Array;

    use super::*;

    /// What was written, to be looked at.
    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    const PEOPLE: PrintSettings =
        PrintSettings { format: Format::Table, expanded: Expanded::Off, timing: true, footers: true, quiet: false };
    const SCRIPT: PrintSettings = PrintSettings { timing: false, footers: false, ..PEOPLE };

    fn batch(values: &[i64]) -> RecordBatch {
        RecordBatch::try_from_iter([("n", Arc::new(Int64Array::from(values.to_vec())) as _)]).unwrap()
    }

    fn rows(batches: Vec<Result<RecordBatch>>) -> Answer {
        Answer::Rows { schema: batch(&[]).schema(), rows: Box::new(batches.into_iter()), notices: Vec::new() }
    }

    fn print(settings: PrintSettings, answer: Answer, as_they_come: bool) -> (String, Result<()>) {
        let written = Written::default();
        let (output, cancel) = (Output::to(written.clone()), CancelToken::default());
        let printer = Printer { settings, output: &output, cancel: &cancel };
        let printed = printer.print(answer, as_they_come, &|| Duration::from_micros(12_431));
        let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
        (text, printed)
    }

    #[test]
    fn people_see_how_many_rows_and_how_long() {
        let two = || rows(vec![Ok(batch(&[1])), Ok(batch(&[22]))]);
        let table = "+----+\n|  n |\n+----+\n|  1 |\n| 22 |\n+----+\n";
        assert_eq!(print(PEOPLE, two(), false).0, format!("{table}2 rows · 12.4 ms\n"));
        assert_eq!(print(PrintSettings { timing: false, ..PEOPLE }, two(), false).0, format!("{table}(2 rows)\n"));
        assert_eq!(print(PrintSettings { quiet: true, ..PEOPLE }, two(), false).0, table);
        let one = rows(vec![Ok(batch(&[1]))]);
        assert!(print(PEOPLE, one, false).0.ends_with("1 row · 12.4 ms\n"));
        let done = || Answer::Done { tag: "CREATE STREAM".into(), notices: Vec::new() };
        assert_eq!(print(PEOPLE, done(), false).0, "CREATE STREAM · 12.4 ms\n");
        assert_eq!(print(SCRIPT, done(), false).0, "");
    }

    #[test]
    fn programs_see_rows_only() {
        for (format, text) in [
            (Format::Csv, "n\n1\n2\n"),
            (Format::Json, "[{\"n\":1},\n{\"n\":2}]\n"),
            (Format::JsonLines, "{\"n\":1}\n{\"n\":2}\n"),
        ] {
            let answer = rows(vec![Ok(batch(&[1])), Ok(batch(&[])), Ok(batch(&[2]))]);
            assert_eq!(print(PrintSettings { format, ..PEOPLE }, answer, false).0, text);
        }
    }

    #[test]
    fn expanded_is_one_column_a_line_in_place_of_a_table_only() {
        let expanded = PrintSettings { expanded: Expanded::On, ..SCRIPT };
        assert_eq!(print(expanded, rows(vec![Ok(batch(&[7]))]), false).0, "-[ RECORD 1 ]-\nn | 7\n");
        let csv = PrintSettings { format: Format::Csv, ..expanded };
        assert_eq!(print(csv, rows(vec![Ok(batch(&[7]))]), false).0, "n\n7\n");
    }

    #[test]
    fn rows_that_come_one_by_one_have_one_header() {
        let answer = || rows(vec![Ok(batch(&[1])), Ok(batch(&[])), Ok(batch(&[2]))]);
        assert_eq!(print(PrintSettings { format: Format::Csv, ..SCRIPT }, answer(), true).0, "n\n1\n2\n");
        let json = PrintSettings { format: Format::Json, ..SCRIPT };
        assert_eq!(print(json, answer(), true).0, "{\"n\":1}\n{\"n\":2}\n");
        assert_eq!(print(SCRIPT, answer(), true).0.matches("| n |").count(), 2);
    }

    #[test]
    fn a_text_ends_with_a_newline() {
        assert_eq!(print(SCRIPT, Answer::Text("a\nb".into()), false).0, "a\nb\n");
        assert_eq!(print(SCRIPT, Answer::Text("a\n".into()), false).0, "a\n");
    }

    #[test]
    fn an_error_behind_some_rows_is_an_error_and_half_a_table_is_none() {
        let (text, printed) = print(SCRIPT, rows(vec![Ok(batch(&[1])), Err(Error::invalid("no"))]), false);
        assert_eq!((text.as_str(), printed.unwrap_err().to_string().as_str()), ("", "no"));
    }

    #[test]
    fn a_cancelled_answer_stops_in_the_middle() {
        let written = Written::default();
        let (output, cancel) = (Output::to(written.clone()), CancelToken::default());
        let token = cancel.clone();
        let endless = std::iter::repeat_with(|| Ok(batch(&[1]))).inspect(move |_| token.cancel());
        let answer = Answer::Rows { schema: batch(&[]).schema(), rows: Box::new(endless), notices: Vec::new() };
        let printer = Printer { settings: SCRIPT, output: &output, cancel: &cancel };
        let error = printer.print(answer, false, &|| Duration::ZERO).unwrap_err();
        assert!(matches!(error, Error::Cancelled { .. }), "{error:?}");
        assert_eq!(written.0.lock().unwrap().len(), 0);
    }

    #[test]
    fn an_output_that_fails_is_an_error() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::StorageFull.into())
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let (output, cancel) = (Output::to(Full), CancelToken::default());
        let printer = Printer { settings: SCRIPT, output: &output, cancel: &cancel };
        let error = printer.print(rows(vec![Ok(batch(&[1]))]), false, &|| Duration::ZERO).unwrap_err();
        assert!(error.to_string().starts_with("can't write the result: "), "{error}");
    }
}
