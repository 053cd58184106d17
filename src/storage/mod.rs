//! Places outside the process, as text names them: a local directory, or the store behind a URL.
//!
//! ```text
//! location   text → a local path, or scheme, bucket and path of a store
//! remote     that, and the environment → an open store: list, look, read a range
//! wait       synchronous code waits for a store's answer
//! ```
//! Knows bytes and names. It does not know which files were read before, what is in them, or what a checkpoint is.

mod errors;
mod location;
mod remote;
mod wait;

pub use location::{Location, RemoteUrl, Scheme, local_directory};
pub use remote::{Object, Remote, Settings};
pub use wait::{Begun, Waiter};
