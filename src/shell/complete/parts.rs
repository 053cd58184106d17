//! The parts of statements that are no keywords, and which tokens each takes.

use super::around::Tok;
use crate::parser::TokenKind;

/// A part of a statement that is no keyword.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Slot {
    /// A name that is new.
    New,
    Stream,
    /// A stream that INSERT and CLOSE may name.
    Fed,
    Table,
    View,
    Sink,
    Query,
    /// A stream, table or view.
    Relation,
    /// What INSERT writes to: such a stream, or a table.
    Writable,
    /// Whatever DESCRIBE takes.
    Anything,
    Setting,
    Value,
    Text,
    Number,
    Path,
    Failpoint,
    Metadata,
    /// A column of the list that is being written.
    Declared,
    Type,
    /// A query; it ends where what follows it begins.
    Select,
    /// Expressions, likewise.
    Expressions,
    /// A query in parentheses.
    Subquery,
    Brackets,
    Elements,
    Columns,
    /// The columns of what INSERT names.
    ItsColumns,
    SourceOptions,
    SinkOptions,
    QueryOptions,
}

/// How a slot takes tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Takes {
    /// One token of a kind.
    One(&'static [TokenKind]),
    /// All to the parenthesis that closes the first.
    Brackets,
    /// All, until something that follows.
    Open,
    /// Words with dots between.
    Dotted,
    /// The words, brackets and numbers of a type.
    Type,
}

impl Slot {
    /// The slot that a table writes so.
    pub(super) fn named(name: &str) -> Option<Slot> {
        Some(match name {
            "<new>" => Slot::New,
            "<stream>" => Slot::Stream,
            "<fed>" => Slot::Fed,
            "<table>" => Slot::Table,
            "<view>" => Slot::View,
            "<sink>" => Slot::Sink,
            "<query>" => Slot::Query,
            "<relation>" => Slot::Relation,
            "<writable>" => Slot::Writable,
            "<anything>" => Slot::Anything,
            "<setting>" => Slot::Setting,
            "<value>" => Slot::Value,
            "<text>" => Slot::Text,
            "<number>" => Slot::Number,
            "<path>" => Slot::Path,
            "<failpoint>" => Slot::Failpoint,
            "<metadata>" => Slot::Metadata,
            "<declared>" => Slot::Declared,
            "<type>" => Slot::Type,
            "<select>" => Slot::Select,
            "<expressions>" => Slot::Expressions,
            "<subquery>" => Slot::Subquery,
            "<brackets>" => Slot::Brackets,
            "<elements>" => Slot::Elements,
            "<columns>" => Slot::Columns,
            "<its-columns>" => Slot::ItsColumns,
            "<source-options>" => Slot::SourceOptions,
            "<sink-options>" => Slot::SinkOptions,
            "<query-options>" => Slot::QueryOptions,
            _ => return None,
        })
    }

    pub(super) fn takes(self) -> Takes {
        const NAME: &[TokenKind] = &[TokenKind::Word, TokenKind::QuotedName];
        const TEXT: &[TokenKind] = &[TokenKind::Text];
        match self {
            Slot::Text | Slot::Path | Slot::Failpoint | Slot::Metadata => Takes::One(TEXT),
            Slot::Number => Takes::One(&[TokenKind::Number]),
            Slot::Value => Takes::One(&[TokenKind::Text, TokenKind::Number, TokenKind::Word]),
            Slot::Setting => Takes::Dotted,
            Slot::Type => Takes::Type,
            Slot::Select | Slot::Expressions => Takes::Open,
            Slot::Subquery
            | Slot::Brackets
            | Slot::Elements
            | Slot::Columns
            | Slot::ItsColumns
            | Slot::SourceOptions
            | Slot::SinkOptions
            | Slot::QueryOptions => Takes::Brackets,
            _ => Takes::One(NAME),
        }
    }

    /// Whether it may begin with this token.
    pub(super) fn begins(self, tok: &Tok<'_>) -> bool {
        match self.takes() {
            Takes::One(kinds) => kinds.contains(&tok.kind) && !(self != Slot::Value && begins_query(tok)),
            Takes::Brackets => tok.is_sign("("),
            Takes::Open => self == Slot::Expressions || begins_query(tok) || tok.is_sign("("),
            Takes::Dotted | Takes::Type => tok.kind == TokenKind::Word,
        }
    }
}

fn begins_query(tok: &Tok<'_>) -> bool {
    tok.is_any(&["SELECT", "WITH", "VALUES", "FROM"])
}
