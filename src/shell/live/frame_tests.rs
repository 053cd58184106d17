//! What a screen shows, as text; and how keys change it.

use std::time::Duration;

use serde_json::json;

use super::frame::{FRESH, Runs, Size, Status, compose, last_table};
use super::keys::Key;
use super::line::Line;
use super::model::Model;
use super::model_tests::{at, context, keyed, rows, summary};
use super::painter::Painter;
use super::view::{Effect, View};
use crate::delta::{Delta, Op};
use crate::parser::OutputMode;
use crate::sink::SinkContext;

fn text(lines: &[Line]) -> String {
    lines.iter().map(|line| line.text() + "\n").collect()
}

fn status(now: Duration) -> Status<'static> {
    Status { state: "RUNNING", ran: now, now, notice: None, unicode: true, runs: None }
}

fn screen(model: &Model, view: &mut View, now: Duration, columns: usize, rows: usize) -> String {
    text(&compose(model, view, &status(now), Size { columns, rows }))
}

/// Two batches, the second a second ago.
fn two_batches() -> Model {
    let mut model = keyed();
    two_batches_of(&mut model);
    model
}

fn two_batches_of(model: &mut Model) {
    let first = [(5, "/a", Some(6)), (5, "/b", Some(1)), (4, "/a", Some(31)), (4, "/日本", None)];
    model.apply(57, &[Delta::insert(rows(&first))], &summary(38, Some(3)), at(10)).unwrap();
    let second = [(5, "/a", Some(7)), (5, "/c", Some(1)), (5, "/b", Some(0))];
    model.apply(58, &[Delta::insert(rows(&second))], &summary(2, Some(4)), at(14)).unwrap();
    model.learn(&json!({
        "batchId": 58, "lateRows": 0, "durationMs": {"triggerExecution": 12},
        "eventTime": {"max": "2026-01-01T00:04:05.200Z", "watermark": "2026-01-01T00:04:00.000Z"},
        "stateOperators": [{"name": "agg", "numRowsTotal": 3, "memoryUsedBytes": 2100}],
    }));
}

#[test]
fn a_watermark_far_behind_its_delay_is_marked() {
    let second = |delay: Option<i64>| {
        let mut model = Model::new(&SinkContext { delay, ..context(OutputMode::Update, Some(vec![0, 1]), false) });
        two_batches_of(&mut model);
        let shown = screen(&model, &mut View::new(), at(15), 160, 20);
        shown.lines().nth(1).unwrap_or_default().to_string()
    };
    assert!(second(Some(1_700)).contains("(lag 5.2 s █, 3× its delay)"), "{}", second(Some(1_700)));
    for delay in [Some(2_000), Some(0), None] {
        assert!(second(delay).contains("(lag 5.2 s █)"), "{}", second(delay));
    }
}

#[test]
fn a_table_with_what_changed() {
    let mut view = View::new();
    let shown = screen(&two_batches(), &mut view, at(15), 130, 20);
    let expected = "
 per_min · UPDATE · RUNNING 00:00:15 · batch 58 (1 s ago, 12 ms)                                                   q quit  ? help
 in 0.5/s █▁▁▁▂  out 0.8/s  watermark 2026-01-01 00:04:00 (lag 5.2 s █)  state 3 rows · 2.10 kB  late 0  sort window_end↓
 window_end           page   count
 timestamp            utf8   int64
 2026-01-01T00:05:00  /a         7▲
 2026-01-01T00:05:00  /b         0▼
 2026-01-01T00:05:00  /c         1   +
 2026-01-01T00:04:00  /a        31   ✓
 2026-01-01T00:04:00  /日本   NULL   ✓
                                                                                                       [table: 5 rows, 3 changed]
";
    assert_eq!(format!("\n{shown}"), expected);
    // A change is marked for a while only.
    let later = screen(&two_batches(), &mut view, at(14) + FRESH, 110, 20);
    assert!(!later.contains('▲') && !later.contains('+') && later.contains('✓'), "{later}");
    // Other batches change nothing of a picture that is held.
    let mut model = two_batches();
    assert_eq!(view.press(Key::Char('p'), &model), Effect::None);
    model.apply(59, &[Delta::insert(rows(&[(6, "/a", Some(1))]))], &summary(1, Some(4)), at(16)).unwrap();
    let held = screen(&model, &mut view, at(16), 110, 20);
    assert!(held.contains("PAUSED +1 batch ") && !held.contains("00:06:00"), "{held}");
    view.press(Key::Char(' '), &model);
    assert!(screen(&model, &mut view, at(16), 110, 20).contains("00:06:00"));
}

