//! What records look at: progress documents, what a query gave out, what a reader of its sink finds.

use std::ops::Range;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use serde_json::Value;

use super::answer::{Failure, Outcome};
use super::record::{Shown, Which};
use super::values::{Letter, name, rows};
use super::world::{World, quoted};
use crate::delta::Op;
use crate::error::{Error, Location, closest};
use crate::format::sql_type;
use crate::parser::{OutputMode, Statement, Target, parse_one};
use crate::sink::Recorded;

/// Rows as a record compares them.
pub struct Seen {
    pub types: Vec<Letter>,
    pub names: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

impl World {
    /// What a query gave out in some batches; in UPDATE with the op of each row in front.
    ///
    /// # Errors
    /// It was not started.
    pub fn emitted(&self, query: &str, batches: impl Fn(u64) -> bool) -> Result<Seen, Failure> {
        let recorded = self.recorded(query)?;
        let (batch, ops) = recorded.changes(batches)?;
        let ops = (recorded.mode == OutputMode::Update).then_some(ops);
        self.seen(&recorded.schema, &[batch], ops)
    }

    /// What a query gave out in the batches that a record names.
    ///
    /// # Errors
    /// It was not started; it ran no such batch.
    pub fn emitted_in(&self, query: &str, which: Which) -> Result<Seen, Failure> {
        let recorded = self.recorded(query)?;
        let last = recorded.batches.keys().next_back().copied();
        let missing = match (which, last) {
            (Which::All, _) => None,
            (_, None) => return Err(Failure::new(format!("query {query} has run no batch"))),
            (Which::Batch(batch), _) if !recorded.batches.contains_key(&batch) => Some(batch),
            (Which::Since(batch), Some(last)) if batch > last => Some(batch),
            _ => None,
        };
        if let (Some(batch), Some(last)) = (missing, last) {
            return Err(Failure::new(format!("there is no batch {batch} of query {query}: the last one is {last}")));
        }
        self.emitted(query, |batch| match which {
            Which::Last => Some(batch) == last,
            Which::Batch(wanted) => batch == wanted,
            Which::Since(from) => batch >= from,
            Which::All => true,
        })
    }

    /// What a reader holds who followed a query.
    ///
    /// # Errors
    /// It was not started; its newest rows can't be told.
    pub fn folded(&self, query: &str) -> Result<Seen, Failure> {
        let recorded = self.recorded(query)?;
        let folded = recorded.folded()?;
        self.seen(&recorded.schema, &[folded], None)
    }

    fn recorded(&self, query: &str) -> Result<Recorded, Failure> {
        self.recorder.recorded(query).ok_or_else(|| Failure::new(format!("query {query} was not started")))
    }

    /// What an operator remembers.
    ///
    /// # Errors
    /// The query has ended, or has no such operator.
    pub fn state(&self, query: &str, operator: Option<&str>) -> Result<Seen, Failure> {
        let session = self.session();
        let cancel = session.cancel_token();
        cancel.clear();
        let all = self.query(query)?.state_contents(&|| cancel.is_cancelled())?;
        let names: Vec<String> = all.iter().map(|(name, _)| name.clone()).collect();
        let exact = operator.is_some_and(|wanted| names.iter().any(|name| name == wanted));
        let is_it = |name: &str| operator.is_none_or(|wanted| is_operator(name, wanted, exact));
        let mut found = all.into_iter().filter(|(name, _)| is_it(name));
        match (found.next(), found.next()) {
            (Some((_, batch)), None) => self.seen(&batch.schema(), &[batch], None),
            (None, _) if names.is_empty() => Err(Failure::new(format!("query {query} remembers nothing"))),
            (None, _) => Err(Failure::new(format!("query {query} has no such operator: it has {}", names.join(", ")))),
            (Some(_), Some(_)) => {
                Err(Failure::new(format!("name one of {}: state {query}.OPERATOR", names.join(", "))))
            }
        }
    }

    /// What an EXPLAIN of a query says.
    ///
    /// # Errors
    /// It was not started.
    pub fn explained(&self, query: &str, of: Shown) -> Result<String, Failure> {
        let query = self.query(query)?;
        Ok(match of {
            Shown::Plan => query.explain(),
            Shown::State => query.explain_state(),
            Shown::Why => {
                let cancel = self.session().cancel_token();
                cancel.clear();
                query.why(&|| cancel.is_cancelled())?
            }
        })
    }

