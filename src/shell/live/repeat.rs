//! `\watch` in place: a statement that is run again and again, and what changes in its result.
//!
//! Each run is a thread's; another one reads keys and paints, as for a query. What is left on the screen is the last result,
//! which the shell prints as it does any other.

use std::sync::Arc;
use std::thread::ScopedJoinHandle;
use std::time::Duration;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::datatypes::{Schema, SchemaRef};

use super::frame::{self, Runs, Status, compose};
use super::heard::Heard;
use super::model::Model;
use super::save;
use super::screen::{Screen, TICK, Typed};
use super::view::{Effect, View};
use super::{Desk, Viewing};
use crate::error::{Error, Result};
use crate::parser::ParsedStatement;
use crate::session::{Answer, Session};
use crate::shell::turns::Turns;

/// How often it is looked whether a run has ended.
const GLANCE: Duration = Duration::from_millis(10);

/// So long nothing is painted while the first run has not ended.
const PATIENCE: Duration = Duration::from_millis(300);

/// A larger result is not held.
const MOST_BYTES: usize = 64 << 20;

/// How often a statement is run.
#[derive(Debug, Clone, Copy)]
pub(in crate::shell) struct Rounds {
    /// The time from the end of a run to the next.
    pub(in crate::shell) every: Duration,
    pub(in crate::shell) times: u64,
    /// With fewer rows than these it is the last.
    pub(in crate::shell) least: Option<u64>,
}

impl Rounds {
    /// Whether none follows the run of this number, counted from 1, that answered so many rows.
    pub(in crate::shell) fn is_last(&self, run: u64, rows: u64) -> bool {
        run >= self.times || self.least.is_some_and(|least| rows < least)
    }
}

/// What a run has answered.
#[derive(Debug, Clone)]
pub(in crate::shell) enum Shown {
    Rows(SchemaRef, Vec<RecordBatch>),
    Text(String),
    Done(String),
}

/// What came of all runs.
pub(in crate::shell) struct Repeated {
    /// How many have ended.
    pub(in crate::shell) runs: u64,
    /// What the last of them answered.
    pub(in crate::shell) last: Option<Shown>,
    /// What was said beside that.
    pub(in crate::shell) notices: Vec<String>,
    /// Why there were no more, where that was not asked for.
    pub(in crate::shell) failed: Option<Error>,
}

/// Where it is shown.
pub(super) struct Place<'a> {
    pub(super) session: &'a Session,
    pub(super) desk: &'a Desk,
    pub(super) turns: &'a Turns,
    pub(super) colour: bool,
}

/// Runs a statement again and again until that is enough, it fails, or somebody leaves.
///
/// # Errors
/// The terminal can't be used.
pub(super) fn repeat(place: &Place<'_>, statement: &ParsedStatement, text: &str, rounds: &Rounds) -> Result<Repeated> {
    let _viewing = Viewing::begin(place.turns);
    let mut screen = Screen::open(false, place.colour)?;
    let mut repeats = Repeats {
        place,
        text,
        rounds,
        view: View::of_repeats(),
        model: Model::of_results(&Arc::new(Schema::empty())),
        heard: Heard::default(),
        repeated: Repeated { runs: 0, last: None, notices: Vec::new(), failed: None },
        clock: String::new(),
        took: Duration::ZERO,
        begun: None,
        leaving: false,
    };
    let session = place.session;
    let outcome = std::thread::scope(|scope| {
        let start = || scope.spawn(move || run_once(session, statement));
        repeats.run(&start, &mut screen)
    });
    let closed = screen.close(&[]);
    repeats.heard.say_all();
    outcome.and(closed).map(|()| repeats.repeated)
}

/// The state of the loop.
struct Repeats<'a> {
    place: &'a Place<'a>,
    text: &'a str,
    rounds: &'a Rounds,
    view: View,
    model: Model,
    heard: Heard,
    repeated: Repeated,
    /// The time of day when the last run that has ended began, and how long it took.
    clock: String,
    took: Duration,
    /// When the one that runs began.
    begun: Option<Duration>,
    leaving: bool,
}

type Job<'scope> = ScopedJoinHandle<'scope, Result<(Shown, Vec<String>)>>;

