//! `file`: rows in json, csv or parquet files that each batch adds to exactly once.
//!
//! How a batch becomes part of the result, so that a crash at any point leaves all of it or nothing:
//!
//! 1. rows go to part files, whose names no other run and no other batch can give;
//! 2. the files are synced, then their folders;
//! 3. the manifest entry of the batch, which names the files, is created without replacing.
//!
//! A batch that is run again finds its entry and writes nothing, or finds none and writes new files. Files that no
//! entry names are removed when their owner opens the sink again. A file can't take rows back: only APPEND is taken.
//!
//! In an object store an entry that a dead run has sent may still appear. So files of a batch are left alone until that
//! batch has an entry, and the first batch of a run gets one whether it has rows or not.

mod folder;
mod local;
mod manifest;
mod partition;
mod parts;
mod remote;
mod writer;

use std::sync::Arc;

use self::folder::Folder;
use self::local::LocalFolder;
use self::manifest::Manifest;
pub use self::manifest::{FileEntry, committed_files, committed_files_in};
use self::partition::Partitioner;
pub use self::partition::folder_value;
use self::parts::{Parts, batch_of};
use self::remote::RemoteFolder;
use self::writer::FileFormat;
use super::{BatchId, BatchSummary, Begin, Sink, SinkCommit, SinkContext};
use crate::checkpoint::{FailStore, LocalStore, RemoteStore, Store};
use crate::delta::Delta;
use crate::error::{Error, Result};
use crate::options::{OptionKind, OptionSpec, Options};
use crate::parser::OutputMode;
use crate::storage::{Location, Root, Settings};

/// What `WITH (connector = 'file', …)` may hold for a sink.
pub const OPTIONS: &[OptionSpec] = &[
    OptionSpec {
        name: "path",
        kind: OptionKind::Text,
        help: "the folder of the files; local, or in s3://, gs://, az://; required",
    },
    OptionSpec {
        name: "endpoint",
        kind: OptionKind::Text,
        help: "an object store's server, as in http://localhost:9000",
    },
    OptionSpec { name: "region", kind: OptionKind::Text, help: "s3: the bucket's region" },
    OptionSpec {
        name: "format",
        kind: OptionKind::OneOf(&["json", "csv", "parquet"]),
        help: "json (one object a line), csv (with a header) or parquet; required",
    },
    OptionSpec {
        name: "partition_by",
        kind: OptionKind::Names,
        help: "columns that become folders, column=value/, and are left out of the files",
    },
    OptionSpec {
        name: "compression",
        kind: OptionKind::OneOf(&["none", "gzip", "zstd", "snappy"]),
        help: "json and csv: none (default), gzip, zstd; parquet: snappy (default), zstd, none",
    },
];

/// The modes the sink takes.
pub const MODES: &[OutputMode] = &[OutputMode::Append];

/// The sink.
pub struct FileSink {
    /// As the user wrote it.
    path: String,
    partitioner: Partitioner,
    manifest: Manifest,
    parts: Parts,
    /// Files of earlier runs whose batches may yet get an entry that names them.
    unsettled: Vec<String>,
    /// A run before this one may still be about to give the next batch its entry.
    first: bool,
    batch: State,
}

/// Where the sink is between `begin` and `commit`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Idle,
    Writing(BatchId),
    /// The entry of this batch is being created, or may have been.
    Sealing(BatchId),
    AlreadyDone,
}

/// Opens the sink: takes over the folder's manifest, or begins one, and removes what an earlier run has left
/// unfinished.
///
/// # Errors
/// InvalidInput: a wrong or missing option. Unsupported: a mode or a column that files can't take. Conflict: the folder
/// belongs to another query. Corrupt: its manifest is damaged.
pub fn open(options: &Options, context: &SinkContext) -> Result<FileSink> {
    check(options)?;
    let path = options.text("path").unwrap_or_default();
    let failing = |store| Arc::new(FailStore::manifest(store, context.failpoints.clone()));
    match Location::to_write(path, "files")? {
        Location::Local(root) => {
            let store = Arc::new(LocalStore::synced(root.clone(), context.durable));
            let folder = Box::new(LocalFolder::new(root, path, context.durable));
            let sink = open_in(options, context, path, folder, failing(store.clone()))?;
            // Only now: until the manifest is ours, a temporary file in it may be being written.
            store.sweep(manifest::FOLDER)?;
            Ok(sink)
        }
        Location::Remote(url) => {
            let root = Root::open(&url, &settings(options))?;
            let store = Arc::new(RemoteStore::writer(root.clone(), &context.run_id));
            open_in(options, context, path, Box::new(RemoteFolder::new(root)), failing(store))
        }
    }
}

