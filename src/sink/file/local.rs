//! A sink's folder in a local directory.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use super::folder::{Finished, Folder, PartFile};
use super::manifest;
use super::parts::is_part;
use crate::error::{Error, Result};

/// A directory.
pub(super) struct LocalFolder {
    root: PathBuf,
    /// As the user wrote it.
    written: String,
    /// Files and their names are synced.
    durable: bool,
}

impl LocalFolder {
    pub(super) fn new(root: PathBuf, written: &str, durable: bool) -> Self {
        LocalFolder { root, written: written.to_string(), durable }
    }

    fn collect_strays(&self, folder: &str, named: &BTreeSet<String>, strays: &mut Vec<String>) -> Result<()> {
        let listed = self.root.join(folder);
        let failed = |e: io::Error| Error::io(format!("listing {}", listed.display()), &e);
        let entries = match fs::read_dir(&listed) {
            Ok(entries) => entries,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
            Err(e) => return Err(failed(e)),
        };
        for entry in entries {
            let entry = entry.map_err(failed)?;
            // A name that is no UTF-8 is not ours.
            let Ok(name) = entry.file_name().into_string() else { continue };
            let (kind, path) = (entry.file_type().map_err(failed)?, format!("{folder}{name}"));
            if kind.is_dir() && name.contains('=') && name != manifest::FOLDER {
                self.collect_strays(&format!("{path}/"), named, strays)?;
            } else if kind.is_file() && is_part(&name) && !named.contains(&path) {
                strays.push(path);
            }
        }
        Ok(())
    }
}

impl Folder for LocalFolder {
    fn prepare(&self) -> Result<()> {
        if self.root.exists() && !self.root.is_dir() {
            return Err(Error::invalid(format!("{} is a file; the file sink's path is a folder", self.written)));
        }
        make_folder(&self.root, self.durable)
    }

    /// Creates the file, or begins it again where an abandoned batch of this run has left it.
    fn create(&self, path: &str) -> Result<Box<dyn PartFile>> {
        let path = self.root.join(path);
        make_folder(path.parent().unwrap_or(&self.root), self.durable)?;
        let file = File::create(&path).map_err(|e| Error::io(format!("creating {}", path.display()), &e))?;
        Ok(Box::new(LocalPart { file, path, durable: self.durable }))
    }

    /// Syncs the folders of the files.
    fn settle(&self, paths: &[String]) -> Result<()> {
        if !self.durable {
            return Ok(());
        }
        let folders: BTreeSet<&str> =
            paths.iter().map(|path| path.rsplit_once('/').map_or("", |(folder, _)| folder)).collect();
        folders.into_iter().try_for_each(|folder| match folder {
            "" => sync_folder(&self.root),
            folder => sync_folder(&self.root.join(folder)),
        })
    }

    fn remove(&self, path: &str) -> Result<()> {
        let path = self.root.join(path);
        match fs::remove_file(&path) {
            Err(e) if e.kind() != ErrorKind::NotFound => Err(Error::io(format!("removing {}", path.display()), &e)),
            _ => Ok(()),
        }
    }

    fn strays(&self, named: &BTreeSet<String>) -> Result<Vec<String>> {
        let mut strays = Vec::new();
        self.collect_strays("", named, &mut strays)?;
        strays.sort();
        Ok(strays)
    }

    fn visible_entry(&self) -> Result<Option<String>> {
        let listing = |e: io::Error| Error::io(format!("listing {}", self.root.display()), &e);
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.root).map_err(listing)? {
            names.push(entry.map_err(listing)?.file_name().to_string_lossy().into_owned());
        }
        Ok(names.into_iter().filter(|name| !name.starts_with(['.', '_'])).min())
    }

    /// A write is over when its process is.
    fn has_latecomers(&self) -> bool {
        false
    }

    fn shown(&self, path: &str) -> String {
        self.root.join(path).display().to_string()
    }
}

/// A file.
struct LocalPart {
    file: File,
    path: PathBuf,
    durable: bool,
}

impl Write for LocalPart {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl PartFile for LocalPart {
    fn buffered(&self) -> usize {
        0
    }

    /// The content is synced. The name in its folder is not, yet.
    fn finish(self: Box<Self>) -> Result<Box<dyn Finished>> {
        if self.durable {
            self.file.sync_all().map_err(|e| Error::io(format!("syncing {}", self.path.display()), &e))?;
        }
        Ok(Box::new(Synced))
    }
}

struct Synced;

impl Finished for Synced {
    fn wait(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

/// Makes a folder and those above it, each synced in the one above where it is to be durable.
fn make_folder(folder: &Path, durable: bool) -> Result<()> {
    if folder.as_os_str().is_empty() || folder.is_dir() {
        return Ok(());
    }
    let above = folder.parent().unwrap_or(Path::new(""));
    make_folder(above, durable)?;
    match fs::create_dir(folder) {
        Err(e) if e.kind() != ErrorKind::AlreadyExists || !folder.is_dir() => {
            return Err(Error::io(format!("creating folder {}", folder.display()), &e));
        }
        _ => {}
    }
    if durable { sync_folder(if above.as_os_str().is_empty() { Path::new(".") } else { above }) } else { Ok(()) }
}

fn sync_folder(folder: &Path) -> Result<()> {
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(|e| Error::io(format!("syncing folder {}", folder.display()), &e))
}
