//! What the operating system knows of the terminal: its width, and the modes it was in before somebody edited a line.

use std::io::{IsTerminal, Write};
use std::mem::MaybeUninit;

/// The modes of the terminal at the start. The editor puts them back itself, unless the process is ended while a
/// line is edited.
pub(super) struct Modes(libc::termios);

impl Modes {
    /// The modes as they are; `None` when stdin is no terminal.
    pub(super) fn now() -> Option<Self> {
        let mut modes = MaybeUninit::<libc::termios>::uninit();
        // SAFETY: tcgetattr fills the whole struct when it answers 0, and only then is it read.
        unsafe { (libc::tcgetattr(libc::STDIN_FILENO, modes.as_mut_ptr()) == 0).then(|| Modes(modes.assume_init())) }
    }

    /// Puts them back, and ends bracketed paste, which an editor may have left on.
    pub(super) fn restore(&self) {
        let mut stdout = std::io::stdout();
        if stdout.is_terminal() {
            _ = stdout.write_all(b"\x1b[?2004l\r\n").and_then(|()| stdout.flush());
        }
        // SAFETY: the struct is one that tcgetattr filled.
        unsafe { libc::tcsetattr(libc::STDIN_FILENO, libc::TCSADRAIN, &raw const self.0) };
    }
}

/// The width of the terminal that stdout is: `COLUMNS`, or what the terminal says.
pub(super) fn columns() -> Option<usize> {
    if let Some(columns) = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok()) {
        return Some(columns);
    }
    let mut size = MaybeUninit::<libc::winsize>::zeroed();
    // SAFETY: a winsize of zeroes is valid, and the call fills it or leaves it.
    let size = unsafe {
        libc::ioctl(libc::STDOUT_FILENO, libc::TIOCGWINSZ, size.as_mut_ptr());
        size.assume_init()
    };
    (size.ws_col > 0).then_some(usize::from(size.ws_col))
}
