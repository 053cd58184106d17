//! The real binary from outside: arguments, exit codes, what goes to which output, and how a run is ended.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Output, Stdio};

/// The binary with a history and terminal that are nobody's.
fn levada(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_levada"));
    command.args(arguments).env("LEVADA_HISTORY", "/dev/null").stdin(Stdio::null());
    command
}

/// Runs to the end with this standard input.
pub fn run_with(arguments: &[&str], input: &str) -> Output {
    let mut command = levada(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A process that is done before it has read everything closes the pipe.
    _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

pub fn run(arguments: &[&str]) -> Output {
    levada(arguments).output().unwrap()
}

pub fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

pub fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

pub fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}

#[track_caller]
pub fn assert_no_escapes(output: &Output) {
    for bytes in [&output.stdout, &output.stderr] {
        assert!(!bytes.contains(&0x1b), "{}", String::from_utf8_lossy(bytes));
    }
}

/// A script in a file of its own.
fn script(folder: &tempfile::TempDir, name: &str, text: &str) -> String {
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_string()
}

#[test]
fn wrong_usage_is_2_and_says_what_is_right() {
    for (arguments, hint) in [
        (&["--formt", "csv"][..], "--format"),
        (&["--format", "cvs", "-c", "\\q"], "did you mean csv?"),
        (&["--timeout", "soon", "-c", "\\q"], "is no unit of time"),
        (&["--timeout", "0s", "-c", "\\q"], "longer than nothing"),
        (&["query.sql"], "to run a file, write -f in front of it"),
        (&["SELECT 1"], "to run SQL, write -c in front of it"),
        (&["-c"], "a value is required"),
        (&["-f", "/nowhere/at/all.sql"], "can't open /nowhere/at/all.sql: No such file or directory"),
    ] {
        let output = run(arguments);
        assert_eq!(code(&output), 2, "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(hint), "{arguments:?}: {}", stderr(&output));
        assert_eq!(stdout(&output), "", "{arguments:?}");
        assert_no_escapes(&output);
    }
}

#[test]
fn help_and_version_are_0() {
    for arguments in [["--help"], ["-h"]] {
        let output = run(&arguments);
        assert_eq!(code(&output), 0);
        assert!(stdout(&output).contains("--keep-going"));
        assert_no_escapes(&output);
    }
    let output = run(&["-V"]);
    assert_eq!((code(&output), stdout(&output)), (0, concat!("levada ", env!("CARGO_PKG_VERSION"), "\n")));
}

#[test]
fn every_format_name_is_taken() {
    for name in ["table", "box", "ascii", "csv", "tsv", "json", "jsonlines", "jsonl", "nd-json", "markdown", "vertical"]
    {
        let output = run(&["--format", name, "-c", "\\echo fine"]);
        assert_eq!((code(&output), stdout(&output), stderr(&output)), (0, "fine\n", ""), "{name}");
    }
    let output = run(&["-c", ".mode jsonl", "-c", "\\pset"]);
    assert!(stdout(&output).starts_with("format         jsonlines\nexpanded       off\n"), "{}", stdout(&output));
}

#[test]
fn texts_and_files_run_in_their_order() {
    let folder = tempfile::tempdir().unwrap();
    let file = script(&folder, "b.sql", "\\echo b");
    let output =
        run_with(&["-c", "\\echo a", "-f", &file, "-c", "\\echo c", "-f", "-", "-c", "\\echo e"], "\\echo d\n");
    assert_eq!((code(&output), stdout(&output), stderr(&output)), (0, "a\nb\nc\nd\ne\n", ""));
}

#[test]
fn standard_input_is_a_script() {
    let output = run_with(&[], "\u{feff}-- a comment\r\n\\echo one\r\n.print two\r\nquit\r\n\\echo never\r\n");
    assert_eq!((code(&output), stdout(&output), stderr(&output)), (0, "one\ntwo\n", ""));
    assert_eq!(code(&run(&[])), 0, "nothing is fine too");
}

#[test]
fn included_files_are_found_from_the_working_directory_or_the_script() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("parts")).unwrap();
    script(&folder, "parts/one.sql", "\\echo one\n\\ir two.sql\n\\i two.sql");
    script(&folder, "parts/two.sql", "\\echo beside");
    script(&folder, "two.sql", "\\echo here");
    let output = levada(&["-c", "\\i parts/one.sql"]).current_dir(folder.path()).output().unwrap();
    assert_eq!((code(&output), stdout(&output), stderr(&output)), (0, "one\nbeside\nhere\n", ""));
}

