//! The objects below one path of a store.

use super::{Remote, RemoteUrl, Settings};
use crate::error::Result;

/// The objects whose paths begin with a root. Paths are relative to it, with `/`; the root itself is the empty path.
#[derive(Debug, Clone)]
pub struct Root {
    remote: Remote,
    /// Without slashes at its ends.
    root: String,
}

impl Root {
    pub fn new(remote: Remote, root: &str) -> Self {
        Root { remote, root: root.trim_matches('/').to_string() }
    }

    /// Opens the store of a URL, on the runtime that the caller has entered; the root is the URL's path.
    ///
    /// # Errors
    /// As [`Remote::open`].
    pub fn open(url: &RemoteUrl, settings: &Settings) -> Result<Self> {
        Ok(Root::new(Remote::open(url, settings)?, &url.path))
    }

    /// The store that it is in.
    pub fn remote(&self) -> &Remote {
        &self.remote
    }

    /// The whole path of an object.
    pub fn key(&self, path: &str) -> String {
        match (self.root.as_str(), path) {
            ("", path) => path.to_string(),
            (root, "") => root.to_string(),
            (root, path) => format!("{root}/{path}"),
        }
    }

    /// A folder in it, as a root of its own.
    pub fn below(&self, folder: &str) -> Root {
        Root::new(self.remote.clone(), &self.key(folder))
    }

    /// The part of a whole path that is relative to the root; `None`: it isn't below.
    pub fn relative<'p>(&self, key: &'p str) -> Option<&'p str> {
        match self.root.as_str() {
            "" => Some(key),
            root => key.strip_prefix(root)?.strip_prefix('/'),
        }
    }

    /// The path as a user knows it.
    pub fn shown(&self, path: &str) -> String {
        self.remote.shown(&self.key(path))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::storage::Scheme;

    #[test]
    fn paths_are_put_behind_the_root_and_taken_from_it() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let _entered = runtime.enter();
        let remote = Remote::over(Arc::new(object_store::memory::InMemory::new()), "s3://b", Scheme::S3).unwrap();
        let (whole, part) = (Root::new(remote.clone(), ""), Root::new(remote, "/a/b/"));
        assert_eq!((whole.key(""), whole.key("x"), whole.below("a").key("x")), ("".into(), "x".into(), "a/x".into()));
        assert_eq!((part.key(""), part.key("x/y")), ("a/b".to_string(), "a/b/x/y".to_string()));
        assert_eq!((whole.relative("x/y"), part.relative("a/b/x/y")), (Some("x/y"), Some("x/y")));
        assert_eq!((part.relative("a/bc/x"), part.relative("a")), (None, None));
        assert_eq!((part.shown("x"), part.shown("")), ("s3://b/a/b/x".to_string(), "s3://b/a/b".to_string()));
    }
}
