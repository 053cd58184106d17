//! What was said: every statement of the language, as data.
//!
//! Our own clauses are cut out of the token stream before sqlparser sees the rest, so a query here is
//! sqlparser's [`ast::Query`](sqlparser::ast::Query) and, beside it, what was cut out ([`QueryText`]).
//! `Display` of a statement is its canonical SQL: it parses to the same statement again (`SHOW CREATE`).

use sqlparser::ast;

use crate::error::{Location, Span};
use crate::options::Options;

/// One statement of a script and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct ParsedStatement {
    pub statement: Statement,
    /// As written, without the closing `;`.
    pub text: String,
    /// From its first character to behind its last, in the input.
    pub span: Span,
}

/// Every statement of the language.
#[derive(Debug, Clone, PartialEq)]
pub enum Statement {
    CreateStream(Box<CreateStream>),
    CreateSink(CreateSink),
    CreateView(Box<CreateView>),
    /// `CLOSE STREAM name`: its input ends.
    CloseStream(Name),
    Drop {
        kind: ObjectKind,
        if_exists: bool,
        name: Name,
    },
    /// `SELECT …` and everything else that returns rows by itself: VALUES, WITH, set operations.
    Select(Box<QueryText>),
    StartQuery(Box<StartQuery>),
    StopQuery {
        which: Which,
        how: StopHow,
        timeout: Option<Interval>,
    },
    PauseQuery(Name),
    ResumeQuery(Name),
    AwaitQuery {
        name: Name,
        until: AwaitUntil,
        timeout: Option<Interval>,
    },
    /// `ALTER QUERY q SET TRIGGER …`
    AlterTrigger {
        name: Name,
        trigger: Trigger,
    },
    Watch {
        what: WatchWhat,
        until: Option<WatchUntil>,
    },
    Show(Show),
    Describe(Name),
    ShowCreate {
        kind: ObjectKind,
        name: Name,
    },
    Explain(Explain),
    /// `VERIFY QUERY q`
    VerifyQuery(Name),
    /// `SET name = value`; the `levada.` prefix is dropped.
    Set {
        name: Name,
        value: SetValue,
    },
    Reset(Name),
    AdvanceClock(ClockMove),
    /// `STEP QUERY q [n BATCHES | EMPTY]`
    StepQuery {
        name: Name,
        step: Step,
    },
    CrashQuery(Crash),
    /// INSERT, CREATE TABLE, CREATE EXTERNAL TABLE, COPY and whatever else is DataFusion's.
    Sql(Box<ast::Statement>),
    /// `CREATE EXTERNAL TABLE` and `COPY`, which DataFusion's own parser reads from the text.
    DataFusion,
}

/// An identifier, folded to lower case unless it was quoted, and its place.
#[derive(Debug, Clone)]
pub struct Name {
    pub value: String,
    pub span: Span,
}

/// Names are the same wherever they stand.
impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

/// What DROP and SHOW CREATE speak of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectKind {
    Stream,
    Sink,
    Table,
    View,
    Query,
}

/// A length of time as written. Months are kept apart: they have no fixed length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval {
    pub months: i32,
    pub micros: i64,
}

/// `CREATE [OR REPLACE] STREAM [IF NOT EXISTS] name [(…)] [WITH (…)]`
#[derive(Debug, Clone, PartialEq)]
pub struct CreateStream {
    pub or_replace: bool,
    pub if_not_exists: bool,
    pub name: Name,
    /// `None`: the schema is the format's, or inferred.
    pub columns: Option<Vec<ColumnDef>>,
    pub watermark: Option<WatermarkDef>,
    /// `None`: a memory stream.
    pub options: Option<Options>,
}

/// One column of a stream.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnDef {
    pub name: Name,
    /// `None` only for computed columns.
    pub data_type: Option<ast::DataType>,
    pub not_null: bool,
    pub kind: ColumnKind,
}

/// Where a column's values come from.
#[derive(Debug, Clone, PartialEq)]
pub enum ColumnKind {
    /// A field of the record.
    Field,
    /// `METADATA FROM 'key'`
    Metadata(String),
    /// `AS (expression)`
    Computed(Box<ast::Expr>),
}

/// `WATERMARK FOR column AS column - interval [IDLE AFTER i] [MAX FUTURE SKEW i]`
#[derive(Debug, Clone, PartialEq)]
pub struct WatermarkDef {
    pub column: Name,
    pub delay: Interval,
    pub idle_after: Option<Interval>,
    pub max_future_skew: Option<Interval>,
    pub span: Span,
}

/// `CREATE [OR REPLACE] SINK [IF NOT EXISTS] name WITH (…)`
#[derive(Debug, Clone, PartialEq)]
pub struct CreateSink {
    pub or_replace: bool,
    pub if_not_exists: bool,
    pub name: Name,
    pub options: Options,
}

/// `CREATE [OR REPLACE] VIEW [IF NOT EXISTS] name [(columns)] AS query`
#[derive(Debug, Clone, PartialEq)]
pub struct CreateView {
    pub or_replace: bool,
    pub if_not_exists: bool,
    pub name: Name,
    pub columns: Vec<Name>,
    pub query: QueryText,
}

