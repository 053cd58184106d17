//! Where a file source looks: a directory, a glob, one file, or a URL; and what is there now.
//!
//! Knows names, sizes and times of files, not what is in them or which were read before, nor whether they are local:
//! that is [`Files`]. A directory is walked with all that is below it. Names that begin with `.`, or with `_` and hold
//! no `=`, are hidden: writers use them for what isn't ready. A directory that holds a manifest of ours is what the
//! manifest says.

use std::path::Path;
use std::sync::Arc;

use super::files::{FileEntry, Files, Node, join, neither};
use super::glob::{Part, braces, is_glob, parts, split_root};
use super::local::LocalFiles;
use super::remote::RemoteFiles;
use super::walk::Walk;
use crate::checkpoint::Store;
use crate::error::{Error, Result};
use crate::storage::{Location, Remote, Root, Settings};

/// The folder in which a file sink of ours keeps its manifest.
pub const MANIFEST_FOLDER: &str = "_levada";

/// How a directory that a file sink of ours writes is read.
#[derive(Debug, Clone, Copy)]
pub struct Manifest {
    /// The committed files of a directory.
    pub files: fn(&dyn Store) -> Result<Vec<Promised>>,
    /// What the name of a folder in it says: a column, and the value in text, `None` for NULL.
    pub folder: fn(&str) -> Option<(String, Option<String>)>,
}

/// A file that a manifest names, and what it says of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Promised {
    /// Relative to the manifest's directory, with `/`.
    pub path: String,
    pub size: u64,
    pub crc32c: u32,
}

impl Promised {
    /// The file as it is, known to have the size that was promised; its bytes are held against the checksum when they
    /// are read.
    ///
    /// # Errors
    /// Corrupt, naming the file as `shown`.
    pub(super) fn of(size: u64, crc32c: u32, found: FileEntry, shown: &str) -> Result<FileEntry> {
        match found.size == size {
            true => Ok(FileEntry { crc32c: Some(crc32c), ..found }),
            false => Err(Error::corrupt(
                shown,
                format!("the manifest of its folder says that it has {size} bytes, and it has {}", found.size),
            )),
        }
    }
}

/// A place that holds files.
#[derive(Debug, Clone)]
pub struct Place {
    /// As the user wrote it.
    shown: String,
    files: Arc<dyn Files>,
    kind: Kind,
    manifest: Option<Manifest>,
}

#[derive(Debug, Clone)]
enum Kind {
    Directory,
    /// One file, by name.
    File(String),
    /// Any of these, from the root.
    Glob(Vec<Vec<Part>>),
}

impl Place {
    /// Takes a path apart. A store is opened on the runtime that the caller has entered.
    ///
    /// # Errors
    /// InvalidInput: nothing is there, or the glob or URL is malformed. Unsupported: the scheme of another store. Io.
    pub fn parse(written: &str, settings: &Settings, manifest: Option<Manifest>) -> Result<Self> {
        match Location::parse(written, "files")? {
            Location::Local(path) => Self::local(written, &path.to_string_lossy(), manifest),
            Location::Remote(url) => Self::remote(written, Remote::open(&url, settings)?, &url.path, manifest),
        }
    }

    fn local(written: &str, path: &str, manifest: Option<Manifest>) -> Result<Self> {
        let files = |root: &Path| Arc::new(LocalFiles::new(root)) as Arc<dyn Files>;
        let place = |files, kind| Place { shown: written.to_string(), files, kind, manifest };
        match LocalFiles::new("").look(path)? {
            Some(Node::Directory) => return Ok(place(files(path.as_ref()), Kind::Directory)),
            Some(Node::File(_)) => {
                let path = Path::new(path);
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                return Ok(place(files(path.parent().unwrap_or(Path::new(""))), Kind::File(name)));
            }
            Some(Node::Other) => return Err(neither(written)),
            None => {}
        }
        if !is_glob(path) {
            return Err(Error::invalid(format!("path {written}: there is no such file or directory"))
                .help("make the directory first, or correct the path"));
        }
        let (root, pattern) = split_root(path);
        if !root.is_empty() && !Path::new(root).is_dir() {
            return Err(Error::invalid(format!("path {written}: there is no directory {root}")));
        }
        Ok(place(files(root.as_ref()), globs(written, pattern)?))
    }

