//! The view of all queries: one line each.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::Value;

use super::figures;
use super::frame::Size;
use super::grid::{GridRow, Looks, Widths, grid};
use super::keys::Key;
use super::line::{Line, Look};
use super::rates::Rates;
use super::screen::{Screen, TICK, Typed};
use super::value::{Column, millis};
use crate::clock::Millis;
use crate::display::sparkline;
use crate::error::Result;
use crate::execution::{QueryHandle, QueryState};
use crate::session::Session;

/// Seconds that the bars show.
const BARS: usize = 15;

/// So many batches are looked at when a query is first seen, and as many as are new later, up to so many.
const FIRST_BATCHES: usize = 200;
const MOST_BATCHES: u64 = 10_000;

/// One query.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Seen {
    name: String,
    state: &'static str,
    batch: Option<u64>,
    /// Rows that came in each of the last seconds, and how many a second lately.
    input: Vec<f64>,
    rate: Option<f64>,
    watermark: Option<String>,
    lag: Option<i64>,
    state_rows: Option<u64>,
    state_bytes: Option<u64>,
    error: Option<String>,
}

/// How the view was left.
pub(super) enum Left {
    Closed,
    /// To look at this query.
    Into(String),
}

/// What is known of a query from the looks before.
#[derive(Default)]
struct Known {
    batch: Option<u64>,
    rates: Rates,
    /// The newest time of a row, in milliseconds.
    newest: Option<Millis>,
}

fn look(handle: &QueryHandle, known: &mut Known, now: Millis) -> Seen {
    let status = handle.status();
    let state = match status.state {
        QueryState::Running => "running",
        QueryState::Paused => "paused",
        QueryState::Stopped => "stopped",
        QueryState::Failed => "FAILED",
    };
    let newest = handle.progress(1).last().and_then(batch_of);
    if newest < known.batch {
        // It was started anew.
        *known = Known::default();
    }
    let wanted = match (known.batch, newest) {
        (Some(known), Some(newest)) => newest.saturating_sub(known).clamp(1, MOST_BATCHES),
        _ => FIRST_BATCHES as u64,
    };
    let documents = handle.progress(usize::try_from(wanted).unwrap_or(FIRST_BATCHES));
    Seen {
        state,
        error: status.last_error.map(|error| error.to_string()),
        ..of_documents(handle.name(), &documents, known, now)
    }
}

fn batch_of(document: &Value) -> Option<u64> {
    document.get("batchId").and_then(Value::as_u64)
}

/// What the progress documents of a query tell, oldest first.
fn of_documents(name: &str, documents: &[Value], known: &mut Known, now: Millis) -> Seen {
    let last = documents.last();
    let text = |pointer: &str| last.and_then(|last| last.pointer(pointer)).and_then(Value::as_str);
    let seconds = |millis: Millis| Duration::from_millis(u64::try_from(millis).unwrap_or(0));
    let seen = known.batch;
    for document in documents.iter().filter(|document| seen.is_none() || batch_of(document) > seen) {
        let at = document.get("timestamp").and_then(Value::as_str).and_then(millis);
        let rows = document.get("numInputRows").and_then(Value::as_u64).unwrap_or(0);
        known.rates.add(seconds(at.unwrap_or(now)), rows);
        known.newest = known.newest.max(document.pointer("/eventTime/max").and_then(Value::as_str).and_then(millis));
        known.batch = known.batch.max(batch_of(document));
    }
    let newest = known.newest;
    let mut input = known.rates.over(seconds(now), BARS);
    input.splice(..0, std::iter::repeat_n(0.0, BARS - input.len()));
    let watermark = text("/eventTime/watermark");
    let states = last.and_then(|last| last.get("stateOperators")).and_then(Value::as_array);
    let over = |field: &str| {
        let numbers = states?.iter().filter_map(|state| state.get(field).and_then(Value::as_u64));
        numbers.reduce(u64::saturating_add)
    };
    Seen {
        name: name.to_string(),
        state: "",
        batch: known.batch,
        input,
        rate: known.rates.a_second(seconds(now)),
        watermark: watermark.map(str::to_string),
        lag: newest.zip(watermark.and_then(millis)).map(|(newest, watermark)| newest.saturating_sub(watermark).max(0)),
        state_rows: over("numRowsTotal"),
        state_bytes: over("memoryUsedBytes"),
        error: None,
    }
}

