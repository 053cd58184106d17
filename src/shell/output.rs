//! Standard output, shared with console sinks; and standard error.
//!
//! What goes to a terminal can't hold a control character but newline and tab, wherever it came from. When nobody
//! reads any more (`| head -1`), the rest is dropped and the run is ended quietly.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::turns::{Turn, Turns};
use crate::display::visible_lines;
use crate::sink::SharedOutput;

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
    /// Standard output. `turns`: whose turn it is on a terminal that somebody types into.
    pub(super) fn stdout(turns: Option<Arc<Turns>>) -> Self {
        let broken = Arc::new(Broken::default());
        let is_terminal = io::stdout().is_terminal();
        let writer = StdoutWriter { buffer: Vec::new(), is_terminal, turns, broken: broken.clone() };
        Output { shared: Arc::new(Mutex::new(Box::new(writer))), broken, is_terminal }
    }

    /// Anything that is no terminal.
    #[cfg(test)]
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
    _ = writeln!(io::stderr().lock(), "{}", visible_lines(text.trim_end_matches('\n')));
}

struct StdoutWriter {
    buffer: Vec<u8>,
    is_terminal: bool,
    turns: Option<Arc<Turns>>,
    broken: Arc<Broken>,
}

impl Write for StdoutWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        // While somebody types, a batch is shown as a whole, by flush.
        let typing = self.turns.as_ref().is_some_and(|turns| turns.turn() == Turn::Editing);
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
        let written = if self.is_terminal { self.drain_to_terminal() } else { write_stdout(&self.buffer) };
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

    fn drain_to_terminal(&self) -> io::Result<()> {
        let text = String::from_utf8_lossy(&self.buffer);
        let text = visible_lines(&text);
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
