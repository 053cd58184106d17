//! Where statements end: examples, and agreement with the lexer on random text.

use proptest::prelude::*;
use sqlparser::tokenizer::Token;

use super::*;
use crate::parser::lexer::lex;

fn pieces(input: &str) -> Vec<String> {
    let mut splitter = Splitter::new(input);
    std::iter::from_fn(|| splitter.next_text()).map(|piece| piece.unwrap().text.to_string()).collect()
}

#[test]
fn semicolons_that_end_nothing() {
    for text in [
        "SELECT ';'",
        "SELECT 'it''s;'",
        "SELECT E'\\';'",
        "SELECT \";\" FROM `;`",
        "SELECT 1 -- ;\n + 1",
        "SELECT /* ; /* ; */ ; */ 1",
        "SELECT $$;'$$, $a$;$$;$a$",
        "SELECT 1e'\\';'",
        "SELECT r'\\', r''';'''",
        "SELECT a //* b",
        "SELECT a |/* b",
    ] {
        assert_eq!(pieces(&format!("{text};SELECT 2")), [text, "SELECT 2"], "{text}");
    }
}

#[test]
fn what_stands_around_statements() {
    let input = "\u{feff}#!/usr/bin/env levada 'x\r\n-- first; \r\n SELECT 1 ; ;;\r\n/* ; */ SELECT\r\n 2 -- end";
    let mut splitter = Splitter::new(input);
    let first = splitter.next_text().unwrap().unwrap();
    assert_eq!((first.text, first.span.start), ("SELECT 1", Location { line: 3, column: 2 }));
    assert_eq!(&input[first.range], "SELECT 1");
    let second = splitter.next_text().unwrap().unwrap();
    assert_eq!(second.text, "SELECT\r\n 2");
    assert_eq!(
        (second.span.start, second.span.end),
        (Location { line: 4, column: 9 }, Location { line: 5, column: 3 })
    );
    assert!(splitter.next_text().is_none());
    assert!(pieces("").is_empty() && pieces(" ;; -- x\n").is_empty() && pieces("#!/bin/x").is_empty());
}

#[test]
fn a_script_runs_up_to_its_error() {
    let mut splitter = parse_statements("SELECT 1;\nSELEC 2;\nSELECT 3;\n SELECT 'open\n;");
    assert!(splitter.next().unwrap().is_ok());
    let error = splitter.next().unwrap().unwrap_err();
    assert_eq!(error.span().unwrap().start, Location { line: 2, column: 1 });
    assert!(splitter.next().unwrap().is_ok());
    let error = splitter.next().unwrap().unwrap_err();
    assert_eq!(error.span().unwrap().start, Location { line: 4, column: 9 });
    assert_eq!(error.to_string(), "the string that begins here never ends");
    assert!(splitter.next().is_none());
}

#[test]
fn why_a_shell_waits() {
    for (text, wanted) in [
        ("", Pending::Empty),
        ("  -- x\n /* y */", Pending::Empty),
        ("SELECT", Pending::Statement),
        ("SELECT 1 -- x", Pending::Statement),
        ("SELECT 'a", Pending::Quote('\'')),
        ("SELECT 'a''", Pending::Quote('\'')),
        ("SELECT \"a", Pending::Quote('"')),
        ("SELECT `a", Pending::Quote('`')),
        ("SELECT /* /* */", Pending::Comment),
        ("SELECT (1 + (2)", Pending::Parenthesis),
        ("SELECT $$", Pending::Dollar),
        ("SELECT $t$ $$", Pending::Dollar),
        ("SELECT r'''a''", Pending::Quote('\'')),
        ("SELECT 1;", Pending::Complete { end: 9 }),
        ("SELECT ';' ; SELECT", Pending::Complete { end: 12 }),
        ("SELECT \\ ;", Pending::Complete { end: 10 }),
        ("SELECT )", Pending::Statement),
    ] {
        assert_eq!(pending(text), wanted, "{text}");
    }
}

#[test]
fn a_scanner_reads_line_by_line() {
    let mut scanner = Scanner::new();
    assert_eq!(scanner.feed("SELECT 'a\n"), None);
    assert_eq!(scanner.pending(), Pending::Quote('\''));
    assert_eq!(scanner.feed(";' /*\n"), None);
    assert_eq!(scanner.pending(), Pending::Comment);
    assert_eq!(scanner.feed("; \\x */ $t$ ;\n"), None);
    assert_eq!(scanner.pending(), Pending::Dollar);
    assert_eq!(scanner.feed("$t$ \\gx\n"), Some(Stop::Backslash(4)));
    assert_eq!(scanner.feed("; SELECT 2"), Some(Stop::Semicolon(1)));
    assert_eq!(scanner.pending(), Pending::Empty);
}

/// Fragments that, next to each other, make or break tokens.
fn fragments() -> impl Strategy<Value = String> {
    let fragment = prop::sample::select(vec![
        ";", "'", "''", "\"", "`", "--", "/*", "*/", "/", "*", "$", "$$", "$t$", "\\", "e'", "E'", "b'", "b\"", "r'",
        "r\"", "r'''", "'''", "n'", "x'", "X'", "u&'", "U&'", "q'", "1", "0x", "1e", "e+", "1.", ".", ".5", "L", "_",
        "|", "||", "#", "-", ">", "<", "=", "@", "?", "!", "~", "&", "^", "%", ":", "a", "é", "本", "\u{301}", "(",
        ")", "[", "]", "{", "}", " ", "\n", "\r", "\t", "\u{a0}", "SELECT", "t$",
    ]);
    prop::collection::vec(fragment, 0..24).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(fixed(3000))]

    /// The scanner's first `;` is the lexer's.
    #[test]
    fn the_scanner_agrees_with_the_lexer(text in fragments()) {
        if let Ok(lexemes) = lex(&text, START) {
            let semicolon = lexemes.iter().find(|l| l.token == Token::SemiColon).map(|l| l.range.end);
            let scanned = match pending(&text) { Pending::Complete { end } => Some(end), _ => None };
            prop_assert_eq!(scanned, semicolon, "{:?}", text);
        }
    }

    /// Whatever the text, nothing panics, no byte outside of white space and comments is lost, and places agree.
    #[test]
    fn any_text_splits(text in fragments()) {
        let mut splitter = Splitter::new(&text);
        let mut end = 0;
        while let Some(piece) = splitter.next_text() {
            let Ok(piece) = piece else { break };
            prop_assert!(piece.range.start >= end);
            end = piece.range.end;
            prop_assert_eq!(&text[piece.range], piece.text);
            let _ = parse_one(piece.text, piece.span.start);
        }
        let _ = pending(&text);
    }
}
