//! The table of a view → a file, or the terminal's clipboard.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use arrow::array::RecordBatch;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;

use super::model::{Model, Row};
use super::typed::Typed;
use super::view::View;
use crate::display::{Format, write_rows};
use crate::error::{Error, Result};

/// Writes the table of a view to a file; answers what became of it.
pub(super) fn saved(view: &View, live: &Model, file: &str) -> String {
    let seen = view.seen(live);
    match save(&seen.typed, &view.rows(seen), file) {
        Ok(rows) => format!("{rows} row{} written to {file}", if rows == 1 { "" } else { "s" }),
        Err(error) => error.to_string(),
    }
}

/// Writes rows to a new file, in the format that its name ends with. Answers how many.
///
/// # Errors
/// There is no format of that name, the file is there, or can't be written.
fn save(typed: &Typed, rows: &[&Row], file: &str) -> Result<usize> {
    let path = Path::new(file);
    let ending = path.extension().map(|ending| ending.to_string_lossy().to_lowercase()).unwrap_or_default();
    let format = match ending.as_str() {
        "csv" => Some(Format::Csv),
        "tsv" => Some(Format::Tsv),
        "json" => Some(Format::Json),
        "jsonl" | "ndjson" => Some(Format::JsonLines),
        "md" => Some(Format::Markdown),
        "txt" => Some(Format::Ascii),
        "parquet" => None,
        _ => return Err(Error::invalid("the name ends with .csv, .tsv, .json, .jsonl, .md, .txt or .parquet")),
    };
    let batch = typed.batch(rows)?;
    let io = |error: &std::io::Error| Error::io(format!("can't write {file}"), error);
    // Made before there is a file, so that none is left of what can't be written.
    let bytes = match format {
        Some(format) => {
            let mut bytes = Vec::new();
            write_rows(&mut bytes, format, std::slice::from_ref(&batch), &batch.schema())
                .map_err(|error| io(&error))?;
            bytes
        }
        None => {
            parquet(&batch).map_err(|error| Error::computation(format!("can't write {file} as parquet: {error}")))?
        }
    };
    // What is there is never written over.
    let mut out = OpenOptions::new().write(true).create_new(true).open(path).map_err(|error| io(&error))?;
    out.write_all(&bytes).map_err(|error| io(&error))?;
    Ok(batch.num_rows())
}

fn parquet(batch: &RecordBatch) -> parquet::errors::Result<Vec<u8>> {
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties))?;
    writer.write(batch)?;
    writer.into_inner()
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
    use arrow::array::{AsArray, Date32Array, StructArray};
    use arrow::datatypes::{DataType, Field, Int64Type};
    use parquet::arrow::arrow_reader::ParquetRecordBatchReader;
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;

    #[test]
    fn bytes_are_written_in_base_64() {
        for (text, encoded) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")] {
            assert_eq!(base64(text.as_bytes()), encoded);
        }
        assert_eq!(to_clipboard("foo"), "\x1b]52;c;Zm9v\x07");
    }

    /// A view of `page, n, at, s: {n}`.
    fn model() -> Model {
        let page = Arc::new(arrow::array::StringArray::from(vec![Some("/a"), None]));
        let n = Arc::new(arrow::array::Int64Array::from(vec![Some(7), Some(8)]));
        let at = Arc::new(Date32Array::from(vec![Some(20_454), None]));
        let field = Arc::new(Field::new("n", DataType::Int64, true));
        let s = Arc::new(StructArray::from(vec![(field, n.clone() as arrow::array::ArrayRef)]));
        let columns: [(&str, arrow::array::ArrayRef, bool); 4] =
            [("page", page, true), ("n", n, true), ("at", at, true), ("s", s, true)];
        let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
        let mut model = Model::of_results(&batch.schema());
        model.take_result(1, &[batch], Duration::ZERO).unwrap();
        model
    }

    #[test]
    fn a_file_holds_values_and_is_never_written_over() {
        let (model, folder) = (model(), tempfile::tempdir().unwrap());
        let rows = model.rows(None, "");
        let file = folder.path().join("t.jsonl").display().to_string();
        assert_eq!(save(&model.typed, &rows[..1], &file).unwrap(), 1);
        let line = "{\"page\":\"/a\",\"n\":7,\"at\":\"2026-01-01\",\"s\":{\"n\":7}}\n";
        assert_eq!(std::fs::read_to_string(&file).unwrap(), line);
        assert!(save(&model.typed, &rows, &file).unwrap_err().to_string().contains("can't write"));
        assert!(save(&model.typed, &rows, "t.xml").unwrap_err().to_string().contains("ends with"));
        assert!(save(&model.typed, &rows, "t").is_err());
    }

    #[test]
    fn parquet_has_the_types_of_the_result() {
        let (model, folder) = (model(), tempfile::tempdir().unwrap());
        let file = folder.path().join("t.parquet");
        let rows = model.rows(Some((1, true)), "");
        assert_eq!(save(&model.typed, &rows, &file.display().to_string()).unwrap(), 2);
        let mut reader = ParquetRecordBatchReader::try_new(std::fs::File::open(&file).unwrap(), 1024).unwrap();
        let read = reader.next().unwrap().unwrap();
        assert_eq!(read.schema().field(2).data_type(), &DataType::Date32);
        assert_eq!(read.column(1).as_primitive::<Int64Type>().values(), &[8, 7]);
        assert_eq!(read.column(3).as_struct().column(0).as_primitive::<Int64Type>().value(0), 8);
        assert!(read.column(0).is_null(0) && read.column(2).is_null(0));
        // Without a row, too.
        let empty = folder.path().join("e.parquet").display().to_string();
        assert_eq!(save(&model.typed, &[], &empty).unwrap(), 0);
    }
}
