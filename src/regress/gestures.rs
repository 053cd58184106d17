//! What is done at a terminal in a `tty` record while the program asks for no line: keys, waiting, another size.

use std::io::Write;
use std::num::NonZeroU16;

use super::program::Screen;
use super::report::Fault;
use crate::error::Error;

/// What is done while no line is asked for.
pub(super) enum Gesture<'a> {
    /// `^keys TEXT`, in which `^X` is Ctrl-X, `^M` so Enter and `^[` Escape.
    Keys(Vec<u8>),
    /// `^wait TEXT`: until the screen shows it.
    Wait(&'a str),
    /// `^picture NAME`: the screen as it is now is drawn, where pictures are wanted.
    Picture(&'a str),
    /// `^size COLSxROWS`
    Size(NonZeroU16, NonZeroU16),
}

impl<'a> Gesture<'a> {
    /// Reads a line; `None` where it is one to be typed.
    ///
    /// # Errors
    /// A size or a name that is none.
    pub(super) fn read(line: &'a str) -> Result<Option<Self>, Fault> {
        let Some((word, rest)) = line.strip_prefix('^').and_then(|line| line.split_once(' ')) else { return Ok(None) };
        Ok(Some(match word {
            "keys" => Gesture::Keys(keys(rest)),
            "wait" => Gesture::Wait(rest),
            "picture" => match rest.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_')) {
                true => Gesture::Picture(rest),
                false => {
                    return Err(Fault::text(format!("{line:?} is written ^picture NAME, of letters, digits, - and _")));
                }
            },
            "size" => {
                let size =
                    rest.split_once('x').and_then(|(columns, rows)| Some((columns.parse().ok()?, rows.parse().ok()?)));
                let Some((columns, rows)) = size else {
                    return Err(Fault::text(format!("{line:?} is written ^size 80x24")));
                };
                Gesture::Size(columns, rows)
            }
            _ => return Ok(None),
        }))
    }

    /// Makes it.
    ///
    /// # Errors
    /// Of the terminal; a text that is not shown.
    pub(super) fn make(self, pty: &pty_process::blocking::Pty, screen: &mut Screen<'_>) -> Result<(), Fault> {
        let mut writer = pty;
        match self {
            Gesture::Keys(keys) => writer.write_all(&keys).map_err(|e| Error::io("typing", &e))?,
            Gesture::Wait(text) => screen.until_shown(text)?,
            Gesture::Picture(name) => screen.picture(name)?,
            Gesture::Size(columns, rows) => {
                screen.parser.screen_mut().set_size(rows, columns);
                let size = pty_process::Size::new(rows.get(), columns.get());
                pty.resize(size).map_err(|e| Fault::text(format!("a terminal: {e}")))?;
            }
        }
        Ok(())
    }
}

/// The bytes of keys, `^X` standing for Ctrl-X.
fn keys(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match (c, rest.as_str().chars().next()) {
            ('^', Some(key)) if key.is_ascii() => {
                bytes.push((key.to_ascii_uppercase() as u8) & 0x1f);
                rest.next();
            }
            (c, _) => bytes.extend(c.encode_utf8(&mut [0; 4]).bytes()),
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_written_as_they_are_named() {
        assert_eq!(keys("q^c^[^Mé^"), [b'q', 3, 27, 13, 0xc3, 0xa9, b'^']);
        assert!(matches!(Gesture::read("^wait a b"), Ok(Some(Gesture::Wait("a b")))));
        assert!(matches!(Gesture::read("^C"), Ok(None)));
        assert!(matches!(Gesture::read("^picture a-1"), Ok(Some(Gesture::Picture("a-1")))));
        assert!(Gesture::read("^picture ../a").is_err());
        assert!(Gesture::read("^size 0x3").is_err());
    }
}
