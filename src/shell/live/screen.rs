//! The terminal as a view has it: painted at most so often, at once when a key was pressed.

use std::time::Duration;

use super::frame::Size;
use super::keys::{Key, KeyReader};
use super::line::Line;
use super::painter::Painter;
use super::raw::{self, Raw};
use crate::error::{Error, Result};
use crate::shell::terminal;

/// What may have happened elsewhere is looked for so often.
pub(super) const TICK: Duration = Duration::from_millis(100);

/// An escape alone is a key when nothing has followed it for so long.
const ESCAPE: Duration = Duration::from_millis(25);

/// Inline, a frame has so many rows at the most …
const INLINE: usize = 20;

/// … and leaves so many to what is above.
const ABOVE: usize = 4;

/// A screen that a view is painted on.
pub(super) struct Screen {
    raw: Raw,
    painter: Painter,
    keys: KeyReader,
    pub(super) size: Size,
    pub(super) unicode: bool,
    pub(super) colour: bool,
    /// Somebody chose between inline and whole.
    chosen: bool,
}

/// What came from the keyboard.
pub(super) enum Typed {
    Keys(Vec<Key>),
    /// Nobody types any more.
    Nobody,
}

impl Screen {
    /// Takes the terminal: whole, or as many rows as are needed.
    ///
    /// # Errors
    /// It is none.
    pub(super) fn open(whole: bool, colour: bool) -> Result<Self> {
        let (size, unicode) = (raw::size(), unicode());
        let whole = whole || inline_rows(size) < 6;
        let painter = Painter::new(size, whole, colour, unicode);
        let raw = Raw::enter(leave_at_once(whole)).map_err(|error| failed(&error))?;
        let screen = Screen { raw, painter, keys: KeyReader::default(), size, unicode, colour, chosen: false };
        screen.write(&screen.painter.enter())?;
        Ok(screen)
    }

    /// The size that a frame has.
    pub(super) fn room(&self) -> Size {
        match self.painter.is_whole_screen() {
            true => self.size,
            false => Size { rows: inline_rows(self.size), ..self.size },
        }
    }

    /// Takes the whole screen where so many rows don't fit inline, unless somebody chose.
    pub(super) fn make_room(&mut self, rows: usize) -> Result<()> {
        if !self.chosen && !self.painter.is_whole_screen() && rows > inline_rows(self.size) {
            return self.turn();
        }
        Ok(())
    }

    /// Goes over to the whole screen or back, as was chosen.
    pub(super) fn choose_other(&mut self) -> Result<()> {
        self.chosen = true;
        self.turn()
    }

    fn turn(&mut self) -> Result<()> {
        let bytes = self.painter.turn();
        self.raw.leave_with(leave_at_once(self.painter.is_whole_screen()));
        self.write(&bytes)
    }

    /// Paints what has changed.
    pub(super) fn paint(&mut self, lines: &[Line]) -> Result<()> {
        let bytes = self.painter.paint(lines);
        self.write(&bytes)
    }

    /// Whether all must be painted anew: the terminal has another size, or was taken from us for a while.
    pub(super) fn disturbed(&mut self) -> Result<bool> {
        let taken = self.raw.take_again();
        if taken {
            self.painter.forget();
            self.write(&self.painter.enter())?;
        }
        let size = raw::size();
        if size == self.size {
            return Ok(taken);
        }
        self.size = size;
        let bytes = self.painter.resize(size);
        self.write(&bytes)?;
        Ok(true)
    }

    /// The keys that are typed within `time`.
    pub(super) fn keys(&mut self, time: Duration) -> Result<Typed> {
        let time = if self.keys.waits() { time.min(ESCAPE) } else { time };
        let read = self.raw.read(time).map_err(|error| failed(&error))?;
        if self.raw.is_stop_asked() {
            self.suspend()?;
        }
        match read {
            None => Ok(Typed::Nobody),
            Some(bytes) if bytes.is_empty() => Ok(Typed::Keys(self.keys.nothing_more().into_iter().collect())),
            Some(bytes) => Ok(Typed::Keys(self.keys.read(&bytes))),
        }
    }

    /// Ctrl-Z.
    pub(super) fn suspend(&mut self) -> Result<()> {
        let leave = self.painter.leave();
        let enter = self.painter.enter();
        self.raw.suspend(&leave, &enter).map_err(|error| failed(&error))
    }

    pub(super) fn write(&self, text: &str) -> Result<()> {
        raw::write_all(text.as_bytes()).map_err(|error| failed(&error))
    }

    /// Gives the terminal back, with these lines where the frame was.
    pub(super) fn close(mut self, last: &[Line]) -> Result<()> {
        let mut text = self.painter.leave();
        for line in last {
            text += &line.clone().trimmed().ansi(self.colour);
            text += "\r\n";
        }
        self.raw.leave_with("");
        self.write(&text)
    }
}

/// What is written when the view is ended from elsewhere.
fn leave_at_once(whole: bool) -> &'static str {
    if whole { "\x1b[?1049l\x1b[?25h" } else { "\r\n\x1b[?25h" }
}

fn inline_rows(size: Size) -> usize {
    size.rows.saturating_sub(ABOVE).min(INLINE)
}

fn failed(error: &std::io::Error) -> Error {
    Error::io("can't use the terminal", error)
}

/// Whether the terminal shows more than ASCII.
pub(super) fn unicode() -> bool {
    terminal::Screen::now().unicode
}
