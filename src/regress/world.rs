//! What a test file holds in its hand: a session, its clock, a folder, and what is needed to begin anew from disk.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::answer::{Failure, Outcome};
use super::values::Style;
use crate::checkpoint::failpoint::Armed;
use crate::clock::Millis;
use crate::error::{Error, Location, Result};
use crate::execution::{QueryHandle, QueryState};
use crate::options::OptionValue;
use crate::parser::{ObjectKind, ParsedStatement, Splitter, Statement, StopHow, Which, parse_one};
use crate::session::{Answer, Session, SessionOptions, TestOptions};
use crate::sink::Recorder;

/// How long a query may take to end where nobody waits for what it does. One that takes longer is left to itself: the program's end
/// is its own.
const GRACE: Duration = Duration::from_secs(5);

/// The folders of the worlds that there are, for an end in the middle of them.
static FOLDERS: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Removes what is left of the folders of tests.
pub fn remove_folders() {
    for folder in std::mem::take(&mut *FOLDERS.lock().unwrap_or_else(PoisonError::into_inner)) {
        // One that can't be removed now can't be removed at all: the program ends.
        let _ = std::fs::remove_dir_all(folder);
    }
}

/// A folder for a test's files.
///
/// # Errors
/// It can't be made.
pub fn new_folder() -> Result<tempfile::TempDir> {
    let folder = scratch_folder();
    let scratch = tempfile::Builder::new().prefix("levada-test-").tempdir_in(&folder);
    let context = || format!("making a folder for a test in {}", folder.display());
    scratch.map_err(|e| Error::io(context(), &e).help("TMPDIR names another place"))
}

/// Where TMPDIR says; without it in memory, where Linux keeps files in it and has room: a test makes hundreds of small files, none
/// of which has to outlive it.
fn scratch_folder() -> PathBuf {
    const SHARED_MEMORY: &str = "/dev/shm";
    const ENOUGH: u64 = 1 << 30;
    if std::env::var_os("TMPDIR").is_none() && cfg!(target_os = "linux") && room_in(SHARED_MEMORY) >= ENOUGH {
        return SHARED_MEMORY.into();
    }
    std::env::temp_dir()
}

/// Bytes that may be written into a folder; 0 where that can't be said.
fn room_in(folder: &str) -> u64 {
    use rustix::fs::{Access, access, statvfs};
    if access(folder, Access::WRITE_OK).is_err() {
        return 0;
    }
    statvfs(folder).map_or(0, |room| room.f_bavail.saturating_mul(room.f_frsize))
}

/// The world of one file, or of one run of a scenario.
pub struct World {
    pub style: Style,
    /// The next values are for a variable, not for the eye.
    pub raw: AtomicBool,
    /// Test mode: where the clock began.
    pub clock: Option<Millis>,
    pub recorder: Recorder,
    scratch: tempfile::TempDir,
    inner: Mutex<Inner>,
}

struct Inner {
    session: Arc<Session>,
    /// Statements that a new session has to hear again: what is created, and what is put into it.
    log: Vec<String>,
    /// The queries that were started, in that order, each with its statement.
    started: Vec<(String, String)>,
    /// Names of the columns of the last answer.
    names: Vec<String>,
    /// The rows of the last answer of a record of the crate.
    answered: Vec<Vec<String>>,
    /// Files that were fed.
    fed: u64,
    /// Queries that a STOP has ended.
    stopped: BTreeSet<String>,
}

impl World {
    /// An empty world.
    ///
    /// # Errors
    /// No folder can be made, or no session.
    pub fn new(style: Style, clock: Option<Millis>) -> Result<Arc<Self>> {
        let scratch = new_folder()?;
        FOLDERS.lock().unwrap_or_else(PoisonError::into_inner).insert(scratch.path().to_path_buf());
        let recorder = Recorder::default();
        let session = session(clock, &recorder)?;
        let inner = Inner {
            session,
            log: Vec::new(),
            started: Vec::new(),
            names: Vec::new(),
            answered: Vec::new(),
            fed: 0,
            stopped: BTreeSet::new(),
        };
        Ok(Arc::new(World { style, raw: AtomicBool::new(false), clock, recorder, scratch, inner: Mutex::new(inner) }))
    }

    /// Another world that has heard the same statements, its queries not started.
    ///
    /// # Errors
    /// Of a statement that fails when it is heard again.
    pub fn again(&self) -> Result<Arc<Self>, Failure> {
        let other = World::new(self.style, self.clock)?;
        let (log, now) = {
            let inner = self.lock();
            (inner.log.clone(), self.clock.map(|_| inner.session.now()))
        };
        let from = self.folder().display().to_string();
        let to = other.folder().display().to_string();
        for sql in log {
            other.execute(&sql.replace(&from, &to))?;
        }
        if let Some(now) = now {
            other.execute(&format!("ADVANCE CLOCK TO TIMESTAMP '{}'", time_text(now)))?;
        }
        Ok(other)
    }

