//! Statements → SQL: the canonical text, which parses to the same statement again.

use std::fmt::{self, Display, Formatter};

use super::canonical::canonical;
use super::cursor::RESERVED;
use super::escape::Escaped;
use super::show::WORDS as SHOW_WORDS;
use super::statement::*;
use crate::error::closest;

/// Text in single quotes.
pub(super) struct Quoted<'a>(pub &'a str);

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "'{}'", self.0.replace('\'', "''"))
    }
}

/// Names that some statement takes for a word of its own.
const SPECIAL: &[&str] = &["all", "blackhole", "console", "if", "table", "time", "watermark"];

/// Quoted when it has to be.
impl Display for Name {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let plain = self.value.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
            && self.value.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
            && !RESERVED.iter().any(|word| word.eq_ignore_ascii_case(&self.value))
            && !SPECIAL.contains(&self.value.as_str());
        if plain { f.write_str(&self.value) } else { write!(f, "\"{}\"", self.value.replace('"', "\"\"")) }
    }
}

/// A setting's name: its parts are words, or quoted.
struct Setting<'a>(&'a Name);

impl Display for Setting<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        // One prefix is dropped when it is read.
        if self.0.value.starts_with("levada.") {
            f.write_str("levada.")?;
        }
        for (n, part) in self.0.value.split('.').enumerate() {
            let dot = if n == 0 { "" } else { "." };
            // In quotes, so that `SHOW "streams"` asks for a setting.
            let known = n == 0 && closest(part, SHOW_WORDS).is_some();
            if known {
                write!(f, "{dot}\"{}\"", part.replace('"', "\"\""))?;
            } else {
                write!(f, "{dot}{}", Name { value: part.to_string(), span: Default::default() })?;
            }
        }
        Ok(())
    }
}

impl ObjectKind {
    /// The word as SQL has it.
    pub fn keyword(self) -> &'static str {
        match self {
            ObjectKind::Stream => "STREAM",
            ObjectKind::Sink => "SINK",
            ObjectKind::Table => "TABLE",
            ObjectKind::View => "VIEW",
            ObjectKind::Query => "QUERY",
        }
    }

    /// The word in a message.
    pub fn noun(self) -> &'static str {
        match self {
            ObjectKind::Stream => "stream",
            ObjectKind::Sink => "sink",
            ObjectKind::Table => "table",
            ObjectKind::View => "view",
            ObjectKind::Query => "query",
        }
    }
}

impl Display for ObjectKind {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.keyword())
    }
}

impl Display for ParsedStatement {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.statement {
            Statement::DataFusion => f.write_str(&canonical(&self.text)),
            statement => statement.fmt(f),
        }
    }
}

