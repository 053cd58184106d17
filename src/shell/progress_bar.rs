//! A bar for statements that have an end and take their time: on standard error, where that is a terminal, half a second
//! after the statement began, and gone before its result is shown.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::Value;

use super::live::{Raw, bytes, clip, count};
use super::output::{say, write_stdout};
use super::terminal::{Screen, is_dumb};
use super::turns::{Turn, Turns};
use crate::clock::Stopwatch;
use crate::execution::Ahead;
use crate::parser::{Name, Statement};
use crate::session::{Answer, Session, Work};
use crate::source::RangeSize;

/// What takes less time has no bar.
const PATIENCE: Duration = Duration::from_millis(500);

/// As wide as a terminal is that does not say.
const COLUMNS: usize = 80;

/// How often the bar is drawn.
const TICK: Duration = Duration::from_millis(100);

/// What a statement waits for.
enum Waits {
    /// What it does itself: the session knows how far that has come.
    Work,
    /// The batches of a query.
    Batches(Name),
    /// Something that has no numbers.
    Other,
}

/// Draws until it is dropped.
pub(super) struct Progress {
    /// Dropped first: its end is what the thread waits for.
    stop: Option<Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Progress {
    /// Begins to wait for the bar of a statement; `None`: it has none.
    pub(super) fn begin(session: &Arc<Session>, turns: &Arc<Turns>, statement: &Statement) -> Option<Self> {
        let waits = match statement {
            Statement::Select(_) | Statement::DataFusion | Statement::Sql(_) => Waits::Work,
            Statement::AwaitQuery { name, .. } => Waits::Batches(name.clone()),
            Statement::StartQuery(_) | Statement::VerifyQuery(_) => Waits::Work,
            Statement::StopQuery { .. } => Waits::Other,
            _ => return None,
        };
        if is_dumb() || !std::io::stderr().is_terminal() {
            return None;
        }
        let (stop, stopped) = channel();
        let (session, turns) = (session.clone(), turns.clone());
        let thread = std::thread::Builder::new().name("progress".to_string());
        let thread = thread.spawn(move || draw(&session, &turns, &waits, &stopped)).ok()?;
        Some(Progress { stop: Some(stop), thread: Some(thread) })
    }

    /// The answer, whose rows end the bar: their end, or the first of them where they are shown as they come.
    pub(super) fn until_shown(self, answer: Answer, as_they_come: bool) -> Answer {
        match answer {
            Answer::Rows { schema, rows, notices } => {
                let mut progress = Some(self);
                let rows = UntilShown {
                    rows,
                    ended: false,
                    first: as_they_come,
                    end: Box::new(move || drop(progress.take())),
                };
                Answer::Rows { schema, rows: Box::new(rows), notices }
            }
            answer => answer,
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic there has been told, and costs nothing but the bar.
            _ = thread.join();
        }
    }
}

/// Rows at whose end, or before the first of which, something is done once.
struct UntilShown<I> {
    rows: I,
    ended: bool,
    first: bool,
    end: Box<dyn FnMut() + Send>,
}

impl<I: Iterator<Item = crate::error::Result<arrow::array::RecordBatch>>> Iterator for UntilShown<I> {
    type Item = I::Item;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.rows.next();
        let shown = match &next {
            Some(Ok(batch)) => self.first && batch.num_rows() > 0,
            Some(Err(_)) | None => true,
        };
        if shown && !std::mem::replace(&mut self.ended, true) {
            (self.end)();
        }
        next
    }
}

fn draw(session: &Session, turns: &Turns, waits: &Waits, stopped: &Receiver<()>) {
    let watch = Stopwatch::start();
    let (begun, ahead) = (batch_of(session, waits), ahead_of(session, waits));
    if stopped.recv_timeout(PATIENCE) != Err(RecvTimeoutError::Timeout) {
        return;
    }
    // What others say meanwhile is written above the bar.
    let before = turns.turn();
    turns.begin(Turn::Viewing);
    // Where nobody types there is nothing to be kept from appearing.
    let echo = Raw::without_echo().ok();
    let unicode = Screen::now().unicode;
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    let mut reader = Reader { begun, before: ahead, rows: 0, newest: begun, most: 0 };
    loop {
        let (batches, notices) = turns.take_held();
        if !batches.is_empty() || !notices.is_empty() {
            bar.suspend(|| {
                // A terminal that is gone is noticed by whoever writes the answer.
                _ = write_stdout(batches.as_bytes());
                if !notices.is_empty() {
                    say(&notices);
                }
            });
        }
        let work = reader.work(session, waits);
        show(&bar, work, watch.elapsed(), unicode, Screen::now().columns.unwrap_or(COLUMNS));
        if stopped.recv_timeout(TICK) != Err(RecvTimeoutError::Timeout) {
            break;
        }
    }
    bar.finish_and_clear();
    drop(echo);
    if turns.turn() == Turn::Viewing {
        turns.begin(before);
    }
}

