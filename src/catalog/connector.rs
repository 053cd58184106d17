//! Connectors by name: which there are, their options, and how each is opened. One arm a connector.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;

use super::{SinkDef, StreamDef};
use crate::checkpoint::{SourceLog, Store};
use crate::clock::Clock;
use crate::error::{Code, Error, Result, closest};
use crate::options::{OptionEntry, OptionSpec, OptionValue, Options};
use crate::parser::OutputMode;
use crate::sink;
use crate::sink::{SharedOutput, Sink, SinkContext};
use crate::source::memory::{self, MemoryStream};
use crate::source::{Source, file, nexmark, rate, rate_micro_batch, stdin};

/// Where a stream's rows come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceConnector {
    Memory,
    File,
    Stdin,
    Rate,
    RateMicroBatch,
    Nexmark,
}

/// Where a sink's rows go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SinkConnector {
    File,
    Stdout,
    Console,
    Blackhole,
}

/// Connectors of the language that no build has yet.
const SOURCES_NOT_YET: &[&str] = &["tail", "socket", "datagen", "kafka", "postgres", "mysql", "sqlite"];
const SINKS_NOT_YET: &[&str] = &["kafka", "postgres", "mysql", "sqlite", "delta", "webhook", "exec"];

/// The names of all connectors, of sources and sinks.
pub fn connector_names() -> Vec<&'static str> {
    let sources = SourceConnector::ALL.iter().map(|c| c.name());
    sources.chain(SinkConnector::ALL.iter().map(|c| c.name())).collect()
}

/// The names of connectors of the language that this build has not.
pub fn connector_names_not_yet() -> impl Iterator<Item = &'static str> {
    SOURCES_NOT_YET.iter().chain(SINKS_NOT_YET).copied()
}

impl SourceConnector {
    /// Every one, by name.
    pub const ALL: &[SourceConnector] = &[
        SourceConnector::File,
        SourceConnector::Memory,
        SourceConnector::Nexmark,
        SourceConnector::Rate,
        SourceConnector::RateMicroBatch,
        SourceConnector::Stdin,
    ];

