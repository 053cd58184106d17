//! Buckets of tests: in memory, under a name that a URL can say, and as unreliable as a test wants them.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use futures::TryStreamExt;
use futures::executor::block_on;
use futures::stream::BoxStream;
use object_store::client::{HttpError, HttpErrorKind};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, ObjectStoreExt,
    PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use tokio::sync::Notify;

static BUCKETS: LazyLock<Mutex<BTreeMap<String, Arc<Bucket>>>> = LazyLock::new(Mutex::default);

/// What becomes of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// Nobody answers, and nothing is written.
    Away,
    /// It is written, and nobody answers.
    AnswerLost,
    /// It is forbidden.
    Forbidden,
}

/// A bucket.
#[derive(Debug, Default)]
pub struct Bucket {
    inner: InMemory,
    rules: Mutex<Rules>,
    reached: Condvar,
    released: Notify,
}

#[derive(Debug, Default)]
struct Rules {
    /// By the end of a path: so many writes fail.
    failures: BTreeMap<String, (u32, Failure)>,
    /// By the end of a path: the next write is held back; whether it has come.
    held: BTreeMap<String, bool>,
    heedless: bool,
}

/// Makes a bucket of that name, in place of the one that had it.
pub fn bucket(name: &str) -> Arc<Bucket> {
    let bucket = Arc::new(Bucket::default());
    lock(&BUCKETS).insert(name.to_string(), bucket.clone());
    bucket
}

/// The bucket of that name, if a test has made one.
pub(super) fn found(name: &str) -> Option<Arc<dyn ObjectStore>> {
    lock(&BUCKETS).get(name).map(|bucket| bucket.clone() as Arc<dyn ObjectStore>)
}

impl Bucket {
    /// The next writes of paths that end so fail, so many.
    pub fn fail(&self, end: &str, times: u32, failure: Failure) {
        lock(&self.rules).failures.insert(end.to_string(), (times, failure));
    }

    /// The next write of a path that ends so is held back.
    pub fn hold(&self, end: &str) {
        lock(&self.rules).held.insert(end.to_string(), false);
    }

    /// Waits for the write that is held back.
    pub fn await_held(&self, end: &str) {
        let mut rules = lock(&self.rules);
        while rules.held.get(end) != Some(&true) {
            rules = self.reached.wait(rules).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Lets the one write go on that is held back.
    pub fn release(&self) {
        self.released.notify_one();
    }

    /// Conditions are not heeded any more.
    pub fn ignore_conditions(&self) {
        lock(&self.rules).heedless = true;
    }

    /// All paths.
    pub fn paths(&self) -> Vec<String> {
        let metas: Vec<ObjectMeta> = block_on(self.inner.list(None).try_collect()).unwrap();
        metas.into_iter().map(|meta| meta.location.to_string()).collect()
    }

    /// An object's text.
    pub fn text(&self, path: &str) -> String {
        let bytes = block_on(async { self.inner.get(&Path::from(path)).await.unwrap().bytes().await.unwrap() });
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Writes an object, whatever is there.
    pub fn overwrite(&self, path: &str, bytes: impl Into<PutPayload>) {
        block_on(self.inner.put(&Path::from(path), bytes.into())).unwrap();
    }

    /// Changes a byte of an object. Answers what it was.
    pub fn damage(&self, path: &str) -> Bytes {
        let whole = block_on(async { self.inner.get(&Path::from(path)).await.unwrap().bytes().await.unwrap() });
        let mut damaged = whole.to_vec();
        let middle = damaged.len() / 2;
        damaged[middle] ^= 1;
        self.overwrite(path, damaged);
        whole
    }

    /// Removes an object.
    pub fn remove(&self, path: &str) {
        block_on(self.inner.delete(&Path::from(path))).unwrap();
    }

    async fn hold_back(&self, at: &Path) {
        let end = {
            let mut rules = lock(&self.rules);
            let held = rules.held.iter_mut().find(|(end, come)| !**come && at.as_ref().ends_with(end.as_str()));
            held.map(|(end, come)| {
                *come = true;
                end.clone()
            })
        };
        let Some(end) = end else { return };
        self.reached.notify_all();
        self.released.notified().await;
        lock(&self.rules).held.remove(&end);
    }

    fn failure(&self, at: &Path) -> Option<Failure> {
        let mut rules = lock(&self.rules);
        let (_, (times, failure)) =
            rules.failures.iter_mut().find(|(end, (times, _))| *times > 0 && at.as_ref().ends_with(end.as_str()))?;
        *times -= 1;
        Some(*failure)
    }
}

fn away() -> Error {
    let source = HttpError::new(HttpErrorKind::Connect, io::Error::other("nobody answers"));
    Error::Generic { store: "pretended", source: Box::new(source) }
}

impl fmt::Display for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("pretended")
    }
}

#[async_trait]
impl ObjectStore for Bucket {
    async fn put_opts(&self, at: &Path, bytes: PutPayload, mut options: PutOptions) -> Result<PutResult> {
        self.hold_back(at).await;
        if lock(&self.rules).heedless {
            options.mode = PutMode::Overwrite;
        }
        match self.failure(at) {
            None => self.inner.put_opts(at, bytes, options).await,
            Some(Failure::Away) => Err(away()),
            Some(Failure::AnswerLost) => {
                self.inner.put_opts(at, bytes, options).await?;
                Err(away())
            }
            Some(Failure::Forbidden) => Err(Error::PermissionDenied {
                path: at.to_string(),
                source: "PUT https://host/k?X-Amz-Signature=s3cret: 403".into(),
            }),
        }
    }

    async fn put_multipart_opts(&self, at: &Path, options: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(at, options).await
    }

    async fn get_opts(&self, at: &Path, options: GetOptions) -> Result<GetResult> {
        self.inner.get_opts(at, options).await
    }

    fn delete_stream(&self, paths: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(paths)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
