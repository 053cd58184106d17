//! `partition_by`: which folder a row belongs to, and its columns without those that the folder tells.
//!
//! ```text
//! partition_by = 'day,city'     (2024-01-01, 'Köln/Bonn', 3)  →  day=2024-01-01/city=Köln%2FBonn/   (3)
//!                               (2024-01-01, NULL, 4)         →  day=2024-01-01/city=__HIVE_DEFAULT_PARTITION__/   (4)
//! ```
//! The layout is Hive's. Characters that a path or a reader would take for something else are written as `%XX`, so
//! that every value comes back as it was.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, RecordBatch, UInt32Array};
use arrow::datatypes::{DataType, SchemaRef};
use arrow::error::ArrowError;
use arrow::row::{RowConverter, SortField};
use arrow::util::display::{ArrayFormatter, FormatOptions};

use crate::error::{Error, Result, closest};

/// The folder of rows whose value is NULL.
const NULL: &str = "__HIVE_DEFAULT_PARTITION__";

/// Spreads rows over folders.
#[derive(Debug)]
pub(super) struct Partitioner {
    /// The columns that make the folder, in its order.
    by: Vec<usize>,
    /// The others.
    kept: Vec<usize>,
    /// `name=` of each column of `by`.
    names: Vec<String>,
    /// Of the files.
    schema: SchemaRef,
    converter: RowConverter,
}

impl Partitioner {
    /// # Errors
    /// InvalidInput: a column that isn't there, is named twice, holds a structure, or no column is left for the files.
    pub(super) fn new(schema: &SchemaRef, columns: &[String]) -> Result<Self> {
        let mut by = Vec::with_capacity(columns.len());
        for name in columns {
            let index = schema.index_of(name).map_err(|_| no_column(schema, name))?;
            if by.contains(&index) {
                return Err(Error::invalid(format!("partition_by names column {name} twice")));
            }
            let data_type = schema.field(index).data_type();
            if data_type.is_nested() || matches!(data_type, DataType::Binary | DataType::LargeBinary) {
                return Err(Error::invalid(format!(
                    "partition_by column {name} is {data_type}, which makes no folder name"
                ))
                .help("take a column of text, numbers, booleans or times"));
            }
            by.push(index);
        }
        let kept: Vec<usize> = (0..schema.fields().len()).filter(|index| !by.contains(index)).collect();
        if kept.is_empty() {
            return Err(Error::invalid("partition_by names every column, which leaves none for the files"));
        }
        let sort = by.iter().map(|index| SortField::new(schema.field(*index).data_type().clone())).collect();
        Ok(Partitioner {
            names: by.iter().map(|index| format!("{}=", escape(schema.field(*index).name()))).collect(),
            schema: Arc::new(schema.project(&kept).map_err(wrong)?),
            converter: RowConverter::new(sort).map_err(wrong)?,
            by,
            kept,
        })
    }

    /// The columns of the files.
    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The rows of each folder, in the order they came; folders in the order of their first rows. A folder is `""`, or
    /// ends with `/`.
    pub(super) fn split(&self, rows: &RecordBatch) -> Result<Vec<(String, RecordBatch)>> {
        let kept = rows.project(&self.kept).map_err(wrong)?;
        if self.by.is_empty() {
            return Ok(vec![(String::new(), kept)]);
        }
        let keys: Vec<_> = self.by.iter().map(|index| rows.column(*index).clone()).collect();
        let encoded = self.converter.convert_columns(&keys).map_err(wrong)?;
        let mut groups: Vec<Vec<u32>> = Vec::new();
        let mut group_of = BTreeMap::new();
        for (row, key) in encoded.iter().enumerate() {
            let group = *group_of.entry(key).or_insert_with(|| {
                groups.push(Vec::new());
                groups.len() - 1
            });
            groups[group].push(row as u32);
        }
        let options = FormatOptions::default();
        let formatters = keys.iter().map(|key| ArrayFormatter::try_new(key.as_ref(), &options));
        let formatters = formatters.collect::<Result<Vec<_>, _>>().map_err(wrong)?;
        let mut folders = Vec::with_capacity(groups.len());
        for group in groups {
            let mut folder = String::new();
            let first = group.first().map_or(0, |row| *row as usize);
            for ((name, key), formatter) in self.names.iter().zip(&keys).zip(&formatters) {
                let value = formatter.value(first).try_to_string().map_err(wrong)?;
                let value = if key.is_null(first) { NULL.to_string() } else { escape(&value) };
                folder.extend([name, value.as_str(), "/"]);
            }
            let rows = arrow::compute::take_record_batch(&kept, &UInt32Array::from(group)).map_err(wrong)?;
            folders.push((folder, rows));
        }
        Ok(folders)
    }
}

