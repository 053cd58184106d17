//! The spellings of flags that users of other shells know: `-csv`, `-cmd`, `-noheader` → those of this one; and flags
//! that are refused by a sentence, as they mean something else or nothing here.

use std::ffi::{OsStr, OsString};

/// DuckDB's and SQLite's long flags with one dash, and what they are here.
const SPELLINGS: [(&str, &[&str]); 33] = [
    ("-?", &["--help"]),
    ("-ascii", &["--format", "ascii"]),
    ("-bail", &["--bail"]),
    ("-batch", &["--batch"]),
    ("-box", &["--format", "table"]),
    ("-cmd", &["--cmd"]),
    ("-column", &["--format", "column"]),
    ("-csv", &["--format", "csv"]),
    ("-echo", &["--echo-all"]),
    ("-header", &["--header"]),
    ("-help", &["--help"]),
    ("-html", &["--format", "html"]),
    ("-init", &["--rc"]),
    ("-interactive", &["--interactive"]),
    ("-json", &["--format", "json"]),
    ("-jsonlines", &["--format", "jsonlines"]),
    ("-line", &["--format", "vertical"]),
    ("-list", &["--format", "list"]),
    ("-markdown", &["--format", "markdown"]),
    ("-maxrows", &["--maxrows"]),
    ("-newline", &["--newline"]),
    ("-no-init", &["--no-rc"]),
    ("-no-stdin", &["--no-stdin"]),
    ("-noheader", &["--no-header"]),
    ("-nullvalue", &["--nullvalue"]),
    ("-quote", &["--format", "quote"]),
    ("-separator", &["--separator"]),
    ("-table", &["--format", "table"]),
    ("-tabs", &["--format", "tsv"]),
    ("-tsv", &["--format", "tsv"]),
    ("-version", &["--version"]),
    ("-vertical", &["--format", "vertical"]),
    ("--ignore-errors", &["--keep-going"]),
];

/// Flags of other shells that are refused, and why.
const REFUSED: [(&[&str], &str); 10] = [
    (&["-1", "--single-transaction"], "there are no transactions: each statement stands by itself"),
    (&["-s", "--single-step"], "psql steps and DuckDB runs a command by it: write -c to run a statement"),
    (&["-S", "--single-line"], "a statement ends with ;"),
    (&["-m", "--memory-limit", "--mem-pool-type"], "not supported yet: a limit of memory"),
    (&["-d", "--disk-limit", "--dbname"], "not supported yet: a limit of disk space; and there is no database to name"),
    (&["--batch-size"], "not supported yet: the rows of a record batch"),
    (&["-readonly", "--readonly"], "not supported yet: a session that writes nothing"),
    (&["-safe", "--safe"], "not supported yet: a session that reads and writes no file"),
    (&["-U", "--username", "-W", "--password", "-w", "--no-password"], "there is no server to log in to"),
    (&["--host", "--port"], "there is no server to connect to"),
];

/// Flags behind which a value stands.
const WITH_VALUE: [&str; 33] = [
    "-c",
    "--command",
    "-f",
    "--file",
    "--cmd",
    "-cmd",
    "-r",
    "--rc",
    "-init",
    "-v",
    "--set",
    "--variable",
    "-P",
    "--pset",
    "-o",
    "--out",
    "-L",
    "--log-file",
    "-F",
    "--separator",
    "-separator",
    "-R",
    "--newline",
    "-newline",
    "--nullvalue",
    "-nullvalue",
    "--maxrows",
    "-maxrows",
    "--format",
    "--timeout",
    "-p",
    "--data-path",
    "--generate",
];

/// A flag that is refused, and why.
#[derive(Debug, PartialEq, Eq)]
pub struct Refused {
    pub flag: String,
    pub why: &'static str,
}

/// The arguments with every flag spelled as this shell spells it; the first is the program. Values and what stands
/// behind a subcommand or `--` stay.
///
/// # Errors
/// A flag that is refused.
pub fn spelled_out(arguments: impl IntoIterator<Item = OsString>) -> Result<Vec<OsString>, Refused> {
    let mut arguments = arguments.into_iter();
    let mut out: Vec<OsString> = arguments.next().into_iter().collect();
    while let Some(argument) = arguments.next() {
        let text = argument.to_string_lossy().into_owned();
        if text == "--" || !text.starts_with('-') {
            out.push(argument);
            out.extend(arguments);
            return Ok(out);
        }
        let flag = text.split('=').next().unwrap_or_default();
        if let Some((_, why)) = REFUSED.iter().find(|(names, _)| names.contains(&flag)) {
            return Err(Refused { flag: flag.to_string(), why });
        }
        let takes = WITH_VALUE.contains(&text.as_str());
        match SPELLINGS.iter().find(|(name, _)| *name == text) {
            Some((_, spelled)) => out.extend(spelled.iter().map(OsStr::new).map(OsStr::to_os_string)),
            None => out.push(argument),
        }
        if takes {
            out.extend(arguments.next());
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spelled(line: &str) -> String {
        let words = line.split(' ').map(OsString::from);
        match spelled_out(words) {
            Ok(words) => words.join(OsStr::new(" ")).into_string().unwrap(),
            Err(refused) => format!("{}: {}", refused.flag, refused.why),
        }
    }

    #[test]
    fn flags_of_other_shells_are_taken() {
        for (written, here) in [
            ("levada -csv -noheader", "levada --format csv --no-header"),
            ("levada -cmd x -box -c -csv", "levada --cmd x --format table -c -csv"),
            ("levada -q -f -json -- -json", "levada -q -f -json -- -json"),
            ("levada test -csv", "levada test -csv"),
            ("levada -nullvalue -list -list", "levada --nullvalue -list --format list"),
            ("levada --nullvalue=-list", "levada --nullvalue=-list"),
        ] {
            assert_eq!(spelled(written), here);
        }
    }

    #[test]
    fn what_would_do_nothing_is_refused() {
        assert!(spelled("levada -1").starts_with("-1: there are no transactions"));
        assert!(spelled("levada --memory-limit=1g").starts_with("--memory-limit: not supported yet"));
        assert_eq!(spelled("levada -c -1"), "levada -c -1");
    }

    #[test]
    fn every_flag_with_a_value_is_known_as_such() {
        for (name, spelled) in SPELLINGS {
            let takes = spelled.len() == 1 && WITH_VALUE.contains(&spelled[0]);
            assert_eq!(WITH_VALUE.contains(&name), takes, "{name}");
        }
    }
}
