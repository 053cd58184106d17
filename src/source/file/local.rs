//! Files of the local file system.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;

use super::files::{FileEntry, Files, Node, OpenFile, Tree, gone};
use crate::checkpoint::{LocalStore, Store};
use crate::error::{Error, Result};

/// Files are cut into parts of this size.
const PART: u64 = 2 << 20;

/// The files below a directory.
#[derive(Debug, Clone)]
pub struct LocalFiles {
    root: PathBuf,
}

impl LocalFiles {
    pub fn new(root: impl Into<PathBuf>) -> Self {
        LocalFiles { root: root.into() }
    }

    fn full(&self, path: &str) -> PathBuf {
        if path.is_empty() { self.root.clone() } else { self.root.join(path) }
    }
}

impl Files for LocalFiles {
    fn look(&self, path: &str) -> Result<Option<Node>> {
        let full = self.full(path);
        let full = if full.as_os_str().is_empty() { PathBuf::from(".") } else { full };
        match fs::metadata(&full) {
            Ok(found) if found.is_dir() => Ok(Some(Node::Directory)),
            Ok(found) if found.is_file() => entry(path.to_string(), &full, &found).map(|file| Some(Node::File(file))),
            Ok(_) => Ok(Some(Node::Other)),
            Err(error) if is_nothing(&error) => Ok(None),
            Err(error) => Err(Error::io(format!("look at {}", full.display()), &error)),
        }
    }

    fn look_all(&self, paths: &[String]) -> Result<Vec<Option<FileEntry>>> {
        let file = |node| match node {
            Some(Node::File(file)) => Some(file),
            _ => None,
        };
        paths.iter().map(|path| self.look(path).map(file)).collect()
    }

    fn tree(&self) -> Box<dyn Tree + '_> {
        Box::new(LocalTree(self))
    }

    fn open(&self, entry: &FileEntry) -> Result<Arc<dyn OpenFile>> {
        let path = self.full(&entry.path);
        let file = File::open(&path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => gone(entry, &path.display().to_string()),
            _ => reading(&path, &error),
        })?;
        let open = LocalFile { file, entry: entry.clone(), path };
        open.check()?;
        Ok(Arc::new(open))
    }

    fn shown(&self, path: &str) -> String {
        self.full(path).display().to_string()
    }

    fn store(&self, directory: &str) -> Arc<dyn Store> {
        Arc::new(LocalStore::new(self.full(directory)))
    }

    fn part(&self) -> Option<u64> {
        Some(PART)
    }
}

/// Nothing is remembered: to ask the file system again costs little.
struct LocalTree<'f>(&'f LocalFiles);

impl Tree for LocalTree<'_> {
    fn expect_all(&mut self, _directory: &str) -> Result<()> {
        Ok(())
    }

    fn look(&mut self, path: &str) -> Result<Option<Node>> {
        self.0.look(path)
    }

    fn names(&mut self, directory: &str) -> Result<Vec<String>> {
        let full = self.0.full(directory);
        let shown = if full.as_os_str().is_empty() { Path::new(".") } else { &full };
        let failed = |e: &io::Error| Error::io(format!("list {}", shown.display()), e);
        let entries = match fs::read_dir(shown) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound && !directory.is_empty() => return Ok(Vec::new()),
            Err(error) => return Err(failed(&error)),
        };
        let mut names = Vec::new();
        for entry in entries {
            let name = entry.map_err(|e| failed(&e))?.file_name().into_string();
            names.push(name.map_err(|name| {
                Error::invalid(format!("{}: the file name is not UTF-8", full.join(name).display()))
                    .help("rename the file, or read another directory")
            })?);
        }
        Ok(names)
    }

    fn identity(&mut self, directory: &str) -> Result<Option<(u64, u64)>> {
        let full = self.0.full(directory);
        let full = if full.as_os_str().is_empty() { Path::new(".") } else { &full };
        match fs::metadata(full) {
            Ok(found) => Ok(found.is_dir().then(|| (found.dev(), found.ino()))),
            Err(error) if is_nothing(&error) => Ok(None),
            Err(error) => Err(Error::io(format!("look at {}", full.display()), &error)),
        }
    }
}

/// Nothing is there; nor is where a link that leads to itself leads.
fn is_nothing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) || error.raw_os_error() == Some(libc::ELOOP)
}

fn entry(path: String, full: &Path, found: &fs::Metadata) -> Result<FileEntry> {
    let shown = full.display();
    let modified = found.modified().map_err(|e| Error::io(format!("modification time of {shown}"), &e))?;
    let nanos = match modified.duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_nanos()),
        Err(before) => i64::try_from(before.duration().as_nanos()).map(|nanos| -nanos),
    };
    let mtime = nanos.map_err(|_| Error::invalid(format!("{shown}: its modification time is out of range")))?;
    Ok(FileEntry { path, mtime, size: found.len(), etag: None, crc32c: None })
}

fn reading(path: &Path, error: &io::Error) -> Error {
    Error::io(format!("read {}", path.display()), error)
}

/// A file that was as it was listed when it was opened. One that ends before its listed end has changed since.
struct LocalFile {
    file: File,
    entry: FileEntry,
    path: PathBuf,
}

impl LocalFile {
    fn check(&self) -> Result<()> {
        let found = self.file.metadata().map_err(|e| Error::io(format!("look at {}", self.path.display()), &e))?;
        let now = entry(self.entry.path.clone(), &self.path, &found)?;
        now.check(&self.entry.version(), &self.path.display().to_string())
    }

    fn failed(&self, error: &io::Error) -> Error {
        match error.kind() {
            ErrorKind::UnexpectedEof => self.check().err().unwrap_or_else(|| reading(&self.path, error)),
            _ => reading(&self.path, error),
        }
    }
}

impl OpenFile for LocalFile {
    fn read_at(&self, into: &mut [u8], from: u64) -> Result<()> {
        self.file.read_exact_at(into, from).map_err(|error| self.failed(&error))
    }

    fn front(self: Arc<Self>) -> Box<dyn Read + Send> {
        Box::new(Front { left: self.entry.size, file: self })
    }

    fn ranges(self: Arc<Self>, ranges: Vec<Range<u64>>) -> BoxFuture<'static, Result<Vec<Bytes>>> {
        let read = |range: &Range<u64>| {
            let mut bytes = vec![0; range.end.saturating_sub(range.start) as usize];
            self.read_at(&mut bytes, range.start).map(|()| Bytes::from(bytes))
        };
        // Plain blocking reads: local, and in large pieces.
        std::future::ready(ranges.iter().map(read).collect()).boxed()
    }
}

/// A file from its front to its listed end.
struct Front {
    file: Arc<LocalFile>,
    left: u64,
}

impl Read for Front {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let wanted = into.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        if wanted == 0 {
            return Ok(0);
        }
        let from = self.file.entry.size - self.left;
        self.file.read_at(&mut into[..wanted], from).map_err(io::Error::other)?;
        self.left -= wanted as u64;
        Ok(wanted)
    }
}
