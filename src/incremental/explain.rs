//! EXPLAIN: the incremental plan as a tree of fragments and operators, and what bounds each state.

use std::fmt::Write;

use arrow::datatypes::FieldRef;

use super::IncrementalPlan;
use crate::operator::{AggregateSpec, ChainSpec, Emit, Feed, Keep};
use crate::planner::interval_text;

/// The plan as text, the sink's side first.
pub fn explain(plan: &IncrementalPlan, sink: &str) -> String {
    let mut text = String::new();
    let mut line = |indent: usize, s: String| {
        let _ = writeln!(text, "{:indent$}{s}", "");
    };
    line(0, format!("Sink: {sink}, mode {:?}{}", plan.mode, if plan.retracts { ", takes rows back" } else { "" }));
    let mut indent = 2;
    if let Some(part) = &plan.aggregate {
        line(indent, "Fragment".into());
        part.post.explain(indent + 2).lines().for_each(|l| line(0, l.into()));
        indent += 2;
        let aggregate = &part.chain.aggregate;
        let mut bounds = bounds(&part.chain).into_iter();
        line(indent, format!("Operator {}: {}", aggregate.name, describe(aggregate)));
        line(indent, format!("  state: {}", bounds.next().unwrap_or_default()));
        for (n, (elements, bound)) in aggregate.elements.iter().zip(bounds.by_ref()).enumerate() {
            let names = fed_by(aggregate, Feed::Elements(n));
            line(indent, format!("  state of {}, for {names}: {bound}", elements.name));
        }
        if let Some(costs) = grows_within_groups(aggregate) {
            line(indent, format!("  {costs}"));
        }
        indent += 2;
        for (n, ((distinct, _), bound)) in part.chain.distinct.iter().zip(bounds).enumerate() {
            let names = fed_by(aggregate, Feed::Values(n + 1));
            line(indent, format!("Operator {}: hands each value of a group on once, for {names}", distinct.name));
            line(indent, format!("  state: {bound}"));
        }
    }
    line(indent, "Fragment".into());
    plan.first.explain(indent + 2).lines().for_each(|l| line(0, l.into()));
    for input in &plan.inputs {
        line(indent + 2, format!("Input {}", input.name));
    }
    for watermark in &plan.watermarks {
        line(indent + 2, format!("Watermark of {}: delay {}", watermark.name, interval_text(watermark.spec.delay)));
    }
    for table in &plan.statics {
        line(indent + 2, format!("Static table {}", table.name));
    }
    text
}

/// The functions that are fed so.
fn fed_by(spec: &AggregateSpec, feed: Feed) -> String {
    let names = spec.names.iter().zip(&spec.feeds).filter(|(_, is)| **is == feed);
    names.map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ")
}

fn name(field: &str) -> &str {
    field.split_once(':').map_or(field, |(_, name)| name)
}

fn describe(spec: &AggregateSpec) -> String {
    let keys: Vec<&str> = spec.keys.iter().map(|f| name(f.name())).collect();
    let emit = match spec.emit {
        Emit::Closed => "each group once, when the watermark closes it",
        Emit::Changed { old: true } => "changed groups, old row and new row",
        Emit::Changed { old: false } => "changed groups",
        Emit::All => "all groups in every batch",
    };
    format!("keys [{}], functions [{}]; sends {emit}", keys.join(", "), spec.names.join(", "))
}

/// Functions that remember every value of a group, in the group's one row: then a batch costs more than what it changed.
fn grows_within_groups(spec: &AggregateSpec) -> Option<String> {
    // The lists of approximate functions are sketches, of a size that does not grow; nth_value keeps n values.
    let holds_values = |n: &usize| {
        let lists = |states: &Vec<FieldRef>| states.iter().any(|state| state.data_type().is_list());
        let function = spec.functions[*n].fun().name();
        lists(&spec.states[*n]) && !function.starts_with("approx_") && function != "nth_value"
    };
    let growing: Vec<&str> = (0..spec.names.len()).filter(holds_values).map(|n| spec.names[n].as_str()).collect();
    (!growing.is_empty()).then(|| {
        format!(
            "{} keeps every value of a group: a batch costs as much as the groups that it touches hold",
            growing.join(", ")
        )
    })
}

/// What bounds each state, in the order of [`ChainSpec::names`].
pub fn bounds(chain: &ChainSpec) -> Vec<String> {
    let spec = &chain.aggregate;
    let each = |row: &str| match spec.forget {
        Some(by) => format!("{row}, until the watermark reaches the end of {}", name(spec.keys[by.column].name())),
        None if spec.emit == Emit::All => format!("{row}, kept for ever (COMPLETE sends all of them)"),
        None => format!("UNBOUNDED: {row}, kept for ever, as no key is a watermarked time"),
    };
    let group = if spec.keys.is_empty() { "one row".into() } else { each("one row a group") };
    let in_group = |row: &str, which: &str| match spec.keys.is_empty() {
        true => format!("UNBOUNDED: {row}{which}, kept for ever"),
        false => each(&format!("{row} of a group{which}")).replace("sends all of them", "sends all groups"),
    };
    let elements = spec.elements.iter().map(|elements| match elements.keep {
        Keep::InOrder => in_group("one row an element", ""),
        Keep::Counted { once: false } => in_group("one row an element", ", equal ones counted in one"),
        Keep::Counted { once: true } => in_group("one row an element", ", equal ones once"),
    });
    let distinct = chain.distinct.iter().map(|_| in_group("one row a value", ""));
    std::iter::once(group).chain(elements).chain(distinct).collect()
}
