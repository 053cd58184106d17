//! A sink as it was created.

use super::connector::{self, Shown, SinkConnector};
use crate::error::Result;
use crate::options::Options;
use crate::parser::CreateSink;
use crate::sink::{Sink, SinkContext};

/// A sink in the catalog.
#[derive(Debug)]
pub struct SinkDef {
    pub name: String,
    pub connector: SinkConnector,
    /// Checked; without `connector`.
    pub options: Options,
    /// The CREATE SINK text that makes it again.
    pub sql: String,
}

impl SinkDef {
    /// Checks a CREATE SINK.
    ///
    /// # Errors
    /// An unknown connector or option, a value of the wrong kind.
    pub fn new(create: &CreateSink, sql: String) -> Result<Self> {
        let mut options = create.options.clone();
        let connector = SinkConnector::choose(&mut options).map_err(|e| e.at(Some(create.name.span)))?;
        Ok(SinkDef { name: create.name.value.clone(), connector, options, sql })
    }

    /// Opens the sink for one query.
    pub fn open(&self, context: SinkContext, shown: &Shown) -> Result<Box<dyn Sink>> {
        connector::open_sink(self, context, shown)
    }
}
