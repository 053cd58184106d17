//! What was told of queries that have failed, so that the statement that waited for one does not tell it again.
//!
//! A query says that it fails when it does, whoever waits for it; AWAIT, STEP, STOP and WATCH then fail with the same error.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::Error;

/// So many are kept: a statement waits for one of the newest.
const KEPT: usize = 100;

/// The lines that were told; clones share them.
#[derive(Clone, Default)]
pub(super) struct Failures(Arc<Mutex<Lines>>);

#[derive(Default)]
struct Lines {
    told: VecDeque<String>,
    /// The last of them, until a statement fails.
    newest: Option<String>,
}

impl Failures {
    /// Remembers a line that is told.
    pub(super) fn told(&self, line: &str) {
        let mut lines = self.lock();
        if lines.told.len() == KEPT {
            lines.told.pop_front();
        }
        lines.told.push_back(line.to_string());
        lines.newest = Some(line.to_string());
    }

    /// The last line that was told since a statement failed.
    pub(super) fn newest(&self) -> Option<String> {
        self.lock().newest.clone()
    }

    /// A statement has failed.
    pub(super) fn passed(&self) {
        self.lock().newest = None;
    }

    fn lock(&self) -> MutexGuard<'_, Lines> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The error without what was told already; `None`: nothing was.
    pub(super) fn brief(&self, error: &Error) -> Option<Error> {
        let text = error.to_string();
        let lines = self.lock();
        lines.told.iter().rev().find_map(|line| {
            let front = line.strip_suffix(&text)?;
            let what = match (front, error) {
                ("", Error::QueryFailed { query, batch, .. }) => format!("query {query} failed in batch {batch}"),
                (front, _) => front.strip_suffix(": ").filter(|front| front.ends_with(" failed"))?.to_string(),
            };
            Some(Error::Told { what, error: Box::new(error.clone()) })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_that_was_told_is_brief_and_keeps_its_code_and_help() {
        let failures = Failures::default();
        let cause = Error::unsupported("no").help("yes");
        let failed = Error::QueryFailed { query: "q".into(), batch: 3, node: None, cause: Box::new(cause) };
        assert!(failures.brief(&failed).is_none());
        failures.told(&failed.to_string());
        let brief = failures.brief(&failed).unwrap();
        assert_eq!(brief.to_string(), "query q failed in batch 3: see its notice");
        assert_eq!((brief.code(), brief.help_text()), ("E0200", Some("yes")));
        let before = Error::conflict("busy");
        assert!(failures.brief(&before).is_none());
        failures.told("query r failed: busy");
        assert_eq!(failures.brief(&before).unwrap().to_string(), "query r failed: see its notice");
        // Of two that failed alike, the one that failed last.
        failures.told("query s failed: busy");
        assert_eq!(failures.brief(&before).unwrap().to_string(), "query s failed: see its notice");
        failures.told("too busy");
        assert!(failures.brief(&Error::conflict("so busy")).is_none());
    }
}
