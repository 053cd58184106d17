//! `COPY (query) TO …`: the query is read as every other one; what is around it is left to DataFusion's parser.

use sqlparser::tokenizer::Token;

use super::cursor::End;
use super::lexer::lex;
use super::query::query;
use super::statement::QueryText;
use super::windows::closing_brackets;
use crate::error::{Location, Result};

/// The query of a COPY, and the statement's text with a name in its place: everything else stands where it stood. `None`: it
/// copies a table, or is another statement.
///
/// # Errors
/// What is wrong with the query, with its place in the input.
pub fn copied_query(text: &str, start: Location) -> Result<Option<(QueryText, String)>> {
    let lexemes = lex(text, start)?;
    let opens =
        lexemes.first().is_some_and(|l| l.is_word("COPY")) && lexemes.get(1).is_some_and(|l| l.token == Token::LParen);
    let closed = closing_brackets(&lexemes).get(1).copied().flatten();
    let (true, Some(closed)) = (opens, closed) else { return Ok(None) };
    let read = query(&lexemes[2..closed], text, End::Before(&lexemes[closed]))?;
    let (from, to) = (lexemes[1].range.start, lexemes[closed].range.end);
    let blank = |c: char| if c == '\n' { '\n' } else { ' ' };
    let blanks = text[from + 1..to].chars().map(blank);
    let around = text[..from].chars().chain(['q']).chain(blanks).chain(text[to..].chars()).collect();
    Ok(Some((read, around)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_around_stays_where_it_is() {
        let start = Location { line: 1, column: 1 };
        let text = "COPY (SELECT 'é)' AS a,\n  (1) AS b) TO 'x' STORED AS CSV";
        let (query, around) = copied_query(text, start).unwrap().unwrap();
        assert_eq!(query.text, "SELECT 'é)' AS a,\n  (1) AS b");
        assert_eq!(around, "COPY q                 \n            TO 'x' STORED AS CSV");
        let places = |text: &str| text.chars().map(|c| c == '\n').collect::<Vec<_>>();
        assert_eq!(places(text), places(&around));
        assert!(copied_query("COPY t TO 'x'", start).unwrap().is_none());
        assert!(copied_query("CREATE EXTERNAL TABLE t (a INT) STORED AS CSV LOCATION 'x'", start).unwrap().is_none());
    }
}