    /// A place in a store. A store has no empty directories: what isn't there yet is one.
    pub(super) fn remote(written: &str, remote: Remote, path: &str, manifest: Option<Manifest>) -> Result<Self> {
        let files = |root: &str| Arc::new(RemoteFiles::new(Root::new(remote.clone(), root))) as Arc<dyn Files>;
        let place = |files, kind| Place { shown: written.to_string(), files, kind, manifest };
        let whole = !path.is_empty() && !path.ends_with('/');
        // A name that exists is no pattern.
        if whole && remote.look(path)?.is_some() {
            let (root, name) = path.rsplit_once('/').unwrap_or(("", path));
            return Ok(place(files(root), Kind::File(name.to_string())));
        }
        if is_glob(path) {
            let (root, pattern) = split_root(path);
            return Ok(place(files(root), globs(written, pattern)?));
        }
        if whole && !remote.has_ranges() {
            return Err(Error::invalid(format!("path {written}: there is no such file"))
                .help("a path that ends with / is a directory, which only a WebDAV server lists"));
        }
        Ok(place(files(path), Kind::Directory))
    }

    /// As the user wrote it.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// What opens its files.
    pub fn files(&self) -> &Arc<dyn Files> {
        &self.files
    }

    /// The path by which a file of this place is named.
    pub fn full(&self, entry: &FileEntry) -> String {
        self.files.shown(&entry.path)
    }

    /// What the folders between a manifest and a file say of its rows: columns and their values.
    ///
    /// # Errors
    /// Io.
    pub fn folder_values(&self, entry: &FileEntry) -> Result<Vec<(String, Option<String>)>> {
        let Some(Manifest { folder, .. }) = self.manifest else { return Ok(Vec::new()) };
        let mut folders: Vec<&str> = entry.path.split('/').collect();
        folders.pop();
        if !folders.iter().any(|name| name.contains('=')) {
            return Ok(Vec::new());
        }
        let mut directory = String::new();
        for at in 0..folders.len() {
            if self.files.look(&join(&directory, MANIFEST_FOLDER))? == Some(Node::Directory) {
                return Ok(folders[at..].iter().filter_map(|name| folder(name)).collect());
            }
            directory = join(&directory, folders[at]);
        }
        Ok(Vec::new())
    }

    /// The files that are here now, in order of modification time, then path.
    ///
    /// # Errors
    /// Io: the place can't be listed. InvalidInput: a name that isn't UTF-8, what is no file or directory. Corrupt: a
    /// file that isn't what its manifest says. What the manifest's reader says.
    pub fn list(&self) -> Result<Vec<FileEntry>> {
        let mut files = match &self.kind {
            Kind::Directory => Walk::new(&*self.files, self.manifest).all()?,
            Kind::File(name) => match self.files.look(name)? {
                Some(Node::File(file)) => vec![file],
                _ => Vec::new(),
            },
            Kind::Glob(globs) => Walk::new(&*self.files, self.manifest).matched(globs)?,
        };
        files.sort_by_key(|file| file.mtime);
        Ok(files)
    }

    /// Files as they are now; `None` for one that is gone.
    ///
    /// # Errors
    /// Io. Corrupt: a file isn't what its manifest says.
    pub fn look_all(&self, files: &[FileEntry]) -> Result<Vec<Option<FileEntry>>> {
        let paths: Vec<String> = files.iter().map(|file| file.path.clone()).collect();
        let again = |(was, now): (&FileEntry, Option<FileEntry>)| match (was.crc32c, now) {
            (Some(crc32c), Some(now)) => Promised::of(was.size, crc32c, now, &self.full(was)).map(Some),
            (_, now) => Ok(now),
        };
        files.iter().zip(self.files.look_all(&paths)?).map(again).collect()
    }
}

/// Each choice of a glob's braces.
fn globs(written: &str, pattern: &str) -> Result<Kind> {
    braces(pattern).iter().map(|glob| parts(written, glob)).collect::<Result<Vec<_>>>().map(Kind::Glob)
}

