//! Statements about queries that run: STOP, PAUSE, RESUME, AWAIT, WATCH, VERIFY, STEP, CRASH; and ADVANCE CLOCK.

use sqlparser::tokenizer::Token;

use super::cursor::{Cursor, End};
use super::lexer::Lexeme;
use super::query::{query, starts_query};
use super::statement::*;
use crate::error::{Error, Result};

impl Cursor<'_> {
    /// `n BATCHES`, n at least 1.
    pub fn batches(&mut self) -> Result<u64> {
        let batches = self.count("the number of batches", 1)?;
        if !self.take(&["BATCHES"]) && !self.take(&["BATCH"]) {
            return Err(self.expected("BATCHES", &["BATCHES"]));
        }
        Ok(batches)
    }

    /// `QUERY name`
    fn query_name(&mut self) -> Result<Name> {
        self.expect(&["QUERY"])?;
        self.plain_name("the name of the query")
    }

    /// `[TIMEOUT interval]` and the end.
    fn timeout(&mut self, before: &str, words: &[&str]) -> Result<Option<Interval>> {
        if self.take(&["TIMEOUT"]) {
            let timeout = self.duration("a timeout")?;
            self.finish()?;
            return Ok(Some(timeout));
        }
        if self.peek().is_some() { Err(self.expected(before, words)) } else { Ok(None) }
    }
}

/// Behind `STOP`.
pub(super) fn stop(cursor: &mut Cursor<'_>) -> Result<Statement> {
    let which = if cursor.take(&["ALL"]) {
        Which::All
    } else if cursor.is(&["QUERY"]) {
        Which::One(cursor.query_name()?)
    } else {
        return Err(cursor.expected("QUERY or ALL", &["QUERY", "ALL"]));
    };
    let how = if cursor.take(&["AFTER"]) {
        StopHow::AfterBatches(cursor.batches()?)
    } else if cursor.take(&["WHEN"]) {
        cursor.expect(&["IDLE"])?;
        StopHow::WhenIdle
    } else if cursor.take(&["DRAIN"]) {
        StopHow::Drain
    } else if cursor.take(&["NOW"]) {
        StopHow::Now
    } else {
        StopHow::Graceful
    };
    let words = ["AFTER", "WHEN", "DRAIN", "NOW", "TIMEOUT"];
    let before = match how {
        StopHow::Graceful => "AFTER n BATCHES, WHEN IDLE, DRAIN, NOW, TIMEOUT or the end of the statement",
        _ => "TIMEOUT or the end of the statement",
    };
    let timeout = cursor.timeout(before, &words)?;
    Ok(Statement::StopQuery { which, how, timeout })
}

/// Behind `AWAIT`.
pub(super) fn await_query(cursor: &mut Cursor<'_>) -> Result<Statement> {
    let name = cursor.query_name()?;
    let until = if cursor.take(&["IDLE"]) {
        AwaitUntil::Idle
    } else if cursor.take(&["TERMINATION"]) {
        AwaitUntil::Termination
    } else if cursor.take(&["BATCH"]) {
        AwaitUntil::Batch(cursor.count("the id of a batch", 0)?)
    } else if matches!(cursor.peek().map(|l| &l.token), Some(Token::Number(..) | Token::Minus)) {
        AwaitUntil::Batches(cursor.batches()?)
    } else {
        AwaitUntil::Default
    };
    let words = ["BATCH", "IDLE", "TERMINATION", "TIMEOUT"];
    let before = match until {
        AwaitUntil::Default => "n BATCHES, BATCH n, IDLE, TERMINATION, TIMEOUT or the end of the statement",
        _ => "TIMEOUT or the end of the statement",
    };
    let timeout = cursor.timeout(before, &words)?;
    Ok(Statement::AwaitQuery { name, until, timeout })
}

/// A statement of a verb, QUERY and a name.
pub(super) fn of_query(cursor: &mut Cursor<'_>, statement: fn(Name) -> Statement) -> Result<Statement> {
    let name = cursor.query_name()?;
    cursor.finish()?;
    Ok(statement(name))
}

/// Behind `WATCH`.
pub(super) fn watch(cursor: &mut Cursor<'_>, text: &str) -> Result<Statement> {
    if cursor.peek().is_some_and(starts_query) {
        return watch_select(cursor, text);
    }
    let name = cursor.plain_name("a SELECT or the name of a query")?;
    let until = if cursor.take(&["LIMIT"]) {
        Some(WatchUntil::Rows(cursor.count("the number of rows", 1)?))
    } else if cursor.take(&["FOR"]) {
        Some(WatchUntil::Batches(cursor.batches()?))
    } else if cursor.peek().is_some() {
        return Err(cursor.expected("LIMIT n, FOR n BATCHES or the end of the statement", &["LIMIT", "FOR"]));
    } else {
        None
    };
    cursor.finish()?;
    Ok(Statement::Watch { what: WatchWhat::Query(name), until })
}

