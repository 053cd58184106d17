//! Functions over rows that are taken back which no subtraction gives: each is computed anew of the values that are left.
//!
//! ```text
//! SELECT k, max(x), array_agg(x ORDER BY y) FILTER (WHERE p) FROM changes GROUP BY k
//! SELECT k, array_agg({x, w}), array_agg({x, y, w}) FILTER (WHERE p) FROM changes GROUP BY k
//! ```
//! The second brings a batch's values with their weights to the operator, which counts them ([`Keep::Signed`]) and hands a
//! function all that are there.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef, Schema};
use datafusion::common::{Column, DFSchema};
use datafusion::functions::core::expr_fn::named_struct;
use datafusion::logical_expr::execution_props::ExecutionProps;
use datafusion::logical_expr::expr::{AggregateFunction, AggregateFunctionParams, Sort};
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{Aggregate, AggregateUDF, Expr, ExprSchemable, cast, lit};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::physical_expr::aggregate::{AggregateFunctionExpr, LoweredAggregateBuilder};

use super::lower::{ElementsOf, values_of};
use super::names::Names;
use crate::error::{Error, Result};
use crate::operator::Keep;

/// The functions of one aggregate, and what brings their values.
pub struct Values {
    names: Names,
    array_agg: Arc<AggregateUDF>,
    weight: Expr,
    carriers: Vec<Carrier>,
    pub functions: Vec<OfValues>,
}

/// What brings values: each a column or more.
struct Carrier {
    inputs: Vec<Expr>,
    filter: Option<Expr>,
    call: Expr,
    /// What the columns are known by.
    names: Vec<String>,
}

/// A function of values.
pub struct OfValues {
    /// What it is known by in the state.
    pub name: String,
    /// Which carrier brings its values.
    pub carrier: usize,
    /// The call, over their columns.
    call: Expr,
}

impl Values {
    /// Of the functions of an aggregate, none yet.
    pub fn new(aggregate: &Aggregate, array_agg: Arc<AggregateUDF>, weight: Expr) -> Self {
        let names = Names::of(aggregate.group_expr.iter().chain(&aggregate.aggr_expr));
        Values { names, array_agg, weight, carriers: Vec::new(), functions: Vec::new() }
    }

    /// The calls that bring values.
    pub fn carriers(&self) -> impl Iterator<Item = &Expr> {
        self.carriers.iter().map(|carrier| &carrier.call)
    }

    /// Adds a function, over the columns of `schema`; answers its number.
    ///
    /// # Errors
    /// Of DataFusion.
    pub fn add(&mut self, expr: &Expr, function: &AggregateFunction, schema: &DFSchema) -> Result<usize> {
        let AggregateFunctionParams { args, distinct, filter, order_by, null_treatment } = &function.params;
        let mut inputs: Vec<Expr> = Vec::new();
        let context = SimplifyContext::builder().with_schema(Arc::new(schema.clone())).build();
        let simplifier = ExprSimplifier::new(context);
        let mut column = |expr: &Expr| {
            // Constants stay where they are: functions ask for them.
            if expr.column_refs().is_empty()
                && let Ok(constant @ Expr::Literal(..)) = simplifier.simplify(expr.clone())
            {
                return constant;
            }
            let at = inputs.iter().position(|input| input == expr).unwrap_or(inputs.len());
            if at == inputs.len() {
                inputs.push(expr.clone());
            }
            Expr::Column(Column::from_name(input_name(at)))
        };
        let params = AggregateFunctionParams {
            args: args.iter().map(&mut column).collect(),
            distinct: *distinct,
            filter: None,
            order_by: order_by.iter().map(|by| Sort { expr: column(&by.expr), ..by.clone() }).collect(),
            null_treatment: *null_treatment,
        };
        let call = Expr::AggregateFunction(AggregateFunction { func: function.func.clone(), params });
        let filter = filter.as_deref().cloned();
        let known = self.carriers.iter().position(|carrier| carrier.inputs == inputs && carrier.filter == filter);
        let carrier = match known {
            Some(carrier) => carrier,
            None => {
                let carrier = self.carrier(inputs, filter, schema)?;
                self.carriers.push(carrier);
                self.carriers.len() - 1
            }
        };
        let mut name = self.names.name(expr);
        let same = self.functions.iter().filter(|other| other.name.split('#').next() == Some(&name)).count();
        if same > 0 {
            name += &format!("#{}", same + 1);
        }
        self.functions.push(OfValues { name, carrier, call });
        Ok(self.functions.len() - 1)
    }

