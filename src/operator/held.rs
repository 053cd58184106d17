//! What is remembered of groups element by element, read for their results.

use arrow::array::{ArrayRef, AsArray, UInt32Array};
use arrow::compute::{cast, take};
use arrow::datatypes::Int64Type;

use super::elements::{ElementsSpec, Keep};
use crate::error::{Error, Result};
use crate::state::{Slot, StateTable};

/// All elements of some groups.
pub struct Held {
    /// The elements, and what they are ordered by.
    pub columns: Vec<ArrayRef>,
    /// The number of each one's group.
    pub groups: Vec<usize>,
    /// Where rows are taken back: how often each is there; otherwise each is there as often as it is named.
    pub counts: Option<Vec<i64>>,
}

impl Held {
    /// Each element as often as it is there.
    ///
    /// # Errors
    /// Internal.
    pub fn each(&self) -> Result<(Vec<ArrayRef>, Vec<usize>)> {
        match &self.counts {
            Some(counts) => repeated(&self.columns, &self.groups, counts),
            None => Ok((self.columns.clone(), self.groups.clone())),
        }
    }
}

fn repeated(columns: &[ArrayRef], groups: &[usize], counts: &[i64]) -> Result<(Vec<ArrayRef>, Vec<usize>)> {
    let rows = (0u32..).zip(counts).flat_map(|(row, count)| std::iter::repeat_n(row, *count as usize));
    let rows: Vec<u32> = rows.collect();
    let groups = rows.iter().map(|row| groups[*row as usize]).collect();
    let rows = UInt32Array::from(rows);
    let columns = columns.iter().map(|column| take(column, &rows, None));
    Ok((columns.collect::<std::result::Result<_, _>>().map_err(Error::from)?, groups))
}

impl ElementsSpec {
    /// What is remembered of groups, given by their keys.
    ///
    /// # Errors
    /// Internal.
    pub fn read<'a>(&self, groups: impl Iterator<Item = &'a [u8]>, state: &StateTable) -> Result<Held> {
        let (mut slots, mut of) = (Vec::new(), Vec::new());
        for (number, group) in groups.enumerate() {
            let first = slots.len();
            slots.extend_from_slice(state.members(group));
            if matches!(self.keep, Keep::Counted { once: true } | Keep::Signed) {
                // In one order, whether they were loaded or have come one by one.
                slots[first..].sort_unstable_by(|a, b| state.key_bytes(*a).cmp(state.key_bytes(*b)));
            }
            of.resize(slots.len(), number);
        }
        let values = self.group..self.keys.fields().len();
        let counted = |slots: &[Slot]| -> Result<(Vec<ArrayRef>, Vec<i64>)> {
            let mut columns = state.columns(slots, values.start..values.end + 1)?;
            let counts = columns.pop().ok_or_else(|| Error::internal("elements without a count"))?;
            Ok((columns, counts.as_primitive::<Int64Type>().values().to_vec()))
        };
        let (mut columns, groups, counts) = match self.keep {
            Keep::InOrder => (state.values(&slots)?, of, None),
            Keep::Counted { once: true } => (state.columns(&slots, values.clone())?, of, None),
            Keep::Counted { once: false } => {
                let (columns, counts) = counted(&slots)?;
                let (columns, groups) = repeated(&columns, &of, &counts)?;
                (columns, groups, None)
            }
            Keep::Signed => {
                let (columns, counts) = counted(&slots)?;
                (columns, of, Some(counts))
            }
        };
        if let (Some(data_type), Some(elements)) = (&self.taken_as, columns.first_mut()) {
            *elements = cast(elements, data_type).map_err(Error::from)?;
        }
        Ok(Held { columns, groups, counts })
    }
}
