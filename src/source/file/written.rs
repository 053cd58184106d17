//! Whether a source would read the files that somebody writes into a folder: a query that reads what it writes has no end.
//!
//! Places are compared as they are, not as they are written: local ones without links and `..`, remote ones without the
//! spelling of their scheme. Of names that are not known yet (numbers, values of columns) it is asked whether there can
//! be one that the source reads.

use std::fs;
use std::path::{Component, Path, PathBuf};

use super::glob::{Name, Part, braces, is_glob, may_cover, parts, split_root};
use super::options::FileOptions;
use super::place::is_hidden;
use crate::error::Result;
use crate::options::Options;
use crate::storage::{Location, RemoteUrl};

/// The files that are written.
#[derive(Debug, Clone)]
pub struct Written {
    /// The folder, as in a statement.
    pub path: String,
    /// Of an object store.
    pub endpoint: Option<String>,
    /// Columns that become folders in it, `column=value`.
    pub columns: Vec<String>,
    /// With what the names of the files begin and end.
    pub prefix: &'static str,
    pub suffix: String,
}

/// Whether a source of these options (all but `connector`) would read them.
///
/// # Errors
/// InvalidInput: an option or a path is malformed.
pub fn would_read(options: &Options, written: &Written) -> Result<bool> {
    let options = FileOptions::parse(options)?;
    let at = |path: &str| Location::parse(path, "files");
    let (reads, inside) = match (at(&options.path)?, at(&written.path)?) {
        (Location::Local(reads), Location::Local(folder)) => {
            let reads = Reads::local(&reads)?;
            let inside = canonical(&folder).strip_prefix(canonical(Path::new(&reads.root))).ok().map(names);
            (reads, inside)
        }
        (Location::Remote(reads), Location::Remote(folder)) => {
            let (of_source, of_sink) = (&options.store.endpoint, &written.endpoint);
            if !same_store(&reads, &folder) || (of_source != of_sink && of_source.is_some() && of_sink.is_some()) {
                return Ok(false);
            }
            let reads = Reads::matched(&reads.path)?;
            let inside = below(&reads.root, &folder.path);
            (reads, inside)
        }
        _ => return Ok(false),
    };
    Ok(inside.is_some_and(|inside| reads.any(&inside, written)))
}

/// What a source reads: a folder, and in it what any of the globs matches, or all.
struct Reads {
    root: String,
    globs: Option<Vec<Vec<Part>>>,
}

impl Reads {
    /// A name that exists is no pattern.
    fn local(path: &Path) -> Result<Self> {
        let text = path.to_string_lossy();
        if path.exists() { Ok(Reads { root: text.into_owned(), globs: None }) } else { Self::matched(&text) }
    }

    fn matched(path: &str) -> Result<Self> {
        if !is_glob(path) {
            return Ok(Reads { root: path.to_string(), globs: None });
        }
        let (root, pattern) = split_root(path);
        let globs = braces(pattern).iter().map(|glob| parts(path, glob)).collect::<Result<Vec<_>>>()?;
        Ok(Reads { root: root.to_string(), globs: Some(globs) })
    }

    /// Whether it reads a file that is written into the folder of these names below the root.
    fn any(&self, inside: &[String], written: &Written) -> bool {
        let Some(globs) = &self.globs else { return !inside.iter().any(|name| is_hidden(name)) };
        let folders = inside.iter().map(|name| Name::Known(name.clone()));
        let columns = written.columns.iter().map(|column| Name::Like(format!("{column}="), String::new()));
        let file = Name::Like(written.prefix.to_string(), written.suffix.clone());
        let names: Vec<Name> = folders.chain(columns).chain([file]).collect();
        globs.iter().any(|parts| may_cover(parts, &names))
    }
}

/// A path without links and `..`, as far as it is there; the rest of it is taken as it is written.
fn canonical(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(if path.as_os_str().is_empty() { Path::new(".") } else { path });
    let mut whole = PathBuf::new();
    for component in absolute.as_deref().unwrap_or(path).components() {
        match component {
            Component::ParentDir => _ = whole.pop(),
            other => {
                whole.push(other);
                whole = fs::canonicalize(&whole).unwrap_or(whole);
            }
        }
    }
    whole
}

