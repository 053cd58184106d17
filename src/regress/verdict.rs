//! What is done with a record that is not as it is expected: it is said, or its lines are written anew.

use sqllogictest::Record;

use super::complete;
use super::place::Place;
use super::report::{Edit, Fault};
use super::run::FileRun;
use super::script::{Body, Node};
use super::substitute::Variables;
use super::values::Style;

/// Why nothing is written where a record runs more than once.
pub const TORN: &str =
    "its rounds come to different things, so that no lines are right for all of them: nothing is written";

impl FileRun<'_> {
    /// Where lines are written anew: those of this record need not be.
    pub(super) fn is_as_expected(&mut self, node: &Node) {
        if !matches!(node.body, Body::Scenario { .. }) && self.completion.keep(node, Vec::new()) {
            self.say_failed(node, Fault::text(TORN));
        }
    }

    pub(super) fn fail(&mut self, node: &Node, mut fault: Fault) {
        if !self.options.complete {
            if let Some(line) = node.block.swallows {
                fault.message = format!("{}\n{}", complete::swallowed(line), fault.message);
            }
            self.say_failed(node, fault);
            self.failing = true;
            return;
        }
        // Where lines are written anew, one that can't be is no reason to leave out the rest.
        let edits = std::mem::take(&mut fault.edits).into_iter().map(|edit| self.written(node, edit));
        match edits.collect::<Result<Vec<Edit>, String>>() {
            Err(why) => fault.message = format!("left as it is: {why}\n{}", fault.message),
            Ok(edits) if edits.is_empty() => fault.message = format!("{}\n{}", complete::LEFT, fault.message),
            Ok(edits) => {
                if self.completion.keep(node, edits) {
                    fault.message = format!("{TORN}\n{}", fault.message);
                } else if fault.left {
                    fault.message = format!("{}\n{}", complete::LEFT, fault.message);
                } else {
                    return;
                }
            }
        }
        self.say_failed(node, fault);
    }

    /// An edit as the file would have it.
    fn written(&self, node: &Node, edit: Edit) -> Result<Edit, String> {
        let folder = self.world.folder().display().to_string();
        Ok(match edit {
            Edit::Block(lines) => {
                let plain = self.world.style == Style::Plain && matches!(node.body, Body::Plain(Record::Query { .. }));
                if let Some(line) = lines.iter().find(|line| plain && line.contains("<slt:ignore>")) {
                    return Err(format!("{line:?} would be read as a pattern"));
                }
                // The rows of plain files have no names.
                let mut variables: Variables = self.variables.clone();
                variables.on &= !plain;
                Edit::Block(complete::written(node, lines, &folder, &variables)?)
            }
            Edit::Line(line, text) if self.variables.on => Edit::Line(line, self.variables.escape(&text)),
            other => other,
        })
    }

    pub(super) fn say_failed(&mut self, node: &Node, fault: Fault) {
        self.say_failed_at(&node.place, &node.head, fault);
    }

    /// Says what failed, with the records before it and what the queries are at.
    pub(super) fn say_failed_at(&mut self, place: &Place, head: &str, fault: Fault) {
        let mut text = format!("{place}: {head}\n");
        for line in fault.message.lines() {
            text += &format!("  {line}\n");
        }
        text += fault.diff.as_deref().unwrap_or_default();
        for (variable, value) in &self.rounds {
            text += &format!("  round      {variable} = {value}\n");
        }
        let from = self.trail.len().saturating_sub(8);
        for (n, (place, head)) in self.trail.iter().enumerate().skip(from) {
            let mark = if n + 1 == self.trail.len() { "=>" } else { "  " };
            text += &format!("  {mark} {:>4}  {head}\n", place.line);
        }
        text += &self.world.describe();
        self.report.failed.push((self.case_name(), text));
    }

    /// At the end of a subtest, a scenario, a file: what was armed there has been reached.
    pub(super) fn crashes_are_over(&mut self) {
        let crashes = std::mem::take(&mut self.crashes);
        // A record that failed may have been the one that would have reached it.
        if !self.failing {
            for (place, head, why) in crashes.unreached(&self.world) {
                self.say_failed_at(&place, &head, Fault::text(why));
            }
        }
    }
}
