//! A query and what somebody chose to see of it → the lines of the screen. Nothing here writes.

use std::time::Duration;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use super::figures;
use super::grid::{GridRow, Looks, Widths, grid};
use super::keys;
use super::line::{Line, Look, padded};
use super::model::{Model, Row};
use super::value::Column;
use super::view::{Overlay, Page, Typing, View};
use crate::delta::Op;
use crate::display::{bar_chart, label_columns, sparkline, visible};
use crate::parser::OutputMode;

/// For so long a change is marked.
pub(super) const FRESH: Duration = Duration::from_secs(2);

/// How many seconds the bars of rates show.
const BARS: usize = 15;

/// So many rows of the last table are left on the screen.
const LAST_ROWS: usize = 40;

/// What is known beside the query's results.
#[derive(Debug, Clone, Default)]
pub(super) struct Status<'a> {
    /// `RUNNING`
    pub(super) state: &'a str,
    /// For so long.
    pub(super) ran: Duration,
    /// The time of the model's clock.
    pub(super) now: Duration,
    /// The last thing that somebody had to say.
    pub(super) notice: Option<&'a str>,
    pub(super) unicode: bool,
    /// Of a statement that is run again and again.
    pub(super) runs: Option<Runs<'a>>,
}

/// How a statement is run again and again.
#[derive(Debug, Clone, Copy)]
pub(super) struct Runs<'a> {
    pub(super) every: Duration,
    /// The last that has ended, counted from 1.
    pub(super) run: u64,
    /// The time of day when it began, and how long it took.
    pub(super) clock: &'a str,
    pub(super) took: Duration,
    /// One runs for so long.
    pub(super) runs_for: Option<Duration>,
    pub(super) statement: &'a str,
}

/// The size of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) columns: usize,
    pub(super) rows: usize,
}

/// What a page is drawn of, and where.
struct Paper<'a> {
    seen: &'a Model,
    status: &'a Status<'a>,
    /// Columns of the terminal.
    room: usize,
    /// Lines that are left.
    height: usize,
}

/// The lines of a screen of that size, no more of them than it has rows, none as wide as it.
pub(super) fn compose(live: &Model, view: &mut View, status: &Status<'_>, size: Size) -> Vec<Line> {
    let room = size.columns.saturating_sub(1);
    let mut lines = vec![match &status.runs {
        Some(runs) => head_of_runs(live, view, runs, room),
        None => head(live, view, status, room),
    }];
    if view.metrics && size.rows >= 6 {
        let whole = metrics(live, view, status, false);
        lines.push(if whole.width() <= room { whole } else { metrics(live, view, status, true) });
    }
    let footers = usize::from(size.rows >= 3);
    let height = size.rows.saturating_sub(lines.len() + footers);
    let held = view.held.take();
    let seen = held.as_deref().unwrap_or(live);
    let paper = Paper { seen, status, room, height };
    let (page, below) = match view.overlay.clone() {
        None => paper.page(view),
        Some(overlay) => paper.over(view, &overlay),
    };
    lines.extend(page);
    let foot = footer(seen, view, status, below, room);
    view.held = held;
    lines.truncate(size.rows.saturating_sub(footers));
    if footers > 0 {
        lines.push(foot);
    }
    lines.truncate(size.rows);
    lines.into_iter().map(|line| line.fit(room)).collect()
}

/// How many rows a screen needs to show everything.
pub(super) fn needed(live: &Model, view: &View) -> usize {
    4 + usize::from(view.metrics) + live.len()
}

/// ` per_min · UPDATE · RUNNING 00:03:12 · batch 58 (12 ms)`
fn head(live: &Model, view: &View, status: &Status<'_>, room: usize) -> Line {
    let mut line = Line::of(Look::Bold, format!(" {}", visible(&live.query)));
    let mode = match live.mode {
        OutputMode::Append => "APPEND",
        OutputMode::Update => "UPDATE",
        OutputMode::Complete => "COMPLETE",
    };
    line.push(Look::Plain, format!(" · {mode} · "));
    match &view.held {
        None => line.push(Look::Plain, status.state),
        Some(held) => {
            let more = live.batches.saturating_sub(held.batches);
            line.push(Look::Alert, format!("PAUSED +{more} batch{}", if more == 1 { "" } else { "es" }));
        }
    }
    line.push(Look::Plain, format!(" {}", figures::clock(status.ran)));
    if let Some(batch) = live.log.back() {
        let ago = status.now.saturating_sub(batch.at).as_secs();
        let ago = (ago > 0).then(|| format!("{} ago", figures::span(ago as i64 * 1000)));
        let took = live.facts.took_ms.filter(|_| live.facts.batch == Some(batch.number));
        let took = took.map(|took| figures::span(took as i64));
        let beside: Vec<String> = ago.into_iter().chain(took).collect();
        line.push(Look::Plain, format!(" · batch {}", batch.number));
        if !beside.is_empty() {
            line.push(Look::Dim, format!(" ({})", beside.join(", ")));
        }
    }
    line.push_right(Look::Dim, "q quit  ? help", room);
    line
}

