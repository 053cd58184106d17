//! What is done with a result: where it goes, and what its values become.

use std::time::Duration;

use super::{Call, Entry, Takes};
use crate::clock::Stopwatch;
use crate::error::{Error, Location, Result};
use crate::session::Answer;
use crate::shell::live::Rounds;
use crate::shell::output::say;
use crate::shell::redirect::Redirect;
use crate::shell::runner::{Flow, Shell, write_to};
use crate::shell::transcript;

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        names: &["\\g"],
        arguments: "[(OPTION=VALUE …)] [FILE|'|COMMAND'|chart [COLUMN] [bars|lines]]",
        help: "run the statement that was begun, or the last one, with print options, into a file or a command, or as a chart",
        takes: Takes::Line,
        run: |shell, call| go(shell, call, None),
    },
    Entry {
        names: &["\\gx", "\\G"],
        arguments: "[(OPTION=VALUE …)] [FILE|'|COMMAND']",
        help: "the same, one column a line",
        takes: Takes::Line,
        run: |shell, call| go(shell, call, Some(("expanded", "on"))),
    },
    Entry {
        names: &["\\gset"],
        arguments: "[PREFIX]",
        help: "run it; its only row becomes variables, named as its columns",
        takes: Takes::Words,
        run: gset,
    },
    Entry {
        names: &["\\gexec"],
        arguments: "",
        help: "run it, and each value of its rows as a statement",
        takes: Takes::Words,
        run: gexec,
    },
    Entry {
        names: &["\\gdesc"],
        arguments: "",
        help: "the columns that it would answer",
        takes: Takes::Words,
        run: gdesc,
    },
    Entry {
        names: &["\\bind"],
        arguments: "[VALUE …]",
        help: "what $1, $2 … of the next statement stand for",
        takes: Takes::Words,
        run: |shell, call| {
            shell.bound = Some(call.words);
            Ok(Flow::Next)
        },
    },
    Entry {
        names: &["\\watch"],
        arguments: "[[i=]SECONDS] [c=TIMES] [m=ROWS]",
        help: "run it again and again, every 2 seconds, until Ctrl-C, so many times, or until it has fewer rows; at the prompt in place",
        takes: Takes::Words,
        run: watch,
    },
    Entry {
        names: &["\\o", ".output"],
        arguments: "[FILE|'|COMMAND']",
        help: "results go into a file or a command; without one, to standard output again",
        takes: Takes::Line,
        run: |shell, call| {
            let target = target(call.line)?;
            if let Some(open) = shell.redirect.take() {
                open.close()?;
            }
            if let Some(target) = target.filter(|target| target != "stdout") {
                shell.redirect = Some(Redirect::open(&target, |line| shell.environment.command(line))?);
            }
            Ok(Flow::Next)
        },
    },
    Entry {
        names: &[".once"],
        arguments: "FILE|'|COMMAND'",
        help: "the next result goes there",
        takes: Takes::Line,
        run: |shell, call| {
            let target = target(call.line)?.ok_or_else(|| call.usage())?;
            shell.once = Some(Redirect::open(&target, |line| shell.environment.command(line))?);
            Ok(Flow::Next)
        },
    },
    Entry {
        names: &[".excel"],
        arguments: "",
        help: "refused: .mode csv and .once FILE.csv write what a spreadsheet opens",
        takes: Takes::Line,
        run: |_, _| {
            let error = Error::unsupported("no spreadsheet is opened");
            Err(error.help(".mode csv and .once FILE.csv write a file that one opens"))
        },
    },
    Entry {
        names: &[".last"],
        arguments: "",
        help: "the last result, or the cross table that was made of it, with all its rows and columns; SELECT … FROM _ reads it, too",
        takes: Takes::Words,
        run: last,
    },
    Entry {
        names: &["\\chart", ".chart"],
        arguments: "[COLUMN] [bars|lines]",
        help: "draw the last result, or that of the statement that was begun: its last number, or the column that is named",
        takes: Takes::Words,
        run: |shell, call| {
            if let Some((text, at)) = call.buffer.take_begun() {
                shell.run_unprinted(&text, at)?;
            }
            shell.chart(&call.words).map(|()| Flow::Next)
        },
    },
    Entry {
        names: &["\\crosstabview"],
        arguments: "[colV [colH [colD [sortcolH]]]]",
        help: "show the last result, or that of the statement that was begun, with the values of colV as rows, those of colH as columns",
        takes: Takes::Words,
        run: |shell, call| {
            if call.words.len() > 4 {
                return Err(call.usage());
            }
            if let Some((text, at)) = call.buffer.take_begun() {
                shell.run_unprinted(&text, at)?;
            }
            shell.crosstab(&call.words).map(|()| Flow::Next)
        },
    },
    Entry {
        names: &["\\echo", ".print"],
        arguments: "[-n] TEXT",
        help: "write a text to standard output",
        takes: Takes::Words,
        run: |shell, call| {
            shell.write(&text_of(&call.words))?;
            Ok(Flow::Next)
        },
    },
    Entry {
        names: &["\\qecho"],
        arguments: "[-n] TEXT",
        help: "write a text where results go",
        takes: Takes::Words,
        run: |shell, call| {
            let output = shell.redirect.as_ref().map_or(&shell.output, |redirect| &redirect.output);
            write_to(output, &text_of(&call.words))?;
            Ok(Flow::Next)
        },
    },
    Entry {
        names: &["\\warn"],
        arguments: "TEXT",
        help: "write a text to standard error",
        takes: Takes::Words,
        run: |_, call| {
            say(&call.words.join(" "));
            Ok(Flow::Next)
        },
    },
    Entry {
        names: &[".log"],
        arguments: "[FILE|off]",
        help: "keep a transcript of all that is typed and shown",
        takes: Takes::Words,
        run: |_, call| {
            let file = call.at_most_one()?.filter(|file| *file != "off");
            transcript::keep(file)?;
            Ok(Flow::Next)
        },
    },
];

