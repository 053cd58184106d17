//! Queries at work: short words for the statements that control them.

use super::describe::identifier;
use super::{Call, Entry, Takes};
use crate::error::Result;
use crate::shell::runner::{Flow, Shell};
use crate::shell::settings::turned;
use crate::shell::variables::quoted;

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        names: &["\\queries", ".queries"],
        arguments: "",
        help: "SHOW QUERIES",
        takes: Takes::Words,
        run: |shell, call| {
            call.none()?;
            run(shell, "SHOW QUERIES".to_string())
        },
    },
    Entry {
        names: &["\\progress", ".progress"],
        arguments: "[QUERY]",
        help: "what all queries do, live; without a terminal SHOW PROGRESS. Of one query its last batches",
        takes: Takes::Words,
        run: |shell, call| {
            let sql = match call.at_most_one()? {
                Some(query) => format!("SHOW PROGRESS FOR {}", identifier(query)),
                None if shell.has_views() => "SHOW PROGRESS LIVE".to_string(),
                None => "SHOW PROGRESS".to_string(),
            };
            run(shell, sql)
        },
    },
    Entry {
        names: &["\\live", ".live"],
        arguments: "[QUERY]",
        help: "the live view of a query, or of the only one that writes to the console",
        takes: Takes::Words,
        run: |shell, call| {
            let ending = shell.ending.clone();
            let _foreground = ending.foreground("\\live");
            shell.live(call.at_most_one()?).map(|()| Flow::Next)
        },
    },
    Entry {
        names: &["\\tail", ".tail"],
        arguments: "QUERY [on|off]",
        help: "print the batches of a query whose live view was left",
        takes: Takes::Words,
        run: |shell, call| {
            let (query, on) = match call.words.as_slice() {
                [query] => (query, None),
                [query, on] => (query, Some(turned(Some(on), false)?)),
                _ => return Err(call.usage()),
            };
            let on = shell.tail(query, on)?;
            shell.confirm(&format!("the batches of {query} are {}", if on { "printed" } else { "not printed" }));
            Ok(Flow::Next)
        },
    },
    Entry {
        names: &["\\attach", ".attach"],
        arguments: "QUERY",
        help: "WATCH QUERY: its batches, until Ctrl-C",
        takes: Takes::Words,
        run: |shell, call| {
            let query = identifier(call.one()?);
            run(shell, format!("WATCH {query}"))
        },
    },
    Entry {
        names: &["\\stop", ".stop"],
        arguments: "QUERY|all",
        help: "STOP QUERY, gracefully",
        takes: Takes::Words,
        run: |shell, call| {
            let sql = match call.one()? {
                all if all.eq_ignore_ascii_case("all") => "STOP ALL".to_string(),
                query => format!("STOP QUERY {}", identifier(query)),
            };
            run(shell, sql)
        },
    },
    Entry {
        names: &["\\step", ".step"],
        arguments: "QUERY [BATCHES]",
        help: "STEP QUERY",
        takes: Takes::Words,
        run: |shell, call| {
            let sql = match call.words.as_slice() {
                [query] => format!("STEP QUERY {}", identifier(query)),
                [query, batches] => format!("STEP QUERY {} {batches} BATCHES", identifier(query)),
                _ => return Err(call.usage()),
            };
            run(shell, sql)
        },
    },
    Entry {
        names: &["\\clock", ".clock"],
        arguments: "[INTERVAL|to TIMESTAMP]",
        help: "ADVANCE CLOCK, or what the clock is",
        takes: Takes::Words,
        run: |shell, call| {
            let sql = match call.words.split_first() {
                None => "SHOW clock".to_string(),
                Some((to, time)) if to.eq_ignore_ascii_case("to") => {
                    format!("ADVANCE CLOCK TO {}", quoted(&time.join(" "), '\''))
                }
                Some(_) => format!("ADVANCE CLOCK BY {}", quoted(&call.words.join(" "), '\'')),
            };
            run(shell, sql)
        },
    },
    Entry {
        names: &["\\feed", ".feed"],
        arguments: "STREAM (VALUE, …) [, …]",
        help: "INSERT INTO STREAM VALUES …",
        takes: Takes::Line,
        run: feed,
    },
    Entry {
        names: &["\\record", ".record"],
        arguments: "[FILE.slt]",
        help: "write what is typed and answered from here on as a test; without a file, end that",
        takes: Takes::Words,
        run: |shell, call| {
            let file = call.at_most_one()?.map(str::to_string);
            shell.record(file).map(|()| Flow::Next)
        },
    },
];

fn run(shell: &mut Shell, sql: String) -> Result<Flow> {
    shell.run_internal(&sql).map(|()| Flow::Next)
}

fn feed(shell: &mut Shell, call: Call<'_>) -> Result<Flow> {
    let line = call.line.trim_end_matches(';');
    let rows = line.find('(').filter(|at| !line[..*at].trim().is_empty()).ok_or_else(|| call.usage())?;
    let (stream, rows) = line.split_at(rows);
    run(shell, format!("INSERT INTO {} VALUES {rows}", identifier(stream.trim())))
}
