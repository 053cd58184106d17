//! The live view: a query's result in place, on a terminal that somebody types into.
//!
//! ```text
//! a console sink ─desk→ model ─frame→ lines ─painter→ bytes ─raw→ the terminal
//!                    keys → view ┘
//! ```
//!
//! `model` knows what the query has given out, `view` what somebody chose to see of it; `frame` makes lines of both and
//! `painter` the bytes that bring the terminal from one frame to the next. None of these reads a clock or writes.
//! `attached` and `overview` are the loops of one query and of all.

mod attached;
mod desk;
mod facts;
mod figures;
mod frame;
#[cfg(test)]
mod frame_tests;
mod grid;
mod heard;
mod keys;
mod line;
mod model;
#[cfg(test)]
mod model_tests;
mod overview;
mod painter;
mod rates;
mod raw;
mod repeat;
mod save;
mod screen;
mod typed;
mod value;
mod view;

pub(super) use desk::Desk;
pub(super) use figures::{bytes, count};
pub(super) use line::clip;
pub(super) use raw::{Raw, is_anything_typed, restore};
pub(super) use repeat::{Repeated, Rounds, Shown};
pub(super) use value::{Column, columns, compare};

use std::io::IsTerminal;
use std::sync::Arc;

use super::output::say;
use super::runner::Shell;
use super::terminal::is_dumb;
use super::turns::{Turn, Turns};
use crate::error::{Error, Location, Result};
use crate::execution::{QueryHandle, QueryState};
use crate::parser::{ParsedStatement, Show, StartQuery, Statement, Trigger, WatchWhat, parse_one};
use crate::session::{Answer, Session};
use attached::{Left, Stage, attach};
use desk::Live;

/// The desk of a terminal that can show views; `None` where there is none, or a dumb one.
pub(super) fn desk() -> Option<Arc<Desk>> {
    let terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    (terminal && !is_dumb()).then(Desk::new)
}

impl Shell {
    /// Runs a statement; one that shows what goes on has a view of its own where views are on.
    pub(super) fn execute(&self, statement: &ParsedStatement) -> Result<Answer> {
        let Some((desk, turns)) = self.views() else { return self.session.execute(statement) };
        match &statement.statement {
            Statement::Watch { what, until } => {
                let writes = match what {
                    WatchWhat::Query(name) => desk.console(&name.value).filter(|live| live.is_open()),
                    WatchWhat::Select(_) => None,
                };
                match writes {
                    // It is looked at already.
                    Some(live) if until.is_none() => {
                        self.session.cancel_token().clear();
                        self.look_at(&desk, &turns, live, false, false)?;
                        Ok(Answer::Done { tag: "WATCH".to_string(), notices: Vec::new() })
                    }
                    Some(live) => self.printing(&live, statement),
                    None => self.watch(&desk, &turns, statement),
                }
            }
            Statement::Show(Show::ProgressLive) => {
                self.session.cancel_token().clear();
                self.overview()?;
                Ok(Answer::Done { tag: "SHOW PROGRESS LIVE".to_string(), notices: Vec::new() })
            }
            Statement::StartQuery(start) => {
                desk.expect(self.is_viewed(start));
                let answer = self.session.execute(statement);
                desk.expect_no_more();
                answer
            }
            _ => self.session.execute(statement),
        }
    }

    /// Opens the view of a query that a statement has started into the console.
    pub(super) fn view_started(&self, statement: &ParsedStatement) -> Result<()> {
        let (Some((desk, turns)), Statement::StartQuery(start)) = (self.views(), &statement.statement) else {
            return Ok(());
        };
        match desk.take_opened() {
            Some(live) if self.is_viewed(start) => self.look_at(&desk, &turns, live, true, false),
            _ => Ok(()),
        }
    }

