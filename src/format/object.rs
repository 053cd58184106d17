//! Columns side by side: the fields of a record, or of a struct in it.
//!
//! Finds the column of a field's name. Records of one writer name their fields in the same order nearly always,
//! so the place of a field in the record before is tried first.

use arrow::array::ArrayRef;
use arrow::datatypes::Fields;
use hashbrown::HashMap;

use super::column::{Column, Taken};
use crate::error::Result;

/// Columns of equal length.
#[derive(Debug)]
pub struct Object {
    fields: Fields,
    columns: Vec<Column>,
    rows: usize,
    by_name: HashMap<Vec<u8>, usize>,
    /// By place in the record: the key as it was written, quotes included, and the column it means.
    seen: Vec<(Vec<u8>, Option<usize>)>,
}

/// Places beyond this are found by name only: a record of that many fields costs more elsewhere.
const SEEN: usize = 16_384;

impl Object {
    /// Empty columns for `fields`; of two with one name the first is used.
    ///
    /// # Errors
    /// Unsupported: a type that text can't be read as.
    pub fn new(fields: &Fields) -> Result<Self> {
        let columns = fields.iter().map(Column::new).collect::<Result<Vec<_>>>()?;
        let mut by_name = HashMap::with_capacity(columns.len());
        for (at, field) in fields.iter().enumerate().rev() {
            by_name.insert(field.name().as_bytes().to_vec(), at);
        }
        Ok(Object { fields: fields.clone(), columns, rows: 0, by_name, seen: Vec::new() })
    }

    /// How many rows are complete.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// How many columns there are.
    pub fn width(&self) -> usize {
        self.columns.len()
    }

    /// The key that stood at `place` in an earlier record, as written, and its column.
    #[inline]
    pub fn seen(&self, place: usize) -> Option<(&[u8], Option<usize>)> {
        self.seen.get(place).map(|(written, column)| (written.as_slice(), *column))
    }

    /// The column of a key, which stands at `place` and was written as `written`.
    pub fn find(&mut self, place: usize, name: &[u8], written: &[u8]) -> Option<usize> {
        let column = self.by_name.get(name).copied();
        let known = self.seen.len();
        match self.seen.get_mut(place) {
            Some(seen) => {
                seen.0.clear();
                seen.0.extend_from_slice(written);
                seen.1 = column;
            }
            None if place == known && place < SEEN => self.seen.push((written.to_vec(), column)),
            None => {}
        }
        column
    }

    /// The column at `at`, ready for the row under way. A field that was given before in this record is taken
    /// back: the last one counts. Answers whether it is the first.
    #[inline]
    pub fn column(&mut self, at: usize) -> (&mut Column, bool) {
        let rows = self.rows;
        let column = &mut self.columns[at];
        let first = column.len() == rows;
        if !first {
            column.truncate(rows);
        }
        (column, first)
    }

    /// Ends a row in which `given` columns got a value: the others are NULL.
    #[inline]
    pub fn close_row(&mut self, given: usize) -> Taken {
        if given < self.columns.len() {
            for column in &mut self.columns {
                if column.len() == self.rows {
                    column.append_null("is missing")?;
                }
            }
        }
        self.rows += 1;
        Ok(())
    }

    /// Adds a row of NULLs.
    pub fn force_null(&mut self) {
        self.columns.iter_mut().for_each(Column::force_null);
        self.rows += 1;
    }

    /// Takes back every row from `rows` on, and what is half appended.
    pub fn truncate(&mut self, rows: usize) {
        self.columns.iter_mut().for_each(|column| column.truncate(rows));
        self.rows = rows;
    }

    /// Hands out the columns and starts again from nothing.
    ///
    /// # Errors
    /// Internal: an array that arrow refuses.
    pub fn finish(&mut self) -> Result<(Fields, Vec<ArrayRef>)> {
        self.rows = 0;
        let columns = self.columns.iter_mut().map(Column::finish).collect::<Result<Vec<_>>>()?;
        Ok((self.fields.clone(), columns))
    }
}
