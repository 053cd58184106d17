//! Where a query's results go: `INTO CONSOLE | BLACKHOLE | TABLE t | sink`.

use std::sync::Arc;

use arrow::datatypes::Schema;
use datafusion::logical_expr::LogicalPlan;

use crate::catalog::{Kind, SinkConnector, open_blackhole, open_console};
use crate::error::{Result, closest};
use crate::execution::TargetTraits;
use crate::parser::{Name, OutputMode, Target};
use crate::sink::table::{self, ResultTable};
use crate::sink::{Sink, SinkContext};

use super::Session;

/// Makes the sink once the engine knows its schema and ids.
pub(super) type OpenSink = Box<dyn FnOnce(SinkContext) -> Result<Box<dyn Sink>> + Send>;

/// A checked target.
pub(super) struct Destination {
    pub traits: TargetTraits,
    pub open: OpenSink,
    /// `INTO TABLE t`: its rows are kept with the query's state.
    pub table: Option<Arc<ResultTable>>,
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
    pub(super) fn destination(&self, target: Option<&Target>, plan: &LogicalPlan) -> Result<Destination> {
        match target {
            None | Some(Target::Console) => Ok(self.console()),
            Some(Target::Blackhole) => {
                let open: OpenSink = Box::new(open_blackhole);
                Ok(Destination {
                    traits: traits("BLACKHOLE".into(), SinkConnector::Blackhole),
                    open,
                    table: None,
                    words: "BLACKHOLE".into(),
                    uses: Uses::Nothing,
                    survives: false,
                })
            }
            Some(Target::Sink(name)) => self.sink_destination(name),
            Some(Target::Table(name)) => self.table_destination(name, plan),
        }
    }

    /// `INTO CONSOLE`
    pub(super) fn console(&self) -> Destination {
        let shown = self.shown.clone();
        Destination {
            traits: traits("CONSOLE".into(), SinkConnector::Console),
            open: Box::new(move |context| open_console(context, &shown)),
            table: None,
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
                _ => match closest(&name.value, ["CONSOLE", "BLACKHOLE"]) {
                    Some(word) if error.help_text().is_none() => error.help(format!("did you mean {word}?")),
                    _ => error,
                },
            });
        };
        let (connector, shown) = (sink.connector, self.shown.clone());
        Ok(Destination {
            traits: traits(format!("sink {} ({})", name.value, connector.name()), connector),
            open: Box::new(move |context| sink.open(context, &shown)),
            table: None,
            words: name.value.clone(),
            uses: Uses::Sink(name.value.clone()),
            survives: connector.survives(),
        })
    }

    /// A result table takes the place of one of the same name whose query has ended, never of another table.
    fn table_destination(&self, name: &Name, plan: &LogicalPlan) -> Result<Destination> {
        self.claim(name, Kind::Table, self.catalog.is_result(&name.value), false)?;
        let fields: Vec<_> = plan.schema().fields().iter().map(|f| f.as_ref().clone().with_nullable(true)).collect();
        let table = ResultTable::new(&name.value, Arc::new(Schema::new(fields))).map_err(|e| e.at(Some(name.span)))?;
        let sink = table.clone();
        Ok(Destination {
            traits: TargetTraits {
                name: format!("TABLE {}", name.value),
                deletes: true,
                signed: true,
                ordered: false,
                modes: ALL_MODES,
            },
            open: Box::new(move |context| Ok(Box::new(table::open(sink, &context)?))),
            table: Some(table),
            words: format!("TABLE {}", name.value),
            uses: Uses::Table(name.value.clone()),
            survives: false,
        })
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
