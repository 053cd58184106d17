//! Floats in groups: +0.0 and −0.0 are one, all NaN are one.
//!
//! DataFusion tells NaN by its bits when it groups by several columns, and the two zeros in some DISTINCT aggregates; what
//! a batch answers then depends on which of its ways of grouping was taken, and differs from what a stream remembers. So
//! float keys, floats that an OVER is partitioned by, and floats that are aggregated DISTINCT, pass a function that gives each value one form. Floats inside
//! structs and lists don't.

use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{DataType, FieldRef, Float32Type, Float64Type};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, JoinType, Result};
use datafusion::logical_expr::builder::build_join_schema;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    Aggregate, ColumnarValue, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Operator, ReturnFieldArgs,
    ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, Window,
};

/// Puts the function around float keys and DISTINCT arguments of every aggregation, under the names that they have, and around
/// floats that are looked for in lists and subqueries. A key that is named twice is one key.
pub fn unify(plan: LogicalPlan) -> Result<LogicalPlan> {
    let unified = plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Aggregate(aggregate) => unify_node(aggregate),
        LogicalPlan::Window(window) => unify_window(window),
        other => {
            let schema = merge_schema(&other.inputs());
            other.map_expressions(|expr| expr.transform_up(|expr| sought(expr, &schema)))
        }
    });
    Ok(unified?.data)
}

/// Puts the function around float keys of joins that DataFusion runs: it finds partners by the bits.
pub fn unify_joins(plan: LogicalPlan) -> Result<LogicalPlan> {
    let unified = plan.transform_up_with_subqueries(|node| {
        let LogicalPlan::Join(mut join) = node else { return Ok(Transformed::no(node)) };
        let mut changed = false;
        if let Some(filter) = join.filter.take() {
            // What a semi join answers has one side's columns, its condition speaks of both.
            let both = build_join_schema(join.left.schema(), join.right.schema(), &JoinType::Inner)?;
            let filter = filter.transform_up(|expr| equal(expr, &both))?;
            changed |= filter.transformed;
            join.filter = Some(filter.data);
        }
        for (left, right) in &mut join.on {
            for (key, input) in [(left, &join.left), (right, &join.right)] {
                let one = join_key(key.clone(), input.schema())?;
                changed |= one != *key;
                *key = one;
            }
        }
        let join = LogicalPlan::Join(join);
        Ok(if changed { Transformed::yes(join) } else { Transformed::no(join) })
    });
    Ok(unified?.data)
}

/// Equality of floats may become a key.
fn equal(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    match expr {
        Expr::BinaryExpr(mut binary) if binary.op == Operator::Eq => {
            let (left, right) = (join_key(*binary.left.clone(), schema)?, join_key(*binary.right.clone(), schema)?);
            let changed = left != *binary.left || right != *binary.right;
            (*binary.left, *binary.right) = (left, right);
            let expr = Expr::BinaryExpr(binary);
            Ok(if changed { Transformed::yes(expr) } else { Transformed::no(expr) })
        }
        other => Ok(Transformed::no(other)),
    }
}

/// In long lists, and in subqueries, DataFusion finds values by their bits.
fn sought(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let is_float = |expr: &Expr| expr.get_type(schema).is_ok_and(|of| of.is_floating());
    match expr {
        Expr::InList(mut within) if is_float(&within.expr) => {
            *within.expr = one_form(*within.expr, schema)?;
            within.list = within.list.into_iter().map(|value| one_form(value, schema)).collect::<Result<_>>()?;
            Ok(Transformed::yes(Expr::InList(within)))
        }
        Expr::InSubquery(mut within) if is_float(&within.expr) => {
            *within.expr = join_key(*within.expr, schema)?;
            let of = within.subquery.subquery.as_ref();
            let columns = of.schema().columns().into_iter().map(|column| {
                let (relation, name) = (column.relation.clone(), column.name.clone());
                Ok(one_form(Expr::Column(column), of.schema())?.alias_qualified(relation, name))
            });
            let columns = columns.collect::<Result<Vec<_>>>()?;
            within.subquery.subquery = Arc::new(LogicalPlanBuilder::from(of.clone()).project(columns)?.build()?);
            Ok(Transformed::yes(Expr::InSubquery(within)))
        }
        other => Ok(Transformed::no(other)),
    }
}