#[test]
fn a_file_that_includes_itself_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = script(&folder, "circle.sql", "\\ir circle.sql");
    let output = run(&["-f", &file]);
    assert_eq!(code(&output), 1);
    assert!(stderr(&output).contains("does a file include itself?"), "{}", stderr(&output));
}

#[test]
fn the_first_error_ends_a_script_at_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let file = script(&folder, "bad.sql", "\\echo before\n  -- why\n  \\tming on\n\\echo behind\n");
    let output = run(&["-f", &file, "-c", "\\echo never"]);
    assert_eq!((code(&output), stdout(&output)), (1, "before\n"));
    let text = stderr(&output);
    assert!(text.starts_with(&format!("error[E0105] {file}:3:3: there is no command \\tming")), "{text}");
    assert!(text.contains("    3 |   \\tming on\n"), "{text}");
    assert!(text.contains("did you mean \\timing?"), "{text}");
    assert_no_escapes(&output);

    let output = run(&["--keep-going", "-f", &file, "-c", "\\echo last"]);
    assert_eq!((code(&output), stdout(&output)), (1, "before\nbehind\nlast\n"));
}

#[test]
fn the_place_in_an_argument_names_it() {
    let output = run(&["-c", "\\echo first", "-c", "SELECT 'x;\ny';\n  BAD STATEMENT;"]);
    assert_eq!(code(&output), 1);
    let text = stderr(&output);
    assert!(text.contains(" -c #2:"), "{text}");
    assert_no_escapes(&output);
}

#[test]
fn what_could_move_a_cursor_is_shown_in_errors_too() {
    let output = run(&["-c", "\\echo 'a", "-c", "\\nothing\x1b[2J"]);
    assert_eq!(code(&output), 1);
    assert_no_escapes(&output);
    let output = run(&["-c", "\\nothing\x1b[2J"]);
    assert!(stderr(&output).contains("\\nothing\u{fffd}[2J"), "{}", stderr(&output));
    assert_no_escapes(&output);
}

#[test]
fn exit_takes_a_code() {
    let output = run_with(&[], ".exit 7\n");
    assert_eq!(code(&output), 7);
    let output = run(&["--keep-going", "-c", "\\nothing", "-c", "\\q", "-c", "\\echo never"]);
    assert_eq!((code(&output), stdout(&output)), (1, ""));
}

#[test]
fn commands_that_are_not_built_are_refused() {
    let output = run(&["-c", "\\copy t"]);
    assert_eq!(code(&output), 1);
    assert!(stderr(&output).contains("not supported yet: the command \\copy"), "{}", stderr(&output));
}

#[test]
fn a_line_that_is_no_text_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("latin.sql");
    std::fs::write(&path, b"\\echo fine\nSELECT '\xe9';\n").unwrap();
    let output = run(&["-f", path.to_str().unwrap()]);
    assert_eq!((code(&output), stdout(&output)), (1, "fine\n"));
    assert!(stderr(&output).contains("latin.sql:2: the line is not valid UTF-8"), "{}", stderr(&output));
}

