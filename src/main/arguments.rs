//! What the command line may say; help, the manual page and completions come from here.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgMatches, Parser, Subcommand, ValueEnum};
use levada::display::Format;
use levada::regress::{self, Shard};
use levada::shell::{ColourWhen, Invocation, Rc, Script, parse_assignment, parse_duration};

use crate::generate::Generated;

/// A SQL-first streaming database shell.
///
/// Without -c and -f it reads statements from standard input: with a prompt in a terminal, as a script otherwise.
#[derive(Parser)]
#[command(name = "levada", version, after_help = AFTER_HELP)]
pub struct Arguments {
    /// Run these statements, or one shell command, then exit (repeatable, in order with -f)
    #[arg(short, long, value_name = "SQL", allow_hyphen_values = true)]
    command: Vec<String>,
    /// Run this file, then exit; - is standard input (repeatable, in order with -c)
    #[arg(short, long, value_name = "FILE")]
    file: Vec<PathBuf>,
    /// Run this before everything else, and go on (repeatable)
    #[arg(long, value_name = "SQL", allow_hyphen_values = true)]
    cmd: Vec<String>,
    /// Prompt as in a terminal, after -c and -f too
    #[arg(short, long)]
    interactive: bool,
    /// Never prompt, and write to a terminal as to a file
    #[arg(long, conflicts_with = "interactive")]
    batch: bool,
    /// Leave standard input alone
    #[arg(long)]
    no_stdin: bool,
    /// Don't run the file of the start
    #[arg(short = 'X', long)]
    no_rc: bool,
    /// Run this file at the start, in place of one's own
    #[arg(short, long, value_name = "FILE", conflicts_with = "no_rc")]
    rc: Option<PathBuf>,
    /// Set a variable of the shell (repeatable)
    #[arg(short = 'v', long = "set", visible_alias = "variable", value_name = "NAME=VALUE")]
    set: Vec<String>,
    #[command(flatten)]
    print: PrintArguments,
    /// Results go to this file, or to the command behind |
    #[arg(short, long, value_name = "FILE")]
    out: Option<String>,
    /// Keep a transcript of all that is typed and shown
    #[arg(short = 'L', long, value_name = "FILE")]
    log_file: Option<String>,
    /// Repeat every line of a script
    #[arg(short = 'a', long)]
    echo_all: bool,
    /// Repeat every statement that is run
    #[arg(short = 'e', long, conflicts_with = "echo_all")]
    echo_queries: bool,
    /// Repeat statements that fail, on standard error
    #[arg(short = 'b', long, conflicts_with_all = ["echo_all", "echo_queries"])]
    echo_errors: bool,
    /// Show the statements that commands stand for
    #[arg(short = 'E', long)]
    echo_hidden: bool,
    /// Results and errors only
    #[arg(short, long)]
    quiet: bool,
    /// Go on after an error; the exit code is still that of a failure
    #[arg(long)]
    keep_going: bool,
    /// Stop at the first error, with exit code 3: -v ON_ERROR_STOP=on
    #[arg(long, conflicts_with = "keep_going")]
    bail: bool,
    /// Stop every query gracefully and exit with 124 after this time, such as 30s or 5m
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    timeout: Option<Duration>,
    /// Let console sinks print batches without rows too
    #[arg(long)]
    empty_batches: bool,
    /// Change to this folder first
    #[arg(short = 'p', long, value_name = "FOLDER")]
    pub data_path: Option<PathBuf>,
    /// Write the manual page, or the completions of a shell, and exit
    #[arg(long, value_name = "WHAT", value_enum)]
    pub generate: Option<Generated>,
    /// Not taken: a file is run by -f
    #[arg(hide = true, value_name = "ARGUMENT")]
    pub rest: Vec<String>,
    #[command(subcommand)]
    pub subcommand: Option<Command>,
}

