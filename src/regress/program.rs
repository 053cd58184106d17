//! The program itself, run as a user would: with lines on its standard input, or typed into a terminal; and what `system` runs.

use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use super::compare;
use super::gestures::Gesture;
use super::guard::Guard;
use super::keys::{Key, keys, move_file};
use super::record::Program;
use super::report::{Edit, Fault};
use crate::error::Error;

/// How a program's prompt begins, and how wide it is at the least.
const PROMPT: (&str, u16) = ("levada", 8);

/// What a program came to: what it printed, its errors, and the code with which it ended, where it was waited for.
#[derive(Debug)]
pub struct Ended {
    output: Vec<String>,
    errors: Vec<String>,
    exit: Option<i32>,
}

/// Runs the program in a folder. `pictures`: where those of its screen go.
///
/// # Errors
/// It can't be run, does not end in time, or is ended by a signal.
pub fn run(
    program: &Program,
    folder: &Path,
    patience: Duration,
    guard: &Guard,
    pictures: Option<&Path>,
) -> Result<Ended, Fault> {
    let (output, errors, exit) = match program.terminal {
        None => piped(program, folder, guard)?,
        Some(size) => in_terminal(program, folder, size, patience, guard, pictures)?,
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
    Ok(Ended { output: lines(&output), errors: lines(&errors), exit })
}

/// Holds what a program came to against what is expected.
///
/// # Errors
/// It printed something else, or ended with another code.
pub fn check(program: &Program, ended: Ended) -> Result<(), Fault> {
    let Ended { output, errors, exit } = ended;
    let mut fault: Option<Fault> = None;
    let mut add = |other: Fault| fault = Some(fault.take().map_or(other.clone(), |fault| fault.and(other)));
    if !compare::same_lines(&program.output, &output).map_err(Fault::text)? {
        let mut fault = Fault::lines("what it prints", &program.output, &output);
        if program.errors.is_none() {
            errors.iter().for_each(|line| fault.message += &format!("\nstderr: {line}"));
        }
        let lines = super::complete::with_line_patterns(&program.output, &output);
        add(fault.edit(Edit::Block(lines)));
    }
    if let Some(expected) = &program.errors
        && !compare::same_lines(expected, &errors).map_err(Fault::text)?
    {
        add(Fault::lines("what it prints to standard error", expected, &errors));
    }
    if let Err(other) = check_exit(program, exit, &errors) {
        add(other);
    }
    fault.map_or(Ok(()), Err)
}

/// Holds the code with which a program ended against the one that is expected.
///
/// # Errors
/// It is another.
fn check_exit(program: &Program, exit: Option<i32>, errors: &[String]) -> Result<(), Fault> {
    match exit {
        Some(code) if code != i32::from(program.exit) => {
            let mut message = format!("it should end with {}, and it ended with {code}", program.exit);
            errors.iter().for_each(|line| message += &format!("\nstderr: {line}"));
            Err(Fault::text(message))
        }
        _ => Ok(()),
    }
}

/// Holds only its code against the one that is expected, where what it prints may differ.
///
/// # Errors
/// It ended with another.
pub fn check_code(program: &Program, ended: &Ended) -> Result<(), Fault> {
    check_exit(program, ended.exit, &ended.errors)
}

/// Runs a command of `system`; answers what it printed, `None` of one that goes on behind its record (`… &`).
///
/// # Errors
/// It can't be run, fails, or does not end in time.
pub fn system(command: &str, guard: &Guard) -> Result<Option<String>, Fault> {
    let behind = command.trim().strip_suffix('&').filter(|command| !command.ends_with('&'));
    let mut bash = Command::new("bash");
    // A group of its own, so that all that it starts ends with it.
    bash.arg("-c").arg(behind.unwrap_or(command).trim()).process_group(0).stdin(Stdio::null());
    let starting = |e: std::io::Error| Fault::from(Error::io("starting bash", &e));
    if behind.is_some() {
        bash.spawn().map_err(starting)?;
        return Ok(None);
    }
    bash.stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = wait(bash.spawn().map_err(starting)?, String::new(), guard)?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        return Ok(Some(text(&output.stdout)));
    }
    Err(Fault::text(format!(
        "process exited unsuccessfully: {}\nstdout: {}\nstderr: {}",
        output.status,
        text(&output.stdout),
        text(&output.stderr)
    )))
}

