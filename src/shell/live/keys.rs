//! Bytes from the terminal → keys → what they do. The table is also the page of help.

/// A key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Char(char),
    Ctrl(char),
    Enter,
    Escape,
    Backspace,
    Up,
    Down,
    Left,
    Right,
    PageUp,
    PageDown,
    Home,
    End,
}

/// What a key does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Leave,
    Stop,
    Suspend,
    Pause,
    Step,
    FullScreen,
    NextPage,
    Faster,
    Slower,
    Up,
    Down,
    PageUp,
    PageDown,
    First,
    Last,
    Left,
    Right,
    Detail,
    Filter,
    NextRow,
    PreviousRow,
    /// By this column, counted from 0.
    SortBy(usize),
    SortRight,
    SortLeft,
    Reverse,
    Save,
    Copy,
    Metrics,
    Explain,
    Help,
}

impl Action {
    /// Whether it means something for a result that is no query's.
    pub(super) fn is_of_results(self) -> bool {
        !matches!(self, Action::Step | Action::Metrics | Action::Explain)
    }
}

/// Keys that do the same.
struct Entry {
    keys: &'static [Key],
    action: Action,
    /// As the page of help writes them, and what they do.
    shown: &'static str,
    help: &'static str,
}

macro_rules! entry {
    ($action:ident, $shown:literal, $help:literal, $($key:expr),+) => {
        Entry { keys: &[$($key),+], action: Action::$action, shown: $shown, help: $help }
    };
}

use Key::{Char, Ctrl};

const TABLE: &[Entry] = &[
    entry!(Leave, "q Esc b", "leave; a query with a name runs on", Char('q'), Key::Escape, Char('b')),
    entry!(Stop, "Ctrl-C", "stop the query gracefully; twice within 2 s: at once", Ctrl('c')),
    entry!(Suspend, "Ctrl-Z", "suspend the shell", Ctrl('z')),
    entry!(Pause, "p Space", "hold the picture; the query runs on", Char('p'), Char(' ')),
    entry!(Step, "s", "run one batch, of a query that is stepped", Char('s')),
    entry!(FullScreen, "f", "the whole screen, or as much as is needed", Char('f')),
    entry!(NextPage, "c", "table, chart, changelog, batches", Char('c')),
    entry!(Faster, "+", "paint more often", Char('+'), Char('=')),
    entry!(Slower, "-", "paint less often", Char('-')),
    entry!(Up, "↑ k", "the row above", Key::Up, Char('k')),
    entry!(Down, "↓ j", "the row below", Key::Down, Char('j')),
    entry!(PageUp, "PgUp", "a page up", Key::PageUp, Ctrl('b')),
    entry!(PageDown, "PgDn", "a page down", Key::PageDown, Ctrl('f')),
    entry!(First, "g Home", "the first row", Char('g'), Key::Home),
    entry!(Last, "G End", "the last row; follow what comes", Char('G'), Key::End),
    entry!(Left, "←", "columns to the left", Key::Left),
    entry!(Right, "→", "columns to the right", Key::Right),
    entry!(Detail, "Enter o", "the whole row", Key::Enter, Char('o')),
    entry!(Filter, "/", "only rows that hold a text", Char('/')),
    entry!(NextRow, "n", "the next of them", Char('n')),
    entry!(PreviousRow, "N", "the one before", Char('N')),
    entry!(SortRight, ">", "sort by the next column", Char('>')),
    entry!(SortLeft, "<", "sort by the column before; before the first: as it was", Char('<')),
    entry!(Reverse, "r", "sort the other way round", Char('r')),
    entry!(Save, "w", "write the table to a file: .csv .tsv .json .jsonl .md .txt .parquet", Char('w')),
    entry!(Copy, "y", "copy the row, where the terminal can", Char('y')),
    entry!(Metrics, "m", "the line of rates, on or off", Char('m')),
    entry!(Explain, "e", "the plan, and the rows of its operators", Char('e')),
    entry!(Help, "?", "this page", Char('?')),
];