    fn carrier(&self, inputs: Vec<Expr>, filter: Option<Expr>, schema: &DFSchema) -> Result<Carrier> {
        let mut parts = Vec::new();
        for (n, input) in inputs.iter().enumerate() {
            let is = input.get_type(schema)?;
            // What is remembered has no dictionaries.
            let plain = values_of(&is);
            let input = if plain == is { input.clone() } else { cast(input.clone(), plain) };
            parts.extend([lit(input_name(n)), input]);
        }
        parts.extend([lit("weight"), self.weight.clone()]);
        let call = Expr::AggregateFunction(AggregateFunction {
            func: self.array_agg.clone(),
            params: AggregateFunctionParams {
                args: vec![named_struct(parts)],
                distinct: false,
                filter: filter.clone().map(Box::new),
                order_by: Vec::new(),
                null_treatment: None,
            },
        });
        let names = inputs.iter().map(|input| self.names.name(input)).collect();
        let call = call.alias(format!("__carrier{}", self.carriers.len()));
        Ok(Carrier { inputs, filter, call, names })
    }

    /// What is to be remembered of the values that carrier `n` brings in lists of type `lists`, in column `column`.
    ///
    /// # Errors
    /// Internal.
    pub fn elements(&self, n: usize, lists: &DataType, column: usize) -> Result<ElementsOf> {
        let carrier = self.carriers.get(n).ok_or_else(|| Error::internal("values that nothing brings"))?;
        let functions = self.functions.iter().filter(|function| function.carrier == n);
        let name = functions.map(|function| function.name.as_str()).next().unwrap_or_default();
        let fields = match lists {
            DataType::List(item) => match item.data_type() {
                DataType::Struct(fields) => fields,
                _ => return Err(Error::internal("values that are no structs")),
            },
            _ => return Err(Error::internal("values that come in no lists")),
        };
        let values = fields.iter().take(carrier.names.len()).zip(&carrier.names);
        Ok(ElementsOf {
            name: name.to_string(),
            keep: Keep::Signed,
            columns: vec![column],
            values: values.map(|(field, name)| (name.clone(), field.data_type().clone())).collect(),
            taken_as: None,
            orderings: Vec::new(),
        })
    }

    /// What a carrier is called where something is wrong with it.
    pub fn carrier_name(&self, n: usize) -> String {
        let functions = self.functions.iter().filter(|function| function.carrier == n);
        functions.map(|function| function.name.as_str()).collect::<Vec<_>>().join(", ")
    }
}

impl OfValues {
    /// The function over columns of these types.
    ///
    /// # Errors
    /// Of DataFusion.
    pub fn physical(&self, values: &[(String, DataType)]) -> Result<Arc<AggregateFunctionExpr>> {
        let field = |(n, (_, is)): (usize, &(String, DataType))| -> FieldRef {
            arrow::datatypes::Field::new(input_name(n), is.clone(), true).into()
        };
        let schema = Schema::new(values.iter().enumerate().map(field).collect::<Vec<_>>());
        let columns = DFSchema::try_from(schema.clone())?;
        let (props, context) = (ExecutionProps::new(), PhysicalPlanningContext::default());
        let builder = LoweredAggregateBuilder::new(&self.call, &columns, &schema, &props, &context);
        Ok(builder.with_name(&self.name).build()?.aggregate)
    }
}

fn input_name(n: usize) -> String {
    format!("v{n}")
}
