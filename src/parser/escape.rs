//! sqlparser's AST → text that is read as the same AST.
//!
//! sqlparser's own writer takes a doubled quote, or one behind a backslash, for one that is escaped already: it writes a
//! string of two quotes as a string of one. Here strings and quoted names that hold a quote are put in with their escapes
//! made, as words that are written as they are.

use std::fmt::{self, Display, Formatter};
use std::ops::ControlFlow;

use sqlparser::ast::{Expr, Ident, ObjectName, ObjectNamePart, Value, ValueWithSpan, VisitMut, VisitorMut};

use super::walk::{Flow, walk_mut};
use super::write::Quoted;
use crate::error::Error;

/// Writes a part of the AST.
pub(super) struct Escaped<'a, T>(pub &'a T);

impl<T: Display + Clone + VisitMut> Display for Escaped<'_, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut escaped = self.0.clone();
        let _ = walk_mut(&mut escaped, &mut Escaper);
        escaped.fmt(f)
    }
}

struct Escaper;

fn escape(ident: &mut Ident) {
    if let Some(quote @ ('"' | '`')) = ident.quote_style
        && ident.value.contains(quote)
    {
        let doubled = ident.value.replace(quote, &String::from_iter([quote, quote]));
        *ident = Ident { value: format!("{quote}{doubled}{quote}"), quote_style: None, span: ident.span };
    }
}

impl VisitorMut for Escaper {
    type Break = Box<Error>;

    fn pre_visit_value(&mut self, value: &mut ValueWithSpan) -> Flow {
        if let Value::SingleQuotedString(text) = &value.value
            && text.contains('\'')
        {
            value.value = Value::Placeholder(Quoted(text).to_string());
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> Flow {
        match expr {
            Expr::Identifier(ident) => escape(ident),
            Expr::CompoundIdentifier(idents) => idents.iter_mut().for_each(escape),
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, name: &mut ObjectName) -> Flow {
        for part in &mut name.0 {
            if let ObjectNamePart::Identifier(ident) = part {
                escape(ident);
            }
        }
        ControlFlow::Continue(())
    }
}
