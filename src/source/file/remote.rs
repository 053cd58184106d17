//! Files that are objects of a store.
//!
//! An object is told by its tag where the store gives one, so what is read is what was listed, however long ago that
//! was; every answer is checked for it. A folder is what the names of objects say.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind, Read};
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};

use super::files::{FileEntry, Files, Node, OpenFile, Tree, gone, join};
use crate::checkpoint::{RemoteStore, Store};
use crate::error::{Error, Result};
use crate::storage::{Begun, Object, Remote, Root};

/// A request brings so much: large enough that the way there and back costs little.
const PART: u64 = 8 << 20;
/// Ranges nearer to each other than this are asked for in one.
const NEAR: u64 = 1 << 20;

/// The objects below a root.
#[derive(Debug, Clone)]
pub struct RemoteFiles {
    root: Root,
}

impl RemoteFiles {
    pub fn new(root: Root) -> Self {
        RemoteFiles { root }
    }

    fn remote(&self) -> &Remote {
        self.root.remote()
    }

    /// The object under its path from the root. What isn't below the root is not ours.
    fn entry(&self, object: Object) -> Option<FileEntry> {
        let path = self.root.relative(&object.path)?.to_string();
        Some(FileEntry { path, mtime: object.mtime, size: object.size, etag: object.etag, crc32c: None })
    }

    fn file(&self, path: &str) -> Result<Option<FileEntry>> {
        Ok(self.remote().look(&self.root.key(path))?.and_then(|object| self.entry(object)))
    }
}

impl Files for RemoteFiles {
    fn look(&self, path: &str) -> Result<Option<Node>> {
        if let Some(file) = self.file(path)? {
            return Ok(Some(Node::File(file)));
        }
        Ok(self.remote().is_folder(&self.root.key(path))?.then_some(Node::Directory))
    }

    fn look_all(&self, paths: &[String]) -> Result<Vec<Option<FileEntry>>> {
        let keys: Vec<String> = paths.iter().map(|path| self.root.key(path)).collect();
        let found = self.remote().look_all(&keys)?;
        Ok(found.into_iter().map(|object| object.and_then(|object| self.entry(object))).collect())
    }

    fn tree(&self) -> Box<dyn Tree + '_> {
        Box::new(RemoteTree { files: self, found: BTreeMap::new(), folders: BTreeSet::new(), listed: BTreeMap::new() })
    }

    fn open(&self, entry: &FileEntry) -> Result<Arc<dyn OpenFile>> {
        let key = self.root.key(&entry.path);
        let file = RemoteFile { remote: self.remote().clone(), files: self.clone(), key, entry: entry.clone() };
        if entry.size == 0 {
            // Nothing will be read of it, so nothing else would see a change.
            file.check_now()?;
        }
        Ok(Arc::new(file))
    }

    fn shown(&self, path: &str) -> String {
        self.root.shown(path)
    }

    fn store(&self, directory: &str) -> Arc<dyn Store> {
        Arc::new(RemoteStore::reader(self.root.below(directory)))
    }

    fn part(&self) -> Option<u64> {
        self.remote().has_ranges().then_some(PART)
    }
}

/// What was listed so far.
struct RemoteTree<'f> {
    files: &'f RemoteFiles,
    found: BTreeMap<String, FileEntry>,
    folders: BTreeSet<String>,
    /// Folders, and whether all below them is known.
    listed: BTreeMap<String, bool>,
}

