//! What a fragment has let pass in a run: rows in front of and behind each of its nodes that can leave rows out.
//!
//! DataFusion counts the rows of its filters and joins anyway. They are read once, behind a run, so that no row is counted
//! for this alone.

use std::any::Any;
use std::sync::Arc;

use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec};

use super::tap::TapExec;
use crate::planner::leaf::LeafExec;

/// What went into a fragment, and what came through.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Passed {
    /// Rows of sources, or of operators below.
    pub rows_in: u64,
    /// Rows behind the last node that can leave rows out; an aggregation that is cut in two hands on fewer.
    pub rows_out: u64,
    /// From the leaves up.
    pub gates: Vec<Gate>,
}

/// A node that can leave rows out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gate {
    /// `price > 10`; `the join with a static table`.
    pub what: String,
    /// A condition of WHERE or HAVING, or of ON: no join.
    pub is_filter: bool,
    pub rows_in: u64,
    pub rows_out: u64,
}

impl Passed {
    /// Of a plan that has been run.
    pub fn of(plan: &Arc<dyn ExecutionPlan>) -> Self {
        let mut passed = Passed::default();
        passed.rows_out = passed.flow(plan).unwrap_or_default();
        passed
    }

    /// Adds another run of the same plan.
    pub fn add(&mut self, other: &Passed) {
        self.rows_in += other.rows_in;
        self.rows_out += other.rows_out;
        other.gates.iter().for_each(|gate| self.count(gate));
    }

    /// Adds what a gate counted: gates that say the same are one.
    fn count(&mut self, gate: &Gate) {
        match self.gates.iter_mut().find(|own| own.what == gate.what && own.is_filter == gate.is_filter) {
            Some(own) => {
                own.rows_in += gate.rows_in;
                own.rows_out += gate.rows_out;
            }
            None => self.gates.push(gate.clone()),
        }
    }

    /// Rows that a node has handed on; `None`: it reads no stream.
    fn flow(&mut self, node: &Arc<dyn ExecutionPlan>) -> Option<u64> {
        let any = node.as_ref() as &dyn Any;
        if let Some(leaf) = any.downcast_ref::<LeafExec>() {
            self.rows_in += leaf.rows();
            return Some(leaf.rows());
        }
        let below: Vec<u64> = node.children().into_iter().filter_map(|child| self.flow(child)).collect();
        let rows_in = below.into_iter().reduce(|a, b| a + b)?;
        if let Some(tap) = any.downcast_ref::<TapExec>() {
            return Some(tap.passed());
        }
        // Its rows are groups, and without keys it has one of nothing.
        if any.is::<AggregateExec>() {
            return Some(rows_in);
        }
        let rows_out = node.metrics().and_then(|metrics| metrics.output_rows()).map(|rows| rows as u64);
        let what = match any.downcast_ref::<FilterExec>() {
            Some(filter) => Some((without_places(&filter.predicate().to_string()), true)),
            None if is_join(any) => Some(("the join with a static table".to_string(), false)),
            None => None,
        };
        if let (Some((what, is_filter)), Some(rows_out)) = (what, rows_out) {
            self.count(&Gate { what, is_filter, rows_in, rows_out });
        }
        Some(rows_out.unwrap_or(rows_in))
    }
}

fn is_join(node: &dyn Any) -> bool {
    node.is::<HashJoinExec>()
        || node.is::<NestedLoopJoinExec>()
        || node.is::<CrossJoinExec>()
        || node.is::<SortMergeJoinExec>()
}

/// A condition as a person writes it: `v@1 > 1` is `v > 1`.
fn without_places(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('@') {
        let (before, behind) = (&rest[..at], &rest[at + 1..]);
        let digits = behind.bytes().take_while(u8::is_ascii_digit).count();
        let next = behind[digits..].chars().next();
        let ends = next.is_none_or(|c| !c.is_alphanumeric() && c != '.' && c != '_');
        let named = before.chars().next_back().is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '"');
        out.push_str(before);
        match digits > 0 && ends && named {
            true => rest = &behind[digits..],
            false => {
                out.push('@');
                rest = behind;
            }
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_is_shown_without_the_places_of_its_columns() {
        assert_eq!(without_places("v@1 > 1 AND k@0 = a@b.c"), "v > 1 AND k = a@b.c");
        assert_eq!(without_places("k@0 = me@10.example"), "k = me@10.example");
        assert_eq!(without_places("(k@12) IS NULL"), "(k) IS NULL");
    }

    #[test]
    fn runs_of_one_fragment_add_up_by_condition() {
        let gate = |what: &str, rows_in, rows_out| Gate { what: what.into(), is_filter: true, rows_in, rows_out };
        let mut all = Passed { rows_in: 3, rows_out: 1, gates: vec![gate("a", 3, 2), gate("b", 2, 1)] };
        all.add(&Passed { rows_in: 1, rows_out: 0, gates: vec![gate("b", 1, 0)] });
        all.add(&Passed::default());
        assert_eq!(all, Passed { rows_in: 4, rows_out: 1, gates: vec![gate("a", 3, 2), gate("b", 3, 1)] });
    }
}
