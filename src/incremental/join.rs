//! A join of two streams, cut: a fragment for each side, and the operator that remembers both.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Schema};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, JoinType, NullEquality, ScalarValue, TableReference};
use datafusion::execution::SessionState;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::utils::{conjunction, split_conjunction};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Join, LogicalPlan, Operator, lit};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;

use super::aggregate::Request;
use super::fragment::Fragment;
use super::join_side::{Side, side};
use super::lower::values_of;
use crate::delta::keys::KeyCodec;
use crate::error::{Error, Result};
use crate::operator::{Condition, JoinKind, JoinSpec, SideColumn};
use crate::parser::OutputMode;
use crate::planner::durations::as_durations;
use crate::planner::frames::length_text;
use crate::planner::join_bounds::{JoinBounds, length};
use crate::planner::{expand, interval_text};

/// A join, taken apart while its watermarks can still be seen.
pub struct Terms {
    pub kind: JoinKind,
    /// As SQL has it: `LEFT JOIN`.
    pub name: &'static str,
    /// Sides whose rows are judged by whether they have a partner.
    pub kept: [bool; 2],
    /// The sides; right is left where the join is of the kinds that judge right rows.
    pub inputs: [LogicalPlan; 2],
    /// Equal expressions, and whether NULL equals NULL in them.
    pub keys: Vec<([Expr; 2], bool)>,
    /// Conditions of one side alone.
    pub own: [Vec<Expr>; 2],
    /// What is asked of a pair beyond its keys.
    pub rest: Vec<Expr>,
    pub bounds: Option<JoinBounds>,
    /// The columns of its result.
    pub columns: Vec<(Option<TableReference>, FieldRef)>,
}

impl Terms {
    /// Takes a join apart.
    ///
    /// # Errors
    /// Unsupported: what its condition can't have.
    pub fn of(join: Join) -> Result<Self> {
        let columns = join.schema.iter().map(|(q, f)| (q.cloned(), f.clone())).collect();
        let join = turned(join)?;
        let (kind, name, kept) = match join.join_type {
            JoinType::Inner => (JoinKind::Pairs, "JOIN", [false, false]),
            JoinType::Left => (JoinKind::Pairs, "LEFT JOIN", [true, false]),
            JoinType::Right => (JoinKind::Pairs, "RIGHT JOIN", [false, true]),
            JoinType::Full => (JoinKind::Pairs, "FULL JOIN", [true, true]),
            JoinType::LeftSemi => (JoinKind::Semi, "SEMI JOIN (IN, EXISTS)", [true, false]),
            JoinType::LeftAnti => (JoinKind::Anti, "ANTI JOIN (NOT IN, NOT EXISTS)", [true, false]),
            JoinType::LeftMark => (JoinKind::Mark, "IN or EXISTS beside other conditions", [true, false]),
            other => return Err(Error::unsupported(format!("a {other} join of two streams"))),
        };
        let mut terms = Terms {
            kind,
            name,
            kept,
            inputs: [join.left.as_ref().clone(), join.right.as_ref().clone()],
            keys: Vec::new(),
            own: Default::default(),
            rest: Vec::new(),
            bounds: JoinBounds::of(&join),
            columns,
        };
        let null_safe = join.null_equality == NullEquality::NullEqualsNull;
        for (left, right) in join.on {
            match null_safe {
                true => terms.take(Expr::BinaryExpr(BinaryExpr::new(
                    Box::new(left),
                    Operator::IsNotDistinctFrom,
                    Box::new(right),
                )))?,
                false => terms.take(left.eq(right))?,
            }
        }
        for (n, condition) in join.filter.iter().flat_map(split_conjunction).enumerate() {
            // NOT IN: a row is out if it may be equal to any, and it may be where one of the two is NULL.
            let may_be_equal = join.null_aware && n == 0;
            terms.take(if may_be_equal { condition.clone().is_not_false() } else { condition.clone() })?;
        }
        Ok(terms)
    }

