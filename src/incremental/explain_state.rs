//! EXPLAIN STATE: what each operator remembers, what bounds it, and where nothing does, the clause that would.

use arrow::datatypes::Schema;

use super::IncrementalPlan;
use crate::operator::{Role, StateSpec};
use crate::parser::OutputMode;

/// One state as EXPLAIN STATE shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExplainedState {
    /// As in SHOW STATE.
    pub name: String,
    pub unbounded: bool,
    lines: Vec<String>,
}

/// What a query's operators remember, the sink's side first. `table`: the result table, whose rows are kept with them.
pub fn explain_state(plan: &IncrementalPlan, table: Option<&str>) -> Vec<ExplainedState> {
    let mut all = Vec::new();
    if let Some(table) = table {
        let lines = vec![
            format!("result: the rows of table {table}, for its next start"),
            "  state: one row a row of the result".to_string(),
        ];
        all.push(ExplainedState { name: "result".into(), unbounded: false, lines });
    }
    for node in plan.operators.iter().rev() {
        let describes = node.spec.describe();
        for state in node.spec.states() {
            let does = match &state.role {
                Role::Own => describes.first().cloned().unwrap_or_default(),
                Role::Part(serves) => format!("a part of the operator's memory, for {serves}"),
                Role::InFront(does) => does.clone(),
            };
            let mut lines = vec![format!("{}: {does}", state.name()), format!("  state: {}", state.bound)];
            let unbounded = is_unbounded(&state);
            if unbounded {
                lines.push(format!("  bounded by: {}", way_out(&state, plan.mode)));
            }
            if state.role == Role::Own {
                lines.extend(describes.iter().skip(1).map(|line| format!("  {line}")));
            }
            all.push(ExplainedState { name: state.name().to_string(), unbounded, lines });
        }
    }
    all
}

/// States as text. `rows`: how many rows one holds now, where that is known.
pub fn state_text(states: &[ExplainedState], rows: impl Fn(&str) -> Option<u64>) -> String {
    let unbounded: Vec<&str> = states.iter().filter(|state| state.unbounded).map(|state| state.name.as_str()).collect();
    let mut lines = vec![match (states.len(), unbounded.len()) {
        (0, _) => "nothing is remembered between batches".to_string(),
        (_, 0) => "every state is bounded".to_string(),
        (all, n) => {
            format!("UNBOUNDED: {} ({n} of {all} state{})", unbounded.join(", "), if all == 1 { "" } else { "s" })
        }
    }];
    for state in states {
        lines.extend(state.lines.iter().cloned());
        lines.extend(rows(&state.name).map(|rows| format!("  rows now: {rows}")));
    }
    lines.join("\n")
}

/// COMPLETE asks for all groups, and that is what it gets.
fn is_unbounded(state: &StateSpec) -> bool {
    state.bound.starts_with("UNBOUNDED") || state.bound.contains("kept for ever")
}

/// The clause that would bound a state.
fn way_out(state: &StateSpec, mode: OutputMode) -> String {
    const WINDOW: &str =
        "GROUP BY window(time, size) as well, of a time with a watermark (WITH WATERMARK time DELAY interval)";
    if mode == OutputMode::Complete {
        return match time_among(&state.keys) {
            Some(time) => format!("OUTPUT MODE UPDATE or APPEND, and a watermark on {time}"),
            None => format!("OUTPUT MODE UPDATE or APPEND, and {WINDOW}"),
        };
    }
    match (state.kind, time_among(&state.keys)) {
        ("symmetricHashJoin", _) => {
            "a watermark on both streams, and a condition that bounds the time between rows that match, such as a.ts BETWEEN \
             b.ts - INTERVAL '10 minutes' AND b.ts + INTERVAL '10 minutes'"
                .into()
        }
        _ if state.name().starts_with("top") => {
            "PARTITION BY a window, or a time, with a watermark; of one stream whose rows are not taken back".into()
        }
        ("over", _) if mode == OutputMode::Update => {
            "PARTITION BY a window of a watermarked time as well, in each OVER below too, or OUTPUT MODE APPEND, which remembers what frames reach".into()
        }
        ("over", _) => {
            "PARTITION BY a window of a watermarked time as well, or a frame that is bounded in time, such as RANGE BETWEEN INTERVAL \
             '1 hour' PRECEDING AND CURRENT ROW"
                .into()
        }
        (_, Some(time)) if time.ends_with(')') => format!(
            "a name and a watermark for {time}: FROM (SELECT *, {time} AS at FROM stream) … WITH WATERMARK at DELAY '0 seconds'"
        ),
        (_, Some(time)) => {
            format!("WITH WATERMARK {time} DELAY interval, or WATERMARK FOR {time} AS {time} - interval in CREATE STREAM")
        }
        ("dedupe", None) if state.role == Role::Own => {
            "a time with a watermark among the keys, or DISTINCT ON (…) WITHIN WATERMARK".into()
        }
        (_, None) => WINDOW.into(),
    }
}

/// A column of times among the keys, or the one that a window is made of.
fn time_among(keys: &Schema) -> Option<String> {
    keys.fields().iter().find_map(|field| {
        let name = field.name().split_once(':').map_or(field.name().as_str(), |(_, name)| name);
        let window = name.trim_start_matches("session_").strip_prefix("window(").or(name.strip_prefix("cumulate("));
        match window {
            Some(call) => call.split_once(',').map(|(time, _)| time.to_string()),
            None => (field.data_type().is_temporal() && !name.contains('(')).then(|| name.to_string()),
        }
    })
}
