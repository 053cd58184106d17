//! The file that is run at the start: where there is a prompt, the user's own; or one that was named.
//!
//! `LEVADARC`, or `levada/rc.sql` in the XDG configuration directory and `~/.levadarc`. An error in it is told, and costs
//! nothing else.

use std::path::PathBuf;

use super::ending::code;
use super::input::Input;
use super::invocation::Rc;
use super::runner::{Flow, Shell};

/// Runs it, quietly.
pub(super) fn run(shell: &mut Shell, rc: &Rc, interactive: bool) -> Flow {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let files = match rc {
        Rc::None => Vec::new(),
        Rc::File(file) => vec![file.clone()],
        Rc::Own if interactive => own(variable).into_iter().filter(|file| file.exists()).collect(),
        Rc::Own => Vec::new(),
    };
    let quiet = std::mem::replace(&mut shell.settings.quiet, true);
    let mut flow = Flow::Next;
    for file in files {
        flow = match Input::file(&file) {
            Ok(input) => shell.run_input(input),
            Err(error) => {
                shell.report(&error, "", None, None);
                if *rc == Rc::Own { Flow::Next } else { Flow::Leave(Some(code::USAGE)) }
            }
        };
        if flow == Flow::Stop {
            flow = Flow::Next;
        }
        if flow != Flow::Next {
            break;
        }
    }
    // It may have said itself how much is told.
    shell.settings.quiet = shell.variables.is_on("QUIET").unwrap_or(quiet);
    shell.failed = false;
    shell.stopped = false;
    flow
}

/// The user's own files, whether they are there or not.
fn own(variable: impl Fn(&str) -> Option<PathBuf>) -> Vec<PathBuf> {
    if let Some(file) = variable("LEVADARC") {
        return vec![file];
    }
    let home = variable("HOME");
    let config = variable("XDG_CONFIG_HOME").filter(|path| path.is_absolute());
    let config = config.or_else(|| home.as_ref().map(|home| home.join(".config")));
    let files = [config.map(|config| config.join("levada/rc.sql")), home.map(|home| home.join(".levadarc"))];
    files.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(variables: &[(&str, &str)]) -> Vec<PathBuf> {
        own(|name| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| PathBuf::from(value)))
    }

    #[test]
    fn the_files_are_found() {
        let home = ("HOME", "/home/a");
        let paths = |texts: &[&str]| texts.iter().map(PathBuf::from).collect::<Vec<_>>();
        assert_eq!(with(&[home]), paths(&["/home/a/.config/levada/rc.sql", "/home/a/.levadarc"]));
        let config = ("XDG_CONFIG_HOME", "/config");
        assert_eq!(with(&[home, config]), paths(&["/config/levada/rc.sql", "/home/a/.levadarc"]));
        assert_eq!(with(&[home, config, ("LEVADARC", "my.sql")]), paths(&["my.sql"]));
        assert!(with(&[]).is_empty());
    }
}
