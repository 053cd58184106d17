//! Blocks of records: loops, and scenarios with their matrix.

use std::collections::BTreeMap;

use sqllogictest::Condition;

use super::head::Head;
use super::place::{Broken, Place};
use super::record::{Block, Crash, Matrix};
use super::script::{Body, Flat, Node};
use crate::checkpoint::failpoint::{Action, POINTS};
use crate::error::closest;

/// The first words of lines that open, close or describe a block.
pub const NAMES: &[&str] =
    &["loop", "foreach", "concurrentloop", "concurrentforeach", "endloop", "scenario", "end", "matrix"];

/// Those that open a block.
pub const OPENING: &[&str] = &["loop", "foreach", "concurrentloop", "concurrentforeach", "scenario"];

/// A loop of more rounds is a slip of the pen.
const MOST_ROUNDS: i64 = 1_000_000;

/// Such a line.
#[derive(Debug, Clone)]
pub enum Mark {
    Loop { variable: String, values: Vec<String>, concurrent: bool },
    EndLoop,
    Scenario(String),
    End,
    Matrix(Matrix),
}

/// Such a line in its place.
#[derive(Debug)]
pub struct Opened {
    pub place: Place,
    pub head: String,
    /// Of the whole block.
    pub conditions: Vec<Condition>,
    pub mark: Mark,
}

/// Reads such a line, whose first word was taken.
pub fn mark(word: &str, head: &mut Head<'_>) -> Result<Mark, Broken> {
    let mark = match word {
        "loop" | "concurrentloop" => {
            let variable = head.want("the variable")?.to_string();
            let (from, to) = (number(head)?, number(head)?);
            if to.saturating_sub(from) > MOST_ROUNDS {
                return Err(head.wrong(format!("more than {MOST_ROUNDS} rounds of a loop")));
            }
            if from >= to {
                return Err(head
                    .wrong(format!("a loop from {from} to {to} runs nothing"))
                    .help("its last round is the one before TO"));
            }
            let values = (from..to).map(|n| n.to_string()).collect();
            Mark::Loop { variable, values, concurrent: word == "concurrentloop" }
        }
        "foreach" | "concurrentforeach" => {
            let variable = head.want("the variable")?.to_string();
            let values: Vec<String> = head.remainder().split_whitespace().map(str::to_string).collect();
            if values.is_empty() {
                return Err(head.wrong("a loop over no values runs nothing").help(format!("{word} {variable} A B")));
            }
            Mark::Loop { variable, values, concurrent: word == "concurrentforeach" }
        }
        "endloop" => Mark::EndLoop,
        "scenario" => Mark::Scenario(head.want("the scenario's name")?.to_string()),
        "end" => Mark::End,
        _ => Mark::Matrix(matrix(head)?),
    };
    head.end()?;
    Ok(mark)
}

fn number(head: &mut Head<'_>) -> Result<i64, Broken> {
    let word = head.want("a number")?;
    word.parse().map_err(|_| head.wrong(format!("{word:?} is no number")))
}

/// `crash=all parallelism=1,2,4 batch_rows=1,3,1000 restart=each-step`
fn matrix(head: &mut Head<'_>) -> Result<Matrix, Broken> {
    const KEYS: &[&str] = &["crash", "parallelism", "batch_rows", "restart"];
    let mut matrix = Matrix::default();
    let mut given: Vec<&str> = Vec::new();
    while let Some(word) = head.next() {
        let Some((key, values)) = word.split_once('=').filter(|(_, values)| !values.is_empty()) else {
            return Err(head.wrong(format!("{word:?} is no key=value")));
        };
        if given.contains(&key) {
            return Err(head.wrong(format!("{key} is given twice")).help(format!("{key}=A,B crosses both")));
        }
        given.push(key);
        let values: Vec<&str> = values.split(',').collect();
        let numbers = |head: &Head<'_>| -> Result<Vec<u64>, Broken> {
            let one = |v: &&str| v.parse().ok().filter(|n| *n > 0);
            values
                .iter()
                .map(one)
                .collect::<Option<_>>()
                .ok_or_else(|| head.wrong(format!("{key} wants numbers from 1")))
        };
        match key {
            "crash" => matrix.crashes = crashes(head, &values)?,
            "parallelism" => matrix.parallelism = numbers(head)?,
            "batch_rows" => matrix.batch_rows = numbers(head)?.into_iter().map(|n| Some(n as usize)).collect(),
            "restart" => {
                let one = |v: &&str| match *v {
                    "each-step" => Ok(true),
                    "none" => Ok(false),
                    other => Err(head.wrong(format!("{other:?}: restart is each-step or none"))),
                };
                matrix.restart_each_step = values.iter().map(one).collect::<Result<_, _>>()?;
            }
            other => {
                let error = head.wrong(format!("{other:?} can't be crossed"));
                let near = closest(other, KEYS.iter().copied()).map(|near| format!("did you mean {near:?}?"));
                return Err(error.help(near.unwrap_or_else(|| KEYS.join(", "))));
            }
        }
    }
    if given.is_empty() {
        return Err(head.wrong("a matrix that crosses nothing").help("matrix crash=all parallelism=1,2"));
    }
    Ok(matrix)
}

/// `all`, `none`, and points, each with what it does behind a colon: `state.write:torn:5`.
fn crashes(head: &Head<'_>, values: &[&str]) -> Result<Vec<Option<Crash>>, Broken> {
    let mut out = Vec::new();
    for value in values {
        match *value {
            "all" => {
                let kill = |point| Some(Crash { point, action: Action::Kill, named: false });
                out.extend([None].into_iter().chain(POINTS.iter().map(|point| kill(point))));
            }
            "none" => out.push(None),
            value => out.push(Some(crash(head, value)?)),
        }
    }
    Ok(out)
}

