//! The part files of one batch: opened as rows come, a bounded number at a time, and named so that no two runs ever
//! write the same file.
//!
//! `part-<batch>-<partition>-<run>[-<again>].<extension>`, the run by eight hexadecimal digits. `again` counts the
//! files that one partition of a batch has in one folder: more than one where many folders take turns.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::manifest::{self, FileEntry};
use super::writer::{FileFormat, PartWriter};
use crate::error::{Error, Result};
use crate::sink::BatchId;

/// Files that are open at the same time, at the most.
const MAX_OPEN: usize = 128;

/// Parquet rows that wait in memory for their row groups, over all files, in bytes.
const MAX_BUFFERED: usize = 128 << 20;

/// The files of the batch that is being written.
pub(super) struct Parts {
    root: PathBuf,
    format: FileFormat,
    schema: SchemaRef,
    /// Eight hexadecimal digits.
    run: String,
    batch: BatchId,
    open: BTreeMap<(usize, String), OpenPart>,
    /// How many files each partition has begun in each folder.
    begun: BTreeMap<(usize, String), u64>,
    finished: Vec<FileEntry>,
    /// All files that were created for this batch.
    created: Vec<PathBuf>,
    /// Folders whose list of files must be made durable.
    touched: BTreeSet<PathBuf>,
    /// Counts writes, to tell which file was used last.
    clock: u64,
}

struct OpenPart {
    /// Relative to the root, with `/`.
    path: String,
    writer: PartWriter,
    used: u64,
}

impl Parts {
    pub(super) fn new(root: PathBuf, format: FileFormat, schema: SchemaRef, run_id: &str) -> Self {
        Parts {
            root,
            format,
            schema,
            run: run_digits(run_id),
            batch: 0,
            open: BTreeMap::new(),
            begun: BTreeMap::new(),
            finished: Vec::new(),
            created: Vec::new(),
            touched: BTreeSet::new(),
            clock: 0,
        }
    }

    /// Begins a batch, with nothing.
    pub(super) fn begin(&mut self, batch: BatchId) {
        self.forget();
        self.batch = batch;
    }

    /// Adds rows that one partition has for one folder.
    pub(super) fn write(&mut self, partition: usize, folder: String, rows: &RecordBatch) -> Result<()> {
        self.clock += 1;
        let key = (partition, folder);
        if !self.open.contains_key(&key) {
            self.make_room()?;
            let part = self.create(&key)?;
            self.open.insert(key.clone(), part);
        }
        if let Some(part) = self.open.get_mut(&key) {
            part.used = self.clock;
            part.writer.write(rows)?;
        }
        self.bound_buffers()
    }

    /// Ends all files and makes them durable, in their folders too. Answers them in the order of their names.
    pub(super) fn finish(&mut self) -> Result<Vec<FileEntry>> {
        while let Some((_, part)) = self.open.pop_first() {
            self.close(part)?;
        }
        for folder in std::mem::take(&mut self.touched) {
            sync_folder(&folder)?;
        }
        let mut files = std::mem::take(&mut self.finished);
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(files)
    }

    /// Removes all files of the batch.
    pub(super) fn remove(&mut self) -> Result<()> {
        self.open.clear();
        let mut result = Ok(());
        for path in &self.created {
            match fs::remove_file(path) {
                Err(e) if e.kind() != ErrorKind::NotFound => {
                    result = Err(Error::io(format!("removing {}", path.display()), &e));
                }
                _ => {}
            }
        }
        self.forget();
        result
    }

    /// Leaves the files as they are.
    pub(super) fn forget(&mut self) {
        self.open.clear();
        self.begun.clear();
        self.finished.clear();
        self.created.clear();
        self.touched.clear();
    }

    fn create(&mut self, key: &(usize, String)) -> Result<OpenPart> {
        let (partition, folder) = key;
        let again = self.begun.entry(key.clone()).or_default();
        let suffix = if *again == 0 { String::new() } else { format!("-{again}") };
        *again += 1;
        let name = format!("part-{:05}-{partition:03}-{}{suffix}.{}", self.batch, self.run, self.format.extension());
        let path = format!("{folder}{name}");
        let full = self.root.join(&path);
        let parent = full.parent().unwrap_or(&self.root).to_path_buf();
        make_folder(&parent)?;
        self.touched.insert(parent);
        self.created.push(full.clone());
        Ok(OpenPart { path, writer: PartWriter::create(full, self.format, &self.schema)?, used: self.clock })
    }

    fn close(&mut self, part: OpenPart) -> Result<()> {
        let written = part.writer.finish()?;
        let entry = FileEntry { path: part.path, size: written.size, rows: written.rows, crc32c: written.crc32c };
        self.finished.push(entry);
        Ok(())
    }

    /// Ends the file that was not used for longest, when there are too many.
    fn make_room(&mut self) -> Result<()> {
        if self.open.len() < MAX_OPEN {
            return Ok(());
        }
        let oldest = self.open.iter().min_by_key(|(_, part)| part.used).map(|(key, _)| key.clone());
        match oldest.and_then(|key| self.open.remove(&key)) {
            Some(part) => self.close(part),
            None => Ok(()),
        }
    }

