//! Tests of the whole room: every form of every statement, what is refused and where, and the way back to text.

use proptest::test_runner::{Config as ProptestConfig, RngSeed};

use super::*;
use crate::error::{Error, Location, Result};

mod errors;
mod forms;
mod limits;
mod queries;
mod roundtrip;
mod splitting;

/// The start of an input.
const START: Location = Location { line: 1, column: 1 };

/// Random, but the same in every run.
fn fixed(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, rng_seed: RngSeed::Fixed(7), failure_persistence: None, ..ProptestConfig::default() }
}

fn parse(text: &str) -> Result<Statement> {
    parse_one(text, START).map(|parsed| parsed.statement)
}

fn parsed(text: &str) -> Statement {
    match parse(text) {
        Ok(statement) => statement,
        Err(error) => panic!("{text}\n{error:?}"),
    }
}

fn error(text: &str) -> Error {
    match parse(text) {
        Ok(statement) => panic!("{text}\n{statement:?}"),
        Err(error) => error,
    }
}

/// `line:column-column message | help` of what is wrong with a text.
fn complaint(text: &str) -> String {
    let error = error(text);
    let place = match error.span() {
        Some(span) if span.start.line == span.end.line => {
            format!("{}:{}-{} ", span.start.line, span.start.column, span.end.column)
        }
        Some(span) => format!("{}:{}-{}:{} ", span.start.line, span.start.column, span.end.line, span.end.column),
        None => String::new(),
    };
    match error.help_text() {
        Some(help) => format!("{place}{error} | {help}"),
        None => format!("{place}{error}"),
    }
}

/// The statement's canonical text, after the text was seen to mean the same statement.
#[track_caller]
fn canonical(text: &str) -> String {
    let first = parsed(text);
    let written = first.to_string();
    let second = parsed(&written);
    assert_eq!(without_places(&first), without_places(&second), "{text}\n{written}");
    assert_eq!(second.to_string(), written, "{text}");
    written
}

/// The debug text of a statement without places and without the text of queries, which are not what it means.
fn without_places(statement: &Statement) -> String {
    let text = format!("{statement:#?}");
    let mut kept: Vec<String> = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let indent = line.len() - line.trim_start().len();
        let body = line.trim_start();
        let is_place = ["Location {", "Span {"].iter().any(|place| body.trim_end_matches(',').ends_with(place));
        if is_place {
            while lines.next().is_some_and(|inner| inner.len() - inner.trim_start().len() > indent) {}
            continue;
        }
        if body.starts_with("text: ") || body.contains("Span(") || body.contains("Location(") {
            continue;
        }
        // What nobody quoted folds.
        if body == "quote_style: None,"
            && let Some(value) = kept.last_mut()
        {
            *value = value.to_lowercase();
        }
        kept.push(line.to_string());
    }
    kept.join("\n")
}
