//! What console, stdout and blackhole write, to the byte.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use arrow::array::{Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};

use super::console::ConsoleStyle;
use super::*;
use crate::delta::Op;
use crate::display::Format;
use crate::error::Error;
use crate::options::{OptionEntry, OptionValue, Options};
use crate::parser::OutputMode;

fn schema() -> SchemaRef {
    let time = DataType::Timestamp(TimeUnit::Microsecond, None);
    Arc::new(Schema::new(vec![
        Field::new("window_start", time, false),
        Field::new("page", DataType::Utf8, true),
        Field::new("count", DataType::Int64, false),
    ]))
}

fn rows(values: &[(Option<&str>, i64)]) -> RecordBatch {
    let times = TimestampMicrosecondArray::from(vec![1_767_225_900_000_000; values.len()]);
    let pages = StringArray::from_iter(values.iter().map(|v| v.0));
    let counts = Int64Array::from_iter_values(values.iter().map(|v| v.1));
    RecordBatch::try_new(schema(), vec![Arc::new(times), Arc::new(pages), Arc::new(counts)]).unwrap()
}

fn changes() -> Delta {
    let ops = vec![Op::UpdateBefore, Op::UpdateAfter, Op::Insert, Op::Delete];
    Delta::changes(rows(&[(Some("/a"), 6), (Some("/a"), 7), (Some("/b"), 1), (None, 2)]), ops).unwrap()
}

fn context(retracts: bool) -> SinkContext {
    SinkContext {
        query: "per_min".into(),
        query_id: "id".into(),
        run_id: "run".into(),
        mode: OutputMode::Update,
        schema: schema(),
        retracts,
        keys: None,
        only_adds: false,
        delay: None,
        partitions: 2,
        committed: None,
        failpoints: Default::default(),
        durable: false,
    }
}

fn summary() -> BatchSummary {
    BatchSummary {
        input_rows: 1043,
        watermark: Some(1_767_225_895_000),
        state_rows: Some(18),
        ..BatchSummary::default()
    }
}

/// An output that keeps what it gets, and counts flushes.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<(Vec<u8>, usize)>>);

impl Kept {
    fn output(&self) -> SharedOutput {
        Arc::new(Mutex::new(Box::new(self.clone())))
    }

    fn take(&self) -> String {
        String::from_utf8(std::mem::take(&mut self.0.lock().unwrap().0)).unwrap()
    }

    fn flushes(&self) -> usize {
        self.0.lock().unwrap().1
    }
}

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().0.extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.lock().unwrap().1 += 1;
        Ok(())
    }
}

/// An output whose reader is gone.
struct Gone;

impl Write for Gone {
    fn write(&mut self, _bytes: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Err(io::ErrorKind::BrokenPipe.into())
    }
}

fn style(format: Format, empty_batches: bool, notices: &Arc<Mutex<Vec<String>>>) -> ConsoleStyle {
    let notices = notices.clone();
    ConsoleStyle { format, empty_batches, notices: Arc::new(move |line| notices.lock().unwrap().push(line.into())) }
}

fn run(sink: &mut dyn Sink, batch: BatchId, changes: Vec<Delta>) -> Result<SinkCommit> {
    sink.begin(batch)?;
    for (partition, changes) in changes.into_iter().enumerate().rev() {
        sink.push(partition, changes)?;
    }
    sink.commit(&summary())
}

#[test]
fn a_console_batch_is_a_line_and_a_table() {
    let (kept, notices) = (Kept::default(), Arc::default());
    let mut sink = console::open(&context(false), kept.output(), style(Format::Ascii, false, &notices));
    // Partition 1 pushes first; the output goes by partition all the same.
    let parts = vec![Delta::insert(rows(&[(Some("/a"), 7)])), Delta::insert(rows(&[(Some("/b"), 1)]))];
    assert_eq!(run(&mut sink, 12, parts).unwrap().rows, 2);
    let expected = "\
-- Batch: 12  query=per_min  mode=update  rows=2  in=1043  watermark=2026-01-01T00:04:55Z  state=18
+---------------------+------+-------+
| window_start        | page | count |
+---------------------+------+-------+
| 2026-01-01T00:05:00 | /a   |     7 |
| 2026-01-01T00:05:00 | /b   |     1 |
+---------------------+------+-------+
";
    assert_eq!(kept.take(), expected);
    assert_eq!(kept.flushes(), 1);
    assert!(notices.lock().unwrap().is_empty());
    run(&mut sink, 13, vec![]).unwrap();
    assert_eq!(kept.take(), "");
}

#[test]
fn a_query_that_takes_rows_back_shows_ops() {
    let (kept, notices) = (Kept::default(), Arc::default());
    let mut sink = console::open(&context(true), kept.output(), style(Format::Ascii, false, &notices));
    run(&mut sink, 0, vec![changes()]).unwrap();
    let shown = kept.take();
    let table: Vec<&str> = shown.lines().skip(2).collect();
    assert_eq!(table[0], "| op | window_start        | page | count |");
    assert_eq!(table[2], "| -U | 2026-01-01T00:05:00 | /a   |     6 |");
    assert_eq!(table[3], "| +U | 2026-01-01T00:05:00 | /a   |     7 |");
    assert!(table[4].starts_with("| +I |") && table[5].starts_with("| -D |"));
}