    /// What a reader of a sink, a result table or a query's target finds: what was committed.
    ///
    /// # Errors
    /// There is no sink, result table or query of that name, or what it holds can't be read.
    pub fn committed(&self, name: &str) -> Result<Seen, Failure> {
        let session = self.session();
        let shown = parse_one(&format!("SHOW CREATE SINK {}", quoted(name)), Location { line: 1, column: 1 })?;
        if let Ok(crate::session::Answer::Text(sql)) = session.execute(&shown) {
            return self.read_sink(name, &sql);
        }
        if let Some(recorded) = self.recorder.recorded(name) {
            let committed = |batch| recorded.batches.get(&batch).is_some_and(|emitted| emitted.committed);
            return self.emitted(name, committed);
        }
        if !self.is_result_table(name) {
            return Err(Failure::new(format!(
                "{name} is no sink, no query, and no table that a query was started INTO: nothing is committed to it\nhelp: query reads what a stream or another table holds"
            )));
        }
        match self.execute(&format!("SELECT * FROM {}", quoted(name)))? {
            Outcome::Rows { schema, batches } => self.seen(&schema, &batches, None),
            Outcome::Done(_) => Err(Failure::new(format!("{name} answers no rows"))),
        }
    }

    /// The files of a file sink, read as a stream of the columns that the query writes.
    fn read_sink(&self, name: &str, sql: &str) -> Result<Seen, Failure> {
        let statement = parse_one(sql, Location { line: 1, column: 1 })?.statement;
        let Statement::CreateSink(sink) = statement else {
            return Err(Error::internal(format!("SHOW CREATE SINK {name} is no CREATE SINK")).into());
        };
        let (Some(path), Some(format)) = (sink.options.text("path"), sink.options.text("format")) else {
            return self.committed_by_query(name);
        };
        let schema = self.written_to(name)?;
        let ident = |name: &str| quoted(name);
        let columns: Vec<String> = schema
            .fields()
            .iter()
            .map(|field| format!("{} {}", quoted(field.name()), sql_type(field.data_type(), &ident)))
            .collect();
        let text = |value: &str| format!("'{}'", value.replace('\'', "''"));
        let header = if format == "csv" { ", header = true" } else { "" };
        let reader = quoted(&format!("{name} as it was committed"));
        let create = format!(
            "CREATE OR REPLACE STREAM {reader} ({}) WITH (connector = 'file', format = {}, path = {}{header})",
            columns.join(", "),
            text(format),
            text(path),
        );
        let run = |sql: &str| -> Result<crate::session::Answer, Failure> {
            Ok(self.session().execute(&parse_one(sql, Location { line: 1, column: 1 })?)?)
        };
        run(&create)?;
        let answer = run(&format!("SELECT * FROM {reader}"))?;
        let crate::session::Answer::Rows { schema, rows, .. } = answer else {
            return Err(Error::internal("a SELECT answered no rows").into());
        };
        let batches = rows.collect::<Result<Vec<_>, Error>>();
        run(&format!("DROP STREAM {reader}"))?;
        let mut seen = self.seen(&schema, &batches?, None)?;
        // Files are read by their times, which are this machine's.
        seen.rows.sort_unstable();
        Ok(seen)
    }

    /// The columns that the query writes whose target a sink is.
    fn written_to(&self, sink: &str) -> Result<SchemaRef, Failure> {
        let query = self.writer(sink)?;
        Ok(self.recorded(&query)?.schema)
    }

    fn committed_by_query(&self, sink: &str) -> Result<Seen, Failure> {
        let query = self.writer(sink)?;
        self.committed(&query)
    }

    fn writer(&self, sink: &str) -> Result<String, Failure> {
        let found = self.started_into(|target| matches!(target, Target::Sink(name) if name.value == sink));
        found.ok_or_else(|| Failure::new(format!("no query was started INTO {sink}")))
    }

    fn is_result_table(&self, table: &str) -> bool {
        self.started_into(|target| matches!(target, Target::Table(name) if name.value == table)).is_some()
    }

    /// The last query that was started into a target.
    fn started_into(&self, is_it: impl Fn(&Target) -> bool) -> Option<String> {
        let writes = |sql: &str| {
            let statement = parse_one(sql, Location { line: 1, column: 1 }).ok()?.statement;
            let Statement::StartQuery(start) = statement else { return None };
            start.target.as_ref().is_some_and(&is_it).then_some(start.name.value)
        };
        self.started().iter().rev().find_map(|(_, sql)| writes(sql))
    }

