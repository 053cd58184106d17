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
    pub edits: Vec<Edit>,
    /// Something is left that no edit makes as expected.
    pub left: bool,
}

/// What a file would have instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Edit {
    /// The record's expected lines.
    Block(Vec<String>),
    /// One line, counted from 1.
    Line(usize, String),
    /// A word of the record's first line, counted from 0.
    Word(usize, String),
}

impl Fault {
    /// A message.
    pub fn text(message: impl Into<String>) -> Self {
        Fault { message: message.into(), diff: None, edits: Vec::new(), left: true }
    }

    /// What is meant, and how it differs.
    pub fn lines(what: impl Into<String>, expected: &[String], actual: &[String]) -> Self {
        let alike = if expected == actual && !actual.is_empty() {
            "\nthese lines are alike: what differs can't be seen in them"
        } else {
            ""
        };
        let message = format!("{} (- expected, + actual){alike}", what.into());
        Fault { diff: Some(compare::diff(expected, actual)), ..Fault::text(message) }
    }

    /// Adds what makes it as expected.
    pub fn edit(mut self, edit: Edit) -> Self {
        self.edits.push(edit);
        self.left = false;
        self
    }

    /// This, and another one behind it.
    pub fn and(mut self, other: Fault) -> Self {
        // Lines of a difference are indented as those of a message will be.
        let own = self.diff.take().unwrap_or_default();
        let own = own.lines().map(|line| line.strip_prefix("  ").unwrap_or(line));
        let all = own.chain(other.message.lines().filter(|line| !line.is_empty()));
        self.message = all.fold(self.message, |text, line| text + "\n" + line);
        self.diff = other.diff;
        self.edits.extend(other.edits);
        self.left |= other.left;
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

/// How far a file came.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Reached {
    /// All of it that was asked for.
    #[default]
    End,
    /// The user ended it.
    Interrupted,
    /// The user ended the suite before it.
    Nothing,
}

/// How a file went.
#[derive(Debug, Clone, Default)]
pub struct FileReport {
    pub file: String,
    /// Its subtests and scenarios, and what stands outside of them.
    pub cases: Vec<Case>,
    /// Combinations of scenarios that ran.
    pub combinations: usize,
    /// Combinations that were not asked for.
    pub left_out_combinations: usize,
    /// All there is to say of each record that failed, and of which case it is.
    pub failed: Vec<(String, String)>,
    /// It is no test.
    pub broken: Option<Broken>,
    /// What the file wants and this build has not: nothing behind that ran.
    pub required: Option<String>,
    pub reached: Reached,
    /// What is worth knowing though nothing failed.
    pub notes: Vec<String>,
    pub time: Duration,
    /// The time of each record, the longest first.
    pub slowest: Vec<(Place, Duration)>,
}

/// A subtest or scenario; what stands outside of them has the file's name.
#[derive(Debug, Clone, Default)]
pub struct Case {
    pub name: String,
    /// Records that ran.
    pub ran: usize,
    /// Records that were left out: by conditions, and behind one that failed.
    pub skipped: usize,
    /// It was ended in the middle.
    pub interrupted: bool,
    pub time: Duration,
}

/// `, 8 combinations`, or `, 3 of 8 combinations` where some were not asked for.
pub fn combined(ran: usize, left_out: usize) -> String {
    match left_out {
        0 => format!(", {}", count(ran, "combination")),
        _ => format!(", {ran} of {}", count(ran + left_out, "combination")),
    }
}

impl FileReport {
    /// An empty one.
    pub fn of(file: &str) -> Self {
        FileReport { file: file.to_string(), ..FileReport::default() }
    }

    /// The case of that name.
    pub fn case(&mut self, name: &str) -> &mut Case {
        let at = match self.cases.iter().position(|case| case.name == name) {
            Some(at) => at,
            None => {
                self.cases.push(Case { name: name.to_string(), ..Case::default() });
                self.cases.len() - 1
            }
        };
        &mut self.cases[at]
    }

    /// Takes over what ran in another world, as a part of a case.
    pub fn take(&mut self, case: &str, other: FileReport) {
        for part in &other.cases {
            let case = self.case(case);
            case.ran += part.ran;
            case.skipped += part.skipped;
        }
        self.combinations += other.combinations;
        self.left_out_combinations += other.left_out_combinations;
        self.failed.extend(other.failed.into_iter().map(|(_, text)| (case.to_string(), text)));
        self.notes.extend(other.notes);
        if other.reached != Reached::End {
            self.reached = other.reached;
        }
    }

    /// Records that ran.
    pub fn ran(&self) -> usize {
        self.cases.iter().map(|case| case.ran).sum()
    }

    /// Records that were left out.
    pub fn skipped(&self) -> usize {
        self.cases.iter().map(|case| case.skipped).sum()
    }

