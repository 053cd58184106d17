//! An answer → standard output, or where results were sent, in the format that was asked for; what is said beside it →
//! standard error.

use std::io::{self, Write};
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::environment::Environment;
use super::output::{Output, say};
use super::pager::{self, Paging};
use super::settings::PrintSettings;
use super::terminal::Screen;
use crate::display::{DIM, Format, RowWriter, Style, Written, for_terminal, paint};
use crate::error::{Error, Result};
use crate::session::{Answer, CancelToken};

/// Prints answers.
pub(super) struct Printer<'a> {
    pub(super) settings: &'a PrintSettings,
    pub(super) output: &'a Output,
    pub(super) cancel: &'a CancelToken,
    pub(super) environment: &'a Environment,
}

type Rows = Box<dyn Iterator<Item = Result<RecordBatch>> + Send>;

impl Printer<'_> {
    /// Prints the answer of a statement; says how many rows it had or changed. `as_they_come`: it may never end
    /// (`WATCH`). `took` is asked at the end.
    ///
    /// # Errors
    /// What the rows or the output answer.
    pub(super) fn print(&self, answer: Answer, as_they_come: bool, took: &dyn Fn() -> Duration) -> Result<u64> {
        let mut count = 0;
        match answer {
            Answer::Done { tag, notices } => {
                self.say_all(&notices);
                count = tag.rsplit(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0);
                let line = if self.settings.timing { format!("{tag} · {}", milliseconds(took())) } else { tag };
                self.footer(&line, self.settings.has_footers())?;
            }
            Answer::Text(text) => {
                self.text(&text)?;
                self.time(took);
            }
            Answer::Rows { schema, rows, notices } => {
                self.say_all(&notices);
                let (format, _) = self.look();
                let written = if as_they_come { self.follow(&schema, rows)? } else { self.rows(&schema, rows)? };
                count = written.rows;
                let time = self.settings.timing.then(|| milliseconds(took()));
                let footers = self.settings.has_footers() && self.settings.footer;
                if format.is_for_people() && footers {
                    self.footer(&footer(&written, time.as_deref()), true)?;
                } else if written.shown_rows < written.rows && !self.settings.quiet {
                    say(&footer(&written, None));
                }
            }
        }
        if !self.settings.has_footers() {
            self.time(took);
        }
        Ok(count)
    }

    /// Prints a text as it is, ended by a newline.
    ///
    /// # Errors
    /// What the output answers.
    pub(super) fn text(&self, text: &str) -> Result<()> {
        let end = if text.ends_with('\n') || text.is_empty() { "" } else { "\n" };
        self.emit(format!("{text}{end}").as_bytes())
    }

    /// Rows that are all wanted before the next statement, as one result.
    fn rows(&self, schema: &SchemaRef, rows: Rows) -> Result<Written> {
        let (format, style) = self.look();
        let mut writer = RowWriter::styled(format, schema, style);
        if format.is_for_people() && self.output.is_terminal {
            // As a whole, for the pager.
            let mut text = Vec::new();
            for batch in rows {
                self.check()?;
                self.written(writer.write(&mut text, &batch?))?;
            }
            let written = self.written(writer.finish(&mut text))?;
            self.emit(&text)?;
            return Ok(written);
        }
        let mut out = self.output.lock();
        let mut out = Cancellable { out: &mut **out, cancel: self.cancel };
        for batch in rows {
            self.check()?;
            self.written(writer.write(&mut out, &batch?))?;
        }
        let written = self.written(writer.finish(&mut out))?;
        self.written(out.flush())?;
        Ok(written)
    }

    /// Rows that are wanted as they come: each batch is written and flushed, a table each.
    fn follow(&self, schema: &SchemaRef, rows: Rows) -> Result<Written> {
        let (format, mut style) = self.look();
        let format = match format {
            // An array that never ends can't be read, nor can a page.
            Format::Json => Format::JsonLines,
            format => format,
        };
        let columns = schema.fields().len();
        let mut total = Written { rows: 0, shown_rows: 0, columns, shown_columns: columns, clipped: false };
        for batch in rows {
            let batch = batch?;
            if batch.num_rows() > 0 {
                let written = self.batch(format, schema, &style, total.rows > 0, &batch)?;
                total.rows += written.rows;
                total.shown_rows += written.shown_rows;
                total.shown_columns = written.shown_columns;
                total.clipped |= written.clipped;
                style.title = None;
            }
            self.check()?;
        }
        Ok(total)
    }

    fn batch(
        &self,
        format: Format,
        schema: &SchemaRef,
        style: &Style,
        follows: bool,
        batch: &RecordBatch,
    ) -> Result<Written> {
        let mut written = None;
        self.write(|out| {
            let mut writer = RowWriter::styled(format, schema, style.clone());
            if follows {
                writer = writer.without_header();
            }
            writer.write(out, batch)?;
            written = Some(writer.finish(out)?);
            Ok(())
        })?;
        written.ok_or_else(|| Error::internal("a batch was written and is not"))
    }

    fn look(&self) -> (Format, Style) {
        self.settings.look(self.output.is_terminal.then(Screen::now))
    }

    /// Writes one whole text, through the pager where it is longer or wider than the screen.
    fn emit(&self, text: &[u8]) -> Result<()> {
        let pager = (self.output.is_terminal && !self.settings.plain && self.settings.attended)
            .then(|| pager::command(self.environment))
            .flatten();
        match pager.filter(|_| self.wants_pager(text)) {
            Some(pager) => {
                let text = for_terminal(&String::from_utf8_lossy(text), self.settings.paints(true));
                pager::page(&text, &pager, self.environment)
            }
            None => self.write(|out| out.write_all(text)),
        }
    }

    fn wants_pager(&self, text: &[u8]) -> bool {
        match self.settings.pager {
            Paging::Off => false,
            Paging::Always => true,
            Paging::On => {
                let lines = text.iter().filter(|byte| **byte == b'\n').count();
                // The footer and the prompt want a line each.
                Screen::now().rows.is_some_and(|rows| lines + 2 > rows)
            }
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
                Error::computation(format!("a value can't be shown: {error}"))
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

    fn footer(&self, line: &str, wanted: bool) -> Result<()> {
        if !wanted {
            return Ok(());
        }
        let dim = self.settings.paints(self.output.is_terminal);
        self.write(|out| if dim { writeln!(out, "{}", paint(DIM, line)) } else { writeln!(out, "{line}") })
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

/// `7 rows · 12.4 ms`, or `(7 rows)`; and what of them is not shown.
fn footer(written: &Written, time: Option<&str>) -> String {
    let rows = if written.rows == 1 { "1 row".to_string() } else { format!("{} rows", written.rows) };
    let mut parts = vec![rows];
    if written.shown_rows < written.rows {
        parts[0] += &format!(" ({} shown)", written.shown_rows);
    }
    if written.shown_columns < written.columns {
        parts.push(format!("{} columns ({} shown)", written.columns, written.shown_columns));
    }
    let cut = parts.len() > 1 || written.shown_rows < written.rows || written.clipped;
    parts.extend(time.map(str::to_string));
    if cut {
        parts.push(".last shows all".to_string());
    }
    match time {
        None if !cut => format!("({})", parts[0]),
        _ => parts.join(" · "),
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

    use super::super::settings::{Expanded, MostRows};
    use super::*;

    /// What was written, to be looked at.
    #[derive(Clone, Default)]
    struct Seen(Arc<Mutex<Vec<u8>>>);

    impl Write for Seen {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn people() -> PrintSettings {
        PrintSettings { timing: true, attended: true, ..PrintSettings::default() }
    }

    fn script() -> PrintSettings {
        PrintSettings::default()
    }

    fn batch(values: &[i64]) -> RecordBatch {
        RecordBatch::try_from_iter([("n", Arc::new(Int64Array::from(values.to_vec())) as _)]).unwrap()
    }

    fn rows(batches: Vec<Result<RecordBatch>>) -> Answer {
        Answer::Rows { schema: batch(&[]).schema(), rows: Box::new(batches.into_iter()), notices: Vec::new() }
    }

    fn print(settings: PrintSettings, answer: Answer, as_they_come: bool) -> (String, Result<()>) {
        let written = Seen::default();
        let (output, cancel) = (Output::to(written.clone()), CancelToken::default());
        let environment = Environment::default();
        let printer = Printer { settings: &settings, output: &output, cancel: &cancel, environment: &environment };
        let printed = printer.print(answer, as_they_come, &|| Duration::from_micros(12_431)).map(|_| ());
        let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
        (text, printed)
    }

    #[test]
    fn people_see_how_many_rows_and_how_long() {
        let two = || rows(vec![Ok(batch(&[1])), Ok(batch(&[22]))]);
        let table = "+----+\n|  n |\n+----+\n|  1 |\n| 22 |\n+----+\n";
        assert_eq!(print(people(), two(), false).0, format!("{table}2 rows · 12.4 ms\n"));
        assert_eq!(print(PrintSettings { timing: false, ..people() }, two(), false).0, format!("{table}(2 rows)\n"));
        assert_eq!(print(PrintSettings { quiet: true, ..people() }, two(), false).0, table);
        let one = rows(vec![Ok(batch(&[1]))]);
        assert!(print(people(), one, false).0.ends_with("1 row · 12.4 ms\n"));
        let done = || Answer::Done { tag: "CREATE STREAM".into(), notices: Vec::new() };
        assert_eq!(print(people(), done(), false).0, "CREATE STREAM · 12.4 ms\n");
        assert_eq!(print(script(), done(), false).0, "");
    }

    #[test]
    fn programs_see_rows_only() {
        for (format, text) in [
            (Format::Csv, "n\n1\n2\n"),
            (Format::Json, "[{\"n\":1},\n{\"n\":2}]\n"),
            (Format::JsonLines, "{\"n\":1}\n{\"n\":2}\n"),
        ] {
            let answer = rows(vec![Ok(batch(&[1])), Ok(batch(&[])), Ok(batch(&[2]))]);
            assert_eq!(print(PrintSettings { format: Some(format), ..people() }, answer, false).0, text);
        }
    }

    #[test]
    fn expanded_is_one_column_a_line_in_place_of_a_table_only() {
        let expanded = PrintSettings { expanded: Expanded::On, ..script() };
        assert_eq!(print(expanded.clone(), rows(vec![Ok(batch(&[7]))]), false).0, "-[ RECORD 1 ]-\nn | 7\n");
        let csv = PrintSettings { format: Some(Format::Csv), ..expanded.clone() };
        assert_eq!(print(csv, rows(vec![Ok(batch(&[7]))]), false).0, "n\n7\n");
    }

    #[test]
    fn rows_that_come_one_by_one_have_one_header() {
        let answer = || rows(vec![Ok(batch(&[1])), Ok(batch(&[])), Ok(batch(&[2]))]);
        assert_eq!(print(PrintSettings { format: Some(Format::Csv), ..script() }, answer(), true).0, "n\n1\n2\n");
        let json = PrintSettings { format: Some(Format::Json), ..script() };
        assert_eq!(print(json.clone(), answer(), true).0, "{\"n\":1}\n{\"n\":2}\n");
        assert_eq!(print(script(), answer(), true).0.matches("| n |").count(), 2);
    }

    #[test]
    fn a_text_ends_with_a_newline() {
        assert_eq!(print(script(), Answer::Text("a\nb".into()), false).0, "a\nb\n");
        assert_eq!(print(script(), Answer::Text("a\n".into()), false).0, "a\n");
    }

    #[test]
    fn an_error_behind_some_rows_is_an_error_and_half_a_table_is_none() {
        let (text, printed) = print(script(), rows(vec![Ok(batch(&[1])), Err(Error::invalid("no"))]), false);
        assert_eq!((text.as_str(), printed.unwrap_err().to_string().as_str()), ("", "no"));
    }

    #[test]
    fn a_cancelled_answer_stops_in_the_middle() {
        let written = Seen::default();
        let (output, cancel) = (Output::to(written.clone()), CancelToken::default());
        let token = cancel.clone();
        let endless = std::iter::repeat_with(|| Ok(batch(&[1]))).inspect(move |_| token.cancel());
        let answer = Answer::Rows { schema: batch(&[]).schema(), rows: Box::new(endless), notices: Vec::new() };
        let printer =
            Printer { settings: &script(), output: &output, cancel: &cancel, environment: &Environment::default() };
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
        let printer =
            Printer { settings: &script(), output: &output, cancel: &cancel, environment: &Environment::default() };
        let error = printer.print(rows(vec![Ok(batch(&[1]))]), false, &|| Duration::ZERO).unwrap_err();
        assert!(error.to_string().starts_with("can't write the result: "), "{error}");
    }

    #[test]
    fn what_is_not_shown_is_counted() {
        let many = || rows((0..50).map(|n| Ok(batch(&[n]))).collect());
        let few = PrintSettings { most_rows: MostRows::Count(2), ..people() };
        let (text, _) = print(few, many(), false);
        assert_eq!(
            text,
            "+----+\n|  n |\n+----+\n|  0 |\n|  : |\n| 49 |\n+----+\n50 rows (2 shown) · 12.4 ms · .last shows all\n"
        );
        let written = Written { rows: 1, shown_rows: 1, columns: 9, shown_columns: 4, clipped: true };
        assert_eq!(footer(&written, None), "1 row · 9 columns (4 shown) · .last shows all");
        let clipped = Written { shown_columns: 9, ..written };
        assert_eq!(footer(&clipped, Some("1.0 ms")), "1 row · 1.0 ms · .last shows all");
        assert_eq!(footer(&Written { shown_columns: 9, clipped: false, ..written }, None), "(1 row)");
    }

    #[test]
    fn rows_alone_have_neither_header_nor_footer() {
        let alone = PrintSettings { rows_only: true, timing: false, ..people() };
        assert_eq!(print(alone, rows(vec![Ok(batch(&[7]))]), false).0, "+---+\n| 7 |\n+---+\n");
        let silent = PrintSettings { footer: false, ..people() };
        assert!(print(silent, rows(vec![Ok(batch(&[7]))]), false).0.ends_with("| 7 |\n+---+\n"));
    }

    #[test]
    fn a_footer_is_dim_where_there_is_colour() {
        let painted = PrintSettings { colour: super::super::settings::Colour::Always, ..people() };
        let (text, _) = print(painted, Answer::Done { tag: "SET".into(), notices: Vec::new() }, false);
        assert_eq!(text, format!("{}\n", paint(DIM, "SET · 12.4 ms")));
    }
}
