//! Names → definitions of streams, sinks, tables and queries; options are checked here.

mod connector;
mod create_stream;
mod feedback;
mod pin;
mod registry;
mod sink;
mod stream;
pub mod types;

pub use connector::{
    AroundConsole, Shown, SinkConnector, SourceConnector, connector_names, connector_names_not_yet, open_blackhole,
    open_console,
};
pub use create_stream::{Created, create};
pub use feedback::refuse_feedback;
pub use registry::{Catalog, Kind, ViewDef};
pub use sink::SinkDef;
pub use stream::{SessionClock, StreamColumn, StreamDef, StreamTable};