/// How the store that `path` names is spoken to.
fn settings(options: &Options) -> Settings {
    let text = |name| options.text(name).map(str::to_string);
    Settings { endpoint: text("endpoint"), region: text("region"), anonymous: false }
}

/// Checks a WITH list without looking at the place.
///
/// # Errors
/// InvalidInput: a wrong or missing option.
pub fn check(options: &Options) -> Result<()> {
    options.check("connector 'file'", OPTIONS)?;
    if options.text("path").is_none_or(str::is_empty) {
        return Err(Error::invalid("connector 'file' needs the option path").help("path = 'out'"));
    }
    let location = Location::to_write(options.text("path").unwrap_or_default(), "files")?;
    let of_stores = ["endpoint", "region"].iter().find_map(|name| options.get(name));
    if let (Some(entry), Location::Local(_)) = (of_stores, location) {
        let message = format!("option {} is for object stores, and the path is a local one", entry.name);
        return Err(Error::invalid_at(entry.span, message));
    }
    if options.get("partition_by").is_some() && options.names("partition_by").is_empty() {
        return Err(Error::invalid("partition_by names no column").help("partition_by = 'day,city', or leave it out"));
    }
    file_format(options).map(drop)
}

/// Where a sink of these options writes, and what its files are called.
#[derive(Debug, Clone)]
pub struct Target {
    /// As the user wrote it.
    pub path: String,
    pub endpoint: Option<String>,
    /// Columns that become folders.
    pub columns: Vec<String>,
    /// With what the names of its files begin and end.
    pub prefix: &'static str,
    pub suffix: String,
}

/// The [`Target`] of a WITH list.
///
/// # Errors
/// As [`check`].
pub fn target(options: &Options) -> Result<Target> {
    check(options)?;
    Ok(Target {
        path: options.text("path").unwrap_or_default().to_string(),
        endpoint: options.text("endpoint").map(str::to_string),
        columns: options.names("partition_by"),
        prefix: parts::PREFIX,
        suffix: format!(".{}", file_format(options)?.extension()),
    })
}

fn file_format(options: &Options) -> Result<FileFormat> {
    let missing =
        || Error::invalid("connector 'file' needs the option format").help("format = 'json', 'csv' or 'parquet'");
    FileFormat::parse(options.text("format").ok_or_else(missing)?, options.text("compression"))
}

/// [`open`] with the manifest in a store of the caller's.
fn open_in(
    options: &Options,
    context: &SinkContext,
    path: &str,
    folder: Box<dyn Folder>,
    store: Arc<dyn Store>,
) -> Result<FileSink> {
    refuse_mode(context)?;
    let format = file_format(options)?;
    refuse_same_names(context)?;
    let partitioner = Partitioner::new(&context.schema, &options.names("partition_by"))?;
    format.check(partitioner.schema())?;
    folder.prepare()?;
    if committed_files(store.as_ref())?.is_none() {
        refuse_foreign(folder.as_ref(), path)?;
    }
    let (manifest, files) = Manifest::open(store, context)?;
    let mut unsettled = folder.strays(&files)?;
    unsettled.iter().try_for_each(|stray| manifest.refuse_lost(stray, &folder.shown(stray), context.committed))?;
    let parts = Parts::new(folder, format, partitioner.schema().clone(), &context.run_id);
    remove_strays(&parts, &manifest, &mut unsettled)?;
    Ok(FileSink { path: path.into(), partitioner, manifest, parts, unsettled, first: true, batch: State::Idle })
}

/// A folder without a manifest that holds something.
fn refuse_foreign(folder: &dyn Folder, path: &str) -> Result<()> {
    if let Some(stray) = folder.strays(&Default::default())?.first() {
        return Err(Error::conflict(format!(
            "{} looks like a part file of a sink whose manifest ({path}/{}) is missing: move it away, or write to another path",
            folder.shown(stray),
            manifest::FOLDER
        )));
    }
    match folder.visible_entry()? {
        None => Ok(()),
        Some(other) => Err(Error::conflict(format!(
            "{path} holds {other}, and no manifest of a file sink: readers would see only what the sink writes from then on; \
             give the sink a folder of its own"
        ))),
    }
}