fn this_program() -> Result<std::path::PathBuf, Fault> {
    std::env::current_exe().map_err(|e| Error::io("finding this program", &e).into())
}

fn piped(program: &Program, folder: &Path, guard: &Guard) -> Result<(String, String, Option<i32>), Fault> {
    let mut command = Command::new(this_program()?);
    command.args(&program.arguments).current_dir(folder).env("HOME", folder).process_group(0);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().map_err(|e| Error::io("starting the program", &e))?;
    let input: String = program.input.iter().map(|line| format!("{line}\n")).collect();
    let output = wait(child, input, guard)?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match output.status.code() {
        Some(code) => Ok((text(&output.stdout), text(&output.stderr), Some(code))),
        None => Err(Fault::text(format!("it was ended: {}\nstderr: {}", output.status, text(&output.stderr)))),
    }
}

/// Gives a child its input and waits for its end, which the guard may bring about.
fn wait(mut child: Child, input: String, guard: &Guard) -> Result<Output, Fault> {
    let stdin = child.stdin.take();
    let group = i32::try_from(child.id()).unwrap_or(0);
    let (ended, outcome) = channel();
    std::thread::spawn(move || {
        if let Some(mut stdin) = stdin {
            // A program that ends without reading its input to the end may do so.
            let _ = stdin.write_all(input.as_bytes());
        }
        let _ = ended.send(child.wait_with_output());
    });
    let output = guard.with_process(group, || outcome.recv());
    match output {
        Ok(output) => Ok(output.map_err(|e| Error::io("waiting for a program", &e))?),
        Err(_) => Err(Error::internal("nobody waits for a program").into()),
    }
}

fn in_terminal(
    program: &Program,
    folder: &Path,
    size: (u16, u16),
    patience: Duration,
    guard: &Guard,
    pictures: Option<&Path>,
) -> Result<(String, String, Option<i32>), Fault> {
    let (Some(columns), Some(rows)) = (NonZeroU16::new(size.0), NonZeroU16::new(size.1)) else {
        return Err(Fault::text("a terminal without columns or rows"));
    };
    let wrong = |e: pty_process::Error| Fault::text(format!("a terminal: {e}"));
    let (pty, pts) = pty_process::blocking::open().map_err(wrong)?;
    pty.resize(pty_process::Size::new(size.1, size.0)).map_err(wrong)?;
    let command = pty_process::blocking::Command::new(this_program()?);
    let command = command.args(&program.arguments).current_dir(folder).env("HOME", folder);
    // A terminal that shows everything, and nothing of what a user has set up.
    let mut command = command.env("TERM", "xterm-256color").env("LC_ALL", "C.UTF-8");
    let set_up =
        ["NO_COLOR", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "LEVADARC", "LEVADA_HISTORY", "LEVADA_PAGER", "PAGER"];
    for name in set_up.into_iter().chain(["COLUMNS", "LINES"]) {
        command = command.env_remove(name);
    }
    let mut child = command.spawn(pts).map_err(wrong)?;
    let pty = std::sync::Arc::new(pty);
    let parser = vt100::Parser::new(rows, columns, 0);
    let mut screen = Screen { parser, bytes: reader(pty.clone()), patience, over: false, pictures };
    // A terminal's program leads a session, and so a group.
    let group = i32::try_from(child.id()).unwrap_or(0);
    let typed = guard.with_process(group, || type_lines(program, folder, &pty, &mut screen));
    let status = if screen.over { child.wait().ok() } else { None };
    let _ = child.kill();
    let _ = child.wait();
    typed?;
    let exit = status.and_then(|status| status.code());
    if let Some(status) = status.filter(|_| exit.is_none()) {
        return Err(Fault::text(format!("it was ended: {status}; the screen:\n{}", screen.parser.screen().contents())));
    }
    Ok((screen.parser.screen().contents(), String::new(), exit))
}

