//! A store in a local directory.
//!
//! How a file comes to be, so that a crash at any moment leaves it whole or absent:
//!
//! 1. its folder is made where it is missing, and the folder above it synced;
//! 2. the content goes to `.tmp-<process>-<n>` beside it, which is synced;
//! 3. a hard link gives it its name. Unlike a rename, a link never replaces: a second writer fails here;
//! 4. the temporary name is removed, and the folder synced, which makes both changes durable.
//!
//! That is two syncs a file, and no more once a folder is known. What is written through this store is trusted after
//! a loss of power; what `object_store`'s local files write is not, as they are never synced.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

use super::Store;
use crate::error::{Error, Result};

/// How names of files begin that are being written, or were when a process died.
const TEMPORARY: &str = ".tmp-";

/// Makes temporary names different within the process.
static COUNTER: AtomicU64 = AtomicU64::new(0);

/// A local directory. It is created with the first file.
#[derive(Debug)]
pub struct LocalStore {
    root: PathBuf,
    /// Whether files are synced: what does not outlive its process need not be.
    durable: bool,
    /// Set once the owner has lost its lease: nothing is written or removed from then on.
    closed: RwLock<bool>,
    /// Folders known to be there and durable, relative to the root.
    known: Mutex<BTreeSet<PathBuf>>,
}

impl LocalStore {
    /// A durable store in the directory `root`, which need not be there yet.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        LocalStore { root: root.into(), durable: true, closed: RwLock::new(false), known: Mutex::default() }
    }

    /// A store for files that nobody wants after a loss of power: never synced.
    pub fn volatile(root: impl Into<PathBuf>) -> Self {
        LocalStore::synced(root, false)
    }

    /// One or the other.
    pub fn synced(root: impl Into<PathBuf>, durable: bool) -> Self {
        LocalStore { durable, ..LocalStore::new(root) }
    }

    /// Ends all writing and removing through this store, also by other holders of it. Waits for a write that is
    /// just being published.
    pub fn close(&self) {
        *self.closed.write().unwrap_or_else(PoisonError::into_inner) = true;
    }

    /// Makes the root directory.
    ///
    /// # Errors
    /// Io, naming the directory.
    pub fn create_root(&self) -> Result<()> {
        self.ensure_folder(Path::new(""))
    }

    /// Removes what died with an earlier process while it was being written in `folder`. Only the holder of the
    /// lease may ask for it.
    ///
    /// # Errors
    /// Io, naming the file.
    pub fn sweep(&self, folder: &str) -> Result<()> {
        for name in self.names(folder)?.iter().filter(|name| name.starts_with(TEMPORARY)) {
            self.delete(&Path::new(folder).join(name).to_string_lossy())?;
        }
        Ok(())
    }

    fn resolve(&self, path: &str) -> Result<PathBuf> {
        let path = Path::new(path);
        if path.components().all(|part| matches!(part, Component::Normal(_))) {
            return Ok(self.root.join(path));
        }
        Err(Error::internal(format!("{} leads out of {}", path.display(), self.root.display())))
    }

    fn known(&self) -> MutexGuard<'_, BTreeSet<PathBuf>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a folder and those above it, durably. A folder is looked at once: when it is removed behind our back,
    /// the next write into it fails, which is better than a checkpoint without its beginning.
    fn ensure_folder(&self, folder: &Path) -> Result<()> {
        let mut known = self.known();
        if known.contains(folder) {
            return Ok(());
        }
        if !known.contains(Path::new("")) {
            self.make_root()?;
            known.insert(PathBuf::new());
        }
        let mut relative = PathBuf::new();
        for part in folder.components() {
            let above = self.root.join(&relative);
            relative.push(part);
            if !known.contains(&relative) {
                make_directory(&self.root.join(&relative))?;
                self.sync_directory(&above)?;
                known.insert(relative.clone());
            }
        }
        Ok(())
    }

    fn make_root(&self) -> Result<()> {
        let missing: Vec<&Path> =
            self.root.ancestors().take_while(|dir| !dir.as_os_str().is_empty() && !dir.is_dir()).collect();
        for dir in missing.into_iter().rev() {
            make_directory(dir)?;
            self.sync_directory(dir.parent().unwrap_or(Path::new("")))?;
        }
        Ok(())
    }

    fn sync_directory(&self, dir: &Path) -> Result<()> {
        if !self.durable {
            return Ok(());
        }
        let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
        let synced = File::open(dir).and_then(|opened| opened.sync_all());
        synced.map_err(|e| Error::io(format!("syncing the directory {}", dir.display()), &e))
    }

    fn create_temporary(&self, folder: &Path) -> io::Result<(PathBuf, File)> {
        loop {
            let n = COUNTER.fetch_add(1, Ordering::Relaxed);
            let path = folder.join(format!("{TEMPORARY}{}-{n}", std::process::id()));
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(file) => return Ok((path, file)),
                // Left by a process that had our number.
                Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
                Err(e) => return Err(e),
            }
        }
    }

    fn fill(&self, file: File, write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
        let mut buffered = BufWriter::with_capacity(64 << 10, file);
        write(&mut buffered)?;
        let file = buffered.into_inner().map_err(io::IntoInnerError::into_error)?;
        if self.durable { file.sync_data() } else { Ok(()) }
    }

    /// Gives a complete temporary file its name.
    fn publish(&self, temporary: &Path, target: &Path) -> Result<()> {
        let closed = self.closed.read().unwrap_or_else(PoisonError::into_inner);
        if *closed {
            return Err(self.closed_error(target));
        }
        fs::hard_link(temporary, target).map_err(|e| match e.kind() {
            // Who has the name sweeps temporary files: ours may be among them.
            ErrorKind::AlreadyExists | ErrorKind::NotFound if target.exists() => Error::conflict(format!(
                "{} is there already: another run wrote it while this one was running; only one query may use it",
                target.display()
            )),
            ErrorKind::Unsupported | ErrorKind::PermissionDenied => {
                Error::io(format!("linking {} (it must be on a file system that has hard links)", target.display()), &e)
            }
            _ => Error::io(format!("linking {}", target.display()), &e),
        })
    }

    fn closed_error(&self, path: &Path) -> Error {
        Error::conflict(format!(
            "{} is not written: the run that held {} has ended",
            path.display(),
            self.root.display()
        ))
    }

    fn names(&self, folder: &str) -> Result<Vec<String>> {
        let path = self.resolve(folder)?;
        let failed = |e: &io::Error| Error::io(format!("listing {}", path.display()), e);
        let entries = match fs::read_dir(&path) {
            Ok(entries) => entries,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) if e.kind() == ErrorKind::NotADirectory => {
                return Err(Error::corrupt(path.display(), "not of Levada: where this file is, a folder should be"));
            }
            Err(e) => return Err(failed(&e)),
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|e| failed(&e))?;
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
        names.sort_unstable();
        Ok(names)
    }
}

