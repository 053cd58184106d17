//! The pager of a terminal: what is longer than the screen goes through it, when there is one.
//!
//! `LEVADA_PAGER`, then `PAGER`, name it; without them nothing is paged. Errors are never.

use std::io::{ErrorKind, Write};
use std::process::Stdio;

use super::environment::Environment;
use crate::error::{Error, Result};

/// When something is paged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Paging {
    Off,
    /// When it is longer or wider than the screen.
    On,
    Always,
}

impl Paging {
    pub(super) fn name(self) -> &'static str {
        match self {
            Paging::Off => "off",
            Paging::On => "on",
            Paging::Always => "always",
        }
    }
}

/// The command that pages, where one is named.
pub(super) fn command(environment: &Environment) -> Option<String> {
    environment.first(&["LEVADA_PAGER", "PAGER"])
}

/// Shows a text, with its colours, and waits until it has been read.
///
/// # Errors
/// The pager can't be started.
pub(super) fn page(text: &str, pager: &str, environment: &Environment) -> Result<()> {
    let mut command = environment.command(pager);
    if environment.get("LESS").is_none() {
        // Colours as they are, long lines not wrapped, no pager where the text fits, and the screen is left alone.
        command.env("LESS", "-R -S -F -X");
    }
    let failed = |error: std::io::Error| Error::io(format!("the pager {pager}"), &error);
    let mut child = command.stdin(Stdio::piped()).spawn().map_err(failed)?;
    if let Some(mut stdin) = child.stdin.take()
        && let Err(error) = stdin.write_all(text.as_bytes())
        // It was left before its end.
        && error.kind() != ErrorKind::BrokenPipe
    {
        return Err(failed(error));
    }
    child.wait().map(|_| ()).map_err(failed)
}
