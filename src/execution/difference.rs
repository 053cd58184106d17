//! Two multisets of rows held against each other: what is in one and not in the other.
//!
//! Rows are compared by what they say. Floating point sums depend on the order in which they are made, so floats agree to 1e-9
//! of their size.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Float32Type, Float64Type};
use arrow::util::display::{ArrayFormatter, FormatOptions};

use crate::error::{Error, Result};

/// So many rows that are left over are held against each other one by one.
const FEW: usize = 1_000;

/// How far two floats may be from each other, of their size.
const NEAR: f64 = 1e-9;

/// A row: the text of each column that is no float, and the floats. NULLs are told from texts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    texts: Vec<Option<String>>,
    floats: Vec<Float>,
}

#[derive(Debug, Clone, Copy)]
struct Float(Option<f64>);

impl PartialEq for Float {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Float {}

impl PartialOrd for Float {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Float {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.0, other.0) {
            (Some(a), Some(b)) if a == b || (a.is_nan() && b.is_nan()) => Ordering::Equal,
            (Some(a), Some(b)) => a.total_cmp(&b),
            (a, b) => a.is_some().cmp(&b.is_some()),
        }
    }
}

impl Float {
    fn is_near(self, other: Float) -> bool {
        match (self.0, other.0) {
            (Some(a), Some(b)) => self == other || (a - b).abs() <= NEAR * a.abs().max(b.abs()),
            _ => self == other,
        }
    }
}

/// Longer values are cut where they are shown, to this many characters.
const SHOWN: usize = 200;

/// Rows and how often each is there.
#[derive(Debug, Default)]
pub(super) struct Multiset {
    /// The elements of a list are in no order.
    unordered: bool,
    columns: Vec<String>,
    /// Whether a column is a float, in their order.
    floats: Vec<bool>,
    rows: BTreeMap<Row, i64>,
}

impl Multiset {
    /// Of a state: in what order it holds the elements of a list depends on the order in which rows came and on hashes. What is
    /// made of them is held against the result.
    pub fn of_state() -> Self {
        Multiset { unordered: true, ..Multiset::default() }
    }

    /// Adds rows, each as often as `weight` says.
    ///
    /// # Errors
    /// Internal: values that have no text.
    pub fn add(&mut self, rows: &RecordBatch, weight: impl Fn(usize) -> i64) -> Result<()> {
        let options = FormatOptions::new().with_display_error(false);
        if self.columns.is_empty() {
            let name = |name: &String| match name.split_once(':') {
                // A state's columns have their number in front.
                Some((number, name)) if number.parse::<u32>().is_ok() => name.to_string(),
                _ => name.clone(),
            };
            self.columns = rows.schema().fields().iter().map(|field| name(field.name())).collect();
            self.floats = rows.columns().iter().map(|column| is_float(column.data_type())).collect();
        }
        let columns: Vec<ArrayRef> = rows.columns().iter().map(|c| self.comparable(c)).collect::<Result<_>>()?;
        let formatters: Vec<ArrayFormatter<'_>> = columns
            .iter()
            .map(|column| ArrayFormatter::try_new(column.as_ref(), &options))
            .collect::<std::result::Result<_, _>>()
            .map_err(|e| Error::internal(e.to_string()))?;
        for n in 0..rows.num_rows() {
            let mut row = Row { texts: Vec::new(), floats: Vec::new() };
            for (column, formatter) in rows.columns().iter().zip(&formatters) {
                if is_float(column.data_type()) {
                    row.floats.push(Float(float(column, n)));
                } else {
                    let text = formatter.value(n).try_to_string().map_err(|e| Error::internal(e.to_string()))?;
                    row.texts.push(column.is_valid(n).then_some(text));
                }
            }
            match self.rows.entry(row) {
                Entry::Vacant(place) => _ = place.insert(weight(n)),
                Entry::Occupied(mut count) => {
                    *count.get_mut() += weight(n);
                    if *count.get() == 0 {
                        count.remove();
                    }
                }
            }
        }
        Ok(())
    }

