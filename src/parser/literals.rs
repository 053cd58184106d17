//! Numbers as they are written: with a point they are exact, with an exponent they are DOUBLE.
//!
//! DataFusion reads all of them as the one or as the other. It is told to read DECIMALs, and what has an exponent is put
//! into a cast here.

use std::ops::ControlFlow;

use sqlparser::ast::{CastKind, DataType, ExactNumberInfo, Expr, Value, VisitMut, VisitorMut};

use super::walk::{Flow, walk_mut};
use crate::error::Error;

/// Makes numbers with an exponent DOUBLE.
pub fn approximate(node: &mut impl VisitMut) {
    let _ = walk_mut(node, &mut Exponents);
}

struct Exponents;

impl VisitorMut for Exponents {
    type Break = Box<Error>;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> Flow {
        if let Expr::Value(value) = expr
            && let Value::Number(text, _) = &value.value
            && text.contains(['e', 'E'])
        {
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
        ControlFlow::Continue(())
    }
}
