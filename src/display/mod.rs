//! What is shown: errors with their place in the SQL.

mod error;

pub use error::render_error;
