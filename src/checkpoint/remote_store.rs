//! A store whose files are objects.
//!
//! An object is there with all its bytes or not at all, and an answered write is durable: that is the store's promise.
//! That nothing is written over comes from a condition on the write. There is no lock that ends with its process, and
//! what a process sent may arrive after it was thought dead, so two runs are told apart by what they write:
//!
//! 1. a file is created if it is absent: of two runs that want its name, one gets it;
//! 2. each file carries the mark of its writer: epoch, run, length and checksum. A run that finds its own mark and the
//!    same content has written it before, and lost the answer;
//! 3. a file that an earlier run left unfinished is written anew only in place of exactly what was found there, and
//!    never in place of what a run of a later epoch wrote.

use std::collections::BTreeSet;
use std::fmt;
use std::io::{self, ErrorKind, Write};
use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use super::Store;
use super::remote_lease::RemoteLease;
use crate::error::{Error, Result};
use crate::storage::{Condition, Root};

/// The objects below a root.
#[derive(Debug)]
pub struct RemoteStore {
    root: Root,
    writer: Writer,
    /// May be written anew, see [`Store::discard`].
    discarded: Mutex<BTreeSet<String>>,
}

/// Who writes.
#[derive(Debug)]
enum Writer {
    Nobody,
    /// A run whose checkpoint is elsewhere.
    Run(String),
    Holder(Arc<RemoteLease>),
}

impl RemoteStore {
    /// For a reader.
    pub fn reader(root: Root) -> Self {
        Self::by(root, Writer::Nobody)
    }

    /// For the files of a run that holds no lease on them.
    pub fn writer(root: Root, run: &str) -> Self {
        Self::by(root, Writer::Run(run.to_string()))
    }

    /// For the holder of a lease: without it nothing is written or removed.
    pub(super) fn leased(root: Root, lease: Arc<RemoteLease>) -> Self {
        Self::by(root, Writer::Holder(lease))
    }

    fn by(root: Root, writer: Writer) -> Self {
        RemoteStore { root, writer, discarded: Mutex::default() }
    }

    fn check(&self) -> Result<()> {
        match &self.writer {
            Writer::Holder(lease) => lease.check(),
            Writer::Run(_) => Ok(()),
            Writer::Nobody => Err(Error::internal(format!("a reader writes to {}", self.root.shown("")))),
        }
    }

    fn mark(&self, bytes: &[u8]) -> Mark {
        let (epoch, run) = match &self.writer {
            Writer::Nobody => (0, String::new()),
            Writer::Run(run) => (0, run.clone()),
            Writer::Holder(lease) => (lease.epoch(), lease.run().to_string()),
        };
        Mark { epoch, run, length: bytes.len(), crc32c: crc32c::crc32c(bytes) }
    }

    fn put_if(&self, path: &str, bytes: &Bytes, mark: &Mark, condition: Condition<'_>) -> Result<bool> {
        let key = self.root.key(path);
        Ok(self.root.remote().put_if(&key, bytes.clone(), &mark.to_string(), condition)?.is_some())
    }

    /// A name that was taken: perhaps by this run, or by one whose file may be written anew.
    fn put_taken(&self, path: &str, bytes: &Bytes, mark: &Mark) -> Result<()> {
        for _ in 0..2 {
            let Some(found) = self.root.remote().writer_of(&self.root.key(path))? else { break };
            let writer = found.mark.as_deref().and_then(|mark| mark.parse::<Mark>().ok());
            if writer.as_ref() == Some(mark) {
                return Ok(());
            }
            let own = writer.as_ref().is_some_and(|writer| (writer.epoch, &writer.run) == (mark.epoch, &mark.run));
            if own && !self.discarded().contains(path) {
                return Err(self.busy(path, "an earlier try of this run has arrived meanwhile"));
            }
            let earlier = writer.as_ref().is_none_or(|writer| writer.epoch <= mark.epoch);
            if !earlier || !self.discarded().contains(path) {
                return Err(self.taken(path, writer));
            }
            if self.put_if(path, bytes, mark, Condition::Still(&found.version))? {
                return Ok(());
            }
        }
        Err(self.busy(path, "another run is just writing or removing it"))
    }

    fn busy(&self, path: &str, message: &str) -> Error {
        let context = format!("writing {}", self.root.shown(path));
        Error::Io { context, message: message.into(), kind: ErrorKind::ResourceBusy, transient: true }
    }

    fn taken(&self, path: &str, writer: Option<Mark>) -> Error {
        let who = writer.map_or("another run".to_string(), |writer| format!("another run ({})", writer.run));
        Error::conflict(format!(
            "{} is there already: {who} wrote it while this one was running; only one query may use it",
            self.root.shown(path)
        ))
    }

