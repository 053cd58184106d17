//! Within a query: columns of the tables on both sides of the cursor, functions, tables, and the words of the clause.

use std::collections::HashSet;
use std::sync::OnceLock;

use super::around::{Around, Tok};
use super::clauses::{self, Clause};
use super::found::{Found, written};
use super::scope::Scope;
use super::statements::TYPES;

/// Where in a query the cursor stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// An operand, a table or a word that must follow is wanted.
    Within,
    /// Something is whole: the query may end here.
    BehindOperand,
}

/// Whether a word is a keyword wherever it stands in a query.
pub(in crate::shell) fn is_query_word(word: &str) -> bool {
    static WORDS: OnceLock<HashSet<&'static str>> = OnceLock::new();
    WORDS.get_or_init(|| clauses::all_words().collect()).contains(word.to_ascii_uppercase().as_str())
}

/// Offers what may stand at the cursor of a query whose first token is the one at `since`.
pub(super) fn offer<'a>(found: &mut Found<'a>, around: &Around<'a>, since: usize) -> Place {
    let before = &around.before[since..];
    let at = before.len();
    let toks: Vec<Tok<'a>> = before.iter().chain(&around.after).copied().collect();
    let Some(previous) = before.last() else { return Place::Within };
    let scope = Scope::new(found.snapshot, &toks, at);
    if previous.is_sign(".") {
        qualified(found, around, &scope, &before[..at - 1]);
        return Place::Within;
    }
    let (clause, function) = clause(before);
    if previous.is_sign("::") {
        found.words(TYPES);
        return Place::Within;
    }
    // A cast names its type behind AS.
    if previous.is("AS") && matches!(function.as_deref(), Some("cast" | "try_cast")) {
        found.words(TYPES);
        return Place::Within;
    }
    if let Some(words) = clauses::behind_word(previous) {
        found.words(words);
        return Place::Within;
    }
    if clauses::ends_operand(previous, before.get(at.wrapping_sub(2))) {
        found.words(&clauses::behind_operand(clause));
        if in_case(before) {
            found.words(&["WHEN", "THEN", "ELSE", "END"]);
        }
        // Within parentheses of a query of its own, it goes on outside of them.
        return if depth(before) == 0 { Place::BehindOperand } else { Place::Within };
    }
    let is_table = match (clause, function.as_deref()) {
        (Clause::From, _) => true,
        (_, Some("tumble" | "hop" | "session")) => previous.is_sign("(") || previous.is("TABLE"),
        _ => false,
    };
    match (previous.is("WITH"), is_table) {
        (true, _) => found.word("WATERMARK"),
        (_, true) => tables(found, around, &scope, previous),
        _ => operands(found, around, &scope, clause, function.as_deref(), previous),
    }
    Place::Within
}

fn tables<'a>(found: &mut Found<'a>, around: &Around<'a>, scope: &Scope<'a>, previous: &Tok<'a>) {
    scope.common_names().for_each(|name| found.name(name, "", "query"));
    found.relations();
    let open = if around.is_called() { "" } else { "(" };
    if !previous.is_any(&["INTO", "UPDATE", "TABLE"]) {
        for (name, signature) in [
            ("TUMBLE", "TUMBLE(table, time, size [, offset])"),
            ("HOP", "HOP(table, time, slide, size [, offset])"),
            ("SESSION", "SESSION(table [PARTITION BY key, …], time, gap)"),
        ] {
            found.call(name, open, signature);
        }
        for name in found.snapshot.table_functions.clone().iter() {
            found.call(name, open, &format!("{name}(…)"));
        }
        found.words(&["LATERAL", "UNNEST"]);
    }
}