    /// `\watch` in place: runs a statement again and again. `text`: as it is shown.
    ///
    /// # Errors
    /// There is no terminal for it, or it can't be used.
    pub(super) fn repeat_in_place(&self, statement: &ParsedStatement, text: &str, rounds: &Rounds) -> Result<Repeated> {
        let Some((desk, turns)) = self.views() else { return Err(no_views()) };
        let colour = self.settings.paints(true);
        let place = repeat::Place { session: &self.session, desk: &desk, turns: &turns, colour };
        repeat::repeat(&place, statement, text, rounds)
    }

    /// `\live`: the view of a query, or of the only one that writes to the console.
    pub(super) fn live(&self, query: Option<&str>) -> Result<()> {
        let Some((desk, turns)) = self.views() else { return Err(no_views()) };
        self.session.cancel_token().clear();
        let name = match query {
            Some(name) => name.to_string(),
            None => {
                let running = self.session.running_queries();
                let open = |name: &String| desk.console(name).is_some_and(|live| live.is_open());
                let mut consoles = running.into_iter().filter(open);
                match (consoles.next(), consoles.next()) {
                    (Some(name), None) => name,
                    (None, _) => {
                        return Err(Error::invalid("no query that runs writes to the console")
                            .help("\\live QUERY looks at any query"));
                    }
                    (Some(one), Some(other)) => {
                        return Err(Error::invalid(format!("{one}, {other} and maybe others write to the console"))
                            .help(format!("\\live {one}")));
                    }
                }
            }
        };
        self.look_by_name(&desk, &turns, &name, false)
    }

    /// Looks at the console of a query, or at its batches where it writes elsewhere. `stays`: see [`Stage::stays`].
    fn look_by_name(&self, desk: &Desk, turns: &Turns, name: &str, stays: bool) -> Result<()> {
        let known = self.session.handle(name).is_some();
        // One that has ended shows what it has given out last.
        match desk.console(name).filter(|live| known && (live.is_open() || !self.runs(name))) {
            Some(live) => self.look_at(desk, turns, live, true, stays),
            None => self.watch_by_name(desk, turns, name),
        }
    }

    /// `\tail`: a query's console prints its batches, or no longer. Answers whether it does.
    pub(super) fn tail(&self, query: &str, on: Option<bool>) -> Result<bool> {
        let live = self.desk.as_ref().and_then(|desk| desk.console(query)).filter(|live| live.is_open());
        let Some(live) = live else {
            return Err(Error::invalid(format!("no query {query} that runs writes to the console"))
                .help(format!("WATCH {query} looks at any query that runs")));
        };
        let on = on.unwrap_or(live.is_quiet());
        live.set_quiet(!on);
        Ok(on)
    }

    /// `\progress`: all queries, a line each; from there into each of them.
    pub(super) fn overview(&self) -> Result<()> {
        let Some((desk, turns)) = self.views() else { return Err(no_views()) };
        let cancel = self.session.cancel_token();
        let mut chosen = None;
        loop {
            let left = {
                let _viewing = Viewing::begin(&turns);
                overview::overview(&self.session, &mut chosen, self.settings.paints(true), &|| cancel.is_cancelled())?
            };
            match left {
                overview::Left::Closed => return Ok(()),
                overview::Left::Into(name) => {
                    chosen = Some(name.clone());
                    self.look_by_name(&desk, &turns, &name, true)?;
                    cancel.clear();
                }
            }
        }
    }

    /// Whether views are opened: somebody types, at a terminal that can show them.
    pub(super) fn has_views(&self) -> bool {
        self.views().is_some()
    }

    fn views(&self) -> Option<(Arc<Desk>, Arc<Turns>)> {
        let open = self.settings.live && !self.settings.plain && self.depth == 0;
        let desk = self.desk.clone().filter(|desk| open && desk.is_typed_at())?;
        Some((desk, self.turns.clone()?))
    }

    fn runs(&self, query: &str) -> bool {
        let state = self.session.handle(query).map(|handle| handle.status().state);
        matches!(state, Some(QueryState::Running | QueryState::Paused))
    }

    /// Whether a query is shown as soon as it starts: one that is stepped waits for what is typed next.
    fn is_viewed(&self, start: &StartQuery) -> bool {
        start.trigger != Some(Trigger::Manual) && !self.session.is_stepped()
    }

