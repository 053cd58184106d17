//! The records that we add to sqllogictest's, as data.

use std::ops::Range;

use regex::Regex;
use sqllogictest::SortMode;

use super::values::Letter;
use crate::checkpoint::failpoint::Action;
use crate::parser::StopHow;

/// A record of ours.
#[derive(Debug, Clone)]
pub enum Own {
    /// `clock set TIME`
    ClockSet(String),
    /// `clock advance INTERVAL`
    ClockAdvance(String),
    /// `feed STREAM …` and its rows
    Feed { stream: String, what: Feed, error: Option<Regex> },
    /// `step QUERY …`
    Step { query: String, how: StepHow, rows: Option<Rows> },
    /// `emitted QUERY …`
    Emitted { query: String, which: Which, rows: Rows },
    /// `progress QUERY [batch K]` and its conditions
    Progress { query: String, batch: Option<u64>, checks: Vec<Check> },
    /// `watermark QUERY TIME|none`
    Watermark { query: String, expected: Option<String> },
    /// `state QUERY[.OPERATOR]`
    State { query: String, operator: Option<String>, rows: Rows },
    /// `sink NAME committed`
    Sink { name: String, rows: Rows },
    /// `checkpoint QUERY`
    Checkpoint(String),
    /// `stop QUERY [graceful|now|drain]`
    Stop { query: String, how: StopHow },
    /// `restart query QUERY [from CHECKPOINT]`
    RestartQuery { query: String, from: Option<String> },
    /// `restart engine [wipe]`
    RestartEngine { wipe: bool },
    /// `crash at POINT [hit N] [kill|error|torn K|enospc|lost-fsync]`
    Crash { point: String, hit: u64, action: Action },
    /// `plan QUERY [why|state]`
    Plan { query: String, of: Shown, lines: Vec<String> },
    /// `shell [ARGUMENTS]`, or `tty COLSxROWS [ARGUMENTS]`
    Program(Program),
    /// `require WHAT`
    Require(String),
}

impl Own {
    /// Every text in it in which a name may stand for something: single ones, and lines.
    pub fn texts(&mut self) -> (Vec<&mut String>, Vec<&mut Vec<String>>) {
        let (mut texts, mut lists) = (Vec::new(), Vec::new());
        match self {
            Own::ClockSet(text) | Own::ClockAdvance(text) | Own::Checkpoint(text) | Own::Require(text) => {
                texts.push(text)
            }
            Own::Feed { stream, what, .. } => {
                texts.push(stream);
                match what {
                    Feed::Values(rows) => texts.push(rows),
                    Feed::Lines { lines, .. } => lists.push(lines),
                    Feed::Close => {}
                }
            }
            Own::Step { query, rows, .. } => {
                texts.push(query);
                lists.extend(rows.as_mut().map(|rows| &mut rows.lines));
            }
            Own::Emitted { query, rows, .. } | Own::Sink { name: query, rows } => {
                texts.push(query);
                lists.push(&mut rows.lines);
            }
            Own::State { query, operator, rows } => {
                texts.push(query);
                texts.extend(operator);
                lists.push(&mut rows.lines);
            }
            Own::Progress { query, checks, .. } => {
                texts.push(query);
                texts.extend(checks.iter_mut().map(|check| &mut check.value));
            }
            Own::Watermark { query, expected } => {
                texts.push(query);
                texts.extend(expected);
            }
            Own::Stop { query, .. } | Own::Crash { point: query, .. } => texts.push(query),
            Own::RestartQuery { query, from } => {
                texts.push(query);
                texts.extend(from);
            }
            Own::RestartEngine { .. } => {}
            // The folder has its name in a plan.
            Own::Plan { query, .. } => texts.push(query),
            Own::Program(program) => {
                lists.push(&mut program.input);
                lists.push(&mut program.arguments);
            }
        }
        (texts, lists)
    }
}

