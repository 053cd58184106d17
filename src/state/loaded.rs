//! How much of a query's states has been loaded, for who waits for it.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of what was loaded, by several threads.
#[derive(Debug, Default)]
pub struct Loaded {
    rows: AtomicU64,
    bytes: AtomicU64,
    all_bytes: AtomicU64,
}

impl Loaded {
    /// Rows that are in memory.
    pub fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    /// Bytes of files that are in memory.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Bytes of all files that are to be loaded, as far as they were found; `None`: nobody knows.
    pub fn all_bytes(&self) -> Option<u64> {
        Some(self.all_bytes.load(Ordering::Relaxed)).filter(|all| *all > 0)
    }

    /// Files of so many bytes are to be loaded.
    pub fn expect(&self, bytes: u64) {
        self.all_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// So much has been loaded.
    pub(super) fn add(&self, rows: u64, bytes: u64) {
        self.rows.fetch_add(rows, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}