#[test]
fn an_output_that_nobody_reads_ends_quietly() {
    let mut command = levada(&["-f", "-"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    _ = child.stdin.take().unwrap().write_all("\\echo into the void\n".repeat(100).as_bytes());
    let output = child.wait_with_output().unwrap();
    assert_eq!((code(&output), stderr(&output)), (141, ""));
}

#[test]
fn an_output_that_is_full_is_an_error() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = levada(&["-c", "\\echo too much"]).stdout(full).output().unwrap();
    assert_eq!(code(&output), 1);
    assert!(stderr(&output).contains("can't write: No space left on device"), "{}", stderr(&output));
}

/// A run that waits for more of its standard input, once it has run a first command.
fn waiting(arguments: &[&str]) -> Child {
    let mut command = levada(arguments);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.as_mut().unwrap().write_all(b"\\echo ready\n").unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    child
}

#[test]
fn signals_end_a_run_that_waits_for_input() {
    for (name, expected) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        let mut child = waiting(&[]);
        let stdin = child.stdin.take();
        let killed = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status().unwrap();
        assert!(killed.success());
        let output = child.wait_with_output().unwrap();
        assert_eq!((code(&output), stdout(&output), stderr(&output)), (expected, "", ""), "{name}");
        drop(stdin);
    }
}

