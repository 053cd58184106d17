//! The text of our records → [`Own`].

use sqllogictest::{ColumnType, SortMode};

use super::head::{Head, name};
use super::place::Broken;
use super::record::{Block, Check, CheckOp, Feed, Own, Program, Rows, Shown, StepHow, Which};
use super::values::Letter;
use crate::checkpoint::failpoint::Action;
use crate::error::closest;
use crate::parser::StopHow;

/// The first words of our records.
pub const NAMES: &[&str] = &[
    "clock",
    "feed",
    "step",
    "emitted",
    "progress",
    "watermark",
    "state",
    "sink",
    "checkpoint",
    "stop",
    "restart",
    "crash",
    "plan",
    "shell",
    "tty",
    "require",
];

/// Those that run a program, whose output may have blank lines.
pub const PROGRAMS: &[&str] = &["shell", "tty", "system"];

/// Columns and rows of a terminal, at the most.
const WIDEST: u16 = 1_000;
const HIGHEST: u16 = 500;

/// What separates what is done from what is expected.
pub const SEPARATOR: &str = "----";

/// The lines behind a record's first.
#[derive(Clone, Copy)]
pub struct Lines<'a> {
    pub lines: &'a [&'a str],
    /// The first one's number, from 0.
    pub first: usize,
}

impl<'a> Lines<'a> {
    /// Cut at the first `----`: what stands before it, and what behind it.
    fn split(self) -> (&'a [&'a str], Option<Lines<'a>>) {
        match self.lines.iter().position(|line| *line == SEPARATOR) {
            None => (self.lines, None),
            Some(at) => {
                let behind = Lines { lines: &self.lines[at + 1..], first: self.first + at + 1 };
                (&self.lines[..at], Some(behind))
            }
        }
    }

    fn block(self) -> Block {
        Block { lines: self.first..self.first + self.lines.len(), separated: true, swallows: None }
    }

    /// Nothing may stand here.
    fn nothing(self, head: &Head<'_>) -> Result<(), Broken> {
        match self.lines.first() {
            None => Ok(()),
            Some(line) => Err(Broken::new(&head.place.at(self.first + 1), Some(1), format!("unexpected {line:?}"))
                .help("a record ends at a blank line")),
        }
    }
}

