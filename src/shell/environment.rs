//! The environment of what the shell starts: its own, as `\setenv` has changed it.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};

use crate::error::{Error, Result};

/// What was changed; `None` is taken away.
#[derive(Debug, Default)]
pub(super) struct Environment(BTreeMap<String, Option<String>>);

impl Environment {
    pub(super) fn get(&self, name: &str) -> Option<String> {
        match self.0.get(name) {
            Some(changed) => changed.clone(),
            None => std::env::var(name).ok(),
        }
    }

    /// The first of these that says something.
    pub(super) fn first(&self, names: &[&str]) -> Option<String> {
        names.iter().find_map(|name| self.get(name).filter(|value| !value.trim().is_empty()))
    }

    pub(super) fn set(&mut self, name: &str, value: Option<&str>) {
        self.0.insert(name.to_string(), value.map(str::to_string));
    }

    /// A command line as the operating system's shell runs it.
    pub(super) fn command(&self, line: &str) -> Command {
        let mut command = Command::new("sh");
        command.arg("-c").arg(line);
        self.apply(&mut command);
        command
    }

    /// What a command line prints, without the newline at its end.
    ///
    /// # Errors
    /// It can't be run, or fails.
    pub(super) fn output(&self, line: &str) -> Result<String> {
        let run = self.command(line).stdin(Stdio::null()).stderr(Stdio::inherit()).output();
        let output = run.map_err(|error| Error::io(format!("can't run {line}"), &error))?;
        if !output.status.success() {
            return Err(Error::computation(format!("`{line}`: {}", output.status)));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        Ok(text.strip_suffix('\n').unwrap_or(&text).to_string())
    }

    fn apply(&self, command: &mut Command) {
        for (name, value) in &self.0 {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
    }
}
