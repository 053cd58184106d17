//! The checkpoint as a whole: a directory, here or in an object store, opened under its lease.
//!
//! Opening goes through these steps, and ends at the first that fails:
//!
//! 1. the location is understood, the directory made;
//! 2. the lease is taken, so that nobody else writes from here on;
//! 3. `metadata` is read, or written where everything is empty;
//! 4. temporary files of a run that died are removed (an object store has none);
//! 5. the logs are listed and held against each other: what the restart needs must be there.
//!
//! The content of an entry is looked at when it is asked for.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use super::lease::Lease;
use super::metadata::Metadata;
use super::numbered_log::{NumberedLog, parse_number};
use super::remote_lease::{LeaseTerms, RemoteLease};
use super::remote_store::RemoteStore;
use super::{CommitEntry, FailStore, Failpoints, LocalStore, OffsetEntry, SourceLog, Store, commit_log, offset_log};
use crate::error::{Error, Result};
use crate::storage::{Location, Root, Settings};

/// A checkpoint that this process holds the lease of, until it is dropped. Nothing is written through its stores and
/// logs afterwards, whoever still holds them.
#[derive(Debug)]
pub struct Checkpoint {
    location: String,
    metadata: Metadata,
    store: Arc<dyn Store>,
    offsets: NumberedLog,
    commits: NumberedLog,
    source_logs: Mutex<BTreeMap<String, SourceLog>>,
    /// The newest commit, as it was read when the checkpoint was opened.
    newest_commit: Option<(u64, Vec<u8>)>,
    /// Last, as fields are dropped in order: the lease ends when all else has.
    hold: Hold,
}

/// What keeps others away, to be ended at the end.
#[derive(Debug)]
enum Hold {
    Local {
        store: Arc<LocalStore>,
        lease: Lease,
        /// The directory of a temporary checkpoint, to be removed at the end.
        temporary: Option<PathBuf>,
    },
    Remote(Arc<RemoteLease>),
}

impl Checkpoint {
    /// Opens or makes the checkpoint at `location` (a directory, a `file:` URL, a place in an object store) and takes its
    /// lease. `query` is the canonical SQL, written to `metadata` when it is made. A store is opened on the runtime that
    /// the caller has entered. Without `durable` a local one is not synced: a loss of power may take what is committed.
    ///
    /// # Errors
    /// Conflict: another process or query of this one holds it (named). Corrupt: metadata damaged, of a newer format, or
    /// missing while there are logs; logs that do not fit each other. Unsupported: a store that promises too little.
    pub fn open(
        location: &str,
        query: &str,
        failpoints: Failpoints,
        terms: &LeaseTerms,
        durable: bool,
    ) -> Result<Self> {
        match Location::to_write(location, "a checkpoint")? {
            Location::Local(root) => {
                Self::open_local(location, LocalStore::synced(&root, durable), root, query, failpoints)
            }
            Location::Remote(url) => {
                let root = Root::open(&url, &Settings::default())?;
                let lease = RemoteLease::take(root.clone(), location, terms)?;
                let store = Arc::new(RemoteStore::leased(root, lease.clone()));
                Self::open_in(location, store, Hold::Remote(lease), query, failpoints)
            }
        }
    }

    /// A checkpoint in the system's temporary directory, removed when it is dropped. It is never synced.
    ///
    /// # Errors
    /// Io.
    pub fn temporary(query: &str, failpoints: Failpoints) -> Result<Self> {
        let root = std::env::temp_dir().join(format!("levada-{}", uuid::Uuid::new_v4()));
        let location = root.display().to_string();
        let store = LocalStore::volatile(&root);
        let mut checkpoint = Self::open_local(&location, store, root.clone(), query, failpoints)?;
        if let Hold::Local { temporary, .. } = &mut checkpoint.hold {
            *temporary = Some(root);
        }
        Ok(checkpoint)
    }

