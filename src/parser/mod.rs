//! Text → [`Statement`]: the dialect, and every statement of the language as data.
//!
//! ```text
//! input ─Splitter→ text of one statement ─lexer→ lexemes with places ─parse→ which statement
//!                                                     │
//!       a query's lexemes: window functions rewritten, our clauses cut out, the rest to sqlparser → QueryText
//! ```
//! The parser knows no catalog: a name is only a name here, and an option only a word and a value.

mod scanner;
mod splitter;

mod dialect;
mod lexer;

mod tokens;

mod cursor;
mod parse;

mod control;
mod create;
mod show;
mod start;
mod with_list;

mod interval;

mod copied;
mod query;
mod swallowed;
mod watermark;
mod windows;

mod depth;
mod literals;
mod sql;
mod walk;

mod statement;

mod canonical;
mod escape;
mod write;
mod write_definition;

#[cfg(test)]
mod tests;

pub use canonical::canonical_query;
pub use copied::copied_query;
pub use cursor::RESERVED;
pub use literals::read_literals;
pub use parse::parse_one;
pub use scanner::{Pending, Scanner, Stop, bare_tokens, pending};
pub use splitter::{Splitter, StatementText, parse_statements};
pub use sqlparser::ast;
pub use statement::*;
pub use tokens::{TokenKind, TokenSpan, tokens};
pub use walk::{Flow, walk, walk_mut};
pub use windows::PARTITION_BY_ARGUMENT;