    /// Whether all is as expected.
    pub fn passed(&self) -> bool {
        self.reasons().is_empty() && !self.left_out()
    }

    /// Whether nothing of it ran, for what this build has not.
    pub fn left_out(&self) -> bool {
        self.required.is_some() && self.ran() == 0 && self.failed.is_empty()
    }

    /// Why it did not pass, in lines.
    pub fn reasons(&self) -> Vec<String> {
        let mut reasons: Vec<String> = self.broken.iter().map(ToString::to_string).collect();
        reasons.extend(self.failed.iter().map(|(_, text)| text.clone()));
        match self.reached {
            Reached::Interrupted => reasons.push(format!("{}: interrupted", self.file)),
            Reached::Nothing => reasons.push(format!("{}: not run, the suite was interrupted before it", self.file)),
            Reached::End if reasons.is_empty() && self.ran() == 0 && self.required.is_none() => {
                reasons.push(format!("{}: no record ran, so nothing was tested", self.file));
            }
            Reached::End => {}
        }
        reasons
    }

    /// The line that says how it went.
    pub fn line(&self) -> String {
        let word = match (self.left_out(), self.passed()) {
            (true, _) => "skipped",
            (_, true) => "ok    ",
            (_, false) => "FAILED",
        };
        let mut line = format!("{word} {}: {}", self.file, count(self.ran(), "record"));
        if self.combinations > 0 {
            line += &combined(self.combinations, self.left_out_combinations);
        }
        if self.skipped() > 0 {
            line += &format!(", {} skipped", self.skipped());
        }
        if let Some(what) = &self.required {
            let rest = if self.left_out() { "it" } else { "the rest" };
            line += &format!(", {rest} wants {what}");
        }
        line + &format!(", {:.2} s", self.time.as_secs_f64())
    }
}

/// `1 record`, `2 records`
pub fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// Writes JUnit's XML: a suite a file, a case a subtest or scenario, and one for what stands outside of them.
///
/// # Errors
/// The file can't be written.
pub fn junit(reports: &[FileReport], path: &Path) -> Result<()> {
    let mut all = Report::new("levada test");
    for report in reports {
        let mut suite = TestSuite::new(printable(&report.file));
        suite.set_time(report.time);
        for (name, time, status) in junit_cases(report) {
            let mut case = TestCase::new(printable(&name), status);
            case.set_time(time);
            case.set_classname(printable(&report.file));
            suite.add_test_case(case);
        }
        all.add_test_suite(suite);
    }
    let xml = all.to_string().map_err(|e| Error::internal(format!("JUnit's XML: {e}")))?;
    std::fs::write(path, xml).map_err(|e| Error::io(format!("writing {}", path.display()), &e))
}

fn junit_cases(report: &FileReport) -> Vec<(String, Duration, TestCaseStatus)> {
    let status = |kind: Option<NonSuccessKind>, lines: &[String]| {
        let mut status = kind.map_or_else(TestCaseStatus::skipped, TestCaseStatus::non_success);
        status.set_message(printable(lines.first().and_then(|line| line.lines().next()).unwrap_or_default()));
        status.set_description(printable(&lines.join("\n")));
        status
    };
    let mut out = Vec::new();
    for case in &report.cases {
        let failed: Vec<String> =
            report.failed.iter().filter(|(name, _)| *name == case.name).map(|(_, text)| text.clone()).collect();
        let status = match (failed.is_empty(), case.ran, &report.required) {
            (false, ..) => status(Some(NonSuccessKind::Failure), &failed),
            _ if case.interrupted => status(Some(NonSuccessKind::Error), &["interrupted".to_string()]),
            (_, 0, Some(what)) => status(None, &[format!("wants {what}, which this build has not")]),
            (_, 0, None) => {
                let why = "left out by their conditions, or behind what failed";
                status(None, &[format!("{} {why}", count(case.skipped, "record"))])
            }
            _ => TestCaseStatus::success(),
        };
        out.push((case.name.clone(), case.time, status));
    }
    // What is of no case: it is no test, it was interrupted, nothing ran.
    let known = |reason: &String| report.failed.iter().any(|(_, text)| text == reason);
    let others: Vec<String> = report.reasons().into_iter().filter(|reason| !known(reason)).collect();
    if !others.is_empty() {
        out.retain(|(name, ..)| *name != report.file);
        out.push((report.file.clone(), report.time, status(Some(NonSuccessKind::Error), &others)));
    } else if out.is_empty() {
        let what = report.required.as_deref().unwrap_or("nothing that ran");
        out.push((
            report.file.clone(),
            report.time,
            status(None, &[format!("wants {what}, which this build has not")]),
        ));
    }
    out
}

/// A text in which what neither XML nor a terminal takes is written `\u{1b}`.
fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        let is_line = matches!(c, '\t' | '\n');
        match !is_line && (c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}')) {
            true => out.extend(c.escape_unicode()),
            false => out.push(c),
        }
    }
    out
}