    /// Looks at a query that writes to the console. It is quiet afterwards, until `\tail`. `stops`: Ctrl-C stops it.
    fn look_at(&self, desk: &Desk, turns: &Turns, live: Arc<Live>, stops: bool, stays: bool) -> Result<()> {
        live.set_quiet(true);
        let query = live.query.clone();
        let handle = || self.session.handle(&query);
        let over = || handle().is_none_or(|handle| has_ended(&handle));
        let cancel = self.session.cancel_token();
        let (handle, over, cancel, colour) = (&handle, &over, &cancel, self.settings.paints(true));
        let stage = Stage { desk, turns, live, handle, over, stays, cancel, ends_with_view: false, stops, colour };
        let left = {
            let _viewing = Viewing::begin(turns);
            attach(&stage)?
        };
        if left == Left::Running && !self.settings.quiet {
            say(&format!("{query} runs on: \\live {query} looks at it again, \\tail {query} prints its batches"));
        }
        Ok(())
    }

    fn watch_by_name(&self, desk: &Desk, turns: &Turns, name: &str) -> Result<()> {
        let quoted = format!("\"{}\"", name.replace('"', "\"\""));
        let statement = parse_one(&format!("WATCH {quoted}"), Location { line: 1, column: 1 })?;
        self.watch(desk, turns, &statement).map(|_| ()).map_err(|mut error| {
            if let Error::InvalidInput { span, .. } | Error::Unsupported { span, .. } = &mut error {
                *span = None;
            }
            error
        })
    }

    /// Runs a WATCH, and shows what its console is handed until it is over.
    fn watch(&self, desk: &Desk, turns: &Turns, statement: &ParsedStatement) -> Result<Answer> {
        desk.expect(true);
        let session: &Session = &self.session;
        let cancel = session.cancel_token();
        std::thread::scope(|scope| {
            let job = scope.spawn(|| session.execute(statement));
            let over = || job.is_finished();
            let mut shown = Ok(Left::Ended);
            if let Some(live) = desk.wait_opened(&over) {
                let handle = || session.watched_query(&live.query);
                let (live, handle, over, cancel) = (live.clone(), &handle, &over, &cancel);
                let colour = self.settings.paints(true);
                // What runs for this view alone is stopped with it.
                let stops = matches!(&statement.statement, Statement::Watch { what: WatchWhat::Select(_), .. });
                let stage = Stage {
                    desk,
                    turns,
                    live,
                    handle,
                    over,
                    stays: false,
                    cancel,
                    ends_with_view: true,
                    stops,
                    colour,
                };
                let _viewing = Viewing::begin(turns);
                shown = attach(&stage);
                if shown.is_err() {
                    cancel.cancel();
                }
            }
            let answer = match job.join() {
                Ok(answer) => answer,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            // Who leaves has not cancelled: what the answer says is printed.
            cancel.clear();
            shown.and(answer)
        })
    }

    /// Runs a WATCH of a query that writes to the console itself: that prints meanwhile.
    fn printing(&self, live: &Live, statement: &ParsedStatement) -> Result<Answer> {
        let was_quiet = live.is_quiet();
        live.set_quiet(false);
        let answer = self.session.execute(statement);
        live.set_quiet(was_quiet);
        answer
    }
}

/// The terminal is a view's.
struct Viewing<'a>(&'a Turns);

impl<'a> Viewing<'a> {
    fn begin(turns: &'a Turns) -> Self {
        turns.begin(Turn::Viewing);
        Viewing(turns)
    }
}

impl Drop for Viewing<'_> {
    fn drop(&mut self) {
        self.0.begin(Turn::Running);
    }
}

fn has_ended(handle: &QueryHandle) -> bool {
    matches!(handle.status().state, QueryState::Stopped | QueryState::Failed)
}

fn no_views() -> Error {
    Error::invalid("there is no terminal for a live view, or \\pset live is off")
        .help("SHOW PROGRESS and SHOW STATUS tell what queries do; WATCH QUERY prints its batches")
}
