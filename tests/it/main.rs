//! The one integration binary.

mod answers;
mod cli;