impl RemoteTree<'_> {
    /// Whether what is in a folder is known, or all that is below it.
    fn knows(&self, folder: &str, all: bool) -> bool {
        let above = |parent: &String| parent.is_empty() || folder.starts_with(&format!("{parent}/"));
        self.listed.iter().any(|(parent, deep)| (parent == folder && (!all || *deep)) || (*deep && above(parent)))
    }

    fn list(&mut self, folder: &str) -> Result<()> {
        if self.knows(folder, false) {
            return Ok(());
        }
        let (objects, folders) = self.files.remote().list_folder(&self.files.root.key(folder))?;
        for path in folders {
            let name = path.rsplit('/').next().unwrap_or_default();
            self.folders.insert(join(folder, name));
        }
        self.keep(objects);
        self.listed.insert(folder.to_string(), false);
        Ok(())
    }

    fn keep(&mut self, objects: Vec<Object>) {
        for entry in objects.into_iter().filter_map(|object| self.files.entry(object)) {
            let mut above = entry.path.as_str();
            while let Some((folder, _)) = above.rsplit_once('/') {
                if !self.folders.insert(folder.to_string()) {
                    break;
                }
                above = folder;
            }
            self.found.insert(entry.path.clone(), entry);
        }
    }
}

impl Tree for RemoteTree<'_> {
    fn expect_all(&mut self, directory: &str) -> Result<()> {
        if !self.knows(directory, true) {
            let objects = self.files.remote().list(&self.files.root.key(directory))?;
            self.keep(objects);
            self.listed.insert(directory.to_string(), true);
        }
        Ok(())
    }

    fn look(&mut self, path: &str) -> Result<Option<Node>> {
        self.list(path.rsplit_once('/').map_or("", |(folder, _)| folder))?;
        let file = self.found.get(path);
        Ok(match (path.is_empty() || self.folders.contains(path), file) {
            // Some tools make an empty object where a folder begins.
            (true, None) => Some(Node::Directory),
            (true, Some(file)) if file.size == 0 => Some(Node::Directory),
            (_, file) => file.cloned().map(Node::File),
        })
    }

    fn names(&mut self, directory: &str) -> Result<Vec<String>> {
        self.list(directory)?;
        let prefix = if directory.is_empty() { String::new() } else { format!("{directory}/") };
        let mut names = BTreeSet::new();
        let mut from = prefix.clone();
        // From one name to the next, past all that is below it.
        while let Some((path, _)) = self.found.range(from..).next().filter(|(path, _)| path.starts_with(&prefix)) {
            let name = path[prefix.len()..].split('/').next().unwrap_or_default();
            from = match path.len() > prefix.len() + name.len() {
                // '0' comes behind '/'.
                true => format!("{prefix}{name}0"),
                false => format!("{path}\0"),
            };
            names.insert(name.to_string());
        }
        let folders = self.folders.range(prefix.clone()..).take_while(|path| path.starts_with(&prefix));
        names.extend(folders.map(|path| path[prefix.len()..].split('/').next().unwrap_or_default().to_string()));
        names.remove("");
        Ok(names.into_iter().collect())
    }
}

/// An object that is read as it was listed.
#[derive(Clone)]
struct RemoteFile {
    remote: Remote,
    files: RemoteFiles,
    key: String,
    entry: FileEntry,
}

impl RemoteFile {
    fn shown(&self) -> String {
        self.remote.shown(&self.key)
    }

    fn check(&self, found: Object) -> Result<()> {
        let now = self.files.entry(found).ok_or_else(|| Error::internal("an object that is not at its path"))?;
        now.check(&self.entry.version(), &self.shown())
    }

    fn check_now(&self) -> Result<()> {
        match self.remote.look(&self.key)? {
            Some(found) => self.check(found),
            None => Err(gone(&self.entry, &self.shown())),
        }
    }

    async fn range(&self, range: Range<u64>) -> Result<Bytes> {
        let wanted = range.end - range.start;
        let outside = range.end > self.entry.size;
        match self.remote.range(&self.key, range).await {
            Ok((found, bytes)) => {
                self.check(found)?;
                match bytes.len() as u64 == wanted {
                    true => Ok(bytes),
                    false => {
                        Err(self.failed(ErrorKind::UnexpectedEof, "fewer bytes came than were asked for", !outside))
                    }
                }
            }
            Err(Error::Io { kind: ErrorKind::NotFound, .. }) => Err(gone(&self.entry, &self.shown())),
            Err(error) if error.is_transient() => Err(error),
            // A range that the object has no more is refused before it can be compared.
            Err(error) => {
                let looked = self.remote.look_now(&self.key).await;
                Err(looked.ok().flatten().and_then(|found| self.check(found).err()).unwrap_or(error))
            }
        }
    }