/// What a key does, if anything.
pub(super) fn action(key: Key) -> Option<Action> {
    if let Char(digit @ '1'..='9') = key {
        return Some(Action::SortBy(digit as usize - '1' as usize));
    }
    TABLE.iter().find(|entry| entry.keys.contains(&key)).map(|entry| entry.action)
}

/// The page of help. `repeats`: for a statement that is run again and again.
pub(super) fn help(repeats: bool) -> Vec<String> {
    let mut lines = Vec::new();
    for entry in TABLE.iter().filter(|entry| !repeats || entry.action.is_of_results()) {
        if entry.action == Action::SortRight {
            lines.push(("1-9", "sort by that column; again: the other way round"));
        }
        lines.push(match entry.action {
            Action::Leave if repeats => (entry.shown, "leave, and run it no more"),
            Action::Stop if repeats => (entry.shown, "the same"),
            Action::Pause if repeats => (entry.shown, "hold the picture; it is run on"),
            Action::NextPage if repeats => (entry.shown, "table, chart, changelog"),
            _ => (entry.shown, entry.help),
        });
    }
    lines.into_iter().map(|(keys, help)| super::line::padded(keys, 9, false) + help).collect()
}

/// Reads keys from bytes as they come; what an escape sequence means is known only at its end.
#[derive(Debug, Default)]
pub(super) struct KeyReader {
    pending: Vec<u8>,
}

/// How far a key reaches.
enum Read {
    /// A key, or a sequence that means nothing to us, and its length.
    Whole(Option<Key>, usize),
    /// More bytes may belong to it.
    Unfinished,
}

/// A sequence that is longer is none.
const LONGEST: usize = 4096;

impl KeyReader {
    /// The keys that are whole.
    pub(super) fn read(&mut self, bytes: &[u8]) -> Vec<Key> {
        self.pending.extend_from_slice(bytes);
        let mut keys = Vec::new();
        while !self.pending.is_empty() {
            match one(&self.pending) {
                Read::Whole(key, length) => {
                    self.pending.drain(..length);
                    keys.extend(key);
                }
                Read::Unfinished if self.pending.len() > LONGEST => self.pending.clear(),
                Read::Unfinished => break,
            }
        }
        keys
    }