/// The statement that was begun, or the last one again, and where its places are counted from.
fn statement(shell: &mut Shell, call: &mut Call<'_>) -> Result<(String, Location)> {
    if let Some(begun) = call.buffer.take_begun() {
        return Ok(begun);
    }
    let last = shell.last.statement.clone();
    let text = last.ok_or_else(|| Error::invalid("no statement was begun, and none was run before"))?;
    shell.source = Some(text.clone());
    Ok((text, Location { line: 1, column: 1 }))
}

fn go(shell: &mut Shell, mut call: Call<'_>, option: Option<(&str, &str)>) -> Result<Flow> {
    let (options, rest) = match call.line.strip_prefix('(').and_then(|line| line.split_once(')')) {
        Some((options, rest)) => (options, rest),
        None => ("", call.line),
    };
    let chart = chart_words(shell, rest)?;
    if chart.is_some() && option.is_some() {
        let error =
            Error::invalid(format!("{} shows one column a line, and a chart has no lines of columns", call.name));
        return Err(error.help("\\g chart draws; a file of that name is written ./chart"));
    }
    let before = shell.settings.clone();
    if let Some((name, value)) = option {
        shell.settings.set(name, Some(value))?;
    }
    let set = options.split_whitespace().try_for_each(|word| {
        let (name, value) = word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
        shell.settings.set(name, value).map(|_| ())
    });
    let outcome = set.and_then(|()| {
        let (text, at) = statement(shell, &mut call)?;
        if let Some(words) = &chart {
            return shell.run_unprinted(&text, at).and_then(|()| shell.chart(words));
        }
        if let Some(target) = target(rest)? {
            shell.once = Some(Redirect::open(&target, |line| shell.environment.command(line))?);
        }
        shell.run_statement(&text, at)
    });
    shell.settings = before;
    outcome.map(|()| Flow::Next)
}

/// What stands behind the word `chart`; `None`: the line is a file's name, or a command.
fn chart_words(shell: &Shell, line: &str) -> Result<Option<Vec<String>>> {
    let line = line.trim().trim_end_matches(';');
    let Some(behind) = line.strip_prefix("chart").filter(|rest| !rest.starts_with(|c: char| !c.is_whitespace())) else {
        return Ok(None);
    };
    super::words::words(behind, false, &shell.variables, &shell.environment).map(Some)
}

