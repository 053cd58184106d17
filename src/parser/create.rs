//! CREATE STREAM, CREATE SINK, CREATE VIEW, DROP and CLOSE STREAM. What else can be created is DataFusion's.

use sqlparser::tokenizer::Token;

use super::cursor::{Cursor, End};
use super::lexer::Lexeme;
use super::query::query;
use super::sql::{parse_all, parse_prefix};
use super::statement::*;
use crate::error::{Error, Result, closest};

/// What may follow CREATE [OR REPLACE] here.
#[derive(Debug, Clone, Copy)]
pub(super) struct Create {
    pub or_replace: bool,
    pub if_not_exists: bool,
}

impl Create {
    /// `[IF NOT EXISTS]`, which contradicts OR REPLACE.
    fn read(or_replace: bool, cursor: &mut Cursor<'_>) -> Result<Create> {
        let from = cursor.at;
        let if_not_exists = cursor.if_not_exists();
        if or_replace && if_not_exists {
            return Err(Error::invalid_at(
                cursor.span_from(from),
                "OR REPLACE and IF NOT EXISTS contradict each other",
            )
            .help("leave one of them out"));
        }
        Ok(Create { or_replace, if_not_exists })
    }
}

/// Behind `CREATE [OR REPLACE] STREAM`.
pub(super) fn create_stream(or_replace: bool, cursor: &mut Cursor<'_>) -> Result<Statement> {
    let Create { or_replace, if_not_exists } = Create::read(or_replace, cursor)?;
    let name = cursor.plain_name("the name of the stream")?;
    let mut stream = CreateStream { or_replace, if_not_exists, name, columns: None, watermark: None, options: None };
    if cursor.take_token(&Token::LParen) {
        stream_elements(&mut stream, cursor)?;
    }
    if cursor.take(&["WITH"]) {
        stream.options = Some(cursor.with_list()?);
    } else if cursor.peek().is_some() {
        let what = if stream.columns.is_some() { "WITH or the end of the statement" } else { "(, WITH or the end" };
        return Err(cursor.expected(what, &["WITH"]));
    }
    cursor.finish()?;
    Ok(Statement::CreateStream(Box::new(stream)))
}

/// The list in parentheses: columns and at most one watermark.
fn stream_elements(stream: &mut CreateStream, cursor: &mut Cursor<'_>) -> Result<()> {
    let mut columns: Vec<ColumnDef> = Vec::new();
    loop {
        if cursor.is(&["WATERMARK", "FOR"]) {
            let watermark = watermark_for(cursor)?;
            if let Some(first) = &stream.watermark {
                let (line, column) = (first.span.start.line, first.span.start.column);
                return Err(Error::invalid_at(watermark.span, "a stream has one watermark")
                    .help(format!("the other one stands at {line}:{column}")));
            }
            stream.watermark = Some(watermark);
        } else {
            let column = column(cursor)?;
            if columns.iter().any(|other| other.name == column.name) {
                let message = format!("column {} is given twice", column.name);
                return Err(Error::invalid_at(column.name.span, message));
            }
            columns.push(column);
        }
        if !cursor.take_token(&Token::Comma) {
            break;
        }
    }
    if !cursor.take_token(&Token::RParen) {
        return Err(cursor.expected("a comma or )", &["NOT", "METADATA", "AS"]));
    }
    stream.columns = (!columns.is_empty()).then_some(columns);
    Ok(())
}

