//! What the model remembers of batches.

use std::sync::Arc;
use std::time::Duration;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray, TimestampMillisecondArray};
use arrow::datatypes::Schema;
use serde_json::json;

use super::model::{Change, Model, Row};
use crate::checkpoint::Failpoints;
use crate::delta::{Delta, Op};
use crate::parser::OutputMode;
use crate::sink::{BatchSummary, SinkContext};

/// 2026-01-01T00:00:00Z
pub(super) const START: i64 = 1_767_225_600_000;

/// Rows of `window_end, page, count`; a minute is one of 2026-01-01.
pub(super) fn rows(rows: &[(i64, &str, Option<i64>)]) -> RecordBatch {
    let times = TimestampMillisecondArray::from_iter_values(rows.iter().map(|row| START + row.0 * 60_000));
    let pages = StringArray::from_iter_values(rows.iter().map(|row| row.1));
    let counts: Int64Array = rows.iter().map(|row| row.2).collect();
    let columns: [(&str, ArrayRef, bool); 3] =
        [("window_end", Arc::new(times), true), ("page", Arc::new(pages), true), ("count", Arc::new(counts), true)];
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

pub(super) fn context(mode: OutputMode, keys: Option<Vec<usize>>, retracts: bool) -> SinkContext {
    SinkContext {
        query: "per_min".into(),
        query_id: "id".into(),
        run_id: "run".into(),
        mode,
        schema: Arc::new(Schema::new(rows(&[]).schema().fields().clone())),
        only_adds: mode == OutputMode::Update && keys.is_none() && !retracts,
        keys,
        retracts,
        delay: Some(2_000),
        partitions: 1,
        committed: None,
        failpoints: Failpoints::default(),
        durable: false,
    }
}

pub(super) fn keyed() -> Model {
    Model::new(&context(OutputMode::Update, Some(vec![0, 1]), false))
}

pub(super) fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(super) fn summary(input_rows: u64, watermark: Option<i64>) -> BatchSummary {
    BatchSummary { input_rows, watermark: watermark.map(|m| START + m * 60_000), drains: false, state_rows: Some(3) }
}

fn shown(model: &Model) -> Vec<String> {
    let text = |row: &&Row| {
        let cells: Vec<&str> = row.cells.iter().map(|cell| cell.as_deref().unwrap_or("NULL")).collect();
        let mark = if row.gone {
            " gone"
        } else if row.last_word {
            " final"
        } else {
            ""
        };
        format!("{} {}{mark}", &cells[0][11..16], cells[1..].join(" "))
    };
    model.rows(None, "").iter().map(text).collect()
}

#[test]
fn a_row_is_known_again_by_its_key() {
    let mut model = keyed();
    let first = Delta::insert(rows(&[(5, "/a", Some(6)), (5, "/b", Some(1)), (4, "/a", Some(31))]));
    model.apply(0, &[first], &summary(38, None), at(1)).unwrap();
    let ids: Vec<u64> = model.rows(None, "").iter().map(|row| row.id).collect();
    // The newest window first, then by key.
    assert_eq!(shown(&model), ["00:05 /a 6", "00:05 /b 1", "00:04 /a 31"]);
    let second = Delta::insert(rows(&[(5, "/b", Some(0)), (5, "/a", Some(7)), (5, "/b", Some(0))]));
    model.apply(1, &[second], &summary(2, None), at(2)).unwrap();
    assert_eq!(shown(&model), ["00:05 /a 7", "00:05 /b 0", "00:04 /a 31"]);
    let rows = model.rows(None, "");
    assert_eq!(rows.iter().map(|row| row.id).collect::<Vec<_>>(), ids, "rows keep their place");
    assert_eq!(rows[0].changes, [(2, Change::Up)]);
    assert_eq!((&rows[1].changes[..], rows[1].changed), (&[(2, Change::Down)][..], Some(at(2))));
    assert_eq!((rows[2].changed, rows[2].came), (None, Some(at(1))));
    assert_eq!((model.changed, model.batches, model.changelog.len()), (2, 2, 6));
}

#[test]
fn what_is_taken_away_is_shown_once_more() {
    let mut model = Model::new(&context(OutputMode::Update, Some(vec![1]), true));
    model.apply(0, &[Delta::insert(rows(&[(1, "/a", Some(1)), (1, "/b", None)]))], &summary(2, None), at(1)).unwrap();
    let ops = vec![Op::UpdateBefore, Op::UpdateAfter, Op::Delete];
    let changes = Delta::changes(rows(&[(1, "/b", None), (1, "/b", Some(2)), (1, "/a", Some(1))]), ops).unwrap();
    model.apply(1, &[changes], &summary(2, None), at(2)).unwrap();
    assert_eq!(shown(&model), ["00:01 /a 1 gone", "00:01 /b 2"]);
    assert_eq!(model.rows(None, "")[1].changes, [(2, Change::Other)], "from NULL");
    model.apply(2, &[], &summary(0, None), at(3)).unwrap();
    assert_eq!(shown(&model), ["00:01 /b 2"]);
    // What has gone and comes again is new.
    let back = Delta::changes(rows(&[(1, "/a", Some(5))]), vec![Op::Insert]).unwrap();
    model.apply(3, &[back], &summary(1, None), at(4)).unwrap();
    assert_eq!(model.rows(None, "")[0].came, Some(at(4)));
}

#[test]
fn without_keys_equal_rows_are_told_apart() {
    let mut model = Model::new(&context(OutputMode::Update, None, true));
    let same = rows(&[(1, "/a", Some(1)), (1, "/a", Some(1)), (2, "/b", Some(2))]);
    model.apply(0, &[Delta::insert(same)], &summary(3, None), at(1)).unwrap();
    let id = model.rows(None, "/b")[0].id;
    let ops = vec![Op::Delete, Op::UpdateBefore, Op::UpdateAfter];
    let changes = rows(&[(1, "/a", Some(1)), (2, "/b", Some(2)), (2, "/b", Some(3))]);
    model.apply(1, &[Delta::changes(changes, ops).unwrap()], &summary(3, None), at(2)).unwrap();
    assert_eq!(shown(&model), ["00:01 /a 1", "00:01 /a 1 gone", "00:02 /b 3"].map(String::from));
    let changed = model.rows(None, "/b")[0];
    assert_eq!((changed.id, &changed.changes[..]), (id, &[(2, Change::Up)][..]), "the same row, with another value");
}

#[test]
fn a_complete_result_keeps_its_order_and_tells_what_changed() {
    let mut model = Model::new(&context(OutputMode::Complete, Some(vec![1]), false));
    let all = |rows_: &[(i64, &str, Option<i64>)]| [Delta::insert(rows(rows_))];
    model
        .apply(0, &all(&[(1, "/z", Some(9)), (1, "/a", Some(5)), (1, "/b", Some(4))]), &summary(18, None), at(1))
        .unwrap();
    assert_eq!(shown(&model), ["00:01 /z 9", "00:01 /a 5", "00:01 /b 4"]);
    model.apply(1, &all(&[(1, "/a", Some(10)), (1, "/z", Some(9))]), &summary(5, None), at(2)).unwrap();
    assert_eq!(shown(&model), ["00:01 /a 10", "00:01 /z 9", "00:01 /b 4 gone"]);
    assert_eq!(model.changed, 1);
    let log: Vec<String> =
        model.changelog.iter().map(|c| format!("{} {} {}", c.batch, c.op, c.cells[1].as_deref().unwrap())).collect();
    assert_eq!(log, ["0 +I /z", "0 +I /a", "0 +I /b", "1 +U /a", "1 -D /b"]);
}

#[test]
fn what_only_grows_is_its_last_thousand_rows() {
    let mut model = Model::new(&context(OutputMode::Append, Some(vec![0, 1]), false));
    assert!(model.grows());
    let many: Vec<_> = (0..1_700).map(|n| (0, "/a", Some(n))).collect();
    let deltas = [Delta::insert(rows(&many[..300])), Delta::insert(rows(&many[300..]))];
    model.apply(0, &deltas, &summary(1_700, None), at(1)).unwrap();
    model.apply(1, &[Delta::insert(rows(&[(0, "/b", Some(-1))]))], &summary(1, None), at(2)).unwrap();
    let shown = shown(&model);
    assert_eq!((shown.len(), shown[0].as_str(), shown[999].as_str()), (1_000, "00:00 /a 701", "00:00 /b -1"));
    assert_eq!((model.forgotten, model.output.over(at(3), 60)), (701, vec![1_700.0, 1.0]));
}

#[test]
fn closed_windows_are_final_and_are_the_first_to_be_forgotten() {
    let mut model = keyed();
    model
        .apply(0, &[Delta::insert(rows(&[(1, "/a", Some(1)), (2, "/a", Some(1))]))], &summary(2, None), at(1))
        .unwrap();
    model.apply(1, &[], &summary(0, Some(1)), at(2)).unwrap();
    assert_eq!(shown(&model), ["00:02 /a 1", "00:01 /a 1 final"]);
    let pages: Vec<String> = (0..10_000).map(|n| format!("/p{n}")).collect();
    let many: Vec<_> = pages.iter().map(|page| (2, page.as_str(), Some(1))).collect();
    model.apply(2, &[Delta::insert(rows(&many))], &summary(10_000, Some(1)), at(3)).unwrap();
    assert!(model.len() <= 10_000 && model.forgotten >= 2, "{} {}", model.len(), model.forgotten);
    assert!(model.rows(None, "/a").is_empty(), "the closed one, and the one that was not spoken of for longest");
    assert_eq!(model.rows(None, "/p9999").len(), 1);
}

#[test]
fn rows_are_ordered_and_filtered() {
    let mut model = keyed();
    let first = rows(&[(1, "/a", Some(10)), (1, "/B", Some(9)), (2, "/c", None), (2, "/d", Some(9))]);
    model.apply(0, &[Delta::insert(first)], &summary(4, None), at(1)).unwrap();
    let pages = |order, filter: &str| -> Vec<String> {
        model.rows(order, filter).iter().map(|row| row.cells[1].clone().unwrap()).collect()
    };
    assert_eq!(pages(Some((2, false)), ""), ["/d", "/B", "/a", "/c"]);
    assert_eq!(pages(Some((2, true)), ""), ["/c", "/a", "/d", "/B"]);
    assert_eq!(pages(None, "/b"), ["/B"]);
    assert_eq!(pages(None, "00:02"), ["/c", "/d"]);
}

#[test]
fn documents_are_learned_from_once() {
    let mut model = keyed();
    let document = |batch: u64| {
        json!({
            "batchId": batch, "lateRows": 2, "durationMs": {"triggerExecution": 12},
            "eventTime": {"max": "2026-01-01T00:05:00.000Z", "watermark": "2026-01-01T00:04:55.000Z"},
            "stateOperators": [{"name": "agg", "numRowsTotal": 18, "numRowsUpdated": 3, "numRowsRemoved": 1, "memoryUsedBytes": 2100}],
        })
    };
    [4, 5, 5, 3].into_iter().for_each(|batch| model.learn(&document(batch)));
    let facts = &model.facts;
    assert_eq!((facts.batch, facts.late, facts.lag, facts.took_ms), (Some(5), Some(4), Some(5_000), Some(12)));
    assert_eq!(facts.state_bytes, Some(2100));
    assert_eq!(facts.states, [("agg".to_string(), Some(18), 3, 1)]);
    model.learn(&json!({"batchId": 6}));
    assert_eq!((model.facts.batch, model.facts.late), (Some(6), Some(4)));
}

#[test]
fn a_watermark_that_stands_still_is_suspicious() {
    let mut model = keyed();
    for batch in 0..=10 {
        model.apply(batch, &[], &summary(1, Some(1)), at(batch)).unwrap();
        assert_eq!(model.seems_idle(), batch == 10, "{batch}");
    }
    model.apply(11, &[], &summary(1, Some(2)), at(11)).unwrap();
    assert!(!model.seems_idle());
    // Without input it has no reason to move.
    for batch in 12..40 {
        model.apply(batch, &[], &summary(0, Some(2)), at(batch)).unwrap();
    }
    assert!(!model.seems_idle());
}

/// The rows of a statement that is run again and again, with what changed in them.
fn watched(model: &Model) -> Vec<String> {
    let last = model.log.back().map(|batch| batch.at);
    let text = |row: &&Row| {
        let cells: Vec<&str> = row.cells.iter().map(|cell| cell.as_deref().unwrap_or("NULL")).collect();
        let mark = match () {
            () if row.gone => " gone".to_string(),
            () if row.came.is_some() && row.came == last => " new".to_string(),
            () if row.changed == last && !row.changes.is_empty() => format!(" {:?}", row.changes),
            () => String::new(),
        };
        format!("{}{mark}", cells[1..].join(" "))
    };
    model.rows(None, "").iter().map(text).collect()
}

#[test]
fn a_result_is_held_against_the_one_before_by_its_first_column_or_by_place() {
    let mut model = Model::of_results(&rows(&[]).schema());
    let mut take = |run: u64, result: &[(i64, &str, Option<i64>)]| {
        model.take_result(run, &[rows(result)], at(run)).unwrap();
        watched(&model)
    };
    // Nothing of the first is new. Its first column tells its rows apart.
    assert_eq!(take(1, &[(5, "/a", Some(1)), (4, "/b", Some(2))]), ["/a 1", "/b 2"]);
    let second = take(2, &[(6, "/c", Some(1)), (5, "/a", Some(3))]);
    assert_eq!(second, ["/c 1 new", "/a 3 [(2, Up)]", "/b 2 gone"]);
    assert_eq!(take(3, &[(6, "/c", Some(1)), (5, "/a", Some(3))]), ["/c 1", "/a 3"]);
    // Now it does not.
    let fourth = take(4, &[(5, "/a", Some(3)), (5, "/b", Some(9))]);
    assert_eq!(fourth, ["/a 3 [(0, Other), (1, Other), (2, Up)]", "/b 9 [(1, Other), (2, Up)]"]);
    // One row is the same row.
    assert_eq!(take(5, &[(1, "/a", Some(2))])[0], "/a 2 [(0, Other), (2, Down)]");
    assert_eq!(take(6, &[(2, "/a", Some(2))]), ["/a 2 [(0, Other)]"]);
    assert_eq!(take(7, &[]), ["/a 2 gone"]);
}
