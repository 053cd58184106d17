//! One process at a time: the lease of a checkpoint.
//!
//! The lease is a lock of the operating system on `<checkpoint>/lease`, so that it ends with its process, however that
//! dies. What the file holds is only for the message to those who come second: a stale or damaged text is harmless.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;

use chrono::{DateTime, SecondsFormat};
use serde::{Deserialize, Serialize};

use crate::clock::Clock;
use crate::error::{Error, Result};

/// The right to write to a checkpoint, until it is dropped.
#[derive(Debug)]
pub(super) struct Lease {
    locked: File,
    run: String,
}

/// Who holds a lease.
#[derive(Debug, Serialize, Deserialize)]
struct Holder {
    pid: u32,
    run: String,
    started: String,
}

impl Lease {
    /// Takes the lease of the checkpoint in the directory `root`, which the user calls `location`.
    ///
    /// # Errors
    /// Conflict: somebody holds it, named by process, run and start. Io: the file can't be made or locked.
    pub(super) fn take(root: &Path, location: &str) -> Result<Self> {
        let path = root.join("lease");
        let failed = |what: &str, e: &std::io::Error| Error::io(format!("{what} {}", path.display()), e);
        let opened = OpenOptions::new().create(true).read(true).write(true).truncate(false).open(&path);
        let mut file = opened.map_err(|e| failed("opening", &e))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(in_use(&mut file, location)),
            Err(TryLockError::Error(e)) => return Err(failed("locking", &e)),
        }
        let run = uuid::Uuid::new_v4().to_string();
        let started = DateTime::from_timestamp_millis(Clock::system().now()).unwrap_or_default();
        let started = started.to_rfc3339_opts(SecondsFormat::Millis, true);
        let holder = super::text::to_line(&Holder { pid: std::process::id(), run: run.clone(), started })?;
        let written = file.set_len(0).and_then(|()| file.rewind()).and_then(|()| writeln!(file, "{holder}"));
        written.map_err(|e| failed("writing", &e))?;
        Ok(Lease { locked: file, run })
    }

    /// The id of the run that holds it: another one at every start.
    pub(super) fn run(&self) -> &str {
        &self.run
    }
}

impl Drop for Lease {
    /// Closing alone would not do: a program that is being started has a copy of the file for a moment, and the lock with it.
    fn drop(&mut self) {
        let _ = self.locked.unlock();
    }
}

fn in_use(file: &mut File, location: &str) -> Error {
    let mut text = String::new();
    let holder = file.read_to_string(&mut text).ok().and_then(|_| serde_json::from_str::<Holder>(&text).ok());
    let by = match holder {
        Some(Holder { pid, run, started }) if pid == std::process::id() => {
            format!("another query of this process (run {run}, since {started})")
        }
        Some(Holder { pid, run, started }) => format!("process {pid} (run {run}, since {started})"),
        None => "another process".to_string(),
    };
    Error::conflict(format!(
        "checkpoint {location} is in use by {by}: stop that query first, or use another checkpoint"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_taker_is_told_who_holds_it() {
        let dir = tempfile::tempdir().unwrap();
        let first = Lease::take(dir.path(), "ck").unwrap();
        let message = Lease::take(dir.path(), "ck").unwrap_err().to_string();
        assert!(message.starts_with("checkpoint ck is in use by another query of this process (run "), "{message}");
        assert!(message.contains(first.run()), "{message}");
        drop(first);
        Lease::take(dir.path(), "ck").unwrap();
    }

    #[test]
    fn another_process_is_named_and_a_damaged_text_is_harmless() {
        let dir = tempfile::tempdir().unwrap();
        let held = Lease::take(dir.path(), "ck").unwrap();
        std::fs::write(dir.path().join("lease"), r#"{"pid":1,"run":"r","started":"2024-01-01T00:00:00.000Z"}"#)
            .unwrap();
        let message = Lease::take(dir.path(), "ck").unwrap_err().to_string();
        assert!(message.contains("by process 1 (run r, since 2024-01-01T00:00:00.000Z)"), "{message}");
        std::fs::write(dir.path().join("lease"), "rubbish").unwrap();
        assert!(Lease::take(dir.path(), "ck").unwrap_err().to_string().contains("by another process"));
        drop(held);
        Lease::take(dir.path(), "ck").unwrap();
    }
}
