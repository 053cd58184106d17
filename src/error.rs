//! One error enum for the whole program, cut by who must act.
//!
//! Every message says what is wrong and where: the place in the SQL ([`Span`]), or the source, file, line or
//! offset of the data; and what to do about it (`help`). Nothing here prints: the shell renders.

mod codes;
mod diagnose;
mod sql_words;
mod wording;

pub use codes::{Code, Explained, explained};
pub use diagnose::first_span;
pub use sql_words::in_sql;

use std::fmt;

/// The crate's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A place in SQL text, counted from 1 in the input (file, `-c` argument or edited buffer) it was read from.
/// A column counts characters, not bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Location {
    pub line: u64,
    pub column: u64,
}

impl Location {
    /// The place behind this text, which begins here.
    pub fn behind(self, text: &str) -> Self {
        text.chars().fold(self, |at, c| match c {
            '\n' => Location { line: at.line + 1, column: 1 },
            _ => Location { line: at.line, column: at.column + 1 },
        })
    }
}

/// From the first character of something in the SQL to just behind its last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Span {
    pub start: Location,
    pub end: Location,
}

/// Everything that can go wrong, by who must act.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The user's statement, option or argument is wrong. `help` is the clause or name that would be right.
    #[error("{message}")]
    InvalidInput { code: Code, message: String, span: Option<Span>, help: Option<String> },
    /// What was asked for is understood and refused. `help` is the way out.
    #[error("{message}")]
    Unsupported { code: Code, message: String, span: Option<Span>, help: Option<String> },
    /// A record of a source can't be read as the stream's columns.
    #[error("{0}")]
    BadRecord(Box<BadRecord>),
    /// A file of ours (checkpoint, manifest) is damaged, foreign or missing.
    #[error("{path}: {message}")]
    Corrupt { path: String, message: String },
    /// Somebody else holds, or has changed, what this run needs.
    #[error("{message}")]
    Conflict { message: String },
    /// The outside world failed. `transient`: worth another try.
    #[error("{context}: {message}")]
    Io { context: String, message: String, kind: std::io::ErrorKind, transient: bool },
    /// A running query failed: which, in which batch, at which node, and why.
    #[error("query {query} failed in batch {batch}{}: {cause}", .node.as_ref().map(|n| format!(", {n}")).unwrap_or_default())]
    QueryFailed { query: String, batch: u64, node: Option<String>, cause: Box<Error> },
    /// An error that was told already, by whom it met first: in brief.
    #[error("{what}: see its notice")]
    Told { what: String, error: Box<Error> },
    /// An error of the world's, and the place in the SQL that names what it is about.
    #[error("{error}")]
    Placed { span: Span, error: Box<Error> },
    /// The computation itself failed on the data: overflow, bad cast, division by zero.
    #[error("{message}")]
    Execution { code: Code, message: String },
    /// The user or a deadline ended it. Not a fault.
    #[error("{message}")]
    Cancelled { message: String },
    /// A defect of Levada.
    #[error("internal error: {message} (this is a defect of Levada; please report it)")]
    Internal { message: String },
}

/// A record that can't be read, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadRecord {
    /// The stream's name.
    pub source: String,
    /// The file, where there is one.
    pub path: Option<String>,
    /// Counted from 1.
    pub line: Option<u64>,
    /// What is wrong: the column, what it wants and what it found.
    pub reason: String,
    /// The record's text, shortened.
    pub text: String,
}

impl fmt::Display for BadRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bad record in stream {}", self.source)?;
        if let Some(path) = &self.path {
            write!(f, ", {path}")?;
        }
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {}: {}", self.reason, self.text)
    }
}

impl Error {
    /// A wrong statement, option or argument, without a place.
    pub fn invalid(message: impl Into<String>) -> Self {
        Error::InvalidInput { code: Code::Invalid, message: message.into(), span: None, help: None }
    }

    /// A wrong statement at a place in its SQL.
    pub fn invalid_at(span: Span, message: impl Into<String>) -> Self {
        Error::InvalidInput { code: Code::Invalid, message: message.into(), span: Some(span), help: None }
    }

    /// A refusal. The message names the rule; add the way out by [`Error::help`].
    pub fn unsupported(message: impl Into<String>) -> Self {
        Error::Unsupported { code: Code::Refused, message: message.into(), span: None, help: None }
    }

    /// What the language has room for and this build does not run: "not supported yet: …".
    pub fn not_yet(what: impl fmt::Display) -> Self {
        Error::unsupported(format!("not supported yet: {what}")).coded(Code::NotYet)
    }

    /// A damaged, foreign or missing file of ours.
    pub fn corrupt(path: impl fmt::Display, message: impl Into<String>) -> Self {
        Error::Corrupt { path: path.to_string(), message: message.into() }
    }

