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

mod manifest;
mod partition;
mod parts;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use self::manifest::Manifest;
pub use self::manifest::{FileEntry, committed_files, committed_files_in};
use self::partition::Partitioner;
pub use self::partition::folder_value;
use self::parts::{Parts, make_folder, stray_parts};
use self::writer::FileFormat;
use super::{BatchId, BatchSummary, Begin, Sink, SinkCommit, SinkContext};
use crate::checkpoint::{FailStore, LocalStore, Store};
use crate::delta::Delta;
use crate::error::{Error, Result};
use crate::options::{OptionKind, OptionSpec, Options};
use crate::parser::OutputMode;
use crate::storage::local_directory;

/// What `WITH (connector = 'file', …)` may hold for a sink.
pub const OPTIONS: &[OptionSpec] = &[
    OptionSpec { name: "path", kind: OptionKind::Text, help: "the folder of the files; required" },
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
    let root = local_directory(path, "files")?;
    let store = Arc::new(LocalStore::new(root.clone()));
    let failing = FailStore::manifest(store.clone(), context.failpoints.clone());
    let sink = open_in(options, context, path, root, Arc::new(failing))?;
    // Only now: until the manifest is ours, a temporary file in it may be being written.
    store.sweep(manifest::FOLDER)?;
    Ok(sink)
}

/// Something in a folder that a reader would take for data.
fn visible_entry(root: &Path) -> Result<Option<String>> {
    let listing = |e: std::io::Error| Error::io(format!("listing {}", root.display()), &e);
    let mut names = Vec::new();
    for entry in std::fs::read_dir(root).map_err(listing)? {
        names.push(entry.map_err(listing)?.file_name().to_string_lossy().into_owned());
    }
    Ok(names.into_iter().filter(|name| !name.starts_with(['.', '_'])).min())
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
    if options.get("partition_by").is_some() && options.names("partition_by").is_empty() {
        return Err(Error::invalid("partition_by names no column").help("partition_by = 'day,city', or leave it out"));
    }
    file_format(options).map(drop)
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
    root: PathBuf,
    store: Arc<dyn Store>,
) -> Result<FileSink> {
    refuse_mode(context)?;
    let format = file_format(options)?;
    refuse_same_names(context)?;
    let partitioner = Partitioner::new(&context.schema, &options.names("partition_by"))?;
    format.check(partitioner.schema())?;
    if root.exists() && !root.is_dir() {
        return Err(Error::invalid(format!("{path} is a file; the file sink's path is a folder")));
    }
    make_folder(&root)?;
    if committed_files(store.as_ref())?.is_none()
        && let Some(stray) = stray_parts(&root, &Default::default())?.first()
    {
        return Err(Error::conflict(format!(
            "{} looks like a part file of a sink whose manifest ({path}/{}) is missing: move it away, or write to another path",
            stray.display(),
            manifest::FOLDER
        )));
    }
    if committed_files(store.as_ref())?.is_none()
        && let Some(other) = visible_entry(&root)?
    {
        return Err(Error::conflict(format!(
            "{path} holds {other}, and no manifest of a file sink: readers would see only what the sink writes from then on; \
             give the sink a folder of its own"
        )));
    }
    let (manifest, files) = Manifest::open(store, context)?;
    let strays = stray_parts(&root, &files)?;
    strays.iter().try_for_each(|stray| manifest.refuse_lost(stray, context.committed))?;
    for stray in strays {
        std::fs::remove_file(&stray).map_err(|e| Error::io(format!("removing {}", stray.display()), &e))?;
    }
    let parts = Parts::new(root, format, partitioner.schema().clone(), &context.run_id);
    Ok(FileSink { path: path.into(), partitioner, manifest, parts, batch: State::Idle })
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

    /// Without rows it leaves no trace: a replay of nothing is nothing again.
    fn commit(&mut self, _summary: &BatchSummary) -> Result<SinkCommit> {
        let State::Writing(batch) = self.batch else {
            self.batch = State::Idle;
            return Ok(SinkCommit::default());
        };
        let files = self.parts.finish()?;
        let rows = files.iter().map(|file| file.rows).sum();
        if !files.is_empty() {
            self.batch = State::Sealing(batch);
            self.manifest.append(batch, files)?;
        }
        self.parts.forget();
        self.batch = State::Idle;
        self.manifest.compact_when_due()?;
        Ok(SinkCommit { rows })
    }

    fn abort(&mut self) -> Result<()> {
        match std::mem::replace(&mut self.batch, State::Idle) {
            State::Idle | State::AlreadyDone => Ok(()),
            State::Writing(_) => self.parts.remove(),
            // An entry that names the files may be there, whatever was answered when it was created.
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
