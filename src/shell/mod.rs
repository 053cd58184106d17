//! The shell: reads a line, prints an answer. In a terminal it edits lines; otherwise it runs scripts.
//!
//! ```text
//! -c, -f, stdin ─input→ lines ─buffer→ statements ─execute→ Session::execute ─answer→ stdout
//! a terminal    ─repl─→ lines ┘      └ commands ─commands→ settings, variables, other statements
//! ```
//!
//! `runner` goes from one to the next. Results go to standard output, everything else to standard error. Without a
//! terminal the first error ends the run; what ends it otherwise (signals, a deadline, a reader that has gone) is in
//! `ending`. The shell knows nothing of SQL but where a statement ends.

mod answer;
mod buffer;
mod chart;
mod commands;
mod complete;
mod conditions;
mod crosstab;
mod editor;
mod ending;
mod environment;
mod execute;
mod failures;
mod history;
mod input;
mod invocation;
mod last;
mod live;
mod output;
mod pager;
mod progress_bar;
mod rc;
mod record;
mod redirect;
mod repeat;
mod repl;
mod runner;
mod settings;
mod spellings;
mod terminal;
mod transcript;
mod turns;
mod variables;
mod verbose;

pub use invocation::{ColourWhen, Invocation, Rc, Script, parse_assignment, parse_duration};
pub use spellings::{Refused, spelled_out};

use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;

use crate::display::render_error;
use crate::error::Result;
use crate::session::{Session, SessionOptions};
use crate::source::stdin;
use conditions::Conditions;
use ending::{Ending, code};
use environment::Environment;
use failures::Failures;
use input::Input;
use last::Last;
use output::{Output, say};
use redirect::Redirect;
use runner::{Flow, Shell};
use settings::{Colour, PrintSettings};
use turns::Turns;
use variables::Variables;

/// Runs what the command line asked for and answers the exit code.
pub fn run(invocation: Invocation) -> u8 {
    let typed = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let asks = invocation.scripts.is_empty() && typed && !invocation.batch && !invocation.no_stdin;
    let interactive = invocation.interactive || asks;
    let mut shell = match asked(&invocation, interactive).and_then(|settings| open(&invocation, settings)) {
        Ok(shell) => shell,
        Err(error) => {
            say(&render_error(&error, "", None, None));
            return code::USAGE;
        }
    };
    let mut flow = rc::run(&mut shell, &invocation.rc, interactive);
    if flow == Flow::Next {
        flow = run_scripts(&mut shell, &invocation);
    }
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
    } else if flow == Flow::Next && invocation.scripts.is_empty() && !invocation.no_stdin {
        flow = run_input(&mut shell, Input::stdin());
    }
    shell.finish(if let Flow::Leave(code) = flow { code } else { None })
}

/// How answers are written, as it was asked for.
fn asked(invocation: &Invocation, interactive: bool) -> Result<PrintSettings> {
    let dumb = terminal::is_dumb();
    let mut settings = PrintSettings {
        timing: interactive,
        attended: interactive,
        quiet: invocation.quiet,
        colour: colour(invocation.colour, dumb, |name| std::env::var(name).ok()),
        plain: invocation.batch || dumb,
        ..PrintSettings::default()
    };
    for (name, value) in &invocation.print {
        settings.set(name, value.as_deref())?;
    }
    let errors = std::io::stderr().is_terminal();
    output::colour_errors(settings.paints(errors));
    Ok(settings)
}

/// The flag, then `NO_COLOR`, `CLICOLOR_FORCE`, and what the terminal can do.
fn colour(asked: Option<ColourWhen>, dumb: bool, variable: impl Fn(&str) -> Option<String>) -> Colour {
    match asked {
        Some(ColourWhen::Always) => Colour::Always,
        Some(ColourWhen::Never) => Colour::Never,
        _ if variable("NO_COLOR").is_some_and(|value| !value.is_empty()) => Colour::Never,
        _ if variable("CLICOLOR_FORCE").is_some_and(|value| value != "0" && !value.is_empty()) => Colour::Always,
        _ if dumb => Colour::Never,
        _ => Colour::Auto,
    }
}

