//! The words of a query: which clause the cursor stands in, and what may follow there.

use super::around::Tok;
use crate::parser::TokenKind;

/// A part of a SELECT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Clause {
    /// Before any.
    Start,
    Select,
    From,
    On,
    Where,
    Group,
    Having,
    Order,
    Limit,
    /// `WITH WATERMARK …`, or `WATERMARK …` behind a table.
    Watermark,
    Set,
    /// The arguments of a function, by its name.
    Arguments,
    /// Parentheses of another kind.
    Brackets,
}

/// Words that begin a clause.
const CLAUSES: &[(&str, Clause)] = &[
    ("SELECT", Clause::Select),
    ("FROM", Clause::From),
    ("JOIN", Clause::From),
    ("INTO", Clause::From),
    ("UPDATE", Clause::From),
    ("ON", Clause::On),
    ("USING", Clause::On),
    ("WHERE", Clause::Where),
    ("GROUP", Clause::Group),
    ("HAVING", Clause::Having),
    ("QUALIFY", Clause::Having),
    ("ORDER", Clause::Order),
    ("PARTITION", Clause::Order),
    ("LIMIT", Clause::Limit),
    ("OFFSET", Clause::Limit),
    ("WATERMARK", Clause::Watermark),
    ("SET", Clause::Set),
    ("UNION", Clause::Start),
    ("EXCEPT", Clause::Start),
    ("INTERSECT", Clause::Start),
];

/// What may stand before JOIN, and it.
const JOINS: &[&str] = &["JOIN", "LEFT", "RIGHT", "FULL", "INNER", "CROSS", "NATURAL"];

/// Words behind which no table is named any more.
const END_OF_FROM: &[&str] =
    &["SELECT", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "WINDOW", "QUALIFY", "WITH", "SET", "OFFSET"];

/// Words that are no alias, beside those that begin a clause or a join.
const NO_ALIAS: &[&str] = &[
    "OUTER",
    "SEMI",
    "ANTI",
    "LATERAL",
    "AS",
    "AND",
    "OR",
    "VALUES",
    "OUTPUT",
    "TRIGGER",
    "STOP",
    "CHECKPOINT",
    "FOR",
];

/// Whether the tables of a SELECT have been named with this word.
pub(super) fn is_end_of_from(tok: &Tok<'_>) -> bool {
    tok.is_any(END_OF_FROM)
}

/// Whether a word is no alias.
pub(super) fn is_clause(tok: &Tok<'_>) -> bool {
    CLAUSES.iter().any(|(word, _)| tok.is(word)) || [JOINS, END_OF_FROM, NO_ALIAS].iter().any(|words| tok.is_any(words))
}

/// The clause that a word begins.
pub(super) fn begun(tok: &Tok<'_>, next: Option<&Tok<'_>>) -> Option<Clause> {
    // IS DISTINCT FROM is no clause, and neither is WITHIN GROUP or OFFSET as a name of an argument.
    if next.is_some_and(|next| next.is_sign("=>") || next.is_sign(".")) {
        return None;
    }
    CLAUSES.iter().find(|(word, _)| tok.is(word)).map(|(_, clause)| *clause)
}

