//! Literals as they are written: a number with a point is exact, one with an exponent is DOUBLE; an interval may be
//! `'01:30:00'` or `'1 quarter'`.
//!
//! DataFusion reads all numbers as the one or as the other. It is told to read DECIMALs, and what has an exponent is put
//! into a cast here. Of intervals it knows units only.

use std::ops::ControlFlow;

use sqlparser::ast::{
    self, CastKind, DataType, ExactNumberInfo, Expr, Ident, Query, SelectItem, SetExpr, Spanned, Value, VisitMut,
    VisitorMut,
};

use super::statement::Interval;
use super::walk::{Flow, walk_mut};
use crate::error::{Error, Result};

/// Makes numbers with an exponent DOUBLE, and writes intervals in units. What a SELECT shows of them keeps the name that it was written with.
///
/// # Errors
/// InvalidInput: a number that no DOUBLE can hold.
pub fn read_literals(node: &mut impl VisitMut) -> Result<()> {
    match walk_mut(node, &mut Literals) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(*error),
    }
}

struct Literals;

impl VisitorMut for Literals {
    type Break = Box<Error>;

    fn pre_visit_query(&mut self, query: &mut Query) -> Flow {
        name_items(&mut query.body);
        one_kind(&mut query.body);
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> Flow {
        if let Expr::Value(value) = expr
            && let Value::Number(text, _) = &value.value
            && text.contains(['e', 'E'])
        {
            if text.parse::<f64>().is_ok_and(f64::is_infinite) {
                let error = Error::invalid(format!("{text} is more than a DOUBLE can hold"));
                return ControlFlow::Break(Box::new(error.help("write 'Infinity'::DOUBLE if that is meant")));
            }
            let mut written = value.clone();
            written.value = Value::SingleQuotedString(text.clone());
            *expr = Expr::Cast {
                kind: CastKind::Cast,
                expr: Box::new(Expr::Value(written)),
                data_type: DataType::Double(ExactNumberInfo::None),
                array: false,
                format: None,
            };
        }
        if let Expr::Interval(interval) = expr
            && has_unknown_unit(interval)
            && let Ok(parsed) = Interval::from_literal(interval)
        {
            let text = Value::SingleQuotedString(parsed.to_string()).with_span(interval.value.span());
            *interval = ast::Interval {
                value: Box::new(Expr::Value(text)),
                leading_field: None,
                leading_precision: None,
                last_field: None,
                fractional_seconds_precision: None,
            };
        }
        ControlFlow::Continue(())
    }
}

/// Whether DataFusion does not know how it is written: as a time of day, or in quarters.
fn has_unknown_unit(interval: &ast::Interval) -> bool {
    let quarters = |unit: &str| unit.to_ascii_lowercase().contains("quarter");
    match (&interval.leading_field, interval.value.as_ref()) {
        (Some(unit), _) => quarters(&unit.to_string()),
        (None, Expr::Value(value)) => match &value.value {
            Value::SingleQuotedString(text) => text.contains(':') || quarters(text),
            _ => false,
        },
        (None, _) => false,
    }
}

/// Gives items of a SELECT that are made of such numbers the name that they would have without the cast.
fn name_items(body: &mut SetExpr) {
    match body {
        SetExpr::Select(select) => {
            for item in &mut select.projection {
                if let SelectItem::UnnamedExpr(expr) = item
                    && let Expr::Value(value) = expr
                    && let Value::Number(text, _) = &value.value
                    && text.contains(['e', 'E'])
                {
                    let alias = Ident::with_quote('"', text.clone());
                    *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
                }
            }
        }
        SetExpr::SetOperation { left, right, .. } => {
            name_items(left);
            name_items(right);
        }
        _ => {}
    }
}

/// Numbers with a point are DOUBLE in a column of VALUES in which another has an exponent: DataFusion would make decimals of both.
fn one_kind(body: &mut SetExpr) {
    match body {
        SetExpr::Values(values) => {
            let width = values.rows.iter().map(|row| row.len()).max().unwrap_or(0);
            for at in 0..width {
                let mut column: Vec<&mut String> =
                    values.rows.iter_mut().filter_map(|row| number(row.get_mut(at)?)).collect();
                if column.iter().any(|text| text.contains(['e', 'E'])) {
                    let exact = column.iter_mut().filter(|text| text.contains('.') && !text.contains(['e', 'E']));
                    exact.for_each(|text| text.push_str("e0"));
                }
            }
        }
        SetExpr::SetOperation { left, right, .. } => {
            one_kind(left);
            one_kind(right);
        }
        _ => {}
    }
}

/// The digits of a number, with or without a sign.
fn number(expr: &mut Expr) -> Option<&mut String> {
    match expr {
        Expr::Value(value) => match &mut value.value {
            Value::Number(text, _) => Some(text),
            _ => None,
        },
        Expr::UnaryOp { expr, .. } | Expr::Nested(expr) => number(expr),
        _ => None,
    }
}