    fn seen(&self, schema: &SchemaRef, batches: &[RecordBatch], ops: Option<Vec<Op>>) -> Result<Seen, Failure> {
        let names = schema.fields().iter().map(|field| name(field.name(), self.style)).collect();
        let types = Letter::all(schema);
        let mut rows = rows(batches, self.style)?;
        for (row, op) in rows.iter_mut().zip(ops.into_iter().flatten()) {
            row.insert(0, op.symbol().to_string());
        }
        Ok(Seen { types, names, rows })
    }

    /// The progress document of a batch, of the last one where none is named.
    ///
    /// # Errors
    /// It ran no such batch, or its document is no longer kept.
    pub fn progress(&self, query: &str, batch: Option<u64>) -> Result<Value, Failure> {
        let documents = self.query(query)?.progress(usize::MAX);
        let number = |document: &Value| document.get("batchId").and_then(Value::as_u64);
        let found = match batch {
            None => documents.last(),
            Some(_) => documents.iter().find(|document| number(document) == batch),
        };
        found.cloned().ok_or_else(|| match batch {
            None => Failure::new(format!("query {query} has run no batch")),
            Some(batch) => Failure::new(format!("there is no progress of batch {batch} of query {query}")),
        })
    }

    /// What there is to know about the queries when a record has failed.
    pub fn describe(&self) -> String {
        let mut out = String::new();
        if self.clock.is_some() {
            out += &format!("  clock      {}\n", super::world::time_text(self.session().now()));
        }
        for name in self.queries() {
            let Ok(query) = self.query(&name) else { continue };
            let status = query.status();
            let watermark = query.watermark().map_or("-".into(), super::world::time_text);
            let batch = query.last_batch().map_or("-".into(), |batch| batch.to_string());
            out += &format!("  query      {name}: {}, last batch {batch}, watermark {watermark}\n", status.message);
            if let Some(document) = query.progress(1).first() {
                for source in document.get("sources").and_then(Value::as_array).into_iter().flatten() {
                    let text = |key: &str| source.get(key).map(Value::to_string).unwrap_or_default();
                    out += &format!("  offsets    {} {} to {}\n", text("name"), text("startOffset"), text("endOffset"));
                }
            }
            for line in query.explain().lines() {
                out += &format!("  plan       {line}\n");
            }
        }
        out
    }
}

/// Whether a word means an operator: its name, or, where there is none of that name, how it begins.
fn is_operator(name: &str, wanted: &str, exact: bool) -> bool {
    name == wanted || (!exact && name.starts_with(wanted))
}

/// Short names of values of a progress document.
const SHORT: &[(&str, &str)] = &[
    ("batch", "batchId"),
    ("input_rows", "numInputRows"),
    ("output_rows", "numOutputRows"),
    ("dropped_late", "lateRows"),
    ("late_rows", "lateRows"),
    ("late_contributions", "lateContributions"),
    ("null_time_rows", "nullTimeRows"),
    ("bad_rows", "badRows"),
];
/// Those of an operator's.
const OF_OPERATOR: &[(&str, &str)] = &[
    ("rows", "numRowsTotal"),
    ("updated", "numRowsUpdated"),
    ("removed", "numRowsRemoved"),
    ("evicted", "numRowsRemoved"),
    ("dropped_late", "numRowsDroppedByWatermark"),
    ("bytes", "memoryUsedBytes"),
];
/// Those of a source's.
const OF_SOURCE: &[(&str, &str)] = &[("start", "startOffset"), ("end", "endOffset"), ("rows", "numInputRows")];

/// Places in a document that not every one has.
const PLACES: &[&str] = &[
    "batchDuration",
    "batchId",
    "badRows",
    "checkpointBytes",
    "durationMs.addBatch",
    "durationMs.commitOffsets",
    "durationMs.getBatch",
    "durationMs.latestOffset",
    "durationMs.queryPlanning",
    "durationMs.stateCommit",
    "durationMs.triggerExecution",
    "durationMs.walCommit",
    "eventTime",
    "eventTime.avg",
    "eventTime.max",
    "eventTime.min",
    "eventTime.watermark",
    "futureRows",
    "id",
    "inputRowsPerSecond",
    "lateContributions",
    "lateRows",
    "name",
    "nullTimeRows",
    "numInputRows",
    "numOutputRows",
    "processedRowsPerSecond",
    "runId",
    "sink.description",
    "sink.numOutputRows",
    "sources",
    "stateOperators",
    "timestamp",
];
const OPERATOR_PLACES: &[&str] = &[
    "bound",
    "commitTimeMs",
    "customMetrics",
    "customMetrics.numDroppedDuplicateRows",
    "memoryUsedBytes",
    "name",
    "numRowsDroppedByWatermark",
    "numRowsRemoved",
    "numRowsTotal",
    "numRowsUpdated",
    "numStateStoreInstances",
    "operatorName",
];
const SOURCE_PLACES: &[&str] = &[
    "description",
    "endOffset",
    "inputRowsPerSecond",
    "latestOffset",
    "name",
    "numInputRows",
    "processedRowsPerSecond",
    "startOffset",
];

/// A value of a progress document by its name in test files; `None`: the document does not hold it.
///
/// # Errors
/// No document has such a value.
pub fn value_of(document: &Value, key: &str) -> Result<Option<Value>, String> {
    let list = |name: &str| document.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
    if let Some((_, place)) = SHORT.iter().find(|(short, _)| *short == key) {
        return Ok(document.get(*place).cloned());
    }
    match (key, key.split_once('.')) {
        ("watermark", _) => return Ok(document.pointer("/eventTime/watermark").cloned()),
        ("evicted", _) => return Ok(total(&list("stateOperators"), "numRowsRemoved")),
        (_, Some(("state", rest))) => return state_value(&list("stateOperators"), rest),
        (_, Some(("source", rest))) => return source_value(&list("sources"), rest),
        _ => {}
    }
    let found = document.pointer(&format!("/{}", key.replace('.', "/"))).cloned();
    if found.is_some() || PLACES.contains(&key) || is_further(key) {
        return Ok(found);
    }
    let short = SHORT.iter().map(|(short, _)| *short).chain(["watermark", "evicted", "state.rows"]);
    Err(unknown(key, short.chain(PLACES.iter().copied())))
}

/// Whether a key is of an operator or a source, by its number, which a query may not have: `stateOperators.1.name`.
fn is_further(key: &str) -> bool {
    let mut parts = key.splitn(3, '.');
    let places = match parts.next() {
        Some("stateOperators") => OPERATOR_PLACES,
        Some("sources") => SOURCE_PLACES,
        _ => return false,
    };
    let is_number = parts.next().is_some_and(|part| part.parse::<usize>().is_ok());
    is_number && parts.next().is_none_or(|place| places.contains(&place))
}

fn unknown<'a>(key: &str, known: impl Iterator<Item = &'a str>) -> String {
    match closest(key, known) {
        Some(near) => format!("no progress has {key}; did you mean {near}?"),
        None => format!("no progress has {key} (SHOW PROGRESS FOR q FORMAT JSON shows all it has)"),
    }
}

