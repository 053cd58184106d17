//! Offsets as JSON: from and to the type of the source that made them.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Offset, OffsetRange};
use crate::error::{Error, Result};

/// Reads an offset that a source of this kind has made. `source` is its description.
///
/// # Errors
/// Conflict: the checkpoint was written by another connector, or by another version of this one.
pub(super) fn parse<T: DeserializeOwned>(offset: &Offset, source: &str) -> Result<T> {
    T::deserialize(&offset.0).map_err(|e| {
        Error::conflict(format!(
            "the checkpoint's offset {} is not one of {source} ({e}); if the stream's connector was changed, the \
             query needs a new checkpoint",
            offset.0
        ))
    })
}

/// Both ends of a range; the start is `None` at the very beginning.
pub(super) fn parse_range<T: DeserializeOwned>(range: &OffsetRange, source: &str) -> Result<(Option<T>, T)> {
    let start = range.start.as_ref().map(|start| parse(start, source)).transpose()?;
    Ok((start, parse(&range.end, source)?))
}

/// Writes an offset.
pub(super) fn write<T: Serialize>(offset: &T) -> Result<Offset> {
    serde_json::to_value(offset).map(Offset).map_err(|e| Error::internal(format!("an offset can't be written: {e}")))
}