#[test]
fn an_empty_batch_is_shown_when_asked_for() {
    let (kept, notices) = (Kept::default(), Arc::default());
    let mut sink = console::open(&context(false), kept.output(), style(Format::Ascii, true, &notices));
    sink.begin(3).unwrap();
    sink.commit(&BatchSummary::default()).unwrap();
    let shown = kept.take();
    assert!(
        shown.starts_with("-- Batch: 3  query=per_min  mode=update  rows=0  in=0  watermark=-  state=-\n+--"),
        "{shown}"
    );
}

#[test]
fn console_csv_has_one_header_and_numbers_its_batches() {
    let (kept, notices) = (Kept::default(), Arc::new(Mutex::new(Vec::new())));
    let mut sink = console::open(&context(true), kept.output(), style(Format::Csv, false, &notices));
    run(&mut sink, 0, vec![Delta::insert(rows(&[(Some("/a"), 7)]))]).unwrap();
    run(&mut sink, 1, vec![]).unwrap();
    run(&mut sink, 2, vec![Delta::changes(rows(&[(Some("/a"), 7)]), vec![Op::Delete]).unwrap()]).unwrap();
    let expected =
        "__batch,__op,window_start,page,count\n0,+I,2026-01-01T00:05:00,/a,7\n2,-D,2026-01-01T00:05:00,/a,7\n";
    assert_eq!(kept.take(), expected);
    let notices = notices.lock().unwrap();
    assert_eq!(notices.len(), 2);
    assert!(notices[1].starts_with("-- Batch: 2  query=per_min"));
}

#[test]
fn console_json_lines_number_their_batches() {
    let (kept, notices) = (Kept::default(), Arc::default());
    let mut sink = console::open(&context(false), kept.output(), style(Format::JsonLines, false, &notices));
    run(&mut sink, 4, vec![Delta::insert(rows(&[(Some("/a"), 7)]))]).unwrap();
    let shown = kept.take();
    assert_eq!(shown, "{\"__batch\":4,\"window_start\":\"2026-01-01T00:05:00\",\"page\":\"/a\",\"count\":7}\n");
}

#[test]
fn an_aborted_batch_is_never_shown() {
    let (kept, notices) = (Kept::default(), Arc::default());
    let mut console = console::open(&context(false), kept.output(), style(Format::Ascii, false, &notices));
    let mut stdout = stdout::open(&Options::default(), &context(false), kept.output()).unwrap();
    for sink in [&mut console as &mut dyn Sink, &mut stdout] {
        sink.begin(0).unwrap();
        sink.push(0, Delta::insert(rows(&[(Some("/lost"), 1)]))).unwrap();
        sink.abort().unwrap();
        run(sink, 0, vec![Delta::insert(rows(&[(Some("/a"), 1)]))]).unwrap();
        let shown = kept.take();
        assert!(shown.contains("/a") && !shown.contains("/lost"), "{shown}");
    }
}

#[test]
fn a_reader_that_is_gone_is_a_broken_pipe() {
    let gone = || -> SharedOutput { Arc::new(Mutex::new(Box::new(Gone))) };
    let mut console = console::open(&context(false), gone(), style(Format::Ascii, false, &Arc::default()));
    let mut stdout = stdout::open(&Options::default(), &context(false), gone()).unwrap();
    for sink in [&mut console as &mut dyn Sink, &mut stdout] {
        let error = run(sink, 0, vec![Delta::insert(rows(&[(None, 1)]))]).unwrap_err();
        assert!(matches!(error, Error::Io { kind: io::ErrorKind::BrokenPipe, .. }), "{error}");
    }
}

fn format_option(format: &str) -> Options {
    let value = OptionValue::Text(format.into());
    Options { entries: vec![OptionEntry { name: "format".into(), value, span: Default::default() }] }
}

#[test]
fn stdout_writes_rows_and_nothing_else() {
    let kept = Kept::default();
    let mut sink = stdout::open(&Options::default(), &context(true), kept.output()).unwrap();
    run(&mut sink, 0, vec![changes()]).unwrap();
    run(&mut sink, 1, vec![]).unwrap();
    let shown = kept.take();
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines.len(), 4);
    assert_eq!(lines[0], "{\"__op\":\"-U\",\"window_start\":\"2026-01-01T00:05:00\",\"page\":\"/a\",\"count\":6}");
    assert_eq!(lines[3], "{\"__op\":\"-D\",\"window_start\":\"2026-01-01T00:05:00\",\"count\":2}");
    let mut sink = stdout::open(&format_option("csv"), &context(false), kept.output()).unwrap();
    for batch in 0..2 {
        run(&mut sink, batch, vec![Delta::insert(rows(&[(Some("/a"), 7)]))]).unwrap();
    }
    let row = "2026-01-01T00:05:00,/a,7\n";
    assert_eq!(kept.take(), format!("window_start,page,count\n{row}{row}"));
    assert!(stdout::open(&format_option("xml"), &context(false), kept.output()).is_err());
}

#[test]
fn ops_are_refused_where_none_were_announced() {
    let kept = Kept::default();
    let mut sink = stdout::open(&Options::default(), &context(false), kept.output()).unwrap();
    assert!(matches!(run(&mut sink, 0, vec![changes()]), Err(Error::Internal { .. })));
}

#[test]
fn blackhole_counts() {
    let mut sink = blackhole::open(&Options::default(), &context(true)).unwrap();
    assert_eq!(run(&mut sink, 0, vec![changes(), changes()]).unwrap().rows, 8);
    assert_eq!(run(&mut sink, 1, vec![]).unwrap().rows, 0);
}
