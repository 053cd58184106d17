//! A line of a `tty` record → what is typed, and what is waited for between.

use std::path::Path;

use super::report::Fault;
use crate::error::Error;

/// One step of typing a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key {
    /// These bytes are typed.
    Bytes(Vec<u8>),
    /// The screen must show this text before the next key.
    Wait(String),
    /// A file is given another name, for a program that looks for it.
    Move(String, String),
}

/// Keys by name, and what a terminal sends for them.
const NAMED: &[(&str, &str)] = &[
    ("tab", "\t"),
    ("enter", "\r"),
    ("esc", "\x1b"),
    ("up", "\x1b[A"),
    ("down", "\x1b[B"),
    ("right", "\x1b[C"),
    ("left", "\x1b[D"),
    ("home", "\x1b[H"),
    ("end", "\x1b[F"),
    ("backspace", "\x7f"),
    ("paste", "\x1b[200~"),
    ("/paste", "\x1b[201~"),
];

/// What is typed for a line: `^C` is that key alone; otherwise its text, with `<tab>` and the like for keys, and then Enter, unless it
/// ends with `<ctrl-c>` or another key with Ctrl.
pub fn keys(line: &str) -> Vec<Key> {
    if let Some(key) = line.strip_prefix('^').and_then(|key| key.chars().next().filter(|_| key.len() == 1)) {
        return vec![Key::Bytes(vec![control(key)])];
    }
    let (mut keys, mut bytes, mut rest) = (Vec::new(), Vec::new(), line);
    let mut enter = true;
    while let Some(c) = rest.chars().next() {
        let named = rest.strip_prefix('<').and_then(|rest| rest.split_once('>'));
        if let Some((key, behind)) = named.and_then(|(name, behind)| Some((key(name)?, behind))) {
            enter = !key.1;
            match key.0 {
                Key::Bytes(more) => bytes.extend(more),
                other => {
                    keys.push(Key::Bytes(std::mem::take(&mut bytes)));
                    keys.push(other);
                }
            }
            rest = behind;
            continue;
        }
        enter = true;
        bytes.extend(c.to_string().bytes());
        rest = &rest[c.len_utf8()..];
    }
    if enter {
        bytes.push(b'\r');
    }
    keys.push(Key::Bytes(bytes));
    keys.retain(|key| *key != Key::Bytes(Vec::new()));
    keys
}

/// The key of that name, and whether it is one with Ctrl.
fn key(name: &str) -> Option<(Key, bool)> {
    if let Some((_, sent)) = NAMED.iter().find(|(known, _)| *known == name) {
        return Some((Key::Bytes(sent.as_bytes().to_vec()), false));
    }
    if let Some(letter) = name.strip_prefix("ctrl-") {
        let letter = letter.chars().next().filter(|c| c.is_ascii_alphabetic() && letter.len() == 1)?;
        return Some((Key::Bytes(vec![control(letter)]), true));
    }
    if let Some(text) = name.strip_prefix("wait ") {
        return Some((Key::Wait(text.to_string()), false));
    }
    let (from, to) = name.strip_prefix("move ")?.split_once(' ')?;
    Some((Key::Move(from.to_string(), to.to_string()), false))
}

fn control(key: char) -> u8 {
    (key.to_ascii_uppercase() as u8) & 0x1f
}

/// Gives a file of the folder another name.
///
/// # Errors
/// It is not there.
pub fn move_file(folder: &Path, from: &str, to: &str) -> Result<(), Fault> {
    let moved = std::fs::rename(folder.join(from), folder.join(to));
    Ok(moved.map_err(|e| Error::io(format!("moving {from} to {to}"), &e))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str) -> Key {
        Key::Bytes(text.as_bytes().to_vec())
    }

    #[test]
    fn a_line_is_typed_with_its_keys() {
        assert_eq!(keys("SELECT 1;"), [bytes("SELECT 1;\r")]);
        assert_eq!(keys("^C"), [bytes("\x03")]);
        assert_eq!(keys("SEL<tab>ü<up>"), [bytes("SEL\tü\x1b[A\r")]);
        assert_eq!(keys("abc<ctrl-c>"), [bytes("abc\x03")]);
        assert_eq!(keys("a <ctrl-r>b"), [bytes("a \x12b\r")]);
        assert_eq!(keys("a < b AND b > c <nothing>"), [bytes("a < b AND b > c <nothing>\r")]);
        let moved = Key::Move("x".into(), "in/x".into());
        assert_eq!(
            keys("a<move x in/x><wait it failed>b"),
            [bytes("a"), moved, Key::Wait("it failed".into()), bytes("b\r")]
        );
    }
}