/// ` every 2 s · run 5 · 12:00:01Z (3 ms) · SELECT …`
fn head_of_runs(live: &Model, view: &View, runs: &Runs<'_>, room: usize) -> Line {
    let span = |time: Duration| figures::span(i64::try_from(time.as_millis()).unwrap_or(i64::MAX));
    let mut line = Line::of(Look::Bold, format!(" every {}", span(runs.every)));
    if runs.run > 0 {
        line.push(Look::Plain, format!(" · run {} · {}", runs.run, runs.clock));
        line.push(Look::Dim, format!(" ({})", span(runs.took)));
    }
    if let Some(held) = &view.held {
        let more = live.batches.saturating_sub(held.batches);
        line.push(Look::Alert, format!(" · PAUSED +{more} run{}", if more == 1 { "" } else { "s" }));
    }
    if let Some(time) = runs.runs_for {
        line.push(Look::Plain, format!(" · running {}", span(Duration::from_secs(time.as_secs()))));
    }
    const RIGHT: &str = "q quit  ? help";
    let statement = visible(&runs.statement.split_whitespace().collect::<Vec<_>>().join(" ")).into_owned();
    let left = room.saturating_sub(line.width() + RIGHT.len() + 5);
    // A few letters of it say nothing.
    if left >= 12 || statement.width() <= left {
        line.push(Look::Dim, format!(" · {}", super::line::clip(&statement, left, false)));
    }
    line.push_right(Look::Dim, RIGHT, room);
    line
}

/// ` in 1.04k/s ▁▂▃  out 12/s  watermark 00:04:55 (lag 5.2 s)  state 18 rows · 2.1 kB  late 0`; `brief`: without what is
/// missed least.
fn metrics(live: &Model, view: &View, status: &Status<'_>, brief: bool) -> Line {
    let known = live.batches >= 2;
    let rate = |rates: &super::rates::Rates| match rates.a_second(status.now).filter(|_| known) {
        Some(rate) => format!("{}/s", figures::count(rate)),
        None => "—".to_string(),
    };
    let bars = sparkline(&live.input.over(status.now, if brief { BARS / 2 } else { BARS }), status.unicode);
    let mut line = Line::of(Look::Plain, format!(" in {}", rate(&live.input)));
    if known && !bars.is_empty() {
        line.push(Look::Dim, format!(" {bars}"));
    }
    line.push(Look::Plain, format!("  out {}", rate(&live.output)));
    watermark(live, status, brief, &mut line);
    let last = live.log.back();
    if let Some(rows) = last.and_then(|batch| batch.state_rows) {
        let rows = format!("  state {} row{}", figures::count(rows as f64), if rows == 1 { "" } else { "s" });
        line.push(Look::Plain, rows);
        if let Some(bytes) = live.facts.state_bytes {
            line.push(Look::Plain, format!(" · {}", figures::bytes(bytes)));
        }
    }
    if let Some(late) = live.facts.late {
        let look = if late > 0 { Look::Alert } else { Look::Plain };
        line.push(look, format!("  late {}", figures::count(late as f64)));
    }
    if let Some((at, down)) = view.order_now(live) {
        let name = live.columns.get(at).map_or("", |column| column.name.as_str());
        let arrow = match (status.unicode, down) {
            (true, true) => "↓",
            (true, false) => "↑",
            (false, true) => " down",
            (false, false) => " up",
        };
        line.push(Look::Dim, format!("  sort {name}{arrow}"));
    }
    line
}

