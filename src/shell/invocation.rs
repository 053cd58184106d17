//! What the shell was started with, once the arguments are read.

use std::path::PathBuf;
use std::time::Duration;

/// What to run, and how.
#[derive(Debug, Clone, Default)]
pub struct Invocation {
    /// Run before everything else.
    pub before: Vec<String>,
    /// What `-c` and `-f` gave, in their order.
    pub scripts: Vec<Script>,
    /// Print options and their values, as `\pset` takes them.
    pub print: Vec<(String, Option<String>)>,
    /// Variables of the shell.
    pub variables: Vec<(String, String)>,
    /// The file that is run at the start.
    pub rc: Rc,
    /// Results go to this file, or to the command behind `|`.
    pub output: Option<String>,
    /// The transcript.
    pub log: Option<String>,
    /// Colours; by the terminal when nothing was said.
    pub colour: Option<ColourWhen>,
    /// Results and errors only.
    pub quiet: bool,
    /// Prompt and answer as in a terminal, whatever stdin is.
    pub interactive: bool,
    /// Never prompt, and write to a terminal as to a file.
    pub batch: bool,
    /// Standard input is left alone.
    pub no_stdin: bool,
    /// Go on after an error.
    pub keep_going: bool,
    /// Ends the run.
    pub timeout: Option<Duration>,
    /// Console sinks print a batch without rows too.
    pub empty_batches: bool,
}

/// When there is colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColourWhen {
    /// On terminals.
    Auto,
    Always,
    Never,
}

/// The file that is run at the start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Rc {
    /// The user's own, where there is a prompt.
    #[default]
    Own,
    None,
    File(PathBuf),
}

/// `-v NAME=VALUE` and `-P OPTION[=VALUE]`: the name, and the value where one is given.
pub fn parse_assignment(text: &str) -> (String, Option<String>) {
    match text.split_once('=') {
        Some((name, value)) => (name.trim().to_string(), Some(value.to_string())),
        None => (text.trim().to_string(), None),
    }
}

/// A piece of SQL from the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Script {
    /// `-c SQL`
    Text(String),
    /// `-f FILE`; `-` is standard input.
    File(PathBuf),
}

/// `500ms`, `10s`, `10` (seconds), `1.5m`, `2h`, `1d`, with or without a space: the spellings of `--timeout`.
///
/// # Errors
/// A text that is no length of time.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let seconds = match text[digits..].trim() {
        "ms" | "millisecond" | "milliseconds" => 0.001,
        "" | "s" | "sec" | "second" | "seconds" => 1.0,
        "m" | "min" | "minute" | "minutes" => 60.0,
        "h" | "hour" | "hours" => 3_600.0,
        "d" | "day" | "days" => 86_400.0,
        unit => return Err(format!("{unit:?} is no unit of time: write ms, s, m, h or d")),
    };
    let number: f64 = text[..digits].parse().map_err(|_| format!("{text:?} is no length of time, such as 10s"))?;
    match Duration::try_from_secs_f64(number * seconds) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        Ok(_) => Err("a timeout is longer than nothing".to_string()),
        Err(error) => Err(format!("{text:?}: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read() {
        for (text, millis) in
            [("500ms", 500), ("10", 10_000), ("10s", 10_000), ("1.5m", 90_000), ("2 hours", 7_200_000)]
        {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        for text in ["", "s", "-1s", "10 parsecs", "0", "1e3", "1.2.3s", "99999999999999999999999d"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }
}
