//! An open store: what is in it, and the bytes of it.
//!
//! Credentials come from the environment and stay in the store's client: nothing here can show them. A request that
//! fails for a reason that may pass is made again, with growing pauses, before it is reported.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::http::HttpBuilder;
use object_store::path::Path;
use object_store::{
    BackoffConfig, ClientConfigKey, ClientOptions, GetOptions, GetRange, ObjectMeta, ObjectStore, ObjectStoreExt,
    RetryConfig,
};

use super::errors::failed;
use super::location::{RemoteUrl, Scheme};
use super::upload::Upload;
use super::wait::Waiter;
use crate::error::{Error, Result};

/// What a statement may say of a store, beside its URL.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// The server that is spoken to.
    pub endpoint: Option<String>,
    pub region: Option<String>,
    /// Requests are not signed.
    pub anonymous: bool,
}

/// An object as it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// From the store's root, with `/`.
    pub path: String,
    /// Bytes.
    pub size: u64,
    /// Nanoseconds since 1970; whole seconds where there is no tag, as not every answer tells more.
    pub mtime: i64,
    /// Changes when the object does.
    pub etag: Option<String>,
}

/// An open store.
#[derive(Clone)]
pub struct Remote {
    store: Arc<dyn ObjectStore>,
    /// What paths are shown behind.
    base: String,
    scheme: Scheme,
    waiter: Waiter,
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Remote({})", self.base)
    }
}

/// So many objects are looked at at the same time.
const LOOKS: usize = 16;
/// A server that says nothing for so long has gone.
const SILENCE: Duration = Duration::from_secs(30);

impl Remote {
    /// Opens the store of a URL, on the runtime that the caller has entered. Nothing is asked of it yet.
    ///
    /// # Errors
    /// InvalidInput: a setting that this store has not, or that it can't use.
    pub fn open(url: &RemoteUrl, settings: &Settings) -> Result<Self> {
        check(url, settings)?;
        #[cfg(test)]
        if let Some(store) = super::pretend::found(&url.authority) {
            return Self::over(store, &url.base, url.scheme);
        }
        let store: Result<Arc<dyn ObjectStore>, object_store::Error> = match url.scheme {
            Scheme::S3 => s3(url, settings),
            Scheme::Gcs => gcs(url, settings),
            Scheme::Azure => azure(url, settings),
            Scheme::Http => http(url),
        };
        let store = store.map_err(|e| match failed(format!("open {}", url.base), &e) {
            Error::Io { context, message, .. } => Error::invalid(format!("{context}: {message}")),
            other => other,
        })?;
        Self::over(store, &url.base, url.scheme)
    }

    /// Over a store of the caller's.
    ///
    /// # Errors
    /// Internal: the caller has entered no runtime.
    pub fn over(store: Arc<dyn ObjectStore>, base: &str, scheme: Scheme) -> Result<Self> {
        Ok(Remote { store, base: base.to_string(), scheme, waiter: Waiter::of_this_thread()? })
    }

    /// Waits for what the store answers.
    pub fn waiter(&self) -> &Waiter {
        &self.waiter
    }

    /// Whether every object can be read in parts. A plain web server need not.
    pub fn has_ranges(&self) -> bool {
        self.scheme != Scheme::Http
    }

    /// The path as a user knows it.
    pub fn shown(&self, path: &str) -> String {
        format!("{}/{path}", self.base)
    }

    pub(super) fn store(&self) -> &dyn ObjectStore {
        self.store.as_ref()
    }

    pub(super) fn path(&self, path: &str) -> Result<Path> {
        Path::parse(path).map_err(|e| Error::invalid(format!("{}: {e}", self.shown(path))))
    }

    /// The object of that path; `None` when there is none.
    ///
    /// # Errors
    /// Io.
    pub fn look(&self, path: &str) -> Result<Option<Object>> {
        self.waiter.wait(self.look_now(path))
    }

    /// [`Remote::look`] for many paths at once.
    ///
    /// # Errors
    /// Io.
    pub fn look_all(&self, paths: &[String]) -> Result<Vec<Option<Object>>> {
        let looks = futures::stream::iter(paths).map(|path| self.look_now(path)).buffered(LOOKS);
        self.waiter.wait(looks.try_collect())
    }

    /// [`Remote::look`], where waiting is not for us.
    ///
    /// # Errors
    /// Io.
    pub async fn look_now(&self, path: &str) -> Result<Option<Object>> {
        match self.store.head(&self.path(path)?).await {
            Ok(meta) => object(meta).map(Some),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(e) => Err(failed(format!("look at {}", self.shown(path)), &e)),
        }
    }

