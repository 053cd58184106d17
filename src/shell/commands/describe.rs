//! What there is: `\d` and its kin. Each is a SHOW or DESCRIBE, whose rows a pattern may choose from.

use arrow::array::{AsArray, BooleanArray, RecordBatch};
use arrow::compute::{cast, filter_record_batch};
use arrow::datatypes::DataType;

use super::{Call, Entry, Takes};
use crate::clock::Stopwatch;
use crate::display::row_texts;
use crate::error::{Error, Result};
use crate::session::Answer;
use crate::shell::runner::{Flow, Shell};

/// Everything that SHOW lists under a name.
const KINDS: [&str; 5] = ["STREAMS", "TABLES", "VIEWS", "SINKS", "QUERIES"];

const SCHEMAS: &str =
    "SELECT DISTINCT catalog_name AS catalog, schema_name AS name FROM information_schema.schemata ORDER BY 1, 2";
const CATALOGS: &str = "SELECT DISTINCT catalog_name AS name FROM information_schema.schemata ORDER BY 1";

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        names: &["\\d", ".tables", ".schema"],
        arguments: "[NAME|PATTERN]",
        help: "list streams, tables, views, sinks and queries, or describe one; in a pattern * is any text, ? one character",
        takes: Takes::Words,
        run: |shell, call| match call.at_most_one()? {
            None if call.name == ".schema" => all_made(shell),
            None => list_all(shell, None),
            Some(pattern) if is_pattern(pattern) => list_all(shell, Some(pattern)),
            Some(name) => next(shell.run_internal(&format!("DESCRIBE {}", identifier(name)))),
        },
    },
    Entry {
        names: &["\\d+"],
        arguments: "NAME",
        help: "describe one, with the statement that made it",
        takes: Takes::Words,
        run: |shell, call| {
            let name = identifier(call.one()?);
            shell.run_internal(&format!("DESCRIBE {name}"))?;
            let made = shell.session.made_by(&plain(&name));
            made.map_or(Ok(()), |sql| shell.print_text(&format!("{sql};")))?;
            Ok(Flow::Next)
        },
    },
    Entry {
        names: &["\\ds"],
        arguments: "[PATTERN]",
        help: "list streams",
        takes: Takes::Words,
        run: |shell, call| list(shell, &call, "SHOW STREAMS"),
    },
    Entry {
        names: &["\\dt"],
        arguments: "[PATTERN]",
        help: "list tables",
        takes: Takes::Words,
        run: |shell, call| list(shell, &call, "SHOW TABLES"),
    },
    Entry {
        names: &["\\dv"],
        arguments: "[PATTERN]",
        help: "list views",
        takes: Takes::Words,
        run: |shell, call| list(shell, &call, "SHOW VIEWS"),
    },
    Entry {
        names: &["\\df"],
        arguments: "[PATTERN]",
        help: "list functions; \\h NAME documents one",
        takes: Takes::Words,
        run: |shell, call| list(shell, &call, "SHOW FUNCTIONS"),
    },
    Entry {
        names: &["\\dn"],
        arguments: "[PATTERN]",
        help: "list schemas",
        takes: Takes::Words,
        run: |shell, call| list(shell, &call, SCHEMAS),
    },
    Entry {
        names: &["\\l", ".databases"],
        arguments: "[PATTERN]",
        help: "list catalogs",
        takes: Takes::Words,
        run: |shell, call| list(shell, &call, CATALOGS),
    },
];

fn next(done: Result<()>) -> Result<Flow> {
    done.map(|()| Flow::Next)
}

/// `\d`: everything there is, kind by kind.
fn list_all(shell: &mut Shell, pattern: Option<&str>) -> Result<Flow> {
    let mut found = false;
    for kind in KINDS {
        let (answer, rows) = chosen(shell, &format!("SHOW {kind}"), pattern)?;
        if rows > 0 {
            found = true;
            shell.confirm(&kind.to_lowercase());
            shell.print(answer, false, &Stopwatch::start())?;
        }
    }
    match pattern {
        _ if found => {}
        Some(pattern) => shell.confirm(&format!("nothing is called {pattern}")),
        None => shell.confirm("nothing is created yet"),
    }
    Ok(Flow::Next)
}

