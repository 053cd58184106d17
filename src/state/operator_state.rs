//! All partitions of one operator's state, and the files they are kept in.
//!
//! The files know no partitions: rows go to a partition when they are loaded, so their number may change at a restart.
//! Version N is what the state is after batch N. Snapshots are written by a thread of their own from frozen chunks; a
//! batch never waits for one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::SchemaRef;

use super::file::{self, Delta, Kind, Owner, StateContents};
use super::loaded::Loaded;
use super::schema::{StateSchema, changed, read_schema, write_schema};
use super::table::{Frozen, StateTable, select_rows};
use super::versions;
use crate::checkpoint::Store;
use crate::delta::keys::{KeyCodec, Keys, split};
use crate::error::{Error, Result};

/// Rows of a file from which on threads are worth their start.
const WORTH_A_THREAD: u64 = 4096;

/// Rows of a file, with what is made of them.
struct Keyed {
    rows: RecordBatch,
    keys: Keys,
    /// Which of them each partition holds.
    parts: Vec<Vec<u32>>,
    /// When they may be forgotten.
    times: Option<Vec<i64>>,
}

/// What a state is made of.
#[derive(Clone)]
pub struct Shape {
    /// Keys, then values.
    pub rows: SchemaRef,
    /// The keys alone.
    pub keys: SchemaRef,
    pub codec: Arc<KeyCodec>,
    /// As kept in the checkpoint, and compared at a restart.
    pub stored: StateSchema,
    pub partitions: usize,
    /// What decides in which partition a row lies. `None`: its key.
    pub spread: Option<Spread>,
}

impl Shape {
    /// An empty partition.
    pub fn table(&self) -> StateTable {
        let table = StateTable::new(self.rows.clone(), self.keys.fields().len(), self.codec.clone());
        match &self.spread {
            Some(Spread { asked: Asked::Group, codec, columns }) => table.with_members(codec.clone(), *columns),
            Some(Spread { asked: Asked::Slot, .. }) => table.by_slot(),
            _ => table,
        }
    }
}

/// The first columns of a key, which decide in which partition a row lies.
#[derive(Clone)]
pub struct Spread {
    /// Of these columns.
    pub codec: Arc<KeyCodec>,
    pub columns: usize,
    pub asked: Asked,
}

/// What an operator asks for the rows of its state by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    Key,
    /// Their key, and the columns that it shares with others.
    Group,
    /// Their slots alone, which it remembers itself.
    Slot,
}

/// How a state forgets by time. All times are microseconds.
pub trait Forgets: Sync {
    /// The times at which rows of these columns may be forgotten.
    ///
    /// # Errors
    /// Internal: a column holds no time.
    fn times(&self, columns: &[ArrayRef]) -> Result<Vec<i64>>;

    /// Which of these times were forgotten by a delta that says `forgotten_until`: those at or before this one.
    ///
    /// # Errors
    /// Internal.
    fn until(&self, forgotten_until: i64) -> Result<i64>;
}

/// An operator's state. See the module's documentation.
pub struct OperatorState {
    store: Arc<dyn Store>,
    folder: String,
    owner: Owner,
    /// Not in the checkpoint yet.
    unwritten: Option<StateSchema>,
    partitions: Arc<Vec<Mutex<StateTable>>>,
    since_snapshot: Since,
    snapshot: Option<JoinHandle<Result<u64>>>,
    /// What a user should hear of, and no batch failed by.
    notices: Vec<String>,
}

/// What was written since the last snapshot.
#[derive(Debug, Default, Clone, Copy)]
struct Since {
    deltas: u64,
    delta_bytes: u64,
    snapshot_bytes: u64,
}

impl Since {
    /// A snapshot is due when reading the deltas costs about as much as reading it would; a state that is another in every batch
    /// has no snapshot of each.
    fn due(&self) -> bool {
        (self.deltas >= 4 && self.delta_bytes >= self.snapshot_bytes.max(4 << 20))
            || (self.deltas >= 50 && self.delta_bytes * 8 >= self.snapshot_bytes)
            || self.deltas >= 1_000
    }
}

impl OperatorState {
    /// Opens the operator's state as it was after batch `version`; `None`: empty. `forgets`: where the operator
    /// forgets by time. Writes nothing: see [`OperatorState::keep_schema`].
    ///
    /// # Errors
    /// InvalidInput: the checkpoint's state has another schema (old and new are listed). Corrupt, by path. Io.
    pub fn open(
        store: Arc<dyn Store>,
        shape: &Shape,
        version: Option<u64>,
        forgets: Option<&dyn Forgets>,
        loaded: &Loaded,
    ) -> Result<Self> {
        let folder = format!("state/{}", shape.stored.operator);
        let unwritten = match read_schema(store.as_ref(), &folder)? {
            Some(stored) if stored != shape.stored => return Err(changed(Some(&stored), Some(&shape.stored))),
            Some(_) => None,
            None => Some(shape.stored.clone()),
        };
        versions::discard_above(store.as_ref(), &folder, version)?;
        let owner = Owner { operator: shape.stored.operator.clone(), schema: shape.stored.fingerprint()? };
        let partitions = Arc::new((0..shape.partitions.max(1)).map(|_| Mutex::new(shape.table())).collect::<Vec<_>>());
        let mut state = OperatorState {
            store,
            folder,
            owner,
            unwritten,
            partitions,
            since_snapshot: Since::default(),
            snapshot: None,
            notices: Vec::new(),
        };
        if let Some(version) = version {
            state.load(shape, version, forgets, loaded)?;
            state.partitions.iter().try_for_each(|partition| lock(partition).loaded())?;
        }
        Ok(state)
    }

