//! The candidates that were found: those that begin as what was typed, in the case in which it was typed.

use super::around::Around;
use super::files::Files;
use super::snapshot::{Named, Names, Snapshot};
use super::{Candidate, Completion};
use crate::parser::{RESERVED, TokenKind};

/// A list of more names says how many more there are.
const MOST_NAMES: usize = 1_000;
/// Columns of tables that a query does not name are looked through so far.
const MOST_EXAMINED: usize = 10_000;
/// The editor can't list more than 65,535 of all kinds.
const MOST_CANDIDATES: usize = 50_000;

/// Collects candidates.
pub(super) struct Found<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) files: &'a dyn Files,
    typed: &'a str,
    kind: TokenKind,
    start: usize,
    /// What was typed, without a quote, in lower case.
    prefix: String,
    /// Keywords are written in lower case.
    lower: bool,
    candidates: Vec<Candidate>,
    examined: usize,
}

impl<'a> Found<'a> {
    pub(super) fn new(snapshot: &'a Snapshot, files: &'a dyn Files, around: &Around<'a>) -> Self {
        let is_lower = |text: &str| !text.contains(|c: char| c.is_uppercase());
        let lower = match around.kind == TokenKind::Word && !around.typed.is_empty() {
            true => is_lower(around.typed),
            // As the statement's first word is, which is always a keyword.
            false => around.before.first().is_some_and(|tok| is_lower(tok.text)),
        };
        Found {
            snapshot,
            files,
            typed: around.typed,
            kind: around.kind,
            start: around.start,
            prefix: around.bare().to_lowercase(),
            lower,
            candidates: Vec::new(),
            examined: 0,
        }
    }

    pub(super) fn finish(self) -> Completion {
        let mut candidates: Vec<Candidate> = Vec::with_capacity(self.candidates.len());
        let mut seen = std::collections::HashSet::new();
        let left = self.candidates.len().saturating_sub(MOST_CANDIDATES);
        for candidate in self.candidates.into_iter().take(MOST_CANDIDATES) {
            if seen.insert(candidate.replacement.clone()) {
                candidates.push(candidate);
            }
        }
        if left > 0 {
            candidates.push(Candidate::more(left, self.typed.to_string()));
        }
        Completion { start: self.start, candidates, examined: self.examined }
    }

    /// Whether nothing was typed yet.
    pub(super) fn nothing_typed(&self) -> bool {
        self.typed.is_empty()
    }

    /// A keyword.
    pub(super) fn word(&mut self, word: &str) {
        if self.kind == TokenKind::Word && self.begins(word) {
            let word = if self.lower { word.to_ascii_lowercase() } else { word.to_string() };
            self.push(word.clone(), "", word, true);
        }
    }

    pub(super) fn words(&mut self, words: &[&str]) {
        words.iter().for_each(|word| self.word(word));
    }

    /// Something that is written as it is; `detail` says what it is.
    pub(super) fn plain(&mut self, text: &str, detail: &str) {
        if self.kind == TokenKind::Word && self.begins(text) {
            self.push(text.trim_end().to_string(), detail, text.to_string(), false);
        }
    }

    /// A word that is written as it is, and is whole.
    pub(super) fn entry(&mut self, text: &str, detail: &str) {
        if self.kind == TokenKind::Word && self.begins(text) {
            self.push(text.to_string(), detail, text.to_string(), true);
        }
    }

    /// A name, in quotes where it needs them, with what is written behind it.
    pub(super) fn name(&mut self, name: &str, behind: &str, detail: &str) {
        if matches!(self.kind, TokenKind::Word | TokenKind::QuotedName) && self.begins(name) {
            let written = self.written(name);
            self.push(name.to_string(), detail, written + behind, behind.is_empty());
        }
    }

    /// A string in quotes.
    pub(super) fn string(&mut self, text: &str, detail: &str) {
        let quoted = format!("'{}'", text.replace('\'', "''"));
        if (self.kind == TokenKind::Text && self.begins(text)) || self.nothing_typed() {
            self.push(quoted.clone(), detail, quoted, true);
        }
    }

    /// A function by its own spelling, with its signature.
    pub(super) fn call(&mut self, name: &str, open: &str, signature: &str) {
        if self.kind == TokenKind::Word && self.begins(name) {
            let is_keyword = name.contains(|c: char| c.is_uppercase());
            let name = if is_keyword && self.lower { name.to_ascii_lowercase() } else { name.to_string() };
            self.push(signature.to_string(), "", name + open, false);
        }
    }

    /// All names of one kind.
    pub(super) fn names(&mut self, names: &Names) {
        let all = names.beginning(&self.prefix);
        // Where there are more, the first ones stand for all, and the last one keeps the common beginning common.
        let shown = all.len().min(MOST_NAMES);
        for Named { name, detail, .. } in &all[..shown] {
            self.name(name, "", detail);
        }
        if let (true, Some(first), Some(last)) = (all.len() > shown, all.first(), all.last()) {
            let common =
                first.name.chars().zip(last.name.chars()).take_while(|(a, b)| a == b).map(|(c, _)| c).collect();
            self.candidates.push(Candidate::more(all.len() - shown, common));
        }
    }