/// The statements that made all there is, in the order of the lists.
fn all_made(shell: &mut Shell) -> Result<Flow> {
    let mut made = Vec::new();
    for kind in KINDS {
        let Answer::Rows { rows, .. } = shell.ask(&format!("SHOW {kind}"))? else { continue };
        for batch in rows {
            let names = row_texts(&batch?)?.into_iter().filter_map(|row| row.into_iter().next().flatten());
            made.extend(names.filter_map(|name| shell.session.made_by(&name)));
        }
    }
    if made.is_empty() {
        shell.confirm("nothing is created yet");
        return Ok(Flow::Next);
    }
    next(shell.print_text(&made.iter().map(|sql| format!("{sql};\n")).collect::<String>()))
}

fn list(shell: &mut Shell, call: &Call<'_>, sql: &str) -> Result<Flow> {
    let (answer, _) = chosen(shell, sql, call.at_most_one()?)?;
    shell.print(answer, false, &Stopwatch::start())?;
    Ok(Flow::Next)
}

/// The rows of an answer whose name matches, and how many these are.
fn chosen(shell: &mut Shell, sql: &str, pattern: Option<&str>) -> Result<(Answer, usize)> {
    let Answer::Rows { schema, rows, notices } = shell.ask(sql)? else {
        return Err(Error::internal(format!("{sql} answered no rows")));
    };
    let at = schema.fields().iter().position(|field| field.name() == "name").unwrap_or(0);
    let mut batches = Vec::new();
    for batch in rows {
        let batch = batch?;
        batches.push(pattern.map_or(Ok(batch.clone()), |pattern| matching(&batch, at, pattern))?);
    }
    let count = batches.iter().map(RecordBatch::num_rows).sum();
    Ok((Answer::Rows { schema, rows: Box::new(batches.into_iter().map(Ok)), notices }, count))
}

fn matching(batch: &RecordBatch, column: usize, pattern: &str) -> Result<RecordBatch> {
    let names = cast(batch.column(column), &DataType::Utf8)?;
    let keep: BooleanArray =
        names.as_string::<i32>().iter().map(|name| name.map(|name| matches(pattern, name))).collect();
    Ok(filter_record_batch(batch, &keep)?)
}

fn is_pattern(word: &str) -> bool {
    !word.starts_with('"') && word.contains(['*', '?'])
}

/// Whether the name is as the pattern has it; a pattern without `*` and `?` is the name itself.
fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    // Where the last star stood, and what it has taken so far.
    let (mut p, mut n, mut star) = (0, 0, None);
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(c) if *c == '?' || c.eq_ignore_ascii_case(&name[n]) => {
                p += 1;
                n += 1;
            }
            _ => match &mut star {
                Some((at, taken)) => {
                    *taken += 1;
                    (p, n) = (*at + 1, *taken);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

/// A name as SQL wants it: what is neither a plain word nor quoted is quoted.
pub(super) fn identifier(word: &str) -> String {
    let quoted = word.starts_with('"') && word.len() > 1;
    let plain = word.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '.');
    if quoted || plain { word.to_string() } else { format!("\"{}\"", word.replace('"', "\"\"")) }
}

/// The name that an identifier stands for.
fn plain(identifier: &str) -> String {
    match identifier.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(inside) => inside.replace("\"\"", "\""),
        None => identifier.to_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_choose_names() {
        for (pattern, name, chosen) in [
            ("bids", "bids", true),
            ("bids", "bids2", false),
            ("b*", "bids", true),
            ("*d*", "bids", true),
            ("*x*", "bids", false),
            ("b?ds", "bids", true),
            ("*b*ds", "abbxds", true),
            ("B*", "bids", true),
            ("*", "", true),
            ("?", "", false),
        ] {
            assert_eq!(matches(pattern, name), chosen, "{pattern} {name}");
        }
    }

    #[test]
    fn names_are_quoted_where_they_have_to_be() {
        assert_eq!(identifier("bids"), "bids");
        assert_eq!(identifier("\"A b\""), "\"A b\"");
        assert_eq!(identifier("A b"), "\"A b\"");
        assert_eq!((plain("\"A \"\"b\""), plain("Bids")), ("A \"b".to_string(), "bids".to_string()));
    }
}