/// One line, whatever the width: what is wrapped can't be cleared.
fn show(bar: &ProgressBar, work: Option<Work>, elapsed: Duration, unicode: bool, columns: usize) {
    let done = work.and_then(done);
    // What stands in front of the text has so many columns.
    let (template, front) = match done {
        Some(_) if columns >= 60 => ("{bar:24} {percent:>3} % · {msg}", 33),
        Some(_) => ("{percent:>3} % · {msg}", 8),
        None => ("{spinner} {msg}", 2),
    };
    // The templates are ours, and right.
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(if unicode { style } else { style.progress_chars("#>-").tick_chars("|/-\\ ") });
    }
    if let Some((done, all)) = done {
        bar.set_length(all);
        bar.set_position(done);
    }
    bar.set_message(clip(&text(work, elapsed), columns.saturating_sub(front + 1), false));
    bar.tick();
}

/// So much of so much: rows, or bytes where nobody knows of how many rows.
fn done(work: Work) -> Option<(u64, u64)> {
    let rows = work.all_rows.map(|all| (work.rows, all));
    let of = rows.or_else(|| work.all_bytes.map(|all| (work.bytes, all)));
    of.filter(|(_, all)| *all > 0).map(|(done, all)| (done.min(all), all))
}

/// `1.20M rows · 30.1 MB · 3.41M/s · 00:02 · 00:05 left`
fn text(work: Option<Work>, elapsed: Duration) -> String {
    let seconds = elapsed.as_secs_f64().max(0.001);
    let clock = |time: f64| format!("{:02}:{:02}", time as u64 / 60, time as u64 % 60);
    let mut parts = Vec::new();
    if let Some(work) = work.filter(|work| work.rows > 0) {
        let rate = work.rows as f64 / seconds;
        parts.push(format!("{} row{}", count(work.rows as f64), if work.rows == 1 { "" } else { "s" }));
        if work.bytes > 0 {
            parts.push(bytes(work.bytes));
        }
        parts.push(format!("{}/s", count(rate)));
        parts.push(clock(seconds));
        if let Some((done, all)) = done(work).filter(|(done, all)| 0 < *done && done < all) {
            parts.push(format!("{} left", clock((seconds * (all - done) as f64 / done as f64).ceil())));
        }
    } else {
        parts.push(clock(seconds));
    }
    parts.join(" · ")
}

/// Adds up what the progress documents of a query tell.
struct Reader {
    /// What AVAILABLE NOW had before it when the statement began.
    before: Option<Ahead>,
    /// The newest batch when the statement began: what was read before it is not ours.
    begun: Option<u64>,
    newest: Option<u64>,
    rows: u64,
    /// With those of the batch that runs.
    most: u64,
}

impl Reader {
    fn work(&mut self, session: &Session, waits: &Waits) -> Option<Work> {
        match waits {
            Waits::Work => session.work(),
            Waits::Other => None,
            Waits::Batches(name) => {
                let handle = session.handle(&name.value)?;
                handle.progress(256).iter().for_each(|document| self.read(document));
                let (ahead, reading) = (handle.ahead(), handle.reading());
                // Between the two a batch may have ended: nothing is taken back.
                self.most = self.most.max(self.rows + reading);
                let work = Work { rows: self.most, ..Work::default() };
                Some(ahead.map_or(work, |ahead| self.of_all(work, ahead, reading)))
            }
        }
    }

    /// What was read since the statement began, of what was left then: rows where the sources know of how many, else bytes. Of
    /// bytes it is known how many a batch has; where it is in them is reckoned from the rows of the batches before it.
    fn of_all(&self, work: Work, ahead: Ahead, reading: u64) -> Work {
        let before = self.before.map_or(RangeSize::NOTHING, |before| before.done);
        let since = |all: Option<u64>, before: Option<u64>| Some(all?.saturating_sub(before?));
        if let Some(all) = since(ahead.all.rows, before.rows) {
            return Work { all_rows: Some(all), ..work };
        }
        let (Some(all), Some(done)) = (since(ahead.all.bytes, before.bytes), since(ahead.done.bytes, before.bytes))
        else {
            return work;
        };
        if done == 0 || self.rows == 0 {
            return work;
        }
        let of_batch = done as f64 / self.rows as f64 * reading as f64;
        let of_batch = (of_batch as u64).min(ahead.batch.bytes.unwrap_or(0));
        Work { bytes: done.saturating_add(of_batch), all_bytes: Some(all), ..work }
    }

