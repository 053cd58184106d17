//! No record may hang: after its time the statement that runs is cancelled, and the record fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use crate::session::CancelToken;

/// Watches the records of one file.
pub struct Guard {
    orders: Sender<Option<CancelToken>>,
    /// The record that runs has had its time.
    late: Arc<AtomicBool>,
}

impl Guard {
    /// Gives each record so long.
    pub fn new(patience: Duration) -> Self {
        let (orders, received) = channel::<Option<CancelToken>>();
        let late = Arc::new(AtomicBool::new(false));
        let is_late = late.clone();
        std::thread::spawn(move || {
            let mut watched: Option<CancelToken> = None;
            loop {
                let next = match &watched {
                    None => received.recv().map_err(|_| RecvTimeoutError::Disconnected),
                    Some(_) => received.recv_timeout(patience),
                };
                match next {
                    Ok(order) => watched = order,
                    // It is asked again until the record ends: a statement forgets the request when it begins.
                    Err(RecvTimeoutError::Timeout) => {
                        if let Some(token) = &watched {
                            is_late.store(true, Ordering::SeqCst);
                            token.cancel();
                        }
                    }
                    Err(RecvTimeoutError::Disconnected) => return,
                }
            }
        });
        Guard { orders, late }
    }

    /// A record begins whose statements this token ends.
    pub fn begin(&self, token: CancelToken) {
        self.late.store(false, Ordering::SeqCst);
        // The watcher lives as long as the guard.
        let _ = self.orders.send(Some(token));
    }

    /// The record has ended; whether it had to be ended.
    pub fn end(&self) -> bool {
        let _ = self.orders.send(None);
        self.late.load(Ordering::SeqCst)
    }
}
