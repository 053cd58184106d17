//! How much a query of TRIGGER AVAILABLE NOW has before it, as far as its sources know that without reading it: for who waits
//! for its end.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::source::RangeSize;

/// What is known of it, from the moment on at which it was decided how far the sources are read.
#[derive(Debug, Default)]
pub(super) struct Counter(Mutex<Option<Ahead>>);

/// What such a query reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ahead {
    /// In this run, from its start to its end.
    pub all: RangeSize,
    /// By batches that are committed.
    pub done: RangeSize,
    /// By the one that runs.
    pub batch: RangeSize,
}

impl Counter {
    /// It is known how far the sources are read.
    pub fn begin(&self, all: RangeSize) {
        *self.lock() = Some(Ahead { all, done: RangeSize::NOTHING, batch: RangeSize::NOTHING });
    }

    /// A batch of that size begins, …
    pub fn runs(&self, size: RangeSize) {
        if let Some(ahead) = &mut *self.lock() {
            ahead.batch = size;
        }
    }

    /// … and is committed.
    pub fn ran(&self) {
        if let Some(ahead) = &mut *self.lock() {
            ahead.done = ahead.done.plus(ahead.batch);
            ahead.batch = RangeSize::NOTHING;
        }
    }

    pub fn get(&self) -> Option<Ahead> {
        *self.lock()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Ahead>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_taken_off_once_they_are_committed() {
        let size = |rows, bytes| RangeSize { rows, bytes: Some(bytes) };
        let counter = Counter::default();
        counter.runs(size(Some(1), 1));
        assert_eq!(counter.get(), None);
        counter.begin(size(None, 100));
        counter.runs(size(Some(3), 40));
        assert_eq!(counter.get().unwrap().done, RangeSize::NOTHING);
        counter.ran();
        counter.runs(size(None, 60));
        let ahead = counter.get().unwrap();
        assert_eq!((ahead.all, ahead.done, ahead.batch), (size(None, 100), size(Some(3), 40), size(None, 60)));
        counter.ran();
        // Of what is not known all over, nothing is known.
        assert_eq!(counter.get().unwrap().done, size(None, 100));
    }
}