/// `WATERMARK FOR column AS column - interval [IDLE AFTER interval] [MAX FUTURE SKEW interval]`
fn watermark_for(cursor: &mut Cursor<'_>) -> Result<WatermarkDef> {
    let from = cursor.at;
    cursor.expect(&["WATERMARK", "FOR"])?;
    let column = cursor.name("the column of the watermark")?;
    cursor.expect(&["AS"])?;
    let repeated = cursor.name("the column of the watermark again")?;
    if repeated != column {
        return Err(Error::invalid_at(repeated.span, format!("the watermark for {column} is made of {repeated}"))
            .help(format!("write WATERMARK FOR {column} AS {column} - INTERVAL '10 seconds'")));
    }
    let delay = if cursor.take_token(&Token::Minus) {
        cursor.duration("the delay of a watermark")?
    } else if cursor.is_token(&Token::Plus) {
        return Err(cursor.expected("-", &[]).help("a watermark lags behind the time column"));
    } else {
        Interval { months: 0, micros: 0 }
    };
    let (mut idle_after, mut max_future_skew) = (None, None);
    loop {
        let place = cursor.place();
        let (clause, name) = if cursor.take(&["IDLE"]) {
            cursor.expect(&["AFTER"])?;
            (&mut idle_after, "IDLE AFTER")
        } else if cursor.take(&["MAX"]) {
            cursor.expect(&["FUTURE", "SKEW"])?;
            (&mut max_future_skew, "MAX FUTURE SKEW")
        } else {
            break;
        };
        if clause.is_some() {
            return Err(Error::invalid_at(place, format!("{name} is given twice")));
        }
        *clause = Some(cursor.duration(name)?);
    }
    Ok(WatermarkDef { column, delay, idle_after, max_future_skew, span: cursor.span_from(from) })
}

/// `name type [NOT NULL]`, `name type METADATA FROM 'key'` or `name [type] AS (expression)`
fn column(cursor: &mut Cursor<'_>) -> Result<ColumnDef> {
    let name = cursor.name("a column, or WATERMARK FOR")?;
    if cursor.is(&["AS"]) {
        let kind = computed(cursor)?;
        return Ok(ColumnDef { name, data_type: None, not_null: false, kind });
    }
    if cursor.peek().is_none_or(|l| !matches!(l.token, Token::Word(_)) || l.is_any(&["METADATA", "NOT"])) {
        return Err(cursor.expected(&format!("the type of {name}"), &[]));
    }
    let until = element_end(cursor.lexemes, cursor.at);
    let element = &cursor.lexemes[cursor.at..until];
    let end = End::before(cursor.lexemes, until, cursor.end);
    let (data_type, taken) = parse_prefix(element, end, |parser| parser.parse_data_type())?;
    cursor.at += taken;
    let not_null = cursor.take(&["NOT", "NULL"]);
    let kind = if cursor.is(&["METADATA"]) && !not_null {
        cursor.expect(&["METADATA", "FROM"])?;
        let place = cursor.place();
        let key = cursor.string("the key in quotes, such as 'path'")?;
        if key.is_empty() {
            return Err(Error::invalid_at(place, "the key of a METADATA column can't be empty"));
        }
        ColumnKind::Metadata(key)
    } else if cursor.is(&["AS"]) && !not_null {
        computed(cursor)?
    } else {
        ColumnKind::Field
    };
    if cursor.peek().is_some_and(|l| !matches!(l.token, Token::Comma | Token::RParen)) {
        let what = if not_null { "a comma or )" } else { "NOT NULL, METADATA FROM, AS (…), a comma or )" };
        let error = cursor.expected(what, &["NOT", "METADATA", "AS"]);
        return Err(match closest(&name.value, ["watermark"]) {
            _ if not_null && cursor.is(&["AS"]) => error.help("a computed column takes no NOT NULL: leave it out"),
            Some(_) if data_type.to_string().eq_ignore_ascii_case("for") => error.help("did you mean WATERMARK FOR?"),
            _ => error,
        });
    }
    Ok(ColumnDef { name, data_type: Some(data_type), not_null, kind })
}

/// Where the column that is read at `from` ends: at a comma or parenthesis outside of inner brackets, `<…>` included.
fn element_end(lexemes: &[Lexeme], from: usize) -> usize {
    let (mut brackets, mut angles) = (0usize, 0usize);
    for (at, lexeme) in lexemes.iter().enumerate().skip(from) {
        match lexeme.token {
            Token::Comma | Token::RParen if brackets == 0 && angles == 0 => return at,
            Token::LParen | Token::LBracket => brackets += 1,
            Token::RParen | Token::RBracket => brackets = brackets.saturating_sub(1),
            Token::Lt if brackets == 0 => angles += 1,
            Token::Gt if brackets == 0 => angles = angles.saturating_sub(1),
            Token::ShiftRight if brackets == 0 => angles = angles.saturating_sub(2),
            _ => {}
        }
    }
    lexemes.len()
}