/// How results are written.
#[derive(clap::Args)]
#[command(next_help_heading = "How results are written")]
struct PrintArguments {
    /// table, ascii, column, csv, tsv, json, jsonlines, markdown, html, vertical, list or quote; a table on a terminal, ascii elsewhere
    #[arg(long, value_name = "FORMAT", value_parser = parse_format)]
    format: Option<Format>,
    /// csv
    #[arg(long, conflicts_with = "format")]
    csv: bool,
    /// A list: fields between a separator
    #[arg(short = 'A', long, conflicts_with_all = ["format", "csv"])]
    no_align: bool,
    /// html
    #[arg(short = 'H', long, conflicts_with_all = ["format", "csv", "no_align"])]
    html: bool,
    /// One column a line
    #[arg(short = 'x', long)]
    expanded: bool,
    /// Rows alone: neither header nor title nor footer
    #[arg(short = 't', long)]
    tuples_only: bool,
    /// Names of columns
    #[arg(long)]
    header: bool,
    /// No names of columns
    #[arg(long, conflicts_with = "header")]
    no_header: bool,
    /// What NULL is shown as
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    nullvalue: Option<String>,
    /// Between the fields of csv and list
    #[arg(short = 'F', long, visible_alias = "field-separator", value_name = "TEXT", allow_hyphen_values = true)]
    separator: Option<String>,
    /// Behind the records of csv and list
    #[arg(short = 'R', long, visible_alias = "record-separator", value_name = "TEXT", allow_hyphen_values = true)]
    newline: Option<String>,
    /// A zero byte between fields
    #[arg(short = 'z', long, conflicts_with = "separator")]
    field_separator_zero: bool,
    /// A zero byte behind records
    #[arg(short = '0', long, conflicts_with = "newline")]
    record_separator_zero: bool,
    /// How many rows of a table are shown, or inf; 40 on a terminal
    #[arg(long, value_name = "N")]
    maxrows: Option<String>,
    /// Set a print option, as \pset does (repeatable)
    #[arg(short = 'P', long, value_name = "OPTION[=VALUE]")]
    pset: Vec<String>,
    /// Colours; without a word, always
    #[arg(long, value_name = "WHEN", num_args = 0..=1, require_equals = true, default_missing_value = "always")]
    color: Option<Colours>,
}

/// When there is colour.
#[derive(Clone, Copy, ValueEnum)]
enum Colours {
    Auto,
    Always,
    Never,
}

#[derive(Subcommand)]
pub enum Command {
    /// Run regression suites: .slt files with SQL and what it must answer
    Test(TestArguments),
}

#[derive(clap::Args)]
pub struct TestArguments {
    /// Files, folders (all .slt files below), patterns, or FILE:LINE (the records up to that line)
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<String>,
    /// Write what is answered into the files, where it is not what they expect, and show the difference
    #[arg(long, visible_alias = "override", conflicts_with = "repeat")]
    pub complete: bool,
    /// Write the results as JUnit's XML
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Answer TAP
    #[arg(long)]
    pub tap: bool,
    /// Files at once; twice as many as there are cores, where nothing is said
    #[arg(short, long, value_name = "N")]
    pub jobs: Option<NonZeroUsize>,
    /// Only a part of the files, such as 1/4; which file is in which part depends on its path alone
    #[arg(long, value_name = "I/N")]
    pub shard: Option<Shard>,
    /// Run the files in another order
    #[arg(long, value_name = "SEED")]
    pub shuffle: Option<u64>,
    /// Run everything so many times
    #[arg(long, value_name = "N", default_value = "1")]
    pub repeat: NonZeroUsize,
    /// Only files whose path matches
    #[arg(long, value_name = "REGEX", value_parser = parse_regex)]
    pub filter: Option<regex::Regex>,
    /// Only subtests and scenarios whose name matches
    #[arg(long, value_name = "REGEX", value_parser = parse_regex)]
    pub subtest: Option<regex::Regex>,
    /// Leave a file after so many failures
    #[arg(long, value_name = "N", default_value = "100")]
    pub max_errors: NonZeroUsize,
    /// Of each scenario's matrix run those in which every two values of two axes meet, all, or N, spread evenly
    #[arg(long, value_name = "pairs|all|N", default_value = "pairs")]
    pub combinations: regress::Combinations,
    /// Draw the screens that tty records mark with ^picture NAME, as NAME.svg in this folder
    #[arg(long, value_name = "FOLDER")]
    pub pictures: Option<PathBuf>,
    /// List the slowest records
    #[arg(long, value_name = "N", num_args = 0..=1, default_value = "0", default_missing_value = "10")]
    pub timing: usize,
    /// A name that skipif and onlyif know, beside levada (repeatable)
    #[arg(long, value_name = "LABEL")]
    pub label: Vec<String>,
    /// How long one record may take
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = parse_duration)]
    pub record_timeout: Duration,
    /// Say only what failed, nothing where nothing did
    #[arg(short, long)]
    pub quiet: bool,
}

