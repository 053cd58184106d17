//! What may come next by the grammar → candidates.

use std::borrow::Cow;

use super::around::{Around, Tok};
use super::found::Found;
use super::grammar::{self, Expected};
use super::lists;
use super::parts::Slot;
use super::query::{self, Place};
use super::statements::TYPES;
use crate::checkpoint::failpoint::POINTS;
use crate::options::OptionKind;

/// Offers what is expected at the cursor.
pub(super) fn offer<'a>(found: &mut Found<'a>, around: &Around<'a>, expected: &Expected) {
    // `INSERT INTO t (` begins a list of columns, unless a query follows.
    let names_columns = |since: usize| {
        let begins = around.before.get(since + 1).is_some_and(|tok| tok.is_any(&["SELECT", "WITH", "VALUES", "FROM"]));
        !begins && expected.inside.contains(&(Slot::ItsColumns, since))
    };
    let within_query = expected.inside.iter().find(|(slot, since)| is_query(*slot) && !names_columns(*since));
    let mut words_too = true;
    if let Some(&(slot, since)) = within_query {
        let since = if slot == Slot::Expressions { 0 } else { since };
        // What follows a query may only stand where the query may end.
        words_too = query::offer(found, around, since) == Place::BehindOperand;
    }
    for &(slot, since) in expected.inside.iter().filter(|(slot, _)| !is_query(*slot)) {
        inside(found, around, slot, since);
    }
    if words_too {
        // Names first: they are what somebody looks for.
        expected.slots.iter().for_each(|slot| next(found, around, *slot));
        if found.nothing_typed() {
            expected.signs.iter().for_each(|sign| found.plain(sign, ""));
        }
        found.words(&expected.words);
    }
}

fn is_query(slot: Slot) -> bool {
    matches!(slot, Slot::Select | Slot::Expressions | Slot::Subquery)
}

/// The cursor stands within a slot of several tokens.
fn inside<'a>(found: &mut Found<'a>, around: &Around<'a>, slot: Slot, since: usize) {
    let list = &around.before[(since + 1).min(around.before.len())..];
    match slot {
        Slot::Elements => element(found, around, list, grammar::elements()),
        Slot::Columns => element(found, around, list, grammar::columns()),
        Slot::SourceOptions | Slot::SinkOptions | Slot::QueryOptions => lists::offer(found, around, slot, list),
        Slot::ItsColumns => {
            if let Some(name) = around.before.get(2).and_then(Tok::name) {
                columns_of(found, &name);
            }
        }
        // `datafusion.execution.` goes on.
        Slot::Setting => {
            let dotted: usize = around.before[since..].iter().map(|tok| tok.text.len()).sum();
            if around.previous().is_some_and(|tok| tok.is_sign(".")) {
                settings(found, dotted, around);
            }
        }
        _ => {}
    }
}

/// An element of the list in parentheses of CREATE STREAM or CREATE TABLE.
fn element<'a>(found: &mut Found<'a>, around: &Around<'a>, list: &[Tok<'a>], grammar: &grammar::Grammar) {
    let element = &list[last_element(list)..];
    let expected = grammar.expected(element);
    for slot in &expected.slots {
        match slot {
            Slot::Declared => declared(around).iter().for_each(|name| found.name(name, "", "column")),
            Slot::Type => found.words(TYPES),
            Slot::Metadata => lists::metadata(found, around),
            _ => next(found, around, *slot),
        }
    }
    // A computed column: an expression over the others.
    if expected.inside.iter().any(|(slot, _)| *slot == Slot::Brackets) {
        declared(around).iter().for_each(|name| found.name(name, "", "column"));
        found.functions(around.is_called());
    }
    found.words(&expected.words);
}

