//! Results that go somewhere else: `\o`, `\g FILE`, `.once`, `-o`; a file, or a command behind `|`.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::output::Output;
use crate::error::{Error, Result};

/// Where results go until it is closed.
pub(super) struct Redirect {
    pub(super) output: Output,
    child: Option<Child>,
    /// As it was written.
    pub(super) words: String,
}

impl Redirect {
    /// Opens `FILE`, or `|COMMAND`, which `shell` makes a process of.
    ///
    /// # Errors
    /// The file can't be made, or the command not started.
    pub(super) fn open(words: &str, shell: impl Fn(&str) -> Command) -> Result<Self> {
        let words = words.trim().to_string();
        if let Some(command) = words.strip_prefix('|') {
            let failed = |error: io::Error| Error::io(format!("can't start {}", command.trim()), &error);
            let mut child = shell(command).stdin(Stdio::piped()).spawn().map_err(failed)?;
            let Some(stdin) = child.stdin.take() else {
                return Err(Error::internal("a command without a standard input"));
            };
            return Ok(Redirect { output: Output::to(Reader(BufWriter::new(stdin))), child: Some(child), words });
        }
        let file =
            File::create(Path::new(&words)).map_err(|error| Error::io(format!("can't write {words}"), &error))?;
        Ok(Redirect { output: Output::to(BufWriter::new(file)), child: None, words })
    }

    /// Writes what is left, and waits for the command.
    ///
    /// # Errors
    /// It can't be written, or the command failed.
    pub(super) fn close(self) -> Result<()> {
        let Redirect { output, child, words } = self;
        let flushed = output.lock().flush();
        drop(output);
        flushed.map_err(|error| Error::io(format!("can't write {words}"), &error))?;
        let Some(mut child) = child else { return Ok(()) };
        let status = child.wait().map_err(|error| Error::io(format!("waiting for {words}"), &error))?;
        if status.success() {
            return Ok(());
        }
        Err(Error::computation(format!("{words}: {status}")))
    }
}

/// The standard input of a command, which may have read enough: that is no error.
struct Reader<W>(W);

impl<W: Write> Write for Reader<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(bytes.len()),
            written => written,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.0.flush() {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            flushed => flushed,
        }
    }
}
