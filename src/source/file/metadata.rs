//! Columns that the connector knows: where a record stands, and the text of one that can't be read.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, StringViewBuilder, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, TimeUnit};

use super::files::FileEntry;
use crate::error::{Error, Result, closest};

/// A column declared `METADATA FROM 'key'`.
#[derive(Debug, Clone)]
pub struct MetadataColumn {
    pub name: String,
    pub key: String,
    pub data_type: DataType,
}

/// What a metadata column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// The file's path, as the source opens it.
    Path,
    /// The file's name without directories.
    Name,
    /// When the file was modified.
    Mtime,
    /// The file's size in bytes.
    Size,
    /// The line the record begins on, from 1.
    Line,
    /// The byte the record begins at, from 0; in a compressed file, of what is inside.
    Offset,
    /// The text of a record that is a row of NULLs (`on_error = 'null'`).
    CorruptRecord,
}

/// All keys, as written.
const KEYS: [(&str, Key); 7] = [
    ("path", Key::Path),
    ("name", Key::Name),
    ("mtime", Key::Mtime),
    ("size", Key::Size),
    ("line", Key::Line),
    ("offset", Key::Offset),
    ("corrupt_record", Key::CorruptRecord),
];

impl Key {
    /// The key of a column, one of `allowed`.
    ///
    /// # Errors
    /// InvalidInput: an unknown key, or a type its values can't be turned into.
    pub fn of(column: &MetadataColumn, owner: &str, allowed: &[Key]) -> Result<Self> {
        let known = KEYS.iter().filter(|(_, key)| allowed.contains(key));
        let Some((_, key)) = known.clone().find(|(name, _)| *name == column.key) else {
            let names: Vec<&str> = known.map(|(name, _)| *name).collect();
            let error = Error::invalid(format!("{owner} has no metadata '{}' (column {})", column.key, column.name));
            return Err(match closest(&column.key, names.iter().copied()) {
                Some(name) => error.help(format!("did you mean '{name}'? known: {}", names.join(", "))),
                None => error.help(format!("known: {}", names.join(", "))),
            });
        };
        if !key.fits(&column.data_type) {
            let wants = crate::format::type_name(&key.data_type());
            return Err(Error::invalid(format!("column {}: metadata '{}' is {wants}", column.name, column.key)));
        }
        Ok(*key)
    }

    /// Whether every value can be of that type.
    fn fits(self, data_type: &DataType) -> bool {
        match self.data_type() {
            DataType::Utf8View => matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View),
            DataType::Int64 => matches!(data_type, DataType::Int64 | DataType::UInt64),
            _ => matches!(data_type, DataType::Timestamp(..)),
        }
    }

    /// Every key of a file of records.
    pub const RECORDS: &'static [Key] =
        &[Key::Path, Key::Name, Key::Mtime, Key::Size, Key::Line, Key::Offset, Key::CorruptRecord];
    /// Those that a parquet file has.
    pub const FILES: &'static [Key] = &[Key::Path, Key::Name, Key::Mtime, Key::Size];
    /// Those that a pipe has.
    pub const PIPE: &'static [Key] = &[Key::Line, Key::CorruptRecord];

    /// The type its values have before they are turned into the column's.
    pub fn data_type(self) -> DataType {
        match self {
            Key::Path | Key::Name | Key::CorruptRecord => DataType::Utf8View,
            Key::Mtime => DataType::Timestamp(TimeUnit::Microsecond, None),
            Key::Size | Key::Line | Key::Offset => DataType::Int64,
        }
    }
}

/// One file's part of a batch.
#[derive(Debug, Clone)]
pub struct Segment {
    /// Index into the files read.
    pub file: usize,
    pub rows: usize,
}

/// A file and its path as it is shown.
pub type NamedFile = (FileEntry, String);

/// The values of a key that is the same for all records of a file.
pub fn file_values(key: Key, files: &[NamedFile], segments: &[Segment]) -> ArrayRef {
    let rows: usize = segments.iter().map(|segment| segment.rows).sum();
    let numbers = |value: fn(&FileEntry) -> i64| {
        let mut values = Vec::with_capacity(rows);
        for segment in segments {
            values.resize(values.len() + segment.rows, value(&files[segment.file].0));
        }
        values
    };
    match key {
        Key::Mtime => Arc::new(TimestampMicrosecondArray::from(numbers(|file| file.mtime.div_euclid(1_000)))),
        Key::Size => Arc::new(Int64Array::from(numbers(|file| file.size as i64))),
        _ => file_texts(key, files, segments, rows),
    }
}

fn file_texts(key: Key, files: &[NamedFile], segments: &[Segment], rows: usize) -> ArrayRef {
    let mut builder = StringViewBuilder::with_capacity(rows);
    for segment in segments {
        let text = text_of(key, &files[segment.file]);
        for _ in 0..segment.rows {
            builder.append_value(text);
        }
    }
    Arc::new(builder.finish())
}

/// The path or name of a file.
pub fn text_of(key: Key, file: &NamedFile) -> &str {
    match key {
        Key::Name => file.1.rsplit('/').next().unwrap_or(&file.1),
        _ => &file.1,
    }
}
