//! Where a script comes from: a `-c` argument, a file, or standard input, read line by line.

use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::source::stdin;

/// A script that is being read.
pub(super) struct Input {
    /// As shown in front of `:line:column`.
    pub(super) name: String,
    /// The file it is, for `\ir`.
    pub(super) path: Option<PathBuf>,
    reader: Box<dyn BufRead>,
    line: u64,
}

impl Input {
    /// The `number`th argument of a flag, from 1.
    pub(super) fn argument(flag: &str, number: usize, text: &str) -> Self {
        Input::new(format!("{flag} #{number}"), None, Cursor::new(text.to_string()))
    }

    /// Standard input.
    ///
    /// # Errors
    /// A stream reads it.
    pub(super) fn stdin() -> Result<Self> {
        stdin::claim(stdin::SCRIPT)?;
        Ok(Input::new("stdin".to_string(), None, BufReader::new(std::io::stdin())))
    }

    /// A file.
    ///
    /// # Errors
    /// It can't be opened.
    pub(super) fn file(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        let file = File::open(path).map_err(|error| Error::io(format!("can't open {name}"), &error))?;
        if file.metadata().is_ok_and(|metadata| metadata.is_dir()) {
            return Err(Error::invalid(format!("{name} is a directory, not a script")));
        }
        Ok(Input::new(name, Some(path.to_path_buf()), BufReader::new(file)))
    }

    fn new(name: String, path: Option<PathBuf>, reader: impl BufRead + 'static) -> Self {
        Input { name, path, reader: Box::new(reader), line: 0 }
    }

    /// The next line with its newline; `None` at the end. A byte order mark and a first line that begins with `#!`
    /// are left out.
    ///
    /// # Errors
    /// The input can't be read, or isn't UTF-8.
    pub(super) fn next_line(&mut self) -> Result<Option<String>> {
        let mut bytes = Vec::new();
        let read = self.reader.by_ref().read_until(b'\n', &mut bytes);
        if read.map_err(|error| Error::io(format!("can't read {}", self.name), &error))? == 0 {
            return Ok(None);
        }
        self.line += 1;
        let mut line = String::from_utf8(bytes)
            .map_err(|_| Error::invalid(format!("{}:{}: the line is not valid UTF-8", self.name, self.line)))?;
        if self.line == 1 {
            if line.starts_with('\u{feff}') {
                line.drain(..'\u{feff}'.len_utf8());
            }
            if line.starts_with("#!") {
                line = "\n".to_string();
            }
        }
        Ok(Some(line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(bytes: &[u8]) -> Result<Vec<String>> {
        let mut input = Input::new("test.sql".to_string(), None, Cursor::new(bytes.to_vec()));
        let mut lines = Vec::new();
        while let Some(line) = input.next_line()? {
            lines.push(line);
        }
        Ok(lines)
    }

    #[test]
    fn lines_are_as_they_were_written() {
        assert_eq!(lines(b"SELECT 1;\r\n\nSELECT 2").unwrap(), ["SELECT 1;\r\n", "\n", "SELECT 2"]);
    }

    #[test]
    fn a_byte_order_mark_and_a_shebang_are_left_out() {
        assert_eq!(lines("\u{feff}SELECT 1;\n".as_bytes()).unwrap(), ["SELECT 1;\n"]);
        assert_eq!(lines(b"#!/usr/bin/env -S levada -f\nSELECT 1;\n#!\n").unwrap(), ["\n", "SELECT 1;\n", "#!\n"]);
    }

    #[test]
    fn bytes_that_are_no_text_are_refused_with_their_line() {
        let error = lines(b"SELECT 1;\nSELECT '\xff';\n").unwrap_err();
        assert_eq!(error.to_string(), "test.sql:2: the line is not valid UTF-8");
    }

    #[test]
    fn a_directory_is_no_script() {
        let error = Input::file(Path::new("/")).err().unwrap();
        assert_eq!(error.to_string(), "/ is a directory, not a script");
    }
}
