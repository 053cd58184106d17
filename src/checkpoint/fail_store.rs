//! A store that fails where a test wants it to: torn files, a full disk, a sync that never happened.
//!
//! It acts on the real bytes of the real store behind it. While nothing is armed it only passes calls on.

use std::io::{self, ErrorKind, Write};
use std::sync::Arc;

use super::failpoint::{Action, LOG_WRITE, MANIFEST_WRITE, STATE_WRITE};
use super::{Failpoints, Store};
use crate::error::{Error, Result};

/// How much of a file still fits on a disk that is about to be full.
const LEFT_ON_A_FULL_DISK: usize = 16;

/// A store whose writes pass failpoints, and which dies with its run.
#[derive(Debug)]
pub struct FailStore {
    inner: Arc<dyn Store>,
    failpoints: Failpoints,
    /// The failpoint that a write of this path passes.
    point: fn(&str) -> &'static str,
}

impl FailStore {
    /// The store of a checkpoint: `state.write` below `state/`, `log.write` elsewhere.
    pub fn checkpoint(inner: Arc<dyn Store>, failpoints: Failpoints) -> Self {
        FailStore { inner, failpoints, point: |path| if path.starts_with("state/") { STATE_WRITE } else { LOG_WRITE } }
    }

    /// The store of a file sink's manifest: `manifest.write`.
    pub fn manifest(inner: Arc<dyn Store>, failpoints: Failpoints) -> Self {
        FailStore { inner, failpoints, point: |_| MANIFEST_WRITE }
    }

    fn put_torn(&self, path: &str, kept: u64, write: Writing<'_>) -> Result<()> {
        let mut bytes = Vec::new();
        write(&mut bytes).map_err(|e| Error::io(format!("writing {}", self.describe(path)), &e))?;
        bytes.truncate(usize::try_from(kept).unwrap_or(usize::MAX));
        self.inner.put_new(path, &mut |out| out.write_all(&bytes))
    }

    /// Answers whether a kill is armed that will take the content away.
    fn put_unsynced(&self, path: &str, write: Writing<'_>) -> Result<bool> {
        self.inner.put_new(path, write)?;
        let (inner, path) = (Arc::clone(&self.inner), path.to_string());
        Ok(self.failpoints.lose(Box::new(move || {
            // Nobody is left to be told of a failure: the run dies in this moment.
            let _ = inner.delete(&path).and_then(|()| inner.put_new(&path, &mut |_| Ok(())));
        })))
    }
}

type Writing<'a> = &'a mut dyn FnMut(&mut dyn Write) -> io::Result<()>;

impl Store for FailStore {
    fn put_new(&self, path: &str, write: Writing<'_>) -> Result<()> {
        match self.failpoints.pass((self.point)(path))? {
            None => self.inner.put_new(path, write),
            Some((point, Action::Torn(kept))) => {
                self.put_torn(path, kept, write)?;
                Err(self.failpoints.kill(point))
            }
            Some((point, Action::LostFsync)) => match self.put_unsynced(path, write)? {
                true => Ok(()),
                false => Err(self.failpoints.kill(point)),
            },
            Some(_) => self.inner.put_new(path, &mut |out| {
                let mut disk = FullDisk { out, left: LEFT_ON_A_FULL_DISK };
                write(&mut disk)?;
                Err(ErrorKind::StorageFull.into())
            }),
        }
    }

    fn get(&self, path: &str) -> Result<Option<Vec<u8>>> {
        self.inner.get(path)
    }

    fn length(&self, path: &str) -> Option<u64> {
        self.inner.length(path)
    }

    fn list(&self, folder: &str) -> Result<Vec<String>> {
        self.inner.list(folder)
    }

    fn delete(&self, path: &str) -> Result<()> {
        match self.failpoints.is_killed() {
            true => self.failpoints.hit((self.point)(path)),
            false => self.inner.delete(path),
        }
    }

    fn discard(&self, path: &str) -> Result<()> {
        match self.failpoints.is_killed() {
            true => self.failpoints.hit((self.point)(path)),
            false => self.inner.discard(path),
        }
    }

    fn describe(&self, path: &str) -> String {
        self.inner.describe(path)
    }
}

/// Takes a few bytes more, then fails.
struct FullDisk<'a> {
    out: &'a mut dyn Write,
    left: usize,
}

impl Write for FullDisk<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Err(ErrorKind::StorageFull.into());
        }
        let written = self.out.write(&bytes[..bytes.len().min(self.left)])?;
        self.left -= written;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
