//! One statement's text → [`ParsedStatement`]: which statement it is, by its first words.

use super::cursor::{Cursor, End};
use super::lexer::{Lexeme, lex};
use super::query::{query, starts_query};
use super::sql::parse_all;
use super::statement::*;
use super::{control, create, show, start, swallowed};
use crate::error::{Code, Error, Location, Result, Span};

/// The words that begin a statement of ours.
const OURS: [&str; 20] = [
    "CREATE", "DROP", "CLOSE", "START", "STOP", "PAUSE", "RESUME", "AWAIT", "ALTER", "WATCH", "SHOW", "DESCRIBE",
    "EXPLAIN", "VERIFY", "SET", "RESET", "ADVANCE", "STEP", "CRASH", "SELECT",
];

/// The words that begin a statement which sqlparser reads and DataFusion runs or refuses.
const SQL: [&str; 14] = [
    "INSERT",
    "UPDATE",
    "DELETE",
    "MERGE",
    "TRUNCATE",
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "PREPARE",
    "EXECUTE",
    "DEALLOCATE",
    "USE",
    "ANALYZE",
    "CALL",
];

/// Reads one statement, with or without its `;`, that begins at `start` of the input.
///
/// # Errors
/// What is wrong with it, with its place in the input; more than one statement.
pub fn parse_one(text: &str, start: Location) -> Result<ParsedStatement> {
    let mut lexemes = lex(text, start)?;
    while lexemes.last().is_some_and(|l| l.token == sqlparser::tokenizer::Token::SemiColon) {
        lexemes.pop();
    }
    let (Some(first), Some(last)) = (lexemes.first(), lexemes.last()) else {
        let place = Span { start, end: start };
        return Err(Error::invalid_at(place, "expected a statement, found the end of the input").coded(Code::Syntax));
    };
    if let Some(inner) = lexemes.iter().find(|l| l.token == sqlparser::tokenizer::Token::SemiColon) {
        return Err(Error::invalid_at(inner.span, "expected the end of the statement, found ;").coded(Code::Syntax));
    }
    all_values_given(&lexemes)?;
    let span = Span { start: first.span.start, end: last.span.end };
    let written = text[first.range.start..last.range.end].to_string();
    let mut cursor = Cursor::new(&lexemes, End::Statement(span.end));
    let statement = statement(&mut cursor, text)?;
    Ok(ParsedStatement { statement, text: written, span })
}

/// Only what PREPARE keeps for EXECUTE may leave values open.
fn all_values_given(lexemes: &[Lexeme]) -> Result<()> {
    if lexemes.first().is_some_and(|first| first.is_word("PREPARE")) {
        return Ok(());
    }
    if let Some((name, place)) = unset_variable(lexemes) {
        let error = Error::invalid_at(place, format!("the variable {name} is not set"));
        return Err(error.help(format!("\\set {name} VALUE sets it")));
    }
    let open = lexemes.iter().find_map(|l| match &l.token {
        sqlparser::tokenizer::Token::Placeholder(name) => Some((name, l.span)),
        _ => None,
    });
    let Some((name, place)) = open else { return Ok(()) };
    let numbered = name.strip_prefix('$').is_some_and(|number| number.parse::<usize>().is_ok());
    let error = Error::invalid_at(place, format!("{name} stands for a value, and none is given"));
    Err(error.help(match numbered {
        true => "the shell's \\bind gives it: SELECT $1 \\bind 5 \\g; so do PREPARE and EXECUTE",
        false => "such values are written $1, $2 …, and the shell's \\bind gives them",
    }))
}

/// `:name` where a value begins: the shell has put the value of any variable that is set in its place. Behind a value, as in
/// `{a: b}` and `a[1:b]`, a colon is one of SQL.
fn unset_variable(lexemes: &[Lexeme]) -> Option<(&str, Span)> {
    use sqlparser::tokenizer::Token;
    lexemes.windows(3).find_map(|three| {
        let [before, colon, name] = three else { return None };
        let is_colon = colon.token == Token::Colon && colon.range.end == name.range.start;
        let begins_value = match &before.token {
            Token::Word(word) => {
                word.keyword != sqlparser::keywords::Keyword::NoKeyword && before.range.end < colon.range.start
            }
            Token::Eq | Token::Neq | Token::Lt | Token::Gt | Token::LtEq | Token::GtEq => true,
            Token::Plus | Token::Minus | Token::Mul | Token::Div | Token::Mod | Token::StringConcat => true,
            Token::LParen | Token::Comma => true,
            _ => false,
        };
        let place = Span { start: colon.span.start, end: name.span.end };
        name.word().filter(|_| is_colon && begins_value).map(|word| (word, place))
    })
}