fn watermark(live: &Model, status: &Status<'_>, brief: bool, line: &mut Line) {
    let Some(batch) = live.log.back() else { return };
    if batch.drains {
        return line.push(Look::Plain, "  watermark end");
    }
    // Progress documents come a little later than batches: a watermark stands beside its own lag.
    let Some(watermark) = live.facts.watermark.or(batch.watermark) else { return };
    let time = chrono::DateTime::from_timestamp_millis(watermark);
    let format = if brief { "%H:%M:%S" } else { "%Y-%m-%d %H:%M:%S" };
    let time = time.map_or(format!("{watermark} ms"), |time| time.format(format).to_string());
    let idle = live.seems_idle();
    let far = live.facts.lags_by();
    let look = if idle || far.is_some() { Look::Alert } else { Look::Plain };
    line.push(look, format!("  watermark {time}"));
    let lag = live.facts.lag.map(|lag| {
        let lags: Vec<f64> = live.facts.lags.iter().rev().take(5).rev().copied().collect();
        let bars = sparkline(&lags, status.unicode);
        format!("lag {} {bars}", figures::span(lag)).trim_end().to_string()
    });
    let idle = idle.then(|| "idle source?".to_string());
    let far = far.map(|times| format!("{times}{} its delay", if status.unicode { "×" } else { "x" }));
    let beside: Vec<String> = lag.into_iter().chain(far).chain(idle).collect();
    if !beside.is_empty() {
        line.push(look, format!(" ({})", beside.join(", ")));
    }
}

/// How many rows are above and below what is shown.
#[derive(Debug, Clone, Copy, Default)]
struct Hidden {
    above: usize,
    below: usize,
}

impl Paper<'_> {
    /// The page that is chosen.
    fn page(&self, view: &mut View) -> (Vec<Line>, Hidden) {
        if view.page == Page::Chart {
            return self.chart(view);
        }
        let names = self.height >= 2;
        let kinds = self.height >= 6 && view.page == Page::Table;
        let height = self.height - usize::from(names) - usize::from(kinds);
        let looks = Looks { room: self.room, left: view.left, names, kinds, unicode: self.status.unicode };
        let mut widths = std::mem::take(&mut view.widths);
        let (columns, rows, hidden) = match view.page {
            Page::Table | Page::Chart => table(self.seen, view, self.status, height),
            Page::Changelog => changelog(self.seen, view, height),
            Page::Batches => batches(self.seen, view, self.status, height),
        };
        let lines = grid(&columns, &rows, &mut widths, &looks);
        view.widths = widths;
        (lines, hidden)
    }

    /// Each row as a bar, below the name of the column that is shown.
    fn chart(&self, view: &mut View) -> (Vec<Line>, Hidden) {
        let Paper { seen, status, room, height } = *self;
        let Some(charted) = view.charted(seen) else {
            return (vec![Line::of(Look::Dim, " no column is a number")], Hidden::default());
        };
        let rows = view.rows(seen);
        let end = view.follow && seen.grows() && view.order.is_none();
        let height = height.saturating_sub(1);
        let (top, hidden) = window(view, rows.len(), height, end);
        let labels = label_columns(&seen.columns.iter().map(|column| column.number).collect::<Vec<_>>(), charted);
        let bar = |row: &&Row| {
            let label: Vec<&str> = labels.iter().map(|at| row.cell(*at).unwrap_or("NULL")).collect();
            let label = super::line::clip(&visible(&label.join(" ")), room / 3, false);
            (label, visible(row.cell(charted).unwrap_or("NULL")).into_owned())
        };
        let bars: Vec<_> = rows.iter().skip(top).take(height).map(bar).collect();
        let mut lines = vec![Line::of(Look::Title, format!(" {}", seen.columns[charted].name))];
        let chart = bar_chart(&bars, room.saturating_sub(2), status.unicode);
        lines.extend(chart.into_iter().map(|line| Line::of(Look::Plain, format!(" {line}"))));
        (lines, hidden)
    }

    /// What lies over the page.
    fn over(&self, view: &mut View, overlay: &Overlay) -> (Vec<Line>, Hidden) {
        let all = match overlay {
            Overlay::Help => keys::help(view.repeats),
            Overlay::Text(text) => text.clone(),
            Overlay::Detail(id) => detail(self.seen, *id, self.room),
        };
        view.height = self.height.max(1);
        let top = view.overlay_top.min(all.len().saturating_sub(self.height));
        view.overlay_top = top;
        let below = all.len().saturating_sub(top + self.height);
        let widest = all.iter().map(|line| line.chars().count()).max().unwrap_or(0);
        view.overlay_left = view.overlay_left.min((widest + 2).saturating_sub(self.room));
        let shown = all.into_iter().skip(top).take(self.height);
        let shown = shown.map(|text| text.chars().skip(view.overlay_left).collect::<String>());
        (shown.map(|text| Line::of(Look::Plain, format!(" {text}"))).collect(), Hidden { above: top, below })
    }
}

/// The part of so many rows that is shown.
fn window(view: &mut View, count: usize, height: usize, at_end: bool) -> (usize, Hidden) {
    view.height = height.max(1);
    let last_top = count.saturating_sub(height);
    view.top = if at_end { last_top } else { view.top.min(last_top) };
    (view.top, Hidden { above: view.top, below: count.saturating_sub(view.top + height) })
}