/// The lines of the screen.
fn compose(queries: &[Seen], chosen: Option<usize>, widths: &mut Widths, size: Size, unicode: bool) -> Vec<Line> {
    let room = size.columns.saturating_sub(1);
    let running = queries.iter().filter(|query| query.state == "running").count();
    let mut head = Line::of(Look::Bold, " queries");
    head.push(Look::Plain, format!(" · {} · {running} running", queries.len()));
    head.push_right(Look::Dim, "↑↓ Enter opens  q quit", room);
    let height = size.rows.saturating_sub(2).max(1);
    let top = chosen.map_or(0, |chosen| (chosen + 1).saturating_sub(height));
    let shown = queries.iter().enumerate().skip(top).take(height);
    let rows: Vec<GridRow> = shown.map(|(at, query)| row(query, Some(at) == chosen, unicode)).collect();
    let looks = Looks { room, left: 0, names: true, kinds: false, unicode };
    let mut lines = vec![head.fit(room)];
    lines.extend(grid(&columns(), &rows, widths, &looks));
    if queries.is_empty() {
        lines.push(Line::of(Look::Dim, " no query was started").fit(room));
    }
    lines.truncate(size.rows);
    lines
}

fn columns() -> Vec<Column> {
    let names = ["query", "state", "batch", "in/s", "", "watermark", "lag", "state rows", "bytes", "error"];
    let column = |name: &&str| Column {
        name: name.to_string(),
        kind: String::new(),
        data_type: arrow::datatypes::DataType::Utf8,
        // To the right; these are no numbers whose points would stand below each other.
        number: matches!(*name, "batch"),
        time: false,
    };
    names.iter().map(column).collect()
}

fn row(query: &Seen, chosen: bool, unicode: bool) -> GridRow {
    let known = query.batch.is_some();
    let dash = || Some("-".to_string());
    let cells = vec![
        Some(query.name.clone()),
        Some(query.state.to_string()),
        query.batch.map(|batch| batch.to_string()).or_else(dash),
        query.rate.map(|rate| figures::count((rate * 10.0).round() / 10.0)).or_else(dash),
        Some(if known { sparkline(&query.input, unicode) } else { String::new() }),
        query.watermark.clone().or_else(dash),
        query.lag.map(figures::span).or_else(dash),
        query.state_rows.map(|rows| figures::count(rows as f64)).or_else(dash),
        query.state_bytes.map(figures::bytes).or_else(dash),
        Some(query.error.clone().unwrap_or_default()),
    ];
    let look = match query.state {
        "FAILED" => Some(Look::Alert),
        "stopped" => Some(Look::Dim),
        _ => None,
    };
    GridRow { cells, look, chosen, ..GridRow::default() }
}

/// Shows all queries until it is left. `cancelled`: the statement is to end.
///
/// # Errors
/// The terminal can't be used.
pub(super) fn overview(
    session: &Session,
    chosen: &mut Option<String>,
    colour: bool,
    cancelled: &dyn Fn() -> bool,
) -> Result<Left> {
    let mut screen = Screen::open(true, colour)?;
    let mut widths = Widths::default();
    let mut known: HashMap<String, Known> = HashMap::new();
    let (left, last) = loop {
        screen.disturbed()?;
        let handles = session.handles();
        let seen = handles.iter().map(|handle| {
            let known = known.entry(handle.name().to_string()).or_default();
            look(handle, known, session.now())
        });
        let queries: Vec<Seen> = seen.collect();
        let at = chosen.as_ref().and_then(|name| queries.iter().position(|query| query.name == *name)).unwrap_or(0);
        let lines = compose(&queries, Some(at), &mut widths, screen.room(), screen.unicode);
        screen.paint(&lines)?;
        if cancelled() {
            break (Left::Closed, queries);
        }
        let Typed::Keys(keys) = wait(&mut screen)? else { break (Left::Closed, queries) };
        match press(&keys, &queries, at) {
            Pressed::Left(left) => break (left, queries),
            Pressed::Suspend => screen.suspend()?,
            Pressed::At(at) => *chosen = queries.get(at).map(|query| query.name.clone()),
        }
    };
    let room = Size { rows: last.len() + 2, ..screen.size };
    let lines = compose(&last, None, &mut Widths::default(), room, screen.unicode);
    let closed = matches!(left, Left::Closed);
    screen.close(if closed { lines.get(1..).unwrap_or_default() } else { &[] })?;
    Ok(left)
}

/// Half a second, or until something is typed.
fn wait(screen: &mut Screen) -> Result<Typed> {
    for _ in 0..5 {
        match screen.keys(TICK)? {
            Typed::Keys(keys) if keys.is_empty() => {}
            typed => return Ok(typed),
        }
    }
    Ok(Typed::Keys(Vec::new()))
}

