//! The options of a file source.

use crate::error::{Error, Result};
use crate::format::{Compression, CsvOptions, Format, OnError};
use crate::options::{OptionKind, OptionSpec, Options, parse_interval};
use crate::storage::{Location, Settings};

/// The options of connector `file` as a source.
pub const OPTIONS: &[OptionSpec] = &[
    spec(
        "path",
        OptionKind::Text,
        "a directory (with all below it), a glob (* ? [a-z] {a,b} **), a file; local, or in s3://, gs://, az://, https://",
    ),
    spec("endpoint", OptionKind::Text, "an object store's server, as in http://localhost:9000"),
    spec("region", OptionKind::Text, "s3: the bucket's region"),
    spec("anonymous", OptionKind::Bool, "an object store's requests are not signed (false)"),
    spec("format", OptionKind::OneOf(Format::NAMES), "how the files are written"),
    spec("max_files_per_trigger", OptionKind::Positive, "a batch takes so many new files at the most"),
    spec(
        "max_bytes_per_trigger",
        OptionKind::Bytes,
        "a batch takes new files up to this size, one at least; not together with max_files_per_trigger",
    ),
    spec("latest_first", OptionKind::Bool, "take the newest files first (false)"),
    spec(
        "max_file_age",
        OptionKind::Interval,
        "pass over new files older than the newest one seen by more than this (no limit)",
    ),
    spec(
        "on_error",
        OptionKind::OneOf(&["fail", "skip", "null"]),
        "what becomes of a bad record: fail (the default), skip, null",
    ),
    spec("dead_letter", OptionKind::Text, "a sink that bad records are written to"),
    spec("header", OptionKind::Bool, "csv: the first record of each file names its fields (false)"),
    spec("delimiter", OptionKind::Char, "csv: between two fields (a comma)"),
    spec("null_value", OptionKind::Text, "csv: the unquoted text that stands for NULL (the empty one)"),
    spec(
        "compression",
        OptionKind::OneOf(Compression::NAMES),
        "how files are compressed: auto (by suffix .gz, .zst), none, gzip, zstd",
    ),
    spec("max_record_bytes", OptionKind::Bytes, "a longer record is bad (64 MiB; 4 MiB to 1 GiB)"),
];

const fn spec(name: &'static str, kind: OptionKind, help: &'static str) -> OptionSpec {
    OptionSpec { name, kind, help }
}

/// How much of what is new one batch takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rate {
    /// The options set no limit.
    Unset,
    Files(u64),
    Bytes(u64),
}

/// The options, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileOptions {
    pub path: String,
    /// How the store that `path` names is spoken to.
    pub store: Settings,
    pub format: Format,
    pub rate: Rate,
    pub latest_first: bool,
    /// Nanoseconds.
    pub max_file_age: Option<i64>,
    pub on_error: OnError,
    pub csv: CsvOptions,
    /// `None`: by the suffix of each file.
    pub compression: Option<Compression>,
    pub max_record_bytes: usize,
}

impl FileOptions {
    /// Reads a WITH list that holds everything but `connector`.
    ///
    /// # Errors
    /// InvalidInput at the option's place; Unsupported for what isn't built yet.
    pub fn parse(options: &Options) -> Result<Self> {
        options.check("connector 'file'", OPTIONS)?;
        let missing =
            |name, example| Error::invalid(format!("connector 'file' wants option {name}, as in {name} = '{example}'"));
        let path = options.text("path").ok_or_else(|| missing("path", "data/in"))?.to_string();
        let format = options.text("format").and_then(Format::parse).ok_or_else(|| missing("format", "json"))?;
        only_for(options, format, Format::Csv, &["header", "delimiter", "null_value"])?;
        let defaults = CsvOptions::default();
        let parsed = FileOptions {
            store: store(options, &path)?,
            path,
            format,
            rate: rate(options)?,
            latest_first: options.bool("latest_first")?.unwrap_or(false),
            max_file_age: options
                .parse("max_file_age", "an interval longer than nothing, such as '7 days'", |text| {
                    parse_interval(text).filter(|micros| *micros > 0)
                })?
                .map(|micros| micros.saturating_mul(1_000)),
            on_error: on_error(options)?,
            csv: CsvOptions {
                header: options.bool("header")?.unwrap_or(defaults.header),
                delimiter: delimiter(options)?.unwrap_or(defaults.delimiter),
                null_value: options.text("null_value").map(str::to_string),
            },
            compression: options.text("compression").and_then(Compression::parse),
            max_record_bytes: max_record_bytes(options)?,
        };
        parsed.check_parquet(options)?;
        Ok(parsed)
    }