fn operands<'a>(
    found: &mut Found<'a>,
    around: &Around<'a>,
    scope: &Scope<'a>,
    clause: Clause,
    function: Option<&str>,
    previous: &Tok<'a>,
) {
    for source in scope.sources() {
        for column in &source.columns {
            found.name(&column.name, "", &column.detail);
        }
    }
    if scope.sources().next().is_none() && clause == Clause::Select {
        // The table is not written yet.
        found.all_columns();
    }
    // Of several tables, a column is told by its table's name.
    let named = scope.sources().filter(|source| source.inner && !source.name.is_empty());
    if scope.sources().filter(|source| source.inner).count() > 1 || !found.nothing_typed() {
        named.for_each(|source| found.plain(&format!("{}.", written(&source.name)), "table"));
    }
    if let Some(function) = function.filter(|_| previous.is_sign("(") || previous.is_sign(",")) {
        for name in clauses::named_arguments(function) {
            found.plain(&format!("{name} => "), "argument");
        }
    }
    let open = if around.is_called() { "" } else { "(" };
    if clause == Clause::Group || (!found.nothing_typed() && function.is_none()) {
        found.call("window", open, "window(time, size [, slide [, offset]])");
        found.call("session_window", open, "session_window(time, gap)");
    }
    found.functions(around.is_called());
    if !(found.nothing_typed() && clause == Clause::Watermark) {
        found.words(clauses::OPERANDS);
    }
    if previous.is("SELECT") {
        found.words(&["DISTINCT", "ALL"]);
    }
    if previous.is("DISTINCT") {
        found.word("ON");
    }
    if previous.is_sign("(") {
        found.words(&["SELECT", "DISTINCT"]);
        if function.is_none() {
            found.words(&["PARTITION", "ORDER", "WITH", "VALUES"]);
        }
    }
    if previous.is("NOT") {
        found.words(&["IN", "LIKE", "ILIKE", "BETWEEN"]);
    }
}

/// Behind a dot: the columns of that table, the fields of that column, the ends of that window.
fn qualified<'a>(found: &mut Found<'a>, around: &Around<'a>, scope: &Scope<'a>, before: &[Tok<'a>]) {
    let Some(name) = before.last().and_then(Tok::name) else { return };
    let source = scope.sources().find(|source| source.name == name);
    if let Some(source) = source {
        for column in &source.columns {
            found.name(&column.name, "", &column.detail);
        }
        return;
    }
    let column = scope.sources().flat_map(|source| &source.columns).find(|column| column.name == name);
    match column {
        Some(column) => column.fields.iter().for_each(|(field, detail)| found.name(field, "", detail)),
        None if matches!(name.as_str(), "window" | "session_window") => {
            found.name("start", "", "timestamp");
            found.name("end", "", "timestamp");
        }
        None => {
            // A table that is not in FROM yet.
            let is_word = around.typed.is_empty() || around.previous().is_some();
            if is_word && scope.sources().next().is_none() {
                super::slots::columns_of(found, &name);
            }
        }
    }
}

/// The clause that the end of these tokens stands in, and the function whose arguments they are.
fn clause(before: &[Tok<'_>]) -> (Clause, Option<String>) {
    let mut depth = 0_usize;
    for (n, tok) in before.iter().enumerate().rev() {
        match tok.text {
            ")" => depth += 1,
            "(" if depth == 0 => return bracket(&before[..n]),
            "(" => depth = depth.saturating_sub(1),
            _ if depth > 0 => {}
            _ => {
                let distinct_from = tok.is("FROM") && n > 0 && before[n - 1].is("DISTINCT");
                if let Some(clause) = clauses::begun(tok, before.get(n + 1)).filter(|_| !distinct_from) {
                    return (clause, None);
                }
            }
        }
    }
    (Clause::Start, None)
}

/// What a parenthesis is that stands behind these tokens and is not closed.
fn bracket(before: &[Tok<'_>]) -> (Clause, Option<String>) {
    match before.last() {
        Some(last) if last.is_any(&["FROM", "JOIN"]) => (Clause::From, None),
        Some(last) if last.is("TABLE") => (Clause::From, None),
        Some(last) if last.is("USING") => (Clause::On, None),
        Some(last) if is_query_word(last.text) && !last.is_any(&["EXTRACT", "CAST", "TRY_CAST"]) => {
            (Clause::Brackets, None)
        }
        Some(last) => match last.name() {
            Some(name) => (Clause::Arguments, Some(name)),
            None => (Clause::Brackets, None),
        },
        None => (Clause::Brackets, None),
    }
}

fn depth(toks: &[Tok<'_>]) -> usize {
    toks.iter().fold(0, |depth, tok| match tok.text {
        "(" => depth + 1,
        ")" => depth.saturating_sub(1),
        _ => depth,
    })
}

/// Whether a CASE is open.
fn in_case(toks: &[Tok<'_>]) -> bool {
    let count = |word: &str| toks.iter().filter(|tok| tok.is(word)).count();
    count("CASE") > count("END")
}