/// `AS (expression)`
fn computed(cursor: &mut Cursor<'_>) -> Result<ColumnKind> {
    cursor.expect(&["AS"])?;
    let open = cursor.at;
    cursor.expect_token(&Token::LParen)?;
    let close = closing(cursor.lexemes, open)
        .ok_or_else(|| Error::invalid_at(cursor.lexemes[open].span, "the parenthesis that begins here never ends"))?;
    let inner = &cursor.lexemes[open + 1..close];
    let expr = parse_all(inner, End::Before(&cursor.lexemes[close]), ")", |parser| parser.parse_expr())?;
    cursor.at = close + 1;
    super::swallowed::refuse(&expr).map_err(|error| error.at(Some(cursor.span_from(open))))?;
    Ok(ColumnKind::Computed(Box::new(expr)))
}

fn closing(lexemes: &[Lexeme], open: usize) -> Option<usize> {
    let mut depth = 0usize;
    lexemes.iter().enumerate().skip(open).find_map(|(at, lexeme)| {
        match lexeme.token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ => {}
        }
        (depth == 0).then_some(at)
    })
}

/// Behind `CREATE [OR REPLACE] SINK`.
pub(super) fn create_sink(or_replace: bool, cursor: &mut Cursor<'_>) -> Result<Statement> {
    let Create { or_replace, if_not_exists } = Create::read(or_replace, cursor)?;
    let name = cursor.plain_name("the name of the sink")?;
    cursor.expect(&["WITH"])?;
    let options = cursor.with_list()?;
    cursor.finish()?;
    Ok(Statement::CreateSink(CreateSink { or_replace, if_not_exists, name, options }))
}

/// Behind `CREATE [OR REPLACE] VIEW`.
pub(super) fn create_view(or_replace: bool, cursor: &mut Cursor<'_>, text: &str) -> Result<Statement> {
    let Create { or_replace, if_not_exists } = Create::read(or_replace, cursor)?;
    let name = cursor.plain_name("the name of the view")?;
    let mut columns = Vec::new();
    if cursor.take_token(&Token::LParen) {
        loop {
            columns.push(cursor.name("the name of a column")?);
            if !cursor.take_token(&Token::Comma) {
                break;
            }
        }
        if !cursor.take_token(&Token::RParen) {
            return Err(cursor.expected("a comma or )", &[]));
        }
    }
    cursor.expect(&["AS"])?;
    let query = query(&cursor.lexemes[cursor.at..], text, cursor.end)?;
    Ok(Statement::CreateView(Box::new(CreateView { or_replace, if_not_exists, name, columns, query })))
}

/// Behind `DROP STREAM`, `DROP SINK` and so on.
pub(super) fn drop(kind: ObjectKind, cursor: &mut Cursor<'_>) -> Result<Statement> {
    let if_exists = cursor.take(&["IF", "EXISTS"]);
    let name = cursor.plain_name(&format!("the name of the {}", kind.noun()))?;
    if cursor.is_token(&Token::Comma) {
        return Err(cursor.expected("the end of the statement", &[]).help("DROP takes one name at a time"));
    }
    if cursor.is(&["CASCADE"]) || cursor.is(&["RESTRICT"]) {
        return Err(cursor
            .expected("the end of the statement", &[])
            .help("DROP never takes what depends on it along; it is refused and names it"));
    }
    cursor.finish()?;
    Ok(Statement::Drop { kind, if_exists, name })
}

/// Behind `CLOSE`.
pub(super) fn close(cursor: &mut Cursor<'_>) -> Result<Statement> {
    cursor.expect(&["STREAM"])?;
    let name = cursor.plain_name("the name of the stream")?;
    cursor.finish()?;
    Ok(Statement::CloseStream(name))
}
