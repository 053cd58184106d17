//! GROUPING SETS, ROLLUP and CUBE as one plain aggregation.
//!
//! ```text
//! Aggregate [GROUPING SETS ((a, b), (a))]       Projection a, "b or NULL" AS b, id AS __grouping_id, …
//!   Input                                         Aggregate [a, "b or NULL", id]
//!                                                   Projection *, CASE WHEN id & 1 = 0 THEN b END AS "b or NULL"
//!                                                     Unnest id
//!                                                       Projection *, [0, 1] AS id
//!                                                         Input
//! ```
//! The id's name says all sets: they are part of what is remembered.
//! A row counts once for each set. What is in every set stays as it is, so that a watermarked time among it closes groups;
//! what is not is NULL where its bit of the id is set. The id has DataFusion's form: the sets' bits, the first key the
//! highest, and above them which one it is of several equal sets.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, ScalarValue, UnnestOptions};
use datafusion::error::Result;
use datafusion::logical_expr::utils::grouping_set_to_exprlist;
use datafusion::logical_expr::{
    Aggregate, Expr, ExprSchemable, GroupingSet, LogicalPlan, LogicalPlanBuilder, cast, lit, when,
};

use super::names::Names;
use crate::planner::expand::expand;
use crate::planner::reads_stream;
use crate::planner::window_functions::window_call;

/// What the id's name begins with.
const SETS: &str = "grouping sets (";
/// What the names of keys end with that are not in every set.
const OR_NULL: &str = " or NULL";

/// `wrap` around what is under the sets of an aggregation's input: where a row is still one row. Around the input itself, where
/// there are none.
pub fn under(input: LogicalPlan, wrap: &mut dyn FnMut(LogicalPlan) -> LogicalPlan) -> Result<LogicalPlan> {
    if !has_sets(&input) {
        return Ok(wrap(input));
    }
    let is_unnest = matches!(input, LogicalPlan::Unnest(_));
    let below = input.inputs()[0].clone();
    let below = match &below {
        LogicalPlan::Projection(ids) if is_unnest => {
            let wrapped = wrap(ids.input.as_ref().clone());
            below.with_new_exprs(below.expressions(), vec![wrapped])?
        }
        _ => under(below, wrap)?,
    };
    input.with_new_exprs(input.expressions(), vec![below])
}

fn has_sets(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(projection) => has_sets(&projection.input),
        LogicalPlan::Unnest(unnest) => unnest.exec_columns.iter().any(|column| column.name.starts_with(SETS)),
        _ => false,
    }
}

/// Whether an aggregation is one of grouping sets of which some leave a window or a time out.
pub fn leaves_time_out(aggregate: &Aggregate) -> bool {
    let schema = aggregate.input.schema();
    let is_time = |key: &Expr| {
        let is = key.get_type(schema);
        let partial = matches!(key, Expr::Column(column) if column.name.ends_with(OR_NULL));
        partial && is.is_ok_and(|is| is.is_temporal() || matches!(is, DataType::Struct(_)))
    };
    has_sets(&aggregate.input) && aggregate.group_expr.iter().any(is_time)
}

/// Rewrites every grouping set over a stream.
pub fn spread(plan: LogicalPlan) -> Result<LogicalPlan> {
    let spread = plan.transform_up_with_subqueries(|node| match &node {
        LogicalPlan::Aggregate(aggregate) if reads_stream(&node) => match aggregate.group_expr.as_slice() {
            [Expr::GroupingSet(sets)] => Ok(Transformed::yes(as_plain(aggregate, &sets_of(sets))?)),
            _ => Ok(Transformed::no(node)),
        },
        _ => Ok(Transformed::no(node)),
    })?;
    Ok(spread.data)
}

fn sets_of(sets: &GroupingSet) -> Vec<Vec<&Expr>> {
    match sets {
        GroupingSet::GroupingSets(sets) => sets.iter().map(|set| set.iter().collect()).collect(),
        GroupingSet::Rollup(exprs) => (0..=exprs.len()).rev().map(|n| exprs[..n].iter().collect()).collect(),
        GroupingSet::Cube(exprs) => {
            let of = |mask: usize| exprs.iter().enumerate().filter(move |(n, _)| mask >> n & 1 == 0).map(|(_, e)| e);
            (0..1usize << exprs.len()).map(|mask| of(mask).collect()).collect()
        }
    }
}