/// Removes files that no entry names and none ever will.
fn remove_strays(parts: &Parts, manifest: &Manifest, strays: &mut Vec<String>) -> Result<()> {
    let is_settled = |stray: &str| {
        !parts.folder().has_latecomers() || batch_of(stray).is_none_or(|batch| manifest.is_decided(batch))
    };
    let (settled, kept) = std::mem::take(strays).into_iter().partition(|stray| is_settled(stray));
    *strays = kept;
    let settled: Vec<String> = settled;
    settled.iter().try_for_each(|stray| parts.folder().remove(stray))
}

fn refuse_mode(context: &SinkContext) -> Result<()> {
    let mode = match context.mode {
        OutputMode::Append if !context.retracts => return Ok(()),
        OutputMode::Append => {
            return Err(Error::unsupported("the file sink can't take rows back, and this query may send deletes")
                .help("write INTO TABLE t or INTO CONSOLE, or make its results final before they are sent"));
        }
        OutputMode::Update => "UPDATE",
        OutputMode::Complete => "COMPLETE",
    };
    Err(Error::unsupported(format!("the file sink only adds rows, and mode {mode} replaces them")).help(
        "OUTPUT MODE APPEND writes each result once, when it is final: group by a window over a watermarked time; \
         or write INTO TABLE t",
    ))
}

/// Readers find columns by name.
fn refuse_same_names(context: &SinkContext) -> Result<()> {
    let fields = context.schema.fields();
    for (at, field) in fields.iter().enumerate() {
        if fields[..at].iter().any(|other| other.name() == field.name()) {
            let what = format!("the result has two columns named {}, which a reader can't tell apart", field.name());
            return Err(Error::invalid(what).help("give one of them another name with AS"));
        }
    }
    Ok(())
}

impl Sink for FileSink {
    fn description(&self) -> String {
        format!("FileSink[{}]", self.path)
    }

    fn begin(&mut self, batch: BatchId) -> Result<Begin> {
        self.abort()?;
        if self.manifest.contains(batch)? {
            // The entry may be one that came late, and name some of them.
            self.unsettled.clear();
            self.first = false;
            self.batch = State::AlreadyDone;
            return Ok(Begin::AlreadyDone);
        }
        self.parts.begin(batch);
        self.batch = State::Writing(batch);
        Ok(Begin::Write)
    }

    fn push(&mut self, partition: usize, changes: Delta) -> Result<()> {
        match self.batch {
            State::AlreadyDone => return Ok(()),
            State::Writing(_) => {}
            State::Idle | State::Sealing(_) => return Err(Error::internal("rows for a file sink outside a batch")),
        }
        if changes.weights().is_some_and(|weights| weights.values().iter().any(|weight| *weight < 0)) {
            return Err(Error::internal("a row was taken back from a file sink"));
        }
        if changes.is_empty() {
            return Ok(());
        }
        for (folder, rows) in self.partitioner.split(&changes.rows)? {
            self.parts.write(partition, folder, &rows)?;
        }
        Ok(())
    }

    /// Without rows it leaves no trace, where nobody else could give the batch an entry: a replay of nothing is nothing
    /// again.
    fn commit(&mut self, _summary: &BatchSummary) -> Result<SinkCommit> {
        let State::Writing(batch) = self.batch else {
            self.batch = State::Idle;
            return Ok(SinkCommit::default());
        };
        let files = self.parts.finish()?;
        let rows = files.iter().map(|file| file.rows).sum();
        if !files.is_empty() || (self.first && self.parts.folder().has_latecomers()) {
            self.batch = State::Sealing(batch);
            self.manifest.append(batch, files)?;
        }
        self.parts.forget();
        self.batch = State::Idle;
        self.first = false;
        remove_strays(&self.parts, &self.manifest, &mut self.unsettled)?;
        self.manifest.compact_when_due()?;
        Ok(SinkCommit { rows })
    }

    fn abort(&mut self) -> Result<()> {
        match std::mem::replace(&mut self.batch, State::Idle) {
            State::Idle | State::AlreadyDone => Ok(()),
            State::Writing(_) => self.parts.remove(),
            // An entry that names the files may appear, whatever was answered when it was created.
            State::Sealing(_) if self.parts.folder().has_latecomers() => {
                self.parts.forget();
                Ok(())
            }
            // An entry that names the files may be there.
            State::Sealing(batch) => match self.manifest.contains(batch) {
                Ok(false) => self.parts.remove(),
                Ok(true) | Err(_) => {
                    self.parts.forget();
                    Ok(())
                }
            },
        }
    }
}

#[cfg(test)]
mod layout_tests;
#[cfg(test)]
mod manifest_tests;
#[cfg(test)]
mod tests;
