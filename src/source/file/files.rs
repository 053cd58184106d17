//! What a file source needs of where its files are: [`super::local`] and [`super::remote`] give it.

use std::fmt::Debug;
use std::io::Read;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;

use crate::checkpoint::Store;
use crate::error::{Error, Result};

/// A file as it was listed.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct FileEntry {
    /// Relative to the place's root, with `/`.
    pub path: String,
    /// Nanoseconds since 1970.
    pub mtime: i64,
    /// Bytes.
    pub size: u64,
    /// What an object store changes with the object; a local file has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    /// The checksum of its bytes, where the manifest of a file sink promises one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crc32c: Option<u32>,
}

/// By what a change of a file is seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    pub size: u64,
    pub mtime: i64,
    pub etag: Option<String>,
}

impl FileEntry {
    pub fn version(&self) -> Version {
        Version { size: self.size, mtime: self.mtime, etag: self.etag.clone() }
    }

    /// Fails when the file isn't what `was` says.
    ///
    /// # Errors
    /// Conflict, naming the file as `shown`.
    pub fn check(&self, was: &Version, shown: &str) -> Result<()> {
        let same = match (&self.etag, &was.etag) {
            // Times are told finer by a list than by the object itself.
            (Some(now), Some(was)) => now == was,
            _ => self.mtime == was.mtime,
        };
        if same && self.size == was.size {
            return Ok(());
        }
        let how = match self.size == was.size {
            false => format!("it had {} bytes, now {}", was.size, self.size),
            true if self.etag.is_some() => "it was written anew".to_string(),
            true => "its modification time differs".to_string(),
        };
        Err(Error::conflict(format!("{shown} changed after it was taken: {how}; write new data to new files")))
    }
}

/// A file that was listed and is no more. Worth another try: a mount may be away.
pub fn gone(entry: &FileEntry, shown: &str) -> Error {
    Error::Io {
        context: format!("read {shown}"),
        message: format!(
            "the file was listed with {} bytes and is gone; a file must stay until the batch that reads it is committed",
            entry.size
        ),
        kind: std::io::ErrorKind::NotFound,
        transient: true,
    }
}

/// What stands at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Node {
    Directory,
    File(FileEntry),
    /// A pipe, a socket, a device.
    Other,
}

/// What is neither can't be read again, or has no end.
pub fn neither(shown: &str) -> Error {
    Error::invalid(format!("{shown} is no regular file or folder"))
        .help("connector 'stdin' reads a pipe; a name that begins with . is passed over in a folder")
}

/// A place's files. Paths are relative to its root, with `/`; the root itself is the empty path.
pub trait Files: Debug + Send + Sync {
    /// What stands at a path now.
    ///
    /// # Errors
    /// Io.
    fn look(&self, path: &str) -> Result<Option<Node>>;

    /// [`Files::look`] for many files at once: those that are there.
    ///
    /// # Errors
    /// Io.
    fn look_all(&self, paths: &[String]) -> Result<Vec<Option<FileEntry>>>;

    /// One look around. What it has told may be told again from memory.
    fn tree(&self) -> Box<dyn Tree + '_>;

    /// Opens a file that is as it was listed.
    ///
    /// # Errors
    /// Io: it is gone, or can't be opened. Conflict: it has changed.
    fn open(&self, entry: &FileEntry) -> Result<Arc<dyn OpenFile>>;

    /// The path by which a user knows a file.
    fn shown(&self, path: &str) -> String;

    /// A directory as a store, for the manifest in it.
    fn store(&self, directory: &str) -> Arc<dyn Store>;

    /// Files are cut into parts of this size; `None`: they can only be read from front to end.
    fn part(&self) -> Option<u64>;
}

/// What is there, as one look finds it.
pub trait Tree {
    /// All below a directory will be asked for.
    ///
    /// # Errors
    /// Io.
    fn expect_all(&mut self, directory: &str) -> Result<()>;

    /// What stands at a path.
    ///
    /// # Errors
    /// Io.
    fn look(&mut self, path: &str) -> Result<Option<Node>>;

    /// The names in a directory; none when it is gone, unless it is the root.
    ///
    /// # Errors
    /// Io. InvalidInput: a name that isn't UTF-8.
    fn names(&mut self, directory: &str) -> Result<Vec<String>>;

    /// By what a directory is known again under another name; `None` where it can have only one.
    ///
    /// # Errors
    /// Io.
    fn identity(&mut self, _directory: &str) -> Result<Option<(u64, u64)>> {
        Ok(None)
    }
}

/// A file that is read. Every read fails when the file isn't what was listed any more.
pub trait OpenFile: Send + Sync {
    /// Fills `into` with the bytes from `from` on.
    ///
    /// # Errors
    /// Io, Conflict; naming the file.
    fn read_at(&self, into: &mut [u8], from: u64) -> Result<()>;

    /// The bytes from the front to the end. Its errors hold ours.
    fn front(self: Arc<Self>) -> Box<dyn Read + Send>;

    /// Several ranges at once.
    fn ranges(self: Arc<Self>, ranges: Vec<Range<u64>>) -> BoxFuture<'static, Result<Vec<Bytes>>>;
}

/// The path of something in a directory.
pub fn join(directory: &str, name: &str) -> String {
    if directory.is_empty() { name.to_string() } else { format!("{directory}/{name}") }
}
