//! START QUERY: where its SELECT ends and its own clauses begin; and ALTER QUERY … SET TRIGGER.
//!
//! The clauses come in any order behind the SELECT, each once. They begin at the first place from which everything up
//! to the end of the statement is clauses; so `SELECT output mode FROM s` selects a column, and
//! `FROM s WITH (partitions = 2)` at the end gives the query an option.

use sqlparser::tokenizer::Token;

use super::cursor::{Cursor, End};
use super::lexer::Lexeme;
use super::query::query;
use super::statement::*;
use crate::error::{Error, Result, Span, closest};
use crate::options::Options;

const HEADS: [&str; 5] = ["OUTPUT", "TRIGGER", "STOP", "CHECKPOINT", "WITH"];

/// What follows TRIGGER.
const TRIGGERS: [&str; 5] = ["EVERY", "AVAILABLE", "ONCE", "CONTINUOUS", "MANUAL"];

/// Behind `START QUERY`.
pub(super) fn start_query(cursor: &mut Cursor<'_>, text: &str) -> Result<Statement> {
    let if_not_exists = cursor.if_not_exists();
    let name = cursor.plain_name("the name of the query")?;
    let target = if cursor.take(&["INTO"]) { Some(target(cursor)?) } else { None };
    if !cursor.take(&["AS"]) {
        let error = cursor.expected(if target.is_some() { "AS and a SELECT" } else { "INTO or AS" }, &["INTO", "AS"]);
        return Err(match cursor.peek().is_some_and(|next| next.is_any(&HEADS)) {
            true => error.help(
                "the clauses stand behind the SELECT: START QUERY name [INTO target] AS SELECT … [OUTPUT MODE …] [TRIGGER …] [CHECKPOINT …] [WITH (…)]",
            ),
            false => error,
        });
    }
    let lexemes = &cursor.lexemes[cursor.at..];
    let (at, clauses) = clauses_begin(lexemes, cursor.end).unwrap_or((lexemes.len(), Clauses::default()));
    let query = query(&lexemes[..at], text, End::before(lexemes, at, cursor.end))
        .map_err(|error| wrong_clause(lexemes, text, cursor).unwrap_or(error))?;
    let Clauses { mode, trigger, stop_after, checkpoint, options } = clauses;
    Ok(Statement::StartQuery(Box::new(StartQuery {
        if_not_exists,
        name,
        target,
        query,
        mode,
        trigger: trigger.map(|(trigger, _)| trigger),
        stop_after: stop_after.map(|(batches, _)| batches),
        checkpoint_place: checkpoint.as_ref().map(|(_, place)| *place),
        checkpoint: checkpoint.map(|(location, _)| location),
        options: options.map(|(options, _)| options).unwrap_or_default(),
    })))
}

/// `CONSOLE`, `BLACKHOLE`, `TABLE t` or the name of a sink.
fn target(cursor: &mut Cursor<'_>) -> Result<Target> {
    if cursor.take(&["CONSOLE"]) {
        return Ok(Target::Console);
    }
    if cursor.take(&["BLACKHOLE"]) {
        return Ok(Target::Blackhole);
    }
    if cursor.take(&["TABLE"]) {
        return Ok(Target::Table(cursor.plain_name("the name of the table")?));
    }
    Ok(Target::Sink(cursor.plain_name("CONSOLE, BLACKHOLE, TABLE or the name of a sink")?))
}

/// The clauses, each with its place.
#[derive(Debug, Default)]
struct Clauses {
    mode: Option<(OutputMode, Span)>,
    trigger: Option<(Trigger, Span)>,
    stop_after: Option<(u64, Span)>,
    checkpoint: Option<(String, Span)>,
    options: Option<(Options, Span)>,
}

/// The first place from which everything is clauses, and the clauses.
fn clauses_begin(lexemes: &[Lexeme], end: End<'_>) -> Option<(usize, Clauses)> {
    outside(lexemes).filter(|&at| lexemes[at].is_any(&HEADS)).find_map(|at| {
        let mut cursor = Cursor { lexemes, at, end };
        Some((at, clauses(&mut cursor).ok()?))
    })
}

/// When the query in front of that place (or the whole, without one) can't be read: what is wrong with the clauses, if
/// there is a place further in front from which the query is right and they are not.
fn wrong_clause(lexemes: &[Lexeme], text: &str, cursor: &Cursor<'_>) -> Option<Error> {
    const TRIES: usize = 16;
    let looks_like_head = |at: &usize| {
        let word = lexemes[*at].word().unwrap_or_default();
        let of_query = word.eq_ignore_ascii_case("WITH") && lexemes.get(at + 1).is_some_and(|l| l.is_word("WATERMARK"));
        *at > 0 && word.len() > 3 && closest(word, HEADS).is_some() && !of_query
    };
    outside(lexemes).filter(looks_like_head).take(TRIES).find_map(|at| {
        query(&lexemes[..at], text, End::before(lexemes, at, cursor.end)).ok()?;
        clauses(&mut Cursor { lexemes, at, end: cursor.end }).err()
    })
}

