//! A file → nodes: our records are lifted out, the crate parses the rest with true line numbers, and both are put in order.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sqllogictest::{Condition, Connection, ParseErrorKind, Record};

use super::head::Head;
use super::own::{self, Lines, SEPARATOR};
use super::place::{Broken, Place};
use super::record::{Block, Matrix, Own};
use super::run::NAME_IN_REGEX;
use super::structure::{self, Opened};
use super::values::Letter;
use crate::clock::Millis;
use crate::error::closest;

/// A test file, read.
#[derive(Debug)]
pub struct Script {
    pub file: Arc<str>,
    pub mode: Mode,
    pub nodes: Vec<Node>,
}

/// What the header of a file asks for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mode {
    /// `control clock manual TIME`: test mode.
    pub clock: Option<Millis>,
    /// Cells are compared exactly, and types are checked.
    pub exact: bool,
}

/// A record, or a block of records.
#[derive(Debug, Clone)]
pub struct Node {
    pub place: Place,
    /// The record's first line.
    pub head: String,
    pub conditions: Vec<Condition>,
    pub body: Body,
    /// What it expects.
    pub block: Block,
}

/// What a node is.
#[derive(Debug, Clone)]
pub enum Body {
    Plain(Record<Letter>),
    Own(Own),
    Loop { variable: String, values: Vec<String>, concurrent: bool, nodes: Vec<Node> },
    Scenario { name: String, matrix: Matrix, nodes: Vec<Node> },
}

/// Records of the crate that have lines below their first.
const LONG: &[&str] = &["statement", "query", "system", "let"];
/// Records of the crate of one line.
const SHORT: &[&str] =
    &["include", "halt", "subtest", "sleep", "skipif", "onlyif", "connection", "control", "hash-threshold"];
/// What ends what a program prints.
const EXIT: &str = "---- exit ";
/// How deep files may include files.
const DEEPEST: usize = 16;

/// Reads a file and what it includes.
///
/// # Errors
/// It can't be read, or is no test.
pub fn read(path: &Path) -> Result<Script, Broken> {
    let file: Arc<str> = path.display().to_string().into();
    let mut mode = None;
    let flat = read_flat(path, &Place::top(&file, None), &mut mode)?;
    let nodes = structure::nest(flat)?;
    structure::refuse_namesakes(&nodes, &mut BTreeMap::new())?;
    Ok(Script { file, mode: mode.unwrap_or_default(), nodes })
}

/// A node, or what opens or closes a block.
#[derive(Debug)]
pub enum Flat {
    Node(Node),
    Mark(Opened),
}

fn read_flat(path: &Path, top: &Place, mode: &mut Option<Mode>) -> Result<Vec<Flat>, Broken> {
    let text = std::fs::read_to_string(path).map_err(|e| Broken::new(top, None, format!("can't be read: {e}")))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let lines: Vec<&str> = text.lines().collect();
    let mut lift = Lift::new(top, &lines);
    lift.all()?;
    let included = mode.is_some();
    let mode = *mode.get_or_insert(lift.mode);
    if included && lift.mode != Mode::default() && lift.mode != mode {
        return Err(Broken::new(top, None, "control clock and control compare belong to the including file"));
    }
    match mode.clock {
        Some(_) => lift.refuse_waiting()?,
        None => lift.refuse_steps()?,
    }
    let records = sqllogictest::parse_with_name::<Letter>(&lift.rest.join("\n"), &*top.file);
    let records = records.map_err(|error| lift.explain(&error))?;
    lift.merge(records, path, &mut Some(mode))
}

/// One file being taken apart.
struct Lift<'a> {
    top: &'a Place,
    lines: &'a [&'a str],
    /// What the crate will see.
    rest: Vec<String>,
    mode: Mode,
    /// What was lifted: its line from 0.
    lifted: Vec<(usize, Flat)>,
    /// Lines of `control` records that the crate sees, which it gives no place.
    controls: Vec<usize>,
    /// The blocks of the crate's records by line from 0.
    blocks: Vec<(usize, Block)>,
    conditions: Vec<(usize, Condition)>,
    connection: Option<usize>,
    /// A record other than `control` was seen: the head of the file is over.
    began: bool,
}

