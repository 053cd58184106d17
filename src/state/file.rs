//! One file of an operator's state: what a batch changed (a delta), or all there is after it (a snapshot).
//!
//! ```text
//! "LEVSTATE"  8 bytes
//! upserts     an Arrow IPC stream, LZ4 buffers; absent where there is no such row
//! deletes     likewise; never in a snapshot
//! index       JSON: whose state, which version, up to which time rows were forgotten, and each section's length and rows
//! footer      28 bytes: format, u32 · where the index begins, u64 · its length, u32 · CRC-32C of all before
//!             this sum, u32 · "LEVSTEND"
//! ```
//! Numbers are little-endian. The footer is looked at first, and nothing is used of a file whose sum is not right, so
//! that a truncated, emptied or changed file is always noticed. A snapshot is written as it is made, batch by batch.
//!
//! Columns are stored as plain Arrow columns, keys and values alike: neither a row encoding nor a hash is part of the
//! format.

use std::io::{self, Write};

use arrow::array::{Array, RecordBatch};
use arrow::datatypes::Schema;
use arrow::error::ArrowError;
use arrow::ipc::CompressionType;
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::{
    DictionaryTracker, EncodedData, IpcDataGenerator, IpcWriteContext, IpcWriteOptions, StreamWriter, write_message,
};
use serde::{Deserialize, Serialize};

use crate::checkpoint::Store;
use crate::error::{Error, Result};

/// 2 came with `forgotten_until`; files of 1 are read.
const FORMAT: u32 = 2;
const BEGIN: &[u8; 8] = b"LEVSTATE";
const END: &[u8; 8] = b"LEVSTEND";
const FOOTER: usize = 28;
/// The sum and what stands behind it.
const TAIL: usize = 12;

/// So many batches are compressed by a thread at a time, where there are several; and so many rows are worth one.
const GROUP: usize = 64;
const WORTH_A_THREAD: usize = 16_384;

/// Whose state a file holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// The operator's stable name.
    pub operator: String,
    /// [`super::schema::StateSchema::fingerprint`].
    pub schema: String,
}

/// Which of the two a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// What batch `version` changed in version `version - 1`.
    Delta,
    /// Everything, as it is after batch `version`.
    Snapshot,
}

/// What a file says about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Index {
    pub kind: Kind,
    pub owner: Owner,
    /// The batch whose end this is.
    pub version: u64,
    /// The version that a delta changes; absent in a snapshot and in the first delta, which changes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<u64>,
    pub upserts: Section,
    pub deletes: Section,
    /// See [`Delta::forgotten_until`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forgotten_until: Option<i64>,
}

/// What a batch changed in a state.
#[derive(Debug, Clone, Default)]
pub struct Delta {
    /// Rows written, keys and values; then …
    pub upserts: Vec<RecordBatch>,
    /// … keys taken out; then …
    pub deletes: Vec<RecordBatch>,
    /// … all rows forgotten whose time is at or before this, in microseconds: the time that they have, not when it ends.
    pub forgotten_until: Option<i64>,
}

/// One part of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Section {
    pub rows: u64,
    /// Length in the file.
    pub bytes: u64,
}

/// A file that was read and found intact.
#[derive(Debug, Clone)]
pub struct StateContents {
    pub index: Index,
    /// Keys and values that are there from now on.
    pub upserts: Vec<RecordBatch>,
    /// Keys that are no more.
    pub deletes: Vec<RecordBatch>,
}

/// The path of a state file in its operator's folder.
pub fn path(folder: &str, kind: Kind, version: u64) -> String {
    match kind {
        Kind::Delta => format!("{folder}/{version}.delta"),
        Kind::Snapshot => format!("{folder}/{version}.snapshot"),
    }
}

