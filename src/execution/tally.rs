//! What the batches of a run have read, lost and given out, added up: what EXPLAIN WHY goes by.

use super::progress::Measured;
use super::run::Run;
use crate::incremental::{Dropped, Fragment, Passed, TimeStats};

/// What some batches did.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Counts {
    /// Rows read, by input.
    pub read: Vec<u64>,
    /// Bad records that were let pass, by input.
    pub bad: Vec<u64>,
    /// By watermark.
    pub times: Vec<TimeStats>,
    /// By operator, then by its input.
    pub inputs: Vec<Vec<Passed>>,
    /// Of the fragment in front of the sink.
    pub last: Passed,
    /// By operator.
    pub dropped: Vec<Dropped>,
    /// Rows whose key was there already, by operator.
    pub duplicates: Vec<u64>,
}

/// The batches of a run, and those among them since something was given out.
#[derive(Debug, Clone, Default)]
pub(super) struct Tally {
    pub run: Counts,
    pub since: Counts,
    /// The last batch that gave out rows, and how many.
    pub last_out: Option<(u64, u64)>,
}

impl Tally {
    /// Adds a batch that has been committed.
    pub fn add(&mut self, run: &Run, batch: u64, measured: &Measured) {
        let counts = Counts::of(run, measured);
        self.run.add(&counts);
        self.since.add(&counts);
        if let Some(rows) = measured.output_rows.filter(|rows| *rows > 0) {
            self.last_out = Some((batch, rows));
            self.since = Counts::default();
        }
    }
}

impl Counts {
    /// Of the batch that has just run.
    fn of(run: &Run, measured: &Measured) -> Self {
        let plan = &run.plan;
        let passed = |fragment: &Fragment| fragment.take_passed().unwrap_or_default();
        let bad = |input: &crate::incremental::Input| input.leaf.bad_records().map_or(0, |bad| bad.count());
        Counts {
            read: plan.inputs.iter().map(|input| input.leaf.rows()).collect(),
            bad: plan.inputs.iter().map(bad).collect(),
            times: (0..plan.watermarks.len()).map(|n| plan.cell.stats(n)).collect(),
            inputs: plan.operators.iter().map(|node| node.inputs.iter().map(passed).collect()).collect(),
            last: passed(&plan.last),
            dropped: plan.cell.all_dropped(),
            duplicates: measured.duplicates(run.operators.iter().map(|operators| operators.specs().len())),
        }
    }

    fn add(&mut self, other: &Counts) {
        each(&mut self.read, &other.read, |own, other| *own += other);
        each(&mut self.bad, &other.bad, |own, other| *own += other);
        each(&mut self.times, &other.times, TimeStats::add);
        each(&mut self.inputs, &other.inputs, |own, other| each(own, other, Passed::add));
        self.last.add(&other.last);
        each(&mut self.dropped, &other.dropped, |own, other| *own += *other);
        each(&mut self.duplicates, &other.duplicates, |own, other| *own += other);
    }

    /// Rows read of all inputs.
    pub fn rows(&self) -> u64 {
        self.read.iter().sum()
    }
}

/// Adds number by number; what is missing is nothing.
fn each<T: Default>(own: &mut Vec<T>, other: &[T], add: impl Fn(&mut T, &T)) {
    own.resize_with(own.len().max(other.len()), T::default);
    own.iter_mut().zip(other).for_each(|(own, other)| add(own, other));
}