/// Where the last element of a list without its brackets begins.
pub(super) fn last_element(list: &[Tok<'_>]) -> usize {
    let (mut depth, mut from) = (0_usize, 0);
    for (n, tok) in list.iter().enumerate() {
        match tok.text {
            "(" | "<" | "[" => depth += 1,
            ")" | ">" | "]" => depth = depth.saturating_sub(1),
            "," if depth == 0 => from = n + 1,
            _ => {}
        }
    }
    from
}

/// The first words of the elements on both sides of the cursor.
fn declared(around: &Around<'_>) -> Vec<String> {
    let all: Vec<Tok<'_>> = around.before.iter().chain(&around.after).copied().collect();
    let mut names = Vec::new();
    let mut depth = 0_usize;
    for two in all.windows(2) {
        let begins = (two[0].is_sign("(") && depth == 0) || (two[0].is_sign(",") && depth == 1);
        match two[0].text {
            "(" | "<" => depth += 1,
            ")" | ">" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if begins && !two[1].is_any(&["WATERMARK", "PRIMARY"]) {
            names.extend(two[1].name());
        }
        if depth == 0 && two[0].is_sign(")") {
            break;
        }
    }
    names
}

/// A slot may begin at the cursor.
fn next<'a>(found: &mut Found<'a>, around: &Around<'a>, slot: Slot) {
    let snapshot = found.snapshot;
    match slot {
        Slot::Stream => found.names(&snapshot.streams),
        Slot::Fed => found.names(&snapshot.fed),
        Slot::Table => found.names(&snapshot.tables),
        Slot::View => found.names(&snapshot.views),
        Slot::Sink => found.names(&snapshot.sinks),
        Slot::Query => found.names(&snapshot.queries),
        Slot::Relation => found.relations(),
        Slot::Writable => {
            found.names(&snapshot.fed);
            found.names(&snapshot.filled);
        }
        Slot::Anything => {
            found.relations();
            found.names(&snapshot.sinks);
            found.names(&snapshot.queries);
        }
        Slot::Setting => settings(found, 0, around),
        Slot::Value => value(found, around),
        Slot::Path => found.paths(true, false),
        Slot::Failpoint => POINTS.iter().for_each(|point| found.string(point, "")),
        Slot::Select => {
            found.words(&["SELECT", "WITH", "VALUES", "FROM"]);
        }
        Slot::Type => found.words(TYPES),
        Slot::Expressions => _ = query::offer(found, around, 0),
        Slot::SourceOptions | Slot::SinkOptions | Slot::QueryOptions | Slot::Subquery => found.plain("(", ""),
        // New names, numbers, texts and columns are the user's.
        _ => {}
    }
}

/// Settings; `dotted` bytes before the word belong to the name.
fn settings<'a>(found: &mut Found<'a>, dotted: usize, around: &Around<'a>) {
    let snapshot = found.snapshot;
    let head: String = around
        .before
        .iter()
        .rev()
        .scan(dotted, |left, tok| {
            let taken = (*left > 0).then_some(tok.text);
            *left = left.saturating_sub(tok.text.len());
            taken
        })
        .collect::<Vec<_>>()
        .into_iter()
        .rev()
        .collect();
    for (name, spec) in snapshot.settings.iter() {
        // Of what is written already, only the rest is completed.
        let Some(rest) = name.strip_prefix(&head) else { continue };
        // DataFusion's are many: they are shown by their first part until it is written.
        match rest.strip_prefix("datafusion.") {
            Some(_) if head.is_empty() => found.plain("datafusion.", ""),
            _ => found.entry(rest, &spec.map_or(Cow::Borrowed(""), |spec| kind_word(spec.kind))),
        }
    }
}

/// The value of a setting that stands before it.
fn value<'a>(found: &mut Found<'a>, around: &Around<'a>) {
    let setting = around.before.get(1).map(|tok| tok.text.to_ascii_lowercase()).unwrap_or_default();
    let spec = found.snapshot.settings.iter().find(|(name, _)| *name == setting).and_then(|(_, spec)| *spec);
    match spec.map(|spec| spec.kind) {
        Some(OptionKind::OneOf(words)) => words.iter().for_each(|word| found.string(word, "")),
        Some(OptionKind::Bool) => found.words(&["TRUE", "FALSE"]),
        _ => {}
    }
    found.word("DEFAULT");
}

/// The columns of a stream, table or view.
pub(super) fn columns_of(found: &mut Found<'_>, name: &str) {
    let Some(schema) = found.snapshot.relation(name).and_then(|relation| relation.schema.clone()) else { return };
    for field in schema.fields() {
        found.name(field.name(), "", &crate::catalog::types::to_sql(field.data_type()));
    }
}

/// A kind of value in a word or two, or the values that there are.
pub(super) fn kind_word(kind: OptionKind) -> Cow<'static, str> {
    Cow::Borrowed(match kind {
        OptionKind::Text => "text",
        OptionKind::Count => "number",
        OptionKind::Positive => "number from 1",
        OptionKind::Bool => "TRUE|FALSE",
        OptionKind::Bytes => "bytes",
        OptionKind::Interval => "interval",
        OptionKind::Timestamp => "timestamp",
        OptionKind::Char => "character",
        OptionKind::OneOf(words) => return Cow::Owned(words.join("|")),
        OptionKind::Names => "names",
    })
}
