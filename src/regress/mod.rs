//! Regression suites: `.slt` files with SQL and what it must answer.
//!
//! ```text
//! paths ─files→ a file ─script→ nodes ─run→ world: a session, a clock, a folder ─report→ what failed, and how
//! ```
//! A file is sqllogictest's, with records of ours that hold time and batches in the hand: `feed`, `step`, `clock`, `crash`. The
//! crate `sqllogictest` parses and runs its own records (`script` lifts ours out first); nothing here sleeps or tries again.

mod answer;
mod combinations;
mod compare;
mod complete;
mod crash;
mod expect;
mod feed;
mod files;
mod gestures;
mod guard;
mod head;
mod inspect;
mod keys;
mod matrix;
mod own;
mod picture;
mod place;
mod plain;
mod program;
mod progress;
mod record;
mod recording;
mod report;
mod require;
mod run;
mod script;
mod structure;
mod substitute;
mod suite;
mod values;
mod verdict;
mod world;

pub use combinations::Combinations;
pub use files::{Files, Shard};
pub use guard::Interrupt;
pub use recording::Recording;
pub use run::Options as RunOptions;
pub use suite::{Suite, run};