    fn open_local(
        location: &str,
        store: LocalStore,
        root: PathBuf,
        query: &str,
        failpoints: Failpoints,
    ) -> Result<Self> {
        store.create_root()?;
        let (lease, store) = (Lease::take(&root, location)?, Arc::new(store));
        let hold = Hold::Local { store: store.clone(), lease, temporary: None };
        Self::open_in(location, store, hold, query, failpoints)
    }

    fn open_in(location: &str, store: Arc<dyn Store>, hold: Hold, query: &str, failpoints: Failpoints) -> Result<Self> {
        failpoints.revive();
        let store: Arc<dyn Store> = Arc::new(FailStore::checkpoint(store, failpoints));
        let metadata = Metadata::open(&*store, query)?;
        if let Hold::Local { store, .. } = &hold {
            sweep(store)?;
        }
        let mut checkpoint = Checkpoint {
            location: location.to_string(),
            metadata,
            offsets: NumberedLog::open(Arc::clone(&store), "offsets")?,
            commits: NumberedLog::open(Arc::clone(&store), "commits")?,
            store,
            source_logs: Mutex::default(),
            newest_commit: None,
            hold,
        };
        checkpoint.pass_over_claim()?;
        checkpoint.check_order()?;
        Ok(checkpoint)
    }

    /// A batch whose commit is claimed is not done.
    fn pass_over_claim(&mut self) -> Result<()> {
        let Some(newest) = self.commits.latest() else { return Ok(()) };
        let (path, bytes) = self.commits.get(newest)?;
        if commit_log::is_claim(newest, &path, &bytes) {
            return self.commits.discard(newest);
        }
        self.newest_commit = Some((newest, bytes));
        Ok(())
    }

    /// Makes sure that no run before this one can say any more that the batch is done which this one runs again. To be
    /// asked for before anything of that batch is changed.
    ///
    /// # Errors
    /// Conflict: the other run has said it just now. Io.
    pub fn claim(&self) -> Result<()> {
        let pending = self.offsets.latest().filter(|batch| self.commits.latest() < Some(*batch));
        match (&self.hold, pending) {
            (Hold::Remote(lease), Some(batch)) => self.commits.occupy(batch, &commit_log::claim(batch, lease.run())?),
            _ => Ok(()),
        }
    }

    /// Fails when the lease is known to be lost. Asks nobody.
    ///
    /// # Errors
    /// Conflict, naming the run that has it.
    pub fn held(&self) -> Result<()> {
        match &self.hold {
            Hold::Local { .. } => Ok(()),
            Hold::Remote(lease) => lease.known(),
        }
    }

    /// The stable id.
    pub fn id(&self) -> &str {
        &self.metadata.id
    }

    /// The id of this run: another one each time that the checkpoint is opened.
    pub fn run_id(&self) -> &str {
        match &self.hold {
            Hold::Local { lease, .. } => lease.run(),
            Hold::Remote(lease) => lease.run(),
        }
    }

    /// The canonical SQL the checkpoint was made for.
    pub fn query(&self) -> &str {
        &self.metadata.query
    }

    /// Where it is, as the user wrote it.
    pub fn location(&self) -> &str {
        &self.location
    }

