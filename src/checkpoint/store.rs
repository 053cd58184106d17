//! A place that keeps the files of a checkpoint or of a manifest: written whole or not at all, and never over each
//! other.
//!
//! A store knows paths and bytes. It does not know which files there are or what is in them.

use std::fmt::Debug;
use std::io::{self, Write};

use crate::error::Result;

/// A place that keeps files. Paths are relative, with `/`.
pub trait Store: Debug + Send + Sync {
    /// Creates `path` with what `write` writes, whole or not at all and durably, together with its directories.
    ///
    /// # Errors
    /// Conflict when the file is there already; Io (a full disk, a failing `write`).
    fn put_new(&self, path: &str, write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>) -> Result<()>;
    /// The file's bytes; `None` when it isn't there.
    fn get(&self, path: &str) -> Result<Option<Vec<u8>>>;
    /// How long a file is, where that costs next to nothing to know.
    fn length(&self, _path: &str) -> Option<u64> {
        None
    }
    /// Names of files and folders in a folder, sorted, without temporary ones; empty when it isn't there.
    fn list(&self, folder: &str) -> Result<Vec<String>>;
    /// Removes a file; one that isn't there is no error.
    fn delete(&self, path: &str) -> Result<()>;
    /// Says that a file was left unfinished by a run that has ended: it counts for nothing, and the next
    /// [`Store::put_new`] of its name writes it anew. Until then it may still be there.
    fn discard(&self, path: &str) -> Result<()> {
        self.delete(path)
    }
    /// The path as a user knows it.
    fn describe(&self, path: &str) -> String;
}