    /// Whether anything is below a folder.
    ///
    /// # Errors
    /// Io. Unsupported: a web server that lists nothing.
    pub fn is_folder(&self, folder: &str) -> Result<bool> {
        let path = self.path(folder)?;
        let first = self.waiter.wait(async { self.store.list(Some(&path)).next().await });
        first.transpose().map(|found| found.is_some()).map_err(|e| self.listing(folder, &e))
    }

    /// All objects below a folder.
    ///
    /// # Errors
    /// Io. Unsupported: a web server that lists nothing.
    pub fn list(&self, folder: &str) -> Result<Vec<Object>> {
        let path = self.path(folder)?;
        let found: Vec<ObjectMeta> =
            self.waiter.wait(self.store.list(Some(&path)).try_collect()).map_err(|e| self.listing(folder, &e))?;
        found.into_iter().map(object).collect()
    }

    /// The objects in a folder, and the folders in it, whole paths all.
    ///
    /// # Errors
    /// As [`Remote::list`].
    pub fn list_folder(&self, folder: &str) -> Result<(Vec<Object>, Vec<String>)> {
        let path = self.path(folder)?;
        let found = self.waiter.wait(self.store.list_with_delimiter(Some(&path)));
        let found = found.map_err(|e| self.listing(folder, &e))?;
        let objects = found.objects.into_iter().map(object).collect::<Result<Vec<_>>>()?;
        Ok((objects, found.common_prefixes.into_iter().map(String::from).collect()))
    }

    fn listing(&self, folder: &str, error: &object_store::Error) -> Error {
        let error = failed(format!("list {}", self.shown(folder)), error);
        match error {
            Error::Io { context, message, transient: false, .. } if self.scheme == Scheme::Http => {
                Error::unsupported(format!("{context}: {message}"))
                    .help("a web server without WebDAV lists nothing: name one file")
            }
            other => other,
        }
    }

    /// Some bytes of an object, and what it was when they were read.
    ///
    /// # Errors
    /// Io: NotFound where it is gone.
    pub async fn range(&self, path: &str, range: Range<u64>) -> Result<(Object, Bytes)> {
        let doing = || format!("read {}", self.shown(path));
        let options = GetOptions { range: Some(GetRange::Bounded(range)), ..GetOptions::default() };
        let got = self.store.get_opts(&self.path(path)?, options).await.map_err(|e| failed(doing(), &e))?;
        let found = object(got.meta.clone())?;
        Ok((found, got.bytes().await.map_err(|e| failed(doing(), &e))?))
    }

    /// Reads ranges, those nearer to each other than `near` in one go, some at the same time.
    ///
    /// # Errors
    /// What `read` answers.
    pub async fn near_together<Read>(
        ranges: &[Range<u64>],
        near: u64,
        read: impl Fn(Range<u64>) -> Read + Send,
    ) -> Result<Vec<Bytes>>
    where
        Read: Future<Output = Result<Bytes>> + Send,
    {
        object_store::coalesce_ranges(ranges, read, near).await
    }

    /// Begins to write an object, which replaces one that is there.
    pub fn upload(&self, path: &str) -> Upload {
        Upload::new(self.clone(), path.to_string())
    }

    /// Removes an object; one that isn't there is no error.
    ///
    /// # Errors
    /// Io.
    pub fn delete(&self, path: &str) -> Result<()> {
        let location = self.path(path)?;
        match self.waiter.wait(self.store.delete(&location)) {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(e) => Err(failed(format!("remove {}", self.shown(path)), &e)),
        }
    }

    /// All bytes of an object as they come, and what it is.
    ///
    /// # Errors
    /// Io: NotFound where it is gone.
    pub fn whole(&self, path: &str) -> Result<(Object, BoxStream<'static, Result<Bytes>>)> {
        let doing = format!("read {}", self.shown(path));
        let location = self.path(path)?;
        let got = self.waiter.wait(self.store.get(&location)).map_err(|e| failed(&doing, &e))?;
        let found = object(got.meta.clone())?;
        let pieces = futures::stream::unfold(got.into_stream(), move |mut pieces| {
            let doing = doing.clone();
            async move {
                let piece = match tokio::time::timeout(SILENCE, pieces.next()).await {
                    Ok(piece) => piece?.map_err(|e| failed(&doing, &e)),
                    Err(_) => Err(silent(&doing)),
                };
                Some((piece, pieces))
            }
        });
        Ok((found, pieces.boxed()))
    }
}

fn silent(doing: &str) -> Error {
    Error::Io {
        context: doing.to_string(),
        message: format!("the server has said nothing for {} seconds", SILENCE.as_secs()),
        kind: std::io::ErrorKind::TimedOut,
        transient: true,
    }
}

