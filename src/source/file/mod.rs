//! Files in a directory, as they come: JSON lines, CSV, text and Parquet, plain or compressed.
//!
//! ```text
//! place      path, glob, URL → files: name, size, time    (files: what it needs of local and remote ones; walk)
//! discovery  which of them are new, in which order, how many a batch → the log's entries, offsets
//! folders    columns that a file's folder tells, where a file sink of ours made it
//! reading    files → units of work → streams of batches        (parquet: DataFusion's scan)
//! input      one unit's bytes                             (checksum: those that a manifest promises)
//! written    whether it would read what a query writes
//! ```
//!
//! A file is read once and must be whole when it appears: write it under a hidden name and rename it. One that
//! changes after it was taken, or is gone before its batch is committed, is an error that names it. Files are
//! taken in order of modification time, then path, and are listed anew whenever those found before are used up.
//! This source knows nothing of queries, watermarks or clocks.

mod checksum;
mod discovery;
mod files;
mod folders;
mod glob;
mod infer;
mod input;
mod local;
mod metadata;
mod options;
mod parquet;
mod parquet_cut;
mod parquet_errors;
mod place;
mod reading;
mod remote;
mod walk;
mod written;

#[cfg(test)]
pub(super) use discovery::tests::options as discovery_test_options;
pub use files::FileEntry;
pub use infer::infer;
pub use metadata::{Key, MetadataColumn};
pub use options::{FileOptions, OPTIONS, delimiter, max_record_bytes, on_error, only_for};
pub use place::{MANIFEST_FOLDER, Manifest, Place, Promised, is_hidden};
pub use written::{Written, would_read};

use std::sync::Arc;

use arrow::datatypes::{Field, FieldRef, Schema, SchemaRef};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};

use self::discovery::Discovery;
use self::metadata::NamedFile;
use self::parquet::ParquetScan;
use crate::checkpoint::SourceLog;
use crate::error::{Error, Result};
use crate::format::{Format, OnError, check_types};
use crate::options::Options;
use crate::source::records::Wanted;
use crate::source::{BadRecords, Offset, OffsetRange, Pushdown, RangeSize, ReadLimit, Source, SourceRead};

/// What a file source is opened with.
pub struct FileSourceArgs<'a> {
    /// The stream's name, for messages.
    pub name: &'a str,
    /// The fields of a record in declared order, with NOT NULL where it was declared; `None`: inferred.
    pub fields: Option<SchemaRef>,
    /// The columns declared `METADATA FROM …`.
    pub metadata: Vec<MetadataColumn>,
    /// The WITH list without `connector`.
    pub options: &'a Options,
    /// Remembers the files that were taken.
    pub log: SourceLog,
    /// Reads the manifest of a directory that a file sink of ours writes; `None` refuses such a directory.
    pub manifest: Option<Manifest>,
}

/// A file source.
#[derive(Debug)]
pub struct FileSource {
    name: String,
    options: FileOptions,
    place: Place,
    discovery: Discovery,
    /// Fields of the record, then metadata columns.
    schema: SchemaRef,
    /// How many of them are fields.
    fields: usize,
    /// The keys of the others.
    keys: Vec<Key>,
    /// Set for parquet.
    parquet: Option<ParquetScan>,
}

/// The schema that a source of these columns has, without looking at the place; `None` for `fields` infers them.
///
/// # Errors
/// As [`open`].
pub fn schema(
    name: &str,
    fields: Option<SchemaRef>,
    metadata: &[MetadataColumn],
    options: &Options,
    manifest: Option<Manifest>,
) -> Result<SchemaRef> {
    let parsed = FileOptions::parse(options)?;
    let fields = match fields {
        Some(fields) => fields,
        None => infer(name, options, manifest)?,
    };
    check_columns(&parsed, &fields, metadata).map(|(schema, _)| schema)
}

/// Opens a file source.
///
/// # Errors
/// InvalidInput: an option, the path, a metadata key, NOT NULL with `on_error = 'null'`. Unsupported: a type that the
/// format can't be read as. Those of the log.
pub fn open(args: FileSourceArgs<'_>) -> Result<FileSource> {
    let options = FileOptions::parse(args.options)?;
    let place = Place::parse(&options.path, &options.store, args.manifest)?;
    open_at(args, options, place)
}