    /// The shell's variables behind what is written before each; whether one of them begins so.
    pub(super) fn variables(&mut self, before: &str) -> bool {
        let count = self.candidates.len();
        let snapshot = self.snapshot;
        snapshot.variables.iter().for_each(|name| self.entry(&format!("{before}{name}"), "variable"));
        self.candidates.len() > count
    }

    /// Streams, tables and views.
    pub(super) fn relations(&mut self) {
        let snapshot = self.snapshot;
        [&snapshot.streams, &snapshot.tables, &snapshot.views].into_iter().for_each(|names| self.names(names));
    }

    /// Columns of whatever has some, once something is typed; of very many relations, those of the first.
    pub(super) fn all_columns(&mut self) {
        if self.prefix.is_empty() {
            return;
        }
        let snapshot = self.snapshot;
        let all = [&snapshot.streams, &snapshot.tables, &snapshot.views];
        for relation in all.into_iter().flat_map(|names| names.beginning("")) {
            for field in relation.schema.iter().flat_map(|schema| schema.fields()) {
                if self.examined > MOST_EXAMINED {
                    return;
                }
                self.name(field.name(), "", &relation.name);
            }
        }
    }

    /// Functions; `called`: a parenthesis stands behind the cursor.
    pub(super) fn functions(&mut self, called: bool) {
        if self.kind != TokenKind::Word || self.prefix.is_empty() {
            return;
        }
        let upper = !self.lower && self.typed.len() > 1;
        let (functions, prefix) = (self.snapshot.functions.clone(), self.prefix.clone());
        let from = functions.partition_point(|function| function.name < prefix);
        for function in functions[from..].iter().take_while(|function| function.name.starts_with(&prefix)) {
            self.examined += 1;
            let display = function.signature.clone().unwrap_or_else(|| format!("{}(…)", function.name));
            let name = if upper { function.name.to_uppercase() } else { function.name.clone() };
            self.push(display, "", if called { name } else { name + "(" }, false);
        }
    }

    /// The files and folders, or folders alone, that a path in quotes, or without (`quoted` is false), may name.
    pub(super) fn paths(&mut self, quoted: bool, folders: bool) {
        if quoted && !(self.kind == TokenKind::Text || self.typed.is_empty()) {
            return;
        }
        let typed = self.typed.strip_prefix('\'').unwrap_or(self.typed).replace("''", "'");
        if typed.contains("://") {
            return;
        }
        let quote = quoted || self.typed.starts_with('\'');
        let (folder, begun) = typed.rsplit_once('/').map_or(("", typed.as_str()), |(folder, begun)| (folder, begun));
        let folder = if typed.starts_with('/') && folder.is_empty() { "/" } else { folder };
        for entry in self.files.list(folder) {
            self.examined += 1;
            let hidden = entry.name.starts_with('.') && !begun.starts_with('.');
            if hidden || !entry.name.starts_with(begun) || (folders && !entry.is_folder) {
                continue;
            }
            let shown = if entry.is_folder { format!("{}/", entry.name) } else { entry.name.clone() };
            let path = format!("{}{shown}", &typed[..typed.len() - begun.len()]);
            let replacement = match quote || path.contains(char::is_whitespace) || path.contains('\'') {
                false => path,
                true => format!("'{}{}", path.replace('\'', "''"), if entry.is_folder { "" } else { "'" }),
            };
            self.push(shown, "", replacement, !entry.is_folder);
        }
    }

    fn begins(&mut self, text: &str) -> bool {
        self.examined += 1;
        // Most names begin otherwise, and are told by their first letter.
        let first = text.chars().next().map(|c| c.to_ascii_lowercase());
        let differs = first.is_some_and(|c| c.is_ascii()) && first != self.prefix.chars().next();
        self.prefix.is_empty() || (!differs && text.to_lowercase().starts_with(&self.prefix))
    }

    /// A name as it is written here.
    fn written(&self, name: &str) -> String {
        if self.kind == TokenKind::QuotedName {
            let quote = self.typed.get(..1).unwrap_or("\"");
            return format!("{quote}{}{quote}", name.replace(quote, &quote.repeat(2)));
        }
        written(name)
    }

    /// What could move the cursor is neither listed nor filled in.
    fn push(&mut self, display: String, detail: &str, replacement: String, whole: bool) {
        if display.contains(char::is_control) || replacement.contains(char::is_control) {
            return;
        }
        let detail = detail.replace(char::is_control, " ");
        self.candidates.push(Candidate { display, detail, replacement, whole, stands_for: 1 });
    }
}

/// A name as SQL has it: in quotes unless it is one without.
pub(super) fn written(name: &str) -> String {
    let mut chars = name.chars();
    let plain = chars.next().is_some_and(|c| c.is_ascii_lowercase() || c == '_')
        && chars.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        && !RESERVED.iter().any(|word| word.eq_ignore_ascii_case(name));
    if plain { name.to_string() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}