    /// The folder of the test's files.
    pub fn folder(&self) -> &Path {
        self.scratch.path()
    }

    /// A text that names the test's folder as test files do.
    pub fn without_folder(&self, text: &str) -> String {
        text.replace(&self.folder().display().to_string(), "$__TEST_DIR__")
    }

    /// The session of the moment.
    pub fn session(&self) -> Arc<Session> {
        self.lock().session.clone()
    }

    /// The names of the columns of the last answer.
    pub fn names(&self) -> Vec<String> {
        self.lock().names.clone()
    }

    /// Keeps the rows of an answer, before they are sorted and hashed.
    pub fn keep_answered(&self, rows: &[Vec<String>]) {
        self.lock().answered = rows.to_vec();
    }

    /// The rows of the last answer.
    pub fn answered(&self) -> Vec<Vec<String>> {
        std::mem::take(&mut self.lock().answered)
    }

    /// The queries that were started, in that order, and that the session knows: not those whose checkpoint takes no start.
    pub fn queries(&self) -> Vec<String> {
        let (session, started) = (self.session(), self.started());
        started.into_iter().map(|(name, _)| name).filter(|name| session.handle(name).is_some()).collect()
    }

    /// The statements that started them.
    pub fn started(&self) -> Vec<(String, String)> {
        self.lock().started.clone()
    }

