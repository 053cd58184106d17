//! Those who look on while a query runs (`WATCH q`): each is handed what the batches that are committed from now on have
//! changed.
//!
//! A query never waits for who looks on: what a reader is too slow for, or what is too large to be held for it, is left
//! out and counted. Nobody sees a batch before it is committed, or part of one.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow::array::{Array, ArrayRef};

use super::shared::Shared;
use super::streaming_query::PATIENCE;
use crate::delta::Delta;
use crate::error::{Error, Result};
use crate::sink::{BatchId, BatchSummary, Begin, Sink, SinkCommit, SinkContext};

/// So many batches wait for a reader at the most …
const BATCHES: usize = 64;

/// … and so many bytes of rows.
const BYTES: usize = 64 << 20;

/// A batch as it was committed.
#[derive(Debug, Clone)]
pub struct Watched {
    pub batch: BatchId,
    /// By partition, in the order they came.
    pub changes: Vec<(usize, Delta)>,
    pub summary: BatchSummary,
    /// So many batches before it were not handed over: they came too fast, or were too large.
    pub skipped: u64,
    bytes: usize,
}

/// What a reader and the query share.
#[derive(Debug, Default)]
struct Lag {
    bytes: AtomicUsize,
    skipped: AtomicU64,
}

struct Reader {
    sender: SyncSender<Watched>,
    lag: Arc<Lag>,
    /// It was there when the batch began.
    ready: bool,
}

/// All who look on, and the batch that is being written.
#[derive(Default)]
pub(super) struct Watchers {
    inner: Mutex<Inner>,
    /// Somebody waits for the batch that is being written.
    collecting: AtomicBool,
}

#[derive(Default)]
struct Inner {
    readers: Vec<Reader>,
    changes: Vec<(usize, Delta)>,
    bytes: usize,
    summary: BatchSummary,
}

impl Watchers {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many look on.
    pub fn count(&self) -> usize {
        self.lock().readers.iter().filter(|reader| reader.is_there()).count()
    }

    fn add(&self) -> (Receiver<Watched>, Arc<Lag>) {
        let (sender, receiver) = sync_channel(BATCHES);
        let lag = Arc::new(Lag::default());
        self.lock().readers.push(Reader { sender, lag: lag.clone(), ready: false });
        (receiver, lag)
    }

    /// A batch begins, or begins again.
    fn begin(&self) {
        let mut inner = self.lock();
        inner.changes.clear();
        inner.bytes = 0;
        inner.summary = BatchSummary::default();
        inner.readers.retain(Reader::is_there);
        inner.readers.iter_mut().for_each(|reader| reader.ready = true);
        self.collecting.store(!inner.readers.is_empty(), Ordering::Relaxed);
    }

    fn push(&self, partition: usize, changes: &Delta) {
        if !self.collecting.load(Ordering::Relaxed) {
            return;
        }
        let mut inner = self.lock();
        inner.bytes = inner.bytes.saturating_add(size(changes));
        if inner.bytes <= BYTES {
            inner.changes.push((partition, changes.clone()));
        } else {
            inner.changes.clear();
        }
    }

    /// The batch is committed: whoever was there when it began may see it.
    pub fn publish(&self, batch: BatchId) {
        if !self.collecting.swap(false, Ordering::Relaxed) {
            return;
        }
        let mut inner = self.lock();
        let changes = std::mem::take(&mut inner.changes);
        let watched = Watched { batch, changes, summary: inner.summary.clone(), skipped: 0, bytes: inner.bytes };
        inner.readers.retain(|reader| !reader.ready || reader.hand(&watched));
    }
}

/// About how many bytes the rows themselves take: many batches may be parts of one.
fn size(changes: &Delta) -> usize {
    let of = |column: &ArrayRef| column.to_data().get_slice_memory_size().unwrap_or(column.get_array_memory_size());
    changes.rows.columns().iter().map(of).sum()
}

impl Reader {
    fn is_there(&self) -> bool {
        Arc::strong_count(&self.lag) > 1
    }

    /// Hands a batch over, or counts it as skipped; answers whether anybody is there.
    fn hand(&self, watched: &Watched) -> bool {
        let waiting = self.lag.bytes.load(Ordering::Acquire);
        if waiting.saturating_add(watched.bytes) > BYTES {
            self.lag.skipped.fetch_add(1, Ordering::AcqRel);
            return self.is_there();
        }
        self.lag.bytes.fetch_add(watched.bytes, Ordering::AcqRel);
        let skipped = self.lag.skipped.swap(0, Ordering::AcqRel);
        match self.sender.try_send(Watched { skipped, ..watched.clone() }) {
            Ok(()) => true,
            Err(TrySendError::Disconnected(_)) => false,
            Err(TrySendError::Full(_)) => {
                self.lag.bytes.fetch_sub(watched.bytes, Ordering::AcqRel);
                self.lag.skipped.fetch_add(skipped + 1, Ordering::AcqRel);
                true
            }
        }
    }
}

/// The query's own sink, and beside it a look at what it is handed.
pub(super) struct WatchedSink {
    pub inner: Box<dyn Sink>,
    pub watchers: Arc<Watchers>,
}

impl Sink for WatchedSink {
    fn description(&self) -> String {
        self.inner.description()
    }

    fn begin(&mut self, batch: BatchId) -> Result<Begin> {
        self.watchers.begin();
        self.inner.begin(batch)
    }

    fn push(&mut self, partition: usize, changes: Delta) -> Result<()> {
        self.watchers.push(partition, &changes);
        self.inner.push(partition, changes)
    }