impl Repeats<'_> {
    fn run<'scope>(&mut self, start: &dyn Fn() -> Job<'scope>, screen: &mut Screen) -> Result<()> {
        let cancel = self.place.session.cancel_token();
        cancel.clear();
        let mut job = None;
        let painted = self.paint_until_left(start, &mut job, screen);
        // Until it has heard: a statement that only begins forgets an earlier request.
        while job.as_ref().is_some_and(|job: &Job<'_>| !job.is_finished()) {
            cancel.cancel();
            std::thread::sleep(GLANCE);
        }
        cancel.clear();
        painted
    }

    fn paint_until_left<'scope>(
        &mut self,
        start: &dyn Fn() -> Job<'scope>,
        job: &mut Option<Job<'scope>>,
        screen: &mut Screen,
    ) -> Result<()> {
        let cancel = self.place.session.cancel_token();
        let opened = self.place.desk.now();
        let (mut due, mut next, mut second) = (opened, Duration::ZERO, 0);
        let (mut dirty, mut pressed) = (true, false);
        loop {
            let now = self.place.desk.now();
            dirty |= screen.disturbed()?;
            dirty |= self.heard.hear(self.place.turns, now);
            if job.is_none() && now >= due {
                self.begun = Some(now);
                *job = Some(start());
            }
            if let Some(ended) = job.take_if(|job| job.is_finished()) {
                let answer = ended.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                if !self.take(answer, now)? {
                    return Ok(());
                }
                (dirty, due, self.begun) = (true, now + self.rounds.every, None);
            }
            let runs_for = self.begun.map_or(0, |begun| now.saturating_sub(begun).as_secs());
            if runs_for != std::mem::replace(&mut second, runs_for) {
                dirty = true;
            }
            let wanted = self.repeated.runs > 0 || now.saturating_sub(opened) >= PATIENCE;
            if wanted && dirty && (pressed || now >= next) {
                self.paint(screen, now)?;
                (dirty, pressed) = (false, false);
                next = now + Duration::from_secs_f64(1.0 / self.view.paints_a_second());
            }
            if self.leaving || cancel.is_cancelled() {
                return Ok(());
            }
            let wait = match job {
                Some(_) => GLANCE,
                None => due.saturating_sub(now).min(TICK),
            };
            let Typed::Keys(keys) = screen.keys(wait)? else { return Ok(()) };
            for key in keys {
                (dirty, pressed) = (true, true);
                let effect = self.view.press(key, &self.model);
                self.carry_out(effect, screen)?;
            }
        }
    }

    /// Takes what a run has answered; says whether another one follows.
    fn take(&mut self, answer: Result<(Shown, Vec<String>)>, now: Duration) -> Result<bool> {
        let (shown, notices) = match answer {
            Ok(answer) => answer,
            Err(error) => {
                self.repeated.failed = Some(error);
                return Ok(false);
            }
        };
        self.repeated.runs += 1;
        let began = self.begun.unwrap_or(now);
        self.took = now.saturating_sub(began);
        let time = chrono::DateTime::from_timestamp_millis(self.place.session.now());
        self.clock = time.map_or_else(String::new, |time| time.format("%H:%M:%SZ").to_string());
        let (schema, batches) = shown.as_rows()?;
        if !self.model.is_of(&schema) {
            self.model = Model::of_results(&schema);
            self.view.widths.clear();
        }
        self.model.take_result(self.repeated.runs, &batches, now)?;
        let rows = shown.rows();
        (self.repeated.last, self.repeated.notices) = (Some(shown), notices);
        Ok(!self.rounds.is_last(self.repeated.runs, rows))
    }

    fn paint(&mut self, screen: &mut Screen, now: Duration) -> Result<()> {
        screen.make_room(frame::needed(&self.model, &self.view))?;
        let runs = Runs {
            every: self.rounds.every,
            run: self.repeated.runs,
            clock: &self.clock,
            took: self.took,
            runs_for: self.begun.map(|begun| now.saturating_sub(begun)).filter(|time| time.as_secs() > 0),
            statement: self.text,
        };
        let status =
            Status { now, notice: self.heard.notice(), unicode: screen.unicode, runs: Some(runs), ..Status::default() };
        let lines = compose(&self.model, &mut self.view, &status, screen.room());
        screen.paint(&lines)
    }

    fn carry_out(&mut self, effect: Effect, screen: &mut Screen) -> Result<()> {
        match effect {
            // What a query has and a result has not is no key here.
            Effect::None | Effect::Step | Effect::Explain => {}
            Effect::Leave | Effect::Stop => self.leaving = true,
            Effect::Suspend => screen.suspend()?,
            Effect::FullScreen => screen.choose_other()?,
            Effect::Copy(text) => {
                screen.write(&save::to_clipboard(&text))?;
                self.view.message = Some("the row is copied, if the terminal takes it".to_string());
            }
            Effect::Save(file) => self.view.message = Some(save::saved(&self.view, &self.model, &file)),
        }
        Ok(())
    }
}

impl Shown {
    /// The same as rows: a text a line each.
    fn as_rows(&self) -> Result<(SchemaRef, Vec<RecordBatch>)> {
        let (name, text) = match self {
            Shown::Rows(schema, batches) => return Ok((schema.clone(), batches.clone())),
            Shown::Text(text) => ("text", text),
            Shown::Done(tag) => ("done", tag),
        };
        let lines: ArrayRef = Arc::new(text.lines().map(Some).collect::<StringArray>());
        let batch = RecordBatch::try_from_iter([(name, lines)])?;
        Ok((batch.schema(), vec![batch]))
    }

    /// How many rows it has, or has changed.
    pub(in crate::shell) fn rows(&self) -> u64 {
        match self {
            Shown::Rows(_, batches) => batches.iter().map(|batch| batch.num_rows() as u64).sum(),
            Shown::Text(_) => 0,
            Shown::Done(tag) => tag.rsplit(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0),
        }
    }
}

/// One run, and what is said beside its answer.
fn run_once(session: &Session, statement: &ParsedStatement) -> Result<(Shown, Vec<String>)> {
    let (schema, rows, notices) = match session.execute(statement)? {
        Answer::Rows { schema, rows, notices } => (schema, rows, notices),
        Answer::Text(text) => return Ok((Shown::Text(text), Vec::new())),
        Answer::Done { tag, notices } => return Ok((Shown::Done(tag), notices)),
    };
    let cancel = session.cancel_token();
    let (mut batches, mut bytes) = (Vec::new(), 0);
    for batch in rows {
        if cancel.is_cancelled() {
            return Err(Error::Cancelled { message: "cancelled".to_string() });
        }
        let batch = batch?;
        bytes += batch.get_array_memory_size();
        if bytes > MOST_BYTES {
            return Err(Error::invalid("the result is too large to be watched in place (64 MiB)")
                .help("LIMIT makes it smaller; after \\pset live off it is printed again and again"));
        }
        batches.push(batch);
    }
    Ok((Shown::Rows(schema, batches), notices))
}