    /// Writes the schema of a new state, before its first delta: once nothing can refuse the query any more.
    pub fn keep_schema(&mut self) -> Result<()> {
        match self.unwritten.take() {
            Some(schema) => write_schema(self.store.as_ref(), &self.folder, &schema),
            None => Ok(()),
        }
    }

    fn load(&mut self, shape: &Shape, version: u64, forgets: Option<&dyn Forgets>, loaded: &Loaded) -> Result<()> {
        let recovery = versions::recover(self.store.as_ref(), &self.folder, &self.owner, version)?;
        let passed_over = recovery.passed_over.iter();
        self.notices.extend(passed_over.map(|damaged| {
            format!("a snapshot was passed over, and the state rebuilt without it: {damaged}; the file can be removed")
        }));
        if let Some(snapshot) = recovery.snapshot {
            self.since_snapshot.snapshot_bytes = snapshot.index.upserts.bytes;
            let read = (loaded, snapshot.index.upserts.bytes);
            let all = Delta { upserts: snapshot.upserts, ..Delta::default() };
            self.put(shape, &all, forgets, Some(read))?;
        }
        for delta in recovery.deltas {
            let contents = file::read(self.store.as_ref(), &self.folder, &self.owner, Kind::Delta, delta)?;
            self.since_snapshot.deltas += 1;
            self.since_snapshot.delta_bytes += contents.index.upserts.bytes + contents.index.deletes.bytes;
            let read = (loaded, contents.index.upserts.bytes + contents.index.deletes.bytes);
            let StateContents { index, upserts, deletes } = contents;
            let delta = Delta { upserts, deletes, forgotten_until: index.forgotten_until };
            self.put(shape, &delta, forgets, Some(read))?;
        }
        Ok(())
    }

    /// Puts a file's rows in, every partition by a thread of its own where there are many. `read`: where it is counted, and the file's bytes.
    fn put(
        &self,
        shape: &Shape,
        delta: &Delta,
        forgets: Option<&dyn Forgets>,
        read: Option<(&Loaded, u64)>,
    ) -> Result<()> {
        let Delta { upserts, deletes, forgotten_until } = delta;
        let rows = upserts.iter().chain(deletes).map(|batch| batch.num_rows() as u64).sum::<u64>();
        // Half of the work is to find the keys of rows, and half to put these in.
        let count = |part: usize, put: bool| {
            if let Some((loaded, bytes)) = read.filter(|_| rows > 0) {
                let bytes = u128::from(bytes) * part as u128 / u128::from(rows) / 2;
                loaded.add(if put { part as u64 } else { 0 }, bytes as u64);
            }
        };
        let width = shape.keys.fields().len();
        let one = |batch: &RecordBatch, forgets: Option<&dyn Forgets>| -> Result<Keyed> {
            let keys = shape.codec.encode(&batch.columns()[..width], batch.num_rows())?;
            let parts = match &shape.spread {
                None => split(&keys, self.partitions.len()),
                Some(by) => {
                    let keys = by.codec.encode(&batch.columns()[..by.columns], batch.num_rows())?;
                    split(&keys, self.partitions.len())
                }
            };
            let times = forgets.map(|forgets| forgets.times(batch.columns())).transpose()?;
            count(batch.num_rows(), false);
            Ok(Keyed { rows: batch.clone(), keys, parts, times })
        };
        let load = |n: usize, upserts: &[Keyed], deletes: &[Keyed]| -> Result<()> {
            let mut table = lock(&self.partitions[n]);
            for Keyed { rows, keys, parts, times } in upserts {
                table.load(select_rows(rows, parts[n].clone())?, keys, &parts[n], times.as_deref());
                count(parts[n].len(), true);
            }
            for Keyed { keys, parts, .. } in deletes {
                table.unload(keys, &parts[n]);
                count(parts[n].len(), true);
            }
            match (forgotten_until, forgets) {
                (Some(until), Some(forgets)) => table.forget_due(forgets.until(*until)?).map(drop),
                (Some(_), None) => Err(Error::internal("a state that has no times has forgotten by time")),
                (None, _) => Ok(()),
            }
        };
        if rows < WORTH_A_THREAD {
            let keyed =
                |batches: &[RecordBatch], forgets| batches.iter().map(|b| one(b, forgets)).collect::<Result<Vec<_>>>();
            let (upserts, deletes) = (keyed(upserts, forgets)?, keyed(deletes, None)?);
            return (0..self.partitions.len()).try_for_each(|n| load(n, &upserts, &deletes));
        }
        // The file's batches are shared out between as many threads as there are partitions.
        let keyed = |batches: &[RecordBatch], forgets: Option<&dyn Forgets>| -> Result<Vec<_>> {
            let share = batches.len().div_ceil(self.partitions.len()).max(1);
            std::thread::scope(|scope| {
                let shares: Vec<_> = batches
                    .chunks(share)
                    .map(|share| scope.spawn(move || share.iter().map(|b| one(b, forgets)).collect::<Result<Vec<_>>>()))
                    .collect();
                let mut all = Vec::with_capacity(batches.len());
                for share in shares {
                    all.append(&mut share.join().map_err(|_| Error::internal("a thread that loaded state died"))??);
                }
                Ok(all)
            })
        };
        let (upserts, deletes) = (keyed(upserts, forgets)?, keyed(deletes, None)?);
        std::thread::scope(|scope| {
            let (load, upserts, deletes) = (&load, &upserts, &deletes);
            let partitions = 0..self.partitions.len();
            let workers: Vec<_> = partitions.map(|n| scope.spawn(move || load(n, upserts, deletes))).collect();
            for worker in workers {
                worker.join().map_err(|_| Error::internal("a thread that loaded state died"))??;
            }
            Ok(())
        })
    }

