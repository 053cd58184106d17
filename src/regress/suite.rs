//! A suite: its files side by side, and what is said of them.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::complete::Completion;
use super::files::{Files, TestFile};
use super::guard::Interrupt;
use super::report::{self, FileReport, Reached, combined, count};
use super::run::{self, Options};
use super::script;
use super::verdict;
use super::world::{new_folder, remove_folders};
use crate::clock::Stopwatch;
use crate::error::{Error, Result};

/// What `levada test` was asked for.
#[derive(Debug, Clone)]
pub struct Suite {
    pub files: Files,
    pub options: Options,
    /// Files at once.
    pub jobs: usize,
    pub repeat: usize,
    /// Only these files.
    pub filter: Option<regex::Regex>,
    pub junit: Option<PathBuf>,
    /// Answers TAP instead of lines.
    pub tap: bool,
    /// How many of the slowest records are listed.
    pub timing: usize,
    /// Only what failed is said.
    pub quiet: bool,
}

/// The exit codes: all passed, a record failed, there is no such file or nothing in it that could be run.
const PASSED: u8 = 0;
const FAILED: u8 = 1;
const USAGE: u8 = 2;
const INTERRUPTED: u8 = 130;

const TERMINATED: u8 = 143;

/// The first Ctrl-C or SIGTERM ends what runs, so that no folder is left behind; the second ends the program there.
fn on_interrupt(interrupt: Interrupt) {
    std::thread::spawn(move || {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
        runtime.block_on(async {
            let Ok(mut terminated) = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) else {
                return;
            };
            loop {
                let code = tokio::select! {
                    pressed = tokio::signal::ctrl_c() => match pressed {
                        Ok(()) => INTERRUPTED,
                        Err(_) => return,
                    },
                    _ = terminated.recv() => TERMINATED,
                };
                if interrupt.ask(code) {
                    remove_folders();
                    std::process::exit(i32::from(code));
                }
            }
        });
    });
}

/// Runs a suite; answers the exit code. What it says goes to `out`, line by line.
pub fn run(suite: &Suite, out: &(dyn Fn(&str) + Sync)) -> u8 {
    let code = run_all(suite, out).unwrap_or_else(|error| {
        out(&error.to_string());
        if let Some(help) = error.help_text() {
            out(&format!("  help: {help}"));
        }
        USAGE
    });
    remove_folders();
    code
}

/// Runs a suite.
///
/// # Errors
/// It can't be begun as it was asked for.
fn run_all(suite: &Suite, out: &(dyn Fn(&str) + Sync)) -> Result<u8> {
    let files = suite.files.find()?;
    let matches =
        |file: &TestFile| suite.filter.as_ref().is_none_or(|filter| filter.is_match(&file.path.display().to_string()));
    let mut files: Vec<TestFile> = files.into_iter().filter(matches).collect();
    if let Some(only) = &suite.options.only {
        files.retain(|file| has_subtest(file, only));
        if files.is_empty() {
            return Err(Error::invalid(format!("no subtest or scenario matches {only}")));
        }
    }
    match (files.is_empty(), suite.files.shard) {
        (false, _) => {}
        (true, Some(shard)) => out(&format!("part {shard} holds none of the files")),
        (true, None) => return Err(Error::invalid("no file is left to be run")),
    }
    // What is missing for the end is said at the beginning.
    if let Some(path) = &suite.junit {
        let made = std::fs::File::options().append(true).create(true).open(path);
        made.map_err(|e| Error::io(format!("writing {}", path.display()), &e))?;
    }
    if let Some(folder) = &suite.options.pictures {
        one_picture_a_name(&files)?;
        std::fs::create_dir_all(folder).map_err(|e| Error::io(format!("making {}", folder.display()), &e))?;
    }
    drop(new_folder()?);
    on_interrupt(suite.options.interrupt.clone());
    let watch = Stopwatch::start();
    let mut all: Vec<FileReport> = Vec::new();
    for round in 1..=suite.repeat {
        let reports = side_by_side(suite, &files, out);
        let failed = reports.iter().any(|report| !report.reasons().is_empty());
        all.extend(reports);
        if failed && suite.repeat > 1 {
            out(&format!("round {round} of {} failed", suite.repeat));
            break;
        }
    }
    let interrupt = &suite.options.interrupt;
    Ok(match finish(suite, &all, watch, out) {
        Ok(_) if interrupt.is_asked() => interrupt.code(),
        Ok(code) => code,
        Err(error) => {
            out(&error.to_string());
            FAILED
        }
    })
}

/// Pictures of one name would be one file.
///
/// # Errors
/// Two lines draw pictures of the same name.
fn one_picture_a_name(files: &[TestFile]) -> Result<()> {
    let mut drawn: HashMap<String, String> = HashMap::new();
    for file in files {
        // What can't be read is told where it is run.
        let Ok(text) = std::fs::read_to_string(&file.path) else { continue };
        for (at, line) in text.lines().enumerate() {
            let Some(name) = line.strip_prefix("^picture ").map(str::trim) else { continue };
            let place = format!("{}:{}", file.path.display(), at + 1);
            if let Some(other) = drawn.insert(name.to_string(), place.clone()) {
                let error = Error::invalid(format!("{place}: the picture {name} is drawn at {other}, too"));
                return Err(error.help("each picture of a run wants a name of its own, which is that of its file"));
            }
        }
    }
    Ok(())
}

