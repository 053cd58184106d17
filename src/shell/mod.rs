//! The shell: reads a line, prints an answer. In a terminal it edits lines; otherwise it runs scripts.
//!
//! ```text
//! -c, -f, stdin ─input→ lines ─buffer→ statements and commands ─runner→ Session::execute ─answer→ stdout
//! a terminal    ─repl─→ lines ┘
//! ```
//!
//! Results go to standard output, everything else to standard error. Without a terminal the first error ends the
//! run; what ends it otherwise (signals, a deadline, a reader that has gone) is in `ending`. The shell knows nothing
//! of SQL but where a statement ends.

mod answer;
mod buffer;
mod command;
mod ending;
mod failures;
mod history;
mod input;
mod invocation;
mod output;
mod record;
mod repl;
mod runner;
mod terminal;
mod turns;

pub use invocation::{Invocation, Script, parse_duration};

use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;

use crate::display::{Format, render_error};
use crate::error::Result;
use crate::session::{Session, SessionOptions};
use crate::source::stdin;
use answer::PrintSettings;
use command::Expanded;
use ending::{Ending, code};
use failures::Failures;
use input::Input;
use output::{Output, say};
use runner::{Flow, Shell};
use turns::Turns;

/// Runs what the command line asked for and answers the exit code.
pub fn run(invocation: Invocation) -> u8 {
    let typed = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let interactive = invocation.interactive || (invocation.scripts.is_empty() && typed);
    let mut shell = match open(&invocation, interactive) {
        Ok(shell) => shell,
        Err(error) => {
            say(&render_error(&error, "", None, None));
            return code::ERROR;
        }
    };
    let mut flow = run_scripts(&mut shell, &invocation.scripts);
    if flow == Flow::Next && interactive {
        flow = match stdin::claim(stdin::SCRIPT).and_then(|()| repl::run(&mut shell)) {
            Ok(code) => Flow::Leave(code),
            Err(error) => {
                shell.report(&error, "", None, None);
                Flow::Stop
            }
        };
        // What failed was seen, and gone on from.
        shell.failed = flow == Flow::Stop;
    } else if flow == Flow::Next && invocation.scripts.is_empty() {
        flow = run_input(&mut shell, Input::stdin());
    }
    shell.finish(if let Flow::Leave(code) = flow { code } else { None })
}

fn open(invocation: &Invocation, interactive: bool) -> Result<Shell> {
    let turns = interactive.then(Turns::new);
    let output = Output::stdout(turns.clone());
    let (format, quiet) = (invocation.format.unwrap_or(Format::Table), invocation.quiet);
    let failures = Failures::default();
    let (told, tell) = (failures.clone(), notices(turns.clone(), false));
    let options = SessionOptions {
        output: output.shared.clone(),
        notices: notices(turns.clone(), quiet),
        failures: Arc::new(move |line| {
            told.told(line);
            tell(line);
        }),
        console_format: format.name().to_string(),
        empty_batches: invocation.empty_batches,
        test: None,
    };
    let session = Arc::new(Session::new(options)?);
    let ending = Ending::watch(session.clone(), output.clone(), turns.clone(), quiet, invocation.timeout)?;
    let settings =
        PrintSettings { format, expanded: Expanded::Off, timing: interactive, footers: interactive && !quiet, quiet };
    let keep_going = invocation.keep_going || interactive;
    let (failed, depth) = (false, 0);
    Ok(Shell { session, output, ending, turns, settings, failures, keep_going, failed, depth, recording: None })
}

/// Where queries tell what happened to them; what `quiet` silences is never that one failed.
fn notices(turns: Option<Arc<Turns>>, quiet: bool) -> Arc<dyn Fn(&str) + Send + Sync> {
    Arc::new(move |line| match &turns {
        _ if quiet => {}
        Some(turns) => turns.notice(line),
        None => say(line),
    })
}

fn run_scripts(shell: &mut Shell, scripts: &[Script]) -> Flow {
    let mut arguments = 0;
    for script in scripts {
        let input = match script {
            Script::Text(text) => {
                arguments += 1;
                Ok(Input::argument(arguments, text))
            }
            Script::File(path) if path == Path::new("-") => Input::stdin(),
            Script::File(path) => Input::file(path),
        };
        match run_input(shell, input) {
            Flow::Next => {}
            flow => return flow,
        }
    }
    Flow::Next
}

fn run_input(shell: &mut Shell, input: Result<Input>) -> Flow {
    match input {
        Ok(input) => shell.run_input(input),
        Err(error) => {
            shell.report(&error, "", None, None);
            Flow::Leave(Some(code::USAGE))
        }
    }
}