/// A file's name, which may stand in quotes, or a command behind `|`.
fn target(line: &str) -> Result<Option<String>> {
    let line = line.trim();
    let unquoted = ['\'', '"'].iter().find_map(|quote| line.strip_prefix(*quote)?.strip_suffix(*quote));
    match unquoted.unwrap_or(line) {
        "" => Ok(None),
        "|" => Err(Error::invalid("a command is wanted behind |")),
        target => Ok(Some(target.to_string())),
    }
}

fn gset(shell: &mut Shell, mut call: Call<'_>) -> Result<Flow> {
    let prefix = call.at_most_one()?.unwrap_or_default().to_string();
    let (text, at) = statement(shell, &mut call)?;
    let (names, rows) = shell.texts(&text, at, 1)?;
    let Some(row) = rows.into_iter().next() else {
        return Err(Error::invalid("\\gset wants one row, and the statement answered none"));
    };
    for (name, value) in names.iter().zip(row) {
        let name = format!("{prefix}{name}");
        match value {
            Some(value) => shell.variables.set(&name, &value)?,
            None => shell.variables.unset(&name),
        }
    }
    Ok(Flow::Next)
}

fn gexec(shell: &mut Shell, mut call: Call<'_>) -> Result<Flow> {
    call.none()?;
    let (text, at) = statement(shell, &mut call)?;
    let (_, rows) = shell.texts(&text, at, usize::MAX)?;
    for sql in rows.into_iter().flatten().flatten() {
        shell.source = Some(sql.clone());
        let start = Location { line: 1, column: 1 };
        if let Err(error) = shell.run_statement(sql.trim_end().trim_end_matches(';'), start) {
            let name = call.origin.name.map(|name| format!("{name}, \\gexec"));
            shell.report(&error, &sql, name.as_deref(), Some(start));
            match shell.after_error() {
                Flow::Next => {}
                flow => return Ok(flow),
            }
        }
    }
    Ok(Flow::Next)
}

fn gdesc(shell: &mut Shell, mut call: Call<'_>) -> Result<Flow> {
    call.none()?;
    let (text, at) = statement(shell, &mut call)?;
    let statement = shell.parsed(&text, at)?;
    let answer = shell.session.describe_statement(&statement)?;
    shell.print(answer, false, &Stopwatch::start())?;
    Ok(Flow::Next)
}

fn watch(shell: &mut Shell, mut call: Call<'_>) -> Result<Flow> {
    let mut rounds = Rounds { every: Duration::from_secs(2), times: u64::MAX, least: None };
    let number = |word: &str, value: &str| {
        value.parse::<u64>().map_err(|_| Error::invalid(format!("{word}: {value:?} is no number")))
    };
    for word in &call.words {
        match word.split_once('=') {
            Some(("c", value)) => rounds.times = number("c", value)?,
            Some(("m", value)) => rounds.least = Some(number("m", value)?),
            Some(("i", value)) => rounds.every = seconds(value)?,
            None => rounds.every = seconds(word)?,
            Some(_) => return Err(call.usage()),
        }
    }
    let (text, at) = statement(shell, &mut call)?;
    shell.repeat(&text, at, &rounds).map(|()| Flow::Next)
}

fn seconds(text: &str) -> Result<Duration> {
    let wrong = || Error::invalid(format!("{text:?} is no number of seconds"));
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.ok_or_else(wrong)
}

fn last(shell: &mut Shell, call: Call<'_>) -> Result<Flow> {
    call.none()?;
    if let Some((table, blank)) = shell.last.crossed.clone() {
        shell.settings.whole = true;
        let printed = shell.print_crossed(table, blank);
        shell.settings.whole = false;
        return next(printed);
    }
    let (schema, batches) = shell.last.result.kept("run it again into a file: \\g FILE")?;
    let (schema, batches) = (schema.clone(), batches.to_vec());
    shell.settings.whole = true;
    shell.session.cancel_token().clear();
    let rows = Box::new(batches.into_iter().map(Ok));
    let printed = shell.print(Answer::Rows { schema, rows, notices: Vec::new() }, false, &Stopwatch::start());
    shell.settings.whole = false;
    printed.map(|_| Flow::Next)
}

fn next(done: Result<()>) -> Result<Flow> {
    done.map(|()| Flow::Next)
}

fn text_of(words: &[String]) -> String {
    match words {
        [first, rest @ ..] if first == "-n" => rest.join(" "),
        words => words.join(" ") + "\n",
    }
}
