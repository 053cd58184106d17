//! The manual page and the completions of shells, from the definitions of the arguments.

use std::io::Write;

use clap::{Command, ValueEnum};
use clap_complete::Shell;

/// What can be written.
#[derive(Clone, Copy, ValueEnum)]
pub enum Generated {
    /// The manual page
    Man,
    /// Completions for bash
    Bash,
    /// Completions for zsh
    Zsh,
    /// Completions for fish
    Fish,
}

/// Writes it to standard output; answers the exit code.
pub fn write(what: Generated, mut command: Command) -> u8 {
    let mut text = Vec::new();
    let shell = |shell: Shell, command: &mut Command, text: &mut Vec<u8>| {
        clap_complete::generate(shell, command, "levada", text);
        Ok(())
    };
    let made = match what {
        Generated::Man => clap_mangen::Man::new(command).render(&mut text),
        Generated::Bash => shell(Shell::Bash, &mut command, &mut text),
        Generated::Zsh => shell(Shell::Zsh, &mut command, &mut text),
        Generated::Fish => shell(Shell::Fish, &mut command, &mut text),
    };
    match made.and_then(|()| std::io::stdout().write_all(&text)) {
        Ok(()) => 0,
        Err(error) => {
            // Where that can't be written there is nobody left to tell.
            let _ = writeln!(std::io::stderr(), "error: can't write: {error}");
            1
        }
    }
}
