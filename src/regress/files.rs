//! Which files are run, in which order.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use crate::error::{Error, Result};

/// One of so many equal parts of the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    /// From 1.
    pub part: u64,
    pub of: u64,
}

impl Shard {
    /// Whether a file is in this part: by its path from the working directory, however it was written.
    fn has(self, here: &Path, file: &Path) -> bool {
        let whole = whole(file);
        let name = whole.strip_prefix(here).unwrap_or(&whole);
        fnv(&name.display().to_string()) % self.of == self.part - 1
    }
}

impl std::fmt::Display for Shard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.part, self.of)
    }
}

impl std::str::FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let parsed = text.split_once('/').and_then(|(part, of)| Some((part.parse().ok()?, of.parse().ok()?)));
        match parsed {
            Some((part, of)) if 1 <= part && part <= of => Ok(Shard { part, of }),
            _ => Err(format!("{text:?} is no part such as 1/4")),
        }
    }
}

/// What was asked for.
#[derive(Debug, Clone, Default)]
pub struct Files {
    /// Files, folders, patterns, and files with a line: `a.slt:12`.
    pub paths: Vec<String>,
    pub shard: Option<Shard>,
    pub shuffle: Option<u64>,
}

/// A file, and the line up to which it is run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TestFile {
    pub path: PathBuf,
    pub line: Option<usize>,
}

impl Files {
    /// The files, each once: by their paths, or shuffled.
    ///
    /// # Errors
    /// Io (no such file): a path that is none, a pattern that no file matches. InvalidInput: a line that the file has not.
    pub fn find(&self) -> Result<Vec<TestFile>> {
        let mut files = Vec::new();
        for path in &self.paths {
            find(path, &mut files)?;
        }
        files.sort();
        // However it is written, a file is one.
        let mut seen: BTreeMap<PathBuf, TestFile> = BTreeMap::new();
        for file in files {
            let known = seen.entry(whole(&file.path)).or_insert_with(|| file.clone());
            // The whole file holds what stands up to a line of it.
            known.line = known.line.zip(file.line).map(|(one, other)| one.max(other));
        }
        let mut files: Vec<TestFile> = seen.into_values().collect();
        files.sort();
        if let Some(shard) = self.shard {
            let here = whole(Path::new("."));
            files.retain(|file| shard.has(&here, &file.path));
        }
        if let Some(seed) = self.shuffle {
            shuffle(&mut files, seed);
        }
        Ok(files)
    }
}

/// A path without links and detours; as it is where it leads nowhere.
fn whole(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_path_buf())
}

fn find(text: &str, files: &mut Vec<TestFile>) -> Result<()> {
    let path = Path::new(text);
    if path.is_file() {
        files.push(TestFile { path: path.to_path_buf(), line: None });
        return Ok(());
    }
    if path.is_dir() {
        return folder(path, &mut Vec::new(), files);
    }
    if let Some((file, line)) = text.rsplit_once(':')
        && let Ok(line) = line.parse()
        && Path::new(file).is_file()
    {
        let whole = std::fs::read_to_string(file).map_err(|e| Error::io(format!("reading {file}"), &e))?;
        let lines = whole.lines().count();
        if line == 0 || line > lines {
            return Err(Error::invalid(format!("{text}: there is no line {line}, the file has {lines}"))
                .help("FILE:LINE runs the records up to that line, which counts from 1"));
        }
        files.push(TestFile { path: file.into(), line: Some(line) });
        return Ok(());
    }
    let none = |why: &str| Error::Io {
        context: text.to_string(),
        message: why.to_string(),
        kind: std::io::ErrorKind::NotFound,
        transient: false,
    };
    if !is_pattern(text) {
        return Err(none("there is no such file or folder"));
    }
    let mut found = Vec::new();
    matching(text, &mut found).map_err(|e| none(&format!("this is no pattern: {e}")))??;
    let before = files.len();
    let names_bad = is_bad(path);
    for path in found {
        if is_bad(&path) && !names_bad {
            continue;
        }
        match path.is_dir() {
            true => folder(&path, &mut Vec::new(), files)?,
            false => files.push(TestFile { path, line: None }),
        }
    }
    if files.len() == before { Err(none("no file matches this pattern")) } else { Ok(()) }
}

/// Whether a part of a path is a pattern.
fn is_pattern(part: &str) -> bool {
    part.contains(['*', '?', '['])
}