/// Types each line once the program asks for it.
fn type_lines(
    program: &Program,
    folder: &Path,
    pty: &pty_process::blocking::Pty,
    screen: &mut Screen<'_>,
) -> Result<(), Fault> {
    let mut before = String::new();
    for line in &program.input {
        if let Some(gesture) = Gesture::read(line)? {
            gesture.make(pty, screen)?;
            continue;
        }
        screen.until_prompt(&before, line)?;
        before = screen.parser.screen().contents();
        for key in keys(line) {
            match key {
                Key::Bytes(bytes) => {
                    let mut writer = pty;
                    writer.write_all(&bytes).map_err(|e| Error::io("typing", &e))?;
                }
                Key::Wait(text) => screen.until_shown(&text)?,
                Key::Move(from, to) => move_file(folder, &from, &to)?,
            }
        }
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
pub(super) struct Screen<'a> {
    pub(super) parser: vt100::Parser,
    bytes: Receiver<Vec<u8>>,
    patience: Duration,
    /// The program has ended.
    over: bool,
    /// Where pictures of it go.
    pictures: Option<&'a Path>,
}

impl Screen<'_> {
    /// Shows what comes until the program asks for a line, on another screen than `before`; or until it ends.
    fn until_prompt(&mut self, before: &str, what: &str) -> Result<(), Fault> {
        let asks = |screen: &vt100::Screen| asks(screen) && screen.contents() != before;
        self.until(asks, &format!("it did not ask for {what:?}"))
    }

    /// Shows what comes until the screen is as it should be; or until the program ends.
    fn until(&mut self, ready: impl Fn(&vt100::Screen) -> bool, otherwise: &str) -> Result<(), Fault> {
        while !(self.over || ready(self.parser.screen())) {
            match self.bytes.recv_timeout(self.patience) {
                Ok(bytes) => self.parser.process(&bytes),
                Err(RecvTimeoutError::Disconnected) => self.over = true,
                Err(RecvTimeoutError::Timeout) => {
                    let screen = self.parser.screen().contents();
                    let seconds = self.patience.as_secs();
                    return Err(Fault::text(format!("{otherwise} within {seconds} s; the screen:\n{screen}")));
                }
            }
        }
        Ok(())
    }

    /// Draws what it shows now, where pictures are wanted.
    pub(super) fn picture(&self, name: &str) -> Result<(), Fault> {
        let Some(folder) = self.pictures else { return Ok(()) };
        let file = folder.join(format!("{name}.svg"));
        let written = std::fs::write(&file, super::picture::svg(self.parser.screen()));
        Ok(written.map_err(|e| Error::io(format!("writing {}", file.display()), &e))?)
    }

    /// Shows what comes until this text is among it.
    pub(super) fn until_shown(&mut self, text: &str) -> Result<(), Fault> {
        let shows = |screen: &vt100::Screen| screen.contents().contains(text);
        self.until(shows, &format!("it did not show {text:?}"))?;
        match shows(self.parser.screen()) {
            true => Ok(()),
            false => Err(Fault::text(format!("it ended before it showed {text:?}"))),
        }
    }
}

/// Whether the cursor stands behind a prompt: `levada> `, with marks such as `●2` between, or blanks and what is waited for.
fn asks(screen: &vt100::Screen) -> bool {
    let (row, column) = screen.cursor_position();
    let line = screen.contents_between(row, 0, row, column);
    // A line that is being drawn anew has its text still behind the cursor.
    let (rows, columns) = screen.size();
    if !screen.contents_between(row, column, rows.get() - 1, columns.get()).trim().is_empty() {
        return false;
    }
    let Some(prompt) = line.trim_end().strip_suffix('>') else { return false };
    let is_first = prompt.strip_prefix(PROMPT.0).is_some_and(|marks| !marks.contains(char::is_alphabetic));
    let is_next = prompt
        .strip_prefix("    ")
        .is_some_and(|rest| matches!(rest.trim(), "-" | "(" | "'" | "\"" | "`" | "$" | "/*"));
    // One blank stands behind it.
    let width = u16::try_from(line.trim_end().chars().count()).unwrap_or(u16::MAX);
    column >= PROMPT.1 && column == width + 1 && (is_first || is_next)
}
