//! The one integration binary: scripts against the real program, recovery after SIGKILL, the law, the house rules.

mod answers;
mod cli;
mod commit_cost;
mod damage;
mod law;
mod pictures;
mod queries;
mod recovery;
mod scripts;
mod slt;
mod tidy;
