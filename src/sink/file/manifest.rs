//! The manifest of a file sink: which files are part of the result, and who may add to it.
//!
//! ```text
//! out/_levada/owner          whose files these are, made before the first of them
//! out/_levada/7              the files of batch 7, and which batch with rows came before
//! out/_levada/104.compact    all entries up to 104, one a line, in place of their files
//! ```
//! An entry is created whole and never replaced: with it a batch's files become visible, all at once. A batch without
//! rows has no entry. Each entry names the one before, so that a lost one is noticed. Files that no entry names are
//! invisible to readers of the manifest; readers that just list the folder may see files of a batch that was
//! abandoned.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::parts::batch_of;
use crate::checkpoint::{LocalStore, Store, text};
use crate::error::{Error, Result};
use crate::sink::{BatchId, SinkContext};

/// The manifest's folder in the sink's.
pub const FOLDER: &str = "_levada";

/// So many entries are in files of their own, at the least, before they are put together.
const COMPACT_AFTER: usize = 100;

/// A file of the result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileEntry {
    /// Relative to the sink's folder, with `/`.
    pub path: String,
    /// In bytes.
    pub size: u64,
    pub rows: u64,
    /// Of all bytes; eight hexadecimal digits in the manifest.
    #[serde(with = "hex")]
    pub crc32c: u32,
}

/// One batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    batch: BatchId,
    /// The batch of the entry before.
    previous: Option<BatchId>,
    query_id: String,
    run: String,
    files: Vec<FileEntry>,
}

/// Whose manifest it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Owner {
    query_id: String,
    /// Its name when it began.
    query: String,
}

/// The files of the result, in the order of their batches, for readers. `store` is rooted at the sink's folder. `None`:
/// the folder has no manifest.
///
/// # Errors
/// Corrupt, by path: an entry is damaged or missing.
pub fn committed_files(store: &dyn Store) -> Result<Option<Vec<FileEntry>>> {
    let (listing, entries) = read(store)?;
    if listing.is_empty() {
        return Ok(None);
    }
    Ok(Some(entries.into_iter().flat_map(|entry| entry.files).collect()))
}

/// [`committed_files`] of a local folder.
pub fn committed_files_in(folder: &Path) -> Result<Option<Vec<FileEntry>>> {
    committed_files(&LocalStore::new(folder))
}

/// The manifest in the hands of the query that owns it.
#[derive(Debug)]
pub(super) struct Manifest {
    store: Arc<dyn Store>,
    query_id: String,
    run: String,
    /// Batches that have an entry.
    committed: BTreeSet<BatchId>,
    /// How many entries are in files of their own.
    loose: usize,
}

impl Manifest {
    /// Takes the manifest over, or begins it. Answers it and the paths of all files that it names.
    ///
    /// # Errors
    /// Conflict: it belongs to another query. Corrupt, by path: an entry is damaged or missing.
    pub(super) fn open(store: Arc<dyn Store>, context: &SinkContext) -> Result<(Self, BTreeSet<String>)> {
        let (listing, entries) = read(store.as_ref())?;
        let owner = read_owner(store.as_ref())?;
        let lost = entries.last().map(|entry| Owner { query_id: entry.query_id.clone(), query: "unknown".into() });
        for owner in owner.iter().chain(&lost) {
            refuse_foreign(store.as_ref(), owner, context)?;
        }
        if owner.is_none() {
            let owner = Owner { query_id: context.query_id.clone(), query: context.query.clone() };
            put(store.as_ref(), "owner", &[to_line(&owner)?])?;
        }
        let manifest = Manifest {
            store,
            query_id: context.query_id.clone(),
            run: context.run_id.clone(),
            committed: entries.iter().map(|entry| entry.batch).collect(),
            loose: listing.loose.iter().filter(|batch| Some(**batch) > listing.compact()).count(),
        };
        manifest.remove_superseded(&listing)?;
        let files = entries.into_iter().flat_map(|entry| entry.files).map(|file| file.path).collect();
        Ok((manifest, files))
    }

    /// Whether no entry of `batch` can appear any more: there is one, or one that follows it.
    pub(super) fn is_decided(&self, batch: BatchId) -> bool {
        self.committed.last() >= Some(&batch)
    }

    /// Whether `batch` has an entry, also one that was written while this run was not sure of it.
    pub(super) fn contains(&mut self, batch: BatchId) -> Result<bool> {
        if self.committed.contains(&batch) {
            return Ok(true);
        }
        let path = entry_path(batch);
        let Some(bytes) = self.store.get(&path)? else { return Ok(false) };
        let shown = self.store.describe(&path);
        let entry = one_entry(&shown, &bytes, batch)?;
        if entry.query_id != self.query_id {
            return Err(Error::corrupt(
                shown,
                format!("the entry is of query {}, not {}", entry.query_id, self.query_id),
            ));
        }
        self.committed.insert(batch);
        self.loose += 1;
        Ok(true)
    }

