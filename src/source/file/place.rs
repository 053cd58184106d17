//! Where a file source looks: a directory, a glob, one file, or a `file:` URL; and what is there now.
//!
//! Knows names, sizes and times of files, not what is in them or which were read before. A directory is walked
//! with all that is below it. Names that begin with `.`, or with `_` and hold no `=`, are hidden: writers use them
//! for what isn't ready. A directory that holds a manifest of ours is what the manifest says.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use super::glob::{Part, braces, covers, is_glob, matches, parts, split_root};
use crate::checkpoint::local_directory;
use crate::error::{Error, Result};

/// The folder in which a file sink of ours keeps its manifest.
pub const MANIFEST_FOLDER: &str = "_levada";

/// How a directory that a file sink of ours writes is read.
#[derive(Debug, Clone, Copy)]
pub struct Manifest {
    /// The committed files of a directory, relative to it, with `/`.
    pub files: fn(&Path) -> Result<Vec<String>>,
    /// What the name of a folder in it says: a column, and the value in text, `None` for NULL.
    pub folder: fn(&str) -> Option<(String, Option<String>)>,
}

/// A file as it was listed.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct FileEntry {
    /// Relative to the place's root, with `/`.
    pub path: String,
    /// Nanoseconds since 1970.
    pub mtime: i64,
    /// Bytes.
    pub size: u64,
}

/// A place in the local file system.
#[derive(Debug, Clone)]
pub struct Place {
    /// As the user wrote it.
    shown: String,
    /// Where relative paths begin.
    root: PathBuf,
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

impl Place {
    /// Takes a path apart.
    ///
    /// # Errors
    /// InvalidInput: nothing is there, or the glob or URL is malformed. Unsupported: the scheme of another store.
    pub fn parse(written: &str, manifest: Option<Manifest>) -> Result<Self> {
        let path = local_directory(written, "files")?.to_string_lossy().into_owned();
        let place = |root: PathBuf, kind| Place { shown: written.to_string(), root, kind, manifest };
        match fs::metadata(&path) {
            Ok(found) if found.is_dir() => return Ok(place(PathBuf::from(&path), Kind::Directory)),
            Ok(_) => {
                let path = Path::new(&path);
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                return Ok(place(path.parent().unwrap_or(Path::new("")).to_path_buf(), Kind::File(name)));
            }
            Err(error) if error.kind() != ErrorKind::NotFound && error.kind() != ErrorKind::NotADirectory => {
                return Err(Error::io(format!("look at {written}"), &error));
            }
            Err(_) => {}
        }
        if !is_glob(&path) {
            return Err(Error::invalid(format!("path {written}: there is no such file or directory"))
                .help("make the directory first, or correct the path"));
        }
        let (root, pattern) = split_root(&path);
        if !root.as_os_str().is_empty() && !root.is_dir() {
            return Err(Error::invalid(format!("path {written}: there is no directory {}", root.display())));
        }
        let globs = braces(pattern).iter().map(|glob| parts(written, glob)).collect::<Result<Vec<_>>>()?;
        Ok(place(root, Kind::Glob(globs)))
    }

    /// As the user wrote it.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// The path by which a file of this place is opened and named.
    pub fn full(&self, entry: &FileEntry) -> PathBuf {
        self.root.join(&entry.path)
    }

    /// What the folders between a manifest and a file say of its rows: columns and their values.
    pub fn folder_values(&self, entry: &FileEntry) -> Vec<(String, Option<String>)> {
        let Some(Manifest { folder, .. }) = self.manifest else { return Vec::new() };
        let mut folders: Vec<&str> = entry.path.split('/').collect();
        folders.pop();
        if !folders.iter().any(|name| name.contains('=')) {
            return Vec::new();
        }
        let mut dir = self.root.clone();
        for at in 0..folders.len() {
            if dir.join(MANIFEST_FOLDER).is_dir() {
                return folders[at..].iter().filter_map(|name| folder(name)).collect();
            }
            dir.push(folders[at]);
        }
        Vec::new()
    }