/// The reports as TAP, version 13.
pub fn tap(reports: &[FileReport]) -> String {
    let mut out = format!("TAP version 13\n1..{}\n", reports.len());
    for (n, report) in reports.iter().enumerate() {
        let ok = if report.reasons().is_empty() { "ok" } else { "not ok" };
        let skip = report.required.as_ref().filter(|_| report.left_out()).map(|what| format!(" # SKIP wants {what}"));
        // What stands behind # is a directive.
        let name = printable(&report.file).replace('\n', "\\n").replace('\\', "\\\\").replace('#', "\\#");
        out += &format!("{ok} {} - {name}{}\n", n + 1, skip.unwrap_or_default());
        for line in report.reasons().iter().flat_map(|reason| reason.lines()) {
            out += &format!("# {}\n", printable(line));
        }
        for note in remarks(report) {
            out += &format!("# {}\n", printable(&note));
        }
    }
    out
}

/// What is worth knowing of a file that did not fail.
pub fn remarks(report: &FileReport) -> Vec<String> {
    let mut remarks = report.notes.clone();
    if let Some(what) = report.required.as_ref().filter(|_| !report.left_out()) {
        remarks.push(format!("the rest of {} was skipped: it wants {what}, which this build has not", report.file));
    }
    remarks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statuses(report: &FileReport) -> Vec<(String, &'static str)> {
        let word = |status: TestCaseStatus| match status {
            TestCaseStatus::Success { .. } => "success",
            TestCaseStatus::NonSuccess { kind: NonSuccessKind::Failure, .. } => "failure",
            TestCaseStatus::NonSuccess { .. } => "error",
            TestCaseStatus::Skipped { .. } => "skipped",
        };
        junit_cases(report).into_iter().map(|(name, _, status)| (name, word(status))).collect()
    }

    #[test]
    fn each_subtest_is_a_case_with_its_own_failures() {
        let mut report = FileReport::of("a.slt");
        report.case("a.slt").ran = 1;
        report.case("one").ran = 2;
        report.case("two").ran = 1;
        report.case("three").skipped = 1;
        report.failed.push(("two".into(), "no".into()));
        let named = |list: &[(&str, &'static str)]| list.iter().map(|(n, s)| (n.to_string(), *s)).collect::<Vec<_>>();
        let expected = [("a.slt", "success"), ("one", "success"), ("two", "failure"), ("three", "skipped")];
        assert_eq!(statuses(&report), named(&expected));
        assert!(!report.passed());
    }

    #[test]
    fn what_was_interrupted_has_not_passed_and_what_was_left_out_is_said_to_be() {
        let mut report = FileReport::of("a.slt");
        report.case("a.slt").ran = 1;
        assert!(report.passed());
        report.reached = Reached::Interrupted;
        assert!(!report.passed() && statuses(&report) == [("a.slt".to_string(), "error")]);
        assert!(
            tap(std::slice::from_ref(&report))
                .starts_with("TAP version 13\n1..1\nnot ok 1 - a.slt\n# a.slt: interrupted")
        );
        report.case("one").ran = 3;
        report.case("one").interrupted = true;
        assert!(statuses(&report).contains(&("one".to_string(), "error")), "its end has not been seen");
        let report = FileReport { failed: vec![(String::new(), "x".into())], ..FileReport::of("a#1 # TODO.slt") };
        assert!(tap(&[report]).contains("not ok 1 - a\\#1 \\# TODO.slt\n"));
        let report = FileReport { failed: vec![("x".into(), "a\u{1b}[1m\0\u{fffe}".into())], ..FileReport::of("x") };
        assert!(tap(std::slice::from_ref(&report)).contains("# a\\u{1b}[1m\\u{0}\\u{fffe}\n"));
        let folder = tempfile::tempdir().unwrap();
        junit(
            &[FileReport { cases: vec![Case { name: "x".into(), ..Case::default() }], ..report }],
            &folder.path().join("r.xml"),
        )
        .unwrap();
        let xml = std::fs::read_to_string(folder.path().join("r.xml")).unwrap();
        assert!(xml.contains("a\\u{1b}[1m") && !xml.contains(['\u{1b}', '\0', '\u{fffe}']), "{xml}");
        let absent = FileReport { required: Some("kafka".into()), ..FileReport::of("b.slt") };
        assert!(!absent.passed() && absent.reasons().is_empty() && statuses(&absent)[0].1 == "skipped");
        assert!(absent.line().starts_with("skipped b.slt: 0 records, it wants kafka"));
        assert!(tap(&[absent]).contains("ok 1 - b.slt # SKIP wants kafka"));
        assert_eq!(statuses(&FileReport::of("c.slt"))[0].1, "error", "a file that tests nothing");
    }
}