    /// As written in `connector = '…'`.
    pub fn name(self) -> &'static str {
        match self {
            SourceConnector::Memory => "memory",
            SourceConnector::File => "file",
            SourceConnector::Stdin => "stdin",
            SourceConnector::Rate => "rate",
            SourceConnector::RateMicroBatch => "rate-micro-batch",
            SourceConnector::Nexmark => "nexmark",
        }
    }

    /// Takes `connector` out of a WITH list and checks the rest against that connector's options. No list at all is a
    /// memory stream.
    ///
    /// # Errors
    /// No such connector (with the closest), one that is a sink or not built yet, a wrong option.
    pub fn choose(options: &mut Options) -> Result<Self> {
        let Some(entry) = take_connector(options)? else { return memory_without_options(options) };
        let name = text(&entry);
        let known = Self::ALL.iter().find(|c| c.name() == name);
        let Some(connector) = known.copied() else {
            let is_sink = SinkConnector::ALL.iter().any(|c| c.name() == name) || SINKS_NOT_YET.contains(&name.as_str());
            return Err(unknown(
                &entry,
                Self::ALL.iter().map(|c| c.name()),
                SOURCES_NOT_YET,
                is_sink.then_some("sink"),
            ));
        };
        refuse_avro(options)?;
        options.check(&format!("connector '{}'", connector.name()), connector.options())?;
        if connector == SourceConnector::File {
            file::FileOptions::parse(options)?;
        }
        Ok(connector)
    }

    /// The connector's table of options.
    pub fn options(self) -> &'static [OptionSpec] {
        match self {
            SourceConnector::Memory => memory::OPTIONS,
            SourceConnector::File => file::OPTIONS,
            SourceConnector::Stdin => stdin::OPTIONS,
            SourceConnector::Rate => rate::OPTIONS,
            SourceConnector::RateMicroBatch => rate_micro_batch::OPTIONS,
            SourceConnector::Nexmark => nexmark::OPTIONS,
        }
    }

    /// The columns of a connector that makes its own rows; `None`: the data, or the column list, says.
    ///
    /// # Errors
    /// A wrong option.
    pub fn own_schema(self, options: &Options) -> Result<Option<SchemaRef>> {
        let clock = Clock::manual(0);
        Ok(match self {
            SourceConnector::Rate => Some(rate::open(options, clock)?.schema()),
            SourceConnector::RateMicroBatch => Some(rate_micro_batch::open(options)?.schema()),
            SourceConnector::Nexmark => Some(nexmark::open(options, clock)?.schema()),
            SourceConnector::Memory | SourceConnector::File | SourceConnector::Stdin => None,
        })
    }

    /// The columns of a stream without a column list, where they are not the connector's own: inferred from the data.
    ///
    /// # Errors
    /// A connector that can't know, or a place without data.
    pub fn infer(self, name: &str, options: &Options) -> Result<SchemaRef> {
        let no_data = |why: &str| {
            Error::invalid(format!("stream {name} needs a column list: {why}"))
                .help(format!("CREATE STREAM {name} (column type, …)"))
        };
        match self {
            SourceConnector::File => file::infer(name, options, Some(MANIFEST)),
            SourceConnector::Memory => Err(no_data("a memory stream begins without rows")),
            SourceConnector::Stdin => Err(no_data("standard input can be read only once")),
            SourceConnector::Rate | SourceConnector::RateMicroBatch | SourceConnector::Nexmark => {
                Err(Error::internal(format!("connector '{}' knows its columns", self.name())))
            }
        }
    }

    /// The keys that `METADATA FROM 'key'` may name.
    pub fn metadata_keys(self) -> &'static [&'static str] {
        match self {
            SourceConnector::File => &["path", "name", "mtime", "size", "line", "offset", "corrupt_record"],
            SourceConnector::Stdin => &["line", "corrupt_record"],
            _ => &[],
        }
    }
}

impl SinkConnector {
    /// Every one, by name.
    pub const ALL: &[SinkConnector] =
        &[SinkConnector::Blackhole, SinkConnector::Console, SinkConnector::File, SinkConnector::Stdout];

    /// As written in `connector = '…'`.
    pub fn name(self) -> &'static str {
        match self {
            SinkConnector::File => "file",
            SinkConnector::Stdout => "stdout",
            SinkConnector::Console => "console",
            SinkConnector::Blackhole => "blackhole",
        }
    }

    /// Takes `connector` out of a WITH list and checks the rest against that connector's options.
    ///
    /// # Errors
    /// No `connector`, or as [`SourceConnector::choose`].
    pub fn choose(options: &mut Options) -> Result<Self> {
        let names = Self::ALL.iter().map(|c| c.name());
        let Some(entry) = take_connector(options)? else {
            let names: Vec<_> = names.collect();
            return Err(no_connector(options, "a sink needs a connector", &names));
        };
        let name = text(&entry);
        if name == "memory" {
            return Err(Error::invalid_at(entry.span, "connector 'memory' is no sink")
                .help("START QUERY q INTO TABLE t AS … keeps a result in memory"));
        }
        let Some(connector) = Self::ALL.iter().find(|c| c.name() == name).copied() else {
            let is_source =
                SourceConnector::ALL.iter().any(|c| c.name() == name) || SOURCES_NOT_YET.contains(&name.as_str());
            return Err(unknown(&entry, names, SINKS_NOT_YET, is_source.then_some("source")));
        };
        refuse_avro(options)?;
        options.check(&format!("connector '{}'", connector.name()), connector.options())?;
        if connector == SinkConnector::File {
            sink::file::check(options)?;
        }
        Ok(connector)
    }

    /// The connector's table of options.
    pub fn options(self) -> &'static [OptionSpec] {
        match self {
            SinkConnector::File => sink::file::OPTIONS,
            SinkConnector::Stdout => sink::stdout::OPTIONS,
            SinkConnector::Console => sink::console::OPTIONS,
            SinkConnector::Blackhole => sink::blackhole::OPTIONS,
        }
    }

    /// Whether what it wrote is still there when the process has ended.
    pub fn survives(self) -> bool {
        matches!(self, SinkConnector::File)
    }

    /// Whether it can take rows back.
    pub fn takes_deletes(self) -> bool {
        matches!(self, SinkConnector::Console | SinkConnector::Stdout | SinkConnector::Blackhole)
    }

    /// Whether its rows are shown to a person or a test: they are then sent in key order.
    pub fn ordered(self) -> bool {
        matches!(self, SinkConnector::Console | SinkConnector::Stdout)
    }

    /// The output modes that it takes.
    pub fn modes(self) -> &'static [OutputMode] {
        match self {
            SinkConnector::File => &[OutputMode::Append],
            _ => &[OutputMode::Append, OutputMode::Update, OutputMode::Complete],
        }
    }
}

