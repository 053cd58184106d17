//! What failed, and how it is shown: to a person, as JUnit's XML, as TAP.

use std::path::Path;
use std::time::Duration;

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use super::answer::Failure;
use super::compare;
use super::place::{Broken, Place};
use crate::error::{Error, Result};

/// What is not as it is expected.
#[derive(Debug, Clone)]
pub struct Fault {
    pub message: String,
    /// Lines side by side, where there are some.
    pub diff: Option<String>,
    /// What would make it as expected.
    pub rewrite: Option<Rewrite>,
}

/// Lines that a file would have instead.
#[derive(Debug, Clone)]
pub enum Rewrite {
    /// The record's expected lines.
    Block(Vec<String>),
    /// One line, counted from 1.
    Line(usize, String),
    /// Some lines.
    Lines(Vec<(usize, String)>),
}

impl Fault {
    /// A message.
    pub fn text(message: impl Into<String>) -> Self {
        Fault { message: message.into(), diff: None, rewrite: None }
    }

    /// What is meant, and how it differs.
    pub fn lines(what: impl Into<String>, expected: &[String], actual: &[String]) -> Self {
        let message = format!("{} (- expected, + actual)", what.into());
        Fault { message, diff: Some(compare::diff(expected, actual)), rewrite: None }
    }

    /// Adds what would make it as expected.
    pub fn rewrite(mut self, rewrite: Rewrite) -> Self {
        self.rewrite = Some(rewrite);
        self
    }
}

impl From<Failure> for Fault {
    fn from(failure: Failure) -> Self {
        Fault::text(failure.text)
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Fault::from(Failure::from(error))
    }
}

/// How a file went.
#[derive(Debug, Clone, Default)]
pub struct FileReport {
    pub file: String,
    /// Records that ran.
    pub ran: usize,
    /// Combinations of scenarios that ran.
    pub combinations: usize,
    /// Records that conditions left out.
    pub skipped: usize,
    /// All there is to say of each record that failed.
    pub failed: Vec<String>,
    /// It is no test.
    pub broken: Option<Broken>,
    /// What the file wants and this build has not: nothing behind that ran.
    pub required: Option<String>,
    /// What was written anew.
    pub diffs: Vec<String>,
    pub time: Duration,
    /// The time of each record, the longest first.
    pub slowest: Vec<(Place, Duration)>,
}

impl FileReport {
    /// Whether all is as expected.
    pub fn passed(&self) -> bool {
        self.failed.is_empty() && self.broken.is_none() && (self.ran > 0 || self.required.is_some())
    }

    /// Why it did not pass, in lines.
    pub fn reasons(&self) -> Vec<String> {
        let mut reasons: Vec<String> = self.broken.iter().map(ToString::to_string).collect();
        reasons.extend(self.failed.iter().cloned());
        if reasons.is_empty() && self.ran == 0 && self.required.is_none() {
            reasons.push(format!("{}: no record ran, so nothing was tested", self.file));
        }
        reasons
    }

    /// The line that says how it went.
    pub fn line(&self) -> String {
        let mut line =
            format!("{} {}: {}", if self.passed() { "ok    " } else { "FAILED" }, self.file, count(self.ran, "record"));
        if self.combinations > 0 {
            line += &format!(", {}", count(self.combinations, "combination"));
        }
        if self.skipped > 0 {
            line += &format!(", {} skipped", self.skipped);
        }
        if let Some(what) = &self.required {
            line += &format!(", the rest wants {what}");
        }
        line + &format!(", {:.2} s", self.time.as_secs_f64())
    }
}

/// `1 record`, `2 records`
pub fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// Writes JUnit's XML: a suite a file, a case a subtest or scenario with a failure, and one for the file.
///
/// # Errors
/// The file can't be written.
pub fn junit(reports: &[FileReport], path: &Path) -> Result<()> {
    let mut all = Report::new("levada test");
    for report in reports {
        let mut suite = TestSuite::new(report.file.clone());
        suite.set_time(report.time);
        let reasons = report.reasons();
        let status = match (reasons.first(), &report.required) {
            (Some(reason), _) => {
                let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
                status.set_message(reason.lines().next().unwrap_or_default());
                status.set_description(reasons.join("\n"));
                status
            }
            (None, Some(what)) if report.ran == 0 => {
                let mut status = TestCaseStatus::skipped();
                status.set_message(format!("wants {what}"));
                status
            }
            (None, _) => TestCaseStatus::success(),
        };
        let mut case = TestCase::new(report.file.clone(), status);
        case.set_time(report.time);
        case.set_classname("levada");
        suite.add_test_case(case);
        all.add_test_suite(suite);
    }
    let xml = all.to_string().map_err(|e| Error::internal(format!("JUnit's XML: {e}")))?;
    std::fs::write(path, xml).map_err(|e| Error::io(format!("writing {}", path.display()), &e))
}

/// The reports as TAP, version 13.
pub fn tap(reports: &[FileReport]) -> String {
    let mut out = format!("TAP version 13\n1..{}\n", reports.len());
    for (n, report) in reports.iter().enumerate() {
        let ok = if report.passed() { "ok" } else { "not ok" };
        let skip = report.required.as_ref().filter(|_| report.ran == 0).map(|what| format!(" # SKIP wants {what}"));
        out += &format!("{ok} {} - {}{}\n", n + 1, report.file, skip.unwrap_or_default());
        for line in report.reasons().iter().flat_map(|reason| reason.lines()) {
            out += &format!("# {line}\n");
        }
    }
    out
}
