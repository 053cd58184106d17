//! A store whose files are objects.
//!
//! An object is there with all its bytes or not at all, and an answered write is durable: that is the store's promise.
//! That nothing is written over comes from a condition on the write.

use std::io::{self, Write};

use super::Store;
use crate::error::{Error, Result};
use crate::storage::Remote;

/// The objects whose paths begin with a root.
#[derive(Debug, Clone)]
pub struct RemoteStore {
    remote: Remote,
    /// Without slashes at its ends.
    root: String,
}

impl RemoteStore {
    pub fn new(remote: Remote, root: &str) -> Self {
        RemoteStore { remote, root: root.trim_matches('/').to_string() }
    }

    fn key(&self, path: &str) -> String {
        match (self.root.as_str(), path) {
            ("", path) => path.to_string(),
            (root, "") => root.to_string(),
            (root, path) => format!("{root}/{path}"),
        }
    }
}

impl Store for RemoteStore {
    fn put_new(&self, path: &str, write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>) -> Result<()> {
        let mut bytes = Vec::new();
        write(&mut bytes).map_err(|e| Error::io(format!("writing {}", self.describe(path)), &e))?;
        self.remote.put_new(&self.key(path), bytes)
    }

    fn get(&self, path: &str) -> Result<Option<Vec<u8>>> {
        Ok(self.remote.get(&self.key(path))?.map(|(_, bytes)| bytes.into()))
    }

    fn list(&self, folder: &str) -> Result<Vec<String>> {
        let (objects, folders) = self.remote.list_folder(&self.key(folder))?;
        let paths = objects.into_iter().map(|object| object.path).chain(folders);
        let mut names: Vec<String> =
            paths.map(|path| path.rsplit('/').next().unwrap_or_default().to_string()).collect();
        names.sort_unstable();
        names.dedup();
        Ok(names)
    }

    fn delete(&self, path: &str) -> Result<()> {
        self.remote.delete(&self.key(path))
    }

    fn describe(&self, path: &str) -> String {
        self.remote.shown(&self.key(path))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::storage::Scheme;

    #[test]
    fn objects_are_written_once_and_listed_by_folder() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let _entered = runtime.enter();
        let remote = Remote::over(Arc::new(object_store::memory::InMemory::new()), "s3://b", Scheme::S3).unwrap();
        let store = RemoteStore::new(remote.clone(), "/ck/");
        let put = |path: &str, text: &str| store.put_new(path, &mut |out| out.write_all(text.as_bytes()));
        for path in ["offsets/1", "offsets/0", "state/a/0.delta", "metadata"] {
            put(path, path).unwrap();
        }
        let again = put("offsets/1", "offsets/1").unwrap_err();
        assert!(matches!(again, Error::Conflict { .. }), "{again:?}");
        assert!(again.to_string().starts_with("s3://b/ck/offsets/1 is there already: another run wrote it"), "{again}");
        let failing = store.put_new("offsets/2", &mut |_| Err(io::Error::other("no room")));
        assert_eq!(failing.unwrap_err().to_string(), "writing s3://b/ck/offsets/2: no room");
        assert_eq!(store.list("").unwrap(), ["metadata", "offsets", "state"]);
        assert_eq!(store.list("offsets").unwrap(), ["0", "1"]);
        assert_eq!(store.list("nothing").unwrap(), Vec::<String>::new());
        assert_eq!(store.get("offsets/0").unwrap().as_deref(), Some(&b"offsets/0"[..]));
        assert_eq!(store.get("offsets/2").unwrap(), None);
        store.delete("offsets/0").unwrap();
        store.delete("offsets/0").unwrap();
        assert_eq!(RemoteStore::new(remote, "ck/offsets").list("").unwrap(), ["1"]);
    }
}
