//! `DISTINCT ON (keys) WITHIN WATERMARK`: the clause travels through DataFusion's planner as one more key, a constant.

use std::sync::{Arc, LazyLock};

use arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use sqlparser::ast::{self, VisitorMut};

use super::windows::call;
use crate::error::{Error, Location};
use crate::parser::{Flow, walk_mut};

const NAME: &str = "levada_within_watermark";

/// `levada_within_watermark()`
pub static WITHIN: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    Arc::new(ScalarUDF::new_from_impl(Within { signature: Signature::nullary(Volatility::Immutable) }))
});

/// Marks the blocks whose SELECT stands at these places.
pub fn mark(query: &mut ast::Query, places: &[Location]) {
    if !places.is_empty() {
        let _ = walk_mut(query, &mut Blocks { places });
    }
}

/// Whether a key of DISTINCT ON is the mark.
pub fn is_mark(expr: &Expr) -> bool {
    match expr {
        Expr::Alias(alias) => is_mark(&alias.expr),
        Expr::ScalarFunction(function) => function.func.name() == NAME,
        _ => false,
    }
}

struct Blocks<'a> {
    places: &'a [Location],
}

impl VisitorMut for Blocks<'_> {
    type Break = Box<Error>;

    fn post_visit_query(&mut self, query: &mut ast::Query) -> Flow {
        self.set(&mut query.body);
        Flow::Continue(())
    }
}

impl Blocks<'_> {
    fn set(&self, body: &mut ast::SetExpr) {
        match body {
            ast::SetExpr::Select(select) => {
                let start = select.select_token.0.span.start;
                let at = Location { line: start.line, column: start.column };
                if let Some(ast::Distinct::On(keys)) = &mut select.distinct
                    && self.places.contains(&at)
                {
                    keys.push(call(NAME, Vec::new()));
                }
            }
            ast::SetExpr::SetOperation { left, right, .. } => {
                self.set(left);
                self.set(right);
            }
            _ => {}
        }
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Within {
    signature: Signature,
}

impl ScalarUDFImpl for Within {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(ColumnarValue::Scalar(ScalarValue::Boolean(Some(true))))
    }
}
