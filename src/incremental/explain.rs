//! EXPLAIN: the incremental plan as a tree of fragments and operators, and what bounds each state.

use std::fmt::Write;

use super::{Fragment, IncrementalPlan, OperatorNode};
use crate::operator::Role;
use crate::planner::interval_text;

/// The plan as text, the sink's side first.
pub fn explain(plan: &IncrementalPlan, sink: &str) -> String {
    let mut tree = Tree { plan, text: String::new() };
    tree.line(
        0,
        &format!("Sink: {sink}, mode {:?}{}", plan.mode, if plan.retracts { ", takes rows back" } else { "" }),
    );
    let deepest = tree.fragment(2, &plan.last, &plan.last_from);
    for input in &plan.inputs {
        tree.line(deepest + 2, &format!("Input {}", input.name));
    }
    for watermark in &plan.watermarks {
        let delay = interval_text(watermark.spec.delay);
        tree.line(deepest + 2, &format!("Watermark of {}: delay {delay}", watermark.name));
    }
    for table in &plan.statics {
        tree.line(deepest + 2, &format!("Static table {}", table.name));
    }
    tree.text
}

struct Tree<'a> {
    plan: &'a IncrementalPlan,
    text: String,
}

impl Tree<'_> {
    fn line(&mut self, indent: usize, text: &str) {
        let _ = writeln!(self.text, "{:indent$}{text}", "");
    }

    /// A fragment, and below it the operators that it reads; answers how far the deepest fragment is indented.
    fn fragment(&mut self, indent: usize, fragment: &Fragment, from: &[usize]) -> usize {
        self.line(indent, "Fragment");
        let text = fragment.explain(indent + 2);
        text.lines().for_each(|line| self.line(0, line));
        let nodes: Vec<&OperatorNode> = from.iter().filter_map(|n| self.plan.operators.get(*n)).collect();
        nodes.into_iter().map(|node| self.operator(indent + 2, node)).max().unwrap_or(indent)
    }

    fn operator(&mut self, indent: usize, node: &OperatorNode) -> usize {
        let mut costs = Vec::new();
        for state in node.spec.states() {
            match &state.role {
                Role::Own => {
                    let mut lines = node.spec.describe().into_iter();
                    self.line(indent, &format!("Operator {}: {}", state.name(), lines.next().unwrap_or_default()));
                    self.line(indent, &format!("  state: {}", state.bound));
                    costs = lines.collect();
                }
                Role::Part(serves) => {
                    self.line(indent, &format!("  state of {}, for {serves}: {}", state.name(), state.bound));
                }
                Role::InFront(does) => {
                    costs.drain(..).for_each(|line| self.line(indent, &format!("  {line}")));
                    self.line(indent + 2, &format!("Operator {}: {does}", state.name()));
                    self.line(indent + 2, &format!("  state: {}", state.bound));
                }
            }
        }
        costs.iter().for_each(|line| self.line(indent, &format!("  {line}")));
        let inputs: Vec<_> = node.inputs.iter().zip(&node.from).collect();
        inputs.into_iter().map(|(fragment, from)| self.fragment(indent + 2, fragment, from)).max().unwrap_or(indent)
    }
}