/// Reads a record whose first word was taken.
pub fn parse(word: &str, head: &mut Head<'_>, body: Lines<'_>) -> Result<(Own, Block), Broken> {
    let bare = |own: Own, head: &Head<'_>| {
        head.end()?;
        body.nothing(head)?;
        Ok((own, Block::default()))
    };
    match word {
        "clock" => {
            let own = match head.want("set or advance")? {
                "set" => Own::ClockSet(some(head, "a time, such as 2026-01-01T00:00:00Z")?),
                "advance" => Own::ClockAdvance(interval(&some(head, "an interval, such as 10 seconds")?)),
                other => return Err(unexpected(head, other, &["set", "advance"])),
            };
            bare(own, head)
        }
        "feed" => feed(head, body),
        "step" => step(head, body),
        "emitted" => {
            let query = head.name("the query's name")?;
            let which = match head.want("last, batch K, since K or all")? {
                "last" => Which::Last,
                "all" => Which::All,
                "batch" => Which::Batch(number(head, "the batch's number")?),
                "since" => Which::Since(number(head, "the batch's number")?),
                other => return Err(unexpected(head, other, &["last", "batch", "since", "all"])),
            };
            let (rows, block) = rows(head, body)?;
            Ok((Own::Emitted { query, which, rows }, block))
        }
        "progress" => {
            let query = head.name("the query's name")?;
            let batch = if head.take("batch") { Some(number(head, "the batch's number")?) } else { None };
            head.end()?;
            let checks = checks(head, body)?;
            Ok((Own::Progress { query, batch, checks }, Block::default()))
        }
        "watermark" => {
            let query = head.name("the query's name")?;
            let expected = some(head, "a time, or none")?;
            bare(Own::Watermark { query, expected: (expected != "none").then_some(expected) }, head)
        }
        "state" => {
            let word = head.want("the query's name")?;
            let (query, operator) = match word.split_once('.') {
                Some((query, operator)) => (name(query), Some(operator.to_string())),
                None => (name(word), None),
            };
            let (rows, block) = rows(head, body)?;
            Ok((Own::State { query, operator, rows }, block))
        }
        "sink" => {
            let name = head.name("the sink's name")?;
            if !head.take("committed") {
                return Err(head.wrong("\"committed\" is missing"));
            }
            let (rows, block) = rows(head, body)?;
            Ok((Own::Sink { name, rows }, block))
        }
        "checkpoint" => {
            let query = head.name("the query's name")?;
            bare(Own::Checkpoint(query), head)
        }
        "stop" => {
            let query = head.name("the query's name")?;
            let how = match head.next() {
                None | Some("graceful") => StopHow::Graceful,
                Some("now") => StopHow::Now,
                Some("drain") => StopHow::Drain,
                Some(other) => return Err(unexpected(head, other, &["graceful", "now", "drain"])),
            };
            bare(Own::Stop { query, how }, head)
        }
        "restart" => {
            let own = match head.want("query or engine")? {
                "query" => {
                    let query = head.name("the query's name")?;
                    let from = if head.take("from") { Some(some(head, "a checkpoint")?) } else { None };
                    Own::RestartQuery { query, from: from.map(|from| from.trim_matches('\'').to_string()) }
                }
                "engine" => Own::RestartEngine { wipe: head.take("wipe") },
                other => return Err(unexpected(head, other, &["query", "engine"])),
            };
            bare(own, head)
        }
        "crash" => {
            let own = crash(head)?;
            bare(own, head)
        }
        "plan" => {
            let query = head.name("the query's name")?;
            let of = if head.take("why") {
                Shown::Why
            } else if head.take("state") {
                Shown::State
            } else {
                Shown::Plan
            };
            head.end()?;
            let (before, expected) = body.split();
            Lines { lines: before, ..body }.nothing(head)?;
            let lines = expected.map_or_else(Vec::new, |e| owned(e.lines));
            Ok((Own::Plan { query, of, lines }, expected.map_or_else(Block::default, Lines::block)))
        }
        "require" => {
            let what = head.want("a connector, a format or a function")?.to_string();
            bare(Own::Require(what), head)
        }
        "shell" | "tty" => program(word, head, body),
        other => Err(head.wrong(format!("there is no record {other:?}"))),
    }
}

fn feed(head: &mut Head<'_>, body: Lines<'_>) -> Result<(Own, Block), Broken> {
    let stream = head.name("the stream's name")?;
    if head.take("partition") && number(head, "the partition's number")? != 0 {
        return Err(head.wrong("streams that are fed have one partition, 0"));
    }
    let mut what = None;
    if head.take("close") {
        what = Some(Feed::Close);
    } else if head.take("as") {
        let format = match head.want("values, csv or json")? {
            "values" => None,
            "csv" => Some("csv"),
            "json" => Some("json"),
            other => return Err(unexpected(head, other, &["values", "csv", "json"])),
        };
        what = format.map(|format| Feed::Lines { format, lines: owned(body.lines) });
    }
    let error = match head.take("error") {
        true => Some(head.regex()?.unwrap_or_else(anything)),
        false => None,
    };
    head.end()?;
    let what = match what {
        Some(Feed::Close) => {
            body.nothing(head)?;
            Feed::Close
        }
        Some(what) => what,
        None => Feed::Values(body.lines.join("\n")),
    };
    if !matches!(what, Feed::Close) && body.lines.is_empty() {
        return Err(Broken::new(&head.place, None, "feed without rows").help("the rows stand in the lines below it"));
    }
    Ok((Own::Feed { stream, what, error }, Block::default()))
}

/// Found in every text.
#[allow(clippy::expect_used, reason = "the empty pattern is one")]
fn anything() -> regex::Regex {
    regex::Regex::new("").expect("the empty pattern")
}