#[test]
fn a_timeout_ends_a_run_that_waits_for_input() {
    let mut command = levada(&["--timeout", "100ms"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let stdin = child.stdin.take();
    let output = child.wait_with_output().unwrap();
    assert_eq!((code(&output), stdout(&output), stderr(&output)), (124, "", ""));
    drop(stdin);
}

#[test]
fn the_interactive_mode_without_a_terminal_goes_on_after_errors() {
    let output = run_with(&["-i"], "\\nothing\n\\echo still here\n\\q\n");
    assert_eq!((code(&output), stdout(&output)), (0, "still here\n"));
    assert!(stderr(&output).contains("1:1: there is no command \\nothing"), "{}", stderr(&output));
    assert_no_escapes(&output);
}

#[test]
fn flags_of_other_shells_are_taken_or_refused() {
    for (arguments, printed) in [
        (&["-csv", "-noheader", "-c", "SELECT 1 AS n"][..], "1\n"),
        (&["-cmd", "\\echo first", "-json", "-c", "SELECT 1 AS n"], "first\n[{\"n\":1}]\n"),
        (&["-At", "-z", "-0", "-c", "SELECT 1 AS a, 2 AS b"], "1\x002\0"),
        (&["-qtA", "-F", "-", "-c", "SELECT 1 AS a, 2 AS b"], "1-2\n"),
        (&["-H", "-c", "SELECT 1 AS n WHERE FALSE"], "<table>\n<tr><th>n</th></tr>\n</table>\n"),
        (&["-x", "-c", "SELECT 1 AS n"], "-[ RECORD 1 ]-\nn | 1\n"),
        (&["--no-stdin"], ""),
    ] {
        let output = run_with(arguments, "\\echo never\n");
        assert_eq!((code(&output), stdout(&output)), (0, printed), "{arguments:?}: {}", stderr(&output));
    }
    for (arguments, hint) in [
        (&["-1", "-c", "SELECT 1"][..], "there are no transactions"),
        (&["-s"], "write -c to run a statement"),
        (&["--memory-limit", "1g"], "not supported yet: a limit of memory"),
        (&["-P", "maxrows=some", "-c", "\\q"], "\"some\" is no number of rows"),
        (&["-v", "a b=1", "-c", "\\q"], "is no name of a variable"),
        (&["-o", "/nowhere/at/all", "-c", "\\q"], "can't write /nowhere/at/all"),
        (&["-L", "/nowhere/at/all", "-c", "\\q"], "can't write /nowhere/at/all"),
        (&["-p", "/nowhere/at/all", "-c", "\\q"], "can't change to /nowhere/at/all"),
        (&["--bail", "--keep-going"], "cannot be used with"),
    ] {
        let output = run(arguments);
        assert_eq!((code(&output), stdout(&output)), (2, ""), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(hint), "{arguments:?}: {}", stderr(&output));
    }
}

#[test]
fn the_manual_page_and_completions_are_those_of_the_arguments() {
    for (what, holds) in
        [("man", ".TH levada"), ("bash", "_levada"), ("zsh", "#compdef levada"), ("fish", "complete -c levada")]
    {
        let output = run(&["--generate", what]);
        assert_eq!((code(&output), stderr(&output)), (0, ""), "{what}");
        let text = stdout(&output);
        assert!(text.contains(holds) && text.contains("empty"), "{what}: {text}");
    }
}

#[test]
fn a_prompt_runs_ones_own_file_first_and_a_script_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let file = script(&folder, "mine.sql", "\\set greeting hello\n\\pset format csv\n\\nothing\n");
    let run = |arguments: &[&str]| {
        let mut command = levada(arguments);
        let mut child = command
            .env("LEVADARC", &file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        _ = child.stdin.take().unwrap().write_all(b"\\echo :greeting\n\\q\n");
        child.wait_with_output().unwrap()
    };
    let output = run(&["-i"]);
    assert_eq!((code(&output), stdout(&output)), (0, "hello\n"), "{}", stderr(&output));
    assert!(stderr(&output).contains("mine.sql:3:1: there is no command \\nothing"), "{}", stderr(&output));
    assert!(!stderr(&output).contains("format is csv"), "{}", stderr(&output));
    assert_eq!(stdout(&run(&["-i", "-X"])), ":greeting\n");
    assert_eq!(stdout(&run(&[])), ":greeting\n");
}

#[test]
fn colours_are_for_who_asks() {
    let coloured = |arguments: &[&str], variables: &[(&str, &str)]| {
        let mut command = levada(arguments);
        command.env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE").envs(variables.iter().copied());
        let output = command.args(["--format", "table", "-c", "SELECT 1 AS n"]).output().unwrap();
        output.stdout.contains(&0x1b)
    };
    assert!(!coloured(&[], &[]));
    assert!(coloured(&["--color"], &[]));
    assert!(coloured(&["--color=always"], &[("NO_COLOR", "1")]));
    assert!(coloured(&[], &[("CLICOLOR_FORCE", "1")]));
    assert!(!coloured(&[], &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));
    assert!(!coloured(&["--color=never"], &[("CLICOLOR_FORCE", "1")]));
}

#[test]
fn an_edited_statement_is_run() {
    let folder = tempfile::tempdir().unwrap();
    let editor = script(&folder, "editor.sh", "echo 'SELECT 7 AS edited;' > \"$1\"\n");
    let mut command = levada(&["-csv", "-c", "SELECT 1 AS n \\e"]);
    let output = command.env("EDITOR", format!("sh {editor}")).env_remove("LEVADA_EDITOR").output().unwrap();
    assert_eq!((code(&output), stdout(&output)), (0, "edited\n7\n"), "{}", stderr(&output));
}

const PIPE: &str = "CREATE STREAM numbers (n BIGINT) WITH (connector = 'stdin', format = 'json')";
const LINES: &str = "{\"n\":1}\n{\"n\":2}\n{\"n\":4}";

#[test]
fn a_query_over_a_pipe_ends_with_it() {
    for trigger in ["", "TRIGGER AVAILABLE NOW"] {
        let start = format!(
            "START QUERY q INTO TABLE t AS SELECT sum(n) AS total FROM numbers OUTPUT MODE UPDATE {trigger}; AWAIT QUERY q"
        );
        let output = run_with(&["--format", "csv", "-q", "-c", PIPE, "-c", &start, "-c", "SELECT total FROM t"], LINES);
        assert_eq!((code(&output), stdout(&output)), (0, "total\n7\n"), "{trigger}: {}", stderr(&output));
    }
}

#[test]
fn standard_input_has_one_reader() {
    let start = "START QUERY q INTO BLACKHOLE AS SELECT n FROM numbers OUTPUT MODE APPEND";
    let output = run_with(&[], &format!("{PIPE};\n{start};\n"));
    assert_eq!(code(&output), 1);
    assert!(stderr(&output).contains("standard input is read by the script"), "{}", stderr(&output));
    let output = run_with(&["-c", PIPE, "-c", start, "-f", "-"], "\\echo never\n");
    assert_eq!(code(&output), 2);
    assert!(stderr(&output).contains("standard input is read by stream numbers"), "{}", stderr(&output));
}
