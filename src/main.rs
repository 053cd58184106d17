//! The program: arguments → [`levada::shell`].

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser};
use levada::display::Format;
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
}

const AFTER_HELP: &str = "Exit codes: 0 done, 1 a statement failed, 2 wrong usage or no such file, 4 a query ended \
    FAILED, 124 --timeout, 130 Ctrl-C, 143 SIGTERM.";

fn main() {
    let matches = Arguments::command().get_matches();
    let arguments = Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    if let Some(argument) = arguments.rest.first() {
        refuse_positional(argument);
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