fn object(meta: ObjectMeta) -> Result<Object> {
    let path = meta.location.to_string();
    let mtime = match &meta.e_tag {
        Some(_) => meta.last_modified.timestamp_nanos_opt(),
        None => meta.last_modified.timestamp().checked_mul(1_000_000_000),
    };
    let mtime = mtime.ok_or_else(|| Error::invalid(format!("{path}: its modification time is out of range")))?;
    Ok(Object { path, size: meta.size, mtime, etag: meta.e_tag })
}

/// Refuses settings that a store has not.
fn check(url: &RemoteUrl, settings: &Settings) -> Result<()> {
    let refuse = |name: &str| Err(Error::invalid(format!("option {name} has no meaning for {}", url.base)));
    if let Some(endpoint) = &settings.endpoint {
        // It may hold what must not be shown, so it isn't.
        let sound = ["http://", "https://"].iter().any(|scheme| endpoint.starts_with(scheme));
        if !sound || endpoint.contains(['@', '?', '#']) {
            return Err(Error::invalid("option endpoint is http:// or https://, a host and a port, and no more")
                .help("credentials come from the environment, as in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"));
        }
        if url.scheme == Scheme::Http {
            return refuse("endpoint");
        }
    }
    match (&settings.region, url.scheme) {
        (Some(_), scheme) if scheme != Scheme::S3 => refuse("region"),
        _ if settings.anonymous && url.scheme == Scheme::Http => refuse("anonymous"),
        _ => Ok(()),
    }
}

/// Shorter than the client's own: a query tries again by itself.
fn retry() -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig { max_backoff: Duration::from_secs(2), ..BackoffConfig::default() },
        max_retries: 5,
        retry_timeout: Duration::from_secs(30),
    }
}

type Opened = Result<Arc<dyn ObjectStore>, object_store::Error>;

/// A server without encryption is spoken to only where the statement names it.
fn is_plain(settings: &Settings) -> bool {
    settings.endpoint.as_ref().is_some_and(|endpoint| endpoint.starts_with("http://"))
}

fn s3(url: &RemoteUrl, settings: &Settings) -> Opened {
    let mut builder = AmazonS3Builder::from_env().with_bucket_name(&url.authority).with_retry(retry());
    if let Some(endpoint) = &settings.endpoint {
        // The one of AWS_ENDPOINT_URL_S3 would win over the other.
        builder = builder.with_endpoint(endpoint).with_config(AmazonS3ConfigKey::S3Endpoint, endpoint);
    }
    if is_plain(settings) {
        builder = builder.with_allow_http(true);
    }
    if let Some(region) = &settings.region {
        builder = builder.with_region(region);
    }
    if settings.anonymous {
        builder = builder.with_skip_signature(true);
    }
    Ok(Arc::new(builder.build()?))
}

fn gcs(url: &RemoteUrl, settings: &Settings) -> Opened {
    let mut builder = GoogleCloudStorageBuilder::from_env().with_bucket_name(&url.authority).with_retry(retry());
    if let Some(endpoint) = &settings.endpoint {
        builder = builder.with_base_url(endpoint);
    }
    if is_plain(settings) {
        builder = builder.with_config(GoogleConfigKey::Client(ClientConfigKey::AllowHttp), "true");
    }
    if settings.anonymous {
        builder = builder.with_skip_signature(true);
    }
    Ok(Arc::new(builder.build()?))
}

fn azure(url: &RemoteUrl, settings: &Settings) -> Opened {
    let mut builder = MicrosoftAzureBuilder::from_env().with_retry(retry());
    builder = match url.authority.contains('@') {
        true => builder.with_url(&url.base),
        false => builder.with_container_name(&url.authority),
    };
    if let Some(endpoint) = &settings.endpoint {
        builder = builder.with_endpoint(endpoint.clone());
    }
    if is_plain(settings) {
        builder = builder.with_allow_http(true);
    }
    if settings.anonymous {
        builder = builder.with_skip_signature(true);
    }
    Ok(Arc::new(builder.build()?))
}

/// A web server. A large file may take long, so only silence ends a request; and none is made again here, as a server
/// that knows no ranges would begin anew where a part was asked for.
fn http(url: &RemoteUrl) -> Opened {
    let options = ClientOptions::new().with_allow_http(url.base.starts_with("http://")).with_timeout_disabled();
    let retry = RetryConfig { max_retries: 0, ..retry() };
    Ok(Arc::new(HttpBuilder::new().with_url(&url.base).with_client_options(options).with_retry(retry).build()?))
}
