//! Where a query's results go: `INTO CONSOLE | BLACKHOLE | TABLE t | sink`.

use crate::catalog::{Kind, SinkConnector, open_blackhole, open_console};
use crate::error::{Error, Result};
use crate::execution::TargetTraits;
use crate::parser::{Name, OutputMode, Target};
use crate::sink::{Sink, SinkContext};

use super::Session;

/// Makes the sink once the engine knows its schema and ids.
pub(super) type OpenSink = Box<dyn FnOnce(SinkContext) -> Result<Box<dyn Sink>> + Send>;

/// A checked target.
pub(super) struct Destination {
    pub traits: TargetTraits,
    pub open: OpenSink,
    /// As SHOW QUERIES shows it: `CONSOLE`, `TABLE t`, `out`.
    pub words: String,
    pub uses: Uses,
    /// What it holds outlives the process: a temporary checkpoint beside it deserves a word.
    pub survives: bool,
}

/// What of the catalog a target is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Uses {
    Nothing,
    Table(String),
    Sink(String),
}

const ALL_MODES: &[OutputMode] = &[OutputMode::Append, OutputMode::Update, OutputMode::Complete];

impl Session {
    /// Checks a target and says how to open it.
    ///
    /// # Errors
    /// No such sink, a table's name that is taken.
    pub(super) fn destination(&self, query: &Name, target: Option<&Target>) -> Result<Destination> {
        match target {
            None | Some(Target::Console) => Ok(self.console()),
            Some(Target::Blackhole) => {
                let open: OpenSink = Box::new(open_blackhole);
                Ok(Destination {
                    traits: traits("BLACKHOLE".into(), SinkConnector::Blackhole),
                    open,
                    words: "BLACKHOLE".into(),
                    uses: Uses::Nothing,
                    survives: false,
                })
            }
            Some(Target::Sink(name)) => self.sink_destination(name),
            Some(Target::Table(name)) => self.table_destination(query, name),
        }
    }

    /// `INTO CONSOLE`
    pub(super) fn console(&self) -> Destination {
        let shown = self.shown.clone();
        Destination {
            traits: traits("CONSOLE".into(), SinkConnector::Console),
            open: Box::new(move |context| open_console(context, &shown)),
            words: "CONSOLE".into(),
            uses: Uses::Nothing,
            survives: false,
        }
    }

    fn sink_destination(&self, name: &Name) -> Result<Destination> {
        let Some(sink) = self.catalog.sink(&name.value) else {
            let error = self.catalog.unknown("sink", &name.value).at(Some(name.span));
            return Err(match self.catalog.kind(&name.value) {
                Some(Kind::Table) => error.help(format!("INTO TABLE {} writes a table", name.value)),
                _ => error,
            });
        };
        let (connector, shown) = (sink.connector, self.shown.clone());
        Ok(Destination {
            traits: traits(format!("sink {} ({})", name.value, connector.name()), connector),
            open: Box::new(move |context| sink.open(context, &shown)),
            words: name.value.clone(),
            uses: Uses::Sink(name.value.clone()),
            survives: connector.survives(),
        })
    }

    fn table_destination(&self, _query: &Name, name: &Name) -> Result<Destination> {
        Err(Error::not_yet("INTO TABLE").at(Some(name.span)))
    }
}

fn traits(name: String, connector: SinkConnector) -> TargetTraits {
    TargetTraits {
        name,
        deletes: connector.takes_deletes(),
        signed: false,
        ordered: connector.ordered(),
        modes: if connector == SinkConnector::File { connector.modes() } else { ALL_MODES },
    }
}