fn crash(head: &Head<'_>, value: &str) -> Result<Crash, Broken> {
    let (name, action) = value.split_once(':').unwrap_or((value, "kill"));
    let Some(point) = POINTS.iter().find(|point| **point == name) else {
        let error = head.wrong(format!("there is no failpoint {name:?}"));
        return Err(match closest(name, POINTS.iter().copied()) {
            Some(near) => error.help(format!("did you mean {near:?}? SHOW FAILPOINTS lists them all")),
            None => error.help("SHOW FAILPOINTS lists them all"),
        });
    };
    let action = match (action, action.split_once(':')) {
        ("kill", _) => Action::Kill,
        ("error", _) => Action::Error,
        ("enospc", _) => Action::Enospc,
        ("lost-fsync" | "lost_fsync", _) => Action::LostFsync,
        (_, Some(("torn", bytes))) if bytes.parse::<u64>().is_ok() => Action::Torn(bytes.parse().unwrap_or_default()),
        _ => {
            let error = head.wrong(format!("{action:?} is nothing that a failpoint does"));
            return Err(error.help("kill, error, torn:BYTES, enospc or lost-fsync"));
        }
    };
    if !matches!(action, Action::Kill | Action::Error) && !name.ends_with(".write") {
        let error = head.wrong(format!("failpoint {name} is no write: it can only kill or fail with an error"));
        return Err(error.help("torn, enospc and lost-fsync go with state.write, manifest.write, log.write"));
    }
    if name == "log.write" && matches!(action, Action::Torn(_) | Action::LostFsync) {
        let error = head.wrong("a log of which a part is missing is damaged, and refused: nothing goes on from it");
        return Err(error.help(
            "state.write takes torn and lost-fsync; crash at log.write torn, in a test of its own, shows the refusal",
        ));
    }
    Ok(Crash { point, action, named: true })
}

/// A block that is not closed yet.
struct Open {
    opened: Opened,
    nodes: Vec<Node>,
}

/// Puts records into the blocks that they stand in.
pub fn nest(flat: Vec<Flat>) -> Result<Vec<Node>, Broken> {
    let mut open: Vec<Open> = Vec::new();
    let mut top: Vec<Node> = Vec::new();
    for item in flat {
        let opened = match item {
            Flat::Node(node) => {
                open.last_mut().map_or(&mut top, |open| &mut open.nodes).push(node);
                continue;
            }
            Flat::Mark(opened) => opened,
        };
        let place = &opened.place;
        match opened.mark {
            Mark::Scenario(_) if open.iter().any(|open| matches!(open.opened.mark, Mark::Scenario(_))) => {
                return Err(Broken::new(place, Some(1), "a scenario in a scenario"));
            }
            Mark::Loop { .. } | Mark::Scenario(_) => open.push(Open { opened, nodes: Vec::new() }),
            Mark::EndLoop | Mark::End => {
                let closed = close(place, &opened.mark, open.pop())?;
                open.last_mut().map_or(&mut top, |open| &mut open.nodes).push(closed);
            }
            Mark::Matrix(crossed) => {
                let last = open.last_mut().map_or(&mut top, |open| &mut open.nodes).last_mut();
                let Some(Node { body: Body::Scenario { matrix, .. }, .. }) = last else {
                    return Err(Broken::new(place, Some(1), "a matrix follows the end of a scenario"));
                };
                if *matrix != Matrix::default() {
                    return Err(Broken::new(place, Some(1), "a second matrix of one scenario")
                        .help("write all axes in one line, or repeat the scenario under another name"));
                }
                *matrix = crossed;
            }
        }
    }
    match open.pop() {
        None => Ok(top),
        Some(Open { opened: Opened { place, head, .. }, .. }) => {
            Err(Broken::new(&place, Some(1), format!("{head:?} is not ended"))
                .help("endloop ends a loop, end a scenario"))
        }
    }
}

/// Two scenarios of one name would be one case, of which nobody could tell which has failed.
pub fn refuse_namesakes<'a>(nodes: &'a [Node], seen: &mut BTreeMap<&'a str, &'a Place>) -> Result<(), Broken> {
    for node in nodes {
        match &node.body {
            Body::Scenario { name, nodes, .. } => {
                if let Some(first) = seen.insert(name, &node.place) {
                    let message = format!("a second scenario {name}: the first one is at {first}");
                    return Err(Broken::new(&node.place, Some(10), message).help("give each a name of its own"));
                }
                refuse_namesakes(nodes, seen)?;
            }
            Body::Loop { nodes, .. } => refuse_namesakes(nodes, seen)?,
            Body::Plain(_) | Body::Own(_) => {}
        }
    }
    Ok(())
}

fn close(place: &Place, mark: &Mark, open: Option<Open>) -> Result<Node, Broken> {
    let wrong = Broken::new(
        place,
        Some(1),
        format!("{:?} ends nothing", if matches!(mark, Mark::End) { "end" } else { "endloop" }),
    );
    let Some(Open { opened: Opened { place, head, conditions, mark: opened }, nodes }) = open else {
        return Err(wrong);
    };
    let body = match (mark, opened) {
        (Mark::EndLoop, Mark::Loop { variable, values, concurrent }) => {
            Body::Loop { variable, values, concurrent, nodes }
        }
        (Mark::End, Mark::Scenario(name)) => Body::Scenario { name, matrix: Matrix::default(), nodes },
        _ => return Err(wrong.help(format!("{head:?} in line {} is open", place.line))),
    };
    Ok(Node { place, head, conditions, body, block: Block::default() })
}
