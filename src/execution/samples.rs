//! What a query has let go of, for a person to look at: the newest bad records and late rows.
//!
//! Of each batch the first of them are kept where they are met (`BadRecords::SAMPLE`, `BatchCell::LATE_SAMPLE`); of the
//! query the newest [`KEPT`] of either. How many there were in all is in the progress documents.

use std::collections::VecDeque;

use arrow::array::RecordBatch;

use super::run::Run;
use crate::display::{Format, RowWriter};
use crate::error::BadRecord;

/// How many of either a query keeps.
pub const KEPT: usize = 1_000;

/// How many bytes of late rows it keeps at the most; the newest row is kept whatever its size.
const KEPT_BYTES: usize = 4 << 20;

/// A record that `on_error` let pass.
#[derive(Debug, Clone)]
pub struct BadSample {
    pub batch: u64,
    pub record: BadRecord,
}

/// A row that came too late for an operator.
#[derive(Debug, Clone)]
pub struct LateSample {
    pub batch: u64,
    pub operator: String,
    /// A JSON object of the columns that the operator was to read.
    pub row: String,
}

/// The newest of both.
#[derive(Debug, Default)]
pub(super) struct Samples {
    pub bad: VecDeque<BadSample>,
    pub late: VecDeque<LateSample>,
    late_bytes: usize,
}

/// What one batch brought.
pub(super) struct BatchSamples {
    bad: Vec<BadSample>,
    late: Vec<LateSample>,
}

impl BatchSamples {
    /// Reads what leaves and taps have kept of the batch that has just run.
    pub fn of(run: &Run, batch: u64) -> Self {
        let records = run.plan.inputs.iter().filter_map(|input| input.leaf.bad_records()).flat_map(|bad| bad.sample());
        let bad = records.map(|record| BadSample { batch, record }).collect();
        let rows = run.plan.cell.late_sample();
        let name = |n: usize| run.operators.get(n).and_then(|o| Some(o.specs().first()?.name().to_string()));
        let late = rows.iter().flat_map(|(operator, rows)| {
            let operator = name(*operator).unwrap_or_default();
            objects(rows).into_iter().map(move |row| LateSample { batch, operator: operator.clone(), row })
        });
        BatchSamples { bad, late: late.collect() }
    }
}

impl Samples {
    /// Takes a batch's; the oldest go.
    pub fn add(&mut self, batch: BatchSamples) {
        self.bad.extend(batch.bad);
        while self.bad.len() > KEPT {
            self.bad.pop_front();
        }
        self.late_bytes += batch.late.iter().map(|late| late.row.len()).sum::<usize>();
        self.late.extend(batch.late);
        while self.late.len() > KEPT || (self.late_bytes > KEPT_BYTES && self.late.len() > 1) {
            self.late_bytes -= self.late.pop_front().map_or(0, |late| late.row.len());
        }
    }
}

/// Each row as a JSON object. A row that has no text says so: a sample never fails a query.
pub(super) fn objects(rows: &RecordBatch) -> Vec<String> {
    let object = |row| {
        let mut text = Vec::new();
        let mut writer = RowWriter::new(Format::JsonLines, &rows.schema());
        let written = writer.write(&mut text, &rows.slice(row, 1)).and_then(|()| writer.finish(&mut text));
        match written {
            Ok(_) => String::from_utf8_lossy(&text).trim_end().to_string(),
            Err(error) => format!("(can't be shown: {error})"),
        }
    };
    (0..rows.num_rows()).map(object).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn late(batch: u64, size: usize) -> LateSample {
        LateSample { batch, operator: "aggregate".into(), row: "x".repeat(size) }
    }

    #[test]
    fn the_newest_are_kept_by_number_and_by_size() {
        let mut samples = Samples::default();
        for batch in 0..KEPT as u64 + 5 {
            samples.add(BatchSamples { bad: Vec::new(), late: vec![late(batch, 1)] });
        }
        assert_eq!((samples.late.len(), samples.late[0].batch), (KEPT, 5));
        samples.add(BatchSamples { bad: Vec::new(), late: vec![late(9_999, KEPT_BYTES - 10)] });
        assert_eq!((samples.late.len(), samples.late_bytes), (11, KEPT_BYTES));
        samples.add(BatchSamples { bad: Vec::new(), late: vec![late(10_000, 2 * KEPT_BYTES)] });
        assert_eq!((samples.late.len(), samples.late[0].batch), (1, 10_000));
    }
}
