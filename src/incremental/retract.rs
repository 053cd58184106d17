//! Old rows and new rows on their way through the fragment behind an operator, and what is left of them.
//!
//! The operator hands out, for each key that changed, its old row and its new row. Both pass the fragment (HAVING,
//! projections, static joins) with two hidden columns: the key's number in the batch and the weight. Behind it, what is
//! equal cancels; what is left is an insert, an update or a delete.

use std::collections::{HashMap, HashSet};

use arrow::array::{ArrayRef, AsArray, Int8Array, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::compute::{concat_batches, take};
use arrow::datatypes::{DataType, Field, FieldRef, Int8Type, SchemaRef, UInt32Type};
use datafusion::common::Column;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, lit};

use crate::delta::keys::{KeyCodec, Keys};
use crate::delta::{Delta, Op};
use crate::error::{Error, Result};

const KEY: &str = "__key";
/// What a row's weight is called on its way.
pub const WEIGHT: &str = "__weight";

/// Where the hidden columns are in a fragment's result: the last two.
#[derive(Debug, Clone)]
pub struct Hidden {
    /// The result without them.
    pub visible: SchemaRef,
}

/// The fields of the hidden columns.
pub fn fields() -> [FieldRef; 2] {
    [Field::new(KEY, DataType::UInt32, false).into(), Field::new(WEIGHT, DataType::Int8, false).into()]
}

/// The operator's rows with the hidden columns behind them.
pub fn with_hidden(rows: &RecordBatch, schema: &SchemaRef, keys: &[u32], weight: i8) -> Result<RecordBatch> {
    let mut columns = rows.columns().to_vec();
    columns.push(std::sync::Arc::new(UInt32Array::from(keys.to_vec())) as ArrayRef);
    columns.push(std::sync::Arc::new(Int8Array::from(vec![weight; keys.len()])) as ArrayRef);
    RecordBatch::try_new(schema.clone(), columns).map_err(|e| Error::internal(e.to_string()))
}

/// Lets the hidden columns pass a plan, from its leaf to its top, where they come last.
pub fn carry(plan: LogicalPlan) -> Result<LogicalPlan> {
    let visible: Vec<Expr> = columns(&plan).into_iter().filter(|c| !is_hidden(c)).map(Expr::Column).collect();
    let plan = carry_node(plan)?;
    let hidden = hidden_of(&plan);
    let exprs = visible.into_iter().chain(hidden);
    Ok(LogicalPlanBuilder::from(plan).project(exprs)?.build()?)
}

/// The rows of a plan that takes none back, with the hidden columns behind them: each is added, and belongs to no key.
pub fn sign(plan: LogicalPlan) -> Result<LogicalPlan> {
    let exprs = columns(&plan).into_iter().map(Expr::Column);
    let hidden = [lit(0u32).alias(KEY), lit(1i8).alias(WEIGHT)];
    Ok(LogicalPlanBuilder::from(plan).project(exprs.chain(hidden))?.build()?)
}

/// The weight of each row of a plan that [`carry`] made.
pub fn weight_of(plan: &LogicalPlan) -> Result<Expr> {
    let weight = hidden_of(plan).into_iter().find(|expr| matches!(expr, Expr::Column(column) if column.name == WEIGHT));
    weight.ok_or_else(|| Error::internal("rows that are taken back have no weight"))
}

fn carry_node(plan: LogicalPlan) -> Result<LogicalPlan> {
    if hidden_of(&plan).len() == 2 {
        return Ok(plan);
    }
    let inputs =
        plan.inputs().into_iter().cloned().map(|input| if has_leaf(&input) { carry_node(input) } else { Ok(input) });
    let inputs: Vec<LogicalPlan> = inputs.collect::<Result<_>>()?;
    let mut exprs = plan.expressions();
    match &plan {
        LogicalPlan::Projection(_) => exprs.extend(hidden_of(&inputs[0])),
        LogicalPlan::Filter(_) | LogicalPlan::SubqueryAlias(_) | LogicalPlan::Join(_) | LogicalPlan::Unnest(_) => {}
        other => return Err(Error::not_yet(format!("{} above an aggregate in OUTPUT MODE UPDATE", other.display()))),
    }
    Ok(plan.with_new_exprs(exprs, inputs)?)
}

fn has_leaf(plan: &LogicalPlan) -> bool {
    hidden_of(plan).len() == 2 || plan.inputs().into_iter().any(has_leaf)
}

