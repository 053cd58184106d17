//! The rows of a result that can be drawn only when it has ended: all, or the first and the last of them.

use std::collections::VecDeque;

use arrow::array::RecordBatch;

/// Batches that wait to be drawn.
#[derive(Debug)]
pub(super) struct Kept {
    /// How many rows are kept at each end; `None`: all.
    ends: Option<(usize, usize)>,
    first: Vec<RecordBatch>,
    first_rows: usize,
    last: VecDeque<RecordBatch>,
    last_rows: usize,
    total: u64,
}

/// What is drawn: the first rows, how many are left out behind them, and the last.
pub(super) struct Ends {
    pub(super) first: Vec<RecordBatch>,
    pub(super) hidden: u64,
    pub(super) last: Vec<RecordBatch>,
}

impl Ends {
    /// Every batch that is drawn.
    pub(super) fn batches(&self) -> impl Iterator<Item = &RecordBatch> {
        self.first.iter().chain(&self.last)
    }
}

impl Kept {
    /// `most`: so many rows at the most.
    pub(super) fn new(most: Option<usize>) -> Self {
        let ends = most.map(|most| (most.div_ceil(2), most / 2));
        Kept { ends, first: Vec::new(), first_rows: 0, last: VecDeque::new(), last_rows: 0, total: 0 }
    }

    pub(super) fn push(&mut self, batch: &RecordBatch) {
        let rows = batch.num_rows();
        self.total += rows as u64;
        let Some((at_first, at_last)) = self.ends else {
            self.first.push(batch.clone());
            return;
        };
        let taken = rows.min(at_first - self.first_rows);
        if taken > 0 {
            self.first.push(batch.slice(0, taken));
            self.first_rows += taken;
        }
        if taken == rows || at_last == 0 {
            return;
        }
        self.last.push_back(batch.slice(taken, rows - taken));
        self.last_rows += rows - taken;
        while let Some(oldest) = self.last.front().map(RecordBatch::num_rows)
            && self.last_rows - oldest >= at_last
        {
            self.last.pop_front();
            self.last_rows -= oldest;
        }
    }

    pub(super) fn finish(mut self) -> Ends {
        if let Some((_, at_last)) = self.ends
            && self.last_rows > at_last
            && let Some(oldest) = self.last.front_mut()
        {
            let over = self.last_rows - at_last;
            *oldest = oldest.slice(over, oldest.num_rows() - over);
            self.last_rows = at_last;
        }
        let shown: usize = self.first.iter().chain(&self.last).map(RecordBatch::num_rows).sum();
        Ends { first: self.first, hidden: self.total - shown as u64, last: self.last.into() }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{AsArray, Int64Array};
    use arrow::datatypes::Int64Type;

    use super::*;

    /// What is kept of 0, 1, 2 …, which come in batches of these sizes.
    fn kept(most: Option<usize>, sizes: &[usize]) -> (Vec<i64>, u64, Vec<i64>) {
        let mut kept = Kept::new(most);
        let mut next = 0;
        for size in sizes {
            let values = Int64Array::from_iter_values(next..next + *size as i64);
            next += *size as i64;
            kept.push(&RecordBatch::try_from_iter([("n", Arc::new(values) as _)]).unwrap());
        }
        let Ends { first, hidden, last } = kept.finish();
        let values = |batches: Vec<RecordBatch>| {
            let columns = batches.iter().map(|batch| batch.column(0).as_primitive::<Int64Type>());
            columns.flat_map(|column| column.values().to_vec()).collect()
        };
        (values(first), hidden, values(last))
    }

    #[test]
    fn the_first_and_the_last_rows_are_kept() {
        for sizes in [&[10][..], &[1; 10], &[3, 3, 4], &[4, 0, 6], &[9, 1]] {
            assert_eq!(kept(Some(5), sizes), (vec![0, 1, 2], 5, vec![8, 9]), "{sizes:?}");
            assert_eq!(kept(Some(1), sizes), (vec![0], 9, vec![]), "{sizes:?}");
            assert_eq!(kept(Some(0), sizes), (vec![], 10, vec![]), "{sizes:?}");
            let (first, hidden, last) = kept(Some(10), sizes);
            assert_eq!(([first, last].concat(), hidden), ((0..10).collect(), 0), "{sizes:?}");
            assert_eq!(kept(None, sizes), ((0..10).collect(), 0, vec![]), "{sizes:?}");
        }
    }
}
