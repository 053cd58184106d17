//! The tables that a query names, before the cursor and behind it, and their columns.

use arrow::datatypes::DataType;

use super::around::Tok;
use super::blocks::{at_depth_zero, closing, groups, is_block, part};
use super::clauses::{is_clause, is_end_of_from};
use super::snapshot::Snapshot;
use crate::catalog::types::to_sql;
use crate::parser::TokenKind;

/// A table of FROM, by the name that its columns are told by.
#[derive(Debug, Clone, Default)]
pub(super) struct Source {
    pub(super) name: String,
    pub(super) columns: Vec<Column>,
    /// Of the SELECT that the cursor stands in, not of one around it.
    pub(super) inner: bool,
}

/// A column.
#[derive(Debug, Clone, Default)]
pub(super) struct Column {
    pub(super) name: String,
    /// Its type.
    pub(super) detail: String,
    /// The fields of a struct, and their types.
    pub(super) fields: Vec<(String, String)>,
}

/// What can be seen at a place of a query.
pub(super) struct Scope<'a> {
    snapshot: &'a Snapshot,
    sources: Vec<Source>,
    /// `WITH name AS (…)`
    common: Vec<Source>,
}

/// Queries within queries are looked into so deep.
const DEEPEST: usize = 8;

impl<'a> Scope<'a> {
    /// What is seen at the token `at` of a query's tokens.
    pub(super) fn new(snapshot: &'a Snapshot, toks: &[Tok<'_>], at: usize) -> Self {
        let mut scope = Scope { snapshot, sources: Vec::new(), common: Vec::new() };
        let groups = groups(toks, at);
        for &(from, to) in &groups {
            scope.read_common(&toks[from..to], 0);
        }
        // From the inside to the outside: inner names hide outer ones.
        let mut inner = true;
        for &(from, to) in groups.iter().rev() {
            let part = part(&toks[from..to], at - from);
            let block = &toks[from + part.0..from + part.1];
            if !is_block(block) {
                continue;
            }
            for mut source in scope.read(block, 0) {
                source.inner = inner;
                scope.sources.push(source);
            }
            inner = false;
        }
        scope
    }

    pub(super) fn sources(&self) -> impl Iterator<Item = &Source> {
        self.sources.iter()
    }

    /// The names of WITH.
    pub(super) fn common_names(&self) -> impl Iterator<Item = &str> {
        self.common.iter().map(|source| source.name.as_str())
    }

    /// `WITH a [(columns)] AS (…), b AS (…)` at the start of a query.
    fn read_common(&mut self, toks: &[Tok<'_>], deep: usize) {
        if !toks.first().is_some_and(|tok| tok.is("WITH")) || deep > DEEPEST {
            return;
        }
        let mut at = 1 + usize::from(toks.get(1).is_some_and(|tok| tok.is("RECURSIVE")));
        while let Some(name) = toks.get(at).and_then(Tok::name) {
            at += 1;
            let mut columns = Vec::new();
            if toks.get(at).is_some_and(|tok| tok.is_sign("(")) {
                let end = closing(toks, at);
                columns = toks[at + 1..end].iter().filter_map(Tok::name).collect();
                at = end + 1;
            }
            if !toks.get(at).is_some_and(|tok| tok.is("AS")) || !toks.get(at + 1).is_some_and(|tok| tok.is_sign("(")) {
                return;
            }
            let end = closing(toks, at + 1);
            let mut made = self.output(&toks[at + 2..end], deep + 1);
            rename(&mut made, columns);
            self.common.push(Source { name, columns: made, inner: false });
            at = end + 1;
            if !toks.get(at).is_some_and(|tok| tok.is_sign(",")) {
                return;
            }
            at += 1;
        }
    }

    /// The tables of one SELECT.
    fn read(&self, toks: &[Tok<'_>], deep: usize) -> Vec<Source> {
        let mut sources = Vec::new();
        if deep > DEEPEST {
            return sources;
        }
        let (mut at, mut in_from, mut wanted) = (0, false, false);
        while let Some(tok) = toks.get(at) {
            let distinct_from = tok.is("FROM") && at > 0 && toks[at - 1].is("DISTINCT");
            if wanted && (tok.name().is_some_and(|_| !is_clause(tok)) || tok.is_sign("(")) {
                let (source, next) = self.factor(toks, at, deep);
                sources.extend(source);
                (at, wanted) = (next, false);
                continue;
            }
            match tok.text {
                "(" => at = closing(toks, at),
                "," if in_from => wanted = true,
                _ if tok.is_any(&["FROM", "JOIN", "INTO", "UPDATE"]) && !distinct_from => {
                    (in_from, wanted) = (true, true)
                }
                _ if tok.is_any(&["LATERAL"]) => {}
                _ if is_end_of_from(tok) => (in_from, wanted) = (false, false),
                _ => {}
            }
            at += 1;
        }
        sources
    }

    /// One table, subquery or function of FROM at `at`, and the token behind it.
    fn factor(&self, toks: &[Tok<'_>], at: usize, deep: usize) -> (Vec<Source>, usize) {
        let tok = &toks[at];
        if tok.is_sign("(") {
            let end = closing(toks, at);
            let group = &toks[at + 1..end];
            if is_block(group) || group.first().is_some_and(|tok| tok.is_sign("(") || tok.is_any(&["WITH", "VALUES"])) {
                let columns = self.output(group, deep + 1);
                return self.aliased(toks, end + 1, Source { columns, ..Source::default() });
            }
            // Joins in parentheses.
            let joined = [&[Tok { kind: TokenKind::Word, text: "FROM" }][..], group].concat();
            return (self.read(&joined, deep + 1), end + 1);
        }
        if toks.get(at + 1).is_some_and(|next| next.is_sign("(")) {
            let end = closing(toks, at + 1);
            let columns = self.function(tok, &toks[at + 2..end], deep);
            return self.aliased(toks, end + 1, Source { columns, ..Source::default() });
        }
        // `catalog.schema.table`: the last part.
        let mut last = at;
        while toks.get(last + 1).is_some_and(|tok| tok.is_sign("."))
            && toks.get(last + 2).is_some_and(|tok| tok.name().is_some())
        {
            last += 2;
        }
        let name = toks[last].name().unwrap_or_default();
        let columns = self.columns_of(&name);
        self.aliased(toks, last + 1, Source { name, columns, inner: false })
    }

    /// TUMBLE, HOP and SESSION give every column of their table, and the ends of the window; `TABLE(…)` what it holds.
    fn function(&self, name: &Tok<'_>, arguments: &[Tok<'_>], deep: usize) -> Vec<Column> {
        if name.is("TABLE") {
            return match arguments {
                [inner, open, rest @ ..] if open.is_sign("(") => {
                    self.function(inner, &rest[..rest.len().saturating_sub(1)], deep + 1)
                }
                _ => Vec::new(),
            };
        }
        if !name.is_any(&["TUMBLE", "HOP", "SESSION"]) || deep > DEEPEST {
            return Vec::new();
        }
        let mut rest = arguments;
        while let Some(first) = rest.first() {
            let named = rest.get(1).is_some_and(|tok| tok.is_sign("=>"));
            match named {
                true => rest = &rest[2..],
                false if first.is("TABLE") => rest = &rest[1..],
                false => break,
            }
        }
        let mut columns = match rest.first() {
            Some(open) if open.is_sign("(") => self.output(&rest[1..closing(rest, 0)], deep + 1),
            Some(table) => table.name().map(|name| self.columns_of(&name)).unwrap_or_default(),
            None => Vec::new(),
        };
        for name in ["window_start", "window_end"] {
            columns.push(Column { name: name.to_string(), detail: "TIMESTAMP".to_string(), fields: Vec::new() });
        }
        columns
    }

    /// `[WATERMARK c DELAY OF interval] [AS] alias [(columns)]` behind a table.
    fn aliased(&self, toks: &[Tok<'_>], at: usize, mut source: Source) -> (Vec<Source>, usize) {
        let mut at = at;
        if toks.get(at).is_some_and(|tok| tok.is("WATERMARK")) {
            // The interval ends with a text, or with its unit.
            let text = toks[at..].iter().position(|tok| tok.kind == TokenKind::Text);
            at += text.map_or(1, |text| text + 1);
        }
        at += usize::from(toks.get(at).is_some_and(|tok| tok.is("AS")));
        if let Some(alias) = toks.get(at).filter(|tok| !is_clause(tok)).and_then(Tok::name) {
            source.name = alias;
            at += 1;
            if toks.get(at).is_some_and(|tok| tok.is_sign("(")) {
                let end = closing(toks, at);
                rename(&mut source.columns, toks[at + 1..end].iter().filter_map(Tok::name).collect());
                at = end + 1;
            }
        }
        (vec![source], at)
    }

    fn columns_of(&self, name: &str) -> Vec<Column> {
        if let Some(common) = self.common.iter().rev().find(|source| source.name == name) {
            return common.columns.clone();
        }
        let Some(schema) = self.snapshot.relation(name).and_then(|named| named.schema.as_ref()) else {
            return Vec::new();
        };
        let column = |field: &arrow::datatypes::FieldRef| Column {
            name: field.name().clone(),
            detail: to_sql(field.data_type()),
            fields: match field.data_type() {
                DataType::Struct(fields) => fields.iter().map(|f| (f.name().clone(), to_sql(f.data_type()))).collect(),
                _ => Vec::new(),
            },
        };
        schema.fields().iter().map(column).collect()
    }

    /// The columns that a query gives, as far as its SELECT list names them.
    fn output(&self, toks: &[Tok<'_>], deep: usize) -> Vec<Column> {
        if deep > DEEPEST {
            return Vec::new();
        }
        let toks = match toks {
            [first, .., last] if first.is_sign("(") && last.is_sign(")") => &toks[1..toks.len() - 1],
            _ => toks,
        };
        let (from, to) = part(toks, 0);
        let block = &toks[from..to];
        let Some(select) = at_depth_zero(block, |tok| tok.is("SELECT")) else { return Vec::new() };
        let list = &block[select + 1..];
        let list = &list[..at_depth_zero(list, |tok| tok.is("FROM")).unwrap_or(list.len())];
        let sources = self.read(block, deep + 1);
        let mut columns = Vec::new();
        let mut items = Vec::new();
        let (mut depth, mut begin) = (0_usize, 0);
        for (n, tok) in list.iter().enumerate() {
            match tok.text {
                "(" | "[" => depth += 1,
                ")" | "]" => depth = depth.saturating_sub(1),
                "," if depth == 0 => {
                    items.push(&list[begin..n]);
                    begin = n + 1;
                }
                _ => {}
            }
        }
        items.push(&list[begin..]);
        for item in items {
            match item {
                [star] if star.is_sign("*") => columns.extend(sources.iter().flat_map(|source| source.columns.clone())),
                [table, dot, star] if dot.is_sign(".") && star.is_sign("*") => {
                    let of = sources.iter().filter(|source| Some(&source.name) == table.name().as_ref());
                    columns.extend(of.flat_map(|source| source.columns.clone()));
                }
                [.., last] => {
                    let plain = item.len() == 1 || (item.len() == 3 && item[1].is_sign("."));
                    let Some(name) = last.name() else { continue };
                    let known = sources.iter().flat_map(|source| &source.columns).find(|column| column.name == name);
                    columns.push(known.filter(|_| plain).cloned().unwrap_or(Column { name, ..Column::default() }));
                }
                [] => {}
            }
        }
        columns
    }
}

/// The columns that a query gives, as far as it names them.
pub(super) fn given(snapshot: &Snapshot, toks: &[Tok<'_>]) -> Vec<Column> {
    let mut scope = Scope { snapshot, sources: Vec::new(), common: Vec::new() };
    scope.read_common(toks, 0);
    scope.output(toks, 0)
}

fn rename(columns: &mut Vec<Column>, names: Vec<String>) {
    for (n, name) in names.into_iter().enumerate() {
        match columns.get_mut(n) {
            Some(column) => column.name = name,
            None => columns.push(Column { name, ..Column::default() }),
        }
    }
}