/// Whether writers use such a name for what isn't ready. `_k=v` is a partition of a column `_k`.
pub fn is_hidden(name: &str) -> bool {
    name.starts_with('.') || (name.starts_with('_') && !name.contains('='))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::UNIX_EPOCH;

    use super::*;

    fn dir(files: &[&str]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (at, name) in files.iter().enumerate() {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, name).unwrap();
            set_mtime(&path, 1_000 + at as u64);
        }
        dir
    }

    fn set_mtime(path: &Path, seconds: u64) {
        let file = fs::File::options().write(true).open(path).unwrap();
        file.set_modified(UNIX_EPOCH + std::time::Duration::from_secs(seconds)).unwrap();
    }

    fn promised(path: &str, size: u64) -> Promised {
        Promised { path: path.into(), size, crc32c: 0 }
    }

    fn list(written: &str) -> Vec<String> {
        Place::parse(written, &Settings::default(), None)
            .unwrap()
            .list()
            .unwrap()
            .into_iter()
            .map(|file| file.path)
            .collect()
    }

    #[test]
    fn a_directory_is_walked_without_what_is_hidden() {
        let dir = dir(&["b", "a", ".tmp", "_SUCCESS", "_temporary/x", "sub/k=1/c", "sub/_k=2/d", "e e%[1]*"]);
        assert_eq!(list(dir.path().to_str().unwrap()), ["b", "a", "sub/k=1/c", "sub/_k=2/d", "e e%[1]*"]);
    }

    #[test]
    fn files_of_one_time_go_by_path() {
        let dir = dir(&["c", "b", "a", "d"]);
        for name in ["a", "b", "c"] {
            set_mtime(&dir.path().join(name), 5);
        }
        assert_eq!(list(dir.path().to_str().unwrap()), ["a", "b", "c", "d"]);
    }

    #[test]
    fn globs_match_names_by_component() {
        let dir = dir(&["p=1/a.json", "p=1/b.csv", "p=2/c.json", "p=2/deep/d.json", "_x/e.json", "f.json", "[g].json"]);
        let at = |pattern: &str| list(&format!("{}/{pattern}", dir.path().display()));
        assert_eq!(at("*/*.json"), ["p=1/a.json", "p=2/c.json"]);
        assert_eq!(at("*/*"), ["p=1/a.json", "p=1/b.csv", "p=2/c.json", "p=2/deep/d.json"]);
        assert_eq!(at("**/*.json"), ["p=1/a.json", "p=2/c.json", "p=2/deep/d.json", "f.json", "[g].json"]);
        assert_eq!(at("p=2/**"), ["c.json", "deep/d.json"]);
        assert_eq!(at("p=[2-9]/*.json"), ["p=2/c.json"]);
        assert_eq!(at("{f,p=?/{a,c}}.json"), ["p=1/a.json", "p=2/c.json", "f.json"]);
        assert_eq!(at("_x/*"), ["e.json"]);
        assert_eq!(at("_*/*"), ["_x/e.json"]);
        assert_eq!(at("nothing*"), Vec::<String>::new());
        assert_eq!(at("[g].json"), ["[g].json"], "a name that exists is no pattern");
    }

    #[test]
    fn a_link_that_leads_back_is_passed_over() {
        let dir = dir(&["in/a.json", "in/sub/b.json", "outside/c.json"]);
        let root = dir.path().display().to_string();
        let link = |to: &str, at: &str| std::os::unix::fs::symlink(to, dir.path().join(at)).unwrap();
        link(".", "in/here");
        link("..", "in/sub/up");
        link("itself", "in/itself");
        link("../outside", "in/other");
        assert_eq!(list(&format!("{root}/in")), ["a.json", "sub/b.json", "other/c.json"]);
        assert_eq!(list(&format!("{root}/in/**/*.json")), ["a.json", "sub/b.json", "other/c.json"]);
        assert_eq!(list(&format!("{root}/in/*/*.json")), ["sub/b.json", "other/c.json"]);
        assert_eq!(list(&format!("{root}/i*")), ["in/a.json", "in/sub/b.json", "in/other/c.json"]);
        // Whoever names a link means it.
        assert_eq!(list(&format!("{root}/in/here/*.json")), ["a.json"]);
    }

    #[test]
    fn what_is_no_file_or_directory_is_refused() {
        let dir = dir(&["in/a.json"]);
        let socket = dir.path().join("in/socket");
        let _bound = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let shown = socket.display().to_string();
        let says = format!("{shown} is no regular file or folder");
        let place = |path: &str| Place::parse(path, &Settings::default(), None);
        assert_eq!(place(&shown).unwrap_err().to_string(), says);
        let root = dir.path().join("in").display().to_string();
        assert_eq!(place(&root).unwrap().list().unwrap_err().to_string(), says);
        assert_eq!(place(&format!("{root}/*")).unwrap().list().unwrap_err().to_string(), says);
        assert_eq!(list(&format!("{root}/**/*.json")), ["a.json"], "what is not matched is not read");
    }

    #[test]
    fn a_url_is_decoded_and_a_path_is_not() {
        let dir = dir(&["a b/x%20y"]);
        let root = dir.path().display().to_string();
        assert_eq!(list(&format!("file://{root}/a%20b")), ["x%20y"]);
        assert_eq!(list(&format!("file:{root}/a%20b/x%2520y")), ["x%20y"]);
        assert_eq!(list(&format!("{root}/a b/x%20y")), ["x%20y"]);
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let error = |path: &str| {
            Place::parse(path, &Settings::default(), None).err().map(|e| e.to_string()).unwrap_or_default()
        };
        assert_eq!(error("does-not-exist"), "path does-not-exist: there is no such file or directory");
        assert_eq!(error("does-not-exist/*.json"), "path does-not-exist/*.json: there is no directory does-not-exist");
        assert_eq!(error("hdfs://node/x"), "not supported yet: files in hdfs://: hdfs://node/x");
        assert!(error("file:relative").contains("no such file"));
        assert!(error("file:///a%2").contains("two hex digits"));
        assert!(error("src[").contains("src["));
    }

    #[test]
    fn a_manifest_decides_what_is_there() {
        let dir = dir(&["out/part-0", "out/part-1", "out/_levada/0"]);
        let root = dir.path().to_str().unwrap();
        assert!(
            Place::parse(root, &Settings::default(), None)
                .unwrap()
                .list()
                .is_err_and(|e| e.to_string().contains("not supported yet"))
        );
        let manifest = |files| Manifest { files, folder: |_| None };
        let committed = manifest(|_| Ok(vec![promised("part-1", 10)]));
        let place = Place::parse(root, &Settings::default(), Some(committed)).unwrap();
        assert_eq!(place.list().unwrap().into_iter().map(|f| f.path).collect::<Vec<_>>(), ["out/part-1"]);
        let globbed = |pattern: &str| {
            let both = manifest(|_| Ok(vec![promised("part-1", 10), promised("k=1/part-2", 14)]));
            let place = Place::parse(&format!("{root}/{pattern}"), &Settings::default(), Some(both)).unwrap();
            place.list().map(|files| files.into_iter().map(|f| f.path).collect::<Vec<_>>())
        };
        assert_eq!(globbed("out/part-*").unwrap(), ["part-1"]);
        assert_eq!(globbed("*/part-*").unwrap(), ["out/part-1"]);
        assert!(globbed("o*").is_err_and(|e| e.to_string().contains("part-2")));
        let wrong = |files| {
            let place = Place::parse(root, &Settings::default(), Some(manifest(files))).unwrap();
            place.list().unwrap_err().to_string()
        };
        let error = wrong(|_| Ok(vec![promised("part-2", 10)]));
        assert!(error.ends_with("out/part-2: the manifest names this file, and it is gone"), "{error}");
        let error = wrong(|_| Ok(vec![promised("part-1", 9)]));
        let says = "out/part-1: the manifest of its folder says that it has 9 bytes, and it has 10";
        assert!(error.ends_with(says), "{error}");
    }
}