/// A name or value as a part of a path. A value that reads like the folder of NULL is told apart from it.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (index, c) in text.char_indices() {
        let special = c.is_ascii_control() || "\"#%'*/:<=>?\\[]^{|}".contains(c);
        if special || (index == 0 && text == NULL) {
            out.push_str(&format!("%{:02X}", c as u32));
        } else {
            out.push(c);
        }
    }
    out
}

/// What the name of a folder says: the column and its value, `None` for NULL. `None` for a folder of another kind.
pub fn folder_value(name: &str) -> Option<(String, Option<String>)> {
    let (column, value) = name.split_once('=')?;
    Some((unescape(column)?, if value == NULL { None } else { Some(unescape(value)?) }))
}

fn unescape(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut out = parts.next()?.to_string();
    for part in parts {
        let code = u8::from_str_radix(part.get(..2)?, 16).ok().filter(u8::is_ascii)?;
        out.push(char::from(code));
        out.push_str(&part[2..]);
    }
    Some(out)
}

fn no_column(schema: &SchemaRef, name: &str) -> Error {
    let names = schema.fields().iter().map(|f| f.name().as_str());
    let error = Error::invalid(format!("partition_by names column {name}, which the result doesn't have"));
    match closest(name, names.clone()) {
        Some(close) => error.help(format!("did you mean {close}?")),
        None => error.help(format!("its columns are {}", names.collect::<Vec<_>>().join(", "))),
    }
}

fn wrong(error: ArrowError) -> Error {
    Error::internal(format!("rows can't be spread over folders: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{ArrayRef, AsArray, Int64Array, StringArray};
    use arrow::datatypes::Int64Type;

    fn rows(values: &[(Option<&str>, i64)]) -> RecordBatch {
        let keys = StringArray::from_iter(values.iter().map(|v| v.0));
        let numbers = Int64Array::from_iter_values(values.iter().map(|v| v.1));
        let columns: [(&str, ArrayRef, bool); 2] = [("k", Arc::new(keys), true), ("n", Arc::new(numbers), false)];
        RecordBatch::try_from_iter_with_nullable(columns).unwrap()
    }

    #[test]
    fn values_become_folders_and_stay_apart() {
        let values = [
            (Some("a/b"), 0),
            (None, 1),
            (Some("a/b"), 2),
            (Some(""), 3),
            (Some(NULL), 4),
            (Some("../x"), 5),
            (Some("50%"), 6),
            (Some("ö \u{1}"), 7),
        ];
        let rows = rows(&values);
        let partitioner = Partitioner::new(&rows.schema(), &["k".into()]).unwrap();
        let found = partitioner.split(&rows).unwrap();
        let folders: Vec<&str> = found.iter().map(|(folder, _)| folder.as_str()).collect();
        let expected = [
            "k=a%2Fb/",
            "k=__HIVE_DEFAULT_PARTITION__/",
            "k=/",
            "k=%5F_HIVE_DEFAULT_PARTITION__/",
            "k=..%2Fx/",
            "k=50%25/",
            "k=ö %01/",
        ];
        assert_eq!(folders, expected);
        let read_back = found.iter().map(|(folder, _)| folder_value(folder.trim_end_matches('/')).unwrap());
        let values = values.iter().enumerate().filter(|(at, _)| *at != 2);
        assert!(read_back.eq(values.map(|(_, (value, _))| ("k".to_string(), value.map(str::to_string)))));
        assert_eq!((folder_value("k"), folder_value("k=%4"), folder_value("k=%FF")), (None, None, None));
        assert_eq!(found[0].1.num_columns(), 1);
        assert_eq!(found[0].1.column(0).as_primitive::<Int64Type>().values().to_vec(), [0, 2]);
    }

    #[test]
    fn columns_are_checked() {
        let schema = rows(&[]).schema();
        let refuse = |columns: &[&str]| {
            let columns: Vec<String> = columns.iter().map(|c| c.to_string()).collect();
            Partitioner::new(&schema, &columns).unwrap_err()
        };
        assert_eq!(refuse(&["kk"]).help_text(), Some("did you mean k?"));
        assert!(refuse(&["k", "k"]).to_string().contains("twice"));
        assert!(refuse(&["k", "n"]).to_string().contains("leaves none for the files"));
    }
}