/// What may follow a word by itself; `None`: it says nothing.
pub(super) fn behind_word(tok: &Tok<'_>) -> Option<&'static [&'static str]> {
    const FOLLOW: &[(&str, &[&str])] = &[
        ("GROUP", &["BY"]),
        ("ORDER", &["BY"]),
        ("PARTITION", &["BY"]),
        ("LEFT", &["JOIN", "OUTER", "SEMI", "ANTI"]),
        ("RIGHT", &["JOIN", "OUTER", "SEMI", "ANTI"]),
        ("FULL", &["JOIN", "OUTER"]),
        ("INNER", &["JOIN"]),
        ("CROSS", &["JOIN"]),
        ("OUTER", &["JOIN"]),
        ("SEMI", &["JOIN"]),
        ("ANTI", &["JOIN"]),
        ("NATURAL", &["JOIN", "LEFT", "RIGHT", "FULL", "INNER"]),
        ("NULLS", &["FIRST", "LAST"]),
        ("IS", &["NULL", "NOT", "TRUE", "FALSE", "DISTINCT"]),
        ("DELAY", &["INTERVAL", "OF"]),
        ("WITHIN", &["WATERMARK", "GROUP"]),
        ("UNION", &["ALL", "SELECT"]),
        ("EXCEPT", &["ALL", "SELECT"]),
        ("INTERSECT", &["ALL", "SELECT"]),
        ("GROUPING", &["SETS"]),
        ("INTERVAL", &[]),
        ("LIMIT", &[]),
        ("OFFSET", &[]),
        ("AS", &[]),
    ];
    FOLLOW.iter().find(|(word, _)| tok.is(word)).map(|(_, words)| *words)
}

/// Words that an operand follows.
const BEFORE_OPERAND: &[&str] = &[
    "SELECT",
    "DISTINCT",
    "ALL",
    "WHERE",
    "AND",
    "OR",
    "NOT",
    "ON",
    "HAVING",
    "QUALIFY",
    "BY",
    "CASE",
    "WHEN",
    "THEN",
    "ELSE",
    "IN",
    "LIKE",
    "ILIKE",
    "BETWEEN",
    "FROM",
    "JOIN",
    "USING",
    "VALUES",
    "SET",
    "UPDATE",
    "INTO",
    "TABLE",
    "WATERMARK",
    "LATERAL",
    "ANY",
    "SOME",
    "EXISTS",
    "DESCRIPTOR",
    "OF",
    "FILTER",
    "OVER",
    "WITH",
    "RECURSIVE",
];

/// Whether an operand ends with this token, so that an operator or a clause follows.
pub(super) fn ends_operand(tok: &Tok<'_>, before: Option<&Tok<'_>>) -> bool {
    match tok.kind {
        TokenKind::Word => !tok.is_any(BEFORE_OPERAND),
        TokenKind::QuotedName | TokenKind::Text | TokenKind::Number => true,
        TokenKind::Symbol if tok.text == "*" => {
            before.is_none_or(|before| before.is_any(BEFORE_OPERAND) || matches!(before.text, "," | "(" | "."))
        }
        TokenKind::Symbol => matches!(tok.text, ")" | "]" | "}"),
        TokenKind::Comment => false,
    }
}

/// Words that an operand may begin with.
pub(super) const OPERANDS: &[&str] = &[
    "CASE",
    "CAST",
    "CURRENT_DATE",
    "CURRENT_TIMESTAMP",
    "DATE",
    "EXISTS",
    "EXTRACT",
    "FALSE",
    "INTERVAL",
    "NOT",
    "NULL",
    "TIMESTAMP",
    "TRUE",
];

/// Words that may follow an operand anywhere.
const OPERATORS: &[&str] = &["AND", "OR", "IN", "IS", "LIKE", "ILIKE", "BETWEEN", "NOT"];

/// Words that may follow an operand, or a table, in a clause: first the clauses that come next.
pub(super) fn behind_operand(clause: Clause) -> Vec<&'static str> {
    let follow: &[&str] = match clause {
        Clause::Start => &[],
        Clause::Select => &["FROM", "AS", "OVER", "FILTER", "WHERE", "GROUP", "ORDER", "LIMIT", "UNION"],
        Clause::From => &[
            "ON",
            "USING",
            "AS",
            "WHERE",
            "GROUP",
            "HAVING",
            "ORDER",
            "LIMIT",
            "WITH",
            "WATERMARK",
            "UNION",
            "EXCEPT",
            "INTERSECT",
            "SET",
        ],
        Clause::On => &["WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "WITH", "UNION"],
        Clause::Where => &["GROUP", "ORDER", "LIMIT", "WITH", "HAVING", "UNION", "EXCEPT", "INTERSECT"],
        Clause::Group => &["HAVING", "ORDER", "LIMIT", "WITH", "UNION", "EXCEPT", "INTERSECT"],
        Clause::Having => &["ORDER", "LIMIT", "WITH", "UNION", "EXCEPT", "INTERSECT"],
        Clause::Order => &["ASC", "DESC", "NULLS", "LIMIT", "OFFSET", "ROWS", "RANGE"],
        Clause::Limit => &["OFFSET", "UNION"],
        Clause::Watermark => &["DELAY", "ORDER", "LIMIT", "UNION"],
        Clause::Set => &["WHERE"],
        Clause::Arguments => &["AS", "ORDER", "FROM"],
        Clause::Brackets => &["AS", "PARTITION", "ORDER"],
    };
    let has_operators = !matches!(clause, Clause::From | Clause::Start | Clause::Limit | Clause::Watermark);
    let operators = OPERATORS.iter().filter(|_| has_operators);
    let joins = JOINS.iter().filter(|_| matches!(clause, Clause::From | Clause::On));
    joins.chain(follow).chain(operators).copied().collect()
}

/// Arguments by name of the functions of windows.
pub(super) fn named_arguments(function: &str) -> &'static [&'static str] {
    match function {
        "window" => &["time", "size", "slide", "offset"],
        "session_window" => &["time", "gap"],
        "tumble" => &["data", "timecol", "size", "offset"],
        "hop" => &["data", "timecol", "slide", "size", "offset"],
        "session" => &["data", "timecol", "gap", "partition_by"],
        _ => &[],
    }
}

/// Every word of a query that is a keyword wherever it stands.
pub(super) fn all_words() -> impl Iterator<Item = &'static str> {
    const OTHERS: &[&str] = &[
        "WHEN",
        "THEN",
        "ELSE",
        "END",
        "ASC",
        "DESC",
        "NULLS",
        "ROWS",
        "RANGE",
        "DELAY",
        "RECURSIVE",
        "ARRAY",
        "STRUCT",
        "TRY_CAST",
        "WITHIN",
        "INSERT",
        "DELETE",
        "OUTER",
    ];
    // Names of functions and columns, more often than not.
    let is_name =
        |word: &&str| matches!(*word, "DATE" | "TIMESTAMP" | "SET" | "FILTER" | "OF" | "ANY" | "SOME" | "TABLE");
    let lists = [BEFORE_OPERAND, OPERANDS, OPERATORS, OTHERS].into_iter().flatten().copied();
    lists
        .chain(CLAUSES.iter().map(|(word, _)| *word))
        .chain(behind_operand(Clause::From))
        .filter(move |word| !is_name(word))
}
