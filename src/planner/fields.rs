//! A field of what an expression gives: `f(x).field` and `(x).field` mean `f(x)['field']`, for which DataFusion has a plan.
//!
//! Fields of a column, `w.start`, are names of DataFusion's own; those of a block's window are rewritten with it.

use std::ops::ControlFlow;

use sqlparser::ast::{self, AccessExpr, Expr, VisitorMut};

use crate::parser::{Flow, walk_mut};

/// Rewrites every such field of a query.
pub fn rewrite(query: &mut ast::Query) {
    let _ = walk_mut(query, &mut Fields);
}

struct Fields;

impl VisitorMut for Fields {
    type Break = Box<crate::error::Error>;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> Flow {
        if let Expr::CompoundFieldAccess { access_chain, .. } = expr {
            for access in access_chain {
                let AccessExpr::Dot(Expr::Identifier(field)) = access else { continue };
                let name = match field.quote_style {
                    Some(_) => field.value.clone(),
                    None => field.value.to_lowercase(),
                };
                let name = ast::Value::SingleQuotedString(name).with_span(field.span);
                *access = AccessExpr::Subscript(ast::Subscript::Index { index: Expr::Value(name) });
            }
        }
        ControlFlow::Continue(())
    }
}