/// Writes `<folder>/<version>.delta`. Every version has its delta, one without changes too: otherwise a lost one would not
/// be missed. Answers the file's length.
///
/// # Errors
/// Conflict: it is there already (what a run left that died before its commit is removed by
/// [`super::versions::discard_above`]). Io. Internal: batches of different types.
pub fn write_delta(store: &dyn Store, folder: &str, owner: &Owner, version: u64, delta: &Delta) -> Result<u64> {
    let (kind, base) = (Kind::Delta, version.checked_sub(1));
    let Delta { upserts, deletes, forgotten_until } = delta;
    let (upserts, deletes) = (upserts.iter().cloned().map(Ok), deletes.iter().cloned().map(Ok));
    // A batch waits for it.
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    write(store, &path(folder, kind, version), threads, upserts, deletes, |upserts, deletes| Index {
        kind,
        owner: owner.clone(),
        version,
        base,
        upserts,
        deletes,
        forgotten_until: *forgotten_until,
    })
}

/// Writes `<folder>/<version>.snapshot`, taking one batch of rows after the other. Answers the file's length.
///
/// # Errors
/// As [`write_delta`], and the first error that `batches` gives: no file is left then.
pub fn write_snapshot(
    store: &dyn Store,
    folder: &str,
    owner: &Owner,
    version: u64,
    batches: impl Iterator<Item = Result<RecordBatch>>,
) -> Result<u64> {
    let kind = Kind::Snapshot;
    write(store, &path(folder, kind, version), 1, batches, std::iter::empty(), |upserts, deletes| Index {
        kind,
        owner: owner.clone(),
        version,
        base: None,
        upserts,
        deletes,
        forgotten_until: None,
    })
}

/// Reads a file of `owner` and checks all of it.
///
/// # Errors
/// Corrupt, by path: missing, damaged, of a newer format, of another operator, version or schema.
pub fn read(store: &dyn Store, folder: &str, owner: &Owner, kind: Kind, version: u64) -> Result<StateContents> {
    let path = path(folder, kind, version);
    let described = store.describe(&path);
    let bytes = store.get(&path)?.ok_or_else(|| Error::corrupt(&described, "the file is missing"))?;
    let (index, sections) = open(&described, &bytes)?;
    let base = version.checked_sub(1).filter(|_| kind == Kind::Delta);
    if (index.kind, index.version, index.base) != (kind, version, base) || index.owner.operator != owner.operator {
        let (kind, version, operator) = (index.kind, index.version, &index.owner.operator);
        let message = format!("the file is the {kind:?} of version {version} of {operator}, under another's name");
        return Err(Error::corrupt(described, message));
    }
    if index.owner.schema != owner.schema {
        let message = format!("the file has the state schema {}, not {}", index.owner.schema, owner.schema);
        return Err(Error::corrupt(described, message));
    }
    let upserts = read_section(&described, sections.upserts, index.upserts)?;
    let deletes = read_section(&described, sections.deletes, index.deletes)?;
    Ok(StateContents { index, upserts, deletes })
}

/// Whether a file is there and its sum is right; its rows are not looked at.
///
/// # Errors
/// Io.
pub fn is_intact(store: &dyn Store, folder: &str, kind: Kind, version: u64) -> Result<bool> {
    let path = path(folder, kind, version);
    Ok(store.get(&path)?.is_some_and(|bytes| open(&path, &bytes).is_ok()))
}

fn write(
    store: &dyn Store,
    path: &str,
    threads: usize,
    upserts: impl Iterator<Item = Result<RecordBatch>>,
    deletes: impl Iterator<Item = Result<RecordBatch>>,
    index: impl FnOnce(Section, Section) -> Index,
) -> Result<u64> {
    // A store calls its writer once; what is taken out here is there then.
    let mut input = Some((upserts, deletes, index));
    let mut cause = None;
    let mut length = 0;
    let stored = store.put_new(path, &mut |out| {
        let Some((upserts, deletes, index)) = input.take() else {
            return Err(io::Error::other("a state file can be written only once"));
        };
        length = write_to(out, threads, upserts, deletes, index).map_err(|failure| match failure {
            Failure::Io(e) => e,
            Failure::Other(error) => {
                cause = Some(error);
                io::Error::other("the rows could not be written")
            }
        })?;
        Ok(())
    });
    match (stored, cause) {
        (Err(_), Some(cause)) => Err(cause),
        (stored, _) => stored.map(|()| length),
    }
}

