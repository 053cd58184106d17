//! Statements that answer a question: SHOW, DESCRIBE, EXPLAIN; and settings: SET, RESET.

use sqlparser::tokenizer::Token;

use super::cursor::Cursor;
use super::lexer::Lexeme;
use super::query::{query, starts_query};
use super::statement::*;
use crate::error::{Error, Result, closest};

/// What SHOW lists.
const LISTS: [(&str, Show); 8] = [
    ("STREAMS", Show::Streams),
    ("TABLES", Show::Tables),
    ("VIEWS", Show::Views),
    ("SINKS", Show::Sinks),
    ("QUERIES", Show::Queries),
    ("FUNCTIONS", Show::Functions),
    ("ALL", Show::Settings),
    ("FAILPOINTS", Show::Failpoints),
];

/// All words that SHOW knows, as completion and error messages want them.
pub(super) const WORDS: [&str; 12] = [
    "STREAMS",
    "TABLES",
    "VIEWS",
    "SINKS",
    "QUERIES",
    "FUNCTIONS",
    "ALL",
    "FAILPOINTS",
    "PROGRESS",
    "STATUS",
    "STATE",
    "CREATE",
];

/// Behind `SHOW`.
pub(super) fn show(cursor: &mut Cursor<'_>) -> Result<Statement> {
    for (word, show) in LISTS {
        if cursor.take(&[word]) {
            cursor.finish()?;
            return Ok(Statement::Show(show));
        }
    }
    let show = if cursor.take(&["CREATE"]) {
        let kind = object_kind(cursor)?;
        let name = cursor.plain_name(&format!("the name of the {}", kind.noun()))?;
        cursor.finish()?;
        return Ok(Statement::ShowCreate { kind, name });
    } else if cursor.take(&["PROGRESS"]) {
        progress(cursor)?
    } else if cursor.take(&["STATUS"]) {
        Show::Status(for_query(cursor)?)
    } else if cursor.take(&["STATE"]) {
        cursor.expect(&["FOR"])?;
        Show::State(cursor.plain_name("the name of the query")?)
    } else {
        return show_setting(cursor);
    };
    cursor.finish()?;
    Ok(Statement::Show(show))
}

fn show_setting(cursor: &mut Cursor<'_>) -> Result<Statement> {
    let from = cursor.at;
    let name = setting_name(cursor, "what to show")?;
    let place = cursor.span_from(from);
    // `SHOW STREAM` is one letter short of a list, and no setting is called so.
    let quoted = matches!(&cursor.lexemes[from].token, Token::Word(w) if w.quote_style.is_some());
    if let Some(word) = closest(&name.value, WORDS).filter(|_| !quoted) {
        return Err(Error::invalid_at(place, format!("there is no SHOW {}", name.value.to_uppercase()))
            .help(format!("did you mean SHOW {word}?")));
    }
    cursor.finish()?;
    Ok(Statement::Show(Show::Setting(name)))
}

/// `[FOR q] [LAST n] [FORMAT JSON]`, or `LIVE`
fn progress(cursor: &mut Cursor<'_>) -> Result<Show> {
    if cursor.take(&["LIVE"]) {
        return Ok(Show::ProgressLive);
    }
    let query = for_query(cursor)?;
    let last = if cursor.take(&["LAST"]) { Some(cursor.count("the number of batches", 1)?) } else { None };
    let json = cursor.take(&["FORMAT"]);
    if json {
        cursor.expect(&["JSON"])?;
    }
    if cursor.peek().is_some() {
        let words = ["FOR", "LAST", "FORMAT", "LIVE"];
        let error = cursor.expected("FOR, LAST n, FORMAT JSON or the end", &words);
        let name = cursor.peek().and_then(Lexeme::word).filter(|name| closest(name, words).is_none());
        return Err(match name.filter(|_| query.is_none() && last.is_none() && !json) {
            Some(name) => error.help(format!("that of one query is SHOW PROGRESS FOR {name}")),
            None => error,
        });
    }
    Ok(Show::Progress { query, last, json })
}

fn for_query(cursor: &mut Cursor<'_>) -> Result<Option<Name>> {
    if cursor.take(&["FOR"]) { Ok(Some(cursor.plain_name("the name of the query")?)) } else { Ok(None) }
}

/// `STREAM`, `SINK`, `TABLE`, `VIEW` or `QUERY`.
pub(super) fn object_kind(cursor: &mut Cursor<'_>) -> Result<ObjectKind> {
    Ok(match cursor.one_of(&["STREAM", "SINK", "TABLE", "VIEW", "QUERY"])? {
        "STREAM" => ObjectKind::Stream,
        "SINK" => ObjectKind::Sink,
        "TABLE" => ObjectKind::Table,
        "VIEW" => ObjectKind::View,
        _ => ObjectKind::Query,
    })
}

