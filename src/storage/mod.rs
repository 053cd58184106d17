//! Places outside the process, as text names them: a local directory, or the store behind a URL.
//!
//! ```text
//! location      text → a local path, or scheme, bucket and path of a store
//! remote        that, and the environment → an open store: list, look, read a range
//! conditional   an object is written if it is absent, or still what it was
//! upload        an object is written as its bytes come
//! root          the objects below one path
//! wait          synchronous code waits for a store's answer
//! ```
//! Knows bytes and names. It does not know which files were read before, what is in them, or what a checkpoint is.

mod conditional;
mod errors;
mod location;
#[cfg(test)]
pub mod pretend;
mod remote;
mod root;
mod upload;
mod wait;

pub use conditional::{Condition, Found, Version};
pub use location::{Location, RemoteUrl, Scheme};
pub use remote::{Object, Remote, Settings};
pub use root::Root;
pub use upload::Upload;
pub use wait::{Begun, Waiter};
