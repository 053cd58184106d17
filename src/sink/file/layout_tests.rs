//! Folders, formats and refusals of the file sink.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};
use tempfile::TempDir;

use super::tests::{context, json, named, numbers, on_disk, options, rows, run, schema, visible};
use super::*;

/// The value that a folder `k=…` stands for.
fn unescape(folder: &str) -> Option<String> {
    let value = folder.strip_prefix("k=").unwrap();
    if value == "__HIVE_DEFAULT_PARTITION__" {
        return None;
    }
    let (mut bytes, mut out) = (value.bytes(), Vec::new());
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'%' => {
                let hex = [bytes.next().unwrap(), bytes.next().unwrap()];
                u8::from_str_radix(std::str::from_utf8(&hex).unwrap(), 16).unwrap()
            }
            byte => byte,
        });
    }
    Some(String::from_utf8(out).unwrap())
}

#[test]
fn every_partition_value_comes_back() {
    let dir = TempDir::new().unwrap();
    let values = ["a/b", "", "..", "=", "%41", "a b", "new\nline", "日本", "__HIVE_DEFAULT_PARTITION__", "C:\\x", "*?"];
    let mut sink =
        open(&options(dir.path(), &[("format", "json"), ("partition_by", "k")]), &context("a", "run")).unwrap();
    let all: Vec<(Option<&str>, i64)> = values.iter().map(|v| (Some(*v), 1)).chain([(None, 1)]).collect();
    run(&mut sink, 0, vec![rows(&all)]).unwrap();
    let found: BTreeSet<Option<String>> =
        named(dir.path()).iter().map(|p| unescape(p.split_once('/').unwrap().0)).collect();
    assert_eq!(found, all.iter().map(|(k, _)| k.map(String::from)).collect());
    assert_eq!(on_disk(dir.path()), named(dir.path()));
    assert_eq!(visible(dir.path()), vec![1; values.len() + 1]);
    let file = fs::read_to_string(dir.path().join(&named(dir.path())[0])).unwrap();
    assert_eq!(file, "{\"n\":1}\n");
}

#[test]
fn many_folders_take_turns_at_a_bounded_number_of_files() {
    let dir = TempDir::new().unwrap();
    let mut sink =
        open(&options(dir.path(), &[("format", "csv"), ("partition_by", "k")]), &context("a", "run")).unwrap();
    let keys: Vec<String> = (0..200).map(|n| n.to_string()).collect();
    sink.begin(0).unwrap();
    for turn in 0..2 {
        sink.push(0, rows(&keys.iter().map(|k| (Some(k.as_str()), turn)).collect::<Vec<_>>())).unwrap();
    }
    assert_eq!(sink.commit(&BatchSummary::default()).unwrap().rows, 400);
    let files = committed_files_in(dir.path()).unwrap().unwrap();
    assert_eq!(files.iter().map(|file| file.rows).sum::<u64>(), 400);
    assert_eq!(files.iter().map(|file| &file.path).collect::<BTreeSet<_>>().len(), files.len());
    assert!(files.len() > 200 && files.iter().any(|file| file.path.ends_with("-1.csv")));
    assert_eq!(on_disk(dir.path()), named(dir.path()));
}

fn decompressed(file: &FileEntry, dir: &Path) -> Vec<u8> {
    let bytes = fs::read(dir.join(&file.path)).unwrap();
    assert_eq!((file.size, file.crc32c), (bytes.len() as u64, crc32c::crc32c(&bytes)));
    let mut out = Vec::new();
    match file.path.rsplit('.').next().unwrap() {
        "gz" => drop(std::io::copy(&mut flate2::read::GzDecoder::new(bytes.as_slice()), &mut out).unwrap()),
        "zst" => zstd::stream::copy_decode(bytes.as_slice(), &mut out).unwrap(),
        _ => out = bytes,
    }
    out
}