fn step(head: &mut Head<'_>, body: Lines<'_>) -> Result<(Own, Block), Broken> {
    let query = head.name("the query's name")?;
    let how = match head.peek() {
        Some("until-idle") => StepHow::UntilIdle,
        Some("idle") => StepHow::Idle,
        Some("crashed") => StepHow::Crashed,
        Some("error") => {
            head.next();
            let how = StepHow::Error(head.regex()?.unwrap_or_else(anything));
            body.nothing(head)?;
            return Ok((Own::Step { query, how, rows: None }, Block::default()));
        }
        Some(word) if word.starts_with(|c: char| c.is_ascii_digit()) => {
            StepHow::Batches(number(head, "how many batches")?)
        }
        _ => StepHow::Batches(1),
    };
    match how {
        StepHow::UntilIdle => drop(head.next()),
        StepHow::Idle | StepHow::Crashed => {
            head.next();
            head.end()?;
            body.nothing(head)?;
            return Ok((Own::Step { query, how, rows: None }, Block::default()));
        }
        StepHow::Batches(0) => return Err(head.wrong("a step runs one batch or more; \"step q idle\" wants none")),
        StepHow::Batches(_) | StepHow::Error(_) => {}
    }
    if head.peek().is_none() && body.lines.is_empty() {
        return Ok((Own::Step { query, how, rows: None }, Block::default()));
    }
    let (rows, block) = rows(head, body)?;
    Ok((Own::Step { query, how, rows: Some(rows) }, block))
}

/// `TYPES [nosort|rowsort|valuesort] [colnames]`, `----` and rows.
fn rows(head: &mut Head<'_>, body: Lines<'_>) -> Result<(Rows, Block), Broken> {
    let mut types = None;
    let mut sort = SortMode::NoSort;
    let mut names = false;
    while let Some(word) = head.peek() {
        match word {
            "nosort" => sort = SortMode::NoSort,
            "rowsort" | "sort" => sort = SortMode::RowSort,
            "valuesort" => sort = SortMode::ValueSort,
            "colnames" => names = true,
            _ if types.is_none() => types = Some(letters(head, word)?),
            other => return Err(unexpected(head, other, &["nosort", "rowsort", "valuesort", "colnames"])),
        }
        head.next();
    }
    let (before, expected) = body.split();
    Lines { lines: before, ..body }.nothing(head)?;
    let Some(expected) = expected else {
        return Err(Broken::new(&head.place, None, "no rows are expected: the line ---- is missing")
            .help("write ---- and the rows below it; nothing below it means no row"));
    };
    Ok((Rows { types, sort, names, lines: owned(expected.lines) }, expected.block()))
}

fn letters(head: &Head<'_>, word: &str) -> Result<Vec<Letter>, Broken> {
    let letter = |c: char| match c {
        'B' | 'D' | 'I' | 'P' | 'R' | 'T' | '?' => Letter::from_char(c),
        _ => None,
    };
    word.chars().map(letter).collect::<Option<Vec<_>>>().ok_or_else(|| {
        head.wrong(format!("{word:?} are no types"))
            .help("a letter a column: B boolean, D date, I integer, P timestamp, R float or decimal, T text, ? other")
    })
}

fn checks(head: &Head<'_>, body: Lines<'_>) -> Result<Vec<Check>, Broken> {
    let mut checks = Vec::new();
    for (n, line) in body.lines.iter().enumerate() {
        let place = head.place.at(body.first + n + 1);
        let found = CheckOp::ALL.iter().filter_map(|(text, op)| Some((line.find(text)?, text.len(), *op)));
        // The first one in the line; of two at one place the longer.
        let Some((at, width, op)) = found.min_by_key(|(at, width, _)| (*at, usize::MAX - width)) else {
            return Err(Broken::new(&place, Some(1), format!("{line:?} compares nothing")).help("input_rows = 3"));
        };
        let (key, value) = (line[..at].trim().to_string(), line[at + width..].trim().to_string());
        if key.is_empty() || value.is_empty() {
            let message = format!("{line:?} compares {}", if key.is_empty() { "no key" } else { "with nothing" });
            return Err(Broken::new(&place, Some(1), message).help("input_rows = 3"));
        }
        checks.push(Check { line: body.first + n + 1, key, op, value });
    }
    if checks.is_empty() {
        return Err(
            Broken::new(&head.place, None, "progress that checks nothing").help("input_rows = 3 in a line below it")
        );
    }
    Ok(checks)
}

