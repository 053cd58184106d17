//! The keys that a batch met first, as columns: kept as they came where that is what they are, else made from the state's
//! own bytes.

use arrow::array::{Array, ArrayRef, UInt32Array};
use arrow::compute::{concat, take};

use crate::error::{Error, Result};
use crate::state::{Slot, StateTable};

/// See the module's documentation.
#[derive(Default)]
pub struct MetKeys {
    pieces: Vec<Vec<ArrayRef>>,
}

impl MetKeys {
    /// Keeps these rows of key columns, if they can be kept.
    pub fn keep(&mut self, columns: &[ArrayRef], rows: Vec<u32>, state: &StateTable) -> Result<()> {
        if !state.codec().is_plain() || rows.is_empty() {
            return Ok(());
        }
        let rows = UInt32Array::from(rows);
        let columns = columns.iter().map(|column| take(column, &rows, None));
        self.pieces.push(columns.collect::<std::result::Result<_, _>>().map_err(Error::from)?);
        Ok(())
    }

    /// The key columns of all slots that keys were kept for, in that order; begins anew.
    pub fn columns(&mut self, slots: &[Slot], state: &StateTable) -> Result<Vec<ArrayRef>> {
        let pieces = std::mem::take(&mut self.pieces);
        let Some(first) = pieces.first().filter(|_| state.codec().is_plain()) else {
            return state.key_columns(slots);
        };
        let column = |n: usize| {
            let column: Vec<&dyn Array> = pieces.iter().map(|piece| piece[n].as_ref()).collect();
            concat(&column).map_err(Error::from)
        };
        (0..first.len()).map(column).collect()
    }
}
