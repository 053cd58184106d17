//! Functions are lowered whose partial states hold the values of a group, so that a batch costs what it brings.
//!
//! The fragment hands out a batch's values of a group as a list, as DataFusion's partial states of these functions are. Kept
//! as they come, in the group's one row, they would make a batch cost as much as the groups that it touches hold. So each value
//! becomes a row of its own.
//!
//! - DISTINCT functions: values that were never there before feed the plain function ([`crate::operator::Distinct`]); the
//!   group keeps a count or a sum.
//! - Functions whose result needs all values: they are remembered as elements, and the group keeps nothing of them.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::physical_expr::aggregate::{AggregateExprBuilder, AggregateFunctionExpr};
use datafusion::physical_expr::expressions::Literal;
use datafusion::physical_expr::{PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::aggregates::AggregateExec;

use super::aggregate::Named;
use super::linear::Linear;
use crate::delta::keys::KeyCodec;
use crate::error::{Error, Result};
use crate::operator::{Feed, Keep};

/// Functions of values that may come in any order and one by one, and whose DISTINCT states are those values.
/// `var` is not among them: DataFusion's of a single NaN is 0 where DISTINCT, and NaN otherwise.
const LOWERED: &[&str] = &["count", "sum", "avg", "bit_xor"];

/// Functions that need all values and take them in any order; and those that take them in the order of the input.
const OF_ANY_ORDER: &[&str] = &["median", "percentile_cont"];
const IN_ORDER: &[&str] = &["array_agg", "string_agg"];

/// What the operators compute of a fragment's partial states.
#[derive(Default)]
pub struct Lowered {
    /// The fragment's functions, without DISTINCT where a distinct is in front of them.
    pub functions: Vec<Arc<AggregateFunctionExpr>>,
    pub feeds: Vec<Feed>,
    /// What is remembered value by value; number n is input n + 1.
    pub arguments: Vec<Argument>,
    pub elements: Vec<ElementsOf>,
    /// What each function is known by, and its place among the results.
    pub names: Vec<String>,
    pub places: Vec<usize>,
    /// Which function says how many rows a group has, where rows are taken back.
    pub rows: Option<usize>,
}

/// An argument of one or more DISTINCT functions.
pub struct Argument {
    /// The first function that wants it, as its values are known again by.
    pub name: String,
    /// The fragment's column that has it, in lists.
    pub column: usize,
    pub data_type: DataType,
}

/// The elements of one or more functions.
pub struct ElementsOf {
    /// The first function that wants them, as they are known again by.
    pub name: String,
    pub keep: Keep,
    /// The fragment's columns that have them, and what they are ordered by.
    pub columns: Vec<usize>,
    /// What an element is made of, by name: one value, or those that a function over rows that are taken back reads.
    pub values: Vec<(String, DataType)>,
    /// The type that the functions take, where it is another.
    pub taken_as: Option<DataType>,
    /// The types of what they are ordered by.
    pub orderings: Vec<DataType>,
}

/// Lowers what can be. `groups`: the fields of the group's columns; `linear`: rows are taken back.
///
/// # Errors
/// Of DataFusion, for a function that is not there without DISTINCT.
pub fn lower(partial: &AggregateExec, groups: &[FieldRef], named: &Named, linear: Option<&Linear>) -> Result<Lowered> {
    let mut lowered = Lowered::default();
    let names: Vec<String> = named.order.iter().map(|n| named.functions[*n].clone()).collect();
    let mut brought: HashMap<usize, usize> = HashMap::new();
    let (mut firsts, mut element_firsts): (Vec<usize>, Vec<usize>) = Default::default();
    let (functions, filters) = (partial.aggr_expr(), partial.filter_expr());
    let mut at = 0;
    for (n, function) in functions.iter().enumerate() {
        let states = function.state_fields()?;
        let place = at;
        at += states.len();
        let column = partial.group_expr().num_group_exprs() + place;
        if let Some(linear) = linear {
            if let Some(carrier) = linear.carrier(named.order[n]) {
                let Some(state) = states.first() else { return Err(Error::internal("values that come in no column")) };
                brought.insert(carrier, lowered.elements.len());
                lowered.elements.push(linear.values.elements(carrier, state.data_type(), column)?);
                continue;
            }
            if named.order[n] == Linear::ROWS {
                // Of the sums alone: what brings values has no state of its own.
                lowered.rows = Some(lowered.functions.len());
            }
        }
        lowered.names.push(names[n].clone());
        lowered.places.push(named.order[n]);
        if let Some(elements) = elements_of(function, &states, column, groups, &names[n]) {
            let same = |(of, first): (&ElementsOf, &usize)| {
                let other = &functions[*first];
                matches!(elements.keep, Keep::Counted { .. })
                    && of.keep == elements.keep
                    && other.fun().name() == function.fun().name()
                    && other.ignore_nulls() == function.ignore_nulls()
                    && other.expressions().first() == function.expressions().first()
                    && filters[*first] == filters[n]
            };
            let shared = lowered.elements.iter().zip(&element_firsts).position(same);
            lowered.feeds.push(Feed::Elements(shared.unwrap_or(lowered.elements.len())));
            lowered.functions.push(Arc::new(of_elements(function, partial)?));
            if shared.is_none() {
                lowered.elements.push(elements);
                element_firsts.push(n);
            }
            continue;
        }
        if !is_lowered(function, &states) {
            lowered.functions.push(function.clone());
            lowered.feeds.push(Feed::States(place));
            continue;
        }
        let same =
            |first: &usize| functions[*first].expressions() == function.expressions() && filters[*first] == filters[n];
        let argument = firsts.iter().position(same).unwrap_or(firsts.len());
        if argument == firsts.len() {
            firsts.push(n);
            let data_type = function.expressions()[0].data_type(&partial.input_schema())?;
            lowered.arguments.push(Argument { name: names[n].clone(), column, data_type: values_of(&data_type) });
        }
        let plain = AggregateExprBuilder::new(Arc::new(function.fun().clone()), function.expressions());
        let plain = plain.schema(partial.input_schema()).alias(function.name()).build()?;
        lowered.functions.push(Arc::new(plain));
        lowered.feeds.push(Feed::Values(argument + 1));
    }
    for (n, function) in linear.iter().flat_map(|linear| linear.values.functions.iter().enumerate()) {
        let elements = brought.get(&function.carrier).and_then(|at| Some((*at, lowered.elements.get(*at)?)));
        let Some((at, elements)) = elements else { return Err(Error::internal("values that nothing brings")) };
        lowered.functions.push(function.physical(&elements.values)?);
        lowered.feeds.push(Feed::Elements(at));
        lowered.names.push(function.name.clone());
        lowered.places.extend(linear.map(|linear| linear.place(n)));
    }
    Ok(lowered)
}

fn is_lowered(function: &AggregateFunctionExpr, states: &[FieldRef]) -> bool {
    function.is_distinct()
        && LOWERED.contains(&function.fun().name())
        && function.expressions().len() == 1
        && matches!(states, [state] if matches!(state.data_type(), DataType::List(_)))
}

/// What is to be remembered of a function element by element; `None`: nothing, its states are to be.
fn elements_of(
    function: &AggregateFunctionExpr,
    states: &[FieldRef],
    column: usize,
    groups: &[FieldRef],
    name: &str,
) -> Option<ElementsOf> {
    let of_any_order = OF_ANY_ORDER.contains(&function.fun().name());
    let constant = |expr: &Arc<dyn PhysicalExpr>| (expr.as_ref() as &dyn std::any::Any).is::<Literal>();
    if !(of_any_order || IN_ORDER.contains(&function.fun().name()))
        || !function.expressions().iter().skip(1).all(constant)
    {
        return None;
    }
    let (element, orderings) = match states {
        [state] => match state.data_type() {
            DataType::List(item) => (item.data_type(), Vec::new()),
            // string_agg puts a batch's texts together: each such text is an element.
            text @ DataType::LargeUtf8 if !of_any_order => (text, Vec::new()),
            _ => return None,
        },
        [state, ordered_by] => match (state.data_type(), ordered_by.data_type()) {
            (DataType::List(item), DataType::List(orderings)) => match orderings.data_type() {
                DataType::Struct(fields) => {
                    (item.data_type(), fields.iter().map(|field| values_of(field.data_type())).collect())
                }
                _ => return None,
            },
            _ => return None,
        },
        _ => return None,
    };
    let keep = match (function.is_distinct(), of_any_order) {
        (true, _) => Keep::Counted { once: true },
        (false, true) => Keep::Counted { once: false },
        (false, false) => Keep::InOrder,
    };
    let data_type = values_of(element);
    if matches!(keep, Keep::Counted { .. }) {
        let value = Arc::new(Field::new("value", data_type.clone(), true));
        let keys: Vec<FieldRef> = groups.iter().cloned().chain([value]).collect();
        // What can be no key stays in the group's row.
        KeyCodec::exact_behind(&keys, groups.len()).ok()?;
    }
    Some(ElementsOf {
        name: name.to_string(),
        keep,
        columns: (column..column + states.len()).collect(),
        taken_as: (data_type != *element).then(|| element.clone()),
        values: vec![(name.to_string(), data_type)],
        orderings,
    })
}

/// The function as it is computed of all elements, which come in no order of its own: whatever the fragment has found out
/// about the order of a batch does not hold for them.
fn of_elements(function: &AggregateFunctionExpr, partial: &AggregateExec) -> Result<AggregateFunctionExpr> {
    let fun = function.fun().clone();
    let fun = fun.clone().with_beneficial_ordering(false)?.unwrap_or(fun);
    let orderings = function.order_bys().iter().map(|by| match function.is_reversed() {
        true => PhysicalSortExpr { expr: by.expr.clone(), options: !by.options },
        false => by.clone(),
    });
    let builder = AggregateExprBuilder::new(Arc::new(fun), function.expressions())
        .order_by(orderings.collect())
        .schema(partial.input_schema())
        .alias(function.name())
        .with_ignore_nulls(function.ignore_nulls())
        .with_distinct(function.is_distinct());
    Ok(builder.build()?)
}

/// The type of the values that a dictionary stands for, inside lists and structs too.
pub fn values_of(data_type: &DataType) -> DataType {
    let field = |f: &FieldRef| -> FieldRef { f.as_ref().clone().with_data_type(values_of(f.data_type())).into() };
    match data_type {
        DataType::Dictionary(_, values) => values_of(values),
        DataType::List(f) => DataType::List(field(f)),
        DataType::LargeList(f) => DataType::LargeList(field(f)),
        DataType::FixedSizeList(f, size) => DataType::FixedSizeList(field(f), *size),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(field).collect()),
        DataType::Map(f, sorted) => DataType::Map(field(f), *sorted),
        other => other.clone(),
    }
}
