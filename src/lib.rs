//! Levada: a SQL-first streaming database shell.
//!
//! # The life of a statement
//!
//! 1. The [`shell`] reads a line, a script or a `-c` argument; the [`parser`] splits it by its real lexer and turns each text
//!    into a [`parser::Statement`].
//! 2. [`session::Session::execute`] is the front page: one statement in, one [`session::Answer`] out. Names are looked up in
//!    the [`catalog`], which also checks every option.
//! 3. A query goes to [`planner::plan_query`]: DataFusion plans it, with windows and watermarks as nodes of ours. A plain SELECT is
//!    then run once over what its streams hold ([`planner::bounded`]).
//! 4. START QUERY hands the plan to [`execution::start`]. [`incremental::plan`] refuses what its mode can't run and cuts it into
//!    fragments, which DataFusion runs anew in every batch, and an [`operator`], which remembers.
//! 5. A thread of its own runs micro-batches: rows of a [`source`] pass the first fragment, reach the operator and its [`state`]
//!    split by their key ([`delta`]), and leave through the second fragment to a [`sink`].
//! 6. Around each batch the [`checkpoint`]'s logs are written, so that a crash at any moment changes nothing.
//!
//! Rooms use only rooms above them in this list.

// One error enum, cut by who must act.
pub mod error;
// The only place that knows the time.
pub mod clock;
// What a `WITH (…)` list may hold.
pub mod options;
// Local directories and object stores.
pub mod storage;
// Text → statements.
pub mod parser;
// Changes: rows, what they do, keys as bytes, times as numbers.
pub mod delta;
// Logs, lease, metadata, failpoints: what a query must know after a crash.
pub mod checkpoint;
// json, csv, parquet, text: bytes ↔ record batches; bad records.
pub mod format;
// What operators remember, and its files.
pub mod state;
// Rows → text, errors → text.
pub mod display;
// Where rows come from; one file a connector.
pub mod source;
// Where results go; one file a connector.
pub mod sink;
// What remembers; one operator a file.
pub mod operator;
// Names → definitions.
pub mod catalog;
// Query text → logical plan.
pub mod planner;
// Logical plan → fragments and operators.
pub mod incremental;
// The engine.
pub mod execution;
// One statement in, one answer out.
pub mod session;
// Regression suites.
pub mod regress;
// Lines in, answers printed.
pub mod shell;
