//! Batches of signed rows, and what readers and the table's state see of them.

use super::*;
use crate::delta::Op;
use arrow::array::{AsArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};
use datafusion::prelude::SessionContext;

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("k", DataType::Utf8, true), Field::new("n", DataType::Int64, false)]))
}

fn rows(rows: &[(Option<&str>, i64)]) -> RecordBatch {
    let keys = StringArray::from_iter(rows.iter().map(|row| row.0));
    let numbers = Int64Array::from_iter_values(rows.iter().map(|row| row.1));
    RecordBatch::try_new(schema(), vec![Arc::new(keys), Arc::new(numbers)]).unwrap()
}

fn opened(mode: OutputMode) -> (Arc<ResultTable>, TableSink) {
    let table = ResultTable::new("t", schema()).unwrap();
    let context = SinkContext {
        query: "q".into(),
        query_id: "id".into(),
        run_id: "run".into(),
        mode,
        schema: schema(),
        retracts: mode == OutputMode::Update,
        keys: None,
        only_adds: false,
        delay: None,
        partitions: 2,
        committed: None,
        failpoints: Default::default(),
        durable: false,
    };
    let sink = open(table.clone(), &context).unwrap();
    (table, sink)
}

fn commit(sink: &mut TableSink, batch: BatchId, changes: Vec<Delta>) -> Result<SinkCommit> {
    sink.begin(batch)?;
    for (partition, changes) in changes.into_iter().enumerate() {
        sink.push(partition, changes)?;
    }
    sink.commit(&BatchSummary::default())
}

fn content(table: &ResultTable) -> Vec<(Option<String>, i64)> {
    let mut found = Vec::new();
    for batch in table.snapshot().unwrap().iter() {
        let (keys, numbers) = (batch.column(0).as_string::<i32>(), batch.column(1).as_primitive::<Int64Type>());
        found.extend(keys.iter().zip(numbers.values()).map(|(k, n)| (k.map(String::from), *n)));
    }
    found
}

fn expect(rows: &[(Option<&str>, i64)]) -> Vec<(Option<String>, i64)> {
    rows.iter().map(|(k, n)| (k.map(String::from), *n)).collect()
}

#[test]
fn signed_rows_change_a_multiset() {
    let (table, mut sink) = opened(OutputMode::Update);
    let first = rows(&[(Some("b"), 1), (None, 1), (Some("a"), 1), (Some("a"), 1)]);
    assert_eq!(commit(&mut sink, 0, vec![Delta::insert(first)]).unwrap().rows, 4);
    assert_eq!(content(&table), expect(&[(None, 1), (Some("a"), 1), (Some("a"), 1), (Some("b"), 1)]));
    let update = rows(&[(Some("a"), 1), (Some("a"), 2), (Some("b"), 1)]);
    let ops = vec![Op::UpdateBefore, Op::UpdateAfter, Op::Delete];
    commit(&mut sink, 1, vec![Delta::changes(update, ops).unwrap()]).unwrap();
    assert_eq!(content(&table), expect(&[(None, 1), (Some("a"), 1), (Some("a"), 2)]));
    let changes = table.changes().unwrap();
    assert_eq!(changes.upserts, vec![(rows(&[(Some("a"), 1), (Some("a"), 2)]), Int64Array::from(vec![1, 1]))]);
    assert_eq!(changes.deletes, vec![rows(&[(Some("b"), 1)])]);
    assert_eq!(table.row_count(), 3);
}

#[test]
fn partitions_may_take_back_before_they_give() {
    let (table, mut sink) = opened(OutputMode::Update);
    let back = Delta::changes(rows(&[(Some("a"), 1)]), vec![Op::Delete]).unwrap();
    let give = Delta::changes(rows(&[(Some("a"), 1)]), vec![Op::Insert]).unwrap();
    commit(&mut sink, 0, vec![back, give]).unwrap();
    assert_eq!((content(&table), table.version()), (expect(&[]), 0));
}

#[test]
fn a_wrong_batch_changes_nothing() {
    let (table, mut sink) = opened(OutputMode::Update);
    commit(&mut sink, 0, vec![Delta::insert(rows(&[(Some("a"), 1)]))]).unwrap();
    let wrong = Delta::changes(rows(&[(Some("a"), 1), (Some("x"), 1)]), vec![Op::Delete, Op::Delete]).unwrap();
    let error = commit(&mut sink, 1, vec![wrong]).unwrap_err().to_string();
    assert!(error.contains("a batch takes back a row that table t does not hold"), "{error}");
    assert_eq!(content(&table), expect(&[(Some("a"), 1)]));
    sink.begin(1).unwrap();
    sink.push(0, Delta::insert(rows(&[(Some("z"), 1)]))).unwrap();
    sink.abort().unwrap();
    commit(&mut sink, 1, vec![]).unwrap();
    assert_eq!(content(&table), expect(&[(Some("a"), 1)]));
}

#[test]
fn complete_replaces_and_tells_the_difference() {
    let (table, mut sink) = opened(OutputMode::Complete);
    commit(&mut sink, 0, vec![Delta::insert(rows(&[(Some("a"), 1), (Some("b"), 1), (Some("c"), 1)]))]).unwrap();
    let next = [rows(&[(Some("a"), 1), (Some("b"), 2)]), rows(&[(Some("c"), 1), (Some("c"), 1)])];
    commit(&mut sink, 1, next.map(Delta::insert).to_vec()).unwrap();
    assert_eq!(content(&table), expect(&[(Some("a"), 1), (Some("b"), 2), (Some("c"), 1), (Some("c"), 1)]));
    let changes = table.changes().unwrap();
    assert_eq!(changes.upserts, vec![(rows(&[(Some("b"), 2), (Some("c"), 1)]), Int64Array::from(vec![1, 2]))]);
    assert_eq!(changes.deletes, vec![rows(&[(Some("b"), 1)])]);
}

#[test]
fn what_changed_is_enough_to_load_it_again() {
    let (table, mut sink) = opened(OutputMode::Update);
    commit(&mut sink, 0, vec![Delta::insert(rows(&[(Some("a"), 1), (Some("a"), 1), (None, 7)]))]).unwrap();
    let other = ResultTable::new("t", schema()).unwrap();
    other.load(&table.changes().unwrap().upserts).unwrap();
    assert_eq!(content(&other), content(&table));
    assert!(other.load(&[(rows(&[(None, 1)]), Int64Array::from(vec![0]))]).is_err());
    assert_eq!(content(&other), content(&table));
}

#[test]
fn readers_keep_the_batch_they_began_with() {
    let (table, mut sink) = opened(OutputMode::Update);
    let many: Vec<_> = (0..20_000).map(|n| (Some("a"), n)).collect();
    commit(&mut sink, 0, vec![Delta::insert(rows(&many))]).unwrap();
    let before = table.snapshot().unwrap();
    commit(&mut sink, 1, vec![Delta::changes(rows(&[(Some("a"), 5)]), vec![Op::Delete]).unwrap()]).unwrap();
    assert_eq!(before.iter().map(|b| b.num_rows()).sum::<usize>(), 20_000);
    let context = SessionContext::new();
    context.register_table("t", table.clone()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let found = runtime.block_on(async { context.sql("SELECT count(n), max(n) FROM t").await?.collect().await });
    let found = found.unwrap();
    assert_eq!(found[0].column(0).as_primitive::<Int64Type>().value(0), 19_999);
    assert_eq!(found[0].column(1).as_primitive::<Int64Type>().value(0), 19_999);
}