    /// Refuses a part file that no entry names, of a batch that the checkpoint says is done: its entry was lost, with
    /// nothing behind it that would miss it.
    pub(super) fn refuse_lost(&self, stray: &str, shown: &str, committed: Option<BatchId>) -> Result<()> {
        match batch_of(stray).filter(|batch| Some(*batch) <= committed && !self.committed.contains(batch)) {
            None => Ok(()),
            Some(batch) => Err(Error::corrupt(
                self.store.describe(&entry_path(batch)),
                format!("the file is missing, though the checkpoint says that the batch is done, and {shown} is of it"),
            )),
        }
    }

    /// Makes the files of a batch part of the result.
    ///
    /// # Errors
    /// Conflict: the batch, or a later one, has an entry. Io: it may or may not have been written;
    /// [`Manifest::contains`] knows.
    pub(super) fn append(&mut self, batch: BatchId, files: Vec<FileEntry>) -> Result<()> {
        let previous = self.committed.last().copied();
        if let Some(last) = previous.filter(|last| *last >= batch) {
            return Err(Error::conflict(format!(
                "{} holds batch {last} of this query already, and the query is at batch {batch}: its checkpoint is \
                 older than its output. Go on with the newer checkpoint, or write to another path",
                self.store.describe(FOLDER)
            )));
        }
        let entry = Entry { batch, previous, query_id: self.query_id.clone(), run: self.run.clone(), files };
        put(self.store.as_ref(), &batch.to_string(), &[to_line(&entry)?])?;
        self.committed.insert(batch);
        self.loose += 1;
        Ok(())
    }

    /// Puts the entries together when there are many files of them: the more there are in all, the rarer, so that the
    /// cost per batch stays the same.
    pub(super) fn compact_when_due(&mut self) -> Result<()> {
        if self.loose < COMPACT_AFTER.max(self.committed.len() / 10) {
            return Ok(());
        }
        let (_, entries) = read(self.store.as_ref())?;
        let Some(last) = entries.last() else { return Ok(()) };
        let lines = entries.iter().map(to_line).collect::<Result<Vec<_>>>()?;
        put(self.store.as_ref(), &format!("{}.compact", last.batch), &lines)?;
        self.loose = 0;
        self.remove_superseded(&Listing::read(self.store.as_ref())?)
    }

    /// Removes what the newest compact file holds too. Oldest first: a crash leaves no gap.
    fn remove_superseded(&self, listing: &Listing) -> Result<()> {
        let Some(compact) = listing.compact() else { return Ok(()) };
        for old in listing.compacts.iter().filter(|old| **old < compact) {
            self.store.delete(&format!("{FOLDER}/{old}.compact"))?;
        }
        for batch in listing.loose.iter().filter(|batch| **batch <= compact) {
            self.store.delete(&entry_path(*batch))?;
        }
        Ok(())
    }
}

/// All entries, oldest first, and the listing they were read from.
///
/// A reader may be overtaken by a compaction: a folder is not listed in one moment, and a listed file may be gone when
/// it is read. So a listing counts when nothing of the one before has gone, and it is made again when a file has.
fn read(store: &dyn Store) -> Result<(Listing, Vec<Entry>)> {
    let mut before = Listing::read(store)?;
    let mut gone = None;
    for _ in 0..100 {
        let listing = Listing::read(store)?;
        if before.loose.is_subset(&listing.loose) && before.compacts.is_subset(&listing.compacts) {
            match listing.try_entries(store)? {
                Ok(entries) => return Ok((listing, entries)),
                Err(path) => gone = Some(path),
            }
        }
        before = listing;
    }
    let path = store.describe(&gone.unwrap_or_else(|| FOLDER.into()));
    Err(Error::corrupt(path, "it is listed and can't be read, or the manifest changes all the time"))
}

fn read_owner(store: &dyn Store) -> Result<Option<Owner>> {
    let path = format!("{FOLDER}/owner");
    let Some(bytes) = store.get(&path)? else { return Ok(None) };
    let shown = store.describe(&path);
    let line = text::decode(&shown, &bytes)?.next().ok_or_else(|| Error::corrupt(&shown, "the file holds no line"))?;
    from_line(&shown, line).map(Some)
}

/// The names in the manifest's folder.
#[derive(Debug, Default)]
struct Listing {
    loose: BTreeSet<BatchId>,
    compacts: BTreeSet<BatchId>,
    has_owner: bool,
}

impl Listing {
    fn read(store: &dyn Store) -> Result<Self> {
        let mut listing = Listing::default();
        for name in store.list(FOLDER)? {
            // The canonical spelling only: `07` is not ours.
            let number = |text: &str| text.parse::<BatchId>().ok().filter(|number| number.to_string() == text);
            match name.strip_suffix(".compact") {
                None if name == "owner" => listing.has_owner = true,
                // Hidden files are the system's or a desktop's.
                None if name.starts_with('.') => {}
                None => match number(&name) {
                    Some(batch) => drop(listing.loose.insert(batch)),
                    None => return Err(foreign(store, &name)),
                },
                Some(stem) => match number(stem) {
                    Some(batch) => drop(listing.compacts.insert(batch)),
                    None => return Err(foreign(store, &name)),
                },
            }
        }
        Ok(listing)
    }