fn unify_node(aggregate: Aggregate) -> Result<Transformed<LogicalPlan>> {
    let mut once: Vec<Expr> = Vec::new();
    for key in &aggregate.group_expr {
        if !once.contains(key) {
            once.push(key.clone());
        }
    }
    let one = |expr: &Expr, new: Expr| match new == *expr {
        true => new,
        false => {
            let (qualifier, name) = expr.qualified_name();
            new.alias_qualified(qualifier, name)
        }
    };
    let key = |expr: &Expr| Ok(one(expr, wrapped(expr.clone(), &aggregate)?));
    let call = |expr: &Expr| {
        let distinct = expr.clone().transform_down(|e| match e {
            Expr::AggregateFunction(mut function) if function.params.distinct => {
                for sort in &mut function.params.order_by {
                    sort.expr = wrapped(sort.expr.clone(), &aggregate)?;
                }
                let args = std::mem::take(&mut function.params.args);
                function.params.args = args.into_iter().map(|e| wrapped(e, &aggregate)).collect::<Result<_>>()?;
                Ok(Transformed::yes(Expr::AggregateFunction(function)))
            }
            other => Ok(Transformed::no(other)),
        });
        Ok(one(expr, distinct?.data))
    };
    let keys = once.iter().map(key).collect::<Result<Vec<_>>>()?;
    let calls = aggregate.aggr_expr.iter().map(call).collect::<Result<Vec<_>>>()?;
    if keys == aggregate.group_expr && calls == aggregate.aggr_expr {
        return Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)));
    }
    Ok(Transformed::yes(LogicalPlan::Aggregate(Aggregate::try_new(aggregate.input.clone(), keys, calls)?)))
}

/// The same of what an OVER is partitioned by.
fn unify_window(window: Window) -> Result<Transformed<LogicalPlan>> {
    let one = |expr: &Expr| {
        expr.clone().transform_down(|e| match e {
            Expr::WindowFunction(mut call) => {
                let by = std::mem::take(&mut call.params.partition_by);
                call.params.partition_by =
                    by.into_iter().map(|e| one_form(e, window.input.schema())).collect::<Result<_>>()?;
                Ok(Transformed::new(Expr::WindowFunction(call), true, TreeNodeRecursion::Jump))
            }
            other => Ok(Transformed::no(other)),
        })
    };
    let calls = window.window_expr.iter().map(|expr| Ok(one(expr)?.data)).collect::<Result<Vec<Expr>>>()?;
    if calls == window.window_expr {
        return Ok(Transformed::no(LogicalPlan::Window(window)));
    }
    let Window { input, schema, .. } = window;
    Ok(Transformed::yes(LogicalPlan::Window(Window::try_new_with_schema(calls, input, schema)?)))
}

fn wrapped(expr: Expr, aggregate: &Aggregate) -> Result<Expr> {
    one_form(expr, aggregate.input.schema())
}

/// A key over rows of these columns, with the function around it if it is a float.
pub fn one_form(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    // GROUPING SETS have no type; their keys stay as they are.
    let is_float = !matches!(expr, Expr::GroupingSet(_))
        && matches!(expr.get_type(schema)?, DataType::Float32 | DataType::Float64);
    Ok(if is_float { Expr::ScalarFunction(ScalarFunction::new_udf(ONE_FORM.clone(), vec![expr])) } else { expr })
}

/// What the function is around, or the expression itself.
pub fn as_written(expr: &Expr) -> &Expr {
    match expr {
        Expr::ScalarFunction(call) if call.func == *ONE_FORM => call.args.first().map_or(expr, as_written),
        other => other,
    }
}

/// The same under a name of its own: DataFusion makes columns of the keys of a join, beside those that they are made of.
fn join_key(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    Ok(match one_form(expr, schema)? {
        Expr::ScalarFunction(call) if call.func == *ONE_FORM => {
            Expr::ScalarFunction(ScalarFunction::new_udf(JOIN_KEY.clone(), call.args))
        }
        other => other,
    })
}

static ONE_FORM: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| function("levada_float"));
static JOIN_KEY: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| function("levada_float_key"));

fn function(name: &'static str) -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::new_from_impl(OneForm { name, signature: Signature::any(1, Volatility::Immutable) }))
}

/// `levada_float` and `levada_float_key`: +0.0 for both zeros, one NaN for all.
#[derive(Debug, PartialEq, Eq, Hash)]
struct OneForm {
    name: &'static str,
    signature: Signature,
}

impl ScalarUDFImpl for OneForm {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, args: &[DataType]) -> Result<DataType> {
        Ok(args[0].clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        Ok(args.arg_fields[0].as_ref().clone().with_name(self.name()).into())
    }

    // The name of what is given its one form: names say what a user wrote.
    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let written: String = args.iter().map(|expr| expr.schema_name().to_string()).collect();
        Ok(if self.name == "levada_float" { written } else { format!("{}({written})", self.name) })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let array = args.args[0].to_array(args.number_rows)?;
        // Adding 0.0 makes −0.0 the other zero.
        let unified: ArrayRef = match array.data_type() {
            DataType::Float32 => {
                let one = |v: f32| if v.is_nan() { f32::NAN } else { v + 0.0 };
                Arc::new(array.as_primitive::<Float32Type>().unary::<_, Float32Type>(one))
            }
            DataType::Float64 => {
                let one = |v: f64| if v.is_nan() { f64::NAN } else { v + 0.0 };
                Arc::new(array.as_primitive::<Float64Type>().unary::<_, Float64Type>(one))
            }
            _ => array,
        };
        Ok(ColumnarValue::Array(unified))
    }
}