    /// A column as it is compared: the elements of its lists sorted, where they have no order.
    fn comparable(&self, column: &ArrayRef) -> Result<ArrayRef> {
        let Some(lists) = column.as_list_opt::<i32>().filter(|_| self.unordered) else { return Ok(column.clone()) };
        let one = |list: Option<ArrayRef>| -> Result<Option<String>> {
            let Some(list) = list else { return Ok(None) };
            let options = FormatOptions::new().with_display_error(false);
            let text = |e: arrow::error::ArrowError| Error::internal(e.to_string());
            let formatter = ArrayFormatter::try_new(list.as_ref(), &options).map_err(text)?;
            let element = |n| formatter.value(n).try_to_string().map_err(text);
            let mut elements: Vec<String> = (0..list.len()).map(element).collect::<Result<_>>()?;
            elements.sort_unstable();
            Ok(Some(format!("[{}]", elements.join(", "))))
        };
        let texts: Vec<Option<String>> = lists.iter().map(one).collect::<Result<_>>()?;
        Ok(Arc::new(StringArray::from(texts)))
    }

    /// Forgets all rows.
    pub fn clear(&mut self) {
        self.rows.clear();
    }

    /// How many rows there are.
    pub fn len(&self) -> u64 {
        self.rows.values().map(|count| u64::try_from(*count).unwrap_or_default()).sum()
    }

    /// What this has and `other` has not, and what `other` has and this has not; the first `most` of either, and how many.
    pub fn differences(&self, other: &Multiset, most: usize) -> [Differences; 2] {
        let [mut ours, mut theirs] = self.left_over(other);
        // Floats that differ a little may have changed the order of rows that are otherwise the same.
        if ours.len().max(theirs.len()) <= FEW {
            ours.retain(|row| match theirs.iter().position(|other| row.is_near(other)) {
                Some(at) => {
                    theirs.remove(at);
                    false
                }
                None => true,
            });
        }
        let found = |of: &Multiset, rows: Vec<&Row>| Differences {
            first: rows.iter().take(most).map(|row| of.text(row)).collect(),
            count: rows.len() as u64,
        };
        [found(self, ours), found(other, theirs)]
    }

    /// What is left of both when rows are paired in their order.
    fn left_over<'a>(&'a self, other: &'a Multiset) -> [Vec<&'a Row>; 2] {
        let mut left: [Vec<&Row>; 2] = Default::default();
        let (mut ours, mut theirs) = (self.each().peekable(), other.each().peekable());
        loop {
            match (ours.peek(), theirs.peek()) {
                (None, None) => return left,
                (Some(a), Some(b)) if a.is_near(b) => _ = (ours.next(), theirs.next()),
                (Some(a), Some(b)) if b < a => left[1].extend(theirs.next()),
                (None, Some(_)) => left[1].extend(theirs.next()),
                (Some(_), _) => left[0].extend(ours.next()),
            }
        }
    }

    /// Each row as often as it is there. A weight below zero is a row that is missing: there is none of it.
    fn each(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().flat_map(|(row, count)| std::iter::repeat_n(row, usize::try_from(*count).unwrap_or_default()))
    }

    fn text(&self, row: &Row) -> String {
        let (mut texts, mut floats) = (row.texts.iter(), row.floats.iter());
        let cell = |(name, is_float): (&String, &bool)| {
            let value = match is_float {
                true => floats.next().and_then(|float| float.0).map(|float| float.to_string()),
                false => texts.next().cloned().flatten(),
            };
            let mut value = value.unwrap_or_else(|| "NULL".into());
            if let Some((end, _)) = value.char_indices().nth(SHOWN) {
                value.replace_range(end.., "…");
            }
            format!("{name}: {value}")
        };
        let cells: Vec<String> = self.columns.iter().zip(&self.floats).map(cell).collect();
        format!("({})", cells.join(", "))
    }
}

/// Rows of one side alone.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Differences {
    pub first: Vec<String>,
    pub count: u64,
}

impl Row {
    fn is_near(&self, other: &Row) -> bool {
        self.texts == other.texts && self.floats.iter().zip(&other.floats).all(|(a, b)| a.is_near(*b))
    }
}

fn is_float(kind: &DataType) -> bool {
    matches!(kind, DataType::Float32 | DataType::Float64)
}

