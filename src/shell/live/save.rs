//! The table of a view → a file, or the terminal's clipboard.

use std::fs::OpenOptions;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{Field, Schema};

use super::model::Row;
use super::value::Column;
use crate::display::{Format, write_rows};
use crate::error::{Error, Result};

/// Writes rows to a new file, in the format that its name ends with. Answers how many.
///
/// # Errors
/// There is no format of that name, the file is there, or can't be written.
pub(super) fn save(columns: &[Column], rows: &[&Row], file: &str) -> Result<usize> {
    let path = Path::new(file);
    let ending = path.extension().map(|ending| ending.to_string_lossy().to_lowercase()).unwrap_or_default();
    let format = match ending.as_str() {
        "csv" => Format::Csv,
        "tsv" => Format::Tsv,
        "json" => Format::Json,
        "jsonl" | "ndjson" => Format::JsonLines,
        "md" => Format::Markdown,
        "txt" => Format::Ascii,
        _ => return Err(Error::invalid("the name ends with .csv, .tsv, .json, .jsonl, .md or .txt")),
    };
    let batch = batch(columns, rows)?;
    let io = |error: &std::io::Error| Error::io(format!("can't write {file}"), error);
    // What is there is never written over.
    let mut out = OpenOptions::new().write(true).create_new(true).open(path).map_err(|error| io(&error))?;
    write_rows(&mut out, format, std::slice::from_ref(&batch), &batch.schema()).map_err(|error| io(&error))?;
    Ok(batch.num_rows())
}

/// The rows with numbers as numbers, and everything else as its text.
fn batch(columns: &[Column], rows: &[&Row]) -> Result<RecordBatch> {
    let column = |(at, column): (usize, &Column)| -> (Field, ArrayRef) {
        let texts: ArrayRef = Arc::new(rows.iter().map(|row| row.cell(at)).collect::<StringArray>());
        let numbers = column.number.then(|| cast(&texts, &column.data_type).ok()).flatten();
        // What can't be read as the number that it was stays a text.
        let numbers = numbers.filter(|numbers| numbers.null_count() == texts.null_count());
        let values = numbers.unwrap_or(texts);
        (Field::new(&column.name, values.data_type().clone(), true), values)
    };
    let (fields, values): (Vec<Field>, Vec<ArrayRef>) = columns.iter().enumerate().map(column).unzip();
    let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(rows.len()));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), values, &options)
        .map_err(|error| Error::internal(error.to_string()))
}

/// The sequence that asks a terminal to put a text into its clipboard (OSC 52); not all do.
pub(super) fn to_clipboard(text: &str) -> String {
    format!("\x1b]52;c;{}\x07", base64(text.as_bytes()))
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let bits = three.iter().enumerate().fold(0u32, |bits, (at, byte)| bits | u32::from(*byte) << (16 - 8 * at));
        for digit in 0..4 {
            let of = bits >> (18 - 6 * digit) & 63;
            out.push(if digit <= three.len() { DIGITS[of as usize] as char } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::DataType;

    use super::*;

    #[test]
    fn bytes_are_written_in_base_64() {
        for (text, encoded) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")] {
            assert_eq!(base64(text.as_bytes()), encoded);
        }
        assert_eq!(to_clipboard("foo"), "\x1b]52;c;Zm9v\x07");
    }

    #[test]
    fn a_file_holds_numbers_as_numbers_and_is_never_written_over() {
        let schema = Schema::new(vec![
            Field::new("page", DataType::Utf8, true),
            Field::new("n", DataType::Int64, true),
            Field::new("at", DataType::Date32, true),
        ]);
        let columns = super::super::value::columns(&schema);
        let row = Row::for_test(1, &[Some("/a"), Some("7"), Some("2026-01-01")]);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("t.jsonl").display().to_string();
        assert_eq!(save(&columns, &[&row], &file).unwrap(), 1);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "{\"page\":\"/a\",\"n\":7,\"at\":\"2026-01-01\"}\n");
        assert!(save(&columns, &[&row], &file).unwrap_err().to_string().contains("can't write"));
        assert!(save(&columns, &[], "t.parquet").unwrap_err().to_string().contains("ends with"));
        assert!(save(&columns, &[], "t").is_err());
    }
}