fn crash(head: &mut Head<'_>) -> Result<Own, Broken> {
    head.take("at");
    let point = head.want("the failpoint")?.to_string();
    let hit = if head.take("hit") { number(head, "the hit")? } else { 1 };
    if hit == 0 {
        return Err(head.wrong("hits count from 1"));
    }
    let action = match head.next() {
        None | Some("kill") => Action::Kill,
        Some("error") => Action::Error,
        Some("enospc") => Action::Enospc,
        Some("lost-fsync" | "lost_fsync") => Action::LostFsync,
        Some("torn") => Action::Torn(number(head, "how many bytes are left")?),
        Some(other) => return Err(unexpected(head, other, &["kill", "error", "torn", "enospc", "lost-fsync"])),
    };
    Ok(Own::Crash { point, hit, action })
}

fn program(word: &str, head: &mut Head<'_>, body: Lines<'_>) -> Result<(Own, Block), Broken> {
    let terminal = match word {
        "tty" => {
            let size = head.want("the terminal's size, such as 80x24")?;
            let parsed = size.split_once('x').and_then(|(c, r)| Some((c.parse().ok()?, r.parse().ok()?)));
            let parsed = parsed.ok_or_else(|| head.wrong(format!("{size:?} is no size, such as 80x24")))?;
            if !(1..=WIDEST).contains(&parsed.0) || !(1..=HIGHEST).contains(&parsed.1) {
                let message = format!("a terminal of {size}: it has 1x1 to {WIDEST}x{HIGHEST}");
                return Err(head.wrong(message).help("columns x rows, such as 80x24"));
            }
            Some(parsed)
        }
        _ => None,
    };
    let arguments = words(head.remainder()).ok_or_else(|| head.wrong("a quote is not closed"))?;
    let (input, rest) = body.split();
    if let Some(at) = input.iter().position(|line| line.starts_with("---- ")) {
        return Err(Broken::new(
            &head.place.at(body.first + at + 1),
            Some(1),
            format!("{:?} is typed into the program here", input[at]),
        )
        .help("what is expected of it begins with a line ----, and its output, which may be none"));
    }
    let mut program = Program { terminal, arguments, input: owned(input), output: Vec::new(), errors: None, exit: 0 };
    let mut block = Block::default();
    let Some(rest) = rest else { return Ok((Own::Program(program), block)) };
    let end = rest.lines.iter().position(|line| line.starts_with("---- ")).unwrap_or(rest.lines.len());
    program.output = trimmed(&rest.lines[..end]);
    block = Block { lines: rest.first..rest.first + program.output.len(), separated: true, swallows: None };
    let mut at = end;
    while at < rest.lines.len() {
        let place = head.place.at(rest.first + at + 1);
        match rest.lines[at].split_whitespace().collect::<Vec<_>>().as_slice() {
            ["----", "stderr"] => {
                let from = at + 1;
                at = (from..rest.lines.len()).find(|n| rest.lines[*n].starts_with("---- ")).unwrap_or(rest.lines.len());
                program.errors = Some(trimmed(&rest.lines[from..at]));
            }
            ["----", "exit", code] => {
                let wrong = || Broken::new(&place, Some(11), format!("{code:?} is no exit code"));
                program.exit = code.parse().map_err(|_| wrong())?;
                at += 1;
            }
            _ => return Err(Broken::new(&place, Some(1), "here stands ---- stderr or ---- exit N")),
        }
    }
    Ok((Own::Program(program), block))
}

