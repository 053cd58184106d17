//! What a file needs to be there.

use super::answer::Outcome;
use super::report::Fault;
use super::run::FileRun;
use super::values::{Style, rows};
use crate::catalog::{connector_names, connector_names_not_yet};
use crate::error::closest;

/// Formats that every build has, and those of the language that none has yet.
const FORMATS: &[&str] = &["json", "csv", "parquet", "text"];
const FORMATS_NOT_YET: &[&str] = &["avro"];

impl FileRun<'_> {
    /// Looks for a connector, a format or a function. What the language has and this build has not ends the file.
    ///
    /// # Errors
    /// There is no such thing.
    pub(super) fn require(&mut self, what: &str) -> Result<(), Fault> {
        let mut known: Vec<String> =
            connector_names().into_iter().chain(FORMATS.iter().copied()).map(str::to_string).collect();
        if let Outcome::Rows { batches, .. } = self.world.execute("SHOW FUNCTIONS")? {
            known.extend(rows(&batches, Style::Plain)?.into_iter().filter_map(|row| row.into_iter().next()));
        }
        if known.iter().any(|name| name == what) {
            return Ok(());
        }
        let mut not_yet = connector_names_not_yet().chain(FORMATS_NOT_YET.iter().copied());
        if not_yet.any(|name| name == what) {
            self.required = Some(what.to_string());
            return Ok(());
        }
        known.extend(connector_names_not_yet().map(str::to_string));
        let near = closest(what, known.iter().map(String::as_str))
            .map(|near| format!("\nhelp: did you mean {near}?"))
            .unwrap_or_default();
        Err(Fault::text(format!("there is no connector, format or function {what}{near}")))
    }
}