fn float(column: &ArrayRef, row: usize) -> Option<f64> {
    if column.is_null(row) {
        return None;
    }
    match column.data_type() {
        DataType::Float32 => Some(f64::from(column.as_primitive::<Float32Type>().value(row))),
        _ => Some(column.as_primitive::<Float64Type>().value(row)),
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Float64Array, ListArray};
    use arrow::datatypes::Int64Type;

    use super::*;

    fn set(rows: &[(Option<&str>, Option<f64>)]) -> Multiset {
        let keys: ArrayRef = Arc::new(StringArray::from_iter(rows.iter().map(|row| row.0)));
        let floats: ArrayRef = Arc::new(Float64Array::from_iter(rows.iter().map(|row| row.1)));
        let mut set = Multiset::default();
        set.add(&RecordBatch::try_from_iter([("0:k", keys), ("v", floats)]).unwrap(), |_| 1).unwrap();
        set
    }

    fn differences(a: &Multiset, b: &Multiset) -> [Vec<String>; 2] {
        a.differences(b, 2).map(|side| side.first)
    }

    #[test]
    fn rows_are_one_by_one_or_missing() {
        let a = set(&[(Some("a"), Some(1.0)), (Some("a"), Some(1.0)), (None, None), (Some("NULL"), Some(f64::NAN))]);
        let b = set(&[(Some("a"), Some(1.0)), (None, Some(2.0)), (Some("NULL"), Some(f64::NAN))]);
        let [ours, theirs] = differences(&a, &b);
        assert_eq!(ours, ["(k: NULL, v: NULL)", "(k: a, v: 1)"]);
        assert_eq!(theirs, ["(k: NULL, v: 2)"]);
        assert_eq!((a.len(), b.len()), (4, 3));
    }

    #[test]
    fn lists_of_a_state_are_in_no_order() {
        let of = |mut set: Multiset, list: [Option<i64>; 3]| {
            let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>([Some(list)]));
            set.add(&RecordBatch::try_from_iter([("v", lists)]).unwrap(), |_| 1).unwrap();
            set
        };
        let (one, other) = ([Some(7), None, Some(7)], [None, Some(7), Some(7)]);
        let none: [Vec<String>; 2] = Default::default();
        assert_eq!(differences(&of(Multiset::of_state(), one), &of(Multiset::of_state(), other)), none);
        assert_eq!(differences(&of(Multiset::default(), one), &of(Multiset::default(), other))[0], ["(v: [7, , 7])"]);
        let more = of(Multiset::of_state(), [None, None, Some(7)]);
        assert_eq!(differences(&of(Multiset::of_state(), one), &more)[0].len(), 1);
    }

    #[test]
    fn floats_agree_nearly() {
        let (a, b) = (set(&[(Some("a"), Some(0.1 + 0.2))]), set(&[(Some("a"), Some(0.3))]));
        assert_eq!(differences(&a, &b), [vec![""; 0], vec![]]);
        let (a, b) = (set(&[(Some("a"), Some(-0.0))]), set(&[(Some("a"), Some(0.0))]));
        assert_eq!(differences(&a, &b), [vec![""; 0], vec![]]);
        let (a, b) = (set(&[(Some("a"), Some(1.0))]), set(&[(Some("a"), Some(1.000_001))]));
        assert_eq!(differences(&a, &b).map(|side| side.len()), [1, 1]);
    }

    #[test]
    fn what_is_taken_back_is_gone() {
        let mut a = set(&[(Some("a"), Some(1.0)), (Some("b"), Some(1.0))]);
        let column: ArrayRef = Arc::new(StringArray::from(vec!["a"]));
        let floats: ArrayRef = Arc::new(Float64Array::from(vec![1.0]));
        a.add(&RecordBatch::try_from_iter([("0:k", column), ("v", floats)]).unwrap(), |_| -1).unwrap();
        let [ours, theirs] = a.differences(&set(&[]), 1);
        assert_eq!((ours.count, ours.first), (1, vec!["(k: b, v: 1)".to_string()]));
        assert_eq!(theirs, Differences::default());
    }
}
