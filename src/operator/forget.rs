//! Forgetting by time: what the watermark has closed is no longer remembered.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use super::chain::bare;
use super::{BatchInfo, Output};
use crate::delta::calendar::Lasts;
use crate::delta::time::{micros_ceil, time_values, unit_of};
use crate::error::Result;
use crate::state::StateTable;

/// By which key column keys are forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForgetBy {
    /// Index of a time column among the state's columns.
    pub column: usize,
    /// How long the group lasts from that column's value on, in the column's unit: as long as a window, or not at all.
    pub lasts: Lasts,
}

/// So much earlier, but for the end of all times.
fn back(time: i64, by: i64) -> i64 {
    if time == i64::MAX { time } else { time.saturating_sub(by) }
}

impl ForgetBy {
    /// The time at which each row of these columns may be forgotten, in microseconds.
    ///
    /// # Errors
    /// Internal, when the column holds no time.
    pub fn times(&self, keys: &[ArrayRef]) -> Result<Vec<i64>> {
        let column = match keys[self.column].as_struct_opt() {
            // A window: it ends at its end.
            Some(window) => window.column_by_name("end").unwrap_or(&keys[self.column]),
            None => &keys[self.column],
        };
        let (times, unit) = (time_values(column)?, unit_of(column.data_type())?);
        // A group without a time never ends: its rows join no window, so windows have none.
        let end = |row: usize| {
            if times.is_null(row) { i64::MAX } else { micros_ceil(self.lasts.end(times.value(row), unit), unit) }
        };
        Ok((0..times.len()).map(end).collect())
    }

    /// What the watermark has to reach, for EXPLAIN: a column, or the end of what it stands for.
    pub fn end_of(&self, column: &Field) -> String {
        let is_end = self.lasts == Lasts::NOTHING && !matches!(column.data_type(), DataType::Struct(_));
        format!("{}{}", if is_end { "" } else { "the end of " }, bare(column.name()))
    }

    /// What the batch's watermark closes, in the unit of [`ForgetBy::times`]; all there is when the query is drained.
    pub fn until(batch: &BatchInfo) -> Option<i64> {
        Some(batch.watermark?.saturating_mul(1_000))
    }

    /// Forgets what ends at `until` or before.
    ///
    /// # Errors
    /// Internal.
    pub fn forget(self, until: i64, keys: &SchemaRef, state: &mut StateTable, out: &mut Output) -> Result<()> {
        match self.lasting(state.schema())? {
            Some(lasting) => out.forgot_until(back(until, lasting), state.forget_due(until)?.len()),
            // When a local day ends is a rule that may be another when the state is loaded: what went is said key by key.
            None => {
                let due = state.due(until);
                out.forgot(state.forget(&due, keys)?);
                state.settle(&[], until);
            }
        }
        Ok(())
    }

    /// Until when rows of a state are forgotten whose column is at or before `column`, as a delta says it: how long they last may be
    /// another at a restart, such as a watermark's delay, and what was closed stays closed.
    ///
    /// # Errors
    /// Internal.
    pub fn until_of(self, column: i64, rows: &Schema) -> Result<i64> {
        Ok(back(column, self.lasting(rows)?.map_or(0, i64::saturating_neg)))
    }

    /// How long rows last behind their column, in microseconds; `None`: that depends on the column.
    fn lasting(self, rows: &Schema) -> Result<Option<i64>> {
        let Lasts::Units(units) = self.lasts else { return Ok(None) };
        if units == 0 {
            return Ok(Some(0));
        }
        let unit = unit_of(rows.field(self.column).data_type())?;
        Ok(Some(micros_ceil(units, unit)))
    }
}