/// The statement without `;`. [`Statement::DataFusion`] carries no text: print its [`ParsedStatement`].
impl Display for Statement {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Statement::CreateStream(stream) => stream.fmt(f),
            Statement::CreateSink(sink) => sink.fmt(f),
            Statement::CreateView(view) => view.fmt(f),
            Statement::CloseStream(name) => write!(f, "CLOSE STREAM {name}"),
            Statement::Drop { kind, if_exists, name } => {
                write!(f, "DROP {kind} {}{name}", if *if_exists { "IF EXISTS " } else { "" })
            }
            Statement::Select(query) => query.fmt(f),
            Statement::StartQuery(start) => start.fmt(f),
            Statement::StopQuery { which, how, timeout } => {
                write!(f, "STOP {which}{how}{}", Timeout(timeout))
            }
            Statement::PauseQuery(name) => write!(f, "PAUSE QUERY {name}"),
            Statement::ResumeQuery(name) => write!(f, "RESUME QUERY {name}"),
            Statement::AwaitQuery { name, until, timeout } => {
                write!(f, "AWAIT QUERY {name}{until}{}", Timeout(timeout))
            }
            Statement::AlterTrigger { name, trigger } => write!(f, "ALTER QUERY {name} SET {trigger}"),
            Statement::Watch { what, until } => {
                write!(f, "WATCH {what}")?;
                until.map_or(Ok(()), |until| write!(f, " {until}"))
            }
            Statement::Show(show) => show.fmt(f),
            Statement::Describe(name) => write!(f, "DESCRIBE {name}"),
            Statement::ShowCreate { kind, name } => write!(f, "SHOW CREATE {kind} {name}"),
            Statement::Explain(explain) => explain.fmt(f),
            Statement::VerifyQuery(name) => write!(f, "VERIFY QUERY {name}"),
            Statement::Set { name, value } => write!(f, "SET {} = {value}", Setting(name)),
            Statement::Reset(name) => write!(f, "RESET {}", Setting(name)),
            Statement::AdvanceClock(ClockMove::By(interval)) => write!(f, "ADVANCE CLOCK BY {}", Literal(interval)),
            Statement::AdvanceClock(ClockMove::To(millis)) => {
                write!(f, "ADVANCE CLOCK TO TIMESTAMP '{}'", Timestamp(*millis))
            }
            Statement::StepQuery { name, step: Step::Batches(n) } => write!(f, "STEP QUERY {name} {n} BATCHES"),
            Statement::StepQuery { name, step: Step::Empty } => write!(f, "STEP QUERY {name} EMPTY"),
            Statement::CrashQuery(crash) => crash.fmt(f),
            Statement::Sql(statement) => Escaped(&**statement).fmt(f),
            Statement::DataFusion => f.write_str("/* read by DataFusion from its text */"),
        }
    }
}

/// `INTERVAL '10 seconds'`
pub(super) struct Literal<'a>(pub &'a Interval);

impl Display for Literal<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "INTERVAL '{}'", self.0)
    }
}

struct Timeout<'a>(&'a Option<Interval>);

impl Display for Timeout<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.as_ref().map_or(Ok(()), |timeout| write!(f, " TIMEOUT {}", Literal(timeout)))
    }
}

/// Milliseconds since 1970 as UTC.
struct Timestamp(i64);

impl Display for Timestamp {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match chrono::DateTime::from_timestamp_millis(self.0) {
            Some(time) => write!(f, "{}", time.naive_utc().format("%Y-%m-%d %H:%M:%S%.3f")),
            None => write!(f, "{} ms", self.0),
        }
    }
}

impl Display for Target {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Target::Console => f.write_str("CONSOLE"),
            Target::Blackhole => f.write_str("BLACKHOLE"),
            Target::Table(name) => write!(f, "TABLE {name}"),
            Target::Sink(name) => name.fmt(f),
        }
    }
}

impl Display for OutputMode {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            OutputMode::Append => "APPEND",
            OutputMode::Update => "UPDATE",
            OutputMode::Complete => "COMPLETE",
        })
    }
}

/// With the word TRIGGER. As soon as possible has no words of its own; it is what every 0 seconds means.
impl Display for Trigger {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Trigger::Asap => f.write_str("TRIGGER EVERY INTERVAL '0 seconds'"),
            Trigger::Every(interval) => write!(f, "TRIGGER EVERY {}", Literal(interval)),
            Trigger::AvailableNow => f.write_str("TRIGGER AVAILABLE NOW"),
            Trigger::Once => f.write_str("TRIGGER ONCE"),
            Trigger::Continuous(interval) => write!(f, "TRIGGER CONTINUOUS {}", Literal(interval)),
            Trigger::Manual => f.write_str("TRIGGER MANUAL"),
        }
    }
}

impl Display for Which {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Which::One(name) => write!(f, "QUERY {name}"),
            Which::All => f.write_str("ALL"),
        }
    }
}

/// With a space in front.
impl Display for StopHow {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            StopHow::Graceful => Ok(()),
            StopHow::AfterBatches(n) => write!(f, " AFTER {n} BATCHES"),
            StopHow::WhenIdle => f.write_str(" WHEN IDLE"),
            StopHow::Drain => f.write_str(" DRAIN"),
            StopHow::Now => f.write_str(" NOW"),
        }
    }
}