    /// Writes out the largest of the row groups in memory, when they are too large together.
    fn bound_buffers(&mut self) -> Result<()> {
        if self.open.values().map(|part| part.writer.buffered()).sum::<usize>() <= MAX_BUFFERED {
            return Ok(());
        }
        match self.open.values_mut().max_by_key(|part| part.writer.buffered()) {
            Some(part) => part.writer.flush(),
            None => Ok(()),
        }
    }
}

/// Part files under `root` that the manifest doesn't name, in the order of their paths.
pub(super) fn stray_parts(root: &Path, named: &BTreeSet<String>) -> Result<Vec<PathBuf>> {
    let mut strays = Vec::new();
    collect_strays(root, "", named, &mut strays)?;
    strays.sort();
    Ok(strays)
}

/// Looks into the folders of partitions only: others were not made by a sink.
fn collect_strays(root: &Path, folder: &str, named: &BTreeSet<String>, strays: &mut Vec<PathBuf>) -> Result<()> {
    let listed = root.join(folder);
    let failed = |e: std::io::Error| Error::io(format!("listing {}", listed.display()), &e);
    let entries = match fs::read_dir(&listed) {
        Ok(entries) => entries,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(failed(e)),
    };
    for entry in entries {
        let entry = entry.map_err(failed)?;
        // A name that is no UTF-8 is not ours.
        let Ok(name) = entry.file_name().into_string() else { continue };
        let kind = entry.file_type().map_err(failed)?;
        if kind.is_dir() && name.contains('=') && name != manifest::FOLDER {
            collect_strays(root, &format!("{folder}{name}/"), named, strays)?;
        } else if kind.is_file() && is_part(&name) && !named.contains(&format!("{folder}{name}")) {
            strays.push(entry.path());
        }
    }
    Ok(())
}

/// Whether a name is one that [`Parts`] gives.
fn is_part(name: &str) -> bool {
    let Some((stem, extension)) = name.split_once('.') else { return false };
    let Some(stem) = stem.strip_prefix("part-") else { return false };
    let pieces: Vec<&str> = stem.split('-').collect();
    let digits = |text: &str, least: usize| text.len() >= least && text.bytes().all(|b| b.is_ascii_digit());
    let numbered = match pieces.as_slice() {
        [batch, partition, run] | [batch, partition, run, _] => {
            let hex = run.len() == 8 && run.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
            digits(batch, 5) && digits(partition, 3) && hex
        }
        _ => false,
    };
    let known = ["json", "csv", "parquet", "json.gz", "json.zst", "csv.gz", "csv.zst"];
    numbered && pieces.get(3).is_none_or(|again| digits(again, 1)) && known.contains(&extension)
}

/// The batch that a part file is of.
pub(super) fn batch_of(path: &Path) -> Option<BatchId> {
    let name = path.file_name()?.to_str()?;
    name.strip_prefix("part-")?.split('-').next()?.parse().ok()
}

/// Eight hexadecimal digits of a run: the first ones of its id, or its checksum.
fn run_digits(run_id: &str) -> String {
    match run_id.get(..8) {
        Some(digits) if digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) => digits.into(),
        _ => format!("{:08x}", crc32c::crc32c(run_id.as_bytes())),
    }
}

/// Makes a folder and those above it, each durable in the one above.
pub(super) fn make_folder(folder: &Path) -> Result<()> {
    if folder.as_os_str().is_empty() || folder.is_dir() {
        return Ok(());
    }
    let above = folder.parent().unwrap_or(Path::new(""));
    make_folder(above)?;
    match fs::create_dir(folder) {
        Err(e) if e.kind() != ErrorKind::AlreadyExists || !folder.is_dir() => {
            return Err(Error::io(format!("creating folder {}", folder.display()), &e));
        }
        _ => {}
    }
    sync_folder(if above.as_os_str().is_empty() { Path::new(".") } else { above })
}

fn sync_folder(folder: &Path) -> Result<()> {
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(|e| Error::io(format!("syncing folder {}", folder.display()), &e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_apart_from_foreign_ones() {
        let ours =
            ["part-00000-000-1a2b3c4d.json", "part-123456-011-00000000-12.csv.gz", "part-00007-003-deadbeef.parquet"];
        assert!(ours.iter().all(|name| is_part(name)));
        let foreign = [
            "part-00000-c000.json",
            "part-00000-1a2b3c4d-1111-2222-3333-444455556666-c000.json",
            "part-00000-000-1a2b3c4d.txt",
            "part-00000-000-1A2B3C4D.json",
            "part-0-0-1a2b3c4d.json",
            "part-00000-000-1a2b3c4d-x.json",
            "xpart-00000-000-1a2b3c4d.json",
            "data.json",
        ];
        assert!(foreign.iter().all(|name| !is_part(name)));
    }

    #[test]
    fn a_run_has_eight_digits() {
        assert_eq!(run_digits("1a2b3c4d-0000-4000-8000-000000000000"), "1a2b3c4d");
        assert_eq!(run_digits("run").len(), 8);
        assert_ne!(run_digits("run"), run_digits("run2"));
    }
}