impl Store for LocalStore {
    fn put_new(&self, path: &str, write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>) -> Result<()> {
        let target = self.resolve(path)?;
        let writing = |e: &io::Error| Error::io(format!("writing {}", target.display()), e);
        if *self.closed.read().unwrap_or_else(PoisonError::into_inner) {
            return Err(self.closed_error(&target));
        }
        let folder = Path::new(path).parent().unwrap_or(Path::new(""));
        self.ensure_folder(folder)?;
        let folder = self.root.join(folder);
        let (temporary, file) = self.create_temporary(&folder).map_err(|e| writing(&e))?;
        let published =
            self.fill(file, write).map_err(|e| writing(&e)).and_then(|()| self.publish(&temporary, &target));
        // A temporary file that can't be removed is ignored by every reader and swept at the next start.
        let _ = fs::remove_file(&temporary);
        published?;
        self.sync_directory(&folder).inspect_err(|_| {
            // Whether the name will survive is unknown. It is ours, so take it back: the caller may try again.
            let _ = fs::remove_file(&target);
        })
    }

    fn get(&self, path: &str) -> Result<Option<Vec<u8>>> {
        let path = self.resolve(path)?;
        match fs::read(&path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            Err(e) if e.kind() == ErrorKind::IsADirectory => {
                Err(Error::corrupt(path.display(), "not of Levada: where this folder is, a file should be"))
            }
            Err(e) => Err(Error::io(format!("reading {}", path.display()), &e)),
        }
    }

    fn length(&self, path: &str) -> Option<u64> {
        fs::metadata(self.resolve(path).ok()?).ok().map(|file| file.len())
    }

    fn list(&self, folder: &str) -> Result<Vec<String>> {
        let mut names = self.names(folder)?;
        names.retain(|name| !name.starts_with(TEMPORARY));
        Ok(names)
    }

