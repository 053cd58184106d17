//! The program: arguments → [`levada::shell`], or [`levada::regress`].

mod arguments;
mod generate;

use std::io::Write;
use std::num::NonZeroUsize;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches};
use levada::regress::{self, Files, RunOptions, Suite};
use levada::shell::{Refused, run, spelled_out};

use arguments::{Arguments, Command, TestArguments};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let spelled = spelled_out(std::env::args_os())
        .unwrap_or_else(|Refused { flag, why }| refuse(ErrorKind::InvalidValue, format!("{flag} is not taken: {why}")));
    let matches = Arguments::command().get_matches_from(spelled);
    let arguments = Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    if let Some(argument) = arguments.rest.first() {
        let how =
            if argument.contains(char::is_whitespace) { "to run SQL, write -c" } else { "to run a file, write -f" };
        refuse(ErrorKind::UnknownArgument, format!("unexpected argument '{argument}': {how} in front of it"));
    }
    if let Some(what) = arguments.generate {
        std::process::exit(i32::from(generate::write(what, Arguments::command())));
    }
    if let Some(Command::Test(arguments)) = arguments.subcommand {
        std::process::exit(i32::from(test(arguments)));
    }
    if let Some(folder) = &arguments.data_path
        && let Err(error) = std::env::set_current_dir(folder)
    {
        refuse(ErrorKind::InvalidValue, format!("can't change to {}: {error}", folder.display()));
    }
    // Not by returning: the operating system takes memory back faster than destructors do.
    std::process::exit(i32::from(run(arguments.invocation(&matches))))
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
            pictures: arguments.pictures,
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

/// Wrong usage: says so, and exits.
fn refuse(kind: ErrorKind, message: String) -> ! {
    Arguments::command().error(kind, message).exit()
}
