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

/// The terminal that stdout is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Screen {
    pub(super) columns: Option<usize>,
    pub(super) rows: Option<usize>,
    /// It shows more than ASCII.
    pub(super) unicode: bool,
}

impl Screen {
    /// As it is now: `COLUMNS` and `LINES`, or what the terminal says.
    pub(super) fn now() -> Self {
        let mut size = MaybeUninit::<libc::winsize>::zeroed();
        // SAFETY: a winsize of zeroes is valid, and the call fills it or leaves it.
        let size = unsafe {
            libc::ioctl(libc::STDOUT_FILENO, libc::TIOCGWINSZ, size.as_mut_ptr());
            size.assume_init()
        };
        let said = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
        let told = |size: u16| (size > 0).then_some(usize::from(size));
        Screen {
            columns: said("COLUMNS").or_else(|| told(size.ws_col)),
            rows: said("LINES").or_else(|| told(size.ws_row)),
            unicode: is_unicode(|name| std::env::var(name).ok()),
        }
    }
}

/// Whether the locale is one of UTF-8; where none is named, terminals are today.
fn is_unicode(variable: impl Fn(&str) -> Option<String>) -> bool {
    let named = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(|name| variable(name).filter(|value| !value.is_empty()));
    named.is_none_or(|locale| {
        let locale = locale.to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}

/// Whether the terminal can't move a cursor or show colours.
pub(super) fn is_dumb() -> bool {
    std::env::var("TERM").is_ok_and(|term| term == "dumb")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_locale_says_whether_more_than_ascii_is_shown() {
        for (variables, unicode) in [
            (&[][..], true),
            (&[("LANG", "en_US.UTF-8")], true),
            (&[("LANG", "C")], false),
            (&[("LANG", "en_US.UTF-8"), ("LC_ALL", "C")], false),
            (&[("LANG", "de_DE.ISO-8859-1"), ("LC_CTYPE", "C.utf8")], true),
        ] {
            let variable =
                |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_string());
            assert_eq!(is_unicode(variable), unicode, "{variables:?}");
        }
    }
}
