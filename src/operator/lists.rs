//! The values of lists one by one, each with the row that it came from.

use arrow::array::{Array, ArrayRef, AsArray, ListArray, UInt32Array};
use arrow::compute::take;

use super::KeyedDelta;
use crate::error::{Error, Result};

/// Some values of a column of lists.
pub struct Spread {
    /// The row of each.
    pub rows: Vec<u32>,
    /// Its place in its row's list.
    places: Vec<u32>,
}

impl Spread {
    /// The values in the lists of `column` of those rows that the changes select; not those that `keep` is false for, which is
    /// asked with a value's place in the lists' array.
    pub fn new(changes: &KeyedDelta, column: usize, keep: impl Fn(&ListArray, usize) -> bool) -> Result<Self> {
        let lists = lists(changes.rows.column(column))?;
        let mut spread = Spread { rows: Vec::new(), places: Vec::new() };
        changes.each_row(|row| {
            let (from, to) = range(lists, row);
            for at in (from..to).filter(|at| keep(lists, *at)) {
                spread.rows.push(row);
                spread.places.push((at - from) as u32);
            }
        });
        Ok(spread)
    }

    /// The values, from a column of lists that are as long as those it was made of.
    pub fn take(&self, column: &ArrayRef) -> Result<ArrayRef> {
        let lists = lists(column)?;
        let mut at = Vec::with_capacity(self.rows.len());
        for (row, place) in self.rows.iter().zip(&self.places) {
            let (from, to) = range(lists, *row);
            let place = from + *place as usize;
            if place >= to {
                return Err(Error::internal("lists of one group that differ in length"));
            }
            at.push(place as u32);
        }
        take(lists.values(), &UInt32Array::from(at), None).map_err(Error::from)
    }
}

fn lists(column: &ArrayRef) -> Result<&ListArray> {
    column.as_list_opt::<i32>().ok_or_else(|| Error::internal("values that are no lists"))
}

/// Where a row's values are; nowhere for NULL.
fn range(lists: &ListArray, row: u32) -> (usize, usize) {
    let row = row as usize;
    if lists.is_null(row) {
        return (0, 0);
    }
    (lists.value_offsets()[row] as usize, lists.value_offsets()[row + 1] as usize)
}