/// Words as a shell takes them apart, with '…' and "…"; `None`: a quote is not closed.
fn words(text: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in text.chars() {
        match (quote, c) {
            (Some(q), c) if q == c => quote = None,
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

fn trimmed(lines: &[&str]) -> Vec<String> {
    let mut lines = owned(lines);
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

fn owned(lines: &[&str]) -> Vec<String> {
    lines.iter().map(ToString::to_string).collect()
}

/// An interval as it is written, or as SQL writes it: `INTERVAL '1 minute'`.
fn interval(text: &str) -> String {
    let bare = match text.split_once(char::is_whitespace) {
        Some((word, rest)) if word.eq_ignore_ascii_case("interval") => rest.trim(),
        _ => text,
    };
    let quoted = bare.strip_prefix('\'').and_then(|text| text.strip_suffix('\''));
    quoted.unwrap_or(bare).to_string()
}

fn some(head: &mut Head<'_>, what: &str) -> Result<String, Broken> {
    match head.remainder() {
        "" => Err(head.wrong(format!("{what} is missing"))),
        rest => Ok(rest.to_string()),
    }
}

fn number(head: &mut Head<'_>, what: &str) -> Result<u64, Broken> {
    let word = head.want(what)?;
    word.parse().map_err(|_| head.wrong(format!("{word:?} is no number: {what} is wanted")))
}

fn unexpected(head: &Head<'_>, word: &str, known: &[&str]) -> Broken {
    let error = head.wrong(format!("unexpected {word:?}: {} is wanted", known.join(", ")));
    match closest(word, known.iter().copied()) {
        Some(near) => error.help(format!("did you mean {near:?}?")),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::regress::place::Place;

    fn read(text: &str) -> Result<(Own, Block), Broken> {
        let lines: Vec<&str> = text.lines().collect();
        let mut head = Head::new(Place::top("x.slt", None), lines[0]);
        let word = head.next().unwrap();
        parse(word, &mut head, Lines { lines: &lines[1..], first: 1 })
    }

    fn error(text: &str) -> String {
        read(text).unwrap_err().to_string()
    }

    #[test]
    fn a_step_has_rows_behind_its_separator() {
        let (own, block) = read("step q 2 PTI rowsort colnames\n----\na b c\n+I x y 1").unwrap();
        let Own::Step { query, how: StepHow::Batches(2), rows: Some(rows) } = own else { panic!("{own:?}") };
        assert_eq!((query.as_str(), rows.names, rows.lines.len(), block.lines), ("q", true, 2, 2..4));
        assert!(matches!(read("step q idle").unwrap().0, Own::Step { how: StepHow::Idle, rows: None, .. }));
        assert!(matches!(read("step q error no (room|space)").unwrap().0, Own::Step { how: StepHow::Error(_), .. }));
    }

    #[test]
    fn the_clock_is_advanced_by_an_interval_as_sql_writes_it_too() {
        for text in ["1 minute", "INTERVAL '1 minute'", "interval 1 minute", "'1 minute'"] {
            let (own, _) = read(&format!("clock advance {text}")).unwrap();
            assert!(matches!(own, Own::ClockAdvance(by) if by == "1 minute"), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        assert_eq!(
            error("step q PTX\n----"),
            "x.slt:1:8: \"PTX\" are no types\n  help: a letter a column: B boolean, D date, I integer, P timestamp, R float or decimal, T text, ? other"
        );
        assert!(error("step q PT\nrows").starts_with("x.slt:2:1: unexpected \"rows\""));
        assert!(error("step q PT").contains("---- is missing"));
        assert!(error("crash at sink.after hit 0").contains("hits count from 1"));
        assert!(error("clock sett 1").contains("did you mean \"set\"?"));
        assert!(error("feed s").contains("feed without rows"));
        assert!(error("crash at sink.after torn").contains("how many bytes are left is missing"));
        assert!(error("progress q\ninput_rows 3").starts_with("x.slt:2:1: \"input_rows 3\" compares nothing"));
    }

    #[test]
    fn a_program_has_output_errors_and_an_exit_code() {
        let (own, _) = read("shell -c 'SELECT 1'\n----\n1\n\n---- stderr\nbad\n---- exit 2").unwrap();
        let Own::Program(program) = own else { panic!("{own:?}") };
        assert_eq!(program.arguments, ["-c", "SELECT 1"]);
        assert_eq!((program.output, program.errors, program.exit), (vec!["1".into()], Some(vec!["bad".into()]), 2));
    }
}
