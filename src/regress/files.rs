//! Which files are run, in which order.

use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// One of so many equal parts of the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    /// From 1.
    pub part: u64,
    pub of: u64,
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
    /// Io (no such file): a path that is none, a pattern that no file matches.
    pub fn find(&self) -> Result<Vec<TestFile>> {
        let mut files = Vec::new();
        for path in &self.paths {
            find(path, &mut files)?;
        }
        files.sort();
        files.dedup();
        if let Some(shard) = self.shard {
            files.retain(|file| fnv(&file.path.display().to_string()) % shard.of == shard.part - 1);
        }
        if let Some(seed) = self.shuffle {
            shuffle(&mut files, seed);
        }
        Ok(files)
    }
}

fn find(text: &str, files: &mut Vec<TestFile>) -> Result<()> {
    let path = Path::new(text);
    if path.is_file() {
        files.push(TestFile { path: path.to_path_buf(), line: None });
        return Ok(());
    }
    if path.is_dir() {
        return folder(path, files);
    }
    if let Some((file, line)) = text.rsplit_once(':')
        && let Ok(line) = line.parse()
        && Path::new(file).is_file()
    {
        files.push(TestFile { path: file.into(), line: Some(line) });
        return Ok(());
    }
    let none = |why: &str| Error::Io {
        context: text.to_string(),
        message: why.to_string(),
        kind: std::io::ErrorKind::NotFound,
        transient: false,
    };
    if !text.contains(['*', '?', '[']) {
        return Err(none("there is no such file or folder"));
    }
    let found = glob::glob(text).map_err(|e| none(&format!("this is no pattern: {e}")))?;
    let before = files.len();
    for path in found {
        let path = path.map_err(|e| none(&e.to_string()))?;
        match path.is_dir() {
            true => folder(&path, files)?,
            false => files.push(TestFile { path, line: None }),
        }
    }
    if files.len() == before { Err(none("no file matches this pattern")) } else { Ok(()) }
}

/// All `.slt` files below a folder; folders named `bad` hold what is meant to fail, and are run only when they are named.
fn folder(path: &Path, files: &mut Vec<TestFile>) -> Result<()> {
    let io = |e: &std::io::Error| Error::io(format!("reading {}", path.display()), e);
    for entry in std::fs::read_dir(path).map_err(|e| io(&e))? {
        let path = entry.map_err(|e| io(&e))?.path();
        if path.is_dir() {
            if path.file_name().is_none_or(|name| name != "bad") {
                folder(&path, files)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "slt") {
            files.push(TestFile { path, line: None });
        }
    }
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
    fn what_is_not_there_is_said() {
        for (path, why) in [("no/such.slt", "no such file"), ("no/*.slt", "no file matches")] {
            let files = Files { paths: vec![path.into()], ..Files::default() };
            assert!(files.find().unwrap_err().to_string().contains(why), "{path}");
        }
        assert!("0/4".parse::<Shard>().is_err() && "5/4".parse::<Shard>().is_err() && "x".parse::<Shard>().is_err());
    }
}
