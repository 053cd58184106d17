//! The lexemes of a query → [`QueryText`]: window functions rewritten, our clauses cut out, the rest parsed.

use std::ops::ControlFlow;

use sqlparser::ast::{FunctionArg, FunctionArgExpr, Ident, ObjectName, Select, TableFactor, Visitor};
use sqlparser::tokenizer::Token;

use super::cursor::End;
use super::lexer::{Lexeme, ours};
use super::sql::parse_all;
use super::statement::QueryText;
use super::walk::{Flow, walk};
use super::watermark::{Cut, cut};
use super::{swallowed, windows};
use crate::error::{Code, Error, Location, Result, Span};

/// Reads a whole query; `text` is the statement's, `end` what is behind the query.
///
/// # Errors
/// What is wrong with its SQL or with our clauses in it, and what DataFusion would read and ignore.
pub(super) fn query(lexemes: &[Lexeme], text: &str, end: End<'_>) -> Result<QueryText> {
    let (Some(first), Some(last)) = (lexemes.first(), lexemes.last()) else {
        return Err(
            Error::invalid_at(end.span(), format!("expected a query, found {}", end.shown())).coded(Code::Syntax)
        );
    };
    let Cut { lexemes: sql, watermarks, within_watermark } = cut(windows::rewrite(lexemes)?, end)?;
    let ast = *parse_all(&sql, end, "the end of the query", |parser| parser.parse_query())?;
    let span = Span { start: first.span.start, end: last.span.end };
    swallowed::refuse(&ast).map_err(|error| error.at(Some(span)))?;
    let query = QueryText {
        ast,
        text: text[first.range.start..last.range.end].to_string(),
        watermarks,
        within_watermark,
        span,
    };
    check_places(&query, &sql)?;
    Ok(query)
}

/// The words that begin a query.
pub(super) fn starts_query(lexeme: &Lexeme) -> bool {
    lexeme.token == Token::LParen || lexeme.is_any(&["SELECT", "WITH", "VALUES", "FROM", "TABLE"])
}

/// The parser has to agree on where a clause belongs: what was cut behind a SELECT or a table must be behind one.
fn check_places(query: &QueryText, sql: &[Lexeme]) -> Result<()> {
    if query.watermarks.is_empty() && query.within_watermark.is_empty() {
        return Ok(());
    }
    let mut places = Places::default();
    let _ = walk(&query.ast, &mut places);
    for clause in &query.watermarks {
        if !places.selects.contains(&clause.select) {
            return Err(Error::invalid_at(clause.span, "WITH WATERMARK has to stand at the end of a SELECT"));
        }
        if let Some(table) = clause.table
            && !places.tables.contains(&table)
            && !is_parenthesis(sql, table)
        {
            return Err(Error::invalid_at(clause.span, "WATERMARK … DELAY OF stands between a table and its alias")
                .help("write FROM stream WATERMARK column DELAY OF INTERVAL 10 SECONDS AS alias"));
        }
    }
    Ok(())
}

fn is_parenthesis(sql: &[Lexeme], place: Location) -> bool {
    sql.iter().any(|l| l.span.start == place && l.token == Token::LParen)
}

/// Where SELECT keywords and the names of tables stand.
#[derive(Default)]
struct Places {
    selects: Vec<Location>,
    tables: Vec<Location>,
}

impl Places {
    fn table(&mut self, name: Option<&Ident>) {
        self.tables.extend(name.and_then(|ident| ours(ident.span.start)));
    }
}

fn first_ident(name: &ObjectName) -> Option<&Ident> {
    name.0.first().and_then(|part| part.as_ident())
}

impl Visitor for Places {
    type Break = Box<Error>;

    fn pre_visit_select(&mut self, select: &Select) -> Flow {
        self.selects.extend(ours(select.select_token.0.span.start));
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> Flow {
        match factor {
            TableFactor::Table { name, args, .. } => {
                self.table(first_ident(name));
                // The stream that a window function reads.
                let first = args.as_ref().and_then(|args| args.args.first());
                if let Some(
                    FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))
                    | FunctionArg::Named { arg: FunctionArgExpr::Expr(expr), .. },
                ) = first
                {
                    match expr {
                        sqlparser::ast::Expr::Identifier(ident) => self.table(Some(ident)),
                        sqlparser::ast::Expr::CompoundIdentifier(idents) => self.table(idents.first()),
                        _ => {}
                    }
                }
            }
            TableFactor::Function { name, .. } => self.table(first_ident(name)),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}