fn open(invocation: &Invocation, mut settings: PrintSettings) -> Result<Shell> {
    transcript::keep(invocation.log.as_deref())?;
    let mut variables = Variables::default();
    for (name, value) in &invocation.variables {
        variables.set(name, value)?;
    }
    settings.quiet |= variables.is_on("QUIET") == Some(true);
    let environment = Environment::default();
    let redirect = invocation.output.as_deref();
    let redirect = redirect.map(|words| Redirect::open(words, |line| environment.command(line))).transpose()?;
    let (quiet, interactive) = (settings.quiet, settings.attended);
    let turns = interactive.then(Turns::new);
    let output = Output::stdout(turns.clone(), settings.paints(std::io::stdout().is_terminal()));
    let failures = Failures::default();
    let (told, tell) = (failures.clone(), notices(turns.clone(), false));
    let options = SessionOptions {
        output: output.shared.clone(),
        notices: notices(turns.clone(), quiet),
        failures: Arc::new(move |line| {
            told.told(line);
            tell(line);
        }),
        console_format: settings.console_format().name().to_string(),
        empty_batches: invocation.empty_batches,
        test: None,
    };
    let session = Arc::new(Session::new(options)?);
    let desk = turns.as_ref().and_then(|_| live::desk());
    if let Some(desk) = &desk {
        session.put_around_consoles(desk.around_consoles());
    }
    let ending = Ending::watch(session.clone(), output.clone(), turns.clone(), quiet, invocation.timeout)?;
    Ok(Shell {
        session,
        output,
        ending,
        turns,
        desk,
        settings,
        failures,
        keep_going: invocation.keep_going || interactive,
        failed: false,
        stopped: false,
        depth: 0,
        recording: None,
        variables,
        conditions: Conditions::default(),
        base: 0,
        environment,
        redirect,
        once: None,
        bound: None,
        last: Last::default(),
        source: None,
    })
}

/// Where queries tell what happened to them; what `quiet` silences is never that one failed.
fn notices(turns: Option<Arc<Turns>>, quiet: bool) -> Arc<dyn Fn(&str) + Send + Sync> {
    Arc::new(move |line| match &turns {
        _ if quiet => {}
        Some(turns) => turns.notice(line),
        None => say(line),
    })
}

fn run_scripts(shell: &mut Shell, invocation: &Invocation) -> Flow {
    for (at, text) in invocation.before.iter().enumerate() {
        match shell.run_input(Input::argument("--cmd", at + 1, text)) {
            Flow::Next => {}
            flow => return flow,
        }
    }
    let mut arguments = 0;
    for script in &invocation.scripts {
        let input = match script {
            Script::Text(text) => {
                arguments += 1;
                Ok(Input::argument("-c", arguments, text))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flag_goes_before_the_environment_and_the_environment_before_the_terminal() {
        use ColourWhen as When;
        for (asked, dumb, variables, colour_) in [
            (None, false, &[][..], Colour::Auto),
            (None, true, &[], Colour::Never),
            (None, false, &[("NO_COLOR", "1")], Colour::Never),
            (None, false, &[("NO_COLOR", "")], Colour::Auto),
            (None, true, &[("CLICOLOR_FORCE", "1")], Colour::Always),
            (None, false, &[("CLICOLOR_FORCE", "0")], Colour::Auto),
            (None, false, &[("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")], Colour::Never),
            (Some(When::Always), true, &[("NO_COLOR", "1")], Colour::Always),
            (Some(When::Never), false, &[("CLICOLOR_FORCE", "1")], Colour::Never),
            (Some(When::Auto), false, &[("NO_COLOR", "1")], Colour::Never),
        ] {
            let variable =
                |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_string());
            assert_eq!(colour(asked, dumb, variable), colour_, "{asked:?} {dumb} {variables:?}");
        }
    }
}