/// What ends a write: the disk, which the store reports, or the rows.
enum Failure {
    Io(io::Error),
    Other(Error),
}

impl From<io::Error> for Failure {
    fn from(e: io::Error) -> Self {
        Failure::Io(e)
    }
}

impl From<ArrowError> for Failure {
    fn from(e: ArrowError) -> Self {
        match e {
            ArrowError::IoError(_, e) => Failure::Io(e),
            e => Failure::Other(Error::internal(format!("state rows can't be written: {e}"))),
        }
    }
}

fn write_to(
    out: &mut dyn Write,
    threads: usize,
    upserts: impl Iterator<Item = Result<RecordBatch>>,
    deletes: impl Iterator<Item = Result<RecordBatch>>,
    index: impl FnOnce(Section, Section) -> Index,
) -> Result<u64, Failure> {
    let mut out = Summed { out, sum: 0, length: 0 };
    out.write_all(BEGIN)?;
    let upserts = write_section(&mut out, threads, upserts)?;
    let deletes = write_section(&mut out, threads, deletes)?;
    let at = out.length;
    let index = serde_json::to_vec(&index(upserts, deletes)).map_err(io::Error::from)?;
    out.write_all(&index)?;
    out.write_all(&FORMAT.to_le_bytes())?;
    out.write_all(&at.to_le_bytes())?;
    out.write_all(&(index.len() as u32).to_le_bytes())?;
    let sum = out.sum;
    out.write_all(&sum.to_le_bytes())?;
    out.write_all(END)?;
    Ok(out.length)
}

fn write_section(
    out: &mut Summed<'_>,
    threads: usize,
    batches: impl Iterator<Item = Result<RecordBatch>>,
) -> Result<Section, Failure> {
    let begin = out.length;
    let mut rows = 0;
    let mut batches = batches.filter(|batch| batch.as_ref().map_or(true, |batch| batch.num_rows() > 0));
    if let Some(first) = batches.next() {
        let mut batch = first.map_err(Failure::Other)?;
        let schema = batch.schema();
        let options = IpcWriteOptions::default().try_with_compression(Some(CompressionType::LZ4_FRAME))?;
        let mut stream = StreamWriter::try_new_with_options(&mut *out, &schema, options.clone())?;
        let (mut group, most) = (Vec::new(), if threads > 1 { GROUP * threads } else { 1 });
        loop {
            rows += batch.num_rows() as u64;
            group.push(batch);
            let next = batches.next().transpose().map_err(Failure::Other)?;
            if group.len() >= most || next.is_none() {
                for encoded in encode(&group, threads, &options)? {
                    write_message(stream.get_mut(), encoded, &options)?;
                }
                group.clear();
            }
            match next {
                None => break,
                Some(next) => batch = next,
            }
            if !fits(&batch, &schema) {
                let message = format!("state rows of different types: {schema} and {}", batch.schema());
                return Err(Failure::Other(Error::internal(message)));
            }
        }
        stream.finish()?;
    }
    Ok(Section { rows, bytes: out.length - begin })
}

/// Compresses batches, which have no dictionaries, by so many threads.
fn encode(batches: &[RecordBatch], threads: usize, options: &IpcWriteOptions) -> Result<Vec<EncodedData>, Failure> {
    let one = |batch: &RecordBatch| -> Result<EncodedData, ArrowError> {
        let mut dictionaries = DictionaryTracker::new(false);
        let mut scratch = IpcWriteContext::default();
        Ok(IpcDataGenerator::default().encode(batch, &mut dictionaries, options, &mut scratch)?.1)
    };
    let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
    if threads <= 1 || rows < WORTH_A_THREAD {
        return Ok(batches.iter().map(one).collect::<Result<_, _>>()?);
    }
    std::thread::scope(|scope| {
        let shares = batches.chunks(batches.len().div_ceil(threads));
        let shares: Vec<_> = shares
            .map(|share| scope.spawn(move || share.iter().map(one).collect::<Result<Vec<_>, ArrowError>>()))
            .collect();
        let mut all = Vec::with_capacity(batches.len());
        for share in shares {
            let died = |_| Failure::Other(Error::internal("a thread that wrote state died"));
            all.append(&mut share.join().map_err(died)??);
        }
        Ok(all)
    })
}

