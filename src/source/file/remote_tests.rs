//! Files in an object store: what they give is what local files give, and nothing else.

use std::fmt;
use std::fs;
use std::path::Path as LocalPath;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use arrow::array::StringArray;
use arrow::datatypes::DataType;
use async_trait::async_trait;
use datafusion::logical_expr::{Expr, col, lit};
use futures::stream::BoxStream;
use object_store::client::{HttpError, HttpErrorKind};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, ObjectStoreExt,
    PutMultipartOptions, PutOptions, PutPayload, PutResult,
};
use tokio::runtime::Runtime;

use super::parquet_tests::{ints, write_parquet};
use super::tests::{Got, Stream, gzip, json_ab, read_range, stream};
use super::*;
use crate::storage::{Remote, Scheme};

pub(super) static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().expect("a runtime"));

/// A store in memory that counts what is asked of it, and fails when it is told to.
#[derive(Debug, Default)]
struct Counting {
    inner: InMemory,
    gets: AtomicU64,
    lists: AtomicU64,
    bytes: AtomicU64,
    /// So many gets are refused.
    refuse: AtomicU64,
}

impl fmt::Display for Counting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Counting")
    }
}

#[async_trait]
impl ObjectStore for Counting {
    async fn put_opts(&self, at: &Path, bytes: PutPayload, options: PutOptions) -> object_store::Result<PutResult> {
        self.inner.put_opts(at, bytes, options).await
    }

