//! The program: arguments → [`levada::shell`], or [`levada::regress`].

use std::io::Write;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};
use levada::display::Format;
use levada::regress::{self, Files, RunOptions, Shard, Suite};
use levada::shell::{Invocation, Script, parse_duration, run};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A SQL-first streaming database shell.
///
/// Without -c and -f it reads statements from standard input: with a prompt in a terminal, as a script otherwise.
#[derive(Parser)]
#[command(name = "levada", version, after_help = AFTER_HELP)]
struct Arguments {
    /// Run these statements, or one shell command, then exit (repeatable, in order with -f)
    #[arg(short, long, value_name = "SQL", allow_hyphen_values = true)]
    command: Vec<String>,
    /// Run this file, then exit; - is standard input (repeatable, in order with -c)
    #[arg(short, long, value_name = "FILE")]
    file: Vec<PathBuf>,
    /// How results are written: table, csv, tsv, json, jsonlines, markdown or vertical
    #[arg(long, value_name = "FORMAT", value_parser = parse_format)]
    format: Option<Format>,
    /// Results and errors only
    #[arg(short, long)]
    quiet: bool,
    /// Prompt as in a terminal, after -c and -f too
    #[arg(short, long)]
    interactive: bool,
    /// Go on after an error; the exit code is still that of a failure
    #[arg(long)]
    keep_going: bool,
    /// Stop every query gracefully and exit with 124 after this time, such as 30s or 5m
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    timeout: Option<Duration>,
    /// Let console sinks print batches without rows too
    #[arg(long)]
    empty_batches: bool,
    /// Not taken: a file is run by -f
    #[arg(hide = true, value_name = "ARGUMENT")]
    rest: Vec<String>,
    #[command(subcommand)]
    subcommand: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Run regression suites: .slt files with SQL and what it must answer
    Test(TestArguments),
}

#[derive(clap::Args)]
struct TestArguments {
    /// Files, folders (all .slt files below), patterns, or FILE:LINE (the records up to that line)
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<String>,
    /// Write what is answered into the files, where it is not what they expect, and show the difference
    #[arg(long, visible_alias = "override", conflicts_with = "repeat")]
    complete: bool,
    /// Write the results as JUnit's XML
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Answer TAP
    #[arg(long)]
    tap: bool,
    /// Files at once; twice as many as there are cores, where nothing is said
    #[arg(short, long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// Only a part of the files, such as 1/4; which file is in which part depends on its path alone
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,
    /// Run the files in another order
    #[arg(long, value_name = "SEED")]
    shuffle: Option<u64>,
    /// Run everything so many times
    #[arg(long, value_name = "N", default_value = "1")]
    repeat: NonZeroUsize,
    /// Only files whose path matches
    #[arg(long, value_name = "REGEX", value_parser = parse_regex)]
    filter: Option<regex::Regex>,
    /// Only subtests and scenarios whose name matches
    #[arg(long, value_name = "REGEX", value_parser = parse_regex)]
    subtest: Option<regex::Regex>,
    /// Leave a file after so many failures
    #[arg(long, value_name = "N", default_value = "100")]
    max_errors: NonZeroUsize,
    /// Of each scenario's matrix run those in which every two values of two axes meet, all, or N, spread evenly
    #[arg(long, value_name = "pairs|all|N", default_value = "pairs")]
    combinations: regress::Combinations,
    /// List the slowest records
    #[arg(long, value_name = "N", num_args = 0..=1, default_value = "0", default_missing_value = "10")]
    timing: usize,
    /// A name that skipif and onlyif know, beside levada (repeatable)
    #[arg(long, value_name = "LABEL")]
    label: Vec<String>,
    /// How long one record may take
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = parse_duration)]
    record_timeout: Duration,
    /// Say only what failed
    #[arg(short, long)]
    quiet: bool,
}

const AFTER_HELP: &str = "Exit codes: 0 done, 1 a statement failed, 2 wrong usage or no such file, 4 a query ended \
    FAILED, 124 --timeout, 130 Ctrl-C, 143 SIGTERM.";

fn main() {
    let matches = Arguments::command().get_matches();
    let arguments = Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    if let Some(argument) = arguments.rest.first() {
        refuse_positional(argument);
    }
    if let Some(Command::Test(arguments)) = arguments.subcommand {
        std::process::exit(i32::from(test(arguments)));
    }
    let invocation = Invocation {
        scripts: scripts(&matches, &arguments),
        format: arguments.format,
        quiet: arguments.quiet,
        interactive: arguments.interactive,
        keep_going: arguments.keep_going,
        timeout: arguments.timeout,
        empty_batches: arguments.empty_batches,
    };
    // Not by returning: the operating system takes memory back faster than destructors do.
    std::process::exit(i32::from(run(invocation)))
}

/// Runs suites, and says on standard output how they went.
fn test(arguments: TestArguments) -> u8 {
    let suite = Suite {
        files: Files { paths: arguments.paths, shard: arguments.shard, shuffle: arguments.shuffle },
        options: RunOptions {
            patience: arguments.record_timeout,
            labels: arguments.label.into_iter().collect(),
            max_errors: arguments.max_errors.get(),
            complete: arguments.complete,
            combinations: arguments.combinations,
            until_line: None,
            interrupt: regress::Interrupt::default(),
            only: arguments.subtest,
        },
        // A file waits for its engine's threads now and then.
        jobs: arguments
            .jobs
            .map_or_else(|| std::thread::available_parallelism().map_or(1, |n| n.get() * 2), NonZeroUsize::get),
        repeat: arguments.repeat.get(),
        filter: arguments.filter,
        junit: arguments.junit,
        tap: arguments.tap,
        timing: arguments.timing,
        quiet: arguments.quiet,
    };
    regress::run(&suite, &|line| {
        // A reader that has gone wants nothing more.
        let _ = writeln!(std::io::stdout(), "{line}");
    })
}

fn parse_regex(text: &str) -> Result<regex::Regex, String> {
    regex::Regex::new(text).map_err(|error| error.to_string())
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

fn parse_format(text: &str) -> Result<Format, String> {
    text.parse().map_err(|error: levada::error::Error| match error.help_text() {
        Some(help) => format!("{error}; {help}"),
        None => error.to_string(),
    })
}

fn refuse_positional(argument: &str) -> ! {
    let how = if argument.contains(char::is_whitespace) { "to run SQL, write -c" } else { "to run a file, write -f" };
    let message = format!("unexpected argument '{argument}': {how} in front of it");
    Arguments::command().error(clap::error::ErrorKind::UnknownArgument, message).exit()
}