    fn check_parquet(&self, options: &Options) -> Result<()> {
        if self.format != Format::Parquet {
            return Ok(());
        }
        for name in ["on_error", "dead_letter", "compression", "max_record_bytes"] {
            if let Some(entry) = options.get(name) {
                let harmless = name != "dead_letter" && matches!(options.text(name), Some("fail" | "auto" | "none"));
                if !harmless {
                    return Err(Error::invalid_at(
                        entry.span,
                        format!("option {name} has no meaning for format parquet"),
                    ));
                }
            }
        }
        Ok(())
    }

    /// How a file of that name is compressed.
    pub fn compression_of(&self, name: &str) -> Compression {
        self.compression.unwrap_or_else(|| Compression::of_name(name))
    }
}

/// What is said of the store that `path` names.
fn store(options: &Options, path: &str) -> Result<Settings> {
    let names = ["endpoint", "region", "anonymous"];
    match (Location::parse(path, "files")?, names.iter().find_map(|name| options.get(name))) {
        (Location::Local(_), Some(entry)) => Err(Error::invalid_at(
            entry.span,
            format!("option {} is for object stores, and {path} is a local path", entry.name),
        )),
        _ => Ok(Settings {
            endpoint: options.text("endpoint").map(str::to_string),
            region: options.text("region").map(str::to_string),
            anonymous: options.bool("anonymous")?.unwrap_or(false),
        }),
    }
}

/// What `on_error` says. A stream with a `dead_letter` passes over bad records unless it says otherwise.
///
/// # Errors
/// InvalidInput: a `dead_letter` for what ends the query.
pub fn on_error(options: &Options) -> Result<OnError> {
    let dead_letter = options.get("dead_letter");
    Ok(match (options.text("on_error").map(str::to_ascii_lowercase).as_deref(), dead_letter) {
        (Some("skip"), _) | (None, Some(_)) => OnError::Skip,
        (Some("null"), _) => OnError::Null,
        (_, None) => OnError::Fail,
        (_, Some(entry)) => {
            let message = "option dead_letter has no meaning with on_error = 'fail': a bad record ends the query";
            return Err(Error::invalid_at(entry.span, message).help("leave on_error out, or use on_error = 'skip'"));
        }
    })
}

/// What `delimiter` says.
///
/// # Errors
/// InvalidInput: a character that CSV needs for itself.
pub fn delimiter(options: &Options) -> Result<Option<u8>> {
    let delimiter = options.char("delimiter")?;
    match (delimiter, options.get("delimiter")) {
        (Some(b'"' | b'\n' | b'\r'), Some(entry)) => {
            Err(Error::invalid_at(entry.span, "option delimiter can't be a quote or a line end"))
        }
        (delimiter, _) => Ok(delimiter),
    }
}

/// What is wrong with a record that is longer than `max_record_bytes`.
pub fn too_long(options: &FileOptions) -> String {
    format!("is longer than max_record_bytes ({})", options.max_record_bytes)
}

/// Refuses options of one format with another.
///
/// # Errors
/// InvalidInput at the option's place.
pub fn only_for(options: &Options, format: Format, wanted: Format, names: &[&str]) -> Result<()> {
    match names.iter().find_map(|name| options.get(name)) {
        Some(entry) if format != wanted => Err(Error::invalid_at(
            entry.span,
            format!("option {} is for format {}, not {}", entry.name, wanted.name(), format.name()),
        )),
        _ => Ok(()),
    }
}

fn rate(options: &Options) -> Result<Rate> {
    match (options.count("max_files_per_trigger")?, options.bytes("max_bytes_per_trigger")?) {
        (None, None) => Ok(Rate::Unset),
        (Some(files), None) => Ok(Rate::Files(files)),
        (None, Some(bytes)) => Ok(Rate::Bytes(bytes)),
        (Some(_), Some(_)) => {
            let error = Error::invalid("max_files_per_trigger and max_bytes_per_trigger exclude each other");
            Err(error.at(options.get("max_bytes_per_trigger").map(|entry| entry.span)))
        }
    }
}

/// What `max_record_bytes` says. Below 4 MiB it would cut into the blocks that files are read in.
///
/// # Errors
/// InvalidInput at the option's place.
pub fn max_record_bytes(options: &Options) -> Result<usize> {
    let (Some(bytes), Some(entry)) = (options.bytes("max_record_bytes")?, options.get("max_record_bytes")) else {
        return Ok(64 << 20);
    };
    match usize::try_from(bytes) {
        Ok(bytes) if (4 << 20..=1 << 30).contains(&bytes) => Ok(bytes),
        _ => Err(Error::invalid_at(entry.span, "option max_record_bytes is between 4 MiB and 1 GiB")),
    }
}
