//! Dead letters: records that `on_error` let pass and rows that came too late, written to sinks of their own under the id of their
//! batch, before the query's own sink has it. A sink that takes each batch once has each of them once.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use super::OpenSink;
use super::run::Run;
use super::samples::objects;
use crate::delta::Delta;
use crate::error::{Error, Result};
use crate::incremental::{IncrementalPlan, Input};
use crate::sink::{BatchSummary, Begin, Sink, SinkContext};

/// Where dead letters go: sinks by name, and which is whose.
#[derive(Default)]
pub struct DeadLetters {
    /// Of the query (`START QUERY … WITH (dead_letter = …)`): late rows, and bad records of streams that name none themselves.
    pub of_query: Option<String>,
    /// The sinks that the query and its streams name.
    pub sinks: BTreeMap<String, OpenSink>,
}

/// The same, opened.
#[derive(Default)]
pub(super) struct DeadLetterSinks {
    of_query: Option<String>,
    sinks: BTreeMap<String, Box<dyn Sink>>,
}

/// One dead letter.
struct Letter {
    kind: &'static str,
    source: String,
    file: Option<String>,
    line: Option<i64>,
    error: String,
    text: String,
}

/// The columns of a dead letter.
fn schema() -> SchemaRef {
    let text = |name: &str, nullable| Field::new(name, DataType::Utf8, nullable);
    Arc::new(Schema::new(vec![
        Field::new("batch", DataType::Int64, false),
        text("kind", false),
        text("source", false),
        text("file", true),
        Field::new("line", DataType::Int64, true),
        text("error", false),
        text("text", false),
    ]))
}

impl DeadLetterSinks {
    /// Opens the sinks. `context`: that of the query's own.
    ///
    /// # Errors
    /// Of a sink.
    pub fn open(letters: DeadLetters, context: &SinkContext) -> Result<Self> {
        let context = SinkContext {
            mode: crate::parser::OutputMode::Append,
            schema: schema(),
            retracts: false,
            keys: None,
            only_adds: true,
            partitions: 1,
            ..context.clone()
        };
        let open = |(name, open): (String, OpenSink)| Ok((name, open(context.clone())?));
        let sinks = letters.sinks.into_iter().map(open).collect::<Result<_>>()?;
        Ok(DeadLetterSinks { of_query: letters.of_query, sinks })
    }

    /// Has all bad records and late rows kept that go to a sink.
    pub fn arm(&self, plan: &IncrementalPlan) {
        for input in plan.inputs.iter().filter(|input| self.of_input(input).is_some()) {
            input.leaf.keep_all_bad_records();
        }
        if self.of_query.is_some() {
            plan.cell.keep_all_late();
        }
    }

    /// Whether nothing goes anywhere.
    pub fn is_empty(&self) -> bool {
        self.sinks.is_empty()
    }

    /// Drops what was pushed.
    pub fn abort(&mut self) -> Result<()> {
        self.sinks.values_mut().try_for_each(|sink| sink.abort())
    }

    /// The sink of a stream's bad records. One that was not opened is not the query's to write: WATCH keeps none.
    fn of_input(&self, input: &Input) -> Option<String> {
        let name = input.stream.options.text("dead_letter").or(self.of_query.as_deref())?;
        self.sinks.contains_key(name).then(|| name.to_string())
    }
}

impl Run {
    /// Writes the dead letters of batch `n`, which has just run.
    ///
    /// # Errors
    /// Of a sink. Conflict: it has a batch that this checkpoint has only now begun.
    pub(super) fn write_dead_letters(&mut self, n: u64, is_new: bool, summary: &BatchSummary) -> Result<()> {
        let mut letters: BTreeMap<String, Vec<Letter>> = BTreeMap::new();
        for input in &self.plan.inputs {
            let Some(name) = self.dead_letters.of_input(input) else { continue };
            let mut bad = input.leaf.bad_records().map(|bad| bad.all()).unwrap_or_default();
            // Parts of a file are read side by side.
            bad.sort_by(|(a, _), (b, _)| (&a.path, a.line).cmp(&(&b.path, b.line)));
            let letter = |(record, text): (crate::error::BadRecord, String)| Letter {
                kind: "bad",
                source: input.name.clone(),
                file: record.path,
                line: record.line.and_then(|line| i64::try_from(line).ok()),
                error: record.reason,
                text,
            };
            letters.entry(name).or_default().extend(bad.into_iter().map(letter));
        }
        if let Some(name) = &self.dead_letters.of_query {
            letters.entry(name.clone()).or_default().extend(self.late_letters());
        }
        for (name, sink) in &mut self.dead_letters.sinks {
            let begin = sink.begin(n)?;
            if begin == Begin::AlreadyDone {
                if is_new {
                    return Err(super::micro_batch::ahead(n, self.checkpoint.location()));
                }
                continue;
            }
            let rows = rows(n, letters.remove(name).unwrap_or_default())?;
            if rows.num_rows() > 0 {
                sink.push(0, Delta::insert(rows))?;
            }
            sink.commit(summary)?;
        }
        Ok(())
    }

    fn late_letters(&self) -> Vec<Letter> {
        let late = self.plan.cell.late_watermark();
        let operator = |n: usize| self.operators.get(n).and_then(|o| Some(o.specs().first()?.name().to_string()));
        let of = |(n, rows): (usize, RecordBatch)| {
            let source = operator(n).unwrap_or_default();
            let lag = self.plan.operators.get(n).map_or(0, |node| node.lag);
            let watermark = late.map_or("-".into(), |at| super::progress::instant(at.saturating_sub(lag)));
            let error = format!("late for {source}: its watermark was {watermark}");
            let letter = move |text| Letter {
                kind: "late",
                source: source.clone(),
                file: None,
                line: None,
                error: error.clone(),
                text,
            };
            objects(&rows).into_iter().map(letter)
        };
        let mut letters: Vec<Letter> = self.plan.cell.late().into_iter().flat_map(of).collect();
        // Partitions meet them side by side.
        letters.sort_by(|a, b| (&a.source, &a.text).cmp(&(&b.source, &b.text)));
        letters
    }
}

fn rows(batch: u64, letters: Vec<Letter>) -> Result<RecordBatch> {
    let texts =
        |of: fn(&Letter) -> Option<&str>| -> ArrayRef { Arc::new(letters.iter().map(of).collect::<StringArray>()) };
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from(vec![batch as i64; letters.len()])),
        texts(|letter| Some(letter.kind)),
        texts(|letter| Some(&letter.source)),
        texts(|letter| letter.file.as_deref()),
        Arc::new(letters.iter().map(|letter| letter.line).collect::<Int64Array>()),
        texts(|letter| Some(&letter.error)),
        texts(|letter| Some(&letter.text)),
    ];
    RecordBatch::try_new(schema(), columns).map_err(|e| Error::internal(e.to_string()))
}
