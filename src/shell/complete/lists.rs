//! Within `WITH (…)`: the options of the connector that the list names, on either side of the cursor, and their values.

use super::around::{Around, Tok};
use super::found::Found;
use super::parts::Slot;
use super::slots::{kind_word, last_element};
use crate::catalog::{SinkConnector, SourceConnector};
use crate::options::{OptionKind, OptionSpec, snake_case};
use crate::session::Session;

/// Offers what may stand at the cursor; `list` is what stands between the parenthesis and the cursor.
pub(super) fn offer<'a>(found: &mut Found<'a>, around: &Around<'a>, slot: Slot, list: &[Tok<'a>]) {
    let entry = &list[last_element(list)..];
    match entry {
        [] => names(found, around, slot, list),
        [name, equals] if equals.is_sign("=") => {
            value(found, slot, &connector(list, around), &snake_case(&name.name().unwrap_or_default()));
        }
        [_] => found.plain("=", ""),
        _ => {}
    }
}

fn names<'a>(found: &mut Found<'a>, around: &Around<'a>, slot: Slot, list: &[Tok<'a>]) {
    let mut given: Vec<String> = option_names(list);
    let behind = end_of_list(&around.after);
    given.extend(option_names(behind));
    let connector = connector(list, around);
    let follows = behind.first().is_some_and(|tok| tok.is_sign("="));
    let mut offer = |name: &str, kind: OptionKind| {
        if !given.iter().any(|known| known == name) {
            let quoted =
                matches!(kind, OptionKind::Text | OptionKind::OneOf(_) | OptionKind::Interval | OptionKind::Names);
            let behind = match (follows, quoted) {
                (true, _) => "",
                (false, true) => " = '",
                (false, false) => " = ",
            };
            found.name(name, behind, &kind_word(kind));
        }
    };
    if slot != Slot::QueryOptions {
        offer("connector", OptionKind::Text);
    }
    specs(slot, &connector).iter().for_each(|spec| offer(spec.name, spec.kind));
}

/// Names that stand where an option's name stands.
fn option_names(list: &[Tok<'_>]) -> Vec<String> {
    let pairs = list.windows(2).filter(|two| two[1].is_sign("="));
    pairs.filter_map(|two| two[0].name()).map(|name| snake_case(&name)).collect()
}

/// What stands behind the cursor in the same list.
fn end_of_list<'a, 'b>(after: &'b [Tok<'a>]) -> &'b [Tok<'a>] {
    &after[..after.iter().position(|tok| tok.is_sign(")")).unwrap_or(after.len())]
}

fn value<'a>(found: &mut Found<'a>, slot: Slot, connector: &str, name: &str) {
    let snapshot = found.snapshot;
    match name {
        "connector" if slot == Slot::SourceOptions => {
            SourceConnector::ALL.iter().for_each(|connector| found.string(connector.name(), ""));
        }
        "connector" if slot == Slot::SinkOptions => {
            SinkConnector::ALL.iter().for_each(|connector| found.string(connector.name(), ""));
        }
        "path" => found.paths(true, false),
        "dead_letter" => {
            snapshot.sinks.beginning("").iter().for_each(|sink| found.string(&sink.name, sink.detail));
        }
        _ => match specs(slot, connector).iter().find(|spec| spec.name == name).map(|spec| spec.kind) {
            Some(OptionKind::OneOf(words)) => words.iter().for_each(|word| found.string(word, "")),
            Some(OptionKind::Bool) => found.words(&["TRUE", "FALSE"]),
            _ => {}
        },
    }
}

fn specs(slot: Slot, connector: &str) -> &'static [OptionSpec] {
    match slot {
        Slot::QueryOptions => Session::query_options(),
        Slot::SourceOptions => {
            let known = SourceConnector::ALL.iter().find(|known| known.name() == connector);
            known.map_or(&[], |known| known.options())
        }
        _ => SinkConnector::ALL.iter().find(|known| known.name() == connector).map_or(&[], |known| known.options()),
    }
}

/// The connector that is named before the cursor or behind it.
fn connector(list: &[Tok<'_>], around: &Around<'_>) -> String {
    named(list).or_else(|| named(end_of_list(&around.after))).unwrap_or_default()
}

fn named(list: &[Tok<'_>]) -> Option<String> {
    let three = list.windows(3).find(|three| three[0].is("connector") && three[1].is_sign("="))?;
    three[2].string().map(|name| name.to_ascii_lowercase())
}

/// The keys of `METADATA FROM '…'`: those of the connector, which is named behind the cursor, or all.
pub(super) fn metadata<'a>(found: &mut Found<'a>, around: &Around<'a>) {
    let name = named(&around.after);
    let chosen = |connector: &&SourceConnector| name.as_deref().is_none_or(|name| connector.name() == name);
    let keys = SourceConnector::ALL.iter().filter(chosen).flat_map(|connector| connector.metadata_keys());
    keys.for_each(|key| found.string(key, ""));
}