type Shown = (Vec<Column>, Vec<GridRow>, Hidden);

fn table(seen: &Model, view: &mut View, status: &Status<'_>, height: usize) -> Shown {
    let rows = view.rows(seen);
    let chosen = view.chosen.and_then(|id| rows.iter().position(|row| row.id == id));
    if chosen.is_none() {
        // It has left.
        view.chosen = None;
    }
    if let Some(at) = chosen.filter(|_| !view.follow) {
        let first = (at + 1).saturating_sub(height.max(1));
        view.top = view.top.clamp(first, at);
    }
    let end = view.follow && seen.grows() && view.order.is_none();
    let (top, hidden) = window(view, rows.len(), height, end);
    let rows = rows.into_iter().skip(top).take(height).map(|row| grid_row(seen, row, view, status)).collect();
    (seen.columns.clone(), rows, hidden)
}

fn grid_row(seen: &Model, row: &Row, view: &View, status: &Status<'_>) -> GridRow {
    let last = seen.log.back().map(|batch| batch.at);
    let fresh = |at: Duration| match status.runs {
        // Until the next run says something else.
        Some(_) => last.is_some_and(|last| at >= last),
        None => status.now.saturating_sub(at) < FRESH,
    };
    let changes = if row.changed.is_some_and(fresh) { row.changes.clone() } else { Vec::new() };
    let signs = if status.unicode { ['×', '✓', '+'] } else { ['x', '=', '+'] };
    let (mark, look) = match () {
        () if row.gone => (Some(signs[0]), Some(Look::Gone)),
        () if row.last_word => (Some(signs[1]), Some(Look::Dim)),
        () if row.came.is_some_and(fresh) && !seen.grows() => (Some(signs[2]), None),
        () => (None, None),
    };
    GridRow { cells: row.cells.clone(), changes, mark, look, chosen: view.chosen == Some(row.id) }
}

fn number(name: &str) -> Column {
    Column { number: true, ..text(name) }
}

fn text(name: &str) -> Column {
    Column {
        name: name.into(),
        kind: String::new(),
        data_type: arrow::datatypes::DataType::Utf8,
        number: false,
        time: false,
    }
}

fn changelog(seen: &Model, view: &mut View, height: usize) -> Shown {
    let columns = [number("batch"), text("op")].into_iter().chain(seen.columns.iter().cloned()).collect();
    let follow = view.follow;
    let (top, hidden) = window(view, seen.changelog.len(), height, follow);
    let row = |changed: &super::model::Changed| {
        let front = [Some(changed.batch.to_string()), Some(changed.op.symbol().to_string())];
        let look = matches!(changed.op, Op::Delete | Op::UpdateBefore).then_some(Look::Dim);
        GridRow { cells: front.into_iter().chain(changed.cells.iter().cloned()).collect(), look, ..GridRow::default() }
    };
    (columns, seen.changelog.iter().skip(top).take(height).map(row).collect(), hidden)
}

fn batches(seen: &Model, view: &mut View, status: &Status<'_>, height: usize) -> Shown {
    let columns = vec![number("batch"), text("ago"), number("in"), number("out"), text("watermark"), number("state")];
    let follow = view.follow;
    let (top, hidden) = window(view, seen.log.len(), height, follow);
    let row = |batch: &super::model::Batch| {
        let ago = status.now.saturating_sub(batch.at).as_secs() as i64 * 1000;
        let watermark = batch.watermark.and_then(chrono::DateTime::from_timestamp_millis);
        let watermark = match batch.drains {
            true => Some("end".to_string()),
            false => watermark.map(|time| time.format("%Y-%m-%dT%H:%M:%S%.fZ").to_string()),
        };
        let cells = vec![
            Some(batch.number.to_string()),
            Some(if ago < 1000 { "now".to_string() } else { figures::span(ago) }),
            Some(batch.rows_in.to_string()),
            Some(batch.rows_out.to_string()),
            Some(watermark.unwrap_or("-".to_string())),
            Some(batch.state_rows.map_or("-".to_string(), |rows| rows.to_string())),
        ];
        GridRow { cells, ..GridRow::default() }
    };
    (columns, seen.log.iter().skip(top).take(height).map(row).collect(), hidden)
}

