//! What the line editor is told: colours, brackets, hints and completions of the line that is being typed.

mod entries;
mod paint;
mod prompt;

use std::borrow::Cow;
use std::cell::Cell;
use std::sync::Arc;

use rustyline::completion::{Candidate as Shown, Completer};
use rustyline::config::{BellStyle, CompletionType};
use rustyline::error::ReadlineError;
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::Hinter;
use rustyline::history::SearchDirection;
use rustyline::validate::Validator;
use rustyline::{ColorMode, Config, Context, Editor, Helper};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::complete::{Candidate, Disk, Snapshot, complete};
use super::live::is_anything_typed;
use super::terminal::Screen;
pub(super) use entries::Entries;
use paint::Pair;
pub(super) use prompt::{Look, Told, prompt};

/// The line editor of the shell.
pub(super) type LineEditor = Editor<Assist, Entries>;

/// A longer statement is shown without colours, hints and completions: a paste costs what it is long, once.
const LONGEST: usize = 8 << 10;
const MOST_HISTORY: usize = 10_000;
/// A longer hint shows nothing that could be read, and costs its length with each key.
const LONGEST_HINT: usize = 500;
/// In a longer line what was typed is coloured with the end of a word, and not with each letter.
const LONG_LINE: usize = 1 << 10;
/// Where what a candidate is begins, which is shown dim: a blank that stands in no name. A plain one takes its place on the screen.
const DETAIL: &str = "\u{a0}";

/// Makes the editor.
///
/// # Errors
/// The terminal can't be used.
pub(super) fn open(look: Look) -> Result<LineEditor, ReadlineError> {
    let colours = if look.colours { ColorMode::Forced } else { ColorMode::Disabled };
    let config = Config::builder()
        .completion_type(CompletionType::List)
        .completion_show_all_if_ambiguous(true)
        .completion_prompt_limit(usize::MAX)
        .bell_style(BellStyle::None)
        .color_mode(colours)
        .build();
    let mut editor = Editor::with_history(config, Entries::new(MOST_HISTORY))?;
    editor.set_helper(Some(Assist::new(look)));
    Ok(editor)
}

/// Helps with one line; what there is and what stands above the line are set before each.
pub(super) struct Assist {
    snapshot: Arc<Snapshot>,
    /// What of the statement stands above the line, with its newlines.
    earlier: String,
    colours: bool,
    /// Too long to be looked at.
    long: bool,
    /// The columns of the prompt.
    prompt: usize,
    /// The bracket at the cursor, as it was found last.
    pair: Cell<Option<Pair>>,
}

impl Assist {
    fn new(look: Look) -> Self {
        let (snapshot, earlier) = (Arc::default(), String::new());
        Assist { snapshot, earlier, colours: look.colours, long: false, prompt: 0, pair: Cell::new(None) }
    }

    /// The snapshot that was set last.
    pub(super) fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.clone()
    }

    /// A line begins.
    pub(super) fn begin(&mut self, snapshot: Snapshot, earlier: &str) {
        self.snapshot = Arc::new(snapshot);
        self.long = earlier.len() > LONGEST;
        self.earlier.clear();
        if !self.long {
            self.earlier.push_str(earlier);
        }
        self.pair.set(None);
    }

    /// The prompt that stands in front of the line.
    pub(super) fn stand_behind(&mut self, prompt: &str) {
        self.prompt = prompt.width();
    }

    fn is_long(&self, line: &str) -> bool {
        self.long || self.earlier.len() + line.len() > LONGEST
    }
}

impl Helper for Assist {}

/// A line is a line: what it makes complete is the buffer's business.
impl Validator for Assist {}

impl Shown for Candidate {
    fn display(&self) -> &str {
        &self.display
    }

    fn replacement(&self) -> &str {
        &self.replacement
    }
}

impl Completer for Assist {
    type Candidate = Candidate;

