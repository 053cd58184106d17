//! Objects that are written under a condition: that there is none, or that it still is what it was.
//!
//! Of several writers that name the same condition one writes, and the others learn that it does not hold: a store
//! gives no other way to tell writers apart that know nothing of each other. Each write leaves a mark of its writer's
//! beside the bytes, so that a write whose answer was lost can be told from another's.

use std::borrow::Cow;
use std::io::ErrorKind;

use bytes::Bytes;
use object_store::{Attribute, Attributes, GetOptions, GetResult, ObjectStoreExt, PutMode, PutOptions, UpdateVersion};

use super::errors::failed;
use super::remote::Remote;
use crate::error::{Error, Result};

/// Letters only: of a name with a hyphen or an underscore some store or some server on the way wants nothing to know.
const WRITER: Attribute = Attribute::Metadata(Cow::Borrowed("levadawriter"));

/// What an object was when it was read or written: another after each write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    etag: Option<String>,
    /// Where the store counts generations.
    generation: Option<String>,
}

/// When an object is written.
#[derive(Debug, Clone, Copy)]
pub enum Condition<'v> {
    /// There is none.
    Absent,
    /// It has not been written since.
    Still(&'v Version),
}

/// An object, and who wrote it.
#[derive(Debug, Clone)]
pub struct Found {
    pub version: Version,
    /// What its writer left beside the bytes.
    pub mark: Option<String>,
    /// Empty where they were not asked for.
    pub bytes: Bytes,
}

impl Remote {
    /// Writes an object if the condition holds. Answers its version; `None`: the condition does not hold, or held and
    /// the write was made, but its answer was lost and it was made again: the mark tells.
    ///
    /// # Errors
    /// Io.
    pub fn put_if(&self, path: &str, bytes: Bytes, mark: &str, condition: Condition<'_>) -> Result<Option<Version>> {
        let location = self.path(path)?;
        let mode = match condition {
            Condition::Absent => PutMode::Create,
            Condition::Still(version) => {
                let Version { etag, generation } = version.clone();
                PutMode::Update(UpdateVersion { e_tag: etag, version: generation })
            }
        };
        let attributes = Attributes::from_iter([(WRITER, mark.to_string())]);
        let options = PutOptions { mode, attributes, ..PutOptions::default() };
        match self.waiter().wait(self.store().put_opts(&location, bytes.into(), options)) {
            Ok(put) => Ok(Some(Version { etag: put.e_tag, generation: put.version })),
            Err(object_store::Error::AlreadyExists { .. } | object_store::Error::Precondition { .. }) => Ok(None),
            Err(e) => match failed(format!("writing {}", self.shown(path)), &e) {
                Error::Io { context, kind: kind @ ErrorKind::NotFound, transient, .. } => {
                    Err(Error::Io { context, message: "there is no such bucket".into(), kind, transient })
                }
                other => Err(other),
            },
        }
    }

    /// An object; `None` when there is none.
    ///
    /// # Errors
    /// Io.
    pub fn read(&self, path: &str) -> Result<Option<Found>> {
        let doing = || format!("read {}", self.shown(path));
        let location = self.path(path)?;
        self.waiter().wait(async {
            let got = match self.store().get(&location).await {
                Ok(got) => got,
                Err(object_store::Error::NotFound { .. }) => return Ok(None),
                Err(e) => return Err(failed(doing(), &e)),
            };
            let found = found(&got);
            Ok(Some(Found { bytes: got.bytes().await.map_err(|e| failed(doing(), &e))?, ..found }))
        })
    }

    /// Who wrote an object, without its bytes; `None` when there is none.
    ///
    /// # Errors
    /// Io.
    pub fn writer_of(&self, path: &str) -> Result<Option<Found>> {
        let location = self.path(path)?;
        let options = GetOptions { head: true, ..GetOptions::default() };
        match self.waiter().wait(self.store().get_opts(&location, options)) {
            Ok(got) => Ok(Some(found(&got))),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(e) => Err(failed(format!("look at {}", self.shown(path)), &e)),
        }
    }
}

fn found(got: &GetResult) -> Found {
    Found {
        version: Version { etag: got.meta.e_tag.clone(), generation: got.meta.version.clone() },
        mark: got.attributes.get(&WRITER).map(|mark| mark.to_string()),
        bytes: Bytes::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::storage::Scheme;

    #[test]
    fn of_two_writers_of_one_condition_one_writes() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let _entered = runtime.enter();
        let remote = Remote::over(Arc::new(object_store::memory::InMemory::new()), "s3://b", Scheme::S3).unwrap();
        let put = |text: &'static str, condition: Condition<'_>| {
            remote.put_if("x", Bytes::from_static(text.as_bytes()), &format!("by {text}"), condition).unwrap()
        };
        assert!(remote.read("x").unwrap().is_none() && remote.writer_of("x").unwrap().is_none());
        let first = put("1", Condition::Absent).unwrap();
        assert_eq!(put("2", Condition::Absent), None);
        let second = put("3", Condition::Still(&first)).unwrap();
        assert_eq!(put("4", Condition::Still(&first)), None);
        let found = remote.read("x").unwrap().unwrap();
        assert_eq!((found.bytes.as_ref(), found.mark.as_deref()), (&b"3"[..], Some("by 3")));
        assert!(found.version == second && second != first);
        assert_eq!(remote.writer_of("x").unwrap().unwrap().mark.as_deref(), Some("by 3"));
        remote.delete("x").unwrap();
        assert_eq!(put("5", Condition::Still(&second)), None, "what is gone is not what it was");
    }
}