#[test]
fn a_screen_is_never_left() {
    let mut model = two_batches();
    let wild = "x\ty\u{1b}[2J\nz👩‍👩‍👧\u{202e}".repeat(3);
    model.apply(59, &[Delta::insert(rows(&[(9, &wild, Some(i64::MIN))]))], &summary(1, Some(4)), at(15)).unwrap();
    for columns in 1..90 {
        for height in 1..12 {
            for keys in ["", "?", "c", "cc", "ccc", "jo", "/x", "w", "m", "e", "l9"] {
                let mut view = View::new();
                keys.chars().for_each(|key| _ = view.press(Key::Char(key), &model));
                let lines = compose(&model, &mut view, &status(at(15)), Size { columns, rows: height });
                assert!(lines.len() <= height, "{columns}x{height} {keys}");
                for line in &lines {
                    assert!(line.width() < columns, "{columns}x{height} {keys}: {line:?}");
                    assert!(!line.ansi(false).replace("\x1b[7m", "").replace("\x1b[0m", "").contains(char::is_control));
                }
            }
        }
    }
}

#[test]
fn keys_order_filter_and_walk() {
    let model = two_batches();
    let mut view = View::new();
    let press = |view: &mut View, keys: &str| {
        keys.chars().for_each(|key| assert_eq!(view.press(Key::Char(key), &model), Effect::None, "{key}"));
        let shown = screen(&model, view, at(20), 100, 20);
        let row = |line: &str| line.split_whitespace().skip(1).take(2).collect::<Vec<_>>().join(" ");
        shown.lines().filter(|line| line.starts_with(" 2026")).map(row).collect::<Vec<_>>()
    };
    assert_eq!(press(&mut view, "3"), ["/日本 NULL", "/a 31", "/a 7", "/c 1", "/b 0"]);
    assert_eq!(press(&mut view, "r"), ["/b 0", "/c 1", "/a 7", "/a 31", "/日本 NULL"]);
    assert_eq!(press(&mut view, "<"), ["/a 7", "/a 31", "/b 0", "/c 1", "/日本 NULL"]);
    assert_eq!(press(&mut view, "<<"), ["/a 7", "/b 0", "/c 1", "/a 31", "/日本 NULL"]);
    assert_eq!(press(&mut view, "/00:04"), ["/a 31", "/日本 NULL"]);
    assert_eq!(view.press(Key::Enter, &model), Effect::None);
    assert_eq!(view.press(Key::Down, &model), Effect::None);
    assert_eq!(view.press(Key::Char('n'), &model), Effect::None);
    assert_eq!(view.press(Key::Enter, &model), Effect::None);
    assert_eq!(
        screen(&model, &mut view, at(20), 60, 20).lines().skip(2).collect::<Vec<_>>(),
        [
            " window_end | 2026-01-01T00:04:00",
            " page       | /日本",
            " count      | NULL",
            " q back               [table: /00:04: 2, 5 rows, 3 changed]"
        ]
    );
    // Back, and all rows again.
    assert_eq!(view.press(Key::Escape, &model), Effect::None);
    view.press(Key::Char('/'), &model);
    view.press(Key::Escape, &model);
    assert_eq!(press(&mut view, "").len(), 5);
    assert_eq!(view.press(Key::Char('y'), &model), Effect::Copy("2026-01-01T00:04:00\t/日本\tNULL".into()));
    assert_eq!(view.press(Key::Char('q'), &model), Effect::Leave);
}

