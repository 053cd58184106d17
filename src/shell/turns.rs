//! Who may write on a terminal that somebody types into.
//!
//! While a line is edited, only the editor may draw; what else has to be seen goes through its printer, which takes
//! the line away, writes, and draws the line again. That printer can block, so a thread of its own feeds it. While an
//! answer is printed, notices wait; at other times they are written at once.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use rustyline::ExternalPrinter;

use super::output::{say, write_stdout};

/// Sinks wait when so many bytes are not yet shown above the line that is edited.
const MOST_WAITING: usize = 1 << 20;

/// Whose turn it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// A statement runs and prints nothing.
    Running,
    /// An answer is printed.
    Printing,
    /// A line is edited.
    Editing,
    /// A live view has the terminal.
    Viewing,
}

impl Turn {
    /// Nothing else may be written now.
    pub(super) fn holds_the_terminal(self) -> bool {
        matches!(self, Turn::Editing | Turn::Viewing)
    }
}

/// What waits to be shown, and whose turn it is.
pub(super) struct Turns {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    turn: Turn,
    /// Whole lines for stderr.
    notices: String,
    /// Batches of console sinks.
    batches: String,
}

impl Turns {
    pub(super) fn new() -> Arc<Self> {
        let state = State { turn: Turn::Running, notices: String::new(), batches: String::new() };
        Arc::new(Turns { state: Mutex::new(state), changed: Condvar::new() })
    }

    pub(super) fn turn(&self) -> Turn {
        self.lock().turn
    }

    /// Hands the turn on. Batches that could not be shown while a line was edited are written first.
    pub(super) fn begin(&self, turn: Turn) {
        let mut state = self.lock();
        let batches = if turn.holds_the_terminal() { String::new() } else { std::mem::take(&mut state.batches) };
        if !turn.holds_the_terminal() && !batches.is_empty() {
            // A terminal that is gone is noticed by whoever writes the answer.
            _ = write_stdout(batches.as_bytes());
        }
        state.turn = turn;
        self.changed.notify_all();
    }

    /// One line about something that happened to a query.
    pub(super) fn notice(&self, line: &str) {
        let mut state = self.lock();
        state.notices.extend([line.trim_end(), "\n"]);
        self.changed.notify_all();
    }

    /// The notices that nobody has shown, for a view.
    pub(super) fn take_notices(&self) -> Vec<String> {
        std::mem::take(&mut self.lock().notices).lines().map(str::to_string).collect()
    }

    /// What is held back while somebody has the terminal: batches, then notices.
    pub(super) fn take_held(&self) -> (String, String) {
        let mut state = self.lock();
        let held = (std::mem::take(&mut state.batches), std::mem::take(&mut state.notices));
        self.changed.notify_all();
        held
    }

    /// Shows what a sink or an answer wrote.
    pub(super) fn show(&self, text: &str) -> io::Result<()> {
        let mut state = self.lock();
        while state.turn.holds_the_terminal() && state.batches.len() >= MOST_WAITING {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if !state.turn.holds_the_terminal() {
            return write_stdout(text.as_bytes());
        }
        state.batches.push_str(text);
        self.changed.notify_all();
        Ok(())
    }

    /// Starts the thread that shows what waits. Without a printer (a dumb terminal) it writes beside the line.
    pub(super) fn start(self: &Arc<Self>, printer: Option<Box<dyn ExternalPrinter + Send>>) -> io::Result<()> {
        let turns = self.clone();
        std::thread::Builder::new().name("notices".to_string()).spawn(move || turns.run(printer)).map(|_| ())
    }

    fn run(&self, mut printer: Option<Box<dyn ExternalPrinter + Send>>) {
        loop {
            let (turn, batches, notices) = self.next();
            match (turn, &mut printer) {
                (Turn::Editing, Some(printer)) => {
                    // It fails only when the terminal is gone.
                    _ = printer.print(batches + &crate::display::for_terminal(&notices, false));
                }
                _ => {
                    _ = write_stdout(batches.as_bytes());
                    if !notices.is_empty() {
                        say(&notices);
                    }
                }
            }
        }
    }

    /// Waits for something that may be shown now.
    fn next(&self) -> (Turn, String, String) {
        let mut state = self.lock();
        while matches!(state.turn, Turn::Printing | Turn::Viewing)
            || (state.notices.is_empty() && state.batches.is_empty())
        {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let shown = (state.turn, std::mem::take(&mut state.batches), std::mem::take(&mut state.notices));
        self.changed.notify_all();
        shown
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    struct Shown(Sender<String>);

    impl ExternalPrinter for Shown {
        fn print(&mut self, text: String) -> rustyline::Result<()> {
            self.0.send(text).map_err(|_| io::Error::other("nobody looks").into())
        }
    }

    fn started() -> (Arc<Turns>, Receiver<String>) {
        let (sender, shown) = channel();
        let turns = Turns::new();
        turns.begin(Turn::Printing);
        turns.start(Some(Box::new(Shown(sender)))).unwrap();
        (turns, shown)
    }

    #[test]
    fn notices_wait_for_the_end_of_an_answer() {
        let (turns, shown) = started();
        turns.notice("query q failed\x1b[2J");
        turns.notice("query r failed\n");
        assert!(shown.try_recv().is_err());
        turns.begin(Turn::Editing);
        assert_eq!(shown.recv().unwrap(), "query q failed\\x1b[2J\nquery r failed\n");
    }

    #[test]
    fn a_batch_appears_above_the_line_that_is_edited() {
        let (turns, shown) = started();
        turns.begin(Turn::Editing);
        turns.show("-- Batch: 1\n").unwrap();
        assert_eq!(shown.recv().unwrap(), "-- Batch: 1\n");
    }

    #[test]
    fn what_comes_while_a_view_is_open_is_shown_when_it_is_left() {
        let (turns, shown) = started();
        turns.begin(Turn::Viewing);
        turns.show("-- Batch: 0\n").unwrap();
        turns.notice("query p failed");
        assert_eq!(turns.take_held(), ("-- Batch: 0\n".to_string(), "query p failed\n".to_string()));
        turns.notice("query q failed");
        turns.show("-- Batch: 1\n").unwrap();
        assert_eq!(turns.take_notices(), ["query q failed"]);
        turns.notice("query r failed");
        assert!(shown.try_recv().is_err());
        turns.begin(Turn::Editing);
        assert_eq!(shown.recv().unwrap(), "-- Batch: 1\nquery r failed\n");
    }

    #[test]
    fn a_sink_waits_while_too_much_is_not_shown() {
        let turns = Turns::new();
        turns.begin(Turn::Editing);
        turns.show(&"x".repeat(MOST_WAITING)).unwrap();
        let (waiting, (done, ended)) = (turns.clone(), channel());
        std::thread::spawn(move || {
            waiting.show("one more\n").unwrap();
            done.send(()).unwrap();
        });
        assert!(ended.try_recv().is_err());
        let (sender, shown) = channel();
        turns.start(Some(Box::new(Shown(sender)))).unwrap();
        assert_eq!(shown.recv().unwrap().len(), MOST_WAITING);
        assert_eq!(shown.recv().unwrap(), "one more\n");
        ended.recv().unwrap();
    }
}
