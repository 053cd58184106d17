//! Rows of a join's result, made of rows of an input and rows that are remembered.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, RecordBatch, RecordBatchOptions, UInt32Array, new_null_array,
};
use arrow::compute::{filter, prep_null_mask_filter, take};

use super::Output;
use super::join::{Condition, JoinKind, JoinSpec, SideColumn};
use crate::error::{Error, Result};
use crate::state::{Slot, StateTable};

/// Where the columns of a side are taken from; all sources of a result have as many rows.
#[derive(Clone, Copy)]
pub enum Rows<'a> {
    /// Rows of an input.
    Of(&'a RecordBatch, &'a UInt32Array),
    /// Rows that are remembered.
    Kept(&'a StateTable, &'a [Slot]),
    /// NULLs.
    Nothing,
}

/// The columns asked for, in their order.
fn gather(columns: &[SideColumn], sides: [Rows<'_>; 2], length: usize, spec: &JoinSpec) -> Result<Vec<ArrayRef>> {
    let mut gathered: Vec<Option<ArrayRef>> = vec![None; columns.len()];
    for (side, rows) in sides.iter().enumerate() {
        let mine = || columns.iter().enumerate().filter(move |(_, column)| column.side == side);
        match rows {
            Rows::Of(batch, which) => {
                for (at, column) in mine() {
                    gathered[at] = Some(take(batch.column(column.input), which, None).map_err(Error::from)?);
                }
            }
            Rows::Kept(state, slots) => {
                let wanted: Vec<usize> = mine().map(|(_, column)| column.state).collect();
                for ((at, _), array) in mine().zip(state.columns(slots, wanted.iter().copied())?) {
                    gathered[at] = Some(array);
                }
            }
            Rows::Nothing => {
                for (at, column) in mine() {
                    let data_type = spec.sides[side].rows.field(column.state).data_type();
                    gathered[at] = Some(new_null_array(data_type, length));
                }
            }
        }
    }
    let lost = || Error::internal("a column of a join belongs to no side");
    gathered.into_iter().map(|array| array.ok_or_else(lost)).collect()
}

impl Condition {
    /// Which of the pairs it is true for.
    ///
    /// # Errors
    /// Of what it computes.
    pub fn holds(&self, sides: [Rows<'_>; 2], length: usize, spec: &JoinSpec) -> Result<BooleanArray> {
        let columns = gather(&self.columns, sides, length, spec)?;
        let options = RecordBatchOptions::new().with_row_count(Some(length));
        let pairs = RecordBatch::try_new_with_options(self.schema.clone(), columns, &options).map_err(Error::from)?;
        let answer = self.expr.evaluate(&pairs).and_then(|answer| answer.into_array(length)).map_err(Error::from)?;
        let mask = answer.as_boolean_opt();
        let mask = mask.ok_or_else(|| Error::internal("the condition of a join is not true or false"))?;
        Ok(if mask.null_count() > 0 { prep_null_mask_filter(mask) } else { mask.clone() })
    }
}

/// Those of some numbers that are chosen.
pub fn chosen(of: Vec<u32>, which: &BooleanArray) -> Result<Vec<u32>> {
    let kept = filter(&UInt32Array::from(of), which).map_err(Error::from)?;
    Ok(kept.as_primitive::<arrow::datatypes::UInt32Type>().values().to_vec())
}

/// What a batch changes in the result, as it grows.
#[derive(Default)]
pub struct Changes {
    pub out: Output,
    /// Numbers of what belongs together, where the result takes rows back.
    numbers: HashMap<u64, u32>,
}

impl Changes {
    /// Adds rows, or takes rows back; `whose` says of each what it belongs to, and is asked only where rows can be taken back.
    ///
    /// # Errors
    /// Internal.
    pub fn add(
        &mut self,
        spec: &JoinSpec,
        sides: [Rows<'_>; 2],
        length: usize,
        mark: Option<bool>,
        added: bool,
        whose: impl Fn(usize) -> u64,
    ) -> Result<()> {
        if length == 0 {
            return Ok(());
        }
        let mut columns = gather(&spec.columns, sides, length, spec)?;
        if spec.kind == JoinKind::Mark {
            columns.push(Arc::new(BooleanArray::from(vec![mark.unwrap_or(false); length])) as ArrayRef);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(length));
        let rows = RecordBatch::try_new_with_options(spec.output.clone(), columns, &options).map_err(Error::from)?;
        let (all, keys) = match added {
            true => (&mut self.out.rows, &mut self.out.new_keys),
            false => (&mut self.out.old_rows, &mut self.out.old_keys),
        };
        all.push(rows);
        if spec.signed {
            for row in 0..length {
                let next = self.numbers.len() as u32;
                keys.push(*self.numbers.entry(whose(row)).or_insert(next));
            }
        }
        Ok(())
    }

    /// The result, at the end of the batch.
    pub fn take(&mut self) -> Output {
        self.numbers.clear();
        std::mem::take(&mut self.out)
    }
}