impl<'a> Lift<'a> {
    fn new(top: &'a Place, lines: &'a [&'a str]) -> Self {
        let rest = lines.iter().map(ToString::to_string).collect();
        let (lifted, controls, blocks, conditions) = Default::default();
        let (mode, connection) = (Mode::default(), None);
        Lift { top, lines, rest, mode, lifted, controls, blocks, conditions, connection, began: false }
    }

    fn all(&mut self) -> Result<(), Broken> {
        let mut at = 0;
        while at < self.lines.len() {
            at = self.one(at)?;
        }
        self.refuse_conditions("the end of the file")
    }

    /// Looks at the record at a line; answers where the next may begin.
    fn one(&mut self, at: usize) -> Result<usize, Broken> {
        let line = self.lines[at];
        let place = self.place(at);
        let mut head = Head::new(place.clone(), line);
        let Some(word) = head.next().filter(|_| !line.starts_with('#')) else { return Ok(at + 1) };
        self.began |= word != "control";
        let takes_conditions = ["skipif", "onlyif", "connection"].contains(&word)
            || LONG.contains(&word)
            || own::NAMES.contains(&word)
            || structure::OPENING.contains(&word);
        if !takes_conditions && records().any(|name| name == word) {
            self.refuse_conditions(word)?;
        }
        match word {
            _ if LONG.contains(&word) => {
                (self.conditions, self.connection) = Default::default();
                if word == "statement" {
                    one_of(&mut head.clone(), &["ok", "count", "error"])?;
                }
                self.skip(at, word, &head)
            }
            "subtest" => {
                head.want("the subtest's name")?;
                head.end().map_err(|error| error.help("a name is one word: write _ for a space"))?;
                Ok(at + 1)
            }
            "control" => self.control(at, head),
            "skipif" | "onlyif" => {
                let label = head.want("a label")?.to_string();
                let condition =
                    if word == "skipif" { Condition::SkipIf { label } } else { Condition::OnlyIf { label } };
                self.conditions.push((at, condition));
                Ok(at + 1)
            }
            "connection" => {
                self.connection = Some(at);
                Ok(at + 1)
            }
            _ if SHORT.contains(&word) => Ok(at + 1),
            _ if own::NAMES.contains(&word) => self.own(at, word, head),
            _ if structure::NAMES.contains(&word) => {
                let mark = structure::mark(word, &mut head)?;
                let conditions = self.conditions();
                self.blank(at..at + 1);
                self.lifted.push((at, Flat::Mark(Opened { place, head: line.to_string(), conditions, mark })));
                Ok(at + 1)
            }
            other => {
                let error = Broken::new(&place, Some(1), format!("there is no record {other:?}"));
                let longer = records().find(|name| other.len() > 2 && name.starts_with(other));
                Err(match longer.or_else(|| closest(other, records())) {
                    Some(near) => error.help(format!("did you mean {near:?}?")),
                    None => error.help("a record begins at the start of a line and ends at a blank one"),
                })
            }
        }
    }

    /// The end of a record of the crate that begins at a line, by the crate's own rules; notes what it expects.
    fn skip(&mut self, start: usize, word: &str, head: &Head<'_>) -> Result<usize, Broken> {
        if head.clone().next() == Some("error") {
            self.rest[start] = self.lines[start].replace("${", NAME_IN_REGEX);
        }
        let blank = |at: usize| self.lines.get(at).is_none_or(|line| line.is_empty());
        let mut at = start + 2;
        while at < self.lines.len() && !blank(at) && (self.lines[at] != SEPARATOR || word == "let") {
            at += 1;
        }
        let separated = self.lines.get(at) == Some(&SEPARATOR);
        let from = at + usize::from(separated);
        let rows = word == "query" && head.peek() != Some("error");
        let mut end = from;
        if separated {
            // Text ends at two blank lines, rows at one.
            while end < self.lines.len() && !(blank(end) && (rows || blank(end + 1))) {
                end += 1;
            }
        }
        let exits = (from..end).find(|at| word == "system" && separated && self.lines[*at].starts_with(EXIT));
        if let Some(exit) = exits {
            self.end_of_system(exit)?;
            end = exit;
        }
        let lines = from.min(self.lines.len())..end.min(self.lines.len());
        let swallows = if rows || exits.is_some() { None } else { self.swallows(lines.clone()) };
        self.blocks.push((start, Block { lines, separated, swallows }));
        Ok(exits.map_or(end, |exit| exit + 1))
    }

    /// Where the output of `system` ends at a line `---- exit 0`, the crate sees the two blank lines that it wants.
    fn end_of_system(&mut self, exit: usize) -> Result<(), Broken> {
        let place = self.place(exit);
        if self.lines[exit].split_whitespace().nth(2) != Some("0") || self.lines[exit].split_whitespace().count() != 3 {
            return Err(Broken::new(&place, Some(1), "a command of system ok ends with 0").help("---- exit 0"));
        }
        if self.lines.get(exit + 1).is_some_and(|line| !line.is_empty()) {
            return Err(Broken::new(&self.place(exit + 1), Some(1), format!("unexpected {:?}", self.lines[exit + 1]))
                .help("a record ends at a blank line"));
        }
        self.rest[exit] = String::new();
        Ok(())
    }

    /// The first of some lines, behind a blank one, with which another record would begin.
    fn swallows(&self, lines: std::ops::Range<usize>) -> Option<usize> {
        let begins = |at: usize| {
            let word = self.lines[at].split_whitespace().next().filter(|word| self.lines[at].starts_with(word));
            word.is_some_and(|word| records().any(|name| name == word))
        };
        lines.clone().find(|at| *at > lines.start && self.lines[at - 1].is_empty() && begins(*at))
    }

    fn control(&mut self, at: usize, mut head: Head<'_>) -> Result<usize, Broken> {
        let word = head.want("clock, compare, sortmode, resultmode or substitution")?;
        if self.began && matches!(word, "clock" | "compare") {
            let message = format!("control {word} in the middle of a file: it is of the whole file");
            return Err(Broken::new(&head.place, Some(1), message).help("write it above the first record"));
        }
        match word {
            "clock" => {
                if self.mode.clock.is_some() {
                    return Err(Broken::new(&head.place, Some(1), "a second control clock")
                        .help("clock set and clock advance move the clock"));
                }
                if !head.take("manual") {
                    return Err(head
                        .wrong("the clock of a test is manual")
                        .help("control clock manual 2026-01-01T00:00:00Z"));
                }
                let word = head.want("a time, such as 2026-01-01T00:00:00Z")?;
                let time = chrono::DateTime::parse_from_rfc3339(word);
                let time = time.map_err(|_| head.wrong(format!("{word:?} is no time such as 2026-01-01T00:00:00Z")))?;
                self.mode = Mode { clock: Some(time.timestamp_millis()), exact: true };
            }
            "compare" => {
                if !head.take("exact") {
                    return Err(head.wrong("\"exact\" is missing"));
                }
                self.mode.exact = true;
            }
            _ => {
                self.controls.push(at);
                return Ok(at + 1);
            }
        }
        head.end()?;
        self.blank(at..at + 1);
        Ok(at + 1)
    }

    fn own(&mut self, at: usize, word: &str, mut head: Head<'_>) -> Result<usize, Broken> {
        let end = self.end_of(at, word);
        let body = Lines { lines: &self.lines[at + 1..end], first: at + 1 };
        let (own, mut block) = own::parse(word, &mut head, body)?;
        if own::PROGRAMS.contains(&word) && !self.lines[end - 1].starts_with("---- exit ") {
            block.swallows = self.swallows(at + 1..end);
        }
        let conditions = self.conditions();
        self.blank(at..end);
        let head = self.lines[at].to_string();
        self.lifted
            .push((at, Flat::Node(Node { place: self.place(at), head, conditions, body: Body::Own(own), block })));
        Ok(end)
    }

    /// Takes the conditions of a record of ours, which the crate may not see.
    fn conditions(&mut self) -> Vec<Condition> {
        let conditions = std::mem::take(&mut self.conditions);
        for line in conditions.iter().map(|(line, _)| *line).chain(self.connection.take()) {
            self.blank(line..line + 1);
        }
        conditions.into_iter().map(|(_, condition)| condition).collect()
    }

    /// The crate would keep a condition for the next statement.
    fn refuse_conditions(&self, above: &str) -> Result<(), Broken> {
        let Some((at, _)) = self.conditions.first() else { return Ok(()) };
        let message = format!("{:?} stands above {above}, which has no conditions", self.lines[*at]);
        Err(Broken::new(&self.place(*at), Some(1), message)
            .help("skipif and onlyif are of the statement, query, scenario or loop, … below them"))
    }

    /// The end of a record of ours: a blank line; of what a program prints, `---- exit` or two of them.
    fn end_of(&self, at: usize, word: &str) -> usize {
        let blank = |at: usize| self.lines.get(at).is_none_or(|line| line.is_empty());
        let prints = own::PROGRAMS.contains(&word);
        let mut end = at + 1;
        let mut separated = false;
        while end < self.lines.len() {
            let line = self.lines[end];
            separated |= line == SEPARATOR;
            if prints && line.starts_with("---- exit ") {
                return end + 1;
            }
            if blank(end) && (!prints || !separated || blank(end + 1)) {
                return end;
            }
            end += 1;
        }
        end
    }

    /// In test mode time does not pass by itself, so waiting for it is a mistake.
    fn refuse_waiting(&self) -> Result<(), Broken> {
        for (at, line) in self.rest.iter().enumerate() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let sleeps = words.first() == Some(&"sleep") && !self.is_below(at);
            let retries = self.blocks.iter().any(|(start, _)| *start == at) && words.contains(&"backoff");
            let above = at.checked_sub(1).map(|above| self.lines[above]);
            let reason = above.and_then(|above| above.strip_prefix("# flaky-ok:")).map(str::trim);
            if (sleeps || retries) && reason.is_none_or(str::is_empty) {
                let what = if sleeps { "sleep" } else { "retry" };
                let message = format!("{what} in a file whose clock is manual: nothing happens by itself there");
                return Err(Broken::new(&self.place(at), Some(1), message)
                    .help("use step and clock advance; or say why in the line above: # flaky-ok: reason"));
            }
        }
        Ok(())
    }

