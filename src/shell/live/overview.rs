//! The view of all queries: one line each.

use serde_json::Value;

use super::figures;
use super::frame::Size;
use super::grid::{GridRow, Looks, Widths, grid};
use super::keys::Key;
use super::line::{Line, Look};
use super::screen::{Screen, TICK, Typed};
use super::value::{Column, millis};
use crate::clock::Millis;
use crate::display::sparkline;
use crate::error::Result;
use crate::execution::{QueryHandle, QueryState};
use crate::session::Session;

/// Seconds that the bars show.
const BARS: usize = 15;

/// A rate is the mean of so many seconds.
const MEAN: usize = 10;

/// So many batches are looked at for it.
const BATCHES: usize = 200;

/// One query.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Seen {
    name: String,
    state: &'static str,
    batch: Option<u64>,
    /// Rows that came in each of the last seconds.
    input: Vec<f64>,
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

fn look(handle: &QueryHandle, now: Millis) -> Seen {
    let status = handle.status();
    let state = match status.state {
        QueryState::Running => "running",
        QueryState::Paused => "paused",
        QueryState::Stopped => "stopped",
        QueryState::Failed => "FAILED",
    };
    let documents = handle.progress(BATCHES);
    Seen {
        state,
        error: status.last_error.map(|error| error.to_string()),
        ..of_documents(handle.name(), &documents, now)
    }
}

/// What the progress documents of a query tell, oldest first.
fn of_documents(name: &str, documents: &[Value], now: Millis) -> Seen {
    let last = documents.last();
    let text = |pointer: &str| last.and_then(|last| last.pointer(pointer)).and_then(Value::as_str);
    let newest =
        documents.iter().filter_map(|d| d.pointer("/eventTime/max").and_then(Value::as_str)).filter_map(millis).max();
    let watermark = text("/eventTime/watermark");
    let states = last.and_then(|last| last.get("stateOperators")).and_then(Value::as_array);
    let over = |field: &str| {
        let numbers = states?.iter().filter_map(|state| state.get(field).and_then(Value::as_u64));
        numbers.reduce(u64::saturating_add)
    };
    let mut input = vec![0.0; BARS];
    for document in documents {
        let at = document.get("timestamp").and_then(Value::as_str).and_then(millis);
        let rows = document.get("numInputRows").and_then(Value::as_u64).unwrap_or(0);
        let ago = at.map(|at| now.saturating_sub(at).max(0) / 1000).and_then(|ago| usize::try_from(ago).ok());
        // The second that is not over yet is left out.
        if let Some(ago) = ago.filter(|ago| (1..=BARS).contains(ago)) {
            input[BARS - ago] += rows as f64;
        }
    }
    Seen {
        name: name.to_string(),
        state: "",
        batch: last.and_then(|last| last.get("batchId")).and_then(Value::as_u64),
        input,
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
    let rate = query.input.iter().rev().take(MEAN).sum::<f64>() / MEAN as f64;
    let dash = || Some("-".to_string());
    let cells = vec![
        Some(query.name.clone()),
        Some(query.state.to_string()),
        query.batch.map(|batch| batch.to_string()).or_else(dash),
        if known { Some(figures::count((rate * 10.0).round() / 10.0)) } else { dash() },
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
    let (left, last) = loop {
        screen.disturbed()?;
        let queries: Vec<Seen> = session.handles().iter().map(|handle| look(handle, session.now())).collect();
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

    #[test]
    fn what_documents_tell_is_one_line_a_query() {
        let failed = Seen { state: "FAILED", error: Some("out of disk".into()), ..of_documents("b", &[], NOW) };
        let queries = [Seen { state: "running", ..of_documents("per_min", &documents(), NOW) }, failed];
        let size = Size { columns: 121, rows: 10 };
        let lines = compose(&queries, Some(0), &mut Widths::default(), size, true);
        let text: String = lines.iter().map(|line| line.text() + "\n").collect();
        let expected = "
 queries · 2 · 1 running                                                                          ↑↓ Enter opens  q quit
 query    state    batch  in/s                   watermark                 lag  state rows  bytes    error
 per_min  running      3  5     ▁▁▁▁▁▃▁▁▁▁▁▁▁█▁  2026-01-01T00:00:04.500Z  5 s  18          2.10 kB
 b        FAILED       -  -                      -                         -    -           -        out of disk
";
        assert_eq!(format!("\n{text}"), expected);
    }

    #[test]
    fn keys_walk_and_open() {
        let queries = [of_documents("a", &[], NOW), of_documents("b", &[], NOW)];
        assert!(matches!(press(&[Key::Down, Key::Down], &queries, 0), Pressed::At(1)));
        assert!(matches!(press(&[Key::Down, Key::Enter], &queries, 0), Pressed::Left(Left::Into(name)) if name == "b"));
        assert!(matches!(press(&[Key::Enter], &[], 0), Pressed::At(0)));
        assert!(matches!(press(&[Key::Char('q')], &queries, 0), Pressed::Left(Left::Closed)));
    }

    #[test]
    fn a_small_screen_shows_the_query_that_is_chosen() {
        let queries: Vec<Seen> = (0..30).map(|n| of_documents(&format!("q{n}"), &[], NOW)).collect();
        for rows in 1..8 {
            let size = Size { columns: 40, rows };
            let lines = compose(&queries, Some(20), &mut Widths::default(), size, true);
            assert!(lines.len() <= rows);
            assert!(rows < 3 || lines.iter().any(|line| line.text().contains("q20")), "{rows}");
        }
    }
}