/// The files and folders that a pattern matches, with links followed as [`folder`] follows them: the crate's own walk goes round
/// and round. What is hidden matches only a part that begins with a point.
fn matching(text: &str, found: &mut Vec<PathBuf>) -> std::result::Result<Result<()>, glob::PatternError> {
    let parts: Vec<&str> = Path::new(text).iter().filter_map(|part| part.to_str()).collect();
    let fixed = parts.iter().position(|part| is_pattern(part)).unwrap_or(parts.len());
    let (base, rest) = parts.split_at(fixed);
    let pattern = glob::Pattern::new(&rest.join("/"))?;
    let base: PathBuf = base.iter().collect();
    let walk = Walk {
        base: &base,
        pattern: &pattern,
        deepest: if rest.contains(&"**") { usize::MAX } else { rest.len() },
        only_folders: rest.last() == Some(&"**") || text.ends_with('/'),
    };
    if rest == ["**"] {
        // The folder itself is among them.
        let here = if base.as_os_str().is_empty() { PathBuf::from(".") } else { base };
        found.extend(here.is_dir().then_some(here));
        return Ok(Ok(()));
    }
    Ok(walk.below(Path::new(""), 1, &mut Vec::new(), found))
}

/// What of the paths below a folder fits a pattern.
struct Walk<'a> {
    base: &'a Path,
    pattern: &'a glob::Pattern,
    /// No path of more parts can fit.
    deepest: usize,
    only_folders: bool,
}

impl Walk<'_> {
    fn below(&self, at: &Path, depth: usize, above: &mut Vec<PathBuf>, found: &mut Vec<PathBuf>) -> Result<()> {
        let options = glob::MatchOptions {
            case_sensitive: true,
            require_literal_separator: true,
            require_literal_leading_dot: true,
        };
        let here = self.base.join(at);
        let here = if here.as_os_str().is_empty() { PathBuf::from(".") } else { here };
        let real = whole(&here);
        // A pattern below what is no folder matches nothing.
        if !here.is_dir() || above.contains(&real) {
            return Ok(());
        }
        above.push(real);
        let io = |e: &std::io::Error| Error::io(format!("reading {}", here.display()), e);
        for entry in std::fs::read_dir(&here).map_err(|e| io(&e))? {
            let name = at.join(entry.map_err(|e| io(&e))?.file_name());
            let path = self.base.join(&name);
            let is_folder = path.is_dir();
            if self.pattern.matches_path_with(&name, options) && (is_folder || !self.only_folders) {
                found.push(path);
            }
            if is_folder && depth < self.deepest {
                self.below(&name, depth + 1, above, found)?;
            }
        }
        above.pop();
        Ok(())
    }
}

/// The name of folders that hold what is meant to fail.
const BAD: &str = "bad";

/// Whether a path leads through a folder of that name.
fn is_bad(path: &Path) -> bool {
    path.components().any(|part| part == Component::Normal(BAD.as_ref()))
}

/// All `.slt` files below a folder, but what is hidden; folders named `bad` are run only when they are named. `above`: the folders
/// on the way, so that a link to one of them leads no further.
fn folder(path: &Path, above: &mut Vec<PathBuf>, files: &mut Vec<TestFile>) -> Result<()> {
    let here = whole(path);
    if above.contains(&here) {
        return Ok(());
    }
    above.push(here);
    let io = |e: &std::io::Error| Error::io(format!("reading {}", path.display()), e);
    for entry in std::fs::read_dir(path).map_err(|e| io(&e))? {
        let path = entry.map_err(|e| io(&e))?.path();
        let is_hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if is_hidden {
            continue;
        }
        if path.is_dir() {
            if path.file_name().is_none_or(|name| name != BAD) {
                folder(&path, above, files)?;
            }
        } else if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("slt")) {
            files.push(TestFile { path, line: None });
        }
    }
    above.pop();
    Ok(())
}