    /// The files of the checkpoint.
    pub fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store)
    }

    /// The highest N in `offsets/`.
    pub fn latest_offsets(&self) -> Result<Option<u64>> {
        Ok(self.offsets.latest())
    }

    /// The highest N in `commits/`: that of the latest offsets, or the one before.
    pub fn latest_commit(&self) -> Result<Option<u64>> {
        Ok(self.commits.latest())
    }

    /// Whether the offsets of every batch up to this one are there.
    pub fn keeps_all(&self, up_to: u64) -> bool {
        self.offsets.keeps_all(up_to)
    }

    /// `offsets/<batch>`.
    ///
    /// # Errors
    /// Corrupt, by path: missing or damaged.
    pub fn offsets(&self, batch: u64) -> Result<OffsetEntry> {
        let (path, bytes) = self.offsets.get(batch)?;
        offset_log::decode(batch, &path, &bytes)
    }

    /// `commits/<batch>`, likewise.
    pub fn commit(&self, batch: u64) -> Result<CommitEntry> {
        if let Some((_, bytes)) = self.newest_commit.as_ref().filter(|(newest, _)| *newest == batch) {
            return commit_log::decode(batch, &self.commits.describe(batch), bytes);
        }
        let (path, bytes) = self.commits.get(batch)?;
        commit_log::decode(batch, &path, &bytes)
    }

    /// Writes `offsets/<batch>`.
    ///
    /// # Errors
    /// Conflict when it is there: another run has written it.
    pub fn log_offsets(&self, batch: u64, entry: &OffsetEntry) -> Result<()> {
        self.offsets.put(batch, &offset_log::encode(batch, entry)?)
    }

    /// Writes `commits/<batch>`, likewise.
    pub fn log_commit(&self, batch: u64, entry: &CommitEntry) -> Result<()> {
        self.commits.put(batch, &commit_log::encode(batch, entry)?)
    }

    /// The log of one source occurrence, `sources/<name>/`. The same name gives the same log.
    pub fn source_log(&self, name: &str) -> SourceLog {
        let mut logs = self.source_logs.lock().unwrap_or_else(PoisonError::into_inner);
        let log = logs.entry(name.to_string()).or_insert_with(|| SourceLog::stored(self.store(), name));
        log.clone()
    }

    /// Removes entries of `offsets/` and `commits/` below `keep_from`, but never one that a restart needs: the last
    /// commit, and the two last offsets (a batch takes what is late from the watermarks of the one before).
    pub fn purge(&self, keep_from: u64) -> Result<()> {
        let (Some(offsets), Some(commit)) = (self.offsets.latest(), self.commits.latest()) else { return Ok(()) };
        let keep_from = keep_from.min(commit).min(offsets.saturating_sub(1));
        self.offsets.purge(keep_from)?;
        self.commits.purge(keep_from)
    }

    /// Holds the folders against each other. Entries below those that a restart needs are not missed: a purge that
    /// a loss of power cut short may have left any of them.
    fn check_order(&self) -> Result<()> {
        let (logged, committed) = (self.offsets.latest(), self.commits.latest());
        if let Some(commit) = committed.filter(|commit| logged.is_none_or(|offsets| offsets < *commit)) {
            let message =
                format!("the file is missing, though {} says that the batch is done", self.commits.describe(commit));
            return Err(Error::corrupt(self.offsets.describe(commit), message));
        }
        if let Some((version, file)) = self.newest_state()?.filter(|(version, _)| logged < Some(*version)) {
            let message = format!("the file is missing, though {file} was written in that batch");
            return Err(Error::corrupt(self.offsets.describe(version), message));
        }
        let Some(before) = logged.and_then(|offsets| offsets.checked_sub(1)) else { return Ok(()) };
        self.offsets.require(before)?;
        if committed < Some(before) { self.commits.require(before) } else { Ok(()) }
    }

    /// The highest version among the state files, with the path of one that has it.
    fn newest_state(&self) -> Result<Option<(u64, String)>> {
        let mut newest = None;
        for operator in self.store.list("state")? {
            let folder = format!("state/{operator}");
            for name in self.store.list(&folder)? {
                let version = name.split_once('.').and_then(|(number, _)| parse_number(number));
                let path = || self.store.describe(&format!("{folder}/{name}"));
                newest = newest.max(version.map(|version| (version, path())));
            }
        }
        Ok(newest)
    }
}

impl Drop for Checkpoint {
    fn drop(&mut self) {
        match &self.hold {
            Hold::Remote(lease) => lease.end(),
            Hold::Local { store, temporary, .. } => {
                store.close();
                if let Some(root) = temporary {
                    // What can't be removed lies in the system's temporary directory, which is cleaned by others.
                    let _ = std::fs::remove_dir_all(root);
                }
            }
        }
    }
}

/// Removes what a run that died was just writing.
fn sweep(local: &LocalStore) -> Result<()> {
    for folder in ["", "offsets", "commits"] {
        local.sweep(folder)?;
    }
    for above in ["state", "sources"] {
        for name in local.list(above)? {
            local.sweep(&format!("{above}/{name}"))?;
        }
    }
    Ok(())
}
