//! No record may hang: after its time the statement that runs is cancelled, and the record fails.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use crate::session::CancelToken;

/// Watches the records of one file.
pub struct Guard {
    orders: Sender<Option<CancelToken>>,
}

impl Guard {
    /// Gives each record so long.
    pub fn new(patience: Duration) -> Self {
        let (orders, received) = channel::<Option<CancelToken>>();
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
                            token.cancel();
                        }
                    }
                    Err(RecvTimeoutError::Disconnected) => return,
                }
            }
        });
        Guard { orders }
    }

    /// A record begins whose statements this token ends.
    pub fn begin(&self, token: CancelToken) {
        // The watcher lives as long as the guard.
        let _ = self.orders.send(Some(token));
    }

    /// The record has ended.
    pub fn end(&self) {
        let _ = self.orders.send(None);
    }
}