    fn read(&mut self, document: &Value) {
        let Some(batch) = document.get("batchId").and_then(Value::as_u64) else { return };
        if self.newest.max(self.begun).is_some_and(|newest| batch <= newest) {
            return;
        }
        self.newest = Some(batch);
        self.rows += document.get("numInputRows").and_then(Value::as_u64).unwrap_or(0);
    }
}

fn ahead_of(session: &Session, waits: &Waits) -> Option<Ahead> {
    let Waits::Batches(name) = waits else { return None };
    session.handle(&name.value)?.ahead()
}

fn batch_of(session: &Session, waits: &Waits) -> Option<u64> {
    let Waits::Batches(name) = waits else { return None };
    let last = session.handle(&name.value)?.progress(1);
    last.first()?.get("batchId")?.as_u64()
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, Int64Array, RecordBatch};
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_known_is_told() {
        let two = Duration::from_secs(2);
        assert_eq!(text(None, two), "00:02");
        let work = Work { rows: 1_200_000, bytes: 30_100_000, all_rows: Some(4_200_000), all_bytes: None };
        assert_eq!(text(Some(work), two), "1.20M rows · 30.1 MB · 600k/s · 00:02 · 00:05 left");
        let of_bytes = Work { all_rows: None, all_bytes: Some(60_200_000), ..work };
        assert_eq!(text(Some(of_bytes), two), "1.20M rows · 30.1 MB · 600k/s · 00:02 · 00:02 left");
        assert_eq!(text(Some(Work { rows: 1, ..Work::default() }), two), "1 row · 0.5/s · 00:02");
    }

    #[test]
    fn batches_are_counted_once_and_only_those_that_came_since() {
        let mut reader = Reader { begun: Some(3), before: None, newest: Some(3), rows: 0, most: 0 };
        for batch in [2, 3, 4, 5, 4, 5] {
            reader.read(&json!({"batchId": batch, "numInputRows": 10}));
        }
        assert_eq!(reader.rows, 20);
    }

    #[test]
    fn what_is_left_is_known_in_rows_or_else_in_bytes() {
        let size = |rows, bytes| RangeSize { rows, bytes };
        let work = Work { rows: 30, ..Work::default() };
        let reader = |before, rows| Reader { begun: None, before, newest: None, rows, most: 30 };
        let of_all = |all, done: RangeSize, batch, before: Option<RangeSize>, rows| {
            let before = before.map(|done| Ahead { all, done, batch: RangeSize::NOTHING });
            reader(before, rows).of_all(work, Ahead { all, done, batch }, 10)
        };
        // The rows that were read before the statement began are not its own.
        let known = size(Some(100), Some(1000));
        let rows = of_all(known, known, RangeSize::NOTHING, Some(size(Some(40), Some(1))), 20);
        assert_eq!(rows, Work { all_rows: Some(60), ..work });
        let (all, done) = (size(None, Some(1000)), size(None, Some(200)));
        let half_a_batch = of_all(all, done, size(None, Some(400)), None, 20);
        assert_eq!(half_a_batch, Work { bytes: 300, all_bytes: Some(1000), ..work });
        // No more than the batch has, …
        assert_eq!(of_all(all, done, size(None, Some(50)), None, 20).bytes, 250);
        // … and nothing of the first, of whose rows nobody knows how large they are, nor of a pipe.
        assert_eq!(of_all(all, RangeSize::NOTHING, size(None, Some(400)), None, 0), work);
        assert_eq!(of_all(RangeSize::default(), done, RangeSize::default(), None, 20), work);
    }

    #[test]
    fn the_bar_ends_with_the_rows_or_before_the_first_that_is_shown() {
        let column = |rows: usize| -> ArrayRef { Arc::new(Int64Array::from_value(1, rows)) };
        let batch = |rows| -> crate::error::Result<RecordBatch> {
            Ok(RecordBatch::try_from_iter([("n", column(rows))]).unwrap())
        };
        for (first, after) in [(true, 2), (false, 4)] {
            let (ended, ends) = channel();
            let end = Box::new(move || ended.send(()).unwrap());
            let rows = [batch(0), batch(2), batch(1)].into_iter();
            let mut rows = UntilShown { rows, ended: false, first, end };
            for n in 1..=4 {
                rows.next();
                assert_eq!(ends.try_recv().is_ok(), n == after, "{first} {n}");
            }
        }
    }
}