fn open_at(args: FileSourceArgs<'_>, options: FileOptions, place: Place) -> Result<FileSource> {
    let fields = match args.fields {
        Some(fields) => fields,
        None => infer::infer_at(args.name, &options, &place)?,
    };
    let (schema, keys) = check_columns(&options, &fields, &args.metadata)?;
    let count = fields.fields().len();
    let parquet = (options.format == Format::Parquet).then(|| ParquetScan {
        stream: args.name.to_string(),
        schema: schema.clone(),
        fields: count,
        keys: keys.clone(),
        context: Arc::new(TaskContext::default()),
    });
    let discovery = Discovery::open(args.log)?;
    Ok(FileSource { name: args.name.to_string(), options, place, discovery, schema, fields: count, keys, parquet })
}

fn check_columns(
    options: &FileOptions,
    fields: &SchemaRef,
    metadata: &[MetadataColumn],
) -> Result<(SchemaRef, Vec<Key>)> {
    check_types(options.format, fields.fields())?;
    if let (OnError::Null, Some(field)) = (options.on_error, fields.fields().iter().find(|f| !f.is_nullable())) {
        let message = format!("on_error = 'null' makes rows of NULLs, and column {} is NOT NULL", field.name());
        return Err(Error::invalid(message).help("use on_error = 'skip', or drop NOT NULL"));
    }
    let (owner, allowed) = match options.format {
        Format::Parquet => ("a parquet file", Key::FILES),
        _ => ("connector 'file'", Key::RECORDS),
    };
    let keys = metadata.iter().map(|column| Key::of(column, owner, allowed)).collect::<Result<Vec<_>>>()?;
    let extra = metadata.iter().map(|column| Arc::new(Field::new(&column.name, column.data_type.clone(), true)));
    let columns: Vec<FieldRef> = fields.fields().iter().cloned().chain(extra).collect();
    Ok((Arc::new(Schema::new(columns)), keys))
}

impl FileSource {
    fn read_files(
        &self,
        files: Vec<NamedFile>,
        wanted: &Pushdown,
        bad_records: &Arc<BadRecords>,
    ) -> Result<Vec<SendableRecordBatchStream>> {
        if let Some(scan) = &self.parquet {
            return scan.read(self.place.files().clone(), files, wanted);
        }
        let records = Wanted::new(&self.schema, self.fields, &self.keys, wanted)?;
        let files = (self.place.files().clone(), files);
        reading::read(&self.name, &self.options, records, files, wanted.partitions, bad_records)
    }
}

impl Source for FileSource {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn description(&self) -> String {
        format!("FileStreamSource[{}]", self.place.shown())
    }

    fn latest_offset(&mut self, after: Option<&Offset>, limit: &ReadLimit) -> Result<Option<Offset>> {
        self.discovery.next(&self.place, &self.options, after, limit)
    }

    fn size(&self, range: &OffsetRange) -> RangeSize {
        let bytes = self.discovery.files(range).map(|files| files.iter().map(|file| file.size).sum());
        RangeSize { rows: None, bytes: bytes.ok() }
    }

    fn read(&self, range: &OffsetRange, wanted: &Pushdown) -> Result<SourceRead> {
        let files = self.discovery.files(range)?;
        let named = files.into_iter().map(|file| {
            let path = self.place.full(&file);
            (file, path)
        });
        let bad_records = Arc::new(BadRecords::default());
        let projected = wanted.project(&self.schema)?;
        let mut streams = Vec::new();
        for run in folders::runs(named.collect(), &self.place, &self.schema.fields()[..self.fields], wanted)? {
            let of_files = run.of_files(&self.schema, wanted);
            let read = self.read_files(run.files.clone(), &of_files, &bad_records)?;
            streams.push(read.into_iter().map(|stream| run.complete(stream, &projected, wanted)).collect());
        }
        let streams = match streams.len() {
            0 => self.read_files(Vec::new(), wanted, &bad_records)?,
            1 => streams.remove(0),
            _ => folders::one_behind_another(streams, &projected),
        };
        Ok(SourceRead { streams, bad_records })
    }

    fn commit(&mut self, end: &Offset) -> Result<()> {
        self.discovery.forget(end)
    }
}

#[cfg(test)]
mod parquet_tests;
#[cfg(test)]
mod remote_tests;
#[cfg(test)]
mod tests;