/// By the first word, and where it is shared with plain SQL, the second.
fn statement(cursor: &mut Cursor<'_>, text: &str) -> Result<Statement> {
    let Some(first) = cursor.peek() else { return Err(cursor.expected("a statement", &[])) };
    if starts_query(first) {
        return select(cursor, text);
    }
    if first.is_word("CREATE") {
        return create(cursor, text);
    }
    if first.is_word("COPY") {
        return Ok(Statement::DataFusion);
    }
    if cursor.is(&["START"]) && !cursor.is(&["START", "TRANSACTION"]) {
        cursor.at += 1;
        cursor.expect(&["QUERY"])?;
        return start::start_query(cursor, text);
    }
    if cursor.is(&["ALTER"]) && !cursor.is(&["ALTER", "QUERY"]) {
        return sql(cursor);
    }
    if cursor.is(&["DROP"]) {
        return drop(cursor);
    }
    if first.is_any(&SQL) || cursor.is(&["START", "TRANSACTION"]) {
        return sql(cursor);
    }
    let word = first.word().unwrap_or_default().to_ascii_uppercase();
    cursor.at += 1;
    match word.as_str() {
        "CLOSE" => create::close(cursor),
        "STOP" => control::stop(cursor),
        "PAUSE" => control::of_query(cursor, Statement::PauseQuery),
        "RESUME" => control::of_query(cursor, Statement::ResumeQuery),
        "VERIFY" => control::of_query(cursor, Statement::VerifyQuery),
        "AWAIT" => control::await_query(cursor),
        "ALTER" => {
            cursor.expect(&["QUERY"])?;
            start::alter_query(cursor)
        }
        "WATCH" => control::watch(cursor, text),
        "STEP" => control::step(cursor),
        "CRASH" => control::crash(cursor),
        "ADVANCE" => control::advance(cursor),
        "SHOW" if cursor.is(&["COLUMNS"]) || cursor.is(&["FULL"]) => sql(cursor),
        "SHOW" => show::show(cursor),
        "DESCRIBE" | "DESC" => show::describe(cursor),
        "EXPLAIN" => show::explain(cursor, text),
        "SET" => show::set(cursor),
        "RESET" => show::reset(cursor),
        _ => {
            cursor.at -= 1;
            let known: Vec<&str> = OURS.into_iter().chain(SQL).chain(["COPY", "WITH", "VALUES"]).collect();
            Err(cursor.expected("a statement", &known))
        }
    }
}

/// A query by itself. The clauses of START QUERY are a common thing to try here.
fn select(cursor: &mut Cursor<'_>, text: &str) -> Result<Statement> {
    match query(cursor.lexemes, text, cursor.end) {
        Ok(query) => Ok(Statement::Select(Box::new(query))),
        Err(error) if error.help_text().is_some() => Err(error),
        Err(error) => {
            let place = error.span().map(|span| span.start);
            let near = cursor.lexemes.iter().position(|l| Some(l.span.start) == place);
            let is_clause = |l: &Lexeme| l.is_any(&["OUTPUT", "TRIGGER", "CHECKPOINT", "STOP"]);
            let found = near.is_some_and(|at| cursor.lexemes[at.saturating_sub(1)..=at].iter().any(is_clause));
            Err(if found { error.help("this clause belongs to START QUERY name AS SELECT …") } else { error })
        }
    }
}

/// `CREATE …`
fn create(cursor: &mut Cursor<'_>, text: &str) -> Result<Statement> {
    cursor.at += 1;
    let or_replace = cursor.take(&["OR", "REPLACE"]);
    if cursor.take(&["STREAM"]) {
        return create::create_stream(or_replace, cursor);
    }
    if cursor.take(&["SINK"]) {
        return create::create_sink(or_replace, cursor);
    }
    if cursor.take(&["VIEW"]) {
        return create::create_view(or_replace, cursor, text);
    }
    if cursor.is(&["MATERIALIZED"]) {
        return Err(Error::unsupported("materialized views are not supported")
            .at(Some(cursor.place()))
            .help("write START QUERY name INTO TABLE t AS SELECT …"));
    }
    if cursor.is(&["EXTERNAL"]) || cursor.is(&["UNBOUNDED", "EXTERNAL"]) {
        return Ok(Statement::DataFusion);
    }
    if cursor.is(&["QUERY"]) {
        return Err(cursor.expected("STREAM, SINK, TABLE or VIEW", &[]).help("a query is made by START QUERY"));
    }
    const PLAIN: [&str; 9] =
        ["TABLE", "TEMPORARY", "TEMP", "SCHEMA", "DATABASE", "FUNCTION", "INDEX", "UNIQUE", "EXTERNAL"];
    if cursor.peek().is_some_and(|l| l.is_any(&PLAIN)) {
        return sql(cursor);
    }
    let words = ["STREAM", "SINK", "TABLE", "VIEW", "EXTERNAL", "SCHEMA", "FUNCTION"];
    Err(cursor.expected("STREAM, SINK, TABLE, VIEW or EXTERNAL TABLE", &words))
}

/// `DROP …`
fn drop(cursor: &mut Cursor<'_>) -> Result<Statement> {
    cursor.at += 1;
    if cursor.peek().is_some_and(|l| l.is_any(&["SCHEMA", "DATABASE", "FUNCTION", "INDEX"])) {
        return sql(cursor);
    }
    let kind = show::object_kind(cursor)?;
    create::drop(kind, cursor)
}

/// A statement without clauses of ours.
fn sql(cursor: &Cursor<'_>) -> Result<Statement> {
    let lexemes = super::windows::rewrite(cursor.lexemes)?;
    if let Some(at) = lexemes.windows(2).position(|pair| pair[0].is_word("WITH") && pair[1].is_word("WATERMARK"))
        && !lexemes.get(at + 2).is_some_and(|l| l.is_word("AS") || l.token == sqlparser::tokenizer::Token::LParen)
    {
        return Err(Error::invalid_at(lexemes[at].span, "WITH WATERMARK has no effect in this statement")
            .help("it belongs to START QUERY, WATCH, EXPLAIN, a SELECT by itself, or CREATE VIEW"));
    }
    let statement = parse_all(&lexemes, cursor.end, "the end of the statement", |parser| parser.parse_statement())?;
    swallowed::refuse(&statement).map_err(|error| error.at(Some(cursor.span())))?;
    Ok(Statement::Sql(Box::new(statement)))
}