/// Puts a sink before the console of a query.
pub type AroundConsole = Arc<dyn Fn(&SinkContext, Box<dyn Sink>) -> Box<dyn Sink> + Send + Sync>;

/// What of a session the sinks that show something need.
#[derive(Clone)]
pub struct Shown {
    /// Where console and stdout sinks write.
    pub output: SharedOutput,
    /// The format of console sinks that are opened from now on.
    pub console_format: Arc<std::sync::Mutex<String>>,
    /// Console sinks print a batch without rows too.
    pub empty_batches: bool,
    /// What has no place in the console's format.
    pub notices: Arc<dyn Fn(&str) + Send + Sync>,
    /// Around console sinks that are opened from now on.
    pub around_console: Arc<std::sync::Mutex<Option<AroundConsole>>>,
}

/// Opens a stream's source for one reader.
pub(super) fn open_source(stream: &StreamDef, log: SourceLog) -> Result<Box<dyn Source>> {
    let clock = || stream.clock.read().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
    let options = &stream.options;
    Ok(match (stream.connector, &stream.memory) {
        (SourceConnector::Memory, Some(rows)) => Box::new(memory::open(rows)),
        (SourceConnector::Memory, None) => return Err(Error::internal("a memory stream without its rows")),
        (SourceConnector::Rate, _) => Box::new(rate::open(options, clock())?),
        (SourceConnector::RateMicroBatch, _) => Box::new(rate_micro_batch::open(options)?),
        (SourceConnector::Nexmark, _) => Box::new(nexmark::open(options, clock())?),
        (SourceConnector::File, _) => {
            let (fields, metadata) = stream.source_columns();
            Box::new(file::open(file::FileSourceArgs {
                name: &stream.name,
                fields: Some(fields),
                metadata,
                options,
                log,
                manifest: Some(MANIFEST),
            })?)
        }
        (SourceConnector::Stdin, _) => {
            let (fields, metadata) = stream.source_columns();
            Box::new(stdin::open(stdin::StdinSourceArgs {
                name: &stream.name,
                fields: Some(fields),
                metadata,
                options,
            })?)
        }
    })
}

/// What a file sink writes, as the file source reads it.
const MANIFEST: file::Manifest = file::Manifest { files: manifest_of, folder: sink::file::folder_value };

/// The files that a folder's manifest names.
fn manifest_of(folder: &dyn Store) -> Result<Vec<file::Promised>> {
    let files = sink::file::committed_files(folder)?;
    let promised = |entry: sink::file::FileEntry| {
        let sink::file::FileEntry { path, size, crc32c, .. } = entry;
        file::Promised { path, size, crc32c }
    };
    Ok(files.unwrap_or_default().into_iter().map(promised).collect())
}

/// The rows of a memory stream.
pub(super) fn memory_rows(connector: SourceConnector, name: &str, schema: &SchemaRef) -> Option<Arc<MemoryStream>> {
    (connector == SourceConnector::Memory).then(|| MemoryStream::new(name, schema.clone()))
}