    async fn put_multipart_opts(
        &self,
        at: &Path,
        options: PutMultipartOptions,
    ) -> object_store::Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(at, options).await
    }

    async fn get_opts(&self, at: &Path, options: GetOptions) -> object_store::Result<GetResult> {
        if self.refuse.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok() {
            let source = HttpError::new(HttpErrorKind::Connect, std::io::Error::other("refused"));
            return Err(object_store::Error::Generic { store: "Counting", source: Box::new(source) });
        }
        let head = options.head;
        let got = self.inner.get_opts(at, options).await?;
        if !head {
            self.gets.fetch_add(1, Ordering::SeqCst);
            self.bytes.fetch_add(got.range.end - got.range.start, Ordering::SeqCst);
        }
        Ok(got)
    }

    fn delete_stream(
        &self,
        paths: BoxStream<'static, object_store::Result<Path>>,
    ) -> BoxStream<'static, object_store::Result<Path>> {
        self.inner.delete_stream(paths)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, object_store::Result<ObjectMeta>> {
        self.lists.fetch_add(1, Ordering::SeqCst);
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> object_store::Result<ListResult> {
        self.lists.fetch_add(1, Ordering::SeqCst);
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> object_store::Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

/// A bucket with objects in it.
#[derive(Clone, Default)]
struct Bucket(Arc<Counting>);

impl Bucket {
    fn put(&self, path: &str, bytes: impl Into<PutPayload>) {
        RUNTIME.block_on(self.0.put(&Path::parse(path).unwrap(), bytes.into())).unwrap();
    }

    fn delete(&self, path: &str) {
        RUNTIME.block_on(self.0.delete(&Path::parse(path).unwrap())).unwrap();
    }

    /// All files below a directory, in their order, below `in/`.
    fn copy(dir: &LocalPath) -> Self {
        let bucket = Bucket::default();
        let place = Place::parse(dir.to_str().unwrap(), &Default::default(), None).unwrap();
        for file in place.list().unwrap() {
            bucket.put(&format!("in/{}", file.path), fs::read(dir.join(&file.path)).unwrap());
        }
        bucket
    }

    fn remote(&self, scheme: Scheme) -> Remote {
        let _entered = RUNTIME.enter();
        Remote::over(self.0.clone(), "s3://b", scheme).unwrap()
    }

    fn place(&self, path: &str) -> Place {
        self.place_with(path, Scheme::S3, None)
    }

    fn place_with(&self, path: &str, scheme: Scheme, manifest: Option<Manifest>) -> Place {
        Place::remote(&format!("s3://b/{path}"), self.remote(scheme), path, manifest).unwrap()
    }

    fn list(&self, path: &str) -> Vec<String> {
        self.place(path).list().unwrap().into_iter().map(|file| file.path).collect()
    }

    /// Everything below `in/`, read as `stream` says.
    fn read(&self, stream: &Stream, partitions: usize, columns: Option<Vec<usize>>, filters: Vec<Expr>) -> Got {
        self.read_at(stream, self.place("in"), partitions, columns, filters)
    }

    fn read_at(
        &self,
        stream: &Stream,
        place: Place,
        partitions: usize,
        columns: Option<Vec<usize>>,
        filters: Vec<Expr>,
    ) -> Got {
        let (source, range) = taken(stream, place);
        read_range(&source, range, partitions, columns, filters)
    }
}

/// A source, and the range of all that is there.
fn taken(stream: &Stream, place: Place) -> (FileSource, OffsetRange) {
    let mut source = stream.try_open_at(Some(place)).unwrap();
    let end = source.latest_offset(None, &ReadLimit { unlimited: true, ..ReadLimit::default() }).unwrap().unwrap();
    (source, OffsetRange { start: None, end })
}

fn sorted(mut rows: Vec<String>) -> Vec<String> {
    rows.sort();
    rows
}

#[test]
fn objects_give_the_rows_that_files_give() {
    let lines: String = (0..40_000).map(|n| format!("{{\"a\":{n},\"b\":\"x{}\"}}\n", n % 77)).collect();
    let json = json_ab()
        .file("1.json", "\u{feff}{\"a\":-1}\n\nbad\n{\"a\":-2}")
        .file("2.json", &lines)
        .file("3.json.gz", gzip(lines.as_bytes()))
        .file("4.json.zst", &zstd::encode_all(lines.as_bytes(), 3).unwrap()[..20_000])
        .file("5.json", "")
        .file("sub/k=1/6 [x]%20.json", "{\"a\":7}\n")
        .file("_hidden.json", "{\"a\":8}\n")
        .with("on_error", "skip");
    let csv = stream("csv", &[("a", DataType::Int64), ("b", DataType::Utf8View)])
        .file("1.csv", (0..30_000).map(|n| format!("{n},\"two\nlines\"\n")).collect::<String>())
        .meta("l", "line", DataType::Int64)
        .meta("n", "name", DataType::Utf8View);
    let text = stream("text", &[("value", DataType::Utf8View)]).file("1", "a\nb\r\n\nc");
    for stream in [json, csv, text] {
        let bucket = Bucket::copy(stream.dir.path());
        for partitions in [1, 3] {
            let (local, there) =
                (stream.read_with(partitions, None, vec![]), bucket.read(&stream, partitions, None, vec![]));
            assert!(there.error.is_none(), "{:?}", there.error);
            assert_eq!(local.bad_count, there.bad_count);
            assert!(sorted(local.rows) == sorted(there.rows));
            let whole = bucket.place_with("in/", Scheme::Http, None);
            let whole = bucket.read_at(&stream, whole, partitions, None, vec![]);
            assert!(whole.error.is_none() && whole.bad_count == local.bad_count, "{:?}", whole.error);
        }
        assert!(stream.read().rows == bucket.read(&stream, 1, None, vec![]).rows, "in order");
    }
}

#[test]
fn large_objects_come_in_parts_and_memory_stays_small() {
    // More than two parts, and no part ends with a line.
    let lines: String = (0..260_000).map(|n| format!("{{\"a\":{n},\"b\":\"{}\"}}\n", "x".repeat(n % 130))).collect();
    assert!(lines.len() > 20 << 20);
    let json = json_ab().file("f.json", &lines);
    let bucket = Bucket::copy(json.dir.path());
    let want: Vec<String> = (0..260_000).map(|n| n.to_string()).collect();
    assert!(bucket.read(&json, 1, Some(vec![0]), vec![]).rows == want);
    assert!(bucket.0.gets.load(Ordering::SeqCst) <= 6);
    let spread = bucket.read(&json, 2, Some(vec![0]), vec![]);
    assert_eq!((spread.streams, spread.rows.len()), (2, want.len()));
    let by_line = json_ab().meta("l", "line", DataType::Int64);
    let got = bucket.read(&by_line, 1, Some(vec![2]), vec![]);
    assert_eq!((got.rows.len(), got.rows.last().map(String::as_str)), (want.len(), Some("260000")));
    let error = bucket.read(&json_ab().with("max_record_bytes", "4 MiB"), 1, None, vec![]).error;
    assert!(error.is_none());
    let bad = Bucket::default();
    bad.put("in/f.json", format!("{lines}bad\n"));
    let error = bad.read(&json_ab(), 2, None, vec![]).error.map(|e| e.to_string()).unwrap_or_default();
    assert!(error.starts_with("bad record in stream s, s3://b/in/f.json:260001: "), "{error}");
}

#[test]
fn parquet_in_a_store_is_pruned_and_asks_for_little() {
    let parquet = stream("parquet", &[("a", DataType::Int64), ("b", DataType::Utf8View)]);
    let text: Vec<String> = (0..200_000u64).map(|n| format!("{:x}", n.wrapping_mul(0x9E37_79B9_7F4A_7C15))).collect();
    let columns = vec![("a", ints(0..200_000)), ("b", Arc::new(StringArray::from(text)) as _)];
    write_parquet(parquet.dir.path(), "f.parquet", columns, 1);
    let bucket = Bucket::copy(parquet.dir.path());
    let size = fs::metadata(parquet.dir.path().join("f.parquet")).unwrap().len();
    for partitions in [1, 2] {
        let (local, there) =
            (parquet.read_with(partitions, None, vec![]), bucket.read(&parquet, partitions, None, vec![]));
        assert!(there.error.is_none() && sorted(local.rows) == sorted(there.rows), "{:?}", there.error);
    }
    bucket.0.bytes.store(0, Ordering::SeqCst);
    let filtered = bucket.read(&parquet, 1, Some(vec![0]), vec![col("s.a").gt(lit(199_500i64))]);
    assert_eq!(filtered.rows.last().map(String::as_str), Some("199999"));
    let read = bucket.0.bytes.load(Ordering::SeqCst);
    assert!(filtered.rows.len() < 3_000 && read < size / 4, "{} rows, {read} of {size} bytes", filtered.rows.len());
    let mut inferred = stream("parquet", &[]);
    inferred.fields = None;
    assert_eq!(inferred.try_open_at(Some(bucket.place("in"))).unwrap().schema().fields().len(), 2);
    bucket.put("in/g.parquet", "no parquet at all");
    let error = bucket.read(&parquet, 1, None, vec![]).error.map(|e| e.to_string()).unwrap_or_default();
    assert!(error.contains("s3://b/in/g.parquet: the file is damaged, or no parquet"), "{error}");
    let narrow = stream("parquet", &[("a", DataType::Int8)]);
    bucket.delete("in/g.parquet");
    let error = bucket.read(&narrow, 1, None, vec![]).error.map(|e| e.to_string()).unwrap_or_default();
    assert!(error.contains("s3://b/in/f.parquet: column a is TINYINT and 128 is out of its range: row 129"), "{error}");
}

#[test]
fn a_logged_range_gives_the_same_rows_or_names_the_object() {
    let parquet = stream("parquet", &[("a", DataType::Int64)]);
    write_parquet(parquet.dir.path(), "f", vec![("a", ints(0..9))], 1);
    let content = fs::read(parquet.dir.path().join("f")).unwrap();
    let large = "{\"a\":1}\n".repeat(2 << 20);
    for (stream, first, second) in [
        (json_ab(), "{\"a\":1}\n".into(), "{\"a\":2}\n".into()),
        (json_ab(), "{\"a\":1}\n".into(), "{\"a\":1}\n{\"a\":2}\n".into()),
        (json_ab(), large.clone().into_bytes(), large.replace('1', "2").into_bytes()),
        (json_ab(), large.clone().into_bytes(), "{\"a\":1}\n".into()),
        (json_ab().with("compression", "gzip"), Vec::new(), gzip(b"{\"a\":2}\n")),
        (json_ab().with("compression", "gzip"), gzip(b"{\"a\":1}\n"), gzip(b"{\"a\":2}\n")),
        (parquet, content.clone(), content[..content.len() - 1].to_vec()),
    ] {
        let first: Vec<u8> = first;
        let second: Vec<u8> = second;
        let bucket = Bucket::default();
        bucket.put("in/f", first.clone());
        let (source, range) = taken(&stream, bucket.place("in"));
        let once = read_range(&source, range.clone(), 2, None, vec![]);
        assert!(once.error.is_none(), "{:?}", once.error);
        let again = read_range(&source, range.clone(), 1, None, vec![]);
        assert!(again.error.is_none() && sorted(once.rows) == sorted(again.rows));
        bucket.put("in/f", second);
        let error = read_range(&source, range.clone(), 1, None, vec![]).error.unwrap();
        assert!(matches!(error, Error::Conflict { .. }), "{error:?}");
        assert!(error.to_string().starts_with("s3://b/in/f changed after it was taken: it "), "{error}");
        let mut source = source;
        let listed = source.latest_offset(Some(&range.end), &ReadLimit::default()).unwrap_err();
        assert_eq!(listed.to_string(), error.to_string());
        bucket.delete("in/f");
        let gone = read_range(&source, range, 1, None, vec![]).error.unwrap();
        assert!(gone.is_transient() && gone.to_string().starts_with("read s3://b/in/f: the file was listed"), "{gone}");
    }
}

#[test]
fn files_are_taken_once_in_order_by_limits_and_after_a_restart() {
    let stream = json_ab().with("max_files_per_trigger", "100");
    let bucket = Bucket::default();
    for n in 0..250 {
        bucket.put(&format!("in/{n:03}.json"), format!("{{\"a\":{n}}}\n"));
    }
    let mut source = stream.try_open_at(Some(bucket.place("in/*.json"))).unwrap();
    let (mut at, mut rows) = (None, Vec::new());
    while let Some(end) = source.latest_offset(at.as_ref(), &ReadLimit::default()).unwrap() {
        let got = read_range(&source, OffsetRange { start: at, end: end.clone() }, 1, Some(vec![0]), vec![]);
        assert!(got.rows.len() <= 100 && got.error.is_none());
        rows.extend(got.rows);
        source.commit(&end).unwrap();
        at = Some(end);
        if rows.len() == 100 {
            // Listed before, and gone or new when their turn comes.
            bucket.delete("in/249.json");
            bucket.put("in/250.json", "{\"a\":250}\n");
        }
    }
    assert_eq!(rows, (0..251).filter(|n| *n != 249).map(|n| n.to_string()).collect::<Vec<_>>());
    assert!(bucket.0.lists.load(Ordering::SeqCst) <= 4, "an old list is looked through by object");
}

#[test]
fn what_may_pass_is_tried_again_and_changes_nothing() {
    let bucket = Bucket::default();
    bucket.put("in/f.json", "{\"a\":1}\n".repeat(1_000));
    let (source, range) = taken(&json_ab(), bucket.place("in"));
    bucket.0.refuse.store(1, Ordering::SeqCst);
    let error = read_range(&source, range.clone(), 1, None, vec![]).error.unwrap();
    assert!(error.is_transient() && error.to_string().starts_with("read s3://b/in/f.json: "), "{error}");
    assert_eq!(read_range(&source, range, 1, None, vec![]).rows.len(), 1_000);
}

#[test]
fn globs_and_folders_are_those_of_a_local_place() {
    let names = ["p=1/a.json", "p=1/b.csv", "p=2/c.json", "p=2/deep/d.json", "_x/e.json", "f.json", "[g].json", ".h"];
    let names = names.into_iter().chain(["a", "a.b/x", "a/_SUCCESS", "z/.t/x"]);
    // A name can't be a file and a folder in a file system.
    let dir = tempfile::tempdir().unwrap();
    let bucket = Bucket::default();
    for name in names {
        let name = if name == "a" { "a/in" } else { name };
        super::discovery::tests::write(dir.path(), name, b"x", 1_000);
        bucket.put(&format!("r/{name}"), "x");
    }
    let local = |path: &str| {
        let place = Place::parse(&format!("{}/{path}", dir.path().display()), &Default::default(), None).unwrap();
        sorted(place.list().unwrap().into_iter().map(|file| file.path).collect())
    };
    for path in [
        "",
        "*/*.json",
        "*/*",
        "**/*.json",
        "p=2/**",
        "p=[2-9]/*.json",
        "{f,p=?/{a,c}}.json",
        "_x/*",
        "_*/*",
        "nothing*",
        "[g].json",
        "*",
        "p*",
        "a*",
        "**",
        "p=1/a.json",
        "p=1",
        "**/a*/*",
        "z/**/x",
    ] {
        assert_eq!(sorted(bucket.list(&format!("r/{path}"))), local(path), "{path}");
    }
    assert_eq!(bucket.list("r/not-yet"), Vec::<String>::new(), "it may come");
    assert_eq!(bucket.list("nowhere/*.json"), Vec::<String>::new());
    bucket.0.lists.store(0, Ordering::SeqCst);
    for (path, lists) in [("r/*.json", 1), ("r", 1), ("r/**/*.json", 1), ("r/f.json", 0)] {
        bucket.0.lists.store(0, Ordering::SeqCst);
        bucket.list(path);
        assert_eq!(bucket.0.lists.load(Ordering::SeqCst), lists, "{path}");
    }
    // Tools leave an empty object where a folder begins.
    bucket.put("m/k", "");
    bucket.put("m/k/f", "x");
    assert_eq!(bucket.list("m"), ["k/f"]);
}

#[test]
fn a_manifest_in_a_store_decides_what_is_there() {
    let bucket = Bucket::default();
    for name in ["k=1/part-0", "k=1/part-1", "_levada/0"] {
        bucket.put(&format!("out/{name}"), "{\"a\":1}\n");
    }
    let refused = bucket.place("out").list().unwrap_err().to_string();
    assert_eq!(refused, "not supported yet: reading s3://b/out, which a file sink of Levada writes");
    let manifest = Manifest {
        files: |store| {
            assert_eq!(store.list("_levada")?, ["0"]);
            assert!(store.get("_levada/0")?.is_some() && store.get("_levada/1")?.is_none());
            Ok(vec![Promised { path: "k=1/part-1".into(), size: 8, crc32c: 0 }])
        },
        folder: |name| Some((name[..1].to_string(), Some(name[2..].to_string()))),
    };
    let place = bucket.place_with("out", Scheme::S3, Some(manifest));
    let files = place.list().unwrap();
    assert_eq!(files.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(), ["k=1/part-1"]);
    assert_eq!(place.folder_values(&files[0]).unwrap(), [("k".to_string(), Some("1".to_string()))]);
}