    fn take(&mut self, condition: Expr) -> Result<()> {
        if condition.is_volatile() {
            return Err(Error::unsupported(
                "a condition between two streams can't depend on the clock or on chance: rows of other batches are judged by it",
            )
            .help("compute it in a subquery for each stream, and join what it gives"));
        }
        let side = |expr: &Expr| {
            let columns = expr.column_refs();
            let is_in = |side: &usize| {
                let schema = self.inputs[*side].schema();
                columns.iter().all(|column| schema.maybe_index_of_column(column).is_some())
            };
            if columns.is_empty() { None } else { [0, 1].into_iter().find(is_in) }
        };
        if let Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::Eq | Operator::IsNotDistinctFrom), right }) =
            &condition
            && let (Some(a), Some(b)) = (side(left), side(right))
            && a != b
        {
            let pair = if a == 0 { [left, right] } else { [right, left] }.map(|expr| expr.as_ref().clone());
            let types = [0, 1].map(|n| pair[n].get_type(self.inputs[n].schema()));
            if let [Ok(a), Ok(b)] = &types
                && values_of(a) == values_of(b)
            {
                self.keys.push((pair, *op == Operator::IsNotDistinctFrom));
                return Ok(());
            }
        }
        match side(&condition) {
            Some(side) => self.own[side].push(condition),
            None if condition == lit(true) => {}
            None => self.rest.push(condition),
        }
        Ok(())
    }

    /// The mode table's rows for joins of two streams.
    ///
    /// # Errors
    /// Unsupported, with what is missing.
    pub fn check(&self, mode: OutputMode) -> Result<()> {
        if mode != OutputMode::Append
            || self.kept == [false, false]
            || self.bounds.as_ref().is_some_and(JoinBounds::both)
        {
            return Ok(());
        }
        let missing = match &self.bounds {
            None => "no condition bounds the time between rows of both sides that belong together",
            Some(bounds) => match bounds.events {
                [None, _] => "the left side's time has no watermark",
                [_, None] => "the right side's time has no watermark",
                _ => "its condition bounds the time between the rows on one side only",
            },
        };
        let error = Error::unsupported(format!(
            "OUTPUT MODE APPEND can't run this {} of two streams: a row without a partner is never final, as {missing}",
            self.name
        ));
        Err(error.help(
            "give both streams a watermark and join by a condition such as a.ts BETWEEN b.ts - INTERVAL '10 minutes' AND b.ts + INTERVAL '10 minutes', \
             or by a window of both, or use OUTPUT MODE UPDATE",
        ))
    }

    /// Whether rows of the result can be taken back.
    pub fn takes_back(&self, mode: OutputMode, signed: [bool; 2]) -> bool {
        let replaces = self.kept != [false, false] && self.kind != JoinKind::Semi;
        mode != OutputMode::Append && (replaces || signed != [false, false])
    }

    /// What it does as text, without the names that a query gives its relations.
    fn text(&self) -> String {
        let interval = |value: &ScalarValue| match (length(value), value) {
            (Some((micros, _)), _) => Some(interval_text(micros)),
            (None, ScalarValue::IntervalMonthDayNano(Some(interval))) => Some(length_text(*interval)),
            _ => None,
        };
        let named = |expr: &Expr, only: Option<usize>| {
            let renamed = expr.clone().transform(|e| {
                if let Expr::Literal(value, _) = &e
                    && let Some(text) = interval(value)
                {
                    let text = format!("INTERVAL '{text}'");
                    return Ok(Transformed::yes(Expr::Column(Column::new_unqualified(text))));
                }
                let Expr::Column(column) = &e else { return Ok(Transformed::no(e)) };
                let left = self.inputs[0].schema().maybe_index_of_column(column).is_some();
                let left = only.map_or(left, |side| side == 0);
                let side = TableReference::bare(if left { "left" } else { "right" });
                Ok(Transformed::yes(Expr::Column(Column::new(Some(side), &column.name))))
            });
            renamed.map_or_else(|_| expr.to_string(), |expr| expr.data.to_string())
        };
        let keys = self.keys.iter().map(|([left, right], null_safe)| {
            let op = if *null_safe { "IS NOT DISTINCT FROM" } else { "=" };
            format!("{} {op} {}", named(left, Some(0)), named(right, Some(1)))
        });
        let own = (0..2).flat_map(|side| self.own[side].iter().map(move |e| (side, e)));
        let own = own.map(|(side, e)| named(e, Some(side)));
        let all: Vec<String> = keys.chain(own).chain(self.rest.iter().map(|e| named(e, None))).collect();
        if all.is_empty() { self.name.to_string() } else { format!("{} ON {}", self.name, all.join(" AND ")) }
    }
}

/// The kinds that judge right rows as those that judge left ones.
fn turned(join: Join) -> Result<Join> {
    let join_type = match join.join_type {
        JoinType::RightSemi => JoinType::LeftSemi,
        JoinType::RightAnti => JoinType::LeftAnti,
        JoinType::RightMark => JoinType::LeftMark,
        _ => return Ok(join),
    };
    let on = join.on.into_iter().map(|(left, right)| (right, left)).collect();
    Ok(Join::try_new(
        join.right,
        join.left,
        on,
        join.filter,
        join_type,
        join.join_constraint,
        join.null_equality,
        join.null_aware,
    )?)
}