#[test]
fn formats_and_compressions_hold_the_rows() {
    let values = [(Some("a,\"b\""), 1), (None, -2)];
    for (format, compression, extension) in [
        ("json", "none", ".json"),
        ("json", "gzip", ".json.gz"),
        ("csv", "zstd", ".csv.zst"),
        ("csv", "none", ".csv"),
        ("parquet", "snappy", ".parquet"),
        ("parquet", "zstd", ".parquet"),
        ("parquet", "none", ".parquet"),
    ] {
        let dir = TempDir::new().unwrap();
        let options = options(dir.path(), &[("format", format), ("compression", compression)]);
        let mut sink = open(&options, &context("a", "run")).unwrap();
        run(&mut sink, 0, vec![rows(&values)]).unwrap();
        let files = committed_files_in(dir.path()).unwrap().unwrap();
        assert!(files[0].path.ends_with(extension));
        let bytes = decompressed(&files[0], dir.path());
        match format {
            "json" => assert_eq!(bytes, b"{\"k\":\"a,\\\"b\\\"\",\"n\":1}\n{\"n\":-2}\n"),
            "csv" => assert_eq!(bytes, b"k,n\n\"a,\"\"b\"\"\",1\n,-2\n"),
            _ => {
                let reader =
                    parquet::arrow::arrow_reader::ParquetRecordBatchReader::try_new(bytes::Bytes::from(bytes), 10);
                let found: Vec<_> = reader.unwrap().map(|batch| batch.unwrap()).collect();
                assert_eq!(found, vec![rows(&values).rows]);
            }
        }
    }
}

#[test]
fn what_files_cannot_hold_is_refused() {
    let dir = TempDir::new().unwrap();
    let refuse = |options: &Options, context: &SinkContext| open(options, context).err().unwrap();
    let ours = context("a", "run");
    for (mode, name) in [(OutputMode::Update, "UPDATE"), (OutputMode::Complete, "COMPLETE")] {
        let error = refuse(&json(dir.path()), &SinkContext { mode, ..ours.clone() });
        assert!(error.to_string().contains(&format!("mode {name} replaces them")), "{error}");
        assert!(error.help_text().unwrap().contains("OUTPUT MODE APPEND"));
    }
    assert!(
        refuse(&json(dir.path()), &SinkContext { retracts: true, ..ours.clone() })
            .to_string()
            .contains("take rows back")
    );
    assert!(refuse(&options(dir.path(), &[]), &ours).to_string().contains("needs the option format"));
    assert!(refuse(&Options::default(), &ours).to_string().contains("needs the option path"));
    let parquet_gz = options(dir.path(), &[("format", "parquet"), ("compression", "gzip")]);
    assert_eq!(refuse(&parquet_gz, &ours).help_text(), Some("it has snappy, zstd, none"));
    let web = options(Path::new("https://host/out"), &[("format", "json")]);
    assert_eq!(refuse(&web, &ours).to_string(), "files on a web server: https://host/out");
    let region = options(dir.path(), &[("format", "json"), ("region", "eu-central-1")]);
    assert!(refuse(&region, &ours).to_string().contains("option region is for object stores"));
    let twice = Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, true); 2]));
    assert!(
        refuse(&json(dir.path()), &SinkContext { schema: twice, ..ours.clone() })
            .to_string()
            .contains("two columns named n")
    );
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    assert!(refuse(&json(&file), &ours).to_string().contains("is a file"));
    assert!(!dir.path().join("_levada").exists(), "a refused sink leaves no trace");
}

#[test]
fn a_full_disk_is_named() {
    // Every write to this device fails as on a full disk.
    let device = LocalFolder::new("/dev".into(), "/dev", true);
    for (format, compression) in [("json", "none"), ("csv", "gzip"), ("json", "zstd"), ("parquet", "snappy")] {
        let format = FileFormat::parse(format, Some(compression)).unwrap();
        let file = device.create("full").unwrap();
        let written = writer::PartWriter::new(file, device.shown("full"), format, &schema()).and_then(|mut part| {
            part.write(&numbers(0..50_000).rows)?;
            part.finish()
        });
        match written.err().unwrap() {
            Error::Io { context, kind, .. } => {
                assert_eq!(
                    (context.as_str(), kind),
                    ("writing /dev/full", std::io::ErrorKind::StorageFull),
                    "{format:?}"
                );
            }
            other => panic!("{other}"),
        }
    }
}
