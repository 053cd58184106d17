//! The program itself, run as a user would: with lines on its standard input, or typed into a terminal.

use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use super::compare;
use super::record::Program;
use super::report::{Fault, Rewrite};
use crate::error::Error;

/// What a program's prompts are wide, and what they end with.
const PROMPT: (u16, &str) = (8, "> ");

/// Runs the program in a folder and holds what it prints against what is expected.
///
/// # Errors
/// It prints something else, ends with another code, or not in time.
pub fn run(program: &Program, folder: &Path, patience: Duration) -> Result<(), Fault> {
    let (output, errors, exit) = match program.terminal {
        None => piped(program, folder, patience)?,
        Some(size) => in_terminal(program, folder, size, patience)?,
    };
    let place = folder.display().to_string();
    let lines = |text: &str| {
        let text = text.replace(&place, "$__TEST_DIR__");
        let mut lines: Vec<String> = text.lines().map(|line| line.trim_end_matches('\r').to_string()).collect();
        while lines.last().is_some_and(String::is_empty) {
            lines.pop();
        }
        lines
    };
    let (output, errors) = (lines(&output), lines(&errors));
    if !compare::same_lines(&program.output, &output).map_err(Fault::text)? {
        let mut fault = Fault::lines("what it prints", &program.output, &output).rewrite(Rewrite::Block(output));
        if program.errors.is_none() {
            errors.iter().for_each(|line| fault.message += &format!("\nstderr: {line}"));
        }
        return Err(fault);
    }
    if let Some(expected) = &program.errors
        && !compare::same_lines(expected, &errors).map_err(Fault::text)?
    {
        return Err(Fault::lines("what it prints to standard error", expected, &errors));
    }
    match exit {
        Some(code) if code != i32::from(program.exit) => {
            let mut message = format!("it should end with {}, and it ended with {code}", program.exit);
            errors.iter().for_each(|line| message += &format!("\nstderr: {line}"));
            Err(Fault::text(message))
        }
        _ => Ok(()),
    }
}

type Ended = (String, String, Option<i32>);

fn this_program() -> Result<std::path::PathBuf, Fault> {
    std::env::current_exe().map_err(|e| Error::io("finding this program", &e).into())
}

fn piped(program: &Program, folder: &Path, patience: Duration) -> Result<Ended, Fault> {
    let mut command = Command::new(this_program()?);
    command.args(&program.arguments).current_dir(folder).env("HOME", folder);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|e| Error::io("starting the program", &e))?;
    let input: String = program.input.iter().map(|line| format!("{line}\n")).collect();
    let stdin = child.stdin.take();
    let process = i32::try_from(child.id()).unwrap_or(0);
    let (ended, outcome) = channel();
    std::thread::spawn(move || {
        if let Some(mut stdin) = stdin {
            // A program that ends without reading its input to the end may do so.
            let _ = stdin.write_all(input.as_bytes());
        }
        let _ = ended.send(child.wait_with_output());
    });
    match outcome.recv_timeout(patience) {
        Ok(Ok(output)) => {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            Ok((text(&output.stdout), text(&output.stderr), output.status.code()))
        }
        Ok(Err(e)) => Err(Error::io("waiting for the program", &e).into()),
        Err(_) => {
            kill(process);
            Err(Fault::text(format!("it had not ended after {} s", patience.as_secs())))
        }
    }
}

fn kill(process: i32) {
    if process > 0 {
        // SAFETY: sends a signal to a child that was not waited for yet, so the number is still its own.
        unsafe { libc::kill(process, libc::SIGKILL) };
    }
}

fn in_terminal(program: &Program, folder: &Path, size: (u16, u16), patience: Duration) -> Result<Ended, Fault> {
    let (Some(columns), Some(rows)) = (NonZeroU16::new(size.0), NonZeroU16::new(size.1)) else {
        return Err(Fault::text("a terminal without columns or rows"));
    };
    let wrong = |e: pty_process::Error| Fault::text(format!("a terminal: {e}"));
    let (pty, pts) = pty_process::blocking::open().map_err(wrong)?;
    pty.resize(pty_process::Size::new(size.1, size.0)).map_err(wrong)?;
    let command = pty_process::blocking::Command::new(this_program()?);
    let command =
        command.args(&program.arguments).current_dir(folder).env("HOME", folder).env("TERM", "xterm-256color");
    let mut child = command.spawn(pts).map_err(wrong)?;
    let pty = std::sync::Arc::new(pty);
    let parser = vt100::Parser::new(rows, columns, 0);
    let mut screen = Screen { parser, bytes: reader(pty.clone()), patience, over: false };
    let typed = type_lines(program, &pty, &mut screen);
    let exit = if screen.over { child.wait().ok().and_then(|status| status.code()) } else { None };
    let _ = child.kill();
    let _ = child.wait();
    typed?;
    Ok((screen.parser.screen().contents(), String::new(), exit))
}

/// Types each line once the program asks for it.
fn type_lines(program: &Program, pty: &pty_process::blocking::Pty, screen: &mut Screen) -> Result<(), Fault> {
    let mut before = String::new();
    for line in &program.input {
        screen.until_prompt(&before, line)?;
        before = screen.parser.screen().contents();
        let keys = match line.strip_prefix('^').and_then(|key| key.chars().next().filter(|_| key.len() == 1)) {
            Some(key) => vec![(key.to_ascii_uppercase() as u8) & 0x1f],
            None => format!("{line}\r").into_bytes(),
        };
        let mut writer = pty;
        writer.write_all(&keys).map_err(|e| Error::io("typing", &e))?;
    }
    screen.until_prompt(&before, "its end")
}

fn reader(pty: std::sync::Arc<pty_process::blocking::Pty>) -> Receiver<Vec<u8>> {
    let (send, bytes) = channel();
    std::thread::spawn(move || {
        let mut reader = &*pty;
        let mut buffer = [0u8; 4096];
        // A terminal whose program has ended gives an error, not an end.
        while let Ok(read) = reader.read(&mut buffer) {
            if read == 0 || send.send(buffer[..read].to_vec()).is_err() {
                return;
            }
        }
    });
    bytes
}

/// The screen of a terminal, and what is still to be shown on it.
struct Screen {
    parser: vt100::Parser,
    bytes: Receiver<Vec<u8>>,
    patience: Duration,
    /// The program has ended.
    over: bool,
}

impl Screen {
    /// Shows what comes until the program asks for a line, on another screen than `before`; or until it ends.
    fn until_prompt(&mut self, before: &str, what: &str) -> Result<(), Fault> {
        while !(self.over || self.asks() && self.parser.screen().contents() != before) {
            match self.bytes.recv_timeout(self.patience) {
                Ok(bytes) => self.parser.process(&bytes),
                Err(RecvTimeoutError::Disconnected) => self.over = true,
                Err(RecvTimeoutError::Timeout) => {
                    let screen = self.parser.screen().contents();
                    let seconds = self.patience.as_secs();
                    return Err(Fault::text(format!(
                        "it did not ask for {what:?} within {seconds} s; the screen:\n{screen}"
                    )));
                }
            }
        }
        Ok(())
    }

    fn asks(&self) -> bool {
        let screen = self.parser.screen();
        let (row, column) = screen.cursor_position();
        let line = screen.contents_between(row, 0, row, column);
        let padded = format!("{line:<width$}", width = usize::from(PROMPT.0));
        column == PROMPT.0 && padded.ends_with(PROMPT.1)
    }
}
