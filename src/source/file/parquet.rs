//! Parquet, read by DataFusion's own scan: projection and filters are pushed down, row groups and pages that
//! can't hold a wanted row are passed over, large files are cut between streams.
//!
//! What is ours here: files are opened as they were listed or not at all, footers are read once a batch, every
//! error names its file, and a column of a type that would change values (DOUBLE into BIGINT) is refused.

use std::collections::HashMap;
use std::io::{self, BufReader, Read};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::datatypes::{FieldRef, Schema, SchemaRef};
use bytes::Bytes;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, ScalarValue};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileScanConfigBuilder, ParquetFileReaderFactory, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::Result as DfResult;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::execution_props::ExecutionProps;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::physical_expr::{conjunction, create_physical_expr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::arrow::async_reader::AsyncFileReader;
use parquet::arrow::parquet_to_arrow_schema;
use parquet::errors::ParquetError;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::reader::{ChunkReader, Length};

use super::files::{FileEntry, Files, OpenFile};
use super::metadata::{Key, NamedFile, text_of};
use super::parquet_cut::groups;
use super::parquet_errors::{Reported, boxed, damaged, keeps_values, wrong_type};
use crate::error::{Error, Result};
use crate::source::Pushdown;

/// What a parquet source reads, in every batch.
#[derive(Debug)]
pub struct ParquetScan {
    /// The stream's name.
    pub stream: String,
    /// Fields of the record, then metadata columns.
    pub schema: SchemaRef,
    /// How many of them are fields.
    pub fields: usize,
    /// The keys of the others.
    pub keys: Vec<Key>,
    /// DataFusion's surroundings of a scan.
    pub context: Arc<TaskContext>,
}

impl ParquetScan {
    /// The streams over `files`.
    ///
    /// # Errors
    /// Internal: a scan that DataFusion refuses to plan.
    pub fn read(
        &self,
        place: Arc<dyn Files>,
        files: Vec<NamedFile>,
        wanted: &Pushdown,
    ) -> Result<Vec<SendableRecordBatchStream>> {
        let projected = wanted.project(&self.schema)?;
        if files.is_empty() {
            let nothing = futures::stream::empty();
            return Ok(vec![Box::pin(RecordBatchStreamAdapter::new(projected, nothing))]);
        }
        let plan = self.plan(&place, &files, wanted).map_err(|e| Error::internal(format!("parquet scan: {e}")))?;
        let reported = Arc::new(Reported { stream: self.stream.clone(), schema: projected.clone(), place, files });
        let partitions = plan.properties().partitioning.partition_count();
        let streams = (0..partitions).map(|partition| {
            let stream = plan.execute(partition, self.context.clone());
            let stream = stream.map_err(|e| Error::internal(format!("parquet scan: {e}")))?;
            let reported = reported.clone();
            let batches = stream.map(move |batch| reported.check(batch));
            Ok(Box::pin(RecordBatchStreamAdapter::new(projected.clone(), batches)) as SendableRecordBatchStream)
        });
        streams.collect()
    }

    fn plan(&self, place: &Arc<dyn Files>, files: &[NamedFile], wanted: &Pushdown) -> DfResult<Arc<dyn ExecutionPlan>> {
        // Whether a column may be NULL is checked on what was read, where the file can be named.
        let nullable = |field: &FieldRef| Arc::new(field.as_ref().clone().with_nullable(true));
        let fields: Vec<FieldRef> = self.schema.fields()[..self.fields].iter().map(nullable).collect();
        let extra: Vec<FieldRef> = self.schema.fields()[self.fields..].to_vec();
        let factory = Arc::new(Readers { place: place.clone(), fields: fields.clone(), footers: Footers::default() });
        let table = TableSchema::builder(Arc::new(Schema::new(fields))).with_table_partition_cols(extra).build();
        let filters = self.filters(&wanted.filters, table.table_schema());
        let mut source = ParquetSource::new(table).with_parquet_file_reader_factory(factory.clone());
        if let Some(filters) = filters {
            source = source.with_predicate(filters);
        }
        let files = files.iter().map(|file| self.partitioned(file)).collect::<DfResult<Vec<_>>>()?;
        let config = FileScanConfigBuilder::new(ObjectStoreUrl::local_filesystem(), Arc::new(source))
            .with_file_groups(groups(files, wanted.partitions, |file| factory.footer(file)))
            .with_preserve_order(wanted.partitions <= 1)
            .with_projection_indices(Some(wanted.columns.clone()))?
            .build();
        Ok(DataSourceExec::from_data_source(config))
    }

    /// The filters as one physical expression. One that can't be made is left out: it is applied again anyway.
    fn filters(
        &self,
        filters: &[Expr],
        schema: &SchemaRef,
    ) -> Option<Arc<dyn datafusion::physical_expr::PhysicalExpr>> {
        let schema = DFSchema::try_from(schema.clone()).ok()?;
        let physical = |filter: &Expr| {
            let bare = filter.clone().transform(|expr| match expr {
                Expr::Column(column) => Ok(Transformed::yes(Expr::Column(Column::from_name(column.name)))),
                other => Ok(Transformed::no(other)),
            });
            let (props, planning) = (ExecutionProps::new(), PhysicalPlanningContext::default());
            create_physical_expr(&bare.ok()?.data, &schema, &props, &planning).ok()
        };
        let filters: Vec<_> = filters.iter().filter(|filter| !filter.is_volatile()).filter_map(physical).collect();
        (!filters.is_empty()).then(|| conjunction(filters))
    }

    fn partitioned(&self, file: &NamedFile) -> DfResult<PartitionedFile> {
        let mut values = Vec::with_capacity(self.keys.len());
        for (key, field) in self.keys.iter().zip(&self.schema.fields()[self.fields..]) {
            let value = match key {
                Key::Mtime => ScalarValue::TimestampMicrosecond(Some(file.0.mtime.div_euclid(1_000)), None),
                Key::Size => ScalarValue::Int64(Some(file.0.size as i64)),
                key => ScalarValue::Utf8View(Some(text_of(*key, file).to_string())),
            };
            values.push(value.cast_to(field.data_type())?);
        }
        let partitioned = PartitionedFile::new(file.1.clone(), file.0.size).with_extension(file.clone());
        Ok(partitioned.with_partition_values(values))
    }
}

/// The footers that one read has in common, by file.
type Footers = Arc<Mutex<HashMap<String, Arc<ParquetMetaData>>>>;

/// Opens files, with the footers that one read has in common.
#[derive(Debug)]
struct Readers {
    place: Arc<dyn Files>,
    /// The declared fields.
    fields: Vec<FieldRef>,
    footers: Footers,
}

impl Readers {
    fn open(&self, file: &PartitionedFile) -> DfResult<FileReader> {
        let Some((entry, _)) = file.extension::<NamedFile>() else {
            return Err(boxed(Error::internal("a parquet file without its entry")));
        };
        let reader = FileReader::open(&self.place, entry, self.fields.clone()).map_err(boxed)?;
        Ok(FileReader { footers: self.footers.clone(), ..reader })
    }

    /// A file's footer. One that can't be read is the scan's to report.
    fn footer(&self, file: &PartitionedFile) -> Option<Arc<ParquetMetaData>> {
        let reader = self.open(file).ok()?;
        let footer = Arc::clone(reader.footer().ok()?.metadata());
        reader.keep(footer.clone());
        Some(footer)
    }
}

impl ParquetFileReaderFactory for Readers {
    fn create_reader(
        &self,
        _partition: usize,
        file: PartitionedFile,
        _hint: Option<usize>,
        _metrics: &ExecutionPlanMetricsSet,
    ) -> DfResult<Box<dyn AsyncFileReader + Send>> {
        Ok(Box::new(self.open(&file)?))
    }
}

/// So much of a file's end is read at first: most footers are within.
const FOOTER: usize = 64 << 10;

/// One open file.
#[derive(Clone)]
pub struct FileReader {
    file: Arc<dyn OpenFile>,
    size: u64,
    /// As it is shown.
    path: String,
    fields: Vec<FieldRef>,
    footers: Footers,
}

impl FileReader {
    /// Opens a file, of which columns are wanted as these `fields`.
    ///
    /// # Errors
    /// Those of [`Files::open`].
    pub fn open(place: &Arc<dyn Files>, entry: &FileEntry, fields: Vec<FieldRef>) -> Result<Self> {
        let (file, path) = (place.open(entry)?, place.shown(&entry.path));
        Ok(FileReader { file, size: entry.size, path, fields, footers: Footers::default() })
    }

    /// What the file says of itself.
    ///
    /// # Errors
    /// Io: it is damaged, or no parquet. InvalidInput: a column of a type that would change values.
    pub fn footer(&self) -> Result<ArrowReaderMetadata> {
        let read = || -> parquet::errors::Result<ArrowReaderMetadata> {
            let footer = Arc::new(ParquetMetaDataReader::new().parse_and_finish(self)?);
            self.check_types(&footer)?;
            ArrowReaderMetadata::try_new(footer, ArrowReaderOptions::default())
        };
        read().map_err(|error| self.explain(&error))
    }

    fn keep(&self, footer: Arc<ParquetMetaData>) {
        self.footers.lock().unwrap_or_else(PoisonError::into_inner).insert(self.path.clone(), footer);
    }

    /// The error of ours in one of parquet's; or it is the file that is wrong.
    fn explain(&self, error: &ParquetError) -> Error {
        match error {
            ParquetError::External(inner) => inner.downcast_ref::<Error>().cloned(),
            _ => None,
        }
        .unwrap_or_else(|| damaged(&self.path, error))
    }

    /// Nothing behind the file's end is asked for, whatever a damaged footer says.
    fn within(&self, ranges: &[Range<u64>]) -> parquet::errors::Result<()> {
        match ranges.iter().all(|range| range.start <= range.end && range.end <= self.size) {
            true => Ok(()),
            false => Err(external(damaged(&self.path, &"its footer points behind its end"))),
        }
    }

    async fn some(self, ranges: Vec<Range<u64>>) -> parquet::errors::Result<Vec<Bytes>> {
        self.within(&ranges)?;
        self.file.ranges(ranges).await.map_err(external)
    }

    async fn load(mut self, policy: PageIndexPolicy) -> parquet::errors::Result<Arc<ParquetMetaData>> {
        let known = self.footers.lock().unwrap_or_else(PoisonError::into_inner).get(&self.path).cloned();
        if let (Some(footer), PageIndexPolicy::Skip) = (known, policy) {
            return Ok(footer);
        }
        let size = self.size;
        let reader = ParquetMetaDataReader::new().with_page_index_policy(policy).with_prefetch_hint(Some(FOOTER));
        let loaded = reader.load_and_finish(&mut self, size).await;
        let footer = Arc::new(loaded.map_err(|error| external(self.explain(&error)))?);
        self.check_types(&footer)?;
        self.keep(footer.clone());
        Ok(footer)
    }

    fn check_types(&self, footer: &ParquetMetaData) -> parquet::errors::Result<()> {
        let footer = footer.file_metadata();
        let found = parquet_to_arrow_schema(footer.schema_descr(), footer.key_value_metadata());
        let found = found.map_err(|e| external(damaged(&self.path, &e)))?;
        for field in &self.fields {
            match found.field_with_name(field.name()) {
                Ok(column) if !keeps_values(column.data_type(), field.data_type()) => {
                    return Err(external(wrong_type(&self.path, column, field)));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn external(error: Error) -> ParquetError {
    ParquetError::External(Box::new(error))
}

impl AsyncFileReader for FileReader {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, parquet::errors::Result<Bytes>> {
        let some = self.clone().some(vec![range]);
        async move { some.await.map(|mut read| read.pop().unwrap_or_default()) }.boxed()
    }

    fn get_byte_ranges(&mut self, ranges: Vec<Range<u64>>) -> BoxFuture<'_, parquet::errors::Result<Vec<Bytes>>> {
        self.clone().some(ranges).boxed()
    }

    fn get_metadata<'a>(
        &'a mut self,
        options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, parquet::errors::Result<Arc<ParquetMetaData>>> {
        let policy = options.map_or(PageIndexPolicy::Skip, |options| options.column_index_policy());
        self.clone().load(policy).boxed()
    }
}

impl Length for FileReader {
    fn len(&self) -> u64 {
        self.size
    }
}

impl ChunkReader for FileReader {
    type T = BufReader<From>;

    fn get_read(&self, start: u64) -> parquet::errors::Result<Self::T> {
        Ok(BufReader::with_capacity(FOOTER, From { file: self.file.clone(), at: start, end: self.size }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        self.within(std::slice::from_ref(&(start..start.saturating_add(length as u64))))?;
        let mut bytes = vec![0; length];
        self.file.read_at(&mut bytes, start).map_err(external)?;
        Ok(Bytes::from(bytes))
    }
}

/// A file from some byte on.
pub struct From {
    file: Arc<dyn OpenFile>,
    at: u64,
    end: u64,
}

impl Read for From {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let length = into.len().min(usize::try_from(self.end.saturating_sub(self.at)).unwrap_or(usize::MAX));
        if length > 0 {
            self.file.read_at(&mut into[..length], self.at).map_err(io::Error::other)?;
            self.at += length as u64;
        }
        Ok(length)
    }
}
