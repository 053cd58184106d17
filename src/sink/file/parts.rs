//! The part files of one batch: opened as rows come, a bounded number at a time, and named so that no two runs ever
//! write the same file.
//!
//! `part-<batch>-<partition>-<run>[-<again>].<extension>`, the run by eight hexadecimal digits. `again` counts the
//! files that one partition of a batch has in one folder: more than one where many folders take turns, or where the batch
//! was begun again.

use std::collections::BTreeMap;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::folder::{Finished, Folder};
use super::manifest::FileEntry;
use super::writer::{FileFormat, PartWriter};
use crate::error::Result;
use crate::sink::BatchId;

/// With what their names begin.
pub(super) const PREFIX: &str = "part-";

/// Files that are open at the same time, at the most.
const MAX_OPEN: usize = 128;

/// What waits in memory, over all files, in bytes: parquet rows for their row groups, and as much for the files to take it.
const MAX_BUFFERED: usize = 128 << 20;

/// Files that have all their bytes and are on their way, at the most.
const MAX_FINISHING: usize = 32;

/// The files of the batch that is being written.
pub(super) struct Parts {
    folder: Box<dyn Folder>,
    format: FileFormat,
    schema: SchemaRef,
    /// Eight hexadecimal digits.
    run: String,
    batch: BatchId,
    open: BTreeMap<(usize, String), OpenPart>,
    /// How many files each partition has begun in each folder.
    begun: BTreeMap<(usize, String), u64>,
    finished: Vec<FileEntry>,
    /// Those of them that are not known to be durable.
    finishing: Vec<Box<dyn Finished>>,
    /// All files that were created for this batch.
    created: Vec<String>,
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
    pub(super) fn new(folder: Box<dyn Folder>, format: FileFormat, schema: SchemaRef, run_id: &str) -> Self {
        Parts {
            folder,
            format,
            schema,
            run: run_digits(run_id),
            batch: 0,
            open: BTreeMap::new(),
            begun: BTreeMap::new(),
            finished: Vec::new(),
            finishing: Vec::new(),
            created: Vec::new(),
            clock: 0,
        }
    }

    /// Where they are.
    pub(super) fn folder(&self) -> &dyn Folder {
        self.folder.as_ref()
    }

    /// Begins a batch, with nothing. When it is begun again its files get other names: an entry may yet appear that names
    /// those of before.
    pub(super) fn begin(&mut self, batch: BatchId) {
        self.forget();
        if self.batch != batch {
            self.begun.clear();
        }
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
        self.wait()?;
        self.folder.settle(&self.created)?;
        let mut files = std::mem::take(&mut self.finished);
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(files)
    }

    /// Removes all files of the batch.
    pub(super) fn remove(&mut self) -> Result<()> {
        self.open.clear();
        // What is on its way would come back behind the removal.
        let mut result = self.wait();
        for path in &self.created {
            if let Err(error) = self.folder.remove(path) {
                result = Err(error);
            }
        }
        self.forget();
        result
    }

    /// Leaves the files as they are.
    pub(super) fn forget(&mut self) {
        self.open.clear();
        self.finished.clear();
        self.finishing.clear();
        self.created.clear();
    }

    fn create(&mut self, key: &(usize, String)) -> Result<OpenPart> {
        let (partition, folder) = key;
        let again = self.begun.entry(key.clone()).or_default();
        let suffix = if *again == 0 { String::new() } else { format!("-{again}") };
        *again += 1;
        let name = format!("{PREFIX}{:05}-{partition:03}-{}{suffix}.{}", self.batch, self.run, self.format.extension());
        let path = format!("{folder}{name}");
        self.created.push(path.clone());
        let file = self.folder.create(&path)?;
        let writer = PartWriter::new(file, self.folder.shown(&path), self.format, &self.schema)?;
        Ok(OpenPart { path, writer, used: self.clock })
    }

    fn close(&mut self, part: OpenPart) -> Result<()> {
        let (written, finishing) = part.writer.finish()?;
        let entry = FileEntry { path: part.path, size: written.size, rows: written.rows, crc32c: written.crc32c };
        self.finished.push(entry);
        self.finishing.push(finishing);
        if self.finishing.len() > MAX_FINISHING { self.wait() } else { Ok(()) }
    }

    /// Waits for all that is on its way; answers what failed first.
    fn wait(&mut self) -> Result<()> {
        let waited: Vec<Result<()>> = self.finishing.drain(..).map(|finishing| finishing.wait()).collect();
        waited.into_iter().collect()
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

    /// Writes out the largest of the row groups in memory, and ends the file that holds most, when they are too large
    /// together.
    fn bound_buffers(&mut self) -> Result<()> {
        if self.total(PartWriter::buffered_rows) > MAX_BUFFERED
            && let Some(part) = self.open.values_mut().max_by_key(|part| part.writer.buffered_rows())
        {
            part.writer.flush()?;
        }
        if self.total(PartWriter::buffered_bytes) > MAX_BUFFERED {
            let largest = self.open.iter().max_by_key(|(_, part)| part.writer.buffered_bytes());
            if let Some(part) = largest.map(|(key, _)| key.clone()).and_then(|key| self.open.remove(&key)) {
                self.close(part)?;
                // Its bytes wait in memory for as long as it is on its way.
                return self.wait();
            }
        }
        Ok(())
    }

    fn total(&self, of: impl Fn(&PartWriter) -> usize) -> usize {
        self.open.values().map(|part| of(&part.writer)).sum()
    }
}

/// Whether a name is one that [`Parts`] gives.
pub(super) fn is_part(name: &str) -> bool {
    let Some((stem, extension)) = name.split_once('.') else { return false };
    let Some(stem) = stem.strip_prefix(PREFIX) else { return false };
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
pub(super) fn batch_of(path: &str) -> Option<BatchId> {
    let name = path.rsplit('/').next()?;
    name.strip_prefix(PREFIX)?.split('-').next()?.parse().ok()
}

/// Eight hexadecimal digits of a run: the first ones of its id, or its checksum.
fn run_digits(run_id: &str) -> String {
    match run_id.get(..8) {
        Some(digits) if digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) => digits.into(),
        _ => format!("{:08x}", crc32c::crc32c(run_id.as_bytes())),
    }
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
