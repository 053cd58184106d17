//! Connectors by name: which there are, their options, and how each is opened. One arm a connector.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;

use super::{SinkDef, StreamDef};
use crate::checkpoint::SourceLog;
use crate::clock::Clock;
use crate::error::{Error, Result, closest};
use crate::options::{OptionEntry, OptionSpec, OptionValue, Options};
use crate::parser::OutputMode;
use crate::sink::{SharedOutput, Sink, SinkContext};
use crate::source::memory::{self, MemoryStream};
use crate::source::{Source, nexmark, rate, rate_micro_batch};

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

impl SourceConnector {
    const ALL: &[SourceConnector] = &[
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
        let Some(entry) = take_connector(options)? else { return Ok(SourceConnector::Memory) };
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
        options.check(&format!("connector '{}'", connector.name()), connector.options()?)?;
        Ok(connector)
    }

    /// The connector's table of options.
    pub fn options(self) -> Result<&'static [OptionSpec]> {
        match self {
            SourceConnector::Memory => Ok(memory::OPTIONS),
            SourceConnector::Rate => Ok(rate::OPTIONS),
            SourceConnector::RateMicroBatch => Ok(rate_micro_batch::OPTIONS),
            SourceConnector::Nexmark => Ok(nexmark::OPTIONS),
            SourceConnector::File => Err(Error::not_yet("connector 'file'")),
            SourceConnector::Stdin => Err(Error::not_yet("connector 'stdin'")),
        }
    }

    /// The columns that a generator gives, whatever is declared; `None` for a connector that reads what is declared.
    ///
    /// # Errors
    /// A wrong or missing option.
    pub fn generates(self, options: &Options, clock: Clock) -> Result<Option<SchemaRef>> {
        Ok(match self {
            SourceConnector::Rate => Some(rate::open(options, clock)?.schema()),
            SourceConnector::RateMicroBatch => Some(rate_micro_batch::open(options)?.schema()),
            SourceConnector::Nexmark => Some(nexmark::open(options, clock)?.schema()),
            SourceConnector::Memory | SourceConnector::File | SourceConnector::Stdin => None,
        })
    }

    /// The columns of a stream without a column list, from the data there is.
    ///
    /// # Errors
    /// A connector that can't know, or a place without data.
    pub fn infer(self, name: &str, _options: &Options) -> Result<SchemaRef> {
        let no_data = |what: &str| {
            Error::invalid(format!("stream {name} needs a column list: {what}"))
                .help(format!("CREATE STREAM {name} (column type, …)"))
        };
        match self {
            SourceConnector::Memory => Err(no_data("a memory stream begins without rows")),
            SourceConnector::Stdin => Err(no_data("standard input can be read only once")),
            SourceConnector::File => Err(Error::not_yet("connector 'file'")),
            SourceConnector::Rate | SourceConnector::RateMicroBatch | SourceConnector::Nexmark => {
                Err(Error::internal(format!("connector '{}' knows its columns", self.name())))
            }
        }
    }

    /// The keys that `METADATA FROM 'key'` may name.
    pub fn metadata_keys(self) -> &'static [&'static str] {
        &[]
    }
}

impl SinkConnector {
    const ALL: &[SinkConnector] =
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
            return Err(Error::invalid("a sink needs a connector")
                .help(format!("WITH (connector = '…', …), one of {}", names.join(", "))));
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
        options.check(&format!("connector '{}'", connector.name()), connector.options()?)?;
        Ok(connector)
    }

    /// The connector's table of options.
    pub fn options(self) -> Result<&'static [OptionSpec]> {
        Err(Error::not_yet(format!("sink connector '{}'", self.name())))
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

/// What of a session the sinks that show something need.
#[derive(Clone)]
pub struct Shown {
    /// Where console and stdout sinks write.
    pub output: SharedOutput,
    /// The format of console sinks.
    pub console_format: String,
    /// Console sinks print a batch without rows too.
    pub empty_batches: bool,
}

/// Opens a stream's source for one reader.
pub(super) fn open_source(stream: &StreamDef, _log: SourceLog) -> Result<Box<dyn Source>> {
    let options = &stream.options;
    match stream.connector {
        SourceConnector::Memory => match &stream.memory {
            Some(rows) => Ok(Box::new(memory::open(rows))),
            None => Err(Error::internal("a memory stream without its rows")),
        },
        SourceConnector::Rate => Ok(Box::new(rate::open(options, stream.clock.get())?)),
        SourceConnector::RateMicroBatch => Ok(Box::new(rate_micro_batch::open(options)?)),
        SourceConnector::Nexmark => Ok(Box::new(nexmark::open(options, stream.clock.get())?)),
        SourceConnector::File => Err(Error::not_yet("connector 'file'")),
        SourceConnector::Stdin => Err(Error::not_yet("connector 'stdin'")),
    }
}

/// The rows of a memory stream.
pub(super) fn memory_rows(connector: SourceConnector, name: &str, schema: &SchemaRef) -> Option<Arc<MemoryStream>> {
    (connector == SourceConnector::Memory).then(|| MemoryStream::new(name, schema.clone()))
}

/// Opens a sink of the catalog for one query.
pub(super) fn open_sink(sink: &SinkDef, _context: SinkContext, _shown: &Shown) -> Result<Box<dyn Sink>> {
    Err(Error::not_yet(format!("sink connector '{}'", sink.connector.name())))
}

/// `INTO CONSOLE`, and what WATCH shows.
///
/// # Errors
/// The console's format is not known.
pub fn open_console(_context: SinkContext, _shown: &Shown) -> Result<Box<dyn Sink>> {
    Err(Error::not_yet("INTO CONSOLE"))
}

/// `INTO BLACKHOLE`
pub fn open_blackhole(_context: SinkContext) -> Result<Box<dyn Sink>> {
    Err(Error::not_yet("INTO BLACKHOLE"))
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
            .help(format!("one of {}", known.join(", ")));
    }
    let error = Error::invalid_at(entry.span, format!("unknown connector '{name}'"));
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