    /// Where time passes by itself nothing can be stepped.
    fn refuse_steps(&self) -> Result<(), Broken> {
        for (at, flat) in &self.lifted {
            if let Flat::Node(Node {
                body: Body::Own(Own::Step { .. } | Own::ClockSet(_) | Own::ClockAdvance(_)),
                ..
            }) = flat
            {
                let word = self.lines[*at].split_whitespace().next().unwrap_or_default();
                let message = format!("{word} in a file whose clock is the system's: its queries run by themselves");
                return Err(Broken::new(&self.place(*at), Some(1), message)
                    .help("begin the file with control clock manual 2026-01-01T00:00:00Z"));
            }
        }
        Ok(())
    }

    /// Whether a line belongs to a record that begins above it.
    fn is_below(&self, at: usize) -> bool {
        self.blocks.iter().any(|(start, block)| *start < at && at < block.lines.end.max(block.lines.start))
    }

    fn explain(&self, error: &sqllogictest::ParseError) -> Broken {
        let at = (error.location().line() as usize).saturating_sub(1);
        let line = self.lines.get(at).copied().unwrap_or_default();
        let column = match error.kind() {
            ParseErrorKind::UnexpectedToken(word)
            | ParseErrorKind::InvalidNumber(word)
            | ParseErrorKind::InvalidControl(word)
            | ParseErrorKind::InvalidDuration(word)
            | ParseErrorKind::InvalidSortMode(word)
            | ParseErrorKind::InvalidErrorMessage(word)
            | ParseErrorKind::InvalidVariableName(word) => {
                line.find(&word).map_or(1, |byte| line[..byte].chars().count() + 1)
            }
            _ => 1,
        };
        let broken = Broken::new(&self.place(at), Some(column), error.kind().to_string());
        match usage(line.split_whitespace().next().unwrap_or_default()) {
            Some(usage) => broken.help(usage),
            None => broken,
        }
    }