    /// A query that was started.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn query(&self, name: &str) -> Result<QueryHandle, Failure> {
        self.session().handle(name).ok_or_else(|| Failure::new(format!("there is no query {name}")))
    }

    /// Runs the statements of a text; answers what the last one answers.
    ///
    /// # Errors
    /// Of the first that fails.
    pub fn execute(&self, sql: &str) -> Result<Outcome, Failure> {
        let named = |failure: Failure| Failure { text: self.without_folder(&failure.text), ..failure };
        self.execute_all(sql).map_err(named)
    }

    fn execute_all(&self, sql: &str) -> Result<Outcome, Failure> {
        let mut last = Outcome::Done(0);
        let mut splitter = Splitter::new(sql);
        while let Some(text) = splitter.next_text() {
            let text = text?;
            let statement = parse_one(text.text, Location { line: 1, column: 1 })?;
            last = self.run(statement, text.text)?;
        }
        Ok(last)
    }

    fn run(&self, mut statement: ParsedStatement, text: &str) -> Result<Outcome, Failure> {
        self.refuse_other_clock(&statement.statement)?;
        self.keep_in_folder(&mut statement);
        let stops = self.stops(&statement.statement);
        let answer = self.session().execute(&statement)?;
        let outcome = collect(answer)?;
        let mut inner = self.lock();
        if let Outcome::Rows { schema, .. } = &outcome {
            inner.names = schema.fields().iter().map(|field| field.name().clone()).collect();
        }
        inner.remember(&statement.statement, text);
        inner.stopped.extend(stops);
        Ok(outcome)
    }

    /// In test mode the clock is the file's: with another one queries would run by themselves.
    fn refuse_other_clock(&self, statement: &Statement) -> Result<(), Failure> {
        let word = match statement {
            Statement::Set { name, .. } if name.value == "clock" => "SET",
            Statement::Reset(name) if name.value == "clock" => "RESET",
            _ => return Ok(()),
        };
        match self.clock {
            None => Ok(()),
            Some(_) => Err(Failure::new(format!(
                "{word} clock in a file with control clock manual: its clock is the file's\nhelp: clock set TIME and clock advance INTERVAL move it"
            ))),
        }
    }

    /// The queries that a statement stops, and that have not ended yet.
    fn stops(&self, statement: &Statement) -> Vec<String> {
        let Statement::StopQuery { which, .. } = statement else { return Vec::new() };
        let names = match which {
            Which::One(name) => vec![name.value.clone()],
            Which::All => self.queries(),
        };
        let live = |name: &String| self.session().handle(name).is_some_and(|query| !has_ended(&query));
        names.into_iter().filter(live).collect()
    }

    /// Why a query takes no step any more; `None`: it does, or it has ended by itself, at the end of its input or its trigger.
    pub fn ended(&self, name: &str) -> Option<String> {
        let state = self.session().handle(name)?.status().state;
        match state {
            QueryState::Stopped if self.lock().stopped.contains(name) => {
                Some(format!("query {name} has ended: it was stopped, so it takes no step; restart query {name} first"))
            }
            _ => None,
        }
    }

    /// What is armed in a query.
    pub fn armed(&self, query: &str) -> Vec<Armed> {
        self.session().handle(query).map_or_else(Vec::new, |query| query.failpoints().armed())
    }

    /// In a test the files of a sink are in the test's folder. In test mode a query has a checkpoint there too, so that it can be
    /// begun anew.
    fn keep_in_folder(&self, statement: &mut ParsedStatement) {
        if let Statement::CreateSink(sink) = &mut statement.statement
            && let Some(entry) = sink.options.entries.iter_mut().find(|entry| entry.name == "path")
            && let OptionValue::Text(path) = &mut entry.value
            && !path.is_empty()
            && !path.contains(':')
        {
            *path = self.folder().join(&*path).display().to_string();
        }
        if let (Statement::StartQuery(start), true) = (&mut statement.statement, self.clock.is_some()) {
            let place = match &start.checkpoint {
                None => self.checkpoint(&start.name.value),
                Some(relative) if !relative.contains("://") => self.folder().join(relative),
                Some(_) => return,
            };
            start.checkpoint = Some(place.display().to_string());
        }
    }

    /// Where a query that says nothing of it has its checkpoint.
    pub fn checkpoint(&self, query: &str) -> PathBuf {
        self.folder().join("checkpoints").join(query)
    }

    /// A name for the next file that is fed.
    pub fn next_file(&self) -> u64 {
        let mut inner = self.lock();
        inner.fed += 1;
        inner.fed
    }

    /// Begins anew, as another process would: what was created is created again, and the queries that had not ended go on
    /// from their checkpoints; with `wipe` there are none.
    ///
    /// # Errors
    /// Of a statement that fails.
    pub fn restart(&self, wipe: bool) -> Result<(), Failure> {
        let (old, log, started) = {
            let inner = self.lock();
            (inner.session.clone(), inner.log.clone(), inner.started.clone())
        };
        let goes_on = |name: &str| old.handle(name).is_some_and(|q| q.status().state != QueryState::Stopped);
        let all = started.clone();
        let started: Vec<_> = started.into_iter().filter(|(name, _)| goes_on(name)).collect();
        if !end(&old, &all) {
            return Err(Failure::new("a query goes on with its batch, so that another process can't take its place"));
        }
        if wipe {
            for (name, _) in &all {
                self.recorder.forget(name);
            }
            self.wipe(&all, &log)?;
        }
        let session = session(self.clock.map(|_| old.now()), &self.recorder)?;
        drop(old);
        {
            let mut inner = self.lock();
            inner.session = session;
            (inner.log, inner.started, inner.stopped) = Default::default();
        }
        for sql in log {
            self.execute(&sql)?;
        }
        let mut refused = None;
        for (name, sql) in started {
            match self.execute(&sql) {
                // It has ended for good, and what it wrote is still to be read.
                Err(failure) if is_drained(&failure) => {
                    self.lock().started.push((name, sql));
                    refused = Some(failure);
                }
                other => drop(other?),
            }
        }
        refused.map_or(Ok(()), Err)
    }

    /// Removes the checkpoints of queries, and what was written into file sinks.
    fn wipe(&self, started: &[(String, String)], log: &[String]) -> Result<(), Failure> {
        let parse = |sql: &str| parse_one(sql, Location { line: 1, column: 1 });
        let mut places = vec![self.folder().join("checkpoints")];
        for sql in started.iter().map(|(_, sql)| sql).chain(log) {
            let mut statement = parse(sql)?;
            self.keep_in_folder(&mut statement);
            let place = match &statement.statement {
                Statement::StartQuery(start) => start.checkpoint.clone(),
                Statement::CreateSink(sink) => sink.options.text("path").map(str::to_string),
                _ => None,
            };
            places.extend(place.map(|place| local(&place)));
        }
        for place in places.iter().filter(|place| place.exists()) {
            if !place.starts_with(self.folder()) || place == self.folder() {
                let message = format!("{} is not in the file's folder, so wipe leaves it", place.display());
                return Err(Failure::new(message + "\nhelp: name a place below $__TEST_DIR__, or a relative one"));
            }
            let removed = if place.is_dir() { std::fs::remove_dir_all(place) } else { std::fs::remove_file(place) };
            removed.map_err(|e| Error::io(format!("removing {}", place.display()), &e))?;
        }
        Ok(())
    }

    /// Begins a query anew, from its checkpoint or a copy of it elsewhere.
    ///
    /// # Errors
    /// It was not started, or can't be; there is no checkpoint elsewhere.
    pub fn restart_query(&self, name: &str, from: Option<&str>) -> Result<(), Failure> {
        if let Some(from) = from {
            let place = self.folder().join(local(from));
            if (from.starts_with("file:") || !from.contains("://")) && !place.join("metadata").is_file() {
                let named = self.without_folder(&place.display().to_string());
                return Err(Failure::new(format!(
                    "there is no checkpoint {named}, from which query {name} could go on"
                )));
            }
        }
        let sql = self.lock().started.iter().find(|(started, _)| started == name).map(|(_, sql)| sql.clone());
        let sql = sql.ok_or_else(|| Failure::new(format!("there is no query {name} to restart")))?;
        let handle = self.query(name)?;
        if matches!(handle.status().state, QueryState::Running | QueryState::Paused) {
            self.execute(&format!("STOP QUERY {}", quoted(name)))?;
        }
        let mut statement = parse_one(&sql, Location { line: 1, column: 1 })?;
        if let (Statement::StartQuery(start), Some(from)) = (&mut statement.statement, from) {
            start.checkpoint = Some(from.to_string());
        }
        self.run(statement, &sql).map(drop)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // Nothing of it may write to the folder while that is removed.
        let (session, started) = (self.session(), self.started());
        if end(&session, &started) {
            FOLDERS.lock().unwrap_or_else(PoisonError::into_inner).remove(self.folder());
        }
    }
}