/// FNV-1a: the same on every machine and in every version.
fn fnv(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Fisher and Yates, with the numbers of SplitMix64: one seed, one order.
fn shuffle(files: &mut [TestFile], seed: u64) {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    for at in (1..files.len()).rev() {
        files.swap(at, (next() % (at as u64 + 1)) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_hold_each_file_once_and_shuffling_loses_none() {
        let folder = tempfile::tempdir().unwrap();
        for n in 0..20 {
            std::fs::write(folder.path().join(format!("{n:02}.slt")), "").unwrap();
        }
        let place = folder.path().display().to_string();
        let all = Files { paths: vec![place.clone(), format!("{place}/0*.slt")], ..Files::default() };
        let found = all.find().unwrap();
        assert_eq!(found.len(), 20);
        let parts =
            (1..=3).flat_map(|part| Files { shard: Some(Shard { part, of: 3 }), ..all.clone() }.find().unwrap());
        let mut parts: Vec<_> = parts.collect();
        parts.sort();
        assert_eq!(parts, found);
        let mut shuffled = Files { shuffle: Some(7), ..all.clone() }.find().unwrap();
        assert_ne!(shuffled, found);
        assert_eq!(shuffled, Files { shuffle: Some(7), ..all }.find().unwrap());
        shuffled.sort();
        assert_eq!(shuffled, found);
    }

    #[test]
    fn a_file_is_run_once_and_one_that_is_meant_to_fail_only_when_its_folder_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().display().to_string();
        std::fs::create_dir_all(folder.path().join("d/bad")).unwrap();
        for name in ["d/a.slt", "d/B.SLT", "d/bad/x.slt"] {
            std::fs::write(folder.path().join(name), "halt\n\n").unwrap();
        }
        std::os::unix::fs::symlink("..", folder.path().join("d/up")).unwrap();
        let found = |paths: &[&str]| {
            let paths = paths.iter().map(|path| format!("{place}/{path}")).collect();
            let files = Files { paths, ..Files::default() }.find();
            files.map(|files| files.into_iter().map(|file| whole(&file.path)).collect::<Vec<_>>())
        };
        let both = [whole(&folder.path().join("d/B.SLT")), whole(&folder.path().join("d/a.slt"))];
        assert_eq!(found(&["d"]).unwrap(), both, "the link leads back, and no further");
        assert_eq!(found(&["d/../d", "d/./a.slt", "d"]).unwrap().len(), 2);
        assert_eq!(found(&["d/**/*.slt"]).unwrap().iter().filter(|path| is_bad(path)).count(), 0);
        assert_eq!(found(&["d/bad/*.slt"]).unwrap().len(), 1);
        assert_eq!(found(&["d/a.slt:2"]).unwrap().len(), 1);
        let lines = |paths: &[&str]| {
            let paths = paths.iter().map(|path| format!("{place}/{path}")).collect();
            let found = Files { paths, ..Files::default() }.find().unwrap();
            found.into_iter().map(|file| file.line).collect::<Vec<_>>()
        };
        assert_eq!(lines(&["d/a.slt", "d/./a.slt:1"]), [None]);
        assert_eq!(lines(&["d/a.slt:2", "d/a.slt:1"]), [Some(2)]);
        for line in ["0", "3", "999"] {
            let error = found(&[&format!("d/a.slt:{line}")]).unwrap_err().to_string();
            assert!(error.contains(&format!("there is no line {line}, the file has 2")), "{error}");
        }
    }

    #[test]
    fn patterns_go_round_no_links_and_what_is_hidden_is_run_only_when_it_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().display().to_string();
        for name in ["a.slt", ".hid.slt", "sub/x.slt", "sub/deep/y.slt", ".git/h.slt", "z.test"] {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "halt\n").unwrap();
        }
        for (link, to) in [("sub/loop", ".."), ("sub/again", "../sub")] {
            std::os::unix::fs::symlink(to, folder.path().join(link)).unwrap();
        }
        let found = |path: &str| {
            let files = Files { paths: vec![format!("{place}/{path}")], ..Files::default() }.find().unwrap();
            let short = |file: &TestFile| file.path.strip_prefix(folder.path()).unwrap().display().to_string();
            files.iter().map(short).collect::<Vec<_>>()
        };
        let all = ["a.slt", "sub/deep/y.slt", "sub/x.slt"];
        assert_eq!(found("."), all);
        assert_eq!(found("**/*.slt"), all);
        assert_eq!(found("**"), all);
        assert_eq!(found("*"), ["a.slt", "sub/deep/y.slt", "sub/x.slt", "z.test"], "folders are run whole");
        assert_eq!(found("*.slt"), ["a.slt"]);
        assert_eq!(found("*/*.slt"), ["sub/x.slt"]);
        assert_eq!(found("s?b/[d]eep/*.slt"), ["sub/deep/y.slt"]);
        assert_eq!(found(".git"), [".git/h.slt"]);
        assert_eq!(found(".g*/*"), [".git/h.slt"]);
        assert_eq!(found(".h*.slt"), [".hid.slt"]);
        let none = Files { paths: vec![format!("{place}/no/*.slt")], ..Files::default() }.find();
        assert!(none.is_err_and(|e| e.to_string().contains("no file matches")));
    }

    #[test]
    fn a_part_does_not_depend_on_how_a_path_is_written() {
        let here = whole(Path::new("."));
        for part in 1..=4 {
            let shard = Shard { part, of: 4 };
            let in_it = |path: &Path| shard.has(&here, path);
            let file = Path::new("Cargo.toml");
            assert_eq!(in_it(file), in_it(&here.join(file)));
            assert_eq!(in_it(file), in_it(Path::new("./src/../Cargo.toml")));
        }
    }

    #[test]
    fn what_is_not_there_is_said() {
        for (path, why) in [("no/such.slt", "no such file"), ("no/*.slt", "no file matches")] {
            let files = Files { paths: vec![path.into()], ..Files::default() };
            assert!(files.find().unwrap_err().to_string().contains(why), "{path}");
        }
        assert!("0/4".parse::<Shard>().is_err() && "5/4".parse::<Shard>().is_err() && "x".parse::<Shard>().is_err());
    }
}