    /// All records in the order of their lines; included files in place.
    fn merge(
        mut self,
        records: Vec<Record<Letter>>,
        path: &Path,
        mode: &mut Option<Mode>,
    ) -> Result<Vec<Flat>, Broken> {
        let mut lifted = std::mem::take(&mut self.lifted).into_iter().peekable();
        let mut controls = std::mem::take(&mut self.controls).into_iter();
        let mut out = Vec::new();
        for record in records {
            let at = match line_of(&record) {
                Line::Known(line) => line,
                Line::Control => controls.next().unwrap_or_default(),
                Line::Nothing => continue,
            };
            while let Some((_, flat)) = lifted.next_if(|(line, _)| *line < at) {
                out.push(flat);
            }
            let place = self.place(at);
            if let Record::Include { filename, .. } = &record {
                include(filename, &place, path, mode, &mut out)?;
                continue;
            }
            let block = self.blocks.iter().find(|(start, _)| *start == at).map(|(_, block)| block.clone());
            let head = self.lines[at].to_string();
            let (conditions, block) = (Vec::new(), block.unwrap_or_default());
            out.push(Flat::Node(Node { place, head, conditions, body: Body::Plain(record), block }));
        }
        out.extend(lifted.map(|(_, flat)| flat));
        Ok(out)
    }

