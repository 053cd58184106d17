//! What fixes a batch: `offsets/<N>`, one line for the batch and one for each source.
//!
//! Offsets are the sources' own JSON; nothing here looks into them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::text;
use crate::error::{Error, Result};

/// `offsets/<N>`: what fixes batch N.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
pub struct OffsetEntry {
    /// The query's clock for the batch, milliseconds: `now()` in it.
    pub timestamp: i64,
    /// The watermark of each input occurrence in force in the batch, milliseconds; undefined ones are absent.
    pub watermarks: BTreeMap<String, i64>,
    /// The query's watermark in force (by the policy), absent while undefined.
    pub watermark: Option<i64>,
    /// The batch of a DRAIN: the watermark in force is the end of all times, which is no number.
    pub drains: bool,
    /// What the checkpoint fixes: the watermark policy …
    pub conf: BTreeMap<String, String>,
    /// Versions of the static tables read.
    pub statics: BTreeMap<String, String>,
    /// By source occurrence; sources with nothing in the batch have `start == end`. Written one line each.
    pub sources: BTreeMap<String, SourceOffsets>,
}

/// One source's part of a batch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
pub struct SourceOffsets {
    pub start: Option<Value>,
    /// `None`: nothing was ever there.
    pub end: Option<Value>,
}

/// The first of the lines. It names its batch, so that a file under another's name is noticed.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BatchLine {
    batch: u64,
    timestamp: i64,
    watermarks: BTreeMap<String, i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    watermark: Option<InForce>,
    conf: BTreeMap<String, String>,
    statics: BTreeMap<String, String>,
}

/// A watermark as it is written.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum InForce {
    Millis(i64),
    Word(Word),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Word {
    End,
}

/// The other lines, sorted by name.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SourceLine {
    source: String,
    start: Option<Value>,
    end: Option<Value>,
}

pub(super) fn encode(batch: u64, entry: &OffsetEntry) -> Result<Vec<u8>> {
    let mut lines = vec![text::to_line(&BatchLine {
        batch,
        timestamp: entry.timestamp,
        watermarks: entry.watermarks.clone(),
        watermark: match entry.drains {
            true => Some(InForce::Word(Word::End)),
            false => entry.watermark.map(InForce::Millis),
        },
        conf: entry.conf.clone(),
        statics: entry.statics.clone(),
    })?];
    for (source, offsets) in &entry.sources {
        let SourceOffsets { start, end } = offsets.clone();
        lines.push(text::to_line(&SourceLine { source: source.clone(), start, end })?);
    }
    Ok(text::encode(&lines))
}

pub(super) fn decode(batch: u64, path: &str, bytes: &[u8]) -> Result<OffsetEntry> {
    let mut lines = text::decode(path, bytes)?;
    let first = lines.next().ok_or_else(|| Error::corrupt(path, "it holds no line for the batch"))?;
    let line: BatchLine = text::from_line(path, first)?;
    if line.batch != batch {
        return Err(Error::corrupt(path, format!("it is the entry of batch {}, under another's name", line.batch)));
    }
    let mut sources = BTreeMap::new();
    for line in lines {
        let SourceLine { source, start, end } = text::from_line(path, line)?;
        if sources.insert(source.clone(), SourceOffsets { start, end }).is_some() {
            return Err(Error::corrupt(path, format!("source {source} is in it twice")));
        }
    }
    let (watermark, drains) = match line.watermark {
        Some(InForce::Millis(millis)) => (Some(millis), false),
        Some(InForce::Word(Word::End)) => (None, true),
        None => (None, false),
    };
    Ok(OffsetEntry {
        timestamp: line.timestamp,
        watermarks: line.watermarks,
        watermark,
        drains,
        conf: line.conf,
        statics: line.statics,
        sources,
    })
}