    /// The files that are here now, in order of modification time, then path.
    ///
    /// # Errors
    /// Io: the place can't be listed. InvalidInput: a name that isn't UTF-8. What the manifest's reader says.
    pub fn list(&self) -> Result<Vec<FileEntry>> {
        let mut found = BTreeMap::new();
        match &self.kind {
            Kind::Directory => self.walk(&self.root, "", 0, &mut found)?,
            Kind::File(name) => self.add(&self.root.join(name), name.clone(), 0, &mut found)?,
            Kind::Glob(globs) => {
                for parts in globs {
                    self.expand(&self.root, "", parts, 0, &mut found)?;
                }
            }
        }
        let mut files: Vec<FileEntry> = found.into_values().collect();
        files.sort_by_key(|file| file.mtime);
        Ok(files)
    }

    /// The file as it is now; `None` when it is gone.
    ///
    /// # Errors
    /// Io.
    pub fn look(&self, path: &str) -> Result<Option<FileEntry>> {
        let full = self.root.join(path);
        match fs::metadata(&full) {
            Ok(found) => entry(path.to_string(), &found).map(Some),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io(format!("look at {}", full.display()), &error)),
        }
    }

    /// Adds what stands at a path: a file, or all files below a directory. What is gone since it was listed is
    /// left out.
    fn add(&self, full: &Path, path: String, depth: usize, found: &mut BTreeMap<String, FileEntry>) -> Result<()> {
        match fs::metadata(full) {
            Ok(what) if what.is_dir() => self.walk(full, &path, depth + 1, found),
            Ok(what) => {
                found.insert(path.clone(), entry(path, &what)?);
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(Error::io(format!("look at {}", full.display()), &error)),
        }
    }

    fn walk(&self, dir: &Path, prefix: &str, depth: usize, found: &mut BTreeMap<String, FileEntry>) -> Result<()> {
        if depth > MAX_DEPTH {
            return Err(Error::invalid(format!(
                "{}: directories are nested more than {MAX_DEPTH} deep",
                dir.display()
            ))
            .help("a symbolic link may lead back to a directory above it"));
        }
        if dir.join(MANIFEST_FOLDER).is_dir() {
            return self.by_manifest(dir, prefix, &[], found);
        }
        for name in names(dir, depth == 0)? {
            if !is_hidden(&name) {
                self.add(&dir.join(&name), join(prefix, &name), depth, found)?;
            }
        }
        Ok(())
    }

    /// The files that the manifest of a directory names and the rest of a glob matches.
    fn by_manifest(
        &self,
        dir: &Path,
        prefix: &str,
        parts: &[Part],
        found: &mut BTreeMap<String, FileEntry>,
    ) -> Result<()> {
        let Some(manifest) = self.manifest else {
            return Err(Error::not_yet(format!("reading {}, which a file sink of Levada writes", dir.display())));
        };
        for name in (manifest.files)(dir)?.into_iter().filter(|name| covers(parts, name)) {
            let path = join(prefix, &name);
            match self.look(&path)? {
                Some(file) => found.insert(path, file),
                None => {
                    let full = dir.join(&name);
                    return Err(Error::corrupt(full.display(), "the manifest names this file, and it is gone"));
                }
            };
        }
        Ok(())
    }

    fn expand(
        &self,
        dir: &Path,
        prefix: &str,
        parts: &[Part],
        depth: usize,
        found: &mut BTreeMap<String, FileEntry>,
    ) -> Result<()> {
        let Some((part, rest)) = parts.split_first() else {
            return self.add(dir, prefix.to_string(), depth, found);
        };
        if dir.join(MANIFEST_FOLDER).is_dir() {
            return self.by_manifest(dir, prefix, parts, found);
        }
        if let Part::Name(name) = part {
            return self.expand(&dir.join(name), &join(prefix, name), rest, depth, found);
        }
        if !dir.is_dir() && !dir.as_os_str().is_empty() {
            return Ok(());
        }
        if let Part::Deep = part {
            self.expand_rest(dir, prefix, rest, depth, found)?;
        }
        for name in names(dir, depth == 0)? {
            let below = (&dir.join(&name), &join(prefix, &name));
            match part {
                Part::Pattern(pattern) if matches(pattern, &name) => {
                    self.expand(below.0, below.1, rest, depth + 1, found)?
                }
                Part::Deep if !is_hidden(&name) && below.0.is_dir() && depth < MAX_DEPTH => {
                    self.expand(below.0, below.1, parts, depth + 1, found)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// What `**` matches without a directory. At the end of a glob it matches only what is below.
    fn expand_rest(
        &self,
        dir: &Path,
        prefix: &str,
        rest: &[Part],
        depth: usize,
        found: &mut BTreeMap<String, FileEntry>,
    ) -> Result<()> {
        match rest {
            [] => self.walk(dir, prefix, depth, found),
            rest => self.expand(dir, prefix, rest, depth, found),
        }
    }
}

fn entry(path: String, found: &fs::Metadata) -> Result<FileEntry> {
    let modified = found.modified().map_err(|e| Error::io(format!("modification time of {path}"), &e))?;
    let nanos = match modified.duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_nanos()),
        Err(before) => i64::try_from(before.duration().as_nanos()).map(|nanos| -nanos),
    };
    let mtime = nanos.map_err(|_| Error::invalid(format!("{path}: its modification time is out of range")))?;
    Ok(FileEntry { path, mtime, size: found.len() })
}

/// The names in a directory; none when a directory below the root is gone meanwhile.
fn names(dir: &Path, root: bool) -> Result<Vec<String>> {
    let shown = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
    let entries = match fs::read_dir(shown) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound && !root => return Ok(Vec::new()),
        Err(error) => return Err(Error::io(format!("list {}", shown.display()), &error)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let name = entry.map_err(|e| Error::io(format!("list {}", shown.display()), &e))?.file_name();
        match name.into_string() {
            Ok(name) => names.push(name),
            Err(name) => {
                return Err(Error::invalid(format!("{}: the file name is not UTF-8", dir.join(name).display()))
                    .help("rename the file, or read another directory"));
            }
        }
    }
    Ok(names)
}

fn join(prefix: &str, name: &str) -> String {
    if prefix.is_empty() { name.to_string() } else { format!("{prefix}/{name}") }
}

/// Whether writers use such a name for what isn't ready. `_k=v` is a partition of a column `_k`.
pub fn is_hidden(name: &str) -> bool {
    name.starts_with('.') || (name.starts_with('_') && !name.contains('='))
}

#[cfg(test)]
mod tests {
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
        Place::parse(written, None).unwrap().list().unwrap().into_iter().map(|file| file.path).collect()
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
        let error = |path: &str| Place::parse(path, None).err().map(|e| e.to_string()).unwrap_or_default();
        assert_eq!(error("does-not-exist"), "path does-not-exist: there is no such file or directory");
        assert_eq!(error("does-not-exist/*.json"), "path does-not-exist/*.json: there is no directory does-not-exist");
        assert_eq!(error("s3://bucket/x"), "not supported yet: files in s3://: s3://bucket/x");
        assert_eq!(
            error("https://example.test/x.json"),
            "not supported yet: files in https://: https://example.test/x.json"
        );
        assert!(error("file:relative").contains("no such file"));
        assert!(error("file:///a%2").contains("two hex digits"));
        assert!(error("src[").contains("src["));
    }

    #[test]
    fn a_manifest_decides_what_is_there() {
        let dir = dir(&["out/part-0", "out/part-1", "out/_levada/0"]);
        let root = dir.path().to_str().unwrap();
        assert!(Place::parse(root, None).unwrap().list().is_err_and(|e| e.to_string().contains("not supported yet")));
        let manifest = |files| Manifest { files, folder: |_| None };
        let committed = manifest(|_| Ok(vec!["part-1".into()]));
        let place = Place::parse(root, Some(committed)).unwrap();
        assert_eq!(place.list().unwrap().into_iter().map(|f| f.path).collect::<Vec<_>>(), ["out/part-1"]);
        let globbed = |pattern: &str| {
            let both = manifest(|_| Ok(vec!["part-1".into(), "k=1/part-2".into()]));
            let place = Place::parse(&format!("{root}/{pattern}"), Some(both)).unwrap();
            place.list().map(|files| files.into_iter().map(|f| f.path).collect::<Vec<_>>())
        };
        assert_eq!(globbed("out/part-*").unwrap(), ["part-1"]);
        assert_eq!(globbed("*/part-*").unwrap(), ["out/part-1"]);
        assert!(globbed("o*").is_err_and(|e| e.to_string().contains("part-2")));
        let missing = manifest(|_| Ok(vec!["part-2".into()]));
        let error = Place::parse(root, Some(missing)).unwrap().list().unwrap_err();
        assert!(error.to_string().contains("part-2"), "{error}");
    }
}
