//! A transcript: all that was typed and shown, in one file. `.log FILE`, `-L FILE`.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crate::error::{Error, Result};

/// Standard output and standard error are one for the process, and so is what keeps them.
static FILE: Mutex<Option<(String, File)>> = Mutex::new(None);

/// Begins a transcript, behind what the file holds already; `None` ends it.
///
/// # Errors
/// The file can't be opened.
pub(super) fn keep(file: Option<&str>) -> Result<()> {
    let opened = file.map(|name| {
        let file = File::options().create(true).append(true).open(Path::new(name));
        let file = file.map_err(|error| Error::io(format!("can't write {name}"), &error));
        file.map(|file| (name.to_string(), file))
    });
    *FILE.lock().unwrap_or_else(PoisonError::into_inner) = opened.transpose()?;
    Ok(())
}

/// The file that is written.
pub(super) fn name() -> Option<String> {
    FILE.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|(name, _)| name.clone())
}

/// Adds what was typed or shown. A file that can't be written is given up, and that is said once.
pub(super) fn add(bytes: &[u8]) {
    let mut file = FILE.lock().unwrap_or_else(PoisonError::into_inner);
    let Some((name, open)) = file.as_mut() else { return };
    if let Err(error) = open.write_all(bytes) {
        _ = writeln!(std::io::stderr().lock(), "the transcript ends: can't write {name}: {error}");
        *file = None;
    }
}