    fn failed(&self, kind: ErrorKind, message: &str, transient: bool) -> Error {
        Error::Io { context: format!("read {}", self.shown()), message: message.to_string(), kind, transient }
    }

    /// The part that begins at `from`, asked for now and waited for later.
    fn begin(&self, from: u64) -> Option<Begun<Result<Bytes>>> {
        let to = (from + PART).min(self.entry.size);
        let this = self.clone();
        (from < to).then(|| self.remote.waiter().begin(async move { this.range(from..to).await }))
    }
}

impl OpenFile for RemoteFile {
    fn read_at(&self, into: &mut [u8], from: u64) -> Result<()> {
        let bytes = self.remote.waiter().wait(self.range(from..from + into.len() as u64))?;
        into.copy_from_slice(&bytes);
        Ok(())
    }

    fn front(self: Arc<Self>) -> Box<dyn Read + Send> {
        match self.remote.has_ranges() {
            true => Box::new(Ahead { next: self.begin(0), asked: PART, piece: Bytes::new(), file: self }),
            false => Box::new(Whole { file: self, pieces: None, piece: Bytes::new(), read: 0 }),
        }
    }

    fn ranges(self: Arc<Self>, ranges: Vec<Range<u64>>) -> BoxFuture<'static, Result<Vec<Bytes>>> {
        async move { Remote::near_together(&ranges, NEAR, |range| self.range(range)).await }.boxed()
    }
}

/// An object from its front, one part being read while the one before it is used.
struct Ahead {
    file: Arc<RemoteFile>,
    next: Option<Begun<Result<Bytes>>>,
    /// Up to here was asked for.
    asked: u64,
    piece: Bytes,
}

impl Read for Ahead {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.piece.is_empty() {
            let Some(next) = self.next.take() else { return Ok(0) };
            self.piece = next.end(self.file.remote.waiter()).flatten().map_err(io::Error::other)?;
            self.next = self.file.begin(self.asked);
            self.asked += PART;
        }
        Ok(take(&mut self.piece, into))
    }
}

/// An object from its front, in one answer.
struct Whole {
    file: Arc<RemoteFile>,
    pieces: Option<BoxStream<'static, Result<Bytes>>>,
    piece: Bytes,
    read: u64,
}

impl Whole {
    fn next(&mut self) -> Result<Option<Bytes>> {
        let file = &self.file;
        let pieces = match &mut self.pieces {
            Some(pieces) => pieces,
            none => {
                let (found, pieces) = file.remote.whole(&file.key).map_err(|error| match error {
                    Error::Io { kind: ErrorKind::NotFound, .. } => gone(&file.entry, &file.shown()),
                    other => other,
                })?;
                file.check(found)?;
                none.insert(pieces)
            }
        };
        let piece = file.remote.waiter().wait(pieces.next()).transpose()?;
        self.read += piece.as_ref().map_or(0, |piece| piece.len() as u64);
        match piece.is_none() && self.read != file.entry.size {
            true => Err(file.failed(ErrorKind::UnexpectedEof, "the answer ended before the file did", true)),
            false => Ok(piece),
        }
    }
}

impl Read for Whole {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() {
            match self.next().map_err(io::Error::other)? {
                Some(piece) => self.piece = piece,
                None => return Ok(0),
            }
        }
        Ok(take(&mut self.piece, into))
    }
}

fn take(piece: &mut Bytes, into: &mut [u8]) -> usize {
    let length = piece.len().min(into.len());
    into[..length].copy_from_slice(&piece.split_to(length));
    length
}
