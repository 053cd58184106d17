//! Whether a stream would read what a sink writes: then no query may do both, as it would feed itself for ever.

use super::{SinkConnector, SinkDef, SourceConnector, StreamDef};
use crate::error::{Error, Result};
use crate::{sink, source};

/// Refuses a query that reads `stream` and writes to `sink`, where the stream would take up what the sink writes.
///
/// # Errors
/// InvalidInput, naming both.
pub fn refuse_feedback(stream: &StreamDef, sink: &SinkDef) -> Result<()> {
    if (stream.connector, sink.connector) != (SourceConnector::File, SinkConnector::File) {
        return Ok(());
    }
    let sink::file::Target { path, endpoint, columns, prefix, suffix } = sink::file::target(&sink.options)?;
    let written = source::file::Written { path, endpoint, columns, prefix, suffix };
    if !source::file::would_read(&stream.options, &written)? {
        return Ok(());
    }
    let reads = stream.options.text("path").unwrap_or_default();
    let message = format!(
        "sink {} writes to {}, and stream {} reads {reads}: the query would read its own results for ever",
        sink.name, written.path, stream.name
    );
    Err(Error::invalid(message)
        .help("give the sink a folder elsewhere, or one whose name begins with _, which a source passes over"))
}