    fn place(&self, at: usize) -> Place {
        self.top.at(at + 1)
    }

    fn blank(&mut self, lines: std::ops::Range<usize>) {
        for line in lines {
            self.rest[line] = "#".to_string();
        }
    }
}

/// The first words of all records.
fn records() -> impl Iterator<Item = &'static str> {
    LONG.iter().chain(SHORT).chain(own::NAMES).chain(structure::NAMES).copied()
}

/// How a record of the crate is written.
fn usage(word: &str) -> Option<&'static str> {
    Some(match word {
        "control" => {
            "control clock manual TIME, compare exact, sortmode nosort|rowsort|valuesort, resultmode rowwise|valuewise, substitution on|off"
        }
        "statement" => "statement ok, statement count N, statement error [REGEX], and the SQL below it",
        "query" => "query TYPES [nosort|rowsort|valuesort] [LABEL], or query error [REGEX], the SQL, ---- and the rows",
        "system" => "system ok, the command below it, ---- and what it prints",
        "let" => "let NAME, NAME …, and the SQL below it",
        "hash-threshold" => "hash-threshold N",
        "sleep" => "sleep 1s",
        "include" => "include FILE",
        "connection" => "connection NAME",
        "halt" => "halt, alone",
        _ => return None,
    })
}

/// Takes a word that must be one of these.
fn one_of(head: &mut Head<'_>, known: &[&str]) -> Result<(), Broken> {
    let rest = head.clone();
    let word = head.want(&known.join(", "))?;
    if known.contains(&word) {
        return Ok(());
    }
    let error = rest.wrong(format!("unexpected {word:?}: {} is wanted", known.join(", ")));
    Err(match closest(word, known.iter().copied()) {
        Some(near) => error.help(format!("did you mean {near:?}?")),
        None => error,
    })
}