    fn delete(&self, path: &str) -> Result<()> {
        let target = self.resolve(path)?;
        let closed = self.closed.read().unwrap_or_else(PoisonError::into_inner);
        if *closed {
            return Err(self.closed_error(&target));
        }
        match fs::remove_file(&target) {
            Err(e) if e.kind() != ErrorKind::NotFound => Err(Error::io(format!("removing {}", target.display()), &e)),
            _ => Ok(()),
        }
    }

    fn describe(&self, path: &str) -> String {
        self.root.join(path).display().to_string()
    }
}

/// Makes one directory; one that is there already is no error.
fn make_directory(dir: &Path) -> Result<()> {
    match fs::create_dir(dir) {
        Err(e) if !(e.kind() == ErrorKind::AlreadyExists && dir.is_dir()) => {
            Err(Error::io(format!("creating the directory {}", dir.display()), &e))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(store: &LocalStore, path: &str, text: &str) -> Result<()> {
        store.put_new(path, &mut |out| out.write_all(text.as_bytes()))
    }

    #[test]
    fn a_file_comes_back_and_is_never_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let store = LocalStore::new(dir.path().join("a/b"));
        assert_eq!((store.get("x/7").unwrap(), store.list("x").unwrap()), (None, vec![]));
        put(&store, "x/7", "seven").unwrap();
        let error = put(&store, "x/7", "other").unwrap_err();
        assert!(matches!(&error, Error::Conflict { message } if message.contains("a/b/x/7")), "{error}");
        assert_eq!(store.get("x/7").unwrap().as_deref(), Some(b"seven".as_slice()));
        assert_eq!(store.names("x").unwrap(), ["7"]);
        store.delete("x/7").unwrap();
        store.delete("x/7").unwrap();
        assert_eq!(store.get("x/7").unwrap(), None);
    }

    #[test]
    fn of_many_writers_one_wins_each_name() {
        let dir = tempfile::tempdir().unwrap();
        let writer = |who: usize| {
            let store = LocalStore::volatile(dir.path());
            (0..50).filter(|n| put(&store, &format!("offsets/{n}"), &who.to_string()).is_ok()).collect::<Vec<_>>()
        };
        let won: Vec<Vec<i32>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|who| scope.spawn(move || writer(who))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        for (who, names) in won.iter().enumerate() {
            for n in names {
                let content = std::fs::read_to_string(dir.path().join(format!("offsets/{n}"))).unwrap();
                assert_eq!(content, who.to_string());
            }
        }
        assert_eq!(won.iter().map(Vec::len).sum::<usize>(), 50);
    }

    #[test]
    fn a_failed_write_leaves_nothing_and_keeps_its_kind() {
        let dir = tempfile::tempdir().unwrap();
        let store = LocalStore::new(dir.path());
        let full = store.put_new("x/1", &mut |out| {
            out.write_all(b"half")?;
            Err(ErrorKind::StorageFull.into())
        });
        match full {
            Err(Error::Io { kind: ErrorKind::StorageFull, context, transient: false, .. }) => {
                assert!(context.starts_with("writing ") && context.ends_with("x/1"), "{context}");
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(store.names("x").unwrap(), [""; 0]);
    }

    #[test]
    fn a_directory_that_vanishes_is_not_made_again_in_silence() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("ck");
        let store = LocalStore::new(&root);
        put(&store, "offsets/0", "x").unwrap();
        std::fs::remove_dir_all(&root).unwrap();
        assert!(matches!(put(&store, "offsets/1", "x"), Err(Error::Io { kind: ErrorKind::NotFound, .. })));
        assert!(matches!(put(&store, "commits/0", "x"), Err(Error::Io { kind: ErrorKind::NotFound, .. })));
        assert!(!root.exists());
    }

    #[test]
    fn paths_stay_inside() {
        let dir = tempfile::tempdir().unwrap();
        let store = LocalStore::new(dir.path().join("ck"));
        for path in ["../x", "/x", "a/../../x"] {
            assert!(matches!(put(&store, path, "x"), Err(Error::Internal { .. })), "{path}");
        }
    }

    #[test]
    fn a_name_that_another_run_has_is_a_conflict_though_our_temporary_file_was_swept() {
        let dir = tempfile::tempdir().unwrap();
        let store = LocalStore::new(dir.path());
        put(&store, "owner", "theirs").unwrap();
        let (swept, owner) = (dir.path().join(".tmp-1-1"), dir.path().join("owner"));
        assert!(matches!(store.publish(&swept, &owner), Err(Error::Conflict { .. })));
        assert!(matches!(store.publish(&swept, &dir.path().join("free")), Err(Error::Io { .. })));
    }
}
