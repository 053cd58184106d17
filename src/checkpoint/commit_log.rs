//! That a batch is done: `commits/<N>`, one line.
//!
//! In an object store the name may be claimed first: a run that runs a batch again which another run had begun takes
//! the name of its commit, so that the other, should it still be there, can't say any more that the batch is done. Who
//! finds a claim finds a batch that is not done.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::text;
use crate::error::{Error, Result};

/// `commits/<N>`: batch N is done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
pub struct CommitEntry {
    /// The watermark of each input after the batch, milliseconds; undefined ones are absent.
    pub watermarks: BTreeMap<String, i64>,
    /// The query's watermark for the next batch.
    pub watermark: Option<i64>,
    /// For how many milliseconds an input has had no row that may become idle.
    #[serde(default)]
    pub silent: BTreeMap<String, i64>,
    /// Set by DRAIN.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub drained: bool,
    /// Late contributions that were left out, from the first batch on.
    #[serde(default)]
    pub late: u64,
}

/// It names its batch, so that a file under another's name is noticed.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    batch: u64,
    watermarks: BTreeMap<String, i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    watermark: Option<i64>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    silent: BTreeMap<String, i64>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    drained: bool,
    #[serde(default, skip_serializing_if = "is_zero")]
    late: u64,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Claim {
    batch: u64,
    claimed: String,
}

/// What `run` claims the commit of a batch with.
pub(super) fn claim(batch: u64, run: &str) -> Result<Vec<u8>> {
    Ok(text::encode(&[text::to_line(&Claim { batch, claimed: run.to_string() })?]))
}

/// Whether an undamaged file is the claim of that batch.
pub(super) fn is_claim(batch: u64, path: &str, bytes: &[u8]) -> bool {
    let line = text::decode(path, bytes).ok().and_then(|mut lines| lines.next());
    line.and_then(|line| serde_json::from_str::<Claim>(line).ok()).is_some_and(|claim| claim.batch == batch)
}

pub(super) fn encode(batch: u64, entry: &CommitEntry) -> Result<Vec<u8>> {
    let CommitEntry { watermarks, watermark, silent, drained, late } = entry.clone();
    Ok(text::encode(&[text::to_line(&Line { batch, watermarks, watermark, silent, drained, late })?]))
}

pub(super) fn decode(batch: u64, path: &str, bytes: &[u8]) -> Result<CommitEntry> {
    let mut lines = text::decode(path, bytes)?;
    let (Some(line), None) = (lines.next(), lines.next()) else {
        return Err(Error::corrupt(path, "it should hold one line behind the first"));
    };
    let Line { batch: written, watermarks, watermark, silent, drained, late } = text::from_line(path, line)?;
    if written != batch {
        return Err(Error::corrupt(path, format!("it is the entry of batch {written}, under another's name")));
    }
    Ok(CommitEntry { watermarks, watermark, silent, drained, late })
}
