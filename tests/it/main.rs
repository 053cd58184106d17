//! The one integration binary.

mod cli;