fn as_plain(aggregate: &Aggregate, sets: &[Vec<&Expr>]) -> Result<LogicalPlan> {
    let keys = grouping_set_to_exprlist(&aggregate.group_expr)?;
    let names = Names::of(keys.iter().copied());
    let fields: Vec<_> = aggregate.schema.iter().map(|(q, f)| (q.cloned(), f.clone())).collect();
    let id_type = fields[keys.len()].1.data_type().clone();
    let ids = ids(&keys, sets).into_iter().map(|id| ScalarValue::UInt64(Some(id)).cast_to(&id_type));
    let ids = ScalarValue::new_list(&ids.collect::<Result<Vec<_>>>()?, &id_type, false);
    // A window that is not in every set is a column first: a row then counts for each of its windows.
    let is_partial = |key: &Expr| !sets.iter().all(|set| set.contains(&key));
    let mut input = aggregate.input.as_ref().clone();
    let mut columns: Vec<Expr> = input.schema().columns().into_iter().map(Expr::Column).collect();
    let mut known: Vec<Expr> = keys.iter().map(|key| plain(key)).collect();
    let mut windows = false;
    for (n, key) in keys.iter().enumerate() {
        if is_partial(key) && key.exists(|e| Ok(window_call(e).is_some()))? {
            let name = format!("__key{n}");
            columns.push(plain(key).alias(&name));
            known[n] = Expr::Column(Column::from_name(name));
            windows = true;
        }
    }
    if windows {
        input = expand(LogicalPlanBuilder::from(input).project(columns)?.build()?)?;
        columns = input.schema().columns().into_iter().map(Expr::Column).collect();
    }
    let id = Column::from_name(format!(
        "{SETS}{})",
        sets.iter().map(|set| text(set, &names)).collect::<Vec<_>>().join(", ")
    ));
    columns.push(Expr::Literal(ScalarValue::List(ids), None).alias(&id.name));
    let input = LogicalPlanBuilder::from(input)
        .project(columns)?
        .unnest_column_with_options(id.clone(), UnnestOptions::new())?
        .build()?;
    let mut columns: Vec<Expr> = input.schema().columns().into_iter().map(Expr::Column).collect();
    let id = Expr::Column(id);
    let mut groups = Vec::with_capacity(keys.len() + 1);
    for (n, (key, known)) in keys.iter().zip(known).enumerate() {
        if !is_partial(key) {
            groups.push((*key).clone());
            continue;
        }
        let bit = ScalarValue::UInt64(Some(1 << (keys.len() - 1 - n))).cast_to(&id_type)?;
        let without = (id.clone() & Expr::Literal(bit, None)).eq(cast(lit(0u8), id_type.clone()));
        let name = format!("{}{OR_NULL}", names.name(key));
        columns.push(when(without, known).end()?.alias(&name));
        groups.push(Expr::Column(Column::from_name(name)));
    }
    groups.push(id);
    let input = LogicalPlanBuilder::from(input).project(columns)?.build()?;
    let plain = Aggregate::try_new(Arc::new(input), groups, aggregate.aggr_expr.clone())?;
    let results: Vec<Column> = plain.schema.columns();
    let named =
        results.into_iter().zip(fields).map(|(column, (q, f))| Expr::Column(column).alias_qualified(q, f.name()));
    LogicalPlanBuilder::from(LogicalPlan::Aggregate(plain)).project(named.collect::<Vec<_>>())?.build()
}

fn text(set: &[&Expr], names: &Names) -> String {
    format!("({})", set.iter().map(|key| names.name(key)).collect::<Vec<_>>().join(", "))
}

fn plain(key: &Expr) -> Expr {
    match key {
        Expr::Alias(alias) => plain(&alias.expr),
        other => other.clone(),
    }
}

fn ids(keys: &[&Expr], sets: &[Vec<&Expr>]) -> Vec<u64> {
    let bits = |set: &Vec<&Expr>| keys.iter().fold(0u64, |id, key| id << 1 | u64::from(!set.contains(key)));
    let all: Vec<u64> = sets.iter().map(bits).collect();
    let ordinal = |n: usize| all[..n].iter().filter(|id| **id == all[n]).count() as u64;
    // 64 keys leave no room; DataFusion refuses more.
    (0..all.len()).map(|n| all[n] | ordinal(n).checked_shl(keys.len() as u32).unwrap_or(0)).collect()
}
