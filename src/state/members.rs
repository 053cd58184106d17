//! Which rows belong to a group: an index over the first columns of a state's keys.
//!
//! It is made from the keys when a state is loaded, and is part of no file.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow::array::ArrayRef;

use super::table::Slot;
use crate::delta::keys::KeyCodec;
use crate::error::Result;

/// See the module's documentation. Where rows end by time, those of a group end together, as their time is the group's.
pub struct Members {
    codec: Arc<KeyCodec>,
    columns: usize,
    groups: HashMap<Box<[u8]>, Vec<Slot>>,
    /// Of the groups' keys.
    bytes: usize,
}

impl Members {
    /// An index over the first `columns` key columns, which `codec` makes groups of.
    pub fn new(codec: Arc<KeyCodec>, columns: usize) -> Self {
        Members { codec, columns, groups: HashMap::new(), bytes: 0 }
    }

    /// The same index, of nothing.
    pub fn emptied(&self) -> Self {
        Members::new(self.codec.clone(), self.columns)
    }

    /// The rows of a group, in the order in which they were added.
    pub fn of(&self, group: &[u8]) -> &[Slot] {
        self.groups.get(group).map_or(&[], Vec::as_slice)
    }

    /// Adds those of the slots that are new; `keys` are their key columns.
    ///
    /// # Errors
    /// Internal.
    pub fn add(&mut self, keys: &[ArrayRef], slots: &[Slot], is_new: impl Fn(Slot) -> bool) -> Result<()> {
        let groups = self.codec.encode(&keys[..self.columns], slots.len())?;
        for (row, slot) in slots.iter().enumerate().filter(|(_, slot)| is_new(**slot)) {
            let group = groups.bytes(row);
            match self.groups.get_mut(group) {
                Some(members) => members.push(*slot),
                None => {
                    self.bytes += group.len();
                    self.groups.insert(group.into(), vec![*slot]);
                }
            }
        }
        Ok(())
    }

    /// Takes out the groups of these keys, of which there are `rows`.
    ///
    /// # Errors
    /// Internal.
    pub fn remove(&mut self, keys: &[ArrayRef], rows: usize) -> Result<()> {
        let groups = self.codec.encode(&keys[..self.columns], rows)?;
        for group in (0..rows).map(|row| groups.bytes(row)) {
            if self.groups.remove(group).is_some() {
                self.bytes -= group.len();
            }
        }
        Ok(())
    }

    /// Takes out these rows, by their keys and slots.
    ///
    /// # Errors
    /// Internal.
    pub fn remove_rows(&mut self, keys: &[ArrayRef], slots: &[Slot]) -> Result<()> {
        let groups = self.codec.encode(&keys[..self.columns], slots.len())?;
        let mut gone: HashMap<&[u8], HashSet<Slot>> = HashMap::new();
        for (row, slot) in slots.iter().enumerate() {
            gone.entry(groups.bytes(row)).or_default().insert(*slot);
        }
        for (group, gone) in gone {
            let Some(members) = self.groups.get_mut(group) else { continue };
            members.retain(|slot| !gone.contains(slot));
            if members.is_empty() {
                self.groups.remove(group);
                self.bytes -= group.len();
            }
        }
        Ok(())
    }

    /// Bytes in memory for so many rows, about.
    pub fn memory(&self, rows: usize) -> usize {
        self.bytes + self.groups.len() * 56 + rows * 4
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{AsArray, Int64Array, StringArray};
    use arrow::datatypes::{DataType, Field, FieldRef, Int64Type, Schema, SchemaRef};

    use super::super::table::StateTable;
    use super::*;

    fn schema() -> SchemaRef {
        let field = |name: &str, is: DataType| -> FieldRef { Field::new(name, is, true).into() };
        let fields = vec![field("k", DataType::Utf8), field("end", DataType::Int64), field("n", DataType::Int64)];
        Arc::new(Schema::new(fields))
    }

    fn table() -> (StateTable, KeyCodec) {
        let fields: Vec<FieldRef> = schema().fields().iter().cloned().collect();
        let group = || KeyCodec::new(&fields[..2]).unwrap();
        let codec = Arc::new(KeyCodec::new(&fields).unwrap());
        (StateTable::new(schema(), 3, codec).with_members(Arc::new(group()), 2), group())
    }

    fn add(table: &mut StateTable, rows: &[(&str, i64, i64)]) {
        let keys: Vec<ArrayRef> = vec![
            Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.0))),
            Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.1))),
            Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.2))),
        ];
        let encoded = table.codec().encode(&keys, rows.len()).unwrap();
        let mut slots = Vec::new();
        table.find_or_insert_all(&encoded, None, rows.len(), &mut slots);
        let times: Vec<i64> = rows.iter().map(|row| row.1).collect();
        table.write(slots, keys, Vec::new(), Some(&times)).unwrap();
    }

    fn members(table: &StateTable, codec: &KeyCodec, k: &str, end: i64) -> Vec<i64> {
        let group: Vec<ArrayRef> = vec![Arc::new(StringArray::from(vec![k])), Arc::new(Int64Array::from(vec![end]))];
        let group = codec.encode(&group, 1).unwrap();
        let slots = table.members(group.bytes(0));
        table.columns(slots, 2..3).unwrap()[0].as_primitive::<Int64Type>().values().to_vec()
    }

    #[test]
    fn rows_are_found_by_their_group_until_it_ends() {
        let (mut table, codec) = table();
        add(&mut table, &[("a", 10, 0), ("b", 20, 0), ("a", 10, 1)]);
        // What is there already is added once.
        add(&mut table, &[("a", 10, 1), ("a", 20, 0), ("a", 10, 2)]);
        assert_eq!(members(&table, &codec, "a", 10), [0, 1, 2]);
        assert_eq!(members(&table, &codec, "a", 20), [0]);
        assert_eq!(members(&table, &codec, "c", 10), [0i64; 0]);
        let keys = schema();
        assert_eq!(table.forget_due(10).unwrap().len(), 3);
        assert_eq!(members(&table, &codec, "a", 10), [0i64; 0]);
        assert_eq!(members(&table, &codec, "b", 20), [0]);
        // A slot that is free again may be another group's.
        add(&mut table, &[("b", 20, 2), ("b", 20, 1)]);
        assert_eq!(members(&table, &codec, "b", 20), [0, 2, 1]);
        // Made anew, they are in the order of their keys.
        table.loaded().unwrap();
        assert_eq!(members(&table, &codec, "b", 20), [0, 1, 2]);
        assert_eq!(members(&table, &codec, "a", 20), [0]);
        // Rows that are taken out one by one.
        let group: Vec<ArrayRef> = vec![Arc::new(StringArray::from(vec!["b"])), Arc::new(Int64Array::from(vec![20]))];
        let slots = table.members(codec.encode(&group, 1).unwrap().bytes(0)).to_vec();
        assert_eq!(table.forget(&slots[1..2], &keys).unwrap().map(|keys| keys.num_rows()), Some(1));
        assert_eq!(members(&table, &codec, "b", 20), [0, 2]);
        table.forget(&[slots[0], slots[2]], &keys).unwrap();
        assert_eq!((members(&table, &codec, "b", 20), table.len()), (vec![], 1));
    }
}
