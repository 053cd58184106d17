//! Tests: the examples in `docs/checkpoint.md` are what is written, byte for byte.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;

use super::metadata::Metadata;
use super::*;

const PAGE: &str = include_str!("../../docs/checkpoint.md");

fn assert_shown(bytes: &[u8]) {
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    assert!(PAGE.contains(&format!("```text\n{text}```")), "docs/checkpoint.md does not show this file:\n{text}");
}

fn map<V: Clone>(entries: &[(&str, V)]) -> BTreeMap<String, V> {
    entries.iter().map(|(name, value)| (name.to_string(), value.clone())).collect()
}

#[test]
fn metadata_is_as_documented() {
    let metadata = Metadata {
        id: "5f0c2a55-6d0c-4f8e-9f57-0d8f6f2f8f11".into(),
        format: 1,
        levada: "0.1.0".into(),
        query: "SELECT channel, count(*) AS n FROM bids GROUP BY window(ts, '10 seconds'), channel".into(),
    };
    assert_shown(&text::encode(&[text::to_line(&metadata).unwrap()]));
}

#[test]
fn logs_are_as_documented() {
    let bids = SourceOffsets { start: Some(json!({"log": 3})), end: Some(json!({"log": 5})) };
    let offsets = OffsetEntry {
        timestamp: 1_704_067_260_000,
        watermarks: map(&[("bids", 1_704_067_219_500)]),
        watermark: Some(1_704_067_219_500),
        drains: false,
        conf: map(&[
            ("multiple_watermark_policy", "min".to_string()),
            ("operators", "aggregate".to_string()),
            ("output_mode", "update".to_string()),
        ]),
        statics: map(&[("channels", "2 files, newest 1704060000000".to_string())]),
        sources: map(&[("bids", bids), ("clicks", SourceOffsets::default())]),
    };
    assert_shown(&offset_log::encode(7, &offsets).unwrap());
    let drained = OffsetEntry {
        watermark: None,
        drains: true,
        statics: map(&[]),
        sources: map(&[("bids", SourceOffsets { start: Some(json!({"log": 5})), end: Some(json!({"log": 5})) })]),
        ..offsets
    };
    let bytes = offset_log::encode(8, &drained).unwrap();
    assert_eq!(offset_log::decode(8, "p", &bytes).unwrap(), drained);
    assert_shown(&bytes);
    let watermarks = map(&[("bids", 1_704_067_229_750)]);
    let commit = CommitEntry { watermarks, watermark: Some(1_704_067_229_750), ..CommitEntry::default() };
    assert_shown(&commit_log::encode(7, &commit).unwrap());
    let claim = commit_log::claim(7, "0c7e9f9e-2f1c-4f3e-8a3c-5f3f7a1c9d55").unwrap();
    assert_shown(&claim);
    assert!(commit_log::is_claim(7, "p", &claim) && !commit_log::is_claim(8, "p", &claim));
    assert!(!commit_log::is_claim(7, "p", &commit_log::encode(7, &commit).unwrap()));
}

#[test]
fn source_logs_are_as_documented() {
    let dir = tempfile::tempdir().unwrap();
    let store: Arc<dyn Store> = Arc::new(LocalStore::volatile(dir.path()));
    let log = SourceLog::stored(Arc::clone(&store), "bids");
    for n in 0..=10 {
        log.append(n, &[json!({"path": format!("data/{n:02}.json"), "size": 512})]).unwrap();
    }
    assert_eq!(store.list("sources/bids").unwrap(), ["0-9.compact", "10"]);
    assert_shown(&store.get("sources/bids/10").unwrap().unwrap());
}