/// Behind `DESCRIBE` or `DESC`.
pub(super) fn describe(cursor: &mut Cursor<'_>) -> Result<Statement> {
    let name = cursor.plain_name("the name of a stream, table, view or query")?;
    cursor.finish()?;
    Ok(Statement::Describe(name))
}

/// Behind `EXPLAIN`.
pub(super) fn explain(cursor: &mut Cursor<'_>, text: &str) -> Result<Statement> {
    let explain = if cursor.take(&["QUERY"]) {
        Explain::Query(cursor.plain_name("the name of the query")?)
    } else if cursor.take(&["WHY"]) {
        Explain::Why(cursor.plain_name("the name of the query")?)
    } else {
        let state = cursor.take(&["STATE"]);
        let analyze = !state && cursor.take(&["ANALYZE"]);
        let verbose = !state && cursor.take(&["VERBOSE"]);
        if state && !cursor.peek().is_some_and(starts_query) {
            let name = cursor.plain_name("a SELECT or the name of a query")?;
            cursor.finish()?;
            return Ok(Statement::Explain(Explain::StateOf(name)));
        }
        if !cursor.peek().is_some_and(starts_query) {
            let words = ["SELECT", "ANALYZE", "VERBOSE", "QUERY", "WHY", "STATE"];
            let what = if analyze || verbose { "a SELECT" } else { "a SELECT, QUERY, WHY or STATE" };
            return Err(cursor.expected(what, &words));
        }
        let query = Box::new(query(&cursor.lexemes[cursor.at..], text, cursor.end)?);
        cursor.at = cursor.lexemes.len();
        if state { Explain::State(query) } else { Explain::Select { analyze, verbose, query } }
    };
    cursor.finish()?;
    Ok(Statement::Explain(explain))
}

/// Behind `SET`.
pub(super) fn set(cursor: &mut Cursor<'_>) -> Result<Statement> {
    let name = setting_name(cursor, "the name of a setting")?;
    if !cursor.take_token(&Token::Eq) && !cursor.take(&["TO"]) {
        return Err(cursor.expected("=", &["TO"]));
    }
    let value = set_value(cursor)?;
    cursor.finish()?;
    Ok(Statement::Set { name, value })
}

/// Behind `RESET`.
pub(super) fn reset(cursor: &mut Cursor<'_>) -> Result<Statement> {
    let name = setting_name(cursor, "the name of a setting")?;
    cursor.finish()?;
    Ok(Statement::Reset(name))
}

/// A string, a number, TRUE, FALSE, DEFAULT, an interval, or a word that stands for its text.
fn set_value(cursor: &mut Cursor<'_>) -> Result<SetValue> {
    if cursor.take(&["TRUE"]) {
        return Ok(SetValue::Bool(true));
    }
    if cursor.take(&["FALSE"]) {
        return Ok(SetValue::Bool(false));
    }
    if cursor.take(&["DEFAULT"]) {
        return Ok(SetValue::Default);
    }
    if cursor.is(&["INTERVAL"]) {
        return Ok(SetValue::Text(cursor.interval()?.to_string()));
    }
    if let Some(number) = cursor.signed_number() {
        return Ok(SetValue::Number(number));
    }
    if let Some(Token::Word(word)) = cursor.peek().map(|l| &l.token) {
        cursor.at += 1;
        return Ok(SetValue::Text(word.value.clone()));
    }
    Ok(SetValue::Text(cursor.string("a value (a string, a number, a word, TRUE, FALSE or DEFAULT)")?))
}

/// Parts joined by dots, without the prefix `levada.`; `TIME ZONE` is DataFusion's `timezone`.
fn setting_name(cursor: &mut Cursor<'_>, what: &str) -> Result<Name> {
    let from = cursor.at;
    if cursor.take(&["TIME", "ZONE"]) {
        return Ok(Name { value: "timezone".to_string(), span: cursor.span_from(from) });
    }
    let parts = cursor.path(what)?;
    let values: Vec<&str> = parts.iter().map(|part| part.value.as_str()).collect();
    let values = match values.split_first() {
        Some((&"levada", rest)) if !rest.is_empty() => rest,
        _ => &values[..],
    };
    let value = values.join(".");
    if value.split('.').any(str::is_empty) {
        return Err(Error::invalid_at(cursor.span_from(from), "a part of the setting's name is empty"));
    }
    Ok(Name { value, span: cursor.span_from(from) })
}
