//! One side of a join of two streams: the plan of its fragment, what the operator keeps of it, and where.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Schema, TimeUnit};
use datafusion::common::{Column, DFSchema};
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, cast, lit};

use super::aggregate::Request;
use super::join::Terms;
use super::lower::values_of;
use super::retract;
use super::tap::{LateRule, Tap, TapKind};
use crate::delta::calendar::Lasts;
use crate::delta::keys::KeyCodec;
use crate::error::Result;
use crate::operator::{JoinKind, JoinSide, OWN_COLUMNS, SideColumn};
use crate::parser::OutputMode;
use crate::planner::event_time::EventTime;
use crate::planner::interval_text;
use crate::planner::join_bounds::JoinBounds;

/// See the module's documentation.
pub struct Side {
    pub plan: LogicalPlan,
    pub spec: JoinSide,
    /// Where each of its columns is kept, where it is.
    pub places: Vec<Option<SideColumn>>,
}

/// Plans side `n`, whose input has its leaves already.
///
/// # Errors
/// Unsupported: types that can't be keys. Of DataFusion.
pub fn side(terms: &Terms, n: usize, input: LogicalPlan, signed: bool, request: &mut Request<'_>) -> Result<Side> {
    let complete = request.mode == OutputMode::Complete;
    let visible = terms.inputs[n].schema().clone();
    let mut plan = if signed { retract::carry(input)? } else { input };
    let weight = if signed { Some(retract::weight_of(&plan)?) } else { None };
    let bounds = terms.bounds.as_ref().filter(|_| !complete);
    let until = bounds.and_then(|bounds| until(bounds, n, signed));
    let implied = not_null(terms, n, &visible)?;
    let mut exprs: Vec<Expr> = Vec::new();
    for (key, (pair, _)) in terms.keys.iter().enumerate() {
        exprs.push(plain(pair[n].clone(), &visible)?.alias(format!("k{key}")));
    }
    let says = terms.kept[n] && terms.kind.shows(false).is_some();
    let (mut pass, mut time) = (None, None);
    let own = terms.own[n].clone();
    if says {
        pass = Some(exprs.len());
        exprs.push(conjunction(own.into_iter().chain(implied.clone())).unwrap_or_else(|| lit(true)).alias("pass"));
    } else if let Some(own) = conjunction(own) {
        plan = LogicalPlanBuilder::from(plan).filter(own)?.build()?;
    }
    if let Some(bounds) = bounds.filter(|bounds| bounds.events[n].is_some()) {
        let rule = late(bounds, n, request);
        plan = Tap::plan(plan, bounds.times[n].clone(), TapKind::Late(rule), request.cell);
    }
    // Behind the tap: a late row without a key is late like any other, and is counted.
    if let Some(implied) = conjunction(implied).filter(|_| !says) {
        plan = LogicalPlanBuilder::from(plan).filter(implied)?.build()?;
    }
    if let (Some(_), Some(bounds)) = (until, bounds) {
        time = Some(exprs.len());
        exprs.push(bounds.times[n].clone().alias("time"));
    }
    let name = request.named.name(if n == 0 { "join-left" } else { "join-right" });
    let mut fields = key_fields(terms, n, &exprs, &visible)?;
    let keys = fields.clone();
    let mut own_fields = Vec::new();
    if until.is_some() {
        own_fields.push((OWN_COLUMNS[0], DataType::Timestamp(TimeUnit::Microsecond, None)));
    }
    if terms.kept[n] {
        own_fields.push((OWN_COLUMNS[1], DataType::UInt32));
    }
    for (name, data_type) in own_fields {
        fields.push(numbered(fields.len(), name, &data_type));
    }
    let mut payload = Vec::new();
    let mut places = Vec::new();
    let shown = n == 0 || terms.kind == JoinKind::Pairs;
    for (qualifier, field) in visible.iter() {
        let column = Column::new(qualifier.cloned(), field.name());
        let read = shown || signed || terms.rest.iter().any(|e| e.column_refs().contains(&column));
        let expr = Expr::Column(column);
        let key =
            terms.keys.iter().position(|(pair, _)| pair[n] == expr).filter(|_| !signed && stays(field.data_type()));
        places.push(match (read, key) {
            (false, _) => None,
            (true, Some(key)) => Some(SideColumn { side: n, input: key, state: key }),
            (true, None) => {
                let place = SideColumn { side: n, input: exprs.len(), state: fields.len() };
                let expr = plain(expr, &visible)?;
                fields.push(numbered(fields.len(), field.name(), &expr.get_type(&visible)?));
                payload.push(exprs.len());
                exprs.push(expr.alias(format!("p{}", payload.len())));
                Some(place)
            }
        });
    }
    let identity: Vec<FieldRef> = fields[fields.len() - payload.len()..].to_vec();
    let weight = match weight {
        Some(expr) => {
            exprs.push(expr);
            Some((exprs.len() - 1, Arc::new(KeyCodec::new(&identity)?)))
        }
        None => None,
    };
    let spec = JoinSide {
        bound: bound(terms, n, until, complete),
        name,
        codec: Arc::new(KeyCodec::new(&keys)?),
        keys: Arc::new(Schema::new(keys)),
        rows: Arc::new(Schema::new(fields)),
        kept: terms.kept[n],
        until: time.zip(until),
        pass,
        weight,
        payload,
    };
    Ok(Side { plan: LogicalPlanBuilder::from(plan).project(exprs)?.build()?, spec, places })
}

