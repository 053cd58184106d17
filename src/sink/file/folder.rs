//! What a file sink needs of the folder that it writes to: [`super::local`] and [`super::remote`] give it.

use std::collections::BTreeSet;
use std::io::Write;

use crate::error::Result;

/// The folder of a sink. Paths are relative to it, with `/`.
pub(super) trait Folder: Send {
    /// Makes the folder where it is missing.
    ///
    /// # Errors
    /// InvalidInput: a file is in its place. Io.
    fn prepare(&self) -> Result<()>;

    /// Begins a part file, which nobody else writes.
    ///
    /// # Errors
    /// Io.
    fn create(&self, path: &str) -> Result<Box<dyn PartFile>>;

    /// Makes sure that finished files will be found where they are.
    ///
    /// # Errors
    /// Io.
    fn settle(&self, paths: &[String]) -> Result<()>;

    /// Removes a part file; one that isn't there is no error.
    ///
    /// # Errors
    /// Io.
    fn remove(&self, path: &str) -> Result<()>;

    /// Part files that are not named, in the order of their paths. Only folders of partitions are looked into: others were not
    /// made by a sink.
    ///
    /// # Errors
    /// Io.
    fn strays(&self, named: &BTreeSet<String>) -> Result<Vec<String>>;

    /// Something in the folder that a reader would take for data.
    ///
    /// # Errors
    /// Io.
    fn visible_entry(&self) -> Result<Option<String>>;

    /// Whether what a run has sent may arrive when it is dead already: its entry may then still appear, and name files that
    /// had better be there.
    fn has_latecomers(&self) -> bool;

    /// The path as a user knows it.
    fn shown(&self, path: &str) -> String;
}

/// A part file that is being written.
pub(super) trait PartFile: Write + Send {
    /// Bytes that wait in memory.
    fn buffered(&self) -> usize;

    /// Makes the content durable, now or when it is waited for.
    ///
    /// # Errors
    /// Io.
    fn finish(self: Box<Self>) -> Result<Box<dyn Finished>>;
}

/// A part file that has all its bytes.
pub(super) trait Finished: Send {
    /// Waits until they are durable.
    ///
    /// # Errors
    /// Io.
    fn wait(self: Box<Self>) -> Result<()>;
}
