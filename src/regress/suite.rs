//! A suite: its files side by side, and what is said of them.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use super::complete;
use super::files::{Files, TestFile};
use super::report::{self, FileReport, count};
use super::run::{self, Options};
use super::script;
use crate::clock::Stopwatch;
use crate::error::Result;

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

/// The first Ctrl-C ends the suite behind the records that run, so that no folder is left behind; the second ends it there.
fn on_interrupt(interrupted: Arc<AtomicBool>) {
    std::thread::spawn(move || {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
        runtime.block_on(async {
            while tokio::signal::ctrl_c().await.is_ok() {
                if interrupted.swap(true, Ordering::SeqCst) {
                    std::process::exit(i32::from(INTERRUPTED));
                }
            }
        });
    });
}

/// Runs a suite; answers the exit code. What it says goes to `out`, line by line.
pub fn run(suite: &Suite, out: &(dyn Fn(&str) + Sync)) -> u8 {
    let files = match suite.files.find() {
        Ok(files) => files,
        Err(error) => {
            out(&error.to_string());
            return USAGE;
        }
    };
    let matches =
        |file: &TestFile| suite.filter.as_ref().is_none_or(|filter| filter.is_match(&file.path.display().to_string()));
    let files: Vec<TestFile> = files.into_iter().filter(matches).collect();
    if files.is_empty() && suite.files.shard.is_none() {
        out("no file is left to be run");
        return USAGE;
    }
    on_interrupt(suite.options.interrupted.clone());
    let watch = Stopwatch::start();
    let mut all: Vec<FileReport> = Vec::new();
    for round in 1..=suite.repeat {
        let reports = side_by_side(suite, &files, out);
        let failed = reports.iter().any(|report| !report.passed());
        all.extend(reports);
        if failed && suite.repeat > 1 {
            out(&format!("round {round} of {} failed", suite.repeat));
            break;
        }
    }
    match finish(suite, &all, watch, out) {
        Ok(_) if suite.options.interrupted.load(Ordering::SeqCst) => INTERRUPTED,
        Ok(code) => code,
        Err(error) => {
            out(&error.to_string());
            FAILED
        }
    }
}

fn side_by_side(suite: &Suite, files: &[TestFile], out: &(dyn Fn(&str) + Sync)) -> Vec<FileReport> {
    let next = AtomicUsize::new(0);
    let take = || {
        let at = next.fetch_add(1, Ordering::SeqCst);
        let ended = suite.options.interrupted.load(Ordering::SeqCst);
        files.get(at).filter(|_| !ended).map(|file| (at, file))
    };
    let reports: Mutex<Vec<(usize, FileReport)>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..suite.jobs.clamp(1, files.len().max(1)) {
            scope.spawn(|| {
                while let Some((at, file)) = take() {
                    let report = one(suite, file);
                    let mut reports = reports.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                    say(suite, &report, out);
                    reports.push((at, report));
                }
            });
        }
    });
    let mut reports = reports.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    reports.sort_by_key(|(at, _)| *at);
    reports.into_iter().map(|(_, report)| report).collect()
}

fn one(suite: &Suite, file: &TestFile) -> FileReport {
    let script = match script::read(&file.path) {
        Ok(script) => script,
        Err(broken) => {
            let file = file.path.display().to_string();
            return FileReport { file, broken: Some(broken), ..FileReport::default() };
        }
    };
    let options = Options { until_line: file.line, ..suite.options.clone() };
    let (mut report, rewrites) = run::run(&script, &options);
    match complete::apply(rewrites) {
        Ok(diffs) => report.diffs = diffs,
        Err(error) => report.failed.push(error.to_string()),
    }
    report
}

fn say(suite: &Suite, report: &FileReport, out: &(dyn Fn(&str) + Sync)) {
    if suite.tap {
        return;
    }
    for diff in &report.diffs {
        out(&format!("written anew: {}", diff.trim_end()));
    }
    if !suite.quiet || !report.passed() {
        out(&report.line());
    }
    for reason in report.reasons() {
        for line in reason.lines() {
            out(&format!("    {line}"));
        }
    }
}

fn finish(suite: &Suite, reports: &[FileReport], watch: Stopwatch, out: &(dyn Fn(&str) + Sync)) -> Result<u8> {
    if let Some(path) = &suite.junit {
        report::junit(reports, path)?;
    }
    let failed = reports.iter().filter(|report| !report.passed()).count();
    if suite.tap {
        out(report::tap(reports).trim_end());
    } else {
        let slowest = reports.iter().flat_map(|report| &report.slowest);
        let mut slowest: Vec<_> = slowest.collect();
        slowest.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
        for (place, time) in slowest.into_iter().take(suite.timing) {
            out(&format!("{:>9.1} ms  {place}", time.as_secs_f64() * 1_000.0));
        }
        let ran: usize = reports.iter().map(|report| report.ran).sum();
        let combinations: usize = reports.iter().map(|report| report.combinations).sum();
        let combined = match combinations {
            0 => String::new(),
            n => format!(", {}", count(n, "combination")),
        };
        out(&format!(
            "{} ran{combined} in {}, {:.2} s",
            count(ran, "record"),
            count(reports.len(), "file"),
            watch.elapsed().as_secs_f64()
        ));
        out(&format!("{} passed, {failed} failed", reports.len() - failed));
    }
    let wrong = reports.iter().any(|report| !report.failed.is_empty());
    Ok(match (failed, wrong) {
        (0, _) => PASSED,
        (_, true) => FAILED,
        // Files that are no tests, or test nothing.
        (_, false) => USAGE,
    })
}