fn total(of: &[Value], field: &str) -> Option<Value> {
    let values: Vec<u64> = of.iter().filter_map(|o| o.get(field)?.as_u64()).collect();
    (!values.is_empty()).then(|| Value::from(values.iter().sum::<u64>()))
}

/// A field's name in the document, by its short one or its own.
fn field<'a>(key: &str, name: &'a str, short: &[(&str, &'a str)], places: &[&str]) -> Result<&'a str, String> {
    if let Some((_, place)) = short.iter().find(|(short, _)| *short == name) {
        return Ok(place);
    }
    match places.contains(&name) {
        true => Ok(name),
        false => Err(match closest(name, short.iter().map(|(short, _)| *short).chain(places.iter().copied())) {
            Some(near) => format!("no progress has {key}; did you mean {}{near}?", &key[..key.len() - name.len()]),
            None => unknown(key, std::iter::empty()),
        }),
    }
}

/// `state.FIELD` of all operators, `state.OPERATOR.FIELD` of some.
fn state_value(all: &[Value], rest: &str) -> Result<Option<Value>, String> {
    let key = format!("state.{rest}");
    let Some((operator, name)) = rest.rsplit_once('.') else {
        return Ok(total(all, field(&key, rest, OF_OPERATOR, OPERATOR_PLACES)?));
    };
    let name = field(&key, name, OF_OPERATOR, OPERATOR_PLACES)?;
    let names = |o: &Value| -> Vec<String> {
        ["name", "operatorName"].iter().filter_map(|key| o.get(*key)?.as_str().map(str::to_string)).collect()
    };
    let named = |o: &Value, exact: bool| names(o).iter().any(|name| is_operator(name, operator, exact));
    let exact = all.iter().any(|o| named(o, true));
    let found: Vec<Value> = all.iter().filter(|o| named(o, exact)).cloned().collect();
    if found.is_empty() && !all.is_empty() {
        let all: Vec<String> = all.iter().flat_map(names).collect();
        return Err(format!("the query has no operator {operator}: it has {}", all.join(", ")));
    }
    Ok(total(&found, name).or_else(|| found.first()?.get(name).cloned()))
}

/// `source.NAME.FIELD`
fn source_value(all: &[Value], rest: &str) -> Result<Option<Value>, String> {
    let key = format!("source.{rest}");
    let Some((name, end)) = rest.rsplit_once('.') else {
        return Err(format!("{key} names no value: source.NAME.start, .end or .rows"));
    };
    let place = field(&key, end, OF_SOURCE, SOURCE_PLACES)?;
    let named = |source: &&Value| source.get("name").and_then(Value::as_str) == Some(name);
    let Some(source) = all.iter().find(named) else {
        let all: Vec<&str> = all.iter().filter_map(|source| source.get("name")?.as_str()).collect();
        return Err(format!("the query has no source {name}: it has {}", all.join(", ")));
    };
    Ok(match end {
        "start" | "end" => source.get(place).map(offset),
        _ => source.get(place).cloned(),
    })
}

/// An offset of one number is that number.
fn offset(value: &Value) -> Value {
    match value.as_object().filter(|object| object.len() == 1).and_then(|object| object.values().next()) {
        Some(number) if number.is_u64() => number.clone(),
        _ => value.clone(),
    }
}

/// The batches of the last so many that a query ran.
pub fn last_batches(last: Option<u64>, ran: u64) -> Range<u64> {
    let end = last.map_or(0, |last| last + 1);
    end.saturating_sub(ran)..end
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_have_short_names() {
        let document = json!({
            "batchId": 3, "numInputRows": 5, "eventTime": {"watermark": "x"}, "durationMs": {"addBatch": 4},
            "stateOperators": [{"name": "aggregate a", "numRowsTotal": 2, "numRowsRemoved": 1}, {"name": "b", "numRowsTotal": 1},
                               {"name": "b#2", "numRowsTotal": 2}],
            "sources": [{"name": "s", "startOffset": null, "endOffset": {"inserted": 7}}],
        });
        let of = |key: &str| value_of(&document, key).unwrap();
        assert_eq!(of("input_rows"), Some(json!(5)));
        assert_eq!(
            (of("state.rows"), of("state.agg.rows"), of("evicted")),
            (Some(json!(5)), Some(json!(2)), Some(json!(1)))
        );
        assert_eq!((of("state.b.rows"), of("state.b#.rows")), (Some(json!(1)), Some(json!(2))));
        assert_eq!((of("source.s.end"), of("source.s.start")), (Some(json!(7)), Some(Value::Null)));
        assert_eq!((of("watermark"), of("durationMs.addBatch")), (Some(json!("x")), Some(json!(4))));
        assert_eq!((of("dropped_late"), of("state.agg.bytes"), of("eventTime.max")), (None, None, None));
    }

    #[test]
    fn a_key_that_no_document_has_is_no_value_that_is_absent() {
        let document = json!({
            "numInputRows": 5, "stateOperators": [{"name": "aggregate a", "numRowsTotal": 2}],
            "sources": [{"name": "s", "endOffset": null}],
        });
        for (key, why) in [
            ("inptu_rows", "did you mean input_rows?"),
            ("watermrak", "did you mean watermark?"),
            ("eventTime.wtermark", "did you mean eventTime.watermark?"),
            ("state.nope.rows", "no operator nope: it has aggregate a"),
            ("state.rwos", "did you mean"),
            ("source.t.end", "no source t: it has s"),
            ("source.s.edn", "no progress has source.s.edn"),
            ("source.s", "names no value"),
            ("quux", "no progress has quux"),
        ] {
            let error = value_of(&document, key).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
        assert_eq!(value_of(&json!({}), "state.agg.rows"), Ok(None), "a query without state has none");
        assert_eq!(value_of(&document, "stateOperators.1"), Ok(None));
        assert!(value_of(&document, "stateOperators.1.nmae").is_err());
    }
}