    /// Writes rows and takes keys out, as a file's are: for a state whose owner keeps its own memory.
    pub fn apply(&self, shape: &Shape, delta: &Delta) -> Result<()> {
        self.put(shape, delta, None, None)
    }

    /// The partitions, to be worked on.
    pub fn partitions(&self) -> &[Mutex<StateTable>] {
        &self.partitions
    }

    /// The partitions, for threads that outlive a borrow.
    pub fn tables(&self) -> Arc<Vec<Mutex<StateTable>>> {
        self.partitions.clone()
    }

    /// Keys there are.
    pub fn rows(&self) -> u64 {
        self.partitions.iter().map(|p| lock(p).len() as u64).sum()
    }

    /// Bytes in memory, about.
    pub fn memory(&self) -> u64 {
        self.partitions.iter().map(|p| lock(p).memory() as u64).sum()
    }

    /// Keeps what batch `version` changed. Answers the file's length.
    pub fn commit(&mut self, version: u64, delta: &Delta) -> Result<u64> {
        let bytes = file::write_delta(self.store.as_ref(), &self.folder, &self.owner, version, delta)?;
        self.since_snapshot.deltas += 1;
        self.since_snapshot.delta_bytes += bytes;
        Ok(bytes)
    }

    /// Begins a snapshot of `version`, the newest, if one is due and none is being written. Its batch is done: a snapshot
    /// of one that another run may still run again would say what that run does not. Older files that no version from
    /// `keep_from` on needs are removed behind it.
    pub fn snapshot_if_due(&mut self, version: u64, keep_from: u64) {
        if self.snapshot.as_ref().is_some_and(JoinHandle::is_finished) {
            self.finish_snapshot();
        }
        if self.snapshot.is_some() || !self.since_snapshot.due() {
            return;
        }
        let frozen: Vec<Frozen> = self.partitions.iter().map(|p| lock(p).freeze()).collect();
        let (store, folder, owner) = (self.store.clone(), self.folder.clone(), self.owner.clone());
        self.since_snapshot.deltas = 0;
        self.since_snapshot.delta_bytes = 0;
        let write = move || {
            let batches = frozen.into_iter().flat_map(Frozen::batches);
            let bytes = file::write_snapshot(store.as_ref(), &folder, &owner, version, batches)?;
            versions::purge(store.as_ref(), &folder, keep_from)?;
            Ok(bytes)
        };
        self.snapshot = std::thread::Builder::new().name("levada-snapshot".into()).spawn(write).ok();
    }

    /// Waits for the snapshot that is being written, if one is. A failed one only lengthens the next recovery.
    pub fn finish_snapshot(&mut self) {
        let failed = match self.snapshot.take().map(JoinHandle::join) {
            Some(Ok(Ok(bytes))) => {
                self.since_snapshot.snapshot_bytes = bytes;
                return;
            }
            Some(Ok(Err(error))) => error.to_string(),
            Some(Err(_)) => "its thread died".to_string(),
            None => return,
        };
        let operator = &self.owner.operator;
        self.notices.push(format!(
            "no snapshot of the state of {operator} was written, so a restart will take longer: {failed}"
        ));
    }

    /// What happened that a user should hear of, each once.
    pub fn take_notices(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notices)
    }
}

impl Drop for OperatorState {
    fn drop(&mut self) {
        self.finish_snapshot();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