    fn complete(&self, line: &str, pos: usize, context: &Context<'_>) -> rustyline::Result<(usize, Vec<Candidate>)> {
        if self.is_long(line) {
            return Ok((pos, Vec::new()));
        }
        let text = format!("{}{line}", self.earlier);
        let found = complete(&self.snapshot, &Disk, &text, self.earlier.len() + pos);
        // What begins above the line can't be replaced.
        let Some(start) = found.start.checked_sub(self.earlier.len()) else { return Ok((pos, Vec::new())) };
        let mut candidates = found.candidates;
        for candidate in candidates.iter_mut().filter(|candidate| !candidate.detail.is_empty()) {
            candidate.display.extend([if self.colours { DETAIL } else { " " }, &candidate.detail]);
        }
        let screen = Screen::now();
        let columns = screen.columns.unwrap_or(80).max(1);
        let hint = self.hint(line, pos, context).unwrap_or_default();
        let wrapped = wraps(self.prompt, &[line, &hint], columns);
        fit(&mut candidates, Screen { rows: screen.rows.map(|rows| rows.saturating_sub(2 * wrapped)), ..screen });
        if candidates.len() > 1 {
            spread(&mut candidates, wrapped, columns);
        }
        if let [only] = candidates.as_mut_slice()
            && only.whole
            && pos == line.len()
        {
            only.replacement.push(' ');
        }
        Ok((start, candidates))
    }
}

/// Leaves as many as fit on the screen, and how many more there are: of a longer list the editor would ask whether to show it, and
/// take no Ctrl-C for an answer.
fn fit(candidates: &mut Vec<Candidate>, screen: Screen) {
    let widest = candidates.iter().map(|candidate| width(&candidate.display) + 2).max().unwrap_or(1);
    let rows_of_one = widest.div_ceil(screen.columns.unwrap_or(80).max(1));
    let columns = (screen.columns.unwrap_or(80) / widest).max(1);
    // The line stands above and below the list.
    let rows = (screen.rows.unwrap_or(24).saturating_sub(4) / rows_of_one).max(1);
    let most = columns * rows;
    if candidates.len() > most {
        let common =
            candidates.iter().map(|candidate| candidate.replacement.as_str()).reduce(common).unwrap_or_default();
        let common = common.to_string();
        let more = candidates.drain(most - 1..).map(|candidate| candidate.stands_for).sum();
        candidates.push(Candidate::more(more, common));
    }
}

/// How many more rows than one a line takes behind a prompt of so many columns.
fn wraps(prompt: usize, texts: &[&str], columns: usize) -> usize {
    let (mut row, mut column) = (0, prompt);
    for c in texts.iter().flat_map(|text| text.chars()) {
        let width = c.width().unwrap_or(0);
        if c == '\n' || column + width > columns {
            (row, column) = (row + 1, 0);
        }
        column += width;
    }
    row + column / columns
}

/// Puts so many empty rows below a list: the editor erases as many when it draws a line of several rows anew. It lists column by
/// column.
fn spread(candidates: &mut Vec<Candidate>, rows: usize, columns: usize) {
    let widest = candidates.iter().map(|candidate| candidate.display.width() + 2).max().unwrap_or(1);
    let across = (columns / widest.min(columns)).max(1);
    let down = candidates.len().div_ceil(across);
    if rows == 0 || candidates.len() + across * (rows + 1) > usize::from(u16::MAX) {
        return;
    }
    let common = candidates.iter().map(|candidate| candidate.replacement.as_str()).reduce(common).unwrap_or_default();
    let empty = Candidate { display: String::new(), ..Candidate::more(0, common.to_string()) };
    let mut spread = Vec::with_capacity(across * (down + rows));
    let mut left = std::mem::take(candidates).into_iter();
    for _ in 0..across {
        let column: Vec<Candidate> = left.by_ref().take(down).collect();
        let missing = down + rows - column.len();
        spread.extend(column);
        spread.extend(std::iter::repeat_n(empty.clone(), missing));
    }
    *candidates = spread;
}

