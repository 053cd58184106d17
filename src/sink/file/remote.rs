//! A sink's folder in an object store.
//!
//! A part file is an object that is sent while it is written. What a dead process sent may arrive later, a manifest entry
//! too, see [`Folder::has_latecomers`].

use std::collections::BTreeSet;
use std::io::{self, Write};

use super::folder::{Finished, Folder, PartFile};
use super::manifest;
use super::parts::is_part;
use crate::error::{Error, Result};
use crate::storage::{Begun, Root, Upload, Waiter};

/// The objects below a root.
pub(super) struct RemoteFolder {
    root: Root,
}

impl RemoteFolder {
    pub(super) fn new(root: Root) -> Self {
        RemoteFolder { root }
    }
}

impl Folder for RemoteFolder {
    /// A store has no empty folders. An empty object where one begins is what some tools make.
    fn prepare(&self) -> Result<()> {
        let key = self.root.key("");
        if !key.is_empty() && self.root.remote().look(&key)?.is_some_and(|object| object.size > 0) {
            return Err(Error::invalid(format!("{} is a file; the file sink's path is a folder", self.root.shown(""))));
        }
        Ok(())
    }

    fn create(&self, path: &str) -> Result<Box<dyn PartFile>> {
        let remote = self.root.remote();
        Ok(Box::new(RemotePart { upload: remote.upload(&self.root.key(path)), waiter: remote.waiter().clone() }))
    }

    /// An object is where it is.
    fn settle(&self, _paths: &[String]) -> Result<()> {
        Ok(())
    }

    fn remove(&self, path: &str) -> Result<()> {
        self.root.remote().delete(&self.root.key(path))
    }

    fn strays(&self, named: &BTreeSet<String>) -> Result<Vec<String>> {
        let objects = self.root.remote().list(&self.root.key(""))?;
        let paths = objects.iter().filter_map(|object| self.root.relative(&object.path));
        let is_stray = |path: &&str| {
            let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
            let of_partitions =
                folders.is_empty() || folders.split('/').all(|f| f.contains('=') && f != manifest::FOLDER);
            of_partitions && is_part(name) && !named.contains(*path)
        };
        let mut strays: Vec<String> = paths.filter(is_stray).map(str::to_string).collect();
        strays.sort();
        Ok(strays)
    }

    fn visible_entry(&self) -> Result<Option<String>> {
        let (objects, folders) = self.root.remote().list_folder(&self.root.key(""))?;
        let paths = objects.into_iter().map(|object| object.path).chain(folders);
        let names = paths.filter_map(|path| self.root.relative(&path).map(str::to_string));
        Ok(names.filter(|name| !name.is_empty() && !name.starts_with(['.', '_'])).min())
    }

    fn has_latecomers(&self) -> bool {
        true
    }

    fn shown(&self, path: &str) -> String {
        self.root.shown(path)
    }
}

/// An object.
struct RemotePart {
    upload: Upload,
    waiter: Waiter,
}

impl Write for RemotePart {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.upload.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.upload.flush()
    }
}

impl PartFile for RemotePart {
    fn buffered(&self) -> usize {
        self.upload.buffered()
    }

    fn finish(self: Box<Self>) -> Result<Box<dyn Finished>> {
        Ok(Box::new(Sent { object: self.upload.finish(), waiter: self.waiter }))
    }
}

struct Sent {
    object: Begun<Result<()>>,
    waiter: Waiter,
}

impl Finished for Sent {
    fn wait(self: Box<Self>) -> Result<()> {
        self.object.end(&self.waiter)?
    }
}
