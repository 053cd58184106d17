//! Completion: a snapshot of what there is, the text, and the place of the cursor → what may stand there.
//!
//! ```text
//! text, cursor ─around→ tokens before and behind ─grammar→ words and slots that may come next ─found→ candidates
//!                                                              │
//!               a query: its clause (query) and the tables on both sides of the cursor (scope)
//! ```
//! Nothing here asks a session or waits; of the outside world only the names in a folder are read ([`Files`]).

mod around;
mod blocks;
mod clauses;
mod commands;
mod files;
mod found;
mod grammar;
mod lists;
mod parts;
mod query;
mod scope;
mod slots;
mod snapshot;
mod statements;
#[cfg(test)]
mod tests;

pub(super) use commands::Shape;
pub(super) use files::{Disk, Files};
pub(super) use grammar::statement_words;
pub(super) use query::is_query_word;
pub(super) use snapshot::Snapshot;

use around::Around;
use found::Found;

/// One thing that may stand at the cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Candidate {
    /// As a list shows it.
    pub(super) display: String,
    /// What it is, shown behind it; may be empty.
    pub(super) detail: String,
    /// What takes the place of what was typed.
    pub(super) replacement: String,
    /// Nothing belongs to it: a blank may follow.
    pub(super) whole: bool,
    /// How many it stands for: more than one where it only says how many more there are.
    pub(super) stands_for: usize,
}

impl Candidate {
    /// In place of so many that are not listed; `common` is what they begin with.
    pub(super) fn more(stands_for: usize, common: String) -> Self {
        let display = format!("… {stands_for} more");
        Candidate { display, detail: String::new(), replacement: common, whole: false, stands_for }
    }
}

/// What may stand at the cursor.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Completion {
    /// The byte of the text where what was typed begins.
    pub(super) start: usize,
    pub(super) candidates: Vec<Candidate>,
    /// How many names were looked at.
    pub(super) examined: usize,
}

/// Completes the word that ends at byte `at` of `text`, which begins with the first line of a statement or command.
pub(super) fn complete(snapshot: &Snapshot, files: &dyn Files, text: &str, at: usize) -> Completion {
    if !text.is_char_boundary(at) {
        return Completion::default();
    }
    if let Some(found) = commands::complete(snapshot, files, text, at) {
        return found;
    }
    let Some(around) = Around::new(text, at) else { return Completion { start: at, ..Completion::default() } };
    let mut found = Found::new(snapshot, files, &around);
    if commands::is_variable(text, around.start) && found.variables("") {
        return found.finish();
    }
    let expected = grammar::statements().expected(&around.before);
    slots::offer(&mut found, &around, &expected);
    found.finish()
}