/// What is put into a stream.
#[derive(Debug, Clone)]
pub enum Feed {
    /// Rows as SQL writes them behind VALUES.
    Values(String),
    /// Lines of a format: `csv`, `json`.
    Lines { format: &'static str, lines: Vec<String> },
    /// The input ends.
    Close,
}

/// How many batches a step runs, and how it ends.
#[derive(Debug, Clone)]
pub enum StepHow {
    Batches(u64),
    UntilIdle,
    /// Nothing is to be done.
    Idle,
    /// A failpoint fires.
    Crashed,
    /// The query fails, and this is found in its error.
    Error(Regex),
}

/// What `plan` shows of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    Plan,
    Why,
    State,
}

/// Which batches `emitted` speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    Last,
    Batch(u64),
    Since(u64),
    All,
}

/// Rows that are expected.
#[derive(Debug, Clone)]
pub struct Rows {
    /// `None`: they are not checked.
    pub types: Option<Vec<Letter>>,
    pub sort: SortMode,
    /// The first line names the columns.
    pub names: bool,
    pub lines: Vec<String>,
}

/// A line of `progress`: `input_rows = 3`.
#[derive(Debug, Clone)]
pub struct Check {
    /// Of the file, from 1.
    pub line: usize,
    pub key: String,
    pub op: CheckOp,
    pub value: String,
}

/// How a value of a progress document is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckOp {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    /// A regular expression that is found in it.
    Matches,
}

impl CheckOp {
    /// As it is written, the longer ones first.
    pub const ALL: &[(&str, CheckOp)] = &[
        ("!=", CheckOp::NotEqual),
        ("<=", CheckOp::LessOrEqual),
        (">=", CheckOp::GreaterOrEqual),
        ("=", CheckOp::Equal),
        ("<", CheckOp::Less),
        (">", CheckOp::Greater),
        ("~", CheckOp::Matches),
    ];
}

/// The program is run, with lines on its standard input.
#[derive(Debug, Clone)]
pub struct Program {
    /// Columns and rows of its terminal; `None`: it has none.
    pub terminal: Option<(u16, u16)>,
    pub arguments: Vec<String>,
    pub input: Vec<String>,
    /// What it prints; of a terminal, the screen at its end.
    pub output: Vec<String>,
    /// `None`: not checked.
    pub errors: Option<Vec<String>>,
    pub exit: u8,
}

/// Where expected lines stand, to be written anew.
#[derive(Debug, Clone, Default)]
pub struct Block {
    /// Lines of the file from 0: behind `----`.
    pub lines: Range<usize>,
    /// Whether there is a `----`.
    pub separated: bool,
    /// What a program prints goes on behind a blank line; the line, from 0, where another record seems to begin in it.
    pub swallows: Option<usize>,
}

/// What a `matrix` crosses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Matrix {
    pub crashes: Vec<Option<Crash>>,
    pub parallelism: Vec<u64>,
    pub batch_rows: Vec<Option<usize>>,
    pub restart_each_step: Vec<bool>,
}

impl Default for Matrix {
    /// The records as they stand, and nothing else.
    fn default() -> Self {
        Matrix { crashes: vec![None], parallelism: vec![1], batch_rows: vec![None], restart_each_step: vec![false] }
    }
}

/// A failpoint of a `matrix`, and what it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Crash {
    pub point: &'static str,
    pub action: Action,
    /// The axis names it: a combination that does not reach it proves nothing. `all` means only those that are reached.
    pub named: bool,
}

impl std::fmt::Display for Crash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.action {
            Action::Kill => write!(f, "{}", self.point),
            Action::Error => write!(f, "{}:error", self.point),
            Action::Torn(bytes) => write!(f, "{}:torn:{bytes}", self.point),
            Action::Enospc => write!(f, "{}:enospc", self.point),
            Action::LostFsync => write!(f, "{}:lost-fsync", self.point),
        }
    }
}