/// Cuts a join whose inputs have their leaves already; `signed`: they take rows back.
///
/// # Errors
/// Unsupported: types that can't be keys. Of DataFusion.
pub async fn cut(
    terms: &Terms,
    inputs: [LogicalPlan; 2],
    signed: [bool; 2],
    request: &mut Request<'_>,
) -> Result<([Fragment; 2], Arc<JoinSpec>)> {
    let [left, right] = inputs;
    let (left, right) = (side(terms, 0, left, signed[0], request)?, side(terms, 1, right, signed[1], request)?);
    let places = [&left.places, &right.places];
    let (mut output, mut columns) = (Vec::new(), Vec::new());
    for made in [&left, &right].into_iter().take(if terms.kind == JoinKind::Pairs { 2 } else { 1 }) {
        for place in made.places.iter().flatten() {
            columns.push(*place);
            output.push(made.spec.rows.field(place.state).data_type().clone());
        }
    }
    if terms.kind == JoinKind::Mark {
        output.push(DataType::Boolean);
    }
    let output: Vec<FieldRef> =
        output.into_iter().enumerate().map(|(n, t)| Field::new(format!("c{n}"), t, true).into()).collect();
    let condition = match conjunction(terms.rest.iter().cloned()) {
        Some(rest) => Some(condition(rest, terms, [&left, &right], places, request.state)?),
        None => None,
    };
    let keys: Vec<FieldRef> = left.spec.keys.fields()[..terms.keys.len()].to_vec();
    let fragment = |plan: LogicalPlan| {
        let (state, partitions) = (request.state, request.partitions);
        async move { Fragment::plan(state, &expand::expand(plan)?, partitions, false, &Ok).await }
    };
    let fragments = [fragment(left.plan).await?, fragment(right.plan).await?];
    let text = terms.text();
    let sends = match (terms.kind, request.mode) {
        (JoinKind::Pairs, _) if terms.kept == [false, false] => "pairs as they are found",
        (JoinKind::Semi, _) => "rows when they find a partner",
        (JoinKind::Pairs, OutputMode::Append) => {
            "pairs as they are found, and rows without a partner when they are final"
        }
        (JoinKind::Pairs, _) => "pairs as they are found, and rows without a partner until they find one",
        (_, OutputMode::Append) => "rows when they are final",
        _ => "rows as they are now, and takes them back when they find a partner",
    };
    let mut description = vec![format!("{text}; sends {sends}")];
    if terms.keys.is_empty() {
        description.push(
            "no condition is an equality of both sides: all rows lie in one partition, and each meets all".into(),
        );
    }
    let spec = JoinSpec {
        kind: terms.kind,
        codec: Arc::new(KeyCodec::new(&keys)?),
        width: keys.len(),
        sides: [left.spec, right.spec],
        condition,
        order: order(&output)?,
        output: Arc::new(Schema::new(output)),
        columns,
        finals: request.mode == OutputMode::Append,
        signed: terms.takes_back(request.mode, signed),
        text,
        description,
    };
    Ok((fragments, Arc::new(spec)))
}

/// By as many of the first columns as have an order.
pub fn order(output: &[FieldRef]) -> Result<(Arc<KeyCodec>, usize)> {
    let widths = (0..=output.len()).rev();
    let found = widths.filter_map(|width| Some((Arc::new(KeyCodec::new(&output[..width]).ok()?), width))).next();
    found.ok_or_else(|| Error::internal("no columns at all have an order"))
}

fn condition(
    rest: Expr,
    terms: &Terms,
    sides: [&Side; 2],
    places: [&Vec<Option<SideColumn>>; 2],
    state: &SessionState,
) -> Result<Condition> {
    let (mut fields, mut columns): (Vec<FieldRef>, Vec<SideColumn>) = Default::default();
    let renamed = rest.transform(|e| {
        let Expr::Column(column) = &e else { return Ok(Transformed::no(e)) };
        let found = (0..2).find_map(|n| Some((n, terms.inputs[n].schema().maybe_index_of_column(column)?)));
        let Some((n, at)) = found else { return Ok(Transformed::no(e)) };
        let Some(place) = places[n][at] else { return Ok(Transformed::no(e)) };
        let name = format!("{n}_{at}");
        if !fields.iter().any(|field| *field.name() == name) {
            let data_type = sides[n].spec.rows.field(place.state).data_type().clone();
            fields.push(Field::new(&name, data_type, true).into());
            columns.push(place);
        }
        Ok(Transformed::yes(Expr::Column(Column::new_unqualified(name))))
    })?;
    let schema = Arc::new(Schema::new(fields));
    let df_schema = DFSchema::try_from(schema.clone())?;
    let context = SimplifyContext::builder().with_schema(Arc::new(df_schema.clone()));
    let simplifier = ExprSimplifier::new(context.with_config_options(state.config_options().clone()).build());
    let expr = simplifier.simplify(simplifier.coerce(renamed.data, &df_schema)?)?;
    let expr = as_durations(expr, &df_schema)?;
    let has_subquery = expr.exists(|e| {
        Ok(matches!(e, Expr::ScalarSubquery(_) | Expr::Exists(_) | Expr::InSubquery(_) | Expr::SetComparison(_)))
    })?;
    if has_subquery {
        return Err(Error::not_yet("a subquery in a condition between two streams")
            .help("join the subquery's table with one of the streams first"));
    }
    Ok(Condition { expr: state.create_physical_expr(expr, &df_schema)?, schema, columns })
}