/// At most so many columns.
fn width(text: &str) -> usize {
    text.chars().map(|c| if c.is_ascii() { 1 } else { 2 }).sum()
}

/// What two texts begin with.
fn common<'a>(one: &'a str, other: &str) -> &'a str {
    let same: usize = one.chars().zip(other.chars()).take_while(|(a, b)| a == b).map(|(c, _)| c.len_utf8()).sum();
    &one[..same]
}

impl Hinter for Assist {
    type Hint = String;

    /// The rest of the line as it was typed last behind the same beginning. Without colours it could not be told from what is typed.
    fn hint(&self, line: &str, pos: usize, context: &Context<'_>) -> Option<String> {
        if !self.colours || line.trim().is_empty() || pos < line.len() || self.is_long(line) {
            return None;
        }
        let typed = format!("{}{line}", self.earlier);
        let newest = context.history().len().checked_sub(1)?;
        let found = context.history().starts_with(&typed, newest, SearchDirection::Reverse).ok()??;
        let rest = found.entry.get(typed.len()..)?;
        let fits = |line: &&str| !line.is_empty() && line.len() <= LONGEST_HINT && !line.contains(char::is_control);
        let line = rest.lines().next().filter(fits)?;
        Some(line.to_string())
    }
}

impl Highlighter for Assist {
    fn highlight<'l>(&self, line: &'l str, _: usize) -> Cow<'l, str> {
        match self.is_long(line) {
            true => Cow::Borrowed(line),
            false => Cow::Owned(paint::paint(&self.earlier, line, self.pair.get(), &self.snapshot)),
        }
    }

    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        Cow::Owned(format!("\x1b[2m{hint}\x1b[0m"))
    }

    fn highlight_candidate<'c>(&self, candidate: &'c str, _: CompletionType) -> Cow<'c, str> {
        match candidate.split_once(DETAIL) {
            Some((name, detail)) => Cow::Owned(format!("{name} \x1b[2m{detail}\x1b[0m")),
            None => Cow::Borrowed(candidate),
        }
    }

    fn highlight_char(&self, line: &str, pos: usize, kind: CmdKind) -> bool {
        let before = self.pair.take();
        if self.is_long(line) {
            return before.is_some();
        }
        if kind != CmdKind::ForcedRefresh {
            self.pair.set(paint::pair(line, pos));
        }
        match kind {
            CmdKind::MoveCursor => self.pair.get() != before,
            // A letter can make a name a keyword, and a quote all that follows a text. Of what comes faster than it is shown, such
            // as a paste, only the end is coloured.
            CmdKind::Other => {
                let in_word = line[..pos.min(line.len())].ends_with(|c: char| c.is_alphanumeric());
                !(is_anything_typed() || in_word && line.len() > LONG_LINE)
            }
            CmdKind::ForcedRefresh => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use rustyline::history::History;

    use super::*;

    fn assist(earlier: &str) -> Assist {
        let mut assist = Assist::new(Look { colours: true, unicode: true });
        assist.begin(Snapshot::default(), earlier);
        assist
    }

    #[test]
    fn hints_are_the_rest_of_the_line_as_it_was_typed_last() {
        let mut history = Entries::new(10);
        for entry in ["SELECT 1;", "SELECT a\nFROM t;", "SELECT 2;"] {
            history.add(entry).unwrap();
        }
        let hint = |earlier: &str, line: &str| assist(earlier).hint(line, line.len(), &Context::new(&history));
        assert_eq!(hint("", "SEL").as_deref(), Some("ECT 2;"));
        assert_eq!(hint("", "SELECT a"), None, "that line is whole");
        let mut long = Entries::new(10);
        long.add(&"x".repeat(LONGEST_HINT + 1)).unwrap();
        assert_eq!(assist("").hint("x", 1, &Context::new(&long)).map(|hint| hint.len()), Some(LONGEST_HINT));
        long.add(&"x".repeat(LONGEST_HINT + 2)).unwrap();
        assert_eq!(assist("").hint("x", 1, &Context::new(&long)), None);
        assert_eq!(hint("SELECT a\n", "FR").as_deref(), Some("OM t;"));
        assert_eq!(hint("", ""), None);
        assert_eq!(hint("", "SELECT 2;"), None);
        let plain = Assist::new(Look { colours: false, unicode: true });
        assert_eq!(plain.hint("SEL", 3, &Context::new(&history)), None);
    }

    #[test]
    fn a_word_that_alone_fits_is_followed_by_a_blank() {
        let history = Entries::new(10);
        let complete = |earlier: &str, line: &str, pos: usize| {
            let (start, found) = assist(earlier).complete(line, pos, &Context::new(&history)).unwrap();
            (start, found.into_iter().map(|found| found.replacement).collect::<Vec<_>>())
        };
        assert_eq!(complete("", "CRE", 3), (0, vec!["CREATE ".to_string()]));
        assert_eq!(complete("SELECT 1\n", "FR", 2), (0, vec!["FROM ".to_string()]));
        assert_eq!(complete("", "CRE ", 3), (0, vec!["CREATE".to_string()]));
        assert_eq!(complete("SELECT 'in\n", "x", 1).1, Vec::<String>::new());
    }

    #[test]
    fn a_list_is_no_longer_than_the_screen() {
        let candidate = |n: usize| Candidate {
            display: format!("table_{n:03}"),
            detail: String::new(),
            replacement: format!("table_{n:03}"),
            whole: true,
            stands_for: 1,
        };
        let mut candidates: Vec<Candidate> = (0..100).map(candidate).collect();
        fit(&mut candidates, Screen { columns: Some(40), rows: Some(10), unicode: true });
        // Three columns, six rows.
        assert_eq!(candidates.len(), 18);
        assert_eq!((candidates[17].display.as_str(), candidates[17].replacement.as_str()), ("… 83 more", "table_0"));
        fit(&mut candidates, Screen { columns: Some(40), rows: Some(10), unicode: true });
        assert_eq!(candidates.len(), 18);
        fit(&mut candidates, Screen { columns: Some(1), rows: Some(1), unicode: true });
        assert_eq!((candidates.len(), candidates[0].replacement.as_str()), (1, "table_0"));
    }

    #[test]
    fn below_a_list_stay_as_many_rows_as_the_line_is_wrapped() {
        assert_eq!(wraps(8, &["SELECT", ""], 40), 0);
        assert_eq!(wraps(8, &["SELECT", &"x".repeat(26)], 40), 1);
        assert_eq!(wraps(8, &["a\nb", ""], 40), 1);
        let candidate = |name: &str| Candidate { display: name.into(), ..Candidate::more(1, name.into()) };
        let mut candidates: Vec<Candidate> = ["aa", "ab", "ac"].map(candidate).into();
        spread(&mut candidates, 1, 9);
        let shown: Vec<&str> = candidates.iter().map(|candidate| candidate.display.as_str()).collect();
        // Two columns, of two rows and the empty one.
        assert_eq!(shown, ["aa", "ab", "", "ac", "", ""]);
        assert_eq!(candidates[2].replacement, "a");
    }

    #[test]
    fn what_is_long_is_not_looked_at() {
        let long = "x".repeat(1 << 20);
        let assist = assist("");
        assert!(!assist.highlight_char(&long, long.len(), CmdKind::Other));
        assert!(matches!(assist.highlight(&long, 0), Cow::Borrowed(_)));
        assert!(assist.complete(&long, long.len(), &Context::new(&Entries::new(1))).unwrap().1.is_empty());
        let above = super::tests::assist(&long);
        assert!(!above.highlight_char("x", 1, CmdKind::Other) && above.earlier.is_empty());
    }
}