/// With a space in front.
impl Display for AwaitUntil {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            AwaitUntil::Batches(n) => write!(f, " {n} BATCHES"),
            AwaitUntil::Batch(n) => write!(f, " BATCH {n}"),
            AwaitUntil::Idle => f.write_str(" IDLE"),
            AwaitUntil::Termination => f.write_str(" TERMINATION"),
            AwaitUntil::Default => Ok(()),
        }
    }
}

impl Display for WatchWhat {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            WatchWhat::Select(query) => query.fmt(f),
            WatchWhat::Query(name) => name.fmt(f),
        }
    }
}

impl Display for WatchUntil {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            WatchUntil::Rows(n) => write!(f, "LIMIT {n}"),
            WatchUntil::Batches(n) => write!(f, "FOR {n} BATCHES"),
        }
    }
}

impl Display for Show {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Show::Streams => f.write_str("SHOW STREAMS"),
            Show::Tables => f.write_str("SHOW TABLES"),
            Show::Views => f.write_str("SHOW VIEWS"),
            Show::Sinks => f.write_str("SHOW SINKS"),
            Show::Queries => f.write_str("SHOW QUERIES"),
            Show::Functions => f.write_str("SHOW FUNCTIONS"),
            Show::Settings => f.write_str("SHOW ALL"),
            Show::Setting(name) => write!(f, "SHOW {}", Setting(name)),
            Show::Progress { query, last, json } => {
                f.write_str("SHOW PROGRESS")?;
                query.as_ref().map_or(Ok(()), |name| write!(f, " FOR {name}"))?;
                last.map_or(Ok(()), |last| write!(f, " LAST {last}"))?;
                f.write_str(if *json { " FORMAT JSON" } else { "" })
            }
            Show::ProgressLive => f.write_str("SHOW PROGRESS LIVE"),
            Show::Status(None) => f.write_str("SHOW STATUS"),
            Show::Status(Some(name)) => write!(f, "SHOW STATUS FOR {name}"),
            Show::State(name) => write!(f, "SHOW STATE FOR {name}"),
            Show::Failpoints => f.write_str("SHOW FAILPOINTS"),
        }
    }
}

impl Display for Explain {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Explain::Select { analyze, verbose, query } => {
                let analyze = if *analyze { "ANALYZE " } else { "" };
                let verbose = if *verbose { "VERBOSE " } else { "" };
                write!(f, "EXPLAIN {analyze}{verbose}{query}")
            }
            Explain::Query(name) => write!(f, "EXPLAIN QUERY {name}"),
            Explain::Why(name) => write!(f, "EXPLAIN WHY {name}"),
            Explain::State(query) => write!(f, "EXPLAIN STATE {query}"),
            Explain::StateOf(name) => write!(f, "EXPLAIN STATE {name}"),
        }
    }
}

impl Display for SetValue {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            SetValue::Text(text) => write!(f, "{}", Quoted(text)),
            SetValue::Number(number) => f.write_str(number),
            SetValue::Bool(true) => f.write_str("TRUE"),
            SetValue::Bool(false) => f.write_str("FALSE"),
            SetValue::Default => f.write_str("DEFAULT"),
        }
    }
}

impl Display for Crash {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "CRASH QUERY {} AT {} HIT {} AS {}", self.query, Quoted(&self.point), self.hit, self.action)
    }
}

impl Display for CrashAction {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            CrashAction::Kill => f.write_str("kill"),
            CrashAction::Error => f.write_str("error"),
            CrashAction::Torn(bytes) => write!(f, "torn {bytes}"),
            CrashAction::Enospc => f.write_str("enospc"),
            CrashAction::LostFsync => f.write_str("lost_fsync"),
        }
    }
}