enum Pressed {
    Left(Left),
    Suspend,
    At(usize),
}

fn press(keys: &[Key], queries: &[Seen], at: usize) -> Pressed {
    let last = queries.len().saturating_sub(1);
    let mut at = at;
    for key in keys {
        match key {
            Key::Char('q') | Key::Escape | Key::Ctrl('c') => return Pressed::Left(Left::Closed),
            Key::Ctrl('z') => return Pressed::Suspend,
            Key::Up | Key::Char('k') => at = at.saturating_sub(1),
            Key::Down | Key::Char('j') => at = (at + 1).min(last),
            Key::Home | Key::Char('g') => at = 0,
            Key::End | Key::Char('G') => at = last,
            Key::Enter | Key::Char('o') => {
                if let Some(query) = queries.get(at) {
                    return Pressed::Left(Left::Into(query.name.clone()));
                }
            }
            _ => {}
        }
    }
    Pressed::At(at)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn documents() -> Vec<Value> {
        let document = |batch: u64, second: &str, rows: u64| {
            json!({
                "batchId": batch, "timestamp": format!("2026-01-01T00:00:{second}Z"), "numInputRows": rows,
                "eventTime": {"max": "2026-01-01T00:00:09.500Z", "watermark": "2026-01-01T00:00:04.500Z"},
                "stateOperators": [{"numRowsTotal": 18, "memoryUsedBytes": 2100}],
            })
        };
        vec![document(0, "00.100", 10), document(1, "08.000", 40), document(2, "09.900", 60), document(3, "10.400", 7)]
    }

    const NOW: Millis = 1_767_225_610_500;

    fn of(name: &str, documents: &[Value]) -> Seen {
        of_documents(name, documents, &mut Known::default(), NOW)
    }

    #[test]
    fn batches_are_counted_once_however_many_a_second() {
        let mut known = Known::default();
        let second = |second: i64| NOW - 10_500 + second * 1_000;
        let batches = |first: u64, second: &str| -> Vec<Value> {
            let one = |n: u64| json!({"batchId": first + n, "timestamp": format!("2026-01-01T00:00:{second}.000Z"), "numInputRows": 2});
            (0..500).map(one).collect()
        };
        of_documents("q", &batches(0, "00"), &mut known, second(1));
        let both = [batches(0, "00"), batches(500, "01")].concat();
        let seen = of_documents("q", &both, &mut known, second(2));
        assert_eq!((seen.rate, seen.batch, &seen.input[BARS - 2..]), (Some(1000.0), Some(999), &[1000.0, 1000.0][..]));
    }

    #[test]
    fn what_documents_tell_is_one_line_a_query() {
        let failed = Seen { state: "FAILED", error: Some("out of disk".into()), ..of("b", &[]) };
        let queries = [Seen { state: "running", ..of("per_min", &documents()) }, failed];
        let size = Size { columns: 121, rows: 10 };
        let lines = compose(&queries, Some(0), &mut Widths::default(), size, true);
        let text: String = lines.iter().map(|line| line.text() + "\n").collect();
        let expected = "
 queries · 2 · 1 running                                                                          ↑↓ Enter opens  q quit
 query    state    batch  in/s                   watermark                 lag  state rows  bytes    error
 per_min  running      3  11    ▁▁▁▁▁▃▁▁▁▁▁▁▁▆█  2026-01-01T00:00:04.500Z  5 s  18          2.10 kB
 b        FAILED       -  -                      -                         -    -           -        out of disk
";
        assert_eq!(format!("\n{text}"), expected);
    }

    #[test]
    fn keys_walk_and_open() {
        let queries = [of("a", &[]), of("b", &[])];
        assert!(matches!(press(&[Key::Down, Key::Down], &queries, 0), Pressed::At(1)));
        assert!(matches!(press(&[Key::Down, Key::Enter], &queries, 0), Pressed::Left(Left::Into(name)) if name == "b"));
        assert!(matches!(press(&[Key::Enter], &[], 0), Pressed::At(0)));
        assert!(matches!(press(&[Key::Char('q')], &queries, 0), Pressed::Left(Left::Closed)));
    }

    #[test]
    fn a_small_screen_shows_the_query_that_is_chosen() {
        let queries: Vec<Seen> = (0..30).map(|n| of(&format!("q{n}"), &[])).collect();
        for rows in 1..8 {
            let size = Size { columns: 40, rows };
            let lines = compose(&queries, Some(20), &mut Widths::default(), size, true);
            assert!(lines.len() <= rows);
            assert!(rows < 3 || lines.iter().any(|line| line.text().contains("q20")), "{rows}");
        }
    }
}