/// Whether a file has a subtest or scenario of a name; one that can't be read is not left out in silence.
fn has_subtest(file: &TestFile, only: &regex::Regex) -> bool {
    match script::read(&file.path) {
        Ok(script) => script::names(&script.nodes).iter().any(|name| only.is_match(name)),
        Err(_) => true,
    }
}

fn side_by_side(suite: &Suite, files: &[TestFile], out: &(dyn Fn(&str) + Sync)) -> Vec<FileReport> {
    let next = AtomicUsize::new(0);
    let take = || {
        let at = next.fetch_add(1, Ordering::SeqCst);
        files.get(at).map(|file| (at, file))
    };
    let reports: Mutex<Vec<(usize, FileReport, Completion)>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..suite.jobs.clamp(1, files.len().max(1)) {
            scope.spawn(|| {
                while let Some((at, file)) = take() {
                    let (report, completion) = one(suite, file);
                    let mut reports = reports.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                    say(suite, &report, out);
                    reports.push((at, report, completion));
                }
            });
        }
    });
    let mut reports = reports.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    reports.sort_by_key(|(at, ..)| *at);
    let mut completion = Completion::default();
    let mut done = Vec::new();
    for (_, mut report, other) in reports {
        // A file that was ended in the middle has not come to what it expects.
        if report.reached == Reached::End {
            let torn = completion.take(other);
            report.failed.extend(torn.iter().map(|node| {
                let text = format!("{}: {}\n  {}", node.place, node.head, verdict::TORN);
                out(&format!("    {text}"));
                (report.file.clone(), text)
            }));
        }
        done.push(report);
    }
    write_anew(completion, &mut done, suite, out);
    done
}

/// Writes files anew once all have run: one may be included by many.
fn write_anew(completion: Completion, reports: &mut [FileReport], suite: &Suite, out: &(dyn Fn(&str) + Sync)) {
    let (diffs, errors) = completion.write();
    for diff in diffs.iter().filter(|_| !suite.tap) {
        out(&format!("written anew: {}", diff.trim_end()));
    }
    for error in errors {
        out(&format!("    {error}"));
        if let Some(report) = reports.first_mut() {
            report.failed.push((report.file.clone(), error.to_string()));
        }
    }
}

fn one(suite: &Suite, file: &TestFile) -> (FileReport, Completion) {
    let name = file.path.display().to_string();
    if suite.options.interrupt.is_asked() {
        return (FileReport { reached: Reached::Nothing, ..FileReport::of(&name) }, Completion::default());
    }
    match script::read(&file.path) {
        Ok(script) => run::run(&script, &Options { until_line: file.line, ..suite.options.clone() }),
        Err(broken) => (FileReport { broken: Some(broken), ..FileReport::of(&name) }, Completion::default()),
    }
}

fn say(suite: &Suite, report: &FileReport, out: &(dyn Fn(&str) + Sync)) {
    if suite.tap || report.reached == Reached::Nothing {
        return;
    }
    if !suite.quiet || !report.passed() {
        out(&report.line());
    }
    for reason in report.reasons() {
        for line in reason.lines() {
            out(&format!("    {line}"));
        }
    }
    // Of a passing file only what is behind `require` is more than a remark.
    if !suite.quiet || report.required.is_some() {
        for remark in report::remarks(report) {
            out(&format!("    {remark}"));
        }
    }
}

fn finish(suite: &Suite, reports: &[FileReport], watch: Stopwatch, out: &(dyn Fn(&str) + Sync)) -> Result<u8> {
    if let Some(path) = &suite.junit {
        report::junit(reports, path)?;
    }
    let is = |which: fn(&FileReport) -> bool| reports.iter().filter(|report| which(report)).count();
    let not_run = is(|report| report.reached == Reached::Nothing);
    let failed = is(|report| !report.reasons().is_empty()) - not_run;
    let skipped = is(FileReport::left_out);
    if suite.tap {
        out(report::tap(reports).trim_end());
    } else {
        let slowest = reports.iter().flat_map(|report| &report.slowest);
        let mut slowest: Vec<_> = slowest.collect();
        slowest.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
        for (place, time) in slowest.into_iter().take(suite.timing) {
            out(&format!("{:>9.1} ms  {place}", time.as_secs_f64() * 1_000.0));
        }
        // Where nothing failed, nothing is left to say.
        if suite.quiet && failed + not_run + skipped == 0 && !suite.options.interrupt.is_asked() {
            return Ok(PASSED);
        }
        let ran: usize = reports.iter().map(FileReport::ran).sum();
        let combinations: usize = reports.iter().map(|report| report.combinations).sum();
        let left_out: usize = reports.iter().map(|report| report.left_out_combinations).sum();
        let combined = if combinations > 0 { combined(combinations, left_out) } else { String::new() };
        out(&format!(
            "{} ran{combined} in {}, {:.2} s",
            count(ran, "record"),
            count(reports.len() - not_run, "file"),
            watch.elapsed().as_secs_f64()
        ));
        let mut line = format!("{} passed, {failed} failed", is(FileReport::passed));
        if skipped > 0 {
            line += &format!(", {skipped} skipped");
        }
        if not_run > 0 {
            line += &format!(", {not_run} not run");
        }
        if suite.options.interrupt.is_asked() {
            line += ": interrupted";
        }
        out(&line);
    }
    let wrong = reports.iter().any(|report| !report.failed.is_empty());
    Ok(match (failed, wrong) {
        (0, _) => PASSED,
        (_, true) => FAILED,
        // Files that are no tests, or test nothing.
        (_, false) => USAGE,
    })
}