    /// Another process or query is in the way.
    pub fn conflict(message: impl Into<String>) -> Self {
        Error::Conflict { message: message.into() }
    }

    /// A failed operation of the operating system; `context` names the operation and its path.
    pub fn io(context: impl fmt::Display, error: &std::io::Error) -> Self {
        use std::io::ErrorKind::*;
        let transient =
            matches!(error.kind(), Interrupted | TimedOut | WouldBlock | ResourceBusy | StaleNetworkFileHandle);
        Error::Io { context: context.to_string(), message: error.to_string(), kind: error.kind(), transient }
    }

    /// A computation that failed on the data.
    pub fn computation(message: impl Into<String>) -> Self {
        Error::Execution { code: Code::Computation, message: message.into() }
    }

    /// A state that can't be, unless Levada is wrong.
    pub fn internal(message: impl Into<String>) -> Self {
        Error::Internal { message: message.into() }
    }

    /// Gives a finer code to an error that has none yet.
    pub fn coded(mut self, finer: Code) -> Self {
        if let Error::InvalidInput { code, .. } | Error::Unsupported { code, .. } | Error::Execution { code, .. } =
            &mut self
            && code.is_coarse()
        {
            *code = finer;
        }
        self
    }

    /// Puts the place into an error that has none yet.
    pub fn at(mut self, place: Option<Span>) -> Self {
        if let Error::InvalidInput { span, .. } | Error::Unsupported { span, .. } = &mut self {
            *span = span.or(place);
        }
        self
    }

    /// Says which place in the SQL names the file, folder or query that an error is about, where it is an error of the
    /// world's and not of the statement's.
    pub fn pointing_at(self, place: Option<Span>) -> Self {
        match (self, place) {
            (error @ (Error::Corrupt { .. } | Error::Conflict { .. } | Error::Io { .. }), Some(span)) => {
                Error::Placed { span, error: Box::new(error) }
            }
            (error, _) => error,
        }
    }

    /// Adds what to do about it.
    pub fn help(mut self, text: impl Into<String>) -> Self {
        if let Error::InvalidInput { help, .. } | Error::Unsupported { help, .. } = &mut self {
            *help = Some(text.into());
        }
        self
    }

    /// The place in the SQL, where one is known.
    pub fn span(&self) -> Option<Span> {
        match self {
            Error::InvalidInput { span, .. } | Error::Unsupported { span, .. } => *span,
            Error::QueryFailed { cause, .. } => cause.span(),
            Error::Placed { span, .. } => Some(*span),
            _ => None,
        }
    }

    /// What to do about it, where something is known.
    pub fn help_text(&self) -> Option<&str> {
        match self {
            Error::InvalidInput { help, .. } | Error::Unsupported { help, .. } => help.as_deref(),
            Error::QueryFailed { cause, .. } => cause.help_text(),
            Error::Told { error, .. } | Error::Placed { error, .. } => error.help_text(),
            _ => None,
        }
    }

    /// The stable code that the shell shows, such as `E0203`.
    pub fn code(&self) -> &'static str {
        self.kind().name()
    }

    /// What kind of error it is; of a query that has failed, and of what was told or placed, that of its cause.
    pub fn kind(&self) -> Code {
        match self {
            Error::InvalidInput { code, .. } | Error::Unsupported { code, .. } | Error::Execution { code, .. } => *code,
            Error::BadRecord(_) => Code::BadRecord,
            Error::Corrupt { .. } => Code::Corrupt,
            Error::Conflict { .. } => Code::Conflict,
            Error::Io { .. } => Code::Io,
            Error::QueryFailed { cause, .. } => cause.kind(),
            Error::Told { error, .. } | Error::Placed { error, .. } => error.kind(),
            Error::Cancelled { .. } => Code::Cancelled,
            Error::Internal { .. } => Code::Internal,
        }
    }

    /// Whether another try of the same read or write may go through.
    pub fn is_transient(&self) -> bool {
        match self {
            Error::Io { transient, .. } => *transient,
            Error::Placed { error, .. } => error.is_transient(),
            _ => false,
        }
    }
}

/// `did you mean "…"?`, when one of the known names is close to what was written.
pub fn closest<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let written = written.to_lowercase();
    known
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(&written, &name.to_lowercase()), name))
        .filter(|(distance, name)| *distance <= 1 + name.len().max(written.len()) / 5)
        // A letter too few is more often meant than one too many: `cout` is `count`, not `cot`.
        .min_by_key(|(distance, name)| (*distance, name.len() < written.len(), *name))
        .map(|(_, name)| name)
}

impl From<Error> for datafusion::error::DataFusionError {
    /// An error of ours on its way through DataFusion; the other conversion takes it out again.
    fn from(error: Error) -> Self {
        datafusion::error::DataFusionError::External(Box::new(error))
    }
}