/// A query and the clauses of ours that were cut out of it.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryText {
    pub ast: ast::Query,
    /// As written, our clauses included.
    pub text: String,
    /// Every `WITH WATERMARK …` and `WATERMARK c DELAY OF …`.
    pub watermarks: Vec<WatermarkClause>,
    /// The places (of the SELECT keyword) of blocks with `DISTINCT ON (…) WITHIN WATERMARK`.
    pub within_watermark: Vec<Location>,
    pub span: Span,
}

/// A watermark declared in a query.
#[derive(Debug, Clone, PartialEq)]
pub struct WatermarkClause {
    /// The place of the SELECT keyword of the block that it belongs to.
    pub select: Location,
    /// Spark's spelling belongs to one table of FROM: the place of that table's name (or of the parenthesis
    /// that opens a derived table). `None` for `WITH WATERMARK`: the column finds its stream.
    pub table: Option<Location>,
    /// `ts` or `a.ts`.
    pub column: Vec<Name>,
    pub delay: Interval,
    pub span: Span,
}

/// `START QUERY …`
#[derive(Debug, Clone, PartialEq)]
pub struct StartQuery {
    pub if_not_exists: bool,
    pub name: Name,
    pub target: Option<Target>,
    pub query: QueryText,
    pub mode: Option<(OutputMode, Span)>,
    pub trigger: Option<Trigger>,
    pub stop_after: Option<u64>,
    pub checkpoint: Option<String>,
    /// Where the text has it.
    pub checkpoint_place: Option<Span>,
    pub options: Options,
}

/// Where a query's results go.
#[derive(Debug, Clone, PartialEq)]
pub enum Target {
    Console,
    Blackhole,
    Table(Name),
    Sink(Name),
}

/// What of the result table a batch sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OutputMode {
    Append,
    Update,
    Complete,
}

/// When a batch runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    /// As soon as the last batch has ended and there is data.
    Asap,
    Every(Interval),
    AvailableNow,
    Once,
    Continuous(Interval),
    Manual,
}

/// `STOP QUERY q` or `STOP ALL`
#[derive(Debug, Clone, PartialEq)]
pub enum Which {
    One(Name),
    All,
}

/// How a query is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopHow {
    /// The batch in flight is finished and committed.
    Graceful,
    AfterBatches(u64),
    WhenIdle,
    Drain,
    /// The batch in flight is abandoned; the next start replays it.
    Now,
}

/// What AWAIT waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AwaitUntil {
    /// n more batches from now.
    Batches(u64),
    /// That batch id n is committed.
    Batch(u64),
    /// All that the sources hold now is committed. Also the meaning of a bare AWAIT … of a query that ends
    /// by itself is TERMINATION, of another IDLE.
    Idle,
    Termination,
    /// No word: IDLE for a query that runs on, TERMINATION for one that ends by itself.
    Default,
}

/// What WATCH shows.
#[derive(Debug, Clone, PartialEq)]
pub enum WatchWhat {
    Select(Box<QueryText>),
    Query(Name),
}

/// When WATCH ends by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchUntil {
    /// `LIMIT n` rows.
    Rows(u64),
    /// `FOR n BATCHES`
    Batches(u64),
}

/// `SHOW …`
#[derive(Debug, Clone, PartialEq)]
pub enum Show {
    Streams,
    Tables,
    Views,
    Sinks,
    Queries,
    Functions,
    /// `SHOW ALL`: settings.
    Settings,
    Setting(Name),
    Progress {
        query: Option<Name>,
        last: Option<u64>,
        json: bool,
    },
    ProgressLive,
    Status(Option<Name>),
    State(Name),
    Failpoints,
}

/// `EXPLAIN …`
#[derive(Debug, Clone, PartialEq)]
pub enum Explain {
    Select {
        analyze: bool,
        verbose: bool,
        query: Box<QueryText>,
    },
    Query(Name),
    Why(Name),
    /// `EXPLAIN STATE select`
    State(Box<QueryText>),
    /// `EXPLAIN STATE q`
    StateOf(Name),
}

/// A setting's value.
#[derive(Debug, Clone, PartialEq)]
pub enum SetValue {
    Text(String),
    Number(String),
    Bool(bool),
    Default,
}

/// `ADVANCE CLOCK …`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockMove {
    By(Interval),
    /// Milliseconds since 1970.
    To(i64),
}

/// How far STEP goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Batches(u64),
    /// One batch without input.
    Empty,
}

/// `CRASH QUERY q AT 'point' [HIT n] [AS kill | error | torn n | enospc | lost_fsync]`
#[derive(Debug, Clone, PartialEq)]
pub struct Crash {
    pub query: Name,
    pub point: String,
    pub hit: u64,
    pub action: CrashAction,
}

/// What an armed failpoint does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrashAction {
    Kill,
    Error,
    Torn(u64),
    Enospc,
    LostFsync,
}