    fn discarded(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.discarded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for RemoteStore {
    fn put_new(&self, path: &str, write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>) -> Result<()> {
        let mut bytes = Vec::new();
        write(&mut bytes).map_err(|e| Error::io(format!("writing {}", self.describe(path)), &e))?;
        let (mark, bytes) = (self.mark(&bytes), Bytes::from(bytes));
        self.check()?;
        if !self.put_if(path, &bytes, &mark, Condition::Absent)? {
            self.put_taken(path, &bytes, &mark)?;
        }
        self.discarded().remove(path);
        Ok(())
    }

    fn get(&self, path: &str) -> Result<Option<Vec<u8>>> {
        Ok(self.root.remote().read(&self.root.key(path))?.map(|found| found.bytes.into()))
    }

    fn list(&self, folder: &str) -> Result<Vec<String>> {
        let (objects, folders) = self.root.remote().list_folder(&self.root.key(folder))?;
        let paths = objects.into_iter().map(|object| object.path).chain(folders);
        let mut names: Vec<String> =
            paths.map(|path| path.rsplit('/').next().unwrap_or_default().to_string()).collect();
        names.sort_unstable();
        names.dedup();
        Ok(names)
    }

    fn delete(&self, path: &str) -> Result<()> {
        self.check()?;
        self.root.remote().delete(&self.root.key(path))
    }

    /// Removes nothing: of a removal nobody could say what it will find when it arrives.
    fn discard(&self, path: &str) -> Result<()> {
        self.discarded().insert(path.to_string());
        Ok(())
    }

    fn describe(&self, path: &str) -> String {
        self.root.shown(path)
    }
}

/// What a writer leaves beside the bytes of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mark {
    epoch: u64,
    run: String,
    length: usize,
    crc32c: u32,
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {} {:08x}", self.epoch, self.run, self.length, self.crc32c)
    }
}

impl FromStr for Mark {
    type Err = Option<std::num::ParseIntError>;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts: Vec<&str> = text.split(' ').collect();
        let [epoch, run, length, crc32c] = parts.as_slice() else { return Err(None) };
        Ok(Mark {
            epoch: epoch.parse().map_err(Some)?,
            run: run.to_string(),
            length: length.parse().map_err(Some)?,
            crc32c: u32::from_str_radix(crc32c, 16).map_err(Some)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::{Remote, Scheme};

    fn put(store: &RemoteStore, path: &str, text: &str) -> Result<()> {
        store.put_new(path, &mut |out| out.write_all(text.as_bytes()))
    }

    #[test]
    fn objects_are_written_once_and_listed_by_folder() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let _entered = runtime.enter();
        let remote = Remote::over(Arc::new(object_store::memory::InMemory::new()), "s3://b", Scheme::S3).unwrap();
        let root = Root::new(remote, "/ck/");
        let store = RemoteStore::writer(root.clone(), "first");
        for path in ["offsets/1", "offsets/0", "state/a/0.delta", "metadata"] {
            put(&store, path, path).unwrap();
        }
        put(&store, "offsets/1", "offsets/1").expect("its own write, whose answer it may have lost");
        let second = RemoteStore::writer(root.clone(), "second");
        let again = put(&second, "offsets/1", "offsets/1").unwrap_err();
        assert!(matches!(again, Error::Conflict { .. }), "{again:?}");
        let expected = "s3://b/ck/offsets/1 is there already: another run (first) wrote it";
        assert!(again.to_string().starts_with(expected), "{again}");
        let late = put(&store, "offsets/1", "other").unwrap_err();
        assert!(late.is_transient() && late.to_string().contains("an earlier try of this run"), "{late}");
        let failing = store.put_new("offsets/2", &mut |_| Err(io::Error::other("no room")));
        assert_eq!(failing.unwrap_err().to_string(), "writing s3://b/ck/offsets/2: no room");
        assert_eq!(store.list("").unwrap(), ["metadata", "offsets", "state"]);
        assert_eq!(store.list("offsets").unwrap(), ["0", "1"]);
        assert_eq!(store.list("nothing").unwrap(), Vec::<String>::new());
        assert_eq!(store.get("offsets/0").unwrap().as_deref(), Some(&b"offsets/0"[..]));
        assert_eq!(store.get("offsets/2").unwrap(), None);
        store.delete("offsets/0").unwrap();
        store.delete("offsets/0").unwrap();
        let reader = RemoteStore::reader(root.below("offsets"));
        assert_eq!(reader.list("").unwrap(), ["1"]);
        assert!(put(&reader, "2", "").is_err() && reader.delete("1").is_err());
    }

    #[test]
    fn what_was_discarded_is_written_anew_once() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let _entered = runtime.enter();
        let remote = Remote::over(Arc::new(object_store::memory::InMemory::new()), "s3://b", Scheme::S3).unwrap();
        let root = Root::new(remote, "ck");
        let (dead, next) = (RemoteStore::writer(root.clone(), "dead"), RemoteStore::writer(root, "next"));
        put(&dead, "state/a/7.delta", "unfinished").unwrap();
        next.discard("state/a/7.delta").unwrap();
        assert_eq!(next.get("state/a/7.delta").unwrap().as_deref(), Some(&b"unfinished"[..]), "nothing is removed");
        put(&next, "state/a/7.delta", "done").unwrap();
        assert!(put(&next, "state/a/7.delta", "again").is_err() && put(&dead, "state/a/7.delta", "late").is_err());
        assert_eq!(next.get("state/a/7.delta").unwrap().as_deref(), Some(&b"done"[..]));
    }
}
