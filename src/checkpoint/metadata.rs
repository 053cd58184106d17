//! Who a checkpoint belongs to: `metadata`, written once when it is made and never again.
//!
//! It is not written over when the query is changed: it says what the checkpoint was made for.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Store, text};
use crate::error::{Error, Result};

/// The newest checkpoint format that this build reads, and the one it writes.
const FORMAT: u64 = 1;
const PATH: &str = "metadata";
/// What may not be there without it.
const FOLDERS: &[&str] = &["offsets", "commits", "state", "sources"];

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Metadata {
    /// A UUID; the same over all restarts, copies and moves.
    pub id: String,
    pub format: u64,
    /// The version of Levada that made it.
    pub levada: String,
    /// Canonical SQL.
    pub query: String,
}

impl Metadata {
    /// Reads the metadata, or writes it for `query` where the checkpoint is new.
    ///
    /// # Errors
    /// Corrupt: damaged, of a newer format, or missing while there are left-overs. Io.
    pub(super) fn open(store: &dyn Store, query: &str) -> Result<Self> {
        if let Some(bytes) = store.get(PATH)? {
            return Self::parse(&store.describe(PATH), &bytes);
        }
        for folder in FOLDERS {
            if !store.list(folder)?.is_empty() {
                return Err(Error::corrupt(
                    store.describe(PATH),
                    format!(
                        "the file is missing, though {folder}/ beside it is not empty: it was lost, or these are left-overs \
                         of another query; put it back, or use another checkpoint"
                    ),
                ));
            }
        }
        let id = uuid::Uuid::new_v4().to_string();
        let made =
            Metadata { id, format: FORMAT, levada: env!("CARGO_PKG_VERSION").to_string(), query: query.to_string() };
        let bytes = text::encode(&[text::to_line(&made)?]);
        store.put_new(PATH, &mut |out| out.write_all(&bytes))?;
        Ok(made)
    }

    fn parse(path: &str, bytes: &[u8]) -> Result<Self> {
        let mut lines = text::decode(path, bytes)?;
        let (Some(line), None) = (lines.next(), lines.next()) else {
            return Err(Error::corrupt(path, "it should hold one line behind the first"));
        };
        let value: Value = text::from_line(path, line)?;
        // A newer format may have other fields, so look at its number first.
        if let Some(format) = value.get("format").and_then(Value::as_u64).filter(|format| *format > FORMAT) {
            let by = value.get("levada").and_then(Value::as_str).unwrap_or("a newer version");
            return Err(Error::corrupt(
                path,
                format!("the checkpoint has format {format}, made by Levada {by}; this one reads up to {FORMAT}"),
            ));
        }
        let metadata: Metadata = text::from_line(path, line)?;
        if metadata.format != FORMAT || uuid::Uuid::parse_str(&metadata.id).is_err() {
            return Err(Error::corrupt(path, "its format or id is none that Levada has ever written"));
        }
        Ok(metadata)
    }
}