/// The places of words outside of all brackets.
fn outside(lexemes: &[Lexeme]) -> impl Iterator<Item = usize> {
    let mut depth = 0usize;
    lexemes.iter().enumerate().filter_map(move |(at, lexeme)| match lexeme.token {
        Token::LParen | Token::LBracket | Token::LBrace => {
            depth += 1;
            None
        }
        Token::RParen | Token::RBracket | Token::RBrace => {
            depth = depth.saturating_sub(1);
            None
        }
        Token::Word(_) if depth == 0 => Some(at),
        _ => None,
    })
}

/// Everything that is left must be clauses, each once.
fn clauses(cursor: &mut Cursor<'_>) -> Result<Clauses> {
    let mut clauses = Clauses::default();
    while cursor.peek().is_some() {
        let from = cursor.at;
        let head = match cursor.one_of(&HEADS) {
            Ok(head) => head,
            Err(_) => {
                let expected = "OUTPUT MODE, TRIGGER, STOP AFTER, CHECKPOINT, WITH (…) or the end of the statement";
                return Err(cursor.expected(expected, &HEADS));
            }
        };
        let place = cursor.span_from(from);
        match head {
            "OUTPUT" => once(&mut clauses.mode, "OUTPUT MODE", place, cursor, output_mode)?,
            "TRIGGER" => once(&mut clauses.trigger, "TRIGGER", place, cursor, trigger)?,
            "STOP" => once(&mut clauses.stop_after, "STOP AFTER", place, cursor, stop_after)?,
            "CHECKPOINT" => once(&mut clauses.checkpoint, "CHECKPOINT", place, cursor, checkpoint)?,
            _ => once(&mut clauses.options, "WITH", place, cursor, |cursor| cursor.with_list())?,
        }
    }
    Ok(clauses)
}

fn once<T>(
    slot: &mut Option<(T, Span)>,
    name: &str,
    head: Span,
    cursor: &mut Cursor<'_>,
    read: impl FnOnce(&mut Cursor<'_>) -> Result<T>,
) -> Result<()> {
    if let Some((_, first)) = slot {
        let (line, column) = (first.start.line, first.start.column);
        return Err(
            Error::invalid_at(head, format!("{name} is given twice")).help(format!("it stands at {line}:{column} too"))
        );
    }
    let from = cursor.at;
    let value = read(cursor)?;
    let end = cursor.span_from(from).end;
    *slot = Some((value, Span { start: head.start, end }));
    Ok(())
}

/// `MODE {APPEND | UPDATE | COMPLETE}`
fn output_mode(cursor: &mut Cursor<'_>) -> Result<OutputMode> {
    cursor.expect(&["MODE"])?;
    Ok(match cursor.one_of(&["APPEND", "UPDATE", "COMPLETE"])? {
        "APPEND" => OutputMode::Append,
        "UPDATE" => OutputMode::Update,
        _ => OutputMode::Complete,
    })
}

/// `EVERY interval`, `AVAILABLE NOW`, `ONCE`, `CONTINUOUS interval` or `MANUAL`
fn trigger(cursor: &mut Cursor<'_>) -> Result<Trigger> {
    Ok(match cursor.one_of(&TRIGGERS)? {
        "EVERY" => Trigger::Every(every(cursor)?),
        "AVAILABLE" => {
            cursor.expect(&["NOW"])?;
            Trigger::AvailableNow
        }
        "ONCE" => Trigger::Once,
        "CONTINUOUS" => Trigger::Continuous(cursor.duration("the interval of a trigger")?),
        _ => Trigger::Manual,
    })
}

/// Batches begin at whole multiples of it on the query's clock, which counts milliseconds.
fn every(cursor: &mut Cursor<'_>) -> Result<Interval> {
    let from = cursor.at;
    let interval = cursor.duration("the interval of a trigger")?;
    let wrong = |message: &str, help: &str| Err(Error::invalid_at(cursor.span_from(from), message).help(help));
    match interval {
        Interval { months: 1.., .. } => wrong("a month has no fixed length", "TRIGGER EVERY '30 days'"),
        Interval { micros: 0, .. } => {
            wrong("a trigger's interval can't be 0", "without TRIGGER a batch runs as soon as there is data")
        }
        Interval { micros, .. } if micros % 1_000 != 0 => {
            wrong("a trigger's interval is a whole number of milliseconds", "TRIGGER EVERY '1 millisecond'")
        }
        whole => Ok(whole),
    }
}

/// `AFTER n BATCHES`
fn stop_after(cursor: &mut Cursor<'_>) -> Result<u64> {
    cursor.expect(&["AFTER"])?;
    cursor.batches()
}

fn checkpoint(cursor: &mut Cursor<'_>) -> Result<String> {
    let place = cursor.place();
    let location = cursor.string("the checkpoint's location in quotes")?;
    if location.is_empty() {
        return Err(Error::invalid_at(place, "the checkpoint's location can't be empty"));
    }
    Ok(location)
}

/// Behind `ALTER QUERY`.
pub(super) fn alter_query(cursor: &mut Cursor<'_>) -> Result<Statement> {
    let name = cursor.plain_name("the name of the query")?;
    cursor.expect(&["SET", "TRIGGER"])?;
    let trigger = trigger(cursor)?;
    cursor.finish()?;
    Ok(Statement::AlterTrigger { name, trigger })
}