fn include(
    pattern: &str,
    place: &Place,
    path: &Path,
    mode: &mut Option<Mode>,
    out: &mut Vec<Flat>,
) -> Result<(), Broken> {
    let mut depth = 0;
    let mut upper = place.upper.as_ref();
    while let Some(place) = upper {
        depth += 1;
        upper = place.upper.as_ref();
    }
    if depth == DEEPEST {
        return Err(Broken::new(place, Some(1), format!("files are included {DEEPEST} deep")));
    }
    let beside = path.parent().unwrap_or(Path::new("")).join(pattern);
    let found = glob::glob(&beside.display().to_string());
    let found = found.map_err(|e| Broken::new(place, Some(9), format!("{pattern:?} is no pattern: {e}")))?;
    let mut files: Vec<PathBuf> =
        found.collect::<Result<_, _>>().map_err(|e| Broken::new(place, Some(9), format!("{pattern}: {e}")))?;
    files.sort();
    if files.is_empty() {
        return Err(Broken::new(place, Some(9), format!("no file matches {}", beside.display())));
    }
    for file in files {
        refuse_itself(&file, place)?;
        let top = Place::top(&file.display().to_string(), Some(Arc::new(place.clone())));
        out.extend(read_flat(&file, &top, mode)?);
    }
    Ok(())
}

/// A file that is included by what it includes would never end.
fn refuse_itself(file: &Path, place: &Place) -> Result<(), Broken> {
    let whole = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let file = whole(file);
    let mut above = Some(place);
    while let Some(at) = above {
        if whole(Path::new(&*at.file)) == file {
            return Err(Broken::new(place, Some(9), format!("{} includes itself", at.file)));
        }
        above = at.upper.as_deref();
    }
    Ok(())
}

enum Line {
    Known(usize),
    Control,
    /// It does nothing by itself.
    Nothing,
}

fn line_of(record: &Record<Letter>) -> Line {
    match record {
        Record::Include { loc, .. }
        | Record::Statement { loc, .. }
        | Record::Query { loc, .. }
        | Record::System { loc, .. }
        | Record::Sleep { loc, .. }
        | Record::Subtest { loc, .. }
        | Record::Halt { loc }
        | Record::HashThreshold { loc, .. }
        | Record::Let { loc, .. } => Line::Known((loc.line() as usize).saturating_sub(1)),
        Record::Control(_) => Line::Control,
        _ => Line::Nothing,
    }
}

/// How many records there are.
pub fn count(nodes: &[Node]) -> usize {
    let one = |node: &Node| match &node.body {
        Body::Plain(_) | Body::Own(_) => 1,
        Body::Loop { nodes, .. } | Body::Scenario { nodes, .. } => 1 + count(nodes),
    };
    nodes.iter().map(one).sum()
}

/// The names of subtests and scenarios, in their order.
pub fn names(nodes: &[Node]) -> Vec<&str> {
    let mut names = Vec::new();
    for node in nodes {
        match &node.body {
            Body::Plain(Record::Subtest { name, .. }) => names.push(name.as_str()),
            Body::Plain(_) | Body::Own(_) => {}
            Body::Loop { nodes, .. } => names.extend(self::names(nodes)),
            Body::Scenario { name, nodes, .. } => {
                names.push(name);
                names.extend(self::names(nodes));
            }
        }
    }
    names
}

/// The connection of a record means another session to other databases; here all of a file's share one.
pub fn on_one_connection(mut record: Record<Letter>) -> Record<Letter> {
    if let Record::Statement { connection, .. } | Record::Query { connection, .. } | Record::Let { connection, .. } =
        &mut record
    {
        *connection = Connection::Default;
    }
    record
}
