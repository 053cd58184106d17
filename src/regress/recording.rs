//! What is typed and answered at the prompt, written as a test: `\\record FILE.slt`.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;
use arrow::datatypes::Schema;

use super::answer::Failure;
use super::compare::lines;
use super::inspect::value_of;
use super::values::{Letter, Style, letters, rows};
use super::world::quoted;
use crate::error::{Error, Location, Result};
use crate::parser::{OutputMode, Show, Statement, parse_one};
use crate::sink::Recorder;

/// A test file that is being written.
pub struct Recording {
    path: PathBuf,
    file: File,
    records: u64,
    /// What the queries give out that are started meanwhile.
    recorder: Recorder,
    /// The queries that were stepped: what their progress says does not depend on the time.
    stepped: BTreeSet<String>,
}

/// Values of a progress document that are the same on every machine.
const PROGRESS: &[&str] =
    &["batch", "input_rows", "output_rows", "watermark", "dropped_late", "bad_rows", "evicted", "state.rows"];

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
        let (recorder, stepped) = Default::default();
        Ok(Recording { path: path.to_path_buf(), file, records: 0, recorder, stepped })
    }

    /// Keeps what queries give out.
    pub fn recorder(&self) -> Recorder {
        self.recorder.clone()
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How many records it has.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// A statement that was done. Behind a step stands what its batches gave out.
    ///
    /// # Errors
    /// The file can't be written. Answers why the statement can't be a record.
    pub fn done(&mut self, sql: &str, tag: &str) -> Result<Option<String>> {
        let statement = parse_one(sql, Location { line: 1, column: 1 }).map(|s| s.statement);
        let Ok(Statement::StepQuery { name, .. }) = statement else { return self.write(sql, "statement ok", "") };
        let ran: u64 = tag.split_whitespace().last().and_then(|word| word.parse().ok()).unwrap_or_default();
        self.stepped.insert(name.value.clone());
        let said = self.write(sql, &format!("statement count {ran}"), "")?;
        if ran > 0 {
            self.emitted(&name.value, ran)?;
        }
        Ok(said)
    }

    /// Text that a statement answered. Of a progress document the values are kept that are the same on every machine; of what
    /// people read, such as a plan, that it was given.
    ///
    /// # Errors
    /// As [`Recording::done`].
    pub fn told(&mut self, sql: &str, text: &str) -> Result<Option<String>> {
        let statement = parse_one(sql, Location { line: 1, column: 1 }).map(|s| s.statement);
        let said = self.write(sql, "statement ok", "")?;
        let Ok(Statement::Show(Show::Progress { query: Some(query), json: true, .. })) = statement else {
            return Ok(said);
        };
        let document = text.lines().last().and_then(|line| serde_json::from_str::<serde_json::Value>(line).ok());
        if let Some(document) = document.filter(|_| self.stepped.contains(&query.value)) {
            let line = |key: &&str| {
                let value = value_of(&document, key).ok()??;
                Some(format!("{key} = {}\n", value.as_str().map_or(value.to_string(), str::to_string)))
            };
            let lines: String = PROGRESS.iter().filter_map(line).collect();
            self.put(&format!("\nprogress {}\n{lines}", word(&query.value)))?;
        }
        Ok(said)
    }

    /// What the last so many batches of a query gave out.
    fn emitted(&mut self, query: &str, ran: u64) -> Result<()> {
        let Some(recorded) = self.recorder.recorded(query).filter(|recorded| !recorded.batches.is_empty()) else {
            return self
                .put(&format!("\n# Query {query} was started before the recording: what it gave out is not known.\n"));
        };
        let last = recorded.batches.keys().next_back().copied().unwrap_or_default();
        let from = (last + 1).saturating_sub(ran);
        let (batch, ops) = recorded.changes(|batch| batch >= from)?;
        let types = letters(&Letter::all(&recorded.schema));
        let mut rows = rows(&[batch], Style::Exact)?;
        if recorded.mode == OutputMode::Update {
            rows.iter_mut().zip(ops).for_each(|(row, op)| row.insert(0, op.symbol().to_string()));
        }
        rows.sort_unstable();
        let sort = if rows.len() < 2 { "" } else { " rowsort" };
        let answer: String = lines(&rows).iter().map(|line| format!("{line}\n")).collect();
        self.put(&format!("\nemitted {} since {from} {types}{sort}\n----\n{answer}", word(query)))
    }

    /// A statement that failed.
    ///
    /// # Errors
    /// As [`Recording::done`].
    pub fn failed(&mut self, sql: &str, error: &Error) -> Result<Option<String>> {
        let text = Failure::from(error.clone()).text;
        self.write(sql, "statement error", &format!("----\n{}\n\n", text.trim()))
    }

    /// A statement that answered rows. Without ORDER BY their order is nothing to rely on.
    ///
    /// # Errors
    /// As [`Recording::done`].
    pub fn answered(&mut self, sql: &str, schema: &Schema, batches: &[RecordBatch]) -> Result<Option<String>> {
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

    fn write(&mut self, sql: &str, head: &str, answer: &str) -> Result<Option<String>> {
        // A record ends at a blank line, so the statement may have none.
        let short: Vec<&str> = sql.trim().lines().filter(|line| !line.trim().is_empty()).collect();
        let short = short.join("\n");
        let at = Location { line: 1, column: 1 };
        if short.lines().count() < sql.trim().lines().count()
            && parse_one(&short, at).map(|s| s.statement).ok() != parse_one(sql, at).map(|s| s.statement).ok()
        {
            let why = "a blank line inside a text would end the record";
            let commented: String = sql.trim().lines().map(|line| format!("# {line}\n")).collect();
            self.put(&format!("\n# Not recorded: {why}.\n{commented}"))?;
            return Ok(Some(format!("the statement was not recorded: {why}; it stands in the file as a comment")));
        }
        self.put(&format!("\n{head}\n{short}\n{answer}"))?;
        self.records += 1;
        Ok(None)
    }

    fn put(&mut self, text: &str) -> Result<()> {
        let written = self.file.write_all(text.as_bytes());
        written.map_err(|e| Error::io(format!("writing {}", self.path.display()), &e))
    }
}

/// A name as a record has it: one word.
fn word(name: &str) -> String {
    let plain = name.chars().all(|c| c == '_' || c.is_ascii_lowercase() || c.is_ascii_digit());
    if plain { name.to_string() } else { quoted(name) }
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
        recording.done("SET\n\nclock = 'manual'", "SET").unwrap();
        recording.answered("SELECT n, t FROM x", &batch.schema(), std::slice::from_ref(&batch)).unwrap();
        recording.failed("SELECT", &Error::invalid("no").help("yes")).unwrap();
        assert!(recording.done("SELECT 'a\n\nb'", "SELECT").unwrap().is_some(), "it says why");
        assert_eq!(recording.records(), 3);
        let text = std::fs::read_to_string(&path).unwrap();
        let expected = "control compare exact\n\nstatement ok\nSET\nclock = 'manual'\n\nquery IT rowsort\nSELECT n, t FROM x\n\
                        ----\n1 (empty)\n2 b␠c\n\nstatement error\nSELECT\n----\nno\nhelp: yes\n\n\n\
                        # Not recorded: a blank line inside a text would end the record.\n# SELECT 'a\n# \n# b'\n";
        assert_eq!(text, expected);
    }
}