fn columns(plan: &LogicalPlan) -> Vec<Column> {
    plan.schema().iter().map(|(qualifier, field)| Column::new(qualifier.cloned(), field.name())).collect()
}

fn is_hidden(column: &Column) -> bool {
    column.name == KEY || column.name == WEIGHT
}

fn hidden_of(plan: &LogicalPlan) -> Vec<Expr> {
    columns(plan).into_iter().filter(is_hidden).map(Expr::Column).collect()
}

/// What is left of old and new rows: changes in order of their keys, each update's two rows side by side.
pub fn changes_of(batches: &[RecordBatch], hidden: &Hidden) -> Result<Option<Delta>> {
    let Some(first) = batches.first() else { return Ok(None) };
    let all = concat_batches(&first.schema(), batches).map_err(Error::from)?;
    let width = all.num_columns() - 2;
    let keys = all.column(width).as_primitive::<UInt32Type>();
    let weights = all.column(width + 1).as_primitive::<Int8Type>();
    let fields: Vec<FieldRef> = hidden.visible.fields().iter().cloned().collect();
    let encoded = KeyCodec::new(&fields)?.encode(&all.columns()[..width], all.num_rows())?;
    let mut order: Vec<usize> = (0..all.num_rows()).collect();
    order.sort_by_key(|row| (keys.value(*row), weights.value(*row)));
    let mut groups: Vec<Left> = Vec::new();
    for group in order.chunk_by(|a, b| keys.value(*a) == keys.value(*b)) {
        let olds = group.partition_point(|row| weights.value(*row) < 0);
        groups.push(Left::of(&group[..olds], &group[olds..], &encoded));
    }
    cancel_across(&mut groups, &encoded);
    let (mut rows, mut ops) = (Vec::new(), Vec::new());
    groups.into_iter().for_each(|left| left.settle(&mut rows, &mut ops));
    if rows.is_empty() {
        return Ok(None);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    let rows = UInt32Array::from(rows);
    let columns = all.columns()[..width]
        .iter()
        .map(|c| take(c, &rows, None))
        .collect::<Result<Vec<_>, _>>()
        .map_err(Error::from)?;
    let visible = RecordBatch::try_new_with_options(hidden.visible.clone(), columns, &options).map_err(Error::from)?;
    Ok(Some(Delta::changes(visible, ops)?))
}

/// What is left of the rows of one key.
struct Left {
    olds: Vec<usize>,
    news: Vec<usize>,
}

impl Left {
    /// Old and new rows, of which those that are equal cancel.
    fn of(olds: &[usize], news: &[usize], keys: &Keys) -> Self {
        let mut news: Vec<usize> = news.to_vec();
        let mut left = Vec::new();
        for old in olds {
            match news.iter().position(|new| keys.bytes(*new) == keys.bytes(*old)) {
                Some(same) => drop(news.remove(same)),
                None => left.push(*old),
            }
        }
        Left { olds: left, news }
    }

    fn settle(self, rows: &mut Vec<u32>, ops: &mut Vec<Op>) {
        let mut news = self.news.into_iter();
        for old in self.olds {
            match news.next() {
                Some(new) => {
                    rows.extend([old as u32, new as u32]);
                    ops.extend([Op::UpdateBefore, Op::UpdateAfter]);
                }
                None => {
                    rows.push(old as u32);
                    ops.push(Op::Delete);
                }
            }
        }
        for new in news {
            rows.push(new as u32);
            ops.push(Op::Insert);
        }
    }
}

/// What one key takes back and another gives is no change of the result: a pair that two changes of a batch made and unmade, or
/// rows that differ only in columns that are not shown.
fn cancel_across(groups: &mut [Left], keys: &Keys) {
    let (olds, news) =
        (groups.iter().any(|left| !left.olds.is_empty()), groups.iter().any(|left| !left.news.is_empty()));
    if groups.len() < 2 || !olds || !news {
        return;
    }
    let mut taken: HashMap<&[u8], Vec<usize>> = HashMap::new();
    for old in groups.iter().flat_map(|left| &left.olds) {
        taken.entry(keys.bytes(*old)).or_default().push(*old);
    }
    let mut cancelled = HashSet::new();
    for left in groups.iter_mut() {
        left.news.retain(|new| match taken.get_mut(keys.bytes(*new)).and_then(Vec::pop) {
            Some(old) => !cancelled.insert(old),
            None => true,
        });
    }
    if !cancelled.is_empty() {
        groups.iter_mut().for_each(|left| left.olds.retain(|old| !cancelled.contains(old)));
    }
}
