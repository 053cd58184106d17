//! The real binary over statements: what an answer looks like from outside, and what it costs to ask.

use crate::cli::{assert_no_escapes, code, run, run_with, stderr, stdout};

#[test]
fn a_statement_has_its_rows_on_standard_output_and_nothing_else() {
    let output = run(&["-c", "SELECT 1 AS a, '' AS b, NULL AS c; SELECT 2 AS d"]);
    let table = "+---+---+------+\n| a | b | c    |\n+---+---+------+\n| 1 |   | NULL |\n+---+---+------+\n";
    let second = "+---+\n| d |\n+---+\n| 2 |\n+---+\n";
    assert_eq!((code(&output), stdout(&output), stderr(&output)), (0, &*format!("{table}{second}"), ""));
}

#[test]
fn statements_without_rows_write_nothing() {
    let sql = "CREATE STREAM s (a INT); INSERT INTO s VALUES (1), (2); SELECT sum(a) AS a FROM s;";
    let output = run(&["--format", "csv", "-c", sql]);
    assert_eq!((code(&output), stdout(&output)), (0, "a\n3\n"));
}

#[test]
fn splitting_follows_the_lexer() {
    let script = "SELECT ';' AS a; -- ; not here\nSELECT /* ; /* ; */ */ $$;\n\\q$$ AS b;SELECT 3 AS c";
    let output = run_with(&["--format", "jsonlines"], script);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert_eq!(stdout(&output), "{\"a\":\";\"}\n{\"b\":\";\\n\\\\q\"}\n{\"c\":3}\n");
}

#[test]
fn an_error_is_shown_at_its_place() {
    let output = run_with(&[], "SELECT 1 AS a;\n  SELECT 2, FROM;\nSELECT 3 AS c;\n");
    assert_eq!(code(&output), 1);
    assert!(!stdout(&output).contains('3'), "{}", stdout(&output));
    assert!(stderr(&output).contains(" stdin:2:"), "{}", stderr(&output));
    assert!(stderr(&output).contains("    2 |   SELECT 2, FROM;\n"), "{}", stderr(&output));
    assert_no_escapes(&output);
    let output = run_with(&["--keep-going"], "SELECT 1 AS a;\n  SELECT 2, FROM;\nSELECT 3 AS c;\n");
    assert_eq!(code(&output), 1);
    assert!(stdout(&output).contains('3'), "{}", stdout(&output));
}

#[test]
fn what_is_created_is_listed_and_described() {
    let output = run_with(&["--format", "csv"], "CREATE STREAM bids (price INT);\n\\d\n\\d bids\n\\d nothing\n");
    assert_eq!(code(&output), 1);
    assert!(stdout(&output).contains("bids"), "{}", stdout(&output));
    assert!(stdout(&output).contains("price"), "{}", stdout(&output));
    assert!(stderr(&output).contains("nothing"), "{}", stderr(&output));
}

#[test]
fn a_result_that_nobody_reads_to_its_end_ends_quietly() {
    let levada = env!("CARGO_BIN_EXE_levada");
    let pipe = format!(
        "{levada} --format csv -c 'SELECT * FROM generate_series(1, 1000000)' | head -2; echo ${{PIPESTATUS[0]}}"
    );
    let output = std::process::Command::new("bash").args(["-c", &pipe]).output().unwrap();
    assert_eq!((stdout(&output), stderr(&output)), ("value\n1\n141\n", ""));
}

#[test]
fn a_statement_that_would_take_for_ever_is_ended_by_a_timeout() {
    let sql = "SELECT count(*) FROM generate_series(1, 100000000000) a, generate_series(1, 100000) b";
    let output = run(&["--timeout", "500ms", "-c", sql, "-c", "\\echo never"]);
    let ended = format!("--timeout 500ms has passed and ends {sql}\n");
    assert_eq!((code(&output), stdout(&output), stderr(&output)), (124, "", ended.as_str()));
}