fn names(path: &Path) -> Vec<String> {
    path.components().map(|component| component.as_os_str().to_string_lossy().into_owned()).collect()
}

fn same_store(one: &RemoteUrl, other: &RemoteUrl) -> bool {
    one.scheme == other.scheme && one.authority == other.authority
}

/// The names of a key below a root.
fn below(root: &str, key: &str) -> Option<Vec<String>> {
    let names = |path: &str| -> Vec<String> { path.split('/').filter(|n| !n.is_empty()).map(String::from).collect() };
    let (root, key) = (names(root), names(key));
    key.starts_with(&root).then(|| key[root.len()..].to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{OptionEntry, OptionValue};

    fn reads(source: &str, sink: &str, columns: &[&str]) -> bool {
        let option = |name: &str, value: &str| OptionEntry {
            name: name.into(),
            value: OptionValue::Text(value.into()),
            span: Default::default(),
        };
        let options = Options { entries: vec![option("path", source), option("format", "json")] };
        let columns = columns.iter().map(|column| column.to_string()).collect();
        let (path, suffix) = (sink.to_string(), ".json".to_string());
        would_read(&options, &Written { path, endpoint: None, columns, prefix: "part-", suffix }).unwrap()
    }

    #[test]
    fn a_folder_in_the_sources_own_is_read_unless_it_is_hidden() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().display().to_string();
        fs::create_dir_all(dir.path().join("in/sub")).unwrap();
        std::os::unix::fs::symlink("in/sub", dir.path().join("link")).unwrap();
        let source = format!("{root}/in");
        for inside in [
            "in",
            "in/",
            "in/out",
            "in/sub/deep/out",
            "link",
            "link/out",
            "link/../out",
            "sub/../in/k",
            "in/_k=1",
            "in/./x",
        ] {
            assert!(reads(&source, &format!("{root}/{inside}"), &[]), "{inside}");
        }
        for outside in ["out", "in2", "in/../out", "in/_out", "in/.out", "in/_x/out"] {
            assert!(!reads(&source, &format!("{root}/{outside}"), &[]), "{outside}");
        }
        assert!(reads(&format!("file://{root}/link"), &format!("{root}/in/sub/out"), &[]));
        assert!(!reads(&source, "s3://bucket/in", &[]));
    }

    #[test]
    fn a_glob_is_asked_whether_it_can_match_a_part_file() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().display().to_string();
        let glob = |glob: &str, sink: &str, columns: &[&str]| {
            reads(&format!("{root}/{glob}"), &format!("{root}/{sink}"), columns)
        };
        for pattern in
            ["*", "**", "**/*.json", "*/*.json", "*/part-*", "*/part-00001-*", "o?t/*n", "{x,out}/*", "**/out/*"]
        {
            assert!(glob(pattern, "out", &[]), "{pattern}");
        }
        for pattern in ["*.json", "*/*.csv", "*/data-*", "x*/*", "out/*/*.json", "*/*.json.gz"] {
            assert!(!glob(pattern, "out", &[]), "{pattern}");
        }
        assert!(glob("out/*/*.json", "out", &["day"]) && glob("out/day=2024*/*", "out", &["day"]));
        assert!(!glob("out/hour=*/*", "out", &["day"]) && !glob("out/*/x/*", "out", &["day"]));
        assert!(!glob("**/*.json", "_out", &[]));
    }

    #[test]
    fn objects_are_compared_by_their_keys() {
        assert!(reads("s3://lake/in", "s3://lake/in/out", &[]) && reads("s3a://lake/in/", "s3://lake/in", &[]));
        assert!(reads("s3://lake/*/x/*.json", "s3://lake/a/x", &[]) && reads("s3://lake", "s3://lake/out", &[]));
        assert!(!reads("s3://lake/in", "s3://lake/in2", &[]) && !reads("s3://lake/in", "s3://pond/in", &[]));
        assert!(!reads("s3://lake/in", "s3://lake/in/_out", &[]) && !reads("s3://lake/in", "gs://lake/in", &[]));
    }
}