/// `LIMIT n` at the end of a SELECT without ORDER BY says when to stop watching; with ORDER BY it makes a Top-N, which
/// goes on.
fn watch_select(cursor: &mut Cursor<'_>, text: &str) -> Result<Statement> {
    let mut lexemes = &cursor.lexemes[cursor.at..];
    let mut end = cursor.end;
    let mut until = None;
    if let Some(at) = lexemes.len().checked_sub(3)
        && lexemes[at].is_word("FOR")
        && lexemes[at + 2].is_any(&["BATCHES", "BATCH"])
    {
        until = Some(WatchUntil::Batches(Cursor { lexemes, at: at + 1, end }.batches()?));
        end = End::Before(&lexemes[at]);
        lexemes = &lexemes[..at];
    }
    if let Some(at) = lexemes.len().checked_sub(2)
        && lexemes[at].is_word("LIMIT")
        && !is_ordered(lexemes)
    {
        if until.is_some() {
            return Err(Error::invalid_at(lexemes[at].span, "WATCH ends by LIMIT or by FOR … BATCHES, not by both"));
        }
        until = Some(WatchUntil::Rows(Cursor { lexemes, at: at + 1, end }.count("the number of rows", 1)?));
        end = End::Before(&lexemes[at]);
        lexemes = &lexemes[..at];
    }
    let query = query(lexemes, text, end)?;
    Ok(Statement::Watch { what: WatchWhat::Select(Box::new(query)), until })
}

/// Whether ORDER BY stands outside of all parentheses.
fn is_ordered(lexemes: &[Lexeme]) -> bool {
    let mut depth = 0usize;
    lexemes.windows(2).any(|pair| {
        match pair[0].token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && pair[0].is_word("ORDER") && pair[1].is_word("BY")
    })
}

/// Behind `STEP`.
pub(super) fn step(cursor: &mut Cursor<'_>) -> Result<Statement> {
    let name = cursor.query_name()?;
    let step = match cursor.peek() {
        None => Step::Batches(1),
        Some(_) if cursor.take(&["EMPTY"]) => Step::Empty,
        Some(next) if matches!(next.token, Token::Number(..) | Token::Minus) => Step::Batches(cursor.batches()?),
        Some(_) => return Err(cursor.expected("n BATCHES, EMPTY or the end of the statement", &["EMPTY"])),
    };
    cursor.finish()?;
    Ok(Statement::StepQuery { name, step })
}

/// Behind `CRASH`.
pub(super) fn crash(cursor: &mut Cursor<'_>) -> Result<Statement> {
    let query = cursor.query_name()?;
    cursor.expect(&["AT"])?;
    let point = cursor.string("a point in quotes, such as 'sink.before'")?;
    let hit = if cursor.take(&["HIT"]) { cursor.count("the number behind HIT", 1)? } else { 1 };
    let action = if cursor.take(&["AS"]) {
        match cursor.one_of(&["KILL", "ERROR", "TORN", "ENOSPC", "LOST_FSYNC"])? {
            "KILL" => CrashAction::Kill,
            "ERROR" => CrashAction::Error,
            "TORN" => CrashAction::Torn(cursor.count("the number of bytes written", 0)?),
            "ENOSPC" => CrashAction::Enospc,
            _ => CrashAction::LostFsync,
        }
    } else {
        CrashAction::Kill
    };
    cursor.finish()?;
    Ok(Statement::CrashQuery(Crash { query, point, hit, action }))
}

/// Behind `ADVANCE`.
pub(super) fn advance(cursor: &mut Cursor<'_>) -> Result<Statement> {
    cursor.expect(&["CLOCK"])?;
    let to = match cursor.one_of(&["BY", "TO"])? {
        "BY" => ClockMove::By(cursor.duration("the interval")?),
        _ => {
            cursor.take(&["TIMESTAMP"]);
            let place = cursor.place();
            let text = cursor.string("a timestamp such as TIMESTAMP '2024-01-01 00:00:00'")?;
            ClockMove::To(millis(&text).map_err(|error| error.at(Some(place)))?)
        }
    };
    cursor.finish()?;
    Ok(Statement::AdvanceClock(to))
}

/// Milliseconds since 1970 of a timestamp; without a zone it is UTC.
fn millis(text: &str) -> Result<i64> {
    let parsed = arrow::compute::kernels::cast_utils::string_to_datetime(&chrono::Utc, text.trim());
    let time = parsed.map_err(|_| {
        Error::invalid(format!("'{text}' is no timestamp")).help("write TIMESTAMP '2024-01-01 00:00:00'")
    })?;
    if time.timestamp_subsec_nanos() % 1_000_000 != 0 {
        return Err(Error::invalid(format!("'{text}' is finer than a millisecond, and the clock is not")));
    }
    Ok(time.timestamp_millis())
}
