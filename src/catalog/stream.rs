//! A stream as it was created, and as DataFusion sees it.

use std::sync::{Arc, RwLock};

use arrow::datatypes::{DataType, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{Result as DfResult, not_impl_err};
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;

use super::connector::{self, SourceConnector};
use crate::checkpoint::SourceLog;
use crate::clock::Clock;
use crate::error::Result;
use crate::options::Options;
use crate::parser::WatermarkDef;
use crate::source::Source;
use crate::source::file::MetadataColumn;
use crate::source::memory::MemoryStream;

/// The session's clock, as whoever opens a source later finds it.
pub type SessionClock = Arc<RwLock<Clock>>;

/// A column of a stream.
#[derive(Debug, Clone)]
pub struct StreamColumn {
    pub name: String,
    pub data_type: DataType,
    pub nullable: bool,
    /// `None`: given by the source under the same name. Otherwise computed from source columns and earlier ones.
    pub computed: Option<Expr>,
}

/// A stream in the catalog.
#[derive(Debug)]
pub struct StreamDef {
    pub name: String,
    /// All columns in declared order: what the stream looks like in SQL.
    pub columns: Vec<StreamColumn>,
    /// The same as an arrow schema.
    pub schema: SchemaRef,
    /// What the source gives: fields of the record, then METADATA columns.
    pub source_schema: SchemaRef,
    /// The keys of the METADATA columns, which are the last ones of `source_schema`.
    pub metadata: Vec<String>,
    pub watermark: Option<WatermarkDef>,
    pub connector: SourceConnector,
    /// Checked; without `connector`.
    pub options: Options,
    /// The rows of a memory stream; `None` for every other connector.
    pub memory: Option<Arc<MemoryStream>>,
    /// Generators that come by the clock go by this one.
    pub clock: SessionClock,
    /// The CREATE STREAM text that makes it again.
    pub sql: String,
}

impl StreamDef {
    /// Whether its rows can be read again: where they can't, opening it takes them away from others.
    pub fn replayable(&self) -> bool {
        self.connector != SourceConnector::Stdin
    }

    /// Opens the stream's source for one query, or for one bounded read.
    pub fn open(&self, log: SourceLog) -> Result<Box<dyn Source>> {
        connector::open_source(self, log)
    }

    /// The columns that are fields of the record, by their place in `source_schema`: what INSERT gives.
    pub fn fields(&self) -> &[arrow::datatypes::FieldRef] {
        let fields = self.source_schema.fields();
        &fields[..fields.len().saturating_sub(self.metadata.len())]
    }

    /// Fields of the record, and METADATA columns with their keys, as a connector that reads records wants them.
    pub(super) fn source_columns(&self) -> (SchemaRef, Vec<MetadataColumn>) {
        let (fields, all) = (self.fields(), self.source_schema.fields());
        let metadata = all[fields.len()..].iter().zip(&self.metadata);
        let metadata = metadata.map(|(field, key)| MetadataColumn {
            name: field.name().clone(),
            key: key.clone(),
            data_type: field.data_type().clone(),
        });
        (Arc::new(Schema::new(fields.to_vec())), metadata.collect())
    }
}

/// A stream as a table of DataFusion's: what the planner finds in a plan, and replaces. It can't be scanned itself.
#[derive(Debug)]
pub struct StreamTable(pub Arc<StreamDef>);

#[async_trait]
impl TableProvider for StreamTable {
    fn schema(&self) -> SchemaRef {
        self.0.schema.clone()
    }
    fn table_type(&self) -> TableType {
        TableType::Base
    }
    async fn scan(
        &self,
        _state: &dyn Session,
        _projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        not_impl_err!("stream {} was not replaced by the planner", self.0.name)
    }
}