    fn is_empty(&self) -> bool {
        self.loose.is_empty() && self.compacts.is_empty() && !self.has_owner
    }

    /// The newest compact file; older ones are left over from a crash.
    fn compact(&self) -> Option<BatchId> {
        self.compacts.last().copied()
    }

    /// All entries, or the path of a file that has gone since it was listed.
    fn try_entries(&self, store: &dyn Store) -> Result<Result<Vec<Entry>, String>> {
        let mut entries = Vec::new();
        if let Some(compact) = self.compact() {
            let path = format!("{FOLDER}/{compact}.compact");
            let Some(bytes) = store.get(&path)? else { return Ok(Err(path)) };
            let shown = store.describe(&path);
            entries =
                text::decode(&shown, &bytes)?.map(|line| from_line(&shown, line)).collect::<Result<Vec<Entry>>>()?;
            check_chain(&shown, None, &entries)?;
            if entries.last().map(|entry| entry.batch) != Some(compact) {
                return Err(Error::corrupt(shown, format!("its last entry is not that of batch {compact}")));
            }
        }
        for batch in self.loose.iter().filter(|batch| Some(**batch) > self.compact()) {
            let path = entry_path(*batch);
            let Some(bytes) = store.get(&path)? else { return Ok(Err(path)) };
            let shown = store.describe(&path);
            let entry = one_entry(&shown, &bytes, *batch)?;
            let last = entries.last().map(|entry| entry.batch);
            if let Some(lost) = entry.previous.filter(|previous| last < Some(*previous)) {
                let message = format!("an entry is missing: {shown} says that it follows batch {lost}");
                return Err(Error::corrupt(store.describe(&entry_path(lost)), message));
            }
            check_chain(&shown, entries.last(), std::slice::from_ref(&entry))?;
            entries.push(entry);
        }
        Ok(Ok(entries))
    }
}

/// Each entry must follow the one it names, and be of the same query.
fn check_chain(path: &str, before: Option<&Entry>, entries: &[Entry]) -> Result<()> {
    let mut before = before;
    for entry in entries {
        if entry.previous != before.map(|before| before.batch) {
            let wants = entry.previous.map_or("none".to_string(), |batch| format!("batch {batch}"));
            let found = before.map_or("none".to_string(), |before| format!("batch {}", before.batch));
            return Err(Error::corrupt(
                path,
                format!("batch {} follows {wants}, but the entry before is {found}: an entry is missing", entry.batch),
            ));
        }
        if let Some(before) = before.filter(|before| before.query_id != entry.query_id || before.batch >= entry.batch) {
            return Err(Error::corrupt(
                path,
                format!(
                    "batch {} of query {} follows batch {} of query {}",
                    entry.batch, entry.query_id, before.batch, before.query_id
                ),
            ));
        }
        before = Some(entry);
    }
    Ok(())
}

fn one_entry(path: &str, bytes: &[u8], batch: BatchId) -> Result<Entry> {
    let mut lines = text::decode(path, bytes)?;
    let (Some(line), None) = (lines.next(), lines.next()) else {
        return Err(Error::corrupt(path, "an entry is one line"));
    };
    let entry: Entry = from_line(path, line)?;
    if entry.batch != batch {
        return Err(Error::corrupt(path, format!("the file holds the entry of batch {}", entry.batch)));
    }
    Ok(entry)
}

fn refuse_foreign(store: &dyn Store, owner: &Owner, context: &SinkContext) -> Result<()> {
    if owner.query_id == context.query_id {
        return Ok(());
    }
    Err(Error::conflict(format!(
        "the files in {} belong to query {} (id {}); this is query {} (id {}), and only one may write there. Start with the \
         checkpoint of the other, write to another path, or remove that folder",
        store.describe(""),
        owner.query,
        owner.query_id,
        context.query,
        context.query_id
    )))
}

fn foreign(store: &dyn Store, name: &str) -> Error {
    Error::corrupt(store.describe(&format!("{FOLDER}/{name}")), "this is no file of a manifest; move it away")
}

fn entry_path(batch: BatchId) -> String {
    format!("{FOLDER}/{batch}")
}

fn put(store: &dyn Store, name: &str, lines: &[String]) -> Result<()> {
    let bytes = text::encode(lines);
    store.put_new(&format!("{FOLDER}/{name}"), &mut |out| out.write_all(&bytes))
}

fn to_line(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|e| Error::internal(format!("a manifest line can't be written: {e}")))
}

fn from_line<'a, T: Deserialize<'a>>(path: &str, line: &'a str) -> Result<T> {
    serde_json::from_str(line).map_err(|e| Error::corrupt(path, format!("a line does not hold what it should: {e}")))
}

mod hex {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(value: &u32, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format!("{value:08x}"))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
        let text = String::deserialize(deserializer)?;
        u32::from_str_radix(&text, 16).map_err(D::Error::custom)
    }
}