#[test]
fn a_file_name_is_typed() {
    let model = two_batches();
    let mut view = View::new();
    for key in "wa.csq".chars() {
        view.press(Key::Char(key), &model);
    }
    view.press(Key::Backspace, &model);
    view.press(Key::Char('v'), &model);
    assert!(screen(&model, &mut view, at(20), 60, 20).contains(" write to file: a.csv_"));
    assert_eq!(view.press(Key::Enter, &model), Effect::Save("a.csv".into()));
    assert_eq!(view.press(Key::Char('w'), &model), Effect::None);
    assert_eq!(view.press(Key::Escape, &model), Effect::None);
    assert_eq!(view.press(Key::Ctrl('c'), &model), Effect::Stop);
}

#[test]
fn what_grows_is_followed_until_somebody_walks() {
    let mut model = Model::new(&context(OutputMode::Append, None, false));
    let numbers: Vec<_> = (0..30).map(|n| (0, "/a", Some(n))).collect();
    model.apply(0, &[Delta::insert(rows(&numbers))], &summary(30, None), at(1)).unwrap();
    let mut view = View::new();
    let shown = |view: &mut View, model: &Model| {
        let shown = screen(model, view, at(10), 60, 10);
        let numbers: Vec<&str> =
            shown.lines().filter_map(|line| line.split_once(" /a ")).map(|(_, n)| n.trim()).collect();
        (numbers.join(" "), shown.lines().last().unwrap_or("").to_string())
    };
    assert_eq!(shown(&mut view, &model).0, "25 26 27 28 29");
    assert!(shown(&mut view, &model).1.starts_with(" 25 more above (PgUp)"), "{:?}", shown(&mut view, &model));
    view.press(Key::Home, &model);
    assert_eq!(shown(&mut view, &model).0, "0 1 2 3 4");
    model.apply(1, &[Delta::insert(rows(&[(0, "/a", Some(30))]))], &summary(1, None), at(2)).unwrap();
    assert_eq!(shown(&mut view, &model).0, "0 1 2 3 4");
    view.press(Key::PageDown, &model);
    assert_eq!(shown(&mut view, &model).0, "1 2 3 4 5");
    view.press(Key::End, &model);
    assert_eq!(shown(&mut view, &model).0, "26 27 28 29 30");
}

#[test]
fn changes_and_batches_have_pages() {
    let mut model = Model::new(&context(OutputMode::Update, Some(vec![0, 1]), true));
    let first = Delta::changes(rows(&[(1, "/a", Some(1))]), vec![Op::Insert]).unwrap();
    model.apply(0, &[first], &summary(1, None), at(1)).unwrap();
    let ops = vec![Op::UpdateBefore, Op::UpdateAfter];
    let second = Delta::changes(rows(&[(1, "/a", Some(1)), (1, "/a", Some(2))]), ops).unwrap();
    model.apply(1, &[second], &summary(4, Some(0)), at(63)).unwrap();
    let mut view = View::new();
    view.press(Key::Char('c'), &model);
    let chart = screen(&model, &mut view, at(64), 60, 20);
    let expected = [" count", " 2026-01-01T00:01:0… ███████████████████████████████████ 2"];
    assert_eq!(chart.lines().skip(2).take(2).collect::<Vec<_>>(), expected, "{chart}");
    view.press(Key::Char('c'), &model);
    let changelog = screen(&model, &mut view, at(64), 60, 20);
    let expected = [
        " batch  op  window_end           page  count",
        "     0  +I  2026-01-01T00:01:00  /a        1",
        "     1  -U  2026-01-01T00:01:00  /a        1",
        "     1  +U  2026-01-01T00:01:00  /a        2",
    ];
    assert_eq!(changelog.lines().skip(2).take(4).collect::<Vec<_>>(), expected, "{changelog}");
    view.press(Key::Char('c'), &model);
    let batches = screen(&model, &mut view, at(64), 60, 20);
    let expected = [
        " batch  ago        in  out  watermark             state",
        "     0  1 min 3 s   1    1  -                         3",
        "     1  1 s         4    2  2026-01-01T00:00:00Z      3",
    ];
    assert_eq!(batches.lines().skip(2).take(3).collect::<Vec<_>>(), expected, "{batches}");
    assert!(batches.ends_with("[batches: 2 batches]\n"), "{batches}");
}