    /// Whether an escape waits for what may follow it.
    pub(super) fn waits(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Nothing has followed: an escape alone is that key.
    pub(super) fn nothing_more(&mut self) -> Option<Key> {
        let alone = self.pending == [0x1b];
        self.pending.clear();
        alone.then_some(Key::Escape)
    }
}

fn one(bytes: &[u8]) -> Read {
    match bytes[0] {
        0x1b => escape(bytes),
        b'\r' | b'\n' => Read::Whole(Some(Key::Enter), 1),
        0x7f | 0x08 => Read::Whole(Some(Key::Backspace), 1),
        b'\t' => Read::Whole(Some(Key::Char('\t')), 1),
        control @ 1..=26 => Read::Whole(Some(Ctrl((control + b'a' - 1) as char)), 1),
        0..=0x1f => Read::Whole(None, 1),
        _ => character(bytes),
    }
}

fn character(bytes: &[u8]) -> Read {
    let length = match bytes[0] {
        0..=0x7f => 1,
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf7 => 4,
        _ => return Read::Whole(None, 1),
    };
    let Some(bytes) = bytes.get(..length) else { return Read::Unfinished };
    match std::str::from_utf8(bytes) {
        Ok(text) => Read::Whole(text.chars().next().map(Char), length),
        Err(_) => Read::Whole(None, 1),
    }
}

fn escape(bytes: &[u8]) -> Read {
    match bytes.get(1) {
        None => Read::Unfinished,
        Some(b'[') => control_sequence(bytes),
        Some(b'O') => match bytes.get(2) {
            None => Read::Unfinished,
            Some(last) => Read::Whole(named(*last), 3),
        },
        // A late answer of the terminal, up to its end: it is no key.
        Some(b']' | b'P' | b'^' | b'_') => text_sequence(bytes),
        // Alt and a key.
        Some(0x1b) => Read::Whole(Some(Key::Escape), 1),
        Some(_) => Read::Whole(None, 2),
    }
}

fn control_sequence(bytes: &[u8]) -> Read {
    let Some(end) = bytes[2..].iter().position(|byte| (0x40..=0x7e).contains(byte)) else {
        return Read::Unfinished;
    };
    let (parameters, last) = (&bytes[2..2 + end], bytes[2 + end]);
    let key = match (parameters, last) {
        (b"1" | b"7", b'~') => Some(Key::Home),
        (b"4" | b"8", b'~') => Some(Key::End),
        (b"5", b'~') => Some(Key::PageUp),
        (b"6", b'~') => Some(Key::PageDown),
        (_, b'A'..=b'H') => named(last),
        _ => None,
    };
    Read::Whole(key, end + 3)
}

fn text_sequence(bytes: &[u8]) -> Read {
    let bell = bytes.iter().position(|byte| *byte == 0x07).map(|at| at + 1);
    let string_end = bytes.windows(2).skip(1).position(|pair| pair == b"\x1b\\").map(|at| at + 3);
    match [bell, string_end].into_iter().flatten().min() {
        Some(length) => Read::Whole(None, length),
        None => Read::Unfinished,
    }
}

fn named(last: u8) -> Option<Key> {
    Some(match last {
        b'A' => Key::Up,
        b'B' => Key::Down,
        b'C' => Key::Right,
        b'D' => Key::Left,
        b'H' => Key::Home,
        b'F' => Key::End,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_however_their_bytes_are_cut() {
        let bytes = "q\x1b[A\x1b[5~\x1bOF\r\x03é日\x7f\x1b[1;5C".as_bytes();
        let keys = [
            Char('q'),
            Key::Up,
            Key::PageUp,
            Key::End,
            Key::Enter,
            Ctrl('c'),
            Char('é'),
            Char('日'),
            Key::Backspace,
            Key::Right,
        ];
        assert_eq!(KeyReader::default().read(bytes), keys);
        let mut reader = KeyReader::default();
        let read: Vec<Key> = bytes.iter().flat_map(|byte| reader.read(&[*byte])).collect();
        assert_eq!(read, keys);
    }

    #[test]
    fn an_escape_alone_is_a_key_when_nothing_follows() {
        let mut reader = KeyReader::default();
        assert_eq!(reader.read(b"\x1b"), []);
        assert!(reader.waits());
        assert_eq!(reader.nothing_more(), Some(Key::Escape));
        assert_eq!(reader.read(b"\x1b\x1b"), [Key::Escape]);
        assert_eq!((reader.nothing_more(), reader.waits()), (Some(Key::Escape), false));
    }

    #[test]
    fn what_terminals_answer_is_no_key() {
        let answers = b"\x1b]11;rgb:0000/0000/0000\x1b\\\x1b]0;q\x07\x1b[?2026;2$y\x1bP1$rq\x1b\\\x1b[?62;4c\x00\xffx";
        assert_eq!(KeyReader::default().read(answers), [Char('x')]);
        // One that never ends is let go of.
        let mut reader = KeyReader::default();
        assert_eq!(reader.read(&[b"\x1b]".as_slice(), &[b'q'; LONGEST]].concat()), []);
        assert_eq!(reader.read(b"x"), [Char('x')]);
    }

    #[test]
    fn no_key_does_two_things() {
        let keys: Vec<Key> = TABLE.iter().flat_map(|entry| entry.keys).copied().collect();
        for (at, key) in keys.iter().enumerate() {
            assert!(!keys[..at].contains(key), "{key:?}");
        }
        assert_eq!(action(Char('3')), Some(Action::SortBy(2)));
        assert_eq!(action(Char('0')), None);
        assert_eq!(help(false).len(), TABLE.len() + 1);
        assert_eq!(help(true).len(), TABLE.len() - 2);
    }
}
