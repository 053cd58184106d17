//! Standard output, shared with console sinks; and standard error.
//!
//! What goes to a terminal can't hold a control character but newline and tab, wherever it came from. When nobody
//! reads any more (`| head -1`), the rest is dropped and the run is ended quietly.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::transcript;
use super::turns::Turns;
use crate::display::{for_file, for_terminal};
use crate::sink::SharedOutput;

/// Whether standard error has colours.
static COLOURED_ERRORS: AtomicBool = AtomicBool::new(false);

/// Written at the latest when so much has come together.
const BUFFER: usize = 64 << 10;

/// Where answers and console sinks write; clones write to the same place.
#[derive(Clone)]
pub(super) struct Output {
    pub(super) shared: SharedOutput,
    broken: Arc<Broken>,
    pub(super) is_terminal: bool,
}

/// Whether the reader of our standard output has gone.
#[derive(Default)]
struct Broken {
    is: AtomicBool,
    notify: Notify,
}

impl Output {
    /// Standard output. `turns`: whose turn it is on a terminal that somebody types into. `colour`: marks become
    /// escape sequences.
    pub(super) fn stdout(turns: Option<Arc<Turns>>, colour: bool) -> Self {
        let broken = Arc::new(Broken::default());
        let is_terminal = io::stdout().is_terminal();
        let writer = StdoutWriter { buffer: Vec::new(), is_terminal, colour, turns, broken: broken.clone() };
        Output { shared: Arc::new(Mutex::new(Box::new(writer))), broken, is_terminal }
    }

    /// Anything that is no terminal.
    pub(super) fn to(writer: impl Write + Send + 'static) -> Self {
        Output { shared: Arc::new(Mutex::new(Box::new(writer))), broken: Arc::default(), is_terminal: false }
    }

    /// Takes the output for one answer: nobody else writes until it is given back.
    pub(super) fn lock(&self) -> MutexGuard<'_, Box<dyn Write + Send>> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes what is left, unless somebody is stuck while writing.
    pub(super) fn try_flush(&self) {
        if let Ok(mut out) = self.shared.try_lock() {
            _ = out.flush();
        }
    }

    /// Whether nobody reads any more.
    pub(super) fn is_broken(&self) -> bool {
        self.broken.is.load(Ordering::SeqCst)
    }

    /// Ends when nobody reads any more.
    pub(super) async fn broken(&self) {
        self.broken.notify.notified().await;
    }
}

/// One or more lines on standard error. Where that can't be written there is nobody left to tell.
pub(super) fn say(text: &str) {
    let text = text.trim_end_matches('\n');
    _ = writeln!(io::stderr().lock(), "{}", for_terminal(text, COLOURED_ERRORS.load(Ordering::Relaxed)));
    transcript::add(format!("{}\n", for_terminal(text, false)).as_bytes());
}

/// Whether standard error has colours from here on.
pub(super) fn colour_errors(colour: bool) {
    COLOURED_ERRORS.store(colour, Ordering::Relaxed);
}

struct StdoutWriter {
    buffer: Vec<u8>,
    is_terminal: bool,
    colour: bool,
    turns: Option<Arc<Turns>>,
    broken: Arc<Broken>,
}

impl Write for StdoutWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        // While somebody types or looks, a batch is shown as a whole, by flush.
        let typing = self.turns.as_ref().is_some_and(|turns| turns.turn().holds_the_terminal());
        if self.buffer.len() >= BUFFER && !typing {
            self.drain()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.drain()
    }
}

impl StdoutWriter {
    fn drain(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() || self.broken.is.load(Ordering::SeqCst) {
            self.buffer.clear();
            return Ok(());
        }
        let written = match (self.is_terminal, self.colour) {
            (true, _) => self.drain_to_terminal(),
            (false, true) => write_stdout(for_file(&String::from_utf8_lossy(&self.buffer)).as_bytes()),
            (false, false) => write_stdout(&self.buffer),
        };
        self.keep_transcript();
        match written {
            // Taken as written, so that a batch in flight is committed and its query ends without an error.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.buffer.clear();
                self.broken.is.store(true, Ordering::SeqCst);
                self.broken.notify.notify_one();
                Ok(())
            }
            written => {
                self.buffer.clear();
                written
            }
        }
    }

    fn keep_transcript(&self) {
        if transcript::name().is_none() {
            return;
        }
        match self.colour {
            true => transcript::add(for_terminal(&String::from_utf8_lossy(&self.buffer), false).as_bytes()),
            false => transcript::add(&self.buffer),
        }
    }

    fn drain_to_terminal(&self) -> io::Result<()> {
        let text = String::from_utf8_lossy(&self.buffer);
        let text = for_terminal(&text, self.colour);
        match &self.turns {
            Some(turns) => turns.show(&text),
            None => write_stdout(text.as_bytes()),
        }
    }
}

pub(super) fn write_stdout(bytes: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes)?;
    stdout.flush()
}