    fn commit(&mut self, summary: &BatchSummary) -> Result<SinkCommit> {
        let commit = self.inner.commit(summary)?;
        self.watchers.lock().summary = summary.clone();
        Ok(commit)
    }

    fn abort(&mut self) -> Result<()> {
        self.watchers.begin();
        self.inner.abort()
    }
}

/// A look at a running query, from the next batch on.
pub struct Watch {
    receiver: Receiver<Watched>,
    lag: Arc<Lag>,
    shared: Arc<Shared>,
}

/// What there is to see next.
pub enum Seen {
    Batch(Watched),
    /// So many batches were not handed over, and none has come behind them yet.
    Skipped(u64),
    /// The query has ended, and all of it was seen.
    Ended,
}

impl Watch {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        let (receiver, lag) = shared.watchers.add();
        Watch { receiver, lag, shared }
    }

    /// What the query's sink was opened for.
    pub fn context(&self) -> &SinkContext {
        &self.shared.context
    }

    /// Waits for the next batch. `cancelled` is asked while waiting.
    ///
    /// # Errors
    /// Cancelled: the user gave up. The query's own error, if it has failed.
    pub fn next(&self, cancelled: &dyn Fn() -> bool) -> Result<Seen> {
        loop {
            // Before the batches: what comes in between is seen in the next round.
            let (ended, failed) = self.shared.ending();
            // Also where batches never stop coming.
            if !ended && cancelled() {
                return Err(Error::Cancelled { message: "no longer watching".into() });
            }
            let next = match ended {
                false => self.receiver.recv_timeout(PATIENCE),
                true => self.receiver.try_recv().map_err(|error| match error {
                    TryRecvError::Empty => RecvTimeoutError::Timeout,
                    TryRecvError::Disconnected => RecvTimeoutError::Disconnected,
                }),
            };
            if let Ok(watched) = next {
                self.lag.bytes.fetch_sub(watched.bytes, Ordering::AcqRel);
                return Ok(Seen::Batch(watched));
            }
            // Behind the batches that came before them.
            match self.lag.skipped.swap(0, Ordering::AcqRel) {
                0 => {}
                skipped => return Ok(Seen::Skipped(skipped)),
            }
            match (ended, failed) {
                (true, Some(error)) => return Err(error),
                (true, None) => return Ok(Seen::Ended),
                (false, _) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Int64Array, RecordBatch};

    use super::*;
    use crate::sink::blackhole;

    fn rows(count: usize) -> Delta {
        let column = Arc::new(Int64Array::from_value(7, count)) as arrow::array::ArrayRef;
        Delta::insert(RecordBatch::try_from_iter([("n", column)]).unwrap())
    }

    fn sink(watchers: &Arc<Watchers>) -> WatchedSink {
        let context = SinkContext {
            query: "q".into(),
            query_id: "id".into(),
            run_id: "run".into(),
            mode: crate::parser::OutputMode::Append,
            schema: rows(0).rows.schema(),
            keys: None,
            only_adds: false,
            delay: None,
            retracts: false,
            partitions: 1,
            committed: None,
            failpoints: crate::checkpoint::Failpoints::default(),
            durable: false,
        };
        let inner = Box::new(blackhole::open(&crate::options::Options::default(), &context).unwrap());
        WatchedSink { inner, watchers: watchers.clone() }
    }

    fn run(sink: &mut WatchedSink, batch: u64, count: usize) {
        sink.begin(batch).unwrap();
        sink.push(0, rows(count)).unwrap();
        sink.commit(&BatchSummary::default()).unwrap();
        sink.watchers.publish(batch);
    }

    #[test]
    fn who_comes_while_a_batch_is_written_sees_the_next() {
        let watchers = Arc::new(Watchers::default());
        let mut sink = sink(&watchers);
        sink.begin(0).unwrap();
        let (receiver, _lag) = watchers.add();
        sink.push(0, rows(1)).unwrap();
        sink.commit(&BatchSummary::default()).unwrap();
        watchers.publish(0);
        assert!(receiver.try_recv().is_err());
        run(&mut sink, 1, 2);
        let seen = receiver.try_recv().unwrap();
        assert_eq!((seen.batch, seen.changes[0].1.len()), (1, 2));
    }

    #[test]
    fn a_batch_that_begins_again_is_seen_once() {
        let watchers = Arc::new(Watchers::default());
        let (receiver, _lag) = watchers.add();
        let mut sink = sink(&watchers);
        sink.begin(0).unwrap();
        sink.push(0, rows(1)).unwrap();
        sink.abort().unwrap();
        run(&mut sink, 0, 1);
        assert_eq!(receiver.try_iter().map(|seen| seen.changes.len()).collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn what_a_reader_is_too_slow_for_is_counted_and_holds_nobody_up() {
        let watchers = Arc::new(Watchers::default());
        let (receiver, lag) = watchers.add();
        let mut sink = sink(&watchers);
        for batch in 0..BATCHES as u64 + 3 {
            run(&mut sink, batch, 1);
        }
        assert_eq!(lag.skipped.load(Ordering::Relaxed), 3);
        assert_eq!(receiver.try_iter().count(), BATCHES);
        run(&mut sink, 98, 1);
        assert_eq!((receiver.try_recv().unwrap().skipped, lag.skipped.load(Ordering::Relaxed)), (3, 0));
        // Too large to be held at all.
        lag.bytes.store(0, Ordering::Relaxed);
        run(&mut sink, 99, BYTES / 8 + 1);
        assert_eq!(lag.skipped.load(Ordering::Relaxed), 1);
        drop((receiver, lag));
        run(&mut sink, 100, 1);
        assert_eq!(watchers.count(), 0);
    }
}
