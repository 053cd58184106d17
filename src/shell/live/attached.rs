//! The view of one query: its loop.
//!
//! One thread owns the terminal. It looks ten times a second whether there is something to paint, and paints no more often than
//! was chosen, but at once when a key was pressed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::desk::{Desk, Live};
use super::frame::{self, Status, compose};
use super::heard::Heard;
use super::line::{Line, Look};
use super::model::Model;
use super::raw;
use super::save;
use super::screen::{Screen, TICK, Typed, unicode};
use super::view::{Effect, Overlay, View};
use crate::error::{Error, Result};
use crate::execution::{QueryHandle, QueryState};
use crate::parser::{Step, StopHow};
use crate::session::CancelToken;
use crate::shell::output::write_stdout;
use crate::shell::turns::Turns;

/// A second Ctrl-C within this time stops at once.
const TWICE: Duration = Duration::from_secs(2);

/// How often it is looked whether what was told to stop has ended.
const STOPPING: Duration = Duration::from_millis(5);

/// As many progress documents are read at once.
const MOST_DOCUMENTS: u64 = 256;

/// What is looked at.
pub(super) struct Stage<'a> {
    pub(super) desk: &'a Desk,
    pub(super) turns: &'a Turns,
    pub(super) live: Arc<Live>,
    /// The query; unknown until it has begun.
    pub(super) handle: &'a dyn Fn() -> Option<QueryHandle>,
    /// There is nothing more to come.
    pub(super) over: &'a dyn Fn() -> bool,
    pub(super) cancel: &'a CancelToken,
    /// One that has ended before is shown until it is left, too.
    pub(super) stays: bool,
    /// It ends with the view: leaving cancels it.
    pub(super) ends_with_view: bool,
    /// Ctrl-C stops the query; otherwise it leaves the view.
    pub(super) stops: bool,
    pub(super) colour: bool,
}

/// How a view ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Left {
    /// What was looked at has ended.
    Ended,
    /// It goes on.
    Running,
    /// Nobody types any more.
    Alone,
}

/// The state of the loop.
struct Attached<'a> {
    stage: &'a Stage<'a>,
    view: View,
    /// When somebody asked to stop, how often, and who carries it out.
    stops: u32,
    stopped_at: Duration,
    given_up: Arc<AtomicBool>,
    leaving: bool,
    heard: Heard,
    /// A worker's word, such as of a step.
    words: (std::sync::mpsc::Sender<String>, std::sync::mpsc::Receiver<String>),
}

/// Shows a query until it has ended or is left. What is left on the screen is its last table.
///
/// # Errors
/// The terminal can't be used.
pub(super) fn attach(stage: &Stage<'_>) -> Result<Left> {
    let mut attached = Attached {
        stage,
        view: View::new(),
        stops: 0,
        stopped_at: Duration::ZERO,
        given_up: Arc::default(),
        leaving: false,
        heard: Heard::default(),
        words: std::sync::mpsc::channel(),
    };
    let outcome = attached.run();
    attached.given_up.store(true, Ordering::SeqCst);
    attached.heard.say_all();
    outcome
}

