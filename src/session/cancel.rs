//! Ends a statement that runs, from another thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// Ends the statement that runs, from another thread (Ctrl-C).
#[derive(Debug, Clone, Default)]
pub struct CancelToken(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    asked: AtomicBool,
    /// Wakes whoever waits in [`CancelToken::cancelled`]; the flag alone would have to be polled.
    wake: Notify,
}

impl CancelToken {
    /// Asks the running statement to end.
    pub fn cancel(&self) {
        self.0.asked.store(true, Ordering::SeqCst);
        self.0.wake.notify_waiters();
    }

    /// Whether somebody asked. Cleared when the next statement begins.
    pub fn is_cancelled(&self) -> bool {
        self.0.asked.load(Ordering::SeqCst)
    }

    /// Forgets an earlier request.
    pub fn clear(&self) {
        self.0.asked.store(false, Ordering::SeqCst);
    }

    /// Waits until somebody asks.
    pub(super) async fn cancelled(&self) {
        loop {
            let woken = self.0.wake.notified();
            tokio::pin!(woken);
            // Waiting begins before the flag is read: a request between the two is not missed.
            woken.as_mut().enable();
            if self.is_cancelled() {
                return;
            }
            woken.await;
        }
    }
}
