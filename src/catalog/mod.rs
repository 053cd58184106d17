//! Names → definitions of streams, sinks, tables and queries; options are checked here.

mod stream;

pub use stream::{StreamColumn, StreamDef, StreamTable};
