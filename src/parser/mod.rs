//! Text → [`Statement`]: the dialect, and every statement of the language as data.

mod statement;

pub use sqlparser::ast;
pub use statement::*;