/// What the watermark is ahead of a row's time when the row is forgotten. What can still be taken back must still be there: no
/// longer than its own time, which must have a watermark then.
fn until(bounds: &JoinBounds, n: usize, signed: bool) -> Option<i64> {
    match (bounds.until[n], bounds.events[n]) {
        (Some(until), Some(_)) if signed => Some(until.max(bounds.ends[n])),
        (Some(_), None) if signed => None,
        (until, _) => until,
    }
}

/// What a row of the side must have to have a partner.
fn not_null(terms: &Terms, n: usize, visible: &DFSchema) -> Result<Vec<Expr>> {
    let mut not_null = Vec::new();
    let keys = terms.keys.iter().filter(|(_, null_safe)| !null_safe).map(|(pair, _)| pair[n].clone());
    for expr in keys.chain(terms.bounds.iter().map(|bounds| bounds.times[n].clone())) {
        if expr.nullable(visible)? {
            not_null.push(expr.is_not_null());
        }
    }
    Ok(not_null)
}

/// When a row of the side is late.
fn late(bounds: &JoinBounds, n: usize, request: &Request<'_>) -> LateRule {
    let last_instant = bounds.events[n] == Some(EventTime::WindowLast);
    LateRule {
        operator: request.operator,
        lag: request.lag,
        lasts: Lasts::Units(if last_instant { 0 } else { bounds.ends[n] }),
        last_instant,
        windows: None,
        drop_null: false,
        count: true,
        never_late: false,
    }
}

/// What a row is kept under: the join's keys, which are the first of `exprs`, and its number among those of the same.
fn key_fields(terms: &Terms, n: usize, exprs: &[Expr], visible: &DFSchema) -> Result<Vec<FieldRef>> {
    let mut fields = Vec::new();
    for ((pair, _), expr) in terms.keys.iter().zip(exprs) {
        fields.push(numbered(fields.len(), &bare(&pair[n]), &expr.get_type(visible)?));
    }
    fields.push(numbered(fields.len(), "number", &DataType::UInt64));
    Ok(fields)
}

/// Without dictionaries: each batch has its own, so what is remembered are the values.
fn plain(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    let is = expr.get_type(schema)?;
    let plain = values_of(&is);
    Ok(if plain == is { expr } else { cast(expr, plain) })
}

/// Whether a key is kept as it came, so that it can stand for the column that it is.
fn stays(data_type: &DataType) -> bool {
    use DataType::{Binary, BinaryView, Boolean, LargeBinary, LargeUtf8, Utf8, Utf8View};
    data_type.is_primitive() && !data_type.is_floating()
        || matches!(data_type, Boolean | Utf8 | LargeUtf8 | Utf8View | Binary | LargeBinary | BinaryView)
}

fn bare(expr: &Expr) -> String {
    super::names::Names::of(std::iter::once(expr)).name(expr)
}

fn numbered(n: usize, name: &str, data_type: &DataType) -> FieldRef {
    Field::new(format!("{n}:{name}"), data_type.clone(), true).into()
}

fn bound(terms: &Terms, n: usize, until: Option<i64>, complete: bool) -> String {
    let time = |bounds: &JoinBounds| bare(&bounds.times[n]);
    match (until, &terms.bounds) {
        (Some(0), Some(bounds)) => format!("each row until the watermark reaches its {}", time(bounds)),
        (Some(until), Some(bounds)) => {
            let (sign, length) = if until < 0 { ("-", until.saturating_neg()) } else { ("+", until) };
            format!("each row until the watermark reaches its {} {sign} {}", time(bounds), interval_text(length))
        }
        _ if complete => "each row, kept for ever (COMPLETE sends what all of them make)".into(),
        (_, Some(_)) => {
            "UNBOUNDED: each row, kept for ever, as no watermark and condition tell when nothing more can match it"
                .into()
        }
        (_, None) => {
            "UNBOUNDED: each row, kept for ever, as no condition bounds the time between rows that match".into()
        }
    }
}