/// Ends what a session runs; answers whether all of it has ended. Where it has not, the session stays as long as the program.
fn end(session: &Arc<Session>, started: &[(String, String)]) -> bool {
    let queries: Vec<QueryHandle> = started.iter().filter_map(|(name, _)| session.handle(name)).collect();
    let all = queries.iter().all(|query| {
        // An error of the query ends it too.
        has_ended(query) || query.stop(StopHow::Now, Some(GRACE), &|| false).is_ok() || has_ended(query)
    });
    match all {
        true => drop(session.stop_all(true)),
        false => std::mem::forget(session.clone()),
    }
    all
}

fn has_ended(query: &QueryHandle) -> bool {
    matches!(query.status().state, QueryState::Stopped | QueryState::Failed)
}

/// The path that a location stands for.
fn local(location: &str) -> PathBuf {
    let path = location.strip_prefix("file://").or_else(|| location.strip_prefix("file:"));
    PathBuf::from(path.unwrap_or(location))
}

impl Inner {
    /// Keeps what a new session has to hear again.
    fn remember(&mut self, statement: &Statement, text: &str) {
        match statement {
            Statement::StartQuery(start) => {
                self.started.retain(|(name, _)| *name != start.name.value);
                self.stopped.remove(&start.name.value);
                self.started.push((start.name.value.clone(), text.to_string()));
            }
            Statement::Drop { kind: ObjectKind::Query, name, .. } => {
                self.started.retain(|(started, _)| *started != name.value);
            }
            Statement::CreateStream(_)
            | Statement::CreateSink(_)
            | Statement::CreateView(_)
            | Statement::CloseStream(_)
            | Statement::Drop { .. }
            | Statement::Set { .. }
            | Statement::Reset(_) => self.log.push(text.to_string()),
            // COPY writes files, which outlive the session.
            Statement::Sql(_) | Statement::DataFusion if !begins_with(text, "COPY") => self.log.push(text.to_string()),
            _ => {}
        }
    }
}

fn begins_with(text: &str, word: &str) -> bool {
    text.split_whitespace().next().is_some_and(|first| first.eq_ignore_ascii_case(word))
}

fn session(clock: Option<Millis>, recorder: &Recorder) -> Result<Arc<Session>> {
    let options = SessionOptions {
        output: Arc::new(Mutex::new(Box::new(std::io::sink()))),
        notices: Arc::new(|_| {}),
        failures: Arc::new(|_| {}),
        console_format: "ascii".into(),
        empty_batches: false,
        test: Some(TestOptions { clock, recorder: recorder.clone() }),
    };
    Session::new(options).map(Arc::new)
}

fn collect(answer: Answer) -> Result<Outcome, Failure> {
    Ok(match answer {
        Answer::Done { tag, .. } => {
            let count = tag.split_whitespace().last().and_then(|word| word.parse().ok());
            Outcome::Done(count.unwrap_or_default())
        }
        Answer::Rows { schema, rows, .. } => {
            let batches = rows.collect::<Result<Vec<_>>>()?;
            Outcome::Rows { schema, batches }
        }
        Answer::Text(text) => Outcome::of_text(&text)?,
    })
}

/// Whether a query was not started as its checkpoint was drained.
pub fn is_drained(failure: &Failure) -> bool {
    failure.text.contains("was drained at batch")
}

/// A name as SQL writes it.
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// What stops a query.
pub fn stop_sql(query: &str, how: StopHow) -> String {
    let how = match how {
        StopHow::Now => " NOW",
        StopHow::Drain => " DRAIN",
        _ => "",
    };
    format!("STOP QUERY {}{how}", quoted(query))
}

/// Milliseconds as SQL and test files write them.
pub fn time_text(millis: Millis) -> String {
    match chrono::DateTime::from_timestamp_millis(millis) {
        Some(time) => time.to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true),
        None => format!("{millis} ms"),
    }
}
