//! Where lines that were typed are kept: `LEVADA_HISTORY`, or `levada/history` in the XDG state directory.
//!
//! A history that can't be read or written costs nothing but itself.

use std::path::PathBuf;
use std::thread::JoinHandle;

use rustyline::config::Config;
use rustyline::error::ReadlineError;
use rustyline::history::{FileHistory, History};

use super::editor::LineEditor;
use super::output::say;
use crate::error::Error;

/// The file holds no more.
const MOST_KEPT: usize = 10_000;

/// A larger file is read beside the first prompt, which does not wait for it.
const LARGE: u64 = 2 << 20;

/// The file, and whether it still works.
pub(super) struct HistoryFile {
    path: Option<PathBuf>,
    kept: Kept,
}

/// What is in it.
enum Kept {
    Known(FileHistory),
    /// It is being read.
    Coming(JoinHandle<(FileHistory, Result<(), ReadlineError>)>),
}

impl HistoryFile {
    /// Loads what is there.
    pub(super) fn open(editor: &mut LineEditor) -> Self {
        let path = kept_in();
        if let Some(folder) = path.as_ref().and_then(|path| path.parent()) {
            // If this fails, so does the first line's saving, which says so.
            _ = std::fs::create_dir_all(folder);
        }
        let size = path.as_ref().and_then(|path| path.metadata().ok()).map(|found| found.len());
        let load = {
            let path = path.clone().filter(|_| size.is_some());
            move || {
                let config = Config::builder().max_history_size(MOST_KEPT).map(rustyline::config::Builder::build);
                let mut kept = FileHistory::with_config(&config.unwrap_or_default());
                let loaded = path.map_or(Ok(()), |path| kept.load(&path));
                (kept, loaded)
            }
        };
        let thread = std::thread::Builder::new().name("history".to_string());
        let beside = size.filter(|size| *size > LARGE).and_then(|_| thread.spawn(load.clone()).ok());
        let mut history = HistoryFile { path, kept: Kept::Known(FileHistory::new()) };
        match beside {
            Some(coming) => history.kept = Kept::Coming(coming),
            None => history.take(editor, load()),
        }
        history
    }

    /// Hands the editor what was read meanwhile. `wait`: until it is.
    pub(super) fn arrive(&mut self, editor: &mut LineEditor, wait: bool) {
        let Kept::Coming(coming) = &self.kept else { return };
        if !wait && !coming.is_finished() {
            return;
        }
        if let Kept::Coming(coming) = std::mem::replace(&mut self.kept, Kept::Known(FileHistory::new())) {
            match coming.join() {
                Ok(loaded) => self.take(editor, loaded),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
    }

    fn take(&mut self, editor: &mut LineEditor, (kept, loaded): (FileHistory, Result<(), ReadlineError>)) {
        editor.history_mut().fill(kept.iter().cloned());
        self.kept = Kept::Known(kept);
        if let Err(error) = loaded {
            self.give_up(&error.to_string());
        }
    }

    /// Adds one entry, which may span lines.
    pub(super) fn add(&mut self, editor: &mut LineEditor, entry: &str) {
        // Behind those that were there before.
        self.arrive(editor, true);
        let saved = editor.history_mut().add(entry).and_then(|_| match (&self.path, &mut self.kept) {
            (Some(path), Kept::Known(kept)) => kept.add(entry).and_then(|_| kept.append(path)),
            _ => Ok(()),
        });
        if let Err(error) = saved {
            self.give_up(&error.to_string());
        }
    }

    fn give_up(&mut self, reason: &str) {
        if let Some(path) = self.path.take() {
            say(&format!("history is not kept: {}: {reason}", path.display()));
        }
    }
}

/// Every entry that is kept, the oldest first.
///
/// # Errors
/// The file can't be read.
pub(super) fn entries() -> crate::error::Result<Vec<String>> {
    let Some(file) = kept_in().filter(|path| path.exists()) else { return Ok(Vec::new()) };
    let failed = |error: ReadlineError| {
        Error::io(format!("can't read {}", file.display()), &std::io::Error::other(error.to_string()))
    };
    let config = rustyline::Config::builder().max_history_size(usize::MAX).map_err(failed)?.build();
    let mut history = FileHistory::with_config(&config);
    history.load(&file).map_err(failed)?;
    Ok(history.iter().cloned().collect())
}

fn kept_in() -> Option<PathBuf> {
    path(|name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from))
}

fn path(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    if let Some(path) = variable("LEVADA_HISTORY") {
        return Some(path);
    }
    let state = variable("XDG_STATE_HOME").filter(|path| path.is_absolute());
    let state = state.or_else(|| variable("HOME").map(|home| home.join(".local/state")))?;
    Some(state.join("levada/history"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(variables: &[(&str, &str)]) -> Option<PathBuf> {
        path(|name| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| PathBuf::from(value)))
    }

    #[test]
    fn the_most_special_place_wins() {
        let home = ("HOME", "/home/a");
        assert_eq!(with(&[home]), Some("/home/a/.local/state/levada/history".into()));
        assert_eq!(with(&[home, ("XDG_STATE_HOME", "/state")]), Some("/state/levada/history".into()));
        assert_eq!(with(&[home, ("XDG_STATE_HOME", "relative")]), Some("/home/a/.local/state/levada/history".into()));
        assert_eq!(with(&[home, ("LEVADA_HISTORY", "h.txt")]), Some("h.txt".into()));
        assert_eq!(with(&[]), None);
    }
}