/// Whether a batch may stand in the stream of another's schema. The stream's writer looks neither at types nor at
/// nulls, and what it then writes can't be read.
fn fits(batch: &RecordBatch, schema: &Schema) -> bool {
    batch.num_columns() == schema.fields().len()
        && batch.columns().iter().zip(schema.fields()).all(|(column, field)| {
            column.data_type() == field.data_type() && (field.is_nullable() || column.logical_null_count() == 0)
        })
}

/// Sums up what passes.
struct Summed<'a> {
    out: &'a mut dyn Write,
    sum: u32,
    length: u64,
}

impl Write for Summed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.sum = crc32c::crc32c_append(self.sum, &bytes[..written]);
        self.length += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// The bytes of the two sections.
struct Sections<'a> {
    upserts: &'a [u8],
    deletes: &'a [u8],
}

/// The index and the sections of a file, once its sum is found right.
fn open<'a>(path: &str, bytes: &'a [u8]) -> Result<(Index, Sections<'a>)> {
    let corrupt = |message: String| Error::corrupt(path, message);
    if bytes.is_empty() {
        return Err(corrupt("the file is empty; it was truncated, or never reached the disk".into()));
    }
    if !bytes.starts_with(BEGIN) {
        return Err(corrupt("not a state file of Levada, or damaged at its beginning".into()));
    }
    let footer = bytes.last_chunk::<FOOTER>().filter(|footer| footer.ends_with(END)).ok_or_else(|| {
        corrupt(format!("the file was truncated: it ends after {} bytes without a footer", bytes.len()))
    })?;
    if u32_at(footer, 16) != crc32c::crc32c(&bytes[..bytes.len() - TAIL]) {
        return Err(corrupt("the content's checksum is wrong: the file was changed or cut".into()));
    }
    let format = u32_at(footer, 0);
    if format > FORMAT {
        return Err(corrupt(format!(
            "the file was written by a newer Levada (state format {format}; this one reads up to {FORMAT})"
        )));
    }
    let at = u64::from(u32_at(footer, 4)) | u64::from(u32_at(footer, 8)) << 32;
    split(bytes, at, u32_at(footer, 12))
        .ok_or_else(|| corrupt("the index does not fit the file, though the checksum is right".into()))
}

/// Takes a file apart whose index begins `at` a place and is so long. `None` where that can't be.
fn split(bytes: &[u8], at: u64, index_length: u32) -> Option<(Index, Sections<'_>)> {
    let at = usize::try_from(at).ok()?;
    let index = bytes.get(at..bytes.len() - FOOTER).filter(|index| index.len() == index_length as usize)?;
    let index: Index = serde_json::from_slice(index).ok()?;
    let behind_upserts = usize::try_from(index.upserts.bytes).ok()?.checked_add(BEGIN.len())?;
    let upserts = bytes.get(BEGIN.len()..behind_upserts)?;
    let deletes = bytes.get(behind_upserts..at)?;
    (deletes.len() as u64 == index.deletes.bytes).then_some((index, Sections { upserts, deletes }))
}

fn u32_at(footer: &[u8; FOOTER], at: usize) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&footer[at..at + 4]);
    u32::from_le_bytes(number)
}

fn read_section(path: &str, bytes: &[u8], section: Section) -> Result<Vec<RecordBatch>> {
    if bytes.is_empty() {
        return Ok(Vec::new());
    }
    let batches = StreamReader::try_new(bytes, None).and_then(|stream| stream.collect::<Result<Vec<_>, _>>());
    let batches = batches
        .map_err(|e| Error::corrupt(path, format!("its rows can't be read, though the checksum is right: {e}")))?;
    let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
    if rows as u64 != section.rows {
        return Err(Error::corrupt(path, format!("it holds {rows} rows where its index says {}", section.rows)));
    }
    Ok(batches)
}
