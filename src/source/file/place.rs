//! Where a file source looks: a directory, a glob, one file, or a URL; and what is there now.
//!
//! Knows names, sizes and times of files, not what is in them or which were read before, nor whether they are local:
//! that is [`Files`]. A directory is walked with all that is below it. Names that begin with `.`, or with `_` and hold
//! no `=`, are hidden: writers use them for what isn't ready. A directory that holds a manifest of ours is what the
//! manifest says.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::files::{FileEntry, Files, Node, Tree, join};
use super::glob::{Part, braces, covers, is_glob, matches, parts, split_root};
use super::local::LocalFiles;
use super::remote::RemoteFiles;
use crate::checkpoint::Store;
use crate::error::{Error, Result};
use crate::storage::{Location, Remote, Root, Settings};

/// The folder in which a file sink of ours keeps its manifest.
pub const MANIFEST_FOLDER: &str = "_levada";

/// How a directory that a file sink of ours writes is read.
#[derive(Debug, Clone, Copy)]
pub struct Manifest {
    /// The committed files of a directory, relative to it, with `/`.
    pub files: fn(&dyn Store) -> Result<Vec<String>>,
    /// What the name of a folder in it says: a column, and the value in text, `None` for NULL.
    pub folder: fn(&str) -> Option<(String, Option<String>)>,
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

/// Symbolic links can make a circle; no real tree is this deep.
const MAX_DEPTH: usize = 100;

/// The files found, by path.
type Found = BTreeMap<String, FileEntry>;

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
    /// Io: the place can't be listed. InvalidInput: a name that isn't UTF-8. What the manifest's reader says.
    pub fn list(&self) -> Result<Vec<FileEntry>> {
        let mut walk = Walk { place: self, tree: self.files.tree(), found: Found::new() };
        match &self.kind {
            Kind::Directory => walk.walk("", 0)?,
            Kind::File(name) => {
                if let Some(Node::File(file)) = self.files.look(name)? {
                    walk.found.insert(name.clone(), file);
                }
            }
            Kind::Glob(globs) => {
                if globs.iter().any(|parts| parts.len() > 1) {
                    walk.tree.expect_all("")?;
                }
                globs.iter().try_for_each(|parts| walk.expand("", parts, 0))?;
            }
        }
        let mut files: Vec<FileEntry> = walk.found.into_values().collect();
        files.sort_by_key(|file| file.mtime);
        Ok(files)
    }

    /// Files as they are now; `None` for one that is gone.
    ///
    /// # Errors
    /// Io.
    pub fn look_all(&self, files: &[FileEntry]) -> Result<Vec<Option<FileEntry>>> {
        let paths: Vec<String> = files.iter().map(|file| file.path.clone()).collect();
        self.files.look_all(&paths)
    }
}

fn globs(written: &str, pattern: &str) -> Result<Kind> {
    braces(pattern).iter().map(|glob| parts(written, glob)).collect::<Result<Vec<_>>>().map(Kind::Glob)
}

/// One walk through a place.
struct Walk<'p> {
    place: &'p Place,
    tree: Box<dyn Tree + 'p>,
    found: Found,
}

impl Walk<'_> {
    /// Adds what stands at a path: a file, or all files below a directory. What is gone since it was listed is
    /// left out.
    fn add(&mut self, path: String, depth: usize) -> Result<()> {
        match self.tree.look(&path)? {
            Some(Node::Directory) => self.walk(&path, depth + 1),
            Some(Node::File(file)) => {
                self.found.insert(path, file);
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn is_directory(&mut self, path: &str) -> Result<bool> {
        Ok(self.tree.look(path)? == Some(Node::Directory))
    }

    fn has_manifest(&mut self, directory: &str) -> Result<bool> {
        Ok(self.tree.look(&join(directory, MANIFEST_FOLDER))? == Some(Node::Directory))
    }

    fn walk(&mut self, directory: &str, depth: usize) -> Result<()> {
        if depth > MAX_DEPTH {
            let shown = self.place.files.shown(directory);
            return Err(Error::invalid(format!("{shown}: directories are nested more than {MAX_DEPTH} deep"))
                .help("a symbolic link may lead back to a directory above it"));
        }
        self.tree.expect_all(directory)?;
        if self.has_manifest(directory)? {
            return self.by_manifest(directory, &[]);
        }
        for name in self.tree.names(directory)? {
            if !is_hidden(&name) {
                self.add(join(directory, &name), depth)?;
            }
        }
        Ok(())
    }

    /// The files that the manifest of a directory names and the rest of a glob matches.
    fn by_manifest(&mut self, directory: &str, parts: &[Part]) -> Result<()> {
        let files = &self.place.files;
        let Some(manifest) = self.place.manifest else {
            let shown = files.shown(directory);
            return Err(Error::not_yet(format!("reading {shown}, which a file sink of Levada writes")));
        };
        let names = (manifest.files)(&*files.store(directory))?.into_iter().filter(|name| covers(parts, name));
        for path in names.map(|name| join(directory, &name)) {
            match self.tree.look(&path)? {
                Some(Node::File(file)) => self.found.insert(path, file),
                _ => return Err(Error::corrupt(files.shown(&path), "the manifest names this file, and it is gone")),
            };
        }
        Ok(())
    }

    fn expand(&mut self, directory: &str, parts: &[Part], depth: usize) -> Result<()> {
        let Some((part, rest)) = parts.split_first() else { return self.add(directory.to_string(), depth) };
        if self.has_manifest(directory)? {
            return self.by_manifest(directory, parts);
        }
        if let Part::Name(name) = part {
            return self.expand(&join(directory, name), rest, depth);
        }
        if !self.is_directory(directory)? {
            return Ok(());
        }
        if let Part::Deep = part {
            self.expand_rest(directory, rest, depth)?;
        }
        for name in self.tree.names(directory)? {
            let below = join(directory, &name);
            match part {
                Part::Pattern(pattern) if matches(pattern, &name) => self.expand(&below, rest, depth + 1)?,
                Part::Deep if !is_hidden(&name) && depth < MAX_DEPTH && self.is_directory(&below)? => {
                    self.expand(&below, parts, depth + 1)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// What `**` matches without a directory. At the end of a glob it matches only what is below.
    fn expand_rest(&mut self, directory: &str, rest: &[Part], depth: usize) -> Result<()> {
        match rest {
            [] => self.walk(directory, depth),
            rest => self.expand(directory, rest, depth),
        }
    }
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
        let committed = manifest(|_| Ok(vec!["part-1".into()]));
        let place = Place::parse(root, &Settings::default(), Some(committed)).unwrap();
        assert_eq!(place.list().unwrap().into_iter().map(|f| f.path).collect::<Vec<_>>(), ["out/part-1"]);
        let globbed = |pattern: &str| {
            let both = manifest(|_| Ok(vec!["part-1".into(), "k=1/part-2".into()]));
            let place = Place::parse(&format!("{root}/{pattern}"), &Settings::default(), Some(both)).unwrap();
            place.list().map(|files| files.into_iter().map(|f| f.path).collect::<Vec<_>>())
        };
        assert_eq!(globbed("out/part-*").unwrap(), ["part-1"]);
        assert_eq!(globbed("*/part-*").unwrap(), ["out/part-1"]);
        assert!(globbed("o*").is_err_and(|e| e.to_string().contains("part-2")));
        let missing = manifest(|_| Ok(vec!["part-2".into()]));
        let error = Place::parse(root, &Settings::default(), Some(missing)).unwrap().list().unwrap_err();
        assert!(error.to_string().contains("part-2"), "{error}");
    }
}