#[test]
fn the_last_table_stays() {
    let lines = last_table(&two_batches(), &View::new(), 79, true);
    let expected = "
 window_end           page   count
 2026-01-01T00:05:00  /a         7
 2026-01-01T00:05:00  /b         0
 2026-01-01T00:05:00  /c         1
 2026-01-01T00:04:00  /a        31   ✓
 2026-01-01T00:04:00  /日本   NULL   ✓
";
    assert_eq!(format!("\n{}", text(&lines)), expected);
}

#[test]
fn a_frame_costs_little() {
    let mut model = keyed();
    let pages: Vec<String> = (0..40).map(|n| format!("/page/{n}")).collect();
    let batch = |count: i64, of: usize| {
        let rows_: Vec<_> = pages[..of].iter().map(|page| (5, page.as_str(), Some(count))).collect();
        [Delta::insert(rows(&rows_))]
    };
    model.apply(0, &batch(1, 40), &summary(40, None), at(1)).unwrap();
    let size = Size { columns: 120, rows: 40 };
    let (mut painter, mut view) = (Painter::new(size, true, true, true), View::new());
    let mut bytes = Vec::new();
    for n in 1..20u64 {
        model.apply(n, &batch(n as i64, 10), &summary(10, None), at(n)).unwrap();
        let lines = compose(&model, &mut view, &status(at(n)), size);
        bytes.push(painter.paint(&lines).len());
    }
    // The first is drawn whole, and in the third the marks of all rows go.
    assert!(bytes[3..].iter().all(|bytes| *bytes < 1_000), "{bytes:?}");
    assert!(bytes.iter().sum::<usize>() < 1_000 * bytes.len(), "{bytes:?}");
}

#[test]
fn a_statement_that_is_run_again_has_its_time_and_its_text_above() {
    let mut model = Model::of_results(&rows(&[]).schema());
    model.take_result(1, &[rows(&[(5, "/a", Some(1)), (4, "/b", Some(2))])], at(1)).unwrap();
    model.take_result(2, &[rows(&[(5, "/a", Some(3)), (4, "/b", Some(2))])], at(3)).unwrap();
    let runs = Runs {
        every: Duration::from_secs(2),
        run: 2,
        clock: "12:00:01Z",
        took: Duration::from_millis(3),
        runs_for: None,
        statement: "SELECT *\n  FROM t",
    };
    let shown = |model: &Model, view: &mut View, runs: Runs<'_>, columns: usize| {
        let status = Status { runs: Some(runs), ..status(at(60)) };
        text(&compose(model, view, &status, Size { columns, rows: 12 }))
    };
    let mut view = View::of_repeats();
    let expected = "
 every 2 s · run 2 · 12:00:01Z (3 ms) · SELECT * FROM t          q quit  ? help
 window_end           page  count
 timestamp            utf8  int64
 2026-01-01T00:05:00  /a        3▲
 2026-01-01T00:04:00  /b        2
                                                     [table: 2 rows, 1 changed]
";
    assert_eq!(format!("\n{}", shown(&model, &mut view, runs, 80)), expected);
    let long = Runs { runs_for: Some(Duration::from_millis(2_900)), statement: &"SELECT 1, ".repeat(20), ..runs };
    assert!(shown(&model, &mut view, long, 80).starts_with(" every 2 s · run 2 · 12:00:01Z (3 ms) · running 2 s"));
    // What is a query's alone is neither a key nor in the list of keys.
    for key in ["m", "s", "e"] {
        assert_eq!(view.press(Key::Char(key.chars().next().unwrap()), &model), Effect::None);
    }
    assert!(!view.metrics && view.overlay.is_none());
    view.press(Key::Char('?'), &model);
    let help = shown(&model, &mut view, runs, 80);
    assert!(help.contains("leave, and run it no more") && !help.contains("the line of rates"), "{help}");
    view.press(Key::Char('q'), &model);
    for page in ["[chart:", "[changelog: 3 changes]", "[table:"] {
        view.press(Key::Char('c'), &model);
        assert!(shown(&model, &mut view, runs, 80).contains(page), "{page}");
    }
    for columns in 1..90 {
        let status = Status { runs: Some(long), ..status(at(60)) };
        for line in compose(&model, &mut view, &status, Size { columns, rows: 3 }) {
            assert!(line.width() < columns, "{columns}: {line:?}");
        }
    }
}