impl Attached<'_> {
    fn run(&mut self) -> Result<Left> {
        let stage = self.stage;
        let over = (stage.over)();
        // What has ended already is only shown.
        if over && !stage.stays {
            self.learn();
            let lines = self.last(raw::size().columns.saturating_sub(1), unicode(), Left::Ended);
            let text: String = lines.iter().map(|line| line.text() + "\n").collect();
            write_stdout(text.as_bytes()).map_err(|error| Error::io("can't write", &error))?;
            return Ok(Left::Ended);
        }
        let mut screen = Screen::open(false, stage.colour)?;
        let left = self.paint_until_left(&mut screen, &|| !over && (stage.over)())?;
        let left = if over { Left::Ended } else { left };
        self.learn();
        let lines = self.last(screen.size.columns.saturating_sub(1), screen.unicode, left);
        screen.close(&lines)?;
        Ok(left)
    }

    fn paint_until_left(&mut self, screen: &mut Screen, over: &dyn Fn() -> bool) -> Result<Left> {
        let stage = self.stage;
        let (mut version, mut second, mut next) = (u64::MAX, u64::MAX, Duration::ZERO);
        let (mut dirty, mut pressed) = (true, false);
        loop {
            let now = stage.desk.now();
            dirty |= screen.disturbed()?;
            dirty |= self.hear(now);
            if (stage.live.version(), now.as_secs()) != (version, second) {
                (version, second, dirty) = (stage.live.version(), now.as_secs(), true);
                self.learn();
            }
            if (pressed || now >= next) && dirty {
                self.paint(screen, now)?;
                (dirty, pressed) = (false, false);
                next = now + Duration::from_secs_f64(1.0 / self.view.paints_a_second());
            }
            if over() {
                return Ok(Left::Ended);
            }
            if self.leaving || (stage.cancel.is_cancelled() && !stage.ends_with_view) {
                return Ok(Left::Running);
            }
            let wait = match () {
                () if self.stops > 0 => STOPPING,
                () if dirty => next.saturating_sub(now).min(TICK),
                () => TICK,
            };
            match screen.keys(wait)? {
                Typed::Nobody => {
                    stage.cancel.cancel();
                    return Ok(Left::Alone);
                }
                Typed::Keys(keys) => {
                    for key in keys {
                        (dirty, pressed) = (true, true);
                        let effect = self.view.press(key, &stage.live.model());
                        self.carry_out(effect, screen)?;
                    }
                }
            }
        }
    }

    fn paint(&mut self, screen: &mut Screen, now: Duration) -> Result<()> {
        let rows = frame::needed(&self.stage.live.model(), &self.view);
        screen.make_room(rows)?;
        let status = Status {
            state: self.state(),
            ran: now.saturating_sub(self.stage.live.since),
            now,
            notice: self.heard.notice(),
            unicode: screen.unicode,
            runs: None,
        };
        let lines = compose(&self.stage.live.model(), &mut self.view, &status, screen.room());
        screen.paint(&lines)
    }

    fn state(&self) -> &'static str {
        if self.stops > 0 {
            return "STOPPING";
        }
        match (self.stage.handle)().map(|handle| handle.status().state) {
            None | Some(QueryState::Running) => "RUNNING",
            Some(QueryState::Paused) => "QUERY PAUSED",
            Some(QueryState::Stopped) => "STOPPED",
            Some(QueryState::Failed) => "FAILED",
        }
    }

    /// Takes notices and words; answers whether there were some, or one has been shown long enough.
    fn hear(&mut self, now: Duration) -> bool {
        let mut heard = self.heard.hear(self.stage.turns, now);
        while let Ok(word) = self.words.1.try_recv() {
            self.view.message = Some(word);
            heard = true;
        }
        heard
    }

    /// Reads the progress documents that are new.
    fn learn(&mut self) {
        let Some(handle) = (self.stage.handle)() else { return };
        let (newest, known) = {
            let model = self.stage.live.model();
            let Some(newest) = model.log.back().map(|batch| batch.number) else { return };
            (newest, model.facts.batch)
        };
        let missing = newest.saturating_sub(known.unwrap_or(newest.saturating_sub(1))).min(MOST_DOCUMENTS);
        if missing == 0 {
            return;
        }
        let documents = handle.progress(usize::try_from(missing).unwrap_or(1));
        let mut model = self.stage.live.model();
        documents.iter().for_each(|document| model.learn(document));
    }

    fn carry_out(&mut self, effect: Effect, screen: &mut Screen) -> Result<()> {
        match effect {
            Effect::None => {}
            Effect::Leave => self.leave(),
            Effect::Stop if self.stage.stops => self.stop(),
            Effect::Stop => self.leave(),
            Effect::Suspend => screen.suspend()?,
            Effect::FullScreen => screen.choose_other()?,
            Effect::Step => self.step(),
            Effect::Explain => {
                let text = self.explanation();
                self.view.lay(Overlay::Text(text));
            }
            Effect::Copy(text) => {
                screen.write(&save::to_clipboard(&text))?;
                self.view.message = Some("the row is copied, if the terminal takes it".to_string());
            }
            Effect::Save(file) => {
                let model = self.stage.live.model();
                let message = save::saved(&self.view, &model, &file);
                drop(model);
                self.view.message = Some(message);
            }
        }
        Ok(())
    }

    fn leave(&mut self) {
        if self.stage.ends_with_view {
            self.stops = self.stops.max(1);
            self.stage.cancel.cancel();
        } else {
            self.leaving = true;
        }
    }

    /// The first time gracefully, the second at once; the third gives up waiting.
    fn stop(&mut self) {
        let now = self.stage.desk.now();
        let again = self.stops > 0 && now.saturating_sub(self.stopped_at) <= TWICE;
        self.stops = if again { self.stops + 1 } else { 1 };
        self.stopped_at = now;
        if self.stops > 2 {
            self.stage.cancel.cancel();
            self.leaving = true;
            return;
        }
        if self.stage.ends_with_view {
            self.stage.cancel.cancel();
            if self.stops == 1 {
                return;
            }
        }
        let how = if self.stops == 1 { StopHow::Graceful } else { StopHow::Now };
        if let Some(handle) = (self.stage.handle)() {
            self.aside(move |given_up| match handle.stop(how, None, given_up) {
                Ok(_) => None,
                Err(error) => Some(error.to_string()),
            });
        }
    }

    fn step(&mut self) {
        let Some(handle) = (self.stage.handle)() else { return };
        self.aside(move |given_up| match handle.step(Step::Batches(1), given_up) {
            Ok(0) => Some("nothing is due".to_string()),
            Ok(_) => None,
            Err(error) => Some(error.to_string()),
        });
    }

    /// Does what may take its time beside the view.
    fn aside(&mut self, work: impl FnOnce(&dyn Fn() -> bool) -> Option<String> + Send + 'static) {
        let (given_up, words) = (self.given_up.clone(), self.words.0.clone());
        let thread = std::thread::Builder::new().name("view".to_string());
        let spawned = thread.spawn(move || {
            if let Some(word) = work(&|| given_up.load(Ordering::SeqCst)) {
                // A view that is left does not listen.
                _ = words.send(word);
            }
        });
        if let Err(error) = spawned {
            self.view.message = Some(format!("can't start a thread: {error}"));
        }
    }

    fn explanation(&self) -> Vec<String> {
        let mut lines: Vec<String> = match (self.stage.handle)() {
            Some(handle) => handle.explain().lines().map(|line| crate::display::visible(line).into_owned()).collect(),
            None => vec!["the query has not begun".to_string()],
        };
        let model = self.stage.live.model();
        if let Some(batch) = model.facts.batch {
            lines.push(String::new());
            lines.push(format!("batch {batch}"));
            for (name, rows, changed, removed) in &model.facts.states {
                let rows = rows.map_or("? rows".to_string(), |rows| format!("{rows} rows"));
                lines.push(format!("  {name}: {rows}, {changed} changed, {removed} removed"));
            }
        }
        lines
    }

    /// The last table, and what became of the query.
    fn last(&self, room: usize, unicode: bool, left: Left) -> Vec<Line> {
        let model = self.stage.live.model();
        let mut lines = frame::last_table(&model, &self.view, room, unicode);
        lines.push(Line::of(Look::Dim, summary(&model, left)).fit(room));
        lines
    }
}

/// `per_min: 18 rows after batch 58`
fn summary(model: &Model, left: Left) -> String {
    let rows = format!("{} row{}", model.len(), if model.len() == 1 { "" } else { "s" });
    let after = match model.log.back() {
        Some(batch) => format!("{rows} after batch {}", batch.number),
        None => "no batch has run".to_string(),
    };
    let goes_on = if left == Left::Running { " · it runs on" } else { "" };
    format!("{}: {after}{goes_on}", crate::display::visible(&model.query))
}
