//! Parquet, read by DataFusion's own scan: projection and filters are pushed down, row groups and pages that
//! can't hold a wanted row are passed over, large files are cut between streams.
//!
//! What is ours here: files are opened as they were listed or not at all, footers are read once a batch, every
//! error names its file, and a column of a type that would change values (DOUBLE into BIGINT) is refused.

use std::collections::HashMap;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{Array, RecordBatch};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use bytes::Bytes;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, ScalarValue};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{
    FileGroup, FileGroupPartitioner, FileScanConfigBuilder, ParquetFileReaderFactory, ParquetSource,
};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::{DataFusionError, Result as DfResult};
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
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::arrow::async_reader::AsyncFileReader;
use parquet::arrow::{ProjectionMask, parquet_to_arrow_schema};
use parquet::errors::ParquetError;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};

use super::input::open_unchanged;
use super::metadata::{Key, NamedFile, text_of};
use super::place::FileEntry;
use crate::error::{BadRecord, Error, Result};
use crate::format::type_name;
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

/// Files below this size are not cut.
const CUT_FROM: usize = 1 << 20;

impl ParquetScan {
    /// The streams over `files`.
    ///
    /// # Errors
    /// Internal: a scan that DataFusion refuses to plan.
    pub fn read(&self, files: Vec<NamedFile>, wanted: &Pushdown) -> Result<Vec<SendableRecordBatchStream>> {
        let projected = wanted.project(&self.schema)?;
        if files.is_empty() {
            let nothing = futures::stream::empty();
            return Ok(vec![Box::pin(RecordBatchStreamAdapter::new(projected, nothing))]);
        }
        let plan = self.plan(&files, wanted).map_err(|e| Error::internal(format!("parquet scan: {e}")))?;
        let reported = Arc::new(Reported { stream: self.stream.clone(), schema: projected.clone(), files });
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

    fn plan(&self, files: &[NamedFile], wanted: &Pushdown) -> DfResult<Arc<dyn ExecutionPlan>> {
        // Whether a column may be NULL is checked on what was read, where the file can be named.
        let nullable = |field: &FieldRef| Arc::new(field.as_ref().clone().with_nullable(true));
        let fields: Vec<FieldRef> = self.schema.fields()[..self.fields].iter().map(nullable).collect();
        let extra: Vec<FieldRef> = self.schema.fields()[self.fields..].to_vec();
        let factory = Readers { fields: fields.clone(), footers: Arc::default() };
        let table = TableSchema::builder(Arc::new(Schema::new(fields))).with_table_partition_cols(extra).build();
        let filters = self.filters(&wanted.filters, table.table_schema());
        let mut source = ParquetSource::new(table).with_parquet_file_reader_factory(Arc::new(factory));
        if let Some(filters) = filters {
            source = source.with_predicate(filters);
        }
        let files = files.iter().map(|file| self.partitioned(file)).collect::<DfResult<Vec<_>>>()?;
        let config = FileScanConfigBuilder::new(ObjectStoreUrl::local_filesystem(), Arc::new(source))
            .with_file_groups(groups(files, wanted.partitions))
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

fn groups(files: Vec<PartitionedFile>, partitions: usize) -> Vec<FileGroup> {
    if partitions <= 1 {
        return vec![FileGroup::new(files)];
    }
    let whole = vec![FileGroup::new(files)];
    let cut = FileGroupPartitioner::new()
        .with_target_partitions(partitions)
        .with_repartition_file_min_size(CUT_FROM)
        .repartition_file_groups(&whole);
    cut.unwrap_or(whole)
}

/// Opens files, with the footers that one read has in common.
#[derive(Debug)]
struct Readers {
    /// The declared fields.
    fields: Vec<FieldRef>,
    footers: Arc<Mutex<HashMap<String, Arc<ParquetMetaData>>>>,
}

impl ParquetFileReaderFactory for Readers {
    fn create_reader(
        &self,
        _partition: usize,
        file: PartitionedFile,
        _hint: Option<usize>,
        _metrics: &ExecutionPlanMetricsSet,
    ) -> DfResult<Box<dyn AsyncFileReader + Send>> {
        let Some((entry, path)) = file.extension::<NamedFile>() else {
            return Err(external(Error::internal("a parquet file without its entry")));
        };
        let path = PathBuf::from(path);
        let handle = open_unchanged(entry, &path).map_err(external)?;
        Ok(Box::new(FileReader { file: handle, path, fields: self.fields.clone(), footers: self.footers.clone() }))
    }
}

fn external(error: Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// One open file. Reads are plain blocking ones: local, and in large pieces.
struct FileReader {
    file: File,
    path: PathBuf,
    fields: Vec<FieldRef>,
    footers: Arc<Mutex<HashMap<String, Arc<ParquetMetaData>>>>,
}

impl FileReader {
    fn bytes(&self, range: &Range<u64>) -> parquet::errors::Result<Bytes> {
        let mut bytes = vec![0; range.end.saturating_sub(range.start) as usize];
        self.file.read_exact_at(&mut bytes, range.start).map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => self.damaged(&"its footer points behind its end"),
            _ => ParquetError::External(Box::new(Error::io(format!("read {}", self.path.display()), &error))),
        })?;
        Ok(Bytes::from(bytes))
    }

    fn damaged(&self, why: &dyn std::fmt::Display) -> ParquetError {
        ParquetError::External(Box::new(damaged(&self.path, why)))
    }

    fn metadata(&self, policy: PageIndexPolicy) -> parquet::errors::Result<Arc<ParquetMetaData>> {
        let name = self.path.display().to_string();
        let known = self.footers.lock().unwrap_or_else(PoisonError::into_inner).get(&name).cloned();
        if let (Some(footer), PageIndexPolicy::Skip) = (known, policy) {
            return Ok(footer);
        }
        let reader = ParquetMetaDataReader::new().with_page_index_policy(policy);
        let footer = Arc::new(reader.parse_and_finish(&self.file).map_err(|e| self.damaged(&e))?);
        self.check_types(&footer)?;
        self.footers.lock().unwrap_or_else(PoisonError::into_inner).insert(name, footer.clone());
        Ok(footer)
    }

    fn check_types(&self, footer: &ParquetMetaData) -> parquet::errors::Result<()> {
        let footer = footer.file_metadata();
        let found = parquet_to_arrow_schema(footer.schema_descr(), footer.key_value_metadata());
        let found = found.map_err(|e| self.damaged(&e))?;
        for field in &self.fields {
            match found.field_with_name(field.name()) {
                Ok(column) if !keeps_values(column.data_type(), field.data_type()) => {
                    return Err(ParquetError::External(Box::new(wrong_type(&self.path, column, field))));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

impl AsyncFileReader for FileReader {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, parquet::errors::Result<Bytes>> {
        std::future::ready(self.bytes(&range)).boxed()
    }

    fn get_metadata<'a>(
        &'a mut self,
        options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, parquet::errors::Result<Arc<ParquetMetaData>>> {
        let policy = options.map_or(PageIndexPolicy::Skip, |options| options.column_index_policy());
        std::future::ready(self.metadata(policy)).boxed()
    }
}

/// A file that is no sound parquet.
pub fn damaged(path: &Path, why: &dyn std::fmt::Display) -> Error {
    Error::Io {
        context: format!("read {}", path.display()),
        message: format!("the file is damaged, or no parquet: {why}"),
        kind: std::io::ErrorKind::InvalidData,
        transient: false,
    }
}

fn wrong_type(path: &Path, found: &Field, wanted: &Field) -> Error {
    let (found, wants) = (type_name(found.data_type()), type_name(wanted.data_type()));
    Error::invalid(format!(
        "{}: column {} is {found} in the file, and {wants} in the stream",
        path.display(),
        wanted.name()
    ))
    .help(format!("declare it {found}, and cast it in the query"))
}

/// Whether every value of a file's column can become one of the declared type without changing, or fails loudly.
fn keeps_values(found: &DataType, wanted: &DataType) -> bool {
    use DataType::*;
    let text = |t: &DataType| matches!(t, Utf8 | LargeUtf8 | Utf8View);
    let bytes = |t: &DataType| matches!(t, Binary | LargeBinary | BinaryView | FixedSizeBinary(_));
    let days = |t: &DataType| matches!(t, Date32 | Date64);
    let scale = |t: &DataType| match t {
        Decimal32(_, scale) | Decimal64(_, scale) | Decimal128(_, scale) | Decimal256(_, scale) => Some(*scale),
        _ => None,
    };
    match (found, wanted) {
        (found, wanted) if found == wanted => true,
        (Dictionary(_, values), wanted) => keeps_values(values, wanted),
        (Null, _) => true,
        (found, wanted) if found.is_integer() && wanted.is_integer() => true,
        (found, wanted) if found.is_integer() && scale(wanted).is_some() => true,
        (Int8 | Int16 | UInt8 | UInt16, Float32) | (Int8 | Int16 | Int32 | UInt8 | UInt16 | UInt32, Float64) => true,
        (Float16, Float32 | Float64) | (Float32, Float64) => true,
        (Timestamp(..), Timestamp(..)) | (Time32(_) | Time64(_), Time32(_) | Time64(_)) => true,
        (found, Timestamp(..)) if days(found) => true,
        (found, wanted) if days(found) && days(wanted) => true,
        (found, wanted) if (text(found) || bytes(found)) && (text(wanted) || bytes(wanted)) => true,
        (found, wanted) => match (scale(found), scale(wanted)) {
            (Some(found), Some(wanted)) => wanted >= found,
            // What is inside nested types is DataFusion's to adapt.
            _ => found.is_nested() && std::mem::discriminant(found) == std::mem::discriminant(wanted),
        },
    }
}

/// What a stream's errors are told with.
struct Reported {
    stream: String,
    /// The columns wanted.
    schema: SchemaRef,
    files: Vec<NamedFile>,
}

impl Reported {
    /// The batch under the declared columns, or an error that names its file.
    fn check(&self, batch: DfResult<RecordBatch>) -> DfResult<RecordBatch> {
        let batch = batch.map_err(|error| external(self.explain(&error)))?;
        for (field, column) in self.schema.fields().iter().zip(batch.columns()) {
            if !field.is_nullable() && column.null_count() > 0 {
                return Err(external(self.find_null(field.name())));
            }
        }
        let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        Ok(RecordBatch::try_new_with_options(self.schema.clone(), batch.columns().to_vec(), &options)?)
    }

    /// The error with its file. One from inside a page knows none: the files are read again, one by one, to find it.
    fn explain(&self, error: &DataFusionError) -> Error {
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
        while let Some(inner) = cause {
            if let Some(own) = inner.downcast_ref::<Error>() {
                return own.clone();
            }
            cause = inner.source();
        }
        for (entry, path) in &self.files {
            if let Err(error) = self.try_read(entry, path.as_ref(), None) {
                return error;
            }
        }
        Error::Execution { message: format!("stream {}: {error}", self.stream) }
    }

    fn find_null(&self, column: &str) -> Error {
        for (entry, path) in &self.files {
            match self.try_read(entry, path.as_ref(), Some(column)) {
                Ok(None) => {}
                Ok(Some(row)) => {
                    return Error::BadRecord(Box::new(BadRecord {
                        source: self.stream.clone(),
                        path: Some(path.clone()),
                        line: None,
                        reason: format!("column {column} is NOT NULL and found null"),
                        text: format!("row {row} of the file"),
                    }));
                }
                Err(error) => return error,
            }
        }
        Error::internal(format!("a NULL in column {column} that is in no file"))
    }

    /// Reads a file through, and answers the first row (from 1) in which `column` is NULL.
    fn try_read(&self, entry: &FileEntry, path: &Path, column: Option<&str>) -> Result<Option<usize>> {
        let file = open_unchanged(entry, path)?;
        let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|e| damaged(path, &e))?;
        let names: Vec<&str> = match column {
            Some(column) => vec![column],
            None => self.schema.fields().iter().map(|field| field.name().as_str()).collect(),
        };
        let roots = builder.schema().fields().iter().enumerate();
        let roots: Vec<usize> = roots.filter(|(_, f)| names.contains(&f.name().as_str())).map(|(at, _)| at).collect();
        if column.is_some() && roots.is_empty() {
            return Ok(Some(1));
        }
        let mask = ProjectionMask::roots(builder.parquet_schema(), roots);
        let reader = builder.with_projection(mask).build().map_err(|e| damaged(path, &e))?;
        let mut rows = 0;
        for batch in reader {
            let batch = batch.map_err(|e| damaged(path, &e))?;
            let null =
                column.and_then(|_| batch.columns().first()).and_then(|c| (0..c.len()).find(|at| c.is_null(*at)));
            if let Some(at) = null {
                return Ok(Some(rows + at + 1));
            }
            rows += batch.num_rows();
        }
        Ok(None)
    }
}
