//! An object that is written as its bytes come, in parts of 8 MiB, some on the way at the same time.
//!
//! What ends in one part goes in one request. Nothing is to be seen of the object before the end; of one that is given
//! up, or whose process dies, nothing ever is. Parts that a dead process had sent are kept by the store until a rule of
//! the bucket's ends unfinished uploads.

use std::io::{self, Write};

use bytes::Bytes;
use object_store::{ObjectStoreExt, WriteMultipart};

use super::errors::failed;
use super::remote::Remote;
use super::wait::Begun;
use crate::error::Result;

/// Bytes of a part. Stores want 5 MiB at the least, and take 10,000 parts.
const PART: usize = 8 << 20;
/// Parts that are on the way at the same time.
const ON_THE_WAY: usize = 4;

/// An object that is being written.
pub struct Upload {
    remote: Remote,
    path: String,
    waiting: Vec<u8>,
    /// Since the first part was full.
    parts: Option<WriteMultipart>,
}

impl Upload {
    /// Begins an object. One that is there is replaced.
    pub(super) fn new(remote: Remote, path: String) -> Self {
        Upload { remote, path, waiting: Vec::new(), parts: None }
    }

    /// Bytes that wait in memory for their part to be full.
    pub fn buffered(&self) -> usize {
        self.waiting.capacity()
    }

    /// Sends what is left, and ends the object; waited for later.
    pub fn finish(mut self) -> Begun<Result<()>> {
        let (remote, path) = (self.remote.clone(), std::mem::take(&mut self.path));
        let (rest, parts) = (Bytes::from(std::mem::take(&mut self.waiting)), self.parts.take());
        self.remote.waiter().begin(async move {
            let location = remote.path(&path)?;
            let done = match parts {
                None => remote.store().put(&location, rest.into()).await,
                Some(mut parts) => {
                    parts.put(rest);
                    parts.finish().await
                }
            };
            done.map(drop).map_err(|e| failed(format!("writing {}", remote.shown(&path)), &e))
        })
    }

    fn send(&mut self) -> Result<()> {
        let part = Bytes::from(std::mem::take(&mut self.waiting));
        let (remote, path) = (&self.remote, &self.path);
        let location = remote.path(path)?;
        let parts = &mut self.parts;
        let sent = remote.waiter().wait(async {
            let parts = match parts {
                Some(parts) => parts,
                none => {
                    let upload = remote.store().put_multipart(&location).await?;
                    none.insert(WriteMultipart::new_with_chunk_size(upload, PART))
                }
            };
            parts.wait_for_capacity(ON_THE_WAY).await?;
            parts.put(part);
            Ok(())
        });
        sent.map_err(|e: object_store::Error| failed(format!("writing {}", remote.shown(path)), &e))
    }
}

impl Write for Upload {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (held, room) = (self.waiting.len(), self.waiting.capacity());
        let taken = bytes.len().min(PART - held);
        if held + taken > room {
            self.waiting.reserve_exact((2 * room).clamp(held + taken, PART) - held);
        }
        self.waiting.extend_from_slice(&bytes[..taken]);
        if self.waiting.len() == PART {
            self.send().map_err(io::Error::other)?;
        }
        Ok(taken)
    }

    /// Parts go when they are full.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Upload {
    /// Gives up what was not finished. Nobody waits for it, and a failure costs no more than a dead process does.
    fn drop(&mut self) {
        if let Some(parts) = self.parts.take() {
            self.remote.waiter().detach(async move {
                let _ = parts.abort().await;
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::storage::Scheme;

    #[test]
    fn what_was_written_comes_back_whatever_its_size() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let _entered = runtime.enter();
        let remote = Remote::over(Arc::new(object_store::memory::InMemory::new()), "s3://b", Scheme::S3).unwrap();
        for size in [0, 1, PART - 1, PART, PART + 1, 6 * PART + 17] {
            let bytes: Vec<u8> = (0..size).map(|at| (at % 251) as u8).collect();
            let mut upload = remote.upload("x");
            for piece in bytes.chunks(1 << 20) {
                upload.write_all(piece).unwrap();
            }
            assert!(upload.buffered() <= PART);
            upload.finish().end(remote.waiter()).unwrap().unwrap();
            assert!(remote.read("x").unwrap().unwrap().bytes == bytes, "{size} bytes");
        }
        let mut given_up = remote.upload("y");
        given_up.write_all(&vec![1; PART + 1]).unwrap();
        drop(given_up);
        assert!(remote.read("y").unwrap().is_none());
    }
}