/// Opens a sink of the catalog for one query.
pub(super) fn open_sink(sink: &SinkDef, context: SinkContext, shown: &Shown) -> Result<Box<dyn Sink>> {
    Ok(match sink.connector {
        SinkConnector::File => Box::new(sink::file::open(&sink.options, &context)?),
        SinkConnector::Stdout => Box::new(sink::stdout::open(&sink.options, &context, shown.output.clone())?),
        SinkConnector::Console => open_console(context, shown)?,
        SinkConnector::Blackhole => open_blackhole(context)?,
    })
}

/// `INTO CONSOLE`, and what WATCH shows.
///
/// # Errors
/// The console's format is not known.
pub fn open_console(context: SinkContext, shown: &Shown) -> Result<Box<dyn Sink>> {
    let style = sink::console::ConsoleStyle {
        format: shown.console_format.lock().unwrap_or_else(std::sync::PoisonError::into_inner).parse()?,
        empty_batches: shown.empty_batches,
        notices: shown.notices.clone(),
    };
    let console = Box::new(sink::console::open(&context, shown.output.clone(), style));
    let around = shown.around_console.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
    Ok(match around {
        Some(around) => around(&context, console),
        None => console,
    })
}

/// `INTO BLACKHOLE`
pub fn open_blackhole(context: SinkContext) -> Result<Box<dyn Sink>> {
    Ok(Box::new(sink::blackhole::open(&Options::default(), &context)?))
}

/// A stream whose WITH list, if it has one, names no connector.
fn memory_without_options(options: &Options) -> Result<SourceConnector> {
    match options.entries.first() {
        None => Ok(SourceConnector::Memory),
        Some(first) => {
            let names: Vec<_> = SourceConnector::ALL.iter().map(|c| c.name()).collect();
            Err(no_connector(options, "the WITH list names no connector", &names).at(Some(first.span)))
        }
    }
}

/// No option is called `connector`; one may be meant to be.
fn no_connector(options: &Options, message: &str, names: &[&str]) -> Error {
    let meant = options.entries.iter().find(|entry| closest(&entry.name, ["connector"]).is_some());
    match meant {
        Some(entry) => Error::invalid_at(entry.span, format!("unknown option {}", entry.name))
            .coded(Code::UnknownOption)
            .help("did you mean connector?"),
        None => Error::invalid(message).help(format!("WITH (connector = '…', …), one of {}", names.join(", "))),
    }
}

fn take_connector(options: &mut Options) -> Result<Option<OptionEntry>> {
    let taken = options.take("connector");
    match options.get("connector") {
        Some(again) => Err(Error::invalid_at(again.span, "option connector is given twice")),
        None => Ok(taken),
    }
}

fn text(entry: &OptionEntry) -> String {
    match &entry.value {
        OptionValue::Text(text) | OptionValue::Number(text) => text.to_ascii_lowercase(),
        OptionValue::Bool(value) => value.to_string(),
    }
}

fn unknown<'a>(
    entry: &OptionEntry,
    known: impl Iterator<Item = &'a str>,
    not_yet: &[&'a str],
    other_side: Option<&str>,
) -> Error {
    let name = text(entry);
    if not_yet.contains(&name.as_str()) {
        return Error::not_yet(format!("connector '{name}'")).at(Some(entry.span));
    }
    let known: Vec<&str> = known.collect();
    if let Some(side) = other_side {
        return Error::invalid_at(entry.span, format!("connector '{name}' is only a {side}"))
            .coded(Code::OptionValue)
            .help(format!("one of {}", known.join(", ")));
    }
    let error = Error::invalid_at(entry.span, format!("unknown connector '{name}'")).coded(Code::OptionValue);
    match closest(&name, known.iter().chain(not_yet).copied()) {
        Some(name) => error.help(format!("did you mean '{name}'?")),
        None => error.help(format!("one of {}", known.join(", "))),
    }
}

fn refuse_avro(options: &Options) -> Result<()> {
    match options.get("format") {
        Some(entry) if text(entry) == "avro" => Err(Error::not_yet("format 'avro'").at(Some(entry.span))),
        _ => Ok(()),
    }
}
