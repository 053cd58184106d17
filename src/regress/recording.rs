//! What is typed and answered at the prompt, written as a test: `\\record FILE.slt`.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;
use arrow::datatypes::Schema;

use super::answer::Failure;
use super::compare::lines;
use super::values::{Letter, Style, letters, rows};
use crate::error::{Error, Location, Result};
use crate::parser::parse_one;

/// A test file that is being written.
pub struct Recording {
    path: PathBuf,
    file: File,
    records: u64,
}

impl Recording {
    /// Begins a file.
    ///
    /// # Errors
    /// There is one of that name, or it can't be made.
    pub fn begin(path: &Path) -> Result<Self> {
        let made = File::options().write(true).create_new(true).open(path);
        let mut file = made.map_err(|e| match e.kind() {
            std::io::ErrorKind::AlreadyExists => {
                Error::invalid(format!("{} exists", path.display())).help("choose another name, or remove it first")
            }
            _ => Error::io(format!("making {}", path.display()), &e),
        })?;
        let header = "control compare exact\n";
        file.write_all(header.as_bytes()).map_err(|e| Error::io(format!("writing {}", path.display()), &e))?;
        Ok(Recording { path: path.to_path_buf(), file, records: 0 })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How many records it has.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// A statement that was done.
    ///
    /// # Errors
    /// It can't be written as a record, or not to the file.
    pub fn done(&mut self, sql: &str) -> Result<()> {
        self.write(sql, "statement ok", "")
    }

    /// A statement that failed.
    ///
    /// # Errors
    /// As [`Recording::done`].
    pub fn failed(&mut self, sql: &str, error: &Error) -> Result<()> {
        let text = Failure::from(error.clone()).text;
        self.write(sql, "statement error", &format!("----\n{}\n\n", text.trim()))
    }

    /// A statement that answered rows. Without ORDER BY their order is nothing to rely on.
    ///
    /// # Errors
    /// As [`Recording::done`].
    pub fn answered(&mut self, sql: &str, schema: &Schema, batches: &[RecordBatch]) -> Result<()> {
        let mut rows = rows(batches, Style::Exact)?;
        let ordered =
            sql.to_lowercase().split_whitespace().collect::<Vec<_>>().windows(2).any(|w| w == ["order", "by"]);
        let sort = if ordered || rows.len() < 2 { "" } else { " rowsort" };
        if !sort.is_empty() {
            rows.sort_unstable();
        }
        let answer: String = lines(&rows).iter().map(|line| format!("{line}\n")).collect();
        self.write(sql, &format!("query {}{sort}", letters(&Letter::all(schema))), &format!("----\n{answer}"))
    }

    fn write(&mut self, sql: &str, head: &str, answer: &str) -> Result<()> {
        // A record ends at a blank line, so the statement may have none.
        let short: Vec<&str> = sql.trim().lines().filter(|line| !line.trim().is_empty()).collect();
        let short = short.join("\n");
        let at = Location { line: 1, column: 1 };
        if short.lines().count() < sql.trim().lines().count()
            && parse_one(&short, at).map(|s| s.statement).ok() != parse_one(sql, at).map(|s| s.statement).ok()
        {
            return Err(Error::invalid(
                "the statement was not recorded: a blank line inside a text would end the record",
            ));
        }
        let record = format!("\n{head}\n{short}\n{answer}");
        let written = self.file.write_all(record.as_bytes());
        written.map_err(|e| Error::io(format!("writing {}", self.path.display()), &e))?;
        self.records += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{ArrayRef, Int64Array, StringArray};
    use std::sync::Arc;

    #[test]
    fn statements_become_records() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.slt");
        let mut recording = Recording::begin(&path).unwrap();
        assert!(Recording::begin(&path).is_err(), "nothing is written over");
        let columns: [(&str, ArrayRef); 2] =
            [("n", Arc::new(Int64Array::from(vec![2, 1]))), ("t", Arc::new(StringArray::from(vec!["b c", ""])))];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        recording.done("SET\n\nclock = 'manual'").unwrap();
        recording.answered("SELECT n, t FROM x", &batch.schema(), std::slice::from_ref(&batch)).unwrap();
        recording.failed("SELECT", &Error::invalid("no").help("yes")).unwrap();
        assert!(recording.done("SELECT 'a\n\nb'").is_err());
        assert_eq!(recording.records(), 3);
        let text = std::fs::read_to_string(&path).unwrap();
        let expected = "control compare exact\n\nstatement ok\nSET\nclock = 'manual'\n\nquery IT rowsort\nSELECT n, t FROM x\n\
                        ----\n1 (empty)\n2 b␠c\n\nstatement error\nSELECT\n----\nno\nhelp: yes\n\n";
        assert_eq!(text, expected);
    }
}