/// One column a line; a value that is wider than the screen goes on below.
fn detail(seen: &Model, id: u64, room: usize) -> Vec<String> {
    let rows = seen.rows(None, "");
    let Some(row) = rows.into_iter().find(|row| row.id == id) else {
        return vec!["the row is no longer there".to_string()];
    };
    let name = seen.columns.iter().map(|column| column.name.width()).max().unwrap_or(0).min(room / 2);
    let mut lines = Vec::new();
    for (at, column) in seen.columns.iter().enumerate() {
        let value = row.cell(at).map_or("NULL".into(), visible);
        let width = room.saturating_sub(name + 4).max(1);
        for (n, part) in wrapped(&value, width).into_iter().enumerate() {
            let name_text = if n == 0 { super::line::clip(&column.name, name, false) } else { String::new() };
            lines.push(format!("{} | {part}", padded(&name_text, name, false)));
        }
    }
    lines
}

fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for cluster in text.graphemes(true) {
        let wide = cluster.width();
        if used + wide > width && used > 0 {
            lines.push(String::new());
            used = 0;
        }
        used += wide;
        if let Some(line) = lines.last_mut() {
            line.push_str(cluster);
        }
    }
    lines
}

fn footer(seen: &Model, view: &View, status: &Status<'_>, hidden: Hidden, room: usize) -> Line {
    let mut line = match (&view.typing, &view.message, status.notice) {
        (Some((Typing::Filter, text)), ..) => Line::of(Look::Bold, format!(" /{}_", visible(text))),
        (Some((Typing::FileName, text)), ..) => Line::of(Look::Bold, format!(" write to file: {}_", visible(text))),
        (None, Some(message), _) => Line::of(Look::Bold, format!(" {}", visible(message))),
        (None, None, Some(notice)) => Line::of(Look::Alert, format!(" {}", visible(notice))),
        (None, None, None) => Line::of(Look::Dim, format!(" {}", more(view, hidden))),
    };
    line.push_right(Look::Dim, &counted(seen, view), room);
    line
}

fn more(view: &View, hidden: Hidden) -> String {
    let mut parts = Vec::new();
    if view.overlay.is_some() {
        parts.push("q back".to_string());
    }
    match hidden {
        Hidden { above: 0, below: 0 } => {}
        Hidden { above, below: 0 } => parts.push(format!("{above} more above (PgUp)")),
        Hidden { above: 0, below } => parts.push(format!("{below} more below (PgDn)")),
        Hidden { above, below } => parts.push(format!("{above} more above, {below} below")),
    }
    parts.join(" · ")
}

/// `[update: 18 keys, 2 changed]`
fn counted(seen: &Model, view: &View) -> String {
    let plural = |count: usize, one: &str| format!("{count} {one}{}", if count == 1 { "" } else { "s" });
    let mut parts = match view.page {
        Page::Table | Page::Chart if seen.grows() => vec![plural(seen.len(), "row")],
        Page::Table | Page::Chart => vec![plural(seen.len(), "row"), format!("{} changed", seen.changed)],
        Page::Changelog => vec![plural(seen.changelog.len(), "change")],
        Page::Batches => vec![plural(seen.log.len(), "batch").replace("batchs", "batches")],
    };
    let of_rows = matches!(view.page, Page::Table | Page::Chart);
    if seen.forgotten > 0 && of_rows {
        parts.push(format!("{} not kept", figures::count(seen.forgotten as f64)));
    }
    if !view.filter.is_empty() && of_rows {
        parts.insert(0, format!("/{}: {}", visible(&view.filter), view.rows(seen).len()));
    }
    let page = match view.page {
        Page::Table => "table",
        Page::Chart => "chart",
        Page::Changelog => "changelog",
        Page::Batches => "batches",
    };
    format!("[{page}: {}]", parts.join(", "))
}

/// What is left on the screen when the view is left: the last table, and a line of what it was.
pub(super) fn last_table(live: &Model, view: &View, room: usize, unicode: bool) -> Vec<Line> {
    let rows = view.rows(live);
    let skip = if live.grows() && view.order.is_none() { rows.len().saturating_sub(LAST_ROWS) } else { 0 };
    let more = rows.len().saturating_sub(LAST_ROWS);
    let sign = if unicode { '✓' } else { '=' };
    let shown = rows.iter().skip(skip).take(LAST_ROWS).map(|row| GridRow {
        cells: row.cells.clone(),
        mark: row.last_word.then_some(sign),
        ..GridRow::default()
    });
    let looks = Looks { room, left: 0, names: true, kinds: false, unicode };
    let mut lines = grid(&live.columns, &shown.collect::<Vec<_>>(), &mut Widths::default(), &looks);
    if more > 0 {
        let place = if skip > 0 { "before them" } else { "more" };
        lines.push(Line::of(Look::Dim, format!(" ({more} rows {place})")).fit(room));
    }
    lines
}