const AFTER_HELP: &str = "Flags of DuckDB and SQLite with one dash (-csv, -cmd, -noheader) are taken as well.\n\n\
    Exit codes: 0 done, 1 a statement failed, 2 wrong usage or no such file, 3 a statement failed while ON_ERROR_STOP \
    was on, 4 a query ended FAILED, 124 --timeout, 129 SIGHUP, 130 Ctrl-C, 141 nobody reads its output, 143 SIGTERM.";

impl Arguments {
    /// What the shell is to do.
    pub fn invocation(self, matches: &ArgMatches) -> Invocation {
        let scripts = scripts(matches, &self);
        let flags = [
            (self.echo_all, "ECHO", "all"),
            (self.echo_queries, "ECHO", "queries"),
            (self.echo_errors, "ECHO", "errors"),
            (self.echo_hidden, "ECHO_HIDDEN", "on"),
            (self.bail, "ON_ERROR_STOP", "on"),
        ];
        let told = flags.into_iter().filter(|(given, ..)| *given);
        let mut variables: Vec<_> = told.map(|(_, name, value)| (name.to_string(), value.to_string())).collect();
        variables.extend(self.set.iter().map(|text| {
            let (name, value) = parse_assignment(text);
            (name, value.unwrap_or_default())
        }));
        Invocation {
            before: self.cmd,
            scripts,
            print: self.print.options(),
            variables,
            rc: match self.rc {
                Some(file) => Rc::File(file),
                None if self.no_rc => Rc::None,
                None => Rc::Own,
            },
            output: self.out,
            log: self.log_file,
            colour: self.print.color.map(|colours| match colours {
                Colours::Auto => ColourWhen::Auto,
                Colours::Always => ColourWhen::Always,
                Colours::Never => ColourWhen::Never,
            }),
            quiet: self.quiet,
            interactive: self.interactive,
            batch: self.batch,
            no_stdin: self.no_stdin,
            keep_going: self.keep_going,
            timeout: self.timeout,
            empty_batches: self.empty_batches,
        }
    }
}

impl PrintArguments {
    /// As print options; those that were named by -P come last.
    fn options(&self) -> Vec<(String, Option<String>)> {
        let on = |given: bool| given.then(|| "on".to_string());
        let format = match self {
            PrintArguments { format: Some(format), .. } => Some(format.name()),
            PrintArguments { csv: true, .. } => Some("csv"),
            PrintArguments { no_align: true, .. } => Some("list"),
            PrintArguments { html: true, .. } => Some("html"),
            _ => None,
        };
        let header = on(self.header).or_else(|| self.no_header.then(|| "off".to_string()));
        let given = [
            ("format", format.map(str::to_string)),
            ("expanded", on(self.expanded)),
            ("tuples_only", on(self.tuples_only)),
            ("header", header),
            ("null", self.nullvalue.clone()),
            ("fieldsep", self.separator.clone()),
            ("recordsep", self.newline.clone()),
            ("maxrows", self.maxrows.clone()),
        ];
        let mut options: Vec<_> = given
            .into_iter()
            .filter(|(_, value)| value.is_some())
            .map(|(name, value)| (name.to_string(), value))
            .collect();
        let zero = [(self.field_separator_zero, "fieldsep_zero"), (self.record_separator_zero, "recordsep_zero")];
        options.extend(zero.into_iter().filter(|(given, _)| *given).map(|(_, name)| (name.to_string(), None)));
        options.extend(self.pset.iter().map(|text| parse_assignment(text)));
        options
    }
}

/// `-c` and `-f` in the order in which they were written.
fn scripts(matches: &ArgMatches, arguments: &Arguments) -> Vec<Script> {
    let places = |name| matches.indices_of(name).into_iter().flatten();
    let texts = places("command").zip(arguments.command.iter().cloned().map(Script::Text));
    let files = places("file").zip(arguments.file.iter().cloned().map(Script::File));
    let mut scripts: Vec<(usize, Script)> = texts.chain(files).collect();
    scripts.sort_by_key(|(place, _)| *place);
    scripts.into_iter().map(|(_, script)| script).collect()
}

fn parse_regex(text: &str) -> Result<regex::Regex, String> {
    regex::Regex::new(text).map_err(|error| error.to_string())
}

fn parse_format(text: &str) -> Result<Format, String> {
    text.parse().map_err(|error: levada::error::Error| match error.help_text() {
        Some(help) => format!("{error}; {help}"),
        None => error.to_string(),
    })
}
